//! A checked scenario as text: result documents carry it so that the run can be repeated.
//!
//! The text is the tree of values that was read, with the values of bases and of `--set` in place; jobs stand in it as
//! `[[job]]`. Numbers keep the text they were written with, tables are in the order of their keys: equal scenarios have
//! equal texts.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::Loaded;
use super::run::{Flip, RunOptions};
use watershed_reader::source::{Node, Value};

/// What a run was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunInputs {
    /// The folder that files are relative to, as it was named.
    pub base: String,
    /// The scenario, line by line, in TOML.
    pub lines: Vec<String>,
    /// Options of the run that change what a document says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<RunOption>,
}

/// An option of a run that changes what its document says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunOption {
    /// Neither monitors nor oracle.
    NoChecks,
    /// Every link is reported.
    AllLinks,
    /// Bits of a word that leaves a switch's engine are flipped.
    Flip {
        /// Name of the switch.
        switch: String,
        /// Collective id.
        id: u16,
        /// Number of the word in the stream.
        word: u64,
        /// The bits.
        mask: u64,
    },
}

impl RunInputs {
    /// The text of a scenario that was read.
    pub fn new(loaded: &Loaded) -> Self {
        let mut text = String::new();
        let mut root = loaded.source.written().clone();
        without_idle_waves(&mut root);
        if let Value::Table(_) = &root.value {
            table(&root, "", &mut text);
        }
        let lines = text.lines().map(str::to_owned).collect();
        Self { base: loaded.base.to_string_lossy().replace('\\', "/"), lines, options: Vec::new() }
    }

    /// Writes down what of a run's options changes its document.
    pub fn set_options(&mut self, options: &RunOptions<'_>) {
        self.options.clear();
        self.options.extend(options.no_checks.then_some(RunOption::NoChecks));
        self.options.extend(options.all_links.then_some(RunOption::AllLinks));
        self.options.extend(options.flip.map(|flip| RunOption::Flip {
            switch: flip.switch.to_owned(),
            id: flip.id,
            word: flip.word,
            mask: flip.mask,
        }));
    }

    /// The options of the run.
    pub fn run_options(&self) -> RunOptions<'_> {
        let mut options = RunOptions::default();
        for option in &self.options {
            match option {
                RunOption::NoChecks => options.no_checks = true,
                RunOption::AllLinks => options.all_links = true,
                RunOption::Flip { switch, id, word, mask } => {
                    options.flip = Some(Flip { switch, id: *id, word: *word, mask: *mask });
                }
            }
        }
        options
    }

    /// The text, to be read again. Files that it names are relative to [`base`](Self::base).
    pub fn text(&self) -> String {
        self.lines.join("\n") + "\n"
    }
}

/// Leaves out what a base says of golden waves where the scenario that extends it has none. It finds no use there; in a text without
/// bases it would be a mistake.
fn without_idle_waves(root: &mut Node) {
    let Value::Table(entries) = &mut root.value else { return };
    let Some(Value::Table(golden)) = entries.get_mut("golden").map(|node| &mut node.value) else { return };
    let Some(Value::Array(files)) = golden.get("files").map(|node| &node.value) else { return };
    if !files.iter().any(|file| matches!(&file.value, Value::String(file) if file == "wave")) {
        golden.retain(|key, _| !["signals", "from_cycle", "to_cycle", "picture"].contains(&key.as_str()));
    }
}

/// A key as TOML has it.
pub fn key(name: &str) -> String {
    let bare =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if bare { name.to_owned() } else { quoted(name) }
}

fn quoted(text: &str) -> String {
    // JSON's escapes are TOML's but for one control character.
    serde_json::to_string(text).unwrap_or_default().replace('\u{7f}', "\\u007f")
}

fn is_tables(node: &Node) -> bool {
    match &node.value {
        Value::Array(items) => !items.is_empty() && items.iter().all(|item| matches!(item.value, Value::Table(_))),
        _ => false,
    }
}

/// A table: its plain values first, then the tables in it under headers of their own.
fn table(node: &Node, path: &str, out: &mut String) {
    let Value::Table(entries) = &node.value else { return };
    let is_section = |node: &Node| matches!(node.value, Value::Table(_)) || is_tables(node);
    for (name, value) in entries.iter().filter(|(_, value)| !is_section(value)) {
        let _ = write!(out, "{} = ", key(name));
        inline(value, out);
        out.push('\n');
    }
    for (name, value) in entries.iter().filter(|(_, value)| is_section(value)) {
        let path = if path.is_empty() { key(name) } else { format!("{path}.{}", key(name)) };
        if let Value::Array(items) = &value.value {
            for item in items {
                let _ = writeln!(out, "[[{path}]]");
                table(item, &path, out);
            }
        } else {
            let _ = writeln!(out, "[{path}]");
            table(value, &path, out);
        }
    }
}

/// A value as TOML, in a line.
pub fn inline(node: &Node, out: &mut String) {
    let _ = match &node.value {
        Value::Bool(flag) => write!(out, "{flag}"),
        Value::Integer(number) => write!(out, "{number}"),
        Value::Float(text) | Value::Datetime(text) => write!(out, "{text}"),
        Value::String(text) => write!(out, "{}", quoted(text)),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                inline(item, out);
            }
            write!(out, "]")
        }
        Value::Table(entries) => {
            out.push_str("{ ");
            for (index, (name, value)) in entries.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                let _ = write!(out, "{} = ", key(name));
                inline(value, out);
            }
            write!(out, " }}")
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_keys_are_quoted() {
        let wanted = ("\"a b\"".into(), "a-1".into(), "\"\\u007f\\n\\\"\"".into());
        assert_eq!((key("a b"), key("a-1"), quoted("\u{7f}\n\"")), wanted);
    }
}
