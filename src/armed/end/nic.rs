//! What the NIC of an end point has under way, in both directions.

use super::packet::Packet;
use crate::assembly::Assembly;
use std::collections::VecDeque;
use watershed_fabric::Reassembly;

/// Frames of which flits have come or gone, and those that wait for the link.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
pub(super) struct Nic {
    /// Under assembly: frames of trees, by channel.
    pub assembling: [Assembly; 2],
    /// The same in their Ethernet form.
    pub long: [Reassembly; 2],
    /// Software messages under assembly: words and token of each point-to-point channel.
    pub unicast: Vec<(Reassembly, u64)>,
    /// Frames of the agent, or for it, under assembly.
    pub managing: Assembly,
    /// Packets of processes, and of strangers.
    pub queues: [VecDeque<Packet>; 2],
    /// The packet under way, and how many of its flits have been sent.
    pub sending: Option<(Packet, usize)>,
    /// Whether strangers have the next turn.
    pub turn: bool,
}
