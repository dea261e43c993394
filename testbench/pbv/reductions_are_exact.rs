//! All-reduces over trees of engines against the oracle, bit for bit, in the order in which contributions arrived or in
//! PBV order (B-CE-5, B-HI-2).

use std::collections::BTreeMap;

use crate::support::{Lab, SET_UP};
use watershed::arith::{DType, Flags, Mode, Op};
use watershed::kernel::Rng;
use watershed::oracle::pair::word_pair;
use watershed::pbv::node::{SendCondition, TaskTime};
use watershed::pbv::packet::Message;
use watershed::pbv::plan::{Branch, Collective};
use watershed::pbv::system::{Spec, System, engine, node};

/// The tree of a tree system: every switch with all its nodes, children below.
fn whole(spec: &Spec, switch: usize, without: u16) -> Branch {
    let at = &spec.switches[switch];
    let below = spec.links.iter().filter(|link| link.0 == switch).map(|link| whole(spec, link.1, without));
    Branch::leaf(at.device, at.nodes.iter().copied().filter(|&node| node != without)).over(below)
}

/// The result of a branch, word by word, with its answers taken in the order in which the engine's log has them, or in
/// PBV order. Written for the test alone: contributions by sender, folded pair by pair.
fn expected(
    system: &System,
    collective: &Collective,
    branch: &Branch,
    lab: &Lab,
    words: &BTreeMap<u16, Vec<u64>>,
    flags: &mut Flags,
) -> Vec<u64> {
    let mut answers: Vec<(u16, Vec<u64>)> = Vec::new();
    for below in &branch.engines {
        answers.push((below.device, expected(system, collective, below, lab, words, flags)));
    }
    answers.extend(branch.nodes.iter().map(|&device| (device, words[&device].clone())));
    let log = engine(system, branch.device).log.events();
    let arrival = |device: u16| {
        log.iter()
            .position(|event| {
                event.received
                    && event.from == device
                    && event.cc_id == collective.cc_id
                    && matches!(event.message, Message::Contribution | Message::Partial)
            })
            .unwrap()
    };
    if collective.pbv_order {
        answers.sort_by_key(|&(device, _)| lab.tables.entry((branch.device, 0), device).unwrap());
    } else {
        answers.sort_by_key(|&(device, _)| arrival(device));
    }
    // The initial value enters once: at the top.
    let initial = collective.initial.filter(|_| branch.device == collective.tree.device);
    let mut result: Option<Vec<u64>> = initial.map(|word| vec![word; usize::from(collective.words)]);
    for (_, words) in answers {
        result = Some(match result {
            None => words,
            Some(old) => old
                .iter()
                .zip(&words)
                .map(|(&a, &b)| {
                    let (word, raised) = word_pair(collective.op, collective.dtype, Mode::default(), a, b);
                    *flags |= raised;
                    word
                })
                .collect(),
        });
    }
    result.unwrap()
}

fn operand(rng: &mut Rng, dtype: DType) -> u64 {
    // Lanes with small exponents, so that sums round and do not only overflow; now and then any bits at all.
    let any = rng.bits();
    if rng.below(8) == 0 {
        return any;
    }
    match dtype {
        DType::F64 => any & 0x800f_ffff_ffff_ffff | (0x3f0 + rng.below(32)) << 52,
        DType::F32 => any & 0x807f_ffff_807f_ffff | (0x70 + rng.below(24)) << 23 | (0x70 + rng.below(24)) << 55,
        _ => any,
    }
}

fn check(spec: &Spec, mut collective: Collective, seed: u64, pbv_order: bool, initial: Option<u64>) {
    collective.pbv_order = pbv_order;
    collective.initial = initial;
    let mut rng = Rng::new(seed, 0xa11);
    let words: BTreeMap<u16, Vec<u64>> = collective
        .tree
        .participants()
        .into_iter()
        .map(|device| (device, (0..collective.words).map(|_| operand(&mut rng, collective.dtype)).collect()))
        .collect();
    let mut lab = Lab::new(spec.clone(), std::slice::from_ref(&collective));
    lab.set_up(std::slice::from_ref(&collective));
    lab.join(&collective, |device| (words[&device].clone(), TaskTime::Uniform { from: 0, to: 300, seed }));
    lab.send(collective.source, SendCondition::At(SET_UP), [collective.command(9)]);
    let system = lab.run();
    let mut flags = Flags::NONE;
    let wanted = expected(&system, &collective, &collective.tree, &lab, &words, &mut flags);
    for device in collective.tree.participants() {
        let outcome = &node(&system, device).outcomes(collective.cc_id)[0];
        assert_eq!(outcome.words, wanted, "{} {} seed {seed}, device {device:#x}", collective.op, collective.dtype);
        assert_eq!((outcome.flags, outcome.error), (flags, None));
    }
}

#[test]
fn every_operation_and_type_over_a_tree_of_three_levels() {
    let spec = Spec::tree(2, 2, 3);
    let tree = whole(&spec, 0, 0xffff);
    let mut seed = 0;
    for &op in Op::COMMON.iter().filter(|&&op| op != Op::Barrier) {
        for &dtype in DType::ALL {
            seed += 1;
            let collective = Collective::all_reduce(4, 1, tree.clone(), op, dtype, 3);
            check(&spec, collective, seed, seed % 2 == 0, (seed % 3 == 0).then_some(1));
        }
    }
}

#[test]
fn long_vectors_over_trees_of_many_shapes() {
    for (seed, (levels, fan, nodes)) in [(1, 4, 6), (3, 2, 1), (0, 0, 30), (1, 9, 2)].into_iter().enumerate() {
        let spec = Spec::tree(levels, fan, nodes);
        let tree = whole(&spec, 0, 0xffff);
        for pbv_order in [false, true] {
            let collective = Collective::all_reduce(0xfff, 1, tree.clone(), Op::Sum, DType::F64, 128);
            check(&spec, collective, seed as u64, pbv_order, None);
        }
    }
}

/// The sums that node 1 gets when tasks take these times.
fn sum_of(times: &[u64], pbv_order: bool) -> u64 {
    // 2^53, 1 and -2^53 and 1: what is left of the ones depends on the order.
    let operands = [0x4340_0000_0000_0000, 0x3ff0_0000_0000_0000, 0xc340_0000_0000_0000, 0x3ff0_0000_0000_0000];
    let spec = Spec::regular(1, 4, 0x10, Vec::new());
    let tree = Branch::leaf(0, 1..=4);
    let mut collective = Collective::all_reduce(1, 1, tree, Op::Sum, DType::F64, 1);
    collective.pbv_order = pbv_order;
    let mut lab = Lab::new(spec, std::slice::from_ref(&collective));
    lab.set_up(std::slice::from_ref(&collective));
    lab.join(&collective, |device| {
        let k = usize::from(device) - 1;
        (vec![operands[k]], TaskTime::Fixed(times[k]))
    });
    lab.send(1, SendCondition::At(SET_UP), [collective.command(0)]);
    let system = lab.run();
    node(&system, 1).outcomes(1)[0].words[0]
}

#[test]
fn pbv_order_makes_a_sum_the_same_under_any_order_of_arrival() {
    let orders = [[0, 100, 200, 300], [300, 200, 100, 0], [0, 200, 100, 300], [100, 0, 300, 200]];
    let in_order: Vec<u64> = orders.iter().map(|times| sum_of(times, true)).collect();
    assert!(in_order.iter().all(|&sum| sum == in_order[0]), "{in_order:x?}");
    assert_eq!(in_order[0], 1f64.to_bits());
    let arrival: std::collections::BTreeSet<u64> = orders.iter().map(|times| sum_of(times, false)).collect();
    assert!(arrival.len() > 1, "arrival order shows: {arrival:x?}");
}
