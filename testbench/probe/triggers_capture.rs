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
        signals: vec!["**.switch.**".into()],
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
    let engine = whole.names().into_iter().find(|name| name.ends_with("ceng.state") && name.contains("sw")).unwrap();
    let state = |read: &mut Read, time: u64| read.bits(&engine, time);
    let idle = state(&mut whole, 0);
    let first = whole
        .times()
        .to_vec()
        .into_iter()
        .find(|time| state(&mut whole, *time).trim_start_matches('0') == "10")
        .unwrap();
    assert_ne!(idle.trim_start_matches('0'), "10");
    for (before, after) in [(10, Some(5)), (0, Some(0)), (1000, None)] {
        wave(at("part.vcd"), Some((&format!("{engine} == 'REDUCE'"), before, after))).unwrap();
        let mut part = Read::new(std::fs::read(at("part.vcd")).unwrap());
        let times = part.times().to_vec();
        let (begin, end) = (first.saturating_sub(before * 1000), after.map_or(u64::MAX, |after| first + after * 1000));
        assert!(
            times.contains(&first) && times.iter().all(|time| *time + 1000 >= begin && *time <= end),
            "{before}: {times:?}"
        );
        for name in whole.names().iter().step_by(7) {
            for &time in &times {
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
    assert!(part.times()[0] + 30_000 > last && part.times().len() > 2, "{:?} of {last}", part.times());
}

#[test]
fn a_signal_that_is_not_traced_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = wave(folder.path().join("x.vcd"), Some(("die.nothing > 1", 1, None))).unwrap_err();
    assert!(matches!(&error, RunError::Usage(text) if text.contains("die.nothing is not traced")), "{error}");
}
