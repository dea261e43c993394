//! Waveforms as text, for snapshots that people review and for documents.
//!
//! ```text
//! cycle     0       4       8       12
//! die0.tile1.engine
//!   busy    ____/-----------\_______/-
//!   state   IDLE|GATHER     |IDLE   |S
//!   head    x   |3f |40 |41 |x      |4
//! ```
//!
//! **Picture.** One row a signal, under a row that names its scope. A cycle is [`columns_per_cycle`] columns wide; each
//! column shows the value that holds at its end, so glitches shorter than a column do not show. A single bit is `_` or
//! `-`, an edge is drawn in the first column of the new value (`/`, `\`); `x` and `z` stand for themselves. Anything
//! wider is written where it begins, behind a `|`: by name if the waveform names its values, else in hexadecimal. A
//! text that does not fit ends in `~`. [`Style::Blocks`] draws single bits as `▁` and `█`.
//!
//! **Time.** Columns follow the clock: column j of w in cycle c ends at floor((c + (j + 1) / w) x period). The period
//! comes from the file if it is one of this program's, else from the options.
//!
//! **Limits.** Waves with their names are at most [`max_columns`] columns wide; cycles that have no room are left out, and
//! a last line says so. (That line and the names of scopes are not cut.) Nothing is drawn beyond the end of the waveform: lines
//! below say where it ends, if more was asked for, and where a file was cut off. With [`for_reader`] a cycle of a closed window is
//! as wide as its values need, if there is room, and a line below says that numbers are hexadecimal.
//!
//! [`columns_per_cycle`]: Options::columns_per_cycle
//! [`max_columns`]: Options::max_columns
//! [`for_reader`]: Options::for_reader

use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use super::wave_in::{self, FS_PER_PS, Header, ReadError, WaveFile, display_value};
use super::{NothingSelected, Period, Selection};

/// How single bits are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// `__/--\__`, with letters that every terminal has.
    #[default]
    Lines,
    /// `▁▁███▁▁`.
    Blocks,
}

/// What to draw.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which signals; its window is the first and the last cycle drawn.
    pub selection: Selection,
    /// Length of a cycle, for files that do not give it.
    pub period: Option<Period>,
    /// Width of a cycle.
    pub columns_per_cycle: u32,
    /// Width of the picture, at most.
    pub max_columns: usize,
    /// How single bits are drawn.
    pub style: Style,
    /// Widen the cycles of a closed window where values would be cut, and say below what is hexadecimal or cut.
    pub for_reader: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            selection: Selection::default(),
            period: None,
            columns_per_cycle: 4,
            max_columns: 120,
            style: Style::Lines,
            for_reader: false,
        }
    }
}

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum DrawError {
    /// The waveform cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Neither the file nor the options give the length of a cycle.
    #[error("the waveform does not say how long a cycle is; give the clock period")]
    NoPeriod,
    /// No signal of the file is selected.
    #[error(transparent)]
    NothingSelected(#[from] NothingSelected),
    /// The first cycle that was asked for is beyond the last one.
    #[error("cycle {first} is beyond the end of the waveform, whose last cycle is {last}")]
    Beyond {
        /// Asked for.
        first: u64,
        /// Last of the file.
        last: u64,
    },
    /// The names leave no room.
    #[error("{given} columns are too few, the names alone need {needed}")]
    TooNarrow {
        /// Columns allowed.
        given: usize,
        /// Columns needed for names and one cycle.
        needed: usize,
    },
}

/// Draws signals of a VCD or FST file. Of a VCD, what is behind the window is not read.
///
/// # Errors
/// A file that cannot be read, or options that leave nothing to draw.
pub fn draw(path: &Path, options: &Options) -> Result<String, DrawError> {
    // A stamp behind the next cycle tells that the waveform goes on.
    let last = |header: &Header| {
        let last = options.selection.to_cycle()?.max(options.selection.from_cycle());
        Some(fs(options.period.or(header.period)?, last.saturating_add(2), 0, 1))
    };
    render(WaveFile::open_until(path, last)?, options)
}

/// Draws signals of a waveform in memory.
///
/// # Errors
/// As [`draw`].
pub fn draw_bytes(bytes: Vec<u8>, options: &Options) -> Result<String, DrawError> {
    render(wave_in::in_memory(bytes)?, options)
}

/// A signal that is drawn.
struct Row {
    scope: String,
    name: String,
    width: u32,
    signal: usize,
    table: Option<usize>,
    /// Index of the value in `values`, one a column.
    columns: Vec<usize>,
    /// Different values in the order they appear next to each other.
    values: Vec<Vec<u8>>,
}

fn render(mut wave: WaveFile, options: &Options) -> Result<String, DrawError> {
    let selection = &options.selection;
    let header = wave.header().clone();
    let period = options.period.or(header.period).ok_or(DrawError::NoPeriod)?;
    let mut rows: Vec<Row> = (header.variables.iter())
        .filter(|variable| selection.selects(&variable.name))
        .map(|variable| {
            let (scope, name) = variable.name.rsplit_once('.').unwrap_or(("", &variable.name));
            Row {
                scope: scope.to_owned(),
                name: name.to_owned(),
                width: variable.width,
                signal: variable.signal,
                table: variable.table,
                columns: Vec::new(),
                values: Vec::new(),
            }
        })
        .collect();
    if rows.is_empty() {
        let names: Vec<String> = header.variables.into_iter().map(|variable| variable.name).collect();
        return Err(selection.nothing(&names).into());
    }

    // How much fits.
    const INDENT: usize = 2;
    const GAP: usize = 2;
    let names = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).max("cycle".len() - INDENT);
    let margin = INDENT + names + GAP;
    let per_cycle = options.columns_per_cycle.max(1);
    let room = options.max_columns.saturating_sub(margin) / per_cycle as usize;
    if room == 0 {
        return Err(DrawError::TooNarrow { given: options.max_columns, needed: margin + per_cycle as usize });
    }
    // Which cycles.
    let first = selection.from_cycle();
    let wanted = selection.to_cycle().map_or(u64::MAX, |to| to.saturating_add(1));
    let end_of_room = first.saturating_add(room as u64);
    let signals = wave.load(rows.iter().map(|row| row.signal))?;
    let whole = whole_cycles(&rows, &wave, &signals, period).unwrap_or(first.saturating_add(1));
    if first >= whole {
        return Err(DrawError::Beyond { first, last: whole - 1 });
    }
    let end = end_of_room.min(wanted).min(whole);

    let mut width = per_cycle;
    sample(&mut rows, &wave, &signals, period, (first..end, width));
    let asked = wanted.min(whole).saturating_sub(first).max(1);
    if options.for_reader && wanted < u64::MAX && asked <= room as u64 {
        let needed = rows.iter().map(|row| needed(row, width, &header.tables)).max().unwrap_or(0);
        let widest = (options.max_columns - margin) as u64 / asked;
        let wider = needed.min(u32::try_from(widest).unwrap_or(u32::MAX));
        if wider > width {
            width = wider;
            sample(&mut rows, &wave, &signals, period, (first..end, width));
        }
    }
    let shown = (first, end, width as usize);
    let (mut picture, seen) = rows_of_text(&rows, &header.tables, shown, (names, margin), options.style);
    let cut_off = wave.cut_off_fs();
    let left_out = wanted.min(whole).saturating_sub(end);
    if wanted == u64::MAX && end < whole {
        picture.push_str("(the waveform goes on)\n");
    } else if wanted < u64::MAX && left_out > 0 {
        let _ = writeln!(picture, "({left_out} more cycles have no room)");
    } else if wanted < u64::MAX && wanted > end && cut_off.is_none() {
        let _ = writeln!(picture, "(the waveform ends with cycle {})", end - 1);
    }
    if options.for_reader {
        picture.push_str(seen.words());
    }
    if let Some(moment) = cut_off {
        let _ = writeln!(
            picture,
            "(the file was cut off at {} ps, in cycle {})",
            moment / FS_PER_PS,
            cycle_of(period, moment)
        );
    }
    Ok(picture)
}

/// How many cycles a file has, if it has any: the stamp that ends it opens a cycle of its own, which counts if something changes in it.
fn whole_cycles(rows: &[Row], wave: &WaveFile, signals: &wave_in::Signals, period: Period) -> Option<u64> {
    let end = wave.end_fs()?;
    let stamp = cycle_of(period, end);
    let changes_there = |row: &Row| {
        let mut changes = wave.changes(signals, row.signal);
        changes.go_to(end, false);
        let before = changes.value().to_vec();
        changes.go_to(end, true);
        changes.value() != before
    };
    let counts = stamp == 0 || fs(period, stamp, 0, 1) < end || rows.iter().any(changes_there);
    Some(stamp.saturating_add(u64::from(counts)))
}

/// The cycle in which a moment lies.
fn cycle_of(period: Period, fs: u128) -> u64 {
    u64::try_from(fs / FS_PER_PS).map_or(u64::MAX, |ps| period.cycle_at(ps))
}

/// Fills the columns of all rows: this many a cycle.
fn sample(
    rows: &mut [Row],
    wave: &WaveFile,
    signals: &wave_in::Signals,
    period: Period,
    (cycles, per_cycle): (Range<u64>, u32),
) {
    for row in rows {
        row.columns.clear();
        row.values.clear();
        let mut changes = wave.changes(signals, row.signal);
        for cycle in cycles.clone() {
            for column in 0..per_cycle {
                changes.go_to(fs(period, cycle, column + 1, per_cycle), false);
                let value = changes.value();
                if row.values.last().is_none_or(|last| last != value) {
                    row.values.push(value.to_vec());
                }
                row.columns.push(row.values.len() - 1);
            }
        }
    }
}

/// Columns that a cycle needs so that no value of a row is cut.
fn needed(row: &Row, per_cycle: u32, tables: &[wave_in::Table]) -> u32 {
    let table = row.table.and_then(|table| tables.get(table));
    if row.width == 1 && table.is_none() {
        return 0;
    }
    let mut begins = 0;
    let groups = row.columns.chunk_by(|a, b| a == b).map(|group| {
        let letters = display_value(&row.values[group[0]], row.width, table).chars().count() + begins;
        begins = 1;
        letters.div_ceil((group.len() / per_cycle as usize).max(1))
    });
    u32::try_from(groups.max().unwrap_or(0)).unwrap_or(u32::MAX)
}

/// What a picture shows that needs a word in the legend.
#[derive(Debug, Clone, Copy, Default)]
struct LegendNeeds {
    /// A number that would be another one in decimal digits.
    hexadecimal: bool,
    /// A value that is cut short.
    cut: bool,
}

impl LegendNeeds {
    fn words(self) -> &'static str {
        match (self.hexadecimal, self.cut) {
            (false, false) => "",
            (true, false) => "(numbers are hexadecimal)\n",
            (false, true) => "(what ends in ~ is cut short: fewer cycles or more columns show it whole)\n",
            (true, true) => {
                "(numbers are hexadecimal; what ends in ~ is cut short: fewer cycles or more columns show it whole)\n"
            }
        }
    }

    /// Takes note of a value as it is displayed.
    fn see(&mut self, value: &[u8], shown: &str, named: bool) {
        let number = value.first() == Some(&b'b') && !named && shown.chars().all(|letter| letter.is_ascii_hexdigit());
        let digits = shown.trim_start_matches('0');
        self.hexadecimal |= number && (digits.len() > 1 || digits.contains(|letter: char| !letter.is_ascii_digit()));
    }
}

/// The ruler and a line a signal, below the names of their scopes.
fn rows_of_text(
    rows: &[Row],
    tables: &[wave_in::Table],
    (first, cycle, width): (u64, u64, usize),
    (names, margin): (usize, usize),
    style: Style,
) -> (String, LegendNeeds) {
    let mut seen = LegendNeeds::default();
    let mut picture = format!("{:<margin$}{}\n", "cycle", ruler(first, cycle, width));
    let mut scope = None;
    for row in rows {
        if scope != Some(&row.scope) {
            scope = Some(&row.scope);
            if !row.scope.is_empty() {
                picture.push_str(&row.scope);
                picture.push('\n');
            }
        }
        let table = row.table.and_then(|table| tables.get(table));
        let wave = if row.width == 1 && table.is_none() { line(row, style) } else { segments(row, table, &mut seen) };
        let name = &row.name;
        let label = format!("  {name:<names$}  {wave}");
        picture.push_str(label.trim_end());
        picture.push('\n');
    }
    (picture, seen)
}

fn fs(period: Period, cycle: u64, part: u32, parts: u32) -> u128 {
    u128::from(period.part_ps(cycle, part, parts)) * FS_PER_PS
}

/// Numbers of cycles above the columns where they begin, as many as fit.
fn ruler(first: u64, end: u64, per_cycle: usize) -> String {
    let label = end.saturating_sub(1).to_string().len() + 1;
    let every = [1, 2, 4, 5, 10, 20, 50].into_iter().find(|every| *every as usize * per_cycle > label).unwrap_or(100);
    let mut text = String::new();
    for cycle in first..end {
        // Round numbers, not multiples counted from wherever the window begins.
        if cycle % every == 0 || cycle == first && (every - cycle % every) as usize * per_cycle > label {
            let column = (cycle - first) as usize * per_cycle;
            while text.len() < column {
                text.push(' ');
            }
            text.push_str(&cycle.to_string());
        }
    }
    text
}

/// A single bit.
fn line(row: &Row, style: Style) -> String {
    let mut before = None;
    let letter = |at: &usize| match row.values[*at].get(1) {
        Some(b'0' | b'l') => '0',
        Some(b'1' | b'h') => '1',
        Some(b'z') => 'z',
        _ => 'x',
    };
    (row.columns.iter().map(letter))
        .map(|now| {
            let edge = before.replace(now).map(|before| (before, now));
            match (style, now, edge) {
                (Style::Lines, '1', Some(('0', '1'))) => '/',
                (Style::Lines, '0', Some(('1', '0'))) => '\\',
                (Style::Lines, '0', _) => '_',
                (Style::Lines, '1', _) => '-',
                (Style::Blocks, '0', _) => '▁',
                (Style::Blocks, '1', _) => '█',
                _ => now,
            }
        })
        .collect()
}

/// Values that are written out.
fn segments(row: &Row, table: Option<&wave_in::Table>, seen: &mut LegendNeeds) -> String {
    let mut text = String::new();
    for group in row.columns.chunk_by(|a, b| a == b) {
        let bits = &row.values[group[0]];
        let value = display_value(bits, row.width, table);
        seen.see(bits, &value, table.is_some_and(|table| table.contains_key(bits)));
        // The mark of a new value takes a column; the first value in the picture did not begin there.
        let begins = !text.is_empty();
        if begins {
            text.push('|');
        }
        let room = group.len() - usize::from(begins);
        let length = value.chars().count();
        if length <= room {
            text.push_str(&value);
            text.extend(std::iter::repeat_n(' ', room - length));
        } else if room > 0 {
            text.extend(value.chars().take(room - 1));
            text.push('~');
            seen.cut = true;
        }
    }
    text
}
