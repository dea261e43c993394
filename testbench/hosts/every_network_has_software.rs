//! Every algorithm runs on every topology with any number of ranks, on the fabric and without contention, and what the ranks hold in
//! the end is what this file computes from the numbers it wrote into the scenario (requirement X-HOST-1).

use std::fmt::Write;

use crate::share;
use crate::support::{refusal, run_with};
use watershed::kernel::Rng;
use watershed::scenario::run::RunOptions;

const ALGORITHMS: [&str; 5] = ["recursive-doubling", "ring", "rabenseifner", "binary-tree", "send-loop"];

/// Topologies, and how many end points each has.
const TOPOLOGIES: [(&str, u64); 11] = [
    ("kind = \"die\"", 8),
    ("kind = \"nodes\"\nsize = [2]\nsockets = 2\ntiles = 3\npositions = 2", 16),
    ("kind = \"mesh\"\nsize = [3, 4]", 12),
    ("kind = \"mesh\"\nsize = [2, 2, 2]\nconcentration = 2", 16),
    ("kind = \"torus\"\nsize = [5, 3]", 15),
    ("kind = \"hyperx\"\nsize = [3, 3]\nconcentration = 2", 18),
    ("kind = \"flattened-butterfly\"\nsize = [4, 2]", 8),
    ("kind = \"fat-tree\"\narity = 3\nlevels = 2", 9),
    ("kind = \"dragonfly\"", 72),
    ("kind = \"tree\"\nbranching = [3, 4]", 13),
    ("kind = \"file\"\nfile = \"traces/k5.topology.toml\"", 5),
];

/// A scenario with one job, and the numbers that its ranks contribute.
fn scenario(
    (topology, ends): (&str, u64),
    algorithm: &str,
    ranks: usize,
    mode: &str,
    rng: &mut Rng,
) -> (String, Vec<Vec<i64>>) {
    let mut places: Vec<u64> = (0..ends).collect();
    for at in (1..places.len()).rev() {
        places.swap(at, rng.below(at as u64 + 1) as usize);
    }
    places.truncate(ranks);
    let elements = 1 + rng.below(9) as usize;
    let number = |rng: &mut Rng| rng.below(1 << 40) as i64 - (1 << 39);
    let values: Vec<Vec<i64>> = (0..ranks).map(|_| (0..elements).map(|_| number(rng)).collect()).collect();
    let kind = if algorithm == "send-loop" { "broadcast" } else { "allreduce" };
    let mut text = format!(
        "[topology]\n{topology}\n[switch]\npoint_to_point_vcs = 8\n[[job]]\nname = \"it\"\nengine = \"software\"\nkind = \"{kind}\"\n\
         dtype = \"i64\"\nelements = {elements}\nparticipants = {places:?}\nsoftware.algorithm = \"{algorithm}\"\n\
         software.mode = \"{mode}\"\nsoftware.packet_words = {}\n",
        1 + rng.below(5)
    );
    if mode == "fabric" {
        let _ = writeln!(text, "data.values = {values:?}");
    }
    (text, values)
}

/// Three numbers of ranks in `make test`, five in `make soak`.
#[test]
fn what_ranks_hold_is_the_sum_of_what_they_gave() {
    let mut rng = Rng::new(0x0051_f7aa, 0);
    let mut runs = 0;
    for topology in TOPOLOGIES {
        for algorithm in ALGORITHMS {
            let most = topology.1.min(19);
            for ranks in share::one_in(2, [1, 2, 5 + rng.below(most - 4), 3, most]) {
                let (text, values) = scenario(topology, algorithm, ranks as usize, "fabric", &mut rng);
                let result = run_with(&text, &[], &RunOptions::default());
                assert!(result.document.passed(), "{text}\n{:?}", result.document.checks);
                let all = run_with(&text, &[], &RunOptions { no_skip: true, ..RunOptions::default() });
                assert_eq!(all.document.hosts, result.document.hosts, "skipping changes something\n{text}");
                let element = |at: usize| match algorithm {
                    "send-loop" => values[0][at],
                    _ => values.iter().fold(0, |sum: i64, row| sum.wrapping_add(row[at])),
                };
                let expected: Vec<u64> = (0..values[0].len()).map(|at| element(at) as u64).collect();
                let rows: Vec<&[u64]> =
                    result.data.iter().find(|data| data.name == "it").unwrap().rows.iter().collect();
                assert_eq!(rows.len(), ranks as usize, "{text}");
                assert!(rows.iter().all(|row| *row == expected), "{text}\n{rows:?}\n{expected:?}");
                runs += 1;
            }
        }
    }
    assert_eq!(runs, TOPOLOGIES.len() * ALGORITHMS.len() * share::of(2, 5) as usize);
}

#[test]
fn the_ideal_mode_knows_every_network() {
    let mut rng = Rng::new(77, 0);
    for topology in TOPOLOGIES {
        for algorithm in ALGORITHMS {
            let ranks = 2 + rng.below(topology.1.min(12) - 1) as usize;
            let state = rng.clone();
            let (ideal, _) = scenario(topology, algorithm, ranks, "ideal", &mut rng);
            let (fabric, _) = scenario(topology, algorithm, ranks, "fabric", &mut state.clone());
            let [ideal, fabric] = [ideal, fabric].map(|text| {
                // Memories are no limit, and buffers cover every round trip: what is left is the way and the words.
                let sets =
                    ["memory.bandwidth_gbps='unlimited'", "switch.point_to_point_buffer_flits=64"].map(str::to_owned);
                let result = run_with(&text, &sets, &RunOptions::default());
                assert!(result.document.passed(), "{text}\n{:?}", result.document.checks);
                result.document.hosts.into_iter().next().unwrap()
            });
            assert_eq!(
                (ideal.steps, ideal.words_sent, ideal.messages),
                (fabric.steps, fabric.words_sent, fabric.messages)
            );
            let (ideal, fabric) = (ideal.latency_cycles.unwrap(), fabric.latency_cycles.unwrap());
            // The fabric adds headers and meetings, and takes nothing away that a shortest way costs.
            assert!(
                ideal <= fabric && fabric <= 4 * ideal + 40,
                "{} {algorithm} {ranks}: {ideal} {fabric}",
                topology.0
            );
        }
    }
}

/// Where routing is by chance, ways are searched; where it is in the order of dimensions, they are computed. Both are the shortest.
#[test]
fn a_searched_way_is_as_long_as_a_computed_one() {
    let mut rng = Rng::new(5, 0);
    for (topology, _) in [TOPOLOGIES[2], TOPOLOGIES[4], TOPOLOGIES[5]] {
        for _ in 0..12 {
            let (one, other) = (rng.below(12), rng.below(11));
            let other = if other >= one { other + 1 } else { other };
            let [computed, searched] = ["dimension-order", "minimal-random"].map(|algorithm| {
                let text = format!(
                    "[topology]\n{topology}\n[routing]\nalgorithm = \"{algorithm}\"\n[switch]\npoint_to_point_vcs = 8\n[[job]]\nengine = \"software\"\n\
                     participants = [{one}, {other}]\nsoftware.mode = \"ideal\"\n"
                );
                run_with(&text, &[], &RunOptions::default()).document.hosts[0].latency_cycles.unwrap()
            });
            assert_eq!(computed, searched, "{topology} {one} {other}");
        }
    }
}

#[test]
fn what_software_cannot_do_is_refused() {
    let job = "[topology]\nkind = \"torus\"\nsize = [3, 3]\n[[job]]\nengine = \"software\"\nelements = 2\n";
    for (rest, why) in [
        ("kind = \"barrier\"\n", "software has no barrier"),
        ("kind = \"broadcast\"\nsoftware.algorithm = \"ring\"\n", "this algorithm reduces, it does not broadcast"),
        ("participants = [0, 1]\ndata.values = [[1, 2]]\n", "1 rows of values"),
        ("participants = [0, 1]\ndata.values = [[1, 2], [3]]\n", "1 values for 2 elements"),
        ("participants = [0, 1]\ndtype = \"i32\"\ndata.values = [[1, 2], [3, 1.5]]\n", "1.5 is no i32"),
        (
            "participants = [0, 1]\nsoftware.mode = \"ideal\"\ndata.values = [[1, 2], [3, 4]]\n",
            "in ideal mode no data move",
        ),
        ("data.file = \"x.npy\"\n", "software contributes random data or values"),
    ] {
        let message = refusal(&format!("{job}{rest}"), &[]);
        assert!(message.contains(why), "{rest}\n{message}");
    }
}
