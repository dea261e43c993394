//! The switch: only the wiring between its units.
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
//! | [`Pipeline`](super::Pipeline) | cycles | 1 to 4, or step by step | every hop takes its sum + link latency | the credit round trip grows by that sum - 1 |
//! | buffer depth | flits a channel | from 1 | below the round trip the rate of a channel is depth / round trip | depth x flit width |
//! | [`Policy`](super::arbiter::Policy) | | round-robin, matrix, fixed | which requester waits | see [`arbiter`](super::arbiter) |
//!
//! Timing: an unblocked flit delivered in cycle t leaves in cycle t + stages; the neighbour gets it at t + stages +
//! latency. Set-routed packets spend the front stages as plain delay (the register look-up takes the place of RC and VA
//! *chosen*).
//!
//! The allocators and the other knobs of point-to-point channels are in [`router`](super::router).
//!
//! Limitations: one flit an output port in a cycle.

use super::switch_parts::Cx;
use super::tables::Tables;
use super::{Join, JoinCx, QueueLengths, forward, unicast};
use watershed_kernel::Wake;

/// One clock of one switch.
pub(super) fn tick<T: Tables<W>, J: Join<Tables = T>, const W: usize>(mut cx: Cx<'_, T, J, W>) -> Wake {
    if cx.engine != u16::MAX && !cx.join.can_skip_tick() {
        let at = cx.base + u32::from(cx.engine);
        let queues = cx.wires.inputs.stretch(cx.wires.queue(at, 0), 1 << cx.wires.flow.vc_shift);
        let queued = QueueLengths::of(queues);
        let out = cx.join.tick(&JoinCx { tables: cx.tables, switch: cx.node, now: cx.wires.flow.now, queued });
        if let Some(result) = out.result {
            // As with arrivals: point-to-point packets walk through the front stages, the others wait them out.
            let front = if cx.wires.flow.vcs.is_set(result.tag.vc()) { cx.wires.flow.delays.front } else { 0 };
            let ready = cx.wires.flow.now + u64::from(front);
            cx.wires.push(cx.node, at, (result, cx.join.more()), ready);
        }
        if let Some(fault) = out.fault {
            cx.wires.fail(|| fault.into());
        }
        cx.changed |= out.changed;
        cx.wake = cx.wake.or(out.wake);
    }
    forward::serve(&mut cx);
    if cx.wires.flow.vcs.unicast > 0 {
        unicast::serve(&mut cx);
    }
    // What is blocked can only be freed by an arrival, which wakes the switch, or by a change in the switch itself.
    let occupied = cx.wires.nodes.is_occupied(cx.node);
    cx.wires.nodes[cx.node as usize].flags.set_heeds(occupied);
    if cx.changed && (occupied || cx.join.acts_on_change()) { Wake::Next } else { cx.wake }
}
