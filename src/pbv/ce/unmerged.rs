//! Responses that the master forwards unmerged to the source, which merges them in software (paragraphs 11 and 12).
//!
//! ```text
//!   nodes, engines below ── responses ──▶ master ── each as it came ──▶ source: merges
//!   all below ◀──────────── satisfied ── master ◀── satisfied, with the result ── source
//! ```
//!
//! The master tracks answers as usual and reduces nothing. A response goes on with the P_ID of its sender in the
//! master's table, as the master's own frame; the source's own response takes the same way *\[chosen\]*. When all have
//! answered the context waits. The result comes from the source, in a satisfied message like that of an engine above,
//! and goes down to all *\[chosen: the text only says that the source is provided with the responses\]*. The master
//! keeps the forwarded responses until the next run, and sends them again when the source repeats its command. If the
//! result does not come, it asks the source for it.
//!
//! Storage: the words of all responses, 128 times those of an accumulator.

use super::{Ce, CeCx, Outgoing, Target};
use crate::context::State;
use crate::packet::{Body, Message, Packet, Status};

impl Ce {
    /// A response that was tracked goes to the source.
    pub(super) fn hand_to_source(&mut self, slot: u16, entry: u8, mut packet: Packet, cx: &mut CeCx<'_>) {
        let header = self.down(packet.header);
        let context = self.at(slot);
        packet.header = header;
        packet.header.p_id = entry;
        (packet.header.device, packet.header.offset) = (context.peers.requester, context.peers.requester_offset);
        context.data.handed.push(packet.clone());
        cx.out.push(Outgoing { packet, target: Target::Header });
    }

    /// The source asks for what it has not got.
    pub(super) fn hand_again(&mut self, slot: u16, cx: &mut CeCx<'_>) {
        let me = self.me;
        let context = self.at(slot);
        let mut again = context.data.handed.clone();
        if let Some(result) = context.data.result.clone() {
            // It has handed its result in, and its node has not got it.
            let satisfied = context.response(Message::Satisfied, me);
            again = vec![Packet { body: Body::Words(result), ..satisfied }];
        }
        let incomplete = context.state == State::Waiting && context.error != Status::Ok;
        cx.out.extend(again.into_iter().map(|packet| Outgoing { packet, target: Target::Header }));
        if incomplete {
            self.name_missing(slot, cx);
        }
    }
}
