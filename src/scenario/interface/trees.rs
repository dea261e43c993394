//! Trees of engines that frames arm or address, as their tables have them before a run: what `embed` shows of the armed and the PBV
//! family. (Trees of PIUMA's registers are [embeddings](crate::embedding).)

use std::fmt::Write;

use serde_json::{Map, Value as Json, json};

/// More lines than these are only counted in the text of a tree.
const LISTED: usize = 512;

/// The tree of a job, before a run.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineTree {
    /// Name of the job.
    pub job: String,
    /// Name of the tree: the job's, and of a second one its number.
    pub name: String,
    /// What frames do to its engines.
    pub kind: &'static str,
    /// What tables know it by, such as a multicast id.
    pub key: (&'static str, Option<u16>),
    /// Who reduces last.
    pub root: String,
    /// End points that take part.
    pub participants: usize,
    /// Engines, or switches without them, on the longest way to the root.
    pub depth: usize,
    /// How many engines reduce in it.
    pub engines: usize,
    /// The tree from the root on: depth, and a line of text.
    pub lines: Vec<(usize, String)>,
    /// What tables hold of it: whose, and its fields.
    pub entries: Vec<(String, Map<String, Json>)>,
    /// What a run will do otherwise.
    pub note: Option<String>,
    /// Sending switch and port of every link on the way to the root, ascending.
    pub sends: Vec<(u32, u16)>,
    /// The switch where it ends.
    pub root_switch: Option<u32>,
}

impl EngineTree {
    /// A job that has no tree, and why.
    pub fn absent(name: &str, kind: &'static str, note: String) -> EngineTree {
        EngineTree {
            job: name.to_owned(),
            name: name.to_owned(),
            kind,
            key: ("", None),
            root: String::new(),
            participants: 0,
            depth: 0,
            engines: 0,
            lines: Vec::new(),
            entries: Vec::new(),
            note: Some(note),
            sends: Vec::new(),
            root_switch: None,
        }
    }

    /// What tables hold of it, a line each.
    pub fn tables(&self) -> String {
        let mut out = self.head();
        for (whose, fields) in &self.entries {
            let fields: Vec<String> = fields.iter().map(|(key, value)| format!("{key} = {value}")).collect();
            let _ = writeln!(out, "{whose} = {{ {} }}", fields.join(", "));
        }
        out
    }

    /// What a person wants to know of it.
    pub fn text(&self) -> String {
        let mut out = self.head();
        if self.lines.len() > LISTED {
            let _ = writeln!(out, "tree          {} lines; --registers prints its tables", self.lines.len());
        } else {
            for (depth, line) in &self.lines {
                let _ = writeln!(out, "{:1$}{line}", "", 2 * depth);
            }
        }
        out
    }

    fn head(&self) -> String {
        let mut out = String::new();
        if self.entries.is_empty() {
            let _ = writeln!(out, "{:13} {}", self.name, self.kind);
        } else {
            let (key, id) = self.key;
            let id = id.map_or_else(String::new, |id| format!(", {} {id}", key.replace('_', " ")));
            let _ = writeln!(out, "{:13} {}{id}, {} end points", self.name, self.kind, self.participants);
            let _ = writeln!(out, "root          {}", self.root);
            let _ = writeln!(
                out,
                "depth         {}, {} engine{}",
                self.depth,
                self.engines,
                if self.engines == 1 { "" } else { "s" }
            );
        }
        if let Some(note) = &self.note {
            let _ = writeln!(out, "note          {note}");
        }
        out
    }

    /// For programs.
    pub fn json(&self) -> Json {
        let entry = |(whose, fields): &(String, Map<String, Json>)| {
            let mut fields = fields.clone();
            fields.insert("of".to_owned(), json!(whose));
            Json::Object(fields)
        };
        let mut json = json!({ "name": self.name, "kind": self.kind });
        if !self.entries.is_empty() {
            if let (key, Some(id)) = self.key {
                json[key] = json!(id);
            }
            json["root"] = json!(self.root);
            json["participants"] = json!(self.participants);
            json["depth"] = json!(self.depth);
            json["engines"] = json!(self.engines);
            json["entries"] = self.entries.iter().map(entry).collect();
        }
        if let Some(note) = &self.note {
            json["note"] = json!(note);
        }
        json
    }
}
