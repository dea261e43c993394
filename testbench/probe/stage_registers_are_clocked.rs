//! The stage registers of adder trees in waveforms hold, cycle by cycle, what a tree holds that is clocked register by register
//! (H-PIPE-1): [`arith::Tree`](watershed::arith::Tree) and [`QuadPipe`](watershed::arith::QuadPipe) are stepped from the operands in
//! the waveform, and every register of every stage is compared. Skipping idle blocks changes no byte of the file. Vectors and rounds are
//! shorter in `make test` than in `make soak`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use watershed::arith::DType;
use watershed::probe::wave_in::WaveFile;
use watershed::scenario::config::Wave;
use watershed::scenario::load_text;
use watershed::scenario::run::{RunOptions, WaveOptions, run};

use crate::player::Player;
use crate::share;
use crate::stage_reference::{QuadReference, TreeReference};

/// Runs a scenario with and without skipping; the waveforms must be the same file. Returns it.
fn traced(folder: &Path, text: &str, globs: &[&str], name: &str) -> PathBuf {
    let skipped = written(folder, text, globs, name, false);
    // Equal bytes are promised of VCD files.
    if name.contains("vcd") {
        let all = written(folder, text, globs, &format!("all-{name}"), true);
        assert!(fs::read(&skipped).unwrap() == fs::read(all).unwrap(), "skipping idle blocks changes the waveform");
    }
    skipped
}

/// Runs a scenario and writes a waveform.
fn written(folder: &Path, text: &str, globs: &[&str], name: &str, no_skip: bool) -> PathBuf {
    let loaded = load_text("test", text, Path::new("."), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let path = folder.join(name);
    let signals = globs.iter().map(ToString::to_string).collect();
    let wave = WaveOptions::of(path.clone(), Wave { signals, ..Wave::default() });
    let result = run(&loaded, &RunOptions { wave: Some(&wave), no_skip, ..RunOptions::default() }).unwrap();
    assert!(result.document.passed(), "{:?}", result.document.checks);
    path
}

/// What a comparison has seen.
#[derive(Debug, Default)]
struct Seen {
    cycles: u64,
    taken: u64,
    selects: usize,
}

/// Steps trees, or lone units, beside those of these scopes.
fn compare(player: &mut Player, scopes: &[String], alone: bool, tag: &[&'static str]) -> Seen {
    assert!(!scopes.is_empty());
    let mut references: Vec<TreeReference> =
        scopes.iter().map(|scope| TreeReference::new(player, scope, alone, tag)).collect();
    let mut cycle = 0;
    loop {
        let more = player.go_to(cycle);
        for reference in &mut references {
            reference.clock(player);
            reference.expected.compare(player, cycle);
        }
        if !more {
            break;
        }
        cycle += 1;
    }
    Seen {
        cycles: cycle,
        taken: references.iter().map(|reference| reference.taken).sum(),
        selects: references.iter().map(|reference| reference.selects.len()).max().unwrap_or(0),
    }
}

/// Eight collectives on planes of their own go through the same engines: operations and types mix from cycle to cycle, gaps come
/// from memories, blocked outputs from short buffers and few places for results.
fn piuma(shape: &str, elements: u64, stages: u8) -> String {
    let mut text = format!(
        "family = \"piuma\"\nseed = 5\n[topology]\n{shape}\n[switch]\ncollective_ids = 8\ncollective_buffer_flits = 2\n\
         [switch.ceng]\nstages = {stages}\nresult_slots = 7\n[memory]\nbandwidth_gbps = 70.3\n"
    );
    let selects = [
        ("sum", "f64", "nearest-even", "mixed"),
        ("prod", "f32", "down", "bits"),
        ("min", "bf16", "nearest-even", "bits"),
        ("sum", "f16", "up", "mixed"),
        ("max", "i32", "nearest-even", "bits"),
        ("prod", "i64", "nearest-even", "bits"),
        ("xor", "u32", "nearest-even", "bits"),
        ("sum", "fp8_e4m3", "toward-zero", "bits"),
    ];
    for (id, (op, dtype, round, data)) in selects.iter().enumerate() {
        let lanes = dtype.parse::<DType>().unwrap().lanes();
        let start = id * 37;
        let round = if dtype.contains('f') { format!("round = \"{round}\"\n") } else { String::new() };
        let _ = write!(
            text,
            "[[collective]]\nname = \"c{id}\"\nkind = \"allreduce\"\nid = {id}\nplane = {id}\nop = \"{op}\"\ndtype = \"{dtype}\"\n{round}\
             elements = {}\nstart_cycle = {start}\ndata = {{ random = \"{data}\" }}\n",
            elements * u64::from(lanes)
        );
    }
    text
}

#[test]
fn a_ceng_tree_holds_what_a_clocked_tree_holds() {
    let folder = tempfile::tempdir().unwrap();
    let (mesh, die) = ("kind = \"mesh\"\nsize = [3, 3]", "kind = \"die\"");
    for (name, shape, engine, stages, elements) in [
        ("long.vcd", mesh, "s1_1", 3, share::of(36, 3_600)),
        ("short.vcd", mesh, "s1_1", 4, share::of(8, 300)),
        ("six.fst", die, "{sw4,core0}", 6, share::of(8, 150)),
    ] {
        let glob = format!("**.{engine}.switch.ceng.tree.**");
        let text = piuma(shape, elements, stages);
        let path = if name.starts_with("long") {
            written(folder.path(), &text, &[&glob], name, false)
        } else {
            traced(folder.path(), &text, &[&glob], name)
        };
        let mut player = Player::new(WaveFile::open(&path).unwrap());
        let scopes = player.scopes(".operands.present");
        let seen = compare(&mut player, &scopes, false, &["id", "seq"]);
        let engines = scopes.len() as u64;
        // Memories read and write 16 words for an element of all; the last ones are written when the tree is empty.
        assert!(seen.cycles >= elements * 1000 / 72 && seen.selects == 8, "{seen:?}");
        assert_eq!(seen.taken, engines * 8 * elements);
    }
}

/// Wide accumulation: narrow lanes are widened at the end points, and the tree has the registers of the accumulator's type.
#[test]
fn a_wide_accumulation_shows_wide_lanes() {
    let elements = share::of(8, 2_000);
    let text = format!(
        "family = \"piuma\"\nseed = 3\n[topology]\nkind = \"mesh\"\nsize = [4, 4]\n[[collective]]\nkind = \"allreduce\"\n\
         dtype = \"bf16\"\naccumulate = \"f32\"\nelements = {elements}\ndata = {{ random = \"mixed\" }}\n"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = traced(folder.path(), &text, &["**.tree.**"], "wide.vcd");
    let mut player = Player::new(WaveFile::open(&path).unwrap());
    let scopes = player.scopes(".operands.present");
    assert!(player.names.iter().any(|name| name.ends_with("done.lane1.lane")));
    assert!(!player.names.iter().any(|name| name.contains(".lane2.")), "two lanes of f32 a word");
    let seen = compare(&mut player, &scopes, false, &["id", "seq"]);
    assert!(seen.taken >= 8 * elements / 2, "{seen:?}");
}

#[test]
fn a_scan_unit_holds_what_clocked_units_hold() {
    let (inclusive, exclusive) = (share::of(8, 1_200), share::of(8, 2_000));
    let text = format!(
        "family = \"piuma\"\nseed = 2\n[topology]\nkind = \"die\"\n[switch]\ncollective_ids = 2\ncollective_buffer_flits = 2\n\
         [switch.ceng]\nscan_slots = 5\n[memory]\nbandwidth_gbps = 60.1\n\
         [[collective]]\nname = \"inclusive\"\nkind = \"scan\"\nelements = {inclusive}\n\
         [[collective]]\nname = \"exclusive\"\nkind = \"scan\"\ninclusive = false\nop = \"prod\"\ndtype = \"i32\"\nid = 1\n\
         elements = {exclusive}\n"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = traced(folder.path(), &text, &["**.ceng.scan.**"], "scan.vcd");
    let mut player = Player::new(WaveFile::open(&path).unwrap());
    let chains = player.scopes(".operands.joined");
    assert!(chains.iter().any(|scope| scope.ends_with("scan.combine")));
    let seen = compare(&mut player, &chains, true, &["id", "seq"]);
    assert!(seen.taken > 10 * exclusive && seen.selects == 2, "{seen:?}");
}

#[test]
fn an_armed_unit_holds_what_clocked_pipes_hold() {
    let folder = tempfile::tempdir().unwrap();
    let [many, few] = [share::of(6, 60), share::of(3, 15)];
    for (name, stages, rounds) in [("three.vcd", 3, many), ("one.fst", 1, few), ("five.vcd", 5, few)] {
        let mut text = format!(
            "family = \"armed\"\nseed = 11\n[clock]\nfrequency_mhz = 1000\n[topology]\nkind = \"tree\"\nbranching = [2, 6]\n[armed.engine]\nstages = {stages}\nexit_frames = 1\n"
        );
        for (at, op) in OPS.iter().enumerate() {
            let _ = write!(
                text,
                "[[armed.reduction]]\nname = \"r{at}\"\nop = \"{op}\"\nrounds = {rounds}\ncompute_cycles = {{ random_max = {} }}\n",
                40 + 9 * at
            );
        }
        let path = traced(folder.path(), &text, &["**.engine.unit.**"], name);
        let mut player = Player::new(WaveFile::open(&path).unwrap());
        let scopes = player.scopes(".operands.joined");
        let tag = ["multicast_id", "reduction_id", "seqno", "descriptor"];
        let mut references: Vec<QuadReference> =
            scopes.iter().map(|scope| QuadReference::new(&player, scope, &tag)).collect();
        let mut cycle = 0;
        loop {
            let more = player.go_to(cycle);
            for reference in &mut references {
                reference.clock(&player);
                reference.expected.compare(&player, cycle);
            }
            if !more {
                break;
            }
            cycle += 1;
        }
        let joined: u64 = references.iter().map(|reference| reference.joined).sum();
        let lone: u64 = references.iter().map(|reference| reference.taken - reference.joined).sum();
        let selects = references.iter().map(|reference| reference.selects.len()).max();
        assert!(joined > 5 * rounds * OPS.len() as u64 && lone > 0, "{joined} joined, {lone} lone");
        assert!(selects >= Some(OPS.len()), "every operation in one engine, and the barrier that opens");
        assert!(cycle > 100 * rounds, "{cycle} cycles");
    }
}

/// Operations of every datapath of the quad unit.
const OPS: [&str; 7] = ["flt-sum-near", "int-sum", "flt-minmaxloc", "int-max", "flt-repsum", "xor", "flt-minnum"];

/// Seven contexts through the engines of a tree: operations mix in the order of messages.
fn pbv(stages: u8, rounds: u64) -> String {
    let mut text = format!(
        "family = \"pbv\"\nseed = 9\n[clock]\nfrequency_mhz = 1000\n[topology]\nkind = \"tree\"\nbranching = [2, 4]\n[pbv.engine]\ncontexts = 7\n\
         stages = {stages}\n"
    );
    let selects = [
        ("sum", "f64"),
        ("prod", "f32"),
        ("min", "f16"),
        ("max", "bf16"),
        ("or", "u32"),
        ("sum", "i64"),
        ("sum", "fp8_e5m2"),
    ];
    for (at, (op, dtype)) in selects.iter().enumerate() {
        let _ = write!(
            text,
            "[[pbv.collective]]\nname = \"c{at}\"\nblocks = false\nop = \"{op}\"\ndtype = \"{dtype}\"\nelements = {}\nrounds = {rounds}\n\
             task_cycles = {{ random_max = {} }}\ndata = {{ random = \"bits\", same_every_round = true }}\n",
            5 + at,
            60 + 17 * at
        );
    }
    text
}

#[test]
fn a_packet_engines_unit_holds_what_a_clocked_tree_holds() {
    let folder = tempfile::tempdir().unwrap();
    for (name, stages, rounds) in [("four.vcd", 4, share::of(8, 40)), ("one.fst", 1, share::of(2, 10))] {
        let path = traced(folder.path(), &pbv(stages, rounds), &["**.ce.tree.**"], name);
        let mut player = Player::new(WaveFile::open(&path).unwrap());
        let scopes = player.scopes(".operands.present");
        assert_eq!(scopes.len(), 3);
        let seen = compare(&mut player, &scopes, false, &["word", "cc_id", "run"]);
        assert!(seen.selects == 7 && seen.cycles > 100 * rounds, "{seen:?}");
        assert!(seen.taken > 10 * 7 * rounds, "{seen:?}");
    }
}
