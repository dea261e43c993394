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
