//! `latency_ns` is the time of the whole job with every engine: in result documents, in points.csv and in comparisons. `jobs` of a
//! document says the same of every engine under the same names, and what an engine says of its own has those names only for the same.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value as Json;

use watershed::scenario::load_text;
use watershed::scenario::run::{RunOptions, run};

use crate::support::{root, watershed};

fn result(scenario: &str) -> Json {
    let output = watershed(["run", scenario, "--json"]);
    assert_eq!(output.status, 0, "{scenario}: {}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

/// Scenario, and the list of its document that has what the engine says of the job.
const JOBS: [(&str, &str); 4] = [
    ("face-off-piuma", "/collectives/0"),
    ("face-off-armed", "/armed/reductions/0"),
    ("face-off-pbv", "/pbv/collectives/0"),
    ("face-off-hosts", "/hosts/0"),
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
    for (line, (scenario, place)) in table.lines().skip(1).zip(JOBS) {
        let document = result(scenario);
        let job = document.pointer(place).unwrap();
        let cycles = job["end_cycle"].as_u64().unwrap() - job["start_cycle"].as_u64().unwrap();
        assert_eq!(job["latency_cycles"].as_u64(), Some(cycles), "{scenario}");
        // A clock of 1 GHz.
        assert_eq!(job["latency_ns"].as_f64(), Some(cycles as f64), "{scenario}");
        let entries = compared["entries"].as_array().unwrap();
        let name = job["name"].as_str().unwrap();
        let entry = entries.iter().find(|one| one["name"] == scenario || one["name"] == name).unwrap();
        assert_eq!(entry["run"]["latency_ns"].as_f64(), Some(cycles as f64), "{scenario}");
        // Families with rounds say how long one took; together they take longer.
        assert_eq!(
            entry["run"]["round_ns"].is_number(),
            place.contains("reductions") || place.contains("pbv"),
            "{scenario}"
        );
        // Of several jobs, that of the longest.
        let all = document.pointer(place.trim_end_matches("/0")).unwrap().as_array().unwrap();
        let longest = all.iter().map(|job| job["latency_ns"].as_f64().unwrap()).fold(0.0, f64::max);
        assert!((column(line, "latency_ns") - longest).abs() < 1e-9, "{scenario}");
    }
    // Sixteen rounds of four lanes: a round is not the job.
    let armed = table.lines().nth(2).unwrap();
    assert!(column(armed, "latency_ns") > 2.0 * column(armed, "round_latency_ns"), "{armed}");
    // The latency of a job is that of the job, whoever does it; PIUMA's engines and software do it in one round.
    for (line, (scenario, ..)) in table.lines().skip(1).zip(JOBS) {
        let whole = ["face-off-piuma", "face-off-hosts"].contains(&scenario);
        assert_eq!(whole, column(line, "round_latency_ns") > column(line, "latency_ns") - 1e-9, "{scenario}");
        let rate = column(line, "elements_per_cycle") * column(line, "latency_cycles");
        assert!((rate - 64.0).abs() < 1e-6, "{scenario}: {rate} elements");
    }
}

#[test]
fn a_job_that_did_not_end_whole_has_no_time() {
    let document = result("fig5-dead-leaf");
    assert!(document.pointer("/armed/reductions/0/outcomes/incomplete").unwrap().as_u64() > Some(0));
    for place in ["/armed/reductions/0", "/jobs/0"] {
        let job = document.pointer(place).unwrap();
        assert!(job["start_cycle"].is_u64(), "{job}");
        for key in ["end_cycle", "latency_cycles", "latency_ns"] {
            assert_eq!(job[key], Json::Null, "{place}: {key}");
        }
    }
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

/// What engines say of their own jobs has a key of `jobs` only where it says the same.
#[test]
fn a_name_says_the_same_wherever_it_stands() {
    let mut seen = BTreeMap::new();
    for scenario in [
        "allreduce-die",
        "barrier-die",
        // An eighth as long as it is shipped.
        "hosts-die --set job.0.elements=512",
        "fig2-tree",
        "fig5-dead-leaf",
        "fig7-barrier",
        "write-fan-out",
        "several-engines",
    ] {
        let output = watershed(["run", "--json"].into_iter().chain(scenario.split(' ')));
        let document: Json = serde_json::from_str(&output.stdout).unwrap();
        for job in document["jobs"].as_array().unwrap() {
            let path = format!("/{}", job["details"].as_str().unwrap().replace('.', "/"));
            let of = document.pointer(&path).unwrap();
            let list = path.trim_end_matches(|char: char| char.is_ascii_digit());
            for (key, value) in of.as_object().unwrap() {
                if let Some(all) = job.get(key) {
                    assert_eq!(all, value, "{scenario}: {key} of {path}");
                    *seen.entry((list.to_owned(), key.clone())).or_insert(0) += 1;
                }
            }
        }
    }
    for list in ["/collectives/", "/hosts/", "/armed/reductions/", "/pbv/collectives/"] {
        for key in ["name", "participants", "start_cycle", "end_cycle", "latency_cycles", "latency_ns", "bit_exact"] {
            assert!(seen.contains_key(&(list.to_owned(), key.to_owned())), "{list}: {key}");
        }
    }
}

/// The jobs of a scenario's document, after a look that every check passed.
fn told(text: &str) -> Vec<Json> {
    let loaded = load_text("x.toml", text, root(), "x", &[]).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    let result = run(&loaded, &RunOptions::default()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(result.document.passed(), "{:#?}\n{text}", result.document.checks);
    let document = serde_json::to_value(&result.document).unwrap();
    let jobs = document["jobs"].as_array().unwrap().clone();
    for job in &jobs {
        let path = format!("/{}", job["details"].as_str().unwrap().replace('.', "/"));
        let name = document.pointer(&path).expect("the engine says more of it")["name"].as_str().unwrap();
        assert!(name == job["name"] || name.strip_suffix(".0") == job["name"].as_str(), "{path}: {name}");
    }
    jobs
}

const SAME: &str = "topology = { kind = 'torus', size = [3, 3] }\n[[job]]\nname = 'sum'\n\
                    engine = 'ENGINE'\ndtype = 'i64'\nelements = 64\nparticipants = [0, 4, 7]\narmed.opening_barrier = false\n";

#[test]
fn outcomes_have_the_same_keys_and_words_on_every_engine() {
    let outcomes = ["piuma", "armed", "pbv", "software"].map(|engine| told(&SAME.replace("ENGINE", engine)).remove(0));
    let keys = |job: &Json| job.as_object().unwrap().keys().cloned().collect::<Vec<String>>();
    for (job, engine) in outcomes.iter().zip(["piuma", "armed", "pbv", "software"]) {
        assert_eq!(keys(job), keys(&outcomes[0]), "{engine}");
        assert_eq!(job["engine"], engine);
        let same = [
            ("name", Json::from("sum")),
            ("kind", "allreduce".into()),
            ("op", "sum".into()),
            ("dtype", "i64".into()),
            ("participants", 3.into()),
            ("elements", 64.into()),
            ("bit_exact", true.into()),
        ];
        for (key, value) in same {
            assert_eq!(job[key], value, "{engine}: {key}");
        }
        // Sixteen frames of four elements; a frame takes the whole vector; the others have no frames.
        let rounds = if engine == "armed" { 16 } else { 1 };
        assert_eq!((&job["rounds"], &job["outcomes"]["complete"]), (&rounds.into(), &rounds.into()), "{engine}");
        let cycle = |key: &str| job[key].as_u64().unwrap();
        assert_eq!(cycle("latency_cycles"), cycle("end_cycle") - cycle("start_cycle"), "{engine}");
        assert_eq!(job["latency_ns"].as_f64(), Some(cycle("latency_cycles") as f64), "{engine}: a clock of 1 GHz");
        let rate = job["elements_per_cycle"].as_f64().unwrap();
        assert!((rate - 64.0 / cycle("latency_cycles") as f64).abs() < 1e-12, "{engine}");
        let round = job["round_latency_cycles"]["max"].as_u64().unwrap();
        // Nodes of packet engines contribute when a command has reached them, one after the other.
        assert!(round <= cycle("latency_cycles"), "{job}");
        let at_once = matches!(engine, "piuma" | "software");
        assert!(!at_once || round == cycle("latency_cycles"), "{job}");
        assert!(engine != "armed" || round < cycle("latency_cycles"), "{job}");
    }
}

#[test]
fn a_late_participant_lengthens_the_job_and_not_its_last_round() {
    for (engine, late) in [
        ("piuma", "piuma.delay_cycles = [0, 0, 500]"),
        ("software", "software.delay_cycles = [0, 0, 500]"),
        ("pbv", "pbv.late = [{ end_point = 7, cycles = 500 }]"),
    ] {
        let text = SAME.replace("ENGINE", engine);
        let (quick, slow) = (told(&text).remove(0), told(&format!("{text}{late}\n")).remove(0));
        let cycles = |job: &Json, path: &str| job.pointer(path).unwrap().as_u64().unwrap();
        let of = |path: &str| (cycles(&quick, path), cycles(&slow, path));
        let (before, after) = of("/latency_cycles");
        // What the others exchange meanwhile is not lost.
        assert!(before < after && after <= before + 500, "{engine}: {before}, {after}");
        let (before, after) = of("/round_latency_cycles/max");
        assert!(after <= before, "{engine}: {before}, {after}");
        let waited = cycles(&slow, "/latency_cycles") - after;
        assert!(if engine == "pbv" { waited >= 300 } else { waited == 500 }, "{engine}: {waited}");
    }
}

#[test]
fn rounds_in_several_contexts_are_one_outcome() {
    let text = SAME.replace("ENGINE", "pbv") + "repeat = 8\npbv.contexts = 4\npbv.blocks = false\npbv.rearm = true\n";
    let jobs = told(&text);
    assert_eq!(jobs.len(), 1);
    let job = &jobs[0];
    assert_eq!((&job["name"], &job["rounds"], &job["elements"]), (&"sum".into(), &8.into(), &512.into()));
    assert_eq!(job["outcomes"]["complete"], 8);
    let spread = &job["round_latency_cycles"];
    let (least, mean, most) = (&spread["min"], spread["mean"].as_f64().unwrap(), &spread["max"]);
    assert!(least.as_f64().unwrap() <= mean && mean <= most.as_f64().unwrap(), "{spread}");
}

#[test]
fn outcomes_stand_in_the_order_of_the_jobs() {
    let one = |name: &str, engine: &str, at: usize| {
        format!("[[job]]\nname = '{name}'\nengine = '{engine}'\nelements = 4\nparticipants = [{at}, {}]\n", at + 1)
    };
    let text = "topology = { kind = 'mesh', size = [3, 3] }\n".to_owned()
        + &one("d", "pbv", 0)
        + &one("b", "software", 2)
        + &one("c", "piuma", 4)
        + &one("a", "armed", 6)
        + "[[job]]\nname = 'e'\nengine = 'armed'\nkind = 'barrier'\nparticipants = [0, 8]\n";
    let jobs = told(&text);
    let names: Vec<&str> = jobs.iter().map(|job| job["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["d", "b", "c", "a", "e"]);
    let barrier = &jobs[4];
    assert_eq!((&barrier["kind"], &barrier["op"], &barrier["dtype"]), (&"barrier".into(), &Json::Null, &Json::Null));
}

#[test]
fn what_did_not_end_whole_has_no_latency_on_any_engine() {
    let job = result("fig5-dead-leaf")["jobs"][0].clone();
    assert!(job["outcomes"]["incomplete"].as_u64() > Some(0), "{job}");
    assert!(job["latency_cycles"].is_null() && job["elements_per_cycle"].is_null(), "{job}");
    let output = watershed(["run", "any-engine", "--json", "--set", "limits.max_cycles=20"]);
    let document: Json = serde_json::from_str(&output.stdout).unwrap();
    let job = &document["jobs"][0];
    assert_eq!(
        (&job["outcomes"]["open"], &job["end_cycle"], &job["latency_ns"]),
        (&1.into(), &Json::Null, &Json::Null)
    );
}
