//! Link-layer replay: a link that keeps frames until the far side acknowledges them (`[link.reliability]`).
//!
//! ```text
//!            transmitter                              wire                             receiver
//!  0 ──▶ number, CRC, replay buffer ──▶ frames: a flit a cycle ──▶ whole? CRC? number? ──▶ frames that wait ──▶ 1
//!             ▲   go back, free        faults strike here                    │
//!             └──────────────── acknowledgements: a flit each ◀──────────────┘                  the same backwards
//! ```
//!
//! | parameter | default | unit, range | effect on cycles | effect on storage |
//! |---|---|---|---|---|
//! | [`Reliability::replay_frames`] | 8 | frames a channel and direction, from 1 | fewer than the round trip needs: the link idles | a frame each |
//! | [`Reliability::receive_frames`] | 4 | frames a channel and direction, from 1 | the credits of the transmitter | a frame each |
//! | [`Reliability::wire_cycles`] | the link's latency | cycles, from 1 | from either end of the link to the other | - |
//! | [`Reliability::timeout_cycles`] | round trip and a full buffer | cycles | without an acknowledgement for this long the oldest frame is sent again | a counter |
//! | [`Reliability::attempts`] | 8 | | time-outs in a row without any answer after which the oldest frame is given up | a counter |
//!
//! **Rules.** Each channel of each direction is a link of its own *chosen*, so that a blocked channel holds up no
//! other; they share the wire, the highest channel first. Frames are numbered as they come in. The receiver accepts a
//! frame whose CRC is right and whose number is the next one. An older number is a duplicate, which is removed. A newer
//! number shows that a frame is lost; it and a damaged frame cause one negative acknowledgement, and the transmitter
//! sends the missing frame and all after it again (go-back-N). An acknowledgement carries the next number and the count
//! of frames that have left the receiver, both since the beginning, so that a lost acknowledgement only costs time.
//!
//! **Credits.** A frame may leave while fewer than `receive_frames` before it are in the receiver. After a time-out the
//! oldest unacknowledged frame may leave without a credit, to get an answer from the receiver. A receiver without room
//! answers and keeps nothing.
//!
//! **A dead link** answers nothing. After [`Reliability::attempts`] time-outs the oldest frame is given up, so that the
//! frames behind it move on. Each frame names the oldest frame that can still come, and the receiver goes on from
//! there. A frame that is given up is lost, as without this layer, and the protocol above has to recover.
//!
//! Timing: a flit that comes to the head of the transmitter's queue in cycle t is on the wire in t, and at the receiver
//! in t + `wire_cycles`. The receiver checks whole frames: the head leaves in the cycle in which the tail arrives, a
//! frame's length after its own arrival. An acknowledgement takes a flit's time on the wire of the other direction,
//! before any frame.
//!
//! Limitations: numbers are wide enough never to wrap (hardware needs the next power of two above both buffers); faults other
//! than a dead link strike frames, not acknowledgements.
//!
//! ```
//! use watershed_fabric::fault::{Effect, Fault, FaultyLink, LinkLayer};
//! use watershed_fabric::replay::Reliability;
//! # use watershed_fabric::bench::NoTables;
//! # use watershed_fabric::fault::{View, Direction};
//! # use watershed_fabric::{Bench, Block, Flit, Io, Vcs};
//! # use watershed_kernel::{Rng, Wake};
//! # struct Link(FaultyLink);
//! # struct Frames;
//! # impl View for Frames {
//! #     fn direction(&self, _: u16, _: &Flit) -> Option<Direction> { Some(Direction::Up) }
//! #     fn damage(&self, _: &Flit, _: &mut Rng) -> (u16, u16) { (0, 0) }
//! # }
//! # impl Block for Link {
//! #     type Tables = NoTables;
//! #     fn tick(&mut self, io: &mut Io<'_>, _: &NoTables) -> Wake { self.0.tick(io, &Frames) }
//! #     fn open(&self) -> Option<String> { self.0.open() }
//! #     fn probe(&self, scope: &mut watershed_probe::Scope<'_>) { self.0.probe(scope) }
//! # }
//!
//! // The second of three frames is lost on the wire: it and the one behind it are sent again.
//! let direction = Direction::Both;
//! let fault = Fault { effect: Effect::Drop, direction, threshold: u64::MAX, nth: Some(1), id: None, from: 0, until: u64::MAX };
//! let reliability = Reliability {
//!     replay_frames: 8,
//!     receive_frames: 4,
//!     wire_cycles: 3,
//!     cycles_per_flit: 1,
//!     timeout_cycles: 40,
//!     attempts: 8,
//! };
//! let layer = LinkLayer { sequence_check: true, reliability: Some(reliability) };
//! let link = FaultyLink::new(vec![fault], layer, 1, 0);
//! let frames = (0..3).map(|number| (10 + number, 0, Flit::collective(0, 0, number, 7 + number)));
//! let mut bench = Bench::<_, _, 1>::in_the_wire(Link(link), NoTables, Vcs { set: 1, unicast: 0 }, frames);
//! while bench.tick() {}
//! let left: Vec<_> = bench.sent().iter().map(|(cycle, _, flit)| (*cycle, flit.word)).collect();
//! assert_eq!(left, [(13, 7), (21, 8), (22, 9)]);
//! ```

use std::collections::VecDeque;

use super::crc::crc32;
use super::fault::{Faults, FrameAction, View};
use super::{Io, WideFlit};
use watershed_kernel::{Cycle, Wake};

/// Parameters of link-layer replay; see the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Reliability {
    /// Frames a transmitter keeps.
    pub replay_frames: u16,
    /// Frames a receiver holds.
    pub receive_frames: u16,
    /// Cycles from one end of the link to the other.
    pub wire_cycles: u64,
    /// Cycles a flit takes on the wire.
    pub cycles_per_flit: u64,
    /// Cycles without an acknowledgement after which a transmitter goes back.
    pub timeout_cycles: u64,
    /// Time-outs in a row with nothing heard after which a frame is given up.
    pub attempts: u32,
}

/// A frame in the replay buffer.
#[derive(Clone, Debug, watershed_state::Saved)]
struct BufferedFrame {
    number: u64,
    flits: Vec<WideFlit>,
    whole: bool,
}

/// A flit of a frame with its sequence number.
#[derive(Clone, Debug, watershed_state::Saved)]
struct SequencedFlit {
    flit: WideFlit,
    number: u64,
    /// The oldest number that can still come.
    oldest: u64,
    /// At the tail.
    crc: u32,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
struct Ack {
    vc: u8,
    /// The next number the receiver wants.
    next: u64,
    /// Frames that have left it.
    freed: u64,
    /// Something came that it could not use.
    negative: bool,
}

/// The sending end of a channel.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
struct Transmitter {
    kept: VecDeque<BufferedFrame>,
    /// Numbers given so far.
    numbered: u64,
    /// Place in the buffer of the frame that is being sent, and its flits that were.
    at: usize,
    flits: usize,
    /// The fault decided for the frame that is being sent.
    action: FrameAction,
    /// The far side's state as it said last.
    freed: u64,
    deadline: Option<Cycle>,
    silent: u32,
    /// The next number that was never sent.
    fresh: u64,
    /// Nothing arrives before this cycle: a frame before was delayed.
    held: Cycle,
}

/// The receiving end of a channel.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
struct Receiver {
    coming: Vec<WideFlit>,
    next: u64,
    waiting: VecDeque<Vec<WideFlit>>,
    left: usize,
    freed: u64,
    /// It has something to answer.
    owes: bool,
    negative: bool,
    /// A negative answer was given for this number already.
    asked: Option<u64>,
}

/// One channel of one direction.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
struct Lane {
    transmitter: Transmitter,
    wire: VecDeque<(Cycle, SequencedFlit)>,
    receiver: Receiver,
}

/// What the link did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct ReplayCounts {
    /// Frames sent again.
    pub replayed: u64,
    /// Frames the receiver had already.
    pub duplicates_removed: u64,
    /// Frames given up.
    pub given_up: u64,
    /// Acknowledgements, negative ones included.
    pub acknowledgements: u64,
}

/// A link that replays.
#[derive(Clone, Debug, watershed_state::Saved)]
pub struct Replay {
    cfg: Reliability,
    lanes: Vec<Lane>,
    /// Acknowledgements under way, by the direction they travel in.
    answers: [VecDeque<(Cycle, Ack)>; 2],
    /// From when on the wire of a direction is free.
    free: [Cycle; 2],
    counts: ReplayCounts,
    /// When a frame last came in, reached the far side, left it, or was given up.
    progress: Cycle,
}

fn crc(flits: &[WideFlit]) -> u32 {
    let bytes: Vec<u8> = flits.iter().flat_map(WideFlit::words).flat_map(u64::to_be_bytes).collect();
    crc32(&bytes)
}

impl Replay {
    /// A link with nothing on it.
    pub fn new(cfg: Reliability) -> Replay {
        let answers = [const { VecDeque::new() }; 2];
        Replay { cfg, lanes: Vec::new(), answers, free: [0; 2], counts: ReplayCounts::default(), progress: 0 }
    }

    /// What it did.
    pub fn counts(&self) -> &ReplayCounts {
        &self.counts
    }

    /// Whether a frame is in it.
    pub fn is_busy(&self) -> bool {
        self.lanes.iter().any(|lane| !lane.transmitter.kept.is_empty() || !lane.receiver.waiting.is_empty())
    }

    /// Whether the link may still bring a frame to its far side by itself. It repeats unacknowledged frames, and gives
    /// up after [`Reliability::attempts`] time-outs without an answer. A link whose far side answers but accepts
    /// nothing is stuck, not busy; it no longer counts after the same time without progress.
    pub fn expects(&self, now: Cycle) -> bool {
        let patience = self.cfg.timeout_cycles.saturating_mul(u64::from(self.cfg.attempts) + 2);
        self.is_busy() && now < self.progress.saturating_add(patience)
    }

    /// One clock.
    pub(super) fn tick(&mut self, io: &mut Io<'_>, faults: &mut Faults, view: &impl View) -> Wake {
        let channels = usize::from(io.vcs().total());
        if self.lanes.len() != 2 * channels {
            self.lanes = vec![Lane::default(); 2 * channels];
        }
        let now = io.now();
        let mut moved = false;
        for direction in [0usize, 1] {
            moved |= self.receive_acks(now, direction, channels);
            moved |= self.receive(io, direction, channels);
        }
        for direction in [0usize, 1] {
            moved |= self.take_in(io, direction, channels);
            moved |= self.time_out(now, direction, channels);
            moved |= self.put_on_wire(now, direction, channels, faults, view);
        }
        if moved {
            return Wake::Next;
        }
        let mut wake = [0, 1]
            .into_iter()
            .filter_map(|port| io.busy_until(port))
            .fold(Wake::OnInput, |wake, at| wake.or(Wake::At(at)));
        let mut at = |cycle: Option<Cycle>| {
            if let Some(cycle) = cycle {
                wake = wake.or(Wake::At(cycle.max(now + 1)));
            }
        };
        for lane in &self.lanes {
            at(lane.wire.front().map(|(arrival, _)| *arrival));
            at(lane.transmitter.deadline);
        }
        for direction in [0, 1] {
            at(self.answers[direction].front().map(|(arrival, _)| *arrival));
            at((self.free[direction] > now).then_some(self.free[direction]));
        }
        wake
    }

    /// Acknowledgements that come in for frames of this direction.
    fn receive_acks(&mut self, now: Cycle, direction: usize, channels: usize) -> bool {
        let mut any = false;
        while let Some(&(arrival, answer)) = self.answers[1 - direction].front()
            && arrival <= now
        {
            self.answers[1 - direction].pop_front();
            any = true;
            let transmitter = &mut self.lanes[direction * channels + usize::from(answer.vc)].transmitter;
            transmitter.silent = 0;
            transmitter.freed = transmitter.freed.max(answer.freed);
            while transmitter.kept.front().is_some_and(|kept| kept.number < answer.next && kept.whole) {
                // A frame under way to a receiver that has it already is cut short there: it has the whole one.
                transmitter.kept.pop_front();
                transmitter.forget_front();
            }
            if answer.negative && transmitter.kept.front().is_some_and(|kept| kept.number == answer.next) {
                transmitter.go_back();
            }
            transmitter.deadline = (!transmitter.kept.is_empty()).then_some(now + self.cfg.timeout_cycles);
        }
        any
    }

    /// Flits that come off the wire, and frames that leave the receiver.
    fn receive(&mut self, io: &mut Io<'_>, direction: usize, channels: usize) -> bool {
        let now = io.now();
        let out = 1 - direction as u16;
        let mut any = false;
        for vc in (0..channels).rev() {
            let Lane { wire, receiver, .. } = &mut self.lanes[direction * channels + vc];
            while wire.front().is_some_and(|(arrival, _)| *arrival <= now)
                && let Some((_, sent)) = wire.pop_front()
            {
                any = true;
                let tag = sent.flit.flit.tag;
                if tag.head() {
                    receiver.coming.clear();
                }
                receiver.coming.push(sent.flit);
                if tag.tail() {
                    let whole = std::mem::take(&mut receiver.coming);
                    if receiver.next < sent.oldest {
                        // What lies between was given up: it takes no room here.
                        receiver.freed += sent.oldest - receiver.next;
                        receiver.next = sent.oldest;
                    }
                    let room = receiver.waiting.len() < usize::from(self.cfg.receive_frames);
                    let sound = whole[0].flit.tag.head() && crc(&whole) == sent.crc;
                    receiver.owes = true;
                    if sound && sent.number < receiver.next {
                        self.counts.duplicates_removed += 1;
                    } else if sound && sent.number == receiver.next && room {
                        receiver.next += 1;
                        self.progress = now;
                        receiver.waiting.push_back(whole);
                    } else if (!sound || sent.number > receiver.next) && receiver.asked != Some(receiver.next) {
                        receiver.asked = Some(receiver.next);
                        receiver.negative = true;
                    }
                }
            }
            if let Some(frame) = receiver.waiting.front()
                && io.can_send(out, vc as u8)
            {
                io.send_wide(out, vc as u8, &frame[receiver.left]);
                receiver.left += 1;
                any = true;
                if receiver.left == frame.len() {
                    receiver.waiting.pop_front();
                    receiver.left = 0;
                    receiver.freed += 1;
                    receiver.owes = true;
                    self.progress = now;
                }
            }
        }
        any
    }

    /// Flits that come to the transmitter.
    fn take_in(&mut self, io: &mut Io<'_>, direction: usize, channels: usize) -> bool {
        let port = direction as u16;
        let mut any = false;
        for vc in 0..channels {
            let Some(flit) = io.head(port, vc as u8) else { continue };
            let transmitter = &mut self.lanes[direction * channels + vc].transmitter;
            if flit.tag.head() {
                if transmitter.kept.len() >= usize::from(self.cfg.replay_frames) {
                    continue;
                }
                let number = transmitter.numbered;
                transmitter.numbered += 1;
                self.progress = io.now();
                transmitter.kept.push_back(BufferedFrame { number, flits: Vec::new(), whole: false });
            }
            let wide = io.take_wide(port, vc as u8);
            let kept = transmitter.kept.back_mut().expect("a frame begins with its head");
            kept.flits.push(wide);
            kept.whole = flit.tag.tail();
            any = true;
        }
        any
    }

    /// Frames that nobody has answered for too long.
    fn time_out(&mut self, now: Cycle, direction: usize, channels: usize) -> bool {
        let mut any = false;
        for lane in &mut self.lanes[direction * channels..(direction + 1) * channels] {
            let transmitter = &mut lane.transmitter;
            if transmitter.deadline.is_none_or(|deadline| deadline > now) {
                continue;
            }
            any = true;
            transmitter.silent += 1;
            if transmitter.silent > self.cfg.attempts && transmitter.kept.front().is_some_and(|kept| kept.whole) {
                transmitter.kept.pop_front();
                transmitter.forget_front();
                transmitter.silent = 0;
                self.counts.given_up += 1;
                self.progress = now;
            }
            transmitter.go_back();
            transmitter.deadline = (!transmitter.kept.is_empty()).then_some(now + self.cfg.timeout_cycles);
        }
        any
    }

    /// One flit of this direction: an acknowledgement before a frame, a higher channel before a lower one.
    fn put_on_wire(
        &mut self,
        now: Cycle,
        direction: usize,
        channels: usize,
        faults: &mut Faults,
        view: &impl View,
    ) -> bool {
        if self.free[direction] > now {
            return false;
        }
        let cfg = self.cfg;
        for vc in (0..channels).rev() {
            let receiver = &mut self.lanes[(1 - direction) * channels + vc].receiver;
            if !std::mem::take(&mut receiver.owes) {
                continue;
            }
            let negative = std::mem::take(&mut receiver.negative);
            let answer = Ack { vc: vc as u8, next: receiver.next, freed: receiver.freed, negative };
            self.counts.acknowledgements += 1;
            self.free[direction] = now + cfg.cycles_per_flit;
            if !faults.is_dead(now) {
                self.answers[direction].push_back((now + cfg.wire_cycles, answer));
            }
            return true;
        }
        for vc in (0..channels).rev() {
            let Lane { transmitter, wire, .. } = &mut self.lanes[direction * channels + vc];
            let Some(kept) = transmitter.kept.get(transmitter.at) else { continue };
            if transmitter.flits == kept.flits.len() {
                continue;
            }
            if transmitter.flits == 0 {
                let credits = transmitter.freed + u64::from(cfg.receive_frames);
                if kept.number >= credits && (transmitter.at > 0 || transmitter.silent == 0) {
                    transmitter.deadline.get_or_insert(now + cfg.timeout_cycles);
                    continue;
                }
                transmitter.action = faults.decide(now, direction as u16, &kept.flits[0].flit, view);
                if let FrameAction::Wait(until) = transmitter.action {
                    transmitter.held = transmitter.held.max(until + cfg.wire_cycles);
                }
                if kept.number < transmitter.fresh {
                    self.counts.replayed += 1;
                }
                transmitter.fresh = transmitter.fresh.max(kept.number + 1);
                transmitter.deadline.get_or_insert(now + cfg.timeout_cycles);
            }
            let (number, oldest) = (kept.number, transmitter.kept[0].number);
            let kept = &transmitter.kept[transmitter.at];
            let mut flit = kept.flits[transmitter.flits].clone();
            let is_tail = flit.flit.tag.tail();
            let crc = if is_tail { crc(&kept.flits) } else { 0 };
            if let FrameAction::Corrupt { flit: nth, bit } = transmitter.action
                && usize::from(nth) == transmitter.flits
            {
                flit.flip(bit);
            }
            self.free[direction] = now + cfg.cycles_per_flit;
            let arrival = (now + cfg.wire_cycles).max(transmitter.held);
            if !matches!(transmitter.action, FrameAction::Swallow) {
                wire.push_back((arrival, SequencedFlit { flit, number, oldest, crc }));
            }
            transmitter.flits += 1;
            if is_tail {
                if matches!(transmitter.action, FrameAction::Duplicate) {
                    // The wire carries it twice, and is busy so long.
                    for flit in &kept.flits {
                        wire.push_back((arrival, SequencedFlit { flit: flit.clone(), number, oldest, crc }));
                    }
                    self.free[direction] += cfg.cycles_per_flit * kept.flits.len() as u64;
                }
                transmitter.action = FrameAction::Undecided;
                transmitter.flits = 0;
                transmitter.at += 1;
            }
            return true;
        }
        false
    }
}

impl Transmitter {
    /// The oldest frame has left the buffer.
    fn forget_front(&mut self) {
        if self.at > 0 {
            self.at -= 1;
        } else {
            // It was being sent again: what follows is a new frame.
            (self.flits, self.action) = (0, FrameAction::Undecided);
        }
    }

    /// Sends everything from the oldest frame on again. A frame of which a part is on the wire is begun anew: the receiver
    /// takes a head for what it is.
    fn go_back(&mut self) {
        (self.at, self.flits, self.action) = (0, 0, FrameAction::Undecided);
    }
}
