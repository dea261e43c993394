//! The families: a folder each (the plain fabric is in that of PIUMA), and the list of them all.
//!
//! A family says in its `spec` which keys of the language it lacks, what travels on its channels, and what golden files hold of it
//! (`FamilySpec`). How a system with it is built, and what it does in a run, it tells the
//! [runner](crate::run).

use crate::config::{Family, Scenario};
use crate::spec::{FamilySpec, Watched};

pub mod armed;
pub(crate) mod mixed;
pub mod pbv;
pub(crate) mod piuma;

/// The clocked blocks of each family: the crates that scenarios can build systems from.
pub mod blocks {
    #[doc(inline)]
    pub use watershed_armed as armed;
    #[doc(inline)]
    pub use watershed_mixed as mixed;
    #[doc(inline)]
    pub use watershed_pbv as pbv;
    #[doc(inline)]
    pub use watershed_piuma as piuma;
}

/// What stands for a family, as any of the traits that it implements.
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
pub(crate) use of_family;

/// What sets a family apart.
pub(crate) fn spec(family: Family) -> &'static dyn FamilySpec {
    of_family!(family)
}

/// What golden files hold of a scenario unless it says otherwise.
pub fn watched(scenario: &Scenario) -> Watched {
    spec(scenario.family).watched(scenario)
}
