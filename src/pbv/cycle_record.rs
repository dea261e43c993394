//! What is kept of a packet engine's cycles, so that another one can be clocked beside it.

use super::ce::Outgoing;
use super::packet::{Packet, Status};
use super::tables::PbvTable;
use watershed_kernel::Cycle;

/// What a collective engine was given in a cycle, and what it answered: enough to clock another one beside it.
#[derive(Clone, Debug)]
pub struct CycleRecord {
    /// The cycle.
    pub cycle: Cycle,
    /// The message that it took.
    pub packet: Option<Packet>,
    /// Watchdogs waited for room.
    pub full: bool,
    /// Contexts with messages that waited to leave.
    pub leaving: Vec<u16>,
    /// The PBV table.
    pub table: PbvTable,
    /// What it refused.
    pub refused: Vec<Status>,
    /// What it sent.
    pub sent: Vec<Outgoing>,
    /// What its packet engine did around it.
    pub ports: PortRecord,
}

/// The packet engine's side of a [`CycleRecord`].
#[derive(Clone, Debug, Default)]
pub struct PortRecord {
    /// The PBV table was being written: no message was taken, and no copy looked up.
    pub closed: bool,
    /// A congestion report that was queued ahead of everything else.
    pub report: Option<Outgoing>,
    /// Frames whose last flit came, and through which port.
    pub arrived: Vec<(u16, Vec<u64>)>,
    /// The word of a frame that stood at the output, and whether it is the last one of its frame; of flits of one word.
    pub output_word: Option<(u64, bool)>,
    /// It went.
    pub output_sent: bool,
    /// It is the first one of its frame.
    pub begins: bool,
    /// By which port it leaves.
    pub side: u16,
    /// Flits of frames that could still come to wait, at the start of the cycle.
    pub room: usize,
    /// Messages in the output queue when the next copy was looked up, and those that counted when the registers were served.
    pub held: u32,
    /// See `held`.
    pub counted: u32,
    /// A congestion report waited at the start of the cycle.
    pub reporting: bool,
    /// The device that was reported missing last in this cycle, with its context and the status.
    pub missing: Option<(u16, u16, Status)>,
    /// Levels of the queues that are measured, at the start of the cycle.
    pub levels: Vec<u32>,
    /// What the registers sent, with a refusal for which the output queue had no place.
    pub answers: Vec<Outgoing>,
    /// The last message that was queued, if it is a refusal for which there was no place.
    pub unsent: Option<Outgoing>,
}
