//! Coefficients of formulas for gates, flip-flops and periods, fitted to what synthesis recorded.
//!
//! Least squares of relative errors, block by block from the inside out. `WATERSHED_SYNTH=fit` (a part of `make synth`) writes them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use watershed::arith::DType;
use watershed::scenario::cost::model::{Block, Datapath, Fit, Fitted, Format, Quantity, SetSwitch, stage_terms};
use watershed::scenario::cost::technology::{FIT, Technology};

use crate::synth::recorded;
use crate::timing::Taken;

/// Area of a NAND2_X1, in um2.
const NAND2_UM2: f64 = 0.798;

/// Least squares with a small penalty on coefficients (of columns of length one), so that terms that no point tells apart share.
fn solve(rows: &[(Vec<f64>, f64)], penalty: f64) -> Vec<f64> {
    let Some(n) = rows.first().map(|row| row.0.len()) else { return Vec::new() };
    // Columns of like size: numbers stay tame.
    let scale: Vec<f64> =
        (0..n).map(|at| rows.iter().map(|(terms, _)| terms[at].powi(2)).sum::<f64>().sqrt().max(1e-12)).collect();
    let mut matrix = vec![vec![0.0; n + 1]; n];
    for (terms, value) in rows {
        for i in 0..n {
            for j in 0..n {
                matrix[i][j] += terms[i] / scale[i] * terms[j] / scale[j];
            }
            matrix[i][n] += terms[i] / scale[i] * value;
        }
    }
    for (at, row) in matrix.iter_mut().enumerate() {
        row[at] += penalty;
    }
    for i in 0..n {
        let pivot = (i..n).max_by(|&a, &b| matrix[a][i].abs().total_cmp(&matrix[b][i].abs())).expect("a row");
        matrix.swap(i, pivot);
        for j in (0..n).filter(|&j| j != i) {
            let share = matrix[j][i] / matrix[i][i];
            let (from, to) = (matrix[i].clone(), &mut matrix[j]);
            to.iter_mut().zip(from).for_each(|(to, from)| *to -= share * from);
        }
    }
    (0..n).map(|i| matrix[i][n] / matrix[i][i] / scale[i]).collect()
}

/// A point of the grid and what it takes.
struct Example {
    key: String,
    block: Block<'static>,
    taken: Taken,
}

fn format(dtype: &str) -> Format {
    Format::of(match dtype {
        "DtF64" => DType::F64,
        "DtF32" => DType::F32,
        "DtTf32" => DType::Tf32,
        "DtF16" => DType::F16,
        "DtBf16" => DType::Bf16,
        "DtE4m3" => DType::Fp8E4m3,
        "DtE5m2" => DType::Fp8E5m2,
        "DtI64" => DType::I64,
        "DtI32" => DType::I32,
        _ => panic!("{dtype}"),
    })
}

/// The block that a recorded module is, if costs have one.
fn block(key: &str) -> Option<Block<'static>> {
    let (module, parameters) = key.split_once(',').expect("a module");
    let parameters: BTreeMap<&str, &str> = parameters.split(' ').filter_map(|text| text.split_once('=')).collect();
    let number = |name: &str| parameters[name].parse::<u64>().unwrap_or_else(|error| panic!("{key}: {name}: {error}"));
    let unit = |path| Block::Unit(path, format(parameters["Dtype"]), number("Stages"));
    let lanes = || -> &'static [(Datapath, Format)] {
        const F16: Format = Format { bits: 16, significand: 11, exponent: 5 };
        match parameters["Units"] {
            "44'h1000000" => &[(Datapath::Compare, Format::I64)],
            "44'h100" => &[(Datapath::Add, Format::F64)],
            "44'h10" => &[(Datapath::Add, F16)],
            other => panic!("{other}"),
        }
    };
    Some(match module {
        "ws_fp_add" => unit(Datapath::Add),
        "ws_fp_mul" => unit(Datapath::Multiply),
        "ws_fp_minmax" => unit(Datapath::Compare),
        "ws_int_unit" => unit(Datapath::Integer),
        "ws_reduce_tree" => Block::Tree { radix: number("Radix"), stages: number("UnitStages"), lanes: lanes() },
        "ws_ceng" => Block::Ceng {
            radix: number("Radix"),
            stages: number("UnitStages"),
            lanes: lanes(),
            slots: number("OperandSlots"),
        },
        "ws_coll_switch" => Block::Switch(SetSwitch {
            ports: number("Ports"),
            ids: number("Ids"),
            channels: 2 * number("Planes"),
            depth: number("Depth"),
            stages: number("UnitStages"),
            lanes: lanes(),
            slots: number("OperandSlots"),
            results: number("ResultSlots"),
        }),
        "ws_delay_fifo" => Block::Queue { width: number("Width"), depth: number("Depth") },
        "ws_pbv_tracker" => Block::Tracker { contexts: number("Contexts") },
        "ws_pbv_ce" => Block::PacketEngine { contexts: number("Contexts") },
        "ws_armed_exit" => Block::FrameExit { frames: number("Frames") },
        "ws_armed_entrance" => Block::FrameEntrance,
        "ws_unicast" => Block::Unicast { ports: number("Ports"), channels: number("Channels"), depth: number("Depth") },
        "ws_quad_unit" => Block::QuadUnit { stages: number("Stages") },
        "ws_armed_table" => Block::DescriptorTable { descriptors: number("Descriptors"), ports: number("MemoryPorts") },
        "ws_pbv_release" => Block::PacketGroups { contexts: number("Contexts") },
        // The module of the grid has no parameters for its engine and its plane.
        "ws_switch_whole" => Block::Whole {
            of: SetSwitch {
                ports: number("Ports"),
                ids: number("Ids"),
                channels: 2,
                depth: number("Depth"),
                stages: 3,
                lanes: lanes(),
                slots: 2,
                results: 8,
            },
            channels: number("Channels"),
        },
        // Recorded, but no formula has them.
        "ws_pbv_reduce" | "ws_pbv_take" | "ws_pbv_watch" => return None,
        _ => panic!("{module}"),
    })
}

fn examples() -> Vec<Example> {
    let all = ["units", "blocks"].into_iter().flat_map(recorded);
    all.filter_map(|(key, taken)| Some(Example { block: block(&key)?, key, taken })).collect()
}

/// From the inside out.
const ORDER: [&str; 18] = [
    "add",
    "multiply",
    "compare",
    "compare-integer",
    "integer",
    "queue",
    "tracker",
    "packet-engine",
    "frame-exit",
    "frame-entrance",
    "quad-unit",
    "descriptor-table",
    "packet-groups",
    "unicast",
    "tree",
    "ceng",
    "switch",
    "whole-switch",
];

fn actual(taken: &Taken, quantity: Quantity) -> f64 {
    match quantity {
        Quantity::Nand2 => taken.area / NAND2_UM2,
        Quantity::FlipFlops => taken.flip_flops as f64,
        Quantity::Period => taken.period,
    }
}

/// Rows of terms and values for a quantity: both over the value, so that errors are relative.
fn rows(example: &Example, quantity: Quantity, fit: &Fit) -> Vec<(Vec<f64>, f64)> {
    let (block, taken) = (&example.block, &example.taken);
    let relative =
        |terms: Vec<f64>, value: f64, of: f64| (terms.into_iter().map(|term| term / of).collect(), value / of);
    if let (Block::Unit(path, format, stages), Quantity::Period) = (*block, quantity) {
        let terms = stage_terms(path, format, stages);
        assert_eq!(terms.len(), taken.stages.len(), "{}", example.key);
        let stages = terms.into_iter().zip(&taken.stages);
        // What counts is the slowest stage: a fast one's error counts against it.
        let whole = actual(taken, quantity);
        stages.map(|(terms, stage)| relative(terms, stage.1, whole)).collect()
    } else {
        let value = actual(taken, quantity);
        let parts = fit.parts(block);
        let known = match quantity {
            Quantity::Nand2 => parts.nand2,
            Quantity::FlipFlops => parts.flip_flops,
            Quantity::Period if block.is_behind_its_parts() => parts.period,
            Quantity::Period => 0.0,
        };
        vec![relative(block.terms(quantity), value - known, value)]
    }
}

/// Fits one block's quantities to these examples.
fn fitted(name: &str, examples: &[&Example], fit: &mut Fit) {
    for quantity in Quantity::ALL {
        let rows: Vec<_> = examples.iter().flat_map(|example| rows(example, quantity, fit)).collect();
        // Delays are rough: what ABC makes of a point differs by a tenth from its neighbours.
        let unit = examples.iter().any(|example| matches!(example.block, Block::Unit(..)));
        let penalty = if unit && quantity == Quantity::Period { 1e-3 } else { 1e-6 };
        let fitted = Fitted { worst: None, coefficients: solve(&rows, penalty) };
        *fit.0.entry(name.to_owned()).or_default().of_mut(quantity) = fitted;
    }
    let of = fit.0.entry(name.to_owned()).or_default();
    (of.points, of.ranges) = (examples.len() as u64, BTreeMap::new());
    for (parameter, value) in examples.iter().flat_map(|example| example.block.parameters()) {
        let range = of.ranges.entry(parameter.to_owned()).or_insert([value; 2]);
        *range = [range[0].min(value), range[1].max(value)];
    }
}

/// The fit of everything.
fn fit(examples: &[Example]) -> Fit {
    let mut fit = Fit::default();
    for name in ORDER {
        let of: Vec<&Example> = examples.iter().filter(|example| example.block.name() == name).collect();
        // Some blocks of the grid may not be recorded yet, or not often enough.
        if of.first().is_some_and(|first| of.len() >= first.block.terms(Quantity::Nand2).len()) {
            fitted(name, &of, &mut fit);
        }
    }
    fit
}

/// Whether rows say something of each of these: they lie in what the rows span.
fn spanned(rows: &[Vec<f64>], vectors: &[Vec<f64>]) -> bool {
    let n = vectors[0].len();
    let scale: Vec<f64> =
        (0..n).map(|at| rows.iter().chain(vectors).map(|row| row[at].abs()).fold(1e-12, f64::max)).collect();
    let scaled = |row: &Vec<f64>| row.iter().zip(&scale).map(|(term, scale)| term / scale).collect::<Vec<f64>>();
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let rest = |row: &Vec<f64>, basis: &[Vec<f64>]| {
        let mut rest = scaled(row);
        // Twice: what rounding leaves of the first time goes.
        for direction in basis.iter().chain(basis) {
            let along: f64 = rest.iter().zip(direction).map(|(a, b)| a * b).sum();
            rest.iter_mut().zip(direction).for_each(|(rest, direction)| *rest -= along * direction);
        }
        rest
    };
    let length = |row: &[f64]| row.iter().map(|term| term * term).sum::<f64>().sqrt();
    for row in rows {
        let rest = rest(row, &basis);
        if length(&rest) > 1e-6 * length(&scaled(row)) {
            let by = length(&rest);
            basis.push(rest.into_iter().map(|term| term / by).collect());
        }
    }
    vectors.iter().all(|vector| length(&rest(vector, &basis)) <= 1e-6 * length(&scaled(vector)).max(1e-9))
}

/// For each point what a fit without it says, over what it takes, less one; by quantity. Nothing where the others do not determine it.
fn left_out(examples: &[Example], whole: &Fit) -> Vec<(String, &'static str, [Option<f64>; 3])> {
    let mut all = Vec::new();
    for (at, example) in examples.iter().enumerate() {
        let name = example.block.name();
        let mut fit = whole.clone();
        let others = examples.iter().enumerate().filter(|(other, of)| *other != at && of.block.name() == name);
        let others: Vec<&Example> = others.map(|(_, example)| example).collect();
        fitted(name, &others, &mut fit);
        let off = Quantity::ALL.map(|quantity| {
            let terms = |example: &Example| rows(example, quantity, whole).into_iter().map(|row| row.0);
            let known: Vec<Vec<f64>> = others.iter().flat_map(|example| terms(example)).collect();
            let determined = !known.is_empty() && spanned(&known, &terms(example).collect::<Vec<_>>());
            let actual = actual(&example.taken, quantity);
            // Nothing is nothing: what is combinational has no flip-flops.
            (determined && actual > 0.0).then(|| fit.quantity(&example.block, quantity) / actual - 1.0)
        });
        all.push((example.key.clone(), name, off));
    }
    all
}

/// The fit of everything, with the largest error on points that were left out.
fn complete(examples: &[Example]) -> Fit {
    let mut whole = fit(examples);
    for (key, name, off) in left_out(examples, &whole) {
        for (quantity, off) in Quantity::ALL.iter().zip(off) {
            let Some(off) = off else { continue };
            if std::env::var_os("WATERSHED_SYNTH").is_some() && off.abs() > 0.08 {
                println!("rtl: left out: {name}.{}: {:+.1} %: {key}", quantity.name(), off * 100.0);
            }
            let fitted = whole.0.get_mut(name).expect("a fit").of_mut(*quantity);
            let off = (off.abs() * 1000.0).round() / 10.0;
            fitted.worst = Some(fitted.worst.map_or(off, |worst| worst.max(off)));
        }
    }
    whole
}

/// Largest error on a point that was left out, in percent.
const MOST_PERCENT: f64 = 15.0;

fn written() -> std::path::PathBuf {
    crate::verilator::root().join("src/reader/cost/nangate45.toml")
}

/// The technology table with another fit at its end.
fn with(fit: &Fit) -> String {
    let text = std::fs::read_to_string(written()).unwrap();
    let (head, _) = text.split_once(FIT).expect("a place for the fit");
    format!("{head}{FIT}{}", fit.text())
}

fn writes() -> bool {
    std::env::var_os("WATERSHED_SYNTH").is_some_and(|how| how == "fit")
}

/// The book's page has the table of what the fit is off by.
#[test]
fn the_page_shows_what_the_fit_is_off_by() {
    let fit = if writes() { complete(&examples()) } else { Technology::nangate45().fit.clone() };
    let mut table =
        String::from("| block | points | parameters | NAND2 | flip-flops | period |\n|---|---|---|---|---|---|\n");
    for name in ORDER {
        let Some(block) = fit.0.get(name) else { continue };
        let worst = |quantity| {
            let worst = block.of(quantity).worst;
            worst.map_or_else(|| "none left out".to_owned(), |worst| format!("{worst} %"))
        };
        let [nand2, flip_flops, period] = Quantity::ALL.map(worst);
        let range = |(name, [low, high]): (&String, &[u64; 2])| {
            if low == high { format!("{name} {low}") } else { format!("{name} {low} to {high}") }
        };
        let ranges = block.ranges.iter().map(range).collect::<Vec<_>>().join(", ");
        let _ = writeln!(table, "| {name} | {} | {ranges} | {nand2} | {flip_flops} | {period} |", block.points);
    }
    let path = crate::verilator::root().join("src/guide/pages/cost.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once("<!-- fit -->\n").expect("a place for it");
    let (known, after) = rest.split_once("<!-- end of fit -->").expect("its end");
    let new = format!("\n{table}\n");
    if writes() {
        std::fs::write(&path, format!("{before}<!-- fit -->\n{new}<!-- end of fit -->{after}")).unwrap();
    } else {
        assert_eq!(known, new, "make synth writes it anew");
    }
}

/// The coefficients of the technology table are those of a new fit to what is recorded; points that are left out are met.
#[test]
fn costs_are_fitted_to_synthesis() {
    let fit = complete(&examples());
    if writes() {
        std::fs::write(written(), with(&fit)).unwrap();
    }
    let known_fit = Technology::read("nangate45.toml", &std::fs::read_to_string(written()).unwrap()).unwrap().fit;
    let names = |fit: &Fit| fit.0.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&known_fit), names(&fit), "make synth writes the fit anew");
    for (name, block) in &fit.0 {
        let known = &known_fit.0[name];
        assert_eq!((known.points, &known.ranges), (block.points, &block.ranges), "{name}: make synth writes it anew");
        for quantity in Quantity::ALL {
            let (known, new) = (known.of(quantity), block.of(quantity));
            let name = format!("{name}.{}", quantity.name());
            assert_eq!(known.coefficients.len(), new.coefficients.len(), "{name}");
            let size = new.coefficients.iter().fold(0.0, |most, number| f64::max(most, number.abs()));
            for (known, new) in known.coefficients.iter().zip(&new.coefficients) {
                assert!((known - new).abs() <= 1e-4 * size, "{name}: {known} {new}: make synth writes the fit anew");
            }
            let Some(worst) = new.worst else { continue };
            println!("rtl: fit of {name}: {} points, {worst} % at most on one that is left out", block.points);
            assert!(worst <= MOST_PERCENT, "{name}: {worst} % on a point that is left out");
            assert!(known.worst.is_some_and(|known| (known - worst).abs() <= 0.11), "{name}: {known:?} {worst}");
        }
    }
    for name in ["add", "multiply", "compare", "integer", "tree", "ceng", "switch", "queue", "tracker"] {
        assert!(fit.0[name].nand2.worst.is_some(), "{name}: no point can be left out");
    }
}
