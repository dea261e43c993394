//! Traces and scenarios of the tests.

use std::fs;
use std::path::Path;

use watershed::scenario::result::Document;
use watershed::scenario::run::{self, RunOptions, RunResult};
use watershed::scenario::workload::result::WorkloadResult;
use watershed::scenario::{Loaded, load_text};

use crate::share;

/// The root of the project.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A scenario in memory.
pub fn load(text: &str, sets: &[String]) -> Result<Loaded, String> {
    load_text("test.toml", text, root(), "test", sets).map_err(|problems| problems.to_string())
}

/// Runs a scenario whatever comes of it.
pub fn run_with(text: &str, sets: &[String], options: &RunOptions<'_>) -> RunResult {
    let loaded = load(text, sets).unwrap_or_else(|problems| panic!("{problems}"));
    run::run(&loaded, options).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a scenario in which every check must pass.
pub fn pass(text: &str, sets: &[String]) -> Document {
    let document = run_with(text, sets, &RunOptions::default()).document;
    let failed: Vec<_> = document.checks.iter().filter(|check| !check.passed).collect();
    assert!(failed.is_empty() && !document.checks.is_empty(), "{failed:?}");
    document
}

/// What came of the workload.
pub fn workload(document: &Document) -> &WorkloadResult {
    document.workload.as_ref().expect("a workload")
}

/// The cycle in which the workload ended.
pub fn end(document: &Document) -> u64 {
    workload(document).end_cycle.expect("it ended")
}

/// A GOAL schedule in a file; a block of lines for each rank.
pub struct Goal {
    folder: tempfile::TempDir,
}

impl Goal {
    pub fn new(ranks: &[&str]) -> Goal {
        let folder = tempfile::tempdir().unwrap();
        let blocks = ranks.iter().enumerate().map(|(rank, block)| format!("rank {rank} {{\n{block}\n}}\n"));
        let text = format!("num_ranks {}\n{}", ranks.len(), blocks.collect::<String>());
        fs::write(folder.path().join("t.goal"), text).unwrap();
        Goal { folder }
    }

    /// Keys of `[workload]` that name it, and more of them.
    pub fn keys(&self, more: &str) -> String {
        format!("trace = {:?}\n{more}", self.folder.path().join("t.goal").display().to_string())
    }

    /// A scenario that runs it: a mesh of eight end points whose memory is never short, and more keys of `[workload]`.
    pub fn on_mesh(&self, more: &str) -> String {
        mesh("[8]", &self.keys(more))
    }
}

/// A plain mesh, with the keys of `[workload]`.
pub fn mesh(size: &str, keys: &str) -> String {
    format!(
        "family = \"fabric\"\n[topology]\nkind = \"mesh\"\nsize = {size}\n[memory]\nbandwidth_gbps = \"unlimited\"\n\
         [switch]\npoint_to_point_buffer_flits = 64\n[limits]\nmax_cycles = 100_000_000\n[workload]\n{keys}\n"
    )
}

/// Bytes that samples count for an element: four in `make soak`. In `make test` as many as may be said: a sixteenth of the words, in every
/// step of an algorithm.
pub fn element_bytes() -> u64 {
    if share::is_whole() { 4 } else { 64 }
}

/// The keys that name a sample of ASTRA-sim and the bytes of its elements; four are what it has if nothing is said.
pub fn sample(kind: &str, ranks: u32, element_bytes: u64) -> String {
    let trace = format!("trace = \"traces/astra-sim/{kind}/{ranks}npus_1MB/{kind}\"");
    if element_bytes == 4 { trace } else { format!("{trace}\nelement_bytes = {element_bytes}") }
}

/// Words that all ranks send in software, by hand: a word is two elements, and a megabyte of elements of four bytes is 131072 words.
pub fn words(kind: &str, ranks: u64, element_bytes: u64) -> u64 {
    let m = (1 << 20) / element_bytes / 2;
    match kind {
        "all_reduce" => 2 * m * (ranks - 1),
        // Each rank contributes a megabyte.
        "all_gather" => m * ranks * (ranks - 1),
        _ => m * (ranks - 1),
    }
}
