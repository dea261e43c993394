//! One table for all jobs: any engine does it, older scenarios become it, and what is wrong with one is said at its place
//! (X-JOB-1).

use watershed::scenario::result::Document;
use watershed::scenario::run::{RunOptions, run};
use watershed::scenario::run_inputs::RunInputs;
use watershed::scenario::{ENGINES, Loaded, load_inputs, load_text, migrate, shipped};

use crate::support::{load, root, watershed};

const ANY: &str = "[topology]\nkind = \"torus\"\nsize = [3, 3]\n[[job]]\nname = \"sum\"\nengine = \"piuma\"\nop = \"sum\"\ndtype = \"f64\"\n\
                   elements = 64\npiuma.segments = 2\narmed.reduction_ids = 4\nsoftware.algorithm = \"ring\"\n";

fn document(loaded: &Loaded) -> String {
    let result = run(loaded, &RunOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    assert!(result.document.passed(), "{:#?}", result.document.checks);
    serde_json::to_string(&result.document).unwrap()
}

#[test]
fn one_word_changes_the_engine() {
    for (engine, said) in [
        ("piuma", "\"segments\""),
        ("armed", "\"reductions\""),
        ("pbv", "\"pbv\":{\"collectives\""),
        ("software", "\"hosts\""),
    ] {
        let loaded = load(ANY, &[&format!("job.0.engine=\"{engine}\"")]).unwrap();
        let document = document(&loaded);
        assert!(document.contains(said), "{engine}: {document}");
        assert!(document.contains("\"participants\":9") || engine == "software", "{engine}");
    }
}

#[test]
fn what_the_engine_has_acts_and_what_others_have_waits() {
    let config = |sets: &[&str]| serde_json::to_value(&load(ANY, sets).unwrap().scenario).unwrap();
    let armed = config(&["job.0.engine='armed'"]);
    assert_eq!(armed["armed"]["reductions"][0]["reduction_ids"], 4);
    assert_eq!(armed["armed"]["reductions"][0]["rounds"], 16, "four operands a round");
    let piuma = config(&[]);
    assert_eq!((&piuma["collectives"][0]["segments"], &piuma["family"]), (&2.into(), &"piuma".into()));
    // The value of another engine is not even looked at in a file; one that is set would not act, and is refused.
    assert!(load(&ANY.replace("reduction_ids = 4", "reduction_ids = 99"), &[]).is_ok());
    assert!(load(ANY, &["job.0.armed.reduction_ids=99", "job.0.engine='armed'"]).is_err());
    let said = load(ANY, &["job.0.armed.reduction_ids=8"]).err().unwrap();
    let message = "`armed.reduction_ids` is for the engine \"armed\", and job[0] is done by \"piuma\"";
    assert!(said.contains(message) && said.contains("job.0.engine = \"armed\""), "{said}");
    assert!(said.contains("| job.0.armed.reduction_ids=8"), "its place is the argument: {said}");
    let set = ["job.0.armed.reduction_ids=8", "job.0.engine='armed'"];
    assert_eq!(config(&set)["armed"]["reductions"][0]["reduction_ids"], 8);
}

#[test]
fn a_family_that_is_set_is_that_of_a_job() {
    let text = |engine: &str| {
        format!(
            "family = \"piuma\"\ntopology = {{ kind = \"torus\", size = [4, 4] }}\n\
             [[job]]\nkind = \"barrier\"\nengine = \"piuma\"\n[[job]]\nkind = \"barrier\"\n{engine}"
        )
    };
    let family = |text: &str, set: &str| load(text, &[set]).map(|loaded| format!("{:?}", loaded.scenario.family));
    // The second job names none, so it is its.
    assert_eq!(family(&text(""), "family='pbv'").as_deref(), Ok("Mixed"));
    assert_eq!(family(&text(""), "family='piuma'").as_deref(), Ok("Piuma"));
    assert_eq!(family(&text("engine = \"armed\""), "family='armed'").as_deref(), Ok("Mixed"));
    // Both are others', so it would change nothing.
    let said = family(&text("engine = \"armed\""), "family='pbv'").unwrap_err();
    assert!(said.contains("`family = \"pbv\"` does no job: each names another engine"), "{said}");
    assert!(said.contains("`job.0.engine = \"pbv\"` changes the engine of the first"), "{said}");
    assert!(said.contains("| family='pbv'"), "its place is the argument: {said}");
    // In a file it waits for a job without a name.
    assert!(load(&text("engine = \"armed\"").replace("family = \"piuma\"", "family = \"pbv\""), &[]).is_ok());
}

#[test]
fn rounds_are_what_elements_and_frames_make_them() {
    let rounds = |sets: &[&str]| {
        let scenario = load(ANY, sets).unwrap().scenario;
        let pbv = scenario.pbv.as_ref().map(|pbv| (pbv.collectives[0].elements, pbv.collectives[0].rounds));
        let armed = scenario.armed.as_ref().map(|armed| (4, armed.reductions[0].file.rounds));
        pbv.or(armed).unwrap()
    };
    let pbv = "job.0.engine='pbv'";
    let armed = "job.0.engine='armed'";
    // 4080 bytes are 510 doubles or 1020 singles.
    for (elements, dtype, repeat, expected) in [
        (510, "f64", 1, (510, 1)),
        (511, "f64", 1, (256, 2)),
        (1020, "f32", 1, (1020, 1)),
        (5000, "f32", 3, (1000, 15)),
        (7, "f64", 4, (7, 4)),
    ] {
        let sets =
            [format!("job.0.elements={elements}"), format!("job.0.dtype='{dtype}'"), format!("job.0.repeat={repeat}")];
        let sets: Vec<&str> = [pbv].into_iter().chain(sets.iter().map(String::as_str)).collect();
        assert_eq!(rounds(&sets), expected, "{sets:?}");
    }
    for (elements, repeat, expected) in [(1, 1, 1), (4, 1, 1), (5, 1, 2), (64, 3, 48)] {
        let sets = [format!("job.0.elements={elements}"), format!("job.0.repeat={repeat}")];
        let sets: Vec<&str> = [armed].into_iter().chain(sets.iter().map(String::as_str)).collect();
        assert_eq!(rounds(&sets).1, expected, "{sets:?}");
    }
    // One operand a frame.
    assert_eq!(rounds(&[armed, "job.0.op='minmaxloc'", "job.0.elements=5"]).1, 5);
    assert_eq!(
        rounds(&[
            armed,
            "job.0.kind='barrier'",
            "job.0.repeat=6",
            "job.0={ engine = 'armed', kind = 'barrier', repeat = 6 }"
        ])
        .1,
        6
    );
}

/// Scenarios as older versions wrote them.
const OLDER: [&str; 6] = [
    "family = \"armed\"\ntopology = { kind = \"tree\", branching = [2, 2] }\n[[armed.reduction]]\nop = \"flt-sum-deterministic\"\nrounds = 2\n\
     [[armed.reduction]]\nop = \"mean\"\n",
    "family = \"piuma\"   # a die\n[topology]\nkind = \"die\"\n\n[[collective]]   # the sum\nname = \"a\"\nkind = \"allreduce\"\nid = 3\n\
     elements = 8\nparticipants = [\n  0, 1,\n  5,   # the far one\n]\n[collective.data]\nvalues = [[1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 6, 7, 8], [1, 1, 1, 1, 1, 1, 1, 1]]\n\n\
     [[host]]\nname = \"b\"\nalgorithm = \"ring\"\nrandom = \"mixed\"\nelements = 16\n",
    "family = \"fabric\"\n[topology]\nkind = \"mesh\"\nsize = [2, 2]\n[[host]]\nalgorithm = \"recursive-doubling\"\noverhead_cycles = 10\n",
    "family = \"armed\"\ntopology = { kind = \"tree\", branching = [2, 2] }\n[[armed.reduction]]\nop = 'flt-sum-up-ftz'   # upwards\nrounds = 1_0 # times\n\
     reduction_ids = 2\n[[armed.reduction.late]]\nend_point = 1\ncycles = 50\n[[armed.reduction]]\nop = \"barrier\"\nrounds = 2\nparticipants = [0, 3]\n\
     [[armed.fault]]\neffect = \"delay\"\nat = \"all\"\ndelay_cycles = 3\nnth = 1\n",
    "family = \"armed\"\ntopology = { kind = \"tree\", branching = [2, 2] }\n[[armed.reduction]]\nop = \"int-minmaxloc\"\nrounds = 5\n",
    "family = \"pbv\"\ntopology = { kind = \"mesh\", size = [2, 2] }\n[[pbv.collective]]\nop = \"max\"\ndtype = \"f32\"\nelements = 9\nrounds = 4\n\
     rearm = true\norder = \"pbv\"\n[pbv.collective.data]\nrandom = \"mixed\"\n",
];

#[test]
fn older_scenarios_become_jobs_that_run_the_same() {
    for older in OLDER {
        let new = migrate::migrate(ENGINES, "x.toml", older, root(), "x")
            .unwrap_or_else(|problems| panic!("{problems}\n{older}"));
        let new = new.expect("there is something to translate");
        for table in ["[[collective", "[[host", "armed.reduction]]", "pbv.collective]]"] {
            assert!(!new.contains(table), "{new}");
        }
        // Comments stay, and nothing is translated twice.
        for comment in older.split('#').skip(1).map(|text| text.split('\n').next().unwrap()) {
            assert!(new.contains(comment), "{comment} is gone from\n{new}");
        }
        assert_eq!(migrate::migrate(ENGINES, "x.toml", &new, root(), "x").unwrap(), None);
        let read = |text: &str| {
            load_text("x.toml", text, root(), "x", &[]).unwrap_or_else(|problems| panic!("{problems}\n{text}"))
        };
        // Each document has the text that it was made from.
        let [mut before, mut after] =
            [older, &new].map(|text| serde_json::from_str::<Document>(&document(&read(text))).unwrap());
        let written = before.scenario.take() != after.scenario.take();
        assert!(written, "{new}");
        assert_eq!(before, after, "{new}");
    }
}

#[test]
fn shipped_scenarios_are_written_as_jobs() {
    for (path, text) in shipped::SHIPPED {
        let base = root().join(path);
        let left = migrate::migrate(ENGINES, path, text, base.parent().unwrap(), shipped::stem(path))
            .unwrap_or_else(|p| panic!("{p}"));
        assert_eq!(left, None, "{path} names tables of engines");
    }
}

#[test]
fn what_cannot_be_translated_line_by_line_is_left_with_words() {
    let list = "family = \"piuma\"\ntopology.kind = \"die\"\ncollective = [{ kind = \"allreduce\" }]\n";
    let said = migrate::migrate(ENGINES, "x.toml", list, root(), "x").unwrap_err().to_string();
    assert!(said.contains("`collective` is a list in a line") && said.contains("x.toml:3:1"), "{said}");
}

/// What is said of a scenario with this job, on a mesh of four.
fn refused(job: &str) -> String {
    let text = format!("topology = {{ kind = \"mesh\", size = [2, 2] }}\n{job}");
    load(&text, &[]).err().unwrap_or_else(|| panic!("it is accepted:\n{text}"))
}

#[test]
fn what_is_wrong_with_a_job_is_said_at_its_place() {
    for (job, place, words) in [
        ("[[job]]\nengine = \"gpu\"\n", ":3:10", "`job[0].engine` cannot be \"gpu\""),
        ("[[job]]\nop = \"sum\"\n", ":2:1", "nobody is named to do job[0]"),
        ("[[job]]\nengine = \"piuma\"\nrepeat = 2\n", ":4:10", "a collective over registers does a job once"),
        ("[[job]]\nengine = \"software\"\nkind = \"scan\"\n", ":4:8", "software has no scan"),
        (
            "[[job]]\nengine = \"software\"\nsoftware.algorithm = \"x\"\n",
            ":4:22",
            "`job[0].software.algorithm` cannot be \"x\"",
        ),
        (
            "[[job]]\nengine = \"piuma\"\nop = \"mean\"\n",
            ":4:6",
            "there is no mean here: what lands at a PIUMA end point",
        ),
        (
            "[[job]]\nengine = \"piuma\"\nop = \"mean\"\n",
            ":4:6",
            "the engine \"armed\" or \"pbv\", whose end points do that",
        ),
        ("[[job]]\nengine = \"software\"\nop = \"mean\"\n", ":4:6", "there is no mean here: ranks exchange and merge"),
        (
            "[[job]]\nengine = \"software\"\nop = \"sum-deterministic\"\n",
            ":4:6",
            "there is no sum-deterministic here: ranks exchange and merge",
        ),
        ("[[job]]\nengine = \"armed\"\nkind = \"scan\"\n", ":4:8", "armed engines have no scan"),
        ("[[job]]\nengine = \"armed\"\nop = \"sum\"\ndtype = \"f32\"\n", ":5:9", "armed engines have no sum of f32"),
        ("[[job]]\nengine = \"armed\"\nop = \"sum\"\ndtype = \"f32\"\n", ":5:9", "`dtype` is \"i64\" or \"f64\""),
        ("[[job]]\nengine = \"armed\"\nop = \"nand\"\ndtype = \"u64\"\n", ":4:6", "`op` is \"and\", \"or\", \"xor\""),
        (
            "[[job]]\nengine = \"armed\"\nkind = \"barrier\"\nflush_to_zero = true\n",
            ":5:17",
            "a barrier reduces nothing",
        ),
        ("family = \"armd\"\n[[job]]\nelements = 4\n", ":2:10", "`family` cannot be \"armd\""),
        ("[[job]]\nengine = \"armed\"\nkind = \"barrier\"\nop = \"sum\"\n", ":5:6", "a barrier reduces nothing"),
        ("[[job]]\nengine = \"piuma\"\nelements = -1\n", ":4:12", "`job[0].elements` is -1, out of range"),
        ("[[job]]\nengine = \"armed\"\nelements = 0\n", ":4:12", "a vector has elements"),
        ("[[job]]\nengine = \"pbv\"\nrepeat = 0\n", ":4:10", "`job[0].repeat` is 0, out of range"),
        ("[[job]]\nengine = \"piuma\"\npiuma.elements = 4\n", ":4:18", "`elements` is not of one engine only"),
        ("[[job]]\nengine = \"armed\"\npiuma.elements = 4\n", ":4:18", "`elements` is not of one engine only"),
        ("[[job]]\nengine = \"piuma\"\nsoftware = 4\n", ":4:12", "`software` of a job is an integer"),
        ("[[job]]\nengine = \"piuma\"\npiuma = 4\n", ":4:9", "`piuma` of a job is an integer"),
        ("family = \"mixed\"\n[[job]]\nelements = 4\n", ":3:1", "nobody is named to do job[0]"),
        ("family = \"piuma\"\n[[job]]\n[[collective]]\nkind = \"barrier\"\n", ":4:1", "is another way to write a job"),
        ("family = \"piuma\"\njob = 4\n", ":3:7", "`job` is an integer"),
        ("family = \"piuma\"\n[[job]]\nelemens = 4\n", ":4:1", "unknown key `elemens` in `job[0]`"),
        ("family = \"piuma\"\n[[job]]\n[[job]]\nid = 1\ndtype = \"f99\"\n", ":6:9", "`job[1].dtype` cannot be \"f99\""),
        ("[[job]]\nengine = \"software\"\ndata = { file = \"x.npy\" }\n", ":4:8", "software contributes random data"),
    ] {
        let said = refused(job);
        assert!(said.contains(words) && said.contains(place), "{job}\n{said}");
        assert!(said.contains("expected:"), "{said}");
    }
}

#[test]
fn keys_that_no_engine_knows_are_refused_whoever_does_the_job() {
    for (table, slip, place, meant) in [
        ("piuma", "piuma.segmens = 2", ":4:7", "segments"),
        ("armed", "armed.reduction_id = 4", ":4:7", "reduction_ids"),
        ("armed", "armed.late = [{ end_point = 1, cylces = 5 }]", ":4:32", "cycles"),
        ("pbv", "pbv.oder = \"arrival\"", ":4:5", "order"),
        ("software", "software.algoritm = \"ring\"", ":4:10", "algorithm"),
    ] {
        for engine in ["piuma", "armed", "pbv", "software"] {
            let said = refused(&format!("[[job]]\nengine = \"{engine}\"\n{slip}\n"));
            let inside = format!("in `job[0].{table}");
            assert!(said.contains("unknown key") && said.contains(&inside) && said.contains(place), "{said}");
            assert!(said.contains(&format!("did you mean `{meant}`?")), "{engine}: {said}");
            assert!(!said.contains("`elements`"), "a key of all engines is not expected there: {said}");
        }
    }
    // What is set has its place in the argument.
    let said = load(ANY, &["job.0.pbv.trre='flat'"]).err().unwrap();
    assert!(said.contains("unknown key `trre` in `job[0].pbv`") && said.contains("did you mean `tree`?"), "{said}");
}

#[test]
fn the_command_prints_replaces_and_says_what_is_older() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.toml");
    std::fs::write(&path, OLDER[0]).unwrap();
    let name = path.to_str().unwrap();
    let checked = watershed(["check", name]);
    assert_eq!(checked.status, 0, "{}", checked.stderr);
    assert!(checked.stderr.contains("`watershed migrate` writes them as [[job]]"), "{}", checked.stderr);
    let printed = watershed(["migrate", name]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), OLDER[0], "it only prints");
    let replaced = watershed(["migrate", "--in-place", name]);
    assert_eq!((printed.status, replaced.status), (0, 0), "{}", replaced.stderr);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), printed.stdout);
    let again = watershed(["migrate", "--in-place", name]);
    assert!(again.stdout.contains("nothing to translate"), "{}", again.stdout);
    let checked = watershed(["check", name]);
    assert_eq!((checked.status, checked.stderr.as_str()), (0, ""));
    let several = watershed(["migrate", name, name]);
    assert_eq!(several.status, 2);
    assert!(several.stderr.contains("--in-place"), "{}", several.stderr);
}

#[test]
fn jobs_are_written_with_what_is_set_in_tables_of_engines() {
    let text = "family = \"FAMILY\"\ntopology = { kind = \"mesh\", size = [2, 2] }\n[[job]]\nname = \"a\"\nelements = 4\n\
                armed.max_retries = 2\n[[job]]\nname = \"b\"\nelements = 1100\n";
    let cases = [
        ("piuma", &["collective.1.id=3", "collective[0].elements=7", "collective.0.root=\"s0_1\""][..]),
        ("armed", &["armed.reduction.1.op=\"int-max\"", "armed.reduction.1.rounds=3", "job.0.op=\"min\""]),
        ("pbv", &["pbv.collective.1.rounds=5", "pbv.collective.1.start_cycle=77", "pbv.engine.contexts=4"]),
        ("fabric", &["host.0.algorithm=\"ring\""]),
    ];
    for (family, sets) in cases {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let text = text.replace("FAMILY", family);
        let loaded = load_text("x", &text, root(), "x", &sets).unwrap_or_else(|p| panic!("{p}"));
        let written = RunInputs::new(&loaded);
        assert_eq!(written.lines.iter().filter(|line| *line == "[[job]]").count(), 2, "{:?}", written.lines);
        let again = load_inputs(&written, "again", "x", &[]).unwrap_or_else(|problems| panic!("{problems}"));
        let config = |loaded: &Loaded| serde_json::to_string(&loaded.scenario).unwrap();
        assert_eq!(config(&again), config(&loaded), "{family}");
        assert!(!again.source.is_older(), "{family}");
    }
    // A whole table is no value of a job: only the translation says it.
    let text = text.replace("FAMILY", "piuma");
    let host = "host=[{ algorithm = \"ring\", participants = \"all\", elements = 2 }]";
    let sets = ["collective.1.id=3".to_owned(), host.to_owned()];
    let loaded = load_text("x", &text, root(), "x", &sets).unwrap_or_else(|p| panic!("{p}"));
    let written = RunInputs::new(&loaded);
    assert!(written.lines.contains(&"[[collective]]".to_owned()) && written.lines.contains(&"[[host]]".to_owned()));
    assert!(load_inputs(&written, "again", "x", &[]).is_ok());
}

#[test]
fn documents_of_shipped_scenarios_hold_jobs() {
    for (path, text) in shipped::SHIPPED {
        let base = root().join(path);
        let loaded = load_text(path, text, base.parent().unwrap(), shipped::stem(path), &[]);
        let written = RunInputs::new(&loaded.unwrap_or_else(|problems| panic!("{problems}")));
        let has = |table: &str| written.lines.iter().any(|line| line == table);
        for table in ["[[collective]]", "[[host]]", "[[armed.reduction]]", "[[pbv.collective]]"] {
            assert!(!has(table), "{path}: {table}");
        }
        assert!(has("[[job]]") || !text.contains("[[job]]"), "{path}");
    }
}
