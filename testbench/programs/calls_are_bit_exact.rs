//! Collectives that programs call: right bits for every call, blocking and not, late or early (P-AR-1, P-AR-3).

use std::fmt::Write;

use crate::sets;
use crate::support::{die, pass, run_with};
use watershed::scenario::result::Outcome;
use watershed::scenario::run::RunOptions;

const CALLS: &str = include_str!("../piuma/programs-collectives.toml");

#[test]
fn every_call_of_every_kind_is_the_oracle_s() {
    let document = pass(CALLS, &[]);
    let calls = document.programs.expect("programs").calls;
    let count = |name: &str| calls.iter().filter(|call| call.collective == name).count();
    assert_eq!([count("sum"), count("largest"), count("tell"), count("all-here")], [2, 1, 1, 2]);
    assert!(calls.iter().all(|call| call.bit_exact == Some(true) && call.end_cycle.is_some()));
}

#[test]
fn the_order_of_evaluation_and_skipping_change_nothing() {
    let json = |options: &RunOptions<'_>| {
        let document = run_with(CALLS, &[], options).document;
        assert!(document.passed(), "{:?}", document.checks);
        (document.cycles, serde_json::to_string(&document.programs).expect("JSON"))
    };
    let plain = json(&RunOptions::default());
    for seed in 0..3 {
        assert_eq!(json(&RunOptions { order_seed: Some(seed), ..RunOptions::default() }), plain);
    }
    assert_eq!(json(&RunOptions { no_skip: true, ..RunOptions::default() }), plain);
}

/// A broadcast and a multicast that share a channel: when the late core has called, it takes a flit of each in one cycle.
const SHARED: &str = r#"
family = "piuma"
seed = 5
topology = { kind = "die" }

[[collective]]
name = "tell"
kind = "broadcast"
dtype = "i64"
id = 2
source = 5
called = true

[[multicast]]
id = 3
source = 0
receivers = [1, 2, 3, 4, 6, 7]

[[program]]
cores = [0]
text = """
    broadcast.nb r5, 2, 0x6000, 0x6000, 200
again:
    mcast.send 3, r1, %thread, 8
    add r1, r1, 1
    blt r1, 40, again
    wait r5
"""

[[program]]
cores = [5]
text = """
    .random 0x6000, 200, i64
    broadcast 2, 0x6000, 0x6000, 200
"""

[[program]]
cores = [1, 2, 3, 4, 6, 7]
text = """
    bne %core, 1, call
    compute 100
call:
    broadcast.nb r5, 2, 0x6000, 0x6000, 200
again:
    mcast.wait r1, r2, 3, 8
    add r3, r3, 1
    blt r3, 40, again
    wait r5
    report r3
"""
"#;

#[test]
fn flits_that_an_end_point_takes_at_once_give_their_credits_in_order() {
    let json = |order_seed: Option<u64>| {
        let options = RunOptions { order_seed, ..RunOptions::default() };
        let document = run_with(SHARED, &[], &options).document;
        assert!(document.passed(), "{:?}", document.checks);
        (document.cycles, serde_json::to_string(&document.programs).expect("JSON"))
    };
    let plain = json(None);
    for seed in 0..12 {
        assert_eq!(json(Some(seed)), plain, "order seed {seed}");
    }
}

/// Layers of a backward pass: each computes, then its gradients are reduced.
fn layers(blocking: bool) -> String {
    let mut text = String::from(".random 0, 1024, f32\n");
    let mut waits = String::new();
    for (layer, (elements, compute)) in [(512, 50), (256, 300), (128, 600), (64, 900)].into_iter().enumerate() {
        let _ = writeln!(text, "compute {compute}");
        let (from, to) = (layer * 256, 0x8000 + layer * 4096);
        if blocking {
            let _ = writeln!(text, "allreduce 0, {from}, {to}, {elements}");
        } else {
            let _ = writeln!(text, "allreduce.nb r{layer}, 0, {from}, {to}, {elements}");
            let _ = writeln!(waits, "wait r{layer}");
        }
    }
    die(&format!(
        "[[collective]]\nkind = \"allreduce\"\ndtype = \"f32\"\ncalled = true\n[[program]]\ntext = '''\n{text}{waits}report %cycle\n'''\n"
    ))
}

#[test]
fn all_reduces_overlap_with_later_computation() {
    let end = |text: &str| {
        let document = pass(text, &[]);
        let programs = document.programs.expect("programs");
        assert_eq!(programs.calls.len(), 4);
        programs.cores.iter().flat_map(|core| &core.reports).map(|report| report.cycle).max().expect("reports")
    };
    let (blocking, overlapped) = (end(&layers(true)), end(&layers(false)));
    // The computation takes 1850 cycles; only the last layer's reduction stands out.
    assert!(overlapped < blocking - 1000, "{overlapped} {blocking}");
    assert!((1850..1850 + 250).contains(&overlapped), "{overlapped}");
}

#[test]
fn results_wait_in_the_network_for_a_core_that_is_late() {
    // Core 7 takes no part in adding but gets the broadcast; it calls long after the source has sent.
    let text = die(
        "[[collective]]\nkind = \"broadcast\"\ndtype = \"i64\"\nsource = 0\ncalled = true\n[[program]]\ncores = [0, 1, 2, 3, 4, 5, 6]\n\
         text = '''\n.random 0, 500, i64\nbroadcast 0, 0, 0x4000, 500\nreport %cycle\n'''\n[[program]]\ncores = [7]\ntext = '''\n\
         compute 3000\nbroadcast 0, 0, 0x4000, 500\nload r1, [0x4008]\nreport r1\n'''\n",
    );
    let document = pass(&text, &sets!["memory.write_latency_cycles=3"]);
    let calls = document.programs.expect("programs").calls;
    assert!(calls[0].end_cycle > Some(3500) && calls[0].bit_exact == Some(true));
}

#[test]
fn a_wrong_call_ends_the_run_and_says_where() {
    for (line, why) in [
        ("allreduce 1, 0, 0, 4", "no part in a collective with id 1"),
        ("reduce 0, 0, 0, 4", "collective id 0 is a allreduce, not a reduce"),
        ("allreduce 0, 4, 0, 4", "are not in local memory"),
        ("allreduce 0, 0, 0, 0", "of no elements"),
        ("load r1, [0x3000000000000028]", "there is no MSR"),
        ("load r1, [0x5000000000000000]", "nothing is there"),
        ("store [0x2000000000000410], 0x80 ; fine\nload r1, [0x2ff0000000000000]", "no register"),
        ("store [12], 1", "not a multiple of 8"),
        ("mcast.send 2, 1, 1, 8", "no multicast tree 2"),
        ("iret", "outside of a handler"),
        ("test r1, 3", "there is no call 3"),
        ("expect 1, 2", "0x1 is not 0x2"),
    ] {
        let text = die(&format!(
            "[[collective]]\nkind = \"allreduce\"\ncalled = true\n[[program]]\ncores = [2]\ntext = '''\n{line}\n'''\n"
        ));
        let document = run_with(&text, &[], &RunOptions::default()).document;
        let failed: Vec<_> = document.checks.iter().filter(|check| !check.passed).collect();
        assert!(
            failed.iter().any(|check| check.detail.contains("core2, thread 0 on MTP 0") && check.detail.contains(why)),
            "{line}: {:?}",
            document.checks
        );
    }
}

#[test]
fn programs_write_configuration_registers_themselves() {
    // No register of the tree is set before the run: core 0 writes those of all switches, then core 1 sends.
    let text = die("[[multicast]]\nid = 0\nsource = 1\nreceivers = [0]\n[[program]]\ncores = [1]\ntext = '''\n\
         .equ CORE1, 0x2000000001000000\nload r1, [CORE1 + 0x38]      ; I7\nexpect r1, 4\n\
         store [CORE1 + 0x38], 8         ; to core 3 instead, by the Y port\nload r1, [CORE1 + 0x38]\nexpect r1, 8\n\
         store [0x2000000003000018], 4   ; core 3, I3: on to core 2 by X\nstore [0x2000000002000010], 8\n\
         store [0x2000000000000018], 128\nmcast.send 0, 99, 1, 8\n'''\n\
         [[program]]\ncores = [0]\ntext = \"mcast.wait r1, r2, 0, 8\\nreport r1\"\n");
    let document = pass(&text, &[]);
    let links = document.links.all.expect("all links");
    let flits = |name: &str| links.iter().find(|link| link.name == name).map_or(0, |link| link.flits);
    // The message, and where a store to another switch went as well its three flits.
    assert_eq!(flits("core1.P3 -> core3.P3"), 1 + 3);
    assert_eq!(flits("core3.P2 -> core2.P2"), 1);
    assert_eq!(flits("core2.P3 -> core0.P3"), 1);
    assert_eq!(flits("core1.P2 -> core0.P2"), 3);
}

#[test]
fn programs_of_calls_may_take_longer_than_the_watchdog_waits() {
    let text = die(
        "[[collective]]\nname = \"sum\"\nkind = \"allreduce\"\ndtype = \"f64\"\ncalled = true\n[[program]]\ntext = '''\n\
         .random 0, 400, f64\nmov r1, 0\nmov r5, 12\nloop: allreduce 0, 0, 0x8000, 400\nadd r1, r1, 1\nbne r1, r5, loop\n'''\n",
    );
    // The watchdog looks every 1,024 cycles.
    let document = pass(&text, &sets!["limits.watchdog_cycles=900"]);
    assert!(document.cycles > 4096, "{} cycles are too few to see it", document.cycles);
    assert_eq!(document.programs.expect("programs").calls.len(), 12);
}

#[test]
fn calls_that_block_each_other_are_seen_beside_traffic_that_flows() {
    // Each half of the die waits in one call for the other half, which waits in the other call.
    let text = die("[[collective]]\nname = \"a\"\nkind = \"allreduce\"\nid = 0\ndtype = \"f64\"\ncalled = true\n\
         [[collective]]\nname = \"b\"\nkind = \"allreduce\"\nid = 1\ndtype = \"f64\"\ncalled = true\n\
         [[program]]\ncores = [0, 1, 2, 3]\ntext = '''\nallreduce 0, 0, 0x8000, 40\nallreduce 1, 0, 0x8000, 40\n'''\n\
         [[program]]\ncores = [4, 5, 6, 7]\ntext = '''\nallreduce 1, 0, 0x8000, 40\nallreduce 0, 0, 0x8000, 40\n'''\n\
         [[traffic]]\npattern = \"uniform\"\nrate = 0.05\n");
    let set = sets!["limits.watchdog_cycles=3000"; "limits.max_cycles=200000"];
    let document = run_with(&text, &set, &RunOptions::default()).document;
    assert_eq!(document.outcome, Outcome::Deadlock);
    assert!(document.cycles < 10_000, "seen in cycle {}", document.cycles);
}
