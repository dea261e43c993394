//! Checkpoints: a run under way as a file, and a run that goes on from one (requirement X-CKPT-1).
//!
//! | part of the file | |
//! |---|---|
//! | first line | `watershed checkpoint` |
//! | second line | JSON: who wrote it, of which scenario, in which cycle, and with which options of the run |
//! | the rest | the state of system, families, traffic and watchdogs, in the format of [`watershed_state`], as a frame of LZ4; its hash |
//!
//! The state is that of [`watershed_state`]: what the clock has changed. Everything else is built again from the scenario, so a
//! checkpoint belongs to one scenario, with its data files, and to the build of the program that wrote it. Writing one changes
//! nothing in the run: it waits for the first cycle that is simulated from the wanted one on. What goes on from it ends with the bytes of
//! a run that was never interrupted.

use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use lz4_flex::frame::{FrameDecoder, FrameEncoder};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::Loaded;
use watershed_files::AtomicFile;
use watershed_kernel::Digest;
use watershed_state::{Mismatch, Saver, Sink};

/// The first line.
const MAGIC: &str = "watershed checkpoint\n";

/// Where checkpoints are written, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoints {
    /// The file; each checkpoint replaces the one before.
    pub path: PathBuf,
    /// Cycles between two.
    pub every: u64,
}

/// Why a run cannot go on from a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ResumeError(String);

/// Which run a checkpoint is of: of another one none can go on from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    version: String,
    /// Of the program's file.
    build: u64,
    scenario: String,
    /// Of the scenario as it was read, and of its data files.
    digest: u64,
    /// Options that decide what a run keeps, as they are given on the command line.
    options: Vec<String>,
}

/// What the second line says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    #[serde(flatten)]
    of: Identity,
    cycle: u64,
    /// Parts of the system.
    parts: usize,
}

/// A checkpoint that has been read.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    path: PathBuf,
    header: Header,
    state: Vec<u8>,
}

/// The hash of this program's file: another build may keep its state in another way.
fn build() -> u64 {
    static BUILD: OnceLock<u64> = OnceLock::new();
    *BUILD.get_or_init(|| {
        let program = std::env::current_exe().and_then(std::fs::read);
        short(Sha256::new_with_prefix(program.unwrap_or_default()))
    })
}

/// The first eight bytes of a hash.
fn short(hash: Sha256) -> u64 {
    let bytes = hash.finalize();
    bytes[..8].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

impl Identity {
    /// The run of a scenario, as its document says it before the first cycle, with these options.
    pub fn new(loaded: &Loaded, document: &[u8], options: Vec<String>) -> Identity {
        let mut hash = DefaultHasher::new();
        hash.write(document);
        for path in loaded.inputs() {
            hash.write(&std::fs::read(path).unwrap_or_default());
        }
        // Files of a trace are named by what they begin with, so they are not among the inputs.
        Digest(&mut hash).of(loaded.workload.as_ref().map(|workload| &workload.trace));
        let (version, scenario) = (env!("CARGO_PKG_VERSION").to_owned(), loaded.source.name().to_owned());
        Identity { version, build: build(), scenario, digest: hash.finish(), options }
    }

    /// Why this run cannot go on from a checkpoint of another one.
    fn differs(&self, there: &Identity) -> Option<String> {
        if self.version != there.version {
            return Some(format!("was written by watershed {}; this is {}", there.version, self.version));
        }
        if self.build != there.build {
            return Some("was written by another build of watershed: go on with that one, or begin again".into());
        }
        if self.digest != there.digest {
            let (there, here) = (&there.scenario, &self.scenario);
            return Some(format!("is of another scenario: it was written for {there}, and {here} or its data differ"));
        }
        let list = |options: &[String]| if options.is_empty() { "none".to_owned() } else { options.join(" ") };
        (self.options != there.options).then(|| {
            let (there, here) = (list(&there.options), list(&self.options));
            format!("was written with other options: {there} there, {here} here; what a run keeps, it keeps from its beginning")
        })
    }
}

impl Checkpoint {
    /// Reads a file.
    ///
    /// # Errors
    /// It is not there, no checkpoint, or not whole.
    pub fn read(path: &Path) -> Result<Checkpoint, ResumeError> {
        let not = |why: &str| ResumeError(format!("{} {why}", path.display()));
        let unread = |error: io::Error| not(&format!("cannot be read: {error}"));
        let damaged = || not("is damaged: begin again, or take an older checkpoint");
        let mut file = BufReader::new(File::open(path).map_err(unread)?);
        let mut lines = [String::new(), String::new()];
        file.read_line(&mut lines[0]).map_err(|_| not("is no checkpoint"))?;
        if lines[0] != MAGIC {
            return Err(not("is no checkpoint"));
        }
        file.read_line(&mut lines[1]).map_err(|_| damaged())?;
        let header: Header = serde_json::from_str(&lines[1]).map_err(|_| damaged())?;
        let mut packed = HashedStream::new(file);
        let mut state = Vec::new();
        FrameDecoder::new(&mut packed).read_to_end(&mut state).map_err(|_| damaged())?;
        let hash = short(packed.hash);
        let mut rest = Vec::new();
        packed.inner.read_to_end(&mut rest).map_err(unread)?;
        if rest != hash.to_le_bytes() {
            return Err(damaged());
        }
        Ok(Checkpoint { path: path.to_owned(), header, state })
    }

    fn refused(&self, why: &str) -> ResumeError {
        ResumeError(format!("{} {why}", self.path.display()))
    }

    /// The cycle in which the run goes on.
    #[must_use]
    pub fn cycle(&self) -> u64 {
        self.header.cycle
    }

    /// The state of the run.
    ///
    /// # Errors
    /// It is that of another run, or in another number of parts.
    pub fn state(&self, of: &Identity, parts: usize) -> Result<&[u8], ResumeError> {
        if let Some(why) = of.differs(&self.header.of) {
            return Err(self.refused(&why));
        }
        let there = self.header.parts;
        if parts == there {
            return Ok(&self.state);
        }
        Err(self.refused(&format!("is of a system in {there} parts, and here are {parts}: give the same --threads")))
    }

    /// Why the state could not be loaded.
    pub fn misfit(&self, why: &Mismatch) -> ResumeError {
        self.refused(&format!("cannot be gone on from: {why}"))
    }
}

/// Writes the checkpoints of a run.
pub struct Writer<'a> {
    to: &'a Checkpoints,
    header: Header,
    next: u64,
    written: Option<u64>,
    /// What kept one from being written.
    pub error: Option<String>,
}

impl<'a> Writer<'a> {
    /// For a run that begins in a cycle.
    pub fn new(to: &'a Checkpoints, of: Identity, now: u64) -> Writer<'a> {
        let header = Header { of, cycle: now, parts: 1 };
        Writer { to, header, next: now.saturating_add(to.every), written: None, error: None }
    }

    /// Whether it is time for one.
    pub fn is_due(&self, now: u64) -> bool {
        now >= self.next
    }

    /// Where the state of a cycle goes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn open(&mut self, now: u64, parts: usize) -> io::Result<Saver> {
        self.next = now.saturating_add(self.to.every);
        (self.header.cycle, self.header.parts) = (now, parts);
        let mut to = BufWriter::new(AtomicFile::create(&self.to.path)?);
        to.write_all(MAGIC.as_bytes())?;
        serde_json::to_writer(&mut to, &self.header)?;
        to.write_all(b"\n")?;
        Ok(Saver::to(Box::new(StateWriter(BufWriter::new(FrameEncoder::new(HashedStream::new(to)))))))
    }

    /// Another process writes the one of this cycle.
    pub fn passed(&mut self, now: u64) {
        self.next = now.saturating_add(self.to.every);
    }

    /// How writing it ended. A file that cannot be written is noted; the run goes on, and the last one that was written stays.
    pub fn close(&mut self, outcome: io::Result<()>) {
        match outcome {
            Ok(()) => (self.written, self.error) = (Some(self.header.cycle), None),
            Err(error) => self.error = Some(format!("error: cannot write {}: {error}", self.to.path.display())),
        }
    }

    /// What the caller is told of it.
    pub fn note(&self) -> Option<String> {
        self.written.map(|cycle| format!("the checkpoint of cycle {cycle} is in {}", self.to.path.display()))
    }
}

/// Bytes on their way, and the hash of those that have passed.
struct HashedStream<T> {
    inner: T,
    hash: Sha256,
}

impl<T> HashedStream<T> {
    fn new(inner: T) -> HashedStream<T> {
        HashedStream { inner, hash: Sha256::new() }
    }
}

impl<T: Read> Read for HashedStream<T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes)?;
        self.hash.update(&bytes[..read]);
        Ok(read)
    }
}

impl<T: Write> Write for HashedStream<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// State on its way into a file: a field of it is a few bytes.
struct StateWriter(BufWriter<FrameEncoder<HashedStream<BufWriter<AtomicFile>>>>);

impl Write for StateWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Sink for StateWriter {
    fn end(self: Box<Self>) -> io::Result<()> {
        let packed = self.0.into_inner().map_err(io::IntoInnerError::into_error)?;
        let HashedStream { mut inner, hash } = packed.finish().map_err(io::Error::other)?;
        inner.write_all(&short(hash).to_le_bytes())?;
        let draft = inner.into_inner().map_err(io::IntoInnerError::into_error)?;
        draft.keep()
    }
}
