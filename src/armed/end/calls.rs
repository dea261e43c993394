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
        self.rest_until = 0;
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

#[cfg(test)]
mod tests {
    use crate::station::Merges;
    use crate::{Address, Compute, Frame, Header, Job, Keys, Leaf, Portals, Root, RootState, Tokens};
    use std::sync::Arc;
    use watershed_arith::Quad;
    use watershed_arith::quad::Opcode;
    use watershed_kernel::Wake;

    /// Two rounds of integers over end points 0, 1 and 2.
    fn job() -> Arc<Job> {
        let op = Opcode::from_number(0x14).unwrap();
        let quads = [1, 40, 2, 5, 50, 7].map(|word| Quad::of([word, 0, 0, 0]));
        let job = Job::of(op, 3, [0, 1, 2].into(), Keys { vni: 1, cookie: 77 }, quads.into());
        Arc::new(Job { compute: Compute::Called, rounds: 2, ..job })
    }

    fn frame(header: Header) -> Frame {
        Frame {
            address: Address { multicast_id: 3, reduction_id: 0 },
            source: 0,
            vni: 1,
            portals: Portals::default(),
            rank: 0,
            header: Header { cookie: 77, ..header },
            lanes: [43, 0, 0, 0],
        }
    }

    #[test]
    fn a_leaf_contributes_in_the_cycle_of_the_call() {
        let mut leaf = Leaf::new(job(), 0, 1, 1);
        let (mut merges, mut out) = (Merges::new(1, Tokens::new(3)), Vec::new());
        leaf.receive(10, 0, &frame(Header { arm: true, ..Header::default() }), 0);
        leaf.act(59, false, &mut merges, &mut out);
        assert!(out.is_empty() && leaf.is_uncalled() && leaf.next_wake() == Wake::OnInput);
        leaf.call(60, 1);
        leaf.act(60, false, &mut merges, &mut out);
        assert_eq!((out.len(), out[0].0.lanes[0], leaf.is_uncalled()), (1, 40, false));
        // The result arms the next round, which nobody has called.
        leaf.receive(90, 0, &frame(Header { arm: true, seqno: 1, resno: 0, ..Header::default() }), 0);
        leaf.act(98, false, &mut merges, &mut out);
        assert_eq!((out.len(), leaf.is_uncalled(), leaf.results().len()), (1, true, 1));
        leaf.call(99, 2);
        leaf.act(99, false, &mut merges, &mut out);
        assert_eq!((out.len(), out[1].0.lanes[0]), (2, 50));
    }

    #[test]
    fn a_round_called_ahead_waits_for_nothing() {
        let mut leaf = Leaf::new(job(), 0, 1, 1);
        let (mut merges, mut out) = (Merges::new(1, Tokens::new(3)), Vec::new());
        leaf.call(5, 2);
        leaf.receive(10, 0, &frame(Header { arm: true, ..Header::default() }), 0);
        leaf.act(10, false, &mut merges, &mut out);
        assert_eq!((out.len(), leaf.is_uncalled()), (1, false));
    }

    #[test]
    fn a_root_completes_a_round_only_when_it_is_called() {
        let mut root = Root::new(job(), 0, 0);
        let (mut merges, mut out) = (Merges::new(0, Tokens::new(3)), Vec::new());
        root.act(0, false, &mut merges, &mut out);
        let arm = out.remove(0).0;
        let partial = Frame { source: 1, rank: 1, header: Header { arm: false, count: 2, ..arm.header }, ..arm };
        root.receive(0, &partial.with_quad(Quad::of([42, 0, 0, 0])), 0);
        root.act(69, false, &mut merges, &mut out);
        assert!(out.is_empty() && root.is_uncalled() && root.next_wake(69) == Wake::OnInput);
        root.call(70, 1);
        root.act(70, false, &mut merges, &mut out);
        assert_eq!((out[0].0.lanes[0], out[0].0.header.arm, root.rounds()[0].own_ready), (43, true, 70));
        assert!(root.state() == RootState::Gathering && root.is_uncalled(), "the next round waits for its call");
    }
}
