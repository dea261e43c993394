//! The places and processes of the sources of `[[traffic]]`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::Problem;
use crate::config::{Injection, PacketFlits, Rate, Scenario, SwitchPort, Topology, TrafficPattern};
use watershed_fabric::Shares;
use watershed_fabric::topology::{EndPlace, Layout, LinkParams};
use watershed_fabric::traffic::{Hotspots, Lengths, Permutation, Process, Spec, Target, Traffic, WithTraffic};

/// A class of packets: a traffic of the scenario, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Index of the traffic.
    pub traffic: usize,
    /// Its name in results.
    pub name: String,
    /// End points (or flows) that create its packets.
    pub sources: u64,
}

/// All sources of a system.
#[derive(Debug, Default)]
pub struct Sources {
    /// What packets are counted as, by the number in their tag.
    pub classes: Vec<Class>,
    /// End points that some traffic can send to.
    pub addressed: Vec<bool>,
    /// Lanes that the channels of traffic are divided into.
    pub lanes: u8,
    /// By end point.
    specs: BTreeMap<usize, Vec<Spec>>,
}

/// Lanes that traffic needs: requests and replies have channels of their own, or they could wait for each other.
pub fn lanes(scenario: &Scenario) -> u8 {
    let closed = |t: &crate::config::Traffic| matches!(t.injection, Injection::ClosedLoop { .. });
    if scenario.traffic.iter().any(closed) { 2 } else { 1 }
}

/// How the point-to-point channels of a scenario are shared; with `messages`, those have as many channels as a lane of traffic,
/// and what is left over.
pub fn shares(scenario: &Scenario, messages: bool) -> Shares {
    let (lanes, channels) = (lanes(scenario), scenario.switch.point_to_point_vcs as u8);
    let messages = if messages { channels - lanes * (channels / (1 + lanes)) } else { 0 };
    Shares { messages, lanes }
}

impl Sources {
    /// Places the sources of a scenario in a layout, and attaches the end points that flows need. What is wrong goes to
    /// `problems`.
    pub fn place(scenario: &Scenario, layout: &mut Layout, local: LinkParams, problems: &mut Vec<Problem>) -> Sources {
        let mut placing = SourceBuilder { scenario, problems, classes: Vec::new(), addressed: Vec::new() };
        let specs = placing.place(layout, local);
        let SourceBuilder { classes, addressed, .. } = placing;
        Sources { classes, addressed, lanes: lanes(scenario), specs }
    }

    /// As [`Sources::place`], where every end point must be there already. `None` without traffic.
    pub fn at_ends(
        scenario: &Scenario,
        layout: &Layout,
        local: LinkParams,
        problems: &mut Vec<Problem>,
    ) -> Option<Sources> {
        if scenario.traffic.is_empty() {
            return None;
        }
        let mut with = layout.clone();
        let sources = Sources::place(scenario, &mut with, local, problems);
        if let Some(place) = with.ends.get(layout.ends.len()) {
            let switch = layout.switch_names().nth(place.switch as usize).unwrap_or_default();
            let message = format!("port {} of {switch} has no end point", place.port);
            let expected = "flows between ports of end points: others have no device ID";
            problems.push(Problem::at("traffic", message).expected(expected));
        }
        Some(sources)
    }

    /// Blocks of a family with the traffic beside them, which leaves them the first point-to-point channels.
    pub fn with_traffic<B>(
        sources: Option<&mut Sources>,
        blocks: Vec<B>,
        how: (u64, bool),
        left: u8,
    ) -> Vec<WithTraffic<B>> {
        let mut ends: Vec<WithTraffic<B>> = blocks.into_iter().map(WithTraffic::from).collect();
        for (end, mut traffic) in sources.into_iter().flat_map(|sources| sources.take_traffic(how.0, how.1)) {
            traffic.leave(left);
            ends[end].set_traffic(traffic);
        }
        ends
    }

    /// Takes the traffic of every end point that has some, in ascending order; with `checked` sinks look at every flit.
    pub fn take_traffic(&mut self, seed: u64, checked: bool) -> impl Iterator<Item = (usize, Traffic)> + use<> {
        let lanes = self.lanes;
        std::mem::take(&mut self.specs).into_iter().map(move |(end, specs)| {
            let mut traffic = Traffic::with(end as u32, specs, lanes, seed);
            traffic.check(checked);
            (end, traffic)
        })
    }
}

struct SourceBuilder<'a> {
    scenario: &'a Scenario,
    problems: &'a mut Vec<Problem>,
    classes: Vec<Class>,
    addressed: Vec<bool>,
}

impl SourceBuilder<'_> {
    /// Attaches the end points that flows need and says which sources sit where.
    fn place(&mut self, layout: &mut Layout, local: LinkParams) -> BTreeMap<usize, Vec<Spec>> {
        let scenario = self.scenario;
        let mut sources: BTreeMap<usize, Vec<Spec>> = BTreeMap::new();
        self.classes = scenario.traffic.iter().enumerate().map(|(traffic, t)| class(traffic, &t.name)).collect();
        for (index, traffic) in scenario.traffic.iter().enumerate() {
            let lengths = lengths(&traffic.packet_flits);
            let (mut replies, mut answers) = (0, None);
            if let Injection::ClosedLoop { reply_flits, service_cycles, .. } = &traffic.injection {
                replies = self.classes.len() as u16;
                self.classes.push(class(index, &format!("{} (replies)", traffic.name)));
                answers = Some(Spec {
                    process: Process::Answers { requests: index as u16, service: *service_cycles },
                    lengths: self::lengths(reply_flits),
                    target: Target::Fixed(0),
                    start: 0,
                    stop: u64::MAX,
                    class: replies,
                    lane: 1,
                });
            }
            if let TrafficPattern::Trace { classes, .. } = &traffic.pattern {
                for k in 1..usize::from(*classes) {
                    self.classes.push(class(index, &format!("{}.{k}", traffic.name)));
                }
            }
            if self.classes.len() > watershed_fabric::MAX_IDS {
                let message = format!("{} classes of packets are too many", self.classes.len());
                let expected = format!("up to {} traffics, replies and classes of traces", watershed_fabric::MAX_IDS);
                self.problems.push(Problem::at(format!("traffic[{index}]"), message).expected(expected));
                return sources;
            }
            let process = |rate: Option<Rate>| match &traffic.injection {
                Injection::Bernoulli { rate: own } => Process::bernoulli(rate.or(*own).map_or(0.0, |r| r.0), &lengths),
                Injection::Periodic { rate: own } => Process::periodic(rate.or(*own).map_or(0.0, |r| r.0), &lengths),
                Injection::Bursty { rate: own, burst_alpha, burst_beta } => {
                    Process::bursty(rate.or(*own).map_or(0.0, |r| r.0), &lengths, *burst_alpha, *burst_beta)
                }
                Injection::ClosedLoop { window, think_cycles, .. } => {
                    Process::ClosedLoop { window: *window, think: *think_cycles, replies }
                }
                Injection::Trace => Process::Fed,
            };
            let spec = |process, target| Spec {
                process,
                lengths: lengths.clone(),
                target,
                start: traffic.start_cycle,
                stop: traffic.stop_cycle.unwrap_or(u64::MAX),
                class: index as u16,
                lane: 0,
            };
            let mut senders = 0;
            if let TrafficPattern::Flows { flows } = &traffic.pattern {
                for (at, flow) in flows.iter().enumerate() {
                    let path = |key: &str| format!("traffic[{index}].flows[{at}].{key}");
                    let from = self.attach(layout, local, &flow.from, path("from"));
                    let to = self.attach(layout, local, &flow.to, path("to"));
                    let (Some(from), Some(to)) = (from, to) else { continue };
                    sources.entry(from).or_default().push(spec(process(Some(flow.rate)), Target::Fixed(to as u32)));
                    let at_to = sources.entry(to).or_default();
                    if let Some(answers) = &answers
                        && !at_to.contains(answers)
                    {
                        at_to.push(answers.clone());
                    }
                    self.address(to);
                    self.address(if answers.is_some() { from } else { to });
                    senders += 1;
                }
            } else {
                let process = process(None);
                let targets = self.targets(&traffic.pattern, layout.cores as u32);
                for (end, target) in targets.into_iter().enumerate() {
                    let specs = sources.entry(end).or_default();
                    if let Some(target) = target {
                        specs.push(spec(process.clone(), target));
                        senders += 1;
                    }
                    specs.extend(answers.clone());
                }
                if answers.is_some() {
                    (0..layout.cores).for_each(|end| self.address(end));
                }
            }
            for class in self.classes.iter_mut().filter(|class| class.traffic == index) {
                class.sources = senders;
            }
        }
        self.addressed.resize(layout.ends.len(), false);
        sources
    }

    fn address(&mut self, end: usize) {
        if self.addressed.len() <= end {
            self.addressed.resize(end + 1, false);
        }
        self.addressed[end] = true;
    }

    /// Where each of the end points sends, if it does.
    fn targets(&mut self, pattern: &TrafficPattern, ends: u32) -> Vec<Option<Target>> {
        let scenario = self.scenario;
        let (sides, concentration) = coordinates(&scenario.topology);
        let all = |target: Target| vec![Some(target); ends as usize];
        let fixed = |permutation: Permutation| -> Vec<Option<Target>> {
            (0..ends).map(|end| Some(Target::Fixed(permutation.destination(end, &sides, concentration)))).collect()
        };
        let targets = match pattern {
            // A trace says itself where its packets go: the target of its sources is never asked.
            TrafficPattern::Uniform { include_self: true } | TrafficPattern::Trace { .. } => {
                all(Target::Uniform { ends })
            }
            TrafficPattern::Uniform { include_self: false } => all(Target::Others { ends }),
            TrafficPattern::AllToAll => all(Target::InTurn { ends }),
            TrafficPattern::Hotspot { hotspots } => {
                let shares: Vec<(u32, f64)> = hotspots.iter().map(|spot| (spot.end_point, spot.share)).collect();
                all(Target::Hotspots(Arc::new(Hotspots::new(ends, &shares))))
            }
            TrafficPattern::Permutation { pairs, .. } => {
                let mut list = vec![None; ends as usize];
                for &(src, dst) in pairs {
                    list[src as usize] = Some(Target::Fixed(dst));
                }
                list
            }
            TrafficPattern::Transpose => fixed(Permutation::Transpose),
            TrafficPattern::BitComplement => fixed(Permutation::BitComplement),
            TrafficPattern::BitReverse => fixed(Permutation::BitReverse),
            TrafficPattern::Shuffle => fixed(Permutation::Shuffle),
            TrafficPattern::Tornado => fixed(Permutation::Tornado),
            TrafficPattern::Neighbour => fixed(Permutation::Neighbour),
            TrafficPattern::Flows { .. } => Vec::new(),
        };
        for target in &targets {
            match target {
                Some(Target::Fixed(end)) => self.address(*end as usize),
                Some(_) if self.addressed.iter().filter(|end| **end).count() < ends as usize => {
                    (0..ends as usize).for_each(|end| self.address(end));
                }
                _ => {}
            }
        }
        targets
    }

    fn attach(&mut self, layout: &mut Layout, local: LinkParams, at: &SwitchPort, path: String) -> Option<usize> {
        let place = EndPlace { switch: at.switch, port: at.port };
        if at.port >= layout.external_ports {
            let message = format!("{} has no port {} for traffic", layout.plan.nodes[at.switch as usize].name, at.port);
            let expected = format!("P0 to P{}", layout.external_ports - 1);
            self.problems.push(Problem::at(path, message).expected(expected));
            return None;
        }
        if let Some(end) = layout.end_at(place) {
            return Some(end);
        }
        if let Some((far, _)) = layout.neighbour(at.switch, at.port) {
            let message = format!(
                "{} leads to {}: no traffic can enter or leave there",
                at.name, layout.plan.nodes[far as usize].name
            );
            self.problems.push(Problem::at(path, message).expected("a local port or one without a link"));
            return None;
        }
        Some(layout.attach(place, local, "traffic"))
    }
}

fn class(traffic: usize, name: &str) -> Class {
    Class { traffic, name: name.to_owned(), sources: 0 }
}

/// Packet lengths as sources draw them.
pub fn lengths(given: &PacketFlits) -> Lengths {
    match given {
        PacketFlits::Fixed(flits) => Lengths::Fixed(*flits),
        PacketFlits::Range { min, max } => Lengths::Range(*min, *max),
        PacketFlits::List(list) => {
            let list: Vec<(u32, u64)> = list.iter().map(|item| (item.flits, u64::from(item.weight))).collect();
            Lengths::weighted(&list)
        }
    }
}

/// The sides of a topology's dimensions and its end points a switch, for patterns that move along dimensions. A topology
/// without dimensions is a ring of its end points.
fn coordinates(topology: &Topology) -> (Vec<u32>, u32) {
    match topology.shape.grid() {
        Some((sides, concentration)) => (sides.to_vec(), u32::from(concentration)),
        None => (vec![topology.end_points()], 1),
    }
}
