//! The collective engine of a packet engine: random messages of every kind for few contexts, with gaps, early contributions, wrong
//! senders, full queues and resets; what is taken, refused and sent, the tracking stages, contexts and every register of the reduction
//! unit in every cycle.

use std::collections::BTreeMap;

use watershed::arith::{DType, Flags, Op};
use watershed::kernel::Rng;
use watershed::pbv::ce::{Ce, CeCfg, CeCx, Hazard, Outgoing, State};
use watershed::pbv::packet::{
    Body, ConfigRecord, Control, Groups, Header, InitRecord, Message, NO_DEVICE, Packet, Status,
};
use watershed::pbv::tables::{Owner, PbvTable, engine_tag};

use crate::bench::{Cosim, Difference};
use crate::pbv_bench::{Beside, Given, Shape, Shown};
use crate::random::{self, seed};

/// Device and base of the engine, of its first participant, and of who is above.
pub const ME: (u16, u16) = (60, 0xc000);
const FIRST: u16 = 100;
const ABOVE: u16 = 50;
/// Entries of the PBV table: the last two are engines.
pub const PARTICIPANTS: u8 = 6;
const ENGINES: u128 = 0b11 << (PARTICIPANTS - 2);
pub const WORDS: usize = 3;
/// Context numbers: one more than there are places. The first two may be groups of a barrier.
const IDS: [u16; 4] = [5, 6, 70, 4095];

/// What is reduced.
pub const SELECTS: [(Op, DType); 5] = [
    (Op::Sum, DType::F64),
    (Op::Max, DType::I32),
    (Op::Prod, DType::F32),
    (Op::Xor, DType::U64),
    (Op::Barrier, DType::U64),
];

/// What the messages of a context are like now.
#[derive(Clone, Debug)]
pub struct Kind {
    select: (Op, DType),
    words: usize,
    pbv: u128,
    down: u128,
    run: u32,
    dmu_id: u16,
    /// Its last command was a multicast.
    multicast: bool,
    /// Who sends commands.
    above: u16,
}

/// An engine of the model, and who sends to it.
pub struct Rig {
    /// The engine, or what it was when it was looked at last.
    pub ce: Ce,
    /// Its table.
    pub table: PbvTable,
    kinds: Vec<Option<Kind>>,
    /// What an initialisation would make of a context: which, what it stores, what its messages are like then.
    pub pending: Option<(usize, InitRecord, Kind)>,
    /// One in so many cycles is a gap.
    gaps: u64,
    /// Cycles without a message, so that time-outs come.
    silent: u64,
}

/// What a cycle came to.
struct Ticked {
    refused: Vec<Status>,
    sent: Vec<Outgoing>,
}

impl Rig {
    /// An engine without contexts, and a table.
    pub fn new(cfg: CeCfg, rng: &mut Rng) -> Rig {
        let mut table = PbvTable::default();
        let devices = (0..u16::from(PARTICIPANTS)).map(|k| FIRST + k).collect();
        table.configure(&ConfigRecord { switches: ENGINES, ..ConfigRecord::of(ME.0, devices, 0) });
        table.timeout = if rng.below(4) == 0 { 0 } else { 8 + rng.below(100) as u32 };
        table.retries = rng.below(4) as u8;
        table.report_errors = rng.below(4) > 0;
        table.validate = rng.below(6) > 0;
        if rng.below(2) == 0 {
            let owner = |through| Owner { device: ABOVE, through };
            let owners =
                IDS.iter().map(|&cc_id| (cc_id, owner(FIRST + rng.below(3) as u16))).collect::<BTreeMap<_, _>>();
            table.owners.contexts = Some(owners);
        }
        let mut ce = Ce::new(cfg);
        ce.place(ME.0, ME.1);
        ce.watch_stages(true);
        Rig { ce, table, kinds: vec![None; IDS.len()], pending: None, gaps: 2 + rng.below(6), silent: 0 }
    }

    /// A message, mostly one that makes sense, and what it would store.
    pub fn message(&mut self, rng: &mut Rng) -> Packet {
        let mut at = rng.below(IDS.len() as u64) as usize;
        if self.ce.contexts().count() == usize::from(self.ce.cfg().contexts) && rng.below(30) > 0 {
            // The store is full: mostly one of it.
            at = (0..IDS.len()).map(|k| (at + k) % IDS.len()).find(|&at| self.ce.find(IDS[at]).is_some()).expect("one");
        }
        let cc_id = IDS[at];
        let stored = self.ce.find(cc_id).is_some();
        let Some(kind) = self.kinds[at].as_mut().filter(|_| stored && rng.below(60) > 0) else {
            if stored || rng.below(10) > 0 {
                return self.initialisation(at, rng);
            }
            let message = Message::ALL[4 + rng.below(10) as usize];
            let message = if message == Message::Initialisation { Message::Control } else { message };
            return Packet::bare(Header { cc_id, ..Header::new(message, ABOVE, ME.0, ME.1) });
        };
        let context = self.ce.find(cc_id).expect("it is stored");
        kind.run = context.run();
        let kind = kind.clone();
        let message = usual(context.state, context.is_under_way(), context.stored.to_source, rng);
        let mut packet = match message {
            Message::Contribution | Message::Failure => self.answer(cc_id, &kind, message, rng),
            Message::Error => error(cc_id, &kind, rng),
            Message::Control => control(cc_id, context.state, &kind, rng),
            message => from_above(cc_id, &kind, message, rng),
        };
        spoil(&mut packet.header, rng);
        let header = &mut packet.header;
        (header.op, header.dtype) = match (header.message, header.op) {
            (Message::Control, _) => (Op::Barrier, header.dtype),
            (_, Op::Barrier) if kind.select.0 != Op::Barrier => kind.select,
            (_, op) => (op, header.dtype),
        };
        packet
    }

    /// A participant's answer: mostly of somebody who is missing.
    fn answer(&self, cc_id: u16, kind: &Kind, message: Message, rng: &mut Rng) -> Packet {
        let context = self.ce.find(cc_id).expect("it is stored");
        let &Kind { select: (op, dtype), words, pbv, down, run, dmu_id, multicast, .. } = kind;
        let done = !context.is_under_way();
        let missing = context.track.pbv;
        let wanted = if missing != 0 && rng.below(12) > 0 { missing } else { pbv | down };
        let entry = if done && rng.below(2) == 0 { pbv.trailing_zeros().min(127) as u8 } else { nth(wanted, rng) };
        let entry = if rng.below(40) == 0 { rng.below(u64::from(PARTICIPANTS)) as u8 } else { entry };
        let message = match message {
            Message::Contribution if self.table.is_switch(entry) => Message::Partial,
            message => message,
        };
        let requester = FIRST + u16::from(entry);
        let mut header = Header::new(message, requester, ME.0, ME.1);
        (header.cc_id, header.op, header.dtype) = (cc_id, op, dtype);
        (header.p_id, header.dmu_id, header.run) = (entry, dmu_id, run);
        // What an engine hands on has the entry of that one.
        if (pbv & !down) >> entry & 1 != 0 {
            header.p_id = nth(down, rng);
        }
        if self.table.is_switch(entry) {
            header.tag = engine_tag(0xc000 + 0x400 * rng.below(4) as u16);
        }
        // Of the source, before the command is there.
        if requester == dmu_id && done {
            header.run = run.wrapping_add(1);
        }
        if rng.below(8) == 0 {
            header.flags = Flags::from_bits(rng.bits() as u8);
        }
        if message == Message::Failure {
            header.status = Status::ALL[rng.below(15) as usize];
            let list = Body::Missing { pbv: 0, devices: vec![requester] };
            return if rng.below(2) == 0 { Packet::bare(header) } else { Packet { header, body: list } };
        }
        let count = if op == Op::Barrier || multicast { 0 } else { words };
        let count = if rng.below(50) == 0 { rng.below(1 + WORDS as u64) as usize } else { count };
        if rng.below(30) == 0 {
            (header.error, header.status) = (true, Status::ALL[rng.below(15) as usize]);
        }
        let count = if header.error && rng.below(2) == 0 { 0 } else { count };
        Packet::of(header, data(rng, count, (op, dtype)))
    }

    fn initialisation(&mut self, at: usize, rng: &mut Rng) -> Packet {
        let select = SELECTS[rng.below(SELECTS.len() as u64) as usize];
        let select = if at < 2 && rng.below(2) == 0 { SELECTS[4] } else { select };
        let all = (1u64 << PARTICIPANTS) - 1;
        let mut pbv = u128::from(rng.bits() & all).max(1);
        let mut down = pbv;
        match rng.below(8) {
            // Responses of an engine below are handed on; those that another engine hands on are expected here.
            0 => pbv &= !(1 << (PARTICIPANTS - 1)),
            1 => down &= !(1 << (PARTICIPANTS - 1)),
            2 if rng.below(3) == 0 => pbv = 0,
            _ => {}
        }
        let barrier = select.0 == Op::Barrier;
        let words = if barrier { 0 } else { 1 + rng.below(WORDS as u64) as u16 };
        let master = rng.below(if barrier { 4 } else { 2 }) < 2 || barrier && at < 2;
        let dmu_id = FIRST + (pbv | down).trailing_zeros().min(127) as u16;
        let in_groups = barrier && at < 2 && rng.below(4) > 0 || rng.below(60) == 0;
        let groups = in_groups.then(|| Groups { first: IDS[0], count: if rng.below(20) == 0 { 3 } else { 2 } });
        let record = InitRecord {
            device: ME.0,
            p_count: if rng.below(40) == 0 { 1 } else { pbv.count_ones() as u16 },
            words: if rng.below(30) == 0 { 0 } else { words },
            below: 0,
            initial: (rng.below(3) == 0).then(|| random::words(rng, select.1).0),
            pbv_order: rng.below(2) == 0,
            rearm: rng.below(3) == 0,
            answer_source: rng.below(2) == 0,
            master,
            to_source: !in_groups && rng.below(4) == 0,
            groups,
            above: if master { NO_DEVICE } else { ABOVE },
            collector: if rng.below(4) == 0 { ABOVE + 1 } else { NO_DEVICE },
            pbv: if rng.below(60) == 0 { pbv | 1 << PARTICIPANTS } else { pbv },
            down,
        };
        let run = rng.below(3) as u32;
        // Now and then the source sets the engine up by itself.
        let requester = if rng.below(5) == 0 { dmu_id } else { ABOVE };
        let mut header = Header::new(Message::Initialisation, requester, ME.0, ME.1);
        (header.cc_id, header.op, header.dtype) = (IDS[at], select.0, select.1);
        (header.run, header.dmu_id, header.p_id, header.p_count) = (run, dmu_id, rng.below(128) as u8, record.p_count);
        header.engines_only = rng.below(8) == 0;
        let above = if master { requester } else { ABOVE };
        let kind = Kind { select, words: usize::from(record.words), pbv, down, run, dmu_id, multicast: false, above };
        self.pending = Some((at, record, kind));
        Packet { header, body: Body::Initialisation(vec![record]) }
    }

    /// One clock.
    fn tick(&mut self, packet: Option<Packet>, now: u64, full: bool, leaving: &[u16]) -> Ticked {
        let (mut refused, mut sent): (Vec<Status>, Vec<Outgoing>) = (Vec::new(), Vec::new());
        let taken = packet.as_ref().map(|packet| packet.header);
        let mut cx = CeCx {
            table: &self.table,
            now,
            full,
            leaving: &|cc_id| leaving.contains(&cc_id),
            out: &mut sent,
            refuse: &mut |status| refused.push(status),
            watched: &mut |_| (),
            missing: &mut |_, _, _| (),
        };
        self.ce.tick(packet, &mut cx);
        self.note(taken);
        Ticked { refused, sent }
    }

    /// What a message that was taken makes of its context, for the next ones.
    pub fn note(&mut self, taken: Option<Header>) {
        if let Some((at, record, kind)) = self.pending.take().filter(|_| taken.is_some())
            && self.ce.find(IDS[at]).is_some_and(|context| context.stored == record)
        {
            self.kinds[at] = Some(kind);
        }
        if let Some(header) = taken.filter(|header| matches!(header.message, Message::Command | Message::Multicast))
            && let Some(at) = IDS.iter().position(|&cc_id| cc_id == header.cc_id)
            && let Some(kind) = &mut self.kinds[at]
            && !header.posted
            && self.ce.find(header.cc_id).is_some_and(|context| context.run() == header.run)
        {
            kind.multicast = header.message == Message::Multicast;
        }
    }
}

/// A message that a context waits for, or now and then another one.
fn usual(state: State, under_way: bool, to_source: bool, rng: &mut Rng) -> Message {
    match (rng.below(90), state) {
        (0..=3, _) | (16..=40, State::Paused | State::Inactive) => Message::Control,
        (4..=6, _) | (61..=70, State::Waiting | State::Done) => Message::Retry,
        (7..=9, _) => Message::Error,
        (10..=11, _) => Message::Failure,
        (12, _) | (13, State::Done) => Message::Multicast,
        (14, _) | (15..=60, State::Waiting) => Message::Satisfied,
        (15, _) | (16..=60, State::Done) => Message::Command,
        (16..=25, _) if !under_way => Message::Command,
        (71..=75, State::Waiting) if to_source => Message::Command,
        _ => Message::Contribution,
    }
}

/// Something of who is above.
fn from_above(cc_id: u16, kind: &Kind, message: Message, rng: &mut Rng) -> Packet {
    let &Kind { select: (op, dtype), words, run, dmu_id, above, pbv, down, .. } = kind;
    let below = message == Message::Retry && rng.below(2) == 0;
    let entry = nth(pbv | down, rng);
    let requester = match rng.below(6) {
        0 if message != Message::Satisfied => ABOVE + 1,
        _ if below => FIRST + u16::from(entry),
        _ => above,
    };
    let mut header = Header::new(message, requester, ME.0, ME.1);
    (header.cc_id, header.op, header.dtype) = (cc_id, op, dtype);
    (header.p_id, header.dmu_id, header.run) = (if below { entry } else { rng.below(128) as u8 }, dmu_id, run);
    header.rounding.round = random::mode(rng).round;
    header.rounding.flush_to_zero = rng.below(2) == 0;
    header.p_count = rng.below(7) as u16;
    if rng.below(3) == 0 {
        header.tag = engine_tag(0xc000 + 0x400 * rng.below(4) as u16);
    }
    if rng.below(6) == 0 {
        (header.tlp.tc, header.tlp.ohc, header.tlp.ts, header.tlp.attr) = (rng.below(8) as u8, 3, 5, 6);
    }
    match message {
        Message::Command | Message::Multicast if rng.below(5) > 0 => header.run = run.wrapping_add(1),
        Message::Retry if rng.below(5) == 0 => header.run = run.wrapping_add(1),
        Message::Satisfied if rng.below(8) == 0 => {
            (header.error, header.status) = (true, Status::ALL[rng.below(15) as usize]);
        }
        _ => {}
    }
    let count = match message {
        Message::Satisfied => words,
        Message::Multicast => 1 + rng.below(WORDS as u64) as usize,
        _ => 0,
    };
    Packet::of(header, data(rng, count, (op, dtype)))
}

fn control(cc_id: u16, state: State, kind: &Kind, rng: &mut Rng) -> Packet {
    let mut header = Header::new(Message::Control, kind.above, ME.0, ME.1);
    header.control = match (rng.below(3), state) {
        (0 | 1, State::Paused) => Control::Restart,
        (0 | 1, State::Inactive) => Control::Activate,
        _ => Control::ALL[rng.below(9) as usize],
    };
    (header.cc_id, header.dmu_id, header.run) = (cc_id, kind.dmu_id, kind.run);
    header.engines_only = rng.below(4) == 0;
    header.p_count = rng.below(7) as u16;
    if header.control == Control::Close {
        header.status = Status::ALL[rng.below(15) as usize];
    } else if rng.below(2) == 0 {
        header.run = kind.run.wrapping_add(1);
    }
    Packet::bare(header)
}

/// An engine below names who is missing, or is not set up.
fn error(cc_id: u16, kind: &Kind, rng: &mut Rng) -> Packet {
    let entry = nth(kind.pbv | kind.down, rng);
    let entry = if rng.below(2) == 0 { PARTICIPANTS - 1 } else { entry };
    let mut header = Header::new(Message::Error, FIRST + u16::from(entry), ME.0, ME.1);
    (header.cc_id, header.p_id, header.run, header.dmu_id) = (cc_id, entry, kind.run, kind.dmu_id);
    header.status = Status::ALL[rng.below(15) as usize];
    header.p_count = if rng.below(2) == 0 { u16::from(Message::Initialisation.number()) } else { 0 };
    header.tag = engine_tag(0xc400);
    let body = Body::Missing { pbv: u128::from(rng.bits()), devices: vec![7; rng.below(3) as usize] };
    if rng.below(3) == 0 { Packet::bare(header) } else { Packet { header, body } }
}

/// Something wrong with it, now and then.
fn spoil(header: &mut Header, rng: &mut Rng) {
    match rng.below(160) {
        0 => header.tlp.poisoned = true,
        1 => header.requester ^= 1,
        2 => header.p_id ^= 1 << rng.below(7),
        3 => header.run = header.run.wrapping_add(1),
        4 => header.run = header.run.wrapping_sub(1),
        // A multicast may have any operation, and a command behind it that one: the RTL has not the units of all.
        5 if header.message != Message::Multicast => header.op = Op::Min,
        6 if header.message != Message::Multicast => header.dtype = DType::F16,
        7 | 8 => header.posted = true,
        _ => {}
    }
}

/// Words of a type.
fn data(rng: &mut Rng, count: usize, (op, dtype): (Op, DType)) -> Vec<u64> {
    (0..count).map(|_| random::words(rng, if op.is_bitwise() { DType::U64 } else { dtype }).0).collect()
}

/// Any entry of a vector.
fn nth(pbv: u128, rng: &mut Rng) -> u8 {
    let which = rng.below(u64::from(pbv.count_ones().max(1))) as usize;
    (0..PARTICIPANTS).filter(|entry| pbv >> entry & 1 != 0).nth(which).unwrap_or(0)
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    taken: BTreeMap<Message, u64>,
    sent: BTreeMap<Message, u64>,
    refused: BTreeMap<Status, u64>,
    waited: u64,
}

/// Random messages for so many cycles; `None` without Verilator.
pub fn drive(
    name: &str,
    cfg: CeCfg,
    (define, fault): (Option<&'static str>, Option<u8>),
    seed: u64,
    cycles: u64,
) -> Option<Result<(Cosim, Counts), Box<Difference>>> {
    let shape = Shape { cfg, participants: PARTICIPANTS, words: WORDS, groups: 2, selects: SELECTS.to_vec(), fault };
    let mut rng = Rng::new(seed, 0);
    let mut rig = Rig::new(cfg, &mut rng);
    let mut beside = Beside::new(shape, &rig.ce, name, define)?;
    let mut counts = Counts::default();
    for now in 0..cycles {
        let reset = now == 0 || rng.below(3_000) == 0;
        if reset {
            rig = Rig::new(cfg, &mut rng);
        }
        if let Err(difference) = beside.sample(&rig.ce) {
            return Some(Err(difference));
        }
        let packet = rig.message(&mut rng);
        let ready = rig.ce.ready(&packet.header);
        rig.silent = if rng.below(300) == 0 { rng.below(300) } else { rig.silent.saturating_sub(1) };
        let valid = !reset && ready && rig.silent == 0 && rng.below(rig.gaps) > 0;
        let (full, alarm) = (rng.below(8) == 0, rig.ce.deadline());
        let leaving: Vec<u16> = IDS.into_iter().filter(|_| rng.below(10) == 0).collect();
        let given = Given { table: &rig.table, me: ME, now, full, leaving: &leaving, packet: Some(&packet), valid };
        let inputs = beside.shape.given(&given);
        let header = packet.header;
        let taken = valid.then_some(packet);
        let Ticked { refused, sent } =
            if reset { Ticked { refused: Vec::new(), sent: Vec::new() } } else { rig.tick(taken, now, full, &leaving) };
        if valid {
            *counts.taken.entry(header.message).or_default() += 1;
        }
        counts.waited += u64::from(!ready);
        for &status in &refused {
            *counts.refused.entry(status).or_default() += 1;
        }
        for sent in &sent {
            *counts.sent.entry(sent.packet.header.message).or_default() += 1;
        }
        let taken = valid.then_some(&header);
        let shown = Shown { me: ME.0, ready: Some(ready), alarm, refused: &refused, sent: &sent, taken };
        let outputs = beside.shape.outputs(&rig.ce, &shown);
        beside.clock(reset, inputs, outputs);
    }
    Some(beside.end().map(|cosim| (cosim, counts)))
}

/// Three contexts, as the defaults have the rest.
pub fn usual_engine() -> CeCfg {
    CeCfg { contexts: 3, ..CeCfg::default() }
}

/// One port of each memory, an interlock, one message that waits.
fn narrow() -> CeCfg {
    CeCfg { hazard: Hazard::Interlock, unit_stages: 2, feeds: 1, memory_ports: 1, ..usual_engine() }
}

/// Two reduction units: lines of two words, and behind them one that has no partner.
pub fn wide() -> CeCfg {
    CeCfg { units: 2, unit_stages: 3, ..usual_engine() }
}

/// More units than messages have words, and one port.
fn wider() -> CeCfg {
    CeCfg { units: 4, ..narrow() }
}

fn engines_hold_what_the_model_holds(name: &str, (cfg, fault): (CeCfg, Option<u8>), cycles: u64) {
    let seed = seed(0x9b5c_0000);
    let Some(driven) = drive(name, cfg, (None, fault), seed, cycles) else { return };
    let (cosim, counts) = driven.unwrap_or_else(|difference| panic!("{difference} (seed {seed})"));
    let Counts { taken, sent, refused, waited } = counts;
    let all = |counts: &BTreeMap<Message, u64>| counts.values().sum::<u64>();
    println!("taken {taken:?}\nsent {sent:?}\nrefused {refused:?}");
    // Every kind of message comes and goes, and every refusal that a collective engine knows.
    assert!(
        taken.len() == 10 && sent.len() == 10 && refused.len() >= 10 && waited > 0,
        "{taken:?} {sent:?} {refused:?}"
    );
    assert!(sent[&Message::Partial] + sent[&Message::Satisfied] > cycles / 60, "{sent:?}");
    let refused = refused.values().sum::<u64>();
    cosim.finish(&format!(
        "ws_pbv_ce, {name}, {} messages, {refused} refused, {} sent, {waited} cycles in which none could be taken",
        all(&taken),
        all(&sent)
    ));
}

/// Cycles of a sample and of a soak.
const SAMPLE: u64 = 20_000;
const SOAK: u64 = 400_000;

#[test]
fn a_collective_engine_holds_what_the_model_holds() {
    // The simulator that has faults, none of which acts: the others have none.
    engines_hold_what_the_model_holds("pbv-ce", (usual_engine(), Some(0)), SAMPLE);
}

#[test]
fn a_collective_engine_of_narrow_memories_holds_what_the_model_holds() {
    engines_hold_what_the_model_holds("pbv-ce-narrow", (narrow(), None), SAMPLE);
}

#[test]
fn a_collective_engine_of_two_units_holds_what_the_model_holds() {
    engines_hold_what_the_model_holds("pbv-ce-wide", (wide(), None), SAMPLE);
}

#[test]
#[ignore = "takes minutes: make soak"]
fn collective_engines_hold_what_the_model_holds_for_long() {
    engines_hold_what_the_model_holds("pbv-ce-sound", (usual_engine(), None), SOAK);
    engines_hold_what_the_model_holds("pbv-ce-narrow", (narrow(), None), SOAK);
    engines_hold_what_the_model_holds("pbv-ce-wide", (wide(), None), SOAK);
    engines_hold_what_the_model_holds("pbv-ce-wider", (wider(), None), SOAK);
}
