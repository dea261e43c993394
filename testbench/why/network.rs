//! What flits did, told from the registers of queues and outputs: when each came into a queue, left it, and was sent.
//!
//! | event | register that shows it |
//! |---|---|
//! | a flit is sent by a port in cycle t | the port's output register holds it in t + 1 |
//! | it comes into the queue at the far end | after the stages behind allocation, the link, and the cycles that a flit takes |
//! | a flit leaves a queue in cycle t | what came in t + 1 and the number of flits before and after say so |

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use watershed::fabric::{NodeKind, Plan};
use watershed::pbv::packet::Packet;

use crate::registers::{Register, Registers};

/// A flit that a port sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    pub cycle: u64,
    pub vc: u8,
    pub id: u64,
    pub seq: u64,
    pub word: u64,
    /// Its words behind the first, of a flit that has some.
    pub more: [u64; MORE],
}

/// Words behind the first that the largest flit of these tests has.
pub const MORE: usize = 7;

impl Sent {
    /// The flit, on whatever channel it is.
    pub fn flit(&self) -> (u64, u64, u64, [u64; MORE]) {
        (self.id, self.seq, self.word, self.more)
    }
}

/// The words of a frame whose flits have this many bits each, the uppermost ones of their words.
pub fn words(list: &[Sent], bits: u64) -> Vec<u64> {
    let (mut all, mut word, mut filled) = (Vec::new(), 0_u64, 0_u64);
    for sent in list {
        let mut left = bits;
        for of in std::iter::once(sent.word).chain(sent.more) {
            let take = left.min(64);
            if take == 0 {
                break;
            }
            let of = of >> (64 - take) << (64 - take);
            word |= of >> filled;
            if filled + take >= 64 {
                all.push(word);
                word = if filled == 0 { 0 } else { of << (64 - filled) };
            }
            filled = (filled + take) % 64;
            left -= take;
        }
    }
    all.extend((filled > 0).then_some(word));
    all
}

/// What one channel of a port's queue saw.
#[derive(Debug, Default)]
pub struct Queue {
    /// Flits that came, with the cycle in which they came.
    pub came: Vec<Sent>,
    /// The cycles in which they left, in the same order.
    pub left: Vec<u64>,
    /// The place of the first flit of each one's packet.
    pub heads: Vec<usize>,
}

/// What a port sent on a channel.
struct Packets {
    /// The cycle of each flit.
    cycles: Vec<u64>,
    /// The place of the first flit of each one's packet.
    heads: Vec<usize>,
}

/// How many flits of a list, which is that of a set-routed channel or not, are the first packet.
type Length = Box<dyn Fn(bool, &[Sent]) -> usize>;

/// Flits that follow each other with one id and number, up to the next header: the end point that it goes to, and the cycle.
pub fn run(list: &[Sent]) -> usize {
    let is_header = |sent: &Sent| sent.word >> 40 < 64 && sent.word & ((1 << 40) - 1) < 1 << 24;
    let rest = list[1..].iter();
    1 + rest.take_while(|sent| (sent.id, sent.seq) == (list[0].id, list[0].seq) && !is_header(sent)).count()
}

/// As many flits of this many bits as can be decoded as a frame of the PBV family; all, if it is none.
pub fn frames(bits: u64) -> impl Fn(bool, &[Sent]) -> usize {
    const LONGEST_BITS: u64 = 8 * 4112;
    move |_, list| {
        let most = list.len().min(LONGEST_BITS.div_ceil(bits) as usize);
        // A frame of another length than the lowest bits of its first 32 say is refused: the others need not be tried.
        let first = words(&list[..most.min(64_u64.div_ceil(bits) as usize)], bits)[0];
        let length = 4 + (first >> 32 & 0x3ff) / 2;
        let flits = (64 * length).div_ceil(bits) as usize;
        if flits <= most && Packet::from_flits(&words(&list[..flits], bits)[..length as usize]).is_ok() {
            return flits;
        }
        let all = (bits * most as u64).div_ceil(64);
        ((64 * all).div_ceil(bits) as usize).min(list.len())
    }
}

/// A port of a node.
pub type Port = (u32, u16);

/// The other end of a port's link.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub peer: Port,
    pub latency: u64,
    pub cycles_per_flit: u64,
}

/// A system and the registers of its run.
pub struct Network<'a> {
    pub registers: &'a Registers,
    pub plan: &'a Plan,
    /// Stages in front of switch allocation, and behind it.
    pub front: u64,
    pub post: u64,
    length: Length,
    /// Flits of a frame of the armed family.
    pub frame_flits: usize,
    /// Whether engines in wires store what comes on channel 0 before they send it.
    pub stores: bool,
    /// Whether a channel is given to a packet only when all credits of the one before are back.
    pub drains: bool,
    nodes: HashMap<&'a str, u32>,
    links: HashMap<Port, Link>,
    sent: RefCell<HashMap<Port, Rc<Vec<Sent>>>>,
    queues: RefCell<HashMap<(Port, u8), Rc<Queue>>>,
    packets: RefCell<HashMap<(Port, u8), Rc<Packets>>>,
}

impl<'a> Network<'a> {
    /// A system whose switches have so many stages.
    pub fn new(
        registers: &'a Registers,
        plan: &'a Plan,
        stages: u64,
        length: impl Fn(bool, &[Sent]) -> usize + 'static,
    ) -> Network<'a> {
        let mut links = HashMap::new();
        for link in &plan.links {
            for (here, peer) in [(link.a, link.b), (link.b, link.a)] {
                let (latency, cycles_per_flit) = (u64::from(link.latency), u64::from(link.cycles_per_flit));
                links.insert(here, Link { peer, latency, cycles_per_flit });
            }
        }
        let nodes = plan.nodes.iter().zip(0..).map(|(node, number)| (node.name.as_str(), number)).collect();
        // All but the stages of allocation and traversal is in front.
        let post = u64::from(stages > 1);
        Network {
            registers,
            plan,
            front: stages - 1 - post,
            post,
            length: Box::new(length),
            frame_flits: 11,
            stores: false,
            drains: false,
            nodes,
            links,
            sent: RefCell::default(),
            queues: RefCell::default(),
            packets: RefCell::default(),
        }
    }

    pub fn kind(&self, node: u32) -> NodeKind {
        self.plan.nodes[node as usize].kind
    }

    pub fn is_switch(&self, node: u32) -> bool {
        self.kind(node) == NodeKind::Switch
    }

    pub fn name(&self, node: u32) -> &'a str {
        &self.plan.nodes[node as usize].name
    }

    pub fn path(&self, node: u32) -> &'a str {
        &self.plan.nodes[node as usize].path
    }

    pub fn ports(&self, node: u32) -> u16 {
        self.plan.nodes[node as usize].ports
    }

    pub fn is_set(&self, vc: u8) -> bool {
        self.plan.vcs.is_set(vc)
    }

    pub fn link(&self, port: Port) -> Option<Link> {
        self.links.get(&port).copied()
    }

    /// The node with this name.
    pub fn node(&self, name: &str) -> Option<u32> {
        self.nodes.get(name).copied()
    }

    /// How a step of `why` names a port.
    pub fn place(&self, (node, port): Port) -> String {
        if self.is_switch(node) { format!("{}.P{port}", self.name(node)) } else { self.name(node).to_owned() }
    }

    /// The two ends of the link that a step names, `a.P1 -> b.P2`.
    pub fn link_named(&self, place: &str) -> Option<(Port, Port)> {
        let (from, to) = place.split_once(" -> ")?;
        let fits = |port: Port, name: &str| self.place(port) == name;
        let ends = |name: &str| {
            let node = self.node(name).or_else(|| self.node(name.rsplit_once(".P")?.0));
            node.into_iter().flat_map(|node| (0..self.ports(node)).map(move |port| (node, port))).collect::<Vec<_>>()
        };
        ends(from)
            .into_iter()
            .filter(|&port| fits(port, from))
            .filter_map(|port| Some((port, self.link(port)?.peer)))
            .find(|&(_, peer)| fits(peer, to))
    }

    fn register(&self, (node, port): Port, what: &str) -> Option<&'a Register> {
        self.registers.find(&format!("{}.{}", self.path(node), what.replace('#', &port.to_string())))
    }

    /// All that a port sent.
    pub fn sent(&self, port: Port) -> Rc<Vec<Sent>> {
        if let Some(known) = self.sent.borrow().get(&port) {
            return Rc::clone(known);
        }
        let mut list = Vec::new();
        if let Some(valid) = self.register(port, "out#.valid") {
            let [vc, id, seq, word] =
                ["vc", "id", "seq", "word"].map(|name| self.register(port, &format!("out#.{name}")).unwrap());
            let more: [_; MORE] = std::array::from_fn(|k| self.register(port, &format!("out#.more{}.word", k + 1)));
            let changes: Vec<u64> = valid.changes().chain([self.registers.last + 1]).collect();
            for span in changes.windows(2).filter(|span| valid.at(span[0]) == Some(1)) {
                list.extend((span[0]..span[1]).map(|cycle| Sent {
                    cycle: cycle - 1,
                    vc: vc.value(cycle) as u8,
                    id: id.value(cycle),
                    seq: seq.value(cycle),
                    word: word.value(cycle),
                    more: more.map(|more| more.map_or(0, |more| more.value(cycle))),
                }));
            }
        }
        let list = Rc::new(list);
        self.sent.borrow_mut().insert(port, Rc::clone(&list));
        list
    }

    /// What a port sent in a cycle.
    pub fn sent_in(&self, port: Port, cycle: u64) -> Option<Sent> {
        let sent = self.sent(port);
        sent.binary_search_by_key(&cycle, |sent| sent.cycle).ok().map(|at| sent[at])
    }

    /// Cycles from sending to coming into the far queue.
    pub fn way(&self, from: Port) -> u64 {
        let link = self.link(from).expect("a port that sends has a link");
        link.latency + link.cycles_per_flit + if self.is_switch(from.0) { self.post } else { 0 }
    }

    /// The queue of a port that has a link.
    pub fn queue(&self, port: Port, vc: u8) -> Rc<Queue> {
        if let Some(known) = self.queues.borrow().get(&(port, vc)) {
            return Rc::clone(known);
        }
        let peer = self.link(port).expect("a queue with a link").peer;
        let way = self.way(peer);
        let came: Vec<Sent> = self.sent(peer).iter().filter(|sent| sent.vc == vc).copied().collect();
        let came: Vec<Sent> = came.into_iter().map(|sent| Sent { cycle: sent.cycle + way, ..sent }).collect();
        let mut left = Vec::new();
        if let Some(flits) = self.register(port, &format!("in#.vc{vc}.flits")) {
            let mut edges: Vec<u64> = flits.changes().chain(came.iter().map(|came| came.cycle)).collect();
            edges.sort_unstable();
            edges.dedup();
            for edge in edges.into_iter().filter(|&edge| edge > 0 && edge <= self.registers.last) {
                // A run ends before what arrives in its last cycle is put into queues.
                let arrives = edge < self.registers.last;
                let comes = i64::from(arrives && came.binary_search_by_key(&edge, |came| came.cycle).is_ok());
                match comes - flits.steps(edge - 1) {
                    0 => {}
                    1 => left.push(edge - 1),
                    wrong => panic!("{wrong} flits left {} vc{vc} in cycle {}", self.place(port), edge - 1),
                }
            }
        }
        let heads = self.packets(peer, vc).heads.clone();
        let queue = Rc::new(Queue { came, left, heads });
        self.queues.borrow_mut().insert((port, vc), Rc::clone(&queue));
        queue
    }

    /// The place of the first flit of the packet of each flit.
    fn heads(&self, vc: u8, list: &[Sent]) -> Vec<usize> {
        let mut heads = Vec::with_capacity(list.len());
        while heads.len() < list.len() {
            let head = heads.len();
            heads.extend(std::iter::repeat_n(head, (self.length)(self.is_set(vc), &list[head..]).max(1)));
        }
        heads
    }

    /// The packets that a port sent on a channel.
    fn packets(&self, port: Port, vc: u8) -> Rc<Packets> {
        if let Some(known) = self.packets.borrow().get(&(port, vc)) {
            return Rc::clone(known);
        }
        let sent: Vec<Sent> = self.sent(port).iter().filter(|sent| sent.vc == vc).copied().collect();
        let cycles = sent.iter().map(|sent| sent.cycle).collect();
        let packets = Rc::new(Packets { cycles, heads: self.heads(vc, &sent) });
        self.packets.borrow_mut().insert((port, vc), Rc::clone(&packets));
        packets
    }

    /// The cycle in which the first flit of a packet left the block that sent one of its flits.
    pub fn head_of(&self, port: Port, flit: &Sent) -> u64 {
        let packets = self.packets(port, flit.vc);
        let at = packets.cycles.binary_search(&flit.cycle).expect("the port sent it");
        packets.cycles[packets.heads[at]]
    }

    /// The cycles in which a port sent the first flits of point-to-point packets.
    pub fn packets_sent(&self, port: Port) -> Vec<u64> {
        let channels = self.plan.vcs.set..self.plan.vcs.total();
        let heads = |vc: u8| {
            let packets = self.packets(port, vc);
            let heads: std::collections::BTreeSet<usize> = packets.heads.iter().copied().collect();
            heads.into_iter().map(|at| packets.cycles[at]).collect::<Vec<u64>>()
        };
        channels.flat_map(heads).collect()
    }

    /// Point-to-point packets whose tails were taken: when, by which end point, from which channel, and when each was made,
    /// in the order of arrival.
    pub fn packets_arrived(&self) -> Vec<((u64, u32, u8), u64)> {
        let mut list = Vec::new();
        for node in (0..self.plan.nodes.len() as u32).filter(|&node| self.kind(node) == NodeKind::End) {
            for vc in self.plan.vcs.set..self.plan.vcs.total() {
                let queue = self.queue((node, 0), vc);
                for (at, &left) in queue.left.iter().enumerate() {
                    // The tail of the last packet may not have come.
                    let next = queue.heads.get(at + 1);
                    let is_tail = next.is_some_and(|next| *next != queue.heads[at])
                        || next.is_none() && self.flits((node, 0), vc, self.registers.last) == 0;
                    if is_tail {
                        list.push(((left, node, vc), queue.came[queue.heads[at]].word & ((1 << 40) - 1)));
                    }
                }
            }
        }
        list.sort_unstable();
        list
    }

    /// What the packet at the head of a queue is doing: the register.
    pub fn phase(&self, port: Port, vc: u8, cycle: u64) -> u64 {
        self.register(port, &format!("in#.vc{vc}.phase")).map_or(0, |phase| phase.value(cycle))
    }

    /// Credits of an output channel in a cycle: the register.
    pub fn credits(&self, port: Port, vc: u8, cycle: u64) -> u64 {
        let name = format!("out#.credits{vc}.count");
        self.register(port, &name).unwrap_or_else(|| panic!("{} has no {name}", self.place(port))).value(cycle)
    }

    /// Whether a channel of an output has the credits that a packet needs to be given it.
    pub fn has_room(&self, port: Port, vc: u8, cycle: u64) -> bool {
        let credits = self.credits(port, vc, cycle);
        credits > 0 && (!self.drains || credits == self.credits(port, vc, 0))
    }

    /// Whether a packet holds an output channel: the register.
    pub fn is_held(&self, port: Port, vc: u8, cycle: u64) -> bool {
        self.register(port, &format!("out#.credits{vc}.held")).unwrap().value(cycle) == 1
    }

    /// Whether a flit that was sent before still keeps the link of a port busy.
    pub fn is_busy(&self, port: Port, cycle: u64) -> bool {
        let takes = self.link(port).map_or(1, |link| link.cycles_per_flit);
        (cycle.saturating_sub(takes - 1)..cycle).any(|before| self.sent_in(port, before).is_some())
    }

    /// Flits in a queue in a cycle: the register.
    pub fn flits(&self, port: Port, vc: u8, cycle: u64) -> u64 {
        self.register(port, &format!("in#.vc{vc}.flits")).map_or(0, |flits| flits.value(cycle))
    }
}
