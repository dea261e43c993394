//! Point-to-point routes between switches, and the proof that they cannot deadlock (requirement K-PIPE-1).
//!
//! All routes here are minimal and dimension-ordered. The proof is the classic one: if the channel dependency graph
//! (an edge from one link to the next for every pair of links that some route uses one after the other) has no cycle,
//! no set of packets can wait for each other in a circle. [`dependency_cycle`] builds that graph from the routing
//! function itself by walking every route, so it proves the code that runs and not a drawing of it.

use super::network::Tables;
use super::topology::{Die, EndPlace, GenericTree, Layout, Mesh, Neighbours, die_port as port};
use super::{Flit, PortSet};
use std::collections::HashSet;

/// A routing function: one arm a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Routing {
    /// Position within the tile first, then the row.
    Die(Die),
    /// Dimension by dimension.
    Mesh(Mesh),
    /// Up to the lowest common switch, then down.
    Tree(GenericTree),
}

impl Routing {
    /// The output port of the next step from switch `at` to switch `to`; `None` if they are the same.
    #[inline]
    pub fn hop(&self, at: u32, to: u32) -> Option<u16> {
        match self {
            Routing::Die(die) => {
                let ((tile, position), (to_tile, to_position)) = (die.place(at), die.place(to));
                if position != to_position {
                    Some(port::X + (position ^ to_position) - 1)
                } else if tile != to_tile {
                    Some(if to_tile > tile { port::PLUS } else { port::MINUS })
                } else {
                    None
                }
            }
            Routing::Mesh(mesh) => mesh.hop(at, to),
            Routing::Tree(tree) => tree.hop(at, to),
        }
    }
}

/// The tables of a plain fabric: a routing function and the places of the end points.
#[derive(Clone, Debug)]
pub struct Routes {
    /// Between switches.
    pub routing: Routing,
    /// Where each end point attaches.
    pub ends: Vec<EndPlace>,
}

impl Routes {
    /// The output port at `switch` for a packet to end point `end`.
    #[inline]
    pub fn port(&self, switch: u32, end: u32) -> u16 {
        let place = self.ends[end as usize];
        self.routing.hop(switch, place.switch).unwrap_or(place.port)
    }
}

impl<const W: usize> Tables<W> for Routes {
    fn outputs(&self, _: u32, _: u16, _: &Flit) -> PortSet<W> {
        PortSet::EMPTY
    }

    fn unicast(&self, switch: u32, _: u16, flit: &Flit) -> u16 {
        self.port(switch, flit.dst())
    }

    fn no_route(&self, switch: u32, port: u16, _: &Flit) -> String {
        format!(
            "a set-routed packet came in by port {port} of switch {switch}, and a plain fabric has no tables for it"
        )
    }
}

/// A route as the switches it visits, or `None` if it does not arrive within as many hops as there are switches.
pub fn walk(layout: &Layout, from: u32, to: u32) -> Option<Vec<u32>> {
    let neighbours = Neighbours::new(layout);
    walk_with(&neighbours, &layout.routing, from, to)
}

/// A cycle in the channel dependency graph of a layout's routing, as the names of the links in it; `None` proves that
/// the routing is free of deadlock with any buffer depth.
///
/// Cost: every route is walked, so the square of the number of switches times the mean distance; meant for
/// representative sizes.
pub fn dependency_cycle(layout: &Layout) -> Option<Vec<String>> {
    dependency_cycle_of(layout, &layout.routing)
}

/// The same for any routing function on a layout.
pub fn dependency_cycle_of(layout: &Layout, routing: &Routing) -> Option<Vec<String>> {
    dependency_cycle_by(layout, |at, to| routing.hop(at, to))
}

/// The same for a routing function given as a closure (next port from a switch to a switch).
pub fn dependency_cycle_by(layout: &Layout, hop: impl Fn(u32, u32) -> Option<u16>) -> Option<Vec<String>> {
    let neighbours = Neighbours::new(layout);
    let switches = layout.switches() as u32;
    let mut edges: HashSet<((u32, u16), (u32, u16))> = HashSet::new();
    for from in 0..switches {
        for to in 0..switches {
            let (mut at, mut last) = (from, None);
            for _ in 0..=switches {
                let Some(port) = hop(at, to) else { break };
                let link = (at, port);
                if let Some(last) = last {
                    edges.insert((last, link));
                }
                last = Some(link);
                at = neighbours.of(at, port)?.0;
            }
        }
    }
    let name = |(switch, port): (u32, u16)| format!("{}.P{port}", layout.plan.nodes[switch as usize].name);
    let waits = edges
        .into_iter()
        .map(|(a, b)| crate::kernel::WaitFor { who: name(a), whom: name(b), why: "a route uses both".into() })
        .collect();
    let cycle = crate::kernel::Autopsy::new(waits).cycle;
    if cycle.is_empty() { None } else { Some(cycle.into_iter().map(|wait| wait.who).collect()) }
}

fn walk_with(neighbours: &Neighbours, routing: &Routing, from: u32, to: u32) -> Option<Vec<u32>> {
    let mut path = vec![from];
    let mut at = from;
    while let Some(port) = routing.hop(at, to) {
        at = neighbours.of(at, port)?.0;
        path.push(at);
        if path.len() > neighbours.ports() {
            return None;
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::super::Vcs;
    use super::super::topology::{Common, LinkParams};
    use super::*;

    fn common() -> Common {
        let link = LinkParams { latency: 1, cycles_per_flit: 1 };
        Common { vcs: Vcs { set: 0, unicast: 1 }, engine: false, link, local: link }
    }

    fn layouts() -> Vec<Layout> {
        let mut all: Vec<Layout> = [Die::default(), Die { tiles: 6, positions: 3 }, Die { tiles: 1, positions: 4 }]
            .map(|die| die.layout(&common()))
            .into();
        for size in [vec![1], vec![7], vec![4, 4], vec![8, 8], vec![3, 5, 2], vec![2, 2, 2, 2, 2]] {
            all.push(Mesh { size, concentration: 1 }.layout(&common()));
        }
        all
    }

    #[test]
    fn every_route_arrives_by_a_shortest_path() {
        for layout in layouts() {
            let switches = layout.switches() as u32;
            let neighbours = Neighbours::new(&layout);
            for from in 0..switches {
                // Breadth-first distances over the links between switches, independent of the routing function.
                let mut distance = vec![u32::MAX; switches as usize];
                let mut frontier = vec![from];
                distance[from as usize] = 0;
                while let Some(at) = frontier.first().copied() {
                    frontier.remove(0);
                    for port in 0..layout.external_ports {
                        if let Some((next, _)) = neighbours.of(at, port).filter(|&(next, _)| next < switches)
                            && distance[next as usize] == u32::MAX
                        {
                            distance[next as usize] = distance[at as usize] + 1;
                            frontier.push(next);
                        }
                    }
                }
                for to in 0..switches {
                    let path = walk_with(&neighbours, &layout.routing, from, to).expect("the route arrives");
                    assert_eq!(path.len() as u32 - 1, distance[to as usize], "{from} to {to}");
                    assert_eq!(path.last(), Some(&to));
                }
            }
        }
    }

    #[test]
    fn dimension_ordered_routes_have_no_dependency_cycle() {
        for layout in layouts() {
            assert_eq!(dependency_cycle(&layout), None);
        }
    }

    #[test]
    fn a_route_that_mixes_orders_is_caught() {
        // x first for odd sources, y first for even ones: the textbook deadlock.
        let layout = Mesh { size: vec![3, 3], concentration: 1 }.layout(&common());
        let Routing::Mesh(mesh) = &layout.routing else { unreachable!() };
        let cycle = dependency_cycle_by(&layout, |at, to| {
            let (a, b) = (mesh.coordinates(at), mesh.coordinates(to));
            let step = |d: usize| Some(2 * d as u16 + u16::from(b[d] < a[d]));
            let order = if at % 2 == 0 { [0, 1] } else { [1, 0] };
            order.into_iter().find(|&d| a[d] != b[d]).and_then(step)
        });
        let cycle = cycle.expect("mixed orders must be caught");
        assert!(cycle.len() >= 4, "{cycle:?}");
    }
}
