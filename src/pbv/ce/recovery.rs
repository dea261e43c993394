//! What the collective engine does about frames that do not come: watchdogs, retries, answers once more (B-ERR-1 to B-ERR-3).
//!
//! | who waits | for | on a time-out |
//! |---|---|---|
//! | an active context | participants | those that are missing are asked again, so often; then they are reported, and what is there is the answer, marked as an error |
//! | a context whose partial response is under way | the final result | the engine above is asked for it; in the end everybody below is told that there is none |
//!
//! Paragraph 98.

use super::{Awaited, Ce, CeCx, Feed, Outgoing, Target, reply_offset};
use crate::kernel::Cycle;
use crate::pbv::context::State;
use crate::pbv::packet::{Body, Header, Message, NO_DEVICE, Packet, Status};
use crate::pbv::tracking::TrackOp;

/// An engine that waits for the final result waits for everybody's tasks: so many time-outs *\[chosen\]*.
const WAITING_TIMES: u64 = 32;

impl Ce {
    /// Sets the watchdog of a context.
    pub(super) fn guard(&mut self, slot: u16, cx: &CeCx<'_>) {
        if cx.table.timeout > 0 && self.at(slot).stored.pbv != 0 {
            let waiting = self.at(slot).state == State::Waiting;
            let times = if waiting { WAITING_TIMES } else { 1 };
            let deadline = cx.now + times * u64::from(cx.table.timeout);
            self.at(slot).deadline = Some(deadline);
            self.alarm = self.alarm.min(deadline);
        }
    }

    /// Somebody asks again. Upstream: the response is sent again if there is one, and a command that was lost is made up for.
    /// Below: the answer is sent again if there is one.
    pub(super) fn repeat(
        &mut self,
        slot: u16,
        header: &Header,
        cx: &mut CeCx<'_>,
    ) -> Option<(u16, TrackOp, Option<Awaited>)> {
        let me = self.me;
        let context = self.at(slot);
        let below = cx.table.device(header.p_id) == Some(header.requester)
            && (context.stored.pbv | context.stored.down) >> header.p_id & 1 != 0;
        if below && context.requester != header.requester {
            self.answer_again(slot, header, cx);
            return None;
        }
        // An engine further up asks for a response that the ones between hand on: it is an engine.
        if context.requester != header.requester && reply_offset(header) == 0 {
            return None;
        }
        let ahead = header.run.wrapping_sub(context.like.run) as i32;
        let sent = context.state == State::Waiting || context.state == State::Done && context.stored.groups.is_some();
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
        if context.like.run != header.run {
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
        if let Some(result) = &context.result {
            packet.body = Body::Words(result.clone());
        }
        let entry = cx.table.entries().find(|&(entry, device)| {
            device == header.requester && (context.stored.pbv | context.stored.down) >> entry & 1 != 0
        });
        let target = if let Some((entry, _)) = entry {
            Target::Entries { pbv: 1 << entry, skip: NO_DEVICE }
        } else {
            (packet.header.device, packet.header.offset) = (header.requester, reply_offset(header));
            Target::Header
        };
        cx.out.push(Outgoing { packet, target });
    }

    /// Watchdogs (B-ERR-1, B-ERR-2): first those that are missing are asked again, then they are reported.
    pub(super) fn watch(&mut self, cx: &mut CeCx<'_>) {
        if cx.now < self.alarm {
            return;
        }
        let (me, tag) = (self.me.0, self.tag());
        for slot in 0..self.contexts.len() {
            let Some(context) = self.contexts[slot].as_mut() else { continue };
            if context.deadline.is_none_or(|deadline| deadline > cx.now) {
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
            let pbv = context.track.pbv;
            if context.retries < cx.table.retries {
                context.retries += 1;
                if self.record.is_some() {
                    self.asked.push((context.cc_id, context.like.run));
                }
                context.deadline = Some(cx.now + u64::from(cx.table.timeout));
                let mut header = context.like;
                (header.message, header.requester, header.tag) = (Message::Retry, me, tag);
                header.status = Status::TimedOut;
                let packet = Packet::bare(header);
                let target = Target::Entries { pbv, skip: NO_DEVICE };
                cx.out.push(Outgoing { packet, target: target.clone() });
                if context.release.is_some() {
                    // Who lost the command could not use the satisfied message that came behind it.
                    cx.out.push(Outgoing { packet: context.response(Message::Satisfied, self.me), target });
                }
                continue;
            }
            context.deadline = None;
            context.error = Status::TimedOut;
            for (entry, device) in cx.table.entries() {
                if pbv >> entry & 1 != 0 {
                    context.missing.push(device);
                    (cx.missing)(context.cc_id, device, Status::TimedOut);
                    if self.record.is_some() {
                        self.reported.push((context.cc_id, context.like.run, device));
                    }
                }
            }
            context.satisfied = true;
            if context.stored.pbv_order {
                let kept: Vec<Vec<u64>> = context.kept.iter_mut().filter_map(Option::take).collect();
                context.under_way += kept.iter().map(|words| words.len() as u32).sum::<u32>();
                let slot = slot as u16;
                self.feeds.extend(kept.into_iter().map(|words| Feed { slot, words, next: 0 }));
            }
            self.finish(slot as u16, cx);
        }
        self.alarm = self.contexts().filter_map(|context| context.deadline).min().unwrap_or(Cycle::MAX);
    }

    /// The answer from upstream does not come: it is asked for, and in the end everybody below is told that there is none.
    fn watch_waiting(&mut self, slot: u16, cx: &mut CeCx<'_>) {
        let me = self.me;
        let context = self.at(slot);
        context.deadline = None;
        if context.is_master() {
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
        (context.error, context.state) = (Status::TimedOut, State::Done);
        context.release = context.stored.groups.map(|_| Status::TimedOut);
        context.result = Some(Vec::new());
        let (cc_id, above, run) = (context.cc_id, context.requester, context.like.run);
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
