//! Which trees of a scenario overlap, and so take turns by [claims](watershed_piuma::claim).

use std::collections::BTreeMap;
use watershed_piuma::claim::Wiring;
use watershed_piuma::legality::Footprint;

/// Whose tree a claimant is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, watershed_state::Saved)]
pub enum Owner {
    /// A segment of a collective.
    Segment(usize, usize),
    /// A multicast.
    Multicast(usize),
}

/// What every tree that may have to claim uses: those of the segments of each collective, and of multicasts.
pub fn footprints<'a, S: Iterator<Item = &'a Footprint>>(
    collectives: impl Iterator<Item = S>,
    multicasts: &'a [Footprint],
) -> BTreeMap<Owner, &'a Footprint> {
    let segments = collectives.enumerate().flat_map(|(index, segments)| {
        segments.enumerate().map(move |(segment, footprint)| (Owner::Segment(index, segment), footprint))
    });
    segments.chain((0..).map(Owner::Multicast).zip(multicasts)).collect()
}

/// Which trees claim, and how.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
pub struct Plan {
    /// The wires.
    pub wiring: Wiring,
    /// Whose trees they are, by claimant.
    pub owners: Vec<Owner>,
}

impl Plan {
    /// The tree of an owner, if it claims.
    pub fn tree(&self, owner: Owner) -> Option<u16> {
        self.wiring.of(self.owners.iter().position(|&of| of == owner)?)
    }

    /// Whose tree it is.
    pub fn owner(&self, tree: u16) -> Owner {
        self.owners[self.wiring.trees[usize::from(tree)].claimant]
    }
}
