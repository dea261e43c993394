//! Sweeps: the same table however they are interrupted, cut up or run in parallel; failed points are kept; searches find
//! what a grid would.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{root, watershed};

fn sweep(file: &str, folder: &Path, more: &[&str]) -> crate::support::Output {
    watershed([&["sweep", file, "--out", folder.to_str().unwrap()], more].concat())
}

fn table(folder: &Path) -> String {
    fs::read_to_string(folder.join("points.csv")).unwrap()
}

fn written(folder: &Path, text: &str) -> String {
    let file = folder.join("sweep.toml");
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Runs a sweep again and again, killing it after a time that grows, until it comes to its end by itself; how often it was
/// killed.
fn killed_until_done(file: &str, folder: &Path, least: usize, mut milliseconds: impl FnMut(usize) -> u64) -> usize {
    let mut kills = 0;
    loop {
        let mut child = Command::new(env!("CARGO_BIN_EXE_watershed"))
            .current_dir(root())
            .args(["sweep", file, "--resume", "-j", "2", "--out"])
            .arg(folder)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds(kills)));
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            // It was quicker than expected: too few kills would show nothing.
            assert!(kills >= least, "done after {kills} kills");
            return kills;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        assert!(kills < 400, "no progress");
    }
}

const SMALL: &str = "
repetitions = 2
[[scenario]]
file = \"allreduce-die\"
name = \"die\"
set = [\"collective.0.elements=2\"]
[[scenario.axis]]
key = \"switch.ceng.stages\"
values = [1, 2, 3]
[[scenario]]
file = \"fig2-tree\"
name = \"tree\"
[[scenario.axis]]
name = \"stages\"
key = \"armed.engine.stages\"
values = [1, 3]
[[axis]]
name = \"latency\"
key = \"link.latency_cycles\"
range = { from = 1, to = 5, step = 2 }
";

#[test]
fn killed_and_resumed_it_leaves_the_same_table() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), SMALL);
    let whole = folder.path().join("whole");
    let output = sweep(&file, &whole, &[]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    assert!(output.stdout.contains("30 points: 30 computed, 0 known already"), "{}", output.stdout);
    let expected = table(&whole);
    assert_eq!(expected.lines().count(), 31);
    assert!(expected.lines().skip(1).all(|line| line.contains(",ok,")), "{expected}");

    let pieces = folder.path().join("pieces");
    // From shorter than the program takes to start, so that even a quick machine is killed a few times.
    killed_until_done(&file, &pieces, 2, |kills| 8 + 12 * kills as u64);
    assert_eq!(table(&pieces), expected);
    let output = sweep(&file, &pieces, &["--resume"]);
    assert!(output.stdout.contains("30 points: 0 computed, 30 known already"), "{}", output.stdout);
    assert_eq!(table(&pieces), expected);
}

/// Issue 8: six parameters, 2,304 points over a die and a tree, killed 20 times.
#[test]
#[ignore = "takes minutes"]
fn two_thousand_points_killed_twenty_times_leave_the_same_table() {
    let folder = tempfile::tempdir().unwrap();
    let file = "testbench/sweeps/die-and-tree.toml";
    let (whole, pieces) = (folder.path().join("whole"), folder.path().join("pieces"));
    let started = std::time::Instant::now();
    let output = sweep(file, &whole, &["-j", "2"]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    let each = started.elapsed().as_millis() as u64 / 24;
    let expected = table(&whole);
    assert_eq!(expected.lines().count(), 2305);
    let mut rng = watershed::kernel::Rng::new(7, 8);
    let mut moment = |kills| if kills < 20 { 20 + rng.below(2 * each) } else { 1_000_000 };
    let kills = killed_until_done(file, &pieces, 20, |kills| {
        let milliseconds = moment(kills);
        if milliseconds == 1_000_000 { 60 * each } else { milliseconds }
    });
    println!("{kills} kills");
    assert_eq!(table(&pieces), expected);
}

#[test]
fn threads_and_shards_make_no_difference() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), SMALL);
    let at = |name: &str| folder.path().join(name);
    assert_eq!(sweep(&file, &at("one"), &[]).status, 0);
    assert_eq!(sweep(&file, &at("four"), &["-j", "4"]).status, 0);
    let expected = table(&at("one"));
    assert_eq!(table(&at("four")), expected);
    for part in 1..=3 {
        let output = sweep(&file, &at(&format!("part{part}")), &["--shard", &format!("{part}/3")]);
        assert!(output.stdout.contains("10 points: "), "{}", output.stdout);
    }
    let parts = ["part3", "part1", "part2"].map(|name| at(name).to_str().unwrap().to_owned());
    let all = at("all").to_str().unwrap().to_owned();
    let output =
        watershed([&["sweep", "merge", "--out", &all], parts.each_ref().map(String::as_str).as_slice()].concat());
    assert_eq!(
        (output.status, output.stdout.contains("30 points in ")),
        (0, true),
        "{}{}",
        output.stdout,
        output.stderr
    );
    assert_eq!(table(&at("all")), expected);
}

#[test]
fn a_sweep_that_answers_nothing_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let begin = "[[scenario]]\nfile = \"barrier-die\"\n[[axis]]\n";
    for (rest, status, words) in [
        ("key = \"armed.engine.stages\"\nvalues = [1, 2]\n", 1, "error: none of 2 points could be run"),
        (
            "key = \"switch.ceng.stages\"\nvalues = [1, 2]\n[[objective]]\nname = \"head_wait\"\nvalue = \"links.busiest.0.head_wayt_cycles\"\n",
            1,
            "error: objective `head_wait` has a value at none of 2 points",
        ),
        (
            "key = \"switch.ceng.stages\"\nvalues = [1, 2]\n[[metric]]\nname = \"head_wait\"\nvalue = \"links.busiest.0.head_wayt_cycles\"\n",
            0,
            "note: metric `head_wait` has a value at none of 2 points",
        ),
    ] {
        let out = folder.path().join(format!("out{}", words.len()));
        let output = sweep(&written(folder.path(), &format!("{begin}{rest}")), &out, &[]);
        assert_eq!(output.status, status, "{rest}: {}", output.stderr);
        assert!(output.stderr.contains(words), "{rest}: {}", output.stderr);
    }
}

#[test]
fn what_fails_is_kept_with_its_error_and_what_is_known_is_not_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let text = "
[[scenario]]
file = \"barrier-die\"
[[axis]]
name = \"limit\"
key = \"limits.max_cycles\"
values = [9, 100000]
[[axis]]
name = \"stages\"
key = \"switch.ceng.stages\"
values = [3, 99]
";
    let file = written(folder.path(), text);
    let out = folder.path().join("out");
    let output = sweep(&file, &out, &[]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    for told in ["1 failed:\n  1 x ", "2 refused:\n  2 x `switch.ceng.stages` is 99"] {
        assert!(output.stdout.contains(told), "{told}: {}", output.stdout);
    }
    let expected = table(&out);
    let rows: Vec<&str> = expected.lines().skip(1).collect();
    assert!(rows[0].contains(",failed,") && rows[0].contains("limits.max_cycles = 9"), "{}", rows[0]);
    assert!(rows[1].contains(",refused,") && rows[2].contains(",ok,"), "{}", rows[1]);
    let output = sweep(&file, &out, &["--resume"]);
    assert!(output.stdout.contains("4 points: 0 computed, 4 known already"), "{}", output.stdout);

    // More values of an axis: only the new points are run, and a seed that is written down is no other point.
    let output = sweep(&written(folder.path(), &text.replace("[3, 99]", "[3, 4]")), &out, &["--resume"]);
    assert!(output.stdout.contains("4 points: 2 computed, 2 known already"), "{}", output.stdout);
    assert!(output.stderr.contains("points that are still the same are kept"), "{}", output.stderr);
    let output = sweep(&file, &out, &[]);
    assert_eq!(output.status, 2);
    assert!(output.stderr.contains("--resume goes on"), "{}", output.stderr);
}

#[test]
fn a_point_is_the_run_that_its_row_says() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    assert_eq!(sweep("testbench/sweeps/stages.toml", &out, &[]).status, 0);
    let table = table(&out);
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let at = |name: &str| head.iter().position(|column| *column == name).unwrap();
    let row = lines.nth(7).unwrap();
    let (stages, pipeline) = (row[at("stages")], row[at("pipeline")]);
    let sets: Vec<String> = [
        "collective.0.elements=64".to_owned(),
        "memory.bandwidth_gbps=unlimited".to_owned(),
        format!("switch.ceng.stages={stages}"),
        format!("switch.pipeline_stages={pipeline}"),
        "clock.frequency_mhz=fastest".to_owned(),
    ]
    .into_iter()
    .flat_map(|set| ["--set".to_owned(), set])
    .collect();
    let scenario = ["testbench/piuma/allreduce-die.toml".to_owned(), "--json".to_owned()];
    let json = |command: &str| -> serde_json::Value {
        let arguments = std::iter::once(command.to_owned()).chain(scenario.clone()).chain(sets.clone());
        serde_json::from_str(&watershed(arguments).stdout).unwrap()
    };
    let document = json("run");
    assert_eq!(document["stamp"]["config_hash"], row[at("key")]);
    assert_eq!(document["collectives"][0]["latency_cycles"].to_string(), row[at("latency_cycles")]);
    assert_eq!(json("cost")["total"]["gates"].to_string(), row[at("gates")]);
}

#[test]
fn a_search_finds_the_front_that_the_grid_has() {
    let folder = tempfile::tempdir().unwrap();
    let grid = fs::read_to_string(root().join("testbench/sweeps/stages.toml")).unwrap();
    let grid = grid.replace("../piuma/allreduce-die.toml", "allreduce-die");
    let search = grid.replace("[[scenario]]", "[search]\nkind = \"pareto\"\nbudget = 16\ninitial = 3\n\n[[scenario]]");
    let front = |text: &str, name: &str| {
        let output = sweep(&written(folder.path(), text), &folder.path().join(name), &[]);
        assert_eq!(output.status, 0, "{}", output.stderr);
        let lines: Vec<String> =
            output.stdout.lines().filter(|line| line.contains("  die  ")).map(str::to_owned).collect();
        lines.into_iter().collect::<std::collections::BTreeSet<_>>()
    };
    let expected = front(&grid, "grid");
    assert!(expected.len() >= 3, "{expected:?}");
    assert_eq!(front(&search, "search"), expected);
}

#[test]
fn saturation_is_found_and_a_killed_search_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let text = "
[search]
kind = \"saturation\"
axis = \"rate\"
tolerance = 0.1
[[scenario]]
file = \"mesh-transpose\"
set = [\"measure.warmup_cycles=100\", \"measure.measure_cycles=400\", \"measure.drain_cycles=800\"]
[[axis]]
key = \"traffic.0.rate\"
range = { from = 0.1, to = 0.9 }
[[axis]]
name = \"buffer\"
key = \"switch.point_to_point_buffer_flits\"
values = [2, 8]
";
    let file = written(folder.path(), text);
    let out = folder.path().join("out");
    let output = sweep(&file, &out, &[]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    let found: Vec<Vec<f64>> = output
        .stdout
        .lines()
        .filter(|line| line.contains("  mesh-transpose  "))
        .map(|line| line.split_whitespace().filter_map(|word| word.parse().ok()).collect())
        .collect();
    assert_eq!(found.len(), 2, "{}", output.stdout);
    for row in &found {
        assert!(row[2] - row[1] <= 0.1 && row[1] >= 0.1 && row[2] <= 0.9, "{row:?}");
    }
    assert!(found[0][1] <= found[1][1], "deeper buffers carry no less: {found:?}");
    let expected = table(&out);
    let pieces = folder.path().join("pieces");
    killed_until_done(&file, &pieces, 1, |kills| 8 + 30 * kills as u64);
    assert_eq!(table(&pieces), expected);
    let output = sweep(&file, &folder.path().join("shard"), &["--shard", "1/2"]);
    assert!(output.status == 2 && output.stderr.contains("cannot be cut into shards"), "{}", output.stderr);
}

#[test]
fn a_bad_sweep_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    for (text, message) in [
        ("[[scenario]]\nfile = \"nothing-here.toml\"\n", "there is no such scenario file"),
        ("[[scenario]]\nfile = \"barrier-die\"\nset = [\"sed=1\"]\n", "did you mean `seed`"),
        ("[[scenario]]\nfile = \"barrier-die\"\n[[axis]]\nkey = \"seed\"\nvalue = [1]\n", "did you mean `values`"),
    ] {
        let output = sweep(&written(folder.path(), text), &out, &[]);
        assert_eq!(output.status, 2, "{}", output.stdout);
        assert!(output.stderr.contains(message), "{}", output.stderr);
        assert!(!out.exists(), "nothing is written for a sweep that cannot run");
    }
    assert_eq!(sweep("nowhere.toml", &out, &[]).status, 2);
    assert_eq!(watershed(["sweep", "merge", "--out", "x", "nowhere"]).status, 2);
    assert_eq!(watershed(["sweep"]).status, 2);
}

/// More points than wait for the store at a time.
const MANY: &str = "
repetitions = 600
[[scenario]]
file = \"barrier-die\"
[[axis]]
name = \"stages\"
key = \"switch.ceng.stages\"
values = [3]
";

#[cfg(unix)]
#[test]
fn a_store_that_cannot_be_written_ends_the_sweep() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), MANY);
    let out = folder.path().join("out");
    assert_eq!(sweep(&file, &out, &["--shard", "1/600"]).status, 0);
    let journal = watershed::study::sweep::Store::file(&out);
    let before = fs::read(&journal).unwrap();
    // Room for some points more.
    let blocks = (before.len() / 512 + 16) as u32;
    let line = ["sweep", &file, "--resume", "-j", "2", "--out", out.to_str().unwrap()];
    let output = crate::support::with_small_files(root(), blocks, &line);
    let words = output.stderr;
    assert_eq!(output.status, 2, "{words}");
    assert!(words.contains("sweep.jsonl: File too large") && words.trim_end().lines().count() == 1, "{words}");
    let after = fs::read(&journal).unwrap();
    assert!(after.starts_with(&before) && after.ends_with(b"\"}}\n"), "it ends with a commit");
}

#[test]
fn a_merge_says_what_is_missing_and_what_does_not_fit_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), SMALL);
    let at = |name: &str| folder.path().join(name);
    let merge = |into: &str, parts: &[&str]| {
        let paths: Vec<String> = [into].iter().chain(parts).map(|name| at(name).to_str().unwrap().to_owned()).collect();
        watershed(["sweep", "merge", "--out"].into_iter().chain(paths.iter().map(String::as_str)))
    };
    for part in ["1", "3"] {
        assert_eq!(sweep(&file, &at(part), &["--shard", &format!("{part}/3")]).status, 0);
    }
    let output = merge("all", &["1", "3"]);
    assert_eq!(output.status, 1, "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.starts_with("20 of 30 points in "), "{}", output.stdout);
    for words in ["note: 10 points in no shard yet", ": 1, 4, 7, 10, 13, 16, 19, 22, …", "--resume` runs what remains"]
    {
        assert!(output.stderr.contains(words), "{words}: {}", output.stderr);
    }
    assert_eq!(table(&at("all")).lines().count(), 21);
    let output = sweep(&file, &at("all"), &["--resume"]);
    assert!(output.stdout.contains("30 points: 10 computed, 20 known already"), "{}", output.stdout);
    assert_eq!(merge("all", &["1", "3"]).status, 0);
    assert_eq!(table(&at("all")).lines().count(), 31);

    // The second part is of another sweep, or no store at all: the first one is not taken over either.
    assert_eq!(sweep(&written(folder.path(), MANY), &at("other"), &["--shard", "1/600"]).status, 0);
    fs::create_dir(at("broken")).unwrap();
    fs::write(at("broken/sweep.jsonl"), "text, but no journal\n").unwrap();
    fs::create_dir(at("old")).unwrap();
    fs::write(at("old/sweep.sqlite"), "SQLite format 3\0").unwrap();
    for (second, words) in [
        ("other", "belongs to another sweep than"),
        ("broken", "broken/sweep.jsonl: this is no store of a sweep"),
        ("old", "old/sweep.sqlite: an earlier version of this program"),
    ] {
        let output = merge("fresh", &["1", second]);
        assert_eq!((output.status, output.stdout.as_str()), (2, ""), "{second}: {}", output.stderr);
        assert!(output.stderr.contains(words), "{second}: {}", output.stderr);
        assert!(!at("fresh").exists(), "{second}");
    }
    let before = table(&at("other"));
    assert_eq!(merge("other", &["1", "3"]).status, 2);
    assert_eq!(table(&at("other")), before);
}
