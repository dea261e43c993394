//! `watershed testfloat`: takes the role of `testfloat_ver`, with the pipelined unit as the subject.

use std::collections::VecDeque;
use std::io::BufRead;

use clap::Args;

use super::{Exit, print, print_error};
use watershed_arith::comparator::Selection;
use watershed_arith::{DType, Flags, Function, Mode, Pipe, PipeIn, PipeOut, Round};

/// Check the pipelined units against the output of testfloat_gen.
#[derive(Debug, Args)]
#[command(after_help = "\
Reads lines of `a b expected flags` from the standard input, hexadecimal, as testfloat_gen writes them, and drives them
through the unit, one a cycle. The unit detects tininess after rounding and gives the default NaN: use a TestFloat built
with SPECIALIZE_TYPE=RISCV, and its options -tininessafter and the rounding mode given here.

Examples:
  testfloat_gen -tininessafter f64_add | watershed testfloat f64_add
  testfloat_gen -tininessafter -rmax f16_mul | watershed testfloat f16_mul --round up

Exit status:
  0  no mismatch
  1  at least one mismatch
  2  the command line or a line of the input is wrong")]
pub(super) struct Arguments {
    /// Function: f16, f32 or f64, then _add, _sub, _mul, _eq, _le or _lt
    #[arg(value_name = "FUNCTION")]
    function: String,
    /// Rounding mode: nearest-even, toward-zero, up or down (or near_even, minMag, max, min)
    #[arg(long, value_name = "MODE", default_value = "nearest-even")]
    round: Round,
    /// Clock stages of the unit
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u8).range(1..=6))]
    stages: u8,
    /// Number of mismatches to print at most
    #[arg(long, value_name = "N", default_value_t = 20)]
    errors: u64,
}

/// One line of the input.
#[derive(Debug, Clone, Copy)]
struct Case {
    a: u64,
    b: u64,
    expected: u64,
    flags: u8,
}

fn function(name: &str) -> Result<(Function, DType), String> {
    let unknown = || format!("unknown function `{name}`; f16, f32 or f64, then _add, _sub, _mul, _eq, _le or _lt");
    let (dtype, function) = name.split_once('_').ok_or_else(unknown)?;
    let dtype = match dtype {
        "f16" => DType::F16,
        "f32" => DType::F32,
        "f64" => DType::F64,
        _ => return Err(unknown()),
    };
    let function = match function {
        "add" => Function::Add,
        "sub" => Function::Sub,
        "mul" => Function::Mul,
        "eq" => Function::Select(Selection::Equal),
        "le" => Function::Select(Selection::LessOrEqual),
        "lt" => Function::Select(Selection::Less),
        _ => return Err(unknown()),
    };
    Ok((function, dtype))
}

fn is_predicate(function: Function) -> bool {
    matches!(function, Function::Select(Selection::Equal | Selection::LessOrEqual | Selection::Less))
}

/// Reads `a b expected flags`.
fn case(dtype: DType, predicate: bool, line: &str) -> Result<Case, String> {
    let mut fields = line
        .split_ascii_whitespace()
        .map(|field| u64::from_str_radix(field, 16).map_err(|_| format!("`{field}` is not a hexadecimal number")));
    let mut next = || fields.next().unwrap_or_else(|| Err("expected four fields: a b result flags".to_owned()));
    let (a, b, expected, flags) = (next()?, next()?, next()?, next()?);
    if fields.next().is_some() {
        return Err("more than four fields".to_owned());
    }
    if let Some(operand) = [a, b].into_iter().find(|&operand| operand > dtype.lane_mask()) {
        return Err(format!("the operand {operand:X} does not fit the {} bits of {dtype}", dtype.bits()));
    }
    let limit = if predicate { 1 } else { dtype.lane_mask() };
    if expected > limit {
        let wanted = if predicate { "0 or 1".to_owned() } else { format!("a number of {} bits", dtype.bits()) };
        return Err(format!("the result {expected:X} is not {wanted}"));
    }
    if flags > 0x1f {
        return Err(format!("the flags {flags:X} are not from 00 to 1F"));
    }
    Ok(Case { a, b, expected, flags: flags as u8 })
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    match execute(arguments) {
        Ok(0) => Exit::Fine,
        Ok(_) => Exit::Failed,
        Err(message) => {
            print_error(&format!("error: {message}"));
            Exit::Bad
        }
    }
}

fn execute(arguments: &Arguments) -> Result<u64, String> {
    let (function, dtype) = function(&arguments.function)?;
    let predicate = is_predicate(function);
    let title = title(&arguments.function, function, arguments.round);
    let mut pipe = Pipe::new(function, dtype, Mode::rounding(arguments.round), arguments.stages);
    let mut cases = 0u64;
    let mut mismatches = 0u64;
    let mut waiting: VecDeque<Case> = VecDeque::new();
    let mut check = |output: Option<PipeOut>, waiting: &mut VecDeque<Case>| {
        let Some(output) = output else { return };
        let case = waiting.pop_front().expect("a result has operands");
        if (output.bits, output.flags.bits()) == (case.expected, case.flags) {
            return;
        }
        if mismatches == 0 {
            print(&format!("Errors found in {title}:"));
        }
        mismatches += 1;
        if mismatches <= arguments.errors {
            print(&mismatch(dtype, predicate, &case, &output));
        }
    };
    let stdin = std::io::stdin().lock();
    for (number, line) in stdin.lines().enumerate() {
        let line = line.map_err(|error| format!("standard input: {error}"))?;
        if line.trim().is_empty() {
            continue;
        }
        let case = case(dtype, predicate, &line).map_err(|error| format!("line {}: {error}", number + 1))?;
        cases += 1;
        waiting.push_back(case);
        check(pipe.tick(Some(PipeIn { a: case.a, b: case.b, tag: cases })), &mut waiting);
    }
    while !waiting.is_empty() {
        check(pipe.tick(None), &mut waiting);
    }
    if cases == 0 {
        return Err("no test cases on the standard input".to_owned());
    }
    let plural = if mismatches == 1 { "" } else { "s" };
    print(&if mismatches == 0 {
        format!("In {cases} tests, no errors found in {title}.")
    } else {
        format!("{cases} tests performed; {mismatches} error{plural} found.")
    });
    Ok(mismatches)
}

/// The function with its modes, as `testfloat_ver` names it: what has no effect is not named.
fn title(name: &str, function: Function, round: Round) -> String {
    if is_predicate(function) {
        return name.to_owned();
    }
    let round = match round {
        Round::NearestEven => "near_even",
        Round::TowardZero => "minMag",
        Round::Up => "max",
        Round::Down => "min",
    };
    // Sums that are tiny are exact: when tininess is detected matters to products only.
    let tininess = if function == Function::Mul { ", tininess after rounding" } else { "" };
    format!("{name}, rounding {round}{tininess}")
}

/// A mismatch in the form of `testfloat_ver`: sign and exponent, point, fraction; then the five flags. Two doubles and a
/// double fill the line, so there the result stands in the next one.
fn mismatch(dtype: DType, predicate: bool, case: &Case, output: &PipeOut) -> String {
    let result = |lane: u64| if predicate { lane.to_string() } else { number(dtype, lane) };
    let between = if dtype == DType::F64 && !predicate { "\n\t" } else { "  " };
    format!(
        "{}  {}{between}=> {} {}  expected {} {}",
        number(dtype, case.a),
        number(dtype, case.b),
        result(output.bits),
        letters(output.flags),
        result(case.expected),
        letters(Flags::from_bits(case.flags))
    )
}

fn number(dtype: DType, lane: u64) -> String {
    let (exponent, fraction) = match dtype {
        DType::F16 => (5, 10),
        DType::F32 => (8, 23),
        _ => (11, 52),
    };
    let sign = if lane >> (exponent + fraction) == 1 { '-' } else { '+' };
    let field = lane >> fraction & ((1 << exponent) - 1);
    let digits = (fraction as usize).div_ceil(4);
    format!(
        "{sign}{field:0width$X}.{:0digits$X}",
        lane & ((1 << fraction) - 1),
        width = (exponent as usize).div_ceil(4)
    )
}

/// Invalid, infinite, overflow, underflow, inexact.
fn letters(flags: Flags) -> String {
    let letter = |flag, letter| if flags.contains(flag) { letter } else { '.' };
    [
        letter(Flags::INVALID, 'v'),
        '.',
        letter(Flags::OVERFLOW, 'o'),
        letter(Flags::UNDERFLOW, 'u'),
        letter(Flags::INEXACT, 'x'),
    ]
    .iter()
    .collect()
}
