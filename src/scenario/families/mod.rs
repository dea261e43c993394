//! The families: a folder each (the plain fabric is in that of PIUMA), and the list of them all.
//!
//! A family says in its `spec` which keys of the language it lacks, what travels on its channels, and what golden files hold of it
//! (`FamilySpec`). How a system with it is built, and what it does in a run, it tells the
//! [runner](crate::run).

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

pub use watershed_reader::families::{spec, watched};
pub(crate) use watershed_reader::of_family;
