//! Widths cost time (H-WIDTH-1) in the PBV family. A barrier along a line of switches is walked flit by flit, by what a link, a
//! switch and an engine do with a frame of 32 bytes, which is cut into flits of F bits:
//!
//! | what | does |
//! |---|---|
//! | a link of s cycles a flit | takes a flit every s cycles, delivers it whole after latency + s |
//! | a switch | grants the head when the flit with bits 64 to 95, the address, is there; then a flit a cycle |
//! | an engine | begins with the address as well, stores the frame whole, and sends its answer with no gap |

use std::path::Path;

use watershed::scenario::load_text;
use watershed::scenario::run::{RunOptions, run};

/// Links between switches, to nodes, and between a switch and its engine, which is as wide as a flit.
const LINK: u64 = 5;
const LOCAL: u64 = 1;
const INNER: u64 = 1;
/// From the last flit of an arrival to the first of the answer: through the tracking pipeline, or passed on.
const TRACKED: u64 = 3;
const PASSED: u64 = 1;

/// When each flit of a frame is somewhere, and which of them has the address.
#[derive(Clone)]
struct Frame {
    at: Vec<u64>,
    address: usize,
}

impl Frame {
    fn of(bits: u64) -> Frame {
        Frame { at: vec![0; (8 * 32_u64).div_ceil(bits) as usize], address: (64 / bits) as usize }
    }

    /// When each flit is sent by whoever may send the first in cycle `from`, and has a link of `s` cycles a flit.
    fn sent(&self, from: u64, s: u64) -> Frame {
        let mut at = from;
        let rest = self.at[1..].iter().map(|&there| {
            at = (at + s).max(there);
            at
        });
        Frame { at: std::iter::once(from).chain(rest).collect(), address: self.address }
    }

    fn over(mut self, latency: u64, s: u64) -> Frame {
        self.at.iter_mut().for_each(|cycle| *cycle += latency + s);
        self
    }

    /// Through a switch whose output takes `s` cycles a flit.
    fn switch(&self, s: u64) -> Frame {
        self.sent(self.at[self.address], s)
    }

    fn last(&self) -> u64 {
        self.at[self.at.len() - 1]
    }

    /// Into the engine of a switch and out again, to the queue of the switch.
    fn engine(&self, takes: u64) -> Frame {
        let first = self.switch(1).last() + takes;
        let none = Frame { at: vec![0; self.at.len()], ..*self };
        none.sent(first, 1).over(INNER, 1)
    }
}

/// From the last arrival, that of the node at the far end of a line of switches, until that node knows.
fn barrier(switches: u64, bits: u64, s: u64) -> u64 {
    let mut frame = Frame::of(bits).sent(0, s).over(LOCAL, s);
    for hop in 0..switches {
        frame = frame.switch(1).over(INNER, 1).engine(TRACKED);
        if hop + 1 < switches {
            frame = frame.switch(s).over(LINK, s);
        }
    }
    for _ in 1..switches {
        frame = frame.switch(s).over(LINK, s);
        frame = frame.switch(1).over(INNER, 1).engine(PASSED);
    }
    frame.switch(s).over(LOCAL, s).last()
}

/// Latency of the only round of a collective.
fn round(topology: &str, link: &str, engine: &str, collective: &str) -> u64 {
    let text = format!(
        "family = \"pbv\"\n[topology]\n{topology}\n[link]\nlatency_cycles = {LINK}\nlocal_latency_cycles = {LOCAL}\n\
         {link}[pbv.engine]\n{engine}[[pbv.collective]]\n{collective}\n"
    );
    let loaded = load_text("c", &text, Path::new(""), "c", &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let document = run(&loaded, &RunOptions::default()).unwrap().document;
    assert!(document.passed(), "{:#?}", document.checks);
    document.pbv.expect("a run of the family").collectives[0].rounds[0].latency_cycles.expect("it ended")
}

/// Latency of the only round of a barrier.
fn latency(topology: &str, bits: u64, width: u64) -> u64 {
    let link = format!("flit_bits = {bits}\nwidth_bits = {width}\nlocal_width_bits = {width}\n");
    round(topology, &link, "", "kind = \"barrier\"")
}

fn lines(switches: u64, sizes: &[u64]) {
    let ones = vec![1; switches as usize];
    let lines = [format!("kind = \"tree\"\nbranching = {ones:?}"), format!("kind = \"mesh\"\nsize = [{switches}]")];
    for &bits in sizes {
        for width in [8, 13, 16, 22, 32, 63, 64, 100, 256, 512] {
            let s = bits.div_ceil(width);
            for line in &lines {
                assert_eq!(
                    latency(line, bits, width),
                    barrier(switches, bits, s),
                    "{line}, {bits} bits, {width} wires"
                );
            }
        }
    }
}

#[test]
fn along_lines_of_switches() {
    (2..=5).for_each(|switches| lines(switches, &[64]));
}

#[test]
fn of_flits_of_every_size() {
    lines(3, &[32, 96, 128, 160, 224, 256, 512, 1024, 4096]);
}

#[test]
fn on_a_die_each_cycle_more_costs_the_same() {
    // Many nodes share links; from two cycles a flit on, when no switch waits for an address any more, all times are in
    // proportion.
    let by = |s: u64| latency("kind = \"die\"", 64, 64_u64.div_ceil(s));
    let more = by(3) - by(2);
    assert!(more >= 40, "five links each way, a frame of four flits over each: {more}");
    assert_eq!([by(4), by(8)], [by(3) + more, by(3) + 5 * more]);
}

/// Words of a frame of 1056 bytes.
const WORDS: u64 = 128;

/// Latency of an all-reduce of that frame between the nodes of one switch, leaves and a root.
fn words(leaves: u64, bits: u64, units: &str) -> u64 {
    let topology = format!("kind = \"tree\"\nbranching = [{leaves}]");
    let engine = format!("inbox_flits = 8192\n{units}");
    let collective = "kind = \"allreduce\"\nop = \"sum\"\nelements = 128";
    round(&topology, &format!("flit_bits = {bits}\n"), &engine, collective)
}

#[test]
fn words_are_reduced_as_fast_as_units_and_link_allow() {
    // All contributions come over the engine's port, a frame after the other, and the units take a row of a frame a cycle. What
    // is slower sets the rate; what is faster adds one frame, the last or the first.
    let (leaves, nodes) = (6, 7);
    for bits in [32, 64, 128, 256, 512, 1024] {
        let frame = (8 * 1056_u64).div_ceil(bits);
        let time = |units: u64| {
            let rows = WORDS.div_ceil(units);
            // The accumulators are cleared, two rows a cycle, from the source's command on. Its contribution is behind that,
            // and its words come out of the tracking pipeline two cycles later.
            let clears = (rows / 2).saturating_sub(frame + 2);
            clears + if rows > frame { nodes * rows } else { (nodes - 1) * frame + rows }
        };
        let fastest = words(leaves, bits, "reduction_units = 64\n");
        for units in [1, 2, 4, 8, 16, 64] {
            let expected = fastest + time(units) - time(64);
            let latency = words(leaves, bits, &format!("reduction_units = {units}\n"));
            assert_eq!(latency, expected, "{bits} bits, {units} units");
        }
        let auto = words(leaves, bits, "");
        assert_eq!(auto, fastest + time(bits.div_ceil(64)) - time(64), "{bits} bits: a unit for every word of a flit");
    }
}
