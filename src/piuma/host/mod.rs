//! Hosts that reduce in software over point-to-point messages (requirements P-HOST-1 to P-HOST-3; "Accelerating
//! Allreduce …", section "Evaluation").
//!
//! ```text
//!            ┌──────────────────────── rank ────────────────────────┐
//!            │  vector ── read ─▶ packets, then a flag ─────────────┼─▶ point-to-point channels
//!            │    ▲ merge: accesses of a word                       │
//!            │  buffer of the round ◀── write ── packets, flag ◀────┼── point-to-point channels
//!            └──────────────────────────────────────────────────────┘
//! ```
//!
//! | parameter | default | unit | effect on cycles |
//! |---|---|---|---|
//! | overhead | 0 | cycles | each round of a rank begins with it |
//! | packet words | 8 | words | words of a packet behind its header flit |
//! | merge accesses | 3 | words of memory | of each word that is merged |
//! | bandwidth of the memory | that of the core | | reads, writes and merges together |
//!
//! A round begins with the software overhead. Then the words are read from memory and sent, a flit a cycle as far as
//! memory and credits go, and after them a flag of one flit. Meanwhile words of the partner are written to memory as
//! they come. When all is sent, and the partner's words and flag are here, they are merged. A merged word costs as many
//! accesses as the job says, by default two reads and a write. Words that are only copied were written to their place when they came.
//!
//! *Chosen*: messages are written into the partner's memory, not fetched from it. Each round has a buffer of its own,
//! so a partner that is ahead need not wait. A flag costs no memory bandwidth. When memory is short, arrivals and reads
//! get alternate words. The processor itself is never the limit.
//!
//! ```
//! use std::sync::Arc;
//! use watershed_piuma::{EndExtras, End};
//! use watershed_piuma::host::schedule::{Algorithm, Schedule};
//! use watershed_piuma::host::{Host, Job};
//! use watershed_piuma::OpSelect;
//! # use watershed_fabric::{Bench, Vcs};
//! # use watershed_piuma::{Core, MemoryCfg, Registers, RegistersCfg};
//! # use watershed_fabric::routing::{Routes, Routing};
//! # use watershed_fabric::topology::Die;
//! # let routes = Routes { routing: Routing::Die(Die::default()), ends: Vec::new() };
//! # let registers = Registers::new(RegistersCfg { switches: 1, ids: 4, external_ports: 10 }, vec!["sw0".to_owned()], routes);
//! # let memory = MemoryCfg { bandwidth: None, scale: 1, read_latency: 0, write_latency: 0 };
//! # let core = Core::new(Arc::new(memory));
//!
//! // Rank 0 of two sends a vector of four words by recursive doubling: a header, the words, a flag.
//! let schedule = Schedule { algorithm: Algorithm::RecursiveDoubling, ranks: 2, words: 4 };
//! let (ends, select) = (vec![0, 1], OpSelect::default());
//! let job = Job { schedule, ends, select, overhead: 10, packet_words: 8, merge_accesses: 3, class: 0, numbers: None };
//! let mut host = Host::new(Arc::new(job), 0, vec![1, 2, 3, 4]);
//! host.release(5); // the round begins in cycle 5, with an overhead of ten cycles
//! let beside = EndExtras { hosts: vec![host], ..EndExtras::default() };
//! # let mut core = core;
//! # core.wait_for(3, false);
//! let end = End { core: Some(Box::new(core)), beside: Some(Box::new(beside)), ..End::default() };
//! let mut bench = Bench::<_, _, 1>::at_the_end(end, registers, Vcs { set: 2, unicast: 1 }, []);
//! while bench.tick() {}
//! let sent: Vec<_> = bench.sent().iter().map(|(cycle, ..)| *cycle).collect();
//! assert_eq!(sent, [15, 16, 17, 18, 19, 20]);
//! assert!(bench.block().hosts()[0].end().is_none()); // it waits for the other rank
//! ```

pub mod log;
#[doc(inline)]
pub use watershed_piuma_interface::schedule;

use super::OpSelect;
use super::core::Core;
use log::{CycleUse, Log};
use schedule::{Merge, Round, Schedule};
use std::collections::BTreeMap;
use std::sync::Arc;
use watershed_arith::{Unit, lanes_apply};
use watershed_fabric::{Flit, Io, Tag};
use watershed_kernel::{Cycle, Wake};
use watershed_probe::{EnumTable, Scope};
use watershed_state::state;

/// A software collective, as all of its ranks see it.
#[derive(Clone, Debug)]
pub struct Job {
    /// Who sends what when.
    pub schedule: Schedule,
    /// The end point of each rank.
    pub ends: Vec<u32>,
    /// The operation.
    pub select: OpSelect,
    /// Cycles of software before each round.
    pub overhead: u64,
    /// Words of a packet.
    pub packet_words: u64,
    /// Words that memory reads and writes for each word that is merged.
    pub merge_accesses: u8,
    /// What its packets are marked with.
    pub class: u16,
    /// How rounds are told apart where a rank does many things at once; else by the class alone.
    pub numbers: Option<Numbers>,
}

/// Messages of a collective among all those that its ranks receive.
#[derive(Clone, Debug)]
pub struct Numbers {
    /// What each rank calls the message of its first round; those of later rounds follow.
    pub first: Arc<[u32]>,
    /// Bits of a packet's number within its message.
    pub index_bits: u32,
}

/// What a rank did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct Counts {
    /// Rounds in which it sent or received.
    pub rounds: u64,
    /// Words that it sent.
    pub sent: u64,
    /// Words that it received.
    pub received: u64,
    /// Messages that it sent, each with a flag behind its words.
    pub messages: u64,
}

/// Bits of a packet's number within its round.
const INDEX_BITS: u32 = 20;
/// The number of a flag.
const FLAG: u64 = (1 << INDEX_BITS) - 1;

impl Job {
    /// The most words a message can have.
    pub fn longest_message(&self) -> u64 {
        FLAG * self.packet_words
    }

    /// Id and number in the tag of a packet to a rank, or of the flag.
    fn tag(&self, peer: u32, round: u32, index: Option<u64>) -> (u16, u64) {
        match &self.numbers {
            None => (self.class, u64::from(round) << INDEX_BITS | index.unwrap_or(FLAG)),
            Some(Numbers { first, index_bits }) => {
                super::rank::tag::tag(first[peer as usize] + round, *index_bits, index.unwrap_or(0))
            }
        }
    }

    /// A word made from a left and a right one, as the arithmetic does it.
    pub fn combine(&self, left: u64, right: u64) -> u64 {
        let OpSelect { op, dtype, mode } = self.select;
        match Unit::of(op, dtype, mode) {
            Some(unit) => lanes_apply(dtype, left, right, |a, b| unit.evaluate(a, b).bits),
            None => 0,
        }
    }
}

/// What a rank does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
enum State {
    Idle,
    Overhead(Cycle),
    Exchange,
    Merge,
    Done,
}

static STATES: EnumTable = EnumTable { name: "host", names: &["IDLE", "OVERHEAD", "EXCHANGE", "MERGE", "DONE"] };

/// The words received for a round.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
struct RoundBuffer {
    words: Vec<u64>,
    landed: u64,
    flag: bool,
}

/// The packet that is arriving on a channel: its round, and the place of its next word.
#[derive(Clone, Copy, Debug, Default, watershed_state::Saved)]
struct IncomingPacket {
    round: u32,
    next: u64,
}

/// A rank.
#[derive(Clone, Debug)]
pub struct Host {
    job: Arc<Job>,
    rank: u32,
    vector: Vec<u64>,
    start: Cycle,
    state: State,
    number: u32,
    round: Round,
    sent_q: u64,
    flag_sent_q: bool,
    /// Channel of the packet that is leaving.
    leaving: Option<u8>,
    next_vc: u8,
    merged_q: u64,
    /// Words that the merge of the current word has still to read or write.
    left_q: u8,
    landings: BTreeMap<u32, RoundBuffer>,
    arriving: Vec<IncomingPacket>,
    write_last_q: bool,
    end: Option<Cycle>,
    counts: Counts,
    log: Option<Box<Log>>,
}

state!(Host {
    saved: vector, start, state, number, round, sent_q, flag_sent_q, leaving, next_vc, merged_q, left_q, landings, arriving, write_last_q, end, counts, log;
    built: job, rank
});

impl Host {
    /// A rank with its vector; it starts when it is released.
    pub fn new(job: Arc<Job>, rank: u32, vector: Vec<u64>) -> Host {
        let (round, left_q) = (job.schedule.round(rank, 0), job.merge_accesses);
        Host {
            job,
            rank,
            vector,
            start: Cycle::MAX,
            state: State::Idle,
            number: 0,
            round,
            sent_q: 0,
            flag_sent_q: false,
            leaving: None,
            next_vc: 0,
            merged_q: 0,
            left_q,
            landings: BTreeMap::new(),
            arriving: Vec::new(),
            write_last_q: false,
            end: None,
            counts: Counts::default(),
            log: None,
        }
    }

    /// Lets it write down when its rounds begin, wait and end.
    pub fn keep_log(&mut self) {
        self.log = Some(Box::default());
    }

    /// What it wrote down, if it was asked to.
    pub fn log(&self) -> Option<&Log> {
        self.log.as_deref()
    }

    /// The round that a flit of a message belongs to.
    pub fn round_of(tag: Tag) -> u32 {
        (tag.seq() >> INDEX_BITS) as u32
    }

    /// Lets it start in cycle `start`.
    pub fn release(&mut self, start: Cycle) {
        self.start = start;
    }

    /// The job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Its rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Its vector: what it contributes, and in the end the result.
    pub fn vector(&self) -> &[u64] {
        &self.vector
    }

    /// The cycle in which its last round was over.
    pub fn end(&self) -> Option<Cycle> {
        self.end
    }

    /// What it has done so far.
    pub fn counted(&self) -> Counts {
        self.counts
    }

    /// One clock. The core's memory is shared with the collectives in the network.
    pub fn tick(&mut self, core: &mut Core, io: &mut Io<'_>) -> Wake {
        if self.end.is_some() {
            return Wake::OnInput;
        }
        let now = io.now();
        self.clock(now);
        // Memory goes to arrivals and to what the rank does itself in turn.
        let mut short = false;
        for arrivals in [!self.write_last_q, self.write_last_q] {
            short |= if arrivals { self.arrive(core, io) } else { self.work(core, io) };
        }
        self.advance(io);
        if self.log.is_some() {
            self.log_expected_stall(core, io, short);
        }
        let mut wake = self.wake(io, short);
        if short {
            wake = wake.or(Wake::At(core.memory_mut().next_grant(now)));
        }
        let vcs = io.vcs();
        // Only words need the memory: headers are taken, and packets begin, whether it is short or not.
        let takes = |flit: Flit| flit.tag.id() == self.job.class && (!short || flit.tag.head());
        let waits = (0..vcs.unicast).any(|channel| io.head(0, vcs.set + channel).is_some_and(takes));
        if waits { Wake::Next } else { wake }
    }

    /// Begins, or goes on after the overhead of a round, when it is time.
    pub(super) fn clock(&mut self, now: Cycle) {
        if self.state == State::Idle && self.start <= now {
            self.begin(now);
        }
        if let State::Overhead(until) = self.state
            && until <= now
        {
            self.state = State::Exchange;
        }
    }

    /// Gives it its vector, before it is released.
    pub(super) fn give(&mut self, vector: Vec<u64>) {
        self.vector = vector;
    }

    /// Whether it has a packet or a flag to send.
    pub(super) fn wants_port(&self) -> bool {
        self.state == State::Exchange && self.round.send.is_some() && !self.flag_sent_q
    }

    /// Whether it merges.
    pub(super) fn merges(&self) -> bool {
        self.state == State::Merge
    }

    /// Whether a packet has begun to leave and not ended.
    pub(super) fn is_amid_packet(&self) -> bool {
        self.leaving.is_some()
    }

    /// How far it is with sending: changes when a flit has left.
    pub(super) fn progress(&self) -> (u64, bool, bool) {
        (self.sent_q, self.flag_sent_q, self.leaving.is_some())
    }

    /// How far merging is, in words and in accesses of the memory that the next one still takes.
    pub(super) fn merged(&self) -> (u64, u8) {
        (self.merged_q, self.left_q)
    }

    /// The head of a packet has come.
    pub(super) fn arrives(&mut self, round: u32, now: Cycle) {
        if let Some(log) = &mut self.log {
            log.arrive(round, now);
        }
    }

    /// A flag has come.
    pub(super) fn land_flag(&mut self, round: u32, now: Cycle) {
        self.arrives(round, now);
        self.landings.entry(round).or_default().flag = true;
    }

    /// A word has come, and memory has granted it.
    pub(super) fn land(&mut self, round: u32, at: u64, word: u64, now: Cycle) {
        self.arrives(round, now);
        let landing = self.landings.entry(round).or_default();
        if landing.words.len() <= at as usize {
            landing.words.resize(at as usize + 1, 0);
        }
        landing.words[at as usize] = word;
        landing.landed += 1;
        self.counts.received += 1;
    }

    fn begin(&mut self, now: Cycle) {
        let rounds = self.job.schedule.rounds();
        while self.number < rounds && self.round.is_idle() {
            self.number += 1;
            self.round = self.job.schedule.round(self.rank, self.number.min(rounds - 1));
        }
        self.state = if self.number >= rounds { State::Done } else { State::Overhead(now + self.job.overhead) };
        if let (Some(log), true) = (&mut self.log, self.number < rounds) {
            log.begin(self.number, now, now + self.job.overhead);
        }
        (self.sent_q, self.flag_sent_q, self.merged_q, self.left_q) = (0, false, 0, self.job.merge_accesses);
    }

    /// Takes at most one flit of each channel; whether the memory was too slow.
    fn arrive(&mut self, core: &mut Core, io: &mut Io<'_>) -> bool {
        let vcs = io.vcs();
        let now = io.now();
        let mut short = false;
        for channel in 0..vcs.unicast {
            let vc = vcs.set + channel;
            let Some(flit) = io.head(0, vc).filter(|flit| flit.tag.id() == self.job.class) else { continue };
            let at = usize::from(channel);
            if self.arriving.len() <= at {
                self.arriving.resize(at + 1, IncomingPacket::default());
            }
            if flit.tag.head() {
                io.take(0, vc);
                let (round, index) = (Self::round_of(flit.tag), flit.tag.seq() & FLAG);
                if index == FLAG {
                    self.land_flag(round, now);
                } else {
                    self.arrives(round, now);
                    self.arriving[at] = IncomingPacket { round, next: index * self.job.packet_words };
                }
                continue;
            }
            if !core.memory_mut().grant(now) {
                short = true;
                continue;
            }
            io.take(0, vc);
            self.write_last_q = true;
            let IncomingPacket { round, next } = self.arriving[at];
            self.arriving[at].next += 1;
            self.land(round, next, flit.word, now);
        }
        short
    }

    /// Sends or merges; whether the memory was too slow.
    fn work(&mut self, core: &mut Core, io: &mut Io<'_>) -> bool {
        match self.state {
            State::Exchange => self.send(core, io),
            State::Merge => self.merge(core, io),
            State::Idle | State::Overhead(_) | State::Done => false,
        }
    }

    /// Writes down what sending came to.
    fn note(&mut self, now: Cycle, doing: CycleUse) {
        if let Some(log) = &mut self.log {
            log.send(now, doing);
        }
    }

    /// Logs in advance how sending or merging will stall if nothing wakes the rank before.
    fn log_expected_stall(&mut self, core: &mut Core, io: &Io<'_>, short: bool) {
        let now = io.now();
        let grant = if short { core.memory_mut().next_grant(now) } else { now + 1 };
        match self.state {
            State::Exchange if self.wants_credit(io) => self.note(now + 1, CycleUse::NoCredit),
            State::Exchange if self.leaving.is_some() => {
                let free = io.busy_until(0).map_or(now + 1, |until| until.max(now + 1));
                if grant > free {
                    self.note(free, CycleUse::Memory);
                }
            }
            State::Merge if grant > now + 1 => {
                if let Some(log) = &mut self.log {
                    log.merge(now + 1, CycleUse::Memory);
                }
            }
            _ => {}
        }
    }

    /// Sends a flit, if it can; whether the memory was too slow.
    pub(super) fn send(&mut self, core: &mut Core, io: &mut Io<'_>) -> bool {
        let Some(send) = &self.round.send else { return false };
        let (words, total) = (send.words.clone(), send.words.end - send.words.start);
        if self.flag_sent_q {
            return false;
        }
        let peer = send.peer;
        let dst = self.job.ends[peer as usize];
        let per_packet = self.job.packet_words;
        let vcs = io.vcs();
        let Some(vc) = self.leaving else {
            // The head of the next packet, or the flag.
            let start = self.next_vc;
            let turn = |i: u8| vcs.set + (start + i) % vcs.unicast;
            let Some(vc) = (0..vcs.unicast).map(turn).find(|&vc| io.can_start(0, vc)) else {
                let room = (0..vcs.unicast).map(turn).any(|vc| io.has_room(0, vc));
                self.note(io.now(), if room { CycleUse::Work } else { CycleUse::NoCredit });
                return false;
            };
            self.note(io.now(), CycleUse::Work);
            self.next_vc = (vc - vcs.set + 1) % vcs.unicast;
            let is_flag = self.sent_q == total;
            let index = (!is_flag).then(|| self.sent_q / per_packet);
            let (id, seq) = self.job.tag(peer, self.number, index);
            let length = if is_flag { 1 } else { 2 };
            let header = Flit::header(dst, io.now());
            io.send(0, vc, Flit::part(id, vc, seq, 0, length, header));
            if is_flag {
                self.flag_sent_q = true;
                self.counts.messages += 1;
                if let Some(log) = &mut self.log {
                    log.sent(io.now());
                }
            } else {
                self.leaving = Some(vc);
            }
            return false;
        };
        if !io.can_send(0, vc) {
            self.note(io.now(), if io.credits(0, vc) > 0 { CycleUse::Work } else { CycleUse::NoCredit });
            return false;
        }
        if !core.memory_mut().grant(io.now()) {
            self.note(io.now(), CycleUse::Memory);
            return true;
        }
        self.note(io.now(), CycleUse::Work);
        self.write_last_q = false;
        let index = self.sent_q % per_packet + 1;
        let packet = self.sent_q / per_packet;
        let last = index == per_packet || self.sent_q + 1 == total;
        let (id, seq) = self.job.tag(peer, self.number, Some(packet));
        let word = self.vector[(words.start + self.sent_q) as usize];
        let length = if last { index + 1 } else { index + 2 };
        io.send(0, vc, Flit::part(id, vc, seq, index as u32, length as u32, word));
        self.sent_q += 1;
        self.counts.sent += 1;
        if last {
            self.leaving = None;
        }
        false
    }

    /// Merges a word, if it can; whether the memory was too slow.
    pub(super) fn merge(&mut self, core: &mut Core, io: &mut Io<'_>) -> bool {
        let now = io.now();
        let Some(receive) = &self.round.receive else { return false };
        let start = receive.words.start;
        // A word a cycle at most, as fast as the memory is.
        while self.left_q > 0 {
            if !core.memory_mut().grant(now) {
                if let Some(log) = &mut self.log {
                    log.merge(now, CycleUse::Memory);
                }
                return true;
            }
            self.write_last_q = false;
            self.left_q -= 1;
        }
        if let Some(log) = &mut self.log {
            log.merge(now, CycleUse::Work);
        }
        self.left_q = self.job.merge_accesses;
        let at = (start + self.merged_q) as usize;
        let got = self.landings[&self.number].words[self.merged_q as usize];
        let own = self.vector[at];
        self.vector[at] = match self.round.merge {
            Merge::Left => self.job.combine(got, own),
            Merge::Right => self.job.combine(own, got),
            Merge::Copy => got,
        };
        self.merged_q += 1;
        false
    }

    /// Whether all of this round is sent, and all that it is to receive has come.
    fn exchanged(&self) -> bool {
        let sent = self.round.send.is_none() || self.flag_sent_q;
        let here =
            |words: u64| self.landings.get(&self.number).is_some_and(|landing| landing.flag && landing.landed == words);
        sent && self.round.receive.as_ref().is_none_or(|receive| here(receive.words.end - receive.words.start))
    }

    /// Goes on to merging, to the next round, or to the end.
    pub(super) fn advance(&mut self, io: &mut Io<'_>) {
        let now = io.now();
        let incoming = self.round.receive.as_ref().map_or(0, |receive| receive.words.end - receive.words.start);
        let over = match self.state {
            State::Exchange => {
                if !self.exchanged() {
                    return;
                }
                if let Some(log) = &mut self.log {
                    log.exchanged(now);
                }
                if self.round.merge != Merge::Copy && incoming > 0 {
                    self.state = State::Merge;
                    return;
                }
                if let (Some(receive), Some(landing)) = (&self.round.receive, self.landings.get(&self.number)) {
                    let at = receive.words.start as usize;
                    self.vector[at..at + landing.words.len()].copy_from_slice(&landing.words);
                }
                true
            }
            State::Merge => self.merged_q == incoming,
            State::Done => {
                self.end = Some(now);
                io.complete();
                return;
            }
            State::Idle | State::Overhead(_) => return,
        };
        if !over {
            return;
        }
        if let Some(log) = &mut self.log {
            log.over(now);
        }
        self.landings.remove(&self.number);
        self.counts.rounds += 1;
        self.number += 1;
        let rounds = self.job.schedule.rounds();
        if self.number < rounds {
            self.round = self.job.schedule.round(self.rank, self.number);
            self.begin(now);
        } else {
            self.state = State::Done;
        }
        if self.state == State::Done {
            self.end = Some(now);
            io.complete();
        } else if self.job.overhead == 0 {
            self.state = State::Exchange;
        }
    }

    /// Whether it begins, or the overhead of a message ends, at a time that will come.
    pub(super) fn expects(&self, now: Cycle) -> bool {
        match self.state {
            State::Idle => self.start > now && self.start != Cycle::MAX,
            State::Overhead(until) => until > now,
            _ => false,
        }
    }

    /// When it has something to do, but for what arrives; `short`: the memory was too slow for what it wanted.
    pub(super) fn wake(&self, io: &Io<'_>, short: bool) -> Wake {
        match self.state {
            State::Idle if self.start != Cycle::MAX => Wake::At(self.start),
            State::Overhead(until) => Wake::At(until),
            State::Merge if !short => Wake::Next,
            // A message that came before its round began wakes nobody any more.
            State::Exchange if self.exchanged() => Wake::Next,
            State::Exchange if self.round.send.is_some() && !self.flag_sent_q && (!short || self.leaving.is_none()) => {
                if self.wants_credit(io) {
                    return Wake::OnInput;
                }
                io.busy_until(0).map_or(Wake::Next, Wake::At)
            }
            _ => Wake::OnInput,
        }
    }

    /// Whether there is something to send in this round, and no credit for it.
    fn wants_credit(&self, io: &Io<'_>) -> bool {
        let vcs = io.vcs();
        let room = match self.leaving {
            Some(vc) => io.credits(0, vc) > 0,
            None => (0..vcs.unicast).any(|channel| io.has_room(0, vcs.set + channel)),
        };
        self.round.send.is_some() && !self.flag_sent_q && !room
    }

    /// Work that is left, in words.
    pub fn open(&self) -> Option<String> {
        if self.end.is_some() || self.start == Cycle::MAX {
            return None;
        }
        let (number, rounds) = (self.number + 1, self.job.schedule.rounds());
        Some(format!("rank {} is in round {number} of {rounds}: {} words sent", self.rank, self.sent_q))
    }

    /// Describes the rank to a wave.
    pub fn probe(&self, scope: &mut Scope<'_>) {
        let state = match self.state {
            State::Idle => 0,
            State::Overhead(_) => 1,
            State::Exchange => 2,
            State::Merge => 3,
            State::Done => 4,
        };
        scope.state("state", &STATES, state);
        scope.bits("round", 16, u64::from(self.number));
        scope.bits("sent", 36, self.sent_q);
        let landed = self.landings.get(&self.number).map_or(0, |landing| landing.landed);
        scope.bits("landed", 36, landed);
        scope.bits("merged", 36, self.merged_q);
    }
}
