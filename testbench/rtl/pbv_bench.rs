//! A collective engine of packet engines on the bench: what it is given in a cycle, and what is looked at.

use watershed::arith::stages::units_of;
use watershed::arith::{DType, Op};
use watershed::pbv::ce::{Ce, CeCfg, Hazard, Outgoing, Target};
use watershed::pbv::packet::{Body, Header, InitRecord, Message, NO_DEVICE, Packet, Status};
use watershed::pbv::tables::{PbvTable, engine_tag};
use watershed::probe::{NodeHandle, Tracer};

use crate::bench::{Bench, Cosim, Difference};
use crate::registers::{flags_bits, mode_bits, units_literal, wave_of_tree};
use crate::tracker;
use crate::watched::Watched;

/// Fields of a message.
const MESSAGE: [(&str, u32); 23] = [
    ("message", 4),
    ("control", 4),
    ("engines_only", 1),
    ("lists", 1),
    ("pass", 14),
    ("tag", 14),
    ("device", 16),
    ("offset", 16),
    ("cc_id", 12),
    ("run", 32),
    ("requester", 16),
    ("dmu_id", 16),
    ("p_id", 7),
    ("p_count", 16),
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
const RECORD: [(&str, u32); 16] = [
    ("track.pbv", 128),
    ("track.p_count", 16),
    ("down", 128),
    ("words", 16),
    ("pbv_order", 1),
    ("rearm", 1),
    ("answer_source", 1),
    ("master", 1),
    ("to_source", 1),
    ("groups", 1),
    ("first", 16),
    ("count", 8),
    ("initial_valid", 1),
    ("initial_word", 64),
    ("above", 16),
    ("collector", 16),
];

/// Contexts whose messages wait to leave, at most.
const LEAVING: usize = 8;
/// Messages of a cycle that are looked at.
pub const LISTED: usize = 12;
/// What is looked at of a message beside its header and words: its way, entries, who gets none, that it stands for many.
const BESIDE: usize = 4;
/// Lanes that the reduction unit of the bench has.
const LANES: usize = 2;

/// Parameters of the RTL that the model has no bounds for.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The model's.
    pub cfg: CeCfg,
    /// Entries of the PBV table.
    pub participants: u8,
    /// Words of a message.
    pub words: usize,
    /// Groups of a barrier.
    pub groups: u8,
    /// What is reduced.
    pub selects: Vec<(Op, DType)>,
    /// The number of the planted fault, in an RTL that has them all.
    pub fault: Option<u8>,
}

/// What an engine is given in a cycle.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// Its table.
    pub table: &'a PbvTable,
    /// Device and base.
    pub me: (u16, u16),
    /// The cycle.
    pub now: u64,
    /// Watchdogs wait for room.
    pub full: bool,
    /// Contexts whose messages wait to leave.
    pub leaving: &'a [u16],
    /// What comes, or would.
    pub packet: Option<&'a Packet>,
    /// Whether it is taken.
    pub valid: bool,
}

/// A header and a number of words as the RTL has them.
fn header_fields(header: &Header, lists: bool, words: usize) -> [u128; 23] {
    let pass = u128::from(header.tlp.tc) << 11
        | u128::from(header.tlp.ohc) << 6
        | u128::from(header.tlp.ts) << 3
        | u128::from(header.tlp.attr);
    [
        u128::from(header.message.number()),
        u128::from(header.control.number()),
        u128::from(header.engines_only),
        u128::from(lists),
        pass,
        u128::from(header.tag),
        u128::from(header.device),
        u128::from(header.offset),
        u128::from(header.cc_id),
        u128::from(header.run),
        u128::from(header.requester),
        u128::from(header.dmu_id),
        u128::from(header.p_id),
        u128::from(header.p_count),
        u128::from(header.posted),
        u128::from(header.tlp.poisoned),
        u128::from(header.error),
        u128::from(header.status.number()),
        flags_bits(header.flags),
        header.op as u128,
        header.dtype as u128,
        mode_bits(header.mode()),
        words as u128,
    ]
}

fn record_fields(record: &InitRecord) -> [u128; 16] {
    [
        record.pbv,
        u128::from(record.p_count),
        record.down,
        u128::from(record.words),
        u128::from(record.pbv_order),
        u128::from(record.rearm),
        u128::from(record.answer_source),
        u128::from(record.master),
        u128::from(record.to_source),
        u128::from(record.groups.is_some()),
        u128::from(record.groups.map_or(0, |groups| groups.first)),
        u128::from(record.groups.map_or(0, |groups| groups.count)),
        u128::from(record.initial.is_some()),
        u128::from(record.initial.unwrap_or(0)),
        u128::from(record.above),
        u128::from(record.collector),
    ]
}

/// Whether the register block lets this device initialise a context.
pub fn owns(table: &PbvTable, header: &Header) -> bool {
    table.owners.contexts.as_ref().is_none_or(|owners| {
        let owner = owners.get(&header.cc_id);
        owner.is_some_and(|owner| {
            header.requester != NO_DEVICE && [owner.device, owner.through].contains(&header.requester)
        })
    })
}

impl Shape {
    /// Messages that may leave in a cycle.
    pub fn sends(&self) -> usize {
        let groups = usize::from(self.groups);
        18 + 2 * groups + usize::from(self.cfg.memory_ports) * (5 + groups)
    }

    /// Parameters in a name.
    pub fn name(&self) -> String {
        let CeCfg { contexts, hazard, unit_stages, units, feeds, memory_ports } = self.cfg;
        let Shape { participants, words, groups, selects, .. } = self;
        let datapaths = units_literal(&units_of(selects.iter().copied()));
        format!(
            "pbv-{contexts}-{participants}-{words}-{groups}-{hazard:?}-{unit_stages}-{units}-{feeds}-{memory_ports}-{}",
            &datapaths[4..]
        )
    }

    /// An engine on the bench, with these signals of its waves.
    pub fn bench(&self, watched: &Watched) -> Bench {
        let mut bench = Bench::default();
        for (name, width) in [("valid", 1), ("full", 1), ("owned", 1), ("validate", 1), ("errors", 1), ("retries", 8)] {
            bench.input(name, width);
        }
        for (name, width) in [("me_device", 16), ("me_tag", 14), ("now", 48), ("timeout", 32), ("engines", 128)] {
            bench.input(name, width);
        }
        if self.fault.is_some() {
            bench.input("fault", 4);
            bench.define("WS_FAULTS");
        }
        for k in 0..self.participants {
            bench.input(format!("device_{k}"), 16);
        }
        for k in 0..LEAVING {
            bench.input(format!("leaving_{k}"), 13);
        }
        for (name, width) in MESSAGE {
            bench.input(format!("m_{name}"), width);
        }
        for (name, width) in RECORD {
            bench.input(format!("r_{}", name.replace('.', "_")), width);
        }
        for k in 0..self.words {
            bench.input(format!("word_{k}"), 64);
        }
        self.instance(&mut bench);
        bench.look("ready", "ready", 1);
        bench.look("refused", "2'(refused[0]) + 2'(refused[1])", 2);
        bench.look("refused.first", "refused[0] ? status[0] : status[1]", 4);
        bench.look("refused.second", "status[1]", 4);
        bench.look("alarm.valid", "u_dut.alarm_valid_q", 1);
        bench.look("alarm", "u_dut.alarm_q", 48);
        bench.look("sends", "sends", 8);
        for n in 0..LISTED {
            bench.look(format!("send{n}.to_entries"), format!("list[{n}].to_entries"), 1);
            bench.look(format!("send{n}.pbv"), format!("list[{n}].pbv"), 128);
            bench.look(format!("send{n}.skip"), format!("list[{n}].skip"), 16);
            bench.look(format!("send{n}.handed"), format!("list[{n}].from == WordsHanded"), 1);
            for (name, width) in MESSAGE {
                bench.look(format!("send{n}.{name}"), format!("list[{n}].head.{name}"), width);
            }
            for k in 0..self.words {
                bench.look(format!("send{n}.word{k}"), format!("list_word[{n}][{k}]"), 64);
            }
        }
        for signal in watched.signals() {
            if let Some(expression) = self.place(&signal.name) {
                bench.look(signal.name, expression, signal.width);
            }
        }
        bench
    }

    fn instance(&self, bench: &mut Bench) {
        let Shape {
            cfg: CeCfg { contexts, hazard, unit_stages, units, feeds, memory_ports },
            participants,
            words,
            groups,
            ..
        } = self;
        let (datapaths, sends) = (units_literal(&units_of(self.selects.iter().copied())), self.sends());
        bench.body(&format!(
            "  import ws_pbv_pkg::*;\n  message_t message;\n  record_t rec;\n  self_t me;\n  logic [63:0] words [{words}];\n  logic [15:0] \
             devices [{participants}];\n  logic ready;\n  logic [1:0] refused;\n  status_e status [2];\n  logic [{contexts}-1:0] \
             leaving;\n  send_t send [{sends}];\n  logic [63:0] send_word [{sends}][{words}];\n  assign me = '{{device: me_device, tag: \
             me_tag, now: now, timeout: timeout{}}};\n",
            if self.fault.is_some() { ", fault: fault" } else { "" }
        ));
        for (name, _) in MESSAGE {
            let value = match name {
                "message" => "message_e'(m_message)".to_owned(),
                "control" => "control_e'(m_control)".to_owned(),
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
        for k in 0..*words {
            bench.body(&format!("  assign words[{k}] = word_{k};\n"));
        }
        for k in 0..*participants {
            bench.body(&format!("  assign devices[{k}] = device_{k};\n"));
        }
        let leaving = (0..LEAVING)
            .map(|k| format!("leaving_{k} == {{1'b1, u_dut.context_q[c].cc_id}}"))
            .collect::<Vec<_>>()
            .join(" || ");
        let forward = u8::from(*hazard == Hazard::Forward);
        bench.body(&format!(
            "  always_comb for (int unsigned c = 0; c < {contexts}; c++) leaving[c] = {leaving};\n  ws_pbv_ce #(.Contexts({contexts}), \
             .Participants({participants}), .Words({words}), .Groups({groups}), .Forward(1'b{forward}), .Stages({unit_stages}),\n    \
             .Units({datapaths}), .UnitCount({units}), .Feeds({feeds}), .MemoryPorts({memory_ports})) u_dut (\n    .clk_i, .rst_ni, .me_i(me), .device_i(devices), \
             .engines_i(engines[{participants}-1:0]), .validate_i(validate), .errors_i(errors),\n    .retries_i(retries), .valid_i(valid), \
             .message_i(message), .record_i(rec), .owned_i(owned), .word_i(words), .ready_o(ready),\n    .full_i(full), \
             .leaving_i(leaving), .refused_o(refused), .status_o(status), .send_o(send), .send_word_o(send_word));\n"
        ));
        // Messages in the order in which the model makes them.
        bench.body(&format!(
            "  logic [7:0] sends;\n  logic [2:0] units_held;\n  send_t list [{LISTED}];\n  logic [63:0] list_word \
             [{LISTED}][{words}];\n  always_comb begin\n    sends = '0;\n    for (int unsigned n = 0; n < {LISTED}; n++) begin\n      list[n] = \
             '0;\n      for (int unsigned k = 0; k < {words}; k++) list_word[n][k] = '0;\n    end\n    for (int unsigned n = 0; n < \
             {sends}; n++) begin\n      if (send[n].valid) begin\n        if (sends < 8'd{LISTED}) begin\n          list[sends[3:0]] = \
             send[n];\n          for (int unsigned k = 0; k < {words}; k++) list_word[sends[3:0]][k] = send_word[n][k];\n        end\n        \
             sends = sends + 8'd1;\n      end\n    end\n    units_held = '0;\n    for (int unsigned s = 0; s < {unit_stages}; s++) \
             units_held = units_held + 3'(u_dut.u_reduce.unit_q[s].valid);\n  end\n"
        ));
    }

    /// Where the RTL has a signal of an engine's waves, from its name.
    pub fn place(&self, name: &str) -> Option<String> {
        let name = name.strip_prefix("ce.")?;
        if let Some(name) = name.strip_prefix("tracking.") {
            return Some(tracker::place("u_dut.u_tracker", name));
        }
        // The first unit is the tree; the others are beside it.
        let of_unit = name.strip_prefix("unit").and_then(|name| name.split_once(".tree."));
        if let Some((unit, name)) = of_unit.or_else(|| Some(("0", name.strip_prefix("tree.")?))) {
            let lane = name.split('.').find_map(|part| part.strip_prefix("lane")?.parse::<usize>().ok());
            return wave_of_tree(name, &format!("u_dut.u_reduce.gen_unit[{unit}].u_tree"), self.cfg.unit_stages)
                .filter(|_| lane.is_none_or(|lane| lane < LANES));
        }
        if name == "in_unit" {
            return Some("units_held".to_owned());
        }
        let (slot, field) = name.strip_prefix("context")?.split_once('.')?;
        let slot: u16 = slot.parse().ok().filter(|&slot| slot < self.cfg.contexts)?;
        Some(match field {
            "state" => format!("u_dut.context_q[{slot}].state"),
            "cc_id" => format!("u_dut.context_q[{slot}].state == ContextAbsent ? '0 : u_dut.context_q[{slot}].cc_id"),
            field => format!("u_dut.u_tracker.store_q[{slot}].{field}"),
        })
    }

    /// Values of the inputs.
    pub fn given(&self, given: &Given<'_>) -> Vec<u128> {
        let Given { table, me, now, full, leaving, packet, valid } = *given;
        let header = packet.map(|packet| packet.header);
        let mut all = vec![
            u128::from(valid),
            u128::from(full),
            u128::from(header.is_some_and(|header| owns(table, &header))),
            u128::from(table.validate),
            u128::from(table.report_errors),
            u128::from(table.retries),
            u128::from(me.0),
            u128::from(engine_tag(me.1)),
            u128::from(now),
            u128::from(table.timeout),
            table.switches,
        ];
        all.extend(self.fault.map(u128::from));
        all.extend((0..self.participants).map(|k| u128::from(table.device(k).unwrap_or(NO_DEVICE))));
        assert!(leaving.len() <= LEAVING, "{leaving:?}");
        all.extend((0..LEAVING).map(|k| leaving.get(k).map_or(0, |&cc_id| 1 << 12 | u128::from(cc_id))));
        let (mut message, mut record, mut words) = ([0; 23], [0; 16], &[][..]);
        if let Some(packet) = packet {
            words = packet.words();
            message = header_fields(&packet.header, matches!(packet.body, Body::Missing { .. }), words.len());
            if let Body::Initialisation(records) = &packet.body {
                let own = records.iter().find(|record| record.device == me.0).expect("a record of its own");
                record = record_fields(own);
            }
        }
        assert!(words.len() <= self.words, "{} words", words.len());
        all.extend(message);
        all.extend(record);
        all.extend((0..self.words).map(|k| words.get(k).copied().map_or(0, u128::from)));
        all
    }

    /// What a cycle shows beside waves. Copies of initialisations are not the engine's; what was handed to a source and goes there
    /// again is one message that says how many.
    pub fn outputs(&self, ce: &Ce, shown: &Shown<'_>) -> Vec<Option<u128>> {
        let Shown { me, ready, alarm, refused, sent, taken } = *shown;
        let status = |at: usize| refused.get(at).map(|status| u128::from(status.number()));
        let sent = listed(ce, sent, taken);
        let mut all = vec![ready.map(u128::from), Some(refused.len() as u128), status(0), status(1)];
        all.extend([Some(u128::from(alarm.is_some())), alarm.map(u128::from), Some(sent.len() as u128)]);
        assert!(sent.len() <= LISTED, "{} messages in a cycle", sent.len());
        for n in 0..LISTED {
            let looked = BESIDE + MESSAGE.len() + self.words;
            let begin = all.len();
            match sent.get(n) {
                None => {}
                Some(Sent::Handed(count)) => {
                    all.extend([None, None, None, Some(1)]);
                    all.extend([None; MESSAGE.len() - 1]);
                    all.push(Some(*count as u128));
                }
                Some(Sent::One(Outgoing { packet, target })) => {
                    all.extend(self.sent(me, packet, target));
                }
            }
            all.resize(begin + looked, None);
        }
        all
    }

    fn sent(&self, me: u16, packet: &Packet, target: &Target) -> Vec<Option<u128>> {
        let (entries, beside) = match (target, &packet.body) {
            (&Target::Entries { pbv, skip }, _) => (true, [Some(1), Some(pbv), Some(u128::from(skip)), Some(0)]),
            // Who is missing here; a list that is passed on has that of another engine.
            (Target::Header, &Body::Missing { pbv, .. }) if packet.header.message == Message::Error => {
                (false, [Some(0), Some(pbv).filter(|_| packet.header.requester == me), None, Some(0)])
            }
            (Target::Header, _) => (false, [Some(0), None, None, Some(0)]),
        };
        let words = packet.words();
        let header = header_fields(&packet.header, matches!(packet.body, Body::Missing { .. }), words.len());
        let mut all = beside.to_vec();
        all.extend(MESSAGE.iter().zip(header).map(|(&(name, _), value)| {
            // Copies have the address and the entry of their receiver.
            Some(value).filter(|_| !(entries && ["device", "offset", "p_id"].contains(&name)))
        }));
        all.extend((0..self.words).map(|k| words.get(k).copied().map(u128::from)));
        all
    }
}

/// What the model shows in a cycle beside waves.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// Device of the engine.
    pub me: u16,
    /// Whether the message could be taken, if there was one.
    pub ready: Option<bool>,
    /// When a watchdog is due at the earliest, at the start of the cycle.
    pub alarm: Option<u64>,
    /// Refusals.
    pub refused: &'a [Status],
    /// Messages.
    pub sent: &'a [Outgoing],
    /// What was taken.
    pub taken: Option<&'a Header>,
}

/// A message, or many that were handed to a source before.
enum Sent<'a> {
    One(&'a Outgoing),
    Handed(usize),
}

/// Messages as the RTL has them.
fn listed<'a>(ce: &Ce, sent: &'a [Outgoing], taken: Option<&Header>) -> Vec<Sent<'a>> {
    let asks = taken.filter(|header| matches!(header.message, Message::Command | Message::Multicast | Message::Retry));
    let handing = asks.filter(|header| {
        ce.find(header.cc_id).is_some_and(|context| context.stored.to_source && context.stored.master)
    });
    let is_again = |outgoing: &&Outgoing| {
        let header = &outgoing.packet.header;
        outgoing.target == Target::Header
            && handing.is_some_and(|asked| asked.cc_id == header.cc_id)
            && matches!(header.message, Message::Contribution | Message::Partial | Message::Failure)
    };
    let again = sent.iter().take_while(is_again).count();
    let mut all = Vec::new();
    if again > 0 {
        all.push(Sent::Handed(again));
    }
    let others = sent[again..].iter().filter(|outgoing| outgoing.packet.header.message != Message::Initialisation);
    all.extend(others.map(Sent::One));
    all
}

/// An engine of the RTL beside one of the model, whose registers are seen a cycle later.
pub struct Beside {
    /// The RTL's parameters.
    pub shape: Shape,
    watched: Watched,
    tracer: Tracer,
    own: NodeHandle,
    stages: NodeHandle,
    places: Vec<usize>,
    cosim: Cosim,
    samples: u64,
    before: Option<(bool, Vec<u128>, Vec<Option<u128>>)>,
}

impl Beside {
    /// A simulator of this name; `None` without Verilator.
    pub fn new(shape: Shape, ce: &Ce, name: &str, define: Option<&'static str>) -> Option<Beside> {
        let (watched, mut tracer) = Watched::new(&["ce.**"]);
        let own = tracer.declare("ce", |scope| ce.probe(scope)).expect("registers");
        let stages = tracer.declare_details("ce", |scope| ce.probe_stages(scope)).expect("registers of the unit");
        tracer.start().expect("signals");
        let signals = watched.signals();
        let places = (0..signals.len()).filter(|&at| shape.place(&signals[at].name).is_some()).collect();
        let mut bench = shape.bench(&watched);
        if let Some(define) = define {
            bench.define(define);
        }
        let cosim = bench.build(name)?;
        Some(Beside { shape, watched, tracer, own, stages, places, cosim, samples: 0, before: None })
    }

    /// The model's registers at the start of a cycle: with them the one before is complete.
    ///
    /// # Errors
    /// The first difference.
    pub fn sample(&mut self, ce: &Ce) -> Result<(), Box<Difference>> {
        self.tracer.sample(self.own, self.samples, |scope| ce.probe(scope));
        self.tracer.sample(self.stages, self.samples, |scope| ce.probe_stages(scope));
        self.samples += 1;
        let Some((reset, given, mut expected)) = self.before.take() else { return Ok(()) };
        self.watched.go_to(self.samples - 2);
        expected.extend(self.places.iter().map(|&at| self.watched.values[at]));
        self.cosim.cycle(reset, &given, expected)
    }

    /// What this cycle is given, and what it comes to.
    pub fn clock(&mut self, reset: bool, given: Vec<u128>, outputs: Vec<Option<u128>>) {
        self.before = Some((reset, given, outputs));
    }

    /// Compares what is left.
    ///
    /// # Errors
    /// The first difference.
    pub fn end(mut self) -> Result<Cosim, Box<Difference>> {
        self.cosim.flush()?;
        Ok(self.cosim)
    }
}
