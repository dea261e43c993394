//! PIUMA's registers and engines on any graph of switches (X-NET-1): bits recomputed here from what the nodes contribute, times
//! from first principles, on shipped kinds of topologies and on graphs that are drawn.

use std::fmt::Write as _;
use std::path::PathBuf;

use tempfile::NamedTempFile;
use watershed::scenario::build::{BuildOptions, build, layout};
use watershed::scenario::run::{RunOptions, run};
use watershed::scenario::{Loaded, embedding, load_text};

use crate::first_principles::{Ground, Times, Tree};
use crate::sets;
use crate::support::{Draw, ONE, UNLIMITED, only, pass, refusal};

/// The kinds of topologies that no arithmetic knows, in several sizes; PBV's and armed's trees run on the same ones.
const SYSTEMS: [&str; 11] = [
    "kind = \"torus\"\nsize = [4, 4]",
    "kind = \"torus\"\nsize = [3, 5]\nconcentration = 2",
    "kind = \"torus\"\nsize = [2, 3, 4]",
    "kind = \"torus\"\nsize = [9]",
    "kind = \"hyperx\"\nsize = [4, 3]",
    "kind = \"hyperx\"\nsize = [3, 3]\nconcentration = 3",
    "kind = \"fat-tree\"\narity = 2\nlevels = 3",
    "kind = \"fat-tree\"\narity = 4\nlevels = 2",
    "kind = \"dragonfly\"\nglobal_links = 1",
    "kind = \"tree\"\nbranching = [3, 2]\nroots = 1",
    "kind = \"file\"\nfile = \"traces/k5.topology.toml\"",
];

fn scenario(topology: &str, rest: &str) -> String {
    format!("family = \"piuma\"\n[topology]\n{topology}\n{rest}")
}

fn load(text: &str, sets: &[String]) -> Loaded {
    let base = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    load_text("test.toml", text, &base, "test", sets).unwrap_or_else(|problems| panic!("{problems}\n{text}\n{sets:?}"))
}

/// The graph of a scenario as its plan lists links.
fn graph(loaded: &Loaded) -> Ground {
    let layout = layout(loaded).unwrap();
    let switches = layout.switches();
    let mut near: Vec<Vec<Option<usize>>> =
        layout.plan.nodes[..switches].iter().map(|node| vec![None; usize::from(node.ports)]).collect();
    for link in &layout.plan.links {
        for ((from, port), (to, _)) in [(link.a, link.b), (link.b, link.a)] {
            if (from as usize) < switches && (to as usize) < switches {
                near[from as usize][usize::from(port)] = Some(to as usize);
            }
        }
    }
    let homes = layout.ends.iter().map(|place| place.switch as usize).collect();
    Ground::Graph { near, homes, radix: u64::from(loaded.scenario.switch.ceng.radix.known()) }
}

/// A connected graph that is drawn: some switches without end points, some links twice.
fn drawn(draw: &mut Draw) -> String {
    let switches = 2 + draw.below(9);
    let mut text = String::new();
    for at in 0..switches {
        // One end point at least, that there is somebody.
        let ends = if at == 0 { 2 } else { draw.below(3) };
        let _ = writeln!(text, "[[switch]]\nname = \"n{at}\"\nend_points = {ends}\n");
    }
    let link = |a: u64, b: u64| format!("[[link]]\nfrom = \"n{a}\"\nto = \"n{b}\"\n\n");
    (1..switches).for_each(|at| text.push_str(&link(draw.below(at), at)));
    for _ in 0..draw.below(8) {
        let (a, b) = (draw.below(switches), draw.below(switches));
        if a != b {
            text.push_str(&link(a, b));
        }
    }
    text
}

/// A topology file that goes when the test is over.
fn file(text: &str) -> (NamedTempFile, String) {
    let file = tempfile::Builder::new().suffix(".topology.toml").tempfile().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let topology = format!("kind = \"file\"\nfile = {:?}", file.path().display().to_string());
    (file, topology)
}

/// An all-reduce of one element takes what first principles say, with the root in the middle.
fn holds_the_law(text: &str, draw: &mut Draw) {
    let ends = load(text, &[]).scenario.topology.end_points().into();
    for _ in 0..3 {
        let some = draw.subset(ends);
        let (stages, pipeline, link) = (1 + draw.below(4), 1 + draw.below(4), 1 + draw.below(6));
        let sets = sets!["collective[0].participants={some:?}"; "collective[0].elements=1"; "{UNLIMITED}";
            "switch.ceng.stages={stages}"; "switch.pipeline_stages={pipeline}"; "link.latency_cycles={link}"];
        let loaded = load(text, &sets);
        let ground = graph(&loaded);
        let members: Vec<usize> = some.iter().map(|&end| end as usize).collect();
        let times = Times { stages, pipeline, link, radix: ground.radix(), ..Times::default() };
        let root = ground.middle(&members);
        let expected = Tree::new(&ground, times, root.clone(), members.iter().copied()).allreduce();
        let result = run(&loaded, &RunOptions::default()).unwrap();
        assert!(result.document.passed(), "{:#?}\n{text}\n{sets:?}", result.document.checks);
        assert_eq!(only(&result.document).latency_cycles, Some(expected), "root {root:?}\n{text}\n{sets:?}");
        let built = build(&loaded, BuildOptions::default()).unwrap();
        assert_eq!(built.collectives[0].footprint().root.map(i64::from), Some(root[0]), "{text}\n{sets:?}");
    }
}

#[test]
fn latency_is_the_sum_of_its_parts_on_every_kind_of_topology() {
    let mut draw = Draw(24);
    for system in SYSTEMS {
        holds_the_law(&scenario(system, ONE), &mut draw);
    }
}

#[test]
fn latency_is_the_sum_of_its_parts_on_graphs_that_are_drawn() {
    let mut draw = Draw(241);
    for _ in 0..25 {
        let (_file, topology) = file(&drawn(&mut draw));
        holds_the_law(&scenario(&topology, ONE), &mut draw);
    }
}

/// What all contribute to an element of a wrapping sum.
fn sum(rows: &[Vec<u64>], at: usize, bits: u32) -> u64 {
    let sum = rows.iter().fold(0u64, |sum, row| sum.wrapping_add(row[at]));
    if bits == 64 { sum } else { sum & ((1 << bits) - 1) }
}

/// Runs with and without skipping, and recomputes what every node got.
fn is_exact(text: &str, sets: &[String], bits: u32) {
    let loaded = load(text, sets);
    let skipping = run(&loaded, &RunOptions::default()).unwrap();
    let every = RunOptions { no_skip: true, order_seed: Some(5), ..RunOptions::default() };
    let every = run(&loaded, &every).unwrap();
    assert!(skipping.document.passed(), "{:#?}\n{text}\n{sets:?}", skipping.document.checks);
    assert_eq!(skipping.document.cycles, every.document.cycles, "{text}\n{sets:?}");
    let rows = loaded.data(0);
    for result in [&skipping.data[0], &every.data[0]] {
        assert!(!result.rows.is_empty());
        for row in result.rows.iter() {
            for (at, &got) in row.iter().enumerate() {
                let expected = if loaded.scenario.collectives[0].kind.name() == "broadcast" {
                    rows[0][at]
                } else {
                    sum(&rows, at, bits)
                };
                assert_eq!(got, expected, "element {at}\n{text}\n{sets:?}");
            }
        }
    }
}

#[test]
fn integer_sums_and_broadcasts_are_what_the_nodes_hold() {
    let mut draw = Draw(7);
    let (_files, drawn): (Vec<_>, Vec<_>) = (0..8).map(|_| file(&drawn(&mut draw))).unzip();
    for system in SYSTEMS.into_iter().chain(drawn.iter().map(String::as_str)) {
        let ends = load(&scenario(system, ONE), &[]).scenario.topology.end_points().into();
        for (kind, dtype, bits) in [("allreduce", "i64", 64), ("reduce", "u32", 32), ("broadcast", "i32", 32)] {
            let mut some = draw.subset(ends);
            if kind == "broadcast" && some.len() == 1 {
                // Somebody has to hear it.
                some = vec![0, ends - 1];
            }
            let elements = 1 + draw.below(70);
            let rest = format!(
                "[[collective]]\nkind = \"{kind}\"\ndtype = \"{dtype}\"\nelements = {elements}\nparticipants = {some:?}\n{}",
                if kind == "broadcast" { "source = 0\n" } else { "op = \"sum\"\n" }
            );
            is_exact(&scenario(system, &rest), &sets!["seed={}", draw.below(1 << 20)], bits);
        }
    }
}

#[test]
fn floating_point_follows_the_tree_of_the_registers_on_every_kind_of_topology() {
    for (at, system) in SYSTEMS.iter().enumerate() {
        for (op, dtype) in [("sum", "f64"), ("sum", "bf16"), ("max", "f32"), ("prod", "f16")] {
            let rest =
                format!("[[collective]]\nkind = \"allreduce\"\nop = \"{op}\"\ndtype = \"{dtype}\"\nelements = 33\n");
            let document = pass_here(&scenario(system, &rest), &sets!["seed={at}"]);
            assert_eq!(only(&document).bit_exact, Some(true));
        }
        let barrier = pass_here(&scenario(system, "[[collective]]\nkind = \"barrier\"\n"), &[]);
        assert!(only(&barrier).end_cycle.is_some());
    }
}

fn pass_here(text: &str, sets: &[String]) -> watershed::scenario::result::Document {
    let document = run(&load(text, sets), &RunOptions::default()).unwrap().document;
    assert!(document.passed(), "{:#?}\n{text}\n{sets:?}", document.checks);
    document
}

#[test]
fn a_file_of_the_registers_is_the_same_tree() {
    for system in SYSTEMS {
        let text = scenario(system, ONE);
        let before = pass_here(&text, &[]);
        let loaded = load(&text, &[]);
        let registers = embedding::all(&loaded).unwrap()[0].toml();
        let given = pass_here(&format!("{text}\n[collective.registers]\n{registers}"), &[]);
        assert_eq!(only(&given).latency_cycles, only(&before).latency_cycles, "{registers}");
        assert_eq!(only(&given).results, only(&before).results);
    }
}

#[test]
fn segments_take_trees_that_share_no_link_where_the_graph_has_them() {
    // K5 has two trees without a common link, a 4 x 4 torus too; a ring has one.
    for (system, segments, apart) in [(SYSTEMS[10], 2, true), (SYSTEMS[0], 2, true), (SYSTEMS[3], 2, false)] {
        let text = scenario(system, "[[collective]]\nkind = \"allreduce\"\nelements = 64\n");
        let sets = sets!["collective[0].segments={segments}"; "{UNLIMITED}"];
        pass_here(&text, &sets);
        let trees = embedding::all(&load(&text, &sets)).unwrap();
        let shared: u64 = trees.iter().flat_map(|tree| &tree.shared).map(|(_, _, shared)| shared).sum();
        assert_eq!(shared == 0, apart, "{system}: {:?}", trees.iter().map(|tree| &tree.shared).collect::<Vec<_>>());
    }
}

#[test]
fn scans_keep_the_order_of_ranks_or_say_why_they_cannot() {
    // Round a ring the ranks beside the root are neighbours, but for a root in whose half the last ones meet the first.
    let scan = "[[collective]]\nkind = \"scan\"\ndtype = \"i64\"\nelements = 5\n";
    for (system, root) in [(SYSTEMS[9], None), (SYSTEMS[7], None), (SYSTEMS[10], Some("k2"))] {
        let sets = root.map_or_else(Vec::new, |root| sets!["collective[0].root=\"{root}\""]);
        let document = pass_here(&scenario(system, scan), &sets);
        assert_eq!(only(&document).bit_exact, Some(true));
    }
    let refused = refusal(&scenario(SYSTEMS[3], scan), &sets!["collective[0].root=\"s2\""]);
    let pair = "ranks 1 and 7 stand in the way: both come to s2 by port 1, and what is between them does not";
    assert!(refused.contains(pair), "{refused}");
}

#[test]
fn programs_and_background_traffic_meet_collectives_on_a_torus() {
    let text = scenario(
        "kind = \"torus\"\nsize = [4, 4]",
        "[switch]\npoint_to_point_vcs = 2\n[[collective]]\nkind = \"allreduce\"\nelements = 200\n\
         [[traffic]]\npattern = \"uniform\"\nrate = 0.3\npacket_flits = 4\nstop_cycle = 2000\n",
    );
    let document = pass(&text, &[]);
    assert_eq!(only(&document).bit_exact, Some(true));
}
