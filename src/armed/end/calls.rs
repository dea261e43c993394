//! Calls of rounds: what goes on at an end point between its processes and an application that contributes when it likes
//! ([`Compute::Called`](super::super::Compute::Called)).

use super::super::job::Job;
use super::super::root::RoundEnd;
use super::End;
use std::ops::Range;
use watershed_arith::Quad;
use watershed_kernel::Cycle;

/// Flows of a job: its reduction ids.
const MOST_FLOWS: usize = 8;

impl End {
    /// Rounds of a job are called, all below this one: its processes here may contribute to them.
    pub fn call(&mut self, job: u16, rounds: u32, now: Cycle) {
        let roots = self.roots.iter_mut().filter(|root| root.job().number == job);
        roots.for_each(|root| root.call(now, rounds));
        let leaves = self.leaves.iter_mut().filter(|leaf| leaf.job().number == job);
        leaves.for_each(|leaf| leaf.call(now, rounds));
    }

    /// What a process of a flow of a job has of a data round: the root from when it sends it.
    fn result(&self, job: u16, round: u32) -> Option<Quad> {
        let mine = |of: &Job, flow: u8| of.number == job && round % u32::from(of.flows) == u32::from(flow);
        let place = |of: &Job| usize::from(of.opening) + (round / u32::from(of.flows)) as usize;
        if let Some(root) = self.roots.iter().find(|root| mine(root.job(), root.flow())) {
            let of = root.rounds().get(place(root.job()))?;
            return matches!(of.state, RoundEnd::Complete | RoundEnd::AfterRetry).then_some(of.quad);
        }
        let leaf = self.leaves.iter().find(|leaf| mine(leaf.job(), leaf.flow()))?;
        leaf.results().get(place(leaf.job())).map(|of| of.quad)
    }

    /// Whether it has the results of these data rounds of a job.
    pub fn has(&self, job: u16, rounds: Range<u32>) -> bool {
        // The last ones of each flow.
        let last = rounds.clone().rev().take(MOST_FLOWS);
        last.into_iter().all(|round| self.result(job, round).is_some())
    }

    /// The lanes of the results of data rounds of a job, as far as they are there.
    pub fn lanes(&self, job: u16, rounds: Range<u32>) -> Vec<u64> {
        rounds.filter_map(|round| self.result(job, round)).flat_map(|quad| quad.lanes).collect()
    }

    /// Whether a process of a job waits for a call: who will call is at work on something else.
    pub(super) fn is_uncalled(&self, job: u16) -> bool {
        let roots = self.roots.iter().any(|root| root.job().number == job && root.is_uncalled());
        roots || self.leaves.iter().any(|leaf| leaf.job().number == job && leaf.is_uncalled())
    }
}
