//! Admission: the check of a message's sender, run and context state before it changes anything (B-ERR-4).
//!
//! | message | sender | run | state |
//! |---|---|---|---|
//! | initialisation | an owner of the context | | |
//! | initialisation of a stored context | an owner that is the device that initialised it or the one above | | |
//! | control | the device above | close: the present one | close: tracked |
//! | command, multicast | the device above, or the collector | a new one; the present one is once more | not inactive |
//! | contribution, failure | an end device of the table, at its P_ID and in the PBV | the present one | tracked |
//! | partial | an engine of the table, at its P_ID and in the PBV | the present one | tracked |
//! | satisfied | the device above | the present one | waiting; with an error tracked too |
//! | error that names missing devices | as a contribution or partial, and it has not answered yet | the present one | tracked |
//! | error about the set-up | an engine below | | |
//! | other errors | above or below: they answer a frame of this engine and change nothing | | |
//! | retry | above or below | | |
//!
//! The device above is the engine that the initialisation names; at the master it is the sender of the initialisation.
//! The collector is the engine that expects the response of this one; where responses are forwarded it is further up.
//! The [owners](crate::tables::Owners) of a context, its source and the engine above, are known before its first frame.
//! The collector checks the frames that another engine forwards. The fabric stamps requester IDs, so they cannot be
//! forged *\[chosen\]*.
//!
//! Paragraph 96.

use super::{Ce, CeCx, Outgoing, Target};
use crate::context::{Context, State};
use crate::packet::{Body, Header, Message, Packet, Status};
use crate::tables::engine_tag;

/// Where a message comes from, as seen from a context.
fn is_from_above(context: &Context, header: &Header) -> bool {
    header.requester == context.peers.above || header.requester == context.peers.collector
}

/// Whether the sender is where it says in the table, and has to do with the context.
fn is_from_below(context: &Context, header: &Header, cx: &CeCx<'_>) -> bool {
    let is_listed = cx.table.device(header.p_id) == Some(header.requester);
    is_listed && (context.stored.pbv | context.stored.down) >> header.p_id & 1 != 0
}

impl Ce {
    /// Whether the sender of a message may say such a thing about a stored context. Answers of participants are looked at where
    /// they are tracked.
    pub(super) fn admit(&mut self, slot: u16, header: &Header, cx: &CeCx<'_>) -> Result<(), Status> {
        let context = self.at(slot);
        let legal = match header.message {
            Message::Initialisation => [context.peers.above, context.peers.initialiser].contains(&header.requester),
            Message::Control | Message::Satisfied => header.requester == context.peers.above,
            Message::Command | Message::Multicast => is_from_above(context, header),
            Message::Retry | Message::Error => {
                let handed_on = self.handed_on(slot, cx) >> header.p_id & 1 != 0;
                let expected = self.expected_of(slot, header, cx).is_some();
                let context = self.at(slot);
                is_from_above(context, header) || is_from_below(context, header, cx) || handed_on || expected
            }
            Message::Contribution | Message::Partial | Message::Failure => true,
            _ => return Err(Status::WrongType),
        };
        if legal { Ok(()) } else { Err(Status::UnknownDevice) }
    }

    /// An error message from a device that may send one.
    pub(super) fn hear(&mut self, slot: u16, packet: Packet, cx: &mut CeCx<'_>) {
        let header = packet.header;
        let expected = self.expected_of(slot, &header, cx);
        let handed_on = self.handed_on(slot, cx) >> header.p_id & 1 != 0 && expected.is_none();
        let context = self.at(slot);
        let below = is_from_below(context, &header, cx);
        if header.is_about_set_up() {
            if below && cx.table.is_switch(header.p_id) {
                self.climb(slot, &packet, cx);
            }
            return;
        }
        let Body::Missing { devices, .. } = &packet.body else { return };
        if handed_on {
            return self.hand_on(slot, packet, cx);
        }
        // It does not answer for the engine that sends it: that one answers next.
        let entry = expected.unwrap_or(header.p_id);
        let late = header.run != context.like.run
            || context.satisfied
            || context.track.pbv >> entry & 1 == 0
            || !matches!(context.state, State::Active | State::Paused);
        let status = if expected.is_none() && !below {
            Status::UnknownDevice
        } else if header.status == Status::Ok {
            Status::Mismatch
        } else if late {
            Status::Duplicate
        } else {
            context.fail(header.status);
            context.missing.extend(devices);
            return;
        };
        self.refuse(&header, status, cx);
    }

    /// An engine below is not set up: the source is told, who sets it up again.
    fn climb(&mut self, slot: u16, packet: &Packet, cx: &mut CeCx<'_>) {
        let (me, from) = (self.me, packet.header);
        let context = self.at(slot);
        let devices = match &packet.body {
            Body::Missing { devices, .. } => devices.clone(),
            _ => vec![from.requester],
        };
        for &device in &devices {
            (cx.missing)(context.cc_id, device, from.status);
        }
        let mut header = Header::new(Message::Error, me.0, context.peers.requester, context.peers.requester_offset);
        (header.tag, header.tlp.tc) = (engine_tag(me.1), from.tlp.tc);
        (header.status, header.cc_id, header.run) = (from.status, context.cc_id, from.run);
        (header.dmu_id, header.p_id, header.p_count) = (context.peers.dmu_id, context.peers.p_id, from.p_count);
        let packet = Packet { header, body: Body::Missing { pbv: 0, devices } };
        cx.out.push(Outgoing { packet, target: Target::Header });
    }
}
