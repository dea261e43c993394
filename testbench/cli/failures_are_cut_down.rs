//! Issue 25: random scenarios of every family, and a failing one cut down to the smallest that still fails.

use std::fs;

use crate::share;
use crate::support::watershed;

/// Four of each family in `make test`, and of every third the same once more; twelve of each, twice, in `make soak`.
#[test]
fn random_scenarios_of_every_family_pass() {
    let families = ["piuma", "armed", "pbv", "software", "fabric", "mixed", "workload"];
    let runs = share::of(3, 12).to_string();
    let fuzz = |family: &str| watershed(["fuzz", family, "--seed", "2", "--runs", runs.as_str()]);
    let outputs = families.map(|family| {
        let output = fuzz(family);
        assert_eq!(output.status, 0, "{family}: {}{}", output.stdout, output.stderr);
        let passed: u64 = output.stdout.split(' ').next().unwrap().parse().unwrap();
        assert!(passed >= share::of(2, 4), "{family}: {}", output.stdout);
        output.stdout
    });
    for (family, output) in share::one_in(3, families.into_iter().zip(outputs)) {
        assert_eq!(output, fuzz(family).stdout);
    }
}

/// The planted fault is a run of which a number is too large because of one key that the scenario sets.
#[test]
fn a_planted_fault_is_shrunk_to_what_causes_it() {
    // The numbers: a run that passes right before the one that fails, where `make test` begins; `make soak` begins with run 0.
    let planted = [
        ("piuma", 15, "collectives.0.elements > 10", "elements = 13"),
        ("armed", 0, "armed.reductions.0.first_arming_cycle > 100", "start_cycle = 500"),
        ("pbv", 15, "pbv.collectives.0.elements_per_round > 10", "elements = 13"),
        ("software", 15, "hosts.0.elements > 10", "elements = 13"),
        ("fabric", 4, "traffic.0.offered > 0.25", "rate = 0.3"),
        // It takes a second job, which is in software as the first one: that is simplest.
        ("mixed", 13, "jobs.1.elements > 10", "engine = \"software\"\nelements = 13\n"),
        // It takes a rank that computes for three us, of which a twentieth is taken; that stands in its trace.
        ("workload", 6, "workload.ranks.0.compute_cycles > 100", "trace = \"fuzz-workload-1-"),
    ];
    for (at, (family, before, fault, cause)) in planted.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().to_str().unwrap();
        let first = if share::is_whole() { 0 } else { before }.to_string();
        let output = watershed(["fuzz", family, "--first", &first, "--runs", "200", "--fail-if", fault, "--out", out]);
        assert_eq!(output.status, 1, "{family}: {}{}", output.stdout, output.stderr);
        let all = || fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let files: Vec<_> = all().filter(|file| file.extension().is_some_and(|end| end == "toml")).collect();
        assert_eq!(files.len(), 1, "{family}");
        assert_eq!(all().count(), if family == "workload" { 3 } else { 1 }, "{family}: a trace has a file a rank");
        let text = fs::read_to_string(&files[0]).unwrap();
        assert!(text.contains(cause), "{family}: {text}");
        if !cause.is_empty() {
            // Nothing is left but what causes it: the smallest network, a job, one key.
            assert!(text.contains("size = [2, 1]"), "{family}: {text}");
            let set = text.lines().filter(|line| line.contains(" = ") && !line.starts_with('#')).count();
            // Armed cases have three times that every case has, traffic alone a pattern and an end. Several engines have channels,
            // and a name and an engine a job more; workloads channels, scale, type, trace and group, and no job with a key.
            let always = match family {
                "armed" | "mixed" | "workload" => 3,
                "fabric" => 2,
                _ => 0,
            };
            assert_eq!(set - always, 6, "family, seed, kind, size, name and the key: {text}");
        }
        // Both commands that it prints do what they say, and the file has them, too.
        let line = |what: &str| -> Vec<String> {
            let line = output.stdout.lines().find_map(|line| line.strip_prefix(what)).unwrap();
            let quoted = line.trim().trim_start_matches("watershed ").split_once(" '");
            let words = quoted.map_or(line.trim().trim_start_matches("watershed "), |(words, _)| words);
            let last = quoted.map(|(_, last)| last.trim_end_matches('\'').to_owned());
            words.split_whitespace().map(str::to_owned).chain(last).collect()
        };
        for what in ["run it again", "find it again"] {
            let command = output.stdout.lines().find_map(|line| line.strip_prefix(what)).unwrap().trim();
            assert!(text.lines().any(|line| line.strip_prefix("# ") == Some(command)), "{family}: {text}");
        }
        let run = watershed(line("run it again").into_iter().chain(["--json".to_owned()]));
        assert_eq!(run.status, 0, "{family}: {}", run.stderr);
        if family == "workload" {
            let document: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
            assert_eq!(document["workload"]["ranks"][0]["compute_cycles"], 150, "the trace beside it says so");
        }
        // It is found again as it was found: in every third family in `make test`, in all in `make soak`.
        if at % 3 == 0 || share::is_whole() {
            let again = line("find it again").into_iter().chain(["--out".to_owned(), out.to_owned()]);
            assert_eq!(watershed(again).status, 1, "{family}");
            assert_eq!(fs::read_to_string(&files[0]).unwrap(), text, "{family}");
        }
    }
}

#[test]
fn what_cannot_be_tried_is_said() {
    for (arguments, words) in [
        (&["fuzz", "pium"][..], "piuma"),
        (&["fuzz", "piuma", "--fail-if", "cycles >"], "a value is missing here"),
        (&["fuzz", "piuma", "--runs", "0"], "0 is not in"),
    ] {
        let output = watershed(arguments);
        assert!(output.status == 2 && output.stderr.contains(words), "{arguments:?}: {}", output.stderr);
    }
}
