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
fn completions_know_the_flags() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = watershed(["completions", shell]);
        assert_eq!(output.status, 0);
        assert!(output.stdout.contains("order-seed"), "{shell}");
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
