//! The cost of the engines of each family.

use std::collections::BTreeMap;

use super::super::config::Scenario;
use super::super::{pbv, segments};
use super::model::{Block, Datapath, Format, SetSwitch};
use super::{Basis, BlockResources, CostSheet, DESCRIPTOR_BITS, FRAME_BITS, OWNER_BITS, levels, ports_of};
use watershed_arith::{Accumulate, DType, Op};
use watershed_armed::tables::{MOST_ANSWERS, MOST_ORDERS};
use watershed_piuma::CengCfg;

/// Bits of what a frame is matched by: the address of its reduction.
const ADDRESS_BITS: u64 = 44;

/// The datapaths of a two-input unit that does these, and whether the twin has them all.
pub(super) fn datapaths(of: impl IntoIterator<Item = (Op, DType)>) -> (Vec<(Datapath, Format)>, Basis) {
    let (mut lanes, mut basis) = (Vec::new(), Basis::Fitted);
    for (op, dtype) in of {
        let integer = !dtype.is_float();
        let path = match op {
            Op::Barrier => continue,
            // Four lanes that are kept together, and a window of digits: the twin has them, the grid has them in quad units only.
            Op::MinMaxLoc | Op::MinMaxNumLoc | Op::RepSum => {
                basis = Basis::NotSynthesised;
                if op == Op::RepSum { Datapath::Add } else { Datapath::Compare }
            }
            Op::Min | Op::Max | Op::MinNum | Op::MaxNum => Datapath::Compare,
            Op::Sum if !integer => Datapath::Add,
            Op::Prod if !integer => Datapath::Multiply,
            _ => Datapath::Integer,
        };
        let lane = (path, Format::of(dtype));
        if !lanes.contains(&lane) {
            lanes.push(lane);
        }
    }
    lanes.sort_unstable_by_key(|&(path, format)| (path, format.bits, format.significand));
    (lanes, basis)
}

/// In words: `sum of f64, minimum and maximum of i64`.
fn lane_labels(lanes: &[(Datapath, Format)]) -> String {
    if lanes.is_empty() {
        return "nothing but barriers".into();
    }
    let each = |(path, format): &(Datapath, Format)| format!("{} of {}", path.label(), format.label());
    lanes.iter().map(each).collect::<Vec<_>>().join(", ")
}

pub(super) fn piuma(scenario: &Scenario, widths: &BTreeMap<u64, u64>, front: u16, flit: u64, bill: &mut CostSheet) {
    let ceng = &scenario.switch.ceng;
    let ids = u64::from(scenario.switch.collective_ids);
    let tree = watershed_arith::TreeCfg { radix: ceng.radix.known() as u8, unit_stages: ceng.stages as u8 };
    let results = u64::from(ceng.result_slots.or(CengCfg::enough_result_slots(tree, front)));
    let (radix, stages) = (u64::from(ceng.radix.known()), u64::from(ceng.stages));
    for (&width, &count) in widths {
        // A request and a response register of `width` bits for every input and id, and the operation of the id (12 bits).
        let bits = ids * (2 * width * width + 12);
        let ports = width.saturating_sub(1);
        let block = |ids| Block::Switch(SetSwitch { ports, ids, channels: 2, ..SetSwitch::default() });
        // What ids take of a switch beside its channels.
        let (with, without) = (bill.own_cost(&block(ids)), bill.own_cost(&block(0)));
        let made = BlockResources { nand2: with.nand2 - without.nand2, flip_flops: bits as f64, period: None, ..with };
        let detail = format!("{ids} ids x {width} inputs x 2 x {width} bits");
        bill.add("configuration registers", detail, count, made.storing(bits));
    }
    let count: u64 = widths.values().sum();
    let planes = u64::from(segments::planes(scenario));
    let each = if planes > 1 { format!(", each for {planes} planes") } else { String::new() };
    let slots = u64::from(ceng.operand_slots);
    let collectives = scenario.collectives.iter();
    let (lanes, basis) =
        datapaths(collectives.filter_map(|of| Some((of.op?, of.accumulate.map_or(of.dtype, Accumulate::accumulator)))));
    let lanes = &lanes[..];
    let waiting = bill.own_cost(&Block::Ceng { radix, stages, lanes, slots });
    let waiting = waiting.times(planes).storing(radix * slots * planes * flit);
    let detail = format!("{} a port, {radix} ports{each}", ceng.operand_slots);
    bill.add("CENG operand slots", detail, count, waiting);
    let block = Block::Tree { radix, stages, lanes };
    let units = radix.saturating_sub(1);
    let made = bill.fitted(&block);
    let made = BlockResources { adders: units, comparators: units, basis: made.basis.max(basis), ..made };
    let detail = format!("{units} two-input units of {stages} stages: {}", lane_labels(lanes));
    bill.add("CENG tree", detail, count, made.storing(units * stages * flit));
    let made = bill.queue(flit, results).times(planes);
    let detail = format!("{results} words{each}");
    bill.add("CENG result queue", detail, count, made.storing(results * planes * flit));
}

/// The descriptors of an armed engine with what finds those of a frame, arms them and writes them: those of the twin, or a memory
/// beside comparators of addresses, which takes no less than the largest table of registers.
fn descriptor_table(bill: &CostSheet, descriptors: u64, ports: u64) -> BlockResources {
    let bits = descriptors * DESCRIPTOR_BITS;
    let block = |descriptors| Block::DescriptorTable { descriptors, ports };
    let largest = (bill.most_registers() / DESCRIPTOR_BITS).max(1);
    let made = if descriptors == 0 {
        BlockResources::default()
    } else if descriptors <= largest {
        bill.fitted(&block(descriptors))
    } else {
        let most = bill.fitted(&block(largest));
        let compare =
            BlockResources::logic(bill.technology.gates.compare_bit.value * (descriptors * ADDRESS_BITS) as f64);
        let memory = bill.memory(bits, bill.area_of(most));
        let period = bill.fitted(&block(descriptors)).period;
        memory.plus(compare).plus(BlockResources { period, ..BlockResources::default() })
    };
    BlockResources { comparators: descriptors, ..made.storing(bits) }
}

pub(super) fn armed(scenario: &Scenario, engines: u64, ports: u64, switches: u64, bill: &mut CostSheet) {
    let Some(armed) = &scenario.armed else { return };
    let engine = &armed.engine;
    let descriptors = u64::from(engine.descriptors);
    let memory_ports = u64::from(engine.memory_ports);
    let made = descriptor_table(bill, descriptors, memory_ports);
    let detail = format!("{descriptors} of 72 bytes, {descriptors} address comparators{}", ports_of(memory_ports));
    bill.add("engine descriptors", detail, engines, made);
    let (entrance, exit) = (u64::from(engine.entrance_frames), u64::from(engine.exit_frames));
    // The twin's entrance holds the frame that comes in.
    let made = bill.fitted(&Block::FrameEntrance).plus(bill.fitted(&Block::FrameExit { frames: exit }));
    let made = if entrance > 1 { made.plus(bill.array((entrance - 1) * FRAME_BITS)) } else { made };
    let detail = format!("{entrance} at the entrance, {exit} at the exit, 84 bytes each");
    bill.add("engine frame buffers", detail, engines, made.storing((entrance + exit) * FRAME_BITS));
    let stages = u64::from(engine.stages);
    let opcodes = armed.reductions.iter().map(super::super::armed::config::Reduction::opcode);
    let (lanes, basis) = datapaths(opcodes.map(|opcode| (opcode.op, opcode.dtype)));
    // What keeps four words together was synthesised with all operations of its family only.
    let is_whole = basis > Basis::Fitted;
    let (made, what) = if is_whole {
        (bill.fitted(&Block::QuadUnit { stages }), "all operations of its family".to_owned())
    } else {
        (bill.unit(&lanes, stages).times(4), lane_labels(&lanes))
    };
    let made = BlockResources { adders: 4, comparators: 4, ..made };
    let detail = format!("four 64-bit lanes of {stages} stages: {what}");
    bill.add("engine quad unit", detail, engines, made.storing(stages * (4 * 64 + 16)));
    // Four time-outs of 24 bits and three thresholds of 20 a switch.
    let made = bill.registers(4 * 24 + 3 * 20);
    bill.add("engine registers", "4 time-outs, 3 thresholds".into(), switches, made);
    let entries = u64::from(armed.table_entries);
    // Child ports, the parent port, a wait count, and the owner: an address, a VNI, a cookie.
    let bits = entries * (ports + levels(ports) + 20 + OWNER_BITS);
    let detail = format!("{entries} entries of {} bits", bits / entries.max(1));
    let made = bill.array(bits);
    bill.add("multicast table", detail, switches, made);
    if armed.agent.is_some() {
        // Its channel is among those of the input buffers. A switch assembles a frame a port, holds orders and answers, and knows
        // its ways: a number of each child, its own two, the port towards the agent, who the agent is, the last order.
        let (orders, answers) = (MOST_ORDERS as u64, MOST_ANSWERS as u64 + 1);
        let frames = ports + orders + answers;
        let ways = (ports + 2) * levels(switches.max(2)) + levels(ports) + 32;
        let made = bill.array(frames * FRAME_BITS + ways + 32 + 4);
        let detail =
            format!("a frame for each of {ports} ports, {orders} orders, {answers} answers, the ways to the agent");
        bill.add("management", detail, switches, made);
    }
}

/// What takes a message, judges it, watches and answers, in one cycle: that of the twin's packet engine of one context *\[chosen\]*.
/// Where there are more, they are read from memories, and nothing selects them. Its tracking store and its unit are rows of their own.
fn message_logic(bill: &CostSheet) -> BlockResources {
    let whole = bill.fitted(&Block::PacketEngine { contexts: 1 });
    let beside = bill.fitted(&Block::Tracker { contexts: 1 }).plus(bill.unit(&[(Datapath::Compare, Format::I64)], 3));
    let (nand2, flip_flops) = (whole.nand2 - beside.nand2, whole.flip_flops - beside.flip_flops);
    // The twin was synthesised with two participants.
    BlockResources { nand2, flip_flops, basis: Basis::Extrapolated, ..whole }
}

pub(super) fn pbv(scenario: &Scenario, flit: u64, switches: u64, bill: &mut CostSheet) {
    let Some(pbv) = &scenario.pbv else { return };
    let engine = &pbv.engine;
    let count = switches * u64::from(engine.per_switch);
    let contexts = u64::from(engine.contexts);
    let ports = u64::from(engine.memory_ports);
    let made = bill.array_with(128 * 17, ports);
    bill.add("PBV table", format!("128 entries of 17 bits{}", ports_of(ports)), count, made);
    let owned = contexts.max(pbv.collectives.len() as u64);
    let made = bill.array(32 + owned * (12 + 32));
    bill.add("owners", format!("of the table, and of {owned} contexts; two devices each"), count, made);
    // What is programmed is a table; what runs is the twin's tracking store, with its pipeline.
    let bits = contexts * (128 + 16);
    let made = bill.array_with(bits, ports).plus(bill.fitted(&Block::Tracker { contexts })).storing(2 * bits);
    let detail = format!("{contexts} contexts, PBV and count, programmed and running{}", ports_of(ports));
    bill.add("context store", detail, count, made);
    let detail = "of one context, a message a cycle".to_owned();
    bill.add("message logic", detail, count, message_logic(bill));
    // As long as the longest vector of the scenario; in the order of entries, and where the source merges, all participants'
    // words are kept.
    let words = |collective: &pbv::config::Collective| {
        use pbv::file::{MergeFile, OrderFile};
        let reduced = (collective.order, collective.merge.0) == (OrderFile::Arrival, MergeFile::Master);
        let copies = if reduced { 1 } else { 128 };
        u64::from(collective.words()) * copies
    };
    let words = pbv.collectives.iter().map(words).max().unwrap_or(0);
    let text = format!("{contexts} contexts x {words} words{}", ports_of(ports));
    let made = bill.array_with(contexts * words * 64, ports);
    bill.add("accumulators", text, count, made);
    let inbox = bill.queue(flit, u64::from(engine.inbox_flits));
    bill.add("inbox", format!("{} flits", engine.inbox_flits), count, inbox);
    let longest = pbv.collectives.iter().map(|collective| u64::from(collective.words())).max().unwrap_or(0);
    let feeds = u64::from(engine.feed_messages) + 2;
    let text = format!("{feeds} messages of {longest} words, those that are tracked included");
    let made = bill.array(feeds * longest * 64);
    bill.add("words before the reduction unit", text, count, made);
    let messages = u64::from(pbv.output_messages());
    let frame = longest + watershed_pbv::packet::HEADER_BYTES as u64 / 8;
    let text = format!("{messages} messages of {} flits", scenario.link.cut().flits(8 * frame as usize));
    let made = bill.array(messages * frame * 64);
    bill.add("output queue", text, count, made);
    let (places, header) = (watershed_pbv::engine::MOST_REFUSALS as u64, watershed_pbv::packet::HEADER_BYTES as u64);
    let made = bill.array(places * header * 8);
    bill.add("refusals that wait", format!("{places} frames of {header} bytes"), count, made);
    if pbv.setup.file.configuration == pbv::file::ConfigurationFile::SidePort {
        // A shift register for a write, and a counter of its bits.
        let (bits, lines) = (watershed_pbv::plan::SIDE_PORT_BITS, pbv.setup.file.side_port_lines);
        let text = format!("{} pins: clock, select, {lines} data in, 1 out; {bits} bits a write", lines + 3);
        let made = bill.registers(bits + levels(bits));
        bill.add("side port", text, switches, made);
    }
    let stages = u64::from(engine.stages);
    let (lanes, basis) = datapaths(pbv.collectives.iter().map(|collective| (collective.op, collective.dtype)));
    let made = bill.unit(&lanes, stages);
    let made = BlockResources { adders: 1, comparators: 1, basis: made.basis.max(basis), ..made };
    let units = u64::from(engine.units(scenario.link.cut()));
    let beside = if units == 1 { String::new() } else { format!(", {units} side by side") };
    let detail = format!("a two-input unit of {stages} stages{beside}: {}", lane_labels(&lanes));
    bill.add("reduction unit", detail, units * count, made.storing(stages * (64 + 5)));
}
