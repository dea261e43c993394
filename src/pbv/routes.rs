//! Where every device and engine is, and the way there: the route tables of the switches (B-STR-2).
//!
//! An address is 32 bits: device ID, and an offset in the device's space. It is DW 2 of a frame, the upper half of its second
//! flit: switches and engines look a route up when that flit is there, a flit's time behind the head, so that each of them on
//! the way costs so much more. Nothing else says where a frame goes: one whose address is damaged goes astray, and whoever
//! gets it finds that its CRC is wrong. A frame for an address that nobody has goes to the first engine of the
//! switch it is in, which refuses it.

use super::packet::{HEADER_BYTES, Header, NO_DEVICE};
use super::tables::{ENGINE_BASE, ENGINE_SPAN};
use watershed_fabric::{At, Flit, PortSet, Route, Tables};

/// A flit of a frame. Its number on the side-band is a label for waves and journals: nothing is decided by it.
pub fn frame_flit(header: &Header, vc: u8, index: usize, words: &[u64]) -> Flit {
    debug_assert!(words.len() * 8 >= HEADER_BYTES);
    Flit::part(header.cc_id, vc, u64::from(header.address()), index as u32, words.len() as u32, words[index])
}

/// Flits of a frame up to the one with its destination address.
pub const ROUTE_FLITS: u16 = 2;

/// The destination address in the last of the first [`ROUTE_FLITS`] flits: DW 2.
pub fn address_of(flit: &Flit) -> u32 {
    (flit.word >> 32) as u32
}

/// No port.
const NOWHERE: u16 = u16::MAX;

/// Where a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Home {
    device: u16,
    switch: u32,
    /// Port of an end point; [`NOWHERE`] for the switch itself.
    port: u16,
}

/// Routes of a system: the tables of its fabric.
#[derive(Clone, Debug)]
pub struct Directory {
    /// By device ID, plus one; 0: no such device.
    index: Vec<u32>,
    homes: Vec<Home>,
    /// Port of the next hop, switch by switch.
    next: Vec<u16>,
    switches: usize,
    /// Links of the longest way.
    diameter: u32,
    /// Port of every engine of every switch.
    engines: Vec<Vec<u16>>,
    /// Switch and port of every engine by its number.
    places: Vec<(u32, u16)>,
}

impl Directory {
    /// Routes over links between switches (switch, port, switch, port): shortest, of several the one by the lowest
    /// port at every step.
    pub fn new(switches: usize, links: &[(u32, u16, u32, u16)]) -> Directory {
        let mut neighbours: Vec<Vec<(u16, u32)>> = vec![Vec::new(); switches];
        for &(a, a_port, b, b_port) in links {
            neighbours[a as usize].push((a_port, b));
            neighbours[b as usize].push((b_port, a));
        }
        for list in &mut neighbours {
            list.sort_unstable();
        }
        let mut next = vec![NOWHERE; switches * switches];
        let mut diameter = 0;
        for to in 0..switches {
            let mut distance = vec![u32::MAX; switches];
            distance[to] = 0;
            let mut queue = std::collections::VecDeque::from([to]);
            while let Some(at) = queue.pop_front() {
                for &(_, far) in &neighbours[at] {
                    if distance[far as usize] == u32::MAX {
                        distance[far as usize] = distance[at] + 1;
                        queue.push_back(far as usize);
                    }
                }
            }
            diameter = distance.iter().copied().filter(|&links| links != u32::MAX).max().unwrap_or(0).max(diameter);
            for at in 0..switches {
                let step = neighbours[at].iter().find(|&&(_, far)| {
                    distance[at] != u32::MAX && at != to && distance[far as usize] + 1 == distance[at]
                });
                next[at * switches + to] = step.map_or(NOWHERE, |&(port, _)| port);
            }
        }
        Directory {
            index: vec![0; 1 << 16],
            homes: Vec::new(),
            next,
            switches,
            diameter,
            engines: vec![Vec::new(); switches],
            places: Vec::new(),
        }
    }

    fn add(&mut self, home: Home) {
        self.homes.push(home);
        self.index[usize::from(home.device)] = self.homes.len() as u32;
    }

    /// Gives a switch its device ID.
    pub fn add_switch(&mut self, device: u16, switch: u32) {
        self.add(Home { device, switch, port: NOWHERE });
    }

    /// Gives the end point at a port its device ID.
    pub fn add_end(&mut self, device: u16, switch: u32, port: u16) {
        self.add(Home { device, switch, port });
    }

    /// Puts the next engine of a switch on a port.
    pub fn add_engine(&mut self, switch: u32, port: u16) {
        self.engines[switch as usize].push(port);
        self.places.push((switch, port));
    }

    /// Puts a further part of a larger engine behind the port of one that is there; its device is like an end point's.
    pub fn add_part(&mut self, device: u16, switch: u32, plane: u8) {
        let port = self.engines[switch as usize][usize::from(plane)];
        self.add_end(device, switch, port);
        self.places.push((switch, port));
    }

    /// Switch and port of an engine.
    pub fn engine_place(&self, engine: u32) -> (u32, u16) {
        self.places[engine as usize]
    }

    /// Links between switches on the longest way.
    pub fn diameter(&self) -> u32 {
        self.diameter
    }

    /// Whether there is such a device.
    pub fn has_device(&self, device: u16) -> bool {
        self.index[usize::from(device)] != 0
    }

    fn home(&self, address: u32) -> Option<Home> {
        self.index[(address >> 16) as usize].checked_sub(1).map(|at| self.homes[at as usize])
    }

    fn engine_port(&self, home: Home, address: u32) -> Option<u16> {
        let engine = (address as u16).checked_sub(ENGINE_BASE)? / ENGINE_SPAN;
        self.engines[home.switch as usize].get(usize::from(engine)).copied()
    }

    /// Whether anybody has this address and it can be reached.
    pub fn knows(&self, address: u32) -> bool {
        self.home(address).is_some_and(|home| home.port != NOWHERE || self.engine_port(home, address).is_some())
    }

    /// The output port at a switch for an address.
    pub fn port(&self, switch: u32, address: u32) -> u16 {
        let lost = || self.engines[switch as usize].first().copied().unwrap_or(0);
        let Some(home) = self.home(address) else { return lost() };
        if home.switch == switch {
            if home.port == NOWHERE { self.engine_port(home, address).unwrap_or_else(lost) } else { home.port }
        } else {
            match self.next[switch as usize * self.switches + home.switch as usize] {
                NOWHERE => lost(),
                port => port,
            }
        }
    }

    /// By which of an engine's two ports a frame leaves: 1 if the way leads away from the switch by the port the engine is on.
    pub fn side(&self, engine: u32, address: u32) -> u16 {
        let (switch, port) = self.places[engine as usize];
        let own = self.home(address).is_some_and(|home| home.switch == switch && home.port == NOWHERE);
        u16::from(!own && self.port(switch, address) == port)
    }

    /// A cycle of links that wait for each other under these routes, as (switch, port) pairs; `None` proves that there is
    /// none, whatever the depth of buffers (K-PIPE-1). Walks every route.
    pub fn dependency_cycle(&self, links: &[(u32, u16, u32, u16)]) -> Option<Vec<(u32, u16)>> {
        let mut far = std::collections::BTreeMap::new();
        for &(a, a_port, b, b_port) in links {
            far.insert((a, a_port), b);
            far.insert((b, b_port), a);
        }
        let mut after: std::collections::BTreeMap<(u32, u16), std::collections::BTreeSet<(u32, u16)>> =
            far.keys().map(|&link| (link, std::collections::BTreeSet::new())).collect();
        for from in 0..self.switches {
            for to in 0..self.switches {
                let (mut at, mut last) = (from, None);
                while at != to {
                    let port = self.next[at * self.switches + to];
                    if port == NOWHERE {
                        break;
                    }
                    let link = (at as u32, port);
                    if let Some(last) = last {
                        after.entry(last).or_default().insert(link);
                    }
                    last = Some(link);
                    at = far[&link] as usize;
                }
            }
        }
        // What is left when links that wait for nobody are taken away again and again waits in a circle.
        loop {
            let ends: Vec<(u32, u16)> =
                after.iter().filter(|(_, next)| next.is_empty()).map(|(&link, _)| link).collect();
            if ends.is_empty() {
                break;
            }
            for link in ends {
                after.remove(&link);
                for next in after.values_mut() {
                    next.remove(&link);
                }
            }
        }
        (!after.is_empty()).then(|| after.into_keys().collect())
    }
}

impl<const W: usize> Tables<W> for Directory {
    const ROUTE_FLITS: u16 = ROUTE_FLITS;

    fn outputs(&self, _: u32, _: u16, _: &Flit) -> PortSet<W> {
        PortSet::EMPTY
    }

    fn unicast(&self, at: &At<'_>, flit: &Flit) -> Route {
        Route::over(self.port(at.switch, address_of(flit)))
    }

    fn no_route(&self, switch: u32, port: u16, _: &Flit) -> String {
        format!(
            "a set-routed frame came in by port {port} of switch {switch}; frames of this family are routed by address"
        )
    }
}

const _: () = assert!(NO_DEVICE == u16::MAX);
