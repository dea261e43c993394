//! Running an armed scenario.

use std::collections::BTreeMap;
use std::ops::Deref;

use serde_json::{Map, Value as Json};

use super::asked::{Asked, Ended};
use super::build::{BuildOptions, Ready, build};
use super::config::{Armed, Reduction};
use super::golden::{MergedAt, Reader, engines};
use super::ladder::ladder;
use super::result::{ArmedResult, Configured, Distinct, MergedShare, Outcomes, ReductionResult, RoundResult};
use crate::Loaded;
use crate::counts::counts;
use crate::job_result::{Spread, latency};
use crate::result::{Check, Document, Outcome, ResultData};
use crate::run::family::{After, Family, Report};
use crate::run::options::{Flip, Progress, RunError, RunOptions};
use crate::run::system::{ArmedSystem, System, Views};
use crate::run::watchdog::{Watchdog, not_done, stands};
use crate::sources::Sources;
use crate::why;
use watershed_arith::{Quad, ResultCode};
use watershed_armed::frame::FRAME_BYTES;
use watershed_armed::root::RootRound;
use watershed_armed::{Client, ClientState, Discard, Job, Leaf, Refusals, Root, RootState, RoundEnd, Soft, Wired};
use watershed_fabric::fault::FaultyLink;
use watershed_fabric::{NodeKind, Step};
use watershed_kernel::Cycle;
use watershed_oracle as oracle;
use watershed_probe::ladder::Ladder;
use watershed_state::{Loader, Mismatch, Saver};

/// Rounds that are listed although they completed at once.
const LISTED: usize = 16;
/// Rounds that are listed at all.
const MOST_LISTED: usize = 1000;
/// Different results that are listed.
const MOST_DISTINCT: usize = 16;

/// A system of the armed family under way.
pub(crate) struct Run<'a> {
    loaded: &'a Loaded,
    armed: &'a Armed,
    ready: Ready<()>,
    /// Flits moved and completions when something last did, and the cycle then.
    moved: (u64, u64, Cycle),
}

impl<'a> Run<'a> {
    /// Builds the system of a scenario.
    ///
    /// # Errors
    /// What is wrong with the configuration, at its place.
    pub(crate) fn build(loaded: &'a Loaded, options: &RunOptions<'_>) -> Result<(Box<System>, Run<'a>), RunError> {
        let why = options.why.is_some();
        let ready = build(
            loaded,
            BuildOptions {
                no_checks: options.no_checks,
                log: options.ladder || why,
                record: why,
                threads: options.divided(),
            },
        )?;
        let (system, ready) = ready.split();
        Ok((watershed_armed::simulation(system), Run::new(loaded, ready)))
    }

    /// What runs on a system in cycle 0.
    pub(crate) fn new(loaded: &'a Loaded, ready: Ready<()>) -> Run<'a> {
        let armed = loaded.scenario.armed.as_ref().expect("the armed family has its table");
        Run { loaded, armed, ready, moved: (0, 0, 0) }
    }

    /// The run, looking at its system.
    fn at<'r>(&'r self, system: &'r ArmedSystem) -> At<'r, 'r> {
        At { run: self, system }
    }
}

/// A run and the system that it looks at.
struct At<'r, 'a> {
    run: &'r Run<'a>,
    system: &'r ArmedSystem,
}

impl<'a> Deref for At<'_, 'a> {
    type Target = Run<'a>;

    fn deref(&self) -> &Run<'a> {
        self.run
    }
}

impl At<'_, '_> {
    /// Whether every process has ended that is alive or will be again.
    fn all_over(&self) -> bool {
        let now = self.system.now();
        self.system.ends().all(|end| {
            let (over, all) = end.processes();
            over == all || end.dead_for_good(now).is_some()
        })
    }

    /// End points whose processes are not done.
    fn open(&self) -> Vec<String> {
        let ends = self.system.ends().enumerate();
        let open = ends.filter(|(_, end)| {
            let (over, all) = end.processes();
            over < all && end.dead_for_good(self.system.now()).is_none()
        });
        open.map(|(at, _)| self.end_name(at as u32)).take(8).collect()
    }

    fn end_name(&self, end: u32) -> String {
        let plan = self.system.plan();
        let first = plan.nodes.len() - self.system.end_count();
        plan.nodes[first + end as usize].name.clone()
    }

    fn totals(&self, armed: &mut ArmedResult) {
        let system = self.system;
        let add = |sum: &mut Map<String, Json>, counts: Map<String, Json>| {
            for (key, value) in &counts {
                let value = value.as_u64().unwrap_or(0);
                let before = sum.get(key).and_then(Json::as_u64).unwrap_or(0);
                let total = if key == "most_active" { before.max(value) } else { before + value };
                sum.insert(key.clone(), total.into());
            }
        };
        let plan = system.plan();
        for (at, bump) in system.bumps().enumerate() {
            let Some(bump) = bump else { continue };
            match bump {
                Wired::Engine(engine) => {
                    add(&mut armed.engines, counts(&engine.counts()));
                    if engine.active() > 0 {
                        armed.leaked.push(plan.nodes[plan.count(NodeKind::Switch) + at].name.clone());
                    }
                }
                Wired::Fault(link) => {
                    add(armed.faults.get_or_insert_default(), counts(&link.counts()));
                }
                Wired::Adapter(adapter) => {
                    let dropped = ("adapters_dropped".to_owned(), adapter.dropped.into());
                    add(&mut armed.end_points, Map::from_iter([dropped]));
                }
            }
        }
        armed.discarded_frames = system.joins().map(|discard| discard.frames).sum();
        for (_, refused) in system.joins().map(Discard::orders) {
            if refused != Refusals::default() {
                add(&mut armed.switches, counts(&refused));
            }
        }
        for end in system.ends() {
            for root in end.roots() {
                armed.root_discards[0] += root.refused().stale + root.refused().wrong_state;
                armed.root_discards[1] += root.refused().wrong_key();
            }
            let processes = end.roots().iter().map(Root::refused);
            let processes = processes.chain(end.leaves().iter().map(Leaf::refused));
            for refused in processes.chain(end.softs().iter().map(Soft::refused)).chain([end.refused()]) {
                add(&mut armed.end_points, counts(&refused));
            }
            if let Some(manager) = end.manager() {
                armed.agent = Some(*manager.counts());
                add(&mut armed.end_points, counts(&manager.refused()));
            }
            for client in end.clients() {
                add(&mut armed.end_points, counts(&client.refused()));
            }
            armed.stranger_frames += end.strangers().iter().map(watershed_armed::Stranger::sent).sum::<u64>();
        }
    }

    /// The report of one reduction, and what its checks found.
    fn reduction(&self, index: usize, oracle: bool) -> (ReductionResult, Vec<Check>) {
        let reduction = &self.armed.reductions[index];
        let laid = &self.ready.reductions[index];
        let trees = &laid.trees;
        let system = self.system;
        let job = laid.job_of(system);
        let client = laid.client(system);
        let refused = client.and_then(Client::refusal).map(str::to_owned).or_else(|| laid.refused.clone());
        let reader = oracle.then(|| Reader::new(system, job, reduction, trees));
        let flows = self.flows(index);
        let told = Told::of(system, job, reduction);

        let mut result = ReductionResult {
            name: reduction.name.clone(),
            opcode: reduction.op.clone(),
            method: if job.is_software() { "software" } else { "engines" }.into(),
            refused,
            one_tree: laid.no_second.clone(),
            multicast_ids: laid.ids(system),
            configured: client.map(|client| self.configured(reduction, client)),
            participants: u64::from(reduction.participants),
            outcomes: Outcomes::default(),
            opening_rounds: if job.opening { u64::from(job.flows) } else { 0 },
            retries: 0,
            first_arming_cycle: flows.iter().filter_map(|(_, rounds)| rounds.first()).map(|round| round.armed).min(),
            start_cycle: None,
            end_cycle: None,
            latency_cycles: None,
            latency_ns: None,
            round_latency_cycles: None,
            timeout_hint_1024_cycles: None,
            merged_at: Vec::new(),
            distinct_values: 0,
            distinct: Vec::new(),
            untold: told.untold.iter().map(|&end| self.end_name(end)).collect(),
            rounds: Vec::new(),
            more_rounds: 0,
            bit_exact: None,
        };
        let mut asked = Asked::of(reduction.composed());
        let mut merged: BTreeMap<MergedAt, u64> = BTreeMap::new();
        let mut values: BTreeMap<([u64; 4], i8), (u64, Vec<ResultCode>)> = BTreeMap::new();
        let (mut checked, mut unchecked) = (0u64, 0u64);
        let mut first_wrong: Option<String> = None;
        for (flow, rounds) in &flows {
            for round in *rounds {
                result.retries += u64::from(round.attempts - 1);
                let key = (*flow, round.round.data);
                let complete = matches!(round.state, RoundEnd::Complete | RoundEnd::AfterRetry);
                let mut fault = None;
                let mut missing = Vec::new();
                if let (Some(reader), Some(token)) = (&reader, round.token) {
                    match reader.value(token) {
                        None => unchecked += 1,
                        Some(value) => {
                            checked += 1;
                            if complete {
                                fault = reader.not_once(&value, round.round.data);
                            }
                            if fault.is_none() && value.quad != round.quad {
                                fault = Some(differing(reduction, round.quad, value.quad));
                            }
                            for entry in value.entries.iter().filter(|entry| entry.rank > 0) {
                                *merged.entry(entry.at).or_default() += 1;
                            }
                        }
                    }
                    if fault.is_none() {
                        fault = told.different.get(&key).cloned();
                    }
                } else if let Some(reader) = &reader {
                    let there = match round.state {
                        RoundEnd::Open => reader.who(&self.under_way(index, *flow)),
                        _ => reader.who(&round.partials),
                    };
                    let ranks = 1..reduction.participants;
                    missing = ranks
                        .filter(|rank| there.binary_search(rank).is_err())
                        .map(|rank| self.end_name(reduction.end_point(rank)))
                        .collect();
                }
                let everybody = told.got.get(&key).copied().unwrap_or(0) == u64::from(reduction.participants - 1);
                if let Some(wrong) = told.wrong.get(&key) {
                    fault.get_or_insert_with(|| wrong.clone());
                }
                let ended = match round.state {
                    // Whatever the root knows of the round: a participant holds bits that look like a result.
                    _ if told.wrong.contains_key(&key) => Ended::Silent,
                    RoundEnd::Open => Ended::Open,
                    RoundEnd::Incomplete => Ended::Incomplete,
                    _ if fault.is_some() => Ended::Silent,
                    // A participant has no result and waits or has given up: it knows that it has none.
                    _ if !everybody => Ended::Incomplete,
                    RoundEnd::Complete => Ended::Complete,
                    RoundEnd::AfterRetry => Ended::AfterRetry,
                };
                if let Some(fault) = &fault {
                    let what = round.round.data.map_or_else(|| "opening".into(), |data| format!("round {data}"));
                    first_wrong.get_or_insert_with(|| format!("{what}: {fault}"));
                }
                let entered = told.entered.get(&key).copied().unwrap_or(0).max(round.own_ready);
                let got = told.last_got.get(&key).copied().filter(|_| everybody);
                asked.take(key, ended, entered, got);
                let its_own = round.round.data.is_some_and(|data| !reduction.composed().prepares(data));
                if complete && its_own && reduction.same_every_round {
                    let value = values.entry((round.quad.lanes, round.quad.m)).or_default();
                    value.0 += 1;
                    if !value.1.contains(&round.quad.code) {
                        value.1.push(round.quad.code);
                    }
                }
                let plain = ended == Ended::Complete && round.frames.len() <= 1;
                if result.rounds.len() >= MOST_LISTED || (plain && result.rounds.len() >= LISTED) {
                    result.more_rounds += 1;
                    continue;
                }
                result.rounds.push(RoundResult {
                    round: round.round.data,
                    reduction_id: *flow,
                    seqno: round.seqno,
                    attempts: round.attempts,
                    armed_cycle: round.armed,
                    end_cycle: round.end,
                    latency_cycles: got.map(|got| got.saturating_sub(entered)),
                    counts: round.frames.clone(),
                    result: round
                        .token
                        .map_or_else(Vec::new, |_| hex(self.loaded.scenario.results.head(&round.quad.lanes))),
                    code: round.quad.code.name().into(),
                    outcome: ended.name().into(),
                    missing,
                    fault,
                });
            }
        }
        result.outcomes = asked.outcomes();
        result.round_latency_cycles = Spread::of(&asked.latencies());
        result.timeout_hint_1024_cycles = hint(&flows, &told);
        let data = |(_, rounds): &(u8, &[RootRound])| {
            rounds.iter().filter(|round| round.round.data.is_some()).map(|round| round.own_ready).min()
        };
        let leaves = told.first_entered.iter().filter(|(key, _)| key.1.is_some()).map(|(_, &cycle)| cycle);
        result.start_cycle = leaves.chain(flows.iter().filter_map(data)).min().or(result.first_arming_cycle);
        result.end_cycle = told.last.filter(|_| result.outcomes.all_answered());
        result.latency_cycles = latency(result.start_cycle, result.end_cycle, &result.outcomes);
        result.latency_ns = result.latency_cycles.map(|cycles| self.loaded.scenario.clock.nanoseconds(cycles));
        let total: u64 = merged.values().sum();
        // From the leaves up: the deepest engines first, software last.
        let mut places: Vec<(MergedAt, u64)> = merged.into_iter().collect();
        places.sort_by_key(|(at, _)| match at {
            MergedAt::Depth(depth) => (0, u32::MAX - depth),
            MergedAt::Software => (1, 0),
        });
        result.merged_at = places
            .into_iter()
            .map(|(at, contributions)| MergedShare {
                place: match at {
                    MergedAt::Depth(depth) => format!("engines at depth {depth}"),
                    MergedAt::Software => "software".into(),
                },
                contributions,
                share: contributions as f64 / total.max(1) as f64,
            })
            .collect();
        result.distinct_values = values.len() as u64;
        result.distinct = distinct(reduction, values);
        let mut checks = Vec::new();
        if reader.is_some() {
            result.bit_exact = (checked > 0).then_some(first_wrong.is_none());
            let name = format!("right or reported: {}", reduction.name);
            checks.push(match first_wrong {
                None if unchecked > 0 => {
                    let why = "a station made more frames than a record can tell apart";
                    Check::failed(name, format!("{unchecked} results could not be checked: {why}"))
                }
                None => {
                    Check::passed(name, format!("{checked} results are the oracle's, each participant once in each"))
                }
                Some(what) => Check::failed(name, what),
            });
        }
        (result, checks)
    }

    /// How a reduction came by its tree at run time.
    fn configured(&self, reduction: &Reduction, client: &Client) -> Configured {
        let (asked_cycle, answered_cycle) = client.times();
        let before = reduction.changes.map(|at| self.armed.reductions[usize::from(at)].name.clone());
        let deleted = reduction.delete_tree && !client.trees().is_empty();
        Configured {
            asked_cycle,
            answered_cycle,
            cycles: asked_cycle.zip(answered_cycle).map(|(asked, answered)| answered - asked),
            requests: client.requests(),
            changes: before,
            deleted: deleted.then(|| client.state() == ClientState::Closed && !client.undeleted()),
        }
    }

    /// Tokens of what the root of a flow has of the round that is under way.
    fn under_way(&self, index: usize, flow: u8) -> Vec<u64> {
        let end = self.system.end(self.armed.reductions[index].root as usize);
        let mut roots = end.roots().iter();
        let root = roots.find(|root| usize::from(root.job().number) == index && root.flow() == flow);
        let soft = || end.softs().iter().find(|soft| usize::from(soft.job().number) == index);
        let root = root.filter(|root| root.state() != RootState::Software);
        root.map(|root| root.under_way().to_vec()).or_else(|| soft().map(Soft::under_way)).unwrap_or_default()
    }

    /// Which rounds of a reduction that were asked for have not ended, in words, and how many were not even started.
    fn not_ended(&self, index: usize) -> (Option<String>, u64) {
        const NAMED: usize = 8;
        let reduction = &self.armed.reductions[index];
        let job = self.ready.reductions[index].job_of(self.system);
        let (mut open, mut unstarted) = (Vec::new(), Vec::new());
        for (flow, rounds) in self.flows(index) {
            open.extend(rounds.iter().filter(|round| round.state == RoundEnd::Open).map(|round| round.round.data));
            let steps = rounds.len() as u32..;
            unstarted.extend(
                steps.map_while(|step| job.round(flow, step).filter(|round| !round.closing)).map(|round| round.data),
            );
        }
        open.sort_unstable();
        unstarted.sort_unstable();
        let list = |rounds: &[Option<u32>], how: &str| {
            let what = |data: &Option<u32>| data.map_or_else(|| "the opening".into(), |data| format!("round {data}"));
            let named: Vec<String> = rounds.iter().take(NAMED).map(what).collect();
            let more = rounds.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            (!rounds.is_empty()).then(|| format!("{}{more} {how}", named.join(", ")))
        };
        let parts: Vec<String> = [list(&open, "open"), list(&unstarted, "not started")].into_iter().flatten().collect();
        let dead = self.system.end(reduction.root as usize).dead_for_good(self.system.now());
        let dead = dead.map_or_else(String::new, |cycle| {
            format!(" ({} is dead since cycle {cycle})", self.end_name(reduction.root))
        });
        let text = (!parts.is_empty()).then(|| format!("{}: {}{dead}", reduction.name, parts.join(", ")));
        // A round that was asked for has begun with its first one on the wire.
        let each = reduction.composed().rounds_each();
        let unstarted = unstarted.iter().filter(|data| data.is_none_or(|data| data.is_multiple_of(each)));
        (text, unstarted.count() as u64)
    }

    /// The results of a reduction as an array: a row a data round that has one, four lanes each.
    fn data(&self, index: usize) -> ResultData {
        let reduction = &self.armed.reductions[index];
        let flows = self.flows(index);
        let done = flows.iter().flat_map(|(_, rounds)| rounds.iter()).filter(|round| round.token.is_some());
        let mut rows: Vec<(u32, Vec<u64>)> =
            done.filter_map(|round| Some((round.round.data?, round.quad.lanes.to_vec()))).collect();
        rows.retain(|&(data, _)| !reduction.composed().prepares(data));
        rows.sort();
        let rows: Vec<Vec<u64>> = rows.into_iter().map(|(_, row)| row).collect();
        ResultData {
            place: format!("armed.reductions.{index}"),
            name: reduction.name.clone(),
            dtype: reduction.opcode().dtype,
            rows: rows.into(),
        }
    }

    /// The rounds of a reduction, flow by flow.
    fn flows(&self, index: usize) -> Vec<(u8, &[RootRound])> {
        let reduction = &self.armed.reductions[index];
        let end = self.system.end(reduction.root as usize);
        let roots = end.roots().iter().filter(|root| usize::from(root.job().number) == index);
        let roots = roots.filter(|root| root.state() != RootState::Software);
        let softs = end.softs().iter().filter(|soft| usize::from(soft.job().number) == index && !soft.is_dormant());
        roots.map(|root| (root.flow(), root.rounds())).chain(softs.map(|soft| (0, soft.rounds()))).collect()
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
        let what = "--flip is for PIUMA's engines; faults of the armed family are in the scenario, [[armed.fault]]";
        Err(RunError::Usage(what.into()))
    }

    fn watchdog(&self, system: &System) -> Watchdog {
        let (jobs, plan) = (self.ready.reductions.len(), system.plan());
        let scenario = &self.loaded.scenario;
        let frame = scenario.link.cut().flits(FRAME_BYTES) as u64;
        Watchdog::of_frames(scenario.limits.watchdog_cycles, jobs, plan, frame)
    }

    fn after(&mut self, system: &mut System, step: Step) -> After {
        if step == Step::Quiet {
            return After::Quiet;
        }
        // Timers of processes that have ended may run for long; the run is as long as something moved.
        if (system.moves(), system.completions()) != (self.moved.0, self.moved.1) {
            self.moved = (system.moves(), system.completions(), system.now());
        }
        After::On
    }

    /// A reduction stands if work is left and no time-out, compute time or delay is pending (requirement K-WD-1). Frames of
    /// strangers go on meanwhile, and must not hide it.
    fn standing(&self, system: &System, watchdog: &mut Watchdog) -> Option<String> {
        let (system, now) = (system.armed(), system.now());
        let job = |thing: usize| self.ready.reductions[thing].job.number;
        let advanced = |thing| system.ends().filter_map(|end| end.advanced(job(thing), now)).reduce(|a, b| a + b);
        let expects = |thing| {
            let mut ends = system.ends();
            ends.any(|end| end.expects(job(thing), now)) || system.bumps().flatten().any(|at| at.expects(now))
        };
        let (since, thing) = watchdog.first(now, advanced, expects)?;
        Some(stands(now, &self.armed.reductions[thing].name, since))
    }

    fn is_over(&self, system: &System) -> bool {
        self.at(system.armed()).all_over()
    }

    fn at_limit(&self, system: &System) -> Option<String> {
        // What is left may be alarms of processes that have ended.
        let own = system.armed();
        let idle = engines(own).all(|engine| engine.active() == 0);
        (!(self.at(own).all_over() && idle && system.live_flits() == 0)).then(String::new)
    }

    fn loses_traffic(&self, system: &System) -> bool {
        let links = system.armed().bumps();
        links.flatten().filter_map(Wired::fault).map(FaultyLink::counts).any(|of| of.dead + of.given_up > 0)
    }

    fn left(&self, system: &System) -> String {
        not_done(&self.at(system.armed()).open())
    }

    fn cycles(&self, system: &System, outcome: Outcome) -> Cycle {
        if outcome == Outcome::Finished { self.moved.2 } else { system.now() }
    }

    fn progress(&self, system: &System) -> Progress {
        let total = self.armed.reductions.iter();
        let total = total.map(|of| u64::from(of.rounds) * u64::from(of.composed().rounds_each())).sum();
        let roots = system.armed().ends().flat_map(watershed_armed::End::roots).flat_map(Root::rounds);
        let done = roots.filter(|round| round.end.is_some() && round.round.data.is_some()).count() as u64;
        Progress { cycle: system.now(), done, total, inside: None }
    }

    fn report(&self, system: &System, document: &mut Document, oracle: bool) -> Report {
        let run = self.at(system.armed());
        let mut armed = ArmedResult::default();
        let (mut report, mut unended) = (Report::default(), Vec::new());
        for index in 0..self.armed.reductions.len() {
            let (mut reduction, finding) = run.reduction(index, oracle);
            let (not_ended, unstarted) = run.not_ended(index);
            reduction.outcomes.unstarted = unstarted;
            unended.extend(not_ended);
            armed.outcomes.add(&reduction.outcomes);
            report.data.push(run.data(index));
            armed.reductions.push(reduction);
            report.findings.extend(finding);
        }
        run.totals(&mut armed);
        report.open = (!unended.is_empty()).then(|| unended.join("; "));
        document.armed = Some(armed);
        report
    }

    fn settle(&self, system: &System, document: &Document) -> Vec<Check> {
        let finished = document.armed.as_ref().filter(|_| document.outcome == Outcome::Finished);
        let leaked = finished.map(|armed| {
            let passed = armed.leaked.is_empty();
            let detail = if passed {
                format!("every descriptor of {} engines is free again", engines(system.armed()).count())
            } else {
                format!("descriptors are still taken in {}", armed.leaked.join(", "))
            };
            Check { name: "no descriptor leaked".into(), passed, detail }
        });
        leaked.into_iter().collect()
    }

    fn save(&self, to: &mut Saver) {
        to.value(&self.moved);
    }

    fn load(&mut self, _: &System, from: &mut Loader<'_>) -> Result<(), Mismatch> {
        self.moved = from.value()?;
        Ok(())
    }

    fn why(&self, system: &System, ask: why::Ask<'_>, _document: &Document, notes: &mut Vec<String>) -> Vec<why::Why> {
        let names: Vec<(String, u32)> = self.armed.reductions.iter().map(|of| (of.name.clone(), of.root)).collect();
        why::armed::explain(system.armed(), &self.ready, &names, ask, notes)
    }

    fn ladder(&self, system: &System) -> Option<Ladder> {
        Some(ladder(system.armed(), &self.ready))
    }
}

/// What the leaves of a reduction have: by reduction id and data round.
#[derive(Default)]
struct Told {
    /// Leaves that got the result.
    got: BTreeMap<(u8, Option<u32>), u64>,
    /// When the last of them did.
    last_got: BTreeMap<(u8, Option<u32>), u64>,
    /// When the first contribution was ready.
    first_entered: BTreeMap<(u8, Option<u32>), u64>,
    /// When the last contribution was ready.
    entered: BTreeMap<(u8, Option<u32>), u64>,
    /// Rounds in which a leaf got other bits than the root sent.
    different: BTreeMap<(u8, Option<u32>), String>,
    /// Rounds in which a leaf holds a result, and not an error, that the root did not send.
    wrong: BTreeMap<(u8, Option<u32>), String>,
    /// Leaves that lack results.
    untold: Vec<u32>,
    last: Option<u64>,
}

impl Told {
    fn of(system: &ArmedSystem, job: &Job, reduction: &Reduction) -> Told {
        let mut told = Told::default();
        let mut sent: BTreeMap<(u8, Option<u32>), Quad> = BTreeMap::new();
        let root = system.end(reduction.root as usize);
        for root in root.roots().iter().filter(|root| root.job().number == job.number) {
            for round in root.rounds().iter().filter(|round| round.token.is_some()) {
                sent.insert((root.flow(), round.round.data), round.quad);
            }
        }
        for soft in root.softs().iter().filter(|soft| soft.job().number == job.number) {
            for round in soft.rounds() {
                sent.insert((0, round.round.data), round.quad);
            }
        }
        let wanted = sent.len();
        for &end in &reduction.leaves {
            let mut have = 0;
            let at = system.end(end as usize);
            let mut take = |flow: u8, round: Option<u32>, entered: u64, got: u64, quad: Quad| {
                let key = (flow, round);
                have += 1;
                *told.got.entry(key).or_default() += 1;
                let last = told.last_got.entry(key).or_default();
                *last = got.max(*last);
                let last = told.entered.entry(key).or_default();
                *last = entered.max(*last);
                let first = told.first_entered.entry(key).or_insert(entered);
                *first = entered.min(*first);
                told.last = told.last.max(Some(got));
                match sent.get(&key) {
                    Some(sent) if *sent == quad => {}
                    _ => {
                        let text = || format!("end point {end} got another result than was sent");
                        told.different.entry(key).or_insert_with(text);
                        if !matches!(quad.code, ResultCode::OpMismatch | ResultCode::ContrOverflow) {
                            told.wrong.entry(key).or_insert_with(text);
                        }
                    }
                }
            };
            for leaf in at.leaves().iter().filter(|leaf| leaf.job().number == job.number) {
                for result in leaf.results() {
                    take(leaf.flow(), result.round.data, result.entered, result.got, result.quad);
                }
            }
            for soft in at.softs().iter().filter(|soft| soft.job().number == job.number) {
                for result in soft.results() {
                    take(0, Some(result.round), result.entered, result.got, result.quad);
                }
            }
            if have < wanted {
                told.untold.push(end);
            }
        }
        told
    }
}

/// The time-out the source recommends, from what was seen of all data rounds (R-ENG-9).
fn hint(flows: &[(u8, &[RootRound])], told: &Told) -> Option<u64> {
    let spread = told
        .first_entered
        .iter()
        .filter(|(key, _)| key.1.is_some())
        .filter_map(|(key, first)| told.entered.get(key).map(|last| last - first));
    let spread = spread.max()?;
    let intervals = flows.iter().flat_map(|(_, rounds)| rounds.windows(2)).map(|pair| pair[1].armed - pair[0].armed);
    let (count, sum) = intervals.fold((0u64, 0u64), |(count, sum), interval| (count + 1, sum + interval));
    let interval = sum.checked_div(count).unwrap_or(0);
    Some((interval + 2 * spread).div_ceil(1024).max(1))
}

fn hex(lanes: &[u64]) -> Vec<String> {
    lanes.iter().map(|lane| format!("{lane:016x}")).collect()
}

fn differing(reduction: &Reduction, got: Quad, expected: Quad) -> String {
    let dtype = reduction.opcode().dtype;
    let lane = (0..4).find(|&lane| got.lanes[lane] != expected.lanes[lane]);
    match lane {
        Some(lane) => {
            let (got, expected) = (got.lanes[lane], expected.lanes[lane]);
            let ulps = oracle::ulp_distance(dtype, got, expected);
            let apart = ulps.map_or_else(String::new, |ulps| format!(", {ulps} ulps apart"));
            format!("lane {lane} is {got:016x}, the oracle has {expected:016x}{apart}")
        }
        None => format!(
            "code {}, M {}, oflow_id {}; the oracle has {}, {}, {}",
            got.code, got.m, got.oflow_id, expected.code, expected.m, expected.oflow_id
        ),
    }
}

fn distinct(reduction: &Reduction, values: BTreeMap<([u64; 4], i8), (u64, Vec<ResultCode>)>) -> Vec<Distinct> {
    let mut list: Vec<_> = values.into_iter().collect();
    list.sort_by(|a, b| b.1.0.cmp(&a.1.0).then_with(|| a.0.cmp(&b.0)));
    let dtype = reduction.opcode().dtype;
    let usual = list.first().map_or([0; 4], |((lanes, _), _)| *lanes);
    list.truncate(MOST_DISTINCT);
    list.into_iter()
        .map(|((lanes, _), (rounds, mut codes))| {
            codes.sort_unstable();
            Distinct {
                result: hex(&lanes),
                codes: codes.iter().map(|code| code.name().to_owned()).collect(),
                rounds,
                ulps: if dtype.is_float() && reduction.row_length() == 4 {
                    let apart = |lane: usize| oracle::ulp_distance(dtype, usual[lane], lanes[lane]);
                    (0..4).map(apart).try_fold(0, |most, apart| Some(apart?.max(most)))
                } else {
                    None
                },
            }
        })
        .collect()
}
