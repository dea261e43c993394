//! The collective switch beside switches of a running system: what comes in and which credits come back are the system's; queues, credits,
//! grants, links, slots and the engine's stage registers are compared in every cycle.
//!
//! The model's journal says which flits entered and left each queue, its waves what stands in registers. A register of the RTL that feeds a
//! link is the model's link of the cycle after a grant: what the model commits to a queue in cycle t comes to the RTL in t - 1.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt::Write as _;
use std::path::Path;

use watershed::arith::stages::units_of;
use watershed::arith::unit::{SEGMENTS, Unit};
use watershed::arith::{DType, Op, TreeCfg};
use watershed::fabric::NodeKind;
use watershed::kernel::Rng;
use watershed::piuma::{CHANNELS, CengCfg, REQUEST, RESPONSE, Registers, System};
use watershed::scenario::build::{BuildOptions, build};
use watershed::scenario::file::Arbiter;
use watershed::scenario::run::Driver;
use watershed::scenario::{Loaded, load_file, load_text};

use crate::bench::{Bench, Cosim, Difference};
use crate::ceng::{held_operands, place_of_slots};
use crate::links::{Events, Seen, bases};
use crate::random::seed;
use crate::registers::{units_literal, wave_of_scan, wave_of_tree};
use crate::unicast::{Fixed, Unicast};
use crate::verilator::root;
use crate::watched::Watched;

/// What all switches of a system have in common.
#[derive(Clone, Debug)]
struct Shape {
    /// External ports, as registers count them.
    ports: u16,
    channels: u8,
    ids: u16,
    front: u16,
    post: u16,
    depth: u16,
    slowest: u32,
    ceng: CengCfg,
    /// Elements of scans; 0 where none is configured.
    scan_slots: u32,
    units: String,
    /// Lanes that its datapaths have, at most, and the registers in them.
    lanes: u32,
    registers: BTreeSet<&'static str>,
    /// Point-to-point channels, where they are compared too.
    unicast: Option<Unicast>,
}

/// A switch of the system, and the RTL's beside it.
struct Pair {
    switch: u32,
    /// System-wide number of its port 0, and how many ports it has, the engine's included.
    base: u32,
    ports: u16,
    /// Of its registers.
    addresses: Vec<u64>,
    /// By what is looked at in the RTL: the signal of the model's waves.
    signals: Vec<Option<usize>>,
    /// By port and channel: the signal of its credits.
    credits: Vec<Vec<Option<usize>>>,
    /// Of its point-to-point channels.
    fixed: Fixed,
    /// Cycles that the link of each port takes for a flit.
    flit_cycles: Vec<u128>,
    /// Where programs write registers: what all hold at the start of each cycle that is not compared yet.
    states: VecDeque<Vec<u64>>,
    cosim: Cosim,
}

/// Why the switches of a system are no twins of the RTL's, if they are not; `registers` are those that it comes to have.
fn other_hardware(loaded: &Loaded, system: &System, registers: &Registers) -> Option<&'static str> {
    if loaded.scenario.switch.arbiter != Arbiter::RoundRobin {
        return Some("its arbiters are no round-robin ones");
    }
    if !loaded.scenario.traffic.is_empty() && slowest(system) > 1 {
        return Some("a link that other traffic uses takes several cycles a flit");
    }
    if system.plan().vcs.set == 0 {
        return Some("it has no collective channels");
    }
    if working(registers).is_empty() {
        return Some("no switch of it reduces");
    }
    None
}

/// Cycles that a link takes for a flit, at most.
fn slowest(system: &System) -> u32 {
    system.plan().links.iter().map(|link| u32::from(link.cycles_per_flit)).max().unwrap_or(1)
}

/// The switches that have something to do.
fn working(registers: &Registers) -> Vec<u32> {
    let has = |switch: &u32| {
        let vectors = |id| {
            let of = move |channel, port| registers.vector(*switch, id, channel, port);
            (0..=registers.engine_port()).any(move |port| of(REQUEST, port) != 0 || of(RESPONSE, port) != 0)
        };
        (0..registers.ids()).any(vectors)
    };
    (0..registers.switches()).filter(has).collect()
}

/// The root of the first id, a leaf, and so many more by seed.
fn chosen(registers: &Registers, rng: &mut Rng, more: usize) -> Vec<u32> {
    let mut all = working(registers);
    let reduces = |switch: u32| (0..registers.ids()).any(|id| registers.engine_inputs(switch, id) != 0);
    let root = all.iter().copied().find(|&switch| (0..registers.ids()).any(|id| registers.is_root(switch, id)));
    let leaf = all.iter().copied().find(|&switch| !reduces(switch));
    let mut chosen: Vec<u32> = root.into_iter().chain(leaf).collect();
    all.retain(|switch| !chosen.contains(switch));
    rng.shuffle(&mut all);
    chosen.extend(all.into_iter().take(more));
    chosen
}

/// Whether any switch has prefix scans.
fn scans(registers: &Registers) -> bool {
    (0..registers.switches()).any(|switch| registers.scans(switch))
}

/// What the engines of switches are given; where programs say it, at the end.
fn selects(registers: &Registers, ran: Option<&Registers>, switches: &[u32]) -> Vec<(Op, DType)> {
    let Some(ran) = ran else { return switches.iter().flat_map(|&switch| registers.engine_selects(switch)).collect() };
    let ids = |&switch: &u32| (0..ran.ids()).map(move |id| (switch, id));
    let used = switches.iter().flat_map(ids).filter(|&(switch, id)| ran.engine_inputs(switch, id) != 0);
    let mut all: Vec<(Op, DType)> =
        used.map(|(switch, id)| ran.select(switch, id)).map(|of| (of.op, of.dtype)).collect();
    // One datapath at least.
    all.push((Op::Sum, DType::F64));
    all
}

/// The registers of a datapath.
fn names(unit: &Unit) -> impl Iterator<Item = &'static str> {
    (1..=SEGMENTS).map(|segments| unit.blank(segments).name())
}

fn shape(loaded: &Loaded, system: &System, switches: &[u32], ran: Option<&Registers>) -> Shape {
    let registers = &system.tables;
    let journal = system.journal().expect("kept");
    let ports: usize = system.plan().nodes.iter().map(|node| usize::from(node.ports)).sum();
    let set = system.plan().vcs.set;
    let all = (0..ports as u32).flat_map(|port| (0..set).map(move |vc| (port, vc)));
    let depth = all.map(|(port, vc)| journal.initial_credits(port, vc)).max().unwrap_or(1);
    let selects = selects(registers, ran, switches);
    let ceng = system.joins().iter().next().expect("an engine").cfg();
    Shape {
        ports: registers.engine_port(),
        channels: set,
        ids: registers.ids(),
        front: journal.front,
        post: journal.post,
        depth,
        slowest: slowest(system),
        ceng,
        scan_slots: if scans(registers) { ceng.scan_slots } else { 0 },
        lanes: selects.iter().map(|(_, dtype)| dtype.lanes()).max().unwrap_or(1),
        registers: units_of(selects.iter().copied()).iter().flat_map(names).collect(),
        units: units_literal(&units_of(selects)),
        unicast: Unicast::of(loaded, system),
    }
}

impl Shape {
    /// Inputs and the instance.
    fn bench(&self) -> Bench {
        let Shape { ports, channels, ids, front, post, depth, slowest, ceng, scan_slots, units, unicast, .. } = self;
        let CengCfg { tree: TreeCfg { unit_stages, .. }, operand_slots, result_slots, .. } = ceng;
        let planes = channels / CHANNELS;
        let mut bench = Bench::default();
        for (name, width) in [("cfg_store", 1), ("cfg_address", 24), ("cfg_data", 64)] {
            bench.input(name, width);
        }
        bench.input("in_valid", u32::from(*ports));
        for port in 0..*ports {
            bench.input(format!("in_tag_{port}"), 64);
            bench.input(format!("in_word_{port}"), 64);
            bench.input(format!("credit_{port}"), u32::from(*channels));
            bench.input(format!("depth_{port}"), 16);
            bench.input(format!("flit_cycles_{port}"), 8);
        }
        bench.body(&format!(
            "  localparam int unsigned Radix = {ports};\n  localparam int unsigned Planes = {planes};\n  logic [15:0] depths [{ports}];\n  \
             logic [7:0] flit_cycles [{ports}];\n  logic [63:0] cfg_read;\n  logic cfg_error;\n  flit_t in_flit [{ports}];\n  logic [{channels}-1:0] credit_in [{ports}];\n  \
             logic [{channels}-1:0] credit_out [{ports}];\n  logic [{ports}-1:0] out_valid, taken_in, taken_out;\n  flit_t out_flit \
             [{ports}];\n"
        ));
        for port in 0..*ports {
            bench.body(&format!(
                "  assign in_flit[{port}] = {{in_tag_{port}, in_word_{port}}};\n  assign credit_in[{port}] = credit_{port};\n  assign \
                 depths[{port}] = depth_{port};\n  assign flit_cycles[{port}] = flit_cycles_{port};\n"
            ));
        }
        bench.body(&format!(
            "  ws_coll_switch #(.Ports({ports}), .Ids({ids}), .Planes({planes}), .Depth({depth}), .Front({front}), .Post({post}), \
             .Slowest({slowest}),\n    .UnitStages({unit_stages}), .Units({units}), .OperandSlots({operand_slots}), .ResultSlots({result_slots}), \
             .ScanSlots({scan_slots})) u_dut (\n    \
             .clk_i, .rst_ni, .credits_at_reset_i(depths), .flit_cycles_i(flit_cycles), .cfg_store_i(cfg_store), .cfg_address_i(cfg_address),\n    .cfg_data_i(cfg_data), \
             .cfg_data_o(cfg_read), .cfg_error_o(cfg_error), .in_valid_i(in_valid), .in_flit_i(in_flit),\n    .credit_o(credit_out), \
             .out_valid_o(out_valid), .out_flit_o(out_flit), .credit_i(credit_in),\n    .taken_in_o(taken_in), \
             .taken_out_o(taken_out));\n"
        ));
        bench.body(&held_operands("u_dut.u_ceng"));
        bench.look("cfg.error", "cfg_error", 1);
        bench.look("cfg.data", "cfg_read", 64);
        let (mut valid, mut all) = ("out_valid", u32::from(*channels));
        if let Some(unicast) = unicast {
            unicast.instance(&mut bench);
            (valid, all) = ("(out_valid | uout_valid)", all + u32::from(unicast.channels));
        }
        bench.look("out_valid_o", valid, u32::from(*ports));
        for port in 0..*ports {
            let (mut flit, mut credits) = (format!("out_flit[{port}]"), format!("credit_out[{port}]"));
            if unicast.is_some() {
                flit = format!("both[{port}]");
                credits = format!("{{ucredit_out[{port}], credit_out[{port}]}}");
                bench.body(&if port == 0 { format!("  flit_t both [{ports}];\n") } else { String::new() });
                bench.body(&format!(
                    "  assign both[{port}] = uout_valid[{port}] ? uout_flit[{port}] : out_flit[{port}];\n"
                ));
            }
            bench.look(format!("out{port}.tag"), format!("{flit}.tag"), 64);
            bench.look(format!("out{port}.word"), format!("{flit}.word"), 64);
            bench.look(format!("out{port}.credit_o"), credits, all);
        }
        bench
    }

    /// Where the RTL has a signal of a switch's waves, from its name below the switch.
    fn place(&self, registers: &Registers, switch: u32, name: &str) -> Option<String> {
        let engine = registers.engine_port();
        let number = |text: &str, word: &str| -> Option<u16> { text.strip_prefix(word)?.parse().ok() };
        let parts: Vec<&str> = name.split('.').collect();
        // The model's unit may have datapaths that nothing uses.
        if let ["ceng", .., register, lane, _] = parts[..]
            && let Some(lane) = number(lane, "lane")
            && (u32::from(lane) >= self.lanes || !self.registers.contains(register))
        {
            return None;
        }
        match parts[..] {
            ["ceng", "tree", ..] => {
                wave_of_tree(name.strip_prefix("ceng.tree.")?, "u_dut.u_ceng.u_tree", self.ceng.tree.unit_stages)
            }
            ["ceng", "scan", ..] => {
                let unit = "u_dut.u_ceng.gen_scan.u_scan";
                wave_of_scan(name.strip_prefix("ceng.scan.")?, unit, self.ceng.tree.unit_stages)
            }
            ["ceng", slot, field] => {
                let port = registers.numbered(switch, number(slot, "slot")?);
                (port < engine)
                    .then(|| place_of_slots(&format!("slot{port}.{field}"), "u_dut.u_ceng", self.channels / 2))?
            }
            ["ceng", field] => place_of_slots(field, "u_dut.u_ceng", self.channels / 2),
            [input, channel, field] if input.starts_with("in") => {
                let (port, vc) = (registers.numbered(switch, number(input, "in")?), number(channel, "vc")?);
                if vc >= u16::from(self.channels) {
                    return self.unicast.as_ref()?.place(port, vc, field);
                }
                match field {
                    "flits" => Some(format!("u_dut.len[{port}][{vc}]")),
                    "head_word" => Some(format!("u_dut.head[{port}][{vc}].word")),
                    "head_id" | "head_seq" => Some(format!("u_dut.head[{port}][{vc}].tag.{}", &field[5..])),
                    _ => None,
                }
            }
            [output, channel, field @ ("count" | "held")] => {
                let (port, vc) = (registers.numbered(switch, number(output, "out")?), number(channel, "credits")?);
                if vc >= u16::from(self.channels) {
                    return self.unicast.as_ref()?.place(port, vc, field);
                }
                (field == "count").then(|| self.count(port, vc))
            }
            _ => None,
        }
    }

    /// Credits of a channel.
    fn count(&self, port: u16, vc: u16) -> String {
        match vc.checked_sub(u16::from(self.channels)) {
            Some(channel) => Unicast::count(port, channel),
            None => format!("16'(depths[{port}] - u_dut.spent[{port}][{vc}])"),
        }
    }

    /// All channels that are compared.
    fn all_channels(&self) -> u8 {
        self.channels + self.unicast.as_ref().map_or(0, |unicast| unicast.channels)
    }

    /// So many signals are looked at beside those of waves.
    fn own(&self) -> usize {
        3 + 3 * usize::from(self.ports)
    }
}

/// The switches of a system beside the RTL's.
struct Twins<'a> {
    system: System,
    driver: Driver<'a>,
    shape: Shape,
    watched: Watched,
    pairs: Vec<Pair>,
    rng: Rng,
}

impl<'a> Twins<'a> {
    fn new(
        loaded: &'a Loaded,
        (mut system, driver): (System, Driver<'a>),
        more: usize,
        (name, define): (&str, Option<&'static str>),
        (ran, mut rng): (Option<&Registers>, Rng),
    ) -> Option<Twins<'a>> {
        system.keep_journal(true);
        let switches = chosen(ran.unwrap_or(&system.tables), &mut rng, more);
        // Large systems are built without names.
        for &switch in &switches {
            if system.plan().nodes[switch as usize].path.is_empty() {
                system.name_node(switch, format!("switch{switch}"));
            }
        }
        let shape = shape(loaded, &system, &switches, ran);
        let paths: Vec<String> =
            switches.iter().map(|&switch| system.plan().nodes[switch as usize].path.clone()).collect();
        let globs: Vec<String> = paths.iter().map(|path| format!("{path}.**")).collect();
        let (watched, tracer) = Watched::new(&globs.iter().map(String::as_str).collect::<Vec<_>>());
        system.record(tracer).expect("signals");
        let signals = watched.signals();
        let mut places: BTreeMap<String, u32> = BTreeMap::new();
        let mut of_switch: Vec<HashMap<String, usize>> = Vec::new();
        for (&switch, path) in switches.iter().zip(&paths) {
            let mut here = HashMap::new();
            for (at, signal) in signals.iter().enumerate() {
                let below = signal.name.strip_prefix(path.as_str()).and_then(|name| name.strip_prefix('.'));
                if let Some(place) = below.and_then(|name| shape.place(&system.tables, switch, name)) {
                    let width = places.entry(place.clone()).or_default();
                    *width = signal.width.max(*width);
                    here.insert(place, at);
                }
            }
            of_switch.push(here);
        }
        let mut bench = shape.bench();
        for (place, width) in &places {
            bench.look(place.replace(' ', ""), place.clone(), *width);
        }
        if let Some(define) = define {
            bench.define(define);
        }
        let bases = bases(system.plan());
        let mut pairs = Vec::new();
        for (&switch, here) in switches.iter().zip(&of_switch) {
            let count = |port, vc| here.get(&shape.count(port, u16::from(vc))).copied();
            let (base, ports) = (bases[switch as usize], system.plan().nodes[switch as usize].ports);
            let addresses = addresses(&system.tables, switch);
            let fixed = shape.unicast.as_ref().map(|unicast| {
                let depths = depths(&system, &shape, (switch, base, ports), unicast.set);
                unicast.fixed(&system.tables, switch, depths)
            });
            pairs.push(Pair {
                switch,
                base,
                ports,
                fixed: fixed.unwrap_or_default(),
                flit_cycles: flit_cycles(&system, switch, shape.ports),
                states: VecDeque::from([values(&system.tables, &addresses)]),
                addresses,
                signals: places.keys().map(|place| here.get(place).copied()).collect(),
                credits: (0..shape.ports)
                    .map(|port| (0..shape.all_channels()).map(|vc| count(port, vc)).collect())
                    .collect(),
                cosim: bench.clone().build(name)?,
            });
        }
        Some(Twins { system, driver, shape, watched, pairs, rng })
    }

    /// Runs the system to its end, or for so many cycles, and the RTL beside it.
    fn run(mut self, cycles: u64) -> Result<(u64, u64), Box<Difference>> {
        let mut events = Events::new(self.pairs.iter().map(|pair| (pair.base, pair.ports)));
        let depths: Vec<Vec<u128>> = self.pairs.iter().map(|pair| self.depths(pair)).collect();
        for (pair, depths) in self.pairs.iter_mut().zip(&depths) {
            pair.configure(&self.shape, &self.system.tables, depths)?;
        }
        let (mut cycle, mut read, mut over) = (0, 0, false);
        let mut compared = 0;
        while !over {
            over = !self.driver.step(&mut self.system, cycle + 1) || cycle + 1 == cycles;
            if self.system.tables.rewritable {
                for pair in &mut self.pairs {
                    pair.states.push_back(values(&self.system.tables, &pair.addresses));
                }
            }
            let entries = &self.system.journal().expect("kept").entries;
            let all = self.shape.all_channels();
            for entry in entries[read..].iter().filter(|entry| entry.tag.vc() < all) {
                // The last port is the engine's, which is inside.
                events.note(entry, |at, local| {
                    let Pair { switch, ports, .. } = self.pairs[at];
                    (local + 1 < ports).then(|| self.system.tables.numbered(switch, local))
                });
            }
            read = entries.len();
            cycle += 1;
            if over && let Some(tracer) = self.system.stop_recording() {
                tracer.finish(cycle).expect("a recording");
            }
            let (shape, rng) = (&self.shape, &mut self.rng);
            self.watched.hold_known(&mut compared, cycle, &mut events, |cycle, events, seen| {
                let mut pairs = self.pairs.iter_mut().zip(&depths).enumerate();
                pairs.try_for_each(|(at, (pair, of))| pair.cycle(shape, (cycle, at, events), seen, of, rng))
            })?;
        }
        assert!(self.system.fault().is_none(), "{:?}", self.system.fault());
        let granted = events.granted;
        for pair in &mut self.pairs {
            pair.cosim.flush()?;
        }
        Ok((self.pairs.iter().map(|pair| pair.cosim.cycles).sum(), granted))
    }

    fn depths(&self, pair: &Pair) -> Vec<u128> {
        depths(&self.system, &self.shape, (pair.switch, pair.base, pair.ports), REQUEST)
    }
}

/// Credits at reset of a channel by port, as registers count them.
fn depths(system: &System, shape: &Shape, (switch, base, ports): (u32, u32, u16), vc: u8) -> Vec<u128> {
    let journal = system.journal().expect("kept");
    let mut depths = vec![0; usize::from(shape.ports)];
    for port in 0..ports - 1 {
        let number = system.tables.numbered(switch, port);
        depths[usize::from(number)] = u128::from(journal.initial_credits(base + u32::from(port), vc));
    }
    depths
}

impl Pair {
    /// Reset, then a store of every register.
    fn configure(&mut self, shape: &Shape, registers: &Registers, depths: &[u128]) -> Result<(), Box<Difference>> {
        let nothing = vec![None; shape.own() + self.signals.len()];
        let (fixed, cycles) = (&self.fixed, &self.flit_cycles);
        let still = |store: Option<(u64, u64)>| {
            let (address, data) = store.unwrap_or_default();
            let mut given = vec![u128::from(store.is_some()), u128::from(address & 0xff_ffff), u128::from(data), 0];
            given.extend(depths.iter().zip(cycles).flat_map(|(&depth, &cycles)| [0, 0, 0, depth, cycles]));
            let none = vec![0; depths.len()];
            given.extend(shape.unicast.iter().flat_map(|_| Unicast::given(fixed, &none)));
            given
        };
        let mut all = vec![still(None)];
        for &address in &self.addresses {
            let value = registers.load(address).expect("a register");
            all.push(still(Some((address, value))));
        }
        for (at, given) in all.iter().enumerate() {
            self.cosim.cycle(at == 0, given, nothing.clone())?;
        }
        Ok(())
    }

    fn cycle(
        &mut self,
        shape: &Shape,
        (cycle, number, events): (u64, usize, &Events),
        seen: &Seen<'_>,
        depths: &[u128],
        rng: &mut Rng,
    ) -> Result<(), Box<Difference>> {
        let at = |cycle: Option<u64>| events.at(number, cycle);
        let (before, now, next) = (at(cycle.checked_sub(1)), at(Some(cycle)), at(Some(cycle + 1)));
        let out = at(cycle.checked_sub(1 + u64::from(shape.post)));
        // A program's store, or a load of any register.
        let mut which = rng.below(self.addresses.len() as u64) as usize;
        let mut stored = None;
        if let [state, next, ..] = self.states.make_contiguous() {
            let mut changed = (0..state.len()).filter(|&at| state[at] != next[at]);
            if let Some(at) = changed.next() {
                assert_eq!(changed.next(), None, "two registers are written in cycle {cycle}");
                (which, stored) = (at, Some(next[at]));
            }
        }
        let (address, held) = (self.addresses[which], self.states[0][which]);
        if self.states.len() > 1 {
            self.states.pop_front();
        }
        let data = u128::from(stored.unwrap_or(0));
        let mut given = vec![u128::from(stored.is_some()), u128::from(address & 0xff_ffff), data, next.entered_ports()];
        let mut others = Vec::new();
        for port in 0..shape.ports {
            let (tag, word) = next.entered_at(port);
            let returned = (0..shape.all_channels()).fold(0, |all, vc| {
                let credits = self.credits[usize::from(port)][usize::from(vc)];
                all | seen.returned(credits, now, (port, vc)) << vc
            });
            let set = returned & ((1 << shape.channels) - 1);
            let (depth, cycles) = (depths[usize::from(port)], self.flit_cycles[usize::from(port)]);
            given.extend([u128::from(tag), u128::from(word), set, depth, cycles]);
            others.push(returned >> shape.channels);
        }
        given.extend(shape.unicast.iter().flat_map(|_| Unicast::given(&self.fixed, &others)));
        let mut expected = vec![Some(0), Some(u128::from(held))];
        expected.push(Some(out.sent_ports()));
        for port in 0..shape.ports {
            let flit = out.sent_at(port);
            expected.extend([flit.map(|(tag, _)| u128::from(tag.0)), flit.map(|(_, word)| u128::from(word))]);
            expected.push(Some(before.left_at(port)));
        }
        expected.extend(self.signals.iter().map(|signal| signal.and_then(|at| seen.now[at])));
        self.cosim.cycle(false, &given, expected)
    }
}

/// Where programs write the registers of a system: as they are at the end.
fn written_registers(loaded: &Loaded, system: &System, cycles: u64) -> Option<Registers> {
    if !system.tables.rewritable {
        return None;
    }
    let ready = build(loaded, BuildOptions::default()).unwrap_or_else(|problems| panic!("{problems}"));
    let (mut ran, mut driver) = Driver::new(loaded, ready);
    while ran.now() < cycles && driver.step(&mut ran, cycles) {}
    Some(ran.tables.clone())
}

/// Cycles that the link of each port of a switch takes for a flit, as registers count ports.
fn flit_cycles(system: &System, switch: u32, ports: u16) -> Vec<u128> {
    let mut cycles = vec![1; usize::from(ports)];
    for link in &system.plan().links {
        for (_, port) in [link.a, link.b].into_iter().filter(|&(node, _)| node == switch) {
            cycles[usize::from(system.tables.numbered(switch, port))] = u128::from(link.cycles_per_flit);
        }
    }
    cycles
}

/// What registers hold.
fn values(registers: &Registers, addresses: &[u64]) -> Vec<u64> {
    addresses.iter().map(|&address| registers.load(address).expect("a register")).collect()
}

/// Every register of a switch.
fn addresses(registers: &Registers, switch: u32) -> Vec<u64> {
    let (mut all, orders) = (Vec::new(), scans(registers));
    for id in 0..registers.ids() {
        all.push(Registers::select_address(switch, id));
        if orders {
            all.push(Registers::order_address(switch, id));
        }
        for channel in [REQUEST, RESPONSE] {
            all.extend((0..=registers.engine_port()).map(|port| Registers::vector_address(switch, id, channel, port)));
        }
    }
    all
}

/// Why the RTL has no switches as those of a scenario, if it has not.
pub fn why_not(loaded: &Loaded) -> Option<&'static str> {
    let ready = build(loaded, BuildOptions::default()).unwrap_or_else(|problems| panic!("{problems}"));
    let ran = written_registers(loaded, &ready.system, CYCLES);
    other_hardware(loaded, &ready.system, ran.as_ref().unwrap_or(&ready.system.tables))
}

/// A system's switches beside the RTL's; how many cycles and grants were compared, or why the RTL has no such switch.
pub fn beside(
    loaded: &Loaded,
    more: usize,
    cycles: u64,
    name: &str,
    define: Option<&'static str>,
) -> Option<Result<Compared, Box<Difference>>> {
    let ready = build(loaded, BuildOptions::default()).unwrap_or_else(|problems| panic!("{problems}"));
    let (system, driver) = Driver::new(loaded, ready);
    let ran = written_registers(loaded, &system, cycles);
    if let Some(why) = other_hardware(loaded, &system, ran.as_ref().unwrap_or(&system.tables)) {
        return Some(Ok(Compared::Other(why)));
    }
    assert!(system.plan().nodes.iter().any(|node| node.kind == NodeKind::Switch));
    let twins = Twins::new(loaded, (system, driver), more, (name, define), (ran.as_ref(), Rng::new(seed(0x5717), 0)))?;
    let switches = twins.pairs.len();
    Some(twins.run(cycles).map(|(cycles, granted)| Compared::Equal { switches, cycles, granted }))
}

/// Cycles of a shipped scenario that are compared, at most.
const CYCLES: u64 = 100_000;

/// What came of a comparison.
#[derive(Clone, Copy, Debug)]
pub enum Compared {
    /// The RTL has no such switch.
    Other(&'static str),
    /// So many switches, cycles of all together, and grants.
    Equal { switches: usize, cycles: u64, granted: u64 },
}

fn shipped(stem: &str) -> Loaded {
    let path = root().join(format!("testbench/piuma/{stem}.toml"));
    load_file(&path, &[]).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Collectives that meet: two ids on two planes, short buffers, few places in engines, memories with gaps.
pub fn crowded(elements: u32) -> Loaded {
    crowded_on(elements, "")
}

/// The same with these lines about links.
fn crowded_on(elements: u32, links: &str) -> Loaded {
    let mut text = "family = \"piuma\"\nseed = 9\n[topology]\nkind = \"mesh\"\nsize = [3, 2]\n[switch]\ncollective_ids = 4\n\
         collective_buffer_flits = 2\npipeline_stages = 3\n[switch.ceng]\nstages = 2\nresult_slots = 5\n[memory]\nbandwidth_gbps = 70.3\n"
        .to_owned();
    // Those that overlap on a plane would wait for claims.
    for (id, (plane, op, dtype)) in [(0, "sum", "f64"), (1, "max", "i32")].into_iter().enumerate() {
        let start = id * 53;
        let _ = write!(
            text,
            "[[collective]]\nname = \"c{id}\"\nkind = \"allreduce\"\nid = {id}\nplane = {plane}\nop = \"{op}\"\ndtype = \"{dtype}\"\n\
             elements = {elements}\nstart_cycle = {start}\ndata = {{ random = \"mixed\" }}\n"
        );
    }
    text += links;
    load_text("crowded", &text, Path::new("."), "crowded", &[]).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Prints what was compared; the first difference, or that nothing moved, is an error.
fn hold_what_the_model_holds(loaded: &Loaded, more: usize, cycles: u64, name: &str) -> Result<(), String> {
    let Some(compared) = beside(loaded, more, cycles, name, None) else { return Ok(()) };
    match compared.map_err(|difference| format!("{name}: {difference}"))? {
        Compared::Equal { granted: 0, switches, cycles } => {
            return Err(format!("{name}: nothing moved at {switches} switches in {cycles} cycles"));
        }
        Compared::Equal { switches, cycles, granted } => {
            println!(
                "rtl: ws_coll_switch beside {switches} switches of {name}: {cycles} cycles, {granted} grants, 0 differences"
            );
        }
        Compared::Other(why) => println!("rtl: {name}: not compared, for {why}"),
    }
    Ok(())
}

#[test]
fn switches_of_the_flagship_hold_what_the_model_holds() {
    hold_what_the_model_holds(&shipped("allreduce-die"), 16, 4_000, "switch-allreduce-die").unwrap();
}

#[test]
fn crowded_switches_hold_what_the_model_holds() {
    hold_what_the_model_holds(&crowded(500), 4, 6_000, "switch-crowded").unwrap();
}

/// A scan beside a reduction on another plane: few places for elements, short buffers.
pub fn crowded_scan(elements: u32) -> Loaded {
    let text = format!(
        "family = \"piuma\"\nseed = 4\n[topology]\nkind = \"die\"\n[switch]\ncollective_ids = 4\n\
         collective_buffer_flits = 2\npipeline_stages = 3\n[switch.ceng]\nstages = 2\nresult_slots = 6\nscan_slots = 5\n\
         [memory]\nbandwidth_gbps = 70.3\n[[collective]]\nname = \"scan\"\nkind = \"scan\"\nid = 1\nop = \"max\"\n\
         dtype = \"i32\"\ninclusive = false\nelements = {elements}\ndata = {{ random = \"mixed\" }}\n[[collective]]\n\
         name = \"sum\"\nkind = \"allreduce\"\nid = 2\nplane = 1\nop = \"sum\"\ndtype = \"f64\"\nelements = {elements}\n\
         start_cycle = 53\ndata = {{ random = \"mixed\" }}\n"
    );
    load_text("crowded-scan", &text, Path::new("."), "crowded-scan", &[])
        .unwrap_or_else(|problems| panic!("{problems}"))
}

/// A reduction in the traffic of all end points with packets of several flits, short buffers, a stage for each step.
pub fn busy(elements: u32, stages: u8, rate: f64) -> Loaded {
    routed(elements, (stages, rate), "die\"", "")
}

/// The same in another topology, with these lines about the router.
fn routed(elements: u32, (stages, rate): (u8, f64), topology: &str, router: &str) -> Loaded {
    let text = format!(
        "family = \"piuma\"\nseed = 6\n[topology]\nkind = \"{topology}\n[switch]\npipeline_stages = {stages}\npoint_to_point_vcs = 3\n\
         point_to_point_buffer_flits = 4\n{router}[[collective]]\nname = \"sum\"\nkind = \"allreduce\"\nop = \"max\"\ndtype = \"i32\"\n\
         elements = {elements}\nstart_cycle = 300\ndata = {{ random = \"mixed\" }}\n[[traffic]]\nname = \"others\"\n\
         pattern = \"uniform\"\nrate = {rate}\npacket_flits = 3\nstop_cycle = {}\n",
        4 * elements
    );
    load_text("busy", &text, Path::new("."), "busy", &[]).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn switches_in_traffic_hold_what_the_model_holds() {
    hold_what_the_model_holds(&busy(500, 4, 0.5), 2, 3_000, "switch-busy").unwrap();
}

/// The allocators that are not the default: of channels, of the crossbar, and rounds.
const ALLOCATORS: [(&str, &str, u8); 3] = [("separable", "islip", 1), ("islip", "separable", 2), ("islip", "islip", 2)];

fn router_of((channels, crossbar, rounds): (&str, &str, u8)) -> String {
    format!(
        "[switch.router]\nvc_allocator = \"{channels}\"\nswitch_allocator = \"{crossbar}\"\nallocator_iterations = {rounds}\n"
    )
}

/// Its switches have five ports: their simulators are smaller.
const MESH: &str = "mesh\"\nsize = [3, 2]";

/// As [`busy`], with iterative allocators of both kinds.
pub fn iterative(elements: u32) -> Loaded {
    routed(elements, (1, 0.7), MESH, &router_of(ALLOCATORS[2]))
}

#[test]
fn switches_of_other_allocators_hold_what_the_model_holds() {
    let [first, ..] = ALLOCATORS;
    hold_what_the_model_holds(&routed(300, (3, 0.6), MESH, &router_of(first)), 2, 2_000, "switch-separable-islip")
        .unwrap();
    hold_what_the_model_holds(&iterative(300), 2, 2_000, "switch-islip").unwrap();
}

#[test]
fn switches_that_scan_hold_what_the_model_holds() {
    hold_what_the_model_holds(&crowded_scan(200), 4, 6_000, "switch-crowded-scan").unwrap();
}

#[test]
#[ignore = "takes minutes: make soak"]
fn switches_in_traffic_hold_what_the_model_holds_for_long() {
    for (stages, rate) in [(1, 0.7), (2, 0.3), (3, 0.5), (4, 0.5)] {
        hold_what_the_model_holds(&busy(4_000, stages, rate), 4, 20_000, &format!("switch-busy-{stages}")).unwrap();
        for (number, of) in ALLOCATORS.into_iter().enumerate() {
            let loaded = routed(2_000, (stages, rate), MESH, &router_of(of));
            hold_what_the_model_holds(&loaded, 4, 10_000, &format!("switch-allocators-{number}-{stages}")).unwrap();
        }
    }
}

#[test]
#[ignore = "takes minutes: make soak"]
fn switches_of_every_shipped_scenario_hold_what_the_model_holds() {
    let folder = root().join("testbench/piuma");
    let mut stems: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    stems.sort();
    if let Ok(only) = std::env::var("WATERSHED_ONLY") {
        stems.retain(|stem| only.split(',').any(|name| name == stem));
        assert!(!stems.is_empty(), "WATERSHED_ONLY={only} names no scenario of testbench/piuma");
    }
    let scenarios =
        stems.iter().map(|stem| hold_what_the_model_holds(&shipped(stem), 16, CYCLES, &format!("switch-{stem}")));
    let wrong: Vec<String> = scenarios.filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "takes a minute: make soak"]
fn switches_on_slow_links_hold_what_the_model_holds() {
    // Three cycles a flit, and eight to the end points.
    let links = "[link]\nwidth_bits = 24\nlocal_width_bits = 8\n";
    hold_what_the_model_holds(&crowded_on(200, links), 4, 20_000, "switch-slow").unwrap();
}

#[test]
#[ignore = "takes minutes: make soak"]
fn crowded_switches_hold_what_the_model_holds_for_long() {
    hold_what_the_model_holds(&crowded(20_000), 4, 1_000_000, "switch-crowded").unwrap();
    hold_what_the_model_holds(&crowded_scan(5_000), 4, 1_000_000, "switch-crowded-scan").unwrap();
}
