//! Issue 8: study files: the same contestants at several lengths and in several systems; what is wrong with one is shown.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use crate::support::{Output, watershed};

const SMALL: &str = r#"
about = "Nine and four end points."
elements = [4, 8]

[disturb]
elements = [8]
orders = 1

[[system]]
name = "nine"
set = ["topology.size=[3, 3]"]

[[system]]
name = "four"
set = ["topology.size=[2, 2]"]
[system.only]
armed = ["armed.reduction.0.root=0"]
PBV = ["pbv.collective.0.source=0", "pbv.collective.0.master=\"s0_0\""]

[[contestant]]
file = "face-off-piuma"

[[contestant]]
name = "armed"
file = "face-off-armed"

[[contestant]]
name = "PBV"
file = "face-off-pbv"

[[contestant]]
name = "ring"
file = "face-off-hosts"
job = "ring"
"#;

fn study(folder: &Path, text: &str, more: &[&str]) -> Output {
    let file = folder.join("study.toml");
    fs::write(&file, text).unwrap();
    watershed([&["study", file.to_str().unwrap()], more].concat())
}

#[test]
fn a_study_has_a_cell_for_every_system_and_length() {
    let folder = tempfile::tempdir().unwrap();
    let output = study(folder.path(), SMALL, &["--json", "-j", "3"]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    let outcome: Json = serde_json::from_str(&output.stdout).unwrap();
    let cells = outcome["cells"].as_array().unwrap();
    let keys: Vec<(&str, u64)> =
        cells.iter().map(|cell| (cell["system"].as_str().unwrap(), cell["elements"].as_u64().unwrap())).collect();
    assert_eq!(keys, [("nine", 4), ("nine", 8), ("four", 4), ("four", 8)]);
    assert_eq!(outcome["contestants"], Json::from(vec!["face-off-piuma", "armed", "PBV", "ring"]));
    for cell in cells {
        let disturbed = cell["elements"] == 8;
        assert_eq!(cell["disturbed"], disturbed);
        for entry in cell["entries"].as_array().unwrap() {
            assert_eq!(entry["task"]["elements"], cell["elements"]);
            assert_eq!(entry["task"]["end_points"], if cell["system"] == "nine" { 9 } else { 4 });
            assert_eq!(entry["run"]["bit_exact"], true);
            assert_eq!((entry["late"].is_object(), entry["bits"].is_object()), (disturbed, disturbed));
        }
    }
    // A cell is what `compare` says of the same scenarios with the same values.
    let arguments = ["compare", "face-off-piuma", "face-off-hosts:ring", "--json", "--orders", "1"];
    let sets = ["--set", "topology.size=[3, 3]"];
    let same: Json = serde_json::from_str(&watershed([&arguments[..], &sets].concat()).stdout).unwrap();
    assert_eq!(same["entries"][0]["storage"], cells[0]["entries"][0]["storage"]);
    let mut sets = cells[1]["entries"][3]["sets"].as_array().unwrap().iter().map(|set| set.as_str().unwrap());
    let again =
        watershed(["run", "face-off-hosts", "--json"].into_iter().chain(sets.by_ref().flat_map(|set| ["--set", set])));
    let again: Json = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(again["hosts"][0]["latency_cycles"], cells[1]["entries"][3]["run"]["latency_cycles"]);
}

#[test]
fn tables_are_the_same_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    for format in [&["--csv"][..], &[]] {
        let run = |jobs: &str| {
            let output = study(folder.path(), SMALL, &[format, &["-j", jobs]].concat());
            assert_eq!(output.status, 0, "{}", output.stderr);
            output.stdout
        };
        let one = run("1");
        assert_eq!(one, run("4"));
        if format.is_empty() {
            for part in ["nine: allreduce (sum) of f64 over 9 end points", "latency (ns)", "disturbed, 8 elements"] {
                assert!(one.contains(part), "{part}\n{one}");
            }
        } else {
            assert!(one.starts_with("system,name,scenario,") && one.lines().count() == 1 + 4 * 4, "{one}");
        }
    }
}

#[test]
fn wrong_studies_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        (SMALL.replace("elements = [4, 8]", "elements = [8, 4]"), "not in ascending order", "study.toml:3:"),
        (SMALL.replace("elements = [8]", "elements = [16]"), "16 is not among the lengths", "study.toml:6:"),
        (SMALL.replace("elements = [4, 8]", "element = [4]"), "did you mean `elements`?", "study.toml:3:"),
        (SMALL.replace("\narmed = [", "\narmd = ["), "there is no contestant `armd`", "did you mean `armed`?"),
        (SMALL.replace("name = \"PBV\"", "name = \"armed\""), "two contestants have the name `armed`", "study.toml:"),
        (SMALL.replace("name = \"four\"", "name = \"nine\""), "two systems have the name `nine`", "study.toml:14:"),
        (
            SMALL.replace("job = \"ring\"", ""),
            "the scenario has several jobs",
            "recursive-doubling, ring or rabenseifner",
        ),
        (SMALL.replace("job = \"ring\"", "job = \"rong\""), "has no job \"rong\"", "recursive-doubling"),
        (SMALL.replace("\"face-off-armed\"", "\"face-of-armed\""), "there is no such scenario file", "face-off-armed"),
        (
            SMALL.replace("topology.size=[2, 2]", "topology.size=[2, 2]\", \"topology.sise=3"),
            "sise",
            "did you mean `size`?",
        ),
        (
            SMALL.replace("armed = [", "armed = [\"armed.reduction.0.op=\\\"flt-max\\\"\", "),
            "not the same job",
            "operation: ",
        ),
        (SMALL.replace("about = ", "about "), "study.toml:2:", "error"),
        ("elements = [4]\n[[contestant]]\nfile = \"face-off-piuma\"\n".into(), "contestant", "study.toml:"),
    ];
    for (text, what, where_) in &cases {
        let output = study(folder.path(), text, &[]);
        assert_eq!((output.status, output.stdout.as_str()), (2, ""), "{what}: {}", output.stderr);
        assert!(output.stderr.contains(what) && output.stderr.contains(where_), "{what}, {where_}:\n{}", output.stderr);
    }
    for (arguments, what) in [
        (&["nothing.toml"][..], "there is no such study file"),
        (
            &["face-of"],
            "there is no study \"face-of\"; there is pbv-table1, piuma-paper, face-off, which-engine or training",
        ),
        (&["pbv-table1", "--csv"], "for study files"),
        (&["face-off", "--svg", "x"], "for studies by name"),
    ] {
        let output = watershed([&["study"], arguments].concat());
        assert_eq!(output.status, 2);
        assert!(output.stderr.contains(what), "{}", output.stderr);
    }
}

#[test]
fn the_shipped_study_is_listed_and_sound() {
    let list = watershed(["study"]).stdout;
    assert!(list.lines().any(|line| line.starts_with("face-off ")), "{list}");
    let study = watershed::study::compare::study::Study::load(watershed::scenario::ENGINES, "face-off")
        .unwrap_or_else(|wrong| panic!("{wrong}"));
    let cells = study.cells().unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(cells.len(), 2 * 5, "every cell is one job for all");
    for family in ["PIUMA", "armed", "PBV", "recursive doubling", "ring", "Rabenseifner"] {
        assert!(cells.iter().all(|(.., cell)| cell.iter().any(|one| one.name == family)), "{family}");
    }
    for (_, elements, cell) in &cells {
        let clock = |one: &watershed::study::compare::Contestant| one.loaded.scenario.clock.frequency_hz;
        assert!(cell.iter().all(|one| one.task == cell[0].task && clock(one) == 1_000_000_000), "{elements}");
    }
    let schema = watershed(["study", "--schema"]).stdout;
    let schema: Json = serde_json::from_str(&schema).unwrap();
    assert!(schema["properties"]["contestant"].is_object());
}
