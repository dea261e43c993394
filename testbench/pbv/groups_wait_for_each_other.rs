//! Inter-group barriers: the members of one group go on when all of the others have arrived, whether their own group is
//! complete or not (B-CE-9, paragraph 135).

use std::path::Path;

use crate::support::{Lab, SET_UP};
use watershed::kernel::Rng;
use watershed::pbv::node::{Part, SendCondition, TaskTime, missing};
use watershed::pbv::packet::{Groups, Message, Status};
use watershed::pbv::plan::{Branch, Collective};
use watershed::pbv::system::{Spec, System, engine, node, run};
use watershed::scenario::load_text;
use watershed::scenario::run::RunOptions;

/// The tree over these members of a tree system, from switch 0 down; every switch is in it.
fn tree(spec: &Spec, switch: usize, members: &[u16]) -> Branch {
    let at = &spec.switches[switch];
    let below = spec.links.iter().filter(|link| link.0 == switch).map(|link| tree(spec, link.1, members));
    let below: Vec<Branch> = below.filter(|branch| !branch.participants().is_empty()).collect();
    Branch::leaf(at.device, at.nodes.iter().copied().filter(|node| members.contains(node))).over(below)
}

/// Runs an inter-group barrier from the source 1 so often; tasks take what `time` says.
fn barrier(
    spec: Spec,
    members: &[Vec<u16>],
    rounds: u32,
    timeout: u32,
    time: impl Fn(u16) -> TaskTime,
) -> (Vec<Collective>, System) {
    let trees = members.iter().map(|members| tree(&spec, 0, members)).collect();
    let groups = Collective::inter_group_barrier(7, 1, trees);
    let mut lab = Lab::new(spec, &groups);
    for (device, record) in &mut lab.tables.engines {
        (record.timeout, record.retries) = (if device.0 == 0 { 3 * timeout } else { timeout }, 1);
    }
    lab.set_up(&groups);
    for group in &groups {
        for device in group.tree.participants() {
            let mut part = Part::of(group.like(device, &lab.tables), Vec::new(), time(device));
            part.group = true;
            lab.node(device).join(part);
        }
        if !group.tree.participants().contains(&1) {
            let mut part = Part::of(group.like(1, &lab.tables), Vec::new(), TaskTime::Never);
            (part.watches, part.group) = (true, true);
            lab.node(1).join(part);
        }
    }
    let all = Groups { first: 7, count: members.len() as u8 };
    for round in 1..=rounds {
        let when = if round == 1 { SendCondition::At(SET_UP) } else { SendCondition::Arrived(all, round - 1) };
        lab.send(1, when, groups.iter().map(|group| group.command(round)));
    }
    let mut system = lab.build();
    run(&mut system, 10_000_000).unwrap();
    (groups, system)
}

/// When the members of a group met in a run, and when they went on.
fn times(system: &System, group: &Collective, round: usize) -> Vec<(u64, u64)> {
    let outcome = |device: u16| {
        let outcomes = node(system, device).outcomes(group.cc_id);
        assert_eq!(outcomes[round].error, None);
        assert_eq!(outcomes[round].run, round as u32 + 1);
        (outcomes[round].met, outcomes[round].cycle)
    };
    group.tree.participants().into_iter().map(outcome).collect()
}

#[test]
fn a_group_goes_on_when_the_others_are_there_over_many_shapes_and_sizes() {
    let (mut ahead_of_own, mut without_waiting) = (0, 0);
    for seed in 0..60 {
        let mut rng = Rng::new(seed, 0x6709);
        let (levels, fan) = [(0, 0), (1, 3), (2, 2), (3, 1), (1, 6)][rng.below(5) as usize];
        let nodes = 3 + rng.below(4) as usize;
        let spec = Spec::tree(levels, fan, nodes);
        let mut all: Vec<u16> = spec.switches.iter().flat_map(|switch| switch.nodes.iter().copied()).collect();
        rng.shuffle(&mut all);
        let count = 2 + rng.below(3) as usize;
        // Every group has a member; the others go anywhere, or take no part.
        let mut members: Vec<Vec<u16>> = (0..count).map(|k| vec![all[k]]).collect();
        for &device in &all[count..] {
            let to = rng.below(count as u64 + 1) as usize;
            if to < count {
                members[to].push(device);
            }
        }
        let most = 1 + rng.below(600);
        let (groups, system) =
            barrier(spec, &members, 4, 0, |_| TaskTime::Uniform { from: 0, to: most, seed: seed + 100 });
        assert!(system.at_rest(), "seed {seed}");
        for round in 0..4 {
            let of: Vec<Vec<(u64, u64)>> = groups.iter().map(|group| times(&system, group, round)).collect();
            for (k, group) in of.iter().enumerate() {
                let others = of.iter().enumerate().filter(|(other, _)| *other != k).flat_map(|(_, group)| group);
                let last = others.map(|&(met, _)| met).max().unwrap();
                let own = group.iter().map(|&(met, _)| met).max().unwrap();
                for &(met, on) in group {
                    assert!(on > last && on >= met, "seed {seed}: went on in {on}, the others met until {last}");
                    // Not much later than the longest way up and down takes.
                    assert!(on <= last.max(met) + 400, "seed {seed}: {on} is long after {last} and {met}");
                    ahead_of_own += u32::from(on < own);
                    without_waiting += u32::from(on == met);
                }
            }
        }
        for group in &groups {
            for device in group.tree.participants() {
                assert_eq!(node(&system, device).outcomes(group.cc_id).len(), 4);
            }
        }
    }
    // Both happen often: who goes on before his own group is complete, and who comes so late that he need not wait.
    assert!(ahead_of_own > 50 && without_waiting > 50, "{ahead_of_own} {without_waiting}");
}

#[test]
fn only_the_others_wait_for_a_late_member() {
    // Two boards: 1, 2 and 0x41 wait for 3, 0x42 and 0x43, of which the last is late.
    let spec = Spec::tree(1, 1, 3);
    let members = [vec![1, 2, 0x41], vec![3, 0x42, 0x43]];
    let late = 5000;
    let time = |device| TaskTime::Fixed(if device == 0x43 { late } else { 10 });
    let (groups, system) = barrier(spec, &members, 1, 0, time);
    let [first, second] = [0, 1].map(|k| times(&system, &groups[k], 0));
    assert!(first.iter().all(|&(met, on)| met < SET_UP + 200 && on > SET_UP + late));
    assert!(second[..2].iter().all(|&(_, on)| on < SET_UP + 300), "{second:?}");
    assert_eq!(second[2].0, second[2].1, "the late one finds everybody there");
    // Each group is told once by its own context; the source hears that both are complete.
    let log = engine(&system, 0).log.events();
    let reports = |cc_id: u16| {
        log.iter().filter(|e| !e.received && e.message == Message::Partial && e.cc_id == cc_id && e.to == 1).count()
    };
    assert_eq!([reports(7), reports(8)], [1, 1]);
}

#[test]
fn a_dead_member_is_named_and_only_the_others_get_an_error() {
    let members = [vec![1, 2, 0x41], vec![3, 0x42, 0x43], vec![0x44]];
    let time = |device| if device == 0x42 { TaskTime::Never } else { TaskTime::Fixed(10) };
    let (groups, system) = barrier(Spec::tree(1, 1, 4), &members, 1, 1000, time);
    assert_eq!(missing(node(&system, 1)), [0x42]);
    for (group, error) in groups.iter().zip([Some(Status::TimedOut), None, Some(Status::TimedOut)]) {
        for device in group.tree.participants().into_iter().filter(|&device| device != 0x42) {
            assert_eq!(node(&system, device).outcomes(group.cc_id)[0].error, error, "{device:#x}");
        }
    }
    assert!(node(&system, 0x42).outcomes(8).is_empty());
}

#[test]
fn frames_that_are_lost_are_made_up_for_or_the_round_is_reported() {
    // Every frame of the barrier is lost once on some link or other: commands, contributions, partials, satisfied. Of a
    // satisfied message that is lost nobody but the one that waits for it knows: he gives up when the next round begins.
    let (mut after_retry, mut incomplete, mut runs) = (0, 0, 0);
    for nth in 0..5 {
        for at in ["s0", "s1", "leaf0", "leaf2", "top"] {
            let text = format!(
                "family = \"pbv\"\n[topology]\nkind = \"tree\"\nbranching = [2, 2]\nroots = 1\n\
                 [pbv.setup]\nconfiguration = \"side-port\"\n[pbv.engine]\ntimeout_cycles = 500\nretries = 3\n\
                 [[pbv.collective]]\nkind = \"inter-group-barrier\"\ngroups = [[0, 1, 2], [3, 4]]\nrounds = 2\n\
                 start_cycle = 3000\nmaster = \"top\"\n\
                 [[pbv.fault]]\neffect = \"drop\"\nat = \"{at}\"\nfrom_cycle = 3000\nnth = {nth}\n"
            );
            let loaded = load_text("groups", &text, Path::new(""), "groups", &[]).unwrap();
            let document = watershed::scenario::run::run(&loaded, &RunOptions::default()).unwrap().document;
            let failed: Vec<_> = document.checks.iter().filter(|check| !check.passed).collect();
            assert!(failed.is_empty(), "{at} {nth}: {failed:?}");
            let outcomes = document.pbv.unwrap().outcomes;
            assert_eq!(outcomes.silent + outcomes.open, 0, "{at} {nth}: {}", outcomes.words());
            after_retry += outcomes.after_retry;
            incomplete += outcomes.incomplete;
            runs += 1;
        }
    }
    assert!(after_retry > runs / 3, "{after_retry} rounds of {runs} runs needed a retry");
    assert!(incomplete < runs / 5, "{incomplete} rounds of {runs} runs were given up");
}
