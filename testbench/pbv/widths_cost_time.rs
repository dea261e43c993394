//! Widths cost time (H-WIDTH-1) in the PBV family. A barrier along a line of switches is walked flit by flit, by what a link, a
//! switch and an engine do with a frame of four flits:
//!
//! | what | does |
//! |---|---|
//! | a link of s cycles a flit | takes a flit every s cycles, delivers it whole after latency + s |
//! | a switch | grants the head when the flit with the address, the second, is there; then a flit a cycle |
//! | an engine | begins with the address as well, stores the frame whole, and sends its answer with no gap |

use std::path::Path;

use watershed::scenario::load_text;
use watershed::scenario::run::{RunOptions, run};

const FLITS: usize = 4;
/// Links between switches, to nodes, and between a switch and its engine, which is as wide as a flit.
const LINK: u64 = 5;
const LOCAL: u64 = 1;
const INNER: u64 = 1;
/// From the last flit of an arrival to the first of the answer: through the tracking pipeline, or passed on.
const TRACKED: u64 = 3;
const PASSED: u64 = 1;

type Frame = [u64; FLITS];

/// When each flit is sent by whoever may send the first in cycle `from`, gets the others as `there` says, and has a link of `s`
/// cycles a flit.
fn sent(from: u64, there: Frame, s: u64) -> Frame {
    let mut at = from;
    std::array::from_fn(|flit| {
        at = if flit == 0 { from } else { (at + s).max(there[flit]) };
        at
    })
}

fn over(latency: u64, s: u64, sent: Frame) -> Frame {
    sent.map(|cycle| cycle + latency + s)
}

/// Through a switch whose output takes `s` cycles a flit.
fn switch(there: Frame, s: u64) -> Frame {
    sent(there[1], there, s)
}

/// Into the engine of a switch and out again, to the queue of the switch.
fn engine(there: Frame, takes: u64) -> Frame {
    let taken = sent(there[1], there, 1);
    let first = taken[FLITS - 1] + takes;
    over(INNER, 1, sent(first, [0; FLITS], 1))
}

/// From the last arrival, that of the node at the far end of a line of switches, until that node knows.
fn barrier(switches: u64, s: u64) -> u64 {
    let mut frame = over(LOCAL, s, sent(0, [0; FLITS], s));
    for hop in 0..switches {
        frame = engine(over(INNER, 1, switch(frame, 1)), TRACKED);
        if hop + 1 < switches {
            frame = over(LINK, s, switch(frame, s));
        }
    }
    for _ in 1..switches {
        frame = over(LINK, s, switch(frame, s));
        frame = engine(over(INNER, 1, switch(frame, 1)), PASSED);
    }
    over(LOCAL, s, switch(frame, s))[FLITS - 1]
}

/// Latency of the only round of a barrier.
fn latency(topology: &str, width: u64) -> u64 {
    let text = format!(
        "family = \"pbv\"\n[topology]\n{topology}\n[link]\nlatency_cycles = {LINK}\nlocal_latency_cycles = {LOCAL}\n\
         width_bits = {width}\nlocal_width_bits = {width}\n[[pbv.collective]]\nkind = \"barrier\"\n"
    );
    let loaded = load_text("c", &text, Path::new(""), "c", &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let document = run(&loaded, &RunOptions::default()).unwrap().document;
    assert!(document.passed(), "{:#?}", document.checks);
    document.pbv.expect("a run of the family").collectives[0].rounds[0].latency_cycles.expect("it ended")
}

#[test]
fn along_lines_of_switches() {
    for switches in 2..=5u64 {
        let ones = vec![1; switches as usize];
        let lines = [format!("kind = \"tree\"\nbranching = {ones:?}"), format!("kind = \"mesh\"\nsize = [{switches}]")];
        for width in [8, 13, 16, 22, 32, 63, 64, 512] {
            let s = 64_u64.div_ceil(width);
            for line in &lines {
                assert_eq!(latency(line, width), barrier(switches, s), "{line}, {width} wires");
            }
        }
    }
}

#[test]
fn on_a_die_each_cycle_more_costs_the_same() {
    // Many nodes share links; from two cycles a flit on, when no switch waits for an address any more, all times are in
    // proportion.
    let by = |s: u64| latency("kind = \"die\"", 64_u64.div_ceil(s));
    let more = by(3) - by(2);
    assert!(more >= FLITS as u64 * 10, "five links each way, a frame over each: {more}");
    assert_eq!([by(4), by(8)], [by(3) + more, by(3) + 5 * more]);
}
