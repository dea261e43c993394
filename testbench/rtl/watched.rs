//! What the model shows in waves, cycle by cycle and in memory.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use watershed::probe::{Declarations, Period, Selection, SignalId, Sink, SinkSummary, Tracer, Value, Values};

use crate::links::{Events, Seen};

/// A signal.
#[derive(Clone, Debug)]
pub struct Signal {
    /// Scopes and its own name, joined by dots.
    pub name: String,
    /// Bits.
    pub width: u32,
}

#[derive(Debug, Default)]
struct Shared {
    signals: Vec<Signal>,
    /// Time in ps, signal, value; `None` is unknown.
    changes: VecDeque<(u64, SignalId, Option<u128>)>,
    /// Values are complete before this time.
    written_ps: u64,
}

/// Signals of a model, as they stand in a cycle that was sampled.
#[derive(Debug)]
pub struct Watched {
    shared: Arc<Mutex<Shared>>,
    /// Values in the cycle that was asked for last; `None` is unknown.
    pub values: Vec<Option<u128>>,
}

/// Cycles of 1000 ps.
const PERIOD_PS: u64 = 1000;

struct Memory(Arc<Mutex<Shared>>);

fn number(value: Value<'_>) -> Option<u128> {
    match value {
        Value::Unknown => None,
        Value::Bits(bits) => Some(u128::from(bits)),
        Value::Wide(words) => Some(words.iter().rev().fold(0, |value, &word| value << 64 | u128::from(word))),
    }
}

impl Memory {
    fn write(&self, time_ps: u64, changed: impl Iterator<Item = SignalId>, values: Values<'_>) {
        let shared = &mut *self.0.lock().unwrap();
        shared.changes.extend(changed.map(|signal| (time_ps, signal, number(values.get(signal).1))));
        shared.written_ps = time_ps;
    }
}

impl Sink for Memory {
    fn header(&mut self, declarations: &Declarations) -> io::Result<()> {
        let name = |signal: &watershed::probe::SignalDecl| {
            format!("{}.{}", declarations.scope_path(signal.scope), signal.name)
        };
        let signals = declarations.signals.iter().map(|signal| Signal { name: name(signal), width: signal.width });
        self.0.lock().unwrap().signals = signals.collect();
        Ok(())
    }

    fn dump(&mut self, time_ps: u64, values: Values<'_>) -> io::Result<()> {
        self.write(time_ps, 0..values.len() as SignalId, values);
        Ok(())
    }

    fn step(&mut self, time_ps: u64, changed: &[SignalId], values: Values<'_>) -> io::Result<()> {
        self.write(time_ps, changed.iter().copied(), values);
        Ok(())
    }

    fn finish(&mut self, _: u64) -> io::Result<SinkSummary> {
        self.0.lock().unwrap().written_ps = u64::MAX;
        Ok(SinkSummary::default())
    }
}

impl Watched {
    /// A tracer for these globs, and what it sees.
    pub fn new(globs: &[&str]) -> (Watched, Tracer) {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let selection = Selection::new(globs.iter().copied()).expect("globs");
        let period = Period::from_ps(PERIOD_PS, 1).expect("a period");
        let tracer = Tracer::new(period, selection, Box::new(Memory(Arc::clone(&shared))));
        (Watched { shared, values: Vec::new() }, tracer)
    }

    /// All signals; after the tracer was started.
    pub fn signals(&self) -> Vec<Signal> {
        self.shared.lock().unwrap().signals.clone()
    }

    /// The first cycle of which not all values are known yet: they are known up to the one before the last sample that changed
    /// something.
    pub fn known_before(&self) -> u64 {
        self.shared.lock().unwrap().written_ps / PERIOD_PS
    }

    /// Goes to a cycle that is known.
    pub fn go_to(&mut self, cycle: u64) {
        let shared = &mut *self.shared.lock().unwrap();
        self.values.resize(shared.signals.len(), None);
        while let Some(&(time_ps, signal, value)) = shared.changes.front() {
            if time_ps > cycle * PERIOD_PS {
                break;
            }
            self.values[signal as usize] = value;
            shared.changes.pop_front();
        }
    }

    /// Goes on through all cycles that are known before this one: what is seen in each, and what happened at nodes, is held against
    /// something. `compared` is the first cycle that has not been.
    pub fn hold_known<E>(
        &mut self,
        compared: &mut u64,
        before: u64,
        events: &mut Events,
        mut hold: impl FnMut(u64, &Events, &Seen<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        // The cycle after is needed, for what comes in it was on the links in this one.
        while *compared + 1 < self.known_before().min(before) {
            self.go_to(*compared);
            let now = self.values.clone();
            self.go_to(*compared + 1);
            hold(*compared, events, &Seen { now: &now, next: &self.values })?;
            events.forget(compared.saturating_sub(8));
            *compared += 1;
        }
        Ok(())
    }
}
