//! Running a PBV scenario.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use serde_json::{Map, Value as Json};

use super::build::{BuildOptions, Ready, build};
use super::config::{Collective, Group, Pbv};
use super::file::{KindFile, TreeFile};
use super::golden::{Reader, Value};
use super::ladder::ladder;
use super::mail;
use super::result::{CollectiveResult, EnginesResult, PbvResult, RoundResult};
use crate::Loaded;
use crate::armed::file::EffectFile;
use crate::armed::result::Outcomes;
use crate::counts::counts;
use crate::job_result::{Spread, latency};
use crate::names::Named;
use crate::result::{Check, Document, Outcome, ResultData, hex};
use crate::run::family::{Family, Report};
use crate::run::options::{Flip, Progress, RunError, RunOptions};
use crate::run::system::{PbvSystem, System, Views};
use crate::run::watchdog::{Watchdog, not_done, stands};
use crate::sources::Sources;
use crate::why;
use watershed_arith::{Flags, unpack_lanes};
use watershed_fabric::fault::FaultyLink;
use watershed_kernel::Cycle;
use watershed_pbv::gather::Gather;
use watershed_pbv::node::Node;
use watershed_pbv::packet::{Body, HEADER_BYTES, Message, PBV_ENTRIES, Status};
use watershed_pbv::system::Wired;
use watershed_pbv::system::engines;
use watershed_probe::ladder::Ladder;
use watershed_state::{Loader, Mismatch, Saver};

/// Rounds that are listed although they completed at once.
const LISTED: usize = 16;
/// Rounds that are listed at all.
const MOST_LISTED: usize = 1000;
/// Bytes of the frame of a large result.
const FRAME_BYTES: usize = 1056;

/// A system of the PBV family under way.
pub(crate) struct Run<'a> {
    loaded: &'a Loaded,
    pbv: &'a Pbv,
    ready: Ready<()>,
    /// End points that a dead link cuts off: nobody waits for them.
    excused: BTreeSet<u16>,
}

impl<'a> Run<'a> {
    /// Builds the system of a scenario.
    ///
    /// # Errors
    /// What is wrong with the configuration, at its place.
    pub(crate) fn build(loaded: &'a Loaded, options: &RunOptions<'_>) -> Result<(Box<System>, Run<'a>), RunError> {
        let log = options.ladder || options.why.is_some();
        let (no_checks, threads) = (options.no_checks, options.divided());
        let ready = build(loaded, BuildOptions { no_checks, log, threads, given: false })?;
        let (system, ready) = ready.split();
        Ok((watershed_pbv::system::simulation(system), Run::new(loaded, ready)))
    }

    /// What runs on a system in cycle 0.
    pub(crate) fn new(loaded: &'a Loaded, ready: Ready<()>) -> Run<'a> {
        let pbv = loaded.scenario.pbv.as_ref().expect("the PBV family has its table");
        let dead = |device: &&u16| {
            let switch = (u32::from(**device) / pbv.device_stride * pbv.device_stride) as u16;
            let name = |device: u16| ready.names.get(&device).map_or("", String::as_str);
            let of = |device: u16| pbv.faults.iter().any(|f| f.effect == EffectFile::Dead && f.at == name(device));
            of(**device) || of(switch)
        };
        let excused = ready.devices.iter().filter(dead).copied().collect();
        Run { loaded, pbv, ready, excused }
    }

    /// The run, looking at its system.
    fn at<'r>(&'r self, system: &'r PbvSystem) -> At<'r, 'r> {
        At { run: self, system }
    }
}

/// A run and the system that it looks at.
struct At<'r, 'a> {
    run: &'r Run<'a>,
    system: &'r PbvSystem,
}

impl<'a> Deref for At<'_, 'a> {
    type Target = Run<'a>;

    fn deref(&self) -> &Run<'a> {
        self.run
    }
}

impl At<'_, '_> {
    fn node(&self, end: u32) -> &Node {
        self.system.end(end as usize)
    }

    fn name(&self, device: u16) -> String {
        self.ready.names.get(&device).cloned().unwrap_or_else(|| format!("device {device:#06x}"))
    }

    /// End points that are not done.
    fn not_done(&self) -> impl Iterator<Item = &Node> {
        let ends = self.system.ends().take(self.ready.devices.len());
        let ends = ends.filter(|node| !self.excused.contains(&node.device()));
        ends.filter(|node| node.unsent() > 0 || self.pbv.collectives.iter().any(|of| node.waits(of.cc_id)))
    }

    /// Names of the first of them.
    fn open(&self) -> Vec<String> {
        self.not_done().map(|node| self.name(node.device())).take(8).collect()
    }

    fn totals(&self, pbv: &mut PbvResult) {
        let sum: &mut EnginesResult = &mut pbv.engines;
        let add = |map: &mut Map<String, Json>, key: &str, count: u64| {
            let before = map.get(key).and_then(Json::as_u64).unwrap_or(0);
            map.insert(key.to_owned(), (before + count).into());
        };
        for engine in engines(self.system) {
            let readings = &engine.registers().readings;
            sum.frames_in += u64::from(readings.frames_in);
            sum.frames_out += u64::from(readings.frames_out);
            sum.waited_cycles += u64::from(readings.waited);
            sum.queue_peak = sum.queue_peak.max(readings.queue_peak);
            for status in Status::ALL {
                let count = readings.refused[usize::from(status.number())];
                if count > 0 {
                    add(&mut sum.refused, status.name(), count.into());
                }
            }
            if let Some((device, cc_id, status)) = readings.failure {
                let (at, who) = (self.name(engine.cfg().device), self.name(device));
                let said = if status == Status::Failed { ", by its own account" } else { "" };
                sum.failure_points.push(format!("{at}: {who} in context {cc_id}{said}"));
            }
        }
        for node in self.system.ends().take(self.ready.devices.len()) {
            for status in Status::ALL {
                let count = node.refused()[usize::from(status.number())];
                if count > 0 {
                    add(&mut pbv.refused_by_nodes, status.name(), count.into());
                }
            }
        }
        for link in self.system.bumps().flatten().filter_map(Wired::fault) {
            let map = pbv.faults.get_or_insert_default();
            for (key, value) in &counts(&link.counts()) {
                add(map, key, value.as_u64().unwrap_or(0));
            }
        }
    }

    /// The answers of a run at its participants: device, cycle of the contribution, cycle, words, flags, error.
    fn answers(&self, of: &Collective) -> BTreeMap<u32, Vec<Answer>> {
        let mut runs: BTreeMap<u32, Vec<Answer>> = (1..=of.rounds).map(|run| (run, Vec::new())).collect();
        let sent = self.cast_cycles(of);
        for &end in of.participants.iter() {
            let (node, device) = (self.node(end), self.ready.devices[end as usize]);
            if of.kind == KindFile::Multicast {
                for (cycle, packet) in node.mail() {
                    let header = &packet.header;
                    if header.message == Message::Multicast && header.cc_id == of.cc_id {
                        let met = sent.get(&header.run).copied().unwrap_or(*cycle);
                        let words = packet.words().to_vec();
                        let answer = Answer { device, met, cycle: *cycle, words, flags: Flags::NONE, error: None };
                        runs.entry(header.run).or_default().push(answer);
                    }
                }
                continue;
            }
            for outcome in node.outcomes(of.cc_id) {
                let (met, cycle, words) = (outcome.met, outcome.cycle, outcome.words.clone());
                let answer = Answer { device, met, cycle, words, flags: outcome.flags, error: outcome.error };
                runs.entry(outcome.run).or_default().push(answer);
            }
        }
        runs
    }

    /// When the last member of the other groups of an inter-group barrier arrived.
    fn others_met(&self, of: &Collective, run: u32) -> Option<u64> {
        let group = of.group?;
        let members = self.others(group);
        let outcomes = members.flat_map(|(end, cc_id)| self.node(end).outcomes(cc_id));
        outcomes.filter(|outcome| outcome.run == run).map(|outcome| outcome.met).max()
    }

    /// Members of the other groups of an inter-group barrier, with their contexts.
    fn others(&self, group: Group) -> impl Iterator<Item = (u32, u16)> {
        let others =
            self.pbv.collectives.iter().filter(move |other| {
                other.group.is_some_and(|at| at.first == group.first && at.number != group.number)
            });
        others.flat_map(|other| other.participants.iter().map(move |&end| (end, other.cc_id)))
    }

    /// A member of another group that never made its contribution to a run in which this group went on without an error.
    fn never_came(&self, of: &Collective, run: u32, answers: &[Answer]) -> Option<String> {
        let gone_on = answers.iter().find(|answer| answer.error.is_none())?;
        let came = |&(end, cc_id): &(u32, u16)| self.node(end).made(cc_id).iter().any(|&(made, _)| made == run);
        let (end, _) = self.others(of.group?).find(|member| !came(member))?;
        let (who, absent) = (self.name(gone_on.device), self.name(self.ready.devices[end as usize]));
        Some(format!("{who} of {} went on, and {absent} of another group never came", of.name))
    }

    /// A member of a group that went on before the last of the other groups had arrived.
    fn too_early(&self, of: &Collective, others: u64, answers: &[Answer]) -> Option<String> {
        let early = answers.iter().find(|answer| answer.cycle <= others)?;
        let (who, name) = (self.name(early.device), &of.name);
        Some(format!("{who} of {name} went on in cycle {}, the last of the others met in {others}", early.cycle))
    }

    /// The runs of a collective that every participant has the answer of, without an error.
    fn ended(&self, of: &Collective) -> why::pbv::Runs {
        let multicast = of.kind == KindFile::Multicast;
        let receivers = of.participants.iter().filter(|&&end| !(multicast && end == of.source)).count();
        let whole = self
            .answers(of)
            .into_iter()
            .filter(|(_, answers)| answers.len() == receivers && answers.iter().all(|answer| answer.error.is_none()));
        let ended = whole.filter_map(|(run, answers)| {
            let reverse = |answer: &Answer| std::cmp::Reverse(answer.device);
            if let Some(others) = self.others_met(of, run) {
                // A member of a group waits for the other groups and for itself.
                let from = |answer: &Answer| answer.met.max(others);
                let took = |answer: &&Answer| (answer.cycle.saturating_sub(from(answer)), reverse(answer));
                let slowest = answers.iter().max_by_key(took)?;
                let (device, cycle) = (slowest.device, slowest.cycle);
                return Some(why::pbv::Ended { run, device, cycle, met: from(slowest).min(cycle) });
            }
            let last = answers.iter().max_by_key(|answer| (answer.cycle, reverse(answer)))?;
            let met = answers.iter().map(|answer| answer.met).max()?;
            Some(why::pbv::Ended { run, device: last.device, cycle: last.cycle, met })
        });
        let source = self.ready.devices[of.source as usize];
        why::pbv::Runs { name: of.name.clone(), cc_id: of.cc_id, source, ended: ended.collect() }
    }

    /// When the first copy of a multicast arrived anywhere, by run.
    fn cast_cycles(&self, of: &Collective) -> BTreeMap<u32, u64> {
        let mut first: BTreeMap<u32, u64> = BTreeMap::new();
        if of.kind == KindFile::Multicast {
            for &end in of.participants.iter() {
                for (cycle, packet) in self.node(end).mail() {
                    let header = &packet.header;
                    if header.message == Message::Multicast && header.cc_id == of.cc_id {
                        let first = first.entry(header.run).or_insert(*cycle);
                        *first = (*first).min(*cycle);
                    }
                }
            }
        }
        first
    }

    /// Who was reported missing in a run: to the source, or in the status of an engine.
    fn missing(&self, of: &Collective, run: u32) -> Vec<String> {
        let mut devices: BTreeSet<u16> = BTreeSet::new();
        for (_, packet) in self.node(of.source).mail() {
            if packet.header.cc_id == of.cc_id
                && (packet.header.run == run || packet.header.is_about_set_up())
                && let Body::Missing { devices: list, .. } = &packet.body
            {
                devices.extend(list);
            }
        }
        for engine in engines(self.system) {
            let of_run = engine.ce().reported().iter().filter(|(cc_id, at, _)| (*cc_id, *at) == (of.cc_id, run));
            devices.extend(of_run.map(|&(_, _, device)| device));
        }
        devices.into_iter().map(|device| self.name(device)).collect()
    }

    fn collective(&self, index: usize, oracle: bool) -> (CollectiveResult, Vec<Vec<u64>>, Vec<Check>) {
        let of = &self.pbv.collectives[index];
        let plan = &self.ready.collectives[index];
        let rows = &self.ready.operands[index];
        let multicast = of.kind == KindFile::Multicast;
        let operands =
            of.participants.iter().zip(rows).map(|(&end, row)| (self.ready.devices[end as usize], row.as_slice()));
        let gather = self.node(of.source).gather(of.cc_id);
        let divide = of.mean.then(|| of.participants.len() as u32);
        let reader = oracle.then(|| Reader::new(self.system, plan, operands.collect()).at_the_ends(gather, divide));
        let receivers: Vec<u32> =
            of.participants.iter().copied().filter(|&end| !(multicast && end == of.source)).collect();
        let wanted = receivers.len();
        let asked: BTreeSet<u32> = engines(self.system)
            .flat_map(|engine| engine.ce().asked())
            .filter(|(cc_id, _)| *cc_id == of.cc_id)
            .map(|&(_, run)| run)
            .collect();

        let mut result = CollectiveResult {
            name: of.name.clone(),
            kind: match of.kind {
                KindFile::Allreduce => "allreduce",
                KindFile::Barrier => "barrier",
                KindFile::InterGroupBarrier => "inter-group-barrier",
                KindFile::Multicast => "broadcast",
            }
            .into(),
            op: (of.kind == KindFile::Allreduce).then(|| of.op_name().into()),
            dtype: (of.elements > 0).then(|| Named::name(of.dtype).into()),
            cc_id: of.cc_id,
            group: of.group.map(|group| group.number),
            groups: of.group.map(|group| group.count),
            source: self.name(plan.source),
            master: self.name(plan.tree.device),
            engines: plan.tree.preorder().len() as u64,
            levels: plan.tree.height(),
            participants: of.participants.len() as u64,
            elements_per_round: of.elements.into(),
            merged_by_source: gather.map(Gather::count),
            outcomes: Outcomes::default(),
            start_cycle: None,
            end_cycle: None,
            latency_cycles: None,
            latency_ns: None,
            round_latency_cycles: None,
            distinct_values: 0,
            rounds: Vec::new(),
            more_rounds: 0,
            bit_exact: None,
        };
        let (mut latencies, mut distinct, mut data) = (Vec::new(), BTreeSet::new(), Vec::new());
        let (mut checked, mut wrong) = (0u64, None);
        for (run, answers) in self.answers(of) {
            let first = answers.first();
            let end = answers.iter().map(|answer| answer.cycle).max();
            let met = answers.iter().map(|answer| answer.met).max();
            result.start_cycle = result.start_cycle.into_iter().chain(answers.iter().map(|a| a.met)).min();
            result.end_cycle = result.end_cycle.max(end);
            // Nobody can answer one whose link is dead.
            let lost = receivers.iter().filter(|&&end| {
                let device = self.ready.devices[end as usize];
                self.excused.contains(&device) && !answers.iter().any(|answer| answer.device == device)
            });
            let others = self.others_met(of, run);
            let everybody = !answers.is_empty() && answers.len() + lost.count() >= wanted;
            let error = answers.iter().any(|answer| answer.error.is_some());
            let mut missing = self.missing(of, run);
            // The nodes without an answer, if no others are named.
            if error && missing.is_empty() {
                let without = answers.iter().filter(|answer| answer.error.is_some());
                missing.extend(without.map(|answer| self.name(answer.device)));
            }
            // A source that is cut off issues nothing.
            let source = self.ready.devices[of.source as usize];
            if answers.is_empty() && missing.is_empty() && self.excused.contains(&source) {
                missing.push(self.name(source));
            }
            // The source of a multicast may not know that it arrived; one that takes no part and gives up is all that ends the run.
            let outcomes = self.node(of.source).outcomes(of.cc_id);
            let gave_up = outcomes.iter().any(|outcome| outcome.run == run && outcome.error.is_some());
            let unsure = gave_up && (multicast || answers.is_empty());
            let complete = everybody && !error && !unsure;
            if (of.posted || unsure) && !complete {
                // Nobody is told of a posted multicast that gets lost, but for those who look at the document.
                let device = |end: u32| self.ready.devices[end as usize];
                let got = |end: u32| answers.iter().any(|answer| answer.device == device(end));
                missing.extend(receivers.iter().filter(|&&end| !got(end)).map(|&end| self.name(device(end))));
                if missing.is_empty() {
                    missing.push(self.name(source));
                }
                missing.sort();
                missing.dedup();
            } else if complete && of.group.is_none() {
                // What was missing while the context was set up came in the end.
                missing.clear();
            }
            let cast = || cast_value(&rows[0], of.words() as usize, run);
            let mut values = match &reader {
                Some(_) if multicast => vec![cast()],
                Some(reader) => reader.values(run),
                None => Vec::new(),
            };
            // A run that is begun anew is answered more than once. All answers that are taken for the result are of one time; one
            // that is marked as an error may be of another, when less was there.
            let (marked, taken): (Vec<&Answer>, Vec<&Answer>) =
                answers.iter().partition(|answer| answer.error.is_some());
            let agree = |value: &Value, answers: &[&Answer]| {
                answers.iter().all(|&answer| different(of, value, answer).is_none())
            };
            let lone = marked.iter().copied().find(|&answer| !values.iter().any(|value| agree(value, &[answer])));
            let leading = if taken.is_empty() { &marked[..marked.len().min(1)] } else { &taken[..] };
            let held = given(&values, leading, agree);
            let value = if values.is_empty() { None } else { Some(values.swap_remove(held.unwrap_or(0))) };
            let mut fault = None;
            if let (Some(value), Some(reader)) = (&value, &reader)
                && first.is_some()
            {
                checked += 1;
                fault = taken.into_iter().chain(lone).find_map(|answer| different(of, value, answer));
                if fault.is_none() && !multicast {
                    // A group goes on when the others are complete, whether it is or not.
                    fault = reader.not_once(value, complete && of.group.is_none());
                }
                if fault.is_none() && of.group.is_some() {
                    fault = self.never_came(of, run, &answers);
                }
                if fault.is_none() && !error {
                    fault = others.and_then(|others| self.too_early(of, others, &answers));
                }
                if fault.is_none() && answers.len() > wanted {
                    fault = Some(format!("{} answers for {wanted} nodes", answers.len()));
                }
            }
            // A group whose members went on although it is incomplete itself made the others go on with an error.
            let whole = complete && (of.group.is_none() || missing.is_empty());
            let outcomes = &mut result.outcomes;
            let (slot, outcome) = match () {
                () if fault.is_some() => (&mut outcomes.silent, "silent"),
                () if whole && asked.contains(&run) => (&mut outcomes.after_retry, "after-retry"),
                () if whole => (&mut outcomes.complete, "complete"),
                () if error || !missing.is_empty() => (&mut outcomes.incomplete, "incomplete"),
                () => (&mut outcomes.open, "open"),
            };
            *slot += 1;
            if let Some(fault) = &fault {
                wrong.get_or_insert_with(|| format!("run {run}: {fault}"));
            }
            // Who goes on when others have arrived waits for them, and for nobody of his own group.
            let latency = match others {
                Some(others) => answers.iter().map(|answer| answer.cycle.saturating_sub(answer.met.max(others))).max(),
                None => end.zip(met).map(|(end, met)| end.saturating_sub(met)),
            };
            if complete {
                latencies.extend(latency);
                if let Some(answer) = first {
                    distinct.insert(answer.words.clone());
                    data.push(elements(of, &answer.words));
                }
            }
            if result.rounds.len() >= MOST_LISTED || (outcome == "complete" && result.rounds.len() >= LISTED) {
                result.more_rounds += 1;
                continue;
            }
            let text = |words: &[u64]| hex(of.dtype, self.loaded.scenario.results.head(&elements(of, words)));
            result.rounds.push(RoundResult {
                run,
                end_cycle: end,
                latency_cycles: latency.filter(|_| complete),
                result: first.map_or_else(Vec::new, |answer| text(&answer.words)),
                oracle: value.and_then(|value| value.words).map_or_else(Vec::new, |words| text(&words)),
                flags: first.map_or_else(Vec::new, |answer| answer.flags.names().map(str::to_owned).collect()),
                outcome: outcome.into(),
                missing,
                fault,
            });
        }
        result.distinct_values = if of.same_every_round { distinct.len() as u64 } else { 0 };
        result.round_latency_cycles = Spread::of(&latencies);
        result.end_cycle = result.end_cycle.filter(|_| result.outcomes.all_answered());
        result.latency_cycles = latency(result.start_cycle, result.end_cycle, &result.outcomes);
        result.latency_ns = result.latency_cycles.map(|cycles| self.loaded.scenario.clock.nanoseconds(cycles));
        let mut checks = Vec::new();
        if reader.is_some() {
            result.bit_exact = (checked > 0 && result.outcomes.open == 0).then_some(wrong.is_none());
            let name = format!("right or reported: {}", of.name);
            checks.push(match wrong {
                None => {
                    let what =
                        if multicast { "each node got the source's words" } else { "each participant once in each" };
                    Check::passed(name, format!("{checked} results are the oracle's, {what}"))
                }
                Some(what) => Check::failed(name, what),
            });
        }
        (result, data, checks)
    }
}

impl Family for Run<'_> {
    fn take_derived(&mut self) -> Vec<(String, u64)> {
        std::mem::take(&mut self.ready.derived)
    }

    fn take_sources(&mut self) -> Option<Sources> {
        self.ready.sources.take()
    }

    fn flip(&mut self, _: &mut System, _flip: Flip<'_>) -> Result<(), RunError> {
        let what = "--flip is for PIUMA's engines; faults of the PBV family are in the scenario, [[pbv.fault]]";
        Err(RunError::Usage(what.into()))
    }

    fn watchdog(&self, system: &System) -> Watchdog {
        let limits = &self.loaded.scenario.limits;
        let (jobs, plan) = (self.pbv.collectives.len(), system.plan());
        // While the frames of a larger engine's participants pass its one port, nothing else is seen of them.
        let wide = u64::from(self.loaded.scenario.link.cycles_per_flit);
        let cut = self.loaded.scenario.link.cut();
        let larger = self.pbv.collectives.iter().filter(|of| of.tree == TreeFile::Monolithic);
        let larger = larger.filter(|of| of.participants.len() > PBV_ENTRIES);
        let passing = larger
            .map(|of| of.participants.len() as u64 * cut.flits(HEADER_BYTES + 8 * of.words() as usize) as u64 * wide)
            .sum::<u64>();
        let patience = if limits.watchdog_cycles == 0 { 0 } else { limits.watchdog_cycles + passing };
        Watchdog::of_frames(patience, jobs, plan, cut.flits(FRAME_BYTES) as u64)
    }

    /// A collective stands if work is left and no watchdog, task, patience or delay of its is pending (requirement K-WD-1).
    /// Others go on meanwhile, and must not hide it.
    fn standing(&self, system: &System, watchdog: &mut Watchdog) -> Option<String> {
        let (system, now) = (system.pbv(), system.now());
        let of = |thing: usize| &self.pbv.collectives[thing];
        let nodes = || {
            let nodes = system.ends().take(self.ready.devices.len());
            nodes.filter(|node| !self.excused.contains(&node.device()))
        };
        // The groups of an inter-group barrier wait for each other.
        let first = |of: &Collective| of.group.map(|group| group.first);
        let together = |of: &Collective, other: &Collective| {
            of.cc_id == other.cc_id || first(of).is_some() && first(of) == first(other)
        };
        let advanced = |thing| nodes().filter_map(|node| node.advanced(of(thing).cc_id)).reduce(|a, b| a + b);
        let expects = |thing| {
            let others = self.pbv.collectives.iter().filter(|other| together(of(thing), other));
            others.map(|other| other.cc_id).any(|cc_id| {
                nodes().any(|node| node.expects(cc_id, now))
                    || system.bumps().flatten().any(|at| at.expects(cc_id, now))
            })
        };
        let (since, thing) = watchdog.first(now, advanced, expects)?;
        Some(stands(now, &of(thing).name, since))
    }

    fn is_over(&self, system: &System) -> bool {
        self.at(system.pbv()).not_done().next().is_none()
    }

    fn at_limit(&self, system: &System) -> Option<String> {
        let (open, flits) = (self.at(system.pbv()).open(), system.live_flits());
        let who = if open.is_empty() { String::new() } else { format!("; {}", not_done(&open)) };
        (!open.is_empty() || flits > 0).then(|| format!("{flits} flits are queued or under way{who}"))
    }

    fn loses_traffic(&self, system: &System) -> bool {
        let links = system.pbv().bumps();
        links.flatten().filter_map(Wired::fault).map(FaultyLink::counts).any(|of| of.dead + of.given_up > 0)
    }

    fn left(&self, system: &System) -> String {
        not_done(&self.at(system.pbv()).open())
    }

    fn cycles(&self, system: &System, outcome: Outcome) -> Cycle {
        if outcome == Outcome::Finished { system.alive_until() } else { system.now() }
    }

    fn progress(&self, system: &System) -> Progress {
        let answers = |of: &Collective| u64::from(of.rounds) * of.participants.len() as u64;
        let asked = || self.pbv.collectives.iter().filter(|of| of.kind != KindFile::Multicast);
        let run = self.at(system.pbv());
        let got = |of: &Collective| -> usize {
            of.participants.iter().map(|&end| run.node(end).outcomes(of.cc_id).len()).sum()
        };
        let (total, done) = (asked().map(answers).sum(), asked().map(got).sum::<usize>() as u64);
        Progress { cycle: system.now(), done, total, inside: None }
    }

    fn report(&self, system: &System, document: &mut Document, oracle: bool) -> Report {
        let run = self.at(system.pbv());
        let mut pbv = PbvResult::default();
        let mut report = Report::default();
        for (index, of) in self.pbv.collectives.iter().enumerate() {
            let (collective, rows, finding) = run.collective(index, oracle);
            pbv.outcomes.add(&collective.outcomes);
            let place = format!("pbv.collectives.{index}");
            report.data.push(ResultData { place, name: of.name.clone(), dtype: of.dtype, rows: rows.into() });
            pbv.collectives.push(collective);
            report.findings.extend(finding);
        }
        run.totals(&mut pbv);
        pbv.congestion = mail::reports(self.pbv, system.pbv(), &self.ready);
        pbv.reports = mail::sent(self.pbv, system.pbv(), &self.ready);
        report.open = open_rounds(&pbv);
        document.pbv = Some(pbv);
        report
    }

    fn settle(&self, system: &System, _document: &Document) -> Vec<Check> {
        let disagreement =
            engines(system.pbv()).find_map(|engine| Some((engine.cfg().device, engine.ce().tracker().disagreement()?)));
        vec![match disagreement {
            None => Check::passed("tracking", "PBV and p_count agree in every context"),
            Some((device, slot)) => {
                Check::failed("tracking", format!("PBV and p_count differ in slot {slot} of device {device:#06x}"))
            }
        }]
    }

    /// The nodes know all.
    fn save(&self, _: &mut Saver) {}

    fn load(&mut self, _: &System, _: &mut Loader<'_>) -> Result<(), Mismatch> {
        Ok(())
    }

    fn why(&self, system: &System, ask: why::Ask<'_>, _document: &Document, notes: &mut Vec<String>) -> Vec<why::Why> {
        let run = self.at(system.pbv());
        let runs = self.pbv.collectives.iter().map(|of| run.ended(of)).collect::<Vec<_>>();
        why::pbv::explain(system.pbv(), &self.ready, &runs, ask, notes)
    }

    fn ladder(&self, system: &System) -> Option<Ladder> {
        Some(ladder(system.pbv(), &self.ready))
    }
}

/// Rounds that did not end: nobody was answered in them, and nobody was named.
fn open_rounds(pbv: &PbvResult) -> Option<String> {
    let open = pbv.collectives.iter().filter(|of| of.outcomes.open > 0).map(|of| {
        let listed = of.rounds.iter().filter(|round| round.outcome == "open").map(|round| round.run.to_string());
        let numbers: Vec<String> = listed.take(LISTED).collect();
        let more = if of.outcomes.open > numbers.len() as u64 { ", …" } else { "" };
        format!(
            "{} of {} has not ended: {}{more}",
            if numbers.len() == 1 { "round" } else { "rounds" },
            of.name,
            numbers.join(", ")
        )
    });
    let open: Vec<String> = open.collect();
    (!open.is_empty()).then(|| open.join("; "))
}

/// What a participant was answered.
struct Answer {
    device: u16,
    met: u64,
    cycle: u64,
    words: Vec<u64>,
    flags: Flags,
    error: Option<Status>,
}

/// Which value the answers that came are of: the last one that was given before the first of them came, for without words, as of a
/// barrier, all values agree with them; else any that agrees.
fn given(values: &[Value], came: &[&Answer], agree: impl Fn(&Value, &[&Answer]) -> bool) -> Option<usize> {
    let first = came.iter().map(|answer| answer.cycle).min();
    let before = |value: &Value| value.answered.zip(first).is_none_or(|(answered, first)| answered <= first);
    let held = values.iter().position(|value| before(value) && agree(value, came));
    held.or_else(|| values.iter().position(|value| agree(value, came)))
}

/// The elements in words; the last word may have lanes that are not used.
fn elements(of: &Collective, words: &[u64]) -> Vec<u64> {
    let lanes = words.iter().flat_map(|&word| unpack_lanes(of.dtype, word));
    lanes.take(of.elements as usize).collect()
}

/// What a multicast brings.
fn cast_value(row: &[u64], words: usize, run: u32) -> Value {
    let at = run.saturating_sub(1) as usize * words % row.len().max(1);
    Value { words: Some(row[at..at + words].to_vec()), flags: Flags::NONE, entered: Vec::new(), answered: None }
}

/// In what an answer is not the oracle's.
fn different(of: &Collective, value: &Value, answer: &Answer) -> Option<String> {
    let expected = value.words.as_deref().unwrap_or_default();
    // An answer that is marked as an error may have no data.
    if answer.error.is_some() && answer.words.is_empty() {
        return None;
    }
    if !of.kind.is_barrier() && answer.words != expected {
        let (got, right) = (elements(of, &answer.words), elements(of, expected));
        let at = got.iter().zip(&right).position(|(a, b)| a != b).unwrap_or(got.len().min(right.len()));
        let text = |list: &[u64]| list.get(at).map_or("nothing".into(), |&bits| hex(of.dtype, &[bits]).concat());
        let (got, right) = (text(&got), text(&right));
        return Some(format!("element {at} at device {:#06x} is {got}, the oracle has {right}", answer.device));
    }
    (answer.flags != value.flags).then(|| {
        let names = |flags: Flags| flags.names().collect::<Vec<_>>().join(" ");
        let (got, right) = (names(answer.flags), names(value.flags));
        format!("flags at device {:#06x} are \"{got}\", the oracle has \"{right}\"", answer.device)
    })
}
