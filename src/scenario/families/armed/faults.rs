//! Links that misbehave, as `[[armed.fault]]` says, those that send again, and end points that are dead.

use std::collections::{BTreeMap, BTreeSet};

use super::build::Builder;
use super::file::{FaultFile, WayFile};
use crate::fault::effect;
use crate::problem::Problem;
use crate::switches::replay;
use watershed_armed::frame::ETHERNET_BYTES;
use watershed_armed::{Direction, Effect, Fault, FaultyLink, LinkLayer, WireBlock};
use watershed_fabric::topology::EndPlace;
use watershed_fabric::{NodeKind, Plan, PlanLink};
use watershed_kernel::{Cycle, Rng};

/// Faults by the switch and port at which their link begins.
type FaultsByPort = BTreeMap<(u32, u16), Vec<Fault>>;

/// End points that are dead, from when until when.
type DeadEndPoints = Vec<(usize, Cycle, Cycle)>;

/// Links on which frames of trees climb, and on which those for the agent do.
pub(super) struct FaultLinks<'a> {
    pub climbs: &'a BTreeSet<(u32, u16)>,
    pub managed: &'a BTreeSet<(u32, u16)>,
}

impl Builder<'_> {
    /// Puts faulty links into the plan, and says which end points are dead from when until when.
    pub(super) fn faults(
        &mut self,
        plan: &mut Plan,
        bumps: &mut Vec<WireBlock>,
        ends: &[EndPlace],
        places: &FaultLinks<'_>,
        lay_links: &[PlanLink],
    ) -> DeadEndPoints {
        let (mut at, dead) = self.faults_by_port(plan, ends, places);
        if self.scenario.link.reliability.is_some() {
            protect_every_link(lay_links, plan.count(NodeKind::Switch), &mut at);
        }
        self.faulty_links(plan, bumps, ends, places.climbs, at);
        dead
    }

    /// The faults of each port, and which end points are dead from when until when.
    fn faults_by_port(
        &mut self,
        plan: &Plan,
        ends: &[EndPlace],
        places: &FaultLinks<'_>,
    ) -> (FaultsByPort, DeadEndPoints) {
        let switches = plan.count(NodeKind::Switch);
        let (mut dead, mut at) = (DeadEndPoints::new(), FaultsByPort::new());
        for (index, file) in self.armed.faults.iter().enumerate() {
            let fault = fault(file);
            let climbs = if file.way == WayFile::Agent { places.managed } else { places.climbs };
            let what = if file.way == WayFile::Agent { "frame for the agent climbs" } else { "tree climbs" };
            let first_end = plan.nodes.len() - plan.count(NodeKind::End);
            let end = plan.nodes[first_end..].iter().position(|node| node.name == file.at);
            let switch = plan.nodes[..switches].iter().position(|node| node.name == file.at).map(|at| at as u32);
            let places: Vec<(u32, u16)> = match (file.at.as_str(), end, switch) {
                ("all", ..) => {
                    // Every link on which a frame of a tree travels: those that climb, and those of their leaves.
                    let mut places = climbs.clone();
                    for reduction in &self.armed.reductions {
                        places.extend(reduction.leaves.iter().map(|&end| {
                            let place = ends[end as usize];
                            (place.switch, place.port)
                        }));
                    }
                    places.into_iter().collect()
                }
                (_, Some(end), _) if fault.effect == Effect::Dead => {
                    dead.push((end, fault.from, fault.until));
                    Vec::new()
                }
                (_, Some(end), _) => vec![(ends[end].switch, ends[end].port)],
                (_, _, Some(switch)) if fault.effect == Effect::Dead => {
                    let of = |end: (u32, u16)| (end.0 == switch).then_some(end.1);
                    let ports = plan.links.iter().flat_map(|link| [of(link.a), of(link.b)]).flatten();
                    ports.map(|port| (switch, port)).collect()
                }
                (_, _, Some(switch)) => {
                    let ports: Vec<(u32, u16)> = climbs.iter().copied().filter(|climb| climb.0 == switch).collect();
                    if ports.is_empty() {
                        self.problems.push(Problem::at(
                            format!("armed.fault[{index}].at"),
                            format!("no {what} from switch \"{}\"", file.at),
                        ));
                    }
                    ports
                }
                _ => {
                    let known =
                        plan.nodes.iter().filter(|node| node.kind != NodeKind::Bump).map(|node| node.name.as_str());
                    self.problems.push(
                        Problem::at(format!("armed.fault[{index}].at"), format!("there is no \"{}\"", file.at))
                            .expected("the name of a switch or an end point, or \"all\"")
                            .nearest(&file.at, known),
                    );
                    Vec::new()
                }
            };
            for place in places {
                at.entry(place).or_default().push(fault);
            }
        }
        (at, dead)
    }

    /// Puts a faulty link into the wire of each of these ports.
    fn faulty_links(
        &self,
        plan: &mut Plan,
        bumps: &mut Vec<WireBlock>,
        ends: &[EndPlace],
        climbs: &BTreeSet<(u32, u16)>,
        at: FaultsByPort,
    ) {
        let switches = plan.count(NodeKind::Switch);
        let replays = self.scenario.link.reliability;
        let sequence_check = self.armed.link_layer.sequence_check;
        let lay_local: BTreeSet<(u32, u16)> = ends.iter().map(|end| (end.switch, end.port)).collect();
        for (stream, ((switch, port), faults)) in at.into_iter().enumerate() {
            let what = if faults.is_empty() { "link" } else { "fault" };
            let name = format!("{}.P{port}.{what}", plan.nodes[switch as usize].name);
            let (node, port) = match replays {
                // The wire is beyond the switch's own engine, and before that of another switch.
                Some(_) if !lay_local.contains(&(switch, port)) => {
                    if climbs.contains(&(switch, port)) {
                        plan.beyond(switch, port)
                    } else {
                        (switch, port)
                    }
                }
                _ => plan.outermost(switch, port),
            };
            let bump = (switches + plan.insert_bump(node, port, 1, &name)) as u32;
            let reliability = replays.map(|replays| {
                // The bump models the link and both its ends, which are one register each from their nodes.
                let outer = plan.links.iter_mut().find(|link| link.a == (bump, 1));
                let outer = outer.expect("a bump has two sides");
                let (wire, flit) = (u64::from(outer.latency), u64::from(outer.cycles_per_flit));
                outer.latency = 1;
                replay(&replays, wire, flit, self.scenario.link.cut().flits(ETHERNET_BYTES) as u64)
            });
            let layer = LinkLayer { sequence_check, reliability };
            let link = FaultyLink::new(faults, layer, self.scenario.seed, 0xfa17_0000 + stream as u64);
            bumps.push(WireBlock::Fault(Box::new(link)));
        }
    }
}

fn fault(file: &FaultFile) -> Fault {
    Fault {
        effect: effect(file.effect, file.delay_cycles),
        direction: match file.way {
            WayFile::Up => Direction::Up,
            WayFile::Down => Direction::Down,
            WayFile::Both => Direction::Both,
            WayFile::Agent => Direction::Agent,
        },
        threshold: file.probability.map_or(u64::MAX, Rng::threshold),
        nth: file.nth,
        id: None,
        from: file.from_cycle,
        until: file.until_cycle.unwrap_or(Cycle::MAX),
    }
}

/// Every link between switches, and between a switch and an end point, has the layer that sends again: once, whichever of its ends a
/// fault names.
fn protect_every_link(links: &[PlanLink], switches: usize, at: &mut FaultsByPort) {
    let switch_end = |port: (u32, u16)| ((port.0 as usize) < switches).then_some(port);
    for link in links {
        let ends = [switch_end(link.a), switch_end(link.b)];
        let Some(first) = ends.into_iter().flatten().min() else { continue };
        let other = ends.into_iter().flatten().find(|&end| end != first);
        let faults = other.and_then(|other| at.remove(&other)).unwrap_or_default();
        at.entry(first).or_default().extend(faults);
    }
}
