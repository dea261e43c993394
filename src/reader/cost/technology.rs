//! Technology tables: what a gate, a flip-flop, a bit of memory and an event take in one process.
//!
//! A table is a TOML file. Each number stands with its unit and its source; the tables `[fit.BLOCK]` at its end hold the coefficients of
//! the [formulas](super::model). `nangate45.toml` comes with the program; a file of the same form replaces it.

use std::path::Path;
use std::sync::OnceLock;

use serde::Deserialize;

use super::model::Fit;

/// The line of a technology table behind which `make synth` writes the fit.
pub const FIT: &str = "# ---- Fitted to golden/synth: `make synth` writes what follows. ----\n";

/// The name of the table that comes with the program.
pub const NANGATE45: &str = "nangate45";
/// Its text.
pub const NANGATE45_TEXT: &str = include_str!("nangate45.toml");

/// A number with its unit and where it comes from.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Number {
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// Where it comes from.
    pub source: String,
}

/// Areas, in um2, and what is made of which cell.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Area {
    /// A two-input NAND, the unit of gates.
    pub nand2: Number,
    /// A flip-flop with reset.
    pub flip_flop: Number,
    /// A bit of a memory macro, its share of the periphery included.
    pub sram_bit: Number,
    /// An array of more bits is a memory macro.
    pub register_bits: Number,
}

/// Gates of what is not synthesised, in NAND2 equivalents.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gates {
    /// What lets a flip-flop of a table keep its bit.
    pub hold_bit: Number,
    /// A bit of a comparator.
    pub compare_bit: Number,
    /// A request of an arbiter.
    pub arbiter_request: Number,
}

/// Delays, in ps.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delay {
    /// From a clock edge through a flip-flop, and its set-up time.
    pub register: Number,
    /// A gate with a load, the unit of gate delays.
    pub gate: Number,
    /// From a clock edge to what a small memory reads.
    pub sram: Number,
    /// More for each root of a bit of the memory.
    pub sram_root_bit: Number,
}

/// Energies of events, in fJ.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Energy {
    /// A change of a NAND2's output, with its load.
    pub gate: Number,
    /// Share of gates whose output changes in an operation.
    pub gate_activity: Number,
    /// Share of bits that change from flit to flit.
    pub bit_activity: Number,
    /// The clock of a flip-flop whose bit stays, a cycle.
    pub flip_flop_clock: Number,
    /// A bit that is written into a flip-flop and read from it.
    pub flip_flop_bit: Number,
    /// A bit that is written into a memory macro and read from it, for each root of a word of it.
    pub sram_bit_root_word: Number,
    /// A change of a wire, for each mm.
    pub wire_mm: Number,
}

/// Leakage, in nW.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leakage {
    /// A NAND2.
    pub nand2: Number,
    /// A flip-flop.
    pub flip_flop: Number,
    /// A bit of a memory macro.
    pub sram_bit: Number,
}

/// Lengths, in mm a ns.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Length {
    /// A link for each ns of its latency.
    pub link: Number,
}

/// A technology table.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Technology {
    /// Its name.
    pub name: String,
    /// The process and the corner.
    pub about: String,
    /// Areas.
    pub area: Area,
    /// Gates of what is not synthesised.
    pub gates: Gates,
    /// Delays.
    pub delay: Delay,
    /// Energies.
    pub energy: Energy,
    /// Leakage.
    pub leakage: Leakage,
    /// Lengths.
    pub length: Length,
    /// Formulas of blocks.
    pub fit: Fit,
}

impl Technology {
    /// The table that comes with the program.
    ///
    /// # Panics
    /// Never: a test reads it.
    pub fn nangate45() -> &'static Self {
        static TABLE: OnceLock<Technology> = OnceLock::new();
        TABLE.get_or_init(|| Self::read("nangate45.toml", NANGATE45_TEXT).expect("it comes with the program"))
    }

    /// A table by the name of one that comes with the program, or from a file.
    ///
    /// # Errors
    /// In words, with the file and the key.
    pub fn load(given: &Path) -> Result<Self, String> {
        if given.as_os_str() == NANGATE45 {
            return Ok(Self::nangate45().clone());
        }
        let name = given.display();
        let text = std::fs::read_to_string(given).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                format!("there is no technology table `{name}`; `{NANGATE45}` comes with the program")
            }
            _ => format!("cannot read the technology table `{name}`: {error}"),
        })?;
        Self::read(&name.to_string(), &text)
    }

    /// Reads a table.
    ///
    /// # Errors
    /// In words: what is no TOML, is missing or unknown, has another unit, or no number of its range.
    pub fn read(name: &str, text: &str) -> Result<Self, String> {
        let wrong = |what: String| format!("technology table `{name}`: {what}");
        let table: Self = toml::from_str(text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
        for (key, number, unit) in table.numbers() {
            let Number { value, unit: given, source } = number;
            if given != unit {
                return Err(wrong(format!("`{key}` is in {given}; its unit is {unit}")));
            }
            if !value.is_finite() || *value < 0.0 || unit == "share" && *value > 1.0 {
                return Err(wrong(format!("`{key}` is {value}; it is a number from 0 on, a share up to 1")));
            }
            if source.trim().is_empty() {
                return Err(wrong(format!("`{key}` has no source")));
            }
        }
        if table.area.nand2.value <= 0.0 || table.delay.gate.value <= 0.0 {
            return Err(wrong("`area.nand2` and `delay.gate` are units: they are greater than 0".to_owned()));
        }
        table.fit.check().map_err(wrong)?;
        Ok(table)
    }

    /// All numbers but those of formulas: key, number, unit.
    pub fn numbers(&self) -> [(&'static str, &Number, &'static str); 22] {
        let Self { area, gates, delay, energy, leakage, length, .. } = self;
        [
            ("area.nand2", &area.nand2, "um2"),
            ("area.flip_flop", &area.flip_flop, "um2"),
            ("area.sram_bit", &area.sram_bit, "um2"),
            ("area.register_bits", &area.register_bits, "bits"),
            ("gates.hold_bit", &gates.hold_bit, "NAND2"),
            ("gates.compare_bit", &gates.compare_bit, "NAND2"),
            ("gates.arbiter_request", &gates.arbiter_request, "NAND2"),
            ("delay.register", &delay.register, "ps"),
            ("delay.gate", &delay.gate, "ps"),
            ("delay.sram", &delay.sram, "ps"),
            ("delay.sram_root_bit", &delay.sram_root_bit, "ps"),
            ("energy.gate", &energy.gate, "fJ"),
            ("energy.gate_activity", &energy.gate_activity, "share"),
            ("energy.bit_activity", &energy.bit_activity, "share"),
            ("energy.flip_flop_clock", &energy.flip_flop_clock, "fJ"),
            ("energy.flip_flop_bit", &energy.flip_flop_bit, "fJ"),
            ("energy.sram_bit_root_word", &energy.sram_bit_root_word, "fJ"),
            ("energy.wire_mm", &energy.wire_mm, "fJ"),
            ("leakage.nand2", &leakage.nand2, "nW"),
            ("leakage.flip_flop", &leakage.flip_flop, "nW"),
            ("leakage.sram_bit", &leakage.sram_bit, "nW"),
            ("length.link", &length.link, "mm/ns"),
        ]
    }
}
