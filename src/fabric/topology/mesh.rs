//! A mesh of any number of dimensions and any side, with any number of end points a switch.
//!
//! | port | what |
//! |---|---|
//! | 2k, 2k + 1 | + and - neighbour in the k-th dimension whose side is above 1 |
//! | then `concentration` ports | the end points |
//! | the last, if switches have an engine | the engine |
//!
//! A switch is named by its coordinates, `s3_1` for x = 3, y = 1; the first coordinate varies fastest in the order of
//! switches. A side of 1 adds no ports, so `size = [1]` with several end points is a single switch (a star). Ports at
//! the border have no link. Point-to-point packets correct the dimensions in order.

use super::site::join;
use super::{Common, EndPlace, LinkParams, Site, Wiring};
use crate::{NodeKind, Plan, PlanNode};
use std::fmt::Write;

/// A mesh's shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mesh {
    /// Side in each dimension, at least 1 each.
    pub size: Vec<u32>,
    /// End points of a switch, at least 1.
    pub concentration: u16,
}

impl Mesh {
    /// How many switches there are, or `None` if that overflows.
    pub fn switches(&self) -> Option<u64> {
        self.size.iter().try_fold(1u64, |product, &side| product.checked_mul(u64::from(side)))
    }

    /// Coordinates of a switch.
    pub fn coordinates(&self, switch: u32) -> Vec<u32> {
        let mut rest = switch;
        self.size
            .iter()
            .map(|&side| {
                let at = rest % side;
                rest /= side;
                at
            })
            .collect()
    }

    /// Number of the dimensions whose side is above 1.
    fn live_dimensions(&self) -> u16 {
        self.size.iter().filter(|&&side| side > 1).count() as u16
    }

    /// The first local port.
    pub fn first_local_port(&self) -> u16 {
        2 * self.live_dimensions()
    }

    /// The output port of a step from switch `at` towards switch `to`, dimension by dimension; `None` if they are the
    /// same.
    pub fn hop(&self, at: u32, to: u32) -> Option<u16> {
        let (mut at, mut to, mut port) = (at, to, 0);
        for &side in &self.size {
            let (a, b) = (at % side, to % side);
            if a != b {
                return Some(port + u16::from(b < a));
            }
            if side > 1 {
                port += 2;
            }
            at /= side;
            to /= side;
        }
        None
    }

    /// Its switches, links and end points, with latencies of its own for each dimension.
    pub fn site_with(&self, common: &Common, wiring: &Wiring) -> Site {
        grid(self, false, "mesh", common, wiring)
    }

    /// Its switches, links and end points.
    pub fn site(&self, common: &Common) -> Site {
        self.site_with(common, &Wiring::default())
    }
}

/// Short name of a switch by its coordinates.
pub(super) fn coordinate_name(size: &[u32], switch: u32) -> String {
    let mut name = String::from("s");
    let mut rest = switch;
    for (dimension, &side) in size.iter().enumerate() {
        if dimension > 0 {
            name.push('_');
        }
        let _ = write!(name, "{}", rest % side);
        rest /= side;
    }
    name
}

/// The number of the switch with these coordinates.
pub(super) fn coordinate_number(size: &[u32], at: &[u64]) -> Option<u64> {
    let (mut number, mut stride) = (0, 1);
    for (&side, &at) in size.iter().zip(at) {
        if at >= u64::from(side) {
            return None;
        }
        number += at * stride;
        stride *= u64::from(side);
    }
    (size.len() == at.len()).then_some(number)
}

/// A drawing: the first two dimensions make a grid, the others a grid of grids.
pub(super) fn position(size: &[u32], switch: u32) -> (f64, f64) {
    let (mut rest, mut at, mut pitch) = (switch, [0.0, 0.0], [1.0, 1.0]);
    for (dimension, &side) in size.iter().enumerate() {
        let axis = dimension % 2;
        at[axis] += f64::from(rest % side) * pitch[axis];
        pitch[axis] *= f64::from(side) + 0.7;
        rest /= side;
    }
    (at[0], at[1])
}

/// Names of the levels: local links, then those of each dimension whose side is above 1.
pub(super) fn levels(size: &[u32]) -> Vec<String> {
    let live = size.iter().enumerate().filter(|(_, side)| **side > 1);
    let name = |d: usize| ["x", "y", "z"].get(d).map_or_else(|| format!("dim{d}"), |&s| s.into());
    std::iter::once("local".to_string()).chain(live.map(|(dimension, _)| name(dimension))).collect()
}

/// The switches of a grid, without links.
pub(super) fn switches(size: &[u32], external: u16, root: &str, engine: bool) -> Vec<PlanNode> {
    let count: u32 = size.iter().product();
    let node = |switch| {
        let name = coordinate_name(size, switch);
        let path = format!("{root}.{name}.switch");
        PlanNode { kind: NodeKind::Switch, ports: external + u16::from(engine), engine, name, path }
    };
    (0..count).map(node).collect()
}

/// Adds `concentration` end points to each of the first `switches` switches, from port `first` on.
pub(super) fn populate(site: &mut Site, switches: u32, first: u16, concentration: u16, local: LinkParams) {
    for switch in 0..switches {
        for end in 0..concentration {
            let node = &site.plan.nodes[switch as usize];
            let leaf = if concentration == 1 { "node".to_string() } else { format!("node{end}") };
            let name = format!("{}.{leaf}", node.name);
            let path = format!("{}.{leaf}", node.path.strip_suffix(".switch").unwrap_or(&node.path));
            site.push_end(EndPlace { switch, port: first + end }, local, name, path);
        }
    }
}

/// Lays out a mesh, or a torus if the rows are closed.
pub(super) fn grid(mesh: &Mesh, closed: bool, root: &str, common: &Common, wiring: &Wiring) -> Site {
    let Mesh { size, concentration } = mesh;
    let switches = mesh.switches().and_then(|n| u32::try_from(n).ok()).expect("scenario checks bound the size");
    let first_local = mesh.first_local_port();
    let external = first_local + concentration;
    let mut links = Vec::new();
    let (mut stride, mut port) = (1, 0);
    for (dimension, &side) in size.iter().enumerate() {
        if side > 1 {
            let level = (port / 2 + 1) as u8;
            let (near, wrap) = (wiring.link(common, dimension, 1), wiring.link(common, dimension, side - 1));
            for switch in 0..switches {
                let at = switch / stride % side;
                if at + 1 < side {
                    links.push(join((switch, port), (switch + stride, port + 1), near, level));
                } else if closed {
                    links.push(join((switch, port), (switch - at * stride, port + 1), wrap, level));
                }
            }
            port += 2;
        }
        stride *= side;
    }
    let nodes = self::switches(size, external, root, common.engine);
    let plan = Plan { vcs: common.vcs, nodes, links, levels: levels(size) };
    let mut site = Site::new(plan, switches as usize * usize::from(*concentration), external);
    populate(&mut site, switches, first_local, *concentration, common.local);
    site
}

#[cfg(test)]
mod tests {
    use super::super::LinkParams;
    use super::*;
    use crate::Vcs;

    #[test]
    fn sizes_names_and_ports() {
        let link = LinkParams { latency: 1, cycles_per_flit: 1 };
        let common = Common { vcs: Vcs { set: 0, unicast: 2 }, engine: false, link, local: link };
        let mesh = Mesh { size: vec![4, 3], concentration: 2 };
        let layout = mesh.layout(&common);
        assert_eq!(layout.plan.fault(), None);
        assert_eq!((layout.switches(), layout.cores, layout.external_ports), (12, 24, 6));
        assert_eq!(layout.switch("s3_1"), Some(7));
        assert_eq!(layout.neighbour(7, 1), Some((6, 0)), "-x");
        assert_eq!(layout.neighbour(7, 0), None, "the border");
        assert_eq!(layout.neighbour(7, 2), Some((11, 3)), "+y");
        assert_eq!(layout.end_at(EndPlace { switch: 7, port: 5 }), Some(15));
        for size in [vec![1], vec![5], vec![1, 6], vec![2, 2, 2], vec![3, 1, 2, 2]] {
            for concentration in [1, 3] {
                let layout = Mesh { size: size.clone(), concentration }.layout(&common);
                assert_eq!(layout.plan.fault(), None, "{size:?}");
            }
        }
    }
}
