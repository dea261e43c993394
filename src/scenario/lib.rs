//! Scenarios: from a checked configuration to a system, from a run to a result document.
//!
//! ```text
//!  text ── reader ──> config ──> build, run ──> result
//! ```
//!
//! What reads and checks a scenario is [`watershed_reader`]; how a run is asked for and what it answers is
//! [`watershed_scenario_interface`]. The modules of both are found here, too.
//!
//! | file | holds |
//! |------|-------|
//! | [`programs`] | programs of cores, multicast trees, collectives that programs call |
//! | [`hosts`] | collectives in software, to compare with |
//! | [`workload`] | traces of applications that end points run |
//! | [`scan`] | order registers of prefix scans, and the golden result of every rank |
//! | [`golden`] | the golden result of a collective |
//! | [`embedding`], [`trees`] | the trees of collectives, read back from registers and tables |
//! | [`soundness`] | the proof before cycle 0 that packets arrive and cannot deadlock |
//! | [`cost`] | gates, area, periods and energy of a scenario's hardware |
//! | `fastest_clock` | the fastest clock, which follows from the cost |
//! | [`run`](mod@run) | running: one runner for every family |
//! | [`families`] | which families there are; a folder for each: its tables, system, run and report |
//! | `switches` | what switches, links and channels are made of |
//! | [`ladder`] | who sent what to whom when, of the PIUMA family and plain traffic |
//! | [`why`] | where the cycles of a collective's latency went |
//! | `engines` | all engines, as studies and commands are handed them |
//! | `single_engine` | engines by themselves, without a network |

use std::path::Path;
use std::sync::Arc;

use watershed_workload::Trace;

pub(crate) mod background;
pub mod build;
mod built_collective;
pub mod cost;
mod counters;
pub mod embedding;
mod engines;
pub mod families;
mod fastest_clock;
pub mod golden;
pub mod hosts;
pub mod ladder;
pub mod programs;
pub mod run;
pub mod scan;
mod single_engine;
pub mod soundness;
mod switches;
mod timeline;
pub mod trees;
pub mod why;
pub mod workload;

pub use engines::{AllEngines, ENGINES};
pub use families::{armed, pbv};
pub(crate) use families::{mixed, piuma};
pub use watershed_reader::source_text::{read_file, source_of};
pub use watershed_reader::{Problem, Problems, Scenario, ScenarioFile, Source};
pub use watershed_reader::{
    collective, config, data, expr, file, graph, inherit, jobs, kind, limits, link, names, number, problem, random,
    read, result_detail, schema, segments, shipped, snapshot, source, spec, topology, trace, units,
};
pub(crate) use watershed_reader::{fault, resolve, sources, values};
pub use watershed_scenario_interface::{
    Engines, Loaded, Runnable, checkpoint, drawing, estimate, job_result, measure, migrate, record, result, run_inputs,
    signals, simulator, summary,
};

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

/// Reads and checks a scenario from a string. `base` is the folder data files are relative to, `stem` the name it has
/// unless it names itself.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load_text(name: &str, text: &str, base: &Path, stem: &str, overrides: &[String]) -> Result<Loaded, Problems> {
    load(name, text, (base, stem), overrides, None)
}

/// Reads and checks the scenario that a run was made from. `name` stands in messages.
///
/// # Errors
/// Everything that is wrong with it: files that are gone, for example, or an older program's keys.
pub fn load_inputs(
    inputs: &run_inputs::RunInputs,
    name: &str,
    stem: &str,
    overrides: &[String],
) -> Result<Loaded, Problems> {
    load_text(name, &inputs.text(), Path::new(&inputs.base), stem, overrides)
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
    if jobs::is_older(&source) {
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
