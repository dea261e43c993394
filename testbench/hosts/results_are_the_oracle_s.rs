//! Any number of ranks, any algorithm, any type: the oracle's bits in the algorithm's own order (P-HOST-1, P-HOST-2).

use std::fmt::Write;

use crate::sets;
use crate::support::{die, pass, refusal, run_with};
use watershed::scenario::result::Document;
use watershed::scenario::run::RunOptions;

const ALGORITHMS: [&str; 4] = ["recursive-doubling", "ring", "rabenseifner", "binary-tree"];

fn host(algorithm: &str, ranks: &[u64], rest: &str) -> String {
    format!("[[host]]\nalgorithm = \"{algorithm}\"\nparticipants = {ranks:?}\n{rest}\n")
}

fn checked(document: &Document) {
    for host in &document.hosts {
        assert_eq!(host.bit_exact, Some(true), "{host:?}");
        assert!(host.latency_cycles > Some(0), "{host:?}");
    }
}

#[test]
fn every_number_of_ranks_on_a_die() {
    let mut text = String::new();
    for ranks in 2..=8u64 {
        // Ranks need not be in the order of the cores.
        let list: Vec<u64> = (0..ranks).map(|rank| rank * 3 % 8).collect();
        for algorithm in ALGORITHMS {
            text += &host(algorithm, &list, "elements = 37\nrandom = \"mixed\"");
        }
    }
    checked(&pass(&die(&text), &[]));
}

#[test]
fn every_type_and_operation_of_note() {
    let mut text = String::new();
    for (dtype, op, random) in [
        ("f32", "sum", "bits"),
        ("f64", "prod", "mixed"),
        ("bf16", "sum", "normal"),
        ("f16", "max", "bits"),
        ("i32", "min", "uniform"),
        ("u64", "xor", "bits"),
        ("fp8_e4m3", "sum", "normal"),
    ] {
        for algorithm in ALGORITHMS {
            let rest = format!("dtype = \"{dtype}\"\nop = \"{op}\"\nrandom = \"{random}\"\nelements = 29");
            text += &host(algorithm, &[5, 0, 3, 6, 1, 7], &rest);
        }
    }
    checked(&pass(&die(&text), &[]));
}

#[test]
fn on_other_fabrics_and_with_other_packets() {
    let torus = "family = \"fabric\"\n[topology]\nkind = \"torus\"\nsize = [4, 3]\n";
    let hyperx = "family = \"fabric\"\n[topology]\nkind = \"hyperx\"\nsize = [3, 3]\nconcentration = 2\n";
    for fabric in [torus, hyperx] {
        for packet_words in [1, 3, 64] {
            let mut text = fabric.to_owned();
            for algorithm in ALGORITHMS {
                let _ = writeln!(
                    text,
                    "[[host]]\nalgorithm = \"{algorithm}\"\nelements = 50\ndtype = \"f32\"\npacket_words = {packet_words}"
                );
            }
            checked(&pass(&text, &sets!["seed=9"]));
        }
    }
}

/// Nodes of small dies.
fn nodes(size: &str, rest: &str) -> String {
    format!(
        "family = \"piuma\"\n[topology]\nkind = \"nodes\"\nsize = {size}\nsockets = 2\ntiles = 3\npositions = 2\n\
         [switch]\npoint_to_point_vcs = 6\npoint_to_point_buffer_flits = 128\n{rest}"
    )
}

#[test]
fn on_nodes_every_algorithm_and_the_two_modes() {
    let mut text = String::new();
    for algorithm in ALGORITHMS {
        for mode in ["fabric", "ideal"] {
            let _ = writeln!(
                text,
                "[[host]]\nalgorithm = \"{algorithm}\"\nelements = 64\nmode = \"{mode}\"\noverhead_cycles = 500"
            );
        }
    }
    let document = pass(&nodes("[2, 2]", &text), &[]);
    for pair in document.hosts.chunks(2) {
        let [fabric, ideal] = pair else { panic!("two modes") };
        assert_eq!((fabric.bit_exact, fabric.participants, fabric.steps), (Some(true), 32, ideal.steps));
        assert_eq!(
            (fabric.words_sent, fabric.words_received, fabric.messages),
            (ideal.words_sent, ideal.words_received, ideal.messages)
        );
        let (fabric, ideal) =
            (fabric.latency_cycles.expect("ended") as f64, ideal.latency_cycles.expect("ended") as f64);
        assert!((0.8..2.0).contains(&(fabric / ideal)), "{fabric} {ideal}");
    }
}

/// 32,768 ranks on the fabric, flit by flit.
#[test]
#[ignore = "takes minutes: make soak"]
fn recursive_doubling_on_256_nodes() {
    let text = "family = \"piuma\"\n[topology]\nkind = \"nodes\"\nsize = [16, 16]\nsockets = 16\n[switch]\npoint_to_point_vcs = 6\n\
                [[host]]\nalgorithm = \"recursive-doubling\"\noverhead_cycles = 1000\n";
    let document = pass(text, &[]);
    let host = &document.hosts[0];
    assert_eq!((host.participants, host.steps, host.bit_exact), (32_768, 15, Some(true)));
}

#[test]
fn order_of_evaluation_skipping_and_background_traffic_change_no_bit() {
    let text = die(&host("rabenseifner", &[0, 1, 2, 3, 4, 5, 6, 7], "elements = 100\noverhead_cycles = 20"));
    let hosts = |text: &str, options: &RunOptions<'_>| {
        let document = run_with(text, &[], options).document;
        assert!(document.passed(), "{:?}", document.checks);
        document.hosts
    };
    let plain = hosts(&text, &RunOptions::default());
    assert_eq!(hosts(&text, &RunOptions { order_seed: Some(4), ..RunOptions::default() }), plain);
    assert_eq!(hosts(&text, &RunOptions { no_skip: true, ..RunOptions::default() }), plain);
    // Flows on the links between the tiles slow hosts down: unlike the network's collectives they have no priority.
    let flows = "[[traffic]]\npattern = \"flows\"\nflows = [{ from = \"core0.P0\", to = \"core4.P0\", rate = 0.9 }, \
                 { from = \"core4.P1\", to = \"core0.P1\", rate = 0.9 }]\n";
    let loaded = hosts(&format!("{text}{flows}"), &RunOptions::default());
    assert_eq!(loaded[0].bit_exact, Some(true));
    assert!(loaded[0].latency_cycles > plain[0].latency_cycles, "{loaded:?} {plain:?}");
}

#[test]
fn hosts_repeat_a_collective_of_the_scenario() {
    let text = die(&format!(
        "[[collective]]\nname = \"net\"\nkind = \"allreduce\"\ndtype = \"i32\"\nelements = 64\nparticipants = [0, 2, 4, 6, 7]\n{}",
        ALGORITHMS.map(|algorithm| format!("[[host]]\nalgorithm = \"{algorithm}\"\nlike = \"net\"\n")).concat()
    ));
    let document = pass(&text, &[]);
    checked(&document);
    assert_eq!(document.hosts.len(), 4);
    let net = document.collectives[0].end_cycle.expect("it ended");
    let mut before = net;
    for host in &document.hosts {
        assert!(host.start_cycle >= Some(before), "one after the other");
        assert_eq!((host.participants, host.elements, host.dtype.as_str()), (5, 64, "i32"));
        before = host.end_cycle.expect("it ended");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    for (rest, why) in [
        ("[[host]]\nalgorithm = \"rign\"\n", "did you mean `ring`?"),
        ("[[host]]\nalgorithm = \"ring\"\nlike = \"sum\"\n", "no all-reduce that a host could repeat"),
        ("[[host]]\nalgorithm = \"ring\"\nparticipants = [9]\n", "there is no end point 9"),
        ("[[host]]\nalgorithm = \"ring\"\nop = \"xor\"\n", "there is no \"xor\" for f64"),
        (
            "[[collective]]\nkind = \"allreduce\"\n[[host]]\nalgorithm = \"ring\"\nlike = \"c0\"\nelements = 4\n",
            "`elements` is that of the collective",
        ),
        ("[[host]]\nalgorithm = \"ring\"\ndelay_cycles = [1, 2]\n", "2 delays for 8 ranks"),
        (
            "[[host]]\nalgorithm = \"ring\"\nmode = \"ideal\"\ndelay_cycles = 1\n",
            "in ideal mode all ranks start at once",
        ),
        ("[[host]]\nalgorithm = \"ring\"\nexchange = \"get\"\n", "on the fabric messages are written, not read"),
        (
            "[switch]\npoint_to_point_vcs = 1\n[[traffic]]\npattern = \"uniform\"\nrate = 0.1\n[[host]]\nalgorithm = \"ring\"\n",
            "needs 1 point-to-point channels, there are 0",
        ),
    ] {
        let message = refusal(&die(rest), &[]);
        assert!(message.contains(why), "{rest}\n{message}");
    }
}
