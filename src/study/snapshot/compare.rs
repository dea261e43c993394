//! Runs one scenario and compares its outputs with its golden files.

use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value as Json;

use super::golden_outputs::{GoldenOutputs, golden_outputs};
use super::text::{Tolerances, changed_lines, compact, reviewable};
use super::{Difference, Mode, Outcome, SUFFIXES, Test, is_snapshot};
use watershed_files::TempFolder;
use watershed_probe::ascii::{DrawError, Options, draw};
use watershed_probe::diff::{Diff, DiffOptions, FirstDifference, MAX_SHOWN, diff};
use watershed_probe::{Period, Selection};
use watershed_scenario_interface::config::Wave;
use watershed_scenario_interface::embedding::Embedding;
use watershed_scenario_interface::run::{Control, RunError, RunOptions, RunResult, WaveOptions, notify_watcher};
use watershed_scenario_interface::snapshot::Part;
use watershed_scenario_interface::{Engines, Loaded, Problem, Runnable, load_file, summary};

/// The largest golden waveform: more than this nobody reviews *\[chosen\]*.
pub const MOST_WAVE_BYTES: u64 = 1_000_000;

/// Cycles of text waves before the first difference, and after it.
const AROUND: u64 = 8;

/// Runs a scenario and compares everything with its golden files.
pub fn check(engines: Engines, test: &Test, mode: Mode) -> Outcome {
    let began = Instant::now();
    let mut outcome = Outcome::new(test);
    let result = catch_unwind(AssertUnwindSafe(|| examine(engines, test, mode, &mut outcome)));
    outcome.error = match result {
        Ok(done) => done.err(),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
            Some(format!("error: the simulator has a defect: {text}"))
        }
    };
    outcome.seconds = began.elapsed().as_secs_f64();
    outcome
}

/// What a scenario gave, and where its golden files are.
struct Case<'a> {
    test: &'a Test,
    mode: Mode,
    loaded: &'a Runnable,
    watched: GoldenOutputs,
    tolerances: Tolerances<'a>,
}

fn examine(engines: Engines, test: &Test, mode: Mode, outcome: &mut Outcome) -> Result<(), String> {
    let loaded = load_file(engines, &test.scenario, &[]).map_err(|problems| problems.to_string())?;
    let watched = golden_outputs(&loaded.scenario);
    if watched.parts.is_empty() {
        outcome.left_out = true;
        return Ok(());
    }
    let tolerances = Tolerances::new(&loaded.scenario.golden.tolerance);
    let mut case = Case { test, mode, loaded: &loaded, watched, tolerances };
    let scratch = TempFolder::new("test").map_err(|error| format!("error: {error}"))?;
    let result = case.run(scratch.path())?;
    outcome.cycles = Some(result.document.cycles);
    if !result.document.passed() {
        let text = summary::text(&loaded.scenario, &result.document, &[]);
        outcome.failed = Some(format!("the run fails its own checks:\n{text}"));
    }
    case.compare(&result, scratch.path(), &mut |difference| outcome.differences.push(difference))?;
    outcome.accepted = mode == Mode::Accept && !outcome.differences.is_empty();
    outcome.left_over = case.unused_goldens();
    Ok(())
}

impl Case<'_> {
    fn golden(&self, suffix: &str) -> PathBuf {
        self.test.goldens.join(format!("{}{suffix}", self.test.stem()))
    }

    /// Runs the scenario, with a waveform if one is compared.
    fn run(&mut self, scratch: &Path) -> Result<RunResult, String> {
        let ladder = self.watched.has(Part::Ladder) || self.watched.has(Part::LadderSvg);
        let hook = |progress| notify_watcher(progress);
        let options = RunOptions { ladder, hook: Some(&hook), ..RunOptions::default() };
        let (loaded, golden) = (self.loaded, &self.loaded.scenario.golden);
        let text = |error: RunError| match error {
            // What is said without a place is about what the golden files are to hold.
            RunError::Usage(text) if !golden.signals.is_empty() => refused(loaded, "golden.signals", text),
            error => error.to_string(),
        };
        let result = if self.watched.has(Part::Wave) {
            let wave = self.wave_options(scratch);
            match self.loaded.run(&RunOptions { wave: Some(&wave), ..options }) {
                // A system whose engines have other names than those that are looked at: the beginning of everything.
                Err(RunError::Usage(_)) if golden.signals.is_empty() => {
                    self.watched.signals = vec!["**".to_owned()];
                    self.watched.picture = vec!["**".to_owned()];
                    self.watched.cycles.1 = self.watched.cycles.0 + AROUND;
                    self.watched.picture_cycles = self.watched.cycles;
                    self.loaded.run(&RunOptions { wave: Some(&self.wave_options(scratch)), ..options })
                }
                result => result,
            }
        } else {
            self.loaded.run(&options)
        };
        let result = result.map_err(text)?;
        if hook(result.progress.clone()) == Control::Stop {
            return Err("stopped before the end".to_owned());
        }
        if let Some(error) = &result.wave_error {
            return Err(error.clone());
        }
        self.globs_name_something(&result)?;
        Ok(result)
    }

    fn wave_options(&self, scratch: &Path) -> WaveOptions {
        let (from_cycle, to_cycle) = self.watched.cycles;
        let signals = self.watched.signals.clone();
        let shown = Wave { signals, from_cycle, to_cycle: Some(to_cycle), ..Wave::default() };
        WaveOptions::of(scratch.join("wave.vcd"), shown)
    }

    /// Refuses globs of the scenario that name no signal, and a window that the run does not reach.
    fn globs_name_something(&self, result: &RunResult) -> Result<(), String> {
        let (golden, Some(wave)) = (&self.loaded.scenario.golden, &result.wave) else { return Ok(()) };
        let lost = golden
            .signals
            .iter()
            .enumerate()
            .filter(|(_, glob)| wave.unmatched_globs.iter().any(|of| of.globs.contains(glob)));
        let mut problems: Vec<Problem> = lost
            .map(|(at, glob)| Problem::at(format!("golden.signals[{at}]"), format!("no signal matches \"{glob}\"")))
            .collect();
        if let Some(from) = golden.from_cycle.filter(|_| !wave.window_reached) {
            let message = format!("the run ends in cycle {}, before cycle {from}", result.document.cycles);
            problems.push(Problem::at("golden.from_cycle", message));
        }
        if problems.is_empty() { Ok(()) } else { Err(self.loaded.problems(problems).to_string()) }
    }

    fn compare(&mut self, result: &RunResult, scratch: &Path, note: &mut dyn FnMut(Difference)) -> Result<(), String> {
        let document = &result.document;
        let text = summary::text(&self.loaded.scenario, document, &[]);
        // Tolerances first: what names nothing is wrong whatever differs.
        let mut json = None;
        if self.watched.has(Part::Document) {
            let mut found = reviewable(serde_json::to_value(document).map_err(|error| error.to_string())?);
            if !self.tolerances.is_empty() {
                let golden = read(&self.golden(".json"))?.map(|text| serde_json::from_str::<Json>(&text)).transpose();
                let golden = golden.map_err(|error| format!("error: {}: {error}", self.golden(".json").display()))?;
                self.tolerances.apply_tolerances(&mut found, golden.as_ref(), "");
            }
            json = Some(compact(&found));
        }
        let mut settled = text;
        if self.watched.has(Part::Summary) && !self.tolerances.is_empty() {
            let golden = read(&self.golden(".summary.snap"))?;
            settled = self.tolerances.apply_line_tolerances(&settled, golden.as_deref().map(|golden| body(golden).1));
        }
        self.tolerances_name_something()?;

        if let Some(json) = json {
            self.text(".json", &json, note)?;
        }
        if self.watched.has(Part::Wave) {
            self.wave(&scratch.join("wave.vcd"), note)?;
        }
        if self.watched.has(Part::Summary) {
            self.text(".summary.snap", &settled, note)?;
        }
        if self.watched.has(Part::Embedding) {
            let shown = self.loaded.embeddings().map_err(|problems| problems.to_string())?;
            self.text(".embed.snap", &shown.iter().map(Embedding::text).collect::<Vec<_>>().join("\n"), note)?;
        }
        match &result.ladder {
            Some(ladder) => {
                if self.watched.has(Part::Ladder) {
                    self.text(".ladder.snap", &ladder.text(), note)?;
                }
                if self.watched.has(Part::LadderSvg) {
                    self.text(".svg", &ladder.svg(), note)?;
                }
            }
            None if self.watched.has(Part::Ladder) || self.watched.has(Part::LadderSvg) => {
                return Err(refused(self.loaded, "golden.files", "this run has no ladder".to_owned()));
            }
            None => {}
        }
        if self.watched.has(Part::Wave) {
            let picture = self.picture(&scratch.join("wave.vcd"), document.cycles)?;
            self.text(".wave.snap", &picture, note)?;
        }
        Ok(())
    }

    fn tolerances_name_something(&self) -> Result<(), String> {
        let problem = |(at, tolerance): (usize, &watershed_scenario_interface::snapshot::Tolerance)| {
            Problem::at(format!("golden.tolerance[{at}].value"), format!("\"{}\" names no number", tolerance.value))
                .nearest(&tolerance.value, self.tolerances.names.iter())
                .help("`--accept` without this tolerance writes NAME.json, which has the names of all values")
        };
        let problems: Vec<Problem> = self.tolerances.unused().map(problem).collect();
        if problems.is_empty() { Ok(()) } else { Err(self.loaded.problems(problems).to_string()) }
    }

    /// Compares a text; what stands in front of it between lines of `---` says where it comes from, and stays.
    fn text(&self, suffix: &str, found: &str, note: &mut dyn FnMut(Difference)) -> Result<(), String> {
        let path = self.golden(suffix);
        let golden = read(&path)?;
        let is_snap = is_snapshot(suffix);
        let (head, expected) = match &golden {
            Some(text) if is_snap => body(text),
            Some(text) => ("", &**text),
            None => ("", ""),
        };
        // Blank lines around a snapshot are no part of it.
        let trimmed = |text: &str| if is_snap { text.trim_matches('\n').to_owned() } else { text.to_owned() };
        if golden.is_some() && trimmed(expected) == trimmed(found) {
            return Ok(());
        }
        if self.mode == Mode::Accept {
            let end = if is_snap { "\n" } else { "" };
            accept(&path, format!("{head}{}{end}", trimmed(found)).as_bytes())?;
        }
        let text = match golden {
            Some(_) => changed_lines(expected.trim_start_matches('\n'), found.trim_start_matches('\n')),
            None => format!("  there is no golden file yet; {} lines came out\n", found.lines().count()),
        };
        note(Difference { file: path, text });
        Ok(())
    }

    fn wave(&self, found: &Path, note: &mut dyn FnMut(Difference)) -> Result<(), String> {
        let path = self.golden(".vcd");
        let size = fs::metadata(found).map_err(|error| format!("error: {}: {error}", found.display()))?.len();
        if size > MOST_WAVE_BYTES {
            let problem = Problem::general(format!("the golden wave has {size} bytes, more than {MOST_WAVE_BYTES}"));
            let help = "look at fewer signals or cycles (golden.signals, golden.to_cycle), or leave \"wave\" out of golden.files";
            return Err(self.loaded.problems(vec![problem.help(help)]).to_string());
        }
        let text = if exists(&path)? {
            let found = diff(&path, found, &DiffOptions::default()).map_err(|error| format!("error: {error}"))?;
            if found.is_equal() {
                return Ok(());
            }
            let text = names(&found.to_string(), &found);
            format!("{text}{}", found.first.as_ref().map_or_else(String::new, |first| pictures(&found, first)))
        } else {
            format!("  there is no golden file yet; {size} bytes came out\n")
        };
        if self.mode == Mode::Accept {
            accept(&path, &fs::read(found).map_err(|error| format!("error: {}: {error}", found.display()))?)?;
        }
        note(Difference { file: path, text });
        Ok(())
    }

    /// Part of the wave as text.
    fn picture(&self, wave: &Path, cycles: u64) -> Result<String, String> {
        let golden = &self.loaded.scenario.golden;
        let (mut from, mut to) = self.watched.picture_cycles;
        // A run that ends before what is looked at unless it says otherwise: its end.
        if from >= cycles && golden.picture.from_cycle.is_none() {
            (from, to) = (cycles.saturating_sub(to - from), cycles.saturating_sub(1));
        }
        let drawn = |globs: &[String]| -> Result<String, DrawError> {
            // Both can be read and end after they begin: the scenario is checked.
            let selection = Selection::new(globs).and_then(|all| all.with_window(from, Some(to))).unwrap_or_default();
            draw(wave, &Options { selection, ..Options::default() })
        };
        match drawn(&self.watched.picture) {
            Err(DrawError::NothingSelected(_)) if golden.picture.signals.is_empty() => {
                drawn(&self.watched.signals).map_err(|error| format!("error: {error}"))
            }
            Err(error @ DrawError::NothingSelected(_)) => {
                Err(refused(self.loaded, "golden.picture.signals", error.to_string()))
            }
            other => other.map_err(|error| format!("error: {error}")),
        }
    }

    /// Golden files of this scenario that nothing is compared with.
    fn unused_goldens(&self) -> Vec<PathBuf> {
        let unused = SUFFIXES.iter().filter(|(_, part)| !self.watched.has(*part));
        unused.map(|(suffix, _)| self.golden(suffix)).filter(|path| path.exists()).collect()
    }
}

/// What is wrong with a scenario at a place.
fn refused(loaded: &Loaded, place: &str, message: String) -> String {
    loaded.problems(vec![Problem::at(place, message)]).to_string()
}

/// The words of a difference, with names for the two files.
fn names(text: &str, found: &Diff) -> String {
    let places = [(&found.a, "golden"), (&found.b, "this run")];
    let text =
        places.iter().fold(text.to_owned(), |text, (path, word)| text.replace(&path.display().to_string(), word));
    text.lines().map(|line| format!("  {line}").trim_end().to_owned() + "\n").collect()
}

/// Text waves of the signals that differ first, around that moment.
fn pictures(found: &Diff, first: &FirstDifference) -> String {
    let cycle = found.period.map(|period: Period| period.cycle_at((first.time_fs / 1000) as u64));
    let Some(cycle) = cycle else { return String::new() };
    let signals = first.signals.iter().take(MAX_SHOWN).map(|signal| &signal.name);
    let selection = Selection::new(signals).and_then(|all| {
        let from = cycle.saturating_sub(AROUND);
        all.with_window(from, Some(from + 2 * AROUND))
    });
    let Ok(selection) = selection else { return String::new() };
    let mut text = String::new();
    for (path, word) in [(&found.a, "golden"), (&found.b, "this run")] {
        let options = Options { selection: selection.clone(), ..Options::default() };
        if let Ok(picture) = draw(path, &options) {
            let _ = write!(text, "\n  {word}\n");
            text.extend(picture.lines().map(|line| format!("  {line}").trim_end().to_owned() + "\n"));
        }
    }
    text
}

/// What stands in front of a snapshot, and the snapshot.
fn body(text: &str) -> (&str, &str) {
    let Some(rest) = text.strip_prefix("---\n") else { return ("", text) };
    rest.find("\n---\n").map_or(("", text), |at| text.split_at(4 + at + 5))
}

/// The text of a golden file; none if there is none.
fn read(path: &Path) -> Result<Option<String>, String> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("error: cannot read the golden file {}: {error}", path.display())),
    }
}

fn exists(path: &Path) -> Result<bool, String> {
    let there = path.try_exists();
    there.map_err(|error| format!("error: cannot read the golden file {}: {error}", path.display()))
}

fn accept(golden: &Path, bytes: &[u8]) -> Result<(), String> {
    let folder = golden.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)
        .and_then(|()| watershed_files::write(golden, bytes))
        .map_err(|error| format!("error: cannot write {}: {error}", golden.display()))
}
