//! The waveform of the flagship, read by an independent reader, shows what the arithmetic says (W-VCD-1, P-SW-2).

use std::io::Cursor;

use watershed::scenario::config;
use watershed::scenario::run::{RunOptions, WaveOptions};
use wellen::simple::Waveform;

use crate::first_principles::{Ground, Times, Tree};
use crate::sets;
use crate::support::{FLAGSHIP, UNLIMITED, run_with};

struct Wave(Waveform);

impl Wave {
    fn of(sets: &[String]) -> Wave {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wave.vcd");
        let wave = WaveOptions::of(path.clone(), config::Wave::default());
        let document = run_with(FLAGSHIP, sets, &RunOptions { wave: Some(&wave), ..RunOptions::default() }).document;
        assert!(document.passed());
        Wave(
            wellen::simple::read_from_reader(Cursor::new(std::fs::read(path).unwrap()))
                .expect("an independent reader reads it"),
        )
    }

    fn var(&self, name: &str) -> wellen::VarRef {
        let hierarchy = self.0.hierarchy();
        hierarchy
            .all_vars()
            .find(|var| hierarchy[*var].full_name(hierarchy) == name)
            .unwrap_or_else(|| panic!("no signal {name}"))
    }

    /// Bits at a time in ps.
    fn bits(&mut self, name: &str, ps: u64) -> String {
        let signal = self.0.hierarchy()[self.var(name)].signal_ref();
        self.0.load_signals(&[signal]);
        let index = self.0.time_table().partition_point(|known| *known <= ps) - 1;
        let signal = self.0.get_signal(signal).unwrap();
        let offset = signal.get_offset(index as u32).unwrap();
        signal.get_value_at(&offset, offset.elements - 1).to_bit_string().unwrap()
    }

    fn number(&mut self, name: &str, ps: u64) -> u64 {
        u64::from_str_radix(&self.bits(name, ps), 2)
            .unwrap_or_else(|_| panic!("{name} at {ps} ps: {}", self.bits(name, ps)))
    }

    fn state(&mut self, name: &str, ps: u64) -> String {
        let bits = self.bits(name, ps);
        let var = self.var(name);
        let hierarchy = self.0.hierarchy();
        let (_, table) = hierarchy[var].enum_type(hierarchy).expect("a state has names");
        table.iter().find(|(value, _)| *value == bits).map(|(_, name)| (*name).to_owned()).expect("a named value")
    }
}

const CORE0: &str = "die.tile0.core0.switch";
const ROOT: &str = "die.tile2.sw4.switch";

/// Where the engines of core 0 and the root take their operands, and when their results leave.
struct Expected {
    /// All operands of core 0 are in its input queues.
    core0: u64,
    root: u64,
    pipeline: u64,
    engine: u64,
}

fn expected(times: Times) -> Expected {
    let tree = Tree::new(&Ground::Die, times, vec![0, 2], 0..8);
    Expected { core0: tree.at(&vec![0, 0]), root: tree.at_root(), pipeline: times.pipeline, engine: times.engine() }
}

#[test]
fn hierarchy_names_and_timescale() {
    let wave = Wave::of(&sets!["collective[0].elements=2"]);
    let hierarchy = wave.0.hierarchy();
    let timescale = hierarchy.timescale().unwrap();
    assert_eq!((timescale.factor, timescale.unit), (1, wellen::TimescaleUnit::PicoSeconds));
    let var = wave.var("die.tile0.core0.switch.ceng.state");
    let (_, table) = hierarchy[var].enum_type(hierarchy).expect("a state has names");
    let names: Vec<&str> = table.iter().map(|(_, name)| *name).collect();
    assert_eq!(names, ["IDLE", "GATHER", "REDUCE", "SCAN"]);
    for name in [
        "die.tile1.sw3.switch.ceng.state",
        "die.tile3.core7.switch.out6.valid",
        "die.tile0.core2.memory.job0.landed",
        "die.tile2.sw4.switch.in5.vc0.head_word",
        "die.tile0.core0.switch.ceng.slot7.valid",
    ] {
        wave.var(name);
    }
}

#[test]
fn engines_work_and_results_leave_in_the_cycles_of_the_arithmetic() {
    for (pipeline, stages) in [(1, 3), (2, 1), (3, 6), (4, 2)] {
        let mut wave = Wave::of(
            &sets!["collective[0].elements=1"; "switch.pipeline_stages={pipeline}"; "switch.ceng.stages={stages}"],
        );
        let at = expected(Times { stages, pipeline, ..Times::default() });
        let ps = |cycle: u64| cycle * 1000;
        for (switch, arrived, port) in [(CORE0, at.core0, 5), (ROOT, at.root, 6)] {
            let state = format!("{switch}.ceng.state");
            // The last operand crosses the switch in `pipeline` cycles and is taken; registers show it a cycle later.
            let reduce = arrived + at.pipeline + 1;
            assert_eq!(wave.state(&state, 0), "IDLE");
            assert_eq!(wave.state(&state, ps(reduce) - 1), "GATHER", "{switch}, pipeline {pipeline}");
            assert_eq!(wave.state(&state, ps(reduce)), "REDUCE", "{switch}, pipeline {pipeline}");
            // The result is in the output register after the engine and the pipeline once more.
            let granted = arrived + at.pipeline + at.engine + pipeline.saturating_sub(2);
            let out = format!("{switch}.out{port}.valid");
            assert_eq!(wave.state(&state, ps(arrived + at.pipeline + at.engine)), "REDUCE");
            assert_eq!(wave.state(&state, ps(arrived + at.pipeline + at.engine + 1)), "IDLE");
            assert_eq!(wave.bits(&out, ps(granted + 1) - 1), "0", "{out}, pipeline {pipeline}");
            assert_eq!(wave.bits(&out, ps(granted + 1)), "1", "{out}, pipeline {pipeline}");
            assert_eq!(wave.bits(&out, ps(granted + 2)), "0");
            assert_eq!(wave.number(&format!("{switch}.out{port}.seq"), ps(granted + 1)), 0);
        }
    }
}

#[test]
fn the_words_in_the_wave_are_those_of_the_result() {
    let set = sets!["collective[0].elements=3"; "{UNLIMITED}"];
    let results = run_with(FLAGSHIP, &set, &RunOptions::default()).document.collectives[0].results.clone();
    let mut wave = Wave::of(&set);
    let at = expected(Times::default());
    for (element, result) in results.iter().enumerate() {
        let cycle = at.root + at.pipeline + at.engine + 1 + element as u64;
        assert_eq!(format!("{:016x}", wave.number(&format!("{ROOT}.out5.word"), cycle * 1000)), *result);
        assert_eq!(wave.number(&format!("{ROOT}.out5.vc"), cycle * 1000), 1, "a response");
    }
    // The counter of core 1 steps when its words land; a register shows it in the next cycle.
    let landing = Tree::new(&Ground::Die, Times::default(), vec![0, 2], 0..8).landing(1);
    let landed = "die.tile0.core1.memory.job0.landed";
    for element in 0..3 {
        assert_eq!(wave.number(landed, (landing + element + 1) * 1000 - 1), element);
        assert_eq!(wave.number(landed, (landing + element + 1) * 1000), element + 1);
    }
}

#[test]
fn time_stamps_of_850_mhz_are_floors_of_the_exact_product() {
    let set = sets!["collective[0].elements=1"; "clock.frequency_mhz=850"; "link.latency_cycles=5"; "link.local_latency_cycles=1"];
    let mut wave = Wave::of(&set);
    let ps = |cycle: u64| (u128::from(cycle) * 1_000_000 / 850) as u64;
    let stamps: std::collections::BTreeSet<u64> = (0..200).map(ps).collect();
    assert!(wave.0.time_table().iter().all(|stamp| stamps.contains(stamp)), "{:?}", wave.0.time_table());
    let at = expected(Times::default());
    let reduce = at.core0 + at.pipeline + 1;
    let state = format!("{CORE0}.ceng.state");
    assert_eq!(wave.state(&state, ps(reduce) - 1), "GATHER");
    assert_eq!(wave.state(&state, ps(reduce)), "REDUCE");
}
