//! Issue 8: `job_ns` is the time of the whole job in every family: in result documents, in points.csv and in comparisons.

use std::fs;

use serde_json::Value as Json;

use crate::support::watershed;

fn result(scenario: &str) -> Json {
    let output = watershed(["run", scenario, "--json"]);
    assert_eq!(output.status, 0, "{scenario}: {}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

/// Scenario, the list of its document that has the job, and the cycle from which the job counts there.
const JOBS: [(&str, &str, &str); 4] = [
    ("face-off-piuma", "/collectives/0", "start_cycle"),
    ("face-off-armed", "/armed/reductions/0", "first_contribution_cycle"),
    ("face-off-pbv", "/pbv/collectives/0", "start_cycle"),
    ("face-off-hosts", "/hosts/0", "start_cycle"),
];

#[test]
fn documents_tables_and_comparisons_agree() {
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("s.toml"), folder.path().join("out"));
    let scenarios = JOBS.map(|(scenario, ..)| format!("[[scenario]]\nfile = \"{scenario}\"\n"));
    fs::write(&file, scenarios.concat()).unwrap();
    assert_eq!(watershed(["sweep", file.to_str().unwrap(), "-o", out.to_str().unwrap()]).status, 0);
    let table = fs::read_to_string(out.join("points.csv")).unwrap();
    let head: Vec<&str> = table.lines().next().unwrap().split(',').collect();
    let column = |line: &str, name: &str| -> f64 {
        line.split(',').nth(head.iter().position(|found| *found == name).unwrap()).unwrap().parse().unwrap()
    };
    let quick = ["--no-dead", "--orders", "0", "--late-ns", "0", "--json"];
    let names = JOBS.map(|(scenario, ..)| scenario);
    let output = watershed([&["compare"], &names[..], &quick[..]].concat());
    let compared: Json = serde_json::from_str(&output.stdout).unwrap();
    for (line, (scenario, place, first)) in table.lines().skip(1).zip(JOBS) {
        let document = result(scenario);
        let job = document.pointer(place).unwrap();
        let cycles = job["end_cycle"].as_u64().unwrap() - job[first].as_u64().unwrap();
        assert_eq!(job["job_cycles"].as_u64(), Some(cycles), "{scenario}");
        // A clock of 1 GHz.
        assert_eq!(job["job_ns"].as_f64(), Some(cycles as f64), "{scenario}");
        let entries = compared["entries"].as_array().unwrap();
        let name = job["name"].as_str().unwrap();
        let entry = entries.iter().find(|one| one["name"] == scenario || one["name"] == name).unwrap();
        assert_eq!(entry["run"]["job_ns"], entry["run"]["latency_ns"]);
        assert_eq!(entry["run"]["job_ns"].as_f64(), Some(cycles as f64), "{scenario}");
        // Families with rounds say how long one took; together they take longer.
        assert_eq!(
            entry["run"]["round_ns"].is_number(),
            place.contains("reductions") || place.contains("pbv"),
            "{scenario}"
        );
        // Of several jobs, that of the longest.
        let all = document.pointer(place.trim_end_matches("/0")).unwrap().as_array().unwrap();
        let longest = all.iter().map(|job| job["job_ns"].as_f64().unwrap()).fold(0.0, f64::max);
        assert!((column(line, "job_ns") - longest).abs() < 1e-9, "{scenario}");
    }
    // Sixteen rounds of four lanes: a round is not the job.
    let armed = table.lines().nth(2).unwrap();
    assert!(column(armed, "job_ns") > 2.0 * column(armed, "latency_ns"), "{armed}");
}

#[test]
fn a_job_that_did_not_end_whole_has_no_time() {
    let document = result("fig5-dead-leaf");
    assert!(document.pointer("/armed/reductions/0/outcomes/incomplete").unwrap().as_u64() > Some(0));
    assert_eq!(document.pointer("/armed/reductions/0/job_ns"), None);
}

#[test]
fn opening_rounds_are_not_counted_as_rounds_that_were_asked_for() {
    let output = watershed(["run", "face-off-armed"]);
    assert!(output.stdout.contains("16 rounds and 8 opening ones"), "{}", output.stdout);
    assert!(output.stdout.contains("24 complete"), "{}", output.stdout);
    let document = result("fig2-tree");
    assert_eq!(document.pointer("/armed/reductions/0/opening_rounds").unwrap(), 1);
    assert!(watershed(["run", "fig2-tree"]).stdout.contains("2 rounds and an opening one"));
}
