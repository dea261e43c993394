//! Responses that are forwarded and not merged (B-HI-2, paragraph 110): an engine hands the partial responses of the engines
//! below it on to its own requester as they are, beside its own, which is for its nodes alone.
//!
//! ```text
//!   master ◀── partial of B ── B ── has nodes: they are merged
//!          ◀── partial of C ── B ◀── partial of C ── C
//! ```
//!
//! A context has two bit vectors for that: the PBV, whose answers are expected, and the entries that messages go down
//! to. At an engine that forwards, engines below it are in the second only; at the one above, in the first only. A
//! forwarded frame keeps its requester, so that answers are tracked by responder, and carries the P_ID of the
//! forwarding engine. Where an engine expects answers of engines to which it sends nothing, it looks up the entry by
//! the requester *\[chosen\]*. An engine that forwards and has no nodes in the context answers nothing itself.

use super::{Ce, CeCx, Outgoing, Target};
use crate::context::State;
use crate::packet::{Header, Packet, Status};

impl Ce {
    /// Entries of engines below whose responses are handed on.
    pub(super) fn handed_on(&mut self, slot: u16, cx: &CeCx<'_>) -> u128 {
        let stored = self.at(slot).stored;
        stored.down & !stored.pbv & cx.table.switches
    }

    /// The entry of a response that another engine handed on, if this one expects it.
    pub(super) fn expected_of(&mut self, slot: u16, header: &Header, cx: &CeCx<'_>) -> Option<u8> {
        let stored = self.at(slot).stored;
        let expected = stored.pbv & !stored.down;
        cx.table
            .entries()
            .find(|&(entry, device)| device == header.requester && expected >> entry & 1 != 0)
            .map(|(entry, _)| entry)
    }

    /// Hands a message of an engine below on.
    pub(super) fn hand_on(&mut self, slot: u16, mut packet: Packet, cx: &mut CeCx<'_>) {
        let context = self.at(slot);
        let status = if context.state == State::Inactive {
            Some(Status::Inactive)
        } else if packet.header.run != context.like.run {
            Some(Status::Duplicate)
        } else {
            None
        };
        if let Some(status) = status {
            return self.refuse(&packet.header, status, cx);
        }
        let header = &mut packet.header;
        (header.device, header.offset) = (context.peers.requester, context.peers.requester_offset);
        header.p_id = context.peers.p_id;
        cx.out.push(Outgoing { packet, target: Target::Header });
    }
}
