//! Runs before the crate is compiled: finds the scenarios that `list` shows, and the files that they read.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Writes a table of path and text of every scenario under `testbench`: not of those that are bad on purpose, nor of sweeps. And one
/// of what is in `traces`.
fn main() {
    let member = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it"));
    let root = member.ancestors().nth(2).expect("the member is in src").to_owned();
    let mut found = Vec::new();
    let families = fs::read_dir(root.join("testbench")).into_iter().flatten().flatten();
    for family in
        families.filter(|family| !["bad", "sweeps", "studies"].iter().any(|other| family.file_name() == *other))
    {
        let files = fs::read_dir(family.path()).into_iter().flatten().flatten();
        let before = found.len();
        for path in files.map(|file| file.path()) {
            if path.extension().is_some_and(|extension| extension == "toml")
                && path.file_name().is_some_and(|name| name != "testplan.toml")
            {
                found.push(path);
            }
        }
        // Cargo watches a folder with all that is in it: folders of tests alone would rebuild everything at each edit.
        if found.len() > before {
            println!("cargo::rerun-if-changed={}", family.path().display());
        }
    }
    let traces = root.join("traces");
    println!("cargo::rerun-if-changed={}", traces.display());
    let in_folder = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
    let (folders, mut files): (Vec<PathBuf>, Vec<PathBuf>) = in_folder(traces).partition(|path| path.is_dir());
    // Of samples in folders, with their licences, only those that shipped scenarios run.
    let schedules = folders.into_iter().flat_map(in_folder);
    files.extend(
        schedules.filter(|path| path.extension().is_some_and(|extension| extension == "goal" || extension == "et")),
    );
    table(&root, files, "include_bytes!", "shipped_files.rs");
    table(&root, found, "include_str!", "shipped.rs");
}

/// Writes a table of path and contents of files.
fn table(root: &Path, mut found: Vec<PathBuf>, include: &str, to: &str) {
    found.sort();
    let mut table = String::from("&[\n");
    for path in found {
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        writeln!(table, "    ({name:?}, {include}({:?})),", path.to_string_lossy()).expect("memory");
    }
    table.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets it"));
    fs::write(out.join(to), table).expect("the output folder can be written");
}
