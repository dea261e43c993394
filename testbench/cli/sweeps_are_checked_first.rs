//! Issue 8: a sweep file is checked before its first point: keys, names of columns, and what has changed since the last time.

use std::fs;
use std::path::Path;

use crate::support::{Output, watershed};

/// Runs a sweep file of this text in a folder; file names in messages are cut to their last part.
fn sweep(folder: &Path, text: &str, more: &[&str]) -> Output {
    let file = folder.join("s.toml");
    fs::write(&file, text).unwrap();
    let out = folder.join("out");
    let output = watershed([&["sweep", file.to_str().unwrap(), "-o", out.to_str().unwrap()], more].concat());
    let stderr = output.stderr.replace(&format!("{}/", folder.display()), "");
    Output { stderr, ..output }
}

/// What is wrong with a sweep file, of which nothing was run.
fn refused(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = sweep(folder.path(), text, &[]);
    assert_eq!(output.status, 2, "{text}: {}{}", output.stdout, output.stderr);
    assert!(!folder.path().join("out/points.csv").exists(), "{text}");
    assert!(!folder.path().join("out/sweep.jsonl").exists(), "{text}");
    output.stderr
}

#[test]
fn a_key_that_no_scenario_has_is_shown_with_a_caret() {
    let text = "
[[scenario]]
file = \"barrier-die\"

[[axis]]
key = \"switch.ceng.stagez\"
values = [1, 2]
";
    assert_eq!(
        refused(text).trim_end(),
        "\
error: unknown key `stagez` in `switch.ceng`
 --> s.toml:6:20
  |
6 | key = \"switch.ceng.stagez\"
  |                    ^^^^^^
  = expected: `stages`, `radix`, `operand_slots`, `scan_slots` or `result_slots`
  = help: did you mean `stages`?
  = help: the scenario is barrier-die"
    );
}

#[test]
fn keys_are_checked_wherever_they_stand() {
    let begin = "[[scenario]]\nfile = \"allreduce-die\"\n";
    for (rest, place, words) in [
        // A table that there is not, and the key of one scenario only.
        ("[[axis]]\nkey = \"swich.ceng.stages\"\nvalues = [1]\n", "s.toml:4:8", "did you mean `switch`?"),
        ("[[scenario.axis]]\nkey = \"link.latency\"\nvalues = [1]\n", "s.toml:4:13", "`latency_ns`"),
        // Linked keys: the second is wrong.
        (
            "[[axis]]\nname = \"n\"\nkeys = [\"switch.ceng.stages\", \"clock.frequency\"]\nvalues = [[1, 400]]\n",
            "s.toml:5:38",
            "did you mean `frequency_mhz`?",
        ),
        // An element that the list has not, and one that is no list.
        ("[[axis]]\nkey = \"collective.3.elements\"\nvalues = [1]\n", "s.toml:4:19", "the index 0"),
        ("[[axis]]\nkey = \"seed.x\"\nvalues = [1]\n", "s.toml:4:13", "cannot be set inside an integer"),
        ("[[axis]]\nkey = \"switch..stages\"\nvalues = [1]\n", "s.toml:4:15", "a key is missing here"),
        // What is set for all points is checked in the same way.
        ("set = [\"seed=1\", \"swith.arbiter=matrix\"]\n", "s.toml:3:19", "did you mean `switch`?"),
        // Of the values none fits.
        (
            "[[axis]]\nkey = \"switch.arbiter\"\nvalues = [\"mtrix\", \"robin\"]\n",
            "s.toml:5:11",
            "did you mean `matrix`?",
        ),
        (
            "[[axis]]\nkey = \"switch.ceng.stages\"\nrange = { from = 90, to = 99, count = 2 }\n",
            "s.toml:",
            "is 90, out of range",
        ),
    ] {
        let error = refused(&format!("{begin}{rest}"));
        assert!(error.contains(place) && error.contains(words), "{rest}: {error}");
    }
    // All of them at once, not one by one.
    let both = format!("{begin}[[axis]]\nkey = \"a.b\"\nvalues = [1]\n[[axis]]\nkey = \"c.d\"\nvalues = [1]\n");
    assert_eq!(refused(&both).matches("error: unknown key").count(), 2);
}

#[test]
fn an_axis_cannot_have_the_name_of_a_column_that_is_there_anyway() {
    let begin = "[[scenario]]\nfile = \"allreduce-die\"\n";
    for (rest, place, words) in [
        ("[[axis]]\nname = \"gates\"\nkey = \"switch.ceng.stages\"\nvalues = [1]\n", "s.toml:4:8", "name = \"stages\""),
        ("[[axis]]\nkey = \"seed\"\nvalues = [1, 2]\n", "s.toml:4:7", "name = \"seed_set\""),
        ("[[metric]]\nname = \"latency_ns\"\nvalue = \"cycles\"\n", "s.toml:4:8", "a metric needs another name"),
        (
            "[[metric]]\nname = \"job_ns\"\nvalue = \"cycles\"\n",
            "s.toml:4:8",
            "an earlier name of the column `latency_ns`; a metric needs another name",
        ),
        (
            "[[axis]]\nkey = \"switch.ceng.stages\"\nvalues = [1]\n[[metric]]\nname = \"stages\"\nvalue = \"cycles\"\n",
            "s.toml:7:8",
            "two columns have the name `stages`",
        ),
    ] {
        let error = refused(&format!("{begin}{rest}"));
        assert!(error.contains(place) && error.contains(words), "{rest}: {error}");
    }
}

#[test]
fn a_changed_sweep_says_what_changed_and_computes_only_what_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[[scenario]]\nfile = \"barrier-die\"\n[[axis]]\nkey = \"switch.ceng.stages\"\nvalues = [1, 2, 3]\n";
    assert_eq!(sweep(folder.path(), text, &[]).status, 0);
    let changed = text.replace("[1, 2, 3]", "[2, 3, 4, 5]");
    let output = sweep(folder.path(), &changed, &["--resume"]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    assert!(output.stdout.contains("4 points: 2 computed, 2 known already"), "{}", output.stdout);
    for words in [
        "axis `stages`: 4, 5 added; 1 dropped",
        "points: 2 kept, 2 computed anew, 1 of the last time not asked for any more",
    ] {
        assert!(output.stderr.contains(words), "{words}: {}", output.stderr);
    }
    // What was dropped is still known when it comes back.
    let output = sweep(folder.path(), text, &["--resume"]);
    assert!(output.stdout.contains("3 points: 0 computed, 3 known already"), "{}", output.stdout);
    // Nothing has changed: nothing is said.
    let output = sweep(folder.path(), text, &["--resume"]);
    assert_eq!(output.stderr, "");
    // Another base: what is set for all is named.
    let other = text.replace("[[axis]]", "set = [\"switch.pipeline_stages=2\"]\n[[axis]]");
    let output = sweep(folder.path(), &other, &["--resume"]);
    assert!(output.stderr.contains("file or `set` of scenario `barrier-die`"), "{}", output.stderr);
    assert!(output.stdout.contains("3 points: 3 computed, 0 known already"), "{}", output.stdout);
}

#[test]
fn a_changed_scenario_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = |stages: u32| {
        fs::write(
            folder.path().join("b.toml"),
            format!("extends = \"barrier-die\"\nswitch.pipeline_stages = {stages}\n"),
        )
        .unwrap();
    };
    let text = "[[scenario]]\nfile = \"b.toml\"\n[[axis]]\nkey = \"switch.ceng.stages\"\nvalues = [1, 2]\n";
    scenario(1);
    assert_eq!(sweep(folder.path(), text, &[]).status, 0);
    scenario(2);
    let output = sweep(folder.path(), text, &["--resume"]);
    assert!(output.stderr.contains("what scenario `b` says"), "{}", output.stderr);
    assert!(output.stdout.contains("2 points: 2 computed"), "{}", output.stdout);
}
