//! Running a scenario: options and result.
//!
//! | file | holds |
//! |---|---|
//! | `family` | the interface of a family to the runner |
//! | `ranks` | processes that run it together begin alike |
//! | `families` | the families of a run together |
//! | `runner` | the loop over cycles, how a run ends, checks that all families have |
//! | `system` | the system of a run, as each family sees it |
//! | `links` | what the links did |
//! | `watchdog` | stalls: work is left and no progress is made, in every family |
//! | `wave` | waveforms |

use super::Loaded;
use crate::checkpoint::Checkpoint;
use runner::Runner;
use watershed_scenario_interface::run::is_watched;

mod families;
pub(super) mod family;
pub(super) mod links;
mod ranks;
pub(super) mod runner;
pub(crate) mod system;
pub(super) mod watchdog;
mod wave;

pub use crate::piuma::driver::Driver;
pub use system::{ArmedSystem, PbvSystem, PiumaSystem};
pub use watershed_scenario_interface::run::{
    Control, Flip, NetworkContents, Progress, RunError, RunOptions, RunResult, Sample, TriggerOptions, WaveOptions,
    jobs, notify_watcher, sides_of, watch,
};

/// Makes every check that comes before the first cycle: builds the system and throws it away.
///
/// # Errors
/// See [`RunError`].
pub fn check(loaded: &Loaded) -> Result<(), RunError> {
    family::builder(loaded.scenario.family).build(loaded, &RunOptions::default(), false)?;
    Ok(())
}

/// Builds the system that a scenario describes and runs it to the end.
///
/// # Errors
/// See [`RunError`].
pub fn run(loaded: &Loaded, options: &RunOptions<'_>) -> Result<RunResult, RunError> {
    // Nothing is known of what came before the checkpoint.
    let begin = options.resume.map_or(0, Checkpoint::cycle);
    let mut later = options.wave.cloned();
    if let Some(wave) = &mut later {
        wave.shown.from_cycle = wave.shown.from_cycle.max(begin);
    }
    let options = &RunOptions { wave: later.as_ref(), ..*options };
    let held = options.wave.filter(|wave| wave.only_failed).map(wave::PendingWave::new).transpose()?;
    let wave = held.as_ref().map(|held| &held.options).or(options.wave);
    let named = |error: String| match &held {
        Some(held) => error.replace(&*held.options.path.to_string_lossy(), &held.path.to_string_lossy()),
        None => error,
    };
    let mut result = run_family(loaded, &RunOptions { wave, ..*options })?;
    result.wave_error = result.wave_error.map(named);
    if let (Some(asked), Some(wave)) = (options.wave, &result.wave) {
        if let Some(cycle) = wave.fired_cycle {
            result.notes.push(format!("the trigger fired in cycle {cycle}"));
        } else if asked.only_failed && result.document.passed() {
            result.wave = None;
            result.notes.push("every check passed and no trigger fired: there is no waveform".to_owned());
        } else if let Some(trigger) = asked.trigger.as_ref().filter(|trigger| trigger.condition.is_some()) {
            let before = trigger.before;
            result.notes.push(format!("the trigger did not fire: the waveform has the last {before} cycles"));
        }
    }
    if let (Some(held), Some(wave)) = (&held, &mut result.wave) {
        let error = held
            .publish(&mut wave.files)
            .map_err(|error| RunError::Write { path: held.path.clone(), error }.to_string());
        result.wave_error = result.wave_error.take().or(error.err());
    }
    if let Some(written) = &mut result.document.scenario {
        written.set_options(options);
    }
    Ok(result)
}

fn run_family(loaded: &Loaded, options: &RunOptions<'_>) -> Result<RunResult, RunError> {
    let watcher: Option<&dyn Fn(Progress) -> Control> = is_watched().then_some(&notify_watcher as _);
    let options = &RunOptions { hook: options.hook.or(watcher), ..*options };
    let begin = |windows| -> Result<_, RunError> {
        let begun = Runner::build(loaded, options, windows).and_then(|mut runner| {
            runner.prepare(options)?;
            runner.begin(options)?;
            Ok(runner)
        });
        let mut runner = ranks::all_begin(options, begun)?;
        runner.drive(options);
        Ok(runner)
    };
    let mut runner = begin(true)?;
    if !runner.no_rerun_needed() {
        // What went wrong is shown in the cycle in which it did.
        drop(runner);
        runner = begin(false)?;
    }
    if let Some(problem) = runner.problem() {
        return Err(loaded.problems(vec![problem]).into());
    }
    let wave_error = runner.close(options);
    Ok(RunResult { wave_error, ..runner.result(options) })
}
