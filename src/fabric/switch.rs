//! The switch: nothing but wiring between its units.
//!
//! ```text
//!                     ┌──────────────── switch ────────────────────────────────────┐
//!   link ─▶ input 0 ─▶│ queue per vc ─┬─ forward (set-routed, strict priority) ─┐   │
//!   link ─▶ input 1 ─▶│ queue per vc ─┼─ unicast (RC, VA, SA) ──────────────────┼─▶ │─▶ output 0 ─▶ link
//!      …              │      …        │                                         │   │─▶ output 1 ─▶ link
//!                     │               └▶ operand slots ─▶ engine ─▶ queue ──────┘   │      …
//!                     └────────────────────────────────────────────────────────────┘
//!                       ◀── credits (one a flit, per virtual channel) ──
//! ```
//!
//! | parameter | unit | range | effect on cycles | effect on storage |
//! |---|---|---|---|---|
//! | [`Pipeline::stages`] | cycles | 1 to 4 | every hop takes `stages` + link latency | the credit round trip grows by `stages` - 1 |
//! | buffer depth | flits a channel | from 1 | below the round trip the rate of a channel is depth / round trip | depth x flit width |
//! | [`Policy`] | | round-robin, matrix, fixed | who waits | see [`arbiter`](super::arbiter) |
//!
//! Timing: a flit delivered in cycle t can leave, if nothing is in its way, in cycle t + stages; the neighbour gets it
//! at t + stages + latency. Set-routed packets spend the front stages as plain delay (the register look-up takes the
//! place of RC and VA *chosen*).
//!
//! Limitations: one flit an input port and an output port in a cycle (no speed-up); no speculation.

use super::arbiter::{Bank, Policy};
use super::network::Tables;
use super::wires::{NONE, Wires};
use super::{Join, JoinCx, PortSet, forward, unicast};
use crate::kernel::Wake;

/// The pipeline of a switch: how many cycles a flit spends in it, and where switch allocation lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipeline {
    stages: u8,
}

impl Pipeline {
    /// A pipeline of 1 to 4 stages.
    ///
    /// # Panics
    /// For any other number; scenario checks refuse it before.
    pub fn new(stages: u8) -> Pipeline {
        assert!((1..=4).contains(&stages), "a switch pipeline has 1 to 4 stages, not {stages}");
        Pipeline { stages }
    }

    /// Cycles from the delivery of a flit to its departure when nothing is in its way.
    pub fn stages(self) -> u8 {
        self.stages
    }

    /// Stages before switch allocation.
    pub fn front(self) -> u16 {
        u16::from(self.stages.saturating_sub(2))
    }

    /// Stages after switch allocation.
    pub fn post(self) -> u16 {
        u16::from(self.stages > 1)
    }
}

/// All arbiters of all switches; a switch uses its own slice.
#[derive(Clone, Debug)]
pub(super) struct Arbiters<const W: usize> {
    /// Per (switch, set-routed channel): which input goes first.
    pub set: Bank<W>,
    /// Per input port: which channel enters the crossbar.
    pub input: Bank<1>,
    /// Per output port: which input it serves.
    pub output: Bank<W>,
    /// Per output port: where virtual-channel allocation starts looking.
    pub va_cursor_q: Vec<u16>,
}

impl<const W: usize> Arbiters<W> {
    pub fn new(policy: Policy, switches: usize, ports: usize, widest: usize, set: usize, vcs: usize) -> Self {
        Arbiters {
            set: Bank::new(policy, switches * set, widest),
            input: Bank::new(policy, ports, vcs),
            output: Bank::new(policy, ports, widest),
            va_cursor_q: vec![0; ports],
        }
    }
}

/// One copy of a multicast of several flits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Branch {
    pub port: u16,
    pub sent: u16,
    pub done: bool,
    /// Pool entry of the flit sent last; valid while that flit is still queued.
    pub last: u32,
}

/// A multicast of several flits under way at one input queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Fork {
    pub branches: Vec<Branch>,
    /// Flits that all copies have read and that left the queue.
    pub popped: u16,
}

/// All forks of a system.
#[derive(Clone, Debug, Default)]
pub(super) struct Forks {
    records: Vec<Fork>,
    free: Vec<u16>,
}

impl Forks {
    pub fn open(&mut self, ports: impl Iterator<Item = u16>) -> u16 {
        let branches = ports.map(|port| Branch { port, sent: 0, done: false, last: NONE });
        let record = self.free.pop().unwrap_or_else(|| {
            self.records.push(Fork::default());
            u16::try_from(self.records.len() - 1).expect("fewer than 65,536 multicasts of long frames at once")
        });
        let fork = &mut self.records[usize::from(record)];
        fork.popped = 0;
        fork.branches.clear();
        fork.branches.extend(branches);
        record
    }

    pub fn take(&mut self, record: u16) -> Fork {
        std::mem::take(&mut self.records[usize::from(record)])
    }

    pub fn put(&mut self, record: u16, fork: Fork) {
        self.records[usize::from(record)] = fork;
    }

    pub fn close(&mut self, record: u16) {
        self.free.push(record);
    }

    pub fn get(&self, record: u16) -> &Fork {
        &self.records[usize::from(record)]
    }
}

/// Memory that the allocators of one switch need within a cycle; shared by all switches.
#[derive(Clone, Debug)]
pub(super) struct Scratch<const W: usize> {
    pub channels: Vec<PortSet<1>>,
    pub chosen: Vec<u8>,
    pub requests: Vec<PortSet<W>>,
}

impl<const W: usize> Scratch<W> {
    pub fn new(widest: usize) -> Self {
        Scratch {
            channels: vec![PortSet::EMPTY; widest],
            chosen: vec![0; widest],
            requests: vec![PortSet::EMPTY; widest],
        }
    }
}

/// What the units of one switch share in one cycle.
pub(super) struct Cx<'a, T, J, const W: usize> {
    pub wires: &'a mut Wires,
    pub arbiters: &'a mut Arbiters<W>,
    pub forks: &'a mut Forks,
    pub scratch: &'a mut Scratch<W>,
    pub join: &'a mut J,
    pub tables: &'a T,
    pub node: u32,
    /// System-wide number of the switch's port 0.
    pub base: u32,
    /// System-local number of the engine port, or `u16::MAX`.
    pub engine: u16,
    pub stages: u8,
    pub taken_in: PortSet<W>,
    pub taken_out: PortSet<W>,
    /// Whether any register changed.
    pub changed: bool,
    pub wake: Wake,
}

impl<T, J, const W: usize> Cx<'_, T, J, W> {
    #[inline]
    pub fn is_engine(&self, port: u16) -> bool {
        port == self.engine
    }

    /// The number under which a queue holds an output channel: its local number plus one.
    #[inline]
    pub fn owner_number(&self, port: u16, vc: u8) -> u16 {
        (port << self.wires.vc_shift | u16::from(vc)) + 1
    }
}

/// One clock of one switch.
pub(super) fn tick<T: Tables<W>, J: Join<Tables = T>, const W: usize>(mut cx: Cx<'_, T, J, W>) -> Wake {
    if cx.engine != u16::MAX && !cx.join.asleep() {
        let at = cx.base + u32::from(cx.engine);
        let queued = (0..cx.wires.vcs.total()).map(|vc| usize::from(cx.wires.queues[cx.wires.queue(at, vc)].len)).sum();
        let out = cx.join.tick(&JoinCx { tables: cx.tables, switch: cx.node, now: cx.wires.now, queued });
        if let Some(result) = out.result {
            let ready = cx.wires.now + u64::from(cx.wires.front);
            cx.wires.push(cx.node, at, result, ready);
        }
        if let Some(fault) = out.fault {
            cx.wires.fail(|| fault.into());
        }
        cx.changed |= out.changed;
        cx.wake = cx.wake.or(out.wake);
    }
    forward::serve(&mut cx);
    if cx.wires.vcs.unicast > 0 {
        unicast::serve(&mut cx);
    }
    // What is blocked can only be freed by an arrival, which wakes the switch, or by a change in the switch itself.
    if cx.changed && (cx.wires.is_occupied(cx.node) || !cx.join.is_idle()) { Wake::Next } else { cx.wake }
}
