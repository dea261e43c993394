//! `watershed curve` and `--histogram`: what is in the files.

use std::fs;

use serde_json::Value;

use crate::share;
use crate::support::{root, watershed};

const SHORT: [&str; 6] =
    ["--set", "measure.warmup_cycles=200", "--set", "measure.measure_cycles=800", "--rates", "0.05,0.2"];

fn curve(more: &[&str]) -> crate::support::Output {
    watershed(["curve", "mesh-uniform"].into_iter().chain(SHORT).chain(more.iter().copied()))
}

/// Fields of a CSV file without its first line.
fn rows(text: &str) -> Vec<Vec<String>> {
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn csv_json_and_table_say_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("curve.csv");
    let output = curve(&["--json", "--csv", path.to_str().unwrap()]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    let points = json["curves"][0]["points"].as_array().unwrap();
    assert_eq!((json["curves"].as_array().unwrap().len(), points.len()), (1, 2));
    let csv = fs::read_to_string(&path).unwrap();
    let header: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let rows = rows(&csv);
    assert_eq!(rows.len(), 2);
    for (row, point) in rows.iter().zip(points) {
        for (name, cell) in header.iter().zip(row) {
            let expected = &point[*name];
            if let (Some(number), Ok(cell)) = (expected.as_f64(), cell.parse::<f64>()) {
                assert!((number - cell).abs() <= 1e-9 * number.abs(), "{name}: {cell} and {number}");
            }
        }
        let cell =
            |name: &str| row[header.iter().position(|h| *h == name).unwrap_or_else(|| panic!("{name}: {csv}"))].clone();
        assert_eq!(cell("offered").parse::<f64>().ok(), point["offered"].as_f64());
        assert_eq!(cell("latency").parse::<f64>().ok(), point["latency"].as_f64());
    }
    // A queue that is fuller waits longer.
    let latency = |at: usize| points[at]["latency"].as_f64().unwrap();
    assert!(latency(0) < latency(1), "{} {}", latency(0), latency(1));
    let table = curve(&[]).stdout;
    assert!(table.contains(&format!("{:.2}", latency(1))), "{table}");
}

/// On the shipped mesh in `make soak`, on half of it for a shorter time in `make test`.
#[test]
fn a_load_beyond_three_times_zero_load_latency_is_saturated() {
    // What is accepted at the higher load is 97 or 98 % of what is offered, and packets wait for hundreds of cycles.
    let (low, high) = if share::is_whole() { (0.3, 0.4) } else { (0.34, 0.44) };
    let half = ["--set", "topology.size=[8, 4]", "--set", "measure.measure_cycles=5000"];
    let curve = |rates: &str, more: &[&str]| {
        let mesh = ["curve", "mesh-uniform", "--no-checks", "--json", "--rates", rates];
        let smaller: &[&str] = if share::is_whole() { &[] } else { &half };
        let output = watershed(mesh.iter().chain(smaller).chain(more));
        assert_eq!(output.status, 0, "{}", output.stderr);
        serde_json::from_str::<Value>(&output.stdout).unwrap()["curves"][0].clone()
    };
    let rates = |curve: &Value, saturated: bool| -> Vec<f64> {
        let points = curve["points"].as_array().unwrap().iter();
        points.filter(|point| point["saturated"] == saturated).map(|point| point["rate"].as_f64().unwrap()).collect()
    };
    let (tolerance, text) = if share::is_whole() { (0.02, "0.02") } else { (0.06, "0.06") };
    let found = curve(&format!("{low},{high}"), &["--tolerance", text]);
    let zero_load = found["zero_load_latency"].as_f64().unwrap();
    assert!((found["latency_limit"].as_f64().unwrap() - 3.0 * zero_load).abs() < 1e-9, "{found}");
    for point in found["points"].as_array().unwrap() {
        let beyond = point["latency"].as_f64().unwrap() > 3.0 * zero_load;
        assert_eq!(point["saturated"], beyond, "{point}");
        assert_eq!(point["saturated_by"] == "latency", beyond, "{point}");
    }
    // The knee has points of its own: halved from 0.1 apart to 0.02 (in `make test` once, to 0.05), below and above.
    let (stable, beyond) = (rates(&found, false), rates(&found, true));
    assert_eq!((stable.first(), beyond.last()), (Some(&low), Some(&high)), "{stable:?} {beyond:?}");
    let apart = beyond[0] - stable.last().unwrap();
    assert!(apart <= tolerance && stable.len() + beyond.len() > 2, "{stable:?} {beyond:?}");
    // Without the criterion, and without points in between, it is as it was.
    let throughput_only = curve(&high.to_string(), &["--tolerance", "1", "--latency-limit", "inf"]);
    assert_eq!(rates(&throughput_only, false), [high], "{throughput_only}");
    assert!(throughput_only["latency_limit"].is_null());
    for wrong in [["--latency-limit", "1"], ["--latency-limit", "x"], ["--tolerance", "0"], ["--tolerance", "2"]] {
        let output = watershed(["curve", "mesh-uniform"].into_iter().chain(wrong));
        assert!(output.status == 2 && output.stderr.contains("expected a number"), "{wrong:?}: {}", output.stderr);
    }
}

#[test]
fn points_of_a_peer_are_drawn_where_they_lie() {
    let folder = tempfile::tempdir().unwrap();
    let (peer, svg) = (folder.path().join("peer.csv"), folder.path().join("curve.svg"));
    let draw = |text: &str| {
        fs::write(&peer, text).unwrap();
        let output = curve(&["--points", peer.to_str().unwrap(), "--svg", svg.to_str().unwrap()]);
        assert_eq!(output.status, 0, "{}", output.stderr);
        fs::read_to_string(&svg).unwrap()
    };
    let picture = draw("offered,latency\n0.1,20\n0.2,30\n");
    assert_eq!(picture.matches("<polyline").count(), 1, "a peer's points are marks, ours a line");
    assert!(picture.contains(">peer<") && picture.contains(">mesh-uniform"), "the legend names both");
    // Hollow marks: two points and one in the legend.
    assert_eq!(picture.matches("fill=\"none\" stroke-width=\"1.8\"").count(), 3);
    let moved = draw("offered,latency\n0.1,20\n0.2,35\n");
    assert_ne!(picture, moved);
    assert_eq!(draw("offered,latency\n0.1,20\n0.2,30\n"), picture, "same points, same bytes");
}

#[test]
fn wrong_points_and_loads_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let peer = folder.path().join("peer.csv");
    fs::write(&peer, "offered,latency\n0.1,twenty\n").unwrap();
    let output = curve(&["--points", peer.to_str().unwrap()]);
    assert_eq!(output.status, 2);
    assert!(output.stderr.contains("peer.csv") && output.stderr.contains('2'), "{}", output.stderr);
    let output = watershed(["curve", "mesh-uniform", "--rates", "0.1..x:0.1"]);
    assert_eq!(output.status, 2);
    assert!(output.stderr.contains("--rates"), "{}", output.stderr);
}

#[test]
fn a_histogram_counts_every_packet_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("latencies.csv");
    let run = ["run", "mesh-uniform", "--json", "--histogram", path.to_str().unwrap()];
    let output = watershed(run.into_iter().chain(SHORT[..4].iter().copied()));
    assert_eq!(output.status, 0, "{}", output.stderr);
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    let traffic = &document["traffic"][0];
    let (mut packets, mut sum, mut last) = (0u64, 0u64, 0u64);
    for row in rows(&fs::read_to_string(&path).unwrap()) {
        assert_eq!(row[0], traffic["name"].as_str().unwrap());
        let [from, to, count] = [1, 2, 3].map(|at: usize| row[at].parse::<u64>().unwrap());
        assert!(from <= to && from >= last && count > 0, "{row:?}");
        assert!(to < 1024 && from == to, "short latencies are exact: {row:?}");
        packets += count;
        sum += count * from;
        last = to + 1;
    }
    assert_eq!(packets, traffic["latency"]["packets"].as_u64().unwrap());
    let mean = sum as f64 / packets as f64;
    assert!((mean - traffic["latency"]["mean"].as_f64().unwrap()).abs() < 1e-6, "{mean} {}", traffic["latency"]);
    // Nothing to count is said before anything runs.
    let output = watershed(["run", "allreduce-die", "--histogram", path.to_str().unwrap()]);
    assert_eq!(output.status, 2);
    assert!(output.stderr.contains("no traffic"), "{}", output.stderr);
}

/// The three networks of 64 end points in the README's picture.
const DRAWN: [&str; 8] = ["curve", "booksim-mesh88", "--add", "booksim-torus88", "--add", "booksim-flatfly", "-j", "2"];

/// Two loads of each network lie on its line in this picture.
fn two_loads_lie_on(golden: &str) {
    let loads = ["--rates", "0.01,0.15", "--tolerance", "1", "--no-checks", "--json"];
    let output = watershed(DRAWN.into_iter().chain(loads));
    assert_eq!(output.status, 0, "{}", output.stderr);
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    let curves = json["curves"].as_array().unwrap();
    // The last number beside each axis, at its end.
    let last = |label: &str| golden.split(label).nth(1).unwrap().split('<').next().unwrap().parse::<f64>().unwrap();
    let (load, cycles) = (last("<text x=\"700.00\" y=\"400\">"), last("<text x=\"62\" y=\"44.50\">"));
    let lines: Vec<&str> = golden.split("<polyline points=\"").skip(1).collect();
    assert_eq!((curves.len(), lines.len()), (3, 3));
    for (curve, line) in curves.iter().zip(lines) {
        let place = |text: &str| -> (f64, f64) {
            let (x, y) = text.split_once(',').unwrap();
            (x.parse().unwrap(), y.parse().unwrap())
        };
        let drawn: Vec<(f64, f64)> = line.split('"').next().unwrap().split(' ').map(place).collect();
        let points = curve["points"].as_array().unwrap();
        assert_eq!(points.len(), 2, "{curve}");
        for point in points {
            let of = |key: &str| point[key].as_f64().unwrap();
            let (x, y) = (70.0 + 630.0 * of("offered") / load, 380.0 - 340.0 * of("latency") / cycles);
            let lies = |at: &(f64, f64)| (at.0 - x).abs() < 0.011 && (at.1 - y).abs() < 0.011;
            assert!(drawn.iter().any(lies), "draw it again: make curves: {x} {y} {point} {drawn:?}");
        }
    }
}

/// `make curves`: three networks of 64 end points with BookSim2's points on their curves. `make test` measures two loads of each, `make
/// soak` draws the whole picture.
#[test]
fn the_picture_in_the_readme_is_what_the_program_draws() {
    let golden = fs::read_to_string(root().join("golden/curves/booksim2.svg")).unwrap();
    if !share::is_whole() {
        return two_loads_lie_on(&golden);
    }
    let folder = tempfile::tempdir().unwrap();
    let svg = folder.path().join("curves.svg");
    let mut arguments = DRAWN.to_vec();
    arguments.extend(["--rates", "0.01,0.05..0.95:0.05", "--svg", svg.to_str().unwrap()]);
    let peers = ["mesh88", "torus88", "flatfly"].map(|name| format!("traces/booksim2-{name}.csv"));
    arguments.extend(peers.iter().flat_map(|peer| ["--points", peer]));
    let output = watershed(arguments);
    assert_eq!(output.status, 0, "{}", output.stderr);
    assert_eq!(fs::read_to_string(&svg).unwrap(), golden, "draw it again: make curves");
}
