//! The way of a point-to-point packet, from its creation to the arrival of its tail.
//!
//! A packet is named by the end point that sent it and its number there, counted from 0 in the order of departure. A
//! number alone is its place in the order of arrival, from 0. The default is the packet with the longest latency among
//! those that arrived.

use super::hops::{Hops, NoInlineBlocks, Origin};
use super::{Kind, Path, Phase, Why, WhyQuery};
use watershed_fabric::{Journal, Plan};

/// A packet that arrived.
struct ArrivedPacket {
    queued: super::hops::QueuedFlit,
    left: u64,
    end: u32,
    created: u64,
}

/// Explains one packet. `ends` is the number of end points, the last nodes of the plan.
///
/// # Errors
/// There is no such packet, or the journal lacks a part of its way.
pub fn explain(plan: &Plan, journal: &Journal, ends: usize, ask: WhyQuery<'_>) -> Result<Why, String> {
    let hops = Hops::new(plan, journal, 0..plan.vcs.total());
    let first = plan.nodes.len() - ends;
    let mut packets: Vec<ArrivedPacket> = Vec::new();
    for end in 0..ends as u32 {
        for (queued, left) in hops.arrivals(hops.base(first as u32 + end)) {
            if plan.vcs.is_set(queued.vc) {
                continue;
            }
            // The header holds 40 bits of the cycle of creation.
            let (_, word) = hops.packet(queued);
            let age = left.wrapping_sub(word) & ((1 << 40) - 1);
            packets.push(ArrivedPacket { queued, left, end, created: left - age });
        }
    }
    if packets.is_empty() {
        return Err("no point-to-point packet has arrived".into());
    }
    let follow = |packet: &ArrivedPacket| -> Result<(Path, Origin), String> {
        let mut path = Path::new(packet.created, packet.left, Phase::Transit);
        let origin = hops.trace_back(packet.queued, Kind::Landing, &NoInlineBlocks, &mut path)?;
        Ok((path, origin))
    };
    let number_of = |origin: &Origin| hops.sent_before(origin);
    let chosen = match (ask.source, ask.packet) {
        (Some(source), number) => {
            let node = first as u32 + source;
            let mut mine = Vec::new();
            for packet in &packets {
                let (_, origin) = follow(packet)?;
                if origin.node == node {
                    mine.push((number_of(&origin), packet));
                }
            }
            let found = match number {
                Some(number) => mine.iter().find(|(at, _)| *at == number),
                None => mine.iter().max_by_key(|(at, packet)| (packet.left - packet.created, std::cmp::Reverse(*at))),
            };
            let sent = mine.len();
            found
                .map(|(_, packet)| *packet)
                .ok_or_else(|| format!("{sent} packets of {} arrived, and this is none of them", hops.name(node)))?
        }
        (None, Some(number)) => {
            packets.sort_by_key(|packet| (packet.left, packet.end, packet.queued.vc));
            let count = packets.len();
            packets.get(number as usize).ok_or_else(|| format!("there is no packet {number}: {count} arrived"))?
        }
        (None, None) => {
            let slowest = |packet: &&ArrivedPacket| {
                (packet.left - packet.created, std::cmp::Reverse((packet.left, packet.end, packet.queued.vc)))
            };
            packets.iter().max_by_key(slowest).ok_or("no packet arrived")?
        }
    };
    let (mut path, origin) = follow(chosen)?;
    let source = hops.name(origin.node);
    path.phase = Phase::Inject;
    path.prepend(chosen.created, Kind::Queue, source);
    let name = format!("packet {} of {source}", number_of(&origin));
    let landed = hops.name(first as u32 + chosen.end).to_owned();
    path.finish((&name, "packet", number_of(&origin)), landed, chosen.left, None)
}
