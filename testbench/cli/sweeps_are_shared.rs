//! Sweeps on many machines (X-MPI-2): processes share a folder without a server, whoever is gone is taken over, what is there can be
//! joined at any time, and scripts of the book do it under Slurm and Snakemake.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value as Json;
use watershed::kernel::Rng;
use watershed::study::sweep;

use crate::share;
use crate::support::{Output, root, watershed};

const SMALL: &str = "
repetitions = 2
[[scenario]]
file = \"allreduce-die\"
name = \"die\"
set = [\"collective.0.elements=2\"]
[[scenario.axis]]
key = \"switch.ceng.stages\"
values = [1, 2, 3, 99]
[[axis]]
name = \"latency\"
key = \"link.latency_cycles\"
range = { from = 1, to = 9, step = 2 }
";

/// Points of that sweep.
const POINTS: usize = 40;

/// Folders and the sweep in one that goes with the test.
struct Place {
    folder: tempfile::TempDir,
    file: String,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sweep.toml");
        fs::write(&file, SMALL).unwrap();
        Place { file: file.to_str().unwrap().to_owned(), folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn path(&self, name: &str) -> String {
        self.at(name).to_str().unwrap().to_owned()
    }

    fn sweep(&self, out: &str, more: &[&str]) -> Output {
        watershed([&["sweep", &self.file, "--out", &self.path(out)], more].concat())
    }

    /// The same under way.
    fn begun(&self, out: &str, more: &[&str]) -> Child {
        begun(&[&["sweep", &self.file, "--out", &self.path(out)], more].concat())
    }

    /// Joins folders; the journal and the table that come out.
    fn merged(&self, into: &str, parts: &[&str]) -> (Vec<u8>, String) {
        let parts: Vec<String> = parts.iter().map(|part| self.path(part)).collect();
        let into_path = self.path(into);
        let line: Vec<&str> =
            ["sweep", "merge", "--out", &into_path].into_iter().chain(parts.iter().map(String::as_str)).collect();
        let output = watershed(line);
        assert!(output.status <= 1, "{}", output.stderr);
        (fs::read(self.at(into).join("sweep.jsonl")).unwrap(), self.table(into))
    }

    fn table(&self, name: &str) -> String {
        fs::read_to_string(self.at(name).join("points.csv")).unwrap()
    }

    /// What an undisturbed process leaves: its journal, which is that of all joined, and its table.
    fn expected(&self) -> (Vec<u8>, String) {
        assert_eq!(self.sweep("whole", &[]).status, 0);
        let journal = fs::read(self.at("whole").join("sweep.jsonl")).unwrap();
        let (again, table) = self.merged("whole-again", &["whole"]);
        assert!(journal == again, "joined alone it is another journal");
        assert_eq!((table.lines().count(), &table), (POINTS + 1, &self.table("whole")));
        (journal, table)
    }

    fn status(&self, folders: &[&str]) -> Json {
        let folders: Vec<String> = folders.iter().map(|folder| self.path(folder)).collect();
        let line = ["sweep", "status"].into_iter().chain(folders.iter().map(String::as_str)).chain(["--json"]);
        let output = watershed(line);
        let status: Json = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.stderr));
        assert_eq!(output.status, i32::from(status["done"] != status["points"]), "{status}");
        status
    }
}

fn begun(line: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_watershed"));
    command.current_dir(root()).args(line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn processes_share_a_folder_and_leave_what_one_does() {
    let place = Place::new();
    let (journal, table) = place.expected();
    let children: Vec<Child> = (0..3).map(|_| place.begun("shared", &["--shared"])).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(place.table("shared"), table);
    assert!(fs::read(place.at("shared/sweep.jsonl")).unwrap() == journal);
    // Who comes later has nothing to do.
    let output = place.sweep("shared", &["--shared"]);
    assert!(output.stdout.contains("40 points: 0 computed, 40 known already"), "{}", output.stdout);
    // Each was computed by one, and nobody is left.
    let status = place.status(&["shared"]);
    let workers = status["workers"].as_array().unwrap();
    assert_eq!(workers.iter().map(|of| of["done"].as_u64().unwrap()).sum::<u64>(), POINTS as u64, "{status}");
    assert!(workers.iter().all(|of| of["alive"] == false && of["pulse"].is_null()), "{status}");
    assert_eq!((&status["refused"], &status["left"], &status["under_way"]), (&10.into(), &0.into(), &0.into()));
    // What reads a sweep reads this one.
    let best = watershed(["sweep", "best", &place.path("shared"), "--min", "latency_ns"]);
    assert!(best.status == 0 && best.stdout.contains("best of 20 points"), "{}{}", best.stdout, best.stderr);
}

/// A process makes its file before the first commit is on the disk, and others may read it in between.
#[test]
fn a_part_that_has_not_begun_is_no_part_of_another_sweep() {
    let place = Place::new();
    let (journal, table) = place.expected();
    assert_eq!(place.sweep("shared", &["--shared"]).status, 0);
    let line = journal.iter().position(|&byte| byte == b'\n').unwrap();
    for (number, of) in [0, line / 2, line + 1].into_iter().enumerate() {
        for part in [format!("part-0-{number}"), format!("part-zz-{number}")] {
            let part = place.at("shared").join(part);
            fs::create_dir(&part).unwrap();
            fs::write(part.join("sweep.jsonl"), &journal[..of]).unwrap();
        }
        assert!(place.merged("joined", &["shared"]) == (journal.clone(), table.clone()));
        assert_eq!(place.status(&["shared"])["done"], POINTS);
        assert_eq!(place.sweep("shared", &["--shared"]).status, 0);
    }
    // Where none has begun there is nothing to join.
    fs::create_dir_all(place.at("early/part-1")).unwrap();
    fs::write(place.at("early/part-1/sweep.jsonl"), &journal[..line]).unwrap();
    let output = watershed(["sweep", "merge", "--out", &place.path("none"), &place.path("early")]);
    assert!(output.status == 2 && output.stderr.contains("holds no results of a sweep"), "{}", output.stderr);
    assert!(!place.at("none").exists());
}

#[test]
fn a_shared_folder_is_of_one_sweep_and_searches_are_refused() {
    let place = Place::new();
    assert_eq!(place.sweep("shared", &["--shared"]).status, 0);
    let before = fs::read(place.at("shared/sweep.jsonl")).unwrap();
    fs::write(&place.file, SMALL.replace("step = 2", "step = 4")).unwrap();
    let output = place.sweep("shared", &["--shared"]);
    assert!(output.status == 2 && output.stderr.contains("holds parts of another sweep"), "{}", output.stderr);
    assert!(fs::read(place.at("shared/sweep.jsonl")).unwrap() == before);
    fs::write(&place.file, format!("{SMALL}[search]\nkind = \"pareto\"\nbudget = 4\n[[objective]]\nname = \"latency_ns\"\n[[objective]]\nname = \"gates\"\n"))
        .unwrap();
    let output = place.sweep("search", &["--shared"]);
    assert!(output.status == 2 && output.stderr.contains("a search cannot be shared"), "{}", output.stderr);
    for (line, words) in
        [(&["--shared", "--shard", "1/2"][..], "cannot be used with"), (&["--shared", "--stale", "0"], "0 is not in")]
    {
        let output = place.sweep("x", line);
        assert!(output.status == 2 && output.stderr.contains(words), "{}", output.stderr);
    }
    let output = watershed(["sweep", "status", &place.path("nothing")]);
    assert!(output.status == 2 && output.stderr.contains("holds no results of a sweep"), "{}", output.stderr);
}

/// Claims of a part of another machine, and its heartbeat.
fn elsewhere(shared: &Path, points: std::ops::Range<u64>, pulse: Option<&str>) {
    let (part, claims) = (shared.join("part-elsewhere-1"), shared.join("claims/0"));
    fs::create_dir_all(&part).unwrap();
    fs::create_dir_all(&claims).unwrap();
    for point in points {
        fs::write(claims.join(format!("{point}.0")), "part-elsewhere-1").unwrap();
    }
    if let Some(pulse) = pulse {
        fs::write(part.join(".sweep.alive"), pulse).unwrap();
    }
}

fn pulse(seconds: f64) -> String {
    format!("{{\"host\":\"elsewhere\",\"process\":7,\"seconds\":{seconds},\"computed\":4,\"under_way\":2}}")
}

#[test]
fn who_is_gone_is_taken_over_and_who_lives_is_not() {
    let place = Place::new();
    let (_, table) = place.expected();
    // A heartbeat that stands still.
    elsewhere(&place.at("gone"), 5..9, Some(&pulse(3.0)));
    let begun_at = std::time::Instant::now();
    let output = place.sweep("gone", &["--shared", "--stale", "1"]);
    assert!(output.stdout.contains("40 points: 40 computed"), "{}{}", output.stdout, output.stderr);
    assert!(begun_at.elapsed() >= Duration::from_secs(1), "it waits before it takes over");
    assert_eq!(place.table("gone"), table);
    assert!(place.at("gone/claims/0/5.1").exists() && !place.at("gone/claims/0/4.1").exists());
    // One that goes on.
    elsewhere(&place.at("lives"), 5..9, Some(&pulse(3.0)));
    let mut child = place.begun("lives", &["--shared", "--stale", "3"]);
    let mut seconds = 3.0;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        seconds += 0.1;
        let alive = place.at("lives/part-elsewhere-1/.sweep.alive");
        fs::write(alive.with_extension("new"), pulse(seconds)).unwrap();
        fs::rename(alive.with_extension("new"), alive).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!(status.success());
    assert!(!place.at("lives/points.csv").exists() && !place.at("lives/claims/0/5.1").exists());
    let status = place.status(&["lives"]);
    assert_eq!(
        (&status["done"], &status["under_way"], &status["left"]),
        (&36.into(), &0.into(), &4.into()),
        "{status}"
    );
}

#[test]
fn status_says_what_is_done_under_way_and_left() {
    let place = Place::new();
    for part in ["1/4", "3/4"] {
        assert_eq!(place.sweep(&format!("part{}", &part[..1]), &["--shard", part]).status, 0);
    }
    let both = [place.path("part1"), place.path("part3")];
    let text = watershed(["sweep", "status", &both[0], &both[1]]);
    assert_eq!(text.status, 1);
    assert!(text.stdout.starts_with("20 of 40 points done, 0 failed, "), "{}", text.stdout);
    assert!(text.stdout.contains("0 under way, 20 left\n"), "{}", text.stdout);
    assert!(text.stdout.contains("time left      unknown: no process is computing"), "{}", text.stdout);
    let status = place.status(&["part1", "part3"]);
    assert_eq!((&status["done"], &status["left"], &status["seconds_left"]), (&20.into(), &20.into(), &Json::Null));
    // A process on another machine that is heard of now: 4 points in 8 seconds, 2 under way, 20 not done.
    fs::write(place.at("part3/.sweep.alive"), pulse(8.0)).unwrap();
    let status = place.status(&["part1", "part3"]);
    assert_eq!((&status["under_way"], &status["left"]), (&2.into(), &18.into()), "{status}");
    assert_eq!((&status["points_per_second"], &status["seconds_left"]), (&0.5.into(), &40.0.into()), "{status}");
    let text = watershed(["sweep", "status", &both[0], &both[1]]).stdout;
    assert!(text.contains("time left      about 40 s at 0.50 points/s of 1 process\n"), "{text}");
    assert!(text.contains("process 7 on elsewhere, 2 under way"), "{text}");
    // One that was killed here holds nothing any more.
    let host = sweep::shared::host();
    fs::write(place.at("part3/.sweep.alive"), pulse(8.0).replace("elsewhere", &host)).unwrap();
    let status = place.status(&["part1", "part3"]);
    assert_eq!((&status["under_way"], &status["workers"][1]["alive"]), (&0.into(), &false.into()), "{status}");
}

/// Kills processes that share a folder, shards, and those that join them, until so many were killed; nothing that was kept is lost,
/// and what is left in the end is what an undisturbed process leaves.
fn kills(least: usize, seed: u64) {
    let (mut killed, mut rng, mut round) = (0, Rng::new(seed, 28), 0);
    let place = Place::new();
    let (journal, table) = place.expected();
    let below = |rng: &mut Rng, most: u64| (rng.bits() >> 11) % most;
    while killed < least {
        round += 1;
        let shared = format!("shared{round}");
        let parts: Vec<String> = (1..=3).map(|part| format!("part{round}-{part}")).collect();
        let all = format!("all{round}");
        let mut kept = [0; 4];
        for _ in 0..40 {
            let mut children: Vec<Child> = (0..2)
                .map(|_| match below(&mut rng, 4) {
                    0 => {
                        let part = below(&mut rng, 3) as usize;
                        place.begun(&parts[part], &["--resume", "--shard", &format!("{}/3", part + 1)])
                    }
                    1 if parts.iter().all(|part| place.at(part).join("sweep.jsonl").exists()) => {
                        let paths: Vec<String> =
                            std::iter::once(&all).chain(&parts).map(|name| place.path(name)).collect();
                        let line: Vec<&str> =
                            ["sweep", "merge", "--out"].into_iter().chain(paths.iter().map(String::as_str)).collect();
                        begun(&line)
                    }
                    _ => place.begun(&shared, &["--shared", "--stale", "1"]),
                })
                .collect();
            std::thread::sleep(Duration::from_millis(2 + below(&mut rng, 40)));
            for child in &mut children {
                killed += usize::from(child.try_wait().unwrap().is_none());
                child.kill().unwrap();
                child.wait().unwrap();
            }
            for (before, name) in kept.iter_mut().zip([&shared, &parts[0], &parts[1], &parts[2]]) {
                let now = if place.at(name).is_dir() { sweep::rows(&place.at(name)).unwrap().len() } else { 0 };
                assert!(now >= *before, "{name}: {now} points are left of {before}");
                *before = now;
            }
            if kept[0] == POINTS && kept[1..].iter().sum::<usize>() == POINTS || killed >= least {
                break;
            }
        }
        // Whoever comes now ends it.
        assert_eq!(place.sweep(&shared, &["--shared", "--stale", "1"]).status, 0);
        assert_eq!(place.table(&shared), table, "round {round}");
        assert!(fs::read(place.at(&shared).join("sweep.jsonl")).unwrap() == journal, "round {round}");
        for (number, part) in parts.iter().enumerate() {
            assert_eq!(place.sweep(part, &["--resume", "--shard", &format!("{}/3", number + 1)]).status, 0);
        }
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let found = place.merged(&all, &parts);
        assert!(found == (journal.clone(), table.clone()), "round {round}");
        for name in parts.iter().chain([&shared.as_str(), &all.as_str()]) {
            fs::remove_dir_all(place.at(name)).unwrap();
        }
    }
    println!("{killed} processes were killed in {round} rounds");
}

/// Nine kills in `make test`, 25 in `make soak`.
#[test]
fn what_is_killed_loses_nothing() {
    kills(share::of(3, 25) as usize, 1);
}

/// Issue 28: a thousand kills over shards and merges.
#[test]
#[ignore = "takes minutes"]
fn a_thousand_kills_lose_nothing() {
    kills(1000, 2);
}

#[test]
fn what_is_there_is_joined_at_any_time_to_the_same_bytes() {
    let place = Place::new();
    let (journal, table) = place.expected();
    elsewhere(&place.at("shared"), 10..30, None);
    let mut child = place.begun("shared", &["--shared", "--stale", "1"]);
    let mut joined = 0;
    while child.try_wait().unwrap().is_none() {
        // There is something to join as soon as a part says which sweep it is of.
        let begun =
            |part: &Path| fs::read_to_string(part.join("sweep.jsonl")).is_ok_and(|text| text.contains("scenarios"));
        if place.at("shared").read_dir().is_ok_and(|mut all| all.any(|of| begun(&of.unwrap().path()))) {
            place.merged("so-far", &["shared"]);
            let table_so_far = place.table("so-far");
            assert!(table_so_far.lines().all(|line| table.lines().any(|of| of == line)), "{table_so_far}");
            joined += 1;
        }
    }
    assert!(joined > 2, "{joined} times");
    let found = place.merged("so-far", &["shared"]);
    assert!(found == (journal, table));
}

/// The block of the book's page that begins like this.
fn of_book(begin: &str) -> String {
    let page = fs::read_to_string(root().join("src/guide/pages/sweeps.md")).unwrap();
    let block = page.split("```").find(|block| block.split_once('\n').is_some_and(|(_, body)| body.starts_with(begin)));
    block.unwrap_or_else(|| panic!("the page has no {begin}")).split_once('\n').unwrap().1.to_owned()
}

/// A folder with the program on the way to be found, the sweep of the book's page and the scenarios that it names.
fn cluster() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    fs::create_dir_all(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_watershed"), bin.join("watershed")).unwrap();
    std::os::unix::fs::symlink(root().join("testbench"), folder.path().join("testbench")).unwrap();
    fs::create_dir(folder.path().join("out")).unwrap();
    fs::write(folder.path().join("out/mine.toml"), of_book("# out/mine.toml")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    (folder, path)
}

/// The table that one process makes of the book's sweep.
fn alone(folder: &Path) -> String {
    let out = folder.join("out/alone");
    let output = Command::new(env!("CARGO_BIN_EXE_watershed"))
        .current_dir(folder)
        .args(["sweep", "out/mine.toml", "--out", "out/alone"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read_to_string(out.join("points.csv")).unwrap()
}

/// What stands in for Slurm: it reads the array of a batch file and runs its tasks at a time, each with the variables that Slurm sets.
const SBATCH: &str = r#"#!/bin/bash
array=$(sed -n 's/^#SBATCH --array=//p' "$1")
first=${array%-*} last=${array#*-}
cpus=$(sed -n 's/^#SBATCH --cpus-per-task=//p' "$1")
for task in $(seq "$first" "$last"); do
    SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_MIN=$first SLURM_ARRAY_TASK_MAX=$last \
        SLURM_ARRAY_TASK_COUNT=$((last - first + 1)) SLURM_CPUS_PER_TASK=$cpus bash "$1" > "task-$task.log" 2>&1 &
done
for job in $(jobs -p); do wait "$job" || failed=1; done
echo "Submitted batch job 7"
exit "${failed:-0}"
"#;

#[test]
fn the_book_s_slurm_array_computes_the_sweep() {
    let (folder, path) = cluster();
    let sbatch = folder.path().join("bin/sbatch");
    fs::write(&sbatch, SBATCH).unwrap();
    fs::set_permissions(&sbatch, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.path().join("mine.sbatch"), of_book("#!/bin/bash\n#SBATCH")).unwrap();
    let output =
        Command::new("sbatch").arg("mine.sbatch").current_dir(folder.path()).env("PATH", &path).output().unwrap();
    let logs = || -> String {
        let tasks =
            (0..4).map(|task| fs::read_to_string(folder.path().join(format!("task-{task}.log"))).unwrap_or_default());
        tasks.collect()
    };
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stderr), logs());
    assert!(logs().contains("task 2 of a Slurm array: the points are shared with the other tasks"), "{}", logs());
    let table = fs::read_to_string(folder.path().join("out/array/points.csv")).unwrap_or_else(|_| panic!("{}", logs()));
    assert_eq!(table, alone(folder.path()));
    let status = Command::new("watershed")
        .args(["sweep", "status", "out/array"])
        .current_dir(folder.path())
        .env("PATH", &path)
        .output()
        .unwrap();
    assert!(status.status.success() && String::from_utf8_lossy(&status.stdout).starts_with("9 of 9 points done"));
}

/// Runs where Snakemake is installed, and says so where it is not.
#[test]
fn the_book_s_snakefile_computes_the_sweep() {
    if Command::new("snakemake").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        println!("snakemake is not installed: the Snakefile of the book was not run");
        return;
    }
    let (folder, path) = cluster();
    fs::write(folder.path().join("Snakefile"), of_book("SHARDS = ")).unwrap();
    let snakemake = || {
        let mut command = Command::new("snakemake");
        command.args(["--cores", "2"]).current_dir(folder.path()).env("PATH", &path);
        command.env("XDG_CACHE_HOME", folder.path().join("cache"));
        let output = command.output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let expected = alone(folder.path());
    let (success, words) = snakemake();
    assert!(success, "{words}");
    assert_eq!(fs::read_to_string(folder.path().join("out/snake/points.csv")).unwrap(), expected);
    // A shard that is gone is computed again, and nothing else.
    fs::remove_dir_all(folder.path().join("out/snake-2")).unwrap();
    fs::remove_file(folder.path().join("out/snake/points.csv")).unwrap();
    let (success, words) = snakemake();
    assert!(success && words.contains("snake-2") && !words.contains("snake-1/points.csv\n    jobid"), "{words}");
    assert_eq!(fs::read_to_string(folder.path().join("out/snake/points.csv")).unwrap(), expected);
}
