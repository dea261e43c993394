//! Running a scenario: what the caller asks for, what comes back.

use std::path::PathBuf;

use super::result::{Document, ResultData};
use super::{Loaded, Problems};

/// What to write into a waveform.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// The result vectors of every collective, in the order of the scenario, for `--save-npy`.
    pub data: Vec<ResultData>,
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
pub fn check(_loaded: &Loaded) -> Result<(), RunError> {
    Ok(())
}

/// Builds the system that a scenario describes and runs it to the end.
///
/// # Errors
/// See [`RunError`].
pub fn run(loaded: &Loaded, _options: &RunOptions<'_>) -> Result<RunResult, RunError> {
    Ok(RunResult { document: Document::new(loaded), data: Vec::new() })
}
