//! What each family finds of its own in tables and blocks of several.

use super::wired::What;
use super::{End, Joined, Tables, Wired};
use watershed_armed as armed;
use watershed_fabric::Holds;
use watershed_pbv::{self as pbv, Directory};
use watershed_piuma as piuma;

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

impl Holds<piuma::Ceng> for Joined {
    fn part(&self) -> Option<&piuma::Ceng> {
        self.ceng.as_ref()
    }

    fn part_mut(&mut self) -> Option<&mut piuma::Ceng> {
        self.ceng.as_mut()
    }
}

impl Holds<armed::Discard> for Joined {
    fn part(&self) -> Option<&armed::Discard> {
        self.discard.as_ref()
    }

    fn part_mut(&mut self) -> Option<&mut armed::Discard> {
        self.discard.as_mut()
    }
}

impl Holds<armed::Wired> for Wired {
    fn part(&self) -> Option<&armed::Wired> {
        if let What::Armed(wired) = &self.what { Some(wired) } else { None }
    }

    fn part_mut(&mut self) -> Option<&mut armed::Wired> {
        if let What::Armed(wired) = &mut self.what { Some(wired) } else { None }
    }
}

impl Holds<pbv::system::Wired> for Wired {
    fn part(&self) -> Option<&pbv::system::Wired> {
        if let What::Pbv(wired) = &self.what { Some(wired) } else { None }
    }

    fn part_mut(&mut self) -> Option<&mut pbv::system::Wired> {
        if let What::Pbv(wired) = &mut self.what { Some(wired) } else { None }
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
