//! Two-input units: all operations, all types, all modes, one to six stages, with gaps, lone operands and resets; every register of every
//! stage in every cycle, and every result against the oracle.

use std::collections::VecDeque;
use std::sync::Arc;

use watershed::arith::stages::{Layout, UnitInput, UnitStages, all_units, units_of};
use watershed::arith::{DType, Flags, Mode, Op, Unit};
use watershed::kernel::Rng;
use watershed::oracle;

use crate::bench::{Bench, Cosim, Difference};
use crate::random::{self, seed};
use crate::registers::{
    TAG_BITS, flags_bits, lane_values, look_at_lane, look_at_unit, mode_bits, unit_values, units_literal,
};

/// A unit of so many stages on the bench, for these operations on these types.
pub fn bench(stages: u8, selects: &[(Op, DType)]) -> Bench {
    let units = units_of(selects.iter().copied());
    let unit = UnitStages::new(stages, &Arc::new(Layout::of(stages, &units)));
    let mut bench = Bench::default();
    for (name, width) in
        [("op", 4), ("dtype", 4), ("mode", 5), ("tag", TAG_BITS), ("a_valid", 1), ("a", 64), ("b_valid", 1), ("b", 64)]
    {
        bench.input(name, width);
    }
    bench.body(&format!(
        "  logic valid;\n  logic [63:0] word;\n  flags_t flags;\n\
         \x20 ws_unit #(.Stages({stages}), .Units({}), .TagWidth({TAG_BITS})) u_dut (\n    .clk_i, .rst_ni, .op_i(op_e'(op)), \
         .dtype_i(dtype_e'(dtype)), .mode_i(mode_t'(mode)), .tag_i(tag),\n    .a_valid_i(a_valid), .a_i(a), .b_valid_i(b_valid), \
         .b_i(b), .valid_o(valid), .word_o(word), .flags_o(flags));\n",
        units_literal(&units)
    ));
    bench.look("valid_o", "valid", 1);
    bench.look("word_o", "word", 64);
    bench.look("flags_o", "flags", 7);
    look_at_unit(&mut bench, "unit", "u_dut", stages, &unit);
    bench
}

/// All operations of words on all types.
pub fn everything() -> Vec<(Op, DType)> {
    let ops = Op::ALL.iter().copied().filter(|op| !op.is_wide() && *op != Op::Barrier);
    ops.flat_map(|op| DType::ALL.iter().map(move |&dtype| (op, dtype))).collect()
}

fn pick(rng: &mut Rng, selects: &[(Op, DType)]) -> (Op, DType) {
    selects[rng.below(selects.len() as u64) as usize]
}

/// What went in, for the oracle.
struct Pair {
    op: Op,
    dtype: DType,
    mode: Mode,
    words: Option<(u64, u64)>,
}

/// Random operands for so many cycles.
pub fn drive(
    cosim: &mut Cosim,
    (stages, selects): (u8, &[(Op, DType)]),
    rng: &mut Rng,
    cycles: u64,
) -> Result<u64, Box<Difference>> {
    let layout = Arc::new(Layout::of(stages, &units_of(selects.iter().copied())));
    let mut unit = UnitStages::<Unit>::new(stages, &layout);
    let mut under_way: VecDeque<Pair> = VecDeque::new();
    let mut checked = 0;
    for cycle in 0..cycles {
        let reset = cycle == 0 || rng.below(4_000) == 0;
        if reset {
            unit = UnitStages::new(stages, &layout);
            under_way.clear();
        }
        let (op, dtype) = pick(rng, selects);
        let (mode, tag) = (random::mode(rng), rng.bits());
        let (a, b) = random::words(rng, if op.is_bitwise() { DType::U64 } else { dtype });
        // Streams with gaps; a lone operand on either side now and then.
        let (a_valid, b_valid) = match rng.below(10) {
            0 | 1 => (false, false),
            2 => (true, false),
            3 => (false, true),
            _ => (true, true),
        };
        let given = [
            op as u128,
            dtype as u128,
            mode_bits(mode),
            u128::from(tag),
            u128::from(a_valid),
            u128::from(a),
            u128::from(b_valid),
            u128::from(b),
        ];
        let mut held = Vec::new();
        unit_values(&unit, &mut held);
        let entry = match (a_valid, b_valid) {
            _ if reset => None,
            (false, false) => None,
            (true, false) => Some(UnitInput::lone(op, dtype, tag, a)),
            (false, true) => Some(UnitInput::lone(op, dtype, tag, b)),
            (true, true) => Some(UnitInput::pair(op, dtype, tag, Unit::of(op, dtype, mode).expect("of words"), a, b)),
        };
        if entry.is_some() {
            let words = (a_valid && b_valid).then_some((a, b));
            under_way.push_back(Pair { op, dtype, mode, words });
        }
        let exit = unit.clock(entry);
        if let Some(exit) = &exit {
            let Pair { op, dtype, mode, words } = under_way.pop_front().expect("it went in");
            if let Some((a, b)) = words {
                assert_eq!(
                    (exit.word, exit.flags),
                    oracle::word_pair(op, dtype, mode, a, b),
                    "{op} {dtype} {a:x} {b:x}"
                );
                checked += 1;
            }
        }
        let output = exit
            .map_or([Some(0), None, None], |exit| [Some(1), Some(u128::from(exit.word)), Some(flags_bits(exit.flags))]);
        cosim.cycle(reset, &given, output.into_iter().chain(held))?;
    }
    Ok(checked)
}

fn units_hold_what_the_model_holds(stages: u8, cycles: u64, name: &str) {
    let selects = everything();
    let Some(mut cosim) = bench(stages, &selects).build(name) else { return };
    let seed = seed(0x57a9_0000 + u64::from(stages));
    let mut rng = Rng::new(seed, 0);
    let checked = drive(&mut cosim, (stages, &selects), &mut rng, cycles)
        .unwrap_or_else(|difference| panic!("{difference} (seed {seed})"));
    cosim.finish(&format!("ws_unit, {stages} stages, all operations and types, {checked} results as the oracle's"));
}

/// Cycles of a sample, and of a soak of each number of stages.
const SAMPLE: u64 = 20_000;
const SOAK: u64 = 500_000;

#[test]
fn a_unit_of_three_stages_holds_what_the_model_holds() {
    units_hold_what_the_model_holds(3, SAMPLE, "unit-3");
}

#[test]
#[ignore = "takes minutes: make soak"]
fn units_of_all_stages_hold_what_the_model_holds_for_long() {
    for stages in 1..=6 {
        units_hold_what_the_model_holds(stages, SOAK, &format!("unit-{stages}"));
    }
}

/// One lane of all types, with one to six stages side by side, and a clock enable.
pub fn pipes_bench(all: &[UnitStages<Unit>]) -> Bench {
    let mut bench = Bench::default();
    let inputs =
        [("en", 1), ("valid", 1), ("fn_code", 4), ("dtype", 4), ("mode", 5), ("tag", TAG_BITS), ("a", 64), ("b", 64)];
    for (name, width) in inputs {
        bench.input(name, width);
    }
    for (unit, stages) in all.iter().zip(1u8..) {
        bench.body(&format!(
            "  logic valid_{stages};\n  logic [63:0] tag_{stages};\n  done_t done_{stages};\n\
             \x20 ws_pipe #(.Stages({stages}), .Units({}), .TagWidth({TAG_BITS})) u_dut_{stages} (\n    .clk_i, .rst_ni, .en_i(en), \
             .valid_i(valid), .fn_i(fn_e'(fn_code)), .dtype_i(dtype_e'(dtype)), .mode_i(mode_t'(mode)), .tag_i(tag),\n    \
             .a_i(a), .b_i(b), .valid_o(valid_{stages}), .tag_o(tag_{stages}), .done_o(done_{stages}));\n",
            units_literal(&all_units())
        ));
        bench.look(format!("pipe{stages}.valid_o"), format!("valid_{stages}"), 1);
        for (name, expression, width) in [("tag_o", "tag", 64), ("lane", "done", 64), ("flags", "done", 7)] {
            let field = if expression == "done" { format!(".{name}") } else { String::new() };
            bench.look(format!("pipe{stages}.{name}"), format!("{expression}_{stages}{field}"), width);
        }
        look_at_lane(&mut bench, &format!("pipe{stages}"), &format!("u_dut_{stages}.u_lane"), stages, unit);
    }
    bench
}

/// What a unit does for an operation on words: `fn_e` of `ws_pkg.sv`.
fn function_code(op: Op) -> u128 {
    match op {
        Op::Sum => 0,
        Op::Prod => 2,
        Op::Min => 3,
        Op::Max => 4,
        Op::MinNum => 5,
        Op::MaxNum => 6,
        Op::And => 10,
        Op::Or => 11,
        Op::Xor => 12,
        Op::Nand => 13,
        Op::Nor => 14,
        Op::Xnor => 15,
        Op::Barrier | Op::MinMaxLoc | Op::MinMaxNumLoc | Op::RepSum => unreachable!("{op} has no function of words"),
    }
}

/// Random lanes for so many cycles, through pipes of one to six stages.
pub fn drive_pipes(cosim: &mut Cosim, rng: &mut Rng, cycles: u64) -> Result<(), Box<Difference>> {
    let reset_all = || -> Vec<UnitStages<Unit>> {
        (1..=6).map(|stages| UnitStages::new(stages, &Arc::new(Layout::of(stages, &all_units())))).collect()
    };
    let (all, mut units) = (everything(), reset_all());
    for cycle in 0..cycles {
        let reset = cycle == 0 || rng.below(4_000) == 0;
        if reset {
            units = reset_all();
        }
        let (op, dtype) = pick(rng, &all);
        let mode = random::mode(rng);
        let unit = Unit::of(op, dtype, mode).expect("of words");
        let (tag, (a, b)) = (rng.bits(), random::pair(rng, unit.dtype()));
        let (enabled, valid) = (rng.below(8) != 0, rng.below(4) != 0);
        let given = [
            u128::from(enabled),
            u128::from(valid),
            function_code(op),
            unit.dtype() as u128,
            mode_bits(mode),
            u128::from(tag),
            u128::from(a),
            u128::from(b),
        ];
        let mut expected = Vec::new();
        for one in &mut units {
            let mut held = Vec::new();
            lane_values(one, &mut held);
            let entry = (valid && !reset).then(|| UnitInput::pair(op, dtype, tag, unit, a, b));
            // No clock where the enable is low.
            let exit = if enabled { one.clock(entry) } else { None };
            let mask = |dtype: DType| u128::from(dtype.lane_mask());
            expected.push(Some(u128::from(exit.is_some())));
            match exit {
                Some(exit) => {
                    let dtype = Unit::of(exit.op, exit.dtype, Mode::default()).expect("of words").dtype();
                    expected.push(Some(u128::from(exit.tag)));
                    expected.push(Some(u128::from(exit.word) & mask(dtype)));
                    // Those of the other lanes are among the model's flags of the word.
                    expected.push((dtype.lanes() == 1).then(|| flags_bits(exit.flags)));
                }
                None => expected.extend([None; 3]),
            }
            expected.append(&mut held);
        }
        cosim.cycle(reset, &given, expected)?;
    }
    Ok(())
}

fn pipes_hold_what_the_model_holds(cycles: u64) {
    let all: Vec<UnitStages<Unit>> =
        (1..=6).map(|stages| UnitStages::new(stages, &Arc::new(Layout::of(stages, &all_units())))).collect();
    let Some(mut cosim) = pipes_bench(&all).build("pipes") else { return };
    let seed = seed(0x57a9_0010);
    let driven = drive_pipes(&mut cosim, &mut Rng::new(seed, 0), cycles);
    driven.unwrap_or_else(|difference| panic!("{difference} (seed {seed})"));
    cosim.finish("ws_pipe, 1 to 6 stages side by side, all functions and types, with a clock enable");
}

#[test]
fn pipes_of_one_to_six_stages_hold_what_the_model_holds() {
    pipes_hold_what_the_model_holds(SAMPLE);
}

#[test]
#[ignore = "takes minutes: make soak"]
fn pipes_hold_what_the_model_holds_for_long() {
    pipes_hold_what_the_model_holds(2 * SOAK);
}

/// No exception is raised and forgotten: the flags of the RTL are seven bits, as the model's.
#[test]
fn flags_fit_the_rtl() {
    let all =
        [Flags::INEXACT, Flags::UNDERFLOW, Flags::OVERFLOW, Flags::INVALID, Flags::INT_OVERFLOW, Flags::REP_INEXACT];
    let bits = all.iter().fold(0, |bits, flags| bits | flags_bits(*flags));
    assert_eq!(bits, 0b111_0111);
}
