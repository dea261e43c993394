//! The front page of the crate draws which folder uses which: this holds the drawing against the code.
//!
//! What counts is what is compiled into the program: comments and test modules may name anything.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::root;

/// The folders of `src`, and the file that stands beside them, each with those that it may use, as the figure on the front
/// page of the crate has them.
const ARROWS: [(&str, &[&str]); 14] = [
    (
        "cli",
        &[
            "study", "glossary", "scenario", "piuma", "armed", "pbv", "fabric", "oracle", "arith", "kernel", "probe",
            "files",
        ],
    ),
    ("study", &["scenario", "pbv", "fabric", "oracle", "arith", "kernel", "probe", "files"]),
    ("glossary", &["scenario"]),
    ("guide", &[]),
    ("scenario", &["piuma", "armed", "pbv", "fabric", "oracle", "arith", "kernel", "probe", "files"]),
    ("piuma", &["fabric", "oracle", "arith", "kernel", "probe"]),
    ("armed", &["fabric", "arith", "kernel", "probe"]),
    ("pbv", &["fabric", "arith", "kernel", "probe"]),
    ("fabric", &["kernel", "probe"]),
    ("oracle", &["arith"]),
    ("arith", &[]),
    ("kernel", &[]),
    ("probe", &["files"]),
    ("files", &[]),
];

/// The code of a file without comments and without what is compiled for tests only.
fn compiled(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect()
}

/// The folders that code names: `crate::fabric::…`, `crate::{arith, fabric::…}`.
fn named(code: &str) -> BTreeSet<String> {
    let word = |text: &str| -> String {
        text.trim_start().chars().take_while(|character| character.is_alphanumeric() || *character == '_').collect()
    };
    let mut names = BTreeSet::new();
    for (place, _) in code.match_indices("crate::") {
        let rest = &code[place + "crate::".len()..];
        let Some(group) = rest.strip_prefix('{') else {
            names.insert(word(rest));
            continue;
        };
        let (mut depth, mut item) = (1, true);
        for (at, character) in group.char_indices() {
            if item && !character.is_whitespace() && character != '}' {
                names.insert(word(&group[at..]));
                item = false;
            }
            match character {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => item = true,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    names
}

/// All files of a folder that end in `.rs` and are not files of tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") && path.file_stem().unwrap() != "tests" {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn no_folder_uses_one_above_it() {
    let rooms: BTreeSet<&str> = ARROWS.iter().map(|(room, _)| *room).collect();
    let (mut wrong, mut seen) = (Vec::new(), BTreeSet::new());
    for (room, may) in ARROWS {
        let folder = root().join("src").join(room);
        let files = if folder.is_dir() { sources(&folder) } else { vec![folder.with_extension("rs")] };
        for file in files {
            for name in named(&compiled(&fs::read_to_string(&file).unwrap())) {
                if name == room || !rooms.contains(name.as_str()) {
                    continue;
                }
                seen.insert((room, name.clone()));
                if !may.contains(&name.as_str()) {
                    wrong.push(format!("{} uses {name}", file.strip_prefix(root()).unwrap().display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let unused: Vec<_> = ARROWS
        .iter()
        .flat_map(|(room, may)| may.iter().map(move |name| (*room, *name)))
        .filter(|(room, name)| !seen.contains(&(*room, (*name).to_owned())))
        .collect();
    assert!(unused.is_empty(), "arrows that nothing uses: {unused:?}");
}

/// Every folder stands in the list: a new one has to be drawn.
#[test]
fn every_folder_is_drawn() {
    let listed: BTreeSet<String> = ARROWS.iter().map(|(room, _)| (*room).to_owned()).collect();
    let there: BTreeSet<String> = fs::read_dir(root().join("src"))
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|name| !["lib", "main"].contains(&name.as_str()))
        .collect();
    assert_eq!(there, listed);
}

#[test]
fn names_are_found_in_paths_and_groups() {
    let code =
        compiled("use crate::fabric::{Flit, arith};\nuse crate::{\n    kernel::Cycle, probe,\n}; // crate::cli\n");
    let names: Vec<String> = named(&code).into_iter().collect();
    assert_eq!(names, ["fabric", "kernel", "probe"]);
}
