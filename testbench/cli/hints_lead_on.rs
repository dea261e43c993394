//! Issue 25: whoever makes a slip is told what to write instead, never to run again what has just failed; and summaries say of a job
//! the same in every family.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use crate::share;
use crate::support::watershed;

/// A file of this text in a folder, and its name.
fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// What a command that is refused says.
fn refused(arguments: &[&str]) -> String {
    let output = watershed(arguments);
    assert_eq!((output.status, &*output.stdout), (2, ""), "{arguments:?}: {}", output.stderr);
    output.stderr
}

const MESH: &str = "[topology]\nkind = \"mesh\"\nsize = [2, 2]\n";

#[test]
fn slips_in_scenarios_are_told_what_was_meant() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = |text: &str| file(folder.path(), "s.toml", text);
    let of_file = |name: &str| format!("[topology]\nkind = \"file\"\nfile = \"{name}\"\n[[job]]\nengine = \"pbv\"\n");
    let job = "engine = \"piuma\"\nop = \"sum\"\ndtype = \"f64\"\nelements = 4\n";
    let wrong = refused(&["run", &scenario(&format!("{MESH}[job]\n{job}"))]);
    assert!(wrong.contains("a list of tables has two brackets a side: `[[job]]`"), "{wrong}");
    let wrong = refused(&["run", "testbench"]);
    assert!(wrong.contains("a scenario is a file in it, or a name that `watershed list` prints"), "{wrong}");
    let wrong = refused(&["run", &scenario(&of_file("nowhere.toml"))]);
    let tried = folder.path().join("nowhere.toml");
    assert!(wrong.contains(&format!("cannot read {}", tried.display())), "{wrong}");
    assert!(wrong.contains("`topology.file` is a topology file") && wrong.contains("[[switch]]"), "{wrong}");
    let wrong = refused(&["run", &scenario(&of_file("s.toml"))]);
    assert!(wrong.contains("s.toml is a scenario, not a topology file"), "{wrong}");
    // All keys of a table are listed, whatever of them stands there already.
    let switches = "[[switch]]\nname = \"a\"\n[[switch]]\nname = \"b\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\n";
    file(folder.path(), "graph.toml", &switches.replacen("\"a\"\n", "\"a\"\nports = 3\n", 1));
    let wrong = refused(&["run", &scenario(&of_file("graph.toml"))]);
    let keys = "= expected: `name`, `end_points`, ";
    assert!(wrong.contains("unknown key `ports`") && wrong.contains(keys) && !wrong.contains("beside"), "{wrong}");
    for (set, words) in [
        ("topology.size=8x8", "8x8 is [8, 8]"),
        ("job.0.elements=1e3", "without point and exponent it is 1000"),
        ("job.0.op=avg", "did you mean `mean`?"),
        ("job.0.family=pbv", "did you mean `engine`?"),
        ("job.0.piuma.segments=1000", "`job[0].piuma.segments` is 1000, out of range"),
        ("job.0.oparation=sum", "did you mean `op`?"),
        ("job.engine=pbv", "`0.engine` is that of its first element"),
        ("memory.bandwidth_gbps=\"32 GB/s\"", "32 GB/s is 256"),
        ("memory.bandwidth_gbps=\"32 Gb/s\"", "32 Gb/s is 32"),
        ("pbv.engine.contexts=4", "no job here is done by pbv: `job.0.engine = \"pbv\"` changes that of the first"),
        ("armed.engine.stages=4", "no job here is done by armed: `job.0.engine = \"armed\"`"),
    ] {
        let wrong = refused(&["run", "any-engine", "--set", set]);
        assert!(wrong.contains(words), "{set}: {wrong}");
    }
    assert_eq!(
        watershed(["run", "any-engine", "--set", "pbv.engine.contexts=16", "--set", "job.0.engine=pbv"]).status,
        0
    );
    for (switch, words) in [
        ("swx4", "there is no switch \"swx4\"; did you mean `sw4`?"),
        ("leaf9", "there is no switch \"leaf9\"; there is, for example, `core0`, `core1`, `core2`"),
    ] {
        let wrong = refused(&["run", "allreduce-die", "--flip", &format!("{switch}:0:1:0x1")]);
        assert!(wrong.contains(words), "{wrong}");
    }
}

#[test]
fn wrong_words_of_a_sweep_are_found_before_its_first_point() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let axis = |key: &str, values: &str| format!("[[axis]]\nkey = \"{key}\"\nvalues = [{values}]\n");
    let engines = axis("job.0.engine", "\"pbv\", \"piumma\"") + &axis("switch.arbiter", "\"matrix\", \"fixd\"");
    let sweep = file(folder.path(), "s.toml", &format!("[[scenario]]\nfile = \"any-engine\"\n{engines}"));
    let wrong = refused(&["sweep", &sweep, "-o", out.to_str().unwrap()]);
    for words in ["s.toml:5:18", "did you mean `piuma`?", "s.toml:8:21", "did you mean `fixed`?"] {
        assert!(wrong.contains(words), "{words}: {wrong}");
    }
    assert!(!out.join("points.csv").exists());
    // A number that is refused is a point that fails, and what only another engine has may wait for it.
    let right = axis("job.0.engine", "\"software\", \"piuma\"") + &axis("switch.ceng.stages", "2, 99");
    file(folder.path(), "s.toml", &format!("[[scenario]]\nfile = \"any-engine\"\n{right}"));
    let output = watershed(["sweep", &sweep, "-o", out.to_str().unwrap()]);
    assert!(output.status == 0 && output.stdout.contains("4 points: "), "{} {}", output.stdout, output.stderr);
}

#[test]
fn points_of_one_configuration_are_told_from_those_of_earlier_runs() {
    let folder = tempfile::tempdir().unwrap();
    let one = |name: &str| format!("[[scenario]]\nfile = \"barrier-die\"\nname = \"{name}\"\n");
    let axis = "[[axis]]\nkey = \"switch.ceng.stages\"\nvalues = [2, 3]\n";
    let sweep = file(folder.path(), "s.toml", &(one("a") + &one("b") + &one("c") + axis));
    let out = folder.path().join("out");
    let run = |more: &[&str]| watershed([&["sweep", &sweep, "-o", out.to_str().unwrap()], more].concat()).stdout;
    let first = run(&[]);
    assert!(first.starts_with("6 points: 2 computed, 0 known already, 4 the same as others\n"), "{first}");
    let second = run(&["--resume"]);
    assert!(second.starts_with("6 points: 0 computed, 6 known already\n"), "{second}");
}

#[test]
fn what_is_no_sweep_and_no_result_is_said_to_be_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[[scenario]]\nfile = \"barrier-die\"\n[[axis]]\nkey = \"switch.ceng.stages\"\nvalues = [2]\n";
    let sweep = file(folder.path(), "s.toml", text);
    let out = folder.path().join("out").to_str().unwrap().to_owned();
    assert_eq!(watershed(["sweep", &sweep, "-o", &out]).status, 0);
    let study = "testbench/studies/face-off.toml";
    let (table, nowhere) = (format!("{out}/points.csv"), format!("{out}x"));
    for (given, words) in [
        (study, "it is a study file\n  `watershed study testbench/studies/face-off.toml` runs it".to_owned()),
        (&sweep, format!("it is a sweep file\n  `watershed sweep {sweep} --out DIR` runs it")),
        (&table, format!("give its folder: {out}")),
        (&nowhere, "there is nothing of that name".to_owned()),
        ("testbench", "`watershed sweep FILE.toml --out testbench` fills it".to_owned()),
    ] {
        for command in [&["sweep", "best", given, "--min", "gates"][..], &["sweep", "status", given]] {
            let wrong = refused(command);
            let begins = format!("error: {given} holds no results of a sweep: ");
            assert!(wrong.starts_with(&begins) && wrong.contains(&words), "{command:?}: {wrong}");
        }
    }
    let page = folder.path().join("page.html");
    let pattern = format!("{out}/*.vcd");
    let wrong = refused(&["report", &pattern, "-o", page.to_str().unwrap()]);
    for words in ["no file matched this pattern", "made of result documents and of folders of sweeps"] {
        assert!(wrong.contains(words), "{wrong}");
    }
}

/// One command line in four in `make test`, all in `make soak`.
#[test]
fn no_hint_names_the_command_that_has_just_failed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let small = ["--set", "job.0.elements=4", "--wave", "die.vcd", "--out"];
    assert_eq!(watershed([&["run", "allreduce-die"], &small[..], &[&at("")]].concat()).status, 0);
    let text = "[[scenario]]\nfile = \"barrier-die\"\n[[axis]]\nkey = \"switch.ceng.stages\"\nvalues = [2]\n";
    let sweep = file(folder.path(), "s.toml", text);
    assert_eq!(watershed(["sweep", &sweep, "-o", &at("sweep")]).status, 0);
    let mut files =
        ["allreduce-die.json", "die.vcd", "die.gtkw", "sweep", "sweep/sweep.jsonl", "sweep/points.csv", "nope"]
            .map(at)
            .to_vec();
    files.extend(["", "words", "{\"entries\": []}", "<!doctype html>"].map(|text| {
        let name = format!("f{}", text.len());
        file(folder.path(), &name, text)
    }));
    files.extend(
        ["traces/ring.topology.toml", "testbench/studies/face-off.toml", &sweep, "testbench"].map(String::from),
    );
    files.extend(["testbench/piuma/allreduce-die.toml", "allreduce-die"].map(String::from));
    let commands = [
        "check",
        "why",
        "replay",
        "report",
        "wave show",
        "wave list",
        "wave diff",
        "sweep best",
        "sweep status",
        "sweep",
        "study",
        "topology",
        "embed",
        "cost",
        "migrate",
    ];
    let mut failed = 0;
    let to = at("x");
    let lines = commands.iter().flat_map(|&command| files.iter().map(move |given| (command, given)));
    for (command, given) in share::one_in(4, lines) {
        let mut arguments: Vec<&str> = command.split(' ').chain([given.as_str()]).collect();
        match command {
            "wave diff" => arguments.push(given),
            "report" | "sweep" => arguments.extend(["-o", &to]),
            _ => {}
        }
        // What takes the file is no failure and may take long.
        let takes = match command {
            "sweep" => *given == sweep,
            "study" => given.ends_with("face-off.toml"),
            _ => false,
        };
        if takes {
            continue;
        }
        let output = watershed(&arguments);
        if output.status != 0 {
            failed += 1;
            let own = format!("`watershed {command} ");
            assert!(!output.stderr.contains(&own), "{arguments:?}: {}", output.stderr);
        }
    }
    assert!(failed > share::of(5, 100), "{failed}");
}

#[test]
fn every_family_says_how_long_its_job_took() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    for (scenario, set, more) in [
        ("any-engine", "job.0.engine=piuma", ""),
        ("any-engine", "job.0.engine=armed", "16 rounds, up to 8 at a time\n"),
        ("any-engine", "job.0.armed.reduction_ids=1", "16 rounds, one after the other\n"),
        ("any-engine", "job.0.engine=pbv", ""),
        ("against-software", "seed=1", ", one after the other in software\n"),
        ("fig3-ladder", "seed=1", "2 rounds and an opening one, one after the other\n"),
        ("barrier-tree", "seed=1", ""),
        ("fig7-eleven-writes", "seed=1", ""),
        ("several-engines", "seed=11", ""),
    ] {
        let armed = if set.contains("armed.") { "job.0.engine=armed" } else { set };
        let output = watershed(["run", scenario, "--set", armed, "--set", set, "--out", out]);
        assert_eq!(output.status, 0, "{scenario} {set}: {}", output.stderr);
        assert!(output.stdout.contains(more), "{scenario} {set}: {}", output.stdout);
        let text = fs::read_to_string(folder.path().join(format!("{scenario}.json"))).unwrap();
        let document: Json = serde_json::from_str(&text).unwrap();
        let jobs = document["jobs"].as_array().unwrap();
        assert!(!jobs.is_empty());
        for job in jobs {
            let (name, cycles) = (job["name"].as_str().unwrap(), job["latency_cycles"].as_u64().unwrap());
            let mut lines = output.stdout.lines().skip_while(|line| !line.starts_with(&format!("{name} "))).skip(1);
            let line = lines.next().unwrap().trim();
            assert!(line.starts_with(&format!("{cycles} cycles = ")), "{scenario} {set} {name}: {}", output.stdout);
            // Of several, when each ran.
            let at = |key: &str| job[key].as_u64().unwrap();
            let window = format!(" ns (cycles {} to {})", at("start_cycle"), at("end_cycle"));
            assert_eq!(line.contains(&window), jobs.len() > 1, "{name}: {line}");
            if let Some(rate) = job["elements_per_cycle"].as_f64().filter(|_| job["engine"] != "software") {
                let told = line.strip_suffix(" elements per cycle").and_then(|line| line.rsplit_once(", ")).unwrap().1;
                assert!((told.parse::<f64>().unwrap() / rate - 1.0).abs() < 0.05, "{name}: {line}");
            }
        }
    }
}

#[test]
fn globs_in_helps_choose_signals() {
    let scenarios = ["allreduce-die", "fig3-ladder", "fig7-barrier"];
    let mut globs = BTreeSet::new();
    for command in [&["run"][..], &["wave"], &["wave", "show"], &["wave", "list"], &["wave", "diff"], &["check"]] {
        let help = watershed([command, &["--help"]].concat()).stdout;
        let quoted =
            help.split(['\'', '`', ' ', '\n']).filter(|piece| piece.starts_with("**.") || piece.contains(".**"));
        globs.extend(quoted.map(str::to_owned));
    }
    assert!(globs.len() >= 5, "{globs:?}");
    for glob in &globs {
        let names = |scenario: &&str| watershed(["wave", "list", *scenario, glob]).status == 0;
        assert!(scenarios.iter().any(names), "{glob} chooses nothing in {scenarios:?}");
    }
}
