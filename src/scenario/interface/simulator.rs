//! The engines behind what studies and commands do with scenarios: they are handed a [`Simulator`] and know none of its crates, so
//! that a change of an engine compiles none of them again.

use std::fmt::Debug;
use std::panic::RefUnwindSafe;
use std::path::Path;

use watershed_arith::{Contribution, DType, Flags, Mode, Op, Opcode};
use watershed_fabric::topology::Layout;
use watershed_reader::Problems;
use watershed_reader::cost::technology::Technology;
use watershed_workload::Trace;

use crate::cost::{Cost, Energy};
use crate::embedding::Embedding;
use crate::loaded::Loaded;
use crate::result::Document;
use crate::run::{RunError, RunOptions, RunResult};
use crate::soundness::Soundness;
use crate::trees::EngineTree;

/// Loads scenarios, builds their systems and runs them. A [`Runnable`](crate::Runnable) has these as methods.
pub trait Simulator: SingleEngine + Debug + Sync + RefUnwindSafe {
    /// Reads and checks a scenario file, with `--set` arguments on top.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    fn load_file(&self, path: &Path, overrides: &[String]) -> Result<Loaded, Problems>;

    /// As [`load_file`](Self::load_file), or the shipped scenario of this name if there is no such file.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    fn load_named(&self, given: &Path, overrides: &[String]) -> Result<Loaded, Problems>;

    /// As [`load_named`](Self::load_named), with a trace that is in memory instead of the one that `[workload]` names.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    fn load_traced(&self, given: &Path, overrides: &[String], trace: &Trace) -> Result<Loaded, Problems>;

    /// Reads and checks a scenario from a string. `base` is the folder data files are relative to, `stem` the name it has
    /// unless it names itself.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    fn load_text(
        &self,
        name: &str,
        text: &str,
        base: &Path,
        stem: &str,
        overrides: &[String],
    ) -> Result<Loaded, Problems>;

    /// Builds the system that a scenario describes and runs it to the end.
    ///
    /// # Errors
    /// See [`RunError`].
    fn run(&self, loaded: &Loaded, options: &RunOptions<'_>) -> Result<RunResult, RunError>;

    /// Makes every check that comes before the first cycle: builds the system and throws it away.
    ///
    /// # Errors
    /// See [`RunError`].
    fn check(&self, loaded: &Loaded) -> Result<(), RunError>;

    /// Only the layout: switches, links, end points of traffic, routing.
    ///
    /// # Errors
    /// What is wrong with the configuration, at its place.
    fn layout(&self, loaded: &Loaded) -> Result<Layout, Problems>;

    /// Shows that packets arrive and cannot deadlock.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    fn soundness(&self, loaded: &Loaded) -> Result<Soundness, Problems>;

    /// What the hardware costs by this technology table.
    ///
    /// # Errors
    /// The scenario cannot be laid out.
    fn cost(&self, loaded: &Loaded, technology: &Technology) -> Result<Cost, Problems>;

    /// The energy of a run of a scenario whose hardware costs this.
    fn energy(&self, loaded: &Loaded, document: &Document, cost: &Cost, technology: &Technology) -> Energy;

    /// The embeddings of all collectives of configuration registers.
    ///
    /// # Errors
    /// What is wrong with the scenario, or with an embedding.
    fn embeddings(&self, loaded: &Loaded) -> Result<Vec<Embedding>, Problems>;

    /// The trees of all jobs on engines that frames arm or address.
    ///
    /// # Errors
    /// What is wrong with the configuration, at its place.
    fn engine_trees(&self, loaded: &Loaded) -> Result<Vec<EngineTree>, Problems>;
}

/// Operation, type and mode of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineOperation {
    /// The operation.
    pub op: Op,
    /// Type of its lanes.
    pub dtype: DType,
    /// Rounding, denormals, NaN.
    pub mode: Mode,
}

/// Engines by themselves, without a network around them.
pub trait SingleEngine {
    /// The collective engine of the PIUMA family behind the only switch of a star with this many ports: each group of words is an
    /// element of a stream, a word a port. Only the last groups may be smaller, and they are of one size. Words come as fast as
    /// they are taken, or one a cycle in this order of their places.
    ///
    /// # Errors
    /// The engine reports a fault.
    fn piuma_stream(
        &self,
        operation: EngineOperation,
        ports: u16,
        arrivals: Option<&[usize]>,
        groups: &[Vec<(u64, Flags)>],
    ) -> Result<Vec<(u64, Flags)>, String>;

    /// An engine of the armed family, armed for as many contributions as their counts come to.
    ///
    /// # Errors
    /// It sends another number of frames up than one.
    fn armed_frame(&self, opcode: &Opcode, mode: Mode, contributions: &[Contribution]) -> Result<Contribution, String>;

    /// A packet engine of the PBV family: words of payload with flags, taken in the order of the bits or as they come.
    ///
    /// # Errors
    /// The engine refuses a packet.
    fn pbv_packet(
        &self,
        operation: EngineOperation,
        in_order: bool,
        contributions: &[(Vec<u64>, Flags)],
    ) -> Result<(Vec<u64>, Flags), String>;
}
