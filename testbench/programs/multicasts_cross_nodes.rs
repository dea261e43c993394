//! Multicasts over systems of nodes of several sizes, from every kind of core to random subsets, where only what is used is
//! built: everybody gets the message once, in the cycle of the shortest way, and the whole system does the same (P-MC-1 to
//! P-MC-3).

use crate::support::{Draw, load, run_with};
use watershed::fabric::topology::{Die, Nodes, Subnodes, Topology as _};
use watershed::scenario::build::{BuildOptions, build};
use watershed::scenario::result::Document;
use watershed::scenario::run::RunOptions;

fn nodes(size: &[u32], sockets: u32, tiles: u16, positions: u16) -> Nodes {
    let mut shape = Nodes {
        size: size.to_vec(),
        sockets,
        subnodes: Subnodes::default(),
        die: Die { tiles, positions },
        hsio_ports: 1,
        socket_latency: 25,
        node_latency: 50,
        socket_width: 1,
        node_width: 1,
        distance: false,
    };
    while !shape.budget().suffices {
        shape.hsio_ports += 1;
    }
    shape
}

fn shapes() -> Vec<Nodes> {
    vec![
        nodes(&[], 3, 4, 4),
        nodes(&[2], 2, 3, 2),
        nodes(&[5], 2, 4, 2),
        nodes(&[3, 4], 1, 2, 3),
        nodes(&[2, 2, 2], 2, 1, 4),
        nodes(&[6, 6], 4, 4, 4),
    ]
}

/// A message from a core to others, each of which reports the cycle in which it has it.
fn text(shape: &Nodes, source: u32, receivers: &[u32], more: &str) -> String {
    let Nodes { size, sockets, die, hsio_ports, .. } = shape;
    format!(
        "family = \"piuma\"\n[topology]\nkind = \"nodes\"\nsize = {size:?}\nsockets = {sockets}\ntiles = {}\npositions = {}\n\
         hsio_ports = {hsio_ports}\n[[multicast]]\nid = 1\nsource = {source}\nreceivers = {receivers:?}\n\
         [[program]]\ncores = [{source}]\ntext = \"mcast.send 1, 0xfeed, 4, 2\\n{more}\"\n\
         [[program]]\ncores = {receivers:?}\ntext = \"mcast.wait r1, r2, 1, 8\\nexpect r1, 0xfeed\\nreport %cycle\"\n",
        die.tiles, die.positions
    )
    .replace("size = []\n", "")
}

fn reports(document: &Document) -> Vec<(u64, u64)> {
    let programs = document.programs.as_ref().expect("programs ran");
    programs.cores.iter().flat_map(|core| core.reports.iter().map(|report| (core.core, report.cycle))).collect()
}

/// Cycles of the links and switches on the way between two cores: a tree has the ways from its receivers to the source,
/// backwards.
fn way(shape: &Nodes, from: u32, to: u32) -> u64 {
    let (root, mut at) = (shape.end_place(from).switch, shape.end_place(to).switch);
    let mut cycles = 0;
    while let Some(port) = shape.hop(at, root) {
        let link = shape.link(at, port).expect("a way only takes ports that have a link");
        let latency = match link.level {
            3 => shape.socket_latency,
            4 => shape.node_latency,
            _ => 5,
        };
        cycles += u64::from(latency) + 1;
        at = link.switch;
    }
    cycles
}

#[test]
fn from_every_kind_of_core_to_random_subsets_in_the_cycles_of_the_way() {
    let mut draw = Draw(0xca57);
    for shape in shapes() {
        let cores = shape.cores().unwrap() as u32;
        // One core of each position of the first and the last tile, in some socket of some node.
        let kinds = shape.die_cores();
        for kind in 0..kinds {
            let source = draw.below(u64::from(cores / kinds)) as u32 * kinds + kind;
            let count = 1 + draw.below(u64::from(cores - 1).min(24));
            let mut receivers: Vec<u32> = (0..count).map(|_| draw.below(u64::from(cores)) as u32).collect();
            receivers.sort_unstable();
            receivers.dedup();
            receivers.retain(|&core| core != source);
            if receivers.is_empty() {
                receivers.push((source + 1) % cores);
            }
            let text = text(&shape, source, &receivers, "");
            let document = run_with(&text, &[], &RunOptions::default()).document;
            assert!(document.passed(), "{:#?}\n{text}", document.checks);
            let got = reports(&document);
            assert_eq!(got.len(), receivers.len(), "{text}");
            for (core, cycle) in got {
                // Issue, crossbar and queue; a local link; the way; the last switch and its local link; queue, crossbar
                // and a check before the report.
                let expected = 2 + 2 + way(&shape, source, core as u32) + 2 + 1 + 1 + 1;
                assert_eq!(cycle, expected, "from {source} to {core}\n{text}");
            }
        }
    }
}

#[test]
fn what_is_built_lazily_does_what_the_whole_system_does() {
    let mut draw = Draw(3);
    for shape in shapes() {
        let cores = shape.cores().unwrap();
        let receivers: Vec<u32> = (1..cores as u32).filter(|_| draw.below(cores) < 12).collect();
        let receivers = if receivers.is_empty() { vec![cores as u32 - 1] } else { receivers };
        let text = text(&shape, 0, &receivers, "");
        let programs = |options: &RunOptions<'_>| {
            let document = run_with(&text, &[], options).document;
            assert!(document.passed(), "{:#?}\n{text}", document.checks);
            (document.cycles, document.programs, document.links.levels)
        };
        let sparse = programs(&RunOptions::default());
        assert_eq!(programs(&RunOptions { all_links: true, ..RunOptions::default() }), sparse);
        assert_eq!(programs(&RunOptions { no_skip: true, ..RunOptions::default() }), sparse);
        assert_eq!(programs(&RunOptions { threads: 2, ..RunOptions::default() }), sparse);
        let ports = |text: &str, whole: bool| -> u64 {
            let options = BuildOptions { whole, ..BuildOptions::default() };
            let ready = build(&load(text, &[]), options).unwrap_or_else(|problems| panic!("{problems}"));
            ready.system.plan().nodes.iter().map(|node| u64::from(node.ports)).sum()
        };
        let (some, all) = (ports(&text, false), ports(&text, true));
        assert!(some < all || (some == all && cores < 500), "only what is used is built: {some} ports of {all}");
        // A program that may write registers may use any link: all of them are there.
        let writes = self::text(&shape, 0, &receivers, "store [0x2000000000002038], 0\\n");
        assert_eq!(ports(&writes, false), ports(&writes, true));
        let stores = self::text(&shape, 0, &receivers, "store [0x40], 1\\n");
        assert_eq!(ports(&stores, false), ports(&text, false), "a store to local memory is none to a register");
    }
}

#[test]
fn programs_on_cores_of_no_tree_and_called_collectives_run_beside_multicasts() {
    let shape = nodes(&[3], 2, 4, 2);
    let rest = "\n[[collective]]\nkind = \"allreduce\"\ndtype = \"i64\"\nid = 2\ncalled = true\nparticipants = [1, 9, 17, 22]\n\
                [[program]]\ncores = [1, 9, 17, 22]\ntext = \".random 0, 6, i64\\nallreduce 2, 0, 0x4000, 6\"\n\
                [[program]]\ncores = [4, 12, 13]\ntext = \"compute 9\\nreport %core\"\n";
    let text = text(&shape, 7, &[0, 8, 23], "") + rest;
    let document = run_with(&text, &[], &RunOptions::default()).document;
    assert!(document.passed(), "{:#?}", document.checks);
    let programs = document.programs.expect("programs ran");
    assert_eq!(programs.calls.iter().filter(|call| call.bit_exact == Some(true)).count(), 1);
    let reported: Vec<u64> =
        programs.cores.iter().filter(|core| !core.reports.is_empty()).map(|core| core.core).collect();
    assert_eq!(reported, [0, 4, 8, 12, 13, 23]);
    // Threads are named by their core although the system was built without names.
    let wrong = text.replace("compute 9", "expect 1, 2");
    let document = run_with(&wrong, &[], &RunOptions::default()).document;
    assert!(
        document.checks.iter().any(|check| check.detail.contains("n0_s1_core0, thread 0")),
        "{:#?}",
        document.checks
    );
}
