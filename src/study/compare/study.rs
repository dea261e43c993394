//! A study file: the same contestants at several vector lengths and in several systems.
//!
//! A cell is a system and a length. In each, all contestants must do the same job; how many elements a vector has is set by
//! the study in the words of each family ([`job`](super::job)).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{Contestant, ContestantError, Disturbance, Entry, SCHEMA_VERSION};
use crate::training::file::TrainingFile;
use watershed_scenario_interface::kind::{self, Kind};
use watershed_scenario_interface::run_inputs::RunInputs;
use watershed_scenario_interface::{
    Engines, Problem, Problems, Runnable, Source, load_named, load_traced, read, schema, shipped,
};
use watershed_workload::Trace;

/// Studies that come with the program: path and text.
pub const SHIPPED: &[(&str, &str)] = &[
    ("testbench/studies/face-off.toml", include_str!("../../../testbench/studies/face-off.toml")),
    ("testbench/studies/which-engine.toml", include_str!("../../../testbench/studies/which-engine.toml")),
    ("testbench/studies/training.toml", include_str!("../../../testbench/studies/training.toml")),
];

/// A study file as it is written.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "watershed study")]
pub struct StudyFile {
    /// What it is about; the page begins with it.
    #[serde(default)]
    pub about: String,
    /// Vector lengths, ascending. Needed, but for `[training]`, whose lengths are those of its layers.
    #[serde(default)]
    #[schemars(length(min = 1, max = 64), inner(range(min = 1, max = 268_435_456)))]
    pub elements: Vec<u64>,
    /// Who is compared.
    #[schemars(length(min = 2, max = 24))]
    pub contestant: Vec<ContestantFile>,
    /// What all of them are compared in. Default: one system, as the scenarios are.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub system: Vec<SystemFile>,
    /// How participants are disturbed.
    #[serde(default)]
    pub disturb: DisturbFile,
    /// Cycles that an element of a vector may take before a run is given up, where that is more than the `limits.max_cycles` of a
    /// scenario. A run that waits for a dead participant ends sooner with a short vector than with a long one.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub cycles_per_element: Option<u64>,
    /// Training of networks instead of one job.
    #[serde(default)]
    pub training: Option<TrainingFile>,
}

/// A contestant.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ContestantFile {
    /// Its name, unique. Default: that of the scenario file.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub name: Option<String>,
    /// A scenario file, relative to the study, or the name of a shipped scenario.
    #[schemars(length(min = 1))]
    pub file: String,
    /// Which of its collectives, reductions or hosts. Needed if there are several.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub job: Option<String>,
    /// Values that are set in it, as `--set` takes them.
    #[serde(default)]
    pub set: Vec<String>,
}

/// A system.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct SystemFile {
    /// Its name, unique.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Values that are set in all scenarios.
    #[serde(default)]
    pub set: Vec<String>,
    /// Values that are set for one contestant only, by its name.
    #[serde(default)]
    pub only: BTreeMap<String, Vec<String>>,
}

/// How participants are disturbed.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct DisturbFile {
    /// Lengths at which they are. Default: all.
    #[schemars(inner(range(min = 1)))]
    pub elements: Option<Vec<u64>>,
    /// One comes so late; 0 leaves that out.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub late_ns: f64,
    /// One is dead.
    pub dead: bool,
    /// Runs with other orders of arrival; 0 leaves that out.
    #[schemars(range(min = 0, max = 1000))]
    pub orders: u32,
    /// In these participants come up to so late.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub spread_ns: f64,
    /// Seed of who comes when.
    #[schemars(range(min = 0, max = 9_223_372_036_854_775_807_i64))]
    pub seed: u64,
}

impl Default for DisturbFile {
    fn default() -> Self {
        let Disturbance { late_ns, dead, orders, spread_ns, seed } = Disturbance::default();
        Self { elements: None, late_ns, dead, orders, spread_ns, seed }
    }
}

/// A study that has been read and checked.
#[derive(Debug, Clone)]
pub struct Study {
    /// Its name: that of its file.
    pub name: String,
    /// What runs it.
    engines: Engines,
    /// The file.
    pub file: StudyFile,
    /// Names and scenarios of the contestants.
    contestants: Vec<(String, String)>,
    /// The folder that files are relative to.
    base: PathBuf,
    source: Arc<Source>,
}

/// Everything a study has found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Version of this shape.
    pub schema_version: u32,
    /// Name of the study.
    pub study: String,
    /// What it is about.
    pub about: String,
    /// How participants were disturbed.
    pub disturb: Disturbance,
    /// Names of the contestants.
    pub contestants: Vec<String>,
    /// Systems, and in each the lengths ascending.
    pub cells: Vec<Cell>,
}

/// All contestants at one length in one system.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// Name of the system.
    pub system: String,
    /// Elements of the vector.
    pub elements: u64,
    /// A participant was late and one dead in runs of this cell.
    pub disturbed: bool,
    /// One each.
    pub entries: Vec<Entry>,
}

impl Outcome {
    /// Whether every undisturbed run ended with all checks passed.
    pub fn passed(&self) -> bool {
        let mut entries = self.cells.iter().flat_map(|cell| &cell.entries);
        entries.all(|entry| entry.run.outcome == "finished" && entry.run.failed.is_empty())
    }

    /// Names of the systems.
    pub fn systems(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for cell in &self.cells {
            if !names.contains(&cell.system.as_str()) {
                names.push(&cell.system);
            }
        }
        names
    }

    /// The cells of a system.
    pub fn of<'a>(&'a self, system: &'a str) -> impl Iterator<Item = &'a Cell> {
        self.cells.iter().filter(move |cell| cell.system == system)
    }
}

/// The JSON Schema of a study file.
pub fn study_schema() -> &'static Json {
    static SCHEMA: OnceLock<Json> = OnceLock::new();
    SCHEMA.get_or_init(schema::schema_of::<StudyFile>)
}

impl Study {
    /// Reads a study file, or the shipped study of this name.
    ///
    /// # Errors
    /// There is none, or everything that is wrong with it, with carets.
    pub fn load(engines: Engines, name: &str) -> Result<Self, Problems> {
        let path = Path::new(name);
        let own = SHIPPED.iter().find(|(path, _)| *path == name || shipped::stem(path) == name);
        if let (false, Some((path, text))) = (path.is_file(), own) {
            return Self::parse(engines, path, text, Path::new(path).parent().unwrap_or(Path::new("")));
        }
        if kind::certain_other_kind(path, &[Kind::Study]).is_some() {
            return Err(Problems::of_file(path, "a study file"));
        }
        let text = std::fs::read_to_string(path).map_err(|error| {
            let problem = match error.kind() {
                std::io::ErrorKind::NotFound => Problem::general("there is no such study file"),
                _ => Problem::general(format!("cannot read the study: {error}")),
            };
            Problems::new(Arc::new(Source::empty(name)), vec![problem])
        })?;
        Self::parse(engines, name, &text, path.parent().unwrap_or(Path::new("")))
    }

    /// Reads a study from a string; scenario files are relative to `base`.
    ///
    /// # Errors
    /// As [`Study::load`].
    pub fn parse(engines: Engines, name: &str, text: &str, base: &Path) -> Result<Self, Problems> {
        let (source, syntax) = Source::parse(name, text);
        let source = Arc::new(source);
        let mut problems: Vec<Problem> = syntax.into_iter().collect();
        if problems.is_empty() {
            problems = schema::check_against(study_schema(), source.root());
        }
        if !problems.is_empty() {
            return Err(Problems::new(source, problems));
        }
        let file: StudyFile =
            read::read(source.root()).map_err(|problem| Problems::new(Arc::clone(&source), vec![problem]))?;
        let contestants: Vec<(String, String)> = file.contestant.iter().map(|one| named(one, base)).collect();
        rules(&file, &contestants, &mut problems);
        if !problems.is_empty() {
            return Err(Problems::new(source, problems));
        }
        Ok(Self { engines, name: shipped::stem(name).to_owned(), file, contestants, base: base.to_owned(), source })
    }

    /// A problem with its place in the file.
    pub(crate) fn problem(&self, problem: Problem) -> String {
        Problems::new(Arc::clone(&self.source), vec![problem]).to_string()
    }

    /// Names and scenarios of the contestants.
    pub(crate) fn contestants(&self) -> &[(String, String)] {
        &self.contestants
    }

    /// The folder that files are relative to.
    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    /// Keeps only these contestants.
    pub(crate) fn retain_contestants(&mut self, names: &[&str]) {
        let kept: Vec<bool> = self.contestants.iter().map(|(name, _)| names.contains(&name.as_str())).collect();
        let mut at = kept.iter();
        self.file.contestant.retain(|_| at.next() == Some(&true));
        self.contestants.retain(|(name, _)| names.contains(&name.as_str()));
        let named = |name: &String| names.contains(&name.as_str());
        if let Some(training) = &mut self.file.training {
            training.figure.retain(|figure| named(&figure.contestant) && figure.over.as_ref().is_none_or(named));
        }
    }

    /// Sets a value in the scenarios of all contestants.
    pub(crate) fn set(&mut self, set: &str) {
        for contestant in &mut self.file.contestant {
            contestant.set.push(set.to_owned());
        }
    }

    /// The scenarios of all contestants as text, in the first system, without a trace.
    pub(crate) fn written(&self) -> Vec<String> {
        let systems = self.systems();
        let lines = |(at, (_, path)): (usize, &(String, String))| {
            let loaded = load_named(self.engines, Path::new(path), &self.sets(at, &systems[0])).ok()?;
            Some(RunInputs::new(&loaded).lines.join("\n") + "\n")
        };
        self.contestants.iter().enumerate().filter_map(lines).collect()
    }

    /// What all are compared in.
    pub(crate) fn systems(&self) -> Vec<SystemFile> {
        let plain = || SystemFile { name: "as the scenarios are".into(), set: Vec::new(), only: BTreeMap::new() };
        if self.file.system.is_empty() { vec![plain()] } else { self.file.system.clone() }
    }

    /// What is set in a contestant's scenario.
    fn sets(&self, index: usize, system: &SystemFile) -> Vec<String> {
        let only = system.only.get(&self.contestants[index].0).into_iter().flatten();
        self.file.contestant[index].set.iter().chain(&system.set).chain(only).cloned().collect()
    }

    /// The scenario of a contestant with this trace as its workload.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn traced(&self, (system, index): (&SystemFile, usize), trace: &Trace) -> Result<Runnable, String> {
        let path = Path::new(&self.contestants[index].1);
        load_traced(self.engines, path, &self.sets(index, system), trace).map_err(|problems| problems.to_string())
    }

    /// How participants are disturbed.
    pub fn disturb(&self) -> Disturbance {
        let DisturbFile { late_ns, dead, orders, spread_ns, seed, .. } = self.file.disturb;
        Disturbance { late_ns, dead, orders, spread_ns, seed }
    }

    fn disturbed(&self, elements: u64) -> bool {
        self.file.disturb.elements.as_ref().is_none_or(|list| list.contains(&elements))
    }

    /// All contestants of all cells: system, length and who.
    ///
    /// # Errors
    /// A scenario is wrong, or jobs of one cell differ.
    pub fn cells(&self) -> Result<Vec<(String, u64, Vec<Contestant>)>, String> {
        let systems = self.systems();
        let mut cells = Vec::new();
        for (number, system) in systems.iter().enumerate() {
            let contestants = (0..self.contestants.len())
                .map(|index| self.contestant(index, system))
                .collect::<Result<Vec<Contestant>, String>>()?;
            for &elements in &self.file.elements {
                let mut cell = Vec::new();
                for (index, contestant) in contestants.iter().enumerate() {
                    cell.push(self.of_length(contestant, elements).map_err(|why| {
                        let what = format!("`{}` cannot have {elements} elements: {why}", contestant.name);
                        self.problem(
                            Problem::at("elements", what).related(format!("contestant[{index}].file"), "this one"),
                        )
                    })?);
                }
                let differences = super::differences(&cell);
                if !differences.is_empty() {
                    let what =
                        format!("with {elements} elements in system `{}` these are not the same job", system.name);
                    let place =
                        if self.file.system.is_empty() { "contestant".into() } else { format!("system[{number}]") };
                    return Err(self.problem(Problem::at(place, what).help(differences.join("; "))));
                }
                cells.push((system.name.clone(), elements, cell));
            }
        }
        Ok(cells)
    }

    /// A contestant with a vector of this length, and the cycles that this may take.
    fn of_length(&self, contestant: &Contestant, elements: u64) -> Result<Contestant, String> {
        let long = contestant.of_length(elements)?;
        let most = self.file.cycles_per_element.map_or(0, |cycles| cycles.saturating_mul(elements));
        if most > long.loaded.scenario.limits.max_cycles {
            return long.with_sets(&[format!("limits.max_cycles={most}")]).map(|mut long| {
                long.task.elements = elements;
                long
            });
        }
        Ok(long)
    }

    fn contestant(&self, index: usize, system: &SystemFile) -> Result<Contestant, String> {
        let (name, path) = &self.contestants[index];
        let own = &self.file.contestant[index];
        let sets = self.sets(index, system);
        let source = own.job.as_ref().map_or_else(|| path.clone(), |job| format!("{path}:{job}"));
        let mut jobs = super::jobs(self.engines, &source, &sets)?;
        if jobs.len() > 1 {
            let names: Vec<&str> = jobs.iter().map(|job| job.name.rsplit(':').next().unwrap_or(&job.name)).collect();
            let problem = Problem::at(format!("contestant[{index}].file"), "the scenario has several jobs")
                .expected(format!("`job` is {}", watershed_scenario_interface::names::one_of(names)));
            return Err(self.problem(problem));
        }
        let job = jobs.remove(0);
        Ok(Contestant { name: name.clone(), ..job })
    }

    /// Runs it, `jobs` contestants at a time; what comes out does not depend on how many.
    ///
    /// # Errors
    /// The first contestant that cannot be run.
    pub fn run(
        &self,
        jobs: usize,
        stop: &(dyn Fn() -> bool + Sync),
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Outcome, ContestantError> {
        let cells = self.cells().map_err(ContestantError::Refused)?;
        let quiet = Disturbance { late_ns: 0.0, dead: false, orders: 0, ..self.disturb() };
        let all: Vec<(Contestant, Disturbance)> = cells
            .iter()
            .flat_map(|(_, elements, cell)| {
                let disturb = if self.disturbed(*elements) { self.disturb() } else { quiet.clone() };
                cell.iter().map(move |contestant| (contestant.clone(), disturb.clone()))
            })
            .collect();
        let mut entries = super::all(&all, jobs, stop, progress)?.into_iter();
        let cells = cells
            .into_iter()
            .map(|(system, elements, cell)| Cell {
                system,
                elements,
                disturbed: self.disturbed(elements),
                entries: entries.by_ref().take(cell.len()).collect(),
            })
            .collect();
        Ok(Outcome {
            schema_version: SCHEMA_VERSION,
            study: self.name.clone(),
            about: self.file.about.clone(),
            disturb: self.disturb(),
            contestants: self.contestants.iter().map(|(name, _)| name.clone()).collect(),
            cells,
        })
    }
}

/// Name and scenario of a contestant.
fn named(file: &ContestantFile, base: &Path) -> (String, String) {
    let beside: PathBuf = shipped::normalise(&base.join(&file.file));
    let path = match shipped::find(&file.file) {
        Some(_) if !beside.exists() => file.file.clone(),
        _ => beside.to_string_lossy().replace('\\', "/"),
    };
    (file.name.clone().unwrap_or_else(|| shipped::stem(&path).to_owned()), path)
}

/// A study is of jobs at several lengths, or of training.
fn one_kind(file: &StudyFile, problems: &mut Vec<Problem>) {
    let Some(training) = &file.training else {
        if file.elements.is_empty() {
            problems.push(Problem::general("`elements` is missing").expected("vector lengths, or a [training]"));
        }
        return;
    };
    let job = file.contestant.iter().position(|one| one.job.is_some()).map(|index| format!("contestant[{index}].job"));
    let elements = (!file.elements.is_empty()).then(|| "elements".to_owned());
    let disturb = (file.disturb != DisturbFile::default()).then(|| "disturb".to_owned());
    let cycles = file.cycles_per_element.map(|_| "cycles_per_element".to_owned());
    for place in [elements, cycles, disturb, job].into_iter().flatten() {
        let problem = Problem::at_key(place, "this means nothing to training: a layer says how long its vector is");
        problems.push(problem.related("training", "the training"));
    }
    if !training.minibatch.is_sorted_by(|a, b| a < b) {
        let problem = Problem::at("training.minibatch", "the minibatches are not in ascending order");
        problems.push(problem.expected("each once, smallest first"));
    }
}

/// What hangs together.
fn rules(file: &StudyFile, contestants: &[(String, String)], problems: &mut Vec<Problem>) {
    one_kind(file, problems);
    if !file.elements.is_sorted_by(|a, b| a < b) {
        problems.push(
            Problem::at("elements", "the lengths are not in ascending order").expected("each once, shortest first"),
        );
    }
    let mut seen = BTreeSet::new();
    for (index, (name, _)) in contestants.iter().enumerate() {
        if !seen.insert(name) {
            let place = if file.contestant[index].name.is_some() { "name" } else { "file" };
            let problem =
                Problem::at(format!("contestant[{index}].{place}"), format!("two contestants have the name `{name}`"));
            problems.push(problem.help("give one of them a `name`"));
        }
    }
    let mut seen = BTreeSet::new();
    for (index, system) in file.system.iter().enumerate() {
        if !seen.insert(&system.name) {
            let what = format!("two systems have the name `{}`", system.name);
            problems.push(Problem::at(format!("system[{index}].name"), what));
        }
        for name in system.only.keys().filter(|name| !contestants.iter().any(|(known, _)| known == *name)) {
            let names: Vec<&str> = contestants.iter().map(|(name, _)| name.as_str()).collect();
            let place = watershed_scenario_interface::source::child(&format!("system[{index}].only"), name);
            problems.push(
                Problem::at_key(place, format!("there is no contestant `{name}`"))
                    .nearest(name, names.iter().copied())
                    .expected(watershed_scenario_interface::names::one_of(&names)),
            );
        }
    }
    for (index, elements) in file.disturb.elements.iter().flatten().enumerate() {
        if !file.elements.contains(elements) {
            let what = format!("{elements} is not among the lengths of the study");
            problems.push(Problem::at(format!("disturb.elements[{index}]"), what).related("elements", "these are"));
        }
    }
}
