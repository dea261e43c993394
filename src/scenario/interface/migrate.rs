//! An older scenario in the language of jobs (requirement X-JOB-1): the tables of engines become [`[[job]]`](watershed_reader::jobs), line by line,
//! with everything else, comments and order too, as it was.
//!
//! The result is read again and must give the same configuration; otherwise the migration fails and writes nothing.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use crate::loaded::Loaded;
use crate::runnable::Engines;
use watershed_arith::quad::Opcode;
use watershed_arith::{Op, Round};
use watershed_reader::armed::config::opcode;
use watershed_reader::file::job::{Engine, operation};
use watershed_reader::jobs::{COMMON, composed, lanes};
use watershed_reader::names::NamedValues;
use watershed_reader::problem::{Problem, Problems, Span};
use watershed_reader::source::{Node, Source, Value, parse_path};
use watershed_reader::{inherit, jobs};

/// The text of a scenario with its jobs as `[[job]]`; `None` if it is so already.
///
/// # Errors
/// It is no scenario, or its tables are written in a way that cannot be translated line by line.
pub fn migrate(engines: Engines, name: &str, text: &str, base: &Path, stem: &str) -> Result<Option<String>, Problems> {
    let (source, syntax) = Source::parse(name, text);
    let fail = |source: &Source, problem| Err(Problems::new(source.clone().into(), vec![problem]));
    if let Some(problem) = syntax {
        return fail(&source, problem);
    }
    if !jobs::is_older(&source) {
        return Ok(None);
    }
    let before = match engines.load_text(name, text, base, stem, &[]) {
        // What it extends may be translated already: then only the translation can be read.
        Err(_) if source.has("extends") => None,
        before => Some(before?),
    };
    let mut lines = LineMigrator {
        source: &source,
        text,
        engine: None,
        at: 0,
        jobs: [0; 4],
        section: Vec::new(),
        family: family(&source, base),
        out: String::new(),
    };
    let inside = inside(source.root(), text);
    let mut at = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if inside.contains(&number) {
            lines.out.push_str(line);
        } else if let Err(what) = lines.line(line) {
            let span = Span::new(0, at..at + line.trim_end().len());
            let problem = Problem::in_text(span, what).expected("a table under a header, [[collective]] for example");
            return fail(&source, problem.help("write it so, or as [[job]] by hand"));
        }
        at += line.len();
    }
    let out = lines.out;
    let after = engines.load_text(name, &out, base, stem, &[])?;
    let config = |loaded: &Loaded| serde_json::to_string(&loaded.scenario).unwrap_or_default();
    if before.is_some_and(|before| config(&before) != config(&after)) {
        return fail(&source, Problem::general("the translation is another configuration: write the jobs by hand"));
    }
    Ok(Some(out))
}

/// The engine of a scenario's family, its own or that of the scenario it extends.
fn family(source: &Source, base: &Path) -> Option<Engine> {
    let mut joined = source.clone();
    inherit::inherit(&mut joined, base).ok()?;
    let Value::Table(root) = &joined.root().value else { return None };
    let Value::String(family) = &root.get("family")?.value else { return None };
    let name = if family == "fabric" { "software" } else { family };
    Engine::ALL.into_iter().find(|engine| engine.name() == name)
}

/// The lines, from 0 on, that begin within a value.
fn inside(root: &Node, text: &str) -> BTreeSet<usize> {
    let mut lines = BTreeSet::new();
    let mut work = vec![root];
    let number = |at: usize| text[..at.min(text.len())].matches('\n').count();
    while let Some(node) = work.pop() {
        match &node.value {
            Value::Table(table) => work.extend(table.values()),
            // A list of tables under headers of their own; one in brackets is a value like any other.
            Value::Array(items)
                if text.get(node.span.start..).is_some_and(|text| text.starts_with("[["))
                    && items.iter().any(|item| matches!(item.value, Value::Table(_))) =>
            {
                work.extend(items);
            }
            _ => lines.extend(number(node.span.start) + 1..=number(node.span.end)),
        }
    }
    lines
}

struct LineMigrator<'a> {
    source: &'a Source,
    text: &'a str,
    /// The engine of the table under whose header the next line is, and the tables in it on the way there.
    engine: Option<(Engine, Vec<String>)>,
    /// Number of the job among those of its engine.
    at: usize,
    /// How many jobs of its own the file has so far, by engine.
    jobs: [usize; 4],
    /// The table under whose header the next line is.
    section: Vec<String>,
    family: Option<Engine>,
    out: String,
}

impl LineMigrator<'_> {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let trimmed = line.trim_start();
        if trimmed.starts_with('[') {
            return self.header(line);
        }
        if trimmed.is_empty() || trimmed.starts_with('#') {
            self.out.push_str(line);
            return Ok(());
        }
        let equals = trimmed.find('=').ok_or("this is no key")?;
        let path: Vec<String> =
            parse_path(trimmed[..equals].trim()).map_err(|(_, what)| what)?.into_iter().map(|of| of.text).collect();
        let indent = &line[..line.len() - trimmed.len()];
        match &self.engine {
            Some((engine, within)) if within.is_empty() => {
                let engine = *engine;
                let rest = self.key(engine, &path, trimmed)?;
                self.out.push_str(indent);
                self.out.push_str(&rest);
            }
            Some(_) => self.out.push_str(line),
            None => self.dotted(line, trimmed, &path)?,
        }
        Ok(())
    }

    /// A key outside of the tables of engines: an element of an inherited list perhaps, or a list in one line.
    fn dotted(&mut self, line: &str, trimmed: &str, path: &[String]) -> Result<(), String> {
        let whole: Vec<&str> = self.section.iter().chain(path).map(String::as_str).collect();
        for engine in Engine::ALL {
            let table: Vec<&str> = engine.table().split('.').collect();
            if !whole.starts_with(&table) {
                continue;
            }
            let rest = &whole[table.len()..];
            let [number, key, behind @ ..] = rest else {
                return Err(format!("`{}` is a list in a line", engine.table()));
            };
            if !self.section.is_empty() {
                return Err(format!("`{}` is an element of an inherited list, in a table", whole.join(".")));
            }
            if self.family != Some(engine) {
                return Err(format!("element {number} of `{}` is not element {number} of all jobs", engine.table()));
            }
            if engine == Engine::Armed && matches!(*key, "op" | "rounds") {
                return Err(inherited(key));
            }
            let key = if engine == Engine::Pbv && *key == "rounds" { "repeat" } else { key };
            let own = if COMMON.contains(&key) { String::new() } else { format!("{}.", engine.name()) };
            let behind = behind.iter().fold(String::new(), |all, part| format!("{all}.{part}"));
            let value = &trimmed[trimmed.find('=').unwrap_or(0)..];
            let _ = write!(self.out, "job.{number}.{own}{key}{behind} {value}");
            return Ok(());
        }
        self.out.push_str(line);
        Ok(())
    }

    fn header(&mut self, line: &str) -> Result<(), String> {
        let open = if line.trim_start().starts_with("[[") { 2 } else { 1 };
        let start = line.find('[').unwrap_or(0) + open;
        let end = start + line[start..].find(']').ok_or("this is no header")?;
        let path: Vec<String> =
            parse_path(line[start..end].trim()).map_err(|(_, what)| what)?.into_iter().map(|of| of.text).collect();
        self.engine = None;
        self.section.clone_from(&path);
        for engine in Engine::ALL {
            let table: Vec<&str> = engine.table().split('.').collect();
            if path.len() < table.len() || path.iter().zip(&table).any(|(a, b)| a != b) {
                continue;
            }
            let mut within = path[table.len()..].to_vec();
            let mut name = "job".to_owned();
            let element = within.first().and_then(|first| first.parse().ok());
            if let Some(element) = element {
                if self.family != Some(engine) {
                    return Err(format!(
                        "element {element} of `{}` is not element {element} of all jobs",
                        engine.table()
                    ));
                }
                within.remove(0);
                name = format!("job.{element}");
                self.at = element;
            }
            if let Some(first) = within.first() {
                if !COMMON.contains(&first.as_str()) {
                    name = format!("{name}.{}", engine.name());
                }
                let quoted = |part: &String| super::run_inputs::key(part);
                name = within.iter().map(quoted).fold(name, |all, part| format!("{all}.{part}"));
            }
            let _ = write!(self.out, "{}{name}{}", &line[..start], &line[end..]);
            if within.is_empty() && element.is_none() {
                if open == 1 {
                    return Err(format!("`{}` is a list", engine.table()));
                }
                self.at = self.jobs[engine as usize];
                self.jobs[engine as usize] += 1;
                if self.family != Some(engine) {
                    if !line.ends_with('\n') {
                        self.out.push('\n');
                    }
                    let _ = writeln!(self.out, "engine = \"{}\"", engine.name());
                }
                if !self.source.has(&format!("{}[{}].name", engine.table(), self.at)) {
                    // Jobs without a name are called by their place, tables of engines by a letter and theirs.
                    let letter = match engine {
                        Engine::Piuma | Engine::Pbv => 'c',
                        Engine::Armed => 'r',
                        Engine::Software => 'h',
                    };
                    if !self.out.ends_with('\n') {
                        self.out.push('\n');
                    }
                    let _ = writeln!(self.out, "name = \"{letter}{}\"", self.at);
                }
                let host = format!("host[{}].", self.at);
                let has = |key: &str| self.source.has(&format!("{host}{key}"));
                if engine == Engine::Software && !["draws", "like", "values"].into_iter().any(has) {
                    // Jobs draw what engines draw; this one keeps its numbers.
                    if !self.out.ends_with('\n') {
                        self.out.push('\n');
                    }
                    let _ = writeln!(self.out, "software.draws = \"own\"");
                }
            }
            self.engine = Some((engine, within));
            return Ok(());
        }
        self.out.push_str(line);
        Ok(())
    }

    /// A line with a key of a job.
    fn key(&self, engine: Engine, path: &[String], trimmed: &str) -> Result<String, String> {
        let at = self.at;
        let behind = &trimmed[trimmed.find('=').unwrap_or(0)..];
        // A comment at the end of the line stays there, however the value is written.
        let comment = |node: &Node| self.text[node.span.end..].split_inclusive('\n').next().unwrap_or_default();
        let node = |key: &str| -> Option<&Node> {
            let mut node = self.source.root();
            let steps = engine.table().split('.').map(str::to_owned).chain([at.to_string(), key.to_owned()]);
            for step in steps {
                node = match &node.value {
                    Value::Table(table) => table.get(&step)?,
                    Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
                    _ => return None,
                };
            }
            Some(node)
        };
        let written = |node: &Node| {
            let mut text = String::new();
            super::run_inputs::inline(node, &mut text);
            text
        };
        match (engine, path[0].as_str()) {
            (Engine::Armed, key @ ("op" | "rounds")) if self.section.len() > 2 => Err(inherited(key)),
            (Engine::Armed, key @ ("op" | "rounds")) => {
                let name = node("op").map_or(Some("flt-sum-near"), |node| {
                    if let Value::String(name) = &node.value { Some(name) } else { None }
                });
                let composed = ["mean", "sum-deterministic"].into_iter().find(|&op| composed(op) == name);
                let opcode = name.and_then(opcode);
                if composed.is_none() && opcode.is_none() {
                    return Err("there is no such operation".into());
                }
                let own = node(key).ok_or("this is no key")?;
                let (value, rest) = (written(own), comment(own));
                if key == "op" {
                    let lines = opcode.map(operations).or(composed.map(|op| format!("op = \"{op}\"")));
                    return Ok(format!("{}{rest}", lines.unwrap_or_default()));
                }
                let rounds: u64 = value.parse().map_err(|_| "rounds are a number")?;
                Ok(if opcode.is_some_and(|opcode| opcode.op == Op::Barrier) {
                    format!("repeat = {rounds}{rest}")
                } else {
                    format!("elements = {}{rest}", rounds * opcode.map_or(4, lanes))
                })
            }
            (Engine::Pbv, "rounds") => Ok(format!("repeat {behind}")),
            (Engine::Software, "random") => Ok(format!("data.random {behind}")),
            (_, key) if COMMON.contains(&key) => Ok(trimmed.to_owned()),
            _ => Ok(format!("{}.{trimmed}", engine.name())),
        }
    }
}

fn inherited(key: &str) -> String {
    format!("`{key}` of an inherited reduction depends on what it inherits")
}

/// What a job says for an opcode, in lines but the end of the last.
fn operations(opcode: &Opcode) -> String {
    if opcode.op == Op::Barrier {
        return "kind = \"barrier\"".into();
    }
    let mut lines =
        vec![format!("op = \"{}\"", operation(opcode)), format!("dtype = \"{}\"", NamedValues::name(opcode.dtype))];
    if opcode.round != Round::NearestEven {
        lines.push(format!("round = \"{}\"", NamedValues::name(opcode.round)));
    }
    if opcode.flush_to_zero {
        lines.push("flush_to_zero = true".into());
    }
    lines.join("\n")
}
