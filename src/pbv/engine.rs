//! The packet engine: a credit-terminated bump in the wire of one of a switch's ports (B-STR-1).
//!
//! ```text
//!   port 0: switch                                                            port 1: what lies behind
//!   ══════════╤══════════════════ data path ═══════════════════════╤══════════
//!             │ extract                                     inject │
//!      ┌──────▼──────┐                                     ┌───────┴──────┐
//!      │ interposer  │                                     │ output queue │◀─ route look-up
//!      └──────┬──────┘                                     └───────▲──────┘
//!      ┌──────▼──────────────┐   ┌───────────────────┐             │
//!      │ checker and steering├──▶│ collective engine ├─────────────┤
//!      └──────┬──────────────┘   │ (with multicast)  │             │
//!             │                  └───────────────────┘             │
//!             └──────▶ registers (0xC000) ─────────────────────────┘
//! ```
//!
//! | unit | what it does | cycles |
//! |---|---|---|
//! | interposer | takes frames addressed to this engine out of the data path, flit by flit, and lets all others pass; decides when the flit with the address has arrived | a frame that passes: the half link + 1 + a flit |
//! | checker | collects a frame; when its tail has arrived, decodes and checks it; dispatches by message and address | with the tail |
//! | collective engine | see [`ce`](super::ce) | from the next cycle on |
//! | registers | a frame a cycle: write; read and answer | 1 |
//! | output queue | engines work in planes: the k-th engine of a switch speaks to the k-th engines of others *\[chosen\]*; a message is one entry, however many copies it has; copies leave in the order of PBV entries, a flit a cycle, between those of messages of a higher [class](super::priority); the look-up of a copy overlaps the copy before | 1 |
//!
//! | parameter | default | unit | effect |
//! |---|---|---|---|
//! | `base` | 0xC000 | | offset of this engine's registers in its switch's space |
//! | `inbox` | 1024 | flits | frames that are taken or checked and wait for the collective engine or the registers; a frame that does not fit is not begun, so neighbours see the engine's flow control |
//! | `output` | [`messages_of`] | messages, refusals left out: they have [`MOST_REFUSALS`] places of their own | while work under way in the engine may fill the output queue, no message leaves the inbox, no register is read, and watchdogs wait |
//! | `ce.memory_ports` | 2 | accesses a cycle | a configuration frame replaces the 128 entries of the table at this rate; until then no message is taken, looked up, or written to a register |
//!
//! Injected frames and passing frames share a port only between frames: a port's channel belongs to one frame from head
//! to tail. When both want to start, they take turns *\[chosen\]*. Background traffic, on channels behind that of
//! frames, passes untouched; where it and frames want the same output, they take turns flit by flit.
//!
//! The engine causes no deadlock. The output queue has room for four messages of every context that runs at it
//! ([`messages_of`]; less is refused before cycle 0), so frames that others wait for cannot fill it. A context does not ask or give
//! up by time-out while a message of it still waits to leave *\[chosen\]*, and refusals take no place of these messages. The engine's
//! input waits for its output only while frames leave. An entry holds a message, not its copies: the frames that an
//! initialisation, a configuration or a list of missing devices is split into are one entry *\[chosen\]*. Refusals
//! beyond [`MOST_REFUSALS`] are counted and not sent.
//!
//! Limitation: groups that are released together may exceed `output` by their own messages.
//!
//! Limitation: frames are checked whole before they are used (store and forward): each engine on the way costs the time of
//! a frame.
//!
//! Requirements: B-STR-1, B-STR-2, B-HI-5, B-HI-6 (`pbv.md`); paragraphs 91, 92.
//!
//! ```
//! use watershed_arith::{DType, Op};
//! use watershed_pbv::Engine;
//! use watershed_pbv::engine::EngineCfg;
//! use watershed_pbv::packet::{Header, Message, Packet};
//! use watershed_pbv::plan::{Branch, Collective, tables};
//! use watershed_pbv::system::Spec;
//!
//! # let directory = Spec::regular(1, 2, 0x80, Vec::new()).directory();
//! // A sum of one word over the nodes 1 and 2, by the engine of switch 0.
//! let collective = Collective::all_reduce(0, 1, Branch::leaf(0, [1, 2]), Op::Sum, DType::I64, 1);
//! let tables = tables(std::slice::from_ref(&collective)).unwrap();
//! let mut engine = Engine::new(EngineCfg::of(0), 0);
//! engine.side_port(0, tables.engines[&(0, 0)].clone()); // the PBV table, written before cycle 0
//!
//! let contribution = |node, word| {
//!     let like = Header { run: 1, requester: node, ..collective.like(node, &tables) };
//!     Packet::of(like, vec![word])
//! };
//! let arrivals = [
//!     (10, collective.initialise(&tables)),
//!     (20, collective.command(1)),
//!     (40, contribution(1, 40)),
//!     (50, contribution(2, 2)),
//! ];
//! let mut sent = Vec::new();
//! for now in 0..100 {
//!     for (_, packet) in arrivals.iter().filter(|(cycle, _)| *cycle == now) {
//!         engine.receive(&packet.flits().unwrap(), now);
//!     }
//!     engine.step(now);
//!     while let Some((header, words)) = engine.next_frame(&directory) {
//!         let packet = Packet::from_flits(&words).unwrap();
//!         sent.push((now, header.device, header.message, packet.words().to_vec()));
//!     }
//! }
//! sent.sort();
//! let expected = [
//!     (10, 2, Message::Initialisation, vec![]), // node 1 is the source: it knows
//!     (20, 2, Message::Command, vec![]),
//!     (56, 1, Message::Satisfied, vec![42]),
//!     (56, 2, Message::Satisfied, vec![42]),
//! ];
//! assert_eq!(sent, expected);
//! ```

use std::collections::VecDeque;
use std::hash::Hasher;

use super::ce::{Ce, CeCfg, CeCx, Outgoing, Target, reply_offset};
use super::checker::{CheckOutcome, check};
pub use super::cycle_record::{CycleRecord, PortRecord};
use super::event::{Event, Log, StepKind};
use super::metrics::{INBOX, MOST_CHANNELS, OUTPUT, QUEUES};
pub use super::output::MOST_REFUSALS;
use super::output::OutputQueue;
use super::packet::{Body, ConfigRecord, Header, Message, NO_DEVICE, PBV_ENTRIES, Packet, Status, words_by_length};
use super::priority::ClassArbiter;
use super::reports::Reporter;
use super::routes::{Directory, FRAMES, address_of, route_flits, send_flit, whole};
use super::tables::{ENGINE_BASE, ENGINE_SPAN, Owner, Owners, RegisterBlock, engine_tag, following};
use watershed_fabric::{Block, FlitSize, Io, Reassembly};
use watershed_kernel::{Cycle, Digest, Wake};
pub use watershed_pbv_interface::queues::messages_of;
use watershed_probe::Scope;
use watershed_state::state;

/// Parameters of a packet engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct EngineCfg {
    /// Device ID of its switch.
    pub device: u16,
    /// Offset of its registers.
    pub base: u16,
    /// Which part of a larger engine it is (paragraph 91): 0 is the part that others address; most engines have only
    /// this one.
    pub part: u8,
    /// Frames in a row that may go past an older one of a lower traffic class; 0: any number.
    pub priority_bound: u8,
    /// Flits of frames that wait for the collective engine.
    pub inbox: usize,
    /// Messages that wait to leave.
    pub output: u32,
    /// What a flit carries, which the system says: the unit of `inbox`.
    pub cut: FlitSize,
    /// Its collective engine.
    pub ce: CeCfg,
}

impl EngineCfg {
    /// The first engine of a switch, with defaults.
    pub fn of(device: u16) -> EngineCfg {
        EngineCfg {
            device,
            base: ENGINE_BASE,
            part: 0,
            priority_bound: 16,
            inbox: 1024,
            output: 256,
            cut: FlitSize::WORD,
            ce: CeCfg::default(),
        }
    }
}

/// What a side's channel is doing with the frame it is in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, watershed_state::Saved)]
enum FrameState {
    #[default]
    Between,
    Passing,
    Extracted,
}

// ------------------------------------------------------------------------------------------------- interposer

/// Whose turn it is at an output that frames and background traffic share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, watershed_state::Saved)]
enum Turn {
    #[default]
    Frames,
    Traffic,
}

/// Extraction and passing: one state for each side and channel.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
struct Interposer {
    /// By output; who had it last lets the other go first.
    turns: [Turn; 2],
    ways: [[FrameState; MOST_CHANNELS]; 2],
    /// Words of the frame being extracted.
    collecting: [[Reassembly; MOST_CHANNELS]; 2],
    /// The output channel is in the middle of a frame that passes.
    passing: [[bool; MOST_CHANNELS]; 2],
    /// An injected frame waited while one passed: it starts next.
    yields: [bool; 2],
    /// Flits of the inbox that frames being extracted will take.
    reserved: [[usize; MOST_CHANNELS]; 2],
}

impl Interposer {
    /// One clock of the data path. `room`: flits the inbox can still take, and those it takes when it is empty. `injecting`: per port, whether an injected
    /// frame holds [`FRAMES`]. `yields`: ports at which traffic lets an injected frame go first. Complete extracted frames are
    /// pushed to `frames`, with the port they came through.
    fn tick(
        &mut self,
        io: &mut Io<'_>,
        mine: impl Fn(u32) -> bool,
        (room, most): (usize, usize),
        (injecting, yields): ([bool; 2], [bool; 2]),
        cut: FlitSize,
        frames: &mut Vec<(u16, Vec<u64>)>,
    ) -> bool {
        let vcs = io.vcs();
        let mut moved = false;
        for from in 0..2u16 {
            let to = 1 - from;
            let (side, out) = (usize::from(from), usize::from(to));
            let mut extracted = false;
            // Who had the output last goes last; the channels of traffic take turns by the cycle.
            let traffic = vcs.unicast - 1;
            let turn = (io.now() % u64::from(traffic.max(1))) as u8;
            let others = (turn..traffic).chain(0..turn).map(|channel| 1 + channel);
            let frames_first = self.turns[out] == Turn::Frames || yields[out];
            let (early, late) = if frames_first { (Some(FRAMES), None) } else { (None, Some(FRAMES)) };
            for channel in early.into_iter().chain(others).chain(late) {
                if channel != FRAMES && yields[out] {
                    continue;
                }
                let vc = vcs.set + channel;
                let at = usize::from(channel);
                let Some(flit) = io.head(from, vc) else { continue };
                let between = self.ways[side][at] == FrameState::Between;
                // Whose frame it is stands behind its head flit.
                let frame = channel == FRAMES;
                let behind = route_flits(cut) - 1;
                let addressed = if between && frame { io.behind_head(from, vc, behind) } else { None };
                if between && frame && addressed.is_none() {
                    continue;
                }
                if addressed.is_some_and(|flit| mine(address_of(&flit, io.more_behind(from, vc, behind)))) {
                    // A damaged length may be more than any frame has: what is longer than the inbox has all of it to itself.
                    let length = cut.flits(8 * words_by_length(flit.word)).min(most);
                    if room < length + self.reserved.iter().flatten().sum::<usize>() {
                        continue;
                    }
                    self.reserved[side][at] = length;
                    self.ways[side][at] = FrameState::Extracted;
                }
                if self.ways[side][at] == FrameState::Extracted {
                    if extracted {
                        continue;
                    }
                    extracted = true;
                    self.collecting[side][at].push(cut, flit.word, io.more(from, vc));
                    io.take(from, vc);
                    moved = true;
                    if flit.tag.tail() {
                        self.ways[side][at] = FrameState::Between;
                        self.reserved[side][at] = 0;
                        frames.push((from, whole(cut, &std::mem::take(&mut self.collecting[side][at]))));
                    }
                    continue;
                }
                let starts = self.ways[side][at] == FrameState::Between;
                let free = if starts {
                    !(frame && (injecting[out] || self.yields[out])) && io.can_start(to, vc)
                } else {
                    io.can_send(to, vc)
                };
                if !free {
                    continue;
                }
                io.pass(from, to, vc);
                moved = true;
                self.ways[side][at] = if flit.tag.tail() { FrameState::Between } else { FrameState::Passing };
                self.passing[out][at] = !flit.tag.tail();
                self.turns[out] = if frame { Turn::Traffic } else { Turn::Frames };
            }
        }
        moved
    }

    /// Whether nothing stands in the middle.
    fn is_between(&self) -> bool {
        self.ways.iter().flatten().all(|&way| way == FrameState::Between)
    }
}

// ------------------------------------------------------------------------------------------------------ engine

/// A packet engine.
#[derive(Clone, Debug)]
pub struct Engine {
    cfg: EngineCfg,
    /// Number among the system's engines.
    number: u32,
    interposer: Interposer,
    /// Frames that were checked, with their flits.
    inbox: VecDeque<(Packet, usize)>,
    /// Frames for the registers, which are served one after the other.
    for_registers: VecDeque<(Packet, usize)>,
    /// Flits of both.
    inbox_flits: usize,
    /// Which of them goes next.
    arbiter: ClassArbiter,
    /// From when on the PBV table is written.
    written: Cycle,
    registers: RegisterBlock,
    ce: Ce,
    output: OutputQueue,
    scratch: (Vec<(u16, Vec<u64>)>, Vec<Outgoing>),
    reporter: Reporter,
    /// What comes by the side port, and when all of it is there.
    side_port: Option<(Cycle, ConfigRecord)>,
    /// What its collective engine was given, if that is kept.
    given: Option<Vec<CycleRecord>>,
    /// What it received and sent.
    pub log: Log,
}

state!(Engine {
    saved: interposer, inbox, for_registers, inbox_flits, arbiter, written, registers, ce, output, reporter, side_port, log;
    built: cfg, number, scratch, given
});

impl Engine {
    /// An engine; `number` is its number among the bumps of the plan.
    pub fn new(cfg: EngineCfg, number: u32) -> Engine {
        let mut ce = Ce::new(cfg.ce);
        ce.place(cfg.device, cfg.base);
        Engine {
            cfg,
            number,
            interposer: Interposer::default(),
            inbox: VecDeque::new(),
            for_registers: VecDeque::new(),
            inbox_flits: 0,
            arbiter: ClassArbiter::new(cfg.priority_bound),
            written: 0,
            registers: RegisterBlock::default(),
            ce,
            output: OutputQueue::new(cfg.priority_bound),
            scratch: (Vec::new(), Vec::new()),
            reporter: Reporter::default(),
            side_port: None,
            given: None,
            log: Log::default(),
        }
    }

    /// Its parameters.
    pub fn cfg(&self) -> EngineCfg {
        self.cfg
    }

    /// Its registers.
    pub fn registers(&self) -> &RegisterBlock {
        &self.registers
    }

    /// Keeps a record of what the collective engine takes.
    pub fn keep_record(&mut self) {
        self.ce.keep_record();
    }

    /// Keeps what the collective engine is given from now on; not part of a checkpoint.
    pub fn keep_given(&mut self) {
        self.given = Some(Vec::new());
    }

    /// What the collective engine was given in every cycle in which it was clocked; empty without [`keep_given`](Self::keep_given).
    pub fn given(&self) -> &[CycleRecord] {
        self.given.as_deref().unwrap_or_default()
    }

    /// Configuration out of band: through an SPI-like side port that a management processor drives, whose last bit is there in
    /// this cycle. It costs no cycle of the data path. Tables that are written like that are nobody's in band from the start,
    /// unless an owner is named there.
    pub fn side_port(&mut self, cycle: Cycle, record: ConfigRecord) {
        self.registers.table.owners.table.get_or_insert(Owner::of(NO_DEVICE));
        self.side_port = Some((cycle, record));
        self.shift_in(0);
    }

    /// Who owns the table and the contexts, written over the side port before the run.
    pub fn own(&mut self, owners: Owners) {
        self.registers.table.owners = owners;
    }

    /// Takes over what the side port has brought.
    fn shift_in(&mut self, now: Cycle) {
        if self.side_port.as_ref().is_some_and(|&(cycle, _)| cycle <= now)
            && let Some((_, record)) = self.side_port.take()
        {
            self.registers.configure(&record);
        }
    }

    /// Its collective engine.
    pub fn ce(&self) -> &Ce {
        &self.ce
    }

    /// Reads one of its registers.
    ///
    /// # Errors
    /// [`Status::BadAddress`] if there is none at this offset from the base.
    pub fn read(&self, offset: u16) -> Result<u32, Status> {
        self.registers.read(offset, |id| self.ce.find(id))
    }

    // -------------------------------------------------------------------------------------- checker and steering

    fn refuse(&mut self, header: &Header, status: Status) {
        self.registers.readings.refused[usize::from(status.number())] += 1;
        let silent = header.posted || matches!(header.message, Message::Error | Message::ReadReply);
        if self.registers.table.report_errors && !silent {
            let mut answer = Header::new(Message::Error, self.cfg.device, header.requester, reply_offset(header));
            (answer.status, answer.cc_id, answer.run) = (status, header.cc_id, header.run);
            (answer.p_id, answer.dmu_id) = (header.p_id, header.dmu_id);
            answer.p_count = u16::from(header.message.number());
            answer.tag = engine_tag(self.cfg.base);
            self.queue(Outgoing { packet: Packet::bare(answer), target: Target::Header });
        }
    }

    fn queue(&mut self, outgoing: Outgoing) {
        let unsent = self.output.push(outgoing);
        if let Some(given) = self.given.as_mut().and_then(|all| all.last_mut()) {
            given.ports.unsent = unsent;
        }
    }

    /// Checks a whole frame and leads it to its unit, in the cycle of its last flit.
    pub fn receive(&mut self, words: &[u64], now: Cycle) {
        self.registers.readings.frames_in += 1;
        let checked = check(&self.cfg, words);
        if let Some(header) = checked.header() {
            self.log.note(Event::received(now, self.cfg.device, header));
        }
        let flits = self.cfg.cut.flits(8 * words.len());
        let (queue, packet) = match checked {
            CheckOutcome::Unreadable(status) => {
                self.registers.readings.refused[usize::from(status.number())] += 1;
                return;
            }
            CheckOutcome::Refused(header, status) => return self.refuse(&header, status),
            CheckOutcome::Registers(packet) => (&mut self.for_registers, packet),
            CheckOutcome::Collective(packet) => {
                self.arbiter.enqueued(packet.header.tlp.tc);
                (&mut self.inbox, packet)
            }
        };
        queue.push_back((packet, flits));
        self.inbox_flits += flits;
    }

    // --------------------------------------------------------------------------------------------------- registers

    /// Cycles that `count` accesses to the PBV table take.
    fn accesses(&self, count: usize) -> Cycle {
        count.div_ceil(usize::from(self.cfg.ce.memory_ports)).max(1) as Cycle
    }

    /// Serves a frame for the registers if the table is not being written and there is room for an answer.
    fn serve_registers(&mut self, now: Cycle) {
        let full = self.output.protocol() >= self.cfg.output;
        let next = self.for_registers.front().map(|(packet, _)| packet.header.message);
        if self.written > now || next.is_none_or(|message| message != Message::Write && full) {
            return;
        }
        let (packet, flits) = self.for_registers.pop_front().expect("looked at");
        self.inbox_flits -= flits;
        let inside = packet.header.offset.wrapping_sub(self.cfg.base);
        match packet.header.message {
            Message::Write => {
                self.written = now + self.accesses(packet.words().len());
                self.write(&packet, inside);
            }
            Message::Read => self.read_registers(&packet.header, inside),
            _ => self.configure(&packet, now),
        }
    }

    fn write(&mut self, packet: &Packet, mut offset: u16) {
        for &word in packet.words() {
            if !self.registers.may_write(offset, packet.header.requester) {
                return self.refuse(&packet.header, Status::UnknownDevice);
            }
            if let Err(status) = self.registers.write(offset, word as u32) {
                return self.refuse(&packet.header, status);
            }
            offset = following(offset);
        }
    }

    fn read_registers(&mut self, header: &Header, mut offset: u16) {
        let mut words = Vec::new();
        // P_count says how many; a read asks for at least one.
        for _ in 0..header.p_count.clamp(1, 256) {
            match self.registers.read(offset, |id| self.ce.find(id)) {
                Ok(value) => words.push(u64::from(value)),
                Err(status) => return self.refuse(header, status),
            }
            offset = following(offset);
        }
        let mut answer = Header::new(Message::ReadReply, self.cfg.device, header.requester, reply_offset(header));
        (answer.cc_id, answer.p_count) = (header.cc_id, words.len() as u16);
        answer.tag = header.tag;
        self.queue(Outgoing { packet: Packet::of(answer, words), target: Target::Header });
    }

    /// Takes over its own record; sends the others on to their switches (B-HI-7: one switch generates all).
    fn configure(&mut self, packet: &Packet, now: Cycle) {
        let Body::Configuration(records) = &packet.body else { unreachable!("decoding gives records") };
        // Others take over what this engine sends on in its own name.
        if !self.registers.may_write(0, packet.header.requester) {
            return self.refuse(&packet.header, Status::UnknownDevice);
        }
        for record in records {
            if record.device == self.cfg.device {
                self.registers.configure(record);
                self.written = now + self.accesses(PBV_ENTRIES);
            } else {
                let mut header = packet.header;
                (header.requester, header.tag) = (self.cfg.device, engine_tag(self.cfg.base));
                (header.device, header.offset) = (record.device, self.cfg.base);
                let packet = Packet { header, body: Body::Configuration(vec![record.clone()]) };
                self.queue(Outgoing { packet, target: Target::Header });
            }
        }
    }

    // -------------------------------------------------------------------------------------------------------- clock

    /// Levels of the queues at the start of a cycle.
    fn measure(&mut self, io: &Io<'_>, cycle: Cycle) {
        let vcs = io.vcs();
        let metrics = &mut self.registers.metrics;
        metrics.advance(cycle);
        metrics.set(INBOX, self.inbox_flits as u32);
        metrics.set(OUTPUT, self.registers.readings.queue);
        for port in 0..2u16 {
            for channel in 0..vcs.unicast {
                let queue = usize::from(port) * MOST_CHANNELS + usize::from(channel);
                metrics.set(queue, io.queued(port, vcs.set + channel) as u32);
            }
        }
    }

    /// Tells the collector of queues that have come up to the threshold.
    fn report(&mut self, now: Cycle) {
        let set = self.registers.table.reports;
        let (output, metrics) = (&self.output, &self.registers.metrics);
        let queues = self.reporter.look(set, || output.reports(), |queue| metrics.level(queue));
        if queues.is_empty() {
            return;
        }
        let mut header = Header::new(Message::Report, self.cfg.device, set.collector as u16, 0);
        (header.tag, header.posted) = (engine_tag(self.cfg.base), true);
        let words = std::iter::once(now).chain(queues).collect();
        self.registers.readings.reports += 1;
        self.queue(Outgoing { packet: Packet::of(header, words), target: Target::Header });
    }

    /// One clock of the collective engine and what leads to it: of all but the data path.
    pub fn step(&mut self, now: Cycle) {
        if self.inbox.is_empty() && self.given.is_none() && self.ce.is_quiescent(now) {
            return;
        }
        let full = self.output.protocol() + self.ce.pending_messages() > self.cfg.output;
        let open = !full && self.written <= now;
        let at = self.arbiter.next(self.inbox.iter().map(|(packet, _)| packet.header.tlp.tc)).unwrap_or(0);
        let input = match self.inbox.get(at) {
            Some((packet, _)) if open && self.ce.ready(&packet.header) => {
                let (packet, flits) = self.inbox.remove(at).expect("looked at");
                self.arbiter.granted(at);
                self.arbiter.dequeued(packet.header.tlp.tc);
                self.inbox_flits -= flits;
                self.log.step(now, StepKind::Took, &packet.header);
                Some(packet)
            }
            _ => None,
        };
        let mut given = self.given.is_some().then(|| CycleRecord {
            cycle: now,
            packet: input.clone(),
            full,
            leaving: self.ce.contexts().map(|context| context.cc_id).filter(|&id| self.output.holds(id)).collect(),
            table: self.registers.table.clone(),
            refused: Vec::new(),
            sent: Vec::new(),
            ports: PortRecord { closed: self.written > now, ..PortRecord::default() },
        });
        let readings = &mut self.registers.readings;
        let failure = &mut readings.failure;
        let mut missing = None;
        let refused = &mut readings.refused;
        let log = &mut self.log;
        let output = &self.output;
        let mut cx = CeCx {
            table: &self.registers.table,
            now,
            full,
            leaving: &|cc_id| output.holds(cc_id),
            out: &mut self.scratch.1,
            refuse: &mut |status: Status| {
                refused[usize::from(status.number())] += 1;
                if let Some(given) = &mut given {
                    given.refused.push(status);
                }
            },
            missing: &mut |cc_id, device, status| missing = Some((device, cc_id, status)),
            watched: &mut |header| log.step(now, StepKind::Watched, header),
        };
        self.ce.tick(input, &mut cx);
        *failure = missing.or(*failure);
        if let (Some(all), Some(mut given)) = (&mut self.given, given) {
            given.sent.clone_from(&self.scratch.1);
            given.ports.missing = missing;
            all.push(given);
        }
        for outgoing in self.scratch.1.drain(..) {
            self.log.step(now, StepKind::Queued, &outgoing.packet.header);
            self.output.push(outgoing);
        }
    }

    /// The next frame that it sends, whole: for callers without a data path.
    pub fn next_frame(&mut self, directory: &Directory) -> Option<(Header, Vec<u64>)> {
        self.output.look_up(&self.registers.table, directory, self.number, self.cfg.base);
        self.output.copy.take().map(|copy| (copy.header, copy.words))
    }

    /// One clock of the output: the word of a frame that stands there, and whether it is the last one. It goes if the output is
    /// free. For callers without a data path, behind [`step`](Self::step), with flits of one word.
    pub fn next_word(&mut self, directory: &Directory, free: bool) -> Option<(u64, bool)> {
        self.output.look_up(&self.registers.table, directory, self.number, self.cfg.base);
        let copy = self.output.copy.as_mut()?;
        let stands = copy.word();
        copy.sent += usize::from(free);
        if free && stands.is_some_and(|(_, last)| last) {
            self.output.copy = None;
        }
        stands
    }

    /// Whether no frame waits for the collective engine, and nothing is in its pipelines.
    pub fn is_idle(&self) -> bool {
        self.inbox.is_empty() && self.ce.is_idle()
    }

    /// Takes into a hash what decides what it does next; see [`Digest`].
    pub fn digest(&self, to: &mut impl Hasher) {
        let to = &mut Digest(to);
        to.of((&self.inbox, &self.arbiter, &self.registers.table, &self.output.entries, &self.for_registers));
        self.ce.digest(to);
    }

    /// Outputs at which it is the turn of frames, and a copy is there that could go.
    fn wants(&self, io: &Io<'_>) -> [bool; 2] {
        let mut wants = [false; 2];
        if let Some(copy) = &self.output.copy {
            let (out, vc) = (usize::from(copy.port), io.vcs().set + FRAMES);
            let turn = self.interposer.turns[out] == Turn::Frames;
            let free = if copy.sent == 0 {
                !self.interposer.passing[out][0] && io.can_start(copy.port, vc)
            } else {
                io.can_send(copy.port, vc)
            };
            wants[out] = turn && free;
        }
        wants
    }

    /// Sends the next flit of a frame that leaves; whether one went.
    fn inject(&mut self, io: &mut Io<'_>, directory: &Directory) -> bool {
        if self.written <= io.now() {
            self.output.look_up(&self.registers.table, directory, self.number, self.cfg.base);
        }
        let readings = &mut self.registers.readings;
        let held = self.output.len();
        readings.queue_peak = readings.queue_peak.max(held);
        if let Some(given) = self.given.as_mut().and_then(|all| all.last_mut()) {
            given.ports.held = held;
        }
        let Some(copy) = &mut self.output.copy else { return false };
        let vc = io.vcs().set;
        let out = usize::from(copy.port);
        let starts = copy.sent == 0;
        let free = if starts {
            !self.interposer.passing[out][0] && io.can_start(copy.port, vc)
        } else {
            io.can_send(copy.port, vc)
        };
        if let Some(given) = self.given.as_mut().and_then(|all| all.last_mut()) {
            (given.ports.output_word, given.ports.output_sent) = (copy.word(), free);
            (given.ports.begins, given.ports.side) = (starts, copy.port);
        }
        if !free {
            self.interposer.yields[out] = starts;
            readings.waited += 1;
            return false;
        }
        self.interposer.yields[out] = false;
        if starts {
            readings.frames_out += 1;
            self.log.note(Event::sent(io.now(), &copy.header));
        }
        let last = send_flit(io, (copy.port, self.cfg.cut), &copy.header, copy.sent, &copy.words);
        self.interposer.turns[out] = Turn::Traffic;
        copy.sent += 1;
        if last {
            self.output.copy = None;
        }
        true
    }
}

impl Block for Engine {
    type Tables = Directory;

    fn tick(&mut self, io: &mut Io<'_>, directory: &Directory) -> Wake {
        let (device, base) = (self.cfg.device, self.cfg.base);
        let mine = |address: u32| {
            let offset = (address as u16).wrapping_sub(base);
            (address >> 16) as u16 == device && offset < ENGINE_SPAN || !directory.knows(address)
        };
        self.shift_in(io.now());
        self.measure(io, io.now());
        let before = self.output.entries.len();
        let reporting = self.given.is_some() && self.output.reports();
        self.report(io.now());
        let report = self.output.entries.get(before).filter(|_| self.given.is_some()).map(|(report, _)| report.clone());
        let room = self.cfg.inbox.saturating_sub(self.inbox_flits);
        let mut injecting = [false; 2];
        if let Some(copy) = &self.output.copy {
            injecting[usize::from(copy.port)] = copy.sent > 0;
        }
        let mut frames = std::mem::take(&mut self.scratch.0);
        let yields = self.wants(io);
        let moved =
            self.interposer.tick(io, mine, (room, self.cfg.inbox), (injecting, yields), self.cfg.cut, &mut frames);
        // The collective engine sees what the checker had at the start of the cycle.
        self.step(io.now());
        // What waited for the last flit of a frame that left can pass in the next cycle.
        let sends = self.inject(io, directory);
        for (_, frame) in &frames {
            self.receive(frame, io.now());
        }
        let (before, counted) = (self.output.entries.len(), self.output.protocol());
        if let Some(given) = self.given.as_mut().and_then(|all| all.last_mut()) {
            given.ports.unsent = None;
        }
        self.serve_registers(io.now());
        if let Some(given) = self.given.as_mut().and_then(|all| all.last_mut()) {
            let answers = self.output.entries.range(before..).map(|(outgoing, _)| outgoing.clone());
            (given.ports.answers, given.ports.report) = (answers.chain(given.ports.unsent.take()).collect(), report);
            (given.ports.room, given.ports.counted, given.ports.reporting) = (room, counted, reporting);
            given.ports.levels = (0..QUEUES).map(|queue| self.registers.metrics.level(queue)).collect();
            given.ports.arrived.clone_from(&frames);
        }
        frames.clear();
        self.scratch.0 = frames;
        self.registers.readings.queue = self.output.len();
        let waiting = !self.inbox.is_empty() || !self.for_registers.is_empty();
        let busy = moved || sends || waiting || !self.ce.is_idle() || !self.output.is_empty();
        if !busy {
            // Nothing may clock the engine for long: what it leaves stands from the next cycle on.
            self.measure(io, io.now() + 1);
        }
        let shifts = self.side_port.as_ref().map(|&(cycle, _)| cycle);
        // What passes may wait for a link that is narrower than a flit.
        let links = [0, 1].into_iter().filter_map(|port| io.busy_until(port));
        match [self.ce.deadline(), shifts].into_iter().flatten().chain(links).min() {
            _ if busy => Wake::Next,
            Some(cycle) => Wake::At(cycle.max(io.now() + 1)),
            None => Wake::OnInput,
        }
    }

    fn open(&self) -> Option<String> {
        let inbox = self.inbox.len() + self.for_registers.len();
        let waiting = inbox + self.output.entries.len() + usize::from(self.output.copy.is_some());
        (waiting > 0 || !self.interposer.is_between())
            .then(|| format!("{inbox} frames wait in it, {} messages to send", self.output.entries.len()))
    }

    fn probe(&self, scope: &mut Scope<'_>) {
        let readings = &self.registers.readings;
        scope.bits("inbox", 16, self.inbox_flits as u64);
        scope.bits("output_queue", 16, u64::from(readings.queue));
        scope.bits("frames_in", 32, u64::from(readings.frames_in));
        scope.bits("frames_out", 32, u64::from(readings.frames_out));
        let leaving = self.output.copy.as_ref();
        scope.valid("sending", 8, leaving.map(|copy| u64::from(copy.header.message.number())));
        scope.scope("ce", |scope| self.ce.probe(scope));
    }

    fn watch(&mut self, watched: bool, _: &Directory) {
        self.ce.watch_stages(watched);
    }

    fn probe_stages(&self, scope: &mut Scope<'_>) {
        scope.scope("ce", |scope| self.ce.probe_stages(scope));
    }
}
