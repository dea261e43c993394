//! `watershed alu`: one operation on bit patterns, with every stage register if asked.

use std::ffi::OsString;

use std::fmt::Write as _;

use clap::Args;

use super::{Exit, print, print_error};
use watershed_arith::comparator::Selection;
use watershed_arith::unit::{SEGMENTS, StageRegister, cut};
use watershed_arith::{DType, Flags, Function, Mode, NanPolicy, Op, Quad, QuadUnit, Round, SignalPolicy, Unit, repsum};
use watershed_oracle::exact::{Meaning, read};
use watershed_oracle::soft::{self, Predicate};
use watershed_oracle::{lane_difference, lane_pair, lane_predicate, quad_pair};
use watershed_scenario_interface::{names, number};

/// Put bit patterns through one arithmetic unit.
#[derive(Debug, Args)]
#[command(after_help = "\
More than two operands are taken from left to right. Every result is compared with the oracle.

Examples:
  watershed alu --op sum --type f32 --round up 0x3f800001 0x33800000
  watershed alu --op sum --type f32 --stages 0x3f800001 0x33800000
  watershed alu --op minnum --type f64 --signal ieee 0x3ff0000000000000 0x7ff0000000000001
  watershed alu --op sum --type bf16 1.5 -0.3
  watershed alu --op repsum --type f64 0x3ff0000000000000 0x0000000000000001

Exit status:
  0  the unit and the oracle agree
  1  they do not
  2  the command line is wrong")]
pub(super) struct Arguments {
    #[arg(long, value_name = "OP", help = format!("Operation: {}, sub, eq, le or lt", names::of_operations()))]
    op: String,
    /// Type: i32, u32, i64, u64, f16, bf16, tf32, f32, f64, fp8_e4m3 or fp8_e5m2
    #[arg(long = "type", value_name = "TYPE")]
    dtype: DType,
    /// Rounding mode: nearest-even, toward-zero, up or down
    #[arg(long, value_name = "MODE", default_value = "nearest-even")]
    round: Round,
    /// Flush denormal sums and products to zero
    #[arg(long)]
    flush_to_zero: bool,
    /// What a NaN result looks like: default or propagate
    #[arg(long, value_name = "POLICY", default_value = "default")]
    nan: NanPolicy,
    /// What a signalling NaN does in minnum, maxnum and minmaxnumloc: associative or ieee
    #[arg(long, value_name = "POLICY", default_value = "associative")]
    signal: SignalPolicy,
    /// Show the contents of every stage register of a unit of N stages
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "6",
          value_parser = clap::value_parser!(u8).range(1..=6))]
    stages: Option<u8>,
    /// Operands: bit patterns in hexadecimal, or decimal numbers with a point or a sign (1.5, +3, -1e-3, inf)
    #[arg(value_name = "OPERAND", required = true, num_args = 2.., allow_negative_numbers = true)]
    operands: Vec<String>,
}

/// A minus sign that begins no option; numbers may have it as well.
const MINUS: char = '\u{2212}';

/// A word of the command line: minus infinity, and a negative number whose exponent has a sign, would be taken for options.
pub(super) fn word(argument: OsString) -> OsString {
    let is_taken = |text: &str| {
        let text = text.to_ascii_lowercase();
        let has_word = ["inf", "nan", "e-", "e+"].iter().any(|part| text.contains(part));
        text.starts_with('-') && has_word && text.parse::<f64>().is_ok()
    };
    match argument.to_str().filter(|text| is_taken(text)) {
        Some(text) => text.replacen('-', &MINUS.to_string(), 1).into(),
        None => argument,
    }
}

/// A right-justified lane: a bit pattern in hexadecimal, with or without `0x`, or a decimal number with a sign or a point, which is
/// rounded to the type once.
pub(super) fn lane(dtype: DType, text: &str) -> Result<u64, String> {
    let text = &text.replace(MINUS, "-");
    if is_decimal(text) {
        let layout = names::layout(dtype);
        return number::parse(text, layout).map_err(|why| format!("{text} is no {dtype}: {why}"));
    }
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text).replace('_', "");
    let valid = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let value = valid.then(|| u64::from_str_radix(&digits, 16).ok()).flatten();
    match value {
        Some(value) if value <= dtype.lane_mask() => Ok(value),
        Some(_) => Err(format!("`{text}` does not fit the {} bits of {dtype}", dtype.bits())),
        None => Err(format!(
            "`{text}` is neither a bit pattern in hexadecimal, such as {}, nor a number with a point or a sign, such as 1.5 or +3",
            pattern(dtype, 1)
        )),
    }
}

/// Whether a word is a number and not a pattern: hexadecimal digits have neither sign nor point.
fn is_decimal(text: &str) -> bool {
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let named = matches!(rest.to_ascii_lowercase().as_str(), "inf" | "infinity" | "nan");
    named || (rest.len() < text.len() || rest.contains('.')) && !rest.starts_with("0x") && !rest.starts_with("0X")
}

/// A lane as a bit pattern of the type's width.
pub(super) fn pattern(dtype: DType, lane: u64) -> String {
    format!("{lane:#0width$x}", width = dtype.bits() as usize / 4 + 2)
}

/// What a lane means, in decimal.
pub(super) fn meaning(dtype: DType, lane: u64) -> String {
    match dtype {
        DType::I32 => (lane as i32).to_string(),
        DType::I64 => (lane as i64).to_string(),
        DType::U32 | DType::U64 => lane.to_string(),
        _ => match read(dtype, lane) {
            Meaning::Nan { signalling: true, .. } => "signalling NaN".to_owned(),
            Meaning::Nan { .. } => "NaN".to_owned(),
            Meaning::Infinity { negative } => if negative { "-infinity" } else { "infinity" }.to_owned(),
            Meaning::Number { negative: true, value } if value.integer == 0.into() => "-0".to_owned(),
            Meaning::Number { value, .. } => value.decimal(17),
        },
    }
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    match execute(arguments) {
        Ok(exit) => exit,
        Err(message) => {
            print_error(&format!("error: {message}"));
            Exit::Bad
        }
    }
}

/// What `--op` can name: an operation of a reduction, or one that only a unit has.
enum AluOperation {
    Op(Op),
    Sub,
    Predicate(Function, Predicate),
}

fn parse_operation(name: &str) -> Result<AluOperation, String> {
    Ok(match name {
        "sub" => AluOperation::Sub,
        "eq" => AluOperation::Predicate(Function::Select(Selection::Equal), Predicate::Equal),
        "le" => AluOperation::Predicate(Function::Select(Selection::LessOrEqual), Predicate::LessOrEqual),
        "lt" => AluOperation::Predicate(Function::Select(Selection::Less), Predicate::Less),
        "barrier" => return Err("a barrier has no operands".to_owned()),
        "add" => AluOperation::Op(Op::Sum),
        "mul" => AluOperation::Op(Op::Prod),
        _ => AluOperation::Op(name.parse().map_err(|error: watershed_arith::UnknownName| error.to_string())?),
    })
}

fn execute(arguments: &Arguments) -> Result<Exit, String> {
    let Arguments { dtype, round, flush_to_zero, nan, signal, stages, .. } = *arguments;
    let mode = Mode { round, flush_to_zero, nan, signal };
    let asked = parse_operation(&arguments.op)?;
    let operands = arguments.operands.iter().map(|text| lane(dtype, text)).collect::<Result<Vec<u64>, _>>()?;
    if let AluOperation::Op(op) = asked
        && op.is_wide()
    {
        return frames(op, dtype, mode, stages, &operands);
    }
    let unit = match &asked {
        // A gate sees bits, not numbers: here a lane of the type's width.
        AluOperation::Op(op) => {
            let function = Function::of(*op).ok_or_else(|| format!("{op} has no unit"))?;
            Unit::new(function, dtype, mode)
        }
        AluOperation::Sub => Unit::new(Function::Sub, dtype, mode),
        AluOperation::Predicate(function, _) => Unit::new(*function, dtype, mode),
    };
    let oracle = |a, b| match &asked {
        AluOperation::Op(op) => lane_pair(*op, dtype, mode, a, b),
        AluOperation::Sub if dtype.is_float() => lane_difference(dtype, mode, a, b),
        // a - b of integers in as many bits as it takes.
        AluOperation::Sub => integer_difference(dtype, a, b),
        AluOperation::Predicate(_, predicate) => {
            let softfloat = soft::predicate(*predicate, dtype, a, b);
            let (truth, flags) = softfloat.unwrap_or_else(|| lane_predicate(*predicate, dtype, a, b));
            (u64::from(truth), flags)
        }
    };
    let mut text = String::new();
    let mut exit = Exit::Fine;
    let mut a = operands[0];
    for &b in &operands[1..] {
        if let Some(stages) = stages {
            text += &listing(&unit, stages, a, b);
        }
        let done = unit.evaluate(a, b);
        let verdict = match oracle(a, b) {
            expected if expected == (done.bits, done.flags) => "agrees".to_owned(),
            (bits, flags) => {
                exit = Exit::Failed;
                format!("says {} {flags}", pattern(dtype, bits))
            }
        };
        let _ = write!(
            text,
            "{} {} {}\n  result  {}  {}\n  flags   {}\n  oracle  {verdict}\n",
            pattern(dtype, a),
            arguments.op,
            pattern(dtype, b),
            pattern(dtype, done.bits),
            match asked {
                AluOperation::Predicate(..) => (done.bits == 1).to_string(),
                _ => meaning(dtype, done.bits),
            },
            done.flags
        );
        a = done.bits;
    }
    print(&text);
    Ok(exit)
}

/// The difference of two integers as the definition has it: exactly, then cut to the lane.
fn integer_difference(dtype: DType, a: u64, b: u64) -> (u64, Flags) {
    let value = |lane: u64| match dtype {
        DType::I32 => i128::from(lane as i32),
        DType::I64 => i128::from(lane as i64),
        _ => i128::from(lane),
    };
    let difference = value(a) - value(b);
    let lane = difference as u64 & (u64::MAX >> (64 - dtype.bits()));
    (lane, Flags::NONE.with_if(Flags::INT_OVERFLOW, value(lane) != difference))
}

/// Every register of a unit of this many stages, for one pair.
fn listing(unit: &Unit, stages: u8, a: u64, b: u64) -> String {
    let mut text = String::new();
    let mut register = StageRegister::Operands { a, b };
    let mut passed = 0;
    for (k, &end) in cut(stages).iter().enumerate() {
        register = unit.steps(end - passed, register);
        passed = end;
        let _ = writeln!(text, "stage {} of {stages}: {}", k + 1, register.name());
        unit.fields(&register, &mut |name, width, value| text += &field(name, width, value));
    }
    text
}

fn field(name: &str, width: u32, value: u128) -> String {
    format!("  {name:<12} {width:>3} bits  {value:#0digits$x}\n", digits = width.div_ceil(4) as usize + 2)
}

/// The operations on four words: a value is split, or stands with its place among the operands.
fn frames(op: Op, dtype: DType, mode: Mode, stages: Option<u8>, operands: &[u64]) -> Result<Exit, String> {
    let unit = QuadUnit::new(op, dtype, mode).ok_or_else(|| format!("{op} does not exist for {dtype}"))?;
    let quads: Vec<Quad> = operands.iter().enumerate().map(|(k, &value)| leaf(op, k as u64, value)).collect();
    let mut text = String::new();
    let mut exit = Exit::Fine;
    let mut a = quads[0];
    for &b in &quads[1..] {
        if let Some(stages) = stages {
            let mut register = watershed_arith::QuadRegister::Operands { a, b };
            let mut passed = 0;
            for (k, &end) in cut(stages).iter().enumerate() {
                register = unit.steps(end - passed, register);
                passed = end;
                let _ = writeln!(text, "stage {} of {stages}: {}", k + 1, register.name());
                unit.fields(&register, &mut |place, name, width, value| {
                    let name = place.map_or(name.to_owned(), |place| format!("{name}[{place}]"));
                    text += &field(&name, width, value);
                });
            }
            debug_assert_eq!(passed, SEGMENTS);
        }
        let result = unit.evaluate(a, b);
        if result != quad_pair(op, dtype, mode, a, b) {
            exit = Exit::Failed;
            text += "the oracle disagrees\n";
        }
        a = result;
    }
    text += &quad_text(op, dtype, mode, &a);
    print(&text);
    Ok(exit)
}

/// What an end point sends for a value: its words, or the value with its place twice.
pub(super) fn leaf(op: Op, place: u64, value: u64) -> Quad {
    if op == Op::RepSum { repsum::split(value) } else { Quad::of([value, place, value, place]) }
}

/// A frame's contents, as people read them.
pub(super) fn quad_text(op: Op, dtype: DType, mode: Mode, quad: &Quad) -> String {
    let mut text = String::new();
    if op == Op::RepSum {
        let value = repsum::join(mode, quad.lanes, quad.m).bits;
        for (k, word) in quad.lanes.iter().enumerate().rev() {
            let _ = writeln!(text, "  word {k}  {word:#018x}  {}", *word as i64);
        }
        let _ = writeln!(text, "  m       {}", quad.m);
        let _ = writeln!(text, "  result  {}  {}", pattern(dtype, value), meaning(dtype, value));
    } else {
        for (name, k) in [("min", 0), ("max", 2)] {
            let (value, index) = (quad.lanes[k], quad.lanes[k + 1]);
            let _ = writeln!(text, "  {name}     {}  {}  at {index}", pattern(dtype, value), meaning(dtype, value));
        }
    }
    let _ = writeln!(text, "  code    {} {}", quad.code.number(), quad.code);
    text
}
