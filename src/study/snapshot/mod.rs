//! Scenarios compared with golden files: `watershed test`, which the project's own golden tests call too.
//!
//! | file | holds | compared |
//! |---|---|---|
//! | `NAME.json` | the result document, long vectors shortened | as text |
//! | `NAME.vcd` | some signals over some cycles | by the first time and signal that differ ([`watershed_probe::diff`]) |
//! | `NAME.wave.snap` | part of that as text waves | as text |
//! | `NAME.summary.snap` | what `watershed run` prints | as text |
//! | `NAME.ladder.snap`, `NAME.svg` | the message ladder, where the scenario asks for it | as text |
//! | `NAME.embed.snap` | what `watershed embed` prints, of trees over several nodes | as text |
//!
//! They are in the folder [`FOLDER`] beside the scenario, or in a tree of their own that has the folders of the scenarios' tree.
//! What is looked at is [`golden_outputs::golden_outputs`], and `[golden]` in the scenario ([`watershed_scenario_interface::snapshot`]).
//!
//! Everything must match byte for byte, except numbers to which the scenario gives a tolerance: such a number counts as
//! equal if it is within the tolerance. Whether a run is right is another question, which its own checks answer: a run
//! that fails them fails here.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

pub mod compare;
pub mod find;
pub mod golden_outputs;
pub mod junit;
pub mod text;

pub use compare::check;
pub use find::{FoundTests, find};

use watershed_scenario_interface::Engines;
use watershed_scenario_interface::snapshot::Part;

/// The folder of golden files beside the scenarios they belong to.
pub const FOLDER: &str = "golden";

/// Golden files by the ends of their names.
pub const SUFFIXES: [(&str, Part); 7] = [
    (".json", Part::Document),
    (".vcd", Part::Wave),
    (".wave.snap", Part::Wave),
    (".summary.snap", Part::Summary),
    (".ladder.snap", Part::Ladder),
    (".svg", Part::LadderSvg),
    (".embed.snap", Part::Embedding),
];

/// What to do with a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is an error.
    Check,
    /// The outputs become the golden files.
    Accept,
}

/// A scenario and where its golden files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// What it is called: its path without extension.
    pub name: String,
    /// The scenario.
    pub scenario: PathBuf,
    /// The folder of its golden files.
    pub goldens: PathBuf,
}

impl Test {
    /// The name of the scenario's file without folder and extension.
    pub fn stem(&self) -> String {
        self.scenario.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// A golden file and the difference of the output from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The golden file.
    pub file: PathBuf,
    /// Lines of both.
    pub text: String,
}

/// The outcome of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Its name.
    pub name: String,
    /// What differs.
    pub differences: Vec<Difference>,
    /// Whether that is golden now.
    pub accepted: bool,
    /// What the run's own checks say, if one failed.
    pub failed: Option<String>,
    /// Why there is no result to compare, or no golden file.
    pub error: Option<String>,
    /// Golden files that nothing is compared with.
    pub left_over: Vec<PathBuf>,
    /// Whether the scenario asks to be left out.
    pub left_out: bool,
    /// Cycles that were simulated.
    pub cycles: Option<u64>,
    /// How long that took.
    pub seconds: f64,
}

impl Outcome {
    fn new(test: &Test) -> Self {
        Outcome {
            name: test.name.clone(),
            differences: Vec::new(),
            accepted: false,
            failed: None,
            error: None,
            left_over: Vec::new(),
            left_out: false,
            cycles: None,
            seconds: 0.0,
        }
    }

    /// Whether all is as it was, or has been accepted.
    pub fn passed(&self) -> bool {
        (self.differences.is_empty() || self.accepted)
            && self.failed.is_none()
            && self.error.is_none()
            && self.left_over.is_empty()
    }

    /// In a word.
    pub fn word(&self) -> &'static str {
        match self {
            _ if self.error.is_some() => "ERROR",
            _ if self.failed.is_some() => "FAILS",
            _ if !self.left_over.is_empty() => "LEFT OVER",
            _ if self.accepted => "accepted",
            _ if !self.differences.is_empty() => "DIFFERS",
            _ if self.left_out => "left out",
            _ => "as it was",
        }
    }

    /// The messages; empty if there are none.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if let Some(failed) = &self.failed {
            let _ = writeln!(text, "{}", failed.trim_end());
        }
        for Difference { file, text: shown } in &self.differences {
            let _ = writeln!(text, "{}\n{}", file.display(), shown.trim_end());
        }
        for path in &self.left_over {
            let what =
                "the scenario compares nothing with this golden file: remove it, or name its part in golden.files";
            let _ = writeln!(text, "{}\n  {what}", path.display());
        }
        if let Some(error) = &self.error {
            let _ = writeln!(text, "{}", error.trim_end());
        }
        text
    }
}

/// Runs scenarios on several threads; outcomes are in the order of the scenarios. `done` hears of each, in that order
/// too.
pub fn check_all(
    engines: Engines,
    tests: &[Test],
    mode: Mode,
    jobs: usize,
    stop: &(dyn Fn() -> bool + Sync),
    done: &(dyn Fn(usize, &Outcome) + Sync),
) -> Vec<Outcome> {
    struct Done {
        outcomes: Vec<Option<Outcome>>,
        told: usize,
    }
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Done { outcomes: vec![None; tests.len()], told: 0 });
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, tests.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(test) = tests.get(at).filter(|_| !stop()) else { return };
                    let outcome = check(engines, test, mode);
                    let Ok(mut all) = all.lock() else { return };
                    all.outcomes[at] = Some(outcome);
                    while let Some(Some(ready)) = all.outcomes.get(all.told) {
                        done(all.told, ready);
                        all.told += 1;
                    }
                }
            });
        }
    });
    all.into_inner().map(|all| all.outcomes.into_iter().flatten().collect()).unwrap_or_default()
}

/// Whether a golden file is a text for people, by its name.
fn is_snapshot(name: &str) -> bool {
    name.rsplit('.').next() == Some("snap")
}

/// A path as people write it.
fn shown(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', "/");
    text.strip_prefix("./").map_or(text.clone(), str::to_owned)
}
