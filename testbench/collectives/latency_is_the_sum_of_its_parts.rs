//! The latency of one element is the sum of link latencies, router stages and engine stages on the longest path, plus
//! the register of the end point's channel: exactly, whatever the configuration (K-PIPE-1, K-TIME-1, P-SW-2).

use crate::first_principles::{Ground, Times, Tree, multicast};
use crate::sets;
use crate::support::{FLAGSHIP, ONE, UNLIMITED, die, latency, mesh, only, pass};

/// The flagship's registers have their root at sw4: position 0 of tile 2. There the tiles meet, and every core but those
/// at position 0 goes to position 0 first.
fn flagship(times: Times) -> u64 {
    Tree::new(&Ground::Die, times, vec![0, 2], 0..8).allreduce()
}

#[test]
fn on_the_flagship_for_every_depth_of_engine_and_router() {
    for stages in 1..=6 {
        for pipeline in 1..=4 {
            let set =
                sets!["collective[0].elements=1"; "switch.ceng.stages={stages}"; "switch.pipeline_stages={pipeline}"];
            let times = Times { stages, pipeline, ..Times::default() };
            assert_eq!(latency(FLAGSHIP, &set), flagship(times), "{times:?}");
        }
    }
}

#[test]
fn the_flagship_by_hand() {
    // Up: core 1's end point 1 + 1, core1 1 + 5, core0 reduces 2 + 12 + 5, sw0 1 + 5, sw4 reduces 2 + 12; down: 5 to sw0,
    // 1 + 5 to core0, 1 + 5 to core1, 1 + 1 to the end point.
    let by_hand = (1 + 1) + (1 + 5) + (2 + 12 + 5) + (1 + 5) + (2 + 12) + 5 + (1 + 5) + (1 + 5) + (1 + 1);
    assert_eq!(by_hand, 66);
    assert_eq!(latency(FLAGSHIP, &sets!["collective[0].elements=1"]), by_hand);
}

#[test]
fn one_more_engine_stage_costs_its_levels_at_every_engine_on_the_longest_path() {
    let line = mesh(&[7], 2, ONE);
    let of_line = Ground::Mesh { size: vec![7], concentration: 2 };
    let root = of_line.middle(&(0..14).collect::<Vec<_>>());
    let line_times = Times { radix: 4, ..Times::default() };
    let on_line = Tree::new(&of_line, line_times, root, 0..14);
    let on_die = Tree::new(&Ground::Die, Times::default(), vec![0, 2], 0..8);
    // Core 0's and the root's on the die; on the line three switches from the end to the one before the middle, and it.
    assert_eq!((on_die.engines_on_the_longest_path(), on_line.engines_on_the_longest_path()), (2, 4));
    for (text, tree) in [(FLAGSHIP, &on_die), (&line, &on_line)] {
        let with = |stages: u64| latency(text, &sets!["collective[0].elements=1"; "switch.ceng.stages={stages}"]);
        for stages in 1..6 {
            let step = tree.times.levels() * tree.engines_on_the_longest_path();
            assert_eq!(with(stages + 1) - with(stages), step);
        }
    }
}

#[test]
fn in_stars_of_every_radix() {
    for concentration in 2..=8 {
        for (stages, pipeline) in [(1, 1), (3, 2), (6, 4)] {
            let set = sets!["switch.ceng.stages={stages}"; "switch.pipeline_stages={pipeline}"];
            let times = Times { stages, pipeline, radix: concentration, ..Times::default() };
            let ground = Ground::Mesh { size: vec![1], concentration: concentration as usize };
            let expected = Tree::new(&ground, times, vec![0], 0..concentration as usize).allreduce();
            // Two local links, the switch that reduces, and the end point's register.
            assert_eq!(expected, 2 + 2 * pipeline + times.levels() * stages + 1);
            assert_eq!(latency(&mesh(&[1], concentration as u32, ONE), &set), expected, "radix {concentration}");
        }
    }
}

#[test]
fn on_lines_and_meshes_with_every_root() {
    let shapes: [(&[u32], u32); 7] =
        [(&[2], 1), (&[5], 1), (&[6], 2), (&[3, 3], 1), (&[4, 2], 1), (&[2, 1, 3], 2), (&[2, 3, 2], 1)];
    for (number, (size, concentration)) in shapes.into_iter().enumerate() {
        let ground = Ground::Mesh {
            size: size.iter().map(|&side| i64::from(side)).collect(),
            concentration: concentration as usize,
        };
        let text = mesh(size, concentration, ONE);
        let all: Vec<usize> = (0..ground.ends()).collect();
        let pipeline = 1 + number as u64 % 4;
        let times = Times { radix: ground.radix(), pipeline, stages: 2, link: 3, local: 2, ..Times::default() };
        let common = sets!["switch.pipeline_stages={pipeline}"; "switch.ceng.stages=2"; "link.latency_cycles=3"; "link.local_latency_cycles=2"];
        for root in ground.switches() {
            let mut set = common.clone();
            set.push(format!("collective[0].root=\"{}\"", ground.name(&root)));
            let expected = Tree::new(&ground, times, root.clone(), all.iter().copied()).allreduce();
            assert_eq!(latency(&text, &set), expected, "{size:?} root {root:?}");
        }
        let expected = Tree::new(&ground, times, ground.middle(&all), all.iter().copied()).allreduce();
        assert_eq!(latency(&text, &common), expected, "{size:?} with the built-in root");
    }
}

#[test]
fn on_dies_with_every_root() {
    let text = die(ONE);
    for root in Ground::Die.switches() {
        let set = sets!["collective[0].root=\"{}\"", Ground::Die.name(&root)];
        let expected = Tree::new(&Ground::Die, Times::default(), root.clone(), 0..8).allreduce();
        assert_eq!(latency(&text, &set), expected, "root {root:?}");
    }
}

#[test]
fn for_links_in_cycles_and_in_nanoseconds_rounded_up() {
    let ns = |ns: f64, mhz: f64| (ns * mhz / 1000.0 - 1e-9).ceil() as u64;
    for (link, local) in [(1, 1), (2, 7), (13, 1), (52, 30)] {
        let set = sets!["collective[0].elements=1"; "link.latency_cycles={link}"; "link.local_latency_cycles={local}"];
        let document = pass(FLAGSHIP, &set);
        assert_eq!(only(&document).latency_cycles, Some(flagship(Times { link, local, ..Times::default() })));
        assert!(document.roundings.is_empty());
    }
    for (link, local, mhz) in
        [(5.0, 1.0, 1000.0), (5.3, 0.2, 1000.0), (5.0, 2.5, 850.0), (25.0, 5.0, 1333.0), (3.9, 3.1, 2000.0)]
    {
        let set = sets!["collective[0].elements=1"; "link.latency_ns={link}"; "link.local_latency_ns={local}"; "clock.frequency_mhz={mhz}"];
        let (link, local) = (ns(link, mhz), ns(local, mhz));
        let times = Times { link, local, ..Times::default() };
        let document = pass(FLAGSHIP, &set);
        let found = only(&document);
        assert_eq!(found.latency_cycles, Some(flagship(times)), "{times:?}");
        let expected_ns = flagship(times) as f64 * 1000.0 / mhz;
        assert!((found.latency_ns.unwrap() - expected_ns).abs() < 1e-6 * expected_ns);
    }
    // A rounding that changed a time is reported, one that did not is not.
    let rounded = |set: &[String]| pass(FLAGSHIP, set).roundings.len();
    assert_eq!(rounded(&sets!["collective[0].elements=1"; "link.latency_ns=5.3"]), 1);
    assert_eq!(rounded(&sets!["collective[0].elements=1"; "link.latency_ns=5.0"]), 0);
}

#[test]
fn for_explicit_radices() {
    // The flagship's highest engine input is port 7.
    for radix in [8, 9, 10, 16, 17, 33, 64] {
        let set = sets!["collective[0].elements=1"; "switch.ceng.radix={radix}"];
        let times = Times { radix, ..Times::default() };
        assert_eq!(latency(FLAGSHIP, &set), flagship(times), "radix {radix}");
    }
    let ground = Ground::Mesh { size: vec![3], concentration: 1 };
    for radix in [3, 4, 5, 8, 40] {
        let times = Times { radix, ..Times::default() };
        let expected = Tree::new(&ground, times, vec![1], 0..3).allreduce();
        assert_eq!(latency(&mesh(&[3], 1, ONE), &sets!["switch.ceng.radix={radix}"]), expected, "radix {radix}");
    }
}

#[test]
fn for_barriers_reductions_and_multicasts() {
    for pipeline in 1..=4 {
        let set = sets!["switch.pipeline_stages={pipeline}"];
        let times = Times { pipeline, ..Times::default() };
        let all: Vec<usize> = (0..8).collect();
        let root = Ground::Die.middle(&all);
        let tree = Tree::new(&Ground::Die, times, root, 0..8);
        assert_eq!(latency(&die("[[collective]]\nkind = \"barrier\"\n"), &set), tree.allreduce());
        // The result of a reduction lands at the root's core only.
        let reduce = die("[[collective]]\nkind = \"reduce\"\nroot = \"core5\"\n");
        let tree = Tree::new(&Ground::Die, times, Ground::Die.home(5), 0..8);
        assert_eq!(latency(&reduce, &set), tree.latency([5]));
        for source in [0, 3, 6] {
            let broadcast = die(&format!("[[collective]]\nkind = \"broadcast\"\nsource = {source}\n"));
            let farthest =
                (0..8).filter(|&end| end != source).map(|end| multicast(&Ground::Die, times, source, end)).max();
            assert_eq!(latency(&broadcast, &set), farthest.unwrap(), "source {source}");
        }
    }
}

#[test]
fn narrow_links_add_the_rest_of_a_flit_each() {
    for cycles_per_flit in [2, 3, 7] {
        let set = sets!["collective[0].elements=1"; "link.cycles_per_flit={cycles_per_flit}"];
        let times = Times { cycles_per_flit, ..Times::default() };
        assert_eq!(latency(FLAGSHIP, &set), flagship(times));
    }
}

#[test]
fn a_longer_vector_adds_a_cycle_an_element() {
    for elements in [2, 3, 64] {
        for pipeline in 1..=4 {
            let set = sets!["collective[0].elements={elements}"; "switch.pipeline_stages={pipeline}"; "{UNLIMITED}"];
            let expected = flagship(Times { pipeline, ..Times::default() }) + elements - 1;
            assert_eq!(latency(FLAGSHIP, &set), expected, "{elements} elements, pipeline {pipeline}");
        }
    }
}
