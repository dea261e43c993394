//! The interface between a recording and the sink that writes it: declarations, and the values of a cycle.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

use super::scope::{Slot, words};
use super::select::NothingSelected;
use super::{EnumTable, Period, SignalId};

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
    /// It belongs to the group that viewers show first.
    pub first: bool,
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
    pub(crate) fn make_names_unique(&mut self) {
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
    pub(crate) slots: &'a [Slot],
    pub(crate) wide: &'a [u64],
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
/// An error ends the recording; [`Tracer::finish`](super::Tracer::finish) reports it.
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
    pub unmatched_globs: Vec<NothingSelected>,
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
