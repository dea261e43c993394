//! How this program was called, for the command lines that it prints to be run next.
//!
//! A program that a shell finds by its name is printed by that name; one that was called by a path (`target/release/watershed`) is
//! printed by the path, unless the name alone would start the same file. Files that are kept (results, sweeps, reports) always
//! hold the plain name: their bytes do not depend on how the program was called.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use watershed_study::sweep::store::shell_word;

/// The name by which command lines are composed.
const NAME: &str = "watershed";

/// Where a shell finds a program of this name.
pub(super) fn on_path(name: &str) -> Option<PathBuf> {
    find_in_path(&std::env::var_os("PATH")?, name)
}

fn find_in_path(folders: &OsStr, name: &str) -> Option<PathBuf> {
    let names = [name.to_owned(), format!("{name}.exe")];
    let there = |folder: PathBuf| names.iter().map(|name| folder.join(name)).find(|path| path.is_file());
    std::env::split_paths(folders).find_map(there)
}

/// What starts this program again, as a shell takes it.
fn program() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        called(std::env::args_os().next(), &folders)
    })
}

/// The same of a first argument and a list of folders.
fn called(first: Option<OsString>, folders: &OsStr) -> String {
    let Some(first) = first.filter(|first| !first.is_empty()) else { return NAME.to_owned() };
    let path = Path::new(&first);
    let Some(name) = path.file_name().map(OsStr::to_string_lossy) else { return NAME.to_owned() };
    let has_folder = path.components().count() > 1;
    let same = |found: PathBuf| found.canonicalize().ok().is_some_and(|found| Some(found) == path.canonicalize().ok());
    if !has_folder || find_in_path(folders, &name).is_some_and(same) {
        return shell_word(&name);
    }
    shell_word(&path.to_string_lossy())
}

/// A command line of this program as it has to be typed; other text stays.
pub(super) fn line(command: &str) -> String {
    match command.strip_prefix(NAME).filter(|rest| rest.starts_with(' ')) {
        Some(rest) => format!("{}{rest}", program()),
        None => command.to_owned(),
    }
}

/// A text with command lines of this program in backticks.
pub(super) fn text(text: &str) -> String {
    text.replace(&format!("`{NAME} "), &format!("`{} ", program()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_named_as_they_were_called() {
        let folder = tempfile::tempdir().unwrap();
        let (bin, other) = (folder.path().join("bin"), folder.path().join("my builds"));
        for folder in [&bin, &other] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join(NAME), "").unwrap();
        }
        let folders = std::env::join_paths([Path::new("/nowhere"), &bin]).unwrap();
        let called = |first: &Path| called(Some(first.into()), &folders);
        assert_eq!(called(Path::new(NAME)), NAME, "a shell has found it");
        assert_eq!(called(&bin.join(NAME)), NAME, "a shell would find the same file");
        assert_eq!(called(&other.join(NAME)), format!("'{}'", other.join(NAME).display()), "another one of this name");
        assert_eq!(called(Path::new("./ws2")), "./ws2");
        assert_eq!(super::called(None, &folders), NAME);
        assert_eq!(super::called(Some(other.join(NAME).into()), OsStr::new("")).matches('\'').count(), 2);
    }

    #[test]
    fn only_command_lines_change() {
        let own = program();
        assert_eq!(line("watershed run a.toml"), format!("{own} run a.toml"));
        assert_eq!(line("watersheds"), "watersheds");
        assert_eq!(
            text("run `watershed list`, or read on watershed itself"),
            format!("run `{own} list`, or read on watershed itself")
        );
    }
}
