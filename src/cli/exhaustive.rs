//! `watershed exhaustive`: all pairs of the 16-bit formats, or very many random pairs of the larger ones.

use std::collections::HashSet;
use std::fmt::{self, Write as _};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{Exit, output, print, print_error, progress};
use watershed_arith::comparator::{self, Selection};
use watershed_arith::format::{Build, builds};
use watershed_arith::round::Packed;
use watershed_arith::{DType, Flags, Mode, Round, adder, multiplier};
use watershed_kernel::Rng;
use watershed_oracle::exact::shape;
use watershed_oracle::fast::{Question, answer};
use watershed_oracle::soft::{self, FloatOp};

/// Check the datapaths against the oracles on every pair of operands, or print a table of how they compare.
#[derive(Debug, Args)]
#[command(after_help = "\
All pairs of f16 and bf16, added, multiplied, minimum and maximum, in 256 blocks of 2^24 pairs each: the stage functions
against SoftFloat (f16) and SoftFloat's f32 rounded to odd (bf16), value and flags. With --random: that many random pairs of
f32 and f64 for add, subtract and multiply in every rounding mode, against SoftFloat.

With --table: every operation of every format in every mode on a sample, all pairs of FP8 among it, as a table in Markdown;
--random says how many random pairs are taken beside the special ones (10000).

A file of finished blocks makes a run resumable, also one that a signal ended; it can be shared by shards that run one after
another.

Examples:
  watershed exhaustive --resume all-pairs.txt
  watershed exhaustive --type f16 --op add --round all --shard 1/4
  watershed exhaustive --random 10000000
  watershed exhaustive --table

Exit status:
  0  no mismatch
  1  at least one mismatch, or a run that was told to end before all was done
  2  the command line or the file of finished blocks is wrong")]
pub(super) struct Arguments {
    /// Only this type: f16 or bf16, with --random f32 or f64; can be given several times
    #[arg(long = "type", value_name = "TYPE")]
    dtypes: Vec<DType>,
    /// Only this operation: add, mul, min or max, with --random add, sub or mul; can be given several times
    #[arg(long = "op", value_name = "OP")]
    ops: Vec<String>,
    /// Rounding mode of all pairs: nearest-even, toward-zero, up, down or all
    #[arg(long, value_name = "MODE", default_value = "nearest-even")]
    round: String,
    /// Compare this many random pairs of the larger formats for each operation and mode instead
    #[arg(long, value_name = "PAIRS")]
    random: Option<u64>,
    /// Print a table: some pairs of every format, operation and mode, with the mismatches in values and in flags
    #[arg(long, conflicts_with_all = ["dtypes", "ops", "round", "shard", "resume", "blocks"])]
    table: bool,
    /// Seed of the random pairs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Only shard I of N, counted from 1
    #[arg(long, value_name = "I/N", value_parser = shard)]
    shard: Option<(usize, usize)>,
    /// Write finished blocks to this file, and leave out those that stand in it
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Check at most this many blocks that are still open
    #[arg(long, value_name = "N")]
    blocks: Option<usize>,
    /// Threads; 0 is one for each processor
    #[arg(short, long, alias = "threads", value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1024))]
    jobs: u16,
    #[command(flatten)]
    _status: super::messages::StatusOptions,
}

fn shard(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match parts {
        Some((i, n)) if 1 <= i && i <= n => Ok((i, n)),
        _ => Err("a shard is I/N, 1/4 to 4/4 for example".to_owned()),
    }
}

/// What a block asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Op {
    Add,
    Sub,
    Mul,
    Min,
    Max,
}

impl Op {
    const ALL: [(&'static str, Self); 5] =
        [("add", Self::Add), ("sub", Self::Sub), ("mul", Self::Mul), ("min", Self::Min), ("max", Self::Max)];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, op)| *op == self).map_or("", |(name, _)| name)
    }
}

/// A part of the work: 2^24 pairs, or a part of the random ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Block {
    dtype: DType,
    op: Op,
    round: Round,
    index: u64,
    pairs: u64,
    /// Seed of random pairs; `None` for all pairs.
    seed: Option<u64>,
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} block {} pairs {}", self.dtype, self.op.name(), self.round, self.index, self.pairs)?;
        self.seed.map_or(Ok(()), |seed| write!(f, " seed {seed}"))
    }
}

/// A pair on which datapath and oracle differ.
#[derive(Debug, Clone)]
struct Mismatch {
    block: Block,
    a: u64,
    b: u64,
    got: Packed,
    expected: (u64, Flags),
}

const ALL_PAIRS_BLOCK: u64 = 1 << 24;
const RANDOM_BLOCK: u64 = 1 << 20;

pub(super) fn main(arguments: &Arguments) -> Exit {
    match execute(arguments) {
        Ok(true) => Exit::Fine,
        Ok(false) => Exit::Failed,
        Err(message) => {
            print_error(&format!("error: {message}"));
            Exit::Bad
        }
    }
}

/// All blocks of the run, in order.
fn blocks(arguments: &Arguments) -> Result<Vec<Block>, String> {
    let random = arguments.random;
    let (dtypes, ops): (&[DType], &[Op]) = match random {
        None => (&[DType::F16, DType::Bf16], &[Op::Add, Op::Mul, Op::Min, Op::Max]),
        Some(_) => (&[DType::F32, DType::F64], &[Op::Add, Op::Sub, Op::Mul]),
    };
    let what = if random.is_some() { "random pairs" } else { "all pairs" };
    if let Some(dtype) = arguments.dtypes.iter().find(|dtype| !dtypes.contains(dtype)) {
        return Err(format!("{what} are for {} and {}, not {dtype}", dtypes[0], dtypes[1]));
    }
    let mut chosen = Vec::new();
    for name in &arguments.ops {
        let op = Op::ALL.iter().find(|(known, op)| known == name && ops.contains(op));
        chosen.push(op.ok_or_else(|| format!("{what} know no operation `{name}`"))?.1);
    }
    let rounds: Vec<Round> = match arguments.round.as_str() {
        _ if random.is_some() => Round::ALL.to_vec(),
        "all" => Round::ALL.to_vec(),
        name => vec![name.parse().map_err(|error: watershed_arith::UnknownName| error.to_string())?],
    };
    let mut blocks = Vec::new();
    for &dtype in dtypes.iter().filter(|dtype| arguments.dtypes.is_empty() || arguments.dtypes.contains(dtype)) {
        for &op in ops.iter().filter(|op| chosen.is_empty() || chosen.contains(op)) {
            // Minimum and maximum do not round.
            let rounds = if matches!(op, Op::Min | Op::Max) { &rounds[..1] } else { &rounds[..] };
            for &round in rounds {
                let total = random.unwrap_or(1 << 32);
                let size = if random.is_some() { RANDOM_BLOCK } else { ALL_PAIRS_BLOCK };
                for index in 0..total.div_ceil(size) {
                    let pairs = size.min(total - index * size);
                    blocks.push(Block { dtype, op, round, index, pairs, seed: random.map(|_| arguments.seed) });
                }
            }
        }
    }
    if let Some((i, n)) = arguments.shard {
        blocks = blocks.into_iter().skip(i - 1).step_by(n).collect();
    }
    Ok(blocks)
}

/// The blocks that a file of finished blocks names.
fn finished(path: &Path) -> Result<HashSet<String>, String> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(HashSet::new()),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    let shape = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        matches!(words[..], [_, _, _, "block", _, "pairs", _] | [_, _, _, "block", _, "pairs", _, "seed", _])
    };
    for (number, line) in text.lines().enumerate() {
        if !shape(line) {
            return Err(format!("{}:{}: `{line}` is no finished block", path.display(), number + 1));
        }
    }
    Ok(text.lines().map(ToOwned::to_owned).collect())
}

fn execute(arguments: &Arguments) -> Result<bool, String> {
    let threads = super::compare::threads(usize::from(arguments.jobs));
    if arguments.table {
        let (text, sound) = super::table::table(arguments.random.unwrap_or(10_000), arguments.seed, threads);
        print(&text);
        return Ok(sound);
    }
    let all = blocks(arguments)?;
    let outputs: Vec<_> = arguments.resume.iter().map(|path| ("--resume", path.clone())).collect();
    let _claims = output::claim(&outputs, &[]).map_err(|error| error.trim_start_matches("error: ").to_owned())?;
    progress::handle_signals();
    let done = arguments.resume.as_ref().map_or(Ok(HashSet::new()), |path| finished(path))?;
    let mut open: Vec<Block> = all.iter().copied().filter(|block| !done.contains(&block.to_string())).collect();
    let before = all.len() - open.len();
    if let Some(limit) = arguments.blocks {
        open.truncate(limit);
    }
    // The whole file is written at each block: it is short, and never half there.
    let mut log: Vec<String> = done.into_iter().collect();
    log.sort();
    let log = Mutex::new(log);

    let pairs: u64 = open.iter().map(|block| block.pairs).sum();
    let started = Instant::now();
    if let Some(&first) = open.first() {
        // A sample of the first block says how long the whole will take.
        let sample = Block { pairs: first.pairs.min(1 << 18), ..first };
        let mut none = Vec::new();
        run(sample, &mut none);
        let seconds = started.elapsed().as_secs_f64() / sample.pairs as f64 * pairs as f64 / threads as f64;
        print(&format!(
            "{} blocks, {pairs} pairs, {before} blocks done before; about {} on {threads} threads",
            open.len(),
            duration(seconds)
        ));
    }

    let bar = ProgressBar::hidden();
    if super::shows_progress() {
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.set_length(open.len() as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3} %  {pos}/{len} blocks, {eta} left") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(500));
    }
    let next = AtomicUsize::new(0);
    let mismatches: Mutex<Vec<Mismatch>> = Mutex::new(Vec::new());
    let write_error = Mutex::new(None);
    let checked: Mutex<Vec<Block>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !progress::stopped()
                    && let Some(&block) = open.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let mut found = Vec::new();
                    run(block, &mut found);
                    // A block with a mismatch is not finished: it is checked again after the repair.
                    if found.is_empty()
                        && let Some(path) = &arguments.resume
                        && let Ok(mut log) = log.lock()
                    {
                        log.push(block.to_string());
                        if let (Err(error), Ok(mut slot)) =
                            (output::write(path, log.join("\n") + "\n"), write_error.lock())
                        {
                            *slot = Some(error);
                        }
                    }
                    if let Ok(mut all) = mismatches.lock() {
                        all.extend(found);
                    }
                    if let Ok(mut checked) = checked.lock() {
                        checked.push(block);
                        progress::count(checked.len(), Some(open.len()), "blocks");
                    }
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    if let Ok(Some(error)) = write_error.into_inner() {
        return Err(error.trim_start_matches("error: ").to_owned());
    }
    let mismatches = mismatches.into_inner().unwrap_or_default();
    let checked = checked.into_inner().unwrap_or_default();
    report(&checked, &mismatches, started.elapsed());
    let complete = before + checked.len() == all.len();
    if !complete {
        print(&format!("{} of {} blocks are still open", all.len() - before - checked.len(), all.len()));
    }
    Ok(mismatches.is_empty() && complete)
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.1} s"),
        s if s < 6000.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

fn report(blocks: &[Block], mismatches: &[Mismatch], took: Duration) {
    let mut text = String::new();
    let mut rows: Vec<(Block, u64, usize)> = Vec::new();
    let same = |a: &Block, b: &Block| (a.dtype, a.op, a.round) == (b.dtype, b.op, b.round);
    for block in blocks {
        match rows.iter_mut().find(|(row, ..)| same(row, block)) {
            Some((_, pairs, _)) => *pairs += block.pairs,
            None => rows.push((*block, block.pairs, 0)),
        }
    }
    for mismatch in mismatches {
        if let Some((.., count)) = rows.iter_mut().find(|(row, ..)| same(row, &mismatch.block)) {
            *count += 1;
        }
    }
    text += "type  op   rounding           pairs  mismatches\n";
    for (block, pairs, count) in &rows {
        let _ =
            writeln!(text, "{:<5} {:<4} {:<12} {pairs:>11}  {count:>10}", block.dtype, block.op.name(), block.round);
    }
    for m in mismatches.iter().take(20) {
        let digits = m.block.dtype.bits() as usize / 4;
        let _ = writeln!(
            text,
            "{} {} {}: {:0digits$x} {:0digits$x} => {:0digits$x} {}, expected {:0digits$x} {}",
            m.block.dtype,
            m.block.op.name(),
            m.block.round,
            m.a,
            m.b,
            m.got.bits,
            m.got.flags,
            m.expected.0,
            m.expected.1
        );
    }
    let _ = writeln!(
        text,
        "{} in all, {} mismatches, {}",
        blocks.iter().map(|b| b.pairs).sum::<u64>(),
        mismatches.len(),
        duration(took.as_secs_f64())
    );
    print(&text);
}

/// Puts every pair of a block through the stage functions and the oracle; keeps at most 1000 mismatches.
fn run(block: Block, found: &mut Vec<Mismatch>) {
    match block.dtype {
        DType::F16 => with_format::<builds::F16>(block, found),
        DType::Bf16 => with_format::<builds::Bf16>(block, found),
        DType::F32 => with_format::<builds::F32>(block, found),
        _ => with_format::<builds::F64>(block, found),
    }
}

fn with_format<B: Build>(block: Block, found: &mut Vec<Mismatch>) {
    let mode = Mode::rounding(block.round);
    match block.op {
        Op::Add => pairs(block, found, Question::Add, FloatOp::Add, |a, b| adder::evaluate::<B>(mode, a, b, false)),
        Op::Sub => pairs(block, found, Question::Add, FloatOp::Sub, |a, b| adder::evaluate::<B>(mode, a, b, true)),
        Op::Mul => pairs(block, found, Question::Mul, FloatOp::Mul, |a, b| multiplier::evaluate::<B>(mode, a, b)),
        Op::Min => pairs(block, found, Question::Min, FloatOp::Add, |a, b| {
            comparator::evaluate_float::<B>(mode, Selection::Min, a, b)
        }),
        Op::Max => pairs(block, found, Question::Max, FloatOp::Add, |a, b| {
            comparator::evaluate_float::<B>(mode, Selection::Max, a, b)
        }),
    }
}

/// Question and operation are two names of the same: the one for 16-bit formats, the other for the larger ones.
fn pairs(block: Block, found: &mut Vec<Mismatch>, question: Question, op: FloatOp, unit: impl Fn(u64, u64) -> Packed) {
    let Block { dtype, round, .. } = block;
    let mut check = |a: u64, b: u64, expected: Option<(u64, Flags)>| {
        let got = unit(a, b);
        let expected = expected.expect("the oracle knows the format");
        if (got.bits, got.flags) != expected && found.len() < 1000 {
            found.push(Mismatch { block, a, b, got, expected });
        }
    };
    if let Some(seed) = block.seed {
        // Every block has a stream of its own, so that shards and threads do not matter.
        let mut rng = Rng::new(seed, block.index);
        for _ in 0..block.pairs {
            let (a, b) = random_pair(&mut rng, dtype);
            check(a, b, soft::operate(op, dtype, round, a, b));
        }
    } else {
        let first = block.index * ALL_PAIRS_BLOCK;
        for pair in first..first + block.pairs {
            let (a, b) = (pair >> 16, pair & 0xffff);
            check(a, b, answer(question, dtype, round, a, b));
        }
    }
}

/// Bits of a lane below the exponent field.
pub(super) fn fraction_bits(dtype: DType) -> u64 {
    shape(dtype).map_or(0, |shape| u64::from(shape.precision - 1 + shape.pad))
}

/// A third each: unrelated patterns; exponents near each other; nearly equal magnitudes.
pub(super) fn random_pair(rng: &mut Rng, dtype: DType) -> (u64, u64) {
    let mask = dtype.lane_mask();
    let fraction_bits = fraction_bits(dtype);
    let (a, b) = (rng.bits() & mask, rng.bits() & mask);
    match rng.below(3) {
        0 => (a, b),
        1 => {
            let distance = rng.below(2 * fraction_bits + 7).wrapping_sub(fraction_bits + 3);
            let exponent = (a >> fraction_bits).wrapping_add(distance);
            (a, (exponent << fraction_bits | b & ((1 << fraction_bits) - 1)) & mask)
        }
        _ => (a, (a ^ b & (1 << (dtype.bits() - 1))).wrapping_add(rng.below(9)).wrapping_sub(4) & mask),
    }
}
