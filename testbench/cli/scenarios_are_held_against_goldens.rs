//! X-TEST-1: `watershed test` finds scenarios, holds what comes out against golden files and shows what differs.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;

use crate::share;
use crate::support::{Output, root};

/// A folder with scenarios, which goes at the end.
struct Suite(tempfile::TempDir);

const SUM: &str = "extends = 'allreduce-die'\ncollective.0.elements = 4\n";
const BARRIER: &str = "extends = 'barrier-die'\n";

impl Suite {
    fn new(files: &[(&str, &str)]) -> Suite {
        let suite = Suite(tempfile::tempdir().unwrap());
        for (name, text) in files {
            suite.write(name, text);
        }
        suite
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Replaces text in a file, which must have it.
    fn replace(&self, name: &str, from: &str, to: &str) {
        let text = self.read(name);
        assert!(text.contains(from), "{name} has no `{from}`:\n{text}");
        self.write(name, &text.replacen(from, to, 1));
    }

    /// `watershed test` in the folder.
    fn test(&self, arguments: &[&str]) -> Output {
        self.test_with(arguments, None)
    }

    fn test_with(&self, arguments: &[&str], ci: Option<&str>) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_watershed"));
        command.current_dir(self.0.path()).arg("test").args(arguments).env_remove("CI");
        if let Some(ci) = ci {
            command.env("CI", ci);
        }
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        assert!(!stderr.contains("panicked"), "{stderr}");
        Output { status: output.status.code().unwrap(), stdout, stderr }
    }

    /// The same, which must end with a status and say some words.
    fn says(&self, arguments: &[&str], status: i32, words: &[&str]) -> Output {
        let output = self.test(arguments);
        let all = format!("{}{}", output.stdout, output.stderr);
        assert_eq!(output.status, status, "{arguments:?}:\n{all}");
        for word in words {
            assert!(all.contains(word), "{arguments:?}: `{word}` is missing in:\n{all}");
        }
        output
    }
}

#[test]
fn what_came_out_once_is_held_against_what_comes_out_now() {
    let suite = Suite::new(&[("sum.toml", SUM), ("deep/barrier.toml", BARRIER), ("sweep.toml", "[[scenario]]\n")]);
    suite.says(&[], 1, &["sum", "DIFFERS", "there is no golden file yet", "2 scenarios: 2 differ", "--accept makes"]);
    assert!(!suite.at("golden").exists(), "nothing is written unless it is accepted");
    suite.says(&["--accept"], 0, &["2 scenarios: 2 accepted"]);
    for name in ["golden/sum.json", "golden/sum.vcd", "golden/sum.wave.snap", "deep/golden/barrier.ladder.snap"] {
        assert!(suite.at(name).exists(), "{name}");
    }
    let same = suite.says(&[], 0, &["2 scenarios: 2 as they were"]);
    assert!(same.stderr.is_empty(), "{}", same.stderr);
    // Elsewhere, in folders of the same names.
    suite.says(&[".", "--golden", "elsewhere", "--accept"], 0, &["2 accepted"]);
    assert_eq!(suite.read("elsewhere/deep/barrier.json"), suite.read("deep/golden/barrier.json"));
    suite.says(&["--golden", "elsewhere"], 0, &["2 as they were"]);
}

#[test]
fn a_difference_is_shown_in_lines_values_and_text_waves() {
    let suite = Suite::new(&[("sum.toml", SUM)]);
    suite.says(&["--accept"], 0, &[]);
    suite.write("sum.toml", &format!("{SUM}switch.ceng.stages = 4\n"));
    let words = [
        "golden/sum.json\n",
        "-   \"cycles\": ",
        "+   \"cycles\": ",
        "golden/sum.summary.snap\n",
        "golden/sum.vcd\n",
        "the waveforms differ",
        "first difference at ",
        "die.tile2.sw4.switch",
        "    golden\n    cycle ",
        "    this run\n    cycle ",
        "golden/sum.wave.snap\n",
        "1 scenario: 1 differ",
    ];
    let before = suite.read("golden/sum.json");
    suite.says(&[], 1, &words);
    assert_eq!(suite.read("golden/sum.json"), before);
    // Accepting shows the same, then takes it.
    suite.says(&["--accept"], 0, &words[..11]);
    assert_ne!(suite.read("golden/sum.json"), before);
    suite.says(&[], 0, &["1 as they were"]);
    // Where CI is set nobody reads what is shown.
    suite.write("sum.toml", SUM);
    let refused = suite.test_with(&["--accept"], Some("true"));
    assert!(
        refused.status == 2 && refused.stderr.contains("--accept is refused where CI is set"),
        "{}",
        refused.stderr
    );
    assert_ne!(suite.read("golden/sum.json"), before);
}

#[test]
fn every_golden_file_is_looked_at() {
    let suite = Suite::new(&[("barrier.toml", BARRIER)]);
    suite.says(&["--accept"], 0, &[]);
    // The third moment at which something changes comes half a cycle late.
    let wave = suite.read("golden/barrier.vcd");
    let moment = wave.lines().filter(|line| line.starts_with('#')).nth(2).unwrap();
    let (moment, later) = (format!("\n{moment}\n"), format!("\n{}500\n", moment.strip_suffix("000").unwrap()));
    for (name, from, to) in [
        ("golden/barrier.json", "\"seed\": 1", "\"seed\": 2"),
        ("golden/barrier.summary.snap", "bit-exact", "bit-exakt"),
        ("golden/barrier.wave.snap", "cycle", "zycle"),
        ("golden/barrier.vcd", &moment, &later),
        ("golden/barrier.ladder.snap", "core0", "core9"),
    ] {
        let before = suite.read(name);
        suite.replace(name, from, to);
        suite.says(&[], 1, &[name, "1 differ"]);
        suite.write(name, &before);
        fs::remove_file(suite.at(name)).unwrap();
        suite.says(&[], 1, &[name, "there is no golden file yet"]);
        suite.write(name, &before);
    }
    suite.says(&[], 0, &[]);
}

#[test]
fn tolerances_hold_for_the_numbers_they_name() {
    let table = |value: &str, how: &str| {
        format!("{SUM}[golden]\nfiles = ['document', 'summary']\ntolerance = [{{ value = '{value}', {how} }}]\n")
    };
    let suite = Suite::new(&[("sum.toml", &table("cycles", "absolute = 3"))]);
    suite.says(&["--accept"], 0, &[]);
    let golden = suite.read("golden/sum.json");
    let line = golden.lines().find(|line| line.starts_with("  \"cycles\"")).unwrap().to_owned();
    let cycles: u64 = line.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
    let with = |by: u64| golden.replacen(&line, &format!("  \"cycles\": {},", cycles + by), 1);
    suite.write("golden/sum.json", &with(3));
    suite.says(&[], 0, &["as it was"]);
    // Within its tolerance a golden stays what it is.
    suite.says(&["--accept"], 0, &["as it was"]);
    assert_eq!(suite.read("golden/sum.json"), with(3));
    suite.write("golden/sum.json", &with(4));
    suite.says(&[], 1, &[&format!("-   \"cycles\": {}", cycles + 4), &format!("+   \"cycles\": {cycles}")]);
    // A part of the golden number; and lines of the summary by what they begin with.
    suite.write("sum.toml", &table("cycles", "relative = 0.5"));
    suite.says(&[], 0, &[]);
    suite.write("golden/sum.json", &golden);
    suite.write("sum.toml", &table("summary.busiest link", "relative = 2"));
    suite.says(&[], 0, &[]);
    suite.replace("golden/sum.summary.snap", ": 4 flits", ": 2 flits");
    suite.says(&[], 0, &[]);
    suite.write("sum.toml", &table("summary.checks", "relative = 2"));
    suite.says(&[], 1, &[": 2 flits", ": 4 flits"]);
}

#[test]
fn tolerances_that_mean_nothing_are_refused() {
    for (table, words) in [
        ("value = 'collectives.0.latency_cycle', absolute = 1", "\"collectives.0.latency_cycle\" names no number"),
        ("value = 'collectives.0.name', absolute = 1", "names no number"),
        ("value = 'cycles'", "this tolerance allows nothing"),
        ("value = 'cycles', absolute = -1", "-1"),
        ("value = 'a.{b', absolute = 1", "a.{b"),
        ("value = 'cycles', relativ = 1", "did you mean `relative`"),
        ("absolute = 1", "value"),
    ] {
        let text = format!("{SUM}golden.tolerance = [{{ {table} }}]\n");
        let suite = Suite::new(&[("sum.toml", &text)]);
        // The caret points into the scenario, and nothing is accepted.
        suite.says(&["--accept"], 1, &["ERROR", words, "sum.toml:3:", "^", "1 with an error"]);
        assert!(!suite.at("golden").exists(), "{table}");
    }
    let suite =
        Suite::new(&[("sum.toml", &format!("{SUM}golden.tolerance = [{{ value = 'cycle', absolute = 1 }}]\n"))]);
    suite.says(&[], 1, &["did you mean `cycles`"]);
}

#[test]
fn the_golden_table_acts_or_is_refused() {
    for (table, words) in [
        ("signals = ['**.no_such_signal']", "no signal matches"),
        ("signals = ['**.ceng.*', 'no.such.**']", "no signal matches \"no.such.**\""),
        ("picture.signals = ['**.no_such_signal']", "no signal matches `**.no_such_signal`"),
        ("from_cycle = 1000000\nto_cycle = 1000009", "before cycle 1000000"),
        ("from_cycle = 9\nto_cycle = 3", "the window ends before it starts"),
        ("files = ['summary']\nto_cycle = 3", "is about a wave, and `golden.files` has none"),
        ("files = ['ladders']", "did you mean `ladder`"),
    ] {
        let suite = Suite::new(&[("sum.toml", &format!("{SUM}[golden]\n{table}\n"))]);
        suite.says(&["--accept"], 1, &["ERROR", words, "sum.toml:", "^"]);
    }
    let accepted = |table: &str| {
        let suite = Suite::new(&[("sum.toml", &format!("{SUM}[golden]\n{table}\n"))]);
        suite.says(&["--accept"], 0, &[]);
        let file = |name: &str| fs::read_to_string(suite.at(name)).unwrap_or_default();
        // The header of a wave has the hash of nothing that is about golden files.
        [file("golden/sum.json"), file("golden/sum.vcd"), file("golden/sum.wave.snap"), file("golden/sum.ladder.snap")]
    };
    let plain = accepted("");
    assert!(plain[..3].iter().all(|text| !text.is_empty()) && plain[3].is_empty());
    for (table, wave, picture) in [
        ("signals = ['**.sw4.switch.ceng.*']", true, true),
        ("from_cycle = 30", true, true),
        ("to_cycle = 60", true, false),
        ("picture.signals = ['**.sw4.switch.ceng.state']", false, true),
        ("picture.from_cycle = 30", false, true),
        ("picture.to_cycle = 40", false, true),
        ("tolerance = [{ value = 'cycles', absolute = 1 }]", false, false),
    ] {
        let now = accepted(table);
        assert_eq!((now[1] != plain[1], now[2] != plain[2]), (wave, picture), "{table}");
        assert_eq!(now[0], plain[0], "{table}: the document does not know of golden files");
    }
    assert!(accepted("files = ['ladder']")[3].contains("core0"));
    let left_out = Suite::new(&[("sum.toml", &format!("{SUM}golden.files = []\n"))]);
    left_out.says(&[], 0, &["left out", "1 scenario: 1 left out"]);
}

#[test]
fn scenarios_are_chosen_by_name() {
    let suite = Suite::new(&[("a/sum.toml", SUM), ("a/barrier.toml", BARRIER), ("b/sum.2.toml", SUM)]);
    suite.says(&["--accept"], 0, &["3 accepted"]);
    for (filters, count) in [
        (&["sum"][..], 2),
        (&["a/"], 2),
        (&["a/*"], 2),
        (&["sum.?"], 1),
        (&["*"], 3),
        (&["b/*", "barrier"], 2),
        (&["{a,b}/sum"], 1),
    ] {
        let arguments: Vec<&str> = filters.iter().flat_map(|filter| ["--filter", filter]).collect();
        let output = suite.says(&arguments, 0, &[&format!("{count} as they were")]);
        assert_eq!(output.stdout.lines().count(), count + 1, "{filters:?}: {}", output.stdout);
    }
    suite.says(&["--filter", "products"], 2, &["none of 3 scenarios is named \"products\""]);
    suite.says(&["--filter", "a/{b"], 2, &["--filter a/{b"]);
    let one = suite.says(&["b/sum.2.toml"], 0, &["1 as they were"]);
    assert!(one.stdout.starts_with("b/sum.2  as it was  "), "{}", one.stdout);
}

/// Two numbers of threads in `make test`, four in `make soak`, each against one.
#[test]
fn output_does_not_depend_on_the_threads() {
    let long = "extends = 'allreduce-die'\n";
    let suite =
        Suite::new(&[("a.toml", long), ("b.toml", BARRIER), ("c.toml", SUM), ("d.toml", SUM), ("e.toml", "seed =")]);
    suite.says(&["--accept"], 1, &["4 accepted, 1 with an error"]);
    suite.replace("golden/c.json", "\"seed\": 1", "\"seed\": 2");
    let one = suite.says(&["-j", "1"], 1, &["3 as they were, 1 differ, 1 with an error"]).stdout;
    for jobs in share::one_in(2, ["2", "3", "0", "8"]) {
        assert_eq!(suite.test(&["-j", jobs]).stdout, one, "{jobs}");
    }
    let names: Vec<&str> = one.lines().filter(|line| !line.starts_with(' ')).filter_map(|line| line.get(..2)).collect();
    assert_eq!(names, ["a ", "b ", "c ", "d ", "e ", "5 "]);
}

#[test]
fn what_cannot_be_tested_is_named() {
    let suite = Suite::new(&[("none/sweep.toml", "[[scenario]]\n"), ("sum.toml", SUM)]);
    fs::create_dir(suite.at("empty")).unwrap();
    suite.says(&["empty"], 2, &["there is no scenario below empty, no TOML file at all"]);
    suite.says(&["none"], 2, &["there is no scenario below none, one TOML file that is no scenario"]);
    suite.says(&["missing"], 2, &["there is no folder or file missing"]);
    suite.says(&["--accept"], 0, &[]);
    suite.says(&["--junit", "sum.toml"], 2, &["--junit would write over sum.toml, which is read"]);
    suite.says(&["--junit", "golden/sum.json"], 2, &["which is read"]);
    // A golden file that nobody can read, and one whose scenario is gone.
    let before = suite.read("golden/sum.summary.snap");
    fs::write(suite.at("golden/sum.summary.snap"), [0xff, 0xfe, 0x00]).unwrap();
    suite.says(&[], 1, &["ERROR", "cannot read the golden file ./golden/sum.summary.snap: ", "1 with an error"]);
    suite.write("golden/sum.summary.snap", &before);
    suite.write("golden/sum.vcd", "no wave");
    suite.says(&[], 1, &["ERROR", "golden/sum.vcd"]);
    suite.says(&["--accept"], 1, &["ERROR", "golden/sum.vcd"]);
    fs::remove_file(suite.at("golden/sum.vcd")).unwrap();
    suite.says(&["--accept"], 0, &["accepted"]);
    suite.write("golden/gone.json", "{}");
    suite.says(
        &[],
        1,
        &["golden/gone.json\n  this golden file belongs to no scenario: --prune removes it", "one golden file without"],
    );
    suite.write("golden/sum.ladder.snap", "x");
    suite.says(&[], 1, &["LEFT OVER", "golden/sum.ladder.snap", "compares nothing with this golden file"]);
}

#[test]
fn golden_files_that_nothing_is_compared_with_are_removed_when_asked() {
    let suite = Suite::new(&[("sum.toml", SUM)]);
    suite.says(&["--accept"], 0, &[]);
    let stray = ["golden/gone.json", "golden/gone.vcd", "golden/sum.ladder.snap"];
    for name in stray {
        suite.write(name, "{}");
    }
    suite.write("golden/notes.txt", "no golden file");
    let left = |names: &[&str]| names.iter().filter(|name| suite.at(name).exists()).count();
    // Who asks for some scenarios does not ask about the others' files, and nobody's are removed unasked.
    suite.says(&["--accept"], 1, &["2 golden files without a scenario"]);
    suite.says(&["--prune", "--filter", "sum"], 0, &["golden/sum.ladder.snap\n  removed: "]);
    assert_eq!(left(&stray), 2);
    suite.says(&["--prune"], 0, &["golden/gone.json\n  removed: ", "golden/gone.vcd\n  removed: ", "1 as they were"]);
    assert_eq!((left(&stray), left(&["golden/notes.txt", "golden/sum.json"])), (0, 2));
}

#[test]
fn a_run_that_fails_its_checks_fails_whatever_is_accepted() {
    let suite = Suite::new(&[("sum.toml", &format!("{SUM}limits.max_cycles = 40\n"))]);
    suite.says(&["--accept"], 1, &["FAILS", "the run fails its own checks", "1 fail their own checks"]);
    suite.says(&[], 1, &["FAILS", "progress"]);
}

/// An element of XML: its name, its attributes, its text.
type Element = (String, Vec<(String, String)>, String);

/// Reads XML strictly: tags nest, attributes are quoted and there once, `<` and `&` stand for nothing but themselves. Gives the names of
/// elements with their attributes, in order, and the text in them.
fn elements(xml: &str) -> Vec<Element> {
    fn plain(text: &str) -> String {
        for piece in text.split('&').skip(1) {
            assert!(["amp;", "lt;", "gt;", "quot;"].iter().any(|entity| piece.starts_with(entity)), "&{piece}");
        }
        assert!(!text.contains('<') && text.chars().all(|c| c >= ' ' || "\n\t\r".contains(c)), "{text}");
        text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
    }
    let mut rest = xml.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").expect("a declaration");
    let (mut found, mut open): (Vec<Element>, Vec<usize>) = (Vec::new(), Vec::new());
    while let Some(start) = rest.find('<') {
        let text = plain(&rest[..start]);
        match open.last() {
            Some(at) => found[*at].2 += &text,
            None => assert!(text.trim().is_empty(), "text outside: {text}"),
        }
        // A tag ends at a `>` outside of quotes.
        let mut quoted = false;
        let end = rest[start..].find(|c| {
            quoted ^= c == '"';
            c == '>' && !quoted
        });
        let end = start + end.expect("a tag that ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            let at = open.pop().expect("a tag that is open");
            assert_eq!(found[at].0, name);
            continue;
        }
        let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        let mut list: Vec<(String, String)> = Vec::new();
        while !attributes.trim().is_empty() {
            let (key, value) = attributes.trim_start().split_once("=\"").expect("key=\"value\"");
            let (value, more) = value.split_once('"').expect("a closing quote");
            assert!(list.iter().all(|(known, _)| known != key), "{key} twice");
            list.push((key.to_owned(), plain(value)));
            attributes = more;
        }
        found.push((name.to_owned(), list, String::new()));
        if !closed {
            open.push(found.len() - 1);
        }
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{rest}");
    found
}

#[test]
fn junit_says_the_same_in_well_formed_xml() {
    let suite = Suite::new(&[
        ("a/same.toml", SUM),
        ("a/other.toml", SUM),
        ("left<out>&\"more\".toml", "extends = 'barrier-die'\ngolden.files = []\n"),
        ("wrong.toml", "family = \"<&>\u{1b}\"\n"),
    ]);
    suite.says(&["--accept"], 1, &[]);
    suite.replace("a/golden/other.json", "\"seed\": 1", "\"seed\": \"<\u{7}&>\"");
    suite.write("a/golden/gone.json", "{}");
    suite.says(
        &["--junit", "out/junit.xml"],
        1,
        &["4 scenarios: 1 as they were, 1 differ, 1 with an error, 1 left out"],
    );
    let found = elements(&suite.read("out/junit.xml"));
    let get =
        |at: usize, key: &str| found[at].1.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str());
    for at in 0..2 {
        for (key, value) in [("tests", "5"), ("failures", "2"), ("errors", "1"), ("skipped", "1")] {
            assert_eq!(get(at, key), Some(value), "{key}");
        }
    }
    let names: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).collect();
    let expected = [
        "testsuites",
        "testsuite",
        "testcase",
        "failure",
        "testcase",
        "testcase",
        "skipped",
        "testcase",
        "error",
        "testcase",
        "failure",
    ];
    assert_eq!(names, expected);
    assert_eq!((get(2, "classname"), get(2, "name")), (Some("a"), Some("other")));
    assert!(found[3].2.contains("\"seed\": \"<&>\"") && found[3].2.contains("a/golden/other.json"), "{}", found[3].2);
    assert_eq!((get(4, "name"), get(5, "name")), (Some("same"), Some("left<out>&\"more\"")));
    assert!(found[8].2.contains("wrong.toml"), "{}", found[8].2);
    assert_eq!(get(9, "name"), Some("a/golden/gone.json"));
    assert!(found[2].1.iter().any(|(key, value)| key == "time" && value.parse::<f64>().is_ok()));
}

/// The project's own goldens by the command, as a user would call it.
#[test]
fn the_project_s_own_goldens_are_a_call_of_it() {
    let output = Command::new(env!("CARGO_BIN_EXE_watershed"))
        .current_dir(root())
        .args(["test", "testbench/pbv", "--golden", "golden/pbv", "--filter", "fig"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    let scenarios = fs::read_dir(root().join("testbench/pbv")).unwrap().flatten();
    let count = scenarios.filter(|entry| Path::new(&entry.file_name()).to_string_lossy().starts_with("fig")).count();
    assert!(count > 3 && text.ends_with(&format!("{count} scenarios: {count} as they were\n")), "{text}");
}
