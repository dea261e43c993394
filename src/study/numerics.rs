//! One vector, many orders and shapes: which bits each family's engines and software give, how far they are from the exact
//! value, and whether the order of the operands matters.
//!
//! Every cell is a run of the model: as many participants as there are operands, each with one of them, on a network of the
//! shape. An order says which participant has which operand.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;

use crate::plot::escape;
use watershed_arith::{DType, Op, Quad, Round};
use watershed_kernel::Rng;
use watershed_oracle::exact::{Exact, Meaning, read, round_to};
use watershed_oracle::quad::{rep_split, rep_value};
use watershed_scenario_interface::result::hex;
use watershed_scenario_interface::run::RunOptions;
use watershed_scenario_interface::{Engines, Problems, load_text};

/// Operands, at most: a run has as many end points.
pub const MOST: usize = 64;

/// The reduction to run, and in which orders.
#[derive(Debug, Clone)]
pub struct NumericsOptions {
    /// The operation.
    pub op: Op,
    /// Type of the operands.
    pub dtype: DType,
    /// Their bits.
    pub operands: Vec<u64>,
    /// Orders drawn at random, beside those that have names.
    pub orders: u32,
    /// What they are drawn with.
    pub seed: u64,
    /// Threads.
    pub jobs: usize,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// Bits of the result; none where there is no such job.
    pub bits: Option<String>,
    /// Distance from the exact value in units of the last place of the result, signed.
    pub error_ulps: Option<f64>,
}

/// One way of reducing: who does it, and on a network of which shape.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Who: a family's engines, or software and its algorithm.
    pub engine: String,
    /// The shape of the network.
    pub shape: String,
    /// Why there is no result, if there is none.
    pub refused: Option<String>,
    /// One for each order.
    pub cells: Vec<Cell>,
    /// Different results over all orders.
    pub distinct: usize,
    /// The greatest distance from the exact value, in units of the last place.
    pub worst_ulps: Option<f64>,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Numerics {
    /// The operation.
    pub op: String,
    /// Type of the operands.
    pub dtype: String,
    /// How many operands there are.
    pub operands: usize,
    /// The exact value, where there is one.
    pub exact: Option<String>,
    /// The exact value rounded once, to nearest.
    pub rounded: Option<String>,
    /// Names of the orders.
    pub orders: Vec<String>,
    /// Every way of reducing.
    pub rows: Vec<Row>,
}

/// The exact sum or product of numbers; `None` if there is a NaN or infinity, or for other operations.
pub fn exact(op: Op, dtype: DType, operands: &[u64]) -> Option<Exact> {
    // An exact product of very many numbers has millions of digits.
    let product = op == Op::Prod;
    if !(product && operands.len() <= 4096 || matches!(op, Op::Sum | Op::RepSum)) {
        return None;
    }
    let number = |lane: u64| match dtype {
        DType::I32 => Some(Exact { integer: i64::from(lane as i32).into(), scale: 0 }),
        DType::I64 => Some(Exact { integer: (lane as i64).into(), scale: 0 }),
        DType::U32 | DType::U64 => Some(Exact { integer: lane.into(), scale: 0 }),
        _ => match read(dtype, lane) {
            Meaning::Number { value, .. } => Some(value),
            _ => None,
        },
    };
    let mut operands = operands.iter().map(|&lane| number(lane));
    let first = operands.next()??;
    operands.try_fold(first, |sum, next| {
        let next = next?;
        Some(if product { sum.times(&next) } else { sum.plus(&next) })
    })
}

/// The error of a lane against the exact value, in units of the last place.
pub fn error_ulps(dtype: DType, lane: u64, exact: &Exact) -> Option<f64> {
    Some(number(dtype, lane)?.ulps_from(exact, dtype))
}

/// Who reduces: a name, the family, and the keys of the job.
const ENGINES: [(&str, &str, &str); 8] = [
    ("PIUMA", "piuma", ""),
    ("armed", "armed", ""),
    ("armed, reproducible", "armed", "op = \"repsum\"\n"),
    ("PBV, as they arrive", "pbv", "pbv.order = \"arrival\"\n"),
    ("PBV, in its order", "pbv", "pbv.order = \"pbv\"\n"),
    ("software, recursive doubling", "fabric", "software.algorithm = \"recursive-doubling\"\n"),
    ("software, ring", "fabric", "software.algorithm = \"ring\"\n"),
    ("software, binary tree", "fabric", "software.algorithm = \"binary-tree\"\n"),
];

/// Networks with this many end points: a name, and the table of the topology.
fn shapes(count: usize) -> [(&'static str, String); 3] {
    let side = (1..=count).find(|side| side * side >= count).unwrap_or(1);
    [
        ("mesh", format!("kind = \"mesh\"\nsize = [{side}, {}]\n", count.div_ceil(side))),
        ("chain", format!("kind = \"mesh\"\nsize = [{count}, 1]\n")),
        ("tree", format!("kind = \"tree\"\nbranching = [{side}, {side}]\n")),
    ]
}

/// A scenario in which participant k has operand `places[k]`.
fn scenario(ask: &NumericsOptions, engine: &(&str, &str, &str), topology: &str, places: &[usize]) -> String {
    let (_, family, keys) = engine;
    // Frames of the armed family have four words, and those of a reproducible sum one number.
    let elements = if keys.contains("repsum") { 1 } else { 4 };
    let digits = ask.dtype.bits() as usize / 4;
    let row = |place: &usize| {
        let word = format!("\"0x{:0digits$x}\"", ask.operands[*place]);
        format!("[{}]", vec![word; elements].join(", "))
    };
    let rows: Vec<String> = places.iter().map(row).collect();
    let op = if keys.contains("op = ") { String::new() } else { format!("op = \"{}\"\n", ask.op.name()) };
    let members: Vec<String> = (0..places.len()).map(|place| place.to_string()).collect();
    format!(
        "family = \"{family}\"\n[topology]\n{topology}[[job]]\nname = \"numerics\"\n{op}{keys}dtype = \"{}\"\nelements = {elements}\n\
         participants = [{}]\ndata = {{ values = [{}] }}\n",
        ask.dtype.name(),
        members.join(", "),
        rows.join(", ")
    )
}

/// Orders of the operands with their names.
fn orders(ask: &NumericsOptions) -> Vec<(String, Vec<usize>)> {
    let count = ask.operands.len();
    let given: Vec<usize> = (0..count).collect();
    // Values in the order of numbers: of floats that of their bits, the negative ones turned.
    let key = |place: &usize| {
        let (lane, bits) = (ask.operands[*place], ask.dtype.bits());
        let sign = 1 << (bits - 1);
        let signed = ask.dtype.is_float() || matches!(ask.dtype, DType::I32 | DType::I64);
        match signed {
            false => lane,
            true if ask.dtype.is_float() && lane & sign != 0 => !lane & ask.dtype.lane_mask(),
            true => lane ^ sign,
        }
    };
    let size = |place: &usize| ask.operands[*place] & (ask.dtype.lane_mask() >> 1);
    let sorted = |by: &dyn Fn(&usize) -> u64| {
        let mut places = given.clone();
        places.sort_by_key(by);
        places
    };
    let (ascending, small) = (sorted(&key), sorted(&size));
    let turned = |places: &[usize]| places.iter().rev().copied().collect::<Vec<usize>>();
    let mut all = vec![
        ("as given".to_owned(), given.clone()),
        ("reversed".to_owned(), turned(&given)),
        ("ascending".to_owned(), ascending.clone()),
        ("descending".to_owned(), turned(&ascending)),
    ];
    if ask.dtype.is_float() {
        all.push(("small first".to_owned(), small.clone()));
        all.push(("large first".to_owned(), turned(&small)));
    }
    let mut rng = Rng::new(ask.seed, 0x6e75_6d00);
    for number in 1..=ask.orders {
        let mut places = given.clone();
        rng.shuffle(&mut places);
        all.push((format!("random {number}"), places));
    }
    all
}

/// Bits of the result as they are printed, and the number that they are, if they are one; or why there is no result.
type ReductionOutcome = Result<(String, Option<Exact>), String>;

/// The number that a lane of a floating-point type is; `None` for infinities, NaN and integers.
fn number(dtype: DType, lane: u64) -> Option<Exact> {
    match dtype.is_float().then(|| read(dtype, lane)) {
        Some(Meaning::Number { value, .. }) => Some(value),
        _ => None,
    }
}

/// The number that the four words of a reproducible sum are: the collective has agreed on the place of its largest operand.
fn reproducible(ask: &NumericsOptions, words: &[String]) -> Option<Exact> {
    let m = ask.operands.iter().map(|&lane| rep_split(lane).m).max()?;
    let mut lanes = [0; 4];
    for (lane, word) in lanes.iter_mut().zip(words) {
        *lane = u64::from_str_radix(word, 16).ok()?;
    }
    rep_value(&Quad { lanes, m, ..Quad::default() })
}

fn reduce(engines: Engines, ask: &NumericsOptions, text: &str) -> ReductionOutcome {
    let told = |problems: &Problems| problems.list().first().map_or_else(String::new, |one| one.message().to_owned());
    let loaded =
        load_text(engines, "numerics", text, Path::new("."), "numerics").map_err(|problems| told(&problems))?;
    let result = loaded.run(&RunOptions::default()).map_err(|error| error.to_string())?;
    if let Some(check) = result.document.checks.iter().find(|check| !check.passed) {
        return Err(format!("check {} failed: {}", check.name, check.detail));
    }
    let armed = result.document.armed.iter().flat_map(|armed| &armed.reductions);
    if let Some(words) =
        armed.filter(|of| of.opcode.contains("repsum")).find_map(|of| Some(of.distinct.last()?.result.clone()))
    {
        return Ok((words.concat(), reproducible(ask, &words)));
    }
    let first = result.data.first().and_then(|data| data.rows.iter().next().and_then(|row| row.first().copied()));
    let lane = first.map(|word| word & ask.dtype.lane_mask()).ok_or("there is no result")?;
    Ok((hex(ask.dtype, &[lane]).concat(), number(ask.dtype, lane)))
}

/// Runs all of it.
///
/// # Errors
/// There are no operands, one only, or too many.
pub fn numerics(engines: Engines, ask: &NumericsOptions) -> Result<Numerics, String> {
    let count = ask.operands.len();
    if !(2..=MOST).contains(&count) {
        return Err(format!("{count} operands: from 2 to {MOST} can be reduced, each by a participant of its own"));
    }
    let exact = exact(ask.op, ask.dtype, &ask.operands);
    let orders = orders(ask);
    let ways: Vec<(&(&str, &str, &str), &'static str, String)> = ENGINES
        .iter()
        .filter(|(_, _, keys)| !keys.contains("repsum") || ask.op == Op::Sum && ask.dtype == DType::F64)
        .flat_map(|engine| shapes(count).map(|(shape, topology)| (engine, shape, topology)))
        .collect();
    let asked = ways.len() * orders.len();
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<ReductionOutcome>>> = Mutex::new(vec![None; asked]);
    std::thread::scope(|scope| {
        for _ in 0..ask.jobs.clamp(1, asked) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= asked {
                        return;
                    }
                    let (way, order) = (&ways[at / orders.len()], &orders[at % orders.len()]);
                    // What one order is refused for, all are.
                    let refused = |done: &Vec<Option<ReductionOutcome>>| {
                        done.get(at - at % orders.len()).cloned().flatten().filter(Result::is_err)
                    };
                    let known = done.lock().ok().and_then(|done| refused(&done));
                    let found = known.unwrap_or_else(|| reduce(engines, ask, &scenario(ask, way.0, &way.2, &order.1)));
                    if let Ok(mut done) = done.lock() {
                        done[at] = Some(found);
                    }
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_default();
    let rows = ways.iter().zip(done.chunks(orders.len())).map(|((engine, shape, _), found)| {
        let cells: Vec<Cell> = found
            .iter()
            .map(|found| {
                let found = found.as_ref().and_then(|found| found.as_ref().ok());
                let ulps = |value: &Exact| Some(value.ulps_from(exact.as_ref()?, ask.dtype));
                Cell {
                    bits: found.map(|(bits, _)| bits.clone()),
                    error_ulps: found.and_then(|(_, value)| value.as_ref()).and_then(ulps),
                }
            })
            .collect();
        let worst = cells.iter().filter_map(|cell| cell.error_ulps).map(f64::abs).reduce(f64::max);
        Row {
            engine: engine.0.to_owned(),
            shape: (*shape).to_owned(),
            refused: found.iter().flatten().find_map(|found| found.as_ref().err().cloned()),
            distinct: cells.iter().filter_map(|cell| cell.bits.as_ref()).collect::<BTreeSet<_>>().len(),
            worst_ulps: worst,
            cells,
        }
    });
    let rounded = exact.as_ref().filter(|_| ask.dtype.is_float());
    let rounded = rounded.map(|exact| round_to(ask.dtype, Round::NearestEven, exact, false).0);
    Ok(Numerics {
        op: ask.op.name().to_owned(),
        dtype: ask.dtype.name().to_owned(),
        operands: count,
        exact: exact.as_ref().map(|exact| exact.decimal(40)),
        rounded: rounded.map(|lane| hex(ask.dtype, &[lane]).concat()),
        orders: orders.into_iter().map(|(name, _)| name).collect(),
        rows: rows.collect(),
    })
}

/// An error for people.
fn ulps_text(ulps: f64) -> String {
    if ulps.abs() < 1e6 { format!("{ulps:.3}") } else { format!("{ulps:.2e}") }
}

impl Numerics {
    /// A line for each way of reducing.
    pub fn text(&self) -> String {
        let mut out =
            format!("{} of {} {} operands in {} orders\n", self.op, self.operands, self.dtype, self.orders.len());
        if let Some(exact) = &self.exact {
            let _ = writeln!(out, "exact value    {exact}");
        }
        if let Some(rounded) = &self.rounded {
            let _ = writeln!(out, "rounded once   {rounded}");
        }
        let wide = self.rows.iter().map(|row| row.engine.chars().count()).max().unwrap_or(0);
        let _ = writeln!(out, "\n{:wide$}  shape  results  order matters  worst (ulp)  as given", "engine");
        for row in &self.rows {
            let _ = write!(out, "{:wide$}  {:5}  ", row.engine, row.shape);
            if let Some(refused) = &row.refused {
                let _ = writeln!(out, "{refused}");
                continue;
            }
            let matters = if row.distinct > 1 { "yes" } else { "no" };
            let worst = row.worst_ulps.map_or_else(|| "-".to_owned(), ulps_text);
            let given = row.cells.first().and_then(|cell| cell.bits.clone()).unwrap_or_default();
            let _ = writeln!(out, "{:>7}  {matters:>13}  {worst:>11}  {given}", row.distinct);
        }
        out
    }

    /// A line for each run.
    pub fn csv(&self) -> String {
        let mut out = String::from("engine,shape,order,bits,error_ulps\n");
        for row in self.rows.iter().filter(|row| row.refused.is_none()) {
            for (order, cell) in self.orders.iter().zip(&row.cells) {
                let ulps = cell.error_ulps.map_or_else(String::new, |ulps| format!("{ulps}"));
                let bits = cell.bits.as_deref().unwrap_or_default();
                let _ = writeln!(out, "\"{}\",{},{order},{bits},{ulps}", row.engine, row.shape);
            }
        }
        out
    }

    /// A heat map: a row for each way of reducing, a column for each order, the colour the distance from the exact value, and
    /// a letter for each different result of a row.
    pub fn svg(&self) -> String {
        const CELL: usize = 26;
        const LEFT: usize = 268;
        const TOP: usize = 132;
        let rows: Vec<&Row> = self.rows.iter().filter(|row| row.refused.is_none()).collect();
        let most = rows.iter().filter_map(|row| row.worst_ulps).fold(0.0, f64::max);
        let (width, height) = (LEFT + CELL * self.orders.len() + 20, TOP + CELL * rows.len() + 44);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"system-ui, sans-serif\" font-size=\"12\">\n<style>text {{ fill: #1c2430; }} \
             @media (prefers-color-scheme: dark) {{ text {{ fill: #e4e9ef; }} text.in {{ fill: #1c2430; }} }}</style>\n\
             <text x=\"10\" y=\"20\" font-weight=\"bold\">{}: distance from the exact value (ulp)</text>\n",
            escape(&format!("{} of {} {} operands", self.op, self.operands, self.dtype))
        );
        for (at, order) in self.orders.iter().enumerate() {
            let x = LEFT + CELL * at + CELL / 2 + 4;
            let _ =
                writeln!(out, "<text transform=\"translate({x} {}) rotate(-60)\">{}</text>", TOP - 8, escape(order));
        }
        for (at, row) in rows.iter().enumerate() {
            let y = TOP + CELL * at;
            let name = escape(&format!("{}, {}", row.engine, row.shape));
            let _ = writeln!(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{name}</text>", LEFT - 8, y + 17);
            let mut results: Vec<&str> = Vec::new();
            for (column, cell) in row.cells.iter().enumerate() {
                let bits = cell.bits.as_deref().unwrap_or_default();
                let number = results.iter().position(|known| *known == bits).unwrap_or_else(|| {
                    results.push(bits);
                    results.len() - 1
                });
                let letter = char::from(b'a' + (number % 26) as u8);
                let ulps = cell.error_ulps.map_or(0.0, f64::abs);
                // On a scale of logarithms: half an ulp is right, and errors may be of any size.
                let share = if most > 0.0 { (1.0 + ulps).ln() / (1.0 + most).ln() } else { 0.0 };
                let [red, green, blue] =
                    [(232.0, 194.0), (240.0, 65.0), (248.0, 12.0)].map(|(low, high)| low + (high - low) * share);
                let x = LEFT + CELL * column;
                let error = cell.error_ulps.map_or_else(String::new, |ulps| format!(", {} ulp", ulps_text(ulps)));
                let _ = writeln!(
                    out,
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" fill=\"rgb({red:.0} {green:.0} {blue:.0})\"><title>{}: {bits}{error}</title></rect>\
                     <text class=\"in\" x=\"{}\" y=\"{}\" text-anchor=\"middle\" pointer-events=\"none\">{letter}</text>",
                    CELL - 1,
                    CELL - 1,
                    escape(&self.orders[column]),
                    x + CELL / 2,
                    y + 17
                );
            }
        }
        let _ = writeln!(
            out,
            "<text x=\"10\" y=\"{}\">Light: exact. Dark: {} ulp, the worst. Equal letters in a row are equal bits.</text>\n</svg>",
            height - 14,
            ulps_text(most)
        );
        out
    }
}
