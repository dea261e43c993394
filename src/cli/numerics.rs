//! `watershed numerics`: one vector, many orders and shapes, all families and software side by side.

use std::path::PathBuf;

use clap::Args;

use super::alu::lane;
use super::reduce::{operands_of, read_text};
use super::{Exit, engines, output, print, print_error};
use watershed_arith::{DType, Op};
use watershed_kernel::Rng;
use watershed_study::numerics::{NumericsOptions, numerics};

/// Reduce one vector in many orders on many networks: bits, error and whether the order matters, for every family and software.
#[derive(Debug, Args)]
#[command(after_help = "\
Every cell is a run of the model: a participant for each operand, on a mesh, a chain and a tree, with the engines of each family
and with software. Orders: as given, reversed, by value, by size, and --orders drawn at random. Errors are in units of the last
place of the result, against the exact value.

Examples:
  watershed numerics --type f64 1.0e16 +1 -1.0e16 +1
  watershed numerics --type f64 --random 16 --svg out/heat.svg --csv out/cells.csv
  watershed numerics --op prod --type f32 --random 8 --orders 20 --json
  watershed numerics --type f64 --input operands.json

Exit status:
  0  the table was made
  2  the command line or the input is wrong, or a file cannot be written")]
pub(super) struct Arguments {
    /// Operation: sum, prod, min, max, and, or, xor, …
    #[arg(long, value_name = "OP", default_value = "sum")]
    op: Op,
    /// Type: i32, u32, i64, u64, f16, bf16, tf32, f32, f64, fp8_e4m3 or fp8_e5m2
    #[arg(long = "type", value_name = "TYPE", default_value = "f64")]
    dtype: DType,
    /// Read the operands from this file, or from the standard input for -, as `reduce` does
    #[arg(long, value_name = "FILE", conflicts_with = "operands")]
    input: Option<PathBuf>,
    /// Draw N random operands of both signs, whose sizes differ by at most the bits of a significand
    #[arg(long, value_name = "N", conflicts_with_all = ["operands", "input"], value_parser = clap::value_parser!(u32).range(2..=64))]
    random: Option<u32>,
    /// Number of orders drawn at random
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(0..=1000))]
    orders: u32,
    /// Draw orders and operands with this seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Threads; 0 is one for each processor
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    jobs: usize,
    /// Write a heat map of the errors to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write a line for each run to this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write every file that is named without a folder into this one
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Operands: bit patterns in hexadecimal, or decimal numbers with a point or a sign
    #[arg(value_name = "OPERAND", allow_negative_numbers = true)]
    operands: Vec<String>,
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    match execute(arguments) {
        Ok(text) => {
            print(&text);
            Exit::Fine
        }
        Err(error) => {
            print_error(&if error.starts_with("error: ") { error } else { format!("error: {error}") });
            Exit::Bad
        }
    }
}

/// Numbers of both signs whose sizes differ by at most the bits of a significand: each of them moves bits of the sum, and most sums
/// of two are rounded, so that the order can matter.
fn drawn(dtype: DType, count: u32, seed: u64) -> Vec<u64> {
    let mut rng = Rng::new(seed, 0x0d2a_3b00);
    let one = |rng: &mut Rng| {
        let Some(format) = dtype.format() else {
            // Sums of integers, too, are to stay within their type.
            return (rng.bits() & dtype.lane_mask()) >> (dtype.bits() / 4);
        };
        let precision = u64::from(format.precision());
        let exponent = (format.bias() as u64).saturating_sub(precision / 2) + rng.below(precision + 1);
        let bits = rng.bits();
        let fraction = (bits >> 1) & format.fraction_mask();
        format.join(bits & 1 != 0, exponent.max(1) << format.fraction_bits | fraction)
    };
    (0..count).map(|_| one(&mut rng)).collect()
}

fn execute(arguments: &Arguments) -> Result<String, String> {
    let Arguments { op, dtype, orders, seed, .. } = *arguments;
    let operands = match (arguments.random, arguments.operands.is_empty()) {
        (Some(count), _) => drawn(dtype, count, seed),
        (None, false) => arguments.operands.iter().map(|text| lane(dtype, text)).collect::<Result<_, _>>()?,
        (None, true) => {
            let (name, text) = read_text(arguments.input.as_deref())?;
            operands_of(dtype, &text).map_err(|error| format!("{name}: {error}"))?
        }
    };
    let place = |path: &PathBuf| output::place(arguments.out.as_deref(), path);
    let (svg, csv) = (arguments.svg.as_ref().map(place), arguments.csv.as_ref().map(place));
    let files = svg.iter().map(|path| ("--svg", path.clone())).chain(csv.iter().map(|path| ("--csv", path.clone())));
    let inputs: Vec<PathBuf> = arguments.input.iter().cloned().collect();
    let _claims = output::claim(&files.collect::<Vec<_>>(), &inputs)?;
    let jobs = super::compare::threads(arguments.jobs);
    let found = numerics(engines(), &NumericsOptions { op, dtype, operands, orders, seed, jobs })?;
    if let Some(refused) = found.rows.iter().all(|row| row.refused.is_some()).then(|| found.rows.first()).flatten() {
        return Err(refused.refused.clone().unwrap_or_default());
    }
    if let Some(path) = &svg {
        output::write(path, found.svg())?;
    }
    if let Some(path) = &csv {
        output::write(path, found.csv())?;
    }
    Ok(if arguments.json { serde_json::to_string_pretty(&found).unwrap_or_default() } else { found.text() })
}
