//! Reads waveforms back, for comparing and drawing them.
//!
//! **Formats.** VCD of IEEE 1364 with the usual extensions (reals, strings, nine-valued bits, `$attrbegin misc 07`
//! tables of names) and FST, of this program or another: whatever the crate `wellen` reads. This file reads what
//! `wellen` does not: the clock period, from the comment that [`VcdSink`](super::VcdSink) writes, and the notes that
//! [`FstSink`](super::FstSink) puts into a block that other readers skip.
//!
//! **Truncated files**, from a run that was killed or a disk that was full, are read as far as they are whole: a VCD up
//! to its last complete line, an FST up to its last complete block. [`WaveFile::cut_off_fs`] then says at which time. A
//! whole VCD of this program ends with a time stamp, so one that ends with a value was cut off; of other programs a VCD
//! is taken to be whole if it ends with a complete line.
//!
//! **Memory.** The header, all times, and of a VCD the compressed changes of all signals; changes are unpacked for the signals
//! that are [loaded](WaveFile::load). An FST is unpacked block by block.
//!
//! **Errors** of a VCD name the line. No input makes the reader panic.
//!
//! **Limits.** Scopes nest at most 1000 deep, a signal has at most 2^24 bits; no time unit is finer than a femtosecond.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

use wellen::{
    Hierarchy, ItemRef, LoadOptions, Signal, SignalEncoding, SignalRef, SignalSource, SignalValueRef, TimescaleUnit,
    WellenError, viewers,
};

use super::Period;
use super::notes::{Notes, fst, parse_period};
use super::vcd_lines::VcdLines;

const MAX_NESTING: usize = 1000;

/// Bits of a signal, at most: a broken width must not take all memory.
const MAX_WIDTH: u32 = 1 << 24;

/// Bytes of a header in which the clock period is looked for.
const HEAD: u64 = 1 << 16;

/// Femtoseconds in a picosecond: all times are kept in femtoseconds, the finest unit of a VCD that is read.
pub(crate) const FS_PER_PS: u128 = 1000;

/// Why a waveform cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system says so.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is something else.
    #[error("it is neither a VCD nor an FST file")]
    OtherKind,
    /// The file is a broken waveform.
    #[error("{}{message}", line.map_or_else(String::new, |line| format!("line {line}: ")))]
    Broken {
        /// The line up to which a VCD was read, from 1.
        line: Option<u64>,
        /// What is wrong.
        message: String,
    },
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
    /// Whose values it shows: several variables may share a signal.
    pub signal: usize,
    /// Place of its names of values in [`Header::tables`].
    pub table: Option<usize>,
}

/// Names of values; the keys are values as [`Changes::value`] gives them.
pub type Table = HashMap<Vec<u8>, String>;

/// What a waveform declares.
#[derive(Debug, Clone, Default)]
pub struct Header {
    /// Variables in file order.
    pub variables: Vec<Variable>,
    /// Number of different signals.
    pub signals: usize,
    /// Tables of names of values.
    pub tables: Vec<Table>,
    /// The clock period, in files of this program.
    pub period: Option<Period>,
}

/// Anything a waveform can be read from.
pub trait Input: Read + Seek + Send + Sync {}

impl<T: Read + Seek + Send + Sync> Input for T {}

/// A waveform that was opened: its header and its times; signals are [loaded](WaveFile::load).
pub struct WaveFile {
    header: Header,
    hierarchy: Hierarchy,
    source: SignalSource,
    /// By number of the signal.
    refs: Vec<SignalRef>,
    /// In units of the file.
    times: Vec<u64>,
    unit_fs: u128,
    cut_off: bool,
}

impl std::fmt::Debug for WaveFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WaveFile")
            .field("variables", &self.header.variables.len())
            .field("moments", &self.times.len())
            .finish_non_exhaustive()
    }
}

impl WaveFile {
    /// Opens a file and reads what it declares, and when something changes.
    ///
    /// # Errors
    /// A file that cannot be read or is no waveform.
    pub fn open(path: &Path) -> Result<WaveFile, ReadError> {
        Self::new(Box::new(File::open(path)?))
    }

    /// The same of a file of which nothing behind a moment is wanted, in femtoseconds. A VCD that was not cut off is read up to the first
    /// time stamp behind that, which ends it then.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_until(path: &Path, last_fs: impl FnOnce(&Header) -> Option<u128>) -> Result<WaveFile, ReadError> {
        Self::until(Box::new(File::open(path)?), last_fs)
    }

    /// The same of anything that gives bytes.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn new(input: Box<dyn Input>) -> Result<WaveFile, ReadError> {
        Self::until(input, |_| None)
    }

    fn until(mut input: Box<dyn Input>, last_fs: impl FnOnce(&Header) -> Option<u128>) -> Result<WaveFile, ReadError> {
        let length = input.seek(SeekFrom::End(0))?;
        let whole = ReadableRange::find(&mut *input, length)?;
        input.seek(SeekFrom::Start(0))?;
        let (line, last) = (AtomicU64::new(1), AtomicU64::new(u64::MAX));
        let place = Arc::new(ReadPosition { line, last, vcd: whole.vcd, ..ReadPosition::default() });
        let piece = ReadableInput {
            input: BufReader::with_capacity(1 << 18, input),
            at: 0,
            end: whole.end,
            body_begun: false,
            lines: VcdLines::default(),
            place: Arc::clone(&place),
        };
        let options = LoadOptions { multi_thread: false, remove_scopes_with_empty_name: false };
        let opened = guarded(|| -> Result<_, WellenError> {
            let header = viewers::read_header(piece, &options)?;
            place.in_body.store(true, Ordering::Relaxed);
            Ok((header.hierarchy, header.body))
        });
        let (hierarchy, body) = place.checked(opened)?;
        let (header, refs) = whole.header(&hierarchy)?;
        if let (false, Some(last), Ok(unit)) = (whole.cut_off, last_fs(&header), unit_fs(&hierarchy)) {
            place.last.store(u64::try_from(last / unit).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
        let body = guarded(|| viewers::read_body(body, &hierarchy, None));
        let viewers::BodyResult { source, time_table } = place.checked(body)?;
        let unit_fs = unit_fs(&hierarchy)?;
        Ok(WaveFile { header, hierarchy, source, refs, times: time_table, unit_fs, cut_off: whole.cut_off })
    }

    /// What the file declares.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The moments at which something changes or a time stamp stands, in femtoseconds.
    pub fn moments(&self) -> impl ExactSizeIterator<Item = u128> + '_ {
        self.times.iter().map(|time| u128::from(*time) * self.unit_fs)
    }

    /// The last moment, in femtoseconds.
    pub fn end_fs(&self) -> Option<u128> {
        self.times.last().map(|time| u128::from(*time) * self.unit_fs)
    }

    /// The time up to which a file is readable that was cut off, in femtoseconds: the changes of that moment may lack some.
    pub fn cut_off_fs(&self) -> Option<u128> {
        self.cut_off.then(|| self.end_fs().unwrap_or(0))
    }

    /// Unpacks the changes of signals, by [`Variable::signal`].
    ///
    /// # Errors
    /// A file that is broken where their changes are.
    pub fn load(&mut self, signals: impl IntoIterator<Item = usize>) -> Result<Signals, ReadError> {
        let mut wanted: Vec<usize> = signals.into_iter().collect();
        wanted.sort_unstable();
        wanted.dedup();
        if self.times.is_empty() || wanted.is_empty() {
            return Ok(Signals::default());
        }
        let refs: Vec<SignalRef> = wanted.iter().map(|signal| self.refs[*signal]).collect();
        let (source, hierarchy) = (&mut self.source, &self.hierarchy);
        let loaded = guarded(|| source.load_signals(&refs, hierarchy, false));
        let loaded = loaded.map_err(|message| ReadError::Broken { line: None, message })?;
        let numbers: HashMap<SignalRef, usize> = refs.into_iter().zip(wanted).collect();
        let numbered = loaded.into_iter().filter_map(|signal| Some((*numbers.get(&signal.signal_ref())?, signal)));
        Ok(Signals(numbered.collect()))
    }

    /// The changes of a signal that was loaded, from before the first one on.
    pub fn changes<'a>(&'a self, signals: &'a Signals, signal: usize) -> Changes<'a> {
        let signal = signals.0.get(&signal);
        Changes { wave: self, signal, at: 0, value: b"bx".to_vec() }
    }
}

/// Signals whose changes are unpacked.
#[derive(Debug, Default)]
pub struct Signals(HashMap<usize, Signal>);

/// The changes of one signal, one after the other.
///
/// A value is kept as a letter for its kind (`b`, `r`, `s`) and its text; bits are shortened as far as they can be
/// extended again (`b0011` is `b11`, `bxxx` is `bx`), so equal values have equal bytes.
#[derive(Debug)]
pub struct Changes<'a> {
    wave: &'a WaveFile,
    /// None: it never changes.
    signal: Option<&'a Signal>,
    at: usize,
    value: Vec<u8>,
}

impl Changes<'_> {
    /// The value as it is now: `bx` before the first change.
    pub fn value(&self) -> &[u8] {
        &self.value
    }

    /// The moment of the next change, in femtoseconds; the value may be the one it has.
    pub fn next_fs(&self) -> Option<u128> {
        let index = *self.signal?.time_indices().get(self.at)?;
        Some(u128::from(*self.wave.times.get(index as usize)?) * self.wave.unit_fs)
    }

    /// Applies all changes of the next moment.
    pub fn step(&mut self) {
        let Some(signal) = self.signal else { return };
        let indices = signal.time_indices();
        let Some(now) = indices.get(self.at) else { return };
        while indices.get(self.at + 1) == Some(now) {
            self.at += 1;
        }
        put_value(signal.data().get_value_at(self.at), &mut self.value);
        self.at += 1;
    }

    /// Applies all changes up to a moment; those at that moment, too, if they are `included`.
    pub fn go_to(&mut self, moment_fs: u128, included: bool) {
        while self.next_fs().is_some_and(|next| next < moment_fs || included && next == moment_fs) {
            self.step();
        }
    }
}

/// Writes a value as [`Changes::value`] has it.
fn put_value(value: SignalValueRef<'_>, out: &mut Vec<u8>) {
    out.clear();
    match value {
        SignalValueRef::Event => out.extend_from_slice(b"b1"),
        SignalValueRef::Real(number) => out.extend_from_slice(format!("r{number}").as_bytes()),
        SignalValueRef::String(text) => {
            out.push(b's');
            out.extend_from_slice(text.as_bytes());
        }
        SignalValueRef::BitVec(bits) => {
            out.push(b'b');
            match bits.be_bytes() {
                // Nearly all values: two states, without the zeros in front.
                Some(bytes) => {
                    let all = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| b'0' + (byte >> bit & 1)));
                    out.extend(all.skip_while(|bit| *bit == b'0'));
                    if out.len() == 1 {
                        out.push(b'0');
                    }
                }
                None => canonical_bits(bits.bit_string().as_bytes(), out),
            }
        }
    }
}

/// Shortens bits as far as a reader would extend them again.
fn canonical_bits(text: &[u8], out: &mut Vec<u8>) {
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

fn unit_fs(hierarchy: &Hierarchy) -> Result<u128, ReadError> {
    // Without `$timescale` the standard leaves the unit open; a nanosecond is what most readers assume.
    let Some(timescale) = hierarchy.timescale() else { return Ok(1_000_000) };
    let unit = match timescale.unit {
        TimescaleUnit::Seconds => 1_000_000_000_000_000,
        TimescaleUnit::MilliSeconds => 1_000_000_000_000,
        TimescaleUnit::MicroSeconds => 1_000_000_000,
        TimescaleUnit::NanoSeconds => 1_000_000,
        TimescaleUnit::PicoSeconds => 1_000,
        TimescaleUnit::FemtoSeconds => 1,
        TimescaleUnit::ZeptoSeconds | TimescaleUnit::AttoSeconds | TimescaleUnit::Unknown => 0,
    };
    if unit == 0 || timescale.factor == 0 {
        return broken("its time scale is none of 1, 10 or 100 of s to fs");
    }
    Ok(u128::from(timescale.factor) * unit)
}

fn broken<T>(message: impl Into<String>) -> Result<T, ReadError> {
    Err(ReadError::Broken { line: None, message: message.into() })
}

// ---------------------------------------------------------------- what of a file is whole

/// The readable range of a file, and the notes in it.
#[derive(Debug, Default)]
struct ReadableRange {
    end: u64,
    cut_off: bool,
    vcd: bool,
    notes: Notes,
}

impl ReadableRange {
    fn find(input: &mut dyn Input, length: u64) -> Result<ReadableRange, ReadError> {
        let head = bytes_at(input, 0, length.min(HEAD))?;
        match head.iter().find(|byte| !byte.is_ascii_whitespace()) {
            None => broken("the file is empty"),
            Some(b'$') => Self::of_vcd(input, length, &head),
            // A block that wraps a whole file of another program: such a file was finished before it was wrapped.
            _ if head[0] == fst::WRAPPED => Ok(ReadableRange { end: length, ..ReadableRange::default() }),
            _ if head[0] == fst::HEADER => Self::of_fst(input, length),
            _ => Err(ReadError::OtherKind),
        }
    }

    fn of_vcd(input: &mut dyn Input, length: u64, head: &[u8]) -> Result<ReadableRange, ReadError> {
        let head = String::from_utf8_lossy(head);
        let header = head.split("$scope").next().unwrap_or_default();
        let ours = header.split_whitespace().collect::<Vec<_>>().windows(2).any(|of| of == ["$version", "watershed"]);
        let period = header.split("clock period ").nth(1).and_then(|text| parse_period(text.split(' ').next()?));
        // The last line, from the end in growing steps: a line may be long.
        let mut step = 1 << 12;
        let (tail, from) = loop {
            let from = length.saturating_sub(step);
            let tail = bytes_at(input, from, length - from)?;
            if tail.split(|byte| *byte == b'\n').count() > 2 || from == 0 {
                break (tail, from);
            }
            step *= 16;
        };
        let complete = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let last = tail[..complete].split(|byte| *byte == b'\n').rfind(|line| !line.trim_ascii().is_empty());
        let ends_whole = tail.last() == Some(&b'\n');
        let cut_off = !ends_whole || ours && !last.is_some_and(|line| line.starts_with(b"#"));
        let end = if ends_whole { length } else { from + complete as u64 };
        Ok(ReadableRange { end, cut_off, vcd: true, notes: Notes { period, ..Notes::default() } })
    }

    fn of_fst(input: &mut dyn Input, length: u64) -> Result<ReadableRange, ReadError> {
        let mut whole = ReadableRange { cut_off: true, ..ReadableRange::default() };
        while whole.end + 9 <= length {
            let block = bytes_at(input, whole.end, (length - whole.end).min(fst::HEADER_BYTES))?;
            let size = u64::from_be_bytes(block[1..9].try_into().expect("eight bytes"));
            let next = whole.end.saturating_add(1).saturating_add(size);
            if !fst::KNOWN.contains(&block[0]) || size < 8 || next > length {
                break;
            }
            match block[0] {
                // The number of blocks with changes is entered when the file is finished.
                fst::HEADER if block.len() >= fst::SECTIONS + 8 => {
                    whole.cut_off = block[fst::SECTIONS..fst::SECTIONS + 8].iter().all(|byte| *byte == 0);
                }
                fst::SKIPPED => {
                    let text = bytes_at(input, whole.end + 9, size - 8)?;
                    if let Some(notes) = Notes::read(&String::from_utf8_lossy(&text)) {
                        whole.notes = notes;
                    }
                }
                _ => {}
            }
            whole.end = next;
        }
        if whole.end == 0 {
            return Err(ReadError::OtherKind);
        }
        whole.cut_off |= whole.end < length;
        Ok(whole)
    }

    /// What a file declares; signals in the order in which their first variables come.
    fn header(&self, hierarchy: &Hierarchy) -> Result<(Header, Vec<SignalRef>), ReadError> {
        let mut header = Header { period: self.notes.period, ..Header::default() };
        let mut names: HashMap<String, u32> = HashMap::new();
        let mut refs: Vec<SignalRef> = Vec::new();
        let mut numbers: HashMap<SignalRef, usize> = HashMap::new();
        let mut tables: HashMap<Vec<(&str, &str)>, usize> = HashMap::new();
        header.tables.extend(self.notes.tables.iter().map(|names| table_of(names)));
        let mut notes = self.notes.runs.iter().flat_map(|(table, count)| std::iter::repeat_n(*table, *count));

        // Depth first, without recursion.
        let mut open: Vec<(ItemRef, usize)> = hierarchy.items().map(|item| (item, 0)).collect();
        open.reverse();
        let mut path: Vec<&str> = Vec::new();
        while let Some((item, depth)) = open.pop() {
            path.truncate(depth);
            let var = match item {
                ItemRef::Var(var) => &hierarchy[var],
                ItemRef::Scope(scope) => {
                    if depth >= MAX_NESTING {
                        return broken(format!("scopes nest deeper than {MAX_NESTING}"));
                    }
                    let scope = &hierarchy[scope];
                    path.push(scope.name(hierarchy));
                    let first = open.len();
                    open.extend(scope.items(hierarchy).map(|item| (item, depth + 1)));
                    open[first..].reverse();
                    continue;
                }
            };
            let (kind, width) = match var.signal_encoding(hierarchy) {
                SignalEncoding::String => (Kind::Text, 0),
                SignalEncoding::Real => (Kind::Real, 64),
                SignalEncoding::BitVector(width) => (Kind::Bits, width.max(1)),
            };
            let range = match var.index().map(|index| (index.msb(), index.lsb())) {
                None => String::new(),
                Some((msb, lsb)) if msb == lsb => format!("[{msb}]"),
                Some((msb, 0)) if msb + 1 == i64::from(width) => String::new(),
                Some((msb, lsb)) => format!("[{msb}:{lsb}]"),
            };
            path.push(var.name(hierarchy));
            let mut name = path.join(".") + &range;
            if width > MAX_WIDTH {
                return broken(format!("`{name}` has {width} bits: more than {MAX_WIDTH} are not read"));
            }
            let count = names.entry(name.clone()).or_insert(0);
            *count += 1;
            if *count > 1 {
                name = format!("{name}#{count}");
            }
            let signal = *numbers.entry(var.signal_ref()).or_insert_with(|| {
                refs.push(var.signal_ref());
                refs.len() - 1
            });
            let mut table = notes.next().flatten().filter(|table| *table < header.tables.len());
            if let Some((_, values)) = var.enum_type(hierarchy) {
                let known = &mut header.tables;
                table = Some(*tables.entry(values).or_insert_with_key(|values| {
                    known.push(values.iter().map(|(bits, name)| (key_of(bits), (*name).to_owned())).collect());
                    known.len() - 1
                }));
            }
            header.variables.push(Variable { name, width, kind, signal, table });
        }
        header.signals = refs.len();
        Ok((header, refs))
    }
}

/// Some bytes of a file.
fn bytes_at(input: &mut dyn Input, from: u64, count: u64) -> io::Result<Vec<u8>> {
    input.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    input.take(count).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn key_of(bits: &str) -> Vec<u8> {
    let mut key = b"b".to_vec();
    canonical_bits(bits.as_bytes(), &mut key);
    key
}

/// Names of the values 0, 1, 2 and so on.
fn table_of(names: &[String]) -> Table {
    names.iter().enumerate().map(|(value, name)| (format!("b{value:b}").into_bytes(), name.clone())).collect()
}

// ---------------------------------------------------------------- what goes to the library, and what comes back

/// The position of reading, for messages.
#[derive(Debug, Default)]
struct ReadPosition {
    vcd: bool,
    line: AtomicU64,
    /// Behind the header.
    in_body: AtomicBool,
    /// Nothing behind this is wanted, in units of the file.
    last: AtomicU64,
    /// What this side has found wrong, and its line.
    wrong: Mutex<Option<(u64, String)>>,
}

impl ReadPosition {
    /// The result of a call of the library; its errors and panics with the line.
    fn checked<T>(&self, outcome: Result<Result<T, WellenError>, String>) -> Result<T, ReadError> {
        if let Some((line, message)) = self.wrong.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(ReadError::Broken { line: Some(line), message });
        }
        let message = match outcome {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(WellenError::UnknownFileFormat)) if !self.vcd => return Err(ReadError::OtherKind),
            Ok(Err(WellenError::Io(error))) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error.into()),
            Ok(Err(WellenError::FailedToLoad(_, message))) => message.trim_start_matches("[vcd] ").to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(panic) => panic,
        };
        // Whatever it says of a header that ends too early: it ends too early.
        let at_end = message.contains("I/O") || message.contains("EOF") || message.contains("unknown file format");
        let message = if at_end && self.vcd && !self.in_body.load(Ordering::Relaxed) {
            "the file ends before `$enddefinitions`".to_owned()
        } else if message.contains("missing") {
            "the file ends before its signals are declared".to_owned()
        } else {
            message
        };
        Err(ReadError::Broken { line: self.vcd.then(|| self.line.load(Ordering::Relaxed)), message })
    }
}

/// The readable part of a file; counts lines on the way and looks for what the library leaves out.
struct ReadableInput {
    input: BufReader<Box<dyn Input>>,
    at: u64,
    end: u64,
    body_begun: bool,
    lines: VcdLines,
    place: Arc<ReadPosition>,
}

impl ReadableInput {
    fn pass(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        if !self.place.vcd {
            return Ok(());
        }
        let in_body = self.place.in_body.load(Ordering::Relaxed);
        let counted = || {
            self.place.line.fetch_add(1, Ordering::Relaxed);
        };
        self.lines.pass(bytes, in_body, counted).map_err(|wrong| {
            let line = self.place.line.load(Ordering::Relaxed);
            self.place.wrong.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert((line, wrong.clone()));
            io::Error::new(io::ErrorKind::InvalidData, wrong)
        })?;
        if self.lines.last_time() > Some(self.place.last.load(Ordering::Relaxed)) {
            self.end = self.at;
        }
        Ok(())
    }

    fn left(&self, wanted: usize) -> usize {
        usize::try_from(self.end.saturating_sub(self.at)).map_or(wanted, |left| left.min(wanted))
    }
}

impl Read for ReadableInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // The library reads a body byte by byte.
        if let [next] = buffer
            && self.body_begun
            && self.at < self.end
            && let Some(&byte) = self.input.buffer().first()
            && self.lines.keep(byte)
        {
            *next = byte;
            self.input.consume(1);
            self.at += 1;
            return Ok(1);
        }
        let most = self.left(buffer.len());
        let count = self.input.read(&mut buffer[..most])?;
        self.pass(&buffer[..count])?;
        // The library takes the body to begin in the line behind the header.
        if self.place.vcd && self.place.in_body.load(Ordering::Relaxed) && !self.body_begun && count > 0 {
            self.body_begun = true;
            if buffer[0].is_ascii_whitespace() {
                buffer[0] = b'\n';
            }
        }
        Ok(count)
    }
}

impl BufRead for ReadableInput {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let most = self.left(usize::MAX);
        let buffer = self.input.fill_buf()?;
        Ok(&buffer[..buffer.len().min(most)])
    }

    fn consume(&mut self, count: usize) {
        let passed = self.input.buffer()[..count].to_vec();
        // What is wrong is kept, and told when the library comes back.
        let _ = self.pass(&passed);
        self.input.consume(count);
    }
}

impl Seek for ReadableInput {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.end.checked_add_signed(by),
        };
        let target = target.ok_or(io::ErrorKind::InvalidInput)?;
        if target != self.at {
            self.input.seek_relative(target.wrapping_sub(self.at) as i64)?;
            self.at = target;
        }
        if target == 0 {
            self.lines.rewind();
            self.place.line.store(1, Ordering::Relaxed);
        }
        Ok(target)
    }
}

/// Calls the library, which panics on some broken files; what it says then is the error.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    thread_local!(static QUIET: Cell<bool> = const { Cell::new(false) });
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    QUIET.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(false);
    outcome.map_err(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
        // Its own words where they are about the file; others are about its code.
        let told =
            text.filter(|text| ["Failed to parse", "Bit-vector", "expected a"].iter().any(|of| text.starts_with(of)));
        told.unwrap_or("a value is not of its variable's type").to_owned()
    })
}

/// A waveform in memory.
pub(crate) fn in_memory(bytes: Vec<u8>) -> Result<WaveFile, ReadError> {
    WaveFile::new(Box::new(Cursor::new(bytes)))
}
