//! A sweep that several processes compute together, on one machine or on many with a folder in common, without a server.
//!
//! | in the folder | holds |
//! |---|---|
//! | `part-HOST-N/sweep.jsonl` | what one of them has computed: only this process writes it |
//! | `part-HOST-N/.sweep.alive` | its heartbeat, while it runs: who it is, how long, how many points it has computed and has under way |
//! | `claims/…/NUMBER.G` | the name of the part whose process computes a point; the file with the highest G counts |
//!
//! A point is claimed when it starts: the process that makes the file, which only one can, computes it. So points of unequal cost are
//! balanced. When nothing else is left, points are looked at whose process does not compute them any more: it runs on this
//! machine and holds its part no more, or its heartbeat has stood still for as long as the caller says. The process that makes the next
//! file takes such a point over.
//!
//! Nothing that is computed depends on claims: a point that two processes compute, because one was slow and not dead, comes out
//! the same twice, and joining the parts keeps one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};

use super::store::Store;
use watershed_files::WriteLock;

/// How often a process says that it is alive.
const BEAT: Duration = Duration::from_secs(1);

/// A heartbeat that is older than this is of no living process, where its clock can be read.
const LIVING: Duration = Duration::from_secs(60);

/// What a process says of itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HeartbeatContents {
    /// The machine.
    pub host: String,
    /// Number of the process there.
    pub process: u32,
    /// How long it has been computing.
    pub seconds: f64,
    /// Points that it has computed since it began.
    pub computed: u64,
    /// Points that it has begun and not ended.
    pub under_way: u64,
}

/// The name of this machine.
pub fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
    let word = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
    let name: String = name.unwrap_or_default().trim().chars().map(word).take(64).collect();
    if name.is_empty() { "host".into() } else { name }
}

fn pulse_file(folder: &Path) -> PathBuf {
    folder.join(".sweep.alive")
}

/// What the process that computes into a folder last said of itself.
fn pulse(folder: &Path) -> Option<HeartbeatContents> {
    serde_json::from_slice(&fs::read(pulse_file(folder)).ok()?).ok()
}

/// Points that a process has begun and computed.
#[derive(Debug, Default)]
pub struct PointCounters {
    begun: AtomicU64,
    computed: AtomicU64,
}

impl PointCounters {
    /// A point begins.
    pub fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// `points` more are kept.
    pub fn end(&self, points: u64) {
        self.computed.fetch_add(points, Ordering::Relaxed);
    }
}

/// The heartbeat of this process, until it is dropped.
#[derive(Debug)]
pub struct Heartbeat {
    /// What it tells of.
    pub counts: Arc<PointCounters>,
    ended: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<std::thread::JoinHandle<()>>,
    file: PathBuf,
}

impl Heartbeat {
    /// Begins to say that this process computes into a folder.
    pub fn begin(folder: &Path) -> Heartbeat {
        let (counts, ended) = (Arc::new(PointCounters::default()), Arc::new((Mutex::new(false), Condvar::new())));
        let file = pulse_file(folder);
        let (of_thread, until, to) = (Arc::clone(&counts), Arc::clone(&ended), file.clone());
        let began = Instant::now();
        let beat = move || {
            let computed = of_thread.computed.load(Ordering::Relaxed);
            let pulse = HeartbeatContents {
                host: host(),
                process: std::process::id(),
                seconds: (began.elapsed().as_secs_f64() * 10.0).round() / 10.0,
                computed,
                under_way: of_thread.begun.load(Ordering::Relaxed).saturating_sub(computed),
            };
            // Words for others: a disk that is full loses nothing by them.
            let _ = fs::write(&to, serde_json::to_vec(&pulse).unwrap_or_default());
        };
        beat();
        let thread = std::thread::spawn(move || {
            let (ended, wake) = &*until;
            let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
            while !*ended {
                ended = wake.wait_timeout(ended, BEAT).map_or_else(|lost| lost.into_inner().0, |(ended, _)| ended);
                if !*ended {
                    beat();
                }
            }
        });
        Heartbeat { counts, ended, thread: Some(thread), file }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        *self.ended.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.ended.1.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = fs::remove_file(&self.file);
    }
}

/// Folders below one that is shared that hold a store of their own, in order.
///
/// # Errors
/// The folder cannot be read.
pub fn parts(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut list = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let named = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("part-"));
        if named && Store::exists(&path) {
            list.push(path);
        }
    }
    list.sort();
    Ok(list)
}

/// A part of a shared folder that is this process's own.
#[derive(Debug)]
pub struct SharedPart {
    /// Its folder.
    pub folder: PathBuf,
    /// Its name.
    pub name: String,
    _claim: WriteLock,
}

/// Takes a part of a shared folder: one that a process on this machine has left, or a new one.
///
/// # Errors
/// The folder cannot be written.
pub fn own_part(shared: &Path) -> io::Result<SharedPart> {
    let host = host();
    for number in 1.. {
        let name = format!("part-{host}-{number}");
        let folder = shared.join(&name);
        fs::create_dir_all(shared)?;
        let fresh = match fs::create_dir(&folder) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(error),
        };
        match WriteLock::take(&Store::file(&folder)) {
            // Where there are no locks, only a part that is new is nobody else's for sure.
            Ok(Some(claim)) if fresh || claim.is_locked() => return Ok(SharedPart { folder, name, _claim: claim }),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("there is always another number")
}

/// Who computes which point.
#[derive(Debug)]
pub struct PointClaims {
    folder: PathBuf,
    shared: PathBuf,
    own: String,
    /// A heartbeat that does not change for this long is that of a process that has ended.
    stale: Duration,
    seen: Mutex<BTreeMap<String, ObservedHeartbeat>>,
}

/// The last contents seen of another process's heartbeat.
#[derive(Debug)]
struct ObservedHeartbeat {
    last: Option<HeartbeatContents>,
    /// Since when it has been like that.
    since: Instant,
    /// It has changed since it was looked at first.
    beats: bool,
}

/// Which process computes a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointOwner {
    /// This process computes it from now on.
    Mine,
    /// Another one computes it.
    Theirs,
    /// Another one has claimed it, and whether it lives is not known yet.
    Unknown,
}

impl PointClaims {
    /// The claims of a shared folder, as this part sees them.
    pub fn new(shared: &Path, part: &SharedPart, stale: Duration) -> PointClaims {
        let (folder, shared) = (shared.join("claims"), shared.to_owned());
        PointClaims { folder, shared, own: part.name.clone(), stale, seen: Mutex::default() }
    }

    /// A folder for each thousand: folders of a million files are slow everywhere.
    fn file(&self, number: u64, generation: u32) -> PathBuf {
        self.folder.join((number / 1000).to_string()).join(format!("{number}.{generation}"))
    }

    fn make(&self, number: u64, generation: u32) -> io::Result<bool> {
        let path = self.file(number, generation);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        match File::options().write(true).create_new(true).open(path) {
            Ok(mut file) => file.write_all(self.own.as_bytes()).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Claims a point that nobody has claimed.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn try_claim(&self, number: u64) -> io::Result<bool> {
        self.make(number, 0)
    }

    /// Claims a point that is not done: one that nobody has claimed, or whose process is gone.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn take_over(&self, number: u64, begun: &BTreeSet<u64>) -> io::Result<PointOwner> {
        let mut generation = 0;
        while self.file(number, generation).exists() {
            generation += 1;
        }
        let Some(last) = generation.checked_sub(1) else {
            return Ok(if self.make(number, 0)? { PointOwner::Mine } else { PointOwner::Theirs });
        };
        let owner = fs::read_to_string(self.file(number, last))?;
        let standing = if owner == self.own {
            // This part's earlier process has left it, or a thread of this one is at it.
            if begun.contains(&number) { PointOwner::Theirs } else { PointOwner::Mine }
        } else {
            self.owner_state(&owner)
        };
        if standing != PointOwner::Mine {
            return Ok(standing);
        }
        Ok(if self.make(number, generation)? { PointOwner::Mine } else { PointOwner::Theirs })
    }

    /// Whether the points of a part are free for others.
    fn owner_state(&self, owner: &str) -> PointOwner {
        let folder = self.shared.join(owner);
        let own_host = format!("part-{}-", host());
        if owner.strip_prefix(&own_host).is_some_and(|number| number.parse::<u32>().is_ok())
            && let Ok(Some(claim)) = WriteLock::take(&Store::file(&folder))
            && claim.is_locked()
        {
            return PointOwner::Mine;
        }
        let pulse = pulse(&folder);
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let first = || ObservedHeartbeat { last: pulse.clone(), since: now, beats: false };
        let seen = all.entry(owner.to_owned()).or_insert_with(first);
        if seen.last != pulse {
            *seen = ObservedHeartbeat { last: pulse, since: now, beats: true };
        }
        match () {
            () if now.duration_since(seen.since) >= self.stale => PointOwner::Mine,
            () if seen.beats => PointOwner::Theirs,
            () => PointOwner::Unknown,
        }
    }
}

/// A process that computes, or has computed, into a folder.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Worker {
    /// Its folder.
    pub folder: String,
    /// Points that are in its store.
    pub done: u64,
    /// Of these: failed a check, or were refused.
    pub failed: u64,
    /// It runs.
    pub alive: bool,
    /// Points that it has under way; 0 if it does not run.
    pub under_way: u64,
    /// Points it computes in a second; none if it does not run or has computed none yet.
    pub points_per_second: Option<f64>,
    /// What it last said of itself; none of one that has ended as it should.
    pub pulse: Option<HeartbeatContents>,
}

/// How it stands with the process that writes a folder.
pub fn worker(folder: &Path, store: &Store) -> Worker {
    let rows = store.rows();
    let pulse = pulse(folder);
    let recent = || {
        let beat = fs::metadata(pulse_file(folder)).and_then(|data| data.modified()).ok();
        // A clock that goes ahead of this one's is no reason to think it dead.
        beat.is_some_and(|beat| {
            SystemTime::now().duration_since(beat).is_ok_and(|age| age < LIVING) || beat > SystemTime::now()
        })
    };
    let held = || match WriteLock::take(&Store::file(folder)) {
        Ok(Some(claim)) => !claim.is_locked(),
        Ok(None) => false,
        Err(error) => error.kind() == io::ErrorKind::ResourceBusy,
    };
    let alive = pulse.as_ref().is_some_and(|pulse| if pulse.host == host() { held() } else { recent() });
    let rate = |pulse: &HeartbeatContents| (pulse.computed > 0).then(|| pulse.computed as f64 / pulse.seconds.max(0.1));
    Worker {
        folder: folder.display().to_string(),
        done: rows.len() as u64,
        failed: rows.iter().filter(|row| row.status != "ok").count() as u64,
        alive,
        under_way: pulse.as_ref().filter(|_| alive).map_or(0, |pulse| pulse.under_way),
        points_per_second: pulse.as_ref().filter(|_| alive).and_then(rate),
        pulse,
    }
}
