//! A scenario written for one engine runs on another when one word changes (X-JOB-1): what only the first one has waits with a note,
//! and what cannot be so is refused with its reason.

use std::collections::BTreeMap;

use watershed::scenario::result::{Check, Outcome};
use watershed::scenario::run::{RunOptions, RunResult, run};
use watershed::scenario::{Loaded, load_text, shipped};

use crate::share;
use crate::support::{load, root, watershed};

const ENGINES: [&str; 4] = ["piuma", "armed", "pbv", "software"];

/// A torus with settings of everybody, and a job of three end points whose words stand here.
const ALL: &str = "topology = { kind = \"torus\", size = [3, 3] }\n\
    memory.bandwidth_gbps = 32\nlink.header = \"in-flit\"\nchecks.claims = true\n\
    [switch]\nceng.stages = 2\ncollective_ids = 2\ncollective_buffer_flits = 20\npoint_to_point_vcs = 4\n\
    [armed.engine]\nstages = 3\n[pbv.engine]\ncontexts = 2\n\
    [[job]]\nengine = \"ENGINE\"\ndtype = \"i64\"\nelements = 6\nparticipants = [8, 0, 5]\n\
    data.values = [[1, 2, 3, 4, 5, 6], [10, 20, 30, 40, 50, 60], [100, 200, 300, 400, 500, -600]]\n";

fn result(loaded: &Loaded) -> RunResult {
    let result = run(loaded, &RunOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    assert!(result.document.passed(), "{:?} {:#?}", result.document.outcome, result.document.checks);
    result
}

#[test]
fn settings_of_other_engines_wait_with_a_note() {
    let waits = |engine: &str| -> Vec<String> {
        let loaded =
            load(&ALL.replace("ENGINE", engine), &[]).unwrap_or_else(|problems| panic!("{engine}\n{problems}"));
        let result = result(&loaded);
        let mut rows: Vec<Vec<u64>> = result.data[0].rows.iter().map(<[u64]>::to_vec).collect();
        if engine == "armed" {
            // A row a round, four elements each.
            rows = vec![rows.concat()];
        }
        let sum = [111, 222, 333, 444, 555, 66u64.wrapping_sub(600)];
        assert!(!rows.is_empty() && rows.iter().all(|row| row[..6] == sum), "{engine}: {rows:?}");
        assert_eq!(result.document.jobs[0].name, "job0", "{engine}");
        let note =
            |note: &String| note.strip_prefix('`')?.split_once("` waits for a job of").map(|(key, _)| key.to_owned());
        loaded.notes.iter().filter_map(note).collect()
    };
    let engines = ["armed.engine", "pbv.engine"];
    assert_eq!(waits("piuma"), engines);
    assert_eq!(
        waits("software"),
        [&["switch.ceng", "switch.collective_ids", "link.header", "switch.collective_buffer_flits"][..], &engines]
            .concat()
    );
    let piuma = ["switch.ceng", "switch.collective_ids", "memory", "link.header", "checks.claims"];
    assert_eq!(waits("armed"), [&piuma[..], &["pbv.engine"]].concat());
    assert_eq!(waits("pbv"), [&piuma[..], &["switch.point_to_point_vcs", "armed.engine"]].concat());
}

/// Vectors that take several frames, some of them not full, done twice by engines that repeat.
#[test]
fn values_of_a_whole_vector_are_cut_into_frames() {
    for (engine, elements, more) in [
        ("armed", 7, "repeat = 2\narmed.reduction_ids = 3\n"),
        ("armed", 3, "repeat = 3\n"),
        ("pbv", 1100, "repeat = 2\n"),
        ("pbv", 1100, "repeat = 2\npbv.contexts = 2\npbv.blocks = false\n"),
        ("pbv", 9, "dtype = \"i32\"\nrepeat = 2\n"),
        ("piuma", 1100, ""),
        ("software", 1100, ""),
    ] {
        let row = |rank: u64| -> Vec<u64> { (0..elements).map(|at| (rank + 1) * 1000 + at * 7).collect() };
        let rows: Vec<String> = (0..3).map(|rank| format!("{:?}", row(rank))).collect();
        let dtype = if more.contains("dtype") { "" } else { "dtype = \"i64\"\n" };
        let text = format!(
            "topology = {{ kind = \"mesh\", size = [3, 2] }}\n[[job]]\nengine = \"{engine}\"\nelements = {elements}\n{dtype}{more}\
             participants = [5, 1, 2]\ndata.values = [{}]\n",
            rows.join(", ")
        );
        let loaded = load(&text, &[]).unwrap_or_else(|problems| panic!("{engine}\n{problems}"));
        let result = result(&loaded);
        let expected: Vec<u64> = (0..elements).map(|at| 6000 + 3 * at * 7).collect();
        let rounds = result.document.jobs[0].rounds;
        let times = if more.contains("repeat") { if elements == 3 { 3 } else { 2 } } else { 1 };
        let frames = (rounds / times) as usize;
        // By round: those of a context are every other one.
        let contexts: Vec<Vec<Vec<u64>>> =
            result.data.iter().map(|of| of.rows.iter().map(<[u64]>::to_vec).collect()).collect();
        let told: Vec<Vec<u64>> = if matches!(engine, "armed" | "pbv") {
            let round = |round: usize| contexts[round % contexts.len()][round / contexts.len()].clone();
            (0..times as usize)
                .map(|time| (0..frames).flat_map(|frame| round(time * frames + frame)).collect())
                .collect()
        } else {
            contexts[0].clone()
        };
        for row in &told {
            assert!(row[..elements as usize] == expected, "{engine} {elements}: {row:?}");
        }
        let fill: usize = told[0].len() - elements as usize;
        assert!(told[0][elements as usize..].iter().all(|&word| word == 0) && fill < 600, "{engine}: {fill}");
    }
    let said = load(&ALL.replace("ENGINE", "armed").replace("5, 6]", "5]"), &[]).err().unwrap();
    assert!(said.contains("5 values for 6 elements") && said.contains("or 4, the same in every round"), "{said}");
}

/// What a setting does that waits: nothing, to the byte but for the text of the scenario.
#[test]
fn what_waits_changes_nothing() {
    let small = "topology = { kind = \"torus\", size = [3, 3] }\nswitch.collective_buffer_flits = 20\n[armed.engine]\nstages = 3\n[[job]]\n";
    let job = ALL.split_once("[[job]]\n").unwrap().1.replace("ENGINE", "armed");
    let [mut with, mut without] = [&ALL.replace("ENGINE", "armed"), &format!("{small}{job}")]
        .map(|text| result(&load(text, &["switch.point_to_point_vcs=4"]).unwrap()).document);
    assert!(with.scenario.take() != without.scenario.take());
    assert_eq!(with, without);
}

#[test]
fn a_document_keeps_what_waits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.toml");
    std::fs::write(&path, ALL.replace("ENGINE", "armed")).unwrap();
    let run = watershed(["run", path.to_str().unwrap(), "--json"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(run.stderr.contains("note: `memory` waits for a job of piuma or software: none is here"), "{}", run.stderr);
    let document = folder.path().join("all.json");
    std::fs::write(&document, run.stdout).unwrap();
    assert_eq!(watershed(["replay", document.to_str().unwrap()]).status, 0);
    let text = watershed(["replay", document.to_str().unwrap(), "--scenario"]).stdout;
    assert!(text.contains("bandwidth_gbps = 32") && text.contains("[pbv.engine]"), "{text}");
    let other = load(&text, &["job.0.engine=\"piuma\""]).unwrap();
    assert_eq!(other.scenario.memory.bandwidth_bps, Some(32_000_000_000), "what waited acts now");
}

#[test]
fn what_is_set_now_has_to_act_now() {
    for (engine, set, words) in [
        ("armed", "memory.bandwidth_gbps=3", "`memory` means nothing in the armed family"),
        ("pbv", "switch.ceng.stages=3", "`switch.ceng` means nothing in the pbv family"),
        ("piuma", "armed.engine.stages=2", "`armed` means nothing in the piuma family"),
        ("software", "pbv.engine.contexts=3", "`pbv` means nothing in a plain fabric"),
    ] {
        let said = load(&ALL.replace("ENGINE", engine), &[set]).err().unwrap_or_else(|| panic!("{engine} {set}"));
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn what_is_wrong_waits_for_nobody() {
    let torus = "topology = { kind = \"torus\", size = [3, 3] }\n";
    for (engine, more, place, words) in [
        ("piuma", "[pbv.engine]\ncontexs = 2\n", ":3:1", "did you mean `contexts`?"),
        ("armed", "[memory]\nbandwidth_gbps = \"fast\"\n", ":3:18", "memory.bandwidth_gbps"),
        (
            "pbv",
            "[[armed.fault]]\neffect = \"drop\"\nat = \"all\"\n",
            ":2:9",
            "`armed.fault` meets frames of armed engines",
        ),
        ("armed", "[[pbv.congestion]]\nat = \"s0_0\"\ncycle = 9\n", ":2:7", "have no job here"),
        (
            "piuma",
            "[[armed.stranger]]\nend_point = 1\nreduction = \"job0\"\n",
            ":2:9",
            "a job of the engine \"armed\", or none",
        ),
        ("software", "[[collective]]\nkind = \"barrier\"\n", "", "`collective` means nothing in a plain fabric"),
    ] {
        let text = format!("{torus}{more}[[job]]\nengine = \"{engine}\"\nelements = 2\n");
        let said = load(&text, &[]).err().unwrap_or_else(|| panic!("it is accepted\n{text}"));
        assert!(said.contains(words) && said.contains(place), "{said}");
    }
}

/// Why a shipped scenario cannot be done by another engine.
const REASONS: [&str; 18] = [
    "engines, which have no job here",
    "`job[0].op` cannot be",
    "`job[0].kind` cannot be",
    "does a job once",
    "software has no ",
    "software contributes random data or values",
    "armed engines have no ",
    "there are no rounds that could have the same data",
    "read no file of data",
    "cannot hold a reduction frame whole",
    "has no end point",
    "`routing` can be chosen in a plain fabric only",
    "there is no link-layer replay",
    "means nothing in the",
    "means nothing in a plain fabric",
    "carries a word of 64 bits",
    "there is no mean here",
    "there is no sum-deterministic here",
];

/// The text of a scenario whose only job another engine does; `None` if it has several, or that engine does it already.
fn other(text: &str, engine: &str) -> Option<String> {
    let table: toml::Table = toml::from_str(text).ok()?;
    let [job] = table.get("job")?.as_array()?.as_slice() else { return None };
    if table.contains_key("extends") {
        return None;
    }
    let family = |engine: &str| if engine == "software" { "fabric".to_owned() } else { engine.to_owned() };
    let (key, old, new) = match (job.get("engine"), table.get("family")) {
        (Some(old), _) => ("engine", old.as_str()?.to_owned(), engine.to_owned()),
        (None, Some(old)) => ("family", old.as_str()?.to_owned(), family(engine)),
        _ => return None,
    };
    let old = format!("\n{key} = \"{old}\"");
    let new = format!("\n{key} = \"{new}\"");
    let whole = format!("\n{text}");
    (old != new && whole.contains(&old)).then(|| whole.replacen(&old, &new, 1))
}

/// One engine in three in `make test`, so that each scenario gets others than the one before; all in `make soak`.
#[test]
fn shipped_scenarios_run_on_other_engines() {
    let (mut ran, mut refused) = (BTreeMap::new(), 0);
    let small = shipped::SHIPPED.iter().filter(|(path, _)| !path.contains("16384"));
    let cases = small.flat_map(|(path, text)| ENGINES.map(|engine| (path, text, engine)));
    for (path, text, engine) in share::one_in(3, cases) {
        let base = root().join(path);
        let Some(text) = other(text, engine) else { continue };
        let loaded = match load_text(path, &text, base.parent().unwrap(), "other", &[]) {
            Ok(loaded) => loaded,
            Err(problems) => {
                let said = problems.to_string();
                assert!(REASONS.iter().any(|reason| said.contains(reason)), "{path} on {engine}\n{said}");
                refused += 1;
                continue;
            }
        };
        let scenario = &loaded.scenario;
        // What is large is large on every engine.
        if scenario.topology.end_points() <= 100 && text.len() < 4000 {
            let limit = RunOptions { stop_cycle: Some(200_000), ..RunOptions::default() };
            let result = match run(&loaded, &limit) {
                Ok(result) => result,
                // Some rules are about the system that is built.
                Err(error) => {
                    let said = error.to_string();
                    assert!(REASONS.iter().any(|reason| said.contains(reason)), "{path} on {engine}\n{said}");
                    refused += 1;
                    continue;
                }
            };
            // Thousands of rounds go on for longer than this test.
            let stopped = result.document.outcome == Outcome::Interrupted;
            let failed = |check: &&Check| !(check.passed || stopped && check.name == "progress");
            let wrong: Vec<_> = result.document.checks.iter().filter(failed).collect();
            assert!(wrong.is_empty(), "{path} on {engine}: {wrong:#?}");
            *ran.entry(engine).or_insert(0) += 1;
        }
    }
    let enough = |&count: &u64| count >= share::of(4, 8);
    assert!(ran.len() == 4 && ran.values().all(enough), "{ran:?}, {refused} refused");
}
