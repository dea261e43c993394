//! What a second thread gives: the same run on one thread and on two, in turn, by the clock on the wall.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use watershed::fabric::Step;
use watershed::scenario::build::BuildOptions;
use watershed::scenario::load_text;
use watershed::scenario::run::{RunOptions, run};

use crate::{built, free_mib};

/// Runs of each number of threads; the best counts.
const TIMES: usize = 3;

/// Plain traffic over 1,024 end points.
fn traffic(stages: &str) -> String {
    format!(
        "family = 'fabric'\ntopology = {{ kind = 'mesh', size = [32, 32] }}\nswitch = {{ point_to_point_vcs = 8, {stages} }}\n\
         measure = {{ warmup_cycles = 300, measure_cycles = 1000 }}\n[[traffic]]\npattern = 'uniform'\nrate = 0.1\n"
    )
}

/// An all-reduce over a torus of 1,024 switches, beside traffic.
fn torus(engine: &str, elements: u32) -> String {
    format!(
        "family = '{engine}'\ntopology = {{ kind = 'torus', size = [32, 32] }}\nswitch.point_to_point_vcs = 4\n\
         [[traffic]]\npattern = 'uniform'\nrate = 0.1\n\
         [[job]]\nkind = 'allreduce'\nop = 'sum'\ndtype = 'f64'\nelements = {elements}\n"
    )
}

/// Barriers of sixteen contexts over a flattened butterfly of 1,024 nodes.
fn barriers() -> String {
    let mut text = "family = 'pbv'\nclock.frequency_mhz = 2000\npbv.setup.configuration = 'side-port'\n\
         topology = { kind = 'flattened-butterfly', size = [32], concentration = 32 }\n"
        .to_owned();
    for context in 0..16 {
        let _ = write!(
            text,
            "[[pbv.collective]]\nkind = 'barrier'\nrounds = 20\nrearm = true\nblocks = false\nmaster = 's{}'\nsource = {}\n\
             task_cycles = {{ random_max = 500 }}\n",
            2 * context,
            64 * context
        );
    }
    text
}

/// Systems of 1,024 nodes whose cycles go in step: plain traffic, engines behind a port, engines in the wire.
pub fn systems() {
    println!("1,024 nodes on one thread and on two, whole runs, by the clock on the wall (best of {TIMES}, in turn)");
    let rows = [
        ("mesh of 32 x 32, uniform traffic", traffic("pipeline_stages = 3")),
        ("torus of 32 x 32, PIUMA all-reduce beside traffic", torus("piuma", 256)),
        ("torus of 32 x 32, armed all-reduce beside traffic", torus("armed", 16)),
        ("flattened butterfly, PBV barriers of 16 contexts", barriers()),
    ];
    for (what, text) in rows {
        let loaded =
            load_text("bench.toml", &text, Path::new("."), "bench", &[]).unwrap_or_else(|error| panic!("{error}"));
        let mut best = [f64::INFINITY; 2];
        for _ in 0..TIMES {
            for (threads, best) in (1..).zip(&mut best) {
                let begin = Instant::now();
                let options = RunOptions { threads, ..RunOptions::default() };
                let result = run(&loaded, &options).unwrap_or_else(|error| panic!("{error}"));
                assert!(result.document.passed(), "the run fails its checks");
                *best = best.min(begin.elapsed().as_secs_f64());
            }
        }
        let [one, two] = best;
        println!("  {what:<52} {one:6.2} s   {two:6.2} s   {:.2} times as fast", one / two);
    }
    println!();
}

/// The same large system on one thread and on two: wall time, for the two threads do the same work.
pub fn nodes() {
    let size = if free_mib() < 7_000.0 { 64 } else { 128 };
    let text = format!(
        "family = 'piuma'\ntopology = {{ kind = 'nodes', size = [{size}, {size}] }}\n[[collective]]\nkind = 'allreduce'\n"
    );
    for (threads, no_monitors) in [(1, false), (2, false), (1, true), (2, true)] {
        let options = BuildOptions { threads, windows: true, no_monitors, ..BuildOptions::default() };
        let mut system = built(&text, options);
        let begin = Instant::now();
        while system.step() == Step::Ran {}
        let seconds = begin.elapsed().as_secs_f64();
        let hops: u64 = system.link_counts().map(|(_, count, _)| count.set).sum();
        println!(
            "  {} nodes, {threads} thread{}, link monitors {}: {seconds:.2} s of wall time, {:.0} ns a packet-hop",
            size * size,
            if threads == 1 { " " } else { "s" },
            if no_monitors { "off" } else { "on " },
            seconds * 1e9 / hops as f64
        );
    }
}
