//! Traces of many ranks and nodes are run, exactly; samples of eight and sixteen ranks move what their algorithm says (X-WORK-1), in
//! `make test` with a sixteenth of their words.

use std::fmt::Write;

use crate::share;
use crate::support::{element_bytes, mesh, pass, sample, words, workload};

/// Ranks that compute and exchange with four neighbours on a torus, so many rounds.
fn exchange(side: u32, rounds: u32) -> String {
    let ranks = side * side;
    let mut text = format!("num_ranks {ranks}\n");
    for rank in 0..ranks {
        let _ = writeln!(text, "rank {rank} {{");
        for round in 0..rounds {
            let far = [1, side, ranks - 1, ranks - side][round as usize % 4];
            let _ = writeln!(
                text,
                "c{round}: calc {}\ns{round}: send 64b to {} tag {round}",
                50 + (rank * 7 + round * 13) % 100,
                (rank + far) % ranks
            );
            let _ = writeln!(
                text,
                "r{round}: recv 64b from {} tag {round}\ns{round} requires c{round}",
                (rank + ranks - far) % ranks
            );
            if round > 0 {
                let _ = writeln!(text, "c{round} requires r{}", round - 1);
            }
        }
        text.push_str("}\n");
    }
    text
}

#[test]
fn sixty_four_ranks_and_thousands_of_nodes_run_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.goal");
    std::fs::write(&path, exchange(8, 40)).unwrap();
    let document = pass(&mesh("[8, 8]", &format!("trace = {:?}", path.display().to_string())), &[]);
    let of = workload(&document);
    assert_eq!(of.ranks.iter().map(|rank| rank.nodes).sum::<u64>(), 64 * 120);
    assert_eq!((of.messages, of.message_words, of.messages_exact), (64 * 40, 64 * 40 * 8, Some(true)));
    // Of so many nodes those of a rank and kind that touch each other are one span, in the same cycles.
    assert!(of.spans.len() < 64 * 120);
    for (number, rank) in (0..).zip(&of.ranks) {
        let computed = of.spans.iter().filter(|span| span.rank == number && span.what == "compute");
        assert_eq!(computed.map(|span| span.end_cycle - span.start_cycle).sum::<u64>(), rank.compute_cycles);
    }
}

const KINDS: [&str; 4] = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"];

/// A sample in software, and in a PIUMA system by its engines where they can: one in `step` of these cases.
fn samples(step: usize, ranks: u32, kinds: &[&str]) {
    let side = match ranks {
        4 => "[2, 2]",
        8 => "[2, 4]",
        _ => "[4, 4]",
    };
    let cases = kinds.iter().flat_map(|&kind| {
        let keys = sample(kind, ranks, element_bytes());
        let ring = mesh(&format!("[{ranks}]"), &keys).replace("\"mesh\"", "\"torus\"");
        let piuma = mesh(side, &keys).replace("\"fabric\"", "\"piuma\"");
        [(kind, ring, false), (kind, mesh(side, &keys), false), (kind, piuma, kind == "all_reduce")]
    });
    for (kind, text, network) in share::one_in(step, cases) {
        let document = pass(&text, &[]);
        let [of] = &workload(&document).collectives[..] else { panic!("one collective") };
        assert_eq!((of.members, of.bit_exact), (u64::from(ranks), Some(true)), "{kind}");
        assert_eq!(of.engine == "piuma", network, "{kind}");
        let sent = if network { 0 } else { words(kind, ranks.into(), element_bytes()) };
        assert_eq!(of.words_sent, sent, "{kind}");
        let megabyte = if kind == "all_gather" { u64::from(ranks) << 20 } else { 1 << 20 };
        assert_eq!(of.bytes, megabyte, "{kind}");
    }
}

/// Every second case in `make test`: each kind with some networks, and each network with some kinds.
#[test]
fn four_and_eight_ranks_on_ring_mesh_and_piuma_move_exact_bytes() {
    samples(2, 4, &KINDS);
    samples(2, 8, &["all_reduce", "all_to_all"]);
}

/// In `make test` on the ring and in the PIUMA system.
#[test]
fn sixteen_ranks_on_ring_mesh_and_piuma_move_exact_bytes() {
    samples(2, 16, &["all_reduce"]);
}

#[test]
#[ignore = "minutes: part of make soak"]
fn every_sample_of_eight_and_sixteen_ranks_moves_exact_bytes() {
    samples(1, 8, &KINDS);
    samples(1, 16, &KINDS);
}
