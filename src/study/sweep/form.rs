//! The form of a sweep file: its keys, and what each of them means. [`file`](super::file) reads and checks it.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value as Json;

/// A sweep file as it is written.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "watershed sweep")]
pub struct SweepFile {
    /// What it is about, in one sentence.
    #[serde(default)]
    pub about: String,
    /// Seed of samples and searches; scenarios have seeds of their own.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 9_223_372_036_854_775_807_i64))]
    pub seed: u64,
    /// How values of different axes are combined.
    #[serde(default)]
    pub sample: Sample,
    /// Points of a random sample or a Latin hypercube, of each scenario.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub points: Option<u64>,
    /// How often each point is run: with the scenario's seed, with that plus one, and so on.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 10_000))]
    pub repetitions: u64,
    /// Conditions on axis names: a point for which one of them does not hold is left out.
    #[serde(default)]
    pub filter: Vec<String>,
    /// The scenarios that are swept.
    #[schemars(length(min = 1))]
    pub scenario: Vec<ScenarioEntry>,
    /// Axes of all scenarios.
    #[serde(default)]
    pub axis: Vec<AxisFile>,
    /// Conditions on columns, axes and values of results, for example "latency_ns < 2000": fronts and best points are among the points that meet all of them.
    #[serde(default)]
    pub constraint: Vec<String>,
    /// More columns of points.csv.
    #[serde(default)]
    pub metric: Vec<MetricFile>,
    /// What is wanted: columns with a goal.
    #[serde(default)]
    #[schemars(length(max = 3))]
    pub objective: Vec<ObjectiveFile>,
    /// A search that chooses its points by the outcome of others.
    #[serde(default)]
    pub search: Option<SearchFile>,
}

fn one() -> u64 {
    1
}

/// How values of different axes are combined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sample {
    /// Every value of an axis with every one of all others.
    #[default]
    Grid,
    /// Each value at random.
    Random,
    /// At random, but every axis is covered evenly.
    LatinHypercube,
}

/// A scenario of a sweep.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ScenarioEntry {
    /// A scenario file, relative to the sweep file, or the name of a shipped scenario.
    #[schemars(length(min = 1))]
    pub file: String,
    /// Its name in the results. Default: the file's name.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub name: Option<String>,
    /// Values that are set for all points, as `--set` takes them: "link.latency_ns=5".
    #[serde(default)]
    pub set: Vec<String>,
    /// Axes of this scenario only.
    #[serde(default)]
    pub axis: Vec<AxisFile>,
}

/// One axis: what is varied.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct AxisFile {
    /// Its name in the results. Default: the last part of the key.
    #[schemars(length(min = 1))]
    pub name: Option<String>,
    /// The value of the scenario that is varied, as `--set` names it: "switch.ceng.stages".
    #[schemars(length(min = 1))]
    pub key: Option<String>,
    /// Several values that are varied together; each of `values` is then an array with one for each of them, and each has a column of its own.
    #[schemars(length(min = 1))]
    pub keys: Option<Vec<String>>,
    /// Columns of linked keys, one for each of them. Default: the last part of each key, the whole key where two parts are the same.
    #[schemars(length(min = 1))]
    pub columns: Option<Vec<String>>,
    /// Unit of the column. Default: what the end of its name or key says: `_ns`, `_mhz`, `_cycles`.
    #[schemars(length(min = 1))]
    pub unit: Option<String>,
    /// The values, one by one.
    #[schemars(length(min = 1), with = "Option<Vec<Json>>")]
    pub values: Option<Vec<toml::Value>>,
    /// Evenly spaced numbers. Without `step` and `count`: any number between, for samples and searches.
    pub range: Option<RangeFile>,
    /// The same, evenly spaced on a logarithmic scale.
    pub log_range: Option<RangeFile>,
    /// Numbers of a range are rounded to whole ones.
    pub integer: bool,
}

/// Numbers from one to another.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct RangeFile {
    /// The first.
    pub from: f64,
    /// The last.
    pub to: f64,
    /// From one to the next; of a `log_range` a factor.
    #[serde(default)]
    #[schemars(range(min = 1e-9))]
    pub step: Option<f64>,
    /// How many.
    #[serde(default)]
    #[schemars(range(min = 2, max = 100_000))]
    pub count: Option<u64>,
}

/// A column of points.csv.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct MetricFile {
    /// Its name.
    #[schemars(length(min = 1))]
    pub name: String,
    /// An expression over the result document and the built-in columns, for example "links.busiest.0.head_wait_cycles / cycles".
    #[schemars(length(min = 1))]
    pub value: String,
    /// Its unit. Default: what the end of its name says: `_ns`, `_cycles`.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub unit: Option<String>,
}

/// What is wanted.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ObjectiveFile {
    /// Its name: that of a column, or the path of a value of the result ("links.busiest.0.head_wait_cycles"), unless `value` says what it is.
    #[schemars(length(min = 1))]
    pub name: String,
    /// An expression, as for a metric. Default: the column or the value of this name.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub value: Option<String>,
    /// Whether less or more is better.
    #[serde(default)]
    pub goal: Goal,
    /// Its unit. Default: what the end of its name says: `_ns`, `_cycles`.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub unit: Option<String>,
}

/// The direction of an objective.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// Less is better.
    #[default]
    Minimise,
    /// More is better.
    Maximise,
}

/// A search.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct SearchFile {
    /// What is searched for.
    pub kind: SearchKind,
    /// saturation: the axis of the load, a `range` without `step` and `count`.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub axis: Option<String>,
    /// saturation: how narrow the bracket gets. Default: a hundredth of the range.
    #[serde(default)]
    #[schemars(range(min = 1e-6))]
    pub tolerance: Option<f64>,
    /// saturation: `packet_latency` in multiples of that at the lowest load of the range beyond which a load is saturated,
    /// more than 1. Default: 3.
    #[serde(default)]
    #[schemars(range(min = 1.0))]
    pub latency_limit: Option<f64>,
    /// pareto: points that are run at most, repetitions not counted.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub budget: Option<u64>,
    /// pareto: points of the sample it starts with. Default: a quarter of the budget.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub initial: Option<u64>,
}

/// What is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SearchKind {
    /// The greatest load that a network carries, by halving, for every combination of the other axes.
    Saturation,
    /// The points of which none is better in one objective without being worse in another.
    Pareto,
}
