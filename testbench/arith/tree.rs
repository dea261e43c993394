//! The reduction tree: are its bits those of the untimed oracle, for any radix and any set of ports?

use watershed::arith::{DType, Flags, Mode, Op, Operands, TreeCfg, TreeIn, tree};
use watershed::oracle::{Node, check_each_once, evaluate};

use crate::pipeline::random_wave;
use crate::vectors::{Random, seed};

/// The oracle's node for a wave: leaf k is the k-th present port.
fn node_of(radix: u8, operands: &Operands) -> (Node, Vec<u64>) {
    let mut inputs = Vec::new();
    let mut words = Vec::new();
    for (port, word) in operands.iter() {
        inputs.push((port, Node::Leaf(words.len())));
        words.push(word);
    }
    let node = Node::Reduce { name: "tree".to_owned(), radix, inputs };
    (node, words)
}

fn check(cfg: TreeCfg, input: &TreeIn, seed: u64) {
    let (node, words) = node_of(cfg.radix, &input.operands);
    assert_eq!(check_each_once(&node, words.len()), Ok(()));
    let (value, flags) = evaluate(&node, input.op, input.dtype, input.mode, &|k| words[k]);
    let got = tree::eval(cfg, input);
    assert_eq!((got.value, got.flags, got.tag), (value, flags | input.flags, input.tag), "{input:x?} (seed {seed})");
}

#[test]
fn every_subset_of_ports_of_every_radix_matches_the_oracle() {
    let seed = seed(0x5eed_0030);
    let mut random = Random::new(seed);
    for radix in 1..=10u8 {
        let cfg = TreeCfg { radix, unit_stages: 3 };
        for present in 0..1u64 << radix {
            for dtype in [DType::F64, DType::F16] {
                let input = TreeIn {
                    op: Op::Sum,
                    dtype,
                    mode: random.mode(),
                    operands: (0..radix)
                        .filter(|port| present >> port & 1 == 1)
                        .map(|port| (port, random.lanes(dtype)))
                        .collect(),
                    flags: Flags::NONE,
                    tag: present,
                };
                check(cfg, &input, seed);
            }
        }
    }
}

#[test]
fn any_operation_type_and_mode_matches_the_oracle() {
    let seed = seed(0x5eed_0031);
    let mut random = Random::new(seed);
    for k in 0..20_000 {
        let radix = 1 + random.below(10) as u8;
        let input = random_wave(&mut random, radix, k);
        check(TreeCfg { radix, unit_stages: 1 }, &input, seed);
    }
}

#[test]
fn wide_trees_match_the_oracle() {
    let seed = seed(0x5eed_0032);
    let mut random = Random::new(seed);
    for radix in [11u8, 16, 17, 31, 33, 48, 63, 64] {
        for k in 0..100 {
            let input = random_wave(&mut random, radix, k);
            check(TreeCfg { radix, unit_stages: 2 }, &input, seed);
        }
    }
}

/// Operands for which every association gives other bits: the tree's own must come out.
#[test]
fn the_association_is_that_of_the_ports() {
    // f32: 2^24, 1, 1, -2^24. ((a+b)+(c+d)): 2^24 + 1 ties to 2^24; 1 - 2^24 is exact; sum 1.
    // Left to right: 2^24, 2^24, then 0. Pairs (0,3),(1,2) would give 2.
    let (big, one, minus_big) = (0x4b80_0000u64, 0x3f80_0000u64, 0xcb80_0000u64);
    let cfg = TreeCfg { radix: 8, unit_stages: 2 };
    let sum = |ports: [u8; 4]| {
        let words = [big, one, one, minus_big];
        let mut input = TreeIn::of(Op::Sum, DType::F32, &[]);
        input.operands = ports.into_iter().zip(words).collect();
        tree::eval(cfg, &input)
    };
    assert_eq!(sum([0, 1, 2, 3]).value, 0x3f80_0000, "(big + 1) + (1 - big)");
    assert_eq!(sum([0, 1, 2, 3]).flags, Flags::INEXACT);
    assert_eq!(sum([0, 2, 3, 1]).value, 0x4000_0000, "(big - big) + (1 + 1)");
    assert_eq!(sum([0, 2, 3, 1]).flags, Flags::NONE);
    assert_eq!(sum([0, 1, 4, 6]).value, 0x3f80_0000, "(big + 1) + (1 - big), across the halves");
    assert_eq!(sum([0, 2, 4, 6]).value, 0x3f80_0000, "absent neighbours change nothing");
    assert_eq!(sum([0, 1, 2, 4]).value, 0, "((big + 1) + 1) - big");
}

/// Three operands at ports 0, 1, 2 and at ports 0, 2, 3 associate differently: there is no compaction.
#[test]
fn absent_ports_are_not_compacted() {
    let cfg = TreeCfg { radix: 4, unit_stages: 1 };
    let sum = |ports: [u8; 3]| {
        let mut input = TreeIn::of(Op::Sum, DType::F32, &[]);
        input.operands = ports.into_iter().zip([0x4b80_0000u64, 0x3f80_0000, 0x3f80_0000]).collect();
        tree::eval(cfg, &input).value
    };
    assert_eq!(sum([0, 1, 2]), 0x4b80_0000);
    assert_eq!(sum([0, 2, 3]), 0x4b80_0001);
}

#[test]
fn a_lone_operand_passes_bit_for_bit_in_every_mode() {
    let flush = Mode { flush_to_zero: true, ..Mode::default() };
    for radix in 1..=10u8 {
        for port in 0..radix {
            for word in [0x7ff0_0000_0000_0001, 0xfff8_dead_beef_0001, 1, 1 << 63, u64::MAX] {
                for op in [Op::Sum, Op::Prod, Op::Min, Op::Max, Op::Nand] {
                    let mut input = TreeIn::of(op, DType::F64, &[]);
                    input.mode = flush;
                    input.operands.set(port, word);
                    let got = tree::eval(TreeCfg { radix, unit_stages: 1 }, &input);
                    assert_eq!((got.value, got.flags), (word, Flags::NONE));
                }
            }
        }
    }
}

#[test]
fn sticky_flags_of_every_node_and_of_the_operands_come_out() {
    // Left pair overflows, right pair is invalid; the packet brought an underflow along.
    let words = [0x7bff_u64, 0x7bff, 0x7c00, 0xfc00];
    let mut input = TreeIn::of(Op::Sum, DType::F16, &words);
    input.flags = Flags::UNDERFLOW;
    let got = tree::eval(TreeCfg { radix: 4, unit_stages: 5 }, &input);
    assert_eq!(got.value, 0x7e00);
    assert_eq!(got.flags, Flags::OVERFLOW | Flags::INEXACT | Flags::INVALID | Flags::UNDERFLOW);
}
