//! The runner: one loop over cycles, one way to stop, one list of common checks, for every [family](super::family).

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::families::Families;
use super::family::{Report, StepOutcome, builder};
use super::links::link_report;
use super::system::System;
use super::watchdog::{LOOK, Watchdog};
use super::wave::{close_wave, open_wave, trace_error};
use crate::background::{Background, NextStep};
use crate::checkpoint::{self, Identity};
use crate::record::{self, recording};
use crate::result::{Check, Document, Links, Outcome};
use crate::timeline::Timeline;
use crate::{Loaded, Problem};
use watershed_fabric::{Evaluation, Step};
use watershed_kernel::Cycle;
use watershed_probe::TraceSummary;
use watershed_scenario_interface::run::{Control, NetworkContents, RunError, RunOptions, RunResult};
use watershed_state::{Loader, Mismatch, Saver};

/// Time between two looks at how far a run is, but for runs where a look takes long.
const PAUSE: Duration = Duration::from_millis(100);

/// Time between two looks at what is in the network: in a large one all its queues are many.
const INSIDE: Duration = Duration::from_secs(1);

/// A run under way.
pub(crate) struct Runner<'a> {
    loaded: &'a Loaded,
    pub(crate) system: Box<System>,
    families: Families<'a>,
    /// Traffic, if there is some.
    background: Option<Background<'a>>,
    document: Document,
    /// Why the run stands, or what was not done at its limit.
    stuck: Option<String>,
    notes: Vec<String>,
    wave: Option<TraceSummary>,
    timeline: Option<Timeline>,
    watchdogs: Vec<Watchdog>,
    checkpoints: Option<checkpoint::Writer<'a>>,
    /// Whether this process writes them, and not another one that evaluates the system, too.
    keeps: bool,
}

impl<'a> Runner<'a> {
    /// A run in cycle 0. In windows, parts of the system may run ahead of each other where nothing reads it between two cycles.
    ///
    /// # Errors
    /// The scenario is wrong in a way that only shows when the system is built, or a trace of traffic cannot be read.
    pub fn build(loaded: &'a Loaded, options: &RunOptions<'_>, windows: bool) -> Result<Runner<'a>, RunError> {
        let (mut system, list) = builder(loaded.scenario.family).build(loaded, options, windows)?;
        if let Some(ranks) = options.ranks {
            if system.parts() > 1 {
                system.share_with(Arc::clone(ranks));
            } else if !options.keeps() {
                return Err(RunError::Elsewhere);
            }
        }
        let mut families = Families::new(list);
        let mut document = Document::new(loaded);
        for (key, value) in families.take_derived() {
            document.derive(&key, value);
        }
        let sources = families.take_sources();
        let background = sources.map(|sources| Background::new(loaded, sources, &mut *system)).transpose()?;
        Ok(Runner {
            loaded,
            system,
            families,
            background,
            document,
            stuck: None,
            notes: Vec::new(),
            wave: None,
            timeline: None,
            watchdogs: Vec::new(),
            checkpoints: None,
            keeps: true,
        })
    }

    /// Makes ready what the caller wants to be kept.
    ///
    /// # Errors
    /// An option of the run is wrong.
    pub fn prepare(&mut self, options: &RunOptions<'_>) -> Result<(), RunError> {
        if let Some(flip) = options.flip {
            self.families.flip(&mut *self.system, flip)?;
        }
        if let Some(name) = options.record {
            record::check(self.system.plan(), name).map_err(RunError::Usage)?;
        }
        if let Some(all) = self.families.journal(options) {
            self.system.keep_journal(all);
            self.families.keep_times(&mut *self.system);
        }
        self.timeline = options.timeline.then(Timeline::default);
        let system = &mut *self.system;
        system.evaluate(Evaluation { no_skip: options.no_skip, shuffle: options.order_seed });
        if let Some(wave) = options.wave {
            system.record(open_wave(self.loaded, wave)?).map_err(|error| trace_error(self.loaded, wave, error))?;
        }
        if self.system.parts() == 1 && (options.threads > 1 || options.ranks.is_some_and(|ranks| ranks.ranks() > 1)) {
            self.notes.push(format!("one thread evaluates all: {}", single_part_reason(options)));
        }
        Ok(())
    }

    /// What the clock has changed since cycle 0.
    fn save(&self, to: &mut Saver) {
        self.system.save(to);
        self.families.save(to);
        to.each(self.watchdogs.iter());
        to.each(self.background.iter());
        to.value(&self.timeline);
    }

    /// Goes on from a checkpoint.
    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Mismatch> {
        self.system.load(from)?;
        self.families.load(&*self.system, from)?;
        from.each(self.watchdogs.iter_mut())?;
        from.each(self.background.iter_mut())?;
        self.timeline = from.value()?;
        Ok(())
    }

    /// The run begins, in cycle 0 or in that of a checkpoint.
    ///
    /// # Errors
    /// The checkpoint is that of another run.
    pub fn begin(&mut self, options: &RunOptions<'a>) -> Result<(), RunError> {
        self.families.begin(&mut *self.system);
        self.watchdogs = self.families.watchdogs(&*self.system);
        if options.resume.is_none() && options.checkpoints.is_none() {
            return Ok(());
        }
        let identity = self.identity(options);
        if let Some(checkpoint) = options.resume {
            let mut loader = Loader::new(checkpoint.state(&identity, self.system.parts())?);
            let loaded = self.load(&mut loader).and_then(|()| loader.finish());
            loaded.map_err(|why| checkpoint.misfit(&why))?;
        }
        let now = self.system.now();
        self.checkpoints = options.checkpoints.map(|to| checkpoint::Writer::new(to, identity, now));
        self.keeps = options.keeps();
        Ok(())
    }

    /// Which run it is.
    pub fn identity(&self, options: &RunOptions<'_>) -> Identity {
        let document = serde_json::to_vec(&self.document).unwrap_or_default();
        Identity::new(self.loaded, &document, options.retention_options())
    }

    /// Writes a checkpoint, if the caller wants some.
    fn checkpoint(&mut self) {
        let Some(mut checkpoints) = self.checkpoints.take() else { return };
        self.system.refresh_all();
        if !self.keeps {
            checkpoints.passed(self.system.now());
            self.checkpoints = Some(checkpoints);
            return;
        }
        let opened = checkpoints.open(self.system.now(), self.system.parts());
        checkpoints.close(opened.and_then(|mut saver| {
            self.save(&mut saver);
            saver.finish()
        }));
        self.checkpoints = Some(checkpoints);
    }

    /// Runs until all is done, or the limit, the watchdog or the caller ends it.
    pub fn drive(&mut self, options: &RunOptions<'_>) {
        self.document.outcome = self.cycles(options);
        self.system.refresh();
        self.document.cycles = self.families.cycles(&*self.system, self.document.outcome);
    }

    fn cycles(&mut self, options: &RunOptions<'_>) -> Outcome {
        let limit = self.loaded.scenario.limits.max_cycles;
        let stop = options.stop_cycle.unwrap_or(u64::MAX);
        let mut look = 0;
        let (mut looked, mut pause) = (Instant::now(), PAUSE);
        let mut inside = None;
        loop {
            if self.checkpoints.as_ref().is_some_and(|checkpoints| checkpoints.is_due(self.system.now())) {
                self.checkpoint();
            }
            if self.is_done() {
                return Outcome::Finished;
            }
            let mut until = u64::MAX;
            if let Some(background) = &mut self.background {
                match background.before_step(&mut *self.system) {
                    NextStep::InputError => return Outcome::Finished,
                    NextStep::Recheck => continue,
                    NextStep::Until(cycle) => until = cycle,
                }
            }
            let until = until.min(self.families.before_step(&mut *self.system));
            // A jump over idle cycles must not jump over the limit, nor over a cycle in which something is looked at.
            let (step, ran) = self.system.run_before(limit.min(stop).min(until), self.pause().min(LOOK - look));
            look += ran;
            let steps = if step == Step::Ran { ran } else { self.pass(ran) };
            let now = self.system.now();
            if step == Step::End {
                match () {
                    () if now >= stop => return Outcome::Interrupted,
                    () if now < limit => continue,
                    () => {}
                }
                self.system.refresh();
                self.stuck = self.families.at_limit(&*self.system);
                return if self.stuck.is_some() { Outcome::MaxCycles } else { Outcome::Finished };
            }
            let system = &*self.system;
            if let Some(timeline) = self.timeline.as_mut().filter(|_| step == Step::Ran) {
                timeline.sample_if_due(system);
            }
            match self.families.after_step(&mut *self.system, step) {
                StepOutcome::Continue => self.step_traffic(steps),
                StepOutcome::Repeat => continue,
                StepOutcome::Quiescent if self.traffic_is_quiet() => continue,
                // Nothing will ever happen again: if work is left, the watchdog need not wait.
                StepOutcome::Quiescent if self.is_over() => return Outcome::Finished,
                StepOutcome::Quiescent => {
                    let since = self.system.alive_until();
                    return self.report_deadlock(&format!("cycle {since}: nothing moves any more"));
                }
            }
            if self.system.fault().is_some() || self.families.broken_rule().is_some() {
                return Outcome::Broken;
            }
            if let Some(what) = self.families.find_stall(&mut *self.system, &mut self.watchdogs) {
                return self.report_deadlock(&what);
            }
            if look == LOOK || self.system.runs_in_windows() {
                look = 0;
                if let Some(hook) = options.hook
                    && self.system.agree_to_look(looked.elapsed() >= pause)
                {
                    let begin = Instant::now();
                    self.system.refresh();
                    let mut progress = self.families.progress(&*self.system);
                    let is_due = inside.is_none_or(|last: Instant| last.elapsed() >= INSIDE);
                    if self.system.any_rank(is_due) {
                        progress.inside = Some(self.network_contents());
                        inside = Some(Instant::now());
                    }
                    let answer = hook(progress);
                    looked = Instant::now();
                    // Collecting the results of two million cores takes a while; a user who stops the run waits for
                    // this, too.
                    pause = PAUSE.max(20 * (looked - begin));
                    if self.system.any_rank(answer == Control::Stop) {
                        self.checkpoint();
                        return Outcome::Interrupted;
                    }
                }
            }
            if self.system.now() >= stop {
                return Outcome::Interrupted;
            }
        }
    }

    /// Steps that may pass before a family, traffic or a watchdog has to be called.
    fn pause(&self) -> u32 {
        let looks = self.timeline.is_some() || self.checkpoints.is_some();
        if looks || self.system.runs_in_windows() || !self.families.wait_for_completions() {
            return 1;
        }
        let background = self.background.iter().map(Background::pause);
        background.chain(self.watchdogs.iter().map(Watchdog::pause)).min().unwrap_or(1)
    }

    /// This many steps have passed before one in which nothing moves: fewer than the [pause](Self::pause). Returns 1, for that step.
    fn pass(&mut self, steps: u32) -> u32 {
        self.background.iter_mut().for_each(|background| background.pass(steps));
        1
    }

    /// What is in the network now.
    fn network_contents(&self) -> NetworkContents {
        let system = &*self.system;
        NetworkContents { cycle: system.now(), flits: system.live_flits() as u64, longest_head: system.longest_head() }
    }

    /// Whether all work is over, and all traffic that ends.
    fn is_done(&mut self) -> bool {
        // Sources are asked only when nothing is on a link.
        if self.background.is_some() && self.families.is_done() && self.system.flits_on_links() == 0 {
            self.system.refresh();
        }
        let over = |background: &Background<'_>| background.is_over(&*self.system, self.families.has_work());
        self.families.is_done() && self.background.as_ref().is_none_or(over)
    }

    /// Traffic after this many steps. Where a run goes on until nothing moves, endless traffic stops with the last of the work.
    fn step_traffic(&mut self, steps: u32) {
        let Some(background) = &mut self.background else { return };
        background.after_steps(&mut *self.system, steps);
        if background.ends_with_work() {
            self.system.refresh();
            if self.families.is_over(&*self.system) {
                background.stop(&mut *self.system);
            }
        }
    }

    /// Nothing moves any more: whether that is the end of all work.
    fn is_over(&mut self) -> bool {
        self.system.refresh();
        self.families.is_over(&*self.system)
    }

    /// Nothing moves any more: whether traffic has something to do about it.
    fn traffic_is_quiet(&mut self) -> bool {
        self.background.as_mut().is_some_and(|background| background.is_quiet(&mut *self.system))
    }

    /// An input that turned out to be wrong while the run read it.
    pub fn problem(&mut self) -> Option<Problem> {
        self.background.as_mut()?.take_trace_problem()
    }

    /// What the links did.
    fn links(&self, all: bool) -> Links {
        let (system, there, cycles) = (&*self.system, self.families.all_links(), self.document.cycles);
        if let Some(background) = &self.background {
            return background.links(system, there, cycles, all);
        }
        let (all_waits, waits) = (system.head_waits(), |at| system.link_waits(at));
        link_report(system, system.link_counts(), (all_waits.as_ref(), &waits), there, cycles, all)
    }

    /// The run is deadlocked: the wait-for graph, and the participants that are not done.
    fn report_deadlock(&mut self, what: &str) -> Outcome {
        self.system.refresh_all();
        let (autopsy, left) = (self.system.autopsy(), self.families.unfinished(&*self.system));
        self.stuck = Some(format!("{what}\n{}\n{left}", autopsy.to_string().trim_end()).trim_end().to_owned());
        Outcome::Deadlock
    }

    /// Whether what parts did in windows need not be looked at again, cycle by cycle.
    pub fn no_rerun_needed(&self) -> bool {
        let system = &*self.system;
        !system.runs_in_windows() || system.fault().is_none() && self.families.no_rerun_needed(self.document.outcome)
    }

    /// Finishes the waveform; what kept it from being written.
    pub fn close(&mut self, options: &RunOptions<'_>) -> Option<String> {
        let wave = options.wave?;
        let tracer = self.system.stop_recording();
        let (summary, error) = close_wave(wave, tracer, self.document.cycles, &mut self.notes);
        self.wave = summary;
        error
    }

    /// What the run leaves behind.
    pub fn result(mut self, options: &RunOptions<'_>) -> RunResult {
        self.system.refresh_all();
        let wanted = &self.loaded.scenario.checks;
        let (oracle, monitors) = (wanted.oracle && !options.no_checks, wanted.monitors && !options.no_checks);
        let mut report = self.families.report(&*self.system, &mut self.document, oracle);
        self.document.jobs = super::jobs::all(self.loaded, &self.document, &report.data);
        if let Some(background) = &mut self.background {
            background.report(&mut self.document, &mut *self.system);
        }
        let ask = |ask| self.families.why(&*self.system, ask, &self.document, &mut self.notes);
        let why = options.why.map(ask).unwrap_or_default();
        self.document.links = self.links(options.all_links);
        let data = std::mem::take(&mut report.data);
        self.checks(report, monitors);
        let ladder = if options.ladder { self.families.ladder(&*self.system) } else { None };
        let progress = self.families.progress(&*self.system);
        let system = &*self.system;
        let recording = recording(self.loaded, system.plan(), system.journal(), options);
        let system = &*self.system;
        let (timeline, link_names) = self.timeline.map_or_else(Default::default, |timeline| timeline.samples(system));
        let (document, mut notes, wave) = (self.document, self.notes, self.wave);
        let checkpoint_error = self.checkpoints.as_mut().and_then(|checkpoints| checkpoints.error.take());
        notes.extend(self.checkpoints.and_then(|checkpoints| checkpoints.note()));
        RunResult {
            document,
            data,
            notes,
            ladder,
            why,
            recording,
            wave,
            wave_error: None,
            checkpoint_error,
            progress,
            timeline,
            link_names,
        }
    }

    /// Whether everything ended that was started.
    fn completion_check(&mut self, open: Option<String>) -> Check {
        let fault = self.system.fault().or(self.families.broken_rule());
        let stuck = self.stuck.as_deref().unwrap_or_default();
        match (self.document.outcome, fault) {
            (_, Some(fault)) => Check::failed("rules", fault),
            (Outcome::Deadlock, _) => Check::failed("progress", stuck),
            (Outcome::MaxCycles, _) => {
                let work = self.families.has_work();
                if let Some(end) = self.background.as_ref().and_then(|background| background.cycle_limit_reason(work)) {
                    self.document.outcome = Outcome::Finished;
                    return Check::passed("progress", end);
                }
                let limit = self.loaded.scenario.limits.max_cycles;
                let left = if stuck.is_empty() { String::new() } else { format!(": {stuck}") };
                Check::failed("progress", format!("not done after limits.max_cycles = {limit}{left}"))
            }
            (Outcome::Interrupted, _) => Check::failed("progress", "stopped by the user"),
            _ => match open {
                Some(open) => Check::failed("progress", open),
                None => Check::passed("progress", "everything that was started has ended"),
            },
        }
    }

    fn checks(&mut self, report: Report, monitors: bool) {
        let mut checks = vec![self.completion_check(report.open)];
        checks.extend(report.findings);
        checks.extend(self.families.family_checks(&*self.system, &self.document));
        if let Some(background) = &self.background {
            let (work, lossy) = (self.families.has_work(), self.families.has_lost_packets(&*self.system));
            checks.extend(background.check(&*self.system, &self.document, work, lossy));
        }
        let drains = self.background.as_ref().is_none_or(Background::ends_drained);
        let emptied = drains && self.document.outcome == Outcome::Finished;
        let mut causes = if monitors { self.system.head_waits_add_up() } else { Ok(()) };
        if emptied {
            // Whatever is still on its way now are mostly credits.
            let system = &mut *self.system;
            let moves = system.moves();
            while system.fault().is_none() && system.step_before(Cycle::MAX) != Step::Quiet {}
            system.refresh();
            if monitors && system.moves() != moves {
                system.refresh_all();
                causes = system.head_waits_add_up();
            }
        }
        let system = &*self.system;
        if emptied {
            let live = system.live_flits();
            let detail =
                if live == 0 { "no flit is left in the network".into() } else { format!("{live} flits are left") };
            checks.push(Check { name: "network empty".into(), passed: live == 0, detail });
        }
        if monitors {
            let rest = !emptied || system.at_rest();
            let detail = if rest { "order and credits held on every link" } else { "credits are missing at the end" };
            let (passed, detail) = match causes {
                Ok(()) => (rest, detail.into()),
                Err(wrong) => (false, wrong),
            };
            checks.push(Check { name: "links".into(), passed, detail });
        }
        checks.extend(report.last);
        self.document.checks = checks;
    }
}

/// Why a system is whole although more threads than one were asked for.
fn single_part_reason(options: &RunOptions<'_>) -> &'static str {
    if options.watches() {
        return "a waveform, a journal, a shuffled order or idle cycles that are not skipped need the system in one piece";
    }
    "there is nothing to divide between them"
}
