//! All engines, as studies and commands are handed them.

use std::path::Path;

use watershed_fabric::topology::Layout;
use watershed_scenario_interface::embedding::Embedding;
use watershed_scenario_interface::result::Document;
use watershed_scenario_interface::run::{RunError, RunOptions, RunResult};
use watershed_scenario_interface::simulator::Simulator;
use watershed_scenario_interface::soundness::Soundness;
use watershed_scenario_interface::trees::EngineTree;
use watershed_scenario_interface::{Engines, Loaded};
use watershed_workload::Trace;

use super::cost::energy::Energy;
use super::cost::technology::Technology;
use super::cost::{self, Cost};
use super::{Problems, build, embedding, run, soundness, trees};

/// The engines of all families.
#[derive(Debug)]
pub struct AllEngines;

/// The engines of all families, to hand them on.
pub const ENGINES: Engines = &AllEngines;

impl Simulator for AllEngines {
    fn load_file(&self, path: &Path, overrides: &[String]) -> Result<Loaded, Problems> {
        super::load_file(path, overrides)
    }

    fn load_named(&self, given: &Path, overrides: &[String]) -> Result<Loaded, Problems> {
        super::load_named(given, overrides)
    }

    fn load_traced(&self, given: &Path, overrides: &[String], trace: &Trace) -> Result<Loaded, Problems> {
        super::load_traced(given, overrides, trace)
    }

    fn load_text(
        &self,
        name: &str,
        text: &str,
        base: &Path,
        stem: &str,
        overrides: &[String],
    ) -> Result<Loaded, Problems> {
        super::load_text(name, text, base, stem, overrides)
    }

    fn run(&self, loaded: &Loaded, options: &RunOptions<'_>) -> Result<RunResult, RunError> {
        run::run(loaded, options)
    }

    fn check(&self, loaded: &Loaded) -> Result<(), RunError> {
        run::check(loaded)
    }

    fn layout(&self, loaded: &Loaded) -> Result<Layout, Problems> {
        build::layout(loaded)
    }

    fn soundness(&self, loaded: &Loaded) -> Result<Soundness, Problems> {
        soundness::soundness(loaded)
    }

    fn cost(&self, loaded: &Loaded, technology: &Technology) -> Result<Cost, Problems> {
        cost::cost_by(loaded, technology)
    }

    fn energy(&self, loaded: &Loaded, document: &Document, cost: &Cost, technology: &Technology) -> Energy {
        cost::energy::energy(loaded, document, cost, technology)
    }

    fn embeddings(&self, loaded: &Loaded) -> Result<Vec<Embedding>, Problems> {
        embedding::all(loaded)
    }

    fn engine_trees(&self, loaded: &Loaded) -> Result<Vec<EngineTree>, Problems> {
        trees::all(loaded)
    }
}
