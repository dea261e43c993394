//! Nodes that run ahead of each other by as many cycles as a link between them takes give the result document of a system
//! that goes cycle by cycle, byte for byte, whatever happens (K-CLK-1, K-DET-1; issue "Scale").

use watershed::scenario::build::{BuildOptions, build};
use watershed::scenario::result::{Document, Outcome};
use watershed::scenario::run::{Flip, RunOptions};

use crate::sets;
use crate::share;
use crate::support::{load, run_with};

/// A system of nodes with two tiles of two positions a socket.
fn nodes(size: &[u32], sockets: u32, rest: &str) -> String {
    format!(
        "family = \"piuma\"\n[topology]\nkind = \"nodes\"\nsize = {size:?}\nsockets = {sockets}\ntiles = 2\npositions = 2\nhsio_ports = 12\n{rest}"
    )
}

/// Whether such a run steps by windows.
fn in_windows(text: &str, sets: &[String]) -> bool {
    let options = BuildOptions { windows: true, ..BuildOptions::default() };
    build(&load(text, sets), options).unwrap_or_else(|error| panic!("{error}")).system.runs_in_windows()
}

/// The document in windows, on one thread and on several (in `make test` three), if it is that of a run cycle by cycle.
fn same(text: &str, sets: &[String], flip: Option<Flip<'_>>) -> Document {
    assert!(in_windows(text, sets), "{text}\n{sets:?}");
    let written = |document: &Document| serde_json::to_string_pretty(document).unwrap();
    // Who looks at the timeline looks between two cycles.
    let options = RunOptions { timeline: true, flip, ..RunOptions::default() };
    let document = run_with(text, sets, &options).document;
    for threads in share::one_in(2, [1, 2, 3]) {
        let windows = run_with(text, sets, &RunOptions { threads, flip, ..RunOptions::default() }).document;
        assert!(written(&windows) == written(&document), "another document on {threads} threads\n{text}\n{sets:?}");
    }
    document
}

const SUM: &str = "[[collective]]\nkind = \"allreduce\"\n";

/// Each collective in each system; every second of these cases in `make test`.
#[test]
fn whatever_the_collective() {
    let systems: [(&[u32], u32); 3] = [(&[40], 1), (&[16, 3], 2), (&[4, 3, 3], 3)];
    let collectives = [
        SUM,
        "[[collective]]\nkind = \"allreduce\"\nelements = 30\ndtype = \"f16\"\naccumulate = \"f32\"\n",
        "[[collective]]\nkind = \"reduce\"\nelements = 3\nreceiver = 5\nparticipants = [1, 2, 5, 20, 21, 90, 100, 130]\n",
        "[[collective]]\nkind = \"broadcast\"\nelements = 9\n",
        "[[collective]]\nkind = \"barrier\"\n",
        "[[collective]]\nkind = \"scan\"\nelements = 4\ndtype = \"i64\"\nparticipants = [0, 1, 2, 3, 4, 5]\n",
    ];
    let cases = collectives.map(|collective| systems.map(|system| (collective, system))).concat();
    for (collective, (size, sockets)) in share::one_in(2, cases) {
        let document = same(&nodes(size, sockets, collective), &[], None);
        assert!(document.passed(), "{collective} {:#?}", document.checks);
    }
}

#[test]
fn whatever_the_switches_and_links() {
    let text = nodes(&[8, 4], 3, SUM);
    for sets in [
        sets!["collective[0].elements=12"; "switch.collective_buffer_flits=1"],
        sets!["switch.pipeline_stages=4"; "switch.ceng.stages=1"; "switch.router.credit_delay_cycles=3"],
        sets!["link.cycles_per_flit=3"; "collective[0].elements=5"],
        sets!["checks.monitors=false"; "collective[0].delay_cycles={{ random_max = 300 }}"],
        sets!["link.node_latency_cycles=1"; "link.socket_latency_cycles=7"],
        sets!["switch.arbiter=\"matrix\""; "memory.bandwidth_gbps=1"; "collective[0].elements=4"],
    ] {
        assert!(same(&text, &sets, None).passed(), "{sets:?}");
    }
}

#[test]
fn collectives_that_run_at_once_and_those_that_wait_for_each_other() {
    let half = |first: u32| (0..64).map(|core| (2 * core + first).to_string()).collect::<Vec<_>>().join(", ");
    let of = |id: u32, list: &str| {
        format!("[[collective]]\nkind = \"allreduce\"\nid = {id}\nelements = 3\nparticipants = [{list}]\n")
    };
    let text = nodes(&[8, 4], 2, &(of(0, &half(0)) + &of(1, &half(1))));
    assert!(same(&text, &sets!["checks.claims=false"], None).passed());
    // With claims one starts when the other is complete, in the cycle after.
    assert!(!in_windows(&text, &[]), "the driver looks at every cycle");
    assert!(run_with(&text, &[], &RunOptions::default()).document.passed());
}

#[test]
fn what_goes_wrong_is_told_alike() {
    let text = nodes(&[8, 4], 2, SUM);
    let flip = Flip { switch: "n4_2_s0_core0", id: 0, word: 0, mask: 4 };
    let document = same(&text, &[], Some(flip));
    let difference = document.collectives[0].first_difference.as_ref().expect("a flipped bit is seen");
    assert_eq!(difference.node, "n4_2_s0_core0.ceng");

    let cut = same(&text, &sets!["limits.max_cycles=150"], None);
    assert_eq!((cut.outcome, cut.cycles), (Outcome::MaxCycles, 150));

    // Two collectives that claim nothing, each started first by half of the cores.
    let cores = 32 * 2 * 4;
    let delays = |first: usize| -> String {
        (0..cores).map(|core| ["0", "900"][(core + first) % 2]).collect::<Vec<_>>().join(", ")
    };
    let rest = format!(
        "{SUM}delay_cycles = [{}]\n{SUM}id = 1\ndelay_cycles = [{}]\n[checks]\nclaims = false\n",
        delays(0),
        delays(1)
    );
    let stuck = same(&nodes(&[8, 4], 2, &rest), &[], None);
    assert_eq!(stuck.outcome, Outcome::Deadlock);
    let told = stuck.checks.iter().find(|check| check.name == "progress").map(|check| check.detail.as_str());
    assert!(told.is_some_and(|text| text.contains("nothing moves any more")), "{told:?}");
}
