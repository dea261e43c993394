//! A long vector moves one element a cycle through every level; with a limit, at exactly the rate of the limit (P-SW-8,
//! P-AR-2, K-FC-1).

use crate::sets;
use crate::share;
use crate::support::{FLAGSHIP, ONE, UNLIMITED, die, landings, mesh};

/// Words by which a core has sent its last, so that its memory has to write only.
const READS_END: usize = 300;

/// Asserts that from word `from` on, `words` words land in every `cycles` cycles: word i + words lands exactly so much
/// after word i.
fn assert_rate(times: &[u64], from: usize, words: usize, cycles: u64, what: &str) {
    assert!(times.len() > from + 4 * words, "{what}: too short to judge");
    for i in from..times.len() - words {
        assert_eq!(times[i + words] - times[i], cycles, "{what}: words {i} to {}", i + words);
    }
}

#[test]
fn one_element_a_cycle_without_a_limit() {
    for pipeline in 1..=4 {
        for link in [1, 5, 50] {
            let set = sets!["collective[0].elements=300"; "switch.pipeline_stages={pipeline}"; "link.latency_cycles={link}"; "{UNLIMITED}"];
            for core in [0, 1, 7] {
                let times = landings(FLAGSHIP, &set, core);
                assert_rate(&times, 0, 1, 1, &format!("pipeline {pipeline}, link {link}, core {core}"));
            }
        }
    }
}

#[test]
fn one_element_a_cycle_through_every_level_of_a_mesh() {
    for stages in [1, 6] {
        let text = mesh(&[4, 3], 2, &format!("{ONE}elements = 200\n"));
        let set = sets!["switch.ceng.stages={stages}"; "{UNLIMITED}"];
        for core in [0, 11, 23] {
            assert_rate(&landings(&text, &set, core), 0, 1, 1, "mesh");
        }
    }
}

#[test]
fn every_link_of_the_tree_carries_every_element_once() {
    let document = crate::support::pass(FLAGSHIP, &sets!["collective[0].elements=300"; "{UNLIMITED}"]);
    let used: Vec<u64> =
        document.links.all.unwrap().into_iter().map(|link| link.flits).filter(|&flits| flits > 0).collect();
    // Eight cores, six steps to position 0, three steps along the row: each up and down.
    assert_eq!(used, vec![300; 2 * (8 + 6 + 3)]);
}

#[test]
fn memory_bandwidth_limits_an_all_reduce_to_two_elements_in_five_cycles() {
    for pipeline in 1..=4 {
        let set = sets!["collective[0].elements=400"; "switch.pipeline_stages={pipeline}"];
        for core in 0..8 {
            let times = landings(FLAGSHIP, &set, core);
            assert_rate(&times[..READS_END], 100, 2, 5, &format!("f64, core {core}"));
            // Once everything is read, all bandwidth is left for writing: four words in five cycles.
            assert_rate(&times[times.len() - 25..], 0, 4, 5, &format!("f64, core {core}, writes alone"));
        }
    }
    // f32 packs two elements into a word: twice the elements in the same words.
    let set = sets!["collective[0].elements=800"; "collective[0].dtype=\"f32\""];
    let times = landings(FLAGSHIP, &set, 3);
    assert_eq!(times.len(), 400);
    assert_rate(&times[..READS_END], 100, 2, 5, "f32");
}

#[test]
fn memory_bandwidth_limits_a_broadcast_to_four_elements_in_five_cycles() {
    for (dtype, words) in [("f64", 400), ("f32", 200)] {
        let text =
            die(&format!("[[collective]]\nkind = \"broadcast\"\ndtype = \"{dtype}\"\nelements = 400\nsource = 2\n"));
        let times = landings(&text, &[], 7);
        assert_eq!(times.len(), words);
        assert_rate(&times, 40, 4, 5, dtype);
    }
}

#[test]
fn a_reduction_is_as_fast_as_the_core_that_also_receives() {
    // The core at the root reads its own vector and writes the result: 128 bits an element, as in an all-reduce. All others
    // only read, and follow.
    let text = die("[[collective]]\nkind = \"reduce\"\nroot = \"core4\"\nelements = 400\n");
    let times = landings(&text, &[], 4);
    assert_rate(&times[40..READS_END], 0, 2, 5, "the root's core");
}

#[test]
fn memory_bandwidth_limits_a_reduction_to_an_idle_core_to_four_elements_in_five_cycles() {
    // Nobody both reads and writes: 64 bits an element at every memory, 51.2 a cycle.
    for receiver in [7, 4, 0] {
        let others: Vec<String> = (0..8).filter(|&end| end != receiver).map(|end| end.to_string()).collect();
        let text = die(&format!(
            "[[collective]]\nkind = \"reduce\"\nelements = 400\nreceiver = {receiver}\nparticipants = [{}]\n",
            others.join(", ")
        ));
        let times = landings(&text, &[], 7);
        assert_eq!(times.len(), 400, "the receiver's job is the last");
        assert_rate(&times, 10, 4, 5, &format!("receiver {receiver}"));
    }
}

/// One depth in three in `make test`: some below the round trip and some above.
#[test]
fn buffers_below_the_round_trip_move_their_depth_in_a_round_trip() {
    for pipeline in 1..=4u64 {
        for (link, cycles_per_flit) in [(5, 1), (9, 1), (7, 2), (6, 3)] {
            // A flit is granted, leaves the pipeline's back, crosses; the far switch's front; the credit crosses back.
            let back = u64::from(pipeline > 1);
            let front = pipeline.saturating_sub(2);
            let round_trip = back + (link + cycles_per_flit) + front + (link + 1);
            for depth in share::one_in(3, 1..=round_trip + 1) {
                let set = sets!["collective[0].elements=160"; "switch.collective_buffer_flits={depth}"; "switch.pipeline_stages={pipeline}";
                    "link.latency_cycles={link}"; "link.cycles_per_flit={cycles_per_flit}"; "{UNLIMITED}"];
                let times = landings(FLAGSHIP, &set, 1);
                let what =
                    format!("pipeline {pipeline}, link {link} / {cycles_per_flit}, depth {depth} of {round_trip}");
                if depth * cycles_per_flit >= round_trip {
                    assert_rate(&times, 40, 1, cycles_per_flit, &what);
                } else {
                    assert_rate(&times, 40, depth as usize, round_trip, &what);
                }
            }
        }
    }
}

#[test]
fn narrow_links_move_one_element_in_their_cycles_per_flit() {
    for cycles_per_flit in [2, 3] {
        for pipeline in 1..=4 {
            let set = sets!["collective[0].elements=200"; "link.cycles_per_flit={cycles_per_flit}"; "switch.pipeline_stages={pipeline}"; "{UNLIMITED}"];
            assert_rate(&landings(FLAGSHIP, &set, 6), 0, 1, cycles_per_flit, "narrow");
        }
    }
}
