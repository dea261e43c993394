//! What ranks of a workload did when, for Perfetto, and traces that the command line and sweeps name (X-WORK-1, X-WORK-3).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::share;
use crate::support::{root, training, watershed};

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Runs a training; its document, and what Perfetto gets.
fn trained(folder: &Path, trace: &str, more: &[&str]) -> (Value, Value, String) {
    let out = folder.to_str().unwrap();
    let mut arguments = vec!["run", "training-16", "--workload", trace, "--out", out, "--perfetto", "ranks.json"];
    arguments.extend(more);
    let output = watershed(arguments);
    assert_eq!(output.status, 0, "{}", output.stderr);
    let text = fs::read_to_string(folder.join("ranks.json")).unwrap();
    (read(&folder.join("training-16.json")), serde_json::from_str(&text).unwrap(), text)
}

#[test]
fn perfetto_has_every_node_once_at_the_document_s_times() {
    let folder = tempfile::tempdir().unwrap();
    let trace = training(folder.path());
    let (document, perfetto, text) = trained(folder.path(), &trace, &["--set", "clock.frequency_mhz=800"]);
    let events = perfetto["traceEvents"].as_array().unwrap();
    let complete: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
    let cycles = |event: &Value| {
        let of = |key: &str| event["args"][key].as_u64().unwrap();
        (of("start_cycle"), of("end_cycle"))
    };
    // Every node that takes time: ten of computing, five all-reduces, of each of sixteen ranks.
    let nodes = watershed::workload::Trace::read(Path::new(&trace), &[]).unwrap().0;
    let mut seen: BTreeMap<(u64, String), u32> = BTreeMap::new();
    for event in complete.iter().filter(|event| event["pid"] != 16) {
        *seen.entry((event["pid"].as_u64().unwrap(), event["name"].as_str().unwrap().to_owned())).or_default() += 1;
    }
    let mut expected = BTreeMap::new();
    for (rank, of) in (0..).zip(&nodes.ranks) {
        for node in of.nodes.iter().filter(|node| node.kind != watershed::workload::Kind::Nothing) {
            expected.insert((rank, node.title(nodes.format)), 1);
        }
    }
    assert_eq!((seen.len(), &seen), (16 * 15, &expected));
    // The same times as in the document, in us of the clock.
    let spans = document["workload"]["spans"].as_array().unwrap();
    assert_eq!(spans.len(), 16 * 15);
    for span in spans {
        let of = |key: &str| span[key].as_u64().unwrap();
        let event =
            complete.iter().find(|event| event["pid"] == span["rank"] && event["name"] == span["name"]).unwrap();
        assert_eq!(cycles(event), (of("start_cycle"), of("end_cycle")), "{span}");
        let us = |cycles: u64| cycles as f64 / 800.0;
        let (ts, dur) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
        assert!((ts - us(of("start_cycle"))).abs() < 1e-6 && dur > 0.0, "{event}");
        assert!((ts + dur - us(of("end_cycle"))).abs() < 1e-6, "{event}");
        assert_eq!(event["tid"].as_u64(), Some(u64::from(span["what"] == "communicate")), "{event}");
    }
    // The critical path from cycle 0 to the end, without a hole.
    let mut path: Vec<(u64, u64)> =
        complete.iter().filter(|event| event["pid"] == 16).map(|event| cycles(event)).collect();
    path.sort_unstable();
    assert!(path.windows(2).all(|pair| pair[0].1 == pair[1].0), "{path:?}");
    let end = document["workload"]["end_cycle"].as_u64().unwrap();
    assert_eq!((path[0].0, path[path.len() - 1].1), (0, end));
    let names = events.iter().filter(|event| event["ph"] == "M" && event["name"] == "process_name").count();
    assert_eq!(names, 17);

    let again = tempfile::tempdir().unwrap();
    let (.., other) = trained(again.path(), &trace, &["--set", "clock.frequency_mhz=800", "--threads", "2"]);
    assert_eq!(text, other, "the same bytes on any number of threads");
}

#[test]
fn perfetto_needs_a_workload() {
    let output = watershed(["run", "allreduce-die", "--perfetto", "ranks.json"]);
    assert_eq!((output.status, &*output.stdout), (2, ""));
    assert!(output.stderr.contains("no workload") && output.stderr.contains("--workload TRACE"), "{}", output.stderr);
}

/// A schedule of four ranks.
const FOUR: &str = "num_ranks 4\nrank 0 {\nl1: send 100b to 1 tag 0\nl2: send 100b to 2 tag 0\n}\nrank 1 {\nl1: recv 100b from 0 tag 0\n\
    l2: send 100b to 3 tag 0\nl2 requires l1\n}\nrank 2 {\nl1: recv 100b from 0 tag 0\n}\nrank 3 {\nl1: recv 100b from 1 tag 0\n}\n";

/// A short trace in `make test`, one of a megabyte a rank as well in `make soak`.
#[test]
fn a_trace_on_the_command_line_is_relative_to_the_working_folder() {
    let folder = tempfile::tempdir().unwrap();
    let program = |working: &Path, arguments: &[&str]| {
        let mut program = assert_cmd::Command::new(env!("CARGO_BIN_EXE_watershed"));
        let output = program.current_dir(working).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    // Shipped scenarios are inside of the program; the trace is not.
    fs::create_dir(folder.path().join("here")).unwrap();
    fs::write(folder.path().join("here/four.goal"), FOUR).unwrap();
    let long = (root(), "traces/astra-sim/all_reduce/4npus_1MB/all_reduce");
    let traces = [(folder.path(), "here/four.goal"), long];
    for (working, trace) in share::one_in(2, traces) {
        let set = format!("workload.trace={trace}");
        let documents = [["--set", &set], ["--workload", trace]].map(|arguments| {
            let out = folder.path().to_str().unwrap();
            let run = [&["run", "goal-mesh", "--json", "--out", out][..], &arguments].concat();
            let document: Value = serde_json::from_slice(&program(working, &run)).unwrap();
            assert_eq!(document["workload"]["ranks"].as_array().unwrap().len(), 4);
            document["workload"].clone()
        });
        assert_eq!(documents[0], documents[1]);
    }
    let output = watershed(["run", "goal-mesh", "--set", "workload.trace=traces/nothing"]);
    assert_eq!(output.status, 2);
    assert!(
        output.stderr.contains("workload.trace=traces/nothing") && output.stderr.contains('^'),
        "{}",
        output.stderr
    );
    // What a shipped scenario names is in the program: it runs in any folder.
    for name in share::one_in(2, ["goal-mesh", "training-16"]) {
        program(folder.path(), &["run", name]);
    }
}

#[test]
fn traces_are_an_axis_of_sweeps() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("traces.toml");
    let trained = training(folder.path());
    let text = format!(
        "[[scenario]]\nfile = \"goal-mesh\"\nset = [\"workload.overhead_cycles=0\"]\n\
         [[axis]]\nname = \"trace\"\nkey = \"workload.trace\"\n\
         values = [\"traces/loggopsim/binary_tree_32.goal\", \"{trained}\"]\n\
         [[axis]]\nname = \"engine\"\nkey = \"workload.engine.allreduce\"\nvalues = [\"ring\", \"rabenseifner\"]\n\
         [[metric]]\nname = \"exposed\"\nvalue = \"workload.ranks.0.exposed_cycles\"\n\
         [[objective]]\nname = \"latency_ns\"\n"
    );
    fs::write(&file, text).unwrap();
    let out = folder.path().join("out");
    let output = watershed(["sweep", file.to_str().unwrap(), "-o", out.to_str().unwrap(), "-j", "2"]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    let table = fs::read_to_string(out.join("points.csv")).unwrap();
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let at = |name: &str| head.iter().position(|column| *column == name).unwrap_or_else(|| panic!("{name}: {head:?}"));
    let rows: Vec<_> = lines.collect();
    assert_eq!(rows.len(), 4);
    for (row, trace) in rows.iter().zip(["binary_tree_32.goal", "binary_tree_32.goal", &trained, &trained]) {
        assert!(row[at("trace")].ends_with(trace), "{row:?}");
    }
    let ns = |row: usize| rows[row][at("latency_ns")].parse::<f64>().unwrap();
    assert!((ns(0) - ns(1)).abs() < 1e-9 && ns(2) > ns(0) && (ns(2) - ns(3)).abs() > 1.0, "{table}");
    // A point is run again by the command that the sweep tells.
    let sets = format!("workload.trace={}", rows[2][at("trace")]);
    let output = watershed([
        "run",
        "goal-mesh",
        "--set",
        "workload.overhead_cycles=0",
        "--set",
        &sets,
        "--set",
        "workload.engine.allreduce='ring'",
        "--json",
        "--out",
        folder.path().to_str().unwrap(),
    ]);
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(document["workload"]["end_ns"].as_f64(), Some(ns(2)));
}
