//! What a family finds of its own in blocks and tables that it may share with other families.

use crate::traffic::WithTraffic;

/// Something that is, or may hold, a part of a family.
pub trait Holds<X> {
    /// The part, if it is there.
    fn part(&self) -> Option<&X>;
    /// The same, to be changed.
    fn part_mut(&mut self) -> Option<&mut X>;
}

impl<X> Holds<X> for X {
    fn part(&self) -> Option<&X> {
        Some(self)
    }

    fn part_mut(&mut self) -> Option<&mut X> {
        Some(self)
    }
}

impl<B> Holds<B> for WithTraffic<B> {
    fn part(&self) -> Option<&B> {
        Some(self)
    }

    fn part_mut(&mut self) -> Option<&mut B> {
        Some(self)
    }
}
