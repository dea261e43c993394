//! The runner: one loop over cycles, one way to stop, one list of common checks, for every [family](super::family).

use std::time::{Duration, Instant};

use super::family::{After, Before, Family, Report};
use super::watchdog::LOOK;
use super::{Control, RunError, RunOptions, RunResult, close_wave, open_wave, trace_error};
use crate::Loaded;
use crate::record::{self, recording};
use crate::result::{Check, Document, Outcome};
use crate::timeline::Timeline;
use watershed_fabric::{Evaluation, Step};
use watershed_probe::TraceSummary;

/// Time between two looks at how far a run is, but for runs where a look takes long.
const PAUSE: Duration = Duration::from_millis(100);

/// A run under way.
pub(crate) struct Runner<'a, F: Family + ?Sized> {
    loaded: &'a Loaded,
    pub family: Box<F>,
    document: Document,
    /// Why the run stands, or what was not done at its limit.
    stuck: Option<String>,
    notes: Vec<String>,
    wave: Option<TraceSummary>,
    timeline: Option<Timeline>,
}

impl<'a, F: Family + ?Sized> Runner<'a, F> {
    /// A run in cycle 0.
    pub fn new(loaded: &'a Loaded, mut family: Box<F>) -> Runner<'a, F> {
        let mut document = Document::new(loaded);
        for (key, value) in family.take_derived() {
            document.derive(&key, value);
        }
        Runner { loaded, family, document, stuck: None, notes: Vec::new(), wave: None, timeline: None }
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
            let until = match self.family.before() {
                Before::Done => return Outcome::Finished,
                Before::Again => continue,
                Before::Until(until) => until,
            };
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
                After::On => {}
                After::Again => continue,
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
        let ask = |ask| self.family.why(ask, &self.document, &mut self.notes);
        let why = options.why.map(ask).unwrap_or_default();
        self.document.links = self.family.links(self.document.cycles, options.all_links);
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
                if let Some(end) = self.family.limit_is_end() {
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
        let (system, drains) = (self.family.system(), self.family.drains());
        let emptied = drains && self.document.outcome == Outcome::Finished;
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
