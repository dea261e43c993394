//! The collective engine of a packet engine: random messages for few contexts, with gaps, early contributions, wrong senders and resets;
//! what is taken, refused and answered, the tracking stages, contexts and every register of the reduction unit in every cycle.

use watershed::arith::stages::units_of;
use watershed::arith::{DType, Flags, Op};
use watershed::kernel::Rng;
use watershed::pbv::ce::{Ce, CeCfg, CeCx, Hazard, Outgoing, State};
use watershed::pbv::packet::{Body, ConfigRecord, Header, InitRecord, Message, NO_DEVICE, Packet, Status};
use watershed::pbv::tables::PbvTable;
use watershed::probe::{NodeHandle, Tracer};

use crate::bench::{Bench, Cosim, Difference};
use crate::random::{self, seed};
use crate::registers::{flags_bits, mode_bits, units_literal, wave_of_tree};
use crate::tracker;
use crate::watched::Watched;

/// Device of the engine, of its first participant, and of who is above.
const ME: u16 = 60;
const FIRST: u16 = 100;
const ABOVE: u16 = 50;
/// Entries of the PBV table: the last two are engines.
const PARTICIPANTS: u8 = 6;
const WORDS: usize = 3;
/// Context numbers: one more than there are places.
const IDS: [u16; 4] = [5, 9, 70, 4095];
/// Lanes that the reduction unit of the bench has.
const LANES: usize = 2;

/// What is reduced.
const SELECTS: [(Op, DType); 5] = [
    (Op::Sum, DType::F64),
    (Op::Max, DType::I32),
    (Op::Prod, DType::F32),
    (Op::Xor, DType::U64),
    (Op::Barrier, DType::U64),
];

/// Fields of a message on the bench.
const MESSAGE: [(&str, u32); 15] = [
    ("message", 4),
    ("cc_id", 12),
    ("run", 32),
    ("requester", 16),
    ("dmu_id", 16),
    ("p_id", 7),
    ("posted", 1),
    ("poisoned", 1),
    ("error", 1),
    ("status", 4),
    ("flags", 7),
    ("op", 4),
    ("dtype", 4),
    ("mode", 5),
    ("words", 16),
];

/// Fields of what an initialisation stores.
const RECORD: [(&str, u32); 10] = [
    ("track.pbv", 128),
    ("track.p_count", 16),
    ("down", 128),
    ("words", 16),
    ("pbv_order", 1),
    ("master", 1),
    ("initial_valid", 1),
    ("initial_word", 64),
    ("above", 16),
    ("collector", 16),
];

/// Fields of an answer that are looked at.
const ANSWER: [(&str, u32); 5] = [("satisfied", 1), ("cc_id", 12), ("run", 32), ("flags", 7), ("status", 4)];

/// What the messages of a context are like now.
#[derive(Clone, Debug)]
struct Kind {
    stored: bool,
    select: (Op, DType),
    words: usize,
    pbv: u128,
    run: u32,
    dmu_id: u16,
}

/// An engine of the model, and who sends to it.
struct Rig {
    ce: Ce,
    table: PbvTable,
    kinds: Vec<Kind>,
    /// What an initialisation would make of a context: which, what it stores, what its messages are like then.
    pending: Option<(usize, InitRecord, Kind)>,
    /// One in so many cycles is a gap.
    gaps: u64,
}

impl Rig {
    fn new(cfg: CeCfg, rng: &mut Rng) -> Rig {
        let mut table = PbvTable::default();
        let devices = (0..u16::from(PARTICIPANTS)).map(|k| FIRST + k).collect();
        let record = ConfigRecord { switches: 0b11 << (PARTICIPANTS - 2), ..ConfigRecord::of(ME, devices, 0) };
        table.configure(&record);
        table.timeout = 0;
        let mut ce = Ce::new(cfg);
        ce.place(ME, 0xc000);
        ce.watch_stages(true);
        let kind = Kind { stored: false, select: SELECTS[0], words: 1, pbv: 1, run: 0, dmu_id: FIRST };
        Rig { ce, table, kinds: vec![kind; IDS.len()], pending: None, gaps: 2 + rng.below(6) }
    }

    /// A message, mostly one that makes sense, and what it would store.
    fn message(&mut self, rng: &mut Rng) -> Packet {
        let at = rng.below(IDS.len() as u64) as usize;
        let cc_id = IDS[at];
        // What the engine has decides what comes next: its runs end by answers.
        if let Some(context) = self.ce.find(cc_id) {
            self.kinds[at].run = context.run();
        }
        let stored = self.kinds[at].stored && self.ce.find(cc_id).is_some();
        let what = rng.below(40);
        if (!stored && what < 20) || what == 0 {
            return self.initialisation(at, rng);
        }
        let Kind { select: (op, dtype), words, pbv, run, dmu_id, .. } = self.kinds[at].clone();
        let context = self.ce.find(cc_id);
        let state = context.map_or(State::Absent, |context| context.state);
        let missing = context.map_or(0, |context| context.track.pbv);
        let done = context.is_some_and(|context| !context.is_under_way());
        let message = match (what, state) {
            // Now and then one that does not fit.
            (1, _) | (4.., State::Waiting) => Message::Satisfied,
            (2, _) | (4..=25, State::Done) => Message::Command,
            (4..=6, _) if done => Message::Command,
            _ => Message::Contribution,
        };
        // Mostly somebody who has not answered, or at least has to do with it.
        let wanted = if missing != 0 && rng.below(12) > 0 { missing } else { pbv };
        let entry = if done && rng.below(2) == 0 { pbv.trailing_zeros() as u8 } else { nth(wanted, rng) };
        let entry = if rng.below(40) == 0 { rng.below(u64::from(PARTICIPANTS)) as u8 } else { entry };
        let from_below = message == Message::Contribution;
        let message = if from_below && self.table.is_switch(entry) { Message::Partial } else { message };
        let requester = if from_below { FIRST + u16::from(entry) } else { ABOVE };
        let mut header = Header::new(message, requester, ME, 0);
        (header.cc_id, header.op, header.dtype) = (cc_id, op, dtype);
        (header.p_id, header.dmu_id, header.run) = (entry, dmu_id, run);
        header.round = random::mode(rng).round;
        header.flush_to_zero = rng.below(2) == 0;
        match message {
            Message::Command if rng.below(6) > 0 => header.run = run.wrapping_add(1),
            // Of the source, before the command is there.
            Message::Contribution if requester == dmu_id && done => header.run = run.wrapping_add(1),
            _ => {}
        }
        Self::spoil(&mut header, rng);
        if rng.below(8) == 0 {
            header.flags = Flags::from_bits(rng.bits() as u8);
        }
        let count = if op == Op::Barrier { 0 } else { words };
        let count = if rng.below(50) == 0 { rng.below(1 + WORDS as u64) as usize } else { count };
        let words = if message == Message::Command { 0 } else { count };
        Packet::of(
            header,
            (0..words).map(|_| random::words(rng, if op.is_bitwise() { DType::U64 } else { dtype }).0).collect(),
        )
    }

    /// Something wrong with it, now and then.
    fn spoil(header: &mut Header, rng: &mut Rng) {
        match rng.below(120) {
            0 => header.poisoned = true,
            1 => header.requester ^= 1,
            2 => header.p_id ^= 1 << rng.below(7),
            3 => header.run = header.run.wrapping_add(1),
            4 => header.run = header.run.wrapping_sub(1),
            5 => header.op = Op::Min,
            6 => header.dtype = DType::F16,
            7 => header.posted = true,
            8..=11 => (header.error, header.status) = (true, Status::ALL[rng.below(15) as usize]),
            _ => {}
        }
    }

    fn initialisation(&mut self, at: usize, rng: &mut Rng) -> Packet {
        let select = SELECTS[rng.below(SELECTS.len() as u64) as usize];
        let all = (1u64 << PARTICIPANTS) - 1;
        let pbv = u128::from(rng.bits() & all).max(1);
        let words = if select.0 == Op::Barrier { 0 } else { 1 + rng.below(WORDS as u64) as u16 };
        let master = rng.below(2) == 0;
        let dmu_id = FIRST + pbv.trailing_zeros() as u16;
        let record = InitRecord {
            device: ME,
            p_count: pbv.count_ones() as u16,
            words: if rng.below(30) == 0 { 0 } else { words },
            below: 0,
            initial: (rng.below(3) == 0).then(|| random::words(rng, select.1).0),
            pbv_order: rng.below(2) == 0,
            rearm: false,
            answer_source: false,
            master,
            to_source: false,
            groups: None,
            above: if master { NO_DEVICE } else { ABOVE },
            collector: NO_DEVICE,
            pbv: if rng.below(30) == 0 { pbv | 1 << PARTICIPANTS } else { pbv },
            down: pbv,
        };
        let run = rng.below(3) as u32;
        let mut header = Header::new(Message::Initialisation, ABOVE, ME, 0);
        (header.cc_id, header.op, header.dtype) = (IDS[at], select.0, select.1);
        (header.run, header.dmu_id) = (run, dmu_id);
        self.pending =
            Some((at, record, Kind { stored: true, select, words: usize::from(record.words), pbv, run, dmu_id }));
        Packet { header, body: Body::Initialisation(vec![record]) }
    }

    /// One clock: what it refused, and the answers among what it sent.
    fn tick(&mut self, packet: Option<Packet>, now: u64) -> (Vec<Status>, Vec<Packet>) {
        let (mut refused, mut sent): (Vec<Status>, Vec<Outgoing>) = (Vec::new(), Vec::new());
        let mut cx = CeCx {
            table: &self.table,
            now,
            full: false,
            leaving: &|_| false,
            out: &mut sent,
            refuse: &mut |status| refused.push(status),
            watched: &mut |_| (),
            missing: &mut |_, _, _| (),
        };
        self.ce.tick(packet, &mut cx);
        if let Some((at, record, kind)) = self.pending.take()
            && self.ce.find(IDS[at]).is_some_and(|context| context.stored == record)
        {
            self.kinds[at] = kind;
        }
        let is_answer = |packet: &Packet| matches!(packet.header.message, Message::Partial | Message::Satisfied);
        (refused, sent.into_iter().map(|outgoing| outgoing.packet).filter(is_answer).collect())
    }
}

/// Any entry of a vector.
fn nth(pbv: u128, rng: &mut Rng) -> u8 {
    let which = rng.below(u64::from(pbv.count_ones().max(1))) as usize;
    (0..PARTICIPANTS).filter(|entry| pbv >> entry & 1 != 0).nth(which).unwrap_or(0)
}

/// A message as the bench has it.
fn given(packet: &Packet, valid: bool) -> Vec<u128> {
    let Packet { header, body } = packet;
    let (record, words) = match body {
        Body::Initialisation(records) => (Some(records[0]), &[][..]),
        _ => (None, packet.words()),
    };
    let mut given = vec![
        u128::from(valid),
        u128::from(header.message.number()),
        u128::from(header.cc_id),
        u128::from(header.run),
        u128::from(header.requester),
        u128::from(header.dmu_id),
        u128::from(header.p_id),
        u128::from(header.posted),
        u128::from(header.poisoned),
        u128::from(header.error),
        u128::from(header.status.number()),
        flags_bits(header.flags),
        header.op as u128,
        header.dtype as u128,
        mode_bits(header.mode()),
        words.len() as u128,
    ];
    given.extend(record.map_or([0; 10], |record| {
        [
            record.pbv,
            u128::from(record.p_count),
            record.down,
            u128::from(record.words),
            u128::from(record.pbv_order),
            u128::from(record.master),
            u128::from(record.initial.is_some()),
            u128::from(record.initial.unwrap_or(0)),
            u128::from(record.above),
            u128::from(record.collector),
        ]
    }));
    given.extend((0..WORDS).map(|k| u128::from(words.get(k).copied().unwrap_or(0))));
    given
}

/// Where the RTL has a signal of an engine's waves, from its name.
fn place(name: &str, unit_stages: u8, contexts: u16) -> Option<String> {
    let name = name.strip_prefix("ce.")?;
    if let Some(name) = name.strip_prefix("tracking.") {
        return Some(tracker::place("u_dut.u_tracker", name));
    }
    if let Some(name) = name.strip_prefix("tree.") {
        let lane = name.split('.').find_map(|part| part.strip_prefix("lane")?.parse::<usize>().ok());
        return wave_of_tree(name, "u_dut.u_reduce.u_tree", unit_stages)
            .filter(|_| lane.is_none_or(|lane| lane < LANES));
    }
    if name == "in_unit" {
        return Some("units_held".to_owned());
    }
    let (slot, field) = name.strip_prefix("context")?.split_once('.')?;
    let slot: u16 = slot.parse().ok().filter(|&slot| slot < contexts)?;
    Some(match field {
        "state" | "cc_id" => format!("u_dut.context_q[{slot}].{field}"),
        field => format!("u_dut.u_tracker.store_q[{slot}].{field}"),
    })
}

/// An engine on the bench, with these signals of its waves.
fn bench(cfg: CeCfg, watched: &Watched) -> Bench {
    let CeCfg { contexts, hazard, unit_stages, units: lanes, feeds, memory_ports } = cfg;
    assert_eq!(lanes, 1, "the twin has one reduction unit");
    let mut bench = Bench::default();
    bench.input("valid", 1);
    for (name, width) in MESSAGE {
        bench.input(format!("m_{name}"), width);
    }
    for (name, width) in RECORD {
        bench.input(format!("r_{}", name.replace('.', "_")), width);
    }
    for k in 0..WORDS {
        bench.input(format!("word_{k}"), 64);
    }
    let units = units_literal(&units_of(SELECTS));
    let engines = 0b11 << (PARTICIPANTS - 2);
    bench.body(&format!(
        "  message_t message;\n  record_t rec;\n  logic [63:0] words [{WORDS}];\n  logic [15:0] devices [{PARTICIPANTS}];\n  logic ready;\n  \
         logic [1:0] refused;\n  status_e status [2];\n  answer_t answer [4];\n  logic whole [4];\n  logic [63:0] answer_word [4][{WORDS}];\n"
    ));
    for (name, _) in MESSAGE {
        let value = match name {
            "message" => "message_e'(m_message)".to_owned(),
            "status" => "status_e'(m_status)".to_owned(),
            "op" => "op_e'(m_op)".to_owned(),
            "dtype" => "dtype_e'(m_dtype)".to_owned(),
            name => format!("m_{name}"),
        };
        bench.body(&format!("  assign message.{name} = {value};\n"));
    }
    for (name, _) in RECORD {
        bench.body(&format!("  assign rec.{name} = r_{};\n", name.replace('.', "_")));
    }
    for k in 0..WORDS {
        bench.body(&format!("  assign words[{k}] = word_{k};\n"));
    }
    for k in 0..u16::from(PARTICIPANTS) {
        bench.body(&format!("  assign devices[{k}] = 16'd{};\n", FIRST + k));
    }
    let forward = u8::from(hazard == Hazard::Forward);
    bench.body(&format!(
        "  ws_pbv_ce #(.Contexts({contexts}), .Participants({PARTICIPANTS}), .Words({WORDS}), .Forward(1'b{forward}), \
         .Stages({unit_stages}),\n    .Units({units}), .Feeds({feeds}), .MemoryPorts({memory_ports})) u_dut (\n    .clk_i, .rst_ni, \
         .device_i(devices), .engines_i({PARTICIPANTS}'d{engines}), .validate_i(1'b1), .valid_i(valid), .message_i(message),\n    \
         .record_i(rec), .word_i(words), .ready_o(ready), .refused_o(refused), .status_o(status), .answer_o(answer), .whole_o(whole),\n    \
         .answer_word_o(answer_word));\n"
    ));
    // Refusals and answers in the order in which the model makes them.
    bench.body(&format!(
        "  logic [2:0] answers, units_held;\n  answer_t list [4];\n  logic list_whole [4];\n  logic [63:0] list_word [4][{WORDS}];\n  \
         always_comb begin\n    answers = '0;\n    for (int unsigned n = 0; n < 4; n++) begin\n      list[n] = '0;\n      list_whole[n] = \
         1'b0;\n      for (int unsigned k = 0; k < {WORDS}; k++) list_word[n][k] = '0;\n    end\n    for (int unsigned n = 0; n < 4; n++) \
         begin\n      if (answer[n].valid) begin\n        list[answers[1:0]] = answer[n];\n        list_whole[answers[1:0]] = \
         whole[n];\n        for (int unsigned k = 0; k < {WORDS}; k++) list_word[answers[1:0]][k] = answer_word[n][k];\n        answers = \
         answers + 3'd1;\n      end\n    end\n    units_held = '0;\n    for (int unsigned s = 0; s < {unit_stages}; s++) units_held = \
         units_held + 3'(u_dut.u_reduce.unit_q[s].valid);\n  end\n"
    ));
    bench.look("ready", "ready", 1);
    bench.look("refused", "2'(refused[0]) + 2'(refused[1])", 2);
    bench.look("refused.first", "refused[0] ? status[0] : status[1]", 4);
    bench.look("refused.second", "status[1]", 4);
    bench.look("answers", "answers", 3);
    for n in 0..4 {
        for (name, width) in ANSWER {
            bench.look(format!("answer{n}.{name}"), format!("list[{n}].{name}"), width);
        }
        bench.look(format!("answer{n}.whole"), format!("list_whole[{n}]"), 1);
        for k in 0..WORDS {
            bench.look(format!("answer{n}.word{k}"), format!("list_word[{n}][{k}]"), 64);
        }
    }
    for signal in watched.signals() {
        if let Some(expression) = place(&signal.name, unit_stages, contexts) {
            bench.look(signal.name, expression, signal.width);
        }
    }
    bench
}

/// What a cycle shows beside waves.
fn outputs(ready: bool, refused: &[Status], answers: &[Packet], taken: Option<Message>) -> Vec<Option<u128>> {
    let status = |at: usize| refused.get(at).map(|status| u128::from(status.number()));
    let mut all =
        vec![Some(u128::from(ready)), Some(refused.len() as u128), status(0), status(1), Some(answers.len() as u128)];
    for n in 0..4 {
        let Some(Packet { header, .. }) = answers.get(n) else {
            all.extend([None; ANSWER.len() + 1 + WORDS]);
            continue;
        };
        all.extend([
            Some(u128::from(header.message == Message::Satisfied)),
            Some(u128::from(header.cc_id)),
            Some(u128::from(header.run)),
            Some(flags_bits(header.flags)),
            Some(u128::from(header.status.number())),
        ]);
        // Words of a result that came from above, or is sent once more, are not the engine's.
        let words = answers[n].words();
        let own = n > 0 || !matches!(taken, Some(Message::Satisfied | Message::Command));
        all.push(Some(u128::from(!words.is_empty())).filter(|_| own));
        all.extend((0..WORDS).map(|k| words.get(k).copied().map(u128::from).filter(|_| own)));
    }
    all
}

/// What happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    taken: u64,
    refused: u64,
    answered: u64,
    waited: u64,
}

/// A tracer over an engine, and the handles of its registers and of those of its reduction unit.
fn watch(ce: &Ce) -> (Watched, Tracer, NodeHandle, NodeHandle) {
    let (watched, mut tracer) = Watched::new(&["ce.**"]);
    let own = tracer.declare("ce", |scope| ce.probe(scope)).expect("registers");
    let stages = tracer.declare_details("ce", |scope| ce.probe_stages(scope)).expect("registers of the unit");
    tracer.start().expect("signals");
    (watched, tracer, own, stages)
}

/// Random messages for so many cycles; `None` without Verilator.
pub fn drive(
    name: &str,
    cfg: CeCfg,
    define: Option<&'static str>,
    seed: u64,
    cycles: u64,
) -> Option<Result<(Cosim, Counts), Box<Difference>>> {
    let mut rng = Rng::new(seed, 0);
    let mut rig = Rig::new(cfg, &mut rng);
    let (mut watched, mut tracer, own, stages) = watch(&rig.ce);
    let seen = |name: &str| place(name, cfg.unit_stages, cfg.contexts).is_some();
    let places: Vec<usize> = (0..watched.signals().len()).filter(|&at| seen(&watched.signals()[at].name)).collect();
    let mut bench = bench(cfg, &watched);
    if let Some(define) = define {
        bench.define(define);
    }
    let mut cosim = bench.build(name)?;
    let mut counts = Counts::default();
    let mut before: Option<(bool, Vec<u128>, Vec<Option<u128>>)> = None;
    for now in 0..cycles {
        let reset = now == 0 || rng.below(3_000) == 0;
        if reset {
            rig = Rig::new(cfg, &mut rng);
        }
        tracer.sample(own, now, |scope| rig.ce.probe(scope));
        tracer.sample(stages, now, |scope| rig.ce.probe_stages(scope));
        // With this cycle's sample that of the one before is complete.
        if let Some((reset, given, mut expected)) = before.take() {
            watched.go_to(now - 1);
            expected.extend(places.iter().map(|&at| watched.values[at]));
            if let Err(difference) = cosim.cycle(reset, &given, expected) {
                return Some(Err(difference));
            }
        }
        let packet = rig.message(&mut rng);
        let ready = rig.ce.ready(&packet.header);
        let valid = !reset && ready && rng.below(rig.gaps) > 0;
        let inputs = given(&packet, valid);
        let taken = valid.then_some(packet.header.message);
        let (refused, answers) = if reset { Default::default() } else { rig.tick(valid.then_some(packet), now) };
        counts.taken += u64::from(valid);
        counts.waited += u64::from(!ready);
        counts.refused += refused.len() as u64;
        counts.answered += answers.len() as u64;
        before = Some((reset, inputs, outputs(ready, &refused, &answers, taken)));
    }
    Some(cosim.flush().map(|()| (cosim, counts)))
}

/// Three contexts, as the defaults have the rest.
pub fn usual() -> CeCfg {
    CeCfg { contexts: 3, ..CeCfg::default() }
}

/// One port of each memory, an interlock, one message that waits.
fn narrow() -> CeCfg {
    CeCfg { hazard: Hazard::Interlock, unit_stages: 2, feeds: 1, memory_ports: 1, ..usual() }
}

fn engines_hold_what_the_model_holds(name: &str, cfg: CeCfg, cycles: u64) {
    let seed = seed(0x9b5c_0000);
    let Some(driven) = drive(name, cfg, None, seed, cycles) else { return };
    let (cosim, counts) = driven.unwrap_or_else(|difference| panic!("{difference} (seed {seed})"));
    let Counts { taken, refused, answered, waited } = counts;
    assert!(answered > cycles / 60 && refused > 0 && waited > 0, "{counts:?}");
    cosim.finish(&format!(
        "ws_pbv_ce, {name}, {taken} messages, {refused} refused, {answered} answers, {waited} cycles in which none could be taken"
    ));
}

/// Cycles of a sample and of a soak.
const SAMPLE: u64 = 20_000;
const SOAK: u64 = 400_000;

#[test]
fn a_collective_engine_holds_what_the_model_holds() {
    engines_hold_what_the_model_holds("pbv-ce", usual(), SAMPLE);
}

#[test]
fn a_collective_engine_of_narrow_memories_holds_what_the_model_holds() {
    engines_hold_what_the_model_holds("pbv-ce-narrow", narrow(), SAMPLE);
}

#[test]
#[ignore = "takes minutes: make soak"]
fn collective_engines_hold_what_the_model_holds_for_long() {
    engines_hold_what_the_model_holds("pbv-ce", usual(), SOAK);
    engines_hold_what_the_model_holds("pbv-ce-narrow", narrow(), SOAK);
}
