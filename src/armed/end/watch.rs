//! What the watchdog asks of an end point: how far the processes of a job have come, and whether they wait for a time that will come.

use super::super::leaf::Leaf;
use super::super::root::RootRound;
use super::super::soft::Soft;
use super::End;
use watershed_kernel::{Cycle, Wake};

impl End {
    /// How far the processes of a job have come: changes with every round, attempt and result. `None` if all are over, or
    /// there is none, or the end point is dead for good.
    pub fn advanced(&self, job: u16, now: Cycle) -> Option<u64> {
        if self.dead_for_good(now).is_some() {
            return None;
        }
        let attempts = |rounds: &[RootRound]| rounds.iter().map(|round| 1 + u64::from(round.attempts)).sum::<u64>();
        let roots = self.roots.iter().filter(|root| root.job().number == job && !root.is_over());
        let leaves = self.leaves.iter().filter(|leaf| leaf.job().number == job && !leaf.is_over());
        let softs = self.softs.iter().filter(|soft| soft.job().number == job && !soft.is_over() && !soft.is_dormant());
        let clients = self.clients.iter().filter(|client| client.job().number == job && !client.is_over());
        let roots = roots.map(|root| attempts(root.all_rounds()));
        let leaves = leaves.map(|leaf| 2 * leaf.results().len() as u64 + u64::from(leaf.seqno().is_some()));
        let softs = softs.map(|soft| soft.results().len() as u64);
        let clients = clients.map(|client| client.state() as u64 + u64::from(client.requests()));
        let manager = self.manager.iter().filter(|manager| manager.is_busy()).map(|manager| manager.advanced());
        roots.chain(leaves).chain(softs).chain(clients).chain(manager).reduce(|sum, one| sum + one)
    }

    /// Whether a process of a job waits for a time that will come: its start, its compute time, a time-out.
    pub fn expects(&self, job: u16, now: Cycle) -> bool {
        let roots = self.roots.iter().filter(|root| root.job().number == job).map(|root| root.next_wake(now));
        let leaves = self.leaves.iter().filter(|leaf| leaf.job().number == job).map(Leaf::next_wake);
        let softs = self.softs.iter().filter(|soft| soft.job().number == job).map(Soft::next_wake);
        let clients = self.clients.iter().filter(|client| client.job().number == job);
        let clients = clients.map(|client| client.next_wake(now)).chain(self.manager.iter().map(|it| it.next_wake()));
        let mut waits = roots.chain(leaves).chain(softs).chain(clients);
        let will = waits.any(|wake| matches!(wake, Wake::At(cycle) if cycle > now));
        self.dead_for_good(now).is_none() && (self.is_dead(now) || will || self.is_uncalled(job))
    }
}
