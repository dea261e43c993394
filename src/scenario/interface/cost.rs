//! What hardware costs and what a run takes of energy: the tables of `watershed cost`. The formulas are in the
//! [reader](watershed_reader::cost), what is counted in the scenario.

use serde::Serialize;
use serde_json::Value as Json;

/// What a scenario's hardware costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    /// Name of the technology table.
    pub technology: String,
    /// Switches in the system.
    pub switches: u64,
    /// Kinds of blocks.
    pub blocks: Vec<BlockCost>,
    /// All of it.
    pub total: HardwareTotals,
    /// The mean of a switch, with its engines.
    pub per_switch: HardwareTotals,
    /// The shortest clock period in ps: that of the slowest block.
    pub period_ps: f64,
    /// The same in delays of a gate (`delay.gate`).
    pub period_gates: f64,
    /// The highest frequency in MHz.
    pub frequency_mhz: f64,
    /// The slowest block.
    pub slowest: String,
}

/// What the figures of a block stand on; of several the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// A formula, within what was synthesised.
    #[default]
    Fitted,
    /// A formula, beyond it.
    Extrapolated,
    /// Counted, and the technology table's price of each.
    NotSynthesised,
}

impl Basis {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fitted => "fitted",
            Self::Extrapolated => "extrapolated",
            Self::NotSynthesised => "not synthesised",
        }
    }
}

/// One kind of block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BlockCost {
    /// Its name.
    pub block: String,
    /// What one of it is made of, in words.
    pub detail: String,
    /// How many there are.
    pub count: u64,
    /// What its figures stand on.
    pub basis: Basis,
    /// Its shortest clock period in ps; null where it is a part of the path of another.
    pub period_ps: Option<f64>,
    /// One of it.
    pub each: HardwareTotals,
}

/// Bits, units, gates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct HardwareTotals {
    /// Bits of storage that the configuration asks for.
    pub storage_bits: u64,
    /// Flip-flops, those of pipelines and of control included.
    pub flip_flops: u64,
    /// Bits in memory macros.
    pub sram_bits: u64,
    /// Two-input adders (of any format).
    pub adders: u64,
    /// Two-input comparators.
    pub comparators: u64,
    /// Logic in NAND2 equivalents.
    pub logic: u64,
    /// All in NAND2 equivalents, flip-flops and memories included: the area over that of a NAND2.
    pub gates: u64,
    /// Area of all cells and memories, in um2.
    pub area_um2: f64,
    /// Wires of links.
    pub wires: u64,
}

impl HardwareTotals {
    fn each(self, other: Self, of: impl Fn(u64, u64) -> u64, area_um2: f64) -> Self {
        Self {
            storage_bits: of(self.storage_bits, other.storage_bits),
            flip_flops: of(self.flip_flops, other.flip_flops),
            sram_bits: of(self.sram_bits, other.sram_bits),
            adders: of(self.adders, other.adders),
            comparators: of(self.comparators, other.comparators),
            logic: of(self.logic, other.logic),
            gates: of(self.gates, other.gates),
            area_um2,
            wires: of(self.wires, other.wires),
        }
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.each(other, |a, b| a + b, tenths(self.area_um2 + other.area_um2))
    }

    /// This many of it.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        self.each(self, |a, _| a * count, tenths(self.area_um2 * count as f64))
    }

    /// The mean of this many, rounded up.
    #[must_use]
    pub fn over(self, count: u64) -> Self {
        let count = count.max(1);
        self.each(self, |a, _| a.div_ceil(count), tenths(self.area_um2 / count as f64))
    }
}

/// An area as it is printed.
pub fn tenths(area: f64) -> f64 {
    (area * 10.0).round() / 10.0
}

/// Events of one kind and what they took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Events {
    /// What happened: `hops local`, `reductions sum of f64`.
    pub event: String,
    /// How often.
    pub count: u64,
    /// Energy of one, in fJ.
    pub each_fj: f64,
    /// Energy of all, in nJ.
    pub energy_nj: f64,
}

/// The energy of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Energy {
    /// By event.
    pub events: Vec<Events>,
    /// All of it, in nJ.
    pub energy_nj: f64,
    /// Time of the run, in ns.
    pub time_ns: f64,
    /// Energy over time, in mW.
    pub power_mw: f64,
}

/// The cost as a piece of JSON.
pub fn json(cost: &Cost) -> Json {
    serde_json::to_value(cost).unwrap_or(Json::Null)
}
