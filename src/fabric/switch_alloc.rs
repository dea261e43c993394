//! Switch allocation and traversal: which flits cross the switch in this cycle.
//!
//! ```text
//!   input port p ──┬─ crossbar input p·s     (channels v with v mod s = 0) ──┐
//!                  ├─ …                                                      ├──▶ crossbar ──▶ output o: one flit a cycle
//!                  └─ crossbar input p·s+s-1                               ──┘
//! ```
//!
//! A queue whose packet holds an output channel asks for a crossbar input if there is a credit and the link is free.
//!
//! | allocator | step 1 | step 2 |
//! |---|---|---|
//! | separable | each crossbar input picks a channel | each output picks a crossbar input |
//! | iSLIP | among channels of a crossbar input that want the same output, one in turn; each output offers itself to a crossbar input | each crossbar input accepts an offer |
//!
//! With speculation a second allocator of the same kind serves packets that asked for a channel in this cycle. It works
//! on the crossbar inputs and outputs that the first one left free; its grant counts only if the packet got a channel
//! with a credit.

use super::here::Here;
use super::portset::{bits, each};
use super::waits::Towards;
use super::wires::{CHECKED, Phase, State, WATCHED};
use super::{PortSet, SwitchAllocator};
use watershed_kernel::Wake;

/// Serves those queues of `active` that can send. Their crossbar inputs are `taken` then.
pub(super) fn serve_words<const W: usize>(here: &mut Here<'_, W>, active: &[u64], taken: &mut PortSet<W>) {
    let mut passages: PortSet<W> = PortSet::EMPTY;
    for w in 0..here.words() {
        for local in bits(active, w) {
            if can_send(here, local) {
                enter(here, &mut passages, local);
            }
        }
    }
    if !passages.is_empty() {
        allocate(here, passages, taken, false);
    }
}

/// Serves the speculative requests of packets that asked for a channel in this cycle, on what is not taken.
pub(super) fn speculate<const W: usize>(here: &mut Here<'_, W>, routed: &[u64], taken: &mut PortSet<W>) {
    let mut passages: PortSet<W> = PortSet::EMPTY;
    for w in 0..here.words() {
        for local in bits(routed, w) {
            let out = here.inputs[local].out_port;
            if !taken.contains(passage(here, local)) && is_open(here, local, out) {
                enter(here, &mut passages, local);
            }
        }
    }
    if !passages.is_empty() {
        allocate(here, passages, taken, true);
    }
}

/// The same where queues fit one word and `active` has the bits of those that hold a channel.
#[inline]
pub(super) fn serve_word<const LOOK: u8, const W: usize>(here: &mut Here<'_, W>, active: u64) {
    // The queues that can send now, the outputs they want and the crossbar inputs they come by.
    let (mut wanted, mut passages, mut crossing) = (0u64, 0u64, 0u64);
    let mut contested = false;
    let any_taken = !here.taken_in.is_empty() || !here.taken_out.is_empty();
    for local in each(active) {
        let queue = &here.inputs[local];
        let out = queue.out_port;
        if here.gate(usize::from(out)).credit >> queue.state.out_vc() & 1 == 0 {
            continue;
        }
        if any_taken && (here.taken_out.contains(out) || here.taken_in.contains((local >> here.shift()) as u16)) {
            continue;
        }
        if LOOK == WATCHED
            && let Err(cycle) = here.flow.is_free(here.base + u32::from(out))
        {
            here.wake = here.wake.or(Wake::At(cycle));
            continue;
        }
        let (o, e) = (1 << (out & 63), 1 << (here.scratch.word.passage(local) & 63));
        contested |= (wanted & o | passages & e) != 0;
        wanted |= o;
        passages |= e;
        crossing |= 1 << local;
    }
    // Mostly nobody competes, and then nobody needs to know who else can send.
    if !contested {
        for local in each(crossing) {
            let out = here.inputs[local].out_port;
            alone::<LOOK, W>(here, local, out);
        }
        return;
    }
    match here.router.switch_allocator {
        SwitchAllocator::Islip => islip_word::<LOOK, W>(here, crossing),
        SwitchAllocator::Separable => separable_word::<LOOK, W>(here, passages, crossing),
    }
}

/// Whether the flit at the head of a queue could cross now.
#[inline]
fn can_send<const W: usize>(here: &mut Here<'_, W>, local: usize) -> bool {
    let queue = &here.inputs[local];
    let (out, out_vc) = (queue.out_port, queue.state.out_vc());
    here.gate(usize::from(out)).credit >> out_vc & 1 == 1 && is_open(here, local, out)
}

/// A flit that nobody competes with: both ranks of either allocator grant it.
#[inline(always)]
fn alone<const LOOK: u8, const W: usize>(here: &mut Here<'_, W>, local: usize, out: u16) {
    let e = here.scratch.word.passage(local);
    let at = bank(here, e);
    let vc = here.vc(local);
    here.arbiters.input.granted(at, vc);
    here.arbiters.output.granted(here.base as usize + usize::from(out), e);
    if here.router.switch_allocator == SwitchAllocator::Islip {
        here.arbiters.accept.granted(at, out);
    }
    traverse::<LOOK, W>(here, local, out, false);
}

/// The crossbar input of a queue.
#[inline(always)]
fn passage<const W: usize>(here: &Here<'_, W>, local: usize) -> u16 {
    here.scratch.passages[local]
}

/// The arbiters of a crossbar input of this switch.
#[inline(always)]
fn bank<const W: usize>(here: &Here<'_, W>, passage: u16) -> usize {
    here.base as usize * usize::from(here.router.input_speedup) + usize::from(passage)
}

/// Whether neither the input port nor the output is taken by set-routed packets or earlier grants, and the link is free.
#[inline]
fn is_open<const W: usize>(here: &mut Here<'_, W>, local: usize, out: u16) -> bool {
    if here.taken_in.contains((local >> here.shift()) as u16) || here.taken_out.contains(out) {
        return false;
    }
    match here.flow.is_free(here.base + u32::from(out)) {
        Ok(()) => true,
        Err(cycle) => {
            here.wake = here.wake.or(Wake::At(cycle));
            false
        }
    }
}

/// Notes a request.
#[inline]
fn enter<const W: usize>(here: &mut Here<'_, W>, passages: &mut PortSet<W>, local: usize) {
    let e = passage(here, local);
    let vc = here.vc(local);
    let channels = &mut here.scratch.channels[usize::from(e)];
    if !passages.contains(e) {
        passages.insert(e);
        *channels = PortSet::EMPTY;
    }
    channels.insert(vc);
}

fn allocate<const W: usize>(here: &mut Here<'_, W>, passages: PortSet<W>, taken: &mut PortSet<W>, speculative: bool) {
    match here.router.switch_allocator {
        SwitchAllocator::Separable => separable(here, &passages, taken, speculative),
        SwitchAllocator::Islip => islip(here, passages, taken, speculative),
    }
}

#[inline]
fn local_queue<const W: usize>(here: &Here<'_, W>, e: u16, vc: u8) -> usize {
    usize::from(e / u16::from(here.router.input_speedup)) << here.shift() | usize::from(vc)
}

fn separable<const W: usize>(here: &mut Here<'_, W>, passages: &PortSet<W>, taken: &mut PortSet<W>, speculative: bool) {
    let mut wanted: PortSet<W> = PortSet::EMPTY;
    for e in passages {
        let Some(vc) = here.arbiters.input.pick(bank(here, e), &here.scratch.channels[usize::from(e)]) else {
            continue;
        };
        let out = here.inputs[local_queue(here, e, vc as u8)].out_port;
        here.scratch.chosen[usize::from(e)] = vc as u8;
        let requests = &mut here.scratch.requests[usize::from(out)];
        if !wanted.contains(out) {
            wanted.insert(out);
            *requests = PortSet::EMPTY;
        }
        requests.insert(e);
    }
    for out in &wanted {
        let at = here.base as usize + usize::from(out);
        let Some(e) = here.arbiters.output.pick(at, &here.scratch.requests[usize::from(out)]) else { continue };
        let vc = here.scratch.chosen[usize::from(e)];
        here.arbiters.output.granted(at, e);
        let at = bank(here, e);
        here.arbiters.input.granted(at, u16::from(vc));
        taken.insert(e);
        traverse::<WATCHED, W>(here, local_queue(here, e, vc), out, speculative);
        here.taken_out.insert(out);
    }
}

/// The same where queues fit one word: `crossing` are those that can send, the other argument has their crossbar inputs.
#[inline(never)]
fn separable_word<const LOOK: u8, const W: usize>(here: &mut Here<'_, W>, passages: u64, crossing: u64) {
    let mut wanted = 0u64;
    for e in each(passages) {
        let e = e as u16;
        let first = local_queue(here, e, 0);
        let channels = PortSet::from_word((crossing & here.scratch.word.queues(e)) >> (first & 63));
        let Some(vc) = here.arbiters.input.pick(bank(here, e), &channels) else { continue };
        let local = first + usize::from(vc);
        here.scratch.word.choose(e, local);
        here.scratch.word.ask(&mut wanted, here.inputs[local].out_port, usize::from(e));
    }
    for out in each(wanted) {
        let at = here.base as usize + out;
        let requests = PortSet::from_word(here.scratch.word.want(out));
        let Some(e) = here.arbiters.output.pick(at, &requests) else { continue };
        let local = here.scratch.word.chosen(e);
        here.arbiters.output.granted(at, e);
        let (at, vc) = (bank(here, e), here.vc(local));
        here.arbiters.input.granted(at, vc);
        traverse::<LOOK, W>(here, local, out as u16, false);
    }
}

fn islip<const W: usize>(here: &mut Here<'_, W>, mut passages: PortSet<W>, taken: &mut PortSet<W>, speculative: bool) {
    let outputs = here.outputs();
    let mut wanted: PortSet<W> = PortSet::EMPTY;
    for e in &passages {
        let mut targets: PortSet<W> = PortSet::EMPTY;
        let mut channels = here.scratch.channels[usize::from(e)];
        // From the cursor on: the first channel that wants an output asks for it.
        let mut cursor = here.arbiters.input.pick(bank(here, e), &channels);
        while let Some(vc) = cursor {
            channels.remove(vc);
            let out = here.inputs[local_queue(here, e, vc as u8)].out_port;
            if !targets.contains(out) {
                targets.insert(out);
                here.scratch.labels[usize::from(e) * outputs + usize::from(out)] = vc as u8;
                let requests = &mut here.scratch.requests[usize::from(out)];
                if !wanted.contains(out) {
                    wanted.insert(out);
                    *requests = PortSet::EMPTY;
                }
                requests.insert(e);
            }
            cursor = channels.next_from(vc + 1);
        }
        here.scratch.targets[usize::from(e)] = targets;
    }
    for round in 0..here.router.iterations {
        for out in &wanted {
            let requests: PortSet<W> = here.scratch.requests[usize::from(out)] & passages;
            let winner = here.arbiters.output.pick(here.base as usize + usize::from(out), &requests);
            here.scratch.granted[usize::from(out)] = winner.unwrap_or(u16::MAX);
        }
        let mut matched = false;
        let round_of = passages;
        for e in &round_of {
            let mut offers: PortSet<W> = PortSet::EMPTY;
            for out in &(here.scratch.targets[usize::from(e)] & wanted) {
                if here.scratch.granted[usize::from(out)] == e {
                    offers.insert(out);
                }
            }
            let Some(out) = here.arbiters.accept.pick(bank(here, e), &offers) else { continue };
            let vc = here.scratch.labels[usize::from(e) * outputs + usize::from(out)];
            matches(here, e, out, vc, round);
            passages.remove(e);
            wanted.remove(out);
            taken.insert(e);
            matched = true;
            traverse::<WATCHED, W>(here, local_queue(here, e, vc), out, speculative);
            here.taken_out.insert(out);
        }
        if !matched {
            return;
        }
    }
}

/// iSLIP where queues fit one word: `crossing` are those that can send. As [`separable_word`] it is not part of the code of
/// those that nobody competes with.
#[inline(never)]
fn islip_word<const LOOK: u8, const W: usize>(here: &mut Here<'_, W>, crossing: u64) {
    // Per wanted output, the crossbar inputs that want it.
    let mut wanted = 0u64;
    for local in each(crossing) {
        let (out, e) = (here.inputs[local].out_port, here.scratch.word.passage(local));
        here.scratch.word.ask_by(&mut wanted, out, e, local);
    }
    let mut matched = 0u64;
    for round in 0..here.router.iterations {
        let mut offered = 0u64;
        for out in each(wanted) {
            let requests = PortSet::from_word(here.scratch.word.want(out) & !matched);
            if let Some(e) = here.arbiters.output.pick(here.base as usize + out, &requests) {
                *here.scratch.word.outs(usize::from(e)) |= 1 << out;
                offered |= 1 << e;
            }
        }
        if offered == 0 {
            return;
        }
        for e in each(offered) {
            let outs = PortSet::from_word(std::mem::take(here.scratch.word.outs(e)));
            let e = e as u16;
            let Some(out) = here.arbiters.accept.pick(bank(here, e), &outs) else { continue };
            // From the cursor on, the first channel of the crossbar input that wants this output.
            let queues = here.scratch.word.wanting(e, out);
            let first = queues.trailing_zeros() >> here.shift() << here.shift();
            let channels = PortSet::from_word(queues >> (first & 63));
            let Some(vc) = here.arbiters.input.pick(bank(here, e), &channels) else { continue };
            matches(here, e, out, vc as u8, round);
            matched |= 1 << e;
            wanted &= !(1 << out);
            traverse::<LOOK, W>(here, first as usize + usize::from(vc), out, false);
        }
    }
}

/// Moves the cursors of a pair that iSLIP matched.
#[inline]
fn matches<const W: usize>(here: &mut Here<'_, W>, e: u16, out: u16, vc: u8, round: u8) {
    let at = bank(here, e);
    if round == 0 {
        here.arbiters.output.granted(here.base as usize + usize::from(out), e);
        here.arbiters.accept.granted(at, out);
    }
    here.arbiters.input.granted(at, u16::from(vc));
}

/// ST: a granted flit leaves. A speculative grant is void if the packet got no channel, or one without a credit.
#[inline(always)]
fn traverse<const LOOK: u8, const W: usize>(here: &mut Here<'_, W>, local: usize, out: u16, speculative: bool) {
    let shift = here.shift();
    let state = here.inputs[local].state;
    let (out_vc, o) = (state.out_vc(), usize::from(out));
    if speculative && (state.phase() != Phase::Active || here.gate(o).credit >> out_vc & 1 == 0) {
        return;
    }
    let bit = 1 << (local & 63);
    let masks = &mut here.masks[local >> 6];
    let in_vc = (local & ((1 << shift) - 1)) as u32;
    let link = &here.sides[local >> shift << here.stride].link;
    let queue = &mut here.inputs[local];
    let (entry, waited) = here.flow.unlink::<LOOK>(queue, in_vc, link, &mut masks.occupied, bit);
    if LOOK == WATCHED && here.flow.journal.is_some() {
        here.flow.note(here.first_queue + local, entry, super::Moved::Left);
        here.flow.comes_from(Some((here.base + (local >> shift) as u32, in_vc as u8)));
    }
    let port = here.base + u32::from(out);
    if LOOK & CHECKED != 0
        && waited > 0
        && let Some(waits) = &mut here.carries.waits
    {
        waits.leave(entry, port, Towards::Link, here.flow.now);
    }
    let side = &mut here.sides[o << here.stride..];
    if here.flow.send::<LOOK, true>((side, here.carries), (port, out_vc), entry, here.flow.delays.post, waited) {
        masks.active &= !bit;
        here.inputs[local].state = State::IDLE;
    }
    here.changed = true;
}
