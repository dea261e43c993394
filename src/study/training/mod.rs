//! Training studies: networks trained by several contestants, layer by layer, with all-reduces beside backpropagation and behind it
//! (requirements X-WORK-4, P-FIG-7).
//!
//! ```text
//!  table of layers ── Training ──▶ trace ─────────────────────────────┐
//!       │                                                             ▼
//!       └─ elements of each layer ──▶ runs of single all-reduces ──▶ schedule: iteration, exposed communication
//!                                     (the scenario's end points)
//! ```
//!
//! An all-reduce of every length that a layer has is simulated and bit-checked as every run is. One that is longer than
//! `simulated_elements` is simulated at that length and extended linearly, with the time an element measured between
//! half of that length and all of it; its row says so. A rank does its all-reduces one after the other, and all ranks
//! do the same: the time of an iteration follows from the single times by the trace's own dependencies. A test compares
//! that with runs of whole iterations.
//!
//! | file | holds |
//! |---|---|
//! | [`file`](mod@file) | the table as it is written |
//! | [`table`] | text, CSV and a page |

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use watershed_scenario_interface::{Problem, names};
use watershed_workload::model::Model;
use watershed_workload::train::{GradientReduction, Training, all_reduce};
use watershed_workload::{Collective, Compute, Durations, Trace, schedule};

use super::compare::measure::run_to_end;
use super::compare::study::{Study, SystemFile};
use super::compare::{ContestantError, SCHEMA_VERSION, parallel_map};
use file::{BasisFile, FigureFile, Quantity, ReduceFile, TrainingFile};

pub mod file;
pub mod table;

/// Everything a training study has found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Version of this shape.
    pub schema_version: u32,
    /// Name of the study.
    pub study: String,
    /// What it is about.
    pub about: String,
    /// Replicas.
    pub ranks: u32,
    /// All-reduces of more elements are extended.
    pub simulated_elements: u64,
    /// Names of the contestants.
    pub contestants: Vec<String>,
    /// Systems, and in each the models.
    pub cells: Vec<Cell>,
    /// What sources say, beside ours.
    pub figures: Vec<Figure>,
}

/// A model in a system.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// Name of the system.
    pub system: String,
    /// Name of the model, as the study has it.
    pub model: String,
    /// Where its shapes are published.
    pub source: String,
    /// What is learnt.
    pub parameters: u64,
    /// The layers, from the image on, and behind them all of them as one.
    pub layers: Vec<LayerRow>,
    /// Iterations.
    pub iterations: Vec<Iteration>,
}

/// The all-reduce of a layer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerRow {
    /// Its name; "all" for all gradients at once.
    pub name: String,
    /// Elements that are added up.
    pub elements: u64,
    /// Bytes of the vector.
    pub bytes: u64,
    /// Longer than what was simulated.
    pub extended: bool,
    /// From when the last rank has begun to when it is over for all, in ns, of each contestant.
    pub ns: Vec<f64>,
}

/// An iteration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Iteration {
    /// The contestant.
    pub contestant: String,
    /// Images of a rank.
    pub minibatch: u64,
    /// When gradients are added up.
    pub reduce: ReduceFile,
    /// Time of the whole.
    pub ms: f64,
    /// Computing of a rank.
    pub compute_ms: f64,
    /// Operations of a rank.
    pub compute_operations: u64,
    /// All-reduces, one after the other.
    pub reduce_ms: f64,
    /// Time in which a rank communicates and does not compute.
    pub exposed_ms: f64,
    /// The same in per cent of the whole.
    pub exposed_percent: f64,
}

/// What a source says, and ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// What it is.
    pub what: String,
    /// Which quantity it is.
    pub of: Quantity,
    /// What the source says.
    pub says: f64,
    /// Ours.
    pub ours: f64,
    /// How far ours may be away, as a share.
    pub tolerance: f64,
    /// Where ours comes from.
    pub basis: BasisFile,
}

impl Figure {
    /// Whether ours is near the source's, as far as the tolerance goes.
    pub fn holds(&self) -> bool {
        ((self.ours - self.says) / self.says).abs() <= self.tolerance
    }
}

impl Outcome {
    /// Whether every figure holds.
    pub fn passed(&self) -> bool {
        self.figures.iter().all(Figure::holds)
    }

    /// An iteration, by what it is.
    pub fn iteration(
        &self,
        (system, model): (&str, &str),
        contestant: &str,
        minibatch: u64,
        reduce: ReduceFile,
    ) -> Option<&Iteration> {
        let cell = self.cells.iter().find(|cell| cell.system == system && cell.model == model)?;
        cell.iterations
            .iter()
            .find(|one| one.contestant == contestant && one.minibatch == minibatch && one.reduce == reduce)
    }
}

/// Times of all-reduces of one contestant in one system, in ns by elements.
type Measured = BTreeMap<u64, f64>;

/// Runs a training study, `jobs` runs at a time; what comes out does not depend on how many.
///
/// # Errors
/// The study has no `[training]`, or the first run that cannot be made, or that fails.
pub fn training(
    study: &Study,
    jobs: usize,
    stop: &(dyn Fn() -> bool + Sync),
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Outcome, ContestantError> {
    let file = study.file.training.as_ref();
    let file = file.ok_or_else(|| ContestantError::Refused(format!("the study {} has no [training]", study.name)))?;
    let models = models(study, file).map_err(ContestantError::Refused)?;
    check_figures(study, file).map_err(ContestantError::Refused)?;
    let systems = study.systems();
    let lengths = lengths(&models, file.simulated_elements);
    let mut runs = Vec::new();
    for system in &systems {
        for contestant in 0..study.contestants().len() {
            runs.extend(lengths.iter().map(|&elements| (system, contestant, elements)));
        }
    }
    let times = parallel_map(&runs, jobs, progress, |&(system, contestant, elements)| {
        measure(study, file, (system, contestant), elements, stop)
    });
    let mut times = times.into_iter();
    let mut cells = Vec::new();
    for system in &systems {
        let mut measured: Vec<Measured> = Vec::new();
        for _ in study.contestants() {
            measured.push(
                lengths.iter().copied().zip(times.by_ref()).map(|(m, ns)| Ok((m, ns?))).collect::<Result<_, _>>()?,
            );
        }
        for (name, model) in &models {
            let cell = cell(file, study.contestants(), (system, name), model, &measured);
            cells.push(cell.map_err(ContestantError::Refused)?);
        }
    }
    let mut outcome = Outcome {
        schema_version: SCHEMA_VERSION,
        study: study.name.clone(),
        about: study.file.about.clone(),
        ranks: file.ranks,
        simulated_elements: file.simulated_elements,
        contestants: study.contestants().iter().map(|(name, _)| name.clone()).collect(),
        cells,
        figures: Vec::new(),
    };
    outcome.figures =
        file.figure.iter().filter_map(|figure| compare_figure(&outcome, &systems[0].name, figure)).collect();
    Ok(outcome)
}

/// The tables of layers.
fn models(study: &Study, file: &TrainingFile) -> Result<Vec<(String, Model)>, String> {
    let read = |(index, name): (usize, &String)| {
        let beside = study.base().join(name);
        let path = if beside.is_file() { beside.to_string_lossy().into_owned() } else { name.clone() };
        let model = Model::read(&path).map_err(|error| {
            study.problem(
                Problem::at(format!("training.models[{index}]"), error.message()).help(format!("in {}", error.place())),
            )
        })?;
        Ok((name.clone(), model))
    };
    file.models.iter().enumerate().map(read).collect()
}

/// Lengths that are simulated: those of the layers, and two for the rate if some are longer.
fn lengths(models: &[(String, Model)], longest: u64) -> BTreeSet<u64> {
    let all = models.iter().flat_map(|(_, model)| trained_layers(model).map(|(_, elements)| elements));
    let mut lengths: BTreeSet<u64> = all.collect();
    if lengths.last().is_some_and(|&most| most > longest) {
        lengths.extend([longest / 2, longest]);
    }
    lengths.retain(|&elements| elements <= longest);
    lengths
}

/// The layers that are learnt and their elements, and all of them as one.
fn trained_layers(model: &Model) -> impl Iterator<Item = (&str, u64)> {
    let layers = model.layers.iter().filter(|layer| layer.parameters > 0);
    let layers = layers.map(|layer| (layer.name.as_str(), layer.parameters));
    layers.chain([("all", model.parameters())])
}

/// What figures name must be there.
fn check_figures(study: &Study, file: &TrainingFile) -> Result<(), String> {
    let contestants: Vec<&str> = study.contestants().iter().map(|(name, _)| name.as_str()).collect();
    let systems = study.systems();
    let systems: Vec<&str> = systems.iter().map(|system| system.name.as_str()).collect();
    let models: Vec<&str> = file.models.iter().map(String::as_str).collect();
    for (index, figure) in file.figure.iter().enumerate() {
        let names = [
            ("contestant", Some(&figure.contestant), &contestants),
            ("over", figure.over.as_ref(), &contestants),
            ("model", Some(&figure.model), &models),
            ("system", figure.system.as_ref(), &systems),
        ];
        for (key, given, known) in names {
            let Some(given) = given.filter(|given| !known.contains(&given.as_str())) else { continue };
            let problem =
                Problem::at(format!("training.figure[{index}].{key}"), format!("there is no {key} `{given}`"));
            return Err(study.problem(problem.nearest(given, known.iter().copied()).expected(names::one_of(known))));
        }
        if !file.minibatch.contains(&figure.minibatch) {
            let what = format!("{} is not among the minibatches of the study", figure.minibatch);
            let problem = Problem::at(format!("training.figure[{index}].minibatch"), what);
            return Err(study.problem(problem.related("training.minibatch", "these are")));
        }
        if (figure.of == Quantity::Speedup) != figure.over.is_some() {
            let problem = Problem::at(format!("training.figure[{index}].of"), "a speed-up is over another contestant");
            return Err(study.problem(problem.expected("`over` with \"speedup\", and only with it")));
        }
    }
    Ok(())
}

/// The time of one all-reduce, in ns: from when the last rank has begun to when it is over for all.
fn measure(
    study: &Study,
    file: &TrainingFile,
    (system, contestant): (&SystemFile, usize),
    elements: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<f64, ContestantError> {
    let name = &study.contestants()[contestant].0;
    let refuse = |why: String| ContestantError::Refused(format!("{name}, {}, {elements} elements: {why}", system.name));
    let trace = all_reduce(file.ranks, elements * file.element_bytes);
    let loaded = study.traced((system, contestant), &trace).map_err(ContestantError::Refused)?;
    let document = run_to_end(&loaded, stop)?.document;
    if let Some(check) = document.checks.iter().find(|check| !check.passed) {
        return Err(refuse(format!("{}: {}", check.name, check.detail)));
    }
    let of = document.workload.as_ref().and_then(|workload| workload.collectives.first());
    let cycles = of.and_then(|of| Some(of.end_cycle?.saturating_sub(of.last_start_cycle?)));
    let ended = cycles.map(|cycles| loaded.scenario.clock.nanoseconds(cycles));
    ended.ok_or_else(|| refuse("the all-reduce did not end".to_owned()))
}

/// The time of an all-reduce of this many elements, in ns; extended if it is longer than `longest`.
fn time_of(measured: &Measured, longest: u64, elements: u64) -> f64 {
    let at = |elements: u64| measured.get(&elements).copied().unwrap_or(0.0);
    if elements <= longest {
        return at(elements);
    }
    let half = longest / 2;
    let rate = (at(longest) - at(half)) / (longest - half) as f64;
    at(longest) + (elements - longest) as f64 * rate
}

fn cell(
    file: &TrainingFile,
    contestants: &[(String, String)],
    (system, name): (&SystemFile, &str),
    model: &Model,
    measured: &[Measured],
) -> Result<Cell, String> {
    let longest = file.simulated_elements;
    let layers = trained_layers(model).map(|(layer, elements)| LayerRow {
        name: layer.to_owned(),
        elements,
        bytes: elements * file.element_bytes,
        extended: elements > longest,
        ns: measured.iter().map(|times| time_of(times, longest, elements)).collect(),
    });
    let mut iterations = Vec::new();
    for &minibatch in &file.minibatch {
        for (at, (contestant, _)) in contestants.iter().enumerate() {
            for reduce in [ReduceFile::End, ReduceFile::Layers] {
                let training = Training { minibatch, ..common_training(file, reduce) };
                let time = |elements| time_of(&measured[at], longest, elements);
                iterations.push(iteration(model, &training, (contestant, reduce), &time)?);
            }
        }
    }
    Ok(Cell {
        system: system.name.clone(),
        model: name.to_owned(),
        source: model.source.clone(),
        parameters: model.parameters(),
        layers: layers.collect(),
        iterations,
    })
}

/// How networks are trained, as far as the study says for all. One rank: all do the same.
fn common_training(file: &TrainingFile, reduce: ReduceFile) -> Training {
    Training {
        ranks: 1,
        minibatch: 1,
        iterations: 1,
        element_bytes: file.element_bytes,
        peak_tflops: file.peak_tflops * file.efficiency,
        bandwidth_gbps: file.bandwidth_gbps,
        reduce: match reduce {
            ReduceFile::Layers => GradientReduction::Layers,
            ReduceFile::End => GradientReduction::End,
        },
    }
}

/// An iteration whose all-reduces take this many ns.
fn iteration(
    model: &Model,
    training: &Training,
    (contestant, reduce): (&str, ReduceFile),
    time: &dyn Fn(u64) -> f64,
) -> Result<Iteration, String> {
    let said = |error: watershed_workload::Error| error.to_string();
    let (trace, matched) = Trace::checked(training.trace(model)).map_err(said)?;
    let ps = |of: &Collective| (time(of.bytes / training.element_bytes) * 1e3).round() as u64;
    let times = Durations { compute: &|compute: &Compute| compute.ps, collective: &ps };
    let scheduled = schedule(&trace, &matched, times).map_err(said)?;
    let whole = scheduled.ends.iter().copied().max().unwrap_or(0);
    let compute = training.compute_ps(model);
    let reduced: u64 = matched.collectives.iter().map(|of| ps(&of.collective)).sum();
    // A device computes one node at a time: what is left of the whole is communication that nothing hides.
    let exposed = whole.saturating_sub(compute);
    let ms = |ps: u64| ps as f64 / 1e9;
    Ok(Iteration {
        contestant: contestant.to_owned(),
        minibatch: training.minibatch,
        reduce,
        ms: ms(whole),
        compute_ms: ms(compute),
        compute_operations: trace.totals().operations,
        reduce_ms: ms(reduced),
        exposed_ms: ms(exposed),
        exposed_percent: 100.0 * exposed as f64 / whole.max(1) as f64,
    })
}

/// Compares our value with the source's.
fn compare_figure(outcome: &Outcome, first: &str, figure: &FigureFile) -> Option<Figure> {
    let place = (figure.system.as_deref().unwrap_or(first), figure.model.as_str());
    let one = outcome.iteration(place, &figure.contestant, figure.minibatch, figure.reduce)?;
    let ours = match &figure.over {
        None => one.exposed_percent,
        Some(over) => outcome.iteration(place, over, figure.minibatch, ReduceFile::End)?.ms / one.ms,
    };
    let FigureFile { what, of, says, tolerance, basis, .. } = figure;
    Some(Figure { what: what.clone(), of: *of, says: *says, ours, tolerance: *tolerance, basis: *basis })
}
