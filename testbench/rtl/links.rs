//! What a running system does at the ports of a node, cycle by cycle: its journal's entries, as the RTL's ports see them.
//!
//! The model's journal says which flits entered and left each queue, its waves what stands in registers. A register of the RTL that feeds a
//! link is the model's link of the cycle after a grant: what the model commits to a queue in cycle t comes to the RTL in t - 1.

use std::collections::BTreeMap;

use watershed::fabric::{Entry, FlitEvent, Plan, Tag};

/// What happened at a node in a cycle.
#[derive(Clone, Debug, Default)]
pub struct Happened {
    /// Flits that entered queues: port, tag, word.
    entered: Vec<(u16, Tag, u64)>,
    /// Queues that a flit left: port and channel.
    left: Vec<(u16, u8)>,
    /// Flits that were granted to links.
    sent: Vec<(u16, Tag, u64)>,
}

impl Happened {
    /// Ports into whose queues a flit came, a bit each.
    pub fn entered_ports(&self) -> u128 {
        self.entered.iter().fold(0, |all, (port, ..)| all | 1 << port)
    }

    /// What came in at a port; zeros if nothing did.
    pub fn entered_at(&self, port: u16) -> (u64, u64) {
        let flit = self.entered.iter().find(|(at, ..)| *at == port);
        flit.map_or((0, 0), |(_, tag, word)| (tag.0, *word))
    }

    /// Ports that were granted a flit, a bit each.
    pub fn sent_ports(&self) -> u128 {
        self.sent.iter().fold(0, |all, (port, ..)| all | 1 << port)
    }

    /// What was granted to a port.
    pub fn sent_at(&self, port: u16) -> Option<(Tag, u64)> {
        self.sent.iter().find(|(at, ..)| *at == port).map(|&(_, tag, word)| (tag, word))
    }

    /// Channels of a port whose queue a flit left, a bit each: their credits go back.
    pub fn left_at(&self, port: u16) -> u128 {
        self.left.iter().filter(|(at, _)| *at == port).fold(0, |all, (_, vc)| all | 1 << vc)
    }
}

/// What happened at some nodes, by cycle.
pub struct Events {
    /// System-wide number of port 0 and number of ports of each.
    nodes: Vec<(u32, u16)>,
    of: Vec<BTreeMap<u64, Happened>>,
    none: Happened,
    /// Grants of all.
    pub granted: u64,
}

impl Events {
    /// Nothing yet, at nodes of which these are the system-wide numbers of port 0 and the numbers of ports.
    pub fn new(nodes: impl IntoIterator<Item = (u32, u16)>) -> Events {
        let nodes: Vec<(u32, u16)> = nodes.into_iter().collect();
        Events { of: vec![BTreeMap::new(); nodes.len()], nodes, none: Happened::default(), granted: 0 }
    }

    /// Notes an entry of the journal if it is of one of the nodes; `port` tells which port of the RTL a port of a node is, if any.
    pub fn note(&mut self, entry: &Entry, port: impl Fn(usize, u16) -> Option<u16>) {
        let here = |&(base, ports): &(u32, u16)| (base..base + u32::from(ports)).contains(&entry.port);
        let Some(at) = self.nodes.iter().position(here) else { return };
        let Some(port) = port(at, (entry.port - self.nodes[at].0) as u16) else { return };
        let here = self.of[at].entry(entry.cycle).or_default();
        match entry.what {
            FlitEvent::Entered { .. } => here.entered.push((port, entry.tag, entry.word)),
            FlitEvent::Left => here.left.push((port, entry.tag.vc())),
            FlitEvent::Sent { .. } => {
                here.sent.push((port, entry.tag, entry.word));
                self.granted += 1;
            }
            FlitEvent::EnteredEngine { .. } => {}
        }
    }

    /// What happened at a node in a cycle, if there was one.
    pub fn at(&self, node: usize, cycle: Option<u64>) -> &Happened {
        cycle.and_then(|cycle| self.of[node].get(&cycle)).unwrap_or(&self.none)
    }

    /// Forgets what was before a cycle.
    pub fn forget(&mut self, before: u64) {
        for events in &mut self.of {
            while events.first_key_value().is_some_and(|(&cycle, _)| cycle < before) {
                events.pop_first();
            }
        }
    }
}

/// Values of waves in a cycle and in the next.
pub struct Seen<'a> {
    pub now: &'a [Option<u128>],
    pub next: &'a [Option<u128>],
}

impl Seen<'_> {
    /// How many credits of a channel of a port came back in this cycle, from the signal that counts them and what was granted.
    ///
    /// # Panics
    /// If there are several: they have one wire.
    pub fn returned(&self, credits: Option<usize>, now: &Happened, (port, vc): (u16, u8)) -> u128 {
        // Credits are what they were, less those that were spent, and those that came back.
        let count = |values: &[Option<u128>]| credits.and_then(|at| values[at]).unwrap_or(0);
        let spent = now.sent.iter().filter(|(at, tag, _)| (*at, tag.vc()) == (port, vc)).count() as u128;
        let returned = count(self.next) + spent - count(self.now);
        assert!(returned <= 1, "port {port}, channel {vc}: {returned} credits in a cycle");
        returned
    }
}

/// System-wide numbers of the first ports of all nodes.
pub fn bases(plan: &Plan) -> Vec<u32> {
    let mut next = 0;
    let base = |node: &watershed::fabric::PlanNode| {
        let base = next;
        next += u32::from(node.ports);
        base
    };
    plan.nodes.iter().map(base).collect()
}
