//! A waveform of 1000 MHz, played cycle by cycle: for tests that recompute registers from what stands in it.

use std::collections::HashMap;

use watershed::probe::wave_in::WaveFile;

/// The signals of a waveform below some scopes, played cycle by cycle.
pub struct Player {
    /// By number: full name.
    pub names: Vec<String>,
    numbers: HashMap<String, usize>,
    /// By number: value, unknown as zero.
    pub values: Vec<u128>,
    known: Vec<bool>,
    /// Cycle, signal, value; by cycle.
    changes: Vec<(u64, usize, Option<u128>)>,
    at: usize,
    /// Signals that changed on the way to this cycle.
    pub changed: Vec<usize>,
}

impl Player {
    /// Reads all signals of a waveform of 1000 MHz.
    pub fn new(mut file: WaveFile) -> Player {
        let variables: Vec<(String, usize)> =
            file.header().variables.iter().map(|variable| (variable.name.clone(), variable.signal)).collect();
        let signals = file.load(variables.iter().map(|&(_, signal)| signal)).unwrap();
        let mut all = Vec::new();
        for (number, &(_, signal)) in variables.iter().enumerate() {
            let mut changes = file.changes(&signals, signal);
            while let Some(at) = changes.next_fs() {
                changes.step();
                let text = std::str::from_utf8(changes.value()).unwrap();
                let value = u128::from_str_radix(text.strip_prefix('b').unwrap(), 2).ok();
                all.push(((at / 1_000_000) as u64, number, value));
            }
        }
        all.sort_by_key(|&(cycle, number, _)| (cycle, number));
        let names: Vec<String> = variables.into_iter().map(|(name, _)| name).collect();
        let numbers = names.iter().enumerate().map(|(number, name)| (name.clone(), number)).collect();
        let (values, known) = (vec![0; names.len()], vec![false; names.len()]);
        Player { names, numbers, values, known, changes: all, at: 0, changed: Vec::new() }
    }

    /// Goes to a cycle. Says whether anything is there or later.
    pub fn go_to(&mut self, cycle: u64) -> bool {
        self.changed.clear();
        while let Some(&(at, number, value)) = self.changes.get(self.at).filter(|change| change.0 <= cycle) {
            assert!(at <= cycle);
            self.values[number] = value.unwrap_or(0);
            self.known[number] = value.is_some();
            self.changed.push(number);
            self.at += 1;
        }
        self.at < self.changes.len()
    }

    /// The number of a signal.
    pub fn number(&self, name: &str) -> usize {
        *self.numbers.get(name).unwrap_or_else(|| panic!("no signal {name}"))
    }

    /// The value of a signal.
    pub fn get(&self, name: &str) -> u128 {
        self.values[self.number(name)]
    }

    /// The same, unless it is unknown.
    #[allow(dead_code, reason = "not every one who plays a waveform asks")]
    pub fn known(&self, name: &str) -> Option<u128> {
        let number = self.number(name);
        self.known[number].then(|| self.values[number])
    }

    /// Scopes that have a signal of this name in them.
    pub fn scopes(&self, tail: &str) -> Vec<String> {
        self.names.iter().filter_map(|name| name.strip_suffix(tail)).map(str::to_owned).collect()
    }
}
