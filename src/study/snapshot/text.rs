//! Texts of golden files: documents as JSON that people can review, and what differs, with the tolerances of a scenario.

use std::fmt::Write;

use serde_json::Value as Json;
use similar::{ChangeTag, TextDiff};

use watershed_probe::Selection;
use watershed_scenario_interface::result::fnv1a;
use watershed_scenario_interface::snapshot::Tolerance;

/// Elements at either end of a long vector that stand in a golden document.
const SHOWN: usize = 4;

/// Lines of either side that are shown of a difference.
const MOST_LINES: usize = 40;

/// Columns of a golden document.
const WIDTH: usize = 118;

// ------------------------------------------------------------------------------------------------ result documents

/// The document without what changes from commit to commit, and with long vectors shortened: their first and last
/// elements, their length, and a digest beside them.
pub fn reviewable(mut document: Json) -> Json {
    // The scenario is beside the golden already; a document holds it whole for replay.
    if let Some(document) = document.as_object_mut() {
        document.shift_remove("scenario");
    }
    if let Some(stamp) = document["stamp"].as_object_mut() {
        stamp.shift_remove("commit");
        stamp.shift_remove("version");
    }
    for collective in document["collectives"].as_array_mut().into_iter().flatten() {
        for vector in ["result", "oracle"] {
            let Some(elements) = collective[vector].as_array() else { continue };
            if elements.len() <= 2 * SHOWN {
                continue;
            }
            let words: Vec<u8> = elements.iter().filter_map(Json::as_str).flat_map(str::bytes).collect();
            collective[vector] = serde_json::json!({
                "elements": elements.len(),
                "first": elements[..SHOWN],
                "last": elements[elements.len() - SHOWN..],
                "fnv1a": format!("{:016x}", fnv1a(&words)),
            });
        }
    }
    document
}

/// JSON in which whatever fits into a line stands in a line.
pub fn compact(value: &Json) -> String {
    let mut out = String::new();
    write_compact(&mut out, value, 0, 0);
    out.push('\n');
    out
}

fn write_compact(out: &mut String, value: &Json, indent: usize, used: usize) {
    let line = one_line(value);
    if indent + used + line.len() <= WIDTH && !matches!(value, Json::Object(_) if indent == 0) {
        out.push_str(&line);
        return;
    }
    let inner = indent + 2;
    let (open, close, entries): (_, _, Vec<(String, &Json)>) = match value {
        Json::Object(object) => ('{', '}', object.iter().map(|(key, value)| (format!("{key:?}: "), value)).collect()),
        Json::Array(items) => ('[', ']', items.iter().map(|item| (String::new(), item)).collect()),
        _ => return out.push_str(&line),
    };
    out.push(open);
    for (index, (key, value)) in entries.iter().enumerate() {
        let _ = write!(out, "{}\n{:inner$}{key}", if index > 0 { "," } else { "" }, "");
        write_compact(out, value, inner, key.len());
    }
    let _ = write!(out, "\n{:indent$}{close}", "");
}

fn one_line(value: &Json) -> String {
    match value {
        Json::Array(items) => format!("[{}]", items.iter().map(one_line).collect::<Vec<_>>().join(", ")),
        Json::Object(object) if !object.is_empty() => {
            let entries: Vec<String> =
                object.iter().map(|(key, value)| format!("{key:?}: {}", one_line(value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        other => other.to_string(),
    }
}

/// The lines that differ, each stretch of them with the number of its first line in what was expected.
pub fn changed_lines(expected: &str, found: &str) -> String {
    let diff = TextDiff::from_lines(expected, found);
    let (mut text, mut shown, mut more) = (String::new(), 0, 0);
    for stretch in diff.grouped_ops(0) {
        if let Some(first) = stretch.first().filter(|_| shown < MOST_LINES) {
            let _ = writeln!(text, "  line {}", first.old_range().start + 1);
        }
        for change in stretch.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => continue,
            };
            if shown < MOST_LINES {
                let _ = writeln!(text, "  {sign} {}", change.value().trim_end_matches('\n'));
                shown += 1;
            } else {
                more += 1;
            }
        }
    }
    if more > 0 {
        let _ = writeln!(text, "  ... and {more} lines more");
    }
    text
}

// ------------------------------------------------------------------------------------------------------ tolerances

/// The tolerances of a scenario, and which of them have named a number.
pub struct Tolerances<'a> {
    each: Vec<(Selection, &'a Tolerance)>,
    used: Vec<bool>,
    /// Names of numbers that there are, for suggestions.
    pub names: Vec<String>,
}

impl<'a> Tolerances<'a> {
    /// Of a checked scenario, whose globs can be read.
    pub fn new(list: &'a [Tolerance]) -> Self {
        let each: Vec<_> = list.iter().filter_map(|one| Some((Selection::new([&one.value]).ok()?, one))).collect();
        Tolerances { used: vec![false; each.len()], each, names: Vec::new() }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.each.is_empty()
    }

    /// Those that have named no number, by their position in the table.
    pub fn unused(&self) -> impl Iterator<Item = (usize, &'a Tolerance)> + '_ {
        self.each.iter().enumerate().filter(|(at, _)| !self.used[*at]).map(|(at, (_, one))| (at, *one))
    }

    /// Tolerances of a number by its name.
    fn of(&mut self, name: String) -> Vec<&'a Tolerance> {
        let mut found = Vec::new();
        for ((selection, tolerance), used) in self.each.iter().zip(&mut self.used) {
            if selection.selects(&name) {
                *used = true;
                found.push(*tolerance);
            }
        }
        self.names.push(name);
        found
    }

    /// The document that was found, with golden numbers where those that were found may stand for them.
    pub fn apply_tolerances(&mut self, found: &mut Json, golden: Option<&Json>, name: &str) {
        let inner = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
        match found {
            Json::Object(object) => {
                for (key, value) in object {
                    self.apply_tolerances(value, golden.and_then(|golden| golden.get(key)), &inner(key));
                }
            }
            Json::Array(items) => {
                for (at, value) in items.iter_mut().enumerate() {
                    self.apply_tolerances(value, golden.and_then(|golden| golden.get(at)), &inner(&at.to_string()));
                }
            }
            Json::Number(number) => {
                let allowed = self.of(name.to_owned());
                let pair = number.as_f64().zip(golden.and_then(Json::as_f64));
                if let (Some((now, before)), Some(golden)) = (pair, golden)
                    && allowed.iter().any(|tolerance| tolerance.allows(before, now))
                {
                    *found = golden.clone();
                }
            }
            _ => {}
        }
    }

    /// The same for lines of a summary, which are named by what they begin with: "summary.checks".
    pub fn apply_line_tolerances(&mut self, found: &str, golden: Option<&str>) -> String {
        let mut label = String::new();
        let mut golden = golden.unwrap_or_default().lines();
        let mut settled = String::new();
        for line in found.lines() {
            let before = golden.next();
            if let Some(word) = label_of(line) {
                word.clone_into(&mut label);
            }
            let numbers = words(line);
            let allowed = if numbers.iter().any(|(_, number)| number.is_some()) {
                self.of(format!("summary.{label}"))
            } else {
                Vec::new()
            };
            let may_stand = |before: &str| {
                let golden = words(before);
                golden.len() == numbers.len()
                    && golden.iter().zip(&numbers).all(|((text, before), (other, now))| match (before, now) {
                        (Some(before), Some(now)) => allowed.iter().any(|tolerance| tolerance.allows(*before, *now)),
                        _ => text == other,
                    })
            };
            settled.push_str(before.filter(|before| !allowed.is_empty() && may_stand(before)).unwrap_or(line));
            settled.push('\n');
        }
        settled
    }
}

/// What a line of a summary begins with; lines that begin with space belong to the one above.
fn label_of(line: &str) -> Option<&str> {
    (!line.is_empty() && !line.starts_with(' ')).then(|| line.split("  ").next().unwrap_or(line))
}

/// The words and numbers of a line, without spaces.
fn words(line: &str) -> Vec<(&str, Option<f64>)> {
    let mut found = Vec::new();
    for word in line.split_whitespace() {
        let mut rest = word;
        while !rest.is_empty() {
            let is_digit = |c: char| c.is_ascii_digit();
            let end = if rest.starts_with(is_digit) {
                let end = rest.find(|c: char| !is_digit(c) && c != '.').unwrap_or(rest.len());
                rest[..end].trim_end_matches('.').len()
            } else {
                rest.find(is_digit).unwrap_or(rest.len())
            };
            let (piece, next) = rest.split_at(end);
            found.push((piece, piece.starts_with(is_digit).then(|| piece.parse().ok()).flatten()));
            rest = next;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tolerance(value: &str, absolute: Option<f64>, relative: Option<f64>) -> Tolerance {
        Tolerance { value: value.to_owned(), absolute, relative }
    }

    #[test]
    fn numbers_within_a_tolerance_become_the_golden_ones() {
        let list = [tolerance("jobs.*.cycles", Some(2.0), None), tolerance("**.rate", None, Some(0.1))];
        let golden = json!({ "cycles": 10, "jobs": [{ "cycles": 10, "rate": 2.0, "name": "10" }] });
        let settle = |mut found: Json| {
            let mut tolerances = Tolerances::new(&list);
            tolerances.apply_tolerances(&mut found, Some(&golden), "");
            (found, tolerances.unused().map(|(at, _)| at).collect::<Vec<_>>())
        };
        let near = json!({ "cycles": 10, "jobs": [{ "cycles": 12, "rate": 1.8, "name": "10" }] });
        assert_eq!(settle(near), (golden.clone(), vec![]));
        for far in [
            json!({ "cycles": 11, "jobs": [{ "cycles": 10, "rate": 2.0, "name": "10" }] }),
            json!({ "cycles": 10, "jobs": [{ "cycles": 13, "rate": 2.0, "name": "10" }] }),
            json!({ "cycles": 10, "jobs": [{ "cycles": 10, "rate": 2.3, "name": "10" }] }),
            json!({ "cycles": 10, "jobs": [{ "cycles": 10, "rate": 2.0, "name": "11" }] }),
        ] {
            assert_eq!(settle(far.clone()), (far, vec![]));
        }
        assert_eq!(settle(json!({ "cycles": 10, "rate": "2.0" })).1, [0, 1]);
    }

    #[test]
    fn lines_of_a_summary_are_settled_by_their_labels() {
        let list = [tolerance("summary.busiest link", None, Some(0.05))];
        let golden =
            "sum            allreduce of 8\nbusiest link   a.P2 -> b.P3: 100 flits\n               busy 40.0 %\n";
        let settle = |found: &str| Tolerances::new(&list).apply_line_tolerances(found, Some(golden));
        assert_eq!(settle(&golden.replace("100", "104").replace("40.0", "39.1")), golden);
        for far in [golden.replace("100", "106"), golden.replace("of 8", "of 9"), golden.replace("flits", "words")] {
            assert_eq!(settle(&far), far);
        }
        let mut tolerances = Tolerances::new(&list);
        tolerances.apply_line_tolerances("sum  1\n", None);
        assert_eq!(tolerances.unused().count(), 1);
        assert_eq!(tolerances.names, ["summary.sum"]);
    }

    #[test]
    fn words_and_numbers_are_distinguished() {
        let found = words("a.P2  (3.5 of 10.) x1");
        let numbers: Vec<f64> = found.iter().filter_map(|(_, number)| *number).collect();
        assert_eq!(numbers, [2.0, 3.5, 10.0, 1.0]);
        assert_eq!(found.iter().map(|(text, _)| *text).collect::<String>(), "a.P2(3.5of10.)x1");
    }

    #[test]
    fn differences_are_cut_to_what_differs() {
        let shown = changed_lines("a\nb\nc\nd\n", "a\nx\nc\nd\n");
        assert_eq!(shown, "  line 2\n  - b\n  + x\n");
        let shown = changed_lines("a\nb\nc\nd\ne\n", "x\nb\nc\ny\nd\ne\n");
        assert_eq!(shown, "  line 1\n  - a\n  + x\n  line 4\n  + y\n", "what is equal in between is not shown");
        let all: String = (0..50).map(|line| line.to_string() + "\n").collect();
        let shown = changed_lines(&all, "");
        assert!(shown.ends_with("  - 39\n  ... and 10 lines more\n"), "{shown}");
    }
}
