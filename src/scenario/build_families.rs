//! Builds the system of a scenario: the one `match` over all families.

use crate::config;
use crate::run::family::{Family, StartedRun};
use crate::run::options::{RunError, RunOptions};
use crate::run::system::System;
use crate::{Loaded, armed, mixed, pbv, piuma};

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
