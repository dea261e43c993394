//! Responses of lower engines merged, or handed on as they are: the same bits, other frames on the links (B-HI-2).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::support::{Lab, SET_UP};
use watershed::arith::{DType, Op};
use watershed::kernel::Rng;
use watershed::pbv::node::{SendCondition, TaskTime, missing};
use watershed::pbv::packet::Status;
use watershed::pbv::plan::{Branch, Collective};
use watershed::pbv::system::{Spec, System, engine, node, run};
use watershed::scenario::load_text;
use watershed::scenario::result::Document;
use watershed::scenario::run::RunOptions;

/// Flits on every link between switches so far: by the switches at its ends.
fn flits(system: &System) -> BTreeMap<(String, String), u64> {
    let switch = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let counts = system.link_counts().enumerate().filter(|(_, (level, ..))| *level == 1);
    counts
        .map(|(at, (_, count, _))| {
            let (from, to) = system.link_ends(at);
            ((switch(&from), switch(&to)), count.unicast)
        })
        .collect()
}

/// Runs an all-reduce once, and says what crossed each link between command and end.
fn measured(spec: &Spec, collective: &Collective) -> (System, BTreeMap<(String, String), u64>) {
    let lab = |command: bool| {
        let mut lab = Lab::new(spec.clone(), std::slice::from_ref(collective));
        lab.set_up(std::slice::from_ref(collective));
        lab.join(collective, |device| {
            let words = (0..u64::from(collective.words)).map(|k| operand(device, k)).collect();
            (words, TaskTime::Uniform { from: 0, to: 200, seed: u64::from(device) })
        });
        if command {
            lab.send(collective.source, SendCondition::At(SET_UP), [collective.command(1)]);
        }
        lab.run()
    };
    let before = flits(&lab(false));
    let system = lab(true);
    let all = flits(&system).into_iter().map(|(link, count)| (link.clone(), count - before[&link])).collect();
    (system, all)
}

fn operand(device: u16, word: u64) -> u64 {
    (u64::from(device) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(word as u32)
}

fn sums(collective: &Collective) -> Vec<u64> {
    let of = |k| collective.tree.participants().iter().fold(0u64, |sum, &device| sum.wrapping_add(operand(device, k)));
    (0..u64::from(collective.words)).map(of).collect()
}

#[test]
fn a_chain_carries_one_response_a_link_merged_and_one_for_each_engine_behind_it_unmerged() {
    for depth in [2usize, 4, 7] {
        let spec = Spec::regular(depth, 2, 0x10, (1..depth).map(|k| (k - 1, k)).collect());
        let tree = (0..depth).rev().fold(None, |below: Option<Branch>, k| {
            let device = k as u16 * 0x10;
            Some(Branch::leaf(device, [device + 1, device + 2]).over(below))
        });
        let mut collective = Collective::all_reduce(3, 1, tree.unwrap(), Op::Sum, DType::U64, 3);
        for unmerged in [false, true] {
            collective.forwards = (1..depth as u16).filter(|_| unmerged).map(|k| k * 0x10).collect();
            let (system, counts) = measured(&spec, &collective);
            let name = |k: usize| format!("sw{:04x}", k * 0x10);
            for k in 1..depth {
                // A command of 4 flits and a result of 7 away from the master; responses of 7 towards it.
                let responses = if unmerged { depth - k } else { 1 };
                assert_eq!(counts[&(name(k - 1), name(k))], 4 + 7, "{depth} {unmerged}");
                assert_eq!(counts[&(name(k), name(k - 1))], 7 * responses as u64, "{depth} {unmerged}");
            }
            for device in collective.tree.participants() {
                assert_eq!(node(&system, device).outcomes(3)[0].words, sums(&collective), "{depth} {unmerged}");
            }
            // The master tracks each responder.
            let tracked = engine(&system, 0).ce().find(3).unwrap().stored.p_count;
            assert_eq!(usize::from(tracked), 2 + if unmerged { depth - 1 } else { 1 });
        }
    }
}

/// Every switch of a tree system with some of its nodes.
fn tree(spec: &Spec, switch: usize, rng: &mut Rng) -> Branch {
    let at = &spec.switches[switch];
    let nodes: Vec<u16> = at.nodes.iter().copied().filter(|_| rng.below(3) > 0).collect();
    let below: Vec<usize> = spec.links.iter().filter(|link| link.0 == switch).map(|link| link.1).collect();
    let below: Vec<Branch> = below.into_iter().map(|below| tree(spec, below, rng)).collect();
    Branch::leaf(at.device, nodes).over(below.into_iter().filter(|branch| !branch.participants().is_empty()))
}

#[test]
fn any_set_of_engines_may_hand_on_over_many_shapes() {
    let (mut handed_on, mut silent) = (0, 0);
    for seed in 0..40 {
        let mut rng = Rng::new(seed, 0xf0d);
        let (levels, fan) = [(1, 4), (2, 2), (3, 2), (4, 1)][rng.below(4) as usize];
        let spec = Spec::tree(levels, fan, 2);
        let mut branch = tree(&spec, 0, &mut rng);
        if !branch.nodes.contains(&1) {
            branch.nodes.push(1);
        }
        let mut collective = Collective::all_reduce(9, 1, branch, Op::Sum, DType::U64, 5);
        collective.pbv_order = rng.below(2) == 0;
        let below: BTreeSet<u16> = collective.tree.preorder().iter().skip(1).map(|branch| branch.device).collect();
        collective.forwards = below.into_iter().filter(|_| rng.below(2) == 0).collect();
        let (system, _) = measured(&spec, &collective);
        for device in collective.tree.participants() {
            assert_eq!(node(&system, device).outcomes(9)[0].words, sums(&collective), "seed {seed}");
        }
        let forwards = |branch: &&&Branch| collective.forwards.contains(&branch.device);
        let all = collective.tree.preorder();
        handed_on += all.iter().filter(forwards).filter(|branch| !branch.engines.is_empty()).count();
        silent += all.iter().filter(forwards).filter(|branch| branch.nodes.is_empty()).count();
    }
    assert!(handed_on > 20 && silent > 5, "{handed_on} engines with some below, {silent} without a node");
}

#[test]
fn a_dead_node_behind_engines_that_hand_on_is_named() {
    let spec = Spec::regular(3, 2, 0x10, vec![(0, 1), (1, 2)]);
    let tree = Branch::leaf(0, [1, 2]).over([Branch::leaf(0x10, [0x11]).over([Branch::leaf(0x20, [0x21, 0x22])])]);
    let mut collective = Collective::all_reduce(3, 1, tree, Op::Sum, DType::U64, 2);
    collective.forwards = [0x10].into();
    let mut lab = Lab::new(spec, std::slice::from_ref(&collective));
    for (device, record) in &mut lab.tables.engines {
        (record.timeout, record.retries) = (if device.0 == 0 { 9000 } else { 1000 }, 1);
    }
    lab.set_up(std::slice::from_ref(&collective));
    lab.join(&collective, |device| {
        let task = if device == 0x22 { TaskTime::Never } else { TaskTime::Fixed(9) };
        (vec![1 << (device & 0xf), 1], task)
    });
    lab.send(1, SendCondition::At(SET_UP), [collective.command(1)]);
    let mut system = lab.build();
    run(&mut system, 1_000_000).unwrap();
    assert_eq!(missing(node(&system, 1)), [0x22]);
    for device in [1, 2, 0x11, 0x21] {
        let outcome = &node(&system, device).outcomes(3)[0];
        assert_eq!((outcome.error, &outcome.words[..]), (Some(Status::TimedOut), &[2 + 4 + 2 + 2, 4][..]));
    }
}

fn document(text: &str) -> Document {
    let loaded =
        load_text("handed-on", text, Path::new(""), "handed-on", &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let document = watershed::scenario::run::run(&loaded, &RunOptions::default()).unwrap().document;
    let failed: Vec<_> = document.checks.iter().filter(|check| !check.passed).collect();
    assert!(failed.is_empty(), "{failed:?}\n{text}");
    document
}

#[test]
fn lost_frames_are_made_up_for_where_responses_are_handed_on() {
    // At a switch in the middle that is a frame on each link and way; where that takes a retry and its answer too, somebody
    // is reported missing.
    let (mut after_retry, mut incomplete, mut runs) = (0, 0, 0);
    for nth in 0..4 {
        for at in ["s0", "s1", "s2", "s3", "s3.node1"] {
            let document = document(&format!(
                "family = \"pbv\"\n[topology]\nkind = \"mesh\"\nsize = [4]\nconcentration = 2\n\
                 [pbv.setup]\nconfiguration = \"side-port\"\n[pbv.engine]\ntimeout_cycles = 400\nretries = 3\n\
                 [[pbv.collective]]\nelements = 2\norder = \"pbv\"\nforwards = [\"all\"]\nstart_cycle = 3000\n\
                 [[pbv.fault]]\neffect = \"drop\"\nat = \"{at}\"\nfrom_cycle = 3000\nnth = {nth}\n"
            ));
            let outcomes = document.pbv.unwrap().outcomes;
            assert_eq!(outcomes.silent + outcomes.open, 0, "{at} {nth}: {}", outcomes.words());
            after_retry += outcomes.after_retry;
            incomplete += outcomes.incomplete;
            runs += 1;
        }
    }
    assert!(after_retry > runs / 4 && incomplete <= 2, "{after_retry} and {incomplete} of {runs}");
}

#[test]
fn barriers_multicasts_and_groups_work_where_responses_are_handed_on() {
    for forwards in ["", "forwards = [\"all\"]", "forwards = [\"s1\"]", "forwards = [\"s2\", \"s3\"]"] {
        let document = document(&format!(
            "family = \"pbv\"\n[topology]\nkind = \"mesh\"\nsize = [4]\nconcentration = 3\n\
             [[pbv.collective]]\nkind = \"barrier\"\nexcept = [3, 4, 5]\nrounds = 3\nrearm = true\n{forwards}\n\
             [[pbv.collective]]\nkind = \"multicast\"\nelements = 3\nrounds = 3\n{forwards}\n\
             [[pbv.collective]]\nkind = \"inter-group-barrier\"\ngroups = [[0, 10], [1, 5, 9], [2, 4, 6, 11]]\nrounds = 2\n\
             {forwards}\n[[pbv.collective]]\nop = \"sum\"\nelements = 40\nrounds = 2\ndata = {{ random = \"mixed\" }}\n{forwards}\n"
        ));
        let pbv = document.pbv.unwrap();
        assert_eq!(pbv.outcomes.complete, 3 + 3 + 3 * 2 + 2, "{forwards}: {}", pbv.outcomes.words());
    }
}
