//! Issue 25: whoever explains or complains says which piece of a waveform shows it; the installed viewer opens it; ladders of
//! hundreds of end points fit on a page.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::share;
use crate::support::{Output, root, watershed};

/// A `wave show` line of a text, as arguments.
fn shown(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().filter_map(|line| line.split_once("watershed wave show ").map(|(_, rest)| rest));
    lines
        .map(|line| {
            let words = line.split_whitespace().map(|word| word.trim_matches('\'').to_owned());
            ["wave", "show"].into_iter().map(str::to_owned).chain(words).collect()
        })
        .collect()
}

#[test]
fn each_step_of_why_is_shown_in_the_wave_of_every_family() {
    for (scenario, set) in [
        ("allreduce-die", "job.0.elements=2"),
        ("fig2-tree", "seed=1"),
        ("fig7-eleven-writes", "seed=1"),
        ("mesh-transpose", "measure.measure_cycles=300"),
        ("fig6-no-engine", "seed=1"),
        ("any-engine", "job.0.engine=software"),
        ("goal-mesh", "seed=1"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (out, wave) = (folder.path().to_str().unwrap(), folder.path().join("w.fst"));
        let run = watershed(["run", scenario, "--set", set, "--out", out, "--wave", "w.fst"]);
        assert_eq!(run.status, 0, "{scenario}: {}", run.stderr);
        let result = folder.path().join(format!("{scenario}.json"));
        let plain = watershed(["why", result.to_str().unwrap()]);
        let why = watershed(["why", result.to_str().unwrap(), "--wave", wave.to_str().unwrap()]);
        assert_eq!(why.status, 0, "{scenario}: {}", why.stderr);
        let lines = shown(&why.stdout);
        let table = plain.stdout.lines().take_while(|line| !line.starts_with("the longest step"));
        let steps = table.filter(|line| line.starts_with("  ") && !line.contains("from")).count();
        assert!(lines.len() >= steps && steps >= 5, "{scenario}: {} of {steps}", lines.len());
        let mut all: Vec<Vec<String>> = lines;
        all.sort();
        all.dedup();
        // As many as a test has time for, spread over all of them: two in `make test`, eight in `make soak`.
        for line in all.iter().step_by(all.len().div_ceil(share::of(4, 8) as usize)) {
            let output = watershed(line);
            assert_eq!(output.status, 0, "{scenario}: {line:?}: {}", output.stderr);
            assert!(output.stdout.lines().count() > 1, "{line:?}");
        }
    }
}

#[test]
fn without_a_wave_why_says_how_its_longest_step_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let run = watershed(["run", "barrier-die", "--out", folder.path().to_str().unwrap()]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let result = folder.path().join("barrier-die.json");
    let plain = watershed(["why", result.to_str().unwrap()]).stdout;
    // The commands are typed as they stand: the first one writes the waveform, the second one draws the step.
    let typed = |start: &str| -> Vec<String> {
        let line = plain.lines().find_map(|line| line.trim().strip_prefix(start)).unwrap_or_else(|| panic!("{plain}"));
        let words = start.split_whitespace().chain(line.split_whitespace()).skip(1);
        words.map(|word| word.trim_matches('\'').to_owned()).collect()
    };
    let written = watershed(typed("watershed why"));
    assert_eq!(written.status, 0, "{}", written.stderr);
    assert!(folder.path().join("barrier-die.fst").is_file());
    let drawn = watershed(typed("watershed wave show"));
    assert_eq!(drawn.status, 0, "{}", drawn.stderr);
    assert!(drawn.stdout.lines().count() > 3, "{}", drawn.stdout);
    // It is the waveform of the run.
    let again = watershed(["run", "barrier-die", "--wave", folder.path().join("again.fst").to_str().unwrap()]);
    assert_eq!(again.status, 0, "{}", again.stderr);
    let [one, two] = ["barrier-die.fst", "again.fst"].map(|name| folder.path().join(name));
    let differ = watershed(["wave", "diff", one.to_str().unwrap(), two.to_str().unwrap()]);
    assert_eq!(differ.status, 0, "{}", differ.stdout);
}

#[test]
fn a_failed_check_says_what_shows_it() {
    let folder = tempfile::tempdir().unwrap();
    let wave = folder.path().join("w.vcd");
    let run = ["run", "allreduce-die", "--set", "job.0.elements=4", "--flip", "sw4:0:1:0x1"];
    let failed = watershed(run);
    assert_eq!(failed.status, 1, "{}{}", failed.stdout, failed.stderr);
    assert!(failed.stderr.contains("run it again with `--wave failed.fst`"), "{}", failed.stderr);
    assert!(
        failed.stderr.contains("watershed wave show failed.fst --signals '**.sw4.switch.ceng.*'"),
        "{}",
        failed.stderr
    );
    let failed = watershed(run.into_iter().chain(["--wave", wave.to_str().unwrap()]));
    assert_eq!(failed.status, 1);
    let lines = shown(&failed.stderr);
    assert!(!lines.is_empty(), "{}", failed.stderr);
    for line in lines {
        let output = watershed(&line);
        assert_eq!(output.status, 0, "{line:?}: {}", output.stderr);
    }
    let fine = watershed(["run", "allreduce-die", "--set", "job.0.elements=4"]);
    assert!(!fine.stderr.contains("wave"), "{}", fine.stderr);
}

#[cfg(unix)]
#[test]
fn the_viewer_that_is_installed_opens_a_wave() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let wave = folder.path().join("w.vcd");
    let run = watershed(["run", "barrier-die", "--wave", wave.to_str().unwrap()]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let open_on = |display: &str, more: &[&str]| -> Output {
        let output = Command::new(env!("CARGO_BIN_EXE_watershed"))
            .current_dir(root())
            .args([&["wave", "open", wave.to_str().unwrap()], more].concat())
            .env("PATH", &bin)
            .env("DISPLAY", display)
            .env_remove("WAYLAND_DISPLAY")
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Output { status: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
    };
    let open = |more: &[&str]| open_on(":0", more);
    let nothing = open(&[]);
    assert_eq!((nothing.status, nothing.stdout.as_str()), (1, ""));
    assert!(
        nothing.stderr.contains("neither gtkwave nor surfer") && nothing.stderr.contains("apt-get install gtkwave")
    );
    assert_eq!(nothing.stderr.lines().count(), 1, "{}", nothing.stderr);
    let install = |name: &str| {
        let path = bin.join(name);
        let log = folder.path().join(format!("{name}.log"));
        fs::write(&path, format!("#!/bin/sh\necho \"$@\" > {0}.part\nexec /bin/mv {0}.part {0}\n", log.display()))
            .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        log
    };
    let read = |log: &Path| {
        for _ in 0..500 {
            if let Ok(text) = fs::read_to_string(log) {
                return text.trim().to_owned();
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("{} was not started", log.display());
    };
    let surfer = install("surfer");
    let blind = open_on("", &[]);
    assert!(blind.status == 1 && blind.stderr.contains("no display for surfer"), "{}", blind.stderr);
    assert_eq!(open(&[]).status, 0);
    assert_eq!(read(&surfer), "-c w.sucl w.vcd");
    let gtkwave = install("gtkwave");
    let output = open(&[]);
    assert!(output.stdout.contains("gtkwave"), "{}", output.stdout);
    assert_eq!(read(&gtkwave), "w.vcd w.gtkw");
    fs::remove_file(bin.join("surfer")).unwrap();
    let output = open(&["--viewer", "surfer"]);
    assert!(output.status == 1 && output.stderr.contains("no surfer in PATH"), "{}", output.stderr);
    fs::write(&wave, "no waveform").unwrap();
    assert_eq!(open(&[]).status, 2);
}

#[test]
fn ladders_of_256_end_points_fit_on_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let ladder = |name: &str, more: &[&str]| {
        let file = at(name);
        let run = ["run", "against-software", "--ladder", &file];
        let output = watershed(run.into_iter().chain(more.iter().copied()));
        (output, fs::read_to_string(&file).unwrap_or_default())
    };
    let (output, svg) = ladder("l.svg", &[]);
    assert!(output.status <= 1, "{}", output.stderr);
    let size = |svg: &str| svg.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse::<u32>().unwrap();
    assert!(size(&svg) < 5000, "{}", size(&svg));
    assert!(svg.contains(" to ") && svg.contains(" x"), "end points share columns, and messages are counted");
    let (_, text) = ladder("l.txt", &["--ladder-columns", "8"]);
    let head = text.lines().next().unwrap();
    assert!(head.len() < 260, "{head}");
    let cycles = |text: &str| -> Vec<u64> {
        text.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect()
    };
    let all = cycles(&text);
    let middle = all[all.len() / 2];
    let (_, piece) = ladder("p.txt", &["--ladder-window", &format!("{middle}..{}", middle + 50)]);
    assert!(!cycles(&piece).is_empty() && cycles(&piece).iter().all(|cycle| *cycle <= middle + 50), "{piece}");
}
