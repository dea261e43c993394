//! Real files are read, and broken ones are told apart (requirements X-WORK-1, X-WORK-2, X-WORK-5).

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces").join(name)
}

fn read(path: &Path) -> Result<(Trace, MatchedTrace), Error> {
    Trace::read(path, &[])
}

#[test]
fn the_samples_of_astra_sim_say_what_their_generators_wrote() {
    for (folder, what, factor) in [
        ("all_reduce", CollectiveOp::AllReduce, 1),
        ("all_gather", CollectiveOp::AllGather, 0),
        ("reduce_scatter", CollectiveOp::ReduceScatter, 1),
        ("all_to_all", CollectiveOp::AllToAll, 1),
    ] {
        for ranks in [4u32, 8, 16] {
            let (trace, matched) = read(&sample(&format!("astra-sim/{folder}/{ranks}npus_1MB/{folder}"))).unwrap();
            assert_eq!(
                (trace.format, trace.ranks.len(), matched.collectives.len()),
                (Format::Chakra, ranks as usize, 1)
            );
            // An all-gather's size is what a rank gives; here it is what everybody has.
            let bytes = if factor == 0 { u64::from(ranks) << 20 } else { 1 << 20 };
            let collective = Collective { op: what, group: 0, bytes, root: 0 };
            for (number, rank) in (0..).zip(&trace.ranks) {
                let [node] = &rank.nodes[..] else { panic!("{} nodes", rank.nodes.len()) };
                assert_eq!((node.id, node.kind, node.stream), (number, Kind::Collective(collective), Some(2)));
            }
        }
    }
}

#[test]
fn a_ring_written_as_messages_has_a_message_a_step() {
    let (trace, matched) = read(&sample("astra-sim/custom_ring_allreduce_8npus_1MB/custom_allreduce.3.et")).unwrap();
    let totals = trace.totals();
    assert_eq!(trace.ranks.len(), 8);
    // Two times seven steps, each of an eighth of a megabyte.
    assert_eq!((totals.messages, totals.message_bytes), (8 * 14, 8 * 14 * (1 << 20) / 8));
    assert_eq!(matched.channels.iter().map(|channel| channel.sends.len()).sum::<usize>(), 8 * 14);
    assert!(matched.channels.iter().all(|channel| channel.to == (channel.from + 1) % 8));
}

#[test]
fn a_schedule_of_loggopsim_is_a_tree() {
    let (trace, matched) = read(&sample("loggopsim/binary_tree_32.goal")).unwrap();
    assert_eq!((trace.format, trace.ranks.len(), trace.totals().messages), (Format::Goal, 32, 31));
    assert_eq!(matched.channels.len(), 31);
    let root = &trace.ranks[0].nodes;
    assert_eq!(root.len(), 5);
    assert!(root.iter().all(|node| node.waits.is_empty()));
    for rank in &trace.ranks[1..] {
        assert!(matches!(rank.nodes[0].kind, Kind::Receive { bytes: 1, tag: 0, .. }));
        assert!(rank.nodes[1..].iter().all(|node| *node.waits == [Dependency { node: 0, start: false }]));
    }
}

/// Writes a trace and reads it back.
fn written_and_read(trace: &Trace) -> Trace {
    let folder = tempfile::tempdir().unwrap();
    for (rank, bytes) in chakra::write(trace).into_iter().enumerate() {
        fs::write(folder.path().join(format!("t.{rank}.et")), bytes).unwrap();
    }
    let mut read = read(&folder.path().join("t")).unwrap().0;
    for (rank, of) in read.ranks.iter_mut().zip(&trace.ranks) {
        rank.file.clone_from(&of.file);
    }
    Trace { hash: trace.hash, ..read }
}

fn node(id: u64, kind: Kind, stream: Option<u16>, waits: &[u32]) -> Node {
    let waits = waits.iter().map(|&node| Dependency { node, start: false }).collect();
    Node { id, name: format!("n{id}").into(), kind, stream, waits }
}

fn trace(ranks: Vec<Vec<Node>>) -> Trace {
    let all = Group { name: String::new(), ranks: (0..ranks.len() as u32).collect() };
    let ranks = ranks.into_iter().map(|nodes| Rank { file: PathBuf::new(), nodes }).collect();
    Trace { format: Format::Chakra, ranks, groups: vec![all], hash: 0 }
}

fn compute(us: u64) -> Kind {
    Kind::Compute(Compute { ps: us * 1_000_000, operations: 7, bytes: 9, on_processor: false })
}

fn collective(what: CollectiveOp, bytes: u64) -> Kind {
    Kind::Collective(Collective { op: what, group: 0, bytes, root: 0 })
}

#[test]
fn every_kind_of_node_survives_being_written() {
    let nodes = |rank: u32| {
        let mut nodes = vec![
            node(0, Kind::Nothing, None, &[]),
            node(1, compute(5), Some(0), &[0]),
            node(3, Kind::Memory { bytes: 64, store: false }, Some(2), &[1]),
            node(4, Kind::Memory { bytes: 1 << 40, store: true }, Some(2), &[1, 2]),
        ];
        let peer = 1 - rank;
        nodes.push(node(7, Kind::Send { to: peer, tag: 5, bytes: 100 }, Some(2), &[]));
        nodes.push(node(8, Kind::Receive { from: peer, tag: 5, bytes: 100 }, None, &[]));
        for (at, what) in (0..).zip(CollectiveOp::ALL) {
            let bytes = if what == CollectiveOp::Barrier { 0 } else { 4096 };
            nodes.push(node(10 + at, collective(what, bytes), Some(2), &[4]));
        }
        nodes
    };
    let written = trace(vec![nodes(0), nodes(1)]);
    assert_eq!(written_and_read(&written), written);
}

#[test]
fn without_a_network_only_computing_and_waiting_are_left() {
    let nodes = |us: u64| {
        vec![
            node(0, compute(us), Some(0), &[]),
            node(1, collective(CollectiveOp::AllReduce, 8), Some(2), &[0]),
            node(2, compute(3), Some(0), &[1]),
            node(3, compute(4), Some(0), &[]),
        ]
    };
    let trace = trace(vec![nodes(10), nodes(20)]);
    let matched = check(&trace).unwrap();
    let pace = schedule(&trace, &matched, Durations::MEASURED).unwrap();
    // Both computations of a rank that wait for nothing run one after the other; the sum is there after 20 us.
    assert_eq!(pace.ends, [23_000_000, 27_000_000]);
    let path: Vec<(u32, u32)> = pace.path.iter().map(|step| (step.rank, step.node)).collect();
    assert_eq!(path, [(1, 2), (1, 3), (1, 0)]);
}

/// A trace of two ranks with a message each way and a sum, and what is wrong with it once something was changed.
fn error_after(change: impl FnOnce(&mut Vec<Vec<Node>>)) -> Error {
    let nodes = |rank: u32| {
        vec![
            node(1, compute(5), Some(0), &[]),
            node(2, Kind::Send { to: 1 - rank, tag: 5, bytes: 100 }, Some(2), &[0]),
            node(3, Kind::Receive { from: 1 - rank, tag: 5, bytes: 100 }, None, &[]),
            node(4, collective(CollectiveOp::AllReduce, 64), Some(2), &[1, 2]),
        ]
    };
    let mut ranks = vec![nodes(0), nodes(1)];
    change(&mut ranks);
    let folder = tempfile::tempdir().unwrap();
    write_to(folder.path(), &trace(ranks));
    read(&folder.path().join("t")).unwrap_err()
}

fn write_to(folder: &Path, trace: &Trace) {
    for (rank, bytes) in chakra::write(trace).into_iter().enumerate() {
        fs::write(folder.join(format!("t.{rank}.et")), bytes).unwrap();
    }
}

/// File, rank, node and words of an error.
fn assert_error(error: &Error, rank: u32, node: Option<&str>, words: &str) {
    let text = error.to_string();
    assert!(!error.file().as_os_str().is_empty(), "{text}");
    assert_eq!((error.of_rank(), error.of_node()), (Some(rank), node), "{text}");
    assert!(text.contains(words), "{text}");
}

#[test]
fn wrong_nodes_are_named_with_file_and_rank() {
    let four = Some("node 4 \"n4\"");
    let error = error_after(|ranks| ranks[1][1].kind = Kind::Send { to: 9, tag: 5, bytes: 100 });
    assert_error(&error, 1, Some("node 2 \"n2\""), "rank 9, which is not there");
    let error = error_after(|ranks| ranks[1][0].waits = [Dependency { node: 3, start: false }].into());
    assert_error(&error, 1, Some("node 1 \"n1\""), "it waits for itself");
    let error = error_after(|ranks| ranks[0][2].kind = Kind::Receive { from: 1, tag: 6, bytes: 100 });
    assert_error(&error, 0, Some("node 3 \"n3\""), "nobody sends it: rank 1 sends 0 of 1 messages with tag 6");
    let error = error_after(|ranks| {
        ranks[0].remove(2);
        ranks[0][2].waits = Box::default();
    });
    assert_error(&error, 1, Some("node 2 \"n2\""), "nobody receives it");
    let error = error_after(|ranks| ranks[0][2].kind = Kind::Receive { from: 1, tag: 5, bytes: 99 });
    assert_error(&error, 0, Some("node 3 \"n3\""), "room for 99 bytes");
    let error = error_after(|ranks| ranks[1][3].kind = collective(CollectiveOp::AllReduce, 65));
    assert_error(&error, 1, four, "allreduce of 65 bytes here and allreduce of 64 bytes in rank 0");
    let error = error_after(|ranks| drop(ranks[1].pop()));
    assert_error(&error, 0, four, "rank 1 of its group has only 0");
    let error = error_after(|ranks| ranks[1][2].id = 2);
    assert_error(&error, 1, Some("node 2 \"n3\""), "another node has this id");
    // Each rank receives before it sends.
    let error = error_after(|ranks| {
        for rank in ranks {
            rank[1].waits = [Dependency { node: 2, start: false }].into();
        }
    });
    assert_error(&error, 0, Some("node 3 \"n3\""), "rank 1 waits for this rank before it sends");
    let error = error_after(|ranks| ranks[0][1].kind = Kind::Send { to: 0, tag: 5, bytes: 100 });
    assert!(error.to_string().contains("its own rank"), "{error}");
}

#[test]
fn wrong_files_are_named_with_their_rank() {
    let nodes = |rank: u32| vec![node(1, compute(5), Some(0), &[]), node(2, Kind::Nothing, None, &[rank; 0])];
    let good = trace((0..3).map(nodes).collect());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    let one = folder.path().join("t.1.et");
    let wrong = |bytes: &[u8]| {
        write_to(folder.path(), &good);
        fs::write(&one, bytes).unwrap();
        read(&path).unwrap_err()
    };
    write_to(folder.path(), &good);
    let whole = fs::read(&one).unwrap();
    read(&path).unwrap();
    // Cut off: within a node, and within the length of one.
    let error = wrong(&whole[..whole.len() - 1]);
    assert_error(&error, 1, Some("node 2"), "cut off");
    assert_eq!(error.file(), one);
    assert_error(&wrong(&[&whole[..], &[0x80]].concat()), 1, None, "cut off within the length");
    assert_error(&wrong(b""), 1, None, "empty");
    assert_error(&wrong(&[&[7, 0x0a, 5], &b"0.0.3"[..]].concat()), 1, None, "version \"0.0.3\"");
    assert_error(&wrong(&whole[8..]), 1, None, "it begins with a node");
    assert_error(&wrong(&[&whole[..], &[2, 0x0f, 0]].concat()), 1, None, "no field of such a kind");
    assert_error(&wrong(&[0x1f, 0x8b, 8, 0, 0]), 1, None, "cut off");
    fs::remove_file(&one).unwrap();
    let error = read(&path).unwrap_err();
    assert_error(&error, 1, None, "the file of this rank is missing");
    assert_eq!(error.file(), one);
}

#[test]
fn a_wait_for_a_missing_node_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let nodes = vec![node(1, compute(5), Some(0), &[]), node(2, compute(5), Some(0), &[0])];
    let mut bytes = chakra::write(&trace(vec![nodes])).remove(0);
    // The second node waits for node 1: the last bytes before its attributes say so.
    let at = bytes.windows(2).rposition(|pair| pair == [0x28, 1]).unwrap();
    bytes[at + 1] = 77;
    fs::write(folder.path().join("t.0.et"), bytes).unwrap();
    let error = read(&folder.path().join("t.0.et")).unwrap_err();
    assert_error(&error, 0, Some("node 2 \"n2\""), "it waits for node 77, which is not in this file");
}

#[test]
fn groups_are_those_that_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let mut given =
        trace((0..4).map(|_| vec![node(1, collective(CollectiveOp::AllReduce, 64), Some(2), &[])]).collect());
    for (name, ranks) in [("even", [0, 2]), ("odd", [1, 3])] {
        given.groups.push(Group { name: name.into(), ranks: ranks.into() });
    }
    for (rank, group) in [(0, 1), (1, 2), (2, 1), (3, 2)] {
        let Kind::Collective(of) = &mut given.ranks[rank].nodes[0].kind else { unreachable!() };
        of.group = group;
    }
    write_to(folder.path(), &given);
    let path = folder.path().join("t");
    assert_error(&read(&path).unwrap_err(), 0, Some("node 1 \"n1\""), "nothing says who is in process group \"even\"");
    let (trace, matched) = Trace::read(&path, &given.groups[1..]).unwrap();
    assert_eq!(trace.groups, given.groups);
    assert_eq!(matched.collectives.iter().map(|of| of.nodes.len()).collect::<Vec<_>>(), [2, 2]);
    let strange = [Group { name: "even".into(), ranks: vec![0, 9] }];
    let error = Trace::read(&path, &strange).unwrap_err().to_string();
    assert!(error.contains("group \"even\" has rank 9, and the trace has 4"), "{error}");
}

#[test]
fn wrong_schedules_are_named_with_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.goal");
    let error = |text: &str| {
        fs::write(&path, text).unwrap();
        read(&path).unwrap_err().to_string()
    };
    let body = |block: &str| format!("num_ranks 2\nrank 0 {{\n{block}\n}}\nrank 1 {{\na: recv 8b from 0 tag 1\n}}\n");
    for (text, words) in [
        ("", "nothing of ranks"),
        ("num_ranks 0\n", "0 ranks"),
        ("num_ranks 2\nrank 0 {\n}\n", "rank 1: it has no block"),
        ("num_ranks 1\nrank 0 {\ncalc 5\n", "before its closing brace"),
        ("num_ranks 1\nrank 0 {\n}\nrank 0 {\n}\n", "a second block"),
        ("num_ranks 1\nrank 3 {\n}\n", "there is no rank 3"),
        (&body("a: send 8b to 1 tag 1\na: calc 5"), "rank 0, line 4 \"a\": another line has this label"),
        (&body("a: send 8b to 1 tag 1\na requires b"), "no line of this rank has the label \"b\""),
        (&body("a: send 8b to 7 tag 1"), "rank 0, line 3 \"a\": rank 7 is not there"),
        (&body("a: send 8b to 1 tag 1\nb: recv 8b from -1"), "nobody sends what it could receive"),
        (&body("a: send 8b to 1 tag -1"), "\"-1\" is not a number"),
        (&body("a: send 8b to -1 tag 1"), "\"-1\" is not a number"),
        (&body("a: send 8b to 1 tag 1\nb: snd 8b to 1"), "\"snd 8b to 1\" is no operation"),
        (&body("a: send 8b to 1 tag 1 gpu 3"), "\"gpu 3\" means nothing here"),
        (&body("a: send 8b to 1 tag"), "\"tag\" lacks its number"),
        (&body("a: send xb to 1 tag 1"), "\"x\" is not a number"),
        (&body("a: send 8b to 1 tag 2"), "rank 0, line 3 \"a\": nobody receives it"),
        (&body("a: send 9b to 1 tag 1"), "rank 1, line 6 \"a\": it has room for 8 bytes"),
        (&body("a: send 8b to 1 tag 1\nb: calc 5\nb requires a\na requires b"), "it waits for itself"),
    ] {
        let said = error(text);
        assert!(said.contains(words), "{text}\n{said}");
        assert!(said.contains("t.goal"), "{said}");
    }
    assert!(error("num_ranks 1\nrank 0 {\ncalc 5\n").contains("rank 0"));
}

#[test]
fn comments_streams_and_starts_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.goal");
    let text = "num_ranks 1 // one\n/* a block\n over lines */ rank 0 {\nb requires a\na:calc 7 cpu 3\n\
                b : calc 8 /* here */ cpu 1\nc: calc 9\nc irequires b\n}\n";
    fs::write(&path, text).unwrap();
    let (trace, matched) = read(&path).unwrap();
    let nodes = &trace.ranks[0].nodes;
    let streams: Vec<_> = nodes.iter().map(|node| (&*node.name, node.id, node.stream)).collect();
    assert_eq!(streams, [("a", 5, Some(3)), ("b", 6, Some(1)), ("c", 7, Some(0))]);
    assert_eq!(
        (&*nodes[1].waits, &*nodes[2].waits),
        (&[Dependency { node: 0, start: false }][..], &[Dependency { node: 1, start: true }][..])
    );
    let pace = schedule(&trace, &matched, Durations::MEASURED).unwrap();
    assert_eq!(pace.ends, [16_000]);
}

#[test]
fn wildcard_receives_match_any_message() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.goal");
    let trace = |blocks: [&str; 3]| {
        let blocks = (0..).zip(blocks).map(|(rank, block): (u32, _)| format!("rank {rank} {{\n{block}\n}}\n"));
        fs::write(&path, format!("num_ranks 3\n{}", blocks.collect::<String>())).unwrap();
        read(&path)
    };
    let sends = ["a: send 8b to 0 tag 1", "a: send 64b to 0 tag 2"];
    let with = |receives: &str| trace([receives, sends[0], sends[1]]);
    let (_, matched) = with("a: recv 64b from -1 tag -1\nb: recv 64b from 2 tag -1").unwrap();
    let fits: Vec<_> = matched.wildcards.iter().collect();
    assert_eq!(fits, [(&(0, 0), &vec![0, 1]), (&(0, 1), &vec![1])]);
    assert!(matched.channels.iter().all(|channel| channel.has_wildcard && channel.receives.is_empty()));
    // One that fits a single channel is counted with those that fit several.
    assert!(with("a: recv 64b from -1 tag -1\nb: recv 8b from 1 tag 1").is_ok());
    for (receives, words) in [
        ("a: recv 64b from -1 tag -1", "rank 2, line 9 \"a\": nobody receives it: rank 0 receives 1 of 2 messages"),
        (
            "a: recv 64b from -1 tag -1\n".repeat(3).replace("a: ", "").as_str(),
            "nobody sends it: 2 messages come that fit",
        ),
        ("a: recv 8b from -1 tag -1\nb: recv 64b from 2 tag 2", "room for 8 bytes, and may get 64 of rank 2"),
        ("a: recv 8b from -1 tag 3", "nobody sends what it could receive"),
        ("a: recv 64b from -1 tag 2\nb: recv 64b from -1 tag 2", "rank 0"),
    ] {
        let said = with(receives).unwrap_err().to_string();
        assert!(said.contains(words), "{receives}\n{said}");
    }
    // Without a network: what comes first is taken first, and who waits for it goes on then.
    let (trace, matched) = trace([
        "a: recv 64b from -1 tag -1\nb: calc 10\nb requires a\nc: recv 64b from -1 tag -1",
        "w: calc 100\na: send 8b to 0 tag 1\na requires w",
        "w: calc 30\na: send 64b to 0 tag 2\na requires w",
    ])
    .unwrap();
    let pace = schedule(&trace, &matched, Durations::MEASURED).unwrap();
    assert_eq!((pace.nodes[0][0].1, pace.nodes[0][1].1, pace.ends[0]), (30_000, 40_000, 100_000));
}
