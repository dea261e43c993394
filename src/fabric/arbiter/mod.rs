//! Arbiters: one file a policy (requirement K-ARB-1).
//!
//! An arbiter picks one of several requesters, then remembers the pick. All arbiters of one kind of a system live in
//! one [`Bank`]: the state of arbiter `a` is a few bits in an array, not an object. A pick alone changes nothing;
//! only [`Bank::granted`] does, so an idle arbiter costs nothing and evaluating a block twice is harmless.
//!
//! | policy | pick | state of one arbiter over n requesters |
//! |---|---|---|
//! | [`Policy::RoundRobin`] | first requester at or after the cursor; the cursor moves behind the winner | 16 bits |
//! | [`Policy::Matrix`] | the requester that was served least recently | n(n-1)/2 bits (n words here) |
//! | [`Policy::Fixed`] | the lowest number: starves the others when it never pauses | none |
//!
//! ```
//! use watershed_fabric::PortSet;
//! use watershed_fabric::arbiter::{Bank, Policy};
//!
//! let mut bank = Bank::<1>::new(Policy::RoundRobin, 1, 8); // one arbiter over eight requesters
//! let requests: PortSet<1> = [1, 4, 6].into_iter().collect();
//! let served: Vec<u16> = (0..4)
//!     .map(|_| {
//!         let winner = bank.pick(0, &requests).expect("there are requests"); // a cycle
//!         bank.granted(0, winner);
//!         winner
//!     })
//!     .collect();
//! assert_eq!(served, [1, 4, 6, 1]);
//! ```

mod fixed;
mod matrix;
mod round_robin;

use super::PortSet;
pub use matrix::Matrix;
pub use round_robin::RoundRobin;

/// Which requester an arbiter prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, watershed_state::Saved)]
pub enum Policy {
    /// In turn.
    #[default]
    RoundRobin,
    /// Least recently served first.
    Matrix,
    /// Lowest number first.
    Fixed,
}

/// All arbiters of one kind in a system, with one policy.
#[derive(Clone, Debug, watershed_state::Saved)]
pub struct Bank<const W: usize> {
    policy: Policy,
    /// Empty with another policy than [`Policy::RoundRobin`].
    cursors: RoundRobin,
    /// Empty with another policy than [`Policy::Matrix`].
    matrices: Matrix<W>,
}

impl<const W: usize> Bank<W> {
    /// `count` arbiters over requesters `0..requesters`.
    pub fn new(policy: Policy, count: usize, requesters: usize) -> Bank<W> {
        assert!(requesters <= PortSet::<W>::CAPACITY, "{requesters} requesters need wider port sets");
        let of = |kind: Policy| if kind == policy { count } else { 0 };
        Bank {
            policy,
            cursors: RoundRobin::new(of(Policy::RoundRobin)),
            matrices: Matrix::new(of(Policy::Matrix), requesters),
        }
    }

    /// The requester that arbiter `arbiter` would serve.
    #[inline(always)]
    pub fn pick(&self, arbiter: usize, requests: &PortSet<W>) -> Option<u16> {
        match self.policy {
            Policy::RoundRobin => self.cursors.pick(arbiter, requests),
            Policy::Matrix => self.matrices.pick(arbiter, requests),
            Policy::Fixed => fixed::pick(requests),
        }
    }

    /// Tells the arbiter that `winner` was served.
    #[inline(always)]
    pub fn granted(&mut self, arbiter: usize, winner: u16) {
        match self.policy {
            Policy::RoundRobin => self.cursors.granted(arbiter, winner),
            Policy::Matrix => self.matrices.granted(arbiter, winner),
            Policy::Fixed => {}
        }
    }

    /// As [`Bank::pick`] of a bank that is known to be round-robin.
    #[inline(always)]
    pub fn pick_in_turn(&self, arbiter: usize, requests: &PortSet<W>) -> Option<u16> {
        debug_assert_eq!(self.policy, Policy::RoundRobin);
        self.cursors.pick(arbiter, requests)
    }

    /// As [`Bank::granted`] of a bank that is known to be round-robin.
    #[inline(always)]
    pub fn granted_in_turn(&mut self, arbiter: usize, winner: u16) {
        debug_assert_eq!(self.policy, Policy::RoundRobin);
        self.cursors.granted(arbiter, winner);
    }

    /// Tells the arbiter that `port` was served in the same cycle as the winner, over outputs the winner did not want.
    /// A matrix remembers it; a round-robin cursor stays behind the winner alone, so that nobody starves.
    #[inline]
    pub fn also_granted(&mut self, arbiter: usize, port: u16) {
        if self.policy == Policy::Matrix {
            self.matrices.granted(arbiter, port);
        }
    }

    /// Bytes of state per arbiter.
    pub fn bytes_each(&self) -> usize {
        match self.policy {
            Policy::RoundRobin => 2,
            Policy::Matrix => self.matrices.bytes_each(),
            Policy::Fixed => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serve<const W: usize>(bank: &mut Bank<W>, requests: &[u16], times: usize) -> Vec<u16> {
        let set: PortSet<W> = requests.iter().copied().collect();
        (0..times)
            .map(|_| {
                let winner = bank.pick(0, &set).unwrap();
                bank.granted(0, winner);
                winner
            })
            .collect()
    }

    #[test]
    fn round_robin_serves_in_turn() {
        let mut bank = Bank::<2>::new(Policy::RoundRobin, 1, 100);
        assert_eq!(serve(&mut bank, &[3, 70, 99], 7), [3, 70, 99, 3, 70, 99, 3]);
    }

    #[test]
    fn matrix_serves_the_least_recently_served() {
        let mut bank = Bank::<2>::new(Policy::Matrix, 1, 100);
        assert_eq!(serve(&mut bank, &[3, 70, 99], 4), [3, 70, 99, 3]);
        // 70 was served longest ago among these two; round-robin would agree, but after a solo run of 70 it is last.
        assert_eq!(serve(&mut bank, &[70], 1), [70]);
        assert_eq!(serve(&mut bank, &[3, 70, 99], 3), [99, 3, 70]);
    }

    #[test]
    fn fixed_serves_the_lowest_for_ever() {
        let mut bank = Bank::<1>::new(Policy::Fixed, 1, 8);
        assert_eq!(serve(&mut bank, &[2, 5], 3), [2, 2, 2]);
    }

    #[test]
    fn arbiters_of_a_bank_are_independent() {
        for policy in [Policy::RoundRobin, Policy::Matrix] {
            let mut bank = Bank::<1>::new(policy, 3, 4);
            let both: PortSet<1> = [0, 1].into_iter().collect();
            bank.granted(1, 0);
            assert_eq!(bank.pick(0, &both), Some(0));
            assert_eq!(bank.pick(1, &both), Some(1));
            assert_eq!(bank.pick(2, &PortSet::EMPTY), None);
        }
    }

    #[test]
    fn a_saturated_fair_arbiter_serves_every_requester_equally() {
        for policy in [Policy::RoundRobin, Policy::Matrix] {
            let mut bank = Bank::<1>::new(policy, 1, 11);
            let mut served = [0; 11];
            for winner in serve(&mut bank, &[0, 1, 4, 7, 10], 500) {
                served[usize::from(winner)] += 1;
            }
            assert_eq!(served.iter().filter(|&&n| n == 100).count(), 5, "{policy:?} {served:?}");
        }
    }
}
