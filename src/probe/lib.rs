//! Waves: what blocks show of themselves, and how it reaches a file.
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
//! [`Tracer::declare`] gives no handle for a node of which nothing is selected, so nobody samples it; the closure of
//! a scope of which nothing is selected does not run while sampling; of a single signal that is not selected one
//! load and one compare remain. Nodes below a pruned path are not even visited while declaring.
//!
//! # Parts
//!
//! | file | what |
//! |---|---|
//! | [`select`](Selection) | globs on names, depth, window |
//! | `vcd_out` | [`VcdSink`]: VCD file, names of states, GTKWave save file |
//! | `writer` | [`WriterThread`]: a thread of its own for one of these |
//! | `gtkw` | contents of the GTKWave save file and its translation tables |
//! | [`wave_in`] | reader of VCD and FST, also of files that were cut off |
//! | [`diff`] | first difference of two waveforms |
//! | [`ascii`] | waveforms as text |
//!
//! # Limits
//!
//! At most 2^32 - 3 signals. Time stamps are whole picoseconds: clocks above 1 THz are refused, and a run longer
//! than 2^64 ps (213 days) ends in an error.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

pub mod ascii;
pub mod diff;
mod fst_out;
mod gtkw;
pub mod ladder;
mod select;
mod state;
mod trigger;
mod vcd_out;
pub mod wave_in;
mod writer;

pub use fst_out::FstSink;
pub use select::{NothingSelected, Selection, SelectionError};
pub use trigger::{Condition, Fired, Lookup, Reading, Trigger, TriggerSink, states_named};
pub use vcd_out::{MemoryFile, VcdSink};
pub use writer::WriterThread;

use state::State;

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

/// A node that has at least one selected signal; from [`Tracer::declare`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NodeHandle(u32);

/// Index of a signal in declaration order.
pub type SignalId = u32;

/// What a value is at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// Unknown: all bits `x`.
    Unknown,
    /// Up to 64 bits.
    Bits(u64),
    /// More than 64 bits, least significant word first.
    Wide(&'a [u64]),
}

/// A scope in the hierarchy of selected signals.
#[derive(Debug)]
pub struct ScopeDecl {
    /// Its own name.
    pub name: String,
    /// The scope around it.
    pub parent: Option<u32>,
    /// Scopes in it, in declaration order.
    pub children: Vec<u32>,
    /// Signals directly in it, in declaration order.
    pub signals: Vec<SignalId>,
}

/// A selected signal.
#[derive(Debug)]
pub struct SignalDecl {
    /// Its own name, unique in its scope.
    pub name: Cow<'static, str>,
    /// Bits.
    pub width: u32,
    /// Names of its values, if it is a state.
    pub table: Option<&'static EnumTable>,
    /// The scope it is in.
    pub scope: u32,
}

/// All that was selected: what a sink needs for its header.
#[derive(Debug, Default)]
pub struct Declarations {
    /// Length of a clock cycle.
    pub period: Option<Period>,
    /// Scopes; a scope comes after the scope around it.
    pub scopes: Vec<ScopeDecl>,
    /// Signals in declaration order.
    pub signals: Vec<SignalDecl>,
    /// Outermost scopes.
    pub roots: Vec<u32>,
}

impl Declarations {
    /// Names of the scopes from the outermost to this one, joined by dots.
    pub fn scope_path(&self, scope: u32) -> String {
        let mut names = Vec::new();
        let mut at = Some(scope);
        while let Some(scope) = at {
            let scope = &self.scopes[scope as usize];
            names.push(scope.name.as_str());
            at = scope.parent;
        }
        names.reverse();
        names.join(".")
    }

    /// Viewers cannot tell two signals of one name in one scope apart: the second gets `_2` and so on.
    fn make_names_unique(&mut self) {
        for scope in &self.scopes {
            let mut seen: HashMap<String, u32> = HashMap::new();
            for &signal in &scope.signals {
                let name = &mut self.signals[signal as usize].name;
                let mut unique = name.to_string();
                while let Some(count) = seen.get_mut(&unique) {
                    *count += 1;
                    unique = format!("{name}_{count}");
                }
                seen.insert(unique.clone(), 1);
                if *name != unique {
                    *name = Cow::Owned(unique);
                }
            }
        }
    }
}

/// Current values, as a sink sees them.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a> {
    slots: &'a [Slot],
    wide: &'a [u64],
}

impl<'a> Values<'a> {
    /// Number of signals.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is no signal.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Value and width of a signal.
    #[inline]
    pub fn get(&self, signal: SignalId) -> (u32, Value<'a>) {
        let slot = &self.slots[signal as usize];
        let value = if slot.unknown {
            Value::Unknown
        } else if slot.width <= 64 {
            Value::Bits(slot.value)
        } else {
            let begin = slot.value as usize;
            Value::Wide(&self.wide[begin..begin + words(slot.width)])
        };
        (slot.width, value)
    }
}

/// Where waves go. Calls come in the order `header`, `dump`, any number of `step`, `finish`; `dump` is left out when
/// the run ends before the window begins.
///
/// One call carries all changes of a cycle, so a sink behind a pointer costs one indirect call a cycle.
///
/// An error ends the recording; [`Tracer::finish`] reports it.
#[allow(clippy::missing_errors_doc)] // One sentence above says it for all four.
pub trait Sink: Send {
    /// All selected signals; called once.
    fn header(&mut self, declarations: &Declarations) -> io::Result<()>;
    /// Values of all signals at the first moment.
    fn dump(&mut self, time_ps: u64, values: Values<'_>) -> io::Result<()>;
    /// New values of the signals that changed, in ascending order.
    fn step(&mut self, time_ps: u64, changed: &[SignalId], values: Values<'_>) -> io::Result<()>;
    /// The end of the recording; everything must be on disk afterwards.
    fn finish(&mut self, time_ps: u64) -> io::Result<SinkSummary>;
}

/// What a sink has written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SinkSummary {
    /// Files, the waveform first.
    pub files: Vec<PathBuf>,
    /// Bytes of the waveform.
    pub bytes: u64,
    /// The time at which a trigger's condition held first, in ps.
    pub fired_ps: Option<u64>,
}

/// What was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceSummary {
    /// Files, the waveform first.
    pub files: Vec<PathBuf>,
    /// Signals selected.
    pub signals: usize,
    /// Value changes written, initial values not counted.
    pub changes: u64,
    /// Bytes of the waveform.
    pub bytes: u64,
    /// The cycle in which a trigger's condition held first.
    pub fired_cycle: Option<u64>,
    /// Whether the run reached the first cycle of the window; if not, the file has no values.
    pub window_reached: bool,
    /// Globs that matched no signal (others did).
    pub unmatched_globs: Vec<String>,
}

/// Why recording could not start.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// No declared signal is selected.
    #[error(transparent)]
    NothingSelected(#[from] NothingSelected),
    /// The header could not be written.
    #[error("cannot write the waveform: {0}")]
    Io(#[from] io::Error),
}

/// Current value of a signal; all of the fast path in 16 bytes.
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// The value, or for wide signals the place of their first word.
    value: u64,
    width: u32,
    unknown: bool,
}

const fn words(width: u32) -> usize {
    width.div_ceil(64) as usize
}

/// What one call in a node's probe function means: a signal's slot, or one of the values below.
#[derive(Debug, Clone, Copy)]
struct Step {
    action: u32,
    #[cfg(debug_assertions)]
    name: &'static str,
    #[cfg(debug_assertions)]
    width: u32,
}

impl Step {
    /// Not selected. Beyond any slot, so that looking the slot up finds nothing.
    const SKIP: u32 = u32::MAX;
    /// A scope of which something is selected.
    const ENTER: u32 = u32::MAX - 1;
    const MAX_SIGNALS: usize = u32::MAX as usize - 2;

    #[cfg_attr(not(debug_assertions), allow(unused_variables))]
    fn new(action: u32, name: &'static str, width: u32) -> Self {
        Step {
            action,
            #[cfg(debug_assertions)]
            name,
            #[cfg(debug_assertions)]
            width,
        }
    }

    #[cfg_attr(not(debug_assertions), allow(unused_variables, clippy::unused_self))]
    #[inline]
    fn check(self, name: &'static str, width: u32) {
        #[cfg(debug_assertions)]
        assert!(
            self.name == name && self.width == width,
            "a probe function declared `{}` ({} bits) and now shows `{name}` ({width} bits) in its place: it must \
             call the same signals in the same order every time, whatever the block's state is",
            self.name,
            self.width
        );
    }
}

/// What a block sees of the tracer: it names its signals and gives their values.
///
/// Whether the call declares or samples is hidden from the block. Names are what the source documents call the
/// registers; letters, digits and `_` stay, anything else becomes `_`.
#[derive(Debug)]
pub struct Scope<'a> {
    mode: Mode<'a>,
}

#[derive(Debug)]
enum Mode<'a> {
    Declare(Declaring<'a>),
    Sample(Sampling<'a>),
}

impl Scope<'_> {
    /// A part of the block.
    #[inline]
    pub fn scope(&mut self, name: &'static str, f: impl FnOnce(&mut Scope<'_>)) {
        if self.enter(name, None) {
            f(self);
            self.leave();
        }
    }

    /// One of several alike parts: `indexed("in", 3, …)` is the scope `in3`.
    #[inline]
    pub fn indexed(&mut self, name: &'static str, index: usize, f: impl FnOnce(&mut Scope<'_>)) {
        if self.enter(name, Some(index)) {
            f(self);
            self.leave();
        }
    }

    /// A field of 1 to 64 bits.
    #[inline]
    pub fn bits(&mut self, name: &'static str, width: u32, value: u64) {
        self.narrow(name, width, Some(value), None);
    }

    /// One bit.
    #[inline]
    pub fn bit(&mut self, name: &'static str, value: bool) {
        self.narrow(name, 1, Some(u64::from(value)), None);
    }

    /// A field of 1 to 64 bits that is sometimes meaningless: `None` shows as all `x`.
    #[inline]
    pub fn valid(&mut self, name: &'static str, width: u32, value: Option<u64>) {
        self.narrow(name, width, value, None);
    }

    /// A state, shown by name. Its width follows from the table.
    #[inline]
    pub fn state(&mut self, name: &'static str, table: &'static EnumTable, value: u64) {
        debug_assert!(
            value < table.names.len() as u64,
            "state `{name}` has value {value}, which {} does not name",
            table.name
        );
        self.narrow(name, table.width(), Some(value), Some(table));
    }

    /// A field of any width, least significant word first. Words beyond the width must not be there.
    #[inline]
    pub fn wide(&mut self, name: &'static str, width: u32, value: &[u64]) {
        self.valid_wide(name, width, Some(value));
    }

    /// A field of any width that is sometimes meaningless: `None` shows as all `x`.
    #[inline]
    pub fn valid_wide(&mut self, name: &'static str, width: u32, value: Option<&[u64]>) {
        debug_assert!(
            value.is_none_or(|value| value.len() == words(width)),
            "`{name}` has {width} bits, which are {} words",
            words(width)
        );
        if width <= 64 {
            return self.narrow(name, width, value.map(|value| value.first().copied().unwrap_or(0)), None);
        }
        match &mut self.mode {
            Mode::Sample(sampling) => sampling.wide(name, width, value),
            Mode::Declare(declaring) => declaring.wide(name, width, value),
        }
    }

    #[inline]
    fn narrow(&mut self, name: &'static str, width: u32, value: Option<u64>, table: Option<&'static EnumTable>) {
        debug_assert!(
            value.unwrap_or(0) & !mask(width) == 0,
            "`{name}` has {width} bits, its value {:#x} has more",
            value.unwrap_or(0)
        );
        match &mut self.mode {
            Mode::Sample(sampling) => sampling.narrow(name, width, value),
            Mode::Declare(declaring) => declaring.narrow(name, width, value, table),
        }
    }

    #[inline]
    fn enter(&mut self, name: &'static str, index: Option<usize>) -> bool {
        match &mut self.mode {
            Mode::Sample(sampling) => sampling.enter(name),
            Mode::Declare(declaring) => declaring.enter(name, index),
        }
    }

    #[inline]
    fn leave(&mut self) {
        if let Mode::Declare(declaring) = &mut self.mode {
            declaring.leave();
        }
    }
}

/// All ones in the low `width` bits.
#[inline]
const fn mask(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

// ---------------------------------------------------------------- sampling

/// A walk through a node's steps. A signal costs one load of its step, one of its slot, and a compare.
#[derive(Debug)]
struct Sampling<'a> {
    steps: &'a [Step],
    at: usize,
    slots: &'a mut [Slot],
    wide: &'a mut [u64],
    changed: &'a mut Vec<SignalId>,
}

impl Sampling<'_> {
    /// `None` past the end: only a probe function that breaks the rules gets there.
    #[inline]
    fn next(&mut self, name: &'static str, width: u32) -> u32 {
        let step = self.steps.get(self.at);
        debug_assert!(
            step.is_some(),
            "a probe function shows `{name}`, which it has not declared: it must call the same signals in the same \
             order every time, whatever the block's state is"
        );
        self.at += 1;
        step.map_or(Step::SKIP, |step| {
            step.check(name, width);
            step.action
        })
    }

    #[inline]
    fn enter(&mut self, name: &'static str) -> bool {
        self.next(name, 0) == Step::ENTER
    }

    #[inline]
    fn narrow(&mut self, name: &'static str, width: u32, value: Option<u64>) {
        let signal = self.next(name, width);
        if let Some(slot) = self.slots.get_mut(signal as usize) {
            let (unknown, value) = (value.is_none(), value.unwrap_or(0) & mask(width));
            // Whether a signal changed cannot be foreseen: noted in any case, and taken back without a branch.
            let differs = slot.value ^ value | u64::from(slot.unknown ^ unknown);
            slot.value = value;
            slot.unknown = unknown;
            self.changed.push(signal);
            self.changed.truncate(self.changed.len() - usize::from(differs == 0));
        }
    }

    fn wide(&mut self, name: &'static str, width: u32, value: Option<&[u64]>) {
        let signal = self.next(name, width);
        if let Some(slot) = self.slots.get_mut(signal as usize) {
            let begin = slot.value as usize;
            let store = &mut self.wide[begin..begin + words(slot.width)];
            let unknown = value.is_none();
            let same = slot.unknown == unknown && value.is_none_or(|value| value == &*store);
            if !same {
                slot.unknown = unknown;
                if let Some(value) = value {
                    copy_words(store, value);
                }
                self.changed.push(signal);
            }
        }
    }
}

/// Copies what there is and clears the rest, so that a slice of a wrong length cannot leave old bits behind.
fn copy_words(store: &mut [u64], value: &[u64]) {
    let count = value.len().min(store.len());
    store[..count].copy_from_slice(&value[..count]);
    store[count..].fill(0);
}

// ---------------------------------------------------------------- declaring

/// Names collected for the error of an empty selection; enough to find a near one, not enough to hurt.
const MAX_COLLECTED: usize = 20_000;

/// What only declaring needs; dropped at the start.
#[derive(Debug, Default)]
struct Registry {
    declarations: Declarations,
    children: HashMap<(Option<u32>, String), u32>,
    used_globs: Vec<bool>,
    collected: Vec<String>,
    too_deep: usize,
}

impl Registry {
    fn collecting(&self) -> bool {
        self.declarations.signals.is_empty() && self.collected.len() < MAX_COLLECTED
    }

    fn child(&mut self, parent: Option<u32>, name: &str) -> u32 {
        let key = (parent, name.to_owned());
        if let Some(&known) = self.children.get(&key) {
            return known;
        }
        let id = self.declarations.scopes.len() as u32;
        self.declarations.scopes.push(ScopeDecl {
            name: name.to_owned(),
            parent,
            children: Vec::new(),
            signals: Vec::new(),
        });
        match parent {
            Some(parent) => self.declarations.scopes[parent as usize].children.push(id),
            None => self.declarations.roots.push(id),
        }
        self.children.insert(key, id);
        id
    }
}

/// A scope that is open while declaring.
#[derive(Debug)]
struct Level {
    name: Cow<'static, str>,
    /// In the registry, once something in it was selected.
    scope: Option<u32>,
    /// Its place among the steps, and how many signals there were before it.
    step: usize,
    signals_before: usize,
    /// Whether a glob can still match in here.
    alive: bool,
}

#[derive(Debug)]
struct Declaring<'a> {
    selection: &'a Selection,
    registry: &'a mut Registry,
    steps: &'a mut Vec<Step>,
    slots: &'a mut Vec<Slot>,
    wide: &'a mut Vec<u64>,
    levels: Vec<Level>,
    states: Vec<u64>,
}

impl Declaring<'_> {
    /// Opens a scope; says whether it must be visited.
    fn open(&mut self, name: Cow<'static, str>) -> bool {
        let parent_alive = self.levels.last().is_none_or(|level| level.alive);
        let matches = self.selection.push(&mut self.states, &name);
        let shallow = self.selection.depth().is_none_or(|depth| self.levels.len() < depth);
        let alive = parent_alive && matches && shallow;
        self.levels.push(Level {
            name,
            scope: None,
            step: self.steps.len().wrapping_sub(1),
            signals_before: self.slots.len(),
            alive,
        });
        alive || self.registry.collecting()
    }

    fn enter(&mut self, name: &'static str, index: Option<usize>) -> bool {
        let full: Cow<'static, str> = match index {
            Some(index) => Cow::Owned(format!("{}{index}", clean(name))),
            None => clean(name),
        };
        self.steps.push(Step::new(Step::ENTER, name, 0));
        let visit = self.open(full);
        if !visit {
            self.leave();
        }
        visit
    }

    fn leave(&mut self) {
        self.states.truncate(self.states.len() - self.selection.stride());
        if let Some(level) = self.levels.pop()
            && self.slots.len() == level.signals_before
        {
            self.steps.truncate(level.step + 1);
            if let Some(step) = self.steps.last_mut() {
                step.action = Step::SKIP;
            }
        }
    }

    /// Whether a signal is selected; keeps its name for the error if nothing is.
    fn selected(&mut self, name: &str) -> bool {
        let alive = self.levels.last().is_some_and(|level| level.alive);
        let mut accepted = false;
        if alive || self.registry.collecting() {
            self.selection.push(&mut self.states, name);
            accepted = self.selection.accepts(&self.states, &mut self.registry.used_globs);
            self.states.truncate(self.states.len() - self.selection.stride());
        }
        if accepted && alive {
            return true;
        }
        if self.registry.collecting() {
            self.registry.too_deep += usize::from(accepted);
            let mut full = String::new();
            for level in &self.levels {
                full.push_str(&level.name);
                full.push('.');
            }
            full.push_str(name);
            self.registry.collected.push(full);
        }
        false
    }

    fn signal(
        &mut self,
        name: &'static str,
        width: u32,
        table: Option<&'static EnumTable>,
        slot: impl FnOnce(&mut Vec<u64>) -> Slot,
    ) {
        let clean = clean(name);
        if !self.selected(&clean) {
            self.steps.push(Step::new(Step::SKIP, name, width));
            return;
        }
        let mut scope = None;
        for level in &mut self.levels {
            let known = match level.scope {
                Some(known) => known,
                None => self.registry.child(scope, &level.name),
            };
            level.scope = Some(known);
            scope = level.scope;
        }
        let Some(scope) = scope else { return };
        assert!(self.slots.len() < Step::MAX_SIGNALS, "more than {} signals selected: choose fewer", Step::MAX_SIGNALS);
        let signal = self.slots.len() as SignalId;
        self.slots.push(slot(self.wide));
        self.steps.push(Step::new(signal, name, width));
        let declarations = &mut self.registry.declarations;
        declarations.scopes[scope as usize].signals.push(signal);
        declarations.signals.push(SignalDecl { name: clean, width, table, scope });
    }

    fn narrow(&mut self, name: &'static str, width: u32, value: Option<u64>, table: Option<&'static EnumTable>) {
        assert!(
            (1..=64).contains(&width),
            "`{name}` is declared with {width} bits: bits() and valid() take 1 to 64, use wide() for more"
        );
        self.signal(name, width, table, |_| Slot {
            value: value.unwrap_or(0) & mask(width),
            width,
            unknown: value.is_none(),
        });
    }

    fn wide(&mut self, name: &'static str, width: u32, value: Option<&[u64]>) {
        self.signal(name, width, None, |store| {
            let begin = store.len();
            store.resize(begin + words(width), 0);
            copy_words(&mut store[begin..], value.unwrap_or(&[]));
            Slot { value: begin as u64, width, unknown: value.is_none() }
        });
    }
}

/// Makes a name that every reader takes: letters, digits and `_`, not beginning with a digit.
fn clean(name: &str) -> Cow<'_, str> {
    let good = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let starts_well = name.starts_with(|first: char| !first.is_ascii_digit());
    if starts_well && name.chars().all(good) {
        return Cow::Borrowed(name);
    }
    let mut cleaned = String::from(if starts_well { "" } else { "_" });
    cleaned.extend(name.chars().map(|letter| if good(letter) { letter } else { '_' }));
    Cow::Owned(cleaned)
}

// ---------------------------------------------------------------- the tracer

/// Where a recording stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Declaring,
    /// Before and in the first cycle of the window: samples are kept, not written.
    Before,
    /// In the window.
    Inside,
    /// After the window, or after an error: samples are ignored.
    Over,
}

/// Collects samples and hands the changes of each cycle to a [`Sink`].
pub struct Tracer {
    period: Period,
    selection: Selection,
    sink: Box<dyn Sink>,
    registry: Registry,
    steps: Vec<Step>,
    /// End of each node's steps; a node begins where the one before it ends.
    ends: Vec<usize>,
    slots: Vec<Slot>,
    wide: Vec<u64>,
    /// Signals that changed in cycle `now`.
    changed: Vec<SignalId>,
    now: u64,
    phase: Phase,
    clock: Option<SignalId>,
    /// First cycle whose clock edges are not written yet.
    next_edge: u64,
    last_time: u64,
    changes: u64,
    window_reached: bool,
    unmatched_globs: Vec<String>,
    error: Option<io::Error>,
}

impl std::fmt::Debug for Tracer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tracer")
            .field("nodes", &self.ends.len())
            .field("signals", &self.slots.len())
            .field("cycle", &self.now)
            .field("phase", &self.phase)
            .field("changes", &self.changes)
            .finish_non_exhaustive()
    }
}

impl Tracer {
    /// A tracer for a clock of this period.
    pub fn new(period_ps: Period, selection: Selection, sink: Box<dyn Sink>) -> Tracer {
        let used_globs = vec![false; selection.stride()];
        Tracer {
            period: period_ps,
            selection,
            sink,
            registry: Registry { used_globs, ..Registry::default() },
            steps: Vec::new(),
            ends: Vec::new(),
            slots: Vec::new(),
            wide: Vec::new(),
            changed: Vec::new(),
            now: 0,
            phase: Phase::Declaring,
            clock: None,
            next_edge: 0,
            last_time: 0,
            changes: 0,
            window_reached: false,
            unmatched_globs: Vec::new(),
            error: None,
        }
    }

    /// Adds a signal `clock.clk` that rises at the start of every cycle of the window and falls half way.
    ///
    /// It is written for idle cycles too, about 20 bytes a cycle; that is why it is off unless asked for. It does not
    /// count as a selected signal.
    pub fn add_clock(&mut self) {
        assert!(
            self.phase == Phase::Declaring && self.slots.is_empty(),
            "add_clock() comes before the first declare()"
        );
        let scope = self.registry.child(None, "clock");
        let declarations = &mut self.registry.declarations;
        declarations.scopes[scope as usize].signals.push(0);
        declarations.signals.push(SignalDecl { name: Cow::Borrowed("clk"), width: 1, table: None, scope });
        self.slots.push(Slot { value: 1, width: 1, unknown: false });
        self.clock = Some(0);
    }

    /// Declares a node and takes its initial values. `path` is its place in the hierarchy, names joined by dots;
    /// several nodes may share scopes, in any order of declaration.
    ///
    /// `None` says that nothing of the node is selected: it need never be sampled.
    pub fn declare(&mut self, path: &str, f: impl FnOnce(&mut Scope<'_>)) -> Option<NodeHandle> {
        assert!(self.phase == Phase::Declaring, "`{path}` is declared after start(): declare every node first");
        let (steps_before, slots_before) = (self.steps.len(), self.slots.len());
        let mut declaring = Declaring {
            selection: &self.selection,
            registry: &mut self.registry,
            steps: &mut self.steps,
            slots: &mut self.slots,
            wide: &mut self.wide,
            levels: Vec::new(),
            states: Vec::new(),
        };
        self.selection.begin(&mut declaring.states);
        let mut visit = true;
        for name in path.split('.') {
            visit = declaring.open(Cow::Owned(clean(name).into_owned()));
            if !visit {
                break;
            }
        }
        if visit {
            let mut scope = Scope { mode: Mode::Declare(declaring) };
            f(&mut scope);
        }
        if self.slots.len() == slots_before {
            self.steps.truncate(steps_before);
            return None;
        }
        self.ends.push(self.steps.len());
        Some(NodeHandle(self.ends.len() as u32 - 1))
    }

    /// Writes the header. The initial values follow as soon as the first cycle of the window is over, so that
    /// samples at that cycle still become part of them.
    ///
    /// # Errors
    /// A selection that no declared signal matches, or a header that cannot be written.
    pub fn start(&mut self) -> Result<(), TraceError> {
        assert!(self.phase == Phase::Declaring, "start() is called twice");
        let mut registry = std::mem::take(&mut self.registry);
        if self.selected_signals() == 0 {
            registry.collected.sort_unstable();
            registry.collected.dedup();
            return Err(TraceError::NothingSelected(NothingSelected {
                globs: self.selection.globs().map(str::to_owned).collect(),
                too_deep: registry.too_deep,
                depth: self.selection.depth(),
                near: self.selection.nearest(&registry.collected, 3),
                examples: registry.collected.into_iter().take(3).collect(),
            }));
        }
        self.unmatched_globs = (self.selection.globs().zip(&registry.used_globs))
            .filter(|(_, used)| !**used)
            .map(|(glob, _)| glob.to_owned())
            .collect();
        registry.declarations.make_names_unique();
        registry.declarations.period = Some(self.period);
        self.sink.header(&registry.declarations)?;
        self.phase = Phase::Before;
        self.next_edge = self.selection.from_cycle();
        Ok(())
    }

    /// Takes a node's values as they stand at the start of `cycle`.
    #[inline]
    pub fn sample(&mut self, node: NodeHandle, cycle: u64, f: impl FnOnce(&mut Scope<'_>)) {
        if cycle != self.now {
            self.advance(cycle);
        }
        if self.phase == Phase::Over {
            return;
        }
        let node = node.0 as usize;
        let begin = if node == 0 { 0 } else { self.ends[node - 1] };
        let mut scope = Scope {
            mode: Mode::Sample(Sampling {
                steps: &self.steps[begin..self.ends[node]],
                at: 0,
                slots: &mut self.slots,
                wide: &mut self.wide,
                changed: &mut self.changed,
            }),
        };
        f(&mut scope);
        if let Mode::Sample(sampling) = scope.mode {
            debug_assert!(
                sampling.at == sampling.steps.len(),
                "a probe function shows {} signals and scopes, it declared {}: it must call the same ones in the \
                 same order every time, whatever the block's state is",
                sampling.at,
                sampling.steps.len()
            );
        }
    }

    /// Whether samples at this cycle or later can still reach the file.
    pub fn is_over(&self, cycle: u64) -> bool {
        self.phase == Phase::Over || self.selection.to_cycle().is_some_and(|to| cycle > to)
    }

    /// Value changes written so far, initial values not counted.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Selected signals so far, the clock not counted.
    pub fn selected_signals(&self) -> usize {
        self.slots.len() - usize::from(self.clock.is_some())
    }

    /// Writes what is left, marks the end of `last_cycle` (the last one simulated) and closes the files.
    ///
    /// # Errors
    /// The first error of the whole recording.
    pub fn finish(mut self, last_cycle: u64) -> io::Result<TraceSummary> {
        assert!(self.phase != Phase::Declaring, "finish() comes after start()");
        if self.phase == Phase::Before && last_cycle >= self.selection.from_cycle() {
            self.now = self.now.max(self.selection.from_cycle());
            self.dump();
        }
        // The end of the window, or of the run. What changed later (what the last edge left behind, credits on their way
        // home) is kept; a look at registers that found no change moves nothing.
        let end = self.selection.to_cycle().map_or(last_cycle, |to| to.min(last_cycle)).saturating_add(1);
        if self.phase == Phase::Inside {
            self.flush();
        }
        if self.window_reached {
            self.edges_until(end);
        }
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let end_time = if self.window_reached { self.period.start_ps(end).max(self.last_time) } else { 0 };
        let summary = self.sink.finish(end_time)?;
        Ok(TraceSummary {
            files: summary.files,
            signals: self.selected_signals(),
            changes: self.changes,
            bytes: summary.bytes,
            fired_cycle: summary.fired_ps.map(|time| self.period.cycle_at(time)),
            window_reached: self.window_reached,
            unmatched_globs: self.unmatched_globs,
        })
    }

    /// Closes cycle `now` and opens `cycle`.
    #[cold]
    fn advance(&mut self, cycle: u64) {
        assert!(cycle > self.now, "sample at cycle {cycle} after one at cycle {}: cycles must not go back", self.now);
        match self.phase {
            Phase::Declaring => panic!("sample() comes after start()"),
            Phase::Before => {
                let from = self.selection.from_cycle();
                if cycle > from {
                    self.now = from;
                    self.dump();
                } else {
                    self.changed.clear();
                }
            }
            Phase::Inside => self.flush(),
            Phase::Over => {}
        }
        if self.phase == Phase::Inside && self.selection.to_cycle().is_some_and(|to| cycle > to) {
            self.phase = Phase::Over;
        }
        self.now = cycle;
    }

    /// Writes all values as they stand in cycle `now`, the first of the window.
    fn dump(&mut self) {
        self.changed.clear();
        self.phase = Phase::Inside;
        self.window_reached = true;
        self.last_time = self.period.start_ps(self.now);
        let values = Values { slots: &self.slots, wide: &self.wide };
        if let Err(error) = self.sink.dump(self.last_time, values) {
            self.fail(error);
        }
        if self.clock.is_some() {
            // The dump shows the clock high; what is left of this cycle is the falling edge.
            self.falling_edge(self.now);
            self.next_edge = self.now + 1;
        }
    }

    /// Writes what changed in cycle `now`.
    fn flush(&mut self) {
        // Edges of cycles without a change wait for the next one, or the end: nobody knows yet whether the run goes so far.
        if self.changed.is_empty() {
            return;
        }
        self.edges_until(self.now);
        let mut changed = std::mem::take(&mut self.changed);
        if !changed.is_sorted_by(|a, b| a < b) {
            changed.sort_unstable();
            changed.dedup();
        }
        if let Some(clock) = self.clock {
            // Signal 0: still in ascending order, and before everything it causes.
            changed.insert(0, clock);
            self.slots[clock as usize].value = 1;
        }
        self.write(self.period.start_ps(self.now), &changed);
        if self.clock.is_some() {
            self.falling_edge(self.now);
            self.next_edge = self.now + 1;
        }
        changed.clear();
        self.changed = changed;
    }

    /// Clock edges of the cycles that nothing else was written for, up to but without `end`.
    fn edges_until(&mut self, end: u64) {
        let Some(clock) = self.clock else { return };
        while self.next_edge < end && self.error.is_none() {
            self.slots[clock as usize].value = 1;
            self.write(self.period.start_ps(self.next_edge), &[clock]);
            self.falling_edge(self.next_edge);
            self.next_edge += 1;
        }
    }

    fn falling_edge(&mut self, cycle: u64) {
        if let Some(clock) = self.clock {
            self.slots[clock as usize].value = 0;
            self.write(self.period.part_ps(cycle, 1, 2), &[clock]);
        }
    }

    fn write(&mut self, time_ps: u64, changed: &[SignalId]) {
        if self.error.is_some() {
            return;
        }
        if time_ps == u64::MAX {
            return self.fail(io::Error::other("the waveform is longer than 2^64 ps; choose a window"));
        }
        self.last_time = time_ps;
        self.changes += changed.len() as u64;
        let values = Values { slots: &self.slots, wide: &self.wide };
        if let Err(error) = self.sink.step(time_ps, changed, values) {
            self.fail(error);
        }
    }

    /// Keeps the first error for `finish`; a simulation must not die of a full disk.
    fn fail(&mut self, error: io::Error) {
        self.error.get_or_insert(error);
        self.phase = Phase::Over;
    }
}
