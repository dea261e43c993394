//! C-RUN-1: every shipped scenario passes all checks, and `list` shows it.

use crate::support::{files, small, stem, watershed};

#[test]
fn every_shipped_scenario_passes_its_checks() {
    for folder in ["testbench/piuma", "testbench/armed", "testbench/fabric", "testbench/mixed"] {
        for path in small(folder) {
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

#[test]
fn each_is_checked_from_an_empty_folder() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let program = env!("CARGO_BIN_EXE_watershed");
        let output = std::process::Command::new(program).current_dir(folder.path()).args(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let mut reading = 0;
    for (path, text) in watershed::scenario::shipped::SHIPPED {
        let name = watershed::scenario::shipped::stem(path);
        if name.contains("16384") {
            continue;
        }
        let (status, _, words) = run(&["check", name]);
        assert_eq!(status, Some(0), "{name}: {words}");
        // Those that read files are run, and again from their result, which names the files.
        if text.contains("traces/") {
            let (status, document, words) = run(&["run", name, "--json"]);
            assert_eq!(status, Some(0), "{name}: {words}");
            std::fs::write(folder.path().join("result.json"), document).unwrap();
            let (status, said, words) = run(&["replay", "result.json"]);
            assert!(status == Some(0) && said.contains(": same ("), "{name}: {said}{words}");
            reading += 1;
        }
    }
    assert!(reading >= 7, "{reading}");
}
