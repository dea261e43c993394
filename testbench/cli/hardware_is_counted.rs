//! The hardware of scenarios, block by block: bits of storage follow from the parameters, by hand.

use watershed::scenario::cost::{Cost, HardwareTotals, cost};
use watershed::scenario::{load_file, shipped};

use crate::support::root;

/// Bits of a frame of the armed family: 84 bytes.
const FRAME_BITS: u64 = 84 * 8;

fn of(name: &str, sets: &[&str]) -> Cost {
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    let (path, _) = shipped::find(name).unwrap();
    let loaded = load_file(&root().join(path), &sets).unwrap_or_else(|problems| panic!("{problems}"));
    cost(&loaded).unwrap()
}

/// The bits that all blocks of a kind store.
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
fn a_larger_parameter_raises_only_the_cost_of_its_block() {
    let before = of("allreduce-die", &[]);
    let deeper = of("allreduce-die", &["switch.ceng.stages=4"]);
    assert_eq!(each(&deeper, "CENG tree"), 16 * 9 * 4 * 124);
    assert_eq!(each(&deeper, "input buffers"), each(&before, "input buffers"));
    let ids = of("allreduce-die", &["switch.collective_ids=8"]);
    assert_eq!(each(&ids, "configuration registers"), 2 * each(&before, "configuration registers"));
    let more = of("fig2-tree", &["armed.engine.descriptors=16"]);
    assert_eq!(each(&more, "engine descriptors"), 2 * each(&of("fig2-tree", &[]), "engine descriptors"));
}

/// Every third, the largest as a part of itself.
#[test]
fn shipped_scenarios_have_a_cost() {
    let largest = "allreduce-16384-nodes";
    let paths = shipped::SHIPPED.iter().map(|(path, _)| *path).filter(|path| shipped::stem(path) != largest);
    have_a_cost(paths.step_by(3), &[]);
    have_a_cost([largest], &["topology.size=[4, 4]"]);
}

#[test]
#[ignore = "takes long: make soak"]
fn every_shipped_scenario_has_a_cost() {
    have_a_cost(shipped::SHIPPED.iter().map(|(path, _)| *path), &[]);
}

fn have_a_cost(paths: impl IntoIterator<Item = &'static str>, sets: &[&str]) {
    for path in paths {
        let cost = of(path, sets);
        assert!(cost.total.storage_bits > 0 && cost.total.gates > cost.total.storage_bits, "{path}");
        // The area is that of its parts.
        let HardwareTotals { logic, flip_flops, .. } = cost.total;
        let cells = logic as f64 * 0.798 + flip_flops as f64 * 5.32;
        assert!(cost.total.sram_bits > 0 || (cost.total.area_um2 / cells - 1.0).abs() < 1e-3, "{path}");
        assert!(cost.period_ps > 500.0 && cost.blocks.iter().any(|block| block.block == cost.slowest), "{path}");
    }
}
