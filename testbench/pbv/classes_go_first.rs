//! Traffic classes: of the frames that wait in an engine or for a port, those of a higher class go first (paragraph 156).

use std::fmt::Write;
use std::path::Path;

use crate::support::{Lab, SET_UP};
use watershed::arith::{DType, Op};
use watershed::pbv::node::{Node, SendCondition};
use watershed::pbv::packet::{Header, Message, Packet, Tlp};
use watershed::pbv::plan::{Branch, Collective};
use watershed::pbv::system::{Spec, events, node, run as run_system};
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
    lab.send(1, SendCondition::At(SET_UP), frames);
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
        pbv.collectives[5].round_latency_cycles.unwrap().mean
    };
    let (usual, urgent) = (ends(0), ends(7));
    assert!(urgent < 0.8 * usual, "{urgent} {usual}");
}

/// Who sent what came to the last node of a switch, and when: the others send so many frames of a class each, of `words` words,
/// all from the same cycle on.
fn come(senders: &[(u8, usize)], words: usize, stages: u8) -> Vec<(u64, u16)> {
    let mut spec = Spec::regular(1, senders.len() + 1, 0x100, Vec::new());
    spec.stages = stages;
    let to = senders.len() as u16 + 1;
    let mut nodes = vec![Node::new(to)];
    for (from, &(class, frames)) in (1..).zip(senders) {
        let mut sender = Node::new(from);
        let header =
            Header { tlp: Tlp { tc: class, ..Tlp::default() }, ..Header::new(Message::ReadReply, from, to, 0) };
        for number in 0..frames {
            let when = if number == 0 { SendCondition::At(100) } else { SendCondition::Next };
            sender.then(when, Packet::of(header, vec![u64::from(from); words]));
        }
        nodes.push(sender);
    }
    let mut system = spec.build(nodes);
    run_system(&mut system, 100_000).unwrap();
    assert!(system.at_rest());
    node(&system, to).mail().iter().map(|(cycle, packet)| (*cycle, packet.words()[0] as u16)).collect()
}

#[test]
fn a_port_serves_the_highest_class_first_to_the_cycle() {
    for (stages, words) in [(1, 1), (2, 12), (3, 4), (4, 30)] {
        let frame = 4 + words as u64;
        let first = come(&[(0, 1)], words, stages)[0].0;
        for (classes, order) in [
            ([0, 0, 0, 0], [1, 2, 3, 4]),
            ([0, 0, 0, 7], [4, 1, 2, 3]),
            ([3, 4, 0, 7], [4, 2, 1, 3]),
            ([3, 2, 1, 0], [1, 2, 3, 4]),
            ([0, 1, 2, 3], [4, 3, 2, 1]),
        ] {
            let came = come(&classes.map(|class| (class, 1)), words, stages);
            let from: Vec<u16> = came.iter().map(|(_, from)| *from).collect();
            assert_eq!(from, order, "{classes:?} {stages} {words}");
            for (at, (cycle, _)) in (0..).zip(&came) {
                // They ask in one cycle and go one after the other; where the crossing is allocated a cycle after the channel, the
                // link rests for that cycle between two frames.
                let gap = u64::from(stages > 2) * at;
                assert_eq!(*cycle, first + at * frame + gap, "{classes:?} {stages} {words}: {came:?}");
            }
        }
    }
}

#[test]
fn a_lower_class_waits_for_as_many_frames_as_the_bound_says() {
    for words in [1, 9] {
        let frame = 4 + words as u64;
        let first = come(&[(7, 1)], words, 1)[0].0;
        // Two nodes send without a pause; the third one has a frame of a lower class, and its neighbours' others follow.
        let came = come(&[(7, 30), (0, 2), (7, 30)], words, 1);
        let low: Vec<u64> = came.iter().filter(|(_, from)| *from == 2).map(|(cycle, _)| *cycle).collect();
        assert_eq!(low, [16, 33].map(|before| first + before * frame), "{words}: sixteen go past it, then it goes");
        let alike = come(&[(7, 30), (7, 2), (7, 30)], words, 1);
        let low: Vec<u64> = alike.iter().filter(|(_, from)| *from == 2).map(|(cycle, _)| *cycle).collect();
        assert_eq!(low, [1, 4].map(|before| first + before * frame), "{words}: of one class they go in turn");
    }
}

#[test]
fn a_frame_under_way_is_not_cut_by_a_higher_class() {
    // The frame of the low class has its channel when the other comes, and keeps it to its tail.
    let spec = |late: u64| {
        let mut nodes = vec![Node::new(3)];
        for (from, class, at, words) in [(1, 0, 100, 50), (2, 7, 100 + late, 1)] {
            let header =
                Header { tlp: Tlp { tc: class, ..Tlp::default() }, ..Header::new(Message::ReadReply, from, 3, 0) };
            let mut sender = Node::new(from);
            sender.then(SendCondition::At(at), Packet::of(header, vec![7; words]));
            nodes.push(sender);
        }
        let mut system = Spec::regular(1, 3, 0x100, Vec::new()).build(nodes);
        run_system(&mut system, 100_000).unwrap();
        node(&system, 3).mail().iter().map(|(cycle, _)| *cycle).collect::<Vec<u64>>()
    };
    let [high, low] = spec(0)[..] else { panic!("two frames") };
    assert_eq!(low - high, 54, "the high one goes first if both ask in one cycle");
    for late in [1, 20, 49] {
        let [low, high] = spec(late)[..] else { panic!("two frames") };
        assert_eq!(high - low, 5, "{late}: right behind it");
    }
}
