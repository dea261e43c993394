//! The quad unit: all opcodes of the armed family, all modes, one to six stages, with gaps, lone operands and resets; every register of
//! every stage in every cycle.

use std::sync::Arc;

use watershed::arith::quad::{OPCODES, Opcode};
use watershed::arith::repsum;
use watershed::arith::stages::{Layout, UnitInput, UnitStages, all_quad_units};
use watershed::arith::{Op, Quad, QuadUnit, ResultCode};
use watershed::kernel::Rng;

use crate::bench::{Bench, Cosim, Difference};
use crate::random::{self, seed};
use crate::registers::{TAG_BITS, look_at_quad, mode_bits, unit_values};

/// Bits of an operand.
const QUAD_BITS: [(&str, u32); 4] = [("code", 4), ("m", 8), ("oflow_id", 2), ("word", 64)];

/// A unit after reset.
fn model(stages: u8) -> UnitStages<QuadUnit> {
    UnitStages::new(stages, &Arc::new(Layout::of(stages, &all_quad_units())))
}

/// A unit of so many stages on the bench.
fn bench(stages: u8) -> Bench {
    let mut bench = Bench::default();
    for (name, width) in [("valid", 1), ("joined", 1), ("op", 4), ("dtype", 4), ("mode", 5), ("tag", TAG_BITS)] {
        bench.input(name, width);
    }
    bench.body("  quad_t a, b, left_quad;\n  logic left_valid;\n  logic [63:0] left_tag;\n  logic [5:0] busy;\n");
    for operand in ["a", "b"] {
        for (name, width) in &QUAD_BITS[..3] {
            bench.input(format!("{operand}_{name}"), *width);
        }
        for k in 0..4 {
            bench.input(format!("{operand}_word_{k}"), 64);
            bench.body(&format!("  assign {operand}.word[{k}] = {operand}_word_{k};\n"));
        }
        bench.body(&format!(
            "  assign {operand}.code = code_e'({operand}_code);\n  assign {operand}.m = {operand}_m;\n  assign {operand}.oflow_id = \
             {operand}_oflow_id;\n"
        ));
    }
    bench.body(&format!(
        "  ws_quad_unit #(.Stages({stages}), .TagWidth({TAG_BITS})) u_dut (\n    .clk_i, .rst_ni, .valid_i(valid), .joined_i(joined), \
         .op_i(op_e'(op)), .dtype_i(dtype_e'(dtype)), .mode_i(mode_t'(mode)), .tag_i(tag),\n    .a_i(a), .b_i(b), .valid_o(left_valid), \
         .tag_o(left_tag), .quad_o(left_quad), .busy_o(busy[{}:0]));\n",
        stages - 1
    ));
    bench.look("valid_o", "left_valid", 1);
    bench.look("tag_o", "left_tag", 64);
    for (name, width) in &QUAD_BITS[..3] {
        bench.look(format!("quad_o.{name}"), format!("left_quad.{name}"), *width);
    }
    for k in 0..4 {
        bench.look(format!("quad_o.word{k}"), format!("left_quad.word[{k}]"), 64);
    }
    look_at_quad(&mut bench, "unit", "u_dut", stages, &model(stages));
    bench
}

/// The fields of an operand or a result in the order of the bench.
fn fields(quad: &Quad) -> [u128; 7] {
    let [w, x, y, z] = quad.lanes.map(u128::from);
    [u128::from(quad.code.number()), u128::from(quad.m as u8), u128::from(quad.oflow_id), w, x, y, z]
}

/// Any operand of an operation, or one that another made.
fn operand(rng: &mut Rng, opcode: &Opcode) -> Quad {
    let word = |rng: &mut Rng| random::words(rng, opcode.dtype).0;
    let mut quad = Quad::of([word(rng), word(rng), word(rng), word(rng)]);
    if opcode.op == Op::RepSum {
        quad = repsum::split(quad.lanes[0]);
        // Near each other, or of words that a long sum has.
        if rng.below(2) == 0 {
            quad.m = rng.below(6) as i8;
        }
        if rng.below(4) == 0 {
            quad.lanes = quad.lanes.map(|_| rng.bits() >> rng.below(3));
        }
        quad.oflow_id = rng.below(4) as u8;
    }
    if rng.below(3) == 0 {
        quad.code = ResultCode::ALL[rng.below(ResultCode::ALL.len() as u64) as usize];
    }
    quad
}

/// Random operands for so many cycles.
fn drive(cosim: &mut Cosim, stages: u8, rng: &mut Rng, cycles: u64) -> Result<(), Box<Difference>> {
    let mut unit = model(stages);
    for cycle in 0..cycles {
        let reset = cycle == 0 || rng.below(4_000) == 0;
        if reset {
            unit = model(stages);
        }
        let opcode = &OPCODES[rng.below(OPCODES.len() as u64) as usize];
        let configured = random::mode(rng);
        let quad_unit = opcode.unit(configured);
        let (valid, joined, tag) = (rng.below(5) != 0, rng.below(6) != 0, rng.bits());
        let (a, mut b) = (operand(rng, opcode), operand(rng, opcode));
        // Equal values, so that indices decide.
        if rng.below(4) == 0 {
            b.lanes[0] = a.lanes[0];
            b.lanes[2] = a.lanes[2];
        }
        let Opcode { op, dtype, .. } = *opcode;
        let mut given = vec![u128::from(valid), u128::from(joined), op as u128, dtype as u128];
        given.extend([mode_bits(quad_unit.mode()), u128::from(tag)]);
        given.extend(fields(&a).into_iter().chain(fields(&b)));
        let mut held = Vec::new();
        unit_values(&unit, &mut held);
        let entry =
            if joined { UnitInput::pair(op, dtype, tag, quad_unit, a, b) } else { UnitInput::lone(op, dtype, tag, a) };
        let exit = unit.clock((valid && !reset).then_some(entry));
        let mut expected = vec![Some(u128::from(exit.is_some())), exit.map(|exit| u128::from(exit.tag))];
        expected.extend(exit.map_or([None; 7], |exit| fields(&exit.word).map(Some)));
        cosim.cycle(reset, &given, expected.into_iter().chain(held))?;
    }
    Ok(())
}

fn units_hold_what_the_model_holds(stages: u8, cycles: u64) {
    let Some(mut cosim) = bench(stages).build(&format!("quad-{stages}")) else { return };
    let seed = seed(0x90ad_0000 + u64::from(stages));
    drive(&mut cosim, stages, &mut Rng::new(seed, 0), cycles)
        .unwrap_or_else(|difference| panic!("{difference} (seed {seed})"));
    cosim.finish(&format!("ws_quad_unit, {stages} stages, all opcodes"));
}

/// Cycles of a sample and of a soak.
const SAMPLE: u64 = 20_000;
const SOAK: u64 = 500_000;

#[test]
fn a_quad_unit_of_three_stages_holds_what_the_model_holds() {
    units_hold_what_the_model_holds(3, SAMPLE);
}

#[test]
#[ignore = "takes minutes: make soak"]
fn quad_units_of_all_stages_hold_what_the_model_holds_for_long() {
    for stages in 1..=6 {
        units_hold_what_the_model_holds(stages, SOAK);
    }
}
