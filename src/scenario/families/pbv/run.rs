//! Running a PBV scenario.

use std::collections::BTreeSet;
use std::ops::Deref;

use serde_json::{Map, Value as Json};

use super::build::{BuildOptions, PbvBuild, build};
use super::config::{Collective, Pbv};
use super::file::{KindFile, TreeFile};
use super::ladder::ladder;
use super::mailbox_reports;
use super::report::{Answer, LISTED};
use super::result::{EnginesResult, PbvResult};
use super::spec::Pbv as PbvFamily;
use super::trees;
use crate::armed::file::EffectFile;
use crate::build::layout;
use crate::counters::counts;
use crate::result::{Check, Document, Outcome, ResultData};
use crate::run::family::{Family, FamilyBuild, Report, Started, started};
use crate::run::system::{PbvSystem, System, Views};
use crate::run::watchdog::{Watchdog, not_done, stall_message};
use crate::sources::Sources;
use crate::trees::EngineTree;
use crate::why;
use crate::{Loaded, Problems};
use watershed_fabric::fault::FaultyLink;
use watershed_kernel::{Autopsy, Cycle, WaitFor};
use watershed_pbv::View as _;
use watershed_pbv::node::Node;
use watershed_pbv::packet::{HEADER_BYTES, PBV_ENTRIES, Status};
use watershed_pbv::system::WireBlock;
use watershed_pbv::system::engines;
use watershed_probe::ladder::Ladder;
use watershed_scenario_interface::run::{Flip, Progress, RunError, RunOptions};

/// Bytes of the frame of a large result.
const FRAME_BYTES: usize = 1056;

/// A system of the PBV family under way.
pub(crate) struct Run<'a> {
    pub(super) loaded: &'a Loaded,
    pub(super) pbv: &'a Pbv,
    pub(super) build: PbvBuild<()>,
    /// End points that a dead link cuts off: nobody waits for them.
    pub(super) excused: BTreeSet<u16>,
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
    pub(crate) fn new(loaded: &'a Loaded, ready: PbvBuild<()>) -> Run<'a> {
        let pbv = loaded.scenario.pbv.as_ref().expect("the PBV family has its table");
        let dead = |device: &&u16| {
            let switch = (u32::from(**device) / pbv.device_stride * pbv.device_stride) as u16;
            let name = |device: u16| ready.names.get(&device).map_or("", String::as_str);
            let of = |device: u16| pbv.faults.iter().any(|f| f.effect == EffectFile::Dead && f.at == name(device));
            of(**device) || of(switch)
        };
        let excused = ready.devices.iter().filter(dead).copied().collect();
        Run { loaded, pbv, build: ready, excused }
    }

    /// The run, looking at its system.
    fn at<'r>(&'r self, system: &'r PbvSystem) -> RunView<'r, 'r> {
        RunView { run: self, system }
    }
}

/// A run and the system that it looks at.
pub(super) struct RunView<'r, 'a> {
    run: &'r Run<'a>,
    pub(super) system: &'r PbvSystem,
}

impl<'a> Deref for RunView<'_, 'a> {
    type Target = Run<'a>;

    fn deref(&self) -> &Run<'a> {
        self.run
    }
}

impl RunView<'_, '_> {
    pub(super) fn node(&self, end: u32) -> &Node {
        self.system.end(end as usize)
    }

    pub(super) fn name(&self, device: u16) -> String {
        self.build.names.get(&device).cloned().unwrap_or_else(|| format!("device {device:#06x}"))
    }

    /// End points that are not done.
    fn not_done(&self) -> impl Iterator<Item = &Node> {
        let ends = self.system.ends().take(self.build.devices.len());
        let ends = ends.filter(|node| !self.excused.contains(&node.device()));
        ends.filter(|node| node.unsent() > 0 || self.pbv.collectives.iter().any(|of| node.waits(of.cc_id)))
    }

    /// Their names.
    fn unfinished_end_points(&self) -> Vec<String> {
        self.not_done().map(|node| self.name(node.device())).collect()
    }

    /// Collectives that wait for each other for ever, if there are any: each lacks a node that works at the next one, and begins no
    /// other before that has ended (`blocks`).
    fn circular_wait(&self) -> Option<String> {
        let name = |cc_id| self.pbv.collectives.iter().find(|of| of.cc_id == cc_id).map(|of| of.name.clone());
        let waits = self.not_done().flat_map(|node| {
            node.blocked().filter_map(move |(waiting, works)| {
                let (who, whom) = (name(waiting)?, name(works)?);
                let why = format!("{} works at that and begins nothing else before its end", self.name(node.device()));
                Some(WaitFor { who, whom, why })
            })
        });
        let Autopsy { cycle, .. } = Autopsy::new(waits.collect());
        let lines = cycle.iter().map(|WaitFor { who, whom, why }| format!("  {who} waits for {whom}: {why}"));
        let lines: Vec<String> = lines.collect();
        (!lines.is_empty()).then(|| format!("collectives wait for each other in a circle:\n{}", lines.join("\n")))
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
        for node in self.system.ends().take(self.build.devices.len()) {
            for status in Status::ALL {
                let count = node.refused()[usize::from(status.number())];
                if count > 0 {
                    add(&mut pbv.refused_by_nodes, status.name(), count.into());
                }
            }
        }
        for link in self.system.bumps().flatten().filter_map(WireBlock::fault) {
            let map = pbv.faults.get_or_insert_default();
            for (key, value) in &counts(&link.counts()) {
                add(map, key, value.as_u64().unwrap_or(0));
            }
        }
    }

    /// The runs of a collective that every participant has the answer of, without an error.
    fn completed_runs(&self, of: &Collective) -> why::pbv::CollectiveRuns {
        let multicast = of.kind == KindFile::Multicast;
        let receivers = of.participants.iter().filter(|&&end| !(multicast && end == of.source)).count();
        let whole = self
            .answers(of)
            .into_iter()
            .filter(|(_, answers)| answers.len() == receivers && answers.iter().all(|answer| answer.error.is_none()));
        let ended = whole.filter_map(|(run, answers)| {
            let reverse = |answer: &Answer| std::cmp::Reverse(answer.device);
            if let Some(others) = self.other_groups_arrived(of, run) {
                // A member of a group waits for the other groups and for itself.
                let from = |answer: &Answer| answer.met.max(others);
                let took = |answer: &&Answer| (answer.cycle.saturating_sub(from(answer)), reverse(answer));
                let slowest = answers.iter().max_by_key(took)?;
                let (device, cycle) = (slowest.device, slowest.cycle);
                return Some(why::pbv::CompletedRun { run, device, cycle, met: from(slowest).min(cycle) });
            }
            let last = answers.iter().max_by_key(|answer| (answer.cycle, reverse(answer)))?;
            let met = answers.iter().map(|answer| answer.met).max()?;
            Some(why::pbv::CompletedRun { run, device: last.device, cycle: last.cycle, met })
        });
        let source = self.build.devices[of.source as usize];
        why::pbv::CollectiveRuns { name: of.name.clone(), cc_id: of.cc_id, source, ended: ended.collect() }
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

    fn waits_for_completions(&self) -> bool {
        true
    }

    /// A collective stands if work is left and no watchdog, task, patience or delay of its is pending (requirement K-WD-1).
    /// Others go on meanwhile, and must not hide it.
    fn find_stall(&self, system: &System, watchdog: &mut Watchdog) -> Option<String> {
        let (system, now) = (system.pbv(), system.now());
        let of = |thing: usize| &self.pbv.collectives[thing];
        let nodes = || {
            let nodes = system.ends().take(self.build.devices.len());
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
        Some(stall_message(now, &of(thing).name, since))
    }

    fn is_over(&self, system: &System) -> bool {
        self.at(system.pbv()).not_done().next().is_none()
    }

    fn at_limit(&self, system: &System) -> Option<String> {
        let (open, flits) = (self.at(system.pbv()).unfinished_end_points(), system.live_flits());
        let who = if open.is_empty() { String::new() } else { format!("; {}", not_done(&open)) };
        (!open.is_empty() || flits > 0).then(|| format!("{flits} flits are queued or under way{who}"))
    }

    fn has_lost_packets(&self, system: &System) -> bool {
        let links = system.pbv().bumps();
        links.flatten().filter_map(WireBlock::fault).map(FaultyLink::counts).any(|of| of.dead + of.given_up > 0)
    }

    fn unfinished(&self, system: &System) -> String {
        let at = self.at(system.pbv());
        let circle = at.circular_wait().map_or_else(String::new, |circle| format!("{circle}\n"));
        format!("{circle}{}", not_done(&at.unfinished_end_points()))
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
        pbv.congestion = mailbox_reports::reports(self.pbv, system.pbv(), &self.build);
        pbv.reports = mailbox_reports::sent(self.pbv, system.pbv(), &self.build);
        report.open = open_rounds(&pbv);
        document.pbv = Some(pbv);
        report
    }

    fn family_checks(&self, system: &System, _document: &Document) -> Vec<Check> {
        let disagreement =
            engines(system.pbv()).find_map(|engine| Some((engine.cfg().device, engine.ce().tracker().disagreement()?)));
        vec![match disagreement {
            None => Check::passed("tracking", "PBV and p_count agree in every context"),
            Some((device, slot)) => {
                Check::failed("tracking", format!("PBV and p_count differ in slot {slot} of device {device:#06x}"))
            }
        }]
    }

    fn why(
        &self,
        system: &System,
        ask: why::WhyQuery<'_>,
        _document: &Document,
        notes: &mut Vec<String>,
    ) -> Vec<why::Why> {
        let run = self.at(system.pbv());
        let runs = self.pbv.collectives.iter().map(|of| run.completed_runs(of)).collect::<Vec<_>>();
        why::pbv::explain(system.pbv(), &self.build, &runs, ask, notes)
    }

    fn ladder(&self, system: &System) -> Option<Ladder> {
        Some(ladder(system.pbv(), &self.build))
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

impl FamilyBuild for PbvFamily {
    fn build<'a>(&self, loaded: &'a Loaded, options: &RunOptions<'_>, _windows: bool) -> Started<'a> {
        Ok(started(Run::build(loaded, options)?))
    }

    fn trees(&self, loaded: &Loaded) -> Result<Vec<EngineTree>, Problems> {
        let built = build(loaded, BuildOptions { no_checks: true, ..BuildOptions::default() })?;
        let pbv = loaded.scenario.pbv.as_ref().expect("the PBV family has its table");
        Ok(trees::of(pbv, &layout(loaded)?, built.system.directory(), &built))
    }
}
