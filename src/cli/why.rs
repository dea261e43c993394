//! `watershed why`: where the cycles of a collective, a round or a packet went.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use super::progress::RunProgress;
use super::replay::RecordedRun;
use super::run::{Window, window};
use super::{Exit, invocation, output, print, print_error, wave_command};
use watershed_scenario_interface::Scenario;
use watershed_scenario_interface::config::Family;
use watershed_scenario_interface::program_result::call_name;
use watershed_scenario_interface::run::{RunOptions, WaveOptions};
use watershed_scenario_interface::segments;
use watershed_scenario_interface::why::{Why, WhyQuery};
use watershed_study::sweep::store::shell_word;

/// Say where the cycles of a collective's latency went.
#[derive(Debug, Args)]
#[command(after_help = "\
Runs what the result was made from once more with a journal, and follows the critical path back from its end: the queues, the
links, the engines and which operand came last there, time-outs, and the participant at which it began. The parts add up to
the latency exactly.

  PIUMA            the last word of every collective and scan, or the word that --packet names; of a collective of several
                   segments the one that ended last, the one that --collective NAME.NUMBER names, or the one that has word
                   --packet of the whole vector; of a collective that programs call every call, or the one that
                   --collective NAME.NUMBER names, from 0
  hosts            the rank that was done last: its rounds, and the partners and messages that they waited for
  armed, PBV       the slowest round of every collective that ended at every participant, or the round that --packet names
  traffic          the packet that took longest, or the one that --packet SOURCE:NUMBER names: the end point that sent it and
                   its number there, from 0; a NUMBER alone is a packet's place in the order of arrival, from 0

Examples:
  watershed run allreduce-die --set job.0.elements=1 --out out
  watershed why out/allreduce-die.json
  watershed why out/allreduce-die.json --collective sum --packet 0 --json
  watershed run fig4-late-leaf --json > late.json
  watershed why late.json --cycles 100..300
  watershed why out/allreduce-die.json --wave out/die.fst
  watershed run mesh-transpose --json > mesh.json
  watershed why mesh.json --packet 5:17

Exit status:
  0  the latency is explained
  1  it is not: what was asked for has not ended, or there is no such word, round or packet
  2  the command line is wrong, or the file is no result document that can be run again")]
pub(super) struct Arguments {
    /// Result document, as `run --json` and `run --out` write it
    #[arg(value_name = "RESULT.json")]
    file: PathBuf,
    /// Only the job of this name, or a collective that a program started
    #[arg(long, visible_alias = "job", value_name = "NAME")]
    collective: Option<String>,
    /// The way of this word or round instead of the last or slowest one, or of a packet: the end point that sent it, and its number there, or its place in the order of arrival
    #[arg(long, value_name = "NUMBER|SOURCE:NUMBER", value_parser = packet)]
    packet: Option<Packet>,
    /// Only what happened from cycle A to cycle B, both included; either may be left out
    #[arg(long, value_name = "A..B", value_parser = window)]
    cycles: Option<Window>,
    /// Print after each step the `wave show` line that shows it in this waveform of the run, which is written if it is not there
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    wave: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    _status: super::messages::StatusOptions,
}

/// What `--packet` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Packet {
    source: Option<u32>,
    number: u64,
}

impl std::fmt::Display for Packet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.source {
            Some(source) => write!(f, "{source}:{}", self.number),
            None => self.number.fmt(f),
        }
    }
}

/// Reads `NUMBER` or `SOURCE:NUMBER`.
fn packet(text: &str) -> Result<Packet, String> {
    let number = |text: &str| text.parse().map_err(|_| format!("\"{text}\" is not a number"));
    Ok(match text.split_once(':') {
        None => Packet { source: None, number: number(text)? },
        Some((source, at)) => {
            let source = source.parse().map_err(|_| format!("\"{source}\" is not the number of an end point"))?;
            Packet { source: Some(source), number: number(at)? }
        }
    })
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    match execute(arguments) {
        Ok(true) => Exit::Fine,
        Ok(false) => Exit::Failed,
        Err(error) => {
            print_error(&error);
            Exit::Bad
        }
    }
}

/// Whether a packet can be asked for by its source.
fn check_source(arguments: &Arguments, scenario: &Scenario) -> Result<(), String> {
    let Some(Packet { source: Some(source), .. }) = arguments.packet else { return Ok(()) };
    let ends = scenario.topology.end_points();
    if u64::from(source) >= u64::from(ends) {
        return Err(format!("error: there is no end point {source}: the system has {ends}"));
    }
    if scenario.family == Family::Armed || scenario.family == Family::Pbv {
        return Err("error: packets by their source are for traffic, hosts and programs; this family has rounds: --packet NUMBER".into());
    }
    Ok(())
}

fn execute(arguments: &Arguments) -> Result<bool, String> {
    let recorded = RecordedRun::read(&arguments.file)?;
    let scenario = &recorded.loaded.scenario;
    // The collective that programs call of which one call is asked for, and which one.
    let call = arguments.collective.as_deref().and_then(|name| {
        let number: usize = name.rsplit_once('.')?.1.parse().ok()?;
        let called = scenario.collectives.iter().filter(|of| of.called);
        let base = called.map(|of| of.name.as_str()).find(|base| call_name(base, number) == name)?;
        Some((base, number))
    });
    if let Some(name) = &arguments.collective {
        let trees: Vec<String> = scenario.collectives.iter().flat_map(segments::names).map(|(_, name)| name).collect();
        let segmented = scenario.collectives.iter().filter(|found| found.segments > 1);
        let mut known: Vec<&str> = segmented.map(|found| found.name.as_str()).collect();
        known.extend(trees.iter().map(String::as_str));
        known.extend(scenario.armed.iter().flat_map(|armed| &armed.reductions).map(|found| found.name.as_str()));
        known.extend(scenario.hosts.iter().map(|found| found.name.as_str()));
        known.extend(scenario.pbv.iter().flat_map(|pbv| &pbv.collectives).map(|found| found.name.as_str()));
        known.extend(scenario.workload.iter().map(|_| watershed_scenario_interface::why::WORKLOAD));
        if known.is_empty() {
            return Err("error: the result has no collectives; --packet names packets".into());
        }
        if call.is_none() && !known.contains(&name.as_str()) {
            return Err(super::unknown("the result has no collective", name, &known));
        }
    }
    check_source(arguments, scenario)?;
    let meter = RunProgress::new();
    let hook = |progress| meter.update(&progress);
    let ask = WhyQuery {
        collective: arguments.collective.as_deref(),
        packet: arguments.packet.map(|packet| packet.number),
        source: arguments.packet.and_then(|packet| packet.source),
    };
    let wave = arguments
        .wave
        .as_ref()
        .filter(|path| !path.exists())
        .map(|path| WaveOptions::of(path.clone(), scenario.wave.clone()));
    let outputs: Vec<(&str, PathBuf)> = wave
        .iter()
        .flat_map(|wave| [wave.path.clone(), wave.path.with_extension("gtkw"), wave.path.with_extension("sucl")])
        .map(|path| ("--wave", path))
        .collect();
    let _claims = output::claim(&outputs, std::slice::from_ref(&arguments.file))?;
    let options = RunOptions { hook: Some(&hook), why: Some(ask), wave: wave.as_ref(), ..recorded.options() };
    let outcome = recorded.loaded.run(&options);
    meter.finish();
    let result = outcome.map_err(|error| error.to_string())?;
    if recorded.is_cut_short(&result.document) {
        print_error(&format_args!("{}", recorded.cut_short(&result.document)));
        return Ok(false);
    }
    if let Some((base, number)) = call {
        let calls = result.document.programs.iter().flat_map(|programs| &programs.calls);
        let count = calls.filter(|call| call.collective == base).count();
        if number >= count {
            let name = call_name(base, number);
            let times = if count == 1 { "once" } else { &format!("{count} times") };
            return Err(format!("error: there is no call {name}: {base} was called {times}, counted from 0"));
        }
    }
    if let Some(path) = recorded.first_difference(&result.document)? {
        let name = arguments.file.display();
        print_error(&format_args!(
            "note: run again, something else came out than {name} has, first at {path}: this is about what came out now"
        ));
    }
    for note in &result.notes {
        super::messages::note(note);
    }
    if let Some(error) = &result.wave_error {
        return Err(error.clone());
    }
    // A run that hangs is explained by who waits for whom.
    if let Some(detail) = result.document.unfinished() {
        print_error(&format_args!("the run did not finish: {detail}"));
    }
    if result.why.is_empty() {
        if result.notes.is_empty() {
            print_error(&"no collective, round or packet has ended whose latency could be explained");
        }
        return Ok(false);
    }
    if arguments.json {
        print(&serde_json::to_string_pretty(&result.why).unwrap_or_default());
    } else {
        let texts: Vec<String> =
            result.why.iter().map(|why| text(why, arguments.cycles, arguments.wave.as_deref())).collect();
        print(&texts.join("\n"));
        if arguments.wave.is_none() {
            print(&wave_hint(&result.why, arguments));
        }
    }
    Ok(true)
}

/// What shows the longest step in a waveform: the command that writes one, and the line that draws the step.
fn wave_hint(whys: &[Why], arguments: &Arguments) -> String {
    let parts = whys.iter().flat_map(|why| &why.parts);
    let Some(longest) = parts.max_by_key(|part| (part.to - part.from, std::cmp::Reverse(part.from))) else {
        return String::new();
    };
    let wave = arguments.file.with_extension("fst");
    let mut ask = String::new();
    for (flag, value) in [
        ("--collective", arguments.collective.clone()),
        ("--packet", arguments.packet.map(|packet| packet.to_string())),
    ] {
        if let Some(value) = value {
            let _ = write!(ask, " {flag} {value}");
        }
    }
    let word = |path: &Path| shell_word(&path.display().to_string());
    let command = format!("watershed why {}{ask} --wave {}", word(&arguments.file), word(&wave));
    format!(
        "\nthe longest step in a waveform (`--wave` prints such a line for each step):\n  {}\n  {}\n",
        invocation::line(&command),
        wave_command::line(&wave, &[&longest.place], longest.from, longest.to)
    )
}

fn text(why: &Why, window: Option<Window>, wave: Option<&Path>) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{}: {} cycles, from {} to {}, along the way of {} {} to {}",
        why.collective, why.latency_cycles, why.start_cycle, why.end_cycle, why.what, why.number, why.landed_at
    );
    if let (Some(last), Some(cycles)) = (why.last_contribution, why.since_last_contribution()) {
        let _ = writeln!(out, "the last contribution was ready in cycle {last}: {cycles} cycles before the end");
    }
    let within = |from: u64, to: u64| {
        window.is_none_or(|window| to > window.from.unwrap_or(0) && window.to.is_none_or(|last| from <= last))
    };
    let _ = writeln!(out, "\n  from    to  cycles  phase      what          where");
    for part in &why.parts {
        if within(part.from, part.to) {
            let _ = writeln!(
                out,
                "{:6}{:6}{:8}  {:9}  {:12}  {}",
                part.from,
                part.to,
                part.to - part.from,
                part.phase.name(),
                part.kind.name(),
                part.place
            );
            if let Some(wave) = wave {
                let _ = writeln!(out, "          {}", wave_command::line(wave, &[&part.place], part.from, part.to));
            }
        }
    }
    for engine in &why.engines {
        if !within(engine.cycle, engine.cycle + 1) {
            continue;
        }
        let others: Vec<String> = engine
            .others
            .iter()
            .map(|(from, early)| if *early == 0 { format!("{from} too") } else { format!("{from} {early} earlier") })
            .collect();
        let others = if others.is_empty() { "alone".to_owned() } else { others.join(", ") };
        let _ = writeln!(
            out,
            "{}: the last operand came {} {} in cycle {} ({others})",
            engine.switch,
            if engine.from.starts_with('P') { "by" } else { "from" },
            engine.from,
            engine.cycle
        );
        if let Some(wave) = wave {
            let _ =
                writeln!(out, "          {}", wave_command::line(wave, &[&engine.switch], engine.cycle, engine.cycle));
        }
    }
    let sums = |list: Vec<(&str, u64)>| {
        let words: Vec<String> =
            list.iter().filter(|(_, cycles)| *cycles > 0).map(|(name, cycles)| format!("{name} {cycles}")).collect();
        words.join(" + ")
    };
    let phases = sums(why.by_phase().into_iter().map(|(phase, cycles)| (phase.name(), cycles)).collect());
    let kinds = sums(why.by_kind().into_iter().map(|(kind, cycles)| (kind.name(), cycles)).collect());
    let _ = writeln!(out, "\n{} cycles = {phases}", why.latency_cycles);
    let _ = writeln!(out, "{} cycles = {kinds}", why.latency_cycles);
    out
}
