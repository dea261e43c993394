//! The channels of each family in a network of several families, and their number.

use crate::config::Scenario;
use crate::{hosts, segments, sources};
use watershed_armed_interface::CHANNELS as ARMED_CHANNELS;
use watershed_fabric::Vcs;
use watershed_fabric::topology::{Common, Shape};
use watershed_mixed_interface::{ChannelDemand, Map};
use watershed_piuma_interface::channels::CHANNELS;

/// Groups of point-to-point channels: armed messages, messages of hosts and programs, lanes of traffic.
pub fn groups(scenario: &Scenario) -> (u8, u8, u8) {
    let talk = scenario.programs.is_some() || scenario.workload.is_some() || hosts::config::simulated(scenario);
    let traffic = if scenario.traffic.is_empty() { 0 } else { sources::lanes(scenario) };
    (u8::from(scenario.armed.is_some()), u8::from(talk), traffic)
}

/// Point-to-point channels with which each group has as many as the network's routing needs.
pub fn needed(scenario: &Scenario) -> u32 {
    let (armed, talk, traffic) = groups(scenario);
    let link = scenario.link.params();
    let common = Common { vcs: Vcs { set: 0, unicast: 1 }, engine: false, link, local: link };
    let needs = match &scenario.topology.shape {
        // They may be too many to be laid out only to be asked.
        Shape::Nodes(nodes) => nodes.classes(),
        shape => shape.layout(&common).routing.needs(),
    };
    u32::from(needs) * u32::from(armed + talk + traffic)
}

/// Whether PIUMA's switches have engines.
pub fn has_engines(scenario: &Scenario) -> bool {
    !scenario.collectives.is_empty() || scenario.programs.is_some()
}

/// Which channels belong to whom. `switch.point_to_point_vcs` is divided evenly between armed messages, those of hosts and programs,
/// and the lanes of traffic; what is left over is nobody's *\[chosen\]*.
pub fn map(scenario: &Scenario) -> Map {
    let (armed, talk, traffic) = groups(scenario);
    let each = scenario.switch.point_to_point_vcs as u8 / (armed + talk + traffic).max(1);
    let agent = scenario.armed.as_ref().is_some_and(|armed| armed.agent.is_some());
    Map::new(ChannelDemand {
        piuma: if has_engines(scenario) { segments::planes(scenario) * CHANNELS } else { 0 },
        armed: armed * (ARMED_CHANNELS + u8::from(agent)),
        pbv: scenario.pbv.is_some(),
        armed_messages: armed * each,
        messages: talk * each,
        traffic: traffic * each,
    })
}
