//! Runs before the crate is compiled: finds the commit for the stamp of results.

use std::env;
use std::path::Path;
use std::process::Command;

/// Sets `WATERSHED_COMMIT`, unless it is already set (a package built outside of a repository). A build that is not
/// optimised is for tests: it names no commit, so that a commit alone makes nobody compile the library again.
fn main() {
    println!("cargo::rerun-if-env-changed=WATERSHED_COMMIT");
    let tests = env::var("PROFILE").is_ok_and(|profile| profile == "debug");
    let commit = env::var("WATERSHED_COMMIT")
        .ok()
        .or_else(|| if tests { Some("debug-build".to_owned()) } else { head() })
        .unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=WATERSHED_COMMIT={commit}");
}

/// The commit that HEAD names.
fn head() -> Option<String> {
    // What HEAD names changes with every commit, and only the log of HEAD is touched each time.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).exists() {
        println!("cargo::rerun-if-changed={log}");
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
