//! Programs write trees while others are called, claim or hold: conflict sets move (H-CLAIM-1, P-SW-1).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::campaign;
use crate::share;
use crate::support::{Draw, die, pass, ready, run_with};
use watershed::piuma::program::CONFIGURATION;
use watershed::piuma::{REQUEST, RESPONSE, Registers};
use watershed::scenario::result::Document;
use watershed::scenario::run::RunOptions;

const UNLIMITED: &str = "[memory]\nbandwidth_gbps = \"unlimited\"\n";

fn program(cores: &str, text: &str) -> String {
    format!("[[program]]\ncores = {cores}\ntext = '''\n{text}\n'''\n")
}

/// Every call has the oracle's bits; with every cycle simulated the same.
fn exact(text: &str) -> Document {
    let document = pass(text, &[]);
    let calls = &document.programs.as_ref().expect("programs").calls;
    assert!(calls.iter().all(|call| call.bit_exact == Some(true)), "{calls:?}");
    let every = run_with(text, &[], &RunOptions { no_skip: true, all_links: true, ..RunOptions::default() }).document;
    let json = |of: &Document| serde_json::to_string(of).unwrap();
    assert_eq!(json(&document), json(&every));
    document
}

/// A register that no tree has, as a flag: nothing that a claim could be asked for.
const SET: &str = "store [0x2000000000007038], 0x80";
const AWAIT: &str = "flag: load r9, [0x2000000000007038]\nbeq r9, 0, flag";

/// Cores 0 and 4 by way of core 2, and cores 1 and 2 by way of core 3, which share nothing.
const TREES: &str = "[switch]\ncollective_ids = 8\n[[collective]]\nname = \"x\"\nkind = \"allreduce\"\nid = 0\ncalled = true\nparticipants = [0, 4]\nroot = \"core2\"\n\
    [[collective]]\nname = \"y\"\nkind = \"allreduce\"\nid = 1\ncalled = true\nparticipants = [1, 2]\n\
    [collective.registers]\ncore1.request = { I7 = [10], I3 = [10] }\ncore1.response = { I10 = [3, 7] }\n\
    core2.request = { I7 = [2] }\ncore2.response = { I2 = [7] }\ncore3.request = { I2 = [3] }\ncore3.response = { I3 = [2] }\n";

/// Core 0 leads the tree of cores 1 and 2 by its own switch, over the link to the other tree's root.
const WRITES: &str = "store [0x2000000002001038], 8\nstore [0x2000000000001018], 4\nstore [0x2000000001001010], 0x400\n\
    store [0x2000000001001018], 0\nstore [0x2000000001001450], 0x84\nstore [0x2000000000001410], 8\n\
    store [0x2000000002001418], 0x80\nstore [0x2000000002001410], 0\n";

#[test]
fn a_tree_is_made_to_meet_one_that_is_half_called() {
    // Core 4 has called x long before core 0 writes y, which ends before core 0 calls x. Where x's words were in the network already, y
    // could not end, and x could not be called.
    let text = die(&(UNLIMITED.to_owned()
        + TREES
        + &program("[4]", "allreduce 0, 0, 0x8000, 200")
        + &program("[0]", &format!("compute 300\n{WRITES}{AWAIT}\nallreduce 0, 0, 0x8000, 200"))
        + &program("[1]", &format!("compute 1500\nallreduce 1, 0, 0x8000, 200\n{SET}"))
        + &program("[2]", "compute 1500\nallreduce 1, 0, 0x8000, 200")));
    let document = exact(&text);
    assert!(document.cycles < 3500, "{}", document.cycles);
    let wiring = ready(&text, &[]).claims.wiring;
    // They meet nobody before.
    let sets: Vec<(u16, u16)> = wiring.trees.iter().map(|tree| (tree.id, tree.set)).collect();
    assert_eq!(sets, [(0, 0), (1, 1)]);
}

#[test]
fn who_holds_goes_on_while_sets_move() {
    // x is at work when y is written and used: x takes the cycles that it takes with nobody beside it, y comes after it.
    let text = |uses: bool| {
        let y = if uses { "allreduce 1, 0, 0x8000, 10" } else { "" };
        die(&(TREES.to_owned()
            + &program("[0, 4]", "allreduce 0, 0, 0x8000, 900")
            + &program("[3]", &format!("compute 100\n{WRITES}{SET}"))
            + &program("[1, 2]", &format!("{AWAIT}\n{y}"))))
    };
    let (with, without) = (exact(&text(true)), exact(&text(false)));
    let calls = |of: &Document, name: &str| {
        let calls = of.programs.as_ref().expect("programs").calls.iter().filter(|call| call.collective == name);
        calls.map(|call| call.end_cycle.expect("it ended")).collect::<Vec<_>>()
    };
    let of_y = calls(&with, "y");
    assert_eq!(calls(&with, "x"), calls(&without, "x"));
    assert_eq!(of_y.len(), 1);
    assert!(of_y[0] > calls(&with, "x")[0], "{of_y:?}");
}

#[test]
fn an_id_that_nobody_may_write_pays_nothing() {
    let text = |rest: &str| {
        die(&(TREES.to_owned() + &program("[0, 4]", &format!(".equ FAR, 0x200\n{rest}\nallreduce 0, 0, 0x8000, 20"))))
    };
    let claims = |rest: &str| ready(&text(rest), &[]).claims.wiring.trees.len();
    // Addresses below every register: numbers, indices, counters, what a mask has cut.
    for rest in [
        "",
        "store [0x8000], 1",
        "mul r1, %core, 512\nstore [r1 + 8], 1",
        "again: store [r1 + FAR], r1\nadd r1, r1, 8\nblt r1, 80, again",
        "load r1, [8]\nand r2, r1, 0xff8\nstore [r2], 1",
        "store [0x2000000002000808], 0",
        "store [0x2000000002003038], 8",
    ] {
        assert_eq!(claims(rest), 0, "{rest}");
    }
    // The register of a tree, or any address.
    for rest in [
        "store [0x2000000002001038], 8",
        "store [0x2000000002000038], 8",
        "load r1, [8]\nstore [r1], 1",
        "mov r1, 1\nshl r1, r1, 61\nstore [r1 + 0x38], 1",
        "mov r1, 0x38\nstore [r1 + 0x2000000002001000], 1",
        "sub r1, r1, 8\nstore [r1], 1",
        "again: add r1, r1, r1\nadd r1, r1, 8\nblt r1, 80, again\nstore [r1], 1",
    ] {
        assert_eq!(claims(rest), 2, "{rest}");
    }
    // One id has nobody to meet.
    let one = die(&("[[collective]]\nkind = \"allreduce\"\nid = 1\ncalled = true\nparticipants = [1, 2]\n".to_owned()
        + &program("[1, 2]", "store [0x2000000002001038], 8\nhalt")));
    assert!(ready(&one, &[]).claims.wiring.is_empty());
}

/// Messages of core 1 for core 2, by core 3 until core 0 writes that they go by its own switch, beside calls of cores 0 and 4.
fn messages(depth: u32, source: &str, receiver: &str, rest: &str) -> String {
    let tree = "[[multicast]]\nid = 1\nsource = 1\nreceivers = [2]\n[multicast.registers]\ncore1.request = { I7 = [3] }\n\
        core3.request = { I3 = [2] }\ncore2.request = { I2 = [7] }\n";
    let writes = "store [0x2000000001001038], 4\nstore [0x2000000000001010], 8\nstore [0x2000000002001018], 0x80\n";
    let x = "[[collective]]\nname = \"x\"\nkind = \"allreduce\"\nid = 0\ncalled = true\nparticipants = [0, 4]\nroot = \"core2\"\n";
    die(&(format!("[core]\nmcast_queue_depth = {depth}\n{UNLIMITED}{x}{tree}{rest}")
        + &program("[0]", &format!("compute 600\n{writes}compute 900\nallreduce 0, 0, 0x8000, 300"))
        + &program("[4]", "allreduce 0, 0, 0x8000, 300")
        + &program("[1]", source)
        + &program("[2]", receiver)))
}

#[test]
fn messages_that_stand_keep_slots_when_their_tree_is_written() {
    // As many as the queue has slots stand at the receiver when the tree is written; as many more go over the new one.
    for depth in [1, 2, 5] {
        let send = |count: u32| "mcast.send 1, r1, 3, 8\nadd r1, r1, 1\n".repeat(count as usize);
        let source = format!("{}compute 1000\n{}", send(depth), send(3 * depth));
        let receiver = format!(
            "compute 3000\nagain: mcast.wait r1, r2, 1, 8\nexpect r1, r3\nadd r3, r3, 1\ncompute 50\nbne r3, {}, again",
            4 * depth
        );
        let document = exact(&messages(depth, &source, &receiver, ""));
        let by = document.links.all.as_ref().expect("all links");
        let flits = |name: &str| by.iter().find(|link| link.name == name).expect("a link").flits;
        assert!(flits("core1.P2 -> core0.P2") >= u64::from(3 * depth), "the new tree is used");
    }
}

#[test]
fn who_sends_without_a_multicast_of_its_own_is_refused() {
    // Core 0 leads its own messages to core 2, where only core 1 is a source of the id.
    let text = messages(4, "compute 5000", "compute 5000", "")
        .replace("compute 900", "store [0x2000000000001038], 8\nmcast.send 1, 5, 1, 8\ncompute 900");
    let text = text
        .replace("receivers = [2]", "receivers = [2, 0]")
        .replace("core3.request = { I3 = [2] }", "core3.request = { I3 = [2] }\ncore0.request = { I2 = [7] }")
        .replace("I7 = [3] }", "I7 = [2, 3] }");
    let document = run_with(&text, &[], &RunOptions::default()).document;
    let told = document.checks.iter().map(|check| check.detail.as_str()).collect::<Vec<_>>().join("\n");
    assert!(told.contains("end point 0 sends by id 1"), "{told}");
}

/// Registers of a collective's tree, by the address of a store.
fn registers(id: u32, cores: &[u64], root: u64) -> BTreeMap<u64, u64> {
    let text = die(&format!(
        "[switch]\ncollective_ids = 8\n[[collective]]\nkind = \"allreduce\"\nid = {id}\nparticipants = {cores:?}\nroot = \"core{root}\"\n"
    ));
    let tables = ready(&text, &[]).system.tables;
    let mut registers = BTreeMap::new();
    for switch in 0..tables.switches() {
        for (channel, port) in
            [REQUEST, RESPONSE].into_iter().flat_map(|of| (0..=tables.engine_port()).map(move |at| (of, at)))
        {
            let vector = tables.vector(switch, id as u16, channel, port);
            if vector != 0 {
                registers.insert(CONFIGURATION | Registers::vector_address(switch, id as u16, channel, port), vector);
            }
        }
    }
    registers
}

/// All cores wait for each other by registers of an id that no tree has: one a core, and one that core 0 sets.
fn meet(text: &mut [String], meeting: u16) {
    let there = |core: usize| CONFIGURATION | Registers::vector_address(0, 3 + meeting, REQUEST, core as u16);
    let go = CONFIGURATION | Registers::vector_address(0, 3 + meeting, RESPONSE, 0);
    for core in 1..text.len() {
        let _ = writeln!(
            text[core],
            "store [{:#x}], 0x80\ngo{meeting}: load r9, [{go:#x}]\nbeq r9, 0, go{meeting}",
            there(core)
        );
        let _ = writeln!(text[0], "w{meeting}_{core}: load r9, [{:#x}]\nbeq r9, 0, w{meeting}_{core}", there(core));
    }
    let _ = writeln!(text[0], "store [{go:#x}], 0x80");
}

/// Three ids on one plane, of which one is written in each round while another one is called by some and not by others; then all are
/// called in one order. A barrier on a plane of its own keeps the written one idle.
fn rounds(seed: u64) -> String {
    let mut draw = Draw(seed);
    let mut tables = format!(
        "seed = {seed}\n[switch]\ncollective_ids = 16\n[core]\noutstanding_calls = 8\n[topology]\nkind = \"die\"\n"
    );
    let mut trees: Vec<(Vec<u64>, BTreeMap<u64, u64>)> = Vec::new();
    for id in 0..3u32 {
        let mut cores = draw.subset(8);
        if cores.len() < 2 {
            cores = vec![u64::from(id), u64::from(id) + 4];
        }
        let root = draw.below(8);
        let _ = write!(
            tables,
            "[[collective]]\nname = \"c{id}\"\nkind = \"allreduce\"\nid = {id}\ncalled = true\nparticipants = {cores:?}\nroot = \"core{root}\"\n"
        );
        trees.push((cores.clone(), registers(id, &cores, root)));
    }
    let mut text = vec![".random 0, 64, f64\n".to_owned(); 8];
    for round in 0..3u64 {
        let (written, half) = (draw.below(3), draw.below(2));
        let half = (written + 1 + half) % 3;
        let mut order = [0u64, 1, 2];
        order.rotate_left(draw.below(3) as usize);
        let elements: Vec<u64> = (0..3).map(|_| 1 + draw.below(60)).collect();
        let call = |id: u64, blocks: bool| {
            let place = format!("{id}, 0, {}, {}", 0x8000 + (round * 8 + id) * 0x800, elements[id as usize]);
            if blocks { format!("allreduce {place}\n") } else { format!("allreduce.nb r{id}, {place}\n") }
        };
        let early: Vec<bool> = (0..8).map(|_| draw.below(2) == 0).collect();
        for core in 0..8usize {
            if early[core] && trees[half as usize].0.contains(&(core as u64)) {
                text[core] += &call(half, false);
            }
            let _ = writeln!(text[core], "compute {}", draw.below(300));
        }
        meet(&mut text, 2 * round as u16);
        let (cores, old) = &mut trees[written as usize];
        let new = registers(written as u32, cores, draw.below(8));
        let gone = old.keys().filter(|address| !new.contains_key(address)).map(|address| (*address, 0));
        for (address, value) in gone.chain(new.clone()) {
            let _ = writeln!(text[0], "store [{address:#x}], {value:#x}");
        }
        *old = new;
        meet(&mut text, 2 * round as u16 + 1);
        for core in 0..8usize {
            let mut waits = String::new();
            for id in order.into_iter().filter(|id| trees[*id as usize].0.contains(&(core as u64))) {
                let blocks = draw.below(2) == 0;
                let called = id == half && early[core];
                if !called {
                    let _ = write!(text[core], "compute {}\n{}", draw.below(200), call(id, blocks));
                }
                if called || !blocks {
                    let _ = writeln!(waits, "wait r{id}");
                }
            }
            text[core] += &waits;
        }
    }
    for (core, text) in text.iter().enumerate() {
        tables += &program(&format!("[{core}]"), text);
    }
    format!("family = \"piuma\"\n{tables}")
}

fn ends(seed: u64) -> Result<(), String> {
    let text = rounds(seed);
    let document = run_with(&text, &[], &RunOptions::default()).document;
    let calls = &document.programs.as_ref().expect("programs").calls;
    let exact = calls.iter().all(|call| call.bit_exact == Some(true));
    if document.passed() && exact { Ok(()) } else { Err(format!("seed {seed}: {:#?}\n{text}", document.checks)) }
}

/// Twenty-four seeds in `make soak`, a third of them in `make test`; some of them in every cycle.
#[test]
fn calls_in_one_order_end_whatever_is_written_between() {
    campaign::over(0..share::of(3, 24), ends);
    for seed in 0..share::of(3, 3) {
        exact(&rounds(seed));
    }
}

#[test]
#[ignore = "takes minutes: make soak"]
fn a_thousand_seeds_of_trees_written_between_calls_end() {
    campaign::over(campaign::asked(100..1100), ends);
}
