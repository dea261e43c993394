//! The result of a run for people, in about ten lines.

use std::fmt::Write;
use std::path::PathBuf;

use super::armed_result::ArmedResult;
use super::job_result::HashedResults;
use super::pbv_result::PbvResult;
use super::result::{CollectiveResult, Document, Outcome, TrafficResult};
use watershed_fabric::topology::Shape;
use watershed_oracle::compare::apart;
use watershed_reader::config::Scenario;
use watershed_reader::segments;

/// A file that was written.
#[derive(Debug, Clone)]
pub struct WrittenFile {
    what: &'static str,
    path: PathBuf,
    before: &'static str,
}

impl WrittenFile {
    /// A file and what it is.
    pub fn new(what: &'static str, path: PathBuf) -> Self {
        Self { what, path, before: "" }
    }

    /// The outcome for a file that existed before: "replaced" or "as it was".
    #[must_use]
    pub fn replacing(mut self, before: Option<&'static str>) -> Self {
        self.before = before.unwrap_or_default();
        self
    }
}

/// Width of the column of labels.
const LABEL: usize = 14;

/// A label and a text.
type Line = (String, String);

/// The summary.
pub fn text(scenario: &Scenario, document: &Document, written: &[WrittenFile]) -> String {
    let mut out = String::new();
    line(&mut out, &document.stamp.scenario, &headline(scenario, document));
    for (label, text) in document.workload.iter().flat_map(super::workload_result::WorkloadResult::lines) {
        line(&mut out, &label, &text);
    }
    for (label, text) in jobs(scenario, document) {
        line(&mut out, &label, &text);
    }
    for (label, text) in document.programs.iter().flat_map(super::program_result::ProgramsResult::lines) {
        line(&mut out, &label, &text);
    }
    for (label, text) in engines(document) {
        line(&mut out, &label, &text);
    }
    for job in &document.jobs {
        if let Some(HashedResults { rows, elements, sha256, .. }) = &job.results {
            line(&mut out, "SHA-256", &format!("{}: {sha256} of {rows} x {elements} elements", job.name));
        }
    }
    if let Some(measure) = &document.measure {
        let length = measure.to_cycle - measure.from_cycle;
        let verdict = if measure.saturated { "SATURATED: " } else { "" };
        line(
            &mut out,
            "measured",
            &format!(
                "cycles {} to {}, {length} in all; {verdict}{}",
                measure.from_cycle, measure.to_cycle, measure.verdict
            ),
        );
        let hops = measure.hops_mean.map_or_else(String::new, |hops| format!("; {hops:.2} switches on the way"));
        let text = format!(
            "offered {:.4}, accepted {:.4} flits a node and cycle, {:.4} at the least{hops}",
            measure.offered, measure.accepted_mean, measure.accepted_min
        );
        line(&mut out, "", &text);
    }
    for traffic in &document.traffic {
        describe_traffic(&mut out, document, traffic);
    }
    if let Some(link) = document.links.busiest.first() {
        let text = format!(
            "{} ({}): {}, busy {:.1} % of the time, {}",
            link.name,
            link.level,
            count_of(link.flits, "flit"),
            link.utilisation * 100.0,
            count_of(link.head_wait_cycles, "head-wait cycle")
        );
        line(&mut out, "busiest link", &text);
    }
    head_waits(&mut out, document);
    for rounding in &document.roundings {
        line(&mut out, "rounded", &rounding.to_string());
    }
    checks(&mut out, document);
    match document.outcome {
        Outcome::Finished => {}
        Outcome::Interrupted => line(&mut out, "outcome", "interrupted: this is what was done so far"),
        Outcome::MaxCycles => line(&mut out, "outcome", "not finished: limits.max_cycles was reached"),
        Outcome::Deadlock => line(&mut out, "outcome", "not finished: no further progress"),
        Outcome::Broken => line(&mut out, "outcome", "not finished: a rule was broken"),
    }
    for file in written {
        let before = if file.before.is_empty() { String::new() } else { format!(" ({})", file.before) };
        line(&mut out, file.what, &format!("{}{before}", file.path.display()));
    }
    out
}

/// What each job did, in the order of the scenario, whatever does it.
fn jobs(scenario: &Scenario, document: &Document) -> Vec<Line> {
    let nanoseconds = |cycles| scenario.clock.nanoseconds(cycles);
    let mut parts: Vec<(usize, Vec<Line>)> = Vec::new();
    let mut add = |list: &str, at: usize, lines: Vec<Line>| {
        // A job may have several parts, and its details are at the first.
        let first = |details: String| document.jobs.iter().position(|job| job.details == details);
        let job = (0..=at).rev().find_map(|at| first(format!("{list}.{at}")));
        parts.push((job.unwrap_or(document.jobs.len()), lines));
    };
    for (at, collective) in document.collectives.iter().enumerate() {
        add(
            "collectives",
            at,
            of_collective(scenario, collective, &job_window(document, &format!("collectives.{at}"))),
        );
    }
    for (at, host) in document.hosts.iter().enumerate() {
        add("hosts", at, host.lines(&job_window(document, &format!("hosts.{at}"))));
    }
    for (at, reduction) in document.armed.iter().flat_map(|armed| &armed.reductions).enumerate() {
        let of = scenario.armed.as_ref().and_then(|armed| armed.reductions.get(at));
        let at_once = of.map_or(1, |reduction| reduction.file.reduction_ids);
        let details = format!("armed.reductions.{at}");
        let job = job_timing(document, &details, &reduction.name);
        let elements = document.jobs.iter().find(|job| job.details == details).map(|job| job.elements);
        add("armed.reductions", at, reduction.lines(nanoseconds, at_once, elements, job));
    }
    for (at, collective) in document.pbv.iter().flat_map(|pbv| &pbv.collectives).enumerate() {
        let job = job_timing(document, &format!("pbv.collectives.{at}"), &collective.name);
        add("pbv.collectives", at, collective.lines(nanoseconds, job));
    }
    parts.sort_by_key(|(job, _)| *job);
    parts.into_iter().flat_map(|(_, lines)| lines).collect()
}

/// What engines counted; with the name of their family where jobs have several.
fn engines(document: &Document) -> Vec<Line> {
    let armed = document.armed.iter().flat_map(ArmedResult::engine_lines);
    let pbv = document.pbv.iter().flat_map(PbvResult::engine_lines);
    let several = document.jobs.iter().any(|job| job.engine != document.jobs[0].engine);
    let named = |family: &'static str| {
        move |(label, text): Line| match label.as_str() {
            "engines" if several => (format!("{family} engines"), text),
            _ => (label, text),
        }
    };
    armed.map(named("armed")).chain(pbv.map(named("pbv"))).collect()
}

/// What flits at the heads of switches' queues waited for, most first.
fn head_waits(out: &mut String, document: &Document) {
    let Some(waits) = &document.links.waits else { return };
    let mut texts = Vec::new();
    for (before, causes) in [("links", &waits.links), ("engines", &waits.engines)] {
        let total: u64 = causes.values().sum();
        if total == 0 {
            continue;
        }
        let mut causes: Vec<(&String, &u64)> = causes.iter().collect();
        causes.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
        let share = |(cause, cycles): (&String, &u64)| {
            format!("{:.1} % {}", *cycles as f64 * 100.0 / total as f64, cause.replace('_', " "))
        };
        let causes: Vec<String> = causes.into_iter().map(share).collect();
        texts.push(format!("{} before {before}: {}", count_of(total, "cycle"), causes.join(", ")));
    }
    if !texts.is_empty() {
        line(out, "head waits", &texts.join("\n"));
    }
}

fn line(out: &mut String, label: &str, text: &str) {
    let mut lines = text.lines();
    let _ = writeln!(out, "{label:LABEL$} {}", lines.next().unwrap_or(""));
    for text in lines {
        let _ = writeln!(out, "{:LABEL$} {text}", "");
    }
}

fn headline(scenario: &Scenario, document: &Document) -> String {
    let topology = &scenario.topology;
    let shape = match &topology.shape {
        Shape::Die(_) | Shape::Nodes(_) => format!("{}, {} cores", topology.shape.describe(), topology.end_points()),
        shape => format!("{}, {} end points", shape.describe(), topology.end_points()),
    };
    format!("{shape}, {} MHz, {} cycles, seed {}", scenario.clock.frequency_mhz, document.cycles, document.stamp.seed)
}

fn of_collective(scenario: &Scenario, collective: &CollectiveResult, window: &str) -> Vec<Line> {
    let CollectiveResult { name, kind, dtype, elements, .. } = collective;
    let who = match scenario.topology.shape {
        Shape::Die(_) | Shape::Nodes(_) => count_of(collective.participants, "core"),
        _ => count_of(collective.participants, "end point"),
    };
    let plural = if *elements == 1 { "" } else { "s" };
    let wider = match (&collective.accumulate, &collective.result_dtype) {
        (Some(wide), Some(result)) if wide == result => format!(", accumulated in {wide} and left in it,"),
        (Some(wide), _) => format!(", accumulated in {wide},"),
        (None, _) => String::new(),
    };
    let dtype = dtype.as_deref().unwrap_or("untyped");
    let vector = format!("{elements} {dtype} element{plural}{wider}");
    let what = match (kind.as_str(), collective.op.as_deref()) {
        ("barrier", _) => format!("barrier of {who}"),
        ("broadcast", _) => format!("broadcast of {vector} to {who}"),
        (_, op) => format!("{kind} ({}) of {vector} over {who}", op.unwrap_or("?")),
    };
    let mut lines = vec![(name.clone(), what)];
    let mut add = |text| lines.push((String::new(), text));
    match (collective.latency_cycles, collective.latency_ns) {
        (Some(cycles), Some(ns)) => add(latency((cycles, ns), window, *elements, collective.elements_per_cycle)),
        _ => add("not finished".into()),
    }
    if let Some(text) = segments::described(&collective.segments, collective.start_cycle) {
        add(text);
    }
    if let Some(exact) = collective.bit_exact
        && (*elements > 0 || !exact)
    {
        let verdict = if exact { "yes" } else { "NO" };
        let flags = if collective.flags.is_empty() { "none".to_owned() } else { collective.flags.join(", ") };
        let exact = collective.exact_elements;
        add(format!("bit-exact: {verdict} ({exact} of {elements}), flags: {flags}"));
    }
    if let Some(difference) = &collective.first_difference {
        let ulps = difference.ulps.map_or_else(String::new, |ulps| format!(", {}", apart(ulps)));
        let text = format!(
            "first difference: element {} at end point {}: {} instead of {}{ulps}; they part at {}",
            difference.element, difference.end_point, difference.got, difference.expected, difference.node
        );
        add(text);
    }
    lines
}

/// From a job's first contribution to its last result, in the same words for every family.
fn latency((cycles, ns): (u64, f64), window: &str, elements: u64, elements_per_cycle: Option<f64>) -> String {
    let rate = match elements_per_cycle {
        // Three decimals, or two digits of what is smaller.
        Some(rate) if elements > 0 => {
            let decimals = if rate < 0.01 { (1.0 - rate.log10().floor()).clamp(3.0, 12.0) as usize } else { 3 };
            format!(", {rate:.decimals$} elements per cycle")
        }
        _ => String::new(),
    };
    format!("{cycles} cycles = {} ns{window}{rate}", rounded(ns))
}

/// What the job took that has its details there, and is the first to have them; its name if it has other parts.
fn job_timing(document: &Document, details: &str, part: &str) -> Option<String> {
    let job = document.jobs.iter().find(|job| job.details == details)?;
    let window = job_window(document, details);
    let line = latency((job.latency_cycles?, job.latency_ns?), &window, job.elements, job.elements_per_cycle);
    Some(if job.name == part { line } else { format!("{} in all: {line}", job.name) })
}

/// From when to when one of several jobs ran: whether they met.
fn job_window(document: &Document, details: &str) -> String {
    let job = document.jobs.iter().find(|job| job.details == details).filter(|_| document.jobs.len() > 1);
    let window = job.and_then(|job| Some((job.start_cycle?, job.end_cycle?)));
    window.map_or_else(String::new, |(start, end)| format!(" (cycles {start} to {end})"))
}

fn describe_traffic(out: &mut String, document: &Document, traffic: &TrafficResult) {
    let packets =
        traffic.latency.as_ref().filter(|_| document.measure.is_some()).map_or(traffic.packets, |l| l.packets);
    let latency = match (traffic.mean_latency_cycles, traffic.max_latency_cycles) {
        (Some(mean), Some(max)) if traffic.latency.is_none() => {
            format!(", latency {mean:.1} cycles on average, {max} at most")
        }
        _ => String::new(),
    };
    let text = format!(
        "offered {:.3}, accepted {:.3} flits a cycle, {packets} packets{latency}",
        traffic.offered, traffic.accepted
    );
    line(out, &format!("traffic {}", traffic.name), &text);
    let Some(latency) = &traffic.latency else { return };
    let sure = match (latency.half_width, &document.measure) {
        (Some(half), Some(measure)) => format!(" +- {half:.2} ({:.0} % sure)", measure.confidence * 100.0),
        _ => String::new(),
    };
    let network = latency.network_mean.map_or_else(String::new, |mean| format!(", {mean:.2} of them in the network"));
    line(out, "", &format!("latency {:.2} cycles{sure}{network}", latency.mean));
    let text = format!(
        "p50 {}, p90 {}, p99 {}, p99.9 {}, max {}",
        latency.p50, latency.p90, latency.p99, latency.p999, latency.max
    );
    line(out, "", &text);
}

fn checks(out: &mut String, document: &Document) {
    let (passed, failed): (Vec<_>, Vec<_>) = document.checks.iter().partition(|check| check.passed);
    if !passed.is_empty() {
        // Checks that are made for every collective have its name behind a colon: once is enough here.
        let mut names: Vec<&str> = passed.iter().filter_map(|check| check.name.split(": ").next()).collect();
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|name| seen.insert(*name));
        line(out, "checks", &format!("{} passed: {}", passed.len(), names.join(", ")));
    }
    for check in failed {
        line(out, "CHECK FAILED", &format!("{}: {}", check.name, check.detail));
    }
}

/// A number of things.
fn count_of(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// A number of ns without a tail of zeros.
fn rounded(ns: f64) -> String {
    decimals(ns, 3)
}

/// A number with up to `most` decimals, without a tail of zeros.
pub fn decimals(value: f64, most: usize) -> String {
    let text = format!("{value:.most$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
