//! C-RUN-1: every shipped scenario passes all checks, and `list` shows it.

use crate::support::{files, small, stem, watershed};

#[test]
fn every_shipped_scenario_passes_its_checks() {
    for folder in ["testbench/piuma", "testbench/armed", "testbench/fabric"] {
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
    for folder in ["testbench/piuma", "testbench/armed", "testbench/fabric"] {
        for path in files(folder, "toml") {
            let entry = entries.iter().find(|entry| entry["name"] == stem(&path)).expect("listed");
            assert!(text.stdout.contains(entry["about"].as_str().unwrap()));
        }
    }
    assert!(!text.stdout.contains("bad"), "{}", text.stdout);
}
