//! A collective over registers, ready to run: its trees, its words, and what the engines are told.

use super::config::{Collective, CollectiveKind};
use std::ops::Range;
use std::sync::Arc;
use watershed_arith::{self as arith, Op};
use watershed_oracle::EngineList;
use watershed_piuma::OpSelect;
use watershed_piuma::legality::Footprint;

/// A collective, ready to run.
#[derive(Clone, Debug)]
pub struct BuiltCollective {
    /// Its trees; most collectives have one.
    pub segments: Vec<Segment>,
    /// Its participants' end points, in their order, with the number of the job there; a receiver that does not take
    /// part comes last. Segment by segment.
    pub jobs: Vec<(usize, usize)>,
    /// Words of its vector in the network.
    pub words: u64,
    /// Words of its vector in memory: fewer than in the network if elements are widened.
    pub stored_words: u64,
    /// Words of every contribution as they stand in memory, one after the other.
    pub input: Arc<[u64]>,
    /// How many contributions there are.
    pub contributions: usize,
    /// Trees that programs made of its registers while the system ran, and the cycle of the first call over each.
    pub rewritten: Vec<(u64, Footprint)>,
}

/// A tree of a collective and the part of the vector that it reduces.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Collective id.
    pub id: u16,
    /// Plane of its channels.
    pub plane: u8,
    /// What it uses, and its tree.
    pub footprint: Footprint,
    /// Words of its part in the network.
    pub words: u64,
    /// Words of its part in memory, as numbers of the vector's words there.
    pub stored: Range<u64>,
    /// The elements of its part.
    pub elements: Range<u64>,
}

impl BuiltCollective {
    /// What its only tree uses; that of its first segment.
    pub fn footprint(&self) -> &Footprint {
        &self.segments[0].footprint
    }

    /// What its trees use, segment by segment.
    pub fn footprints(&self) -> impl Iterator<Item = &Footprint> {
        self.segments.iter().map(|segment| &segment.footprint)
    }

    /// Participants, and a receiver that does not take part.
    pub fn parts(&self) -> usize {
        self.jobs.len() / self.segments.len()
    }
}

/// What the engines do.
pub fn select(collective: &Collective) -> OpSelect {
    OpSelect {
        op: operation(collective),
        dtype: collective.network_dtype(),
        mode: arith::Mode::rounding(collective.round),
    }
}

/// The operation the engines are told.
pub fn operation(collective: &Collective) -> Op {
    match collective.kind {
        CollectiveKind::Barrier => Op::Barrier,
        _ => collective.op.unwrap_or(Op::Sum),
    }
}

/// The tree of a segment as its registers have it; `None` where one contribution goes to all.
pub fn oracle_tree(segment: &Segment) -> Option<&EngineList> {
    segment.footprint.tree.as_ref()
}
