//! The ladder of an armed run, put together from the logs of engines and end points.
//!
//! Columns: the root end points, then the engines from the root down, then the leaves. A frame that is passed on is a
//! message of the station that passed it. Frames of the management agent go from the sender to the place where they
//! take effect: at a switch, when the entry is written.

use crate::run::system::ArmedSystem as System;
use std::collections::BTreeMap;

use super::build::ArmedBuild;
use watershed_armed::header::NO_RESULT;
use watershed_armed::manage::{self, Place, Verb};
use watershed_armed::station::{FrameEvent, LogEntry};
use watershed_armed::{Address, WireBlock};
use watershed_fabric::NodeKind;
use watershed_probe::ladder::{Ladder, Message};

/// A station in a tree: its number in the plan and its parent's.
type Parents = BTreeMap<(u16, u32), u32>;

/// The ladder of everything that was logged.
pub fn ladder(system: &System, ready: &ArmedBuild<()>) -> Ladder {
    let plan = system.plan();
    let switches = plan.count(NodeKind::Switch) as u32;
    let first_end = (plan.nodes.len() - plan.count(NodeKind::End)) as u32;
    let (parents, mut columns) = trees(system, ready);
    let managed = managed(system, first_end);
    columns.extend(managed.iter().map(|(station, _)| *station));
    let mut seen = std::collections::BTreeSet::new();
    columns.retain(|station| seen.insert(*station));
    let column: BTreeMap<u32, usize> = columns.iter().enumerate().map(|(at, station)| (*station, at)).collect();
    let mut ladder = Ladder {
        actors: columns.iter().map(|&at| plan.nodes[at as usize].name.replace(".engine", "")).collect(),
        ..Ladder::default()
    };

    let mut logs: Vec<(u32, &[LogEntry])> = Vec::new();
    for (at, bump) in system.bumps().enumerate() {
        if let Some(WireBlock::Engine(engine)) = bump {
            logs.push((switches + at as u32, engine.log().entries()));
        }
    }
    for (at, end) in system.ends().enumerate() {
        logs.push((first_end + at as u32, end.log().entries()));
    }
    ladder.messages.extend(frames(&logs, &parents, &column));
    ladder.messages.extend(managed_messages(&managed, first_end, &column));
    ladder
}

/// Who is above whom in which tree, and the stations of all trees: roots, engines from the root down, leaves.
fn trees(system: &System, ready: &ArmedBuild<()>) -> (Parents, Vec<u32>) {
    let plan = system.plan();
    let switches = plan.count(NodeKind::Switch) as u32;
    let first_end = (plan.nodes.len() - plan.count(NodeKind::End)) as u32;
    let mut parents: Parents = BTreeMap::new();
    let (mut roots, mut leaves) = (Vec::new(), Vec::new());
    let mut engines: Vec<(u32, u32)> = Vec::new();
    let engine_at: BTreeMap<(u32, u16), u32> =
        ready.engines.iter().map(|(place, number)| (*place, switches + *number as u32)).collect();
    let end_at: BTreeMap<(u32, u16), u32> =
        (0..system.end_count() as u32).map(|end| (end_place(plan, first_end + end), first_end + end)).collect();
    for laid in &ready.reductions {
        for (tree, id) in laid.trees.iter().zip(&laid.ids(system)) {
            let station_of_switch: BTreeMap<u32, u32> = tree
                .rows
                .iter()
                .filter_map(|row| Some((row.switch, *engine_at.get(&(row.switch, row.parent))?)))
                .collect();
            let root = end_at.get(&(tree.root.switch, tree.root.port)).copied();
            for row in &tree.rows {
                let Some(&here) = station_of_switch.get(&row.switch) else { continue };
                engines.push((row.depth, here));
                if row.depth == 0
                    && let Some(root) = root
                {
                    parents.insert((*id, here), root);
                    roots.push(root);
                }
                for port in &row.children {
                    if let Some(&end) = end_at.get(&(row.switch, port)) {
                        parents.insert((*id, end), here);
                        leaves.push(end);
                    } else if let Some(below) =
                        below(plan, row.switch, port).and_then(|far| station_of_switch.get(&far))
                    {
                        parents.insert((*id, *below), here);
                    }
                }
            }
        }
    }
    engines.sort_unstable();
    let engines = engines.into_iter().map(|(_, station)| station);
    (parents, roots.into_iter().chain(engines).chain(leaves).collect())
}

/// The frames of all trees, each from the station that sent it, or passed it on, to those above or below.
fn frames(logs: &[(u32, &[LogEntry])], parents: &Parents, column: &BTreeMap<u32, usize>) -> Vec<Message> {
    // Who sent a token when, by token: a station sends it once, or passes it once.
    let mut emitted: BTreeMap<u64, Vec<(u32, u64)>> = BTreeMap::new();
    let mut taken: BTreeMap<(u64, u32), Vec<u64>> = BTreeMap::new();
    for (station, entries) in logs {
        for entry in *entries {
            if is_emission(entry.what) {
                emitted.entry(entry.token).or_default().push((*station, entry.cycle));
            }
            if !matches!(entry.what, FrameEvent::Sent) {
                taken.entry((entry.token, *station)).or_default().push(entry.cycle);
            }
        }
    }
    let mut messages = Vec::new();
    for (station, entries) in logs {
        for entry in entries.iter().filter(|entry| is_emission(entry.what)) {
            let id = entry.frame.address.multicast_id;
            let down = is_down(entry, *station, parents, &emitted);
            let targets: Vec<u32> = if down {
                parents
                    .iter()
                    .filter(|((tree, _), parent)| *tree == id && *parent == station)
                    .map(|((_, child), _)| *child)
                    .collect()
            } else {
                parents.get(&(id, *station)).copied().into_iter().collect()
            };
            for to in targets {
                let arrived = taken
                    .get(&(entry.token, to))
                    .and_then(|cycles| cycles.iter().copied().find(|&cycle| cycle >= entry.cycle));
                let (Some(&from), Some(&to)) = (column.get(station), column.get(&to)) else { continue };
                messages.push(Message { from, to, sent: entry.cycle, arrived, label: label(entry, down) });
            }
        }
    }
    messages
}

/// What end points, and switches in their order, have logged of the agent's frames.
fn managed(system: &System, first_end: u32) -> Vec<(u32, &[manage::LoggedMessage])> {
    let ends = system.ends().zip(first_end..).map(|(end, station)| (station, end.manage_log()));
    let switches = system.joins().zip(0..).map(|(discard, station)| (station, discard.log()));
    ends.chain(switches).filter(|(_, log)| !log.is_empty()).collect()
}

/// The agent's frames, from who sent them to where they came in.
fn managed_messages(
    logs: &[(u32, &[manage::LoggedMessage])],
    first_end: u32,
    column: &BTreeMap<u32, usize>,
) -> Vec<Message> {
    let mut messages = Vec::new();
    for (station, log) in logs {
        for entry in log.iter().filter(|entry| entry.sent) {
            let to = match entry.message.to {
                Place::Switch(switch) => switch,
                Place::End(end) => first_end + end,
            };
            let there = logs.iter().find(|(station, _)| *station == to).map_or(&[][..], |(_, log)| log);
            let same = |other: &&manage::LoggedMessage| !other.sent && other.message == entry.message;
            let arrived = there.iter().filter(same).map(|other| other.cycle).find(|&cycle| cycle >= entry.cycle);
            let (Some(&from), Some(&to)) = (column.get(station), column.get(&to)) else { continue };
            messages.push(Message { from, to, sent: entry.cycle, arrived, label: managed_label(&entry.message) });
        }
    }
    messages
}

fn managed_label(message: &manage::Message) -> String {
    let manage::Message { verb, ids, job, part, count, .. } = *message;
    match verb {
        Verb::Ask => format!("ask for job {job}, part {} of {}", part + 1, manage::Message::parts(count as usize)),
        Verb::Delete => format!("delete job {job}"),
        Verb::Granted => {
            let ids: Vec<String> = ids.iter().filter(|&&id| id != manage::NO_ID).map(u16::to_string).collect();
            format!("granted {}", ids.join(", "))
        }
        Verb::Refused => "refused".into(),
        Verb::Deleted => "deleted".into(),
        Verb::Write => format!("write {}", ids[0]),
        Verb::Erase => format!("erase {}", ids[0]),
        Verb::Done => format!("done {}", ids[0]),
        Verb::NoRoom => format!("no room for {}", ids[0]),
    }
}

fn is_emission(what: FrameEvent) -> bool {
    matches!(what, FrameEvent::Sent | FrameEvent::Passed | FrameEvent::Armed | FrameEvent::NotArmed)
}

/// Descending frames come from the root of their tree, which has no parent there.
fn is_down(entry: &LogEntry, station: u32, parents: &Parents, emitted: &BTreeMap<u64, Vec<(u32, u64)>>) -> bool {
    let id = entry.frame.address.multicast_id;
    let is_root = |at: u32| {
        !parents.contains_key(&(id, at)) && parents.iter().any(|((tree, _), parent)| *tree == id && *parent == at)
    };
    is_root(station) || emitted.get(&entry.token).is_some_and(|list| list.iter().any(|(at, _)| is_root(*at)))
}

fn label(entry: &LogEntry, down: bool) -> String {
    let header = &entry.frame.header;
    let Address { reduction_id, .. } = entry.frame.address;
    let flow = if reduction_id > 0 { format!("#{reduction_id} ") } else { String::new() };
    if !down {
        return format!("{flow}{}: count {}", header.seqno, header.count);
    }
    let result = if header.resno == NO_RESULT { String::new() } else { format!("result {} ", header.resno) };
    let arm = match (header.arm, header.retry) {
        (true, false) => format!("arm {}", header.seqno),
        (true, true) => format!("again {}", header.seqno),
        _ => "release".into(),
    };
    format!("{flow}{result}{arm}")
}

/// Where an end point's link begins at a switch, beyond what sits in the wire.
fn end_place(plan: &watershed_fabric::Plan, end: u32) -> (u32, u16) {
    follow_link(plan, (end, 0))
}

/// The switch below a port of a switch.
fn below(plan: &watershed_fabric::Plan, switch: u32, port: u16) -> Option<u32> {
    let (far, _) = follow_link(plan, (switch, port));
    (plan.nodes[far as usize].kind == NodeKind::Switch).then_some(far)
}

fn follow_link(plan: &watershed_fabric::Plan, from: (u32, u16)) -> (u32, u16) {
    let mut at = from;
    loop {
        let far = plan.links.iter().find_map(|link| match (link.a == at, link.b == at) {
            (true, _) => Some(link.b),
            (_, true) => Some(link.a),
            _ => None,
        });
        match far {
            Some((node, side)) if plan.nodes[node as usize].kind == NodeKind::Bump => at = (node, 1 - side),
            Some(far) => return far,
            None => return at,
        }
    }
}
