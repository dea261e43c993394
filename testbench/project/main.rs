//! Do the README, the book, the Makefile and the test plan say what is true, and does the code stay small?

mod blocks_have_examples;
mod house_stays_small;
mod imports;
mod makefile_says_what_it_has;
mod pages_are_generated;
mod pages_show_what_happens;
mod rooms_use_only_those_below;
#[path = "../campaign/share.rs"]
mod share;
mod source_text;
mod testplan_names_tests_that_exist;
mod texts_are_plain;

use std::fs;
use std::path::Path;

/// The root of the project.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The text of a file of the project.
fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}
