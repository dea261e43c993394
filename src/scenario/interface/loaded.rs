//! A scenario that has been read and checked.

use std::path::PathBuf;
use std::sync::Arc;

use watershed_reader::cost::technology::{NANGATE45, Technology};
use watershed_reader::workload::config::TracedWorkload;
use watershed_reader::{Problem, Problems, Scenario, Source, data};

/// A scenario that has been read and checked, with its text for later problems.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The configuration.
    pub scenario: Scenario,
    /// The text.
    pub source: Arc<Source>,
    /// The folder that data files are relative to.
    pub base: PathBuf,
    /// Notes for the author about keys that have newer ones.
    pub notes: Vec<String>,
    /// The trace of an application, if it runs one.
    pub workload: Option<Arc<TracedWorkload>>,
    /// Contents of data files, by index of the collective.
    pub files: Vec<Option<data::Rows>>,
}

impl Loaded {
    /// What the contributing participants of a collective contribute (see [`watershed_reader::config::Collective::rows`]).
    pub fn data(&self, collective: usize) -> data::Rows {
        if let Some(Some(rows)) = self.files.get(collective) {
            return rows.clone();
        }
        // Everything but files is known to load since the scenario was resolved.
        data::load(&self.scenario.collectives[collective], collective, self.scenario.seed).unwrap_or_default()
    }

    /// The same, row by row.
    pub fn each_row(&self, collective: usize, mut take: impl FnMut(&[u64])) {
        if let Some(Some(rows)) = self.files.get(collective) {
            for row in rows {
                take(row);
            }
            return;
        }
        // Everything but files is known to load since the scenario was resolved.
        let _ = data::for_each_row(&self.scenario.collectives[collective], collective, self.scenario.seed, take);
    }

    /// The files that it was read from.
    pub fn inputs(&self) -> Vec<PathBuf> {
        self.source.files(&self.base)
    }

    /// The technology table of the scenario.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn technology(&self) -> Result<Technology, Problems> {
        let Some(given) = &self.scenario.technology else { return Ok(Technology::nangate45().clone()) };
        let path = if given == NANGATE45 { given.into() } else { self.base.join(given) };
        Technology::load(&path).map_err(|message| self.problems(vec![Problem::at("technology", message)]))
    }

    /// Turns problems that a later check has found into an error that shows their places.
    pub fn problems(&self, list: Vec<Problem>) -> Problems {
        Problems::new(Arc::clone(&self.source), list)
    }
}
