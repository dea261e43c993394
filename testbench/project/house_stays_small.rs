//! No file over 800 lines, no function over 100, no struct over 20 fields outside tables, no circle of more than three files that import
//! each other inside a room. What was larger when this began stands in `testbench/offenders.toml` and may only shrink: the list is wrong if one
//! of it grows, if a new one appears, and if one is none any more.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Deserialize;

use crate::imports::Room;
use crate::source_text::{self, Source};
use crate::{read, root};

/// Lines of a file.
const FILE_LINES: usize = 800;
/// Lines of a function, from `fn` to its last brace.
const FUNCTION_LINES: usize = 100;
/// Fields of a struct.
const STRUCT_FIELDS: usize = 20;
/// Files of a circle.
const CIRCLE_FILES: usize = 3;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Offenders {
    /// Lines by file.
    files: BTreeMap<String, usize>,
    /// Lines by "file function"; of functions of one name in a file the longest.
    functions: BTreeMap<String, usize>,
    /// Fields by "file struct".
    structs: BTreeMap<String, usize>,
    /// Files of circles by room.
    circles: BTreeMap<String, Vec<BTreeSet<String>>>,
}

fn offenders() -> Offenders {
    toml::from_str(&read("testbench/offenders.toml")).unwrap_or_else(|error| panic!("offenders.toml: {error}"))
}

/// All sources of the project.
fn files() -> Vec<PathBuf> {
    let files: Vec<PathBuf> =
        ["src", "testbench"].iter().flat_map(|folder| source_text::files(&root().join(folder))).collect();
    assert!(files.len() > 300, "{} files were found", files.len());
    files
}

/// Holds what is larger than allowed against the list of what may be.
fn only_shrinks(found: &BTreeMap<String, usize>, listed: &BTreeMap<String, usize>, most: usize) -> Vec<String> {
    let grown = found.iter().filter(|(_, size)| **size > most).filter_map(|(name, size)| match listed.get(name) {
        None => Some(format!("{name}: {size}, and {most} is the most: divide it")),
        Some(before) if size > before => Some(format!("{name}: {size}, it was {before}: it may only shrink")),
        Some(_) => None,
    });
    let gone = listed.keys().filter(|name| found.get(*name).is_none_or(|size| *size <= most));
    grown.chain(gone.map(|name| format!("{name}: is no offender any more: take it off the list"))).collect()
}

fn holds(what: &str, found: &BTreeMap<String, usize>, listed: &BTreeMap<String, usize>, most: usize) {
    let wrong = only_shrinks(found, listed, most);
    assert!(wrong.is_empty(), "{what} (testbench/offenders.toml):\n{}", wrong.join("\n"));
}

#[test]
fn files_have_at_most_800_lines() {
    let measured = files().into_iter().map(|path| source_text::measured(root(), &path));
    let found = measured.map(|(path, lines, _)| (path, lines)).collect();
    holds("lines of files", &found, &offenders().files, FILE_LINES);
}

/// The largest part of each name in each file.
fn largest(parts: fn(&[source_text::Token]) -> Vec<source_text::Part>) -> BTreeMap<String, usize> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for source in files().iter().map(|path| Source::read(root(), path)) {
        for part in parts(&source.tokens) {
            let size = found.entry(format!("{} {}", source.path, part.name)).or_default();
            *size = part.size.max(*size);
        }
    }
    found
}

#[test]
fn functions_have_at_most_100_lines() {
    let found = largest(source_text::functions);
    assert!(found.len() > 5000, "{} functions were found", found.len());
    holds("lines of functions", &found, &offenders().functions, FUNCTION_LINES);
}

#[test]
fn structs_have_at_most_20_fields() {
    let found = largest(source_text::structs);
    assert!(found.len() > 500, "{} structs were found", found.len());
    holds("fields of structs", &found, &offenders().structs, STRUCT_FIELDS);
}

/// Circles of each room that are larger than allowed.
fn circles() -> BTreeMap<String, Vec<BTreeSet<String>>> {
    let mut found = BTreeMap::new();
    let mut imports = 0;
    let folders = std::fs::read_dir(root().join("src")).unwrap().map(|entry| entry.unwrap().path());
    for folder in folders.flat_map(|folder| [folder.join("interface"), folder]) {
        if !folder.join("lib.rs").exists() {
            continue;
        }
        let name = folder.strip_prefix(root().join("src")).unwrap().to_str().unwrap().to_owned();
        let sources: Vec<Source> = source_text::room(&folder).iter().map(|path| Source::read(root(), path)).collect();
        let room = Room::new(&format!("src/{name}"), &sources);
        imports += room.imports.values().map(BTreeSet::len).sum::<usize>();
        let short = |path: &String| path.strip_prefix(&format!("src/{name}/")).unwrap_or(path).to_owned();
        let large: Vec<BTreeSet<String>> = room
            .circles()
            .iter()
            .filter(|circle| circle.len() > CIRCLE_FILES)
            .map(|circle| circle.iter().map(short).collect())
            .collect();
        if !large.is_empty() {
            found.insert(name, large);
        }
    }
    assert!(imports > 400, "{imports} imports were found");
    found
}

#[test]
fn circles_have_at_most_three_files() {
    let wrong = circles_only_shrink(&circles(), &offenders().circles);
    assert!(wrong.is_empty(), "circles (testbench/offenders.toml):\n{}", wrong.join("\n"));
}

/// Each circle that is found must be within a listed one, and each file of the list in a circle.
fn circles_only_shrink(
    found: &BTreeMap<String, Vec<BTreeSet<String>>>,
    listed: &BTreeMap<String, Vec<BTreeSet<String>>>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let none = Vec::new();
    for (room, circles) in found {
        for circle in circles {
            if !listed.get(room).unwrap_or(&none).iter().any(|known| circle.is_subset(known)) {
                wrong
                    .push(format!("{room}: these files import each other, and are not listed as a circle: {circle:?}"));
            }
        }
    }
    for (room, circles) in listed {
        for file in circles.iter().flatten() {
            if !found.get(room).unwrap_or(&none).iter().any(|circle| circle.contains(file)) {
                wrong.push(format!("{room}: {file} is in no such circle any more: take it off the list"));
            }
        }
    }
    wrong
}

#[test]
fn a_list_that_may_only_shrink_sees_what_grows() {
    let sizes = |list: &[(&str, usize)]| list.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
    let wrong =
        |found: &[(&str, usize)], listed: &[(&str, usize)]| only_shrinks(&sizes(found), &sizes(listed), 10).len();
    assert_eq!(wrong(&[("a", 10), ("b", 12)], &[("b", 12)]), 0);
    assert_eq!(wrong(&[("b", 11)], &[("b", 12)]), 0);
    assert_eq!(wrong(&[("a", 11)], &[]), 1);
    assert_eq!(wrong(&[("b", 13)], &[("b", 12)]), 1);
    assert_eq!(wrong(&[("b", 10)], &[("b", 12)]), 1);
    assert_eq!(wrong(&[], &[("b", 12)]), 1);
    let circles = |list: &[&str]| {
        let circles: Vec<BTreeSet<String>> =
            list.iter().map(|names| names.chars().map(String::from).collect()).collect();
        BTreeMap::from([("room".to_owned(), circles)])
    };
    let wrong = |found: &[&str], listed: &[&str]| circles_only_shrink(&circles(found), &circles(listed)).len();
    assert_eq!(wrong(&["abcd"], &["abcd"]), 0);
    assert_eq!(wrong(&["abcde"], &["abcd"]), 1);
    assert_eq!(wrong(&["abcd"], &["abcde"]), 1);
    assert_eq!(wrong(&["abcd", "efgh"], &["abcdefgh"]), 0);
    assert_eq!(wrong(&["abcd"], &[]), 1);
    assert_eq!(wrong(&[], &["abcd"]), 4);
}
