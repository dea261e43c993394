//! The `[[job]]` table: one for all engines. How it is translated is the page of `jobs` of `watershed_scenario`.

use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::collective::{Distribution, Number};
use super::words::ParticipantsFile;
use crate::names::{NamedValues, Op};
use watershed_arith::quad::{OPCODES, Opcode};

/// A job, for any engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct JobFile {
    /// Name in results and messages, unique. Default: "job" and its place in the scenario, from 0 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub name: Option<String>,
    /// Who does it. Default: the engine of the scenario's family; "software" in a plain fabric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<Engine>,
    /// What it does. Default: "allreduce".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<JobKind>,
    /// Operation of a reduction. Default: "sum".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "operations")]
    pub op: Option<String>,
    /// Type of an element. Default: "f64".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::words::types")]
    pub dtype: Option<String>,
    /// Rounding of inexact results. Default: "nearest-even".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<String>,
    /// armed, pbv: denormal operands and results become zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush_to_zero: Option<bool>,
    /// Elements of the vector. Engines that work in frames take as many rounds as the vector has frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 268_435_456))]
    pub elements: Option<u64>,
    /// armed, pbv: how often it is done, one time after the other. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub repeat: Option<u32>,
    /// Who takes part: "all", or a list of end points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub participants: Option<ParticipantsFile>,
    /// What the participants contribute. Default: random = "normal", or "integers" for integer types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<JobDataFile>,
    /// Cycle in which it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_i64))]
    pub start_cycle: Option<u64>,
    /// What only PIUMA's engines have: the other keys of a `[[collective]]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piuma: Option<BTreeMap<String, serde_json::Value>>,
    /// What only armed engines have: the other keys of an `[[armed.reduction]]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub armed: Option<BTreeMap<String, serde_json::Value>>,
    /// What only packet engines have: the other keys of a `[[pbv.collective]]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pbv: Option<BTreeMap<String, serde_json::Value>>,
    /// What only software has: the other keys of a `[[host]]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub software: Option<BTreeMap<String, serde_json::Value>>,
}

/// What participants of a job contribute: one of random, values and file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct JobDataFile {
    /// Seeded random data of a distribution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub random: Option<Distribution>,
    /// The data itself: a row of all elements for each participant; of a broadcast one row. armed, pbv: a row of one frame is
    /// contributed in every round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<Vec<Number>>>,
    /// piuma: a file with the data, relative to the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub file: Option<String>,
    /// armed, pbv: random data is drawn once and contributed in every round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_every_round: Option<bool>,
}

/// Who does a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Engine {
    /// Collective switches with configuration registers and a CENG.
    Piuma,
    /// Engines in the wire that multicast frames arm.
    Armed,
    /// Packet engines with participant bit vectors.
    Pbv,
    /// The end points, over point-to-point messages.
    Software,
}

/// What a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum JobKind {
    /// All participants get the reduction of all contributions.
    Allreduce,
    /// One gets it.
    Reduce,
    /// All participants get the vector of one.
    Broadcast,
    /// The same; an older word.
    Multicast,
    /// No participant goes on before all have arrived.
    Barrier,
    /// Groups wait for each other.
    InterGroupBarrier,
    /// Every participant gets the reduction of those before it.
    Scan,
}

impl Engine {
    /// All of them.
    pub const ALL: [Engine; 4] = [Engine::Piuma, Engine::Armed, Engine::Pbv, Engine::Software];

    /// Its word.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Piuma => "piuma",
            Engine::Armed => "armed",
            Engine::Pbv => "pbv",
            Engine::Software => "software",
        }
    }

    /// The table its jobs are translated into.
    pub const fn table(self) -> &'static str {
        match self {
            Engine::Piuma => "collective",
            Engine::Armed => "armed.reduction",
            Engine::Pbv => "pbv.collective",
            Engine::Software => "host",
        }
    }

    /// The family of a scenario in which it works, if no other is there.
    pub const fn family(self) -> &'static str {
        match self {
            Engine::Software => "fabric",
            other => other.name(),
        }
    }

    /// The engine of this name.
    pub fn read(name: &str) -> Option<Engine> {
        Engine::ALL.into_iter().find(|engine| engine.name() == name)
    }
}

/// An opcode's operation in a job: "FLT SUM NEAR" is `sum`, "INT MINMAXLOC" is `minmaxloc`.
pub fn operation(opcode: &Opcode) -> String {
    let words = opcode.name.split(' ').find(|word| !matches!(*word, "INT" | "FLT"));
    words.unwrap_or_default().to_ascii_lowercase()
}

fn operations(_: &mut SchemaGenerator) -> Schema {
    let mut names: Vec<String> =
        Op::names().map(str::to_owned).chain(["mean".to_owned(), "sum-deterministic".to_owned()]).collect();
    names.extend(OPCODES.iter().map(operation));
    let mut seen = BTreeSet::new();
    names.retain(|name| name != "barrier" && seen.insert(name.clone()));
    json_schema!({ "type": "string", "enum": names })
}
