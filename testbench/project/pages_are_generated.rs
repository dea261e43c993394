//! Two pages of the book are written from what the program itself says: the scenario language from its schema, and words and
//! statistics from the tables of `explain`. `make golden` writes them anew.

use std::fmt::Write;
use std::fs;

use assert_cmd::Command;
use serde_json::{Map, Value};

use crate::{read, root};

/// Compares a page with what it should be, or writes it.
fn hold(name: &str, page: &str) {
    let accept = std::env::var("WATERSHED_GOLDEN").is_ok_and(|word| word == "accept");
    let path = root().join(name);
    let now = fs::read_to_string(&path).unwrap_or_default();
    if accept && std::env::var_os("CI").is_none() && now != page {
        fs::write(path, page).unwrap();
        return;
    }
    let differs = now.lines().zip(page.lines()).find(|(now, page)| now != page);
    assert!(
        now == page,
        "{name} is not what the program says (`make golden` writes it); first difference: {differs:?}"
    );
}

#[test]
fn words_and_statistics() {
    let mut page = String::from(
        "# Words and statistics\n\nWhat printed words mean; `watershed explain TERM` says the same. This page is made from the tables of that command.\n",
    );
    for (title, file) in [
        ("Words of the model", "words.md"),
        ("What is printed", "printed.md"),
        ("What cycles go to, in `why`", "kinds.md"),
    ] {
        write!(page, "\n## {title}\n\n{}", read(&format!("src/glossary/{file}"))).unwrap();
    }
    hold("src/guide/pages/statistics.md", &page);
}

#[test]
fn the_scenario_language() {
    let output = Command::new(env!("CARGO_BIN_EXE_watershed")).arg("schema").output().unwrap();
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    let language = Language { root: &schema };
    let mut page = String::from(
        "# The scenario language\n\nAll keys of a scenario file, made from its schema (`watershed schema`). `[table]` is a TOML table, `[[table]]` one of a list; \
         elements of a list in a file that is extended, and with `--set`, are named by their number. A key that the scenario's engine or topology does not \
         use is refused; in a scenario with `[[job]]`s, tables of engines without a job wait with a note.\n",
    );
    language.table(&mut page, &schema, &[]);
    let keys = page.lines().filter(|line| line.starts_with("| `")).count();
    assert!(keys > 300, "{keys} keys: the schema was not walked");
    hold("src/guide/pages/language.md", &page);
}

/// The schema as Markdown.
struct Language<'a> {
    root: &'a Value,
}

/// A part of a table's path, and whether it is a list.
type Path<'a> = [(&'a str, bool)];

impl<'a> Language<'a> {
    /// A schema, or what it refers to.
    fn resolved(&self, node: &'a Value) -> &'a Value {
        let target = node.get("$ref").and_then(Value::as_str).and_then(|at| at.strip_prefix('#'));
        target.and_then(|pointer| self.root.pointer(pointer)).unwrap_or(node)
    }

    /// The keys of a table if a value is one, or a list of them.
    fn inner(&self, node: &'a Value) -> Option<(&'a Value, bool)> {
        let node = self.resolved(node);
        if node.get("properties").is_some() {
            return Some((node, false));
        }
        let item = self.resolved(node.get("items")?);
        item.get("properties").map(|_| (item, true))
    }

    /// The heading, the keys and the tables below one table.
    fn table(&self, page: &mut String, node: &'a Value, path: &Path<'a>) {
        let Some(keys) = node.get("properties").and_then(Value::as_object) else { return };
        // What one engine alone has of a job is said where its own table is.
        let of_engine = |key: &str| path == [("job", true)] && ["piuma", "armed", "pbv", "software"].contains(&key);
        let (leaves, tables): (Vec<_>, Vec<_>) =
            keys.iter().partition(|(key, value)| of_engine(key) || self.inner(value).is_none());
        if path.is_empty() {
            page.push_str("\n## The file\n");
        } else {
            let name = path.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(".");
            let list = path.last().is_some_and(|(_, list)| *list);
            let (open, close) = if list { ("[[", "]]") } else { ("[", "]") };
            write!(page, "\n{} `{open}{name}{close}`\n", if path.len() == 1 { "##" } else { "###" }).unwrap();
            if let Some(about) = node.get("description").and_then(Value::as_str) {
                write!(page, "\n{}\n", line(about)).unwrap();
            }
        }
        if !leaves.is_empty() {
            page.push_str("\n| key | value | |\n|---|---|---|\n");
        }
        for (key, value) in leaves {
            writeln!(page, "| `{key}` | {} | {} |", self.kind(value), self.about(value)).unwrap();
        }
        for (key, value) in tables {
            let (inner, list) = self.inner(value).expect("a table");
            let path: Vec<_> = path.iter().copied().chain([(key.as_str(), list)]).collect();
            self.table(page, inner, &path);
        }
    }

    /// What a value may be.
    fn kind(&self, node: &'a Value) -> String {
        let node = self.resolved(node);
        let mut words: Vec<String> = values(node);
        let alternatives = ["oneOf", "anyOf"].iter().filter_map(|key| node.get(*key)?.as_array()).flatten();
        for alternative in alternatives.filter(|alternative| alternative.get("const").is_none()) {
            words.push(self.kind(alternative));
        }
        if words.is_empty() {
            words = types(node).into_iter().map(|kind| self.of_type(node, &kind)).collect();
        }
        words.dedup();
        words.join(", ")
    }

    fn of_type(&self, node: &'a Value, kind: &str) -> String {
        match kind {
            "array" => match node.get("items") {
                Some(item) => format!("list of {}", self.kind(item)),
                None => "list".to_owned(),
            },
            "integer" | "number" => {
                let bound = |key: &str| node.get(key).filter(|value| value.is_number()).map(number);
                match (bound("minimum"), bound("maximum")) {
                    (Some(least), Some(most)) => format!("{kind} {least} to {most}"),
                    (Some(least), None) => format!("{kind} from {least}"),
                    _ => kind.to_owned(),
                }
            }
            _ => kind.to_owned(),
        }
    }

    /// What it is, the meanings of its values, and its default.
    fn about(&self, node: &'a Value) -> String {
        let own = node.get("description").or_else(|| self.resolved(node).get("description"));
        let mut text = own.and_then(Value::as_str).map(line).unwrap_or_default();
        let choices = self.resolved(node).get("oneOf").and_then(Value::as_array).into_iter().flatten();
        let choices: Vec<_> = choices
            .filter_map(|choice| {
                let meaning = line(choice.get("description")?.as_str()?);
                Some(format!("`{}`: {}", plain(choice.get("const")?), meaning.trim_end_matches('.')))
            })
            .collect();
        if !choices.is_empty() {
            write!(text, " {}.", choices.join("; ")).unwrap();
        }
        if let Some(default) =
            node.get("default").filter(|value| !plain(value).is_empty() && !text.contains("Default:"))
        {
            write!(text, " Default: `{}`.", plain(default)).unwrap();
        }
        text.trim().to_owned()
    }
}

/// The values that stand in a schema one by one.
fn values(node: &Value) -> Vec<String> {
    let list = node.get("enum").and_then(Value::as_array).into_iter().flatten();
    let one_of = node.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    let constants = one_of.filter_map(|choice| choice.get("const")).chain(node.get("const"));
    list.filter(|value| !value.is_null()).chain(constants).map(|value| format!("`{}`", plain(value))).collect()
}

/// The types of a value. What may be a list may be a table of numbered elements too, which is said once for all.
fn types(node: &Value) -> Vec<String> {
    let all = match node.get("type") {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => vec![],
    };
    let is_list = all.iter().any(|kind| kind == "array");
    all.into_iter().filter(|kind| kind != "null" && !(is_list && kind == "object")).collect()
}

/// A default or a value, as TOML has it, without quotation marks.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Object(table) => inline(table),
        Value::Array(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(", ")),
        other => number(other),
    }
}

fn inline(table: &Map<String, Value>) -> String {
    let entries: Vec<_> = table.iter().map(|(key, value)| format!("{key} = {}", plain(value))).collect();
    format!("{{ {} }}", entries.join(", "))
}

/// A number without a fraction that is nothing.
fn number(value: &Value) -> String {
    let text = value.to_string();
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// A description in one line of a table.
fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
