//! W-VCD-1: the last time stamp of a wave is the end of the run, whatever ended it, in both formats, by an independent reader.

use std::path::{Path, PathBuf};

use watershed::scenario::config::Wave;
use watershed::scenario::expr::Expr;
use watershed::scenario::result::Outcome;
use watershed::scenario::run::{Control, RunOptions, TriggerOptions, WaveOptions, run};
use watershed::scenario::{Loaded, load_file, load_text};

use crate::share;
use crate::support::Read;

/// Cycles of credits on their way home, and of the edge behind the last cycle: later a change is not to come.
const BEHIND: u64 = 64;

fn options(path: PathBuf) -> WaveOptions {
    WaveOptions::of(path, Wave::default())
}

/// Runs with a wave; the cycles of the run, and the last time stamp.
fn last_stamp(loaded: &Loaded, wave: &WaveOptions, more: RunOptions<'_>) -> (u64, u64, Outcome) {
    let result = run(loaded, &RunOptions { wave: Some(wave), ..more }).unwrap_or_else(|error| panic!("{error}"));
    assert!(result.wave_error.is_none(), "{:?}", result.wave_error);
    let read = Read::new(std::fs::read(&wave.path).unwrap());
    (result.document.cycles, *read.times().last().unwrap(), result.document.outcome)
}

fn start_ps(loaded: &Loaded, cycle: u64) -> u64 {
    let hertz = u128::from(loaded.scenario.clock.frequency_hz);
    (u128::from(cycle) * 1_000_000_000_000 / hertz) as u64
}

/// The stamp is the end of the run, or that of a change that the last cycles left behind.
fn ends_with_run(name: &str, loaded: &Loaded, wave: &WaveOptions, more: RunOptions<'_>) -> Outcome {
    let (cycles, stamp, outcome) = last_stamp(loaded, wave, more);
    let [end, latest] = [cycles, cycles + BEHIND].map(|cycle| start_ps(loaded, cycle));
    assert!((end..=latest).contains(&stamp), "{name}: {cycles} cycles end at {end} ps, the last stamp is {stamp}");
    if stamp > end {
        let mut read = watershed::probe::wave_in::WaveFile::open(&wave.path).unwrap();
        let signals = read.load(0..read.header().signals).unwrap();
        let changes_then = (0..read.header().signals).any(|signal| {
            let mut changes = read.changes(&signals, signal);
            changes.go_to(u128::from(stamp) * 1000, false);
            changes.next_fs().is_some()
        });
        assert!(changes_then, "{name}: nothing changes at the last stamp {stamp}, {cycles} cycles end at {end} ps");
    }
    outcome
}

fn shipped(family: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(Path::new("testbench").join(family))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    files
}

/// Those whose run, or whose system, would take a test too long.
const LARGE: [&str; 9] = [
    "16384",
    "scan-1024",
    "many-rounds",
    "lossy-links",
    "order-sum",
    "against-software",
    "butterfly-32x32",
    "face-off-pbv",
    "hosts-die",
];

/// One in seven of the scenarios in both formats in `make test`, so that each format has its own; all in `make soak`.
fn family_ends_with_its_runs(family: &str, at_least: usize) {
    let folder = tempfile::tempdir().unwrap();
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    let mut files = shipped(family);
    files.retain(|path| !LARGE.iter().any(|large| name(path).contains(large)));
    assert!(files.len() >= at_least, "{} scenarios of {family}", files.len());
    let cases = files.iter().flat_map(|path| ["vcd", "fst"].map(|extension| (path, extension)));
    for (path, extension) in share::one_in(7, cases) {
        let loaded = load_file(path, &[]).unwrap_or_else(|problems| panic!("{problems}"));
        // The last cycles tell as much of the end as all of them, and are written sooner.
        let last = TriggerOptions { condition: None, before: 20, after: None };
        let wave = WaveOptions { trigger: Some(last), ..options(folder.path().join(format!("a.{extension}"))) };
        ends_with_run(&name(path), &loaded, &wave, RunOptions::default());
    }
}

#[test]
fn waves_of_shipped_armed_runs_end_with_them() {
    family_ends_with_its_runs("armed", 20);
}

#[test]
fn waves_of_shipped_pbv_runs_end_with_them() {
    family_ends_with_its_runs("pbv", 14);
}

#[test]
fn waves_of_shipped_piuma_runs_end_with_them() {
    family_ends_with_its_runs("piuma", 20);
}

#[test]
fn waves_of_shipped_fabric_runs_end_with_them() {
    family_ends_with_its_runs("fabric", 14);
}

const LATE_LEAF: &str = "testbench/armed/fig4-late-leaf.toml";
const FAMILIES: [(&str, &str); 3] =
    [("armed", LATE_LEAF), ("pbv", "testbench/pbv/fig8-ladder.toml"), ("piuma", "testbench/piuma/allreduce-die.toml")];

#[test]
fn runs_that_are_cut_short_end_their_waves() {
    let folder = tempfile::tempdir().unwrap();
    for (family, file) in FAMILIES {
        for extension in ["vcd", "fst"] {
            let wave = options(folder.path().join(format!("{family}.{extension}")));
            let short = load_file(Path::new(file), &["limits.max_cycles=150".to_owned()]).unwrap();
            let outcome = ends_with_run(family, &short, &wave, RunOptions::default());
            assert_eq!(outcome, Outcome::MaxCycles, "{family}");
            let (cycles, stamp, _) = last_stamp(&short, &wave, RunOptions::default());
            assert_eq!((cycles, stamp), (150, start_ps(&short, 150)), "{family}.{extension}");
        }
    }
}

#[test]
fn interrupted_runs_end_their_waves() {
    let folder = tempfile::tempdir().unwrap();
    // Long enough for the first look at the clock on the wall; how far it comes may differ.
    let text = "family = \"fabric\"\n[topology]\nkind = \"mesh\"\nsize = [4, 4]\n[limits]\nmax_cycles = 100000000\n\
                [[traffic]]\nname = \"u\"\npattern = \"uniform\"\nrate = 0.1\n";
    let loaded = load_text("test", text, Path::new("."), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let stop = |_| Control::Stop;
    let wave = WaveOptions::of(
        folder.path().join("stopped.vcd"),
        Wave { signals: vec!["**.count".into()], ..Wave::default() },
    );
    let outcome = ends_with_run("stopped", &loaded, &wave, RunOptions { hook: Some(&stop), ..RunOptions::default() });
    assert_eq!(outcome, Outcome::Interrupted);
}

#[test]
fn runs_that_hang_end_their_waves() {
    let folder = tempfile::tempdir().unwrap();
    let text = "family = \"piuma\"\n[topology]\nkind = \"die\"\n[[collective]]\nname = \"a\"\nkind = \"allreduce\"\ncalled = true\n\
                [[program]]\ncores = [0]\ntext = \"\"\"\n allreduce 0, 0, 0x8000, 20\n\"\"\"\n";
    let loaded = load_text("test", text, Path::new("."), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    for extension in ["vcd", "fst"] {
        let wave = options(folder.path().join(format!("hang.{extension}")));
        let outcome = ends_with_run("hang", &loaded, &wave, RunOptions::default());
        assert_eq!(outcome, Outcome::Deadlock);
    }
}

#[test]
fn windows_and_triggers_end_where_they_say() {
    let folder = tempfile::tempdir().unwrap();
    for (at, (family, file)) in FAMILIES.into_iter().enumerate() {
        // An eighth of the long one is long enough for `make test`.
        let shorter = family == "piuma" && !share::is_whole();
        let sets = if shorter { vec!["job.0.elements=128".to_owned()] } else { Vec::new() };
        let loaded = load_file(Path::new(file), &sets).unwrap();
        let cycles = run(&loaded, &RunOptions::default()).unwrap().document.cycles;
        // In `make test` one format for each family in turn, in `make soak` both.
        let formats = if at % 2 == 0 { ["vcd", "fst"] } else { ["fst", "vcd"] };
        for extension in share::one_in(2, formats) {
            let path = folder.path().join(format!("part.{extension}"));
            let of = |shown: Wave| WaveOptions::of(path.clone(), shown);
            let stamp = |wave: &WaveOptions| last_stamp(&loaded, wave, RunOptions::default()).1;
            // A window that closes within the run ends with its last cycle, one that does not with the run.
            let window = of(Wave { from_cycle: 20, to_cycle: Some(99), ..Wave::default() });
            assert_eq!(stamp(&window), start_ps(&loaded, 100), "{family}.{extension}");
            let window = of(Wave { from_cycle: 20, to_cycle: Some(10 * cycles), ..Wave::default() });
            let latest = start_ps(&loaded, cycles + BEHIND);
            assert!((start_ps(&loaded, cycles)..=latest).contains(&stamp(&window)), "{family}.{extension}");
            // The clock ticks as long as the run, not as long as timers run.
            let clock = of(Wave { clock: true, signals: vec!["**.count".into()], ..Wave::default() });
            assert!((start_ps(&loaded, cycles)..=latest).contains(&stamp(&clock)), "{family}.{extension}");
        }
    }
    // A trigger's piece ends where it says, although its last change comes sooner.
    let loaded = load_file(Path::new(LATE_LEAF), &[]).unwrap();
    let path = folder.path().join("piece.vcd");
    let condition = Some(Expr::parse("tree.top.P4.engine.merged == 1").unwrap());
    let trigger = TriggerOptions { condition, before: 5, after: Some(700) };
    let wave = WaveOptions { trigger: Some(trigger), ..options(path.clone()) };
    let result = run(&loaded, &RunOptions { wave: Some(&wave), ..RunOptions::default() }).unwrap();
    let fired = result.wave.unwrap().fired_cycle.unwrap();
    let read = Read::new(std::fs::read(&path).unwrap());
    let end = start_ps(&loaded, fired) + start_ps(&loaded, 700);
    assert_eq!(*read.times().last().unwrap(), end);
}
