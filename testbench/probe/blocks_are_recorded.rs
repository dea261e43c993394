//! `--record`: the files hold what a block saw and did. They are read back, the block's own clock is driven with the inputs, and every
//! bit of the outputs is compared; a switch is compared with the waveform.

use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;
use std::path::Path;

use watershed::fabric::arbiter::Policy;
use watershed::fabric::{
    Block, Blocks, Flit, Io, Join, JoinCx, Network, NodeKind, Pipeline, Plan, PlanLink, PlanNode, QueueLengths,
    RouterCfg, SwitchCfg, Tag,
};
use watershed::kernel::Wake;
use watershed::piuma::Ceng;
use watershed::scenario::config::Wave;
use watershed::scenario::record::Recording;
use watershed::scenario::run::{RunError, RunOptions, WaveOptions, run};
use watershed::scenario::{Loaded, armed, build, load_text, pbv};

use crate::support::Read;

const DIE: &str = "family = \"piuma\"\n[topology]\nkind = \"die\"\n[switch]\npipeline_stages = 3\n[[collective]]\nkind = \"allreduce\"\nelements = 12\n";
const TREE: &str = "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [2, 3]\n[[armed.reduction]]\nop = \"flt-sum-near\"\nrounds = 3\ncompute_cycles = { random_max = 60 }\n";
const STAR: &str = "family = \"pbv\"\n[topology]\nkind = \"tree\"\nbranching = [2, 3]\n[[pbv.collective]]\nelements = 5\nrounds = 3\ntask_cycles = { random_max = 60 }\n";

fn load(text: &str) -> Loaded {
    load_text("test", text, Path::new("."), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"))
}

fn recorded(loaded: &Loaded, block: &str) -> Recording {
    let result = run(loaded, &RunOptions { record: Some(block), ..RunOptions::default() }).unwrap();
    assert!(result.document.passed());
    result.recording.unwrap()
}

/// One side of a recording, read back from its file: values by cycle and name of the field, and the credits in the comments.
struct Vectors {
    cycles: Vec<BTreeMap<String, u64>>,
    credits: BTreeMap<(u16, u8), u16>,
}

/// Reads a file as `$readmemh` does: comments, then a hexadecimal vector a line.
fn vectors(recording: &Recording, side: usize) -> Vectors {
    let mut bytes = Vec::new();
    recording.write_hex(side, &mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (mut fields, mut credits, mut cycles) = (Vec::new(), BTreeMap::new(), Vec::new());
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("// ") {
            if let Some((range, name)) = comment.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
                let (high, low) = range.split_once(':').unwrap();
                fields.push((high.parse::<usize>().unwrap(), low.parse::<usize>().unwrap(), name.to_owned()));
            } else if let Some(rest) = comment.strip_prefix("credits of out") {
                let (port, rest) = rest.split_once(", channel ").unwrap();
                let (vc, count) = rest.split_once(": ").unwrap();
                credits.insert((port.parse().unwrap(), vc.parse().unwrap()), count.parse().unwrap());
            }
            continue;
        }
        // Bit 0 is the last one of the line.
        let bits: Vec<bool> = line
            .chars()
            .rev()
            .flat_map(|digit| (0..4).map(move |bit| digit.to_digit(16).unwrap() >> bit & 1 == 1))
            .collect();
        let value =
            |high: usize, low: usize| (low..=high).fold(0, |sum, bit| sum | u64::from(bits[bit]) << (bit - low));
        cycles.push(fields.iter().map(|(high, low, name)| (name.clone(), value(*high, *low))).collect());
    }
    assert_eq!(cycles.len() as u64, recording.cycles);
    Vectors { cycles, credits }
}

impl Vectors {
    fn flit(&self, cycle: u64, place: &str) -> Option<Flit> {
        let row = &self.cycles[cycle as usize];
        let at = |part: &str| row[&format!("{place}.{part}")];
        (at("valid") == 1).then(|| Flit { tag: Tag(at("tag")), word: at("word") })
    }
}

#[test]
fn a_collective_engine_does_the_same_again() {
    let loaded = load(DIE);
    let mut results = 0;
    for name in ["die.tile0.core0.switch.ceng", "die.tile3.core4.switch.ceng"] {
        let recording = recorded(&loaded, name);
        let (inputs, outputs) = (vectors(&recording, 0), vectors(&recording, 1));
        // The same engine, alone.
        let ready = build::build(
            &loaded,
            build::BuildOptions { no_monitors: true, whole: true, ..build::BuildOptions::default() },
        )
        .unwrap();
        let plan = ready.system.plan();
        let path = name.strip_suffix(".ceng").unwrap();
        let node = plan.nodes.iter().position(|node| node.path == path).unwrap();
        let mut engine = Ceng::new(ready.system.joins()[node].cfg());
        for now in 0..recording.cycles {
            for port in 0..plan.nodes[node].ports - 1 {
                if let Some(flit) = inputs.flit(now, &format!("slot{port}")) {
                    engine.put_flit(port, flit.tag.vc(), flit, now);
                }
            }
            let queued = inputs.cycles[now as usize]["queued"] as u16;
            let out = engine.tick(&JoinCx {
                tables: &ready.system.tables,
                switch: node as u32,
                now,
                queued: QueueLengths::counts(&[queued]),
            });
            assert_eq!(out.result, outputs.flit(now, "result"), "{name} in cycle {now}");
            results += usize::from(out.result.is_some());
        }
        assert!(engine.is_idle());
    }
    assert_eq!(results, 24, "two engines of twelve words each");
}

/// A block at the end of a link that plays what a recording has: flits and credits.
struct Player<T> {
    flits: VecDeque<(u64, Flit)>,
    takes: VecDeque<(u64, u8)>,
    family: PhantomData<T>,
}

impl<T: 'static> Block for Player<T> {
    type Tables = T;

    fn tick(&mut self, io: &mut Io<'_>, _: &T) -> Wake {
        while self.takes.front().is_some_and(|(cycle, _)| *cycle == io.now()) {
            let (_, vc) = self.takes.pop_front().unwrap();
            io.take(0, vc);
        }
        if self.flits.front().is_some_and(|(cycle, _)| *cycle == io.now()) {
            let (_, flit) = self.flits.pop_front().unwrap();
            io.send(0, flit.tag.vc(), flit);
        }
        Wake::Next
    }

    fn open(&self) -> Option<String> {
        None
    }

    fn probe(&self, _: &mut watershed::probe::Scope<'_>) {}
}

/// Puts a block in the wire between two players, one link of one cycle from each, and compares what it does with the recording.
/// How many flits it sent.
macro_rules! drive {
    ($recording:expr, $vcs:expr, $words:literal, $block:expr, $tables:expr, $join:expr) => {{
        let recording: &Recording = $recording;
        let (inputs, outputs) = (vectors(recording, 0), vectors(recording, 1));
        let node =
            |kind, ports, name: &str| PlanNode { kind, ports, engine: false, name: name.into(), path: name.into() };
        let plan = Plan {
            nodes: vec![
                node(NodeKind::Bump, 2, &recording.block),
                node(NodeKind::End, 1, "a"),
                node(NodeKind::End, 1, "b"),
            ],
            links: [0u16, 1]
                .map(|port| PlanLink {
                    a: (0, port),
                    b: (1 + u32::from(port), 0),
                    latency: 1,
                    cycles_per_flit: 1,
                    level: 0,
                })
                .to_vec(),
            vcs: $vcs,
            levels: vec!["wire".into()],
        };
        let players = [0u16, 1].map(|port| {
            let flits = (2..recording.cycles).filter_map(|at| Some((at - 2, inputs.flit(at, &format!("in{port}"))?)));
            let name = format!("in{port}.credit");
            let takes = (2..recording.cycles).flat_map(|at| {
                let back = inputs.cycles[at as usize][&name];
                (0..8u8).filter(move |vc| back >> vc & 1 == 1).map(move |vc| (at - 2, vc))
            });
            Player { flits: flits.collect(), takes: takes.collect(), family: PhantomData }
        });
        let blocks =
            Blocks { joins: Vec::new(), no_join: $join, bumps: vec![$block], ends: players.into_iter().collect() };
        let depths = |link: &PlanLink, vc: u8| inputs.credits[&(link.a.1, vc)];
        let (pipeline, policy) = (Pipeline::new(1), Policy::RoundRobin);
        let cfg = SwitchCfg { pipeline, policy, monitors: false, router: RouterCfg::default() };
        let names = (0..$vcs.total()).map(|vc| vc.to_string()).collect();
        let mut network: Network<_, _, _, _, $words> = Network::new(plan, $tables, blocks, cfg, &depths, names);
        network.keep_journal(true);
        while network.now() < recording.cycles {
            network.step();
        }
        assert_eq!(network.fault(), None);
        let again =
            Recording::of(network.plan(), network.journal().unwrap(), &recording.block, recording.cycles).unwrap();
        let again = vectors(&again, 1);
        let mut sent = 0;
        for cycle in 0..recording.cycles as usize {
            for (name, value) in &outputs.cycles[cycle] {
                assert_eq!(again.cycles[cycle][name], *value, "{} {name} in cycle {cycle}", recording.block);
                sent += usize::from(name.ends_with("valid") && *value == 1);
            }
        }
        sent
    }};
}

#[test]
fn an_armed_engine_does_the_same_again() {
    let loaded = load(TREE);
    for name in ["top.P2.engine", "s0.P3.engine"] {
        let ready = armed::build::build(&loaded, armed::build::BuildOptions::default()).unwrap();
        let plan = ready.system.plan();
        let node = plan.nodes.iter().position(|node| node.name == name).unwrap();
        let recording = recorded(&loaded, &plan.nodes[node].path.clone());
        let block = ready.system.bumps()[node - plan.count(NodeKind::Switch)].clone();
        let vcs = plan.vcs;
        let sent = drive!(&recording, vcs, 4, block, ready.system.tables.clone(), watershed::armed::Discard::default());
        assert!(sent > 11 * 8, "{name} sent {sent} flits");
    }
}

#[test]
fn a_packet_engine_does_the_same_again() {
    let loaded = load(STAR);
    let ready = pbv::build::build(&loaded, pbv::build::BuildOptions::default()).unwrap();
    let plan = ready.system.plan();
    let engines: Vec<usize> = (0..plan.nodes.len()).filter(|&at| plan.nodes[at].kind == NodeKind::Bump).collect();
    assert_eq!(engines.len(), 3);
    for node in engines {
        let recording = recorded(&loaded, &plan.nodes[node].path.clone());
        let block = ready.system.bumps()[node - plan.count(NodeKind::Switch)].clone();
        let tables = ready.system.tables.clone();
        let sent = drive!(&recording, plan.vcs, 2, block, tables, watershed::fabric::NoJoin::default());
        assert!(sent > 100, "{} sent {sent} flits", plan.nodes[node].name);
    }
}

#[test]
fn a_switch_is_recorded_as_its_waveform_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let loaded = load(DIE);
    let name = "die.tile0.core0.switch";
    let wave = WaveOptions::of(
        folder.path().join("die.vcd"),
        Wave { signals: vec![format!("{name}.**"), "**.core1.switch.out*.*".into()], ..Wave::default() },
    );
    let result = run(&loaded, &RunOptions { wave: Some(&wave), record: Some(name), ..RunOptions::default() }).unwrap();
    let recording = result.recording.unwrap();
    let outputs = vectors(&recording, 1);
    let mut read = Read::new(std::fs::read(&wave.path).unwrap());
    let ports: Vec<&str> = recording.outputs.iter().filter_map(|field| field.name.strip_suffix(".valid")).collect();
    let mut compared = 0;
    for cycle in 0..result.document.cycles {
        for port in &ports {
            let mut bits = |signal: &str| read.bits(&format!("{name}.{port}.{signal}"), cycle * 1000);
            let valid = bits("valid").ends_with('1');
            let flit = outputs.flit(cycle, port);
            assert_eq!(flit.is_some(), valid, "{port} in cycle {cycle}");
            if let Some(flit) = flit {
                for (signal, value) in [("vc", u64::from(flit.tag.vc())), ("seq", flit.tag.seq()), ("word", flit.word)]
                {
                    assert_eq!(u64::from_str_radix(&bits(signal), 2), Ok(value), "{port}.{signal} in cycle {cycle}");
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 24, "{compared}");
    // The CSV file has the same.
    let mut csv = Vec::new();
    recording.write_csv(&mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let head: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    for (cycle, line) in csv.lines().skip(1).enumerate() {
        for (name, cell) in head.iter().zip(line.split(',')).skip(1) {
            let Some(value) = outputs.cycles[cycle].get(*name) else { continue };
            assert_eq!(
                u64::from_str_radix(if cell.is_empty() { "0" } else { cell }, 16),
                Ok(*value),
                "{name} in {cycle}"
            );
        }
    }
}

#[test]
fn a_block_that_is_not_there_is_answered_with_those_that_are_near() {
    let loaded = load(DIE);
    for (name, near) in [
        ("core0.switch", "did you mean die.tile0.core0.switch or"),
        ("die.tile0.core0.swich", "did you mean die.tile0.core0.switch or die.tile0.core0.switch.ceng?"),
        ("die.tile0.core0.switch.cneg", "or die.tile0.core0.switch.ceng?"),
        ("xyz", "blocks, for example"),
    ] {
        let error = run(&loaded, &RunOptions { record: Some(name), ..RunOptions::default() }).unwrap_err();
        assert!(matches!(&error, RunError::Usage(text) if text.contains(near)), "{name}: {error}");
    }
}
