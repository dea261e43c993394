//! What `watershed reduce` is asked for: flags, orders, and how it ends.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use watershed_arith::{DType, Flags, Mode, NanPolicy, Op, Quad, QuadUnit, Round, SignalPolicy};
use watershed_scenario_interface::names::{self, NamedValues};

/// Reduce many operands to one and compare with the exact value.
#[derive(Debug, Args)]
#[command(after_help = "\
Operands are bit patterns in hexadecimal or decimal numbers with a point or a sign (1.5, +3, -1e-3, inf), which are rounded to the
type: on the command line, or in a file as JSON ([\"3f800000\", 0.1, …] or {\"operands\": […]}) or as text with one or more in a
line and comments after a #.

Without --family the bare arithmetic is used: `tree` joins operands level by level as the ports of reduction trees do, a
list or `arrival` takes them one after another. With --family piuma the collective engine's own clock is driven: `tree` has
all operands there at once, `arrival` brings them one a cycle, and a list says which operand takes which port.

The input may also be whole contributions of four words, with an opcode's number or name:
  {\"op\": 40, \"contributions\": [{\"lanes\": [\"3ff0000000000000\", \"0\", \"0\", \"0\"], \"count\": 1, \"rc\": 0, \"m\": 0, \"oflow_id\": 0}, …]}
They say what is to be done, so --op and --type are left out; what is printed is {\"lanes\": […], \"rc\": …, \"count\": …,
\"m\": …, \"oflow_id\": …}. --family piuma takes the four words as four elements of one stream through the collective
engine, back to back, and the flags of the result make the result code.

Examples:
  watershed reduce --op sum --type f32 3f800000 33800000 33800000
  watershed reduce --op sum --type f16 1.5 -0.25 +3
  watershed reduce --op sum --type f32 --order 2,1,0 3f800000 33800000 33800000
  watershed reduce --op sum --type f64 --order arrival --all-orders 1000 --input operands.hex
  watershed reduce --op repsum --type f64 --input operands.json
  watershed reduce --op max --type f64 --family piuma --input operands.hex
  watershed reduce --family piuma --input contributions.json

Exit status:
  0  the reduction was made
  1  an engine reported a fault
  2  the command line or the input is wrong")]
pub(crate) struct Arguments {
    #[arg(long, value_name = "OP", help = format!("Operation: {}", names::of_operations()))]
    pub(super) op: Option<Op>,
    /// Type: i32, u32, i64, u64, f16, bf16, tf32, f32, f64, fp8_e4m3 or fp8_e5m2
    #[arg(long = "type", value_name = "TYPE")]
    pub(super) dtype: Option<DType>,
    /// Rounding mode: nearest-even, toward-zero, up or down
    #[arg(long, value_name = "MODE", default_value = "nearest-even")]
    pub(super) round: Round,
    /// Flush denormal sums and products to zero
    #[arg(long)]
    pub(super) flush_to_zero: bool,
    /// What a NaN result looks like: default, or propagate: an operand's, quieted, a signalling one's first
    #[arg(long, value_name = "POLICY", default_value = "default")]
    pub(super) nan: NanPolicy,
    /// What a signalling NaN does in minnum, maxnum and minmaxnumloc: associative or ieee
    #[arg(long, value_name = "POLICY", default_value = "associative")]
    pub(super) signal: SignalPolicy,
    /// Order: tree, arrival, or the indices of all operands with commas between them
    #[arg(long, value_name = "ORDER", default_value = "tree")]
    pub(super) order: String,
    /// Ports of a reduction tree or engine
    #[arg(long, value_name = "PORTS", default_value_t = 10, value_parser = clap::value_parser!(u8).range(2..=63))]
    pub(super) radix: u8,
    /// Drive the engine of this family instead of the bare arithmetic: that of a PIUMA switch, an armed or a PBV one
    #[arg(long, value_name = "FAMILY")]
    pub(super) family: Option<Family>,
    /// Read the operands from this file, or from the standard input for -
    #[arg(long, value_name = "FILE", conflicts_with = "operands")]
    pub(super) input: Option<PathBuf>,
    /// Try N random orders and list the distinct results
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) all_orders: Option<u32>,
    /// Draw the orders with this seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Operands: bit patterns in hexadecimal, or decimal numbers with a point or a sign
    #[arg(value_name = "OPERAND", allow_negative_numbers = true)]
    pub(super) operands: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Family {
    Piuma,
    Armed,
    Pbv,
}

impl Family {
    /// Its engine in a sentence.
    pub(super) const fn engine(self) -> &'static str {
        match self {
            Self::Piuma => "the PIUMA engine",
            Self::Armed => "the armed engine",
            Self::Pbv => "the PBV engine",
        }
    }
}

/// The reduction of single operands that was requested.
#[derive(Debug)]
pub(super) struct OperandRequest {
    pub(super) op: Op,
    pub(super) dtype: DType,
    pub(super) round: Round,
    pub(super) flush_to_zero: bool,
    pub(super) nan: NanPolicy,
    pub(super) signal: SignalPolicy,
    pub(super) order: String,
    pub(super) radix: u8,
    pub(super) family: Option<Family>,
    pub(super) all_orders: Option<u32>,
    pub(super) seed: u64,
    pub(super) json: bool,
}

impl OperandRequest {
    pub(super) fn new(arguments: &Arguments) -> Result<Self, String> {
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
pub(super) enum Outcome {
    Lane(u64, Flags),
    Frame(Quad),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Order {
    Tree,
    Arrival,
    List(Vec<usize>),
}

/// Why it cannot be done.
pub(super) enum Failure {
    Bad(String),
    Engine(String),
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Bad(message)
    }
}

pub(super) fn check_names(arguments: &OperandRequest) -> Result<(), String> {
    let OperandRequest { op, dtype, family, .. } = *arguments;
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
            return Err(format!("{engine} has no {op}; it has {}", names::one_of(<Op as NamedValues>::names())));
        }
        if DType::from_name(dtype.name()).is_none() {
            let legal = names::one_of(<DType as NamedValues>::names());
            return Err(format!("{engine} has no {dtype}; it has {legal}"));
        }
        names::supports(op, dtype).map_err(|why| format!("{op} {why}, not {dtype}"))?;
    }
    Ok(())
}

pub(super) fn order(text: &str, count: usize) -> Result<Order, String> {
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
pub(super) fn places(order: &Order, count: usize) -> Vec<usize> {
    match order {
        Order::List(list) => list.clone(),
        _ => (0..count).collect(),
    }
}
