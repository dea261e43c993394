//! What each part of the hardware truth costs a simulation: the same work with a part and without it, in turn, in one run.

use std::path::Path;

use watershed::scenario::config::Wave;
use watershed::scenario::load_text;
use watershed::scenario::run::{RunOptions, WaveOptions, run};

use crate::{ROUNDS, Stopwatch};

/// A scenario with a part and one without.
struct Pair {
    what: &'static str,
    without: String,
    with: String,
    /// Signals that are recorded in the second.
    signals: &'static [&'static str],
}

/// A tree over all cores that programs call.
fn tree(id: u32) -> String {
    format!("[[collective]]\nname = 'c{id}'\nkind = 'allreduce'\nid = {id}\ncalled = true\n")
}

/// Eight cores call an all-reduce of 16 words 400 times, on so many trees in turn.
fn calls(trees: u32) -> String {
    let there: String = (0..trees).map(tree).collect();
    let last = trees - 1;
    format!(
        "family = 'piuma'\ntopology.kind = 'die'\nmemory.bandwidth_gbps = 'unlimited'\n{there}[[program]]\ntext = '''\n\
         .random 0, 16, f64\nagain: allreduce 0, 0, 0x8000, 16\nallreduce {last}, 0, 0xC000, 16\nadd r1, r1, 1\n\
         bne r1, 200, again\n'''\n"
    )
}

/// Four threads of each core load a register so many times.
fn loads(address: &str, core: &str) -> String {
    let tree = tree(0);
    format!(
        "family = 'piuma'\ntopology.kind = 'die'\n{core}{tree}[[program]]\nthreads = 4\ntext = '''\n\
         again: load r1, [{address}]\nadd r2, r2, 1\nbne r2, 1000, again\n'''\n"
    )
}

/// Packets of one flit on a mesh, beside what else is there.
fn traffic(family: &str, beside: &str) -> String {
    format!(
        "family = '{family}'\ntopology = {{ kind = 'mesh', size = [8, 8] }}\nlink.latency_cycles = 1\nchecks.monitors = false\n{beside}\
         [[traffic]]\npattern = 'uniform'\nrate = 0.3\nstop_cycle = 10000\n"
    )
}

/// Two trees over all cores that nobody calls: claims, registers and engines are there, and have nothing to do.
fn idle() -> String {
    format!("{}{}[[program]]\ncores = [0]\ntext = 'halt'\n", tree(0), tree(1))
}

/// An all-reduce of the packet engines, in flits of so many bits over links of so many wires.
fn frames(bits: u32, wires: u32) -> String {
    format!(
        "family = 'pbv'\ntopology = {{ kind = 'tree', branching = [4, 4] }}\nlink = {{ flit_bits = {bits}, width_bits = {wires} }}\n\
         [[pbv.collective]]\nkind = 'allreduce'\nop = 'sum'\nelements = 128\nrounds = 20\n"
    )
}

fn pairs() -> Vec<Pair> {
    let die = "family = 'piuma'\ntopology.kind = 'die'\nmemory.bandwidth_gbps = 'unlimited'\n[[collective]]\nkind = 'allreduce'\n\
               elements = 10000\n";
    let pair = |what, without: String, with: String| Pair { what, without, with, signals: &[] };
    let register = "0x2000000004000018";
    vec![
        Pair {
            what: "stage registers of one engine in a wave",
            without: die.to_owned(),
            with: die.to_owned(),
            signals: &["**.core0.switch.ceng.tree.**"],
        },
        pair("overlapping trees that claim, 400 calls", calls(1), calls(2)),
        pair(
            "32,000 loads of a far register in band",
            loads(register, "core.register_access = 'out-of-band'\n"),
            loads(register, ""),
        ),
        pair(
            "one port a unit instead of four, 32,000 loads",
            loads("0x3000000000000008", "core = { xbar_ports = 4, cce_decoders = 4 }\n"),
            loads("0x3000000000000008", ""),
        ),
        pair("flits of 256 bits instead of 64, PBV", frames(64, 64), frames(256, 256)),
        pair("links of 16 wires instead of 64, PBV", frames(64, 64), frames(64, 16)),
        pair("plain mesh beside trees that nobody calls", traffic("piuma", ""), traffic("piuma", &idle())),
        pair("plain mesh in the family that has engines", traffic("fabric", ""), traffic("piuma", "")),
    ]
}

/// Cycles and seconds of a run that passes its checks.
fn once(text: &str, signals: &[&str]) -> (u64, f64) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let loaded = load_text("bench.toml", text, Path::new("."), "bench", &[]).unwrap_or_else(|error| panic!("{error}"));
    let wave = WaveOptions::of(
        folder.path().join("wave.vcd"),
        Wave { signals: signals.iter().map(|&glob| glob.to_owned()).collect(), ..Wave::default() },
    );
    let options = RunOptions { wave: (!signals.is_empty()).then_some(&wave), ..RunOptions::default() };
    let begin = Stopwatch::start();
    let result = run(&loaded, &options).unwrap_or_else(|error| panic!("{error}"));
    let seconds = begin.seconds();
    assert!(result.document.passed(), "the run fails its checks: {:?}", result.document.checks);
    (result.document.cycles, seconds)
}

/// Prints the table.
pub fn compare() {
    println!("what parts of the hardware cost: the same work without and with each, in turn, whole runs");
    println!("  part                                             cycles: without, with   ms: without, with   ratio");
    for Pair { what, without, with, signals } in pairs() {
        let mut best = [(0, f64::MAX); 2];
        for _ in 0..ROUNDS {
            for (best, (text, signals)) in best.iter_mut().zip([(&without, &[][..]), (&with, signals)]) {
                let ran = once(text, signals);
                *best = if ran.1 < best.1 { ran } else { *best };
            }
        }
        let [(cycles, seconds), (more_cycles, more_seconds)] = best;
        println!(
            "  {what:46}   {cycles:14} {more_cycles:7}   {:10.1} {:7.1}   {:5.2}",
            seconds * 1e3,
            more_seconds * 1e3,
            more_seconds / seconds
        );
    }
    println!();
}
