//! `watershed reduce`: many operands to one, in a given order, with the exact value beside it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Deserialize;

use super::alu::{lane, leaf, meaning, pattern, quad_text};
use super::contributions::{self, Request};
use super::{Exit, complain, print};
use watershed_arith::quad::OPCODES;
use watershed_arith::{
    Contribution, DType, Flags, Mode, NanPolicy, Op, Opcode, Operands, Quad, QuadUnit, ResultCode, Round, SignalPolicy,
    TreeCfg, TreeIn, Unit, repsum, tree,
};
use watershed_armed::{self as armed, EngineCfg};
use watershed_fabric::routing::{Routes, Routing};
use watershed_fabric::topology::Mesh;
use watershed_fabric::{Flit, Join, JoinCx, Queued, Tag};
use watershed_kernel::{Cycle, Rng};
use watershed_oracle::exact::{Exact, Meaning, read, round_to};
use watershed_oracle::ulp_distance;
use watershed_pbv as pbv;
use watershed_piuma::{Ceng, CengCfg, OpSelect, REQUEST, RESPONSE, Registers, RegistersCfg};
use watershed_scenario::names::{self, Named};
use watershed_scenario::number;

/// Reduce many operands to one and compare with the exact value.
#[derive(Debug, Args)]
#[command(after_help = "\
Operands are bit patterns in hexadecimal: on the command line, or in a file as JSON ([\"3f800000\", 0.1, …] or
{\"operands\": […]}; a JSON number is rounded to the type) or as text with one or more in a line and comments after a #.

Without --family the bare arithmetic is used: `tree` joins operands level by level as the ports of reduction trees do, a
list or `arrival` takes them one after another. With --family piuma the collective engine's own clock is driven: `tree` has
all operands there at once, `arrival` brings them one a cycle, and a list says which operand takes which port.

The input may also be whole contributions of four words, with an opcode's number or name:
  {\"op\": 40, \"contributions\": [{\"lanes\": [\"3ff0000000000000\", \"0\", \"0\", \"0\"], \"count\": 1, \"rc\": 0, \"m\": 0,
  \"oflow_id\": 0}, …]}
They say what is to be done, so --op and --type are left out; what is printed is {\"lanes\": […], \"rc\": …, \"count\": …,
\"m\": …, \"oflow_id\": …}. --family piuma takes the four words as four elements of one stream through the collective
engine, back to back, and the flags of the result make the result code.

Examples:
  watershed reduce --op sum --type f32 3f800000 33800000 33800000
  watershed reduce --op sum --type f32 --order 2,1,0 3f800000 33800000 33800000
  watershed reduce --op sum --type f64 --order arrival --all-orders 1000 --input operands.hex
  watershed reduce --op repsum --type f64 --input operands.json
  watershed reduce --op max --type f64 --family piuma --input operands.hex
  watershed reduce --family piuma --input contributions.json

Exit status:
  0  the reduction was made
  1  an engine reported a fault
  2  the command line or the input is wrong")]
pub(super) struct Arguments {
    /// Operation: sum, prod, min, max, and, or, xor, nand, nor, xnor, minnum, maxnum, minmaxloc, minmaxnumloc or repsum
    #[arg(long, value_name = "OP")]
    op: Option<Op>,
    /// Type: i32, u32, i64, u64, f16, bf16, tf32, f32, f64, fp8_e4m3 or fp8_e5m2
    #[arg(long = "type", value_name = "TYPE")]
    dtype: Option<DType>,
    /// Rounding mode: nearest-even, toward-zero, up or down
    #[arg(long, value_name = "MODE", default_value = "nearest-even")]
    round: Round,
    /// Flush denormal sums and products to zero
    #[arg(long)]
    flush_to_zero: bool,
    /// What a NaN result looks like: default, or propagate: an operand's, quieted, a signalling one's first
    #[arg(long, value_name = "POLICY", default_value = "default")]
    nan: NanPolicy,
    /// What a signalling NaN does in minnum and its kin: associative or ieee
    #[arg(long, value_name = "POLICY", default_value = "associative")]
    signal: SignalPolicy,
    /// Order: tree, arrival, or the indices of all operands with commas between them
    #[arg(long, value_name = "ORDER", default_value = "tree")]
    order: String,
    /// Ports of a reduction tree or engine
    #[arg(long, value_name = "PORTS", default_value_t = 10, value_parser = clap::value_parser!(u8).range(2..=63))]
    radix: u8,
    /// Drive the engine of this family instead of the bare arithmetic
    #[arg(long, value_name = "FAMILY")]
    family: Option<Family>,
    /// Read the operands from this file, or from the standard input for -
    #[arg(long, value_name = "FILE", conflicts_with = "operands")]
    input: Option<PathBuf>,
    /// Try so many orders drawn at random and list the distinct results
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    all_orders: Option<u32>,
    /// Draw the orders with this seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Operands: bit patterns in hexadecimal
    #[arg(value_name = "OPERAND")]
    operands: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Family {
    /// The collective engine of a PIUMA switch
    Piuma,
    /// The reduction engine with dynamic arming
    Armed,
    /// The engine of the PBV family
    Pbv,
}

impl Family {
    /// Its engine in a sentence.
    const fn engine(self) -> &'static str {
        match self {
            Self::Piuma => "the PIUMA engine",
            Self::Armed => "the armed engine",
            Self::Pbv => "the PBV engine",
        }
    }
}

/// What is asked of single operands.
#[derive(Debug)]
struct Asked {
    op: Op,
    dtype: DType,
    round: Round,
    flush_to_zero: bool,
    nan: NanPolicy,
    signal: SignalPolicy,
    order: String,
    radix: u8,
    family: Option<Family>,
    all_orders: Option<u32>,
    seed: u64,
    json: bool,
}

impl Asked {
    fn new(arguments: &Arguments) -> Result<Self, String> {
        let Arguments { round, flush_to_zero, nan, signal, radix, family, all_orders, seed, json, .. } = *arguments;
        let missing = |what| format!("{what} is missing; only whole contributions say themselves what is to be done");
        let op = arguments.op.ok_or_else(|| missing("--op"))?;
        let dtype = arguments.dtype.ok_or_else(|| missing("--type"))?;
        let order = arguments.order.clone();
        Ok(Self { op, dtype, round, flush_to_zero, nan, signal, order, radix, family, all_orders, seed, json })
    }
}

/// What a reduction gives: a lane with flags, or a frame's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Lane(u64, Flags),
    Frame(Quad),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Order {
    Tree,
    Arrival,
    List(Vec<usize>),
}

/// Why nothing came of it.
enum Failure {
    Bad(String),
    Engine(String),
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Bad(message)
    }
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    match execute(arguments) {
        Ok(text) => {
            print(&text);
            Exit::Fine
        }
        Err(Failure::Bad(message)) => {
            complain(&format!("error: {message}"));
            Exit::Bad
        }
        Err(Failure::Engine(message)) => {
            complain(&format!("error: {message}"));
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
    let asked = Asked::new(arguments)?;
    if asked.family == Some(Family::Armed) {
        let why = "the engine of the armed family takes frames: give whole contributions as JSON with --input";
        return Err(why.to_owned().into());
    }
    check_names(&asked)?;
    let Asked { op, dtype, .. } = asked;
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

fn check_names(arguments: &Asked) -> Result<(), String> {
    let Asked { op, dtype, family, .. } = *arguments;
    let mode = Mode::default();
    if op == Op::Barrier {
        return Err("a barrier has no operands".to_owned());
    }
    if op.is_wide() && QuadUnit::new(op, dtype, mode).is_none() {
        return Err(format!("{op} does not exist for {dtype}"));
    }
    if let Some(family @ (Family::Piuma | Family::Pbv)) = family {
        let engine = family.engine();
        if Op::from_name(op.name()).is_none() {
            return Err(format!("{engine} has no {op}; it has {}", names::one_of(<Op as Named>::names())));
        }
        if DType::from_name(dtype.name()).is_none() {
            let legal = names::one_of(<DType as Named>::names());
            return Err(format!("{engine} has no {dtype}; it has {legal}"));
        }
        names::supports(op, dtype).map_err(|why| format!("{op} {why}, not {dtype}"))?;
    }
    Ok(())
}

fn order(text: &str, count: usize) -> Result<Order, String> {
    match text {
        "tree" => return Ok(Order::Tree),
        "arrival" => return Ok(Order::Arrival),
        _ => {}
    }
    let bad = || format!("an order is tree, arrival or a list such as 0,2,1, not `{text}`");
    let list: Vec<usize> =
        text.split(',').map(|index| index.trim().parse()).collect::<Result<_, _>>().map_err(|_| bad())?;
    let mut seen = vec![false; count];
    for &index in &list {
        match seen.get_mut(index) {
            Some(seen @ false) => *seen = true,
            Some(_) => return Err(format!("operand {index} stands twice in the order")),
            None => return Err(format!("there is no operand {index}: they are numbered 0 to {}", count - 1)),
        }
    }
    match seen.iter().position(|seen| !seen) {
        Some(index) => Err(format!("operand {index} is missing in the order")),
        None => Ok(Order::List(list)),
    }
}

/// Which operand stands at each place.
fn places(order: &Order, count: usize) -> Vec<usize> {
    match order {
        Order::List(list) => list.clone(),
        _ => (0..count).collect(),
    }
}

/// The name of the input and its text, without a byte order mark and blanks around it.
fn read_input(arguments: &Arguments) -> Result<(String, String), String> {
    let path = arguments.input.clone().unwrap_or_else(|| PathBuf::from("-"));
    let name = if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| ())
    } else {
        std::fs::read(&path).map(|read| bytes = read)
    };
    read.map_err(|error| format!("{name}: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = bytes_lines(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        format!("{name}: line {line} is no UTF-8 text")
    })?;
    Ok((name, text.trim_start_matches('\u{feff}').to_owned()))
}

fn bytes_lines(bytes: &[u8]) -> usize {
    bytes.split(|&byte| byte == b'\n').count()
}

fn parse(dtype: DType, text: &str) -> Result<Vec<u64>, String> {
    if text.trim_start().starts_with(['[', '{']) {
        return json_operands(dtype, text);
    }
    let mut operands = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        for word in line.split([' ', '\t', ',', '\r']).filter(|word| !word.is_empty()) {
            operands.push(lane(dtype, word).map_err(|error| format!("line {}: {error}", number + 1))?);
        }
    }
    Ok(operands)
}

/// A list, or an object with nothing but the list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OperandsFile {
    operands: Vec<serde_json::Value>,
}

/// Operands in JSON: bit patterns in strings, or numbers, which are read as they are written and rounded once.
fn json_operands(dtype: DType, text: &str) -> Result<Vec<u64>, String> {
    let json = |error: serde_json::Error| error.to_string();
    let list = if text.trim_start().starts_with('[') {
        serde_json::from_str::<Vec<serde_json::Value>>(text).map_err(json)?
    } else {
        serde_json::from_str::<OperandsFile>(text).map_err(json)?.operands
    };
    // The list is sound JSON. If its elements are plain, they stand between its brackets with commas between them.
    if let Some(k) = list.iter().position(|value| !value.is_string() && !value.is_number()) {
        return Err(format!("operand {k}: {} is no bit pattern in a string and no number", list[k]));
    }
    let start = text.find('[').map_or(0, |at| at + 1);
    let mut rest = &text[start..];
    let mut operands = Vec::with_capacity(list.len());
    for (k, value) in list.iter().enumerate() {
        rest = rest.trim_start_matches(|c: char| c == ',' || c.is_ascii_whitespace());
        let at = text.len() - rest.len();
        let end = match rest.strip_prefix('"') {
            Some(inside) => closing_quote(inside) + 2,
            None => rest.find(|c: char| ",]".contains(c) || c.is_ascii_whitespace()).unwrap_or(rest.len()),
        };
        let written = &rest[..end];
        rest = &rest[end..];
        let read = match value.as_str() {
            Some(pattern) => lane(dtype, pattern),
            None => {
                number::parse(written, names::layout(dtype)).map_err(|why| format!("{written} is no {dtype}: {why}"))
            }
        };
        operands.push(read.map_err(|error| {
            let line = bytes_lines(&text.as_bytes()[..at]);
            format!("operand {k} in line {line}: {error}")
        })?);
    }
    Ok(operands)
}

/// Where the string ends that starts before this text.
fn closing_quote(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    });
    end.unwrap_or(text.len())
}

// ------------------------------------------------------------------------------------------- whole contributions

/// Whether an object is of whole contributions and not a list of operands.
fn is_of_contributions(text: &str) -> Result<bool, String> {
    #[derive(Deserialize)]
    struct Keys {
        op: Option<serde::de::IgnoredAny>,
        contributions: Option<serde::de::IgnoredAny>,
    }
    let keys: Keys = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Ok(keys.contributions.is_some() || keys.op.is_some())
}

fn contributions(arguments: &Arguments, name: &str, text: &str) -> Result<String, Failure> {
    let request = contributions::parse(text).map_err(|error| format!("{name}: {error}"))?;
    if arguments.op.is_some() || arguments.dtype.is_some() {
        return Err("whole contributions say what is to be done: leave out --op and --type".to_owned().into());
    }
    if arguments.all_orders.is_some() {
        return Err("--all-orders is for single operands, not for whole contributions".to_owned().into());
    }
    let order = order(&arguments.order, request.contributions.len())?;
    let places = places(&order, request.contributions.len());
    let arranged: Vec<Contribution> = places.iter().map(|&k| request.contributions[k]).collect();
    let request = Request { contributions: arranged, ..request };
    let configured = Mode { nan: arguments.nan, signal: arguments.signal, ..Mode::default() };
    let quad = match arguments.family {
        None => {
            let unit = request.opcode.unit(configured);
            let quads = request.contributions.iter().map(|contribution| contribution.quad).collect();
            join_all(quads, order == Order::Tree, |a, b| unit.evaluate(a, b))
        }
        Some(Family::Piuma) => piuma_frames(&request, configured, arguments.radix)?,
        Some(Family::Armed) => return armed_frames(&request, configured),
        Some(Family::Pbv) => pbv_frames(&request, configured, order == Order::Tree)?,
    };
    let count = request.contributions.iter().map(|contribution| u64::from(contribution.count)).sum::<u64>();
    let count = u32::try_from(count).ok().filter(|&count| count <= Contribution::MAX_COUNT);
    let count = count.ok_or_else(|| {
        Failure::Bad(format!("{name}: the counts add up to more than the {} a frame can say", Contribution::MAX_COUNT))
    })?;
    Ok(format!("{}\n", contributions::print(&Contribution { quad, count })))
}

/// Frames through an engine in the wire, armed for as many contributions as their counts come to; it counts itself.
fn armed_frames(request: &Request, mode: Mode) -> Result<String, Failure> {
    let frames: Vec<armed::Contribution> = request
        .contributions
        .iter()
        .map(|Contribution { quad, count }| {
            let with = armed::Contribution::of(quad.lanes);
            armed::Contribution { count: *count, rc: quad.code, m: quad.m, oflow_id: quad.oflow_id, ..with }
        })
        .collect();
    let total: u64 = frames.iter().map(|frame| u64::from(frame.count)).sum();
    if total == 0 || total > u64::from(Contribution::MAX_COUNT) {
        let why = format!("an engine waits for 1 to {} contributions, not {total}", Contribution::MAX_COUNT);
        return Err(Failure::Bad(why));
    }
    let outcome = armed::reduce_with(&EngineCfg { mode, ..EngineCfg::default() }, request.opcode, &frames, None, 0);
    let Some(only) = outcome.single() else {
        let why = format!("the engine sent {} frames up instead of one", outcome.frames.len());
        return Err(Failure::Bad(why));
    };
    let quad = Quad { code: only.rc, m: only.m, oflow_id: only.oflow_id, ..Quad::of(only.lanes) };
    Ok(format!("{}\n", contributions::print(&Contribution { quad, count: only.count })))
}

/// Frames through a packet engine: the four words are the payload, and what flags the frame brings and takes away are its
/// result code.
fn pbv_frames(request: &Request, configured: Mode, pbv_order: bool) -> Result<Quad, Failure> {
    let select = common_select(request.opcode, configured, Family::Pbv)?;
    let mut contributions = Vec::with_capacity(request.contributions.len());
    for (k, Contribution { quad, .. }) in request.contributions.iter().enumerate() {
        let flags = plain_flags(k, quad, Family::Pbv)?;
        // A barrier's frame has no payload.
        let words = if select.op == Op::Barrier { Vec::new() } else { quad.lanes.to_vec() };
        contributions.push((words, flags));
    }
    let OpSelect { op, dtype, mode } = select;
    let (words, flags) = pbv::reduce::reduce(op, dtype, mode, pbv_order, &contributions).map_err(Failure::Engine)?;
    let words = if select.op == Op::Barrier { vec![0; 4] } else { words };
    let lanes = <[u64; 4]>::try_from(words).map_err(|_| Failure::Engine("the engine answered other words".into()))?;
    Ok(Quad { code: ResultCode::of(flags), ..Quad::of(lanes) })
}

/// The flags of a frame that comes to an engine without result codes.
fn plain_flags(k: usize, quad: &Quad, family: Family) -> Result<Flags, String> {
    let engine = family.engine();
    if quad.m != 0 || quad.oflow_id != 0 {
        let why = "`m` and `oflow_id` belong to a reproducible sum, which";
        return Err(format!("contribution {k}: {why} {engine} does not have"));
    }
    quad.code.flags().ok_or_else(|| format!("contribution {k}: the flits of {engine} have no flag for {}", quad.code))
}

/// What an engine of the common operations does for an opcode of the armed family.
fn common_select(opcode: &Opcode, configured: Mode, family: Family) -> Result<OpSelect, String> {
    let known = |opcode: &Opcode| Op::COMMON.contains(&opcode.op);
    if !known(opcode) {
        let names = OPCODES.iter().filter(|&opcode| known(opcode)).map(|opcode| opcode.name);
        return Err(format!("{} has no {}; it has {}", family.engine(), opcode.name, names::one_of(names)));
    }
    let mode = Mode { flush_to_zero: opcode.flush_to_zero, round: opcode.round, ..configured };
    Ok(OpSelect { op: opcode.op, dtype: opcode.dtype, mode })
}

/// Frames through the collective engine: the four words are four elements of one stream, and what flags a word's flit
/// brings and takes away are the frame's result code.
fn piuma_frames(request: &Request, configured: Mode, radix: u8) -> Result<Quad, Failure> {
    let select = common_select(request.opcode, configured, Family::Piuma)?;
    let mut frames = Vec::with_capacity(request.contributions.len());
    for (k, Contribution { quad, .. }) in request.contributions.iter().enumerate() {
        let flags = plain_flags(k, quad, Family::Piuma)?;
        frames.push(quad.lanes.map(|word| (word, flags)));
    }
    while frames.len() > 1 {
        let mut groups: Vec<Vec<(u64, Flags)>> = Vec::new();
        for chunk in frames.chunks(usize::from(radix)) {
            groups.extend((0..4).map(|lane| chunk.iter().map(|frame| frame[lane]).collect()));
        }
        let results = engine_level(select, u16::from(radix), None, &groups)?;
        frames = results.chunks_exact(4).map(|lanes| [lanes[0], lanes[1], lanes[2], lanes[3]]).collect();
    }
    let code = |flags| ResultCode::of(flags);
    let code = frames[0].iter().fold(ResultCode::Ok, |all, &(_, flags)| all.climb(code(flags)));
    Ok(Quad { code, ..Quad::of(frames[0].map(|(word, _)| word)) })
}

// ----------------------------------------------------------------------------------------------- single operands

fn mode(arguments: &Asked) -> Mode {
    let Asked { round, flush_to_zero, nan, signal, .. } = *arguments;
    Mode { round, flush_to_zero, nan, signal }
}

/// Reduces operands that stand at their places already; `places` says which operand each of them is.
fn reduce(arguments: &Asked, order: &Order, places: &[usize], arranged: &[u64]) -> Result<Outcome, Failure> {
    let Asked { op, dtype, radix, .. } = *arguments;
    let mode = mode(arguments);
    if arguments.family == Some(Family::Piuma) {
        let select = OpSelect { op, dtype, mode };
        let (lane, flags) = engine(select, radix, *order == Order::Arrival, places, arranged)?;
        return Ok(Outcome::Lane(lane, flags));
    }
    if arguments.family == Some(Family::Pbv) {
        let contributions: Vec<(Vec<u64>, Flags)> = arranged.iter().map(|&word| (vec![word], Flags::NONE)).collect();
        let in_order = *order == Order::Tree;
        let (words, flags) = pbv::reduce::reduce(op, dtype, mode, in_order, &contributions).map_err(Failure::Engine)?;
        return Ok(Outcome::Lane(words.first().copied().unwrap_or(0) & dtype.lane_mask(), flags));
    }
    if op.is_wide() {
        let unit = QuadUnit::new(op, dtype, mode).ok_or_else(|| format!("{op} does not exist for {dtype}"))?;
        let leaves: Vec<Quad> = places.iter().zip(arranged).map(|(&k, &value)| leaf(op, k as u64, value)).collect();
        return Ok(Outcome::Frame(join_all(leaves, *order == Order::Tree, |a, b| unit.evaluate(a, b))));
    }
    if *order == Order::Tree {
        let (lane, flags) = bare_tree(op, dtype, mode, radix, arranged);
        return Ok(Outcome::Lane(lane, flags));
    }
    let function = watershed_arith::Function::of(op).ok_or_else(|| format!("{op} has no unit"))?;
    let unit = Unit::new(function, dtype, mode);
    let mut flags = Flags::NONE;
    let lane = join_all(arranged.to_vec(), false, |a, b| {
        let done = unit.evaluate(a, b);
        flags |= done.flags;
        done.bits
    });
    Ok(Outcome::Lane(lane, flags))
}

/// Neighbours level by level, or one after another.
fn join_all<T: Copy>(mut items: Vec<T>, by_levels: bool, mut join: impl FnMut(T, T) -> T) -> T {
    if !by_levels {
        let first = items[0];
        return items[1..].iter().fold(first, |sum, &item| join(sum, item));
    }
    while items.len() > 1 {
        items = items.chunks(2).map(|pair| if let [a, b] = *pair { join(a, b) } else { pair[0] }).collect();
    }
    items[0]
}

/// Reduction trees of this radix above one another, without registers.
fn bare_tree(op: Op, dtype: DType, mode: Mode, radix: u8, operands: &[u64]) -> (u64, Flags) {
    let cfg = TreeCfg { radix, unit_stages: 1 };
    let mut flags = Flags::NONE;
    let mut words = operands.to_vec();
    while words.len() > 1 {
        words = words
            .chunks(usize::from(radix))
            .map(|chunk| {
                let operands = Operands::from_words(chunk);
                let out = tree::eval(cfg, &TreeIn { op, dtype, mode, operands, flags: Flags::NONE, tag: 0 });
                flags |= out.flags;
                out.value & dtype.lane_mask()
            })
            .collect();
    }
    (words[0], flags)
}

/// The collective engine, level above level: every group of operands is one element of a stream through its ports.
fn engine(
    select: OpSelect,
    radix: u8,
    one_a_cycle: bool,
    places: &[usize],
    operands: &[u64],
) -> Result<(u64, Flags), Failure> {
    let ports = usize::from(radix);
    let mut words: Vec<(u64, Flags)> = operands.iter().map(|&word| (word, Flags::NONE)).collect();
    let mut places = places.to_vec();
    while words.len() > 1 {
        // One a cycle: in the order of the operands' own numbers, each at its port. A stream must keep its order at
        // every port, or the engine's sequence check would complain.
        let arrivals = one_a_cycle.then(|| {
            let mut arrivals: Vec<usize> = (0..words.len()).collect();
            arrivals.sort_by_key(|&place| (place / ports, places[place]));
            arrivals
        });
        let groups: Vec<Vec<(u64, Flags)>> = words.chunks(ports).map(<[_]>::to_vec).collect();
        words = engine_level(select, u16::from(radix), arrivals.as_deref(), &groups)?;
        for (word, _) in &mut words {
            *word &= select.dtype.lane_mask();
        }
        places = (0..words.len()).collect();
    }
    Ok(words[0])
}

/// The engine of the only switch of a star. Collective id 0 joins all ports; id 1 those of the last, smaller groups, which
/// are of one size. Operands come as fast as they are taken, or one a cycle in this order of their places.
fn engine_level(
    select: OpSelect,
    ports: u16,
    arrivals: Option<&[usize]>,
    groups: &[Vec<(u64, Flags)>],
) -> Result<Vec<(u64, Flags)>, Failure> {
    let routing = Routing::Mesh(Mesh { size: vec![1], concentration: ports });
    let cfg = RegistersCfg { switches: 1, ids: 2, external_ports: ports };
    let mut registers = Registers::new(cfg, vec!["star".to_owned()], Routes { routing, ends: Vec::new() });
    let rest = groups.last().map_or(0, Vec::len) as u16;
    let mut store = |address, value| registers.store(address, value).map_err(|error| error.to_string());
    for (id, members) in [(0, ports), (1, rest)] {
        store(Registers::select_address(0, id), select.encode())?;
        for port in 0..members {
            store(Registers::vector_address(0, id, REQUEST, port), 1 << ports)?;
        }
        // The result turns into a response here: the switch is the root.
        store(Registers::vector_address(0, id, RESPONSE, ports), 1)?;
    }
    let tree = TreeCfg { radix: ports as u8, unit_stages: 3 };
    let result_slots = CengCfg::enough_result_slots(tree, 1);
    let mut ceng = Ceng::new(CengCfg { tree, operand_slots: 2, result_slots, scan_slots: 1 });

    let count = groups.len();
    let mut sent = vec![0; usize::from(ports)];
    let mut results = vec![(0, Flags::NONE); count];
    let mut finished = 0;
    let mut arriving = arrivals.unwrap_or_default().iter().copied().peekable();
    let limit = (groups.iter().map(Vec::len).sum::<usize>() as Cycle + 1000) * 20;
    for now in 0..limit {
        let put = |ceng: &mut Ceng, group: usize, port: u16| {
            let (word, flags) = groups[group][usize::from(port)];
            let full = groups[group].len() == usize::from(ports);
            let mut tag = Tag(0);
            tag.set_head(true);
            tag.set_tail(true);
            tag.set_vc(REQUEST);
            tag.set_id(u16::from(!full));
            tag.set_seq(group as u64);
            tag.set_flags(flags.bits());
            ceng.put(port, REQUEST, Flit { tag, word }, now + 1);
        };
        if arrivals.is_some() {
            if let Some(&place) = arriving.peek() {
                let (group, port) = (place / usize::from(ports), (place % usize::from(ports)) as u16);
                if ceng.room(port, REQUEST) {
                    put(&mut ceng, group, port);
                    arriving.next();
                }
            }
        } else {
            for port in 0..ports {
                let group = sent[usize::from(port)];
                if group < count && usize::from(port) < groups[group].len() && ceng.room(port, REQUEST) {
                    put(&mut ceng, group, port);
                    sent[usize::from(port)] += 1;
                }
            }
        }
        let out = ceng.tick(&JoinCx { tables: &registers, switch: 0, now, queued: Queued::default() });
        if let Some(fault) = out.fault {
            return Err(Failure::Engine(fault.into()));
        }
        if let Some(flit) = out.result {
            results[flit.tag.seq() as usize] = (flit.word, Flags::from_bits(flit.tag.flags()));
            finished += 1;
        }
        if finished == count {
            return Ok(results);
        }
    }
    Err(Failure::Engine(format!("the engine did not finish in {limit} cycles")))
}

/// The exact sum or product of numbers; `None` if there is a NaN or infinity, or for other operations.
fn exact(op: Op, dtype: DType, operands: &[u64]) -> Option<Exact> {
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

/// The value of an outcome as a lane; a frame of a locator has none.
fn value(arguments: &Asked, outcome: &Outcome) -> Option<u64> {
    match outcome {
        Outcome::Lane(lane, _) => Some(*lane),
        Outcome::Frame(quad) if arguments.op == Op::RepSum => {
            Some(repsum::join(mode(arguments), quad.lanes, quad.m).bits)
        }
        Outcome::Frame(_) => None,
    }
}

/// The error of a lane against the exact value.
fn error(dtype: DType, lane: u64, exact: &Exact) -> Option<f64> {
    match dtype.is_float().then(|| read(dtype, lane)) {
        Some(Meaning::Number { value, .. }) => Some(value.ulps_from(exact, dtype)),
        _ => None,
    }
}

fn text(arguments: &Asked, outcome: &Outcome, exact: Option<&Exact>, count: usize) -> String {
    let Asked { op, dtype, round, .. } = *arguments;
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

fn json(arguments: &Asked, outcome: &Outcome, exact: Option<&Exact>, count: usize) -> String {
    let Asked { op, dtype, round, .. } = *arguments;
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
type Distinct = (Option<u64>, [u64; 4], i8);

/// Distinct results of orders drawn at random.
fn many(arguments: &Asked, operands: &[u64], order: &Order, count: u32) -> Result<String, Failure> {
    let Asked { op, dtype, seed, .. } = *arguments;
    let mut rng = Rng::new(seed, 0);
    let mut places = places(order, operands.len());
    let mut found: BTreeMap<Distinct, (u32, Flags, ResultCode)> = BTreeMap::new();
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
