//! W-VCD-3: `wave diff` and `wave show` from the command line.

use std::fs;

use crate::support::watershed;

const WAVE: &str = "\
$timescale 1 ps $end
$scope module top $end
$var wire 1 ! busy $end
$upscope $end
$enddefinitions $end
#0
$dumpvars
0!
$end
#2000
1!
#4000
";

fn files() -> (tempfile::TempDir, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (a, b) = (path("a.vcd"), path("b.vcd"));
    fs::write(&a, WAVE).unwrap();
    fs::write(&b, WAVE.replace("#2000", "#3000")).unwrap();
    (folder, a, b)
}

#[test]
fn statuses_tell_equal_different_and_unreadable() {
    let (_folder, a, b) = files();
    assert_eq!(watershed(["wave", "diff", &a, &a]).status, 0);
    let output = watershed(["wave", "diff", &a, &b]);
    assert_eq!(output.status, 1);
    assert!(output.stdout.contains("top.busy"), "{}", output.stdout);
    assert_eq!(watershed(["wave", "diff", &a, &b, "--ignore", "**.busy"]).status, 0);
    let output = watershed(["wave", "diff", &a, "nothing-here.vcd"]);
    assert_eq!(output.status, 2);
    assert!(output.stderr.contains("nothing-here.vcd"));
}

#[test]
fn show_draws_the_selected_signals() {
    let (_folder, a, _) = files();
    let output = watershed(["wave", "show", &a, "--period-ns", "1", "--window", "0..3"]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    insta::assert_snapshot!(output.stdout, @"
    cycle   0   1   2   3
    top
      busy  ________/-------
    ");
    for wrong in [&["--signals", "[", "--period-ns", "1"][..], &["--signals", "none"], &["--period-ns", "0"], &[]] {
        let arguments = [&["wave", "show", a.as_str()], wrong].concat();
        assert_eq!(watershed(arguments).status, 2, "{wrong:?}");
    }
}

#[test]
fn both_formats_are_compared_and_shown_alike() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (vcd, fst) = (path("a.vcd"), path("a.fst"));
    for file in [&vcd, &fst] {
        let output = watershed([
            "run",
            "allreduce-die",
            "--set",
            "collective.0.elements=2",
            "--wave",
            file,
            "--signals",
            "**.sw4.switch.**",
        ]);
        assert_eq!(output.status, 0, "{}", output.stderr);
    }
    let output = watershed(["wave", "diff", &vcd, &fst]);
    assert!(output.status == 0 && output.stdout.starts_with("equal: "), "{}{}", output.stdout, output.stderr);
    let show = |file: &str, arguments: &[&str]| {
        watershed([&["wave", "show", file, "--signals", "**.sw4.**.ceng.{state,operands}"][..], arguments].concat())
    };
    let picture = show(&vcd, &["--window", "25..50"]);
    assert!(picture.stdout.contains("GATHER"), "{}{}", picture.stdout, picture.stderr);
    assert_eq!(show(&fst, &["--window", "25..50"]).stdout, picture.stdout);

    // The moment at which a state begins, by its name.
    let state = "die.tile2.sw4.switch.ceng.state";
    let at = format!("{state} == REDUCE");
    let picture = show(&vcd, &["--at", &at]);
    assert_eq!(picture.status, 0, "{}", picture.stderr);
    let line = picture.stdout.lines().find(|line| line.trim_start().starts_with("state")).unwrap().to_owned();
    // Four cycles of four columns come before it.
    let columns = line.chars().skip(line.find("state").unwrap() + "operands  ".len()).collect::<String>();
    assert_eq!(columns.find("|RE"), Some(16), "{}", picture.stdout);
    assert_eq!(show(&fst, &["--at", &at]).stdout, picture.stdout);
    let output = show(&vcd, &["--at", &format!("{state} == REDUSE")]);
    assert!(output.status == 2 && output.stderr.contains("did you mean REDUCE?"), "{}", output.stderr);
    let output = show(&vcd, &["--at", "die.nothing == 1"]);
    assert!(output.status == 2 && output.stderr.contains("there is no signal die.nothing"), "{}", output.stderr);
    let output = show(&vcd, &["--at", &format!("{state} == REDUCE and {state} == IDLE")]);
    assert!(output.status == 2 && output.stderr.contains("holds in no cycle of it"), "{}", output.stderr);
}

#[test]
fn a_wave_that_was_cut_off_is_shown_up_to_there() {
    let (_folder, a, b) = files();
    let whole = fs::read_to_string(&a).unwrap();
    fs::write(&b, &whole[..=whole.find("1!\n#4000").unwrap()]).unwrap();
    let output = watershed(["wave", "show", &b, "--period-ns", "1"]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    assert!(output.stdout.ends_with("(the file was cut off at 2000 ps, in cycle 2)\n"), "{}", output.stdout);
    let output = watershed(["wave", "diff", &a, &b]);
    assert_eq!(output.status, 1);
    assert!(output.stdout.contains("b.vcd, which was cut off at 2000 ps, up to there"), "{}", output.stdout);
    let output = watershed(["wave", "show", "testbench/cli/main.rs"]);
    assert!(output.status == 2 && output.stderr.contains("neither a VCD nor an FST file"), "{}", output.stderr);
}
