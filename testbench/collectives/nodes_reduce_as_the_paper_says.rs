//! All-reduce on systems of nodes: exact bits on any shape and subset, the cycle that the path says, the paper's bound
//! (P-TOPO-5, P-TOPO-6, P-EMB-1, P-EMB-2, P-EX-1, P-FIG-1, P-FIG-2).

use std::collections::BTreeMap;

use watershed::fabric::topology::{Die, Nodes, Subnodes, Topology as _};
use watershed::scenario::build::{BuildOptions, build};
use watershed::scenario::embedding;
use watershed::scenario::run::RunOptions;

use crate::sets;
use crate::support::{Draw, UNLIMITED, landings, latency, load, only, pass, refusal, run_with};

/// A shape and how its links are timed, in cycles.
#[derive(Clone, Debug)]
struct System {
    shape: Nodes,
    core_latency: u64,
    clock_ghz: u64,
}

impl System {
    fn new(size: &[u32], sockets: u32, tiles: u16, positions: u16) -> System {
        // As many HSIO ports as the shape needs.
        let die = Die { tiles, positions };
        let mut shape = Nodes {
            size: size.to_vec(),
            sockets,
            subnodes: Subnodes::default(),
            die,
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
        System { shape, core_latency: 5, clock_ghz: 1 }
    }

    fn text(&self, rest: &str) -> String {
        let Nodes { size, sockets, die, hsio_ports, socket_latency, node_latency, distance, .. } = &self.shape;
        let lengths = if *distance { "distance" } else { "equal" };
        format!(
            "family = \"piuma\"\nclock.frequency_mhz = {}\n[topology]\nkind = \"nodes\"\nsize = {size:?}\n\
             sockets = {sockets}\ntiles = {}\npositions = {}\nhsio_ports = {hsio_ports}\nlatency = \"{lengths}\"\n\
             [link]\nlatency_cycles = {}\nsocket_latency_cycles = {socket_latency}\nnode_latency_cycles = {node_latency}\n\
             {rest}",
            1000 * self.clock_ghz,
            die.tiles,
            die.positions,
            self.core_latency
        )
        .replace("size = []\n", "")
    }

    /// The end of an all-reduce of one element by a walk over the links: when the sum leaves each switch, and when the
    /// result comes back. Knows the shape's links and ways, and nothing of registers.
    fn expected(&self, root: u32) -> u64 {
        let shape = &self.shape;
        let levels = u64::from(u16::BITS - (shape.switch_ports() - 1).leading_zeros());
        let engine = 1 + 3 * levels;
        let latency = |level: u8, steps: u32| match level {
            3 => u64::from(shape.socket_latency),
            4 => u64::from(shape.node_latency) * if shape.distance { u64::from(steps) } else { 1 },
            _ => self.core_latency,
        };
        // Who hands to whom, over a link that takes how long.
        let mut parent: BTreeMap<u32, (u32, u64)> = BTreeMap::new();
        for end in 0..shape.cores().unwrap() as u32 {
            let mut at = shape.end_place(end).switch;
            while let Some(port) = shape.hop(at, root) {
                let link = shape.link(at, port).unwrap();
                parent.insert(at, (link.switch, latency(link.level, link.steps)));
                at = link.switch;
            }
        }
        let mut children: BTreeMap<u32, Vec<(u32, u64)>> = BTreeMap::new();
        for (&child, &(of, latency)) in &parent {
            children.entry(of).or_default().push((child, latency));
        }
        // The last input at a switch, and when what it makes of them leaves.
        fn leaves(at: u32, root: u32, engine: u64, shape: &Nodes, children: &BTreeMap<u32, Vec<(u32, u64)>>) -> u64 {
            let mut inputs: Vec<u64> = Vec::new();
            for &(child, latency) in children.get(&at).into_iter().flatten() {
                inputs.push(leaves(child, root, engine, shape, children) + latency + 1);
            }
            // A core's element: a local link of one cycle and the edge at its end.
            inputs.extend(shape.end_of(at).map(|_| 2));
            let last = *inputs.iter().max().expect("a switch of the tree has an input");
            last + if inputs.len() > 1 || at == root { engine } else { 0 }
        }
        fn comes(at: u32, when: u64, shape: &Nodes, children: &BTreeMap<u32, Vec<(u32, u64)>>) -> u64 {
            let below = children.get(&at).into_iter().flatten();
            let below = below.map(|&(child, latency)| comes(child, when + latency + 1, shape, children));
            below.chain(shape.end_of(at).map(|_| when + 2)).max().unwrap_or(0)
        }
        comes(root, leaves(root, root, engine, shape, &children), shape, &children)
    }

    fn root(&self) -> u32 {
        let node: u32 = self.shape.size.iter().rev().fold(0, |node, &side| node * side + side / 2);
        node * self.shape.sockets * self.shape.die_switches()
    }
}

const ONE: &str = "[memory]\nbandwidth_gbps = \"unlimited\"\n[[collective]]\nkind = \"allreduce\"\n";

/// Shapes of every kind: 0 to 4 dimensions, sides of 1, odd ones, dies of any size.
fn shapes() -> Vec<System> {
    let mut all = Vec::new();
    for sockets in [1, 2, 3, 5, 16] {
        all.push(System::new(&[], sockets, 4, 4));
    }
    for side in [1, 2, 3, 5, 8] {
        for (sockets, tiles, positions) in [(1, 4, 4), (2, 3, 2), (3, 2, 3), (4, 1, 1)] {
            all.push(System::new(&[side], sockets, tiles, positions));
        }
    }
    for size in [[2, 2], [3, 2], [3, 3], [1, 5], [4, 3], [5, 5]] {
        for (sockets, tiles, positions) in [(1, 1, 1), (2, 4, 4), (3, 2, 2), (2, 5, 1)] {
            all.push(System::new(&size, sockets, tiles, positions));
        }
    }
    for size in [[2, 2, 2], [3, 2, 2], [3, 3, 3], [2, 1, 4]] {
        for (sockets, tiles, positions) in [(1, 1, 1), (2, 4, 4), (3, 2, 1)] {
            all.push(System::new(&size, sockets, tiles, positions));
        }
    }
    for size in [[2, 2, 2, 2], [3, 2, 1, 2]] {
        all.push(System::new(&size, 2, 2, 2));
    }
    all
}

#[test]
fn simulation_is_the_exact_sum_of_the_path() {
    let shapes = shapes();
    assert!(shapes.len() >= 60);
    for (number, mut system) in shapes.into_iter().enumerate() {
        system.shape.distance = number % 3 == 2;
        let collective = only(&pass(&system.text(ONE), &[])).clone();
        assert_eq!(collective.latency_cycles, Some(system.expected(system.root())), "{system:?}");
    }
}

/// Links as they are; switches and engines cost their cycles, of 0.01 ns.
#[test]
fn equation_one_bounds_runs_with_nearly_free_switches() {
    const GHZ: u64 = 100;
    let (mut checked, mut tight) = (0, 0);
    for mut system in shapes() {
        let shape = &mut system.shape;
        shape.socket_latency = (25 * GHZ) as u16;
        shape.node_latency = (50 * GHZ) as u16;
        system.core_latency = 5 * GHZ;
        system.clock_ghz = GHZ;
        let shape = &system.shape;
        let dimensions = u64::from(shape.dimensions());
        let diameter = u64::from(shape.die.tiles - 1) + u64::from(shape.die.positions > 1);
        // 2 (L_P D + L_S (D + 1) + L_C d_max (2 D + 2)): the formula of the paper with the segment from the last landing
        // to the root's switch, which it leaves out.
        let bound = 2 * (50 * dimensions + 25 * (dimensions + 1) + 5 * diameter * (2 * dimensions + 2));
        // Each link of that path ends in a switch, which costs a cycle and, on the way up, its engine; so do both local links.
        let links = dimensions + dimensions + 1 + diameter * (2 * dimensions + 2);
        let engine = 1 + 3 * u64::from(u16::BITS - (shape.switch_ports() - 1).leading_zeros());
        let switches = (2 * (links + 1) + (links + 1) * engine + 4) as f64 / GHZ as f64;
        let latency = only(&pass(&system.text(ONE), &[])).latency_ns.unwrap();
        assert!(latency <= bound as f64 + switches, "{latency} ns, bound {bound} + {switches} ns: {system:?}");
        checked += 1;
        tight += u32::from(latency > 0.9 * bound as f64);
    }
    assert!(checked >= 60, "{checked}");
    assert!(tight >= 10, "a bound that nothing comes near to shows little: {tight} of {checked}");
}

#[test]
fn the_papers_numbers_of_the_bound() {
    let bound = |d: u64| 2 * (50 * d + 25 * (d + 1) + 5 * 4 * (2 * d + 1));
    assert_eq!([bound(0), bound(1), bound(2), bound(3)], [90, 320, 550, 780]);
}

#[test]
fn latency_hardly_depends_on_the_number_of_nodes() {
    for dimensions in 1..=3 {
        let of = |side: u32| {
            let system = System::new(&vec![side; dimensions], 2, 4, 4);
            let all = RunOptions::default();
            run_with(&system.text(ONE), &[], &all).document.collectives[0].latency_cycles.unwrap()
        };
        let sides: &[u32] = [&[3, 8, 17][..], &[3, 4, 6], &[3, 4]][dimensions - 1];
        let latencies: Vec<u64> = sides.iter().map(|&side| of(side)).collect();
        let (least, most) = (latencies.iter().min().unwrap(), latencies.iter().max().unwrap());
        // More links take HSIO ports of other switches: a few steps inside a die, and nothing else.
        assert!(*most as f64 / *least as f64 <= 1.2, "{dimensions} dimensions: {latencies:?}");
    }
}

#[test]
fn sixty_four_nodes_of_the_papers_size_are_exact_and_below_a_microsecond() {
    let system = System::new(&[8, 8], 16, 4, 4);
    let result = run_with(&system.text("[[collective]]\nkind = \"allreduce\"\n"), &[], &RunOptions::default());
    assert!(result.document.passed(), "{:#?}", result.document.checks);
    let collective = only(&result.document);
    assert_eq!((collective.participants, collective.bit_exact), (8192, Some(true)));
    assert!(collective.latency_ns.unwrap() < 1000.0);
    assert_eq!(collective.latency_cycles, Some(system.expected(system.root())));
}

#[test]
#[ignore = "nine gigabytes and about a minute"]
fn two_million_cores_are_exact_and_below_a_microsecond() {
    let text = include_str!("../piuma/allreduce-16384-nodes.toml");
    let result = run_with(text, &[], &RunOptions::default());
    assert!(result.document.passed(), "{:#?}", result.document.checks);
    let collective = only(&result.document);
    assert_eq!((collective.participants, collective.bit_exact), (2_097_152, Some(true)));
    assert!(collective.latency_ns.unwrap() < 1000.0, "{:?}", collective.latency_ns);
}

#[test]
fn building_only_what_is_used_changes_nothing() {
    let rows = "[[collective]]\nname = \"a\"\nkind = \"allreduce\"\nparticipants = [0, 3, 5, 17, 30]\nelements = 7\n\
                [[collective]]\nname = \"b\"\nkind = \"reduce\"\nid = 1\nparticipants = [1, 2, 20]\nreceiver = 9\nelements = 5\n\
                [[collective]]\nname = \"c\"\nkind = \"broadcast\"\nid = 2\nsource = 2\nelements = 3\nparticipants = [4, 8, 15, 31]\n\
                [[collective]]\nname = \"d\"\nkind = \"barrier\"\nid = 3\n";
    for system in [System::new(&[2, 2], 2, 4, 2), System::new(&[3], 3, 3, 2), System::new(&[4, 2], 1, 2, 2)] {
        let text = system.text(rows);
        let document = |options: &RunOptions<'_>| {
            let mut document = run_with(&text, &[], options).document;
            assert!(document.passed(), "{:#?}", document.checks);
            document.links.all = None;
            // The document keeps the options it was made with; all else must be the same.
            let text = serde_json::to_string(&document).unwrap();
            match text.rfind(",\"options\":[") {
                Some(at) => text[..at].to_owned() + text[at..].split_once(']').map_or("", |(_, rest)| rest),
                None => text,
            }
        };
        let sparse = document(&RunOptions::default());
        assert_eq!(document(&RunOptions { all_links: true, ..RunOptions::default() }), sparse);
        assert_eq!(document(&RunOptions { no_skip: true, ..RunOptions::default() }), sparse);
        assert_eq!(document(&RunOptions { order_seed: Some(7), ..RunOptions::default() }), sparse);
        // And less is built, unless everybody takes part as in the barrier: what has no ports costs nothing.
        let (some, _) = text.rsplit_once("[[collective]]").unwrap();
        let loaded = load(some, &[]);
        let ports = |whole: bool| -> u64 {
            let ready =
                build(&loaded, BuildOptions { whole, ..BuildOptions::default() }).unwrap_or_else(|e| panic!("{e}"));
            ready.system.plan().nodes.iter().map(|node| u64::from(node.ports)).sum()
        };
        assert!(ports(false) < ports(true));
    }
}

#[test]
fn random_subsets_of_cores_and_nodes_are_exact() {
    let mut draw = Draw(0x5eed);
    for system in [System::new(&[3, 3], 2, 4, 4), System::new(&[2, 2, 2], 3, 2, 2), System::new(&[7], 4, 3, 1)] {
        let cores = system.shape.cores().unwrap();
        for _ in 0..6 {
            let count = 1 + draw.below(cores.min(40));
            let mut list: Vec<u64> = (0..count).map(|_| draw.below(cores)).collect();
            list.sort_unstable();
            list.dedup();
            let elements = 1 + draw.below(20);
            let rest =
                format!("[[collective]]\nkind = \"allreduce\"\nparticipants = {list:?}\nelements = {elements}\n");
            let text = system.text(&rest);
            assert_eq!(only(&pass(&text, &[])).bit_exact, Some(true), "{text}");
            // The root lies on a participant.
            let root = &embedding::all(&load(&text, &[])).unwrap()[0].root;
            let places: Vec<u32> = list.iter().map(|&end| system.shape.end_place(end as u32).switch).collect();
            assert!(places.contains(root), "{text}");
        }
    }
}

fn root(system: &System, rest: &str) -> String {
    embedding::all(&load(&system.text(rest), &[])).unwrap()[0].root_name.clone()
}

#[test]
fn the_root_is_at_the_middle_coordinates() {
    let everybody = "[[collective]]\nkind = \"allreduce\"\n";
    for (size, expected) in
        [(&[5][..], "n2"), (&[4], "n2"), (&[4, 3], "n2_1"), (&[2, 5, 3], "n1_2_1"), (&[1, 7], "n0_3"), (&[], "n0")]
    {
        let mut system = System::new(size, 2, 2, 2);
        assert_eq!(root(&system, everybody), format!("{expected}_s0_core0"), "{size:?}");
        system.shape.distance = true;
        let name = root(&system, everybody);
        // Where the latency grows with the distance, of two middle ones the same is taken.
        assert_eq!(name, format!("{expected}_s0_core0"), "{size:?}");
    }
    // Nodes 0, 1 and 6 of a row of seven: all are one link apart, and 1 is nearest to the middle of those; if distance
    // counts, 1 is five steps from the farthest, 0 and 6 are six. Core 5 of a node of 8 is the second of its socket 1.
    let mut row = System::new(&[7], 2, 2, 2);
    let some = "[[collective]]\nkind = \"allreduce\"\nparticipants = [0, 13, 50]\n";
    for distance in [false, true] {
        row.shape.distance = distance;
        assert_eq!(root(&row, some), "n1_s1_core1");
    }
}

#[test]
fn no_way_to_the_root_has_more_links_between_nodes_than_dimensions() {
    for system in shapes() {
        let (shape, root) = (&system.shape, system.root());
        for end in 0..shape.cores().unwrap() as u32 {
            let (mut at, mut between) = (shape.end_place(end).switch, 0);
            while let Some(port) = shape.hop(at, root) {
                let link = shape.link(at, port).unwrap();
                between += u32::from(link.level == 4);
                at = link.switch;
            }
            assert!(between <= shape.dimensions(), "{system:?}");
        }
    }
}

/// Cores of some nodes, as a list.
fn cores(system: &System, nodes: &[u32]) -> Vec<u32> {
    let each = system.shape.sockets * system.shape.die_cores();
    nodes.iter().flat_map(|node| node * each..(node + 1) * each).collect()
}

#[test]
fn disjoint_nodes_reduce_at_once_on_one_id_as_fast_as_alone() {
    let system = System::new(&[4, 2], 2, 2, 2);
    let one = |name: &str, nodes: &[u32]| {
        let list = cores(&system, nodes);
        format!("[[collective]]\nname = \"{name}\"\nkind = \"allreduce\"\nelements = 40\nparticipants = {list:?}\n")
    };
    let (a, b) = (one("a", &[0, 1, 2]), one("b", &[4, 5, 7]));
    let together = pass(&system.text(&format!("{a}{b}")), &[]);
    for (at, alone) in [&a, &b].into_iter().enumerate() {
        let alone = pass(&system.text(alone), &[]);
        assert_eq!(together.collectives[at].start_cycle, Some(0));
        assert_eq!(together.collectives[at].latency_cycles, only(&alone).latency_cycles);
    }
}

#[test]
fn overlapping_nodes_on_one_id_are_refused_and_on_two_take_turns() {
    let system = System::new(&[4], 2, 2, 2);
    let one = |name: &str, id: u32, nodes: &[u32]| {
        let list = cores(&system, nodes);
        format!(
            "[[collective]]\nname = \"{name}\"\nid = {id}\nkind = \"allreduce\"\nelements = 4\nparticipants = {list:?}\n"
        )
    };
    let refused = refusal(&system.text(&format!("{}{}", one("a", 2, &[0, 1, 2]), one("b", 2, &[2, 3]))), &[]);
    assert!(refused.contains("both use id 2 and share"), "{refused}");
    let (a, b) = (one("a", 2, &[0, 1, 2]), one("b", 3, &[2, 3]));
    let last = |rest: &str| pass(&system.text(rest), &[]).collectives.iter().filter_map(|of| of.end_cycle).max();
    let (turns, alone) = (last(&format!("{a}{b}")), [last(&a), last(&b)]);
    assert!(turns > Some(alone.into_iter().flatten().sum()), "{turns:?} together, {alone:?} alone");
}

#[test]
fn links_hold_the_credit_round_trip_so_that_an_element_leaves_every_cycle() {
    // P-SW-8 on links of 25 and 50 cycles: memory without a limit gives an element a cycle.
    let system = System::new(&[2, 2], 2, 4, 4);
    let rest = "[[collective]]\nkind = \"allreduce\"\nelements = 400\n";
    let landed = landings(&system.text(rest), &sets!["{UNLIMITED}"], 5);
    assert!(landed.windows(2).all(|pair| pair[1] == pair[0] + 1), "{landed:?}");
    // With 16 flits a link between nodes, whose round trip is 102, carries 16 in 102 cycles.
    let narrow = landings(&system.text(rest), &sets!["{UNLIMITED}"; "switch.collective_buffer_flits=16"], 5);
    assert_eq!(narrow[399] - narrow[79], 320 / 16 * 102);
}

#[test]
fn segments_with_two_roots_are_exact_and_gain_nothing_behind_one_request_channel() {
    // P-EMB-4: two embeddings on two ids with roots in different nodes, each for half of the vector. They share no link
    // between switches, but every core's own, so they run at once only without the rule of P-SW-7. Links between nodes are
    // the narrowest part here: 16 flits in a round trip of 102 cycles.
    let system = System::new(&[2, 2], 1, 1, 1);
    let segment = |id: u32, elements: u32, root: &str| {
        format!(
            "[[collective]]\nname = \"s{id}\"\nid = {id}\nkind = \"allreduce\"\nelements = {elements}\nroot = \"{root}\"\n"
        )
    };
    let sets = |memory: &str| sets!["switch.collective_buffer_flits=16"; "memory.bandwidth_gbps={memory}"; "checks.claims=false"];
    let end = |text: &str, memory: &str| {
        let document = pass(&system.text(text), &sets(memory));
        document.collectives.iter().map(|collective| collective.end_cycle.unwrap()).max().unwrap()
    };
    let one = segment(0, 800, "n0_0_s0_core0");
    let two = format!("{}{}", segment(0, 400, "n0_0_s0_core0"), segment(1, 400, "n1_1_s0_core0"));
    let (alone, both) = (end(&one, "\"unlimited\""), end(&two, "\"unlimited\""));
    assert_eq!((alone - 147) / 102, 800 / 16, "the one is as fast as its narrowest link: {alone}");
    // An element of one segment that waits in a core's queue holds up the other segment behind it: what the second set of
    // links could carry is lost again.
    let gain = alone as f64 / both as f64;
    assert!((0.85..1.05).contains(&gain), "{alone} cycles with one embedding, {both} with two");
    // And where memory is the narrowest part, as on PIUMA, there is nothing to gain either.
    let (alone, both) = (end(&one, "6.4"), end(&two, "6.4"));
    let gain = alone as f64 / both as f64;
    assert!((0.8..1.05).contains(&gain), "{alone} cycles with one embedding, {both} with two");
}

#[test]
fn latencies_of_one_node_and_of_a_system_differ_by_their_links() {
    // One node: a link between sockets each way; a row of nodes: one between nodes and one more between sockets.
    let node = latency(&System::new(&[], 2, 1, 1).text(ONE), &[]);
    // Up 2 + (25 + 1) to the root, which reduces in 13; down 25 + 1 and 2.
    assert_eq!(node, 2 + 26 + 13 + 26 + 2);
}
