//! The sweep file: which scenarios, which values of them, how they are combined, and what is looked at.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde_json::Value as Json;

pub use super::form::{
    AxisFile, Goal, MetricFile, ObjectiveFile, RangeFile, Sample, ScenarioEntry, SearchFile, SearchKind, SweepFile,
};
use watershed_scenario_interface::expr::Expr;
use watershed_scenario_interface::kind::{self, Kind};
use watershed_scenario_interface::source::{Node, Value};
use watershed_scenario_interface::summary::decimals;
use watershed_scenario_interface::{Problem, Problems, Source, read, run_inputs, schema, shipped};

/// A sweep that has been read and checked.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// The file.
    pub file: SweepFile,
    /// Its text.
    pub text: String,
    /// The folder that scenario files are relative to.
    pub base: PathBuf,
    /// Scenarios with their axes.
    pub scenarios: Vec<Entry>,
    /// Conditions on axes: what they do not let through is not run.
    pub filters: Vec<Expr>,
    /// Conditions on results: what does not meet them is neither on a front nor best.
    pub constraints: Vec<Expr>,
    /// Columns beside the built-in ones: name and value.
    pub metrics: Vec<(String, Expr)>,
    /// Objectives: name of the column, and whether less is better.
    pub objectives: Vec<(String, Goal)>,
    source: Arc<Source>,
}

/// A scenario of a sweep with its axes.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its file, as a path or the name of a shipped scenario.
    pub file: PathBuf,
    /// What is set for all points.
    pub set: Vec<String>,
    /// Axes: those of all scenarios first.
    pub axes: Vec<Axis>,
}

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// Its path in the sweep file.
    pub path: String,
    /// What it sets.
    pub keys: Vec<String>,
    /// The column of each key.
    pub columns: Vec<String>,
    /// Its unit, if the file says so.
    pub unit: Option<String>,
    /// Its values.
    pub levels: Levels,
}

/// Values of an axis.
#[derive(Debug, Clone, PartialEq)]
pub enum Levels {
    /// These, as TOML; of linked keys one for each.
    List(Vec<Vec<String>>),
    /// Any number between.
    Between {
        /// The least.
        from: f64,
        /// The greatest.
        to: f64,
        /// Even on a logarithmic scale.
        log: bool,
        /// Whole numbers only.
        integer: bool,
    },
}

/// Values of one axis, at most.
const LEVELS: usize = 100_000;

/// A number as short as it can be said, with the noise of sums taken off.
pub fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let digits = 11 - value.abs().log10().floor() as i32;
    if (0..=30).contains(&digits) { decimals(value, digits as usize) } else { format!("{value}") }
}

/// A number with at most six digits, for people.
pub fn brief(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return number(value);
    }
    let digits = (5 - value.abs().log10().floor() as i32).max(0) as usize;
    decimals(value, digits)
}

impl Levels {
    /// The number at a place from 0 to 1 of a continuous axis.
    pub fn at(&self, place: f64) -> String {
        match self {
            Self::List(list) => list[((place * list.len() as f64) as usize).min(list.len() - 1)].join(" "),
            Self::Between { from, to, log, integer } => {
                let value = if *log { from * (to / from).powf(place) } else { from + (to - from) * place };
                number(if *integer { value.round() } else { value })
            }
        }
    }
}

impl Levels {
    /// The place from 0 to 1 of a number on a continuous axis.
    pub fn place(&self, value: &str) -> Option<f64> {
        let Self::Between { from, to, log, .. } = self else { return None };
        let value: f64 = value.parse().ok()?;
        let place = if *log { (value / from).ln() / (to / from).ln() } else { (value - from) / (to - from) };
        Some(if place.is_finite() { place } else { 0.0 })
    }
}

/// The JSON Schema of a sweep file.
pub fn sweep_schema() -> &'static Json {
    static SCHEMA: OnceLock<Json> = OnceLock::new();
    SCHEMA.get_or_init(schema::schema_of::<SweepFile>)
}

impl Sweep {
    /// Reads a sweep file.
    ///
    /// # Errors
    /// Everything that is wrong with it, with carets.
    pub fn load(path: &Path) -> Result<Self, Problems> {
        let name = path.display().to_string();
        if kind::certain_other_kind(path, &[Kind::Sweep]).is_some() {
            return Err(Problems::of_file(path, "a sweep file"));
        }
        let text = std::fs::read_to_string(path).map_err(|error| {
            let message = match error.kind() {
                std::io::ErrorKind::NotFound => "there is no such sweep file".to_owned(),
                _ => format!("cannot read the sweep: {error}"),
            };
            Problems::new(Arc::new(Source::empty(name.clone())), vec![Problem::general(message)])
        })?;
        Self::parse(&name, &text, path.parent().unwrap_or(Path::new("")))
    }

    /// As [`Sweep::load`], with more objectives, of which less is better.
    ///
    /// # Errors
    /// As [`Sweep::load`], or an objective is no column.
    pub fn load_with(path: &Path, objectives: &[String]) -> Result<Self, Problems> {
        let sweep = Self::load(path)?;
        let is_new = |name: &&String| !sweep.objectives.iter().any(|(known, _)| known == *name);
        let more = objectives.iter().filter(is_new).map(|name| format!("\n[[objective]]\nname = {name:?}\n"));
        let more = more.collect::<String>();
        if more.is_empty() {
            return Ok(sweep);
        }
        Self::parse(&path.display().to_string(), &(sweep.text + &more), path.parent().unwrap_or(Path::new("")))
    }

    /// Reads a sweep from a string; scenario files are relative to `base`.
    ///
    /// # Errors
    /// As [`Sweep::load`].
    pub fn parse(name: &str, text: &str, base: &Path) -> Result<Self, Problems> {
        let (source, syntax) = Source::parse(name, text);
        let source = Arc::new(source);
        let mut problems: Vec<Problem> = syntax.into_iter().collect();
        if problems.is_empty() {
            problems = schema::check_against(sweep_schema(), source.root());
        }
        if !problems.is_empty() {
            return Err(Problems::new(source, problems));
        }
        let file: SweepFile =
            read::read(source.root()).map_err(|problem| Problems::new(Arc::clone(&source), vec![problem]))?;
        let mut reader = Reader { source: &source, problems: Vec::new() };
        let sweep = reader.sweep(file, text, base);
        let problems = reader.problems;
        if problems.is_empty() { Ok(sweep) } else { Err(Problems::new(source, problems)) }
    }

    /// An error at places of the file.
    pub fn problems(&self, problems: Vec<Problem>) -> Problems {
        Problems::new(Arc::clone(&self.source), problems)
    }

    /// The text of the file.
    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    /// Columns of all axes, in their order: one for each key.
    pub fn axis_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let axes = self.scenarios.iter().flat_map(|entry| &entry.axes);
        for name in axes.flat_map(|axis| &axis.columns) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }
}

struct Reader<'a> {
    source: &'a Arc<Source>,
    problems: Vec<Problem>,
}

fn child<'a>(node: &'a Node, key: &str) -> Option<&'a Node> {
    match &node.value {
        Value::Table(table) => table.get(key),
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        _ => None,
    }
}

fn text_of(node: &Node) -> String {
    let mut out = String::new();
    run_inputs::inline(node, &mut out);
    out
}

/// A value as people write it: words without quotes.
pub(super) fn shown(values: &[String]) -> String {
    let plain =
        |text: &String| text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text).to_owned();
    values.iter().map(plain).collect::<Vec<_>>().join(" ")
}

/// Whether an axis of this name has this value, or a scenario this name.
fn has_value(scenarios: &[Entry], name: &str, value: &str) -> bool {
    let of_axis = |axis: &Axis| {
        let Levels::List(list) = &axis.levels else { return false };
        let at = axis.columns.iter().position(|column| column == name);
        let whole = axis.name == name;
        list.iter().any(|row| match at {
            Some(at) => row.get(at..=at).is_some_and(|one| shown(one) == value),
            None => whole && shown(row) == value,
        })
    };
    let of = |entry: &Entry| name == "scenario" && entry.name == value || entry.axes.iter().any(of_axis);
    scenarios.iter().any(of)
}

impl Reader<'_> {
    fn report(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    fn sweep(&mut self, file: SweepFile, text: &str, base: &Path) -> Sweep {
        let root = self.source.root();
        let common = self.axes(&file.axis, child(root, "axis"), "axis");
        let mut scenarios = Vec::new();
        let mut names = BTreeSet::new();
        for (index, entry) in file.scenario.iter().enumerate() {
            let path = format!("scenario[{index}]");
            let node = child(root, "scenario").and_then(|node| child(node, &index.to_string()));
            let mut axes = common.clone();
            axes.extend(self.axes(&entry.axis, node.and_then(|node| child(node, "axis")), &format!("{path}.axis")));
            let mut seen = BTreeSet::new();
            for axis in &axes {
                if !seen.insert(axis.name.as_str()) {
                    self.report(
                        Problem::at(self.place_of_name(&axis.path), format!("two axes have the name `{}`", axis.name))
                            .help("give one of them a `name`"),
                    );
                }
            }
            let beside = base.join(&entry.file);
            let known = shipped::find(&entry.file);
            let (file, stem) = match known {
                Some((_, _)) if !beside.exists() => (PathBuf::from(&entry.file), entry.file.clone()),
                _ => (
                    shipped::normalise(&beside),
                    Path::new(&entry.file).file_stem().unwrap_or_default().to_string_lossy().into_owned(),
                ),
            };
            let name = entry.name.clone().unwrap_or_else(|| shipped::stem(&stem).to_owned());
            if !names.insert(name.clone()) {
                self.report(
                    Problem::at(&path, format!("two scenarios have the name `{name}`"))
                        .help("give one of them a `name`"),
                );
            }
            scenarios.push(Entry { name, file, set: entry.set.clone(), axes });
        }
        let named = |axis: &Axis| std::iter::once(axis.name.clone()).chain(axis.columns.clone()).collect::<Vec<_>>();
        let axis_names: BTreeSet<String> =
            scenarios.iter().flat_map(|entry: &Entry| &entry.axes).flat_map(named).collect();
        let is_word = |name: &str, word: &str| !axis_names.contains(word) && has_value(&scenarios, name, word);
        let mut filters = Vec::new();
        for (index, text) in file.filter.iter().enumerate() {
            let path = format!("filter[{index}]");
            let Some(expr) = self.expression(text, &path) else { continue };
            let expr = expr.with_words(&is_word);
            for name in expr.names() {
                if name != "scenario" && !axis_names.contains(name) {
                    let problem = Problem::at(&path, format!("`{name}` is not the name of an axis"));
                    let result =
                        super::table::BUILT_IN.contains(&name) || file.metric.iter().any(|metric| metric.name == name);
                    self.report(if result {
                        problem.help("it is known when a point has been run: `constraint` takes it")
                    } else {
                        problem.nearest(name, &axis_names)
                    });
                }
            }
            filters.push(expr);
        }
        let mut metrics = Vec::new();
        for (index, metric) in file.metric.iter().enumerate() {
            if let Some(expr) = self.expression(&metric.value, &format!("metric[{index}].value")) {
                metrics.push((metric.name.clone(), expr));
            }
        }
        let objectives = self.objectives(&file, &mut metrics);
        let mut constraints = Vec::new();
        for (index, text) in file.constraint.iter().enumerate() {
            let path = format!("constraint[{index}]");
            let Some(expr) = self.expression(text, &path) else { continue };
            let expr = expr.with_words(&is_word);
            let known = |name: &&str| {
                let metric = metrics.iter().any(|(metric, _)| metric == name);
                metric || axis_names.contains(*name) || super::table::is_known(name)
            };
            for name in expr.names().into_iter().filter(|name| !known(name)) {
                let columns = super::table::BUILT_IN.iter().copied().chain(axis_names.iter().map(String::as_str));
                let columns = columns.chain(metrics.iter().map(|(name, _)| name.as_str()));
                let problem = Problem::at(&path, format!("there is neither an axis nor a column `{name}`"));
                self.report(problem.nearest(name, columns.collect::<Vec<_>>()));
            }
            constraints.push(expr);
        }
        self.columns(&file, &scenarios);
        self.rules(&file, &scenarios);
        let (text, base) = (text.to_owned(), base.to_owned());
        let source = Arc::clone(self.source);
        Sweep { file, text, base, scenarios, filters, constraints, metrics, objectives, source }
    }

    /// What is wanted; what has a value of its own is one more metric.
    fn objectives(&mut self, file: &SweepFile, metrics: &mut Vec<(String, Expr)>) -> Vec<(String, Goal)> {
        let mut objectives = Vec::new();
        for (index, objective) in file.objective.iter().enumerate() {
            let path = format!("objective[{index}]");
            if let Some(value) = &objective.value {
                if let Some(expr) = self.expression(value, &format!("{path}.value")) {
                    metrics.push((objective.name.clone(), expr));
                }
            } else if !super::table::is_known(&objective.name)
                && !metrics.iter().any(|(name, _)| *name == objective.name)
            {
                let columns =
                    super::table::BUILT_IN.iter().copied().chain(metrics.iter().map(|(name, _)| name.as_str()));
                self.report(
                    Problem::at(format!("{path}.name"), format!("there is no column `{}`", objective.name))
                        .nearest(&objective.name, columns.collect::<Vec<_>>())
                        .expected("the name of a column, the path of a value of the result, or a `value` of its own"),
                );
            } else if objective.name.contains('.')
                && let Some(expr) = self.expression(&objective.name, &format!("{path}.name"))
                && !metrics.iter().any(|(name, _)| *name == objective.name)
            {
                metrics.push((objective.name.clone(), expr));
            }
            objectives.push((objective.name.clone(), objective.goal));
        }
        objectives
    }

    /// Where an axis has its name: from `name`, or from its key.
    fn place_of_name(&self, axis: &str) -> String {
        ["name", "key", "keys"]
            .map(|key| format!("{axis}.{key}"))
            .into_iter()
            .find(|path| self.source.has(path))
            .unwrap_or_else(|| axis.to_owned())
    }

    /// Columns of the table have names of their own: those it has anyway, axes, metrics, objectives with a value.
    fn columns(&mut self, file: &SweepFile, scenarios: &[Entry]) {
        let own: BTreeSet<&str> = super::table::FIXED.iter().chain(&super::table::BUILT_IN).copied().collect();
        // An expression with an earlier name means the column of today.
        let whose = |name: &str| {
            let earlier = super::table::EARLIER.iter().find(|(earlier, _)| *earlier == name);
            let earlier = earlier.map(|(_, now)| format!("an earlier name of the column `{now}`"));
            own.contains(name).then(|| "a column that every points.csv has".to_owned()).or(earlier)
        };
        let mut taken: BTreeSet<&str> = BTreeSet::new();
        for entry in scenarios {
            let mut mine: BTreeSet<&str> = BTreeSet::new();
            for (axis, (key, column)) in
                entry.axes.iter().flat_map(|axis| axis.keys.iter().zip(&axis.columns).map(move |pair| (axis, pair)))
            {
                taken.insert(column);
                let linked = axis.keys.len() > 1;
                if let Some(whose) = whose(column) {
                    let place = self.place_of_name(&axis.path);
                    let message = format!("`{column}` is {whose}; an axis needs another name");
                    let last = key.rsplit(['.', ']']).next().unwrap_or_default();
                    let example = if last == column { format!("{last}_set") } else { last.to_owned() };
                    let help = if linked {
                        "`columns` under [[axis]] names the columns of linked keys".to_owned()
                    } else {
                        format!("name = \"{example}\" under [[axis]], for example")
                    };
                    self.report(Problem::at(place, message).help(help));
                }
                if !mine.insert(column) && linked {
                    let message = format!("two axes have a column `{column}`");
                    self.report(
                        Problem::at(self.place_of_name(&axis.path), message)
                            .help("`columns` under [[axis]] names the columns of linked keys"),
                    );
                }
            }
        }
        let metrics = file.metric.iter().enumerate().map(|(at, metric)| (format!("metric[{at}].name"), &metric.name));
        let objectives = file.objective.iter().enumerate().filter(|(_, objective)| objective.value.is_some());
        let objectives = objectives.map(|(at, objective)| (format!("objective[{at}].name"), &objective.name));
        for (place, name) in metrics.chain(objectives) {
            if let Some(whose) = whose(name) {
                let message = format!("`{name}` is {whose}; a metric needs another name");
                self.report(Problem::at(place, message));
            } else if !taken.insert(name) {
                let message = format!("two columns have the name `{name}`");
                self.report(Problem::at(place, message).help("rename the axis or the metric"));
            }
        }
    }

    /// What hangs together.
    fn rules(&mut self, file: &SweepFile, scenarios: &[Entry]) {
        let searches = file.search.is_some();
        match (file.sample, file.points) {
            (Sample::Grid, Some(_)) => self.report(Problem::at_key("points", "a grid has the points its axes make")),
            (Sample::Random | Sample::LatinHypercube, None) if !searches => {
                self.report(Problem::at("sample", "a sample needs `points`").expected("points = 200, for example"));
            }
            _ => {}
        }
        let continuous = |axis: &Axis| matches!(axis.levels, Levels::Between { .. });
        let load = file.search.as_ref().and_then(|search| search.axis.clone());
        if file.sample == Sample::Grid && !file.search.as_ref().is_some_and(|search| search.kind == SearchKind::Pareto)
        {
            for axis in scenarios.iter().flat_map(|entry| &entry.axes) {
                if continuous(axis) && load.as_ref() != Some(&axis.name) {
                    self.report(
                        Problem::at("axis", format!("axis `{}` needs `step` or `count` in a grid", axis.name))
                            .help("a range without them is for samples and searches"),
                    );
                }
            }
        }
        let Some(search) = &file.search else { return };
        match search.kind {
            SearchKind::Saturation => {
                let Some(name) = &search.axis else {
                    self.report(
                        Problem::at("search", "a search for saturation needs `axis`")
                            .expected("the name of the axis of the load"),
                    );
                    return;
                };
                for entry in scenarios {
                    match entry.axes.iter().find(|axis| axis.name == *name) {
                        None => self.report(
                            Problem::at("search.axis", format!("scenario `{}` has no axis `{name}`", entry.name))
                                .nearest(name, entry.axes.iter().map(|axis| axis.name.as_str()).collect::<Vec<_>>()),
                        ),
                        Some(axis) if !continuous(axis) => self.report(
                            Problem::at("search.axis", format!("axis `{name}` has single values"))
                                .expected("a `range` without `step` and `count`"),
                        ),
                        Some(_) => {}
                    }
                }
            }
            SearchKind::Pareto => {
                if file.objective.len() < 2 {
                    self.report(Problem::at("search", "a Pareto front needs two or three objectives"));
                }
                if search.budget.is_none() {
                    self.report(
                        Problem::at("search", "a search for a Pareto front needs `budget`")
                            .expected("budget = 200, for example"),
                    );
                }
            }
        }
    }

    fn expression(&mut self, text: &str, path: &str) -> Option<Expr> {
        match Expr::parse(text) {
            Ok(expr) => Some(expr),
            Err(wrong) => {
                let shown = text.get(wrong.at.clone()).filter(|piece| !piece.is_empty()).unwrap_or("the end");
                self.report(Problem::at(path, format!("at `{shown}`: {wrong}")));
                None
            }
        }
    }

    fn axes(&mut self, files: &[AxisFile], node: Option<&Node>, path: &str) -> Vec<Axis> {
        let mut axes = Vec::new();
        for (index, file) in files.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let node = node.and_then(|node| child(node, &index.to_string()));
            let keys = match (&file.key, &file.keys) {
                (Some(key), None) => vec![key.clone()],
                (None, Some(keys)) => keys.clone(),
                _ => {
                    self.report(Problem::at(&path, "an axis has either `key` or `keys`"));
                    continue;
                }
            };
            let last = |key: &String| key.rsplit(['.', ']']).next().unwrap_or(key).to_owned();
            let name = file.name.clone().unwrap_or_else(|| last(&keys[0]));
            let Some(columns) = self.columns_of(file, &keys, &name, &path) else { continue };
            let given = [file.values.is_some(), file.range.is_some(), file.log_range.is_some()];
            if given.into_iter().filter(|given| *given).count() != 1 {
                self.report(Problem::at(&path, "an axis has one of `values`, `range` and `log_range`"));
                continue;
            }
            let levels = if let Some(values) = node.and_then(|node| child(node, "values")) {
                self.values(values, &keys, &format!("{path}.values"))
            } else {
                let (range, log) = match (file.range, file.log_range) {
                    (Some(range), _) => (range, false),
                    (_, Some(range)) => (range, true),
                    _ => continue,
                };
                if keys.len() > 1 {
                    self.report(Problem::at(&path, "linked keys need `values`: an array for each point of the axis"));
                    continue;
                }
                self.range(range, log, file.integer, &format!("{path}.{}", if log { "log_range" } else { "range" }))
            };
            if let Some(levels) = levels {
                axes.push(Axis { name, path, keys, columns, unit: file.unit.clone(), levels });
            }
        }
        axes
    }

    /// The column of each key of an axis.
    fn columns_of(&mut self, file: &AxisFile, keys: &[String], name: &str, path: &str) -> Option<Vec<String>> {
        if keys.len() == 1 && file.keys.is_none() {
            if file.columns.is_some() {
                self.report(Problem::at_key(
                    format!("{path}.columns"),
                    "`columns` is for linked keys; `name` names this one",
                ));
                return None;
            }
            return Some(vec![name.to_owned()]);
        }
        if let Some(columns) = &file.columns {
            if columns.len() != keys.len() {
                let problem = Problem::at(format!("{path}.columns"), "this does not fit the linked keys");
                self.report(problem.expected(format!("{} names, one for each of `keys`", keys.len())));
                return None;
            }
            return Some(columns.clone());
        }
        let last = |key: &String| key.rsplit(['.', ']']).next().unwrap_or(key).to_owned();
        let alone = |key: &String| keys.iter().filter(|other| last(other) == last(key)).count() == 1;
        Some(keys.iter().map(|key| if alone(key) { last(key) } else { key.clone() }).collect())
    }

    fn values(&mut self, node: &Node, keys: &[String], path: &str) -> Option<Levels> {
        let Value::Array(items) = &node.value else { return None };
        let mut list = Vec::new();
        for (index, item) in items.iter().enumerate() {
            if keys.len() == 1 {
                list.push(vec![text_of(item)]);
                continue;
            }
            match &item.value {
                Value::Array(row) if row.len() == keys.len() => list.push(row.iter().map(text_of).collect()),
                _ => {
                    self.report(
                        Problem::at(format!("{path}[{index}]"), "this does not fit the linked keys")
                            .expected(format!("an array of {} values, one for each of `keys`", keys.len())),
                    );
                    return None;
                }
            }
        }
        Some(Levels::List(list))
    }

    fn range(&mut self, range: RangeFile, log: bool, integer: bool, path: &str) -> Option<Levels> {
        let RangeFile { from, to, step, count } = range;
        if !from.is_finite() || !to.is_finite() || to < from || (log && from <= 0.0) {
            let expected = if log { "0 < from <= to" } else { "from <= to" };
            self.report(Problem::at(path, "this is no range").expected(expected));
            return None;
        }
        let values: Vec<f64> = match (step, count) {
            (Some(_), Some(_)) => {
                self.report(Problem::at(path, "a range has `step` or `count`, not both"));
                return None;
            }
            (None, None) => return Some(Levels::Between { from, to, log, integer }),
            (None, Some(count)) => {
                let place = |index: u64| index as f64 / (count - 1) as f64;
                (0..count)
                    .map(|at| if log { from * (to / from).powf(place(at)) } else { from + (to - from) * place(at) })
                    .collect()
            }
            (Some(step), None) => {
                if (log && step <= 1.0) || step <= 0.0 {
                    self.report(Problem::at(path, "the step leads nowhere").expected(if log {
                        "a factor above 1"
                    } else {
                        "a step above 0"
                    }));
                    return None;
                }
                let steps = if log { (to / from).ln() / step.ln() } else { (to - from) / step };
                if steps > LEVELS as f64 {
                    self.report(Problem::at(path, format!("an axis of more than {LEVELS} values")));
                    return None;
                }
                let value = |at: u64| if log { from * step.powf(at as f64) } else { from + at as f64 * step };
                (0..=(steps + 1e-9) as u64).map(value).collect()
            }
        };
        let mut list: Vec<Vec<String>> = Vec::new();
        for value in values {
            let text = vec![number(if integer { value.round() } else { value })];
            if list.last() != Some(&text) {
                list.push(text);
            }
        }
        Some(Levels::List(list))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(text: &str) -> Result<Vec<Vec<String>>, String> {
        let text = format!("[[scenario]]\nfile = \"allreduce-die\"\n{text}");
        let sweep = Sweep::parse("s.toml", &text, Path::new(".")).map_err(|problems| problems.to_string())?;
        Ok(sweep.scenarios[0]
            .axes
            .iter()
            .map(|axis| match &axis.levels {
                Levels::List(list) => list.iter().map(|level| level.join(" ")).collect(),
                Levels::Between { .. } => vec![axis.levels.at(0.0), axis.levels.at(0.5), axis.levels.at(1.0)],
            })
            .collect())
    }

    #[test]
    fn axes_have_the_values_they_say() {
        for (text, expected) in [
            ("values = [1, \"matrix\", 0.50, [4, 4]]", "1, \"matrix\", 0.50, [4, 4]"),
            ("range = { from = 0.1, to = 0.5, step = 0.1 }", "0.1, 0.2, 0.3, 0.4, 0.5"),
            ("range = { from = 1, to = 10, count = 4 }", "1, 4, 7, 10"),
            ("log_range = { from = 1, to = 1000, count = 4 }", "1, 10, 100, 1000"),
            ("log_range = { from = 1, to = 40, step = 2 }", "1, 2, 4, 8, 16, 32"),
            ("log_range = { from = 1, to = 8, count = 7 }\ninteger = true", "1, 2, 3, 4, 6, 8"),
        ] {
            let found = axes(&format!("[[axis]]\nkey = \"a.b\"\n{text}\n")).unwrap();
            assert_eq!(found[0].join(", "), expected, "{text}");
        }
        let linked = axes("[[axis]]\nname = \"n\"\nkeys = [\"a\", \"b\"]\nvalues = [[1, 2], [3, 4]]\n").unwrap();
        assert_eq!(linked[0], ["1 2", "3 4"]);
    }

    #[test]
    fn mistakes_are_explained_at_their_place() {
        for (text, message) in [
            ("[[axis]]\nkey = \"a\"\n", "one of `values`"),
            ("[[axis]]\nvalues = [1]\n", "either `key` or `keys`"),
            ("[[axis]]\nkeys = [\"a\", \"b\"]\nvalues = [[1, 2], [3]]\n", "s.toml:5:19"),
            ("[[axis]]\nkey = \"a\"\nrange = { from = 3, to = 1, step = 1 }\n", "this is no range"),
            ("[[axis]]\nkey = \"a\"\nrange = { from = 1, to = 2 }\n", "needs `step` or `count` in a grid"),
            (
                "[[axis]]\nkey = \"a\"\nvalues = [1]\n[[axis]]\nkey = \"b.a\"\nvalues = [1]\n",
                "two axes have the name `a`",
            ),
            ("[[objective]]\nname = \"latency_cycle\"\n", "did you mean `latency_cycles`"),
            ("[[metric]]\nname = \"m\"\nvalue = \"1 +\"\n", "a value is missing here"),
            ("[search]\nkind = \"pareto\"\nbudget = 9\n", "two or three objectives"),
            ("[search]\nkind = \"saturation\"\n", "needs `axis`"),
            ("axes = 3\n", "unknown key `axes`"),
        ] {
            let error = axes(text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
        let error = Sweep::parse(
            "s.toml",
            "sample = \"random\"\nfilter = [\"x > 1\"]\n[[scenario]]\nfile = \"fig2-tree\"\n",
            Path::new("."),
        );
        let error = error.unwrap_err().to_string();
        assert!(error.contains("needs `points`") && error.contains("`x` is not the name of an axis"), "{error}");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([5_722_176.0, 518.571_428_571, 0.25].map(brief).join(" "), "5722176 518.571 0.25");
        for (value, text) in
            [(0.1 + 0.2, "0.3"), (1e6, "1000000"), (1.0 / 3.0, "0.333333333333"), (-2.5, "-2.5"), (0.0, "0")]
        {
            assert_eq!(number(value), text);
        }
    }
}
