//! Names of signals: listed for other programs, and told where somebody wrote one that is not there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::{Output, watershed};

/// The names that a VCD declares and their widths, read from its header as the standard has it.
fn declared(vcd: &Path) -> BTreeMap<String, u32> {
    let text = fs::read_to_string(vcd).unwrap();
    let (header, _) = text.split_once("$enddefinitions").unwrap();
    let words: Vec<&str> = header.split_whitespace().collect();
    let (mut scopes, mut found) = (Vec::new(), BTreeMap::new());
    for (at, word) in words.iter().enumerate() {
        match *word {
            "$scope" => scopes.push(words[at + 2]),
            "$upscope" => {
                scopes.pop().unwrap();
            }
            "$var" => {
                let name = format!("{}.{}", scopes.join("."), words[at + 4]);
                found.insert(name, words[at + 2].parse().unwrap());
            }
            _ => {}
        }
    }
    found
}

fn fine<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    let output = watershed(arguments);
    assert_eq!((output.status, &*output.stderr), (0, ""), "{}", output.stdout);
    output
}

#[test]
fn every_name_is_a_line_of_its_own_in_any_format() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for scenario in ["any-engine", "several-engines", "fig4-late-leaf", "goal-mesh"] {
        for format in ["vcd", "fst"] {
            let wave = at(&format!("{scenario}.{format}"));
            watershed(["run", scenario, "--wave", &wave, "--set", "limits.max_cycles=50", "-q"]);
        }
        let expected = declared(Path::new(&at(&format!("{scenario}.vcd"))));
        assert!(expected.len() > 100, "{scenario}: {}", expected.len());
        let listed = |of: &str| {
            let lines: Vec<String> = fine(["wave", "list", of]).stdout.lines().map(str::to_owned).collect();
            let mut sorted = lines.clone();
            sorted.sort();
            (lines, sorted)
        };
        let (vcd, sorted) = listed(&at(&format!("{scenario}.vcd")));
        assert_eq!(sorted, expected.keys().cloned().collect::<Vec<_>>(), "{scenario}");
        assert_eq!(listed(&at(&format!("{scenario}.fst"))).0, vcd, "{scenario}");
        assert_eq!(listed(scenario).1, sorted, "{scenario}: before there is a waveform");
        let long = fine(["wave", "list", &at(&format!("{scenario}.vcd")), "--long"]).stdout;
        for line in long.lines() {
            let columns: Vec<&str> = line.split('\t').collect();
            assert_eq!(columns.len(), 3, "{line}");
            assert_eq!(columns[1].parse(), Ok(expected[columns[0]]), "{line}");
        }
    }
}

#[test]
fn lists_are_filtered_and_tell_states() {
    let long = fine(["wave", "list", "allreduce-die", "**.sw4.switch.ceng.*", "--long"]).stdout;
    insta::assert_snapshot!(long.replace('\t', " | "), @r"
    die.tile2.sw4.switch.ceng.state | 2 | IDLE,GATHER,REDUCE,SCAN
    die.tile2.sw4.switch.ceng.operands | 8 | bits
    die.tile2.sw4.switch.ceng.in_flight | 8 | bits
    ");
    // Details are listed if a glob names them, as they are recorded.
    let tree =
        fine(["wave", "list", "allreduce-die", "**.sw4.**.tree.operands.valid", "**.sw4.switch.ceng.state"]).stdout;
    let tree: Vec<&str> = tree.lines().collect();
    assert_eq!(tree.len(), 2, "{tree:?}");
    let shallow = fine(["wave", "list", "allreduce-die", "--depth", "5"]).stdout;
    let all = fine(["wave", "list", "allreduce-die"]).stdout;
    let deepest = |text: &str| text.lines().map(|name| name.matches('.').count()).max().unwrap();
    assert!(deepest(&shallow) == 5 && deepest(&all) > 5);
    let output = watershed(["wave", "list", "allreduce-die", "**.ceng.sate"]);
    assert_eq!(output.status, 2);
    assert!(output.stderr.contains("did you mean `**.ceng.state`?"), "{}", output.stderr);
    for (what, words) in [
        ("README.md", "README.md"),
        ("golden", "golden is a folder, not a waveform or a scenario"),
        ("nowhere.vcd", "no such scenario"),
    ] {
        let output = watershed(["wave", "list", what]);
        assert!(output.status == 2 && output.stderr.contains(words), "{what}: {}", output.stderr);
    }
}

/// What `run --trigger` and `wave show --at` say of a condition.
fn refused(condition: &str, wave: &str) -> [String; 2] {
    let out = tempfile::tempdir().unwrap();
    let out = out.path().to_str().unwrap();
    let run = watershed(["run", "allreduce-die", "--wave", "never.vcd", "--out", out, "--trigger", condition]);
    let show = watershed(["wave", "show", wave, "--at", condition]);
    [run, show].map(|output| {
        assert_eq!((output.status, &*output.stdout), (2, ""), "{condition}");
        output.stderr
    })
}

#[test]
fn wrong_names_in_conditions_lead_to_right_ones() {
    let folder = tempfile::tempdir().unwrap();
    let wave = folder.path().join("die.vcd");
    let wave = wave.to_str().unwrap();
    watershed(["run", "allreduce-die", "--wave", wave, "--set", "limits.max_cycles=50", "-q"]);
    for (condition, told) in [
        ("die.tile2.sw4.switch.ceng.stat == REDUCE", "did you mean `die.tile2.sw4.switch.ceng.state`?"),
        ("sw4.switch.ceng.state == REDUCE", "written whole, did you mean `die.tile2.sw4.switch.ceng.state`?"),
        ("die.tile2.sw4.switch.ceng == REDUCE", "a scope with `die.tile2.sw4.switch.ceng.state`, "),
        // Whichever side it stands on, the signal is named and not the state.
        ("REDUCE == die.tile2.sw4.switch.ceng.stat", "did you mean `die.tile2.sw4.switch.ceng.state`?"),
        (
            "die.tile2.sw4.switch.ceng.state == die.tile2.sw5.switch.ceng.stat",
            "did you mean `die.tile2.sw5.switch.ceng.state`?",
        ),
    ] {
        for text in refused(condition, wave) {
            assert!(text.contains(told) && text.contains("watershed wave list "), "{condition}: {text}");
        }
    }
    for (condition, told) in [
        (
            "die.tile2.sw4.switch.ceng.state == REDUSE",
            "its states are IDLE, GATHER, REDUCE, SCAN; did you mean REDUCE?",
        ),
        // A state is no number, so this would hold in no cycle.
        ("die.tile2.sw4.switch.ceng.state == 2", "compare it with == or != and one of IDLE, GATHER, REDUCE, SCAN"),
        ("die.tile2.sw4.switch.ceng.state", "compare it with == or != and one of"),
        ("die.*.state == IDLE", "`die.*.state` is a glob; a condition takes one signal by its whole name"),
        ("**.ceng.state==IDLE", "`**.ceng.state` is a glob"),
        ("x.y == 1 and (die.in[0-3].full == 1)", "`die.in[0-3].full` is a glob"),
        ("die.core?.count > 2", "`die.core?.count` is a glob"),
        ("die.tile2.sw4.switch.ceng.state = IDLE", "`==` compares"),
        ("die.tile2.sw4.switch.ceng.operands > 10 ns", "numbers have no units here"),
    ] {
        for text in refused(condition, wave) {
            assert!(text.contains(told), "{condition}: {text}");
            assert!(!text.contains("prints the names of all signals"), "no name is wrong: {text}");
        }
    }
    // A product is none.
    let product = "die.tile2.sw4.switch.ceng.operands * die.tile2.sw4.switch.ceng.in_flight >= 0";
    assert_eq!(watershed(["wave", "show", wave, "--at", product]).status, 0);
}

#[test]
fn wrong_globs_lead_to_right_ones() {
    let folder = tempfile::tempdir().unwrap();
    let wave = folder.path().join("die.fst");
    let wave = wave.to_str().unwrap();
    watershed(["run", "allreduce-die", "--wave", wave, "--set", "limits.max_cycles=50", "-q"]);
    let show = |globs: &[&str]| {
        let signals = globs.iter().flat_map(|glob| ["--signals", glob]);
        watershed(["wave", "show", wave, "--window", "1..3"].into_iter().chain(signals))
    };
    let output = show(&["**.sw4.switch.ceng.stat"]);
    assert_eq!(output.status, 2);
    assert!(output.stderr.contains("did you mean `**.sw4.switch.ceng.state`?"), "{}", output.stderr);
    assert!(output.stderr.contains(&format!("watershed wave list {wave}` prints all names")), "{}", output.stderr);
    // Beside one that matches, it is a note.
    let output = show(&["**.sw4.switch.ceng.state", "**.sw5.swich.ceng.state"]);
    assert_eq!(output.status, 0);
    assert!(
        output.stderr.contains("note: no signal matches `**.sw5.swich.ceng.state`; did you mean"),
        "{}",
        output.stderr
    );
    let output = watershed(["wave", "diff", wave, wave, "--ignore", "**.ceng.sate"]);
    assert_eq!(output.status, 0);
    assert!(output.stderr.contains("did you mean `**.ceng.state`?"), "{}", output.stderr);
    assert_eq!(fine(["wave", "diff", wave, wave, "--ignore", "**.ceng.state"]).stderr, "");
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let run = watershed(["run", "allreduce-die", "--wave", "x.vcd", "--out", out, "--signals", "**.ceng.stat"]);
    assert!(run.status == 2 && run.stderr.contains("did you mean `**.ceng.state`?"), "{}", run.stderr);
    // The tests run where the file of the shipped scenario is.
    assert!(run.stderr.contains("wave list testbench/piuma/allreduce-die.toml` prints"), "{}", run.stderr);
    // So it is in a run.
    let x = folder.path().join("x.vcd");
    let globs = ["--signals", "**.sw4.**.stat", "--signals", "**.core0.switch.ceng.*", "--wave", x.to_str().unwrap()];
    let output = watershed([&["run", "allreduce-die", "--set", "job.0.elements=4"], &globs[..]].concat());
    assert_eq!(output.status, 0, "{}", output.stderr);
    let note = "note: no signal matches `**.sw4.**.stat`; did you mean `**.sw4.**.state`?";
    assert!(output.stderr.contains(note), "{}", output.stderr);
    // What only one of two files has is no useless glob.
    let [one, both] =
        [("one.vcd", "**.core0.memory.**"), ("both.vcd", "**.core{0,1}.memory.**")].map(|(name, signals)| {
            let path = folder.path().join(name).to_str().unwrap().to_owned();
            fine(["run", "allreduce-die", "--wave", &path, "--signals", signals, "--set", "job.0.elements=4", "-q"]);
            path
        });
    for [a, b] in [[&one, &both], [&both, &one]] {
        assert_eq!(watershed(["wave", "diff", a, b]).status, 1);
        let output = fine(["wave", "diff", a, b, "--ignore", "**.core1.**"]);
        assert!(output.stdout.contains("equal") && output.stderr.is_empty(), "{} {}", output.stdout, output.stderr);
    }
    for target in [wave, "allreduce-die"] {
        let output = watershed(["wave", "list", target, "**.ceng.state", "**.ceng.sate"]);
        assert!(output.status == 0 && output.stdout.lines().count() > 10, "{}", output.stdout);
        assert!(output.stderr.contains("note: no signal matches `**.ceng.sate`"), "{}", output.stderr);
    }
}
