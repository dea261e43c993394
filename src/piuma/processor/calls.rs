//! Calls of collectives by the programs of a core.

use super::super::core::Core;
use super::super::job::{Job, VectorPlace};
use super::super::program::{Intrinsic, SCRATCHPAD};
use super::Processor;
use super::call::{Call, ReadyCall};
use std::sync::Arc;
use watershed_fabric::Io;
use watershed_kernel::Cycle;

impl Processor {
    pub(super) fn call(
        &mut self,
        intrinsic: Intrinsic,
        id: u64,
        from: u64,
        to: u64,
        elements: u64,
        now: Cycle,
    ) -> Result<usize, String> {
        let name = intrinsic.name();
        let role = self.roles.get(id as usize).copied().flatten();
        let role =
            role.ok_or_else(|| format!("this core has no part in a collective with id {id} that programs call"))?;
        if role.intrinsic != intrinsic {
            return Err(format!("collective id {id} is a {}, not a {name}", role.intrinsic.name()));
        }
        let elements = if intrinsic == Intrinsic::Barrier { 0 } else { elements };
        if intrinsic != Intrinsic::Barrier && elements == 0 {
            return Err(format!("a {name} of no elements"));
        }
        let words = elements.div_ceil(role.lanes.0);
        let ranges = [(from, role.kind.sends), (to, role.kind.receives)];
        for (address, _) in ranges.into_iter().filter(|(_, used)| *used && words > 0) {
            let fits = address % 8 == 0
                && address < SCRATCHPAD
                && (address / 8).checked_add(words).is_some_and(|end| end <= self.cfg.local_words);
            if !fits {
                return Err(format!("{words} words at {address:#x} are not in local memory"));
            }
        }
        let call = Call { id: id as u16, elements, issued: now, job: None, input: Arc::from([]), end: None, from, to };
        self.calls.list.push(call);
        Ok(self.calls.list.len() - 1)
    }

    /// Starts the oldest call of each id that has none under way. Says whether one started.
    pub(super) fn begin(&mut self, core: &mut Core, now: Cycle) -> bool {
        let mut started = false;
        for at in 0..self.calls.list.len() {
            let Call { id, elements, from, to, issued, .. } = self.calls.list[at];
            let busy = self.calls.list[..at].iter().any(|call| call.id == id && call.end.is_none());
            if self.calls.list[at].job.is_some() || busy || issued + self.cfg.xbar > now {
                continue;
            }
            let Some(role) = self.roles[usize::from(id)] else { continue };
            let stored = elements.div_ceil(role.lanes.0);
            let last_lanes = elements % role.lanes.0;
            let last = if last_lanes == 0 { !0 } else { (1 << (last_lanes * (64 / role.lanes.0))) - 1 };
            let words = elements.div_ceil(role.lanes.1).max(1);
            let mut job = Job::new(id, role.kind, words, Arc::from([]), 0, now + 1);
            if stored > 0 {
                job.set_vectors(VectorPlace { from: (from / 8) as usize, to: (to / 8) as usize, words: stored, last });
            }
            if let Some(conversion) = role.conversion {
                job.convert(conversion);
            }
            if let Some(end) = role.scan {
                job.scan(end);
            }
            if self.calls.keeps_times {
                job.keep_times();
            }
            let number = core.jobs().len();
            if role.claims {
                job.claim(now + 1);
                self.calls.ready.push(ReadyCall { id, job: number, cycle: now + 1 });
            }
            self.calls.list[at].job = Some(number);
            core.call(job);
            started = true;
        }
        started
    }

    /// Notices calls that are complete.
    pub(super) fn complete(&mut self, core: &Core, io: &mut Io<'_>) {
        for call in self.calls.list.iter_mut().filter(|call| call.end.is_none()) {
            let Some(job) = call.job.map(|job| &core.jobs()[job]) else { continue };
            let Some(end) = job.end() else { continue };
            call.end = Some(end);
            call.input = job.words_from_memory().into();
            io.complete();
        }
    }
}
