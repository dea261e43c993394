//! C-PROG-1: Ctrl-C ends a run cleanly with what is done so far; without a terminal there is no progress bar.

use crate::support::watershed;

#[test]
fn nothing_is_drawn_without_a_terminal() {
    let output = watershed(["run", "barrier-die"]);
    assert_eq!(output.stderr, "");
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_run_with_what_is_done_so_far() {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    // Traffic without an end in sight: hours, if nobody stops it.
    let child = Command::new(env!("CARGO_BIN_EXE_watershed"))
        .current_dir(crate::support::root())
        .args(["run", "mesh-uniform", "--json"])
        .args(["--set", "traffic.0.stop_cycle=4_000_000_000", "--set", "limits.max_cycles=9_000_000_000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(2));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["outcome"], "interrupted");
    assert!(document["cycles"].as_u64().unwrap() > 0);
}
