//! Reduction engines beside those of running systems, and between two end points that send and take at random: queues, credits, grants,
//! links, every descriptor, every stage register of the quad unit and every counter in every cycle.

use std::collections::{BTreeMap, VecDeque};

use watershed::armed::engine::TIMEOUT_UNIT_CYCLES;
use watershed::armed::header::MAX_COUNT;
use watershed::armed::{
    Discard, Engine, EngineCfg, EngineCounts, Entry, Hazard, MANAGE, System, Tables, TablesCfg, Tokens, UP, WORDS,
    WireBlock,
};
use watershed::fabric::routing::{Routes, Routing};
use watershed::fabric::topology::Mesh;
use watershed::fabric::{
    Block, Blocks, Network, NodeKind, Pipeline, Plan, PlanLink, PlanNode, PortSet, RouterCfg, Step, SwitchCfg, Vcs,
};
use watershed::kernel::Rng;
use watershed::scenario::armed::build::{BuildOptions, build};
use watershed::scenario::load_file;

use crate::bench::{Bench, Cosim, Cosims, Difference};
use crate::links::{Events, Seen, bases};
use crate::puppet::{OWNER, Puppet, TREES};
use crate::random::seed;
use crate::registers::{mode_bits, wave_of_quad};
use crate::verilator::root;
use crate::watched::Watched;

/// A system with end points of some kind.
type SystemOf<E> = Network<Tables, Discard, WireBlock, E, WORDS>;

/// Entries that an engine of the bench can know.
const ENTRIES: usize = 16;

/// A counter of the model.
type Count = fn(&EngineCounts) -> u64;

/// Counters: the RTL's name, and the model's value.
const COUNTS: [(&str, Count); 21] = [
    ("armed", |counts| counts.armed),
    ("no_descriptor", |counts| counts.no_descriptor),
    ("down_refused", |counts| counts.down_refused),
    ("rearmed_active", |counts| counts.rearmed_active),
    ("released", |counts| counts.released),
    ("merged", |counts| counts.merged),
    ("passed", |counts| counts.passed),
    ("damaged", |counts| counts.refused.damaged),
    ("malformed", |counts| counts.refused.malformed),
    ("wrong_kind", |counts| counts.refused.wrong_kind),
    ("wrong_sender", |counts| counts.refused.wrong_sender),
    ("wrong_vni", |counts| counts.refused.wrong_vni),
    ("wrong_cookie", |counts| counts.refused.wrong_cookie),
    ("stale", |counts| counts.refused.stale),
    ("mismatches", |counts| counts.mismatches),
    ("overflows", |counts| counts.overflows),
    ("completed", |counts| counts.completed),
    ("expired", |counts| counts.expired),
    ("expired_empty", |counts| counts.expired_empty),
    ("interlock", |counts| counts.interlock_cycles),
    ("port_wait", |counts| counts.port_wait_cycles),
];

/// What all engines of a system have in common.
#[derive(Clone, Debug)]
struct Shape {
    cfg: EngineCfg,
    vcs: Vcs,
    depth: u16,
}

impl Shape {
    /// Inputs, the instance, and what is looked at beside waves.
    fn bench(&self, descriptors: usize) -> Bench {
        let channels = u32::from(self.vcs.total());
        let mut bench = Bench::default();
        for (name, width, _) in self.constants() {
            bench.input(name, width);
        }
        bench.input("now", 48);
        bench.input("entry_write", 1);
        bench.input("entry_at", 4);
        for (field, width) in ENTRY {
            bench.input(format!("entry_{field}"), width);
        }
        bench.input("in_valid", 2);
        for port in 0..2 {
            bench.input(format!("in_tag_{port}"), 64);
            bench.input(format!("in_word_{port}"), 64);
            bench.input(format!("credit_{port}"), channels);
            for vc in 0..channels {
                bench.input(format!("depth_{port}_{vc}"), 16);
            }
        }
        self.instance(&mut bench, descriptors);
        bench.look("out_valid_o", "out_valid", 2);
        for port in 0..2 {
            // The number of a flit is the model's: what the engine makes has none in the RTL.
            bench.look(format!("out{port}.tag"), format!("{{36'd0, out_flit[{port}].tag[27:0]}}"), 28);
            bench.look(format!("out{port}.seq"), format!("out_flit[{port}].tag.seq"), 36);
            bench.look(format!("out{port}.word"), format!("out_flit[{port}].word"), 64);
            bench.look(format!("out{port}.credit_o"), format!("credit_out[{port}]"), channels);
        }
        for (name, _) in COUNTS {
            bench.look(format!("counts.{name}"), format!("counts.{name}"), 32);
        }
        bench
    }

    /// What is configured and does not change: names of inputs, bits, values.
    fn constants(&self) -> Vec<(String, u32, u128)> {
        let EngineCfg { timeouts, thresholds, mode, .. } = self.cfg;
        let mut all = vec![("mode".to_owned(), 5, mode_bits(mode))];
        all.extend((0..).zip(timeouts).map(|(k, units): (u32, u32)| (format!("timeout_{k}"), 24, u128::from(units))));
        let threshold = |(k, count): (u32, u32)| (format!("threshold_{k}"), 20, u128::from(count.min(MAX_COUNT)));
        all.extend((0..).zip(thresholds).map(threshold));
        all
    }

    /// The parameters of the RTL's engine, in a name.
    fn name(&self, descriptors: usize) -> String {
        let EngineCfg { stages, entrance_frames, exit_frames, memory_ports, hazard, .. } = self.cfg;
        let Vcs { set, unicast } = self.vcs;
        let depth = self.depth;
        format!(
            "armed-{descriptors}-{stages}-{entrance_frames}-{exit_frames}-{memory_ports}-{hazard:?}-{set}-{unicast}-{depth}"
        )
    }

    fn instance(&self, bench: &mut Bench, descriptors: usize) {
        let Shape { cfg, vcs, depth } = self;
        let EngineCfg { stages, entrance_frames, exit_frames, hazard, memory_ports, .. } = *cfg;
        let channels = vcs.total();
        bench.body(&format!(
            "  logic [23:0] timeouts [4];\n  logic [19:0] thresholds [3];\n  logic [15:0] depths [2][{channels}];\n  entry_t entry;\n  flit_t \
             in_flit [2];\n  logic [{channels}-1:0] credit_in [2];\n  logic [{channels}-1:0] credit_out [2];\n  logic [1:0] out_valid;\n  \
             flit_t out_flit [2];\n  armed_counts_t counts;\n  merge_t stage_tag [{stages}];\n"
        ));
        for at in 0..stages {
            bench.body(&format!("  assign stage_tag[{at}] = merge_t'(u_dut.u_unit.tag_q[{at}]);\n"));
        }
        for k in 0..4 {
            bench.body(&format!("  assign timeouts[{k}] = timeout_{k};\n"));
        }
        for k in 0..3 {
            bench.body(&format!("  assign thresholds[{k}] = threshold_{k};\n"));
        }
        for port in 0..2 {
            bench.body(&format!(
                "  assign in_flit[{port}] = {{in_tag_{port}, in_word_{port}}};\n  assign credit_in[{port}] = credit_{port};\n"
            ));
            for vc in 0..channels {
                bench.body(&format!("  assign depths[{port}][{vc}] = depth_{port}_{vc};\n"));
            }
        }
        for (field, _) in ENTRY {
            bench.body(&format!("  assign entry.{field} = entry_{field};\n"));
        }
        bench.body(&format!(
            "  ws_armed_engine #(.Descriptors({descriptors}), .Stages({stages}), .EntranceFrames({entrance_frames}), \
             .ExitFrames({exit_frames}),\n    .MemoryPorts({memory_ports}), .Interlock(1'b{}), .SetChannels({}), .Unicast({}), \
             .Depth({depth}), .Entries({ENTRIES})) u_dut (\n    .clk_i, .rst_ni, .now_i(now), .timeout_i(timeouts), \
             .threshold_i(thresholds), .mode_i(mode_t'(mode)),\n    .credits_at_reset_i(depths), .entry_write_i(entry_write), \
             .entry_at_i(entry_at), .entry_i(entry),\n    .in_valid_i(in_valid), .in_flit_i(in_flit), .credit_o(credit_out), \
             .out_valid_o(out_valid), .out_flit_o(out_flit),\n    .credit_i(credit_in), .counts_o(counts));\n",
            u8::from(hazard == Hazard::Interlock),
            vcs.set,
            vcs.unicast,
        ));
    }

    /// Where the RTL has a signal of an engine's waves, from its name below the engine's node.
    fn place(&self, name: &str) -> Option<String> {
        let parts: Vec<&str> = name.split('.').collect();
        let number = |text: &str, word: &str| -> Option<u16> { text.strip_prefix(word)?.parse().ok() };
        match parts[..] {
            ["engine", "unit", ..] => {
                let tag = |at: usize, field: &str| TAG.contains(&field).then(|| format!("stage_tag[{at}].{field}"));
                wave_of_quad(name.strip_prefix("engine.unit.")?, "u_dut.u_unit", self.cfg.stages, tag)
            }
            ["engine", field] => place_of_counter(field),
            ["engine", descriptor, ..] => {
                let at = format!("u_dut.u_table.descriptor_q[{}]", number(descriptor, "descriptor")?);
                place_of_descriptor(&at, &parts[2..])
            }
            [input, channel, field] if input.starts_with("in") => {
                let (port, vc) = (number(input, "in")?, number(channel, "vc")?);
                match field {
                    "flits" => Some(format!("u_dut.len[{port}][{vc}]")),
                    "head_word" => Some(format!("u_dut.head[{port}][{vc}].word")),
                    "head_id" | "head_seq" => Some(format!("u_dut.head[{port}][{vc}].tag.{}", &field[5..])),
                    _ => None,
                }
            }
            [output, channel, "count"] => {
                let (port, vc) = (number(output, "out")?, number(channel, "credits")?);
                Some(place_of_credits(port, vc))
            }
            _ => None,
        }
    }
}

/// Fields of an entry, and their bits.
const ENTRY: [(&str, u32); 6] =
    [("valid", 1), ("multicast_id", 13), ("wait_count", 20), ("root", 32), ("vni", 16), ("cookie", 32)];

/// Fields of a stage's tag in waves.
const TAG: [&str; 4] = ["multicast_id", "reduction_id", "seqno", "descriptor"];

fn place_of_credits(port: u16, vc: u16) -> String {
    format!("16'(depths[{port}][{vc}] - u_dut.spent[{port}][{vc}])")
}

fn place_of_counter(field: &str) -> Option<String> {
    Some(match field {
        "active" | "entrance_flits" | "pipeline" => format!("u_dut.{field}"),
        "frames" => "u_dut.frames_len".to_owned(),
        "exit" => "u_dut.exit_held".to_owned(),
        "wrong_key" => "32'(counts.wrong_vni + counts.wrong_cookie)".to_owned(),
        "expired" => "32'(counts.expired + counts.expired_empty)".to_owned(),
        "merged" | "passed" | "stale" | "damaged" | "completed" => format!("counts.{field}"),
        _ => return None,
    })
}

fn place_of_descriptor(at: &str, field: &[&str]) -> Option<String> {
    Some(match field {
        ["state"] => format!("{at}.active ? {at}.busy ? 3 : {at}.count == 0 ? 1 : 2 : 0"),
        [name @ ("multicast_id" | "reduction_id")] => format!("{at}.address.{name}"),
        [name @ ("seqno" | "count" | "wait_count")] => format!("{at}.{name}"),
        ["deadline_cycle"] => format!("{at}.deadline"),
        ["op"] => format!("{at}.first.op"),
        ["rc"] => format!("{at}.quad.code"),
        [lane, "word"] => format!("{at}.quad.word[{}]", lane.strip_prefix("lane")?),
        _ => return None,
    })
}

/// An engine of the system, and the RTL's beside it.
struct Pair {
    bump: usize,
    place: (u32, u16),
    base: u32,
    /// By what is looked at in the RTL: the signal of the model's waves.
    signals: Vec<Option<usize>>,
    credits: [Vec<Option<usize>>; 2],
    depths: [Vec<u128>; 2],
    /// Configured.
    constants: Vec<u128>,
    /// What the engine had counted at the start of each cycle that is not compared yet.
    counts: VecDeque<EngineCounts>,
    /// The trees over its port, by place in the RTL, and writes to come: the cycle in which each has to be made.
    entries: Vec<Option<Entry>>,
    writes: VecDeque<(u64, usize, Option<Entry>)>,
    /// Name of its simulator.
    name: String,
    cosim: Cosim,
}

/// An entry as the bench has it.
fn entry_fields(entry: Option<&Entry>) -> [u128; 6] {
    let Some(entry) = entry else { return [0; 6] };
    let keys = entry.owner.keys;
    let [id, count] = [u128::from(entry.multicast_id), u128::from(entry.wait_count)];
    [1, id, count, u128::from(entry.owner.root), u128::from(keys.vni), u128::from(keys.cookie)]
}

impl Pair {
    /// What the table of its switch has for its port, against what the RTL has: the writes that make them agree.
    fn compare_entries(&mut self, tables: &Tables, cycle: u64) {
        let (switch, port) = self.place;
        let wanted: Vec<Entry> = tables.entries(switch).iter().filter(|entry| entry.parent == port).copied().collect();
        for at in 0..self.entries.len() {
            if self.entries[at].is_some_and(|entry| !wanted.contains(&entry)) {
                self.entries[at] = None;
                self.writes.push_back((cycle, at, None));
            }
        }
        for entry in wanted {
            if !self.entries.contains(&Some(entry)) {
                let at = self.entries.iter().position(Option::is_none).expect("a place for every tree");
                self.entries[at] = Some(entry);
                // What was erased and written anew in a cycle is one write.
                self.writes.retain(|&(when, place, _)| (when, place) != (cycle, at));
                self.writes.push_back((cycle, at, Some(entry)));
            }
        }
    }

    /// Reset, then a write of every entry.
    fn configure(&mut self, tables: &Tables) -> Result<(), Box<Difference>> {
        self.compare_entries(tables, 0);
        let nothing = 2 * 4 + 1 + COUNTS.len() + self.signals.len();
        let writes: Vec<_> = self.writes.drain(..).collect();
        let still = |write: Option<(usize, Option<Entry>)>, depths: &[Vec<u128>; 2]| {
            let mut given = self.constants.clone();
            given.extend([0, u128::from(write.is_some()), write.map_or(0, |(at, _)| at as u128)]);
            given.extend(entry_fields(write.and_then(|(_, entry)| entry).as_ref()));
            given.push(0);
            given.extend(depths.iter().flat_map(|depths| [0, 0, 0].into_iter().chain(depths.iter().copied())));
            given
        };
        self.cosim.cycle(true, &still(None, &self.depths), vec![None; nothing])?;
        for (_, at, entry) in writes {
            self.cosim.cycle(false, &still(Some((at, entry)), &self.depths), vec![None; nothing])?;
        }
        Ok(())
    }

    fn cycle(&mut self, cycle: u64, number: usize, events: &Events, seen: &Seen<'_>) -> Result<(), Box<Difference>> {
        let at = |cycle: Option<u64>| events.at(number, cycle);
        let (before, now, next) = (at(cycle.checked_sub(1)), at(Some(cycle)), at(Some(cycle + 1)));
        let write = self.writes.front().filter(|(when, ..)| *when == cycle).copied();
        if write.is_some() {
            self.writes.pop_front();
            let several = self.writes.front().is_some_and(|(when, ..)| *when == cycle);
            assert!(!several, "two entries change in cycle {cycle}");
        }
        let mut given = self.constants.clone();
        given.extend([u128::from(cycle), u128::from(write.is_some())]);
        given.push(write.map_or(0, |(_, at, _)| at as u128));
        given.extend(entry_fields(write.and_then(|(.., entry)| entry).as_ref()));
        given.push(next.entered_ports());
        let mut expected = vec![Some(before.sent_ports())];
        for port in 0..2u16 {
            let (tag, word) = next.entered_at(port);
            let credits = &self.credits[usize::from(port)];
            let returned =
                (0u8..).zip(credits).fold(0, |all, (vc, &signal)| all | seen.returned(signal, now, (port, vc)) << vc);
            given.extend([u128::from(tag), u128::from(word), returned]);
            given.extend(&self.depths[usize::from(port)]);
            let sent = before.sent_at(port);
            let passed = sent.filter(|(tag, _)| (port, tag.vc()) != (1, UP));
            expected.extend([
                sent.map(|(tag, _)| u128::from(tag.0 & 0xfff_ffff)),
                passed.map(|(tag, _)| u128::from(tag.seq())),
                sent.map(|(_, word)| u128::from(word)),
                Some(before.left_at(port)),
            ]);
        }
        let counts = self.counts.pop_front().expect("counts of every cycle");
        expected.extend(COUNTS.map(|(_, of)| Some(u128::from(of(&counts)))));
        expected.extend(self.signals.iter().map(|signal| signal.and_then(|at| seen.now[at])));
        self.cosim.cycle(false, &given, expected)
    }
}

/// Engines of a system beside the RTL's.
struct Twins<E> {
    system: SystemOf<E>,
    watched: Watched,
    pairs: Vec<Pair>,
}

impl<E: Block<Tables = Tables> + Send> Twins<E> {
    /// So many engines; simulators of this name, if they are not there yet.
    fn new(
        mut system: SystemOf<E>,
        engines: &[usize],
        cosims: &mut Cosims,
        define: Option<&'static str>,
    ) -> Option<Twins<E>> {
        system.keep_journal(true);
        let plan = system.plan();
        let switches = plan.count(NodeKind::Switch);
        let paths: Vec<String> = engines.iter().map(|&bump| plan.nodes[switches + bump].path.clone()).collect();
        let globs: Vec<String> = paths.iter().map(|path| format!("{path}.**")).collect();
        let (watched, tracer) = Watched::new(&globs.iter().map(String::as_str).collect::<Vec<_>>());
        let (bases, journal) = (bases(plan), system.journal().expect("kept"));
        let vcs = plan.vcs;
        // What the other sides of their links may send is what their queues hold.
        let is_theirs = |node: u32| engines.iter().any(|&bump| switches + bump == node as usize);
        let ends = plan.links.iter().flat_map(|link| [(link.a, link.b), (link.b, link.a)]);
        let peers = ends
            .filter(|((node, _), _)| is_theirs(*node))
            .map(|(_, (peer, port))| bases[peer as usize] + u32::from(port));
        let all = peers.flat_map(|port| (0..vcs.total()).map(move |vc| (port, vc)));
        let depth = all.map(|(port, vc)| journal.initial_credits(port, vc)).max().unwrap_or(1);
        let depths: Vec<[Vec<u128>; 2]> = engines
            .iter()
            .map(|&bump| {
                let of = |port| {
                    let credits = |vc| u128::from(journal.initial_credits(bases[switches + bump] + port, vc));
                    (0..vcs.total()).map(credits).collect()
                };
                [of(0), of(1)]
            })
            .collect();
        let shape = Shape { cfg: system.tables.cfg.engine, vcs, depth };
        system.record(tracer).expect("signals");
        let signals = watched.signals();
        let mut pairs = Vec::new();
        for ((&bump, path), depths) in engines.iter().zip(&paths).zip(depths) {
            let mut places: BTreeMap<String, (usize, u32, String)> = BTreeMap::new();
            for (at, signal) in signals.iter().enumerate() {
                let below = signal.name.strip_prefix(path.as_str()).and_then(|name| name.strip_prefix('.'));
                if let Some((name, place)) = below.and_then(|name| Some((name, shape.place(name)?))) {
                    places.insert(place, (at, signal.width, name.to_owned()));
                }
            }
            let descriptors = places.values().filter(|(.., name)| name.split('.').next_back() == Some("state")).count();
            let mut bench = shape.bench(descriptors);
            for (place, (_, width, name)) in &places {
                bench.look(name, place, *width);
            }
            if let Some(define) = define {
                bench.define(define);
            }
            let credits = [0, 1].map(|port| {
                let signal = |vc| places.get(&place_of_credits(port, u16::from(vc))).map(|(at, ..)| *at);
                (0..vcs.total()).map(signal).collect()
            });
            let bumps = system.bumps();
            let engine = bumps[bump].engine().expect("an engine");
            pairs.push(Pair {
                bump,
                place: engine.place(),
                base: bases[switches + bump],
                signals: places.values().map(|&(at, ..)| Some(at)).collect(),
                credits,
                depths,
                constants: shape.constants().into_iter().map(|(.., value)| value).collect(),
                counts: VecDeque::from([*engine.counts()]),
                entries: vec![None; ENTRIES],
                writes: VecDeque::new(),
                name: shape.name(descriptors),
                cosim: cosims.take(bench, &shape.name(descriptors))?,
            });
        }
        Some(Twins { system, watched, pairs })
    }

    /// Runs the system to its end, or for so many cycles, and the RTL beside it.
    fn run(mut self, cycles: u64, cosims: &mut Cosims) -> Result<Equal, Box<Difference>> {
        let mut events = Events::new(self.pairs.iter().map(|pair| (pair.base, 2)));
        for pair in &mut self.pairs {
            pair.configure(&self.system.tables)?;
        }
        let (mut cycle, mut read, mut over) = (0, 0, false);
        let mut compared = 0;
        while !over {
            over = self.system.step_before(cycle + 1) == Step::Quiet || cycle + 1 == cycles;
            let entries = &self.system.journal().expect("kept").entries;
            for entry in &entries[read..] {
                events.note(entry, |_, local| Some(local));
            }
            read = entries.len();
            let bumps = self.system.bumps();
            for pair in &mut self.pairs {
                pair.counts.push_back(*bumps[pair.bump].engine().expect("an engine").counts());
                pair.compare_entries(&self.system.tables, cycle);
            }
            cycle += 1;
            if over && let Some(tracer) = self.system.stop_recording() {
                tracer.finish(cycle).expect("a recording");
            }
            self.watched.hold_known(&mut compared, cycle, &mut events, |cycle, events, seen| {
                self.pairs.iter_mut().enumerate().try_for_each(|(at, pair)| pair.cycle(cycle, at, events, seen))
            })?;
        }
        assert!(self.system.fault().is_none(), "{:?}", self.system.fault());
        let mut equal = Equal { granted: events.granted, ..Equal::default() };
        for mut pair in self.pairs {
            pair.cosim.flush()?;
            let bumps = self.system.bumps();
            let counts = bumps[pair.bump].engine().expect("an engine").counts();
            equal.cycles += compared;
            equal.merged += counts.merged;
            for (sum, (_, of)) in equal.counts.iter_mut().zip(COUNTS) {
                *sum += of(counts);
            }
            cosims.put(pair.name, pair.cosim);
        }
        Ok(equal)
    }
}

/// What was compared without a difference.
#[derive(Clone, Copy, Debug, Default)]
struct Equal {
    cycles: u64,
    granted: u64,
    merged: u64,
    counts: [u64; COUNTS.len()],
}

/// The engines of a scenario that trees climb through, the first one and others by seed.
fn chosen<E: Block<Tables = Tables> + Send>(system: &SystemOf<E>, rng: &mut Rng, most: usize) -> Vec<usize> {
    let climbed = |engine: &Engine| {
        let (switch, port) = engine.place();
        let own = |entry: &Entry| entry.parent == port && entry.wait_count > 0;
        // Trees that an agent makes are not there yet.
        system.tables.managed().is_some() || system.tables.entries(switch).iter().any(own)
    };
    let bumps = system.bumps();
    let engines = bumps.iter().enumerate().filter(|(_, bump)| bump.engine().is_some_and(climbed));
    let mut all: Vec<usize> = engines.map(|(at, _)| at).collect();
    let first = if all.is_empty() { Vec::new() } else { vec![all.remove(0)] };
    rng.shuffle(&mut all);
    first.into_iter().chain(all).take(most).collect()
}

/// The system of a shipped scenario and so many of its engines, or why the RTL has none like them.
fn shipped(stem: &str, most: usize) -> Result<(System, Vec<usize>), &'static str> {
    let path = root().join(format!("testbench/armed/{stem}.toml"));
    let loaded = load_file(&path, &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let system = build(&loaded, BuildOptions::default()).unwrap_or_else(|problems| panic!("{problems}")).system;
    if system.plan().links.iter().any(|link| link.cycles_per_flit > 1) {
        return Err("a link takes several cycles a flit");
    }
    let engines = chosen(&system, &mut Rng::new(seed(0xa53d), 0), most);
    if engines.is_empty() {
        Err("it has no reduction engines that a tree climbs through")
    } else {
        Ok((system, engines))
    }
}

/// Why the RTL has no engines as those of a shipped scenario, if it has not.
pub fn why_not(stem: &str) -> Option<&'static str> {
    shipped(stem, 1).err()
}

/// Engines of a shipped scenario beside the RTL's: `None` without Verilator, or why the RTL has no such engine.
fn beside(stem: &str, most: usize, cycles: u64) -> Option<Result<(usize, Equal), &'static str>> {
    let (system, engines) = match shipped(stem, most) {
        Ok(shipped) => shipped,
        Err(why) => return Some(Err(why)),
    };
    let mut cosims = Cosims::default();
    let twins = Twins::new(system, &engines, &mut cosims, None)?;
    let equal = twins.run(cycles, &mut cosims).unwrap_or_else(|difference| panic!("{stem}: {difference}"));
    Some(Ok((engines.len(), equal)))
}

fn scenarios_hold_what_the_model_holds(stem: &str, most: usize, cycles: u64) {
    match beside(stem, most, cycles) {
        None => {}
        Some(Err(why)) => println!("rtl: {stem}: not compared, for {why}"),
        Some(Ok((engines, Equal { cycles, granted, merged, .. }))) => {
            assert!(granted > 0, "{stem}: nothing moved");
            println!(
                "rtl: ws_armed_engine beside {engines} engines of {stem}: {cycles} cycles, {granted} grants, {merged} frames merged, \
                 0 differences"
            );
        }
    }
}

/// An engine between two end points that send and take at random.
fn random_system(cfg: EngineCfg, (set, unicast): (u8, u8), rng: &mut Rng) -> SystemOf<Puppet> {
    let vcs = Vcs { set, unicast };
    let node = |kind, ports, name: &str| PlanNode { kind, ports, engine: false, name: name.into(), path: name.into() };
    let nodes = vec![node(NodeKind::Bump, 2, "bump"), node(NodeKind::End, 1, "below"), node(NodeKind::End, 1, "above")];
    let link = |a, b, latency| PlanLink { a, b, latency, cycles_per_flit: 1, level: 0 };
    let links = vec![link((0, 0), (1, 0), 1 + rng.below(2) as u16), link((0, 1), (2, 0), 1 + rng.below(3) as u16)];
    let plan = Plan { vcs, nodes, links, levels: vec!["wire".into()] };
    let routes = Routes { routing: Routing::Mesh(Mesh { size: vec![1], concentration: 1 }), ends: Vec::new() };
    let cfg = TablesCfg { entries: 8, engine: cfg, record: false, log: false };
    let mut tables = Tables::new(cfg, vec!["switch".into()], 4, routes);
    for (multicast_id, wait_count) in TREES {
        let children = PortSet::one(1) | PortSet::one(2);
        tables.insert(0, Entry { multicast_id, parent: 0, children, wait_count, owner: OWNER }).unwrap();
    }
    let engine = Engine::new(&tables.cfg.engine, 0, 0, 1, Tokens::new(4));
    let puppet = |above, stream| Puppet::new(Rng::new(rng.bits(), stream), above, vcs.total());
    let mut puppet = puppet;
    let ends = vec![puppet(false, 1), puppet(true, 2)];
    let blocks = Blocks {
        joins: Vec::new(),
        no_join: Discard::default(),
        bumps: vec![WireBlock::Engine(Box::new(engine))],
        ends,
    };
    let switch = SwitchCfg {
        pipeline: Pipeline::new(1),
        policy: watershed::fabric::arbiter::Policy::default(),
        monitors: false,
        router: RouterCfg::default(),
    };
    let names = (0..vcs.total()).map(|vc| format!("c{vc}")).collect();
    Network::new(plan, tables, blocks, switch, &|_, vc| if vc == MANAGE { 4 } else { 14 }, names)
}

/// Random traffic through an engine for so many cycles, with a reset every few thousand; `None` without Verilator.
fn drive(
    (cfg, channels): (EngineCfg, (u8, u8)),
    define: Option<&'static str>,
    seed: u64,
    cycles: u64,
) -> Option<Result<Equal, Box<Difference>>> {
    let mut rng = Rng::new(seed, 0);
    let mut cosims = Cosims::new(define.map(|define| format!("{define}-")).unwrap_or_default());
    let mut all = Equal::default();
    while all.cycles < cycles {
        let system = random_system(cfg, channels, &mut rng);
        let twins = Twins::new(system, &[0], &mut cosims, define)?;
        let equal = match twins.run(4 * TIMEOUT_UNIT_CYCLES + rng.below(4 * TIMEOUT_UNIT_CYCLES), &mut cosims) {
            Ok(equal) => equal,
            Err(difference) => return Some(Err(difference)),
        };
        all.cycles += equal.cycles;
        all.granted += equal.granted;
        all.merged += equal.merged;
        for (sum, count) in all.counts.iter_mut().zip(equal.counts) {
            *sum += count;
        }
    }
    Some(Ok(all))
}

/// The engine of [`usual`] under random traffic, with a fault or without; `None` without Verilator.
pub fn sample(define: Option<&'static str>, cycles: u64) -> Option<Result<(), Box<Difference>>> {
    Some(drive(usual(), define, 0xa53d_0000, cycles)?.map(drop))
}

/// Few descriptors, short time-outs, queues in front that fill.
fn usual() -> (EngineCfg, (u8, u8)) {
    let cfg = EngineCfg {
        descriptors: 4,
        stages: 5,
        timeouts: [1, 2, 1, 1],
        thresholds: [3, 6, 7],
        entrance_frames: 8,
        exit_frames: 3,
        ..EngineCfg::default()
    };
    (cfg, (2, 2))
}

/// One port of the descriptor memory, six stages, no interlock, and the agent's channel.
fn faulty() -> (EngineCfg, (u8, u8)) {
    let (cfg, _) = usual();
    let cfg = EngineCfg { stages: 6, memory_ports: 1, hazard: Hazard::Ignore, descriptors: 3, ..cfg };
    (cfg, (3, 1))
}

/// One stage, four ports, the shortest exit, no point-to-point channels.
fn short() -> (EngineCfg, (u8, u8)) {
    let (cfg, _) = usual();
    (EngineCfg { stages: 1, memory_ports: 4, exit_frames: 1, entrance_frames: 1, descriptors: 2, ..cfg }, (2, 0))
}

fn engines_hold_what_the_model_holds(name: &str, of: (EngineCfg, (u8, u8)), cycles: u64) {
    let seed = seed(0xa53d_0000);
    let Some(driven) = drive(of, None, seed, cycles) else { return };
    let equal = driven.unwrap_or_else(|difference| panic!("{difference} (seed {seed})"));
    let counts: Vec<String> =
        COUNTS.iter().zip(equal.counts).map(|((name, _), count)| format!("{name} {count}")).collect();
    println!("rtl: ws_armed_engine, {name}: {} cycles, 0 differences; {}", equal.cycles, counts.join(", "));
    // An engine without a hazard cannot wait for one.
    let never = |name: &str| {
        name == "interlock" && (of.0.hazard == Hazard::Ignore || of.0.stages == 1)
            || name == "port_wait" && of.0.memory_ports > 1
    };
    for ((name, _), count) in COUNTS.iter().zip(equal.counts) {
        assert!(count > 0 || never(name), "{name} never happened");
    }
}

/// Cycles of a sample and of a soak.
const SAMPLE: u64 = 30_000;
const SOAK: u64 = 300_000;

#[test]
fn a_reduction_engine_holds_what_the_model_holds() {
    engines_hold_what_the_model_holds("armed-usual", usual(), SAMPLE);
}

#[test]
fn a_reduction_engine_with_a_hazard_holds_what_the_model_holds() {
    engines_hold_what_the_model_holds("armed-faulty", faulty(), SAMPLE);
}

#[test]
fn engines_of_a_shipped_scenario_hold_what_the_model_holds() {
    scenarios_hold_what_the_model_holds("fat-tree", 4, 4_000);
}

#[test]
#[ignore = "takes minutes: make soak"]
fn reduction_engines_hold_what_the_model_holds_for_long() {
    engines_hold_what_the_model_holds("armed-usual", usual(), SOAK);
    engines_hold_what_the_model_holds("armed-faulty", faulty(), SOAK);
    engines_hold_what_the_model_holds("armed-short", short(), SOAK);
}

#[test]
#[ignore = "takes minutes: make soak"]
fn engines_of_every_shipped_scenario_hold_what_the_model_holds() {
    let folder = root().join("testbench/armed");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut stems: Vec<String> = files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    stems.sort();
    for stem in stems {
        scenarios_hold_what_the_model_holds(&stem, 18, 12_000);
    }
}
