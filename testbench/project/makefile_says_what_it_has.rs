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
    for expected in ["help", "run", "test", "golden", "bench", "wave", "soak", "exhaustive", "doc", "clean"] {
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
    assert!(read(".ci/run").contains("exec make test\n"));
}
