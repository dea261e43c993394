//! Blocks of FST files, and the notes (clock period, names of states) that this program adds where the format has no
//! place for them.

use std::fmt::Write;

use super::{EnumTable, Period};

pub(crate) fn parse_period(text: &str) -> Option<Period> {
    let (numerator, denominator) = text.split_once('/')?;
    Period::from_ps(numerator.parse().ok()?, denominator.parse().ok()?)
}

/// Blocks of an FST file: a byte for the kind, eight for the length of the rest with themselves, most significant first.
pub(crate) mod fst {
    pub const HEADER: u8 = 0;
    /// A whole file, compressed once more.
    pub const WRAPPED: u8 = 254;
    /// Readers pass over it.
    pub const SKIPPED: u8 = 255;
    pub const KNOWN: [u8; 10] = [HEADER, 1, 2, 3, 4, 5, 6, 7, 8, SKIPPED];
    /// Length of the header, and where in it the number of blocks with changes stands.
    pub const HEADER_BYTES: u64 = 330;
    pub const SECTIONS: usize = 65;
}

/// What a waveform of this program says about itself where the format has no place for it.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub period: Option<Period>,
    /// Names of states.
    pub tables: Vec<Vec<String>>,
    /// For that many variables in turn: which table names their values.
    pub runs: Vec<(Option<usize>, usize)>,
}

const NOTES: &str = "watershed";

impl Notes {
    /// Notes of a waveform whose variables come in this order, by what names their values.
    pub fn of(period: Option<Period>, variables: impl Iterator<Item = Option<&'static EnumTable>>) -> Notes {
        let mut notes = Notes { period, ..Notes::default() };
        let mut known: Vec<&'static EnumTable> = Vec::new();
        for table in variables {
            let table = table.map(|table| {
                known.iter().position(|known| *known == table).unwrap_or_else(|| {
                    known.push(table);
                    notes.tables.push(table.names.iter().map(|name| crate::vcd_out::word(name)).collect());
                    known.len() - 1
                })
            });
            match notes.runs.last_mut() {
                Some((last, count)) if *last == table => *count += 1,
                _ => notes.runs.push((table, 1)),
            }
        }
        notes
    }

    /// The text of the block that [`Notes::read`] reads.
    pub fn text(&self) -> String {
        let mut text = format!("{NOTES}\n");
        if let Some(period) = self.period {
            let _ = writeln!(text, "period {period}");
        }
        for table in &self.tables {
            let _ = writeln!(text, "table {}", table.join(" "));
        }
        text += "runs";
        for (table, count) in &self.runs {
            text += &table.map_or_else(|| format!(" {count}"), |table| format!(" {count}={table}"));
        }
        text + "\n"
    }

    pub fn read(text: &str) -> Option<Notes> {
        let mut lines = text.lines();
        lines.next().filter(|first| *first == NOTES)?;
        let mut notes = Notes::default();
        for line in lines {
            let (what, rest) = line.split_once(' ')?;
            let words = rest.split(' ');
            match what {
                "period" => notes.period = parse_period(rest),
                "table" => notes.tables.push(words.map(str::to_owned).collect()),
                "runs" => {
                    for word in words {
                        let (count, table) = word.split_once('=').map_or((word, None), |(count, of)| (count, Some(of)));
                        let table = table.map(str::parse).transpose().ok()?;
                        notes.runs.push((table, count.parse().ok()?));
                    }
                }
                _ => {}
            }
        }
        Some(notes)
    }
}
