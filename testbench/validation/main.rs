//! Is the router without engines a virtual-channel router as the field knows it? BookSim2's figures are the measure.
//!
//! The figures (`traces/booksim2-*.csv`) were measured with BookSim2 itself, medians of five runs; `make bench
//! BOOKSIM=path` measures both programs in one run. Here: the zero-load law holds for every pair of nodes exactly; the
//! mean packet latency agrees within 2 % wherever it is below 1.5 times that of zero load; and what is accepted beyond
//! saturation within 5 %, of the flattened butterfly within 2 %.

#[path = "../campaign/share.rs"]
mod share;

use std::fmt::Write;
use std::path::Path;

use watershed::scenario::result::{Document, TrafficResult};
use watershed::scenario::run::{RunOptions, run};
use watershed::scenario::{load_file, load_text};

/// The reference's figures for one configuration.
struct Reference {
    name: &'static str,
    /// The shipped scenario, and what is set in it.
    scenario: (&'static str, &'static [&'static str]),
    /// Zero-load latency in cycles of a packet that visits this many switches, over links of this many cycles between them.
    law: fn(u64, u64) -> u64,
    /// Offered beyond saturation, what the reference accepts then, in flits a node and cycle, and how far apart the two may
    /// be, in percent.
    beyond: (f64, f64, f64),
}

/// L = 4 H + 2: three stages and a link of one cycle a hop, one more link, and the edge at its end.
const MESH: Reference = Reference {
    name: "mesh88",
    scenario: ("booksim-mesh88", &[]),
    law: |switches, _| 4 * switches + 2,
    beyond: (0.40, 0.356, 5.0),
};
/// L = 6 H + 1: four stages, links of two cycles between switches and of one at both ends.
const TORUS: Reference = Reference {
    name: "torus88",
    scenario: ("booksim-torus88", &[]),
    law: |switches, _| 6 * switches + 1,
    beyond: (0.30, 0.252, 5.0),
};
/// L = 3 H + 1 and all channels on the way, injection and ejection of one cycle included.
const FLATFLY: Reference = Reference {
    name: "flatfly",
    scenario: ("booksim-flatfly", &[]),
    law: |switches, between| 3 * switches + 1 + between + 2,
    beyond: (0.70, 0.670, 2.0),
};
/// The same with a node a switch, on 8 x 8 switches a cycle apart: another order of the dimensions or another path shows here
/// most, for links between switches are what is busy.
const FLATFLY_8X8: Reference = Reference {
    name: "flatfly88",
    scenario: ("booksim-flatfly", &["topology.size=[8,8]", "topology.concentration=1", "link.latency_cycles=1"]),
    ..FLATFLY
};

impl Reference {
    fn scenario(&self) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testbench/fabric/{}.toml", self.scenario.0))
    }

    /// Offered load and mean latency, a pair a line.
    fn points(&self) -> Vec<(f64, f64)> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("traces/booksim2-{}.csv", self.name));
        let text = std::fs::read_to_string(path).expect("the reference's figures are there");
        let numbers = |line: &str| line.split(',').map(|word| word.parse().unwrap()).collect::<Vec<f64>>();
        text.lines().skip(1).map(numbers).map(|row| (row[0], row[1])).collect()
    }

    /// What comes of it at a load, measured over a window.
    fn at(&self, offered: f64, cycles: u64) -> TrafficResult {
        let mut overrides = vec![format!("traffic[0].rate={offered}"), format!("measure.measure_cycles={cycles}")];
        overrides.extend(self.scenario.1.iter().map(ToString::to_string));
        let loaded = load_file(&self.scenario(), &overrides).unwrap_or_else(|error| panic!("{error}"));
        let options = RunOptions { no_checks: true, ..RunOptions::default() };
        let document = run(&loaded, &options).unwrap_or_else(|error| panic!("{error}")).document;
        document.traffic.into_iter().next().expect("one traffic")
    }

    /// From the highest load down; in `make test` every third point.
    fn latencies_agree(&self) {
        let points = self.points();
        let zero_load = points[0].1;
        let below = points.iter().rev().filter(|point| point.1 < 1.5 * zero_load);
        for &(offered, latency) in share::one_in(3, below) {
            let ours = self.at(offered, 9_600).mean_latency_cycles.expect("packets arrived");
            let apart = (ours / latency - 1.0) * 100.0;
            println!("{} at {offered}: {ours:.2} cycles, the reference {latency:.2}, {apart:+.2} %", self.name);
            assert!(apart.abs() < 2.0, "{} at {offered}: {ours:.2} and {latency:.2} cycles", self.name);
        }
    }

    /// Half as long in `make test` as in `make soak`.
    fn saturation_agrees(&self) {
        let (offered, accepted, percent) = self.beyond;
        let ours = self.at(offered, share::of(2, 12_800)).accepted;
        let apart = (ours / accepted - 1.0) * 100.0;
        println!("{} at {offered}: accepts {ours:.4}, the reference {accepted}, {apart:+.2} %", self.name);
        assert!(apart.abs() < percent, "{} at {offered}: accepts {ours:.4} and {accepted}", self.name);
    }

    /// One packet for every pair of nodes, alone in the network each: the histogram of latencies is that of the law.
    fn law_holds(&self, path: impl Fn(u64, u64) -> (u64, u64)) {
        const NODES: u64 = 64;
        let mut trace = String::new();
        let mut expected = std::collections::BTreeMap::new();
        for from in 0..NODES {
            for to in 0..NODES {
                writeln!(trace, "{} {from} {to} 1", (from * NODES + to) * 200).unwrap();
                let (switches, between) = path(from, to);
                *expected.entry((self.law)(switches, between)).or_insert(0u64) += 1;
            }
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("pairs.txt"), trace).unwrap();
        let text = std::fs::read_to_string(self.scenario()).unwrap();
        let head = text.split("[[traffic]]").next().unwrap();
        let text = format!("{head}[[traffic]]\nname = \"pairs\"\npattern = \"trace\"\nfile = \"pairs.txt\"\n");
        let loaded =
            load_text("pairs.toml", &text, folder.path(), "pairs", &[]).unwrap_or_else(|error| panic!("{error}"));
        let document: Document =
            run(&loaded, &RunOptions::default()).unwrap_or_else(|error| panic!("{error}")).document;
        let latency = document.traffic[0].latency.as_ref().expect("packets arrived");
        let histogram = &latency.histogram;
        assert_eq!(histogram.from, histogram.to, "buckets of one cycle");
        let found: std::collections::BTreeMap<u64, u64> =
            histogram.from.iter().copied().zip(histogram.packets.iter().copied()).collect();
        assert_eq!(found, expected, "{}: packets by latency", self.name);
    }
}

fn xy(node: u64, side: u64) -> (u64, u64) {
    (node % side, node / side)
}

#[test]
fn mesh_zero_load_law_holds_for_every_pair() {
    MESH.law_holds(|from, to| {
        let ((x, y), (u, v)) = (xy(from, 8), xy(to, 8));
        (x.abs_diff(u) + y.abs_diff(v) + 1, 0)
    });
}

#[test]
fn torus_zero_load_law_holds_for_every_pair() {
    TORUS.law_holds(|from, to| {
        let ring = |a: u64, b: u64| a.abs_diff(b).min(8 - a.abs_diff(b));
        let ((x, y), (u, v)) = (xy(from, 8), xy(to, 8));
        (ring(x, u) + ring(y, v) + 1, 0)
    });
}

#[test]
fn flattened_butterfly_zero_load_law_holds_for_every_pair() {
    FLATFLY.law_holds(|from, to| {
        let ((x, y), (u, v)) = (xy(from / 4, 4), xy(to / 4, 4));
        let moved = u64::from(x != u) + u64::from(y != v);
        // A link is as long as it reaches: two cycles a place.
        (moved + 1, 2 * (x.abs_diff(u) + y.abs_diff(v)))
    });
}

#[test]
fn mesh_latencies_agree() {
    MESH.latencies_agree();
}

#[test]
fn torus_latencies_agree() {
    TORUS.latencies_agree();
}

#[test]
fn flattened_butterfly_latencies_agree() {
    FLATFLY.latencies_agree();
}

#[test]
fn flattened_butterfly_of_single_nodes_latencies_agree() {
    FLATFLY_8X8.latencies_agree();
}

#[test]
fn points_lie_all_along_the_curve() {
    for reference in [MESH, TORUS, FLATFLY, FLATFLY_8X8] {
        let points = reference.points();
        let below = |times: f64| points.iter().filter(|point| point.1 < times * points[0].1).count();
        assert!(below(1.5) > below(1.2), "{} has a point where queues have begun to fill", reference.name);
    }
}

#[test]
fn mesh_saturation_agrees() {
    MESH.saturation_agrees();
}

#[test]
fn torus_saturation_agrees() {
    TORUS.saturation_agrees();
}

#[test]
fn flattened_butterfly_saturation_agrees() {
    FLATFLY.saturation_agrees();
}
