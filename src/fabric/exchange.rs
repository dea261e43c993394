//! What passes between processes that evaluate a system together, each a share of its [parts](super::Parts).
//!
//! ```text
//!            step                 step                        what crosses to parts of another rank, and the status of
//!   rank 0 ├────────┼─ exchange ─┼────────┼─ exchange ─┼─ …   each rank: what is under way, and the next cycle in
//!   rank 1 ├────────┼────────────┼────────┼────────────┼─ …   which something happens there
//! ```
//!
//! Every rank builds the whole system and runs the same program of steps and looks; it evaluates its own parts only. After each
//! step (a cycle, or a window as long as the shortest link between parts) all exchange once. A look at blocks of others,
//! or at counters of others' links, first brings these up to date on every rank; see
//! [`Simulation::refresh`](super::Simulation::refresh). Ranks look at the same moments, because they
//! decide by what all know.

use super::wires::Crossing;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use watershed_kernel::Cycle;

/// The other ranks: processes that run the same scenario, on this machine or on others. All of them make the same calls in the same order.
///
/// MPI is one, in the program's feature `mpi`; [`together`] joins threads of one process.
pub trait Exchange: Send + Sync {
    /// The number of this rank.
    fn rank(&self) -> usize;
    /// How many ranks there are.
    fn ranks(&self) -> usize;
    /// Gives each rank what is for it, and takes what each has for this one, in the order of ranks.
    ///
    /// # Panics
    /// A rank has died.
    fn all_to_all(&self, out: Vec<Vec<u8>>) -> Vec<Vec<u8>>;
    /// Gives all ranks the same, and takes what each gives.
    ///
    /// # Panics
    /// A rank has died.
    fn all_gather(&self, mine: Vec<u8>) -> Vec<Vec<u8>>;
}

/// The status of a rank after a step, which all ranks know: sums are over its parts and what it sent to others in the step.
#[derive(Clone, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub(super) struct RankStatus {
    /// The cycle simulated last, which is the same on all.
    pub now: Cycle,
    /// The next cycle in which something happens.
    pub next: Option<Cycle>,
    pub alive_until: Cycle,
    /// Whether a node was awake in the cycle simulated last.
    pub awake: bool,
    /// Flits on links.
    pub arrivals: usize,
    pub live: usize,
    pub moves: u64,
    pub served: [u64; 2],
    pub completions: u64,
    pub completed: Cycle,
    pub fault: Option<String>,
    /// Whether the rank wants to see how far the run is, for which all synchronise.
    pub wants_sync: bool,
}

impl RankStatus {
    /// Something crosses to another rank, which has not counted it yet.
    pub fn sends(&mut self, crossing: &Crossing) {
        let at = crossing.at();
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
        if let Crossing::Flit(..) = crossing {
            (self.arrivals, self.live) = (self.arrivals + 1, self.live + 1);
        }
    }

    /// Two shares of a system together.
    pub fn merged_with(self, other: RankStatus) -> RankStatus {
        RankStatus {
            now: self.now,
            next: self.next.into_iter().chain(other.next).min(),
            alive_until: self.alive_until.max(other.alive_until),
            awake: self.awake || other.awake,
            arrivals: self.arrivals + other.arrivals,
            live: self.live + other.live,
            moves: self.moves + other.moves,
            served: [self.served[0] + other.served[0], self.served[1] + other.served[1]],
            completions: self.completions + other.completions,
            completed: self.completed.max(other.completed),
            fault: self.fault.or(other.fault),
            wants_sync: self.wants_sync || other.wants_sync,
        }
    }
}

/// How much of what other ranks evaluate is up to date here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SyncLevel {
    /// Only the status of the ranks.
    RankStatus,
    /// Engines and end points.
    Blocks,
    /// All.
    Whole,
}

/// The ranks that evaluate a system together, as one of them sees them.
pub(super) struct Peers {
    pub exchange: Arc<dyn Exchange>,
    /// The first part of each rank, and the number of parts.
    pub firsts: Vec<usize>,
    /// Of all ranks, after the last step.
    pub total: RankStatus,
    /// The first cycle in which the driver has given a node something to do since then.
    pub driver: Cycle,
    /// How much of the others' state is up to date here.
    pub synced: SyncLevel,
    /// Whether this rank wants to see how far the run is, for which all synchronise.
    pub wants_sync: bool,
}

impl Peers {
    /// Divides this number of parts among the ranks.
    pub fn new(exchange: Arc<dyn Exchange>, parts: usize, total: RankStatus) -> Peers {
        let ranks = exchange.ranks();
        let firsts = (0..=ranks).map(|rank| rank * parts / ranks).collect();
        Peers { exchange, firsts, total, driver: Cycle::MAX, synced: SyncLevel::Whole, wants_sync: false }
    }

    /// The parts of a rank.
    pub fn parts_of(&self, rank: usize) -> Range<usize> {
        self.firsts[rank]..self.firsts[rank + 1]
    }

    /// The parts that are evaluated here.
    pub fn home(&self) -> Range<usize> {
        self.parts_of(self.exchange.rank())
    }

    /// The rank that evaluates a part.
    pub fn rank_of(&self, part: usize) -> usize {
        self.firsts.partition_point(|&first| first <= part) - 1
    }

    /// The other ranks.
    pub fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let own = self.exchange.rank();
        (0..self.exchange.ranks()).filter(move |&rank| rank != own)
    }
}

/// The meeting point of ranks that are threads of one process.
struct Rendezvous {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// What each rank has for each one; taken out by the one it is for.
    given: Vec<Option<Vec<Vec<u8>>>>,
    /// How many have taken theirs.
    taken: usize,
    /// A rank that has ended before the others.
    gone: Option<usize>,
}

/// One rank of a [`Rendezvous`].
struct ThreadRank {
    rank: usize,
    ranks: usize,
    meeting: Arc<Rendezvous>,
}

/// Ranks that are threads of this process: the exchange for each of them.
///
/// ```
/// let ranks = watershed_fabric::exchange::together(2);
/// let other = ranks[1].clone();
/// let thread = std::thread::spawn(move || other.all_to_all(vec![b"to 0".to_vec(), b"to 1".to_vec()]));
/// assert_eq!(ranks[0].all_to_all(vec![b"own".to_vec(), b"hello".to_vec()]), [b"own".to_vec(), b"to 0".to_vec()]);
/// assert_eq!(thread.join().unwrap(), [b"hello".to_vec(), b"to 1".to_vec()]);
/// ```
pub fn together(ranks: usize) -> Vec<Arc<dyn Exchange>> {
    let state = State { given: vec![None; ranks], taken: 0, gone: None };
    let meeting = Arc::new(Rendezvous { state: Mutex::new(state), changed: Condvar::new() });
    let rank_handle = |rank| Arc::new(ThreadRank { rank, ranks, meeting: Arc::clone(&meeting) }) as Arc<dyn Exchange>;
    (0..ranks).map(rank_handle).collect()
}

impl Exchange for ThreadRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn all_to_all(&self, out: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let Rendezvous { state, changed } = &*self.meeting;
        let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
        let all_here = |state: &State| state.given.iter().all(Option::is_some);
        let wait = |mut state: std::sync::MutexGuard<'_, State>, until: &dyn Fn(&State) -> bool| {
            while !until(&state) {
                if let Some(gone) = state.gone {
                    drop(state);
                    panic!("rank {gone} of {} has ended", self.ranks);
                }
                state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            drop(state);
        };
        // Who comes early waits until all have taken what was given before.
        wait(lock(), &|state| state.given[self.rank].is_none());
        lock().given[self.rank] = Some(out);
        changed.notify_all();
        wait(lock(), &all_here);
        let mut state = lock();
        let own = self.rank;
        let take = |given: &mut Option<Vec<Vec<u8>>>| given.as_mut().map(|of| std::mem::take(&mut of[own]));
        let taken = state.given.iter_mut().filter_map(take).collect();
        state.taken += 1;
        if state.taken == self.ranks {
            state.taken = 0;
            state.given.fill(None);
        }
        drop(state);
        changed.notify_all();
        taken
    }

    fn all_gather(&self, mine: Vec<u8>) -> Vec<Vec<u8>> {
        self.all_to_all(vec![mine; self.ranks])
    }
}

/// A rank that ends while others go on is missed by them.
impl Drop for ThreadRank {
    fn drop(&mut self) {
        self.meeting.state.lock().unwrap_or_else(PoisonError::into_inner).gone.get_or_insert(self.rank);
        self.meeting.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rank_takes_what_every_rank_gives_it() {
        let ranks = together(3);
        std::thread::scope(|scope| {
            for exchange in ranks {
                scope.spawn(move || {
                    for round in 0..200_u8 {
                        let own = exchange.rank() as u8;
                        let taken = exchange.all_to_all((0..3).map(|to| vec![round, own, to]).collect());
                        assert_eq!(taken, [0, 1, 2].map(|from| vec![round, from, own]));
                        assert_eq!(exchange.all_gather(vec![own]), [[0], [1], [2]]);
                    }
                });
            }
        });
    }

    #[test]
    fn waiting_for_a_rank_that_has_ended_panics() {
        let mut ranks = together(2);
        drop(ranks.pop());
        let first = ranks.remove(0);
        let told = std::thread::spawn(move || first.all_gather(Vec::new())).join().unwrap_err();
        assert_eq!(told.downcast_ref::<String>().map(String::as_str), Some("rank 1 of 2 has ended"));
    }

    #[test]
    fn what_crosses_counts_until_its_rank_has_it() {
        use crate::wires::{CreditReturn, Destination};
        let credit = |at| Crossing::Credit(at, CreditReturn { queue: 0, to: Destination::new(1, 0) });
        let mut status = RankStatus::default();
        // A credit wakes its rank, too, but is no flit on a link.
        status.sends(&credit(7));
        assert_eq!((status.next, status.arrivals, status.live), (Some(7), 0, 0));
        status.sends(&credit(9));
        assert_eq!(status.next, Some(7));
        status.sends(&credit(5));
        assert_eq!((status.next, status.arrivals, status.live), (Some(5), 0, 0));
    }

    #[test]
    fn shares_of_a_system_add_up() {
        let one =
            RankStatus { next: Some(9), arrivals: 2, moves: 5, completed: 7, alive_until: 8, ..RankStatus::default() };
        let other =
            RankStatus { next: Some(4), live: 3, moves: 1, completed: 3, wants_sync: true, ..RankStatus::default() };
        let sum = one.merged_with(other);
        assert_eq!((sum.next, sum.arrivals, sum.live, sum.moves), (Some(4), 2, 3, 6));
        assert_eq!((sum.completed, sum.alive_until, sum.wants_sync), (7, 8, true));
        let of = Peers::new(together(3).remove(1), 7, RankStatus::default());
        assert_eq!((of.parts_of(0), of.home(), of.parts_of(2)), (0..2, 2..4, 4..7));
        assert_eq!([0, 1, 2, 3, 4, 6].map(|part| of.rank_of(part)), [0, 0, 1, 1, 2, 2]);
    }
}
