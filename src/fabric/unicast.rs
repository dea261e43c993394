//! Point-to-point packets: route computation, and the order of the steps of a cycle.
//!
//! | pipeline depth | cycle 1 | cycle 2 | cycle 3 | cycle 4 |
//! |---|---|---|---|---|
//! | 1 | RC VA SA ST | | | |
//! | 2 | RC VA SA | ST | | |
//! | 3 | RC VA | SA | ST | |
//! | 4 | RC | VA | SA | ST |
//!
//! Cycle 1 is the first in which the head flit is at the head of its queue, with the flit that carries the address
//! behind it, if that is another flit ([`Tables::route_flits`]). Body flits pass SA and ST only. Steps that share a
//! cycle are chained combinationally; steps in different cycles have a register between them. That register is the
//! state of the queue at the start of the cycle, kept as words of queue bits ([`Masks`](super::node::Masks)), so that a switch with one
//! packet in forty queues reads one queue. A packet that comes to the head of its queue because the tail before it left
//! in cycle t begins in cycle t + 1. An output channel whose tail left in cycle t can be given to another packet in
//! cycle t + 1. So a queue starts a packet every 1, 1, 2 or 3 cycles with 1 to 4 stages.
//!
//! | unit | where |
//! |---|---|
//! | RC | [`Tables::unicast`]: one output port and the channels that may be used there |
//! | VA | [`vc_alloc`]; where packets have classes, it serves one after the other (`class`) |
//! | SA | [`switch_alloc`], with classes as in VA; outputs and inputs that set-routed packets took in this cycle are not available |

use super::pipeline::SwitchCfg;
use super::ports::stride_shift;
use super::portset::{bits, each};
use super::switch_parts::{Arbiters, Cx, NO_TIMER, Scratch};
use super::switch_view::{SwitchView, route_entry};
use super::tables::{RouteView, Tables};
use super::waits::{Cause, Refusals};
use super::wires::{CHECKED, Input, NOTED, RETRY_ROUTE, State, UNOBSERVED, WATCHED, Wires};
use super::{Join, PortSet, class, switch_alloc, vc_alloc};
use std::mem::take;
use watershed_kernel::Wake;

/// Serves the point-to-point channels of a switch for one cycle.
pub(super) fn serve<T: Tables<W>, J: Join<Tables = T>, const W: usize>(cx: &mut Cx<'_, T, J, W>) {
    let shift = cx.wires.flow.vc_shift;
    let info = cx.wires.nodes[cx.node as usize];
    let ports = usize::from(info.ports);
    let (sides, stats) = cx.wires.ports.stretch_mut(cx.base, ports);
    let mut view = SwitchView {
        inputs: cx.wires.inputs.stretch_mut(cx.first_queue, ports << shift),
        sides,
        stride: stride_shift(shift),
        stats,
        masks: cx.wires.nodes.masks_mut(cx.node),
        flow: &mut cx.wires.flow,
        scratch: &mut *cx.scratch,
        base: cx.base,
        first_queue: cx.first_queue,
        node: cx.node,
        unicast_bits: cx.wires.unicast_bits,
        arbiters: &mut *cx.arbiters,
        pipeline: cx.pipeline,
        router: cx.router,
        taken_in: cx.taken_in,
        taken_out: cx.taken_out,
        changed: false,
        had_refusals: true,
        wake: Wake::OnInput,
    };
    if info.flags.one_word() {
        serve_word_as_seen(&mut view, cx.tables, info.flags.traced());
    } else {
        serve_words(&mut view, cx.tables);
    }
    cx.changed |= view.changed;
    cx.wake = cx.wake.or(view.wake);
}

/// One clock of a switch that has nothing but point-to-point channels, whose queues fit one word.
pub(super) fn tick_word<T: Tables<W>, const W: usize>(
    wires: &mut Wires,
    arbiters: &mut Arbiters<W>,
    scratch: &mut Scratch<W>,
    tables: &T,
    node: u32,
    cfg: &SwitchCfg,
) -> Wake {
    let info = &mut wires.nodes[node as usize];
    let shift = wires.flow.vc_shift;
    let ports = usize::from(info.ports);
    let base = info.port_base;
    let first_queue = (base as usize) << shift;
    let (masks, flags) = info.narrow();
    let (sides, stats) = wires.ports.stretch_mut(base, ports);
    let mut view = SwitchView {
        inputs: wires.inputs.stretch_mut(first_queue, ports << shift),
        sides,
        stride: stride_shift(shift),
        stats,
        masks: std::slice::from_mut(masks),
        flow: &mut wires.flow,
        arbiters,
        scratch,
        base,
        first_queue,
        node,
        unicast_bits: wires.unicast_bits,
        pipeline: cfg.pipeline,
        router: cfg.router,
        taken_in: PortSet::EMPTY,
        taken_out: PortSet::EMPTY,
        changed: false,
        had_refusals: flags.refused(),
        wake: Wake::OnInput,
    };
    serve_word_as_seen(&mut view, tables, flags.traced());
    // What is blocked can only be freed by an arrival, which wakes the switch, or by a change in the switch itself.
    let heeds = view.masks[0].occupied != 0;
    flags.set_heeds(heeds);
    flags.set_refused(view.had_refusals);
    if view.changed && heeds { Wake::Next } else { view.wake }
}

/// Any number of queues.
fn serve_words<T: Tables<W>, const W: usize>(view: &mut SwitchView<'_, W>, tables: &T) {
    // The registers at the start of the cycle.
    let (mut any_fresh, mut any_routed, mut any_active) = (0, 0, 0);
    for (w, at) in view.masks.iter().enumerate() {
        let fresh = at.occupied & view.unicast_bits & !(at.routed | at.active);
        let fresh = addressed(tables, view.inputs, w, fresh, (view.flow.vc_shift, view.flow.vcs.set));
        let active = at.active & at.occupied;
        view.scratch.fresh[w] = fresh;
        view.scratch.routed[w] = at.routed;
        view.scratch.active[w] = active;
        view.scratch.no_credit[w] = 0;
        any_fresh |= fresh;
        any_routed |= at.routed;
        any_active |= active;
    }
    if any_fresh | any_routed | any_active == 0 {
        note_waits::<T, W>(view);
        return;
    }
    let pipeline = view.pipeline;
    let slow = !view.arbiters.timer_q.is_empty();
    if slow {
        any_fresh = queues_past_step(view, Step::Route, pipeline.route);
    }
    if any_fresh != 0 {
        for w in 0..view.words() {
            for local in bits(&view.scratch.fresh, w) {
                compute_route(view, tables, local);
            }
            view.masks[w].routed |= view.scratch.fresh[w];
        }
        view.changed = true;
        if pipeline.route == 0 {
            for w in 0..view.words() {
                view.scratch.routed[w] |= view.scratch.fresh[w];
            }
            any_routed |= any_fresh;
        }
    }
    if slow {
        any_routed = queues_past_step(view, Step::Channel, pipeline.vc_alloc);
    }
    if any_routed != 0 {
        allocate_channels(view, tables);
        if pipeline.vc_alloc == 0 {
            for w in 0..view.words() {
                view.scratch.active[w] |= view.scratch.routed[w] & view.masks[w].active;
            }
            any_active |= any_routed;
        }
    }
    if slow {
        any_active = queues_past_step(view, Step::Switch, pipeline.switch_alloc);
    }
    if any_active != 0 || (view.router.speculative && any_routed != 0) {
        allocate_switch::<T, W>(view);
    }
    if view.flow.asks_again {
        for w in 0..view.words() {
            look_again(view, w, view.scratch.routed[w]);
        }
    }
    note_waits::<T, W>(view);
}

/// VA of the packets of `routed`, class by class where they have classes.
fn allocate_channels<T: Tables<W>, const W: usize>(view: &mut SwitchView<'_, W>, tables: &T) {
    let (routed, mut seen) = (take(&mut view.scratch.routed), take(&mut view.scratch.seen));
    let words = view.words();
    if T::CLASSES {
        class::allocate_channels(view, tables, &routed[..words], &mut seen[..words], vc_alloc::serve_words);
    } else {
        vc_alloc::serve_words(view, &routed[..words]);
    }
    (view.scratch.routed, view.scratch.seen) = (routed, seen);
}

/// SA of the queues of `active`, and speculatively of those of `routed`, class by class where packets have classes.
fn allocate_switch<T: Tables<W>, const W: usize>(view: &mut SwitchView<'_, W>) {
    let (active, routed) = (take(&mut view.scratch.active), take(&mut view.scratch.routed));
    let mut seen = take(&mut view.scratch.seen);
    let words = view.words();
    let speculative = view.router.speculative;
    let mut taken = PortSet::EMPTY;
    if T::CLASSES {
        let serve = |view: &mut SwitchView<'_, W>, active: &[u64]| switch_alloc::serve_words(view, active, &mut taken);
        class::allocate_crossings(view, &active[..words], &mut seen[..words], serve);
        if speculative {
            let serve =
                |view: &mut SwitchView<'_, W>, routed: &[u64]| switch_alloc::speculate(view, routed, &mut taken);
            class::speculate(view, &routed[..words], &mut seen[..words], serve);
        }
    } else {
        switch_alloc::serve_words(view, &active[..words], &mut taken);
        if speculative {
            switch_alloc::speculate(view, &routed[..words], &mut taken);
        }
    }
    (view.scratch.active, view.scratch.routed, view.scratch.seen) = (active, routed, seen);
}

/// What the packets wait for that are still there, of those words of this cycle.
fn note_waits<T: Tables<W>, const W: usize>(view: &mut SwitchView<'_, W>) {
    if view.stats.waits.is_some() {
        for w in 0..view.words() {
            // Each word for itself.
            view.had_refusals = true;
            let Scratch { routed, active, no_credit, .. } = &view.scratch;
            let (asked, no_credit) = ((routed[w], active[w]), no_credit[w]);
            let stage = view.stage();
            if !T::CLASSES && view.flow.is_never_busy() {
                note_word::<true, W>(view, w, asked, no_credit, stage);
            } else {
                note_word::<false, W>(view, w, asked, 0, stage);
            }
        }
    }
}

/// The same of a word of queues: those of `routed` asked for a channel in this cycle, those of `active` for a crossbar input. Only
/// packets are looked at that did not get what they asked for, in this cycle or when the switch was last looked at: all other
/// cycles of a packet are those of a stage, which [`Waits::of_port`] adds. And only those are looked at for which that has changed. Where
/// `CREDITS` are known, those of `no_credit` have none, and links are never busy.
///
/// [`Waits::of_port`]: super::waits::Waits::of_port
#[inline(always)]
fn note_word<const CREDITS: bool, const W: usize>(
    view: &mut SwitchView<'_, W>,
    w: usize,
    (routed, active): (u64, u64),
    no_credit: u64,
    stage: Option<u8>,
) {
    let masks = &view.masks[w];
    let channel = routed & !masks.active & masks.occupied;
    let refused = channel | active & masks.active & masks.occupied;
    if refused == 0 && !view.had_refusals {
        return;
    }
    let Some(waits) = &mut view.stats.waits else { return };
    let last = *waits.refusals(view.base, w);
    let known = if CREDITS { u64::MAX } else { channel };
    let same = refused & last.any & known & !((last.channel ^ channel) | (last.credit ^ no_credit));
    // Route computation, or a step whose turn comes in another cycle. Where one follows the other, who has got a channel asks for a
    // crossing then, and is looked at then.
    let in_stage = last.any & !refused & if stage.is_some() { !masks.active } else { u64::MAX };
    let kept = last.any & !in_stage & (same | !refused);
    let new = refused & !same;
    if new | in_stage == 0 {
        view.had_refusals = kept != 0;
        return;
    }
    let kept = Refusals { any: kept, channel: channel | kept & last.channel, credit: kept & last.credit };
    let stage = stage.unwrap_or(0);
    if CREDITS {
        note_queues::<true, W>(
            view,
            w,
            (new, in_stage),
            Refusals { credit: kept.credit | new & no_credit, ..kept },
            stage,
        );
    } else {
        note_queues::<false, W>(view, w, (new, in_stage), kept, stage);
    }
}

/// The same: the packets in queues `new` were refused something, and not the same as before; those `in_stage` no longer are. The others
/// stay as they are: these are the `refusals`, and of the new ones those of channels and, where they are known, credits.
#[inline(never)]
fn note_queues<const CREDITS: bool, const W: usize>(
    view: &mut SwitchView<'_, W>,
    w: usize,
    (new, in_stage): (u64, u64),
    mut refusals: Refusals,
    stage: u8,
) {
    let Some(waits) = &mut view.stats.waits else { return };
    let now = view.flow.now;
    let inputs = &view.inputs[w << 6..];
    for bit in each(in_stage) {
        waits.note(inputs[bit].head, now, Cause::Stage);
    }
    for bit in each(new) {
        let queue = &inputs[bit];
        let mut credit = refusals.credit >> bit & 1 == 1;
        let cause = if refusals.channel >> bit & 1 == 1 {
            Cause::Channel
        } else if CREDITS {
            if credit { Cause::Credit } else { Cause::Arbitration }
        } else {
            let out = queue.out_port;
            let side = &view.sides[usize::from(out) << view.stride];
            credit = side.vc_masks.credit >> queue.state.out_vc() & 1 == 0;
            refusals.credit |= u64::from(credit) << bit;
            if credit {
                Cause::Credit
            } else if view.flow.was_busy(view.base + u32::from(out)) {
                Cause::Link
            } else {
                Cause::Arbitration
            }
        };
        let slot = &mut view.flow.pool[queue.head as usize];
        if slot.allowed & NOTED != 0 {
            waits.note_refusal(queue.head, (now, stage), cause);
        } else if slot.ready > now {
            // It came to the head when the one before it left.
            continue;
        } else {
            slot.allowed |= NOTED;
            waits.note_first(queue.head, now, cause);
        }
        refusals.any |= 1 << bit;
    }
    view.had_refusals = refusals.any != 0;
    *waits.refusals(view.base, w) = refusals;
}

/// A switch whose queues fit one word, with monitors, journal and waves as configured.
#[inline(always)]
fn serve_word_as_seen<T: Tables<W>, const W: usize>(view: &mut SwitchView<'_, W>, tables: &T, traced: bool) {
    match if traced { WATCHED } else { view.flow.observers } {
        UNOBSERVED => serve_word::<UNOBSERVED, T, W>(view, tables),
        CHECKED => serve_word::<CHECKED, T, W>(view, tables),
        _ => serve_word::<WATCHED, T, W>(view, tables),
    }
}

/// Serves the channels of a switch whose queues fit one word and whose steps take a cycle at most: the words of the cycle are
/// registers of the machine.
fn serve_word<const OBS: u8, T: Tables<W>, const W: usize>(view: &mut SwitchView<'_, W>, tables: &T) {
    let at = view.masks[0];
    let fresh = at.occupied & view.unicast_bits & !(at.routed | at.active);
    let fresh = addressed(tables, view.inputs, 0, fresh, (view.flow.vc_shift, view.flow.vcs.set));
    let mut routed = at.routed;
    let (mut active, mut no_credit) = (at.active & at.occupied, 0);
    let at_once = view.pipeline.route == 0;
    if fresh != 0 {
        if fresh.is_power_of_two() {
            compute_route(view, tables, fresh.trailing_zeros() as usize);
        } else {
            compute_routes(view, tables, fresh);
        }
        view.masks[0].routed |= fresh;
        view.changed = true;
        if at_once {
            routed |= fresh;
        }
    }
    if routed != 0 {
        if T::CLASSES {
            let serve = |view: &mut SwitchView<'_, W>, seen: &[u64]| vc_alloc::serve_word::<OBS, W>(view, seen[0]);
            class::allocate_channels(view, tables, &[routed], &mut [0], serve);
        } else {
            vc_alloc::serve_word::<OBS, W>(view, routed);
        }
        if view.pipeline.vc_alloc == 0 {
            active |= routed & view.masks[0].active;
        }
    }
    if active != 0 {
        if T::CLASSES {
            let serve = |view: &mut SwitchView<'_, W>, seen: &[u64]| {
                switch_alloc::serve_word::<OBS, W>(view, seen[0]);
            };
            class::allocate_crossings(view, &[active], &mut [0], serve);
        } else {
            no_credit = switch_alloc::serve_word::<OBS, W>(view, active);
        }
    }
    if view.flow.asks_again {
        look_again(view, 0, routed);
    }
    // What was refused asks again whenever the switch is looked at, or for another route.
    let stage = Some(view.pipeline.vc_alloc);
    if OBS == CHECKED && !T::CLASSES {
        note_word::<true, W>(view, 0, (routed, active), no_credit, stage);
    } else if OBS & CHECKED != 0 {
        note_word::<false, W>(view, 0, (routed, active), 0, stage);
    }
}

/// The steps of a packet.
#[derive(Clone, Copy)]
enum Step {
    Route,
    Channel,
    Switch,
}

/// Of these queues in word `w`, those in which as much of the first packet stands as its route is computed from.
#[inline(always)]
fn addressed<T: Tables<W>, const W: usize>(
    tables: &T,
    inputs: &[Input],
    w: usize,
    queues: u64,
    (shift, set): (u32, u8),
) -> u64 {
    if T::ROUTE_FLITS == 1 {
        return queues;
    }
    let needs = |bit: usize| tables.route_flits((bit & ((1 << shift) - 1)) as u8 - set);
    each(queues).filter(|&bit| inputs[w << 6 | bit].len >= needs(bit)).fold(0, |all, bit| all | 1 << bit)
}

/// RC: a packet that came to the head of its queue gets an output port.
#[inline(always)]
fn compute_route<T: Tables<W>, const W: usize>(view: &mut SwitchView<'_, W>, tables: &T, local: usize) {
    let shift = view.shift();
    let (port, vc) = ((local >> shift) as u16, view.vc(local) as u8);
    let channel = &mut view.inputs[local];
    let at = RouteView::new(view.sides, (view.flow.vcs, view.stride), view.node, port, vc);
    let looked_at = route_entry(tables, &view.flow.pool, channel.head, vc - view.flow.vcs.set);
    let at = if T::ROUTE_FLITS == 1 { at } else { at.with(view.flow.more.of(looked_at as u32)) };
    let route = tables.unicast(&at, &view.flow.pool[looked_at].flit);
    let head = &mut view.flow.pool[channel.head as usize];
    view.flow.asks_again |= route.again;
    let again = if route.again { RETRY_ROUTE } else { 0 };
    head.allowed = head.allowed & NOTED | route.vcs & !(NOTED | RETRY_ROUTE) | again;
    channel.state = State::ROUTED;
    channel.out_port = route.port;
}

/// The same of several packets. What a loop prepares is too much for one packet alone, so they stand apart, here and in the allocators.
#[inline(never)]
fn compute_routes<T: Tables<W>, const W: usize>(view: &mut SwitchView<'_, W>, tables: &T, fresh: u64) {
    for local in each(fresh) {
        compute_route(view, tables, local);
    }
}

/// Packets that got no channel and whose route is to be computed again go back to the start.
#[inline]
fn look_again<const W: usize>(view: &mut SwitchView<'_, W>, w: usize, routed: u64) {
    for bit in each(routed & view.masks[w].routed) {
        let channel = &mut view.inputs[w << 6 | bit];
        if view.flow.pool[channel.head as usize].allowed & RETRY_ROUTE != 0 {
            channel.state = State::IDLE;
            view.masks[w].routed &= !(1 << bit);
        }
    }
}

/// A pipeline step of several cycles: keeps in the words of this cycle only the queues that complete it now, and starts the
/// timers of those that begin it. Returns whether any are left.
fn queues_past_step<const W: usize>(view: &mut SwitchView<'_, W>, step: Step, cycles: u8) -> u64 {
    const MASK: u32 = !(1 << 31);
    let now = view.flow.now as u32 & MASK;
    let words = match step {
        Step::Route => &mut view.scratch.fresh,
        Step::Channel => &mut view.scratch.routed,
        Step::Switch => &mut view.scratch.active,
    };
    let mut any = 0;
    for w in 0..view.masks.len() {
        for local in bits(words, w) {
            let timer = &mut view.arbiters.timer_q[view.first_queue + local];
            if *timer == NO_TIMER {
                *timer = now.wrapping_add(u32::from(cycles.saturating_sub(1))) & MASK;
            }
            if *timer == now {
                *timer = NO_TIMER;
            } else {
                words[w] &= !(1 << (local & 63));
                view.wake = view.wake.or(Wake::Next);
            }
            view.changed = true;
        }
        any |= words[w];
    }
    any
}
