//! Inter-group barriers: the members of one group go on when all of the others have arrived (B-CE-9, paragraph 135).
//!
//! ```text
//!   group 0: context c     ─ all have arrived ─┐   ┌─▶ satisfied to group 1 and 2 …
//!   group 1: context c + 1 ─ all have arrived ─┼───┤
//!   group 2: context c + 2 ─ all have arrived ─┘   └─▶ a group goes on when all others are there, itself or not
//! ```
//!
//! Each group is a context with its own tree; the contexts' CC_IDs follow each other and they have one master engine
//! *\[chosen\]*. The master notes the run of each complete group. Satisfied goes down to a group as soon as it was
//! commanded and all other groups are complete in its run. Engines below pass satisfied on whether they have sent their
//! own partial response or not. A node that has not reached its barrier yet keeps it and does not wait there.
//!
//! The source of a group is told by a partial (barrier met) that its group is complete; when it has that of every group it
//! may begin the next run. A group that is complete without some of its participants makes the others go on with an error;
//! its own members are told of the others' failures only. A group may be runs ahead of another one: the master keeps which of
//! its last eight runs were complete, and a run that it did not see complete is a failure *\[chosen\]*.

use super::{Ce, CeCx, Outgoing, Target};
use crate::context::State;
use crate::packet::{Message, NO_DEVICE, Status};

impl Ce {
    /// All of a group have arrived at the master.
    pub(super) fn arrive(&mut self, slot: u16, cx: &mut CeCx<'_>) {
        let me = self.me;
        let context = self.at(slot);
        let Some(groups) = context.stored.groups else { return };
        let run = context.like.run;
        let since = context.arrived.map_or(u32::MAX, |arrived| run.wrapping_sub(arrived));
        let before = context.complete.checked_shl(since).unwrap_or(0);
        context.complete = before & !1 | u8::from(context.error == Status::Ok);
        context.arrived = Some(run);
        context.state = if context.release.is_some() { State::Done } else { State::Waiting };
        let packet = context.response(Message::Partial, me);
        cx.out.push(Outgoing { packet, target: Target::Header });
        for cc_id in groups.contexts() {
            if let Some(slot) = self.slot(cc_id) {
                self.release(slot, cx);
            }
        }
    }

    /// Lets a group go on if all others have arrived.
    pub(super) fn release(&mut self, slot: u16, cx: &mut CeCx<'_>) {
        let me = self.me;
        let context = self.at(slot);
        let Some(groups) = context.stored.groups else { return };
        // An initialisation with a run is its command too.
        let begun = context.commanded || context.like.message == Message::Initialisation && context.like.run != 0;
        let tracks = matches!(context.state, State::Active | State::Waiting);
        if !context.is_master() || !begun || !tracks || context.release.is_some() {
            return;
        }
        let (own, run) = (context.cc_id, context.like.run);
        let mut status = Status::Ok;
        for other in groups.contexts().filter(|&cc_id| cc_id != own) {
            let Some(other) = self.find(other) else { return };
            let Some(ahead) = other.arrived.map(|arrived| arrived.wrapping_sub(run) as i32).filter(|&ahead| ahead >= 0)
            else {
                return;
            };
            // It may be a run further, and this one have failed, or have never begun there.
            if other.complete.checked_shr(ahead as u32).unwrap_or(0) & 1 == 0 {
                status = if ahead == 0 && other.error != Status::Ok { other.error } else { Status::TimedOut };
            }
        }
        let context = self.at(slot);
        context.release = Some(status);
        if context.state == State::Waiting {
            context.state = State::Done;
        }
        let mut packet = context.response(Message::Satisfied, me);
        packet.header.p_count = context.stored.p_count;
        self.distribute(slot, packet, NO_DEVICE, false, cx);
    }
}
