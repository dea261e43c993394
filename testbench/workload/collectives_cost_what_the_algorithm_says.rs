//! Collectives of traces have the oracle's bits and move exactly the words of their algorithm, on any topology, in software and by
//! engines (X-WORK-1).

use crate::support::{element_bytes, end, mesh, pass, run_with, sample, words, workload};
use watershed::scenario::run::RunOptions;
use watershed::workload::{
    Collective, CollectiveOp, Compute, Dependency, Format, Group, Kind, Node, Rank, Trace, chakra,
};

const KINDS: [&str; 4] = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"];

#[test]
fn samples_of_astra_sim_move_what_the_formula_says() {
    for (kind, size) in KINDS.into_iter().zip(["[4]", "[2, 2]", "[4]", "[2, 2]"]) {
        // One of them has a quarter of its words in `make test`.
        let bytes = if kind == "reduce_scatter" { element_bytes().min(16) } else { element_bytes() };
        let document = pass(&mesh(size, &sample(kind, 4, bytes)), &[]);
        let [of] = &workload(&document).collectives[..] else { panic!("one collective") };
        assert_eq!((of.members, of.words_sent, of.bit_exact), (4, words(kind, 4, bytes), Some(true)), "{kind}");
        assert_eq!(workload(&document).ranks.len(), 4);
        assert!(end(&document) > of.words_sent / 4, "{kind}");
    }
}

fn piuma(keys: &str) -> String {
    format!(
        "family = \"piuma\"\n[topology]\nkind = \"mesh\"\nsize = [2, 2]\n[limits]\nmax_cycles = 100_000_000\n[workload]\n{keys}\n"
    )
}

#[test]
fn engines_in_the_network_compute_what_they_are_told() {
    let sample = sample("all_reduce", 4, element_bytes());
    let document = pass(&piuma(&sample), &[]);
    let [of] = &workload(&document).collectives[..] else { panic!("one collective") };
    assert_eq!((of.engine.as_str(), of.words_sent, of.bit_exact), ("piuma", 0, Some(true)));
    let network = end(&document);
    let ring = end(&pass(&piuma(&format!("{sample}\nengine.allreduce = \"ring\"")), &[]));
    assert!(network * 2 < ring, "{network} {ring}");
}

/// Every kind of collective once, 600 bytes each, between computing: Chakra files in a folder.
fn every_kind(folder: &std::path::Path, ranks: u32) -> String {
    let node = |id: u64, kind: Kind, stream: u16| {
        let waits = if id == 0 { Vec::new() } else { vec![Dependency { node: id as u32 - 1, start: false }] };
        Node { id, name: format!("n{id}").into(), kind, stream: Some(stream), waits: waits.into() }
    };
    let nodes = |rank: u32| {
        let mut nodes = Vec::new();
        for what in CollectiveOp::ALL {
            let ps = 1000 * u64::from(7 * rank + 3);
            nodes.push(node(nodes.len() as u64, Kind::Compute(Compute { ps, ..Compute::default() }), 0));
            let bytes = if what == CollectiveOp::Barrier { 0 } else { 600 };
            // An all-gather and a gather count what a rank gives.
            let of = Collective { op: what, group: 0, bytes, root: u32::from(what == CollectiveOp::Broadcast) };
            nodes.push(node(nodes.len() as u64, Kind::Collective(of), 2));
        }
        Rank { file: folder.to_owned(), nodes }
    };
    let groups = vec![Group { name: String::new(), ranks: (0..ranks).collect() }];
    let trace = Trace { format: Format::Chakra, ranks: (0..ranks).map(nodes).collect(), groups, hash: 0 };
    for (rank, bytes) in chakra::write(&trace).into_iter().enumerate() {
        std::fs::write(folder.join(format!("t.{rank}.et")), bytes).unwrap();
    }
    format!("trace = {:?}", folder.join("t").display().to_string())
}

#[test]
fn every_kind_is_exact_however_it_is_evaluated() {
    let folder = tempfile::tempdir().unwrap();
    let keys = every_kind(folder.path(), 4);
    for text in [piuma(&keys), mesh("[4]", &keys)] {
        let plain = pass(&text, &[]);
        assert_eq!(workload(&plain).collectives.len(), CollectiveOp::ALL.len());
        assert!(workload(&plain).collectives.iter().all(|of| of.bit_exact == Some(true)));
        let parts: u64 = workload(&plain).path.iter().map(|step| step.end_cycle - step.start_cycle).sum();
        assert_eq!(parts, end(&plain));
        for options in [
            RunOptions { no_skip: true, ..RunOptions::default() },
            RunOptions { order_seed: Some(7), ..RunOptions::default() },
            RunOptions { threads: 2, ..RunOptions::default() },
        ] {
            assert_eq!(run_with(&text, &[], &options).document, plain, "{options:?}");
        }
    }
}
