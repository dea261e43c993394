//! Switch allocation and traversal: which flits cross the switch in this cycle.
//!
//! ```text
//!   input port p ──┬─ passage p·s     (channels v with v mod s = 0) ──┐
//!                  ├─ …                                               ├──▶ crossbar ──▶ output o: one flit a cycle
//!                  └─ passage p·s+s-1                               ──┘
//! ```
//!
//! A queue whose packet holds an output channel asks for a passage if there is a credit and the link is free.
//!
//! | allocator | step 1 | step 2 |
//! |---|---|---|
//! | separable | each passage picks a channel | each output picks a passage |
//! | iSLIP | among channels of a passage that want the same output, one in turn; each output offers itself to a passage | each passage accepts an offer |
//!
//! With speculation a second allocator of the same kind serves packets that asked for a channel in this cycle, over
//! passages and outputs the first one left; its grant counts only if the packet got a channel, with a credit.

use super::network::Tables;
use super::switch::Cx;
use super::unicast::{bits, each};
use super::wires::Phase;
use super::{Join, PortSet, SwitchAllocator};
use crate::kernel::Wake;

/// Serves every queue that can send.
pub(super) fn serve<T: Tables<W>, J: Join<Tables = T>, const W: usize>(cx: &mut Cx<'_, T, J, W>) {
    let speedup = u16::from(cx.router.input_speedup);
    let mut passages: PortSet<W> = PortSet::EMPTY;
    for w in 0..cx.words {
        for local in bits(&cx.scratch.active, w) {
            if can_send(cx, local).is_some() {
                enter(cx, &mut passages, local, speedup);
            }
        }
    }
    let mut taken: PortSet<W> = PortSet::EMPTY;
    if !passages.is_empty() {
        allocate(cx, passages, speedup, &mut taken, false);
    }
    if cx.router.speculative {
        let mut passages: PortSet<W> = PortSet::EMPTY;
        for w in 0..cx.words {
            for local in bits(&cx.scratch.routed, w) {
                let out = cx.wires.queues[cx.first_queue + local].out_port;
                if !taken.contains(passage(cx, local, speedup)) && is_open(cx, local, out) {
                    enter(cx, &mut passages, local, speedup);
                }
            }
        }
        if !passages.is_empty() {
            allocate(cx, passages, speedup, &mut taken, true);
        }
    }
}

/// Serves the queues whose bits are set in `active`, if those that can send want different outputs and come over
/// different passages.
#[inline]
pub(super) fn without_conflict<T: Tables<W>, J: Join<Tables = T>, const W: usize>(
    cx: &mut Cx<'_, T, J, W>,
    active: u64,
) -> Option<()> {
    let speedup = u16::from(cx.router.input_speedup);
    let mut wanted: PortSet<W> = PortSet::EMPTY;
    let mut passages: PortSet<W> = PortSet::EMPTY;
    let mut able = 0u64;
    for local in each(active) {
        let Some(out) = can_send(cx, local) else { continue };
        let e = passage(cx, local, speedup);
        if wanted.contains(out) || passages.contains(e) {
            return None;
        }
        wanted.insert(out);
        passages.insert(e);
        able |= 1 << local;
    }
    for local in each(able) {
        let out = cx.wires.queues[cx.first_queue + local].out_port;
        alone(cx, local, out, speedup);
    }
    Some(())
}

/// The output of a queue, if the flit at its head could cross now.
#[inline]
fn can_send<T, J, const W: usize>(cx: &mut Cx<'_, T, J, W>, local: usize) -> Option<u16> {
    let queue = &cx.wires.queues[cx.first_queue + local];
    let (out, out_vc) = (queue.out_port, queue.out_vc);
    let credit = cx.wires.links[cx.base as usize + usize::from(out)].credit >> out_vc & 1 == 1;
    (credit && is_open(cx, local, out)).then_some(out)
}

/// A flit that nobody competes with: both ranks of either allocator grant it.
#[inline]
fn alone<T: Tables<W>, J: Join<Tables = T>, const W: usize>(
    cx: &mut Cx<'_, T, J, W>,
    local: usize,
    out: u16,
    speedup: u16,
) {
    let e = passage(cx, local, speedup);
    let at = cx.base as usize * usize::from(speedup) + usize::from(e);
    let vc = (local & ((1 << cx.wires.vc_shift) - 1)) as u16;
    cx.arbiters.input.granted(at, vc);
    cx.arbiters.output.granted(cx.base as usize + usize::from(out), e);
    if cx.router.switch_allocator == SwitchAllocator::Islip {
        cx.arbiters.accept.granted(at, out);
    }
    traverse(cx, local, out, false);
}

/// The input passage of a queue.
#[inline]
fn passage<T, J, const W: usize>(cx: &Cx<'_, T, J, W>, local: usize, speedup: u16) -> u16 {
    if speedup == 1 {
        return (local >> cx.wires.vc_shift) as u16;
    }
    let vc = (local & ((1 << cx.wires.vc_shift) - 1)) as u16;
    (local >> cx.wires.vc_shift) as u16 * speedup + vc % speedup
}

/// Whether neither the input port nor the output is taken by set-routed packets or earlier grants, and the link is free.
#[inline]
fn is_open<T, J, const W: usize>(cx: &mut Cx<'_, T, J, W>, local: usize, out: u16) -> bool {
    if cx.taken_in.contains((local >> cx.wires.vc_shift) as u16) || cx.taken_out.contains(out) {
        return false;
    }
    match cx.wires.is_free(cx.base + u32::from(out)) {
        Ok(()) => true,
        Err(cycle) => {
            cx.wake = cx.wake.or(Wake::At(cycle));
            false
        }
    }
}

/// Notes a request.
#[inline]
fn enter<T, J, const W: usize>(cx: &mut Cx<'_, T, J, W>, passages: &mut PortSet<W>, local: usize, speedup: u16) {
    let e = passage(cx, local, speedup);
    let channels = &mut cx.scratch.channels[usize::from(e)];
    if !passages.contains(e) {
        passages.insert(e);
        *channels = PortSet::EMPTY;
    }
    channels.insert((local & ((1 << cx.wires.vc_shift) - 1)) as u16);
}

fn allocate<T: Tables<W>, J: Join<Tables = T>, const W: usize>(
    cx: &mut Cx<'_, T, J, W>,
    passages: PortSet<W>,
    speedup: u16,
    taken: &mut PortSet<W>,
    speculative: bool,
) {
    match cx.router.switch_allocator {
        SwitchAllocator::Separable => separable(cx, &passages, speedup, taken, speculative),
        SwitchAllocator::Islip => islip(cx, passages, speedup, taken, speculative),
    }
}

#[inline]
fn local_queue<T, J, const W: usize>(cx: &Cx<'_, T, J, W>, e: u16, vc: u8, speedup: u16) -> usize {
    usize::from(e / speedup) << cx.wires.vc_shift | usize::from(vc)
}

fn separable<T: Tables<W>, J: Join<Tables = T>, const W: usize>(
    cx: &mut Cx<'_, T, J, W>,
    passages: &PortSet<W>,
    speedup: u16,
    taken: &mut PortSet<W>,
    speculative: bool,
) {
    let first = cx.base as usize * usize::from(speedup);
    let mut wanted: PortSet<W> = PortSet::EMPTY;
    for e in passages {
        let at = first + usize::from(e);
        let Some(vc) = cx.arbiters.input.pick(at, &cx.scratch.channels[usize::from(e)]) else { continue };
        let out = cx.wires.queues[cx.first_queue + local_queue(cx, e, vc as u8, speedup)].out_port;
        cx.scratch.chosen[usize::from(e)] = vc as u8;
        let requests = &mut cx.scratch.requests[usize::from(out)];
        if !wanted.contains(out) {
            wanted.insert(out);
            *requests = PortSet::EMPTY;
        }
        requests.insert(e);
    }
    for out in &wanted {
        let at = cx.base as usize + usize::from(out);
        let Some(e) = cx.arbiters.output.pick(at, &cx.scratch.requests[usize::from(out)]) else { continue };
        let vc = cx.scratch.chosen[usize::from(e)];
        cx.arbiters.output.granted(at, e);
        cx.arbiters.input.granted(first + usize::from(e), u16::from(vc));
        taken.insert(e);
        traverse(cx, local_queue(cx, e, vc, speedup), out, speculative);
    }
}

fn islip<T: Tables<W>, J: Join<Tables = T>, const W: usize>(
    cx: &mut Cx<'_, T, J, W>,
    mut passages: PortSet<W>,
    speedup: u16,
    taken: &mut PortSet<W>,
    speculative: bool,
) {
    let first = cx.base as usize * usize::from(speedup);
    let outputs = usize::from(cx.wires.nodes[cx.node as usize].ports);
    let mut wanted: PortSet<W> = PortSet::EMPTY;
    for e in &passages {
        let mut targets: PortSet<W> = PortSet::EMPTY;
        let mut channels = cx.scratch.channels[usize::from(e)];
        // From the cursor on: the first channel that wants an output asks for it.
        let mut cursor = cx.arbiters.input.pick(first + usize::from(e), &channels);
        while let Some(vc) = cursor {
            channels.remove(vc);
            let out = cx.wires.queues[cx.first_queue + local_queue(cx, e, vc as u8, speedup)].out_port;
            if !targets.contains(out) {
                targets.insert(out);
                cx.scratch.labels[usize::from(e) * outputs + usize::from(out)] = vc as u8;
                let requests = &mut cx.scratch.requests[usize::from(out)];
                if !wanted.contains(out) {
                    wanted.insert(out);
                    *requests = PortSet::EMPTY;
                }
                requests.insert(e);
            }
            cursor = channels.next_from(vc + 1);
        }
        cx.scratch.targets[usize::from(e)] = targets;
    }
    for round in 0..cx.router.iterations {
        for out in &wanted {
            let requests: PortSet<W> = cx.scratch.requests[usize::from(out)] & passages;
            let winner = cx.arbiters.output.pick(cx.base as usize + usize::from(out), &requests);
            cx.scratch.granted[usize::from(out)] = winner.unwrap_or(u16::MAX);
        }
        let mut matched = false;
        let round_of = passages;
        for e in &round_of {
            let mut offers: PortSet<W> = PortSet::EMPTY;
            for out in &(cx.scratch.targets[usize::from(e)] & wanted) {
                if cx.scratch.granted[usize::from(out)] == e {
                    offers.insert(out);
                }
            }
            let Some(out) = cx.arbiters.accept.pick(first + usize::from(e), &offers) else { continue };
            if round == 0 {
                cx.arbiters.output.granted(cx.base as usize + usize::from(out), e);
                cx.arbiters.accept.granted(first + usize::from(e), out);
            }
            let vc = cx.scratch.labels[usize::from(e) * outputs + usize::from(out)];
            cx.arbiters.input.granted(first + usize::from(e), u16::from(vc));
            passages.remove(e);
            wanted.remove(out);
            taken.insert(e);
            matched = true;
            traverse(cx, local_queue(cx, e, vc, speedup), out, speculative);
        }
        if !matched {
            return;
        }
    }
}

/// ST: a granted flit leaves. A speculative grant is void if the packet got no channel, or one without a credit.
fn traverse<T: Tables<W>, J: Join<Tables = T>, const W: usize>(
    cx: &mut Cx<'_, T, J, W>,
    local: usize,
    out: u16,
    speculative: bool,
) {
    let q = cx.first_queue + local;
    let queue = &cx.wires.queues[q];
    let (phase, out_vc) = (queue.phase, queue.out_vc);
    let out_port = cx.base + u32::from(out);
    if speculative && (phase != Phase::Active || cx.wires.links[out_port as usize].credit >> out_vc & 1 == 0) {
        return;
    }
    let bit = (cx.mask_base + (local >> 6), 1 << (local & 63));
    let in_port = cx.base + (local >> cx.wires.vc_shift) as u32;
    let (flit, waited) = cx.wires.pop_queue(q, in_port, bit);
    cx.wires.send(out_port, out_vc, flit, cx.wires.post, waited);
    if flit.tag.tail() {
        cx.wires.queues[q].phase = Phase::Idle;
        cx.wires.masks[bit.0].active &= !bit.1;
        cx.wires.release(out_port, out_vc);
    }
    cx.taken_out.insert(out);
    cx.changed = true;
}
