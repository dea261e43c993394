//! What every command line program of the field has: standard input, manual pages, completions, colours where they are wanted,
//! a quiet and a talkative way, examples, and one folder for all files (requirement X-CLI-1).

use std::fs;

use assert_cmd::Command;

use crate::share;
use crate::support::{root, watershed};

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_watershed"));
    command.current_dir(root());
    command
}

fn ran(command: &mut Command) -> (i32, String, String) {
    let output = command.output().expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program writes UTF-8");
    (output.status.code().expect("a status"), text(output.stdout), text(output.stderr))
}

const TINY: &str = "family = \"piuma\"\n[topology]\nkind = \"die\"\n[[job]]\nname = \"sum\"\nelements = 3\n";

#[test]
fn a_scenario_is_read_from_the_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    for command in ["run", "check", "cost", "embed", "topology"] {
        let (status, shown, said) = ran(program().args([command, "-"]).write_stdin(TINY));
        assert_eq!(status, 0, "{command}: {said}");
        assert!(
            ["stdin", "standard input", "sum", "die of 4 tiles"].iter().any(|name| shown.contains(name)),
            "{command}: {shown}"
        );
    }
    let (status, ..) = ran(program().args(["run", "-", "--out", out]).write_stdin(TINY));
    assert_eq!(status, 0);
    assert!(folder.path().join("stdin.json").exists());
    let (status, _, said) =
        ran(program().args(["run", "-"]).write_stdin("family = \"piuma\"\n[topology]\nkind = \"mehs\"\n"));
    assert!(status == 2 && said.contains("standard input:3:8") && said.contains("did you mean `mesh`?"), "{said}");
    let (status, _, said) = ran(program().args(["run", "-"]).write_stdin("# ".repeat(40_000_000)));
    assert!(status == 2 && said.contains("a scenario has up to"), "{said}");
}

/// One folder for everything that a run writes, unless a file's name has a folder of its own.
#[test]
fn out_governs_every_file() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("deep/er");
    let traffic = "[[traffic]]\nname = \"back\"\npattern = \"uniform\"\nrate = 0.05\nstop_cycle = 100\n";
    let scenario = folder.path().join("it.toml");
    fs::write(&scenario, format!("family = \"piuma\"\n[topology]\nkind = \"mesh\"\nsize = [2, 2]\n[[job]]\nname = \"sum\"\nelements = 3\n{traffic}")).unwrap();
    let elsewhere = folder.path().join("other/ladder.svg");
    let mut command = program();
    command.current_dir(folder.path()).arg("run").arg(&scenario).arg("--out").arg(&out);
    command.args(["--wave", "w.vcd", "--ladder", "l.txt", "--histogram", "h.csv", "--save-npy", "v.npy"]);
    let (status, shown, said) = ran(&mut command);
    assert_eq!(status, 0, "{shown}{said}");
    for name in ["it.json", "it.run.json", "w.vcd", "w.gtkw", "l.txt", "h.csv", "v.npy"] {
        assert!(out.join(name).is_file(), "{name} is not in the folder: {shown}");
    }
    let (status, _, said) =
        ran(program().arg("run").arg(&scenario).arg("--out").arg(&out).arg("--ladder").arg(&elsewhere));
    assert!(status == 0 && elsewhere.is_file(), "{said}");
}

/// The same for what curves, drawings and embeddings write.
#[test]
fn out_governs_the_files_of_curve_topology_and_embed() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new/folder");
    let go = |arguments: &[&str]| {
        let (status, shown, said) = ran(program().current_dir(folder.path()).args(arguments).arg("--out").arg(&out));
        assert_eq!(status, 0, "{arguments:?}: {shown}{said}");
    };
    go(&["curve", "mesh-uniform", "--rates", "0.05", "--tolerance", "1", "--csv", "c.csv", "--svg", "c.svg"]);
    go(&["topology", "allreduce-die", "--svg", "t.svg"]);
    go(&["embed", "allreduce-die", "--svg", "e.svg", "--save", "e.toml"]);
    for name in ["c.csv", "c.svg", "t.svg", "e.svg", "e.toml"] {
        assert!(out.join(name).is_file(), "{name}");
        assert!(!folder.path().join(name).exists(), "{name}");
    }
    let elsewhere = folder.path().join("else.svg");
    go(&["topology", "allreduce-die", "--svg", elsewhere.to_str().unwrap()]);
    assert!(elsewhere.is_file() && !out.join("else.svg").exists());
}

#[test]
fn units_take_decimal_numbers() {
    let told = |arguments: &[&str]| {
        let (status, shown, said) = ran(program().args(arguments));
        assert_eq!(status, 0, "{arguments:?}: {said}");
        shown
    };
    let alu = |dtype: &str, a: &str, b: &str| told(&["alu", "--op", "sum", "--type", dtype, a, b]);
    assert_eq!(alu("f32", "1.5", "-0.25"), alu("f32", "3fc00000", "be800000"));
    assert_eq!(alu("bf16", "0.1", "+3"), alu("bf16", "3dcd", "4040"));
    assert_eq!(alu("i32", "+10", "-3"), alu("i32", "a", "fffffffd"));
    assert_eq!(alu("f64", "1.0e3", "inf"), alu("f64", "408f400000000000", "7ff0000000000000"));
    // Digits alone stay a pattern.
    assert_eq!(alu("i32", "10", "1"), alu("i32", "0x10", "0x1"));
    let reduce = |operands: [&str; 3]| told(&[&["reduce", "--op", "sum", "--type", "f16"], &operands[..]].concat());
    assert_eq!(reduce(["1.5", "-0.25", "+3"]), reduce(["3e00", "b400", "4200"]));
    for (dtype, wrong, words) in [
        ("i32", "1.5", "1.5 is no i32"),
        ("u32", "-1", "-1 is no u32"),
        ("f32", "one", "nor a number with a point or a sign, such as 1.5"),
        ("f32", "1.5.2", "1.5.2 is no f32"),
    ] {
        let (status, _, said) = ran(program().args(["alu", "--op", "sum", "--type", dtype, wrong, "1"]));
        assert!(status == 2 && said.contains(words), "{wrong}: {said}");
    }
}

/// What a run took is beside the document, which has the same bytes whatever it took.
#[test]
fn wall_time_and_memory_are_beside_the_document() {
    let folder = tempfile::tempdir().unwrap();
    let document = |name: &str| {
        let out = folder.path().join(name);
        let output = watershed(["run", "barrier-die", "--out", out.to_str().unwrap()]);
        assert_eq!(output.status, 0, "{}", output.stderr);
        let took: serde_json::Value =
            serde_json::from_slice(&fs::read(out.join("barrier-die.run.json")).unwrap()).unwrap();
        assert!(took["wall_seconds"].as_f64().unwrap() > 0.0, "{took}");
        let cycles = took["cycles_per_second"].as_f64().unwrap() * took["wall_seconds"].as_f64().unwrap();
        assert!((cycles - 240.0).abs() < 1e-6, "{took}");
        #[cfg(target_os = "linux")]
        assert!(took["peak_memory_bytes"].as_u64().unwrap() > 1 << 20, "{took}");
        fs::read(out.join("barrier-die.json")).unwrap()
    };
    assert_eq!(document("a"), document("b"));
}

#[test]
fn quiet_and_talkative() {
    let older = "family = \"piuma\"\n[topology]\nkind = \"die\"\n[link]\ncycles_per_flit = 2\n[[collective]]\nkind = \"allreduce\"\n";
    let (status, plain, said) = ran(program().args(["run", "-"]).write_stdin(older));
    assert!(status == 0 && said.matches("note: ").count() == 2, "an older table and an older key: {said}");
    let (status, quiet, said) = ran(program().args(["run", "-", "-q"]).write_stdin(older));
    assert_eq!((status, said.as_str(), &quiet), (0, "", &plain), "only what is beside the result goes");
    let (_, _, said) = ran(program().args(["-q", "run", "nowhere"]));
    assert!(said.contains("error: there is no such scenario file"), "{said}");
    let (status, shown, said) = ran(program().args(["run", "-", "--verbose"]).write_stdin(TINY));
    assert!(status == 0 && said.contains("s  read standard input") && said.contains("s  ran "), "{said}");
    assert!(shown.contains("took  ") && shown.contains("cycles a second"), "{shown}");
    let (status, _, said) = ran(program().args(["run", "-", "-q", "-v"]).write_stdin(TINY));
    assert!(status == 2 && said.contains("cannot be used with"), "{said}");
}

#[test]
fn a_status_comes_by_itself_when_asked_for() {
    let long = ["run", "mesh-uniform", "--set", "measure.measure_cycles=40000", "--status", "0.05"];
    let (_, _, said) = ran(program().args(long).args(["--set", "traffic.0.stop_cycle=2000000"]));
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("status: after ")).collect();
    assert!(lines.len() >= 2, "{said}");
    // A network that carries traffic has flits in it, and heads that wait for each other.
    let last = lines.last().unwrap();
    let number = |before: &str, behind: &str| -> u64 {
        let at = last.find(behind).unwrap_or_else(|| panic!("{last}"));
        let text = &last[..at];
        text[text.rfind(before).unwrap_or_else(|| panic!("{last}")) + before.len()..].parse().unwrap()
    };
    assert!(number(" ", " flits were under way") > 0, "{last}");
    assert!(number("had waited ", " cycles at ") > 0 && last.contains(".I"), "{last}");
    for bad in ["0", "-1", "often"] {
        let (status, _, said) = ran(program().args(["run", "barrier-die"]).arg(format!("--status={bad}")));
        assert!(status == 2 && said.contains("second"), "{bad}: {said}");
    }
}

#[test]
fn colours_are_for_terminals_unless_they_are_asked_for() {
    let run = |arguments: &[&str], variable: Option<(&str, &str)>| {
        let mut command = program();
        command.args(["run", "barrier-die"]).args(arguments).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
        ran(command.envs(variable)).1
    };
    let plain = run(&[], None);
    assert!(!plain.contains('\u{1b}'), "{plain}");
    let coloured = run(&["--color", "always"], None);
    assert!(coloured.contains("\u{1b}[32mchecks\u{1b}[0m"), "{coloured:?}");
    assert_eq!(run(&["--color", "never"], None), plain);
    assert_eq!(run(&[], Some(("NO_COLOR", "1"))), plain);
    let json = run(&["--json", "--color", "always"], None);
    assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "JSON has no colours");
}

#[test]
fn manual_pages_are_made_of_the_same_definition() {
    let page = watershed(["man"]);
    assert!(
        page.status == 0 && page.stdout.contains(".TH watershed 1") && page.stdout.contains("\\-\\-quiet"),
        "{}",
        page.stdout
    );
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("man1");
    assert_eq!(watershed(["man", "--out", out.to_str().unwrap()]).status, 0);
    let page = |name: &str| fs::read_to_string(out.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(
        page("watershed-run.1").contains("\\-\\-wave\\-window") && page("watershed-run.1").contains("allreduce\\-die")
    );
    assert!(page("watershed-wave-show.1").contains(".TH watershed-wave-show 1"));
    let help = watershed(["--help"]).stdout;
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<_> = names.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() > 24, "{names:?}");
    for name in names {
        page(&format!("watershed-{name}.1"));
    }
    fs::write(folder.path().join("file"), "").unwrap();
    let refused = watershed(["man", "--out", folder.path().join("file").to_str().unwrap()]);
    assert!(refused.status == 2 && refused.stderr.contains("is a file"), "{}", refused.stderr);
}

/// What a shell's script asks: the program's own answer.
#[test]
fn completions_know_the_names_of_scenarios() {
    let asked = |words: &[&str]| {
        let mut command = program();
        command
            .env("WATERSHED_COMPLETE", "bash")
            .env("_CLAP_IFS", "\n")
            .env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string());
        ran(command.arg("--").args(words)).1
    };
    let found = asked(&["watershed", "run", "allreduce-d"]);
    let found: Vec<_> = found.lines().collect();
    assert!(found.contains(&"allreduce-die") && found.contains(&"allreduce-die-deep"), "{found:?}");
    assert!(found.iter().all(|name| name.starts_with("allreduce-d")), "{found:?}");
    assert!(asked(&["watershed", "run", "--wave-w"]).contains("--wave-window"));
    assert!(asked(&["watershed", "check", "testbench/jobs/any"]).contains("testbench/jobs/any-engine.toml"));
    assert!(!asked(&["watershed", "check", "REA"]).contains("README"), "only scenarios");
}

/// Every command that does something has an example, and no text is broken twice.
#[test]
fn every_help_has_an_example_and_is_broken_once() {
    let help = |path: &[&str]| {
        let output = watershed(path.iter().chain(&["--help"]));
        assert_eq!(output.status, 0, "{path:?}");
        output.stdout
    };
    let names = |help: &str| -> Vec<String> {
        let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
        let names = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        names.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
    };
    let mut seen = 0;
    for name in names(&help(&[])) {
        let text = help(&[&name]);
        assert!(text.contains("Example"), "{name}");
        for inner in names(&text) {
            assert!(help(&[&name, &inner]).contains("Example"), "{name} {inner}");
            seen += 1;
        }
        seen += 1;
        // Broken twice, a line goes on in a short one that goes on in another one.
        let lines: Vec<_> = text.lines().skip_while(|line| !line.starts_with("Exit status:")).collect();
        let broken = lines
            .windows(2)
            .filter(|pair| pair[0].starts_with("   ") && pair[0].len() < 50 && pair[1].starts_with("   "));
        assert_eq!(broken.count(), 0, "{name}: {text}");
    }
    assert!(seen > 28, "{seen}");
}

/// Commands of examples that take long, start another program, or need files that only a reader has.
const NOT_RUN: [&str; 18] = [
    "jq",
    "out/stages",
    "a.json",
    "sweep",
    "compare",
    "study",
    "exhaustive",
    "fuzz",
    "testfloat",
    "completions",
    "man",
    "mine",
    "curve",
    "test ",
    "wave open",
    "SCENARIO",
    "old.toml",
    "out/model",
];

/// Those of one help in four in `make test`, all in `make soak`.
#[test]
fn examples_of_the_help_work() {
    let pages = tempfile::tempdir().unwrap();
    assert_eq!(watershed(["man", "--out", pages.path().to_str().unwrap()]).status, 0);
    let folder = tempfile::tempdir().unwrap();
    for name in ["testbench", "traces"] {
        std::os::unix::fs::symlink(root().join(name), folder.path().join(name)).unwrap();
    }
    fs::create_dir(folder.path().join("out")).unwrap();
    let own = folder.path().join("bin");
    fs::create_dir(&own).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_watershed"), own.join("watershed")).unwrap();
    let shell = |line: &str| {
        let path = format!("{}:{}", own.display(), std::env::var("PATH").unwrap());
        let mut shell = std::process::Command::new("sh");
        let output = shell.args(["-c", line]).env("PATH", path).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    };
    fs::write(folder.path().join("operands.json"), "[1.5, -0.25, \"3ff0000000000000\"]").unwrap();
    fs::write(folder.path().join("operands.hex"), "3ff0000000000000 # one\n4000000000000000\n").unwrap();
    let contributions = r#"{"op": "int-sum", "contributions": [{"lanes": ["1", "2", "3", "4"], "count": 1, "rc": 0, "m": 0, "oflow_id": 0}]}"#;
    fs::write(folder.path().join("contributions.json"), contributions).unwrap();
    for (wave, same) in [("die.vcd", &["a.vcd", "b.vcd"][..]), ("die.fst", &["b.fst"])] {
        shell(&format!("watershed run allreduce-die --set job.0.elements=64 --wave {wave}"));
        for name in same {
            fs::copy(folder.path().join(wave), folder.path().join(name)).unwrap();
        }
    }
    shell("watershed run allreduce-die --set job.0.elements=64 --out out");
    let mut helps: Vec<String> = Vec::new();
    for page in fs::read_dir(pages.path()).unwrap() {
        let name = page.unwrap().file_name().to_string_lossy().into_owned();
        let words: Vec<&str> = name.trim_end_matches(".1").split('-').skip(1).collect();
        helps.push(watershed(words.iter().chain(&["--help"])).stdout);
    }
    helps.sort();
    let mut examples: Vec<Vec<&str>> = Vec::new();
    for help in &helps {
        let mut own = Vec::new();
        let lines = help.lines().skip_while(|line| !line.starts_with("Example")).skip(1);
        for line in lines.take_while(|line| !line.is_empty()) {
            // A line that is broken is no command any more.
            assert!(line.starts_with("  watershed ") || line.starts_with("  testfloat_gen "), "{line}");
            // A remark stands behind the command.
            let command = line.trim().split("   ").next().unwrap();
            if !NOT_RUN.iter().any(|part| command.contains(part)) {
                own.push(command);
            }
        }
        examples.push(own);
    }
    examples.retain(|own| !own.is_empty());
    let seen = examples.iter().flatten().count();
    assert!(seen > 70, "{seen}");
    // What one needs is there, or is written by those before it in its help.
    for command in share::one_in(4, &examples).flatten() {
        shell(command);
    }
}
