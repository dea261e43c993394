//! The runner: one loop over cycles, one way to stop, one list of common checks, for every [family](super::family).

use std::time::{Duration, Instant};

use super::family::{After, Family, Report};
use super::watchdog::LOOK;
use super::{Control, RunError, RunOptions, RunResult, close_wave, link_report, open_wave, trace_error};
use crate::background::{Background, Before};
use crate::record::{self, recording};
use crate::result::{Check, Document, Links, Outcome};
use crate::timeline::Timeline;
use crate::{Loaded, Problem};
use watershed_fabric::{Evaluation, Step};
use watershed_kernel::Cycle;
use watershed_probe::TraceSummary;

/// Time between two looks at how far a run is, but for runs where a look takes long.
const PAUSE: Duration = Duration::from_millis(100);

/// A run under way.
pub(crate) struct Runner<'a, F: Family + ?Sized> {
    loaded: &'a Loaded,
    pub family: Box<F>,
    /// Traffic, if there is some.
    background: Option<Background<'a>>,
    document: Document,
    /// Why the run stands, or what was not done at its limit.
    stuck: Option<String>,
    notes: Vec<String>,
    wave: Option<TraceSummary>,
    timeline: Option<Timeline>,
}

impl<'a, F: Family + ?Sized> Runner<'a, F> {
    /// A run in cycle 0.
    ///
    /// # Errors
    /// A trace of traffic cannot be read.
    pub fn new(loaded: &'a Loaded, mut family: Box<F>) -> Result<Runner<'a, F>, RunError> {
        let mut document = Document::new(loaded);
        for (key, value) in family.take_derived() {
            document.derive(&key, value);
        }
        let sources = family.take_sources();
        let background = sources.map(|sources| Background::new(loaded, sources, family.system_mut())).transpose()?;
        let (notes, wave, timeline) = (Vec::new(), None, None);
        Ok(Runner { loaded, family, background, document, stuck: None, notes, wave, timeline })
    }

    /// Makes ready what the caller wants to be kept.
    ///
    /// # Errors
    /// An option of the run is wrong.
    pub fn prepare(&mut self, options: &RunOptions<'_>) -> Result<(), RunError> {
        if let Some(flip) = options.flip {
            self.family.flip(flip)?;
        }
        if let Some(name) = options.record {
            record::check(self.family.system().plan(), name).map_err(RunError::Usage)?;
        }
        if let Some(all) = self.family.journal(options) {
            self.family.system_mut().keep_journal(all);
            self.family.keep_times();
        }
        self.timeline = options.timeline.then(Timeline::default);
        let system = self.family.system_mut();
        system.evaluate(Evaluation { no_skip: options.no_skip, shuffle: options.order_seed });
        if let Some(wave) = options.wave {
            system.record(open_wave(self.loaded, wave)?).map_err(|error| trace_error(wave, error))?;
        }
        if options.threads > 1 && self.family.system().parts() == 1 {
            self.notes.push(format!("one thread evaluates all: {}", undivided(options)));
        }
        Ok(())
    }

    /// Runs until all is done, or the limit, the watchdog or the caller ends it.
    pub fn drive(&mut self, options: &RunOptions<'_>) {
        self.family.begin();
        self.document.outcome = self.cycles(options);
        self.document.cycles = self.family.cycles(self.document.outcome);
    }

    fn cycles(&mut self, options: &RunOptions<'_>) -> Outcome {
        let limit = self.loaded.scenario.limits.max_cycles;
        let stop = options.stop_cycle.unwrap_or(u64::MAX);
        let mut watchdog = self.family.watchdog();
        let mut look = 0;
        let (mut looked, mut pause) = (Instant::now(), PAUSE);
        loop {
            if self.is_done() {
                return Outcome::Finished;
            }
            let mut until = u64::MAX;
            if let Some(background) = &mut self.background {
                match background.before(self.family.system_mut()) {
                    Before::Wrong => return Outcome::Finished,
                    Before::Again => continue,
                    Before::Until(cycle) => until = cycle,
                }
            }
            let until = until.min(self.family.before());
            // A jump over idle cycles must not jump over the limit, nor over a cycle in which something is looked at.
            let step = self.family.system_mut().step_before(limit.min(stop).min(until));
            let now = self.family.system().now();
            if step == Step::End {
                match () {
                    () if now >= stop => return Outcome::Interrupted,
                    () if now < limit => continue,
                    () => {}
                }
                self.stuck = self.family.at_limit();
                return if self.stuck.is_some() { Outcome::MaxCycles } else { Outcome::Finished };
            }
            let system = self.family.system();
            if let Some(timeline) = self.timeline.as_mut().filter(|_| step == Step::Ran) {
                timeline.look(system);
            }
            match self.family.after(step) {
                After::On => self.traffic_went_on(),
                After::Again => continue,
                After::Quiet if self.traffic_is_quiet() => continue,
                // Nothing will ever happen again: if work is left, the watchdog need not wait.
                After::Quiet if self.family.is_over() => return Outcome::Finished,
                After::Quiet => {
                    let since = self.family.system().alive_until();
                    return self.stands(&format!("cycle {since}: nothing moves any more"));
                }
            }
            if self.family.system().fault().is_some() || self.family.refused().is_some() {
                return Outcome::Broken;
            }
            if watchdog.is_due(self.family.system())
                && let Some(what) = self.family.standing(&mut watchdog)
            {
                return self.stands(&what);
            }
            look += 1;
            if look == LOOK || self.family.system().runs_in_windows() {
                look = 0;
                if let Some(hook) = options.hook
                    && looked.elapsed() >= pause
                {
                    let begin = Instant::now();
                    let answer = hook(self.family.progress());
                    looked = Instant::now();
                    // Counting what two million cores have done takes a while; whoever stops the run waits for this, too.
                    pause = PAUSE.max(20 * (looked - begin));
                    if answer == Control::Stop {
                        return Outcome::Interrupted;
                    }
                }
            }
            if self.family.system().now() >= stop {
                return Outcome::Interrupted;
            }
        }
    }

    /// Whether all work is over, and all traffic that ends.
    fn is_done(&self) -> bool {
        let over = |background: &Background<'_>| background.is_over(self.family.system(), self.family.has_work());
        self.family.is_done() && self.background.as_ref().is_none_or(over)
    }

    /// Traffic after a step. Where a run goes on until nothing moves, endless traffic stops with the last of the work.
    fn traffic_went_on(&mut self) {
        let Some(background) = &mut self.background else { return };
        background.stepped(self.family.system_mut());
        if background.waits_for_work() && self.family.is_over() {
            background.stop(self.family.system_mut());
        }
    }

    /// Nothing moves any more: whether traffic has something to do about it.
    fn traffic_is_quiet(&mut self) -> bool {
        self.background.as_mut().is_some_and(|background| background.is_quiet(self.family.system_mut()))
    }

    /// An input that turned out to be wrong while the run read it.
    pub fn problem(&mut self) -> Option<Problem> {
        self.background.as_mut()?.take_wrong()
    }

    /// What the links did.
    fn links(&self, all: bool) -> Links {
        let (system, there, cycles) = (self.family.system(), self.family.all_links(), self.document.cycles);
        if let Some(background) = &self.background {
            return background.links(system, there, cycles, all);
        }
        let (all_waits, waits) = (system.head_waits(), |at| system.link_waits(at));
        link_report(system, system.link_counts(), (all_waits.as_ref(), &waits), there, cycles, all)
    }

    /// The run stands: who waits for whom, and who is not done.
    fn stands(&mut self, what: &str) -> Outcome {
        let (autopsy, left) = (self.family.system().autopsy(), self.family.left());
        self.stuck = Some(format!("{what}\n{autopsy}\n{left}").trim_end().to_owned());
        Outcome::Deadlock
    }

    /// Whether what parts did in windows need not be looked at again, cycle by cycle.
    pub fn went_well(&self) -> bool {
        let system = self.family.system();
        !system.runs_in_windows() || system.fault().is_none() && self.family.went_well(self.document.outcome)
    }

    /// Finishes the waveform; what kept it from being written.
    pub fn close(&mut self, options: &RunOptions<'_>) -> Option<String> {
        let wave = options.wave?;
        let tracer = self.family.system_mut().stop_recording();
        let (summary, error) = close_wave(wave, tracer, self.document.cycles, &mut self.notes);
        self.wave = summary;
        error
    }

    /// What the run leaves behind.
    pub fn result(mut self, options: &RunOptions<'_>) -> RunResult {
        let wanted = &self.loaded.scenario.checks;
        let (oracle, monitors) = (wanted.oracle && !options.no_checks, wanted.monitors && !options.no_checks);
        let mut report = self.family.report(&mut self.document, oracle);
        if let Some(background) = &mut self.background {
            background.report(&mut self.document, self.family.system_mut());
        }
        let ask = |ask| self.family.why(ask, &self.document, &mut self.notes);
        let why = options.why.map(ask).unwrap_or_default();
        self.document.links = self.links(options.all_links);
        let data = std::mem::take(&mut report.data);
        self.checks(report, monitors);
        let ladder = if options.ladder { self.family.ladder() } else { None };
        let progress = self.family.progress();
        let system = self.family.system();
        let recording = recording(self.loaded, system.plan(), system.journal(), options);
        let system = self.family.system();
        let (timeline, link_names) = self.timeline.map_or_else(Default::default, |timeline| timeline.samples(system));
        let (document, notes, wave) = (self.document, self.notes, self.wave);
        RunResult {
            document,
            data,
            notes,
            ladder,
            why,
            recording,
            wave,
            wave_error: None,
            progress,
            timeline,
            link_names,
        }
    }

    /// Whether everything ended that was started.
    fn ended(&mut self, open: Option<String>) -> Check {
        let fault = self.family.system().fault().or(self.family.refused());
        let stuck = self.stuck.as_deref().unwrap_or_default();
        match (self.document.outcome, fault) {
            (_, Some(fault)) => Check::failed("rules", fault),
            (Outcome::Deadlock, _) => Check::failed("progress", stuck),
            (Outcome::MaxCycles, _) => {
                let work = self.family.has_work();
                if let Some(end) = self.background.as_ref().and_then(|background| background.limit_is_end(work)) {
                    self.document.outcome = Outcome::Finished;
                    return Check::passed("progress", end);
                }
                let limit = self.loaded.scenario.limits.max_cycles;
                let left = if stuck.is_empty() { String::new() } else { format!(": {stuck}") };
                Check::failed("progress", format!("not done after limits.max_cycles = {limit}{left}"))
            }
            (Outcome::Interrupted, _) => Check::failed("progress", "stopped by the user"),
            _ => match open {
                Some(open) => Check::failed("progress", open),
                None => Check::passed("progress", "everything that was started has ended"),
            },
        }
    }

    fn checks(&mut self, report: Report, monitors: bool) {
        let mut checks = vec![self.ended(report.open)];
        checks.extend(report.findings);
        checks.extend(self.family.settle(&self.document));
        if let Some(background) = &self.background {
            let (work, lossy) = (self.family.has_work(), self.family.loses_traffic());
            checks.extend(background.check(self.family.system(), &self.document, work, lossy));
        }
        let drains = self.background.as_ref().is_none_or(Background::drains);
        let emptied = drains && self.document.outcome == Outcome::Finished;
        if emptied {
            // Whatever is still on its way now are credits.
            let system = self.family.system_mut();
            while system.fault().is_none() && system.step_before(Cycle::MAX) != Step::Quiet {}
        }
        let system = self.family.system();
        if emptied {
            let live = system.live_flits();
            let detail =
                if live == 0 { "no flit is left in the network".into() } else { format!("{live} flits are left") };
            checks.push(Check { name: "network empty".into(), passed: live == 0, detail });
        }
        if monitors {
            let rest = !emptied || system.at_rest();
            let detail = if rest { "order and credits held on every link" } else { "credits are missing at the end" };
            let (passed, detail) = match system.head_waits_add_up() {
                Ok(()) => (rest, detail.into()),
                Err(wrong) => (false, wrong),
            };
            checks.push(Check { name: "links".into(), passed, detail });
        }
        checks.extend(report.last);
        self.document.checks = checks;
    }
}

/// Why a system is whole although more threads than one were asked for.
fn undivided(options: &RunOptions<'_>) -> &'static str {
    if options.watches() {
        return "a waveform, a journal, a shuffled order or idle cycles that are not skipped need the system in one piece";
    }
    "there is nothing to divide between them"
}
