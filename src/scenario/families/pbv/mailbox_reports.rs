//! Congestion metrics and reports about the queues of engines, from the mailboxes of end points.

use super::build::PbvBuild;
use super::config::Pbv;
use super::congestion::{CongestionResult, QueueResult, ReportResult, name};
use crate::run::system::PbvSystem as System;
use watershed_pbv::packet::Message;

/// Reports that the collector got, in the order of arrival.
pub fn sent(pbv: &Pbv, system: &System, ready: &PbvBuild<()>) -> Vec<ReportResult> {
    let Some((_, to)) = &pbv.reports else { return Vec::new() };
    let node = system.end(*to as usize);
    let names = |device: u16| ready.names.get(&device).cloned().unwrap_or_default();
    let mut all = Vec::new();
    for (cycle, packet) in node.mail().iter().filter(|(_, packet)| packet.header.message == Message::Report) {
        // An end point cannot pass for an engine: its device is none of a switch.
        let known = watershed_pbv::system::engines(system).any(|engine| engine.cfg().device == packet.header.requester);
        let Some((&at, queues)) = packet.words().split_first().filter(|_| known) else { continue };
        for &word in queues {
            let (queue, unit) = name((word >> 32) as usize);
            all.push(ReportResult {
                switch: names(packet.header.requester),
                plane: (packet.header.tag >> 8 & 0xf) as u8,
                to: names(node.device()),
                cycle: at,
                arrived_cycle: *cycle,
                queue,
                unit: unit.into(),
                level: word & 0xffff_ffff,
            });
        }
    }
    all
}

/// The answers to all requests, in their order.
pub fn reports(pbv: &Pbv, system: &System, ready: &PbvBuild<()>) -> Vec<CongestionResult> {
    let mut all = Vec::new();
    for (index, request) in pbv.congestion.iter().enumerate() {
        let node = system.end(request.by as usize);
        for &switch in &request.switches {
            let device = (switch * pbv.device_stride) as u16;
            let answer = node.mail().iter().find(|(_, packet)| {
                let header = &packet.header;
                (header.message, header.requester, header.tag) == (Message::ReadReply, device, index as u16)
            });
            let words = answer.map_or(&[][..], |(_, packet)| packet.words());
            let (head, readings) = words.split_at(words.len().min(3));
            let reading = |(queue, pair): (usize, &[u64])| {
                let (queue, unit) = name(queue);
                QueueResult { queue, unit: unit.into(), mean: pair[0] as f64 / 256.0, most: pair[1] }
            };
            let names = |device: u16| ready.names.get(&device).cloned().unwrap_or_default();
            all.push(CongestionResult {
                switch: names(device),
                plane: request.plane,
                by: names(node.device()),
                answer_cycle: answer.map(|(cycle, _)| *cycle),
                windows: head.get(1).copied().unwrap_or(0),
                measured_cycles: head.get(2).copied().unwrap_or(0),
                queues: readings.chunks_exact(2).enumerate().map(reading).filter(|queue| queue.most > 0).collect(),
            });
        }
    }
    all
}
