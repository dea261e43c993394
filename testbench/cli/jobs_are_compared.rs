//! Issue 8: the families and software on the same job: what is the same is compared, what is not is refused, and every number
//! comes out of a run that can be run again.

use serde_json::Value as Json;

use crate::support::watershed;

const FACE_OFF: [&str; 4] = ["face-off-piuma", "face-off-armed", "face-off-pbv", "face-off-hosts"];
/// A vector of one frame of the armed family and a machine of nine: quick.
const SMALL: [&str; 2] = ["--set", "topology.size=[3,3]"];

fn compared(arguments: &[&str]) -> Json {
    let output = watershed([&["compare"], arguments, &["--json"]].concat());
    assert_eq!(output.status, 0, "{}{}", output.stdout, output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

fn entry<'a>(comparison: &'a Json, name: &str) -> &'a Json {
    let entries = comparison["entries"].as_array().unwrap();
    entries.iter().find(|entry| entry["name"] == name).unwrap_or_else(|| panic!("{name}"))
}

#[test]
fn families_and_software_do_the_same_job() {
    let comparison = compared(&FACE_OFF);
    assert_eq!(comparison["differences"], Json::Array(Vec::new()));
    let names: Vec<&str> =
        comparison["entries"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    let software = ["recursive-doubling", "ring", "rabenseifner"];
    assert_eq!(names, [&FACE_OFF[..3], &software].concat());
    for name in names {
        let entry = entry(&comparison, name);
        let number = |path: &str| entry.pointer(path).and_then(Json::as_f64).unwrap_or_else(|| panic!("{name} {path}"));
        assert_eq!(entry["task"]["elements"], 64);
        assert_eq!(
            (&entry["run"]["outcome"], &entry["run"]["bit_exact"]),
            (&"finished".into(), &true.into()),
            "{name}"
        );
        // A clock of 1 GHz, words of 64 bits.
        assert!((number("/run/latency_cycles") - number("/run/latency_ns")).abs() < 1e-9);
        assert!((number("/run/vector_gbps") - 64.0 * 64.0 / number("/run/latency_ns")).abs() < 1e-5);
        assert!((number("/traffic/bytes") - 8.0 * number("/traffic/flits")).abs() < 1e-9);
        let mean = number("/traffic/packets") / number("/traffic/used");
        assert!((number("/traffic/packets_mean") - mean).abs() < 1e-6 && number("/traffic/packets_most") >= mean);
        assert!(number("/storage/bits_per_switch") > 1000.0);
        assert!(number("/late/rise_cycles") > 0.0, "{name}");
        // Who waits for ever and who says so: software and registers have no time-outs, engines with time-outs name who it is.
        let engines = ["face-off-armed", "face-off-pbv"].contains(&name);
        assert_eq!(entry["dead"]["ends"], engines, "{name}");
        let named = if engines { vec!["s3_3.node"] } else { Vec::new() };
        assert_eq!(entry["dead"]["named"], Json::from(named), "{name}");
        assert_eq!(entry["dead"]["after_ns"].is_number(), engines, "{name}");
        // Sums in the order of arrival have other bits when others come first; trees and schedules do not.
        let distinct = entry["bits"]["distinct"].as_u64().unwrap();
        assert_eq!(distinct > 1, engines, "{name}: {distinct}");
    }
    // One flit an element on each link of the tree and of the end points, up and down: nothing is less.
    assert_eq!(entry(&comparison, "face-off-piuma")["traffic"]["flits"], 64 * 2 * (15 + 16));
}

#[test]
fn an_order_of_its_own_keeps_the_bits_of_packet_engines() {
    let comparison = compared(&["face-off-pbv", "face-off-piuma", "--no-dead", "--late-ns", "0", "--orders", "4"]);
    assert!(entry(&comparison, "face-off-pbv")["bits"]["distinct"].as_u64().unwrap() > 1);
    let output = watershed(["compare", "fig7-barrier", "barrier-die", "--anyway", "--orders", "1", "--json"]);
    let barriers: Json = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(entry(&barriers, "fig7-barrier")["bits"], Json::Null, "a barrier has no bits");
    let order = "pbv.collective.0.order=\"pbv\"";
    let comparison = compared(&["face-off-pbv", "face-off-pbv", "--set", order, "--no-dead", "--orders", "4"]);
    let fixed = entry(&comparison, "face-off-pbv");
    assert_eq!((&fixed["bits"]["distinct"], &fixed["bits"]["orders"]), (&1.into(), &5.into()));
    assert!(fixed["method"].as_str().unwrap().ends_with("in the order of bits"));
}

/// Every variant is the scenario with values set: `run` gives the same times with them.
#[test]
fn every_number_can_be_run_again() {
    let comparison =
        compared(&[&FACE_OFF[..3], &["face-off-hosts:ring"], &SMALL, &["--set", "seed=5", "--orders", "1"]].concat());
    for entry in comparison["entries"].as_array().unwrap() {
        let again = |more: &Json| {
            let words = |sets: &Json| -> Vec<String> {
                let sets = sets.as_array().unwrap().iter();
                sets.flat_map(|set| ["--set".to_owned(), set.as_str().unwrap().to_owned()]).collect()
            };
            let scenario = entry["scenario"].as_str().unwrap().to_owned();
            let head = ["run".to_owned(), scenario, "--json".to_owned(), "--all-links".to_owned()];
            let output = watershed(head.into_iter().chain(words(&entry["sets"])).chain(words(more)));
            serde_json::from_str::<Json>(&output.stdout).unwrap_or_else(|_| panic!("{}", output.stderr))
        };
        let latency = |document: &Json| {
            let job = ["/collectives/0", "/hosts/0", "/armed/reductions/0", "/pbv/collectives/0"];
            let job = job.iter().find_map(|path| document.pointer(path)).unwrap();
            job["end_cycle"].as_u64().unwrap() - job["start_cycle"].as_u64().unwrap()
        };
        let base = again(&Json::Array(Vec::new()));
        assert_eq!(latency(&base), entry["run"]["latency_cycles"], "{}", entry["name"]);
        assert_eq!(base["stamp"]["config_hash"], entry["config_hash"]);
        let flits = |document: &Json| -> u64 {
            document["links"]["levels"].as_array().unwrap().iter().map(|level| level["flits"].as_u64().unwrap()).sum()
        };
        assert_eq!(flits(&base), entry["traffic"]["flits"]);
        assert_eq!(latency(&again(&entry["late"]["sets"])), entry["late"]["run"]["latency_cycles"]);
        let dead = again(&entry["dead"]["sets"]);
        assert_eq!((&dead["outcome"], &dead["cycles"]), (&entry["dead"]["outcome"], &entry["dead"]["cycles"]));
        let order = again(&entry["bits"]["sets"][0]);
        assert_eq!(order["outcome"], "finished");
    }
}

#[test]
fn the_table_is_the_same_on_any_number_of_threads() {
    let run = |jobs: &str, format: &[&str]| {
        let who = ["face-off-piuma", "face-off-armed", "face-off-hosts:ring"];
        let output = watershed([&["compare"], &who[..], &SMALL, &["-j", jobs, "--orders", "1"], format].concat());
        assert_eq!(output.status, 0, "{}", output.stderr);
        output.stdout
    };
    for format in [&["--json"][..], &[]] {
        assert_eq!(run("1", format), run("5", format));
    }
    let csv = run("2", &["--csv"]);
    let mut lines = csv.lines();
    let columns = lines.next().unwrap().split(',').count();
    assert!(columns > 40 && csv.lines().count() == 4, "{csv}");
    assert!(lines.all(|line| line.split(',').count() == columns), "{csv}");
}

#[test]
fn what_is_not_the_same_job_is_refused_and_named() {
    let refused = |arguments: &[&str]| {
        let output = watershed([&["compare"], arguments].concat());
        assert_eq!((output.status, output.stdout.as_str()), (2, ""), "{arguments:?}");
        output.stderr
    };
    let message = refused(&["barrier-die", "barrier-tree", "fig7-barrier"]);
    for line in [
        "not the same job",
        "elements: 1 (barrier-die, fig7-barrier), 4 (barrier-tree)",
        "end points: 8 (barrier-die, fig7-barrier), 65 (barrier-tree)",
        "link speed in Gb/s: 64 (barrier-die, fig7-barrier), 54.4 (barrier-tree)",
        "--anyway",
    ] {
        assert!(message.contains(line), "{message}");
    }
    let anyway = watershed(["compare", "barrier-die", "barrier-tree", "--anyway", "--no-dead"]);
    assert!(anyway.status == 0 && anyway.stdout.contains("NOT THE SAME JOB"), "{}", anyway.stdout);
    for (arguments, words) in [
        (&["face-off-piuma"][..], "one job alone"),
        (&["face-off-piuma", "face-of-armed"], "did you mean `face-off-armed`?"),
        (
            &["face-off-piuma", "face-off-hosts:rign"],
            "no job \"rign\"; there is recursive-doubling, ring or rabenseifner",
        ),
        (&["face-off-piuma", "mesh-uniform"], "no collective, host or reduction"),
        (&["face-off-piuma", "face-off-pbv", "--set", "seed=x"], "seed"),
        (&["face-off-piuma", "face-off-pbv", "--late-ns=-3"], "a time is a number of ns"),
    ] {
        let message = refused(arguments);
        assert!(message.contains(words), "{arguments:?}: {message}");
    }
}

/// What a family cannot do is said, not guessed: ranks of an ideal host all start at once.
#[test]
fn what_cannot_be_expressed_is_said() {
    let comparison = compared(&[
        "hosts-die:rabenseifner",
        "hosts-die:rabenseifner-ideal",
        "--set",
        "collective.0.elements=16",
        "--orders",
        "1",
    ]);
    let ideal = entry(&comparison, "rabenseifner-ideal");
    for variant in ["late", "dead", "bits"] {
        let why = ideal[variant]["refused"].as_str().unwrap_or_default();
        assert!(why.contains("in ideal mode all ranks start at once"), "{variant}: {why}");
    }
    assert_eq!(entry(&comparison, "rabenseifner")["late"]["refused"], Json::Null);
}
