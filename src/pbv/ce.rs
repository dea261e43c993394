//! The collective engine: contexts, tracking of answers, and the reduction (B-CE-1 to B-CE-9).
//!
//! ```text
//!              ┌───────────────────────── collective engine ──────────────────────────┐
//!   message ──▶│ look-up ─▶ read PBV, p_count ─▶ clear, decrement ─▶ write ─▶ verdict │──▶ messages
//!              │    │             ▲   └── forwarding ──┘              │       │       │
//!              │ context store    └───── tracking store ◀─────────────┘       ▼       │
//!              │ (static)                                       words ─▶ reduction    │
//!              │                          accumulators ◀──────────────── unit ◀┘      │
//!              └──────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! | parameter | default | range | effect |
//! |---|---|---|---|
//! | `contexts` | 64 | 1 to 4095 | contexts stored at once; one more is refused with `store-full`. Each costs 2 x (128 + 16) bits of tracking and its accumulators |
//! | `hazard` | forward | forward, interlock | forward takes a message a cycle; interlock delays a message whose context is in the pipeline by up to 2 cycles |
//! | `unit_stages` | 4 | 1 to 6 cycles | latency of the reduction unit: a word of one message follows the same word of the message before after this many cycles |
//! | `units` | 1 | 1 to 64 | reduction units side by side: a message's words enter in lines of as many, a line a cycle, and accumulators are stored in such lines *\[chosen\]*; the scenario has as many by default as a flit has words |
//! | `feeds` | 2 | 1 to 64 messages | while this many messages have words that wait for the reduction unit no further one is taken; two more may come out of the tracking pipeline. Each costs the storage of a longest message |
//! | `memory_ports` | 2 | 1 to 4 accesses a cycle | of each of its memories; see below |
//!
//! A memory with two ports reads and writes in one cycle, as a message a cycle and a word a cycle require *\[chosen\]*.
//! Operations that take more than one access:
//!
//! | memory | operation | cycles, with p ports |
//! |---|---|---|
//! | PBV table | a configuration frame replaces all entries; messages that need the table wait | 128 / p |
//! | tracking store | a message reads when it is taken and writes two cycles later; with one port nothing is taken in the cycle of a write | - |
//! | accumulators | a line of words, one for each reduction unit, into the units is a read, one out of them a write, which goes first | 1 line, every other cycle with one port |
//! | | a context that begins a new run has its lines cleared, by ports that are free; its first word waits for that | lines / p |
//! | words kept for the order of PBV entries, in lines too | the words of a message are written before the next message | lines / p |
//! | | when all participants have answered they are read in order, into the reduction unit | lines of all |
//! | deadlines | when the earliest one is due, all entries of the store are scanned, used or not; the k-th acts k / p cycles later; nothing is due once no context has a deadline | contexts / p |
//!
//! Timing of a message that is offered in cycle t and taken: the tracking store is read in t, changed in t + 1 and
//! written in t + 2; the verdict is known in t + 2 too. Its words enter the reduction units, a line a cycle, from t + 2 on,
//! each held while the same line of accumulators is in the units. The last word is written `unit_stages` cycles after it
//! entered; a context that is satisfied answers in the cycle of that write (without data: in t + 2).
//!
//! A context (B-CE-8):
//!
//! | state | entered by | messages of participants |
//! |---|---|---|
//! | absent | remove | `unknown-context` |
//! | inactive | inactivate, stop | `inactive` |
//! | active | initialise, activate, start, reset, command; satisfied if the context is armed again | tracked |
//! | paused | pause (from active); restart leads back | tracked, but the context is not satisfied before restart |
//! | waiting | a subservient engine has sent its partial response upstream (not that of a multicast, which is done then); at the master of an inter-group barrier: the group is complete and waits for the others | `duplicate` |
//! | done | satisfied was sent down | `duplicate` |
//!
//! A message is *refused* with the first of these that holds. First come EP set (`poisoned`), no such context, not active, P_ID
//! not the sender's in the table (`unknown-device`), and an engine's message from an end device or the reverse (`wrong-type`).
//! Then come another operation or type (`mismatch`), another number of words (`bad-length`), another round or bit clear
//! (`duplicate`), and p_count zero (`count-zero`). Every refusal is counted; an error message goes back to the sender if errors
//! are reported and the message was not posted. None of them changes a register of any context.
//!
//! The source of a collective gets no command. Where its engine is not the master, its contribution may arrive before
//! the command: then it begins the run *\[chosen\]*. From then on the run has its watchdog like any other. If no
//! command comes, the missing participants are asked, which is a command to those that got none; in the end the engine
//! answers with the contributions it has (B-ERR-1). A command that arrives late restarts the watchdog.
//!
//! Reduction order: that of arrival, operand of the message second; or that of PBV entries, for which the words of all
//! participants are kept until all have answered (128 times the storage) *\[chosen\]*. The master's accumulators start
//! with the initial value, so that it enters once a reduction. Without one, and at all other engines, they start with
//! the first operand unchanged, as if it met the operation's identity, -0 and NaN included *\[chosen\]*.
//!
//! Generation: every operation in a pipeline carries the generation of its context, and is dropped if the context has
//! begun a new run since. A message whose run ended while it was tracked is refused as `duplicate`. A message that is
//! not a participant's answer to the present run waits until its context is neither in the tracking pipeline nor on its
//! way to the reduction unit. So messages take effect one after the other *\[chosen\]*.
//!
//! Waves have the stages of the [tracking store](super::tracking), and under `ce.tree` the registers of the reduction unit, a tree
//! of two ports (the accumulator's word is port 0), named as [`stage_waves`](watershed_fabric::stage_waves) says, with `cc_id`, `run` and `word` of each.
//!
//! Requirements: B-CE-1 to B-CE-9, B-ERR-1 to B-ERR-4 (`pbv.md`); paragraphs 96, 97, 141 to 147.
//!
//! ```
//! use watershed_arith::{DType, Op};
//! use watershed_pbv::Engine;
//! use watershed_pbv::ce::{Ce, CeCfg, CeCx};
//! use watershed_pbv::engine::EngineCfg;
//! use watershed_pbv::packet::{Header, Message, Packet};
//! use watershed_pbv::plan::{Branch, Collective, tables};
//!
//! // A sum of one word over the nodes 1 and 2, by the engine of switch 0.
//! let collective = Collective::all_reduce(0, 1, Branch::leaf(0, [1, 2]), Op::Sum, DType::I64, 1);
//! let tables = tables(std::slice::from_ref(&collective)).unwrap();
//! # let mut engine = Engine::new(EngineCfg::of(0), 0);
//! # engine.side_port(0, tables.engines[&(0, 0)].clone());
//! let table = &engine.registers().table;
//! let mut ce = Ce::new(CeCfg { unit_stages: 4, ..CeCfg::default() });
//! ce.place(0, EngineCfg::of(0).base);
//! let contribution = |node, word| Packet::of(Header { run: 1, ..collective.like(node, &tables) }, vec![word]);
//! let arrivals = [
//!     (10, collective.initialise(&tables)),
//!     (20, collective.command(1)),
//!     (40, contribution(1, 40)),
//!     (50, contribution(2, 2)),
//! ];
//! let mut answered = None;
//! for now in 0..100 {
//!     let packet = arrivals.iter().find(|(cycle, _)| *cycle == now).map(|(_, packet)| packet.clone());
//!     let mut out = Vec::new();
//!     let (refuse, missing, watched) = (&mut |_| {}, &mut |_, _, _| {}, &mut |_: &Header| {});
//!     ce.tick(packet, &mut CeCx { table, now, full: false, leaving: &|_| false, out: &mut out, refuse, missing, watched });
//!     let satisfied = out.into_iter().map(|out| out.packet).find(|packet| packet.header.message == Message::Satisfied);
//!     answered = answered.or(satisfied.map(|packet| (now, packet.words().to_vec())));
//! }
//! // The last message in cycle 50: its verdict in 52, its word four stages later.
//! assert_eq!(answered, Some((56, vec![42])));
//! ```

mod admission;
mod answer;
mod forward;
mod groups;
mod memory;
mod recovery;
mod reduction;
mod set_up;
mod unmerged;
mod waves;

use std::collections::VecDeque;
use std::hash::Hasher;
use watershed_state::state;

pub use super::context::{Context, State};
pub use super::tracking::{Hazard, Label, Request, Track, TrackOp, TrackResult, Tracker, Verdict};

use super::packet::{Body, Control, Header, Message, NO_DEVICE, Packet, Status};
use super::tables::{ENGINE_BASE, ENGINE_SPAN, PbvTable, engine_tag};
use memory::Memory;
use reduction::Feed;
use watershed_arith::stages::TreeStages;
use watershed_arith::{Op, Tree, TreeCfg};
use watershed_fabric::stage_waves::TagField;
use watershed_kernel::{Cycle, Digest};

/// Parameters of a collective engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct CeCfg {
    /// Contexts stored at once, 1 to 4095.
    pub contexts: u16,
    /// Hazard handling.
    pub hazard: Hazard,
    /// Clock stages of the reduction unit, 1 to 6.
    pub unit_stages: u8,
    /// Reduction units side by side, each for a word a cycle, from 1.
    pub units: u8,
    /// Messages with words that wait for the reduction unit, from which on nothing is taken.
    pub feeds: u8,
    /// Accesses to each memory in a cycle, from 1.
    pub memory_ports: u8,
}

impl Default for CeCfg {
    fn default() -> Self {
        CeCfg { contexts: 64, hazard: Hazard::Forward, unit_stages: 4, units: 1, feeds: 2, memory_ports: 2 }
    }
}

/// Where copies of a message go.
#[derive(Clone, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum Target {
    /// To the device in the header.
    Header,
    /// To these entries of the PBV table, ascending, each copy with its P_ID; not to the device `skip`.
    Entries {
        /// Entries.
        pbv: u128,
        /// Device that gets none, or [`NO_DEVICE`].
        skip: u16,
    },
}

/// A message that leaves the engine: one or many copies.
#[derive(Clone, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Outgoing {
    /// The frame; the output queue fills in the destination of copies.
    pub packet: Packet,
    /// Where it goes.
    pub target: Target,
}

/// A message whose tracking verdict is awaited.
#[derive(Clone, Debug, watershed_state::Saved)]
struct DeferredMessage {
    words: Vec<u64>,
    header: Header,
}

/// What a message does to the tracking store, and what waits for the verdict.
type TrackingStep = Option<(Request, Option<DeferredMessage>)>;

/// A message that was accepted, for golden checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct AcceptedMessage {
    /// Which context.
    pub cc_id: u16,
    /// Which run of it.
    pub run: u32,
    /// Generation of the context: a run can begin anew.
    pub generation: u32,
    /// When.
    pub cycle: Cycle,
    /// PBV entry of the sender.
    pub entry: u8,
    /// The sender.
    pub device: u16,
    /// It brought words, or a barrier's arrival.
    pub whole: bool,
}

/// The collective engine.
#[derive(Clone, Debug)]
pub struct Ce {
    cfg: CeCfg,
    /// Slot of every CC_ID, plus one.
    index: Vec<u16>,
    contexts: Vec<Option<Context>>,
    tracker: Tracker,
    awaited: VecDeque<Option<DeferredMessage>>,
    trees: Vec<Tree>,
    /// Slot and word of what is in the reduction unit, and the cycles until it is written.
    in_unit: VecDeque<(u16, u16, u8)>,
    feeds: VecDeque<Feed>,
    /// Entries of the tracking store that are loaded again (armed again after satisfied).
    loads: VecDeque<Request>,
    memory: Memory,
    /// Number of the last generation of a context.
    generation: u32,
    /// No watchdog is due before.
    alarm: Cycle,
    /// A context with a deadline, if there is one.
    guarded: usize,
    /// The contributions with their senders, in the order of the verdicts, if they are recorded.
    record: Option<Vec<AcceptedMessage>>,
    /// Contexts, runs and generations that were answered, and when, if they are recorded.
    answered: Vec<(u16, u32, u32, Cycle)>,
    /// Contexts and runs in which a device was asked again, if they are recorded.
    asked: Vec<(u16, u32)>,
    /// The devices that were reported missing, with context and run, if they are recorded.
    reported: Vec<(u16, u32, u16)>,
    /// Device and base offset of this engine.
    me: (u16, u16),
    /// The registers of the reduction unit, while a waveform shows them.
    stages: Option<Box<WatchedUnits>>,
}

/// The registers of the reduction units, while a waveform shows them.
#[derive(Clone, Debug)]
struct WatchedUnits {
    units: Vec<TreeStages>,
}

state!(WatchedUnits { each: units });

state!(Ce {
    saved: index, contexts, tracker, awaited, trees, in_unit, feeds, loads, memory, generation, alarm, guarded, record, answered, asked, reported;
    watched: stages;
    built: cfg, me
});

/// What a tick may use beside the engine's own registers.
pub struct CeCx<'a> {
    /// The PBV table and settings.
    pub table: &'a PbvTable,
    /// Present cycle.
    pub now: Cycle,
    /// There is no room for messages that nobody waits for: watchdogs wait.
    pub full: bool,
    /// Whether messages of a context still wait to leave: its watchdog is set anew.
    pub leaving: &'a dyn Fn(u16) -> bool,
    /// Messages that leave.
    pub out: &'a mut Vec<Outgoing>,
    /// Counts a refusal.
    pub refuse: &'a mut dyn FnMut(Status),
    /// Notes a device that did not answer: context, device, status.
    pub missing: &'a mut dyn FnMut(u16, u16, Status),
    /// Notes that the watchdog of a context was set; the header is like those of its messages.
    pub watched: &'a mut dyn FnMut(&Header),
}

impl Ce {
    /// An engine without contexts.
    pub fn new(cfg: CeCfg) -> Ce {
        let contexts = cfg.contexts.clamp(1, 4095);
        Ce {
            cfg,
            index: vec![0; 4096],
            contexts: vec![None; usize::from(contexts)],
            tracker: Tracker::new(contexts, cfg.hazard),
            awaited: VecDeque::from([None, None]),
            trees: vec![Tree::new(TreeCfg { radix: 2, unit_stages: cfg.unit_stages }); usize::from(cfg.units.max(1))],
            in_unit: VecDeque::new(),
            feeds: VecDeque::new(),
            loads: VecDeque::new(),
            memory: Memory::default(),
            generation: 0,
            alarm: Cycle::MAX,
            guarded: 0,
            record: None,
            answered: Vec::new(),
            asked: Vec::new(),
            reported: Vec::new(),
            me: (NO_DEVICE, 0),
            stages: None,
        }
    }

    /// Keeps a record of who entered what from now on.
    pub fn keep_record(&mut self) {
        self.record = Some(Vec::new());
    }

    /// Contexts and runs in which this engine asked a device again; empty without [`keep_record`](Self::keep_record).
    pub fn asked(&self) -> &[(u16, u32)] {
        &self.asked
    }

    /// Contexts, runs and who was reported missing; empty without [`keep_record`](Self::keep_record).
    pub fn reported(&self) -> &[(u16, u32, u16)] {
        &self.reported
    }

    /// Contexts, runs and generations that it answered, and when; empty without [`keep_record`](Self::keep_record).
    pub fn answered(&self) -> &[(u16, u32, u32, Cycle)] {
        &self.answered
    }

    /// Who entered what, in the order of the verdicts; empty without [`keep_record`](Self::keep_record).
    pub fn record(&self) -> &[AcceptedMessage] {
        self.record.as_deref().unwrap_or_default()
    }

    /// Says which device and offset this engine has.
    pub fn place(&mut self, device: u16, base: u16) {
        self.me = (device, base);
    }

    /// A context by its number.
    pub fn find(&self, cc_id: u16) -> Option<&Context> {
        self.contexts[usize::from(self.slot(cc_id)?)].as_ref()
    }

    /// All contexts that are stored.
    pub fn contexts(&self) -> impl Iterator<Item = &Context> {
        self.contexts.iter().flatten()
    }

    fn slot(&self, cc_id: u16) -> Option<u16> {
        self.index[usize::from(cc_id & 0xfff)].checked_sub(1)
    }

    fn at(&mut self, slot: u16) -> &mut Context {
        self.contexts[usize::from(slot)].as_mut().expect("a slot in use")
    }

    /// Whether a message can be taken in this cycle. The tracking pipeline must be free for it, and the reduction unit
    /// at most a message behind. For a message that is not a participant's answer to the present run, neither may hold
    /// anything of its context.
    pub fn ready(&self, header: &Header) -> bool {
        if self.feeds.len() >= usize::from(self.cfg.feeds) || !self.loads.is_empty() || !self.tracking_has_port() {
            return false;
        }
        let Some(slot) = self.slot(header.cc_id) else { return true };
        let context = self.contexts[usize::from(slot)].as_ref();
        let answers = matches!(header.message, Message::Contribution | Message::Partial | Message::Failure);
        if answers && context.is_some_and(|context| context.like.run == header.run) {
            return self.tracker.ready(slot);
        }
        let words = context.is_some_and(|context| context.under_way > 0);
        !self.tracker.holds(slot) && !words && !self.in_unit.iter().any(|&(busy, ..)| busy == slot)
    }

    /// Whether a port of the tracking store is left for a read in this cycle.
    fn tracking_has_port(&self) -> bool {
        self.cfg.memory_ports > 1 || self.tracker.modify_q.is_none()
    }

    /// Messages that may come of what is under way, of one that is taken in this cycle, and of watchdogs.
    pub fn pending_messages(&self) -> u32 {
        let messages =
            self.feeds.len() + self.awaited.iter().flatten().count() + 1 + usize::from(self.cfg.memory_ports);
        messages as u32 * MOST_AT_ONCE
    }

    /// Whether no register would change without a message or a deadline.
    pub fn is_idle(&self) -> bool {
        self.tracker.is_idle()
            && self.feeds.is_empty()
            && self.in_unit.is_empty()
            && self.loads.is_empty()
            && self.memory.is_idle()
            && self.awaited.iter().all(Option::is_none)
    }

    /// Whether a clock of this cycle without a message changes nothing.
    pub fn is_quiescent(&self, now: Cycle) -> bool {
        self.is_idle() && now < self.alarm
    }

    /// A cycle before which no watchdog is due.
    pub fn deadline(&self) -> Option<Cycle> {
        (self.alarm != Cycle::MAX).then_some(self.alarm)
    }

    /// Takes into a digest what decides what it does next.
    pub(super) fn digest<H: Hasher>(&self, to: &mut Digest<'_, H>) {
        for context in &self.contexts {
            match context {
                Some(context) => context.digest(to),
                None => to.of("free"),
            }
        }
        if !self.is_idle() {
            // Whatever is in a pipeline knows its generation.
            to.of(self.contexts().map(|context| context.generation).collect::<Vec<_>>());
            to.of((&self.tracker, &self.awaited, &self.in_unit, &self.feeds, &self.loads, &self.trees, &self.memory));
        }
    }

    /// Whether a watchdog of a context runs.
    pub fn expects(&self, cc_id: u16, now: Cycle) -> bool {
        let deadline = self.find(cc_id).and_then(|context| context.deadline);
        // One that has come is acted on when the scan is there.
        deadline.is_some_and(|cycle| cycle > now || self.memory.scan.is_some())
    }

    /// A context begins anew: nothing that was issued before concerns it any more.
    fn restart_context(&mut self, slot: u16) -> &mut Context {
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let context = self.contexts[usize::from(slot)].as_mut().expect("a slot in use");
        context.clear();
        context.generation = generation;
        self.memory.clear(slot, context, self.trees.len() as u32);
        context
    }

    /// An operation on the tracking entry of a context, of its present generation.
    fn request(&mut self, slot: u16, op: TrackOp, message: Option<Message>) -> Request {
        let Context { generation, cc_id, like, .. } = self.at(slot);
        let label = Label { message: message.map_or(0, Message::number), cc_id: *cc_id, run: like.run };
        Request { slot, generation: *generation, op, label }
    }

    /// The tag by which others know that this engine sent a frame.
    fn tag(&self) -> u16 {
        engine_tag(self.me.1)
    }

    /// One clock: at most one message in.
    pub fn tick(&mut self, input: Option<Packet>, cx: &mut CeCx<'_>) {
        let request = input.and_then(|packet| self.take(packet, cx));
        let (operation, awaited) = match request {
            Some((request, awaited)) => (Some(request), awaited),
            None if self.tracking_has_port() => (self.loads.pop_front(), None),
            None => (None, None),
        };
        let judged = self.tracker.tick(operation);
        self.awaited.push_back(awaited);
        let awaited = self.awaited.pop_front().expect("one for every stage");
        if let Some(judged) = judged {
            self.apply_verdict(judged, awaited, cx);
        }
        self.reduce(cx);
        self.watch(cx);
        self.stop_alarm();
    }

    // -------------------------------------------------------------------------------------------------- messages in

    fn refuse(&self, header: &Header, status: Status, cx: &mut CeCx<'_>) {
        (cx.refuse)(status);
        if cx.table.report_errors && !header.posted && header.message != Message::Error {
            cx.out.push(self.error_to(header, status));
        }
    }

    fn error_to(&self, header: &Header, status: Status) -> Outgoing {
        let mut answer = Header::new(Message::Error, self.me.0, header.requester, reply_offset(header));
        answer.status = status;
        (answer.cc_id, answer.tlp.tc) = (header.cc_id, header.tlp.tc);
        answer.p_id = header.p_id;
        answer.tag = self.tag();
        answer.run = header.run;
        answer.p_count = u16::from(header.message.number());
        answer.dmu_id = header.dmu_id;
        Outgoing { packet: Packet::bare(answer), target: Target::Header }
    }

    /// Looks a message up; returns what it does to the tracking store.
    fn take(&mut self, packet: Packet, cx: &mut CeCx<'_>) -> TrackingStep {
        let header = packet.header;
        if header.tlp.poisoned {
            self.refuse(&header, Status::Poisoned, cx);
            return None;
        }
        if header.message == Message::Initialisation {
            return self.initialise(&packet, cx);
        }
        let Some(slot) = self.slot(header.cc_id) else {
            self.refuse(&header, Status::UnknownContext, cx);
            return None;
        };
        if let Err(status) = self.admit(slot, &header, cx) {
            self.refuse(&header, status, cx);
            return None;
        }
        match header.message {
            Message::Control => self.control(slot, &header, cx),
            Message::Command | Message::Multicast => self.command(slot, packet, cx),
            Message::Contribution | Message::Partial => self.contribution(slot, packet, cx),
            Message::Satisfied => {
                self.descend(slot, &packet, cx);
                None
            }
            Message::Error => {
                self.hear(slot, packet, cx);
                None
            }
            Message::Failure => {
                // An end point that cannot contribute answers with nothing.
                let status = if header.status == Status::Ok { Status::Failed } else { header.status };
                self.contribution(slot, Packet::bare(Header { error: true, status, ..header }), cx)
            }
            Message::Retry => self.repeat(slot, &header, cx),
            _ => {
                self.refuse(&header, Status::WrongType, cx);
                None
            }
        }
    }

    /// A header of a copy that goes down: from this engine.
    fn down(&self, mut header: Header) -> Header {
        header.requester = self.me.0;
        header.tag = self.tag();
        header
    }

    fn control(&mut self, slot: u16, header: &Header, cx: &mut CeCx<'_>) -> TrackingStep {
        if header.control == Control::Close {
            self.give_up_run(slot, header, cx);
            return None;
        }
        let copy = self.down(*header);
        let renews = !matches!(header.control, Control::Pause | Control::Restart);
        let context = if renews { self.restart_context(slot) } else { self.at(slot) };
        let mut load = false;
        match header.control {
            Control::Start | Control::Reset | Control::Activate => {
                (context.state, context.like.run) = (State::Active, header.run);
                load = true;
            }
            Control::Pause if context.state == State::Active => context.state = State::Paused,
            Control::Restart if context.state == State::Paused => context.state = State::Active,
            Control::Stop | Control::Inactivate => context.state = State::Inactive,
            Control::Pause | Control::Restart | Control::Remove | Control::Close => {}
        }
        let (stored, cc_id) = (context.stored, context.cc_id);
        let packet = Packet::bare(copy);
        let pbv = if header.engines_only { stored.down & cx.table.switches } else { stored.down };
        cx.out.push(Outgoing { packet, target: Target::Entries { pbv, skip: header.dmu_id } });
        if header.control == Control::Remove {
            self.index[usize::from(cc_id)] = 0;
            self.contexts[usize::from(slot)] = None;
            return None;
        }
        if header.control == Control::Restart {
            self.finish(slot, cx);
            self.release(slot, cx);
        }
        let load = load.then_some(TrackOp::Load(Track { pbv: stored.pbv, p_count: stored.p_count }))?;
        Some((self.request(slot, load, Some(header.message)), None))
    }

    fn command(&mut self, slot: u16, packet: Packet, cx: &mut CeCx<'_>) -> TrackingStep {
        let header = packet.header;
        let context = self.at(slot);
        if context.state == State::Inactive {
            self.refuse(&header, Status::Inactive, cx);
            return None;
        }
        let multicast = header.message == Message::Multicast;
        if !multicast && (header.op, header.dtype) != (context.like.op, context.like.dtype) {
            self.refuse(&header, Status::Mismatch, cx);
            return None;
        }
        // Armed again, a context has had its command, whose sender may not have the answer.
        let (commanded, last) = (context.commanded, context.data.last.as_ref().map(|last| last.header.run));
        if !header.posted && (commanded || last.is_some()) && context.like.message == header.message {
            let behind = context.like.run.wrapping_sub(header.run) as i32;
            if behind > 0 && last != Some(header.run) {
                self.refuse(&header, Status::Duplicate, cx);
                return None;
            }
            if behind > 0 || behind == 0 && commanded {
                // The same command once more: who sends it has not got the answer.
                self.answer_again(slot, &header, cx);
                return None;
            }
        }
        let stored = context.stored;
        let mut load = None;
        let early = context.early && context.like.run == header.run;
        if early {
            (context.early, context.commanded, context.retries) = (false, true, 0);
            context.like = header;
            (context.peers.requester, context.peers.requester_offset) = (header.requester, reply_offset(&header));
            (context.peers.p_id, context.peers.dmu_id) = (header.p_id, header.dmu_id);
            self.guard(slot, cx);
        } else if !header.posted {
            context.peers.requester = header.requester;
            context.peers.requester_offset = reply_offset(&header);
            context.peers.p_id = header.p_id;
            context.peers.dmu_id = header.dmu_id;
            context.like = header;
            context.state = State::Active;
            let context = self.restart_context(slot);
            context.commanded = true;
            if multicast {
                context.data.cast = packet.words().to_vec();
            }
            self.guard(slot, cx);
            // The source of a multicast has the data: it has nothing to acknowledge.
            let source = cx.table.entries().find(|&(_, device)| multicast && device == header.dmu_id);
            let pbv = stored.pbv & !source.map_or(0, |(entry, _)| 1 << entry);
            load = Some(TrackOp::Load(Track { pbv, p_count: pbv.count_ones() as u16 }));
        }
        let packet = Packet { header: self.down(header), body: packet.body };
        cx.out.push(Outgoing { packet, target: Target::Entries { pbv: stored.down, skip: header.dmu_id } });
        self.release(slot, cx);
        if early {
            let me = self.me;
            let context = self.at(slot);
            if matches!(context.state, State::Waiting | State::Done) {
                // Its time was over before the command came, whose sender may not know the response.
                let packet = context.response(Message::Partial, me);
                cx.out.push(Outgoing { packet, target: Target::Header });
            }
            // What was there before may have been everything.
            self.finish(slot, cx);
        }
        load.map(|load| (self.request(slot, load, Some(header.message)), None))
    }

    fn contribution(&mut self, slot: u16, packet: Packet, cx: &mut CeCx<'_>) -> TrackingStep {
        let mut header = packet.header;
        if let Some(entry) = self.expected_of(slot, &header, cx) {
            header.p_id = entry;
        } else if self.handed_on(slot, cx) >> header.p_id & 1 != 0 {
            self.hand_on(slot, packet, cx);
            return None;
        }
        let Body::Words(words) = packet.body else { unreachable!("decoding gives words") };
        let context = self.at(slot);
        let like = context.like;
        let barrier = like.op == Op::Barrier || context.is_multicast();
        // The source is sent no command: its contribution may be here before the command has come down to this engine.
        let fresh = context.state == State::Done || context.state == State::Active && context.is_untouched();
        let begins = header.run == like.run.wrapping_add(1) && header.requester == header.dmu_id && fresh;
        let wanted = if barrier { 0 } else { usize::from(context.stored.words) };
        let status = if context.state == State::Inactive {
            Some(Status::Inactive)
        } else if cx.table.validate && cx.table.device(header.p_id) != Some(header.requester)
            || context.stored.pbv >> header.p_id & 1 == 0
        {
            Some(Status::UnknownDevice)
        } else if cx.table.validate && cx.table.is_switch(header.p_id) != (header.message == Message::Partial) {
            Some(Status::WrongType)
        } else if like.message != Message::Multicast && (header.op, header.dtype) != (like.op, like.dtype) {
            Some(Status::Mismatch)
        } else if words.len() != wanted && !(header.error && words.is_empty()) {
            Some(Status::BadLength)
        } else if !begins && (header.run != like.run || matches!(context.state, State::Waiting | State::Done)) {
            Some(Status::Duplicate)
        } else {
            None
        };
        if let Some(status) = status {
            self.refuse(&header, status, cx);
            return None;
        }
        let awaited = Some(DeferredMessage { words, header });
        if begins {
            let context = self.restart_context(slot);
            (context.state, context.early, context.like.run) = (State::Active, true, header.run);
            let track = Track { pbv: context.stored.pbv, p_count: context.stored.p_count };
            self.guard(slot, cx);
            return Some((self.request(slot, TrackOp::Begin(track, header.p_id), Some(header.message)), awaited));
        }
        if context.deadline.is_none() {
            self.guard(slot, cx);
        }
        Some((self.request(slot, TrackOp::Clear(header.p_id), Some(header.message)), awaited))
    }

    // ------------------------------------------------------------------------------------------------ verdicts, data

    fn apply_verdict(&mut self, judged: TrackResult, awaited: Option<DeferredMessage>, cx: &mut CeCx<'_>) {
        let TrackResult { request: Request { slot, generation, op, .. }, track, verdict } = judged;
        let context = self.contexts[usize::from(slot)].as_mut().filter(|context| context.generation == generation);
        let Some(context) = context else {
            // Its run ended while the message was being tracked: another run must not have it.
            if let Some(DeferredMessage { header, .. }) = awaited {
                self.refuse(&header, Status::Duplicate, cx);
            }
            return;
        };
        context.track = track;
        let (TrackOp::Clear(entry) | TrackOp::Begin(_, entry)) = op else {
            // A multicast whose only receiver would be its source is over at once.
            let answers = context.stored.pbv != 0 || context.is_master();
            if verdict == Verdict::Satisfied && answers && context.is_multicast() {
                context.satisfied = true;
                self.finish(slot, cx);
            }
            return;
        };
        let DeferredMessage { words, header } = awaited.expect("a message was kept for its verdict");
        match verdict {
            Verdict::Duplicate => return self.refuse(&header, Status::Duplicate, cx),
            Verdict::CountZero => return self.refuse(&header, Status::CountZero, cx),
            Verdict::Accepted | Verdict::Satisfied => {}
        }
        if context.satisfied {
            // Its time was over before: who is missing has been said, and the sum is being closed.
            return self.refuse(&header, Status::TimedOut, cx);
        }
        if let Some(record) = &mut self.record {
            let whole =
                header.message != Message::Failure && (!words.is_empty() || context.data.accumulators.is_empty());
            let (cc_id, run, device) = (context.cc_id, header.run, header.requester);
            record.push(AcceptedMessage { cc_id, run, generation, cycle: cx.now, entry, device, whole });
        }
        if header.message == Message::Failure {
            context.missing.insert(header.requester);
            (cx.missing)(context.cc_id, header.requester, header.status);
            if self.record.is_some() {
                self.reported.push((context.cc_id, header.run, header.requester));
            }
        }
        context.flags |= header.flags;
        if header.error {
            context.fail(header.status);
        }
        context.satisfied |= verdict == Verdict::Satisfied;
        let satisfied = context.satisfied;
        if context.hands_to_source() {
            self.hand_to_source(slot, entry, Packet::of(header, words), cx);
            return self.finish(slot, cx);
        }
        if context.stored.pbv_order && !words.is_empty() {
            self.keep(slot, entry, words);
        } else {
            self.feed(slot, words);
        }
        if satisfied {
            self.feed_kept(slot);
        }
        self.finish(slot, cx);
    }

    /// The tracking store, for checks.
    pub fn tracker(&self) -> &Tracker {
        &self.tracker
    }

    /// The parameters.
    pub fn cfg(&self) -> CeCfg {
        self.cfg
    }
}

/// Messages that come of one that is taken, at most: who is missing, the answer to the source, and that to all others; a list of
/// missing devices that is split over several frames counts once *\[chosen\]*.
pub const MOST_AT_ONCE: u32 = 3;

/// What a tag of the reduction unit's stages shows.
pub const STAGE_TAG: [TagField; 3] = [
    TagField { name: "word", low: 0, width: 16 },
    TagField { name: "cc_id", low: 16, width: 12 },
    TagField { name: "run", low: 28, width: 32 },
];

/// Contexts that waves show.
const PROBED_CONTEXTS: usize = 8;

/// Where answers to a message go in the sender's space: an engine's register base, or 0 at an end point. An engine names
/// itself in the tag's top bit *\[chosen\]*.
pub fn reply_offset(header: &Header) -> u16 {
    if header.tag >> 13 & 1 != 0 { ENGINE_BASE + (header.tag >> 8 & 0xf) * ENGINE_SPAN } else { 0 }
}
