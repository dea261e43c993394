//! Traces of applications are looked at from the command line; broken ones are named (X-WORK-1, X-WORK-2, X-WORK-5).

use std::fs;

use crate::support::{root, watershed};

#[test]
fn what_is_in_a_trace_is_shown() {
    let output =
        watershed(["workload", "inspect", "traces/astra-sim/custom_ring_allreduce_8npus_1MB/custom_allreduce"]);
    assert_eq!((output.status, &*output.stderr), (0, ""));
    for words in ["Chakra, 8 ranks", "112 receive, 112 send", "112 of 14680064 bytes", "without network"] {
        assert!(output.stdout.contains(words), "{words}\n{}", output.stdout);
    }
    let output = watershed(["workload", "inspect", "traces/astra-sim/all_gather/4npus_1MB/all_gather", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(json["ranks"].as_array().unwrap().len(), 4);
    assert_eq!(
        (json["collectives"][0]["kind"].as_str(), json["collectives"][0]["bytes"].as_u64()),
        (Some("allgather"), Some(4 << 20))
    );
}

#[test]
fn the_critical_path_goes_through_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.goal");
    let text = "num_ranks 2\nrank 0 {\na: calc 1000\nb: send 8b to 1\nb requires a\n}\n\
                rank 1 {\nc: calc 10\nd: recv 8b from 0\ne: calc 500\ne requires d\ne requires c\n}\n";
    fs::write(&path, text).unwrap();
    let output = watershed(["workload", "inspect", path.to_str().unwrap()]);
    assert!(output.stdout.contains("1.500 us: rank 1 ends last"), "{}", output.stdout);
    let steps: Vec<&str> = output.stdout.lines().filter_map(|line| line.trim().strip_prefix("rank ")).collect();
    assert_eq!(steps, ["0, line 3 \"a\": 1.000 us", "1, line 10 \"e\": 500.000 ns"]);
}

#[test]
fn a_broken_trace_is_named_with_file_rank_and_node() {
    let folder = tempfile::tempdir().unwrap();
    for rank in 0..4 {
        let bytes =
            fs::read(root().join(format!("traces/astra-sim/all_reduce/4npus_1MB/all_reduce.{rank}.et"))).unwrap();
        let cut = if rank == 2 { bytes.len() - 3 } else { bytes.len() };
        fs::write(folder.path().join(format!("t.{rank}.et")), &bytes[..cut]).unwrap();
    }
    let prefix = folder.path().join("t");
    let output = watershed(["workload", "inspect", prefix.to_str().unwrap()]);
    assert_eq!((output.status, &*output.stdout), (2, ""));
    for words in ["error: rank 2, node 2: the file is cut off", "t.2.et, byte 8"] {
        assert!(output.stderr.contains(words), "{words}\n{}", output.stderr);
    }
    let output = watershed(["workload", "inspect", "nothing-there"]);
    assert_eq!(output.status, 2);
    assert!(
        output.stderr.contains("--> nothing-there") && output.stderr.contains("= help: a trace is"),
        "{}",
        output.stderr
    );
}
