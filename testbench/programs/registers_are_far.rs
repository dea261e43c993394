//! Accesses to configuration registers take the crossbar and the way to their switch, both ways; to another switch they go as
//! packets, meet traffic and keep their order (H-CFG-1).

use std::fmt::Write;

use crate::sets;
use crate::support::{die, load, pass, run_with};
use watershed::scenario::result::Document;
use watershed::scenario::run::{RunOptions, run};
use watershed::scenario::why::{Kind, WhyQuery};

/// The short-cut of accesses that use no channel.
const OUT_OF_BAND: &str = "core.register_access='out-of-band'";

/// The first report of a core.
fn reported(document: &Document, core: u64) -> u64 {
    let programs = document.programs.as_ref().expect("programs");
    let core = programs.cores.iter().find(|of| of.core == core).expect("the core ran");
    u64::from_str_radix(core.reports[0].value.trim_start_matches("0x"), 16).expect("a hexadecimal number")
}

/// A program of a core that reports the cycles of an access, and more tables.
fn measured_by(core: u64, access: &str, more: &str) -> String {
    die(&format!(
        "[[multicast]]\nid = 1\nsource = 0\nreceivers = [1]\n[[program]]\ncores = [{core}]\ntext = '''\nmov r3, %cycle\n{access}\n\
         mov r4, %cycle\nsub r5, r4, r3\nsub r5, r5, 1\nreport r5\n'''\n{more}"
    ))
}

/// The same of core 0.
fn measured(access: &str, more: &str) -> String {
    measured_by(0, access, more)
}

/// Cycles that core 0 takes for an access to a register of a switch.
fn access(access: &str, sets: &[String]) -> u64 {
    reported(&pass(&measured(access, ""), sets), 0)
}

/// The request register I7 of a switch of the die for id 0, which nobody uses: switches are numbered along the row.
fn register(switch: u64) -> u64 {
    0x2000_0000_0000_0038 + (switch << 24)
}

/// Other switches, and the links that lead there from core 0.
const OTHERS: [(u64, u64); 6] = [(1, 1), (3, 1), (4, 1), (5, 2), (12, 3), (15, 4)];

#[test]
fn a_register_of_the_own_switch_is_one_crossbar_and_one_link_away() {
    for (xbar, local) in [(1u64, 1u64), (10, 1), (3, 7)] {
        let set = sets!["core.xbar_cycles={xbar}"; "link.local_latency_cycles={local}"];
        let own = register(0);
        for what in [format!("load r1, [{own:#x}]"), format!("store [{own:#x}], 4")] {
            assert_eq!(access(&what, &set), 2 * (xbar + local), "{what}");
        }
    }
}

#[test]
fn an_access_that_meets_nobody_takes_the_cycles_of_two_packets() {
    for (xbar, local, latency, stages) in [(1, 1, 5, 2), (10, 1, 25, 1), (3, 7, 1, 4), (2, 2, 40, 3)] {
        let set = sets![
            "core.xbar_cycles={xbar}"; "link.local_latency_cycles={local}"; "link.latency_cycles={latency}";
            "switch.pipeline_stages={stages}"
        ];
        for (switch, links) in OTHERS {
            // The head flit of a packet: the two local links, the switches and the links between them, the edge at the end.
            let way = 2 * local + (links + 1) * stages + links * latency + 1;
            let to = register(switch);
            // Two flits of a load and two of its answer; three of a store and one of its answer.
            for what in [format!("load r1, [{to:#x}]"), format!("store [{to:#x}], 4")] {
                assert_eq!(access(&what, &set), 2 * xbar + 2 * way + 2, "{what} {set:?}");
            }
        }
    }
}

#[test]
fn a_narrow_link_takes_longer_for_each_flit() {
    let load = |bits: u64| {
        access(
            &format!("load r1, [{:#x}]", register(4)),
            &sets!["link.width_bits={bits}"; "link.local_width_bits={bits}"],
        )
    };
    // The link between the switches and the two local ones: a flit of 64 bits takes so many cycles on each.
    let (wide, narrow) = (load(64), load(16));
    assert_eq!(narrow - wide, 2 * (3 * 3 + 3), "three links, and the second flit behind the first one, both ways");
}

#[test]
fn out_of_band_an_access_takes_the_links_and_nothing_else() {
    let load = |switch: u64, latency: u64| {
        access(&format!("load r1, [{:#x}]", register(switch)), &sets!["link.latency_cycles={latency}"; "{OUT_OF_BAND}"])
    };
    for (switch, steps) in OTHERS {
        assert_eq!(load(switch, 25) - load(switch, 5), 2 * 20 * steps, "switch {switch}");
        let through = (load(switch, 5) - load(0, 5)) / 2 - 5 * steps;
        assert_eq!(through % steps, 0, "each switch on the way takes the same");
        assert!((1..10).contains(&(through / steps)), "{through}");
    }
}

#[test]
fn accesses_wait_for_traffic_and_delay_it() {
    // Core 0 loads registers of the last tile again and again while everybody sends to its tile.
    let program = format!("again: load r1, [{:#x}]\nadd r2, r2, 1\nbne r2, 20, again", register(12));
    let traffic = "[[traffic]]\npattern = \"uniform\"\nrate = 0.7\npacket_flits = 4\nstop_cycle = 3000\n";
    let cycles = |more: &str, set: &[String]| reported(&pass(&measured(&program, more), set), 0);
    let alone = cycles("", &[]);
    let beside = cycles(traffic, &[]);
    assert!(beside > alone * 11 / 10, "{beside} beside traffic, {alone} alone");
    assert_eq!(cycles(traffic, &sets!["{OUT_OF_BAND}"]), cycles("", &sets!["{OUT_OF_BAND}"]));
    // The same packets arrive later when accesses are among them; out of band nobody notices.
    let latency = |set: &[String]| {
        let document = pass(&measured(&program, traffic), set);
        let traffic = &document.traffic[0];
        (traffic.packets, traffic.mean_latency_cycles.expect("packets arrived"))
    };
    let (packets, with) = latency(&[]);
    let (same, without) = latency(&sets!["{OUT_OF_BAND}"]);
    assert_eq!(packets, same);
    assert!(with > without, "{with} {without}");
}

#[test]
fn a_register_changes_when_the_request_is_there() {
    // Core 0 stores to the switch of core 4, three links away; core 4 looks at it after so many cycles.
    let to = register(12);
    let seen = |wait: u64| {
        let text = die(&format!(
            "[[multicast]]\nid = 1\nsource = 0\nreceivers = [1]\n[[program]]\ncores = [0]\ntext = '''\nstore [{to:#x}], 4\n'''\n\
             [[program]]\ncores = [4]\ntext = '''\ncompute {wait}\nload r1, [{to:#x}]\nreport r1\n'''\n"
        ));
        let set = sets!["link.latency_cycles=5"; "link.local_latency_cycles=1"; "switch.pipeline_stages=2"];
        reported(&pass(&text, &set), 4)
    };
    // Issued in cycle 0, it enters in cycle 1, and the last of its three flits is taken 2 + 4 * 2 + 3 * 5 + 1 + 2 cycles later. The
    // look is at the register two cycles after it was issued, and sees what stood there at the start of the cycle.
    let taken = 1 + 2 + 4 * 2 + 3 * 5 + 1 + 2;
    assert_eq!((seen(taken - 2), seen(taken - 1)), (0, 4));
}

#[test]
fn two_accesses_of_a_thread_to_one_place_keep_their_order() {
    let to = register(5);
    let mut program = String::new();
    for value in [4u64, 8, 0x10, 4, 0] {
        let _ = writeln!(program, "store [{to:#x}], {value}\nload r1, [{to:#x}]\nexpect r1, {value}");
    }
    let traffic = "[[traffic]]\npattern = \"uniform\"\nrate = 0.8\nstop_cycle = 2000\n";
    for set in [sets![], sets!["core.xbar_cycles=20"], sets!["{OUT_OF_BAND}"]] {
        pass(&measured(&program, traffic), &set);
    }
}

#[test]
fn a_core_has_as_many_accesses_under_way_as_it_may() {
    let total = |limit: u64| {
        let text = die(&format!(
            "[[multicast]]\nid = 1\nsource = 0\nreceivers = [1]\n[[program]]\ncores = [0]\nthreads = 4\ntext = '''\n\
             load r1, [{:#x}]\n'''\n",
            register(4)
        ));
        pass(&text, &sets!["core.register_accesses={limit}"]).cycles
    };
    let one = access(&format!("load r1, [{:#x}]", register(4)), &[]);
    // Four threads one after the other, two and two, all at once: these share the port of the core, two flits each.
    let at_once = total(4);
    assert!(at_once < one + 12, "{at_once} {one}");
    assert_eq!(total(64), at_once);
    let two = total(2);
    assert!(two > at_once + one / 2 && two < 2 * one + 12, "{two} {one} {at_once}");
    // The next request enters the crossbar when the answer before it does.
    let apart = total(1);
    assert!(apart >= 4 * (one - 1) && apart < 4 * one + 8, "{apart} {one}");
}

/// All cores load and store registers of all switches, with the shortest buffers, beside traffic with replies.
fn crowd(vcs: u64) -> String {
    let mut body = String::from("mov r1, %core\nagain: and r2, r1, 15\nmul r2, r2, 0x1000000\n");
    // The address is computed: nobody knows it before.
    let _ = writeln!(
        body,
        "add r2, r2, {:#x}\nload r3, [r2]\nadd r1, r1, 1\nadd r4, r4, 1\nbne r4, 24, again",
        register(0)
    );
    let _ = writeln!(body, "store [{:#x}], 0\nreport r4", register(9));
    die(&format!(
        "[switch]\npoint_to_point_buffer_flits = 1\npoint_to_point_vcs = {vcs}\n[core]\nregister_accesses = 4\n[[multicast]]\nid = 1\n\
         source = 0\nreceivers = [1]\n[[program]]\nthreads = 4\ntext = '''\n{body}'''\n[[traffic]]\npattern = \"uniform\"\nrate = 0.4\n\
         packet_flits = 3\nstop_cycle = 2000\n"
    ))
}

#[test]
fn accesses_of_everybody_to_everybody_end_with_buffers_of_a_flit() {
    for vcs in [1, 2, 4] {
        let document = pass(&crowd(vcs), &[]);
        let cores = document.programs.expect("programs").cores;
        assert!(cores.iter().all(|core| core.reports.len() == 4), "{vcs} channels");
    }
    let closed = crowd(2).replace("rate = 0.4", "injection = \"closed-loop\"\nwindow = 4");
    pass(&closed, &[]);
}

#[test]
fn skipping_and_threads_change_nothing() {
    let document = |options: &RunOptions<'_>| {
        let document = run_with(&crowd(2), &[], options).document;
        assert!(document.passed(), "{:#?}", document.checks);
        serde_json::to_string(&document).expect("a document")
    };
    let whole = document(&RunOptions::default());
    assert_eq!(document(&RunOptions { no_skip: true, ..RunOptions::default() }), whole);
    assert_eq!(document(&RunOptions { order_seed: Some(7), ..RunOptions::default() }), whole);
    for threads in 2..4 {
        assert_eq!(document(&RunOptions { threads, ..RunOptions::default() }), whole, "{threads} threads");
    }
}

#[test]
fn why_shows_configuration_as_a_part_of_its_own() {
    // Between two calls core 3 clears and writes a register of another switch that the tree does not need.
    let stores = format!("store [{0:#x}], 0\nload r1, [{0:#x}]\n", 0x2000_0000_0f00_0000u64);
    let text = |stores: &str| {
        die(&format!(
            "[[collective]]\nname = \"sum\"\nkind = \"allreduce\"\ncalled = true\nparticipants = [0, 1, 2, 3]\n[[collective]]\nname = \
             \"here\"\nkind = \"barrier\"\nid = 1\ncalled = true\nparticipants = [0, 1, 2, 3]\n[[program]]\ncores = [0, 1, 2, 3]\n\
             text = '''\n.random 0, 8, f64\nallreduce 0, 0, 0x4000, 8\nbarrier 1\nbne %core, 3, all\n{stores}all: barrier 1\n\
             allreduce 0, 0, 0x8000, 8\n'''\n"
        ))
    };
    let why = |stores: &str| {
        let loaded = load(&text(stores), &[]);
        let mut why =
            run(&loaded, &RunOptions { why: Some(WhyQuery::default()), ..RunOptions::default() }).unwrap().why;
        why.retain(|why| why.collective.starts_with("sum"));
        assert_eq!(why.len(), 2);
        for of in &why {
            assert_eq!(of.parts.iter().map(|part| part.to - part.from).sum::<u64>(), of.latency_cycles);
        }
        why
    };
    let cycles = |why: &watershed::scenario::why::Why| {
        why.by_kind().iter().find(|(of, _)| *of == Kind::Configuration).map_or(0, |(_, cycles)| *cycles)
    };
    let (plain, written) = (why(""), why(&stores));
    assert_eq!(plain.iter().map(cycles).sum::<u64>(), 0);
    let each = reported(&pass(&measured_by(3, &stores, ""), &[]), 3);
    // The account of the second call begins with the store; both accesses are in it, and what follows is what it was.
    assert_eq!((cycles(&written[0]), cycles(&written[1])), (0, each));
    let since = |why: &watershed::scenario::why::Why| why.since_last_contribution();
    assert_eq!(since(&written[1]), since(&plain[1]));
    let part = written[1].parts.iter().find(|part| part.kind == Kind::Configuration).expect("a part");
    assert!(part.place.contains("core3"), "{part:?}");
    assert_eq!(part.from, written[1].start_cycle);
}
