//! The scenarios that come with the program, and the files they name. They are embedded, so the program finds them in
//! any folder.
//!
//! A scenario of the program is in the folder [`INSIDE`] as it is in the project's: what it names relative to itself leads to other
//! parts of the program. [`read`], [`text`], [`len`] and [`open`] take such paths like those of files.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader};
use std::path::{Component, Path, PathBuf};

/// Path and text of every shipped scenario, in the order of the paths.
pub const SHIPPED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// Path and contents of the files that shipped scenarios read.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/shipped_files.rs"));

/// The name of the folder of embedded files.
pub const INSIDE: &str = "<shipped>";

/// Finds a shipped scenario by its name or path.
pub fn find(name: &str) -> Option<(&'static str, &'static str)> {
    SHIPPED.iter().copied().find(|(path, _)| *path == name || stem(path) == name)
}

/// The name of a scenario file: without folder and extension.
pub fn stem(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.strip_suffix(".toml").unwrap_or(file)
}

/// Where a shipped scenario is inside of the program.
pub fn place(path: &str) -> PathBuf {
    Path::new(INSIDE).join(path)
}

/// The folder that the files of a shipped scenario are relative to.
pub fn base(path: &str) -> PathBuf {
    place(path).parent().map(Path::to_owned).unwrap_or_default()
}

/// A path as it is shown: inside of the program, as in the project.
pub fn shown(path: &Path) -> String {
    let path = within(path).unwrap_or_else(|| path.to_owned());
    path.to_string_lossy().replace('\\', "/")
}

/// What follows the last [`INSIDE`] in a path.
fn within(path: &Path) -> Option<PathBuf> {
    let path = normalise(path);
    let parts: Vec<Component<'_>> = path.components().collect();
    let last = parts.iter().rposition(|part| matches!(part, Component::Normal(name) if *name == INSIDE))?;
    Some(parts[last + 1..].iter().collect())
}

/// The contents of a path inside of the program; `None` if it leads elsewhere.
fn inside(path: &Path) -> Option<io::Result<&'static [u8]>> {
    let name = within(path)?.to_string_lossy().replace('\\', "/");
    let scenario = SHIPPED.iter().find(|(path, _)| *path == name).map(|(_, text)| text.as_bytes());
    let found = scenario.or_else(|| FILES.iter().find(|(path, _)| *path == name).map(|(_, bytes)| *bytes));
    Some(found.ok_or_else(|| io::ErrorKind::NotFound.into()))
}

/// How long a file is.
///
/// # Errors
/// What the system says.
pub fn len(path: &Path) -> io::Result<u64> {
    match inside(path) {
        Some(bytes) => bytes.map(|bytes| bytes.len() as u64),
        None => std::fs::metadata(path).map(|data| data.len()),
    }
}

/// The bytes of a file.
///
/// # Errors
/// What the system says.
pub fn read(path: &Path) -> io::Result<Cow<'static, [u8]>> {
    match inside(path) {
        Some(bytes) => bytes.map(Cow::Borrowed),
        None => std::fs::read(path).map(Cow::Owned),
    }
}

/// The text of a file.
///
/// # Errors
/// What the system says; [`io::ErrorKind::InvalidData`] if it is no text.
pub fn text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?.into_owned()).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Opens a file, to be read piece by piece.
///
/// # Errors
/// What the system says.
pub fn open(path: &Path) -> io::Result<Box<dyn BufRead + Send>> {
    match inside(path) {
        Some(bytes) => bytes.map(|bytes| Box::new(bytes) as _),
        None => std::fs::File::open(path).map(|file| Box::new(BufReader::new(file)) as _),
    }
}

/// A path without `.` and without `x/..`.
pub fn normalise(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(out.components().next_back(), Some(Component::Normal(_))) => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_files_are_read_like_those_on_disk() {
        let ring = Path::new("/anywhere/<shipped>/testbench/fabric/../../traces/ring.topology.toml");
        let disk = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("traces/ring.topology.toml");
        assert_eq!(text(ring).unwrap(), text(&disk).unwrap());
        assert_eq!(len(ring).unwrap(), len(&disk).unwrap());
        let mut lines = String::new();
        open(ring).unwrap().read_line(&mut lines).unwrap();
        assert!(text(&disk).unwrap().starts_with(&lines) && !lines.is_empty());
        assert_eq!(read(Path::new("<shipped>/traces/none")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(shown(ring), "traces/ring.topology.toml");
        let (path, words) = find("fig7-barrier").unwrap();
        assert_eq!((text(&place(path)).unwrap().as_str(), shown(&place(path)).as_str()), (words, path));
    }
}
