//! Builds the system of a scenario: the one `match` over families besides that of [`specs`](super::specs).

use crate::build::{BuildOptions, build as build_piuma};
use crate::config::{self, Scenario};
use crate::run::family::{Family, StartedRun};
use crate::run::options::{RunError, RunOptions};
use crate::run::system::System;
use crate::{Loaded, Problems, armed, mixed, pbv, piuma};
use watershed_piuma::claim::Wiring;

/// Builds the system of a scenario of any family, and what its families have under way there. In windows, parts of it may run ahead
/// of each other where nothing reads the system between two cycles.
///
/// # Errors
/// The scenario is wrong in a way that only shows when the system is built.
pub(crate) fn build<'a>(
    loaded: &'a Loaded,
    options: &RunOptions<'_>,
    windows: bool,
) -> Result<StartedRun<'a>, RunError> {
    fn one<'a>((system, run): (Box<System>, impl Family + 'a)) -> StartedRun<'a> {
        (system, vec![Box::new(run)])
    }
    Ok(match loaded.scenario.family {
        config::Family::Piuma | config::Family::Fabric => one(piuma::run::Run::build(loaded, options, windows)?),
        config::Family::Armed => one(armed::run::Run::build(loaded, options)?),
        config::Family::Pbv => one(pbv::run::Run::build(loaded, options)?),
        config::Family::Mixed => mixed::build::build(loaded, options)?,
    })
}

/// What only a system that was built can tell: the wires of claims, and the armed family's engines.
pub(crate) fn wiring(loaded: &Loaded) -> Result<(Wiring, usize), Problems> {
    let scenario = &loaded.scenario;
    Ok(match scenario.family {
        config::Family::Piuma if trees(scenario) > 1 => {
            (build_piuma(loaded, BuildOptions { no_monitors: true, ..BuildOptions::default() })?.claims.wiring, 0)
        }
        config::Family::Piuma | config::Family::Fabric | config::Family::Pbv => (Wiring::default(), 0),
        config::Family::Armed => {
            (Wiring::default(), armed::build::build(loaded, armed::build::BuildOptions::default())?.engines.len())
        }
        config::Family::Mixed => {
            let built = mixed::build::assembled(loaded)?;
            let wiring = built.piuma.map(|ready| ready.claims.wiring).unwrap_or_default();
            (wiring, built.armed.map_or(0, |ready| ready.engines.len()))
        }
    })
}

/// Trees that registers may hold.
fn trees(scenario: &Scenario) -> u64 {
    let multicasts = scenario.programs.as_ref().map_or(0, |programs| programs.multicasts.len());
    multicasts as u64 + scenario.collectives.iter().map(|of| u64::from(of.segments)).sum::<u64>()
}
