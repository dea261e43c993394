//! The cycles of a PIUMA system or a plain fabric: starts of collectives, and the end of the run.

use std::ops::Deref;

use super::claims::Claims;
use super::spec::{Fabric, Piuma};
use crate::build::{BuildOptions, PiumaBuild, build};
use crate::config::{self, Collective, Scenario};
use crate::names::nearest;
use crate::programs::{circular_wait, rules::StoreRules};
use crate::result::{Check, Document, Outcome};
use crate::run::family::{Family, FamilyBuild, Report, Started, StepOutcome, started};
use crate::run::system::{PiumaSystem, System, Views};
use crate::run::watchdog::Watchdog;
use crate::sources::Sources;
use crate::why::{Why, WhyQuery};
use crate::{Loaded, Problems, hosts, ladder, workload};
use watershed_fabric::Step;
use watershed_kernel::Cycle;
use watershed_piuma::claim::Wiring;
use watershed_piuma::{Job, Store, Tap};
use watershed_probe::ladder::Ladder;
use watershed_scenario_interface::run::{Flip, Progress, RunError, RunOptions};
use watershed_state::{Loader, Mismatch, Saver, state};

/// Switches that an error names, at most.
const EXAMPLES: usize = 3;

/// A run under way.
pub(crate) struct Run<'a> {
    pub(super) loaded: &'a Loaded,
    pub(super) build: PiumaBuild<()>,
    /// Whether each collective may start, and is complete.
    pub(super) state: Vec<CollectiveState>,
    /// How many participants of each, from the first on, are known to be done.
    pub(super) done: Vec<usize>,
    /// Completions the system has reported and the run has looked at.
    pub(super) seen: u64,
    /// Threads of programs are left.
    pub(super) programs_left: bool,
    /// Ranks of a workload are left.
    ranks_left: bool,
    /// First cycle of each host that has started.
    pub(super) host_starts: Vec<Option<u64>>,
    /// The host that runs or is to run.
    pub(super) host_next: Option<usize>,
    /// Completions when it started.
    pub(super) host_base: u64,
    /// The cycle in which nothing moved any more although work is left.
    silent: Option<Cycle>,
    /// A store of a program that is not legal, or a use of what was stored.
    pub(super) refused: Option<String>,
    /// The rules for stores of programs, from the first store on.
    pub(super) rules: Option<StoreRules>,
    /// The wires by which trees that overlap take turns.
    pub(super) claims: Option<Claims>,
    /// Where a bit was to be flipped: switch, collective id, word.
    pub(super) flip: Option<(String, u16, u64)>,
}

// Of what was built the trees that programs have rewritten change, and the rules for them begin with the first store: see `Family::save`.
state!(['a] Run<'a> {
    saved: state, done, seen, programs_left, ranks_left, host_starts, host_next, host_base, silent, refused, claims;
    built: loaded, build, rules, flip
});

/// A run and the system that it looks at, to report the outcome.
pub(super) struct RunView<'r, 'a> {
    run: &'r Run<'a>,
    pub(super) system: &'r PiumaSystem,
}

impl<'a> Deref for RunView<'_, 'a> {
    type Target = Run<'a>;

    fn deref(&self) -> &Run<'a> {
        self.run
    }
}

/// The state of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub(super) enum CollectiveState {
    Running,
    Complete,
}

impl<'a> Run<'a> {
    /// Builds the system of a scenario.
    ///
    /// # Errors
    /// What is wrong with the configuration, at its place.
    pub(crate) fn build(
        loaded: &'a Loaded,
        options: &RunOptions<'_>,
        windows: bool,
    ) -> Result<(Box<System>, Run<'a>), RunError> {
        // Where cycles went is told from those parts that something uses: of the largest systems no others could be kept.
        let whole = options.wave.is_some() || options.all_links || options.ladder || options.record.is_some();
        let threads = options.divided();
        let windows = windows && !options.observes_between_cycles();
        let ready = build(loaded, BuildOptions { no_monitors: options.no_checks, whole, threads, windows })?;
        let (system, ready) = ready.split();
        let mut system = watershed_piuma::simulation(system);
        let run = Run::new(loaded, system.piuma_mut(), ready);
        Ok((system, run))
    }

    /// What runs on a system in cycle 0.
    pub(crate) fn new(loaded: &'a Loaded, system: &mut PiumaSystem, mut ready: PiumaBuild<()>) -> Run<'a> {
        let done = vec![0; ready.collectives.len()];
        let started = |of: &Collective| if of.called { CollectiveState::Complete } else { CollectiveState::Running };
        let state = loaded.scenario.collectives.iter().map(started).collect();
        let claims = Claims::new(&loaded.scenario, system, &mut ready);
        let host_starts = vec![None; loaded.scenario.hosts.len()];
        let programs_left = system.ends().any(|end| end.processor().is_some());
        Run {
            loaded,
            build: ready,
            state,
            done,
            seen: 0,
            programs_left,
            ranks_left: loaded.workload.is_some(),
            host_starts,
            host_next: None,
            host_base: 0,
            silent: None,
            refused: None,
            rules: None,
            claims,
            flip: None,
        }
    }
}

impl Run<'_> {
    /// The run, looking at its system.
    fn at<'r>(&'r self, system: &'r PiumaSystem) -> RunView<'r, 'r> {
        RunView { run: self, system }
    }

    /// The first host on the fabric from an index on.
    pub(super) fn host_from(&self, first: usize) -> Option<usize> {
        let hosts = &self.loaded.scenario.hosts;
        (first..hosts.len()).find(|&index| hosts[index].file.mode == hosts::file::HostMode::Fabric)
    }

    fn host_is_done(system: &PiumaSystem, index: usize, host: &hosts::config::Host) -> bool {
        hosts::result::ranks(system, host, index).all(|rank| rank.end().is_some())
    }

    pub(super) fn hosts_left(&self) -> bool {
        self.host_next.is_some()
    }

    /// Lets the next host start when all that was before it is complete.
    fn next_host(&mut self, system: &mut PiumaSystem) {
        let Some(next) = self.host_next else { return };
        let host = &self.loaded.scenario.hosts[next];
        if self.host_starts[next].is_some() {
            // Every rank reports once: asking them all is worth it only then.
            let reported = system.completions() - self.host_base;
            if reported < host.ranks.len() as u64 || !Self::host_is_done(system, next, host) {
                return;
            }
            self.host_next = self.host_from(next + 1);
            self.next_host(system);
            return;
        }
        // Alone with PIUMA's engines, software has the end points to itself.
        if self.loaded.scenario.family != config::Family::Mixed && (self.collectives_left() || self.programs_left) {
            return;
        }
        let start = system.now().max(host.file.start_cycle);
        self.host_starts[next] = Some(start);
        self.host_base = system.completions();
        let class = hosts::build::class(next);
        for &end in &host.ranks {
            for rank in system.end_mut(end as usize).hosts_mut() {
                if rank.job().class == class {
                    let delay = host.delays.get(rank.rank() as usize).copied().unwrap_or(0);
                    rank.release(start + delay);
                }
            }
        }
    }

    /// Whether threads of programs have not ended, or what they sent is still on its way.
    fn programs_left(&self, system: &PiumaSystem) -> bool {
        let mut processors = system.ends().filter_map(|end| end.processor());
        self.programs_left && (processors.any(|processor| !processor.is_done()) || system.has_flits(true))
    }

    /// Whether ranks of a workload have not ended.
    fn ranks_left(system: &PiumaSystem) -> bool {
        system.ends().filter_map(watershed_piuma::End::rank).any(|rank| rank.end().is_none())
    }

    /// Makes the stores to configuration registers that programs asked for: they count from the next cycle on.
    fn program_stores(&mut self, system: &mut PiumaSystem) {
        if !self.programs_left {
            return;
        }
        let mut stores = Vec::new();
        system.each_end(&mut |end| end.take_stores(&mut stores));
        let Run { loaded, build, rules, refused, .. } = self;
        for store in stores.into_iter().filter(|_| refused.is_none()).collect::<Vec<Store>>() {
            if rules.is_none() {
                *rules = StoreRules::new(loaded, system, &build.collectives);
            }
            let made = rules.as_mut().map(|rules| rules.store(loaded, system, &store));
            if let Some(Err(why)) = made {
                refused.get_or_insert(why);
            }
        }
    }

    /// Looks at who used a tree that programs have written.
    fn program_uses(&mut self, system: &mut PiumaSystem) {
        let Run { loaded, build, rules, refused, claims, .. } = self;
        let Some(rules) = rules else { return };
        let used = rules.used(loaded, system, &mut build.collectives).and_then(|anew| {
            if anew.is_empty() {
                return Ok(());
            }
            let plan = rules.plan(loaded, system, &build.collectives);
            Claims::change(claims, &loaded.scenario, (system, rules), plan, anew)
        });
        if let Err(why) = used {
            refused.get_or_insert(why);
        }
    }

    /// The cycle since which nothing was served, if that is too long ago, no end point waits for a time that will come, and there are
    /// flits that want to be served, or calls that wait for each other.
    fn stalled_since(&self, system: &PiumaSystem, watchdog: &mut Watchdog) -> Option<u64> {
        let (now, [set, unicast]) = (system.now(), system.served());
        let (set, unicast) = (watchdog.check_progress(0, now, set), watchdog.check_progress(1, now, unicast));
        let set = set?;
        // Calls that wait for each other wait for ever, whatever else goes on.
        if circular_wait::find(&self.loaded.scenario, system).is_some() {
            return Some(set);
        }
        if system.ends().any(|end| end.expects(now)) {
            (0..WATCHED).for_each(|item| watchdog.restart_patience(item, now));
            return None;
        }
        // Moving traffic must not hide a stalled collective; everything else may wait for collectives.
        if system.has_flits(true) {
            return Some(set);
        }
        unicast.map(|unicast| set.max(unicast)).filter(|_| system.has_flits(false))
    }

    pub(super) fn collectives_left(&self) -> bool {
        self.state.iter().any(|state| *state != CollectiveState::Complete)
    }

    /// Looks who is complete.
    fn advance(&mut self, system: &PiumaSystem) {
        for index in 0..self.state.len() {
            if self.state[index] != CollectiveState::Running {
                continue;
            }
            // Who is done stays done: the next look goes on at the first that was not.
            let from = self.done[index];
            let left = self.jobs_from(system, index, from).position(|job| job.end().is_none());
            match left {
                Some(more) => self.done[index] = from + more,
                None => self.state[index] = CollectiveState::Complete,
            }
        }
    }

    pub(super) fn jobs<'s>(&'s self, system: &'s PiumaSystem, collective: usize) -> impl Iterator<Item = &'s Job> {
        self.jobs_from(system, collective, 0)
    }

    fn jobs_from<'s>(
        &'s self,
        system: &'s PiumaSystem,
        collective: usize,
        first: usize,
    ) -> impl Iterator<Item = &'s Job> {
        let jobs = self.build.collectives[collective].jobs[first..].iter();
        jobs.filter_map(move |&(end, job)| system.end(end).core.as_ref().map(|core| &core.jobs()[job]))
    }
}

impl Run<'_> {
    /// What is said of a switch that has no engine, or is not there: with names that are like it, or else some that there are.
    fn no_engine(&self, switch: &str) -> RunError {
        let shape = &self.loaded.scenario.topology.shape;
        let all: Vec<String> = (0..shape.switches().unwrap_or(0) as u32).map(|at| shape.switch_name(at)).collect();
        let (what, near) = match (all.iter().any(|name| name == switch), nearest(switch, &all)) {
            (true, _) => (format!("switch \"{switch}\" has no engine"), String::new()),
            (_, Some(near)) => (format!("there is no switch \"{switch}\""), format!("; did you mean `{near}`?")),
            (_, None) => {
                let some: Vec<String> = all.iter().take(EXAMPLES).map(|name| format!("`{name}`")).collect();
                (format!("there is no switch \"{switch}\""), format!("; there is, for example, {}", some.join(", ")))
            }
        };
        RunError::Usage(format!("{what}{near}"))
    }
}

impl Family for Run<'_> {
    fn take_derived(&mut self) -> Vec<(String, u64)> {
        std::mem::take(&mut self.build.derived)
    }

    fn flip(&mut self, system: &mut System, flip: Flip<'_>) -> Result<(), RunError> {
        let Flip { switch, id, word, mask } = flip;
        let named = self.loaded.scenario.topology.switch_by_name(switch);
        let engine = named.and_then(|at| system.piuma_mut().join_mut(at));
        let Some(engine) = engine else { return Err(self.no_engine(switch)) };
        engine.set_tap(Tap { id, seq: word, flip: mask, seen: None });
        self.flip = Some((switch.to_owned(), id, word));
        Ok(())
    }

    fn journal(&self, options: &RunOptions<'_>) -> Option<bool> {
        let packets = options.why.is_some_and(|ask| ask.source.is_some());
        let named = |name: &str| options.why.is_none_or(|ask| ask.collective.is_none_or(|asked| asked == name));
        let hosts = self.loaded.scenario.hosts.iter().any(|host| named(&host.name));
        let all = packets || hosts || options.why.is_none() || self.loaded.scenario.collectives.is_empty();
        (options.why.is_some() || options.ladder || options.record.is_some()).then_some(all)
    }

    fn keep_times(&mut self, system: &mut System) {
        let system = system.piuma_mut();
        let jobs: Vec<(usize, usize)> = self.build.collectives.iter().flat_map(|built| built.jobs.clone()).collect();
        for (end, job) in jobs {
            if let Some(core) = &mut system.end_mut(end).core {
                core.job_mut(job).keep_times();
            }
        }
        let called = self.loaded.scenario.collectives.iter().filter(|of| of.called);
        for end in called.flat_map(|of| of.participants.iter().copied()) {
            if let Some(processor) = system.end_mut(end as usize).processor_mut() {
                processor.keep_times();
            }
        }
        for &end in self.loaded.scenario.hosts.iter().flat_map(|host| &host.ranks) {
            let hosts = system.end_mut(end as usize).hosts_mut();
            hosts.iter_mut().for_each(watershed_piuma::host::Host::keep_log);
        }
    }

    fn watchdog(&self, _: &System) -> Watchdog {
        Watchdog::new(self.loaded.scenario.limits.watchdog_cycles, WATCHED)
    }

    fn begin(&mut self, system: &mut System) {
        self.host_next = self.host_from(0);
        self.next_host(system.piuma_mut());
    }

    fn take_sources(&mut self) -> Option<Sources> {
        self.build.sources.take()
    }

    fn has_work(&self) -> bool {
        let scenario = &self.loaded.scenario;
        !self.state.is_empty()
            || scenario.programs.is_some()
            || scenario.workload.is_some()
            || self.host_from(0).is_some()
    }

    fn is_done(&self) -> bool {
        !(self.collectives_left() || self.programs_left || self.hosts_left() || self.ranks_left)
    }

    /// But where engines are claimed in the wire or programs write registers.
    fn waits_for_completions(&self) -> bool {
        self.claims.is_none() && self.rules.is_none()
    }

    fn before_step(&mut self, system: &mut System) -> Cycle {
        let Some(claims) = &mut self.claims else { return Cycle::MAX };
        let system = system.piuma_mut();
        claims.clock(system);
        if let Err(why) = claims.advance_pending(&self.loaded.scenario, system) {
            self.refused.get_or_insert(why);
        }
        claims.next()
    }

    fn after_step(&mut self, system: &mut System, step: Step) -> StepOutcome {
        let system = system.piuma_mut();
        self.silent = None;
        let written = self.rules.as_ref().is_some_and(StoreRules::is_written);
        if written || system.completions() != self.seen || self.programs_left && step == Step::Quiet {
            system.refresh();
        }
        if let Some(claims) = &mut self.claims {
            claims.collect_events(system);
            if let Err(why) = claims.advance_pending(&self.loaded.scenario, system) {
                self.refused.get_or_insert(why);
            }
        }
        if written {
            self.program_uses(system);
        }
        if system.completions() != self.seen {
            self.seen = system.completions();
            self.advance(system);
            self.program_stores(system);
            self.programs_left = self.programs_left(system);
            self.ranks_left = self.ranks_left && Self::ranks_left(system);
            self.next_host(system);
        } else if self.programs_left && step == Step::Quiet && !self.programs_left(system) {
            // The last messages have come to their queues, and nobody is there to take them.
            self.programs_left = false;
            self.next_host(system);
            return StepOutcome::Repeat;
        } else if step == Step::Quiet {
            self.silent = Some(system.alive_until());
            return StepOutcome::Quiescent;
        }
        StepOutcome::Continue
    }

    fn broken_rule(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    fn find_stall(&self, system: &System, watchdog: &mut Watchdog) -> Option<String> {
        let since = self.stalled_since(system.piuma(), watchdog)?;
        let now = system.now();
        Some(format!("cycle {now}: no end point has taken or sent a flit since cycle {since}"))
    }

    fn is_over(&self, _: &System) -> bool {
        false
    }

    fn at_limit(&self, _: &System) -> Option<String> {
        Some(String::new())
    }

    fn unfinished(&self, system: &System) -> String {
        let system = system.piuma();
        let waiting: Vec<&str> = (0..self.state.len())
            .filter(|&index| self.state[index] != CollectiveState::Complete)
            .map(|index| self.loaded.scenario.collectives[index].name.as_str())
            .collect();
        let left = (!waiting.is_empty()).then(|| format!("not complete: {}", waiting.join(", ")));
        let threads = system.ends().filter_map(|end| end.processor()?.open());
        let ranks = system.ends().filter_map(|end| end.rank()?.open());
        let waits = circular_wait::find(&self.loaded.scenario, system);
        let all = waits.into_iter().chain(left).chain(threads.take(8)).chain(ranks.take(8));
        all.collect::<Vec<_>>().join("\n")
    }

    fn no_rerun_needed(&self, outcome: Outcome) -> bool {
        !matches!(outcome, Outcome::Finished | Outcome::Deadlock) || !self.collectives_left()
    }

    fn cycles(&self, system: &System, outcome: Outcome) -> Cycle {
        // A window goes on behind the last completion; nothing but credits moves there.
        let complete = system.runs_in_windows() && !self.collectives_left() && outcome != Outcome::Interrupted;
        self.silent.unwrap_or_else(|| if complete { system.completed() + 1 } else { system.now() })
    }

    fn progress(&self, system: &System) -> Progress {
        let system = system.piuma();
        let (mut done, mut total) = (0, 0);
        for (index, collective) in self.loaded.scenario.collectives.iter().enumerate() {
            let lanes = u64::from(collective.network_dtype().lanes());
            let built = &self.build.collectives[index];
            let segments = built.segments.iter().flat_map(|segment| std::iter::repeat_n(segment, built.parts()));
            for (job, segment) in self.jobs(system, index).zip(segments).filter(|(job, _)| job.kind().receives) {
                let elements = segment.elements.end - segment.elements.start;
                done += (job.landed() * lanes).min(elements);
                total += elements;
            }
        }
        for rank in system.ends().filter_map(watershed_piuma::End::rank) {
            done += (rank.records().len() - rank.left()) as u64;
            total += rank.records().len() as u64;
        }
        Progress { cycle: system.now(), done, total, inside: None }
    }

    fn report(&self, system: &System, document: &mut Document, oracle: bool) -> Report {
        let mut report = self.at(system.piuma()).results(document, oracle);
        if let Some((result, checks)) = workload::report::report(self.loaded, system, &self.build, oracle) {
            document.workload = Some(result);
            report.last.extend(checks);
        }
        report
    }

    fn family_checks(&self, _: &System, _: &Document) -> Vec<Check> {
        Vec::new()
    }

    fn all_links(&self) -> Option<&[u64]> {
        self.build.all_links.as_deref()
    }

    fn save(&self, to: &mut Saver) {
        watershed_state::State::save(self, to);
        to.each(self.build.collectives.iter().map(|built| &built.rewritten));
        let observed = self.rules.as_ref().map(StoreRules::observed_trees);
        to.value(&observed.is_some());
        if let Some(trees) = observed {
            to.values(trees);
        }
    }

    fn load(&mut self, system: &System, from: &mut Loader<'_>) -> Result<(), Mismatch> {
        watershed_state::State::load(self, from)?;
        from.each(self.build.collectives.iter_mut().map(|built| &mut built.rewritten))?;
        if from.value()? {
            let found = from.value()?;
            let rules = StoreRules::new(self.loaded, system.piuma(), &self.build.collectives);
            self.rules = rules.map(|rules| rules.with_observed_trees(found));
        }
        Ok(())
    }

    fn why(&self, system: &System, ask: WhyQuery<'_>, document: &Document, notes: &mut Vec<String>) -> Vec<Why> {
        self.at(system.piuma()).explain(ask, document, notes)
    }

    fn ladder(&self, system: &System) -> Option<Ladder> {
        let system = system.piuma();
        Some(ladder::ladder(system, system.journal()?, &self.at(system).names()))
    }
}

/// What a run watches: set-routed and point-to-point flits that end points and engines take and send.
const WATCHED: usize = 2;

impl FamilyBuild for Piuma {
    fn build<'a>(&self, loaded: &'a Loaded, options: &RunOptions<'_>, windows: bool) -> Started<'a> {
        Ok(started(Run::build(loaded, options, windows)?))
    }

    fn wiring(&self, loaded: &Loaded) -> Result<(Wiring, usize), Problems> {
        if trees(&loaded.scenario) < 2 {
            return Ok((Wiring::default(), 0));
        }
        let options = BuildOptions { no_monitors: true, ..BuildOptions::default() };
        Ok((build(loaded, options)?.claims.wiring, 0))
    }
}

impl FamilyBuild for Fabric {
    fn build<'a>(&self, loaded: &'a Loaded, options: &RunOptions<'_>, windows: bool) -> Started<'a> {
        Piuma.build(loaded, options, windows)
    }
}

/// Trees that registers may hold.
fn trees(scenario: &Scenario) -> u64 {
    let multicasts = scenario.programs.as_ref().map_or(0, |programs| programs.multicasts.len());
    multicasts as u64 + scenario.collectives.iter().map(|of| u64::from(of.segments)).sum::<u64>()
}
