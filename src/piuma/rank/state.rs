//! The state of a rank, for checkpoints.

use std::sync::Arc;

use super::Rank;
use crate::host::Host;
use watershed_state::{Loader, Mismatch, Saver, State};

impl Rank {
    /// A member of a collective in software, before anything of it has happened.
    pub(super) fn host_of(&self, index: u32) -> Host {
        let software = &self.plan.software[index as usize];
        Host::new(Arc::clone(&software.job), software.member, Vec::new())
    }
}

impl State for Rank {
    fn save(&self, to: &mut Saver) {
        let Rank {
            plan: _,
            number: _,
            waits,
            records,
            left,
            streams,
            timers,
            todo,
            counts,
            landings,
            open,
            port,
            hosts,
            arriving,
            write_last_q,
            calls,
            outcomes,
            wrong,
            begun,
            end,
        } = self;
        to.begin("Rank");
        to.values((waits, records, left, streams, timers, todo, counts, landings, open));
        to.values((port, arriving, write_last_q, calls, outcomes, wrong, begun, end));
        to.value(&hosts.keys().copied().collect::<Vec<_>>());
        to.each(hosts.values());
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Mismatch> {
        from.begin("Rank")?;
        (
            self.waits,
            self.records,
            self.left,
            self.streams,
            self.timers,
            self.todo,
            self.counts,
            self.landings,
            self.open,
        ) = from.value()?;
        (self.port, self.arriving, self.write_last_q, self.calls, self.outcomes, self.wrong, self.begun, self.end) =
            from.value()?;
        let indices: Vec<u32> = from.value()?;
        if indices.iter().any(|&index| index as usize >= self.plan.software.len()) {
            return Err(from.wrong("a collective in software that there is not"));
        }
        self.hosts = indices.into_iter().map(|index| (index, self.host_of(index))).collect();
        from.each(self.hosts.values_mut())
    }
}
