//! A vector in segments, each over a tree, a collective id and a plane of channels of its own: exact bits, the rate that links
//! and memories leave, and no gain where there is nothing to gain (P-EMB-4).

use std::fmt::Write;

use watershed::scenario::embedding;
use watershed::scenario::result::Document;
use watershed::scenario::run::RunOptions;
use watershed::scenario::why::WhyQuery;

use crate::sets;
use crate::support::{Draw, UNLIMITED, die, load, mesh, only, pass, refusal, run_with};

const NODES: &str = include_str!("../piuma/segments-nodes.toml");

fn cycles(text: &str, sets: &[String]) -> f64 {
    only(&pass(text, sets)).latency_cycles.expect("it ended") as f64
}

/// Nodes of one core each.
const SMALL: [&str; 4] = ["topology.sockets=1", "topology.tiles=1", "topology.positions=1", "topology.hsio_ports=7"];

/// Cycles an element takes in the steady state: what twice as many cost more. Nodes have one core each.
fn rate(text: &str, sets: &[String], elements: u64) -> f64 {
    let of = |elements: u64| {
        let mut sets = sets.to_vec();
        sets.extend(SMALL.iter().filter(|_| text.contains("nodes")).map(ToString::to_string));
        sets.push(format!("collective[0].elements={elements}"));
        cycles(text, &sets)
    };
    (of(2 * elements) - of(elements)) / elements as f64
}

#[test]
fn the_rate_is_that_of_all_trees_until_the_memories_are_the_narrowest_part() {
    // An element in 8 cycles over a link between nodes; a memory gives and takes one in 2.5.
    for (segments, expected) in [(1, 8.0), (2, 4.0), (3, 8.0 / 3.0)] {
        let rate = rate(NODES, &sets!["collective[0].segments={segments}"], 240);
        assert!((rate - expected).abs() < 0.02, "{segments} segments: an element in {rate} cycles, not {expected}");
    }
    let rate = rate(NODES, &sets!["collective[0].segments=4"], 600);
    assert!((2.5..2.6).contains(&rate), "four segments wait for the memories: an element in {rate} cycles");
}

#[test]
fn the_shipped_scenario_gains_more_than_two_and_a_half() {
    let (four, one) = (cycles(NODES, &[]), cycles(NODES, &sets!["collective[0].segments=1"]));
    assert!(one / four > 2.5, "{one} cycles with one tree, {four} with four");
}

#[test]
fn where_the_memories_are_the_narrowest_part_there_is_nothing_to_gain() {
    // The paper's system: all links have 64 Gb/s, a memory 51.2.
    for segments in [1, 4] {
        let set = sets!["link.node_cycles_per_flit=1"; "collective[0].segments={segments}"];
        let rate = rate(NODES, &set, 480);
        assert!((rate - 2.5).abs() < 0.05, "{segments} segments: an element in {rate} cycles");
    }
}

#[test]
fn a_mesh_has_no_second_tree_and_gains_nothing() {
    // All links have one width, so what a core's own link carries is what one tree carries.
    let text = mesh(&[4, 4], 1, "[[collective]]\nkind = \"allreduce\"\n");
    for segments in [1, 2, 3] {
        let set = sets!["collective[0].segments={segments}"; "{UNLIMITED}"];
        let rate = rate(&text, &set, 240);
        assert!(rate > 0.99, "{segments} segments: an element in {rate} cycles");
    }
}

#[test]
fn links_that_are_narrow_by_their_buffers_gain_as_well() {
    // Links between nodes that are narrow because of their buffers: 8 flits in a round trip of 102 cycles and more.
    let set = |segments: u32| sets!["link.node_cycles_per_flit=1"; "switch.collective_buffer_flits=8"; "collective[0].segments={segments}"; "{UNLIMITED}"];
    let (one, two) = (rate(NODES, &set(1), 240), rate(NODES, &set(2), 240));
    assert!((one - 102.0 / 8.0).abs() < 0.05, "8 flits in a round trip: an element in {one} cycles");
    assert!((two - one / 2.0).abs() < 0.05, "an element in {two} cycles with two, {one} with one");
}

/// Systems of all kinds with as many segments as there may be, random subsets and receivers among them.
fn shapes() -> Vec<String> {
    let nodes = |size: &str, sockets: u32, tiles: u32, positions: u32| {
        format!(
            "family = \"piuma\"\n[topology]\nkind = \"nodes\"\n{size}sockets = {sockets}\ntiles = {tiles}\n\
             positions = {positions}\nhsio_ports = 12\n"
        )
    };
    vec![
        die(""),
        mesh(&[3, 4], 2, ""),
        nodes("", 5, 2, 2),
        nodes("size = [5]\n", 2, 3, 2),
        nodes("size = [2, 4]\n", 1, 1, 1),
        nodes("size = [3, 2, 2]\n", 2, 1, 4),
    ]
}

#[test]
fn every_number_of_segments_on_every_kind_of_system_is_exact() {
    let mut draw = Draw(0x5e6);
    for (number, shape) in shapes().into_iter().enumerate() {
        for segments in [2, 3, 5, 8] {
            let ends =
                load(&format!("{shape}[[collective]]\nkind = \"barrier\"\n"), &[]).scenario.topology.end_points();
            let mut list: Vec<u64> = (0..ends).map(u64::from).filter(|_| draw.below(3) > 0).collect();
            list.push(u64::from(ends) - 1);
            list.dedup();
            let (dtype, kind) =
                [("f64", "allreduce"), ("f32", "reduce"), ("bf16", "allreduce")][(number + segments) % 3];
            let wide = if dtype == "bf16" { "accumulate = \"f32\"\n" } else { "" };
            let elements = 40 + draw.below(60);
            let text = format!(
                "{shape}[switch]\ncollective_ids = 8\n[[collective]]\nkind = \"{kind}\"\ndtype = \"{dtype}\"\n{wide}\
                 elements = {elements}\nsegments = {segments}\nparticipants = {list:?}\n"
            );
            let document = pass(&text, &[]);
            let found = only(&document);
            assert_eq!((found.bit_exact, found.exact_elements), (Some(true), elements), "{text}");
            assert_eq!(found.segments.len(), segments, "{text}");
            assert_eq!(found.segments.iter().map(|of| of.elements).sum::<u64>(), elements);
            assert_eq!(found.segments.iter().filter_map(|of| of.end_cycle).max(), found.end_cycle);
            let once = document.checks.iter().filter(|check| check.name.starts_with("every contribution once"));
            assert_eq!(once.count(), segments);
        }
    }
}

#[test]
fn late_cores_short_buffers_and_background_traffic_never_stop_segments_for_good() {
    let mut draw = Draw(77);
    for round in 0..6 {
        let set = sets![
            "collective[0].elements=48"; "collective[0].delay_cycles={{random_max={}}}", 1 + draw.below(400);
            "switch.collective_buffer_flits={}", 1 + draw.below(3); "switch.ceng.operand_slots={}", 1 + draw.below(2);
            "switch.ceng.result_slots={}", 1 + draw.below(2); "topology.size=[4]"; "switch.pipeline_stages={}", 1 + draw.below(4);
            "collective[0].segments={}", 2 + draw.below(3); "seed={round}"];
        let traffic = "[[traffic]]\npattern = \"uniform\"\nrate = 0.3\npacket_flits = 3\n";
        let text = if round % 2 == 0 { format!("{NODES}{traffic}") } else { NODES.to_owned() };
        assert_eq!(only(&pass(&text, &set)).bit_exact, Some(true), "{set:?}");
    }
}

#[test]
fn threads_order_and_skipping_change_nothing() {
    let set = sets!["collective[0].elements=96"];
    let document = |options: &RunOptions<'_>| -> Document {
        let mut document = run_with(NODES, &set, options).document;
        assert!(document.passed());
        document.scenario = None;
        document
    };
    let plain = document(&RunOptions::default());
    assert_eq!(document(&RunOptions { threads: 2, ..RunOptions::default() }), plain);
    assert_eq!(document(&RunOptions { order_seed: Some(5), ..RunOptions::default() }), plain);
    assert_eq!(document(&RunOptions { no_skip: true, ..RunOptions::default() }), plain);
}

#[test]
fn embeddings_show_every_tree_and_that_none_shares_a_link_between_nodes() {
    let all = embedding::all(&load(NODES, &[])).unwrap();
    let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["sum.0", "sum.1", "sum.2", "sum.3"]);
    let mut roots: Vec<u32> = all.iter().map(|one| one.root).collect();
    roots.dedup();
    assert_eq!(roots.len(), 4, "a root each");
    for (at, one) in all.iter().enumerate() {
        assert_eq!((one.id, one.plane), (at as u16, at as u8));
        let between = one.shared.iter().find(|(level, ..)| level == "inter-node").unwrap();
        assert_eq!((between.1, between.2), (7, 0), "{}", one.text());
        assert!(one.text().contains("0 of 7 inter-node"), "{}", one.text());
    }
    // More trees than eight nodes have without a common link: some is shared, and embed says so.
    let more = embedding::all(&load(NODES, &sets!["collective[0].segments=5"; "switch.collective_ids=8"])).unwrap();
    assert!(more.iter().any(|one| one.shared.iter().any(|(level, _, shared)| level == "inter-node" && *shared > 0)));
}

#[test]
fn why_adds_up_for_the_last_segment_and_for_the_one_that_is_asked_for() {
    let set = sets!["collective[0].elements=40"];
    let ask = |collective: Option<&str>| {
        let ask = WhyQuery { collective, ..WhyQuery::default() };
        let mut result = run_with(NODES, &set, &RunOptions { why: Some(ask), ..RunOptions::default() });
        assert_eq!(result.why.len(), 1, "{:?}", result.notes);
        (result.why.remove(0), only(&result.document).clone(), result.notes)
    };
    let (why, result, notes) = ask(None);
    assert_eq!((why.start_cycle, Some(why.end_cycle)), (0, result.end_cycle));
    assert!(notes.iter().any(|note| note.starts_with(&format!("{} is the segment", why.collective))), "{notes:?}");
    for number in 0..4 {
        let name = format!("sum.{number}");
        let (why, result, _) = ask(Some(&name));
        assert_eq!((why.collective.as_str(), Some(why.end_cycle)), (name.as_str(), result.segments[number].end_cycle));
        assert_eq!(why.parts.iter().map(|part| part.to - part.from).sum::<u64>(), why.latency_cycles);
        assert!(why.parts.windows(2).all(|pair| pair[0].to == pair[1].from), "{:?}", why.parts);
    }
}

#[test]
fn a_flipped_bit_is_found_in_its_segment() {
    use watershed::scenario::run::Flip;
    let flip = Flip { switch: "n2_s0_core0", id: 2, word: 3, mask: 1 << 62 };
    let options = RunOptions { flip: Some(flip), ..RunOptions::default() };
    let result = run_with(NODES, &sets!["collective[0].elements=40"], &options);
    let found = only(&result.document);
    assert_eq!(found.bit_exact, Some(false));
    let first = found.first_difference.clone().unwrap();
    assert_eq!((first.element, first.node.as_str()), (found.segments[2].first_element + 3, "n2_s0_core0.ceng"));
}

#[test]
fn collectives_on_two_planes_do_not_wait_for_each_other_and_those_on_one_do() {
    let pair = |plane: u32| {
        die(&format!(
            "[[collective]]\nname = \"a\"\nkind = \"allreduce\"\nelements = 200\n\
             [[collective]]\nname = \"b\"\nkind = \"allreduce\"\nid = 1\nelements = 200\nroot = \"sw3\"\nplane = {plane}\n"
        ))
    };
    let (turns, together) = (pass(&pair(0), &[]), pass(&pair(1), &[]));
    let ends = |document: &Document| [0, 1].map(|at| document.collectives[at].end_cycle.expect("it ended"));
    assert!(ends(&turns)[0].abs_diff(ends(&turns)[1]) >= 200, "one vector behind the other: {:?}", ends(&turns));
    assert_eq!((together.collectives[0].start_cycle, together.collectives[1].start_cycle), (Some(0), Some(0)));
    assert!(together.collectives.iter().all(|of| of.bit_exact == Some(true)));
    // A segmented collective still takes turns with others on its planes.
    let three = format!("{}[[job]]\nname = \"c\"\nkind = \"barrier\"\npiuma.id = 3\n", NODES.replace("= 4\n", "= 3\n"));
    let document = pass(&three, &sets!["collective[0].elements=30"]);
    let waits = document.links.waits.expect("monitors look").blocks;
    assert!(waits.get("claim_held").is_some_and(|&cycles| cycles > 0), "{waits:?}");
}

#[test]
fn saved_trees_of_segments_can_be_edited_and_put_on_planes() {
    // What embed saves of each segment, as a collective of its own with its plane.
    let all = embedding::all(&load(NODES, &sets!["collective[0].segments=2"])).unwrap();
    let (head, _) = NODES.split_once("[[job]]").unwrap();
    let mut text = head.to_owned();
    for one in &all {
        let (id, plane) = (one.id, one.plane);
        let head = "[[collective]]\nkind = \"allreduce\"\nelements = 240\n";
        let _ = writeln!(text, "{head}id = {id}\nplane = {plane}\n[collective.registers]");
        text += &one.toml();
    }
    let document = pass(&text, &[]);
    assert!(document.collectives.iter().all(|of| of.bit_exact == Some(true)));
    let end = document.collectives.iter().filter_map(|of| of.end_cycle).max();
    let whole = pass(NODES, &sets!["collective[0].segments=2"; "collective[0].elements=480"]);
    assert_eq!(end, only(&whole).end_cycle, "the same trees, the same cycles");
}

#[test]
fn what_segments_cannot_be_is_said() {
    let with = |kind: &str, rest: &str| die(&format!("[[collective]]\nkind = \"{kind}\"\nsegments = 3\n{rest}"));
    for (text, expected) in [
        (with("broadcast", "elements = 8\n"), "a broadcast has no segments"),
        (with("scan", "elements = 8\n"), "a scan has no segments"),
        (with("allreduce", "elements = 2\n"), "3 segments of a vector of 2 words of 64 bits"),
        (with("allreduce", "elements = 8\nroot = \"sw0\"\n"), "`root` describes one"),
        (with("allreduce", "elements = 8\nid = 2\n"), "3 segments from id 2 on need ids up to 4"),
        (with("allreduce", "elements = 8\nplane = 6\n"), "3 segments from plane 6 on need planes up to 8"),
        (die("[[collective]]\nkind = \"scan\"\nplane = 1\n"), "scans are on plane 0"),
        (with("allreduce", "elements = 8\n[[collective]]\nkind = \"barrier\"\nid = 1\n"), "both use id 1"),
        (die("[link]\nnode_cycles_per_flit = 2\n"), "the topology \"die\" has no such links"),
    ] {
        let refused = refusal(&text, &[]);
        assert!(refused.contains(expected), "{refused}");
    }
}

#[test]
fn why_finds_the_segment_that_has_a_word_of_the_vector() {
    // Elements of 64 bits; two in a word; bf16 added as f32, of which two are in a word.
    for (elements, lanes, types) in [(10, 1, "\"f64\""), (43, 2, "\"f32\""), (43, 2, "\"bf16\"")] {
        let mut set = sets!["collective[0].elements={elements}"; "collective[0].dtype={types}"];
        set.extend(SMALL.map(String::from));
        if types.contains("bf16") {
            set.push("collective[0].accumulate=\"f32\"".into());
        }
        let ask = |collective: Option<&str>, packet: u64| {
            let ask = WhyQuery { collective, packet: Some(packet), ..WhyQuery::default() };
            run_with(NODES, &set, &RunOptions { why: Some(ask), ..RunOptions::default() })
        };
        let mut word = 0;
        for (number, segment) in only(&ask(None, 0).document).segments.iter().enumerate() {
            let name = format!("sum.{number}");
            let words = segment.elements.div_ceil(lanes);
            for within in [0, words - 1] {
                let (of_all, of_segment) = (ask(None, word + within), ask(Some(&name), within));
                assert_eq!((of_all.why.len(), &of_all.why), (1, &of_segment.why), "{types}: {:?}", of_all.notes);
                assert_eq!((&of_all.why[0].collective, of_all.why[0].number), (&name, within));
                let note = format!("word {} of sum is word {within} of its segment {name}", word + within);
                assert_eq!((of_all.notes, of_segment.notes), (vec![note], vec![]));
            }
            word += words;
        }
        let beyond = ask(None, word);
        assert_eq!((beyond.why, beyond.notes), (vec![], vec![format!("sum: there is no word {word}; it has {word}")]));
    }
}
