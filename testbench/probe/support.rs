//! A small block to watch, and a view on `wellen`.

use std::collections::{BTreeSet, HashMap};
use std::io::Cursor;

use proptest::test_runner::{Config, RngSeed};
use watershed::probe::{EnumTable, MemoryFile, Period, Scope, Selection, Tracer, VcdSink};
use wellen::simple::Waveform;

pub static STATES: EnumTable = EnumTable { name: "EngineState", names: &["IDLE", "GATHER", "REDUCE", "SEND", "DRAIN"] };

/// Registers of every kind a scope can show.
#[derive(Debug, Clone, Copy, Default)]
pub struct Block {
    pub state: u64,
    pub busy: bool,
    pub count: u64,
    pub head: [Option<u64>; 2],
    pub flit: [u64; 2],
}

impl Block {
    pub fn probe(&self, s: &mut Scope<'_>) {
        s.state("state", &STATES, self.state);
        s.bit("busy", self.busy);
        s.bits("count", 13, self.count);
        for (port, head) in self.head.iter().enumerate() {
            s.indexed("in", port, |s| {
                s.valid("head", 64, *head);
                s.bit("full", head.is_some());
            });
        }
        s.scope("out", |s| s.wide("flit", 100, &self.flit));
    }
}

pub fn mhz(mhz: u64) -> Period {
    Period::from_mhz(mhz).unwrap()
}

pub fn tracer(period: Period, selection: Selection) -> (Tracer, MemoryFile) {
    let (sink, file) = VcdSink::in_memory();
    (Tracer::new(period, selection, Box::new(sink)), file)
}

/// One block, a handful of changes; the waveform most tests look at.
pub fn small_run(period: Period, selection: Selection) -> MemoryFile {
    let (mut tracer, file) = tracer(period, selection);
    let mut block = Block::default();
    let node = tracer.declare("die0.tile1.engine", |s| block.probe(s)).unwrap();
    tracer.start().unwrap();
    for cycle in 1..=12 {
        block.state = [0, 1, 1, 2, 2, 3, 4][(cycle % 7) as usize];
        block.busy = block.state != 0;
        block.count = cycle * cycle;
        block.head[0] = (cycle % 3 == 0).then_some(0xdead_0000 + cycle);
        block.head[1] = (cycle >= 5).then_some(cycle << 60);
        block.flit = [cycle, cycle << 30];
        tracer.sample(node, cycle, |s| block.probe(s));
    }
    tracer.finish(14).unwrap();
    file
}

/// A waveform as `wellen` reads it, and where its signals are by name.
pub struct Read(Waveform, HashMap<String, wellen::VarRef>);

impl Read {
    pub fn new(bytes: Vec<u8>) -> Read {
        let wave = wellen::simple::read_from_reader(Cursor::new(bytes)).expect("wellen reads the file");
        let hierarchy = wave.hierarchy();
        let mut vars = HashMap::new();
        for var in hierarchy.all_vars() {
            vars.entry(hierarchy[var].full_name(hierarchy)).or_insert(var);
        }
        Read(wave, vars)
    }

    pub fn waveform(&self) -> &Waveform {
        &self.0
    }

    pub fn times(&self) -> &[u64] {
        self.0.time_table()
    }

    pub fn names(&self) -> Vec<String> {
        let hierarchy = self.0.hierarchy();
        hierarchy.all_vars().map(|var| hierarchy[var].full_name(hierarchy)).collect()
    }

    fn var(&self, name: &str) -> wellen::VarRef {
        *self.1.get(name).unwrap_or_else(|| panic!("no signal {name} in {:?}", self.names()))
    }

    /// Reads all signals in one go.
    pub fn load_all(&mut self) {
        let hierarchy = self.0.hierarchy();
        let all: BTreeSet<_> = hierarchy.all_vars().map(|var| hierarchy[var].signal_ref()).collect();
        self.0.load_signals(&Vec::from_iter(all));
    }

    /// Bits of a signal at a time, most significant first.
    pub fn bits(&mut self, name: &str, time: u64) -> String {
        let var = self.var(name);
        let signal_ref = self.0.hierarchy()[var].signal_ref();
        // Whoever asks goes through the whole file of an FST, even for nothing.
        if self.0.get_signal(signal_ref).is_none() {
            self.0.load_signals(&[signal_ref]);
        }
        let index = self.times().partition_point(|known| *known <= time) - 1;
        let signal = self.0.get_signal(signal_ref).unwrap();
        let offset = signal.get_offset(index as u32).unwrap();
        let last = offset.elements - 1;
        signal.get_value_at(&offset, last).to_bit_string().unwrap()
    }

    /// As a number; panics when a bit is unknown.
    pub fn number(&mut self, name: &str, time: u64) -> u128 {
        u128::from_str_radix(&self.bits(name, time), 2).unwrap()
    }

    /// Name of a state's value at a time.
    pub fn state(&mut self, name: &str, time: u64) -> String {
        let bits = self.bits(name, time);
        let var = self.var(name);
        let hierarchy = self.0.hierarchy();
        let (_, table) = hierarchy[var].enum_type(hierarchy).expect("a state");
        table.iter().find(|(value, _)| *value == bits).map(|(_, name)| (*name).to_owned()).unwrap()
    }
}

/// The same cases every time; `PROPTEST_RNG_SEED` and `PROPTEST_CASES` ask for others.
pub fn seeded() -> Config {
    let from_environment = Config::default();
    let rng_seed = match from_environment.rng_seed {
        RngSeed::Random => RngSeed::Fixed(0x7761_7665),
        fixed @ RngSeed::Fixed(_) => fixed,
    };
    Config { rng_seed, failure_persistence: None, ..from_environment }
}
