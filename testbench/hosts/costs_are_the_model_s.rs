//! What a round costs, and how the two modes and the network compare (P-HOST-1, P-HOST-3, P-FIG-4).

use crate::sets;
use crate::share;
use crate::support::{UNLIMITED, die, pass, refusal};
use watershed::scenario::result::Document;

fn cycles(document: &Document, at: usize) -> u64 {
    document.hosts[at].latency_cycles.expect("it ended")
}

#[test]
fn one_exchange_is_overhead_words_path_flag_and_merge() {
    // Two neighbours, m words, unlimited memory: overhead, a header for every eight words, the words, the flag, the way
    // (1 + local, 1 + link for each switch but the last, 1 + local), and a merge of a word a cycle.
    for (words, overhead, link) in [(1, 0, 5), (1, 70, 5), (24, 0, 5), (100, 13, 9)] {
        let text = die(&format!(
            "[[host]]\nalgorithm = \"recursive-doubling\"\nparticipants = [0, 1]\nelements = {words}\noverhead_cycles = {overhead}\n"
        ));
        let document =
            pass(&text, &sets!["{UNLIMITED}"; "link.latency_cycles={link}"; "switch.point_to_point_buffer_flits=64"]);
        let headers = u64::div_ceil(words, 8);
        let way = (1 + 1) + (1 + link) + (1 + 1);
        assert_eq!(cycles(&document, 0), overhead + headers + words + way + words + 1 - 1, "{words} {overhead} {link}");
    }
}

#[test]
fn without_load_the_two_modes_agree() {
    // One word each: nothing meets anything; only the header is not in the ideal mode.
    for ranks in ["[0, 1]", "[0, 7]", "[2, 5]"] {
        for overhead in [0, 40] {
            let host = |mode: &str| {
                format!(
                    "[[host]]\nalgorithm = \"recursive-doubling\"\nparticipants = {ranks}\nmode = \"{mode}\"\noverhead_cycles = {overhead}\n"
                )
            };
            let document = pass(&die(&format!("{}{}", host("fabric"), host("ideal"))), &sets!["{UNLIMITED}"]);
            assert_eq!(cycles(&document, 0), cycles(&document, 1) + 1, "{ranks} {overhead}");
        }
    }
}

#[test]
fn a_buffer_that_is_read_costs_three_ways_instead_of_one() {
    for (ranks, ways) in [("[0, 1]", 1u64), ("[0, 7]", 4), ("[2, 5]", 4)] {
        for (words, overhead, link) in [(1u64, 0u64, 5u64), (1, 90, 9), (64, 0, 5)] {
            let host = |exchange: &str| {
                format!(
                    "[[host]]\nalgorithm = \"recursive-doubling\"\nparticipants = {ranks}\nmode = \"ideal\"\nexchange = \"{exchange}\"\n\
                     elements = {words}\noverhead_cycles = {overhead}\n"
                )
            };
            let document = pass(
                &die(&format!("{}{}", host("put"), host("get"))),
                &sets!["{UNLIMITED}"; "link.latency_cycles={link}"],
            );
            let way = (1 + 1) + ways * (1 + link) + (1 + 1);
            // Memory sets no limit here, so a word is read and merged in a cycle each.
            assert_eq!(cycles(&document, 0), overhead + words + way + words, "put {ranks} {words} {overhead} {link}");
            assert_eq!(cycles(&document, 1), overhead + 3 * way + 2 * words, "get {ranks} {words} {overhead} {link}");
        }
    }
}

#[test]
fn long_vectors_cost_seven_words_of_memory_where_the_network_needs_two() {
    // Rabenseifner: 2 m sent, 2 m received, m merged at three words each: 7 m; the network reads and writes m: 2 m.
    [2, 3, 4].into_iter().for_each(long_vectors);
}

/// A quarter as long in `make test`.
fn long_vectors(accesses: u32) {
    let elements = share::of(4, 16_384);
    let text = die(&format!(
        "[[collective]]\nname = \"net\"\nkind = \"allreduce\"\nelements = {elements}\n[[host]]\nalgorithm = \"rabenseifner\"\nlike = \"net\"\n\
         mode = \"ideal\"\nmerge_accesses = {accesses}\n[[host]]\nalgorithm = \"rabenseifner\"\nlike = \"net\"\n\
         merge_accesses = {accesses}\n"
    ));
    let document = pass(&text, &[]);
    let net = document.collectives[0].latency_cycles.expect("it ended");
    let share = 7.0 / 8.0; // of 8 ranks each keeps an eighth to itself in every phase
    let ratio = |at: usize| cycles(&document, at) as f64 / net as f64;
    let words = f64::from(4 + accesses) / 2.0;
    assert!((ratio(0) / (words * share) - 1.0).abs() < 0.01, "ideal: {}", ratio(0));
    assert!((ratio(1) / ratio(0) - 1.0).abs() < 0.05, "on the fabric: {}", ratio(1));
}

#[test]
fn a_merged_word_costs_its_accesses_of_memory() {
    // An access a cycle: two neighbours merge all their words, eight ranks seven eighths of them.
    for (ranks, algorithm, merged) in
        [("[0, 1]", "recursive-doubling", (1, 1)), ("[0, 1, 2, 3, 4, 5, 6, 7]", "rabenseifner", (7, 8))]
    {
        for mode in ["fabric", "ideal"] {
            for elements in [8, 24, 104] {
                let time = |accesses: &str| {
                    let text = die(&format!(
                        "[[host]]\nalgorithm = \"{algorithm}\"\nmode = \"{mode}\"\nparticipants = {ranks}\n\
                         elements = {elements}\n{accesses}\n"
                    ));
                    cycles(&pass(&text, &sets!["memory.bandwidth_gbps=64"; "clock.frequency_mhz=1000"]), 0)
                };
                let usual = time("");
                for accesses in [2, 3, 4, 7] {
                    let more = elements * merged.0 / merged.1 * accesses;
                    let took = time(&format!("merge_accesses = {accesses}")) + elements * merged.0 / merged.1 * 3;
                    assert_eq!(took, usual + more, "{algorithm}, {mode}, {elements}, {accesses}");
                }
            }
        }
    }
}

#[test]
fn wrong_accesses_of_a_merge_are_refused() {
    for (algorithm, accesses, words) in [
        ("ring", "0", "an integer from 1 to 64"),
        ("ring", "65", "an integer from 1 to 64"),
        ("send-loop", "4", "ranks of a multicast merge nothing"),
    ] {
        let text = die(&format!("[[host]]\nalgorithm = \"{algorithm}\"\nmerge_accesses = {accesses}\n"));
        let refused = refusal(&text, &[]);
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn one_mcast_send_beats_a_loop_of_sends() {
    let text = die("[[multicast]]\nid = 0\nsource = 0\n[[program]]\ncores = [0]\ntext = \"mcast.send 0, 5, 0, 8\"\n\
         [[program]]\ncores = [1, 2, 3, 4, 5, 6, 7]\ntext = \"mcast.wait r1, r2, 0, 8\\nreport r1\"\n\
         [[host]]\nalgorithm = \"send-loop\"\nelements = 1\n");
    let document = pass(&text, &[]);
    let reports = document.programs.as_ref().expect("programs").cores.iter().flat_map(|core| &core.reports);
    let multicast = reports.map(|report| report.cycle).max().expect("reports");
    let host = &document.hosts[0];
    assert_eq!((host.steps, host.messages, host.words_sent), (7, 7, 7));
    assert!(cycles(&document, 0) > multicast, "{} {multicast}", cycles(&document, 0));
    // Seven messages of three flits leave over one port; the last goes to the far tile.
    let way = 2 + 4 * 6 + 2;
    assert!(cycles(&document, 0) >= 7 * 3 - 1 + way - 1, "{}", cycles(&document, 0));
}

#[test]
fn a_rank_that_comes_late_is_waited_for() {
    let time = |delays: &str| {
        let text = die(&format!("[[host]]\nalgorithm = \"ring\"\nelements = 64\ndelay_cycles = {delays}\n"));
        cycles(&pass(&text, &[]), 0)
    };
    let (all, none) = (time("500"), time("0"));
    assert!(all.abs_diff(none + 500) <= 1, "all late alike: {all} {none}");
    let one = time("[0, 0, 0, 0, 0, 5000, 0, 0]");
    assert!(one >= 5000 && one < 5000 + 2 * none, "{one} {none}");
    assert!(time("{ random_max = 300 }") > none);
}

#[test]
fn overhead_is_paid_once_a_round() {
    for (algorithm, rounds) in [("recursive-doubling", 3), ("rabenseifner", 6), ("ring", 14)] {
        let time = |overhead: u64| {
            let text =
                die(&format!("[[host]]\nalgorithm = \"{algorithm}\"\nelements = 64\noverhead_cycles = {overhead}\n"));
            cycles(&pass(&text, &[]), 0)
        };
        let (without, with) = (time(0), time(1000));
        // Ranks start their rounds together then, so what they meet on the way may differ by a little.
        assert!((with - without).abs_diff(1000 * rounds) < 60, "{algorithm}: {without} {with}");
    }
}
