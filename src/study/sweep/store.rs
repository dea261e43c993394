//! What a sweep has computed, in an SQLite database that survives the end of the process at any instant.
//!
//! | table | holds |
//! |---|---|
//! | `point` | what came of a configuration, by the hash of the resolved configuration |
//! | `row` | which configuration each numbered point of the sweep is |
//! | `meta` | the sweep file, and what it was made with |
//!
//! A point is written in one transaction with its row, behind a write-ahead log that is synchronised at each commit: a
//! process that is killed loses the points under way and no other. Points stay when the sweep file changes; rows belong to
//! one file and go with it.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value as Json;

use super::table::Facts;

/// The database of a sweep.
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

/// What came of a configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// Hash of the resolved configuration.
    pub key: String,
    /// "ok", "failed" (a check did, or the run did not finish) or "refused" (there is no such scenario).
    pub status: &'static str,
    /// What is kept of the result.
    pub facts: Option<Facts>,
    /// What went wrong.
    pub error: String,
}

/// A numbered point of the sweep and what came of it.
#[derive(Debug, Clone, PartialEq)]
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
    pub status: String,
    /// What is kept of the result.
    pub facts: Option<Facts>,
    /// What went wrong.
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
    let quoted = |text: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/=,+:".contains(&byte);
        if text.bytes().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
    };
    let mut words = vec!["watershed run".to_owned(), quoted(file)];
    for set in sets {
        words.extend(["--set".to_owned(), quoted(set)]);
    }
    words.join(" ")
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

const LAYOUT: &str = "
    CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS point (key TEXT PRIMARY KEY, status TEXT NOT NULL, facts TEXT, error TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS row (
        number INTEGER PRIMARY KEY, key TEXT NOT NULL, scenario TEXT NOT NULL, file TEXT NOT NULL,
        repetition INTEGER NOT NULL, seed INTEGER NOT NULL, axes TEXT NOT NULL, sets TEXT NOT NULL);";

/// Version of the layout.
const VERSION: i64 = 1;

impl Store {
    /// The file of a store in a folder.
    pub fn file(folder: &Path) -> PathBuf {
        folder.join("sweep.sqlite")
    }

    /// All files of a sweep in a folder: the store, its log, and the table.
    pub fn files(folder: &Path) -> Vec<PathBuf> {
        ["sweep.sqlite", "sweep.sqlite-wal", "sweep.sqlite-shm", "points.csv"].map(|name| folder.join(name)).into()
    }

    /// Opens the store of a folder, which is made where there is none.
    ///
    /// # Errors
    /// It cannot be opened, or is no store of this version.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = Self::file(folder);
        let fail = |error: &dyn std::fmt::Display| StoreError { path: path.clone(), error: error.to_string() };
        std::fs::create_dir_all(folder).map_err(|error| fail(&error))?;
        let connection = Connection::open(&path).map_err(|error| fail(&error))?;
        let ready = || -> rusqlite::Result<i64> {
            // Who reads a store waits for the commits of the one who writes it.
            connection.busy_timeout(Duration::from_secs(60))?;
            let _: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
            connection.execute_batch("PRAGMA synchronous = FULL;")?;
            let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
            if version == 0 {
                connection
                    .execute_batch(&format!("BEGIN IMMEDIATE; {LAYOUT} PRAGMA user_version = {VERSION}; COMMIT;"))?;
                return Ok(VERSION);
            }
            Ok(version)
        };
        match ready().map_err(|error| fail(&error))? {
            VERSION => Ok(Self { connection, path }),
            other => Err(fail(&format!("this is a store of version {other}; this program writes {VERSION}"))),
        }
    }

    fn fail(&self) -> impl Fn(rusqlite::Error) -> StoreError + '_ {
        |error| StoreError { path: self.path.clone(), error: error.to_string() }
    }

    /// A note by its name.
    ///
    /// # Errors
    /// The database fails.
    pub fn meta(&self, name: &str) -> Result<Option<String>> {
        let found = self.connection.query_row("SELECT value FROM meta WHERE name = ?1", [name], |row| row.get(0));
        found.optional().map_err(self.fail())
    }

    /// Makes the store that of a sweep. Rows of another one go; points stay.
    ///
    /// # Errors
    /// The database fails.
    pub fn begin(&mut self, meta: &[(&str, &str)]) -> Result<()> {
        let same = self.meta("fingerprint")?.as_deref()
            == meta.iter().find(|(name, _)| *name == "fingerprint").map(|(_, value)| *value);
        let path = self.path.clone();
        let fail = |error: rusqlite::Error| StoreError { path: path.clone(), error: error.to_string() };
        let transaction = self.connection.transaction().map_err(fail)?;
        if !same {
            transaction.execute("DELETE FROM row", []).map_err(fail)?;
        }
        for (name, value) in meta {
            transaction.execute("INSERT OR REPLACE INTO meta VALUES (?1, ?2)", [name, value]).map_err(fail)?;
        }
        transaction.commit().map_err(fail)
    }

    /// Whether nothing has been computed yet.
    ///
    /// # Errors
    /// The database fails.
    pub fn is_empty(&self) -> Result<bool> {
        let count: i64 =
            self.connection.query_row("SELECT COUNT(*) FROM point", [], |row| row.get(0)).map_err(self.fail())?;
        Ok(count == 0)
    }

    /// Keys of all points that are done.
    ///
    /// # Errors
    /// The database fails.
    pub fn keys(&self) -> Result<HashSet<String>> {
        let mut statement = self.connection.prepare("SELECT key FROM point").map_err(self.fail())?;
        let keys = statement.query_map([], |row| row.get(0)).map_err(self.fail())?;
        keys.collect::<rusqlite::Result<_>>().map_err(self.fail())
    }

    /// Keys of all rows whose points are done, by number.
    ///
    /// # Errors
    /// The database fails.
    pub fn finished(&self) -> Result<BTreeMap<u64, String>> {
        let query = "SELECT row.number, row.key FROM row JOIN point ON point.key = row.key";
        let mut statement = self.connection.prepare(query).map_err(self.fail())?;
        let rows =
            statement.query_map([], |row| Ok((row.get::<_, i64>(0)? as u64, row.get(1)?))).map_err(self.fail())?;
        rows.collect::<rusqlite::Result<_>>().map_err(self.fail())
    }

    /// Writes rows, and what came of points, all or nothing.
    ///
    /// # Errors
    /// The database fails.
    pub fn write(&mut self, rows: &[Row], done: &[Done]) -> Result<()> {
        let path = self.path.clone();
        let fail = |error: rusqlite::Error| StoreError { path: path.clone(), error: error.to_string() };
        let transaction = self.connection.transaction().map_err(fail)?;
        {
            let mut point =
                transaction.prepare("INSERT OR REPLACE INTO point VALUES (?1, ?2, ?3, ?4)").map_err(fail)?;
            for done in done {
                let facts = done.facts.as_ref().map(Facts::text);
                point.execute(params![done.key, done.status, facts, done.error]).map_err(fail)?;
            }
            let mut insert = transaction
                .prepare("INSERT OR REPLACE INTO row VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")
                .map_err(fail)?;
            for row in rows {
                let axes = serde_json::to_string(&row.axes).unwrap_or_default();
                let sets = serde_json::to_string(&row.sets).unwrap_or_default();
                insert
                    .execute(params![
                        row.number as i64,
                        row.key,
                        row.scenario,
                        row.file,
                        row.repetition as i64,
                        row.seed as i64,
                        axes,
                        sets
                    ])
                    .map_err(fail)?;
            }
        }
        transaction.commit().map_err(fail)
    }

    /// What came of the rows, in the order of their numbers; those that are not done are missing.
    ///
    /// # Errors
    /// The database fails.
    pub fn rows(&self) -> Result<Vec<Row>> {
        let query = "SELECT number, row.key, scenario, file, repetition, seed, axes, sets, status, facts, error
                     FROM row JOIN point ON point.key = row.key ORDER BY number";
        let mut statement = self.connection.prepare(query).map_err(self.fail())?;
        let rows = statement.query_map([], |row| {
            let json = |text: String| serde_json::from_str::<Json>(&text).unwrap_or(Json::Null);
            Ok(Row {
                number: row.get::<_, i64>(0)? as u64,
                key: row.get(1)?,
                scenario: row.get(2)?,
                file: row.get(3)?,
                repetition: row.get::<_, i64>(4)? as u64,
                seed: row.get::<_, i64>(5)? as u64,
                axes: serde_json::from_value(json(row.get(6)?)).unwrap_or_default(),
                sets: serde_json::from_value(json(row.get(7)?)).unwrap_or_default(),
                status: row.get(8)?,
                facts: row.get::<_, Option<String>>(9)?.as_deref().and_then(Facts::read),
                error: row.get(10)?,
            })
        });
        rows.map_err(self.fail())?.collect::<rusqlite::Result<_>>().map_err(self.fail())
    }

    /// Whether another store holds points of the same sweep.
    ///
    /// # Errors
    /// One of the two fails, or the other belongs to another sweep.
    pub fn fits(&self, other: &Store) -> Result<()> {
        if self.meta("fingerprint")? == other.meta("fingerprint")? {
            return Ok(());
        }
        let error = format!("it belongs to another sweep than {}", self.path.display());
        Err(StoreError { path: other.path.clone(), error })
    }

    /// Takes over all that other stores hold; they are read and looked at before anything is written, and their points
    /// are written all or nothing.
    ///
    /// # Errors
    /// One of them fails, or they belong to different sweeps.
    pub fn merge(&mut self, others: &[Store]) -> Result<()> {
        let Some(first) = others.first() else { return Ok(()) };
        let empty = self.meta("fingerprint")?.is_none();
        let mut rows = Vec::new();
        for other in others {
            if empty {
                first.fits(other)?;
            } else {
                self.fits(other)?;
            }
            rows.extend(other.rows()?);
        }
        if empty {
            let names = ["fingerprint", "text", "base", "version", "scenarios"];
            let notes: Vec<(&str, String)> =
                names.iter().filter_map(|name| Some((*name, first.meta(name).ok()??))).collect();
            let notes: Vec<(&str, &str)> = notes.iter().map(|(name, value)| (*name, value.as_str())).collect();
            self.begin(&notes)?;
        }
        let done: Vec<Done> = rows
            .iter()
            .map(|row| Done {
                key: row.key.clone(),
                status: ["ok", "failed", "refused"]
                    .into_iter()
                    .find(|status| *status == row.status)
                    .unwrap_or("failed"),
                facts: row.facts.clone(),
                error: row.error.clone(),
            })
            .collect();
        self.write(&rows, &done)
    }
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
            facts: Some(Facts::of(serde_json::json!({ "cycles": number }))),
            error: String::new(),
        }
    }

    fn done(row: &Row) -> Done {
        Done { key: row.key.clone(), status: "ok", facts: row.facts.clone(), error: String::new() }
    }

    #[test]
    fn what_is_written_is_there_and_rows_belong_to_a_sweep() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (row(1, "k1"), row(0, "k0"));
        {
            let mut store = Store::open(folder.path()).unwrap();
            store.begin(&[("fingerprint", "f")]).unwrap();
            assert!(store.is_empty().unwrap());
            store.write(&[a.clone(), b.clone()], &[done(&a), done(&b)]).unwrap();
            store.write(&[row(7, "not done")], &[]).unwrap();
        }
        let mut store = Store::open(folder.path()).unwrap();
        assert_eq!(store.rows().unwrap(), [b, a]);
        assert_eq!(store.finished().unwrap().len(), 2);
        store.begin(&[("fingerprint", "f")]).unwrap();
        assert_eq!(store.rows().unwrap().len(), 2);
        store.begin(&[("fingerprint", "another")]).unwrap();
        assert_eq!((store.rows().unwrap().len(), store.keys().unwrap().len()), (0, 2));
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
        assert_eq!(into.rows().unwrap().len(), 2);
        b.begin(&[("fingerprint", "another")]).unwrap();
        let fresh = tempfile::tempdir().unwrap();
        let mut fresh = Store::open(fresh.path()).unwrap();
        let parts = [a, b];
        for into in [&mut into, &mut fresh] {
            assert!(into.merge(&parts).unwrap_err().to_string().contains("another sweep"));
        }
        assert!(fresh.is_empty().unwrap() && fresh.meta("fingerprint").unwrap().is_none());
    }

    #[test]
    fn the_command_survives_a_shell() {
        assert_eq!(row(0, "k").command(), "watershed run d.toml --set a=1 --set 'b=[1, '\\''x'\\'']' --seed 1");
    }

    #[test]
    fn a_file_that_is_no_store_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(Store::file(folder.path()), "this is text, not a database, and long enough to be read as one")
            .unwrap();
        assert!(Store::open(folder.path()).is_err());
    }
}
