//! The graph under the embeddings of the PIUMA family: routes, neighbours, and searched ways on topologies without a
//! formula.

use std::collections::HashMap;
use watershed_fabric::topology::{Common, EndPlace, Layout, LinkParams, Neighbours, Shape, SwitchGraph};
use watershed_piuma::Registers;
use watershed_piuma::embed::EmbedContext;
use watershed_piuma::legality::Footprint;

/// The graph of switches, where no arithmetic knows the ways of trees.
pub(crate) fn switch_graph(layout: &Layout) -> Option<SwitchGraph> {
    (!matches!(layout.shape, Shape::Die(_) | Shape::Nodes(_) | Shape::Mesh(_))).then(|| SwitchGraph::new(layout))
}

/// What is known of the link at each port of a switch. Links of a system of nodes follow from its arithmetic: not all of them need
/// be laid out.
pub(crate) fn links<'a>(layout: &'a Layout, common: &'a Common) -> impl Fn(u32, u16) -> LinkParams + 'a {
    let mut known = HashMap::new();
    for link in &layout.plan.links {
        for end in [link.a, link.b] {
            known.insert(end, LinkParams { latency: link.latency, cycles_per_flit: link.cycles_per_flit });
        }
    }
    move |switch, port| match &layout.shape {
        Shape::Nodes(nodes) => nodes.link(switch, port).map_or(common.local, |link| nodes.params(common, &link)),
        _ => known.get(&(switch, port)).copied().unwrap_or(common.local),
    }
}

/// What embeddings need to know of a system.
pub(crate) fn ground<'a>(
    layout: &'a Layout,
    neighbours: &'a Neighbours,
    registers: &Registers,
    ways: Option<&'a SwitchGraph>,
) -> EmbedContext<'a> {
    EmbedContext {
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
pub(crate) fn disjoint_trees(
    participants: &[u32],
    segments: u32,
    layout: &Layout,
    ways: Option<&SwitchGraph>,
) -> Vec<Vec<bool>> {
    let Some(ways) = ways.filter(|_| segments > 1) else { return Vec::new() };
    let mut switches: Vec<u32> = participants.iter().map(|&end| layout.ends[end as usize].switch).collect();
    switches.sort_unstable();
    switches.dedup();
    ways.disjoint(ways.middle(&switches), segments as usize)
}

/// The ports of each switch that trees and end points use, a bit each.
pub(crate) fn used_ports<'a>(
    switches: u32,
    footprints: impl Iterator<Item = &'a Footprint>,
    places: impl Iterator<Item = EndPlace>,
) -> Vec<u64> {
    let mut used = vec![0u64; switches as usize];
    for at in footprints.flat_map(|footprint| &footprint.links) {
        used[at.switch as usize] |= 1 << at.port;
    }
    for EndPlace { switch, port } in places {
        used[switch as usize] |= 1 << port;
    }
    used
}
