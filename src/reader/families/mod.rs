//! The families: a folder each (the plain fabric is in that of PIUMA), and the list of them all.
//!
//! A family says in its `spec` which keys of the language it lacks, what travels on its channels, and what golden files hold of it
//! ([`FamilySpec`]).

use crate::config::{Family, Scenario};
use crate::spec::{FamilySpec, Watched};

pub mod armed;
pub mod mixed;
pub mod pbv;
pub mod piuma;

/// What stands for a family, as any of the traits that it implements.
#[macro_export]
macro_rules! of_family {
    ($family:expr) => {
        match $family {
            $crate::config::Family::Piuma => &$crate::families::piuma::spec::Piuma,
            $crate::config::Family::Fabric => &$crate::families::piuma::spec::Fabric,
            $crate::config::Family::Armed => &$crate::families::armed::spec::Armed,
            $crate::config::Family::Pbv => &$crate::families::pbv::spec::Pbv,
            $crate::config::Family::Mixed => &$crate::families::mixed::spec::Mixed,
        }
    };
}

/// What sets a family apart.
pub fn spec(family: Family) -> &'static dyn FamilySpec {
    of_family!(family)
}

/// What golden files hold of a scenario unless it says otherwise.
pub fn watched(scenario: &Scenario) -> Watched {
    spec(scenario.family).watched(scenario)
}
