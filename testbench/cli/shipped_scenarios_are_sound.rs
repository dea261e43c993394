//! C-RUN-1: every shipped scenario passes all checks, and `list` shows it.

use watershed::scenario::shipped;

use crate::share;
use crate::support::{files, small, stem, watershed};

/// Every other one of each family in `make test`, all in `make soak`.
#[test]
fn every_shipped_scenario_passes_its_checks() {
    for folder in ["testbench/piuma", "testbench/armed", "testbench/fabric", "testbench/mixed"] {
        for path in share::one_in(2, small(folder)) {
            let name = format!("{folder}/{}.toml", stem(&path));
            let output = watershed(["check", &name]);
            assert_eq!(output.status, 0, "{}", output.stderr);
            let (proof, fine) = output.stdout.split_once('\n').unwrap();
            assert_eq!(fine, format!("{name}: fine\n"));
            assert!(proof.starts_with("routing: ") && proof.contains("make no circle"), "{name}: {proof}");
        }
    }
}

#[test]
fn list_shows_each_with_its_sentence() {
    let text = watershed(["list"]);
    let json = watershed(["list", "--json"]);
    assert_eq!((text.status, json.status), (0, 0));
    let entries: Vec<serde_json::Value> = serde_json::from_str(&json.stdout).unwrap();
    for folder in ["testbench/piuma", "testbench/armed", "testbench/fabric", "testbench/mixed"] {
        for path in files(folder, "toml") {
            let entry = entries.iter().find(|entry| entry["name"] == stem(&path)).expect("listed");
            assert!(text.stdout.contains(entry["about"].as_str().unwrap()));
        }
    }
    assert!(!text.stdout.contains("bad"), "{}", text.stdout);
}

/// Of those that read files every other one in `make test`, and one in four of the others; all in `make soak`.
#[test]
fn each_is_checked_from_an_empty_folder() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let program = env!("CARGO_BIN_EXE_watershed");
        let output = std::process::Command::new(program).current_dir(folder.path()).args(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let small = shipped::SHIPPED.iter().filter(|(path, _)| !path.contains("16384"));
    let (reading, others): (Vec<_>, Vec<_>) = small.partition(|(_, text)| text.contains("traces/"));
    assert!(reading.len() >= 7 && others.len() > 70, "{} and {}", reading.len(), others.len());
    let check = |path: &str| {
        let name = shipped::stem(path);
        let (status, _, words) = run(&["check", name]);
        assert_eq!(status, Some(0), "{name}: {words}");
    };
    for (path, _) in share::one_in(4, others) {
        check(path);
    }
    // They are run as well, and again from their result, which names the files.
    for (path, _) in share::one_in(2, reading) {
        check(path);
        let name = shipped::stem(path);
        let (status, document, words) = run(&["run", name, "--json"]);
        assert_eq!(status, Some(0), "{name}: {words}");
        std::fs::write(folder.path().join("result.json"), document).unwrap();
        let (status, said, words) = run(&["replay", "result.json"]);
        assert!(status == Some(0) && said.contains(": same ("), "{name}: {said}{words}");
    }
}
