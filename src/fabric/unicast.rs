//! Point-to-point packets: route computation, and the order of the steps of a cycle.
//!
//! | pipeline depth | cycle 1 | cycle 2 | cycle 3 | cycle 4 |
//! |---|---|---|---|---|
//! | 1 | RC VA SA ST | | | |
//! | 2 | RC VA SA | ST | | |
//! | 3 | RC VA | SA | ST | |
//! | 4 | RC | VA | SA | ST |
//!
//! Cycle 1 is the first in which the head flit stands at the head of its queue. Body flits pass SA and ST only. Steps
//! that share a cycle are chained combinationally; steps in different cycles have a register between them: the state
//! of the queue at the start of the cycle, kept as words of queue bits ([`Masks`](super::wires::Masks)) so that a
//! switch with one packet in forty queues looks at one. A packet that comes to the head of its queue because the tail
//! before it left in cycle t begins in cycle t + 1, and an output channel whose tail left in cycle t can be given to
//! another packet in cycle t + 1; so a queue starts a packet every 1, 1, 2 or 3 cycles with 1 to 4 stages.
//!
//! | unit | where |
//! |---|---|
//! | RC | [`Tables::unicast`]: one output port and the channels that may be used there |
//! | VA | [`vc_alloc`] |
//! | SA | [`switch_alloc`]; what set-routed packets took in this cycle is gone |

use super::network::{At, Tables};
use super::switch::{Cx, NO_TIMER};
use super::wires::{AGAIN, Phase};
use super::{Join, switch_alloc, vc_alloc};
use crate::kernel::Wake;

/// Serves the point-to-point channels of a switch for one cycle.
pub(super) fn serve<T: Tables<W>, J: Join<Tables = T>, const W: usize>(cx: &mut Cx<'_, T, J, W>) {
    if cx.words == 1 && cx.arbiters.timer_q.is_empty() && !cx.router.speculative {
        return serve_word(cx);
    }
    // The registers at the start of the cycle.
    let (mut any_fresh, mut any_routed, mut any_active) = (0, 0, 0);
    for w in 0..cx.words {
        let at = cx.wires.masks[cx.mask_base + w];
        let fresh = at.occupied & cx.wires.unicast_bits & !(at.routed | at.active);
        let active = at.active & at.occupied;
        cx.scratch.fresh[w] = fresh;
        cx.scratch.routed[w] = at.routed;
        cx.scratch.active[w] = active;
        any_fresh |= fresh;
        any_routed |= at.routed;
        any_active |= active;
    }
    if any_fresh | any_routed | any_active == 0 {
        return;
    }
    let pipeline = cx.pipeline;
    let slow = !cx.arbiters.timer_q.is_empty();
    if slow {
        any_fresh = ripe(cx, Step::Route, pipeline.route);
    }
    if any_fresh != 0 {
        compute_routes(cx);
        if pipeline.route == 0 {
            for w in 0..cx.words {
                cx.scratch.routed[w] |= cx.scratch.fresh[w];
            }
            any_routed |= any_fresh;
        }
    }
    if slow {
        any_routed = ripe(cx, Step::Channel, pipeline.vc_alloc);
    }
    if any_routed != 0 {
        vc_alloc::serve(cx);
        if pipeline.vc_alloc == 0 {
            for w in 0..cx.words {
                cx.scratch.active[w] |= cx.scratch.routed[w] & cx.wires.masks[cx.mask_base + w].active;
            }
            any_active |= any_routed;
        }
    }
    if slow {
        any_active = ripe(cx, Step::Switch, pipeline.switch_alloc);
    }
    if any_active != 0 || (cx.router.speculative && any_routed != 0) {
        switch_alloc::serve(cx);
    }
    if any_routed != 0 {
        look_again(cx);
    }
}

/// The same for a switch whose queues fit one word and whose steps take a cycle at most: the words of the cycle are
/// registers of the machine, and packets that do not compete go through the allocators without requests being laid out.
fn serve_word<T: Tables<W>, J: Join<Tables = T>, const W: usize>(cx: &mut Cx<'_, T, J, W>) {
    let at = cx.wires.masks[cx.mask_base];
    let fresh = at.occupied & cx.wires.unicast_bits & !(at.routed | at.active);
    let mut routed = at.routed;
    let mut active = at.active & at.occupied;
    if fresh | routed | active == 0 {
        return;
    }
    if fresh != 0 {
        for local in each(fresh) {
            compute_route(cx, local);
        }
        cx.wires.masks[cx.mask_base].routed |= fresh;
        cx.changed = true;
        if cx.pipeline.route == 0 {
            routed |= fresh;
        }
    }
    if routed != 0 {
        if vc_alloc::without_conflict(cx, routed).is_none() {
            cx.scratch.routed[0] = routed;
            vc_alloc::serve(cx);
        }
        if cx.pipeline.vc_alloc == 0 {
            active |= routed & cx.wires.masks[cx.mask_base].active;
        }
    }
    if active != 0 && switch_alloc::without_conflict(cx, active).is_none() {
        cx.scratch.active[0] = active;
        switch_alloc::serve(cx);
    }
    if routed != 0 {
        cx.scratch.routed[0] = routed;
        look_again(cx);
    }
}

/// The numbers of the bits set in a word.
#[inline]
pub(super) fn each(mut rest: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (rest != 0).then(|| {
            let bit = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            bit
        })
    })
}

/// The steps of a packet.
#[derive(Clone, Copy)]
enum Step {
    Route,
    Channel,
    Switch,
}

/// The numbers of the queues whose bit is set in word `w` of `words`.
#[inline]
pub(super) fn bits(words: &[u64], w: usize) -> impl Iterator<Item = usize> + use<> {
    each(words[w]).map(move |bit| w << 6 | bit)
}

/// RC: every packet that came to the head of its queue gets an output port.
fn compute_routes<T: Tables<W>, J: Join<Tables = T>, const W: usize>(cx: &mut Cx<'_, T, J, W>) {
    for w in 0..cx.words {
        for local in bits(&cx.scratch.fresh, w) {
            compute_route(cx, local);
        }
        cx.wires.masks[cx.mask_base + w].routed |= cx.scratch.fresh[w];
    }
    cx.changed = true;
}

#[inline]
fn compute_route<T: Tables<W>, J: Join<Tables = T>, const W: usize>(cx: &mut Cx<'_, T, J, W>, local: usize) {
    let shift = cx.wires.vc_shift;
    let (port, vc) = ((local >> shift) as u16, (local & ((1 << shift) - 1)) as u8);
    let q = cx.first_queue + local;
    let flit = cx.wires.pool[cx.wires.queues[q].head as usize].flit;
    let route = cx.tables.unicast(&At::new(cx.wires, cx.node, cx.base, port, vc), &flit);
    let queue = &mut cx.wires.queues[q];
    queue.phase = Phase::Routed;
    queue.out_port = route.port;
    queue.allowed = route.vcs & !AGAIN | if route.again { AGAIN } else { 0 };
}

/// Packets that got no channel and whose route is to be computed again go back to the start.
fn look_again<T: Tables<W>, J: Join<Tables = T>, const W: usize>(cx: &mut Cx<'_, T, J, W>) {
    for w in 0..cx.words {
        cx.scratch.routed[w] &= cx.wires.masks[cx.mask_base + w].routed;
        for local in bits(&cx.scratch.routed, w) {
            let queue = &mut cx.wires.queues[cx.first_queue + local];
            if queue.allowed & AGAIN != 0 {
                queue.phase = Phase::Idle;
                cx.wires.masks[cx.mask_base + w].routed &= !(1 << (local & 63));
            }
        }
    }
}

/// A step of several cycles: leaves in the words of this cycle only the queues for which it decides now, and starts the
/// timers of those that begin it. Returns whether any are left.
fn ripe<T: Tables<W>, J: Join<Tables = T>, const W: usize>(cx: &mut Cx<'_, T, J, W>, step: Step, cycles: u8) -> u64 {
    const MASK: u32 = !(1 << 31);
    let now = cx.wires.now as u32 & MASK;
    let words = match step {
        Step::Route => &mut cx.scratch.fresh,
        Step::Channel => &mut cx.scratch.routed,
        Step::Switch => &mut cx.scratch.active,
    };
    let mut any = 0;
    for w in 0..cx.words {
        for local in bits(words, w) {
            let timer = &mut cx.arbiters.timer_q[cx.first_queue + local];
            if *timer == NO_TIMER {
                *timer = now.wrapping_add(u32::from(cycles.saturating_sub(1))) & MASK;
            }
            if *timer == now {
                *timer = NO_TIMER;
            } else {
                words[w] &= !(1 << (local & 63));
                cx.wake = cx.wake.or(Wake::Next);
            }
            cx.changed = true;
        }
        any |= words[w];
    }
    any
}
