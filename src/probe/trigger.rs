//! Trigger capture: the last cycles stay in memory, and a waveform is written only around the cycle in which the
//! condition holds.
//!
//! ```text
//!  before the trigger                  trigger                       after it
//!  ──────[ring of `before` cycles]───────▶│ ring is written │ `after` more cycles are written │ nothing more
//! ```
//!
//! The ring holds the changes of each cycle and the values at its beginning; its memory is bounded by the changes of
//! `before` cycles. If the condition never holds, the end of the run writes the `before` cycles up to the last change,
//! which show where a run failed or stopped.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::scope::{Slot, words};
use super::similar_names;
use super::state::State;
use super::{Declarations, Period, SignalId, Sink, SinkSummary, Value, Values};

/// What a condition may ask for: the value of a signal by its name.
pub type Lookup<'a> = dyn Fn(&str) -> Option<Reading> + 'a;

/// The value of a signal, for a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// A number.
    Number(u64),
    /// The name of a state.
    Name(&'static str),
}

/// A condition on signals.
pub type Condition = Box<dyn Fn(&Lookup<'_>) -> bool + Send>;

/// When to write.
pub struct Trigger {
    /// What is waited for.
    pub condition: Condition,
    /// What it names: traced signals, and names of their states.
    pub names: Vec<String>,
    /// What it compares: two names or words, each with whether it is a name.
    pub compared: Vec<[(String, bool); 2]>,
    /// Cycles before it that are written.
    pub before: u64,
    /// Cycles after it that are written; `None`: to the end.
    pub after: Option<u64>,
}

/// Where and whether a trigger has fired; filled in when the waveform is finished.
#[derive(Debug, Clone, Default)]
pub struct Fired(Arc<Mutex<Option<u64>>>);

impl Fired {
    /// The time at which the condition held first, in ps.
    pub fn time_ps(&self) -> Option<u64> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A name in a condition that is none, or is used as what it is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct NameError {
    /// What is wrong, for the user.
    pub text: String,
    /// Whether there may be no such signal, so that a list of all helps.
    pub signal: bool,
}

/// Tells names of states from names of signals in a condition, in which `names` has each name as often as it is written.
/// `states` gives the names of a signal's states, none for a signal without, and `None` for what is no signal; `missing`
/// says that there is no signal of a name.
///
/// # Errors
/// A name that is neither, a word that is no state of the signal it is compared with (the text lists those that are), or a
/// signal with names of states that is used as a number, which it has not.
pub fn states_named<S: AsRef<str>>(
    names: &[String],
    compared: &[[(String, bool); 2]],
    states: impl Fn(&str) -> Option<Vec<S>>,
    missing: impl Fn(&str) -> String,
) -> Result<Vec<String>, NameError> {
    let missing = |name: &str| NameError { text: missing(name), signal: true };
    let mut found: Vec<String> = Vec::new();
    let both = compared.iter().flat_map(|[a, b]| [(a, b), (b, a)]);
    for ((signal, is_name), (word, may_be_signal)) in both {
        let Some(legal) = states(signal).filter(|_| *is_name) else { continue };
        if *may_be_signal && states(word).is_some() {
            continue;
        }
        let legal: Vec<&str> = legal.iter().map(AsRef::as_ref).collect();
        if legal.contains(&word.as_str()) {
            found.push(word.clone());
            continue;
        }
        // No state has a dot in its name: a signal was meant.
        if *may_be_signal && word.contains('.') {
            return Err(missing(word));
        }
        let near = legal.iter().max_by(|a, b| {
            let alike = |of: &str| strsim::normalized_damerau_levenshtein(&of.to_lowercase(), &word.to_lowercase());
            alike(a).total_cmp(&alike(b))
        });
        let text = match near {
            None => {
                format!("{word} is no traced signal, and {signal} has no names of states: compare it with a number")
            }
            Some(near) => {
                format!("{signal} has no state {word}; its states are {}; did you mean {near}?", legal.join(", "))
            }
        };
        return Err(NameError { text, signal: near.is_none() });
    }
    let unknown = || names.iter().filter(|name| states(name).is_none() && !found.contains(name));
    // A name with a dot is meant as a signal; the other may be a state that is compared with it.
    if let Some(name) = unknown().find(|name| name.contains('.')).or_else(|| unknown().next()) {
        return Err(missing(name));
    }
    for name in names {
        let legal = states(name).unwrap_or_default();
        let uses = names.iter().filter(|other| *other == name).count();
        let as_state = compared.iter().flatten().filter(|(side, is_name)| *is_name && side == name).count();
        if !legal.is_empty() && as_state < uses {
            let legal: Vec<&str> = legal.iter().map(AsRef::as_ref).collect();
            let text = format!(
                "{name} has names of states, not numbers: compare it with == or != and one of {}",
                legal.join(", ")
            );
            return Err(NameError { text, signal: false });
        }
    }
    Ok(found)
}

/// Changed signals with their new values; words of wide ones.
type Changes = Vec<(SignalId, Slot, Vec<u64>)>;

#[derive(Debug, PartialEq, Eq)]
enum Phase {
    /// The condition has not held yet.
    Armed,
    /// It has: changes go straight on, up to this time.
    Open(u64),
    /// Everything that is wanted is written, up to this time.
    Closed(u64),
}

/// A sink in front of another one that lets through what lies around a trigger.
pub struct TriggerSink {
    inner: Box<dyn Sink>,
    trigger: Trigger,
    period: Period,
    /// The signals of the condition.
    signals: HashMap<String, (SignalId, Option<&'static super::EnumTable>)>,
    /// The names of states in it.
    states: HashMap<String, &'static str>,
    /// The state at the beginning of the ring.
    base: State,
    ring: VecDeque<(u64, Changes)>,
    /// The time of `base`.
    base_time: Option<u64>,
    phase: Phase,
    fired: Fired,
    /// The last time that was written.
    written: u64,
}

impl std::fmt::Debug for TriggerSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TriggerSink")
            .field("phase", &self.phase)
            .field("ring", &self.ring.len())
            .finish_non_exhaustive()
    }
}

impl TriggerSink {
    /// Puts a trigger in front of a sink; the second value tells later whether it has fired.
    pub fn new(inner: Box<dyn Sink>, trigger: Trigger, period: Period) -> (Self, Fired) {
        let fired = Fired::default();
        let sink = TriggerSink {
            inner,
            trigger,
            period,
            signals: HashMap::new(),
            states: HashMap::new(),
            base: State::default(),
            ring: VecDeque::new(),
            base_time: None,
            phase: Phase::Armed,
            fired: fired.clone(),
            written: 0,
        };
        (sink, fired)
    }

    fn span(&self, cycles: u64) -> u64 {
        self.period.start_ps(cycles)
    }

    fn holds(&self, values: Values<'_>) -> bool {
        (self.trigger.condition)(&|name: &str| {
            let Some((signal, table)) = self.signals.get(name) else {
                return self.states.get(name).map(|name| Reading::Name(name));
            };
            match values.get(*signal).1 {
                Value::Bits(bits) => {
                    let state = table.and_then(|table| table.names.get(bits as usize));
                    Some(state.map_or(Reading::Number(bits), |name| Reading::Name(name)))
                }
                Value::Unknown | Value::Wide(_) => None,
            }
        })
    }

    /// Writes what the ring holds.
    fn write_ring(&mut self) -> io::Result<()> {
        let Some(time) = self.base_time else { return Ok(()) };
        self.inner.dump(time, self.base.values())?;
        self.written = time;
        while let Some((time, changes)) = self.ring.pop_front() {
            for (signal, slot, wide) in &changes {
                self.base.set(*signal, slot, wide);
            }
            let signals: Vec<SignalId> = changes.iter().map(|(signal, ..)| *signal).collect();
            self.inner.step(time, &signals, self.base.values())?;
            self.written = time;
        }
        Ok(())
    }

    /// Opens the gate if the condition holds now.
    fn look(&mut self, time_ps: u64, values: Values<'_>) -> io::Result<()> {
        if self.phase == Phase::Armed && self.holds(values) {
            *self.fired.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(time_ps);
            self.write_ring()?;
            self.phase =
                Phase::Open(self.trigger.after.map_or(u64::MAX, |after| time_ps.saturating_add(self.span(after))));
        }
        Ok(())
    }
}

impl Sink for TriggerSink {
    fn header(&mut self, declarations: &Declarations) -> io::Result<()> {
        for (number, signal) in declarations.signals.iter().enumerate() {
            let name = format!("{}.{}", declarations.scope_path(signal.scope), signal.name);
            if self.trigger.names.contains(&name) {
                self.signals.insert(name, (number as SignalId, signal.table));
            }
        }
        let states =
            |name: &str| self.signals.get(name).map(|(_, table)| table.map_or(&[][..], |of| of.names).to_vec());
        let missing = |name: &str| {
            let traced =
                || declarations.signals.iter().map(move |of| declarations.scope_path(of.scope) + "." + &of.name);
            format!("the trigger's signal {name} is not traced{}", similar_names::suggest(name, traced))
        };
        let named = states_named(&self.trigger.names, &self.trigger.compared, states, missing)
            .map_err(|misnamed| io::Error::new(io::ErrorKind::InvalidInput, misnamed))?;
        let tables = || self.signals.values().filter_map(|(_, table)| *table).flat_map(|table| table.names);
        let states =
            named.into_iter().filter_map(|name| tables().find(|state| **state == name).map(|state| (name, *state)));
        self.states = states.collect();
        self.inner.header(declarations)
    }

    fn dump(&mut self, time_ps: u64, values: Values<'_>) -> io::Result<()> {
        self.base = State::of(values);
        self.base_time = Some(time_ps);
        self.look(time_ps, values)
    }

    fn step(&mut self, time_ps: u64, changed: &[SignalId], values: Values<'_>) -> io::Result<()> {
        match self.phase {
            Phase::Closed(_) => Ok(()),
            Phase::Open(until) if time_ps <= until => {
                self.written = time_ps;
                self.inner.step(time_ps, changed, values)
            }
            Phase::Open(until) => {
                self.phase = Phase::Closed(until);
                Ok(())
            }
            Phase::Armed => {
                let changes: Changes = changed
                    .iter()
                    .map(|&signal| {
                        let slot = values.slots[signal as usize];
                        let begin = slot.value as usize;
                        let wide = if slot.width > 64 {
                            values.wide[begin..begin + words(slot.width)].to_vec()
                        } else {
                            Vec::new()
                        };
                        (signal, slot, wide)
                    })
                    .collect();
                self.ring.push_back((time_ps, changes));
                // What is older than `before` cycles becomes part of the state at the beginning.
                let oldest = time_ps.saturating_sub(self.span(self.trigger.before));
                while self.ring.front().is_some_and(|(time, _)| *time < oldest) {
                    if let Some((time, changes)) = self.ring.pop_front() {
                        for (signal, slot, wide) in &changes {
                            self.base.set(*signal, slot, wide);
                        }
                        self.base_time = Some(time);
                    }
                }
                self.look(time_ps, values)
            }
        }
    }

    fn finish(&mut self, time_ps: u64) -> io::Result<SinkSummary> {
        let summary = match self.phase {
            Phase::Armed => {
                self.write_ring()?;
                self.inner.finish(time_ps.max(self.written))
            }
            // A change behind the end of the piece closed it; nothing in the piece tells where it ends.
            Phase::Open(until) | Phase::Closed(until) => self.inner.finish(time_ps.min(until).max(self.written)),
        };
        Ok(SinkSummary { fired_ps: self.fired.time_ps(), ..summary? })
    }
}
