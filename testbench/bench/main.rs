//! What simulating costs. `make bench` prints a table; nothing is asserted, for time on a wall belongs to a machine.
//!
//! Every figure is the best of [`ROUNDS`] rounds: what disturbs a measurement only ever makes it longer. Time is the
//! processor's where the system tells it (Linux), so that a busy machine changes little. Names of parts behind `--`, as
//! `hardware`, choose those.

#[path = "arith.rs"]
mod arith;
#[path = "booksim.rs"]
mod booksim;
#[path = "hardware.rs"]
mod hardware;
#[path = "probe.rs"]
mod probe;
#[path = "threads.rs"]
mod threads;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use booksim::Children;

use watershed::arith::{DType, Op, Tree, TreeCfg, TreeIn};
use watershed::fabric::Step;
use watershed::piuma::System;
use watershed::probe::{Period, Selection, Sink, Tracer, VcdSink, WriterThread};
use watershed::scenario::build::{BuildOptions, build};
use watershed::scenario::load_text;
use watershed::scenario::run::{RunOptions, run};
use watershed::study::plot::{Plot, Series};

/// The program's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 5;

fn main() {
    println!("machine   {}", machine());
    println!("command   cargo bench --profile dist --bench cost    (best of {ROUNDS} rounds, one thread)\n");
    let parts: [(&str, fn()); 11] = [
        ("booksim", booksim::compare),
        ("traffic", traffic),
        ("allreduce", allreduce),
        ("waves", waves),
        ("hardware", hardware::compare),
        ("tree", tree),
        ("armed", armed),
        ("pbv", pbv),
        ("nodes", nodes),
        ("threads", threads::systems),
        ("size", size),
    ];
    let only: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    for (name, part) in parts {
        if only.is_empty() || only.iter().any(|word| word == name) {
            part();
        }
    }
}

/// An all-reduce of the armed family over a three-level fat tree, without and with checks.
fn armed() {
    println!("armed all-reduce over 4,096 leaves of a three-level fat tree (16-ary), 100 rounds and the opening");
    for checks in [false, true] {
        let text = format!(
            "family = 'armed'\nclock.frequency_mhz = 850\ntopology = {{ kind = 'fat-tree', arity = 16, levels = 3 }}\n\
             checks = {{ monitors = {checks}, oracle = {checks} }}\n[[armed.reduction]]\nop = 'flt-sum-near'\nrounds = 100\n\
             compute_cycles = {{ random_max = 500 }}\ndata = {{ random = 'normal', same_every_round = true }}\n"
        );
        let loaded =
            load_text("bench.toml", &text, Path::new("."), "bench", &[]).unwrap_or_else(|error| panic!("{error}"));
        let before = resident_mib();
        let begin = Stopwatch::start();
        let result = run(&loaded, &RunOptions::default()).unwrap_or_else(|error| panic!("{error}"));
        let seconds = begin.seconds();
        assert!(result.document.passed(), "the run fails its checks");
        println!(
            "  checks {}   {seconds:6.2} s, {} cycles, {:.0} MiB more at its peak",
            if checks { "on " } else { "off" },
            result.document.cycles,
            (peak_mib() - before).max(0.0)
        );
    }
    println!();
}

/// Barriers of the PBV family over a flattened butterfly of 32 switches with 32 nodes each, sixteen contexts with sixteen
/// masters at a time, without and with checks.
fn pbv() {
    const CONTEXTS: u32 = 16;
    const ROUNDS_EACH: u32 = 63;
    println!(
        "PBV barriers over 1,024 nodes of a 32 x 32 flattened butterfly, {CONTEXTS} contexts of {ROUNDS_EACH} rounds each"
    );
    for checks in [false, true] {
        let mut text = format!(
            "family = 'pbv'\nclock.frequency_mhz = 2000\ntopology = {{ kind = 'flattened-butterfly', size = [32], concentration = 32 }}\n\
             checks = {{ monitors = {checks}, oracle = {checks} }}\npbv.setup.configuration = 'side-port'\n"
        );
        for context in 0..CONTEXTS {
            text.extend([format!(
                "[[pbv.collective]]\nkind = 'barrier'\nrounds = {ROUNDS_EACH}\nrearm = true\nblocks = false\nmaster = 's{}'\n\
                 source = {}\ntask_cycles = {{ random_max = 500 }}\n",
                2 * context,
                64 * context
            )]);
        }
        let loaded =
            load_text("bench.toml", &text, Path::new("."), "bench", &[]).unwrap_or_else(|error| panic!("{error}"));
        let before = resident_mib();
        let begin = Stopwatch::start();
        let result = run(&loaded, &RunOptions::default()).unwrap_or_else(|error| panic!("{error}"));
        let seconds = begin.seconds();
        assert!(result.document.passed(), "the run fails its checks");
        let frames = result.document.pbv.as_ref().map_or(0, |pbv| pbv.engines.frames_in + pbv.engines.frames_out);
        println!(
            "  checks {}   {seconds:6.2} s, {} cycles, {:.0} ns a frame in or out of an engine, {:.0} MiB more at its peak",
            if checks { "on " } else { "off" },
            result.document.cycles,
            seconds * 1e9 / frames as f64,
            (peak_mib() - before).max(0.0)
        );
    }
    println!();
}

/// How building and running grow from one node to the paper's largest system, and what a packet-hop costs there.
fn nodes() {
    println!("all-reduce of one double a core on systems of nodes, 16 sockets of 8 cores each, with all checks");
    println!("  nodes     cores      latency   built in   run in    ns a packet-hop   MiB");
    let (mut names, mut per_hop, mut memory, mut resident) = (Vec::new(), Vec::new(), Vec::new(), 0.0);
    for size in [&[][..], &[4], &[4, 4], &[16, 16], &[32, 32], &[64, 64], &[128, 128]] {
        let count: u64 = size.iter().product();
        // The largest takes five gigabytes; where they are not there it is left out, not estimated.
        if count > 4096 && free_mib() < 7_000.0 {
            println!("  {count:6}  not enough memory free here");
            continue;
        }
        let text = format!(
            "family = 'piuma'\ntopology = {{ kind = 'nodes', size = {size:?} }}\n[[collective]]\nkind = 'allreduce'\n"
        )
        .replace(", size = []", "");
        // One run of a small system is shorter than the processor's clock can tell.
        let (mut made, mut ran, mut hops, mut runs, mut cycles) = (0.0, 0.0, 0, 0.0, 0);
        while ran < 0.2 && runs < 5_000.0 {
            let begin = Stopwatch::start();
            let mut system = built(&text, BuildOptions { windows: true, ..BuildOptions::default() });
            made += begin.seconds();
            let begin = Stopwatch::start();
            while system.step() == Step::Ran {}
            ran += begin.seconds();
            hops += system.link_counts().map(|(_, count, _)| count.set).sum::<u64>();
            cycles = system.alive_until();
            runs += 1.0;
            resident = resident_mib();
        }
        println!(
            "  {count:6}  {:8}  {cycles:5} cycles  {:7.3} s  {:7.3} s   {:15.0}   {resident:.0}",
            count * 128,
            made / runs,
            ran / runs,
            ran * 1e9 / hops as f64,
        );
        names.push(count.to_string());
        per_hop.push(ran * 1e9 / hops as f64);
        memory.push(resident / 1024.0);
    }
    let line = |name: &str, values: Vec<f64>| Series {
        name: name.to_owned(),
        points: values.into_iter().enumerate().map(|(at, value)| (at as f64, value)).collect(),
        ..Series::default()
    };
    for (file, y, series) in [
        ("nodes-time.svg", "processor time (ns a packet-hop)", line("run, all checks on, one thread", per_hop)),
        ("nodes-memory.svg", "resident memory (GiB)", line("after the run", memory)),
    ] {
        let plot = Plot {
            title: "One all-reduce over all cores: what simulating it costs".to_owned(),
            x: "nodes of 128 cores".to_owned(),
            y: y.to_owned(),
            levels: names.clone(),
            series: vec![series],
            ..Plot::default()
        };
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("out").join(file);
        match std::fs::create_dir_all(path.parent().unwrap_or(&path)).and_then(|()| std::fs::write(&path, plot.svg())) {
            Ok(()) => println!("  plot: out/{file}"),
            Err(error) => println!("  no plot: {}: {error}", path.display()),
        }
    }
    threads::nodes();
    process();
    println!();
}

/// The whole process as a user waits for it: what comes before a system is built and after it has run as well.
fn process() {
    let size = if free_mib() < 7_000.0 { 64 } else { 128 };
    let Some(before) = Children::so_far() else { return };
    let begin = Instant::now();
    let status = Command::new(env!("CARGO_BIN_EXE_watershed"))
        .args(["run", "allreduce-16384-nodes", "--set", &format!("topology.size=[{size},{size}]")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let wall = begin.elapsed().as_secs_f64();
    match (status, Children::so_far()) {
        (Ok(status), Some(after)) if status.success() => println!(
            "  {} nodes, the whole process: {wall:.2} s of wall time; processor {:.2} s in the program, {:.2} s in the system; \
             {:.0} thousand page faults",
            size * size,
            after.user - before.user,
            after.system - before.system,
            (after.faults - before.faults) / 1000.0
        ),
        (status, _) => println!("  the whole process: it did not succeed: {status:?}"),
    }
}

/// Memory that could still be taken.
fn free_mib() -> f64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("MemAvailable:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

fn status_mib(key: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

/// Memory the process has now, and the most it has had; 0 where the system does not say.
fn resident_mib() -> f64 {
    status_mib("VmRSS:")
}

fn peak_mib() -> f64 {
    status_mib("VmHWM:")
}

fn machine() -> String {
    let field = |file: &str, key: &str| {
        let text = std::fs::read_to_string(file).ok()?;
        let line = text.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let model = field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = field("/proc/meminfo", "MemTotal")
        .and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok())
        .map_or_else(String::new, |kib| format!(", {:.0} GiB", kib / 1024.0 / 1024.0));
    format!("{model}, {threads} hardware threads{memory}, {}", std::env::consts::OS)
}

fn system(text: &str, monitors: bool) -> System {
    built(text, BuildOptions { no_monitors: !monitors, ..BuildOptions::default() })
}

fn built(text: &str, options: BuildOptions) -> System {
    let loaded = load_text("bench.toml", text, Path::new("."), "bench", &[]).unwrap_or_else(|error| panic!("{error}"));
    build(&loaded, options).unwrap_or_else(|error| panic!("{error}")).system
}

/// Measures the time this thread has run; the time that has passed where the system does not say.
struct Stopwatch(Instant, Option<u64>);

impl Stopwatch {
    fn start() -> Stopwatch {
        Stopwatch(Instant::now(), Stopwatch::on_processor())
    }

    fn seconds(&self) -> f64 {
        match (self.1, Stopwatch::on_processor()) {
            (Some(begin), Some(end)) => (end - begin) as f64 / 1e9,
            _ => self.0.elapsed().as_secs_f64(),
        }
    }

    fn on_processor() -> Option<u64> {
        std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split_whitespace().next()?.parse().ok()
    }
}

/// What a run did, and how long it took.
#[derive(Debug, Clone, Copy)]
struct Ran {
    cycles: u64,
    /// Flits that left a switch.
    hops: u64,
    /// Value changes written.
    changes: u64,
    /// Of this thread on its processor, where the system tells.
    seconds: f64,
    /// On the wall.
    wall: f64,
}

impl Ran {
    fn nanoseconds_each(self, count: u64) -> f64 {
        self.seconds * 1e9 / count as f64
    }
}

/// Runs to the end, or to a cycle.
fn once(mut system: System, last: u64) -> Ran {
    let (begin, wall) = (Stopwatch::start(), Instant::now());
    while system.now() < last && system.step() == Step::Ran {}
    let cycles = system.now();
    let changes = system.stop_recording().map_or(0, |tracer| tracer.finish(cycles).expect("nowhere has room").changes);
    let (seconds, wall) = (begin.seconds(), wall.elapsed().as_secs_f64());
    let from_switch = system.link_loads().filter(|load| load.from.contains(".P"));
    let hops = from_switch.map(|load| load.count.set + load.count.unicast).sum();
    Ran { cycles, hops, changes, seconds, wall }
}

/// Keeps the shorter one, by the time on the wall.
fn keep(best: &mut Option<Ran>, ran: Ran) {
    if best.is_none_or(|best| ran.wall < best.wall) {
        *best = Some(ran);
    }
}

/// The best of several rounds.
fn best(make: impl Fn() -> System, last: u64) -> Ran {
    let rounds = (0..ROUNDS).map(|_| once(make(), last));
    rounds.min_by(|a, b| a.seconds.total_cmp(&b.seconds)).expect("at least one round")
}

fn traffic() {
    println!("8 x 8 mesh, uniform packets of one flit, 20,000 cycles");
    println!("  load   monitors   ns a packet-hop   ns a router-cycle");
    for rate in ["0.1", "0.3"] {
        for monitors in [true, false] {
            let ran = best(|| system(&mesh(rate), monitors), 20_000);
            let (hop, cycle) = (ran.nanoseconds_each(ran.hops), ran.nanoseconds_each(ran.cycles * 64));
            println!("  {rate:4}   {:8}   {hop:15.0}   {cycle:17.1}", if monitors { "on" } else { "off" });
        }
    }
    println!();
    println!("bigger networks, uniform packets of one flit at 0.1 (64 x 64: 0.02, below its bisection), monitors off");
    println!("  network              ns a packet-hop   cycles a second");
    for (name, topology, load, cycles) in [
        ("8 x 8 mesh", "{ kind = 'mesh', size = [8, 8] }", "0.1", 20_000),
        ("64 x 64 mesh", "{ kind = 'mesh', size = [64, 64] }", "0.02", 1_000),
        ("16 x 16 x 16 torus", "{ kind = 'torus', size = [16, 16, 16] }", "0.1", 500),
    ] {
        let text = format!(
            "family = 'fabric'\ntopology = {topology}\nlink.latency_cycles = 1\nswitch.point_to_point_vcs = 4\n\
             [[traffic]]\npattern = 'uniform'\nrate = {load}\n"
        );
        let ran = best(|| system(&text, false), cycles);
        let speed = ran.cycles as f64 / ran.seconds;
        println!("  {name:19}  {:15.0}   {speed:15.0}", ran.nanoseconds_each(ran.hops));
    }
    println!();
}

fn die(elements: u32) -> String {
    format!(
        "family = 'piuma'\ntopology.kind = 'die'\nmemory.bandwidth_gbps = 'unlimited'\n\
         [[collective]]\nkind = 'allreduce'\nop = 'sum'\ndtype = 'f64'\nelements = {elements}\ndata.random = 'normal'\n"
    )
}

fn allreduce() {
    const ELEMENTS: u32 = 100_000;
    println!("all-reduce of {ELEMENTS} doubles on a die, an element a cycle");
    println!("  monitors   ns an element   ns a packet-hop   ns a router-cycle");
    for monitors in [true, false] {
        let ran = best(|| system(&die(ELEMENTS), monitors), u64::MAX);
        let element = ran.nanoseconds_each(u64::from(ELEMENTS));
        let (hop, cycle) = (ran.nanoseconds_each(ran.hops), ran.nanoseconds_each(ran.cycles * 16));
        println!("  {:8}   {element:13.0}   {hop:15.0}   {cycle:17.1}", if monitors { "on" } else { "off" });
    }
    println!();
}

fn mesh(rate: &str) -> String {
    format!(
        "family = 'fabric'\ntopology = {{ kind = 'mesh', size = [8, 8] }}\nlink.latency_cycles = 1\n\
         [[traffic]]\npattern = 'uniform'\nrate = {rate}\n"
    )
}

/// Records the signals of a glob as VCD to nowhere.
fn record(mut system: System, glob: &str, thread: bool) -> System {
    let selection = Selection::new([glob]).expect("a good glob");
    let sink: Box<dyn Sink> = Box::new(VcdSink::to_writer(Box::new(std::io::sink())));
    let sink = if thread { Box::new(WriterThread::new(sink)) } else { sink };
    let period = Period::from_mhz(1000).expect("a good period");
    system.record(Tracer::new(period, selection, sink)).expect("signals are selected");
    system
}

fn waves() {
    const ELEMENTS: u32 = 20_000;
    const CYCLES: u64 = 20_000;
    let uniform = format!("8 x 8 mesh, uniform packets of one flit at 0.3, {CYCLES} cycles");
    let reduction = format!("all-reduce of {ELEMENTS} doubles on a die");
    let die = [("one engine's state", "**.core0.switch.ceng.*"), ("one switch of 16", "**.core0.**"), ("all", "**")];
    let routers = [("one router of 64", "**.s3_3.switch.**"), ("all", "**")];
    println!("waves, written as VCD to nowhere: by the run itself, and with a thread that writes (time on the wall)");
    for (what, text, last, globs) in
        [(uniform, mesh("0.3"), CYCLES, &routers[..]), (reduction, self::die(ELEMENTS), u64::MAX, &die[..])]
    {
        println!("  {what}");
        println!("  signals              changes   itself                            with a thread");
        // In turn, so that all of them meet the same disturbances.
        let mut without: Option<Ran> = None;
        let mut with = vec![[None; 2]; globs.len()];
        for _ in 0..ROUNDS {
            keep(&mut without, once(system(&text, false), last));
            for (&(_, glob), best) in globs.iter().zip(&mut with) {
                for (best, thread) in best.iter_mut().zip([false, true]) {
                    keep(best, once(record(system(&text, false), glob, thread), last));
                }
            }
        }
        let base = without.map_or(0.0, |ran| ran.wall);
        println!("  none                       0   {base:.3} s");
        for ((what, _), best) in globs.iter().zip(with) {
            let [own, thread] = best.map(|ran| {
                let Some(ran) = ran else { return (0, String::new()) };
                let more = ran.wall - base;
                let each = match ran.changes {
                    changes if changes > 1_000_000 => format!(", {:3.0} ns a change", more * 1e9 / changes as f64),
                    _ => String::new(),
                };
                (ran.changes, format!("{:.3} s, {:3.0} % more{each}", ran.wall, more / base * 100.0))
            });
            println!("  {what:18} {:9}   {:32}  {}", own.0, own.1, thread.1);
        }
    }
    let best = |run: &dyn Fn() -> (u64, f64)| {
        (0..ROUNDS).map(|_| run()).map(|(count, seconds)| seconds * 1e9 / count as f64).fold(f64::MAX, f64::min)
    };
    let change = best(&|| probe::bench_changes(2_000_000, None));
    let same = best(&|| probe::bench_unchanged(20_000_000));
    println!("  the tracer alone: {change:.0} ns a change, {same:.1} ns a signal that stays\n");
}

fn tree() {
    const WAVES: u64 = 200_000;
    println!("pipelined reduction tree, f64 sum, ten ports, three stages a unit, a wave a cycle");
    let operands: Vec<TreeIn> = (0..64_u64)
        .map(|wave| {
            let word = |port| f64::to_bits((wave * 10 + port) as f64 * 0.37 - 100.0);
            let words: Vec<u64> = (0..10).map(word).collect();
            TreeIn::of(Op::Sum, DType::F64, &words)
        })
        .collect();
    let mut seconds = f64::MAX;
    let mut bits = 0;
    for _ in 0..ROUNDS {
        let mut tree = Tree::new(TreeCfg { radix: 10, unit_stages: 3 });
        let begin = Stopwatch::start();
        for wave in 0..WAVES {
            if let Some(out) = tree.tick(Some(operands[wave as usize % operands.len()].clone())) {
                bits ^= out.value;
            }
        }
        seconds = seconds.min(begin.seconds());
    }
    let _ = std::hint::black_box(bits);
    let each = seconds * 1e9 / WAVES as f64;
    println!("  {:.2} million waves a second ({each:.0} ns a wave of nine additions)", 1e3 / each);
    let (ours, theirs) = arith::bench_adds(1_000_000, 3);
    println!("  one pipelined adder: {:.0} million sums a second; SoftFloat: {:.0}", ours / 1e6, theirs / 1e6);
    println!("  a million doubles through trees of radix 10: {:.2} s\n", arith::bench_reduce(1_000_000));
}

fn size() {
    println!("size and building");
    println!("  system                        switches   idle bytes a switch   built in");
    for (what, family, topology) in [
        ("die", "piuma", "{ kind = 'die' }"),
        ("512 x 512 mesh, plain", "fabric", "{ kind = 'mesh', size = [512, 512] }"),
        ("512 x 512 mesh, with engines", "piuma", "{ kind = 'mesh', size = [512, 512] }"),
    ] {
        let text = format!("family = '{family}'\ntopology = {topology}\nlink.latency_cycles = 1\n");
        let begin = Stopwatch::start();
        let system = system(&text, true);
        let seconds = begin.seconds();
        let switches = system.plan().count(watershed::fabric::NodeKind::Switch);
        println!("  {what:28}  {switches:8}   {:19}   {seconds:.3} s", system.idle_bytes_per_switch());
    }
}
