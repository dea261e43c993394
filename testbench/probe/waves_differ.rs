//! W-VCD-3: the comparison names the first moment and the signals at which two waveforms part.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use watershed::probe::Selection;
use watershed::probe::ascii::{Options, draw, draw_bytes};
use watershed::probe::diff::{Diff, DiffOptions, diff};

use crate::support::{Block, mhz, seeded, small_run, tracer};

/// Two files in a directory of their own, compared.
fn compare(a: impl AsRef<[u8]>, b: impl AsRef<[u8]>, options: &DiffOptions) -> Diff {
    let directory = tempfile::tempdir().unwrap();
    let [path_a, path_b] = ["a.vcd", "b.vcd"].map(|name| directory.path().join(name));
    fs::write(&path_a, a).unwrap();
    fs::write(&path_b, b).unwrap();
    let mut found = diff(&path_a, &path_b, options).unwrap();
    // Where the files are must not show in snapshots.
    (found.a, found.b) = (PathBuf::from("a.vcd"), PathBuf::from("b.vcd"));
    found
}

fn plain(a: impl AsRef<[u8]>, b: impl AsRef<[u8]>) -> Diff {
    compare(a, b, &DiffOptions::default())
}

/// A run of one block; `change` may spoil it.
fn run(change: impl Fn(u64, &mut Block)) -> String {
    let (mut tracer, file) = tracer(mhz(850), Selection::default());
    let mut block = Block::default();
    let node = tracer.declare("die0.tile1.engine", |s| block.probe(s)).unwrap();
    tracer.start().unwrap();
    for cycle in 1..=20 {
        block.state = cycle / 5;
        block.count = cycle / 2 * 3;
        block.busy = cycle % 4 != 0;
        block.head[0] = (cycle % 3 == 0).then_some(0xbeef_0000 + cycle);
        change(cycle, &mut block);
        tracer.sample(node, cycle, |s| block.probe(s));
    }
    tracer.finish(20).unwrap();
    file.text()
}

fn snapshot(name: &str, found: &Diff) {
    insta::with_settings!({snapshot_path => "../../golden/probe", prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!(name, found.to_string());
    });
}

#[test]
fn equal_files_are_equal() {
    let text = run(|_, _| {});
    let found = plain(&text, &text);
    assert!(found.is_equal());
    insta::assert_snapshot!(found.to_string(), @"equal: 8 signals, 21 moments");
}

#[test]
fn one_value() {
    let found = plain(run(|_, _| {}), run(|cycle, block| block.count += u64::from(cycle == 9)));
    assert!(!found.is_equal());
    let first = found.first.as_ref().unwrap();
    assert_eq!(first.time_fs, u128::from(mhz(850).start_ps(9)) * 1000);
    assert_eq!(first.signals.len(), 1);
    snapshot("diff_one_value", &found);
}

#[test]
fn names_of_states_are_shown() {
    let found = plain(run(|_, _| {}), run(|cycle, block| block.state = (cycle + 1) / 5));
    snapshot("diff_state", &found);
}

#[test]
fn unknown_is_not_zero() {
    let with_zero = |cycle: u64, block: &mut Block| {
        if cycle == 7 {
            block.head[0] = Some(0);
        }
    };
    let found = plain(run(|_, _| {}), run(with_zero));
    snapshot("diff_unknown_and_zero", &found);
}

#[test]
fn a_shift_in_time_shows_at_its_first_change() {
    let text = run(|_, _| {});
    let late = text.lines().map(|line| match line.strip_prefix('#').map(str::parse::<u64>) {
        Some(Ok(time)) if time > 0 => format!("#{}\n", time + 1),
        _ => format!("{line}\n"),
    });
    let found = plain(&text, late.collect::<String>());
    assert_eq!(found.first.as_ref().unwrap().time_fs, 1_176_000);
    snapshot("diff_time_shift", &found);
}

#[test]
fn signals_of_one_file_and_other_widths() {
    let foreign = "$timescale 1 ns $end $scope module top $end $var wire 8 ! a [7:0] $end $var wire 4 \" w $end
        $var wire 1 # same $end $upscope $end $enddefinitions $end #0 b1 ! b1 \" 1# #5 0#\n";
    let other = "$timescale 1 ns $end $scope module top $end $var wire 1 ! same $end $var wire 5 \" w $end
        $var real 64 # r $end $upscope $end $enddefinitions $end #0 1! b1 \" r2 # #5 0!\n";
    let found = plain(foreign, other);
    assert_eq!(found.only_in_a, ["top.a"]);
    assert_eq!(found.only_in_b, ["top.r"]);
    assert!(found.first.is_none());
    snapshot("diff_declarations", &found);

    let options = DiffOptions { ignore: vec!["top.{a,r,w}".to_owned()], ..DiffOptions::default() };
    assert!(compare(foreign, other, &options).is_equal());
}

#[test]
fn codes_order_time_scale_and_writing_do_not_matter() {
    let a = "$timescale 1 ns $end $scope module top $end $var wire 8 ! a [7:0] $end $var reg 1 \" b $end $upscope $end
        $enddefinitions $end #0 $dumpvars b00000000 ! x\" $end #10 b00001111 ! #20 1\" #30\n";
    let b = "$date now $end $timescale 100 ps $end $scope module top $end $var logic 1 zz b $end $upscope $end
        $scope module top $end $var wire 8 yy a[7:0] $end $upscope $end $enddefinitions $end
        #0 b0 yy #50 b0 yy #100 b101 yy b1111 yy #200 1zz #300\n";
    let found = plain(a, b);
    assert!(found.is_equal(), "{found}");
}

#[test]
fn different_ends_are_a_difference() {
    let text = run(|_, _| {});
    let found = plain(&text, format!("{text}#99999\n"));
    snapshot("diff_ends", &found);
}

#[test]
fn many_signals() {
    let declare = |value: u64| {
        let (mut tracer, file) = tracer(mhz(1000), Selection::new(["**.count"]).unwrap());
        let mut blocks = vec![Block::default(); 30];
        let nodes: Vec<_> =
            (0..30).map(|n| tracer.declare(&format!("node{n}"), |s| blocks[n].probe(s)).unwrap()).collect();
        tracer.start().unwrap();
        for (node, block) in nodes.iter().zip(&mut blocks) {
            block.count = value;
            tracer.sample(*node, 3, |s| block.probe(s));
        }
        tracer.finish(5).unwrap();
        file.bytes()
    };
    snapshot("diff_many_signals", &plain(declare(1), declare(2)));
}

#[test]
fn errors_name_file_and_line() {
    let broken = run(|_, _| {}).replacen("#1176\n", "#1176\nb10 ~~\n", 1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("broken.vcd");
    fs::write(&path, &broken).unwrap();
    let line = broken.lines().position(|line| line == "b10 ~~").unwrap() + 1;
    let error = draw(&path, &Options::default()).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("line {line}: ")) || error.starts_with(&format!("line {}: ", line + 1)),
        "{error}"
    );
    let good = Path::new("testbench/probe/main.rs");
    let error = |a: &Path, b: &Path| diff(a, b, &DiffOptions::default()).unwrap_err().to_string();
    assert_eq!(error(good, good), "testbench/probe/main.rs: it is neither a VCD nor an FST file");
    assert!(error(Path::new("no/such.vcd"), good).starts_with("no/such.vcd: "));
    let options = DiffOptions { ignore: vec!["a..b".to_owned()], ..DiffOptions::default() };
    assert!(diff(good, good, &options).unwrap_err().to_string().contains("`a..b`"));
}

proptest! {
    #![proptest_config(seeded())]

    /// Whatever bytes a file has, it is read or refused.
    #[test]
    fn no_input_makes_it_panic(edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..12)) {
        let good = small_run(mhz(850), Selection::default()).bytes();
        let mut bad = good.clone();
        for (place, byte, kind) in edits {
            let place = place.index(bad.len().max(1));
            match kind {
                0 if place < bad.len() => bad[place] = byte,
                1 if place < bad.len() => { bad.remove(place); }
                2 => bad.truncate(place.max(1)),
                _ => bad.insert(place.min(bad.len()), b" \n$#b!0x"[usize::from(byte) % 8]),
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let [a, b] = ["a.vcd", "b.vcd"].map(|name| directory.path().join(name));
        fs::write(&a, &good).unwrap();
        fs::write(&b, &bad).unwrap();
        match diff(&a, &b, &DiffOptions::default()) {
            Ok(found) => prop_assert!(!found.to_string().is_empty()),
            Err(error) => prop_assert!(error.to_string().contains("b.vcd")),
        }
        // The other way round, and against itself, where nothing may differ.
        let _ = diff(&b, &a, &DiffOptions::default());
        if let Ok(found) = diff(&b, &b, &DiffOptions::default()) {
            prop_assert!(found.is_equal());
        }
        let _ = draw_bytes(bad, &Options::default());
    }

    /// A change of one value is found, wherever it is.
    #[test]
    fn every_flipped_bit_is_found(cycle in 1..=20_u64, bit in 0..13_u32) {
        let spoiled = run(|now, block| if now == cycle { block.count ^= 1 << bit });
        let found = plain(run(|_, _| {}), spoiled);
        let first = found.first.unwrap();
        prop_assert_eq!(first.time_fs, u128::from(mhz(850).start_ps(cycle)) * 1000);
        prop_assert_eq!(&first.signals[0].name, "die0.tile1.engine.count");
    }
}
