//! A packet engine with its frames, word by word: what running systems give it, and random messages of every kind, spoiled ones among
//! them, through two ports, with gaps, back-pressure and resets.

use std::fmt::Write as _;

use watershed::arith::stages::units_of;
use watershed::kernel::Rng;
use watershed::pbv::ce::{CeCfg, Hazard, Outgoing, Target};
use watershed::pbv::checker::{CheckOutcome, check};
use watershed::pbv::engine::{CycleRecord, EngineCfg, PortRecord};
use watershed::pbv::packet::{Body, Message, NO_DEVICE};
use watershed::pbv::tables::{PbvTable, engine_tag};

use crate::bench::{Bench, Cosim, Difference};
use crate::pbv_bench::{Shape, owns};
use crate::registers::units_literal;

/// Messages in a cycle that the bench gives to the RTL, at most.
#[derive(Clone, Copy, Debug)]
pub struct Sides {
    /// From beside: reports, slices of initialisations, and what is handed to a source again.
    pub beside: usize,
    /// Lists of devices.
    pub lists: usize,
    /// Messages of the registers.
    pub registers: usize,
}

impl Sides {
    /// What random messages need.
    pub const USUAL: Sides = Sides { beside: 8, lists: 2, registers: 4 };

    /// What a cycle of a running system needs too.
    pub fn with(self, given: &CycleRecord) -> Sides {
        let count = |of: &dyn Fn(&Outgoing) -> bool| given.sent.iter().filter(|sent| of(sent)).count();
        let is = |sent: &Outgoing, messages: &[Message]| messages.contains(&sent.packet.header.message);
        let again = [Message::Contribution, Message::Partial, Message::Failure];
        let sent = count(&|sent| is(sent, &[Message::Initialisation])) + count(&|sent| is(sent, &again));
        let beside = sent + usize::from(given.ports.report.is_some());
        Sides {
            beside: self.beside.max(beside),
            lists: self.lists.max(count(&|sent| matches!(sent.packet.body, Body::Missing { .. }))),
            registers: self.registers.max(given.ports.answers.len()),
        }
    }

    /// All of them.
    fn all(self) -> usize {
        self.beside + self.lists + self.registers
    }

    /// An array of the bench and a place in it.
    fn place(self, at: usize) -> (&'static str, usize) {
        match at.checked_sub(self.beside) {
            None => ("beside", at),
            Some(at) if at < self.lists => ("list", at),
            Some(at) => ("answer", at - self.lists),
        }
    }
}

/// Fields of the message that is taken which are looked at.
const TAKEN: [(&str, u32); 6] =
    [("message", 4), ("cc_id", 12), ("run", 32), ("requester", 16), ("p_id", 7), ("words", 16)];
/// Words of a header.
const HEADER: usize = 4;

/// Parameters of the RTL around those of its collective engine.
#[derive(Clone, Debug)]
pub struct FrameShape {
    /// Those of the collective engine.
    pub shape: Shape,
    /// The model's.
    pub cfg: EngineCfg,
    /// Messages in the inbox.
    pub inbox: usize,
    /// Places of the output queue.
    pub places: usize,
    /// Words behind the header of a frame that leaves.
    pub payload: usize,
    /// Messages that it is given in a cycle.
    pub sides: Sides,
}

/// What comes and goes in a cycle.
pub struct Clock<'a> {
    /// It is a reset.
    pub reset: bool,
    /// The cycle.
    pub now: u64,
    /// The PBV table.
    pub table: &'a PbvTable,
    /// What the collective engine did, if it was clocked.
    pub given: Option<&'a CycleRecord>,
    /// What the ports did.
    pub ports: &'a PortRecord,
    /// Words that were taken off the links, and whether each ends its frame.
    pub words: [Option<(u64, bool)>; 2],
    /// Messages of the collective engine that the RTL has from beside.
    pub beside: &'a [&'a Outgoing],
}

impl FrameShape {
    /// Parameters in a name.
    pub fn name(&self) -> String {
        let FrameShape { shape, cfg, inbox, places, payload, sides: Sides { beside, lists, registers } } = self;
        format!("frame-{inbox}-{places}-{payload}-{beside}-{lists}-{registers}-{}-{}", cfg.output, shape.name())
    }

    /// An engine on the bench.
    pub fn bench(&self) -> Bench {
        let mut bench = Bench::default();
        for (name, width) in [("me_device", 16), ("me_tag", 14), ("now", 48), ("timeout", 32), ("engines", 128)] {
            bench.input(name, width);
        }
        for (name, width) in [("validate", 1), ("errors", 1), ("retries", 8), ("bound", 8), ("closed", 1), ("owned", 1)]
        {
            bench.input(name, width);
        }
        for (name, width) in [("go", 1), ("take", 2), ("tail", 2), ("word_0", 64), ("word_1", 64)] {
            bench.input(name, width);
        }
        if self.shape.fault.is_some() {
            bench.input("fault", 4);
            bench.define("WS_FAULTS");
        }
        for k in 0..self.shape.participants {
            bench.input(format!("device_{k}"), 16);
        }
        for k in 0..self.sides.all() {
            for (name, width) in [("valid", 1), ("to_entries", 1), ("pbv", 128), ("lists", 1), ("length", 10)] {
                bench.input(format!("m{k}_{name}"), width);
            }
            for n in 0..HEADER + self.payload {
                bench.input(format!("m{k}_word{n}"), 64);
            }
        }
        self.instance(&mut bench);
        bench.look("out.valid", "out_valid", 1);
        bench.look("out.word", "out_word", 64);
        bench.look("out.tail", "out_tail", 1);
        bench.look("out.first", "out_first", 1);
        bench.look("taken", "taken", 1);
        bench.look("full", "full", 1);
        for (name, width) in TAKEN {
            bench.look(format!("taken.{name}"), format!("next.{name}"), width);
        }
        for port in 0..2 {
            bench.look(format!("port{port}.registers"), format!("registers[{port}]"), 1);
            bench.look(format!("port{port}.refused"), format!("refused[{port}]"), 1);
            bench.look(format!("port{port}.status"), format!("status[{port}]"), 4);
        }
        bench.look("refused", "2'(refused[2]) + 2'(refused[3])", 2);
        bench.look("refused.first", "refused[2] ? status[2] : status[3]", 4);
        bench
    }

    fn instance(&self, bench: &mut Bench) {
        let FrameShape { shape, cfg: EngineCfg { output, .. }, inbox, places, payload, sides } = self;
        let Sides { beside, lists, registers } = sides;
        let Shape {
            cfg: CeCfg { contexts, hazard, unit_stages, units, feeds, memory_ports },
            participants,
            words,
            groups,
            selects,
            fault,
        } = shape;
        let (datapaths, forward) =
            (units_literal(&units_of(selects.iter().copied())), u8::from(*hazard == Hazard::Forward));
        let fault = if fault.is_some() { ", fault: fault" } else { "" };
        let mut text = format!(
            "  import ws_pbv_pkg::*;\n  self_t me;\n  logic [15:0] devices [{participants}];\n  logic [63:0] in_word [2];\n  message_t next;\n  \
             logic [1:0] registers;\n  logic [3:0] refused;\n  status_e status [4];\n  logic taken, full, out_valid, out_first, out_tail;\n  \
             logic [63:0] out_word;\n  leaving_t beside [{beside}];\n  logic [63:0] beside_word [{beside}][{payload}];\n  logic [9:0] \
             list_words [{lists}];\n  logic [63:0] list_word [{lists}][{payload}];\n  leaving_t answer [{registers}];\n  logic [63:0] \
             answer_word [{registers}][{payload}];\n  assign me = '{{device: me_device, tag: me_tag, now: now, timeout: \
             timeout{fault}}};\n  assign in_word[0] = word_0;\n  assign in_word[1] = word_1;\n"
        );
        for k in 0..*participants {
            let _ = writeln!(text, "  assign devices[{k}] = device_{k};");
        }
        for k in 0..sides.all() {
            let (name, at) = sides.place(k);
            for n in 0..*payload {
                let _ = writeln!(text, "  assign {name}_word[{at}][{n}] = m{k}_word{};", n + HEADER);
            }
            if name == "list" {
                let _ = writeln!(text, "  assign list_words[{at}] = m{k}_length;");
                continue;
            }
            let _ = writeln!(
                text,
                "  always_comb begin\n    {name}[{at}] = '0;\n    {name}[{at}].words = m{k}_length;\n    {name}[{at}].send.valid = \
                 m{k}_valid;\n    {name}[{at}].send.to_entries = m{k}_to_entries;\n    {name}[{at}].send.pbv = m{k}_pbv;\n    \
                 {name}[{at}].send.skip = NoDevice;\n    {name}[{at}].send.head = header_of({{m{k}_word3, m{k}_word2, m{k}_word1, \
                 m{k}_word0}});\n    {name}[{at}].send.head.lists = m{k}_lists;\n  end"
            );
        }
        bench.body(&text);
        bench.body(&format!(
            "  ws_pbv_frame #(.Inbox({inbox}), .Output({output}), .Places({places}), .Payload({payload}), .Beside({beside}), \
             .Lists({lists}), .Registers({registers}), .Contexts({contexts}),\n    .Participants({participants}), .Words({words}), \
             .Groups({groups}), .Forward(1'b{forward}), .Stages({unit_stages}), .Units({datapaths}), .UnitCount({units}), \
             .Feeds({feeds}),\n    .MemoryPorts({memory_ports})) u_dut (.clk_i, .rst_ni, .me_i(me), .device_i(devices), \
             .engines_i(engines[{participants}-1:0]), .validate_i(validate), .errors_i(errors), .retries_i(retries),\n    \
             .bound_i(bound), .closed_i(closed), .take_i(take), .word_i(in_word), .tail_i(tail), .registers_o(registers), \
             .refused_o(refused), .status_o(status),\n    .next_o(next), .owned_i(owned), .taken_o(taken), .full_o(full), \
             .beside_i(beside), .beside_word_i(beside_word), .list_words_i(list_words),\n    .list_word_i(list_word), \
             .register_i(answer), .register_word_i(answer_word), .valid_o(out_valid), .word_o(out_word), .first_o(out_first), \
             .tail_o(out_tail),\n    .free_i(go));\n"
        ));
    }

    /// A message as an input has it; nothing if there is none.
    fn message(&self, outgoing: Option<&Outgoing>, all: &mut Vec<u128>) {
        let Some(Outgoing { packet, target }) = outgoing else {
            return all.extend(std::iter::repeat_n(0, 5 + HEADER + self.payload));
        };
        let (entries, pbv) = match *target {
            Target::Entries { pbv, skip: NO_DEVICE } => (1, pbv),
            Target::Entries { .. } => panic!("a message from beside that spares a device"),
            Target::Header => (0, 0),
        };
        let words = packet.flits().expect("a frame");
        let length = words.len() - HEADER;
        assert!(length <= self.payload, "{length} words in a frame that leaves");
        all.extend([1, entries, pbv, u128::from(matches!(packet.body, Body::Missing { .. })), length as u128]);
        all.extend((0..HEADER + self.payload).map(|n| words.get(n).copied().map_or(0, u128::from)));
    }

    /// Values of the inputs, and what is seen.
    fn values(&self, clock: &Clock<'_>) -> (Vec<u128>, Vec<Option<u128>>) {
        let Clock { now, table, given, ports, words, beside, .. } = *clock;
        let cfg = &self.cfg;
        let packet = given.and_then(|given| given.packet.as_ref());
        let sent = given.map_or(&[][..], |given| &given.sent);
        let bit = u128::from;
        let mut all = vec![u128::from(cfg.device), u128::from(engine_tag(cfg.base)), u128::from(now)];
        all.extend([u128::from(table.timeout), table.switches, bit(table.validate), bit(table.report_errors)]);
        all.extend([u128::from(table.retries), u128::from(cfg.priority_bound), bit(ports.closed)]);
        all.push(bit(packet.is_some_and(|packet| owns(table, &packet.header))));
        let both = |of: &dyn Fn((u64, bool)) -> bool| {
            words.iter().enumerate().fold(0, |sum, (port, word)| sum | bit(word.is_some_and(of)) << port)
        };
        all.extend([bit(ports.output_sent), both(&|_| true), both(&|(_, tail)| tail)]);
        all.extend(words.map(|word| word.map_or(0, |(word, _)| u128::from(word))));
        all.extend(self.shape.fault.map(u128::from));
        all.extend((0..self.shape.participants).map(|k| u128::from(table.device(k).unwrap_or(NO_DEVICE))));
        let lists: Vec<&Outgoing> =
            sent.iter().filter(|sent| matches!(sent.packet.body, Body::Missing { .. })).collect();
        let answers: Vec<&Outgoing> = ports.answers.iter().collect();
        let Sides { beside: most, lists: most_lists, registers } = self.sides;
        for (list, most) in [(beside, most), (&lists[..], most_lists), (&answers[..], registers)] {
            assert!(list.len() <= most, "{} messages of one kind in a cycle", list.len());
            (0..most).for_each(|k| self.message(list.get(k).copied(), &mut all));
        }
        let mut seen = vec![Some(bit(ports.output_word.is_some()))];
        seen.extend([
            ports.output_word.map(|(word, _)| u128::from(word)),
            ports.output_word.map(|(_, tail)| bit(tail)),
            None,
        ]);
        seen.extend([Some(bit(packet.is_some())), given.map(|given| bit(given.full))]);
        let header = packet.map(|packet| packet.header);
        seen.extend([
            header.map(|header| u128::from(header.message.number())),
            header.map(|header| u128::from(header.cc_id)),
            header.map(|header| u128::from(header.run)),
            header.map(|header| u128::from(header.requester)),
            header.map(|header| u128::from(header.p_id)),
            packet.map(|packet| packet.words().len() as u128),
        ]);
        for port in 0..2 {
            let frame = ports.arrived.iter().find(|&&(of, _)| of == port);
            let checked = frame.map(|(_, words)| check(cfg, words));
            let refused = match checked {
                Some(CheckOutcome::Unreadable(status) | CheckOutcome::Refused(_, status)) => Some(status),
                _ => None,
            };
            seen.push(Some(bit(matches!(checked, Some(CheckOutcome::Registers(_))))));
            seen.extend([Some(bit(refused.is_some())), refused.map(|status| u128::from(status.number()))]);
        }
        let refused = given.map_or(&[][..], |given| &given.refused);
        seen.extend([Some(refused.len() as u128), refused.first().map(|status| u128::from(status.number()))]);
        (all, seen)
    }

    /// A cycle of both.
    ///
    /// # Errors
    /// The first difference.
    pub fn clock(&self, cosim: &mut Cosim, clock: &Clock<'_>) -> Result<(), Box<Difference>> {
        let (given, mut seen) = self.values(clock);
        if clock.reset {
            seen.fill(None);
        }
        cosim.cycle(clock.reset, &given, seen)
    }
}

/// Frames on their way into a port, one behind the other.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// When each word is taken, the word, and whether it is the last one.
    words: std::collections::VecDeque<(u64, u64, bool)>,
    last: Option<u64>,
}

impl Line {
    /// A frame whose last word is taken in this cycle; the others at random before, behind those of the frame before.
    pub fn arrive(&mut self, frame: &[u64], cycle: u64, rng: &mut Rng) {
        let first = self.last.map_or(cycle.saturating_sub(2 * frame.len() as u64), |last| last + 1);
        let (mut slack, mut at) = (cycle + 1 - first - frame.len() as u64, cycle);
        let mut all = Vec::new();
        for (n, &word) in frame.iter().enumerate().rev() {
            all.push((at, word, n + 1 == frame.len()));
            let gap = if rng.below(4) == 0 { rng.below(slack.min(5) + 1) } else { 0 };
            slack -= gap;
            at = at.wrapping_sub(1 + gap);
        }
        self.words.extend(all.into_iter().rev());
        self.last = Some(cycle);
    }

    /// The word of a cycle.
    pub fn word(&mut self, now: u64) -> Option<(u64, bool)> {
        if self.next() != Some(now) {
            return None;
        }
        self.words.pop_front().map(|(_, word, tail)| (word, tail))
    }

    /// The cycle of the next word.
    pub fn next(&self) -> Option<u64> {
        self.words.front().map(|&(cycle, ..)| cycle)
    }

    /// The cycle of the last one.
    pub fn end(&self) -> Option<u64> {
        self.last
    }
}

/// Messages that the RTL has from beside: the report of a crossed threshold, slices of initialisations, and what is handed to a
/// source again.
pub fn beside(given: &CycleRecord, hands: impl Fn(u16) -> bool) -> Vec<&Outgoing> {
    let asked = given.packet.as_ref().map(|packet| packet.header);
    let asks = asked.filter(|header| {
        matches!(header.message, Message::Command | Message::Multicast | Message::Retry) && hands(header.cc_id)
    });
    let again = |outgoing: &&Outgoing| {
        let header = &outgoing.packet.header;
        outgoing.target == Target::Header
            && asks.is_some_and(|asked| asked.cc_id == header.cc_id)
            && matches!(header.message, Message::Contribution | Message::Partial | Message::Failure)
    };
    let again = given.sent.iter().take_while(again).count();
    let (handed, others) = given.sent.split_at(again);
    let slices = others.iter().filter(|outgoing| outgoing.packet.header.message == Message::Initialisation);
    given.ports.report.iter().chain(handed).chain(slices).collect()
}
