//! The collective engine: random streams of several ids and planes, scans among them, with gaps, back-pressure and resets; slots, the
//! registers of the tree and of the scan unit, results and what the engine grants, in every cycle.

use watershed::arith::stages::units_of;
use watershed::arith::{DType, Flags, Op, TreeCfg};
use watershed::fabric::routing::{Routes, Routing};
use watershed::fabric::topology::Mesh;
use watershed::fabric::{Flit, Join, JoinCx, QueueLengths, Tag};
use watershed::kernel::Rng;
use watershed::piuma::scan::{element, order};
use watershed::piuma::{Ceng, CengCfg, OpSelect, REQUEST, RESPONSE, Registers, RegistersCfg, channel, kind, plane};
use watershed::probe::NodeHandle;

use crate::bench::{Bench, Cosim, Difference};
use crate::random::{self, seed};
use crate::registers::{mode_bits, units_literal, wave_of_scan, wave_of_tree};
use crate::watched::Watched;

/// An engine and what it is configured for.
pub struct Rig {
    cfg: CengCfg,
    planes: u8,
    post: u64,
    registers: Registers,
    ids: u16,
}

/// A reduction of a stream: id and sequence number.
type Step = (u16, u64);

impl Rig {
    /// An engine of so many ports. Ids join different sets of ports; every second one has its root here.
    pub fn new(radix: u8, unit_stages: u8, (operand_slots, result_slots): (u32, u32), planes: u8, post: u64) -> Rig {
        let tree = TreeCfg { radix, unit_stages };
        let ports = u16::from(radix);
        let cfg = RegistersCfg { switches: 1, ids: 4, external_ports: ports };
        let routing = Routing::Mesh(Mesh { size: vec![1], concentration: ports });
        let mut registers = Registers::new(cfg, vec!["rig".to_owned()], Routes { routing, ends: Vec::new() });
        let all = (1u64 << ports) - 1;
        let selects = [
            (Op::Sum, DType::F64, all),
            (Op::Max, DType::I32, all & 0x155),
            (Op::Sum, DType::F32, 0b111),
            (Op::Xor, DType::U64, all & !1),
        ];
        for (id, (op, dtype, members)) in (0u16..).zip(selects) {
            let select = OpSelect { op, dtype, ..OpSelect::default() };
            registers.store(Registers::select_address(0, id), select.encode()).unwrap();
            for port in (0..ports).filter(|port| members >> port & 1 == 1) {
                registers.store(Registers::vector_address(0, id, REQUEST, port), 1 << ports).unwrap();
            }
            let channel = if id % 2 == 0 { RESPONSE } else { REQUEST };
            registers.store(Registers::vector_address(0, id, channel, ports), 1).unwrap();
        }
        Rig { cfg: CengCfg { tree, operand_slots, result_slots, scan_slots: 1 }, planes, post, registers, ids: 4 }
    }

    /// Two of its ids are scans: one has its root here, the other does not.
    fn scanning(mut self, scan_slots: u32) -> Rig {
        let last = u16::from(self.cfg.tree.radix) - 1;
        for (id, ports) in [(2, vec![2, 0, 1]), (3, (1..=last).rev().collect())] {
            self.registers.store(Registers::order_address(0, id), order(&ports)).unwrap();
        }
        self.cfg.scan_slots = scan_slots;
        self
    }

    fn scans(&self, id: u16) -> bool {
        self.registers.order(0, id) != 0
    }

    fn model(&self) -> Ceng {
        let mut ceng = Ceng::new(self.cfg);
        ceng.watch(true, &self.registers, 0);
        ceng
    }

    /// The engine on the bench.
    pub fn bench(&self, watched: &Watched) -> Bench {
        let (radix, planes) = (self.cfg.tree.radix, self.planes);
        let mut bench = Bench::default();
        bench.input("put", u32::from(radix));
        for port in 0..radix {
            bench.input(format!("put_tag_{port}"), 64);
            bench.input(format!("put_word_{port}"), 64);
        }
        for plane in 0..planes {
            bench.input(format!("queued_{plane}"), 16);
        }
        let slots = self.cfg.operand_slots;
        bench.input("above_count", 8);
        for slot in 0..slots {
            bench.input(format!("above_tag_{slot}"), 64);
            bench.input(format!("above_word_{slot}"), 64);
        }
        self.body(&mut bench);
        if self.registers.scans(0) {
            bench.look("above_room", "above_room != 0", 1);
        }
        bench.look("result.valid", "result_valid", 1);
        bench.look("result.tag", "result.tag", 64);
        bench.look("result.word", "result.word", 64);
        for plane in 0..planes {
            bench.look(format!("room{plane}"), format!("room[{plane}]"), u32::from(radix));
        }
        for signal in watched.signals() {
            if let Some(expression) = self.place(&signal.name) {
                bench.look(signal.name, expression, signal.width);
            }
        }
        bench
    }

    /// Where the RTL has a signal of the engine's waves.
    fn place(&self, name: &str) -> Option<String> {
        let name = name.strip_prefix("rig.ceng.")?;
        if let Some(name) = name.strip_prefix("tree.") {
            return wave_of_tree(name, "u_dut.u_tree", self.cfg.tree.unit_stages);
        }
        if let Some(name) = name.strip_prefix("scan.") {
            return wave_of_scan(name, "u_dut.gen_scan.u_scan", self.cfg.tree.unit_stages);
        }
        place_of_slots(name, "u_dut", self.planes)
    }

    fn body(&self, bench: &mut Bench) {
        let CengCfg { tree: TreeCfg { radix, unit_stages }, operand_slots, result_slots, scan_slots } = self.cfg;
        let scan_slots = if self.registers.scans(0) { scan_slots } else { 0 };
        let units = units_literal(&units_of(self.registers.engine_selects(0)));
        let (planes, ids, post) = (self.planes, self.ids, self.post);
        bench.body(&format!(
            "  localparam int unsigned Radix = {radix};\n  localparam int unsigned Planes = {planes};\n  flit_t put_flit [{radix}];\n  logic \
             [15:0] queued [{planes}];\n  logic [{radix}-1:0] inputs [{ids}];\n  select_t selects [{ids}];\n  logic root [{ids}];\n  logic \
             [63:0] order [{ids}];\n  logic [$clog2({operand_slots}+1)-1:0] above, above_room;\n  flit_t above_flit [{operand_slots}];\n  \
             assign above = above_count[$clog2({operand_slots}+1)-1:0];\n  logic result_valid;\n  flit_t result;\n  logic [{radix}-1:0] room [{planes}];\n"
        ));
        for port in 0..radix {
            bench.body(&format!("  assign put_flit[{port}] = {{put_tag_{port}, put_word_{port}}};\n"));
        }
        for slot in 0..operand_slots {
            bench.body(&format!("  assign above_flit[{slot}] = {{above_tag_{slot}, above_word_{slot}}};\n"));
        }
        for plane in 0..planes {
            bench.body(&format!("  assign queued[{plane}] = queued_{plane};\n"));
        }
        for id in 0..ids {
            let OpSelect { op, dtype, mode } = self.registers.select(0, id);
            bench.body(&format!(
                "  assign inputs[{id}] = {radix}'d{};\n  assign root[{id}] = 1'b{};\n  assign order[{id}] = 64'd{};\n  assign selects[{id}] = '{{op: op_e'({}), \
                 dtype: dtype_e'({}), mode: mode_t'(5'd{})}};\n",
                self.registers.engine_inputs(0, id),
                u8::from(self.registers.is_root(0, id)),
                self.registers.order(0, id),
                op as u8,
                dtype as u8,
                mode_bits(mode)
            ));
        }
        bench.body(&format!(
            "  ws_ceng #(.Radix({radix}), .UnitStages({unit_stages}), .Units({units}), .OperandSlots({operand_slots}),\n    \
             .ResultSlots({result_slots}), .Ids({ids}), .Planes({planes}), .Post({post}), .ScanSlots({scan_slots})) u_dut (\n    .clk_i, .rst_ni, .inputs_i(inputs), \
             .select_i(selects), .root_i(root), .order_i(order), .put_i(put), .put_flit_i(put_flit),\n    \
             .above_i(above), .above_flit_i(above_flit), .above_room_o(above_room),\n    .room_o(room), .queued_i(queued), \
             .result_valid_o(result_valid), .result_o(result));\n"
        ));
        bench.body(&held_operands("u_dut"));
    }

    /// A tracer over the engine, and the handles of its registers and of those of its tree.
    fn watch(&self) -> (Watched, watershed::probe::Tracer, NodeHandle, NodeHandle) {
        let (watched, mut tracer) = Watched::new(&["rig.**"]);
        let model = self.model();
        let own = tracer.declare("rig", |scope| model.probe(scope)).expect("registers");
        let stages = tracer.declare_details("rig", |scope| model.probe_stages(scope)).expect("registers of the tree");
        tracer.start().expect("signals");
        (watched, tracer, own, stages)
    }

    /// Random streams for so many cycles.
    pub fn drive(
        &self,
        name: &str,
        define: Option<&'static str>,
        rng: &mut Rng,
        cycles: u64,
    ) -> Option<Result<Cosim, Box<Difference>>> {
        let (mut watched, mut tracer, own, stages) = self.watch();
        let places: Vec<usize> =
            (0..watched.signals().len()).filter(|&at| self.place(&watched.signals()[at].name).is_some()).collect();
        let mut bench = self.bench(&watched);
        if let Some(define) = define {
            bench.define(define);
        }
        let mut cosim = bench.build(name)?;
        let mut traffic = Traffic::new(self, rng);
        let mut ceng = self.model();
        let mut before: Option<(bool, Vec<u128>, Vec<Option<u128>>)> = None;
        for now in 0..cycles {
            let reset = now == 0 || rng.below(3_000) == 0;
            if reset {
                ceng = self.model();
                traffic = Traffic::new(self, rng);
            }
            tracer.sample(own, now, |scope| ceng.probe(scope));
            tracer.sample(stages, now, |scope| ceng.probe_stages(scope));
            // With this cycle's sample that of the one before is complete.
            if let Some((reset, given, mut expected)) = before.take() {
                watched.go_to(now - 1);
                expected.extend(places.iter().map(|&at| watched.values[at]));
                if let Err(difference) = cosim.cycle(reset, &given, expected) {
                    return Some(Err(difference));
                }
            }
            let (given, expected) = if reset { self.still() } else { traffic.cycle(self, &mut ceng, rng, now) };
            before = Some((reset, given, expected));
        }
        Some(cosim.flush().map(|()| cosim))
    }

    /// A cycle in which nothing comes, in reset.
    fn still(&self) -> (Vec<u128>, Vec<Option<u128>>) {
        let slots = self.cfg.operand_slots as usize;
        let given = vec![0; 2 + 2 * usize::from(self.cfg.tree.radix) + usize::from(self.planes) + 2 * slots];
        let all = (1u128 << self.cfg.tree.radix) - 1;
        let scans = self.registers.scans(0).then_some(Some(1));
        let expected = scans.into_iter().chain([Some(0), None, None]).chain((0..self.planes).map(|_| Some(all)));
        (given, expected.collect())
    }
}

/// Where the RTL has a signal of an engine's slots and counters, from its name below `ceng`.
pub fn place_of_slots(name: &str, path: &str, planes: u8) -> Option<String> {
    match name {
        "state" => return Some("engine_state".to_owned()),
        "operands" => return Some("held_operands".to_owned()),
        "in_flight" => return Some(format!("{path}.in_flight_q")),
        _ => {}
    }
    // Of several planes waves show the oldest operand, which is none of the RTL's business.
    let (slot, field) = name.strip_prefix("slot")?.split_once('.').filter(|_| planes == 1)?;
    Some(match field {
        "valid" => format!("{path}.slot_present[0][{slot}]"),
        "word" => format!("{path}.slot_head[0][{slot}].word"),
        field => format!("{path}.slot_head[0][{slot}].tag.{field}"),
    })
}

/// What waves show of an engine and the RTL does not have as a register: the sum of its slots, and its state.
pub fn held_operands(path: &str) -> String {
    format!(
        "  logic [7:0] held_operands;\n  logic [1:0] engine_state;\n  always_comb begin\n    held_operands = '0;\n    for (int unsigned p = 0; \
         p < Planes; p++) for (int unsigned n = 0; n < Radix; n++) held_operands += 8'({path}.slot_len[p][n]);\n    engine_state = \
         {path}.in_flight_q != 0 ? 2 : {path}.scan_busy ? 3 : held_operands != 0 ? 1 : 0;\n  end\n"
    )
}

/// What comes to an engine and stands behind it.
struct Traffic {
    /// By plane: the order in which reductions are made, the same at all ports.
    steps: Vec<Vec<Step>>,
    /// By plane and port: how far it is.
    at: Vec<Vec<usize>>,
    /// By channel: results behind the engine.
    queued: Vec<u16>,
    next: [u64; 4],
    /// Totals that went up, and whose response has not come.
    up: Vec<Step>,
    /// One in so many cycles is a gap, and one in so many sees a result leave.
    gaps: u64,
    leaves: u64,
}

impl Traffic {
    fn new(rig: &Rig, rng: &mut Rng) -> Traffic {
        let planes = usize::from(rig.planes);
        Traffic {
            steps: vec![Vec::new(); planes],
            at: vec![vec![0; usize::from(rig.cfg.tree.radix)]; planes],
            queued: vec![0; 2 * planes],
            next: [0; 4],
            up: Vec::new(),
            gaps: 2 + rng.below(8),
            leaves: 1 + rng.below(3),
        }
    }

    /// The reduction a port brings next on a plane, if it takes part in one soon.
    fn next_of(&mut self, rig: &Rig, rng: &mut Rng, plane: usize, port: usize) -> Step {
        loop {
            let at = self.at[plane][port];
            if at == self.steps[plane].len() {
                let mut id = rng.below(u64::from(rig.ids)) as u16;
                if plane > 0 && rig.scans(id) {
                    id &= 1;
                }
                let seq = self.next[usize::from(id)];
                self.next[usize::from(id)] = (seq + 1) & 0x3fff_ffff;
                self.steps[plane].push((id, seq));
            }
            let step = self.steps[plane][at];
            if rig.registers.engine_inputs(0, step.0) >> port & 1 == 1 {
                return step;
            }
            self.at[plane][port] += 1;
        }
    }

    /// One clock of the engine: what was given to it, and what it shows beside its registers.
    fn cycle(&mut self, rig: &Rig, ceng: &mut Ceng, rng: &mut Rng, now: u64) -> (Vec<u128>, Vec<Option<u128>>) {
        let radix = rig.cfg.tree.radix;
        let behind: Vec<u128> = self.queued.chunks(2).map(|pair| u128::from(pair[0] + pair[1])).collect();
        let queued = self.queued.clone();
        let out = ceng.tick(&JoinCx { tables: &rig.registers, switch: 0, now, queued: QueueLengths::counts(&queued) });
        assert_eq!(out.fault, None);
        let result = out.result;
        if let Some(result) = &result {
            self.queued[usize::from(result.tag.vc())] += 1;
        }
        for queue in &mut self.queued {
            if *queue > 0 && rng.below(self.leaves) == 0 {
                *queue -= 1;
            }
        }
        if let Some(result) = result.filter(|flit| rig.scans(flit.tag.id()) && flit.tag.vc() == REQUEST) {
            self.up.push((result.tag.id(), result.tag.seq()));
        }
        let room_above = ceng.has_room(0, RESPONSE);
        let above = self.above(rig, ceng, rng, now);
        let room: Vec<u128> = (0..rig.planes)
            .map(|plane| {
                let room = |port: &u8| ceng.has_room(u16::from(*port), channel(plane, REQUEST));
                (0..radix).filter(room).fold(0, |all, port| all | 1 << port)
            })
            .collect();
        let (mut put, mut flits) = (0u128, vec![0u128; 2 * usize::from(radix)]);
        for port in 0..radix {
            let on = rng.below(u64::from(rig.planes)) as u8;
            if rng.below(self.gaps) == 0 || room[usize::from(on)] >> port & 1 == 0 {
                continue;
            }
            let (id, seq) = self.next_of(rig, rng, usize::from(on), usize::from(port));
            self.at[usize::from(on)][usize::from(port)] += 1;
            let dtype = rig.registers.select(0, id).dtype;
            let word = random::words(rng, dtype).0;
            let mut tag = Tag(0);
            tag.set_head(true);
            tag.set_tail(true);
            tag.set_vc(channel(on, REQUEST));
            tag.set_id(id);
            tag.set_seq(seq);
            if rng.below(8) == 0 {
                tag.set_flags(Flags::from_bits(rng.bits() as u8).bits());
            }
            put |= 1 << port;
            flits[2 * usize::from(port)] = u128::from(tag.0);
            flits[2 * usize::from(port) + 1] = u128::from(word);
            ceng.put_flit(u16::from(port), tag.vc(), Flit { tag, word }, now + rig.post + 1);
        }
        debug_assert!(
            result.is_none_or(|result| plane(result.tag.vc()) < rig.planes && kind(result.tag.vc()) <= RESPONSE)
        );
        let given = [put].into_iter().chain(flits).chain(behind).chain(above).collect();
        let shown =
            result.map_or([Some(0), None, None], |flit| [1, u128::from(flit.tag.0), u128::from(flit.word)].map(Some));
        let scans = rig.registers.scans(0).then_some(Some(u128::from(room_above)));
        (given, scans.into_iter().chain(shown).chain(room.into_iter().map(Some)).collect())
    }

    /// Responses of scans from above, of any element that went up: how many, and what.
    fn above(&mut self, rig: &Rig, ceng: &mut Ceng, rng: &mut Rng, now: u64) -> Vec<u128> {
        let mut given = vec![0; 1 + 2 * rig.cfg.operand_slots as usize];
        while !self.up.is_empty() && ceng.has_room(0, RESPONSE) && rng.below(self.gaps) > 0 {
            let (id, seq) = self.up.remove(rng.below(self.up.len().min(3) as u64) as usize);
            let mut flit = Flit::collective(id, RESPONSE, seq, random::words(rng, rig.registers.select(0, id).dtype).0);
            // As the switch above makes it: for one of its ports, and of the first rank with nothing in it.
            let nothing = if rng.below(6) == 0 { 1 << 34 } else { 0 };
            flit.tag.set_seq(element(seq) | rng.below(15) << 30 | nothing);
            if rng.below(8) == 0 {
                flit.tag.set_flags(Flags::from_bits(rng.bits() as u8).bits());
            }
            let at = 1 + 2 * given[0] as usize;
            (given[at], given[at + 1]) = (u128::from(flit.tag.0), u128::from(flit.word));
            given[0] += 1;
            ceng.put_flit(rng.below(u64::from(rig.cfg.tree.radix)) as u16, RESPONSE, flit, now + rig.post + 1);
        }
        given
    }
}

/// Slots that fill, a queue behind that fills, a tree of an odd number of ports.
pub fn narrow() -> Rig {
    Rig::new(5, 2, (2, 6), 1, 1)
}

/// Scans beside reductions, with few places for everything.
pub fn scanning() -> Rig {
    Rig::new(5, 2, (2, 6), 2, 1).scanning(4)
}

fn engines_hold_what_the_model_holds(rig: &Rig, cycles: u64, name: &str) {
    let seed = seed(0xce6_0000 + u64::from(rig.planes));
    let Some(driven) = rig.drive(name, None, &mut Rng::new(seed, 0), cycles) else { return };
    let cosim = driven.unwrap_or_else(|difference| panic!("{difference} (seed {seed})"));
    let CengCfg { tree: TreeCfg { radix, unit_stages }, operand_slots, result_slots, .. } = rig.cfg;
    cosim.finish(&format!(
        "ws_ceng, {radix} ports, {unit_stages} stages, {operand_slots} slots, {result_slots} results, {} planes",
        rig.planes
    ));
}

/// Cycles of a sample and of a soak.
const SAMPLE: u64 = 20_000;
const SOAK: u64 = 500_000;

#[test]
fn an_engine_holds_what_the_model_holds() {
    engines_hold_what_the_model_holds(&narrow(), SAMPLE, "ceng-5");
}

#[test]
fn planes_of_an_engine_take_turns_as_in_the_model() {
    engines_hold_what_the_model_holds(&Rig::new(4, 1, (1, 4), 3, 0), SAMPLE, "ceng-planes");
}

#[test]
fn an_engine_that_scans_holds_what_the_model_holds() {
    engines_hold_what_the_model_holds(&scanning(), SAMPLE, "ceng-scan");
}

#[test]
#[ignore = "takes minutes: make soak"]
fn engines_hold_what_the_model_holds_for_long() {
    engines_hold_what_the_model_holds(&narrow(), SOAK, "ceng-5");
    engines_hold_what_the_model_holds(&Rig::new(4, 1, (1, 4), 3, 0), SOAK, "ceng-planes");
    engines_hold_what_the_model_holds(&Rig::new(10, 3, (2, 15), 1, 1), SOAK, "ceng-10");
    engines_hold_what_the_model_holds(&scanning(), SOAK, "ceng-scan");
    engines_hold_what_the_model_holds(&Rig::new(7, 1, (1, 4), 1, 0).scanning(9), SOAK, "ceng-scan-7");
}
