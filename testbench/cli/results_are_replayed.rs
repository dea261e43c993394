//! C-REPRO-1: a result carries what it was made from; replay runs that again and compares everything.

use std::fs;

use crate::support::{files, watershed};

fn recorded(folder: &tempfile::TempDir, arguments: &[&str]) -> String {
    let file = folder.path().join("result.json");
    let output = watershed([&["run", "--json"], arguments].concat());
    assert_ne!(output.status, 2, "{}", output.stderr);
    fs::write(&file, output.stdout).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn every_family_comes_out_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["testbench/piuma/barrier-die.toml", "--set", "switch.ceng.stages=4", "--seed", "12"][..],
        &["allreduce-die", "--set", "collective.0.elements=9", "--all-links"],
        &["fig4-late-leaf"],
        &["mesh-bursty"],
        &["fig2-tree", "--no-checks"],
        &["barrier-die", "--set", "limits.max_cycles=9"],
    ] {
        let file = recorded(&folder, arguments);
        let output = watershed(["replay", &file]);
        assert_eq!(output.status, 0, "{arguments:?}: {}{}", output.stdout, output.stderr);
        assert!(output.stdout.contains(": same ("), "{}", output.stdout);
    }
}

#[test]
fn a_deliberate_fault_is_part_of_what_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let file = recorded(&folder, &["allreduce-die", "--set", "collective.0.elements=20", "--flip", "sw4:0:17:0x1"]);
    assert_eq!(watershed(["replay", &file]).status, 0);
}

#[test]
fn the_first_difference_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = recorded(&folder, &["barrier-die"]);
    let text = fs::read_to_string(&file).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let cycles = document["cycles"].as_u64().unwrap();
    fs::write(&file, text.replacen(&format!("\"cycles\": {cycles}"), "\"cycles\": 7", 1)).unwrap();
    let output = watershed(["replay", &file]);
    assert_eq!(output.status, 1, "{}{}", output.stdout, output.stderr);
    let expected = format!("DIFFERENT, first at cycles\n  recorded  7\n  now       {cycles}\n");
    assert!(output.stdout.contains(&expected), "{}", output.stdout);
}

#[test]
fn documents_of_version_1_are_replayed_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = recorded(&folder, &["allreduce-die", "--set", "collective.0.elements=9", "--all-links"]);
    let now = fs::read_to_string(&file).unwrap();
    assert!(now.contains("\"schema_version\": 3") && !now.contains("stalls"));
    let old = now.replace("\"schema_version\": 3", "\"schema_version\": 1").replace("head_wait_cycles", "stalls");
    fs::write(&file, &old).unwrap();
    let page = folder.path().join("page.html");
    for (arguments, words) in [
        (&["replay", &file][..], ": same (allreduce-die"),
        (&["why", &file], "climb"),
        (&["report", &file, "-o", page.to_str().unwrap()], "report"),
    ] {
        let output = watershed(arguments);
        assert_eq!(output.status, 0, "{arguments:?}: {}{}", output.stdout, output.stderr);
        assert!(output.stdout.contains(words), "{arguments:?}: {}", output.stdout);
    }
    // What was renamed is compared as well, under its name of today.
    let waits = old.split("\"stalls\": ").nth(1).unwrap().split(',').next().unwrap();
    fs::write(&file, old.replacen(&format!("\"stalls\": {waits},"), "\"stalls\": 77777,", 1)).unwrap();
    let output = watershed(["replay", &file]);
    assert_eq!(output.status, 1, "{}{}", output.stdout, output.stderr);
    let expected = format!("first at links.busiest[0].head_wait_cycles\n  recorded  77777\n  now       {waits}\n");
    assert!(output.stdout.contains(&expected), "{}", output.stdout);
}

/// Documents as commits of this project wrote them, `NAME.COMMIT.json`, of all earlier versions and every engine, each with the scenario
/// that it was made from.
#[test]
fn documents_of_every_version_so_far_are_replayed() {
    let mut versions = [0_u32; 2];
    for path in files("testbench/cli/older", "json") {
        let text = fs::read_to_string(&path).unwrap();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        versions[document["schema_version"].as_u64().unwrap() as usize - 1] += 1;
        let name = path.to_str().unwrap();
        for command in ["replay", "report"] {
            let out = tempfile::tempdir().unwrap();
            let page = out.path().join("page.html");
            let output = watershed(if command == "replay" {
                vec![command, name]
            } else {
                vec![command, name, "-o", page.to_str().unwrap()]
            });
            assert_eq!(output.status, 0, "{name}: {}{}", output.stdout, output.stderr);
            assert!(command != "replay" || output.stdout.contains(": same ("), "{}", output.stdout);
        }
        // Every value that it has is compared: another one is found.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("changed.json");
        let cycles = text.split("\"cycles\": ").nth(1).unwrap().split(',').next().unwrap();
        fs::write(&file, text.replacen(&format!("\"cycles\": {cycles}"), "\"cycles\": 7", 1)).unwrap();
        let output = watershed(["replay", file.to_str().unwrap()]);
        assert!(output.status == 1 && output.stdout.contains("first at cycles"), "{name}: {}", output.stdout);
    }
    assert!(versions.into_iter().all(|count| count > 2), "{versions:?}");
}

#[test]
fn jobs_without_a_name_keep_the_one_of_their_document() {
    // Before jobs were named by their place, their engines named them.
    let folder = tempfile::tempdir().unwrap();
    let job = "topology.kind=\"die\"";
    let scenario = folder.path().join("one.toml");
    fs::write(&scenario, "topology = { kind = \"die\" }\n[[job]]\nengine = \"piuma\"\nelements = 4\n").unwrap();
    let file = recorded(&folder, &[scenario.to_str().unwrap(), "--set", job]);
    let now = fs::read_to_string(&file).unwrap();
    assert!(now.contains("\"name\": \"job0\"") && !now.contains("\"c0\""), "{now}");
    let old = now.replace("job0", "c0");
    fs::write(&file, &old).unwrap();
    let output = watershed(["replay", &file]);
    // The configuration has the name: of the same program its hash is another one, and nothing else.
    assert!(output.stdout.contains("first at stamp.config_hash"), "{}", output.stdout);
    let older = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(old.contains(&older), "{old}");
    fs::write(&file, old.replace(&older, "\"version\": \"0.0.1\"")).unwrap();
    let output = watershed(["replay", &file]);
    assert_eq!(output.status, 0, "{}{}", output.stdout, output.stderr);
}

#[test]
fn documents_of_later_versions_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = recorded(&folder, &["barrier-die"]);
    let text = fs::read_to_string(&file).unwrap().replace("\"schema_version\": 3", "\"schema_version\": 4");
    fs::write(&file, text).unwrap();
    for command in ["replay", "why", "report"] {
        let output = watershed([command, &file]);
        assert_eq!(output.status, 2, "{command}: {}", output.stdout);
        let expected = "it is of schema version 4, and this program reads versions up to 3";
        assert!(output.stderr.contains(expected), "{command}: {}", output.stderr);
    }
}

#[test]
fn what_is_no_result_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = recorded(&folder, &["barrier-die"]);
    let good = fs::read_to_string(&file).unwrap();
    let mut document: serde_json::Value = serde_json::from_str(&good).unwrap();
    let lines = document["scenario"]["lines"].as_array().unwrap().clone();
    document["scenario"]["lines"] = lines.iter().map(|line| line.as_str().unwrap().replace("die", "dye")).collect();
    let spoiled = document.to_string();
    document.as_object_mut().unwrap().remove("scenario");
    for (text, message) in [
        ("{", "is no result document"),
        ("{}", "is no result document"),
        (&document.to_string(), "does not hold its scenario"),
        (&spoiled, "the scenario in"),
    ] {
        fs::write(&file, text).unwrap();
        let output = watershed(["replay", &file]);
        assert_eq!(output.status, 2, "{text}");
        assert!(output.stderr.contains(message), "{}", output.stderr);
    }
    assert_eq!(watershed(["replay", "nowhere.json"]).status, 2);
}

#[test]
fn the_scenario_comes_back_as_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = recorded(&folder, &["barrier-die", "--set", "switch.ceng.stages=5"]);
    let output = watershed(["replay", &file, "--scenario"]);
    assert!(output.stdout.contains("stages = 5"), "{}", output.stdout);
    let scenario = folder.path().join("barrier-die.toml");
    fs::write(&scenario, output.stdout).unwrap();
    let again = watershed(["run", scenario.to_str().unwrap(), "--json"]).stdout;
    let hash = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap()["stamp"]["config_hash"].clone();
    assert_eq!(hash(&again), hash(&fs::read_to_string(&file).unwrap()));
}
