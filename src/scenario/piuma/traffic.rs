//! Traffic of a run: packets of traces are fed, what arrives is measured, the window is looked at.

use super::run::Run;
use crate::build::Ready;
use crate::config::{Injection, TrafficPattern};
use crate::measure::{self, MeasureResult, Phase};
use crate::result::{Document, TrafficResult};
use crate::run::RunError;
use crate::{Loaded, Problem, trace};
use watershed_fabric::traffic::{Created, Received, Traffic};
use watershed_fabric::{HeadWaits, LinkCount, NodeKind, WaitCycles};

/// What has happened up to a cycle.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    /// By class.
    pub(super) created: Vec<Created>,
    /// By class.
    pub(super) received: Vec<Received>,
    /// Flits that arrived at each end point.
    pub(super) arrived: Vec<u64>,
    /// Flits that entered.
    pub(super) entered: u64,
    /// By link and direction.
    pub(super) links: Vec<LinkCount>,
    /// The same: what flits waited for.
    pub(super) waits: Vec<WaitCycles>,
    /// Everywhere.
    pub(super) head_waits: Option<HeadWaits>,
}

/// Traces that are read as the run goes on.
#[derive(Default)]
pub(super) struct Feed {
    traces: Vec<Trace>,
    /// Everything before this cycle has been read.
    pub(super) until: u64,
    pub(super) wrong: Option<Problem>,
}

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

/// Cycles that a trace is read ahead.
pub(super) const AHEAD: u64 = 4096;

/// Cycles before the end of what was read in which a run reads on: more than a quiet system is ahead of its last event.
pub(super) const MARGIN: u64 = 8;

impl Run<'_> {
    pub(super) fn drained(&self) -> bool {
        // Asked in every cycle, of systems of any size: mostly something is on a link, and that is known at once.
        if self.ready.system.flits_on_links() > 0 {
            return false;
        }
        let (created, received) = self.traffic_totals();
        created == received && self.feed.is_at_end() && self.sources().all(Traffic::is_drained)
    }

    pub(super) fn sources(&self) -> impl Iterator<Item = &Traffic> {
        self.ready.system.ends().iter().filter_map(|end| end.traffic())
    }

    /// Packets created and packets received.
    pub(super) fn traffic_totals(&self) -> (u64, u64) {
        let created = self.sources().flat_map(Traffic::created).map(|class| class.packets).sum();
        let received = self.sources().flat_map(Traffic::received).map(|class| class.packets).sum();
        (created, received)
    }

    /// Reads traces on; `false` if that is not possible.
    pub(super) fn feed(&mut self, now: u64) -> bool {
        let Run { feed, ready, .. } = self;
        let next = feed.traces.iter().filter_map(|trace| trace.next.map(|record| record.cycle)).min();
        feed.until = next.map_or(u64::MAX, |next| next.max(now) + AHEAD);
        let lanes = u16::from(ready.lanes);
        for trace in &mut feed.traces {
            while let Some(record) = trace.next.filter(|record| record.cycle < feed.until) {
                let class = if record.class == 0 { trace.traffic } else { trace.classes + usize::from(record.class) };
                if let Some(traffic) = ready.system.end_mut(record.src as usize).traffic_mut() {
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
    pub(super) fn collect(&mut self) {
        let Run { ready, measurement, .. } = self;
        let measurement = std::cell::RefCell::new(measurement);
        ready.system.each_end(|end| {
            if let Some(traffic) = end.traffic_mut() {
                traffic.measured(
                    |packet| measurement.borrow_mut().arrived(packet),
                    |packet| measurement.borrow_mut().entered(packet),
                );
            }
        });
    }

    /// The measurement has come to a cycle in which something is to be looked at.
    pub(super) fn measure(&mut self, now: u64) {
        self.collect();
        match self.measurement.phase {
            Phase::Warmup(_) => {
                self.window[0] = Some(self.snapshot());
                self.measurement.phase = Phase::Window(self.measurement.to);
            }
            Phase::Window(_) => {
                self.window[1] = Some(self.snapshot());
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

    pub(super) fn created_in_window(&self) -> u64 {
        let [Some(from), Some(to)] = &self.window else { return 0 };
        let total = |snapshot: &Snapshot| snapshot.created.iter().map(|class| class.packets).sum::<u64>();
        // Replies count by the cycle in which their request was created, so there are as many as requests in the end.
        let replies = |snapshot: &Snapshot| -> u64 {
            let classes = self.ready.classes.iter().zip(&snapshot.created).enumerate();
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
    pub(super) fn is_reply(&self, class: usize) -> bool {
        let traffic = &self.loaded.scenario.traffic;
        class >= traffic.len()
            && matches!(traffic[self.ready.classes[class].traffic].injection, Injection::ClosedLoop { .. })
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let classes = self.ready.classes.len();
        let mut snapshot = Snapshot {
            created: vec![Created::default(); classes],
            received: vec![Received::default(); classes],
            links: self.ready.system.link_counts().map(|(_, count, _)| count).collect(),
            waits: (0..2 * self.ready.system.plan().links.len()).map(|at| self.ready.system.link_waits(at)).collect(),
            head_waits: self.ready.system.head_waits(),
            ..Snapshot::default()
        };
        for end in self.ready.system.ends() {
            let mut arrived = 0;
            if let Some(traffic) = end.traffic() {
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

    pub(super) fn traffic(&mut self, document: &mut Document) {
        self.collect();
        self.measurement.close();
        let measured = self.measurement.has_window();
        if self.ready.classes.is_empty() && !measured {
            return;
        }
        let end = self.snapshot();
        let (from, to) = if let [Some(from), Some(to)] = &self.window {
            (from.clone(), to.clone())
        } else {
            let nothing = Snapshot {
                created: vec![Created::default(); end.created.len()],
                received: vec![Received::default(); end.received.len()],
                arrived: vec![0; end.arrived.len()],
                links: vec![LinkCount::default(); end.links.len()],
                waits: vec![WaitCycles::default(); end.waits.len()],
                head_waits: end.head_waits.map(|_| HeadWaits::default()),
                entered: 0,
            };
            (nothing, end.clone())
        };
        let confidence = self.loaded.scenario.measure.map(|measure| measure.confidence);
        for (at, class) in self.ready.classes.iter().enumerate() {
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
            document.measure = Some(self.measured(&from, &to));
        }
    }

    /// Which traffic began or stopped within the window.
    fn unfilled(&self) -> Vec<String> {
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
    pub(super) fn measured(&self, from: &Snapshot, to: &Snapshot) -> MeasureResult {
        let cycles = (self.measurement.to - self.measurement.from) as f64;
        let flits = |snapshot: &Snapshot| snapshot.created.iter().map(|class| class.flits).sum::<u64>();
        let nodes = self.ready.addressed.iter().filter(|addressed| **addressed).count().max(1) as f64;
        let accepted: Vec<u64> = (to.arrived.iter().zip(&from.arrived).zip(&self.ready.addressed))
            .filter(|(_, addressed)| **addressed)
            .map(|((to, from), _)| to - from)
            .collect();
        let rate = |flits: u64| flits as f64 / cycles;
        let offered = rate(flits(to) - flits(from)) / nodes;
        let accepted_mean = rate(accepted.iter().sum()) / nodes;
        let plan = self.ready.system.plan();
        let is_switch = |node: u32| plan.nodes[node as usize].kind == NodeKind::Switch;
        let between = plan.links.iter().flat_map(|link| [is_switch(link.a.0) && is_switch(link.b.0); 2]);
        let carried: u64 = (between.zip(to.links.iter().zip(&from.links)))
            .filter_map(|(between, (to, from))| between.then_some(to.unicast - from.unicast))
            .sum();
        let entered = to.entered - from.entered;
        let (saturated, mut verdict) = self.measurement.verdict(self.created_in_window(), offered, accepted_mean);
        for part in self.unfilled() {
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

pub(super) fn trace_problem(traffic: usize, wrong: &trace::Wrong) -> Problem {
    Problem::at(format!("traffic[{traffic}].file"), &wrong.message).expected(&wrong.expected)
}

impl Feed {
    pub(super) fn open(loaded: &Loaded, ready: &Ready) -> Result<Feed, RunError> {
        let mut feed = Feed::default();
        let ends = loaded.scenario.topology.end_points();
        for (index, traffic) in loaded.scenario.traffic.iter().enumerate() {
            let TrafficPattern::Trace { path, .. } = &traffic.pattern else { continue };
            let opened = trace::Reader::open(path, ends).and_then(|mut reader| Ok((reader.record()?, reader)));
            let (next, reader) = opened.map_err(|wrong| loaded.problems(vec![trace_problem(index, &wrong)]))?;
            let extra = ready
                .classes
                .iter()
                .enumerate()
                .position(|(at, class)| at >= loaded.scenario.traffic.len() && class.traffic == index);
            let fed = |end: &watershed_piuma::End| end.traffic().and_then(|traffic| traffic.fed(index as u16));
            feed.traces.push(Trace {
                traffic: index,
                classes: extra.map_or(index, |first| first - 1),
                reader,
                next,
                last: 0,
                sources: ready.system.ends().iter().take(ends as usize).map(|end| fed(end).unwrap_or(0)).collect(),
            });
        }
        Ok(feed)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.traces.iter().all(|trace| trace.next.is_none())
    }
}
