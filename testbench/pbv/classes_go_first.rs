//! Traffic classes: of the frames that wait in an engine, those of a higher class go first (paragraph 156).

use std::fmt::Write;
use std::path::Path;

use crate::support::{Lab, SET_UP};
use watershed::arith::{DType, Op};
use watershed::pbv::node::When;
use watershed::pbv::packet::Message;
use watershed::pbv::plan::{Branch, Collective};
use watershed::pbv::system::{Spec, events, node};
use watershed::scenario::load_text;
use watershed::scenario::run::{RunOptions, run};

/// Cycles in which the last copies of two posted multicasts left one engine, the second of them a command of four flits behind
/// the first.
fn last_copies(classes: [u8; 2], nodes: u16, words: u16) -> [u64; 2] {
    let spec = Spec::regular(1, usize::from(nodes), 0x100, Vec::new());
    let tree = Branch::leaf(0, 1..=nodes);
    let of = |cc_id, traffic_class| Collective {
        multicast: true,
        traffic_class,
        ..Collective::all_reduce(cc_id, 1, tree.clone(), Op::Sum, DType::U64, words)
    };
    let both = [of(0, classes[0]), of(1, classes[1])];
    let mut lab = Lab::new(spec, &both);
    lab.set_up(&both);
    let frames = both.each_ref().map(|collective| collective.cast(1, vec![7; usize::from(words)], true));
    lab.send(1, When::At(SET_UP), frames);
    let system = lab.run();
    for device in 2..=nodes {
        let runs: Vec<u16> = node(&system, device).mail().iter().map(|(_, packet)| packet.header.cc_id).collect();
        assert_eq!(runs.len(), 2, "nothing is lost");
    }
    [0, 1].map(|cc_id| {
        let sent = events(&system).into_iter().filter(|event| {
            !event.received && event.from == 0 && event.cc_id == cc_id && event.message == Message::Multicast
        });
        sent.map(|event| event.cycle).max().unwrap()
    })
}

#[test]
fn a_higher_class_goes_past_the_copies_of_a_lower_one_to_the_cycle() {
    for (nodes, words) in [(6u16, 4u16), (12, 10), (40, 2)] {
        let frame = 4 + u64::from(words);
        let copies = u64::from(nodes) - 1;
        let [first, second] = last_copies([3, 3], nodes, words);
        assert_eq!(second - first, frame * copies, "one class: one after the other");
        let [low, high] = last_copies([0, 7], nodes, words);
        // The higher class came later and is done first; together they take the same time. Up to sixteen copies in a row go
        // past, then one of the lower class.
        assert_eq!(low.max(high), second, "{nodes} {words}");
        assert!(high < low, "{nodes} {words}");
        let passed = (copies - 1) / 16;
        let alone = first + frame * copies;
        assert!(high < alone && (low - high) / frame >= 1, "{nodes} {words} {passed}");
    }
}

#[test]
fn a_class_brings_a_collective_forward_and_changes_no_bit() {
    let ends = |class: u32| {
        let mut text =
            "family = \"pbv\"\n[topology]\nkind = \"flattened-butterfly\"\nsize = [4]\nconcentration = 4\n".to_owned();
        for k in 0..6 {
            let class = if k == 5 { class } else { 0 };
            let _ = write!(
                text,
                "[[pbv.collective]]\nname = \"c{k}\"\nelements = 100\nblocks = false\nrounds = 3\nmaster = \"s0\"\nsource = 0\ntraffic_class = {class}\n"
            );
        }
        let loaded =
            load_text("test", &text, Path::new(""), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
        let document = run(&loaded, &RunOptions::default()).unwrap().document;
        assert!(document.passed(), "{:?}", document.checks);
        let pbv = document.pbv.unwrap();
        assert_eq!(pbv.outcomes.complete, 18);
        pbv.collectives[5].latency_mean_cycles.unwrap()
    };
    let (usual, urgent) = (ends(0), ends(7));
    assert!(urgent < 0.8 * usual, "{urgent} {usual}");
}
