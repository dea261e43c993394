//! `watershed run`: runs a scenario, prints the outcome, writes what was asked for.

use std::fmt::Write;
use std::fs;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use clap::Args;

use super::messages::{self, ResourceUsage, note, step};
use super::output::OutputLocks;
use super::progress::{self, RunProgress};
use super::ranks::MpiRanks;
use super::{Exit, engines, output, print, print_error, print_painted, wave_command};
use watershed_files::{self as files, AtomicFile};
use watershed_probe::ladder::{COLUMNS, Ladder};
use watershed_scenario_interface::checkpoint::{Checkpoint, Checkpoints};
use watershed_scenario_interface::expr::Expr;
use watershed_scenario_interface::perfetto;
use watershed_scenario_interface::result::Document;
use watershed_scenario_interface::result_detail::ResultDetail;
use watershed_scenario_interface::run::{Control, RunError, RunOptions, TriggerOptions, WaveOptions};
use watershed_scenario_interface::summary::{self, WrittenFile};
use watershed_scenario_interface::{Loaded, Problem, Problems, Runnable, data, estimate, load_named, run};

/// Run a scenario and check its results.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  watershed run testbench/piuma/allreduce-die.toml
  watershed run allreduce-die --wave die.fst --last 500 --only-failed
  watershed run allreduce-die --record die.tile2.sw4.switch.ceng --out out
  watershed run barrier-die --ladder barrier.svg
  watershed run allreduce-die --results hash --json
  watershed run goal-mesh --perfetto ranks.json
  watershed run goal-mesh --workload traces/astra-sim/all_gather/4npus_1MB/all_gather
  watershed run allreduce-die --wave die.vcd --signals '**.ceng.**' --wave-window 0..200
  watershed run mesh-uniform --checkpoint-every 1000 --out out
  watershed run mesh-uniform --resume out/mesh-uniform.checkpoint --out out
  watershed run allreduce-die --set 'job.0.elements=64' --set link.latency_ns=25 --json

Exit status:
  0  the run finished and every check passed
  1  a check failed, or the run did not finish (limit, deadlock, Ctrl-C, SIGTERM, SIGHUP)
  2  the command line or the scenario is wrong, or a file cannot be written to begin with, perhaps because another
     process writes it; nothing was run
  3  the run finished and every check passed, but a file or the standard output could not be written")]
pub(super) struct Arguments {
    #[command(flatten)]
    scenario: ScenarioArguments,
    /// Write the result document to DIR/NAME.json and what the run took to DIR/NAME.run.json; every other file that is named without a folder goes there too
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write a waveform to this file: FST if its name ends in .fst, else VCD
    #[arg(long, value_name = "FILE")]
    wave: Option<PathBuf>,
    /// Trace only signals whose hierarchical name matches; can be given several times. `**`, the default, is all but the stage registers of adder trees, which a glob with a name in it selects: `**.ceng.tree.**`, `**.engine.unit.**`, `**.ce.tree.**`
    #[arg(long, value_name = "GLOB", requires = "wave")]
    signals: Vec<String>,
    /// Trace at most this many levels of the hierarchy
    #[arg(long, value_name = "LEVELS", requires = "wave", value_parser = clap::value_parser!(u32).range(1..))]
    wave_depth: Option<u32>,
    /// Trace only cycles A to B, both included; either may be left out
    #[arg(long, value_name = "A..B", requires = "wave", value_parser = window)]
    wave_window: Option<Window>,
    /// Write the waveform only around the first cycle in which this holds, for example "die.tile2.sw4.switch.ceng.operands == 2" or, by the names of states, "die.tile2.sw4.switch.ceng.state == REDUCE"
    #[arg(long, value_name = "EXPR", requires = "wave", value_parser = condition)]
    trigger: Option<Expr>,
    /// Cycles before the trigger that are written; they are kept in memory until it fires, and written at the end if it does not
    #[arg(long, value_name = "CYCLES", requires = "trigger", default_value_t = 100)]
    before: u64,
    /// Cycles after the trigger that are written [default: to the end]
    #[arg(long, value_name = "CYCLES", requires = "trigger")]
    after: Option<u64>,
    /// Write only this many cycles at the end of the run; they are kept in memory until it ends or a check ends it
    #[arg(long, value_name = "CYCLES", requires = "wave", conflicts_with = "trigger")]
    last: Option<u64>,
    /// Write the waveform only if a check fails or the trigger fires
    #[arg(long, requires = "wave")]
    only_failed: bool,
    /// Print how big the waveform will be, estimated from this many cycles, and write nothing
    #[arg(long, value_name = "CYCLES", requires = "wave", num_args = 0..=1, default_missing_value = "4000",
          value_parser = clap::value_parser!(u64).range(10..))]
    estimate_wave: Option<u64>,
    #[command(flatten)]
    ladder: LadderArguments,
    /// Write the inputs and outputs of a block, named as in waves, cycle by cycle: $readmemh files and CSV, in the folder of --out
    #[arg(long, value_name = "BLOCK")]
    record: Option<String>,
    /// Write what the ranks of a workload did when as a Chrome trace, which Perfetto (ui.perfetto.dev) shows
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    /// Write the latencies of all traffic as CSV: one line a bucket that is not empty
    #[arg(long, value_name = "FILE")]
    histogram: Option<PathBuf>,
    #[command(flatten)]
    document: DocumentArguments,
    /// Save the result vectors as a NumPy array, one row a receiving participant
    #[arg(long, value_name = "FILE")]
    save_npy: Option<PathBuf>,
    /// Evaluate the blocks of a cycle in an order shuffled by this seed, which must not change anything
    #[arg(long, value_name = "N")]
    order_seed: Option<u64>,
    /// Evaluate every block in every cycle, which must not change anything either
    #[arg(long)]
    no_skip: bool,
    /// Evaluate a large system of any family with N threads; results do not change. A waveform needs one thread. Of a build with --features mpi, `mpirun -n M watershed run ...` evaluates it with M processes of N threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=64))]
    threads: usize,
    #[command(flatten)]
    checkpoints: CheckpointArguments,
    /// Leave out link monitors and the golden evaluation
    #[arg(long)]
    no_checks: bool,
    /// Flip the bits of MASK in word WORD of collective ID as it leaves SWITCH's engine, to see that the checks see it
    #[arg(long, value_name = "SWITCH:ID:WORD:MASK", value_parser = fault)]
    flip: Option<Fault>,
    #[command(flatten)]
    _status: messages::StatusOptions,
}

/// What becomes of the result document, and how much is in it.
#[derive(Debug, Args)]
struct DocumentArguments {
    /// Print the complete result document as JSON instead of the summary
    #[arg(long)]
    json: bool,
    /// Report every link in the result document, not only the busiest
    #[arg(long)]
    all_links: bool,
    /// Hold of vectors of results all elements ("all"), their beginnings ("first N") or none ("hash") in the document; of what it does not hold whole it has the SHA-256. Sets the scenario's `results`
    #[arg(long, value_name = "WHAT")]
    results: Option<ResultDetail>,
}

/// Where a run that may be killed is kept, and where one goes on.
#[derive(Debug, Args)]
struct CheckpointArguments {
    /// Write a checkpoint about every N cycles, and when the run is stopped: --resume goes on from it, with the same results as a run that was never stopped
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    checkpoint_every: Option<u64>,
    /// The file of the checkpoints, each of which replaces the one before [default: NAME.checkpoint, in the folder of --out]
    #[arg(long, value_name = "FILE", requires = "checkpoint_every")]
    checkpoint: Option<PathBuf>,
    /// Go on from a checkpoint of this scenario; options that decide what a run keeps, such as --wave and --threads, are those of the run that wrote it. A waveform begins in the cycle of the checkpoint
    #[arg(long, value_name = "FILE", conflicts_with = "estimate_wave")]
    resume: Option<PathBuf>,
}

impl CheckpointArguments {
    /// What a run of this scenario writes.
    fn written(&self, stem: &str, out: Option<&Path>) -> Option<Checkpoints> {
        let every = self.checkpoint_every?;
        let file = self.checkpoint.clone().unwrap_or_else(|| PathBuf::from(format!("{stem}.checkpoint")));
        Some(Checkpoints { path: output::place(out, &file), every })
    }
}

/// A message ladder, and how much of the run it shows.
#[derive(Debug, Args)]
struct LadderArguments {
    /// Write a message ladder: who sent what to whom when, as text or, for a name in .svg, as a picture
    #[arg(id = "ladder", long = "ladder", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Put only what happened in cycles A to B into the ladder, both included; either may be left out
    #[arg(id = "ladder_window", long = "ladder-window", value_name = "A..B", requires = "ladder", value_parser = window)]
    window: Option<Window>,
    /// Number of columns of the ladder at most: beyond that, neighbouring end points share a column
    #[arg(id = "ladder_columns", long = "ladder-columns", value_name = "N", requires = "ladder", default_value_t = COLUMNS as u32,
          value_parser = clap::value_parser!(u32).range(2..))]
    columns: u32,
}

impl LadderArguments {
    /// The ladder as the file of this name has it.
    fn drawn(&self, path: &Path, ladder: &Ladder) -> String {
        let svg = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"));
        let Window { from, to } = self.window.unwrap_or_default();
        let ladder = ladder.clone().between(from, to).folded(self.columns as usize);
        if svg { ladder.svg() } else { ladder.text() }
    }
}

impl Arguments {
    /// Where a file goes: one whose name has no folder stands in that of `--out`.
    fn place(&self, file: &Path) -> PathBuf {
        output::place(self.out.as_deref(), file)
    }
}

/// A deliberate fault, as the command line names it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fault {
    switch: String,
    id: u16,
    word: u64,
    mask: u64,
}

impl Fault {
    fn flip(&self) -> run::Flip<'_> {
        run::Flip { switch: &self.switch, id: self.id, word: self.word, mask: self.mask }
    }
}

/// Reads `SWITCH:ID:WORD:MASK`; the mask may be hexadecimal with `0x`.
fn fault(text: &str) -> Result<Fault, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let [switch, id, word, mask] = parts[..] else {
        return Err("a fault is SWITCH:ID:WORD:MASK, for example core0:0:17:0x1".to_owned());
    };
    let number = |text: &str, what: &str| {
        let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
        u64::from_str_radix(digits, radix).map_err(|_| format!("{what} \"{text}\" is not a number"))
    };
    let id = u16::try_from(number(id, "collective id")?).map_err(|_| format!("there is no collective id {id}"))?;
    let mask = number(mask, "mask")?;
    if mask == 0 {
        return Err("a mask of 0 flips nothing: give the bits that are to be flipped".to_owned());
    }
    Ok(Fault { switch: switch.to_owned(), id, word: number(word, "word")?, mask })
}

/// What is meant as a glob in a condition on signals that cannot be read.
fn glob_in(condition: &str) -> Option<&str> {
    let is_end = |letter: char| letter.is_whitespace() || "=<>&|()\"'".contains(letter);
    condition.split(is_end).find(|piece| {
        let named = piece.contains('.') && piece.contains(|letter: char| letter.is_ascii_alphabetic());
        let has = |part: &str| piece.contains(part);
        // A sign of multiplication stands between two names, not between a name and a dot.
        named && (has("**") || has(".*") || has("*.") || piece.contains(['?', '{', '[']))
    })
}

/// Reads a trigger.
pub(super) fn condition(text: &str) -> Result<Expr, String> {
    let expr = Expr::parse_argument(text).map_err(|wrong| {
        glob_in(text).map_or(wrong, |glob| {
            format!(
                "`{glob}` is a glob; a condition takes one signal by its whole name: `watershed wave list FILE|SCENARIO '{glob}'` prints those that match"
            )
        })
    })?;
    if expr.names().is_empty() { Err("a trigger names at least one signal".into()) } else { Ok(expr) }
}

/// Which scenario, and what is changed in it.
#[derive(Debug, Args)]
pub(super) struct ScenarioArguments {
    /// Scenario file, or the name of a shipped scenario, or - for the standard input
    #[arg(value_name = "SCENARIO", add = clap_complete::ArgValueCompleter::new(super::completions::scenarios))]
    scenario: PathBuf,
    /// Use this seed instead of the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Let the end points run this trace of an application: `workload.trace`, relative to the working folder
    #[arg(long, value_name = "TRACE")]
    workload: Option<PathBuf>,
    /// Set any value of the scenario, for example switch.ceng.stages=4; can be given several times
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
}

/// Says what the caller of a run should know.
fn print_notes(loaded: &Loaded, notes: &[String]) {
    note_older(loaded);
    for text in notes {
        note(text);
    }
}

/// Says that a scenario is written in an older way.
pub(super) fn note_older(loaded: &Loaded) {
    if loaded.source.is_older() {
        let name = loaded.source.name();
        note(&format_args!("{name} names tables of engines: `watershed migrate` writes them as [[job]]"));
    }
    for text in &loaded.notes {
        note(text);
    }
}

impl ScenarioArguments {
    /// Reads and checks the scenario.
    pub fn load(&self) -> Result<Runnable, Problems> {
        self.load_with(&[])
    }

    /// The same arguments for another scenario.
    pub fn with(&self, scenario: PathBuf) -> Self {
        Self { scenario, seed: self.seed, workload: self.workload.clone(), set: self.set.clone() }
    }

    /// Reads and checks the scenario with more values set.
    pub fn load_with(&self, sets: &[String]) -> Result<Runnable, Problems> {
        let trace = self.workload.iter();
        let mut overrides: Vec<String> =
            trace.map(|path| format!("workload.trace={:?}", path.display().to_string())).collect();
        overrides.extend(self.set.iter().cloned());
        overrides.extend(sets.iter().cloned());
        overrides.extend(self.seed.map(|seed| format!("seed={seed}")));
        let loaded = load_named(engines(), &self.scenario, &overrides)?;
        step(&format_args!("read {}", loaded.source.name()));
        Ok(loaded)
    }

    /// The file, or the name of a shipped scenario, as it was given.
    pub fn file(&self) -> &Path {
        &self.scenario
    }

    /// The name of the scenario without folder and extension.
    fn stem(&self) -> String {
        if self.scenario.as_os_str() == "-" {
            return "stdin".to_owned();
        }
        self.scenario.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// First and last cycle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Window {
    pub from: Option<u64>,
    pub to: Option<u64>,
}

/// Reads `A..B`, `A..` or `..B`.
pub(super) fn window(text: &str) -> Result<Window, String> {
    let (from, to) = text.split_once("..").ok_or("a window is A..B: two cycles with two dots between them")?;
    let cycle = |text: &str| -> Result<Option<u64>, String> {
        let text = text.trim_start_matches('=').replace('_', "");
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|_| format!("\"{text}\" is not a cycle, which is a number without a unit"))
    };
    let window = Window { from: cycle(from)?, to: cycle(to)? };
    if window.to.is_some_and(|to| to < window.from.unwrap_or(0)) {
        return Err("the window ends before it starts".to_owned());
    }
    Ok(window)
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    let crew = match MpiRanks::join() {
        Ok(crew) => crew,
        Err(error) => {
            print_error(&error);
            return Exit::Bad;
        }
    };
    if crew.as_ref().is_some_and(MpiRanks::is_follower) {
        progress::stop_status();
    }
    match (execute(arguments, crew.as_ref()), &crew) {
        (Ok(exit), _) => exit,
        // The first rank says it, if it has the same error or was told of this one.
        (Err(_), Some(crew)) if crew.is_follower() => Exit::Bad,
        (Err(error), _) => {
            print_error(&error);
            Exit::Bad
        }
    }
}

/// A checked scenario with its output files, before the run.
struct PreparedRun {
    loaded: Runnable,
    wave: Option<WaveOptions>,
    checkpoints: Option<Checkpoints>,
    resume: Option<Checkpoint>,
    /// Held until all is written.
    _claims: Option<OutputLocks>,
}

impl PreparedRun {
    /// Reads what the run needs, and claims the files that it will write; only one of several ranks does.
    fn new(arguments: &Arguments, writes: bool) -> Result<PreparedRun, RunError> {
        let results = arguments.document.results.map(|kept| format!("results=\"{kept}\""));
        let loaded = arguments.scenario.load_with(results.as_slice())?;
        check_requested_files(arguments, &loaded)?;
        let wave = wave_options(arguments, &loaded);
        let checkpoints = arguments.checkpoints.written(&arguments.scenario.stem(), arguments.out.as_deref());
        let claims = || output::claim(&outputs(arguments, &loaded, wave.as_ref()), &loaded.inputs());
        let said = |error: String| RunError::Usage(error.trim_start_matches("error: ").to_owned());
        let claims = writes.then(claims).transpose().map_err(said)?;
        let resume = arguments.checkpoints.resume.as_deref().map(Checkpoint::read).transpose()?;
        Ok(PreparedRun { loaded, wave, checkpoints, resume, _claims: claims })
    }
}

/// A rank that is not the first evaluates its share of the system, and keeps nothing.
fn run_follower(options: &RunOptions<'_>, loaded: &Runnable) -> Result<Exit, RunError> {
    let hook = |_| if progress::stopped() { Control::Stop } else { Control::Continue };
    match loaded.run(&RunOptions { hook: Some(&hook), ..*options }) {
        Ok(_) | Err(RunError::Elsewhere) => Ok(Exit::Fine),
        Err(error) => Err(error),
    }
}

/// What was written of a run that has ended, and what could not be: one file that fails takes no other with it.
#[derive(Default)]
struct OutputFiles {
    written: Vec<WrittenFile>,
    lost: Vec<String>,
}

impl OutputFiles {
    /// The document, and what the run took: that is of the machine and of the hour, so it stands beside the document.
    fn write_document(&mut self, at: &Path, document: &str, took: ResourceUsage) {
        let named = |end: &str| PathBuf::from(format!("{}.{end}", at.display()));
        let path = named("json");
        let before = fs::read(&path).ok();
        let before = before.map(|before| if before == document.as_bytes() { "as it was" } else { "replaced" });
        let outcome = files::write(&path, document);
        self.record_output("result", path, before, outcome);
        let (path, text) = (named("run.json"), serde_json::to_string_pretty(&took).unwrap_or_default() + "\n");
        if let Err(error) = files::write(&path, text) {
            self.lost.push(write_error(&path, error).to_string());
        }
    }

    /// Writes a file of text.
    fn text(&mut self, what: &'static str, path: PathBuf, text: String) {
        let (before, outcome) = (overwrite_word(&path), files::write(&path, text));
        self.record_output(what, path, before, outcome);
    }

    /// A file and how writing it ended.
    fn record_output(
        &mut self,
        what: &'static str,
        path: PathBuf,
        before: Option<&'static str>,
        outcome: std::io::Result<()>,
    ) {
        match outcome {
            Ok(()) => self.written.push(WrittenFile::new(what, path).replacing(before)),
            Err(error) => self.lost.push(write_error(&path, error).to_string()),
        }
    }
}

/// Files that a scenario has nothing for.
fn check_requested_files(arguments: &Arguments, loaded: &Loaded) -> Result<(), Problems> {
    let refused = |message: &str, help: &str| {
        Err(Problems::new(loaded.source.clone(), vec![Problem::general(message).help(help)]))
    };
    if arguments.histogram.is_some() && loaded.scenario.traffic.is_empty() {
        let message = "this scenario has no traffic, so there are no latencies to count";
        return refused(message, "leave out --histogram, or add a [[traffic]]");
    }
    if arguments.perfetto.is_some() && loaded.scenario.workload.is_none() {
        let message = "this scenario has no workload, so there are no ranks to show";
        return refused(message, "leave out --perfetto, or add --workload TRACE");
    }
    Ok(())
}

/// An error says that nothing was run.
fn execute(arguments: &Arguments, crew: Option<&MpiRanks>) -> Result<Exit, RunError> {
    let follows = crew.is_some_and(MpiRanks::is_follower);
    let ready = PreparedRun::new(arguments, !follows);
    let ready = match crew {
        Some(crew) => crew.begin(ready),
        None => ready,
    };
    let PreparedRun { loaded, wave, checkpoints, resume, _claims } = ready?;
    let had_wave = wave.as_ref().is_some_and(|wave| wave.path.exists());
    if let (Some(cycles), Some(wave)) = (arguments.estimate_wave, &wave) {
        if follows {
            return Ok(Exit::Fine);
        }
        print(&estimate::wave(&loaded, wave, cycles)?.to_string());
        return Ok(Exit::Fine);
    }
    let meter = RunProgress::new();
    let hook = |progress| meter.update(&progress);
    let options = RunOptions {
        wave: wave.as_ref(),
        order_seed: arguments.order_seed,
        no_skip: arguments.no_skip,
        no_checks: arguments.no_checks,
        all_links: arguments.document.all_links,
        flip: arguments.flip.as_ref().map(Fault::flip),
        ladder: arguments.ladder.file.is_some(),
        record: arguments.record.as_deref(),
        threads: arguments.threads,
        ranks: crew.map(MpiRanks::exchange),
        checkpoints: checkpoints.as_ref(),
        resume: resume.as_ref(),
        hook: Some(&hook),
        ..RunOptions::default()
    };
    if follows {
        return run_follower(&options, &loaded);
    }
    let outcome = loaded.run(&options);
    meter.finish();
    let result = outcome?;
    let took = ResourceUsage { exchanged: crew.map(MpiRanks::exchanged), ..ResourceUsage::now(result.document.cycles) };
    step(&format_args!("ran {} cycles", result.document.cycles));
    print_notes(&loaded, &result.notes);

    let document = &result.document;
    let json = || serde_json::to_string_pretty(document).unwrap_or_default() + "\n";
    let OutputFiles { mut written, mut lost } = write_files(arguments, &loaded, &result, (&json, took));
    if let (Some(wave), Some(_)) = (&wave, &result.wave) {
        written.push(WrittenFile::new("wave", wave.path.clone()).replacing(had_wave.then_some("replaced")));
    }
    lost.extend(result.wave_error.into_iter().chain(result.checkpoint_error));
    if arguments.document.json {
        print(&json());
    } else {
        print_painted(&summary::text(&loaded.scenario, document, &written));
        if messages::is_watched() || messages::is_verbose() {
            print(&took.to_string());
        }
        // Who watches is told how to keep it; what goes into a file or another program stays as it is.
        if arguments.out.is_none() && messages::is_watched() {
            print(NOT_KEPT);
        }
    }
    for error in &lost {
        print_error(error);
    }
    let wave = wave.as_ref().filter(|_| result.wave.is_some()).map(|wave| wave.path.as_path());
    wave_command::print_wave_commands(&loaded, document, wave);
    Ok(match document.passed() {
        false => Exit::Failed,
        true if lost.is_empty() => Exit::Fine,
        true => Exit::Unwritten,
    })
}

/// Writes every file that was asked for but the waveform, which was written as the run went on.
fn write_files(
    arguments: &Arguments,
    loaded: &Loaded,
    result: &run::RunResult,
    (json, took): (&dyn Fn() -> String, ResourceUsage),
) -> OutputFiles {
    let document = &result.document;
    let mut done = OutputFiles::default();
    if let Some(folder) = &arguments.out {
        done.write_document(&folder.join(arguments.scenario.stem()), &json(), took);
    }
    if let Some(file) = &arguments.save_npy.as_ref().map(|file| arguments.place(file)) {
        for data in &result.data {
            let path = npy_path(file, &data.name, result.data.len());
            let before = overwrite_word(&path);
            let outcome = data::save_npy(&path, data.dtype, &data.rows.iter().collect::<Vec<_>>());
            done.record_output("array", path, before, outcome);
        }
    }
    if let Some(file) = &arguments.histogram {
        done.text("histogram", arguments.place(file), histogram(document));
    }
    if let (Some(file), Some(workload)) = (&arguments.perfetto, &document.workload) {
        done.text("perfetto", arguments.place(file), perfetto::json(workload, &loaded.scenario.clock));
    }
    let path = arguments.ladder.file.as_ref().map(|file| arguments.place(file));
    if let (Some(path), Some(ladder)) = (&path, &result.ladder) {
        done.text("ladder", path.clone(), arguments.ladder.drawn(path, ladder));
    }
    if let Some(recording) = &result.recording {
        let mut write = |path: PathBuf, body: &dyn Fn(&mut BufWriter<AtomicFile>) -> std::io::Result<()>| {
            let before = overwrite_word(&path);
            let outcome = files::write_with(&path, body);
            done.record_output("record", path, before, outcome);
        };
        let [inputs, outputs, table] = record_paths(arguments, &recording.block);
        write(inputs, &|out| recording.write_hex(0, out));
        write(outputs, &|out| recording.write_hex(1, out));
        write(table, &|out| recording.write_csv(out));
    }
    done
}

/// All files that will be written, with the flags that ask for them.
fn outputs(arguments: &Arguments, loaded: &Loaded, wave: Option<&WaveOptions>) -> Vec<(&'static str, PathBuf)> {
    let mut outputs = Vec::new();
    if let Some(folder) = &arguments.out {
        let stem = arguments.scenario.stem();
        outputs.extend(["json", "run.json"].map(|end| ("--out", folder.join(format!("{stem}.{end}")))));
    }
    if let Some(WaveOptions { path, .. }) = wave {
        outputs
            .extend([path.clone(), path.with_extension("gtkw"), path.with_extension("sucl")].map(|at| ("--wave", at)));
    }
    let checkpoints = arguments.checkpoints.written(&arguments.scenario.stem(), arguments.out.as_deref());
    outputs.extend(checkpoints.map(|of| ("--checkpoint-every", of.path)));
    outputs.extend(arguments.perfetto.iter().map(|path| ("--perfetto", arguments.place(path))));
    outputs.extend(arguments.ladder.file.iter().map(|path| ("--ladder", arguments.place(path))));
    if let Some(block) = &arguments.record {
        outputs.extend(record_paths(arguments, block).map(|path| ("--record", path)));
    }
    outputs.extend(arguments.histogram.iter().map(|path| ("--histogram", arguments.place(path))));
    if let Some(file) = &arguments.save_npy.as_ref().map(|file| arguments.place(file)) {
        // One array takes the name as it is, several are told apart; how many there are is known at the end.
        outputs.push(("--save-npy", file.clone()));
        let scenario = &loaded.scenario;
        let names = scenario.collectives.iter().map(|of| &of.name).chain(scenario.hosts.iter().map(|host| &host.name));
        outputs.extend(names.map(|name| ("--save-npy", npy_path(file, name, 2))));
    }
    outputs
}

/// Where a recording goes: inputs, outputs, table.
fn record_paths(arguments: &Arguments, block: &str) -> [PathBuf; 3] {
    let folder = arguments.out.as_deref().unwrap_or(Path::new(""));
    ["in.hex", "out.hex", "csv"].map(|end| folder.join(format!("{block}.{end}")))
}

/// The histograms of all traffic as CSV: latencies from the first to the last of a bucket, in cycles, and its packets.
fn histogram(document: &Document) -> String {
    let mut out = String::from("traffic,from_cycles,to_cycles,packets\n");
    for traffic in &document.traffic {
        let name = if traffic.name.contains([',', '"']) {
            format!("\"{}\"", traffic.name.replace('"', "\"\""))
        } else {
            traffic.name.clone()
        };
        let Some(latency) = &traffic.latency else { continue };
        let buckets = &latency.histogram;
        for ((from, to), packets) in buckets.from.iter().zip(&buckets.to).zip(&buckets.packets) {
            let _ = writeln!(out, "{name},{from},{to},{packets}");
        }
    }
    out
}

/// Said to those who keep no result.
const NOT_KEPT: &str = "not kept       --out DIR keeps the result, for why, report and replay";

/// What is said of a file that is there already.
fn overwrite_word(path: &Path) -> Option<&'static str> {
    path.exists().then_some("replaced")
}

fn write_error(path: &Path, error: std::io::Error) -> RunError {
    RunError::Write { path: path.to_owned(), error }
}

/// The flags where they are given, the scenario's `[wave]` where not.
fn wave_options(arguments: &Arguments, loaded: &Loaded) -> Option<WaveOptions> {
    let file = arguments.wave.as_ref()?;
    let mut shown = loaded.scenario.wave.clone();
    if !arguments.signals.is_empty() {
        shown.signals.clone_from(&arguments.signals);
    }
    shown.depth = arguments.wave_depth.or(shown.depth);
    if let Some(window) = arguments.wave_window {
        (shown.from_cycle, shown.to_cycle) = (window.from.unwrap_or(0), window.to);
    }
    Some(WaveOptions {
        path: arguments.place(file),
        shown,
        trigger: match (&arguments.trigger, arguments.last) {
            (Some(condition), _) => Some(TriggerOptions {
                condition: Some(condition.clone()),
                before: arguments.before,
                after: arguments.after,
            }),
            (None, Some(last)) => Some(TriggerOptions { condition: None, before: last, after: None }),
            (None, None) => None,
        },
        only_failed: arguments.only_failed,
    })
}

/// The file itself for one collective; with the name of the collective in it for several.
fn npy_path(file: &Path, name: &str, count: usize) -> PathBuf {
    if count == 1 {
        return file.to_owned();
    }
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().map(|c| if c.is_alphanumeric() || "-_".contains(c) { c } else { '_' }).collect();
    file.with_file_name(format!("{stem}.{name}.npy"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_have_two_ends() {
        let full = |from, to| Ok(Window { from, to });
        assert_eq!(window("1..2"), full(Some(1), Some(2)));
        assert_eq!(window("1_000.."), full(Some(1000), None));
        assert_eq!(window("..5"), full(None, Some(5)));
        assert_eq!(window(".."), full(None, None));
        assert_eq!(window("1..=2"), full(Some(1), Some(2)));
        assert!(window("5").is_err());
        assert!(window("5..1").is_err());
        assert!(window("a..b").is_err());
        assert!(window("-1..3").is_err());
    }
}
