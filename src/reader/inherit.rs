//! Scenarios that extend others.
//!
//! `extends = "base.toml"` lays a scenario over another one, whose file is named relative to its own. Tables are joined
//! key by key, everything else is replaced. A table whose keys are numbers changes single elements of an inherited array, as
//! `--set` does:
//!
//! ```toml
//! extends = "allreduce-die.toml"
//! switch.ceng.stages = 4
//! collective.0.elements = 64
//! ```
//!
//! A key of which only one of several may be given (`link.latency_ns`, `link.latency_cycles`) takes the place of the
//! others. The base's `name` is its own: a scenario that extends it is named by its file unless it names itself. Files that a
//! base names stay relative to that base. Every value keeps the place where it was written, so that
//! an error points into the right file.

use std::path::{Path, PathBuf};

use super::problem::Problem;
use super::shipped::normalise;
use super::source::{Node, Source, Value, remove_alternatives};
use super::{limits, shipped};

/// Files in a chain, at most: more is a mistake.
const CHAIN: usize = 16;

/// Lays the scenario over those it extends. `base` is the folder of its file.
///
/// # Errors
/// A base cannot be read, is not TOML, extends itself, or has no element that is to be changed.
pub fn inherit(source: &mut Source, base: &Path) -> Result<(), Problem> {
    let mut top = std::mem::replace(source.root_mut(), empty());
    let result = merge_base(source, &mut top, base, &mut vec![normalise(Path::new(source.name()))]);
    *source.root_mut() = top;
    result
}

fn merge_base(source: &mut Source, node: &mut Node, base: &Path, chain: &mut Vec<PathBuf>) -> Result<(), Problem> {
    let Value::Table(table) = &mut node.value else { return Ok(()) };
    let Some(extends) = table.remove("extends") else { return Ok(()) };
    let Value::String(name) = &extends.value else {
        let found = extends.value.kind();
        return Err(Problem::in_text(extends.span, format!("`extends` is {found}"))
            .expected("the name of a scenario file, relative to this one"));
    };
    let BaseFile { path, folder, text } = find(base, name);
    if chain.contains(&path) {
        return Err(Problem::in_text(extends.span, "the scenario extends itself")
            .help(format!("by way of {}", chain.iter().map(|file| shown(file)).collect::<Vec<_>>().join(", "))));
    }
    chain.push(path.clone());
    if chain.len() > CHAIN {
        return Err(Problem::in_text(extends.span, format!("more than {CHAIN} scenarios extend each other")));
    }
    let text = text.map_err(|reason| {
        Problem::in_text(extends.span.clone(), format!("cannot read \"{name}\": {reason}"))
            .help("the path is relative to the scenario file; a scenario that `watershed list` names can be given by that name")
    })?;
    let mut parent = source.add_parent(shipped::shown(&path), text)?;
    merge_base(source, &mut parent, path.parent().unwrap_or(Path::new("")), chain)?;
    // Another file is another scenario: what it is called is not inherited.
    if let Value::Table(table) = &mut parent.value {
        table.remove("name");
    }
    if !folder.as_os_str().is_empty() {
        relocate(&mut parent, &folder);
    }
    let child = std::mem::replace(node, empty());
    *node = overlay(parent, child, &mut Vec::new())?;
    Ok(())
}

fn empty() -> Node {
    Source::empty("").root().clone()
}

/// A scenario that another one names.
struct BaseFile {
    path: PathBuf,
    /// Its folder, as the other one has to name it.
    folder: PathBuf,
    text: Result<String, String>,
}

/// The scenario that one in the folder `base` means by a name, and its text: a file beside it, or one that ships with the program,
/// wherever the file that extends it is.
fn find(base: &Path, name: &str) -> BaseFile {
    let folder_of = |path: &Path| path.parent().unwrap_or(Path::new("")).to_owned();
    let path = normalise(&base.join(name));
    let text = match shipped::len(&path) {
        Ok(size) if size > limits::SCENARIO_BYTES => Err(format!("it has {size} bytes")),
        Ok(_) => shipped::text(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
            _ => error.to_string(),
        }),
        Err(_) => match shipped::find(&shown(&path)).or_else(|| shipped::find(name)) {
            Some((path, text)) => {
                let path = shipped::place(path);
                return BaseFile { folder: folder_of(&path), path, text: Ok(text.to_owned()) };
            }
            None => Err("there is no such file".to_owned()),
        },
    };
    BaseFile { path, folder: folder_of(Path::new(name)), text }
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "/")
}

/// Makes the files a base names relative to the one that extends it.
fn relocate(node: &mut Node, folder: &Path) {
    match &mut node.value {
        Value::Table(table) => {
            for (key, value) in table.iter_mut() {
                match &mut value.value {
                    Value::String(file) if key == "file" || key == "embedding" => {
                        *file = shown(&normalise(&folder.join(&*file)));
                    }
                    _ => relocate(value, folder),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| relocate(item, folder)),
        _ => {}
    }
}

/// Lays a value over another one: tables are joined, elements of an array are changed by their numbers.
pub(super) fn overlay(parent: Node, child: Node, walk: &mut Vec<String>) -> Result<Node, Problem> {
    let Node { value: under, span: old_span, key: old_key } = parent;
    let Node { value: over, span, key } = child;
    match (under, over) {
        (Value::Table(mut under), Value::Table(over)) => {
            for (name, value) in over {
                let mut joined = Node { value: Value::Table(under), span: span.clone(), key: key.clone() };
                remove_alternatives(&mut joined, &walk.iter().map(String::as_str).collect::<Vec<_>>(), &name);
                let Value::Table(rest) = joined.value else { unreachable!("it was a table") };
                under = rest;
                let value = match under.remove(&name) {
                    Some(old) => {
                        walk.push(name.clone());
                        let value = overlay(old, value, walk)?;
                        walk.pop();
                        value
                    }
                    None => value,
                };
                under.insert(name, value);
            }
            Ok(Node { value: Value::Table(under), span, key })
        }
        (Value::Array(mut items), Value::Table(over))
            if !over.is_empty() && over.keys().all(|name| name.bytes().all(|byte| byte.is_ascii_digit())) =>
        {
            for (name, value) in over {
                let count = items.len();
                let place = value.key.clone().unwrap_or_else(|| value.span.clone());
                let item = name.parse().ok().and_then(|index: usize| items.get_mut(index)).ok_or_else(|| {
                    Problem::in_text(place, format!("the scenario it extends has no element {name} here")).expected(
                        if count == 1 { "the number 0".to_owned() } else { format!("a number below {count}") },
                    )
                })?;
                let old = std::mem::replace(item, empty());
                walk.push(name);
                *item = overlay(old, value, walk)?;
                walk.pop();
            }
            Ok(Node { value: Value::Array(items), span: old_span, key: old_key })
        }
        (_, over) => Ok(Node { value: over, span, key }),
    }
}

/// A word of a shipped scenario's table, its own or one of a scenario it extends.
pub fn word(path: &str, table: &toml::Table, key: &str) -> Option<String> {
    if let Some(word) = table.get(key) {
        return word.as_str().map(str::to_owned);
    }
    if key == "name" {
        return None;
    }
    let base = normalise(&Path::new(path).parent()?.join(table.get("extends")?.as_str()?));
    let (path, text) = shipped::find(&shown(&base))?;
    word(path, &toml::from_str(text).ok()?, key)
}
