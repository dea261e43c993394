//! Drives a system of the family step by step, for tests that inspect it between cycles.

use super::run::Run;
use crate::Loaded;
use crate::build::PiumaBuild;
use crate::run::family::{Family, StepOutcome};
use crate::run::system::Views;
use watershed_fabric::Step;
use watershed_kernel::Cycle;
use watershed_piuma::{System, simulation_mut};

/// Starts collectives, clocks their claims, makes the stores of programs: all that a run does to a system.
pub struct Driver<'a>(Run<'a>);

impl<'a> Driver<'a> {
    /// The system of a scenario, and who drives it.
    pub fn new(loaded: &'a Loaded, ready: PiumaBuild) -> (System, Driver<'a>) {
        let (mut system, ready) = ready.split();
        let simulation = simulation_mut(&mut system);
        let mut run = Run::new(loaded, simulation.piuma_mut(), ready);
        run.begin(simulation);
        (system, Driver(run))
    }

    /// A step before this cycle, with what comes before and behind it; whether something may still happen.
    ///
    /// # Panics
    /// If a rule of the scenario is broken.
    pub fn step(&mut self, system: &mut System, before: Cycle) -> bool {
        let system = simulation_mut(system);
        loop {
            let until = self.0.before_step(system);
            let step = system.step_before(before.min(until));
            if step == Step::End {
                if system.now() >= before {
                    return true;
                }
                continue;
            }
            let after = self.0.after_step(system, step);
            assert_eq!(self.0.broken_rule(), None, "a rule is broken");
            return !matches!(after, StepOutcome::Quiescent);
        }
    }
}
