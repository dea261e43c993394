//! Running a scenario: what the caller asks for, what comes back.
//!
//! | file | holds |
//! |---|---|
//! | `cycles` | the loop over cycles, and who may start when |
//! | `traffic` | traces that are fed, windows that are measured |
//! | `results` | results of collectives, critical paths, checks |
//! | `links` | what the links did |
//! | `watchdog` | who stands although work is left, in every family |
//! | `wave` | waveforms |

use std::path::PathBuf;

use super::build::{BuildOptions, Ready, build};
use super::config::Family;
use super::expr::Expr;
use super::measure::Measurement;
use super::programs::rules::Rules;
use super::record::{self, Recording};
use super::result::{Document, ResultData};
use super::timeline::Timeline;
use super::{Loaded, Problems, armed, pbv, why};
use watershed_fabric::{Evaluation, Plan};
use watershed_piuma::Tap;
use watershed_probe::TraceSummary;
use watershed_probe::ladder::Ladder;

mod cycles;
mod links;
mod results;
mod traffic;
pub(super) mod watchdog;
mod wave;

pub(super) use links::link_report;
pub(super) use results::recording;
use traffic::{Feed, Snapshot};
pub use wave::sides_of;
pub(super) use wave::{close_wave, open_wave, trace_error};

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

/// Who watches the runs that have no hook of their own.
static WATCHER: std::sync::OnceLock<fn(Progress) -> Control> = std::sync::OnceLock::new();

/// Lets this function watch every run of this process that has no [hook](RunOptions::hook), those inside of studies among them.
/// The first one stays.
pub fn watch(watcher: fn(Progress) -> Control) {
    let _ = WATCHER.set(watcher);
}

/// What the one who watches all runs says (see [`watch`]).
pub fn watched(progress: Progress) -> Control {
    WATCHER.get().map_or(Control::Continue, |watcher| watcher(progress))
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
    /// End in this cycle as if the caller had stopped the run there: what an interrupted run came to comes out again.
    pub stop_cycle: Option<u64>,
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
    /// What kept the waveform from being written as a whole, or taken away again; the run has its result all the same.
    pub wave_error: Option<String>,
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
    let held = options.wave.filter(|wave| wave.only_failed).map(wave::Held::new).transpose()?;
    let wave = held.as_ref().map(|held| &held.options).or(options.wave);
    let named = |error: String| match &held {
        Some(held) => error.replace(&*held.options.path.to_string_lossy(), &held.path.to_string_lossy()),
        None => error,
    };
    let mut result = run_family(loaded, &RunOptions { wave, ..*options })?;
    result.wave_error = result.wave_error.map(named);
    if let (Some(asked), Some(wave)) = (options.wave, &result.wave) {
        if let Some(cycle) = wave.fired_cycle {
            result.notes.push(format!("the trigger fired in cycle {cycle}"));
        } else if asked.only_failed && result.document.passed() {
            result.wave = None;
            result.notes.push("every check passed and no trigger fired: there is no waveform".to_owned());
        } else if let Some(trigger) = asked.trigger.as_ref().filter(|trigger| trigger.condition.is_some()) {
            let before = trigger.before;
            result.notes.push(format!("the trigger did not fire: the waveform has the last {before} cycles"));
        }
    }
    if let (Some(held), Some(wave)) = (&held, &mut result.wave) {
        let error =
            held.keep(&mut wave.files).map_err(|error| RunError::Write { path: held.path.clone(), error }.to_string());
        result.wave_error = result.wave_error.take().or(error.err());
    }
    if let Some(written) = &mut result.document.scenario {
        written.set_options(options);
    }
    Ok(result)
}

fn run_family(loaded: &Loaded, options: &RunOptions<'_>) -> Result<RunResult, RunError> {
    let watcher: Option<&dyn Fn(Progress) -> Control> = WATCHER.get().map(|_| &watched as _);
    let options = &RunOptions { hook: options.hook.or(watcher), ..*options };
    if loaded.scenario.family == Family::Armed {
        return armed::run::run(loaded, options);
    }
    if loaded.scenario.family == Family::Pbv {
        return pbv::run::run(loaded, options);
    }
    let journal = options.why.is_some() || options.ladder || options.record.is_some();
    // Where cycles went is told from those parts that something uses: of the largest systems no others could be kept.
    let whole = options.wave.is_some() || options.all_links || options.ladder || options.record.is_some();
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
        let named = |name: &str| options.why.is_none_or(|ask| ask.collective.is_none_or(|asked| asked == name));
        let hosts = loaded.scenario.hosts.iter().any(|host| named(&host.name));
        let all = packets || hosts || options.why.is_none() || loaded.scenario.collectives.is_empty();
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
    if options.threads > 1 && run.ready.system.parts() == 1 {
        run.notes.push(format!("one thread evaluates all: {}", undivided(run.ready.system.plan(), watched)));
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
    let wave_error = options.wave.and_then(|wave| run.close(wave));
    Ok(RunResult { wave_error, ..run.result(options) })
}

/// Why a system was not divided between threads.
fn undivided(plan: &Plan, watched: bool) -> &'static str {
    if watched {
        return "a waveform, a journal, a shuffled order or idle cycles that are not skipped need the system in one piece";
    }
    let at = plan.end_switches();
    if at.is_sorted() && at.iter().all(Option::is_some) {
        "there is nothing to divide between them"
    } else {
        "end points are not numbered in the order of their switches (flows attach some to free ports), so that the system \
         cannot be cut"
    }
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
    /// A store of a program that is not legal, or a use of what was stored.
    refused: Option<String>,
    /// What is asked of stores, from the first one on.
    rules: Option<Rules>,
    notes: Vec<String>,
    measurement: Measurement,
    /// The network at the start and at the end of the window.
    window: [Option<Snapshot>; 2],
    feed: Feed,
    timeline: Option<Timeline>,
    wave: Option<TraceSummary>,
}

/// Where a collective stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It waits for collectives it meets.
    Claiming,
    Running,
    Complete,
}
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
            if let Some(traffic) = ready.system.end_mut(end).traffic_mut() {
                traffic.measure();
            }
        }
        let feed = Feed::open(loaded, &ready)?;
        let window = [None, None];
        let (deadlock, notes) = (None, Vec::new());
        let host_starts = vec![None; loaded.scenario.hosts.len()];
        let programs_left = ready.system.ends().iter().any(|end| end.processor().is_some());
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
            rules: None,
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
        let called = self.loaded.scenario.collectives.iter().filter(|of| of.called);
        for end in called.flat_map(|of| of.participants.iter().copied()) {
            if let Some(processor) = self.ready.system.end_mut(end as usize).processor_mut() {
                processor.keep_times();
            }
        }
        for &end in self.loaded.scenario.hosts.iter().flat_map(|host| &host.ranks) {
            self.ready
                .system
                .end_mut(end as usize)
                .hosts_mut()
                .iter_mut()
                .for_each(watershed_piuma::host::Host::keep_log);
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

    fn record(&mut self, wave: &WaveOptions) -> Result<(), RunError> {
        let tracer = open_wave(self.loaded, wave)?;
        self.ready.system.record(tracer).map_err(|error| trace_error(wave, error))
    }

    /// Finishes the waveform; what kept it from being written.
    fn close(&mut self, wave: &WaveOptions) -> Option<String> {
        let cycles = self.document.cycles;
        let (summary, error) = close_wave(wave, self.ready.system.stop_recording(), cycles, &mut self.notes);
        self.wave = summary;
        error
    }
}
