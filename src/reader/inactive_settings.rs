//! What a scenario says for engines that do none of its jobs.
//!
//! One word of a [`[[job]]`](super::jobs) changes its engine, so what only the other engine has may stay in the file: it waits for a
//! job of that engine, and a note says so *\[chosen\]*:
//!
//! | table or key | acts with a job of |
//! |---|---|
//! | `memory` | piuma, software |
//! | `switch.ceng`, `switch.collective_ids`, `checks.claims`, `link.header` | piuma |
//! | `switch.collective_buffer_flits` | piuma, armed, pbv |
//! | `switch.point_to_point_vcs` and what else is of point-to-point channels | all but pbv, which has such channels for `[[traffic]]` only |
//! | `[armed]` | armed, but `fault` and `stranger` |
//! | `[pbv]` | pbv, but `fault`, `stranger` and `congestion` |
//!
//! Refused as before is what the scenario would not do without: faults, strangers and requests of engines that have no job, older
//! tables of jobs, programs, `[routing]` and `link.reliability`, which change the network that all engines share. So is a value of
//! `--set` or of a sweep that would not act: a user who sets it now expects something of it.

use std::collections::BTreeMap;

use super::problem::Problem;
use super::source::{Node, PARENT, Source, Value};

/// Keys of point-to-point channels; frames of packet engines are on one channel of their own.
const CHANNELS: [&str; 5] = [
    "switch.point_to_point_vcs",
    "switch.point_to_point_buffer_flits",
    "switch.router.switch_allocator",
    "switch.router.allocator_iterations",
    "switch.router.input_speedup",
];

/// What engines of a family do not have, with who has it.
fn of_others(family: &str, traffic: bool) -> Vec<(&'static str, &'static str)> {
    const MEMORY: (&str, &str) = ("memory", "piuma or software");
    const HEADER: (&str, &str) = ("link.header", "piuma");
    const CENG: [(&str, &str); 2] = [("switch.ceng", "piuma"), ("switch.collective_ids", "piuma")];
    const CLAIMS: (&str, &str) = ("checks.claims", "piuma");
    let mut all = Vec::new();
    match family {
        "fabric" => {
            all.extend(CENG);
            all.extend([HEADER, ("switch.collective_buffer_flits", "piuma, armed or pbv")]);
        }
        "armed" | "pbv" => {
            all.extend(CENG);
            all.extend([MEMORY, HEADER, CLAIMS]);
        }
        _ => {}
    }
    if family == "pbv" && !traffic {
        all.extend(CHANNELS.map(|key| (key, "piuma, armed or software, or for [[traffic]]")));
    }
    all
}

/// Tables of engines, and what in them is done to the system: it is no setting.
const TABLES: [(&str, [&str; 4]); 2] =
    [("armed", ["reduction", "fault", "stranger", ""]), ("pbv", ["collective", "fault", "stranger", "congestion"])];

/// Takes what waits out of a scenario whose jobs have been translated; the source keeps a note for each.
///
/// `found` is what is wrong with it so far, with paths.
pub(super) fn remove_inactive(source: &mut Source, found: Vec<Problem>) -> Vec<Problem> {
    let Value::Table(root) = &source.root().value else { return Vec::new() };
    let Some(Value::String(family)) = root.get("family").map(|node| &node.value) else { return Vec::new() };
    let family = family.clone();
    let traffic = matches!(root.get("traffic").map(|node| &node.value), Some(Value::Array(list)) if !list.is_empty());
    let mut keys: Vec<(String, &str)> =
        of_others(&family, traffic).into_iter().map(|(key, whose)| (key.to_owned(), whose)).collect();
    for (table, done) in TABLES.iter().filter(|(table, _)| *table != family && family != "mixed") {
        if let Some(Value::Table(entries)) = root.get(*table).map(|node| &node.value) {
            let settings = entries.keys().filter(|key| !done.contains(&key.as_str()));
            keys.extend(settings.map(|key| (format!("{table}.{key}"), *table)));
        }
    }
    // What is wrong in a setting that waits is wrong already.
    let found: Vec<(String, Problem)> = found
        .into_iter()
        .filter_map(|problem| Some((problem.path()?.to_owned(), problem.span(source)?, problem)))
        .map(|(path, span, problem)| (path, problem.moved(span)))
        .collect();
    let (mut problems, mut notes) = (Vec::new(), Vec::new());
    let Value::Table(root) = &mut source.root_mut().value else { return Vec::new() };
    for (key, whose) in keys {
        let path: Vec<&str> = key.split('.').collect();
        if take(root, &path) {
            let is_inside = |path: &str| {
                path.strip_prefix(key.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            };
            problems.extend(found.iter().filter(|(path, _)| is_inside(path)).map(|(_, problem)| problem.clone()));
            notes.push(format!("`{key}` waits for a job of {whose}: none is here"));
        }
    }
    for (table, done) in TABLES.iter().filter(|(table, _)| *table != family) {
        if let Some(node) = root.get(*table)
            && let Value::Table(entries) = &node.value
        {
            let act = done[1..].iter().filter_map(|key| Some((key, entries.get(*key)?)));
            if let (Some((key, node)), true) = (act.into_iter().next(), family != "mixed") {
                let place = node.key.clone().unwrap_or_else(|| node.span.clone());
                problems.push(
                    Problem::in_text(
                        place,
                        format!("`{table}.{key}` meets frames of {table} engines, which have no job here"),
                    )
                    .expected(format!("a job of the engine \"{table}\", or none of these"))
                    .help("settings of engines without a job wait for one; what happens to their frames cannot"),
                );
            } else if entries.is_empty() {
                root.remove(*table);
            }
        }
    }
    source.waiting = notes;
    problems
}

/// Takes a value away, if it is there and all of it stands in files.
fn take(table: &mut BTreeMap<String, Node>, path: &[&str]) -> bool {
    let Some((first, rest)) = path.split_first() else { return false };
    if rest.is_empty() {
        return table.get(*first).is_some_and(is_from_files) && table.remove(*first).is_some();
    }
    match table.get_mut(*first).map(|node| &mut node.value) {
        Some(Value::Table(below)) => take(below, rest),
        _ => false,
    }
}

/// Whether no part of a value was set by an argument.
pub(super) fn is_from_files(node: &Node) -> bool {
    let own = node.span.origin == 0 || node.span.origin >= PARENT;
    own && match &node.value {
        Value::Table(entries) => entries.values().all(is_from_files),
        Value::Array(items) => items.iter().all(is_from_files),
        _ => true,
    }
}
