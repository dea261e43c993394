//! The ladder of a PBV run: a column for every engine and node that sent or received something, a message for every frame.
//!
//! Columns: the sources of collectives, then engines, then the other nodes, each in the order of device IDs. A frame is matched with its
//! arrival by sender, receiver, message, context and run, first sent first received: frames from one device to another stay in
//! order.

use crate::run::system::PbvSystem as System;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::build::PbvBuild;
use watershed_pbv::event::Event;
use watershed_pbv::packet::NO_DEVICE;
use watershed_pbv::system::{engines, events};
use watershed_probe::ladder::{Ladder, Message};

/// The ladder of everything that was logged.
pub fn ladder(system: &System, ready: &PbvBuild<()>) -> Ladder {
    let log = events(system);
    let active: BTreeSet<u16> =
        log.iter().flat_map(|event| [event.from, event.to]).filter(|&device| device != NO_DEVICE).collect();
    let switches: BTreeSet<u16> = engines(system).map(|engine| engine.cfg().device).collect();
    let sources: BTreeSet<u16> = ready.collectives.iter().map(|collective| collective.source).collect();
    let rank = |device: u16| match (sources.contains(&device), switches.contains(&device)) {
        (true, _) => 0,
        (_, true) => 1,
        _ => 2,
    };
    let mut columns: Vec<u16> = active.into_iter().collect();
    columns.sort_by_key(|&device| (rank(device), device));
    let column: BTreeMap<u16, usize> = columns.iter().enumerate().map(|(at, &device)| (device, at)).collect();
    let name = |device: &u16| ready.names.get(device).cloned().unwrap_or_else(|| format!("{device:#06x}"));
    let mut ladder = Ladder { actors: columns.iter().map(name).collect(), ..Ladder::default() };
    let key = |event: &Event| (event.from, event.to, event.message, event.cc_id, event.run);
    let mut arrivals: BTreeMap<_, VecDeque<u64>> = BTreeMap::new();
    for event in log.iter().filter(|event| event.received) {
        arrivals.entry(key(event)).or_default().push_back(event.cycle);
    }
    let several = ready.collectives.len() > 1;
    for event in log.iter().filter(|event| !event.received) {
        let arrived = arrivals.get_mut(&key(event)).and_then(|list| {
            while list.front().is_some_and(|&cycle| cycle < event.cycle) {
                list.pop_front();
            }
            list.pop_front()
        });
        let (Some(&from), Some(&to)) = (column.get(&event.from), column.get(&event.to)) else { continue };
        let collective = event.is_of_context();
        let label = if several && collective { format!("#{} {}", event.cc_id, event.label()) } else { event.label() };
        ladder.messages.push(Message { from, to, sent: event.cycle, arrived, label });
    }
    ladder
}
