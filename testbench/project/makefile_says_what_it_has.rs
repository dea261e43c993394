//! Every target is in `make help` with a sentence, and CI does what people do.

use crate::read;

/// Targets with their sentences.
pub fn targets() -> Vec<(String, String)> {
    let makefile = read("Makefile");
    let helped = makefile.lines().filter_map(|line| {
        let (head, sentence) = line.split_once(" ## ")?;
        let (target, _) = head.split_once(':')?;
        Some((target.to_owned(), sentence.to_owned()))
    });
    helped.collect()
}

#[test]
fn every_public_target_has_a_sentence() {
    let targets = targets();
    let names: Vec<&str> = targets.iter().map(|(name, _)| name.as_str()).collect();
    for expected in ["help", "run", "test", "golden", "bench", "wave", "soak", "exhaustive", "rtl", "doc", "clean"] {
        assert!(names.contains(&expected), "{expected} is missing in `make help`");
    }
    assert_eq!(names[0], "help", "the first target is the default one");
    let makefile = read("Makefile");
    let phony = makefile.lines().find_map(|line| line.strip_prefix(".PHONY:")).expect(".PHONY");
    for name in names {
        assert!(phony.split_whitespace().any(|phony| phony == name), "{name} is not in .PHONY");
    }
}

#[test]
fn ci_runs_make_test() {
    assert!(read(".ci/run").contains("exec make rtl test\n"));
}

/// A machine that lacks something is told in one line what to install.
#[test]
#[cfg(unix)]
fn what_is_missing_is_said_in_one_line() {
    use std::os::unix::fs::symlink;
    let path = std::env::var("PATH").unwrap();
    let make = std::env::split_paths(&path).map(|folder| folder.join("make")).find(|file| file.is_file());
    let make = make.expect("make is installed");
    let folder = tempfile::tempdir().unwrap();
    let told = || {
        let mut command = std::process::Command::new(&make);
        command.arg("--no-print-directory").arg("program").env("PATH", folder.path()).env_remove("CC");
        let output = command.current_dir(crate::root()).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    for (missing, tool) in [("install Rust", "cargo"), ("install a C compiler", "cc")] {
        let told = told();
        let lines: Vec<_> = told.lines().filter(|line| !line.contains("***")).collect();
        assert!(lines.len() == 1 && lines[0].starts_with("make: ") && lines[0].contains(missing), "{told}");
        symlink("/bin/false", folder.path().join(tool)).unwrap();
    }
}
