//! The tracer: collects samples and hands the changes of each cycle to a sink.

use std::borrow::Cow;
use std::io;

use super::declare::{DeclarationPass, Registry};
use super::scope::{Mode, Sampling, Scope, Slot, Step};
use super::select::{NothingSelected, Selection, clean};
use super::sink::{SignalDecl, Sink, TraceError, TraceSummary, Values};
use super::{Period, SignalId};

/// A node that has at least one selected signal; from [`Tracer::declare`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NodeHandle(u32);

/// Where a recording stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    DeclarationPass,
    /// Before and in the first cycle of the window: samples are kept, not written.
    Before,
    /// In the window.
    Inside,
    /// After the window, or after an error: samples are ignored.
    Over,
}

/// Collects samples and hands the changes of each cycle to a [`Sink`].
pub struct Tracer {
    pub(crate) period: Period,
    pub(crate) selection: Selection,
    sink: Box<dyn Sink>,
    pub(crate) registry: Registry,
    pub(crate) steps: Vec<Step>,
    /// End of each node's steps; a node begins where the one before it ends.
    ends: Vec<usize>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) wide: Vec<u64>,
    /// Signals that changed in cycle `now`.
    pub(crate) changed: Vec<SignalId>,
    now: u64,
    phase: Phase,
    clock: Option<SignalId>,
    /// First cycle whose clock edges are not written yet.
    next_edge: u64,
    last_time: u64,
    pub(crate) changes: u64,
    pub(crate) window_reached: bool,
    pub(crate) unmatched_globs: Vec<NothingSelected>,
    pub(crate) error: Option<io::Error>,
}

impl std::fmt::Debug for Tracer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tracer")
            .field("nodes", &self.ends.len())
            .field("signals", &self.slots.len())
            .field("cycle", &self.now)
            .field("phase", &self.phase)
            .field("changes", &self.changes)
            .finish_non_exhaustive()
    }
}

impl Tracer {
    /// A tracer for a clock of this period.
    pub fn new(period_ps: Period, selection: Selection, sink: Box<dyn Sink>) -> Tracer {
        let used_globs = vec![false; selection.stride()];
        Tracer {
            period: period_ps,
            selection,
            sink,
            registry: Registry { used_globs, ..Registry::default() },
            steps: Vec::new(),
            ends: Vec::new(),
            slots: Vec::new(),
            wide: Vec::new(),
            changed: Vec::new(),
            now: 0,
            phase: Phase::DeclarationPass,
            clock: None,
            next_edge: 0,
            last_time: 0,
            changes: 0,
            window_reached: false,
            unmatched_globs: Vec::new(),
            error: None,
        }
    }

    /// Adds a signal `clock.clk` that rises at the start of every cycle of the window and falls half way.
    ///
    /// It is written for idle cycles too, about 20 bytes a cycle; that is why it is off unless asked for. It does not
    /// count as a selected signal.
    pub fn add_clock(&mut self) {
        assert!(
            self.phase == Phase::DeclarationPass && self.slots.is_empty(),
            "add_clock() comes before the first declare()"
        );
        let scope = self.registry.child(None, "clock");
        let declarations = &mut self.registry.declarations;
        declarations.scopes[scope as usize].signals.push(0);
        declarations.signals.push(SignalDecl {
            name: Cow::Borrowed("clk"),
            width: 1,
            table: None,
            scope,
            first: false,
        });
        self.slots.push(Slot { value: 1, width: 1, unknown: false });
        self.clock = Some(0);
    }

    /// Declares a node and takes its initial values. `path` is its place in the hierarchy, names joined by dots;
    /// several nodes may share scopes, in any order of declaration.
    ///
    /// `None` says that nothing of the node is selected: it need never be sampled.
    pub fn declare(&mut self, path: &str, f: impl FnOnce(&mut Scope<'_>)) -> Option<NodeHandle> {
        self.declare_node(path, false, f)
    }

    /// As [`declare`](Self::declare), for signals that are written only if a glob names them (see [`Selection`]).
    pub fn declare_details(&mut self, path: &str, f: impl FnOnce(&mut Scope<'_>)) -> Option<NodeHandle> {
        self.declare_node(path, true, f)
    }

    /// Whether details in this scope may be selected: if not, what they show need not be there.
    pub fn wants_details(&self, path: &str) -> bool {
        self.phase == Phase::DeclarationPass && self.selection.reaches_details(path)
    }

    fn declare_node(&mut self, path: &str, details: bool, f: impl FnOnce(&mut Scope<'_>)) -> Option<NodeHandle> {
        assert!(self.phase == Phase::DeclarationPass, "`{path}` is declared after start(): declare every node first");
        let (steps_before, slots_before) = (self.steps.len(), self.slots.len());
        let mut declaring = DeclarationPass {
            selection: &self.selection,
            registry: &mut self.registry,
            steps: &mut self.steps,
            slots: &mut self.slots,
            wide: &mut self.wide,
            levels: Vec::new(),
            states: Vec::new(),
            first: false,
        };
        self.selection.begin(&mut declaring.states);
        if details {
            self.selection.enter_details(&mut declaring.states);
        }
        let mut visit = true;
        for name in path.split('.') {
            visit = declaring.open(Cow::Owned(clean(name).into_owned()));
            if !visit {
                break;
            }
        }
        if visit {
            let mut scope = Scope { mode: Mode::Declare(declaring) };
            f(&mut scope);
        }
        if self.slots.len() == slots_before {
            self.steps.truncate(steps_before);
            return None;
        }
        self.ends.push(self.steps.len());
        Some(NodeHandle(self.ends.len() as u32 - 1))
    }

    /// Writes the header. The initial values follow as soon as the first cycle of the window is over, so that
    /// samples at that cycle still become part of them.
    ///
    /// # Errors
    /// A selection that no declared signal matches, or a header that cannot be written.
    pub fn start(&mut self) -> Result<(), TraceError> {
        assert!(self.phase == Phase::DeclarationPass, "start() is called twice");
        let mut registry = std::mem::take(&mut self.registry);
        if self.selected_signals() == 0 {
            registry.collected.sort_unstable();
            registry.collected.dedup();
            let nothing = self.selection.nothing_of(&registry.collected, registry.too_deep);
            return Err(TraceError::NothingSelected(nothing));
        }
        let unused: Vec<String> = (self.selection.globs().zip(&registry.used_globs))
            .filter(|(_, used)| !**used)
            .map(|(glob, _)| glob.to_owned())
            .collect();
        if !unused.is_empty() {
            let declarations = &registry.declarations;
            let traced = declarations.signals.iter().map(|of| declarations.scope_path(of.scope) + "." + &of.name);
            registry.collected.extend(traced);
            registry.collected.sort_unstable();
            registry.collected.dedup();
            let alone = unused.iter().filter_map(|glob| Selection::new([glob]).ok());
            self.unmatched_globs = alone.map(|glob| glob.nothing(&registry.collected)).collect();
        }
        registry.declarations.make_names_unique();
        registry.declarations.period = Some(self.period);
        self.sink.header(&registry.declarations)?;
        self.phase = Phase::Before;
        self.next_edge = self.selection.from_cycle();
        Ok(())
    }

    /// Takes a node's values as they stand at the start of `cycle`.
    #[inline]
    pub fn sample(&mut self, node: NodeHandle, cycle: u64, f: impl FnOnce(&mut Scope<'_>)) {
        if cycle != self.now {
            self.advance(cycle);
        }
        if self.phase == Phase::Over {
            return;
        }
        let node = node.0 as usize;
        let begin = if node == 0 { 0 } else { self.ends[node - 1] };
        let mut scope = Scope {
            mode: Mode::Sample(Sampling {
                steps: &self.steps[begin..self.ends[node]],
                at: 0,
                slots: &mut self.slots,
                wide: &mut self.wide,
                changed: &mut self.changed,
            }),
        };
        f(&mut scope);
        if let Mode::Sample(sampling) = scope.mode {
            debug_assert!(
                sampling.at == sampling.steps.len(),
                "a probe function shows {} signals and scopes, it declared {}: it must call the same ones in the \
                 same order every time, whatever the block's state is",
                sampling.at,
                sampling.steps.len()
            );
        }
    }

    /// Whether samples at this cycle or later can still reach the file.
    pub fn is_over(&self, cycle: u64) -> bool {
        self.phase == Phase::Over || self.selection.to_cycle().is_some_and(|to| cycle > to)
    }

    /// Value changes written so far, initial values not counted.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Selected signals so far, the clock not counted.
    pub fn selected_signals(&self) -> usize {
        self.slots.len() - usize::from(self.clock.is_some())
    }

    /// Writes what is left, marks the end of `last_cycle` (the last one simulated) and closes the files.
    ///
    /// # Errors
    /// The first error of the whole recording.
    pub fn finish(mut self, last_cycle: u64) -> io::Result<TraceSummary> {
        assert!(self.phase != Phase::DeclarationPass, "finish() comes after start()");
        if self.phase == Phase::Before && last_cycle >= self.selection.from_cycle() {
            self.now = self.now.max(self.selection.from_cycle());
            self.dump();
        }
        // The end of the window, or of the run. What changed later (what the last edge left behind, credits on their way
        // home) is kept; a look at registers that found no change moves nothing.
        let end = self.selection.to_cycle().map_or(last_cycle, |to| to.min(last_cycle)).saturating_add(1);
        if self.phase == Phase::Inside {
            self.flush();
        }
        if self.window_reached {
            self.edges_until(end);
        }
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let end_time = if self.window_reached { self.period.start_ps(end).max(self.last_time) } else { 0 };
        let summary = self.sink.finish(end_time)?;
        Ok(TraceSummary {
            files: summary.files,
            signals: self.selected_signals(),
            changes: self.changes,
            bytes: summary.bytes,
            fired_cycle: summary.fired_ps.map(|time| self.period.cycle_at(time)),
            window_reached: self.window_reached,
            unmatched_globs: self.unmatched_globs,
        })
    }

    /// Closes cycle `now` and opens `cycle`.
    #[cold]
    fn advance(&mut self, cycle: u64) {
        assert!(cycle > self.now, "sample at cycle {cycle} after one at cycle {}: cycles must not go back", self.now);
        match self.phase {
            Phase::DeclarationPass => panic!("sample() comes after start()"),
            Phase::Before => {
                let from = self.selection.from_cycle();
                if cycle > from {
                    self.now = from;
                    self.dump();
                } else {
                    self.changed.clear();
                }
            }
            Phase::Inside => self.flush(),
            Phase::Over => {}
        }
        if self.phase == Phase::Inside && self.selection.to_cycle().is_some_and(|to| cycle > to) {
            self.phase = Phase::Over;
        }
        self.now = cycle;
    }

    /// Writes all values as they stand in cycle `now`, the first of the window.
    fn dump(&mut self) {
        self.changed.clear();
        self.phase = Phase::Inside;
        self.window_reached = true;
        self.last_time = self.period.start_ps(self.now);
        let values = Values { slots: &self.slots, wide: &self.wide };
        if let Err(error) = self.sink.dump(self.last_time, values) {
            self.fail(error);
        }
        if self.clock.is_some() {
            // The dump shows the clock high; what is left of this cycle is the falling edge.
            self.falling_edge(self.now);
            self.next_edge = self.now + 1;
        }
    }

    /// Writes what changed in cycle `now`.
    fn flush(&mut self) {
        // Edges of cycles without a change wait for the next one, or the end: nobody knows yet whether the run goes so far.
        if self.changed.is_empty() {
            return;
        }
        self.edges_until(self.now);
        let mut changed = std::mem::take(&mut self.changed);
        if !changed.is_sorted_by(|a, b| a < b) {
            changed.sort_unstable();
            changed.dedup();
        }
        if let Some(clock) = self.clock {
            // Signal 0: still in ascending order, and before everything it causes.
            changed.insert(0, clock);
            self.slots[clock as usize].value = 1;
        }
        self.write(self.period.start_ps(self.now), &changed);
        if self.clock.is_some() {
            self.falling_edge(self.now);
            self.next_edge = self.now + 1;
        }
        changed.clear();
        self.changed = changed;
    }

    /// Clock edges of the cycles that nothing else was written for, up to but without `end`.
    fn edges_until(&mut self, end: u64) {
        let Some(clock) = self.clock else { return };
        while self.next_edge < end && self.error.is_none() {
            self.slots[clock as usize].value = 1;
            self.write(self.period.start_ps(self.next_edge), &[clock]);
            self.falling_edge(self.next_edge);
            self.next_edge += 1;
        }
    }

    fn falling_edge(&mut self, cycle: u64) {
        if let Some(clock) = self.clock {
            self.slots[clock as usize].value = 0;
            self.write(self.period.part_ps(cycle, 1, 2), &[clock]);
        }
    }

    fn write(&mut self, time_ps: u64, changed: &[SignalId]) {
        if self.error.is_some() {
            return;
        }
        if time_ps == u64::MAX {
            return self.fail(io::Error::other("the waveform is longer than 2^64 ps; choose a window"));
        }
        self.last_time = time_ps;
        self.changes += changed.len() as u64;
        let values = Values { slots: &self.slots, wide: &self.wide };
        if let Err(error) = self.sink.step(time_ps, changed, values) {
            self.fail(error);
        }
    }

    /// Keeps the first error for `finish`; a simulation must not die of a full disk.
    fn fail(&mut self, error: io::Error) {
        self.error.get_or_insert(error);
        self.phase = Phase::Over;
    }
}
