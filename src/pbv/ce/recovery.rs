//! Recovery of the collective engine from missing frames: watchdogs, retries, repeated answers (B-ERR-1 to B-ERR-3).
//!
//! | what waits | for | on a time-out |
//! |---|---|---|
//! | an active context, commanded or begun by its source's contribution | participants | the missing ones are asked again, up to `retries` times; then they are reported, and the contributions so far are the answer, marked as an error |
//! | a context whose partial response is under way | the final result | the engine above is asked for it; in the end all below get a result that is marked as an error |
//! | a context with a multicast | acknowledgements | the data goes out again to those that have not acknowledged it; then they are reported |
//!
//! An engine keeps the frames that it may have to send again: its response and the result of the present run, the data
//! of a multicast, and, where contexts are armed again, the answer of the run before. No device can be further behind
//! *\[chosen\]*. A subservient engine whose multicast is acknowledged waits for nothing more.
//!
//! While the words of a context that waits for nobody are still being added, its watchdog starts again and does nothing else.
//!
//! A run ends early, as if by a time-out, in two cases: a result that is marked as an error comes down before all
//! participants have answered, or the source gives up and closes the run at the master *\[chosen\]*.
//!
//! When the earliest deadline is due, the contexts of the store are scanned one after the other, as many a cycle as the
//! memory has ports.
//!
//! Paragraph 98.

use super::{Ce, CeCx, Outgoing, Target, TrackingStep, reply_offset};
use crate::context::{Context, State};
use crate::packet::{Body, Header, Message, NO_DEVICE, Packet, Status};
use watershed_kernel::Cycle;

/// An engine that waits for the final result waits for the tasks of all participants, so it waits this many time-outs
/// *\[chosen\]*.
const WAITING_TIMES: u64 = 32;

impl Ce {
    /// Sets the watchdog of a context.
    pub(super) fn guard(&mut self, slot: u16, cx: &mut CeCx<'_>) {
        if cx.table.timeout > 0 && self.at(slot).stored.pbv != 0 {
            let waiting = self.at(slot).state == State::Waiting;
            let times = if waiting { WAITING_TIMES } else { 1 };
            let deadline = cx.now + times * u64::from(cx.table.timeout);
            let context = self.at(slot);
            context.deadline = Some(deadline);
            (cx.watched)(&context.like);
            self.alarm = self.alarm.min(deadline);
        }
    }

    /// A device asks again. Upstream: the response is sent again if there is one, and a command that was lost is made
    /// up for. Below: the answer is sent again if there is one.
    pub(super) fn repeat(&mut self, slot: u16, header: &Header, cx: &mut CeCx<'_>) -> TrackingStep {
        let me = self.me;
        let context = self.at(slot);
        // The source is above the master, and gets no answer either.
        let above = header.requester == context.peers.above || header.requester == context.peers.collector;
        if context.is_master() || !above {
            self.answer_again(slot, header, cx);
            return None;
        }
        let ahead = header.run.wrapping_sub(context.like.run) as i32;
        let over = context.stored.groups.is_some() || context.is_multicast();
        let sent = context.state == State::Waiting || context.state == State::Done && over;
        if ahead == 0 && sent {
            let packet = context.response(Message::Partial, me);
            cx.out.push(Outgoing { packet, target: Target::Header });
        } else if ahead > 0 || ahead == 0 && !context.commanded {
            let header = Header { message: Message::Command, status: Status::Ok, ..*header };
            return self.command(slot, Packet::bare(header), cx);
        }
        None
    }

    /// Sends the answer of a run that is over to one who has not got it.
    pub(super) fn answer_again(&mut self, slot: u16, header: &Header, cx: &mut CeCx<'_>) {
        let me = self.me;
        let context = self.at(slot);
        let entry = cx.table.entries().find(|&(entry, device)| {
            device == header.requester && (context.stored.pbv | context.stored.down) >> entry & 1 != 0
        });
        let addressed = |mut packet: Packet| {
            let target = if let Some((entry, _)) = entry {
                Target::Entries { pbv: 1 << entry, skip: NO_DEVICE }
            } else {
                (packet.header.device, packet.header.offset) = (header.requester, reply_offset(header));
                Target::Header
            };
            Outgoing { packet, target }
        };
        if let Some(last) = context.data.last.as_ref().filter(|last| last.header.run == header.run) {
            return cx.out.push(addressed(last.clone()));
        }
        if context.like.run != header.run {
            return;
        }
        if context.hands_to_source() && header.requester == context.peers.requester {
            return self.hand_again(slot, cx);
        }
        let context = self.at(slot);
        if context.is_multicast() && !context.is_master() {
            // A sender that repeats the data has no acknowledgement.
            if context.state == State::Done {
                let packet = context.response(Message::Partial, me);
                cx.out.push(Outgoing { packet, target: Target::Header });
            }
            return;
        }
        if header.message == Message::Command && context.arrived == Some(header.run) {
            // The source of a group asks whether all of it have arrived.
            let packet = context.response(Message::Partial, me);
            cx.out.push(Outgoing { packet, target: Target::Header });
        }
        let context = self.at(slot);
        if !context.is_answered() {
            return;
        }
        let mut packet = context.response(Message::Satisfied, me);
        packet.header.p_count = context.stored.p_count;
        if let Some(result) = &context.data.result {
            packet.body = Body::Words(result.clone());
        }
        cx.out.push(addressed(packet));
    }

    /// The source gives a run up: it ends as if its time were over.
    pub(super) fn give_up_run(&mut self, slot: u16, header: &Header, cx: &mut CeCx<'_>) {
        let context = self.at(slot);
        let tracked = matches!(context.state, State::Active | State::Paused);
        if header.run != context.like.run || !tracked || context.satisfied {
            return self.refuse(header, Status::Duplicate, cx);
        }
        context.state = State::Active;
        self.expire(slot, header.status, cx);
    }

    /// A run ends with what is there; who is missing is reported.
    fn expire(&mut self, slot: u16, status: Status, cx: &mut CeCx<'_>) {
        let record = self.record.is_some();
        let Some(context) = self.contexts[usize::from(slot)].as_mut() else { return };
        context.deadline = None;
        context.error = if status == Status::Ok { Status::TimedOut } else { status };
        let pbv = context.track.pbv;
        for (_, device) in cx.table.entries().filter(|&(entry, _)| pbv >> entry & 1 != 0) {
            context.missing.insert(device);
            (cx.missing)(context.cc_id, device, context.error);
            if record {
                self.reported.push((context.cc_id, context.like.run, device));
            }
        }
        context.satisfied = true;
        self.feed_kept(slot);
        self.finish(slot, cx);
    }

    /// Watchdogs (B-ERR-1, B-ERR-2): first those that are missing are asked again, then they are reported.
    pub(super) fn watch(&mut self, cx: &mut CeCx<'_>) {
        let from = match self.memory.scan.take() {
            None if cx.now < self.alarm => return,
            None => 0,
            Some(slot) => usize::from(slot),
        };
        if cx.full {
            self.memory.scan = Some(from as u16);
            return;
        }
        let to = (from + usize::from(self.cfg.memory_ports)).min(self.contexts.len());
        let (me, tag) = (self.me.0, self.tag());
        for slot in from..to {
            let Some(context) = self.contexts[slot].as_mut() else { continue };
            if context.deadline.is_none_or(|deadline| deadline > cx.now) {
                continue;
            }
            if matches!(context.state, State::Active | State::Waiting) && (cx.leaving)(context.cc_id) {
                // Nobody can have answered what has not left; and so no context fills the output queue on its own.
                context.deadline = Some(cx.now + u64::from(cx.table.timeout));
                continue;
            }
            if context.state == State::Waiting {
                self.watch_waiting(slot as u16, cx);
                continue;
            }
            if context.state != State::Active {
                context.deadline = None;
                continue;
            }
            if context.satisfied && context.under_way > 0 {
                // All have answered, or were reported: what is left is to add their words.
                context.deadline = Some(cx.now + u64::from(cx.table.timeout));
                (cx.watched)(&context.like);
                continue;
            }
            let pbv = context.track.pbv;
            if context.retries < cx.table.retries {
                context.retries += 1;
                if self.record.is_some() {
                    self.asked.push((context.cc_id, context.like.run));
                }
                context.deadline = Some(cx.now + u64::from(cx.table.timeout));
                (cx.watched)(&context.like);
                let mut header = context.like;
                (header.requester, header.tag) = (me, tag);
                // Who has not acknowledged a multicast may not have it: its data goes out again.
                let packet = if context.is_multicast() {
                    Packet::of(header, context.data.cast.clone())
                } else {
                    (header.message, header.status) = (Message::Retry, Status::TimedOut);
                    Packet::bare(header)
                };
                let target = Target::Entries { pbv, skip: NO_DEVICE };
                cx.out.push(Outgoing { packet, target: target.clone() });
                if context.release.is_some() {
                    // Who lost the command could not use the satisfied message that came behind it.
                    cx.out.push(Outgoing { packet: context.response(Message::Satisfied, self.me), target });
                }
                continue;
            }
            if context.knows_its_requester() {
                self.expire(slot as u16, Status::TimedOut, cx);
            } else {
                self.report_orphaned(slot as u16, cx);
            }
        }
        if to < self.contexts.len() {
            self.memory.scan = Some(to as u16);
            return;
        }
        self.alarm = self.contexts().filter_map(|context| context.deadline).min().unwrap_or(Cycle::MAX);
    }

    /// Nothing is due once no context has a deadline: a run that has ended leaves no alarm behind.
    pub(super) fn stop_alarm(&mut self) {
        if self.alarm == Cycle::MAX {
            return;
        }
        let runs = |context: &Option<Context>| context.as_ref().is_some_and(|context| context.deadline.is_some());
        if self.contexts.get(self.guarded).is_some_and(runs) {
            return;
        }
        match self.contexts.iter().position(runs) {
            Some(other) => self.guarded = other,
            None => self.alarm = Cycle::MAX,
        }
    }

    /// The answer from upstream does not come: it is asked for, and in the end all devices below are told that there is
    /// none.
    fn watch_waiting(&mut self, slot: u16, cx: &mut CeCx<'_>) {
        let me = self.me;
        let context = self.at(slot);
        context.deadline = None;
        if context.is_master() && !context.hands_to_source() {
            // The other groups have watchdogs of their own.
            return;
        }
        if context.retries <= cx.table.retries {
            context.retries += 1;
            let mut packet = context.response(Message::Retry, me);
            (packet.body, packet.header.status) = (Body::Words(Vec::new()), Status::TimedOut);
            cx.out.push(Outgoing { packet, target: Target::Header });
            return self.guard(slot, cx);
        }
        self.report_orphaned(slot, cx);
    }

    /// No device above answers, or ever commanded the run: all devices below are told that there is no result.
    fn report_orphaned(&mut self, slot: u16, cx: &mut CeCx<'_>) {
        let me = self.me;
        let context = self.at(slot);
        (context.error, context.state) = (Status::TimedOut, State::Done);
        (context.deadline, context.satisfied) = (None, true);
        context.release = context.stored.groups.map(|_| Status::TimedOut);
        context.data.result = Some(Vec::new());
        let (cc_id, above, run) = (context.cc_id, context.peers.above, context.like.run);
        let mut packet = context.response(Message::Satisfied, me);
        packet.body = Body::Words(Vec::new());
        packet.header.p_count = context.stored.p_count;
        (cx.missing)(cc_id, above, Status::TimedOut);
        if self.record.is_some() {
            self.reported.push((cc_id, run, above));
        }
        self.distribute(slot, packet, NO_DEVICE, false, cx);
    }
}
