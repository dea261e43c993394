//! `[training]` of a study file as it is written. The doc comments are the format's reference.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Training of networks by all contestants, layer by layer, instead of one job at several vector lengths. Contestants are scenarios with a
/// `[workload]`; its trace is replaced by the all-reduces of the layers.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct TrainingFile {
    /// What is trained: "vgg16", "resnet50", or tables of layers, relative to the study.
    #[schemars(length(min = 1, max = 16), inner(length(min = 1)))]
    pub models: Vec<String>,
    /// Images of a rank in an iteration, ascending.
    #[schemars(length(min = 1, max = 32), inner(range(min = 1, max = 1_048_576)))]
    pub minibatch: Vec<u64>,
    /// Replicas, each on an end point of its own.
    #[schemars(range(min = 2, max = 4096))]
    pub ranks: u32,
    /// Bytes of an element of weights, gradients and activations.
    #[serde(default = "four")]
    #[schemars(range(min = 1, max = 8))]
    pub element_bytes: u64,
    /// Operations a second of a rank, in 10^12.
    #[schemars(range(min = 0.000_001, max = 1_000_000.0))]
    pub peak_tflops: f64,
    /// How much of the peak is attained.
    #[serde(default = "one")]
    #[schemars(range(min = 0.000_001, max = 1.0))]
    pub efficiency: f64,
    /// Gb/s of a rank's own memory. Default: it is never short.
    #[serde(default)]
    #[schemars(range(min = 0.000_001, max = 100_000_000.0))]
    pub bandwidth_gbps: Option<f64>,
    /// All-reduces of more elements are simulated at this length, and extended by the time an element that is measured between half of it
    /// and all of it.
    #[serde(default = "longest")]
    #[schemars(range(min = 2, max = 16_777_216))]
    pub simulated_elements: u64,
    /// What a source says, beside ours.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub figure: Vec<FigureFile>,
}

fn four() -> u64 {
    4
}

fn one() -> f64 {
    1.0
}

fn longest() -> u64 {
    1 << 20
}

/// A value of a source.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct FigureFile {
    /// What it is.
    #[schemars(length(min = 1))]
    pub what: String,
    /// Which of ours stands beside it.
    pub of: Quantity,
    /// The network, as `models` has it.
    #[schemars(length(min = 1))]
    pub model: String,
    /// One of `minibatch`.
    #[schemars(range(min = 1))]
    pub minibatch: u64,
    /// The contestant.
    #[schemars(length(min = 1))]
    pub contestant: String,
    /// When it adds up gradients.
    #[serde(default)]
    pub reduce: ReduceFile,
    /// The system. Default: the first.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub system: Option<String>,
    /// Of a speed-up: over this contestant, whose all-reduces are at the end.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub over: Option<String>,
    /// What the source says.
    #[schemars(range(min = 0.000_001))]
    pub says: f64,
    /// How far ours may be from it, as a share of it.
    #[schemars(range(min = 0.0, max = 10.0))]
    pub tolerance: f64,
    /// "calibrated" if a parameter was fitted to it, "predicted" if not.
    pub basis: BasisFile,
}

/// Which of our values stands beside a source's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Quantity {
    /// Communication that no computing hides, in per cent of the iteration.
    ExposedPercent,
    /// How many times as fast as `over`.
    Speedup,
}

/// When gradients are added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum ReduceFile {
    /// Those of a layer as soon as backpropagation is through with it.
    Layers,
    /// All at once when backpropagation is over.
    #[default]
    End,
}

/// Where ours comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum BasisFile {
    /// A parameter was fitted to it.
    Calibrated,
    /// Nothing was.
    Predicted,
}
