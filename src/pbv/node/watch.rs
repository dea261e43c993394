//! What the watchdog asks of a node: how far it has come in a context, and whether it waits for a time that will come.

use std::collections::VecDeque;

use super::super::gather::Gather;
use super::super::packet::Packet;
use super::{Node, PartState, Running, SendCondition};
use watershed_kernel::Cycle;

impl Node {
    /// How far it has come in a context: changes with every task, contribution and answer. `None` if it waits for nothing.
    pub fn advanced(&self, cc_id: u16) -> Option<u64> {
        let running = self.parts.iter().find(|running| running.part.cc_id == cc_id && self.waits(cc_id))?;
        Some(4 * (u64::from(running.run) + running.outcomes.len() as u64) + running.state as u64)
    }

    /// Whether it waits in a context for a time that will come: for its task to end, here or in a context that blocks this
    /// one, for its patience to end, or to send a frame.
    pub fn expects(&self, cc_id: u16, now: Cycle) -> bool {
        let is_at_work = |running: &Running| matches!(running.state, PartState::Working | PartState::Met);
        let mut parts = self.parts.iter().filter(|of| of.part.cc_id == cc_id || of.part.blocks && is_at_work(of));
        let task = |of: &Running| of.state == PartState::Working && of.until > now && of.until != Cycle::MAX;
        let is_due = |lane: &VecDeque<(SendCondition, Packet)>| {
            let front = lane.front();
            front.is_some_and(|(when, packet)| {
                packet.header.cc_id == cc_id && matches!(when, SendCondition::At(cycle) if *cycle > now)
            })
        };
        let merges = |of: &Running| of.part.gather.as_ref().and_then(Gather::due).is_some_and(|due| due > now);
        parts.any(|of| task(of) || of.is_uncalled() || merges(of) || of.alarm.is_some_and(|cycle| cycle > now))
            || self.scripts.iter().any(is_due)
    }
}
