//! Which families there are: the one `match` over them.

use crate::config;
use crate::run::family::Family;
use crate::run::{RunError, RunOptions};
use crate::{Loaded, armed, pbv, piuma};

/// Builds the system of a scenario of any family. In windows, parts of it may run ahead of each other where nobody looks at the
/// system between two cycles.
///
/// # Errors
/// The scenario is wrong in a way that only shows when the system is built.
pub(crate) fn build<'a>(
    loaded: &'a Loaded,
    options: &RunOptions<'_>,
    windows: bool,
) -> Result<Box<dyn Family + 'a>, RunError> {
    Ok(match loaded.scenario.family {
        config::Family::Piuma | config::Family::Fabric => Box::new(piuma::run::Run::build(loaded, options, windows)?),
        config::Family::Armed => Box::new(armed::run::Run::build(loaded, options)?),
        config::Family::Pbv => Box::new(pbv::run::Run::build(loaded, options)?),
    })
}
