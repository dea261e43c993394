//! FST files, GTKWave's compressed format: about a seventh of the size of the same VCD, for long runs (requirement
//! W-VCD-4).
//!
//! **Format.** Time scale 1 ps, one `module` scope for each scope, one variable for each signal, `name [msb:0]` when it is
//! wider than one bit, no date: equal runs give equal bytes. Value changes are collected and compressed in blocks; a block is
//! written when it has grown to some [`BLOCK`] bytes.
//!
//! **States.** The writer library has no tables of names; the GTKWave save file beside the waveform shows them, as with
//! VCD. For our own reader the tables and the clock period are in a block that other readers skip (see
//! [`wave_in`](super::wave_in)).
//!
//! **A run that is killed** leaves the blocks that were written by then.

use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fst_writer::{
    FstBodyWriter, FstFileType, FstHeaderWriter, FstInfo, FstScopeType, FstSignalId, FstSignalType, FstVarDirection,
    FstVarType,
};

use super::gtkw::{SaveFile, keep};
use super::notes::{Notes, fst};
use super::{Declarations, SignalId, Sink, SinkSummary, Value, Values};
use watershed_files::AtomicFile;

/// Bytes of collected changes after which a block is written, besides eight for each bit of all signals: a block also holds
/// all values at its beginning. What a run that is killed loses is at most a block.
pub const BLOCK: usize = 4 << 20;

/// Writes an FST file, and beside it what GTKWave needs to show names of states.
pub struct FstSink {
    path: PathBuf,
    file: Option<AtomicFile>,
    body: Option<FstBodyWriter<SharedFile>>,
    out: Option<SharedFile>,
    signals: Vec<FstSignalId>,
    text: Vec<u8>,
    last_time: Option<u64>,
    save: Option<SaveFile>,
    block: Option<usize>,
}

impl std::fmt::Debug for FstSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FstSink").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The file, of the library and of this sink: what the library does not write goes between its blocks.
#[derive(Clone)]
struct SharedFile(Arc<Mutex<Buffered>>);

/// A file that knows where it is. The library asks after each signal of a block, and a [`BufWriter`] writes what it holds to answer.
struct Buffered {
    file: BufWriter<AtomicFile>,
    position: u64,
}

impl SharedFile {
    fn with<T>(&self, work: impl FnOnce(&mut Buffered) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for SharedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|out| {
            let written = out.file.write(bytes)?;
            out.position += written as u64;
            Ok(written)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.with(|out| out.file.flush())
    }
}

impl Seek for SharedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.with(|out| {
            if to != SeekFrom::Current(0) {
                out.position = out.file.seek(to)?;
            }
            Ok(out.position)
        })
    }
}

fn failed(error: fst_writer::FstWriteError) -> io::Error {
    match error {
        fst_writer::FstWriteError::Io(error) => error,
        other => io::Error::other(other),
    }
}

impl FstSink {
    /// Creates the file at once, so that a wrong path shows before the run. It grows beside its name ([`AtomicFile`]) and takes it,
    /// together with what stands beside it, at the end.
    ///
    /// # Errors
    /// Whatever the system says when the file cannot be created.
    pub fn create(path: impl AsRef<Path>) -> io::Result<FstSink> {
        let path = path.as_ref().to_owned();
        let file = AtomicFile::create(&path)?;
        Ok(FstSink {
            path,
            file: Some(file),
            body: None,
            out: None,
            signals: Vec::new(),
            text: Vec::new(),
            last_time: None,
            save: None,
            block: None,
        })
    }

    /// Writes a block after this many bytes of changes, instead of after a number that follows from the signals.
    #[must_use]
    pub fn with_block(mut self, bytes: usize) -> FstSink {
        self.block = Some(bytes);
        self
    }

    /// Whether a file of this name is to be FST.
    pub fn is_wanted(path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("fst"))
    }

    fn time(&mut self, time_ps: u64) -> io::Result<()> {
        let Some(body) = &mut self.body else { return Ok(()) };
        if self.last_time != Some(time_ps) {
            // A block may end only right before a new time.
            if self.block.is_some_and(|block| body.size() > block) {
                body.flush().map_err(failed)?;
                self.out.as_mut().map_or(Ok(()), Write::flush)?;
            }
            body.time_change(time_ps).map_err(failed)?;
            self.last_time = Some(time_ps);
        }
        Ok(())
    }

    fn change(&mut self, signal: SignalId, values: Values<'_>) -> io::Result<()> {
        let Some(body) = &mut self.body else { return Ok(()) };
        let (width, value) = values.get(signal);
        self.text.clear();
        match value {
            Value::Unknown => self.text.extend((0..width).map(|_| b'x')),
            Value::Bits(bits) => self.text.extend((0..width).rev().map(|bit| b'0' + (bits >> bit & 1) as u8)),
            Value::Wide(words) => {
                let bit = |at: u32| words[(at / 64) as usize] >> (at % 64) & 1;
                self.text.extend((0..width).rev().map(|at| b'0' + bit(at) as u8));
            }
        }
        body.signal_change(self.signals[signal as usize], &self.text).map_err(failed)
    }
}

impl Sink for FstSink {
    fn header(&mut self, declarations: &Declarations) -> io::Result<()> {
        let file = self.file.take().ok_or_else(|| io::Error::other("the header was written already"))?;
        let info = FstInfo {
            start_time: 0,
            timescale_exponent: -12,
            version: "watershed".into(),
            date: String::new(),
            file_type: FstFileType::Verilog,
        };
        let mut out = SharedFile(Arc::new(Mutex::new(Buffered { file: BufWriter::new(file), position: 0 })));
        let mut writer = FstHeaderWriter::new(out.clone(), &info).map_err(failed)?;
        let mut tables = Vec::with_capacity(declarations.signals.len());
        let mut signals: Vec<Option<FstSignalId>> = vec![None; declarations.signals.len()];
        let mut open: Vec<(u32, bool)> = (declarations.roots.iter().rev()).map(|&root| (root, false)).collect();
        while let Some((scope, entered)) = open.pop() {
            if entered {
                writer.up_scope().map_err(failed)?;
                continue;
            }
            let decl = &declarations.scopes[scope as usize];
            writer.scope(&decl.name, "", FstScopeType::Module).map_err(failed)?;
            for &signal in &decl.signals {
                let of = &declarations.signals[signal as usize];
                let name = if of.width > 1 { format!("{} [{}:0]", of.name, of.width - 1) } else { of.name.to_string() };
                let kind = FstSignalType::bit_vec(of.width);
                let id = writer.var(name, kind, FstVarType::Reg, FstVarDirection::Implicit, None).map_err(failed)?;
                signals[signal as usize] = Some(id);
                tables.push(of.table);
            }
            open.push((scope, true));
            open.extend(decl.children.iter().rev().map(|&child| (child, false)));
        }
        self.signals = signals.into_iter().flatten().collect();
        let bits: usize = declarations.signals.iter().map(|of| of.width as usize).sum();
        self.block.get_or_insert(BLOCK + 8 * bits);
        let notes = Notes::of(declarations.period, tables.into_iter()).text();
        out.write_all(&[fst::SKIPPED])?;
        out.write_all(&(notes.len() as u64 + 8).to_be_bytes())?;
        out.write_all(notes.as_bytes())?;
        self.body = Some(writer.finish().map_err(failed)?);
        out.flush()?;
        self.out = Some(out);
        self.save = Some(SaveFile::new(&self.path, declarations));
        Ok(())
    }

    fn dump(&mut self, time_ps: u64, values: Values<'_>) -> io::Result<()> {
        self.time(time_ps)?;
        if let Some(save) = &mut self.save {
            save.begin(values);
        }
        (0..values.len()).try_for_each(|signal| self.change(signal as SignalId, values))
    }

    fn step(&mut self, time_ps: u64, changed: &[SignalId], values: Values<'_>) -> io::Result<()> {
        self.time(time_ps)?;
        if let Some(save) = &mut self.save {
            save.step(time_ps, changed, values);
        }
        changed.iter().try_for_each(|&signal| self.change(signal, values))
    }

    fn finish(&mut self, time_ps: u64) -> io::Result<SinkSummary> {
        self.time(time_ps)?;
        let Some(body) = self.body.take() else { return Ok(SinkSummary::default()) };
        self.out = None;
        let SharedFile(file) = body.finish().map_err(failed)?;
        let file = Arc::into_inner(file).ok_or_else(|| io::Error::other("the file is still being written"))?;
        let Buffered { file, .. } = file.into_inner().unwrap_or_else(PoisonError::into_inner);
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        let files = keep(file, &self.path, self.save.as_ref(), time_ps)?;
        let bytes = std::fs::metadata(&self.path)?.len();
        Ok(SinkSummary { files, bytes, fired_ps: None })
    }
}
