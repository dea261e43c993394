//! The hardware cost of a scenario: bits of storage, arithmetic units, and an estimate in gate equivalents.
//!
//! Bits follow from the configuration exactly: each row of a [`Cost`] is a kind of block, the number of such blocks,
//! and the bits, adders and comparators of one. Gate equivalents (GE: the area of a two-input NAND) are an estimate by
//! the table below; its numbers are *chosen* within what textbooks give for standard cells, no silicon was measured.
//! They serve to compare configurations with each other, not to predict an area.
//!
//! | unit | gate equivalents | reasoning |
//! |---|---|---|
//! | storage bit in a register or small queue | 6 | a D flip-flop |
//! | each bit of an array beyond 4096 | 1.5 | an SRAM cell; the first 4096 bits at 6 cover the periphery, so that no array costs less than a smaller one |
//! | integer adder, a bit | 12 | a full adder (6) with carry look-ahead |
//! | comparator, a bit | 4 | XNOR and its share of a tree |
//! | shifter of n bits | 3 n ceil(log2 n) | a multiplexer (3) a bit and level |
//! | leading-zero counter of n bits | 4 n | |
//! | multiplier of n x n bits | 8 n n | AND and full adder a bit, compressed |
//! | arbiter of n requests | 12 n | cursor, two priority chains |
//! | crossbar, a bit and crossing | 3 | a multiplexer input |
//!
//! A floating-point adder (significand of p bits, exponent of e bits) is an exponent comparator (e), an alignment
//! shifter (p + 3), an adder (p + 3), a leading-zero counter and a normalisation shifter (p + 3), and a rounding adder
//! (p). A reduction unit holds an adder, a comparator and the gates of the logical operations for the widest lane its
//! family reduces. It has as many narrower ones as a word has lanes: 2 x 32 and 4 x 16 bits share the 64-bit adder, so
//! they count once.
//!
//! Not counted: the end points (cores, processes, memories), clocks and reset, and the instruments of the model
//! (monitors, probes).

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value as Json;

use super::build::{BuildOptions, build};
use super::config::{Family, Link, Scenario};
use super::mixed::channels::has_engines;
use super::switches::{ChannelKind, buffer, channel_kinds, pipeline};
use super::{Loaded, Problems, armed, mixed, segments};
use watershed_armed::tables::{MOST_ANSWERS, MOST_ORDERS};
use watershed_fabric::topology::{Common, Layout};
use watershed_fabric::{NodeKind, Vcs};
use watershed_piuma::CengCfg;
use watershed_piuma::claim::Wiring;

/// Bits that say which flit of a packet this is, and its channel: head, tail, channel (5).
const CONTROL_BITS: u64 = 7;
/// Side-band bits that travel and are stored with a flit where it has no header: those of control, flags (5), collective id (12).
pub const SIDE_BAND_BITS: u64 = CONTROL_BITS + 5 + 12;
/// Bits of a reduction frame of the armed family: 84 bytes.
const FRAME_BITS: u64 = 84 * 8;
/// Bits of the owner of a multicast entry: address of the root, VNI, cookie.
const OWNER_BITS: u64 = 32 + 16 + 32;
/// Bits of an armed engine's descriptor: 72 bytes.
const DESCRIPTOR_BITS: u64 = 72 * 8;
/// What an array has beyond this many bits costs what a memory's cells cost.
const MEMORY_BITS: u64 = 4096;

/// What a scenario's hardware costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    /// Switches in the system.
    pub switches: u64,
    /// Kinds of blocks.
    pub blocks: Vec<BlockCost>,
    /// All of it.
    pub total: Sum,
    /// The mean of a switch, with its engines.
    pub per_switch: Sum,
}

/// One kind of block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BlockCost {
    /// Its name.
    pub block: String,
    /// What one of it is made of, in words.
    pub detail: String,
    /// How many there are.
    pub count: u64,
    /// One of it.
    pub each: Sum,
}

/// Bits, units, gates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Sum {
    /// Bits of storage.
    pub storage_bits: u64,
    /// Two-input adders (of any format).
    pub adders: u64,
    /// Two-input comparators.
    pub comparators: u64,
    /// Estimated gate equivalents, storage included.
    pub gates: u64,
    /// Wires of links.
    pub wires: u64,
}

impl Sum {
    /// Storage alone.
    fn storage(bits: u64) -> Self {
        Self { storage_bits: bits, gates: storage_gates(bits), ..Self::default() }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            storage_bits: self.storage_bits + other.storage_bits,
            adders: self.adders + other.adders,
            comparators: self.comparators + other.comparators,
            gates: self.gates + other.gates,
            wires: self.wires + other.wires,
        }
    }

    /// Storage with a number of ports: each port beyond a read and a write port adds a quarter of the array, one port
    /// less saves a quarter.
    fn memory(bits: u64, ports: u64) -> Self {
        let array = Self::storage(bits);
        Self { gates: array.gates * (2 + ports) / 4, ..array }
    }

    fn times(self, count: u64) -> Self {
        Self {
            storage_bits: self.storage_bits * count,
            adders: self.adders * count,
            comparators: self.comparators * count,
            gates: self.gates * count,
            wires: self.wires * count,
        }
    }

    fn over(self, count: u64) -> Self {
        let count = count.max(1);
        Self {
            storage_bits: self.storage_bits.div_ceil(count),
            adders: self.adders.div_ceil(count),
            comparators: self.comparators.div_ceil(count),
            gates: self.gates.div_ceil(count),
            wires: self.wires.div_ceil(count),
        }
    }
}

/// Gate equivalents of storage that is one array.
pub fn storage_gates(bits: u64) -> u64 {
    let memory = bits.saturating_sub(MEMORY_BITS);
    bits.min(MEMORY_BITS) * 6 + memory * 3 / 2
}

/// Ports of a memory, where they are not a read and a write.
fn ports_of(ports: u64) -> String {
    if ports == 2 { String::new() } else { format!(", {ports} ports") }
}

fn levels(n: u64) -> u64 {
    u64::from(n.max(1).next_power_of_two().trailing_zeros())
}

/// Gate equivalents of a floating-point adder.
pub fn float_adder_gates(significand: u64, exponent: u64) -> u64 {
    let wide = significand + 3;
    let shifter = 3 * wide * levels(wide);
    4 * exponent + 12 * exponent + 2 * shifter + 12 * wide + 4 * wide + 12 * significand
}

/// Gate equivalents of a two-input reduction unit of 64-bit words, without its registers: a floating-point adder of
/// f64 and its lanes, an integer adder, a comparator, the logical operations; with `multiplier`, a product as well.
pub fn unit_gates(multiplier: bool) -> u64 {
    float_adder_gates(53, 11) + 12 * 64 + 4 * 64 + 3 * 64 + if multiplier { 8 * 53 * 53 } else { 0 }
}

fn arbiter_gates(requests: u64) -> u64 {
    12 * requests
}

/// Bits of a flit where it is stored, its header included.
fn stored_bits(scenario: &Scenario) -> u64 {
    let collective = CONTROL_BITS + u64::from(Link::HEADER_BITS);
    let header = match scenario.family {
        Family::Piuma => collective,
        Family::Mixed if has_engines(scenario) => collective.max(SIDE_BAND_BITS),
        _ => SIDE_BAND_BITS,
    };
    u64::from(scenario.link.flit_bits) + header
}

/// The wires of all links, and the serialisers and deserialisers of narrow ones: a register of a flit and a counter on
/// either side of every switch port whose link takes more than a cycle for a flit.
fn links(scenario: &Scenario, layout: &Layout, add: &mut impl FnMut(&str, String, u64, Sum)) {
    let link = &scenario.link;
    let channels = u64::from(layout.plan.vcs.total());
    let switches = layout.plan.count(NodeKind::Switch) as u32;
    let flit = u64::from(link.wire_bits());
    let beside = stored_bits(scenario) - flit;
    // A credit names its channel.
    let credit = 1 + levels(channels);
    // Directions by level and width, ports of switches by cycles a flit.
    let mut directions: BTreeMap<(u8, u64), u64> = BTreeMap::new();
    let mut serial: BTreeMap<u64, u64> = BTreeMap::new();
    for of in &layout.plan.links {
        let cycles = u64::from(of.cycles_per_flit);
        // A topology file may have given single links a width of their own: then the least that takes as long.
        let width = link.width(of.level, &layout.plan.levels).map(u64::from);
        let width = width.filter(|&width| flit.div_ceil(width) == cycles).unwrap_or(flit.div_ceil(cycles));
        *directions.entry((of.level, width)).or_default() += 2;
        if cycles > 1 {
            let ends = [of.a.0, of.b.0].iter().filter(|&&node| node < switches).count() as u64;
            *serial.entry(cycles).or_default() += ends;
        }
    }
    for ((level, width), count) in directions {
        let name = &layout.plan.levels[usize::from(level)];
        let detail =
            format!("{name}, a direction: {width} for flits of {flit} bits, {beside} side band, {credit} credit");
        add("link wires", detail, count, Sum { wires: width + beside + credit, ..Sum::default() });
    }
    for (cycles, count) in serial {
        let detail = format!("{flit} bits in {cycles} cycles, a port: one sends, one receives");
        add("serialisers", detail, count, Sum::storage(2 * (flit + levels(cycles))));
    }
}

/// The cost of a scenario.
///
/// # Errors
/// The scenario cannot be laid out.
pub fn cost(loaded: &Loaded) -> Result<Cost, Problems> {
    let scenario = &loaded.scenario;
    let kinds = channel_kinds(scenario);
    let common = common(scenario, &kinds);
    let layout = scenario.topology.shape.layout(&common);
    let pipeline = pipeline(scenario);
    let plan = &layout.plan;
    let flit = stored_bits(scenario);
    let armed = scenario.family == Family::Armed;
    let switches = plan.count(NodeKind::Switch);

    // What hangs on links: queues at the inputs of switches, credit counters at their outputs.
    let mut ports = vec![0u64; switches];
    let mut queues: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let mut counters = 0;
    for link in &plan.links {
        let depths = || kinds.iter().map(|&kind| u64::from(buffer(scenario, kind, link)));
        let flits = depths().sum();
        let counter = depths().map(|flits| levels(flits + 1)).sum::<u64>();
        for node in [link.a.0, link.b.0] {
            if let Some(count) = ports.get_mut(node as usize) {
                *count += 1;
                *queues.entry((flits, flit)).or_default() += 1;
                counters += counter;
            }
        }
    }
    let mut blocks = Vec::new();
    let mut add = |block: &str, detail: String, count: u64, each: Sum| {
        if count > 0 && each != Sum::default() {
            blocks.push(BlockCost { block: block.into(), detail, count, each });
        }
    };
    for ((flits, bits), count) in queues {
        add(
            "input buffers",
            format!("{flits} flits of {bits} bits, all channels of a port"),
            count,
            Sum::storage(flits * bits),
        );
    }
    links(scenario, &layout, &mut add);
    add("credit counters", "of all outputs of all switches".into(), 1, Sum::storage(counters));

    let channels = u64::from(common.vcs.total());
    let mut widths: BTreeMap<u64, u64> = BTreeMap::new();
    for &count in &ports {
        *widths.entry(count + u64::from(common.engine && !armed)).or_default() += 1;
    }
    for (width, count) in &widths {
        let crossbar = 3 * width * width * flit;
        let allocation = 2 * width * arbiter_gates(width * channels);
        let stages = u64::from(pipeline.stages()) - 1;
        let registers = stages * width * flit;
        let each = Sum { gates: crossbar + allocation, ..Sum::default() }.plus(Sum::storage(registers));
        add(
            "crossbar and allocators",
            format!("{width} x {width} ports, {channels} channels, {} pipeline registers", stages * width),
            *count,
            each,
        );
    }
    let mixed = scenario.family == Family::Mixed;
    let (wiring, engines) = built(loaded)?;
    if scenario.family == Family::Piuma || mixed && kinds.contains(&ChannelKind::Collective) {
        piuma(scenario, &widths, pipeline.front(), flit, &mut add);
        claims(scenario, &wiring, &mut add);
    }
    if scenario.armed.is_some() {
        self::armed(scenario, engines as u64, u64::from(layout.external_ports), switches as u64, &mut add);
    }
    if scenario.pbv.is_some() {
        pbv(scenario, flit, switches as u64, &mut add);
    }
    let total = blocks.iter().fold(Sum::default(), |sum, block| sum.plus(block.each.times(block.count)));
    Ok(Cost { switches: switches as u64, blocks, total, per_switch: total.over(switches as u64) })
}

fn common(scenario: &Scenario, kinds: &[ChannelKind]) -> Common {
    let set = kinds.iter().filter(|kind| matches!(kind, ChannelKind::Collective | ChannelKind::Frames)).count() as u8;
    Common {
        vcs: Vcs { set, unicast: kinds.len() as u8 - set },
        engine: set > 0,
        link: scenario.link.params(),
        local: scenario.link.local_params(),
    }
}

fn piuma(
    scenario: &Scenario,
    widths: &BTreeMap<u64, u64>,
    front: u16,
    flit: u64,
    add: &mut impl FnMut(&str, String, u64, Sum),
) {
    let ceng = &scenario.switch.ceng;
    let ids = u64::from(scenario.switch.collective_ids);
    let tree = watershed_arith::TreeCfg { radix: ceng.radix as u8, unit_stages: ceng.stages as u8 };
    let results = u64::from(ceng.result_slots.or(CengCfg::enough_result_slots(tree, front)));
    let (radix, stages) = (u64::from(ceng.radix), u64::from(ceng.stages));
    let units = radix.saturating_sub(1);
    for (width, count) in widths {
        // A request and a response register of `width` bits for every input and id, and the operation of the id (12 bits).
        let bits = ids * (2 * width * width + 12);
        add(
            "configuration registers",
            format!("{ids} ids x {width} inputs x 2 x {width} bits"),
            *count,
            Sum::storage(bits),
        );
    }
    let count: u64 = widths.values().sum();
    let planes = u64::from(segments::planes(scenario));
    let each = if planes > 1 { format!(", each for {planes} planes") } else { String::new() };
    let slots = radix * u64::from(ceng.operand_slots) * planes * flit;
    add(
        "CENG operand slots",
        format!("{} a port, {radix} ports{each}", ceng.operand_slots),
        count,
        Sum::storage(slots),
    );
    let pipe = units * stages * flit;
    let sum = Sum { adders: units, comparators: units, gates: units * unit_gates(true), ..Sum::default() };
    add(
        "CENG tree",
        format!("{units} two-input units of {stages} stages"),
        count,
        sum.plus(Sum { storage_bits: pipe, gates: 6 * pipe, ..Sum::default() }),
    );
    add("CENG result queue", format!("{results} words{each}"), count, Sum::storage(results * planes * flit));
}

/// The registers, arbiters and wires of claims: as many as trees that overlap need, which the registers say.
/// What only a system that was built can tell: the wires of claims, and the armed family's engines.
fn built(loaded: &Loaded) -> Result<(Wiring, usize), Problems> {
    let scenario = &loaded.scenario;
    Ok(match scenario.family {
        Family::Piuma if trees(scenario) > 1 => {
            (build(loaded, BuildOptions { no_monitors: true, ..BuildOptions::default() })?.claims.wiring, 0)
        }
        Family::Piuma | Family::Fabric | Family::Pbv => (Wiring::default(), 0),
        Family::Armed => {
            (Wiring::default(), armed::build::build(loaded, armed::build::BuildOptions::default())?.engines.len())
        }
        Family::Mixed => {
            let built = mixed::build::assembled(loaded)?;
            let wiring = built.piuma.map(|ready| ready.claims.wiring).unwrap_or_default();
            (wiring, built.armed.map_or(0, |ready| ready.engines.len()))
        }
    })
}

/// Trees that registers may hold.
fn trees(scenario: &Scenario) -> u64 {
    let multicasts = scenario.programs.as_ref().map_or(0, |programs| programs.multicasts.len());
    multicasts as u64 + scenario.collectives.iter().map(|of| u64::from(of.segments)).sum::<u64>()
}

fn claims(scenario: &Scenario, wiring: &Wiring, add: &mut impl FnMut(&str, String, u64, Sum)) {
    if wiring.is_empty() {
        return;
    }
    let depth = scenario.programs.as_ref().map_or(0, |programs| u64::from(programs.core.mcast_queue_depth));
    let (mut bits, mut joins, mut wires) = (0, 0, 0);
    for tree in &wiring.trees {
        // A multicast's first wire counts credits; its other counters, and those of a collective, count to three.
        let first = if tree.source.is_some() { levels(depth + 1) } else { 2 };
        bits += tree.joins.iter().map(|at| u64::from(at.inputs) * (first + 2) + 1).sum::<u64>();
        joins += tree.joins.len() as u64;
        // Two towards the root, and one from it where there are grants to hand on.
        let links = (tree.joins.len() - 1 + tree.leaves.len() + usize::from(tree.source.is_some())) as u64;
        wires += links * if tree.source.is_some() { 2 } else { 3 };
    }
    let detail = format!("{joins} joins of {} trees", wiring.trees.len());
    add("claim registers", detail, 1, Sum { wires, ..Sum::storage(bits) });
    for set in 0..wiring.arbiters.len() {
        let n = wiring.trees.iter().filter(|tree| usize::from(tree.set) == set).count() as u64;
        let storage = Sum::storage(2 * n + n * (n - 1));
        let gates = storage.gates + arbiter_gates(n);
        add("claim arbiter", format!("{n} trees"), 1, Sum { gates, ..storage });
    }
}

fn armed(scenario: &Scenario, engines: u64, ports: u64, switches: u64, add: &mut impl FnMut(&str, String, u64, Sum)) {
    let Some(armed) = &scenario.armed else { return };
    let engine = &armed.engine;
    let descriptors = u64::from(engine.descriptors);
    add(
        "engine descriptors",
        format!("{descriptors} of 72 bytes{}", ports_of(u64::from(engine.memory_ports))),
        engines,
        Sum::memory(descriptors * DESCRIPTOR_BITS, u64::from(engine.memory_ports)),
    );
    let frames = u64::from(engine.entrance_frames) + u64::from(engine.exit_frames);
    add(
        "engine frame buffers",
        format!("{} at the entrance, {} at the exit, 84 bytes each", engine.entrance_frames, engine.exit_frames),
        engines,
        Sum::storage(frames * FRAME_BITS),
    );
    let stages = u64::from(engine.stages);
    let pipe = stages * (4 * 64 + 16);
    let each = Sum {
        adders: 4,
        comparators: 4 + descriptors,
        gates: 4 * unit_gates(false) + descriptors * 4 * 44,
        ..Sum::default()
    };
    add(
        "engine quad unit",
        format!("four 64-bit lanes of {stages} stages, {descriptors} address comparators"),
        engines,
        each.plus(Sum { storage_bits: pipe, gates: 6 * pipe, ..Sum::default() }),
    );
    // Four time-outs of 24 bits and three thresholds of 20 a switch.
    add("engine registers", "4 time-outs, 3 thresholds".into(), switches, Sum::storage(4 * 24 + 3 * 20));
    let entries = u64::from(armed.table_entries);
    // Child ports, the parent port, a wait count, and the owner: an address, a VNI, a cookie.
    let bits = entries * (ports + levels(ports) + 20 + OWNER_BITS);
    add(
        "multicast table",
        format!("{entries} entries of {} bits", bits / entries.max(1)),
        switches,
        Sum::storage(bits),
    );
    if armed.agent.is_some() {
        // Its channel is among those of the input buffers. A switch assembles a frame a port, holds orders and answers, and knows
        // its ways: a number of each child, its own two, the port towards the agent, who the agent is, the last order.
        let (orders, answers) = (MOST_ORDERS as u64, MOST_ANSWERS as u64 + 1);
        let frames = ports + orders + answers;
        let ways = (ports + 2) * levels(switches.max(2)) + levels(ports) + 32;
        add(
            "management",
            format!("a frame for each of {ports} ports, {orders} orders, {answers} answers, the ways to the agent"),
            switches,
            Sum::storage(frames * FRAME_BITS + ways + 32 + 4),
        );
    }
}

fn pbv(scenario: &Scenario, flit: u64, switches: u64, add: &mut impl FnMut(&str, String, u64, Sum)) {
    let Some(pbv) = &scenario.pbv else { return };
    let engine = &pbv.engine;
    let count = switches * u64::from(engine.per_switch);
    let contexts = u64::from(engine.contexts);
    let ports = u64::from(engine.memory_ports);
    add("PBV table", format!("128 entries of 17 bits{}", ports_of(ports)), count, Sum::memory(128 * 17, ports));
    let owned = contexts.max(pbv.collectives.len() as u64);
    add(
        "owners",
        format!("of the table, and of {owned} contexts; two devices each"),
        count,
        Sum::storage(32 + owned * (12 + 32)),
    );
    add(
        "context store",
        format!("{contexts} contexts, PBV and count, programmed and running{}", ports_of(ports)),
        count,
        Sum::memory(contexts * 2 * (128 + 16), ports),
    );
    // As long as the longest vector of the scenario; in the order of entries, and where the source merges, all participants'
    // words are kept.
    let words = |collective: &super::pbv::config::Collective| {
        use super::pbv::file::{MergeFile, OrderFile};
        let reduced = (collective.order, collective.merge.0) == (OrderFile::Arrival, MergeFile::Master);
        let copies = if reduced { 1 } else { 128 };
        u64::from(collective.words()) * copies
    };
    let words = pbv.collectives.iter().map(words).max().unwrap_or(0);
    let text = format!("{contexts} contexts x {words} words{}", ports_of(ports));
    add("accumulators", text, count, Sum::memory(contexts * words * 64, ports));
    add("inbox", format!("{} flits", engine.inbox_flits), count, Sum::storage(u64::from(engine.inbox_flits) * flit));
    let longest = pbv.collectives.iter().map(|collective| u64::from(collective.words())).max().unwrap_or(0);
    let feeds = u64::from(engine.feed_messages) + 2;
    let text = format!("{feeds} messages of {longest} words, those that are tracked included");
    add("words before the reduction unit", text, count, Sum::storage(feeds * longest * 64));
    let messages = u64::from(pbv.output_messages());
    let frame = longest + watershed_pbv::packet::HEADER_BYTES as u64 / 8;
    let text = format!("{messages} messages of {} flits", scenario.link.cut().flits(8 * frame as usize));
    add("output queue", text, count, Sum::storage(messages * frame * 64));
    if pbv.setup.file.configuration == super::pbv::file::ConfigurationFile::SidePort {
        // A shift register for a write, and a counter of its bits.
        let (bits, lines) = (watershed_pbv::plan::SIDE_PORT_BITS, pbv.setup.file.side_port_lines);
        add(
            "side port",
            format!("{} pins: clock, select, {lines} data in, 1 out; {bits} bits a write", lines + 3),
            switches,
            Sum::storage(bits + levels(bits)),
        );
    }
    let pipe = u64::from(engine.stages) * (64 + 5);
    let each = Sum { adders: 1, comparators: 1, gates: unit_gates(true), ..Sum::default() };
    let each = each.plus(Sum { storage_bits: pipe, gates: 6 * pipe, ..Sum::default() });
    let units = u64::from(engine.units(scenario.link.cut()));
    let beside = if units == 1 { String::new() } else { format!(", {units} side by side") };
    add("reduction unit", format!("a two-input unit of {} stages{beside}", engine.stages), units * count, each);
}

/// The cost as a piece of JSON.
pub fn json(cost: &Cost) -> Json {
    serde_json::to_value(cost).unwrap_or(Json::Null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shipped;

    fn of(name: &str, sets: &[&str]) -> Cost {
        let (path, text) = shipped::find(name).unwrap();
        let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
        let base = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path);
        let loaded = crate::load_text(path, text, base.parent().unwrap(), name, &sets);
        cost(&loaded.unwrap_or_else(|problems| panic!("{problems}"))).unwrap()
    }

    fn each(cost: &Cost, block: &str) -> u64 {
        cost.blocks.iter().filter(|found| found.block == block).map(|found| found.each.storage_bits * found.count).sum()
    }

    #[test]
    fn a_die_has_the_bits_its_parameters_say() {
        let cost = of("allreduce-die", &[]);
        // A flit is stored with its header (id, sequence number, flags: 53 bits), head, tail and channel (7 bits).
        assert_eq!((cost.switches, cost.total.adders), (16, 16 * 9));
        assert_eq!(each(&cost, "CENG operand slots"), 16 * 10 * 2 * 124);
        assert_eq!(each(&cost, "CENG tree"), 16 * 9 * 3 * 124);
        assert_eq!(each(&cost, "CENG result queue"), 16 * 14 * 124);
        // 48 links between switches with both ends at one (round trip 12), 8 to cores (round trip 4); two collective
        // channels of a round trip each and two of 8 flits.
        assert_eq!(each(&cost, "input buffers"), (96 * (2 * 12 + 16) + 8 * (2 * 4 + 16)) * 124);
        let sum = cost.blocks.iter().map(|block| block.each.storage_bits * block.count).sum::<u64>();
        assert_eq!(sum, cost.total.storage_bits);
    }

    #[test]
    fn an_agent_costs_a_channel_and_what_switches_know_of_it() {
        let (without, with) = (of("fig2-tree", &[]), of("fig2-tree", &["armed.agent.end_point=15"]));
        assert_eq!((without.switches, each(&without, "management")), (5, 0));
        // A third channel as deep as each of the two of reductions: a frame, or the round trip of the credits.
        let flits = |cost: &Cost| {
            let queues = cost.blocks.iter().filter(|found| found.block == "input buffers");
            queues.map(|found| (found.count, found.each.storage_bits / 88)).collect::<Vec<_>>()
        };
        assert_eq!((flits(&without), flits(&with)), (vec![(17, 38), (8, 40)], vec![(17, 38 + 11), (8, 40 + 12)]));
        // Five ports of a switch at most: a frame for each, four orders, four answers and one that leaves.
        assert!(each(&with, "management") >= 5 * (5 + 4 + 5) * FRAME_BITS);
        assert_eq!(each(&with, "engine descriptors"), each(&without, "engine descriptors"));
    }

    #[test]
    fn what_grows_costs_more_and_nothing_else() {
        let before = of("allreduce-die", &[]);
        let deeper = of("allreduce-die", &["switch.ceng.stages=4"]);
        assert_eq!(each(&deeper, "CENG tree"), 16 * 9 * 4 * 124);
        assert_eq!(each(&deeper, "input buffers"), each(&before, "input buffers"));
        let ids = of("allreduce-die", &["switch.collective_ids=8"]);
        assert_eq!(each(&ids, "configuration registers"), 2 * each(&before, "configuration registers"));
        let more = of("fig2-tree", &["armed.engine.descriptors=16"]);
        assert_eq!(each(&more, "engine descriptors"), 2 * each(&of("fig2-tree", &[]), "engine descriptors"));
    }

    #[test]
    fn every_shipped_scenario_has_a_cost() {
        for (path, _) in shipped::SHIPPED {
            let cost = of(path, &[]);
            assert!(cost.total.storage_bits > 0 && cost.total.gates > cost.total.storage_bits, "{path}");
        }
    }

    #[test]
    fn more_bits_never_cost_less() {
        assert_eq!((storage_gates(10), storage_gates(4096), storage_gates(4098)), (60, 24_576, 24_579));
    }

    #[test]
    fn a_wider_adder_is_larger_but_less_than_in_proportion_to_its_square() {
        let (single, double) = (float_adder_gates(24, 8), float_adder_gates(53, 11));
        assert!(double > 2 * single && double < 5 * single, "{single} {double}");
    }
}
