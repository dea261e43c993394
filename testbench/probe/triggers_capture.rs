//! Trigger capture: the waveform holds what lies around the first cycle in which the condition holds, as the whole one has it.

use std::path::{Path, PathBuf};

use watershed::scenario::expr::Expr;
use watershed::scenario::load_text;
use watershed::scenario::run::{RunError, RunOptions, RunResult, TriggerOptions, WaveOptions, run};

use crate::support::Read;

const DIE: &str =
    "family = \"piuma\"\n[topology]\nkind = \"die\"\n[[collective]]\nkind = \"allreduce\"\nelements = 20\n";

fn wave(path: PathBuf, trigger: Option<(&str, u64, Option<u64>)>) -> Result<RunResult, RunError> {
    let loaded = load_text("test", DIE, Path::new("."), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let trigger =
        trigger.map(|(text, before, after)| TriggerOptions { condition: Expr::parse(text).unwrap(), before, after });
    let wave = WaveOptions {
        path,
        signals: vec!["**.switch.ceng.**".into()],
        depth: None,
        from_cycle: 0,
        to_cycle: None,
        clock: false,
        trigger,
    };
    run(&loaded, &RunOptions { wave: Some(&wave), ..RunOptions::default() })
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
