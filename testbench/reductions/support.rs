//! Scenarios in memory and on file, run to their end.

use std::path::Path;

use watershed::scenario::armed::result::{ArmedResult, ReductionResult, RoundResult};
use watershed::scenario::result::Document;
use watershed::scenario::run::{RunOptions, run};
use watershed::scenario::{load_file, load_text};

/// The root of the project.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A shipped scenario with overrides, run.
pub fn shipped(name: &str, overrides: &[&str]) -> Document {
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let loaded = load_file(&root().join(format!("testbench/armed/{name}.toml")), &overrides);
    let loaded = loaded.unwrap_or_else(|problems| panic!("{problems}"));
    run(&loaded, &RunOptions::default()).unwrap_or_else(|error| panic!("{error}")).document
}

/// A scenario in memory, run.
pub fn text(scenario: &str) -> Document {
    let loaded = load_text("test.toml", scenario, root(), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    run(&loaded, &RunOptions::default()).unwrap_or_else(|error| panic!("{error}")).document
}

/// What is wrong with a scenario in memory.
pub fn refused(scenario: &str) -> String {
    match load_text("test.toml", scenario, root(), "test", &[]) {
        Err(problems) => problems.to_string(),
        Ok(loaded) => match watershed::scenario::run::check(&loaded) {
            Err(error) => error.to_string(),
            Ok(()) => panic!("nothing is wrong with it"),
        },
    }
}

/// The armed part of a document.
pub fn armed(document: &Document) -> &ArmedResult {
    document.armed.as_ref().expect("an armed run")
}

/// A reduction by its name.
pub fn reduction<'a>(document: &'a Document, name: &str) -> &'a ReductionResult {
    armed(document).reductions.iter().find(|reduction| reduction.name == name).expect("its name is in the scenario")
}

/// A data round of the only reduction.
pub fn round(document: &Document, number: u32) -> &RoundResult {
    let rounds = &armed(document).reductions[0].rounds;
    rounds.iter().find(|round| round.round == Some(number)).expect("the round is listed")
}

/// A count of all engines.
pub fn engines(document: &Document, what: &str) -> u64 {
    armed(document).engines[what].as_u64().expect("a count")
}

/// Every check passed.
pub fn passed(document: &Document) {
    for check in &document.checks {
        assert!(check.passed, "{}: {}", check.name, check.detail);
    }
    assert!(document.passed());
}
