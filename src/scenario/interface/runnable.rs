//! A scenario together with the engines that run it.

use std::ops::{Deref, DerefMut};
use std::path::Path;

use watershed_fabric::topology::Layout;
use watershed_reader::Problems;
use watershed_reader::cost::technology::Technology;
use watershed_workload::Trace;

use crate::cost::{Cost, Energy};
use crate::embedding::Embedding;
use crate::loaded::Loaded;
use crate::result::Document;
use crate::run::{RunError, RunOptions, RunResult};
use crate::run_inputs::RunInputs;
use crate::simulator::Simulator;
use crate::soundness::Soundness;
use crate::trees::EngineTree;

/// The engines that studies and commands are handed.
pub type Engines = &'static dyn Simulator;

/// A scenario that has been read and checked, and the engines that can run it.
#[derive(Debug, Clone)]
pub struct Runnable {
    /// The scenario.
    pub loaded: Loaded,
    /// What runs it.
    pub engines: Engines,
}

impl Deref for Runnable {
    type Target = Loaded;

    fn deref(&self) -> &Loaded {
        &self.loaded
    }
}

impl DerefMut for Runnable {
    fn deref_mut(&mut self) -> &mut Loaded {
        &mut self.loaded
    }
}

/// As [`Simulator::load_file`].
///
/// # Errors
/// Everything that is wrong with it.
pub fn load_file(engines: Engines, path: &Path, overrides: &[String]) -> Result<Runnable, Problems> {
    Ok(Runnable { loaded: engines.load_file(path, overrides)?, engines })
}

/// As [`Simulator::load_named`].
///
/// # Errors
/// Everything that is wrong with it.
pub fn load_named(engines: Engines, given: &Path, overrides: &[String]) -> Result<Runnable, Problems> {
    Ok(Runnable { loaded: engines.load_named(given, overrides)?, engines })
}

/// As [`Simulator::load_traced`].
///
/// # Errors
/// Everything that is wrong with it.
pub fn load_traced(engines: Engines, given: &Path, overrides: &[String], trace: &Trace) -> Result<Runnable, Problems> {
    Ok(Runnable { loaded: engines.load_traced(given, overrides, trace)?, engines })
}

/// As [`Simulator::load_text`], without `--set` arguments.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load_text(engines: Engines, name: &str, text: &str, base: &Path, stem: &str) -> Result<Runnable, Problems> {
    Ok(Runnable { loaded: engines.load_text(name, text, base, stem, &[])?, engines })
}

/// Reads and checks the scenario that a run was made from. `name` stands in messages, `stem` is the scenario's name unless it names
/// itself.
///
/// # Errors
/// Everything that is wrong with it: files that are gone, for example, or an older program's keys.
pub fn load_inputs(engines: Engines, inputs: &RunInputs, name: &str, stem: &str) -> Result<Runnable, Problems> {
    load_text(engines, name, &inputs.text(), Path::new(&inputs.base), stem)
}

impl Runnable {
    /// As [`Simulator::run`].
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run(&self, options: &RunOptions<'_>) -> Result<RunResult, RunError> {
        self.engines.run(&self.loaded, options)
    }

    /// As [`Simulator::check`].
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn check(&self) -> Result<(), RunError> {
        self.engines.check(&self.loaded)
    }

    /// As [`Simulator::layout`].
    ///
    /// # Errors
    /// What is wrong with the configuration, at its place.
    pub fn layout(&self) -> Result<Layout, Problems> {
        self.engines.layout(&self.loaded)
    }

    /// As [`Simulator::soundness`].
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn soundness(&self) -> Result<Soundness, Problems> {
        self.engines.soundness(&self.loaded)
    }

    /// What the hardware costs by the scenario's technology table.
    ///
    /// # Errors
    /// The table cannot be read, or the scenario cannot be laid out.
    pub fn cost(&self) -> Result<Cost, Problems> {
        self.engines.cost(&self.loaded, &self.technology()?)
    }

    /// As [`Simulator::energy`].
    pub fn energy(&self, document: &Document, cost: &Cost, technology: &Technology) -> Energy {
        self.engines.energy(&self.loaded, document, cost, technology)
    }

    /// As [`Simulator::embeddings`].
    ///
    /// # Errors
    /// What is wrong with the scenario, or with an embedding.
    pub fn embeddings(&self) -> Result<Vec<Embedding>, Problems> {
        self.engines.embeddings(&self.loaded)
    }

    /// As [`Simulator::engine_trees`].
    ///
    /// # Errors
    /// What is wrong with the configuration, at its place.
    pub fn engine_trees(&self) -> Result<Vec<EngineTree>, Problems> {
        self.engines.engine_trees(&self.loaded)
    }
}
