//! Point-to-point packets: route computation, virtual-channel allocation, switch allocation.
//!
//! | pipeline depth | cycle 1 | cycle 2 | cycle 3 | cycle 4 |
//! |---|---|---|---|---|
//! | 1 | RC VA SA ST | | | |
//! | 2 | RC VA SA | ST | | |
//! | 3 | RC VA | SA | ST | |
//! | 4 | RC | VA | SA | ST |
//!
//! Cycle 1 is the first in which the head flit stands at the head of its queue. Body flits pass SA and ST only. Stages
//! that share a cycle are chained combinationally; stages in different cycles have a register between them (the
//! queue's [`Phase`]).
//!
//! | unit | how |
//! |---|---|
//! | RC | [`Tables::unicast`]: one output port and the channels that may be used there |
//! | VA | per output port, requesters in round-robin order get the lowest free allowed channel *chosen* |
//! | SA | separable, input first: an arbiter picks a channel per input port, then one picks an input per output port; what set-routed packets took in this cycle is gone |

use super::network::{At, Tables};
use super::switch::Cx;
use super::wires::{AGAIN, Phase};
use super::{Join, PortSet};
use crate::kernel::Wake;

/// Serves the point-to-point channels of a switch for one cycle.
pub(super) fn serve<T: Tables<W>, J: Join<Tables = T>, const W: usize>(cx: &mut Cx<'_, T, J, W>) {
    match cx.stages {
        1 | 2 => {
            compute_routes(cx);
            allocate_channels(cx);
            look_again(cx);
            allocate_switch(cx);
        }
        3 => {
            allocate_switch(cx);
            compute_routes(cx);
            allocate_channels(cx);
            look_again(cx);
        }
        _ => {
            allocate_switch(cx);
            allocate_channels(cx);
            look_again(cx);
            compute_routes(cx);
        }
    }
}

/// RC: every packet whose head stands at the head of its queue and has no output port yet gets one.
fn compute_routes<T: Tables<W>, J: Join<Tables = T>, const W: usize>(cx: &mut Cx<'_, T, J, W>) {
    for vc in cx.wires.vcs.set..cx.wires.vcs.total() {
        for port in &cx.wires.occupied::<W>(cx.node, vc) {
            let q = cx.wires.queue(cx.base + u32::from(port), vc);
            if cx.wires.queues[q].phase != Phase::Idle {
                continue;
            }
            let Some((flit, Ok(()))) = cx.wires.head(q) else { continue };
            let route = cx.tables.unicast(&At::new(cx.wires, cx.node, cx.base, port, vc), &flit);
            let queue = &mut cx.wires.queues[q];
            queue.phase = Phase::Routed;
            queue.out_port = route.port;
            queue.allowed = route.vcs & !AGAIN | if route.again { AGAIN } else { 0 };
            cx.changed = true;
        }
    }
}

/// VA: packets with an output port but no output channel get a free one.
fn allocate_channels<T: Tables<W>, J: Join<Tables = T>, const W: usize>(cx: &mut Cx<'_, T, J, W>) {
    let (first, last) = (cx.wires.vcs.set, cx.wires.vcs.total());
    let mut wanted: PortSet<W> = PortSet::EMPTY;
    for vc in first..last {
        for port in &cx.wires.occupied::<W>(cx.node, vc) {
            let queue = &cx.wires.queues[cx.wires.queue(cx.base + u32::from(port), vc)];
            if queue.phase == Phase::Routed {
                wanted.insert(queue.out_port);
            }
        }
    }
    for out in &wanted {
        let at = cx.base + u32::from(out);
        let ports = cx.wires.nodes[cx.node as usize].ports;
        let start = cx.arbiters.va_cursor_q[at as usize];
        // Requesters of this output in turn: local queue numbers from the cursor on, then from the beginning.
        let total = u32::from(ports) << cx.wires.vc_shift;
        let mut granted = None;
        for step in 0..total {
            let local = (u32::from(start) + step) % total;
            let (port, vc) = ((local >> cx.wires.vc_shift) as u16, (local & ((1 << cx.wires.vc_shift) - 1)) as u8);
            if vc < first || vc >= last {
                continue;
            }
            let q = cx.wires.queue(cx.base + u32::from(port), vc);
            let queue = &cx.wires.queues[q];
            if queue.phase != Phase::Routed || queue.out_port != out || queue.len == 0 {
                continue;
            }
            let free = (first..last)
                .find(|&v| queue.allowed >> (v - first) & 1 == 1 && cx.wires.out[cx.wires.queue(at, v)].owner == 0);
            let Some(free) = free else { continue };
            let channel = cx.wires.queue(at, free);
            cx.wires.out[channel].owner = cx.owner_number(port, vc);
            let queue = &mut cx.wires.queues[q];
            queue.phase = Phase::Active;
            queue.out_vc = free;
            granted = Some(local);
            cx.changed = true;
        }
        if let Some(local) = granted {
            cx.arbiters.va_cursor_q[at as usize] = ((local + 1) % total) as u16;
        }
    }
}

/// Packets that got no channel and whose route is to be computed again go back to the start.
fn look_again<T: Tables<W>, J: Join<Tables = T>, const W: usize>(cx: &mut Cx<'_, T, J, W>) {
    for vc in cx.wires.vcs.set..cx.wires.vcs.total() {
        for port in &cx.wires.occupied::<W>(cx.node, vc) {
            let q = cx.wires.queue(cx.base + u32::from(port), vc);
            let queue = &mut cx.wires.queues[q];
            if queue.phase == Phase::Routed && queue.allowed & AGAIN != 0 {
                queue.phase = Phase::Idle;
            }
        }
    }
}

/// SA and ST: at most one flit an input port and one an output port.
fn allocate_switch<T: Tables<W>, J: Join<Tables = T>, const W: usize>(cx: &mut Cx<'_, T, J, W>) {
    let (first, last) = (cx.wires.vcs.set, cx.wires.vcs.total());
    // Candidates: per input port, the channels that could send now.
    let mut inputs: PortSet<W> = PortSet::EMPTY;
    let mut wanted: PortSet<W> = PortSet::EMPTY;
    for vc in first..last {
        for port in &cx.wires.occupied::<W>(cx.node, vc) {
            if cx.taken_in.contains(port) {
                continue;
            }
            let q = cx.wires.queue(cx.base + u32::from(port), vc);
            let queue = &cx.wires.queues[q];
            if queue.phase != Phase::Active || cx.taken_out.contains(queue.out_port) {
                continue;
            }
            let at = cx.base + u32::from(queue.out_port);
            if cx.wires.out[cx.wires.queue(at, queue.out_vc)].credits == 0 {
                continue;
            }
            if let Err(cycle) = cx.wires.is_free(at) {
                cx.wake = cx.wake.or(Wake::At(cycle));
                continue;
            }
            if !inputs.contains(port) {
                inputs.insert(port);
                cx.scratch.channels[usize::from(port)] = PortSet::EMPTY;
            }
            cx.scratch.channels[usize::from(port)].insert(u16::from(vc));
        }
    }
    for port in &inputs {
        let gp = (cx.base + u32::from(port)) as usize;
        let Some(vc) = cx.arbiters.input.pick(gp, &cx.scratch.channels[usize::from(port)]) else { continue };
        let out = cx.wires.queues[cx.wires.queue(gp as u32, vc as u8)].out_port;
        cx.scratch.chosen[usize::from(port)] = vc as u8;
        if !wanted.contains(out) {
            wanted.insert(out);
            cx.scratch.requests[usize::from(out)] = PortSet::EMPTY;
        }
        cx.scratch.requests[usize::from(out)].insert(port);
    }
    for out in &wanted {
        let out_gp = cx.base + u32::from(out);
        let Some(port) = cx.arbiters.output.pick(out_gp as usize, &cx.scratch.requests[usize::from(out)]) else {
            continue;
        };
        let vc = cx.scratch.chosen[usize::from(port)];
        let gp = cx.base + u32::from(port);
        cx.arbiters.output.granted(out_gp as usize, port);
        cx.arbiters.input.granted(gp as usize, u16::from(vc));
        let q = cx.wires.queue(gp, vc);
        let out_vc = cx.wires.queues[q].out_vc;
        let (flit, waited) = cx.wires.pop(cx.node, gp, vc);
        if flit.tag.tail() {
            cx.wires.queues[q].phase = Phase::Idle;
            let channel = cx.wires.queue(out_gp, out_vc);
            cx.wires.out[channel].owner = 0;
        }
        cx.wires.send(out_gp, out_vc, flit, cx.wires.post, waited);
        cx.taken_in.insert(port);
        cx.taken_out.insert(out);
        cx.changed = true;
    }
}
