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
//! A truncated file is compared up to its last moment, which may itself lack changes.
//!
//! **Cost.** Both files are read whole, as [`WaveFile`] does; changes are unpacked for [`CHUNK`] signals at a time.
//!
//! **Limits.** Names given to values are shown, not compared. Context is shown for the first [`MAX_SHOWN`] signals.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::wave_in::{Changes, FS_PER_PS, Kind, ReadError, Signals, Variable, WaveFile, display_value};
use super::{Period, Selection, SelectionError};

/// Signals of which values and context are shown.
pub const MAX_SHOWN: usize = 6;

/// Signals whose changes are unpacked at once.
pub const CHUNK: usize = 512;

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
        error: ReadError,
    },
    /// A glob of signals to ignore cannot be read.
    #[error(transparent)]
    Glob(#[from] SelectionError),
}

/// A signal that is declared differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclarationChange {
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
pub struct DifferingSignal {
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
    pub signals: Vec<DifferingSignal>,
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
    pub redeclared: Vec<DeclarationChange>,
    /// The first moment at which values differ.
    pub first: Option<FirstDifference>,
    /// Ends of the two files in femtoseconds, if they differ and no value does.
    pub ends: Option<(u128, u128)>,
    /// For each file the time at which it was cut off in femtoseconds, if it was.
    pub cut_off: [Option<u128>; 2],
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

/// Compares two waveforms, VCD or FST.
///
/// # Errors
/// A file that cannot be read, or a glob in `options` that cannot.
pub fn diff(a: &Path, b: &Path, options: &DiffOptions) -> Result<Diff, DiffError> {
    let ignore = match &options.ignore[..] {
        [] => None,
        globs => Some(Selection::new(globs)?),
    };
    let mut sides = [DiffInput::open(a)?, DiffInput::open(b)?];
    let mut found = Diff {
        a: a.to_owned(),
        b: b.to_owned(),
        compared: 0,
        steps: 0,
        period: sides[0].wave.header().period,
        only_in_a: Vec::new(),
        only_in_b: Vec::new(),
        redeclared: Vec::new(),
        first: None,
        ends: None,
        cut_off: [sides[0].wave.cut_off_fs(), sides[1].wave.cut_off_fs()],
    };
    let pairs = match_up(&sides, ignore.as_ref(), &mut found);
    found.compared = pairs.len();

    // The earliest difference so far, and who differs then.
    let end = found.cut_off.into_iter().flatten().min().unwrap_or(u128::MAX);
    let (mut earliest, mut differing) = (end, Vec::new());
    for (chunk, part) in pairs.chunks(CHUNK).enumerate() {
        let signals = load(&mut sides, part)?;
        for (at, pair) in part.iter().enumerate() {
            let end = if differing.is_empty() { earliest } else { earliest + 1 };
            let Some(moment) = pair.first_difference(&sides, &signals, end) else { continue };
            if moment < earliest {
                earliest = moment;
                differing.clear();
            }
            differing.push(chunk * CHUNK + at);
        }
    }
    let moments = union(sides.each_ref().map(|side| side.wave.moments()));
    if differing.is_empty() {
        found.steps = moments.filter(|moment| *moment < end).count() as u64;
        let [end_a, end_b] = sides.map(|side| side.wave.end_fs().unwrap_or(0));
        if end_a != end_b && found.is_equal() {
            found.ends = Some((end_a, end_b));
        }
        return Ok(found);
    }
    let mut moments = moments.peekable();
    let begin = moments.peek().copied().unwrap_or(0);
    found.steps = moments.filter(|moment| *moment <= earliest).count() as u64;
    let mut signals: Vec<DifferingSignal> = (differing.iter())
        .map(|pair| {
            let variable = &pairs[*pair].variables[0];
            DifferingSignal { name: variable.name.clone(), width: variable.width, rows: Vec::new() }
        })
        .collect();
    let shown: Vec<SignalPair> = differing.iter().take(MAX_SHOWN).map(|pair| pairs[*pair].clone()).collect();
    let loaded = load(&mut sides, &shown)?;
    for (signal, pair) in signals.iter_mut().zip(&shown) {
        signal.rows = pair.context(&sides, &loaded, (begin, earliest), options.context);
    }
    found.first = Some(FirstDifference { time_fs: earliest, signals });
    Ok(found)
}

/// One of the two files.
struct DiffInput {
    path: PathBuf,
    wave: WaveFile,
}

impl DiffInput {
    fn open(path: &Path) -> Result<DiffInput, DiffError> {
        let wave = WaveFile::open(path).map_err(|error| DiffError::Read { path: path.to_owned(), error })?;
        Ok(DiffInput { path: path.to_owned(), wave })
    }
}

/// Unpacks the changes of pairs of signals.
fn load(sides: &mut [DiffInput; 2], pairs: &[SignalPair]) -> Result<[Signals; 2], DiffError> {
    let mut loaded = [Signals::default(), Signals::default()];
    for (side, (of, signals)) in sides.iter_mut().zip(&mut loaded).enumerate() {
        let wanted = pairs.iter().map(|pair| pair.variables[side].signal);
        *signals = of.wave.load(wanted).map_err(|error| DiffError::Read { path: of.path.clone(), error })?;
    }
    Ok(loaded)
}

/// The moments of both files, in order, each once.
fn union<I: Iterator<Item = u128>>(moments: [I; 2]) -> impl Iterator<Item = u128> {
    let [mut a, mut b] = moments.map(Iterator::peekable);
    std::iter::from_fn(move || {
        let next = a.peek().copied().into_iter().chain(b.peek().copied()).min()?;
        a.next_if_eq(&next);
        b.next_if_eq(&next);
        Some(next)
    })
}

/// The same signal in both files.
#[derive(Clone)]
struct SignalPair {
    variables: [Variable; 2],
}

impl SignalPair {
    fn changes<'a>(&self, sides: &'a [DiffInput; 2], signals: &'a [Signals; 2]) -> [Changes<'a>; 2] {
        [0, 1].map(|side: usize| sides[side].wave.changes(&signals[side], self.variables[side].signal))
    }

    /// The first moment before `end` at which values differ.
    fn first_difference(&self, sides: &[DiffInput; 2], signals: &[Signals; 2], end: u128) -> Option<u128> {
        let mut both = self.changes(sides, signals);
        loop {
            let next = both.iter().filter_map(Changes::next_fs).min().filter(|next| *next < end)?;
            for changes in &mut both {
                changes.go_to(next, true);
            }
            if both[0].value() != both[1].value() {
                return Some(next);
            }
        }
    }

    fn shown(&self, side: usize, sides: &[DiffInput; 2], value: &[u8]) -> String {
        let variable = &self.variables[side];
        let table = variable.table.and_then(|table| sides[side].wave.header().tables.get(table));
        display_value(value, variable.width, table)
    }

    /// Values from some changes before a difference to as many after it; before the first change they are shown at `begin`.
    fn context(
        &self,
        sides: &[DiffInput; 2],
        signals: &[Signals; 2],
        (begin, difference): (u128, u128),
        count: usize,
    ) -> Vec<Row> {
        let mut both = self.changes(sides, signals);
        let mut last: Option<[Vec<u8>; 2]> = None;
        let (mut rows, mut before) = (Vec::new(), 0);
        let mut next = Some(begin);
        while let Some(now) = next {
            for changes in &mut both {
                changes.go_to(now, true);
            }
            let values = both.each_ref().map(|changes| changes.value().to_vec());
            if now == difference || last.as_ref() != Some(&values) {
                let [a, b] = [0, 1].map(|side| self.shown(side, sides, &values[side]));
                rows.push(Row { time_fs: now, a, b, first: now == difference });
                last = Some(values);
                if now < difference {
                    before += 1;
                } else if rows.len() > before + count {
                    break;
                }
            }
            next = both.iter().filter_map(Changes::next_fs).min();
        }
        rows.drain(..before.saturating_sub(count));
        rows
    }
}

/// Finds the signals to compare; what has no partner goes into `found`.
fn match_up(sides: &[DiffInput; 2], ignore: Option<&Selection>, found: &mut Diff) -> Vec<SignalPair> {
    let wanted = |variable: &&Variable| ignore.is_none_or(|ignore| !ignore.selects(&variable.name));
    let [a, b] = [0, 1].map(|side: usize| sides[side].wave.header().variables.iter().filter(wanted));
    let mut partners: HashMap<&str, &Variable> = b.clone().map(|variable| (variable.name.as_str(), variable)).collect();
    let mut pairs = Vec::new();
    for variable in a {
        match partners.remove(variable.name.as_str()) {
            None => found.only_in_a.push(variable.name.clone()),
            Some(partner) if kind_of(variable) == kind_of(partner) => {
                pairs.push(SignalPair { variables: [variable.clone(), partner.clone()] });
            }
            Some(partner) => found.redeclared.push(DeclarationChange {
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

// ---------------------------------------------------------------- in words

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut_off = |side: usize| {
            let told = |moment| format!(", which was cut off at {}, up to there", self.moment(moment));
            self.cut_off[side].map_or_else(String::new, told)
        };
        if self.is_equal() {
            write!(f, "equal: {} signals, {} moments", self.compared, self.steps)?;
            return (0..2).try_for_each(|side| {
                f.write_str(&cut_off(side).replace(", which", &format!("; {}", ["a", "b"][side])))
            });
        }
        writeln!(f, "the waveforms differ")?;
        writeln!(f, "  a: {}{}", self.a.display(), cut_off(0))?;
        writeln!(f, "  b: {}{}", self.b.display(), cut_off(1))?;
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
