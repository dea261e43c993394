//! Running an armed scenario.

use std::ops::Deref;

use serde_json::{Map, Value as Json};

use super::build::{ArmedBuild, BuildOptions, build};
use super::config::Armed;
use super::golden::engines;
use super::ladder::ladder;
use super::result::ArmedResult;
use super::spec::Armed as ArmedFamily;
use super::trees;
use crate::build::layout;
use crate::counters::counts;
use crate::result::{Check, Document, Outcome, ResultData};
use crate::run::family::{Family, FamilyBuild, Report, Started, started};
use crate::run::system::{ArmedSystem, System, Views};
use crate::run::watchdog::{Watchdog, not_done, stall_message};
use crate::sources::Sources;
use crate::trees::EngineTree;
use crate::why;
use crate::{Loaded, Problems};
use watershed_armed::frame::FRAME_BYTES;
use watershed_armed::root::RootRound;
use watershed_armed::{Discard, Leaf, Refusals, Root, RootState, RoundEnd, Soft, WireBlock};
use watershed_fabric::NodeKind;
use watershed_fabric::fault::FaultyLink;
use watershed_kernel::Cycle;
use watershed_piuma::claim::Wiring;
use watershed_probe::ladder::Ladder;
use watershed_scenario_interface::run::{Flip, Progress, RunError, RunOptions};

/// A system of the armed family under way.
pub(crate) struct Run<'a> {
    pub(super) loaded: &'a Loaded,
    pub(super) armed: &'a Armed,
    pub(super) build: ArmedBuild<()>,
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
    pub(crate) fn new(loaded: &'a Loaded, ready: ArmedBuild<()>) -> Run<'a> {
        let armed = loaded.scenario.armed.as_ref().expect("the armed family has its table");
        Run { loaded, armed, build: ready }
    }

    /// The run, looking at its system.
    fn at<'r>(&'r self, system: &'r ArmedSystem) -> RunView<'r, 'r> {
        RunView { run: self, system }
    }
}

/// A run and the system that it looks at.
pub(super) struct RunView<'r, 'a> {
    run: &'r Run<'a>,
    pub(super) system: &'r ArmedSystem,
}

impl<'a> Deref for RunView<'_, 'a> {
    type Target = Run<'a>;

    fn deref(&self) -> &Run<'a> {
        self.run
    }
}

impl RunView<'_, '_> {
    /// Whether every process has ended that is alive or will be again.
    fn all_ended(&self) -> bool {
        let now = self.system.now();
        self.system.ends().all(|end| {
            let (over, all) = end.processes();
            over == all || end.dead_for_good(now).is_some()
        })
    }

    /// End points whose processes are not done.
    fn unfinished_end_points(&self) -> Vec<String> {
        let ends = self.system.ends().enumerate();
        let open = ends.filter(|(_, end)| {
            let (over, all) = end.processes();
            over < all && end.dead_for_good(self.system.now()).is_none()
        });
        open.map(|(at, _)| self.end_name(at as u32)).collect()
    }

    pub(super) fn end_name(&self, end: u32) -> String {
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
                WireBlock::Engine(engine) => {
                    add(&mut armed.engines, counts(&engine.counts()));
                    if engine.active() > 0 {
                        armed.leaked.push(plan.nodes[plan.count(NodeKind::Switch) + at].name.clone());
                    }
                }
                WireBlock::Fault(link) => {
                    add(armed.faults.get_or_insert_default(), counts(&link.counts()));
                }
                WireBlock::Adapter(adapter) => {
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

    /// Which rounds of a reduction that were asked for have not ended, in words, and how many were not even started.
    fn not_ended(&self, index: usize) -> (Option<String>, u64) {
        const NAMED: usize = 8;
        let reduction = &self.armed.reductions[index];
        let job = self.build.reductions[index].job_of(self.system);
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
    pub(super) fn flows(&self, index: usize) -> Vec<(u8, &[RootRound])> {
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
        std::mem::take(&mut self.build.derived)
    }

    fn take_sources(&mut self) -> Option<Sources> {
        self.build.sources.take()
    }

    fn flip(&mut self, _: &mut System, _flip: Flip<'_>) -> Result<(), RunError> {
        let what = "--flip is for PIUMA's engines; faults of the armed family are in the scenario, [[armed.fault]]";
        Err(RunError::Usage(what.into()))
    }

    fn watchdog(&self, system: &System) -> Watchdog {
        let (jobs, plan) = (self.build.reductions.len(), system.plan());
        let scenario = &self.loaded.scenario;
        let frame = scenario.link.cut().flits(FRAME_BYTES) as u64;
        Watchdog::of_frames(scenario.limits.watchdog_cycles, jobs, plan, frame)
    }

    fn waits_for_completions(&self) -> bool {
        true
    }

    /// A reduction stands if work is left and no time-out, compute time or delay is pending (requirement K-WD-1). Frames of
    /// strangers go on meanwhile, and must not hide it.
    fn find_stall(&self, system: &System, watchdog: &mut Watchdog) -> Option<String> {
        let (system, now) = (system.armed(), system.now());
        let job = |thing: usize| self.build.reductions[thing].job.number;
        let advanced = |thing| system.ends().filter_map(|end| end.advanced(job(thing), now)).reduce(|a, b| a + b);
        let expects = |thing| {
            let mut ends = system.ends();
            ends.any(|end| end.expects(job(thing), now)) || system.bumps().flatten().any(|at| at.expects(now))
        };
        let (since, thing) = watchdog.first(now, advanced, expects)?;
        Some(stall_message(now, &self.armed.reductions[thing].name, since))
    }

    fn is_over(&self, system: &System) -> bool {
        self.at(system.armed()).all_ended()
    }

    fn at_limit(&self, system: &System) -> Option<String> {
        // What is left may be alarms of processes that have ended.
        let own = system.armed();
        let idle = engines(own).all(|engine| engine.active() == 0);
        (!(self.at(own).all_ended() && idle && system.live_flits() == 0)).then(String::new)
    }

    fn has_lost_packets(&self, system: &System) -> bool {
        let links = system.armed().bumps();
        links.flatten().filter_map(WireBlock::fault).map(FaultyLink::counts).any(|of| of.dead + of.given_up > 0)
    }

    fn unfinished(&self, system: &System) -> String {
        not_done(&self.at(system.armed()).unfinished_end_points())
    }

    /// Timers of processes that have ended may run for long; the run is as long as something moved.
    fn cycles(&self, system: &System, outcome: Outcome) -> Cycle {
        if outcome == Outcome::Finished { system.moved_until() } else { system.now() }
    }

    fn progress(&self, system: &System) -> Progress {
        let total = self.armed.reductions.iter();
        let total = total.map(|of| u64::from(of.file.rounds) * u64::from(of.composed().rounds_each())).sum();
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

    fn family_checks(&self, system: &System, document: &Document) -> Vec<Check> {
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

    fn why(
        &self,
        system: &System,
        ask: why::WhyQuery<'_>,
        _document: &Document,
        notes: &mut Vec<String>,
    ) -> Vec<why::Why> {
        let names: Vec<(String, u32)> = self.armed.reductions.iter().map(|of| (of.name.clone(), of.root)).collect();
        why::armed::explain(system.armed(), &self.build, &names, ask, notes)
    }

    fn ladder(&self, system: &System) -> Option<Ladder> {
        Some(ladder(system.armed(), &self.build))
    }
}

impl FamilyBuild for ArmedFamily {
    fn build<'a>(&self, loaded: &'a Loaded, options: &RunOptions<'_>, _windows: bool) -> Started<'a> {
        Ok(started(Run::build(loaded, options)?))
    }

    fn wiring(&self, loaded: &Loaded) -> Result<(Wiring, usize), Problems> {
        Ok((Wiring::default(), build(loaded, BuildOptions::default())?.engines.len()))
    }

    fn trees(&self, loaded: &Loaded) -> Result<Vec<EngineTree>, Problems> {
        let built = build(loaded, BuildOptions { no_checks: true, ..BuildOptions::default() })?;
        let armed = loaded.scenario.armed.as_ref().expect("the armed family has its table");
        Ok(trees::of(armed, &layout(loaded)?, &built))
    }
}
