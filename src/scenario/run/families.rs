//! The families of a run together, as the [runner](super::runner) deals with them: one mostly, several in a system that they share.

use super::family::{Family, Report, StepOutcome};
use super::system::System;
use super::watchdog::Watchdog;
use crate::result::{Check, Document, Outcome};
use crate::sources::Sources;
use crate::why::{Why, WhyQuery};
use watershed_fabric::Step;
use watershed_kernel::Cycle;
use watershed_probe::ladder::Ladder;
use watershed_scenario_interface::run::{Flip, Progress, RunError, RunOptions};
use watershed_state::{Loader, Mismatch, Saver};

/// The families of a run, in the order in which the document has their results.
pub(crate) struct Families<'a> {
    list: Vec<Box<dyn Family + 'a>>,
}

/// Lines of several, one below the other.
fn lines(texts: impl Iterator<Item = String>) -> String {
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

impl<'a> Families<'a> {
    /// One or more families.
    pub fn new(list: Vec<Box<dyn Family + 'a>>) -> Families<'a> {
        Families { list }
    }

    fn all(&self) -> impl Iterator<Item = &(dyn Family + 'a)> {
        self.list.iter().map(|family| &**family)
    }

    fn families_mut(&mut self) -> impl Iterator<Item = &mut Box<dyn Family + 'a>> {
        self.list.iter_mut()
    }

    /// Values that follow from the configuration.
    pub fn take_derived(&mut self) -> Vec<(String, u64)> {
        self.families_mut().flat_map(|family| family.take_derived()).collect()
    }

    /// The sources of traffic, which one of them has placed.
    pub fn take_sources(&mut self) -> Option<Sources> {
        self.families_mut().find_map(|family| family.take_sources())
    }

    /// Flips bits of a word that leaves an engine of the first family that has such a place.
    ///
    /// # Errors
    /// None has.
    pub fn flip(&mut self, system: &mut System, flip: Flip<'_>) -> Result<(), RunError> {
        let mut refused = None;
        for family in self.families_mut() {
            match family.flip(system, flip) {
                Ok(()) => return Ok(()),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused.unwrap_or_else(|| RunError::Usage("there is no engine here".into())))
    }

    /// Whether a journal is needed, and if so whether of all packets.
    pub fn journal(&self, options: &RunOptions<'_>) -> Option<bool> {
        self.all().filter_map(|family| family.journal(options)).max()
    }

    /// A journal is kept.
    pub fn keep_times(&mut self, system: &mut System) {
        self.families_mut().for_each(|family| family.keep_times(system));
    }

    /// Who watches each of them.
    pub fn watchdogs(&self, system: &System) -> Vec<Watchdog> {
        self.all().map(|family| family.watchdog(system)).collect()
    }

    /// Before the first cycle.
    pub fn begin(&mut self, system: &mut System) {
        self.families_mut().for_each(|family| family.begin(system));
    }

    /// Whether there is anything but traffic.
    pub fn has_work(&self) -> bool {
        self.all().any(Family::has_work)
    }

    /// Whether all work is over, and no family wants to go on until nothing moves.
    pub fn is_done(&self) -> bool {
        self.all().all(Family::is_done)
    }

    /// Whether nobody need call them after steps in which nobody completes anything.
    pub fn wait_for_completions(&self) -> bool {
        self.all().all(Family::waits_for_completions)
    }

    /// Called before a step, or several of them, which end before the cycle that is returned.
    pub fn before_step(&mut self, system: &mut System) -> Cycle {
        self.families_mut().map(|family| family.before_step(system)).min().unwrap_or(Cycle::MAX)
    }

    /// After a step, or the last of several.
    pub fn after_step(&mut self, system: &mut System, step: Step) -> StepOutcome {
        let mut all = StepOutcome::Quiescent;
        for family in self.families_mut() {
            match (family.after_step(system, step), &all) {
                (StepOutcome::Repeat, _) => all = StepOutcome::Repeat,
                (StepOutcome::Continue, StepOutcome::Quiescent) => all = StepOutcome::Continue,
                _ => {}
            }
        }
        all
    }

    /// A rule of a family that was broken.
    pub fn broken_rule(&self) -> Option<&str> {
        self.all().find_map(Family::broken_rule)
    }

    /// Runs the watchdogs that are due and describes the first stall. A family without work left is not checked.
    pub fn find_stall(&self, system: &mut System, watchdogs: &mut [Watchdog]) -> Option<String> {
        let alone = self.list.len() == 1;
        let mut found = None;
        for (family, watchdog) in self.all().zip(watchdogs) {
            if watchdog.is_due(system.awake_cycles()) && found.is_none() && (alone || !family.is_done()) {
                system.refresh();
                found = family.find_stall(system, watchdog);
            }
        }
        found
    }

    /// Nothing moves any more: whether that is the end, and not a deadlock.
    pub fn is_over(&self, system: &System) -> bool {
        let alone = self.list.len() == 1;
        self.all().all(|family| family.is_over(system) || !alone && family.is_done())
    }

    /// The limit of cycles has come: what is queued or not done then, in words; `None` if the run is over.
    pub fn at_limit(&self, system: &System) -> Option<String> {
        let alone = self.list.len() == 1;
        let open = self.all().filter(|family| alone || !family.is_done());
        let texts: Vec<String> = open.filter_map(|family| family.at_limit(system)).collect();
        (!texts.is_empty()).then(|| lines(texts.into_iter()))
    }

    /// Participants that are not done.
    pub fn unfinished(&self, system: &System) -> String {
        lines(self.all().map(|family| family.unfinished(system)))
    }

    /// Whether a run of parts in windows needs no second look, cycle by cycle.
    pub fn no_rerun_needed(&self, outcome: Outcome) -> bool {
        self.all().all(|family| family.no_rerun_needed(outcome))
    }

    /// How many cycles the run took: of several families, until nothing moved any more but timers of what has ended.
    pub fn cycles(&self, system: &System, outcome: Outcome) -> Cycle {
        if self.list.len() > 1 && outcome == Outcome::Finished {
            return system.moved_until();
        }
        self.all().map(|family| family.cycles(system, outcome)).max().unwrap_or(0)
    }

    /// The progress of the run.
    pub fn progress(&self, system: &System) -> Progress {
        let mut sum = Progress { cycle: system.now(), ..Progress::default() };
        for of in self.all().map(|family| family.progress(system)) {
            (sum.done, sum.total) = (sum.done + of.done, sum.total + of.total);
        }
        sum
    }

    /// Writes results into the document, and says what the runner needs of them.
    pub fn report(&self, system: &System, document: &mut Document, oracle: bool) -> Report {
        let mut all = Report::default();
        let mut open = Vec::new();
        for of in self.all().map(|family| family.report(system, document, oracle)) {
            open.extend(of.open);
            all.data.extend(of.data);
            all.findings.extend(of.findings);
            all.last.extend(of.last);
        }
        all.open = (!open.is_empty()).then(|| lines(open.into_iter()));
        all
    }

    /// Checks that stand between those of the jobs and those of the network.
    pub fn family_checks(&self, system: &System, document: &Document) -> Vec<Check> {
        self.all().flat_map(|family| family.family_checks(system, document)).collect()
    }

    /// Links of each level in the whole system, if only those that something uses were built.
    pub fn all_links(&self) -> Option<&[u64]> {
        self.all().find_map(Family::all_links)
    }

    /// Whether a link has lost packets for good.
    pub fn has_lost_packets(&self, system: &System) -> bool {
        self.all().any(|family| family.has_lost_packets(system))
    }

    /// Appends what has changed since they began.
    pub fn save(&self, to: &mut Saver) {
        self.all().for_each(|family| family.save(to));
    }

    /// Goes on from a state that was saved.
    ///
    /// # Errors
    /// The state is that of another run.
    pub fn load(&mut self, system: &System, from: &mut Loader<'_>) -> Result<(), Mismatch> {
        self.families_mut().try_for_each(|family| family.load(system, from))
    }

    /// Where the cycles of the jobs went.
    pub fn why(&self, system: &System, ask: WhyQuery<'_>, document: &Document, notes: &mut Vec<String>) -> Vec<Why> {
        self.all().flat_map(|family| family.why(system, ask, document, notes)).collect()
    }

    /// Who sent what to whom when, of all families in the order of the cycles.
    pub fn ladder(&self, system: &System) -> Option<Ladder> {
        self.all().filter_map(|family| family.ladder(system)).reduce(Ladder::merged_with)
    }
}
