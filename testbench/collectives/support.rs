//! Loading, running and looking at systems; nothing here knows how long anything takes.

use std::path::Path;

use watershed::piuma::{Job, Registers};
use watershed::scenario::build::{BuildOptions, PiumaBuild, build};
use watershed::scenario::config::Wave;
use watershed::scenario::result::{CollectiveResult, Document};
use watershed::scenario::run::{RunOptions, RunResult, WaveOptions, run};
use watershed::scenario::shipped::SHIPPED;
use watershed::scenario::{Loaded, load_named, load_text};

use crate::share;

pub const FLAGSHIP: &str = include_str!("../piuma/allreduce-die.toml");
pub const BACKGROUND: &str = include_str!("../piuma/background-95.toml");
pub const TWO_IDS: &str = include_str!("../piuma/two-ids.toml");
pub const MESH: &str = include_str!("../piuma/mesh-allreduce.toml");

/// Memory that never limits, one element, whatever the scenario says.
pub const UNLIMITED: &str = r#"memory.bandwidth_gbps="unlimited""#;

/// Owned overrides from anything that prints.
#[macro_export]
macro_rules! sets {
    ($($format:literal $(, $argument:expr)*);* $(;)?) => {
        Vec::from([$(format!($format $(, $argument)*)),*])
    };
}

/// Settings with which `make test` runs a shipped scenario for a part of its cycles: the same jobs, of fewer elements. In `make soak`
/// there are none.
fn brief(name: &str) -> Vec<String> {
    match name {
        _ if share::is_whole() => Vec::new(),
        "allreduce-die" => sets!["job.0.elements=128"],
        "background-95" => sets!["job.0.elements=256"; "traffic.0.stop_cycle=2500"],
        "lossy-links" => sets!["job.0.elements=20"],
        "mesh-closed-loop" => sets!["measure.measure_cycles=800"],
        // As it is shipped it takes 460,000 cycles.
        "order-sum" => sets!["job.0.elements=40"; "job.1.elements=10"],
        "several-engines" => sets![
            "job.0.elements=16"; "job.1.elements=4"; "job.2.elements=8"; "job.2.repeat=1"; "job.3.elements=16";
            "traffic.0.stop_cycle=2000"
        ],
        _ => Vec::new(),
    }
}

/// Settings with which `make test` runs these scenarios for a quarter of their cycles. In `make soak` there are none.
pub fn quarter(text: &str) -> Vec<String> {
    match text {
        _ if share::is_whole() => Vec::new(),
        FLAGSHIP => sets!["collective[0].elements=256"],
        BACKGROUND => sets!["collective[0].elements=256"; "traffic[0].stop_cycle=2500"],
        _ => Vec::new(),
    }
}

/// A shipped scenario, in `make test` a brief one.
pub fn load_brief(name: &str) -> Loaded {
    load_named(Path::new(name), &brief(name)).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Path and text of the shipped scenarios whose text names no other family: each would have to be loaded to be left out.
pub fn shipped_of(family: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let others: Vec<String> = ["piuma", "armed", "pbv", "fabric"]
        .iter()
        .filter(|other| **other != family)
        .map(|other| format!("family = \"{other}\""))
        .collect();
    SHIPPED.iter().copied().filter(move |(_, text)| !others.iter().any(|other| text.contains(other.as_str())))
}

/// A scenario on a die with the collectives and switches that `rest` describes.
pub fn die(rest: &str) -> String {
    format!("family = \"piuma\"\n[topology]\nkind = \"die\"\n{rest}")
}

/// A scenario on a mesh.
pub fn mesh(size: &[u32], concentration: u32, rest: &str) -> String {
    format!("family = \"piuma\"\n[topology]\nkind = \"mesh\"\nsize = {size:?}\nconcentration = {concentration}\n{rest}")
}

/// An all-reduce of one element, over everybody.
pub const ONE: &str = "[[collective]]\nkind = \"allreduce\"\n";

pub fn load(text: &str, sets: &[String]) -> Loaded {
    load_text("test.toml", text, Path::new("."), "test", sets).unwrap_or_else(|problems| panic!("{problems}\n{sets:?}"))
}

pub fn run_with(text: &str, sets: &[String], options: &RunOptions<'_>) -> RunResult {
    run(&load(text, sets), options).unwrap_or_else(|error| panic!("{error}\n{sets:?}"))
}

/// Runs, and asserts that every check passed.
pub fn pass(text: &str, sets: &[String]) -> Document {
    let document = run_with(text, sets, &RunOptions { all_links: true, ..RunOptions::default() }).document;
    assert!(document.passed(), "{:?} {:#?}\n{sets:?}", document.outcome, document.checks);
    document
}

/// The latency of the only collective of a run in which every check passes.
pub fn latency(text: &str, sets: &[String]) -> u64 {
    only(&pass(text, sets)).latency_cycles.expect("it ended")
}

pub fn only(document: &Document) -> &CollectiveResult {
    assert_eq!(document.collectives.len(), 1);
    &document.collectives[0]
}

/// What is wrong with a configuration that must be refused before cycle 0.
pub fn refusal(text: &str, sets: &[String]) -> String {
    match load_text("test.toml", text, Path::new("."), "test", sets) {
        Err(problems) => problems.to_string(),
        Ok(loaded) => match build(&loaded, BuildOptions::default()) {
            Err(problems) => problems.to_string(),
            Ok(_) => panic!("the configuration was accepted\n{text}\n{sets:?}"),
        },
    }
}

/// A system at cycle 0, every job of which keeps the cycles in which its words land.
pub fn ready(text: &str, sets: &[String]) -> PiumaBuild {
    let loaded = load(text, sets);
    let mut ready = build(&loaded, BuildOptions::default()).unwrap_or_else(|problems| panic!("{problems}"));
    for collective in ready.collectives.clone() {
        for (end, job) in collective.jobs {
            ready.system.end_mut(end).core.as_mut().expect("a core").job_mut(job).keep_times();
        }
    }
    ready
}

/// The job of a participant of a collective.
pub fn job(ready: &PiumaBuild, collective: usize, participant: usize) -> &Job {
    let (end, job) = ready.collectives[collective].jobs[participant];
    &ready.system.end(end).core.as_ref().expect("a core").jobs()[job]
}

/// Clocks a system until all jobs are complete.
pub fn drive(ready: &mut PiumaBuild, limit: u64) {
    let jobs: u64 = ready.collectives.iter().map(|collective| collective.jobs.len() as u64).sum();
    while ready.system.completions() < jobs {
        assert!(ready.system.now() < limit, "not complete by cycle {limit}:\n{}", ready.system.autopsy());
        ready.system.step();
        assert_eq!(ready.system.fault(), None);
    }
}

/// The cycles in which the words of one participant of the first collective landed.
pub fn landings(text: &str, sets: &[String], participant: usize) -> Vec<u64> {
    let mut ready = ready(text, sets);
    drive(&mut ready, 1_000_000);
    job(&ready, 0, participant).landed_at().to_vec()
}

/// Every register that is not zero or at its default: address and value, read through the address map.
pub fn dump(registers: &Registers) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    for switch in 0..registers.switches() {
        for id in 0..registers.ids() {
            let ports = 0..=registers.engine_port();
            let vectors = [0, 1]
                .into_iter()
                .flat_map(|vc| ports.clone().map(move |port| Registers::vector_address(switch, id, vc, port)));
            for address in vectors.chain([Registers::select_address(switch, id)]) {
                all.push((address, registers.load(address).expect("a register")));
            }
        }
    }
    all
}

/// Seeded numbers for tests: splitmix64.
pub struct Draw(pub u64);

impl Draw {
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.word() % bound
    }

    /// A non-empty subset of `0..n`, in random order.
    pub fn subset(&mut self, n: u64) -> Vec<u64> {
        let mut all: Vec<u64> = (0..n).collect();
        for i in (1..all.len()).rev() {
            all.swap(i, self.below(i as u64 + 1) as usize);
        }
        all.truncate(1 + self.below(n) as usize);
        all
    }
}

/// Runs a scenario cycle by cycle and with idle cycles skipped, in another order, with a waveform, looked at after every cycle, and on two
/// threads: the document, which is the same each time.
pub fn walked(text: &str, sets: &[String]) -> Document {
    let folder = tempfile::tempdir().unwrap();
    let run = |options: RunOptions<'_>| run_with(text, sets, &RunOptions { all_links: true, ..options }).document;
    let plain = run(RunOptions::default());
    let wave = WaveOptions::of(folder.path().join("wave.fst"), Wave::default());
    for (way, options) in [
        ("cycle by cycle", RunOptions { no_skip: true, ..RunOptions::default() }),
        ("in another order", RunOptions { no_skip: true, order_seed: Some(3), ..RunOptions::default() }),
        ("with a waveform", RunOptions { wave: Some(&wave), ..RunOptions::default() }),
        ("looked at after every cycle", RunOptions { timeline: true, ..RunOptions::default() }),
        ("on two threads", RunOptions { threads: 2, ..RunOptions::default() }),
    ] {
        let document = run(options);
        assert_eq!((document.outcome, document.cycles), (plain.outcome, plain.cycles), "{way}: {sets:?}\n{text}");
        let [here, there] = [&document, &plain].map(|of| serde_json::to_string_pretty(of).unwrap());
        assert!(here == there, "{way}: another document, {sets:?}\n{text}");
    }
    plain
}
