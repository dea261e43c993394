//! HyperX: switches on a grid of any number of dimensions, each joined with all others of its row in every dimension. With
//! equal sides it is a flattened butterfly.
//!
//! ```text
//!   one dimension of side 4:      s0 ── s1 ── s2 ── s3
//!                                  ├─────┼─────┘     │      every pair of a row has a link
//!                                  │     └───────────┤
//!                                  └─────────────────┘
//! ```
//!
//! | port | what |
//! |---|---|
//! | `b(k)` + j | the j-th other switch of the row in the k-th dimension, own place skipped; b(k) is the sum of side - 1 over the dimensions before |
//! | then `concentration` ports | the end points |
//! | the last, if switches have an engine | the engine |
//!
//! Switches are numbered and named as in a mesh; a side of 1 adds no ports.
//!
//! | parameter | unit | range | effect on cycles | effect on storage |
//! |---|---|---|---|---|
//! | `size` | switches a dimension | from 1 | one hop a dimension at most | side - 1 ports each |
//! | `concentration` | end points a switch | from 1 | shared links | a port each |
//! | `wiring` | cycles | from 1 | with [`Lengths::Distance`](super::Lengths) a link takes its step latency times the places it spans: an on-chip flattened butterfly of tiles of c end points has a step of the square root of c | |

use super::grid::{self, OnGrid};
use super::rule::Reader;
use super::site::join;
use super::{Common, Complaint, Lengths, Shape, Site, TopologyFile, TopologyKind, Wiring};
use crate::Plan;

/// A HyperX's shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HyperX {
    /// Switches in each dimension, at least 1 each.
    pub size: Vec<u32>,
    /// End points of a switch, at least 1.
    pub concentration: u16,
    /// Latencies.
    pub wiring: Wiring,
}

impl HyperX {
    /// The first port of an end point.
    pub fn first_local_port(&self) -> u32 {
        self.size.iter().map(|&side| side - 1).sum()
    }
}

impl OnGrid for HyperX {
    const KIND: TopologyKind = TopologyKind::Hyperx;
    const NAME: &'static str = "HyperX";
    const LENGTHS: bool = true;
    const LEAST: u32 = 2;

    fn size(&self) -> &[u32] {
        &self.size
    }

    fn concentration(&self) -> u16 {
        self.concentration
    }

    fn wiring(&self) -> &Wiring {
        &self.wiring
    }

    fn first_local_port(&self) -> u32 {
        HyperX::first_local_port(self)
    }

    fn grid_site(&self, common: &Common) -> Site {
        let switches: u32 = self.size.iter().product();
        let first_local = self.first_local_port() as u16;
        let external = first_local + self.concentration;
        let mut links = Vec::new();
        let (mut stride, mut base, mut level) = (1, 0, 0);
        for (dimension, &side) in self.size.iter().enumerate() {
            level += u8::from(side > 1);
            for a in 0..switches {
                let at = a / stride % side;
                for other in at + 1..side {
                    let b = a + (other - at) * stride;
                    let params = self.wiring.link(common, dimension, other - at);
                    let ports = ((base + other - 1) as u16, (base + at) as u16);
                    links.push(join((a, ports.0), (b, ports.1), params, level));
                }
            }
            base += side - 1;
            stride *= side;
        }
        let plan = Plan {
            vcs: common.vcs,
            nodes: grid::switches(&self.size, external, "hyperx", common.engine),
            links,
            levels: grid::levels(&self.size),
        };
        let mut site = Site::new(plan, switches as usize * usize::from(self.concentration), external);
        site.populate(switches, first_local, self.concentration, common.local);
        site
    }

    fn resized(&self, size: Vec<u32>) -> Shape {
        Shape::HyperX(HyperX { size, ..self.clone() })
    }
}

/// How a HyperX is read.
pub(super) const READER: Reader = Reader {
    called: "hyperx",
    keys: &["size", "concentration", "latency", "latencies_cycles"],
    sized_by: |_| "size",
    read: |given, _, complaints| {
        refuse_folded(given, complaints);
        let size = grid::read_size(given, complaints)?;
        Some(Shape::HyperX(HyperX { size, concentration: given.end_points_a_switch(1), wiring: given.wiring() }))
    },
};

/// Rows of a HyperX are no rings.
pub(super) fn refuse_folded(given: &TopologyFile, complaints: &mut Vec<Complaint>) {
    if given.latency == Some(Lengths::Folded) {
        let expected = "\"equal\" or \"distance\"";
        complaints.push(Complaint::at("topology.latency", "a hyperx has no rings to fold", expected));
    }
}
