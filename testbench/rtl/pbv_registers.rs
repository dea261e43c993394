//! The registers of a packet engine beside those of a model's: frames that write and read them, counters, congestion metrics and reports.

use std::collections::VecDeque;

use watershed::pbv::Engine;
use watershed::pbv::ce::{Outgoing, State};
use watershed::pbv::checker::{CheckOutcome, check};
use watershed::pbv::engine::{CycleRecord, EngineCfg};
use watershed::pbv::metrics::{OUTPUT, QUEUES};
use watershed::pbv::packet::{NO_DEVICE, Packet, Status};
use watershed::pbv::tables::engine_tag;

use crate::bench::{Bench, Cosim, Cosims, Difference};

/// Words of a frame for the registers, and of what they send, behind the header: a record with 128 entries, with one before it.
const WORDS: usize = 64;
const PAYLOAD: usize = 40;
/// What is sent in a cycle, at most, and registers that a read asks for.
const RECORDS: usize = 3;
const READS: usize = 40;
/// Frames that wait.
const FRAMES: usize = 24;
/// Entries of the table.
const ENTRIES: usize = 128;
/// Words of a report.
const REPORT: usize = QUEUES + 1;
/// What stands in the CRC's place is made when the frame leaves.
const CRC: u64 = 0xff_ffff;

/// A register of the model, or several side by side.
type Value = fn(&Engine) -> u128;

/// Where the RTL has registers, their bits, and what the model has; entries of the table and refusals apart.
const STATE: [(&str, u32, Value); 18] = [
    ("table_q.engines", 128, |engine| engine.registers().table.switches),
    ("table_q.timeout", 32, |engine| engine.registers().table.timeout.into()),
    ("table_q.retries", 8, |engine| engine.registers().table.retries.into()),
    ("table_q.errors", 1, |engine| engine.registers().table.report_errors.into()),
    ("table_q.validate", 1, |engine| engine.registers().table.validate.into()),
    ("table_q.isl_ports", 64, |engine| engine.registers().table.isl_ports.into()),
    ("table_q.levels", 32, |engine| engine.registers().table.reports.levels.into()),
    ("table_q.queues", 32, |engine| engine.registers().table.reports.queues.into()),
    ("table_q.collector", 32, |engine| engine.registers().table.reports.collector.into()),
    ("owner", 33, |engine| {
        let owner = engine.registers().table.owners.table;
        owner.map_or(0, |owner| 1 << 32 | u128::from(owner.through) << 16 | u128::from(owner.device))
    }),
    ("failure_q", 33, |engine| {
        let failure = engine.registers().readings.failure;
        failure.map_or(0, |(device, cc_id, status)| {
            1 << 32 | u128::from(status.number()) << 28 | u128::from(cc_id) << 16 | u128::from(device)
        })
    }),
    ("selected_q", 12, |engine| engine.read(0x200).expect("a register").into()),
    ("u_metrics.window_q", 32, |engine| engine.registers().metrics.window().into()),
    ("peak_q", 32, |engine| engine.registers().readings.queue_peak.into()),
    ("in_q", 32, |engine| engine.registers().readings.frames_in.into()),
    ("out_q", 32, |engine| engine.registers().readings.frames_out.into()),
    ("waited_q", 32, |engine| engine.registers().readings.waited.into()),
    ("reports_q", 32, |engine| engine.registers().readings.reports.into()),
];

/// Eight entries of the table from this one on.
fn entries(engine: &Engine, from: usize) -> u128 {
    let device = |entry: usize| engine.registers().table.device(entry as u8).unwrap_or(NO_DEVICE);
    (0..8).fold(0, |all, k| all | u128::from(device(from + k)) << (16 * k))
}

/// All registers of the model.
fn state(engine: &Engine) -> Vec<u128> {
    let mut all: Vec<u128> = STATE.iter().map(|(.., of)| of(engine)).collect();
    all.extend((0..ENTRIES).step_by(8).map(|from| entries(engine, from)));
    all.extend(engine.registers().readings.refused.iter().map(|&count| u128::from(count)));
    all
}

/// Of the context that is selected, as its engine has it behind a cycle: state, participants, those it began with, its owner.
type Selected = (u128, u128, u128, u128, u128);

fn selected(engine: &Engine, cc_id: u16) -> Selected {
    let context = engine.ce().find(cc_id);
    let (state, track, stored) = context.map_or((State::Absent, Default::default(), 0), |context| {
        (context.state, (context.track.pbv, context.track.p_count), context.stored.pbv)
    });
    let (pbv, p_count): (u128, u16) = track;
    let owners = engine.registers().table.owners.contexts.as_ref();
    let owner = owners.and_then(|all| all.get(&cc_id));
    let owner = owner.map_or(u128::from(u32::MAX), |owner| u128::from(owner.through) << 16 | u128::from(owner.device));
    (state as u128, pbv, p_count.into(), stored, owner)
}

/// An engine's registers and the RTL's.
pub struct Registers {
    cfg: EngineCfg,
    fault: Option<u8>,
    name: String,
    cosim: Cosim,
    /// What they are at the start of each cycle that is not compared yet, and of the context that is selected.
    states: VecDeque<Vec<u128>>,
    contexts: VecDeque<Selected>,
    /// The context that was selected when the last cycle began.
    cc_id: u16,
    /// Before the run: the table, and who was named.
    table: Vec<u128>,
    named: Option<u128>,
    cycles: u64,
}

fn bench(cfg: &EngineCfg, fault: Option<u8>) -> Bench {
    let mut bench = Bench::default();
    for (name, width) in [("device", 16), ("base", 16), ("tag", 14), ("now", 48), ("side", 1)] {
        bench.input(name, width);
    }
    let settings =
        [("engines", 128), ("timeout", 32), ("retries", 8), ("errors", 1), ("validate", 1), ("isl_ports", 64)];
    for (name, width) in settings.into_iter().chain([("levels", 32), ("queues", 32), ("collector", 32), ("window", 32)])
    {
        bench.input(format!("side_{name}"), width);
    }
    for chunk in 0..ENTRIES / 8 {
        bench.input(format!("side_device_{chunk}"), 128);
    }
    for (name, width) in [("named", 1), ("owner", 32), ("push", 2), ("frame", 2), ("refused", 4), ("status", 16)] {
        bench.input(name, width);
    }
    for (name, width) in [("leaves", 1), ("waits", 1), ("missing", 33), ("most", 16), ("output_len", 16), ("held", 16)]
    {
        bench.input(name, width);
    }
    for (name, width) in
        [("counted", 16), ("reporting", 1), ("state", 3), ("pbv", 128), ("p_count", 16), ("stored", 128)]
    {
        bench.input(name, width);
    }
    bench.input("context_owner", 32);
    if fault.is_some() {
        bench.input("fault", 4);
        bench.define("WS_FAULTS");
    }
    for queue in 0..QUEUES {
        bench.input(format!("level_{queue}"), 16);
    }
    for port in 0..2 {
        bench.input(format!("words_{port}"), 10);
        for k in 0..4 + WORDS {
            bench.input(format!("word_{port}_{k}"), 64);
        }
    }
    let faults = if fault.is_some() { ", fault: fault" } else { "" };
    bench.body(&format!(
        "  import ws_pbv_pkg::*;\n  self_t me;\n  config_t from_side;\n  logic [15:0] side_device [{ENTRIES}];\n  logic [15:0] devices \
         [{ENTRIES}];\n  logic [{ENTRIES}-1:0] engines;\n  message_t heads [2];\n  logic [9:0] words [2];\n  logic [63:0] in_word \
         [2][{WORDS}];\n  status_e statuses [4];\n  logic [15:0] levels [{QUEUES}];\n  logic [11:0] selected;\n  track_t track;\n  logic \
         [31:0] timeout;\n  logic [7:0] retries;\n  logic errors, validate, closed;\n  logic [15:0] served;\n  leaving_t report;\n  logic \
         [63:0] report_word [{REPORT}];\n  leaving_t answer [{RECORDS}];\n  logic [63:0] answer_word [{RECORDS}][{PAYLOAD}];\n  logic \
         [3:0][63:0] report_head;\n  logic [3:0][63:0] answer_head [{RECORDS}];\n  assign me = '{{device: device, tag: tag, now: now, \
         timeout: '0{faults}}};\n  assign from_side = '{{timeout: side_timeout, retries: side_retries, errors: side_errors, validate: \
         side_validate, window: side_window,\n    isl_ports: side_isl_ports, engines: side_engines, levels: side_levels, queues: \
         side_queues, collector: side_collector, entries: '0}};\n  assign track = '{{pbv: pbv, p_count: p_count}};\n  assign report_head \
         = header_words(report.send.head, report.words);\n"
    ));
    for entry in 0..ENTRIES {
        let (chunk, low) = (entry / 8, 16 * (entry % 8));
        bench.body(&format!("  assign side_device[{entry}] = side_device_{chunk}[{}:{low}];\n", low + 15));
    }
    for queue in 0..QUEUES {
        bench.body(&format!("  assign levels[{queue}] = level_{queue};\n"));
    }
    for k in 0..4 {
        bench.body(&format!("  assign statuses[{k}] = status_e'(status[{}:{}]);\n", 4 * k + 3, 4 * k));
    }
    for port in 0..2 {
        let head: Vec<String> = (0..4).rev().map(|k| format!("word_{port}_{k}")).collect();
        bench.body(&format!(
            "  assign heads[{port}] = header_of({{{}}});\n  assign words[{port}] = words_{port};\n",
            head.join(", ")
        ));
        for k in 0..WORDS {
            bench.body(&format!("  assign in_word[{port}][{k}] = word_{port}_{};\n", k + 4));
        }
    }
    // Those that there are, one behind the other.
    bench.body(&format!(
        "  leaving_t first [{RECORDS}];\n  logic [63:0] first_word [{RECORDS}][{PAYLOAD}];\n  always_comb begin\n    int unsigned n;\n    n = \
         0;\n    for (int unsigned r = 0; r < {RECORDS}; r++) begin\n      first[r] = '0;\n      first_word[r] = answer_word[r];\n    \
         end\n    for (int unsigned r = 0; r < {RECORDS}; r++) begin\n      if (answer[r].send.valid) begin\n        first[n] = \
         answer[r];\n        first_word[n] = answer_word[r];\n        n = n + 1;\n      end\n    end\n  end\n"
    ));
    for n in 0..RECORDS {
        bench.body(&format!("  assign answer_head[{n}] = header_words(first[{n}].send.head, first[{n}].words);\n"));
    }
    let ports = cfg.ce.memory_ports;
    bench.body(&format!(
        "  ws_pbv_registers #(.Participants({ENTRIES}), .Words({WORDS}), .Frames({FRAMES}), .Records({RECORDS}), .Reads({READS}), \
         .Payload({PAYLOAD}),\n    .MemoryPorts({ports})) u_dut (.clk_i, .rst_ni, .me_i(me), .base_i(base), \
         .side_i(side), .side_config_i(from_side), .side_device_i(side_device),\n    .named_i(named), .owner_i(owner), .push_i(push), \
         .head_i(heads), .words_i(words), .word_i(in_word), .frame_i(frame), .refused_i(refused),\n    .status_i(statuses), \
         .leaves_i(leaves), .waits_i(waits), .missing_i(missing[32]), .missing_device_i(missing[15:0]),\n    \
         .missing_cc_id_i(missing[27:16]), .missing_status_i(status_e'(missing[31:28])), .most_i(most), .output_i(output_len), .held_i(held), \
         .counted_i(counted),\n    .reporting_i(reporting), .level_i(levels), .selected_o(selected), \
         .state_i(context_state_e'(state)), .track_i(track), .stored_i(stored),\n    .context_owner_i(context_owner), \
         .device_o(devices), .engines_o(engines), .timeout_o(timeout), .retries_o(retries), .errors_o(errors),\n    \
         .validate_o(validate), .closed_o(closed), .served_o(served), .report_o(report), .report_word_o(report_word), \
         .message_o(answer),\n    .message_word_o(answer_word));\n"
    ));
    look(&mut bench);
    bench
}

/// What is looked at.
fn look(bench: &mut Bench) {
    for (place, width, _) in STATE {
        bench.look(place, format!("u_dut.{place}"), width);
    }
    for from in (0..ENTRIES).step_by(8) {
        let all: Vec<String> = (from..from + 8).rev().map(|entry| format!("u_dut.device_q[{entry}]")).collect();
        bench.look(format!("device_q.{from}"), format!("{{{}}}", all.join(", ")), 128);
    }
    for status in 0..16 {
        bench.look(format!("refused_q.{status}"), format!("u_dut.refused_q[{status}]"), 32);
    }
    bench.look("closed", "closed", 1);
    bench.look("report", "report.send.valid", 1);
    for k in 0..4 + REPORT {
        let word = if k < 4 { format!("report_head[{k}]") } else { format!("report_word[{}]", k - 4) };
        bench.look(format!("report.word{k}"), word, 64);
    }
    for n in 0..RECORDS {
        bench.look(format!("message{n}"), format!("first[{n}].send.valid"), 1);
        for k in 0..4 + PAYLOAD {
            let word = if k < 4 { format!("answer_head[{n}][{k}]") } else { format!("first_word[{n}][{}]", k - 4) };
            bench.look(format!("message{n}.word{k}"), word, 64);
        }
    }
}

/// A message, if there is one: whether it is, and its words without the CRC; of so many.
fn words_of(outgoing: Option<&Outgoing>, most: usize) -> Vec<Option<u128>> {
    let mut all = vec![Some(u128::from(outgoing.is_some()))];
    let words = outgoing.map(|outgoing| outgoing.packet.flits().expect("a frame")).unwrap_or_default();
    assert!(words.len() <= most, "{} words", words.len());
    let masked = |(k, &word): (usize, &u64)| Some(u128::from(if k == 3 { word & !CRC } else { word }));
    all.extend(words.iter().enumerate().map(masked));
    all.resize(1 + most, None);
    all
}

impl Registers {
    /// Those of an engine before the run; `None` without Verilator.
    pub fn new(engine: &Engine, fault: Option<u8>, cosims: &mut Cosims) -> Option<Registers> {
        let cfg = engine.cfg();
        let faults = if fault.is_some() { "-faults" } else { "" };
        let name = format!("registers-{}{faults}", cfg.ce.memory_ports);
        let cosim = cosims.take(bench(&cfg, fault), &name)?;
        let table = &engine.registers().table;
        let mut side: Vec<u128> = STATE[..6].iter().map(|(.., of)| of(engine)).collect();
        side.extend([table.reports.levels, table.reports.queues, table.reports.collector].map(u128::from));
        side.push(engine.registers().metrics.window().into());
        side.extend((0..ENTRIES).step_by(8).map(|from| entries(engine, from)));
        let named = STATE[9].2(engine);
        Some(Registers {
            cfg,
            fault,
            name,
            cosim,
            states: VecDeque::from([state(engine)]),
            contexts: VecDeque::new(),
            cc_id: 0,
            table: side,
            named: (named >> 32 != 0).then_some(named & 0xffff_ffff),
            cycles: 0,
        })
    }

    /// A cycle of the engine is over.
    pub fn note(&mut self, engine: &Engine) {
        self.contexts.push_back(selected(engine, self.cc_id));
        self.cc_id = engine.read(0x200).expect("a register") as u16;
        self.states.push_back(state(engine));
    }

    /// Values of the inputs in a cycle in which the engine did this, or nothing; `side`: the table comes.
    fn given(
        &self,
        (cycle, side): (u64, bool),
        did: Option<&CycleRecord>,
        levels: &[u32; QUEUES],
        of: Selected,
    ) -> Vec<u128> {
        let EngineCfg { device, base, .. } = self.cfg;
        let bit = u128::from;
        let mut all = vec![device.into(), base.into(), engine_tag(base).into(), cycle.into(), bit(side)];
        all.extend(&self.table);
        all.extend([bit(self.named.is_some()), self.named.unwrap_or(0)]);
        let ports = did.map(|did| &did.ports);
        let arrived = ports.map_or(&[][..], |ports| &ports.arrived);
        let (mut push, mut frame, mut refusals) = (0, 0, Vec::new());
        let mut words: [&[u64]; 2] = [&[]; 2];
        for (port, all) in arrived {
            frame |= 1 << port;
            match check(&self.cfg, all) {
                CheckOutcome::Unreadable(status) | CheckOutcome::Refused(_, status) => refusals.push(status),
                CheckOutcome::Registers(_) => {
                    push |= 1 << port;
                    words[usize::from(*port)] = all;
                }
                CheckOutcome::Collective(_) => {}
            }
        }
        refusals.extend(did.map_or(&[][..], |did| &did.refused));
        assert!(refusals.len() <= 4, "{refusals:?}");
        let status = |(k, status): (usize, &Status)| u128::from(status.number()) << (4 * k);
        all.extend([push, frame, (1 << refusals.len()) - 1]);
        all.push(refusals.iter().enumerate().map(status).sum());
        let (stands, went, begins) =
            ports.map_or((false, false, false), |ports| (ports.output_word.is_some(), ports.output_sent, ports.begins));
        all.extend([bit(stands && went && begins), bit(stands && !went)]);
        let missing = ports.and_then(|ports| ports.missing);
        all.push(missing.map_or(0, |(device, cc_id, status)| {
            1 << 32 | u128::from(status.number()) << 28 | u128::from(cc_id) << 16 | u128::from(device)
        }));
        let level = |queue: usize| u128::from(levels[queue]);
        all.extend([u128::from(self.cfg.output), level(OUTPUT), ports.map_or(0, |ports| ports.held.into())]);
        all.extend([ports.map_or(0, |ports| ports.counted.into()), bit(ports.is_some_and(|ports| ports.reporting))]);
        all.extend([of.0, of.1, of.2, of.3, of.4]);
        all.extend(self.fault.map(u128::from));
        all.extend((0..QUEUES).map(level));
        for words in words {
            assert!(words.len() <= 4 + WORDS, "a frame of {} words", words.len());
            all.push(words.len() as u128);
            all.extend((0..4 + WORDS).map(|k| words.get(k).map_or(0, |&word| u128::from(word))));
        }
        all
    }

    /// A cycle of both.
    pub fn cycle(
        &mut self,
        cycle: u64,
        did: Option<&CycleRecord>,
        levels: &[u32; QUEUES],
    ) -> Result<(), Box<Difference>> {
        let looked = STATE.len() + ENTRIES / 8 + 16 + 2 + 4 + REPORT + RECORDS * (5 + PAYLOAD);
        if cycle == 0 {
            let of = (0, 0, 0, 0, 0);
            for (reset, side) in [(true, false), (false, true)] {
                self.cosim.cycle(reset, &self.given((0, side), None, &[0; QUEUES], of), vec![None; looked])?;
            }
        }
        let of = self.contexts.pop_front().expect("every cycle is kept");
        let given = self.given((cycle, false), did, levels, of);
        let state = self.states.pop_front().expect("every cycle is kept");
        let mut expected: Vec<Option<u128>> = state.into_iter().map(Some).collect();
        expected.push(did.map(|did| u128::from(did.ports.closed)));
        let report = did.and_then(|did| did.ports.report.as_ref());
        expected.extend(words_of(report, 4 + REPORT));
        let answers = did.map_or(&[][..], |did| &did.ports.answers);
        assert!(answers.len() <= RECORDS, "{} messages", answers.len());
        expected.extend((0..RECORDS).flat_map(|n| words_of(answers.get(n), 4 + PAYLOAD)));
        self.cycles += 1;
        self.cosim.cycle(false, &given, expected)
    }

    /// Why the RTL has no such registers, if it has not: what came and what was sent in all cycles.
    pub fn other_hardware(engine: &Engine) -> Option<&'static str> {
        let cfg = engine.cfg();
        for did in engine.given() {
            if did.ports.answers.len() > RECORDS
                || did.ports.answers.iter().any(|sent| sent.packet.flits().expect("a frame").len() > 4 + PAYLOAD)
            {
                return Some("frames for its registers with more records, or longer ones");
            }
            for (_, words) in &did.ports.arrived {
                if let CheckOutcome::Registers(Packet { header, .. }) = check(&cfg, words)
                    && (words.len() > 4 + WORDS || usize::from(header.p_count) > READS)
                {
                    return Some("frames for its registers that are longer");
                }
            }
        }
        None
    }

    /// The run is over: cycles that were compared.
    pub fn end(mut self, cosims: &mut Cosims) -> Result<u64, Box<Difference>> {
        self.cosim.flush()?;
        cosims.put(self.name, self.cosim);
        Ok(self.cycles)
    }
}
