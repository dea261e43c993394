//! Answers: what a context sends when all have answered, up, to the source, and down again.

use super::{Ce, CeCx, Outgoing, Target};
use crate::context::State;
use crate::packet::{Body, Header, MAX_PAYLOAD_BYTES, Message, NO_DEVICE, PBV_ENTRIES, Packet, Status};
use crate::tables::engine_tag;
use crate::tracking::{Track, TrackOp};

/// Devices in one frame that says who is missing.
const MOST_MISSING: usize = (MAX_PAYLOAD_BYTES - PBV_ENTRIES / 8) / 2;

impl Ce {
    /// Answers if all participants have answered and every word is written.
    pub(super) fn finish(&mut self, slot: u16, cx: &mut CeCx<'_>) {
        let context = self.at(slot);
        let ready = context.satisfied && context.under_way == 0 && context.state == State::Active;
        if !ready || !context.knows_its_requester() {
            return;
        }
        context.deadline = None;
        self.answer(slot, cx);
    }

    pub(super) fn answer(&mut self, slot: u16, cx: &mut CeCx<'_>) {
        let me = self.me;
        if self.record.is_some() {
            let context = self.at(slot);
            let answered = (context.cc_id, context.like.run, context.generation, cx.now);
            self.answered.push(answered);
        }
        let context = self.at(slot);
        let master = context.is_master();
        if context.error != Status::Ok {
            // Who is missing goes ahead of the data (B-ERR-3): upstream, or from the master to the source.
            self.name_missing(slot, cx);
        }
        let context = self.at(slot);
        if context.hands_to_source() {
            context.state = State::Waiting;
            context.retries = 0;
            self.guard(slot, cx);
        } else if master && context.stored.groups.is_some() {
            self.arrive(slot, cx);
        } else if master {
            let stored = context.stored;
            let mut packet = context.response(Message::Satisfied, me);
            packet.header.p_count = stored.p_count;
            let source = context.peers.dmu_id;
            context.state = State::Done;
            self.distribute(slot, packet, source, stored.answer_source, cx);
        } else {
            let packet = context.response(Message::Partial, me);
            context.retries = 0;
            cx.out.push(Outgoing { packet, target: Target::Header });
            if context.release.is_some() || context.is_multicast() {
                // Nothing comes down any more.
                context.state = State::Done;
            } else {
                context.state = State::Waiting;
                self.guard(slot, cx);
            }
        }
    }

    /// Tells the requester who is missing: upstream, or from the master the source.
    pub(super) fn name_missing(&mut self, slot: u16, cx: &mut CeCx<'_>) {
        let me = self.me;
        let context = self.at(slot);
        let mut header = Header::new(Message::Error, me.0, context.peers.requester, context.peers.requester_offset);
        (header.tag, header.tlp.tc) = (engine_tag(me.1), context.like.tlp.tc);
        (header.status, header.cc_id, header.run) = (context.error, context.cc_id, context.like.run);
        (header.dmu_id, header.p_id) = (context.peers.dmu_id, context.peers.p_id);
        let (pbv, all) = (context.track.pbv, context.missing.iter().copied().collect::<Vec<u16>>());
        for devices in all.chunks(MOST_MISSING).map(<[u16]>::to_vec).chain(all.is_empty().then(Vec::new)) {
            let body = Body::Missing { pbv, devices };
            cx.out.push(Outgoing { packet: Packet { header, body }, target: Target::Header });
        }
    }

    /// Sends satisfied to all devices below, and to the source if it is not among them and wants it.
    pub(super) fn distribute(
        &mut self,
        slot: u16,
        packet: Packet,
        source: u16,
        answer_source: bool,
        cx: &mut CeCx<'_>,
    ) {
        let context = self.at(slot);
        let stored = context.stored;
        let multicast = context.is_multicast();
        if answer_source {
            let mut copy = packet.clone();
            (copy.header.device, copy.header.offset) = (source, 0);
            cx.out.push(Outgoing { packet: copy, target: Target::Header });
        }
        // A multicast is over when it was received: its receivers wait for nothing.
        if !multicast {
            let packet = packet.clone();
            cx.out.push(Outgoing { packet, target: Target::Entries { pbv: stored.down, skip: NO_DEVICE } });
        }
        if stored.rearm {
            let context = self.restart_context(slot);
            context.data.last = Some(packet);
            context.state = State::Active;
            context.like.run = context.like.run.wrapping_add(1);
            context.track = Track { pbv: stored.pbv, p_count: stored.p_count };
            let load = TrackOp::Load(context.track);
            let request = self.request(slot, load, None);
            self.loads.push_back(request);
        }
    }

    /// Satisfied came from upstream: it goes on down.
    pub(super) fn descend(&mut self, slot: u16, packet: &Packet, cx: &mut CeCx<'_>) {
        let header = packet.header;
        let context = self.at(slot);
        if context.stored.groups.is_some() && context.is_answered() && context.like.run == header.run {
            // Once more, behind a retry.
            return;
        }
        // A group may go on before all of it are there.
        // A run that has ended with an error above is over here too.
        let before = header.error || context.stored.groups.is_some() || context.stored.pbv == 0;
        let waits = context.state == State::Waiting || before && matches!(context.state, State::Active | State::Paused);
        if !waits || context.like.run != header.run {
            return self.refuse(&header, Status::Duplicate, cx);
        }
        if context.state == State::Waiting || context.stored.pbv == 0 || context.stored.groups.is_none() {
            context.state = State::Done;
            context.deadline = None;
        }
        if context.stored.groups.is_some() {
            context.release = Some(header.status);
        } else {
            (context.flags, context.error) = (header.flags, header.status);
        }
        context.data.result = Some(packet.words().to_vec());
        let mut copy = Packet { header: self.down(header), body: packet.body.clone() };
        copy.header.p_count = self.at(slot).stored.p_count;
        self.distribute(slot, copy, NO_DEVICE, false, cx);
    }
}
