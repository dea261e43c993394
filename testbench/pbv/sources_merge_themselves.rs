//! The master hands every response to the source, which merges them in software (paragraphs 11 and 12): the same bits for everybody,
//! other frames at the source.

use std::path::Path;

use crate::share;
use crate::support::{Lab, SET_UP};
use watershed::arith::{DType, Op};
use watershed::kernel::Rng;
use watershed::pbv::gather::Gather;
use watershed::pbv::node::{SendCondition, TaskTime};
use watershed::pbv::packet::Message;
use watershed::pbv::plan::{Branch, Collective};
use watershed::pbv::system::{Spec, System, engine, events, node};
use watershed::scenario::load_text;
use watershed::scenario::run::{RunOptions, RunResult, run};

fn operand(device: u16, word: u64) -> u64 {
    (u64::from(device) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(word as u32)
}

/// Runs an all-reduce of words through a source that merges.
fn merged(spec: &Spec, collective: &Collective, cycles: u64) -> System {
    let mut lab = Lab::new(spec.clone(), std::slice::from_ref(collective));
    lab.set_up(std::slice::from_ref(collective));
    lab.join(collective, |device| {
        let words = (0..u64::from(collective.words)).map(|k| operand(device, k)).collect();
        (words, TaskTime::Uniform { from: 0, to: 200, seed: 5 })
    });
    let mut gather = Gather::new(collective.tree.device, collective.mask(&collective.tree, &lab.tables));
    gather.cycles_per_word = cycles;
    let part = lab.node(collective.source).part_mut(collective.cc_id).unwrap();
    part.gather = Some(gather);
    part.heeds.push(collective.tree.device);
    lab.send(collective.source, SendCondition::At(SET_UP), [collective.command(1)]);
    lab.run()
}

#[test]
fn the_source_gets_one_frame_for_each_response_and_everybody_the_sum() {
    for (switches, nodes, source) in [(1, 4, 1), (3, 3, 1), (3, 3, 0x12), (5, 2, 0x42), (9, 7, 3)] {
        let spec = Spec::regular(switches, nodes, 0x10, (1..switches).map(|k| (0, k)).collect());
        let leaf = |k: usize| Branch::leaf(k as u16 * 0x10, (1..=nodes as u16).map(|n| k as u16 * 0x10 + n));
        let tree = leaf(0).over((1..switches).map(leaf));
        let plain = Collective::all_reduce(5, source, tree, Op::Sum, DType::U64, 6);
        let collective = Collective { to_source: true, ..plain.clone() };
        let system = merged(&spec, &collective, 2);
        let all = collective.tree.participants();
        let sum = |k| all.iter().fold(0u64, |sum, &device| sum.wrapping_add(operand(device, k)));
        let sums: Vec<u64> = (0..6).map(sum).collect();
        for &device in &all {
            let outcomes = node(&system, device).outcomes(5);
            assert_eq!(outcomes.len(), 1);
            assert_eq!((&outcomes[0].words, outcomes[0].error), (&sums, None), "{switches} {nodes} {source}");
        }
        // The master's own nodes and the engines below it, each response a frame of its own; one result back.
        let responses = switches - 1 + nodes;
        let to = |from: u16, to: u16, message: &[Message]| {
            let sent =
                events(&system).into_iter().filter(|event| !event.received && (event.from, event.to) == (from, to));
            sent.filter(|event| message.contains(&event.message)).count()
        };
        assert_eq!(to(0, source, &[Message::Contribution, Message::Partial]), responses);
        assert_eq!(to(source, 0, &[Message::Satisfied]), 1);
        let gather = node(&system, source).gather(5).unwrap();
        assert_eq!((gather.count(), gather.merged(1).len()), (responses as u64, responses));
        // The master's accumulators saw nothing.
        assert!(engine(&system, 0).ce().find(5).unwrap().stored.to_source);
    }
}

fn scenario(keys: &str, more: &str) -> String {
    format!(
        "family = \"pbv\"\n[topology]\nkind = \"flattened-butterfly\"\nsize = [4]\nconcentration = 3\n[limits]\nmax_cycles = 3000000\n\
         [pbv.engine]\ntimeout_cycles = 3000\nretries = 2\n\
         [[pbv.collective]]\nname = \"sum\"\nelements = 20\nrounds = 6\nmerge = \"source\"\n{keys}\n{more}"
    )
}

fn run_text(text: &str, options: &RunOptions<'_>) -> RunResult {
    let loaded = load_text("test", text, Path::new(""), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    run(&loaded, options).unwrap()
}

#[test]
fn every_type_and_order_has_the_oracles_bits() {
    for dtype in ["f64", "f32", "f16", "bf16", "fp8_e4m3", "i32"] {
        let data = if dtype == "i32" { "integers" } else { "bits" };
        for keys in [
            "",
            "order = \"pbv\"",
            "source = 7\nmaster = \"s0\"",
            "source = 11\nexcept = [11]",
            "initial = 3",
            "forwards = [\"s2\"]\nparents = { s3 = \"s2\" }",
        ] {
            let text = scenario(&format!("dtype = \"{dtype}\"\ndata = {{ random = \"{data}\" }}\n{keys}"), "");
            let result = run_text(&text, &RunOptions::default());
            assert!(result.document.passed(), "{dtype} {keys}: {:?}", result.document.checks);
            let of = &result.document.pbv.as_ref().unwrap().collectives[0];
            assert_eq!((of.bit_exact, of.outcomes.complete), (Some(true), 6), "{dtype} {keys}");
            assert!(of.merged_by_source.unwrap() >= 6 * 4, "{dtype} {keys}");
        }
    }
}

#[test]
fn merging_takes_the_sources_time() {
    let latency = |cycles: u32| {
        let text = scenario(&format!("merge_cycles_per_word = {cycles}"), "");
        let result = run_text(&text, &RunOptions::default());
        result.document.pbv.unwrap().collectives[0].round_latency_cycles.unwrap().min
    };
    // Six responses of twenty words, of which the later ones wait for the earlier.
    assert!(latency(100) >= latency(1) + 6 * 20 * 90, "{} {}", latency(100), latency(1));
}

/// One seed in five in `make test`.
#[test]
fn lost_frames_and_dead_nodes_are_made_up_for_or_reported() {
    for seed in share::one_in(5, 0..30) {
        let mut rng = Rng::new(seed, 0x5a7e);
        let at = ["all", "s0.node0", "s1", "s2.node1"][rng.below(4) as usize];
        let fault = format!("[[pbv.fault]]\neffect = \"drop\"\nat = \"{at}\"\nprobability = 0.05\nfrom_cycle = 2500\n");
        let text = format!("seed = {seed}\n{}", scenario("start_cycle = 4000", &fault));
        let skipping = run_text(&text, &RunOptions::default());
        assert!(skipping.document.passed(), "{seed} {at}: {:?}", skipping.document.checks);
        let pbv = skipping.document.pbv.as_ref().unwrap();
        assert_eq!((pbv.outcomes.silent, pbv.outcomes.open), (0, 0), "{seed} {at}");
        // Without skipping, time-outs are walked through cycle by cycle: for a third of the seeds.
        if seed % 3 == 0 {
            let every = run_text(&text, &RunOptions { no_skip: true, ..RunOptions::default() });
            assert_eq!(skipping.document.pbv, every.document.pbv, "{seed} {at}");
        }
    }
    // Who never answers is named, and everybody hears that the sum is not whole.
    let text = scenario("fails = [{ end_point = 8, round = 2 }]", "");
    let result = run_text(&text, &RunOptions::default());
    let of = &result.document.pbv.as_ref().unwrap().collectives[0];
    assert_eq!((of.outcomes.complete, of.outcomes.incomplete, of.outcomes.silent), (5, 1, 0), "{:?}", of.rounds);
    let text =
        scenario("late = [{ end_point = 5, cycles = 2000000, round = 0 }]", "").replace("rounds = 6", "rounds = 1");
    let result = run_text(&text, &RunOptions::default());
    let of = &result.document.pbv.as_ref().unwrap().collectives[0];
    assert_eq!(of.outcomes.incomplete, 1, "{:?}", of.rounds);
    assert!(of.rounds[0].missing.iter().any(|name| name == "s1.node2" || name == "s1"), "{:?}", of.rounds[0].missing);
}

#[test]
fn the_way_of_a_round_leads_through_the_sources_merging() {
    let why = watershed::scenario::why::WhyQuery::default();
    let text = scenario("merge_cycles_per_word = 40", "");
    let result = run_text(&text, &RunOptions { why: Some(why), ladder: true, ..RunOptions::default() });
    assert_eq!(result.notes, Vec::<String>::new());
    assert_eq!(result.why.len(), 1);
    let ladder = result.ladder.unwrap();
    let label = |label: &str, from: &str| {
        let from = ladder.actors.iter().position(|actor| actor == from).unwrap();
        ladder.messages.iter().filter(|message| message.label == label && message.from == from).count()
    };
    assert_eq!(label("satisfied", "s0.node0"), 6, "results that the source hands in");
}

#[test]
fn what_a_source_cannot_merge_is_refused() {
    for (keys, what) in [
        ("rearm = true", "a source that merges commands each round"),
        ("kind = \"multicast\"", "no source merges the responses of a multicast"),
    ] {
        let problems = load_text("test", &scenario(keys, ""), Path::new(""), "test", &[]).unwrap_err().to_string();
        assert!(problems.contains(what), "{problems}");
    }
    let text = scenario("merge_cycles_per_word = 2", "").replace("merge = \"source\"\n", "");
    let problems = load_text("test", &text, Path::new(""), "test", &[]).unwrap_err().to_string();
    assert!(problems.contains("only a source that merges"), "{problems}");
}
