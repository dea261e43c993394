//! The way of a packet through queues, switches, wires and engines in the wire, followed back from its last flit.
//!
//! Queues and links keep the order of flits: the k-th flit that was sent on a channel of a link is the k-th that came
//! into the queue at its far end, and the k-th that left it. So matching needs no contents, except inside a bump in the
//! wire, where an accepted flit is searched by its tag.

use std::cell::OnceCell;
use std::ops::Range;

use super::index::Index;
use super::ports::Ports;
use super::{Kind, Path};
use watershed_fabric::{FlitEvent, Journal, NodeKind, Plan, Tag};

/// A flit that came into a queue.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    cycle: u64,
    /// It may leave from this cycle on.
    ready: u64,
    tag: Tag,
    word: u64,
}

/// A flit that was sent.
#[derive(Clone, Copy, Debug)]
struct Departure {
    cycle: u64,
    from: Option<(u32, u8)>,
    tag: Tag,
    word: u64,
}

/// What happened at one channel of one port: flits that came in, the cycles in which they left, flits sent on it.
#[derive(Clone, Debug, Default)]
struct ChannelActivity {
    came: Vec<Arrival>,
    left: Vec<u64>,
    sent: Vec<Departure>,
}

/// A flit in a queue: port and channel, and which one of all that came there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedFlit {
    /// Port, counted over the whole system.
    pub port: u32,
    /// Channel.
    pub vc: u8,
    /// Its number among all flits of the queue.
    pub index: usize,
}

/// Where a packet began: a block that put it on a link.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// The node.
    pub node: u32,
    /// Its port that it left by, counted over the whole system.
    pub port: u32,
    /// Channel.
    pub vc: u8,
    /// The cycle in which its first flit was sent.
    pub head: u64,
    /// Tag of its last flit.
    pub tag: Tag,
}

/// A journal as ways of packets.
pub struct Hops<'a> {
    plan: &'a Plan,
    journal: &'a Journal,
    ports: Ports<'a>,
    index: Index<'a>,
    /// Channels that packets of those who ask are on.
    own: Range<u8>,
    /// The channels of each port that was asked for, as far as something happened there.
    lanes: Vec<OnceCell<Box<[ChannelActivity]>>>,
}

/// Without the channel, which changes from hop to hop.
fn without_vc(tag: Tag) -> u64 {
    tag.0 & !(0x1f << 2)
}

/// What a bump in the wire does with flits.
pub trait InlineBlocks {
    /// Whether a flit that a bump sent by its port (0 or 1) was passed on; it may have been taken in the same cycle or before.
    fn passes(&self, node: u32, port: u16, vc: u8, same_cycle: bool) -> bool;
    /// What a flit waits for in it, if not for credits.
    fn waits(&self, node: u32) -> Kind;
}

/// Wires in which nothing is but what lets packets pass at once.
pub struct NoInlineBlocks;

impl InlineBlocks for NoInlineBlocks {
    fn passes(&self, _: u32, _: u16, _: u8, same_cycle: bool) -> bool {
        same_cycle
    }
    fn waits(&self, _: u32) -> Kind {
        Kind::Arbitration
    }
}

impl<'a> Hops<'a> {
    /// Reads a journal to follow packets on these channels.
    pub fn new(plan: &'a Plan, journal: &'a Journal, own: Range<u8>) -> Self {
        let ports = Ports::new(plan);
        let index = Index::new(journal, ports.count());
        let lanes = vec![OnceCell::new(); ports.count()];
        Self { plan, journal, ports, index, own, lanes }
    }

    /// What happened at each channel of a port.
    fn read(&self, port: u32) -> Box<[ChannelActivity]> {
        let mut lanes: Vec<ChannelActivity> = Vec::new();
        for entry in self.index.of(port) {
            let (cycle, tag, word) = (entry.cycle, entry.tag, entry.word);
            // A flit that leaves a queue bears the channel it came in on.
            let vc = usize::from(tag.vc());
            if lanes.len() <= vc {
                lanes.resize(vc + 1, ChannelActivity::default());
            }
            match entry.what {
                FlitEvent::Entered { ready } => lanes[vc].came.push(Arrival { cycle, ready, tag, word }),
                FlitEvent::Left => lanes[vc].left.push(cycle),
                FlitEvent::EnteredEngine { .. } => {}
                FlitEvent::Sent { from } => lanes[vc].sent.push(Departure { cycle, from, tag, word }),
            }
        }
        lanes.into()
    }

    /// Port 0 of a node.
    pub fn base(&self, node: u32) -> u32 {
        self.ports.base(node)
    }

    /// Name of a node.
    pub fn name(&self, node: u32) -> &'a str {
        &self.plan.nodes[node as usize].name
    }

    /// The node of a port.
    pub fn node(&self, port: u32) -> u32 {
        self.ports.node(port)
    }

    /// Who made the flit that left a queue in a cycle, and when: an end point that sent it, or the engine of a switch whose
    /// queue it came into.
    pub fn origin(&self, port: u32, vc: u8, left: u64) -> Option<(u32, u64)> {
        let index = self.lane(port, vc)?.left.binary_search(&left).ok()?;
        self.origin_of(QueuedFlit { port, vc, index }, false)
    }

    /// The same for a packet whose last flit left a queue; when its first flit was sent.
    pub fn origin_of_packet(&self, port: u32, vc: u8, left: u64) -> Option<(u32, u64)> {
        let index = self.lane(port, vc)?.left.binary_search(&left).ok()?;
        self.origin_of(QueuedFlit { port, vc, index }, true)
    }

    fn origin_of(&self, mut at: QueuedFlit, head: bool) -> Option<(u32, u64)> {
        loop {
            let Some((peer, ..)) = self.ports.peer(at.port) else {
                // No link: the queue of an engine.
                let came = self.lane(at.port, at.vc)?.came.get(at.index)?;
                return Some((self.ports.node(at.port), came.cycle));
            };
            let lane = self.lane(peer, at.vc)?;
            let sent = lane.sent.get(at.index)?;
            let node = self.ports.node(peer);
            if let Some(passed) = self.forwarded_flit(node, peer, at.vc, sent) {
                at = passed;
                continue;
            }
            if self.kind(node) != NodeKind::Switch {
                let first = if head { (0..=at.index).rev().find(|&at| lane.sent[at].tag.head())? } else { at.index };
                return Some((node, lane.sent[first].cycle));
            }
            let queue = sent.from?;
            at = QueuedFlit { port: queue.0, vc: queue.1, index: self.source_index(queue, sent)? };
        }
    }

    /// The flit that an engine in the wire passed on in the cycle in which it sent it by a port.
    fn forwarded_flit(&self, node: u32, out: u32, vc: u8, sent: &Departure) -> Option<QueuedFlit> {
        if self.kind(node) != NodeKind::Bump {
            return None;
        }
        let port = self.base(node) + 1 - (out - self.base(node));
        let lane = self.lane(port, vc)?;
        let index = lane.left.binary_search(&sent.cycle).ok()?;
        (without_vc(lane.came[index].tag) == without_vc(sent.tag)).then_some(QueuedFlit { port, vc, index })
    }

    fn kind(&self, node: u32) -> NodeKind {
        self.plan.nodes[node as usize].kind
    }

    fn place(&self, port: u32) -> String {
        let node = self.ports.node(port);
        let name = self.name(node);
        match self.kind(node) {
            NodeKind::Switch => format!("{name}.P{}", port - self.base(node)),
            _ => name.to_owned(),
        }
    }

    fn lane(&self, port: u32, vc: u8) -> Option<&ChannelActivity> {
        self.lanes[port as usize].get_or_init(|| self.read(port)).get(usize::from(vc))
    }

    /// The last flit that left a queue of a port by cycle `until` and whose tag fits.
    pub fn last_departure(&self, port: u32, until: u64, fits: impl Fn(Tag) -> bool) -> Option<(QueuedFlit, u64)> {
        let mut best: Option<(QueuedFlit, u64)> = None;
        for vc in self.own.clone() {
            let Some(lane) = self.lane(port, vc) else { continue };
            let end = lane.left.partition_point(|&cycle| cycle <= until);
            let found = (0..end).rev().find(|&index| fits(lane.came[index].tag));
            if let Some(index) = found
                && best.is_none_or(|(_, cycle)| lane.left[index] > cycle)
            {
                best = Some((QueuedFlit { port, vc, index }, lane.left[index]));
            }
        }
        best
    }

    /// All packets that arrived whole at a port by their last flits, with the cycle in which that was taken.
    pub fn arrivals(&self, port: u32) -> Vec<(QueuedFlit, u64)> {
        let lanes = self.own.clone().filter_map(|vc| Some((vc, self.lane(port, vc)?)));
        let mut list: Vec<(QueuedFlit, u64)> = lanes
            .flat_map(|(vc, lane)| {
                let whole = lane.left.iter().enumerate().filter(|(index, _)| lane.came[*index].tag.tail());
                whole.map(move |(index, &left)| (QueuedFlit { port, vc, index }, left))
            })
            .collect();
        list.sort_by_key(|(_, left)| *left);
        list
    }

    /// Tag of a flit in a queue, and the payload of the first flit of its packet.
    ///
    /// # Panics
    /// If no such flit came there.
    pub fn packet(&self, at: QueuedFlit) -> (Tag, u64) {
        let came = &self.lane(at.port, at.vc).expect("a flit came").came;
        let head = (0..=at.index).rev().find(|&index| came[index].tag.head()).unwrap_or(at.index);
        (came[at.index].tag, came[head].word)
    }

    /// Packets that the same port sent before this one, on any channel.
    pub fn sent_before(&self, origin: &Origin) -> u64 {
        let lanes = (0..self.plan.vcs.total()).filter(|&vc| !self.plan.vcs.is_set(vc));
        let heads = lanes.filter_map(|vc| self.lane(origin.port, vc)).flat_map(|lane| &lane.sent);
        heads.filter(|sent| sent.tag.head() && sent.cycle < origin.head).count() as u64
    }

    /// Credits of an output channel in a cycle.
    fn credits(&self, port: u32, vc: u8, cycle: u64) -> u64 {
        let Some((peer, latency, _)) = self.ports.peer(port) else { return u64::MAX };
        let switch = self.kind(self.ports.node(port)) == NodeKind::Switch;
        let delay = if switch { u64::from(self.journal.credit_delay) } else { 0 };
        let limit = (cycle + 1).saturating_sub(latency + 1 + delay);
        let returned = self.lane(peer, vc).map_or(0, |lane| lane.left.partition_point(|&at| at < limit)) as u64;
        let sent = self.lane(port, vc).map_or(0, |lane| lane.sent.partition_point(|sent| sent.cycle < cycle)) as u64;
        let initial = u64::from(self.journal.initial_credits(port, vc));
        (initial + returned).saturating_sub(sent)
    }

    /// What a flit that left its queue in cycle `path.at` did there: waited for those before, for the output, and went
    /// through the stages in front of allocation.
    fn explain_wait(
        &self,
        at: QueuedFlit,
        out: Option<(u32, u8)>,
        blocked: Kind,
        path: &mut Path,
    ) -> Result<(), String> {
        let lane = self.lane(at.port, at.vc).ok_or("no flit came to a queue that one left")?;
        let Arrival { cycle: came, ready, tag, .. } = lane.came[at.index];
        let left = path.at;
        let mut head_from = at.index.checked_sub(1).map_or(0, |before| lane.left.get(before).map_or(0, |at| at + 1));
        let node = self.ports.node(at.port);
        if let Some(out) = out
            && self.plan.vcs.is_set(at.vc)
            && self.kind(node) == NodeKind::Switch
            && !tag.head()
        {
            // Each copy of a multicast goes at its own pace: before this flit was the one that the same output sent before.
            let sent = self.lane(out.0, out.1).map_or(&[][..], |lane| &lane.sent);
            let earlier = &sent[..sent.partition_point(|sent| sent.cycle < left)];
            let same = |sent: &&Departure| sent.from == Some((at.port, at.vc)) && sent.tag.seq() == tag.seq();
            head_from = earlier.iter().rev().find(same).map_or(head_from, |sent| sent.cycle + 1);
        }
        // A head of a point-to-point packet passes its stages at the head of the queue.
        let staged = self.kind(node) == NodeKind::Switch && tag.head() && !self.plan.vcs.is_set(at.vc);
        let stages = if staged { u64::from(self.journal.front) } else { 0 };
        // Copies of a multicast read on before its flits have left.
        head_from = head_from.min(left).max(ready);
        let place = self.place(at.port);
        // Where the address stands behind the head, the head waits for it.
        let address = if staged { lane.came.get(at.index + usize::from(self.journal.route_flits) - 1) } else { None };
        let through = (address.map_or(head_from, |address| address.cycle.max(head_from)) + stages).min(left);
        for cycle in (through..left).rev() {
            match out.filter(|(port, vc)| self.credits(*port, *vc, cycle) == 0) {
                Some((port, _)) => path.prepend(cycle, Kind::CreditWait, self.place(port)),
                None => path.prepend(cycle, blocked, out.map_or_else(|| place.clone(), |(port, _)| self.place(port))),
            }
        }
        path.prepend(head_from, Kind::Switch, place.clone());
        // A link with faults that holds a frame up lets none of its flits out.
        if blocked == Kind::HeldUp {
            for cycle in (ready.min(left)..path.at).rev() {
                let kept = lane.left.binary_search(&cycle).is_err();
                let room = out.is_none_or(|(port, vc)| self.credits(port, vc, cycle) > 0);
                path.prepend(cycle, if kept && room { Kind::HeldUp } else { Kind::Behind }, place.clone());
            }
        }
        path.prepend(ready.min(left), Kind::Behind, place.clone());
        path.prepend(came, Kind::Switch, place);
        if came > left { Err("a flit left before it came".into()) } else { Ok(()) }
    }

    /// The index of the flit of a queue that was sent in a cycle.
    fn source_index(&self, (port, vc): (u32, u8), sent: &Departure) -> Option<usize> {
        let lane = self.lane(port, vc)?;
        let same = |index: usize| {
            lane.came
                .get(index)
                .is_some_and(|came| without_vc(came.tag) == without_vc(sent.tag) && came.word == sent.word)
        };
        let left = lane.left.binary_search(&sent.cycle).ok().filter(|&index| same(index));
        // A copy of a multicast may be ahead of what has left.
        left.or_else(|| {
            let end = lane.came.partition_point(|came| came.cycle <= sent.cycle);
            (0..end).rev().find(|&index| same(index))
        })
    }

    /// The flit that a bump took before it sent this one.
    fn bump_input(
        &self,
        node: u32,
        out: u32,
        vc: u8,
        sent: &Departure,
        bumps: &impl InlineBlocks,
    ) -> Option<(QueuedFlit, u64)> {
        let port = (out - self.base(node)) as u16;
        let other = self.base(node) + u32::from(1 - port);
        let lane = self.lane(other, vc)?;
        if let Some(queued) = self.forwarded_flit(node, out, vc, sent).filter(|_| bumps.passes(node, port, vc, true)) {
            return Some((queued, sent.cycle));
        }
        if !bumps.passes(node, port, vc, false) {
            return None;
        }
        let end = lane.left.partition_point(|&cycle| cycle <= sent.cycle);
        let same = |index: &usize| without_vc(lane.came[*index].tag) == without_vc(sent.tag);
        // An adapter between two forms of a frame keeps the number and the end of a packet only.
        let alike = |index: &usize| {
            let tag = lane.came[*index].tag;
            (tag.seq(), tag.tail()) == (sent.tag.seq(), sent.tag.tail())
        };
        let index = (0..end).rev().find(same).or_else(|| (0..end).rev().find(alike))?;
        Some((QueuedFlit { port: other, vc, index }, lane.left[index]))
    }

    /// Follows the flit that left a queue in cycle `path.at` back to the block that sent it, and to the first flit of its packet.
    /// `blocked`: what it waited for in this queue, if not for those before it.
    ///
    /// # Errors
    /// The journal lacks a part of the way.
    pub(super) fn trace_back(
        &self,
        from: QueuedFlit,
        blocked: Kind,
        bumps: &impl InlineBlocks,
        path: &mut Path,
    ) -> Result<Origin, String> {
        let mut at = from;
        self.explain_wait(at, None, blocked, path)?;
        loop {
            let (peer, ..) = self.ports.peer(at.port).ok_or("a queue without a link")?;
            let lane = self.lane(peer, at.vc).ok_or("nothing was sent on a link that carried a flit")?;
            let sent = *lane.sent.get(at.index).ok_or("a flit came that was not sent")?;
            let node = self.ports.node(peer);
            let link = format!("{} -> {}", self.place(peer), self.place(at.port));
            match self.kind(node) {
                NodeKind::Switch => {
                    let post = u64::from(self.journal.post);
                    path.prepend(sent.cycle + post + 1, Kind::Link, link);
                    path.prepend(sent.cycle, Kind::Switch, self.place(peer));
                    let queue = sent.from.ok_or("a switch sent what it did not have")?;
                    let index = self.source_index(queue, &sent).ok_or("a switch sent what it did not have")?;
                    let out = (peer, at.vc);
                    at = QueuedFlit { port: queue.0, vc: queue.1, index };
                    self.explain_wait(at, Some(out), Kind::Arbitration, path)?;
                }
                kind => {
                    path.prepend(sent.cycle + 1, Kind::Link, link);
                    let passed =
                        if kind == NodeKind::Bump { self.bump_input(node, peer, at.vc, &sent, bumps) } else { None };
                    if let Some((queued, left)) = passed {
                        path.prepend(left, Kind::Switch, self.name(node));
                        let out = (peer, at.vc);
                        at = queued;
                        self.explain_wait(at, Some(out), bumps.waits(node), path)?;
                        continue;
                    }
                    path.prepend(sent.cycle, Kind::Inject, self.name(node));
                    let head = (0..=at.index).rev().find(|&index| lane.sent[index].tag.head()).unwrap_or(at.index);
                    let first = lane.sent[head];
                    path.prepend(first.cycle, Kind::Frame, self.name(node));
                    return Ok(Origin { node, port: peer, vc: at.vc, head: first.cycle, tag: sent.tag });
                }
            }
        }
    }
}
