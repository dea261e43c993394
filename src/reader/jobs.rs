//! One table for all jobs (requirement X-JOB-1): `[[job]]` describes the job, `engine` names who computes it, and a
//! sub-table of the engine's name has the keys that only this engine has.
//!
//! ```toml
//! [[job]]
//! name = "sum"
//! engine = "piuma"          # or "armed", "pbv", "software"; default: the scenario's family
//! kind = "allreduce"        # the default
//! op = "sum"
//! dtype = "f64"
//! elements = 64
//! armed.reduction_ids = 4   # only if the armed engine does it
//! ```
//!
//! A job is translated into its engine's own table before anything else is checked; every value keeps its place in the
//! text:
//!
//! | engine | table | elements | repeat |
//! |---|---|---|---|
//! | `piuma` | `[[collective]]` | as they are | 1 |
//! | `software` | `[[host]]`, by default with Rabenseifner's algorithm *\[chosen\]* | as they are | 1 |
//! | `armed` | `[[armed.reduction]]` | four a round of 84 bytes; one for MINMAXLOC and the reproducible sum | multiplies the rounds |
//! | `pbv` | `[[pbv.collective]]` | the contents of a frame of 4080 bytes a round; longer vectors are divided evenly *\[chosen\]* | multiplies the rounds |
//!
//! A job without a name is `job0`, `job1`, … by its place in the scenario, with any engine.
//!
//! Random data are the same for every engine: the job of a number draws the same numbers with each of them.
//!
//! A vector that does not fill its last frame is filled up with further elements of the data *\[chosen\]*.
//!
//! Jobs of different engines run beside each other in one network, of the family `mixed` then; a job that names no engine is for that
//! of the scenario's `family`.
//!
//! Sub-tables of other engines than the job's are left out, so that changing one word changes the engine; only their keys are
//! looked at, so that one that no engine knows is found before it is wanted. Tables of the scenario that only other engines have
//! wait with a note: the file `inactive_settings.rs` has the list. The tables of the
//! engines themselves (`[[collective]]` and so on) are the older way to write a job: `watershed migrate` translates a file.

use std::collections::{BTreeMap, BTreeSet};

use super::armed::file::{DETERMINISTIC, MEAN, op_name};
use super::file::job::{Engine, operation};
use super::inherit::overlay;
use super::names::{self, DType, NamedValues, Op, Round};
use super::problem::Problem;
use super::source::{Node, Source, Value};
use super::{inactive_settings, schema};
use watershed_arith as arith;
use watershed_pbv_interface::packet::MAX_PAYLOAD_BYTES;

/// Keys of a job that every engine understands.
pub const COMMON: [&str; 11] = [
    "name",
    "kind",
    "op",
    "dtype",
    "round",
    "flush_to_zero",
    "elements",
    "repeat",
    "participants",
    "data",
    "start_cycle",
];

/// The family of a network with several engines.
const MIXED: &str = "mixed";

/// Whether a scenario writes jobs as tables of engines.
pub fn is_older(source: &Source) -> bool {
    // Values by number beside jobs change single ones of them.
    Engine::ALL.iter().any(|engine| source.is_list(engine.table()))
}

/// Puts the values of `--set` arguments into the tree of a scenario and translates its jobs: what is set in the table of an engine is
/// set there, behind what its jobs were translated into. The arguments keep their order in messages.
pub fn apply(source: &mut Source, arguments: &[String]) -> Vec<Problem> {
    let jobs = source.has("job") || arguments.iter().any(|argument| argument.trim_start().starts_with("job"));
    let all = source.number(arguments);
    let first = all.start;
    let (of_engines, own): (Vec<usize>, Vec<usize>) =
        all.partition(|&origin| jobs && table_of_engine(&arguments[origin - first]).is_some());
    let mut problems: Vec<Problem> = own.into_iter().filter_map(|origin| source.apply_override(origin).err()).collect();
    source.expand_word("clock", "frequency_mhz");
    if source.has("job") {
        // What is wrong with jobs as they are written; what is wrong elsewhere beside it, or else when they are translated.
        let of_job = |problem: &Problem| {
            problem.path().is_some_and(|path| is_common(path) || problem.concerns_key() && is_misspelt_engine_key(path))
        };
        let found = schema::check(source.root());
        if found.iter().any(of_job) {
            problems.extend(
                found.into_iter().filter(|problem| of_job(problem) || problem.path().is_some_and(is_in_no_job)),
            );
        }
    }
    if problems.is_empty() {
        let has_jobs = source.has("job");
        if has_jobs {
            source.keep_jobs();
        }
        problems.extend(translate(source).err().into_iter().flatten());
        if has_jobs && problems.is_empty() {
            let found = schema::check(source.root());
            problems.extend(inactive_settings::remove_inactive(source, found));
        }
    }
    for origin in of_engines {
        problems.extend(source.apply_override(origin).err());
        let table = table_of_engine(&arguments[origin - first]).expect("it was sorted by that");
        source.copy_override_to_jobs(origin, table);
    }
    problems
}

/// What to do about a setting of an engine by which no job of a scenario is done; `None` if it has no jobs that name engines.
pub(super) fn help_with_engine(source: &Source, key: &str) -> Option<String> {
    let engine = match key {
        "armed" | "pbv" => key,
        "switch.ceng" => "piuma",
        _ => return None,
    };
    let Value::Table(root) = &source.written().value else { return None };
    let help = format!("no job here is done by {engine}: `job.0.engine = \"{engine}\"` changes that of the first");
    root.contains_key("job").then_some(help)
}

/// Whether a path leads to what all engines understand of a job.
fn is_common(path: &str) -> bool {
    let Some(rest) = path.strip_prefix("job") else { return false };
    let Some((_, key)) = rest.split_once("].") else { return rest.is_empty() || rest.starts_with('[') };
    let first = key.split(['.', '[']).next().unwrap_or_default();
    rest.starts_with('[') && Engine::read(first).is_none()
}

/// Whether a path leads to a key in the sub-table of an engine, if not to one of all engines, which has words of its own: a key
/// that is misspelt there is wrong with every engine.
fn is_misspelt_engine_key(path: &str) -> bool {
    let key = path.strip_prefix("job[").and_then(|rest| rest.split_once("].")).map_or("", |(_, key)| key);
    key.split_once('.').is_some_and(|(table, key)| Engine::read(table).is_some() && !COMMON.contains(&key))
}

/// Whether a path leads to what is no job, of no engine, and does not follow from the jobs.
fn is_in_no_job(path: &str) -> bool {
    let first = path.split(['.', '[']).next().unwrap_or_default();
    !["", "job", "family"].contains(&first) && Engine::ALL.iter().all(|engine| !path.starts_with(engine.table()))
}

/// The table of an engine that a `--set` argument is about, if it is not about a job.
fn table_of_engine(argument: &str) -> Option<&'static str> {
    let path = argument.split('=').next().unwrap_or_default().replace(['[', ']'], ".");
    let path = path.trim();
    let is_below =
        |table: &&str| path.strip_prefix(*table).is_some_and(|rest| rest.starts_with('.') || rest.is_empty());
    Engine::ALL.iter().map(|engine| engine.table()).find(is_below)
}

/// Translates the jobs of a scenario into the tables of their engines.
///
/// # Errors
/// What is wrong with a job in itself; what is wrong with it for its engine is found where the engine's table is checked.
fn translate(source: &mut Source) -> Result<(), Vec<Problem>> {
    let Value::Table(root) = &mut source.root_mut().value else { return Ok(()) };
    let Some(jobs) = root.remove("job") else { return Ok(()) };
    let mut translator = Translator::default();
    let given = root.get("family").cloned();
    let word = given.as_ref().and_then(text);
    let family = word.and_then(|name| Engine::ALL.into_iter().find(|of| of.family() == name));
    let Value::Array(list) = &jobs.value else { return Ok(()) };
    if family.is_none() && given.is_some() && word != Some(MIXED) {
        // A word that is no family is said by the schema, with the nearest one.
        return Ok(());
    }
    translator.family_acts(list, family, given.as_ref());
    for (index, job) in list.iter().enumerate() {
        translator.job(index, job, family);
    }
    let mixed = word == Some(MIXED);
    let engine = translator.family(family, given).filter(|_| !mixed);
    for (engine, items) in std::mem::take(&mut translator.tables) {
        translator.insert(root, engine, items, &jobs);
    }
    if let Some((name, node)) = engine {
        root.insert("family".into(), Node { value: Value::String(name.into()), ..node });
    }
    let (problems, places) = (translator.problems, translator.places);
    source.places = places;
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn text(node: &Node) -> Option<&str> {
    if let Value::String(text) = &node.value { Some(text) } else { None }
}

fn number(node: &Node) -> Option<u64> {
    if let Value::Integer(number) = node.value { u64::try_from(number).ok() } else { None }
}

#[derive(Default)]
struct Translator {
    problems: Vec<Problem>,
    /// The first job of each name, and its engine.
    names: BTreeMap<String, (usize, Engine)>,
    /// By engine: number of the job, its table.
    tables: BTreeMap<&'static str, Vec<(usize, Node)>>,
    /// What a place of an engine's table is called in the scenario.
    places: Vec<(String, String)>,
}

/// A job under translation.
struct Entries<'a> {
    /// Where it is written.
    job: &'a Node,
    left: BTreeMap<String, Node>,
    out: BTreeMap<String, Node>,
}

impl Entries<'_> {
    /// A value that follows from another one, at the place of that.
    fn set_derived(&mut self, key: &str, value: Value, from: Option<&Node>) {
        let at = from.unwrap_or(self.job);
        self.out.insert(key.into(), Node { value, span: at.span.clone(), key: at.key.clone() });
    }
}

impl Translator {
    fn wrong(&mut self, node: &Node, message: impl Into<String>, expected: impl Into<String>) {
        self.problems.push(Problem::in_text(node.span.clone(), message).expected(expected));
    }

    /// A family that the user sets now is that of a job: where each names another engine, setting it would change nothing.
    fn family_acts(&mut self, jobs: &[Node], family: Option<Engine>, given: Option<&Node>) {
        let (Some(family), Some(node)) = (family, given) else { return };
        let names_another = |job: &Node| {
            let Value::Table(entries) = &job.value else { return false };
            entries.get("engine").and_then(text).and_then(Engine::read).is_some_and(|engine| engine != family)
        };
        if jobs.is_empty() || inactive_settings::is_from_files(node) || !jobs.iter().all(names_another) {
            return;
        }
        let name = family.family();
        let problem = Problem::in_text(
            node.span.clone(),
            format!("`family = \"{name}\"` does no job: each names another engine"),
        )
        .expected("the family of a job that names no engine")
        .help(format!("`job.0.engine = \"{}\"` changes the engine of the first", family.name()));
        self.problems.push(problem);
    }

    /// A name is one job's, whatever engine has it; of jobs of one engine its table says so.
    fn named(&mut self, index: usize, name: Option<&Node>, engine: Engine) {
        let Some((node, name)) = name.and_then(|node| Some((node, text(node)?))) else { return };
        match self.names.get(name) {
            Some(&(first, of)) if of != engine => {
                self.wrong(node, format!("the name \"{name}\" is taken"), format!("another one: job[{first}] has it"));
            }
            Some(_) => {}
            None => {
                self.names.insert(name.to_owned(), (index, engine));
            }
        }
    }

    fn job(&mut self, index: usize, job: &Node, family: Option<Engine>) {
        let Value::Table(entries) = &job.value else { return };
        let mut left = entries.clone();
        // What is no engine has been refused by the schema.
        let Some(engine) = left.remove("engine").as_ref().and_then(text).and_then(Engine::read).or(family) else {
            self.wrong(
                job,
                format!("nobody is named to do job[{index}]"),
                "`engine` of the job, or `family` of the scenario",
            );
            return;
        };
        self.named(index, left.get("name"), engine);
        let mut own_keys = Vec::new();
        // What only other engines have waits for them, unless somebody sets it now.
        for other in Engine::ALL {
            let Some(node) = left.remove(other.name()) else { continue };
            let Value::Table(own) = node.value.clone() else {
                self.wrong(
                    &node,
                    format!("`{}` of a job is {}", other.name(), node.value.kind()),
                    "a table of what only that engine has",
                );
                continue;
            };
            for (key, node) in own {
                if COMMON.contains(&key.as_str()) {
                    self.wrong(
                        &node,
                        format!("`{key}` is not of one engine only"),
                        format!("`{key}` in the job itself"),
                    );
                } else if other == engine {
                    own_keys.push(key.clone());
                    left.insert(key, node);
                } else if !inactive_settings::is_from_files(&node) {
                    let (own, does) = (other.name(), engine.name());
                    let problem = Problem::in_text(
                        node.span.clone(),
                        format!("`{own}.{key}` is for the engine \"{own}\", and job[{index}] is done by \"{does}\""),
                    )
                    .expected(format!("a job of the engine \"{own}\", or a file: there it waits for one"))
                    .help(format!("`job.{index}.engine = \"{own}\"` changes the engine"));
                    self.problems.push(problem);
                }
            }
        }
        let mut entries = Entries { job, left, out: BTreeMap::new() };
        if !entries.left.contains_key("name") {
            entries.set_derived("name", Value::String(format!("job{index}")), None);
        }
        match engine {
            Engine::Piuma => self.piuma(&mut entries),
            Engine::Armed => self.armed(&mut entries),
            Engine::Pbv => self.pbv(&mut entries),
            Engine::Software => self.software(&mut entries),
        }
        let Entries { mut out, left, .. } = entries;
        out.extend(left);
        let node = Node { value: Value::Table(out), span: job.span.clone(), key: job.key.clone() };
        let list = self.tables.entry(engine.name()).or_default();
        let at = list.len();
        list.push((index, node));
        let (table, job) = (format!("{}[{at}]", engine.table()), format!("job[{index}]"));
        // Keys of the engine's own before the job they are in, and a key before one that it begins with.
        own_keys.sort_by(|a, b| b.cmp(a));
        let own_places =
            own_keys.iter().map(|key| (format!("{table}.{key}"), format!("{job}.{}.{key}", engine.name())));
        self.places.extend(own_places);
        self.places.push((table, job));
    }

    fn once(&mut self, entries: &mut Entries<'_>, who: &str) {
        if let Some(node) = entries.left.remove("repeat")
            && number(&node) != Some(1)
        {
            let help =
                "engines that work in rounds repeat a job; here programs call a collective as often as they like";
            let problem =
                Problem::in_text(node.span, format!("{who} does a job once")).expected("no `repeat`").help(help);
            self.problems.push(problem);
        }
    }

    /// Refuses data that only other engines take, with why.
    fn only_data(&mut self, entries: &mut Entries<'_>, key: &str, why: &str, expected: &str) {
        let Some(Value::Table(data)) = entries.left.get_mut("data").map(|node| &mut node.value) else { return };
        if let Some(node) = data.remove(key).filter(|node| !matches!(node.value, Value::Bool(false))) {
            self.wrong(&node, why, expected);
        }
    }

    /// Refuses operations that end points compose of others, for an engine whose end points do not.
    fn refuse_composed(&mut self, entries: &mut Entries<'_>, why: &str) {
        let Some(node) = entries.left.get("op") else { return };
        let Some((op, engines)) = text(node).and_then(|op| {
            let engines = if op == "mean" { "\"armed\" or \"pbv\"" } else { "\"armed\"" };
            composed(op).map(|_| (op.to_owned(), engines))
        }) else {
            return;
        };
        let node = entries.left.remove("op").expect("it was there");
        self.problems.push(
            Problem::in_text(node.span, format!("there is no {op} here: {why}"))
                .expected(format!("\"sum\", or the engine {engines}, whose end points do that")),
        );
    }

    fn piuma(&mut self, entries: &mut Entries<'_>) {
        // The paper's end points compose nothing: the sum in memory is what a collective ends with, and a quotient is a program's.
        self.refuse_composed(
            entries,
            "what lands at a PIUMA end point is written to memory, and nothing computes with it",
        );
        self.once(entries, "a collective over registers");
        let no_rounds = "PIUMA's engines do a vector at once: there are no rounds that could have the same data";
        self.only_data(entries, "same_every_round", no_rounds, "no `same_every_round`");
        if !entries.left.contains_key("kind") {
            entries.set_derived("kind", Value::String("allreduce".into()), None);
        }
        use_engine_word(entries, "multicast", "broadcast");
    }

    fn software(&mut self, entries: &mut Entries<'_>) {
        self.refuse_composed(entries, "ranks exchange and merge, and compute nothing with the result");
        self.once(entries, "software");
        use_engine_word(entries, "multicast", "broadcast");
        let kind = entries.left.remove("kind");
        let name = kind.as_ref().and_then(text).unwrap_or("allreduce").to_owned();
        let algorithm = entries.left.get("algorithm").cloned();
        match (name.as_str(), algorithm.as_ref().map(|node| (node, text(node)))) {
            ("allreduce" | "broadcast", None) => {
                let usual = if name == "allreduce" { "rabenseifner" } else { "send-loop" };
                entries.set_derived("algorithm", Value::String(usual.into()), kind.as_ref());
            }
            ("broadcast", Some((node, given))) if given != Some("send-loop") => {
                self.wrong(node, "this algorithm reduces, it does not broadcast", "\"send-loop\"");
            }
            ("allreduce" | "broadcast", _) => {}
            _ => {
                let kind = kind.as_ref().expect("it has a name");
                self.wrong(kind, format!("software has no {name}"), "\"allreduce\" or \"broadcast\"");
            }
        }
        if let Some(data) = entries.left.remove("data") {
            match &data.value {
                Value::Table(table) if table.keys().all(|key| key == "random" || key == "values") => {
                    entries.out.extend(table.clone());
                }
                _ => self.wrong(&data, "software contributes random data or values", "`random` or `values`"),
            }
        }
        let has = |key: &str| entries.left.contains_key(key) || entries.out.contains_key(key);
        if entries.left.get("draws").and_then(text) == Some("own") {
            // As a `[[host]]` without the key.
            entries.left.remove("draws");
        } else if !["draws", "like", "values"].into_iter().any(has) {
            entries.set_derived("draws", Value::String("job".into()), None);
        }
    }

    /// The number of times a job is done.
    fn repeat(entries: &mut Entries<'_>) -> (u64, Option<Node>) {
        let node = entries.left.remove("repeat");
        (node.as_ref().and_then(number).unwrap_or(1), node)
    }

    fn armed(&mut self, entries: &mut Entries<'_>) {
        let (times, repeat) = Self::repeat(entries);
        self.only_data(entries, "file", "armed engines read no file of data", "`random` or `values`");
        let kind = entries.left.remove("kind");
        let barrier = match kind.as_ref().and_then(text) {
            Some("barrier") => true,
            None | Some("allreduce") => false,
            Some(other) => {
                let kind = kind.as_ref().expect("it has a name");
                self.wrong(kind, format!("armed engines have no {other}"), "\"allreduce\" or \"barrier\"");
                return;
            }
        };
        let taken = ["op", "dtype", "round", "flush_to_zero", "elements"].map(|key| entries.left.remove(key));
        let [op, dtype, round, flush, elements] = taken;
        if barrier {
            for node in [&op, &dtype, &round, &flush, &elements].into_iter().flatten() {
                self.wrong(node, "a barrier reduces nothing", "no operation, type or elements");
            }
            entries.set_derived("op", Value::String("barrier".into()), kind.as_ref());
            if times > 1 || repeat.is_some() {
                entries.set_derived("rounds", Value::Integer(times.into()), repeat.as_ref());
            }
            return;
        }
        let at = [&op, &dtype, &round, &flush].into_iter().flatten().next().cloned();
        let given = op.is_some() || dtype.is_some() || round.is_some() || flush.is_some();
        let word = |node: &Option<Node>, default: &str| node.as_ref().and_then(text).unwrap_or(default).to_owned();
        let (dtype_key, round_key) = (dtype, round);
        let (op, dtype, round) = (word(&op, "sum"), word(&dtype_key, "f64"), word(&round_key, "nearest-even"));
        let flushes = flush.as_ref().is_some_and(|node| matches!(node.value, Value::Bool(true)));
        let plain = dtype == "f64" && round == "nearest-even" && !flushes;
        if let Some(name) = composed(&op).filter(|_| plain) {
            entries.set_derived("op", Value::String(name.into()), at.as_ref());
            self.pad_last_frame(entries, elements.as_ref(), 4);
            self.rounds(entries, elements.as_ref(), 4, (times, repeat.as_ref()));
            return;
        }
        let Some(opcode) = opcode(&op, &dtype, &round, flushes) else {
            // Integers are rounded only where somebody says so.
            let flushed = if flushes { ", flushed to zero" } else { "" };
            let how = match &round_key {
                None if dtype.starts_with(['i', 'u']) => flushed.to_owned(),
                _ => format!(", rounded {round}{flushed}"),
            };
            // The key without which there would be one, or the operation.
            let usual = [
                (dtype_key, opcode(&op, "f64", &round, flushes)),
                (round_key, opcode(&op, &dtype, "nearest-even", flushes)),
                (flush, opcode(&op, &dtype, &round, false)),
            ];
            let wrong = usual.into_iter().find_map(|(key, usual)| key.filter(|_| usual.is_some()));
            let at = wrong.or(at).unwrap_or_else(|| entries.job.clone());
            let what = format!("armed engines have no {op} of {dtype}{how}");
            self.wrong(&at, what, opcodes(&op));
            return;
        };
        if given {
            entries.set_derived("op", Value::String(op_name(opcode.name)), at.as_ref());
        }
        self.pad_last_frame(entries, elements.as_ref(), lanes(opcode));
        self.rounds(entries, elements.as_ref(), lanes(opcode), (times, repeat.as_ref()));
    }

    /// Fills rows of values up to the end of the vector's last frame; zeros do, as no element meets another one *\[chosen\]*.
    fn pad_last_frame(&mut self, entries: &mut Entries<'_>, elements: Option<&Node>, frame: u64) {
        let Some(elements) = elements.and_then(number).filter(|&elements| elements > 0) else { return };
        let Some(Value::Table(data)) = entries.left.get_mut("data").map(|node| &mut node.value) else { return };
        let Some(Value::Array(rows)) = data.get_mut("values").map(|node| &mut node.value) else { return };
        for node in rows {
            let span = node.span.clone();
            let Value::Array(row) = &mut node.value else { continue };
            let given = row.len() as u64;
            if given == elements {
                let zero = Node { value: Value::Integer(0), span: span.clone(), key: None };
                row.resize(elements.next_multiple_of(frame) as usize, zero);
            } else if given != frame {
                // What each round contributes again is a frame.
                let problem = Problem::in_text(span, format!("{given} values for {elements} elements"));
                let each =
                    if elements > frame { format!(", or {frame}, the same in every round") } else { String::new() };
                self.problems.push(problem.expected(format!("as many values as `elements` says{each}")));
            }
        }
    }

    /// The rounds of a job whose rounds have this many elements.
    fn rounds(
        &mut self,
        entries: &mut Entries<'_>,
        elements: Option<&Node>,
        lanes: u64,
        (times, repeat): (u64, Option<&Node>),
    ) {
        let count = elements.map(|node| (node, number(node).unwrap_or(0)));
        if let Some((node, 0)) = count {
            self.wrong(node, "a vector has elements", "an integer from 1 on");
        }
        if count.is_some() || times > 1 {
            let rounds = count.map_or(lanes, |(_, count)| count).div_ceil(lanes) * times;
            entries.set_derived("rounds", Value::Integer(rounds.into()), elements.or(repeat));
        }
    }

    fn pbv(&mut self, entries: &mut Entries<'_>) {
        use_engine_word(entries, "broadcast", "multicast");
        self.only_data(entries, "file", "packet engines read no file of data", "`random` or `values`");
        let (times, repeat) = Self::repeat(entries);
        let bytes = entries.left.get("dtype").and_then(text).unwrap_or("f64");
        let bytes = DType::ALL
            .iter()
            .find(|dtype| NamedValues::name(**dtype) == bytes)
            .map_or(8, |dtype| u64::from(dtype.bits() / 8).max(1));
        let most = MAX_PAYLOAD_BYTES as u64 / bytes;
        let mut frames = 1;
        if let Some(node) = entries.left.get("elements")
            && let Some(elements) = number(node).filter(|&elements| elements > most)
        {
            frames = elements.div_ceil(most);
            let each = elements.div_ceil(frames);
            let node = node.clone();
            self.pad_last_frame(entries, Some(&node), each);
            entries.left.remove("elements");
            entries.set_derived("elements", Value::Integer(each.into()), Some(&node));
        }
        if times * frames > 1 || repeat.is_some() {
            let at = repeat.or_else(|| entries.out.get("elements").cloned());
            entries.set_derived("rounds", Value::Integer((times * frames).into()), at.as_ref());
        }
    }

    /// The scenario's family, if its jobs say it: that of their engine, or [`MIXED`] for several engines and for software beside
    /// others than PIUMA's, whose network has software anyway.
    fn family(&self, family: Option<Engine>, given: Option<Node>) -> Option<(&'static str, Node)> {
        let first = |(name, items): (&&'static str, &Vec<(usize, Node)>)| (*name, items[0].clone());
        let mut engines: Vec<(&'static str, (usize, Node))> = self.tables.iter().map(first).collect();
        engines.sort_by_key(|(_, (index, _))| *index);
        let own = family.map(Engine::name).into_iter();
        let mut all: BTreeSet<&'static str> = own.chain(engines.iter().map(|(name, _)| *name)).collect();
        if all.contains("piuma") {
            all.remove("software");
        }
        let name = match (all.len(), all.first()) {
            (0, _) => return None,
            (1, Some(&"software")) => Engine::Software.family(),
            (1, Some(name)) => name,
            _ => MIXED,
        };
        let place = given.or_else(|| engines.into_iter().next().map(|(_, (_, node))| node))?;
        Some((name, place))
    }

    fn insert(
        &mut self,
        root: &mut BTreeMap<String, Node>,
        engine: &'static str,
        items: Vec<(usize, Node)>,
        jobs: &Node,
    ) {
        let engine = Engine::read(engine).expect("it has this name");
        let mut place = root;
        let path: Vec<&str> = engine.table().split('.').collect();
        let (last, tables) = path.split_last().expect("a table has a name");
        for name in tables {
            let empty =
                || Node { value: Value::Table(BTreeMap::new()), span: jobs.span.clone(), key: jobs.key.clone() };
            let node = place.entry((*name).to_owned()).or_insert_with(empty);
            let Value::Table(table) = &mut node.value else { return };
            place = table;
        }
        let list: Vec<Node> = items.into_iter().map(|(_, node)| node).collect();
        let span = |value| Node { value, span: jobs.span.clone(), key: jobs.key.clone() };
        if let Some(old) = place.get(*last)
            && let Value::Table(numbers) = &old.value
            && numbers.keys().all(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        {
            // An older scenario changes elements of one that it extends, by the names they have there.
            match overlay(span(Value::Array(list)), old.clone(), &mut path.iter().map(|of| (*of).to_owned()).collect())
            {
                Ok(joined) => {
                    place.insert((*last).to_owned(), joined);
                }
                Err(problem) => self.problems.push(problem),
            }
            return;
        }
        if let Some(old) = place.get(*last) {
            let what = format!("`{}` is another way to write a job: a scenario has one", engine.table());
            self.problems.push(
                Problem::in_text(old.span.clone(), what)
                    .expected("[[job]] only")
                    .help("`watershed migrate` translates it"),
            );
            return;
        }
        place.insert((*last).to_owned(), span(Value::Array(list)));
    }
}

/// Gives a kind the engine's own word for it.
fn use_engine_word(entries: &mut Entries<'_>, word: &str, own: &str) {
    if let Some(node) = entries.left.get_mut("kind")
        && text(node) == Some(word)
    {
        node.value = Value::String(own.into());
    }
}

/// The types of an operation that armed engines have, or all operations.
pub fn opcodes(op: &str) -> String {
    let of_op = arith::quad::OPCODES.iter().filter(|opcode| opcode.op != Op::Barrier && operation(opcode) == op);
    let mut list: Vec<String> = of_op.map(|opcode| format!("\"{}\"", NamedValues::name(opcode.dtype))).collect();
    let what = if list.is_empty() { "`op` is" } else { "`dtype` is" };
    if list.is_empty() {
        let all = arith::quad::OPCODES.iter().filter(|opcode| opcode.op != Op::Barrier).map(operation);
        list = all.chain(["mean".into(), "sum-deterministic".into()]).map(|op| format!("\"{op}\"")).collect();
    }
    let mut seen = BTreeSet::new();
    list.retain(|name| seen.insert(name.clone()));
    format!("{what} {}, sums of \"f64\" in any rounding, all others to nearest", names::one_of(list))
}

/// What end points of the armed family compose of opcodes: its name there.
pub fn composed(op: &str) -> Option<&'static str> {
    match op {
        "mean" => Some(MEAN),
        "sum-deterministic" => Some(DETERMINISTIC),
        _ => None,
    }
}

/// Elements that a round of an opcode reduces.
pub fn lanes(opcode: &arith::quad::Opcode) -> u64 {
    if matches!(opcode.op, Op::MinMaxLoc | Op::MinMaxNumLoc | Op::RepSum) { 1 } else { 4 }
}

/// The opcode of an operation on a type.
pub fn opcode(op: &str, dtype: &str, round: &str, flush: bool) -> Option<&'static arith::quad::Opcode> {
    arith::quad::OPCODES.iter().find(|opcode| {
        let sums = opcode.op == Op::Sum && opcode.dtype == DType::F64;
        let rounded = if sums {
            NamedValues::name(opcode.round) == round
        } else {
            round == NamedValues::name(Round::NearestEven)
        };
        operation(opcode) == op && NamedValues::name(opcode.dtype) == dtype && rounded && opcode.flush_to_zero == flush
    })
}
