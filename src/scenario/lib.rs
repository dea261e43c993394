//! Scenarios: from a checked configuration to a system, from a run to a result document.
//!
//! ```text
//!  text ── reader ──> config ──> build, run ──> result
//! ```
//!
//! What reads and checks a scenario is [`watershed_reader`], whose modules are found here, too.
//!
//! | file | holds |
//! |------|-------|
//! | [`programs`] | programs of cores, multicast trees, collectives that programs call |
//! | [`hosts`] | collectives in software, to compare with |
//! | [`workload`] | traces of applications that end points run |
//! | [`scan`] | order registers of prefix scans, and the golden result of every rank |
//! | [`golden`] | the golden result of a collective |
//! | [`migrate`](mod@migrate) | older scenarios in the language of jobs |
//! | [`run_inputs`] | a checked scenario as text again, for replay |
//! | [`embedding`] | the trees of collectives, read back from the registers |
//! | [`drawing`] | a topology as text and as a picture |
//! | [`soundness`] | the proof before cycle 0 that packets arrive and cannot deadlock |
//! | [`estimate`] | the size of a waveform before the run |
//! | [`signals`] | the names of a waveform's signals before the run |
//! | [`cost`] | gates, area, periods and energy of a scenario's hardware |
//! | `fastest_clock` | the fastest clock, which follows from the cost |
//! | [`measure`] | warm-up, window and drain; latencies, confidence, accepted traffic |
//! | [`run`](mod@run) | running: one runner for every family |
//! | [`families`] | which families there are; a folder for each: its tables, system, run and report |
//! | `switches` | what switches, links and channels are made of |
//! | [`ladder`] | who sent what to whom when, of the PIUMA family and plain traffic |
//! | [`record`](mod@record) | inputs and outputs of one block, for a bench |
//! | [`why`] | where the cycles of a collective's latency went |
//! | [`result`], [`summary`] | results of a run, as a document and as text |

use std::path::Path;
use std::sync::Arc;

use watershed_workload::Trace;

pub(crate) mod background;
pub mod build;
mod built_collective;
pub mod checkpoint;
pub mod cost;
mod counters;
mod document_upgrade;
pub mod drawing;
pub mod embedding;
pub mod estimate;
pub mod families;
mod fastest_clock;
pub mod golden;
pub mod hosts;
pub mod job_result;
pub mod ladder;
pub mod measure;
pub mod migrate;
pub mod programs;
pub mod record;
pub mod result;
pub mod run;
pub mod run_inputs;
pub mod scan;
pub mod signals;
pub mod soundness;
pub mod summary;
mod switches;
mod timeline;
pub mod trees;
pub mod why;
pub mod workload;

pub use families::{armed, pbv};
pub(crate) use families::{mixed, piuma};
pub use watershed_reader::{Problem, Problems, Scenario, ScenarioFile, Source};
pub use watershed_reader::{
    collective, config, data, expr, file, graph, inherit, jobs, kind, limits, link, names, number, problem, random,
    read, result_detail, schema, segments, shipped, snapshot, source, spec, topology, trace, units,
};
pub(crate) use watershed_reader::{fault, resolve, sources, values};

/// A scenario that has been read and checked, with its text for later problems.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The configuration.
    pub scenario: Scenario,
    /// The text.
    pub source: Arc<Source>,
    /// The folder that data files are relative to.
    pub base: std::path::PathBuf,
    /// Notes for the author about keys that have newer ones.
    pub notes: Vec<String>,
    /// The trace of an application, if it runs one.
    pub workload: Option<Arc<workload::config::TracedWorkload>>,
    /// Contents of data files, by index of the collective.
    files: Vec<Option<data::Rows>>,
}

impl Loaded {
    /// What the contributing participants of a collective contribute (see [`config::Collective::rows`]).
    pub fn data(&self, collective: usize) -> data::Rows {
        if let Some(Some(rows)) = self.files.get(collective) {
            return rows.clone();
        }
        // Everything but files is known to load since the scenario was resolved.
        data::load(&self.scenario.collectives[collective], collective, self.scenario.seed).unwrap_or_default()
    }

    /// The same, row by row.
    pub fn each_row(&self, collective: usize, mut take: impl FnMut(&[u64])) {
        if let Some(Some(rows)) = self.files.get(collective) {
            for row in rows {
                take(row);
            }
            return;
        }
        // Everything but files is known to load since the scenario was resolved.
        let _ = data::for_each_row(&self.scenario.collectives[collective], collective, self.scenario.seed, take);
    }

    /// The files that it was read from.
    pub fn inputs(&self) -> Vec<std::path::PathBuf> {
        self.source.files(&self.base)
    }

    /// Turns problems that a later check has found into an error that shows their places.
    pub fn problems(&self, list: Vec<Problem>) -> Problems {
        Problems::new(Arc::clone(&self.source), list)
    }
}

/// Reads and checks a scenario file, with `--set` arguments on top.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load_file(path: &Path, overrides: &[String]) -> Result<Loaded, Problems> {
    let read = || {
        let text = read_file(path)?;
        let base = path.parent().unwrap_or(Path::new(""));
        let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        load_text(&path.display().to_string(), &text, base, &stem, overrides)
    };
    // What a file is that is no scenario at all says more than what is wrong with it as a scenario.
    let other = || kind::Kind::of(path).is_not_a_scenario().then(|| Problems::of_file(path, "a scenario"));
    read().map_err(|problems| other().unwrap_or(problems))
}

/// As [`load_file`], or the shipped scenario of this name if there is no such file.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load_named(given: &Path, overrides: &[String]) -> Result<Loaded, Problems> {
    if given.as_os_str() == "-" {
        return load_text("standard input", &read_stdin()?, Path::new(""), "stdin", overrides);
    }
    if given.exists() {
        return load_file(given, overrides);
    }
    let (path, text) = find_shipped(given)?;
    load_text(path, text, &shipped::base(path), shipped::stem(path), overrides)
}

/// As [`load_named`], with a trace that is in memory instead of the one that `[workload]` names.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load_traced(given: &Path, overrides: &[String], trace: &Trace) -> Result<Loaded, Problems> {
    if given.exists() {
        let text = read_file(given)?;
        let base = given.parent().unwrap_or(Path::new(""));
        let stem = given.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        return load(&given.display().to_string(), &text, (base, &stem), overrides, Some(trace));
    }
    let (path, text) = find_shipped(given)?;
    load(path, text, (&shipped::base(path), shipped::stem(path)), overrides, Some(trace))
}

/// Path and text of the shipped scenario of this name.
fn find_shipped(given: &Path) -> Result<(&'static str, &'static str), Problems> {
    let name = given.to_string_lossy().replace('\\', "/");
    shipped::find(&name).ok_or_else(|| {
        let problem = Problem::general("there is no such scenario file")
            .nearest(shipped::stem(&name), shipped::SHIPPED.iter().map(|(path, _)| shipped::stem(path)))
            .help("`watershed list` shows the scenarios that come with the program");
        Problems::new(Source::empty(name).into(), vec![problem])
    })
}

/// The text of a scenario with what it inherits, not yet checked.
///
/// # Errors
/// It is not TOML, or what it extends cannot be read.
pub fn source_of(name: &str, text: &str, base: &Path) -> Result<Source, Problems> {
    let (mut source, syntax) = Source::parse(name, text);
    match syntax.map_or_else(|| inherit::inherit(&mut source, base), Err) {
        Ok(()) => Ok(source),
        Err(problem) => Err(Problems::new(Arc::new(source), vec![problem])),
    }
}

/// Reads a scenario from the standard input; the files that it names are relative to the working folder.
fn read_stdin() -> Result<String, Problems> {
    use std::io::Read;
    let fail = |message: String| {
        Problems::new(Arc::new(Source::empty("standard input".to_owned())), vec![Problem::general(message)])
    };
    let mut text = String::new();
    let mut limited = std::io::stdin().lock().take(limits::SCENARIO_BYTES + 1);
    limited.read_to_string(&mut text).map_err(|error| fail(format!("cannot read the scenario: {error}")))?;
    if text.len() as u64 > limits::SCENARIO_BYTES {
        return Err(fail(format!("a scenario has up to {} bytes", limits::SCENARIO_BYTES)));
    }
    Ok(text)
}

/// Reads the text of a scenario file.
///
/// # Errors
/// There is none, or it is too long or no text.
pub fn read_file(path: &Path) -> Result<String, Problems> {
    let name = path.display().to_string();
    let fail = |message: String| Problems::new(Arc::new(Source::empty(name.clone())), vec![Problem::general(message)]);
    let size = std::fs::metadata(path)
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => fail("there is no such scenario file".to_owned()),
            _ => fail(format!("cannot read the scenario: {error}")),
        })?
        .len();
    if size > limits::SCENARIO_BYTES {
        return Err(fail(format!("the file has {size} bytes; a scenario has up to {}", limits::SCENARIO_BYTES)));
    }
    let bytes = std::fs::read(path).map_err(|error| fail(format!("cannot read the scenario: {error}")))?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..valid].split(|byte| *byte == b'\n').count();
        fail(format!("the file is not UTF-8 text, from line {line} on"))
    })
}

/// Reads and checks a scenario from a string. `base` is the folder data files are relative to, `stem` the name it has
/// unless it names itself.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load_text(name: &str, text: &str, base: &Path, stem: &str, overrides: &[String]) -> Result<Loaded, Problems> {
    load(name, text, (base, stem), overrides, None)
}

/// What is wrong with the topology file of a scenario: with its text, or that it is something else, or not there.
fn no_topology(source: Arc<Source>, path: &Path, cause: Result<Problems, String>) -> Problems {
    const WHAT: &str =
        "`topology.file` is a topology file, TOML with a [[switch]] for each switch and a [[link]] for each link";
    let problem = match (kind::certain_other_kind(path, &[kind::Kind::Topology]), cause) {
        (Some(kind), _) => {
            Problem::at("topology.file", format!("{} is {}, not a topology file", path.display(), kind.words()))
        }
        (None, Ok(problems)) => return problems,
        (None, Err(message)) => Problem::at("topology.file", message),
    };
    Problems::new(source, vec![problem.help(WHAT)])
}

fn load(
    name: &str,
    text: &str,
    (base, stem): (&Path, &str),
    overrides: &[String],
    trace: Option<&Trace>,
) -> Result<Loaded, Problems> {
    let (mut source, syntax) = Source::parse(name, text);
    let mut problems: Vec<Problem> = syntax.into_iter().collect();
    if problems.is_empty() {
        problems.extend(inherit::inherit(&mut source, base).err());
    }
    if migrate::is_older(&source) {
        source.set_older();
    }
    problems.extend(jobs::apply(&mut source, overrides));
    source.set_absolute("workload", "trace");
    source.set_absolute("", "technology");
    if source.has("extends") && problems.is_empty() {
        problems.push(Problem::at_key("extends", "`extends` stands in a file: it cannot be set"));
    }
    let source = Arc::new(source);
    if problems.is_empty() {
        problems = schema::check(source.root());
    }
    if !problems.is_empty() {
        return Err(Problems::new(source, problems));
    }
    let mut file = match read::scenario(source.root()) {
        Ok(file) => file,
        Err(problem) => return Err(Problems::new(source, vec![problem])),
    };
    let traced = match resolve::workload::read(&mut file, base, trace) {
        Ok(traced) => traced.map(Arc::new),
        Err(problems) => return Err(Problems::new(source, problems)),
    };
    let (mut graph, mut notes) = (None, Vec::new());
    if file.topology.kind == file::TopologyKind::File
        && let Some(name) = &file.topology.file
    {
        let path = base.join(name);
        match graph::load(&path, link::wire_bits(&file.link)) {
            Ok((read, bytes)) => {
                notes = read.notes;
                graph = Some((Arc::new(read.graph), bytes));
            }
            Err(cause) => return Err(no_topology(source, &path, cause)),
        }
    }
    let topology = graph.as_ref().map(|(graph, _)| Arc::clone(graph));
    let resolved = fastest_clock::resolved(&file, base, &|hertz| {
        resolve::resolve(&file, &source, base, stem, (topology.clone(), traced.as_deref()), hertz)
    });
    let mut scenario = match resolved {
        Ok(scenario) => scenario,
        Err(problems) => return Err(Problems::new(source, problems)),
    };
    let mut files = Vec::with_capacity(scenario.collectives.len());
    let mut hashes = Vec::new();
    for (index, collective) in scenario.collectives.iter().enumerate() {
        if !matches!(collective.data, config::Data::File { .. }) {
            files.push(None);
            continue;
        }
        match data::load(collective, index, scenario.seed) {
            Ok(rows) => {
                let bytes: Vec<u8> = rows.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
                hashes.push((format!("collectives[{index}].data.hash"), format!("{:016x}", result::fnv1a(&bytes))));
                files.push(Some(rows));
            }
            Err(problem) => problems.push(problem),
        }
    }
    hashes.extend(graph.map(|(_, bytes)| ("topology.file.hash".to_owned(), format!("{:016x}", result::fnv1a(&bytes)))));
    // A file can change under its name: its contents are part of what a result came from.
    scenario.derived.extend(hashes.into_iter().map(|(key, hash)| (key, hash.into())));
    if problems.is_empty() {
        notes.extend(source.waiting.iter().cloned());
        notes.extend(link::notes(&source, &scenario.link));
        Ok(Loaded { scenario, source, base: base.to_owned(), notes, workload: traced, files })
    } else {
        Err(Problems::new(source, problems))
    }
}
