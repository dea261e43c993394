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
use super::portset::{Numbers, bits, each};
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
    contest::<LOOK, _, W>(here, InWord { passages, crossing });
}

/// Several queues that want one output, or come by one crossbar input: no part of the code of those that nobody competes with.
#[inline(never)]
fn contest<const LOOK: u8, R: Requests<W>, const W: usize>(here: &mut Here<'_, W>, requests: R) {
    match here.router.switch_allocator {
        SwitchAllocator::Islip => islip::<LOOK, _, W>(here, requests, false, |_, _, _| {}),
        SwitchAllocator::Separable => separable::<LOOK, _, W>(here, requests, false, |_, _, _| {}),
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
    let crossed = |here: &mut Here<'_, W>, e: u16, out: u16| {
        taken.insert(e);
        here.taken_out.insert(out);
    };
    match here.router.switch_allocator {
        SwitchAllocator::Separable => separable::<WATCHED, _, W>(here, InSets(passages), speculative, crossed),
        SwitchAllocator::Islip => islip::<WATCHED, _, W>(here, InSets(passages), speculative, crossed),
    }
}

#[inline]
fn local_queue<const W: usize>(here: &Here<'_, W>, e: u16, vc: u8) -> usize {
    usize::from(e / u16::from(here.router.input_speedup)) << here.shift() | usize::from(vc)
}

/// Who asks for what in a cycle, and who offers what to whom. How that is kept is all in which switches with queues of one word differ
/// from larger ones.
trait Requests<const W: usize>: Copy {
    /// A set of crossbar inputs, or of outputs.
    type Set: Numbers;

    /// The crossbar inputs that have a flit.
    fn passages(self) -> Self::Set;
    /// The first queue of crossbar input `e`, and the channels, counted from it, that can send.
    fn channels(self, here: &Here<'_, W>, e: u16) -> (usize, PortSet<1>);
    /// The same of those that can send to output `out`, if there is one.
    fn channels_to(self, here: &Here<'_, W>, e: u16, out: u16) -> (usize, PortSet<1>);
    /// Crossbar input `e` asks for output `out`; `wanted` has those asked for so far.
    fn ask(self, here: &mut Here<'_, W>, wanted: &mut Self::Set, out: u16, e: u16);
    /// All crossbar inputs ask for all outputs they have a flit for, which are the answer.
    fn ask_all(self, here: &mut Here<'_, W>) -> Self::Set;
    /// The crossbar inputs that asked for output `out`, without these.
    fn asking(self, here: &Here<'_, W>, out: u16, without: Self::Set) -> PortSet<W>;
    /// The queue that crossbar input `e` picked.
    fn choose(self, here: &mut Here<'_, W>, e: u16, local: usize);
    fn chosen(self, here: &Here<'_, W>, e: u16) -> usize;
    /// Output `out` offers itself to crossbar input `e`; `offered` has those with an offer so far.
    fn offer(self, here: &mut Here<'_, W>, offered: &mut Self::Set, out: u16, e: u16);
    /// The outputs that have, each once.
    fn take_offers(self, here: &mut Here<'_, W>, e: u16) -> PortSet<W>;
}

/// Where all queues fit one word: the crossbar inputs, and the queues that can send.
#[derive(Clone, Copy)]
struct InWord {
    passages: u64,
    crossing: u64,
}

impl<const W: usize> Requests<W> for InWord {
    type Set = u64;

    #[inline(always)]
    fn passages(self) -> u64 {
        self.passages
    }

    #[inline(always)]
    fn channels(self, here: &Here<'_, W>, e: u16) -> (usize, PortSet<1>) {
        let first = local_queue(here, e, 0);
        (first, PortSet::from_word((self.crossing & here.scratch.word.queues(e)) >> (first & 63)))
    }

    #[inline(always)]
    fn channels_to(self, here: &Here<'_, W>, e: u16, out: u16) -> (usize, PortSet<1>) {
        let queues = here.scratch.word.wanting(e, out);
        let first = queues.trailing_zeros() >> here.shift() << here.shift();
        (first as usize, PortSet::from_word(queues >> (first & 63)))
    }

    #[inline(always)]
    fn ask(self, here: &mut Here<'_, W>, wanted: &mut u64, out: u16, e: u16) {
        here.scratch.word.ask(wanted, out, usize::from(e));
    }

    #[inline(always)]
    fn ask_all(self, here: &mut Here<'_, W>) -> u64 {
        let mut wanted = 0;
        for local in each(self.crossing) {
            let (out, e) = (here.inputs[local].out_port, here.scratch.word.passage(local));
            here.scratch.word.ask_by(&mut wanted, out, e, local);
        }
        wanted
    }

    #[inline(always)]
    fn asking(self, here: &Here<'_, W>, out: u16, without: u64) -> PortSet<W> {
        PortSet::from_word(here.scratch.word.want(usize::from(out)) & !without)
    }

    #[inline(always)]
    fn choose(self, here: &mut Here<'_, W>, e: u16, local: usize) {
        here.scratch.word.choose(e, local);
    }

    #[inline(always)]
    fn chosen(self, here: &Here<'_, W>, e: u16) -> usize {
        here.scratch.word.chosen(e)
    }

    #[inline(always)]
    fn offer(self, here: &mut Here<'_, W>, offered: &mut u64, out: u16, e: u16) {
        *here.scratch.word.outs(usize::from(e)) |= 1 << (out & 63);
        *offered |= 1 << (e & 63);
    }

    #[inline(always)]
    fn take_offers(self, here: &mut Here<'_, W>, e: u16) -> PortSet<W> {
        PortSet::from_word(std::mem::take(here.scratch.word.outs(usize::from(e))))
    }
}

/// Any number of queues: the crossbar inputs; the channels that can send are those that were [entered](enter).
#[derive(Clone, Copy)]
struct InSets<const W: usize>(PortSet<W>);

impl<const W: usize> Requests<W> for InSets<W> {
    type Set = PortSet<W>;

    fn passages(self) -> PortSet<W> {
        self.0
    }

    fn channels(self, here: &Here<'_, W>, e: u16) -> (usize, PortSet<1>) {
        (local_queue(here, e, 0), here.scratch.channels[usize::from(e)])
    }

    fn channels_to(self, here: &Here<'_, W>, e: u16, out: u16) -> (usize, PortSet<1>) {
        let (first, all) = self.channels(here, e);
        (first, all.iter().filter(|&vc| here.inputs[first + usize::from(vc)].out_port == out).collect())
    }

    fn ask(self, here: &mut Here<'_, W>, wanted: &mut PortSet<W>, out: u16, e: u16) {
        let requests = &mut here.scratch.requests[usize::from(out)];
        if !wanted.contains(out) {
            wanted.insert(out);
            *requests = PortSet::EMPTY;
        }
        requests.insert(e);
    }

    fn ask_all(self, here: &mut Here<'_, W>) -> PortSet<W> {
        let mut wanted = PortSet::EMPTY;
        for e in &self.0 {
            let (first, all) = self.channels(here, e);
            for vc in &all {
                let out = here.inputs[first + usize::from(vc)].out_port;
                self.ask(here, &mut wanted, out, e);
            }
        }
        wanted
    }

    fn asking(self, here: &Here<'_, W>, out: u16, without: PortSet<W>) -> PortSet<W> {
        here.scratch.requests[usize::from(out)] & !without
    }

    fn choose(self, here: &mut Here<'_, W>, e: u16, local: usize) {
        here.scratch.chosen[usize::from(e)] = local as u16;
    }

    fn chosen(self, here: &Here<'_, W>, e: u16) -> usize {
        usize::from(here.scratch.chosen[usize::from(e)])
    }

    fn offer(self, here: &mut Here<'_, W>, offered: &mut PortSet<W>, out: u16, e: u16) {
        let offers = &mut here.scratch.offers_to[usize::from(e)];
        if !offered.contains(e) {
            offered.insert(e);
            *offers = PortSet::EMPTY;
        }
        offers.insert(out);
    }

    fn take_offers(self, here: &mut Here<'_, W>, e: u16) -> PortSet<W> {
        here.scratch.offers_to[usize::from(e)]
    }
}

/// Each crossbar input picks a channel, each output a crossbar input; `crossed` is told of each of those that send.
#[inline(always)]
fn separable<const LOOK: u8, R: Requests<W>, const W: usize>(
    here: &mut Here<'_, W>,
    requests: R,
    speculative: bool,
    mut crossed: impl FnMut(&mut Here<'_, W>, u16, u16),
) {
    let mut wanted = R::Set::NONE;
    for e in requests.passages().numbers() {
        let (first, channels) = requests.channels(here, e);
        let Some(vc) = here.arbiters.input.pick(bank(here, e), &channels) else { continue };
        let local = first + usize::from(vc);
        requests.choose(here, e, local);
        requests.ask(here, &mut wanted, here.inputs[local].out_port, e);
    }
    for out in wanted.numbers() {
        let at = here.base as usize + usize::from(out);
        let Some(e) = here.arbiters.output.pick(at, &requests.asking(here, out, R::Set::NONE)) else { continue };
        let local = requests.chosen(here, e);
        here.arbiters.output.granted(at, e);
        let (at, vc) = (bank(here, e), here.vc(local));
        here.arbiters.input.granted(at, vc);
        traverse::<LOOK, W>(here, local, out, speculative);
        crossed(here, e, out);
    }
}

/// Outputs offer themselves to crossbar inputs, which accept one each; `crossed` is told of each of those that send.
#[inline(always)]
fn islip<const LOOK: u8, R: Requests<W>, const W: usize>(
    here: &mut Here<'_, W>,
    requests: R,
    speculative: bool,
    mut crossed: impl FnMut(&mut Here<'_, W>, u16, u16),
) {
    let mut wanted = requests.ask_all(here);
    let mut matched = R::Set::NONE;
    for round in 0..here.router.iterations {
        let mut offered = R::Set::NONE;
        for out in wanted.numbers() {
            let asking = requests.asking(here, out, matched);
            if let Some(e) = here.arbiters.output.pick(here.base as usize + usize::from(out), &asking) {
                requests.offer(here, &mut offered, out, e);
            }
        }
        if offered.is_none() {
            return;
        }
        for e in offered.numbers() {
            let offers = requests.take_offers(here, e);
            let Some(out) = here.arbiters.accept.pick(bank(here, e), &offers) else { continue };
            // From the cursor on, the first channel of the crossbar input that wants this output.
            let (first, channels) = requests.channels_to(here, e, out);
            let Some(vc) = here.arbiters.input.pick(bank(here, e), &channels) else { continue };
            matches(here, e, out, vc as u8, round);
            matched.insert(e);
            wanted.remove(out);
            traverse::<LOOK, W>(here, first + usize::from(vc), out, speculative);
            crossed(here, e, out);
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
