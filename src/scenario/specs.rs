//! The one `match` over families before a system is built; `build_families` has that over how it is built.

use crate::config::Family;
use crate::spec::FamilySpec;
use crate::{armed, mixed, pbv, piuma};

/// What sets a family apart.
pub fn spec(family: Family) -> &'static dyn FamilySpec {
    match family {
        Family::Piuma => &piuma::spec::Piuma,
        Family::Fabric => &piuma::spec::Fabric,
        Family::Armed => &armed::spec::Armed,
        Family::Pbv => &pbv::spec::Pbv,
        Family::Mixed => &mixed::spec::Mixed,
    }
}
