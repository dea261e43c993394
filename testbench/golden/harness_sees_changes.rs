//! W-GLD-1: a golden that is changed, in any of its files, makes its test fail, and the failure says where.

use std::fs;
use std::path::Path;

use libtest_mimic::{Failed, Trial};

use watershed::study::snapshot::{Mode, Test};

use crate::scenario_matches;

const SCENARIO: &str = "testbench/piuma/allreduce-die.toml";
const GOLDEN: &str = "golden/piuma";

type Body = fn() -> Result<(), Failed>;

pub fn trials() -> Vec<Trial> {
    let tests: [(&str, Body); 5] = [
        ("an_untouched_copy_matches", an_untouched_copy_matches),
        ("a_changed_result_fails", a_changed_result_fails),
        ("a_changed_wave_fails_with_time_and_signal", a_changed_wave_fails_with_time_and_signal),
        ("a_changed_summary_fails", a_changed_summary_fails),
        ("accepting_writes_what_then_matches", accepting_writes_what_then_matches),
    ];
    tests.map(|(name, test)| Trial::test(format!("harness_sees_changes::{name}"), test)).into()
}

/// A copy of the goldens in which `change` changed one file.
fn with_changed(file: &str, change: impl Fn(&str) -> String) -> Result<tempfile::TempDir, Failed> {
    let copy = tempfile::tempdir()?;
    for kind in ["json", "vcd", "summary.snap", "wave.snap"] {
        let name = format!("allreduce-die.{kind}");
        fs::copy(crate::root().join(GOLDEN).join(&name), copy.path().join(&name))?;
    }
    let path = copy.path().join(file);
    let before = fs::read_to_string(&path)?;
    let after = change(&before);
    fs::write(path, &after)?;
    if before == after { Err("the change changes nothing".into()) } else { Ok(copy) }
}

fn held_against(copy: &Path) -> Test {
    Test { name: "copy".to_owned(), scenario: SCENARIO.into(), goldens: copy.to_owned() }
}

fn outcome(copy: &Path) -> Result<(), String> {
    scenario_matches(&held_against(copy), Mode::Check)
}

fn expect(outcome: Result<(), String>, words: &[&str]) -> Result<(), Failed> {
    let Err(text) = outcome else { return Err("the change was not seen".into()) };
    match words.iter().find(|word| !text.contains(**word)) {
        None => Ok(()),
        Some(word) => Err(format!("\"{word}\" is missing in:\n{text}").into()),
    }
}

fn an_untouched_copy_matches() -> Result<(), Failed> {
    let copy = with_changed("allreduce-die.json", |text| format!("{text}\n"))?;
    fs::copy(crate::root().join(GOLDEN).join("allreduce-die.json"), copy.path().join("allreduce-die.json"))?;
    Ok(outcome(copy.path())?)
}

fn a_changed_result_fails() -> Result<(), Failed> {
    let copy = with_changed("allreduce-die.json", |text| text.replacen("\"cycles\": 2", "\"cycles\": 3", 1))?;
    expect(outcome(copy.path()), &["allreduce-die.json", "- ", "+ ", "\"cycles\": 2", "make golden"])
}

fn a_changed_wave_fails_with_time_and_signal() -> Result<(), Failed> {
    // Everything that changes in cycle 40 does so half a cycle late.
    let copy = with_changed("allreduce-die.vcd", |text| text.replacen("\n#40000\n", "\n#40500\n", 1))?;
    expect(
        outcome(copy.path()),
        &[
            "allreduce-die.vcd",
            "the waveforms differ",
            "golden",
            "this run",
            "cycle 40",
            "switch.",
            "\n  this run\n  cycle ",
        ],
    )
}

fn a_changed_summary_fails() -> Result<(), Failed> {
    let copy = with_changed("allreduce-die.summary.snap", |text| text.replace("bit-exact: yes", "bit-exact: NO"))?;
    expect(outcome(copy.path()), &["allreduce-die.summary.snap", "bit-exact: NO", "bit-exact: yes"])
}

fn accepting_writes_what_then_matches() -> Result<(), Failed> {
    let copy = with_changed("allreduce-die.json", |text| text.replacen("\"seed\": 1", "\"seed\": 2", 1))?;
    fs::remove_file(copy.path().join("allreduce-die.vcd"))?;
    scenario_matches(&held_against(copy.path()), Mode::Accept)?;
    Ok(outcome(copy.path())?)
}
