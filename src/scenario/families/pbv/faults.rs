//! Links that misbehave, as `[[pbv.fault]]` says, and those that send again.

use std::collections::BTreeMap;

use super::build::Builder;
use super::file::WayFile;
use crate::armed::file::EffectFile;
use crate::fault::effect;
use crate::problem::Problem;
use crate::switches::replay;
use watershed_fabric::Plan;
use watershed_fabric::fault::{Direction, Fault, FaultyLink, LinkLayer};
use watershed_fabric::topology::Layout;
use watershed_kernel::{Cycle, Rng};

impl Builder<'_> {
    /// What sits in the wires, by switch and port; `longest`: flits of the longest frame.
    pub(super) fn faults(&mut self, plan: &Plan, lay: &Layout, longest: u64) -> Vec<((u32, u16), FaultyLink)> {
        let mut at: BTreeMap<(u32, u16), Vec<Fault>> = BTreeMap::new();
        let first = plan.nodes.len() - lay.ends.len();
        for (index, file) in self.pbv.faults.iter().enumerate() {
            // Ways of a place are seen from the switch at whose port it begins.
            let fault = |leaves: Direction| Fault {
                effect: effect(file.effect, file.delay_cycles),
                direction: match file.way {
                    WayFile::Both => Direction::Both,
                    WayFile::From => leaves,
                    WayFile::To => leaves.reversed(),
                },
                threshold: file.probability.map_or(u64::MAX, Rng::threshold),
                nth: file.nth,
                id: file.cc_id,
                from: file.from_cycle,
                until: file.until_cycle.unwrap_or(Cycle::MAX),
            };
            let end = plan.nodes[first..].iter().position(|node| node.name == file.at);
            let switch = lay.switch(&file.at);
            let mut hits = |place: (u32, u16), leaves: Direction| at.entry(place).or_default().push(fault(leaves));
            match (end, switch) {
                _ if file.at == "all" => {
                    lay.ends.iter().for_each(|end| hits((end.switch, end.port), Direction::Down));
                    self.links.iter().for_each(|&(a, port, ..)| hits((a, port), Direction::Up));
                }
                (Some(end), _) => hits((lay.ends[end].switch, lay.ends[end].port), Direction::Down),
                (_, Some(switch)) => {
                    for &(a, a_port, b, b_port) in &self.links {
                        if a == switch {
                            hits((a, a_port), Direction::Up);
                        } else if b == switch {
                            hits((b, b_port), Direction::Up);
                        }
                    }
                    if file.effect == EffectFile::Dead {
                        for end in lay.ends.iter().filter(|end| end.switch == switch) {
                            hits((end.switch, end.port), Direction::Down);
                        }
                    }
                }
                _ => {
                    let known = plan.nodes.iter().map(|node| node.name.as_str());
                    self.problems.push(
                        Problem::at(format!("pbv.fault[{index}].at"), format!("there is no \"{}\"", file.at))
                            .expected("the name of a switch or an end point, or \"all\"")
                            .nearest(&file.at, known),
                    );
                }
            }
        }
        let sequence_check = self.pbv.link_layer.sequence_check;
        let replays = self.scenario.link.reliability;
        if replays.is_some() {
            // Every link has the layer, once, whichever of its ends a fault names.
            for &(a, a_port, b, b_port) in &self.links {
                let mut faults = at.remove(&(b, b_port)).unwrap_or_default();
                for fault in &mut faults {
                    fault.direction = fault.direction.reversed();
                }
                at.entry((a, a_port)).or_default().extend(faults);
            }
            for end in &lay.ends {
                at.entry((end.switch, end.port)).or_default();
            }
        }
        let link = |(stream, (place, faults)): (usize, ((u32, u16), Vec<Fault>))| {
            let reliability = replays.map(|replays| {
                let link = plan.links.iter().find(|link| link.a == place || link.b == place);
                let link = link.expect("faults are on links");
                replay(&replays, u64::from(link.latency), u64::from(link.cycles_per_flit), longest)
            });
            let layer = LinkLayer { sequence_check, reliability };
            (place, FaultyLink::new(faults, layer, self.scenario.seed, 0xfa17_0000 + stream as u64))
        };
        at.into_iter().enumerate().map(link).collect()
    }
}
