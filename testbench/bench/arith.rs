//! What the arithmetic costs: adds a second through the pipelined model beside SoftFloat's, and a long reduction.

use std::hint::black_box;
use std::time::Instant;

use watershed::arith::{DType, Flags, Function, Mode, Op, Operands, Pipe, PipeIn, Round, Tree, TreeCfg, TreeIn};
use watershed::oracle::soft::{FloatOp, operate};

/// Doubles of near exponents and both signs.
fn doubles(count: usize) -> Vec<u64> {
    let mut state = 1u64;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let word = state ^ state >> 29;
            word & !(0x7ff << 52) | (1003 + (word >> 52) % 40) << 52
        })
        .collect()
}

/// f64 adds a second: through the pipe of this many stages, and SoftFloat's.
pub fn bench_adds(count: usize, stages: u8) -> (f64, f64) {
    let values = doubles(4096);
    let pair = |k: usize| (values[k & 4095], values[(k.wrapping_mul(7) + 1) & 4095]);
    let mut pipe = Pipe::new(Function::Add, DType::F64, Mode::default(), stages);
    let begin = Instant::now();
    for k in 0..count {
        let (a, b) = pair(k);
        black_box(pipe.tick(Some(PipeIn { a, b, tag: k as u64 })));
    }
    let ours = count as f64 / begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    for k in 0..count {
        let (a, b) = pair(k);
        black_box(operate(FloatOp::Add, DType::F64, Round::NearestEven, a, b));
    }
    (ours, count as f64 / begin.elapsed().as_secs_f64())
}

/// Seconds that the pipelined tree of radix 10 takes for this many doubles, level above level, one wave a cycle.
pub fn bench_reduce(count: usize) -> f64 {
    let cfg = TreeCfg { radix: 10, unit_stages: 3 };
    let mut words = doubles(count);
    let begin = Instant::now();
    while words.len() > 1 {
        let mut tree = Tree::new(cfg);
        let mut results = Vec::with_capacity(words.len().div_ceil(10));
        let mut groups = words.chunks(10);
        let groups_in_all = words.len().div_ceil(10);
        while results.len() < groups_in_all {
            let wave = groups.next().map(|group| TreeIn {
                op: Op::Sum,
                dtype: DType::F64,
                mode: Mode::default(),
                operands: Operands::from_words(group),
                flags: Flags::NONE,
                tag: 0,
            });
            results.extend(tree.tick(wave).map(|out| out.value));
        }
        words = results;
    }
    black_box(words);
    begin.elapsed().as_secs_f64()
}
