//! The place of a configuration register, seen from a core (requirement H-CFG-1).
//!
//! A register of the own switch is behind the crossbar and the local link. One of another switch is reached through the first end
//! point of that switch, by a [packet](super::access).
//!
//! Out of band, a named short-cut (`core.register_access = "out-of-band"`), an access takes the cycles of an undisturbed packet
//! between the two switches, but no channel: it neither waits for traffic nor delays it.

use super::Registers;
use watershed_fabric::routing::Routing;
use watershed_fabric::topology::Neighbours;

/// Cycles of links and switches.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// From a core to its switch.
    pub local: u64,
    /// Through a switch.
    pub switch: u64,
    /// Far end and cycles of the link at each port, by switch.
    links: Vec<Vec<Option<(u32, u64)>>>,
    /// In band: the end point through which the registers of each switch are reached, if there is one.
    ends: Vec<Option<u32>>,
}

impl Reach {
    /// The distances of a system whose links take this many cycles, by switch and port.
    pub fn new(
        (local, switch): (u64, u64),
        (switches, ports): (u32, u16),
        neighbours: &Neighbours,
        cycles: impl Fn(u32, u16) -> u64,
    ) -> Reach {
        let link = |at: u32, port: u16| {
            let (far, _) = neighbours.of(at, port).filter(|(far, _)| *far < switches)?;
            Some((far, cycles(at, port)))
        };
        let links = (0..switches).map(|at| (0..ports).map(|port| link(at, port)).collect()).collect();
        Reach { local, switch, links, ends: Vec::new() }
    }

    /// Lets accesses go in band: through these end points, one for each switch that has one.
    #[must_use]
    pub fn in_band(self, ends: Vec<Option<u32>>) -> Reach {
        Reach { ends, ..self }
    }

    /// Cycles from a core at a switch to a register of another one.
    pub fn cycles(&self, routing: &Routing, from: u32, to: u32) -> u64 {
        let (mut at, mut cycles) = (from, self.local);
        for _ in 0..self.links.len() {
            let Some((far, link)) = routing.hop(at, to).and_then(|port| self.links[at as usize][usize::from(port)])
            else {
                break;
            };
            (at, cycles) = (far, cycles + self.switch + link);
        }
        cycles
    }
}

impl Registers {
    /// Cycles from a core at a switch to a register of another switch.
    pub fn reach(&self, from: u32, to: u32) -> u64 {
        self.reach.as_ref().map_or(1, |reach| reach.cycles(&self.routes.routing, from, to))
    }

    /// The end point through which the registers of a switch are reached in band.
    pub fn access_end(&self, switch: u32) -> Option<u32> {
        *self.reach.as_ref()?.ends.get(switch as usize)?
    }

    /// The switch of an address.
    pub fn switch_of(&self, address: u64) -> u32 {
        self.named(address).map_or(0, |named| named.switch)
    }
}
