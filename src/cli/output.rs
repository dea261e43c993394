//! Files that commands write: their folders are made, and what cannot be written is said before anything runs.

use std::fs;
use std::io;
use std::path::Path;

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

/// Says beforehand whether these files can be written.
pub(super) fn prepare_all<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<(), String> {
    paths.into_iter().try_for_each(|path| prepare(path).map_err(|error| cannot(path, &error)))
}

/// Writes a file.
pub(super) fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<(), String> {
    prepare(path).and_then(|()| fs::write(path, text)).map_err(|error| cannot(path, &error))
}

fn cannot(path: &Path, error: &io::Error) -> String {
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
        assert!(prepare_all([at("n/x").as_path(), at("a").as_path()]).is_err());
        assert!(at("n").is_dir());
    }
}
