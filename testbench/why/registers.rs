//! The registers of a run, as an independent reader finds them in its waveform.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::io::Cursor;
use std::path::Path;

/// A register over time: its value from each cycle on; none while it is not valid.
#[derive(Default)]
pub struct Register(Vec<(u64, Option<u64>)>);

impl Register {
    /// Its value in a cycle.
    pub fn at(&self, cycle: u64) -> Option<u64> {
        let next = self.0.partition_point(|(from, _)| *from <= cycle);
        next.checked_sub(1).and_then(|at| self.0[at].1)
    }

    /// Its value, which is valid.
    pub fn value(&self, cycle: u64) -> u64 {
        self.at(cycle).unwrap_or_else(|| panic!("no value in cycle {cycle}"))
    }

    /// The cycles in which it changes.
    pub fn changes(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|(cycle, _)| *cycle)
    }

    /// By how much a counter rises with the edge at the end of a cycle.
    pub fn steps(&self, cycle: u64) -> i64 {
        self.value(cycle + 1) as i64 - self.value(cycle) as i64
    }
}

/// All registers of a waveform, by name. Most of them nobody looks at: each is read when it is first asked for.
pub struct Registers {
    all: HashMap<String, (wellen::SignalRef, OnceCell<Register>)>,
    wave: RefCell<wellen::simple::Waveform>,
    /// The last cycle that the waveform shows.
    pub last: u64,
}

impl Registers {
    /// Reads a waveform of a system of 1 GHz.
    pub fn read(path: &Path) -> Registers {
        let bytes = std::fs::read(path).unwrap();
        let wave = wellen::simple::read_from_reader(Cursor::new(bytes)).expect("the waveform can be read");
        let hierarchy = wave.hierarchy();
        let all = hierarchy
            .all_vars()
            .map(|var| (hierarchy[var].full_name(hierarchy), (hierarchy[var].signal_ref(), OnceCell::new())))
            .collect();
        let last = wave.time_table().last().copied().unwrap_or(0) / 1000;
        Registers { all, wave: RefCell::new(wave), last }
    }

    fn read_register(&self, signal: wellen::SignalRef) -> Register {
        let mut wave = self.wave.borrow_mut();
        wave.load_signals(&[signal]);
        let times = wave.time_table();
        let changes = wave.get_signal(signal).unwrap().iter_changes();
        let value = |bits: String| if bits.len() > 64 { None } else { u64::from_str_radix(&bits, 2).ok() };
        Register(
            changes
                .map(|(at, value_ref)| (times[at as usize] / 1000, value_ref.to_bit_string().and_then(value)))
                .collect(),
        )
    }

    /// A register.
    pub fn find(&self, name: &str) -> Option<&Register> {
        self.all.get(name).map(|(signal, register)| register.get_or_init(|| self.read_register(*signal)))
    }

    /// A register that must be there.
    pub fn get(&self, name: &str) -> &Register {
        self.find(name).unwrap_or_else(|| panic!("the waveform has no {name}"))
    }
}
