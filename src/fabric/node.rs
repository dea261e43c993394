//! The record of a node that every evaluation reads first: its ports, its flags and the bits of its queues, 32 bytes a
//! node.
//!
//! ```text
//!   │ port_base 4 B │ ports 2 B │ flags 1 B │ occupied, routed, active: 8 B each │
//!                                              one bit a queue: (port << vc_shift | vc)
//! ```
//!
//! Allocators scan words of queue bits, so a switch with one packet in forty queues reads one queue. A node with up to
//! 64 queues has its words in this record, half a cache line; a node with more has them in a list of their own.

use super::arena::{Arena, NodeArena};
use super::partition::Partition;
use bitfield::bitfield;
use std::ops::{Index, IndexMut};
use watershed_state::{Loader, Mismatch, Saver, State, state};

/// What the allocators of a switch scan: 64 of its input queues a word, one bit a queue. 24 bytes.
#[derive(Clone, Copy, Debug, Default, watershed_state::Saved)]
pub(super) struct Masks {
    /// Something is queued.
    pub occupied: u64,
    /// Point-to-point: the packet at the head has an output port and waits for a channel.
    pub routed: u64,
    /// Point-to-point: the packet at the head holds an output channel.
    pub active: u64,
}

bitfield! {
    /// What is known of a node.
    #[derive(Clone, Copy, Default)]
    pub(super) struct Flags(u8);
    impl Debug;
    /// Whether its last port is that of an engine.
    pub engine, set_engine: 0;
    /// Whether the queues fit one word and no step takes several cycles.
    pub one_word, set_one_word: 1;
    /// The same, and there is nothing but point-to-point channels.
    pub plain, set_plain: 2;
    /// Whether waves record anything of it.
    pub traced, set_traced: 3;
    /// Whether a returning credit wakes the node: not if nothing there waits for one.
    pub heeds, set_heeds: 4;
    /// Whether packets were refused something when the switch was last looked at: of switches with nothing but point-to-point channels
    /// whose queues fit one word.
    pub refused, set_refused: 5;
}

/// A node's record; see the module's text.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
pub(super) struct NodeInfo {
    /// The first of its ports.
    pub port_base: u32,
    /// How many it has.
    pub ports: u16,
    pub flags: Flags,
    /// Its queue bits if they fit one word. Else `occupied` has the number of their first word among [`Nodes::wide`].
    bits: Masks,
}

impl State for NodeInfo {
    fn save(&self, to: &mut Saver) {
        to.value(&(self.flags.0, self.bits));
    }

    /// Whether a waveform records something of it is not part of the state.
    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Mismatch> {
        let traced = self.flags.traced();
        (self.flags.0, self.bits) = from.value()?;
        self.flags.set_traced(traced);
        Ok(())
    }
}

impl NodeInfo {
    /// A node with this many ports.
    pub fn new(ports: u16, flags: Flags) -> NodeInfo {
        NodeInfo { port_base: 0, ports, flags, bits: Masks::default() }
    }

    /// Words of queue bits.
    #[inline]
    pub fn words(&self, vc_shift: u32) -> usize {
        (usize::from(self.ports) << vc_shift).div_ceil(64)
    }

    /// Whether its queue bits stand in its record.
    #[inline(always)]
    pub fn is_narrow(&self, vc_shift: u32) -> bool {
        u32::from(self.ports) << vc_shift <= 64
    }

    /// The bits of its queues in which something stands, if they fit one word.
    #[inline(always)]
    pub fn occupied(&self) -> u64 {
        self.bits.occupied
    }

    /// Its queue bits, which fit one word, and its flags.
    #[inline(always)]
    pub fn narrow(&mut self) -> (&mut Masks, &mut Flags) {
        (&mut self.bits, &mut self.flags)
    }
}

/// All nodes of a part of a system.
#[derive(Clone, Debug)]
pub(super) struct Nodes {
    records: NodeArena<NodeInfo>,
    /// Queue bits of the nodes with more than a word of them, in the order of the nodes.
    wide: Arena<Masks>,
    vc_shift: u32,
}

state!(Nodes { saved: records, wide; built: vc_shift });

/// Numbers the ports of all nodes part by part, and the words of queue bits that do not fit a record. Returns for every
/// part its first port and its first such word, and behind them how many there are.
pub(super) fn number(nodes: &mut [NodeInfo], partition: &Partition, vc_shift: u32) -> Vec<(u32, usize)> {
    let (mut port, mut word) = (0u32, 0);
    let mut firsts = Vec::with_capacity(partition.len() + 1);
    for part in 0..partition.len() {
        firsts.push((port, word));
        for node in partition.nodes(part) {
            let info = &mut nodes[node as usize];
            info.port_base = port;
            port += u32::from(info.ports);
            if !info.is_narrow(vc_shift) {
                info.bits.occupied = word as u64;
                word += info.words(vc_shift);
            }
        }
    }
    firsts.push((port, word));
    firsts
}

impl Nodes {
    /// Those of a part, out of a list of all, whose wide words are `from` to `to`.
    pub fn new(
        all: &[NodeInfo],
        partition: &Partition,
        part: usize,
        (from, to): (usize, usize),
        vc_shift: u32,
    ) -> Nodes {
        let records = NodeArena::of(all, partition, part);
        Nodes { records, wide: Arena::new(from, vec![Masks::default(); to - from]), vc_shift }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &NodeInfo> {
        self.records.iter()
    }

    /// The queue bits of a node.
    #[inline]
    pub fn masks(&self, node: u32) -> &[Masks] {
        let info = &self.records[node as usize];
        if info.is_narrow(self.vc_shift) {
            return std::slice::from_ref(&info.bits);
        }
        self.wide.stretch(info.bits.occupied as usize, info.words(self.vc_shift))
    }

    /// The same, to be changed.
    #[inline]
    pub fn masks_mut(&mut self, node: u32) -> &mut [Masks] {
        let info = &mut self.records[node as usize];
        if info.is_narrow(self.vc_shift) {
            return std::slice::from_mut(&mut info.bits);
        }
        let words = info.words(self.vc_shift);
        self.wide.stretch_mut(info.bits.occupied as usize, words)
    }

    /// Where the record of a node stands: its number, if the system is whole.
    #[inline(always)]
    pub fn place(&self, node: u32) -> usize {
        self.records.place(node as usize)
    }

    /// The record at this place.
    #[inline(always)]
    pub fn at(&self, place: usize) -> &NodeInfo {
        self.records.at(place)
    }

    /// The word with the occupancy bit of a queue of a node, and that bit.
    #[inline(always)]
    pub fn occupancy(&mut self, node: u32, queue: u32) -> (&mut u64, u64) {
        self.occupancy_at(self.place(node), queue)
    }

    /// The same of the node whose record stands at `place`.
    #[inline(always)]
    pub fn occupancy_at(&mut self, place: usize, queue: u32) -> (&mut u64, u64) {
        let info = self.records.at_mut(place);
        let local = queue - (info.port_base << self.vc_shift);
        let bit = 1 << (local & 63);
        if info.is_narrow(self.vc_shift) {
            return (&mut info.bits.occupied, bit);
        }
        let word = info.bits.occupied as usize + (local >> 6) as usize;
        (&mut self.wide[word].occupied, bit)
    }

    /// Whether anything is queued at a node.
    #[inline]
    pub fn is_occupied(&self, node: u32) -> bool {
        match self.masks(node) {
            [word] => word.occupied != 0,
            words => words.iter().any(|word| word.occupied != 0),
        }
    }
}

impl Index<usize> for Nodes {
    type Output = NodeInfo;

    #[inline(always)]
    fn index(&self, node: usize) -> &NodeInfo {
        &self.records[node]
    }
}

impl IndexMut<usize> for Nodes {
    #[inline(always)]
    fn index_mut(&mut self, node: usize) -> &mut NodeInfo {
        &mut self.records[node]
    }
}

#[cfg(test)]
mod tests {
    use super::super::{NodeKind, Parts, Plan, PlanNode, Vcs};
    use super::*;

    #[test]
    fn every_queue_has_a_bit_of_its_own() {
        assert_eq!((size_of::<NodeInfo>(), align_of::<NodeInfo>()), (32, 32));
        // Narrow and wide nodes in turn: 1 to 512 ports of four channels.
        let sizes = [1u16, 16, 17, 2, 512, 3];
        let mut all: Vec<NodeInfo> = sizes.iter().map(|&ports| NodeInfo::new(ports, Flags::default())).collect();
        let switch = |&ports: &u16| PlanNode {
            kind: NodeKind::Switch,
            ports,
            engine: false,
            name: String::new(),
            path: String::new(),
        };
        let plan = Plan {
            vcs: Vcs { set: 4, unicast: 0 },
            nodes: sizes.iter().map(switch).collect(),
            links: Vec::new(),
            levels: Vec::new(),
        };
        let partition = Partition::new(&plan, Parts::default());
        let firsts = number(&mut all, &partition, 2);
        assert_eq!(firsts, [(0, 0), (551, 2 + 32)]);
        let mut nodes = Nodes::new(&all, &partition, 0, (0, firsts[1].1), 2);
        let mut queue = 0;
        for (node, &ports) in sizes.iter().enumerate() {
            for local in 0..u32::from(ports) << 2 {
                let (word, bit) = nodes.occupancy(node as u32, queue);
                assert_eq!((*word & bit, bit), (0, 1 << (local & 63)), "queue {local} of node {node}");
                *word |= bit;
                queue += 1;
            }
            let set: u32 = nodes.masks(node as u32).iter().map(|masks| masks.occupied.count_ones()).sum();
            assert_eq!(set, u32::from(ports) << 2);
            assert!(nodes.is_occupied(node as u32));
            nodes.masks_mut(node as u32).iter_mut().for_each(|masks| masks.occupied = 0);
            assert!(!nodes.is_occupied(node as u32));
        }
    }

    #[test]
    fn a_part_has_the_words_of_its_own_nodes() {
        let switch =
            || PlanNode { kind: NodeKind::Switch, ports: 20, engine: false, name: String::new(), path: String::new() };
        let plan = Plan {
            vcs: Vcs { set: 4, unicast: 0 },
            nodes: (0..6).map(|_| switch()).collect(),
            links: Vec::new(),
            levels: Vec::new(),
        };
        let partition = Partition::new(&plan, Parts { count: 3, ..Parts::default() });
        let mut all = vec![NodeInfo::new(20, Flags::default()); 6];
        let firsts = number(&mut all, &partition, 2);
        assert_eq!(firsts, [(0, 0), (40, 4), (80, 8), (120, 12)]);
        let mut nodes = Nodes::new(&all, &partition, 1, (4, 8), 2);
        // The last queue of the part's last node.
        let (word, bit) = nodes.occupancy(3, 80 * 4 - 1);
        *word |= bit;
        assert_eq!(nodes.masks(3).iter().map(|masks| masks.occupied).collect::<Vec<_>>(), [0, 1 << 15]);
        assert!(!nodes.is_occupied(2));
    }
}
