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

use super::{Common, Layout, Mesh, Shape, Wiring, mesh};
use crate::routing::{Algorithm, Router, Routing};

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

    /// Lays the torus out. It is routed in dimension order, whatever the number of channels; a scenario's checks and
    /// [`Layout::routed`] refuse to run it with fewer than two.
    pub fn layout(&self, common: &Common) -> Layout {
        let shape = Shape::Torus(self.clone());
        let placeholder = Routing::Mesh(self.as_mesh());
        let mut layout = mesh::grid(&self.as_mesh(), true, "torus", common, &self.wiring, placeholder, shape);
        layout.routing = Router::unchecked(&layout, Algorithm::DimensionOrder);
        layout
    }
}
