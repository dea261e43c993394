//! What the units of a switch share: the registers of its arbiters, and what passes between them within a cycle.

use super::arbiter::{Bank, Policy};
use super::class::ClassRegisters;
use super::pipeline::{Pipeline, SwitchCfg};
use super::ports::NONE;
use super::router::{RouterCfg, SwitchAllocator, VcAllocator};
use super::wires::Wires;
use super::{PortSet, Vcs};
use std::ops::Range;
use watershed_kernel::{Cycle, Wake};
use watershed_state::state;

/// All arbiters of all switches; a switch uses its own slice. What the chosen allocators do not need is empty.
#[derive(Clone, Debug)]
pub(super) struct Arbiters<const W: usize> {
    /// Per (switch of this part, set-routed channel): which input goes first.
    pub set: Bank<W>,
    /// The first switch of this part.
    pub first_switch: u32,
    /// Per crossbar input: which channel enters the crossbar.
    pub input: Bank<1>,
    /// Per output port: which crossbar input it serves.
    pub output: Bank<W>,
    /// Per crossbar input: which output's offer it accepts (iSLIP).
    pub accept: Bank<W>,
    /// Per output port: where ordered virtual-channel allocation starts looking.
    pub va_cursor_q: Vec<u16>,
    /// Per output channel: the queue that channel allocation serves first (separable, iSLIP).
    pub va_grant_q: Vec<u16>,
    /// Per output channel: which input port goes first (separable with matrix arbiters).
    pub va_ports: Option<Bank<W>>,
    /// Only if packets have classes.
    pub classes: ClassRegisters,
    /// Per queue: the cycle in which the step it is in decides; only if a step takes several cycles.
    pub timer_q: Vec<u32>,
}

state!([const W: usize] Arbiters<W> {
    saved: set, input, output, accept, va_cursor_q, va_grant_q, va_ports, classes, timer_q;
    built: first_switch
});

impl<const W: usize> Arbiters<W> {
    pub fn new(cfg: &SwitchCfg, switches: Range<u32>, widest: usize, vcs: Vcs, ports: usize, vc_shift: u32) -> Self {
        let router = &cfg.router;
        let queues = ports << vc_shift;
        let speedup = usize::from(router.input_speedup);
        let some = |wanted: bool, count: usize| vec![0; if wanted { count } else { 0 }];
        let islip = router.switch_allocator == SwitchAllocator::Islip;
        let ordered = router.vc_allocator == VcAllocator::Ordered;
        // An iSLIP arbiter is a cursor by definition.
        let policy = if islip { Policy::RoundRobin } else { cfg.policy };
        let matrix = router.vc_allocator == VcAllocator::Separable && cfg.policy != Policy::RoundRobin;
        Arbiters {
            set: Bank::new(cfg.policy, switches.len() * usize::from(vcs.set), widest),
            first_switch: switches.start,
            input: Bank::new(policy, ports * speedup, usize::from(vcs.total())),
            output: Bank::new(policy, ports, widest * speedup),
            accept: Bank::new(Policy::RoundRobin, if islip { ports * speedup } else { 0 }, widest),
            va_cursor_q: some(ordered, ports),
            va_grant_q: some(!ordered, queues),
            va_ports: matrix.then(|| Bank::new(cfg.policy, queues, widest)),
            classes: ClassRegisters::default(),
            timer_q: vec![NO_TIMER; if cfg.pipeline.is_slow() { queues } else { 0 }],
        }
    }
}

/// The timer of a queue that is in no step of several cycles.
pub(super) const NO_TIMER: u32 = u32::MAX;

/// One copy of a multicast of several flits.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
pub(super) struct Branch {
    pub port: u16,
    pub sent: u16,
    pub done: bool,
    /// Pool entry of the flit sent last; valid while that flit is still queued.
    pub last: u32,
    /// From when on it can send its next flit: it sends one a cycle.
    pub from: Cycle,
}

impl Branch {
    /// When it could have sent its next flit first, of which `ready` says when it has passed the stages before allocation.
    pub fn could_send(&self, fork: &Fork, ready: Cycle) -> Cycle {
        let at_head = fork.head_ready.filter(|_| self.sent == fork.popped);
        self.from.max(at_head.unwrap_or(ready))
    }
}

/// A multicast of several flits under way at one input queue.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
pub(super) struct Fork {
    pub branches: Vec<Branch>,
    /// Flits that all copies have read and that left the queue.
    pub popped: u16,
    /// When the flit that came to the head as the last one left had passed the stages before allocation, if it stood in the queue:
    /// copies read ahead of the head, where it counts as having just come.
    pub head_ready: Option<Cycle>,
}

/// All forks of a system.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
pub(super) struct Forks {
    records: Vec<Fork>,
    free: Vec<u16>,
}

impl Forks {
    pub fn open(&mut self, ports: impl Iterator<Item = u16>) -> u16 {
        let branches = ports.map(|port| Branch { port, sent: 0, done: false, last: NONE, from: 0 });
        let record = self.free.pop().unwrap_or_else(|| {
            self.records.push(Fork::default());
            u16::try_from(self.records.len() - 1).expect("fewer than 65,536 multicasts of long frames at once")
        });
        let fork = &mut self.records[usize::from(record)];
        fork.popped = 0;
        fork.head_ready = None;
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
    /// Words of queue bits at the start of the cycle: heads that have no route, those that have, those with a channel.
    pub fresh: Vec<u64>,
    pub routed: Vec<u64>,
    pub active: Vec<u64>,
    /// Of those with a channel, the ones without a credit.
    pub no_credit: Vec<u64>,
    /// Those of one class, while allocators serve class by class.
    pub seen: Vec<u64>,
    /// Per output: the words of queue bits of those that want a channel there.
    pub want: Vec<u64>,
    /// Per queue: channels that offered themselves or were picked.
    pub offers: Vec<u32>,
    /// Per crossbar input: the channels that could send.
    pub channels: Vec<PortSet<1>>,
    /// Per output: the crossbar inputs that want it.
    pub requests: Vec<PortSet<W>>,
    /// Per crossbar input: the outputs that offered themselves.
    pub offers_to: Vec<PortSet<W>>,
    /// Per crossbar input: the queue that was picked.
    pub chosen: Vec<u16>,
    /// Per queue: its crossbar input. Constant.
    pub xbar_inputs: Vec<u16>,
    /// What switches use whose queues fit one word.
    pub word: SingleWordScratch,
}

/// The memory of switches whose queues fit one word. Their crossbar inputs and outputs then fit one too, so all numbers
/// are below 64 and need no bounds check.
#[derive(Clone, Debug)]
pub(super) struct SingleWordScratch {
    want: [u64; 64],
    queues_for: [u64; 64],
    xbar_inputs: [u8; 64],
    queues: [u64; 64],
    outs: [u64; 64],
    chosen: [u8; 64],
}

impl SingleWordScratch {
    fn new(xbar_inputs: &[u16]) -> SingleWordScratch {
        let mut word = SingleWordScratch {
            want: [0; 64],
            queues_for: [0; 64],
            xbar_inputs: [0; 64],
            queues: [0; 64],
            outs: [0; 64],
            chosen: [0; 64],
        };
        for (local, &xbar_input) in xbar_inputs.iter().enumerate().take(64) {
            word.xbar_inputs[local] = xbar_input as u8;
            word.queues[usize::from(xbar_input & 63)] |= 1 << local;
        }
        word
    }

    /// Notes that queue (or crossbar input) `local` wants output `out`; `wanted` has the outputs noted so far.
    #[inline(always)]
    pub fn request(&mut self, wanted: &mut u64, out: u16, local: usize) {
        let out = out & 63;
        let want = &mut self.want[usize::from(out)];
        // The contents are of this cycle if they were asked for before in it.
        let before = std::hint::select_unpredictable(*wanted >> out & 1 == 1, *want, 0);
        *want = before | 1 << (local & 63);
        *wanted |= 1 << out;
    }

    /// As [`SingleWordScratch::request`] for a queue of crossbar input `e`, of which [`SingleWordScratch::wanting`] knows then.
    #[inline(always)]
    pub fn request_by(&mut self, wanted: &mut u64, out: u16, e: u16, local: usize) {
        let queues = &mut self.queues_for[usize::from(out & 63)];
        let before = std::hint::select_unpredictable(*wanted >> (out & 63) & 1 == 1, *queues, 0);
        *queues = before | 1 << (local & 63);
        self.request(wanted, out, usize::from(e));
    }

    /// The queues of crossbar input `e` that want output `out`; valid if [`SingleWordScratch::request_by`] was told so in this cycle.
    #[inline(always)]
    pub fn wanting(&self, e: u16, out: u16) -> u64 {
        self.queues_for[usize::from(out & 63)] & self.queues(e)
    }

    /// The queues that want output `out`; valid if one of them asked in this cycle.
    #[inline(always)]
    pub fn want(&self, out: usize) -> u64 {
        self.want[out & 63]
    }

    /// The crossbar input of a queue.
    #[inline(always)]
    pub fn xbar_input(&self, local: usize) -> u16 {
        u16::from(self.xbar_inputs[local & 63])
    }

    /// The queues of a crossbar input.
    #[inline(always)]
    pub fn queues(&self, xbar_input: u16) -> u64 {
        self.queues[usize::from(xbar_input & 63)]
    }

    /// Notes the queue that a crossbar input picked.
    #[inline(always)]
    pub fn choose(&mut self, xbar_input: u16, local: usize) {
        self.chosen[usize::from(xbar_input & 63)] = local as u8;
    }

    /// The queue that a crossbar input picked.
    #[inline(always)]
    pub fn chosen(&self, xbar_input: u16) -> usize {
        usize::from(self.chosen[usize::from(xbar_input & 63)])
    }

    /// The outputs that offered themselves to a crossbar input.
    #[inline(always)]
    pub fn outs(&mut self, xbar_input: usize) -> &mut u64 {
        &mut self.outs[xbar_input & 63]
    }
}

impl<const W: usize> Scratch<W> {
    pub fn new(widest: usize, vc_shift: u32, speedup: usize) -> Self {
        let words = (widest << vc_shift).div_ceil(64);
        let xbar_input = |local: usize| (local >> vc_shift) * speedup + (local & ((1 << vc_shift) - 1)) % speedup;
        let xbar_inputs: Vec<u16> = (0..widest << vc_shift).map(|local| xbar_input(local) as u16).collect();
        Scratch {
            word: SingleWordScratch::new(&xbar_inputs),
            xbar_inputs,
            fresh: vec![0; words],
            routed: vec![0; words],
            active: vec![0; words],
            no_credit: vec![0; words],
            seen: vec![0; words],
            want: vec![0; words * widest],
            offers: vec![0; widest << vc_shift],
            channels: vec![PortSet::EMPTY; widest * speedup],
            requests: vec![PortSet::EMPTY; widest],
            offers_to: vec![PortSet::EMPTY; widest * speedup],
            chosen: vec![0; widest * speedup],
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
    /// Its queue 0.
    pub first_queue: usize,
    /// System-local number of the engine port, or `u16::MAX`.
    pub engine: u16,
    pub pipeline: Pipeline,
    pub router: RouterCfg,
    pub taken_in: PortSet<W>,
    pub taken_out: PortSet<W>,
    /// Outputs that set-routed packets are about to take, so that point-to-point ones do not.
    pub reserved: PortSet<W>,
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
        (port << self.wires.flow.vc_shift | u16::from(vc)) + 1
    }
}
