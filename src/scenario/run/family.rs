//! What a family of collective engines is to the [runner](super::runner): what only the family knows of a system under way.
//!
//! A family builds its part of the system, says what it waits for, and reports the outcome of its jobs. Cycles, watchdog, stops, progress,
//! waveforms, records, links, common checks and the document are the runner's, implemented once for all.

use super::system::System;
use super::watchdog::Watchdog;
use crate::families::of_family;
use crate::result::{Check, Document, Outcome, ResultData};
use crate::sources::Sources;
use crate::trees::EngineTree;
use crate::why::{Why, WhyQuery};
use crate::{Loaded, Problems, config};
use watershed_fabric::Step;
use watershed_kernel::Cycle;
use watershed_piuma::claim::Wiring;
use watershed_probe::ladder::Ladder;
use watershed_scenario_interface::run::{Flip, Progress, RunError, RunOptions};
use watershed_state::{Loader, Mismatch, Saver};

/// The outcome of a step.
pub(crate) enum StepOutcome {
    /// The next cycle follows.
    Continue,
    /// Continue without advancing the clock: something acted between two cycles.
    Repeat,
    /// No event is left: nothing will happen in any later cycle.
    Quiescent,
}

/// A system, and what its families have under way there.
pub(crate) type StartedRun<'a> = (Box<System>, Vec<Box<dyn Family + 'a>>);

/// What building them ends with.
pub(crate) type Started<'a> = Result<StartedRun<'a>, RunError>;

/// How a system with a family is built.
pub(crate) trait FamilyBuild: Sync {
    /// Builds the system of a scenario, and what its families have under way there. In windows, parts of it may run ahead of each other
    /// where nothing reads the system between two cycles.
    ///
    /// # Errors
    /// The scenario is wrong in a way that only shows when the system is built.
    fn build<'a>(&self, loaded: &'a Loaded, options: &RunOptions<'_>, windows: bool) -> Started<'a>;

    /// What only a system that was built can tell of its cost: the wires of claims, and the armed family's engines.
    ///
    /// # Errors
    /// The scenario is wrong in a way that only shows when the system is built.
    fn wiring(&self, _loaded: &Loaded) -> Result<(Wiring, usize), Problems> {
        Ok((Wiring::default(), 0))
    }

    /// The trees of engines that frames arm or address, as tables have them before a run.
    ///
    /// # Errors
    /// The scenario is wrong in a way that only shows when the system is built.
    fn trees(&self, _loaded: &Loaded) -> Result<Vec<EngineTree>, Problems> {
        Ok(Vec::new())
    }
}

/// How systems of a family are built.
pub(crate) fn builder(family: config::Family) -> &'static dyn FamilyBuild {
    of_family!(family)
}

/// A run of one family.
pub(crate) fn started<'a>((system, run): (Box<System>, impl Family + 'a)) -> StartedRun<'a> {
    (system, vec![Box::new(run)])
}

/// The outcome of the jobs.
#[derive(Default)]
pub(crate) struct Report {
    /// The results, in the order of the scenario.
    pub data: Vec<ResultData>,
    /// What was asked for and has not ended, in words.
    pub open: Option<String>,
    /// What checks of the jobs found.
    pub findings: Vec<Check>,
    /// What checks found that stand at the end of the list.
    pub last: Vec<Check>,
}

/// What a family has under way in a system, which may hold other families, too.
pub(crate) trait Family {
    /// Values that follow from the configuration, for the document; asked once.
    fn take_derived(&mut self) -> Vec<(String, u64)>;

    /// Flips bits of a word that leaves an engine.
    ///
    /// # Errors
    /// The family has no such place, or faults of its own in the scenario.
    fn flip(&mut self, system: &mut System, flip: Flip<'_>) -> Result<(), RunError>;

    /// Whether a journal is needed for what was asked, and if so whether of all packets.
    fn journal(&self, options: &RunOptions<'_>) -> Option<bool> {
        (options.why.is_some() || options.record.is_some()).then_some(true)
    }

    /// A journal is kept: end points write down what goes with it.
    fn keep_times(&mut self, _system: &mut System) {}

    /// The watchdog that detects stalls of this family.
    fn watchdog(&self, system: &System) -> Watchdog;

    /// Before the first cycle.
    fn begin(&mut self, _system: &mut System) {}

    /// The sources of traffic that stand in the system; asked once, before the first cycle. Their traffic is the runner's.
    fn take_sources(&mut self) -> Option<Sources> {
        None
    }

    /// Whether there is any work beside traffic.
    fn has_work(&self) -> bool {
        true
    }

    /// Called before each step: whether all work is over, so that nothing but traffic could keep the run going. A family that
    /// lets a run continue until nothing moves returns false.
    fn is_done(&self) -> bool {
        false
    }

    /// Whether nobody need call it after steps in which nobody completes anything and no rule is broken, as long as something moves.
    fn waits_for_completions(&self) -> bool {
        false
    }

    /// Called before each step, or before several of them where the family [waits](Self::waits_for_completions). They end before the cycle
    /// that is returned.
    fn before_step(&mut self, _system: &mut System) -> Cycle {
        Cycle::MAX
    }

    /// After each step, or the last of several.
    fn after_step(&mut self, _system: &mut System, step: Step) -> StepOutcome {
        if step == Step::Quiet { StepOutcome::Quiescent } else { StepOutcome::Continue }
    }

    /// A rule of the family that was broken; those of the fabric are the [system's](watershed_fabric::Simulation::fault).
    fn broken_rule(&self) -> Option<&str> {
        None
    }

    /// Describes a stall that the watchdog finds: work is left, no progress is made, and no pending event would resume it.
    fn find_stall(&self, system: &System, watchdog: &mut Watchdog) -> Option<String>;

    /// Nothing of the family moves any more: whether that is the end of the run, and not a deadlock. Under endless traffic it is
    /// called after each step.
    fn is_over(&self, system: &System) -> bool;

    /// The limit of cycles is reached: what is still queued or not done, in words; `None` if the run is over.
    fn at_limit(&self, system: &System) -> Option<String>;

    /// Participants that are not done, for the deadlock message.
    fn unfinished(&self, system: &System) -> String;

    /// Whether the outcome of a run in windows is valid without a second run cycle by cycle.
    fn no_rerun_needed(&self, _outcome: Outcome) -> bool {
        true
    }

    /// How many cycles the run took.
    fn cycles(&self, system: &System, outcome: Outcome) -> Cycle;

    /// The progress of the run.
    fn progress(&self, system: &System) -> Progress;

    /// Writes results into the document, and says what the runner needs of them.
    fn report(&self, system: &System, document: &mut Document, oracle: bool) -> Report;

    /// Checks that stand between those of the jobs and those of the network.
    fn family_checks(&self, system: &System, document: &Document) -> Vec<Check>;

    /// Links of each level in the whole system, if only those that something uses were built.
    fn all_links(&self) -> Option<&[u64]> {
        None
    }

    /// Whether a link has lost packets for good: a dead one, or one whose link layer has given up.
    fn has_lost_packets(&self, _system: &System) -> bool {
        false
    }

    /// Appends what has changed since it began, beside the system.
    fn save(&self, _to: &mut Saver) {}

    /// Resumes from a saved state. The state of the system is restored already.
    ///
    /// # Errors
    /// The state is that of another run.
    fn load(&mut self, _system: &System, _from: &mut Loader<'_>) -> Result<(), Mismatch> {
        Ok(())
    }

    /// Where the cycles of the jobs went.
    fn why(&self, system: &System, ask: WhyQuery<'_>, document: &Document, notes: &mut Vec<String>) -> Vec<Why>;

    /// Who sent what to whom when.
    fn ladder(&self, system: &System) -> Option<Ladder>;
}
