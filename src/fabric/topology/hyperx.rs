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

use super::site::join;
use super::{Common, Site, Wiring, mesh};
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

    /// Its switches, links and end points.
    pub fn site(&self, common: &Common) -> Site {
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
            nodes: mesh::switches(&self.size, external, "hyperx", common.engine),
            links,
            levels: mesh::levels(&self.size),
        };
        let mut site = Site::new(plan, switches as usize * usize::from(self.concentration), external);
        mesh::populate(&mut site, switches, first_local, self.concentration, common.local);
        site
    }
}
