//! Trigger capture: the waveform holds what lies around the first cycle in which the condition holds, as the whole one has it.

use std::path::{Path, PathBuf};

use watershed::scenario::config::Wave;
use watershed::scenario::expr::Expr;
use watershed::scenario::load_text;
use watershed::scenario::run::{Flip, RunError, RunOptions, RunResult, TriggerOptions, WaveOptions, run};

use crate::support::Read;

const DIE: &str =
    "family = \"piuma\"\n[topology]\nkind = \"die\"\n[[collective]]\nkind = \"allreduce\"\nelements = 20\n";

fn wave(path: PathBuf, trigger: Option<(&str, u64, Option<u64>)>) -> Result<RunResult, RunError> {
    let trigger = trigger.map(|(text, before, after)| TriggerOptions {
        condition: (!text.is_empty()).then(|| Expr::parse(text).unwrap()),
        before,
        after,
    });
    record(path, trigger, false, None)
}

fn record(
    path: PathBuf,
    trigger: Option<TriggerOptions>,
    only_failed: bool,
    flip: Option<Flip<'_>>,
) -> Result<RunResult, RunError> {
    let loaded = load_text("test", DIE, Path::new("."), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let wave = WaveOptions {
        path,
        shown: Wave { signals: vec!["**.switch.ceng.**".into()], ..Wave::default() },
        trigger,
        only_failed,
    };
    run(&loaded, &RunOptions { wave: Some(&wave), flip, ..RunOptions::default() })
}

#[test]
fn what_is_written_is_a_piece_of_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    wave(at("whole.vcd"), None).unwrap();
    let mut whole = Read::new(std::fs::read(at("whole.vcd")).unwrap());
    let engines: Vec<String> = whole.names().into_iter().filter(|name| name.ends_with("ceng.state")).collect();
    let times = whole.times().to_vec();
    let reduces = |read: &mut Read, name: &str, time: u64| read.bits(name, time).trim_start_matches('0') == "10";
    let (engine, first) = engines
        .into_iter()
        .find_map(|name| Some((times.iter().copied().find(|time| reduces(&mut whole, &name, *time))?, name)))
        .map(|(time, name)| (name, time))
        .expect("some engine reduces");
    assert!(first > 10_000 && !reduces(&mut whole, &engine, 0));
    for (before, after) in [(10, Some(5)), (0, Some(0)), (1000, None)] {
        wave(at("part.vcd"), Some((&format!("{engine} == 'REDUCE'"), before, after))).unwrap();
        let mut part = Read::new(std::fs::read(at("part.vcd")).unwrap());
        let times = part.times().to_vec();
        let (begin, end) = (first.saturating_sub(before * 1000), after.map_or(u64::MAX, |after| first + after * 1000));
        assert!(
            times.contains(&first) && times.iter().all(|time| *time + 1000 >= begin && *time <= end),
            "{before}: {times:?}"
        );
        for name in whole.names().iter().step_by(23) {
            for &time in times.iter().step_by(11) {
                assert_eq!(part.bits(name, time), whole.bits(name, time), "{name} at {time}, {before} before");
            }
        }
    }
}

#[test]
fn without_its_moment_the_end_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, part) = (folder.path().join("whole.vcd"), folder.path().join("part.vcd"));
    wave(whole.clone(), None).unwrap();
    let whole = Read::new(std::fs::read(whole).unwrap());
    let name = whole.names().into_iter().find(|name| name.ends_with("ceng.operands")).unwrap();
    wave(part.clone(), Some((&format!("{name} > 1000"), 12, Some(3)))).unwrap();
    let part = Read::new(std::fs::read(part).unwrap());
    let last = *whole.times().last().unwrap();
    assert_eq!(part.times().last(), Some(&last));
    // Twelve cycles up to the last change: a run that stands still is looked at where it moved last.
    let times = part.times();
    let moved = times[times.len() - 2];
    assert!(times.len() > 4 && times[0] + 14_000 >= moved && times[0] + 11_000 <= moved, "{times:?} of {last}");
}

#[test]
fn a_signal_that_is_not_traced_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = wave(folder.path().join("x.vcd"), Some(("die.nothing > 1", 1, None))).unwrap_err();
    assert!(matches!(&error, RunError::Usage(text) if text.contains("die.nothing is not traced")), "{error}");
}

#[test]
fn names_of_states_are_words_with_and_without_quotes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    wave(at("whole.vcd"), None).unwrap();
    let whole = Read::new(std::fs::read(at("whole.vcd")).unwrap());
    let state = whole.names().into_iter().find(|name| name.ends_with("core0.switch.ceng.state")).unwrap();
    let fired = |text: &str| wave(at("x.vcd"), Some((text, 1, Some(1)))).map(|result| result.wave.unwrap().fired_cycle);
    let quoted = fired(&format!("{state} == 'GATHER'")).unwrap();
    assert!(quoted.is_some());
    for text in [
        format!("{state} == GATHER"),
        format!("GATHER == {state}"),
        format!("{state} != IDLE and not {state} != GATHER"),
    ] {
        assert_eq!(fired(&text).unwrap(), quoted, "{text}");
    }
    // Wrong names are told with the legal ones; a word in quotes, too.
    for wrong in ["REDUSE", "'REDUSE'"] {
        let error = fired(&format!("{state} == {wrong}")).unwrap_err().to_string();
        let told = format!("{state} has no state REDUSE; its states are ");
        assert!(error.contains(&told) && error.contains("GATHER") && error.contains("mean REDUCE?"), "{error}");
    }
    let operands = state.replace("ceng.state", "ceng.operands");
    let error = fired(&format!("{operands} == REDUCE")).unwrap_err().to_string();
    assert!(error.contains("has no names of states: compare it with a number"), "{error}");
    let error = fired(&format!("{state} == REDUCE or die.nothing == 1")).unwrap_err().to_string();
    assert!(error.contains("die.nothing is not traced"), "{error}");
}

#[test]
fn the_last_cycles_alone_can_be_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, part) = (folder.path().join("whole.vcd"), folder.path().join("part.vcd"));
    wave(whole.clone(), None).unwrap();
    let result = wave(part.clone(), Some(("", 20, None))).unwrap();
    assert!(result.notes.is_empty(), "{:?}", result.notes);
    let (mut whole, mut part) = (Read::new(std::fs::read(whole).unwrap()), Read::new(std::fs::read(part).unwrap()));
    let times = part.times().to_vec();
    assert_eq!(times.last(), whole.times().last());
    assert!(times.len() > 4 && times.len() < 30 && whole.times().len() > 2 * times.len(), "{times:?}");
    for name in whole.names().iter().step_by(17) {
        for &time in &times {
            assert_eq!(part.bits(name, time), whole.bits(name, time), "{name} at {time}");
        }
    }
}

#[test]
fn a_waveform_can_wait_for_a_failed_check() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("failed.vcd");
    let last = || Some(TriggerOptions { condition: None, before: 30, after: None });
    // All is well: nothing is left behind, neither the waveform nor what stands beside it.
    let result = record(path.clone(), last(), true, None).unwrap();
    assert!(result.document.passed() && result.wave.is_none());
    assert!(result.notes[0].contains("there is no waveform"), "{:?}", result.notes);
    let left = |folder: &Path| -> usize {
        std::fs::read_dir(folder).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_file()).count()
    };
    assert_eq!(left(folder.path()), 0);
    // A flipped bit fails the check, and the last cycles are there.
    let flip = Flip { switch: "core0", id: 0, word: 3, mask: 1 };
    let result = record(path.clone(), last(), true, Some(flip)).unwrap();
    assert!(!result.document.passed());
    assert_eq!(result.wave.unwrap().files[0], path);
    let failed = Read::new(std::fs::read(&path).unwrap());
    assert!(failed.times().len() > 10);
    let operands = failed.names().into_iter().find(|name| name.ends_with("core0.switch.ceng.operands")).unwrap();
    // All is well again: what failed before stays to be looked at.
    let (before, result) = (std::fs::read(&path).unwrap(), record(path.clone(), last(), true, None).unwrap());
    assert!(result.document.passed() && result.wave.is_none());
    assert!(std::fs::read(&path).unwrap() == before && path.with_extension("gtkw").exists());
    assert!(!folder.path().join(".failed.vcd.held").exists());
    // A trigger that fires is reason enough, and is told.
    let condition = Some(Expr::parse(&format!("{operands} == 5")).unwrap());
    let trigger = TriggerOptions { condition, before: 3, after: Some(3) };
    let result = record(folder.path().join("fired.vcd"), Some(trigger), true, None).unwrap();
    assert!(result.notes[0].starts_with("the trigger fired in cycle "), "{:?}", result.notes);
    assert_eq!(result.notes[0], format!("the trigger fired in cycle {}", result.wave.unwrap().fired_cycle.unwrap()));
}
