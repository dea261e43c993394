//! Every key of `[workload]` changes what comes of a run, or is refused (X-RUN-1): the schema says which keys there are.

use std::path::Path;

use crate::support::{load, mesh, pass, workload};
use watershed::scenario::schema::schema;
use watershed::workload::{
    Collective, CollectiveOp, Compute, Dependency, Format, Group, Kind, Node, Rank, Trace, chakra,
};

/// What a key does.
enum Does {
    /// With this value a run comes out otherwise than without it, with other keys in both.
    Acts(&'static str, &'static [&'static str]),
    /// There is one value that can be, and this one is refused.
    Refuses(&'static str),
}

/// Keys and what they do.
const KEYS: [(&str, Does); 23] = [
    ("trace", Does::Refuses("\"none\"")),
    ("participants", Does::Acts("[3, 0, 2, 1]", &[])),
    ("compute_scale", Does::Acts("2.5", &[])),
    ("overhead_cycles", Does::Acts("9", &[])),
    ("packet_words", Does::Acts("2", &[])),
    ("rounds_under_way", Does::Acts("1", &["dtype=\"i64\"", "engine.allreduce=\"armed\""])),
    ("element_bytes", Does::Acts("8", &[])),
    ("op", Does::Acts("\"max\"", &[])),
    ("dtype", Does::Acts("\"f64\"", &[])),
    ("peak_tflops", Does::Acts("0.5", &[])),
    ("device_bandwidth_gbps", Does::Acts("8.0", &["peak_tflops=0.5"])),
    ("remote_bandwidth_gbps", Does::Acts("8.0", &[])),
    ("remote_latency_ns", Does::Acts("70.0", &[])),
    ("groups", Does::Acts("{ g = [0, 2, 1, 3] }", &[])),
    ("engine.allreduce", Does::Acts("\"rabenseifner\"", &[])),
    ("engine.reduce", Does::Refuses("\"ring\"")),
    ("engine.broadcast", Does::Refuses("\"linear\"")),
    ("engine.barrier", Does::Refuses("\"linear\"")),
    ("engine.allgather", Does::Refuses("\"pairwise\"")),
    ("engine.reduce_scatter", Does::Refuses("\"pairwise\"")),
    ("engine.alltoall", Does::Refuses("\"ring\"")),
    ("engine.gather", Does::Refuses("\"ring\"")),
    ("engine.scatter", Does::Refuses("\"ring\"")),
];

/// Four ranks that compute, read remote memory, send to their neighbour, and reduce in a group that the scenario lists.
fn trace(folder: &Path) -> String {
    let nodes = |rank: u32| {
        let kinds = [
            Kind::Compute(Compute { ps: 50_000, operations: 40_000, bytes: 300, on_processor: false }),
            Kind::Memory { bytes: 400, store: false },
            Kind::Send { to: (rank + 1) % 4, tag: 3, bytes: 200 },
            Kind::Receive { from: (rank + 3) % 4, tag: 3, bytes: 200 },
            Kind::Collective(Collective { op: CollectiveOp::AllReduce, group: 1, bytes: 640, root: 0 }),
        ];
        let node = |(id, kind): (usize, Kind)| {
            let waits = id.checked_sub(1).map(|node| Dependency { node: node as u32, start: false });
            Node {
                id: id as u64,
                name: format!("n{id}").into(),
                kind,
                stream: Some(0),
                waits: waits.into_iter().collect(),
            }
        };
        Rank { file: folder.to_owned(), nodes: kinds.into_iter().enumerate().map(node).collect() }
    };
    let group = |name: &str| Group { name: name.to_owned(), ranks: (0..4).collect() };
    let groups = vec![group(""), group("g")];
    let trace = Trace { format: Format::Chakra, ranks: (0..4).map(nodes).collect(), groups, hash: 0 };
    for (rank, bytes) in chakra::write(&trace).into_iter().enumerate() {
        std::fs::write(folder.join(format!("t.{rank}.et")), bytes).unwrap();
    }
    mesh("[4]", &format!("trace = {:?}\ngroups = {{ g = [0, 1, 2, 3] }}", folder.join("t").display().to_string()))
}

#[test]
fn every_key_of_a_workload_acts_or_is_refused() {
    let table = &schema()["properties"]["workload"];
    let table = table["anyOf"].as_array().map_or(table, |choices| &choices[0]);
    let keys = |table: &serde_json::Value| -> Vec<String> {
        table["properties"].as_object().expect("keys").keys().cloned().collect()
    };
    let mut there: Vec<String> = keys(table).into_iter().filter(|key| key != "engine").collect();
    there.extend(keys(&table["properties"]["engine"]).into_iter().map(|key| format!("engine.{key}")));
    there.sort();
    let mut known: Vec<&str> = KEYS.iter().map(|(key, _)| *key).collect();
    known.sort_unstable();
    assert_eq!(there, known, "the keys of [workload], and those that are tried here");

    let folder = tempfile::tempdir().unwrap();
    let text = trace(folder.path());
    for (key, does) in KEYS {
        match does {
            Does::Acts(value, with) => {
                let with: Vec<String> = with.iter().map(|set| format!("workload.{set}")).collect();
                let said = |sets: &[String]| serde_json::to_value(workload(&pass(&text, sets))).unwrap();
                let other: Vec<String> = with.iter().cloned().chain([format!("workload.{key}={value}")]).collect();
                assert_ne!(said(&with), said(&other), "{key} = {value} changes nothing");
            }
            Does::Refuses(value) => {
                let error = load(&text, &[format!("workload.{key}={value}")]).map(drop).unwrap_err();
                assert!(error.contains("error: "), "{key} = {value}: {error}");
            }
        }
    }
}
