//! Two processes that would write the same file: the second one is refused with the name of the first, and `kill -9` leaves no lock.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Starts the program in a folder.
fn start(folder: &Path, command: &str) -> Child {
    let words = command.split(' ');
    let mut program = Command::new(env!("CARGO_BIN_EXE_watershed"));
    program.current_dir(folder).args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn run(folder: &Path, command: &str) -> (Option<i32>, String) {
    let words = command.split(' ');
    let output = Command::new(env!("CARGO_BIN_EXE_watershed")).current_dir(folder).args(words).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// Waits for something that comes soon.
fn until(mut there: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if there() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("it does not come");
}

fn long_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| data.len() > 100_000)
}

/// Traffic without an end in sight.
const ENDLESS: &str = "--set traffic.0.stop_cycle=4_000_000_000 --set limits.max_cycles=9_000_000_000";

#[test]
fn the_second_of_two_is_refused_with_the_first_s_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("d")).unwrap();
    fs::write(folder.join("d/w.vcd"), "an older waveform").unwrap();
    let (status, words) = run(folder, "run barrier-die --out d");
    assert_eq!(status, Some(0), "{words}");
    let sweep = "[[scenario]]\nfile = \"barrier-die\"\n[[axis]]\nkey = \"switch.ceng.stages\"\nvalues = [2]\n";
    fs::write(folder.join("s.toml"), sweep).unwrap();
    assert_eq!(run(folder, "sweep s.toml --out sweep").0, Some(0));
    let part = folder.join("d/w.part.vcd");
    let mut first = start(folder, &format!("run mesh-uniform --out d --wave w.vcd {ENDLESS}"));
    until(|| long_file(&part));
    let name =
        format!("it is being written by process {}: watershed run mesh-uniform --out d --wave w.vcd", first.id());
    for second in [
        "run mesh-uniform --out d --wave w.vcd",
        "run barrier-die --wave d/../d/w.vcd",
        "run barrier-die --wave d/w.fst",
        "run barrier-die --out d --ladder d/w.vcd",
        "run mesh-uniform --out d",
        "curve mesh-uniform --rates 0.1 --csv d/w.vcd",
        "compare hosts-die:network hosts-die:ring -o d/w.vcd",
        "study pbv-table1 -o d/w.vcd",
        "report d/barrier-die.json -o d/w.vcd",
        "topology barrier-die --svg d/w.vcd",
        "embed barrier-die --save d/w.vcd",
        "sweep export sweep --parquet d/w.vcd",
        "exhaustive --random 10 --resume d/w.vcd",
    ] {
        let (status, words) = run(folder, second);
        assert_eq!(status, Some(2), "{second}: {words}");
        assert!(words.contains("error: cannot write ") || words.contains("error: error"), "{second}: {words}");
        assert!(words.contains(&name), "{second}: {words}");
    }
    // Other names in the same folder are free.
    assert_eq!(run(folder, "run barrier-die --out d --wave other.vcd").0, Some(0));
    assert_eq!(fs::read_to_string(folder.join("d/w.vcd")).unwrap(), "an older waveform");

    first.kill().unwrap();
    first.wait().unwrap();
    // What it had is there, and can be looked at.
    assert!(fs::read_to_string(&part).unwrap().contains("$enddefinitions"));
    let (status, words) = run(folder, "run barrier-die --out d --wave w.vcd");
    assert_eq!(status, Some(0), "{words}");
    assert_eq!(run(folder, "wave diff d/w.vcd d/other.vcd").0, Some(0));
    let left: Vec<String> = fs::read_dir(folder.join("d"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(!left.iter().any(|name| name.contains("w.vcd.lock") || name.contains("w.part")), "{left:?}");
}

#[test]
fn a_sweep_s_folder_has_one_writer() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let long = "[[scenario]]\nfile = \"mesh-uniform\"\nset = [\"traffic.0.stop_cycle=4_000_000_000\", \
                \"limits.max_cycles=9_000_000_000\"]\n[[axis]]\nname = \"seed_set\"\nkey = \"seed\"\nvalues = [1, 2]\n";
    fs::write(folder.join("long.toml"), long).unwrap();
    let short = "[[scenario]]\nfile = \"barrier-die\"\n[[axis]]\nkey = \"switch.ceng.stages\"\nvalues = [2]\n";
    fs::write(folder.join("short.toml"), short).unwrap();
    assert_eq!(run(folder, "sweep short.toml --out part").0, Some(0));
    let mut first = start(folder, "sweep long.toml --out o");
    until(|| folder.join("o/sweep.jsonl").exists());
    let name = format!("it is being written by process {}: watershed sweep long.toml --out o", first.id());
    for second in [
        "sweep long.toml --out o",
        "sweep long.toml --out o --resume",
        "sweep short.toml --out o --resume",
        "sweep merge --out o part",
    ] {
        let (status, words) = run(folder, second);
        assert_eq!(status, Some(2), "{second}: {words}");
        assert!(words.contains(&name), "{second}: {words}");
    }
    first.kill().unwrap();
    first.wait().unwrap();
    let (status, words) = run(folder, "sweep short.toml --out o --resume");
    assert_eq!(status, Some(0), "{words}");
    assert!(!folder.join("o/.sweep.jsonl.lock").exists());
}
