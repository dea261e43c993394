//! `[[collective]]`.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize as DeriveDeserialize, Serialize};

use super::words::{DelayFile, ParticipantsFile, names};
use crate::names::{DType, Op, Round};
pub use watershed_operands::random::Distribution;

/// A collective operation.
#[derive(Debug, Clone, PartialEq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct CollectiveFile {
    /// Name in results and messages, unique. Default: "c0", "c1", …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub name: Option<String>,
    /// What it does.
    pub kind: CollectiveKind,
    /// Collective id: which set of registers it uses.
    #[serde(default)]
    #[schemars(range(min = 0, max = 4095))]
    pub id: u32,
    /// Operation of a reduction. Default: "sum".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "names::<Op>")]
    pub op: Option<String>,
    /// Type of an element. Default: "f64".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "names::<DType>")]
    pub dtype: Option<String>,
    /// Sum in this wider type: "f16" or "f32" for fp8_e4m3 and fp8_e5m2, "f32" for f16 and bf16. Elements are widened
    /// before they are sent. Default: the type of an element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "names::<DType>")]
    pub accumulate: Option<String>,
    /// Type of a result: that of an element, rounded once where the result leaves the tree, or that of `accumulate`, not
    /// rounded at all. Default: the type of an element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "names::<DType>")]
    pub result_dtype: Option<String>,
    /// Rounding of inexact results. Default: "nearest-even".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "names::<Round>")]
    pub round: Option<String>,
    /// Elements of the vector; 0 for a barrier only. Default: 1, and 0 for a barrier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 268_435_456))]
    pub elements: Option<u64>,
    /// Who takes part: "all", or a list of end points.
    #[serde(default)]
    pub participants: ParticipantsFile,
    /// Root of the built-in tree: the name of a switch, or "auto". Not together with registers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub root: Option<String>,
    /// scan: whether a participant's own value is among those that are reduced for it. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inclusive: Option<bool>,
    /// Programs call it, as often as they like: they say when, with which vector and how many elements.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub called: bool,
    /// Cycle in which the participants start.
    #[serde(default)]
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_i64))]
    pub start_cycle: u64,
    /// Cycles by which participants start late: one number for all, a list with one for each, or a random choice.
    #[serde(default)]
    pub delay_cycles: DelayFile,
    /// broadcast: the participant that has the data, as an index into `participants`. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4_194_303))]
    pub source: Option<u32>,
    /// reduce: the end point that gets the result; it need not take part. Default: the participant at the root, or the
    /// first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4_194_303))]
    pub receiver: Option<u32>,
    /// allreduce, reduce: trees that each reduce a segment of the vector at the same time, over links of their own as far as
    /// the topology has them. Each takes a collective id, from `id` on, and a pair of collective channels on every link.
    /// Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 8))]
    pub segments: Option<u32>,
    /// The plane whose collective channels it uses: a request and a response channel of their own on every link, with
    /// operand slots of their own in every engine. Collectives on one plane that share a link or an engine take turns; those on two
    /// planes do not wait for each other. Segments take one each, from this one on.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 7))]
    pub plane: u32,
    /// What the participants contribute. Default: random = "normal", or "integers" for integer types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataFile>,
    /// A file of configuration registers, as `watershed embed --save` writes it, instead of the built-in tree; relative to
    /// the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub embedding: Option<String>,
    /// Configuration registers by the name of the switch, instead of the built-in tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registers: Option<BTreeMap<String, SwitchRegistersFile>>,
}

impl CollectiveFile {
    /// A table that says nothing but the kind.
    pub fn plain(kind: CollectiveKind) -> CollectiveFile {
        CollectiveFile {
            name: None,
            kind,
            id: 0,
            op: None,
            dtype: None,
            accumulate: None,
            result_dtype: None,
            round: None,
            elements: None,
            participants: ParticipantsFile::All,
            root: None,
            inclusive: None,
            called: false,
            start_cycle: 0,
            delay_cycles: DelayFile::default(),
            source: None,
            receiver: None,
            segments: None,
            plane: 0,
            data: None,
            embedding: None,
            registers: None,
        }
    }
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// The collectives there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CollectiveKind {
    /// All participants contribute, and all get the result.
    Allreduce,
    /// All participants contribute, and the root gets the result.
    Reduce,
    /// One participant has the data, and all get it.
    Broadcast,
    /// No participant goes on before all have arrived.
    Barrier,
    /// Every participant gets the reduction of those before it, in the order of `participants`.
    Scan,
}

impl CollectiveKind {
    /// Its name in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allreduce => "allreduce",
            Self::Reduce => "reduce",
            Self::Broadcast => "broadcast",
            Self::Barrier => "barrier",
            Self::Scan => "scan",
        }
    }
}

/// What the participants contribute; exactly one of `random`, `values` and `file`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct DataFile {
    /// Seeded random data of a distribution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random: Option<Distribution>,
    /// The data itself: one row a participant (a broadcast has one row), as numbers or as bit patterns like "0x3ff0".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Vec<Number>>>")]
    pub values: Option<Vec<Vec<Number>>>,
    /// A .npy, .csv or .hex file, relative to the scenario; one row a participant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub file: Option<String>,
}

/// A number in the scenario's own words, so that it is rounded only once, to the collective's type: `0.1`, `-3`, or a bit
/// pattern in a string, `"0x3ff0000000000000"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Number(pub String);

/// Registers of one switch, patent notation: input port to output ports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct SwitchRegistersFile {
    /// Request registers: on the way up. `I2 = [10]` hands what enters at port 2 to the engine, port 10 of a die's switch.
    #[schemars(schema_with = "port_vectors")]
    pub request: BTreeMap<String, Vec<u32>>,
    /// Response registers: on the way down.
    #[schemars(schema_with = "port_vectors")]
    pub response: BTreeMap<String, Vec<u32>>,
}

fn port_vectors(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {
            "type": "array",
            "items": { "type": "integer", "minimum": 0, "maximum": 65535 },
        },
    })
}
