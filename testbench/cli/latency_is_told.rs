//! `why` and `cost` from the command line.

use std::fs;

use crate::support::watershed;

#[test]
fn why_prints_parts_that_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("die.json");
    let file = file.to_str().unwrap();
    let output = watershed(["run", "allreduce-die", "--set", "collective.0.elements=1", "--json"]);
    fs::write(file, output.stdout).unwrap();
    let output = watershed(["why", file]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    assert!(output.stdout.starts_with("sum: 66 cycles, from 0 to 66"), "{}", output.stdout);
    for line in output.stdout.lines().filter(|line| line.starts_with("66 cycles = ")) {
        let sum: u64 = line
            .split(" = ")
            .nth(1)
            .unwrap()
            .split(" + ")
            .map(|part| part.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
            .sum();
        assert_eq!(sum, 66, "{line}");
    }
    assert!(output.stdout.contains("sw4: the last operand came by P6 in cycle 34"), "{}", output.stdout);
    let cut = watershed(["why", file, "--cycles", "30..40", "--collective", "sum"]).stdout;
    assert!(cut.lines().count() < output.stdout.lines().count() && cut.contains("sw4.ceng"), "{cut}");
    let json: serde_json::Value = serde_json::from_str(&watershed(["why", file, "--json"]).stdout).unwrap();
    assert_eq!(json[0]["latency_cycles"], 66);
    let output = watershed(["why", file, "--collective", "some"]);
    assert!(output.status == 2 && output.stderr.contains("no collective \"some\", but sum"), "{}", output.stderr);
    assert_eq!(watershed(["why", "nowhere.json"]).status, 2);
}

#[test]
fn a_family_that_is_not_explained_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tree.json");
    fs::write(&file, watershed(["run", "fig2-tree", "--json"]).stdout).unwrap();
    let output = watershed(["why", file.to_str().unwrap()]);
    assert!(output.status == 2 && output.stderr.contains("does not know the armed family yet"), "{}", output.stderr);
}

#[test]
fn cost_follows_the_parameters() {
    let cost = |arguments: &[&str]| -> serde_json::Value {
        let output = watershed([&["cost", "--json"], arguments].concat());
        assert_eq!(output.status, 0, "{}", output.stderr);
        serde_json::from_str(&output.stdout).unwrap()
    };
    let before = cost(&["allreduce-die"]);
    assert_eq!(before["total"]["adders"], 144);
    let more = cost(&["allreduce-die", "--set", "switch.ceng.operand_slots=4"]);
    let bits = |cost: &serde_json::Value| cost["total"]["storage_bits"].as_u64().unwrap();
    assert_eq!(bits(&more) - bits(&before), 16 * 10 * 2 * 88);
    let text = watershed(["cost", "fig2-tree"]).stdout;
    assert!(text.contains("engine descriptors") && text.contains("8 of 72 bytes"), "{text}");
    assert_eq!(watershed(["cost", "nothing"]).status, 2);
}
