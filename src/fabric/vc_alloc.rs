//! Virtual-channel allocation: which packet gets which channel of its output port.
//!
//! ```text
//!   requests of a cycle          free channels of output o          grants
//!   queue q ── o, allowed ──▶  [ one of three allocators ]  ──▶  q holds channel v of o
//! ```
//!
//! | allocator | step 1 | step 2 | cursors move |
//! |---|---|---|---|
//! | ordered | requesters of an output in turn | each takes the lowest free channel it may use | behind the last one served |
//! | separable | each requester picks a free channel, from its cursor on | each channel picks a requester | both, when it is granted |
//! | iSLIP | each free channel offers itself to a requester | each requester accepts an offer | both, when an offer of the first round is accepted |
//!
//! A packet asks for channels of one output port only, so outputs are independent of each other.

use super::portset::{bits, each, next_bit};
use super::switch_view::SwitchView;
use super::wires::{State, WATCHED};
use super::{PortSet, VcAllocator};

/// Serves packets that have a route and no channel: `routed` has their bits.
pub(super) fn serve_words<const W: usize>(view: &mut SwitchView<'_, W>, routed: &[u64]) {
    let words = view.words();
    let mut wanted: PortSet<W> = PortSet::EMPTY;
    for w in 0..words {
        for local in bits(routed, w) {
            let out = view.inputs[local].out_port;
            let row = usize::from(out) * words;
            if !wanted.contains(out) {
                wanted.insert(out);
                view.scratch.want[row..row + words].fill(0);
            }
            view.scratch.want[row + w] |= 1 << (local & 63);
        }
    }
    for out in &wanted {
        let free = free_channels(view, usize::from(out));
        if free == 0 {
            continue;
        }
        let row = usize::from(out) * words;
        match only(&view.scratch.want[row..row + words]) {
            Some(local) => grant_uncontested::<WATCHED, W>(view, out, free, local),
            None => contest::<WATCHED, false, W>(view, out, free),
        }
    }
}

/// The same where queues fit one word: `routed` has the bits of those that ask for a channel.
#[inline(always)]
pub(super) fn serve_word<const OBS: u8, const W: usize>(view: &mut SwitchView<'_, W>, routed: u64) {
    if routed.is_power_of_two() {
        serve_uncontested::<OBS, W>(view, routed.trailing_zeros() as usize);
    } else {
        serve_several::<OBS, W>(view, routed);
    }
}

/// Serves a packet without competitors.
#[inline(always)]
fn serve_uncontested<const OBS: u8, const W: usize>(view: &mut SwitchView<'_, W>, local: usize) {
    let out = view.inputs[local].out_port;
    let free = free_channels(view, usize::from(out));
    if free != 0 {
        grant_uncontested::<OBS, W>(view, out, free, local);
    }
}

/// Serves several packets.
#[inline(never)]
fn serve_several<const OBS: u8, const W: usize>(view: &mut SwitchView<'_, W>, routed: u64) {
    let (mut wanted, mut contested) = (0u64, false);
    for local in each(routed) {
        let out = 1 << (view.inputs[local].out_port & 63);
        contested |= wanted & out != 0;
        wanted |= out;
    }
    // Mostly nobody competes, and then nobody needs to know who else asks.
    if !contested {
        for local in each(routed) {
            serve_uncontested::<OBS, W>(view, local);
        }
        return;
    }
    // Per wanted output, the packets that ask for a channel of it.
    let mut wanted = 0;
    for local in each(routed) {
        let out = view.inputs[local].out_port;
        view.scratch.word.request(&mut wanted, out, local);
    }
    for out in each(wanted) {
        let free = free_channels(view, out);
        if free == 0 {
            continue;
        }
        let want = view.scratch.word.want(out);
        if want.is_power_of_two() {
            grant_uncontested::<OBS, W>(view, out as u16, free, want.trailing_zeros() as usize);
        } else {
            view.scratch.want[out] = want;
            contest::<OBS, true, W>(view, out as u16, free);
        }
    }
}

/// Words of queue bits; `ONE` says that it is one.
#[inline(always)]
fn words<const ONE: bool, const W: usize>(view: &SwitchView<'_, W>) -> usize {
    if ONE { 1 } else { view.words() }
}

/// Several packets that want channels of one output; `want` has their bits, in `ONE` word or more. It stands by itself: one
/// packet in four comes here, and the code of the others is better kept together.
#[inline(never)]
fn contest<const OBS: u8, const ONE: bool, const W: usize>(view: &mut SwitchView<'_, W>, out: u16, free: u32) {
    match view.router.vc_allocator {
        VcAllocator::Ordered => ordered::<OBS, ONE, W>(view, out, free),
        VcAllocator::Separable => separable::<OBS, ONE, W>(view, out, free),
        VcAllocator::Islip => islip::<OBS, ONE, W>(view, out, free),
    }
}

/// The free point-to-point channels of an output, counted from the first such channel.
#[inline]
fn free_channels<const W: usize>(view: &SwitchView<'_, W>, out: usize) -> u32 {
    let vcs = view.flow.vcs;
    (view.vc_masks(out).free >> vcs.set) & !(u32::MAX << vcs.unicast)
}

/// Gives channel `channel` (from the first point-to-point channel on) of output `out` to a queue.
#[inline(always)]
fn grant<const OBS: u8, const W: usize>(view: &mut SwitchView<'_, W>, out: u16, channel: u32, local: usize) {
    let vc = view.flow.vcs.set + channel as u8;
    let port = view.base + u32::from(out);
    let stride = view.stride;
    view.flow.hold::<OBS>(&mut view.sides[usize::from(out) << stride..], port, vc, local as u16 + 1);
    view.inputs[local].state = State::active(vc);
    // Switches whose queues need several words run the watched code alone.
    let masks = &mut view.masks[if OBS == WATCHED { local >> 6 } else { 0 }];
    let bit = 1 << (local & 63);
    masks.routed &= !bit;
    masks.active |= bit;
    view.changed = true;
}

/// The one set bit, if there is exactly one.
#[inline]
fn only(words: &[u64]) -> Option<usize> {
    let mut found = None;
    for (w, &word) in words.iter().enumerate() {
        if word != 0 {
            if found.is_some() || !word.is_power_of_two() {
                return None;
            }
            found = Some(w << 6 | word.trailing_zeros() as usize);
        }
    }
    found
}

/// Grants a packet without competitors, which is most of them below saturation: what each allocator comes to then.
#[inline(always)]
fn grant_uncontested<const OBS: u8, const W: usize>(view: &mut SwitchView<'_, W>, out: u16, free: u32, local: usize) {
    let (start, port) = (view.number(out, 0), (local >> view.shift()) as u16);
    let queue = &mut view.inputs[local];
    let usable = free & view.flow.pool[queue.head as usize].allowed;
    if usable == 0 {
        return;
    }
    let channel = match view.router.vc_allocator {
        VcAllocator::Ordered => {
            view.arbiters.va_cursor_q[view.base as usize + usize::from(out)] = local as u16 + 1;
            usable.trailing_zeros()
        }
        VcAllocator::Separable => {
            let channel = next_channel(usable, u32::from(queue.accept_q));
            queue.accept_q = channel as u16 + 1;
            let at = view.first_queue + start + channel as usize;
            view.arbiters.va_grant_q[at] = local as u16 + 1;
            if let Some(bank) = &mut view.arbiters.va_ports {
                bank.granted(at, port);
            }
            channel
        }
        VcAllocator::Islip => {
            let channel = accept(&mut queue.accept_q, start, usable);
            view.arbiters.va_grant_q[view.first_queue + start + channel as usize] = local as u16 + 1;
            channel
        }
    };
    grant::<OBS, W>(view, out, channel, local);
}

/// Which of the channels that offered themselves a packet accepts; moves its cursor. The cursor counts over the channels of all
/// outputs: the first one of this output has the number `start`.
#[inline(always)]
fn accept(cursor: &mut u16, start: usize, offers: u32) -> u32 {
    let from = u32::from(*cursor).wrapping_sub(start as u32);
    let channel = next_channel(offers, if from < 32 { from } else { 0 });
    *cursor = start as u16 + channel as u16 + 1;
    channel
}

/// The first set bit from `from` on (of one word at most 64), wrapping; of `ONE` word or more.
#[inline(always)]
fn next_from<const ONE: bool>(words: &[u64], from: usize) -> Option<usize> {
    if ONE {
        return (words[0] != 0).then(|| next_bit(words[0], from as u32) as usize);
    }
    let w0 = from >> 6;
    if let Some(&word) = words.get(w0) {
        let high = word & (u64::MAX << (from & 63));
        if high != 0 {
            return Some(w0 << 6 | high.trailing_zeros() as usize);
        }
    }
    let after = (w0 + 1).min(words.len());
    let (before, behind) = words.split_at(after);
    let first = |words: &[u64], base: usize| {
        words.iter().position(|&word| word != 0).map(|w| (base + w) << 6 | words[w].trailing_zeros() as usize)
    };
    first(behind, after).or_else(|| first(before, 0))
}

/// The first set bit of a channel mask that has any from `from` (at most 32) on, wrapping.
#[inline(always)]
fn next_channel(mask: u32, from: u32) -> u32 {
    (from + mask.rotate_right(from).trailing_zeros()) & 31
}

/// Requesters in turn, each takes the lowest channel.
fn ordered<const OBS: u8, const ONE: bool, const W: usize>(view: &mut SwitchView<'_, W>, out: u16, mut free: u32) {
    let words = words::<ONE, W>(view);
    let row = usize::from(out) * words;
    let at = view.base as usize + usize::from(out);
    let start = usize::from(view.arbiters.va_cursor_q[at]);
    let mut last = None;
    while free != 0 {
        let want = &mut view.scratch.want[row..row + words];
        let Some(local) = next_from::<ONE>(want, last.map_or(start, |last| last + 1)) else { break };
        want[local >> 6] &= !(1 << (local & 63));
        let usable = free & view.allowed(local);
        if usable != 0 {
            let channel = usable.trailing_zeros();
            free &= !(1 << channel);
            grant::<OBS, W>(view, out, channel, local);
            view.arbiters.va_cursor_q[at] = local as u16 + 1;
        }
        last = Some(local);
    }
}

/// Each requester picks a channel, each channel picks a requester.
fn separable<const OBS: u8, const ONE: bool, const W: usize>(view: &mut SwitchView<'_, W>, out: u16, free: u32) {
    let words = words::<ONE, W>(view);
    let row = usize::from(out) * words;
    let mut picked = 0;
    for w in 0..words {
        for local in bits(&view.scratch.want[row..row + words], w) {
            let usable = free & view.allowed(local);
            let cursor = u32::from(view.inputs[local].accept_q);
            let pick = if usable == 0 { 0 } else { 1 << next_channel(usable, cursor) };
            view.scratch.offers[local] = pick;
            picked |= pick;
        }
    }
    while picked != 0 {
        let channel = picked.trailing_zeros();
        picked &= picked - 1;
        let Some(local) = pick_requester::<ONE, W>(view, out, channel) else { continue };
        grant::<OBS, W>(view, out, channel, local);
        view.inputs[local].accept_q = channel as u16 + 1;
        view.scratch.want[row + (local >> 6)] &= !(1 << (local & 63));
    }
}

/// The requester of output `out` that channel `channel` serves, of those whose offers name the channel.
fn pick_requester<const ONE: bool, const W: usize>(
    view: &mut SwitchView<'_, W>,
    out: u16,
    channel: u32,
) -> Option<usize> {
    let words = words::<ONE, W>(view);
    let row = usize::from(out) * words;
    let at = view.number(out, channel);
    let shift = view.shift();
    let mine = |view: &SwitchView<'_, W>, local: usize| view.scratch.offers[local] >> channel & 1 == 1;
    // With matrix or fixed arbiters an input port is chosen first, then its queues in turn.
    let mut only = None;
    if let Some(bank) = &view.arbiters.va_ports {
        let mut ports: PortSet<W> = PortSet::EMPTY;
        for w in 0..words {
            for local in bits(&view.scratch.want[row..row + words], w) {
                if mine(view, local) {
                    ports.insert((local >> shift) as u16);
                }
            }
        }
        only = Some(bank.pick(view.first_queue + at, &ports)?);
    }
    let cursor = usize::from(view.arbiters.va_grant_q[view.first_queue + at]);
    let (mut behind, mut first) = (None, None);
    for w in 0..words {
        for local in bits(&view.scratch.want[row..row + words], w) {
            if mine(view, local) && only.is_none_or(|port| usize::from(port) == local >> shift) {
                first = first.or(Some(local));
                if local >= cursor {
                    behind = behind.or(Some(local));
                }
            }
        }
    }
    let winner = behind.or(first)?;
    view.arbiters.va_grant_q[view.first_queue + at] = winner as u16 + 1;
    if let (Some(bank), Some(port)) = (&mut view.arbiters.va_ports, only) {
        bank.granted(view.first_queue + at, port);
    }
    Some(winner)
}

/// Free channels offer themselves, requesters accept.
fn islip<const OBS: u8, const ONE: bool, const W: usize>(view: &mut SwitchView<'_, W>, out: u16, mut free: u32) {
    let words = words::<ONE, W>(view);
    let row = usize::from(out) * words;
    let start = view.number(out, 0);
    let first_channel = view.first_queue + start;
    for round in 0..view.router.iterations {
        let mut open = 0;
        let mut shared = u32::MAX;
        for w in 0..words {
            for local in bits(&view.scratch.want[row..row + words], w) {
                view.scratch.offers[local] = 0;
                let may = view.allowed(local);
                open |= may;
                shared &= may;
            }
        }
        let requesters = &view.scratch.want[row..row + words];
        let at_once = ONE && free & open != 0 && free & open == free & shared;
        if at_once {
            // All channels, free or not, and without a branch: which of them are free cannot be foretold.
            let cursors = &view.arbiters.va_grant_q[first_channel..][..usize::from(view.flow.vcs.unicast)];
            for (channel, &from) in cursors.iter().enumerate() {
                let local = next_bit(requesters[0], u32::from(from)) as usize;
                view.scratch.offers[local] |= free & shared & 1 << channel;
            }
        }
        for channel in each(u64::from(if at_once { 0 } else { free & open })) {
            // In turn from the cursor on, the first requester that may use this channel.
            let from = usize::from(view.arbiters.va_grant_q[first_channel + channel]);
            let Some(first) = next_from::<ONE>(requesters, from) else { return };
            let mut local = first;
            if shared >> channel & 1 == 0 {
                while view.allowed(local) >> channel & 1 == 0 {
                    // One of them may, so the search ends.
                    local = next_from::<ONE>(requesters, local + 1).unwrap_or(first);
                }
            }
            view.scratch.offers[local] |= 1 << channel;
        }
        let mut matched = false;
        for w in 0..words {
            for local in bits(&view.scratch.want[row..row + words], w) {
                let offers = view.scratch.offers[local];
                if offers == 0 {
                    continue;
                }
                let queue = &mut view.inputs[local];
                let mut cursor = queue.accept_q;
                let channel = accept(&mut cursor, start, offers);
                if round == 0 {
                    view.arbiters.va_grant_q[first_channel + channel as usize] = local as u16 + 1;
                    queue.accept_q = cursor;
                }
                free &= !(1 << channel);
                view.scratch.want[row + w] &= !(1 << (local & 63));
                grant::<OBS, W>(view, out, channel, local);
                matched = true;
            }
        }
        if !matched {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_starts_at_the_cursor_and_wraps() {
        let words = [1 << 3 | 1 << 63, 0, 1 << 1];
        for (from, found) in [(0, 3), (3, 3), (4, 63), (63, 63), (64, 129), (129, 129), (130, 3), (192, 3), (500, 3)] {
            assert_eq!(next_from::<false>(&words, from), Some(found), "from {from}");
        }
        for (from, found) in [(0, 3), (3, 3), (4, 63), (63, 63), (64, 3)] {
            assert_eq!(next_from::<true>(&words[..1], from), Some(found), "from {from}");
        }
        assert_eq!(next_from::<true>(&[0], 7), None);
        assert_eq!(next_from::<false>(&[0, 0], 7), None);
        for (from, found) in [(0, 2), (2, 2), (3, 31), (31, 31), (32, 2)] {
            assert_eq!(next_channel(1 << 2 | 1 << 31, from), found, "from {from}");
        }
    }
}
