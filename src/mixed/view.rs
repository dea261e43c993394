//! What each family finds of its own in tables and blocks of several.

use super::wire_block::FamilyBlock;
use super::{End, FamilyJoins, System, Tables, WireBlock};
use std::any::Any;
use watershed_armed as armed;
use watershed_fabric::{Holds, Simulation};
use watershed_pbv::{self as pbv, Directory};
use watershed_piuma as piuma;

/// How PIUMA's family sees a system of several; `None` for one of a single family.
#[inline(never)]
pub fn piuma(system: &dyn Simulation) -> Option<&dyn piuma::View> {
    several(system).map(|system| system as &dyn piuma::View)
}

/// The same, to be changed between two cycles.
#[inline(never)]
pub fn piuma_mut(system: &mut dyn Simulation) -> Option<&mut dyn piuma::View> {
    let system: &mut dyn Any = system;
    system.downcast_mut::<System>().map(|system| system as &mut dyn piuma::View)
}

/// How the armed family sees it.
#[inline(never)]
pub fn armed(system: &dyn Simulation) -> Option<&dyn armed::View> {
    several(system).map(|system| system as &dyn armed::View)
}

/// How the PBV family sees it.
#[inline(never)]
pub fn pbv(system: &dyn Simulation) -> Option<&dyn pbv::View> {
    several(system).map(|system| system as &dyn pbv::View)
}

fn several(system: &dyn Simulation) -> Option<&System> {
    let system: &dyn Any = system;
    system.downcast_ref()
}

impl Holds<piuma::Registers> for Tables {
    fn part(&self) -> Option<&piuma::Registers> {
        self.piuma.as_ref()
    }

    fn part_mut(&mut self) -> Option<&mut piuma::Registers> {
        self.piuma.as_mut()
    }
}

impl Holds<armed::Tables> for Tables {
    fn part(&self) -> Option<&armed::Tables> {
        self.armed.as_ref()
    }

    fn part_mut(&mut self) -> Option<&mut armed::Tables> {
        self.armed.as_mut()
    }
}

impl Holds<Directory> for Tables {
    fn part(&self) -> Option<&Directory> {
        self.pbv.as_ref()
    }

    fn part_mut(&mut self) -> Option<&mut Directory> {
        self.pbv.as_mut()
    }
}

impl Holds<piuma::Ceng> for FamilyJoins {
    fn part(&self) -> Option<&piuma::Ceng> {
        self.ceng.as_ref()
    }

    fn part_mut(&mut self) -> Option<&mut piuma::Ceng> {
        self.ceng.as_mut()
    }
}

impl Holds<armed::Discard> for FamilyJoins {
    fn part(&self) -> Option<&armed::Discard> {
        self.discard.as_ref()
    }

    fn part_mut(&mut self) -> Option<&mut armed::Discard> {
        self.discard.as_mut()
    }
}

impl Holds<armed::WireBlock> for WireBlock {
    fn part(&self) -> Option<&armed::WireBlock> {
        if let FamilyBlock::Armed(wired) = &self.what { Some(wired) } else { None }
    }

    fn part_mut(&mut self) -> Option<&mut armed::WireBlock> {
        if let FamilyBlock::Armed(wired) = &mut self.what { Some(wired) } else { None }
    }
}

impl Holds<pbv::system::WireBlock> for WireBlock {
    fn part(&self) -> Option<&pbv::system::WireBlock> {
        if let FamilyBlock::Pbv(wired) = &self.what { Some(wired) } else { None }
    }

    fn part_mut(&mut self) -> Option<&mut pbv::system::WireBlock> {
        if let FamilyBlock::Pbv(wired) = &mut self.what { Some(wired) } else { None }
    }
}

impl Holds<piuma::End> for End {
    fn part(&self) -> Option<&piuma::End> {
        Some(&self.piuma)
    }

    fn part_mut(&mut self) -> Option<&mut piuma::End> {
        Some(&mut self.piuma)
    }
}

impl Holds<armed::End> for End {
    fn part(&self) -> Option<&armed::End> {
        self.armed.as_deref()
    }

    fn part_mut(&mut self) -> Option<&mut armed::End> {
        self.armed.as_deref_mut()
    }
}

impl Holds<pbv::Node> for End {
    fn part(&self) -> Option<&pbv::Node> {
        self.pbv.as_deref()
    }

    fn part_mut(&mut self) -> Option<&mut pbv::Node> {
        self.pbv.as_deref_mut()
    }
}
