//! The first difference of two waveforms.
//!
//! **What is compared.** Signals of the same full name, and for each moment the values that hold once all changes of
//! that moment are made. The order of declarations, identifier codes, repeated values, time scales and ways to
//! shorten bits do not matter. A value that was never given counts as `x`. Reported are
//!
//! - signals that only one file has, and signals of different width or type;
//! - the first moment at which values differ, with the signals that do, and a few changes before and after it;
//! - if no value differs: ends at different times.
//!
//! **Cost.** Both files are read once, side by side, and only as far as the first difference; when there is one, a
//! second time up to it, to collect what was before. Memory is the headers and current values.
//!
//! **Limits.** Names given to values are shown, not compared. Context is shown for the first [`MAX_SHOWN`] signals.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};

use super::vcd_in::{FS_PER_PS, Kind, Variable, VcdError, VcdReader, display_value};
use super::{Period, Selection, SelectionError};

/// Signals of which values and context are shown.
pub const MAX_SHOWN: usize = 6;

/// Steps read behind the difference in search of context, at most.
const MAX_STEPS_AFTER: usize = 10_000;

/// How to compare.
#[derive(Debug, Clone)]
pub struct DiffOptions {
    /// Changes of a differing signal shown before the difference, and as many after it.
    pub context: usize,
    /// Globs of signals that are passed over.
    pub ignore: Vec<String>,
}

impl Default for DiffOptions {
    fn default() -> Self {
        DiffOptions { context: 3, ignore: Vec::new() }
    }
}

/// Why two waveforms could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// One of the files cannot be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: VcdError,
    },
    /// A glob of signals to ignore cannot be read.
    #[error(transparent)]
    Glob(#[from] SelectionError),
}

/// A signal that is declared differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redeclared {
    /// Full name.
    pub name: String,
    /// Width and type in the first file.
    pub a: String,
    /// Width and type in the second file.
    pub b: String,
}

/// Values of a signal in both files from a moment on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The moment, in femtoseconds.
    pub time_fs: u128,
    /// Value in the first file, as shown.
    pub a: String,
    /// Value in the second file, as shown.
    pub b: String,
    /// Whether this is the moment of the first difference.
    pub first: bool,
}

/// A signal whose values differ at the first difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differing {
    /// Full name.
    pub name: String,
    /// Bits.
    pub width: u32,
    /// The difference, with changes before and after it; only for the first [`MAX_SHOWN`] signals.
    pub rows: Vec<Row>,
}

/// The first moment at which values differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstDifference {
    /// The moment, in femtoseconds.
    pub time_fs: u128,
    /// The signals that differ, in the first file's order.
    pub signals: Vec<Differing>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// The first file.
    pub a: PathBuf,
    /// The second file.
    pub b: PathBuf,
    /// Signals compared.
    pub compared: usize,
    /// Moments compared.
    pub steps: u64,
    /// Clock period, if the first file gives it.
    pub period: Option<Period>,
    /// Signals that only the first file has.
    pub only_in_a: Vec<String>,
    /// Signals that only the second file has.
    pub only_in_b: Vec<String>,
    /// Signals declared differently.
    pub redeclared: Vec<Redeclared>,
    /// The first moment at which values differ.
    pub first: Option<FirstDifference>,
    /// Ends of the two files in femtoseconds, if they differ and no value does.
    pub ends: Option<(u128, u128)>,
}

impl Diff {
    /// Whether nothing differs.
    pub fn is_equal(&self) -> bool {
        self.only_in_a.is_empty()
            && self.only_in_b.is_empty()
            && self.redeclared.is_empty()
            && self.first.is_none()
            && self.ends.is_none()
    }
}

/// Compares two VCD files.
///
/// # Errors
/// A file that cannot be read, or a glob in `options` that cannot.
pub fn diff(a: &Path, b: &Path, options: &DiffOptions) -> Result<Diff, DiffError> {
    let ignore = match &options.ignore[..] {
        [] => None,
        globs => Some(Selection::new(globs)?),
    };
    let mut sides = [Side::open(a)?, Side::open(b)?];
    let mut found = Diff {
        a: a.to_owned(),
        b: b.to_owned(),
        compared: 0,
        steps: 0,
        period: sides[0].reader.header().period,
        only_in_a: Vec::new(),
        only_in_b: Vec::new(),
        redeclared: Vec::new(),
        first: None,
        ends: None,
    };
    let pairs = match_up(&sides, ignore.as_ref(), &mut found);
    found.compared = pairs.len();

    let by_signal = [0, 1].map(|side| {
        let mut pairs_of = vec![Vec::new(); sides[side].reader.header().signals];
        for (index, pair) in pairs.iter().enumerate() {
            pairs_of[pair.variables[side].signal].push(index);
        }
        pairs_of
    });

    // Only pairs that were written in this step can have become different: all others were equal before.
    let mut touched: Vec<usize> = Vec::new();
    while let Some(time_fs) = step(&mut sides)? {
        found.steps += 1;
        touched.clear();
        for (side, by_signal) in sides.iter().zip(&by_signal) {
            touched.extend(side.changed.iter().flat_map(|signal| &by_signal[*signal]));
        }
        touched.retain(|pair| pairs[*pair].differs(&sides));
        if touched.is_empty() {
            continue;
        }
        touched.sort_unstable();
        touched.dedup();
        let mut signals: Vec<Differing> = (touched.iter())
            .map(|pair| {
                let variable = &pairs[*pair].variables[0];
                Differing { name: variable.name.clone(), width: variable.width, rows: Vec::new() }
            })
            .collect();
        let shown: Vec<&Pair> = touched.iter().take(MAX_SHOWN).map(|pair| &pairs[*pair]).collect();
        for (signal, rows) in signals.iter_mut().zip(context(a, b, time_fs, &shown, options.context)?) {
            signal.rows = rows;
        }
        found.first = Some(FirstDifference { time_fs, signals });
        return Ok(found);
    }
    let [end_a, end_b] = [sides[0].last_fs, sides[1].last_fs];
    if end_a != end_b && found.is_equal() {
        found.ends = Some((end_a, end_b));
    }
    Ok(found)
}

/// One of the two files while it is read.
struct Side {
    path: PathBuf,
    reader: VcdReader,
    /// Signals written in the current step.
    changed: Vec<usize>,
    last_fs: u128,
}

impl Side {
    fn open(path: &Path) -> Result<Side, DiffError> {
        let reader = VcdReader::open(path).map_err(|error| DiffError::Read { path: path.to_owned(), error })?;
        Ok(Side { path: path.to_owned(), reader, changed: Vec::new(), last_fs: 0 })
    }
}

/// The same signal in both files.
struct Pair {
    variables: [Variable; 2],
}

impl Pair {
    fn differs(&self, sides: &[Side; 2]) -> bool {
        let [a, b] = &self.variables;
        sides[0].reader.value(a.signal) != sides[1].reader.value(b.signal)
    }

    fn shown(&self, side: usize, sides: &[Side; 2]) -> String {
        let variable = &self.variables[side];
        let reader = &sides[side].reader;
        let table = variable.table.and_then(|table| reader.header().tables.get(table));
        display_value(reader.value(variable.signal), variable.width, table)
    }
}

/// Reads the next moment in whichever files have it.
fn step(sides: &mut [Side; 2]) -> Result<Option<u128>, DiffError> {
    let Some(time_fs) = sides.iter().filter_map(|side| side.reader.next_time()).min() else {
        return Ok(None);
    };
    for side in sides {
        side.changed.clear();
        if side.reader.next_time() == Some(time_fs) {
            side.last_fs = time_fs;
            let read = side.reader.step(&mut side.changed);
            read.map_err(|error| DiffError::Read { path: side.path.clone(), error })?;
        }
    }
    Ok(Some(time_fs))
}

/// Finds the signals to compare; what has no partner goes into `found`.
fn match_up(sides: &[Side; 2], ignore: Option<&Selection>, found: &mut Diff) -> Vec<Pair> {
    let wanted = |variable: &&Variable| ignore.is_none_or(|ignore| !ignore.selects(&variable.name));
    let [a, b] = [0, 1].map(|side: usize| sides[side].reader.header().variables.iter().filter(wanted));
    let mut partners: HashMap<&str, &Variable> = b.clone().map(|variable| (variable.name.as_str(), variable)).collect();
    let mut pairs = Vec::new();
    for variable in a {
        match partners.remove(variable.name.as_str()) {
            None => found.only_in_a.push(variable.name.clone()),
            Some(partner) if kind_of(variable) == kind_of(partner) => {
                pairs.push(Pair { variables: [variable.clone(), partner.clone()] });
            }
            Some(partner) => found.redeclared.push(Redeclared {
                name: variable.name.clone(),
                a: kind_of(variable),
                b: kind_of(partner),
            }),
        }
    }
    found.only_in_b = b
        .filter(|variable| partners.contains_key(variable.name.as_str()))
        .map(|variable| variable.name.clone())
        .collect();
    pairs
}

/// Type and width of a variable in words.
fn kind_of(variable: &Variable) -> String {
    match variable.kind {
        Kind::Real => "real".to_owned(),
        Kind::Text => "text".to_owned(),
        Kind::Bits if variable.width == 1 => "1 bit".to_owned(),
        Kind::Bits => format!("{} bits", variable.width),
    }
}

/// Changes of the differing signals around the difference: reads both files again, from their beginnings.
fn context(a: &Path, b: &Path, time_fs: u128, pairs: &[&Pair], count: usize) -> Result<Vec<Vec<Row>>, DiffError> {
    let mut sides = [Side::open(a)?, Side::open(b)?];
    let mut before: Vec<VecDeque<Row>> = vec![VecDeque::new(); pairs.len()];
    let mut after: Vec<Vec<Row>> = vec![Vec::new(); pairs.len()];
    let mut last: Vec<Option<[Vec<u8>; 2]>> = vec![None; pairs.len()];
    let mut steps_after = 0;
    loop {
        let now = match step(&mut sides) {
            Ok(Some(now)) => now,
            // What comes after the difference was not asked for: a file that breaks off there is no error here.
            Err(_) if steps_after > 0 => break,
            Ok(None) => break,
            Err(error) => return Err(error),
        };
        for (index, pair) in pairs.iter().enumerate() {
            let values = [0, 1].map(|side: usize| sides[side].reader.value(pair.variables[side].signal));
            let known = &mut last[index];
            if known.as_ref().is_some_and(|known| known[0] == values[0] && known[1] == values[1]) && now != time_fs {
                continue;
            }
            *known = Some(values.map(<[u8]>::to_vec));
            let [a, b] = [0, 1].map(|side| pair.shown(side, &sides));
            let row = Row { time_fs: now, a, b, first: now == time_fs };
            if now < time_fs {
                before[index].push_back(row);
                if before[index].len() > count {
                    before[index].pop_front();
                }
            } else if after[index].len() <= count {
                after[index].push(row);
            }
        }
        if now >= time_fs {
            steps_after += 1;
            if steps_after > MAX_STEPS_AFTER || after.iter().all(|rows| rows.len() > count) {
                break;
            }
        }
    }
    Ok(before.into_iter().zip(after).map(|(before, after)| before.into_iter().chain(after).collect()).collect())
}

// ---------------------------------------------------------------- in words

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_equal() {
            return write!(f, "equal: {} signals, {} moments", self.compared, self.steps);
        }
        writeln!(f, "the waveforms differ")?;
        writeln!(f, "  a: {}", self.a.display())?;
        writeln!(f, "  b: {}", self.b.display())?;
        list(f, "only in a", &self.only_in_a)?;
        list(f, "only in b", &self.only_in_b)?;
        let redeclared: Vec<String> = self
            .redeclared
            .iter()
            .map(|signal| format!("{}: {} in a, {} in b", signal.name, signal.a, signal.b))
            .collect();
        list(f, "declared differently", &redeclared)?;
        if let Some((a, b)) = self.ends {
            writeln!(f, "\nno value differs, but a ends at {} and b at {}", self.moment(a), self.moment(b))?;
        }
        match &self.first {
            Some(first) => self.first_difference(f, first),
            None if self.ends.is_none() => {
                writeln!(f, "\nno value differs among the signals that both have ({})", self.compared)
            }
            None => Ok(()),
        }
    }
}

impl Diff {
    fn first_difference(&self, f: &mut fmt::Formatter<'_>, first: &FirstDifference) -> fmt::Result {
        let count = first.signals.len();
        let signals = if count == 1 { "signal" } else { "signals" };
        writeln!(f, "\nfirst difference at {}, in {count} {signals}", self.moment(first.time_fs))?;
        for signal in first.signals.iter().take(MAX_SHOWN) {
            writeln!(f, "\n{} ({} {})", signal.name, signal.width, if signal.width == 1 { "bit" } else { "bits" })?;
            let moments: Vec<String> = signal.rows.iter().map(|row| self.moment(row.time_fs)).collect();
            let widest =
                |texts: &mut dyn Iterator<Item = &String>| texts.map(|text| text.chars().count()).max().unwrap_or(1);
            let moment_width = widest(&mut moments.iter());
            let a_width = widest(&mut signal.rows.iter().map(|row| &row.a));
            let b_width = widest(&mut signal.rows.iter().map(|row| &row.b));
            writeln!(f, "  {:>moment_width$}  {:>a_width$}  {:>b_width$}", "", "a", "b")?;
            for (row, moment) in signal.rows.iter().zip(&moments) {
                let mark = if row.first { '>' } else { ' ' };
                writeln!(f, "{mark} {moment:>moment_width$}  {:>a_width$}  {:>b_width$}", row.a, row.b)?;
            }
        }
        if count > MAX_SHOWN {
            let names: Vec<String> = first.signals[MAX_SHOWN..].iter().map(|signal| signal.name.clone()).collect();
            list(f, "also different at this moment", &names)?;
        }
        Ok(())
    }

    /// A time in picoseconds, with the cycle if the period is known.
    fn moment(&self, time_fs: u128) -> String {
        let ps = time_fs / FS_PER_PS;
        let rest = time_fs % FS_PER_PS;
        let mut text = if rest == 0 { format!("{ps} ps") } else { format!("{ps}.{rest:03} ps") };
        if let (Some(period), Ok(ps)) = (self.period, u64::try_from(ps)) {
            let _ = fmt::Write::write_fmt(&mut text, format_args!(" (cycle {})", period.cycle_at(ps)));
        }
        text
    }
}

/// A heading and names below it, not more than a screen of them.
fn list(f: &mut fmt::Formatter<'_>, heading: &str, names: &[String]) -> fmt::Result {
    const MOST: usize = 12;
    if names.is_empty() {
        return Ok(());
    }
    writeln!(f, "\n{heading} ({}):", names.len())?;
    for name in names.iter().take(MOST) {
        writeln!(f, "  {name}")?;
    }
    if names.len() > MOST {
        writeln!(f, "  and {} more", names.len() - MOST)?;
    }
    Ok(())
}
