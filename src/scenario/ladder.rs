//! The ladder of a run of the PIUMA family or of plain traffic, put together from the journal of all flits (requirement W-LAD-1).
//!
//! Columns: the end points that sent or received something, in their order, then the engines that reduced. Messages are
//! words of a collective from an end point or engine to the next one, past the switches that only forward them, and
//! point-to-point packets between end points; the packets of a host's round are one message.

use std::collections::{BTreeMap, BTreeSet};

use super::why::hops::Hops;
use crate::run::system::PiumaSystem as System;
use watershed_fabric::{Flit, FlitEvent, Journal, NodeKind, Tables};
use watershed_piuma::{RESPONSE, kind, scan};
use watershed_probe::ladder::{Ladder, Message};

/// Names for what is on the ladder.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// Of collective ids.
    pub ids: BTreeMap<u16, String>,
    /// Of hosts, by the class of their packets.
    pub hosts: BTreeMap<u16, String>,
}

/// A message of a host: sender, receiver, class, round.
type HostRound = (u32, u32, u16, u64);

/// Bits of a packet's number within a host's round.
const INDEX_BITS: u32 = 20;

/// The ladder of everything in a journal.
pub fn ladder(system: &System, journal: &Journal, names: &Names) -> Ladder {
    let plan = system.plan();
    let hops = Hops::new(plan, journal, 0..plan.vcs.total());
    let first_end = (plan.nodes.len() - plan.count(NodeKind::End)) as u32;
    let engine_port = system.registers().engine_port();
    // What other families have in the network.
    let (set, messages) = (system.registers().set_channels, system.registers().messages.clone());
    let is_others = |vc: u8| vc >= set && messages.as_ref().is_some_and(|own| vc < own.start);
    // From, to, sent, arrived, label; a message of a host by its round as well.
    let mut messages: Vec<(u32, u32, u64, u64, String)> = Vec::new();
    let mut rounds: BTreeMap<HostRound, (u64, u64, u64)> = BTreeMap::new();
    for entry in &journal.entries {
        if entry.what != FlitEvent::Left {
            continue;
        }
        let node = hops.node(entry.port);
        let vc = entry.tag.vc();
        if plan.nodes[node as usize].kind == NodeKind::Bump || is_others(vc) {
            continue;
        }
        let (id, seq) = (entry.tag.id(), entry.tag.seq());
        if plan.vcs.is_set(vc) {
            // A word lands at an end point, or in the slot of an engine.
            let port = (entry.port - hops.base(node)) as u16;
            let flit = Flit { tag: entry.tag, word: entry.word };
            let lands = node >= first_end || system.registers().outputs(node, port, &flit).contains(engine_port);
            if !lands || port == engine_port && node < first_end {
                continue;
            }
            let Some((from, sent)) = hops.origin(entry.port, vc, entry.cycle) else { continue };
            // A scan's responses say more than their element.
            let word = if kind(vc) == RESPONSE { scan::element(seq) } else { seq };
            let way = if kind(vc) == RESPONSE { "result" } else { "word" };
            let name = names.ids.get(&id).filter(|_| names.ids.len() > 1);
            let name = name.map_or_else(String::new, |name| format!("{name} "));
            messages.push((from, node, sent, entry.cycle, format!("{name}{way} {word}")));
            continue;
        }
        if node < first_end || !entry.tag.tail() {
            continue;
        }
        let Some((from, sent)) = hops.origin_of_packet(entry.port, vc, entry.cycle) else { continue };
        if names.hosts.contains_key(&id) {
            let key = (from, node, id, seq >> INDEX_BITS);
            let known = rounds.entry(key).or_insert((sent, entry.cycle, 0));
            *known = (known.0.min(sent), known.1.max(entry.cycle), known.2 + 1);
        } else {
            messages.push((from, node, sent, entry.cycle, "packet".into()));
        }
    }
    for ((from, to, id, round), (sent, arrived, packets)) in rounds {
        let name = names.hosts.get(&id).filter(|_| names.hosts.len() > 1);
        let name = name.map_or_else(String::new, |name| format!("{name} "));
        // The last packet is the flag.
        let what = match packets - 1 {
            0 => "flag".to_owned(),
            1 => "1 packet".to_owned(),
            packets => format!("{packets} packets"),
        };
        messages.push((from, to, sent, arrived, format!("{name}round {round}: {what}")));
    }
    // What an end point sends to itself needs no arrow.
    messages.retain(|message| message.0 != message.1);
    let active: BTreeSet<u32> = messages.iter().flat_map(|message| [message.0, message.1]).collect();
    let mut columns: Vec<u32> = active.into_iter().collect();
    columns.sort_by_key(|&node| (node < first_end, node));
    let column: BTreeMap<u32, usize> = columns.iter().enumerate().map(|(at, &node)| (node, at)).collect();
    let name = |&node: &u32| {
        let name = system.node_name(node);
        if node < first_end { format!("{name}.ceng") } else { name.replace(".memory", "") }
    };
    messages.sort_by_key(|message| (message.2, message.3, message.0, message.1));
    Ladder {
        actors: columns.iter().map(name).collect(),
        messages: messages
            .into_iter()
            .map(|(from, to, sent, arrived, label)| Message {
                from: column[&from],
                to: column[&to],
                sent,
                arrived: Some(arrived),
                label,
            })
            .collect(),
        ..Ladder::default()
    }
}
