//! A torus of any number of dimensions and any side: a mesh whose rows are closed to rings.
//!
//! ```text
//!   side 4, one dimension:   s0 ══ s1 ══ s2 ══ s3        folded:  s0 ─┐ ┌─ s1 ── s2 …  every link spans two places
//!                             ╚═════════════════╝
//! ```
//!
//! | port | what |
//! |---|---|
//! | 2k, 2k + 1 | + and - neighbour in the k-th dimension whose side is above 1 |
//! | then `concentration` ports | the end points |
//! | the last, if switches have an engine | the engine |
//!
//! Switches are numbered and named as in a [`Mesh`]. A ring of side 2 has two links between its switches. The date line
//! of a ring lies between its last and its first switch.
//!
//! | parameter | unit | range | effect on cycles | effect on storage |
//! |---|---|---|---|---|
//! | `size` | switches a dimension | from 1; 1 adds no ports | mean hops are about a quarter of each side | |
//! | `concentration` | end points a switch | from 1 | shared links | a port each |
//! | `wiring` | cycles | from 1 | [`Lengths`](super::Lengths): equal, folded (twice), or the closing link side - 1 times | auto buffers grow with the round trip |

use super::{Common, Mesh, Site, Wiring, mesh};

/// A torus's shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torus {
    /// Side in each dimension, at least 1 each.
    pub size: Vec<u32>,
    /// End points of a switch, at least 1.
    pub concentration: u16,
    /// Latencies.
    pub wiring: Wiring,
}

impl Torus {
    /// The mesh it is without the closing links.
    pub fn as_mesh(&self) -> Mesh {
        Mesh { size: self.size.clone(), concentration: self.concentration }
    }

    /// Its switches, links and end points.
    pub fn site(&self, common: &Common) -> Site {
        mesh::grid(&self.as_mesh(), true, "torus", common, &self.wiring)
    }
}
