//! C-PROG-1: on a terminal long work shows a bar with rate and time left, elsewhere nothing; Ctrl-C ends it cleanly with what is
//! done. The terminal is a pseudo terminal.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::root;

/// What a program wrote to its terminal and to its standard output, and how it ended.
struct Watched {
    terminal: String,
    stdout: String,
    status: Option<i32>,
}

/// Runs the program with its standard error on a pseudo terminal, interrupts it when the terminal shows this, and waits for it.
fn watch(arguments: &[&str], until: &str) -> Watched {
    let size = Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    let pty = openpty(Some(&size), None).unwrap();
    let mut child: Child = Command::new(env!("CARGO_BIN_EXE_watershed"))
        .current_dir(root())
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::from(pty.slave))
        .spawn()
        .unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut master = File::from(pty.master);
    // The terminal ends when the program does; then reading fails.
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = master.read(&mut bytes) {
            if sender.send(bytes[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    let started = Instant::now();
    let (mut terminal, mut interrupted) = (Vec::new(), false);
    while started.elapsed() < Duration::from_secs(60) {
        match receiver.recv_timeout(Duration::from_millis(20)) {
            Ok(bytes) => terminal.extend(bytes),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
        }
        if !interrupted && String::from_utf8_lossy(&terminal).contains(until) {
            interrupted = true;
            kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
        }
        if child.try_wait().unwrap().is_some() && interrupted {
            terminal.extend(receiver.iter().flatten());
            break;
        }
    }
    if child.try_wait().unwrap().is_none() {
        let _ = child.kill();
    }
    let terminal = String::from_utf8_lossy(&terminal).into_owned();
    assert!(interrupted, "`{until}` never came: {terminal:?}");
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    Watched { terminal, stdout, status: child.wait().unwrap().code() }
}

#[test]
fn a_run_shows_its_bar_and_ends_cleanly() {
    let arguments = ["run", "allreduce-die", "--set", "collective.0.elements=200000", "--no-checks"];
    let watched = watch(&arguments, " left");
    for piece in ["%", "/1600000 elements", "/s, ", " left, cycle "] {
        assert!(watched.terminal.contains(piece), "`{piece}` is not in {:?}", watched.terminal);
    }
    // Stopped: the summary of what is done, a check that says so, status 1.
    assert_eq!(watched.status, Some(1), "{}", watched.stdout);
    assert!(watched.stdout.starts_with("allreduce-die ") && watched.stdout.contains("stopped by the user"));
}

#[test]
fn a_sweep_shows_its_bar_and_keeps_its_points() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let file = folder.path().join("sweep.toml");
    let die = root().join("testbench/piuma/allreduce-die.toml");
    std::fs::write(
        &file,
        format!(
            "[[scenario]]\nfile = {:?}\nset = [\"collective.0.elements=40\"]\n[[axis]]\nname = \"start\"\nkey = \"collective.0.start_cycle\"\nrange = {{ from = 1, to = 4000, step = 1 }}\n",
            die.to_str().unwrap()
        ),
    )
    .unwrap();
    let arguments = ["sweep", file.to_str().unwrap(), "--out", out.to_str().unwrap()];
    let watched = watch(&arguments, " left");
    for piece in ["%", "/4000 points", "/s, "] {
        assert!(watched.terminal.contains(piece), "`{piece}` is not in {:?}", watched.terminal);
    }
    assert_eq!(watched.status, Some(1), "{}", watched.stdout);
    assert!(watched.stdout.contains("stopped before the end"), "{}", watched.stdout);
    let lines = |folder: &Path| std::fs::read_to_string(folder.join("points.csv")).unwrap().lines().count();
    assert!(lines(&out) > 1 && lines(&out) < 4001, "{}", lines(&out));
}

/// What a program writes to a terminal that is its standard output.
fn on_a_terminal(arguments: &[&str]) -> String {
    let size = Winsize { ws_row: 24, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };
    let pty = openpty(Some(&size), None).unwrap();
    let mut child: Child = Command::new(env!("CARGO_BIN_EXE_watershed"))
        .current_dir(root())
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::from(pty.slave))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut master, mut bytes, mut text) = (File::from(pty.master), [0; 4096], Vec::new());
    while let Ok(count @ 1..) = master.read(&mut bytes) {
        text.extend_from_slice(&bytes[..count]);
    }
    assert!(child.wait().unwrap().success());
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn who_keeps_no_result_is_told_how_and_only_on_a_terminal() {
    let small = ["run", "allreduce-die", "--set", "collective.0.elements=1"];
    let shown = on_a_terminal(&small);
    assert!(shown.trim_end().lines().last().unwrap().contains("--out DIR keeps the result"), "{shown}");
    let folder = tempfile::tempdir().unwrap();
    let kept = on_a_terminal(&[&small[..], &["-o", folder.path().to_str().unwrap()]].concat());
    assert!(kept.contains("allreduce-die.json") && !kept.contains("not kept"), "{kept}");
    assert!(!crate::support::watershed(small).stdout.contains("not kept"));
}
