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
//! a last line says so. (That line and the names of scopes are not cut.) The last line also says where a file was cut off.
//!
//! [`columns_per_cycle`]: Options::columns_per_cycle
//! [`max_columns`]: Options::max_columns

use std::fmt::Write as _;
use std::path::Path;

use super::wave_in::{self, FS_PER_PS, ReadError, WaveFile, display_value};
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
}

impl Default for Options {
    fn default() -> Self {
        Options {
            selection: Selection::default(),
            period: None,
            columns_per_cycle: 4,
            max_columns: 120,
            style: Style::Lines,
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
    /// The names leave no room.
    #[error("{given} columns are too few, the names alone need {needed}")]
    TooNarrow {
        /// Columns allowed.
        given: usize,
        /// Columns needed for names and one cycle.
        needed: usize,
    },
}

/// Draws signals of a VCD or FST file.
///
/// # Errors
/// A file that cannot be read, or options that leave nothing to draw.
pub fn draw(path: &Path, options: &Options) -> Result<String, DrawError> {
    render(WaveFile::open(path)?, options)
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
    let first = selection.from_cycle();
    let wanted = selection.to_cycle().map(|to| (to - first).saturating_add(1));
    let end_of_room = first.saturating_add(room as u64);

    // Column by column.
    let signals = wave.load(rows.iter().map(|row| row.signal))?;
    let mut changes: Vec<_> = rows.iter().map(|row| wave.changes(&signals, row.signal)).collect();
    let end_of_file = wave.end_fs();
    let last_time = end_of_file.unwrap_or(0);
    let mut cycle = first;
    let mut drawn = 0;
    while cycle < end_of_room && wanted.is_none_or(|wanted| cycle - first < wanted) {
        // Where no end is asked for, the picture ends with the file.
        if wanted.is_none() && cycle > first && drawn > last_time && fs(period, cycle, 0, 1) >= last_time {
            break;
        }
        for column in 0..per_cycle {
            drawn = fs(period, cycle, column + 1, per_cycle);
            for (row, changes) in rows.iter_mut().zip(&mut changes) {
                changes.go_to(drawn, false);
                let value = changes.value();
                if row.values.last().is_none_or(|last| last != value) {
                    row.values.push(value.to_vec());
                }
                row.columns.push(row.values.len() - 1);
            }
        }
        cycle += 1;
    }
    let at_end = end_of_file.is_none() || drawn > last_time;

    // The stamp that ends a file opens a cycle of its own: not drawn, unless something changed in it.
    let width = per_cycle as usize;
    while wanted.is_none() && cycle > first + 1 && at_end && fs(period, cycle - 1, 0, 1) >= last_time {
        let kept = (cycle - 1 - first) as usize * width;
        if rows.iter().any(|row| row.columns[kept..].iter().any(|column| *column != row.columns[kept - 1])) {
            break;
        }
        for row in &mut rows {
            row.columns.truncate(kept);
        }
        cycle -= 1;
    }

    let mut picture = rows_of_text(&rows, &header.tables, (first, cycle, width), (names, margin), options.style);
    let left_out = match wanted {
        Some(wanted) => wanted.saturating_sub(cycle - first),
        None if !at_end => u64::MAX,
        None => 0,
    };
    match left_out {
        0 => {}
        u64::MAX => picture.push_str("(the waveform goes on)\n"),
        cycles => picture.push_str(&["(", &cycles.to_string(), " more cycles have no room)\n"].concat()),
    }
    if let Some(ps) = wave.cut_off_fs().map(|moment| moment / FS_PER_PS) {
        let cycle = u64::try_from(ps).map_or(u64::MAX, |ps| period.cycle_at(ps));
        let _ = writeln!(picture, "(the file was cut off at {ps} ps, in cycle {cycle})");
    }
    Ok(picture)
}

/// The ruler and a line a signal, below the names of their scopes.
fn rows_of_text(
    rows: &[Row],
    tables: &[wave_in::Table],
    (first, cycle, width): (u64, u64, usize),
    (names, margin): (usize, usize),
    style: Style,
) -> String {
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
        let wave = if row.width == 1 && table.is_none() {
            line(row, style)
        } else {
            segments(row, |value| display_value(value, row.width, table))
        };
        let name = &row.name;
        let label = format!("  {name:<names$}  {wave}");
        picture.push_str(label.trim_end());
        picture.push('\n');
    }
    picture
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
fn segments(row: &Row, show: impl Fn(&[u8]) -> String) -> String {
    let mut text = String::new();
    for group in row.columns.chunk_by(|a, b| a == b) {
        let value = show(&row.values[group[0]]);
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
        }
    }
    text
}
