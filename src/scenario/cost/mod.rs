//! The hardware cost of a scenario: gates, flip-flops, bits of memory, area and the shortest clock period, block by block.
//!
//! Bits of storage follow from the configuration exactly: each row of a [`Cost`] is a kind of block, the number of such blocks, and what
//! one of it takes. Gates, flip-flops and periods come from [formulas](model) that are fitted to what Yosys makes of the RTL twin;
//! their coefficients stand in a [technology table](mod@technology). A row says what its figures stand on ([`Basis`]):
//!
//! | basis | |
//! |---|---|
//! | fitted | a formula, within the parameters that were synthesised |
//! | extrapolated | a formula beyond them, or of a block that works alike |
//! | not synthesised | no module of the twin: registers, memories, comparators and arbiters are counted, and the table says what each takes |
//!
//! *Chosen*, since no source says:
//!
//! - an array of more bits than `area.register_bits` is a memory macro; no array costs less than the largest one of registers; a port
//!   beyond a read and a write port adds a quarter of its area, one less saves a quarter;
//! - the units of an engine have the datapaths that the scenario's jobs need, side by side, as many as a word has lanes;
//! - channels of frames take, for a port and channel, what the twin's switch takes for those of collectives;
//! - in a switch of several stages the decisions of a cycle are divided evenly between them.
//!
//! Not counted: the end points (cores, processes, memories), the area of wires, clocks and reset, and the instruments of the model
//! (monitors, probes).

mod crossbar;
pub mod energy;
mod engines;

use std::collections::BTreeMap;

pub use watershed_reader::cost::{model, technology};
use watershed_scenario_interface::cost::tenths;
pub use watershed_scenario_interface::cost::{Basis, BlockCost, Cost, HardwareTotals, json};

use crossbar::CrossbarPorts;
use model::{Block, Datapath, Format};
use technology::Technology;

use super::config::{Family, Scenario};
use super::families::spec;
use super::run::family::builder;
use super::spec::ChannelKind;
use super::switches::{buffer, channel_kinds, pipeline};
use super::{Loaded, Problems};
use watershed_fabric::topology::{Common, Layout};
use watershed_fabric::{NodeKind, Vcs};
use watershed_piuma::claim::Wiring;

/// Bits of a reduction frame of the armed family: 84 bytes.
const FRAME_BITS: u64 = 84 * 8;
/// Bits of the owner of a multicast entry: address of the root, VNI, cookie.
const OWNER_BITS: u64 = 32 + 16 + 32;
/// Bits of an armed engine's descriptor: 72 bytes.
const DESCRIPTOR_BITS: u64 = 72 * 8;

/// A block while it is put together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct BlockResources {
    storage_bits: u64,
    sram_bits: u64,
    flip_flops: f64,
    nand2: f64,
    /// Of memories, in um2.
    sram: f64,
    adders: u64,
    comparators: u64,
    wires: u64,
    period: Option<f64>,
    basis: Basis,
}

impl BlockResources {
    fn plus(self, other: Self) -> Self {
        Self {
            storage_bits: self.storage_bits + other.storage_bits,
            sram_bits: self.sram_bits + other.sram_bits,
            flip_flops: self.flip_flops + other.flip_flops,
            nand2: self.nand2 + other.nand2,
            sram: self.sram + other.sram,
            adders: self.adders + other.adders,
            comparators: self.comparators + other.comparators,
            wires: self.wires + other.wires,
            period: [self.period, other.period].into_iter().flatten().reduce(f64::max),
            basis: self.basis.max(other.basis),
        }
    }

    fn times(self, count: u64) -> Self {
        let by = count as f64;
        Self {
            storage_bits: self.storage_bits * count,
            sram_bits: self.sram_bits * count,
            flip_flops: self.flip_flops * by,
            nand2: self.nand2 * by,
            sram: self.sram * by,
            adders: self.adders * count,
            comparators: self.comparators * count,
            wires: self.wires * count,
            ..self
        }
    }

    /// Gates at the technology table's price.
    fn logic(nand2: f64) -> Self {
        Self { nand2, basis: Basis::NotSynthesised, ..Self::default() }
    }

    /// The same, with storage counted as the configuration has it.
    fn storing(self, storage_bits: u64) -> Self {
        Self { storage_bits, ..self }
    }
}

/// The blocks of a scenario in one technology.
struct CostSheet<'a> {
    technology: &'a Technology,
    blocks: Vec<BlockCost>,
}

impl CostSheet<'_> {
    fn add(&mut self, block: &str, detail: String, count: u64, made: BlockResources) {
        if count == 0 || (BlockResources { basis: Basis::Fitted, ..made }) == BlockResources::default() {
            return;
        }
        let area = &self.technology.area;
        let nand2 = area.nand2.value;
        // Formulas may go below zero where a block is smaller than any that was synthesised.
        let (flip_flops, logic) = (made.flip_flops.max(0.0).round(), made.nand2.max(0.0).round());
        let area_um2 = tenths(logic * nand2 + flip_flops * area.flip_flop.value + made.sram);
        let each = HardwareTotals {
            storage_bits: made.storage_bits,
            flip_flops: flip_flops as u64,
            sram_bits: made.sram_bits,
            adders: made.adders,
            comparators: made.comparators,
            logic: logic as u64,
            gates: (area_um2 / nand2).round() as u64,
            area_um2,
            wires: made.wires,
        };
        let period_ps = made.period.map(f64::round);
        self.blocks.push(BlockCost { block: block.into(), detail, count, basis: made.basis, period_ps, each });
    }

    /// What a block of the formulas takes, with its parts.
    fn fitted(&self, block: &Block) -> BlockResources {
        let fit = &self.technology.fit;
        let of = fit.estimate(block);
        let basis = if fit.covers(block) { Basis::Fitted } else { Basis::Extrapolated };
        BlockResources {
            flip_flops: of.flip_flops,
            nand2: of.nand2,
            period: Some(of.period),
            basis,
            ..BlockResources::default()
        }
    }

    /// What it takes beside its parts.
    fn own_cost(&self, block: &Block) -> BlockResources {
        use model::Quantity::{FlipFlops, Nand2, Period};
        let fit = &self.technology.fit;
        let basis = if fit.covers(block) { Basis::Fitted } else { Basis::Extrapolated };
        let [nand2, flip_flops, period] = [Nand2, FlipFlops, Period].map(|quantity| fit.own_cost(block, quantity));
        BlockResources { flip_flops, nand2, period: Some(period), basis, ..BlockResources::default() }
    }

    /// Registers, each with what lets it keep its bit.
    fn registers(&self, bits: u64) -> BlockResources {
        let nand2 = self.technology.gates.hold_bit.value * bits as f64;
        BlockResources {
            storage_bits: bits,
            flip_flops: bits as f64,
            nand2,
            basis: Basis::NotSynthesised,
            ..BlockResources::default()
        }
    }

    /// A memory macro, which takes no less area than this.
    fn memory(&self, bits: u64, least: f64) -> BlockResources {
        let Technology { area, delay, .. } = self.technology;
        let period = delay.sram.value + delay.sram_root_bit.value * (bits as f64).sqrt() + delay.register.value;
        let sram = (area.sram_bit.value * bits as f64).max(least);
        BlockResources {
            storage_bits: bits,
            sram_bits: bits,
            sram,
            period: Some(period),
            basis: Basis::NotSynthesised,
            ..BlockResources::default()
        }
    }

    /// The most bits of an array of registers.
    fn most_registers(&self) -> u64 {
        self.technology.area.register_bits.value as u64
    }

    fn area_of(&self, made: BlockResources) -> f64 {
        let area = &self.technology.area;
        made.nand2 * area.nand2.value + made.flip_flops * area.flip_flop.value + made.sram
    }

    /// An array with a read and a write port: registers, or a memory macro.
    fn array(&self, bits: u64) -> BlockResources {
        let most = self.most_registers();
        if bits <= most { self.registers(bits) } else { self.memory(bits, self.area_of(self.registers(most))) }
    }

    /// The same with this many ports.
    fn array_with(&self, bits: u64, ports: u64) -> BlockResources {
        let array = self.array(bits);
        let by = (2 + ports) as f64 / 4.0;
        // Flip-flops stay, what selects them grows; of a memory the whole.
        let more = (by - 1.0) * self.area_of(BlockResources { sram: 0.0, ..array }) / self.technology.area.nand2.value;
        BlockResources { nand2: array.nand2 + more, sram: array.sram * by, ..array }
    }

    /// A queue of flits.
    fn queue(&self, width: u64, depth: u64) -> BlockResources {
        let (bits, most) = (width * depth, self.most_registers());
        if depth == 0 {
            return BlockResources::default();
        }
        if bits <= most || depth <= 2 {
            return self.fitted(&Block::Queue { width, depth }).storing(bits);
        }
        let largest = self.fitted(&Block::Queue { width, depth: (most / width).max(1) });
        self.memory(bits, self.area_of(largest))
    }

    fn arbiter(&self, requests: u64) -> BlockResources {
        BlockResources::logic(self.technology.gates.arbiter_request.value * requests as f64)
    }

    /// Datapaths of a two-input unit over 64 bits, side by side.
    fn unit(&self, lanes: &[(Datapath, Format)], stages: u64) -> BlockResources {
        let of = |&(path, format): &(Datapath, Format)| {
            self.fitted(&Block::Unit(path, format, stages)).times(64 / format.bits.clamp(1, 64))
        };
        lanes.iter().map(of).fold(BlockResources::default(), BlockResources::plus)
    }
}

/// Ports of a memory, where they are not a read and a write.
fn ports_of(ports: u64) -> String {
    if ports == 2 { String::new() } else { format!(", {ports} ports") }
}

/// The next power of two's exponent.
fn levels(n: u64) -> u64 {
    u64::from(n.max(1).next_power_of_two().trailing_zeros())
}

/// Bits of a flit where it is stored, its header included.
fn stored_bits(scenario: &Scenario) -> u64 {
    u64::from(scenario.link.flit_bits) + spec(scenario.family).header_bits(scenario)
}

/// The wires of all links, and the serialisers and deserialisers of narrow ones: a register of a flit and a counter on
/// either side of every switch port whose link takes more than a cycle for a flit.
fn links(scenario: &Scenario, layout: &Layout, bill: &mut CostSheet) {
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
        bill.add(
            "link wires",
            detail,
            count,
            BlockResources { wires: width + beside + credit, ..BlockResources::logic(0.0) },
        );
    }
    for (cycles, count) in serial {
        let detail = format!("{flit} bits in {cycles} cycles, a port: one sends, one receives");
        let made = bill.registers(2 * (flit + levels(cycles)));
        bill.add("serialisers", detail, count, made);
    }
}

/// What hangs on links that are alike.
struct LinkQueues {
    /// Flits of each channel's queue.
    depths: Vec<u64>,
    /// Bits of the credit counters of channels whose flits leave by sets of outputs.
    set_counters: u64,
    /// Bits of the other credit counters.
    unicast_counters: u64,
    /// Ports of switches with such queues.
    count: u64,
}

/// What hangs on links: queues at the inputs of switches, credit counters at their outputs.
fn buffers(scenario: &Scenario, kinds: &[ChannelKind], layout: &Layout, bill: &mut CostSheet) -> Vec<CrossbarPorts> {
    let flit = stored_bits(scenario);
    let mut ports = vec![CrossbarPorts::default(); layout.plan.count(NodeKind::Switch)];
    // Links of one latency and width are alike: queues at both ends, and counters of their credits.
    let mut alike: BTreeMap<(u16, u16, u8), LinkQueues> = BTreeMap::new();
    for link in &layout.plan.links {
        let of = alike.entry((link.latency, link.cycles_per_flit, link.level)).or_insert_with(|| {
            let depths: Vec<u64> = kinds.iter().map(|&kind| u64::from(buffer(scenario, kind, link))).collect();
            let counters = |set| {
                let of = kinds.iter().zip(&depths).filter(|(kind, _)| kind.is_set() == set);
                of.map(|(_, flits)| levels(flits + 1)).sum::<u64>()
            };
            let (set_counters, unicast_counters) = (counters(true), counters(false));
            LinkQueues { depths, set_counters, unicast_counters, count: 0 }
        });
        for node in [link.a.0, link.b.0] {
            if let Some(port) = ports.get_mut(node as usize) {
                port.links += 1;
                port.set_counters += of.set_counters;
                port.unicast_counters += of.unicast_counters;
                of.count += 1;
            }
        }
    }
    let mut queues: BTreeMap<Vec<u64>, u64> = BTreeMap::new();
    for of in alike.into_values() {
        *queues.entry(of.depths).or_default() += of.count;
    }
    for (depths, count) in queues {
        let flits: u64 = depths.iter().sum();
        let made =
            depths.iter().map(|&depth| bill.queue(flit, depth)).fold(BlockResources::default(), BlockResources::plus);
        let detail = format!("{flits} flits of {flit} bits, all channels of a port");
        bill.add("input buffers", detail, count, made.storing(flits * flit));
    }
    ports
}

/// The cost of a scenario, by its technology table.
///
/// # Errors
/// The table cannot be read, or the scenario cannot be laid out.
pub fn cost(loaded: &Loaded) -> Result<Cost, Problems> {
    cost_by(loaded, &loaded.technology()?)
}

/// The cost of a scenario by this technology table.
///
/// # Errors
/// The scenario cannot be laid out.
pub fn cost_by(loaded: &Loaded, technology: &Technology) -> Result<Cost, Problems> {
    let (wiring, engines) = builder(loaded.scenario.family).wiring(loaded)?;
    Ok(cost_with_wiring(&loaded.scenario, technology, &wiring, engines as u64))
}

/// The shortest period of a scenario in ps, and its slowest block. It needs no system: the wires of claims and the number of
/// engines change no period.
pub(crate) fn shortest_period(scenario: &Scenario, technology: &Technology) -> (f64, String) {
    let cost = cost_with_wiring(scenario, technology, &Wiring::default(), 1);
    (cost.period_ps, cost.slowest)
}

fn cost_with_wiring(scenario: &Scenario, technology: &Technology, wiring: &Wiring, engines: u64) -> Cost {
    let kinds = channel_kinds(scenario);
    let common = common(scenario, &kinds);
    let layout = scenario.topology.shape.layout(&common);
    let pipeline = pipeline(scenario);
    let flit = stored_bits(scenario);
    let switches = layout.plan.count(NodeKind::Switch);
    let mut bill = CostSheet { technology, blocks: Vec::new() };

    let ports = buffers(scenario, &kinds, &layout, &mut bill);
    links(scenario, &layout, &mut bill);
    let by_width = crossbar::switches(scenario, &kinds, &ports, &mut bill);
    let mixed = scenario.family == Family::Mixed;
    if scenario.family == Family::Piuma || mixed && kinds.contains(&ChannelKind::Collective) {
        engines::piuma(scenario, &by_width, pipeline.front(), flit, &mut bill);
        claims(scenario, wiring, &mut bill);
    }
    if scenario.armed.is_some() {
        engines::armed(scenario, engines, u64::from(layout.external_ports), switches as u64, &mut bill);
    }
    if scenario.pbv.is_some() {
        engines::pbv(scenario, flit, switches as u64, &mut bill);
    }
    summed(bill, switches as u64)
}

fn summed(bill: CostSheet, switches: u64) -> Cost {
    let CostSheet { technology, blocks } = bill;
    let total = blocks.iter().fold(HardwareTotals::default(), |sum, block| sum.plus(block.each.times(block.count)));
    let slowest = blocks.iter().filter_map(|block| Some((block.period_ps?, &block.block)));
    // The first of those that are equally slow, whatever their order.
    let slowest = slowest.reduce(|most, next| if next.0 > most.0 { next } else { most });
    let (period_ps, slowest) =
        slowest.map_or((technology.delay.register.value, String::new()), |(period, block)| (period, block.clone()));
    Cost {
        technology: technology.name.clone(),
        switches,
        total,
        per_switch: total.over(switches),
        period_ps,
        period_gates: tenths(period_ps / technology.delay.gate.value),
        frequency_mhz: (1e9 / period_ps).floor() / 1e3,
        slowest,
        blocks,
    }
}

fn common(scenario: &Scenario, kinds: &[ChannelKind]) -> Common {
    let set = kinds.iter().filter(|kind| kind.is_set()).count() as u8;
    Common {
        vcs: Vcs { set, unicast: kinds.len() as u8 - set },
        engine: set > 0,
        link: scenario.link.params(),
        local: scenario.link.local_params(),
    }
}

/// The registers, arbiters and wires of claims: as many as trees that overlap need, which the registers say.
fn claims(scenario: &Scenario, wiring: &Wiring, bill: &mut CostSheet) {
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
    let registers = bill.registers(bits);
    bill.add("claim registers", detail, 1, BlockResources { wires, ..registers });
    for set in 0..wiring.arbiters.len() {
        let n = wiring.trees.iter().filter(|tree| usize::from(tree.set) == set).count() as u64;
        let made = bill.registers(2 * n + n * (n - 1)).plus(bill.arbiter(n));
        bill.add("claim arbiter", format!("{n} trees"), 1, made);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_arith::DType;

    #[test]
    fn more_bits_never_cost_less() {
        let bill = CostSheet { technology: Technology::nangate45(), blocks: Vec::new() };
        let arrays =
            [1, 100, 4095, 4096, 4097, 8192, 30_000, 60_000, 1 << 20].map(|bits| bill.area_of(bill.array(bits)));
        assert!(arrays.is_sorted(), "{arrays:?}");
        // A flip-flop and its multiplexer a bit; of a large memory its cells.
        assert!((arrays[1] - 100.0 * (5.32 + 2.33 * 0.798)).abs() < 1e-6);
        assert!((arrays[8] - 0.56 * f64::from(1 << 20)).abs() < 1e-6);
        for width in [32, 88, 124, 700] {
            let queues: Vec<f64> = (1..200).map(|depth| bill.area_of(bill.queue(width, depth))).collect();
            assert!(queues.is_sorted(), "{width}: {queues:?}");
        }
        let ports = [1, 2, 3, 4].map(|ports| bill.area_of(bill.array_with(2000, ports)));
        assert!((ports[3] / ports[1] - 1.5).abs() < 1e-9 && (ports[0] / ports[1] - 0.75).abs() < 1e-9, "{ports:?}");
    }

    #[test]
    fn every_formula_is_finite_and_grows_with_its_block() {
        let fit = &Technology::nangate45().fit;
        for dtype in DType::ALL.iter().copied() {
            let format = Format::of(dtype);
            let paths = if format.exponent == 0 {
                [Datapath::Compare, Datapath::Integer]
            } else {
                [Datapath::Add, Datapath::Multiply]
            };
            for path in paths {
                let of: Vec<_> = (1..=6).map(|stages| fit.estimate(&Block::Unit(path, format, stages))).collect();
                let what = format!("{path:?} {dtype}: {of:?}");
                assert!(of.iter().all(|of| of.nand2 > 100.0 && of.period > 300.0), "{what}");
                assert!(of[0].period > of[2].period && of[2].flip_flops > of[0].flip_flops, "{what}");
            }
        }
        // Comparators of one to six stages were synthesised; others count as the nearest of them, and are not called fitted.
        let compare = |stages| Block::Unit(Datapath::Compare, Format::I64, stages);
        assert_eq!([1, 2, 3, 6, 7].map(|stages| fit.covers(&compare(stages))), [true, true, true, true, false]);
        assert!(fit.estimate(&compare(2)).period < fit.estimate(&compare(1)).period);
        let lanes = &[(Datapath::Add, Format::F64)][..];
        let trees: Vec<f64> =
            [2, 4, 8, 16, 32].map(|radix| fit.estimate(&Block::Tree { radix, stages: 3, lanes }).nand2).to_vec();
        assert!(trees.windows(2).all(|pair| pair[1] > 1.8 * pair[0]), "{trees:?}");
    }
}
