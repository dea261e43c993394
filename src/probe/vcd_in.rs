//! A streaming reader of VCD files, for comparing and drawing waveforms.
//!
//! **Format.** Any four-state VCD of IEEE 1364, from this program or another, with the extensions seen in practice:
//! `real` and `string` variables, nine-valued bits of VHDL simulators, ranges glued to names, and `$attrbegin misc 07`
//! tables, which give names to values. The comment in which [`VcdSink`](super::VcdSink) states the clock period is
//! understood, so times can be shown as cycles.
//!
//! **Memory.** The header and the current value of every variable; never the body. A file of gigabytes is read at
//! the pace of the disk.
//!
//! **Errors** name the line. No input makes the reader panic.
//!
//! **Why not a library.** The `vcd` crate's parser stops at `$attrbegin`; `wellen` loads the file and serves the tests
//! as an independent reader, which it could not do if this program read with it too.
//!
//! **Limits.** Extended VCD (port values, `p…`) is refused. Scopes nest at most 1000 deep; one word of the file is
//! at most 16 MiB.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use super::Period;

const MAX_WORD: usize = 1 << 24;
const MAX_NESTING: usize = 1000;

/// Femtoseconds in a picosecond: all times are kept in femtoseconds, the finest unit a VCD can name.
pub(crate) const FS_PER_PS: u128 = 1000;

/// Why a waveform cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum VcdError {
    /// The system says so.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is not a VCD, or a broken one.
    #[error("line {line}: {message}")]
    Syntax {
        /// Line of the word that does not fit, from 1.
        line: u64,
        /// What is wrong with it.
        message: String,
    },
}

fn syntax<T>(line: u64, message: impl Into<String>) -> Result<T, VcdError> {
    Err(VcdError::Syntax { line, message: message.into() })
}

/// What a variable's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bits, one or more.
    Bits,
    /// Floating-point numbers.
    Real,
    /// Text.
    Text,
}

/// A variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Scopes and name, joined by dots. A range is part of it only when it is not `[width-1:0]`; a second variable of
    /// the same name gets `#2`.
    pub name: String,
    /// Bits; without meaning for reals and text.
    pub width: u32,
    /// What its values are.
    pub kind: Kind,
    /// Whose values it shows: variables with one identifier code share a signal.
    pub signal: usize,
    /// Place of its names of values in [`Header::tables`].
    pub table: Option<usize>,
}

/// Names of values; the keys are values as [`VcdReader::value`] gives them.
pub type Table = HashMap<Vec<u8>, String>;

/// What a waveform declares.
#[derive(Debug, Clone, Default)]
pub struct Header {
    /// Variables in file order.
    pub variables: Vec<Variable>,
    /// Number of different identifier codes.
    pub signals: usize,
    /// Tables of names of values.
    pub tables: Vec<Table>,
    /// Length of one unit of time, in femtoseconds.
    pub unit_fs: u128,
    /// The clock period, in files of this program.
    pub period: Option<Period>,
}

/// Reads a waveform step by step and keeps the current values.
///
/// A value is kept as a letter for its kind (`b`, `r`, `s`) and its text; bits are shortened as far as they can be
/// extended again (`b0011` is `b11`, `bxxx` is `bx`), so equal values have equal bytes.
pub struct VcdReader {
    words: Words,
    header: Header,
    codes: HashMap<Vec<u8>, Target>,
    values: Vec<Vec<u8>>,
    /// Time of the step that [`step`](VcdReader::step) reads next; `None` at the end of the file.
    next: Option<u64>,
    /// Whether the first word of that step's changes is already in `words.word`.
    pending: bool,
}

/// Where a value change goes.
#[derive(Debug, Clone, Copy)]
struct Target {
    signal: usize,
    width: u32,
    kind: Kind,
}

impl std::fmt::Debug for VcdReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VcdReader")
            .field("variables", &self.header.variables.len())
            .field("line", &self.words.line)
            .finish_non_exhaustive()
    }
}

impl VcdReader {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// A file that cannot be read or is not a VCD.
    pub fn open(path: &Path) -> Result<VcdReader, VcdError> {
        Self::new(Box::new(BufReader::with_capacity(1 << 18, File::open(path)?)))
    }

    /// Reads the header of anything that gives bytes.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn new(input: Box<dyn BufRead>) -> Result<VcdReader, VcdError> {
        let mut words = Words { input, line: 1, word: Vec::new(), word_line: 1 };
        let (header, codes) = HeaderParser::default().parse(&mut words)?;
        let values = vec![b"bx".to_vec(); header.signals];
        let mut reader = VcdReader { words, header, codes, values, next: None, pending: false };
        reader.find_first_step()?;
        Ok(reader)
    }

    /// What the file declares.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Current value of a signal, by [`Variable::signal`]: `bx` until the file gives one.
    pub fn value(&self, signal: usize) -> &[u8] {
        &self.values[signal]
    }

    /// Time of the step that comes next, in femtoseconds; `None` at the end of the file.
    pub fn next_time(&self) -> Option<u128> {
        self.next.map(|time| u128::from(time) * self.header.unit_fs)
    }

    /// Reads all changes of the next time step and applies them. `changed` receives the signals that were written
    /// (some perhaps with the value they had); the time is in femtoseconds. `None` at the end of the file.
    ///
    /// # Errors
    /// A file that cannot be read further.
    pub fn step(&mut self, changed: &mut Vec<usize>) -> Result<Option<u128>, VcdError> {
        changed.clear();
        let step_time = self.next_time();
        let Some(now) = self.next else { return Ok(None) };
        loop {
            if !std::mem::take(&mut self.pending) && !self.words.next()? {
                self.next = None;
                return Ok(step_time);
            }
            let line = self.words.word_line;
            match self.words.word.first().copied().unwrap_or_default() {
                b'#' => {
                    let time = self.time_stamp(line)?;
                    if time < now {
                        return syntax(line, format!("time goes back from {now} to {time}"));
                    }
                    if time > now {
                        self.next = Some(time);
                        return Ok(step_time);
                    }
                }
                b'$' => self.mark(line)?,
                _ => changed.push(self.change(line)?),
            }
        }
    }

    /// Reads up to the first time stamp or, where there is none, the first value: that one is of time 0.
    fn find_first_step(&mut self) -> Result<(), VcdError> {
        while self.words.next()? {
            let line = self.words.word_line;
            match self.words.word.first().copied().unwrap_or_default() {
                b'#' => {
                    self.next = Some(self.time_stamp(line)?);
                    return Ok(());
                }
                b'$' => self.mark(line)?,
                _ => {
                    self.next = Some(0);
                    self.pending = true;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn time_stamp(&self, line: u64) -> Result<u64, VcdError> {
        match parse_number(&self.words.word[1..]) {
            Some(time) => Ok(time),
            None => syntax(line, format!("`{}` is not a time", show(&self.words.word))),
        }
    }

    /// Passes over what the body may hold besides times and values.
    fn mark(&mut self, line: u64) -> Result<(), VcdError> {
        if self.words.word == b"$comment" {
            self.words.skip_command(line)
        } else if is_dump_mark(&self.words.word) {
            Ok(())
        } else {
            syntax(line, format!("`{}` does not belong here", show(&self.words.word)))
        }
    }

    /// Applies the value change whose first word was just read.
    fn change(&mut self, line: u64) -> Result<usize, VcdError> {
        let word = std::mem::take(&mut self.words.word);
        let mark = word[0].to_ascii_lowercase();
        let (text, code): (&[u8], &[u8]) = match mark {
            b'b' | b'r' | b's' => {
                if !self.words.next()? {
                    return syntax(line, "the file ends in the middle of a value change");
                }
                (&word[1..], &self.words.word)
            }
            mark if is_bit(mark) => (&word[..1], &word[1..]),
            b'p' => return syntax(line, "port values of extended VCD are not supported"),
            _ => return syntax(line, format!("`{}` is neither a time nor a value", show(&word))),
        };
        let Some(&target) = self.codes.get(code) else {
            return syntax(line, format!("no variable has the identifier code `{}`", show(code)));
        };
        let given = match mark {
            b'r' => Kind::Real,
            b's' => Kind::Text,
            _ => Kind::Bits,
        };
        let value = &mut self.values[target.signal];
        value.clear();
        match given {
            Kind::Bits => {
                if text.is_empty() || !text.iter().all(|bit| is_bit(*bit)) {
                    return syntax(line, format!("`{}` is not a value", show(&word)));
                }
                value.push(b'b');
                canonical_bits(text, target.width, target.kind, value);
            }
            Kind::Real => {
                let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
                let Some(number) = number else {
                    return syntax(line, format!("`{}` is not a number", show(&word)));
                };
                value.extend_from_slice(format!("r{number}").as_bytes());
            }
            Kind::Text => {
                value.push(b's');
                value.extend_from_slice(text);
            }
        }
        // Keep the buffer of the word: the next one is about as long.
        self.words.spare(word);
        Ok(target.signal)
    }
}

/// Shortens bits as far as a reader would extend them again.
fn canonical_bits(text: &[u8], width: u32, kind: Kind, out: &mut Vec<u8>) {
    let begin = out.len();
    let width = width as usize;
    // More digits than the variable has: a reader drops the leading ones.
    let text = if kind == Kind::Bits && width > 0 && text.len() > width { &text[text.len() - width..] } else { text };
    let lower = |at: usize| text[at].to_ascii_lowercase();
    let mut first = 0;
    while first + 1 < text.len() {
        let redundant = match (lower(first), lower(first + 1)) {
            (b'0', b'0' | b'1') => true,
            (a @ (b'x' | b'z'), b) => a == b,
            _ => false,
        };
        if !redundant {
            break;
        }
        first += 1;
    }
    out.extend(text[first..].iter().map(u8::to_ascii_lowercase));
    debug_assert!(out.len() > begin);
}

fn is_bit(byte: u8) -> bool {
    matches!(byte.to_ascii_lowercase(), b'0' | b'1' | b'x' | b'z' | b'u' | b'w' | b'l' | b'h' | b'-')
}

fn is_dump_mark(word: &[u8]) -> bool {
    matches!(word, b"$dumpvars" | b"$dumpall" | b"$dumpon" | b"$dumpoff" | b"$end")
}

fn parse_number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    // `parse` would take a leading plus sign.
    let digits = text.first()?.is_ascii_digit();
    if digits { std::str::from_utf8(text).ok()?.parse().ok() } else { None }
}

/// A word for an error text: not too long, nothing unprintable.
fn show(word: &[u8]) -> String {
    let mut text: String = String::from_utf8_lossy(&word[..word.len().min(60)]).escape_debug().collect();
    if word.len() > 60 {
        text.push('…');
    }
    text
}

// ---------------------------------------------------------------- words

/// The file as words between blanks, with line numbers.
struct Words {
    input: Box<dyn BufRead>,
    line: u64,
    word: Vec<u8>,
    word_line: u64,
}

impl Words {
    /// Reads the next word into `word`; `false` at the end of the file.
    fn next(&mut self) -> Result<bool, VcdError> {
        self.word.clear();
        loop {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            if buffer.is_empty() {
                return Ok(!self.word.is_empty());
            }
            let mut at = 0;
            if self.word.is_empty() {
                while at < buffer.len() && buffer[at].is_ascii_whitespace() {
                    self.line += u64::from(buffer[at] == b'\n');
                    at += 1;
                }
                self.word_line = self.line;
            }
            let begin = at;
            while at < buffer.len() && !buffer[at].is_ascii_whitespace() {
                at += 1;
            }
            self.word.extend_from_slice(&buffer[begin..at]);
            // The blank behind the word stays: it may be a line end that the next call counts.
            let complete = at < buffer.len() && !self.word.is_empty();
            self.input.consume(at);
            if self.word.len() > MAX_WORD {
                return syntax(self.word_line, "a word is longer than 16 MiB; this is not a VCD file");
            }
            if complete {
                return Ok(true);
            }
        }
    }

    /// Gives back the buffer of a word that was taken out.
    fn spare(&mut self, mut word: Vec<u8>) {
        if self.word.capacity() < word.capacity() {
            word.clear();
            self.word = word;
        }
    }

    /// Skips to the `$end` of a command that began in `line`.
    fn skip_command(&mut self, line: u64) -> Result<(), VcdError> {
        while self.next()? {
            if self.word == b"$end" {
                return Ok(());
            }
        }
        syntax(line, "a command has no `$end`")
    }

    /// The words up to `$end` of a command that began in `line`.
    fn command(&mut self, line: u64) -> Result<Vec<String>, VcdError> {
        let (mut words, mut bytes) = (Vec::new(), 0);
        while self.next()? {
            if self.word == b"$end" {
                return Ok(words);
            }
            bytes += self.word.len() + 1;
            if bytes > MAX_WORD {
                return syntax(line, "a command is longer than 16 MiB");
            }
            words.push(String::from_utf8_lossy(&self.word).into_owned());
        }
        syntax(line, "a command has no `$end`")
    }
}

// ---------------------------------------------------------------- header

#[derive(Default)]
struct HeaderParser {
    header: Header,
    codes: HashMap<Vec<u8>, Target>,
    scopes: Vec<String>,
    names: HashMap<String, u32>,
    /// Number in the file to place in `header.tables`.
    tables: HashMap<String, usize>,
    /// Table of the next variable.
    next_table: Option<usize>,
}

impl HeaderParser {
    fn parse(mut self, words: &mut Words) -> Result<(Header, HashMap<Vec<u8>, Target>), VcdError> {
        // Without `$timescale` the standard leaves the unit open; a nanosecond is what most readers assume.
        self.header.unit_fs = 1_000_000;
        while words.next()? {
            let line = words.word_line;
            let command = std::mem::take(&mut words.word);
            if !command.starts_with(b"$") {
                return syntax(line, format!("expected a command such as `$scope`, found `{}`", show(&command)));
            }
            match &command[1..] {
                b"enddefinitions" => {
                    words.skip_command(line)?;
                    return Ok((self.header, self.codes));
                }
                b"timescale" => self.timescale(line, &words.command(line)?.concat())?,
                b"scope" => {
                    let command = words.command(line)?;
                    if self.scopes.len() >= MAX_NESTING {
                        return syntax(line, format!("scopes nest deeper than {MAX_NESTING}"));
                    }
                    self.scopes.push(command.get(1..).unwrap_or_default().join(" "));
                }
                b"upscope" => {
                    words.skip_command(line)?;
                    if self.scopes.pop().is_none() {
                        return syntax(line, "`$upscope` without a scope");
                    }
                }
                b"var" => self.variable(line, &words.command(line)?)?,
                b"attrbegin" => self.attribute(line, &words.command(line)?)?,
                b"comment" => {
                    let comment = words.command(line)?;
                    if let ["clock", "period", period, "ps"] =
                        comment.iter().map(String::as_str).collect::<Vec<_>>()[..]
                    {
                        self.header.period = parse_period(period);
                    }
                }
                _ if is_dump_mark(&command) => return syntax(line, "values come before `$enddefinitions`"),
                _ => words.skip_command(line)?,
            }
        }
        syntax(words.line, "the file ends before `$enddefinitions`")
    }

    fn timescale(&mut self, line: u64, text: &str) -> Result<(), VcdError> {
        let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
        let unit: Option<u128> = match &text[digits..] {
            "s" => Some(1_000_000_000_000_000),
            "ms" => Some(1_000_000_000_000),
            "us" => Some(1_000_000_000),
            "ns" => Some(1_000_000),
            "ps" => Some(1_000),
            "fs" => Some(1),
            _ => None,
        };
        match (text[..digits].parse::<u32>(), unit) {
            (Ok(count @ (1 | 10 | 100)), Some(unit)) => {
                self.header.unit_fs = u128::from(count) * unit;
                Ok(())
            }
            _ => syntax(line, format!("`{}` is not a time scale (1, 10 or 100 of s to fs)", show(text.as_bytes()))),
        }
    }

    fn variable(&mut self, line: u64, words: &[String]) -> Result<(), VcdError> {
        let [kind, width, code, name, range @ ..] = words else {
            return syntax(line, "`$var` needs a type, a width, an identifier code and a name");
        };
        let kind = match kind.as_str() {
            "real" | "realtime" | "shortreal" | "real_parameter" => Kind::Real,
            "string" => Kind::Text,
            _ => Kind::Bits,
        };
        let Some(width) = parse_number::<u32>(width.as_bytes()) else {
            return syntax(line, format!("`{}` is not a width", show(width.as_bytes())));
        };
        let signals = &mut self.header.signals;
        let target = *self.codes.entry(code.as_bytes().to_vec()).or_insert_with(|| {
            *signals += 1;
            Target { signal: *signals - 1, width, kind }
        });
        if (target.width, target.kind) != (width, kind) {
            return syntax(line, format!("the identifier code `{}` is used for two widths", show(code.as_bytes())));
        }
        let mut name = format!("{name}{}", range.concat());
        if let Some(short) = without_full_range(&name, width) {
            name.truncate(short);
        }
        let mut full = self.scopes.join(".");
        if !full.is_empty() {
            full.push('.');
        }
        full.push_str(&name);
        let count = self.names.entry(full.clone()).or_insert(0);
        *count += 1;
        if *count > 1 {
            full.push('#');
            full.push_str(&count.to_string());
        }
        let table = self.next_table.take();
        self.header.variables.push(Variable { name: full, width, kind, signal: target.signal, table });
        Ok(())
    }

    /// `misc 07 NAME count names… values… number` defines a table, `misc 07 "" number` gives it to the next variable.
    /// Everything else that tools put into attributes is passed over.
    fn attribute(&mut self, line: u64, words: &[String]) -> Result<(), VcdError> {
        let [misc, seven, name, rest @ ..] = words else {
            return Ok(());
        };
        if misc != "misc" || seven != "07" {
            return Ok(());
        }
        let [count, rest @ ..] = rest else {
            return syntax(line, "a table of names needs its length");
        };
        if name == "\"\"" {
            self.next_table = self.tables.get(count).copied();
            return Ok(());
        }
        let Some(count) = parse_number::<usize>(count.as_bytes()).filter(|count| *count <= rest.len() / 2) else {
            return syntax(line, "a table of names is shorter than it says");
        };
        let mut table = Table::new();
        for (name, value) in rest[..count].iter().zip(&rest[count..2 * count]) {
            if !value.is_empty() && value.bytes().all(is_bit) {
                let mut key = b"b".to_vec();
                canonical_bits(value.as_bytes(), 0, Kind::Bits, &mut key);
                table.insert(key, name.clone());
            }
        }
        if let Some(number) = rest.get(2 * count) {
            self.tables.insert(number.clone(), self.header.tables.len());
        }
        self.header.tables.push(table);
        Ok(())
    }
}

/// Length of the name without a range `[width-1:0]`, which says nothing that the width does not say.
fn without_full_range(name: &str, width: u32) -> Option<usize> {
    let open = name.rfind('[')?;
    let (msb, lsb) = name[open + 1..].strip_suffix(']')?.split_once(':')?;
    let range = (msb.parse::<u32>().ok()?, lsb.parse::<u32>().ok()?);
    (open > 0 && range.0.checked_add(1) == Some(width) && range.1 == 0).then_some(open)
}

fn parse_period(text: &str) -> Option<Period> {
    let (numerator, denominator) = text.split_once('/')?;
    Period::from_ps(parse_number(numerator.as_bytes())?, parse_number(denominator.as_bytes())?)
}

/// A value for people: hexadecimal when all bits are known, the name behind it if there is one.
pub(crate) fn display_value(value: &[u8], width: u32, table: Option<&Table>) -> String {
    let (mark, text) = value.split_first().unwrap_or((&b'b', b"x"));
    let text_of = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    if *mark != b'b' {
        return text_of(text);
    }
    if let Some(name) = table.and_then(|table| table.get(value)) {
        return name.clone();
    }
    if width <= 1 {
        return text_of(text);
    }
    if text.iter().all(|bit| matches!(bit, b'0' | b'1')) {
        let mut digits = String::new();
        for chunk in text.rchunks(4).rev() {
            let nibble = chunk.iter().fold(0, |sum, bit| sum * 2 + u32::from(bit - b'0'));
            digits.push(char::from_digit(nibble, 16).unwrap_or('?'));
        }
        return digits;
    }
    if text.len() == 1 { text_of(text) } else { format!("b{}", text_of(text)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<VcdReader, VcdError> {
        VcdReader::new(Box::new(io::Cursor::new(text.as_bytes().to_vec())))
    }

    fn all(text: &str) -> Result<Vec<String>, VcdError> {
        let mut reader = read(text)?;
        let mut changed = Vec::new();
        let mut lines = Vec::new();
        while let Some(time) = reader.step(&mut changed)? {
            let values: Vec<String> =
                changed.iter().map(|signal| format!("{signal}={}", show(reader.value(*signal)))).collect();
            lines.push(format!("{time} {}", values.join(" ")));
        }
        Ok(lines)
    }

    const HEAD: &str = "$timescale 10 ns $end $scope module a $end $var wire 4 ! v [3:0] $end $var real 64 r r $end
$var string 1 s s $end $upscope $end $enddefinitions $end\n";

    #[test]
    fn values_are_shortened_alike() {
        let text = format!("{HEAD}b0011 !\n#0 r1.50 r #1\n#1 bxxX1 ! #3 s$hello s b00x1 ! #4 bz !\n$dumpall 0! $end\n");
        assert_eq!(
            all(&text).unwrap(),
            ["0 0=b11 1=r1.5", "10000000 0=bx1", "30000000 2=s$hello 0=b0x1", "40000000 0=b0 0=b0"]
        );
    }

    #[test]
    fn names_leave_out_the_full_range() {
        let reader = read(
            "$scope module top $end
            $var wire 8 a glued[7:0] $end $var wire 8 b apart [7:0] $end $var wire 4 c part [7:4] $end
            $var wire 1 d bit [3] $end $var wire 8 a glued $end
            $attrbegin misc 07 State 2 IDLE BUSY 0 1 9 $end
            $scope module in $end $attrbegin misc 07 \"\" 9 $end $var reg 1 e state $end $upscope $end
            $comment clock period 20000/17 ps $end $upscope $end $enddefinitions $end",
        )
        .unwrap();
        let names: Vec<&str> = reader.header().variables.iter().map(|variable| variable.name.as_str()).collect();
        assert_eq!(names, ["top.glued", "top.apart", "top.part[7:4]", "top.bit[3]", "top.glued#2", "top.in.state"]);
        assert_eq!(reader.header().signals, 5);
        let table = reader.header().variables[5].table.unwrap();
        assert_eq!(reader.header().tables[table][&b"b1".to_vec()], "BUSY");
        assert_eq!(reader.header().period, Period::from_mhz(850));
    }

    #[test]
    fn errors_name_the_line() {
        let body = |text: &str| format!("{HEAD}{text}");
        let cases = [
            String::new(),
            "hello".to_owned(),
            "$scope module a $end\n$var wire 1 $end".to_owned(),
            "\n$var wire -1 ! x $end".to_owned(),
            "$scope module".to_owned(),
            "$upscope $end".to_owned(),
            "$timescale 3 ps $end".to_owned(),
            "$dumpvars 0! $end".to_owned(),
            "$var wire 1 ! a $end $var wire 2 ! b $end".to_owned(),
            "$attrbegin misc 07 T 9 A B 0 1 1 $end".to_owned(),
            body("#5\n#4\n"),
            body("#5\nb01 ?\n"),
            body("#5\nb01"),
            body("#5\nb02 !"),
            body("#x"),
            body("pU 0 0 !"),
            body("rabc r"),
            body("what"),
            body("$comment what"),
            body("$scope"),
        ];
        let errors: Vec<String> = cases.iter().map(|text| all(text).unwrap_err().to_string()).collect();
        insta::assert_snapshot!(errors.join("\n"), @r"
        line 1: the file ends before `$enddefinitions`
        line 1: expected a command such as `$scope`, found `hello`
        line 2: `$var` needs a type, a width, an identifier code and a name
        line 2: `-1` is not a width
        line 1: a command has no `$end`
        line 1: `$upscope` without a scope
        line 1: `3ps` is not a time scale (1, 10 or 100 of s to fs)
        line 1: values come before `$enddefinitions`
        line 1: the identifier code `!` is used for two widths
        line 1: a table of names is shorter than it says
        line 4: time goes back from 5 to 4
        line 4: no variable has the identifier code `?`
        line 4: the file ends in the middle of a value change
        line 4: `b02` is not a value
        line 3: `#x` is not a time
        line 3: port values of extended VCD are not supported
        line 3: `rabc` is not a number
        line 3: no variable has the identifier code `hat`
        line 3: a command has no `$end`
        line 3: `$scope` does not belong here
        ");
    }
}
