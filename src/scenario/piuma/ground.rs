//! What embeddings of the PIUMA family stand on: routes, neighbours, and searched ways where no arithmetic knows the topology.

use watershed_fabric::topology::{Layout, Neighbours, Shape, Ways};
use watershed_piuma::Registers;
use watershed_piuma::embed::Ground;

/// The graph of switches, where no arithmetic knows the ways of trees.
pub(crate) fn ways(layout: &Layout) -> Option<Ways> {
    (!matches!(layout.shape, Shape::Die(_) | Shape::Nodes(_) | Shape::Mesh(..))).then(|| Ways::new(layout))
}

/// What embeddings need to know of a system.
pub(crate) fn of<'a>(
    layout: &'a Layout,
    neighbours: &'a Neighbours,
    registers: &Registers,
    ways: Option<&'a Ways>,
) -> Ground<'a> {
    Ground {
        routing: &layout.routing,
        neighbours,
        engine: registers.engine_port(),
        switches: registers.switches(),
        ways,
        apart: &[],
        tree: None,
    }
}

/// Trees for the segments of a collective that have no link in common, if the graph has as many.
pub(crate) fn apart(participants: &[u32], segments: u32, layout: &Layout, ways: Option<&Ways>) -> Vec<Vec<bool>> {
    let Some(ways) = ways.filter(|_| segments > 1) else { return Vec::new() };
    let mut switches: Vec<u32> = participants.iter().map(|&end| layout.ends[end as usize].switch).collect();
    switches.sort_unstable();
    switches.dedup();
    ways.disjoint(ways.middle(&switches), segments as usize)
}
