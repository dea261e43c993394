//! Traces that are broken end in an error with file, rank and node, and whatever is damaged in a trace, its readers neither panic nor hang
//! (X-WORK-5). Both versions of Chakra's schema are read (X-WORK-1). The bytes are written here, by hand.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{load, mesh, root};
use proptest::prelude::*;
use watershed::workload::{Durations, Error, Kind, MatchedTrace, Trace, schedule};

/// A protobuf field: its number, and a varint or bytes.
enum Field<'a> {
    Number(u64, u64),
    Bytes(u64, &'a [u8]),
}
use Field::{Bytes, Number};

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value > 127 {
        out.push(value as u8 & 127 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

fn message(fields: &[Field<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for field in fields {
        match field {
            Number(number, value) => {
                varint(number << 3, &mut out);
                varint(*value, &mut out);
            }
            Bytes(number, bytes) => {
                varint(number << 3 | 2, &mut out);
                varint(bytes.len() as u64, &mut out);
                out.extend(*bytes);
            }
        }
    }
    out
}

/// An attribute: a name, and the field of its value.
fn attribute(name: &str, value: Field<'_>) -> Vec<u8> {
    message(&[Bytes(1, name.as_bytes()), value])
}

/// A node of this id and type, which waits for others by data or by control, with attributes.
fn node(id: u64, kind: u64, data: &[u64], control: &[u64], attributes: &[Vec<u8>]) -> Vec<u8> {
    let mut fields = vec![Number(1, id), Bytes(2, b"op"), Number(3, kind)];
    fields.extend(control.iter().map(|&id| Number(4, id)));
    let mut packed = Vec::new();
    for &id in data {
        varint(id, &mut packed);
    }
    fields.push(Bytes(5, &packed));
    fields.push(Number(7, 3));
    fields.extend(attributes.iter().map(|bytes| Bytes(10, bytes)));
    message(&fields)
}

/// A file: its metadata and its nodes, each with its length before it.
fn file(metadata: &[Field<'_>], nodes: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for message in std::iter::once(&message(metadata)).chain(nodes) {
        varint(message.len() as u64, &mut out);
        out.extend(message);
    }
    out
}

/// Files of ranks in a folder.
fn files(list: &[Vec<u8>]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    for (rank, bytes) in list.iter().enumerate() {
        fs::write(folder.path().join(format!("t.{rank}.et")), bytes).unwrap();
    }
    let prefix = folder.path().join("t");
    (folder, prefix)
}

fn read(list: &[Vec<u8>]) -> Result<(Trace, MatchedTrace), Error> {
    let (_folder, prefix) = files(list);
    Trace::read(&prefix, &[])
}

/// Metadata of converted traces.
fn schema(version: &str) -> Vec<u8> {
    attribute("schema", Bytes(29, version.as_bytes()))
}

#[test]
fn both_versions_of_the_schema_are_read() {
    let reduce = || [attribute("comm_type", Number(9, 0)), attribute("comm_size", Number(9, 64))];
    let host = [attribute("is_cpu_op", Number(27, 1))];
    let dims = attribute("involved_dim", Bytes(28, &message(&[Bytes(1, &[1, 1])])));
    for version in ["1.0.1", "1.0.2-chakra.0.0.4", "1.1.1-chakra.0.0.4"] {
        let mut device = reduce().to_vec();
        device.push(dims.clone());
        // Callers that the converter left out; the processor issues a collective, and the device does it.
        let nodes = [node(5, 4, &[], &[3], &[]), node(6, 7, &[5], &[2], &host), node(9, 7, &[6], &[77], &device)];
        let bytes = file(&[Bytes(2, &schema(version))], &nodes);
        let (trace, matched) = read(&[bytes.clone(), bytes]).unwrap_or_else(|error| panic!("{version}: {error}"));
        let kinds: Vec<&str> = trace.ranks[0].nodes.iter().map(|node| node.kind.word()).collect();
        assert_eq!(kinds, ["compute", "compute", "allreduce"], "{version}");
        assert!(matches!(trace.ranks[0].nodes[1].kind, Kind::Compute(of) if of.on_processor && of.ps == 3_000_000));
        let waits: Vec<Vec<u32>> =
            trace.ranks[0].nodes.iter().map(|node| node.waits.iter().map(|wait| wait.node).collect()).collect();
        assert_eq!(waits, [vec![], vec![0], vec![1]], "{version}");
        assert_eq!(matched.collectives.len(), 1);
    }
    // What generators write waits for both kinds, and says what its collectives are.
    let nodes = [node(5, 4, &[], &[], &[]), node(6, 7, &[], &[5], &reduce())];
    let bytes = file(&[Bytes(1, b"0.0.4")], &nodes);
    let (trace, _) = read(&[bytes.clone(), bytes]).unwrap();
    assert_eq!(trace.ranks[1].nodes[1].waits[0].node, 0);
}

#[test]
fn ten_kinds_of_broken_files_are_named() {
    let new = [Bytes(1, b"0.0.4")];
    let number = |name: &str, value: u64| attribute(name, Number(9, value));
    let compute = || node(1, 4, &[], &[], &[]);
    let reduce = |attributes: &[Vec<u8>]| node(2, 7, &[1], &[], attributes);
    let good = || file(&new, &[compute(), reduce(&[number("comm_type", 0), number("comm_size", 64)])]);
    let send = |to: u64| node(3, 5, &[], &[], &[number("comm_dst", to), number("comm_tag", 4), number("comm_size", 8)]);
    let with = |extra: Vec<u8>| {
        let mut bytes = good();
        varint(extra.len() as u64, &mut bytes);
        bytes.extend(extra);
        bytes
    };
    let text = |name: &str| attribute(name, Bytes(29, b"many"));
    let some = attribute("involved_dim", Bytes(28, &message(&[Number(1, 1), Number(1, 0)])));
    let old = schema("0.9.9");
    let broken: Vec<(&str, Vec<u8>, Option<&str>, &str)> = vec![
        ("cut off", good()[..good().len() - 3].to_vec(), Some("node 2"), "cut off"),
        ("of no bytes", Vec::new(), None, "the file is empty"),
        ("no protobuf", b"rank 0: compute, then send\n".to_vec(), None, "metadata"),
        ("of another version", file(&[Bytes(1, b"0.0.9")], &[compute()]), None, "version \"0.0.9\""),
        ("of another schema", file(&[Bytes(2, &old)], &[compute()]), None, "version \"0.9.9\""),
        ("circular", with(node(4, 4, &[4], &[], &[])), Some("node 4 \"op\""), "waits for itself"),
        ("to nobody", with(send(9)), Some("node 3 \"op\""), "rank 9, which is not there"),
        ("not received", with(send(0)), Some("node 3 \"op\""), "nobody receives it"),
        ("twice the id", with(node(2, 4, &[], &[], &[])), Some("node 2 \"op\""), "another node has this id"),
        (
            "waits for nothing",
            with(node(4, 4, &[33], &[], &[])),
            Some("node 4 \"op\""),
            "node 33, which is not in this file",
        ),
        (
            "text as a size",
            with(node(4, 2, &[], &[], &[text("tensor_size")])),
            Some("node 4 \"op\""),
            "`tensor_size` has a wrong type",
        ),
        (
            "a number as a group",
            with(node(4, 7, &[], &[], &[number("pg_name", 3)])),
            Some("node 4 \"op\""),
            "`pg_name` has a wrong type",
        ),
        ("some dimensions", with(node(4, 7, &[], &[], &[some])), Some("node 4 \"op\""), "some dimensions"),
        ("no size", with(node(4, 2, &[], &[], &[])), Some("node 4 \"op\""), "it has no `tensor_size`"),
        ("no such type", with(node(4, 12, &[], &[], &[])), Some("node 4 \"op\""), "there is no node type 12"),
    ];
    read(&[good(), good()]).unwrap();
    for (what, bytes, node, words) in broken {
        let (_folder, prefix) = files(&[good(), bytes]);
        let error = Trace::read(&prefix, &[]).unwrap_err();
        let said = error.to_string();
        assert_eq!((error.of_rank(), error.of_node()), (Some(1), node), "{what}: {said}");
        assert!(said.contains(words), "{what}: {said}");
        assert!(error.file().ends_with("t.1.et") && said.contains("t.1.et"), "{what}: {said}");
        // A scenario says the same.
        let said = load(&mesh("[4]", &format!("trace = {:?}", prefix.display().to_string())), &[]).unwrap_err();
        assert!(said.contains("rank 1") && said.contains("t.1.et") && said.contains(words), "{what}: {said}");
    }
}

#[test]
fn vectors_that_no_memory_holds_are_refused() {
    let number = |name: &str, value: u64| attribute(name, Number(9, value));
    let huge = |bytes: u64| {
        let reduce = node(2, 7, &[], &[], &[number("comm_type", 0), number("comm_size", bytes)]);
        file(&[Bytes(1, b"0.0.4")], &[reduce])
    };
    for (bytes, engine) in [(1 << 40, "ring"), (i64::MAX as u64, "ring"), (1 << 40, "piuma")] {
        let (_folder, prefix) = files(&[huge(bytes), huge(bytes)]);
        let keys = format!("trace = {:?}\nengine.allreduce = {engine:?}", prefix.display().to_string());
        let said = load(&mesh("[2]", &keys), &[]).unwrap_err();
        assert!(said.contains("rank 0, node 2 \"op\"") && said.contains("words are too many"), "{engine}: {said}");
    }
}

/// How a file is damaged, at a place in thousandths of it.
#[derive(Clone, Debug)]
enum Damage {
    Set(u32, u8),
    Remove(u32, u32),
    Repeat(u32, u32),
    Cut(u32),
}

fn damage() -> impl Strategy<Value = Damage> {
    let place = 0..1000u32;
    prop_oneof![
        4 => (place.clone(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        2 => (place.clone(), 1..40u32).prop_map(|(at, count)| Damage::Remove(at, count)),
        2 => (place.clone(), 1..40u32).prop_map(|(at, count)| Damage::Repeat(at, count)),
        1 => place.prop_map(Damage::Cut),
    ]
}

fn damaged(bytes: &mut Vec<u8>, damage: &Damage) {
    let place = |thousandth: u32| bytes.len() * thousandth as usize / 1000;
    match *damage {
        Damage::Set(at, byte) => {
            let at = place(at);
            bytes[at..].iter_mut().take(1).for_each(|old| *old = byte);
        }
        Damage::Remove(at, count) => {
            let at = place(at);
            bytes.drain(at..(at + count as usize).min(bytes.len()));
        }
        Damage::Repeat(at, count) => {
            let at = place(at);
            let again = bytes[at..(at + count as usize).min(bytes.len())].to_vec();
            bytes.splice(at..at, again);
        }
        Damage::Cut(at) => bytes.truncate(place(at)),
    }
}

/// Reads a damaged trace: it is one, or an error says where it is broken. Whether it is one.
fn is_read(path: &Path) -> bool {
    match Trace::read(path, &[]) {
        Ok((trace, matched)) => {
            let _ = (trace.totals(), schedule(&trace, &matched, Durations::MEASURED));
            true
        }
        Err(error) => {
            assert!(!error.file().as_os_str().is_empty() && !error.message().is_empty(), "{error}");
            false
        }
    }
}

fn traces() -> PathBuf {
    root().join("traces")
}

/// As many cases as `PROPTEST_CASES` says.
fn cases() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn damaged_files_of_chakra_neither_panic_nor_hang(
        which in 0..3usize,
        rank in 0..4usize,
        list in proptest::collection::vec(damage(), 1..4),
    ) {
        let (prefix, ranks) = [
            ("astra-sim/all_gather/4npus_1MB/all_gather", 4),
            ("astra-sim/custom_ring_allreduce_8npus_1MB/custom_allreduce", 8),
            ("training/lenet", 16),
        ][which];
        let read = |rank: usize| fs::read(traces().join(format!("{prefix}.{rank}.et"))).unwrap();
        let mut all: Vec<Vec<u8>> = (0..ranks).map(read).collect();
        for damage in &list {
            damaged(&mut all[rank], damage);
        }
        let (_folder, prefix) = files(&all);
        is_read(&prefix);
    }

    #[test]
    fn damaged_schedules_neither_panic_nor_hang(list in proptest::collection::vec(damage(), 1..6)) {
        let mut bytes = fs::read(traces().join("loggopsim/binary_tree_32.goal")).unwrap();
        for damage in &list {
            damaged(&mut bytes, damage);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.goal");
        fs::write(&path, bytes).unwrap();
        is_read(&path);
    }
}
