//! Accumulate-wider: is widening exact, is there one rounding, and where?

use watershed::arith::{Accumulate, Flags, Mode, Op, Round, TreeCfg, TreeIn, tree};
use watershed::oracle::exact::{Meaning, convert, read};
use watershed::oracle::lane_pair;

use crate::vectors::{Random, corners, seed};

#[test]
fn widening_is_exact_for_every_operand() {
    for &pair in Accumulate::ALL {
        for lane in 0..1u64 << pair.operand().bits() {
            let got = pair.widen(Mode::default(), lane);
            let expected = convert(pair.operand(), pair.accumulator(), Round::NearestEven, lane);
            assert_eq!((got.bits, got.flags), expected, "{pair:?} {lane:#x}");
            assert!(!got.flags.contains(Flags::INEXACT));
            // And back: the same operand, but for NaN payloads.
            if !matches!(read(pair.operand(), lane), Meaning::Nan { .. }) {
                let back = pair.narrow(Mode::default(), got.bits);
                assert_eq!((back.bits, back.flags), (lane, Flags::NONE));
            }
        }
    }
}

#[test]
fn narrowing_rounds_as_the_definition_says() {
    let seed = seed(0x5eed_0070);
    for &pair in Accumulate::ALL {
        let mut random = Random::new(seed);
        let (wide, narrow) = (pair.accumulator(), pair.operand());
        let exhaustive: Box<dyn Iterator<Item = u64>> = if wide.bits() == 16 {
            Box::new(0..1 << 16)
        } else {
            let near = |random: &mut Random| {
                // Around a number of the narrow format: ties and their neighbours.
                let lane = random.word() & narrow.lane_mask();
                let middle = pair.widen(Mode::default(), lane).bits;
                (middle ^ (1 << random.below(26))).wrapping_add(random.below(3)).wrapping_sub(1) & wide.lane_mask()
            };
            let lanes: Vec<u64> = (0..60_000).map(|_| near(&mut random)).chain(corners(wide)).collect();
            Box::new(lanes.into_iter())
        };
        for lane in exhaustive {
            for &round in Round::ALL {
                let got = pair.narrow(Mode::rounding(round), lane);
                let expected = convert(wide, narrow, round, lane);
                assert_eq!((got.bits, got.flags), expected, "{pair:?} {round} {lane:#x} (seed {seed})");
            }
        }
    }
}

/// The whole way: words of operands, widened, through the tree in the accumulator's lanes, rounded once at the end.
#[test]
fn a_reduction_accumulates_wide_and_rounds_once() {
    let seed = seed(0x5eed_0071);
    let mut random = Random::new(seed);
    let cfg = TreeCfg { radix: 8, unit_stages: 3 };
    let mut wider_helps = 0;
    for &pair in Accumulate::ALL {
        let (wide, narrow) = (pair.accumulator(), pair.operand());
        for _ in 0..200 {
            let mode = Mode::rounding(Round::ALL[random.below(4) as usize]);
            let operands: Vec<u64> = (0..8).map(|_| random.lanes(narrow)).collect();
            let sums: Vec<u64> = (0..pair.words())
                .map(|index| {
                    let words: Vec<u64> = operands.iter().map(|&word| pair.widen_word(mode, word, index).0).collect();
                    tree::eval(cfg, &TreeIn { mode, ..TreeIn::of(Op::Sum, wide, &words) }).value
                })
                .collect();
            let (result, _) = pair.narrow_words(mode, &sums);
            for k in 0..narrow.lanes() {
                let mut level: Vec<u64> = operands
                    .iter()
                    .map(|word| convert(narrow, wide, mode.round, word >> (k * narrow.bits()) & narrow.lane_mask()).0)
                    .collect();
                while level.len() > 1 {
                    level = level.chunks(2).map(|pair| lane_pair(Op::Sum, wide, mode, pair[0], pair[1]).0).collect();
                }
                let expected = convert(wide, narrow, mode.round, level[0]).0;
                let got = result >> (k * narrow.bits()) & narrow.lane_mask();
                assert_eq!(got, expected, "{pair:?} {mode:?} lane {k} (seed {seed})");
            }
            let narrow_sum = tree::eval(cfg, &TreeIn { mode, ..TreeIn::of(Op::Sum, narrow, &operands) }).value;
            wider_helps += u32::from(narrow_sum != result);
        }
    }
    assert!(wider_helps > 500, "summing in the operands' own format must give other bits: {wider_helps}");
}
