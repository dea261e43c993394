//! The same three networks in BookSim2 and here, in one run: latency, and cycles a second.
//!
//! `make bench BOOKSIM=path/to/booksim`. Both programs simulate warm-up and window at the same load; a round runs one
//! after the other, so that whatever else the machine does meets both. Speed is cycles a second of processor time, the
//! best round of each; ours is the whole run, building included, with link monitors on and off.

use std::path::{Path, PathBuf};
use std::process::Command;

use watershed::scenario::load_file;
use watershed::scenario::run::{RunOptions, run};

const ROUNDS: usize = 3;

struct Network {
    name: &'static str,
    peer: &'static str,
    loads: &'static [f64],
}

const NETWORKS: [Network; 3] = [
    Network {
        name: "mesh88",
        peer: "topology = mesh; k = 8; n = 2; routing_function = dim_order; num_vcs = 8; vc_buf_size = 8; \
               wait_for_tail_credit = 1; credit_delay = 2; routing_delay = 0; input_speedup = 2;",
        loads: &[0.01, 0.1, 0.2, 0.3],
    },
    Network {
        name: "torus88",
        peer: "topology = torus; k = 8; n = 2; routing_function = dim_order; num_vcs = 2; vc_buf_size = 8; \
               wait_for_tail_credit = 0; credit_delay = 0; routing_delay = 1; input_speedup = 1;",
        loads: &[0.01, 0.1, 0.2],
    },
    Network {
        name: "flatfly",
        // Its ran_min, of all its names, routes this network in dimension order.
        peer: "topology = flatfly; k = 4; n = 2; c = 4; x = 4; y = 4; xr = 2; yr = 2; routing_function = ran_min; \
               num_vcs = 8; vc_buf_size = 4; wait_for_tail_credit = 0; credit_delay = 2; routing_delay = 0; \
               input_speedup = 1; use_noc_latency = 1;",
        loads: &[0.01, 0.1, 0.3, 0.5, 0.58],
    },
];

/// What is the same in all three. One sample after one of warm-up.
const COMMON: &str = "vc_allocator = islip; sw_allocator = islip; alloc_iters = 1; vc_alloc_delay = 1; \
                      sw_alloc_delay = 1; output_speedup = 1; internal_speedup = 1.0; traffic = uniform; \
                      packet_size = 1; sim_type = latency; sample_period = 10000; max_samples = 3; warmup_periods = 1;";

#[derive(Clone, Copy)]
struct Figures {
    latency: f64,
    cycles_a_second: f64,
}

impl Figures {
    fn faster(self, other: Option<Figures>) -> Figures {
        Figures { cycles_a_second: other.map_or(0.0, |o| o.cycles_a_second).max(self.cycles_a_second), ..self }
    }
}

/// Prints the tables, or says how to get them.
pub fn compare() {
    println!("beside BookSim2");
    let Some(booksim) = std::env::var_os("BOOKSIM").map(PathBuf::from).filter(|path| !path.as_os_str().is_empty())
    else {
        println!("  make bench BOOKSIM=path/to/booksim runs it in turn with this program\n");
        return;
    };
    println!(
        "  network   load   latency: BookSim2, here   apart   cycles/s: BookSim2   here, checked   unchecked   ratio"
    );
    for network in &NETWORKS {
        for &load in network.loads {
            match one(&booksim, network, load) {
                Ok((peer, checked, unchecked)) => println!(
                    "  {:8}  {load:4.2}   {:17.2} {:6.2}  {:+5.2} %   {:18.0}   {:13.0}   {:9.0}   {:4.1}x to {:.1}x",
                    network.name,
                    peer.latency,
                    unchecked.latency,
                    (unchecked.latency / peer.latency - 1.0) * 100.0,
                    peer.cycles_a_second,
                    checked.cycles_a_second,
                    unchecked.cycles_a_second,
                    checked.cycles_a_second / peer.cycles_a_second,
                    unchecked.cycles_a_second / peer.cycles_a_second,
                ),
                Err(error) => {
                    println!("  {error}\n");
                    return;
                }
            }
        }
    }
    println!();
}

fn one(booksim: &Path, network: &Network, load: f64) -> Result<(Figures, Figures, Figures), String> {
    let (mut peer, mut checked, mut unchecked) = (None, None, None);
    for _ in 0..ROUNDS {
        peer = Some(theirs(booksim, network, load)?.faster(peer));
        checked = Some(ours(network, load, true).faster(checked));
        unchecked = Some(ours(network, load, false).faster(unchecked));
    }
    let all = peer.zip(checked).zip(unchecked).map(|((peer, checked), unchecked)| (peer, checked, unchecked));
    all.ok_or_else(|| "nothing was measured".into())
}

fn theirs(booksim: &Path, network: &Network, load: f64) -> Result<Figures, String> {
    let folder = std::env::temp_dir().join(format!("watershed-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let file = folder.join("network.cfg");
    let text = format!("{} {COMMON} injection_rate = {load};\n", network.peer);
    std::fs::write(&file, text).map_err(|error| error.to_string())?;
    let before = children();
    let output = Command::new(booksim).arg(&file).output().map_err(|error| format!("{}: {error}", booksim.display()));
    let seconds = children() - before;
    let _ = std::fs::remove_dir_all(&folder);
    // It exits with 255 on success.
    let text = String::from_utf8_lossy(&output?.stdout).into_owned();
    let last = |key: &str| {
        let line = text.lines().rev().find(|line| line.trim_start().starts_with(key))?;
        line.split(['=', ' ']).find_map(|word| word.parse::<f64>().ok())
    };
    let missing = |key: &str| format!("{} printed no \"{key}\"", booksim.display());
    let number = |key: &str| last(key).ok_or_else(|| missing(key));
    Ok(Figures { latency: number("Packet latency average =")?, cycles_a_second: number("Time taken is")? / seconds })
}

/// Processor seconds of all children that have ended; wall time where the kernel does not tell.
fn children() -> f64 {
    match Children::so_far() {
        Some(children) => children.user + children.system,
        None => std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0.0, |now| now.as_secs_f64()),
    }
}

/// What all children that have ended took, as the kernel counts it.
#[derive(Clone, Copy)]
pub struct Children {
    /// Processor seconds outside the kernel.
    pub user: f64,
    /// Processor seconds inside it.
    pub system: f64,
    /// Pages that were touched for the first time.
    pub faults: f64,
}

impl Children {
    /// Of those so far, where the kernel tells.
    pub fn so_far() -> Option<Children> {
        let text = std::fs::read_to_string("/proc/self/stat").ok()?;
        let rest: Vec<&str> = text.rsplit(')').next()?.split_whitespace().collect();
        // Fields are counted from 1, and the third comes first behind the name; times are in ticks.
        let field = |number: usize| rest.get(number - 3)?.parse::<f64>().ok();
        Some(Children { user: field(16)? / 100.0, system: field(17)? / 100.0, faults: field(11)? })
    }
}

fn ours(network: &Network, load: f64, checks: bool) -> Figures {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testbench/fabric/booksim-{}.toml", network.name));
    let overrides = [
        format!("traffic[0].rate={load}"),
        "measure.warmup_cycles=10000".into(),
        "measure.measure_cycles=20000".into(),
    ];
    let loaded = load_file(&file, &overrides).unwrap_or_else(|error| panic!("{error}"));
    let begin = super::Stopwatch::start();
    let options = RunOptions { no_checks: !checks, ..RunOptions::default() };
    let document = run(&loaded, &options).unwrap_or_else(|error| panic!("{error}")).document;
    let seconds = begin.seconds();
    Figures {
        latency: document.traffic[0].mean_latency_cycles.unwrap_or(f64::NAN),
        cycles_a_second: document.cycles as f64 / seconds,
    }
}
