//! The text of a scenario, the tree of its values with their places, and the overrides of `--set`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::problem::{Problem, Span};
use super::syntax::syntax_problem;

/// One value and where it is written.
#[derive(Debug, Clone)]
pub struct Node {
    /// What is written there.
    pub value: Value,
    /// Where it is written.
    pub span: Span,
    /// The key in front of it; elements of arrays have none.
    pub key: Option<Span>,
}

/// A value as TOML has it. Numbers keep their text: a decimal number is rounded only once, when its data type is
/// known.
#[derive(Debug, Clone)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A number without a point.
    Integer(i128),
    /// A number with a point or an exponent, as it is written.
    Float(String),
    /// A text.
    String(String),
    /// A date or a time, as it is written.
    Datetime(String),
    /// Values in their order.
    Array(Vec<Node>),
    /// Values by key.
    Table(BTreeMap<String, Node>),
}

impl Value {
    /// What it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Bool(_) => "a boolean",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a number with a fraction",
            Self::String(_) => "a string",
            Self::Datetime(_) => "a date",
            Self::Array(_) => "an array",
            Self::Table(_) => "a table",
        }
    }

    /// The number in the text of a float.
    pub fn float(text: &str) -> f64 {
        match text.trim_start_matches('+') {
            "nan" | "-nan" => f64::NAN,
            text => text.parse().unwrap_or(f64::NAN),
        }
    }
}

/// A scenario's text and what is in it.
#[derive(Debug, Clone)]
pub struct Source {
    name: String,
    text: String,
    overrides: Vec<String>,
    /// Name and text of the files it extends, the nearest first.
    pub parents: Vec<(String, String)>,
    root: Node,
    /// What places of the tree are called in the text: of tables that jobs were translated into.
    pub places: Vec<(String, String)>,
    /// Jobs are written as tables of engines.
    older: bool,
    /// The tree before its jobs were translated into tables of engines.
    with_jobs: Option<Node>,
    /// What is left out because no job's engine has it, one note each.
    pub waiting: Vec<String>,
}

/// Origin of the first file that a scenario extends; those of overrides are far below.
pub(super) const PARENT: usize = usize::MAX / 2;

/// The value of a key of a table.
fn entry<'a>(node: &'a mut Node, key: &str) -> Option<&'a mut Node> {
    match &mut node.value {
        Value::Table(entries) => entries.get_mut(key),
        _ => None,
    }
}

impl Source {
    /// Parses a scenario.
    ///
    /// # Errors
    /// The first place that is not TOML. The source is returned as well, for the snippet.
    pub fn parse(name: impl Into<String>, text: impl Into<String>) -> (Self, Option<Problem>) {
        let (name, text) = (name.into(), text.into());
        let (table, errors) = DeTable::parse_recoverable(&text);
        // What follows the first error is mostly its echo.
        let problem = errors.first().map(|error| {
            let range = clamp(error.span().unwrap_or(0..0), &text);
            syntax_problem(&text, range, 0, error.message())
        });
        let span = table.span();
        let root = build(&DeValue::Table(table.into_inner()), span, None, 0, 0);
        let source = Self {
            name,
            text,
            overrides: Vec::new(),
            parents: Vec::new(),
            root,
            places: Vec::new(),
            older: false,
            with_jobs: None,
            waiting: Vec::new(),
        };
        (source, problem)
    }

    /// Adds the text of a file that the scenario extends; its tree, whose places are in that file.
    ///
    /// # Errors
    /// The first place that is not TOML.
    pub(super) fn add_parent(&mut self, name: String, text: String) -> Result<Node, Problem> {
        let origin = PARENT + self.parents.len();
        let (table, errors) = DeTable::parse_recoverable(&text);
        let problem = errors
            .first()
            .map(|error| syntax_problem(&text, clamp(error.span().unwrap_or(0..0), &text), origin, error.message()));
        let span = table.span();
        let node = build(&DeValue::Table(table.into_inner()), span, None, origin, 0);
        self.parents.push((name, text));
        problem.map_or(Ok(node), Err)
    }

    /// Whether jobs are written as tables of engines, in the older way.
    pub fn is_older(&self) -> bool {
        self.older
    }

    /// Notes that jobs are written as tables of engines, in the older way.
    pub fn set_older(&mut self) {
        self.older = true;
    }

    /// The number of the job that was translated into this table.
    pub fn job(&self, table: &str) -> Option<usize> {
        let (_, written) = self.places.iter().find(|(place, _)| place == table)?;
        written.strip_prefix("job[")?.strip_suffix(']')?.parse().ok()
    }

    /// Words about places of the tree, as places of the text.
    pub(super) fn rename_places(&self, words: &str) -> String {
        self.places.iter().fold(words.to_owned(), |words, (table, written)| words.replace(table.as_str(), written))
    }

    /// The tree, to be changed.
    pub(super) fn root_mut(&mut self) -> &mut Node {
        &mut self.root
    }

    /// Keeps the tree as it is, before its jobs are translated.
    pub(super) fn keep_jobs(&mut self) {
        self.with_jobs = Some(self.root.clone());
    }

    /// Says of the jobs, too, what an override has set in the table of an engine: by number, as a file does that extends another.
    /// What is no value of one job, a whole table for example, cannot be said so: then there is only the translation.
    pub(super) fn copy_override_to_jobs(&mut self, origin: usize, table: &str) {
        let Some(jobs) = self.with_jobs.take() else { return };
        let argument = &self.overrides[origin - 1];
        let steps = find_equals(argument).and_then(|equals| parse_path(&argument[..equals]).ok()).unwrap_or_default();
        let place = table.split('.').count();
        let of_one = steps.len() > place + 1 && steps[place].text.bytes().all(|byte| byte.is_ascii_digit());
        let translated = std::mem::replace(&mut self.root, jobs);
        let done = of_one && self.apply_override(origin).is_ok();
        let jobs = std::mem::replace(&mut self.root, translated);
        self.with_jobs = done.then_some(jobs);
    }

    /// The tree as people write it, with `[[job]]` if it has jobs; every override is in it.
    pub fn written(&self) -> &Node {
        self.with_jobs.as_ref().unwrap_or(&self.root)
    }

    /// Makes a path in this table absolute if an override set it: such a path is relative to the working folder, one of a file to the file.
    pub fn set_absolute(&mut self, table: &str, key: &str) {
        for root in std::iter::once(&mut self.root).chain(&mut self.with_jobs) {
            let node = if table.is_empty() { Some(root) } else { entry(root, table) };
            let Some(Node { value: Value::String(text), span, .. }) = node.and_then(|node| entry(node, key)) else {
                continue;
            };
            if (1..PARENT).contains(&span.origin)
                && text.as_str() != super::cost::technology::NANGATE45
                && let Ok(path) = std::path::absolute(Path::new(text.as_str()))
            {
                *text = path.to_string_lossy().into_owned();
            }
        }
    }

    /// Makes a table of a word that stands where one is expected: the word is the value of this key of it.
    pub(super) fn expand_word(&mut self, table: &str, key: &str) {
        for root in std::iter::once(&mut self.root).chain(&mut self.with_jobs) {
            let Some(node) = entry(root, table).filter(|node| matches!(node.value, Value::String(_))) else { continue };
            let word = node.clone();
            node.value = Value::Table(BTreeMap::from([(key.to_owned(), word)]));
        }
    }

    /// A source without text, for problems that come before there is any.
    pub fn empty(name: impl Into<String>) -> Self {
        Self::parse(name, "").0
    }

    /// The file's name, as the user gave it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Files that stand behind it: its own, those it extends, and those that a value names relative to `base`, as far as
    /// they are there.
    pub fn files(&self, base: &Path) -> Vec<PathBuf> {
        let own = std::iter::once(&self.name).chain(self.parents.iter().map(|(name, _)| name));
        let mut files: Vec<PathBuf> = own.map(PathBuf::from).collect();
        let mut left = vec![&self.root];
        while let Some(node) = left.pop() {
            match &node.value {
                Value::String(text) => files.push(base.join(text)),
                Value::Array(nodes) => left.extend(nodes),
                Value::Table(nodes) => left.extend(nodes.values()),
                _ => {}
            }
        }
        files.retain(|file| file.is_file());
        files
    }

    /// The `--set` arguments, in order.
    pub fn overrides(&self) -> &[String] {
        &self.overrides
    }

    /// The whole text as one table.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Puts the value of a `--set PATH=VALUE` argument into the tree, over the file's.
    ///
    /// # Errors
    /// The argument has no `=`, its value is not TOML, or its path leads through something that is not a table.
    /// Whether the key exists is not checked here but with all other keys.
    pub fn set(&mut self, argument: &str) -> Result<(), Problem> {
        self.overrides.push(argument.to_owned());
        self.apply_override(self.overrides.len())
    }

    /// Takes overrides to be put into the tree later; their numbers.
    pub fn number(&mut self, arguments: &[String]) -> Range<usize> {
        let first = self.overrides.len() + 1;
        self.overrides.extend_from_slice(arguments);
        first..first + arguments.len()
    }

    /// Puts an override into the tree.
    pub(super) fn apply_override(&mut self, origin: usize) -> Result<(), Problem> {
        let argument = &self.overrides[origin - 1].clone();
        let whole = Span::new(origin, 0..argument.len());
        let Some(equals) = find_equals(argument) else {
            return Err(Problem::in_text(whole, "`--set` needs a value")
                .expected("PATH=VALUE, for example switch.ceng.stages=4"));
        };
        let segments = parse_path(&argument[..equals])
            .map_err(|(range, what)| Problem::in_text(Span::new(origin, range), what))?;
        if segments.len() > DEPTH {
            return Err(Problem::in_text(
                Span::new(origin, 0..equals),
                format!("the path has {} steps", segments.len()),
            )
            .expected(format!("up to {DEPTH}")));
        }
        let mut value = override_value(argument, equals + 1, origin)?;
        let (last, walk) = segments.split_last().expect("a path has a segment");
        value.key = Some(Span::new(origin, last.range.clone()));

        let mut node = &mut self.root;
        let mut names = Vec::new();
        for segment in walk {
            remove_alternatives(node, &names, &segment.text);
            node = step(node, segment, origin)?;
            names.push(segment.text.as_str());
        }
        remove_alternatives(node, &names, &last.text);
        match &mut node.value {
            Value::Table(table) => {
                table.insert(last.text.clone(), value);
            }
            Value::Array(items) => {
                let index = array_index(items.len(), last, origin)?;
                items[index] = value;
            }
            other => return Err(not_a_table(other, last, origin)),
        }
        Ok(())
    }

    /// The place of the value at `path`, or of the nearest thing around it that is written down.
    pub fn locate(&self, path: &str) -> Option<Span> {
        self.find(path).map(|(node, _)| {
            // A table that is only implied by the headers of others has no place but its key.
            if node.span.start == node.span.end
                && let Some(key) = &node.key
            {
                return key.clone();
            }
            node.span.clone()
        })
    }

    /// The place of bytes `range` of a text that stands word for word in the value at `path`.
    pub fn span_within(&self, path: &str, text: &str, range: Range<usize>) -> Option<Span> {
        let span = self.locate(path)?;
        let start = span.start + self.text(span.origin).get(span.start..span.end)?.find(text)?;
        Some(Span::new(span.origin, start + range.start..start + range.end))
    }

    /// The place of the key at `path`, or of the nearest thing around it that is written down.
    pub fn locate_key(&self, path: &str) -> Option<Span> {
        let (node, complete) = self.find(path)?;
        match &node.key {
            Some(key) if complete => Some(key.clone()),
            _ => Some(node.span.clone()),
        }
    }

    /// Whether the value at `path` is written in the file or set by an override.
    pub fn has(&self, path: &str) -> bool {
        self.find(path).is_some_and(|(_, complete)| complete)
    }

    /// Whether the value at `path` is a list.
    pub fn is_list(&self, path: &str) -> bool {
        matches!(self.find(path), Some((Node { value: Value::Array(_), .. }, true)))
    }

    /// The deepest node on the way to `path`, and whether that is the whole way.
    fn find(&self, path: &str) -> Option<(&Node, bool)> {
        let segments = parse_path(path).unwrap_or_default();
        let mut node = &self.root;
        let mut depth = 0;
        for segment in &segments {
            let next = match &node.value {
                Value::Table(table) => table.get(&segment.text),
                Value::Array(items) => segment.text.parse().ok().and_then(|i: usize| items.get(i)),
                _ => None,
            };
            let Some(next) = next else { break };
            node = next;
            depth += 1;
        }
        (depth > 0).then_some((node, depth == segments.len()))
    }

    /// The text of the file or of an override.
    fn text(&self, origin: usize) -> &str {
        match origin {
            0 => &self.text,
            n if n >= PARENT => &self.parents[n - PARENT].1,
            n => &self.overrides[n - 1],
        }
    }

    /// Number of the line in which a place starts; an override has none.
    fn line_number(&self, span: &Span) -> Option<usize> {
        let text = self.text(span.origin);
        let start = clamp(span.start..span.end, text).start;
        (span.origin == 0 || span.origin >= PARENT).then(|| text[..start].matches('\n').count() + 1)
    }

    /// The columns that the line number of a place needs.
    pub fn gutter(&self, span: &Span) -> usize {
        self.line_number(span).map_or(1, |number| number.to_string().len())
    }

    /// Writes the line that holds `span` with carets under it.
    pub fn snippet(&self, span: &Span, gutter: usize, arrow: &str, label: &str, out: &mut String) {
        let text = self.text(span.origin);
        let range = clamp(span.start..span.end, text);
        let line_start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[range.start..].find('\n').map_or(text.len(), |at| range.start + at);
        let line = text[line_start..line_end].trim_end_matches('\r');
        let start = (range.start - line_start).min(line.len());
        let end = (range.end - line_start).min(line.len()).max(start);

        let column = line[..start].chars().count() + 1;
        let (before, marked, after) =
            window(&printable(&line[..start]), &printable(&line[start..end]), &printable(&line[end..]));
        let gap = " ".repeat(before.chars().count());
        let carets = "^".repeat(marked.chars().count().max(1));
        let label = if label.is_empty() { String::new() } else { format!(" {label}") };

        let number = self.line_number(span);
        let place = match number {
            Some(number) if span.origin >= PARENT => {
                format!("{}:{number}:{column}", self.parents[span.origin - PARENT].0)
            }
            Some(number) => format!("{}:{number}:{column}", self.name),
            None => "command line".to_owned(),
        };
        let number = number.map_or_else(String::new, |number| number.to_string());
        let _ = writeln!(out, "{:gutter$}{arrow} {place}", "");
        let _ = writeln!(out, "{:gutter$} |", "");
        let _ = writeln!(out, "{number:>gutter$} | {before}{marked}{after}");
        let _ = writeln!(out, "{:gutter$} | {gap}{carets}{label}", "");
    }
}

/// Steps of a path, at most: far more than the format has, far fewer than a stack has room for.
const DEPTH: usize = 64;

/// Keys of one table of which only one may be given.
const ALTERNATIVES: &[(&str, &[&str])] = &[
    ("link", &["latency_ns", "latency_cycles"]),
    ("link", &["local_latency_ns", "local_latency_cycles"]),
    ("link", &["socket_latency_ns", "socket_latency_cycles"]),
    ("link", &["node_latency_ns", "node_latency_cycles"]),
    ("link.subnode", &["latency_ns", "latency_cycles"]),
    ("link", &["width_bits", "cycles_per_flit"]),
    ("link", &["local_width_bits", "cycles_per_flit"]),
    ("link", &["socket_width_bits", "socket_cycles_per_flit"]),
    ("link", &["node_width_bits", "node_cycles_per_flit"]),
    ("memory", &["read_latency_ns", "read_latency_cycles"]),
    ("memory", &["write_latency_ns", "write_latency_cycles"]),
    ("collective", &["root", "registers", "embedding"]),
    ("collective.data", &["random", "values", "file"]),
];

/// Takes away what an override of `key` in the table at `walk` replaces: `--set link.latency_cycles=3` stands above
/// `latency_ns = 5` of the file.
pub(super) fn remove_alternatives(node: &mut Node, walk: &[&str], key: &str) {
    let Value::Table(table) = &mut node.value else { return };
    let place: Vec<&str> = walk.iter().copied().filter(|segment| segment.parse::<usize>().is_err()).collect();
    let place = place.join(".");
    for (at, keys) in ALTERNATIVES {
        if *at == place && keys.contains(&key) {
            table.retain(|other, _| other == key || !keys.contains(&other.as_str()));
        }
    }
}

/// Every group of keys that exclude each other, with the table they are in (indices left out).
pub fn alternatives() -> &'static [(&'static str, &'static [&'static str])] {
    ALTERNATIVES
}

/// A step of a path and where it is in the path's text.
#[derive(Debug, Clone)]
pub struct Segment {
    /// The key, or the number of an element.
    pub text: String,
    /// Bytes of the path that it is.
    pub range: Range<usize>,
}

/// Splits `collective[0].registers.core0."odd key"` into its steps. `.0.` is the same as `[0].`.
///
/// # Errors
/// Which bytes of the path are wrong, and what they should be.
pub fn parse_path(path: &str) -> Result<Vec<Segment>, (Range<usize>, String)> {
    let bytes = path.as_bytes();
    let mut segments = Vec::new();
    let mut at = 0;
    loop {
        while bytes.get(at) == Some(&b' ') {
            at += 1;
        }
        let start = at;
        if bytes.get(at) == Some(&b'"') {
            let Some(length) = path[at + 1..].find('"') else {
                return Err((at..path.len(), "the quoted key has no end".into()));
            };
            segments.push(Segment { text: path[at + 1..at + 1 + length].to_owned(), range: at..at + length + 2 });
            at += length + 2;
        } else {
            let length = path[at..].find(['.', '[', ' ']).unwrap_or(path.len() - at);
            if length == 0 {
                let end = (at + 1).min(path.len());
                return Err((start..end.max(start), "a key is missing here".into()));
            }
            segments.push(Segment { text: path[at..at + length].to_owned(), range: at..at + length });
            at += length;
        }
        while bytes.get(at) == Some(&b'[') {
            let Some(length) = path[at + 1..].find(']') else {
                return Err((at..path.len(), "the index has no `]`".into()));
            };
            let range = at + 1..at + 1 + length;
            let index = path[range.clone()].trim();
            if index.is_empty() || !index.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err((at..at + length + 2, "an index is a whole number".into()));
            }
            segments.push(Segment { text: index.to_owned(), range });
            at += length + 2;
        }
        while bytes.get(at) == Some(&b' ') {
            at += 1;
        }
        match bytes.get(at) {
            None => return Ok(segments),
            Some(b'.') => at += 1,
            Some(_) => return Err((at..at + 1, "a `.` is missing here".into())),
        }
    }
}

/// The path of a key in the table at `path`.
pub fn child(path: &str, key: &str) -> String {
    let odd = key.is_empty() || key.contains(['.', '[', ' ', '=']);
    match (path.is_empty(), odd) {
        (true, false) => key.to_owned(),
        (true, true) => format!("\"{key}\""),
        (false, false) => format!("{path}.{key}"),
        (false, true) => format!("{path}.\"{key}\""),
    }
}

/// The `=` that ends the path, which is not inside a quoted key.
fn find_equals(argument: &str) -> Option<usize> {
    let mut quoted = false;
    argument.bytes().position(|byte| {
        if byte == b'"' {
            quoted = !quoted;
        }
        byte == b'=' && !quoted
    })
}

/// Reads the value of an override: TOML, or a bare word taken as a string.
fn override_value(argument: &str, from: usize, origin: usize) -> Result<Node, Problem> {
    let text = &argument[from..];
    let lead = text.len() - text.trim_start().len();
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(Problem::in_text(Span::new(origin, from..argument.len()), "`--set` needs a value after the `=`")
            .expected("a TOML value; quotes around a plain word may be left out"));
    }
    let from = from + lead;
    match DeValue::parse(trimmed) {
        Ok(value) => {
            let span = value.span();
            let node = build(&value.into_inner(), span, None, origin, from);
            Ok(node)
        }
        Err(error) => {
            let structured = trimmed.starts_with(['"', '\'', '[', '{']);
            if structured {
                let range = clamp(error.span().unwrap_or(0..0), trimmed);
                let range = range.start + from..range.end + from;
                return Err(syntax_problem(argument, range, origin, error.message()));
            }
            Ok(Node {
                value: Value::String(trimmed.to_owned()),
                span: Span::new(origin, from..from + trimmed.len()),
                key: None,
            })
        }
    }
}

fn step<'a>(node: &'a mut Node, segment: &Segment, origin: usize) -> Result<&'a mut Node, Problem> {
    match &mut node.value {
        Value::Table(table) => Ok(table.entry(segment.text.clone()).or_insert_with(|| Node {
            value: Value::Table(BTreeMap::new()),
            span: Span::new(origin, segment.range.clone()),
            key: Some(Span::new(origin, segment.range.clone())),
        })),
        Value::Array(items) => {
            let index = array_index(items.len(), segment, origin)?;
            Ok(&mut items[index])
        }
        other => Err(not_a_table(other, segment, origin)),
    }
}

fn array_index(length: usize, segment: &Segment, origin: usize) -> Result<usize, Problem> {
    let problem = |message: String| {
        Problem::in_text(Span::new(origin, segment.range.clone()), message).expected(match length {
            0 => "nothing: the array is empty".to_owned(),
            1 => "the index 0".to_owned(),
            n => format!("an index from 0 to {}", n - 1),
        })
    };
    let index: usize = segment.text.parse().map_err(|_| {
        let text = &segment.text;
        problem(format!("`{text}` is not an index of this array"))
            .help(format!("`0.{text}` is that of its first element"))
    })?;
    if index < length { Ok(index) } else { Err(problem(format!("there is no element {index} in this array"))) }
}

fn not_a_table(value: &Value, segment: &Segment, origin: usize) -> Problem {
    Problem::in_text(
        Span::new(origin, segment.range.clone()),
        format!("`{}` cannot be set inside {}", segment.text, value.kind()),
    )
}

/// Turns the parser's tree into ours; `shift` is the place of its text in the whole.
fn build(value: &DeValue<'_>, span: Range<usize>, key: Option<Span>, origin: usize, shift: usize) -> Node {
    let place = |range: Range<usize>| Span::new(origin, range.start + shift..range.end + shift);
    let value = match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(date) => Value::Datetime(date.to_string()),
        DeValue::Float(float) => Value::Float(float.as_str().to_owned()),
        // Out of range stays out of range: no key takes numbers near the ends of this type.
        DeValue::Integer(integer) => {
            let text = integer.as_str();
            let saturated = if text.starts_with('-') { i128::MIN } else { i128::MAX };
            Value::Integer(i128::from_str_radix(text, integer.radix()).unwrap_or(saturated))
        }
        DeValue::Array(items) => {
            Value::Array(items.iter().map(|item| build(item.get_ref(), item.span(), None, origin, shift)).collect())
        }
        DeValue::Table(table) => Value::Table(
            table
                .iter()
                .map(|(key, item)| {
                    let node = build(item.get_ref(), item.span(), Some(place(key.span())), origin, shift);
                    (key.get_ref().to_string(), node)
                })
                .collect(),
        ),
    };
    Node { value, span: place(span), key }
}

/// Brings a range inside the text and onto character boundaries.
fn clamp(range: Range<usize>, text: &str) -> Range<usize> {
    let floor = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = floor(range.start);
    start..floor(range.end).max(start)
}

/// Text that a terminal shows in as many cells as it has characters.
fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| match c {
            '\t' => [Some(' '), Some(' ')],
            c if c.is_control() => [Some('\u{fffd}'), None],
            c => [Some(c), None],
        })
        .flatten()
        .collect()
}

/// How much of a long line is shown on either side of the value.
const CONTEXT: usize = 60;

/// Cuts a long line down to the part around the marked one.
fn window(before: &str, marked: &str, after: &str) -> (String, String, String) {
    let count = before.chars().count();
    let before = if count > CONTEXT {
        let tail: String = before.chars().skip(count - CONTEXT).collect();
        format!("…{tail}")
    } else {
        before.to_owned()
    };
    let cut = |text: &str| {
        if text.chars().count() > CONTEXT {
            let head: String = text.chars().take(CONTEXT).collect();
            format!("{head}…")
        } else {
            text.to_owned()
        }
    };
    (before, cut(marked), cut(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        let (source, problem) = Source::parse("x.toml", text);
        assert_eq!(problem, None);
        source
    }

    fn text_at(source: &Source, path: &str) -> String {
        let span = source.locate(path).unwrap();
        let text = match span.origin {
            0 => &source.text,
            n => &source.overrides[n - 1],
        };
        text[span.start..span.end].to_owned()
    }

    #[test]
    fn paths_lead_to_values() {
        let source = source(
            "a = 1\n[switch.ceng]\nstages = 3\n[[collective]]\nparticipants = [4, 5]\n[[collective]]\nname = \"two\"\n",
        );
        assert_eq!(text_at(&source, "a"), "1");
        assert_eq!(text_at(&source, "switch.ceng.stages"), "3");
        assert_eq!(text_at(&source, "collective[0].participants[1]"), "5");
        assert_eq!(text_at(&source, "collective.1.name"), "\"two\"");
        // What is not written down is shown by what is around it.
        assert_eq!(text_at(&source, "collective[1].root"), "[[collective]]");
        assert_eq!(text_at(&source, "switch.arbiter"), "switch");
        assert_eq!(source.locate("memory.bandwidth_gbps"), None);
        assert!(source.has("switch.ceng.stages") && !source.has("switch.ceng.radix"));
    }

    #[test]
    fn overrides_carry_their_own_place() {
        let mut source = source("[link]\nlatency_ns = 5\n[[collective]]\nelements = 1\n");
        source.set("collective.0.elements=64").unwrap();
        source.set("link.latency_cycles=3").unwrap();
        source.set("switch.arbiter=matrix").unwrap();
        assert_eq!(source.locate("collective[0].elements"), Some(Span::new(1, 22..24)));
        assert!(!source.has("link.latency_ns"), "an alternative of the file gives way");
        assert_eq!(text_at(&source, "switch.arbiter"), "matrix");
    }

    #[test]
    fn bad_overrides_are_explained() {
        let mut source = source("seed = 1\ncollective = []\n");
        for (argument, message) in [
            ("seed", "`--set` needs a value"),
            ("seed=", "`--set` needs a value after the `=`"),
            ("=1", "a key is missing here"),
            ("a..b=1", "a key is missing here"),
            ("collective.0.elements=1", "there is no element 0 in this array"),
            ("collective.x.elements=1", "`x` is not an index of this array"),
            ("collective[x]=1", "an index is a whole number"),
            ("collective[0=1", "the index has no `]`"),
            ("seed.x=1", "`x` cannot be set inside an integer"),
            ("seed=[1", "unclosed array"),
        ] {
            let problem = source.set(argument).unwrap_err();
            assert_eq!(problem.message(), message, "{argument}");
        }
    }

    #[test]
    fn snippets_survive_any_text() {
        let long = format!("x = [{}]\n", "1, ".repeat(500));
        for (text, span) in [("", 0..0), ("a", 0..9), ("ä\u{1}\tb", 1..2), (long.as_str(), 700..701)] {
            let (source, _) = Source::parse("x", text);
            let mut out = String::new();
            source.snippet(&Span::new(0, span), 3, "-->", "", &mut out);
            assert!(out.lines().all(|line| line.chars().count() < 200));
        }
    }
}
