//! C-RUN-1, C-ERR-1: help, usage, exit statuses.

use crate::support::watershed;

#[test]
fn help_is_no_error_and_documents_the_statuses() {
    for arguments in [&["--help"][..], &["run", "--help"], &["check", "--help"], &["wave", "diff", "--help"]] {
        let output = watershed(arguments);
        assert_eq!(output.status, 0, "{arguments:?}");
        assert!(output.stdout.contains("Exit status"), "{arguments:?}");
    }
    assert!(watershed(["--version"]).stdout.starts_with("watershed "));
}

#[test]
fn bad_usage_has_status_two() {
    for arguments in [
        &[][..],
        &["rnu"],
        &["run"],
        &["run", "allreduce-die", "--wave-depth", "1"],
        &["run", "allreduce-die", "--wave", "x.vcd", "--wave-window", "9..1"],
        &["run", "allreduce-die", "--seed", "-1"],
        &["wave", "diff", "only-one.vcd"],
        &["completions", "dos"],
    ] {
        let output = watershed(arguments);
        assert_eq!(output.status, 2, "{arguments:?}");
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn the_nearest_subcommand_is_named() {
    assert!(watershed(["cehck"]).stderr.contains("'check'"));
}

#[test]
fn completions_ask_the_program() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = watershed(["completions", shell]);
        assert_eq!(output.status, 0);
        assert!(output.stdout.contains("WATERSHED_COMPLETE"), "{shell}");
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_bad_input() {
    let output = watershed(["run", "barrier-die", "--out", "Cargo.toml/x"]);
    assert_eq!(output.status, 2);
    assert!(output.stderr.starts_with("error: cannot write Cargo.toml/x"), "{}", output.stderr);
}

#[test]
fn out_holds_the_same_document_that_json_prints() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let output = watershed(["run", "barrier-die", "--out", path, "--json"]);
    assert_ne!(output.status, 2, "{}", output.stderr);
    let written = std::fs::read_to_string(folder.path().join("barrier-die.json")).unwrap();
    assert_eq!(written, output.stdout);
}

/// Runs the program with its standard output on a device that is always full; `None` where there is none.
#[cfg(unix)]
fn on_a_full_device(arguments: &[&str]) -> Option<(Option<i32>, String)> {
    let full = std::fs::File::options().write(true).open("/dev/full").ok()?;
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_watershed"))
        .current_dir(crate::support::root())
        .args(arguments)
        .stdin(std::process::Stdio::null())
        .stdout(full)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .unwrap();
    Some((output.status.code(), String::from_utf8(output.stderr).unwrap()))
}

#[cfg(unix)]
#[test]
fn what_cannot_be_printed_is_no_success() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let small = ["--set", "collective.0.elements=1"];
    assert_eq!(watershed([&["run", "allreduce-die", "--out", out][..], &small].concat()).status, 0);
    let result = format!("{out}/allreduce-die.json");
    for arguments in [
        &["run", "barrier-die"][..],
        &["run", "barrier-die", "--json"],
        &["list"],
        &["replay", &result],
        &["why", &result],
        &["cost", "allreduce-die"],
        &["check", "barrier-die"],
        &["topology", "allreduce-die"],
        &["curve", "mesh-transpose", "--rates", "0.1"],
        &["explain", "checks"],
        &["schema"],
        &["completions", "bash"],
        &["alu", "--op", "sum", "--type", "f32", "1", "2"],
        &["--help"],
        &["run", "--help"],
        &["--version"],
    ] {
        let Some((status, words)) = on_a_full_device(arguments) else { return };
        assert_eq!(status, Some(3), "{arguments:?}: {words}");
        let said = words.matches("error: cannot write to the standard output: ").count();
        assert_eq!(said, 1, "{arguments:?}: {words}");
    }
    // A check that failed is not hidden by it.
    let failed = ["run", "barrier-die", "--set", "limits.max_cycles=9"];
    assert_eq!(on_a_full_device(&failed).and_then(|(status, _)| status), Some(1));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_watershed"))
        .arg("schema")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn infinities_are_operands() {
    for (arguments, result) in [
        (&["alu", "--op", "sum", "--type", "f64", "1.5", "-inf"][..], "-infinity"),
        (&["alu", "--op", "max", "--type", "f32", "-inf", "-1e-3", "--round", "up"], "-0.001"),
        (&["reduce", "--op", "min", "--type", "f16", "2.0", "-inf", "inf"], "-infinity"),
        (&["numerics", "--op", "sum", "--type", "f64", "1.0", "-inf", "2.5", "-nan"], "7ff8000000000000"),
    ] {
        let output = watershed(arguments);
        assert!(
            output.status == 0 && output.stdout.contains(result),
            "{arguments:?}\n{}{}",
            output.stdout,
            output.stderr
        );
    }
    // What begins with a sign and is no number is an option that there is not.
    let output = watershed(["alu", "--op", "sum", "--type", "f64", "1.5", "2.5", "--rond", "up"]);
    assert!(output.status == 2 && output.stderr.contains("a similar argument exists: '--round'"), "{}", output.stderr);
}

#[test]
fn units_and_words_in_another_order_are_hinted() {
    for (arguments, said) in [
        (&["check", "any-engine", "--set", "link.latency_ns=25us"][..], "help: the key says the unit: 25us is 25000"),
        (
            &["check", "any-engine", "--set", "clock.frequency_mhz=1.5GHz"],
            "help: the key says the unit: 1.5GHz is 1500",
        ),
        (&["check", "any-engine", "--set", "link.latency_cycles=3ns"], "3ns is `latency_ns = 3`"),
        (&["check", "any-engine", "--set", "switch.pipeline_stages=3ns"], "`pipeline_stages` does not say ns"),
        (&["check", "any-engine", "--set", "job.0.elements=4k"], "a number has only digits here: 4k is 4000"),
        (&["check", "any-engine", "--set", "job.0.start_ns=4"], "did you mean `start_cycle`?"),
        (&["check", "any-engine", "--set", "memory.bandwith=4"], "did you mean `bandwidth_gbps`?"),
        (&["run", "any-engine", "--seed", "1e3"], "it is no whole number in decimal digits"),
        (&["run", "any-engine", "--wave", "x.vcd", "--wave-window", "10us..20us"], "a number without a unit"),
        (&["sweep", "best", "x", "--min", "gates", "--where", "latency_ns<1us"], "numbers have no units here"),
        (&["run", "uniform-mesh"], "did you mean `mesh-uniform`?"),
        (&["run", "paper_piuma"], "there is no such scenario file"),
    ] {
        let output = watershed(arguments);
        assert!(output.status == 2 && output.stderr.contains(said), "{arguments:?}\n{}", output.stderr);
    }
}
