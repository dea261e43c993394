//! Operands that arrive in any order give the same bits (P-SW-2), on data whose sums depend on the order of additions.

use watershed::arith::{DType, Mode, Op};
use watershed::oracle::{Node, evaluate};

use crate::first_principles::{Ground, Times, Tree};
use crate::sets;
use crate::share;
use crate::support::{Draw, FLAGSHIP, UNLIMITED, only, pass, ready};

const ELEMENTS: usize = 24;

fn base() -> Vec<String> {
    sets!["collective[0].elements={ELEMENTS}"; "collective[0].data.random=\"mixed\""; "{UNLIMITED}"]
}

fn late(sets: &mut Vec<String>, delays: &[u64]) {
    sets.push(format!("collective[0].delay_cycles={delays:?}"));
}

/// Two hundred in `make soak`, a third of them in `make test`.
#[test]
fn random_orders_give_the_same_bits() {
    let reference = only(&pass(FLAGSHIP, &base())).results.clone();
    let mut draw = Draw(4);
    let mut ends = std::collections::BTreeSet::new();
    for seed in 0..share::of(3, 200) {
        let mut set = base();
        let delays: Vec<u64> = (0..8).map(|_| draw.below(90)).collect();
        late(&mut set, &delays);
        let document = pass(FLAGSHIP, &set);
        assert_eq!(only(&document).results, reference, "order {seed}: delays {delays:?}");
        ends.insert(only(&document).end_cycle);
    }
    assert!(
        ends.len() > if share::is_whole() { 20 } else { 10 },
        "the delays reached the network: {} different ends",
        ends.len()
    );
}

#[test]
fn delays_drawn_by_the_scenario_change_no_bit_either() {
    let run = |max: u64| {
        let mut set = base();
        set.push(format!("collective[0].delay_cycles={{ random_max = {max} }}"));
        only(&pass(FLAGSHIP, &set)).results.clone()
    };
    assert_eq!(run(0), run(400));
}

#[test]
fn another_association_would_change_the_bits() {
    let ready = ready(FLAGSHIP, &base());
    let built = &ready.collectives[0];
    let sum = |tree: &Node, word: usize| {
        evaluate(tree, Op::Sum, DType::F64, Mode::default(), &|row| built.input[row * ELEMENTS + word]).0
    };
    let chain = (1..8).fold(Node::Leaf(0), |left, leaf| Node::Reduce {
        name: "chain".into(),
        radix: 2,
        inputs: vec![(0, left), (1, Node::Leaf(leaf))],
    });
    let reversed = (0..7).rev().fold(Node::Leaf(7), |left, leaf| Node::Reduce {
        name: "reversed".into(),
        radix: 2,
        inputs: vec![(0, left), (1, Node::Leaf(leaf))],
    });
    let embedded = built.footprint().tree.as_ref().expect("a reduction has a tree").node(&|switch| switch.to_string());
    let words: Vec<[u64; 3]> =
        (0..ELEMENTS).map(|word| [sum(&embedded, word), sum(&chain, word), sum(&reversed, word)]).collect();
    let differ = |a: usize, b: usize| words.iter().filter(|word| word[a] != word[b]).count();
    // With exponents this far apart many sums are one operand's; enough are not.
    assert!(
        differ(0, 1) >= 3 && differ(0, 2) >= 3 && differ(1, 2) >= 3,
        "{} {} {}",
        differ(0, 1),
        differ(0, 2),
        differ(1, 2)
    );
}

#[test]
fn the_last_to_arrive_decides_the_latency() {
    let mut draw = Draw(11);
    for _ in 0..40 {
        let delays: Vec<u64> = (0..8).map(|_| draw.below(60)).collect();
        let mut set = sets!["collective[0].elements=1"];
        late(&mut set, &delays);
        let tree = Tree {
            ground: &Ground::Die,
            times: Times::default(),
            root: vec![0, 2],
            senders: delays.iter().copied().enumerate().collect(),
        };
        let document = pass(FLAGSHIP, &set);
        let found = only(&document);
        // A result cannot land before its core has called the collective, and it does not: the core's own input is in it.
        assert_eq!(found.start_cycle, delays.iter().min().copied());
        assert_eq!(found.latency_cycles, Some(tree.allreduce()), "{delays:?}");
    }
}
