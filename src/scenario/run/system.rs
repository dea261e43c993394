//! The system of a run, as each family sees it.

use watershed_fabric::Simulation;

/// What a run of PIUMA's family sees: registers, cores, engines.
pub type PiumaSystem = dyn watershed_piuma::View;
/// What one of the armed family sees.
pub type ArmedSystem = dyn watershed_armed::View;
/// What one of the PBV family sees.
pub type PbvSystem = dyn watershed_pbv::View;

/// The system of a run, with parts of one family or of several.
pub(crate) type System = dyn Simulation;

/// The views of a system. A family asks for its own only where it is present.
pub(crate) trait Views {
    /// As PIUMA's family sees it.
    fn piuma(&self) -> &PiumaSystem;
    /// The same, to be changed between two cycles.
    fn piuma_mut(&mut self) -> &mut PiumaSystem;
    /// As the armed family sees it.
    fn armed(&self) -> &ArmedSystem;
    /// As the PBV family sees it.
    fn pbv(&self) -> &PbvSystem;
}

/// Who asks has built it with the family.
const ABSENT: &str = "a system that has the family";

impl Views for System {
    fn piuma(&self) -> &PiumaSystem {
        watershed_piuma::view(self).or_else(|| watershed_mixed::view::piuma(self)).expect(ABSENT)
    }

    fn piuma_mut(&mut self) -> &mut PiumaSystem {
        if watershed_piuma::view(self).is_some() {
            return watershed_piuma::view_mut(self).expect(ABSENT);
        }
        watershed_mixed::view::piuma_mut(self).expect(ABSENT)
    }

    fn armed(&self) -> &ArmedSystem {
        watershed_armed::view(self).or_else(|| watershed_mixed::view::armed(self)).expect(ABSENT)
    }

    fn pbv(&self) -> &PbvSystem {
        watershed_pbv::view(self).or_else(|| watershed_mixed::view::pbv(self)).expect(ABSENT)
    }
}
