//! `watershed reduce`: many operands to one, in a given order, with the exact value beside it.
//!
//! | file | holds |
//! |---|---|
//! | `arguments` | what is asked for: flags, orders; how it ends |
//! | `input` | operands as they are given |
//! | `engines` | single operands through units, trees and engines |
//! | `frames` | whole contributions, as vectors of frames |

use std::collections::BTreeMap;
use std::fmt::Write as _;

pub(super) use arguments::Arguments;
use arguments::{Failure, Family, OperandRequest, Order, Outcome, check_names, order, places};
use engines::{mode, reduce};
use frames::{contributions, is_of_contributions};
pub(super) use input::{parse as operands_of, read as read_text};
use input::{parse, read_input};

use super::alu::{lane, meaning, pattern, quad_text};
use super::{Exit, print, print_error};
use watershed_arith::{Flags, Op, ResultCode, Round, repsum};
use watershed_kernel::Rng;
use watershed_oracle::exact::{Exact, round_to};
use watershed_oracle::ulp_distance;
use watershed_study::numerics::{error_ulps as error, exact};

mod arguments;
mod engines;
mod frames;
mod input;

pub(super) fn main(arguments: &Arguments) -> Exit {
    match execute(arguments) {
        Ok(text) => {
            print(&text);
            Exit::Fine
        }
        Err(Failure::Bad(message)) => {
            print_error(&format!("error: {message}"));
            Exit::Bad
        }
        Err(Failure::Engine(message)) => {
            print_error(&format!("error: {message}"));
            Exit::Failed
        }
    }
}

fn execute(arguments: &Arguments) -> Result<String, Failure> {
    let input = if arguments.operands.is_empty() { Some(read_input(arguments)?) } else { None };
    let (name, text) = input.as_ref().map_or(("", ""), |(name, text)| (name, text));
    if text.trim_start().starts_with('{') && is_of_contributions(text).map_err(|error| format!("{name}: {error}"))? {
        return contributions(arguments, name, text);
    }
    let asked = OperandRequest::new(arguments)?;
    if asked.family == Some(Family::Armed) {
        let why = "the engine of the armed family takes frames: give whole contributions as JSON with --input";
        return Err(why.to_owned().into());
    }
    check_names(&asked)?;
    let OperandRequest { op, dtype, .. } = asked;
    let operands = if input.is_some() {
        parse(dtype, text).map_err(|error| format!("{name}: {error}"))?
    } else {
        arguments.operands.iter().map(|text| lane(dtype, text)).collect::<Result<_, _>>()?
    };
    if operands.is_empty() {
        return Err("no operands".to_owned().into());
    }
    let order = order(&asked.order, operands.len())?;
    let places = places(&order, operands.len());
    let arranged: Vec<u64> = places.iter().map(|&k| operands[k]).collect();

    if let Some(count) = asked.all_orders {
        return many(&asked, &operands, &order, count);
    }
    let outcome = reduce(&asked, &order, &places, &arranged)?;
    let exact = exact(op, dtype, &operands);
    Ok(if asked.json {
        json(&asked, &outcome, exact.as_ref(), operands.len())
    } else {
        self::text(&asked, &outcome, exact.as_ref(), operands.len())
    })
}

// ------------------------------------------------------------------------------------------- whole contributions

// ----------------------------------------------------------------------------------------------- single operands

/// The value of an outcome as a lane; a frame of a locator has none.
fn value(arguments: &OperandRequest, outcome: &Outcome) -> Option<u64> {
    match outcome {
        Outcome::Lane(lane, _) => Some(*lane),
        Outcome::Frame(quad) if arguments.op == Op::RepSum => {
            Some(repsum::join(mode(arguments), quad.lanes, quad.m).bits)
        }
        Outcome::Frame(_) => None,
    }
}

fn text(arguments: &OperandRequest, outcome: &Outcome, exact: Option<&Exact>, count: usize) -> String {
    let OperandRequest { op, dtype, round, .. } = *arguments;
    let mut text = format!("{op} of {count} {dtype} operands, {round}, order {}\n", arguments.order);
    match outcome {
        Outcome::Lane(lane, flags) => {
            let _ = writeln!(text, "  result  {}  {}", pattern(dtype, *lane), meaning(dtype, *lane));
            let _ = writeln!(text, "  flags   {flags}");
        }
        Outcome::Frame(quad) => text += &quad_text(op, dtype, mode(arguments), quad),
    }
    if let Some(exact) = exact {
        let _ = writeln!(text, "  exact   {}", exact.decimal(40));
        if let Some(error) = value(arguments, outcome).and_then(|lane| error(dtype, lane, exact)) {
            let _ = writeln!(text, "  error   {error:.3} ulp");
        }
    }
    text
}

fn json(arguments: &OperandRequest, outcome: &Outcome, exact: Option<&Exact>, count: usize) -> String {
    let OperandRequest { op, dtype, round, .. } = *arguments;
    let mut document = serde_json::json!({
        "op": op.name(), "type": dtype.name(), "round": round.name(), "order": arguments.order, "operands": count,
    });
    let lane = value(arguments, outcome);
    if let Some(lane) = lane {
        document["result"] = pattern(dtype, lane).into();
        document["value"] = meaning(dtype, lane).into();
    }
    match outcome {
        Outcome::Lane(_, flags) => document["flags"] = flags.names().collect::<Vec<_>>().into(),
        Outcome::Frame(quad) => {
            document["lanes"] = quad.lanes.iter().map(|word| format!("{word:016x}")).collect::<Vec<_>>().into();
            document["rc"] = quad.code.number().into();
            document["m"] = quad.m.into();
            document["oflow_id"] = quad.oflow_id.into();
        }
    }
    if let Some(exact) = exact {
        document["exact"] = exact.decimal(40).into();
        if let Some(error) = lane.and_then(|lane| error(dtype, lane, exact)) {
            document["error_ulps"] = error.into();
        }
    }
    serde_json::to_string_pretty(&document).unwrap_or_default()
}

/// What tells results apart: value, words and M. Codes and flags may differ between equal results; all are kept.
type ResultKey = (Option<u64>, [u64; 4], i8);

/// Distinct results of orders drawn at random.
fn many(arguments: &OperandRequest, operands: &[u64], order: &Order, count: u32) -> Result<String, Failure> {
    let OperandRequest { op, dtype, seed, .. } = *arguments;
    let mut rng = Rng::new(seed, 0);
    let mut places = places(order, operands.len());
    let mut found: BTreeMap<ResultKey, (u32, Flags, ResultCode)> = BTreeMap::new();
    for _ in 0..count {
        rng.shuffle(&mut places);
        let arranged: Vec<u64> = places.iter().map(|&k| operands[k]).collect();
        // In order of arrival an engine's ports keep their operands; only when each comes is drawn.
        let outcome = if arguments.family == Some(Family::Piuma) && *order == Order::Arrival {
            reduce(arguments, order, &places, operands)?
        } else {
            reduce(arguments, order, &places, &arranged)?
        };
        let key = match &outcome {
            Outcome::Lane(lane, _) => (Some(*lane), [0; 4], 0),
            Outcome::Frame(quad) => (value(arguments, &outcome), quad.lanes, quad.m),
        };
        let (flags, code) = match outcome {
            Outcome::Lane(_, flags) => (flags, ResultCode::Ok),
            Outcome::Frame(quad) => (Flags::NONE, quad.code),
        };
        let entry = found.entry(key).or_insert((0, Flags::NONE, ResultCode::Ok));
        entry.0 += 1;
        entry.1 |= flags;
        entry.2 = entry.2.climb(code);
    }
    let exact = exact(op, dtype, operands);
    let nearest =
        exact.as_ref().filter(|_| dtype.is_float()).map(|exact| round_to(dtype, Round::NearestEven, exact, false).0);
    let mut rows: Vec<_> = found.into_iter().collect();
    rows.sort_by(|a, b| b.1.0.cmp(&a.1.0).then(a.0.cmp(&b.0)));
    if arguments.json {
        let list: Vec<serde_json::Value> = rows
            .iter()
            .map(|((lane, words, m), (times, flags, code))| {
                let mut row = serde_json::json!({ "count": times });
                if let Some(lane) = lane {
                    row["result"] = pattern(dtype, *lane).into();
                    row["value"] = meaning(dtype, *lane).into();
                    row["error_ulps"] = exact.as_ref().and_then(|exact| error(dtype, *lane, exact)).into();
                }
                if op.is_wide() {
                    row["lanes"] = words.iter().map(|word| format!("{word:016x}")).collect::<Vec<_>>().into();
                    row["m"] = (*m).into();
                    row["rc"] = code.number().into();
                } else {
                    row["flags"] = flags.names().collect::<Vec<_>>().into();
                }
                row
            })
            .collect();
        let document = serde_json::json!({
            "op": op.name(), "type": dtype.name(), "orders": count, "seed": seed, "distinct": list.len(),
            "exact": exact.as_ref().map(|exact| exact.decimal(40)), "results": list,
        });
        return Ok(serde_json::to_string_pretty(&document).unwrap_or_default());
    }
    let noun = if rows.len() == 1 { "result" } else { "distinct results" };
    let mut text =
        format!("{op} of {} {dtype} operands, {count} orders (seed {seed}): {} {noun}\n", operands.len(), rows.len());
    if let Some(exact) = &exact {
        let _ = writeln!(text, "  exact   {}", exact.decimal(40));
    }
    text += "   count  result, value, error, distance to the correctly rounded value\n";
    for ((lane, words, _), (times, flags, code)) in &rows {
        let _ = write!(text, "  {times:>6}  ");
        if let Some(lane) = lane {
            let _ = write!(text, "{}  {}", pattern(dtype, *lane), meaning(dtype, *lane));
            if let Some(error) = exact.as_ref().and_then(|exact| error(dtype, *lane, exact)) {
                let _ = write!(text, "  {error:+.3} ulp");
            }
            if let Some(distance) = nearest.and_then(|nearest| ulp_distance(dtype, *lane, nearest)) {
                let _ = write!(text, "  {distance} off");
            }
        } else {
            let _ = write!(text, "{words:x?}");
        }
        let _ = if op.is_wide() { writeln!(text, "  {code}") } else { writeln!(text, "  {flags}") };
    }
    Ok(text)
}
