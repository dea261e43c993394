//! What a family of collective engines is to the [runner](super::runner): a system under way and what only the family knows
//! of it.
//!
//! A family builds its system, says what it waits for, and reports what came of its jobs. Cycles, watchdog, stops, progress,
//! waveforms, records, links, common checks and the document are the runner's, once for all.

use super::watchdog::Watchdog;
use super::{Flip, Progress, RunError, RunOptions, link_report};
use crate::Problem;
use crate::result::{Check, Document, Links, Outcome, ResultData};
use crate::why::{Ask, Why};
use watershed_fabric::{Simulation, Step};
use watershed_kernel::Cycle;
use watershed_probe::ladder::Ladder;

/// What the runner is to do before the next step.
pub(crate) enum Before {
    /// Everything that was asked for is over.
    Done,
    /// Something was looked at: ask again.
    Again,
    /// Step, but simulate no cycle from this one on.
    Until(Cycle),
}

/// What a step came to.
pub(crate) enum After {
    /// Go on.
    On,
    /// Go on at once, without a look at the clock: something was looked at between two cycles.
    Again,
    /// Nothing will ever happen again.
    Quiet,
}

/// What came of the jobs.
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

/// A family's system under way.
pub(crate) trait Family {
    /// The system.
    fn system(&self) -> &dyn Simulation;

    /// The same, to step and record it.
    fn system_mut(&mut self) -> &mut dyn Simulation;

    /// Values that follow from the configuration, for the document; asked once.
    fn take_derived(&mut self) -> Vec<(String, u64)>;

    /// Flips bits of a word that leaves an engine.
    ///
    /// # Errors
    /// The family has no such place, or faults of its own in the scenario.
    fn flip(&mut self, flip: Flip<'_>) -> Result<(), RunError>;

    /// Whether a journal is needed for what was asked, and if so whether of all packets.
    fn journal(&self, options: &RunOptions<'_>) -> Option<bool> {
        (options.why.is_some() || options.record.is_some()).then_some(true)
    }

    /// A journal is kept: end points write down what goes with it.
    fn keep_times(&mut self) {}

    /// Who watches whether work goes on.
    fn watchdog(&self) -> Watchdog;

    /// Before the first cycle.
    fn begin(&mut self) {}

    /// Before each step.
    fn before(&mut self) -> Before {
        Before::Until(Cycle::MAX)
    }

    /// After each step.
    fn after(&mut self, step: Step) -> After {
        if step == Step::Quiet { After::Quiet } else { After::On }
    }

    /// A rule of the family that was broken; those of the fabric are the [system's](Simulation::fault).
    fn refused(&self) -> Option<&str> {
        None
    }

    /// An input that turned out to be wrong while the run read it.
    fn problem(&mut self) -> Option<Problem> {
        None
    }

    /// The watchdog looks: what stands although work is left and nothing is pending that would go on with it, in words.
    fn standing(&self, watchdog: &mut Watchdog) -> Option<String>;

    /// Nothing moves any more: whether that is the end, and not a deadlock.
    fn is_over(&self) -> bool;

    /// The limit of cycles has come: what is queued or not done then, in words; `None` if the run is over.
    fn at_limit(&self) -> Option<String>;

    /// Who is not done, for whoever reads that the run stands.
    fn left(&self) -> String;

    /// Whether a run of parts in windows needs no second look, cycle by cycle.
    fn went_well(&self, _outcome: Outcome) -> bool {
        true
    }

    /// How many cycles the run took.
    fn cycles(&self, outcome: Outcome) -> Cycle;

    /// How far it is.
    fn progress(&self) -> Progress;

    /// Writes results into the document, and says what the runner needs of them.
    fn report(&mut self, document: &mut Document, oracle: bool) -> Report;

    /// Checks that stand between those of the jobs and those of the network.
    fn settle(&mut self, document: &Document) -> Vec<Check>;

    /// Whether a run that has ended leaves nothing in the network. Traffic without an end does not.
    fn drains(&self) -> bool {
        true
    }

    /// What the limit of cycles means, if it is the end of a run that has no other.
    fn limit_is_end(&self) -> Option<&'static str> {
        None
    }

    /// What the links did.
    fn links(&self, cycles: u64, all: bool) -> Links {
        let system = self.system();
        let (all_waits, waits) = (system.head_waits(), |at| system.link_waits(at));
        link_report(system, system.link_counts(), (all_waits.as_ref(), &waits), None, cycles, all)
    }

    /// Where the cycles of the jobs went.
    fn why(&self, ask: Ask<'_>, document: &Document, notes: &mut Vec<String>) -> Vec<Why>;

    /// Who sent what to whom when.
    fn ladder(&self) -> Option<Ladder>;
}
