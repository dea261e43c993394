//! The families: a folder each (the plain fabric is in that of PIUMA), and the list of them all.
//!
//! A family says in its `spec` which keys of the language it lacks, what travels on its channels, what golden files hold of it, and how
//! a system with it is built. What it does in a run, it tells the [runner](crate::run).

use crate::config::{Family, Scenario};
use crate::spec::FamilySpec;
pub use crate::spec::Watched;

pub mod armed;
pub(crate) mod mixed;
pub mod pbv;
pub(crate) mod piuma;

/// What sets a family apart.
pub(crate) fn spec(family: Family) -> &'static dyn FamilySpec {
    match family {
        Family::Piuma => &piuma::spec::Piuma,
        Family::Fabric => &piuma::spec::Fabric,
        Family::Armed => &armed::spec::Armed,
        Family::Pbv => &pbv::spec::Pbv,
        Family::Mixed => &mixed::spec::Mixed,
    }
}

/// What golden files hold of a scenario unless it says otherwise.
pub fn watched(scenario: &Scenario) -> Watched {
    spec(scenario.family).watched(scenario)
}
