//! Frames that a node receives: which it obeys, and what they change.

use super::Node;
use super::running::{Outcome, PartState};
use crate::ce::reply_offset;
use crate::event::{Event, StepKind};
use crate::gather::Gather;
use crate::packet::{Body, Header, Message, Packet, Status};
use watershed_kernel::Cycle;

impl Node {
    /// Whether a frame may change anything here: whether end devices have a use for it, and who sends it.
    pub(super) fn admit(&mut self, at: Option<usize>, header: &Header) -> Result<(), Status> {
        let merges = |gather: &Gather| gather.master == header.requester;
        let merges = at.and_then(|at| self.parts[at].part.gather.as_ref()).is_some_and(merges);
        match header.message {
            _ if header.tlp.poisoned => return Err(Status::Poisoned),
            _ if header.offset != 0 => return Err(Status::BadAddress),
            _ if header.engines_only => return Err(Status::WrongType),
            Message::Contribution | Message::Failure if merges => {}
            Message::Write | Message::Read | Message::Configuration | Message::Contribution | Message::Failure => {
                return Err(Status::WrongType);
            }
            Message::ReadReply => return Ok(()),
            // An engine names itself in the tag.
            Message::Report if header.tag >> 13 & 1 != 0 => return Ok(()),
            Message::Report => return Err(Status::WrongType),
            _ => {}
        }
        let Some(at) = at else { return Ok(()) };
        let part = &mut self.parts[at].part;
        if part.heeds.is_empty() {
            part.heeds.push(header.requester);
        }
        if part.heeds.contains(&header.requester) { Ok(()) } else { Err(Status::UnknownDevice) }
    }

    /// The receiver of answers and the place in the PBV are learned from the command.
    pub(super) fn learn(&mut self, at: usize, header: &Header) {
        let like = &mut self.parts[at].part.like;
        (like.device, like.offset) = (header.requester, reply_offset(header));
        (like.p_id, like.dmu_id) = (header.p_id, header.dmu_id);
    }

    /// Takes a whole frame, in the cycle of its last flit.
    pub fn receive(&mut self, words: &[u64], now: Cycle) {
        self.soonest = None;
        let packet = match Packet::from_flits(words) {
            Ok(packet) => packet,
            Err(error) => return self.refuse(error.status()),
        };
        let header = packet.header;
        self.log.note(Event::received(now, self.device, &header));
        let at = self.parts.iter().position(|running| running.part.cc_id == header.cc_id);
        if let Err(status) = self.admit(at, &header) {
            return self.refuse(status);
        }
        match (header.message, at) {
            (Message::Initialisation | Message::Command, Some(at)) => {
                self.learn(at, &header);
                let starts = header.message == self.parts[at].part.starts_on || header.message == Message::Command;
                if starts && self.parts[at].has_met(header.run) {
                    // A device that asks has not received it.
                    self.repeat(at, now);
                } else if starts {
                    self.begin(at, header.run, now);
                }
            }
            (Message::Satisfied, Some(at)) => self.hear_of_end(at, &packet, now),
            (Message::Partial, Some(at)) if self.parts[at].part.group => self.hear_of_group(at, &header, now),
            (Message::Contribution | Message::Partial | Message::Failure, Some(at))
                if self.parts[at].part.gather.is_some() =>
            {
                let part = &mut self.parts[at].part;
                let (gather, length) = (part.gather.as_mut().expect("looked at"), part.length);
                if let Err(status) = gather.take(packet, length, now) {
                    self.refuse(status);
                }
            }
            (Message::Retry, Some(at)) if self.parts[at].is_asked_for_result(&header) => self.hand_in(at, &header, now),
            (Message::Retry, Some(at)) => self.answer_again(at, &header, now),
            (Message::Multicast, _) => self.take_multicast(packet, now),
            (Message::Error, Some(at)) => {
                if let (Some(gather), Body::Missing { .. }) = (&mut self.parts[at].part.gather, &packet.body)
                    && gather.master == header.requester
                    && !header.is_about_set_up()
                {
                    gather.end(header.run, header.status, now);
                }
                self.mail.push((now, packet));
                self.hear_of_set_up(at, &header, now);
            }
            (Message::Initialisation | Message::Control, _) => {}
            (Message::Command | Message::Retry, None) => self.refuse(Status::UnknownContext),
            _ => self.mail.push((now, packet)),
        }
    }

    /// The master asks for the result that it has no more of: once more, or what there is if this node has given up.
    pub(super) fn hand_in(&mut self, at: usize, header: &Header, now: Cycle) {
        let Some(gather) = &mut self.parts[at].part.gather else { return };
        if let Some(answer) = gather.answer(header.run) {
            let answer = answer.clone();
            self.log.step(now, StepKind::Repeated, &answer.header);
            self.outbox.push_back(answer);
        } else {
            gather.end(header.run, Status::TimedOut, now);
        }
    }

    /// The run of a part is over: here is its result, or why there is none.
    pub(super) fn hear_of_end(&mut self, at: usize, packet: &Packet, now: Cycle) {
        let header = packet.header;
        let running = &mut self.parts[at];
        if !running.is_news(header.run) {
            // Once more what it knows.
            return;
        }
        running.set_up_due = None;
        let counted = running.part.watches || running.part.group || running.has_met(header.run);
        if !header.error && !counted {
            // A result in which its contribution cannot be.
            return self.refuse(Status::Inactive);
        }
        if running.state != PartState::Idle && running.run != header.run {
            // The answer to the run it waits for was lost, and so was the command of this one.
            running.give_up(Status::TimedOut, now);
        }
        let (words, flags) = running.part.kept(packet.words(), header.flags);
        let error = header.error.then_some(header.status);
        if running.part.group && running.state != PartState::Met {
            // The others are there; this node is not yet, and maybe its command is lost.
            running.released = Some((header.run, error));
            return;
        }
        let met = if running.part.watches { now } else { running.until };
        let run = header.run;
        running.end(Outcome { run, met, cycle: now, words, flags, error });
        self.begin_next_run(at, run, now);
        self.start(now);
        self.ended += 1;
    }

    /// The source of a group hears that all of it have arrived.
    pub(super) fn hear_of_group(&mut self, at: usize, header: &Header, now: Cycle) {
        let running = &mut self.parts[at];
        if running.arrived.is_some_and(|arrived| header.run.wrapping_sub(arrived) as i32 <= 0) {
            // Once more what it knows.
            return;
        }
        running.arrived = Some(header.run);
        running.set_up_due = None;
        if running.command.as_ref().is_some_and(|command| command.header.run != header.run) {
            return;
        }
        running.command = None;
        if running.part.watches && running.is_news(header.run) {
            let (words, flags, error) = (Vec::new(), header.flags, header.error.then_some(header.status));
            running.outcomes.push(Outcome { run: header.run, met: now, cycle: now, words, flags, error });
        }
        if running.state == PartState::Idle {
            running.alarm = None;
        }
    }

    /// An engine asks for a contribution that has not come.
    pub(super) fn answer_again(&mut self, at: usize, header: &Header, now: Cycle) {
        let running = &self.parts[at];
        let gone_on = running.part.group && !running.is_news(header.run);
        let behind = running.part.last_run > 0 && running.has_met(header.run.wrapping_sub(1));
        if running.run == header.run && (running.state == PartState::Met || gone_on) {
            self.repeat(at, now);
        } else if behind && running.asked < running.part.asks {
            // It was not told of the run before, which its engine keeps.
            self.parts[at].asked += 1;
            self.ask_for_answer(at, now);
        } else {
            // The command itself was lost.
            self.learn(at, header);
            self.begin(at, header.run, now);
        }
    }

    /// A multicast is acknowledged where it asks for that, and kept once.
    pub(super) fn take_multicast(&mut self, packet: Packet, now: Cycle) {
        let header = packet.header;
        let news = self.casts.get(&header.cc_id).is_none_or(|last| header.run.wrapping_sub(*last) as i32 > 0);
        if !news && header.posted {
            return self.refuse(Status::Duplicate);
        }
        if !header.posted {
            let mut answer = Header { message: Message::Contribution, requester: self.device, tag: 0, ..header };
            (answer.device, answer.offset) = (header.requester, reply_offset(&header));
            self.log.step(now, StepKind::Repeated, &answer);
            self.outbox.push_back(Packet::bare(answer));
        }
        if news {
            self.casts.insert(header.cc_id, header.run);
            self.mail.push((now, packet));
        }
    }
}
