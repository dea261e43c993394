//! The data path of packet engines beside those of running systems, and between two end points that send and take at random: queues,
//! credits, grants, links, and which words go to the checker, in every cycle.

use std::collections::{BTreeMap, VecDeque};

use watershed::fabric::arbiter::Policy;
use watershed::fabric::{
    Block, Blocks, Network, NoJoin, NodeKind, Pipeline, Plan, PlanLink, PlanNode, RouterCfg, Step, SwitchCfg, Vcs,
};
use watershed::kernel::Rng;
use watershed::pbv::engine::{CycleRecord, EngineCfg};
use watershed::pbv::metrics::{INBOX, MOST_CHANNELS, QUEUES};
use watershed::pbv::routes::FRAMES;
use watershed::pbv::system::WireBlock;
use watershed::pbv::tables::{Owner, Owners};
use watershed::pbv::{Directory, Engine, System};
use watershed::scenario::load_file;
use watershed::scenario::pbv::build::{BuildOptions, build};

use crate::bench::{Bench, Cosim, Cosims, Difference};
use crate::links::{Events, Seen, bases};
use crate::pbv_engines;
use crate::pbv_puppet::{self, ME, OWNER, Puppet};
use crate::pbv_registers::Registers;
use crate::random::seed;
use crate::verilator::{self, root};
use crate::watched::Watched;

/// A system with end points of some kind.
type SystemOf<E> = Network<Directory, NoJoin<Directory>, WireBlock, E, 2>;

/// Bits of a tag that say something: head, tail, channel. What is behind them is a label.
const TAG_BITS: u32 = 7;

/// What all data paths of a system have in common.
#[derive(Clone, Debug)]
struct Shape {
    vcs: Vcs,
    depth: u16,
    fault: Option<u8>,
}

impl Shape {
    fn name(&self) -> String {
        let faults = if self.fault.is_some() { "-faults" } else { "" };
        format!("links-{}-{}-{}{faults}", self.vcs.set, self.vcs.unicast, self.depth)
    }

    /// Inputs, the instance, and what is looked at beside waves.
    fn bench(&self) -> Bench {
        let Shape { vcs: Vcs { set, unicast }, depth, fault } = self;
        let channels = u32::from(*unicast);
        let mut bench = Bench::default();
        for (name, width) in [("device", 16), ("base", 16), ("now", 48), ("room", 16), ("inbox", 16)] {
            bench.input(name, width);
        }
        for (name, width) in [("known", 2), ("in_valid", 2)] {
            bench.input(name, width);
        }
        for (name, width) in [("valid", 1), ("word", 64), ("begins", 1), ("ends", 1), ("side", 1)] {
            bench.input(name, width);
        }
        let mut faults = "";
        if fault.is_some() {
            bench.input("fault", 4);
            bench.define("WS_FAULTS");
            faults = ".fault_i(fault), ";
        }
        for port in 0..2 {
            bench.input(format!("in_tag_{port}"), 64);
            bench.input(format!("in_word_{port}"), 64);
            bench.input(format!("credit_{port}"), channels);
            for channel in 0..channels {
                bench.input(format!("depth_{port}_{channel}"), 16);
            }
        }
        bench.body(&format!(
            "  logic [15:0] depths [2][{channels}];\n  logic [15:0] levels [2][{channels}];\n  flit_t in_flit [2];\n  logic \
             [{channels}-1:0] credit_in [2];\n  logic [{channels}-1:0] credit_out [2];\n  logic [1:0] out_valid, take, tail;\n  flit_t \
             out_flit [2];\n  logic [63:0] taken [2];\n  logic [31:0] address [2];\n  logic free;\n"
        ));
        for port in 0..2 {
            bench.body(&format!(
                "  assign in_flit[{port}] = {{in_tag_{port}, in_word_{port}}};\n  assign credit_in[{port}] = credit_{port};\n"
            ));
            for channel in 0..channels {
                bench.body(&format!("  assign depths[{port}][{channel}] = depth_{port}_{channel};\n"));
            }
        }
        bench.body(&format!(
            "  ws_pbv_interposer #(.First({set}), .Channels({channels}), .Depth({depth})) u_dut (.clk_i, .rst_ni, {faults}.now_i(now), \
             .device_i(device),\n    .base_i(base), .credits_at_reset_i(depths), .room_i(room), .inbox_i(inbox), .address_o(address), .known_i(known), \
             .in_valid_i(in_valid), .in_flit_i(in_flit),\n    .credit_o(credit_out), .out_valid_o(out_valid), .out_flit_o(out_flit), \
             .credit_i(credit_in), .take_o(take), .word_o(taken), .tail_o(tail),\n    .valid_i(valid), .word_i(word), .head_i(begins), \
             .tail_i(ends), .side_i(side), .free_o(free), .level_o(levels));\n"
        ));
        bench.look("out_valid_o", "out_valid", 2);
        bench.look("take", "take", 2);
        bench.look("free", "free", 1);
        for port in 0..2 {
            bench.look(format!("out{port}.tag"), format!("7'(out_flit[{port}].tag)"), TAG_BITS);
            bench.look(format!("out{port}.label"), format!("57'(out_flit[{port}].tag >> {TAG_BITS})"), 64 - TAG_BITS);
            bench.look(format!("out{port}.word"), format!("out_flit[{port}].word"), 64);
            bench.look(format!("out{port}.credit_o"), format!("credit_out[{port}]"), channels);
            bench.look(format!("port{port}.word"), format!("taken[{port}]"), 64);
            bench.look(format!("port{port}.tail"), format!("tail[{port}]"), 1);
            bench.look(format!("port{port}.address"), format!("address[{port}]"), 32);
            for channel in 0..channels {
                bench.look(format!("port{port}.level{channel}"), format!("levels[{port}][{channel}]"), 16);
            }
        }
        bench
    }

    /// Where the RTL has a signal of an engine's waves, from its name below the engine's node.
    fn place(&self, name: &str) -> Option<String> {
        let number = |text: &str, word: &str| -> Option<u16> { text.strip_prefix(word)?.parse().ok() };
        let own = |vc: u16| vc.checked_sub(u16::from(self.vcs.set)).filter(|&vc| vc < u16::from(self.vcs.unicast));
        match name.split('.').collect::<Vec<_>>()[..] {
            [input, channel, field] if input.starts_with("in") => {
                let (port, vc) = (number(input, "in")?, own(number(channel, "vc")?)?);
                match field {
                    "flits" => Some(level(port, vc)),
                    "head_word" => Some(format!("u_dut.head[{port}][{vc}].word")),
                    "head_id" | "head_seq" => Some(format!("u_dut.head[{port}][{vc}].tag.{}", &field[5..])),
                    _ => None,
                }
            }
            [output, channel, "count"] => Some(count(number(output, "out")?, own(number(channel, "credits")?)?)),
            _ => None,
        }
    }
}

/// Flits in the queue of a channel.
fn level(port: u16, channel: u16) -> String {
    format!("u_dut.len[{port}][{channel}]")
}

/// Credits of a channel.
fn count(port: u16, channel: u16) -> String {
    format!("16'(depths[{port}][{channel}] - u_dut.spent[{port}][{channel}])")
}

/// An engine of the system, and the RTL's data path and registers beside it.
struct Pair {
    cfg: EngineCfg,
    number: usize,
    base: u32,
    signals: Vec<Option<usize>>,
    credits: [Vec<Option<usize>>; 2],
    /// By port and channel: the signal of the flits in its queue.
    levels: [Vec<Option<usize>>; 2],
    depths: [Vec<u128>; 2],
    /// What the engine did in the cycles that are not compared yet.
    kept: VecDeque<Option<CycleRecord>>,
    /// How many of its records were looked at.
    read: usize,
    /// Frames' flits in its queues, by port.
    queues: [VecDeque<(u64, u64)>; 2],
    /// Ports by which a word of its own went in the cycle before.
    own: [bool; 2],
    cosim: Cosim,
    registers: Option<Registers>,
}

/// What was compared without a difference.
#[derive(Clone, Copy, Debug, Default)]
pub struct Equal {
    pub engines: usize,
    pub cycles: u64,
    pub granted: u64,
    pub taken: u64,
    pub sent: u64,
    /// Registers compared with those of the model: cycles, and what they had counted at the end.
    pub registers: u64,
    pub reports: u64,
    pub refused: u64,
}

impl Pair {
    fn reset(&mut self, shape: &Shape) -> Result<(), Box<Difference>> {
        let mut given = vec![0; 12 + usize::from(shape.fault.is_some())];
        for depths in &self.depths {
            given.extend([0, 0, 0].into_iter().chain(depths.iter().copied()));
        }
        let looked = 3 + 2 * (7 + usize::from(shape.vcs.unicast));
        self.cosim.cycle(true, &given, vec![None; looked + self.signals.len()])
    }

    fn cycle(
        &mut self,
        shape: &Shape,
        directory: &Directory,
        (cycle, at, events): (u64, usize, &Events),
        seen: &Seen<'_>,
        equal: &mut Equal,
    ) -> Result<(), Box<Difference>> {
        let at = |cycle: Option<u64>| events.at(at, cycle);
        let (before, now, next) = (at(cycle.checked_sub(1)), at(Some(cycle)), at(Some(cycle + 1)));
        let did = self.kept.pop_front().expect("every cycle is kept");
        let frames = shape.vcs.set + FRAMES;
        let (mut known, mut take) = (0, 0);
        let stands = did.as_ref().and_then(|did| did.ports.output_word);
        let side = did.as_ref().map_or(0, |did| did.ports.side);
        let went = stands.is_some() && did.as_ref().is_some_and(|did| did.ports.output_sent);
        let (mut of_port, mut levels) = (Vec::new(), [0; QUEUES]);
        for port in 0..2u16 {
            let queue = &mut self.queues[usize::from(port)];
            if now.entered_ports() >> port & 1 != 0 {
                let (tag, word) = now.entered_at(port);
                if watershed::fabric::Tag(tag).vc() == frames {
                    queue.push_back((tag, word));
                }
            }
            let address = queue.get(1).map(|&(_, word)| (word >> 32) as u32);
            known |= address.map_or(0, |address| u128::from(directory.knows(address))) << port;
            let passes =
                now.sent_at(1 - port).is_some_and(|(tag, _)| tag.vc() == frames) && !(went && side == 1 - port);
            let left = now.left_at(port) >> frames & 1 != 0;
            let taken = (left && !passes).then(|| queue[0]);
            take |= u128::from(taken.is_some()) << port;
            let sent = before.sent_at(port);
            let passed = sent.filter(|_| !self.own[usize::from(port)]);
            of_port.extend([
                sent.map(|(tag, _)| u128::from(tag.0 & ((1 << TAG_BITS) - 1))),
                passed.map(|(tag, _)| u128::from(tag.0 >> TAG_BITS)),
                sent.map(|(_, word)| u128::from(word)),
                Some(before.left_at(port) >> shape.vcs.set),
                taken.map(|(_, word)| u128::from(word)),
                taken.map(|(tag, _)| u128::from(tag >> 1 & 1)),
                address.map(u128::from),
            ]);
            let flits = &self.levels[usize::from(port)];
            for (channel, &signal) in flits.iter().enumerate() {
                let flits = signal.and_then(|at| seen.now[at]);
                levels[MOST_CHANNELS * usize::from(port) + channel] = flits.unwrap_or(0) as u32;
                of_port.push(flits);
            }
            if left {
                queue.pop_front();
            }
        }
        let room = did.as_ref().map_or(self.cfg.inbox, |did| did.ports.room);
        let (word, tail) = stands.unwrap_or_default();
        let begins = did.as_ref().is_some_and(|did| did.ports.begins);
        let mut given = vec![u128::from(self.cfg.device), u128::from(self.cfg.base), u128::from(cycle), room as u128];
        given.extend([
            self.cfg.inbox as u128,
            known,
            next.entered_ports(),
            u128::from(stands.is_some()),
            u128::from(word),
            u128::from(begins),
        ]);
        given.extend([u128::from(tail), u128::from(side)]);
        given.extend(shape.fault.map(u128::from));
        for port in 0..2u16 {
            let (tag, word) = next.entered_at(port);
            let credits = (shape.vcs.set..).zip(&self.credits[usize::from(port)]);
            let returned = credits
                .enumerate()
                .fold(0, |all, (channel, (vc, &signal))| all | seen.returned(signal, now, (port, vc)) << channel);
            given.extend([u128::from(tag), u128::from(word), returned]);
            given.extend(&self.depths[usize::from(port)]);
        }
        let mut expected = vec![Some(before.sent_ports()), Some(take), stands.map(|_| u128::from(went))];
        expected.extend(of_port);
        expected.extend(self.signals.iter().map(|signal| signal.and_then(|at| seen.now[at])));
        self.own = [0, 1].map(|port| went && side == port);
        equal.taken += u64::from(take.count_ones());
        equal.sent += u64::from(went);
        self.cosim.cycle(false, &given, expected)?;
        let Some(registers) = &mut self.registers else { return Ok(()) };
        if let Some(did) = &did {
            // Its other queues are empty while it is not clocked.
            assert_eq!(levels[..INBOX], did.ports.levels[..INBOX], "levels of cycle {cycle}");
            levels[INBOX..].copy_from_slice(&did.ports.levels[INBOX..]);
        }
        registers.cycle(cycle, did.as_ref(), &levels)
    }
}

/// Engines of a system beside the RTL's.
struct Twins<E> {
    system: SystemOf<E>,
    watched: Watched,
    shape: Shape,
    pairs: Vec<Pair>,
}

impl<E: Block<Tables = Directory> + Send> Twins<E> {
    /// These engines, and whether their registers are compared, too; with a planted fault, of those that have numbers.
    fn new(
        mut system: SystemOf<E>,
        engines: &[(usize, bool)],
        cosims: &mut Cosims,
        fault: Option<u8>,
    ) -> Option<Twins<E>> {
        system.keep_journal(true);
        let plan = system.plan();
        let switches = plan.count(NodeKind::Switch);
        let paths: Vec<String> = engines.iter().map(|&(bump, _)| plan.nodes[switches + bump].path.clone()).collect();
        let globs: Vec<String> = paths.iter().map(|path| format!("{path}.**")).collect();
        let (watched, tracer) = Watched::new(&globs.iter().map(String::as_str).collect::<Vec<_>>());
        let (bases, journal, vcs) = (bases(plan), system.journal().expect("kept"), plan.vcs);
        let is_theirs = |node: u32| engines.iter().any(|&(bump, _)| switches + bump == node as usize);
        let ends = plan.links.iter().flat_map(|link| [(link.a, link.b), (link.b, link.a)]);
        let peers = ends.filter(|((node, _), _)| is_theirs(*node));
        let peers = peers.map(|(_, (peer, port))| bases[peer as usize] + u32::from(port));
        let channels = vcs.set..vcs.set + vcs.unicast;
        let all = peers.flat_map(|port| channels.clone().map(move |vc| (port, vc)));
        let depth = all.map(|(port, vc)| journal.initial_credits(port, vc)).max().unwrap_or(2).max(2);
        let depths = |bump: usize| {
            let of = |port: u32| {
                let credits = |vc| u128::from(journal.initial_credits(bases[switches + bump] + port, vc));
                channels.clone().map(credits).collect()
            };
            [of(0), of(1)]
        };
        let depths: Vec<[Vec<u128>; 2]> = engines.iter().map(|&(bump, _)| depths(bump)).collect();
        let shape = Shape { vcs, depth, fault };
        system.record(tracer).expect("signals");
        let signals = watched.signals();
        let mut pairs = Vec::new();
        for ((&(bump, whole), path), depths) in engines.iter().zip(&paths).zip(depths) {
            let mut places: BTreeMap<String, (usize, u32, String)> = BTreeMap::new();
            for (at, signal) in signals.iter().enumerate() {
                let below = signal.name.strip_prefix(path.as_str()).and_then(|name| name.strip_prefix('.'));
                if let Some((name, place)) = below.and_then(|name| Some((name, shape.place(name)?))) {
                    places.insert(place, (at, signal.width, name.to_owned()));
                }
            }
            assert!(!places.is_empty(), "{path} has no waves");
            let mut bench = shape.bench();
            for (place, (_, width, name)) in &places {
                bench.look(name, place, *width);
            }
            let signals = |place: &dyn Fn(u16, u16) -> String| {
                [0, 1].map(|port| {
                    let signal = |vc| places.get(&place(port, vc)).map(|(at, ..)| *at);
                    (0..u16::from(vcs.unicast)).map(signal).collect()
                })
            };
            let bumps = system.bumps();
            let engine = bumps[bump].engine().expect("an engine");
            let registers = if whole { Some(Registers::new(engine, fault, cosims)?) } else { None };
            pairs.push(Pair {
                cfg: engine.cfg(),
                number: bump,
                base: bases[switches + bump],
                signals: places.values().map(|&(at, ..)| Some(at)).collect(),
                credits: signals(&count),
                levels: signals(&level),
                depths,
                kept: VecDeque::new(),
                read: 0,
                queues: Default::default(),
                own: [false; 2],
                cosim: cosims.take(bench, &shape.name())?,
                registers,
            });
        }
        Some(Twins { system, watched, shape, pairs })
    }

    /// What the engines did in a cycle that is over.
    fn keep(&mut self, cycle: u64) {
        let bumps = self.system.bumps();
        for pair in &mut self.pairs {
            let engine = bumps[pair.number].engine().expect("an engine");
            let given = engine.given().get(pair.read).filter(|given| given.cycle == cycle);
            pair.read += usize::from(given.is_some());
            pair.kept.push_back(given.cloned());
            if let Some(registers) = &mut pair.registers {
                registers.note(engine);
            }
        }
    }

    /// Runs the system to its end, or for so many cycles, and the RTL beside it.
    fn run(mut self, cycles: u64, cosims: &mut Cosims) -> Result<Equal, Box<Difference>> {
        let mut events = Events::new(self.pairs.iter().map(|pair| (pair.base, 2)));
        for pair in &mut self.pairs {
            pair.reset(&self.shape)?;
        }
        let (mut cycle, mut read, mut over) = (0, 0, false);
        let (mut compared, mut equal) = (0, Equal { engines: self.pairs.len(), ..Equal::default() });
        while !over {
            over = self.system.step_before(cycle + 1) == Step::Quiet || cycle + 1 == cycles;
            let entries = &self.system.journal().expect("kept").entries;
            let own = self.shape.vcs.set..self.shape.vcs.total();
            for entry in entries[read..].iter().filter(|entry| own.contains(&entry.tag.vc())) {
                events.note(entry, |_, local| Some(local));
            }
            read = entries.len();
            self.keep(cycle);
            cycle += 1;
            if over && let Some(tracer) = self.system.stop_recording() {
                tracer.finish(cycle).expect("a recording");
            }
            let (shape, tables, equal) = (&self.shape, &self.system.tables, &mut equal);
            self.watched.hold_known(&mut compared, cycle, &mut events, |cycle, events, seen| {
                let mut pairs = self.pairs.iter_mut().enumerate();
                pairs.try_for_each(|(at, pair)| pair.cycle(shape, tables, (cycle, at, events), seen, equal))
            })?;
        }
        assert!(self.system.fault().is_none(), "{:?}", self.system.fault());
        equal.granted = events.granted;
        for mut pair in self.pairs {
            pair.cosim.flush()?;
            equal.cycles += compared;
            cosims.put(self.shape.name(), pair.cosim);
            if let Some(registers) = pair.registers {
                let bumps = self.system.bumps();
                let readings = &bumps[pair.number].engine().expect("an engine").registers().readings;
                equal.reports += u64::from(readings.reports);
                equal.refused += readings.refused.iter().map(|&count| u64::from(count)).sum::<u64>();
                equal.registers += registers.end(cosims)?;
            }
        }
        Ok(equal)
    }
}

/// The system of a shipped scenario, or why the RTL has no data paths like those of its engines.
fn shipped(stem: &str) -> Result<System, &'static str> {
    let path = root().join(format!("testbench/pbv/{stem}.toml"));
    let loaded = load_file(&path, &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let options = BuildOptions { given: true, ..BuildOptions::default() };
    let system = build(&loaded, options).unwrap_or_else(|problems| panic!("{problems}")).system;
    if system.plan().links.iter().any(|link| link.cycles_per_flit > 1) {
        return Err("a link takes several cycles a flit");
    }
    if system.tables.cut == watershed::fabric::FlitSize::WORD {
        Ok(system)
    } else {
        Err("its flits are of another size")
    }
}

/// Why the RTL has no data paths as those of a shipped scenario, if it has not.
pub fn why_not(stem: &str) -> Option<&'static str> {
    shipped(stem).err()
}

/// Engines of a shipped scenario beside the RTL's: `None` without Verilator, or why the RTL has no such engine.
fn beside(stem: &str, most: usize, cycles: u64, fault: Option<u8>) -> Option<Result<Equal, &'static str>> {
    verilator::find()?;
    let system = match shipped(stem) {
        Ok(system) => system,
        Err(why) => return Some(Err(why)),
    };
    let bumps = system.bumps();
    let mut engines: Vec<usize> = (0..bumps.len()).filter(|&bump| bumps[bump].engine().is_some()).collect();
    let mut others = engines.split_off(1.min(engines.len()));
    Rng::new(seed(0x9be5), 2).shuffle(&mut others);
    engines.extend(others.into_iter().take(most - 1));
    // What comes to the registers of an engine is known when the system has run.
    let ran = pbv_engines::system(stem, &[], cycles);
    let has_registers =
        |bump: usize| Registers::other_hardware(ran.bumps()[bump].engine().expect("an engine")).is_none();
    let engines: Vec<(usize, bool)> = engines.into_iter().map(|bump| (bump, has_registers(bump))).collect();
    let mut cosims = Cosims::default();
    let twins = Twins::new(system, &engines, &mut cosims, fault)?;
    let equal = twins.run(cycles, &mut cosims).unwrap_or_else(|difference| panic!("{stem}: {difference}"));
    Some(Ok(equal))
}

fn scenarios_hold_what_the_model_holds(stem: &str, most: usize, cycles: u64, fault: Option<u8>) {
    match beside(stem, most, cycles, fault) {
        None => {}
        Some(Err(why)) => println!("rtl: {stem}: data paths not compared, for {why}"),
        Some(Ok(Equal { engines, cycles, granted, taken, sent, registers, .. })) => {
            assert!(granted > 0, "{stem}: nothing moved");
            println!(
                "rtl: ws_pbv_interposer beside {engines} engines of {stem}: {cycles} cycles, {granted} grants, {taken} words taken, {sent} \
                 words of its own; ws_pbv_registers: {registers} cycles; 0 differences"
            );
        }
    }
}

/// An engine between two end points that send and take at random.
fn random_system(channels: u8, rng: &mut Rng) -> SystemOf<Puppet> {
    let vcs = Vcs { set: 0, unicast: channels };
    let node = |kind, ports, name: &str| PlanNode { kind, ports, engine: false, name: name.into(), path: name.into() };
    let nodes =
        vec![node(NodeKind::Bump, 2, "bump"), node(NodeKind::End, 1, "switch"), node(NodeKind::End, 1, "behind")];
    let link = |a, b, latency| PlanLink { a, b, latency, cycles_per_flit: 1, level: 0 };
    let links = vec![link((0, 0), (1, 0), 1 + rng.below(2) as u16), link((0, 1), (2, 0), 1 + rng.below(3) as u16)];
    let plan = Plan { vcs, nodes, links, levels: vec!["wire".into()] };
    let cfg = EngineCfg { base: ME.1, inbox: 90, output: 36, priority_bound: 3, ..EngineCfg::of(ME.0) };
    let mut engine = Engine::new(cfg, pbv_puppet::NUMBER);
    if rng.below(3) > 0 {
        let owner = Owner { device: OWNER.0, through: OWNER.1 };
        engine.own(Owners { table: (rng.below(3) > 0).then_some(owner), contexts: None });
    } else {
        pbv_puppet::set_up(&mut engine, rng);
    }
    engine.keep_given();
    let mut puppet = |stream| Puppet::new(Rng::new(rng.bits(), stream), channels);
    let ends = vec![puppet(1), puppet(2)];
    let bumps = vec![WireBlock::Engine(Box::new(engine))];
    let blocks = Blocks { joins: Vec::new(), no_join: NoJoin::default(), bumps, ends };
    let switch = SwitchCfg {
        pipeline: Pipeline::new(1),
        policy: Policy::default(),
        monitors: false,
        router: RouterCfg::default(),
    };
    let names = (0..vcs.total()).map(|vc| format!("c{vc}")).collect();
    Network::new(plan, pbv_puppet::directory(), blocks, switch, &|_, vc| if vc == 0 { 7 } else { 4 }, names)
}

/// Random frames and traffic through an engine for so many cycles, with a reset every few thousand; `None` without Verilator.
pub fn drive(channels: u8, fault: Option<u8>, seed: u64, cycles: u64) -> Option<Result<Equal, Box<Difference>>> {
    let mut rng = Rng::new(seed, 0);
    let mut cosims = Cosims::default();
    let mut all = Equal::default();
    while all.cycles < cycles {
        let system = random_system(channels, &mut rng);
        let twins = Twins::new(system, &[(0, true)], &mut cosims, fault)?;
        match twins.run(2_000 + rng.below(4_000), &mut cosims) {
            Ok(equal) => {
                all.cycles += equal.cycles;
                all.granted += equal.granted;
                all.taken += equal.taken;
                all.sent += equal.sent;
                all.registers += equal.registers;
                all.reports += equal.reports;
                all.refused += equal.refused;
            }
            Err(difference) => return Some(Err(difference)),
        }
    }
    Some(Ok(all))
}

fn engines_hold_what_the_model_holds(channels: u8, fault: Option<u8>, cycles: u64) {
    let seed = seed(0x1a7e_0000);
    let Some(driven) = drive(channels, fault, seed, cycles) else { return };
    let equal = driven.unwrap_or_else(|difference| panic!("{difference} (seed {seed})"));
    let Equal { cycles, granted, taken, sent, registers, reports, refused, .. } = equal;
    assert!(granted > cycles / 4 && taken > cycles / 20 && sent > cycles / 20, "{equal:?}");
    assert!(reports > cycles / 1_000 && refused > cycles / 1_000, "{equal:?}");
    println!(
        "rtl: ws_pbv_interposer of {channels} channels: {cycles} cycles, {granted} grants, {taken} words taken, {sent} words of its own; \
         ws_pbv_registers: {registers} cycles, {reports} reports, {refused} frames refused; 0 differences"
    );
}

/// Cycles of a sample and of a soak.
const SAMPLE: u64 = 30_000;
const SOAK: u64 = 300_000;

#[test]
fn the_data_path_and_registers_of_a_packet_engine_hold_what_the_model_holds() {
    // The simulators that have faults, none of which acts.
    engines_hold_what_the_model_holds(3, Some(0), SAMPLE);
}

#[test]
#[ignore = "takes minutes: make soak"]
fn data_paths_and_registers_of_packet_engines_hold_what_the_model_holds_for_long() {
    for channels in [1, 2, 3, 8] {
        engines_hold_what_the_model_holds(channels, None, SOAK);
    }
}

#[test]
fn data_paths_of_shipped_scenarios_hold_what_the_model_holds() {
    for stem in ["two-groups", "congestion"] {
        // The simulators that have faults, again.
        scenarios_hold_what_the_model_holds(stem, 3, 20_000, Some(0));
    }
}

#[test]
#[ignore = "takes minutes: make soak"]
fn data_paths_of_every_shipped_scenario_hold_what_the_model_holds() {
    for stem in pbv_engines::stems() {
        // One simulator of registers does for all.
        scenarios_hold_what_the_model_holds(&stem, 18, 50_000, Some(0));
    }
}
