//! Text files that traffic is read from: traces and permutations.
//!
//! Both have a record a line, numbers separated by spaces, tabs or commas; `#` begins a comment, empty lines are
//! ignored.
//!
//! | file | a line | rules |
//! |---|---|---|
//! | trace | `cycle source destination flits [class]` | cycles never fall; class 0 to 15, 0 if it is left out |
//! | permutation | `source destination` | each source once, each destination once; other end points send nothing |
//!
//! A trace is read as the run goes on, some thousand cycles ahead ([`Reader`]), so its length does not affect the
//! memory used. It is read once before that, to find mistakes and to name its contents in the result. Packets of each
//! class are counted on their own. Where channels are divided (a closed loop beside the trace), classes of even number
//! go with the requests and those of odd number with the replies.

use std::io::BufRead;
use std::path::Path;

use super::shipped;

/// One packet of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Record {
    /// When it is created.
    pub cycle: u64,
    /// Its source.
    pub src: u32,
    /// Its destination.
    pub dst: u32,
    /// Its length.
    pub flits: u32,
    /// What it is counted as.
    pub class: u16,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// Where and what.
    pub message: String,
    /// What was expected.
    pub expected: String,
}

/// What a trace is, on the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceSummary {
    /// Packets.
    pub packets: u64,
    /// One more than the greatest class.
    pub classes: u16,
    /// FNV-1a of all bytes.
    pub hash: u64,
}

/// Classes a trace can have.
const CLASSES: u64 = 16;
/// The longest packet.
const FLITS: u64 = 65_536;

/// Reads lines of numbers.
struct Lines {
    name: String,
    file: Box<dyn BufRead + Send>,
    line: u64,
    text: String,
    hash: u64,
}

impl Lines {
    fn open(path: &Path) -> Result<Lines, TraceError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = shipped::open(path).map_err(|error| TraceError {
            message: match error.kind() {
                std::io::ErrorKind::NotFound => format!("there is no file {}", path.display()),
                _ => format!("cannot read {}: {error}", path.display()),
            },
            expected: "the name of a text file, relative to the scenario".into(),
        })?;
        let hash = 0xcbf2_9ce4_8422_2325;
        Ok(Lines { name, file, line: 0, text: String::new(), hash })
    }

    fn error(&self, what: impl std::fmt::Display, expected: impl Into<String>) -> TraceError {
        TraceError { message: format!("{}, line {}: {what}", self.name, self.line), expected: expected.into() }
    }

    /// The numbers of the next line that has any, and how many there are.
    fn numbers(&mut self, form: &str, least: usize) -> Result<Option<([u64; 5], usize)>, TraceError> {
        loop {
            self.text.clear();
            self.line += 1;
            let read = self.file.read_line(&mut self.text).map_err(|error| self.error(error, "text"))?;
            if read == 0 {
                return Ok(None);
            }
            for byte in self.text.bytes() {
                self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
            let text = self.text.split('#').next().unwrap_or("");
            let (mut numbers, mut count) = ([0; 5], 0);
            for word in text.split([' ', '\t', ',', '\r', '\n']).filter(|word| !word.is_empty()) {
                let most = if least == 2 { 2 } else { 5 };
                let number = word.parse().map_err(|_| self.error(format_args!("\"{word}\" is not a number"), form))?;
                if count == most {
                    return Err(self.error("too many numbers", form));
                }
                numbers[count] = number;
                count += 1;
            }
            if count == 0 {
                continue;
            }
            if count < least {
                return Err(self.error("too few numbers", form));
            }
            return Ok(Some((numbers, count)));
        }
    }

    fn end(&self, number: u64, ends: u32) -> Result<u32, TraceError> {
        if number < u64::from(ends) {
            Ok(number as u32)
        } else {
            Err(self
                .error(format_args!("there is no end point {number}"), format!("an end point from 0 to {}", ends - 1)))
        }
    }
}

/// Reads a trace, record by record.
pub struct Reader {
    lines: Lines,
    ends: u32,
    last: u64,
    records: u64,
}

impl Reader {
    /// Records that were read.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Opens a trace for a system of this many end points.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(path: &Path, ends: u32) -> Result<Reader, TraceError> {
        Ok(Reader { lines: Lines::open(path)?, ends, last: 0, records: 0 })
    }

    /// The next record.
    ///
    /// # Errors
    /// If the line breaks the rules.
    pub fn record(&mut self) -> Result<Option<Record>, TraceError> {
        let form = "cycle source destination flits [class]";
        let Some(([cycle, src, dst, flits, class], _)) = self.lines.numbers(form, 4)? else { return Ok(None) };
        if cycle < self.last {
            let message = format!("cycle {cycle} comes after cycle {}", self.last);
            return Err(self.lines.error(message, "records in the order of their cycles"));
        }
        if cycle > super::limits::CYCLES {
            return Err(self.lines.error(format_args!("cycle {cycle} is too late"), "a cycle up to 2^53"));
        }
        if !(1..=FLITS).contains(&flits) {
            return Err(self.lines.error(format_args!("a packet of {flits} flits"), format!("1 to {FLITS} flits")));
        }
        if class >= CLASSES {
            let expected = format!("a class from 0 to {}", CLASSES - 1);
            return Err(self.lines.error(format_args!("there is no class {class}"), expected));
        }
        self.last = cycle;
        self.records += 1;
        let (src, dst) = (self.lines.end(src, self.ends)?, self.lines.end(dst, self.ends)?);
        Ok(Some(Record { cycle, src, dst, flits: flits as u32, class: class as u16 }))
    }
}

/// Reads a trace to its end.
///
/// # Errors
/// What is wrong with it.
pub fn summarise(path: &Path, ends: u32) -> Result<TraceSummary, TraceError> {
    let mut reader = Reader::open(path, ends)?;
    let mut facts = TraceSummary { classes: 1, ..TraceSummary::default() };
    while let Some(record) = reader.record()? {
        facts.packets += 1;
        facts.classes = facts.classes.max(record.class + 1);
    }
    facts.hash = reader.lines.hash;
    Ok(facts)
}

/// Reads a permutation: pairs of source and destination.
///
/// # Errors
/// What is wrong with it.
pub fn permutation(path: &Path, ends: u32) -> Result<Vec<(u32, u32)>, TraceError> {
    let mut lines = Lines::open(path)?;
    let mut pairs = Vec::new();
    let (mut sends, mut gets) = (vec![false; ends as usize], vec![false; ends as usize]);
    while let Some(([src, dst, ..], _)) = lines.numbers("source destination", 2)? {
        let (src, dst) = (lines.end(src, ends)?, lines.end(dst, ends)?);
        for (list, end, what) in [(&mut sends, src, "source"), (&mut gets, dst, "destination")] {
            if std::mem::replace(&mut list[end as usize], true) {
                let message = format!("end point {end} is a {what} for the second time");
                return Err(lines.error(message, format!("each {what} once")));
            }
        }
        pairs.push((src, dst));
    }
    if pairs.is_empty() {
        return Err(lines.error("there is no pair in this file", "source destination"));
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.txt");
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[test]
    fn a_trace_is_read_record_by_record() {
        let (_folder, path) = file("# cycle src dst flits\n5 0 3 1\n\n5,1,2,4,1 # with a class\n\t9 3 0 65536\r\n");
        let mut reader = Reader::open(&path, 4).unwrap();
        let record = |cycle, src, dst, flits, class| Some(Record { cycle, src, dst, flits, class });
        assert_eq!(reader.record().unwrap(), record(5, 0, 3, 1, 0));
        assert_eq!(reader.record().unwrap(), record(5, 1, 2, 4, 1));
        assert_eq!(reader.record().unwrap(), record(9, 3, 0, 65536, 0));
        assert_eq!(reader.record().unwrap(), None);
        let facts = summarise(&path, 4).unwrap();
        assert_eq!((facts.packets, facts.classes), (3, 2));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let wrong = |text: &str| summarise(&file(text).1, 4).unwrap_err().message;
        assert_eq!(wrong("1 2 3 1\n0 1 2 1\n"), "x.txt, line 2: cycle 0 comes after cycle 1");
        assert_eq!(wrong("1 2 4 1"), "x.txt, line 1: there is no end point 4");
        assert_eq!(wrong("1 2 3"), "x.txt, line 1: too few numbers");
        assert_eq!(wrong("1 2 3 4 5 6"), "x.txt, line 1: too many numbers");
        assert_eq!(wrong("1 2 3 0"), "x.txt, line 1: a packet of 0 flits");
        assert_eq!(wrong("1 2 3 1 16"), "x.txt, line 1: there is no class 16");
        assert_eq!(wrong("1 2 3 x"), "x.txt, line 1: \"x\" is not a number");
    }

    #[test]
    fn a_permutation_names_every_end_point_once() {
        assert_eq!(permutation(&file("0 1\n1 0\n3 2\n").1, 4), Ok(vec![(0, 1), (1, 0), (3, 2)]));
        let wrong = |text: &str| permutation(&file(text).1, 4).unwrap_err().message;
        assert_eq!(wrong("0 1\n0 2\n"), "x.txt, line 2: end point 0 is a source for the second time");
        assert_eq!(wrong("0 1\n2 1\n"), "x.txt, line 2: end point 1 is a destination for the second time");
        assert_eq!(wrong("0 1 2\n"), "x.txt, line 1: too many numbers");
        assert_eq!(wrong("# nothing\n"), "x.txt, line 2: there is no pair in this file");
    }
}
