//! What the watchdog asks of an end point: how far the processes of a job have come, and whether they wait for a time that will come.

use super::super::leaf::Leaf;
use super::super::root::RootRound;
use super::super::soft::Soft;
use super::End;
use watershed_kernel::{Cycle, Wake};

/// When an end point wakes at the latest: in 4096 cycles, or an eighth of the cycles so far. An alarm cannot be taken back: after the
/// last result a run goes on until the last one has rung, and with a wave, or without skipping, it walks there cycle by cycle. These
/// cycles are the same whether it is asked once or in every cycle until then.
pub(super) fn next_look(now: Cycle) -> Cycle {
    let step = 4096.max((now / 8 + 1).next_power_of_two() / 2);
    (now / step + 1) * step
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_points_look_in_the_same_cycles_however_often_they_are_asked() {
        for start in [0, 5, 4095, 4096, 65_535, 65_536, 700_000] {
            let mut once = vec![start];
            while once[once.len() - 1] < start + 200_000 {
                once.push(next_look(once[once.len() - 1]));
            }
            let mut every: Vec<Cycle> = (start..once[once.len() - 1]).map(next_look).collect();
            every.dedup();
            assert_eq!(once[1..], every, "from cycle {start}");
            assert!(once.windows(2).all(|two| two[0] < two[1] && two[1] - two[0] <= 4096.max(two[0] / 8)), "{once:?}");
        }
    }
}
