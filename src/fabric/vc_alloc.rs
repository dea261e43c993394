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

use super::network::Tables;
use super::switch::Cx;
use super::unicast::{bits, each};
use super::wires::{AGAIN, Phase};
use super::{Join, PortSet, VcAllocator};

/// Serves every packet that has a route and no channel.
pub(super) fn serve<T: Tables<W>, J: Join<Tables = T>, const W: usize>(cx: &mut Cx<'_, T, J, W>) {
    let words = cx.words;
    let mut wanted: PortSet<W> = PortSet::EMPTY;
    for w in 0..words {
        for local in bits(&cx.scratch.routed, w) {
            let out = cx.wires.queues[cx.first_queue + local].out_port;
            let row = usize::from(out) * words;
            if !wanted.contains(out) {
                wanted.insert(out);
                cx.scratch.want[row..row + words].fill(0);
            }
            cx.scratch.want[row + w] |= 1 << (local & 63);
        }
    }
    for out in &wanted {
        let free = free_channels(cx, out);
        if free == 0 {
            continue;
        }
        let row = usize::from(out) * words;
        if let Some(local) = only(&cx.scratch.want[row..row + words]) {
            alone(cx, out, free, local);
            continue;
        }
        match cx.router.vc_allocator {
            VcAllocator::Ordered => ordered(cx, out, free),
            VcAllocator::Separable => separable(cx, out, free),
            VcAllocator::Islip => islip(cx, out, free),
        }
    }
}

/// Serves the packets whose bits are set in `routed`, if all of them want different outputs.
#[inline]
pub(super) fn without_conflict<T, J, const W: usize>(cx: &mut Cx<'_, T, J, W>, routed: u64) -> Option<()> {
    if !routed.is_power_of_two() {
        let mut wanted: PortSet<W> = PortSet::EMPTY;
        for local in each(routed) {
            let out = cx.wires.queues[cx.first_queue + local].out_port;
            if wanted.contains(out) {
                return None;
            }
            wanted.insert(out);
        }
    }
    for local in each(routed) {
        let out = cx.wires.queues[cx.first_queue + local].out_port;
        let free = free_channels(cx, out);
        alone(cx, out, free, local);
    }
    Some(())
}

/// The free point-to-point channels of an output, counted from the first such channel.
#[inline]
fn free_channels<T, J, const W: usize>(cx: &Cx<'_, T, J, W>, out: u16) -> u32 {
    let vcs = cx.wires.vcs;
    (cx.wires.links[cx.base as usize + usize::from(out)].free >> vcs.set) & !(u32::MAX << vcs.unicast)
}

/// What a requester may use.
#[inline]
fn allowed<T, J, const W: usize>(cx: &Cx<'_, T, J, W>, local: usize) -> u32 {
    cx.wires.queues[cx.first_queue + local].allowed & !AGAIN
}

/// Gives channel `channel` (from the first point-to-point channel on) of output `out` to a queue.
#[inline]
fn grant<T, J, const W: usize>(cx: &mut Cx<'_, T, J, W>, out: u16, channel: u32, local: usize) {
    let vc = cx.wires.vcs.set + channel as u8;
    cx.wires.hold(cx.base + u32::from(out), vc, local as u16 + 1);
    let queue = &mut cx.wires.queues[cx.first_queue + local];
    queue.phase = Phase::Active;
    queue.out_vc = vc;
    let masks = &mut cx.wires.masks[cx.mask_base + (local >> 6)];
    let bit = 1 << (local & 63);
    masks.routed &= !bit;
    masks.active |= bit;
    cx.changed = true;
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

/// A packet that nobody competes with, which is most of them below saturation: what each allocator comes to then.
#[inline]
fn alone<T, J, const W: usize>(cx: &mut Cx<'_, T, J, W>, out: u16, free: u32, local: usize) {
    let usable = free & allowed(cx, local);
    if usable == 0 {
        return;
    }
    let channel = match cx.router.vc_allocator {
        VcAllocator::Ordered => {
            cx.arbiters.va_cursor_q[cx.base as usize + usize::from(out)] = local as u16 + 1;
            usable.trailing_zeros()
        }
        VcAllocator::Separable => {
            let q = cx.first_queue + local;
            let channel = next_channel(usable, u32::from(cx.arbiters.va_accept_q[q]));
            cx.arbiters.va_accept_q[q] = channel as u16 + 1;
            let at = cx.wires.queue(cx.base + u32::from(out), cx.wires.vcs.set + channel as u8);
            cx.arbiters.va_grant_q[at] = local as u16 + 1;
            if let Some(bank) = &mut cx.arbiters.va_ports {
                bank.granted(at, (local >> cx.wires.vc_shift) as u16);
            }
            channel
        }
        VcAllocator::Islip => {
            let (channel, cursor) = accept(cx, out, usable, local);
            let at = cx.wires.queue(cx.base + u32::from(out), cx.wires.vcs.set + channel as u8);
            cx.arbiters.va_grant_q[at] = local as u16 + 1;
            cx.arbiters.va_accept_q[cx.first_queue + local] = cursor;
            channel
        }
    };
    grant(cx, out, channel, local);
}

/// Which of the channels that offered themselves a packet accepts, and where its cursor then stands. The cursor counts
/// over the channels of all outputs.
#[inline]
fn accept<T, J, const W: usize>(cx: &Cx<'_, T, J, W>, out: u16, offers: u32, local: usize) -> (u32, u16) {
    let cursor = u32::from(cx.arbiters.va_accept_q[cx.first_queue + local]);
    let start = (u32::from(out) << cx.wires.vc_shift) + u32::from(cx.wires.vcs.set);
    let from = cursor.wrapping_sub(start);
    let channel = next_channel(offers, if from < 32 { from } else { 0 });
    (channel, (start + channel) as u16 + 1)
}

/// The first set bit from `from` on, wrapping.
#[inline]
fn next_from(words: &[u64], from: usize) -> Option<usize> {
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

/// The first set bit of a channel mask from `from` on, wrapping.
#[inline]
fn next_channel(mask: u32, from: u32) -> u32 {
    let high = if from < 32 { mask & (u32::MAX << from) } else { 0 };
    if high == 0 { mask.trailing_zeros() } else { high.trailing_zeros() }
}

/// Requesters in turn, each takes the lowest channel.
fn ordered<T, J, const W: usize>(cx: &mut Cx<'_, T, J, W>, out: u16, mut free: u32) {
    let row = usize::from(out) * cx.words;
    let at = cx.base as usize + usize::from(out);
    let start = usize::from(cx.arbiters.va_cursor_q[at]);
    let mut last = None;
    while free != 0 {
        let row = row..row + cx.words;
        let Some(local) = next_from(&cx.scratch.want[row.clone()], last.map_or(start, |last| last + 1)) else { break };
        cx.scratch.want[row.start + (local >> 6)] &= !(1 << (local & 63));
        let usable = free & allowed(cx, local);
        if usable != 0 {
            let channel = usable.trailing_zeros();
            free &= !(1 << channel);
            grant(cx, out, channel, local);
            cx.arbiters.va_cursor_q[at] = local as u16 + 1;
        }
        last = Some(local);
    }
}

/// Each requester picks a channel, each channel picks a requester.
fn separable<T, J, const W: usize>(cx: &mut Cx<'_, T, J, W>, out: u16, free: u32) {
    let row = usize::from(out) * cx.words;
    let mut picked = 0;
    for w in 0..cx.words {
        for local in bits(&cx.scratch.want[row..row + cx.words], w) {
            let usable = free & allowed(cx, local);
            let cursor = u32::from(cx.arbiters.va_accept_q[cx.first_queue + local]);
            let pick = if usable == 0 { 0 } else { 1 << next_channel(usable, cursor) };
            cx.scratch.offers[local] = pick;
            picked |= pick;
        }
    }
    while picked != 0 {
        let channel = picked.trailing_zeros();
        picked &= picked - 1;
        let Some(local) = pick_requester(cx, out, channel) else { continue };
        grant(cx, out, channel, local);
        cx.arbiters.va_accept_q[cx.first_queue + local] = channel as u16 + 1;
        cx.scratch.want[row + (local >> 6)] &= !(1 << (local & 63));
    }
}

/// The requester of output `out` that channel `channel` serves, of those whose offers name the channel.
fn pick_requester<T, J, const W: usize>(cx: &mut Cx<'_, T, J, W>, out: u16, channel: u32) -> Option<usize> {
    let row = usize::from(out) * cx.words;
    let at = cx.wires.queue(cx.base + u32::from(out), cx.wires.vcs.set + channel as u8);
    let shift = cx.wires.vc_shift;
    let mine = |cx: &Cx<'_, T, J, W>, local: usize| cx.scratch.offers[local] >> channel & 1 == 1;
    // With matrix or fixed arbiters an input port is chosen first, then its queues in turn.
    let mut only = None;
    if let Some(bank) = &cx.arbiters.va_ports {
        let mut ports: PortSet<W> = PortSet::EMPTY;
        for w in 0..cx.words {
            for local in bits(&cx.scratch.want[row..row + cx.words], w) {
                if mine(cx, local) {
                    ports.insert((local >> shift) as u16);
                }
            }
        }
        only = Some(bank.pick(at, &ports)?);
    }
    let cursor = usize::from(cx.arbiters.va_grant_q[at]);
    let (mut behind, mut first) = (None, None);
    for w in 0..cx.words {
        for local in bits(&cx.scratch.want[row..row + cx.words], w) {
            if mine(cx, local) && only.is_none_or(|port| usize::from(port) == local >> shift) {
                first = first.or(Some(local));
                if local >= cursor {
                    behind = behind.or(Some(local));
                }
            }
        }
    }
    let winner = behind.or(first)?;
    cx.arbiters.va_grant_q[at] = winner as u16 + 1;
    if let (Some(bank), Some(port)) = (&mut cx.arbiters.va_ports, only) {
        bank.granted(at, port);
    }
    Some(winner)
}

/// Free channels offer themselves, requesters accept.
fn islip<T, J, const W: usize>(cx: &mut Cx<'_, T, J, W>, out: u16, mut free: u32) {
    let words = cx.words;
    let row = usize::from(out) * words;
    let first_channel = cx.wires.queue(cx.base + u32::from(out), cx.wires.vcs.set);
    for round in 0..cx.router.iterations {
        let mut open = 0;
        for w in 0..words {
            for local in bits(&cx.scratch.want[row..row + words], w) {
                cx.scratch.offers[local] = 0;
                open |= allowed(cx, local);
            }
        }
        let mut left = free & open;
        if left == 0 {
            return;
        }
        while left != 0 {
            let channel = left.trailing_zeros();
            left &= left - 1;
            let cursor = usize::from(cx.arbiters.va_grant_q[first_channel + channel as usize]);
            let mut from = cursor;
            // In turn from the cursor on, the first requester that may use this channel.
            let requesters = &cx.scratch.want[row..row + words];
            let Some(first) = next_from(requesters, from) else { return };
            let mut local = first;
            let found = loop {
                if allowed(cx, local) >> channel & 1 == 1 {
                    break Some(local);
                }
                from = local + 1;
                match next_from(requesters, from) {
                    Some(next) if next != first => local = next,
                    _ => break None,
                }
            };
            if let Some(local) = found {
                cx.scratch.offers[local] |= 1 << channel;
            }
        }
        for w in 0..words {
            for local in bits(&cx.scratch.want[row..row + words], w) {
                let offers = cx.scratch.offers[local];
                if offers == 0 {
                    continue;
                }
                let (channel, cursor) = accept(cx, out, offers, local);
                if round == 0 {
                    cx.arbiters.va_grant_q[first_channel + channel as usize] = local as u16 + 1;
                    cx.arbiters.va_accept_q[cx.first_queue + local] = cursor;
                }
                free &= !(1 << channel);
                cx.scratch.want[row + w] &= !(1 << (local & 63));
                grant(cx, out, channel, local);
            }
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
            assert_eq!(next_from(&words, from), Some(found), "from {from}");
        }
        assert_eq!(next_from(&[0, 0], 7), None);
        for (from, found) in [(0, 2), (2, 2), (3, 31), (31, 31), (32, 2), (40, 2)] {
            assert_eq!(next_channel(1 << 2 | 1 << 31, from), found, "from {from}");
        }
    }
}
