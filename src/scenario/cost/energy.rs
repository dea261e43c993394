//! The energy of a run (requirement H-SYN-2): events that the run has counted, times coefficients of the technology table.
//!
//! | part | events | one of them takes |
//! |---|---|---|
//! | hops | flits over links, by level | a change of half the wires beside it (`energy.bit_activity`) over the length of the link |
//! | buffer writes | the same: each hop ends in a queue | a write and a read of half its bits, in flip-flops or a memory |
//! | credits | the same: each place is given back | a change of half the wires of a credit over the link |
//! | reductions | two-input reductions of engines, by operator and format | a change of the gates of the datapath (`energy.gate_activity`) and of its registers |
//! | clock | cycles | the clock of all flip-flops; none is gated |
//! | leakage | time | all gates, flip-flops and memories |
//!
//! A reduction of P contributions takes P - 1 two-input reductions for each word, whatever the tree: each one takes a word away. Those of
//! rounds that did not end whole count as well. Prefix scans count twice as many, for the way down *\[chosen\]*. What software reduces
//! is the work of cores, which are not counted.

use std::collections::BTreeMap;

use super::super::armed::file::{DETERMINISTIC, MEAN};
use super::super::config::{CollectiveKind, Scenario};
use super::super::file::job::{self, Engine};
use super::super::result::Document;
use super::super::switches::{buffer, channel_kinds};
use super::super::{Loaded, names::NamedValues};
use super::engines::datapaths;
use super::model::Block;
use super::technology::Technology;
use super::{Cost, common, levels, stored_bits};
use watershed_arith::quad::OPCODES;
use watershed_arith::{Accumulate, DType, Op};

pub use watershed_scenario_interface::cost::{Energy, Events};

/// A number with six digits: more would be noise.
fn digits(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// What links are made of by level: their length in mm, and the energy of a bit in the queues at their ends.
fn links(scenario: &Scenario, technology: &Technology) -> (BTreeMap<String, (f64, f64)>, u64) {
    let kinds = channel_kinds(scenario);
    let layout = scenario.topology.shape.layout(&common(scenario, &kinds));
    let (flit, energy) = (stored_bits(scenario), &technology.energy);
    let registers = technology.area.register_bits.value;
    let bit = |depth: u64| {
        let large = (depth * flit) as f64 > registers;
        if large { energy.sram_bit_root_word.value * (depth as f64).sqrt() } else { energy.flip_flop_bit.value }
    };
    let mut sums: BTreeMap<String, (f64, f64, f64)> = BTreeMap::new();
    for link in &layout.plan.links {
        let ns = scenario.clock.nanoseconds(u64::from(link.latency));
        let bits = kinds.iter().map(|&kind| bit(u64::from(buffer(scenario, kind, link)))).sum::<f64>();
        let sum = sums.entry(layout.plan.levels[usize::from(link.level)].clone()).or_default();
        let mm = ns * technology.length.link.value;
        *sum = (sum.0 + mm, sum.1 + bits / kinds.len().max(1) as f64, sum.2 + 1.0);
    }
    let means = sums.into_iter().map(|(level, (mm, bits, count))| (level, (mm / count, bits / count)));
    (means.collect(), layout.plan.vcs.total().into())
}

/// The operation of a name in the words of `[[job]]`.
fn operation(name: &str) -> Option<Op> {
    match name {
        // Composed of sums.
        MEAN | DETERMINISTIC => Some(Op::Sum),
        _ => Op::from_name(name).or_else(|| OPCODES.iter().find(|of| job::operation(of) == name).map(|of| of.op)),
    }
}

/// Two-input reductions of engines: operator, format, stages of the unit, words.
fn reductions(scenario: &Scenario, document: &Document) -> BTreeMap<(Op, DType, u64), u64> {
    let mut all: BTreeMap<(Op, DType, u64), u64> = BTreeMap::new();
    let piuma = u64::from(scenario.switch.ceng.stages);
    let mut add = |what: (Op, DType, u64), participants: u64, elements: u64| {
        let words = (elements * u64::from(what.1.bits())).div_ceil(64);
        *all.entry(what).or_default() += participants.saturating_sub(1) * words;
    };
    for job in &document.jobs {
        let stages = match job.engine {
            Engine::Piuma => piuma,
            Engine::Armed => scenario.armed.as_ref().map_or(1, |armed| u64::from(armed.engine.stages)),
            Engine::Pbv => scenario.pbv.as_ref().map_or(1, |pbv| u64::from(pbv.engine.stages)),
            Engine::Software => continue,
        };
        let Some(op) = job.op.as_deref().and_then(operation) else { continue };
        let Some(dtype) = job.dtype.as_deref().and_then(DType::from_name) else { continue };
        // Sums in a wider type are sums of that type.
        let wide = scenario.collectives.iter().find(|of| of.name == job.name && job.engine == Engine::Piuma);
        let wide = wide.and_then(|of| of.accumulate).map_or(dtype, Accumulate::accumulator);
        let ways = if job.kind == CollectiveKind::Scan.name() { 2 } else { 1 };
        add((op, wide, stages), job.participants, ways * job.elements);
    }
    for call in document.programs.iter().flat_map(|programs| &programs.calls) {
        let of = scenario.collectives.iter().find(|of| of.name == call.collective && of.called);
        let Some((of, op)) = of.and_then(|of| Some((of, of.op?))) else { continue };
        add((op, of.dtype, piuma), of.participants.list.len() as u64, call.elements);
    }
    for of in document.workload.iter().flat_map(|workload| &workload.collectives) {
        let Some(op) = of.op.as_deref().and_then(operation) else { continue };
        let Some(dtype) = of.dtype.as_deref().and_then(DType::from_name) else { continue };
        if of.engine == Engine::Piuma.name() {
            add((op, dtype, piuma), of.members, of.bytes * 8 / u64::from(dtype.bits()));
        }
    }
    all.retain(|(op, ..), count| *count > 0 && *op != Op::Barrier);
    all
}

/// The energy of a two-input reduction of a word, in fJ.
fn reduction(technology: &Technology, op: Op, dtype: DType, stages: u64) -> f64 {
    let (energy, fit) = (&technology.energy, &technology.fit);
    let (lanes, _) = datapaths([(op, dtype)]);
    let lane = |&(path, format): &(super::model::Datapath, super::model::Format)| {
        let of = fit.estimate(&Block::Unit(path, format, stages));
        let gates = of.nand2 * energy.gate_activity.value * energy.gate.value;
        let registers = of.flip_flops * energy.bit_activity.value * energy.flip_flop_bit.value;
        (gates + registers) * (64 / format.bits) as f64
    };
    lanes.iter().map(lane).sum()
}

/// The energy of a run of a scenario whose hardware costs this.
pub fn energy(loaded: &Loaded, document: &Document, cost: &Cost, technology: &Technology) -> Energy {
    let scenario = &loaded.scenario;
    let (of_levels, channels) = links(scenario, technology);
    let mut events = Vec::new();
    let mut add = |event: String, count: u64, each_fj: f64| {
        if count > 0 {
            let (each_fj, energy_nj) = (digits(each_fj), digits(each_fj * count as f64 * 1e-6));
            events.push(Events { event, count, each_fj, energy_nj });
        }
    };
    let (of, flit) = (&technology.energy, stored_bits(scenario) as f64);
    let change = of.bit_activity.value;
    let credit = (1 + levels(channels)) as f64;
    for level in &document.links.levels {
        let Some(&(mm, bit)) = of_levels.get(&level.level) else { continue };
        let name = &level.level;
        add(format!("hops, {name}"), level.flits, flit * change * of.wire_mm.value * mm);
        add(format!("buffer writes, {name}"), level.flits, flit * change * bit);
        add(format!("credits, {name}"), level.flits, credit * change * of.wire_mm.value * mm);
    }
    for ((op, dtype, stages), count) in reductions(scenario, document) {
        let event = format!("reductions, {} of {}", NamedValues::name(op), NamedValues::name(dtype));
        add(event, count, reduction(technology, op, dtype, stages));
    }
    let (sum, leaks) = (&cost.total, &technology.leakage);
    let time_ns = scenario.clock.nanoseconds(document.cycles);
    add("clock cycles".into(), document.cycles, sum.flip_flops as f64 * of.flip_flop_clock.value);
    let nanowatts = sum.logic as f64 * leaks.nand2.value
        + sum.flip_flops as f64 * leaks.flip_flop.value
        + sum.sram_bits as f64 * leaks.sram_bit.value;
    // A nW over a ns is 1e-18 J, a thousandth of a fJ.
    add("leakage, cycles".into(), document.cycles, nanowatts * scenario.clock.nanoseconds(1) * 1e-3);
    let energy_nj = digits(events.iter().map(|event| event.energy_nj).sum());
    // A nJ a ns is a W.
    let power_mw = if time_ns > 0.0 { digits(energy_nj / time_ns * 1e3) } else { 0.0 };
    Energy { events, energy_nj, time_ns: digits(time_ns), power_mw }
}
