//! Each public block's page has an example that clocks it alone.
//!
//! The list names the blocks and the call that clocks each of them. A source that clocks something and is not in the list is a
//! block without an example; what is clocked with another block, or is no block, is in the second list with its reason.

use std::collections::BTreeSet;

use crate::source_text::{self, examples};
use crate::{read, root};

/// A source of a block, and what clocks it there.
const BLOCKS: [(&str, &str); 42] = [
    ("src/arith/adder.rs", "add::<F64>("),
    ("src/arith/comparator.rs", "order("),
    ("src/arith/divider.rs", "word_quotient("),
    ("src/arith/integer.rs", "multiply::<F64>("),
    ("src/arith/multiplier.rs", "multiply::<F32>("),
    ("src/arith/pipe.rs", ".tick("),
    ("src/arith/quad.rs", ".tick("),
    ("src/arith/stages/mod.rs", ".clock("),
    ("src/arith/tree.rs", ".tick("),
    ("src/armed/admission.rs", "descends("),
    ("src/armed/client.rs", ".act("),
    ("src/armed/end.rs", ".tick("),
    ("src/armed/engine.rs", ".tick("),
    ("src/armed/ethernet.rs", ".tick("),
    ("src/armed/leaf.rs", ".act("),
    ("src/armed/manager.rs", ".act("),
    ("src/armed/reduce.rs", "reduce_contributions("),
    ("src/armed/root.rs", ".act("),
    ("src/armed/soft.rs", ".act("),
    ("src/fabric/arbiter/mod.rs", ".pick("),
    ("src/fabric/bench.rs", ".tick("),
    ("src/fabric/fault.rs", ".tick("),
    ("src/fabric/network.rs", ".step("),
    ("src/fabric/replay.rs", ".tick("),
    ("src/fabric/router.rs", ".step("),
    ("src/fabric/traffic/mod.rs", ".tick("),
    ("src/kernel/storage.rs", ".edge("),
    ("src/kernel/wake.rs", ".pop_due("),
    ("src/kernel/wheel.rs", ".take("),
    ("src/pbv/ce.rs", ".tick("),
    ("src/pbv/engine.rs", ".step("),
    ("src/pbv/gather.rs", ".take("),
    ("src/pbv/metrics.rs", ".advance("),
    ("src/pbv/node.rs", ".step("),
    ("src/pbv/priority.rs", ".next("),
    ("src/pbv/reports.rs", ".look("),
    ("src/pbv/tracking.rs", ".tick("),
    ("src/piuma/cce.rs", ".accept("),
    ("src/piuma/ceng.rs", ".tick("),
    ("src/piuma/claim/mod.rs", ".grant("),
    ("src/piuma/core.rs", ".tick("),
    ("src/piuma/scan.rs", ".leave("),
];

/// Blocks that need a core beside them: their examples clock both.
const BESIDE_A_CORE: [(&str, &str); 4] = [
    ("src/piuma/host/mod.rs", ".tick("),
    ("src/piuma/processor.rs", ".tick("),
    ("src/piuma/rank/mod.rs", ".tick("),
    ("src/piuma/registers.rs", ".store("),
];

/// Sources that clock something and are no blocks of their own.
const PARTS: [(&str, &str); 15] = [
    ("src/arith/bank.rs", "lanes of the tree"),
    ("src/arith/stages/tree.rs", "shown by the page of the stages"),
    ("src/arith/unit.rs", "a segment of the datapaths"),
    ("src/armed/end/clock.rs", "the clock of the end point"),
    ("src/armed/lib.rs", "hands on to the block in the wire"),
    ("src/armed/tables.rs", "the discard port holds nothing"),
    ("src/fabric/join.rs", "the traits"),
    ("src/fabric/traffic/with_traffic.rs", "hands on to a block and to traffic"),
    ("src/fabric/topology/trees.rs", "steps through a graph"),
    ("src/pbv/ce/memory.rs", "part of the collective engine"),
    ("src/pbv/event.rs", "writes an event down"),
    ("src/pbv/system.rs", "hands on to engine or node"),
    ("src/piuma/end.rs", "hands on to core, processor, rank, traffic"),
    ("src/piuma/ordered/node.rs", "steps through a tree"),
    ("src/piuma/scan_stages.rs", "part of the scan unit"),
];

#[test]
fn every_block_s_page_has_an_example_that_clocks_it() {
    for (path, clock) in BLOCKS.iter().chain(&BESIDE_A_CORE) {
        let found = examples(&read(path));
        let good = found.iter().any(|code| code.contains("assert") && code.contains(clock));
        assert!(good, "{path}: no example of its documentation calls `{clock}` and asserts what comes of it");
    }
}

#[test]
fn whatever_is_clocked_is_a_block_with_an_example_or_part_of_one() {
    let named = BLOCKS.iter().chain(&BESIDE_A_CORE).chain(&PARTS);
    let named: BTreeSet<&str> = named.map(|(path, _)| *path).collect();
    for folder in ["kernel", "arith", "fabric", "piuma", "armed", "pbv"] {
        for path in source_text::files(&root().join("src").join(folder)) {
            let name = path.strip_prefix(root()).expect("below the root").to_string_lossy().replace('\\', "/");
            let text = read(&name);
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let clocks =
                ["tick", "clock", "act", "step"].iter().any(|name| code.contains(&format!("fn {name}(&mut self")));
            assert!(
                !clocks || named.contains(&*name),
                "{name} clocks something: give its page an example and add it to the list in \
                 testbench/project/blocks_have_examples.rs"
            );
        }
    }
    for (path, _) in PARTS {
        assert!(root().join(path).is_file(), "{path} is gone");
    }
}
