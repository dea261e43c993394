//! The table `[golden]`: the contents of a scenario's golden files, and the tolerances of comparison. `watershed test` reads it
//! (`watershed_study::snapshot`); a run does not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the golden files of a scenario hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct Golden {
    /// What is compared; nothing leaves the scenario out. Default: document, summary and wave, and the embedding of systems of nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<Part>>,
    /// Signals of the golden wave, as globs on hierarchical names. Default: engines and memories; of plain fabrics a corner switch.
    #[schemars(inner(length(min = 1)))]
    pub signals: Vec<String>,
    /// First cycle of the golden wave. Default: the start of the first collective; 0 in the armed family, the PBV family and plain
    /// fabrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_i64))]
    pub from_cycle: Option<u64>,
    /// Last cycle of the golden wave. Default: 95 cycles after the first one, 400 in the armed family, 1500 in the PBV family and in networks
    /// of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_i64))]
    pub to_cycle: Option<u64>,
    /// What of the golden wave is drawn as text.
    pub picture: Picture,
    /// Numbers that need not be the golden ones exactly; without it all must.
    #[schemars(length(max = 256))]
    pub tolerance: Vec<Tolerance>,
}

/// What of the golden wave is drawn as text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct Picture {
    /// Signals of the picture. Default: those of the wave if it names some, else a few of them.
    #[schemars(inner(length(min = 1)))]
    pub signals: Vec<String>,
    /// First cycle of the picture. Default: that of the wave if it gives one, else where the first engine is at work.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_i64))]
    pub from_cycle: Option<u64>,
    /// Last cycle of the picture. Default: 25 cycles after the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_i64))]
    pub to_cycle: Option<u64>,
}

/// A part of what a run gives, which has golden files of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The result document, long vectors shortened: NAME.json.
    Document,
    /// What `watershed run` prints: NAME.summary.snap.
    Summary,
    /// Some signals over some cycles, NAME.vcd, and part of that as a picture, NAME.wave.snap.
    Wave,
    /// The message ladder as text: NAME.ladder.snap.
    Ladder,
    /// The same as a picture: NAME.svg.
    LadderSvg,
    /// What `watershed embed` prints: NAME.embed.snap.
    Embedding,
}

/// Numbers that need not be the golden ones exactly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tolerance {
    /// Which ones: a glob on the names of values in the result document, as in "collectives.*.latency_cycles", or on lines of the
    /// summary by what they begin with, as in "summary.busiest link". It must name at least one number.
    #[schemars(length(min = 1))]
    pub value: String,
    /// How far a number may be from the golden one. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e300))]
    pub absolute: Option<f64>,
    /// The same as a part of the golden number: 0.05 is 5 %. If both are given, the wider one holds. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e9))]
    pub relative: Option<f64>,
}

impl Tolerance {
    /// Whether a number counts as equal to the golden one.
    pub fn allows(&self, golden: f64, found: f64) -> bool {
        let most = self.absolute.unwrap_or(0.0).max(self.relative.unwrap_or(0.0) * golden.abs());
        (found - golden).abs() <= most
    }
}
