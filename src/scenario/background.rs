//! Traffic of a run, alone or beside a family: it feeds packets of traces, measures arrivals in the window, and writes
//! the results into the document.
//!
//! It uses only the [`Traffic`] of end points, so it works with every family.

use crate::config::{Injection, TrafficPattern};
use crate::measure::{self, MeasureResult, Measurement, Phase};
use crate::result::{Check, Document, Links, Outcome, TrafficResult};
use crate::run::links::link_report;
use crate::sources::Sources;
use crate::{Loaded, Problem, trace};
use watershed_fabric::traffic::{SinkCounts, SourceCounts, Traffic};
use watershed_fabric::{HeadWaits, LinkCount, NodeKind, Plan, Simulation, WaitCycles};
use watershed_kernel::Cycle;
use watershed_scenario_interface::run::RunError;
use watershed_state::{Loader, Mismatch, Saver, State, state};

/// Steps between two collections of what end points have measured.
const COLLECT: u32 = 128;

/// All traffic of a run.
pub(crate) struct Background<'a> {
    loaded: &'a Loaded,
    sources: Sources,
    measurement: Measurement,
    /// The network at the start and at the end of the window.
    window: [Option<Snapshot>; 2],
    feed: TraceFeed,
    /// Steps since what end points have measured was collected.
    steps: u32,
    /// Sources were told to create nothing more.
    stopped: bool,
}

state!(['a] Background<'a> { saved: measurement, window, feed, steps, stopped; built: loaded, sources });

/// What the runner does next.
pub(crate) enum NextStep {
    /// An input file has an error: the run ends.
    InputError,
    /// A measurement was taken: call again before the step.
    Recheck,
    /// Simulate no cycle from this one on.
    Until(Cycle),
}

/// What has happened up to a cycle.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
struct Snapshot {
    /// By class.
    created: Vec<SourceCounts>,
    /// By class.
    received: Vec<SinkCounts>,
    /// Flits that arrived at each end point.
    arrived: Vec<u64>,
    /// Flits that entered.
    entered: u64,
    /// By link and direction.
    links: Vec<LinkCount>,
    /// The same: what flits waited for.
    waits: Vec<WaitCycles>,
    /// Everywhere.
    head_waits: Option<HeadWaits>,
}

/// Traces that are read as the run goes on.
#[derive(Default)]
struct TraceFeed {
    traces: Vec<Trace>,
    /// Everything before this cycle has been read.
    until: u64,
    wrong: Option<Problem>,
}

state!(TraceFeed { saved: until; each: traces; built: wrong });

struct Trace {
    traffic: usize,
    /// Class of its packets of class 1, less 1.
    classes: usize,
    reader: trace::Reader,
    next: Option<trace::Record>,
    /// Cycle of the last packet that was read.
    last: u64,
    /// Number of the source among those of each end point.
    sources: Vec<usize>,
}

impl State for Trace {
    fn save(&self, to: &mut Saver) {
        let Trace { traffic: _, classes: _, reader, next, last, sources: _ } = self;
        to.values((&reader.records(), next, last));
    }

    /// The file is read again, up to where it was.
    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Mismatch> {
        let records: u64;
        (records, self.next, self.last) = from.value()?;
        while self.reader.records() < records {
            self.reader.record().map_err(|_| from.wrong("a trace of traffic has changed"))?;
        }
        Ok(())
    }
}

/// Cycles that a trace is read ahead.
const AHEAD: u64 = 4096;

/// Cycles before the end of what was read in which a run reads on: more than a quiet system is ahead of its last event.
const MARGIN: u64 = 8;

impl<'a> Background<'a> {
    /// Traffic whose sources are placed; before the first cycle.
    ///
    /// # Errors
    /// A trace cannot be read.
    pub fn new(loaded: &'a Loaded, sources: Sources, system: &mut dyn Simulation) -> Result<Background<'a>, RunError> {
        system.each_traffic(&mut Traffic::measure);
        let feed = TraceFeed::open(loaded, &sources, system)?;
        let measurement = Measurement::new(loaded.scenario.measure, sources.classes.len());
        Ok(Background { loaded, sources, measurement, window: [None, None], feed, steps: 0, stopped: false })
    }

    /// Whether some source has no end of its own.
    pub fn is_endless(&self) -> bool {
        !self.stopped && self.loaded.scenario.traffic.iter().any(crate::config::Traffic::is_endless)
    }

    /// Whether a run whose other work is over is over. Traffic that ends is waited for; endless traffic ends with the last of
    /// the work, or, if there is none, at the limit of cycles.
    pub fn is_over(&self, system: &dyn Simulation, work: bool) -> bool {
        if self.measurement.has_window() {
            return self.measurement.phase == Phase::Done;
        }
        let endless = self.is_endless();
        endless && work || !endless && self.is_drained(system)
    }

    /// Whether nothing else ends it and all that was to be measured is.
    pub fn ends_with_work(&self) -> bool {
        self.is_endless() && (!self.measurement.has_window() || self.measurement.phase == Phase::Done)
    }

    /// Lets sources create nothing more: what is under way arrives, and the network drains.
    pub fn stop(&mut self, system: &mut dyn Simulation) {
        self.stopped = true;
        let now = system.now();
        // Each is asked again: an alarm for a packet that does not come any more would be the last thing that happens.
        for end in 0..system.end_count() {
            if system.traffic(end).is_some()
                && let Some(traffic) = system.traffic_mut(end)
            {
                traffic.stop(now);
            }
        }
    }

    /// Before each step.
    pub fn before_step(&mut self, system: &mut dyn Simulation) -> NextStep {
        let now = system.now();
        if now + MARGIN >= self.feed.until && !self.feed(now, system) {
            return NextStep::InputError;
        }
        if now >= self.measurement.next() {
            self.measure(now, system);
            return NextStep::Recheck;
        }
        NextStep::Until(self.measurement.next().min(self.feed.until))
    }

    /// Nothing moves any more. Whether there was something to do about it.
    pub fn is_quiet(&mut self, system: &mut dyn Simulation) -> bool {
        if !self.feed.is_at_end() && !self.stopped {
            // The next packet of a trace is further away than the run has read; what is wrong with it is asked for before the
            // next step.
            self.feed.until = system.now();
            return true;
        }
        if self.measurement.next() != u64::MAX {
            // Nothing will happen any more, but the window has not been looked at.
            let next = self.measurement.next();
            self.measure(next, system);
            return true;
        }
        false
    }

    /// Steps that may pass before it has to be called.
    pub fn pause(&self) -> u32 {
        let asked_when_over = !self.measurement.has_window() || self.measurement.phase == Phase::Done;
        let reads_traces = self.feed.until != u64::MAX;
        if asked_when_over || reads_traces { 1 } else { COLLECT - self.steps }
    }

    /// Steps have passed, fewer than the [pause](Self::pause).
    pub fn pass(&mut self, steps: u32) {
        self.steps += steps;
    }

    /// After this many steps, at most the [pause](Self::pause).
    pub fn after_steps(&mut self, system: &mut dyn Simulation, steps: u32) {
        self.steps = (self.steps + steps) % COLLECT;
        if self.steps == 0 && !system.runs_in_windows() {
            self.collect(system);
        }
    }

    /// What turned out to be wrong with a trace while the run read it.
    pub fn take_trace_problem(&mut self) -> Option<Problem> {
        self.feed.wrong.take()
    }

    /// Whether a run that has ended leaves none of it in the network.
    pub fn ends_drained(&self) -> bool {
        !self.measurement.has_window() && !self.is_endless()
    }

    /// What the limit of cycles means for traffic beside which there is nothing else.
    pub fn cycle_limit_reason(&self, work: bool) -> Option<&'static str> {
        let alone = self.is_endless() && !work && !self.measurement.has_window();
        alone.then_some("ran to limits.max_cycles under endless traffic")
    }

    /// Whether all packets arrived; `work`: there is something beside traffic. With `lossy`, a stopped link loses packets.
    pub fn check(&self, system: &dyn Simulation, document: &Document, work: bool, lossy: bool) -> Vec<Check> {
        let mut checks = Vec::new();
        if self.measurement.has_window() && !work {
            let sent: u64 = system.all_traffic().map(Traffic::sent_flits).sum();
            let received: u64 = system.all_traffic().flat_map(Traffic::received).map(|class| class.flits).sum();
            let live = system.live_flits() as u64;
            let detail = format!("{sent} flits entered, {received} arrived, {live} are on their way");
            checks.push(Check { name: "nothing lost".into(), passed: sent == received + live, detail });
        }
        if self.ends_drained() && document.outcome == Outcome::Finished {
            let (created, received) = totals(system);
            let detail = format!("{received} of {created} packets arrived whole");
            checks.push(Check { name: "nothing lost".into(), passed: created == received || lossy, detail });
        }
        checks
    }

    /// What the links did, in the window if there is one; `there` are those of each level that are not built.
    pub fn links(&self, system: &dyn Simulation, there: Option<&[u64]>, cycles: u64, all: bool) -> Links {
        let window = match &self.window {
            [Some(from), Some(to)] => Some((from, to)),
            _ => None,
        };
        let cycles = window.map_or(cycles, |_| self.measurement.to - self.measurement.from);
        let loads = system.link_counts().enumerate().map(|(at, (level, mut count, cycles_per_flit))| {
            if let Some((from, to)) = window {
                let (from, to) = (from.links[at], to.links[at]);
                count = LinkCount {
                    set: to.set - from.set,
                    unicast: to.unicast - from.unicast,
                    waited: to.waited - from.waited,
                    packets: to.packets - from.packets,
                };
            }
            (level, count, cycles_per_flit)
        });
        let waits = |at: usize| match window {
            Some((from, to)) => to.waits[at].since(&from.waits[at]),
            None => system.link_waits(at),
        };
        let all_waits = match window {
            Some((from, to)) => to.head_waits.zip(from.head_waits).map(|(to, from)| to.since(&from)),
            None => system.head_waits(),
        };
        link_report(system, loads, (all_waits.as_ref(), &waits), there, cycles, all)
    }

    fn is_drained(&self, system: &dyn Simulation) -> bool {
        // Asked in every cycle, of systems of any size: mostly something is on a link, and that is known at once.
        if system.flits_on_links() > 0 {
            return false;
        }
        let (created, received) = totals(system);
        let fed = self.stopped || self.feed.is_at_end();
        created == received && fed && system.all_traffic().all(Traffic::is_drained)
    }

    /// Reads traces on; `false` if that is not possible.
    fn feed(&mut self, now: u64, system: &mut dyn Simulation) -> bool {
        let Background { feed, sources, stopped, .. } = self;
        if *stopped {
            feed.until = u64::MAX;
            return true;
        }
        let next = feed.traces.iter().filter_map(|trace| trace.next.map(|record| record.cycle)).min();
        feed.until = next.map_or(u64::MAX, |next| next.max(now) + AHEAD);
        let lanes = u16::from(sources.lanes);
        for trace in &mut feed.traces {
            while let Some(record) = trace.next.filter(|record| record.cycle < feed.until) {
                let class = if record.class == 0 { trace.traffic } else { trace.classes + usize::from(record.class) };
                if let Some(traffic) = system.traffic_mut(record.src as usize) {
                    let lane = (record.class % lanes) as u8;
                    let source = trace.sources[record.src as usize];
                    traffic.feed(source, record.cycle, record.dst, record.flits, class as u16, lane);
                }
                trace.last = record.cycle;
                match trace.reader.record() {
                    Ok(next) => trace.next = next,
                    Err(wrong) => {
                        feed.wrong = Some(trace_problem(trace.traffic, &wrong));
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Takes what end points have measured.
    fn collect(&mut self, system: &mut dyn Simulation) {
        let measurement = std::cell::RefCell::new(&mut self.measurement);
        system.each_traffic(&mut |traffic| {
            traffic.measured(
                |packet| measurement.borrow_mut().arrived(packet),
                |packet| measurement.borrow_mut().entered(packet),
            );
        });
    }

    /// Takes the measurement that is due in this cycle.
    fn measure(&mut self, now: u64, system: &mut dyn Simulation) {
        self.collect(system);
        system.refresh_all();
        match self.measurement.phase {
            Phase::Warmup(_) => {
                self.window[0] = Some(self.snapshot(system));
                self.measurement.phase = Phase::Window(self.measurement.to);
            }
            Phase::Window(_) => {
                self.window[1] = Some(self.snapshot(system));
                self.measurement.phase = Phase::Drain(now);
            }
            Phase::Drain(_) => {
                if self.measurement.count() == self.created_in_window() {
                    self.measurement.drained = Some(now);
                    if !self.measurement.grow(now) {
                        self.measurement.phase = Phase::Done;
                    }
                } else if now >= self.measurement.patience() {
                    self.measurement.phase = Phase::Done;
                } else {
                    self.measurement.phase = Phase::Drain(now + measure::LOOK);
                }
            }
            Phase::Done => {}
        }
    }

    fn created_in_window(&self) -> u64 {
        let [Some(from), Some(to)] = &self.window else { return 0 };
        let total = |snapshot: &Snapshot| snapshot.created.iter().map(|class| class.packets).sum::<u64>();
        // Replies count by the cycle in which their request was created, so there are as many as requests in the end.
        let replies = |snapshot: &Snapshot| -> u64 {
            let classes = self.sources.classes.iter().zip(&snapshot.created).enumerate();
            classes.filter(|(at, _)| self.is_reply(*at)).map(|(_, (_, created))| created.packets).sum()
        };
        let requests = |snapshot: &Snapshot| -> u64 {
            let classes = self.loaded.scenario.traffic.iter().zip(&snapshot.created);
            let closed = classes.filter(|(t, _)| matches!(t.injection, Injection::ClosedLoop { .. }));
            closed.map(|(_, created)| created.packets).sum()
        };
        let of = |snapshot| total(snapshot) - replies(snapshot) + requests(snapshot);
        of(to) - of(from)
    }

    /// Whether a class is that of the replies of a closed loop.
    fn is_reply(&self, class: usize) -> bool {
        let traffic = &self.loaded.scenario.traffic;
        class >= traffic.len()
            && matches!(traffic[self.sources.classes[class].traffic].injection, Injection::ClosedLoop { .. })
    }

    fn snapshot(&self, system: &dyn Simulation) -> Snapshot {
        let classes = self.sources.classes.len();
        let mut snapshot = Snapshot {
            created: vec![SourceCounts::default(); classes],
            received: vec![SinkCounts::default(); classes],
            links: system.link_counts().map(|(_, count, _)| count).collect(),
            waits: (0..2 * system.plan().links.len()).map(|at| system.link_waits(at)).collect(),
            head_waits: system.head_waits(),
            ..Snapshot::default()
        };
        for end in 0..system.end_count() {
            let mut arrived = 0;
            if let Some(traffic) = system.traffic(end) {
                for (sum, part) in snapshot.created.iter_mut().zip(traffic.created()) {
                    sum.packets += part.packets;
                    sum.flits += part.flits;
                }
                for (sum, part) in snapshot.received.iter_mut().zip(traffic.received()) {
                    sum.packets += part.packets;
                    sum.flits += part.flits;
                    sum.latency_sum += part.latency_sum;
                    sum.latency_max = sum.latency_max.max(part.latency_max);
                    arrived += part.flits;
                }
                snapshot.entered += traffic.sent_flits();
            }
            snapshot.arrived.push(arrived);
        }
        snapshot
    }

    /// Writes the outcome into the document.
    pub fn report(&mut self, document: &mut Document, system: &mut dyn Simulation) {
        self.collect(system);
        self.measurement.close();
        let measured = self.measurement.has_window();
        if self.sources.classes.is_empty() && !measured {
            return;
        }
        let end = self.snapshot(system);
        let (from, to) = if let [Some(from), Some(to)] = &self.window {
            (from.clone(), to.clone())
        } else {
            let nothing = Snapshot {
                created: vec![SourceCounts::default(); end.created.len()],
                received: vec![SinkCounts::default(); end.received.len()],
                arrived: vec![0; end.arrived.len()],
                links: vec![LinkCount::default(); end.links.len()],
                waits: vec![WaitCycles::default(); end.waits.len()],
                head_waits: end.head_waits.map(|_| HeadWaits::default()),
                entered: 0,
            };
            (nothing, end.clone())
        };
        let confidence = self.loaded.scenario.measure.map(|measure| measure.confidence);
        for (at, class) in self.sources.classes.iter().enumerate() {
            let traffic = &self.loaded.scenario.traffic[class.traffic];
            let cycles = document.cycles;
            let window = if measured {
                self.measurement.to - self.measurement.from
            } else {
                traffic.stop_cycle.unwrap_or(cycles).min(cycles).saturating_sub(traffic.start_cycle)
            };
            let share = |flits: u64| {
                if window == 0 || class.sources == 0 { 0.0 } else { flits as f64 / (window * class.sources) as f64 }
            };
            let latencies = &self.measurement.classes[at];
            let latency = latencies.result(confidence).map(|mut latency| {
                if self.is_reply(at) {
                    latency.network_mean = None;
                }
                latency
            });
            document.traffic.push(TrafficResult {
                name: class.name.clone(),
                offered: share(to.created[at].flits - from.created[at].flits),
                accepted: share(to.received[at].flits - from.received[at].flits),
                packets: end.received[at].packets,
                mean_latency_cycles: latencies.histogram.mean(),
                max_latency_cycles: latency.as_ref().map(|latency| latency.max),
                latency,
            });
        }
        if measured && self.window[1].is_some() {
            document.measure = Some(self.measured(&from, &to, system.plan()));
        }
    }

    /// Which traffic began or stopped within the window.
    fn partial_traffic(&self) -> Vec<String> {
        let (from, to) = (self.measurement.from, self.measurement.to);
        let ended = |index: usize| self.feed.traces.iter().find(|trace| trace.traffic == index && trace.next.is_none());
        let list = self.loaded.scenario.traffic.iter().enumerate();
        list.filter_map(|(index, of)| {
            let stop = of.stop_cycle.or(ended(index).map(|trace| trace.last + 1)).filter(|stop| *stop < to);
            match stop {
                Some(stop) => Some(format!("{} stopped in cycle {stop}", of.name)),
                None => (of.start_cycle > from).then(|| format!("{} began in cycle {}", of.name, of.start_cycle)),
            }
        })
        .collect()
    }

    /// What the network did in the window.
    fn measured(&self, from: &Snapshot, to: &Snapshot, plan: &Plan) -> MeasureResult {
        let cycles = (self.measurement.to - self.measurement.from) as f64;
        let flits = |snapshot: &Snapshot| snapshot.created.iter().map(|class| class.flits).sum::<u64>();
        let nodes = self.sources.addressed.iter().filter(|addressed| **addressed).count().max(1) as f64;
        let accepted: Vec<u64> = (to.arrived.iter().zip(&from.arrived).zip(&self.sources.addressed))
            .filter(|(_, addressed)| **addressed)
            .map(|((to, from), _)| to - from)
            .collect();
        let rate = |flits: u64| flits as f64 / cycles;
        let offered = rate(flits(to) - flits(from)) / nodes;
        let accepted_mean = rate(accepted.iter().sum()) / nodes;
        let is_switch = |node: u32| plan.nodes[node as usize].kind == NodeKind::Switch;
        let between = plan.links.iter().flat_map(|link| [is_switch(link.a.0) && is_switch(link.b.0); 2]);
        let carried: u64 = (between.zip(to.links.iter().zip(&from.links)))
            .filter_map(|(between, (to, from))| between.then_some(to.unicast - from.unicast))
            .sum();
        let entered = to.entered - from.entered;
        let (saturated, mut verdict) = self.measurement.verdict(self.created_in_window(), offered, accepted_mean);
        for part in self.partial_traffic() {
            verdict = format!("{verdict}; {part}, so that the window is not filled");
        }
        MeasureResult {
            from_cycle: self.measurement.from,
            to_cycle: self.measurement.to,
            drained_cycle: self.measurement.drained.filter(|_| !verdict.contains("had not arrived")),
            saturated,
            verdict,
            confidence: self.loaded.scenario.measure.map_or(0.95, |measure| measure::level(measure.confidence)),
            offered,
            accepted_mean,
            accepted_min: accepted.iter().min().map_or(0.0, |flits| rate(*flits)),
            hops_mean: (entered > 0).then(|| carried as f64 / entered as f64 + 1.0),
        }
    }
}

/// Packets created and packets received.
fn totals(system: &dyn Simulation) -> (u64, u64) {
    let created = system.all_traffic().flat_map(Traffic::created).map(|class| class.packets).sum();
    let received = system.all_traffic().flat_map(Traffic::received).map(|class| class.packets).sum();
    (created, received)
}

fn trace_problem(traffic: usize, wrong: &trace::TraceError) -> Problem {
    Problem::at(format!("traffic[{traffic}].file"), &wrong.message).expected(&wrong.expected)
}

impl TraceFeed {
    fn open(loaded: &Loaded, of: &Sources, system: &dyn Simulation) -> Result<TraceFeed, RunError> {
        let mut feed = TraceFeed::default();
        let ends = loaded.scenario.topology.end_points();
        for (index, traffic) in loaded.scenario.traffic.iter().enumerate() {
            let TrafficPattern::Trace { path, .. } = &traffic.pattern else { continue };
            let opened = trace::Reader::open(path, ends).and_then(|mut reader| Ok((reader.record()?, reader)));
            let (next, reader) = opened.map_err(|wrong| loaded.problems(vec![trace_problem(index, &wrong)]))?;
            let extra = of
                .classes
                .iter()
                .enumerate()
                .position(|(at, class)| at >= loaded.scenario.traffic.len() && class.traffic == index);
            let fed = |end| system.traffic(end).and_then(|traffic| traffic.fed(index as u16));
            feed.traces.push(Trace {
                traffic: index,
                classes: extra.map_or(index, |first| first - 1),
                reader,
                next,
                last: 0,
                sources: (0..ends as usize).map(|end| fed(end).unwrap_or(0)).collect(),
            });
        }
        Ok(feed)
    }

    fn is_at_end(&self) -> bool {
        self.traces.iter().all(|trace| trace.next.is_none())
    }
}
