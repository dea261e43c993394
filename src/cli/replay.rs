//! `watershed replay`: runs again what a result document was made from, and says whether the same comes out.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value as Json;

use super::progress::{self, RunProgress};
use super::{Exit, engines, print, print_error};
use watershed_scenario_interface::kind::{self, Kind};
use watershed_scenario_interface::result::{Document, Outcome, commit, upgraded};
use watershed_scenario_interface::run::{self, RunOptions};
use watershed_scenario_interface::{Runnable, load_inputs};

/// Run again what a result was made from, and compare.
#[derive(Debug, Args)]
#[command(after_help = "\
A result document carries the whole scenario it was made from, with everything that was set on the command line. Replay
runs that scenario again and compares all of the document but the program's version and commit. Files that the scenario
reads are looked for where they were. A run that was stopped is run again up to the cycle in which it was.

Examples:
  watershed run allreduce-die --json > die.json
  watershed replay die.json
  watershed replay die.json --scenario > die.toml

Exit status:
  0  the same came out
  1  something else came out, and the first difference is printed; or the replay was stopped, which says nothing about the result
  2  a file is no result document, or its scenario cannot be run any more")]
pub(super) struct Arguments {
    /// Result documents, as `run --json` and `run --out` write them
    #[arg(value_name = "RESULT.json", required = true)]
    files: Vec<PathBuf>,
    /// Print the scenario of the result as TOML instead of running it
    #[arg(long)]
    scenario: bool,
    #[command(flatten)]
    _status: super::messages::StatusOptions,
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    let mut exit = Exit::Fine;
    for file in &arguments.files {
        if progress::stopped() {
            break;
        }
        match replay(file, arguments.scenario) {
            Ok(same) => {
                if !same && exit == Exit::Fine {
                    exit = Exit::Failed;
                }
            }
            Err(error) => {
                print_error(&error);
                exit = Exit::Bad;
            }
        }
    }
    exit
}

/// What of a document the options of a run decide.
const OPTIONAL: [&str; 3] = ["links", "checks", "scenario"];

/// The expected kind of file, for error messages.
pub(super) const RESULT: &str = "a result document, as `watershed run SCENARIO --out DIR` writes it";

/// A result document and the scenario it was made from.
pub(super) struct RecordedRun {
    /// The document as it stands in the file, in the shape of this version.
    pub json: Json,
    /// The same, read.
    pub document: Document,
    /// The scenario.
    pub loaded: Runnable,
}

impl RecordedRun {
    /// Reads a document and its scenario.
    pub fn read(file: &Path) -> Result<Self, String> {
        let name = file.display();
        if let Some(kind) =
            kind::certain_other_kind(file, &[]).filter(|kind| !matches!(kind, Kind::Result(_) | Kind::Json))
        {
            let made = match kind {
                Kind::Explanation => "\n  `watershed why` takes the result that this was made from",
                _ => "",
            };
            return Err(format!("{}{made}", kind::wrong_kind_message(file, RESULT)));
        }
        let kind = Kind::of(file);
        if matches!(kind, Kind::Shipped | Kind::Missing) {
            let given = file.to_string_lossy();
            let pattern = kind == Kind::Missing && given.contains(['*', '?', '[']);
            let pattern = if pattern { "\n  no file matched this pattern, so the shell left it as it is" } else { "" };
            return Err(format!("{}{pattern}", kind::wrong_kind_message(file, RESULT)));
        }
        let text = std::fs::read_to_string(file).map_err(|error| format!("error: cannot read {name}: {error}"))?;
        let no_document = |why: &dyn std::fmt::Display| format!("error: {name} is no result document: {why}");
        let json: Json = serde_json::from_str(&text).map_err(|error| no_document(&error))?;
        let json = upgraded(json).map_err(|error| format!("error: cannot read {name}: {error}"))?;
        let mut document: Document = serde_json::from_value(json.clone()).map_err(|error| no_document(&error))?;
        let written = document
            .scenario
            .as_ref()
            .ok_or_else(|| no_document(&"it does not hold its scenario; a program of today has to write it anew"))?;
        let loaded = load_inputs(engines(), written, &format!("the scenario in {name}"), &document.stamp.scenario)
            .map_err(|problems| problems.to_string())?;
        if document.jobs.is_empty() {
            document.jobs = run::jobs::all(&loaded, &document, &[]);
        }
        Ok(Self { json, document, loaded })
    }

    /// How it was run.
    pub fn options(&self) -> RunOptions<'_> {
        let options =
            self.document.scenario.as_ref().map(watershed_scenario_interface::run_inputs::RunInputs::run_options);
        RunOptions { stop_cycle: self.stopped().then_some(self.document.cycles), ..options.unwrap_or_default() }
    }

    /// Whether the recorded run was stopped before its end.
    pub fn stopped(&self) -> bool {
        self.document.outcome == Outcome::Interrupted
    }

    /// Whether a run of today was stopped before it came as far as the recorded one.
    pub fn is_cut_short(&self, now: &Document) -> bool {
        now.outcome == Outcome::Interrupted && !(self.stopped() && now.cycles == self.document.cycles)
    }

    /// What is said of a run of today that was stopped.
    pub fn cut_short(&self, now: &Document) -> String {
        let of =
            if self.document.cycles > now.cycles { format!(" of {}", self.document.cycles) } else { String::new() };
        format!("stopped in cycle {}{of}", now.cycles)
    }

    /// The first place at which a run of today differs from what was recorded, if any: a file that the scenario reads has
    /// changed, or the program. How much of the links is told and checked is the run's option.
    pub fn first_difference(&self, now: &Document) -> Result<Option<String>, String> {
        let without = |mut document: Json| {
            if let Some(document) = document.as_object_mut() {
                document.retain(|key, _| !OPTIONAL.contains(&key.as_str()));
            }
            document
        };
        let differs = self.difference(now, without)?;
        Ok(differs.map(|FirstDifference { path, .. }| path))
    }

    /// The first difference of a run of today, in what `part` leaves of both documents.
    fn difference(&self, now: &Document, part: impl Fn(Json) -> Json) -> Result<Option<FirstDifference>, String> {
        let text = serde_json::to_string(now).unwrap_or_default();
        let now: Json = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let made = &self.document.stamp;
        let mut before = part(comparable_part(self.json.clone()));
        let mut now = part(comparable_part(now));
        if made.commit != commit() || made.version != env!("CARGO_PKG_VERSION") {
            // Fields may have been added since: they are no difference, nor is the hash over all of them, nor how a scenario is
            // written down. What they say is compared.
            for document in [&mut before, &mut now] {
                if let Some(table) = document.as_object_mut() {
                    table.shift_remove("scenario");
                }
                if let Some(stamp) = document["stamp"].as_object_mut() {
                    stamp.shift_remove("config_hash");
                }
            }
            drop_unknown_fields(&before, &mut now);
        }
        Ok(first_difference(&before, &now, String::new()))
    }
}

fn replay(file: &Path, scenario_only: bool) -> Result<bool, String> {
    let recorded = RecordedRun::read(file)?;
    if scenario_only {
        if let Some(written) = &recorded.document.scenario {
            print(&written.lines.join("\n"));
        }
        return Ok(true);
    }
    let meter = RunProgress::new();
    let hook = |progress| meter.update(&progress);
    let outcome = recorded.loaded.run(&RunOptions { hook: Some(&hook), ..recorded.options() });
    meter.finish();
    let now = outcome.map_err(|error| error.to_string())?.document;
    let name = file.display();
    let made = &recorded.document.stamp;
    if recorded.is_cut_short(&now) {
        print(&format!("{name}: not compared, the replay was {}", recorded.cut_short(&now)));
        return Ok(false);
    }
    let difference = recorded.difference(&now, |document| document)?;
    let Some(FirstDifference { path, recorded: was, now: is }) = difference else {
        let cycles = recorded.document.cycles;
        let far = if recorded.stopped() { "stopped in cycle " } else { "" };
        let unit = if recorded.stopped() { "" } else { " cycles" };
        print(&format!(
            "{name}: same ({}, seed {}, {far}{cycles}{unit}, configuration {})",
            made.scenario, made.seed, made.config_hash
        ));
        return Ok(true);
    };
    print(&format!("{name}: DIFFERENT, first at {path}\n  recorded  {was}\n  now       {is}"));
    if made.commit != commit() || made.version != env!("CARGO_PKG_VERSION") {
        print(&format!(
            "  recorded by version {} ({}), this is {} ({})",
            made.version,
            made.commit,
            env!("CARGO_PKG_VERSION"),
            commit()
        ));
    }
    Ok(false)
}

/// What of a document is compared: not who made it, and not which way its values were set.
fn comparable_part(mut document: Json) -> Json {
    if let Some(stamp) = document["stamp"].as_object_mut() {
        for key in ["program", "version", "commit", "overrides"] {
            stamp.shift_remove(key);
        }
    }
    document
}

/// Takes fields out of a document that an older one does not have.
fn drop_unknown_fields(old: &Json, new: &mut Json) {
    match (old, new) {
        (Json::Object(old), Json::Object(new)) => {
            new.retain(|key, _| old.contains_key(key));
            new.iter_mut().for_each(|(key, value)| drop_unknown_fields(&old[key], value));
        }
        (Json::Array(old), Json::Array(new)) => {
            old.iter().zip(new).for_each(|(old, new)| drop_unknown_fields(old, new));
        }
        _ => {}
    }
}

/// The first place at which two documents differ.
#[derive(Debug, PartialEq, Eq)]
struct FirstDifference {
    path: String,
    recorded: String,
    now: String,
}

fn first_difference(recorded: &Json, now: &Json, path: String) -> Option<FirstDifference> {
    const SHOWN: usize = 200;
    let shown = |value: Option<&Json>| {
        let text = value.map_or_else(|| "nothing".to_owned(), ToString::to_string);
        if text.chars().count() > SHOWN { text.chars().take(SHOWN).collect::<String>() + "…" } else { text }
    };
    let differs =
        |path: String, a: Option<&Json>, b: Option<&Json>| FirstDifference { path, recorded: shown(a), now: shown(b) };
    match (recorded, now) {
        (Json::Object(a), Json::Object(b)) => {
            let extra = b.keys().filter(|key| !a.contains_key(*key));
            a.keys().chain(extra).find_map(|key| {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => first_difference(a, b, path),
                    (a, b) => Some(differs(path, a, b)),
                }
            })
        }
        (Json::Array(a), Json::Array(b)) => {
            (0..a.len().max(b.len())).find_map(|index| match (a.get(index), b.get(index)) {
                (Some(a), Some(b)) => first_difference(a, b, format!("{path}[{index}]")),
                (a, b) => Some(differs(format!("{path}[{index}]"), a, b)),
            })
        }
        (a, b) => (a != b).then(|| differs(path, Some(a), Some(b))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_that_were_added_later_are_no_difference() {
        let old = json!({"a": [{"b": 1}, {"b": 2}], "c": {"d": 1}});
        let mut new = json!({"a": [{"b": 1, "n": 9}, {"b": 2}], "c": {"d": 1, "e": {}}, "f": 1});
        drop_unknown_fields(&old, &mut new);
        assert_eq!(first_difference(&old, &new, String::new()), None);
        let mut changed = json!({"a": [{"b": 1}, {"b": 3}], "c": {"d": 1}});
        drop_unknown_fields(&old, &mut changed);
        assert_eq!(first_difference(&old, &changed, String::new()).map(|found| found.path), Some("a[1].b".into()));
    }

    #[test]
    fn the_first_difference_has_its_path() {
        let at = |a: Json, b: Json| {
            first_difference(&a, &b, String::new()).map(|found| (found.path, found.recorded, found.now))
        };
        let found = |path: &str, a: &str, b: &str| Some((path.to_owned(), a.to_owned(), b.to_owned()));
        assert_eq!(at(json!({"a": [1, {"b": 2}]}), json!({"a": [1, {"b": 2}]})), None);
        assert_eq!(
            at(json!({"a": [1, {"b": 2}], "c": 1}), json!({"a": [1, {"b": 3}], "c": 2})),
            found("a[1].b", "2", "3")
        );
        assert_eq!(at(json!({"a": [1]}), json!({"a": [1, 2]})), found("a[1]", "nothing", "2"));
        assert_eq!(at(json!({"a": 1, "b": 1}), json!({"a": 1})), found("b", "1", "nothing"));
    }
}
