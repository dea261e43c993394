//! The cycles of a run: until all is done, or the limit, the watchdog or the caller ends it.

use super::traffic::MARGIN;
use super::watchdog::{LOOK, Watchdog};
use super::{Control, Progress, Run, RunOptions, State};
use crate::build::Ready;
use crate::config::Traffic;
use crate::hosts;
use crate::measure::Phase;
use crate::programs::rules::Rules;
use crate::result::Outcome;
use watershed_fabric::Step;
use watershed_piuma::{Job, Store, System};

/// Steps between two collections of what end points have measured.
const COLLECT: u32 = 128;

/// Time between two looks at how far a run is, but for runs where a look takes long.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

impl Run<'_> {
    /// Runs until all is done, or the limit, the watchdog or the caller ends it.
    pub(super) fn drive(&mut self, options: &RunOptions<'_>) {
        let limits = &self.loaded.scenario.limits;
        let stop = options.stop_cycle.unwrap_or(u64::MAX);
        let mut watchdog = Watchdog::new(limits.watchdog_cycles, WATCHED);
        self.host_next = self.host_from(0);
        self.next_host();
        let mut look = 0;
        let (mut looked, mut pause) = (std::time::Instant::now(), PAUSE);
        while !self.is_done() {
            // A jump over idle cycles must not jump over the limit, nor over a cycle in which something is looked at.
            let now = self.ready.system.now();
            if now + MARGIN >= self.feed.until && !self.feed(now) {
                break;
            }
            if now >= self.measurement.next() {
                self.measure(now);
                continue;
            }
            let end = limits.max_cycles.min(self.measurement.next()).min(self.feed.until).min(stop);
            let step = self.ready.system.step_before(end);
            if step == Step::End {
                let now = self.ready.system.now();
                if now < limits.max_cycles.min(stop) {
                    continue;
                }
                self.document.outcome = if now >= stop { Outcome::Interrupted } else { Outcome::MaxCycles };
                break;
            }
            if let Some(timeline) = &mut self.timeline {
                let system = &self.ready.system;
                timeline.look(system.now(), || system.live_flits(), system.moves());
            }
            if self.rules.as_ref().is_some_and(Rules::is_written) {
                self.program_uses();
            }
            if self.ready.system.completions() != self.seen {
                self.seen = self.ready.system.completions();
                self.advance();
                self.program_stores();
                self.programs_left = self.programs_left();
                self.next_host();
            } else if self.programs_left && step == Step::Quiet && !self.programs_left() {
                // The last messages have come to their queues, and nobody is there to take them.
                self.programs_left = false;
                self.next_host();
                continue;
            } else if step == Step::Quiet && !self.feed.is_at_end() {
                // The next packet of a trace is further away than the run has read.
                let now = self.ready.system.now();
                if !self.feed(now) {
                    break;
                }
                continue;
            } else if step == Step::Quiet && self.measurement.next() != u64::MAX {
                // Nothing will happen any more, but the window has not been looked at.
                let next = self.measurement.next();
                self.measure(next);
                continue;
            } else if step == Step::Quiet {
                // Nothing will ever happen again although work is left: the watchdog need not wait.
                let since = self.ready.system.alive_until();
                self.stuck(&format!("cycle {since}: nothing moves any more"));
                self.document.cycles = since;
                return;
            }
            if self.ready.system.fault().is_some() || self.refused.is_some() {
                self.document.outcome = Outcome::Broken;
                break;
            }
            look += 1;
            if look % COLLECT == 0 {
                self.collect();
            }
            if look == LOOK || self.ready.system.runs_in_windows() {
                look = 0;
                if let Some(since) = standing(&mut watchdog, &self.ready.system) {
                    self.stuck(&format!(
                        "cycle {}: no end point has taken or sent a flit since cycle {since}",
                        self.ready.system.now()
                    ));
                    break;
                }
                if let Some(hook) = options.hook
                    && looked.elapsed() >= pause
                {
                    let begin = std::time::Instant::now();
                    let answer = hook(self.progress());
                    looked = std::time::Instant::now();
                    // Counting what two million cores have done takes a while; whoever stops the run waits for this, too.
                    pause = PAUSE.max(20 * (looked - begin));
                    if answer == Control::Stop {
                        self.document.outcome = Outcome::Interrupted;
                        break;
                    }
                }
            }
            if self.ready.system.now() >= stop {
                self.document.outcome = Outcome::Interrupted;
                break;
            }
        }
        let system = &self.ready.system;
        // A window goes on behind the last completion; nothing but credits moves there.
        let finished = self.document.outcome != Outcome::Interrupted;
        let complete = system.runs_in_windows() && !self.collectives_left() && finished;
        self.document.cycles = if complete { system.completed() + 1 } else { system.now() };
    }

    /// Whether everything is complete and no rule was broken, or the run was ended from outside.
    pub(super) fn went_well(&self) -> bool {
        let ended = !matches!(self.document.outcome, Outcome::Finished | Outcome::Deadlock);
        self.ready.system.fault().is_none() && (ended || !self.collectives_left())
    }

    /// The first host on the fabric from an index on.
    pub(super) fn host_from(&self, first: usize) -> Option<usize> {
        let hosts = &self.loaded.scenario.hosts;
        (first..hosts.len()).find(|&index| hosts[index].mode == hosts::file::HostMode::Fabric)
    }

    /// Whether there is anything but traffic.
    pub(super) fn has_work(&self) -> bool {
        let scenario = &self.loaded.scenario;
        !self.state.is_empty() || scenario.programs.is_some() || self.host_from(0).is_some()
    }

    pub(super) fn host_is_done(&self, index: usize, host: &hosts::config::Host) -> bool {
        hosts::result::ranks(&self.ready.system, host, index).all(|rank| rank.end().is_some())
    }

    pub(super) fn hosts_left(&self) -> bool {
        self.host_next.is_some()
    }

    /// Lets the next host start when all that was before it is complete.
    pub(super) fn next_host(&mut self) {
        let Some(next) = self.host_next else { return };
        let host = &self.loaded.scenario.hosts[next];
        if self.host_starts[next].is_some() {
            // Every rank reports once: asking them all is worth it only then.
            let reported = self.ready.system.completions() - self.host_base;
            if reported < host.ranks.len() as u64 || !self.host_is_done(next, host) {
                return;
            }
            self.host_next = self.host_from(next + 1);
            self.next_host();
            return;
        }
        if self.collectives_left() || self.programs_left {
            return;
        }
        let start = self.ready.system.now().max(host.start_cycle);
        self.host_starts[next] = Some(start);
        self.host_base = self.ready.system.completions();
        let class = hosts::build::class(next);
        for &end in &host.ranks {
            for rank in self.ready.system.end_mut(end as usize).hosts_mut() {
                if rank.job().class == class {
                    let delay = host.delays.get(rank.rank() as usize).copied().unwrap_or(0);
                    rank.release(start + delay);
                }
            }
        }
    }

    /// Whether threads of programs have not ended, or what they sent is still on its way.
    pub(super) fn programs_left(&self) -> bool {
        let mut processors = self.ready.system.ends().iter().filter_map(|end| end.processor());
        self.programs_left && (processors.any(|processor| !processor.is_done()) || self.ready.system.has_flits(true))
    }

    /// Makes the stores to configuration registers that programs asked for: they count from the next cycle on.
    pub(super) fn program_stores(&mut self) {
        if !self.programs_left {
            return;
        }
        let mut stores = Vec::new();
        self.ready.system.each_end(|end| {
            if let Some(processor) = end.processor_mut() {
                stores.extend(processor.take_stores());
            }
        });
        let Run { loaded, ready, rules, refused, .. } = self;
        for store in stores.into_iter().filter(|_| refused.is_none()).collect::<Vec<Store>>() {
            if rules.is_none() {
                *rules = Rules::new(loaded, &ready.system, &ready.collectives);
            }
            let made = rules.as_mut().map(|rules| rules.store(loaded, &mut ready.system, &store));
            if let Some(Err(why)) = made {
                refused.get_or_insert(why);
            }
        }
    }

    /// Looks at who used a tree that programs have written.
    fn program_uses(&mut self) {
        let Run { loaded, ready: Ready { system, collectives, .. }, rules, refused, .. } = self;
        if let Some(Err(why)) = rules.as_mut().map(|rules| rules.used(loaded, system, collectives)) {
            refused.get_or_insert(why);
        }
    }

    pub(super) fn collectives_left(&self) -> bool {
        self.state.iter().any(|state| *state != State::Complete)
    }

    pub(super) fn is_done(&self) -> bool {
        if self.collectives_left() || self.programs_left || self.hosts_left() {
            return false;
        }
        if self.measurement.has_window() {
            return self.measurement.phase == Phase::Done;
        }
        // Traffic that ends is waited for; endless traffic ends with the last collective, or at the cycle limit.
        let endless = self.loaded.scenario.traffic.iter().any(Traffic::is_endless);
        if self.loaded.scenario.traffic.is_empty() || (endless && self.has_work()) {
            return true;
        }
        !endless && self.drained()
    }

    /// Looks who is complete, and lets those start that waited for nobody else.
    pub(super) fn advance(&mut self) {
        for index in 0..self.state.len() {
            if self.state[index] != State::Running {
                continue;
            }
            // Who is done stays done: the next look goes on at the first that was not.
            let from = self.done[index];
            let left = self.jobs_from(index, from).position(|job| job.end().is_none());
            match left {
                Some(more) => self.done[index] = from + more,
                None => self.state[index] = State::Complete,
            }
        }
        for index in 0..self.state.len() {
            let built = &self.ready.collectives[index];
            let free = built.after.iter().all(|&before| self.state[before] == State::Complete);
            if self.state[index] != State::Claiming || !free {
                continue;
            }
            self.state[index] = State::Running;
            let collective = &self.loaded.scenario.collectives[index];
            let claimed = self.ready.system.now().max(collective.start_cycle);
            let parts = built.parts();
            for (part, (end, job)) in built.jobs.clone().into_iter().enumerate() {
                let start = claimed + collective.delays.get(part % parts).copied().unwrap_or(0);
                if let Some(core) = &mut self.ready.system.end_mut(end).core {
                    core.job_mut(job).release(start);
                }
            }
        }
    }

    pub(super) fn jobs(&self, collective: usize) -> impl Iterator<Item = &Job> {
        self.jobs_from(collective, 0)
    }

    fn jobs_from(&self, collective: usize, first: usize) -> impl Iterator<Item = &Job> {
        let jobs = self.ready.collectives[collective].jobs[first..].iter();
        jobs.filter_map(move |&(end, job)| self.ready.system.end(end).core.as_ref().map(|core| &core.jobs()[job]))
    }

    pub(super) fn progress(&self) -> Progress {
        let (mut done, mut total) = (0, 0);
        for (index, collective) in self.loaded.scenario.collectives.iter().enumerate() {
            let lanes = u64::from(collective.network_dtype().lanes());
            let built = &self.ready.collectives[index];
            let segments = built.segments.iter().flat_map(|segment| std::iter::repeat_n(segment, built.parts()));
            for (job, segment) in self.jobs(index).zip(segments).filter(|(job, _)| job.kind().receives) {
                let elements = segment.elements.end - segment.elements.start;
                done += (job.landed() * lanes).min(elements);
                total += elements;
            }
        }
        Progress { cycle: self.ready.system.now(), done, total }
    }

    pub(super) fn stuck(&mut self, what: &str) {
        self.document.outcome = Outcome::Deadlock;
        let autopsy = self.ready.system.autopsy();
        let waiting: Vec<&str> = (0..self.state.len())
            .filter(|&index| self.state[index] != State::Complete)
            .map(|index| self.loaded.scenario.collectives[index].name.as_str())
            .collect();
        let threads = self.ready.system.ends().iter().filter_map(|end| end.processor()?.open());
        let threads = threads.take(8).fold(String::new(), |list, text| list + "\n" + &text);
        let left = if waiting.is_empty() { String::new() } else { format!("\nnot complete: {}", waiting.join(", ")) };
        self.deadlock = Some(format!("{what}\n{autopsy}{left}{threads}").trim_end().to_string());
    }
}

/// What a run watches: set-routed and point-to-point flits that end points and engines take and send.
const WATCHED: usize = 2;

/// The cycle since which nothing was served, if that is too long ago and there are flits that want to be.
fn standing(watchdog: &mut Watchdog, system: &System) -> Option<u64> {
    let (now, [set, unicast]) = (system.now(), system.served());
    watchdog.at(now);
    let (set, unicast) = (watchdog.look(0, now, set), watchdog.look(1, now, unicast));
    // Traffic that flows must not hide a collective that stands; whatever else there is may wait for collectives.
    if let Some(since) = set.filter(|_| system.has_flits(true)) {
        return Some(since);
    }
    set.zip(unicast).map(|(set, unicast)| set.max(unicast)).filter(|_| system.has_flits(false))
}
