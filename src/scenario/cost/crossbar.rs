//! The cost of a switch's crossbar: the decisions and multiplexers of set-routed channels, and of point-to-point channels behind them.

use std::collections::BTreeMap;

use super::model::{Block, SetSwitch, TWIN_FLIT};
use super::{Basis, BlockResources, CostSheet, stored_bits};
use crate::config::{Arbiter, Family, Scenario};
use crate::spec::ChannelKind;
use crate::switches::{pipeline, router};
use watershed_fabric::RouterCfg;

/// The links of a switch, and the bits of the credit counters behind them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CrossbarPorts {
    pub(super) links: u64,
    /// Of set-routed channels.
    pub(super) set_counters: u64,
    /// Of point-to-point channels.
    pub(super) unicast_counters: u64,
}

/// The crossbars of all switches; how many switches there are by their ports, that of their engine among them.
pub(super) fn switches(
    scenario: &Scenario,
    kinds: &[ChannelKind],
    ports: &[CrossbarPorts],
    bill: &mut CostSheet,
) -> BTreeMap<u64, u64> {
    let mut alike: BTreeMap<CrossbarPorts, u64> = BTreeMap::new();
    for &of in ports {
        *alike.entry(of).or_default() += 1;
    }
    // An armed engine sits on a link.
    let engine = kinds.iter().any(|kind| kind.is_set()) && scenario.family != Family::Armed;
    let mut by_width = BTreeMap::new();
    for (ports, count) in alike {
        let width = ports.links + u64::from(engine);
        *by_width.entry(width).or_default() += count;
        of_a_switch(scenario, kinds, (ports, width), count, bill);
    }
    by_width
}

/// Those of a kind of switch. Point-to-point channels take what set-routed packets leave of inputs and outputs in a cycle; while those
/// are decided on, they compute routes and choose channels.
fn of_a_switch(
    scenario: &Scenario,
    kinds: &[ChannelKind],
    (ports, width): (CrossbarPorts, u64),
    count: u64,
    bill: &mut CostSheet,
) {
    let flit = stored_bits(scenario);
    let number = |of: &dyn Fn(ChannelKind) -> bool| kinds.iter().filter(|&&kind| of(kind)).count() as u64;
    let set = number(&ChannelKind::is_set);
    let stages = u64::from(pipeline(scenario).stages());
    let registers = (stages - 1) * width;
    let pipelined = format!("{registers} pipeline registers");
    let is_round_robin = scenario.switch.arbiter == Arbiter::RoundRobin;
    let mut before: Option<BlockResources> = None;
    if set > 0 {
        let collective = number(&|kind| kind == ChannelKind::Collective);
        let ids = if collective > 0 { u64::from(scenario.switch.collective_ids) } else { 1 };
        let made = set_routed(bill, (width, set, ids), flit);
        let is_twin = is_round_robin && collective == set;
        before = Some(BlockResources { basis: if is_twin { made.basis } else { Basis::Extrapolated }, ..made });
        let made = pipelined_allocation(bill, made, stages, is_twin);
        let counters = ports.set_counters;
        let detail =
            format!("{width} x {width} ports, {set} channels, {pipelined}, {counters} bits of credit counters");
        let made = with_registers(made, registers * flit).storing(registers * flit + counters);
        bill.add("crossbar and allocators", detail, count, made);
    }
    let channels = kinds.len() as u64 - set;
    if channels > 0 {
        let alone = scaled_to_flit(bill.own_cost(&Block::Unicast { ports: ports.links, channels, depth: 0 }), flit);
        let of = behind_set_allocation(bill, alone, before, (ports.links, channels));
        // The formulas are of a switch without set-routed channels, and of one with the two of a plane.
        let is_twin = is_round_robin && [0, 2].contains(&set) && router(scenario) == RouterCfg::default();
        let made = pipelined_allocation(bill, of, stages, is_twin);
        let (registers, pipelined) = if set == 0 { (registers, format!(", {pipelined}")) } else { (0, String::new()) };
        let made = with_registers(made, registers * flit);
        let (links, counters) = (ports.links, ports.unicast_counters);
        let detail =
            format!("{links} x {links} ports, {channels} channels{pipelined}, {counters} bits of credit counters");
        bill.add("point-to-point channels", detail, count, made.storing(registers * flit + counters));
    }
}

fn with_registers(made: BlockResources, bits: u64) -> BlockResources {
    made.plus(BlockResources { flip_flops: bits as f64, ..BlockResources::default() })
}

/// Point-to-point channels whose last decisions wait for those of set-routed ones, if there are any.
fn behind_set_allocation(
    bill: &CostSheet,
    alone: BlockResources,
    before: Option<BlockResources>,
    (ports, channels): (u64, u64),
) -> BlockResources {
    let Some(before) = before else { return alone };
    let own = bill.own_cost(&Block::Whole { of: SetSwitch { ports, ..SetSwitch::default() }, channels });
    let slower = [alone.period, before.period].into_iter().flatten().fold(0.0, f64::max);
    let period = own.period.map(|own| slower + own);
    BlockResources { period, basis: alone.basis.max(own.basis).max(before.basis), ..alone }
}

/// The same decisions in several stages, each with its share of the time.
fn pipelined_allocation(bill: &CostSheet, made: BlockResources, stages: u64, is_twin: bool) -> BlockResources {
    let register = bill.technology.delay.register.value;
    let period = made.period.map(|period| register + (period - register).max(0.0) / stages as f64);
    let basis = if is_twin && stages == 1 { made.basis } else { made.basis.max(Basis::Extrapolated) };
    BlockResources { period, basis, ..made }
}

/// The fit is of flits of the twin's width: what is not decided but carried grows with the flit.
fn scaled_to_flit(made: BlockResources, flit: u64) -> BlockResources {
    let by = flit as f64 / TWIN_FLIT as f64;
    BlockResources { nand2: made.nand2 * by, flip_flops: made.flip_flops * by, ..made }
}

/// The decisions and the multiplexers of set-routed channels, credits and links of their ports included, without configuration registers.
fn set_routed(bill: &CostSheet, (width, channels, ids): (u64, u64, u64), flit: u64) -> BlockResources {
    let ports = width.saturating_sub(1);
    let block = |ids| Block::Switch(SetSwitch { ports, ids, channels, ..SetSwitch::default() });
    let with_ids = bill.own_cost(&block(ids));
    BlockResources { period: with_ids.period, basis: with_ids.basis, ..scaled_to_flit(bill.own_cost(&block(0)), flit) }
}
