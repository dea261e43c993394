//! The view that a block has of its ports.

use super::Wires;
use super::flow::Flow;
use crate::ports::channel;
use crate::{Cause, Flit, FlitSize, Vcs, WideFlit};
use watershed_kernel::Cycle;

/// Channels that follow each other: set-routed ones and, behind them, point-to-point ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Channels {
    /// The system's number of the first one.
    pub first: u8,
    /// How many there are, counted from 0 on; those in front of the point-to-point ones may belong to another part.
    pub vcs: Vcs,
}

impl Channels {
    /// Whether a channel of the system is among them.
    #[inline]
    pub fn has(&self, vc: u8) -> bool {
        vc.wrapping_sub(self.first) < self.vcs.total()
    }
}

/// A flit of a frame.
#[derive(Clone, Copy, Debug)]
pub struct FramePart<'a> {
    /// What a flit carries.
    pub cut: FlitSize,
    /// The words of the frame.
    pub frame: &'a [u64],
    /// Which flit of it.
    pub index: usize,
    /// Of how many.
    pub flits: usize,
}

/// What a block between links or at the end of one sees of its ports in a cycle.
///
/// A block reads the heads of its input queues as they were at the start of the cycle, may take each head once, and
/// may send at most one flit a port. What it sends in cycle t is in the far queue at the start of t + latency + 1.
#[derive(Debug)]
pub struct Io<'a> {
    pub(crate) wires: &'a mut Wires,
    pub(crate) node: u32,
    /// System-wide number of its port 0.
    pub(crate) base: u32,
    pub(crate) sent: u8,
    /// The channels that are shown.
    pub(crate) shown: Channels,
    /// What flits wait for that the block does not take.
    pub(crate) waits_for: Cause,
}

impl<'a> Io<'a> {
    /// What block `node` sees, which sits in a wire or at the end of one.
    #[inline]
    pub(crate) fn new(wires: &'a mut Wires, node: u32, in_wire: bool) -> Io<'a> {
        let base = wires.port(node, 0);
        let shown = Channels { first: 0, vcs: wires.flow.vcs };
        Io { wires, node, base, sent: 0, shown, waits_for: if in_wire { Cause::Engine } else { Cause::Memory } }
    }

    /// The system-wide number of a port.
    #[inline]
    pub(super) fn port(&self, port: u16) -> u32 {
        self.base + u32::from(port)
    }

    /// The present cycle.
    #[inline]
    pub fn now(&self) -> Cycle {
        self.wires.flow.now
    }

    /// The virtual channels, as far as they are shown.
    #[inline]
    pub fn vcs(&self) -> Vcs {
        self.shown.vcs
    }

    /// Shows some channels only to a part of a block that leaves the others to another part: their numbers begin with 0 there, in
    /// all that it asks and sends. Returns what was shown before.
    #[inline]
    pub fn show(&mut self, channels: Channels) -> Channels {
        std::mem::replace(&mut self.shown, channels)
    }

    /// What is shown.
    #[inline]
    pub fn shown(&self) -> Channels {
        self.shown
    }

    /// All channels of the system.
    #[inline]
    pub fn all(&self) -> Channels {
        Channels { first: 0, vcs: self.wires.flow.vcs }
    }

    /// The system's number of a channel that is shown.
    #[inline]
    fn vc(&self, shown: u8) -> u8 {
        self.shown.first + shown
    }

    /// Whether a flit has been sent by a port in this cycle.
    #[inline]
    pub fn has_sent(&self, port: u16) -> bool {
        self.sent >> port & 1 == 1
    }

    /// The flit at the head of an input queue.
    #[inline]
    pub fn head(&self, port: u16, vc: u8) -> Option<Flit> {
        let q = self.wires.queue(self.port(port), self.vc(vc));
        self.wires.head(q).map(|(flit, _)| flit.on(vc))
    }

    /// The flit this many places behind the head of an input queue, if it is there.
    #[inline]
    pub fn behind_head(&self, port: u16, vc: u8, places: u16) -> Option<Flit> {
        let queue = &self.wires.inputs[self.wires.queue(self.port(port), self.vc(vc))];
        let pool = &self.wires.flow.pool;
        let entry = |at: u32| (0..places).fold(at, |at, _| pool[at as usize].next);
        (queue.len > places).then(|| pool[entry(queue.head) as usize].flit.on(vc))
    }

    /// The words behind the first of the flit at the head of an input queue; none if a flit carries no more than a word.
    #[inline]
    pub fn more(&self, port: u16, vc: u8) -> &[u64] {
        self.more_behind(port, vc, 0)
    }

    /// The same of the flit this many places behind the head.
    #[inline]
    pub fn more_behind(&self, port: u16, vc: u8, places: u16) -> &[u64] {
        let queue = &self.wires.inputs[self.wires.queue(self.port(port), self.vc(vc))];
        if queue.len <= places {
            return &[];
        }
        let pool = &self.wires.flow.pool;
        self.wires.flow.more.of((0..places).fold(queue.head, |at, _| pool[at as usize].next))
    }

    /// How many flits are queued at an input.
    #[inline]
    pub fn queued(&self, port: u16, vc: u8) -> usize {
        usize::from(self.wires.inputs[self.wires.queue(self.port(port), self.vc(vc))].len)
    }

    /// Takes the flit at the head of an input queue; its credit travels back.
    ///
    /// # Panics
    /// In debug builds, if the queue is empty.
    #[inline]
    pub fn take(&mut self, port: u16, vc: u8) -> Flit {
        let (port, at) = (self.port(port), self.vc(vc));
        self.wires.served[usize::from(!self.wires.flow.vcs.is_set(at))] += 1;
        let (flit, waited) = self.wires.pop(self.node, port, at);
        if waited > 0
            && let Some(waits) = &mut self.wires.ports.stats.waits
        {
            waits.taken(port, self.waits_for, waited);
        }
        flit.on(vc)
    }

    /// Counts cycles that what was to enter the network at a port had to wait before, for a cause that only the block knows.
    pub fn waited(&mut self, port: u16, cause: Cause, cycles: u64) {
        let port = self.port(port);
        if let Some(waits) = &mut self.wires.ports.stats.waits {
            waits.taken(port, cause, cycles);
        }
    }

    /// Whether a flit can be sent in this cycle: a credit is there, the link is free, and this port has not sent yet.
    #[inline(always)]
    pub fn can_send(&self, port: u16, vc: u8) -> bool {
        let at = self.port(port);
        self.sent >> port & 1 == 0
            && channel(self.wires.ports.port(at), self.vc(vc)).credits > 0
            && self.wires.is_free(at).is_ok()
    }

    /// As [`Io::can_send`], for the head flit of a point-to-point packet: where channels are kept until the tail's credit
    /// is back, a channel must have all its credits.
    #[inline]
    pub fn can_start(&self, port: u16, vc: u8) -> bool {
        self.can_send(port, vc) && self.has_room(port, vc)
    }

    /// The first of `count` channels from channel `first` on, in turn from the `from`-th of them, on which a packet can start now:
    /// [`Io::can_start`] of many channels at once. `from` is below `count`.
    #[inline]
    pub fn channel_to_start(&self, port: u16, (first, count): (u8, u8), from: u8) -> Option<u8> {
        let at = self.port(port);
        if self.sent >> port & 1 == 1 || self.wires.is_free(at).is_err() {
            return None;
        }
        debug_assert!(from < count, "turn {from} of {count} channels");
        let mut turn = from;
        for _ in 0..count {
            if self.wires.may_start(at, self.vc(first + turn)) {
                return Some(first + turn);
            }
            turn = if turn + 1 == count { 0 } else { turn + 1 };
        }
        None
    }

    /// Whether the credits of a channel let a packet start, whatever else its port does in this cycle.
    #[inline]
    pub fn has_room(&self, port: u16, vc: u8) -> bool {
        self.wires.may_start(self.port(port), self.vc(vc))
    }

    /// The channels of an input port on which something is queued, a bit each of those from the first one that is shown on.
    #[inline]
    pub fn occupied(&self, port: u16) -> u32 {
        let shift = self.wires.flow.vc_shift;
        let bit = u32::from(port) << shift;
        let word = self.wires.nodes.masks(self.node)[(bit >> 6) as usize].occupied;
        ((word >> (bit & 63)) as u32 & (u32::MAX >> (32 - (1 << shift)))) >> self.shown.first
    }

    /// Says whether the block wants to be ticked when a credit comes back (it does until it says otherwise): a block
    /// with nothing to send has nothing to do then.
    #[inline]
    pub fn heed_credits(&mut self, heeds: bool) {
        self.wires.nodes[self.node as usize].flags.set_heeds(heeds);
    }

    /// From when on the link of a port is free again, if it is busy.
    #[inline]
    pub fn busy_until(&self, port: u16) -> Option<Cycle> {
        self.wires.is_free(self.port(port)).err()
    }

    /// Credits of an output channel.
    #[inline]
    pub fn credits(&self, port: u16, vc: u8) -> u16 {
        channel(self.wires.ports.port(self.port(port)), self.vc(vc)).credits
    }

    /// Sends a flit.
    ///
    /// # Panics
    /// If [`Io::can_send`] is false.
    #[inline]
    pub fn send(&mut self, port: u16, vc: u8, flit: Flit) {
        self.put_out(port, vc, |flow| flow.store(flit));
    }

    /// Sends what `store` puts into the pool.
    #[inline(always)]
    fn put_out(&mut self, port: u16, vc: u8, store: impl FnOnce(&mut Flow) -> u32) {
        assert!(self.can_send(port, vc), "port {port} cannot send on channel {vc} now: ask can_send() first");
        self.sent |= 1 << port;
        let (port, vc) = (self.port(port), self.vc(vc));
        self.wires.flow.comes_from(None);
        let entry = store(&mut self.wires.flow);
        self.wires.forward(port, vc, entry, 0, 0);
        self.wires.served[usize::from(!self.wires.flow.vcs.is_set(vc))] += 1;
        self.wires.flow.moves += 1;
    }

    /// Sends a flit with these words behind its first.
    ///
    /// # Panics
    /// As [`Io::send`].
    #[inline]
    pub fn send_with(&mut self, port: u16, vc: u8, flit: Flit, more: impl Iterator<Item = u64>) {
        self.put_out(port, vc, |flow| flow.store_with(flit, more));
    }

    /// Sends a flit of a frame, which has this collective id and number in its tag.
    ///
    /// # Panics
    /// As [`Io::send`].
    #[inline]
    pub fn send_part(&mut self, port: u16, vc: u8, (id, seq): (u16, u64), part: FramePart<'_>) {
        let FramePart { cut, frame, index, flits } = part;
        let flit = Flit::part(id, vc, seq, index as u32, flits as u32, cut.word(frame, index, 0));
        self.send_with(port, vc, flit, cut.words_behind(frame, index));
    }

    /// Takes the flit at the head of an input queue, with all its words.
    #[inline]
    pub fn take_wide(&mut self, port: u16, vc: u8) -> WideFlit {
        let flit = self.take(port, vc);
        WideFlit { flit, more: self.wires.flow.more.taken().into() }
    }

    /// Sends a flit with all its words.
    ///
    /// # Panics
    /// As [`Io::send`].
    pub fn send_wide(&mut self, port: u16, vc: u8, flit: &WideFlit) {
        self.send_with(port, vc, flit.flit, flit.more.iter().copied());
    }

    /// Takes the flit at the head of a queue and sends it by another port.
    ///
    /// # Panics
    /// As [`Io::take`] and [`Io::send`].
    #[inline]
    pub fn pass(&mut self, from: u16, to: u16, vc: u8) {
        let flit = self.take(from, vc);
        self.put_out(to, vc, |flow| flow.store_taken(flit));
    }

    /// Tells the driver that one unit of work is complete.
    pub fn complete(&mut self) {
        self.wires.completions += 1;
        self.wires.completed = self.wires.flow.now;
    }

    /// Reports a breach of a rule; the run ends with a failed check.
    pub fn fail(&mut self, text: impl FnOnce() -> String) {
        self.wires.fail(text);
    }
}
