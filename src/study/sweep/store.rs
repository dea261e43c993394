//! The results of a sweep, in a journal that survives the end of the process at any instant.
//!
//! A journal is a text file that only grows, a JSON object a line:
//!
//! | line | holds |
//! |---|---|
//! | `{"sweep": …}` | version of the layout, in front |
//! | `{"notes": …}` | the sweep file, and what it was made with; rows before it are forgotten if it is for another sweep |
//! | `{"point": …}` | the outcome of a configuration, by the hash of the resolved configuration |
//! | `{"row": …}` | which configuration a numbered point of the sweep is |
//! | `{"commit": …}` | how many lines belong together, and a hash of them |
//!
//! A point is written together with its row, and is on the disk before the next one is written: a process that is
//! killed loses the points under way and no other. Lines without a commit behind them count as never written: readers
//! skip them, and the next writer cuts them off. Points stay when the sweep file changes; rows belong to one file and
//! go with it. Of two lines for one point or row the later one counts.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::table::PointResult;
use watershed_files as files;
use watershed_scenario_interface::kind::{SWEEP_BEGINS, SWEEP_STORES};
use watershed_scenario_interface::result::fnv1a;

/// The journal of a sweep, and all that it says.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    /// Open once something is written.
    file: Option<File>,
    /// Bytes up to the end of the last commit.
    end: u64,
    notes: BTreeMap<String, String>,
    points: HashMap<String, PointOutcome>,
    rows: BTreeMap<u64, Row>,
}

/// The outcome of a configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PointOutcome {
    /// Hash of the resolved configuration.
    pub key: String,
    /// "ok", "failed" (a check did, or the run did not finish) or "refused" (there is no such scenario).
    pub status: String,
    /// What is kept of the result.
    pub facts: Option<PointResult>,
    /// What went wrong.
    pub error: String,
}

/// A numbered point of the sweep and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its number, from 0 on.
    pub number: u64,
    /// Hash of the resolved configuration.
    pub key: String,
    /// Name of the scenario.
    pub scenario: String,
    /// File of the scenario.
    pub file: String,
    /// From 0 on.
    pub repetition: u64,
    /// Seed of the run.
    pub seed: u64,
    /// Values of the axes by name.
    pub axes: BTreeMap<String, String>,
    /// `--set` arguments that make it.
    pub sets: Vec<String>,
    /// "ok", "failed" or "refused".
    #[serde(skip)]
    pub status: String,
    /// What is kept of the result.
    #[serde(skip)]
    pub facts: Option<PointResult>,
    /// What went wrong.
    #[serde(skip)]
    pub error: String,
}

impl Row {
    /// The command that runs this point again.
    pub fn command(&self) -> String {
        format!("{} --seed {}", command(&self.file, &self.sets), self.seed)
    }
}

/// `watershed run` with a scenario and what is set in it, as a shell takes it.
pub fn command<'a>(file: &str, sets: impl IntoIterator<Item = &'a String>) -> String {
    let mut words = vec!["watershed run".to_owned(), shell_word(file)];
    for set in sets {
        words.extend(["--set".to_owned(), shell_word(set)]);
    }
    words.join(" ")
}

/// A word as a shell takes it: in quotes where it has more than letters, digits and a few marks.
pub fn shell_word(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/=,+:".contains(&byte);
    if text.bytes().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// What a store says when something is wrong.
pub type Result<T> = std::result::Result<T, StoreError>;

/// A store cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("error: {}: {error}", path.display())]
pub struct StoreError {
    path: PathBuf,
    error: String,
}

/// A line of the journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Sweep { version: u64 },
    Notes(BTreeMap<String, String>),
    Point(PointOutcome),
    Row(Row),
    Commit { lines: usize, hash: String },
}

/// Version of the layout; the first one was an SQLite database.
const VERSION: u64 = 2;

impl Store {
    /// The file of a store in a folder.
    pub fn file(folder: &Path) -> PathBuf {
        folder.join(SWEEP_STORES[0])
    }

    /// All files of a sweep in a folder: the store, the table, and the units of its columns.
    pub fn files(folder: &Path) -> Vec<PathBuf> {
        vec![Self::file(folder), folder.join("points.csv"), folder.join("columns.csv")]
    }

    /// Whether a folder has a store, be it one that this version cannot read.
    pub fn exists(folder: &Path) -> bool {
        SWEEP_STORES.iter().any(|name| folder.join(name).exists())
    }

    /// Opens the store of a folder; where there is none, the first thing that is written makes it.
    ///
    /// # Errors
    /// It cannot be read, is damaged, or is no store of this version.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = Self::file(folder);
        let (notes, points, rows) = Default::default();
        let mut store = Self { path, file: None, end: 0, notes, points, rows };
        match File::open(&store.path) {
            Ok(file) => store.read(BufReader::new(file))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                store.path = folder.join(SWEEP_STORES[1]);
                if store.path.exists() {
                    return Err(store.fail(
                        "an earlier version of this program kept the sweep in this database, which this one does not read; \
                         the table in points.csv is whole: run the sweep into another folder",
                    ));
                }
                store.path = Self::file(folder);
            }
            Err(error) => return Err(store.fail(error)),
        }
        Ok(store)
    }

    fn fail(&self, error: impl std::fmt::Display) -> StoreError {
        StoreError { path: self.path.clone(), error: error.to_string() }
    }

    /// Takes in all that is committed.
    fn read(&mut self, mut journal: impl BufRead) -> Result<()> {
        let (mut at, mut number) = (0, 0);
        let mut lines: Vec<Vec<u8>> = Vec::new();
        loop {
            let mut bytes = Vec::new();
            at += journal.read_until(b'\n', &mut bytes).map_err(|error| self.fail(error))? as u64;
            number += 1;
            if number == 1 && !bytes.starts_with(&SWEEP_BEGINS.as_bytes()[..bytes.len().min(SWEEP_BEGINS.len())]) {
                return Err(self.fail("this is no store of a sweep"));
            }
            if bytes.pop() != Some(b'\n') {
                // The end, or the beginning of a line whose rest was never written.
                return Ok(());
            }
            if !bytes.starts_with(b"{\"commit\":") {
                lines.push(bytes);
                continue;
            }
            let whole = serde_json::to_vec(&commit_of(&lines)).is_ok_and(|commit| commit == bytes);
            if !whole {
                // Power may go while the last commit is on its way to the disk, in any order; nothing follows it then.
                let more = journal.fill_buf().map_err(|error| self.fail(error))?;
                if more.is_empty() {
                    return Ok(());
                }
                return Err(self.fail(format!("it is damaged before line {number}")));
            }
            for line in lines.drain(..) {
                let wrong = |error: &dyn std::fmt::Display| format!("before line {number}: {error}");
                let line = serde_json::from_slice(&line).map_err(|error| self.fail(wrong(&error)))?;
                self.take(line)?;
            }
            self.end = at;
        }
    }

    /// Takes in a line.
    fn take(&mut self, line: Line) -> Result<()> {
        match line {
            Line::Sweep { version: VERSION } | Line::Commit { .. } => {}
            Line::Sweep { version } => {
                return Err(self.fail(format!("this is a store of version {version}; this program writes {VERSION}")));
            }
            Line::Notes(notes) => {
                if self.notes.get("fingerprint") != notes.get("fingerprint") {
                    self.rows.clear();
                }
                self.notes.extend(notes);
            }
            Line::Point(mut done) => {
                done.facts = done.facts.and_then(PointResult::upgraded);
                self.points.insert(done.key.clone(), done);
            }
            Line::Row(row) => {
                self.rows.insert(row.number, row);
            }
        }
        Ok(())
    }

    /// Writes lines, all or nothing, and takes them in as a reader of the journal would.
    fn commit(&mut self, lines: impl IntoIterator<Item = Line>) -> Result<()> {
        let first = (self.end == 0).then_some(Line::Sweep { version: VERSION });
        let lines: Vec<Vec<u8>> = first
            .into_iter()
            .chain(lines)
            .map(|line| serde_json::to_vec(&line))
            .collect::<serde_json::Result<_>>()
            .map_err(|error| self.fail(error))?;
        let commit = serde_json::to_vec(&commit_of(&lines)).map_err(|error| self.fail(error))?;
        let bytes: Vec<u8> = lines.iter().chain([&commit]).flat_map(|line| line.iter().chain(b"\n")).copied().collect();
        self.append(&bytes).map_err(|error| self.fail(error))?;
        for line in lines {
            let line = serde_json::from_slice(&line).map_err(|error| self.fail(error))?;
            self.take(line)?;
        }
        Ok(())
    }

    /// Puts bytes behind the last commit; they are on the disk when it returns, or none of them is.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let folder = self.path.parent().unwrap_or(Path::new("."));
                std::fs::create_dir_all(folder)?;
                let file = File::options().write(true).create(true).truncate(false).open(&self.path)?;
                file.set_len(self.end)?;
                files::sync_folder(folder);
                none.insert(file)
            }
        };
        file.seek(SeekFrom::Start(self.end))?;
        let written = file.write_all(bytes).and_then(|()| file.sync_data());
        match written {
            Ok(()) => self.end += bytes.len() as u64,
            // Readers would skip it, and a full disk needs the room.
            Err(_) => file.set_len(self.end)?,
        }
        written
    }

    /// The journal.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A note by its name.
    pub fn note(&self, name: &str) -> Option<&str> {
        self.notes.get(name).map(String::as_str)
    }

    /// Makes the store that of a sweep. Rows of another one go; points stay.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(&mut self, notes: &[(&str, &str)]) -> Result<()> {
        if notes.iter().all(|(name, value)| self.note(name) == Some(value)) {
            return Ok(());
        }
        let notes = notes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.commit([Line::Notes(notes)])
    }

    /// Whether nothing has been computed yet.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Keys of all points that are done.
    pub fn keys(&self) -> HashSet<String> {
        self.points.keys().cloned().collect()
    }

    /// Numbers of all rows whose points are done.
    pub fn finished(&self) -> HashSet<u64> {
        self.rows.values().filter(|row| self.points.contains_key(&row.key)).map(|row| row.number).collect()
    }

    /// Writes rows, and the outcome of points, all or nothing.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&mut self, rows: &[Row], done: &[PointOutcome]) -> Result<()> {
        let known = |row: &&Row| {
            let bare = Row { status: String::new(), facts: None, error: String::new(), ..(*row).clone() };
            self.rows.get(&row.number) == Some(&bare)
        };
        let points = done.iter().filter(|done| self.points.get(&done.key) != Some(done));
        let rows = rows.iter().filter(|row| !known(row));
        let lines: Vec<Line> = points.cloned().map(Line::Point).chain(rows.cloned().map(Line::Row)).collect();
        if lines.is_empty() { Ok(()) } else { self.commit(lines) }
    }

    /// The outcome of the rows, in the order of their numbers; those that are not done are missing.
    pub fn rows(&self) -> Vec<Row> {
        let whole = |row: &Row| {
            let PointOutcome { status, facts, error, .. } = self.points.get(&row.key)?.clone();
            Some(Row { status, facts, error, ..row.clone() })
        };
        self.rows.values().filter_map(whole).collect()
    }

    /// Whether a sweep has begun in it. A process makes the file before its first commit is on the disk.
    pub fn has_begun(&self) -> bool {
        self.note("fingerprint").is_some()
    }

    /// Whether another store holds points of the same sweep. One in which nothing has begun yet holds none of another.
    ///
    /// # Errors
    /// The other belongs to another sweep.
    pub fn fits(&self, other: &Store) -> Result<()> {
        let same = self.note("fingerprint") == other.note("fingerprint");
        if same || !self.has_begun() || !other.has_begun() {
            return Ok(());
        }
        Err(other.fail(format_args!("it belongs to another sweep than {}", self.path.display())))
    }

    /// Takes over all that other stores hold; they are looked at before anything is written. The journal is written anew, all or
    /// nothing, in an order of its own: the same bytes whatever the parts were and in however many steps they were joined.
    ///
    /// # Errors
    /// They belong to different sweeps, or it cannot be written.
    pub fn merge(&mut self, others: &[Store]) -> Result<()> {
        let Some(begun) = std::iter::once(&*self).chain(others).find(|store| store.has_begun()) else { return Ok(()) };
        for other in others {
            begun.fits(other)?;
        }
        let notes = begun.notes.clone();
        let mut rows: BTreeMap<u64, Row> = BTreeMap::new();
        let mut points: BTreeMap<&String, &PointOutcome> = self.points.iter().collect();
        for store in std::iter::once(&*self).chain(others) {
            for row in store.rows.values() {
                let Some(done) = store.points.get(&row.key) else { continue };
                points.insert(&done.key, done);
                rows.entry(row.number).or_insert_with(|| row.clone());
            }
        }
        let points: Vec<Line> = points.into_values().cloned().map(Line::Point).collect();
        let lines = std::iter::once(Line::Notes(notes)).chain(points).chain(rows.into_values().map(Line::Row));
        let bytes = committed(std::iter::once(Line::Sweep { version: VERSION }).chain(lines))
            .map_err(|error| self.fail(error))?;
        // The old journal goes, and with it the handle that would write behind it.
        self.file = None;
        let folder = self.path.parent().unwrap_or(Path::new(".")).to_owned();
        std::fs::create_dir_all(&folder)
            .and_then(|()| files::write(&self.path, &bytes))
            .map_err(|error| self.fail(error))?;
        *self = Store::open(&folder)?;
        Ok(())
    }
}

/// Lines with the commit behind them.
fn committed(lines: impl Iterator<Item = Line>) -> serde_json::Result<Vec<u8>> {
    let lines: Vec<Vec<u8>> = lines.map(|line| serde_json::to_vec(&line)).collect::<serde_json::Result<_>>()?;
    let commit = serde_json::to_vec(&commit_of(&lines))?;
    Ok(lines.iter().chain([&commit]).flat_map(|line| line.iter().chain(b"\n")).copied().collect())
}

/// The line that makes lines count.
fn commit_of(lines: &[Vec<u8>]) -> Line {
    let hash = fnv1a(lines.iter().flat_map(|line| line.iter().chain(b"\n")));
    Line::Commit { lines: lines.len(), hash: format!("{hash:016x}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u64, key: &str) -> Row {
        Row {
            number,
            key: key.into(),
            scenario: "die".into(),
            file: "d.toml".into(),
            repetition: 0,
            seed: 1,
            axes: BTreeMap::from([("a".to_owned(), "1".to_owned())]),
            sets: vec!["a=1".into(), "b=[1, 'x']".into()],
            status: "ok".into(),
            facts: Some(PointResult::of(serde_json::json!({ "cycles": number }))),
            error: String::new(),
        }
    }

    fn done(row: &Row) -> PointOutcome {
        PointOutcome { key: row.key.clone(), status: "ok".into(), facts: row.facts.clone(), error: String::new() }
    }

    #[test]
    fn what_is_written_is_there_and_rows_belong_to_a_sweep() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (row(1, "k1"), row(0, "k0"));
        {
            let mut store = Store::open(folder.path()).unwrap();
            store.begin(&[("fingerprint", "f")]).unwrap();
            assert!(store.is_empty());
            store.write(&[a.clone(), b.clone()], &[done(&a), done(&b)]).unwrap();
            store.write(&[row(7, "not done")], &[]).unwrap();
        }
        let mut store = Store::open(folder.path()).unwrap();
        assert_eq!(store.rows(), [b, a]);
        assert_eq!(store.finished().len(), 2);
        store.begin(&[("fingerprint", "f")]).unwrap();
        assert_eq!(store.rows().len(), 2);
        store.begin(&[("fingerprint", "another")]).unwrap();
        assert_eq!((store.rows().len(), store.keys().len()), (0, 2));
    }

    #[test]
    fn stores_of_one_sweep_are_joined() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let mut stores = folders.each_ref().map(|folder| Store::open(folder.path()).unwrap());
        for (at, store) in stores.iter_mut().enumerate().take(2) {
            let row = row(at as u64, &format!("k{at}"));
            store.begin(&[("fingerprint", "f")]).unwrap();
            store.write(std::slice::from_ref(&row), &[done(&row)]).unwrap();
        }
        let [a, mut b, mut into] = stores;
        into.merge(std::slice::from_ref(&b)).unwrap();
        into.merge(std::slice::from_ref(&a)).unwrap();
        assert_eq!(into.rows().len(), 2);
        b.begin(&[("fingerprint", "another")]).unwrap();
        let fresh = tempfile::tempdir().unwrap();
        let mut fresh = Store::open(fresh.path()).unwrap();
        let parts = [a, b];
        for into in [&mut into, &mut fresh] {
            assert!(into.merge(&parts).unwrap_err().to_string().contains("another sweep"));
        }
        assert!(fresh.is_empty() && fresh.note("fingerprint").is_none());
    }

    #[test]
    fn the_command_survives_a_shell() {
        assert_eq!(row(0, "k").command(), "watershed run d.toml --set a=1 --set 'b=[1, '\\''x'\\'']' --seed 1");
    }

    #[test]
    fn a_file_that_is_no_store_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for (text, words) in [
            ("this is text", "this is no store of a sweep"),
            ("{\"sweep\":{\"version\":3}}\n{\"commit\":{\"lines\":1,\"hash\":\"HASH\"}}\n", "of version 3"),
        ] {
            let hash = fnv1a(text.split_inclusive('\n').next().unwrap().as_bytes());
            std::fs::write(Store::file(folder.path()), text.replace("HASH", &format!("{hash:016x}"))).unwrap();
            let error = Store::open(folder.path()).unwrap_err().to_string();
            assert!(error.contains("sweep.jsonl: ") && error.contains(words), "{error}");
        }
        std::fs::remove_file(Store::file(folder.path())).unwrap();
        std::fs::write(folder.path().join("sweep.sqlite"), "SQLite format 3\0").unwrap();
        let error = Store::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("sweep.sqlite: an earlier version") && error.contains("another folder"), "{error}");
    }

    /// A journal of two points, and where each commit ends.
    fn journal(folder: &Path) -> (Vec<u8>, Vec<usize>) {
        let mut store = Store::open(folder).unwrap();
        let mut ends = vec![0];
        store.begin(&[("fingerprint", "f")]).unwrap();
        ends.push(store.end as usize);
        for number in 0..2 {
            let row = row(number, &format!("k{number}"));
            store.write(std::slice::from_ref(&row), &[done(&row)]).unwrap();
            ends.push(store.end as usize);
        }
        (std::fs::read(Store::file(folder)).unwrap(), ends)
    }

    #[test]
    fn a_journal_cut_anywhere_has_what_was_committed_and_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let (whole, ends) = journal(folder.path());
        assert_eq!(ends[3], whole.len());
        // Each cut costs some writes that wait for the disk.
        for cut in (0..=whole.len()).filter(|cut| cut % 5 == 0 || ends.contains(cut)) {
            std::fs::write(Store::file(folder.path()), &whole[..cut]).unwrap();
            let mut store = Store::open(folder.path()).unwrap();
            let commits = ends.iter().rposition(|&end| end <= cut).unwrap();
            assert_eq!((store.rows().len(), store.note("fingerprint").is_some()), (commits.max(1) - 1, commits > 0));
            // A writer that continues leaves the bytes of an undisturbed one.
            store.begin(&[("fingerprint", "f")]).unwrap();
            for number in 0..2 {
                let row = row(number, &format!("k{number}"));
                store.write(std::slice::from_ref(&row), &[done(&row)]).unwrap();
            }
            assert!(std::fs::read(Store::file(folder.path())).unwrap() == whole, "cut at {cut}");
        }
    }

    #[test]
    fn corruption_is_distinguished_from_an_unfinished_write() {
        let folder = tempfile::tempdir().unwrap();
        let (whole, ends) = journal(folder.path());
        let with_zero_at = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] = 0;
            std::fs::write(Store::file(folder.path()), bytes).unwrap();
            Store::open(folder.path())
        };
        let error = with_zero_at(ends[1] + 20).unwrap_err().to_string();
        assert!(error.contains("it is damaged before line 6"), "{error}");
        assert_eq!(with_zero_at(ends[2] + 20).unwrap().rows().len(), 1, "the last commit may have been on its way");
    }

    #[test]
    fn a_repeated_write_does_not_lengthen_the_journal() {
        let folder = tempfile::tempdir().unwrap();
        let (whole, _) = journal(folder.path());
        assert_eq!(journal(folder.path()).0, whole);
        let mut store = Store::open(folder.path()).unwrap();
        let merged = |store: &mut Store| {
            store.merge(&[Store::open(folder.path()).unwrap()]).unwrap();
            std::fs::read(Store::file(folder.path())).unwrap()
        };
        let once = merged(&mut store);
        assert_eq!(merged(&mut store), once);
        assert_eq!(store.rows().len(), 2);
    }

    #[test]
    fn parts_merge_to_the_same_bytes_in_any_order() {
        let at = |name: &str, folder: &tempfile::TempDir| folder.path().join(name);
        let folder = tempfile::tempdir().unwrap();
        let part = |name: &str, numbers: &[u64]| {
            let mut store = Store::open(&at(name, &folder)).unwrap();
            store.begin(&[("fingerprint", "f")]).unwrap();
            for &number in numbers {
                // Points 4 and 5 are the same configuration, and point 2 was computed twice.
                let facts = row(number.min(4), "").facts;
                let row = Row { facts, ..row(number, &format!("k{}", number.min(4))) };
                store.write(std::slice::from_ref(&row), &[done(&row)]).unwrap();
            }
        };
        part("a", &[5, 0, 2]);
        part("b", &[2, 4]);
        part("c", &[1, 3]);
        let merged = |into: &str, steps: &[&[&str]]| {
            for parts in steps {
                let parts: Vec<Store> = parts.iter().map(|part| Store::open(&at(part, &folder)).unwrap()).collect();
                Store::open(&at(into, &folder)).unwrap().merge(&parts).unwrap();
            }
            std::fs::read(Store::file(&at(into, &folder))).unwrap()
        };
        let whole = merged("whole", &[&["a", "b", "c"]]);
        assert_eq!(Store::open(&at("whole", &folder)).unwrap().rows().len(), 6);
        for (into, steps) in [
            ("other way", &[&["c", "b", "a"][..]][..]),
            ("in steps", &[&["b"], &["c"], &["a"]]),
            ("again", &[&["a", "c"], &["a"], &["b", "a"]]),
        ] {
            assert_eq!(merged(into, steps), whole, "{into}");
        }
    }
}
