//! Files that are never left half written: written under a temporary name, flushed to the disk, then renamed.
//!
//! | step | what is there |
//! |---|---|
//! | [`WriteLock::take`] | `.NAME.lock`, locked, names the process that writes: a second process that wants the file is refused |
//! | [`AtomicFile::create`] | `STEM.part.EXT` grows; the file of the final name is unchanged |
//! | [`AtomicFile::keep`] | the part is on the disk and takes the final name, in one step |
//! | a [`AtomicFile`] dropped | only the old file: the part is deleted, which frees its space on a full disk |
//!
//! A process that is killed (`kill -9`, a power cut) leaves the part, which can be read as far as it goes, and the lock
//! file. The system frees the lock when the process ends, so the next writer takes over both files.
//!
//! **Links** are followed: what they lead to is replaced, not the link. **Devices and pipes** are written to as they
//! are. **Limits.** On a file system without locks no second writer is refused. A second hard link keeps the old
//! contents.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A name that only this process writes, until this is dropped. A process can take it any number of times.
#[derive(Debug)]
pub struct WriteLock {
    target: PathBuf,
    locked: bool,
}

/// What this process has claimed.
static HELD: Mutex<BTreeMap<PathBuf, HeldLock>> = Mutex::new(BTreeMap::new());

/// A lock of this process.
struct HeldLock {
    /// The lock's file, which is kept open.
    _file: File,
    /// How often it is claimed.
    times: usize,
    /// The file system knows locks.
    locked: bool,
}

fn held() -> MutexGuard<'static, BTreeMap<PathBuf, HeldLock>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WriteLock {
    /// Claims a file, which need not be there; `None` for devices and pipes.
    ///
    /// # Errors
    /// Another process has it ([`io::ErrorKind::ResourceBusy`], with its number and command), or the lock cannot be made.
    pub fn take(path: &Path) -> io::Result<Option<WriteLock>> {
        let Some(target) = target(path)? else { return Ok(None) };
        let mut held = held();
        if let Some(held) = held.get_mut(&target) {
            held.times += 1;
            return Ok(Some(WriteLock { target, locked: held.locked }));
        }
        let name = lock_of(&target);
        let (mut lock, locked) = loop {
            let mut lock = File::options().read(true).write(true).create(true).truncate(false).open(&name)?;
            let locked = match lock.try_lock() {
                Ok(()) => true,
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => false,
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) => {
                    let mut who = String::new();
                    let _ = lock.read_to_string(&mut who);
                    let who = if who.is_empty() { "another process" } else { who.trim_end() };
                    return Err(io::Error::new(io::ErrorKind::ResourceBusy, format!("it is being written by {who}")));
                }
            };
            // The last holder may have deleted the file since it was opened.
            if is_at(&lock, &name) {
                break (lock, locked);
            }
        };
        let command: Vec<String> =
            std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        let who = format!("process {}: watershed {}\n", std::process::id(), command.join(" "));
        // Words for others only: a disk that is full loses nothing by them.
        let _ = lock.set_len(0).and_then(|()| lock.write_all(who.as_bytes()));
        held.insert(target.clone(), HeldLock { _file: lock, times: 1, locked });
        Ok(Some(WriteLock { target, locked }))
    }

    /// Whether nobody else can have it: the file system knows locks.
    pub fn is_locked(&self) -> bool {
        self.locked
    }
}

impl Drop for WriteLock {
    fn drop(&mut self) {
        let mut held = held();
        let Some(lock) = held.get_mut(&self.target) else { return };
        lock.times -= 1;
        if lock.times == 0 {
            // While it is locked: afterwards the file may belong to another process.
            let _ = fs::remove_file(lock_of(&self.target));
            held.remove(&self.target);
        }
    }
}

fn lock_of(target: &Path) -> PathBuf {
    target.with_file_name(format!(".{}.lock", target.file_name().unwrap_or_default().to_string_lossy()))
}

/// Whether an open file is the one that a path leads to.
fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let same = |a: &fs::Metadata, b: &fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
        matches!((file.metadata(), fs::metadata(path)), (Ok(a), Ok(b)) if same(&a, &b))
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

/// Where links lead; `None` for what is no file.
fn target(path: &Path) -> io::Result<Option<PathBuf>> {
    match fs::metadata(path) {
        // `/dev/stdout` leads to a file if the shell sends it there, and that file is the shell's.
        Ok(_) if path.starts_with("/dev") || path.starts_with("/proc") => Ok(None),
        Ok(data) if data.is_dir() => Err(io::Error::other("this is a folder, and a file is to be written")),
        Ok(data) if !data.is_file() => Ok(None),
        Ok(_) => fs::canonicalize(path).map(Some),
        Err(_) => {
            // A link to what is not there yet.
            let path = fs::read_link(path).map_or_else(|_| path.to_owned(), |to| path.with_file_name(to));
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let name = path.file_name().ok_or_else(|| io::Error::other("this is no name of a file"))?;
            Ok(Some(fs::canonicalize(folder)?.join(name)))
        }
    }
}

/// What a file is called while it grows.
pub fn part_of(path: &Path) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_os_string();
    name.push(".part");
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// A file that grows beside its name.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    /// Part and name; none of a device.
    rename: Option<(PathBuf, PathBuf)>,
    _claim: Option<WriteLock>,
}

impl AtomicFile {
    /// Begins a file. What cannot be written shows here.
    ///
    /// # Errors
    /// What the system says, and see [`WriteLock::take`].
    pub fn create(path: &Path) -> io::Result<AtomicFile> {
        let Some(target) = target(path)? else {
            let file = File::options().write(true).open(path)?;
            return Ok(AtomicFile { file, rename: None, _claim: None });
        };
        // A file that is protected stays as it is, although its folder would let it be replaced.
        let old = match File::options().write(true).open(&target) {
            Ok(file) => Some(file.metadata()?.permissions()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let claim = WriteLock::take(&target)?;
        let part = part_of(&target);
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&part)?;
        let draft = AtomicFile { file, rename: Some((part, target)), _claim: claim };
        if let Some(permissions) = old {
            draft.file.set_permissions(permissions)?;
        }
        Ok(draft)
    }

    /// Brings what was written so far to the disk.
    ///
    /// # Errors
    /// What the system says.
    pub fn sync(&mut self) -> io::Result<()> {
        self.file.flush()?;
        if self.rename.is_some() { self.file.sync_all() } else { Ok(()) }
    }

    /// Ends the file: from now on it stands under its name.
    ///
    /// # Errors
    /// The system's error; the file of that name is unchanged.
    pub fn keep(mut self) -> io::Result<()> {
        self.sync()?;
        if let Some((part, target)) = &self.rename {
            fs::rename(part, target)?;
            if let Some(folder) = target.parent() {
                sync_folder(folder);
            }
            self.rename = None;
        }
        Ok(())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some((part, _)) = &self.rename {
            let _ = fs::remove_file(part);
        }
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for AtomicFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Brings the names in a folder to the disk, where that can be asked for: the files are whole all the same.
pub fn sync_folder(folder: &Path) {
    #[cfg(unix)]
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    #[cfg(not(unix))]
    let _ = folder;
}

/// Writes a file, or leaves what is there.
///
/// # Errors
/// What the system says, and see [`WriteLock::take`].
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    write_with(path, |out| out.write_all(bytes.as_ref()))
}

/// Writes a file piece by piece, or leaves what is there.
///
/// # Errors
/// That of the body, and see [`write()`].
pub fn write_with(path: &Path, body: impl FnOnce(&mut BufWriter<AtomicFile>) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(AtomicFile::create(path)?);
    body(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.keep()
}

/// A folder of this process, which goes with what is in it when it is no longer needed.
#[derive(Debug)]
pub struct TempFolder(PathBuf);

impl TempFolder {
    /// Makes one below the system's folder for such; `what` is a part of its name.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(what: &str) -> io::Result<TempFolder> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("watershed-{what}-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))?;
        Ok(TempFolder(folder))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_old_file_stands_until_the_new_one_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.b.txt");
        write(&path, "old").unwrap();
        let mut draft = AtomicFile::create(&path).unwrap();
        draft.write_all(b"new").unwrap();
        assert_eq!(names(folder.path()), [".a.b.txt.lock", "a.b.part.txt", "a.b.txt"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        drop(draft);
        assert_eq!((names(folder.path()), fs::read_to_string(&path).unwrap()), (vec!["a.b.txt".into()], "old".into()));
        let error = write_with(&path, |out| {
            out.write_all(b"half")?;
            Err(io::Error::new(io::ErrorKind::StorageFull, "full"))
        });
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!((names(folder.path()), fs::read_to_string(&path).unwrap()), (vec!["a.b.txt".into()], "old".into()));
        write(&path, "new").unwrap();
        assert_eq!((names(folder.path()), fs::read_to_string(&path).unwrap()), (vec!["a.b.txt".into()], "new".into()));
        write(&folder.path().join("bare"), "x").unwrap();
        assert_eq!(part_of(Path::new("d/bare")), Path::new("d/bare.part"));
        assert!(write(folder.path(), "x").is_err() && write(&folder.path().join("no/x"), "x").is_err());
    }

    #[test]
    fn the_lock_of_a_killed_process_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.vcd");
        fs::write(folder.path().join("w.part.vcd"), "a long piece of a wave").unwrap();
        fs::write(folder.path().join(".w.vcd.lock"), "process 1: watershed run x\n").unwrap();
        write(&path, "wave").unwrap();
        assert_eq!((names(folder.path()), fs::read_to_string(&path).unwrap()), (vec!["w.vcd".into()], "wave".into()));
    }

    #[test]
    fn a_lock_of_another_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.vcd");
        // Another opening of the file has a lock of its own, in another process or in this one.
        let lock = folder.path().join(".w.vcd.lock");
        fs::write(&lock, "process 4711: watershed run x\n").unwrap();
        let other = File::open(&lock).unwrap();
        other.lock().unwrap();
        for error in [WriteLock::take(&path).unwrap_err(), write(&path, "x").unwrap_err()] {
            assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
            assert_eq!(error.to_string(), "it is being written by process 4711: watershed run x");
        }
        assert!(!path.exists());
        drop(other);
        let claim = WriteLock::take(&path).unwrap();
        write(&path, "x").unwrap();
        assert!(lock.exists(), "the claim goes on behind a file that was written");
        drop(claim);
        assert_eq!(names(folder.path()), ["w.vcd"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_modes_and_devices_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("d")).unwrap();
        write(&at("d/real"), "old").unwrap();
        fs::set_permissions(at("d/real"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink("d/real", at("link")).unwrap();
        symlink("d/later", at("dangling")).unwrap();
        for name in ["link", "dangling"] {
            write(&at(name), "new").unwrap();
            assert!(at(name).is_symlink(), "{name}");
        }
        assert_eq!(fs::read_to_string(at("d/real")).unwrap(), "new");
        assert_eq!(fs::read_to_string(at("d/later")).unwrap(), "new");
        assert_eq!(fs::metadata(at("d/real")).unwrap().permissions().mode() & 0o777, 0o640);
        write(Path::new("/dev/null"), "x").unwrap();
        assert!(WriteLock::take(Path::new("/dev/null")).unwrap().is_none());
        assert!(!Path::new("/dev/null.part").exists());
    }
}
