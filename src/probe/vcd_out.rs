//! VCD files.
//!
//! **Format.** Value change dump of IEEE 1364, time scale 1 ps. One `module` scope for each scope, one `reg` for each
//! signal, with a range when it is wider than one bit. Identifier codes follow declaration order. The first time stamp
//! carries a `$dumpvars` block with all values, the last one is the end of the recording and never has changes.
//! No date is written and nothing that depends on the machine, so equal runs give equal bytes.
//!
//! **States.** Their names are in the header as `$attrbegin misc 07 …` tables in front of the variable, which Surfer and
//! the `wellen` library decode. GTKWave 3.3 skips them; for it a save file and one translation file a table are
//! written beside the waveform (see `gtkw`).
//!
//! **Why the body is written by hand.** The `vcd` crate writes the header. Its value changes go through one formatting
//! call a bit. A change of a register of 1 to 64 bits costs about 0.6 us that way, and under 40 ns here (mean of a
//! million changes in a release build, measured by `make bench`). Leading zeros are left out here, and bits are written
//! eight at a time.
//!
//! **Limits.** 94^7 signals, far beyond [`Tracer`](super::Tracer)'s own limit.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::gtkw::{SaveFile, keep};
use super::{Declarations, EnumTable, SignalId, Sink, SinkSummary, Value, Values};
use watershed_files::AtomicFile;

/// Bytes collected before they are handed to the file.
const BUFFER: usize = 1 << 16;

/// Writes a VCD file, and beside it what GTKWave needs to show names of states.
pub struct VcdSink {
    /// `None` when it has its name.
    out: Option<Destination>,
    /// The waveform, if it is a file.
    path: Option<PathBuf>,
    save_file: bool,
    save: Option<SaveFile>,
    buffer: Vec<u8>,
    codes: Vec<Code>,
    last_time: Option<u64>,
    bytes: u64,
}

/// The destination of the text.
enum Destination {
    Any(Box<dyn Write + Send>),
    File(AtomicFile),
}

impl Destination {
    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Any(out) => out,
            Self::File(draft) => draft,
        }
    }
}

impl std::fmt::Debug for VcdSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VcdSink").field("path", &self.path).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl VcdSink {
    /// Creates the file at once, so that a wrong path shows before the run. It grows beside its name ([`AtomicFile`]) and takes it,
    /// together with what stands beside it, at the end: until then an older waveform is there as it was.
    ///
    /// # Errors
    /// Whatever the system says when the file cannot be created.
    pub fn create(path: impl AsRef<Path>) -> io::Result<VcdSink> {
        let path = path.as_ref().to_owned();
        Ok(VcdSink { path: Some(path.clone()), ..Self::to(Destination::File(AtomicFile::create(&path)?)) })
    }

    /// Writes to anything; there is no save file then.
    pub fn to_writer(out: Box<dyn Write + Send>) -> VcdSink {
        Self::to(Destination::Any(out))
    }

    fn to(out: Destination) -> VcdSink {
        VcdSink {
            out: Some(out),
            path: None,
            save_file: true,
            save: None,
            buffer: Vec::with_capacity(BUFFER + 4096),
            codes: Vec::new(),
            last_time: None,
            bytes: 0,
        }
    }

    /// Writes to memory; the second value reads it.
    pub fn in_memory() -> (VcdSink, MemoryFile) {
        let file = MemoryFile::default();
        (Self::to_writer(Box::new(file.clone())), file)
    }

    /// Leaves out the GTKWave save file and its translation files.
    #[must_use]
    pub fn without_save_file(mut self) -> VcdSink {
        self.save_file = false;
        self
    }

    fn time(&mut self, time_ps: u64) {
        if self.last_time != Some(time_ps) {
            self.last_time = Some(time_ps);
            self.buffer.push(b'#');
            push_decimal(&mut self.buffer, time_ps);
            self.buffer.push(b'\n');
        }
    }

    #[inline]
    fn change(&mut self, signal: SignalId, values: Values<'_>) {
        let (width, value) = values.get(signal);
        let code = self.codes[signal as usize];
        match value {
            Value::Bits(bits) => push_line(&mut self.buffer, width, bits, code),
            Value::Unknown => {
                self.buffer.extend_from_slice(if width == 1 { b"x" } else { b"bx " });
                self.buffer.extend_from_slice(code.line());
            }
            Value::Wide(words) => {
                self.buffer.push(b'b');
                push_wide(&mut self.buffer, width, words);
                self.buffer.push(b' ');
                self.buffer.extend_from_slice(code.line());
            }
        }
    }

    fn spill(&mut self) -> io::Result<()> {
        if let Some(out) = &mut self.out {
            out.writer().write_all(&self.buffer)?;
        }
        self.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn write_header(&mut self, declarations: &Declarations) -> io::Result<()> {
        let mut writer = vcd::Writer::new(&mut self.buffer);
        writer.version("watershed")?;
        if let Some(period) = declarations.period {
            // For our own reader: with the period it shows cycles.
            writer.comment(&format!("clock period {period} ps"))?;
        }
        writer.timescale(1, vcd::TimescaleUnit::PS)?;
        // The tables met so far; a table's number in the file is its place here plus one.
        let mut tables: Vec<&'static EnumTable> = Vec::new();
        // Depth-first without recursion: a scope is closed when the walk comes back to it.
        let mut open: Vec<(u32, bool)> = (declarations.roots.iter().rev()).map(|&root| (root, false)).collect();
        while let Some((scope, entered)) = open.pop() {
            if entered {
                writer.upscope()?;
                continue;
            }
            let decl = &declarations.scopes[scope as usize];
            writer.add_module(&decl.name)?;
            for &signal in &decl.signals {
                let signal_decl = &declarations.signals[signal as usize];
                if let Some(table) = signal_decl.table {
                    let known = tables.iter().position(|known| *known == table);
                    let number = known.unwrap_or(tables.len()) + 1;
                    if known.is_none() {
                        tables.push(table);
                        write_table(writer.writer(), table, number)?;
                    }
                    writeln!(writer.writer(), "$attrbegin misc 07 \"\" {number} $end")?;
                }
                let range =
                    (signal_decl.width > 1).then(|| vcd::ReferenceIndex::Range(signal_decl.width as i32 - 1, 0));
                writer.var_def(
                    vcd::VarType::Reg,
                    signal_decl.width,
                    vcd::IdCode::from(signal),
                    &signal_decl.name,
                    range,
                )?;
            }
            open.push((scope, true));
            open.extend(decl.children.iter().rev().map(|&child| (child, false)));
        }
        writer.enddefinitions()?;
        Ok(())
    }
}

impl Sink for VcdSink {
    fn header(&mut self, declarations: &Declarations) -> io::Result<()> {
        self.codes = (0..declarations.signals.len() as u32).map(Code::new).collect();
        self.write_header(declarations)?;
        self.save = self.path.as_ref().filter(|_| self.save_file).map(|path| SaveFile::new(path, declarations));
        self.spill()
    }

    fn dump(&mut self, time_ps: u64, values: Values<'_>) -> io::Result<()> {
        self.time(time_ps);
        if let Some(save) = &mut self.save {
            save.begin(values);
        }
        self.buffer.extend_from_slice(b"$dumpvars\n");
        for signal in 0..values.len() {
            self.change(signal as SignalId, values);
            if self.buffer.len() >= BUFFER {
                self.spill()?;
            }
        }
        self.buffer.extend_from_slice(b"$end\n");
        Ok(())
    }

    fn step(&mut self, time_ps: u64, changed: &[SignalId], values: Values<'_>) -> io::Result<()> {
        self.time(time_ps);
        if let Some(save) = &mut self.save {
            save.step(time_ps, changed, values);
        }
        for &signal in changed {
            self.change(signal, values);
            if self.buffer.len() >= BUFFER {
                self.spill()?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, time_ps: u64) -> io::Result<SinkSummary> {
        // Also where it repeats the last one: a file that ends with a value was cut off.
        self.last_time = None;
        self.time(time_ps);
        self.spill()?;
        let files = match (self.out.take(), &self.path) {
            (Some(Destination::File(draft)), Some(path)) => keep(draft, path, self.save.as_ref(), time_ps)?,
            (Some(mut out), _) => {
                out.writer().flush()?;
                Vec::new()
            }
            (None, _) => Vec::new(),
        };
        Ok(SinkSummary { files, bytes: self.bytes, fired_ps: None })
    }
}

/// Definition of a table: all names, then all values in binary, then its number.
fn write_table(out: &mut impl Write, table: &EnumTable, number: usize) -> io::Result<()> {
    write!(out, "$attrbegin misc 07 {} {}", word(table.name), table.names.len())?;
    for name in table.names {
        write!(out, " {}", word(name))?;
    }
    let width = table.width() as usize;
    for value in 0..table.names.len() {
        write!(out, " {value:0width$b}")?;
    }
    writeln!(out, " {number} $end")
}

/// Readers cut the header at blanks and look for `$end`; neither may be in a name.
pub(super) fn word(name: &str) -> String {
    let good = |letter: char| letter.is_ascii_graphic() && letter != '$' && letter != '"';
    let word: String = (name.chars()).map(|letter| if good(letter) { letter } else { '_' }).collect();
    if word.is_empty() { "_".to_owned() } else { word }
}

/// The identifier code of a signal, and the end of its line.
#[derive(Debug, Clone, Copy)]
struct Code {
    text: [u8; 8],
    len: u8,
}

impl Code {
    /// The same text as [`vcd::IdCode`] shows.
    fn new(signal: SignalId) -> Code {
        let line = format!("{}\n", vcd::IdCode::from(signal));
        let mut code = Code { text: [0; 8], len: line.len() as u8 };
        code.text[..line.len()].copy_from_slice(line.as_bytes());
        code
    }

    #[inline]
    fn line(&self) -> &[u8] {
        &self.text[..usize::from(self.len)]
    }
}

/// Eight bits as text, most significant first, for each byte.
static BYTE_TEXT: [[u8; 8]; 256] = {
    let mut table = [[b'0'; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                table[byte][7 - bit] = b'1';
            }
            bit += 1;
        }
        byte += 1;
    }
    table
};

/// The longest line of a signal of at most 64 bits: `b`, its digits, a space, its code and the end of the line.
const LINE: usize = 1 + 64 + 1 + 8;

/// The line of a change of at most 64 bits. Pieces of fixed length are laid one over the end of the other where they are
/// to stand, and what is left over at the end is dropped: a run writes tens of lines in every cycle, no two of one length.
#[inline]
fn push_line(buffer: &mut Vec<u8>, width: u32, bits: u64, code: Code) {
    let at = buffer.len();
    buffer.extend_from_slice(&[b'b'; LINE]);
    let line = &mut buffer[at..at + LINE];
    // A signal of one bit has neither the letter nor the space.
    let wide = usize::from(width > 1);
    let count = (64 - bits.leading_zeros()).max(1);
    let mut rest = bits << (64 - count);
    for place in 0..if count <= 16 { 2 } else { 8 } {
        line[wide + place * 8..][..8].copy_from_slice(&BYTE_TEXT[(rest >> 56) as usize]);
        rest <<= 8;
    }
    let end = wide + count as usize;
    line[end] = b' ';
    line[end + wide..][..8].copy_from_slice(&code.text);
    buffer.truncate(at + end + wide + usize::from(code.len));
}

/// Binary without leading zeros; zero is one `0`.
#[inline]
fn push_binary(buffer: &mut Vec<u8>, bits: u64) {
    let count = (64 - bits.leading_zeros()).max(1) as usize;
    let bytes = count.div_ceil(8);
    let mut text = [0; 64];
    for (place, byte) in bits.to_be_bytes()[8 - bytes..].iter().enumerate() {
        text[place * 8..place * 8 + 8].copy_from_slice(&BYTE_TEXT[usize::from(*byte)]);
    }
    buffer.extend_from_slice(&text[bytes * 8 - count..bytes * 8]);
}

/// As [`push_binary`], for more than 64 bits; bits beyond the width are not shown.
fn push_wide(buffer: &mut Vec<u8>, width: u32, words: &[u64]) {
    let top_bits = width - 64 * (words.len() as u32 - 1);
    let mut started = false;
    for (place, word) in words.iter().enumerate().rev() {
        let word = if place == words.len() - 1 { word & super::scope::mask(top_bits) } else { *word };
        if started {
            for byte in word.to_be_bytes() {
                buffer.extend_from_slice(&BYTE_TEXT[usize::from(byte)]);
            }
        } else if word != 0 || place == 0 {
            push_binary(buffer, word);
            started = true;
        }
    }
}

/// Decimal digits of a time stamp.
fn push_decimal(buffer: &mut Vec<u8>, mut value: u64) {
    let mut text = [0; 20];
    let mut at = text.len();
    loop {
        at -= 1;
        text[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    buffer.extend_from_slice(&text[at..]);
}

/// A file in memory that several owners can read and write; for tests and examples.
#[derive(Debug, Clone, Default)]
pub struct MemoryFile(Arc<Mutex<Vec<u8>>>);

impl MemoryFile {
    /// A copy of what was written so far.
    pub fn bytes(&self) -> Vec<u8> {
        // A writer that panicked leaves whole writes behind: the content is usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What was written so far as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }
}

impl Write for MemoryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(push: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut buffer = Vec::new();
        push(&mut buffer);
        String::from_utf8(buffer).unwrap()
    }

    #[test]
    fn numbers_are_written_without_leading_zeros() {
        for value in [0, 1, 2, 127, 128, 255, 256, 0x8000_0000, u64::MAX, 0x0123_4567_89ab_cdef] {
            assert_eq!(text(|b| push_binary(b, value)), format!("{value:b}"));
            assert_eq!(text(|b| push_decimal(b, value)), format!("{value}"));
        }
        assert_eq!(text(|b| push_wide(b, 100, &[5, 0])), "101");
        assert_eq!(text(|b| push_wide(b, 100, &[0, 0])), "0");
        assert_eq!(text(|b| push_wide(b, 66, &[1, 0xff])), format!("11{:064b}", 1));
    }

    #[test]
    fn a_line_is_the_value_and_the_code_whatever_their_lengths() {
        for signal in [0, 94, 8930, 1_000_000, u32::MAX] {
            let id = vcd::IdCode::from(signal);
            for bit in [0, 1] {
                assert_eq!(text(|b| push_line(b, 1, bit, Code::new(signal))), format!("{bit}{id}\n"));
            }
            for bits in (0..64).flat_map(|n| [(1 << n) - 1, 1 << n, (1 << n) + 1, u64::MAX << n]) {
                assert_eq!(text(|b| push_line(b, 64, bits, Code::new(signal))), format!("b{bits:b} {id}\n"));
            }
        }
    }

    #[test]
    fn codes_are_those_of_the_vcd_crate() {
        for signal in [0, 93, 94, 8929, 8930, 1_000_000, u32::MAX] {
            let code = text(|b| b.extend_from_slice(Code::new(signal).line()));
            assert_eq!(code, format!("{}\n", vcd::IdCode::from(signal)));
        }
    }
}
