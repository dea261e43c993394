//! The quick oracle of the exhaustive run against the slow one: values and flags.

use watershed::arith::{DType, Mode, Op, Round};
use watershed::oracle::fast::{Question, answer};
use watershed::oracle::lane_pair;

use crate::vectors::{Random, corners, seed};

#[test]
fn the_quick_oracle_agrees_with_the_slow_one() {
    let seed = seed(0x5eed_0090);
    let questions =
        [(Question::Add, Op::Sum), (Question::Mul, Op::Prod), (Question::Min, Op::Min), (Question::Max, Op::Max)];
    for dtype in [DType::F16, DType::Bf16] {
        let mut random = Random::new(seed);
        let corners = corners(dtype);
        let some = corners.iter().flat_map(|&a| corners.iter().step_by(4).map(move |&b| (a, b)));
        let pairs: Vec<(u64, u64)> = some.chain((0..30_000).map(|_| random.pair(dtype))).collect();
        for (k, &(a, b)) in pairs.iter().enumerate() {
            let round = Round::ALL[k % 4];
            for (question, op) in questions {
                let expected = lane_pair(op, dtype, Mode::rounding(round), a, b);
                assert_eq!(
                    answer(question, dtype, round, a, b),
                    Some(expected),
                    "{op} {dtype} {round} {a:#x} {b:#x} (seed {seed})"
                );
            }
        }
    }
    assert_eq!(answer(Question::Add, DType::F32, Round::Up, 0, 0), None);
}
