//! The built-in embedding (requirement P-EMB-1 within one die or mesh; "Accelerating Allreduce …", section "Allreduce
//! Embedding").
//!
//! Every participant's input takes the dimension-ordered shortest path to the root. Wherever paths meet, the switch
//! reduces in its CENG and forwards one packet. The response registers are the inverse mapping. The result is a list of
//! register values and nothing else (P-EMB-3): it can be printed, edited, and written to a scenario.
//!
//! The root, if not given, lies on the participating switch of least eccentricity (the largest distance to another
//! participant); ties go to the lowest switch *chosen*.

use super::{REQUEST, RESPONSE, Registers};
use crate::fabric::routing::Routing;
use crate::fabric::topology::{EndPlace, Neighbours};
use std::collections::BTreeMap;

/// Register vectors of one collective id: (switch, channel, input port) to a vector of output ports.
pub type Vectors = BTreeMap<(u32, u8, u16), u64>;

/// What the embedding needs to know of the system.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    /// Routes between switches.
    pub routing: &'a Routing,
    /// Who is at the far end of a port.
    pub neighbours: &'a Neighbours,
    /// The engine's port number.
    pub engine: u16,
}

impl Ground<'_> {
    /// Hops between two switches.
    pub fn distance(&self, from: u32, to: u32) -> u32 {
        let (mut at, mut hops) = (from, 0);
        while let Some(port) = self.routing.hop(at, to) {
            at = self.next(at, port).0;
            hops += 1;
        }
        hops
    }

    fn next(&self, switch: u32, port: u16) -> (u32, u16) {
        self.neighbours.of(switch, port).expect("a route only takes ports that have a link")
    }
}

/// The participating switch of least eccentricity.
///
/// # Panics
/// If there is no participant.
pub fn middle(ground: &Ground<'_>, participants: &[EndPlace]) -> u32 {
    let mut switches: Vec<u32> = participants.iter().map(|place| place.switch).collect();
    switches.sort_unstable();
    switches.dedup();
    let eccentricity = |from: u32| switches.iter().map(|&to| ground.distance(from, to)).max();
    *switches.iter().min_by_key(|&&switch| (eccentricity(switch), switch)).expect("a collective has participants")
}

/// The registers of a reduction tree over `participants` to the CENG of switch `root`, whose result goes to
/// `receivers`.
pub fn reduction(ground: &Ground<'_>, participants: &[EndPlace], root: u32, receivers: &[EndPlace]) -> Vectors {
    // Inputs of every switch on a path: from its participants and from its children.
    let mut inputs: BTreeMap<u32, u64> = BTreeMap::new();
    inputs.insert(root, 0);
    for place in participants {
        let mut at = place.switch;
        let mut ports = inputs.entry(at).or_default();
        let mut seen = *ports != 0;
        *ports |= 1 << place.port;
        // From where another path has been before, the rest of the way is known.
        while !seen && let Some(port) = ground.routing.hop(at, root) {
            let (next, by) = ground.next(at, port);
            ports = inputs.entry(next).or_default();
            seen = *ports != 0;
            *ports |= 1 << by;
            at = next;
        }
    }
    let mut vectors = Vectors::new();
    let engine = ground.engine;
    for (&switch, &ports) in &inputs {
        let up = ground.routing.hop(switch, root).map_or(0, |port| 1u64 << port);
        let reduces = ports.count_ones() > 1 || switch == root;
        for port in bits(ports) {
            vectors.insert((switch, REQUEST, port), if reduces { 1 << engine } else { up });
        }
        if reduces && up != 0 {
            vectors.insert((switch, REQUEST, engine), up);
        }
    }
    // Responses: from the root's engine down to the receivers.
    for place in receivers {
        let mut out = 1u64 << place.port;
        let mut at = place.switch;
        while let Some(port) = ground.routing.hop(at, root) {
            *vectors.entry((at, RESPONSE, port)).or_default() |= out;
            let (next, by) = ground.next(at, port);
            at = next;
            out = 1 << by;
        }
        *vectors.entry((root, RESPONSE, engine)).or_default() |= out;
    }
    vectors
}

/// The registers of a multicast tree from `source` to `receivers`: requests only, no engine (P-MC-1).
pub fn multicast(ground: &Ground<'_>, source: EndPlace, receivers: &[EndPlace]) -> Vectors {
    let mut vectors = Vectors::new();
    for place in receivers {
        let mut out = 1u64 << place.port;
        let mut at = place.switch;
        while let Some(port) = ground.routing.hop(at, source.switch) {
            *vectors.entry((at, REQUEST, port)).or_default() |= out;
            let (next, by) = ground.next(at, port);
            at = next;
            out = 1 << by;
        }
        *vectors.entry((at, REQUEST, source.port)).or_default() |= out;
    }
    vectors
}

/// Writes vectors into the registers of a collective id.
///
/// # Errors
/// If an address is refused.
pub fn store(registers: &mut Registers, id: u16, vectors: &Vectors) -> Result<(), super::AddressError> {
    for (&(switch, channel, port), &vector) in vectors {
        registers.store(Registers::vector_address(switch, id, channel, port), vector)?;
    }
    Ok(())
}

fn bits(vector: u64) -> impl Iterator<Item = u16> {
    (0..64).filter(move |port| vector >> port & 1 == 1)
}
