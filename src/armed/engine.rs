//! The reduction engine: a bump in the wire on the output side of a link that climbs (requirements R-ENG-1 to R-ENG-9;
//! description (32), (35), (39), (52) to (63), FIG. 3B, FIG. 5B).
//!
//! ```text
//!              ┌──────────────────────────── engine of one port ─────────────────────────────┐
//!              │           entrance (store, CRC)          ┌─ pass: no descriptor ─┐           │
//!  climbing ──▶│ 0 ─▶ [flit 0 … 10] ─▶ frames ─▶ match ───┤                       ├─▶ exit ─▶ │1 ──▶ climbing
//!   (up)       │                                  ▲       └▶ read ─▶ quad unit ─▶ write       │      (up)
//!  from the    │                                  │          ▲       1 to 6 stages   │        │  to the parent
//!  switch      │                            descriptors ◀────┴───────────────────────┘        │
//!              │                                  ▲ arm at the tail, if the CRC is right      │
//!  descending ◀│0 ◀────────────── cut through ◀───┴──────────────────────────────────────────1│◀── descending
//!   (down)     └──────────────────────────────────────────────────────────────────────────────┘      (down)
//! ```
//!
//! | port, channel | input | action |
//! |---|---|---|
//! | 0, up | frames that climb on this link | stored, checked, matched: reduced, passed, or dropped |
//! | 1, down | multicasts from the root | cut through; an arm frame arms when its tail has passed and its CRC is right |
//! | all others | other trees, point-to-point packets | passed through |
//!
//! | parameter | default | unit, range | effect on cycles | effect on storage |
//! |---|---|---|---|---|
//! | [`EngineCfg::descriptors`] | 8 | 0 and up | frames of a reduction without a descriptor pass unreduced | 72 bytes each |
//! | [`EngineCfg::stages`] | 3 | 1 to 6 cycles | latency of the quad unit; results do not depend on it | a register of four lanes each |
//! | [`EngineCfg::entrance_frames`] | 2 | frames, from 1 | absorbs bursts while the exit is blocked | 84 bytes each |
//! | [`EngineCfg::exit_frames`] | 4 | frames, from 1 | frames that wait for the link; a full exit stalls the pipeline's entrance | 84 bytes each |
//! | [`EngineCfg::timeouts`] | 4 x 8 | 1024 cycles, 24 bits | time until a partial result is sent up | four registers a switch |
//! | [`EngineCfg::thresholds`] | 4, 16, 64 | wait count, ascending | which time-out: the first whose threshold is not below the wait count, else the fourth | three registers a switch |
//! | [`EngineCfg::mode`] | associative | `R_TF_RED_CFG_MODE` | - | - |
//! | [`EngineCfg::hazard`] | interlock | | see below | - |
//! | [`EngineCfg::memory_ports`] | 2 | accesses a cycle, 1 to 4 | of the descriptor memory; see below | two are a memory that reads and writes |
//!
//! **Timing.** The tail of a climbing frame is taken from the queue in cycle t. It is matched and its descriptor read
//! in t + 1, and written back in t + 1 + stages; the first contribution takes the same time. If it completes the
//! reduction, the result's head leaves in t + 2 + stages; a frame that passes leaves in t + 2. Frames leave one flit a
//! cycle. A descending flit is sent in the cycle in which it is at the head of the queue. A descriptor armed by a tail
//! in cycle t can be matched from t + 1 on, and its deadline is t + n x 1024 (no prescaler *chosen*).
//!
//! **Registers.** The first register of the unit loads at the end of the match stage, and the last one is written back.
//! Waves have them under `engine.unit`, named as [`stage_waves`](watershed_fabric::stage_waves) says, with `multicast_id`, `reduction_id`, `seqno` and
//! `descriptor` of each; a first contribution and a mismatch pass as lone operands.
//!
//! **Hazards.** A frame may follow another for the same descriptor every cycle (after the exit was blocked), while a
//! read-modify-write takes `stages` cycles. With [`Hazard::Interlock`] a frame waits at the match stage until the
//! descriptor is written back; a word written in a cycle can be read in the same one. Arming clears a descriptor at
//! once; results for it that are still in the pipeline are discarded by their generation number. Expiry waits for the
//! pipeline.
//!
//! **Ports.** Write-back, arming, an expiry and the read at the match stage are an access to the descriptor memory
//! each; a cycle has as many as there are ports; the others wait a cycle. While an arm frame waits, the tail of the next
//! one stays in the link. Write-backs go first, because the pipeline
//! does not stop; then an arm frame that waits already, expiries, an arm frame whose tail came in this cycle, and the
//! match *chosen*. With two ports, a read and a write *chosen*, frames for several descriptors follow each other every
//! cycle, and arming or an expiry next to a write-back costs the match a cycle. Which descriptor has an address, and
//! whose deadline has come, is known from comparators beside the memory and costs no access.
//!
//! **Rules**, in the order in which a climbing frame meets them:
//!
//! | frame | action |
//! |---|---|
//! | CRC wrong, or malformed | dropped, counted |
//! | no contribution: an arm frame, one that asks again, one with another result | dropped, counted |
//! | no active descriptor of its address | passed up |
//! | other VNI or cookie | dropped, counted; the reduction is not touched *chosen* (passing it would cost other trees bandwidth) |
//! | older sequence number | dropped, counted |
//! | newer sequence number | passed up *chosen* (the engine missed an arming) |
//! | first contribution | fixes the operation; its headers are stored |
//! | other operation than the first, or either is a mismatch already | count added, code OP_MISMATCH, lane 0: the two source addresses, first and other; no arithmetic |
//! | any other | reduced; count added; more than the wait count: CONTR_OVERFLOW |
//!
//! A descriptor is free again when its count has reached the wait count or its time-out has passed; both send one frame
//! with the stored headers and `resno` = `seqno`. Expiry with count 0 sends nothing *chosen*.
//!
//! A descending frame is obeyed if it comes from the root of the entry, with the entry's keys, and is not old: see
//! [`admission`](super::admission). With `arm` set, an active descriptor of its address is cleared and armed again;
//! otherwise a free descriptor is taken; if there is none the request fails and is only counted. With `arm` clear, an
//! active descriptor of the address is freed: the reduction is over *chosen*. A free descriptor keeps the number of its
//! last arming for the length of its time-out, so that a repeated or late arm frame does not open it again *chosen*.
//! Kept longer, numbers that wrap would look old. A number counts only under the keys that it came with: where a tree
//! was deleted at run time and its address given to another job, that job's first arm frame clears the rest.
//!
//! Limitations: one climbing frame is assembled at a time; an engine on a port that no tree climbs is not instantiated.
//!
//! ```
//! use watershed_armed::{
//!     Address, DOWN, Engine, EngineCfg, Entry, FRAME_WORDS, Frame, Header, Keys, Owner, Portals, Tables, TablesCfg, Tokens,
//!     UP, WORDS, WireBlock,
//! };
//! use watershed_arith::Opcode;
//! use watershed_fabric::{Bench, Flit, PortSet, Vcs};
//! # use watershed_fabric::routing::{Routes, Routing};
//! # use watershed_fabric::topology::Mesh;
//! # let routing = Routing::Mesh(Mesh { size: vec![1], concentration: 1 });
//! # let routes = Routes { routing, ends: Vec::new() };
//!
//! // A tree of two leaves behind the switch of this engine; its root is end point 0.
//! let keys = Keys { vni: 1, cookie: 77 };
//! let frame = |header: Header, source: u32, word: u64| Frame {
//!     address: Address { multicast_id: 0, reduction_id: 0 },
//!     source,
//!     vni: 1,
//!     portals: Portals::default(),
//!     rank: source,
//!     header: Header { cookie: 77, ..header },
//!     lanes: [word, 0, 0, 0],
//! };
//! let engine = EngineCfg { stages: 3, ..EngineCfg::default() };
//! let cfg = TablesCfg { entries: 1, engine, record: false, log: false };
//! let mut tables = Tables::new(cfg, vec!["switch".into()], 3, routes);
//! let (children, owner) = (PortSet::one(1) | PortSet::one(2), Owner { root: 0, keys });
//! tables.insert(0, Entry { multicast_id: 0, parent: 0, children, wait_count: 2, owner }).unwrap();
//! let engine = WireBlock::Engine(Box::new(Engine::new(&engine, 0, 0, 0, Tokens::new(3))));
//!
//! // The arm frame descends in cycles 10 to 20, the contributions climb in 30 to 40 and in 41 to 51.
//! let flits = |frame: Frame, vc: u8, port: u16, cycle: u64| {
//!     let words = frame.to_words().unwrap().into_iter().zip(0..);
//!     words.map(move |(word, at)| (cycle + u64::from(at), port, Flit::part(0, vc, 0, at, FRAME_WORDS as u32, word)))
//! };
//! let op = Opcode::from_number(0x14).unwrap().number; // INT SUM
//! let arm = flits(frame(Header { arm: true, op, ..Header::default() }, 0, 0), DOWN, 1, 10);
//! let gives = |leaf, word| frame(Header { op, count: 1, ..Header::default() }, leaf, word);
//! let arrivals = arm.chain(flits(gives(1, 40), UP, 0, 30)).chain(flits(gives(2, 2), UP, 0, 41));
//! let mut bench = Bench::<_, _, WORDS>::in_the_wire(engine, tables, Vcs { set: 2, unicast: 0 }, arrivals);
//! while bench.tick() {}
//!
//! let climbed: Vec<_> = bench.sent().iter().filter(|(_, port, _)| *port == 1).collect();
//! let words: Vec<u64> = climbed.iter().map(|(.., flit)| flit.word).collect();
//! let sum = Frame::from_words(&words).unwrap();
//! assert_eq!((sum.lanes[0], sum.header.count), (42, 2));
//! assert_eq!(climbed[0].0, 51 + 2 + 3); // the last tail in cycle t, the head of the result in t + 2 + stages
//! ```

pub(crate) mod cfg;
mod descriptor;
mod waves;

pub use cfg::{EngineCfg, EngineCounts, Hazard, MAX_TIMEOUT, TIMEOUT_UNIT_CYCLES};
pub use waves::STAGE_TAG;

use descriptor::{Accesses, Descriptor};
use waves::{Stages, stage_tag};

use super::admission::{Keys, Refused, descends, is_contribution};
use super::assembly::Assembly;
use super::frame::{FRAME_BYTES, FRAME_WORDS, Frame, FrameError};
use super::header::{Age, Header, MAX_COUNT, age};
use super::station::{FrameEvent, FrameOrigin, Log, Merges, Tokens};
use super::tables::{DOWN, Tables, UP};
use std::collections::VecDeque;
use std::hash::Hasher;
use watershed_arith::quad::Opcode;
use watershed_arith::stages;
use watershed_arith::unit::cut;
use watershed_arith::{Quad, QuadRegister, QuadUnit, ResultCode};
use watershed_fabric::{FlitSize, FramePart, Io, pass_through};
use watershed_kernel::{Cycle, Digest, Wake};
use watershed_state::state;

/// A frame with the token that tells it from all others (simulation only; hardware has none).
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
struct Held {
    frame: Frame,
    token: u64,
}

/// A read-modify-write under way.
#[derive(Clone, Debug, watershed_state::Saved)]
struct Operation {
    descriptor: u16,
    generation: u32,
    register: QuadRegister,
    /// The unit; `None` if the result is known already (first contribution, mismatch).
    unit: Option<QuadUnit>,
    first: Frame,
    count: u32,
    merged: u64,
}

/// What a working engine has; idle engines have none of it.
#[derive(Clone, Debug, watershed_state::Saved)]
struct State {
    descriptors: Vec<Descriptor>,
    active: u16,
    entrance: Assembly,
    frames: VecDeque<Held>,
    /// The registers behind the stages of the unit.
    pipe: [Option<Operation>; 6],
    /// How many of them hold something: an operation is large, and most cycles have none.
    in_pipe: u8,
    /// No active descriptor's deadline is before this cycle.
    earliest: Cycle,
    exit: VecDeque<Held>,
    /// The words of the frame that is leaving, and how many have left.
    leaving: Option<([u64; FRAME_WORDS], u64, u16, u16)>,
    passing: Assembly,
    /// A frame that descended and waits for a port of the descriptor memory.
    descended: Option<Held>,
}

impl State {
    #[cold]
    fn of(descriptors: usize) -> Box<State> {
        Box::new(State {
            descriptors: vec![Descriptor::free(); descriptors],
            active: 0,
            entrance: Assembly::default(),
            frames: VecDeque::new(),
            pipe: [const { None }; 6],
            in_pipe: 0,
            earliest: Cycle::MAX,
            exit: VecDeque::new(),
            leaving: None,
            passing: Assembly::default(),
            descended: None,
        })
    }
}

/// A reduction engine.
#[derive(Clone, Debug)]
pub struct Engine {
    switch: u32,
    port: u16,
    descriptors: u16,
    counts: EngineCounts,
    state: Option<Box<State>>,
    merges: Merges,
    log: Log,
    stages: Option<Box<Stages>>,
}

state!(Engine { saved: counts, state, merges, log; watched: stages; built: switch, port, descriptors });

impl Engine {
    /// The engine of a port of a switch; `station` is its number among all that make frames, in a system with these tokens.
    pub fn new(cfg: &EngineCfg, switch: u32, port: u16, station: u32, tokens: Tokens) -> Engine {
        Engine {
            switch,
            port,
            descriptors: cfg.descriptors,
            counts: EngineCounts::default(),
            state: None,
            merges: Merges::new(station, tokens),
            log: Log::default(),
            stages: None,
        }
    }

    /// Gives this engine another number of descriptors than the rest; 0 takes it out of service.
    #[must_use]
    pub fn with_descriptors(mut self, descriptors: u16) -> Engine {
        self.descriptors = descriptors;
        self
    }

    /// The switch and port it belongs to.
    pub fn place(&self) -> (u32, u16) {
        (self.switch, self.port)
    }

    /// What it has counted.
    pub fn counts(&self) -> &EngineCounts {
        &self.counts
    }

    /// Descriptors that are active.
    pub fn active(&self) -> usize {
        self.state.as_ref().map_or(0, |state| usize::from(state.active))
    }

    /// The latest deadline among active descriptors.
    pub fn last_deadline(&self) -> Option<Cycle> {
        let descriptors = self.state.iter().flat_map(|state| &state.descriptors);
        descriptors.filter(|descriptor| descriptor.active).map(|descriptor| descriptor.deadline).max()
    }

    /// What it merged, frame by frame (only if recorded).
    pub fn merges(&self) -> &Merges {
        &self.merges
    }

    /// What it saw (only if logged).
    pub fn log(&self) -> &Log {
        &self.log
    }

    #[inline]
    fn state(&mut self) -> &mut State {
        self.state.get_or_insert_with(|| State::of(usize::from(self.descriptors)))
    }

    /// One clock.
    pub(super) fn tick(&mut self, io: &mut Io<'_>, tables: &Tables) -> Wake {
        let cfg = &tables.cfg.engine;
        let now = io.now();

        // Descending frames and all that is not for this engine pass through; arm frames are read as they do. Traffic waits for a frame
        // of the engine's own that can leave: it would take a narrow link each time that it is free.
        let leaves = |state: &State| state.leaving.is_some() || !state.exit.is_empty();
        let own_first = self.state.as_deref().is_some_and(leaves) && io.can_send(1, UP);
        let traffic = io.vcs().set;
        let mut descended = None;
        let this = &mut *self;
        let mut moved = pass_through(io, |from, flit, more| match (from, flit.tag.vc()) {
            (0, UP) => false,
            (0, vc) if vc >= traffic && own_first => false,
            // One frame at a time waits for a port of the memory; the next one waits in the link.
            (1, DOWN) if flit.tag.tail() && this.state().descended.is_some() => false,
            (1, DOWN) => {
                if let Some(whole) = this.state().passing.take(tables.cut, (flit, more)) {
                    descended = Some(whole);
                }
                true
            }
            _ => true,
        });

        // The exit as it was at the start of the cycle; then results out of the pipeline, deadlines, and what descended.
        moved |= self.send(io, tables.cut);
        moved |= self.step(tables, now, descended);
        moved |= self.take_in(io, cfg, tables.cut);
        self.next_wake(io, cfg, moved)
    }

    /// One clock of all but the links: results out of the pipeline, deadlines, what descended, the match stage. Returns
    /// whether anything moved.
    pub fn step(&mut self, tables: &Tables, now: Cycle, descended: Option<Result<(Frame, u64), FrameError>>) -> bool {
        let mut ports = Accesses { left: tables.cfg.engine.memory_ports, refused: false };
        let mut moved = self.write_back(tables, now, &mut ports);
        moved |= self.descend(tables, now, &mut ports);
        moved |= self.expire(tables, now, &mut ports);
        match descended {
            Some(Ok((frame, token))) if self.concerns(tables, &frame) => {
                let waiting = self.state().descended.replace(Held { frame, token });
                debug_assert!(waiting.is_none(), "its tail waits in the link");
                moved |= self.descend(tables, now, &mut ports);
            }
            Some(Ok(_)) | None => {}
            // The stations below see the same damage and drop it; here it merely arms nothing.
            Some(Err(error)) => self.refuse_down(Refused::from(&error)),
        }
        moved |= self.issue(tables, now, &mut ports);
        if let Some(stages) = &mut self.stages {
            let left = stages.unit.clock(stages.entering.take()).map(|exit| exit.word);
            debug_assert_eq!(left, stages.leaving.take(), "the last register has what is written back");
        }
        self.counts.port_wait_cycles += u64::from(ports.refused);
        // Who found no port tries again.
        moved | ports.refused
    }

    /// Puts a whole frame at the entrance, for callers without a link.
    pub fn climb(&mut self, frame: Frame, token: u64) {
        self.state().frames.push_back(Held { frame, token });
    }

    /// The next frame that leaves, whole, for callers without a link.
    pub fn leave(&mut self) -> Option<(Frame, u64)> {
        self.state.as_deref_mut()?.exit.pop_front().map(|held| (held.frame, held.token))
    }

    /// When time brings something about next: a deadline, or that a free descriptor forgets the reduction it had.
    pub fn due(&self, now: Cycle) -> Option<Cycle> {
        let all = self.state.as_deref().map_or(&[][..], |state| &state.descriptors);
        let of = |descriptor: &Descriptor| {
            if descriptor.active {
                Some(descriptor.deadline)
            } else {
                Some(descriptor.known_until).filter(|&at| at > now)
            }
        };
        all.iter().filter_map(of).min()
    }

    /// Takes into a hash what decides what it does next; see [`Digest`].
    pub fn digest(&self, now: Cycle, to: &mut impl Hasher) {
        let to = &mut Digest(to);
        let Some(state) = self.state.as_deref() else { return };
        for descriptor in &state.descriptors {
            let Descriptor { active, busy, address, keys, seqno, wait_count, count, first, quad, .. } = descriptor;
            if *active {
                to.of((busy, address, keys, seqno, wait_count, count, first, quad));
            } else if now < descriptor.known_until {
                to.of(("known", address, seqno));
            } else {
                to.of("free");
            }
        }
        to.of(state
            .frames
            .iter()
            .chain(&state.exit)
            .chain(&state.descended)
            .map(|held| held.frame)
            .collect::<Vec<_>>());
        if state.in_pipe > 0 {
            let generations = state.descriptors.iter().map(|descriptor| descriptor.generation);
            to.of((generations.collect::<Vec<_>>(), &state.pipe));
        }
    }

    fn refuse_down(&mut self, why: Refused) {
        self.counts.refused.count(why);
        self.counts.down_refused += 1;
    }

    // ------------------------------------------------------------------------------------------------- arming

    /// Whether a frame that descended is this engine's business: not one of another port's tree, nor of a plain multicast.
    fn concerns(&self, tables: &Tables, frame: &Frame) -> bool {
        let entry = tables.entry(self.switch, frame.address.multicast_id);
        entry.is_some_and(|entry| entry.parent == self.port && entry.wait_count > 0)
    }

    /// The frame that descended arms, or releases, if there is a port. Returns whether there was a frame.
    fn descend(&mut self, tables: &Tables, now: Cycle, ports: &mut Accesses) -> bool {
        let Some(state) = self.state.as_deref_mut() else { return false };
        if state.descended.is_none() || !ports.take() {
            return false;
        }
        let Some(Held { frame, token }) = state.descended.take() else { return false };
        self.obey(tables, now, &frame, token);
        true
    }

    fn obey(&mut self, tables: &Tables, now: Cycle, frame: &Frame, token: u64) {
        let Frame { address, header, .. } = *frame;
        let (switch, port) = (self.switch, self.port);
        let Some(entry) = tables.entry(switch, address.multicast_id) else { return };
        let wait_count = entry.wait_count;
        let timeout = tables.cfg.engine.timeout_cycles(wait_count);
        let logged = tables.cfg.log;
        let state = self.state();
        let known = state.descriptors.iter().position(|descriptor| descriptor.knows(now, address));
        // Under other keys it was another job's tree that had this address: its numbers mean nothing here.
        let same = |at: &usize| state.descriptors[*at].keys == entry.owner.keys;
        let last = known.filter(same).map(|at| state.descriptors[at].seqno);
        if let Err(why) = descends(frame, &entry.owner, last) {
            self.refuse_down(why);
            return;
        }
        let active = known.filter(|&at| state.descriptors[at].active);
        if !header.arm {
            if let Some(at) = active {
                state.descriptors[at].free_at(now, timeout);
                state.active -= 1;
                self.counts.released += 1;
            }
            if logged {
                self.log.push(now, FrameEvent::Passed, token, frame);
            }
            return;
        }
        if let Some(at) = active {
            state.descriptors[at].clear();
            state.active -= 1;
            self.counts.rearmed_active += 1;
        }
        let state = self.state();
        // What still knows a reduction is taken last.
        let free = || {
            let free = state.descriptors.iter().enumerate().filter(|(_, descriptor)| !descriptor.active);
            free.min_by_key(|&(at, descriptor)| (now < descriptor.known_until, at)).map(|(at, _)| at)
        };
        let Some(at) = known.or_else(free) else {
            self.counts.no_descriptor += 1;
            if logged {
                self.log.push(now, FrameEvent::NotArmed, token, frame);
            }
            return;
        };
        let state = self.state();
        let descriptor = &mut state.descriptors[at];
        descriptor.active = true;
        descriptor.address = address;
        descriptor.keys = Keys::of(frame);
        descriptor.seqno = header.seqno;
        descriptor.wait_count = wait_count;
        descriptor.parent = port;
        descriptor.deadline = now + timeout;
        state.earliest = state.earliest.min(now + timeout);
        state.active += 1;
        let active = u64::from(state.active);
        self.counts.armed += 1;
        self.counts.most_active = self.counts.most_active.max(active);
        if logged {
            self.log.push(now, FrameEvent::Armed, token, frame);
        }
    }

    // -------------------------------------------------------------------------------------------- climbing frames

    /// The frame at the match stage: into the pipeline, past it, or away. Returns whether it moved.
    fn issue(&mut self, tables: &Tables, now: Cycle, ports: &mut Accesses) -> bool {
        let cfg = &tables.cfg.engine;
        let Some(state) = self.state.as_deref_mut() else { return false };
        let Some(&Held { frame, token }) = state.frames.front() else { return false };
        // Every operation in the pipeline may end as a frame in the exit, and so may this one.
        if state.exit.len() + usize::from(state.in_pipe) >= usize::from(cfg.exit_frames) {
            return false;
        }
        let header = &frame.header;
        if let Err(why) = is_contribution(&frame) {
            return self.drop_front(tables, now, why);
        }
        let found = state.descriptors.iter().position(|d| d.active && d.address == frame.address);
        let Some(at) = found else {
            return self.pass(tables, now);
        };
        let descriptor = &mut state.descriptors[at];
        let admitted = descriptor.keys.admit(&frame).and_then(|()| match age(header.seqno, descriptor.seqno) {
            Age::Older => Err(Refused::Stale),
            Age::Newer => Ok(false),
            Age::Same => Ok(true),
        });
        match admitted {
            Err(why) => return self.drop_front(tables, now, why),
            Ok(false) => return self.pass(tables, now),
            Ok(true) => {}
        }
        if descriptor.busy && cfg.hazard == Hazard::Interlock {
            self.counts.interlock_cycles += 1;
            return false;
        }
        if !ports.take() {
            return false;
        }
        descriptor.busy = true;
        state.frames.pop_front();
        let quad = frame.quad();
        let first = descriptor.first.unwrap_or(frame);
        let opcode = Opcode::from_number(header.op).expect("a decoded header has an opcode");
        let (lone, unit) = if descriptor.first.is_none() {
            (quad, None)
        } else if let Some(joined) = mismatch(&first, descriptor.quad, &frame) {
            self.counts.mismatches += u64::from(first.header.op != header.op);
            (joined, None)
        } else {
            (quad, Some(opcode.unit(cfg.mode)))
        };
        let register = unit.map_or(QuadRegister::Done(lone), |unit| {
            unit.steps(cut(cfg.stages)[0], QuadRegister::Operands { a: descriptor.quad, b: quad })
        });
        if let Some(stages) = &mut self.stages {
            let tag = stage_tag(&frame, at as u16);
            let Opcode { op, dtype, .. } = *opcode;
            stages.entering = Some(match unit {
                Some(unit) => stages::UnitInput::pair(op, dtype, tag, unit, descriptor.quad, quad),
                None => stages::UnitInput::lone(op, dtype, tag, lone),
            });
        }
        state.pipe[0] = Some(Operation {
            descriptor: at as u16,
            generation: descriptor.generation,
            register,
            unit,
            first,
            // As hardware reads it: with the hazard ignored, this is where a contribution is lost.
            count: descriptor.count.saturating_add(header.count).min(MAX_COUNT),
            merged: token,
        });
        state.in_pipe += 1;
        self.counts.merged += 1;
        if tables.cfg.log {
            self.log.push(now, FrameEvent::Merged, token, &frame);
        }
        true
    }

    /// The frame at the match stage is not obeyed.
    fn drop_front(&mut self, tables: &Tables, now: Cycle, why: Refused) -> bool {
        let Some(state) = self.state.as_deref_mut() else { return false };
        let Some(held) = state.frames.pop_front() else { return false };
        self.counts.refused.count(why);
        if tables.cfg.log {
            self.log.push(now, FrameEvent::Dropped, held.token, &held.frame);
        }
        true
    }

    fn pass(&mut self, tables: &Tables, now: Cycle) -> bool {
        let Some(state) = self.state.as_deref_mut() else { return false };
        let Some(held) = state.frames.pop_front() else { return false };
        state.exit.push_back(held);
        self.counts.passed += 1;
        if tables.cfg.log {
            self.log.push(now, FrameEvent::Passed, held.token, &held.frame);
        }
        true
    }

    /// Moves the pipeline one stage on and writes back what leaves it. Returns whether anything was in it.
    fn write_back(&mut self, tables: &Tables, now: Cycle, ports: &mut Accesses) -> bool {
        let Some(state) = self.state.as_deref_mut() else { return false };
        if state.in_pipe == 0 {
            return false;
        }
        let ends = cut(tables.cfg.engine.stages);
        let last = ends.len() - 1;
        let done = state.pipe[last].take();
        state.in_pipe -= u8::from(done.is_some());
        // An operation is large, and most stages are empty.
        for at in (1..=last).rev() {
            if state.pipe[at - 1].is_some() {
                state.pipe.swap(at - 1, at);
            }
        }
        for (pair, operation) in ends.windows(2).zip(&mut state.pipe[1..]) {
            if let Some(Operation { register, unit: Some(unit), .. }) = operation {
                *register = unit.steps(pair[1] - pair[0], *register);
            }
        }
        let Some(operation) = done else { return true };
        if let (Some(stages), QuadRegister::Done(quad)) = (&mut self.stages, operation.register) {
            stages.leaving = Some(quad);
        }
        let descriptor = &mut state.descriptors[usize::from(operation.descriptor)];
        if !descriptor.active || descriptor.generation != operation.generation {
            return true;
        }
        let QuadRegister::Done(quad) = operation.register else {
            unreachable!("a unit is done after its last segment")
        };
        // Nobody is before it.
        ports.take();
        descriptor.busy = false;
        descriptor.quad = quad;
        descriptor.first.get_or_insert(operation.first);
        descriptor.count = operation.count;
        if tables.cfg.record {
            descriptor.merged.push(operation.merged);
        }
        if descriptor.count > descriptor.wait_count {
            descriptor.quad.code = descriptor.quad.code.climb(ResultCode::ContrOverflow);
            self.counts.overflows += 1;
        }
        if descriptor.count >= descriptor.wait_count {
            self.counts.completed += 1;
            self.finish(tables, now, usize::from(operation.descriptor));
        }
        true
    }

    /// Frees descriptors whose time has come; partial results go up. Returns whether there was any.
    fn expire(&mut self, tables: &Tables, now: Cycle, ports: &mut Accesses) -> bool {
        let room = usize::from(tables.cfg.engine.exit_frames);
        let mut any = false;
        if self.state.as_deref().is_none_or(|state| state.earliest > now) {
            return false;
        }
        for at in 0..usize::from(self.descriptors) {
            let state = self.state();
            let descriptor = &state.descriptors[at];
            if !descriptor.active || descriptor.busy || descriptor.deadline > now {
                continue;
            }
            if descriptor.count > 0 && state.exit.len() + usize::from(state.in_pipe) >= room {
                continue;
            }
            if !ports.take() {
                return any;
            }
            if descriptor.count == 0 {
                let descriptor = &mut state.descriptors[at];
                descriptor.free_at(now, tables.cfg.engine.timeout_cycles(descriptor.wait_count));
                state.active -= 1;
                self.counts.expired_empty += 1;
            } else {
                self.counts.expired += 1;
                self.finish(tables, now, at);
            }
            any = true;
        }
        let state = self.state();
        let active = state.descriptors.iter().filter(|descriptor| descriptor.active);
        state.earliest = active.map(|descriptor| descriptor.deadline).min().unwrap_or(Cycle::MAX);
        any
    }

    /// Sends what a descriptor has and frees it.
    fn finish(&mut self, tables: &Tables, now: Cycle, at: usize) {
        let state = self.state();
        let descriptor = &mut state.descriptors[at];
        let first = descriptor.first.expect("a descriptor with a count has had a frame");
        let merged = std::mem::take(&mut descriptor.merged);
        let frame = Frame {
            header: Header {
                seqno: descriptor.seqno,
                resno: descriptor.seqno,
                count: descriptor.count,
                cookie: descriptor.keys.cookie,
                arm: false,
                retry: false,
                ..first.header
            },
            address: descriptor.address,
            vni: descriptor.keys.vni,
            ..first
        }
        .with_quad(descriptor.quad);
        descriptor.free_at(now, tables.cfg.engine.timeout_cycles(descriptor.wait_count));
        state.active -= 1;
        let token = self.merges.made(tables.cfg.record, FrameOrigin::From(merged.into()));
        self.state().exit.push_back(Held { frame, token });
        if tables.cfg.log {
            self.log.push(now, FrameEvent::Sent, token, &frame);
        }
    }

    // ---------------------------------------------------------------------------------------------- links

    /// Takes one flit of a climbing frame in.
    fn take_in(&mut self, io: &mut Io<'_>, cfg: &EngineCfg, cut: FlitSize) -> bool {
        let Some(flit) = io.head(0, UP) else { return false };
        let frames = usize::from(cfg.entrance_frames);
        let state = self.state();
        // The tail moves a frame out of the assembly register: there must be a place for it.
        if flit.tag.tail() && state.frames.len() >= frames {
            return false;
        }
        let whole = state.entrance.take(cut, (&flit, io.more(0, UP)));
        io.take(0, UP);
        match whole {
            Some(Ok((frame, token))) => state.frames.push_back(Held { frame, token }),
            Some(Err(error)) => self.counts.refused.count(Refused::from(&error)),
            None => {}
        }
        true
    }

    /// Sends one flit of the frame that is leaving.
    fn send(&mut self, io: &mut Io<'_>, cut: FlitSize) -> bool {
        let Some(state) = self.state.as_deref_mut() else { return false };
        if !io.can_send(1, UP) {
            return false;
        }
        if state.leaving.is_none()
            && let Some(Held { frame, token }) = state.exit.pop_front()
        {
            let words = frame.to_words().expect("an engine's frames come from decoded ones");
            state.leaving = Some((words, token, frame.address.multicast_id, 0));
        }
        let Some((words, token, id, sent)) = &mut state.leaving else { return false };
        let part = FramePart { cut, frame: words, index: usize::from(*sent), flits: cut.flits(FRAME_BYTES) };
        io.send_part(1, UP, (*id & 0xfff, *token), part);
        *sent += 1;
        if usize::from(*sent) == part.flits {
            state.leaving = None;
        }
        true
    }

    fn next_wake(&self, io: &Io<'_>, cfg: &EngineCfg, moved: bool) -> Wake {
        if moved {
            return Wake::Next;
        }
        let mut wake =
            [0, 1].into_iter().filter_map(|port| io.busy_until(port)).map(Wake::At).fold(Wake::OnInput, Wake::or);
        let Some(state) = self.state.as_deref() else { return wake };
        if state.in_pipe > 0 {
            return Wake::Next;
        }
        let blocked = state.exit.len() >= usize::from(cfg.exit_frames);
        for descriptor in state.descriptors.iter().filter(|descriptor| descriptor.active) {
            // A deadline that has passed waits for the exit, and whatever frees that wakes the engine.
            if descriptor.deadline > io.now() || !blocked {
                wake = wake.or(Wake::At(descriptor.deadline));
            }
        }
        wake
    }

    /// Work that is left, in words.
    pub(super) fn open(&self) -> Option<String> {
        let state = self.state.as_deref()?;
        let waiting = state.frames.len() + state.exit.len() + usize::from(state.leaving.is_some());
        if waiting > 0 {
            return Some(format!("{waiting} frames wait in it"));
        }
        (state.active > 0).then(|| format!("{} descriptors are armed", state.active))
    }
}

/// The result of joining a frame with a partial result if one of them is a mismatch already, or they are of different
/// operations (requirement R-ENG-3): no arithmetic; lane 0 names the source addresses of the two that did not agree.
pub fn mismatch(first: &Frame, partial: Quad, frame: &Frame) -> Option<Quad> {
    let quad = frame.quad();
    if partial.code == ResultCode::OpMismatch {
        Some(partial)
    } else if quad.code == ResultCode::OpMismatch {
        Some(quad)
    } else if first.header.op != frame.header.op {
        let lane = u64::from(first.source) << 32 | u64::from(frame.source);
        Some(Quad { lanes: [lane, 0, 0, 0], code: ResultCode::OpMismatch, m: 0, oflow_id: 0 })
    } else {
        None
    }
}
