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

use super::grid::{self, OnGrid};
use super::rule::Reader;
use super::site::join;
use super::{Common, Shape, Site, TopologyKind, Wiring};
use crate::Plan;
use crate::routing::{Algorithm, MAX_DIMENSIONS};

/// A mesh's shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mesh {
    /// Side in each dimension, at least 1 each.
    pub size: Vec<u32>,
    /// End points of a switch, at least 1.
    pub concentration: u16,
}

impl Mesh {
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

    /// The mesh with latencies for its dimensions.
    pub fn wired(self, wiring: Wiring) -> Shape {
        Shape::Mesh(WiredMesh { mesh: self, wiring })
    }
}

/// A mesh with the latencies of its links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WiredMesh {
    /// The mesh.
    pub mesh: Mesh,
    /// Latencies.
    pub wiring: Wiring,
}

impl OnGrid for WiredMesh {
    const KIND: TopologyKind = TopologyKind::Mesh;
    const NAME: &'static str = "mesh";
    const LENGTHS: bool = false;
    const LEAST: u32 = 2;

    fn size(&self) -> &[u32] {
        &self.mesh.size
    }

    fn concentration(&self) -> u16 {
        self.mesh.concentration
    }

    fn wiring(&self) -> &Wiring {
        &self.wiring
    }

    fn first_local_port(&self) -> u32 {
        self.mesh.first_local_port().into()
    }

    fn grid_site(&self, common: &Common) -> Site {
        lay_out(&self.mesh, false, "mesh", common, &self.wiring)
    }

    fn resized(&self, size: Vec<u32>) -> Shape {
        Mesh { size, ..self.mesh }.wired(self.wiring.clone())
    }

    fn grid_algorithms(&self) -> &'static [Algorithm] {
        let size = &self.mesh.size;
        // Too many dimensions or too long a side for the table of coordinates.
        if size.len() > MAX_DIMENSIONS || size.iter().any(|&side| side > u32::from(u16::MAX)) {
            return &[Algorithm::DimensionOrder];
        }
        grid::ALGORITHMS
    }
}

/// How a mesh is read.
pub(super) const READER: Reader = Reader {
    called: "mesh",
    keys: &["size", "concentration", "latencies_cycles"],
    sized_by: |_| "size",
    read: |given, _, complaints| {
        let mesh = Mesh { size: grid::read_size(given, complaints)?, concentration: given.end_points_a_switch(1) };
        Some(mesh.wired(given.wiring()))
    },
};

/// Lays out a mesh, or a torus if the rows are closed.
pub(super) fn lay_out(mesh: &Mesh, closed: bool, root: &str, common: &Common, wiring: &Wiring) -> Site {
    let Mesh { size, concentration } = mesh;
    let switches = grid::product(size).and_then(|n| u32::try_from(n).ok()).expect("scenario checks bound the size");
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
    let nodes = grid::switches(size, external, root, common.engine);
    let plan = Plan { vcs: common.vcs, nodes, links, levels: grid::levels(size) };
    let mut site = Site::new(plan, switches as usize * usize::from(*concentration), external);
    site.populate(switches, first_local, *concentration, common.local);
    site
}

#[cfg(test)]
mod tests {
    use super::super::{EndPlace, LinkParams};
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
