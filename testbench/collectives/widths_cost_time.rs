//! A flit of F bits crosses a link of W bits in s = ceil(F / W) cycles, and all times follow from that (H-WIDTH-1, H-WIDTH-2):
//!
//! | what | cycles |
//! |---|---|
//! | m elements, L links on the longest path, those of end points included | T(m, s) = T(1, 1) + L (s - 1) + (m - 1) s |
//! | unequal links | T(1, 1) + the sum of (s_i - 1) + (m - 1) times the largest s_i |
//! | buffers of d flits, a credit round trip of R cycles above d s | d elements every R cycles |

use crate::first_principles::{Ground, Times, Tree};
use crate::sets;
use crate::support::{FLAGSHIP, ONE, UNLIMITED, die, landings, latency, load, mesh, pass, refusal, run_with};
use watershed::kernel::Rng;
use watershed::scenario::cost::{Cost, cost};
use watershed::scenario::run::RunOptions;

/// Bits of a word, and widths from an eighth of it to eight times it, those that do not divide it among them.
const WORD: u64 = 64;
const WIDTHS: [u64; 12] = [8, 9, 13, 16, 22, 31, 32, 33, 63, 64, 65, 512];

/// From the farthest core to the root of the die's built-in tree, a core of the first tile, and back: its own link, a step in
/// the tile, three tiles.
const LINKS_OF_THE_DIE: u64 = 2 * (1 + 1 + 3);

fn cycles(bits: u64, width: u64) -> u64 {
    (1..=bits).find(|cycles| cycles * width >= bits).expect("a bit a cycle is enough")
}

/// The same width for all links.
fn all_links(width: u64) -> Vec<String> {
    sets!["link.width_bits={width}"; "link.local_width_bits={width}"]
}

fn at(text: &str, elements: u64, more: &[String]) -> u64 {
    let mut set = sets!["collective[0].elements={elements}"; "{UNLIMITED}"];
    set.extend_from_slice(more);
    latency(text, &set)
}

/// Holds a topology against the first row of the table; `links` are those of its longest path.
fn closed_form(name: &str, text: &str, links: u64) {
    let wide = at(text, 1, &[]);
    for width in WIDTHS {
        let s = cycles(WORD, width);
        for elements in [1, 2, 7, 40] {
            let expected = wide + links * (s - 1) + (elements - 1) * s;
            assert_eq!(at(text, elements, &all_links(width)), expected, "{name}: {elements} elements, {width} wires");
        }
    }
}

#[test]
fn on_a_die() {
    let root = Ground::Die.middle(&[0, 1, 2, 3, 4, 5, 6, 7]);
    closed_form("die", &die(ONE), LINKS_OF_THE_DIE);
    for width in WIDTHS {
        let times = Times { cycles_per_flit: cycles(WORD, width), ..Times::default() };
        let expected = Tree::new(&Ground::Die, times, root.clone(), 0..8).allreduce();
        assert_eq!(at(&die(ONE), 1, &all_links(width)), expected, "{width} wires, walked link by link");
    }
}

#[test]
fn on_trees() {
    for branching in [&[3][..], &[2, 2], &[3, 2, 2], &[2, 1, 1, 3]] {
        let text = format!(
            "family = \"piuma\"\n[topology]\nkind = \"tree\"\nbranching = {branching:?}\n{ONE}root = \"top\"\n"
        );
        closed_form(&format!("tree {branching:?}"), &text, 2 * branching.len() as u64);
    }
}

#[test]
fn on_meshes() {
    for (size, concentration) in [(&[5][..], 1), (&[4, 3], 2), (&[2, 3, 2], 1)] {
        let sides: Vec<i64> = size.iter().map(|&side| i64::from(side)).collect();
        let ground = Ground::Mesh { size: sides, concentration: concentration as usize };
        let all: Vec<usize> = (0..ground.ends()).collect();
        let root = ground.middle(&all);
        let farthest = all.iter().map(|&end| ground.distance(&ground.home(end), &root)).max().unwrap();
        closed_form(&format!("mesh {size:?}"), &mesh(size, concentration, ONE), 2 * (farthest + 1));
    }
}

#[test]
fn unequal_links_add_up_and_the_narrowest_sets_the_rate() {
    let mut rng = Rng::new(0x31d7, 0);
    let text = format!(
        "family = \"piuma\"\n[topology]\nkind = \"nodes\"\nsize = [2]\nsockets = 2\ntiles = 2\npositions = 2\n{ONE}"
    );
    let kinds = ["width_bits", "local_width_bits", "socket_width_bits", "node_width_bits"];
    let wide = at(&text, 1, &[]);
    // One cycle more for each link of a kind on the longest path.
    let links = kinds.map(|kind| at(&text, 1, &sets!["link.{kind}=32"]) - wide);
    assert_eq!((links[1], links[3]), (2, 2), "an end point at either end, a link between nodes up and down");
    assert_eq!(at(&text, 1, &kinds.map(|kind| format!("link.{kind}=32"))), wide + links.iter().sum::<u64>());
    for _ in 0..24 {
        let widths = kinds.map(|_| 4 + rng.below(70));
        let set: Vec<String> = kinds.iter().zip(widths).map(|(kind, width)| format!("link.{kind}={width}")).collect();
        let s = widths.map(|width| cycles(WORD, width));
        let more: u64 = links.iter().zip(s).map(|(links, s)| links * (s - 1)).sum();
        let slowest = s.into_iter().max().unwrap();
        for elements in [1, 30] {
            assert_eq!(at(&text, elements, &set), wide + more + (elements - 1) * slowest, "{set:?}");
        }
    }
}

#[test]
fn short_buffers_limit_the_rate_below_what_the_width_allows() {
    for (width, pipeline) in [(64, 1), (32, 2), (16, 3), (8, 4)] {
        let s = cycles(WORD, width);
        let (link, back, front) = (6, u64::from(pipeline > 1), pipeline as u64 - 1 - u64::from(pipeline > 1));
        let round_trip = back + link + s + front + link + 1;
        for depth in 1..=round_trip.div_ceil(s) + 1 {
            let mut set = sets!["collective[0].elements=120"; "link.latency_cycles={link}"; "{UNLIMITED}"; "switch.pipeline_stages={pipeline}"; "switch.collective_buffer_flits={depth}"];
            set.extend(all_links(width));
            let landed = landings(FLAGSHIP, &set, 1);
            // min(1 / s, d / R) elements a cycle, exactly, once the pipeline is full.
            let (words, cycles) = if depth * s >= round_trip { (1, s) } else { (depth as usize, round_trip) };
            for at in 40..landed.len() - words {
                let what = format!("{width} wires, pipeline {pipeline}, {depth} flits of {round_trip} cycles");
                assert_eq!(landed[at + words] - landed[at], cycles, "{what}, word {at}");
            }
        }
    }
}

fn cost_of(sets: &[String]) -> Cost {
    cost(&load(FLAGSHIP, sets)).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Bits of storage, and wires, of a kind of block.
fn block(cost: &Cost, name: &str) -> (u64, u64) {
    let of = cost.blocks.iter().filter(|block| block.block == name);
    of.fold((0, 0), |(bits, wires), block| {
        (bits + block.count * block.each.storage_bits, wires + block.count * block.each.wires)
    })
}

#[test]
fn gates_wires_and_throughput_say_the_same() {
    // 48 links between switches, 8 to cores, two directions each; id, sequence number and flags (53 bits), head, tail and
    // channel (7 bits) on a side band, a credit with its channel of four (3 wires).
    let (between, local, beside) = (2 * 48, 2 * 8, 12 + 36 + 5 + 7 + 3);
    for width in WIDTHS {
        let s = cycles(WORD, width);
        let set = sets!["link.width_bits={width}"];
        let wide = cost_of(&[]);
        let cost = cost_of(&set);
        assert_eq!(block(&cost, "link wires").1, between * (width + beside) + local * (64 + beside), "{width} wires");
        let bits_of_a_counter = (0..64).find(|&bits| 1 << bits >= s).unwrap_or(0);
        let serial = if s == 1 { 0 } else { between * 2 * (WORD + bits_of_a_counter) };
        assert_eq!(block(&cost, "serialisers").0, serial, "{width} wires");
        assert_eq!(cost.total.gates != wide.total.gates, s > 1, "{width} wires: gates and time change together");
        // A word in s cycles of 1 GHz, derived, printed, and what the run measures.
        let document = pass(FLAGSHIP, &[&set[..], &sets!["collective[0].elements=200"; "{UNLIMITED}"]].concat());
        assert_eq!(document.config["derived"]["link_bandwidth_gbps"], 64.0 / s as f64);
        assert_eq!(document.config["link"]["cycles_per_flit"], s);
        let links = document.links.all.as_ref().expect("all links were asked for");
        let used = links.iter().filter(|link| link.flits == 200);
        for link in used {
            let takes = if link.level == "local" { 1 } else { s };
            let busy = (200 * takes) as f64 / document.cycles as f64;
            assert!((link.utilisation - busy).abs() < 1e-12, "{}: {} for {busy}", link.name, link.utilisation);
        }
    }
}

#[test]
fn a_header_in_the_flit_costs_its_bits() {
    const HEADER: u64 = 12 + 36 + 5;
    let text = die(ONE);
    let in_flit = |width: u64| {
        let mut set = all_links(width);
        set.push("link.header=\"in-flit\"".into());
        set
    };
    // A side band is the default, and a link is as wide as what crosses it unless its width is given.
    let wide = at(&text, 1, &[]);
    assert_eq!(at(&text, 1, &sets!["link.header=\"side-band\""]), wide);
    assert_eq!(at(&text, 30, &sets!["link.header=\"in-flit\""]), wide + 29);
    for width in [8, 32, 53, 64, 116, 117, 200] {
        let s = cycles(WORD + HEADER, width);
        for elements in [1, 25] {
            let expected = wide + LINKS_OF_THE_DIE * (s - 1) + (elements - 1) * s;
            assert_eq!(at(&text, elements, &in_flit(width)), expected, "{elements} elements, {width} wires");
        }
    }
    // The wires go from the side band into the link; what is stored is the same.
    let (beside, inside) = (cost_of(&[]), cost_of(&sets!["link.header=\"in-flit\""]));
    assert_eq!(beside.total, inside.total);
    let narrow = [all_links(64), in_flit(64)].map(|set| block(&cost_of(&set), "link wires").1);
    assert_eq!(narrow[0] - narrow[1], 2 * 56 * HEADER);
    // The other families have no such header.
    let mesh = "family = \"fabric\"\n[topology]\nkind = \"mesh\"\nsize = [2]\n[[traffic]]\npattern = \"uniform\"\nrate = 0.1\nstop_cycle = 9\n";
    assert!(refusal(mesh, &sets!["link.header=\"in-flit\""]).contains("only the piuma family has a header"));
}

#[test]
fn cycles_of_an_older_file_mean_what_they_meant_and_say_so() {
    let older = load(FLAGSHIP, &sets!["link.cycles_per_flit=3"]);
    assert_eq!(older.notes.len(), 1);
    for width in ["`link.width_bits = 22`", "`link.local_width_bits = 22`"] {
        assert!(older.notes[0].contains(width), "{}", older.notes[0]);
    }
    let run = |set: &[String]| run_with(FLAGSHIP, set, &RunOptions::default()).document;
    let (older, newer) = (run(&sets!["link.cycles_per_flit=3"]), run(&all_links(22)));
    assert_eq!(older.cycles, newer.cycles);
    assert_eq!(load(FLAGSHIP, &all_links(22)).notes, [""; 0]);
    // No width takes 100 cycles: it still runs, and the nearest is named.
    let odd = load(FLAGSHIP, &sets!["link.cycles_per_flit=100"]);
    assert!(odd.notes[0].contains("no width") && odd.notes[0].contains("`link.width_bits = 1`"), "{}", odd.notes[0]);
    let one = Times { cycles_per_flit: 100, ..Times::default() };
    let expected = Tree::new(&Ground::Die, one, Ground::Die.middle(&[0, 1, 2, 3, 4, 5, 6, 7]), 0..8).allreduce();
    assert_eq!(at(&die(ONE), 1, &sets!["link.cycles_per_flit=100"]), expected);
    let both = "family = \"piuma\"\n[topology]\nkind = \"die\"\n[link]\nwidth_bits = 8\ncycles_per_flit = 8\n[[collective]]\nkind = \"barrier\"\n";
    assert!(refusal(both, &[]).contains("cannot both be given"));
}
