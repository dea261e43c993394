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

use super::portset::{Numbers, bits, each};
use super::switch_view::SwitchView;
use super::wires::{CHECKED, Phase, State, WATCHED};
use super::{PortSet, SwitchAllocator};
use watershed_kernel::Wake;

/// Serves those queues of `active` that can send. Their crossbar inputs are `taken` then. Notes which have no credit.
pub(super) fn serve_words<const W: usize>(view: &mut SwitchView<'_, W>, active: &[u64], taken: &mut PortSet<W>) {
    let mut xbar_inputs: PortSet<W> = PortSet::EMPTY;
    for w in 0..view.words() {
        for local in bits(active, w) {
            if !has_credit(view, local) {
                view.scratch.no_credit[w] |= 1 << (local & 63);
            } else if is_open::<WATCHED, W>(view, local, view.inputs[local].out_port) {
                enter(view, &mut xbar_inputs, local);
            }
        }
    }
    if !xbar_inputs.is_empty() {
        allocate(view, xbar_inputs, taken, false);
    }
}

/// Serves the speculative requests of packets that asked for a channel in this cycle, on what is not taken.
pub(super) fn speculate<const W: usize>(view: &mut SwitchView<'_, W>, routed: &[u64], taken: &mut PortSet<W>) {
    let mut xbar_inputs: PortSet<W> = PortSet::EMPTY;
    for w in 0..view.words() {
        for local in bits(routed, w) {
            let out = view.inputs[local].out_port;
            if !taken.contains(xbar_input(view, local)) && is_open::<WATCHED, W>(view, local, out) {
                enter(view, &mut xbar_inputs, local);
            }
        }
    }
    if !xbar_inputs.is_empty() {
        allocate(view, xbar_inputs, taken, true);
    }
}

/// The same where queues fit one word and `active` has the bits of those that hold a channel. Returns those that have no credit.
#[inline(always)]
pub(super) fn serve_word<const OBS: u8, const W: usize>(view: &mut SwitchView<'_, W>, active: u64) -> u64 {
    if !active.is_power_of_two() {
        return serve_several::<OBS, W>(view, active);
    }
    let local = active.trailing_zeros() as usize;
    let (out, vc) = (view.inputs[local].out_port, view.inputs[local].state.out_vc());
    if view.vc_masks(usize::from(out)).credit >> vc & 1 == 0 {
        return active;
    }
    if is_open::<OBS, W>(view, local, out) {
        grant_uncontested::<OBS, W>(view, local, out);
    }
    0
}

/// The same for several queues.
#[inline(never)]
fn serve_several<const OBS: u8, const W: usize>(view: &mut SwitchView<'_, W>, active: u64) -> u64 {
    // The queues that can send now, the outputs they want and the crossbar inputs they come by.
    let (mut wanted, mut xbar_inputs, mut crossing) = (0u64, 0u64, 0u64);
    let (mut contested, mut no_credit) = (false, 0);
    let any_taken = !view.taken_in.is_empty() || !view.taken_out.is_empty();
    for local in each(active) {
        let queue = &view.inputs[local];
        let out = queue.out_port;
        if view.vc_masks(usize::from(out)).credit >> queue.state.out_vc() & 1 == 0 {
            no_credit |= 1 << local;
            continue;
        }
        if any_taken && (view.taken_out.contains(out) || view.taken_in.contains((local >> view.shift()) as u16)) {
            continue;
        }
        if OBS == WATCHED
            && let Err(cycle) = view.flow.is_free(view.base + u32::from(out))
        {
            view.wake = view.wake.or(Wake::At(cycle));
            continue;
        }
        let (o, e) = (1 << (out & 63), 1 << (view.scratch.word.xbar_input(local) & 63));
        contested |= (wanted & o | xbar_inputs & e) != 0;
        wanted |= o;
        xbar_inputs |= e;
        crossing |= 1 << local;
    }
    // Mostly nobody competes, and then nobody needs to know who else can send.
    if contested {
        contest::<OBS, _, W>(view, InWord { xbar_inputs, crossing });
    } else {
        for local in each(crossing) {
            let out = view.inputs[local].out_port;
            grant_uncontested::<OBS, W>(view, local, out);
        }
    }
    no_credit
}

/// Several queues that want one output, or come by one crossbar input: no part of the code of those that nobody competes with.
#[inline(never)]
fn contest<const OBS: u8, R: Requests<W>, const W: usize>(view: &mut SwitchView<'_, W>, requests: R) {
    match view.router.switch_allocator {
        SwitchAllocator::Islip => islip::<OBS, _, W>(view, requests, false, |_, _, _| {}),
        SwitchAllocator::Separable => separable::<OBS, _, W>(view, requests, false, |_, _, _| {}),
    }
}

/// Whether there is a credit for the flit at the head of a queue.
#[inline]
fn has_credit<const W: usize>(view: &SwitchView<'_, W>, local: usize) -> bool {
    let queue = &view.inputs[local];
    view.vc_masks(usize::from(queue.out_port)).credit >> queue.state.out_vc() & 1 == 1
}

/// Grants a flit without competitors, as both ranks of either allocator would.
#[inline(always)]
fn grant_uncontested<const OBS: u8, const W: usize>(view: &mut SwitchView<'_, W>, local: usize, out: u16) {
    let e = view.scratch.word.xbar_input(local);
    let at = bank(view, e);
    let vc = view.vc(local);
    let output = view.base as usize + usize::from(out);
    match view.router.switch_allocator {
        SwitchAllocator::Islip => matches(view, (at, output), (e, out, vc), 0),
        SwitchAllocator::Separable => {
            view.arbiters.input.granted(at, vc);
            view.arbiters.output.granted(output, e);
        }
    }
    traverse::<OBS, W>(view, local, out, (false, true));
}

/// The crossbar input of a queue.
#[inline(always)]
fn xbar_input<const W: usize>(view: &SwitchView<'_, W>, local: usize) -> u16 {
    view.scratch.xbar_inputs[local]
}

/// The arbiters of a crossbar input of this switch.
#[inline(always)]
fn bank<const W: usize>(view: &SwitchView<'_, W>, xbar_input: u16) -> usize {
    view.base as usize * usize::from(view.router.input_speedup) + usize::from(xbar_input)
}

/// Whether neither the input port nor the output is taken by set-routed packets or earlier grants, and the link is free.
#[inline(always)]
fn is_open<const OBS: u8, const W: usize>(view: &mut SwitchView<'_, W>, local: usize, out: u16) -> bool {
    if view.taken_in.contains((local >> view.shift()) as u16) || view.taken_out.contains(out) {
        return false;
    }
    // Systems with links of several cycles a flit run the watched code in every cycle: see `Flow::present_observers`.
    if OBS == WATCHED
        && let Err(cycle) = view.flow.is_free(view.base + u32::from(out))
    {
        view.wake = view.wake.or(Wake::At(cycle));
        return false;
    }
    true
}

/// Notes a request.
#[inline]
fn enter<const W: usize>(view: &mut SwitchView<'_, W>, xbar_inputs: &mut PortSet<W>, local: usize) {
    let e = xbar_input(view, local);
    let vc = view.vc(local);
    let channels = &mut view.scratch.channels[usize::from(e)];
    if !xbar_inputs.contains(e) {
        xbar_inputs.insert(e);
        *channels = PortSet::EMPTY;
    }
    channels.insert(vc);
}

fn allocate<const W: usize>(
    view: &mut SwitchView<'_, W>,
    xbar_inputs: PortSet<W>,
    taken: &mut PortSet<W>,
    speculative: bool,
) {
    let crossed = |view: &mut SwitchView<'_, W>, e: u16, out: u16| {
        taken.insert(e);
        view.taken_out.insert(out);
    };
    match view.router.switch_allocator {
        SwitchAllocator::Separable => separable::<WATCHED, _, W>(view, InSets(xbar_inputs), speculative, crossed),
        SwitchAllocator::Islip => islip::<WATCHED, _, W>(view, InSets(xbar_inputs), speculative, crossed),
    }
}

#[inline]
fn local_queue<const W: usize>(view: &SwitchView<'_, W>, e: u16, vc: u8) -> usize {
    usize::from(e / u16::from(view.router.input_speedup)) << view.shift() | usize::from(vc)
}

/// Who asks for what in a cycle, and who offers what to whom. How that is kept is all in which switches with queues of one word differ
/// from larger ones.
trait Requests<const W: usize>: Copy {
    /// Whether all queues fit one word.
    const ONE: bool;
    /// A set of crossbar inputs, or of outputs.
    type Set: Numbers;

    /// The crossbar inputs that have a flit.
    fn xbar_inputs(self) -> Self::Set;
    /// The first queue of crossbar input `e`, and the channels, counted from it, that can send.
    fn channels(self, view: &SwitchView<'_, W>, e: u16) -> (usize, PortSet<1>);
    /// The same of those that can send to output `out`, if there is one.
    fn channels_to(self, view: &SwitchView<'_, W>, e: u16, out: u16) -> (usize, PortSet<1>);
    /// Crossbar input `e` asks for output `out`; `wanted` has those asked for so far.
    fn request(self, view: &mut SwitchView<'_, W>, wanted: &mut Self::Set, out: u16, e: u16);
    /// All crossbar inputs ask for all outputs they have a flit for, which are the answer.
    fn request_all(self, view: &mut SwitchView<'_, W>) -> Self::Set;
    /// The crossbar inputs that asked for output `out`, without these.
    fn requesters(self, view: &SwitchView<'_, W>, out: u16, without: Self::Set) -> PortSet<W>;
    /// The queue that crossbar input `e` picked.
    fn choose(self, view: &mut SwitchView<'_, W>, e: u16, local: usize);
    fn chosen(self, view: &SwitchView<'_, W>, e: u16) -> usize;
    /// Output `out` offers itself to crossbar input `e`; `offered` has those with an offer so far.
    fn offer(self, view: &mut SwitchView<'_, W>, offered: &mut Self::Set, out: u16, e: u16);
    /// The outputs that have, each once.
    fn take_offers(self, view: &mut SwitchView<'_, W>, e: u16) -> PortSet<W>;
}

/// Where all queues fit one word: the crossbar inputs, and the queues that can send.
#[derive(Clone, Copy)]
struct InWord {
    xbar_inputs: u64,
    crossing: u64,
}

impl<const W: usize> Requests<W> for InWord {
    const ONE: bool = true;
    type Set = u64;

    #[inline(always)]
    fn xbar_inputs(self) -> u64 {
        self.xbar_inputs
    }

    #[inline(always)]
    fn channels(self, view: &SwitchView<'_, W>, e: u16) -> (usize, PortSet<1>) {
        let first = local_queue(view, e, 0);
        (first, PortSet::from_word((self.crossing & view.scratch.word.queues(e)) >> (first & 63)))
    }

    #[inline(always)]
    fn channels_to(self, view: &SwitchView<'_, W>, e: u16, out: u16) -> (usize, PortSet<1>) {
        let queues = view.scratch.word.wanting(e, out);
        let first = queues.trailing_zeros() >> view.shift() << view.shift();
        (first as usize, PortSet::from_word(queues >> (first & 63)))
    }

    #[inline(always)]
    fn request(self, view: &mut SwitchView<'_, W>, wanted: &mut u64, out: u16, e: u16) {
        view.scratch.word.request(wanted, out, usize::from(e));
    }

    #[inline(always)]
    fn request_all(self, view: &mut SwitchView<'_, W>) -> u64 {
        let mut wanted = 0;
        for local in each(self.crossing) {
            let (out, e) = (view.inputs[local].out_port, view.scratch.word.xbar_input(local));
            view.scratch.word.request_by(&mut wanted, out, e, local);
        }
        wanted
    }

    #[inline(always)]
    fn requesters(self, view: &SwitchView<'_, W>, out: u16, without: u64) -> PortSet<W> {
        PortSet::from_word(view.scratch.word.want(usize::from(out)) & !without)
    }

    #[inline(always)]
    fn choose(self, view: &mut SwitchView<'_, W>, e: u16, local: usize) {
        view.scratch.word.choose(e, local);
    }

    #[inline(always)]
    fn chosen(self, view: &SwitchView<'_, W>, e: u16) -> usize {
        view.scratch.word.chosen(e)
    }

    #[inline(always)]
    fn offer(self, view: &mut SwitchView<'_, W>, offered: &mut u64, out: u16, e: u16) {
        *view.scratch.word.outs(usize::from(e)) |= 1 << (out & 63);
        *offered |= 1 << (e & 63);
    }

    #[inline(always)]
    fn take_offers(self, view: &mut SwitchView<'_, W>, e: u16) -> PortSet<W> {
        PortSet::from_word(std::mem::take(view.scratch.word.outs(usize::from(e))))
    }
}

/// Any number of queues: the crossbar inputs; the channels that can send are those that were [entered](enter).
#[derive(Clone, Copy)]
struct InSets<const W: usize>(PortSet<W>);

impl<const W: usize> Requests<W> for InSets<W> {
    const ONE: bool = false;
    type Set = PortSet<W>;

    fn xbar_inputs(self) -> PortSet<W> {
        self.0
    }

    fn channels(self, view: &SwitchView<'_, W>, e: u16) -> (usize, PortSet<1>) {
        (local_queue(view, e, 0), view.scratch.channels[usize::from(e)])
    }

    fn channels_to(self, view: &SwitchView<'_, W>, e: u16, out: u16) -> (usize, PortSet<1>) {
        let (first, all) = self.channels(view, e);
        (first, all.iter().filter(|&vc| view.inputs[first + usize::from(vc)].out_port == out).collect())
    }

    fn request(self, view: &mut SwitchView<'_, W>, wanted: &mut PortSet<W>, out: u16, e: u16) {
        let requests = &mut view.scratch.requests[usize::from(out)];
        if !wanted.contains(out) {
            wanted.insert(out);
            *requests = PortSet::EMPTY;
        }
        requests.insert(e);
    }

    fn request_all(self, view: &mut SwitchView<'_, W>) -> PortSet<W> {
        let mut wanted = PortSet::EMPTY;
        for e in &self.0 {
            let (first, all) = self.channels(view, e);
            for vc in &all {
                let out = view.inputs[first + usize::from(vc)].out_port;
                self.request(view, &mut wanted, out, e);
            }
        }
        wanted
    }

    fn requesters(self, view: &SwitchView<'_, W>, out: u16, without: PortSet<W>) -> PortSet<W> {
        view.scratch.requests[usize::from(out)] & !without
    }

    fn choose(self, view: &mut SwitchView<'_, W>, e: u16, local: usize) {
        view.scratch.chosen[usize::from(e)] = local as u16;
    }

    fn chosen(self, view: &SwitchView<'_, W>, e: u16) -> usize {
        usize::from(view.scratch.chosen[usize::from(e)])
    }

    fn offer(self, view: &mut SwitchView<'_, W>, offered: &mut PortSet<W>, out: u16, e: u16) {
        let offers = &mut view.scratch.offers_to[usize::from(e)];
        if !offered.contains(e) {
            offered.insert(e);
            *offers = PortSet::EMPTY;
        }
        offers.insert(out);
    }

    fn take_offers(self, view: &mut SwitchView<'_, W>, e: u16) -> PortSet<W> {
        view.scratch.offers_to[usize::from(e)]
    }
}

/// Each crossbar input picks a channel, each output a crossbar input; `crossed` is told of each of those that send.
#[inline(always)]
fn separable<const OBS: u8, R: Requests<W>, const W: usize>(
    view: &mut SwitchView<'_, W>,
    requests: R,
    speculative: bool,
    mut crossed: impl FnMut(&mut SwitchView<'_, W>, u16, u16),
) {
    let mut wanted = R::Set::NONE;
    for e in requests.xbar_inputs().numbers() {
        let (first, channels) = requests.channels(view, e);
        let Some(vc) = view.arbiters.input.pick(bank(view, e), &channels) else { continue };
        let local = first + usize::from(vc);
        requests.choose(view, e, local);
        requests.request(view, &mut wanted, view.inputs[local].out_port, e);
    }
    for out in wanted.numbers() {
        let at = view.base as usize + usize::from(out);
        let Some(e) = view.arbiters.output.pick(at, &requests.requesters(view, out, R::Set::NONE)) else { continue };
        let local = requests.chosen(view, e);
        view.arbiters.output.granted(at, e);
        let (at, vc) = (bank(view, e), view.vc(local));
        view.arbiters.input.granted(at, vc);
        traverse::<OBS, W>(view, local, out, (speculative, R::ONE));
        crossed(view, e, out);
    }
}

/// Outputs offer themselves to crossbar inputs, which accept one each; `crossed` is told of each of those that send.
#[inline(always)]
fn islip<const OBS: u8, R: Requests<W>, const W: usize>(
    view: &mut SwitchView<'_, W>,
    requests: R,
    speculative: bool,
    mut crossed: impl FnMut(&mut SwitchView<'_, W>, u16, u16),
) {
    let mut wanted = requests.request_all(view);
    let mut matched = R::Set::NONE;
    for round in 0..view.router.iterations {
        let mut offered = R::Set::NONE;
        for out in wanted.numbers() {
            let requesters = requests.requesters(view, out, matched);
            if let Some(e) = view.arbiters.output.pick_in_turn(view.base as usize + usize::from(out), &requesters) {
                requests.offer(view, &mut offered, out, e);
            }
        }
        if offered.is_none() {
            return;
        }
        for e in offered.numbers() {
            let offers = requests.take_offers(view, e);
            let at = bank(view, e);
            let Some(out) = view.arbiters.accept.pick_in_turn(at, &offers) else { continue };
            // From the cursor on, the first channel of the crossbar input that wants this output.
            let (first, channels) = requests.channels_to(view, e, out);
            let Some(vc) = view.arbiters.input.pick_in_turn(at, &channels) else { continue };
            matches(view, (at, view.base as usize + usize::from(out)), (e, out, vc), round);
            matched.insert(e);
            wanted.remove(out);
            traverse::<OBS, W>(view, first + usize::from(vc), out, (speculative, R::ONE));
            crossed(view, e, out);
        }
    }
}

/// Moves the cursors of a pair that iSLIP matched: those of a crossbar input and an output. All its arbiters are cursors.
#[inline(always)]
fn matches<const W: usize>(
    view: &mut SwitchView<'_, W>,
    (input, output): (usize, usize),
    (e, out, vc): (u16, u16, u16),
    round: u8,
) {
    if round == 0 {
        view.arbiters.output.granted_in_turn(output, e);
        view.arbiters.accept.granted_in_turn(input, out);
    }
    view.arbiters.input.granted_in_turn(input, vc);
}

/// ST: a granted flit leaves. A speculative grant is void if the packet got no channel, or one without a credit. `one` says that a
/// word has the bits of all queues.
#[inline(always)]
fn traverse<const OBS: u8, const W: usize>(
    view: &mut SwitchView<'_, W>,
    local: usize,
    out: u16,
    (speculative, one): (bool, bool),
) {
    let shift = view.shift();
    let stage = if one { view.pipeline.vc_alloc } else { view.stage().unwrap_or(0) };
    let queue = &mut view.inputs[local];
    let (out_vc, o) = (queue.state.out_vc(), usize::from(out));
    if speculative {
        let credit = view.sides[o << view.stride].vc_masks.credit;
        if queue.state.phase() != Phase::Active || credit >> out_vc & 1 == 0 {
            return;
        }
    }
    let bit = 1 << (local & 63);
    let masks = &mut view.masks[if one { 0 } else { local >> 6 }];
    let in_vc = (local & ((1 << shift) - 1)) as u32;
    let link = &view.sides[local >> shift << view.stride].link;
    let (entry, waited, noted) = view.flow.unlink::<OBS>(queue, in_vc, link, &mut masks.occupied, bit);
    if OBS == WATCHED && view.flow.journal.is_some() {
        view.flow.note(view.first_queue + local, entry, super::FlitEvent::Left);
        view.flow.comes_from(Some((view.base + (local >> shift) as u32, in_vc as u8)));
    }
    let port = view.base + u32::from(out);
    if OBS & CHECKED != 0
        && noted
        && let Some(waits) = &mut view.stats.waits
    {
        waits.leave_packet((entry, waited), (view.base, local), port, (view.flow.now, stage));
    }
    let side = &mut view.sides[o << view.stride..];
    if view.flow.send::<OBS, true>((side, view.stats), (port, out_vc), entry, view.flow.delays.post, waited) {
        masks.active &= !bit;
        queue.state = State::IDLE;
    }
    view.changed = true;
}
