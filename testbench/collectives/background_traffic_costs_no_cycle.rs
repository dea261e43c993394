//! Point-to-point packets on a collective's own links leave its cycle count as it is, to the cycle (P-SW-4, K-ARB-1).

use std::fmt::Write as _;

use watershed::scenario::result::Document;

use crate::sets;
use crate::share;
use crate::support::{BACKGROUND, only, pass};

const START: u64 = 1000;

/// The links the flagship's tree uses, between switches: both directions of each.
const LINKS: [[&str; 2]; 9] = [
    ["core1.P2", "core0.P2"],
    ["core2.P3", "core0.P3"],
    ["core3.P4", "core0.P4"],
    ["core0.P5", "sw0.P6"],
    ["sw0.P5", "sw4.P6"],
    ["sw4.P5", "core4.P6"],
    ["core5.P2", "core4.P2"],
    ["core6.P3", "core4.P3"],
    ["core7.P4", "core4.P4"],
];

/// The background's flows at a rate, or none at all.
fn scenario(rate: f64) -> String {
    if rate == 0.0 {
        let end = BACKGROUND.find("# One flow over every link").expect("the flows have a comment");
        BACKGROUND[..end].to_owned()
    } else {
        BACKGROUND.replace("rate = 0.95", &format!("rate = {rate}"))
    }
}

/// Background flits of the least loaded of the collective's links, per cycle of the traffic's life.
fn background_share(document: &Document, collective_flits: u64) -> f64 {
    let all = document.links.all.as_ref().expect("all links were asked for");
    LINKS
        .iter()
        .flat_map(|[a, b]| [format!("{a} -> {b}"), format!("{b} -> {a}")])
        .map(|name| {
            let link = all.iter().find(|link| link.name == name).unwrap_or_else(|| panic!("no link {name}"));
            (link.flits - collective_flits) as f64 / document.cycles as f64
        })
        .fold(1.0, f64::min)
}

/// Runs one element under endless traffic that has filled the network before, and returns when it ended and the load.
fn one(rate: f64, sets: &[String]) -> (u64, f64) {
    let mut set = sets!["collective[0].elements=1"; "collective[0].start_cycle=4000"];
    set.extend_from_slice(sets);
    let text = scenario(rate).replace("stop_cycle = 10_000\n", "");
    let document = pass(&text, &set);
    (only(&document).latency_cycles.unwrap(), background_share(&document, 1))
}

/// Runs a long vector; the traffic outlives it and then drains.
fn long(rate: f64, sets: &[String]) -> (u64, Document) {
    let mut set = sets!["collective[0].elements=256"; "collective[0].start_cycle={START}"];
    if rate > 0.0 {
        set.push("traffic[0].stop_cycle=2500".into());
    }
    set.extend_from_slice(sets);
    let document = pass(&scenario(rate), &set);
    (only(&document).latency_cycles.unwrap(), document)
}

#[test]
fn at_50_and_at_95_percent_measured_on_its_own_links() {
    let (quiet, load) = one(0.0, &[]);
    assert_eq!((quiet, load), (66, 0.0));
    for (rate, least) in [(0.5, 0.48), (0.95, 0.94), (1.0, 0.95)] {
        let (loaded, load) = one(rate, &[]);
        assert_eq!(loaded, quiet, "rate {rate}");
        assert!(load >= least, "measured {load} on the least loaded link at rate {rate}");
    }
}

/// The longest packets make the longest runs: each router has some of the lengths, and the longest one of the rates.
#[test]
fn with_packets_of_every_length_in_routers_of_every_depth() {
    with_packets(2000, |pipeline| match pipeline {
        1 => &[(33, FULL)],
        2 => &[(11, HALF)],
        3 => &[(1, HALF), (1, FULL)],
        _ => &[(11, FULL)],
    });
}

#[test]
#[ignore = "takes a minute: make soak"]
fn with_packets_of_every_length_in_each_router() {
    with_packets(4000, |_| &[(1, HALF), (1, FULL), (11, HALF), (11, FULL), (33, HALF), (33, FULL)]);
}

/// A rate of traffic, and what the least loaded link sees of it at least.
type Rate = (f64, f64);

const HALF: Rate = (0.55, 0.5);
const FULL: Rate = (1.0, 0.95);

/// Lengths of packets and rates by the stages of a router's pipeline. The collective starts this many cycles after the traffic, for
/// each flit of a packet.
fn with_packets(cycles: u64, cases: impl Fn(u32) -> &'static [(u64, Rate)]) {
    for pipeline in 1..=4 {
        let router = sets!["switch.pipeline_stages={pipeline}"; "switch.point_to_point_vcs=8"; "switch.point_to_point_buffer_flits=40"];
        let quiet = one(0.0, &router).0;
        for &(packet, (rate, least)) in cases(pipeline) {
            // Packets are made at random: the longer they are, the longer it takes until the least loaded of eighteen links
            // has seen its share.
            let start = cycles * packet;
            let mut set = router.clone();
            set.extend(sets!["traffic[0].packet_flits={packet}"; "collective[0].start_cycle={start}"]);
            let (loaded, load) = one(rate, &set);
            assert_eq!(loaded, quiet, "pipeline {pipeline}, packets of {packet}, rate {rate}");
            assert!(load >= least, "pipeline {pipeline}, packets of {packet}: {load} at rate {rate}");
        }
    }
}

#[test]
fn under_every_arbiter_and_number_of_channels() {
    for arbiter in ["round-robin", "matrix", "fixed"] {
        for vcs in [1, 2, 8] {
            let set = sets!["switch.arbiter=\"{arbiter}\""; "switch.point_to_point_vcs={vcs}"];
            let quiet = one(0.0, &set).0;
            assert_eq!(quiet, 66);
            assert_eq!(one(0.95, &set).0, quiet, "{arbiter}, {vcs} channels");
        }
    }
}

/// Each vector at one of the two rates in `make test`, and the next one at the other.
#[test]
fn long_vectors_at_the_rate_of_the_memory_and_of_the_links() {
    for bandwidth in ["51.2", "\"unlimited\""] {
        for (pipeline, packet, arbiter) in
            [(1, 1, "round-robin"), (2, 11, "matrix"), (3, 33, "fixed"), (4, 11, "round-robin")]
        {
            let mut set = sets!["memory.bandwidth_gbps={bandwidth}"; "switch.pipeline_stages={pipeline}"; "switch.arbiter=\"{arbiter}\""];
            let (quiet, _) = long(0.0, &set);
            set.push(format!("traffic[0].packet_flits={packet}"));
            for rate in share::one_in(2, if pipeline % 2 == 0 { [0.5, 0.95] } else { [0.95, 0.5] }) {
                let (loaded, document) = long(rate, &set);
                assert_eq!(loaded, quiet, "{bandwidth} Gb/s, pipeline {pipeline}, packets of {packet}, rate {rate}");
                assert!(document.traffic[0].packets > 0);
            }
        }
    }
}

#[test]
fn the_whole_flagship_vector_among_95_percent() {
    let quiet = only(&pass(&scenario(0.0), &[])).latency_cycles;
    let document = pass(&scenario(0.95), &[]);
    assert_eq!(only(&document).latency_cycles, quiet);
    // While the traffic lives its links are full: 95 % is asked for, and what the collective delays is made up later.
    let busy = document.links.all.as_ref().unwrap().iter().find(|link| link.name == "core0.P5 -> sw0.P6").unwrap();
    assert!((busy.flits - 1024) as f64 >= 0.94 * 10_000.0, "{} flits", busy.flits);
}

#[test]
fn on_the_memory_links_that_cores_share_with_traffic() {
    // Every core sends to the free port of its own switch and gets as much from there, over the link its collective uses.
    let mut flows = String::new();
    for core in 0..8 {
        let _ = writeln!(flows, "{{ from = \"core{core}.P7\", to = \"core{core}.P1\", rate = 0.95 }},");
        let _ = writeln!(flows, "{{ from = \"core{core}.P1\", to = \"core{core}.P7\", rate = 0.95 }},");
    }
    let with = scenario(0.0) + &format!("[[traffic]]\npattern = \"flows\"\nflows = [\n{flows}]\n");
    for elements in [1, 200] {
        let set = sets!["collective[0].elements={elements}"; "collective[0].start_cycle=2000"];
        let quiet = only(&pass(&scenario(0.0), &set)).latency_cycles;
        let document = pass(&with, &set);
        assert_eq!(only(&document).latency_cycles, quiet);
        let all = document.links.all.as_ref().unwrap();
        for name in ["core3.memory -> core3.P7", "core3.P7 -> core3.memory"] {
            let link = all.iter().find(|link| link.name == name).unwrap_or_else(|| panic!("no {name} in {all:#?}"));
            assert!(link.utilisation >= 0.94, "{name}: {}", link.utilisation);
        }
    }
}

/// Links of the flagship's longest path: a core's own, a step in its tile, two tiles to the root; and as many down.
const LONGEST: u64 = 2 * (1 + 1 + 2);

/// With every second of the combinations in `make test`.
#[test]
fn a_narrow_link_adds_at_most_the_rest_of_a_flit() {
    // A flit on the wire is not interrupted (H-WIDTH-1): at worst a background flit has just begun at every link.
    for (width, s) in [(64, 1), (32, 2), (13, 5)] {
        let narrow = sets!["link.width_bits={width}"; "link.local_width_bits={width}"];
        let quiet = one(0.0, &narrow).0;
        let mut most = 0;
        let traffic = [(0.5, 1), (0.95, 1), (1.0, 11)];
        let cases = [4000, 4003, 4017].map(|start| traffic.map(|traffic| (start, traffic))).concat();
        for (start, (rate, packet)) in share::one_in(2, cases) {
            let mut set = narrow.clone();
            set.extend(sets!["collective[0].start_cycle={start}"; "traffic[0].packet_flits={packet}"]);
            let loaded = one(rate, &set).0;
            let what = format!("{width} wires, rate {rate}, packets of {packet}, from cycle {start}");
            assert!((quiet..=quiet + LONGEST * (s - 1)).contains(&loaded), "{what}: {loaded} for {quiet}");
            most = most.max(loaded - quiet);
        }
        assert_eq!(most > 0, s > 1, "{width} wires: up to {most} cycles more");
        let (quiet, _) = long(0.0, &narrow);
        let (loaded, _) = long(0.95, &narrow);
        assert!(
            (quiet..=quiet + LONGEST * (s - 1)).contains(&loaded),
            "{width} wires, 256 words: {loaded} for {quiet}"
        );
    }
}
