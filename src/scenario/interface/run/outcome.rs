//! What a run leaves behind.

use super::options::Progress;
use crate::record::Recording;
use crate::result::{Document, ResultData};
use crate::why;
use watershed_probe::TraceSummary;
use watershed_probe::ladder::Ladder;

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
    /// What kept the last checkpoint from being written.
    pub checkpoint_error: Option<String>,
    /// How far it came.
    pub progress: Progress,
    /// What was in the network when, if asked for.
    pub timeline: Vec<Sample>,
    /// Names of the links that the timeline counts, if it does.
    pub link_names: Vec<String>,
}

/// A look at the network.
#[derive(Debug, Clone, PartialEq, Eq, watershed_state::Saved)]
pub struct Sample {
    /// When.
    pub cycle: u64,
    /// Flits in queues and on links.
    pub live: u64,
    /// Flits that have left a queue since cycle 0.
    pub moved: u64,
    /// Cycles in which each direction of a link was busy since cycle 0; empty in systems of very many links.
    pub busy: Vec<u64>,
}
