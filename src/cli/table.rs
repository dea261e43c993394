//! The table of `watershed exhaustive --table`: every operation of every format in every mode, compared with its oracle.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::exhaustive::{fraction_bits, random_pair};
use watershed_arith::comparator::Selection;
use watershed_arith::{Accumulate, DType, Function, Mode, Op, Quad, QuadUnit, Round, Unit, repsum};
use watershed_kernel::Rng;
use watershed_oracle::small::{self, Deviation};
use watershed_oracle::soft::{self, FloatOp, Predicate};
use watershed_oracle::{exact, lane_pair, lane_predicate, quad_pair};

const FLOATS: [DType; 7] =
    [DType::F16, DType::Bf16, DType::Tf32, DType::F32, DType::F64, DType::Fp8E4m3, DType::Fp8E5m2];
const INTEGERS: [DType; 4] = [DType::I32, DType::U32, DType::I64, DType::U64];
const DEVIATIONS: usize = Deviation::ALL.len();

/// The operations on words as bits.
fn gates() -> Vec<Op> {
    Op::ALL.iter().copied().filter(|op| op.is_bitwise()).collect()
}

/// Counts of compared vectors and of differences.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    vectors: u64,
    values: u64,
    flags: u64,
    deviations: [u64; DEVIATIONS],
}

impl Tally {
    fn record<V: PartialEq + Copy, F: PartialEq + Copy>(&mut self, got: (V, F), expected: (V, F)) {
        self.vectors += 1;
        self.values += u64::from(got.0 != expected.0);
        self.flags += u64::from(got.1 != expected.1);
    }

    fn add(&mut self, other: Self) {
        self.vectors += other.vectors;
        self.values += other.values;
        self.flags += other.flags;
        for (all, more) in self.deviations.iter_mut().zip(other.deviations) {
            *all += more;
        }
    }
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
enum Row {
    Arithmetic(DType, FloatOp),
    Extremes(DType),
    Predicates(DType),
    Integers(DType),
    Gates,
    Widen(Accumulate),
    Narrow(Accumulate),
    Locators(DType),
    RepSum,
}

impl Row {
    fn all() -> Vec<Self> {
        let mut rows = Vec::new();
        for dtype in FLOATS {
            rows.extend([FloatOp::Add, FloatOp::Sub, FloatOp::Mul].map(|op| Self::Arithmetic(dtype, op)));
            rows.extend([Self::Extremes(dtype), Self::Predicates(dtype)]);
        }
        rows.extend(INTEGERS.map(Self::Integers));
        rows.push(Self::Gates);
        for &pair in Accumulate::ALL {
            rows.extend([Self::Widen(pair), Self::Narrow(pair)]);
        }
        rows.extend([Self::Locators(DType::I64), Self::Locators(DType::F64), Self::RepSum]);
        rows
    }

    fn modes(self) -> &'static [Round] {
        match self {
            Self::Arithmetic(..) | Self::Narrow(_) => Round::ALL,
            _ => &[Round::NearestEven],
        }
    }

    /// Format, operations, oracle.
    fn words(self) -> (String, String, &'static str) {
        let softfloat = |dtype| matches!(dtype, DType::F16 | DType::F32 | DType::F64);
        match self {
            Self::Arithmetic(dtype, op) => {
                let op = match op {
                    FloatOp::Add => "add",
                    FloatOp::Sub => "sub",
                    FloatOp::Mul => "mul",
                };
                (dtype.to_string(), op.to_owned(), if softfloat(dtype) { "SoftFloat" } else { "rustc_apfloat, exact" })
            }
            Self::Extremes(dtype) => (dtype.to_string(), "min, max, minnum, maxnum".to_owned(), "rule text"),
            Self::Predicates(dtype) => {
                (dtype.to_string(), "eq, le, lt".to_owned(), if softfloat(dtype) { "SoftFloat" } else { "rule text" })
            }
            Self::Integers(dtype) => (dtype.to_string(), "sum, prod, min, max".to_owned(), "plain integers"),
            Self::Gates => (
                "words".to_owned(),
                gates().iter().map(|op| op.name()).collect::<Vec<_>>().join(", "),
                "plain integers",
            ),
            Self::Widen(pair) => (format!("{} to {}", pair.operand(), pair.accumulator()), "widen".to_owned(), "exact"),
            Self::Narrow(pair) => {
                (format!("{} to {}", pair.accumulator(), pair.operand()), "narrow".to_owned(), "exact")
            }
            Self::Locators(DType::F64) => ("f64 x 4".to_owned(), "minmaxloc, minmaxnumloc".to_owned(), "rule text"),
            Self::Locators(dtype) => (format!("{dtype} x 4"), "minmaxloc".to_owned(), "rule text"),
            Self::RepSum => ("f64".to_owned(), "repsum".to_owned(), "exact"),
        }
    }

    fn run(self, random: u64, seed: u64, round: Round) -> Tally {
        let mut tally = Tally::default();
        let mode = Mode::rounding(round);
        let mut rng = Rng::new(seed, 0);
        match self {
            Self::Arithmetic(dtype, op) => {
                let function = match op {
                    FloatOp::Add => Function::Add,
                    FloatOp::Sub => Function::Sub,
                    FloatOp::Mul => Function::Mul,
                };
                let unit = Unit::new(function, dtype, mode);
                for (a, b) in pairs(dtype, random, &mut rng) {
                    let got = unit.evaluate(a, b);
                    let softfloat = soft::operate(op, dtype, round, a, b);
                    let expected = softfloat.unwrap_or_else(|| exact::operate(op, dtype, round, a, b));
                    tally.record((got.bits, got.flags), expected);
                    if softfloat.is_none() {
                        // Two oracles that differ in an unknown way are as bad as a wrong value.
                        match small::deviation(op, dtype, round, (a, b), expected) {
                            Ok(None) => {}
                            Ok(Some(listed)) => tally.deviations[listed as usize] += 1,
                            Err(()) => tally.values += 1,
                        }
                    }
                }
            }
            Self::Extremes(dtype) => {
                lanes(&mut tally, dtype, mode, &[Op::Min, Op::Max, Op::MinNum, Op::MaxNum], random, &mut rng);
            }
            Self::Integers(dtype) => {
                lanes(&mut tally, dtype, mode, &[Op::Sum, Op::Prod, Op::Min, Op::Max], random, &mut rng);
            }
            Self::Gates => {
                lanes(&mut tally, DType::U64, mode, &gates(), random, &mut rng);
            }
            Self::Predicates(dtype) => {
                for (function, predicate) in [
                    (Function::Select(Selection::Equal), Predicate::Equal),
                    (Function::Select(Selection::LessOrEqual), Predicate::LessOrEqual),
                    (Function::Select(Selection::Less), Predicate::Less),
                ] {
                    let unit = Unit::new(function, dtype, mode);
                    for (a, b) in pairs(dtype, random, &mut rng) {
                        let softfloat = soft::predicate(predicate, dtype, a, b);
                        let (truth, flags) = softfloat.unwrap_or_else(|| lane_predicate(predicate, dtype, a, b));
                        let got = unit.evaluate(a, b);
                        tally.record((got.bits, got.flags), (u64::from(truth), flags));
                    }
                }
            }
            Self::Widen(pair) => {
                for lane in 0..1 << pair.operand().bits() {
                    let got = pair.widen(mode, lane);
                    tally
                        .record((got.bits, got.flags), exact::convert(pair.operand(), pair.accumulator(), round, lane));
                }
            }
            Self::Narrow(pair) => {
                let mut check = |lane: u64| {
                    let got = pair.narrow(mode, lane);
                    tally
                        .record((got.bits, got.flags), exact::convert(pair.accumulator(), pair.operand(), round, lane));
                };
                if pair.accumulator().bits() == 16 {
                    (0..1 << 16).for_each(check);
                } else {
                    for _ in 0..random {
                        // Near a number of the narrow format, where ties lie.
                        let middle = pair.widen(mode, rng.bits() & pair.operand().lane_mask()).bits;
                        check((middle ^ (1 << rng.below(26))).wrapping_add(rng.below(3)).wrapping_sub(1) & 0xffff_ffff);
                    }
                }
            }
            Self::Locators(dtype) => {
                let ops = if dtype.is_float() { &[Op::MinMaxLoc, Op::MinMaxNumLoc][..] } else { &[Op::MinMaxLoc] };
                let special = special(dtype).len().pow(2);
                for &op in ops {
                    let Some(unit) = QuadUnit::new(op, dtype, mode) else { continue };
                    for (k, (a, b)) in pairs(dtype, random, &mut rng).into_iter().enumerate() {
                        // Special pairs, NaNs of both kinds among them, with every order of places.
                        let drawn = [(rng.below(3), rng.below(3))];
                        let places = if k < special { &[(0, 1), (1, 0), (1, 1)][..] } else { &drawn };
                        for &(i, j) in places {
                            let (p, q) = (Quad::of([a, i, b, j]), Quad::of([b, j, a, i]));
                            let (got, expected) = (unit.evaluate(p, q), quad_pair(op, dtype, mode, p, q));
                            tally.record((got.lanes, got.code), (expected.lanes, expected.code));
                        }
                    }
                }
            }
            Self::RepSum => reproducible_sums(&mut tally, mode, random, &mut rng),
        }
        tally
    }
}

/// Sums of the quad unit whose bits no order changes.
fn reproducible_sums(tally: &mut Tally, mode: Mode, random: u64, rng: &mut Rng) {
    let Some(unit) = QuadUnit::new(Op::RepSum, DType::F64, mode) else { return };
    let mut sum = repsum::split(0);
    for (a, b) in pairs(DType::F64, random, rng) {
        for operand in [repsum::split(a), repsum::split(b)] {
            let (got, expected) = (unit.evaluate(sum, operand), quad_pair(Op::RepSum, DType::F64, mode, sum, operand));
            tally.record(
                (got.lanes, (got.code, got.m, got.oflow_id)),
                (expected.lanes, (expected.code, expected.m, expected.oflow_id)),
            );
            // Special values absorb everything: begin anew behind them.
            sum = if got.m >= repsum::M_MINUS_INFINITY { operand } else { got };
        }
        if rng.below(8) == 0 {
            sum = repsum::split(a);
        }
    }
}

/// Operations of the rule text on lanes.
fn lanes(tally: &mut Tally, dtype: DType, mode: Mode, ops: &[Op], random: u64, rng: &mut Rng) {
    for &op in ops {
        let Some(unit) = Unit::of(op, dtype, mode) else { continue };
        for (a, b) in pairs(dtype, random, rng) {
            let got = unit.evaluate(a, b);
            tally.record((got.bits, got.flags), lane_pair(op, dtype, mode, a, b));
        }
    }
}

/// All pairs of FP8; elsewhere all pairs of special patterns, and random ones.
fn pairs(dtype: DType, random: u64, rng: &mut Rng) -> Vec<(u64, u64)> {
    if dtype.bits() == 8 {
        return (0..1 << 16).map(|pair| (pair >> 8, pair & 0xff)).collect();
    }
    let special = special(dtype);
    let mut pairs: Vec<(u64, u64)> = special.iter().flat_map(|&a| special.iter().map(move |&b| (a, b))).collect();
    if dtype.is_float() {
        pairs.extend((0..random).map(|_| random_pair(rng, dtype)));
    } else {
        pairs.extend((0..random).map(|_| {
            // Of any length, so that products do not overflow every time.
            let mut number = || (rng.bits() & dtype.lane_mask()) >> rng.below(u64::from(dtype.bits()));
            (number(), number())
        }));
    }
    pairs
}

/// Ends and middles of the exponent and the fraction, with both signs; of integers the ends of their halves.
fn special(dtype: DType) -> Vec<u64> {
    let (bits, mask) = (u64::from(dtype.bits()), dtype.lane_mask());
    if !dtype.is_float() {
        let (half, top) = (1 << (bits / 2), 1 << (bits - 1));
        return vec![0, 1, 2, half - 1, half, half + 1, top - 1, top, top + 1, mask - 1, mask];
    }
    let fraction_bits = fraction_bits(dtype);
    let (ones, fields) = ((1u64 << fraction_bits) - 1, (1u64 << (bits - 1 - fraction_bits)) - 1);
    let mut patterns = Vec::new();
    for field in [0, 1, 2, fields / 2 - 1, fields / 2, fields / 2 + 1, fields - 1, fields] {
        for fraction in [0, 1, 1 << (fraction_bits - 1), ones - 1, ones] {
            let pattern = field << fraction_bits | fraction;
            patterns.extend([pattern, pattern | 1 << (bits - 1)]);
        }
    }
    patterns
}

/// The table as Markdown, and whether nothing differs.
pub(super) fn table(random: u64, seed: u64, threads: usize) -> (String, bool) {
    table_of(&Row::all(), random, seed, threads)
}

/// The same of some rows.
fn table_of(rows: &[Row], random: u64, seed: u64, threads: usize) -> (String, bool) {
    let work: Vec<(usize, Round)> =
        rows.iter().enumerate().flat_map(|(k, row)| row.modes().iter().map(move |&round| (k, round))).collect();
    let next = AtomicUsize::new(0);
    let tallies = Mutex::new(vec![Tally::default(); rows.len()]);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(&(k, round)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let tally = rows[k].run(random, seed, round);
                    if let Ok(mut tallies) = tallies.lock() {
                        tallies[k].add(tally);
                    }
                }
            });
        }
    });
    let tallies = tallies.into_inner().unwrap_or_default();
    let mut text = String::from(
        "| format | operations | rounding modes | vectors a mode | mismatches in values | in flags | oracle |\n\
         |---|---|--:|--:|--:|--:|---|\n",
    );
    let mut all = Tally::default();
    for (row, tally) in rows.iter().zip(&tallies) {
        let (format, operations, oracle) = row.words();
        let modes = row.modes().len() as u64;
        let _ = writeln!(
            text,
            "| {format} | {operations} | {modes} | {} | {} | {} | {oracle} |",
            tally.vectors / modes,
            tally.values,
            tally.flags
        );
        all.add(*tally);
    }
    let _ = writeln!(text, "| all | | | {} in all | {} | {} | |", all.vectors, all.values, all.flags);
    text += "\nKnown deviations of rustc_apfloat, settled by exact evaluation:\n\n";
    for (deviation, count) in Deviation::ALL.iter().zip(all.deviations) {
        let _ = writeln!(text, "- {}: {count} vectors", deviation.describe());
    }
    (text, all.vectors > 0 && all.values == 0 && all.flags == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_arith::Flags;

    #[test]
    fn the_table_does_not_depend_on_the_number_of_threads() {
        threads_make_no_difference(4, 15);
    }

    #[test]
    #[ignore = "takes long: make soak"]
    fn the_whole_table_does_not_depend_on_the_number_of_threads() {
        threads_make_no_difference(1, 50);
    }

    /// To one row in this many; a format has five kinds of rows.
    fn threads_make_no_difference(step: usize, random: u64) {
        let rows: Vec<Row> = Row::all().into_iter().step_by(step).collect();
        let (text, sound) = table_of(&rows, random, 1, 1);
        assert!(sound, "{text}");
        assert_eq!(table_of(&rows, random, 1, 3).0, text);
    }

    #[test]
    fn a_difference_is_counted_where_it_is() {
        let mut tally = Tally::default();
        tally.record((1, Flags::NONE), (1, Flags::NONE));
        tally.record((1, Flags::NONE), (2, Flags::NONE));
        tally.record((1, Flags::NONE), (1, Flags::INEXACT));
        assert_eq!((tally.vectors, tally.values, tally.flags), (3, 1, 1));
    }
}
