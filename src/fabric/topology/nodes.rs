//! PIUMA nodes: sockets joined all-to-all, nodes on a HyperX (requirements P-TOPO-4 to P-TOPO-6; "Accelerating Allreduce
//! ...", sections "Network Overview" and "System Parameters").
//!
//! ```text
//!   HyperX of nodes                       node: N_S sockets, all-to-all       socket: a die
//!
//!    n0_0 ─── n1_0 ─── n2_0                    s0 ─── s1                       core0 ═ sw0 ═ sw4 ═ core4
//!     │ ╲______│_______╱ │                     │ ╲  ╱ │                          …
//!     │        │         │                     │  ╳   │        HSIO slots 0 … (2 on each switch)
//!    n0_1 ─── n1_1 ─── n2_1                    │ ╱  ╲ │
//!       ╲_____________╱                        s2 ─── s3
//! ```
//!
//! Two nodes have a link exactly if their coordinates differ in one dimension. All links that leave a die use its HSIO
//! ports; which port carries which link is this table (*chosen*: the sources leave it open):
//!
//! | HSIO slot h of a socket | switch of the die | port |
//! |---|---|---|
//! | 0 to P - 1, P switches a die | h | 0 |
//! | P to 2P - 1 | h - P | 1 |
//! | kP + i, k from 2 (only where `hsio_ports` is above 2) | i | 8 + k |
//!
//! | link | socket | slot |
//! |---|---|---|
//! | to the r-th other socket of the node | each | r, from 0 to N_S - 2 |
//! | to the j-th other node, counted dimension by dimension, ascending | j mod N_S | N_S - 1 + j div N_S |
//!
//! So a node has N_S x P x `hsio_ports` ports that leave its dies; N_S (N_S - 1) of them join its sockets, and a node needs
//! one for each of the sum of (side - 1) other nodes of its rows. [`Nodes::budget`] counts them.
//!
//! Switches are numbered node by node (the first coordinate runs fastest), socket by socket, along the row of a die, and
//! named `n1_0_s2_core3`: coordinates, socket, name in the die.
//!
//! The sockets of a node can be divided into [subnodes](Subnodes): those of one are joined all-to-all, and any two subnodes have
//! links of their own, from the first sockets on. With n sockets a subnode, S subnodes and L links between two of them
//!
//! | link | socket | slot |
//! |---|---|---|
//! | to the r-th other socket of the subnode | each | r, from 0 to n - 2 |
//! | i-th one to the g-th other subnode, to the same socket there | i mod n | n - 1 + g ceil(L / n) + i div n |
//! | to the j-th other node | j mod N_S | n - 1 + (S - 1) ceil(L / n) + j div N_S |
//!
//! A packet for another subnode crosses at the socket that stands where its own does, or where there is no link at that one at the
//! socket of that number modulo L: two sockets on the way at most, or three.
//!
//! Point-to-point packets correct the coordinates in order. In each node they go to the socket, then to the switch, whose
//! HSIO port leads on: at most two sockets a node. Every HSIO link begins a new class of channels, so that links inside a socket
//! never wait for each other in a circle: 2D + 2 classes in all, and D + 1 or 2D + 2 more with subnodes.

use super::hyperx::refuse_folded;
use super::rule::Reader;
use super::site::join;
use super::{
    Common, Complaint, Die, EndPlace, Lengths, LinkParams, Parameter, Shape, Site, Surroundings, Topology,
    TopologyFile, TopologyKind, die_port as port, grid, shape_count,
};
use crate::routing::Algorithm;
use crate::{NodeKind, Plan, PlanNode};
use std::fmt::Write;

/// Names of the levels of links.
pub const LEVELS: [&str; 6] = ["local", "intra-tile", "inter-tile", "inter-socket", "inter-node", "inter-subnode"];
/// Level of links between the sockets of a node.
const INTER_SOCKET: u8 = 3;
/// Level of links between nodes.
const INTER_NODE: u8 = 4;
/// Level of links between the subnodes of a node.
const INTER_SUBNODE: u8 = 5;

/// How the sockets of a node are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnodes {
    /// Parts of equal size, at least 1: sockets are joined all-to-all within one.
    pub count: u32,
    /// Links between two of them, at least 1.
    pub links: u32,
    /// Latency of such a link in cycles.
    pub latency: u16,
    /// Cycles such a link is busy with a flit.
    pub width: u16,
}

impl Default for Subnodes {
    /// All sockets in one.
    fn default() -> Subnodes {
        Subnodes { count: 1, links: 1, latency: 1, width: 1 }
    }
}

/// A system of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// Nodes along each dimension of the HyperX, at least 1 each; empty is one node.
    pub size: Vec<u32>,
    /// Sockets of a node, at least 1.
    pub sockets: u32,
    /// How they are divided; their number divides that of the sockets.
    pub subnodes: Subnodes,
    /// What is in a socket.
    pub die: Die,
    /// HSIO ports of a switch, at least 1.
    pub hsio_ports: u16,
    /// Latency of a link between sockets in cycles.
    pub socket_latency: u16,
    /// Latency of a link between neighbouring nodes in cycles.
    pub node_latency: u16,
    /// Cycles a link between sockets is busy with a flit.
    pub socket_width: u16,
    /// Cycles a link between nodes is busy with a flit.
    pub node_width: u16,
    /// The latency between nodes is that of neighbours times the difference of their coordinates.
    pub distance: bool,
}

/// Where a switch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodePlace {
    /// The node.
    pub node: u32,
    /// The socket in the node.
    pub socket: u32,
    /// The switch in the die.
    pub switch: u32,
}

/// What a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLink {
    /// Switch at the far end.
    pub switch: u32,
    /// Port at the far end.
    pub port: u16,
    /// Level, an index into [`LEVELS`].
    pub level: u8,
    /// Steps between the nodes it joins; 1 for all others.
    pub steps: u32,
}

/// Ports of a node that leave its dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// There are.
    pub ports: u64,
    /// Join its sockets, or those of a subnode.
    pub sockets: u64,
    /// Join its subnodes.
    pub subnodes: u64,
    /// Links to other nodes need.
    pub nodes: u64,
    /// Whether they suffice, socket by socket.
    pub suffices: bool,
}

impl Nodes {
    /// Switches of a die.
    pub fn die_switches(&self) -> u32 {
        u32::from(self.die.tiles) * u32::from(self.die.positions)
    }

    /// Cores of a die.
    pub fn die_cores(&self) -> u32 {
        u32::from(self.die.tiles.min(2)) * u32::from(self.die.positions)
    }

    /// Number of nodes, or `None` if that overflows.
    pub fn nodes(&self) -> Option<u64> {
        grid::product(&self.size)
    }

    /// Number of cores, or `None` if that overflows.
    pub fn cores(&self) -> Option<u64> {
        self.nodes()?.checked_mul(u64::from(self.sockets))?.checked_mul(u64::from(self.die_cores()))
    }

    /// External ports of a switch.
    pub fn switch_ports(&self) -> u16 {
        port::EXTERNAL + self.hsio_ports.saturating_sub(2)
    }

    /// Other nodes that a node has links to.
    pub fn peers(&self) -> u64 {
        self.size.iter().map(|&side| u64::from(side) - 1).sum()
    }

    /// Dimensions with more than one node.
    pub fn dimensions(&self) -> u32 {
        self.size.iter().filter(|&&side| side > 1).count() as u32
    }

    /// HSIO ports: what there are and what the shape needs.
    pub fn budget(&self) -> Budget {
        let (sockets, slots) = (u64::from(self.sockets), u64::from(self.die_switches()) * u64::from(self.hsio_ports));
        let subnodes = u64::from(self.subnodes.count);
        Budget {
            ports: sockets * slots,
            sockets: sockets * (u64::from(self.subnode_sockets()) - 1),
            subnodes: subnodes * (subnodes - 1) * u64::from(self.subnodes.links),
            nodes: self.peers(),
            suffices: u64::from(self.inner_slots()) + self.peers().div_ceil(sockets) <= slots,
        }
    }

    /// Sockets of a subnode.
    pub fn subnode_sockets(&self) -> u32 {
        self.sockets / self.subnodes.count
    }

    /// HSIO slots of a socket for links to one other subnode.
    fn layers(&self) -> u32 {
        self.subnodes.links.div_ceil(self.subnode_sockets())
    }

    /// HSIO slots of a socket for links that stay in the node.
    fn inner_slots(&self) -> u32 {
        self.subnode_sockets() - 1 + (self.subnodes.count - 1) * self.layers()
    }

    /// Sockets of a subnode that have links to others.
    pub(super) fn columns(&self) -> u32 {
        self.subnodes.links.min(self.subnode_sockets())
    }

    /// The next socket on the way from one to another socket of the node, over a link between subnodes at socket `column`.
    pub(super) fn across(&self, at: u32, to: u32, column: u32, within: impl Fn(u32, u32) -> u32) -> u32 {
        let each = self.subnode_sockets();
        let first = at - at % each;
        if first == to - to % each {
            first + within(at % each, to % each)
        } else if at % each == column {
            to - to % each + column
        } else {
            first + within(at % each, column)
        }
    }

    /// The next socket on a shortest way from one to another socket of the node.
    pub fn next_socket(&self, at: u32, to: u32) -> u32 {
        self.across(at, to, to % self.subnode_sockets() % self.columns(), |_, to| to)
    }

    /// Where a switch is.
    pub fn place(&self, switch: u32) -> NodePlace {
        let (socket, die) = (switch / self.die_switches(), self.die_switches());
        NodePlace { node: socket / self.sockets, socket: socket % self.sockets, switch: switch % die }
    }

    /// The number of a switch.
    pub fn number(&self, place: NodePlace) -> u32 {
        (place.node * self.sockets + place.socket) * self.die_switches() + place.switch
    }

    /// The core at a switch, if there is one.
    pub fn end_of(&self, switch: u32) -> Option<u32> {
        let (socket, at) = (switch / self.die_switches(), switch % self.die_switches());
        let (tile, position) = self.die.place(at);
        let first = if tile == 0 { 0 } else { u32::from(self.die.positions) };
        self.die.is_core_tile(tile).then(|| socket * self.die_cores() + first + u32::from(position))
    }

    /// Coordinate of a node in a dimension, and how far two numbers of nodes are apart that differ there by one.
    pub fn coordinate(&self, node: u32, dimension: usize) -> (u32, u32) {
        let stride: u32 = self.size[..dimension].iter().product();
        (node / stride % self.size[dimension], stride)
    }

    /// Coordinates of a node.
    pub fn coordinates(&self, node: u32) -> Vec<u32> {
        (0..self.size.len()).map(|dimension| self.coordinate(node, dimension).0).collect()
    }

    /// Switch in the die and port of an HSIO slot.
    fn slot(&self, slot: u32) -> (u32, u16) {
        let (k, at) = (slot / self.die_switches(), slot % self.die_switches());
        (at, if k < 2 { k as u16 } else { 8 + k as u16 })
    }

    /// Where the link to a joined socket of the node leaves: switch in the die and port. Of several links between two subnodes at
    /// a socket it is the `key`-th, modulo their number.
    pub fn to_socket(&self, socket: u32, other: u32, key: u32) -> (u32, u16) {
        let each = self.subnode_sockets();
        let (at, own, far) = (socket % each, socket / each, other / each);
        if own == far {
            return self.slot(if other < socket { other % each } else { other % each - 1 });
        }
        let rank = if far < own { far } else { far - 1 };
        let there = (self.subnodes.links - at).div_ceil(each);
        self.slot(each - 1 + rank * self.layers() + key % there)
    }

    /// The link to another subnode at a slot behind those to sockets of the own one.
    fn to_subnode(&self, place: NodePlace, slot: u32) -> Option<NodeLink> {
        let (each, layers) = (self.subnode_sockets(), self.layers());
        let (at, own, rank, layer) = (place.socket % each, place.socket / each, slot / layers, slot % layers);
        if layer * each + at >= self.subnodes.links {
            return None;
        }
        let far = if rank < own { rank } else { rank + 1 };
        let (switch, port) = self.to_socket(far * each + at, place.socket, layer);
        let switch = self.number(NodePlace { socket: far * each + at, switch, ..place });
        Some(NodeLink { switch, port, level: INTER_SUBNODE, steps: 1 })
    }

    /// Where the link from coordinate `from` to coordinate `to` of a dimension leaves: socket, switch in the die, port.
    pub fn to_node(&self, dimension: usize, from: u32, to: u32) -> (u32, u32, u16) {
        let before: u32 = self.size[..dimension].iter().map(|&side| side - 1).sum();
        let link = before + if to < from { to } else { to - 1 };
        let (switch, port) = self.slot(self.inner_slots() + link / self.sockets);
        (link % self.sockets, switch, port)
    }

    /// The link at a port of a switch; `None` if the port is free or leads to a core.
    pub fn link(&self, switch: u32, out: u16) -> Option<NodeLink> {
        let place = self.place(switch);
        let (tile, position) = self.die.place(place.switch);
        let Die { tiles, positions } = self.die;
        let first = switch - place.switch;
        let inside = |tile: u16, position: u16, port: u16, level: u8| NodeLink {
            switch: first + u32::from(tile) * u32::from(positions) + u32::from(position),
            port,
            level,
            steps: 1,
        };
        let k = match out {
            port::X..=port::DIAGONAL => {
                let partner = position ^ (out - port::X + 1);
                return (partner < positions).then(|| inside(tile, partner, out, 1));
            }
            port::PLUS | port::PLUS2 => return (tile + 1 < tiles).then(|| inside(tile + 1, position, out + 1, 2)),
            port::MINUS | port::MINUS2 => return (tile > 0).then(|| inside(tile - 1, position, out - 1, 2)),
            port::LOCAL => return None,
            0 | 1 => u32::from(out),
            _ => u32::from(out) - 8,
        };
        if k >= u32::from(self.hsio_ports) {
            return None;
        }
        let slot = k * self.die_switches() + place.switch;
        let each = self.subnode_sockets();
        if slot < each - 1 {
            let own = place.socket % each;
            let other = place.socket - own + if slot < own { slot } else { slot + 1 };
            let (at, port) = self.to_socket(other, place.socket, 0);
            let far = NodePlace { socket: other, switch: at, ..place };
            return Some(NodeLink { switch: self.number(far), port, level: INTER_SOCKET, steps: 1 });
        }
        if slot < self.inner_slots() {
            return self.to_subnode(place, slot + 1 - each);
        }
        let mut rank = (slot - self.inner_slots()) * self.sockets + place.socket;
        for (dimension, &side) in self.size.iter().enumerate() {
            if rank >= side - 1 {
                rank -= side - 1;
                continue;
            }
            let (from, stride) = self.coordinate(place.node, dimension);
            let to = if rank < from { rank } else { rank + 1 };
            let (socket, at, port) = self.to_node(dimension, to, from);
            let far = NodePlace { node: place.node - from * stride + to * stride, socket, switch: at };
            return Some(NodeLink { switch: self.number(far), port, level: INTER_NODE, steps: from.abs_diff(to) });
        }
        None
    }

    /// The output port of the next step of the dimension-ordered way from switch `at` to switch `to`; `None` if they are
    /// the same.
    pub fn hop(&self, at: u32, to: u32) -> Option<u16> {
        if at == to {
            return None;
        }
        let (here, there) = (self.place(at), self.place(to));
        let (socket, switch, out) = if here.node == there.node {
            (there.socket, there.switch, port::LOCAL)
        } else {
            let differs = (0..self.size.len()).find_map(|dimension| {
                let (from, to) = (self.coordinate(here.node, dimension).0, self.coordinate(there.node, dimension).0);
                (from != to).then(|| self.to_node(dimension, from, to))
            });
            differs.expect("two nodes differ in a coordinate")
        };
        let (switch, out) = if here.socket == socket {
            (switch, out)
        } else {
            self.to_socket(here.socket, self.next_socket(here.socket, socket), there.switch)
        };
        let ((tile, position), (to_tile, to_position)) = (self.die.place(here.switch), self.die.place(switch));
        Some(if position != to_position {
            port::X + (position ^ to_position) - 1
        } else if tile != to_tile {
            if to_tile > tile { port::PLUS } else { port::MINUS }
        } else {
            out
        })
    }

    /// Whether a port leaves the die.
    pub fn is_hsio(port: u16) -> bool {
        !(port::X..port::EXTERNAL).contains(&port)
    }

    /// Classes of channels that point-to-point packets need: one more than HSIO links on the longest way.
    pub fn classes(&self) -> u8 {
        let (dimensions, each) = (self.dimensions() as u8, self.subnode_sockets());
        let crosses = u8::from(self.subnodes.count > 1);
        let within = u8::from(each > 1) * if crosses == 1 && self.subnodes.links < each { 2 } else { 1 };
        dimensions + 1 + (within + crosses) * (dimensions + 1)
    }

    /// The channels that a packet may use next, by the port and channel it came in by.
    pub fn channels(&self, port: u16, channel: u8, channels: u8) -> u32 {
        let classes = self.classes();
        let class = match port {
            port::LOCAL => 0,
            _ => (channel % classes + u8::from(Self::is_hsio(port))).min(classes - 1),
        };
        (class..channels).step_by(usize::from(classes)).fold(0, |set, channel| set | 1 << channel)
    }

    /// Links in the whole system, by level; core links are the first level.
    pub fn links_by_level(&self) -> [u64; 6] {
        let (subnodes, each) = (u64::from(self.subnodes.count), u64::from(self.subnode_sockets()));
        let (nodes, sockets) = (self.nodes().unwrap_or(0), u64::from(self.sockets));
        let Die { tiles, positions } = self.die;
        let (tiles, positions) = (u64::from(tiles), u64::from(positions));
        [
            nodes * sockets * u64::from(self.die_cores()),
            nodes * sockets * tiles * (positions * (positions - 1) / 2),
            nodes * sockets * (tiles - 1) * positions * 2,
            nodes * subnodes * (each * (each - 1) / 2),
            nodes * self.peers() / 2,
            nodes * (subnodes * (subnodes - 1) / 2) * u64::from(self.subnodes.links),
        ]
    }

    /// Latency and width of a link.
    pub fn params(&self, common: &Common, link: &NodeLink) -> LinkParams {
        let latency = match link.level {
            0 => common.local.latency,
            INTER_SOCKET => self.socket_latency,
            INTER_SUBNODE => self.subnodes.latency,
            INTER_NODE => {
                let steps = if self.distance { link.steps } else { 1 };
                u16::try_from(u32::from(self.node_latency).saturating_mul(steps)).unwrap_or(u16::MAX)
            }
            _ => common.link.latency,
        };
        let cycles_per_flit = match link.level {
            0 => common.local.cycles_per_flit,
            INTER_SOCKET => self.socket_width,
            INTER_SUBNODE => self.subnodes.width,
            INTER_NODE => self.node_width,
            _ => common.link.cycles_per_flit,
        };
        LinkParams { latency, cycles_per_flit }
    }

    /// Kinds of links that leave a die, with what they are, those between neighbouring nodes among them.
    pub fn links(&self) -> impl Iterator<Item = (&'static str, LinkParams)> {
        let params = |latency, cycles_per_flit| LinkParams { latency, cycles_per_flit };
        let Subnodes { latency, width, count, .. } = self.subnodes;
        let between = (count > 1).then(|| ("subnode_link", params(latency, width)));
        let socket = ("socket_link", params(self.socket_latency, self.socket_width));
        let node = ("node_link", params(self.node_latency, self.node_width));
        [socket].into_iter().chain(between).chain([node])
    }

    /// The latency of the longest link between nodes, before it is cut to what a link can have.
    pub fn longest(&self) -> u64 {
        let steps = self.size.iter().map(|&side| u64::from(side) - 1).max().unwrap_or(0).max(1);
        u64::from(self.node_latency) * if self.distance { steps } else { 1 }
    }

    /// Hierarchical name of a switch without its last part: `node1_0.socket2.tile0.core3`.
    fn path(&self, switch: u32) -> String {
        let place = self.place(switch);
        let at: Vec<String> = self.coordinates(place.node).iter().map(u32::to_string).collect();
        let node = if at.is_empty() { "0".to_owned() } else { at.join("_") };
        let (tile, _) = self.die.place(place.switch);
        format!("node{node}.socket{}.tile{tile}.{}", place.socket, self.die.switch_name(place.switch))
    }

    /// Names of its levels of links; without subnodes there are none between them.
    fn levels(&self) -> Vec<String> {
        let count = if self.subnodes.count > 1 { LEVELS.len() } else { usize::from(INTER_SUBNODE) };
        LEVELS[..count].iter().copied().map(String::from).collect()
    }

    /// A site without switches and links.
    pub(super) fn bare_site(&self, common: &Common) -> Site {
        let cores = self.cores().expect("a size that was checked") as u32;
        Site {
            plan: Plan { vcs: common.vcs, nodes: Vec::new(), links: Vec::new(), levels: self.levels() },
            ends: (0..cores).map(|end| self.end_place(end)).collect(),
            cores: cores as usize,
            external_ports: self.switch_ports(),
        }
    }

    /// Adds the switches and links of a [bare layout](Nodes::bare) that are used to its plan: `used` says so of every port, as a bit of a word a
    /// switch. All switches and end points keep their numbers; those that nothing uses have no ports and cost a few
    /// bytes, and no node has a name (the shape has them).
    ///
    /// With `compact` a switch has only the ports that carry a link, numbered from 0 in their order. Then the answer has
    /// those ports of every switch, a bit each; else it is empty.
    ///
    /// # Panics
    /// If a port that is used has no link.
    pub fn add_used_links(
        &self,
        plan: &mut Plan,
        ends: &[EndPlace],
        common: &Common,
        used: &[u64],
        compact: bool,
    ) -> Vec<u64> {
        let node = |kind: NodeKind, ports: u16, engine: bool| PlanNode {
            kind,
            ports,
            engine,
            name: String::new(),
            path: String::new(),
        };
        let ports = self.switch_ports() + u16::from(common.engine);
        let mut wired = Vec::new();
        if compact {
            // Where a link leaves and where it arrives.
            wired = used.to_vec();
            for (switch, &outs) in used.iter().enumerate() {
                for out in (0..self.switch_ports()).filter(|out| outs >> out & 1 == 1 && *out != port::LOCAL) {
                    let link = self.link(switch as u32, out).expect("only ports with a link are used");
                    wired[link.switch as usize] |= 1 << link.port;
                }
            }
        }
        let number = |switch: u32, port: u16| match wired.get(switch as usize) {
            Some(ports) => (ports & ((1 << port) - 1)).count_ones() as u16,
            None => port,
        };
        plan.nodes = Vec::with_capacity(used.len() + ends.len());
        for (switch, &outs) in used.iter().enumerate() {
            let there = wired.get(switch).copied().unwrap_or(outs) != 0;
            let ports = wired.get(switch).map_or(ports, |ports| ports.count_ones() as u16 + u16::from(common.engine));
            plan.nodes.push(node(NodeKind::Switch, if there { ports } else { 0 }, there && common.engine));
        }
        for place in ends {
            let there = used[place.switch as usize] >> place.port & 1;
            plan.nodes.push(node(NodeKind::End, there as u16, false));
        }
        // At most a link for each used port; what is not needed of it is never touched.
        plan.links.reserve(used.iter().map(|outs| outs.count_ones() as usize).sum());
        for (switch, &outs) in used.iter().enumerate() {
            let switch = switch as u32;
            for out in (0..self.switch_ports()).filter(|out| outs >> out & 1 == 1) {
                if out == port::LOCAL {
                    let end = self.end_of(switch).expect("only cores have a local link") + used.len() as u32;
                    plan.links.push(join((end, 0), (switch, number(switch, out)), common.local, 0));
                    continue;
                }
                let link = self.link(switch, out).expect("only ports with a link are used");
                // Each link once: from its lower end, or from the higher one if the lower does not use it.
                if switch < link.switch || used[link.switch as usize] >> link.port & 1 == 0 {
                    let params = self.params(common, &link);
                    let far = (link.switch, number(link.switch, link.port));
                    plan.links.push(join((switch, number(switch, out)), far, params, link.level));
                }
            }
        }
        wired
    }
}

impl Topology for Nodes {
    fn kind(&self) -> TopologyKind {
        TopologyKind::Nodes
    }

    fn switches(&self) -> Option<u64> {
        self.nodes()?.checked_mul(u64::from(self.sockets))?.checked_mul(u64::from(self.die_switches()))
    }

    fn end_points(&self) -> Option<u64> {
        self.cores()
    }

    fn ports(&self) -> u32 {
        self.switch_ports().into()
    }

    /// `n1_0_s2_core3`.
    fn switch_name(&self, switch: u32) -> String {
        let place = self.place(switch);
        let mut name = String::from("n");
        if self.size.is_empty() {
            name.push('0');
        }
        for (dimension, at) in self.coordinates(place.node).into_iter().enumerate() {
            let _ = write!(name, "{}{at}", if dimension > 0 { "_" } else { "" });
        }
        let _ = write!(name, "_s{}_{}", place.socket, self.die.switch_name(place.switch));
        name
    }

    fn switch_by_numbers(&self, name: &str, numbers: &[u64]) -> Option<u64> {
        let dimensions = self.size.len().max(1);
        let [coordinates @ .., socket, number] = numbers else { return None };
        if coordinates.len() != dimensions || *socket >= u64::from(self.sockets) {
            return None;
        }
        let local = name.rsplit('_').next()?;
        let switch = self.die.switch_by_numbers(local, &[*number]).filter(|&at| at < u64::from(self.die_switches()))?;
        let node = if self.size.is_empty() { 0 } else { grid::coordinate_number(&self.size, coordinates)? };
        Some((node * u64::from(self.sockets) + socket) * u64::from(self.die_switches()) + switch)
    }

    fn end_place(&self, end: u32) -> EndPlace {
        let place = self.die.end_place(end % self.die_cores());
        EndPlace { switch: end / self.die_cores() * self.die_switches() + place.switch, ..place }
    }

    fn describe(&self) -> String {
        let (tiles, positions) = (self.die.tiles, self.die.positions);
        let count = self.nodes().unwrap_or(0);
        let of = if self.size.len() > 1 { format!(" ({})", grid::sides(&self.size)) } else { String::new() };
        let plural = |count: u64, more: &'static str| if count == 1 { "" } else { more };
        format!(
            "{count} node{}{of} of {}{} socket{} of {tiles} tile{} x {positions} switch{}",
            plural(count, "s"),
            if self.subnodes.count > 1 { format!("{} subnodes of ", self.subnodes.count) } else { String::new() },
            self.subnode_sockets(),
            plural(self.subnode_sockets().into(), "s"),
            plural(tiles.into(), "s"),
            plural(positions.into(), "es")
        )
    }

    /// Dies in a row or a square for a node, nodes on a grid.
    fn position(&self, switch: u32) -> (f64, f64) {
        let place = self.place(switch);
        let columns = f64::from(self.sockets).sqrt().ceil().max(1.0) as u32;
        let (width, height) = (f64::from(self.die.tiles) * 3.0 + 1.0, 3.5);
        let rows = self.sockets.div_ceil(columns);
        let (dx, dy) = self.die.position(place.switch);
        let (x, y) = if self.size.is_empty() { (0.0, 0.0) } else { grid::position(&self.size, place.node) };
        (
            x * (width * f64::from(columns) + 1.5) + f64::from(place.socket % columns) * width + dx,
            y * (height * f64::from(rows) + 1.5) + f64::from(place.socket / columns) * height + dy,
        )
    }

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        let own: [(_, Parameter); 2] = [("size", self.size[..].into()), ("sockets", self.sockets.into())];
        let subnodes: [(_, Parameter); 2] =
            [("subnodes", self.subnodes.count.into()), ("subnode_links", self.subnodes.links.into())];
        let latency = if self.distance { Lengths::Distance } else { Lengths::Equal };
        let last: [(_, Parameter); 2] = [("hsio_ports", self.hsio_ports.into()), ("latency", latency.name().into())];
        let subnodes = subnodes.into_iter().filter(|_| self.subnodes.count > 1);
        own.into_iter().chain(subnodes).chain(self.die.parameters()).chain(last).collect()
    }

    /// Fewer nodes and sockets, but as many dimensions.
    fn smaller(&self) -> Option<Shape> {
        let longest = self.size.iter().copied().max().unwrap_or(1);
        if longest > 2 {
            let size = self.size.iter().map(|&side| side.min(longest - 1).min(8)).collect();
            return Some(Shape::Nodes(Nodes { size, ..self.clone() }));
        }
        let each = self.subnode_sockets();
        if self.subnodes.count > 1 {
            let fewer = (each - 1).min(4);
            let subnodes = Subnodes { links: self.columns().min(fewer), ..self.subnodes };
            let nodes = || Nodes { sockets: fewer * subnodes.count, subnodes, ..self.clone() };
            return (each > 1).then(|| Shape::Nodes(nodes()));
        }
        (self.sockets > 2).then(|| Shape::Nodes(Nodes { sockets: (self.sockets - 1).min(4), ..self.clone() }))
    }

    fn algorithms(&self) -> &'static [Algorithm] {
        &[Algorithm::DimensionOrder]
    }

    /// That between nodes: all others are as `[link]` says.
    fn longest_link(&self, _: u64) -> (u64, u64) {
        (self.longest(), self.node_latency.into())
    }

    /// Too few ports leave the dies of a node (requirement P-TOPO-4).
    fn fault(&self, given: &TopologyFile) -> Option<Complaint> {
        let budget = self.budget();
        if budget.suffices {
            return None;
        }
        let key = if given.size.is_some() && budget.nodes > 0 { "size" } else { "sockets" };
        let inside = budget.sockets + budget.subnodes;
        let free = budget.ports.saturating_sub(inside);
        let message = format!(
            "a node would need {} HSIO ports for other nodes and {inside} for its sockets, it has {}",
            budget.nodes, budget.ports
        );
        let expected = if budget.subnodes > 0 {
            "fewer sockets, `topology.subnode_links` or nodes, or more `topology.hsio_ports`".to_owned()
        } else if budget.ports < budget.sockets {
            format!("up to {} sockets, or more `topology.hsio_ports`", budget.ports / u64::from(self.sockets) + 1)
        } else {
            format!("sides whose sum is at most {}, or more `topology.hsio_ports`", free + self.size.len() as u64)
        };
        Some(Complaint::at(format!("topology.{key}"), message, expected))
    }

    fn site(&self, common: &Common) -> Site {
        let switches = self.switches().expect("a size that was checked") as u32;
        let cores = self.cores().expect("a size that was checked") as u32;
        let ports = self.ports() as u16;
        let nodes = (0..switches).map(|switch| PlanNode {
            kind: NodeKind::Switch,
            ports: ports + u16::from(common.engine),
            engine: common.engine,
            name: self.switch_name(switch),
            path: format!("{}.switch", self.path(switch)),
        });
        let mut links = Vec::new();
        for switch in 0..switches {
            for out in 0..ports {
                let Some(link) = self.link(switch, out).filter(|link| switch < link.switch) else { continue };
                links.push(join((switch, out), (link.switch, link.port), self.params(common, &link), link.level));
            }
        }
        let plan = Plan { vcs: common.vcs, nodes: nodes.collect(), links, levels: self.levels() };
        let mut site = Site::new(plan, cores as usize, ports);
        for end in 0..cores {
            let place = self.end_place(end);
            let name = format!("{}.memory", self.switch_name(place.switch));
            site.push_end(place, common.local, name, format!("{}.memory", self.path(place.switch)));
        }
        site
    }
}

/// How a system of nodes is read.
pub(super) const READER: Reader = Reader {
    called: "system of nodes",
    keys: &["size", "sockets", "subnodes", "subnode_links", "tiles", "positions", "hsio_ports", "latency"],
    sized_by: |given| if given.size.is_none() { "sockets" } else { "size" },
    read: |given, around, complaints| {
        refuse_folded(given, complaints);
        Some(Shape::Nodes(Nodes {
            size: given.size.iter().flatten().map(|&side| shape_count(side)).collect(),
            subnodes: read_subnodes(given, around, complaints)?,
            sockets: sockets(given) as u32,
            die: Die::of(given),
            hsio_ports: given.hsio_ports.unwrap_or(2) as u16,
            socket_latency: around.socket.latency,
            node_latency: around.node.latency,
            socket_width: around.socket.cycles_per_flit,
            node_width: around.node.cycles_per_flit,
            distance: given.latency == Some(Lengths::Distance),
        }))
    },
};

/// Sockets of a node.
fn sockets(given: &TopologyFile) -> u64 {
    given.sockets.unwrap_or(16 * given.subnodes.unwrap_or(1))
}

/// How the sockets of a node are divided.
fn read_subnodes(given: &TopologyFile, around: &Surroundings<'_>, complaints: &mut Vec<Complaint>) -> Option<Subnodes> {
    let (count, sockets) = (given.subnodes.unwrap_or(1), sockets(given));
    if !sockets.is_multiple_of(count) {
        let key = if given.sockets.is_some() { "sockets" } else { "subnodes" };
        let message = format!("{sockets} sockets cannot be divided into {count} equal subnodes");
        complaints.push(Complaint::at(format!("topology.{key}"), message, format!("a multiple of {count}")));
        return None;
    }
    if count == 1 {
        let keys = [("topology.subnode_links", given.subnode_links.is_some()), ("link.subnode", around.subnode_table)];
        for (key, _) in keys.iter().filter(|(_, given)| *given) {
            let expected = "`topology.subnodes` = 2 or more";
            complaints.push(Complaint::at_key(*key, "a node without subnodes has no such links", expected));
        }
        return Some(Subnodes::default());
    }
    let LinkParams { latency, cycles_per_flit } =
        around.subnode.unwrap_or(LinkParams { latency: 1, cycles_per_flit: 1 });
    let links = given.subnode_links.unwrap_or(sockets / count) as u32;
    Some(Subnodes { count: count as u32, links, latency, width: cycles_per_flit })
}

#[cfg(test)]
mod tests;
