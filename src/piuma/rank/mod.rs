//! A rank of an application: it computes, sends, receives and takes part in collectives as its [`Plan`] says (requirements
//! X-WORK-1, X-WORK-2).
//!
//! ```text
//!            ┌───────────────────────────── rank ─────────────────────────────┐
//!            │ plan ── ready ──▶ streams ── compute: a timer                  │
//!            │   ▲                 │                                          │
//!            │   │                 ├── overhead ──▶ messages, packet by packet┼─▶ point-to-point channels
//!            │   └──── over ◀──────┼── overhead ◀── landed messages           │◀─ point-to-point channels
//!            │                     ├── software: rounds of a `Host`           │
//!            │                     └── call: a `Job` of the core              ┼─▶ collective channels
//!            └────────────────────────────────────────────────────────────────┘
//! ```
//!
//! | parameter | default | unit | effect on cycles |
//! |---|---|---|---|
//! | overhead | 0 | cycles | at the sender before, at the receiver after each message; and before each round of a collective in software |
//! | packet words | 8 | words | words of a packet behind its header flit |
//! | bandwidth of the memory | that of the core | | one read per word sent, one write per word received |
//!
//! **Timing.** A message of w words in packets of p is w + ceil(w/p) flits; one of no words is one flit. Take a way of
//! D cycles from the sender's port to the receiver's queue, c cycles a flit, no other traffic and enough memory
//! bandwidth. The message then ends `2 o + (w + ceil(w/p) - 1) c + D` cycles after the send has its stream. Here o is
//! LogGP's o, D its L, c times the flits a byte its G; its g is the packet's own time. A collective of an engine is
//! called in the cycle in which the operation starts, and its first word read in the next one.
//!
//! *Chosen*: messages of a rank leave one packet at a time, in turn; a packet keeps the port until its tail has left. A
//! message is accepted whether a receive waits for it or not: there is always room for it. Collectives that a group has the core's engine
//! compute are called one after the other, in the order in which they are written, which is the same at all members. So are those of one
//! job of an engine beside it; others go beside each other. Where the trees of groups overlap, their calls [claim](crate::claim).
//! An engine beside the core's takes a call in the cycle
//! after the one in which the operation starts; the operation ends in the cycle after the one in which its answer is there.
//!
//! ```
//! use std::sync::Arc;
//! use watershed_piuma::rank::Rank;
//! use watershed_piuma::rank::plan::{Data, Kind, Operation, Outgoing, Plan};
//! use watershed_piuma::{EndExtras, End};
//! # use watershed_fabric::{Bench, Vcs};
//! # use watershed_piuma::{Core, MemoryCfg, Registers, RegistersCfg};
//! # use watershed_fabric::routing::{Routes, Routing};
//! # use watershed_fabric::topology::Die;
//! # let routes = Routes { routing: Routing::Die(Die::default()), ends: Vec::new() };
//! # let registers = Registers::new(RegistersCfg { switches: 1, ids: 4, external_ports: 10 }, vec!["sw0".to_owned()], routes);
//! # let memory = MemoryCfg { bandwidth: None, scale: 1, read_latency: 0, write_latency: 0 };
//! # let core = Core::new(Arc::new(memory));
//!
//! // It computes for ten cycles, then sends four words to end point 1, with an overhead of three cycles.
//! let operation = |kind| Operation { kind, stream: Some(0) };
//! let plan = Plan {
//!     operations: vec![operation(Kind::Compute(10)), operation(Kind::Send { channel: 0, words: 4 })],
//!     followers: vec![(1, false)], // the send waits for the end of the computation
//!     first: vec![0, 1, 1],
//!     waits: vec![0, 1],
//!     streams: 1,
//!     outgoing: vec![Outgoing { end: 1, rank: 1, first: 0 }],
//!     overhead: 3,
//!     packet_words: 8,
//!     # incoming: Vec::new(),
//!     # open: Vec::new(),
//!     # patterns: Vec::new(),
//!     # software: Vec::new(),
//!     # calls: Vec::new(),
//!     # buffered: false,
//!     # index_bits: 20,
//!     # seed: 1,
//!     # data: Data(Arc::new(|_, _, _| Vec::new())),
//! };
//! # let mut core = core;
//! # core.wait_for(3, false);
//! let beside = EndExtras { rank: Some(Box::new(Rank::new(Arc::new(plan), 0))), ..EndExtras::default() };
//! let end = End { core: Some(Box::new(core)), beside: Some(Box::new(beside)), ..End::default() };
//! let mut bench = Bench::<_, _, 1>::at_the_end(end, registers, Vcs { set: 2, unicast: 1 }, []);
//! while bench.tick() {}
//! let sent: Vec<_> = bench.sent().iter().map(|(cycle, ..)| *cycle).collect();
//! assert_eq!(sent, [13, 14, 15, 16, 17]); // a header and four words
//! let records = bench.block().rank().unwrap().records();
//! assert_eq!([records[0].end, records[1].end], [10, 17]);
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::sync::Arc;

use super::core::Core;
use super::host::Host;
use super::processor::ReadyCall;
use watershed_fabric::{Flit, Io, Tag};
use watershed_kernel::{Cycle, Wake};
use watershed_probe::Scope;

mod calls;
pub mod plan;
mod software;
mod state;
pub mod tag;

use calls::{CallLines, FinishedCall};
use plan::{Engine, Kind, Outcome, Plan, Record, Rounds, word};
use tag::{is_of_rank, number_and_index, tag};

/// A message that is leaving.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
struct OutgoingMessage {
    operation: u32,
    end: u32,
    receiver: u32,
    number: u32,
    words: u64,
    sent: u64,
}

/// A message that is arriving, or has.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
struct IncomingMessage {
    words: u64,
    /// Words of the whole; known when its last packet is here.
    total: u64,
    first: Cycle,
    /// The receive that waits for it.
    operation: u32,
}

const UNKNOWN: u64 = u64::MAX;
const NOBODY: u32 = u32::MAX;

/// The packet that is arriving on a channel.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
enum IncomingPacket {
    Nothing,
    Message { number: u32, next: u64, last: bool },
    Round { software: u32, round: u32, next: u64 },
}

/// Messages and receives of open channels without a match yet, in the order in which they came.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
struct UnmatchedChannels {
    /// Channels of messages that have come and that nobody waits for.
    come: Vec<u32>,
    /// Receives that were posted and for which nothing has come.
    posted: Vec<u32>,
}

/// Who sends a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
enum Sender {
    #[default]
    Message,
    Software,
}

/// What leaves by the port.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
struct Port {
    /// Messages, the oldest first.
    sends: VecDeque<OutgoingMessage>,
    /// Channel of the packet of a message that is leaving.
    leaving: Option<u8>,
    /// Whose packet is leaving.
    owner: Option<Sender>,
    /// Who goes first with the next packet.
    next: Sender,
    next_vc: u8,
    /// The collective in software that sends next, or is amid a packet.
    turn: u32,
}

/// What is next for an operation.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
enum Todo {
    /// All that it waited for is there.
    Ready(u32),
    /// It wants its stream.
    Stream(u32),
    /// It has its stream, or needs none.
    Start(u32),
}

/// What an operation occupies.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
struct Stream {
    busy: bool,
    waiting: BTreeSet<(Cycle, u32)>,
}

/// A rank.
#[derive(Clone, Debug)]
pub struct Rank {
    plan: Arc<Plan>,
    number: u32,
    waits: Vec<u32>,
    records: Vec<Record>,
    left: usize,
    streams: Vec<Stream>,
    /// Operations that something happens to in a cycle: they end, or their overhead is over.
    timers: BinaryHeap<Reverse<(Cycle, u32)>>,
    todo: VecDeque<Todo>,
    /// Messages sent over each outgoing channel, and receives of each incoming one.
    counts: [Vec<u32>; 2],
    landings: Vec<IncomingMessage>,
    open: UnmatchedChannels,
    port: Port,
    /// Collectives in software that have started, or of which something has come, by their index.
    hosts: BTreeMap<u32, Host>,
    arriving: Vec<IncomingPacket>,
    write_last_q: bool,
    calls: CallLines,
    outcomes: Vec<Outcome>,
    /// Words of messages that were not what was sent.
    wrong: u64,
    begun: bool,
    end: Option<Cycle>,
}

impl Rank {
    /// A rank before cycle 0.
    pub fn new(plan: Arc<Plan>, number: u32) -> Rank {
        let messages = plan.incoming.iter().map(|range| range.end).max().unwrap_or(0);
        let landing = IncomingMessage { words: 0, total: UNKNOWN, first: Cycle::MAX, operation: NOBODY };
        Rank {
            number,
            waits: plan.waits.clone(),
            records: vec![Record::default(); plan.operations.len()],
            left: plan.operations.len(),
            streams: vec![Stream::default(); usize::from(plan.streams)],
            timers: BinaryHeap::new(),
            todo: VecDeque::new(),
            counts: [vec![0; plan.outgoing.len()], vec![0; plan.incoming.len()]],
            landings: vec![landing; messages as usize],
            open: UnmatchedChannels::default(),
            port: Port::default(),
            hosts: BTreeMap::new(),
            arriving: Vec::new(),
            write_last_q: false,
            calls: CallLines::new(&plan),
            outcomes: Vec::new(),
            wrong: 0,
            begun: false,
            end: None,
            plan,
        }
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// What it is to do.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The outcome of each operation.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The outcome of the collectives that are over.
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// Words of messages that were not what was sent.
    pub fn wrong(&self) -> u64 {
        self.wrong
    }

    /// The cycle in which its last operation was over.
    pub fn end(&self) -> Option<Cycle> {
        self.end
    }

    /// Operations that are not over.
    pub fn left(&self) -> usize {
        self.left
    }

    /// One clock. The core's memory is shared with the collectives in the network.
    pub(super) fn tick(&mut self, core: &mut Core, io: &mut Io<'_>) -> Wake {
        if self.end.is_some() && self.port.sends.is_empty() {
            return Wake::OnInput;
        }
        let now = io.now();
        if !self.begun {
            self.begun = true;
            let first = (0..self.waits.len() as u32).filter(|&at| self.waits[at as usize] == 0);
            self.todo.extend(first.map(Todo::Ready));
        }
        let called = self.calls.begun();
        self.complete_calls(core, now);
        while self.timers.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            if let Some(Reverse((_, operation))) = self.timers.pop() {
                self.timer(operation, now);
            }
        }
        self.go_on(core, now);
        for host in self.hosts.values_mut() {
            host.clock(now);
        }
        // Memory goes to arrivals and to what the rank does itself in turn.
        let mut short = false;
        for arrivals in [!self.write_last_q, self.write_last_q] {
            short |= if arrivals { self.arrive(core, io) } else { self.work(core, io) };
        }
        self.advance_software(io);
        self.go_on(core, now);
        // What was handed over may have to leave yet.
        if self.left == 0 && self.end.is_none() {
            self.end = Some(now);
            io.complete();
        }
        if self.calls.is_ready() {
            // The driver takes it to the wires of claims.
            io.complete();
        }
        let wake = self.wake(core, io, short);
        // The core reads the first word of a call in the next cycle, and an engine beside it takes one then.
        if self.calls.begun() == called { wake } else { wake.or(Wake::Next) }
    }

    // ---- operations --------------------------------------------------------------------------------------------

    /// Does all that can be done in this cycle.
    fn go_on(&mut self, core: &mut Core, now: Cycle) {
        while let Some(todo) = self.todo.pop_front() {
            match todo {
                Todo::Ready(operation) => {
                    self.records[operation as usize].ready = now;
                    match self.plan.operations[operation as usize].kind {
                        Kind::Call(call) if !self.calls.is_turn(&self.plan.calls[call as usize], operation) => {}
                        // A receive occupies its stream only when its message is here.
                        Kind::Receive { .. } | Kind::ReceiveOpen { .. } => self.start(operation, core, now),
                        _ => self.todo.push_front(Todo::Stream(operation)),
                    }
                }
                Todo::Stream(operation) => match self.plan.operations[operation as usize].stream {
                    Some(stream) if self.streams[usize::from(stream)].busy => {
                        let _ = self.streams[usize::from(stream)].waiting.insert((now, operation));
                    }
                    Some(stream) => {
                        self.streams[usize::from(stream)].busy = true;
                        self.start(operation, core, now);
                    }
                    None => self.start(operation, core, now),
                },
                Todo::Start(operation) => self.start(operation, core, now),
            }
        }
    }

    fn start(&mut self, operation: u32, core: &mut Core, now: Cycle) {
        let record = &mut self.records[operation as usize];
        if record.start != Cycle::MAX {
            // A receive whose message is here: its overhead.
            return self.timers.push(Reverse((now + self.plan.overhead, operation)));
        }
        (record.start, record.busy) = (now, now);
        self.release(operation, true);
        match self.plan.operations[operation as usize].kind {
            Kind::Compute(cycles) => self.after(cycles, operation, now),
            Kind::Send { .. } => self.after(self.plan.overhead, operation, now),
            Kind::Receive { channel } => self.receive(operation, channel, now),
            Kind::ReceiveOpen { pattern } => {
                self.records[operation as usize].busy = Cycle::MAX;
                let pattern = &self.plan.patterns[pattern as usize];
                match self.open.come.iter().position(|channel| pattern.binary_search(channel).is_ok()) {
                    Some(at) => {
                        let channel = self.open.come.remove(at);
                        self.receive(operation, channel, now);
                    }
                    None => self.open.posted.push(operation),
                }
            }
            Kind::Software(index) => {
                let software = &self.plan.software[index as usize];
                let vector = (self.plan.data.0)(software.collective, software.member, software.job.schedule.words);
                let host = self.host(index);
                host.give(vector);
                host.release(now);
                host.clock(now);
            }
            Kind::Call(index) => {
                let call = self.plan.calls[index as usize];
                let gives = call.kind.sends && call.kind.data && matches!(call.engine, Engine::Core { .. });
                let words =
                    if gives { (self.plan.data.0)(call.collective, call.member, call.words) } else { Vec::new() };
                self.calls.begin(&call, operation, (core, words), now);
            }
        }
    }

    /// Goes on with an operation after this many cycles.
    fn after(&mut self, cycles: u64, operation: u32, now: Cycle) {
        if cycles == 0 {
            self.timer(operation, now);
        } else {
            self.timers.push(Reverse((now.saturating_add(cycles), operation)));
        }
    }

    /// What an operation took cycles for is over.
    fn timer(&mut self, operation: u32, now: Cycle) {
        let Kind::Send { channel, words } = self.plan.operations[operation as usize].kind else {
            return self.over(operation, now);
        };
        let to = self.plan.outgoing[channel as usize];
        let count = &mut self.counts[0][channel as usize];
        let number = to.first + *count;
        *count += 1;
        self.records[operation as usize].number = number;
        self.port.sends.push_back(OutgoingMessage {
            operation,
            end: to.end,
            receiver: to.rank,
            number,
            words,
            sent: 0,
        });
        if self.plan.buffered {
            self.over(operation, now);
        }
    }

    /// Ends an operation, gives its stream on, and lets those go on that waited for it.
    fn over(&mut self, operation: u32, now: Cycle) {
        let record = &mut self.records[operation as usize];
        record.end = now;
        record.busy = record.busy.min(now);
        self.left -= 1;
        let of = self.plan.operations[operation as usize];
        let held = self.plan.overhead > 0 || !matches!(of.kind, Kind::Receive { .. } | Kind::ReceiveOpen { .. });
        if let Some(stream) = of.stream.filter(|_| held) {
            let stream = &mut self.streams[usize::from(stream)];
            stream.busy = false;
            if let Some((_, next)) = stream.waiting.pop_first() {
                stream.busy = true;
                let record = &mut self.records[next as usize];
                if record.start == Cycle::MAX {
                    record.by = operation;
                }
                self.todo.push_back(Todo::Start(next));
            }
        }
        self.release(operation, false);
    }

    /// Lets those be ready that waited for an operation to start, or to end.
    fn release(&mut self, operation: u32, start: bool) {
        let (from, to) = (self.plan.first[operation as usize], self.plan.first[operation as usize + 1]);
        for at in from as usize..to as usize {
            let (follower, on_start) = self.plan.followers[at];
            if on_start != start {
                continue;
            }
            let left = &mut self.waits[follower as usize];
            *left -= 1;
            if *left == 0 {
                self.records[follower as usize].by = operation;
                self.todo.push_back(Todo::Ready(follower));
            }
        }
    }

    // ---- collectives -------------------------------------------------------------------------------------------

    /// Calls that have become ready to claim since the last time.
    pub(super) fn take_ready(&mut self) -> Vec<ReadyCall> {
        self.calls.take_ready()
    }

    /// Lines of calls.
    pub fn lines(&self) -> usize {
        self.calls.count()
    }

    /// The call of a line that an engine beside the core's has not answered.
    pub fn unanswered_call(&self, line: usize) -> Option<Rounds> {
        self.calls.unanswered_call(line)
    }

    /// An engine beside the core's has all words that an [unanswered call](Self::unanswered_call) asks for; the rank sees them in its next
    /// cycle.
    pub fn answer(&mut self, line: usize, words: Vec<u64>) {
        self.calls.answer(line, words);
    }

    fn complete_calls(&mut self, core: &Core, now: Cycle) {
        while let Some(FinishedCall { outcome, next }) = self.calls.over(core) {
            self.outcomes.push(outcome);
            if let Some(next) = next {
                self.records[next as usize].by = outcome.operation;
                self.todo.push_back(Todo::Stream(next));
            }
            self.over(outcome.operation, now);
        }
    }

    // ---- messages ----------------------------------------------------------------------------------------------

    /// A receive takes the next message of a channel.
    fn receive(&mut self, operation: u32, channel: u32, now: Cycle) {
        let count = &mut self.counts[1][channel as usize];
        let number = self.plan.incoming[channel as usize].start + *count;
        *count += 1;
        self.records[operation as usize].number = number;
        self.records[operation as usize].busy = Cycle::MAX;
        self.landings[number as usize].operation = operation;
        self.landed(number, now);
    }

    /// A message begins to come: over an open channel it goes to the receive that was posted first of those that take it. Which of the
    /// channel's messages it is does not matter: the receives of a channel take its messages in the order in which they were sent.
    fn comes(&mut self, number: u32, now: Cycle) {
        let channel = self.plan.incoming.partition_point(|range| range.start <= number) as u32 - 1;
        if !self.plan.open[channel as usize] {
            return;
        }
        let takes = |operation: &u32| match self.plan.operations[*operation as usize].kind {
            Kind::ReceiveOpen { pattern } => self.plan.patterns[pattern as usize].binary_search(&channel).is_ok(),
            _ => false,
        };
        match self.open.posted.iter().position(takes) {
            Some(at) => {
                let operation = self.open.posted.remove(at);
                self.receive(operation, channel, now);
            }
            None => self.open.come.push(channel),
        }
    }

    /// A message has arrived when all its words have; it is received when a receive waits for it.
    fn landed(&mut self, number: u32, now: Cycle) {
        let landing = self.landings[number as usize];
        if landing.words != landing.total || landing.operation == NOBODY {
            return;
        }
        self.landings[number as usize].operation = NOBODY;
        let record = &mut self.records[landing.operation as usize];
        record.busy = landing.first.max(record.start);
        if self.plan.overhead > 0 {
            self.todo.push_back(Todo::Stream(landing.operation));
        } else {
            self.over(landing.operation, now);
        }
    }

    /// Takes at most one flit of each channel; whether the memory was too slow.
    fn arrive(&mut self, core: &mut Core, io: &mut Io<'_>) -> bool {
        let (vcs, now) = (io.vcs(), io.now());
        let mut short = false;
        for channel in 0..vcs.unicast {
            let vc = vcs.set + channel;
            let Some(flit) = io.head(0, vc).filter(|flit| is_of_rank(flit.tag)) else { continue };
            let at = usize::from(channel);
            if self.arriving.len() <= at {
                self.arriving.resize(at + 1, IncomingPacket::Nothing);
            }
            if flit.tag.head() {
                io.take(0, vc);
                self.arriving[at] = self.arrives(flit.tag, now);
                continue;
            }
            if !core.memory_mut().grant(now) {
                short = true;
                continue;
            }
            io.take(0, vc);
            self.write_last_q = true;
            match &mut self.arriving[at] {
                IncomingPacket::Nothing => io.fail(|| "a rank got a word of no packet".to_owned()),
                IncomingPacket::Message { number, next, last } => {
                    let (number, place, last) = (*number, *next, *last);
                    *next += 1;
                    self.wrong += u64::from(flit.word != word(self.plan.seed, self.number, number, place));
                    let landing = &mut self.landings[number as usize];
                    landing.words += 1;
                    if last && flit.tag.tail() {
                        landing.total = place + 1;
                    }
                    self.landed(number, now);
                }
                IncomingPacket::Round { software, round, next } => {
                    let (index, round, place) = (*software, *round, *next);
                    *next += 1;
                    self.host(index).land(round, place, flit.word, now);
                }
            }
        }
        short
    }

    /// The head of a packet is here: what its words will be.
    fn arrives(&mut self, tag: Tag, now: Cycle) -> IncomingPacket {
        let (number, index) = number_and_index(tag, self.plan.index_bits);
        if let Some(landing) = self.landings.get_mut(number as usize) {
            let begins = landing.first == Cycle::MAX;
            landing.first = landing.first.min(now);
            if tag.tail() {
                landing.total = 0;
            }
            if begins {
                self.comes(number, now);
            }
            if tag.tail() {
                self.landed(number, now);
                return IncomingPacket::Nothing;
            }
            return IncomingPacket::Message {
                number,
                next: (index >> 1) * self.plan.packet_words,
                last: index & 1 == 1,
            };
        }
        let software = self.plan.software.partition_point(|software| software.first() <= number) as u32 - 1;
        let round = number - self.plan.software[software as usize].first();
        let next = index * self.plan.packet_words;
        if tag.tail() {
            self.host(software).land_flag(round, now);
            return IncomingPacket::Nothing;
        }
        self.host(software).arrives(round, now);
        IncomingPacket::Round { software, round, next }
    }

    /// Merges and sends; whether the memory was too slow.
    fn work(&mut self, core: &mut Core, io: &mut Io<'_>) -> bool {
        let mut short = false;
        for host in self.hosts.values_mut().filter(|host| host.merges()) {
            let before = host.merged();
            short |= host.merge(core, io);
            // The memory has had its turn only if it gave a word: a rank that waits is not clocked in every cycle.
            if host.merged() != before {
                self.write_last_q = false;
            }
        }
        let turns = match self.port.owner {
            Some(sender) => [Some(sender), None],
            None if self.port.next == Sender::Message => [Some(Sender::Message), Some(Sender::Software)],
            None => [Some(Sender::Software), Some(Sender::Message)],
        };
        for sender in turns.into_iter().flatten() {
            let wants = match sender {
                Sender::Message => !self.port.sends.is_empty(),
                Sender::Software => self.port.owner.is_some() || self.next_host(),
            };
            if wants {
                short |= if sender == Sender::Message { self.send(core, io) } else { self.send_round(core, io) };
                break;
            }
        }
        short
    }

    fn send(&mut self, core: &mut Core, io: &mut Io<'_>) -> bool {
        let (now, vcs, per_packet) = (io.now(), io.vcs(), self.plan.packet_words);
        let Some(message) = self.port.sends.front_mut() else { return false };
        let packet = message.sent / per_packet;
        let last_packet = (packet + 1) * per_packet >= message.words;
        let (id, seq) = tag(message.number, self.plan.index_bits, packet << 1 | u64::from(last_packet));
        let Some(vc) = self.port.leaving else {
            let start = self.port.next_vc;
            let turn = |i: u8| vcs.set + (start + i) % vcs.unicast;
            let Some(vc) = (0..vcs.unicast).map(turn).find(|&vc| io.can_start(0, vc)) else { return false };
            self.port.next_vc = (vc - vcs.set + 1) % vcs.unicast;
            let length = if message.words == 0 { 1 } else { 2 };
            io.send(0, vc, Flit::part(id, vc, seq, 0, length, Flit::header(message.end, now)));
            if message.words == 0 {
                self.sent(now);
            } else {
                (self.port.leaving, self.port.owner) = (Some(vc), Some(Sender::Message));
            }
            return false;
        };
        if !io.can_send(0, vc) {
            return false;
        }
        if !core.memory_mut().grant(now) {
            return true;
        }
        self.write_last_q = false;
        let index = message.sent % per_packet + 1;
        let last = index == per_packet || message.sent + 1 == message.words;
        let word = word(self.plan.seed, message.receiver, message.number, message.sent);
        let length = if last { index + 1 } else { index + 2 };
        io.send(0, vc, Flit::part(id, vc, seq, index as u32, length as u32, word));
        message.sent += 1;
        if last {
            (self.port.leaving, self.port.owner, self.port.next) = (None, None, Sender::Software);
            if message.sent == message.words {
                self.sent(now);
            }
        }
        false
    }

    /// The oldest message has left.
    fn sent(&mut self, now: Cycle) {
        if let Some(message) = self.port.sends.pop_front()
            && !self.plan.buffered
        {
            self.over(message.operation, now);
        }
    }

    // ---- for others --------------------------------------------------------------------------------------------

    /// Whether it has computed, or the overhead of a message or of a step in software ends, at a time that will come.
    pub(super) fn expects(&self, now: Cycle) -> bool {
        self.timers.peek().is_some_and(|Reverse((at, _))| *at > now)
            || self.hosts.values().any(|host| host.expects(now))
    }

    fn wake(&self, core: &mut Core, io: &Io<'_>, short: bool) -> Wake {
        let (vcs, now) = (io.vcs(), io.now());
        let mut wake = self.timers.peek().map_or(Wake::OnInput, |Reverse((at, _))| Wake::At(*at));
        if short {
            wake = wake.or(Wake::At(core.memory_mut().next_grant(now)));
        }
        // Only words need the memory: headers are taken, and packets begin, whether it is short or not.
        let takes = |flit: Flit| is_of_rank(flit.tag) && (!short || flit.tag.head());
        if (0..vcs.unicast).any(|channel| io.head(0, vcs.set + channel).is_some_and(takes)) {
            return Wake::Next;
        }
        for host in self.hosts.values() {
            wake = wake.or(host.wake(io, short));
        }
        if !self.port.sends.is_empty()
            && self.port.owner != Some(Sender::Software)
            && (!short || self.port.leaving.is_none())
        {
            let room = match self.port.leaving {
                Some(vc) => io.credits(0, vc) > 0,
                None => (0..vcs.unicast).any(|channel| io.has_room(0, vcs.set + channel)),
            };
            if room {
                wake = wake.or(io.busy_until(0).map_or(Wake::Next, Wake::At));
            }
        }
        wake
    }

    /// Work that is left, in words.
    pub fn open(&self) -> Option<String> {
        if self.end.is_some() {
            return None;
        }
        let waits = self.records.iter().position(|record| record.start != Cycle::MAX && record.end == Cycle::MAX);
        let waits = waits.map_or(String::new(), |at| format!(", the first under way is number {at}"));
        Some(format!("rank {} has {} operations left{waits}", self.number, self.left))
    }

    /// Describes the rank to a wave.
    pub fn probe(&self, scope: &mut Scope<'_>) {
        scope.scope("rank", |scope| {
            scope.bits("left", 32, self.left as u64);
            scope.bits("messages", 16, self.port.sends.len() as u64);
            scope.valid("sending", 32, self.port.sends.front().map(|message| u64::from(message.number)));
            scope.bits("software", 16, self.hosts.len() as u64);
            for (line, call) in self.calls.operations().enumerate() {
                scope.indexed("line", line, |scope| scope.valid("call", 32, call.map(u64::from)));
            }
            for (number, stream) in self.streams.iter().enumerate() {
                scope.indexed("stream", number, |scope| {
                    scope.bits("busy", 1, u64::from(stream.busy));
                    scope.bits("waiting", 32, stream.waiting.len() as u64);
                });
            }
        });
    }
}
