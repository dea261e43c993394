//! Nodes of subnodes (H-TOPO-1): what lies between two cores adds up, and everything that runs on nodes runs there, exact.

use crate::sets;
use crate::share;
use crate::support::{latency, pass, refusal};

/// A node of two subnodes of four sockets, each a switch with a core; a flit takes a cycle.
fn node(links: u32, rest: &str) -> String {
    format!(
        "family = \"piuma\"\n[topology]\nkind = \"nodes\"\nsubnodes = 2\nsockets = 8\nsubnode_links = {links}\ntiles = 1\n\
         positions = 1\nhsio_ports = 6\n[memory]\nbandwidth_gbps = \"unlimited\"\n{rest}"
    )
}

/// Pairs of cores, the sockets between them as links within a subnode, and the links between subnodes, by the number of links.
const PAIRS: [(u32, [u32; 2], u64, u64); 7] = [
    (4, [0, 1], 1, 0),
    (4, [0, 4], 0, 1),
    (4, [0, 5], 1, 1),
    (4, [2, 6], 0, 1),
    (1, [0, 4], 0, 1),
    (1, [1, 5], 2, 1),
    (1, [0, 7], 1, 1),
];

#[test]
fn latency_is_the_sum_of_the_links_between() {
    for (links, cores, within, between) in PAIRS {
        let text = node(links, &format!("[[collective]]\nkind = \"allreduce\"\nparticipants = {cores:?}\n"));
        let of = |socket: u64, subnode: u64, stages: u64| {
            latency(
                &text,
                &sets![
                    "link.socket_latency_cycles={socket}"; "link.subnode.latency_cycles={subnode}";
                    "switch.pipeline_stages={stages}"
                ],
            )
        };
        // A word goes to the root and its result comes back: each link counts twice.
        let base = of(1, 1, 1);
        for (socket, subnode) in [(25, 1), (1, 35), (25, 35), (7, 3)] {
            let expected = base + 2 * within * (socket - 1) + 2 * between * (subnode - 1);
            assert_eq!(of(socket, subnode, 1), expected, "{cores:?} over {links} links: {socket}, {subnode}");
        }
        // Beyond the first link each one adds itself and a switch of a stage, there and back.
        let next = node(4, "[[collective]]\nkind = \"allreduce\"\nparticipants = [0, 1]\n");
        let neighbours = latency(&next, &sets!["link.socket_latency_cycles=1"; "switch.pipeline_stages=1"]);
        assert_eq!(base, neighbours + 2 * (within + between - 1) * 2, "{cores:?} over {links} links");
    }
}

#[test]
fn a_narrow_link_between_subnodes_costs_its_cycles() {
    for (links, cores, _, between) in PAIRS {
        let of = |elements: u64, bits: u64| {
            let collective =
                format!("[[collective]]\nkind = \"allreduce\"\nelements = {elements}\nparticipants = {cores:?}\n");
            latency(&node(links, &collective), &sets!["link.subnode.width_bits={bits}"])
        };
        let first = of(1, 64);
        for (elements, bits, cycles) in [(1, 16, 4), (50, 64, 1), (50, 16, 4), (20, 8, 8)] {
            // Of a pair in one subnode nothing crosses.
            let cycles = if between == 0 { 1 } else { cycles };
            assert_eq!(
                of(elements, bits),
                first + 2 * between * (cycles - 1) + (elements - 1) * cycles,
                "{cores:?}, {bits} bits"
            );
        }
    }
}

#[test]
fn two_sockets_are_the_same_however_they_are_called() {
    let text = |tables: &str| {
        format!(
            "family = \"piuma\"\n[topology]\nkind = \"nodes\"\nsockets = 2\n{tables}[[collective]]\nkind = \"allreduce\"\n\
             elements = 40\n"
        )
    };
    let (plain, divided) =
        (text("[link]\nsocket_latency_ns = 30\n"), text("subnodes = 2\n[link.subnode]\nlatency_ns = 30\n"));
    assert_eq!(latency(&plain, &[]), latency(&divided, &[]));
}

/// Every engine over every number of links; in `make test` one in three of these cases has all of both.
#[test]
fn every_engine_of_the_patents_node_is_exact() {
    let node = |family: &str, rest: &str| {
        format!(
            "family = \"{family}\"\n[topology]\nkind = \"nodes\"\nsubnodes = 2\nsockets = 8\ntiles = 2\npositions = 2\n{rest}"
        )
    };
    let job = |keys: &str| format!("[[job]]\nname = \"sum\"\nop = \"sum\"\ndtype = \"f64\"\nelements = 40\n{keys}");
    // Two subnodes of sixteen dies of sixteen switches: 256 cores.
    pass(
        "family = \"piuma\"\n[topology]\nkind = \"nodes\"\nsubnodes = 2\n[[collective]]\nkind = \"allreduce\"\nelements = 20\n",
        &[],
    );
    let traffic = "[[traffic]]\npattern = \"uniform\"\nrate = 0.3\npacket_flits = 3\nstop_cycle = 1500\n";
    let flows = "[[traffic]]\npattern = \"uniform\"\nrate = 0.2\nstop_cycle = 2000\n";
    let nodes = [
        node("piuma", &(job("") + traffic)),
        node("piuma", &(job("piuma.segments = 3\n") + traffic)),
        node("piuma", "[[job]]\nname = \"all\"\nkind = \"scan\"\ndtype = \"i64\"\nelements = 6\n"),
        node("piuma", "size = [2]\n[[collective]]\nkind = \"allreduce\"\nelements = 9\n"),
        node("piuma", "[[host]]\nalgorithm = \"rabenseifner\"\nelements = 64\n"),
        node("armed", &job("")),
        node("pbv", &job("")),
        node("fabric", flows),
    ];
    let cases = [1, 3, 4, 6].map(|links| nodes.each_ref().map(|text| (links, text))).concat();
    for (links, text) in share::one_in(3, cases) {
        pass(text, &sets!["topology.subnode_links={links}"; "topology.hsio_ports=3"]);
    }
}

#[test]
fn nodes_that_cannot_be_divided_are_refused() {
    let text = |tables: &str| {
        format!("family = \"piuma\"\n[topology]\nkind = \"nodes\"\n{tables}[[collective]]\nkind = \"barrier\"\n")
    };
    for (tables, why) in [
        ("sockets = 15\nsubnodes = 2\n", "15 sockets cannot be divided into 2 equal subnodes"),
        ("sockets = 4\nsubnode_links = 2\n", "a node without subnodes has no such links"),
        ("sockets = 4\n[link.subnode]\nlatency_cycles = 3\n", "a node without subnodes has no such links"),
        (
            "sockets = 4\nsubnodes = 2\nsubnode_links = 100\n",
            "HSIO ports for other nodes and 204 for its sockets, it has 128",
        ),
        ("sockets = 4\nsubnodes = 2\n[link.subnode]\nlatency_ns = 2\nlatency_cycles = 3\n", "latency_cycles"),
    ] {
        let refused = refusal(&text(tables), &[]);
        assert!(refused.contains(why), "{tables}\n{refused}");
    }
    let die = "family = \"piuma\"\n[topology]\nkind = \"die\"\n[link.subnode]\nlatency_cycles = 3\n[[collective]]\nkind = \"barrier\"\n";
    assert!(refusal(die, &[]).contains("the topology \"die\" has no such links"));
}
