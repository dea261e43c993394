//! Running a scenario: what the caller asks for, what comes back.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::build::{BuildOptions, Built, Ready, build, operation, oracle_tree};
use super::config::{CollectiveKind, Family, TrafficPattern};
use super::data::Table;
use super::expr::{self, Expr};
use super::measure::{self, MeasureResult, Measurement, Phase};
use super::record::{self, Recording};
use super::result::{
    Check, CollectiveResult, Difference, Document, LinkLevel, LinkResult, Links, Outcome, ResultData, TrafficResult,
    hex,
};
use super::timeline::Timeline;
use super::{Loaded, Problem, Problems, armed, golden, hosts, ladder, pbv, programs, trace, why};
use crate::arith::{self, Flags};
use crate::fabric::traffic::{Created, Received, Traffic};
use crate::fabric::{Evaluation, Journal, LinkCount, NodeKind, Plan, Step};
use crate::oracle;
use crate::piuma::{Job, System, Tap};
use crate::probe::ladder::Ladder;
use crate::probe::{
    FstSink, Lookup, Period, Reading, Selection, Sink, TraceError, TraceSummary, Tracer, Trigger, TriggerSink, VcdSink,
};

/// What to write into a waveform.
#[derive(Debug, Clone, PartialEq)]
pub struct WaveOptions {
    /// The file.
    pub path: PathBuf,
    /// Globs on hierarchical names.
    pub signals: Vec<String>,
    /// Levels of hierarchy; `None` is all.
    pub depth: Option<u32>,
    /// First cycle.
    pub from_cycle: u64,
    /// Last cycle; `None` is the end.
    pub to_cycle: Option<u64>,
    /// The clock as well.
    pub clock: bool,
    /// Write only what lies around a trigger.
    pub trigger: Option<TriggerOptions>,
    /// Write nothing if every check passed and the trigger did not fire.
    pub only_failed: bool,
}

/// What a waveform is written around.
#[derive(Debug, Clone, PartialEq)]
pub struct TriggerOptions {
    /// A condition on traced signals by their hierarchical names; without one, only the end of the run is written.
    pub condition: Option<Expr>,
    /// Cycles before it, or before the end.
    pub before: u64,
    /// Cycles after it; `None` is to the end.
    pub after: Option<u64>,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// The cycle that is being simulated.
    pub cycle: u64,
    /// Elements that have landed, of all participants of all collectives.
    pub done: u64,
    /// Elements that will have landed at the end; 0 if there is no collective.
    pub total: u64,
}

/// What the one who watches a run wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Go on.
    Continue,
    /// End here, cleanly, with what is done so far.
    Stop,
}

/// A deliberate fault: bits of one word that leaves one switch's engine are flipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flip<'a> {
    /// Name of the switch.
    pub switch: &'a str,
    /// Collective id.
    pub id: u16,
    /// Number of the word in the stream.
    pub word: u64,
    /// The bits.
    pub mask: u64,
}

/// How to run.
#[derive(Clone, Copy, Default)]
pub struct RunOptions<'a> {
    /// Write a waveform.
    pub wave: Option<&'a WaveOptions>,
    /// Evaluate blocks in an order shuffled by this seed. Results must not change.
    pub order_seed: Option<u64>,
    /// Evaluate every block in every cycle. Results must not change.
    pub no_skip: bool,
    /// Leave out monitors and oracle, whatever the scenario says.
    pub no_checks: bool,
    /// Report every link.
    pub all_links: bool,
    /// Flip bits in one word of one engine's result, to see that the checks see it.
    pub flip: Option<Flip<'a>>,
    /// Log every frame and make a ladder of it.
    pub ladder: bool,
    /// Record the inputs and outputs of this block.
    pub record: Option<&'a str>,
    /// Keep a journal and find out where the cycles of the collectives went.
    pub why: Option<why::Ask<'a>>,
    /// Look now and then at what is in the network.
    pub timeline: bool,
    /// Threads that evaluate the system, each a part of it; 0 is one. Results do not change. With a waveform, `why`, a
    /// shuffled order or idle cycles not skipped, one thread does all, and so in the armed and pbv families.
    pub threads: usize,
    /// Called now and then, about ten times a second of real time.
    pub hook: Option<&'a dyn Fn(Progress) -> Control>,
}

impl std::fmt::Debug for RunOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunOptions")
            .field("wave", &self.wave)
            .field("order_seed", &self.order_seed)
            .field("no_skip", &self.no_skip)
            .field("no_checks", &self.no_checks)
            .field("all_links", &self.all_links)
            .finish_non_exhaustive()
    }
}

/// What a run leaves behind.
#[derive(Debug, Clone)]
pub struct RunResult {
    /// The result document.
    pub document: Document,
    /// The result vectors of every collective, in the order of the scenario, for `--save-npy`; after them those of every host.
    pub data: Vec<ResultData>,
    /// What the caller should know and no check is about: globs that selected nothing, a window that was not reached.
    pub notes: Vec<String>,
    /// Who sent what to whom when, if asked for.
    pub ladder: Option<Ladder>,
    /// Where the cycles of the collectives went, if asked for.
    pub why: Vec<why::Why>,
    /// Inputs and outputs of the block that was recorded.
    pub recording: Option<Recording>,
    /// The waveform that was written.
    pub wave: Option<TraceSummary>,
    /// How far it came.
    pub progress: Progress,
    /// What was in the network when, if asked for.
    pub timeline: Vec<Sample>,
}

/// A look at the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub cycle: u64,
    /// Flits in queues and on links.
    pub live: u64,
    /// Flits that have left a queue since cycle 0.
    pub moved: u64,
}

/// Why there is no result at all. A run that fails a check has a result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The scenario is wrong in a way that only shows when the system is built.
    #[error("{0}")]
    Problems(#[from] Problems),
    /// A file cannot be written.
    #[error("error: cannot write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// An option of the run is wrong, for example a glob that selects nothing.
    #[error("error: {0}")]
    Usage(String),
}

/// Makes every check that comes before the first cycle: builds the system and throws it away.
///
/// # Errors
/// See [`RunError`].
pub fn check(loaded: &Loaded) -> Result<(), RunError> {
    if loaded.scenario.family == Family::Armed {
        return armed::run::check(loaded);
    }
    if loaded.scenario.family == Family::Pbv {
        return pbv::run::check(loaded);
    }
    build(loaded, BuildOptions::default())?;
    Ok(())
}

/// Builds the system that a scenario describes and runs it to the end.
///
/// # Errors
/// See [`RunError`].
pub fn run(loaded: &Loaded, options: &RunOptions<'_>) -> Result<RunResult, RunError> {
    let mut result = run_family(loaded, options)?;
    if let (Some(asked), Some(wave)) = (options.wave, &result.wave) {
        if let Some(cycle) = wave.fired_cycle {
            result.notes.push(format!("the trigger fired in cycle {cycle}"));
        } else if asked.only_failed && result.document.passed() {
            for file in &wave.files {
                std::fs::remove_file(file).map_err(|error| RunError::Write { path: file.clone(), error })?;
            }
            result.wave = None;
            result.notes.push("every check passed and no trigger fired: there is no waveform".to_owned());
        } else if let Some(trigger) = asked.trigger.as_ref().filter(|trigger| trigger.condition.is_some()) {
            let before = trigger.before;
            result.notes.push(format!("the trigger did not fire: the waveform has the last {before} cycles"));
        }
    }
    if let Some(written) = &mut result.document.scenario {
        written.set_options(options);
    }
    Ok(result)
}

fn run_family(loaded: &Loaded, options: &RunOptions<'_>) -> Result<RunResult, RunError> {
    if loaded.scenario.family == Family::Armed {
        return armed::run::run(loaded, options);
    }
    if loaded.scenario.family == Family::Pbv {
        return pbv::run::run(loaded, options);
    }
    let journal = options.why.is_some() || options.ladder || options.record.is_some();
    let whole = options.wave.is_some() || options.all_links || journal;
    // What looks at every cycle of the whole system, or walks its blocks in another order, has it in one piece.
    let watched = options.wave.is_some() || journal || options.no_skip || options.order_seed.is_some();
    let threads = if watched { 1 } else { options.threads };
    // Who looks at the system between two cycles needs it to stand in one cycle then.
    let windows = !watched && !options.timeline;
    let ready = build(loaded, BuildOptions { no_monitors: options.no_checks, whole, threads, windows })?;
    let mut run = Run::new(loaded, ready)?;
    if let Some(name) = options.record {
        record::check(run.ready.system.plan(), name).map_err(RunError::Usage)?;
    }
    if journal {
        let packets = options.why.is_some_and(|ask| ask.source.is_some());
        let all = packets || options.why.is_none() || !loaded.scenario.collectives.iter().any(|of| !of.called);
        run.ready.system.keep_journal(all);
        run.keep_times();
    }
    run.timeline = options.timeline.then(Timeline::default);
    run.ready.system.evaluate(Evaluation { no_skip: options.no_skip, shuffle: options.order_seed });
    if let Some(wave) = options.wave {
        run.record(wave)?;
    }
    if let Some(flip) = options.flip {
        run.flip(flip)?;
    }
    run.drive(options);
    if run.ready.system.runs_in_windows() && !run.went_well() {
        // What went wrong is shown in the cycle in which it did.
        drop(run);
        run = Run::new(
            loaded,
            build(loaded, BuildOptions { no_monitors: options.no_checks, whole, threads, windows: false })?,
        )?;
        if let Some(flip) = options.flip {
            run.flip(flip)?;
        }
        run.drive(options);
    }
    if let Some(problem) = run.feed.wrong.take() {
        return Err(loaded.problems(vec![problem]).into());
    }
    if let Some(wave) = options.wave {
        run.close(wave)?;
    }
    Ok(run.result(options))
}

/// A run under way.
struct Run<'a> {
    loaded: &'a Loaded,
    ready: Ready,
    document: Document,
    /// Whether each collective may start, and is complete.
    state: Vec<State>,
    /// How many participants of each, from the first on, are known to be done.
    done: Vec<usize>,
    /// Completions the system has reported and the run has looked at.
    seen: u64,
    /// Threads of programs are left.
    programs_left: bool,
    /// First cycle of each host that has started.
    host_starts: Vec<Option<u64>>,
    /// The host that runs or is to run.
    host_next: Option<usize>,
    /// Completions when it started.
    host_base: u64,
    deadlock: Option<String>,
    /// A store of a program that no register took.
    refused: Option<String>,
    notes: Vec<String>,
    measurement: Measurement,
    /// The network at the start and at the end of the window.
    window: [Option<Snapshot>; 2],
    feed: Feed,
    timeline: Option<Timeline>,
    wave: Option<TraceSummary>,
}

/// What has happened up to a cycle.
#[derive(Clone, Debug, Default)]
struct Snapshot {
    /// By class.
    created: Vec<Created>,
    /// By class.
    received: Vec<Received>,
    /// Flits that arrived at each end point.
    arrived: Vec<u64>,
    /// Flits that entered.
    entered: u64,
    /// By link and direction.
    links: Vec<LinkCount>,
}

/// Traces that are read as the run goes on.
#[derive(Default)]
struct Feed {
    traces: Vec<Trace>,
    /// Everything before this cycle has been read.
    until: u64,
    wrong: Option<Problem>,
}

struct Trace {
    traffic: usize,
    /// Class of its packets of class 1, less 1.
    classes: usize,
    reader: trace::Reader,
    next: Option<trace::Record>,
    /// Number of the source among those of each end point.
    sources: Vec<usize>,
}

/// Cycles that a trace is read ahead.
const AHEAD: u64 = 4096;
/// Cycles before the end of what was read in which a run reads on: more than a quiet system is ahead of its last event.
const MARGIN: u64 = 8;
/// Steps between two collections of what end points have measured.
const COLLECT: u32 = 128;

/// Where a collective stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It waits for collectives it meets.
    Claiming,
    Running,
    Complete,
}

/// Cycles between two looks at the clock on the wall and the watchdog.
const LOOK: u32 = 1024;

impl<'a> Run<'a> {
    fn new(loaded: &'a Loaded, mut ready: Ready) -> Result<Run<'a>, RunError> {
        let mut document = Document::new(loaded);
        for (key, value) in std::mem::take(&mut ready.derived) {
            document.derive(&key, value);
        }
        let done = vec![0; ready.collectives.len()];
        let state: Vec<State> = ready
            .collectives
            .iter()
            .zip(&loaded.scenario.collectives)
            .map(|(built, collective)| {
                if collective.called {
                    State::Complete
                } else if built.after.is_empty() {
                    State::Running
                } else {
                    State::Claiming
                }
            })
            .collect();
        let measurement = Measurement::new(loaded.scenario.measure, ready.classes.len());
        for end in 0..ready.system.ends().len() {
            if let Some(traffic) = &mut ready.system.end_mut(end).traffic {
                traffic.measure();
            }
        }
        let feed = Feed::open(loaded, &ready)?;
        let window = [None, None];
        let (deadlock, notes) = (None, Vec::new());
        let host_starts = vec![None; loaded.scenario.hosts.len()];
        let programs_left = ready.system.ends().iter().any(|end| end.processor.is_some());
        Ok(Run {
            loaded,
            ready,
            document,
            state,
            done,
            seen: 0,
            programs_left,
            host_starts,
            host_next: None,
            host_base: 0,
            deadlock,
            refused: None,
            notes,
            measurement,
            window,
            feed,
            timeline: None,
            wave: None,
        })
    }

    /// Lets every core write down when its words land.
    fn keep_times(&mut self) {
        let jobs: Vec<(usize, usize)> = self.ready.collectives.iter().flat_map(|built| built.jobs.clone()).collect();
        for (end, job) in jobs {
            if let Some(core) = &mut self.ready.system.end_mut(end).core {
                core.job_mut(job).keep_times();
            }
        }
    }

    fn flip(&mut self, flip: Flip<'_>) -> Result<(), RunError> {
        let Flip { switch, id, word, mask } = flip;
        let named = self.loaded.scenario.topology.switch_by_name(switch);
        let engine = named.and_then(|at| self.ready.system.join_mut(at));
        let engine =
            engine.ok_or_else(|| RunError::Usage(format!("there is no switch \"{switch}\" with an engine")))?;
        engine.set_tap(Tap { id, seq: word, flip: mask, seen: None });
        Ok(())
    }

    // ------------------------------------------------------------------------------------------------- waves

    fn record(&mut self, wave: &WaveOptions) -> Result<(), RunError> {
        let tracer = open_wave(self.loaded, wave)?;
        self.ready.system.record(tracer).map_err(|error| trace_error(wave, error))
    }

    fn close(&mut self, wave: &WaveOptions) -> Result<(), RunError> {
        let last = self.ready.system.now();
        self.wave = close_wave(wave, self.ready.system.stop_recording(), last, &mut self.notes)?;
        Ok(())
    }

    // --------------------------------------------------------------------------------------------- the cycles

    /// Runs until all is done, or the limit, the watchdog or the caller ends it.
    fn drive(&mut self, options: &RunOptions<'_>) {
        let limits = &self.loaded.scenario.limits;
        let mut watchdog = Watchdog::new(limits.watchdog_cycles);
        self.host_next = self.host_from(0);
        self.next_host();
        let mut look = 0;
        let mut looked = std::time::Instant::now();
        while !self.is_done() {
            // A jump over idle cycles must not jump over the limit, nor over a cycle in which something is looked at.
            let now = self.ready.system.now();
            if now + MARGIN >= self.feed.until && !self.feed(now) {
                break;
            }
            if now >= self.measurement.next() {
                self.measure(now);
                continue;
            }
            let step =
                self.ready.system.step_before(limits.max_cycles.min(self.measurement.next()).min(self.feed.until));
            if step == Step::End {
                if self.ready.system.now() < limits.max_cycles {
                    continue;
                }
                self.document.outcome = Outcome::MaxCycles;
                break;
            }
            if let Some(timeline) = &mut self.timeline {
                let system = &self.ready.system;
                timeline.look(system.now(), || system.live_flits(), system.moves());
            }
            if self.ready.system.completions() != self.seen {
                self.seen = self.ready.system.completions();
                self.advance();
                self.program_stores();
                self.programs_left = self.programs_left();
                self.next_host();
            } else if self.programs_left && step == Step::Quiet && !self.programs_left() {
                // The last messages have come to their queues, and nobody is there to take them.
                self.programs_left = false;
                self.next_host();
                continue;
            } else if step == Step::Quiet && !self.feed.is_at_end() {
                // The next packet of a trace is further away than the run has read.
                let now = self.ready.system.now();
                if !self.feed(now) {
                    break;
                }
                continue;
            } else if step == Step::Quiet && self.measurement.next() != u64::MAX {
                // Nothing will happen any more, but the window has not been looked at.
                let next = self.measurement.next();
                self.measure(next);
                continue;
            } else if step == Step::Quiet {
                // Nothing will ever happen again although work is left: the watchdog need not wait.
                let since = self.ready.system.alive_until();
                self.stuck(&format!("cycle {since}: nothing moves any more"));
                self.document.cycles = since;
                return;
            }
            if self.ready.system.fault().is_some() {
                break;
            }
            look += 1;
            if look % COLLECT == 0 {
                self.collect();
            }
            if look == LOOK || self.ready.system.runs_in_windows() {
                look = 0;
                if let Some(since) = watchdog.look(&self.ready.system, self.collectives_left()) {
                    self.stuck(&format!(
                        "cycle {}: no end point has taken or sent a flit since cycle {since}",
                        self.ready.system.now()
                    ));
                    break;
                }
                if let Some(hook) = options.hook
                    && looked.elapsed().as_millis() >= 100
                {
                    looked = std::time::Instant::now();
                    if hook(self.progress()) == Control::Stop {
                        self.document.outcome = Outcome::Interrupted;
                        break;
                    }
                }
            }
        }
        let system = &self.ready.system;
        // A window goes on behind the last completion; nothing but credits moves there.
        let complete = system.runs_in_windows() && !self.collectives_left();
        self.document.cycles = if complete { system.completed() + 1 } else { system.now() };
    }

    /// Whether everything is complete and no rule was broken, or the run was ended from outside.
    fn went_well(&self) -> bool {
        let ended = self.document.outcome != Outcome::Finished && self.document.outcome != Outcome::Deadlock;
        self.ready.system.fault().is_none() && (ended || !self.collectives_left())
    }

    /// The first host on the fabric from an index on.
    fn host_from(&self, first: usize) -> Option<usize> {
        let hosts = &self.loaded.scenario.hosts;
        (first..hosts.len()).find(|&index| hosts[index].mode == hosts::file::HostMode::Fabric)
    }

    /// Whether there is anything but traffic.
    fn has_work(&self) -> bool {
        let scenario = &self.loaded.scenario;
        !self.state.is_empty() || scenario.programs.is_some() || self.host_from(0).is_some()
    }

    fn host_is_done(&self, index: usize, host: &hosts::config::Host) -> bool {
        hosts::result::ranks(&self.ready.system, host, index).all(|rank| rank.end().is_some())
    }

    fn hosts_left(&self) -> bool {
        self.host_next.is_some()
    }

    /// Lets the next host start when all that was before it is complete.
    fn next_host(&mut self) {
        let Some(next) = self.host_next else { return };
        let host = &self.loaded.scenario.hosts[next];
        if self.host_starts[next].is_some() {
            // Every rank reports once: asking them all is worth it only then.
            let reported = self.ready.system.completions() - self.host_base;
            if reported < host.ranks.len() as u64 || !self.host_is_done(next, host) {
                return;
            }
            self.host_next = self.host_from(next + 1);
            self.next_host();
            return;
        }
        if self.collectives_left() || self.programs_left {
            return;
        }
        let start = self.ready.system.now().max(host.start_cycle);
        self.host_starts[next] = Some(start);
        self.host_base = self.ready.system.completions();
        let class = hosts::build::class(next);
        for &end in &host.ranks {
            for rank in &mut self.ready.system.end_mut(end as usize).hosts {
                if rank.job().class == class {
                    let delay = host.delays.get(rank.rank() as usize).copied().unwrap_or(0);
                    rank.release(start + delay);
                }
            }
        }
    }

    /// Whether threads of programs have not ended, or what they sent is still on its way.
    fn programs_left(&self) -> bool {
        let mut processors = self.ready.system.ends().iter().filter_map(|end| end.processor.as_deref());
        self.programs_left && (processors.any(|processor| !processor.is_done()) || self.ready.system.has_flits(true))
    }

    /// Makes the stores to configuration registers that programs asked for: they count from the next cycle on.
    fn program_stores(&mut self) {
        if !self.programs_left {
            return;
        }
        let mut stores = Vec::new();
        self.ready.system.each_end(|end| {
            if let Some(processor) = &mut end.processor {
                stores.extend(processor.take_stores());
            }
        });
        for (address, value) in stores {
            if let Err(error) = self.ready.system.tables.store(address, value) {
                self.refused.get_or_insert(format!("a program's store: {error}"));
            }
        }
    }

    fn collectives_left(&self) -> bool {
        self.state.iter().any(|state| *state != State::Complete)
    }

    fn is_done(&self) -> bool {
        if self.collectives_left() || self.programs_left || self.hosts_left() {
            return false;
        }
        if self.measurement.has_window() {
            return self.measurement.phase == Phase::Done;
        }
        // Traffic that ends is waited for; endless traffic ends with the last collective, or at the cycle limit.
        let endless = self.loaded.scenario.traffic.iter().any(super::config::Traffic::is_endless);
        if self.loaded.scenario.traffic.is_empty() || (endless && self.has_work()) {
            return true;
        }
        !endless && self.drained()
    }

    fn drained(&self) -> bool {
        // Asked in every cycle, of systems of any size: mostly something is on a link, and that is known at once.
        if self.ready.system.flits_on_links() > 0 {
            return false;
        }
        let (created, received) = self.traffic_totals();
        created == received && self.feed.is_at_end() && self.sources().all(Traffic::is_drained)
    }

    fn sources(&self) -> impl Iterator<Item = &Traffic> {
        self.ready.system.ends().iter().filter_map(|end| end.traffic.as_deref())
    }

    /// Packets created and packets received.
    fn traffic_totals(&self) -> (u64, u64) {
        let created = self.sources().flat_map(Traffic::created).map(|class| class.packets).sum();
        let received = self.sources().flat_map(Traffic::received).map(|class| class.packets).sum();
        (created, received)
    }

    // ------------------------------------------------------------------------------------------------ traffic

    /// Reads traces on; `false` if that is not possible.
    fn feed(&mut self, now: u64) -> bool {
        let Run { feed, ready, .. } = self;
        let next = feed.traces.iter().filter_map(|trace| trace.next.map(|record| record.cycle)).min();
        feed.until = next.map_or(u64::MAX, |next| next.max(now) + AHEAD);
        let lanes = u16::from(ready.lanes);
        for trace in &mut feed.traces {
            while let Some(record) = trace.next.filter(|record| record.cycle < feed.until) {
                let class = if record.class == 0 { trace.traffic } else { trace.classes + usize::from(record.class) };
                if let Some(traffic) = &mut ready.system.end_mut(record.src as usize).traffic {
                    let lane = (record.class % lanes) as u8;
                    let source = trace.sources[record.src as usize];
                    traffic.feed(source, record.cycle, record.dst, record.flits, class as u16, lane);
                }
                match trace.reader.record() {
                    Ok(next) => trace.next = next,
                    Err(wrong) => {
                        feed.wrong = Some(trace_problem(trace.traffic, &wrong));
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Takes what end points have measured.
    fn collect(&mut self) {
        let Run { ready, measurement, .. } = self;
        let measurement = std::cell::RefCell::new(measurement);
        ready.system.each_end(|end| {
            if let Some(traffic) = &mut end.traffic {
                traffic.measured(
                    |packet| measurement.borrow_mut().arrived(packet),
                    |packet| measurement.borrow_mut().entered(packet),
                );
            }
        });
    }

    /// The measurement has come to a cycle in which something is to be looked at.
    fn measure(&mut self, now: u64) {
        self.collect();
        match self.measurement.phase {
            Phase::Warmup(_) => {
                self.window[0] = Some(self.snapshot());
                self.measurement.phase = Phase::Window(self.measurement.to);
            }
            Phase::Window(_) => {
                self.window[1] = Some(self.snapshot());
                self.measurement.phase = Phase::Drain(now);
            }
            Phase::Drain(_) => {
                if self.measurement.count() == self.created_in_window() {
                    self.measurement.drained = Some(now);
                    if !self.measurement.grow(now) {
                        self.measurement.phase = Phase::Done;
                    }
                } else if now >= self.measurement.patience() {
                    self.measurement.phase = Phase::Done;
                } else {
                    self.measurement.phase = Phase::Drain(now + measure::LOOK);
                }
            }
            Phase::Done => {}
        }
    }

    fn created_in_window(&self) -> u64 {
        let [Some(from), Some(to)] = &self.window else { return 0 };
        let total = |snapshot: &Snapshot| snapshot.created.iter().map(|class| class.packets).sum::<u64>();
        // Replies count by the cycle in which their request was created, so there are as many as requests in the end.
        let replies = |snapshot: &Snapshot| -> u64 {
            let classes = self.ready.classes.iter().zip(&snapshot.created).enumerate();
            classes.filter(|(at, _)| self.is_reply(*at)).map(|(_, (_, created))| created.packets).sum()
        };
        let requests = |snapshot: &Snapshot| -> u64 {
            let classes = self.loaded.scenario.traffic.iter().zip(&snapshot.created);
            let closed = classes.filter(|(t, _)| matches!(t.injection, super::config::Injection::ClosedLoop { .. }));
            closed.map(|(_, created)| created.packets).sum()
        };
        let of = |snapshot| total(snapshot) - replies(snapshot) + requests(snapshot);
        of(to) - of(from)
    }

    /// Whether a class is that of the replies of a closed loop.
    fn is_reply(&self, class: usize) -> bool {
        let traffic = &self.loaded.scenario.traffic;
        class >= traffic.len()
            && matches!(
                traffic[self.ready.classes[class].traffic].injection,
                super::config::Injection::ClosedLoop { .. }
            )
    }

    fn snapshot(&self) -> Snapshot {
        let classes = self.ready.classes.len();
        let mut snapshot = Snapshot {
            created: vec![Created::default(); classes],
            received: vec![Received::default(); classes],
            links: self.ready.system.link_counts().map(|(_, count, _)| count).collect(),
            ..Snapshot::default()
        };
        for end in self.ready.system.ends() {
            let mut arrived = 0;
            if let Some(traffic) = end.traffic.as_deref() {
                for (sum, part) in snapshot.created.iter_mut().zip(traffic.created()) {
                    sum.packets += part.packets;
                    sum.flits += part.flits;
                }
                for (sum, part) in snapshot.received.iter_mut().zip(traffic.received()) {
                    sum.packets += part.packets;
                    sum.flits += part.flits;
                    sum.latency_sum += part.latency_sum;
                    sum.latency_max = sum.latency_max.max(part.latency_max);
                    arrived += part.flits;
                }
                snapshot.entered += traffic.sent_flits();
            }
            snapshot.arrived.push(arrived);
        }
        snapshot
    }

    /// Looks who is complete, and lets those start that waited for nobody else.
    fn advance(&mut self) {
        for index in 0..self.state.len() {
            if self.state[index] != State::Running {
                continue;
            }
            // Who is done stays done: the next look goes on at the first that was not.
            let from = self.done[index];
            let left = self.jobs_from(index, from).position(|job| job.end().is_none());
            match left {
                Some(more) => self.done[index] = from + more,
                None => self.state[index] = State::Complete,
            }
        }
        for index in 0..self.state.len() {
            let built = &self.ready.collectives[index];
            let free = built.after.iter().all(|&before| self.state[before] == State::Complete);
            if self.state[index] != State::Claiming || !free {
                continue;
            }
            self.state[index] = State::Running;
            let collective = &self.loaded.scenario.collectives[index];
            let claimed = self.ready.system.now().max(collective.start_cycle);
            for (participant, (end, job)) in built.jobs.clone().into_iter().enumerate() {
                let start = claimed + collective.delays.get(participant).copied().unwrap_or(0);
                if let Some(core) = &mut self.ready.system.end_mut(end).core {
                    core.job_mut(job).release(start);
                }
            }
        }
    }

    fn jobs(&self, collective: usize) -> impl Iterator<Item = &Job> {
        self.jobs_from(collective, 0)
    }

    fn jobs_from(&self, collective: usize, first: usize) -> impl Iterator<Item = &Job> {
        let jobs = self.ready.collectives[collective].jobs[first..].iter();
        jobs.filter_map(move |&(end, job)| self.ready.system.end(end).core.as_ref().map(|core| &core.jobs()[job]))
    }

    fn progress(&self) -> Progress {
        let (mut done, mut total) = (0, 0);
        for (index, collective) in self.loaded.scenario.collectives.iter().enumerate() {
            let lanes = u64::from(collective.network_dtype().lanes());
            for job in self.jobs(index).filter(|job| job.kind().receives) {
                done += (job.landed() * lanes).min(collective.elements);
                total += collective.elements;
            }
        }
        Progress { cycle: self.ready.system.now(), done, total }
    }

    fn stuck(&mut self, what: &str) {
        self.document.outcome = Outcome::Deadlock;
        let autopsy = self.ready.system.autopsy();
        let waiting: Vec<&str> = (0..self.state.len())
            .filter(|&index| self.state[index] != State::Complete)
            .map(|index| self.loaded.scenario.collectives[index].name.as_str())
            .collect();
        let threads = self.ready.system.ends().iter().filter_map(|end| end.processor.as_ref()?.open());
        let threads = threads.take(8).fold(String::new(), |list, text| list + "\n" + &text);
        let left = if waiting.is_empty() { String::new() } else { format!("\nnot complete: {}", waiting.join(", ")) };
        self.deadlock = Some(format!("{what}\n{autopsy}{left}{threads}").trim_end().to_string());
    }

    // ------------------------------------------------------------------------------------------------ results

    fn result(mut self, options: &RunOptions<'_>) -> RunResult {
        let scenario = &self.loaded.scenario;
        let mut data = Vec::new();
        let check = scenario.checks.oracle && !options.no_checks;
        for index in (0..scenario.collectives.len()).filter(|&index| !scenario.collectives[index].called) {
            let (result, rows) = self.collective(index, check);
            self.document.collectives.push(result);
            data.push(rows);
        }
        let why = options.why.map_or_else(Vec::new, |ask| self.why(ask));
        self.links(options.all_links);
        self.traffic();
        self.checks(check, scenario.checks.monitors && !options.no_checks);
        if !scenario.hosts.is_empty() {
            let (results, checks) = hosts::result::report(self.loaded, &self.ready, &self.host_starts, check);
            self.document.hosts = results;
            self.document.checks.extend(checks);
            data.extend(hosts::result::data(self.loaded, &self.ready));
        }
        if scenario.programs.is_some() {
            let (system, built) = (&self.ready.system, &self.ready.collectives);
            let (result, checks) = programs::result::report(scenario, built, system, check);
            self.document.programs = Some(result);
            self.document.checks.extend(checks);
            self.document.checks.extend(self.refused.take().map(|why| Check::failed("rules", why)));
        }
        let progress = self.progress();
        let recording = recording(self.loaded, self.ready.system.plan(), self.ready.system.journal(), options);
        let journal = self.ready.system.journal().filter(|_| options.ladder);
        let ladder = journal.map(|journal| ladder::ladder(&self.ready.system, journal, &self.names()));
        RunResult {
            document: self.document,
            data,
            notes: self.notes,
            ladder,
            recording,
            why,
            wave: self.wave,
            progress,
            timeline: self.timeline.map_or_else(Vec::new, Timeline::samples),
        }
    }

    /// Names of collectives and hosts, for ladders.
    fn names(&self) -> ladder::Names {
        let scenario = &self.loaded.scenario;
        let ids = scenario.collectives.iter().map(|of| (of.id as u16, of.name.clone())).collect();
        let hosts = self.ready.system.ends().iter().flat_map(|end| &end.hosts).map(|host| host.job().class);
        let classes: std::collections::BTreeSet<u16> = hosts.collect();
        let fabric = scenario.hosts.iter().filter(|host| host.mode == hosts::file::HostMode::Fabric);
        let hosts = classes.into_iter().zip(fabric).map(|(class, host)| (class, host.name.clone())).collect();
        ladder::Names { ids, hosts }
    }

    /// The critical path of every collective that is asked for and has ended.
    fn why(&mut self, ask: why::Ask<'_>) -> Vec<why::Why> {
        let system = &self.ready.system;
        let mut list = Vec::new();
        if (ask.source.is_some() || !self.loaded.scenario.collectives.iter().any(|of| !of.called))
            && let Some(journal) = system.journal()
        {
            match why::packet::explain(system.plan(), journal, system.ends().len(), ask) {
                Ok(why) => list.push(why),
                Err(wrong) => self.notes.push(wrong),
            }
            return list;
        }
        let Some(reader) = why::piuma::Reader::new(system) else { return list };
        let ran = (0..self.state.len()).filter(|&index| !self.loaded.scenario.collectives[index].called);
        for (index, result) in ran.zip(&self.document.collectives) {
            if ask.collective.is_some_and(|name| name != result.name) {
                continue;
            }
            let (Some(start), Some(end)) = (result.start_cycle, result.end_cycle) else { continue };
            let jobs: Vec<(usize, &Job)> = (self.ready.collectives[index].jobs.iter())
                .filter_map(|&(end, job)| Some((end, &system.end(end).core.as_ref()?.jobs()[job])))
                .collect();
            match reader.explain(&result.name, result.id as u16, &jobs, (start, end), ask.packet) {
                Ok(why) => list.push(why),
                Err(wrong) => self.notes.push(format!("{}: {wrong}", result.name)),
            }
        }
        list
    }

    fn collective(&self, index: usize, check: bool) -> (CollectiveResult, ResultData) {
        let collective = &self.loaded.scenario.collectives[index];
        let built = &self.ready.collectives[index];
        let mut result = CollectiveResult::new(collective);
        let elements = if collective.kind == CollectiveKind::Barrier { 0 } else { collective.elements as usize };
        let dtype = collective.result_dtype();
        // Every core is looked at once: there may be millions.
        let (mut start, mut end, mut flags) = (None, None, Flags::NONE);
        let mut rows = Table::default();
        let mut receivers = Vec::new();
        for (&(place, _), job) in built.jobs.iter().zip(self.jobs(index)) {
            let called = Some(job.start()).filter(|&start| start != u64::MAX);
            start = start.min(called).or(start).or(called);
            end = end.max(job.end());
            flags |= Flags::from_bits(job.flags());
            if job.kind().receives {
                rows.push(job.output().iter().flat_map(|&word| arith::unpack_lanes(dtype, word)).take(elements));
                receivers.push(place as u32);
            }
        }
        result.start_cycle = start.filter(|&start| start < self.ready.system.now());
        if let (Some(start), Some(end)) = (start, end)
            && self.state[index] == State::Complete
        {
            result.set_times(self.loaded, start, end);
        }
        result.flags = flags.names().map(String::from).collect();
        if let Some(first) = rows.iter().next() {
            result.results = hex(dtype, first);
        }
        if check {
            let (all, oracle_flags) = self.golden(index);
            // Of a scan every rank has a result of its own; participants are in the order of ranks.
            let expected = |at: usize| if all.len() == 1 { &all[0] } else { &all[at] };
            result.oracle = hex(dtype, expected(0));
            result.oracle_flags = oracle_flags.names().map(String::from).collect();
            let exact = |(at, row): (usize, &[u64])| {
                row.iter().zip(expected(at)).filter(|(got, expected)| got == expected).count()
            };
            result.exact_elements = rows.iter().enumerate().map(exact).min().unwrap_or(0) as u64;
            let whole = rows.iter().enumerate().all(|(at, row)| row == expected(at));
            result.bit_exact =
                Some(whole && !rows.is_empty() && flags == oracle_flags && self.state[index] == State::Complete);
            result.first_difference = rows.iter().enumerate().find_map(|(rank, row)| {
                let expected = expected(rank);
                let at = row.iter().zip(expected).position(|(got, expected)| got != expected)?;
                Some(self.difference(index, receivers[rank] as usize, at, row[at], expected[at]))
            });
        }
        (result, ResultData { name: collective.name.clone(), dtype, rows })
    }

    /// The untimed evaluation of a collective: elements of every different result, and sticky flags.
    fn golden(&self, index: usize) -> (Vec<Vec<u64>>, Flags) {
        let collective = &self.loaded.scenario.collectives[index];
        let built = &self.ready.collectives[index];
        let stored = |row: usize, at: usize| stored(built, row, at);
        let (ranks, elements) = (collective.participants.len(), collective.elements as usize);
        golden::rows(collective, oracle_tree(built), ranks, elements, &stored)
    }

    /// Describes a differing element. The run is repeated with the engines' results kept, to say where it parts.
    fn difference(&self, index: usize, end: usize, element: usize, got: u64, expected: u64) -> Difference {
        let collective = &self.loaded.scenario.collectives[index];
        let dtype = collective.result_dtype();
        let one = |bits: u64| hex(dtype, &[bits]).pop().unwrap_or_default();
        let word = element / collective.network_dtype().lanes() as usize;
        Difference {
            element: element as u64,
            end_point: end as u64,
            got: one(got),
            expected: one(expected),
            ulps: oracle::ulp_distance(dtype, got, expected),
            node: self.parting(index, word).unwrap_or_else(|| "after the last engine".into()),
        }
    }

    /// The first engine, children before parents, whose result for a word is not the oracle's. Runs are deterministic,
    /// so a second one with the engines' results kept sees the same.
    fn parting(&self, index: usize, word: usize) -> Option<String> {
        let collective = &self.loaded.scenario.collectives[index];
        let built = &self.ready.collectives[index];
        let again = build(self.loaded, BuildOptions { no_monitors: true, ..BuildOptions::default() }).ok()?;
        let mut run = Run::new(self.loaded, again).ok()?;
        let (id, seq) = (collective.id as u16, word as u64);
        for (switch, engine) in self.ready.system.joins().iter().enumerate() {
            let flip = engine.tap().filter(|tap| (tap.id, tap.seq) == (id, seq)).map_or(0, |tap| tap.flip);
            run.ready.system.join_mut(switch as u32)?.set_tap(Tap { id, seq, flip, seen: None });
        }
        run.drive(&RunOptions::default());
        let system = &run.ready.system;
        let seen = system.joins();
        let seen = |switch: u32| seen.get(switch as usize).and_then(|engine| engine.tap()?.seen);
        let mut parted = None;
        oracle_tree(built)?.evaluate_with(
            operation(collective),
            collective.network_dtype(),
            arith::Mode::rounding(collective.round),
            &|row| golden::contribution(collective, word, &|at| stored(built, row, at)).0,
            &mut |switch, value, _| {
                if parted.is_none() && seen(switch).is_some_and(|seen| seen != value) {
                    parted = Some(format!("{}.ceng", system.node_name(switch)));
                }
            },
        );
        parted
    }

    fn links(&mut self, all: bool) {
        let window = match &self.window {
            [Some(from), Some(to)] => Some((from, to)),
            _ => None,
        };
        let cycles = window.map_or(self.document.cycles, |_| self.measurement.to - self.measurement.from);
        let system = &self.ready.system;
        let loads = system.link_counts().enumerate().map(|(at, (level, mut count, cycles_per_flit))| {
            if let Some((from, to)) = window {
                let (from, to) = (from.links[at], to.links[at]);
                count = LinkCount {
                    set: to.set - from.set,
                    unicast: to.unicast - from.unicast,
                    waited: to.waited - from.waited,
                    packets: to.packets - from.packets,
                };
            }
            (level, count, cycles_per_flit)
        });
        let there = self.ready.all_links.as_deref();
        self.document.links = link_report(&system.plan().levels, loads, &|at| system.link_ends(at), there, cycles, all);
    }

    fn traffic(&mut self) {
        self.collect();
        self.measurement.close();
        let measured = self.measurement.has_window();
        if self.ready.classes.is_empty() && !measured {
            return;
        }
        let end = self.snapshot();
        let (from, to) = if let [Some(from), Some(to)] = &self.window {
            (from.clone(), to.clone())
        } else {
            let nothing = Snapshot {
                created: vec![Created::default(); end.created.len()],
                received: vec![Received::default(); end.received.len()],
                arrived: vec![0; end.arrived.len()],
                links: vec![LinkCount::default(); end.links.len()],
                entered: 0,
            };
            (nothing, end.clone())
        };
        let confidence = self.loaded.scenario.measure.map(|measure| measure.confidence);
        for (at, class) in self.ready.classes.iter().enumerate() {
            let traffic = &self.loaded.scenario.traffic[class.traffic];
            let cycles = self.document.cycles;
            let window = if measured {
                self.measurement.to - self.measurement.from
            } else {
                traffic.stop_cycle.unwrap_or(cycles).min(cycles).saturating_sub(traffic.start_cycle)
            };
            let share = |flits: u64| {
                if window == 0 || class.sources == 0 { 0.0 } else { flits as f64 / (window * class.sources) as f64 }
            };
            let latencies = &self.measurement.classes[at];
            let latency = latencies.result(confidence).map(|mut latency| {
                if self.is_reply(at) {
                    latency.network_mean = None;
                }
                latency
            });
            self.document.traffic.push(TrafficResult {
                name: class.name.clone(),
                offered: share(to.created[at].flits - from.created[at].flits),
                accepted: share(to.received[at].flits - from.received[at].flits),
                packets: end.received[at].packets,
                mean_latency_cycles: latencies.histogram.mean(),
                max_latency_cycles: latency.as_ref().map(|latency| latency.max),
                latency,
            });
        }
        if measured && self.window[1].is_some() {
            self.document.measure = Some(self.measured(&from, &to));
        }
    }

    /// What the network did in the window.
    fn measured(&self, from: &Snapshot, to: &Snapshot) -> MeasureResult {
        let cycles = (self.measurement.to - self.measurement.from) as f64;
        let flits = |snapshot: &Snapshot| snapshot.created.iter().map(|class| class.flits).sum::<u64>();
        let nodes = self.ready.addressed.iter().filter(|addressed| **addressed).count().max(1) as f64;
        let accepted: Vec<u64> = (to.arrived.iter().zip(&from.arrived).zip(&self.ready.addressed))
            .filter(|(_, addressed)| **addressed)
            .map(|((to, from), _)| to - from)
            .collect();
        let rate = |flits: u64| flits as f64 / cycles;
        let offered = rate(flits(to) - flits(from)) / nodes;
        let accepted_mean = rate(accepted.iter().sum()) / nodes;
        let plan = self.ready.system.plan();
        let is_switch = |node: u32| plan.nodes[node as usize].kind == NodeKind::Switch;
        let between = plan.links.iter().flat_map(|link| [is_switch(link.a.0) && is_switch(link.b.0); 2]);
        let carried: u64 = (between.zip(to.links.iter().zip(&from.links)))
            .filter_map(|(between, (to, from))| between.then_some(to.unicast - from.unicast))
            .sum();
        let entered = to.entered - from.entered;
        let (saturated, verdict) = self.measurement.verdict(self.created_in_window(), offered, accepted_mean);
        MeasureResult {
            from_cycle: self.measurement.from,
            to_cycle: self.measurement.to,
            drained_cycle: self.measurement.drained.filter(|_| !verdict.contains("had not arrived")),
            saturated,
            verdict,
            confidence: self.loaded.scenario.measure.map_or(0.95, |measure| measure::level(measure.confidence)),
            offered,
            accepted_mean,
            accepted_min: accepted.iter().min().map_or(0.0, |flits| rate(*flits)),
            hops_mean: (entered > 0).then(|| carried as f64 / entered as f64 + 1.0),
        }
    }

    fn checks(&mut self, oracle: bool, monitors: bool) {
        let mut checks = Vec::new();
        match (&self.document.outcome, &self.deadlock, self.ready.system.fault()) {
            (_, _, Some(fault)) => checks.push(Check::failed("rules", fault)),
            (Outcome::Deadlock, Some(autopsy), _) => checks.push(Check::failed("progress", autopsy)),
            (Outcome::MaxCycles, ..)
                if self.has_work()
                    || self.measurement.has_window()
                    || self.loaded.scenario.traffic.iter().all(|t| !t.is_endless()) =>
            {
                let limit = self.loaded.scenario.limits.max_cycles;
                checks.push(Check::failed("progress", format!("not done after limits.max_cycles = {limit}")));
            }
            (Outcome::MaxCycles, ..) => {
                // Endless traffic alone has no end of its own: the limit is its end.
                self.document.outcome = Outcome::Finished;
                checks.push(Check::passed("progress", "ran to limits.max_cycles under endless traffic"));
            }
            (Outcome::Interrupted, ..) => checks.push(Check::failed("progress", "stopped by the user")),
            _ => checks.push(Check::passed("progress", "everything that was started has ended")),
        }
        if oracle {
            let collectives = self.loaded.scenario.collectives.iter().zip(&self.ready.collectives);
            let started = collectives.filter(|(collective, _)| !collective.called);
            for ((collective, built), result) in started.zip(&self.document.collectives) {
                if let Some(exact) = result.bit_exact {
                    let detail = match &result.first_difference {
                        None if exact => {
                            format!(
                                "{} of {} elements and all flags are the oracle's",
                                result.exact_elements, result.elements
                            )
                        }
                        None if result.end_cycle.is_none() => "it did not end".to_string(),
                        None => {
                            format!("flags {}; the oracle has {}", listed(&result.flags), listed(&result.oracle_flags))
                        }
                        Some(at) => format!(
                            "element {} at end point {}: got {}, the oracle has {}{}; they part at {}",
                            at.element,
                            at.end_point,
                            at.got,
                            at.expected,
                            at.ulps.map_or_else(String::new, |ulps| format!(", {}", oracle::compare::apart(ulps))),
                            at.node
                        ),
                    };
                    let name = format!("bit-exact: {}", collective.name);
                    checks.push(Check { name, passed: exact, detail });
                }
                if let Some(tree) = &built.footprint.tree {
                    let name = format!("every contribution once: {}", collective.name);
                    let engine = |switch: u32| format!("{}.ceng", self.ready.system.node_name(switch));
                    checks.push(match tree.check_each_once(result.participants as usize, &engine) {
                        Ok(()) => Check::passed(name, format!("{} contributions in the tree", result.participants)),
                        Err(error) => Check::failed(name, error.to_string()),
                    });
                }
            }
        }
        let measured = self.measurement.has_window();
        let finite = !measured && self.loaded.scenario.traffic.iter().all(|traffic| !traffic.is_endless());
        if measured && self.state.is_empty() {
            let sent: u64 = self.sources().map(Traffic::sent_flits).sum();
            let received: u64 = self.sources().flat_map(Traffic::received).map(|class| class.flits).sum();
            let live = self.ready.system.live_flits() as u64;
            let detail = format!("{sent} flits entered, {received} arrived, {live} are on their way");
            checks.push(Check { name: "nothing lost".into(), passed: sent == received + live, detail });
        }
        if finite && self.document.outcome == Outcome::Finished {
            if !self.loaded.scenario.traffic.is_empty() {
                let (created, received) = self.traffic_totals();
                let detail = format!("{received} of {created} packets arrived whole");
                checks.push(Check { name: "nothing lost".into(), passed: created == received, detail });
            }
            // Whatever is still on its way now are credits.
            while self.ready.system.fault().is_none() && self.ready.system.step() != Step::Quiet {}
            let live = self.ready.system.live_flits();
            let detail =
                if live == 0 { "no flit is left in the network".into() } else { format!("{live} flits are left") };
            checks.push(Check { name: "network empty".into(), passed: live == 0, detail });
        }
        if monitors {
            let rest = !finite || self.document.outcome != Outcome::Finished || self.ready.system.at_rest();
            let detail = if rest { "order and credits held on every link" } else { "credits are missing at the end" };
            checks.push(Check { name: "links".into(), passed: rest, detail: detail.into() });
        }
        self.document.checks = checks;
    }
}

/// A word of a contribution as it stands in memory.
fn stored(built: &Built, row: usize, at: usize) -> u64 {
    built.input.get(row * built.stored_words as usize + at).copied().unwrap_or(0)
}

fn trace_problem(traffic: usize, wrong: &trace::Wrong) -> Problem {
    Problem::at(format!("traffic[{traffic}].file"), &wrong.message).expected(&wrong.expected)
}

impl Feed {
    fn open(loaded: &Loaded, ready: &Ready) -> Result<Feed, RunError> {
        let mut feed = Feed::default();
        let ends = loaded.scenario.topology.end_points();
        for (index, traffic) in loaded.scenario.traffic.iter().enumerate() {
            let TrafficPattern::Trace { path, .. } = &traffic.pattern else { continue };
            let opened = trace::Reader::open(path, ends).and_then(|mut reader| Ok((reader.record()?, reader)));
            let (next, reader) = opened.map_err(|wrong| loaded.problems(vec![trace_problem(index, &wrong)]))?;
            let extra = ready
                .classes
                .iter()
                .enumerate()
                .position(|(at, class)| at >= loaded.scenario.traffic.len() && class.traffic == index);
            let fed = |end: &crate::piuma::End| end.traffic.as_ref().and_then(|traffic| traffic.fed(index as u16));
            feed.traces.push(Trace {
                traffic: index,
                classes: extra.map_or(index, |first| first - 1),
                reader,
                next,
                sources: ready.system.ends().iter().take(ends as usize).map(|end| fed(end).unwrap_or(0)).collect(),
            });
        }
        Ok(feed)
    }

    fn is_at_end(&self) -> bool {
        self.traces.iter().all(|trace| trace.next.is_none())
    }
}

/// What the block did that was to be recorded.
pub(super) fn recording(
    loaded: &Loaded,
    plan: &Plan,
    journal: Option<&Journal>,
    options: &RunOptions<'_>,
) -> Option<Recording> {
    let (name, journal) = (options.record?, journal?);
    let cycles = journal.entries.last().map_or(0, |entry| entry.cycle + 2);
    let mut recording = Recording::of(plan, journal, name, cycles).ok()?;
    let stamp = Document::new(loaded).stamp;
    let comment = format!("scenario {}, seed {}, configuration {}", stamp.scenario, stamp.seed, stamp.config_hash);
    recording.comments.push(comment);
    Some(recording)
}

/// Opens a waveform.
pub(super) fn open_wave(loaded: &Loaded, wave: &WaveOptions) -> Result<Tracer, RunError> {
    let usage = |error: &dyn std::fmt::Display| RunError::Usage(error.to_string());
    let mut selection = Selection::new(&wave.signals).map_err(|error| usage(&error))?;
    if let Some(depth) = wave.depth {
        selection = selection.with_depth(depth as usize).map_err(|error| usage(&error))?;
    }
    let selection = selection.with_window(wave.from_cycle, wave.to_cycle).map_err(|error| usage(&error))?;
    let period = Period::from_hz(loaded.scenario.clock.frequency_hz)
        .ok_or_else(|| RunError::Usage("a waveform needs a clock of at most 1 THz".into()))?;
    let write = |error| RunError::Write { path: wave.path.clone(), error };
    let sink: Box<dyn Sink> = if FstSink::is_wanted(&wave.path) {
        Box::new(FstSink::create(&wave.path).map_err(write)?)
    } else {
        Box::new(VcdSink::create(&wave.path).map_err(write)?)
    };
    let sink: Box<dyn Sink> = match &wave.trigger {
        None => sink,
        Some(options) => Box::new(TriggerSink::new(sink, trigger(options), period).0),
    };
    let mut tracer = Tracer::new(period, selection, sink);
    if wave.clock {
        tracer.add_clock();
    }
    Ok(tracer)
}

/// A trigger whose condition is an expression over signals; a signal whose value is unknown makes it not hold.
fn trigger(options: &TriggerOptions) -> Trigger {
    let condition = options.condition.clone();
    let names = condition.iter().flat_map(Expr::names).map(ToString::to_string).collect();
    let value = |reading: Reading| match reading {
        Reading::Number(number) => expr::Value::Number(number as f64),
        Reading::Name(name) => expr::Value::Word(name.to_owned()),
    };
    let condition = move |lookup: &Lookup<'_>| {
        let read = |name: &str| lookup(name).map(value);
        condition.as_ref().and_then(|condition| condition.eval(&read)).is_some_and(|value| value.holds())
    };
    Trigger { condition: Box::new(condition), names, before: options.before, after: options.after }
}

/// What starting a recording can say.
pub(super) fn trace_error(wave: &WaveOptions, error: TraceError) -> RunError {
    match error {
        TraceError::Io(error) if error.kind() == std::io::ErrorKind::InvalidInput => RunError::Usage(error.to_string()),
        TraceError::Io(error) => RunError::Write { path: wave.path.clone(), error },
        nothing @ TraceError::NothingSelected(_) => RunError::Usage(nothing.to_string()),
    }
}

/// Finishes a waveform and notes what it lacks.
pub(super) fn close_wave(
    wave: &WaveOptions,
    tracer: Option<Tracer>,
    last: u64,
    notes: &mut Vec<String>,
) -> Result<Option<TraceSummary>, RunError> {
    let Some(tracer) = tracer else { return Ok(None) };
    let summary = tracer.finish(last).map_err(|error| RunError::Write { path: wave.path.clone(), error })?;
    for glob in &summary.unmatched_globs {
        notes.push(format!("no signal matches \"{glob}\""));
    }
    if !summary.window_reached {
        notes.push(format!("the run ended before cycle {}: the waveform is empty", wave.from_cycle));
    }
    Ok(Some(summary))
}

/// A direction of a link: its number, and its level, traffic and cycles a flit.
type Load = (usize, (u8, LinkCount, u16));

/// The loads that can be among the busiest, by flits: how many there are, and the first of them. There may be millions of
/// links, so names are made only of these.
#[derive(Default)]
struct Busiest(BTreeMap<u64, (usize, Vec<Load>)>);

impl Busiest {
    /// So many are shown.
    const MOST: usize = 8;
    /// More links that are equally busy than these are not sorted by name: the first of the plan stand for them.
    const NAMED: usize = 65_536;

    fn enter(&mut self, flits: u64, at: usize, load: (u8, LinkCount, u16)) {
        let least = self.0.first_key_value().map_or(0, |(&least, _)| least);
        if flits < least && self.0.values().map(|(count, _)| count).sum::<usize>() >= Self::MOST {
            return;
        }
        let (count, loads) = self.0.entry(flits).or_default();
        *count += 1;
        if loads.len() < Self::NAMED {
            loads.push((at, load));
        }
        // The least busy ones go when enough others are busier.
        while let Some((&least, _)) = self.0.first_key_value()
            && self.0.range(least + 1..).map(|(_, (count, _))| count).sum::<usize>() >= Self::MOST
        {
            self.0.remove(&least);
        }
    }
}

/// What the links did, from their loads.
pub(super) fn link_report(
    levels: &[String],
    loads: impl Iterator<Item = (u8, LinkCount, u16)>,
    ends: &dyn Fn(usize) -> (String, String),
    there: Option<&[u64]>,
    cycles: u64,
    all: bool,
) -> Links {
    let cycles = cycles.max(1);
    let mut by_level: Vec<LinkLevel> = levels
        .iter()
        .map(|level| LinkLevel {
            level: level.clone(),
            links: 0,
            flits: 0,
            utilisation_mean: 0.0,
            utilisation_max: 0.0,
        })
        .collect();
    let mut list: Vec<(usize, (u8, LinkCount, u16))> = Vec::new();
    let mut busiest = Busiest::default();
    for (at, load) in loads.enumerate() {
        let (level, count, cycles_per_flit) = load;
        let flits = count.set + count.unicast;
        let busy = (flits * u64::from(cycles_per_flit)).min(cycles);
        let level = &mut by_level[usize::from(level)];
        level.links += 1;
        level.flits += flits;
        level.utilisation_max = level.utilisation_max.max(busy as f64 / cycles as f64);
        // A mean of exact integers: the sum of flits is divided once at the end.
        level.utilisation_mean += busy as f64;
        if all {
            list.push((at, load));
        }
        if flits > 0 {
            busiest.enter(flits, at, load);
        }
    }
    // Links that were not built because nothing uses them count as well, each in two directions.
    for (level, count) in by_level.iter_mut().zip(there.into_iter().flatten()) {
        level.links = 2 * count;
    }
    for level in &mut by_level {
        level.utilisation_mean /= (level.links.max(1) * cycles) as f64;
    }
    let result = |&(at, (level, count, cycles_per_flit)): &(usize, (u8, LinkCount, u16))| {
        let (from, to) = ends(at);
        let flits = count.set + count.unicast;
        LinkResult {
            name: format!("{from} -> {to}"),
            level: levels[usize::from(level)].clone(),
            flits,
            stalls: count.waited,
            utilisation: (flits * u64::from(cycles_per_flit)).min(cycles) as f64 / cycles as f64,
            packets: None,
        }
    };
    let counted = |load: &(usize, (u8, LinkCount, u16))| LinkResult { packets: Some(load.1.1.packets), ..result(load) };
    let mut busiest: Vec<LinkResult> = busiest.0.values().flat_map(|(_, loads)| loads).map(result).collect();
    busiest.sort_by(|a, b| b.flits.cmp(&a.flits).then_with(|| a.name.cmp(&b.name)));
    busiest.truncate(Busiest::MOST);
    Links { levels: by_level, busiest, all: all.then(|| list.iter().map(counted).collect()) }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// Sees when work stops although some is left (requirement K-WD-1).
struct Watchdog {
    patience: u64,
    seen: [u64; 2],
    /// Cycle in which set-routed and point-to-point flits were last served.
    since: [u64; 2],
}

impl Watchdog {
    fn new(patience: u64) -> Watchdog {
        Watchdog { patience, seen: [0; 2], since: [0; 2] }
    }

    /// The cycle since which nothing was served, if that is too long ago and there are flits that want to be.
    fn look(&mut self, system: &System, collectives_left: bool) -> Option<u64> {
        let (now, served) = (system.now(), system.served());
        for ((served, seen), since) in served.into_iter().zip(&mut self.seen).zip(&mut self.since) {
            if served != *seen {
                (*seen, *since) = (served, now);
            }
        }
        // Background traffic that flows must not hide a collective that stands.
        let since = if collectives_left { self.since[0] } else { self.since[1] };
        let late = self.patience > 0 && now.saturating_sub(since) > self.patience;
        (late && system.has_flits(collectives_left)).then_some(since)
    }
}
