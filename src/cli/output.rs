//! Files that commands write: their folders are made, and what cannot be written is said before anything runs; so is
//! what would be written over a file that the command reads, over another one that it writes, or that another process writes.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use watershed_files::{self as files, WriteLock};

/// Sees to it that a file can be written: makes the folder it is in, and refuses the name of a folder.
pub(super) fn prepare(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::Error::other("this is a folder, and a file is to be written"));
    }
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder_for(folder),
        _ => Ok(()),
    }
}

/// Makes a folder unless it is there.
pub(super) fn folder_for(folder: &Path) -> io::Result<()> {
    possible(folder)?;
    fs::create_dir_all(folder)
}

/// Says whether a folder could be made, as far as no file stands in its way; makes nothing.
pub(super) fn possible(folder: &Path) -> io::Result<()> {
    match folder.ancestors().find(|part| part.is_file()) {
        Some(file) => Err(io::Error::other(format!("{} is a file, and a folder is to be made of it", file.display()))),
        None => Ok(()),
    }
}

/// Where a file goes: one whose name has no folder stands in that of `--out`.
pub(super) fn place(out: Option<&Path>, file: &Path) -> PathBuf {
    let bare = file.parent().is_none_or(|folder| folder.as_os_str().is_empty());
    match out {
        Some(folder) if bare => folder.join(file),
        _ => file.to_owned(),
    }
}

/// Files that only this command may write until this is dropped.
#[must_use]
pub(super) struct OutputLocks(#[expect(dead_code, reason = "held, not looked at")] Vec<WriteLock>);

/// Says before the run whether these files can be written (see [`check_distinct`]), makes their folders, and keeps others from writing them.
pub(super) fn claim(outputs: &[(&str, PathBuf)], inputs: &[PathBuf]) -> Result<OutputLocks, String> {
    check_distinct(outputs, inputs)?;
    let take = |(_, path): &(&str, PathBuf)| {
        prepare(path).and_then(|()| WriteLock::take(path)).map_err(|error| write_error(path, &error)).transpose()
    };
    Ok(OutputLocks(outputs.iter().filter_map(take).collect::<Result<_, String>>()?))
}

/// Refuses to write what is read, and to write two things into one file. An output is what asks for it, for messages, and
/// its file; files that are asked for together may be one. Makes nothing.
pub(super) fn check_distinct(outputs: &[(&str, PathBuf)], inputs: &[PathBuf]) -> Result<(), String> {
    let there = inputs.iter().filter(|path| path.is_file());
    let inputs: Vec<Identity> = there.filter_map(|path| Identity::of(path)).collect();
    let mut before: Vec<(&str, Identity)> = Vec::new();
    for (what, path) in outputs {
        let Some(identity) = Identity::of(path) else { continue };
        let shown = path.display();
        if inputs.iter().any(|input| input.is(&identity)) {
            return Err(format!("error: {what} would write over {shown}, which is read; nothing was touched"));
        }
        if let Some((other, _)) = before.iter().find(|(other, known)| other != what && known.is(&identity)) {
            return Err(format!("error: {other} and {what} would write the same file, {shown}; nothing was touched"));
        }
        before.push((what, identity));
    }
    Ok(())
}

/// Which file a path leads to, whether it is there or not.
struct Identity {
    path: PathBuf,
    /// Device and number: a file can have two names.
    #[cfg(unix)]
    node: Option<(u64, u64)>,
}

impl Identity {
    /// `None` for what is no file: a device takes whatever comes.
    fn of(path: &Path) -> Option<Self> {
        let data = fs::metadata(path).ok();
        if data.as_ref().is_some_and(|data| !data.is_file()) {
            return None;
        }
        let whole = std::path::absolute(path).ok()?;
        let there = whole.ancestors().find_map(|part| Some((fs::canonicalize(part).ok()?, part)));
        let (mut found, part) = there?;
        for part in whole.strip_prefix(part).ok()?.components() {
            match part {
                Component::ParentDir => drop(found.pop()),
                part => found.push(part),
            }
        }
        #[cfg(unix)]
        let node = data.map(|data| {
            use std::os::unix::fs::MetadataExt;
            (data.dev(), data.ino())
        });
        Some(Self {
            path: found,
            #[cfg(unix)]
            node,
        })
    }

    fn is(&self, other: &Self) -> bool {
        #[cfg(unix)]
        if self.node.is_some() && self.node == other.node {
            return true;
        }
        self.path == other.path
    }
}

/// Writes a file.
pub(super) fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<(), String> {
    prepare(path).and_then(|()| files::write(path, text)).map_err(|error| write_error(path, &error))
}

fn write_error(path: &Path, error: &io::Error) -> String {
    format!("error: cannot write {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_made_and_what_stands_in_the_way_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        write(&at("a/b/c.txt"), "x").unwrap();
        assert_eq!(fs::read_to_string(at("a/b/c.txt")).unwrap(), "x");
        let error = write(&at("a/b"), "x").unwrap_err();
        assert!(error.contains("a/b: this is a folder"), "{error}");
        let error = write(&at("a/b/c.txt/d/e"), "x").unwrap_err();
        assert!(error.contains("c.txt is a file, and a folder is to be made of it"), "{error}");
        assert!(claim(&[("a", at("n/x")), ("b", at("a"))], &[]).is_err());
        assert!(at("n").is_dir());
    }

    #[test]
    fn aliases_of_one_file_are_recognised() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir(at("d")).unwrap();
        fs::write(at("in"), "x").unwrap();
        let read = [at("in")];
        assert_eq!(check_distinct(&[("a", at("x")), ("b", at("d/x")), ("c", at("n/x"))], &read), Ok(()));
        for same in ["in", "d/../in", "./in"] {
            assert!(check_distinct(&[("a", at(same))], &read).unwrap_err().contains("which is read"), "{same}");
        }
        for (one, other) in [("x", "d/../x"), ("n/x", "n/./x"), ("n/x", "n/m/../x")] {
            let error = check_distinct(&[("a", at(one)), ("b", at(other))], &read).unwrap_err();
            assert!(error.contains("a and b would write the same file"), "{one} {other}: {error}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(at("in"), at("link")).unwrap();
            fs::hard_link(at("in"), at("twin")).unwrap();
            assert!(
                check_distinct(&[("a", at("link"))], &read).is_err()
                    && check_distinct(&[("a", at("twin"))], &read).is_err()
            );
            let null = PathBuf::from("/dev/null");
            assert_eq!(check_distinct(&[("a", null.clone()), ("b", null)], &read), Ok(()));
        }
        assert!(!at("n").exists());
    }
}
