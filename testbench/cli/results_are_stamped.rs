//! C-REPRO-1: every result says what made it.

use serde_json::Value as Json;

use crate::support::watershed;

fn document(arguments: &[&str]) -> Json {
    let output = watershed([&["run", "barrier-die", "--json"], arguments].concat());
    assert_ne!(output.status, 2, "{}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

#[test]
fn the_stamp_names_program_commit_configuration_and_seed() {
    let document = document(&["--set", "switch.ceng.stages=4"]);
    let stamp = &document["stamp"];
    assert_eq!(stamp["program"], "watershed");
    assert_eq!(stamp["version"], env!("CARGO_PKG_VERSION"));
    assert!(stamp["commit"].as_str().is_some_and(|commit| !commit.is_empty()));
    assert_eq!(stamp["scenario"], "barrier-die");
    assert_eq!(stamp["overrides"], serde_json::json!(["switch.ceng.stages=4"]));
    assert_eq!(stamp["seed"], document["config"]["seed"]);
}

#[test]
fn the_configuration_is_complete() {
    let config = document(&[])["config"].clone();
    for (path, value) in [
        ("/switch/arbiter", Json::from("round-robin")),
        ("/switch/ceng/radix", Json::from(10)),
        ("/link/latency/cycles", Json::from(5)),
        ("/memory/bandwidth_bps", Json::from(51_200_000_000u64)),
        ("/collectives/0/op", Json::from("barrier")),
        ("/collectives/0/participants", Json::from("all")),
        ("/limits/max_cycles", Json::from(10_000_000)),
        ("/derived/ceng_latency_cycles", Json::from(12)),
    ] {
        assert_eq!(config.pointer(path), Some(&value), "{path}");
    }
    assert_eq!(config["collectives"][0]["delay_cycles"].as_array().map(Vec::len), Some(8), "the drawn delays");
}

#[test]
fn the_hash_changes_with_the_configuration_only() {
    let hash = |arguments: &[&str]| document(arguments)["stamp"]["config_hash"].clone();
    assert_eq!(hash(&[]), hash(&["--set", "switch.ceng.stages=3"]), "3 is the default");
    assert_ne!(hash(&[]), hash(&["--set", "switch.ceng.stages=4"]));
    assert_ne!(hash(&[]), hash(&["--seed", "5"]));
}
