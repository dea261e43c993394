//! Waves: how blocks declare their signals, and how their values reach a file.
//!
//! # The idea
//!
//! A block describes its signals in one function. The function serves twice: once to *declare* the signals
//! (names, widths, names of states; initial values come along), and then, each time the block was touched, to
//! *sample* them:
//!
//! ```
//! use watershed_probe::{EnumTable, Period, Scope, Selection, Tracer, VcdSink};
//!
//! static STATES: EnumTable = EnumTable { name: "Engine", names: &["IDLE", "BUSY"] };
//!
//! struct Engine { state: u64, head: Option<u64> }
//!
//! impl Engine {
//!     fn probe(&self, s: &mut Scope<'_>) {
//!         s.state("state", &STATES, self.state);
//!         s.indexed("in", 0, |s| s.valid("head", 8, self.head));
//!     }
//! }
//!
//! let (sink, file) = VcdSink::in_memory();
//! let clock = Period::from_mhz(850).unwrap();
//! let mut tracer = Tracer::new(clock, Selection::default(), Box::new(sink));
//! let mut engine = Engine { state: 0, head: None };
//! let node = tracer.declare("die0.engine", |s| engine.probe(s)).unwrap();
//! tracer.start()?;
//!
//! engine = Engine { state: 1, head: Some(0x3f) };        // the edge at the end of cycle 2
//! tracer.sample(node, 3, |s| engine.probe(s));           // so it stands from cycle 3 on
//! let summary = tracer.finish(9)?;
//!
//! assert_eq!(summary.changes, 2);
//! assert!(file.text().contains("#3529\n1!\nb111111 \"\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Rules
//!
//! - A value is the register as it stands at the start of cycle `c`, after the clock edge. A block that changes in
//!   cycle `c` is therefore sampled at `c + 1`.
//! - The function calls the same signals and scopes in the same order every time, whatever the block's state is;
//!   debug builds check it.
//! - A node that is not sampled keeps its values. Sampling an untouched node writes nothing, so waking blocks that
//!   have nothing to do does not show in the file.
//! - Cycles never go back. Within a cycle nodes may be sampled in any order: changes are sorted before they are
//!   written, so the bytes of the file do not depend on the order of evaluation.
//! - A node is sampled at most once a cycle (of several samples the last one counts).
//!
//! # What is not selected costs nothing
//!
//! [`Tracer::declare`] gives no handle for a node without selected signals, so it is never sampled. The closure of a
//! scope without selected signals does not run while sampling. A single signal that is not selected costs one load and
//! one compare. Nodes below a pruned path are not even visited while declaring.
//!
//! # Parts
//!
//! | file | what |
//! |---|---|
//! | [`select`](Selection) | globs on names, depth, window |
//! | [`similar_names`] | signals that are like one that does not exist |
//! | `sink`, `scope`, `declare`, `tracer` | declarations, a block's view of a recording, the recording itself |
//! | `vcd_out` | [`VcdSink`]: VCD file, names of states, GTKWave save file |
//! | `writer` | [`WriterThread`]: a thread of its own for one of these |
//! | `curate` | which thirty signals viewers open on, and when |
//! | `gtkw` | contents of the GTKWave save file and its translation tables |
//! | `notes` | blocks of FST files, and the notes in this program's files |
//! | [`wave_in`] | reader of VCD and FST, also of files that were cut off |
//! | [`diff`] | first difference of two waveforms |
//! | [`ascii`] | waveforms as text |
//!
//! # Limits
//!
//! At most 2^32 - 3 signals. Time stamps are whole picoseconds: clocks above 1 THz are refused, and a run longer
//! than 2^64 ps (213 days) ends in an error.

pub mod ascii;
mod curate;
mod declare;
pub mod diff;
mod fst_out;
mod gtkw;
pub mod ladder;
mod notes;
mod scope;
mod select;
pub mod similar_names;
mod sink;
mod state;
mod tracer;
mod trigger;
mod vcd_lines;
mod vcd_out;
pub mod wave_in;
mod writer;

pub use fst_out::FstSink;
pub use scope::Scope;
pub use select::{NothingSelected, Selection, SelectionError};
pub use sink::{Declarations, ScopeDecl, SignalDecl, Sink, SinkSummary, TraceError, TraceSummary, Value, Values};
pub use tracer::{NodeHandle, Tracer};
pub use trigger::{Condition, Fired, Lookup, NameError, Reading, Trigger, TriggerSink, states_named};
pub use vcd_out::{MemoryFile, VcdSink};
pub use writer::WriterThread;

/// Names of a state's values, in order from 0.
#[derive(Debug, PartialEq, Eq)]
pub struct EnumTable {
    /// Name of the type, as viewers show it.
    pub name: &'static str,
    /// Name of value 0, 1, 2 and so on.
    pub names: &'static [&'static str],
}

impl EnumTable {
    /// Bits that hold every named value; at least one.
    pub const fn width(&self) -> u32 {
        let last = self.names.len().saturating_sub(1) as u64;
        if last == 0 { 1 } else { 64 - last.leading_zeros() }
    }
}

/// Length of a clock cycle in picoseconds, exactly: a fraction.
///
/// 850 MHz is 20000/17 ps; time stamps are floor(cycle x period), so the error never exceeds one picosecond and
/// does not grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    numerator: u64,
    denominator: u64,
}

impl Period {
    const PS_PER_SECOND: u64 = 1_000_000_000_000;

    /// `numerator / denominator` picoseconds. `None` for zero or less than one picosecond.
    pub fn from_ps(numerator: u64, denominator: u64) -> Option<Period> {
        if denominator == 0 || numerator < denominator {
            return None;
        }
        let (mut a, mut b) = (numerator, denominator);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Some(Period { numerator: numerator / a, denominator: denominator / a })
    }

    /// One cycle of a clock of this many Hz. `None` for zero or more than 1 THz.
    pub fn from_hz(hz: u64) -> Option<Period> {
        Self::from_ps(Self::PS_PER_SECOND, hz)
    }

    /// One cycle of a clock of this many kHz. `None` for zero or more than 1 THz.
    pub fn from_khz(khz: u64) -> Option<Period> {
        Self::from_ps(Self::PS_PER_SECOND / 1_000, khz)
    }

    /// One cycle of a clock of this many MHz. `None` for zero or more than 1 THz.
    pub fn from_mhz(mhz: u64) -> Option<Period> {
        Self::from_ps(Self::PS_PER_SECOND / 1_000_000, mhz)
    }

    /// Start of a cycle in picoseconds, rounded down; saturates at `u64::MAX`.
    pub fn start_ps(self, cycle: u64) -> u64 {
        self.part_ps(cycle, 0, 1)
    }

    /// The cycle in which a moment lies.
    pub fn cycle_at(self, ps: u64) -> u64 {
        // Rounding down can put the start of a cycle up to one picosecond early, so the quotient may be one short.
        let cycle = u128::from(ps) * u128::from(self.denominator) / u128::from(self.numerator);
        let cycle = u64::try_from(cycle).unwrap_or(u64::MAX);
        if self.start_ps(cycle.saturating_add(1)) <= ps { cycle.saturating_add(1) } else { cycle }
    }

    /// Start of part `part` of `parts` of a cycle in picoseconds, rounded down; saturates at `u64::MAX`.
    pub(crate) fn part_ps(self, cycle: u64, part: u32, parts: u32) -> u64 {
        // cycle x parts needs up to 96 bits, times the numerator up to 160; the numerator is at most 10^12 for any
        // clock given in Hz, which leaves 2^88 for cycle x parts. Beyond that the result would not fit anyway.
        let numerator =
            (u128::from(cycle) * u128::from(parts) + u128::from(part)).checked_mul(u128::from(self.numerator));
        numerator
            .map(|ps| ps / (u128::from(self.denominator) * u128::from(parts)))
            .and_then(|ps| u64::try_from(ps).ok())
            .unwrap_or(u64::MAX)
    }
}

impl std::fmt::Display for Period {
    /// Picoseconds as a fraction: `20000/17`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

/// Index of a signal in declaration order.
pub type SignalId = u32;

// ---------------------------------------------------------------- declaring

// ---------------------------------------------------------------- the tracer
