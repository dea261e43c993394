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

use super::grid::{self, OnGrid};
use super::rule::Reader;
use super::{Common, Complaint, Mesh, Shape, Site, TopologyKind, Wiring, mesh};

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
}

impl OnGrid for Torus {
    const KIND: TopologyKind = TopologyKind::Torus;
    const NAME: &'static str = "torus";
    const LENGTHS: bool = true;
    const LEAST: u32 = 3;

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
        self.as_mesh().first_local_port().into()
    }

    fn grid_site(&self, common: &Common) -> Site {
        mesh::lay_out(&self.as_mesh(), true, "torus", common, &self.wiring)
    }

    fn resized(&self, size: Vec<u32>) -> Shape {
        Shape::Torus(Torus { size, ..self.clone() })
    }
}

/// How a torus is read.
pub(super) const READER: Reader = Reader {
    called: "torus",
    keys: &["size", "concentration", "latency", "latencies_cycles"],
    sized_by: |_| "size",
    read: |given, around, complaints| {
        let size = grid::read_size(given, complaints)?;
        let sides = given.size.as_ref()?;
        if let Some(at) = sides.iter().position(|&side| side > u64::from(u16::MAX))
            && sides.iter().all(|&side| side <= around.most_switches)
        {
            let expected = format!("up to {} switches a ring", u16::MAX);
            complaints.push(Complaint::at(format!("topology.size[{at}]"), "a ring cannot be so long", expected));
            return None;
        }
        Some(Shape::Torus(Torus { size, concentration: given.end_points_a_switch(1), wiring: given.wiring() }))
    },
};
