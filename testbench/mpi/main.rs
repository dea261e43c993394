//! `mpirun -n N watershed run`: several processes evaluate a system together (X-MPI-1). Without the feature `mpi`, or without
//! `mpirun`, each test says in a line that nothing was compared; `make mpi` builds and runs them.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use watershed::files::TempFolder;

const WATERSHED: &str = env!("CARGO_BIN_EXE_watershed");

/// Whether there is something to test with; if not, why.
fn is_there() -> bool {
    let mpirun = Command::new("mpirun").arg("--version").output().is_ok_and(|output| output.status.success());
    match (cfg!(feature = "mpi"), mpirun) {
        (true, true) => return true,
        (false, _) => println!("built without MPI, so nothing is run among processes: make mpi"),
        (true, false) => println!("no mpirun here, so nothing is run among processes"),
    }
    false
}

/// `mpirun` of Open MPI for more processes than processors, as any user.
fn mpirun() -> Command {
    let mut command = Command::new("mpirun");
    command.args(["--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]);
    // In a container one process may not read the memory of another.
    command.args(["--mca", "btl_vader_single_copy_mechanism", "none"]);
    command
}

fn among(ranks: usize, arguments: &[&str]) -> Output {
    mpirun().args(["-n", &ranks.to_string(), WATERSHED]).args(arguments).output().unwrap()
}

fn alone(arguments: &[&str]) -> Output {
    Command::new(WATERSHED).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs with these arguments, alone and among ranks: the summary and these files have the same bytes.
fn same(name: &str, ranks: usize, arguments: &[&str], files: &[&str]) {
    let folder = TempFolder::new("mpi").unwrap();
    let [one, all] = ["one", "all"].map(|part| folder.path().join(part));
    let run = |out: &Path, run: &dyn Fn(&[&str]) -> Output| {
        let mut line = vec!["run", name];
        line.extend(arguments);
        line.extend(["--out", out.to_str().unwrap()]);
        let output = run(&line);
        let said = text(&output.stdout).replace(out.to_str().unwrap(), "OUT");
        (output.status.code(), said, text(&output.stderr))
    };
    let (status, said, errors) = run(&one, &alone);
    let (of_all, said_by_all, errors_of_all) = run(&all, &|line| among(ranks, line));
    assert_eq!(status, of_all, "{name} on {ranks} ranks: {errors}{errors_of_all}");
    assert_eq!(said_by_all, said, "{name} on {ranks} ranks");
    for file in files {
        let [one, all] = [&one, &all].map(|folder| std::fs::read(folder.join(file)).unwrap_or_default());
        assert!(!one.is_empty() && one == all, "{name} on {ranks} ranks: {file} differs");
    }
}

#[cfg(not(feature = "mpi"))]
#[test]
fn without_mpi_several_processes_are_refused() {
    let mut command = Command::new(WATERSHED);
    let output = command.env("OMPI_COMM_WORLD_SIZE", "2").args(["run", "allreduce-die"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("2 processes were started together") && said.contains("--features mpi"), "{said}");
    let sole =
        Command::new(WATERSHED).env("OMPI_COMM_WORLD_SIZE", "1").args(["run", "allreduce-die"]).output().unwrap();
    assert_eq!(sole.status.code(), Some(0), "one is one");
}

#[test]
fn processes_give_the_bytes_of_one_thread() {
    if !is_there() {
        return;
    }
    for (name, ranks) in
        [("allreduce-torus", 4), ("mesh-allreduce", 2), ("fig2-tree", 2), ("barrier-t1-t4", 4), ("goal-mesh", 2)]
    {
        let file = format!("{name}.json");
        same(name, ranks, &[], &[&file]);
    }
    // Parts of nodes run ahead of each other; each process has two threads.
    let folder = TempFolder::new("mpi").unwrap();
    let nodes = folder.path().join("nodes.toml");
    let text = "family = \"piuma\"\n[topology]\nkind = \"nodes\"\nsize = [4, 4]\n[[collective]]\nkind = \"allreduce\"\nelements = 3\n";
    std::fs::write(&nodes, text).unwrap();
    for (ranks, threads) in [(2, "2"), (4, "1")] {
        same(nodes.to_str().unwrap(), ranks, &["--threads", threads], &["nodes.json"]);
    }
}

#[test]
fn a_waveform_among_processes_is_that_of_one() {
    if is_there() {
        same("allreduce-die", 2, &["--wave", "die.vcd"], &["allreduce-die.json", "die.vcd", "die.gtkw"]);
    }
}

/// A long run of two ranks; the process of each. Who asks for it waits for its end.
#[expect(clippy::zombie_processes, reason = "the caller gets the process and waits")]
fn long(folder: &Path) -> (Child, Vec<u32>) {
    let out = folder.to_str().unwrap();
    let run = ["run", "allreduce-die", "--set", "job.0.elements=300000", "--out", out];
    let mut command = mpirun();
    command.args(["-n", "2", WATERSHED]).args(run).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    loop {
        let mut ranks: Vec<(u32, u32)> = std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| {
                let process: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
                let environment = std::fs::read(format!("/proc/{process}/environ")).ok()?;
                let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
                let parent: u32 = stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()?;
                let rank = text(&environment);
                let rank = rank.split('\0').find_map(|line| line.strip_prefix("OMPI_COMM_WORLD_RANK="))?;
                (parent == child.id()).then_some((rank.parse().ok()?, process))
            })
            .collect();
        // They have begun to simulate when the files are claimed.
        if ranks.len() == 2 && folder.join(".allreduce-die.json.lock").exists() {
            std::thread::sleep(Duration::from_secs(2));
            ranks.sort_unstable();
            return (child, ranks.into_iter().map(|(_, process)| process).collect());
        }
        if begun.elapsed() > Duration::from_secs(120) {
            let _ = child.kill();
            panic!("no two ranks: {ranks:?}, and {:?}", child.wait());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn signal(process: u32, name: &str) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}

#[test]
fn a_rank_that_dies_ends_the_run_and_is_named() {
    if !is_there() {
        return;
    }
    let folder = TempFolder::new("mpi").unwrap();
    let old = folder.path().join("allreduce-die.json");
    std::fs::write(&old, "old").unwrap();
    let (child, ranks) = long(folder.path());
    signal(ranks[1], "-KILL");
    let begun = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(60), "the others end soon");
    assert_ne!(output.status.code(), Some(0));
    let said = text(&output.stderr) + &text(&output.stdout);
    assert!(said.contains("rank 1") && said.contains("signal 9"), "{said}");
    assert_eq!(std::fs::read_to_string(&old).unwrap(), "old", "what was there stays");
}

#[test]
fn a_rank_that_panics_ends_the_run_and_is_named() {
    if !is_there() {
        return;
    }
    for (rank, ranks) in [(1, 2), (0, 2), (2, 4)] {
        let folder = TempFolder::new("mpi").unwrap();
        let old = folder.path().join("allreduce-die.json");
        std::fs::write(&old, "old").unwrap();
        let (number, panics) = (ranks.to_string(), format!("WATERSHED_PANICS={rank}"));
        let mut command = mpirun();
        command.args(["-n", &number, "-x", &panics, WATERSHED, "run", "allreduce-die", "--out"]).arg(folder.path());
        let begun = Instant::now();
        let output = command.output().unwrap();
        assert!(begun.elapsed() < Duration::from_secs(60), "the others end soon");
        assert_eq!(output.status.code(), Some(101), "{}", text(&output.stderr));
        let said = text(&output.stderr);
        assert!(said.contains(&format!("error: rank {rank} of {ranks} (process ")), "{said}");
        assert!(said.contains("WATERSHED_PANICS names this rank"), "why it failed: {said}");
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "old", "what was there stays");
    }
}

#[test]
fn who_stops_one_rank_stops_all_with_the_results_so_far() {
    if !is_there() {
        return;
    }
    let folder = TempFolder::new("mpi").unwrap();
    let (child, ranks) = long(folder.path());
    signal(ranks[1], "-TERM");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let document = std::fs::read_to_string(folder.path().join("allreduce-die.json")).unwrap();
    assert!(document.contains("\"interrupted\""));
}

#[test]
fn ranks_that_were_given_different_runs_are_refused() {
    if !is_there() {
        return;
    }
    let run = |seed: &'static str| ["-n", "1", WATERSHED, "run", "background-95", "--seed", seed];
    let output = mpirun().args(run("1")).arg(":").args(run("2")).output().unwrap();
    let said = text(&output.stderr);
    assert_ne!(output.status.code(), Some(0));
    assert!(said.contains("rank 1 was given another scenario than rank 0"), "{said}");
    let lost = ["-n", "1", WATERSHED, "run", "nothing-of-this-name"];
    let output = mpirun().args(run("1")).arg(":").args(lost).output().unwrap();
    let said = text(&output.stderr);
    assert!(said.contains("rank 1 cannot begin") && said.contains("nothing-of-this-name"), "{said}");
}
