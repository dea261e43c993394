//! The wiring of claim signals, derived from the configuration registers, as the ways of data are.

use super::{Arbiter, Join, Units};
use crate::legality::{self, ConfigPoint, Footprint};
use crate::{REQUEST, RESPONSE, Registers};
use std::collections::BTreeMap;
use watershed_fabric::topology::{EndPlace, Neighbours};
use watershed_kernel::Cycle;

/// A tree that may have to claim.
#[derive(Clone, Debug)]
pub struct Claimant<'a> {
    /// Its id.
    pub id: u16,
    /// The plane of its channels.
    pub plane: u8,
    /// What it uses.
    pub footprint: &'a Footprint,
    /// Who sends; the one sender of a forward phase comes first.
    pub senders: &'a [EndPlace],
    /// Whether the senders' packets are reduced.
    pub reduces: bool,
    /// Whether it is a multicast by programs' messages: its source asks for it message by message.
    pub multicast: bool,
    /// All who take part in claimants of one such order call them one after the other, each in the same order: these do not conflict.
    pub order: Option<u32>,
    /// Whether programs may write a tree that meets it, or this one so that it meets another: then it claims though it meets none.
    pub open: bool,
}

/// Latencies of links.
pub struct Links<'a> {
    /// Where they lead.
    pub neighbours: &'a Neighbours,
    /// Cycles of the link at a port of a switch.
    pub cycles: &'a dyn Fn(u32, u16) -> Cycle,
}

/// All trees that are in conflict sets of more than one id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, watershed_state::Saved)]
pub struct Wiring {
    /// The trees, in the order of their ids and then of the scenario.
    pub trees: Vec<Tree>,
    /// The switch of each set's arbiter.
    pub arbiters: Vec<u32>,
    /// Trees that conflict, by tree.
    conflicts: Vec<Vec<u16>>,
}

/// The claim wires of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash, watershed_state::Saved)]
pub struct Tree {
    /// Which claimant it is, in the order in which they were given.
    pub claimant: usize,
    /// Its id.
    pub id: u16,
    /// Its conflict set.
    pub set: u16,
    /// Cycles from its root (a multicast's: from its source) to the switch of the set's arbiter.
    pub reach: Cycle,
    /// Of a multicast: cycles from the root's switch to the source.
    pub source: Option<Cycle>,
    /// Where it passes switches; the first one is the root.
    pub joins: Vec<JoinAt>,
    /// Participants, or receivers of a multicast.
    pub leaves: Vec<Leaf>,
}

/// Where a tree passes a switch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, watershed_state::Saved)]
pub struct JoinAt {
    /// The switch.
    pub switch: u32,
    /// The next join towards the root, its input, and the cycles to it.
    pub up: Option<(u32, u16, Cycle)>,
    /// Joins and participants away from the root, and the cycles to them.
    pub joins: Vec<(u32, Cycle)>,
    /// The same of participants.
    pub leaves: Vec<(u32, Cycle)>,
    /// How many inputs it has.
    pub inputs: u16,
}

/// A participant's end of the wires.
#[derive(Clone, Debug, PartialEq, Eq, Hash, watershed_state::Saved)]
pub struct Leaf {
    /// Where it is.
    pub place: EndPlace,
    /// The join that it sends to, the input, and the cycles to it.
    pub up: (u32, u16, Cycle),
}

/// Joins under construction, by what makes them one: switch, channel, and input port (the engine's for its join).
struct Walk<'a> {
    registers: &'a Registers,
    links: &'a Links<'a>,
    of: &'a Claimant<'a>,
    id: u16,
    joins: Vec<JoinAt>,
    numbers: BTreeMap<(u32, u8, u16), u32>,
    leaves: Vec<Leaf>,
}

impl Walk<'_> {
    fn cycles(&self, switch: u32, port: u16) -> Cycle {
        (self.links.cycles)(switch, port) + 1
    }

    /// The join with this key, and whether it is new.
    fn join(&mut self, key: (u32, u8, u16)) -> (u32, bool) {
        let next = self.joins.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.joins.push(JoinAt { switch: key.0, up: None, joins: Vec::new(), leaves: Vec::new(), inputs: 0 });
        }
        (number, number == next)
    }

    /// A new input of a join.
    fn input(&mut self, join: u32) -> u16 {
        let inputs = &mut self.joins[join as usize].inputs;
        *inputs += 1;
        *inputs - 1
    }

    /// Leads a new participant into a join.
    fn leaf(&mut self, place: EndPlace, join: u32) {
        let (input, cycles) = (self.input(join), self.cycles(place.switch, place.port));
        self.joins[join as usize].leaves.push((self.leaves.len() as u32, cycles));
        self.leaves.push(Leaf { place, up: (join, input, cycles) });
    }

    /// Leads a join into another one.
    fn lead(&mut self, from: u32, to: u32, cycles: Cycle) {
        let input = self.input(to);
        self.joins[from as usize].up = Some((to, input, cycles));
        self.joins[to as usize].joins.push((from, cycles));
    }

    /// Up the request registers, as the words of a reduction go.
    fn climb(&mut self, place: EndPlace) {
        let engine = self.registers.engine_port();
        let of = |this: &Self, switch: u32, port: u16| {
            let vector = this.registers.vector(switch, this.id, REQUEST, port);
            if vector >> engine & 1 == 1 { (switch, REQUEST, engine) } else { (switch, REQUEST, port) }
        };
        let mut key = of(self, place.switch, place.port);
        let (mut at, mut new) = self.join(key);
        self.leaf(place, at);
        while new {
            let out = self.registers.vector(key.0, self.id, REQUEST, key.2);
            let port = out.trailing_zeros() as u16;
            let far = self.links.neighbours.of(key.0, port).filter(|_| out != 0);
            let Some((far, by)) = far else { return };
            let cycles = self.cycles(key.0, port);
            key = of(self, far, by);
            let from = at;
            (at, new) = self.join(key);
            self.lead(from, at, cycles);
        }
    }

    /// Whether the tree's own words come in by an input: trees of one id may deliver to one port.
    fn comes_in(&self, switch: u32, channel: u8, input: u16) -> bool {
        if input == self.registers.engine_port() || self.of.senders.contains(&EndPlace { switch, port: input }) {
            return true;
        }
        let far = self.links.neighbours.of(switch, input);
        let link = |(switch, port): (u32, u16)| ConfigPoint { switch, channel, port };
        far.is_some_and(|far| self.of.footprint.links.binary_search(&link(far)).is_ok())
    }

    /// Against the way of what a channel delivers to a place, as far as the engine or the end point that it comes from.
    fn trace(&mut self, place: EndPlace, channel: u8) {
        let (mut switch, mut port, mut from) = (place.switch, place.port, None);
        loop {
            let mut inputs = 0..=self.registers.engine_port();
            let feeds = |input: u16| self.registers.vector(switch, self.id, channel, input) >> port & 1 == 1;
            let Some(input) = inputs.find(|&input| feeds(input) && self.comes_in(switch, channel, input)) else {
                return;
            };
            // The engine's result: its join is where requests meet.
            let is_engine = input == self.registers.engine_port();
            let (at, new) = self.join((switch, if is_engine { REQUEST } else { channel }, input));
            match from {
                None => self.leaf(place, at),
                Some((from, cycles)) => self.lead(from, at, cycles),
            }
            let far = self.links.neighbours.of(switch, input).filter(|(far, _)| *far < self.registers.switches());
            let Some((far, by)) = far.filter(|_| new && !is_engine) else { return };
            from = Some((at, self.cycles(switch, input)));
            (switch, port) = (far, by);
        }
    }
}

impl Wiring {
    /// The trees among claimants that meet others of another id on their plane, or may come to, and their wires.
    pub fn derive(claimants: &[Claimant<'_>], registers: &Registers, links: &Links<'_>) -> Wiring {
        let mut order: Vec<usize> = (0..claimants.len()).collect();
        order.sort_by_key(|&at| (claimants[at].id, at));
        let meet = |a: &Claimant<'_>, b: &Claimant<'_>| {
            let ordered = a.order.is_some() && a.order == b.order;
            a.id != b.id && a.plane == b.plane && !ordered && legality::meet(a.footprint, b.footprint)
        };
        let in_sets =
            order.iter().copied().filter(|&a| claimants[a].open || claimants.iter().any(|b| meet(&claimants[a], b)));
        let chosen: Vec<usize> = in_sets.collect();
        let number = |list: &[usize]| -> Vec<Vec<u16>> {
            let of = |&a: &usize| {
                let met = (0..).zip(list).filter(|(_, b)| meet(&claimants[a], &claimants[**b]));
                met.map(|(at, _)| at).collect()
            };
            list.iter().map(of).collect()
        };
        let conflicts = number(&chosen);
        let sets = components(&conflicts);
        let mut trees: Vec<Tree> =
            chosen.iter().zip(&sets).map(|(&at, &set)| tree(at, &claimants[at], set, registers, links)).collect();
        let count = sets.iter().max().map_or(0, |&last| last + 1);
        let root = |set: u16| trees.iter().find(|tree| tree.set == set).map_or(0, |tree| tree.joins[0].switch);
        let arbiters: Vec<u32> = (0..count).map(root).collect();
        for tree in &mut trees {
            let from = tree.joins[0].switch;
            tree.reach = distance(registers, links, from, arbiters[usize::from(tree.set)]) + tree.source.unwrap_or(0);
        }
        Wiring { trees, arbiters, conflicts }
    }

    /// Whether nobody has to claim anything.
    pub fn is_empty(&self) -> bool {
        self.trees.is_empty()
    }

    /// The tree of a claimant, if it has to claim.
    pub fn of(&self, claimant: usize) -> Option<u16> {
        self.trees.iter().position(|tree| tree.claimant == claimant).map(|at| at as u16)
    }

    /// Trees that conflict with one.
    pub fn conflicts(&self, tree: u16) -> &[u16] {
        &self.conflicts[usize::from(tree)]
    }

    /// Puts idle registers of a tree into its switches.
    pub(super) fn join(&self, number: u16, units: &mut impl Units) {
        let tree = &self.trees[usize::from(number)];
        for (join, at) in (0..).zip(&tree.joins) {
            let none = vec![0; usize::from(at.inputs)];
            let counts = [none.clone(), none];
            units.unit(at.switch).joins.push(Join { tree: number, join, id: tree.id, counts, held: false });
        }
    }

    /// The trees of a set.
    pub fn members(&self, set: u16) -> impl Iterator<Item = u16> + '_ {
        (0..).zip(&self.trees).filter(move |(_, tree)| tree.set == set).map(|(number, _)| number)
    }

    /// An idle arbiter for a set.
    pub(super) fn arbiter(&self, set: u16) -> Arbiter {
        Arbiter::new(self.members(set).map(|number| (number, self.conflicts(number).to_vec())).collect())
    }

    /// Puts idle registers for all of it into their switches.
    pub fn build(&self, units: &mut impl Units) {
        (0..self.trees.len() as u16).for_each(|number| self.join(number, units));
        for (set, &switch) in (0..).zip(&self.arbiters) {
            units.unit(switch).arbiters.push((set, self.arbiter(set)));
        }
        let joins = self.trees.iter().flat_map(|tree| &tree.joins).map(|at| at.switch);
        for switch in joins.chain(self.arbiters.iter().copied()) {
            units.unit(switch).show();
        }
    }

    /// Cycles from a participant of a tree to its root.
    pub fn climb(&self, tree: u16, leaf: u32) -> Cycle {
        let of = &self.trees[usize::from(tree)];
        let (mut join, _, mut sum) = of.leaves[leaf as usize].up;
        while let Some((up, _, cycles)) = of.joins[join as usize].up {
            (join, sum) = (up, sum + cycles);
        }
        sum
    }

    /// Cycles from the cycle in which its last participant calls to the one in which a participant starts, in an idle set.
    pub fn price(&self, tree: u16, leaf: u32) -> Cycle {
        let of = &self.trees[usize::from(tree)];
        if of.source.is_some() {
            return 2 * of.reach + 1;
        }
        let climbs = (0..of.leaves.len() as u32).map(|leaf| self.climb(tree, leaf));
        climbs.max().unwrap_or(0) + 2 * of.reach + 1 + self.climb(tree, leaf)
    }
}

/// The wires of one tree.
fn tree(claimant: usize, of: &Claimant<'_>, set: u16, registers: &Registers, links: &Links<'_>) -> Tree {
    let mut walk =
        Walk { registers, links, of, id: of.id, joins: Vec::new(), numbers: BTreeMap::new(), leaves: Vec::new() };
    let first = of.senders.first().copied().unwrap_or(EndPlace { switch: 0, port: 0 });
    // The root is the first of the joins.
    let root = match of.footprint.root {
        Some(root) => (root, REQUEST, registers.engine_port()),
        None => (first.switch, REQUEST, first.port),
    };
    walk.join(root);
    // What was made in advance is to be gone on from as if it were new: it leads nowhere else.
    if of.reduces {
        of.senders.iter().for_each(|&place| walk.climb(place));
        // Who only receives is ready on the way on which results come.
        for &place in of.footprint.reached.iter().filter(|place| !of.senders.contains(place)) {
            walk.trace(place, RESPONSE);
        }
    } else {
        if !of.multicast {
            walk.leaf(first, 0);
        }
        of.footprint.reached.iter().for_each(|&place| walk.trace(place, REQUEST));
    }
    let source = of.multicast.then(|| (links.cycles)(first.switch, first.port) + 1);
    Tree { claimant, id: of.id, set, reach: 0, source, joins: walk.joins, leaves: walk.leaves }
}

/// Cycles of a signal between two switches, on the way of point-to-point packets.
fn distance(registers: &Registers, links: &Links<'_>, from: u32, to: u32) -> Cycle {
    let (mut at, mut cycles) = (from, 0);
    for _ in 0..registers.switches() {
        if at == to {
            break;
        }
        let Some(port) = registers.routes.routing.hop(at, to) else { break };
        let Some((far, _)) = links.neighbours.of(at, port) else { break };
        cycles += (links.cycles)(at, port) + 1;
        at = far;
    }
    cycles
}

/// The number of the connected part of each.
fn components(neighbours: &[Vec<u16>]) -> Vec<u16> {
    let mut parts = vec![u16::MAX; neighbours.len()];
    let mut next = 0;
    for first in 0..parts.len() {
        if parts[first] != u16::MAX {
            continue;
        }
        let mut work = vec![first];
        while let Some(at) = work.pop() {
            if parts[at] == u16::MAX {
                parts[at] = next;
                work.extend(neighbours[at].iter().map(|&other| usize::from(other)));
            }
        }
        next += 1;
    }
    parts
}
