//! Why flits waited at the heads of queues, cycle by cycle (requirement H-STAT-1).
//!
//! Each cycle counts for one [`Cause`], decided by the registers at its start; the first row that holds counts:
//!
//! | the flit at the head of a switch's queue | cause |
//! |---|---|
//! | is a point-to-point packet in route computation, or in channel or switch allocation that does not decide yet; or the flit with its address has not come | stage |
//! | has a route and was given no channel; or its channel is held by another set-routed packet | channel |
//! | goes to the engine, whose slot is full: of the operands that belong to the one in front, some are not there | operands |
//! | goes to the engine, whose slot is full | engine |
//! | has a channel without a credit | credit |
//! | goes to a link that a flit sent before still occupies | link |
//! | has one of several outputs of its multicast free, and one of the others is not | output |
//! | could have left, but its input or its output served another flit | arbitration |
//!
//! A multicast of one flit waits at each of its outputs for a cause of that output's own. A flit at an end point waits
//! for its memory, or for the block that takes it there; a flit at a bump in the wire waits for its engine. Each
//! copy of a multicast of several flits waits for its own output, flit by flit: from the cycle in which the flit could
//! have been sent and the one before it had been, to the one in which it was.
//!
//! The registers that decide a cause do not change while a switch sleeps. So a waiting flit has the cause of its
//! switch's last evaluation, and the cycle in which that cause began; the cycles are added when the cause changes and
//! when the flit leaves. Of a point-to-point packet nothing is noted before it is refused something: until then it waits
//! for stages, and most packets are never refused anything. Cycles of stages are what is left of all that a port counts.
//! Link monitors keep these counts; without monitors there are none.

use super::PortSet;
use std::collections::BTreeMap;
use watershed_kernel::Cycle;

/// What a flit at the head of a queue waited for in a cycle; see the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, watershed_state::Saved)]
#[repr(u8)]
pub enum Cause {
    /// No credit.
    Credit,
    /// Another flit went first.
    Arbitration,
    /// No virtual channel.
    Channel,
    /// The link is busy with a flit.
    Link,
    /// The engine's slot is full.
    Engine,
    /// So it is, for want of other operands.
    Operands,
    /// Another output of the multicast is blocked.
    Output,
    /// The claim of the links is held by another collective.
    Claim,
    /// A stage of the pipeline.
    Stage,
    /// The end point has not taken it: its memory is busy.
    Memory,
}

impl Cause {
    /// All of them, in the order of [`WaitCycles`].
    pub const ALL: [Cause; 10] = [
        Cause::Credit,
        Cause::Arbitration,
        Cause::Channel,
        Cause::Link,
        Cause::Engine,
        Cause::Operands,
        Cause::Output,
        Cause::Claim,
        Cause::Stage,
        Cause::Memory,
    ];

    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Credit => "no_credit",
            Cause::Arbitration => "lost_arbitration",
            Cause::Channel => "no_virtual_channel",
            Cause::Link => "link_busy",
            Cause::Engine => "engine_full",
            Cause::Operands => "operands_missing",
            Cause::Output => "other_output_blocked",
            Cause::Claim => "claim_held",
            Cause::Stage => "pipeline_stage",
            Cause::Memory => "memory",
        }
    }
}

/// Cycles by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct WaitCycles([u64; Cause::ALL.len()]);

impl WaitCycles {
    /// Cycles of a cause.
    pub fn of(&self, cause: Cause) -> u64 {
        self.0[cause as usize]
    }

    /// All causes together.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Adds cycles of a cause.
    #[inline]
    pub fn add(&mut self, cause: Cause, cycles: u64) {
        self.0[cause as usize] += cycles;
    }

    /// What came after an earlier count.
    #[must_use]
    pub fn since(&self, before: &WaitCycles) -> WaitCycles {
        let mut rest = *self;
        rest.0.iter_mut().zip(before.0).for_each(|(sum, before)| *sum -= before);
        rest
    }

    /// Adds those of another.
    pub fn add_all(&mut self, other: &WaitCycles) {
        for (sum, cycles) in self.0.iter_mut().zip(other.0) {
            *sum += cycles;
        }
    }
}

/// Cycles that flits waited at the heads of queues, by where they went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct HeadWaits {
    /// Out of queues of switches, onto links.
    pub links: WaitCycles,
    /// Out of queues of switches, into the engines behind them.
    pub engines: WaitCycles,
    /// Out of queues of end points and of engines in the wire, into these.
    pub blocks: WaitCycles,
}

/// Where a flit goes that leaves a queue of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HopTarget {
    /// Onto a link.
    Link,
    /// Into the engine of the switch.
    Engine,
}

impl HeadWaits {
    /// What came after an earlier count.
    #[must_use]
    pub fn since(&self, before: &HeadWaits) -> HeadWaits {
        HeadWaits {
            links: self.links.since(&before.links),
            engines: self.engines.since(&before.engines),
            blocks: self.blocks.since(&before.blocks),
        }
    }
}

/// A flit that waits: since when for what, and what it has waited for before. What is mostly asked for stands in front, in one line of
/// the cache: point-to-point packets wait for the first causes.
#[derive(Clone, Copy, Debug, Default, watershed_state::Saved)]
#[repr(C, align(32))]
struct OpenWait {
    since: Cycle,
    cause: Option<Cause>,
    /// The causes that it waited for, a bit each: the only cycles of `before` that count.
    causes: u16,
    before: WaitCycles,
}

impl OpenWait {
    /// It waits for `cause` in the cycle `now`.
    #[inline]
    fn note(&mut self, now: Cycle, cause: Cause) {
        if self.cause != Some(cause) {
            self.account_wait(now);
            self.cause = Some(cause);
        }
    }

    /// It is refused something in the cycle `now`, for `cause`. From a channel to the request for a crossing it is `stage` cycles.
    #[inline]
    fn note_refusal(&mut self, (now, stage): (Cycle, u8), cause: Cause) {
        if self.cause != Some(cause) {
            self.account_wait(self.refused_until(now, stage));
            (self.since, self.cause) = (now, Some(cause));
        }
    }

    /// The first cycle in which it was no longer refused what it was refused last: `now`, or when it got its channel.
    #[inline]
    fn refused_until(&self, now: Cycle, stage: u8) -> Cycle {
        now - if self.cause == Some(Cause::Channel) { u64::from(stage) } else { 0 }
    }

    /// It waits for `cause` in the cycle `now`, and what it waited for before that is not noted.
    #[inline]
    fn begin(&mut self, now: Cycle, cause: Cause) {
        (self.since, self.cause, self.causes) = (now, Some(cause), 0);
    }

    /// Adds the cycles up to `now` to the present cause.
    #[inline]
    fn account_wait(&mut self, now: Cycle) {
        if let Some(cause) = self.cause {
            let cycles = &mut self.before.0[cause as usize];
            let known = self.causes >> cause as u8 & 1;
            *cycles = *cycles * u64::from(known) + (now - self.since);
            self.causes |= 1 << cause as u8;
        }
        self.since = now;
    }

    /// It leaves: its cycles go to those of its port. Most flits have waited for one or two causes. Returns how many cycles were noted.
    #[inline]
    fn leave(&mut self, now: Cycle, port: &mut WaitCycles) -> u64 {
        let Some(cause) = self.cause.take() else { return 0 };
        let mut noted = now - self.since;
        port.add(cause, noted);
        while self.causes != 0 {
            let cause = self.causes.trailing_zeros() as usize;
            port.0[cause] += self.before.0[cause];
            noted += self.before.0[cause];
            self.causes &= self.causes - 1;
        }
        noted
    }

    /// The same; by an engine's port, its cycles go to those of engines, too.
    fn leave_by(&mut self, port: &mut WaitCycles, engines: Option<&mut WaitCycles>, now: Cycle) {
        let before = *port;
        self.leave(now, port);
        if let Some(engines) = engines {
            engines.add_all(&port.since(&before));
        }
    }
}

/// The registers of an output channel at the start of the cycle in which a flit left by it.
#[derive(Clone, Copy, Debug, Default, watershed_state::Saved)]
struct ChannelSnapshot {
    cycle: Cycle,
    /// The port, over the whole system.
    port: u32,
    vc: u8,
    owner: u16,
    credits: u16,
}

/// Queues of a word, a bit each, by what was refused to the packets at their heads when their switch was last looked at. What they wait
/// for is noted.
#[derive(Clone, Copy, Debug, Default, watershed_state::Saved)]
pub(super) struct Refusals {
    /// Something.
    pub any: u64,
    /// Of these, a channel.
    pub channel: u64,
    /// Of these, a crossing of the switch, for want of a credit.
    pub credit: u64,
}

/// Ports of a page.
const PAGE: usize = 64;

/// The counts of the ports of a part of a system. But for queues, 24 bytes a port, memory follows the ports at which anything ever waited.
#[derive(Clone, Debug, watershed_state::Saved)]
pub(super) struct Waits {
    /// The first port of the part.
    first: u32,
    pages: Vec<Option<Page>>,
    /// Flits that wait, by their entry in the pool.
    open: Vec<OpenWait>,
    /// Multicasts of one flit that wait: entry in the pool and output.
    copies: BTreeMap<(u32, u16), OpenWait>,
    /// By first port of a switch, and word of its queues.
    refusals: Vec<Refusals>,
    /// By output of a switch: what was there before this cycle's flit.
    before: Vec<ChannelSnapshot>,
    /// Of all these, into engines.
    engines: WaitCycles,
    /// The same, out of queues of blocks that are no switches.
    blocks: WaitCycles,
    /// Cycles that flits waited before they went to an engine, counted when they go.
    pub engine_waited: u64,
}

/// What flits waited for that left by a port; of a port, too, what is asked for stands in front.
#[derive(Clone, Copy, Debug, Default, watershed_state::Saved)]
#[repr(C, align(32))]
struct PortWaits {
    /// Of the cycles that are counted at the port: those of set-routed flits, and those that have a cause of packets that were refused
    /// something. All others are those of stages.
    apart: u64,
    causes: WaitCycles,
}

/// Cycles of the ports of a page.
type Page = Box<[PortWaits; PAGE]>;

#[cold]
fn empty_page() -> Page {
    Box::new([PortWaits::default(); PAGE])
}

/// The cycles of a port, which is counted from the first one.
#[inline]
fn page(pages: &mut [Option<Page>], port: u32) -> &mut PortWaits {
    let at = port as usize;
    let page = pages[at / PAGE].get_or_insert_with(empty_page);
    &mut page[at % PAGE]
}

impl Waits {
    /// For this many ports from `first` on.
    pub fn new(first: u32, ports: usize) -> Waits {
        Waits {
            first,
            pages: vec![None; ports.div_ceil(PAGE)],
            open: Vec::new(),
            copies: BTreeMap::new(),
            refusals: vec![Refusals::default(); ports],
            before: Vec::new(),
            engines: WaitCycles::default(),
            blocks: WaitCycles::default(),
            engine_waited: 0,
        }
    }

    /// What the flit in the pool's `entry` waits for; the list grows with the pool.
    #[inline]
    fn open_wait(&mut self, entry: u32) -> &mut OpenWait {
        let at = entry as usize;
        if at >= self.open.len() {
            self.open.resize(at + 1, OpenWait::default());
        }
        &mut self.open[at]
    }

    /// The flit in the pool's `entry`, which has one output, waits for `cause` in the cycle `now`.
    #[inline]
    pub fn note(&mut self, entry: u32, now: Cycle, cause: Cause) {
        self.open_wait(entry).note(now, cause);
    }

    /// The packet in the pool's `entry` waits for `cause` in the cycle `now`. It is the first thing that it is refused.
    #[inline]
    pub fn note_first(&mut self, entry: u32, now: Cycle, cause: Cause) {
        self.open_wait(entry).begin(now, cause);
    }

    /// The packet in the pool's `entry`, which was refused something before, is refused something in the cycle `now`, for `cause`. If that
    /// is a crossing, and before it was a channel, the packet asked for the crossing `stage` cycles after it got the channel.
    #[inline]
    pub fn note_refusal(&mut self, entry: u32, (now, stage): (Cycle, u8), cause: Cause) {
        self.open[entry as usize].note_refusal((now, stage), cause);
    }

    /// Word `w` of the queues of the switch the first port of which is `base`. A switch has no more words of queues than ports.
    #[inline(always)]
    pub fn refusals(&mut self, base: u32, w: usize) -> &mut Refusals {
        &mut self.refusals[(base - self.first) as usize + w]
    }

    /// The outputs of the waiting flit in the pool's `entry`, before its causes are noted or counted: a table that is written
    /// anew gives it others, and what it has waited for so far counts at each of these. Of several old outputs the causes of the
    /// first one count *chosen*: a flit of one packet waited as long at all of them, and often for another cause.
    pub fn set_outputs<const W: usize>(&mut self, entry: u32, outs: &PortSet<W>) {
        let at = entry as usize;
        let is_one = outs.len() == 1;
        let waits_for_one = self.open.get(at).is_some_and(|open| open.cause.is_some());
        let is_new = !waits_for_one && self.copies.is_empty();
        if is_new || is_one && waits_for_one {
            return;
        }
        let copies = self.copies.range((entry, 0)..=(entry, u16::MAX));
        let before: Vec<u16> = copies.map(|(&(_, out), _)| out).collect();
        let mut so_far = before.first().map(|&out| self.copies[&(entry, out)]);
        if !is_one && waits_for_one {
            so_far = Some(std::mem::take(&mut self.open[at]));
        }
        let Some(so_far) = so_far else { return };
        for &out in before.iter().filter(|&&out| is_one || !outs.contains(out)) {
            self.copies.remove(&(entry, out));
        }
        if is_one {
            self.open.resize(self.open.len().max(at + 1), OpenWait::default());
            self.open[at] = so_far;
        } else {
            for out in outs {
                self.copies.entry((entry, out)).or_insert(so_far);
            }
        }
    }

    /// The same of a flit with several outputs, at one of them.
    pub fn note_copy(&mut self, (entry, out): (u32, u16), now: Cycle, cause: Cause) {
        self.copies.entry((entry, out)).or_default().note(now, cause);
    }

    /// The flit in the pool's `entry`, which had to wait and has one output, leaves by port `port`.
    pub fn leave(&mut self, entry: u32, port: u32, to: HopTarget, now: Cycle) {
        if let Some(open) = self.open.get_mut(entry as usize) {
            let engines = (to == HopTarget::Engine).then_some(&mut self.engines);
            open.leave_by(&mut page(&mut self.pages, port - self.first).causes, engines, now);
        }
    }

    /// The same of a flit with several outputs, for one of them.
    pub fn leave_copy(&mut self, copy: (u32, u16), port: u32, to: HopTarget, now: Cycle) {
        if let Some(mut open) = self.copies.remove(&copy) {
            let engines = (to == HopTarget::Engine).then_some(&mut self.engines);
            open.leave_by(&mut page(&mut self.pages, port - self.first).causes, engines, now);
        }
    }

    /// The packet in the pool's `entry`, of which is noted what it waits for, leaves queue `local` of the switch the first port of which
    /// is `base`, by port `port` onto a link. It waited for `waited` cycles: for stages in all of them in which it was refused nothing,
    /// which are the last `stage` ones if it was refused nothing but a channel.
    #[inline(never)]
    pub fn leave_packet(
        &mut self,
        (entry, waited): (u32, u64),
        (base, local): (u32, usize),
        port: u32,
        (now, stage): (Cycle, u8),
    ) {
        let at = port - self.first;
        self.refusals(base, local >> 6).any &= !(1 << (local & 63));
        let open = &mut self.open[entry as usize];
        let port = page(&mut self.pages, at);
        let noted = open.leave(open.refused_until(now, stage), &mut port.causes);
        debug_assert!(noted <= waited, "a packet waited {waited} cycles, and {noted} have a cause");
        port.apart += noted;
    }

    /// A set-routed flit left by port `port`, and had waited this many cycles.
    pub fn count_apart(&mut self, port: u32, waited: u64) {
        if waited > 0 {
            page(&mut self.pages, port - self.first).apart += waited;
        }
    }

    /// A block that is no switch takes a flit that waited for this many cycles in the queue of a port.
    pub fn taken(&mut self, port: u32, cause: Cause, waited: u64) {
        page(&mut self.pages, port - self.first).causes.add(cause, waited);
        self.blocks.add(cause, waited);
    }

    /// Keeps the registers of an output channel before a flit leaves by it.
    #[inline]
    pub fn snapshot_output(&mut self, out: u16, port: u32, vc: u8, (owner, credits): (u16, u16), cycle: Cycle) {
        let at = usize::from(out);
        if at >= self.before.len() {
            self.before.resize(at + 1, ChannelSnapshot { cycle: Cycle::MAX, ..ChannelSnapshot::default() });
        }
        self.before[at] = ChannelSnapshot { cycle, port, vc, owner, credits };
    }

    /// Owner and credits of a channel as they were at the start of the cycle, if a set-routed flit has left by its port since; of
    /// another channel than that flit's they are what they were.
    #[inline]
    pub fn at_start(&self, out: u16, port: u32, vc: u8, (owner, credits): (u16, u16), now: Cycle) -> (u16, u16, bool) {
        match self.before.get(usize::from(out)) {
            Some(before) if (before.cycle, before.port) == (now, port) => {
                if before.vc == vc {
                    (before.owner, before.credits, true)
                } else {
                    (owner, credits, true)
                }
            }
            _ => (owner, credits, false),
        }
    }

    /// What flits waited for that left by a port of a switch, its engine's among them, or that a block took from one: `waited` is what the
    /// port [counts](super::LinkCount::waited).
    pub fn of_port(&self, port: u32, waited: u64) -> WaitCycles {
        let at = (port - self.first) as usize;
        let PortWaits { apart, mut causes } =
            self.pages[at / PAGE].as_ref().map_or_else(PortWaits::default, |page| page[at % PAGE]);
        causes.add(Cause::Stage, waited - apart);
        causes
    }

    /// What they all waited for, by where they went: `waited` is what all ports count.
    pub fn all(&self, waited: u64) -> HeadWaits {
        let (mut links, mut apart) = (WaitCycles::default(), 0);
        for port in self.pages.iter().flatten().flat_map(|page| page.iter()) {
            links.add_all(&port.causes);
            apart += port.apart;
        }
        links.add(Cause::Stage, waited - apart);
        let (engines, blocks) = (self.engines, self.blocks);
        HeadWaits { links: links.since(&engines).since(&blocks), engines, blocks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_go_to_the_cause_that_held_until_it_changed() {
        let mut waits = Waits::new(100, 70);
        for (now, cause) in [(10, Cause::Credit), (11, Cause::Credit), (14, Cause::Arbitration), (15, Cause::Credit)] {
            waits.note(5, now, cause);
        }
        waits.leave(5, 169, HopTarget::Link, 21);
        let count = waits.of_port(169, 0);
        assert_eq!((count.of(Cause::Credit), count.of(Cause::Arbitration), count.total()), (10, 1, 11));
        // The entry's next flit begins anew.
        waits.note(5, 30, Cause::Link);
        waits.leave(5, 101, HopTarget::Engine, 31);
        assert_eq!((waits.all(0).links.total(), waits.all(0).engines.total()), (11, 1));
        assert_eq!((waits.of_port(101, 0).of(Cause::Link), waits.of_port(101, 0).total()), (1, 1));
        assert_eq!(waits.of_port(169, 0).total(), 11);
    }

    #[test]
    fn packets_wait_for_stages_but_for_what_they_were_refused() {
        let mut waits = Waits::new(10, 8);
        let counts = |waits: &Waits, port: u32, waited: u64| {
            let count = waits.of_port(port, waited);
            [Cause::Stage, Cause::Channel, Cause::Credit, Cause::Arbitration].map(|cause| count.of(cause))
        };
        // Never refused anything.
        assert_eq!((counts(&waits, 10, 4), waits.of_port(10, 4).total()), ([4, 0, 0, 0], 4));
        // Two cycles of stages, three without a channel, one more stage, four without a credit, one lost.
        waits.note_first(5, 102, Cause::Channel);
        *waits.refusals(12, 1) = Refusals { any: 1 << 6 | 1 << 7, channel: 1 << 6, credit: 0 };
        for (now, cause) in
            [(104, Cause::Channel), (105, Cause::Stage), (106, Cause::Credit), (110, Cause::Arbitration)]
        {
            waits.note(5, now, cause);
        }
        waits.leave_packet((5, 11), (12, 70), 11, (111, 1));
        // Packets of other queues had nothing to do with it: two left by this port.
        assert_eq!(waits.refusals(12, 1).any, 1 << 7);
        assert_eq!((counts(&waits, 11, 15), waits.of_port(11, 15).total()), ([7, 3, 4, 1], 15));
        // Refused in the first cycle; the entry's packet before it left nothing behind.
        waits.note_first(5, 200, Cause::Credit);
        waits.leave_packet((5, 2), (12, 3), 12, (202, 1));
        assert_eq!((counts(&waits, 12, 2), waits.of_port(12, 2).total()), ([0, 0, 2, 0], 2));
        // Two cycles without a channel, then one between channel and crossing, which is a stage; and one more, without a credit.
        waits.note_first(5, 300, Cause::Channel);
        waits.leave_packet((5, 3), (12, 3), 14, (303, 1));
        assert_eq!(counts(&waits, 14, 3), [1, 2, 0, 0]);
        waits.note_first(5, 310, Cause::Channel);
        waits.note_refusal(5, (313, 1), Cause::Credit);
        waits.leave_packet((5, 4), (12, 3), 15, (314, 1));
        assert_eq!(counts(&waits, 15, 4), [1, 2, 1, 0]);
        // Another packet left by the first port; and a set-routed flit by the next one, whose cause is missing.
        assert_eq!(counts(&waits, 10, 5), [5, 0, 0, 0]);
        waits.count_apart(13, 3);
        assert_eq!(waits.of_port(13, 3).total(), 0);
        let all = waits.all(5 + 15 + 2 + 3 + 3 + 4).links;
        assert_eq!((all.of(Cause::Stage), all.total()), (14, 29));
    }

    #[test]
    fn copies_wait_for_causes_of_their_own() {
        let mut waits = Waits::new(0, 8);
        waits.note_copy((7, 1), 3, Cause::Credit);
        waits.note_copy((7, 2), 3, Cause::Output);
        waits.note_copy((7, 2), 5, Cause::Arbitration);
        for out in [1, 2] {
            waits.leave_copy((7, out), u32::from(out), HopTarget::Link, 6);
        }
        assert_eq!((waits.of_port(1, 0).of(Cause::Credit), waits.of_port(1, 0).total()), (3, 3));
        assert_eq!((waits.of_port(2, 0).of(Cause::Output), waits.of_port(2, 0).of(Cause::Arbitration)), (2, 1));
        assert!(waits.copies.is_empty());
    }

    #[test]
    fn cycles_follow_a_flit_to_other_outputs() {
        let set = |outs: &[u16]| outs.iter().copied().collect::<PortSet<1>>();
        let mut waits = Waits::new(0, 8);
        let note = |waits: &mut Waits, outs: &[u16], now| {
            waits.set_outputs(7, &set(outs));
            match *outs {
                [_] => waits.note(7, now, Cause::Engine),
                _ => outs.iter().for_each(|&out| waits.note_copy((7, out), now, Cause::Credit)),
            }
        };
        // Two outputs, one of them and another, a single one, two again: whole at each of the last ones.
        for (outs, now) in [(&[1, 2][..], 10), (&[2, 3], 14), (&[4], 20), (&[5, 6], 27)] {
            note(&mut waits, outs, now);
        }
        // In the cycle in which it leaves it has an output more.
        waits.set_outputs(7, &set(&[3, 5, 6]));
        for out in [3, 5, 6] {
            waits.leave_copy((7, out), u32::from(out), HopTarget::Link, 30);
            let count = waits.of_port(u32::from(out), 0);
            assert_eq!((count.of(Cause::Credit), count.of(Cause::Engine), count.total()), (13, 7, 20), "output {out}");
        }
        assert!(waits.copies.is_empty() && (1..=2).all(|port| waits.of_port(port, 0).total() == 0));
        // From several to one in the cycle in which it leaves; nothing is left for the entry's next flit.
        note(&mut waits, &[1, 2], 40);
        waits.set_outputs(7, &set(&[4]));
        waits.leave(7, 4, HopTarget::Engine, 45);
        assert_eq!((waits.of_port(4, 0).of(Cause::Credit), waits.all(0).engines.total()), (5, 5));
        note(&mut waits, &[1, 2], 50);
        waits.set_outputs(7, &set(&[1, 2]));
        for out in [1, 2] {
            waits.leave_copy((7, out), u32::from(out), HopTarget::Link, 51);
        }
        assert_eq!((waits.of_port(1, 0).total(), waits.of_port(2, 0).total(), waits.copies.len()), (1, 1, 0));
    }

    #[test]
    fn of_several_old_outputs_the_first_ones_causes_count() {
        let set = |outs: &[u16]| outs.iter().copied().collect::<PortSet<1>>();
        for outs in [&[4][..], &[5, 6]] {
            let mut waits = Waits::new(0, 8);
            waits.note_copy((7, 1), 10, Cause::Credit);
            waits.note_copy((7, 2), 10, Cause::Output);
            waits.set_outputs(7, &set(outs));
            for &out in outs {
                match outs.len() {
                    1 => waits.leave(7, 4, HopTarget::Link, 13),
                    _ => waits.leave_copy((7, out), u32::from(out), HopTarget::Link, 13),
                }
                let count = waits.of_port(u32::from(out), 0);
                assert_eq!((count.of(Cause::Credit), count.total()), (3, 3), "{outs:?}");
            }
        }
    }

    #[test]
    fn flits_of_other_entries_keep_their_cycles() {
        let set = |outs: &[u16]| outs.iter().copied().collect::<PortSet<1>>();
        let mut waits = Waits::new(0, 8);
        for entry in [6, 7, 8] {
            waits.set_outputs(entry, &set(&[1, 2]));
            for out in [1, 2] {
                waits.note_copy((entry, out), 10, Cause::Credit);
            }
        }
        waits.set_outputs(7, &set(&[3]));
        waits.leave(7, 3, HopTarget::Link, 12);
        assert_eq!(waits.copies.keys().copied().collect::<Vec<_>>(), [(6, 1), (6, 2), (8, 1), (8, 2)]);
        assert_eq!(waits.of_port(3, 0).total(), 2);
    }

    #[test]
    fn the_start_of_a_cycle_is_remembered_for_that_cycle_only() {
        let mut waits = Waits::new(0, 8);
        waits.snapshot_output(3, 3, 1, (0, 5), 40);
        assert_eq!(waits.at_start(3, 3, 1, (9, 4), 40), (0, 5, true));
        assert_eq!(waits.at_start(3, 3, 0, (9, 4), 40), (9, 4, true), "another channel");
        assert_eq!(waits.at_start(3, 11, 1, (9, 4), 40), (9, 4, false), "another switch");
        assert_eq!(waits.at_start(3, 3, 1, (9, 4), 41), (9, 4, false), "another cycle");
        assert_eq!(waits.at_start(6, 6, 1, (9, 4), 40), (9, 4, false));
    }

    #[test]
    fn causes_are_numbered_in_their_order() {
        for (number, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, number);
        }
    }
}
