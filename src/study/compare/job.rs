//! The jobs that are compared, and which of their values make a participant late, dead or early.
//!
//! A scenario may have several jobs (collectives, hosts, reductions); each is a contestant of its own and runs alone.
//! Contestants and variants are made by overriding values of the scenario, as `--set` does, so that `watershed run` can
//! repeat each.
//!
//! | family | job | elements | late | dead |
//! |---|---|---|---|---|
//! | piuma | `[[collective]]` | its `elements` | `delay_cycles` | starts after the run's limit of cycles; the family has no closer equivalent |
//! | piuma | `[[host]]` | its `elements` | `delay_cycles` | the same |
//! | armed | `[[armed.reduction]]` | operands of a frame x `rounds` | `late`, in the first round | `effect = "dead"` from the first contribution on |
//! | pbv | `[[pbv.collective]]` | its `elements` x `rounds` | `late`, in the first round | `effect = "dead"` from the first contribution on |
//!
//! A vector that is longer than a frame is cut into frames, a round each, of which the last is filled up *\[chosen\]*. In the armed family retries and
//! patience keep the values of the run in which all participants are in time, because a real system does not know who
//! will be late.

use std::path::Path;

use serde::Serialize;

use watershed_arith::{Op, Round};
use watershed_scenario_interface::config::Data;
use watershed_scenario_interface::file::CollectiveKind;
use watershed_scenario_interface::names::NamedValues;
use watershed_scenario_interface::pbv::config::Collective;
use watershed_scenario_interface::pbv::file::KindFile;
use watershed_scenario_interface::source::{Node, Value};
use watershed_scenario_interface::{Engines, Loaded, Problems, Runnable, Scenario, load_named, run_inputs, shipped};

/// What is to be computed; two contestants are compared if theirs are equal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Task {
    /// "allreduce", "reduce", "broadcast", "barrier" or "scan".
    pub kind: String,
    /// The operation, with its rounding if that is not to nearest even; null if nothing is reduced.
    pub operation: Option<String>,
    /// Type of an element; null for a barrier.
    pub dtype: Option<String>,
    /// Elements of the vector; barriers in a row.
    pub elements: u64,
    /// How many end points take part.
    pub end_points: u64,
    /// Payload of a link between switches, in Gb/s.
    pub link_gbps: f64,
}

impl Task {
    /// In words.
    pub fn words(&self) -> String {
        let plural = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let what = match (&self.operation, &self.dtype) {
            (_, None) => plural(self.elements, &self.kind),
            (Some(op), Some(dtype)) => {
                format!("{} ({op}) of {}", self.kind, plural(self.elements, &format!("{dtype} element")))
            }
            (None, Some(dtype)) => format!("{} of {}", self.kind, plural(self.elements, &format!("{dtype} element"))),
        };
        format!("{what} over {}, links of {} Gb/s", plural(self.end_points, "end point"), self.link_gbps)
    }

    /// What it consists of: name and value.
    fn facts(&self) -> [(&'static str, String); 6] {
        let word = |word: &Option<String>| word.clone().unwrap_or_else(|| "none".into());
        [
            ("kind", self.kind.clone()),
            ("operation", word(&self.operation)),
            ("type", word(&self.dtype)),
            ("elements", self.elements.to_string()),
            ("end points", self.end_points.to_string()),
            ("link speed in Gb/s", self.link_gbps.to_string()),
        ]
    }

    /// What differs from another task.
    fn differences(&self, other: &Task) -> Vec<(&'static str, String)> {
        let pairs = self.facts().into_iter().zip(other.facts());
        pairs.filter(|(own, other)| own != other).map(|(own, _)| own).collect()
    }
}

/// What is not the same in all jobs, a line each: what it is, and who has which value.
pub fn differences(contestants: &[Contestant]) -> Vec<String> {
    let Some((first, rest)) = contestants.split_first() else { return Vec::new() };
    let mut names: Vec<&str> = Vec::new();
    for (name, ..) in rest.iter().flat_map(|one| first.task.differences(&one.task)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let line = |name: &&str| {
        let mut values: Vec<(String, Vec<&str>)> = Vec::new();
        for one in contestants {
            let facts = one.task.facts();
            let value = facts.into_iter().find(|(what, _)| what == name).map_or_else(String::new, |(_, value)| value);
            match values.iter_mut().find(|(known, _)| *known == value) {
                Some((_, who)) => who.push(&one.name),
                None => values.push((value, vec![&one.name])),
            }
        }
        let values: Vec<String> =
            values.into_iter().map(|(value, who)| format!("{value} ({})", who.join(", "))).collect();
        format!("{name}: {}", values.join(", "))
    };
    names.iter().map(line).collect()
}

/// Leaves the scenario out of names where the job alone is enough to tell contestants apart.
pub fn shorten(contestants: &mut [Contestant]) {
    let names: Vec<String> = contestants.iter().map(|one| one.name.clone()).collect();
    let job = |name: &str| name.rsplit_once(':').map_or(name, |(_, job)| job).to_owned();
    for contestant in contestants {
        let short = job(&contestant.name);
        if names.iter().filter(|name| job(name) == short || **name == short).count() == 1 {
            contestant.name = short;
        }
    }
}

/// Which table of a scenario a job stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobTable {
    /// `[[collective]]`.
    Collective,
    /// `[[host]]`.
    Host,
    /// `[[armed.reduction]]`.
    Reduction,
    /// `[[pbv.collective]]`.
    Packets,
}

/// A job of a scenario, alone in it.
#[derive(Debug, Clone)]
pub struct Contestant {
    /// Its name in the results.
    pub name: String,
    /// Scenario file, or the name of a shipped one.
    pub file: String,
    /// Where its job stands, as the first one.
    pub part: JobTable,
    /// How it works, in words.
    pub method: String,
    /// What it computes.
    pub task: Task,
    /// What is set, so that the job is alone.
    pub sets: Vec<String>,
    /// The scenario with all that set.
    pub loaded: Runnable,
}

/// Loads a scenario file, or a shipped one by its name.
///
/// # Errors
/// There is none, or what is wrong with it.
pub fn load(engines: Engines, file: &str, sets: &[String]) -> Result<Runnable, Problems> {
    load_named(engines, Path::new(file), sets)
}

/// The jobs of `FILE` or `FILE:JOB`, each alone, with these values set.
///
/// # Errors
/// The scenario is wrong, or has no such job.
pub fn jobs(engines: Engines, source: &str, sets: &[String]) -> Result<Vec<Contestant>, String> {
    let mut settings: Vec<Setting> = sets.iter().map(|set| Setting::for_all(set)).collect();
    jobs_with(engines, source, 1, &mut settings)
}

/// A value that is set, for all contestants or for one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Whose value: a scenario, a job, or `SCENARIO:JOB`.
    pub name: Option<String>,
    /// `PATH=VALUE`.
    pub set: String,
    /// Whether there is such a contestant.
    pub used: bool,
}

impl Setting {
    /// Reads `PATH=VALUE` or `NAME:PATH=VALUE`. No path has a colon in it, unless in quotes.
    pub fn read(text: &str) -> Self {
        let path = text.split_once('=').map_or(text, |(path, _)| path);
        match path.rfind(':').filter(|_| !path.contains('"')) {
            Some(at) => Self { name: Some(text[..at].to_owned()), set: text[at + 1..].to_owned(), used: false },
            None => Self::for_all(text),
        }
    }

    /// A value of all contestants.
    pub fn for_all(set: &str) -> Self {
        Self { name: None, set: set.to_owned(), used: true }
    }
}

/// The values that hold for a contestant of any of these names.
fn settings_for(settings: &mut [Setting], names: &[String]) -> Vec<String> {
    let mut sets = Vec::new();
    for setting in settings {
        if setting.name.as_ref().is_none_or(|name| names.contains(name)) {
            setting.used = true;
            sets.push(setting.set.clone());
        }
    }
    sets
}

/// As [`jobs`], with values for some contestants only. `times` is how often this source has been named, this time included:
/// from the second time on it is `NAME#2` and so on.
///
/// # Errors
/// As [`jobs`].
pub fn jobs_with(
    engines: Engines,
    source: &str,
    times: usize,
    settings: &mut [Setting],
) -> Result<Vec<Contestant>, String> {
    let whole = Path::new(source).exists() || shipped::find(source).is_some();
    let (file, wanted) = match source.rsplit_once(':').filter(|_| !whole) {
        Some((file, job)) => (file, Some(job)),
        None => (source, None),
    };
    let again = |name: &str| if times > 1 { format!("{name}#{times}") } else { name.to_owned() };
    let stem = again(shipped::stem(file));
    let of_file = [file.to_owned(), shipped::stem(file).to_owned(), stem.clone()];
    let sets = settings_for(settings, &of_file);
    let loaded = load(engines, file, &sets).map_err(|problems| problems.to_string())?;
    let all = parts(&loaded);
    if all.is_empty() {
        return Err(format!("error: {file} has no collective, host or reduction to compare"));
    }
    let these: Vec<&(JobTable, usize, String)> =
        all.iter().filter(|(.., name)| wanted.is_none_or(|wanted| wanted == name)).collect();
    if these.is_empty() {
        let names: Vec<&str> = all.iter().map(|(.., name)| name.as_str()).collect();
        let wanted = wanted.unwrap_or_default();
        return Err(format!(
            "error: {file} has no job \"{wanted}\"; there is {}",
            watershed_scenario_interface::names::one_of(names)
        ));
    }
    let mut list = Vec::new();
    for (part, index, name) in &these {
        let of_job = of_file.iter().map(|file| format!("{file}:{name}")).chain([again(name), name.clone()]);
        let mut own = settings_for(settings, &[&of_file[..], &of_job.collect::<Vec<_>>()].concat());
        let changed =
            (own != sets).then(|| load(engines, file, &own)).transpose().map_err(|problems| problems.to_string())?;
        own.extend(isolating_sets(changed.as_ref().unwrap_or(&loaded), *part, *index));
        let loaded = load(engines, file, &own).map_err(|problems| problems.to_string())?;
        let (task, method) = task(&loaded, *part);
        let name = if all.len() == 1 { stem.clone() } else { format!("{stem}:{name}") };
        list.push(Contestant { name, file: file.to_owned(), part: *part, method, task, sets: own, loaded });
    }
    Ok(list)
}

/// Every job of a scenario: where it stands, its number there, its name.
fn parts(loaded: &Loaded) -> Vec<(JobTable, usize, String)> {
    let scenario = &loaded.scenario;
    let collectives = scenario.collectives.iter().enumerate().filter(|(_, of)| !of.called);
    let collectives = collectives.map(|(at, of)| (JobTable::Collective, at, of.name.clone()));
    let hosts = scenario.hosts.iter().enumerate().map(|(at, of)| (JobTable::Host, at, of.name.clone()));
    let reductions = scenario.armed.iter().flat_map(|armed| armed.reductions.iter().enumerate());
    let reductions = reductions.map(|(at, of)| (JobTable::Reduction, at, of.name.clone()));
    // Rounds that are spread over contexts are one job.
    let packets = scenario.pbv.iter().flat_map(|pbv| &pbv.collectives);
    let packets = packets.filter(|of| of.share.is_none_or(|share| share.number == 0)).enumerate();
    let packets = packets.map(|(at, of)| {
        let name = of.share.and_then(|_| of.name.strip_suffix(".0")).unwrap_or(&of.name);
        (JobTable::Packets, at, name.to_owned())
    });
    collectives.chain(hosts).chain(reductions).chain(packets).collect()
}

fn child<'a>(node: &'a Node, path: &str) -> Option<&'a Node> {
    path.split('.').try_fold(node, |node, step| match &node.value {
        Value::Table(table) => table.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

fn text(node: &Node) -> String {
    let mut out = String::new();
    run_inputs::inline(node, &mut out);
    out
}

/// What is set so that only one job is left.
fn isolating_sets(loaded: &Loaded, part: JobTable, index: usize) -> Vec<String> {
    let (root, scenario) = (loaded.source.root(), &loaded.scenario);
    let only = |path: &str| child(root, &format!("{path}.{index}")).map(|node| format!("{path}=[{}]", text(node)));
    let mut sets = Vec::new();
    match part {
        JobTable::Collective => {
            if scenario.collectives.len() > 1 {
                sets.extend(only("collective"));
            }
            if !scenario.hosts.is_empty() {
                sets.push("host=[]".into());
            }
        }
        JobTable::Host => {
            if !scenario.collectives.is_empty() {
                sets.push("collective=[]".into());
            }
            if scenario.hosts.len() > 1 || scenario.hosts[index].like.is_some() {
                sets.extend(
                    child(root, &format!("host.{index}")).map(|node| format!("host=[{}]", host(loaded, index, node))),
                );
            }
        }
        JobTable::Reduction => {
            let reductions = &scenario.armed.as_ref().map_or(&[][..], |armed| &armed.reductions);
            if reductions.len() > 1 {
                // Strangers that disturb another reduction go with it.
                let strangers = child(root, "armed.stranger").map(|node| &node.value);
                if let Some(Value::Array(items)) = strangers {
                    let own = |item: &&Node| matches!(child(item, "reduction").map(|name| &name.value), Some(Value::String(name)) if *name == reductions[index].name);
                    let kept: Vec<String> = items.iter().filter(own).map(text).collect();
                    sets.push(format!("armed.stranger=[{}]", kept.join(", ")));
                }
                sets.extend(only("armed.reduction"));
            }
        }
        JobTable::Packets => {
            if parts(loaded).iter().filter(|(part, ..)| *part == JobTable::Packets).count() > 1 {
                sets.extend(only("pbv.collective"));
            }
        }
    }
    sets
}

/// A host without the collective it is like: all that it took from that one is written out; its data are drawn as
/// that one draws them when it is alone.
fn host(loaded: &Loaded, index: usize, node: &Node) -> String {
    let host = &loaded.scenario.hosts[index];
    let Some(model) = host.like.and_then(|like| loaded.scenario.collectives.get(like)) else { return text(node) };
    let Value::Table(entries) = &node.value else { return text(node) };
    let mut pairs: Vec<String> = entries
        .iter()
        .filter(|(key, _)| *key != "like")
        .map(|(key, value)| format!("{key} = {}", text(value)))
        .collect();
    let ranks: Vec<String> = host.ranks.iter().map(ToString::to_string).collect();
    pairs.push(format!("op = \"{}\"", NamedValues::name(host.op)));
    pairs.push(format!("dtype = \"{}\"", NamedValues::name(host.dtype)));
    pairs.push(format!("elements = {}", host.elements));
    pairs.push(format!("participants = [{}]", ranks.join(", ")));
    if let Data::Random(distribution) = model.data
        && let Ok(serde_json::Value::String(word)) = serde_json::to_value(distribution)
    {
        pairs.push(format!("random = \"{word}\", draws = \"job\""));
    }
    format!("{{ {} }}", pairs.join(", "))
}

fn operation(op: Op, round: Round, flush_to_zero: bool) -> Option<String> {
    if op == Op::Barrier {
        return None;
    }
    let mut text = NamedValues::name(op).to_owned();
    if round != Round::NearestEven {
        text = format!("{text} {}", NamedValues::name(round));
    }
    Some(if flush_to_zero { format!("{text} flush-to-zero") } else { text })
}

/// The collectives that the first one of a PBV scenario consists of: one for each context that its rounds are spread over.
pub(super) fn contexts(scenario: &Scenario) -> &[Collective] {
    let all = scenario.pbv.as_ref().map_or(&[][..], |pbv| &pbv.collectives);
    let count = all.first().and_then(|of| of.share).map_or(1, |share| share.count as usize);
    &all[..count.min(all.len())]
}

/// What the only job computes, and how.
fn task(loaded: &Loaded, part: JobTable) -> (Task, String) {
    let scenario = &loaded.scenario;
    let link = &scenario.link;
    let link_gbps =
        f64::from(link.flit_bits) * scenario.clock.frequency_mhz / 1000.0 / f64::from(link.cycles_per_flit.max(1));
    let task = |kind: &str, operation: Option<String>, dtype: String, elements: u64, end_points: usize| {
        let dtype = (!kind.ends_with("barrier")).then_some(dtype);
        Task { kind: kind.into(), operation, dtype, elements, end_points: end_points as u64, link_gbps }
    };
    match part {
        JobTable::Collective => {
            let of = &scenario.collectives[0];
            let operation = of.op.and_then(|op| operation(op, of.round, false));
            let mut dtype = NamedValues::name(of.dtype).to_owned();
            if let Some(wide) = of.accumulate {
                dtype = format!("{dtype} (accumulated in {})", NamedValues::name(wide.accumulator()));
            }
            let elements = if of.kind == CollectiveKind::Barrier { 1 } else { of.elements };
            let task = task(of.kind.name(), operation, dtype, elements, of.participants.list.len());
            (task, "PIUMA: registers in every switch".into())
        }
        JobTable::Host => {
            let of = &scenario.hosts[0];
            let kind = if of.file.algorithm.name() == "send-loop" { "broadcast" } else { "allreduce" };
            let operation = (kind == "allreduce").then(|| operation(of.op, Round::NearestEven, false)).flatten();
            let task = task(kind, operation, NamedValues::name(of.dtype).into(), of.elements, of.ranks.len());
            (task, format!("software: {}", of.file.algorithm.name()))
        }
        JobTable::Reduction => {
            let of = &scenario.armed.as_ref().expect("it has a reduction").reductions[0];
            let code = of.opcode();
            let kind = if code.op == Op::Barrier { "barrier" } else { "allreduce" };
            let elements = u64::from(of.file.rounds) * of.row_length().max(1) as u64;
            let operation = operation(code.op, code.round, code.flush_to_zero);
            let task = task(kind, operation, NamedValues::name(code.dtype).into(), elements, of.participants as usize);
            let software = of.file.method == watershed_scenario_interface::armed::file::Method::Software;
            (task, if software { "software: binomial tree of messages" } else { "armed engines in the links" }.into())
        }
        JobTable::Packets => {
            let of = &scenario.pbv.as_ref().expect("it has a collective").collectives[0];
            let kind = match of.kind {
                KindFile::Allreduce => "allreduce",
                KindFile::Barrier => "barrier",
                KindFile::InterGroupBarrier => "inter-group barrier",
                KindFile::Multicast => "broadcast",
            };
            let operation =
                (of.kind == KindFile::Allreduce).then(|| operation(of.op, of.round, of.flush_to_zero)).flatten();
            let all = contexts(scenario);
            let rounds: u64 = all.iter().map(|of| u64::from(of.rounds)).sum();
            let elements = rounds * u64::from(of.elements.max(1));
            let task = task(kind, operation, NamedValues::name(of.dtype).into(), elements, of.participants.len());
            let order = if of.order == watershed_scenario_interface::pbv::file::OrderFile::Pbv {
                ", in the order of bits"
            } else {
                ""
            };
            let count = if all.len() == 1 { String::new() } else { format!(", {} contexts", all.len()) };
            (task, format!("packet engines (PBV){count}{order}"))
        }
    }
}

impl Contestant {
    /// All participants.
    pub fn participants(&self) -> Vec<u32> {
        let scenario = &self.loaded.scenario;
        match self.part {
            JobTable::Collective => scenario.collectives[0].participants.list.clone(),
            JobTable::Host => scenario.hosts[0].ranks.clone(),
            JobTable::Reduction => {
                let of = &scenario.armed.as_ref().expect("it has a reduction").reductions[0];
                std::iter::once(of.root).chain(of.leaves.iter().copied()).collect()
            }
            JobTable::Packets => {
                scenario.pbv.as_ref().expect("it has a collective").collectives[0].participants.list.clone()
            }
        }
    }

    /// Who is late or dies: the participant with the highest number that is neither root nor source.
    pub fn victim(&self) -> u32 {
        let scenario = &self.loaded.scenario;
        let special = match self.part {
            JobTable::Collective => scenario.collectives[0].receiver,
            JobTable::Host => None,
            JobTable::Reduction => scenario.armed.as_ref().map(|armed| armed.reductions[0].root),
            JobTable::Packets => scenario.pbv.as_ref().map(|pbv| pbv.collectives[0].source),
        };
        let all = self.participants();
        let usual = all.iter().copied().filter(|end| Some(*end) != special).max();
        usual.or(all.first().copied()).unwrap_or(0)
    }

    /// The path of the job's table.
    fn path(&self) -> &'static str {
        match self.part {
            JobTable::Collective => "collective.0",
            JobTable::Host => "host.0",
            JobTable::Reduction => "armed.reduction.0",
            JobTable::Packets => "pbv.collective.0",
        }
    }

    /// An array of the scenario with more elements at its end.
    fn extended_array(&self, path: &str, more: &[String]) -> String {
        let there = match child(self.loaded.source.root(), path).map(|node| &node.value) {
            Some(Value::Array(items)) => items.iter().map(text).collect(),
            _ => Vec::new(),
        };
        let all: Vec<String> = there.into_iter().chain(more.iter().cloned()).collect();
        format!("{path}=[{}]", all.join(", "))
    }

    /// What is set so that participants are late by this many cycles on top of what they are already; in the first
    /// round only, or in each.
    pub fn sets_for_late(&self, by: &[(u32, u64)], first_only: bool) -> Vec<String> {
        let scenario = &self.loaded.scenario;
        let path = self.path();
        match self.part {
            JobTable::Collective | JobTable::Host => {
                let delays = match self.part {
                    JobTable::Collective => &scenario.collectives[0].start.delays,
                    _ => &scenario.hosts[0].delays,
                };
                let cycles = |(at, end): (usize, &u32)| {
                    let more: u64 = by.iter().filter(|(late, _)| late == end).map(|(_, cycles)| cycles).sum();
                    (delays.get(at).copied().unwrap_or(0) + more).to_string()
                };
                let list: Vec<String> = self.participants().iter().enumerate().map(cycles).collect();
                vec![format!("{path}.delay_cycles=[{}]", list.join(", "))]
            }
            JobTable::Reduction | JobTable::Packets => {
                let round = if first_only { ", round = 0" } else { "" };
                let entry = |(end, cycles): &(u32, u64)| format!("{{ end_point = {end}, cycles = {cycles}{round} }}");
                let entries: Vec<String> = by.iter().map(entry).collect();
                let mut sets = vec![self.extended_array(&format!("{path}.late"), &entries)];
                if let Some(armed) = scenario.armed.as_ref().filter(|_| self.part == JobTable::Reduction) {
                    let of = &armed.reductions[0];
                    for (key, cycles) in [
                        ("retry_after_cycles", of.file.retry_after_cycles.known()),
                        ("patience_cycles", of.file.patience_cycles.known()),
                    ] {
                        sets.push(format!("{path}.{key}={}", cycles.min(u64::from(u32::MAX))));
                    }
                }
                sets
            }
        }
    }

    /// What is set so that a participant, by number and name, is dead from a cycle on; and that in words.
    pub fn sets_for_dead(&self, end: u32, name: &str, from: u64) -> (Vec<String>, String) {
        match self.part {
            JobTable::Collective | JobTable::Host => {
                let never = self.loaded.scenario.limits.max_cycles;
                (
                    self.sets_for_late(&[(end, never)], true),
                    "never starts: nothing nearer can be said in this family".into(),
                )
            }
            JobTable::Reduction | JobTable::Packets => {
                let table = if self.part == JobTable::Reduction { "armed" } else { "pbv" };
                let fault = format!("{{ effect = \"dead\", at = \"{name}\", from_cycle = {from} }}");
                (
                    vec![self.extended_array(&format!("{table}.fault"), &[fault])],
                    format!("is dead from cycle {from} on"),
                )
            }
        }
    }

    /// The same job with a vector of this many elements. Where they do not fill the last frame, it is filled up with further ones,
    /// which are not counted.
    ///
    /// # Errors
    /// The job has no vector, or what is wrong with its length.
    pub fn of_length(&self, elements: u64) -> Result<Contestant, String> {
        let mut changed = self.with_sets(&self.elements(elements)?)?;
        changed.task.elements = elements;
        Ok(changed)
    }

    /// What is set so that the vector has this many elements.
    ///
    /// # Errors
    /// The job has no vector.
    fn elements(&self, elements: u64) -> Result<Vec<String>, String> {
        let path = self.path();
        match self.part {
            JobTable::Collective | JobTable::Host => Ok(vec![format!("{path}.elements={elements}")]),
            JobTable::Reduction => {
                let of = &self.loaded.scenario.armed.as_ref().expect("it has a reduction").reductions[0];
                let row = of.row_length() as u64;
                if row == 0 {
                    return Err("a barrier has no elements".into());
                }
                Ok(vec![format!("{path}.rounds={}", elements.div_ceil(row))])
            }
            JobTable::Packets => {
                let of = &self.loaded.scenario.pbv.as_ref().expect("it has a collective").collectives[0];
                let most = u64::from(watershed_pbv_interface::packet::MAX_PAYLOAD_BYTES as u32 / 8 * of.dtype.lanes());
                // The fewest frames of one length, as a job has them.
                let frames = elements.div_ceil(most).max(1);
                Ok(vec![format!("{path}.elements={}", elements.div_ceil(frames)), format!("{path}.rounds={frames}")])
            }
        }
    }

    /// The same job with more values set.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn load_with(&self, sets: &[String]) -> Result<Runnable, String> {
        let all: Vec<String> = self.sets.iter().chain(sets).cloned().collect();
        load(self.loaded.engines, &self.file, &all).map_err(|problems| problems.to_string())
    }

    /// The same, as a contestant.
    ///
    /// # Errors
    /// As [`Contestant::load_with`].
    pub fn with_sets(&self, sets: &[String]) -> Result<Contestant, String> {
        let loaded = self.load_with(sets)?;
        let (task, method) = task(&loaded, self.part);
        let sets = self.sets.iter().chain(sets).cloned().collect();
        Ok(Contestant { method, task, sets, loaded, ..self.clone() })
    }

    /// The word for the family.
    pub fn family(&self) -> &'static str {
        self.loaded.scenario.family.name()
    }
}
