//! Reachability and freedom of deadlock of a routing relation, shown before cycle 0 (requirement K-PIPE-1).
//!
//! The proof walks the relation that switches use, not a copy of it. For every destination, every random draw, and
//! every place a packet can come to (input port, channel), it takes all outputs and channels that routing may choose
//! there over all states of the credits. From that it checks:
//!
//! 1. *reachability*: every choice leads somewhere, and no packet can circulate for ever: for a given destination and
//!    draw the places form no circle, and all paths end at the destination;
//! 2. *no deadlock*: the graph of dependencies between channels (link and point-to-point channel; an edge wherever a
//!    packet that holds the one may wait for the other) has no circle. With escape channels that graph is the one of
//!    the escape channels alone, and it is checked as well that from every place an escape channel can be taken, and
//!    that a packet on an escape channel stays on them. This is stronger than Duato's condition, which allows packets
//!    to return to adaptive channels. It holds for buffers with more than one packet in them, if a switch gives an
//!    adaptive channel only when the buffer behind it has a free place, as `adapt` of the relation does.
//!
//! A circle is named channel by channel.
//!
//! Cost: destinations x draws x places; [`prove_within`] refuses what is above a bound, and the caller proves
//! [`Topology::smaller`](crate::topology::Topology::smaller) instead.

use super::Routing;
use super::maps::HeadPosition;
use super::relation::{Choice, ChoiceKind};
use crate::topology::{EndPlace, Layout, Neighbours};
use std::collections::HashSet;
use watershed_kernel::{Autopsy, WaitFor};

/// What a proof needs to know of a routing function.
pub trait Relation {
    /// Everything routing may answer at a place.
    fn choices(&self, at: HeadPosition, to: EndPlace, draw: u64, give: &mut dyn FnMut(Choice));

    /// Draws that represent all others.
    fn draws(&self) -> Vec<u64>;

    /// The buffer of a channel: each has its own, unless a relation is to be looked at as if some shared one.
    fn buffer(&self, channel: u8) -> u8 {
        channel
    }
}

impl Relation for Routing {
    fn choices(&self, at: HeadPosition, to: EndPlace, draw: u64, mut give: &mut dyn FnMut(Choice)) {
        let vcs = match self {
            Routing::Fabric(router) => return router.choices(at, to, draw, &mut give),
            Routing::Nodes(nodes) => nodes.channels(at.port, at.channel, 32),
            _ => u32::MAX,
        };
        give(Choice { port: self.hop(at.switch, to.switch).unwrap_or(to.port), vcs, kind: ChoiceKind::Candidate });
    }

    fn draws(&self) -> Vec<u64> {
        match self {
            Routing::Fabric(router) => router.draws(),
            _ => vec![0],
        }
    }
}

/// What was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Switches with end points, as destinations.
    pub destinations: usize,
    /// Channels that a packet can hold.
    pub channels: usize,
    /// Dependencies between them.
    pub dependencies: usize,
    /// Most links on any way.
    pub longest: u32,
    /// Whether it rests on escape channels.
    pub escape: bool,
}

/// Why a routing function is not sound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Channels that can wait for each other in a circle.
    #[error("channels can wait for each other in a circle: {}", .0.join(" -> "))]
    Cycle(Vec<String>),
    /// A packet can go round for ever.
    #[error("a packet to {to} can go round for ever through {}", .through.join(" -> "))]
    Livelock {
        /// Where it is to go.
        to: String,
        /// The channels it comes by again and again.
        through: Vec<String>,
    },
    /// An answer leads nowhere.
    #[error("a packet to {to} at {at} is sent to port {port}, which {why}")]
    Nowhere {
        /// Where it is to go.
        to: String,
        /// Where it stands.
        at: String,
        /// The answer.
        port: u16,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A packet that has taken an escape channel may leave it.
    #[error("a packet to {to} at {at} may leave the escape channels again, or has none")]
    Escape {
        /// Where it is to go.
        to: String,
        /// Where it stands.
        at: String,
    },
    /// The system is too big for a proof of its own.
    #[error("too big for a proof of its own")]
    TooBig,
}

/// Proves a routing relation on a layout, however long it takes.
///
/// # Errors
/// What is wrong with it.
pub fn prove(layout: &Layout, relation: &dyn Relation) -> Result<Proof, Flaw> {
    prove_within(layout, relation, u64::MAX)
}

/// Proves a routing relation on a layout, if it takes no more than this many steps.
///
/// # Errors
/// What is wrong with it, or [`Flaw::TooBig`].
pub fn prove_within(layout: &Layout, relation: &dyn Relation, steps: u64) -> Result<Proof, Flaw> {
    let switches = layout.switches();
    let links = layout.plan.links.iter().filter(|link| link.a.0.max(link.b.0) < switches as u32).count();
    let channels = usize::from(layout.plan.vcs.unicast);
    let mut hosts: Vec<u32> = layout.ends.iter().map(|end| end.switch).collect();
    hosts.sort_unstable();
    hosts.dedup();
    // What has no table of draws for a proof because it is far too big is not even asked for its draws.
    let places = (2 * links * channels + switches) as u64;
    if places.saturating_mul(hosts.len() as u64) > steps {
        return Err(Flaw::TooBig);
    }
    let draws = relation.draws();
    if places.saturating_mul(hosts.len() as u64).saturating_mul(draws.len() as u64) > steps {
        return Err(Flaw::TooBig);
    }
    let mut walk = Walk::new(layout, relation, channels);
    for &to in &hosts {
        // The first end point of a switch represents all of its end points: routes depend on the switch, except for the
        // last port.
        let place = *layout.ends.iter().find(|end| end.switch == to).expect("a host has an end point");
        for &draw in &draws {
            walk.towards(&hosts, place, draw)?;
        }
    }
    walk.finish(hosts.len())
}

/// A place: a channel of a link, by the port at which it ends, or a switch where packets begin.
struct Walk<'a> {
    layout: &'a Layout,
    relation: &'a dyn Relation,
    neighbours: Neighbours,
    channels: usize,
    switches: usize,
    /// First number of the incoming channels of a switch's ports.
    base: Vec<usize>,
    /// Switch, port and channel of an incoming channel.
    positions: Vec<HeadPosition>,
    /// Free port of a switch, where its packets begin.
    begin: Vec<u16>,
    edges: Edges,
    seen: Vec<u32>,
    done: Vec<u32>,
    length: Vec<u32>,
    epoch: u32,
    used: HashSet<usize>,
    longest: u32,
    escape: bool,
}

impl<'a> Walk<'a> {
    fn new(layout: &'a Layout, relation: &'a dyn Relation, channels: usize) -> Walk<'a> {
        let switches = layout.switches();
        let mut base = Vec::with_capacity(switches);
        let mut positions = Vec::new();
        for switch in 0..switches as u32 {
            base.push(positions.len());
            for port in 0..layout.external_ports {
                positions.extend((0..channels as u8).map(|channel| HeadPosition { switch, port, channel }));
            }
        }
        let mut begin = vec![u16::MAX; switches];
        for end in &layout.ends {
            begin[end.switch as usize] = end.port;
        }
        let places = positions.len() + switches;
        Walk {
            layout,
            relation,
            neighbours: Neighbours::new(&layout.plan),
            channels,
            switches,
            base,
            edges: Edges::new(positions.len()),
            positions,
            begin,
            seen: vec![0; places],
            done: vec![0; places],
            length: vec![0; places],
            epoch: 0,
            used: HashSet::new(),
            longest: 0,
            escape: false,
        }
    }

    fn stand(&self, place: usize) -> HeadPosition {
        self.positions.get(place).copied().unwrap_or_else(|| {
            let switch = place - self.positions.len();
            HeadPosition { switch: switch as u32, port: self.begin[switch], channel: 0 }
        })
    }

    fn name(&self, place: usize) -> String {
        let stand = self.stand(place);
        if place >= self.positions.len() {
            return self.layout.plan.nodes[stand.switch as usize].name.clone();
        }
        match self.neighbours.of(stand.switch, stand.port) {
            Some((from, port)) => {
                format!("{}.P{port} p2p{}", self.layout.plan.nodes[from as usize].name, stand.channel)
            }
            None => format!("{}.I{}", self.layout.plan.nodes[stand.switch as usize].name, stand.port),
        }
    }

    /// Follows all packets to one destination with one draw from where they begin.
    fn towards(&mut self, hosts: &[u32], to: EndPlace, draw: u64) -> Result<(), Flaw> {
        self.epoch += 1;
        let mut stack: Vec<(usize, Vec<usize>)> = Vec::new();
        for &host in hosts {
            let start = self.positions.len() + host as usize;
            if self.seen[start] == self.epoch {
                continue;
            }
            let next = self.next(start, to, draw)?;
            self.seen[start] = self.epoch;
            stack.push((start, next));
            while let Some((place, rest)) = stack.last_mut() {
                let place = *place;
                let Some(next) = rest.pop() else {
                    self.done[place] = self.epoch;
                    self.longest = self.longest.max(self.length[place]);
                    stack.pop();
                    if let Some((before, _)) = stack.last() {
                        self.length[*before] = self.length[*before].max(self.length[place] + 1);
                    }
                    continue;
                };
                if self.done[next] == self.epoch {
                    self.length[place] = self.length[place].max(self.length[next] + 1);
                } else if self.seen[next] == self.epoch {
                    let from = stack.iter().position(|(at, _)| *at == next).unwrap_or(0);
                    let through = stack[from..].iter().map(|(at, _)| self.name(*at)).collect();
                    return Err(Flaw::Livelock { to: self.name(self.positions.len() + to.switch as usize), through });
                } else {
                    let after = self.next(next, to, draw)?;
                    self.seen[next] = self.epoch;
                    self.length[next] = 0;
                    stack.push((next, after));
                }
            }
        }
        Ok(())
    }

    /// The places that follow a place, after their dependencies are written down.
    fn next(&mut self, place: usize, to: EndPlace, draw: u64) -> Result<Vec<usize>, Flaw> {
        let stand = self.stand(place);
        self.length[place] = 0;
        let mut choices: Vec<Choice> = Vec::new();
        self.relation.choices(stand, to, draw, &mut |choice| choices.push(choice));
        let goal = |walk: &Self| walk.layout.plan.nodes[to.switch as usize].name.clone();
        let mut next = Vec::new();
        let escapes = choices.iter().filter(|choice| choice.kind == ChoiceKind::Escape).count();
        self.escape |= escapes > 0;
        let arrived = choices.iter().all(|choice| stand.switch == to.switch && choice.port == to.port);
        for choice in &choices {
            if stand.switch == to.switch && choice.port == to.port {
                continue;
            }
            let nowhere = |walk: &Self, why| {
                let at = walk.layout.plan.nodes[stand.switch as usize].name.clone();
                Err(Flaw::Nowhere { to: goal(walk), at, port: choice.port, why })
            };
            let Some((far, by)) = self.neighbours.of(stand.switch, choice.port) else {
                return nowhere(self, "has no link");
            };
            if far as usize >= self.switches {
                return nowhere(self, "leads to another end point");
            }
            let mut any = false;
            for channel in (0..self.channels).filter(|channel| choice.vcs >> channel & 1 == 1) {
                any = true;
                let after = self.base[far as usize] + usize::from(by) * self.channels + channel;
                self.used.insert(after);
                next.push(after);
                let escaping = choice.kind == ChoiceKind::Escape;
                if place < self.positions.len() && (escaping || escapes == 0) && (escapes == 0 || self.is_escape(place))
                {
                    let shared = |place: usize, of: u8| place - usize::from(of) + usize::from(self.relation.buffer(of));
                    self.edges.insert(shared(place, stand.channel), shared(after, channel as u8));
                }
                if escaping {
                    self.edges.mark(after);
                }
            }
            if !any {
                return nowhere(self, "may be left on no channel there is");
            }
        }
        // Escape channels first come up where they are taken, so a place before that cannot be one.
        let stray = escapes < choices.len() && self.is_escape(place) && !arrived;
        if choices.is_empty() || self.escape && !arrived && (escapes == 0 || stray) {
            let at = self.layout.plan.nodes[stand.switch as usize].name.clone();
            return Err(Flaw::Escape { to: goal(self), at });
        }
        Ok(next)
    }

    fn is_escape(&self, place: usize) -> bool {
        place < self.positions.len() && self.edges.marked[place]
    }

    fn finish(self, destinations: usize) -> Result<Proof, Flaw> {
        if let Some(cycle) = self.edges.cycle() {
            let waits = (0..cycle.len())
                .map(|i| WaitFor {
                    who: self.name(cycle[i]),
                    whom: self.name(cycle[(i + 1) % cycle.len()]),
                    why: "a route uses both".into(),
                })
                .collect();
            let named: Vec<String> = Autopsy::new(waits).cycle.into_iter().map(|wait| wait.who).collect();
            return Err(Flaw::Cycle(named));
        }
        Ok(Proof {
            destinations,
            channels: self.used.len(),
            dependencies: self.edges.count,
            longest: self.longest,
            escape: self.escape,
        })
    }
}

/// Dependencies between channels: a list for each, sorted.
struct Edges {
    of: Vec<Vec<u32>>,
    marked: Vec<bool>,
    count: usize,
}

impl Edges {
    fn new(channels: usize) -> Edges {
        Edges { of: vec![Vec::new(); channels], marked: vec![false; channels], count: 0 }
    }

    fn insert(&mut self, from: usize, to: usize) {
        if let Err(at) = self.of[from].binary_search(&(to as u32)) {
            self.of[from].insert(at, to as u32);
            self.count += 1;
        }
    }

    fn mark(&mut self, channel: usize) {
        self.marked[channel] = true;
    }

    /// A circle, if there is one.
    fn cycle(&self) -> Option<Vec<usize>> {
        let mut state = vec![0u8; self.of.len()];
        let mut stack: Vec<(usize, usize)> = Vec::new();
        for start in 0..self.of.len() {
            if state[start] != 0 {
                continue;
            }
            stack.push((start, 0));
            state[start] = 1;
            while let Some((at, next)) = stack.last_mut() {
                let Some(&to) = self.of[*at].get(*next) else {
                    state[*at] = 2;
                    stack.pop();
                    continue;
                };
                *next += 1;
                let to = to as usize;
                match state[to] {
                    0 => {
                        state[to] = 1;
                        stack.push((to, 0));
                    }
                    1 => {
                        let from = stack.iter().position(|(at, _)| *at == to).unwrap_or(0);
                        return Some(stack[from..].iter().map(|(at, _)| *at).collect());
                    }
                    _ => {}
                }
            }
        }
        None
    }
}

/// A shortest route as the switches it visits, or `None` if it does not arrive within as many hops as there are ports.
pub fn walk(layout: &Layout, from: u32, to: u32) -> Option<Vec<u32>> {
    let neighbours = Neighbours::new(&layout.plan);
    walk_with(&neighbours, &layout.routing, from, to)
}

pub(super) fn walk_with(neighbours: &Neighbours, routing: &Routing, from: u32, to: u32) -> Option<Vec<u32>> {
    let mut path = vec![from];
    let mut at = from;
    while let Some(port) = routing.hop(at, to) {
        at = neighbours.of(at, port)?.0;
        path.push(at);
        if path.len() > neighbours.ports() {
            return None;
        }
    }
    Some(path)
}

/// A cycle in the channel dependency graph of a layout's routing, as the names of the channels in it; `None` if the
/// routing is free of deadlock. See [`prove`], which says more.
pub fn dependency_cycle(layout: &Layout) -> Option<Vec<String>> {
    match prove(layout, &layout.routing) {
        Ok(_) => None,
        Err(Flaw::Cycle(names)) => Some(names),
        Err(other) => Some(vec![other.to_string()]),
    }
}
