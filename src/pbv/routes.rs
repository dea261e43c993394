//! The places of devices and engines, and the route tables of the switches (B-STR-2).
//!
//! An address is 32 bits: device ID, and an offset in the device's space. It is DW 2 of a frame, the upper half of its
//! second word: in the second flit of 64 bits, the third of 32, the first of 96 and more. Switches and engines look up a route
//! when that flit has arrived, so each of them on the way adds the time of the flits before it. The address alone routes a frame: one with a damaged address goes to the
//! wrong device, which finds that its CRC is wrong. A frame for an unused address goes to the first engine of the
//! switch it is in, which refuses it.

use super::packet::{self, HEADER_BYTES, Header, NO_DEVICE, words_by_length};
use super::tables::{ENGINE_BASE, ENGINE_SPAN};
use watershed_fabric::routing::Routes;
use watershed_fabric::{Flit, FlitSize, FramePart, Io, PortSet, Reassembly, Route, RouteView, Shares, Tables};
use watershed_state::state;

/// Sends flit `index` of a frame by a port; whether it is the last one. Its number on the side-band is a label for waves and journals:
/// nothing is decided by it.
pub fn send_flit(io: &mut Io<'_>, (port, cut): (u16, FlitSize), header: &Header, index: usize, words: &[u64]) -> bool {
    debug_assert!(words.len() * 8 >= HEADER_BYTES);
    let vc = io.vcs().set + FRAMES;
    let part = FramePart { cut, frame: words, index, flits: cut.flits(8 * words.len()) };
    io.send_part(port, vc, (header.cc_id, u64::from(header.address())), part);
    index + 1 == part.flits
}

/// The words of a frame that has come whole; its Length says how many they are.
pub fn whole(cut: FlitSize, pieces: &Reassembly) -> Vec<u64> {
    let words = pieces.words().first().map_or(0, |&head| words_by_length(head));
    pieces.frame(cut, 8 * words).to_vec()
}

/// Flits of a frame up to the one with its destination address.
pub const fn route_flits(cut: FlitSize) -> u16 {
    packet::route_flits(cut.bits())
}

/// The same of the smallest flits.
pub const MOST_ROUTE_FLITS: u16 = match FlitSize::of_bits(FlitSize::LEAST_BITS) {
    Some(cut) => route_flits(cut),
    None => unreachable!(),
};

/// The channel of frames: one, so that messages from one device to another never overtake each other. Background traffic has
/// those behind it, and class 0.
pub const FRAMES: u8 = 0;

/// The destination address in the last of the first [`route_flits`] flits, with its words behind the first: DW 2.
pub fn address_of(flit: &Flit, more: &[u64]) -> u32 {
    (more.first().unwrap_or(&flit.word) >> 32) as u32
}

/// The traffic class in the first flit of a frame: DW 0, bits 23:21.
pub fn class_of(head: &Flit) -> u8 {
    (head.word >> (32 + 21)) as u8 & 7
}

/// No port.
const NOWHERE: u16 = u16::MAX;

/// Where a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DeviceLocation {
    device: u16,
    switch: u32,
    /// Port of an end point; [`NOWHERE`] for the switch itself.
    port: u16,
}

/// Links to a switch from every other.
fn distances(neighbours: &[Vec<(u16, u32)>], to: usize) -> Vec<u32> {
    let mut distance = vec![u32::MAX; neighbours.len()];
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
    distance
}

/// Ports of the next hop of shortest ways, switch by switch, and the links of the longest.
fn shortest(neighbours: &[Vec<(u16, u32)>]) -> (Vec<u16>, u32) {
    let switches = neighbours.len();
    let mut next = vec![NOWHERE; switches * switches];
    let mut diameter = 0;
    for to in 0..switches {
        let distance = distances(neighbours, to);
        diameter = distance.iter().copied().filter(|&links| links != u32::MAX).max().unwrap_or(0).max(diameter);
        for at in 0..switches {
            let step = neighbours[at]
                .iter()
                .find(|&&(_, far)| distance[at] != u32::MAX && at != to && distance[far as usize] + 1 == distance[at]);
            next[at * switches + to] = step.map_or(NOWHERE, |&(port, _)| port);
        }
    }
    (next, diameter)
}

/// The same for ways that go up, towards the switch of least eccentricity, and then down. No frame goes up after it has
/// gone down, so links wait for each other only in one order, from the bottom to the top and down again.
fn up_down(neighbours: &[Vec<(u16, u32)>]) -> (Vec<u16>, u32) {
    let switches = neighbours.len();
    let farthest = |at: usize| distances(neighbours, at).into_iter().max();
    let top = (0..switches).min_by_key(|&at| (farthest(at), at)).unwrap_or(0);
    let level = distances(neighbours, top);
    let height = |at: usize| (level[at], at);
    let mut order: Vec<usize> = (0..switches).collect();
    order.sort_unstable_by_key(|&at| height(at));
    let mut next = vec![NOWHERE; switches * switches];
    let mut longest = 0;
    for to in 0..switches {
        // Links of ways that only go down.
        let mut down = vec![u32::MAX; switches];
        down[to] = 0;
        let mut queue = std::collections::VecDeque::from([to]);
        while let Some(at) = queue.pop_front() {
            for &(_, far) in neighbours[at].iter().filter(|(_, far)| height(*far as usize) < height(at)) {
                if down[far as usize] == u32::MAX {
                    down[far as usize] = down[at] + 1;
                    queue.push_back(far as usize);
                }
            }
        }
        // From the top on: a switch without such a way goes up to the neighbour that has the shortest.
        let mut links = down.clone();
        for &at in order.iter().filter(|&&at| at != to) {
            let step = if down[at] == u32::MAX {
                let above = neighbours[at].iter().filter(|(_, far)| height(*far as usize) < height(at));
                above.copied().min_by_key(|&(port, far)| (links[far as usize], port))
            } else {
                let below = neighbours[at].iter().filter(|(_, far)| height(*far as usize) > height(at));
                below.copied().find(|&(_, far)| down[far as usize] < down[at] && down[far as usize] + 1 == down[at])
            };
            let Some((port, far)) = step.filter(|&(_, far)| links[far as usize] != u32::MAX) else { continue };
            links[at] = links[far as usize] + 1;
            next[at * switches + to] = port;
        }
        longest = links.iter().copied().filter(|&links| links != u32::MAX).max().unwrap_or(0).max(longest);
    }
    (next, longest)
}

/// Routes of a system: the tables of its fabric.
#[derive(Clone, Debug)]
pub struct Directory {
    /// By device ID, plus one; 0: no such device.
    index: Vec<u32>,
    homes: Vec<DeviceLocation>,
    /// Port of the next hop, switch by switch.
    next: Vec<u16>,
    switches: usize,
    /// Links of the longest way.
    diameter: u32,
    /// Port of every engine of every switch.
    engines: Vec<Vec<u16>>,
    /// Switch and port of every engine by its number.
    places: Vec<(u32, u16)>,
    /// The number in the system of the channel of frames, which is [`FRAMES`] here.
    pub frames: u8,
    /// How frames are cut into flits.
    pub cut: FlitSize,
    /// How background traffic goes, if there is some.
    traffic: Option<(Routes, Shares)>,
}

state!(Directory { built: index, homes, next, switches, diameter, engines, places, frames, cut, traffic });

impl Directory {
    /// Routes over links between switches (switch, port, switch, port): shortest, of several the one by the lowest port
    /// at every step. Where frames on those could wait for each other in a circle, as on the rings of a torus, routes
    /// go up towards a switch in the middle and then down (Schroeder et al., "Autonet", 1991). That needs one channel
    /// on any graph *\[chosen\]*.
    pub fn new(switches: usize, links: &[(u32, u16, u32, u16)]) -> Directory {
        let mut neighbours: Vec<Vec<(u16, u32)>> = vec![Vec::new(); switches];
        for &(a, a_port, b, b_port) in links {
            neighbours[a as usize].push((a_port, b));
            neighbours[b as usize].push((b_port, a));
        }
        for list in &mut neighbours {
            list.sort_unstable();
        }
        let shortest = Directory::over(switches, shortest(&neighbours));
        if shortest.dependency_cycle(links).is_none() {
            shortest
        } else {
            Directory::over(switches, up_down(&neighbours))
        }
    }

    /// Lets background traffic go by these routes, on the channels behind [`FRAMES`], divided into lanes.
    pub fn carry_traffic(&mut self, routes: Routes, lanes: u8) {
        self.traffic = Some((routes, Shares { messages: FRAMES + 1, lanes }));
    }

    fn over(switches: usize, (next, diameter): (Vec<u16>, u32)) -> Directory {
        Directory {
            index: vec![0; 1 << 16],
            homes: Vec::new(),
            next,
            switches,
            diameter,
            engines: vec![Vec::new(); switches],
            places: Vec::new(),
            frames: FRAMES,
            cut: FlitSize::WORD,
            traffic: None,
        }
    }

    fn add(&mut self, home: DeviceLocation) {
        self.homes.push(home);
        self.index[usize::from(home.device)] = self.homes.len() as u32;
    }

    /// Gives a switch its device ID.
    pub fn add_switch(&mut self, device: u16, switch: u32) {
        self.add(DeviceLocation { device, switch, port: NOWHERE });
    }

    /// Gives the end point at a port its device ID.
    pub fn add_end(&mut self, device: u16, switch: u32, port: u16) {
        self.add(DeviceLocation { device, switch, port });
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

    fn home(&self, address: u32) -> Option<DeviceLocation> {
        self.index[(address >> 16) as usize].checked_sub(1).map(|at| self.homes[at as usize])
    }

    fn engine_port(&self, home: DeviceLocation, address: u32) -> Option<u16> {
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
    const ROUTE_FLITS: u16 = MOST_ROUTE_FLITS;
    const CLASSES: bool = true;

    fn route_flits(&self, channel: u8) -> u16 {
        if channel == FRAMES { route_flits(self.cut) } else { 1 }
    }

    fn cut(&self) -> FlitSize {
        self.cut
    }

    fn class(&self, channel: u8, head: &Flit) -> u8 {
        if channel == FRAMES { class_of(head) } else { 0 }
    }

    fn outputs(&self, _: u32, _: u16, _: &Flit) -> PortSet<W> {
        PortSet::EMPTY
    }

    fn unicast(&self, at: &RouteView<'_>, flit: &Flit) -> Route {
        let frame = || Route::over(self.port(at.switch, address_of(flit, at.more)));
        let Some((routes, shares)) = &self.traffic else { return frame() };
        let is_frame = at.channel == FRAMES;
        let at = shares.of(at);
        let route = if is_frame { frame() } else { routes.route(&at, flit) };
        route.to_all_channels(&at)
    }

    fn no_route(&self, switch: u32, port: u16, _: &Flit) -> String {
        format!(
            "a set-routed frame came in by port {port} of switch {switch}; frames of this family are routed by address"
        )
    }
}

const _: () = assert!(NO_DEVICE == u16::MAX);

#[cfg(test)]
mod tests {
    use super::*;

    /// A connected graph that is drawn.
    fn drawn(seed: u64) -> (usize, Vec<(u32, u16, u32, u16)>) {
        let mut state = seed;
        let mut draw = |bound: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32 % bound
        };
        let switches = 2 + draw(20);
        let mut pairs: Vec<(u32, u32)> = (1..switches).map(|at| (draw(at), at)).collect();
        for _ in 0..draw(30) {
            let (a, b) = (draw(switches), draw(switches));
            if a != b {
                pairs.push((a, b));
            }
        }
        let mut ports = vec![0u16; switches as usize];
        let mut take = |at: u32| {
            ports[at as usize] += 1;
            ports[at as usize] - 1
        };
        (switches as usize, pairs.into_iter().map(|(a, b)| (a, take(a), b, take(b))).collect())
    }

    /// Follows the routes from everywhere to everywhere; whether some way is longer than the shortest.
    fn arrives(switches: usize, links: &[(u32, u16, u32, u16)]) -> bool {
        let directory = Directory::new(switches, links);
        assert_eq!(directory.dependency_cycle(links), None);
        let mut neighbours: Vec<Vec<(u16, u32)>> = vec![Vec::new(); switches];
        for &(a, by, b, at) in links {
            neighbours[a as usize].push((by, b));
            neighbours[b as usize].push((at, a));
        }
        let (mut longest, mut detours) = (0, false);
        for to in 0..switches {
            let distance = distances(&neighbours, to);
            for (from, &least) in distance.iter().enumerate() {
                let (mut at, mut hops) = (from, 0);
                while at != to {
                    let port = directory.next[at * switches + to];
                    at = neighbours[at].iter().find(|(own, _)| *own == port).expect("a port with a link").1 as usize;
                    hops += 1;
                    assert!(hops <= 2 * switches, "from {from} to {to} a frame goes round");
                }
                detours |= hops as u32 > least;
                longest = longest.max(hops as u32);
            }
        }
        assert_eq!(directory.diameter(), longest);
        detours
    }

    #[test]
    fn routes_arrive_on_any_graph_and_no_links_wait_in_a_circle() {
        let detours = (0..200).filter(|&seed| {
            let (switches, links) = drawn(seed);
            arrives(switches, &links)
        });
        // Where shortest ways are safe they are taken, and there are graphs of both kinds.
        let detours = detours.count();
        assert!((10..190).contains(&detours), "{detours} of 200 graphs");
    }

    #[test]
    fn a_ring_of_five_is_cut_and_a_mesh_keeps_its_shortest_ways() {
        let ring: Vec<(u32, u16, u32, u16)> = (0..5).map(|at| (at, 0, (at + 1) % 5, 1)).collect();
        assert!(arrives(5, &ring));
        let line: Vec<(u32, u16, u32, u16)> = (0..4).map(|at| (at, 0, at + 1, 1)).collect();
        assert!(!arrives(5, &line));
    }
}
