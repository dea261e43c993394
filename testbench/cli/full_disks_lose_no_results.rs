//! A file that cannot be written to its end takes nothing else with it: the run has its result, and says what is missing.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::Output;

/// Runs the program in a folder where no file can be larger than so many blocks of 512 bytes.
fn with_small_files(folder: &Path, blocks: u32, arguments: &[&str]) -> Output {
    let output = Command::new("sh")
        .args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_watershed")])
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Output { status: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[test]
fn a_wave_that_cannot_be_written_leaves_the_result() {
    for (scenario, wave, more, blocks) in [
        ("mesh-uniform", "q.vcd", &["--signals", "**.s0_1.**"][..], 40),
        ("mesh-uniform", "q.fst", &["--signals", "**.s0_1.**"], 40),
        ("fig2-tree", "q.vcd", &[], 400),
        ("fig8-ladder", "q.vcd", &[], 48),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let run = [&["run", scenario, "--wave", wave, "--out", "o", "--json"], more].concat();
        let output = with_small_files(folder.path(), blocks, &run);
        assert_eq!(output.status, 3, "{scenario} {wave}: {}", output.stderr);
        let lost = format!("error: cannot write o/{wave}: ");
        assert_eq!(output.stderr.matches(&lost).count(), 1, "{scenario} {wave}: {}", output.stderr);
        let plain = tempfile::tempdir().unwrap();
        let without = with_small_files(plain.path(), 1 << 20, &["run", scenario, "--json"]);
        assert_eq!(without.status, 0, "{}", without.stderr);
        assert_eq!(output.stdout, without.stdout, "{scenario} {wave}");
        let kept = std::fs::read_to_string(folder.path().join("o").join(format!("{scenario}.json"))).unwrap();
        assert_eq!(kept, without.stdout, "{scenario} {wave}");
    }
    // The summary names no wave, and a check that failed is not hidden.
    let folder = tempfile::tempdir().unwrap();
    let run = ["run", "mesh-uniform", "--wave", "q.vcd", "--signals", "**.s0_1.**"];
    let output = with_small_files(folder.path(), 40, &run);
    assert!(output.status == 3 && output.stdout.contains("checks"), "{}{}", output.stdout, output.stderr);
    assert!(!output.stdout.contains("q.vcd"), "{}", output.stdout);
    let failed = [&run[..], &["--set", "limits.max_cycles=900"]].concat();
    let output = with_small_files(folder.path(), 40, &failed);
    assert_eq!(output.status, 1, "{}{}", output.stdout, output.stderr);
    assert!(output.stderr.contains("cannot write q.vcd"), "{}", output.stderr);
}

#[test]
fn one_file_that_cannot_be_written_takes_no_other_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = ["run", "allreduce-die", "--out", "o", "--ladder", "l.svg", "--save-npy", "r.npy"];
    let output = with_small_files(folder.path(), 200, &run);
    assert_eq!(output.status, 3, "{}", output.stderr);
    assert!(output.stderr.contains("error: cannot write l.svg: "), "{}", output.stderr);
    assert!(output.stdout.contains("o/allreduce-die.json"), "{}", output.stdout);
    assert!(output.stdout.contains("r.npy") && !output.stdout.contains("l.svg"), "{}", output.stdout);
}
