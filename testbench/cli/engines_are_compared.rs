//! One job on every engine and every network from one command (X-NET-1, X-CMP-1): the words that nodes hold, recomputed here, and
//! what is held equal.

use serde_json::Value as Json;
use watershed::scenario::ENGINES;
use watershed::scenario::load_text;
use watershed::scenario::run::{RunOptions, run};
use watershed::study::compare::study::Study;

use crate::support::{root, watershed};

/// Every kind of network, with sixteen end points or more but for the last two.
const NETWORKS: [&str; 9] = [
    "{ kind = 'mesh', size = [4, 4] }",
    "{ kind = 'torus', size = [5, 4] }",
    "{ kind = 'torus', size = [17] }",
    "{ kind = 'hyperx', size = [4, 4] }",
    "{ kind = 'fat-tree', arity = 4, levels = 2 }",
    "{ kind = 'dragonfly', global_links = 1, group_switches = 4, concentration = 2 }",
    "{ kind = 'tree', branching = [4, 4] }",
    "{ kind = 'file', file = 'traces/k5.topology.toml' }",
    "{ kind = 'file', file = 'traces/ring.topology.toml' }",
];

#[test]
fn every_engine_on_every_network_gives_the_sum_of_what_the_nodes_hold() {
    let members = [4u64, 0, 3, 2];
    for network in NETWORKS {
        for engine in ["piuma", "armed", "pbv"] {
            for (no_skip, order_seed) in [(false, None), (true, Some(3))] {
                let rows: Vec<Vec<i64>> =
                    (0..4).map(|row| (0..4).map(|at| (row + 1) * (1 << (40 + at)) - 7 * at - row).collect()).collect();
                let text = format!(
                    "topology = {network}\n[[job]]\nname = \"sum\"\nengine = \"{engine}\"\nop = \"sum\"\ndtype = \"i64\"\nelements = 4\n\
                     participants = {members:?}\ndata = {{ values = {rows:?} }}\narmed.opening_barrier = false\n"
                );
                let loaded = load_text("x.toml", &text, root(), "x", &[])
                    .unwrap_or_else(|problems| panic!("{problems}\n{text}"));
                let options = RunOptions { no_skip, order_seed, ..RunOptions::default() };
                let result = run(&loaded, &options).unwrap_or_else(|error| panic!("{error}\n{text}"));
                assert!(result.document.passed(), "{:#?}\n{text}", result.document.checks);
                let sum: Vec<u64> = (0..4).map(|at| rows.iter().map(|row| row[at]).sum::<i64>() as u64).collect();
                assert!(!result.data[0].rows.is_empty(), "{text}");
                for row in result.data[0].rows.iter() {
                    assert_eq!(row, &sum[..], "{text}");
                }
            }
        }
    }
}

#[test]
fn engines_are_given_the_same_data() {
    // Sums that wrap do not depend on the order: equal results of random data are results of equal data.
    for elements in [4, 8, 2044] {
        let result = |engine: &str| {
            let text = format!(
                "topology = {{ kind = 'torus', size = [3, 3] }}\n[[job]]\nengine = \"{engine}\"\nop = \"sum\"\ndtype = \"i64\"\n\
                 elements = {elements}\nparticipants = [5, 0, 7]\n"
            );
            let loaded = load_text("x.toml", &text, root(), "x", &[]).unwrap_or_else(|problems| panic!("{problems}"));
            let result = run(&loaded, &RunOptions::default()).unwrap();
            assert!(result.document.passed(), "{:#?}", result.document.checks);
            let rows = &result.data[0].rows;
            // A row a participant, or one a round.
            let rows: Vec<u64> = if ["piuma", "software"].contains(&engine) {
                rows.iter().next().unwrap().to_vec()
            } else {
                rows.iter().flatten().copied().collect()
            };
            rows.into_iter().take(elements).collect::<Vec<u64>>()
        };
        let piuma = result("piuma");
        assert_eq!(piuma.len(), elements);
        assert_eq!(result("armed"), piuma, "{elements} elements");
        assert_eq!(result("pbv"), piuma, "{elements} elements");
        assert_eq!(result("software"), piuma, "{elements} elements");
    }
}

/// What a collective of so many rounds in so many contexts comes to: its results in the order of rounds, and its cycles.
fn spread(contexts: u32, rounds: u32, sets: &[&str]) -> (Vec<Vec<u64>>, u64) {
    let text = format!(
        "family = \"pbv\"\ntopology = {{ kind = \"mesh\", size = [3, 3] }}\npbv.engine.contexts = 8\n[[job]]\nname = \"sum\"\n\
         op = \"sum\"\ndtype = \"i64\"\nelements = 8\nrepeat = {rounds}\npbv.contexts = {contexts}\npbv.blocks = false\npbv.rearm = true\n"
    );
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    let loaded = load_text("x.toml", &text, root(), "x", &sets).unwrap_or_else(|problems| panic!("{problems}"));
    let result = run(&loaded, &RunOptions::default()).unwrap();
    assert!(result.document.passed(), "{:#?}", result.document.checks);
    let all = &result.document.pbv.as_ref().unwrap().collectives;
    assert_eq!(all.len(), contexts.min(rounds) as usize);
    let of = |round: usize| result.data[round % all.len()].rows.row(round / all.len()).to_vec();
    let (start, end) =
        (all.iter().filter_map(|of| of.start_cycle).min(), all.iter().filter_map(|of| of.end_cycle).max());
    ((0..rounds as usize).map(of).collect(), end.unwrap() - start.unwrap())
}

#[test]
fn rounds_in_several_contexts_are_the_same_rounds_and_sooner_done() {
    for rounds in [1, 7, 16] {
        let (alone, slow) = spread(1, rounds, &[]);
        for contexts in [2, 3, 8] {
            let (several, fast) = spread(contexts, rounds, &[]);
            assert_eq!(several, alone, "{rounds} rounds in {contexts} contexts");
            assert!(rounds == 1 || fast < slow, "{rounds} rounds in {contexts} contexts: {fast} cycles, {slow} in one");
        }
    }
    // Who is late in a round is late in the context that has the round, and nowhere else.
    let late = "pbv.collective.0.late=[{ end_point = 4, cycles = 5000, round = 4 }]";
    let ((on_time, quick), (one_late, slow)) = (spread(3, 7, &[]), spread(3, 7, &[late]));
    assert_eq!(on_time, one_late);
    assert!((4000..6000).contains(&(slow - quick)), "{quick} {slow}");
}

#[test]
fn contexts_that_rounds_cannot_be_spread_over_are_refused() {
    for (more, words) in [
        ("pbv.contexts = 2\n", "has one context at a time"),
        ("pbv.contexts = 2\npbv.blocks = false\nkind = \"multicast\"\n", "of an all-reduce or of a barrier"),
        ("pbv.contexts = 4\nrepeat = 8\npbv.blocks = false\npbv.cc_id = 4093\n", "contexts 4093 to 4096"),
        ("pbv.contexts = 65\n", "out of range"),
    ] {
        let text = format!("family = \"pbv\"\ntopology = {{ kind = \"mesh\", size = [2, 2] }}\n[[job]]\n{more}");
        let said = load_text("x.toml", &text, root(), "x", &[]).err().map_or_else(String::new, |all| all.to_string());
        assert!(said.contains(words) && said.contains("x.toml:"), "{more}: {said}");
    }
}

#[test]
fn software_keeps_numbers_of_its_own_where_it_is_told_to() {
    let result = |more: &str| {
        let text = format!(
            "topology = {{ kind = 'mesh', size = [2, 2] }}\n[[job]]\nengine = \"software\"\ndtype = \"i64\"\nelements = 4\n{more}"
        );
        let loaded = load_text("x.toml", &text, root(), "x", &[]).map_err(|problems| problems.to_string())?;
        let result = run(&loaded, &RunOptions::default()).unwrap();
        Ok::<_, String>(result.data[0].rows.row(0).to_vec())
    };
    let (job, own) = (result("").unwrap(), result("software.draws = \"own\"\n").unwrap());
    assert_ne!(job, own);
    assert_eq!(job, result("software.draws = \"job\"\n").unwrap());
    let given =
        "data = { values = [[1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4]] }\nsoftware.draws = \"job\"\n";
    let said = result(given).unwrap_err();
    assert!(said.contains("with `values` nothing is drawn"), "{said}");
}

fn compared(arguments: &[&str]) -> Json {
    let output = watershed(["compare"].iter().chain(arguments).chain(&["--json"]));
    assert_eq!(output.status, 0, "{}{}", output.stdout, output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

#[test]
fn one_command_compares_engines_on_all_networks() {
    let found = compared(&[
        "--engines",
        "piuma,armed,pbv,software,software:ring",
        "--topology",
        "mesh,torus,hyperx,fat-tree,dragonfly,tree",
        "--elements",
        "4,64",
        "--orders=0",
        "--no-dead",
        "--late-ns=0",
    ]);
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 6 * 2);
    for cell in cells {
        let entries = cell["entries"].as_array().unwrap();
        assert_eq!(entries.len(), 5, "{cell}");
        for entry in entries {
            assert_eq!(
                (&entry["run"]["outcome"], &entry["run"]["failed"]),
                (&"finished".into(), &Json::Array(Vec::new())),
                "{entry}"
            );
            // All do the same: that much is held equal.
            for key in ["elements", "end_points", "dtype", "operation", "link_gbps"] {
                assert_eq!(entry["task"][key], entries[0]["task"][key], "{key}: {entry}");
            }
            assert_eq!(entry["task"]["end_points"], 16);
        }
    }
    // Words that no engine is built for still run: software does them.
    let latency = |cell: usize, who: usize| cells[cell]["entries"][who]["run"]["latency_ns"].as_f64().unwrap();
    for network in 0..6 {
        for who in 0..5 {
            assert!(latency(2 * network, who) < latency(2 * network + 1, who), "64 elements take longer than 4");
        }
    }
    let about = found["about"].as_str().unwrap();
    for words in
        ["Equal for all: ", "and the data", "Different: what is under way at a time", "packet engines eight contexts"]
    {
        assert!(about.contains(words), "{about}");
    }
}

#[test]
fn what_is_printed_is_a_study_that_says_the_same() {
    let arguments = [
        "compare",
        "--engines",
        "piuma,software",
        "--topology",
        "torus",
        "--elements",
        "2..8",
        "--end-points",
        "6",
        "--orders=1",
    ];
    let printed = watershed(arguments.iter().chain(&["--print-study"]));
    assert_eq!(printed.status, 0, "{}", printed.stderr);
    assert!(
        printed.stdout.contains("size = [3, 2]") && printed.stdout.contains("elements = [2, 8]"),
        "{}",
        printed.stdout
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    std::fs::write(&file, &printed.stdout).unwrap();
    let direct = watershed(arguments.iter().chain(&["--csv"]));
    let study = watershed(["study", file.to_str().unwrap(), "--csv"]);
    assert_eq!((direct.status, study.status), (0, 0), "{}{}", direct.stderr, study.stderr);
    assert_eq!(direct.stdout, study.stdout);
}

#[test]
fn the_shipped_study_compares_the_same_job_everywhere() {
    let study = Study::load(ENGINES, "which-engine").unwrap_or_else(|problems| panic!("{problems}"));
    let cells = study.cells().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(cells.len(), 5 * 5);
    for (system, elements, contestants) in cells {
        assert_eq!(contestants.len(), 5);
        for contestant in contestants {
            assert_eq!(
                (contestant.task.elements, contestant.task.end_points),
                (elements, 16),
                "{system}: {}",
                contestant.name
            );
        }
    }
}

#[test]
fn any_length_is_the_same_job_for_every_engine() {
    // Neither 7 nor 1009 fills frames of four, and 1009 doubles do not fill two frames of packets evenly.
    let lengths = [1u64, 7, 1009];
    let found =
        compared(&["--engines", "piuma,armed,pbv,software", "--elements", "1,7,1009", "--orders=0", "--no-dead"]);
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), lengths.len());
    for (cell, elements) in cells.iter().zip(lengths) {
        assert_eq!(cell["elements"], elements);
        for entry in cell["entries"].as_array().unwrap() {
            assert_eq!(entry["task"]["elements"], elements, "{entry}");
            assert_eq!(entry["run"]["bit_exact"], true, "{entry}");
            // What fills up a frame is not counted as throughput.
            let (rate, ns) = (&entry["run"]["elements_per_ns"], entry["run"]["latency_ns"].as_f64().unwrap());
            assert!((rate.as_f64().unwrap() * ns / elements as f64 - 1.0).abs() < 1e-6, "{entry}");
        }
    }
}

#[test]
fn a_million_elements_on_every_network_are_accepted() {
    let networks = "dragonfly,torus,fat-tree,hyperx,mesh,traces/k5.topology.toml";
    let arguments = ["compare", "--topology", networks, "--engines", "piuma,armed,pbv,software", "--elements", "1..1M"];
    let printed = watershed(arguments.iter().chain(&["--end-points", "5", "--print-study"]));
    assert_eq!(printed.status, 0, "{}", printed.stderr);
    let study =
        Study::parse(ENGINES, "x.toml", &printed.stdout, root()).unwrap_or_else(|problems| panic!("{problems}"));
    let cells = study.cells().unwrap_or_else(|error| panic!("{error}"));
    let lengths: Vec<u64> = cells.iter().take(cells.len() / 6).map(|(_, elements, _)| *elements).collect();
    assert_eq!((lengths.first(), lengths.last(), lengths.len() * 6), (Some(&1), Some(&(1 << 20)), cells.len()));
    for (_, elements, contestants) in &cells {
        // The slowest engine needs some ten cycles an element: the usual limit would end the longest runs. Of a short vector, the
        // run in which somebody is dead ends as soon as ever.
        let most = contestants.iter().map(|contestant| contestant.loaded.scenario.limits.max_cycles);
        assert!(
            most.clone().all(|most| most == (100 * elements).max(10_000_000)),
            "{elements}: {:?}",
            most.collect::<Vec<_>>()
        );
    }
}

/// Frames of 4080 bytes from sixteen end points in eight contexts: a time-out that does not wait for them fires where nobody is dead.
#[test]
fn long_frames_are_waited_for() {
    let arguments = ["--engines", "piuma,pbv", "--topology", "dragonfly", "--orders=0", "--no-dead", "--late-ns", "0"];
    let found = compared(&[&arguments[..], &["--elements", "4096"]].concat());
    let entry = &found["cells"][0]["entries"][1];
    assert_eq!((&entry["run"]["outcome"], &entry["run"]["bit_exact"]), (&"finished".into(), &true.into()), "{entry}");
    let sets: Vec<String> =
        entry["sets"].as_array().unwrap().iter().map(|set| set.as_str().unwrap().to_owned()).collect();
    assert!(sets.contains(&"pbv.engine.timeout_cycles=16320".to_owned()), "{sets:?}");
    let run = |sets: &[String]| {
        let sets = sets.iter().flat_map(|set| ["--set".to_owned(), set.clone()]);
        let run = watershed(["run", "any-engine", "--json"].map(str::to_owned).into_iter().chain(sets));
        serde_json::from_str::<serde_json::Value>(&run.stdout).unwrap()["jobs"][0]["outcomes"].clone()
    };
    assert_eq!(run(&sets)["complete"], 9, "nothing is sent again");
    let shorter: Vec<String> = sets.into_iter().chain(["pbv.engine.timeout_cycles=2048".into()]).collect();
    assert!(run(&shorter)["after_retry"].as_u64() > Some(0));
}

#[test]
fn what_cannot_be_compared_is_said() {
    for (arguments, words) in [
        (&["--engines", "piuma,gpu"][..], "there is no engine \"gpu\""),
        (&["--engines", "piuma,software", "--topology", "moebius"], "there is no topology \"moebius\""),
        (&["--engines", "piuma,armed", "--elements", "9..1"], "ends before it begins"),
        (&["--engines", "piuma,armed", "--elements", "0"], "no vector length"),
        (&["--engines", "piuma,armed:ring"], "\"ring\" is for software"),
        (&["--engines", "piuma,software", "--end-points", "1"], "from 2 to 65536"),
        (&["--engines", "armed,software", "--type", "f32"], "armed engines have no sum of f32"),
        (&["--engines", "piuma"], "2 to 24"),
        (&["--topology", "torus"], "--engines"),
        (&["face-off-piuma", "--engines", "piuma,armed"], "cannot be used with"),
    ] {
        let output = watershed(["compare"].iter().chain(arguments));
        assert_eq!(output.status, 2, "{arguments:?}: {}", output.stdout);
        assert!(output.stderr.contains(words), "{arguments:?}: {}", output.stderr);
    }
}
