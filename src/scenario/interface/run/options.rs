//! How to run, and why there may be no result at all.

use std::path::PathBuf;
use std::sync::Arc;

use crate::checkpoint::{Checkpoint, Checkpoints, ResumeError};
use crate::why;
use watershed_fabric::Exchange;
use watershed_reader::Problems;
use watershed_reader::config::Wave;
use watershed_reader::expr::Expr;

/// What to write into a waveform.
#[derive(Debug, Clone, PartialEq)]
pub struct WaveOptions {
    /// The file.
    pub path: PathBuf,
    /// What it shows, and of which cycles.
    pub shown: Wave,
    /// Write only what lies around a trigger.
    pub trigger: Option<TriggerOptions>,
    /// Write nothing if every check passed and the trigger did not fire.
    pub only_failed: bool,
}

impl WaveOptions {
    /// As a scenario's `[wave]` says.
    pub fn of(path: PathBuf, shown: Wave) -> Self {
        Self { path, shown, trigger: None, only_failed: false }
    }
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// The cycle that is being simulated.
    pub cycle: u64,
    /// Elements that have landed, of all participants of all collectives.
    pub done: u64,
    /// Elements that will have landed at the end; 0 if there is no collective.
    pub total: u64,
    /// The contents of the network. It takes a while to count them: a hook is told about once a second.
    pub inside: Option<NetworkContents>,
}

/// The contents of the network.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetworkContents {
    /// When they were counted.
    pub cycle: u64,
    /// Flits in queues and on links.
    pub flits: u64,
    /// The head of a queue that has waited longest for its way on: where it is, and for how many cycles it could have left.
    pub longest_head: Option<(String, u64)>,
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

/// Whether a function watches all runs.
pub fn is_watched() -> bool {
    WATCHER.get().is_some()
}

/// What the one who watches all runs says (see [`watch`]).
pub fn notify_watcher(progress: Progress) -> Control {
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
    pub why: Option<why::WhyQuery<'a>>,
    /// Look now and then at what is in the network.
    pub timeline: bool,
    /// Threads that evaluate the system, each a part of it; 0 is one. Results do not change. With a waveform, `why`, a
    /// ladder, a record, a shuffled order or idle cycles not skipped, one thread does all.
    pub threads: usize,
    /// Processes that evaluate the system together, this one among them; each has as many threads, and results do not change. They are given
    /// the same scenario and options. What needs the system in one piece is evaluated by the first of them alone.
    pub ranks: Option<&'a Arc<dyn Exchange>>,
    /// End in this cycle as if the caller had stopped the run there: the result of an interrupted run is reproduced.
    pub stop_cycle: Option<u64>,
    /// Write checkpoints. The system is then evaluated cycle by cycle, even by several threads.
    pub checkpoints: Option<&'a Checkpoints>,
    /// Go on from here.
    pub resume: Option<&'a Checkpoint>,
    /// Called now and then, about ten times a second of real time.
    pub hook: Option<&'a dyn Fn(Progress) -> Control>,
}

impl RunOptions<'_> {
    /// Whether something looks at every cycle of the whole system, or walks its blocks in another order.
    pub fn watches(&self) -> bool {
        let journal = self.why.is_some() || self.ladder || self.record.is_some();
        journal || self.wave.is_some() || self.no_skip || self.order_seed.is_some()
    }

    /// Whether something looks at the system between two cycles, which needs it to stand in one cycle then.
    pub fn observes_between_cycles(&self) -> bool {
        self.watches() || self.timeline || self.checkpoints.is_some() || self.resume.is_some()
    }

    /// What decides what a run keeps, as it is given on the command line: with other options another system is built.
    pub fn retention_options(&self) -> Vec<String> {
        let flags = [
            (self.no_checks, "--no-checks"),
            (self.all_links, "--all-links"),
            (self.ladder, "--ladder"),
            (self.why.is_some(), "why"),
            (self.timeline, "a timeline"),
            (self.wave.is_some(), "--wave"),
        ];
        let mut kept: Vec<String> =
            flags.iter().filter(|(given, _)| *given).map(|(_, name)| (*name).to_owned()).collect();
        kept.extend(self.record.map(|block| format!("--record {block}")));
        kept.extend(self.flip.map(|flip| format!("--flip {}:{}:{}:{:#x}", flip.switch, flip.id, flip.word, flip.mask)));
        if let Some(wave) = self.wave {
            kept.extend(wave.shown.signals.iter().map(|glob| format!("--signals '{glob}'")));
            kept.extend(wave.shown.depth.map(|depth| format!("--wave-depth {depth}")));
        }
        kept
    }

    /// Threads that a system may be divided between, in all processes together.
    pub fn divided(&self) -> usize {
        let ranks = self.ranks.map_or(1, |ranks| ranks.ranks());
        if self.watches() { 1 } else { self.threads.max(1) * ranks }
    }

    /// Whether this process is the one that keeps what the run leaves behind.
    pub fn keeps(&self) -> bool {
        self.ranks.is_none_or(|ranks| ranks.rank() == 0)
    }
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
    /// There is no going on from a checkpoint.
    #[error("error: {0}")]
    Resume(#[from] ResumeError),
    /// The first of several processes evaluates the system alone, and this is another one.
    #[error("another process evaluates the system: it is in one piece")]
    Elsewhere,
    /// An option of the run is wrong, for example a glob that selects nothing.
    #[error("error: {0}")]
    Usage(String),
}

impl RunError {
    /// What another rank says of why it cannot begin.
    pub fn of_rank(rank: usize, error: &str) -> RunError {
        RunError::Usage(format!("rank {rank} cannot begin: {}", error.strip_prefix("error: ").unwrap_or(error)))
    }
}

/// What a condition compares, for [`states_named`](watershed_probe::states_named).
pub fn sides_of(condition: &Expr) -> Vec<[(String, bool); 2]> {
    condition.compared().iter().map(|pair| pair.map(|(side, is_name)| (side.to_owned(), is_name))).collect()
}
