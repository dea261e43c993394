//! The system of a run, as each family sees it.

use watershed_fabric::Simulation;

/// What a run of PIUMA's family sees: registers, cores, engines.
pub type PiumaSystem = dyn watershed_piuma::View;
/// What one of the armed family sees.
pub type ArmedSystem = dyn watershed_armed::View;
/// What one of the PBV family sees.
pub type PbvSystem = dyn watershed_pbv::View;

/// A system with parts of one family or of several. A family asks for its own view of it only where it is present.
pub(crate) trait Whole: Simulation {
    /// As PIUMA's family sees it.
    fn piuma(&self) -> &PiumaSystem {
        unreachable!("no family of PIUMA's here")
    }

    /// The same, to be changed between two cycles.
    fn piuma_mut(&mut self) -> &mut PiumaSystem {
        unreachable!("no family of PIUMA's here")
    }

    /// As the armed family sees it.
    fn armed(&self) -> &ArmedSystem {
        unreachable!("no armed family here")
    }

    /// As the PBV family sees it.
    fn pbv(&self) -> &PbvSystem {
        unreachable!("no PBV family here")
    }
}

/// The system of a run.
pub(crate) type System = dyn Whole;

impl Whole for watershed_piuma::System {
    fn piuma(&self) -> &PiumaSystem {
        self
    }

    fn piuma_mut(&mut self) -> &mut PiumaSystem {
        self
    }
}

impl Whole for watershed_armed::System {
    fn armed(&self) -> &ArmedSystem {
        self
    }
}

impl Whole for watershed_pbv::System {
    fn pbv(&self) -> &PbvSystem {
        self
    }
}

impl Whole for watershed_mixed::System {
    fn piuma(&self) -> &PiumaSystem {
        self
    }

    fn piuma_mut(&mut self) -> &mut PiumaSystem {
        self
    }

    fn armed(&self) -> &ArmedSystem {
        self
    }

    fn pbv(&self) -> &PbvSystem {
        self
    }
}
