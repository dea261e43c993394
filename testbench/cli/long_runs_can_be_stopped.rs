//! C-PROG-1, X-LIVE-1: Ctrl-C, SIGTERM and SIGHUP end a command cleanly with what is done so far, SIGUSR1 asks how far it is;
//! without a terminal there is no progress bar.

use crate::support::watershed;

#[test]
fn nothing_is_drawn_without_a_terminal() {
    let output = watershed(["run", "barrier-die"]);
    assert_eq!(output.stderr, "");
}

#[cfg(target_os = "linux")]
mod signals {
    use std::fs::{self, File};
    use std::io::Write;
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    use crate::share;

    /// Traffic without an end in sight: hours, if nobody stops it.
    const ENDLESS: &str = "mesh-uniform --set traffic.0.stop_cycle=4_000_000_000 --set limits.max_cycles=9_000_000_000";

    /// The program under way in a folder; what it prints goes into files there.
    struct Running {
        child: Child,
        folder: PathBuf,
    }

    impl Running {
        fn start(folder: &Path, command: &str) -> Running {
            Self::spawn(folder, Command::new(env!("CARGO_BIN_EXE_watershed")).args(command.split(' ')))
        }

        fn spawn(folder: &Path, command: &mut Command) -> Running {
            let file = |name: &str| Stdio::from(File::create(folder.join(name)).unwrap());
            let child = command.current_dir(folder).stdin(Stdio::piped()).stdout(file("stdout")).stderr(file("stderr"));
            Running { child: child.spawn().unwrap(), folder: folder.to_owned() }
        }

        fn printed(&self, name: &str) -> String {
            fs::read_to_string(self.folder.join(name)).unwrap()
        }

        fn send(&self, signal: Signal) {
            kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
        }

        /// Waits until the program takes a signal itself.
        fn takes(&self, signal: Signal) -> &Self {
            self.until(signal.as_str(), || {
                let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
                let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0").trim();
                u64::from_str_radix(mask, 16).unwrap() >> (signal as i32 - 1) & 1 == 1
            });
            self
        }

        /// Asks how far it is until the answer has these words.
        fn says(&self, words: &str) -> &Self {
            self.takes(Signal::SIGUSR1);
            self.until(words, || {
                self.send(Signal::SIGUSR1);
                std::thread::sleep(Duration::from_millis(50));
                self.printed("stderr").contains(words)
            });
            self
        }

        fn until(&self, what: &str, mut there: impl FnMut() -> bool) {
            for _ in 0..6000 {
                if there() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            panic!("no {what}: {}", self.printed("stderr"));
        }

        /// Ends it with a signal; its status.
        fn end(mut self, signal: Signal) -> Option<i32> {
            self.takes(signal).send(signal);
            self.child.wait().unwrap().code()
        }
    }

    /// A test that fails leaves nothing running.
    impl Drop for Running {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    #[test]
    fn signals_end_a_run_with_what_is_done_so_far() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let json = |name: &str| -> serde_json::Value {
            serde_json::from_str(&fs::read_to_string(folder.join(name)).unwrap()).unwrap()
        };
        for (signal, scenario, name) in [
            (Signal::SIGINT, ENDLESS, "mesh-uniform"),
            (Signal::SIGTERM, "many-rounds --set armed.reduction.0.rounds=100000", "many-rounds"),
            (Signal::SIGHUP, "barrier-t1-t4 --set pbv.collective.0.rounds=100000", "barrier-t1-t4"),
        ] {
            let run = Running::start(folder, &format!("run {scenario} --out . --wave w.vcd --last 20"));
            run.says(", cycle ");
            assert_eq!(run.end(signal), Some(1), "{name}");
            let file = format!("{name}.json");
            let document = json(&file);
            assert_eq!(document["outcome"], "interrupted", "{name}");
            assert!(document["cycles"].as_u64().unwrap() > 0, "{name}");
            assert!(fs::read_to_string(folder.join("w.vcd")).unwrap().contains("$enddefinitions"), "{name}");
            assert!(!folder.join("w.part.vcd").exists() && !folder.join(".w.vcd.lock").exists(), "{name}");

            // It comes out again, as far as it went.
            let replay = || Running::start(folder, &format!("replay {file}"));
            let mut again = replay();
            let status = again.child.wait().unwrap().code();
            let said = again.printed("stdout");
            let expected = format!("stopped in cycle {}, ", document["cycles"]);
            assert!(status == Some(0) && said.contains(": same (") && said.contains(&expected), "{name}: {said}");

            // A replay that is stopped has compared nothing.
            if name == "mesh-uniform" {
                let text = fs::read_to_string(folder.join(&file)).unwrap();
                let cycles = format!("\"cycles\": {}", document["cycles"]);
                fs::write(folder.join(&file), text.replacen(&cycles, "\"cycles\": 8000000000", 1)).unwrap();
                let long = replay();
                long.says(", cycle ");
                let printed = folder.join("stdout");
                assert_eq!(long.end(Signal::SIGTERM), Some(1));
                let said = fs::read_to_string(printed).unwrap();
                let begin = format!("{file}: not compared, the replay was stopped in cycle ");
                assert!(said.starts_with(&begin) && said.ends_with(" of 8000000000\n"), "{said}");

                fs::write(folder.join("page.html"), "an older page").unwrap();
                let page = Running::start(folder, &format!("report {file} -o page.html"));
                page.says(", cycle ");
                assert_eq!(page.end(Signal::SIGHUP), Some(1));
                assert_eq!(fs::read_to_string(folder.join("page.html")).unwrap(), "an older page");
            }
        }
    }

    /// X-CKPT-1: killed, gone on, stopped, gone on: the same bytes as of a run that nobody disturbed. In `make test` the runs are
    /// shorter than in `make soak`.
    #[test]
    fn a_killed_run_goes_on_from_its_last_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let file = |name: &str| folder.join(name);
        for (setting, length, name, every) in [
            ("traffic.0.stop_cycle", share::of(3, 60_000), "mesh-uniform", 4000),
            ("armed.reduction.0.rounds", share::of(3, 1500), "many-rounds", 3000),
            ("pbv.collective.0.rounds", share::of(2, 1500), "barrier-t1-t4", 3000),
        ] {
            let scenario = format!("{name} --set {setting}={length}");
            let mut whole = Running::start(folder, &format!("run {scenario} --out whole"));
            assert_eq!(whole.child.wait().unwrap().code(), Some(0), "{}", whole.printed("stdout"));
            let run = format!("run {scenario} --out part --checkpoint-every {every}");
            let checkpoint = format!("part/{name}.checkpoint");

            let mut killed = Running::start(folder, &run);
            killed.until("checkpoint", || file(&checkpoint).exists() || killed.printed("stdout").contains("passed"));
            killed.child.kill().unwrap();
            killed.child.wait().unwrap();
            let first = fs::read(file(&checkpoint)).unwrap();

            // Stopped, it leaves a later one.
            let resume = format!("{run} --resume {checkpoint}");
            let stopped = Running::start(folder, &resume);
            let status = stopped.end(Signal::SIGTERM);
            assert!([Some(0), Some(1)].contains(&status), "{name}: {status:?}");
            if status == Some(1) {
                assert!(fs::read(file(&checkpoint)).unwrap() != first, "{name}");
            }

            let mut rest = Running::start(folder, &resume);
            assert_eq!(rest.child.wait().unwrap().code(), Some(0), "{name}: {}", rest.printed("stderr"));
            let [whole, part] = ["whole", "part"].map(|at| fs::read(file(&format!("{at}/{name}.json"))).unwrap());
            assert!(whole == part, "{name}");
        }
    }

    #[test]
    fn every_long_command_ends_with_what_is_done_so_far() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();

        // A point of these loads takes longer than it is until a run tells its cycle.
        let curve = Running::start(folder, "curve mesh-uniform -j 1 --rates 0.2..0.3:0.001 --csv c.csv");
        curve.says("2 points, cycle ");
        assert_eq!(curve.end(Signal::SIGTERM), Some(1));
        let rows = read("c.csv").lines().count() - 1;
        assert!((1..101).contains(&rows), "{rows}");
        // The scenario's name, the head of the columns, and what zero load takes.
        assert_eq!(read("stdout").lines().count(), rows + 3, "{}", read("stdout"));
        assert!(read("stderr").contains("stopped before the end"), "{}", read("stderr"));

        let long = "[[scenario]]\nfile = \"mesh-uniform\"\nset = [\"traffic.0.stop_cycle=4_000_000_000\", \
                    \"limits.max_cycles=9_000_000_000\"]\n[[axis]]\nname = \"seed_set\"\nkey = \"seed\"\nvalues = [1, 2]\n";
        fs::write(folder.join("long.toml"), long).unwrap();
        let sweep = Running::start(folder, "sweep long.toml --out sweep");
        sweep.says(", 0 of 2 points, cycle ");
        assert_eq!(sweep.end(Signal::SIGHUP), Some(1));
        assert!(folder.join("sweep/points.csv").exists() && !folder.join("sweep/.sweep.jsonl.lock").exists());

        let compare = Running::start(folder, "compare face-off-piuma face-off-armed --orders 1000 -j 1 -o c.html");
        assert_eq!(compare.end(Signal::SIGTERM), Some(1));
        assert!(read("stderr").contains("stopped before the end"), "{}", read("stderr"));

        let study = Running::start(folder, "study face-off -j 1");
        assert_eq!(study.end(Signal::SIGTERM), Some(1));
        assert!(read("stderr").contains("stopped before the end"), "{}", read("stderr"));

        // Either shows how the study of a source is stopped; that of the PIUMA paper takes longer to end.
        let source = if share::is_whole() { "piuma-paper" } else { "pbv-table1" };
        let paper = Running::start(folder, &format!("study {source}"));
        paper.says(", cycle ");
        assert_eq!(paper.end(Signal::SIGTERM), Some(1));
        assert!(read("stdout").contains("stopped before the end"), "{}", read("stdout"));

        // A block has a million pairs, or all of those that are asked for: of two types, three operations and four roundings each.
        let (asked, all) =
            if share::is_whole() { ("100000000 --type f32 --op add", 384) } else { ("100000", 2 * 3 * 4) };
        let pairs = Running::start(folder, &format!("exhaustive --random {asked} --resume x.txt"));
        pairs.until("block", || folder.join("x.txt").exists());
        pairs.says(" blocks");
        assert_eq!(pairs.end(Signal::SIGTERM), Some(1));
        let blocks = read("x.txt").lines().count();
        let open = format!("{} of {all} blocks are still open", all - blocks);
        assert!(read("stdout").contains(&open), "{blocks}: {}", read("stdout"));
    }

    #[test]
    fn being_asked_ends_no_command() {
        let folder = tempfile::tempdir().unwrap();
        let mut program = Running::start(folder.path(), "testfloat f32_add");
        program.says("status: after ");
        // 1 + 1 = 2, no flags.
        program.child.stdin.take().unwrap().write_all(b"3F800000 3F800000 40000000 00\n").unwrap();
        assert_eq!(program.child.wait().unwrap().code(), Some(0), "{}", program.printed("stderr"));
    }

    #[test]
    fn what_is_ignored_from_the_start_stays_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let nohup = format!("trap '' HUP; exec {} run {ENDLESS} --json", env!("CARGO_BIN_EXE_watershed"));
        let mut run = Running::spawn(folder.path(), Command::new("sh").args(["-c", &nohup]));
        run.says(", cycle ").send(Signal::SIGHUP);
        // A run looks at what it is told ten times a second.
        std::thread::sleep(Duration::from_millis(400));
        assert!(run.child.try_wait().unwrap().is_none(), "it ended");
        assert_eq!(run.end(Signal::SIGTERM), Some(1));
    }
}
