//! The two forms in which an engine joins the fabric.
//!
//! ```text
//!  internal crossbar port, with a join               credit-terminated bump in the wire
//!
//!   in 0 ─┬─▶ ┌──────────┐ ─▶ out 0                  ┌────────┐ credits  ┌──────┐ credits  ┌────────┐
//!   in 1 ─┼─▶ │ crossbar │ ─▶ out 1                  │ switch │◀────────▶│ bump │◀────────▶│ switch │
//!    …    │   └──────────┘                           └────────┘  flits   └──────┘  flits   └────────┘
//!         ▼      ▲   engine's result = one                    port 0 of the bump  port 1
//!       slots    │   extra crossbar input
//!         └▶ ┌────────┐
//!            │ engine │
//!            └────────┘
//! ```
//!
//! **Internal port** ([`Join`]): the last port of a switch, for set-routed packets. A flit that is routed to it lands
//! in the operand slot of the port it came in by; the engine takes slots when it likes and its results enter the
//! crossbar through the input side of the same port. Slots share nothing, so a packet of several flits does not block
//! the engine: packets of all inputs stream into their slots side by side. An engine that returns packets of several
//! flits must return each of them whole. Timing: a flit granted in cycle t is visible in its slot at t + post + 1; a
//! result that `tick` returns in cycle t can be granted in cycle t + front. So a packet that passes an engine of
//! latency T spends 2 x pipeline + T cycles in the switch; one that does not spends pipeline cycles.
//!
//! **Bump in the wire** ([`Block`] with two ports): a node between two link halves. It ends the credit loop of one side
//! and starts its own on the other, so it may absorb, replace, hold or inject flits. A neighbour gets its credits from
//! the bump. Timing: a flit that arrives in the queue at the start of cycle t can be sent on in cycle t. A bump that
//! passes everything on at once therefore adds the latency of its half-link and one cycle for the register at its
//! input.

use super::wires::{Input, Io};
use super::{Flit, Vcs};
use watershed_kernel::{Cycle, Wake};

/// What an engine behind an internal crossbar port sees in a cycle.
#[derive(Debug)]
pub struct JoinCx<'a, T> {
    /// The family's tables.
    pub tables: &'a T,
    /// The switch the engine sits in.
    pub switch: u32,
    /// The present cycle.
    pub now: Cycle,
    /// Results that stand in the queues of the engine's crossbar input.
    pub queued: QueueLengths<'a>,
}

/// The length of each channel's queue of results at an engine's crossbar input.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueLengths<'a>(Lengths<'a>);

/// The queues themselves, or their lengths where there are no queues.
#[derive(Clone, Copy, Debug)]
enum Lengths<'a> {
    Queues(&'a [Input]),
    Counts(&'a [u16]),
}

impl Default for Lengths<'_> {
    fn default() -> Self {
        Lengths::Counts(&[])
    }
}

impl<'a> QueueLengths<'a> {
    /// The queues of the engine's port.
    #[inline]
    pub(super) fn of(queues: &'a [Input]) -> Self {
        QueueLengths(Lengths::Queues(queues))
    }

    /// Counts of the channels from 0 on, for an engine that is driven without a switch.
    pub fn counts(counts: &'a [u16]) -> Self {
        QueueLengths(Lengths::Counts(counts))
    }

    /// Those of the channels from one of them on, which is counted as 0.
    #[must_use]
    pub fn behind(self, first: u8) -> Self {
        let first = usize::from(first);
        QueueLengths(match self.0 {
            Lengths::Queues(queues) => Lengths::Queues(queues.get(first..).unwrap_or_default()),
            Lengths::Counts(counts) => Lengths::Counts(counts.get(first..).unwrap_or_default()),
        })
    }

    /// All channels together.
    #[inline]
    pub fn all(&self) -> usize {
        match self.0 {
            Lengths::Queues(queues) => queues.iter().map(|queue| usize::from(queue.len)).sum(),
            Lengths::Counts(counts) => counts.iter().map(|&count| usize::from(count)).sum(),
        }
    }

    /// Those of one channel.
    #[inline]
    pub fn on(&self, vc: u8) -> usize {
        match self.0 {
            Lengths::Queues(queues) => queues.get(usize::from(vc)).map_or(0, |queue| usize::from(queue.len)),
            Lengths::Counts(counts) => counts.get(usize::from(vc)).map_or(0, |&count| usize::from(count)),
        }
    }
}

/// What an engine answers.
#[derive(Clone, Debug)]
pub struct JoinOut {
    /// A result that enters the crossbar's engine input in this cycle.
    pub result: Option<Flit>,
    /// Whether any of the engine's registers changed.
    pub changed: bool,
    /// When the engine must be ticked again.
    pub wake: Wake,
    /// A breach of a rule that the engine noticed; the run ends with a failed check.
    pub fault: Option<Box<str>>,
}

/// An engine behind an internal crossbar port of a switch.
pub trait Join: 'static {
    /// The family's tables.
    type Tables;

    /// Whether the operand slot of input port `port` can take a flit that is granted in this cycle.
    fn has_room(&self, port: u16, vc: u8) -> bool;

    /// Whether the slot of input port `port` is full because operands are missing that belong to the one in front. Those that are
    /// visible later than in cycle `visible` do not count as there. Asked only where there is no room.
    fn operands_missing(&self, tables: &Self::Tables, switch: u32, slot: (u16, u8), visible: Cycle) -> bool {
        let _ = (tables, switch, slot, visible);
        false
    }

    /// Puts a granted flit into the slot of its input port; it is visible from cycle `visible` on.
    fn put_flit(&mut self, port: u16, vc: u8, flit: Flit, visible: Cycle);

    /// As [`Join::put_flit`], with the words of the flit behind its first.
    #[inline]
    fn put_wide(&mut self, port: u16, vc: u8, (flit, more): (Flit, &[u64]), visible: Cycle) {
        let _ = more;
        self.put_flit(port, vc, flit, visible);
    }

    /// One clock.
    fn tick(&mut self, cx: &JoinCx<'_, Self::Tables>) -> JoinOut;

    /// The words behind the first of the result of the last clock.
    #[inline]
    fn more(&self) -> &[u64] {
        &[]
    }

    /// Whether nothing is in the engine.
    fn is_idle(&self) -> bool;

    /// Whether tick has nothing to do and may be left out: no register would change.
    fn can_skip_tick(&self) -> bool {
        self.is_idle()
    }

    /// Whether a change elsewhere in its switch, or its own last tick, may let the engine do something before it asked to be
    /// woken: it waits for a place behind it, or has more to choose from.
    fn acts_on_change(&self) -> bool {
        !self.is_idle()
    }

    /// For the watchdog: the input ports (with channel and a reason) without which the engine cannot go on, or `None`
    /// if it waits for its own result to leave.
    fn waits_for(&self, tables: &Self::Tables, switch: u32) -> Vec<(u16, u8, String)>;

    /// Describes the engine's registers to a wave.
    fn probe(&self, scope: &mut watershed_probe::Scope<'_>);

    /// Scopes of [`probe_stages`](Self::probe_stages) below that of the switch.
    const STAGES: &'static [&'static str] = &[];

    /// Switches the registers of its pipelines on or off for waveforms: while on, they are clocked, and the engine is
    /// awake while something is in them.
    fn watch(&mut self, _watched: bool, _tables: &Self::Tables, _switch: u32) {}

    /// Whether one of these registers may have changed at the last edge.
    fn stages_moved(&self) -> bool {
        true
    }

    /// Describes the registers of its pipelines to a wave, while it is watched.
    fn probe_stages(&self, _scope: &mut watershed_probe::Scope<'_>) {}
}

/// A block with ports of its own: an end point (one port) or a bump in the wire (two).
pub trait Block: 'static {
    /// The family's tables.
    type Tables;

    /// One clock: reads its registers and what its queues hold, sends, and says when it must be ticked again. A tick
    /// in which nothing arrived and nothing was due must change nothing.
    fn tick(&mut self, io: &mut Io<'_>, tables: &Self::Tables) -> Wake;

    /// For the watchdog: work that is still open, in words, or `None`.
    fn open(&self) -> Option<String>;

    /// For the watchdog: why the head of a channel stays there, in words, if the block knows better than by what is open.
    fn stall_reason(&self, _head: &Flit) -> Option<String> {
        None
    }

    /// Describes the block's registers to a wave.
    fn probe(&self, scope: &mut watershed_probe::Scope<'_>);

    /// Scopes of [`probe_stages`](Self::probe_stages) below that of the block.
    const STAGES: &'static [&'static str] = &[];

    /// As [`Join::watch`].
    fn watch(&mut self, _watched: bool, _tables: &Self::Tables) {}

    /// Whether one of these registers may have changed at the last edge.
    fn stages_moved(&self) -> bool {
        true
    }

    /// Describes the registers of its pipelines to a wave, while it is watched.
    fn probe_stages(&self, _scope: &mut watershed_probe::Scope<'_>) {}
}

/// The engine of switches that have none.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
#[saved(bound = "")]
pub struct NoJoin<T>(std::marker::PhantomData<T>);

impl<T> Default for NoJoin<T> {
    fn default() -> Self {
        NoJoin(std::marker::PhantomData)
    }
}

impl<T: 'static> Join for NoJoin<T> {
    type Tables = T;
    fn has_room(&self, _: u16, _: u8) -> bool {
        false
    }
    fn put_flit(&mut self, _: u16, _: u8, _: Flit, _: Cycle) {}
    fn tick(&mut self, _: &JoinCx<'_, T>) -> JoinOut {
        JoinOut { result: None, changed: false, wake: Wake::OnInput, fault: None }
    }
    fn is_idle(&self) -> bool {
        true
    }
    fn waits_for(&self, _: &T, _: u32) -> Vec<(u16, u8, String)> {
        Vec::new()
    }
    fn probe(&self, _: &mut watershed_probe::Scope<'_>) {}
}

/// The bump of families that have none.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
#[saved(bound = "")]
pub struct NoBump<T>(std::marker::PhantomData<T>);

impl<T: 'static> Block for NoBump<T> {
    type Tables = T;
    fn tick(&mut self, _: &mut Io<'_>, _: &T) -> Wake {
        Wake::OnInput
    }
    fn open(&self) -> Option<String> {
        None
    }
    fn probe(&self, _: &mut watershed_probe::Scope<'_>) {}
}

/// Moves what can move from one side of a two-port block to the other, a flit a direction and cycle, the highest
/// set-routed channel first: what a bump does with traffic that is not its own. Which point-to-point channel goes first
/// changes from cycle to cycle, so that none starves *chosen*.
///
/// `passes` decides for every flit that could move, with its words behind the first: `true` passes it on, `false` leaves it to the bump (which then takes
/// it from the queue itself). Returns whether anything moved.
pub fn pass_through(io: &mut Io<'_>, mut passes: impl FnMut(u16, &Flit, &[u64]) -> bool) -> bool {
    let Vcs { set, unicast } = io.vcs();
    let mut moved = false;
    let turn = (io.now() % u64::from(unicast.max(1))) as u8;
    for (from, to) in [(0, 1), (1, 0)] {
        let occupied = io.occupied(from);
        if occupied == 0 {
            continue;
        }
        let point_to_point = (turn..unicast).chain(0..turn).map(|vc| set + vc);
        for vc in (0..set).rev().chain(point_to_point).filter(|vc| occupied >> vc & 1 == 1) {
            let Some(flit) = io.head(from, vc) else { continue };
            if io.can_send(to, vc) && passes(from, &flit, io.more(from, vc)) {
                io.pass(from, to, vc);
                moved = true;
                break;
            }
        }
    }
    moved
}
