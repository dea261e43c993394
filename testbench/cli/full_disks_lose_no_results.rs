//! A file that cannot be written to its end takes nothing else with it: the run has its result, and says what is missing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::support::with_small_files;

#[test]
fn a_wave_that_cannot_be_written_leaves_the_result() {
    let short = ["--set", "traffic.0.stop_cycle=2000"];
    let signals = ["--signals", "**.s0_1.**"];
    for (scenario, wave, sets, more, blocks) in [
        ("mesh-uniform", "q.vcd", &short[..], &signals[..], 40),
        ("mesh-uniform", "q.fst", &short, &signals, 40),
        ("fig2-tree", "q.vcd", &[], &[], 400),
        ("fig8-ladder", "q.vcd", &[], &[], 48),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let run = [&["run", scenario, "--wave", wave, "--out", "o", "--json"], sets, more].concat();
        let output = with_small_files(folder.path(), blocks, &run);
        assert_eq!(output.status, 3, "{scenario} {wave}: {}", output.stderr);
        let lost = format!("error: cannot write o/{wave}: ");
        assert_eq!(output.stderr.matches(&lost).count(), 1, "{scenario} {wave}: {}", output.stderr);
        let plain = tempfile::tempdir().unwrap();
        let without = with_small_files(plain.path(), 1 << 20, &[&["run", scenario, "--json"], sets].concat());
        assert_eq!(without.status, 0, "{}", without.stderr);
        assert_eq!(output.stdout, without.stdout, "{scenario} {wave}");
        let kept = std::fs::read_to_string(folder.path().join("o").join(format!("{scenario}.json"))).unwrap();
        assert_eq!(kept, without.stdout, "{scenario} {wave}");
    }
    // The summary names no wave, and a check that failed is not hidden.
    let folder = tempfile::tempdir().unwrap();
    let run = [&["run", "mesh-uniform", "--wave", "q.vcd"], &short[..], &signals].concat();
    let output = with_small_files(folder.path(), 40, &run);
    assert!(output.status == 3 && output.stdout.contains("checks"), "{}{}", output.stdout, output.stderr);
    assert!(!output.stdout.contains("q.vcd"), "{}", output.stdout);
    let failed = [&run[..], &["--set", "limits.max_cycles=900"]].concat();
    let output = with_small_files(folder.path(), 40, &failed);
    assert_eq!(output.status, 1, "{}{}", output.stdout, output.stderr);
    assert!(output.stderr.contains("cannot write q.vcd"), "{}", output.stderr);
}

#[test]
fn one_file_that_cannot_be_written_takes_no_other_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = ["run", "allreduce-die", "--out", "o", "--ladder", "l.svg", "--save-npy", "r.npy"];
    let output = with_small_files(folder.path(), 200, &run);
    assert_eq!(output.status, 3, "{}", output.stderr);
    assert!(output.stderr.contains("error: cannot write o/l.svg: "), "{}", output.stderr);
    assert!(output.stdout.contains("o/allreduce-die.json"), "{}", output.stdout);
    assert!(output.stdout.contains("r.npy") && !output.stdout.contains("l.svg"), "{}", output.stdout);
}

/// Every file of a folder and what is in it.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            files.extend(contents(&path));
        } else {
            files.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    files
}

#[test]
fn what_was_there_before_is_there_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let sweep = "[[scenario]]\nfile = \"barrier-die\"\n[[axis]]\nkey = \"switch.ceng.stages\"\nvalues = [2]\n";
    std::fs::write(folder.join("s.toml"), sweep).unwrap();
    let contestant = |job: &str| format!("[[contestant]]\nname = \"{job}\"\nfile = \"hosts-die\"\njob = \"{job}\"\n");
    let study = "about = \"Two ways of software.\"\nelements = [2]\n".to_owned();
    std::fs::write(folder.join("study.toml"), study + &contestant("ring") + &contestant("rabenseifner")).unwrap();
    let die = "run allreduce-die --seed SEED --set collective.0.elements=SEED";
    let (measured, two) = ("--set measure.measure_cycles=1000", "hosts-die:network hosts-die:ring");
    // A header that finds no room ends a run before it begins.
    let begins = format!("{die} --out o --ladder l.svg --record die.tile2.sw4.switch.ceng --save-npy r.npy");
    for (command, status) in [
        (begins, 3),
        (format!("{die} --ladder l.txt"), 3),
        (format!("{die} --wave w.vcd --out w"), 2),
        (format!("{die} --wave w.fst"), 2),
        ("run fig2-tree --seed SEED --out o --ladder a.txt".into(), 3),
        ("run fig2-tree --seed SEED --wave a.fst --last 20".into(), 2),
        ("run fig7-barrier --set link.latency_ns=SEED --out o --wave p.fst".into(), 2),
        ("run mesh-uniform --seed SEED --set traffic.0.stop_cycle=1000 --histogram h.csv".into(), 3),
        (format!("curve mesh-uniform --rates 0.1 --seed SEED {measured} --csv c.csv --svg c.svg"), 2),
        (format!("compare {two} --set job.0.elements=16 --orders 0 --no-dead --late-ns SEED -o c.html"), 2),
        ("study study.toml -o s.html".into(), 2),
        ("report o/allreduce-die.json -o r.html".into(), 2),
        ("topology fig2-hyperx --set link.latency_ns=SEED --svg t.svg".into(), 2),
        ("embed allreduce-die --save e.toml --svg e.svg".into(), 2),
        ("sweep s.toml --out sweep --resume".into(), 2),
        #[cfg(feature = "parquet")]
        ("sweep export sweep --parquet s.parquet".into(), 2),
        ("sweep merge --out merged sweep".into(), 2),
        ("exhaustive --random 2000 --seed SEED --type f32 --op add --resume x.txt".into(), 2),
    ] {
        let with = |seed: &str| command.replace("SEED", seed);
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let run = |blocks: u32, line: &str| {
            let words = words(line);
            with_small_files(folder, blocks, &words.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let first = run(1 << 20, &with("3"));
        assert_eq!(first.status, 0, "{command}: {}", first.stderr);
        if command.starts_with("sweep") {
            std::fs::write(folder.join("s.toml"), sweep.replace("[2]", "[2, 3]")).unwrap();
        }
        let before = contents(folder);
        let second = run(0, &with("5"));
        let said = second.stderr.contains("error: ") && second.stderr.contains("File too large");
        assert!(said, "{command}: {}", second.stderr);
        assert_eq!(second.status, status, "{command}: {}", second.stderr);
        let after = contents(folder);
        let changed: Vec<_> = after.iter().filter(|(path, bytes)| before.get(*path) != Some(bytes)).collect();
        assert!(
            changed.is_empty() && before.len() == after.len(),
            "{command}: {:?}",
            changed.iter().map(|of| of.0).collect::<Vec<_>>()
        );
    }
    // What the sweep had before, and the store that could not grow, can be read.
    let report = with_small_files(folder, 1 << 20, &["report", "sweep", "-o", "later.html"]);
    assert_eq!(report.status, 0, "{}", report.stderr);
}
