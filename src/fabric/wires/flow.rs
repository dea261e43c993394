//! How flits and credits move.

use super::queue::{Arrival, CreditReturn, Crossing, Destination, Input, NOTED, Slot};
use super::{CHECKED, DIVIDED, UNOBSERVED, WATCHED, WaveCapture};
use crate::arena::Arena;
use crate::ports::{DRAINING, Link, NONE, Port, PortStats, channel_mut};
use crate::{Flit, Vcs, monitor};
use watershed_kernel::{Cycle, Wheel};
use watershed_state::state;

/// A port whose link may be narrower than a flit.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
pub(super) struct SerializingPort {
    pub(super) until: Cycle,
    pub(super) cycles_per_flit: u16,
}

/// The words of flits behind the first, by their place in the pool; there are none where a flit carries a word or less.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
pub(crate) struct ExtraWords {
    /// Words of each flit behind the first.
    each: usize,
    words: Vec<u64>,
    /// Those of the flit that was taken out last.
    taken: Vec<u64>,
}

impl ExtraWords {
    /// For flits of `each` words behind the first.
    pub fn new(each: usize) -> ExtraWords {
        ExtraWords { each, words: Vec::new(), taken: vec![0; each] }
    }

    /// Those of a place in the pool.
    pub fn of(&self, entry: u32) -> &[u64] {
        let from = entry as usize * self.each;
        self.words.get(from..from + self.each).unwrap_or_default()
    }

    /// Those of the flit that was taken out of its queue last.
    pub fn taken(&self) -> &[u64] {
        &self.taken
    }

    /// Remembers those of a flit that is taken out.
    #[inline(always)]
    pub fn take(&mut self, entry: u32) {
        if self.each > 0 {
            self.copy_out(entry);
        }
    }

    #[cold]
    fn copy_out(&mut self, entry: u32) {
        let from = entry as usize * self.each;
        self.taken.copy_from_slice(&self.words[from..from + self.each]);
    }

    /// Gives those of a place; missing ones are zero.
    #[cold]
    fn set(&mut self, entry: u32, words: impl Iterator<Item = u64>) {
        let from = entry as usize * self.each;
        let need = from + self.each;
        if self.words.len() < need {
            self.words.resize(need, 0);
        }
        let places = self.words[from..need].iter_mut();
        places.zip(words.chain(std::iter::repeat(0))).for_each(|(place, word)| *place = word);
    }
}

/// The free list of the pool.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
pub(super) struct FreeList {
    /// The first free one, which names the next.
    pub free: u32,
    /// Entries that are in use.
    pub live: usize,
}

/// Cycles that a switch takes besides those of the link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delays {
    /// The front stages of its pipeline, before switch allocation.
    pub front: u16,
    /// After switch allocation until the flit is on the link.
    pub post: u16,
    /// To process a credit.
    pub credit: u16,
}

/// The boundary of a part: its own ports, and the traffic that leaves it.
#[derive(Clone, Debug)]
pub(crate) struct PartBoundary {
    /// The ports of this part: all, unless the system is divided.
    pub home: std::ops::Range<u32>,
    /// Whether there are other parts. A part may have all ports and not all nodes.
    pub divided: bool,
    /// What goes to other parts, until the end of the cycle.
    pub crossings: Vec<Crossing>,
}

state!(PartBoundary { saved: crossings; built: home, divided });

/// What moves, flits and credits, and the rules it moves by: all of a system that belongs to no port.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub now: Cycle,
    pub vcs: Vcs,
    pub vc_shift: u32,
    pub pool: Vec<Slot>,
    /// What flits carry beyond a word.
    pub more: ExtraWords,
    pub(super) places: FreeList,
    pub arrivals: Wheel<Arrival>,
    pub returns: Wheel<CreditReturn>,
    /// Until when a port narrower than a flit is busy; empty if all links take a flit a cycle.
    pub(super) busy: Arena<SerializingPort>,
    /// Whether link monitors look at what moves.
    pub monitored: bool,
    pub capture: Option<Box<WaveCapture>>,
    /// Flits moved since cycle 0: the watchdog's pulse.
    pub moves: u64,
    /// What a switch adds to links.
    pub delays: Delays,
    /// How closely single events are looked at everywhere: [`UNOBSERVED`] or [`CHECKED`], either with [`DIVIDED`], or
    /// [`WATCHED`]; what moves flits is compiled for each. Set at the start of every cycle. Waves look only at what goes
    /// on at the nodes they trace.
    pub(crate) observers: u8,
    /// Whether any route computation has said that it is asked again.
    pub(crate) asks_again: bool,
    /// The journal of flits, if it is kept.
    pub(crate) journal: Option<Box<crate::Journal>>,
    /// Whether a point-to-point channel stays with its packet until the tail's credit is back.
    pub(super) drains: bool,
    pub first_switchless_node: u32,
    /// Where this part of the system ends.
    pub(crate) boundary: PartBoundary,
}

state!(Flow {
    saved: now, pool, more, places, arrivals, returns, busy, moves, asks_again, boundary;
    watched: capture, journal;
    built: vcs, vc_shift, monitored, delays, observers, drains, first_switchless_node
});

impl Flow {
    /// Writes down what happened to a flit of the pool at queue or output channel `q`, if it is recorded.
    #[inline]
    pub fn note(&mut self, q: usize, entry: u32, what: crate::FlitEvent) {
        let channel = (q & ((1 << self.vc_shift) - 1)) as u8;
        if let Some(journal) = &mut self.journal
            && channel < journal.channels
        {
            journal.note(self.now, (q >> self.vc_shift) as u32, &self.pool[entry as usize].flit, what);
        }
    }

    /// Writes down that a flit went into an engine's slot, if it is recorded.
    #[inline]
    pub fn note_put(&mut self, port: u32, flit: &Flit, visible: Cycle) {
        if let Some(journal) = &mut self.journal {
            journal.note(self.now, port, flit, crate::FlitEvent::EnteredEngine { visible });
        }
    }

    /// Cycles that a flit which has entered a queue waits before allocation looks at it: only a switch has stages before
    /// that, and only set-routed flits spend them waiting. Point-to-point packets walk through route computation and
    /// channel allocation one by one.
    #[inline]
    fn queue_delay(&self, vc: u8, node: u32) -> u64 {
        if vc < self.vcs.set && node < self.first_switchless_node { u64::from(self.delays.front) } else { 0 }
    }

    /// Takes over what another part sent in this cycle.
    pub fn cross(&mut self, crossing: Crossing) {
        match crossing {
            Crossing::Flit(at, arrival, flit, more) => {
                let entry = self.store_with(flit, more.iter().copied());
                let ready = at + self.queue_delay(flit.tag.vc(), arrival.to.node());
                self.pool[entry as usize].ready = ready;
                self.arrivals.push(self.now, at - self.now, Arrival { entry, ..arrival });
            }
            Crossing::Credit(at, back) => self.returns.push(self.now, at - self.now, back),
        }
    }

    /// Gives back memory that links needed and do not need now.
    pub fn free_unused(&mut self) {
        self.arrivals.free_unused();
        self.returns.free_unused();
        if self.places.live == 0 {
            (self.pool, self.places.free) = (Vec::new(), NONE);
            self.more.words = Vec::new();
        }
    }

    /// For the journal: out of which queue of a switch the flits come that are sent from now on.
    #[inline]
    pub fn comes_from(&mut self, queue: Option<(u32, u8)>) {
        if let Some(journal) = &mut self.journal {
            journal.comes_from = queue;
        }
    }

    /// Puts a flit with these words behind its first into the pool.
    pub fn store_with(&mut self, flit: Flit, more: impl Iterator<Item = u64>) -> u32 {
        let entry = self.put(flit);
        if self.more.each > 0 {
            self.more.set(entry, more);
        }
        entry
    }

    /// Puts a copy of the flit that was taken out last into the pool.
    #[inline]
    pub fn store_taken(&mut self, flit: Flit) -> u32 {
        let entry = self.put(flit);
        if self.more.each > 0 {
            let taken = std::mem::take(&mut self.more.taken);
            self.more.set(entry, taken.iter().copied());
            self.more.taken = taken;
        }
        entry
    }

    /// Puts a flit into the pool, with nothing behind its first word.
    #[inline]
    pub fn store(&mut self, flit: Flit) -> u32 {
        let entry = self.put(flit);
        if self.more.each > 0 {
            self.more.set(entry, std::iter::empty());
        }
        entry
    }

    #[inline(always)]
    fn put(&mut self, flit: Flit) -> u32 {
        let slot = Slot::new(flit, 0);
        self.places.live += 1;
        if self.places.free == NONE {
            if self.pool.len() == self.pool.capacity() {
                self.pool.reserve_exact(self.pool.len().max(64));
            }
            self.pool.push(slot);
            return self.pool.len() as u32 - 1;
        }
        let entry = self.places.free;
        let place = &mut self.pool[entry as usize];
        self.places.free = place.next;
        *place = slot;
        entry
    }

    /// Takes a flit that stands in no queue out of the pool.
    #[inline]
    pub fn discard(&mut self, entry: u32) -> Flit {
        let slot = &mut self.pool[entry as usize];
        slot.next = self.places.free;
        self.places.free = entry;
        self.places.live -= 1;
        slot.flit
    }

    /// Takes the flit at the head of an input queue out and sends its credit back; the flit stays in the pool, where it
    /// is the caller's. `vc` and `link` are the queue's, `occupied` is the word with its occupancy
    /// bit, `bit` that bit. Returns the entry, how many cycles the flit stood at the head although it was ready, and whether it is
    /// [`NOTED`].
    #[inline(always)]
    pub fn unlink<const OBS: u8>(
        &mut self,
        channel: &mut Input,
        vc: u32,
        link: &Link,
        occupied: &mut u64,
        bit: u64,
    ) -> (u32, u64, bool) {
        let now = self.now;
        debug_assert!(channel.len > 0, "pop from an empty queue: look at head() first");
        let entry = channel.head;
        let slot = &self.pool[entry as usize];
        let (waited, noted) = (now.saturating_sub(slot.ready), slot.allowed & NOTED != 0);
        let number = if OBS & CHECKED == 0 { 0 } else { monitor::credit_sent(channel) };
        channel.head = slot.next;
        channel.len -= 1;
        if channel.len > 0 {
            // The flit behind it comes to the head in the next cycle, and has not waited there before.
            let behind = &mut self.pool[channel.head as usize];
            behind.ready = behind.ready.max(now + 1);
        } else {
            *occupied &= !bit;
        }
        if link.to_port != NONE {
            let upstream = (link.to_port << self.vc_shift) + vc;
            let back = CreditReturn { queue: upstream, to: Destination::new(link.to_node, number) };
            let delay = u64::from(link.back);
            if OBS & DIVIDED == 0 || self.boundary.home.contains(&link.to_port) {
                self.returns.push(self.now, delay, back);
            } else {
                self.boundary.crossings.push(Crossing::Credit(self.now + delay, back));
            }
        }
        self.moves += 1;
        (entry, waited, noted)
    }

    /// Sends a flit that stands in the pool and in no queue over a link, on channel `vc` of system-wide port `port`, whose
    /// records are `side`. Where packets are `HELD` to a channel, a tail frees it: now, or when its credit is back. Returns
    /// whether it is a tail.
    #[inline(always)]
    pub fn send<const OBS: u8, const HELD: bool>(
        &mut self,
        (side, stats): (&mut [Port], &mut PortStats),
        (port, vc): (u32, u8),
        entry: u32,
        pipeline: u16,
        waited: u64,
    ) -> bool {
        let flit = self.pool[entry as usize].flit.on(vc);
        let leaves = HELD && flit.tag.tail();
        let out = channel_mut(side, vc);
        assert!(out.credits > 0, "a flit was sent without a credit: allocation must check the credit count first");
        out.credits -= 1;
        let spent = out.credits == 0;
        let number = if OBS & CHECKED != 0 && (OBS != WATCHED || self.monitored) {
            monitor::flit_sent((port << self.vc_shift | u32::from(vc)) as usize, out, &flit)
        } else {
            0
        };
        let frees = leaves && !self.drains;
        if leaves {
            out.owner = if frees { 0 } else { DRAINING };
        }
        let side = &mut side[0];
        side.vc_masks.credit &= !(u32::from(spent) << vc);
        if frees {
            side.vc_masks.free |= 1 << vc;
        }
        // What holds channels is point-to-point.
        let set = !HELD && vc < self.vcs.set;
        side.count(port, set, flit.tag.head(), waited, stats);
        let link = &side.link;
        let delay = u64::from(pipeline) + u64::from(link.ahead);
        let ready = self.now + delay + if HELD { 0 } else { self.queue_delay(vc, link.to_node) };
        self.pool[entry as usize] = Slot::new(flit, ready);
        let queue = (link.to_port << self.vc_shift) + u32::from(vc);
        if OBS == WATCHED {
            self.note_sent((port, vc), entry, flit);
        }
        let arrival = Arrival { queue, to: Destination::new(link.to_node, number), entry };
        if OBS & DIVIDED == 0 || self.boundary.home.contains(&link.to_port) {
            self.arrivals.push(self.now, delay, arrival);
        } else {
            let more = self.more.of(entry).into();
            self.discard(entry);
            self.boundary.crossings.push(Crossing::Flit(
                self.now + delay,
                Arrival { entry: NONE, ..arrival },
                flit,
                more,
            ));
        }
        flit.tag.tail()
    }

    /// What the journal, busy links and waves want to know of a flit that is sent.
    fn note_sent(&mut self, (port, vc): (u32, u8), entry: u32, flit: Flit) {
        let channel = port << self.vc_shift | u32::from(vc);
        self.note(channel as usize, entry, crate::FlitEvent::Sent { from: None });
        if let Some(busy) = self.busy.get_mut(port as usize)
            && busy.cycles_per_flit > 1
        {
            busy.until = self.now + u64::from(busy.cycles_per_flit);
        }
        if let Some(capture) = &mut self.capture
            && capture.traced[port as usize]
        {
            capture.channels.push(channel);
            capture.sent.push(port);
            capture.last[port as usize] = (self.now, flit);
            if self.more.each > 0 {
                capture.more[port as usize] = self.more.of(entry).into();
            }
        }
    }

    /// Lets the packet with owner number `owner` hold channel `vc` of system-wide port `port`; 0 frees it.
    #[inline(always)]
    pub fn hold<const OBS: u8>(&mut self, side: &mut [Port], port: u32, vc: u8, owner: u16) {
        channel_mut(side, vc).owner = owner;
        let vc_masks = &mut side[0].vc_masks;
        vc_masks.free = vc_masks.free & !(1 << vc) | u32::from(owner == 0) << vc;
        if OBS == WATCHED
            && let Some(capture) = &mut self.capture
            && capture.traced[port as usize]
        {
            capture.channels.push(port << self.vc_shift | u32::from(vc));
        }
    }

    /// The observers of single events in this cycle; see [`Flow::observers`].
    pub(super) fn present_observers(&self) -> u8 {
        if self.journal.is_some() || self.busy.len() > 0 {
            return WATCHED;
        }
        (if self.monitored { CHECKED } else { UNOBSERVED }) | if self.boundary.divided { DIVIDED } else { 0 }
    }

    /// Whether all links take a flit in every cycle.
    #[inline]
    pub fn is_never_busy(&self) -> bool {
        self.busy.len() == 0
    }

    /// Whether a port's link would be free in cycle `cycle`, if it took a flit now.
    pub fn is_free_by(&self, port: u32, cycle: Cycle) -> bool {
        self.busy.get(port as usize).is_none_or(|busy| self.now + u64::from(busy.cycles_per_flit) <= cycle)
    }

    /// Whether a port's link was busy at the start of this cycle, whatever has been sent in it.
    pub fn was_busy(&self, port: u32) -> bool {
        self.busy
            .get(port as usize)
            .is_some_and(|busy| busy.until > self.now && busy.until != self.now + u64::from(busy.cycles_per_flit))
    }

    /// Whether a port's link can take a flit in this cycle; or else from when on.
    #[inline]
    pub fn is_free(&self, port: u32) -> Result<(), Cycle> {
        match self.busy.get(port as usize) {
            Some(busy) if busy.until > self.now => Err(busy.until),
            _ => Ok(()),
        }
    }
}

/// A word with bit 0 of every group of 2^shift bits set.
#[inline]
pub(super) fn channel_mask(shift: u32) -> u64 {
    u64::MAX / ((1u64 << (1 << shift)) - 1).max(1)
}
