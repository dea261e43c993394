//! Prefix scans in rank order (P-COL-2): integers are a serial scan's bits, floating point the oracle's in the declared
//! order, for all ranks, subsets, roots and shapes; an order that the tree cannot keep is refused.

use crate::sets;
use crate::share;
use crate::support::{Draw, die, latency, load, mesh, pass, ready, refusal, run_with};
use watershed::scenario::run::RunOptions;

/// Runs scans of integers and compares every row with a serial scan of what was contributed.
fn serial(text: &str, sets: &[String]) {
    let loaded = load(text, sets);
    let result = run_with(text, sets, &RunOptions::default());
    assert!(result.document.passed(), "{:?}\n{text}", result.document.checks);
    for (index, collective) in loaded.scenario.collectives.iter().enumerate() {
        let rows = loaded.data(index);
        let mut sum = vec![0u32; rows[0].len()];
        for (rank, row) in rows.iter().enumerate() {
            let with: Vec<u32> = sum.iter().zip(row).map(|(sum, own)| sum.wrapping_add(*own as u32)).collect();
            let expected = if collective.inclusive { &with } else { &sum };
            let got: Vec<u32> = result.data[index].rows.row(rank).iter().map(|&word| word as u32).collect();
            assert_eq!(&got, expected, "rank {rank}\n{text}");
            sum = with;
        }
    }
}

fn scan(rest: &str) -> String {
    format!("[[collective]]\nkind = \"scan\"\ndtype = \"u32\"\ndata = {{ random = \"bits\" }}\n{rest}\n")
}

#[test]
fn integers_on_a_die_from_every_subset_in_order() {
    let mut draw = Draw(3);
    for round in 0..10 {
        let mut subset = draw.subset(8);
        subset.sort_unstable();
        let inclusive = round % 2 == 0;
        serial(&die(&scan(&format!("participants = {subset:?}\nelements = 9\ninclusive = {inclusive}"))), &[]);
    }
}

#[test]
fn ranks_need_not_be_in_the_order_of_ports_or_cores() {
    // Inside a tile any order will do, as the order register says which port comes first.
    for order in ["[3, 1, 0, 2, 7, 4, 6, 5]", "[7, 6, 5, 4, 3, 2, 1, 0]", "[2, 0, 3, 1]", "[5]"] {
        serial(&die(&scan(&format!("participants = {order}\nelements = 5"))), &[]);
    }
}

#[test]
fn on_rows_of_switches_with_every_engine_and_buffer() {
    for (size, concentration) in [(4u32, 2u32), (7, 1), (3, 4)] {
        let text = mesh(&[size], concentration, &scan("elements = 21"));
        for (stages, slots, buffers) in [(1, 128, 14), (3, 1, 1), (6, 5, 3)] {
            let set = sets!["switch.ceng.stages={stages}"; "switch.ceng.scan_slots={slots}"; "switch.collective_buffer_flits={buffers}"];
            serial(&text, &set);
        }
    }
}

#[test]
fn floating_point_has_the_bits_of_the_declared_order() {
    for dtype in ["f64", "f32", "bf16", "f16"] {
        for inclusive in [true, false] {
            for op in ["sum", "prod", "max"] {
                let text = die(&format!(
                    "[[collective]]\nkind = \"scan\"\ndtype = \"{dtype}\"\nop = \"{op}\"\nelements = 33\ninclusive = {inclusive}\n\
                     data = {{ random = \"bits\" }}\n"
                ));
                let document = pass(&text, &[]);
                assert_eq!(document.collectives[0].bit_exact, Some(true));
            }
        }
    }
}

#[test]
fn the_declared_order_shows_where_additions_do_not_associate() {
    // 2^53, 1, 1, 1 at ranks 0 to 3: serially every 1 is lost, rank 3 has 2^53. Ranks 2 and 3 meet rank 4's subtree last.
    let text = die("[[collective]]\nkind = \"scan\"\nparticipants = [0, 1, 4, 5]\nroot = \"core0\"\n\
         data = { values = [[9007199254740992.0], [1.0], [1.0], [1.0]] }\n");
    let result = run_with(&text, &[], &RunOptions::default());
    assert!(result.document.passed(), "{:?}", result.document.checks);
    let got: Vec<f64> = result.data[0].rows.iter().map(|row| f64::from_bits(row[0])).collect();
    let big = 9_007_199_254_740_992.0;
    // In the far tile x4 is put after what is before it, and core 5 adds its own to (2^53 + 1) + 1: always the big one.
    assert_eq!(got, [big, big, big, big]);
    let other = text.replace("9007199254740992.0], [1.0], [1.0]", "1.0], [1.0], [9007199254740992.0]");
    let result = run_with(&other, &[], &RunOptions::default());
    let got: Vec<f64> = result.data[0].rows.iter().map(|row| f64::from_bits(row[0])).collect();
    assert_eq!(got, [1.0, 2.0, big + 2.0, big + 4.0]);
}

#[test]
fn a_scan_streams_at_one_element_in_as_many_cycles_as_a_switch_has_inputs() {
    let time = |elements: u64| {
        let text =
            die(&format!("[[collective]]\nkind = \"scan\"\nparticipants = [0, 1, 2, 3]\nelements = {elements}\n"));
        pass(&text, &sets![r#"memory.bandwidth_gbps="unlimited""#]).collectives[0].latency_cycles.expect("it ended")
    };
    assert_eq!(time(600) - time(200), 400 * 4);
}

#[test]
fn the_order_of_evaluation_changes_nothing() {
    let text = die(&scan("elements = 50"));
    let run = |options: &RunOptions<'_>| {
        let result = run_with(&text, &[], options);
        assert!(result.document.passed());
        (result.document.cycles, result.data)
    };
    let plain = run(&RunOptions::default());
    assert_eq!(run(&RunOptions { order_seed: Some(1), ..RunOptions::default() }), plain);
    assert_eq!(run(&RunOptions { no_skip: true, ..RunOptions::default() }), plain);
}

#[test]
fn an_order_that_the_tree_cannot_keep_is_refused() {
    let message = refusal(&die(&scan("participants = [0, 4, 1, 5]\nroot = \"core0\"")), &[]);
    assert!(message.contains("ranks 1 and 3 stand in the way: both come to core0 by port 5"), "{message}");
    let message = refusal(&die("[[collective]]\nkind = \"allreduce\"\ninclusive = true\n"), &[]);
    assert!(message.contains("only a scan is inclusive or exclusive"), "{message}");
}

/// A system of nodes.
fn nodes(size: &[u32], sockets: u32, (tiles, positions): (u32, u32), rest: &str) -> String {
    format!(
        "family = \"piuma\"\n[topology]\nkind = \"nodes\"\nsize = {size:?}\nsockets = {sockets}\ntiles = {tiles}\n\
         positions = {positions}\n{rest}"
    )
}

/// One in five in `make test`: of seven shapes all cores or some of them.
#[test]
fn on_every_shape_of_nodes_with_random_participants() {
    // Sides, sockets, tiles and positions; H-SCAN-1.
    let shapes: [(&[u32], u32, (u32, u32)); 17] = [
        (&[1], 16, (4, 4)),
        (&[2], 16, (4, 4)),
        (&[3], 1, (4, 4)),
        (&[5], 4, (4, 4)),
        (&[40], 3, (2, 4)),
        (&[2, 2], 3, (2, 2)),
        (&[3, 3], 2, (4, 4)),
        (&[4, 3], 5, (4, 4)),
        (&[2, 2], 16, (4, 4)),
        (&[3, 3, 3], 2, (4, 4)),
        (&[2, 2, 2], 3, (2, 4)),
        (&[2, 2, 2, 2], 2, (4, 4)),
        (&[3, 3, 3, 3], 1, (2, 2)),
        (&[2, 3, 2, 2], 3, (2, 4)),
        (&[4, 4], 2, (1, 2)),
        (&[3, 3, 3], 2, (1, 2)),
        (&[4, 2, 2], 2, (1, 2)),
    ];
    let mut draw = Draw(29);
    let mut cases = Vec::new();
    for (round, (size, sockets, die)) in shapes.into_iter().enumerate() {
        let cores = u64::from(size.iter().product::<u32>() * sockets * die.0.min(2) * die.1);
        for half in 0..2 {
            let mut subset = draw.subset(cores);
            subset.sort_unstable();
            let whom = if half == 0 { String::new() } else { format!("participants = {subset:?}\n") };
            let elements = 1 + draw.below(7);
            let inclusive = (round + half) % 2 == 0;
            let scan = scan(&format!("{whom}elements = {elements}\ninclusive = {inclusive}"));
            cases.push(nodes(size, sockets, die, &scan));
        }
    }
    for text in share::one_in(5, cases) {
        serial(&text, &[]);
    }
}

/// In one in three of the shapes in `make test`, inclusive and exclusive in turn; both in every shape in `make soak`.
#[test]
fn a_scan_on_nodes_takes_at_most_four_times_an_allreduce() {
    let shapes: [(&[u32], u32); 11] = [
        (&[2], 16),
        (&[1], 1),
        (&[1], 16),
        (&[17], 1),
        (&[4, 4], 16),
        (&[3, 3, 3, 3], 2),
        (&[3, 3], 2),
        (&[40], 4),
        (&[2, 2, 2, 2], 4),
        (&[3, 3, 3], 2),
        (&[2, 2, 2, 2], 2),
    ];
    for (at, (size, sockets)) in share::one_in(3, shapes.into_iter().enumerate()) {
        let time = |what: &str| latency(&nodes(size, sockets, (4, 4), what), &[]);
        let all = time("[[collective]]\nkind = \"allreduce\"\n");
        let first = at.is_multiple_of(2);
        for inclusive in share::one_in(2, [first, !first]) {
            let scan = time(&format!("[[collective]]\nkind = \"scan\"\ninclusive = {inclusive}\n"));
            assert!(scan <= 4 * all, "{size:?} x {sockets}: {scan} cycles, an all-reduce {all}");
        }
    }
}

#[test]
fn other_orders_of_ranks_are_kept_or_refused_with_two_of_them() {
    // 2 x 2 nodes of 2 sockets, 16 cores each: backwards; nodes down the columns first; the sockets of each node exchanged.
    let all: Vec<u32> = (0..64).collect();
    let backwards: Vec<u32> = all.iter().rev().copied().collect();
    let columns: Vec<u32> = [0, 2, 1, 3].iter().flat_map(|node| node * 16..(node + 1) * 16).collect();
    let exchanged: Vec<u32> = all.iter().map(|end| end ^ 8).collect();
    // What of the first node is last, all others between.
    let around: Vec<u32> = (8..64).chain(0..8).collect();
    for order in [backwards, columns, exchanged, around] {
        serial(&nodes(&[2, 2], 2, (4, 4), &scan(&format!("participants = {order:?}\nelements = 3"))), &[]);
    }
    // Cores of two nodes in turn: a node's total would hold ranks 0, 2, 4.
    let order: Vec<u32> = (0..8).flat_map(|core| [core, core + 16]).collect();
    let message = refusal(&nodes(&[2], 2, (4, 4), &scan(&format!("participants = {order:?}"))), &[]);
    assert!(message.contains("ranks 0 and 2 stand in the way: both reach the root by way of node n0"), "{message}");
}

#[test]
fn a_root_that_is_named_is_the_root() {
    for root in ["n0_s0_core0", "n1_s2_sw5", "n2_s1_core7"] {
        let text = nodes(&[3], 3, (4, 4), &scan(&format!("elements = 2\nroot = \"{root}\"")));
        serial(&text, &[]);
        let ready = ready(&text, &[]);
        let at = ready.collectives[0].footprint().root.expect("a root");
        assert_eq!(ready.system.node_name(at), root);
    }
}

#[test]
fn the_own_value_costs_its_read_its_unit_and_bandwidth() {
    let time = |inclusive: bool, sets: &[String]| {
        let text = die(&format!("[[collective]]\nkind = \"scan\"\ninclusive = {inclusive}\nelements = 1\n"));
        latency(&text, sets)
    };
    for (stages, read) in [(1, 0u64), (3, 0), (3, 7), (6, 20)] {
        let set = sets!["switch.ceng.stages={stages}"; "memory.read_latency_cycles={read}"; r#"memory.bandwidth_gbps="unlimited""#];
        assert_eq!(time(true, &set) - time(false, &set), stages + read, "{stages} stages, {read} cycles to read");
    }
    // At 16 bits a cycle a core with both streams moves an element in 8 cycles in an exclusive scan, in 12 in an inclusive one.
    let long = |inclusive: bool, elements: u64| {
        let text = die(&format!(
            "[[collective]]\nkind = \"scan\"\ninclusive = {inclusive}\nelements = {elements}\nparticipants = [0, 1]\n"
        ));
        latency(&text, &sets!["memory.bandwidth_gbps=16"])
    };
    assert_eq!([false, true].map(|inclusive| long(inclusive, 480) - long(inclusive, 240)), [240 * 8, 240 * 12]);
}
