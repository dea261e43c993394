//! Which files of a room import which: from `use` lines and from paths that begin with `crate`, `super` or `self`.
//!
//! A `pub use` is no import: it gives a name to what another file has, and whoever takes that name imports the other file. What a
//! file's own tests use does not count.

use std::collections::{BTreeMap, BTreeSet};

use crate::source_text::{Source, Token, closed};

/// Modules of a room by their paths, each with the file that holds it.
pub struct Room {
    /// The file of each module; the root is the empty path.
    files: BTreeMap<Vec<String>, String>,
    /// Names that a module gives to what another one has: module and name, and the path that is meant; none in another room.
    renamed: BTreeMap<(Vec<String>, String), Option<Vec<String>>>,
    /// Which file imports which.
    pub imports: BTreeMap<String, BTreeSet<String>>,
}

/// A path that a file names, with the module it is named in.
struct Named {
    module: Vec<String>,
    path: Vec<String>,
    /// The name it is given to others, if it is.
    public: bool,
}

impl Room {
    /// `folder` is that of the room, in which `lib.rs` is the root.
    pub fn new(folder: &str, sources: &[Source]) -> Room {
        let mut files = BTreeMap::new();
        for source in sources {
            files.insert(module_of(folder, &source.path), source.path.clone());
        }
        let mut room = Room { files, renamed: BTreeMap::new(), imports: BTreeMap::new() };
        let mut all = Vec::new();
        for source in sources {
            let module = module_of(folder, &source.path);
            let mut named = Vec::new();
            paths(&source.tokens, &module, &mut named);
            all.push((source.path.clone(), named));
        }
        for (_, named) in &all {
            for Named { module, path, .. } in named.iter().filter(|named| named.public) {
                if let Some(name) = path.last() {
                    room.renamed.insert((module.clone(), name.clone()), room.absolute(module, path));
                }
            }
        }
        for (file, named) in all {
            let found = named.iter().filter(|named| !named.public).filter_map(|named| {
                let path = room.absolute(&named.module, &named.path)?;
                room.file(&path, 0).filter(|other| **other != file).cloned()
            });
            let found = found.collect();
            room.imports.insert(file, found);
        }
        room
    }

    /// The path from the root of the room; `None` for what is in another one.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        let (mut base, mut rest) = match path.first()?.as_str() {
            "crate" => (Vec::new(), &path[1..]),
            "self" | "super" => (module.to_vec(), path),
            first => {
                let mut inner = module.to_vec();
                inner.push(first.to_owned());
                if !self.files.contains_key(&inner) {
                    return None;
                }
                (module.to_vec(), path)
            }
        };
        while let Some(first) = rest.first() {
            match first.as_str() {
                "self" => {}
                "super" => drop(base.pop()),
                _ => break,
            }
            rest = &rest[1..];
        }
        base.extend_from_slice(rest);
        Some(base)
    }

    /// The file that holds what a path names.
    fn file(&self, path: &[String], depth: usize) -> Option<&String> {
        let known = (0..=path.len()).rev().find(|length| self.files.contains_key(&path[..*length]))?;
        let module = path[..known].to_vec();
        if let Some(name) = path.get(known)
            && let Some(meant) = self.renamed.get(&(module.clone(), name.clone()))
            && depth < 8
        {
            let whole: Vec<String> = meant.as_ref()?.iter().chain(&path[known + 1..]).cloned().collect();
            return self.file(&whole, depth + 1);
        }
        self.files.get(&module)
    }

    /// Files that import each other, directly or by way of others: each set of more than one.
    pub fn circles(&self) -> Vec<BTreeSet<String>> {
        let reached: BTreeMap<&String, BTreeSet<&String>> =
            self.imports.keys().map(|file| (file, self.reachable(file))).collect();
        let mut found: Vec<BTreeSet<String>> = Vec::new();
        for file in self.imports.keys().filter(|file| reached[file].contains(file)) {
            if found.iter().any(|circle| circle.contains(file)) {
                continue;
            }
            let circle = reached[file].iter().filter(|other| reached[*other].contains(file));
            found.push(circle.map(|other| (*other).clone()).collect());
        }
        found
    }

    fn reachable(&self, file: &String) -> BTreeSet<&String> {
        let (mut found, mut work) = (BTreeSet::new(), vec![file]);
        while let Some(next) = work.pop() {
            for other in self.imports.get(next).into_iter().flatten() {
                if found.insert(other) {
                    work.push(other);
                }
            }
        }
        found
    }
}

/// `src/ROOM/a/mod.rs` and `src/ROOM/a.rs` are `a`.
fn module_of(folder: &str, path: &str) -> Vec<String> {
    let inside = path.strip_prefix(folder).unwrap_or(path).trim_start_matches('/').trim_end_matches(".rs");
    let mut parts: Vec<String> = inside.split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| last == "mod") || parts == ["lib"] {
        parts.pop();
    }
    parts
}

/// Paths that tokens name, those of tests left out.
fn paths(tokens: &[Token], module: &[String], found: &mut Vec<Named>) {
    let text = |at: usize| tokens.get(at).map_or("", |token| &*token.text);
    let mut at = 0;
    while at < tokens.len() {
        let is_test =
            ["#", "[", "cfg", "(", "test", ")", "]"].iter().enumerate().all(|(by, word)| text(at + by) == *word);
        if is_test {
            // The item behind it: to the end of its braces, or to its semicolon.
            let mut end = at + 7;
            while end < tokens.len() && text(end) != "{" && text(end) != ";" {
                end = if text(end) == "[" || text(end) == "(" { closed(tokens, end) } else { end + 1 };
            }
            at = if text(end) == "{" { closed(tokens, end) } else { end + 1 };
        } else if text(at) == "mod" && text(at + 2) == "{" {
            let end = closed(tokens, at + 2);
            let inner: Vec<String> = module.iter().cloned().chain([text(at + 1).to_owned()]).collect();
            paths(&tokens[at + 3..end - 1], &inner, found);
            at = end;
        } else if text(at) == "use" {
            let public = at > 0 && (text(at - 1) == "pub" || text(at - 1) == ")");
            let end = (at..tokens.len()).find(|at| text(*at) == ";").unwrap_or(tokens.len());
            tree(&tokens[at + 1..end], &[], &mut |path| {
                found.push(Named { module: module.to_vec(), path, public });
            });
            at = end;
        } else if matches!(text(at), "crate" | "super" | "self") && text(at + 1) == "::" {
            let mut path = vec![text(at).to_owned()];
            while text(at + 1) == "::" && text(at + 2).starts_with(|c: char| c.is_alphabetic() || c == '_') {
                path.push(text(at + 2).to_owned());
                at += 2;
            }
            found.push(Named { module: module.to_vec(), path, public: false });
            at += 1;
        } else {
            at += 1;
        }
    }
}

/// The paths of a `use`, whose braces may hold others.
fn tree(tokens: &[Token], base: &[String], take: &mut dyn FnMut(Vec<String>)) {
    let mut path = base.to_vec();
    let mut at = 0;
    while at < tokens.len() {
        match &*tokens[at].text {
            "::" => {}
            "{" => {
                let end = closed(tokens, at);
                let mut from = at + 1;
                for next in at + 1..end {
                    let inner = depth(&tokens[at + 1..next]);
                    if inner == 0 && tokens[next].text == "," || next == end - 1 {
                        if from < next {
                            tree(&tokens[from..next], &path, take);
                        }
                        from = next + 1;
                    }
                }
                return;
            }
            // The name that it is given is of no interest inside of the file.
            "as" | "*" => break,
            "self" if !path.is_empty() => {}
            word => path.push(word.to_owned()),
        }
        at += 1;
    }
    take(path);
}

fn depth(tokens: &[Token]) -> i32 {
    tokens.iter().map(|token| i32::from(token.text == "{") - i32::from(token.text == "}")).sum()
}

fn room(files: &[(&str, &str)]) -> Room {
    let source = |(path, text): &(&str, &str)| Source {
        path: format!("src/room/{path}"),
        tokens: crate::source_text::tokens(text),
    };
    Room::new("src/room", &files.iter().map(source).collect::<Vec<_>>())
}

#[test]
fn files_that_import_each_other_are_found() {
    let found = room(&[
        ("lib.rs", "pub mod a; mod b; pub mod c; pub use b::{B, inner::{self, X}}; use other::a;"),
        ("a.rs", "use super::B; use std::a; #[cfg(test)] mod tests { use crate::c::C; } fn f() {}"),
        ("b/mod.rs", "mod inner; fn f() -> crate::c::C { self::inner::x() }"),
        ("b/inner.rs", "use super::super::c::{self, D as E};"),
        ("c.rs", "use crate::{a::*, b}; // use crate::b::inner;"),
    ]);
    let of = |file: &str| found.imports[&format!("src/room/{file}")].iter().map(|path| &path[9..]).collect::<Vec<_>>();
    assert!(of("lib.rs").is_empty());
    assert_eq!(of("a.rs"), ["b/mod.rs"]);
    assert_eq!(of("b/mod.rs"), ["b/inner.rs", "c.rs"]);
    assert_eq!(of("b/inner.rs"), ["c.rs"]);
    assert_eq!(of("c.rs"), ["a.rs", "b/mod.rs"]);
    let circles = found.circles();
    assert_eq!(circles.len(), 1);
    assert_eq!(circles[0].len(), 4);
    let straight = room(&[("lib.rs", "mod a; mod b; use a::A;"), ("a.rs", "use super::b::B;"), ("b.rs", "")]);
    assert!(straight.circles().is_empty());
    // What a module names of another room is there, and not in the module.
    let elsewhere =
        room(&[("lib.rs", "mod a; pub use other::{self, D}; use a::A;"), ("a.rs", "use super::{D, other::E};")]);
    assert!(elsewhere.circles().is_empty());
    let here = room(&[("lib.rs", "mod a; struct D; use a::A;"), ("a.rs", "use super::D;")]);
    assert_eq!(here.circles().len(), 1);
}
