//! Pipelines: does the number of stages, a bubble or a stall ever change a bit, an order or a cycle?

use std::collections::VecDeque;

use watershed::arith::comparator::Selection;
use watershed::arith::integer::Gate;
use watershed::arith::{DType, Function, Mode, Op, Pipe, PipeIn, Tree, TreeCfg, TreeIn, TreeOut, Unit, tree};

use crate::vectors::{Random, corners, seed};

const FUNCTIONS: [Function; 11] = [
    Function::Select(Selection::MinNum),
    Function::Select(Selection::MaxNum),
    Function::Add,
    Function::Sub,
    Function::Mul,
    Function::Select(Selection::Min),
    Function::Select(Selection::Max),
    Function::Select(Selection::Equal),
    Function::Select(Selection::LessOrEqual),
    Function::Select(Selection::Less),
    Function::Gate(Gate::Xor),
];

#[test]
fn the_number_of_stages_never_changes_a_bit() {
    let seed = seed(0x5eed_0020);
    for &dtype in DType::ALL {
        for function in FUNCTIONS {
            let mut random = Random::new(seed);
            let mode = random.mode();
            let mut inputs: Vec<(u64, u64)> = (0..300).map(|_| random.pair(dtype)).collect();
            if dtype.is_float() {
                let corners = corners(dtype);
                inputs.extend(corners.iter().map(|&a| (a, corners[random.below(corners.len() as u64) as usize])));
            }
            let unit = Unit::new(function, dtype, mode);
            for stages in 1..=6 {
                let mut pipe = Pipe::new(function, dtype, mode, stages);
                let mut results = Vec::new();
                for k in 0..inputs.len() + stages as usize {
                    let input = inputs.get(k).map(|&(a, b)| PipeIn { a, b, tag: k as u64 });
                    results.extend(pipe.tick(input));
                }
                assert_eq!(results.len(), inputs.len(), "one operation a cycle");
                for (k, (&(a, b), result)) in inputs.iter().zip(&results).enumerate() {
                    let expected = unit.evaluate(a, b);
                    assert_eq!(
                        (result.bits, result.flags, result.tag),
                        (expected.bits, expected.flags, k as u64),
                        "{function:?} {dtype} {stages} stages {a:#x} {b:#x} (seed {seed})"
                    );
                }
            }
        }
    }
}

#[test]
fn bubbles_and_stalls_move_results_but_never_change_them() {
    let seed = seed(0x5eed_0021);
    let mut random = Random::new(seed);
    for stages in 1..=6u8 {
        let mut pipe = Pipe::new(Function::Add, DType::F64, Mode::default(), stages);
        let unit = Unit::new(Function::Add, DType::F64, Mode::default());
        // What is due, and in which enabled cycle.
        let mut due = VecDeque::new();
        let mut enabled = 0u64;
        for cycle in 0..5_000u64 {
            if random.below(3) == 0 {
                pipe.stall();
                continue;
            }
            let input = (random.below(2) == 0).then(|| {
                let (a, b) = random.pair(DType::F64);
                PipeIn { a, b, tag: cycle }
            });
            if let Some(PipeIn { a, b, tag }) = input {
                due.push_back((enabled + u64::from(stages), unit.evaluate(a, b), tag));
            }
            let output = pipe.tick(input);
            let expected = due.front().filter(|(when, _, _)| *when == enabled).copied();
            assert_eq!(
                output.map(|o| (o.bits, o.flags, o.tag)),
                expected.map(|(_, packed, tag)| (packed.bits, packed.flags, tag)),
                "{stages} stages, cycle {cycle} (seed {seed})"
            );
            if expected.is_some() {
                due.pop_front();
            }
            enabled += 1;
        }
    }
}

/// Waves of any operation and type, with bubbles, through one tree: each leaves in its cycle with the bits of the
/// unregistered tree.
#[test]
fn a_tree_takes_any_mixture_of_waves_one_a_cycle() {
    let seed = seed(0x5eed_0022);
    let mut random = Random::new(seed);
    for radix in 1..=10u8 {
        for unit_stages in 1..=6u8 {
            let cfg = TreeCfg { radix, unit_stages };
            let mut tree = Tree::new(cfg);
            let mut due: VecDeque<(u64, TreeOut)> = VecDeque::new();
            for cycle in 0..200u64 {
                let input = (random.below(4) != 0).then(|| random_wave(&mut random, radix, cycle));
                if let Some(input) = &input {
                    due.push_back((cycle + cfg.latency_cycles(), tree::eval(cfg, input)));
                }
                let output = tree.tick(input);
                let expected = due.front().filter(|(when, _)| *when == cycle).map(|(_, out)| *out);
                assert_eq!(output, expected, "radix {radix}, {unit_stages} stages, cycle {cycle} (seed {seed})");
                if expected.is_some() {
                    due.pop_front();
                }
                assert_eq!(tree.in_flight(), due.len());
            }
        }
    }
}

/// Every operation a tree of words takes.
pub const WORD_OPS: [Op; 13] = [
    Op::Sum,
    Op::Prod,
    Op::Min,
    Op::Max,
    Op::And,
    Op::Or,
    Op::Xor,
    Op::Nand,
    Op::Nor,
    Op::Xnor,
    Op::Barrier,
    Op::MinNum,
    Op::MaxNum,
];

pub fn random_wave(random: &mut Random, radix: u8, tag: u64) -> TreeIn {
    let op = WORD_OPS[random.below(WORD_OPS.len() as u64) as usize];
    let dtype = DType::ALL[random.below(DType::ALL.len() as u64) as usize];
    let present = random.word() | random.word();
    TreeIn {
        op,
        dtype,
        mode: random.mode(),
        operands: (0..radix).filter(|port| present >> port & 1 == 1).map(|port| (port, random.lanes(dtype))).collect(),
        flags: watershed::arith::Flags::from_bits(random.word() as u8 & random.word() as u8),
        tag,
    }
}
