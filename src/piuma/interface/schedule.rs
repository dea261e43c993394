//! The schedules of hosts that reduce in software: senders, receivers and words of every round (requirements P-HOST-1
//! to P-HOST-3; "Accelerating Allreduce …", section "Allreduce").
//!
//! n ranks, m words, p the largest power of two up to n, r = n - p.
//!
//! | algorithm | rounds | words a rank sends | words a rank receives |
//! |---|---|---|---|
//! | recursive doubling | log2 p, + 2 if r > 0 | m log2 p | as many |
//! | ring | 2 (n - 1) | 2 m (n - 1) / n | as many |
//! | Rabenseifner | 2 log2 p, + 2 if r > 0 | 2 m (p - 1) / p | as many |
//! | binary tree | 2 (c + 1) at a rank with c children, 2 c at the root | m (c + 1); m c at the root | as many |
//! | send loop (multicast) | n - 1 at the source, 1 elsewhere | m (n - 1) at the source | m elsewhere |
//! | ring reduce-scatter, ring all-gather | n - 1 | m (n - 1) / n | as many |
//! | pairwise all-to-all | n - 1, n if n is even | m (n - 1) / n | as many |
//! | binomial broadcast, binomial reduce | ceil(log2 n) in all | m a child; m to the parent | the same the other way |
//! | dissemination barrier | ceil(log2 n) | 0 | 0 |
//! | linear gather, linear scatter | n - 1 at rank 0, 1 elsewhere | m / n a rank to or from rank 0 | as many |
//!
//! Where n is no power of two, the first 2 r ranks fold in pairs first: the even one gives its vector to its odd
//! neighbour, and gets the result from it in the last round (Thakur, Rabenseifner and Gropp). Vectors are cut at words,
//! segment k of n from word k m / n on. The order of a reduction is fixed: of two ranks that exchange, the lower one's
//! operand is the left one; in a ring the received operand is. So all ranks have the same bits.
//!
//! The binary tree is that of a heap: the children of rank k are 2 k + 1 and 2 k + 2. A level takes two rounds, left children
//! first, then right ones, from the lowest level up; the sum goes back the same way. Whole vectors are sent, and the rank's own
//! operand is the left one.

use std::ops::Range;

/// Most rounds of a job.
pub const MAX_ROUNDS: u32 = 1 << 16;

/// A software algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum Algorithm {
    /// Pairs exchange whole vectors.
    RecursiveDoubling,
    /// Segments go round.
    Ring,
    /// Recursive halving, then recursive doubling.
    Rabenseifner,
    /// Whole vectors climb a binary tree to rank 0, and the result comes back.
    BinaryTree,
    /// Rank 0 sends to all others, one after the other.
    SendLoop,
    /// Segments go round and are reduced: rank k ends up with segment k.
    RingReduceScatter,
    /// Segments go round: every rank ends up with segment k of every rank k.
    RingAllGather,
    /// In round r ranks whose numbers add up to r, modulo n, exchange a segment each: rank k ends up with segment k of all.
    Pairwise,
    /// Rank 0's vector climbs down a binomial tree.
    BinomialBroadcast,
    /// All vectors climb up a binomial tree to rank 0.
    BinomialReduce,
    /// In round r every rank notifies the rank 2^r further on.
    Dissemination,
    /// Every rank k gives its segment k to rank 0.
    LinearGather,
    /// Every rank k gets its segment k from rank 0.
    LinearScatter,
}

/// The use of the words that were received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum Merge {
    /// They take the place of the rank's own.
    Copy,
    /// They are the left operand.
    Left,
    /// They are the right operand.
    Right,
}

/// One side of a round.
#[derive(Clone, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Transfer {
    /// The other rank.
    pub peer: u32,
    /// Words of the vector.
    pub words: Range<u64>,
}

/// A round of one rank. A message belongs to the same round of sender and receiver.
#[derive(Clone, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Round {
    /// What it sends.
    pub send: Option<Transfer>,
    /// What it receives.
    pub receive: Option<Transfer>,
    /// What it does with it.
    pub merge: Merge,
}

impl Round {
    /// Whether the rank has nothing to do.
    pub fn is_idle(&self) -> bool {
        self.send.is_none() && self.receive.is_none()
    }
}

/// An algorithm on this many ranks and words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Schedule {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Ranks, at least 1.
    pub ranks: u32,
    /// Words of the vector.
    pub words: u64,
}

impl Schedule {
    /// The largest power of two up to the number of ranks.
    fn power(&self) -> u32 {
        1 << self.ranks.ilog2()
    }

    fn log(&self) -> u32 {
        self.ranks.ilog2()
    }

    /// Rounds before and after, for numbers of ranks that are no powers of two.
    fn folds(&self) -> bool {
        self.ranks != self.power()
    }

    /// Rounds of the whole algorithm; some ranks are idle in some.
    pub fn rounds(&self) -> u32 {
        let folds = 2 * u32::from(self.folds());
        match self.algorithm {
            Algorithm::RecursiveDoubling => self.log() + folds,
            Algorithm::Rabenseifner => 2 * self.log() + folds,
            Algorithm::Ring => 2 * (self.ranks - 1),
            // Two rounds a level, up and down.
            Algorithm::BinaryTree => 4 * self.log(),
            Algorithm::SendLoop
            | Algorithm::RingReduceScatter
            | Algorithm::RingAllGather
            | Algorithm::LinearGather
            | Algorithm::LinearScatter => self.ranks - 1,
            Algorithm::Pairwise => self.ranks,
            Algorithm::BinomialBroadcast | Algorithm::BinomialReduce | Algorithm::Dissemination => {
                self.ranks.next_power_of_two().ilog2()
            }
        }
    }

    /// The words of segments `from..to` of `parts`.
    fn segments(&self, parts: u32, from: u32, to: u32) -> Range<u64> {
        let at = |k: u32| (u128::from(self.words) * u128::from(k) / u128::from(parts)) as u64;
        at(from)..at(to)
    }

    /// What a rank does in a round.
    pub fn round(&self, rank: u32, number: u32) -> Round {
        if number >= self.rounds() {
            // A rank that is alone has no rounds at all.
            return Round { send: None, receive: None, merge: Merge::Copy };
        }
        match self.algorithm {
            Algorithm::RecursiveDoubling | Algorithm::Rabenseifner => self.folded(rank, number),
            Algorithm::Ring => self.ring(rank, number),
            Algorithm::BinaryTree => self.tree(rank, number),
            Algorithm::SendLoop => self.send_loop(rank, number),
            // The second half of a ring, and its first one a segment further back, so that every rank ends up with its
            // own.
            Algorithm::RingReduceScatter => self.pass_on(rank, rank + self.ranks - 1, number, Merge::Left),
            Algorithm::RingAllGather => self.pass_on(rank, rank, number, Merge::Copy),
            Algorithm::Pairwise => self.pairwise(rank, number),
            Algorithm::BinomialBroadcast => self.binomial(rank, number, true),
            Algorithm::BinomialReduce => self.binomial(rank, self.rounds() - 1 - number, false),
            Algorithm::Dissemination => {
                let (n, distance) = (self.ranks, 1 << number);
                let nothing = |peer| Some(Transfer { peer, words: 0..0 });
                let (send, receive) = (nothing((rank + distance) % n), nothing((rank + n - distance) % n));
                Round { send, receive, merge: Merge::Copy }
            }
            Algorithm::LinearGather => self.linear(rank, number, true),
            Algorithm::LinearScatter => self.linear(rank, number, false),
        }
    }

    fn pairwise(&self, rank: u32, number: u32) -> Round {
        let n = self.ranks;
        let peer = (number + n - rank) % n;
        let part = || (peer != rank).then(|| Transfer { peer, words: self.segments(n, peer, peer + 1) });
        // What comes takes the place of what goes: segment k of rank k's partner.
        Round { send: part(), receive: part(), merge: Merge::Copy }
    }

    /// Ranks below 2^number have the vector, or want it, and each has a child as far up.
    fn binomial(&self, rank: u32, number: u32, down: bool) -> Round {
        let distance = 1 << number;
        let whole = |peer| Some(Transfer { peer, words: 0..self.words });
        let mut round = Round { send: None, receive: None, merge: if down { Merge::Copy } else { Merge::Right } };
        let (parent, child) =
            if down { (&mut round.receive, &mut round.send) } else { (&mut round.send, &mut round.receive) };
        if rank < distance && rank + distance < self.ranks {
            *child = whole(rank + distance);
        } else if (distance..2 * distance).contains(&rank) {
            *parent = whole(rank - distance);
        }
        round
    }

    fn linear(&self, rank: u32, number: u32, gathers: bool) -> Round {
        let other = number + 1;
        let part = |peer| Some(Transfer { peer, words: self.segments(self.ranks, other, other + 1) });
        let root = if rank == 0 { part(other) } else { None };
        let leaf = if rank == other { part(0) } else { None };
        let (send, receive) = if gathers { (leaf, root) } else { (root, leaf) };
        Round { send, receive, merge: Merge::Copy }
    }

    /// A step of a ring: the segment that goes on, which is one further back in every step, and the one that comes.
    fn pass_on(&self, rank: u32, first: u32, step: u32, merge: Merge) -> Round {
        let n = self.ranks;
        let out = (first + n - step % n) % n;
        let taken = (out + n - 1) % n;
        let part = |segment: u32| self.segments(n, segment, segment + 1);
        Round {
            send: Some(Transfer { peer: (rank + 1) % n, words: part(out) }),
            receive: Some(Transfer { peer: (rank + n - 1) % n, words: part(taken) }),
            merge,
        }
    }

    fn send_loop(&self, rank: u32, number: u32) -> Round {
        let to = number + 1;
        let whole = |peer| Some(Transfer { peer, words: 0..self.words });
        Round {
            send: if rank == 0 { whole(to) } else { None },
            receive: if rank == to { whole(0) } else { None },
            merge: Merge::Copy,
        }
    }

    fn tree(&self, rank: u32, number: u32) -> Round {
        let up = 2 * self.log();
        let climbs = number < up;
        // The way down is the way up backwards: its first round is the last one's.
        let step = if climbs { number } else { 2 * up - 1 - number };
        // Children of this level act in this round, the left ones first.
        let (level, left) = (self.log() - step / 2, step.is_multiple_of(2));
        let level_of = |rank: u32| (rank + 1).ilog2();
        let whole = |peer| Some(Transfer { peer, words: 0..self.words });
        let mut round = Round { send: None, receive: None, merge: if climbs { Merge::Right } else { Merge::Copy } };
        if level_of(rank) == level && rank.is_multiple_of(2) != left {
            let parent = (rank - 1) / 2;
            *(if climbs { &mut round.send } else { &mut round.receive }) = whole(parent);
        } else if level_of(rank) + 1 == level {
            let child = 2 * rank + if left { 1 } else { 2 };
            if child < self.ranks {
                *(if climbs { &mut round.receive } else { &mut round.send }) = whole(child);
            }
        }
        round
    }

    fn ring(&self, rank: u32, number: u32) -> Round {
        let n = self.ranks;
        let (gathers, step) = if number < n - 1 { (false, number) } else { (true, number - (n - 1)) };
        // In the second half every rank has a finished segment, that after its own number.
        let first = if gathers { (rank + 1) % n } else { rank };
        self.pass_on(rank, first, step, if gathers { Merge::Copy } else { Merge::Left })
    }

    fn folded(&self, rank: u32, number: u32) -> Round {
        let (p, extra) = (self.power(), self.ranks - self.power());
        let paired = rank < 2 * extra;
        let even = rank.is_multiple_of(2);
        let idle = Round { send: None, receive: None, merge: Merge::Copy };
        let whole = |peer| Some(Transfer { peer, words: 0..self.words });
        let last = self.rounds() - 1;
        if self.folds() && (number == 0 || number == last) {
            let gives = even == (number == 0);
            return match (paired, gives) {
                (false, _) => idle,
                (true, true) => Round { send: whole(rank ^ 1), ..idle },
                (true, false) if number == 0 => Round { receive: whole(rank ^ 1), merge: Merge::Left, ..idle },
                (true, false) => Round { receive: whole(rank ^ 1), ..idle },
            };
        }
        if paired && even {
            return idle;
        }
        // Numbers among those that are left, and back.
        let new = if paired { rank / 2 } else { rank - extra };
        let old = |new: u32| if new < extra { 2 * new + 1 } else { new + extra };
        let step = number - u32::from(self.folds());
        if self.algorithm == Algorithm::RecursiveDoubling {
            let peer = new ^ (1 << step);
            let merge = if peer < new { Merge::Left } else { Merge::Right };
            return Round { send: whole(old(peer)), receive: whole(old(peer)), merge };
        }
        // Halving: distances p / 2 … 1; then the same way back.
        let halves = step < self.log();
        let level = if halves { step } else { 2 * self.log() - 1 - step };
        let distance = p >> (level + 1);
        let peer = new ^ distance;
        // The segments both have at this level, of which each keeps the half with its own number.
        let half = |of: u32| {
            let from = of / distance * distance;
            self.segments(p, from, from + distance)
        };
        let (own, other) = (half(new), half(peer));
        let (out, taken) = if halves { (other, own) } else { (own, other) };
        let merge = match (halves, peer < new) {
            (false, _) => Merge::Copy,
            (true, true) => Merge::Left,
            (true, false) => Merge::Right,
        };
        let peer = old(peer);
        Round { send: Some(Transfer { peer, words: out }), receive: Some(Transfer { peer, words: taken }), merge }
    }

    /// Runs the whole algorithm without time: every rank's vector before and after. `combine` makes a word of a left and
    /// a right one.
    pub fn execute(&self, vectors: &mut [Vec<u64>], combine: &mut dyn FnMut(u64, u64) -> u64) {
        for number in 0..self.rounds() {
            let sent: Vec<Option<Vec<u64>>> = (0..self.ranks)
                .map(|rank| {
                    let Transfer { words, .. } = self.round(rank, number).send?;
                    Some(vectors[rank as usize][words.start as usize..words.end as usize].to_vec())
                })
                .collect();
            for rank in 0..self.ranks {
                let round = self.round(rank, number);
                let Some(Transfer { peer, words }) = round.receive else { continue };
                let Some(message) = &sent[peer as usize] else { continue };
                let own = &mut vectors[rank as usize][words.start as usize..words.end as usize];
                for (own, &word) in own.iter_mut().zip(message) {
                    *own = match round.merge {
                        Merge::Copy => word,
                        Merge::Left => combine(word, *own),
                        Merge::Right => combine(*own, word),
                    };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REDUCTIONS: [Algorithm; 4] =
        [Algorithm::RecursiveDoubling, Algorithm::Ring, Algorithm::Rabenseifner, Algorithm::BinaryTree];

    const OTHERS: [Algorithm; 9] = [
        Algorithm::SendLoop,
        Algorithm::RingReduceScatter,
        Algorithm::RingAllGather,
        Algorithm::BinomialBroadcast,
        Algorithm::BinomialReduce,
        Algorithm::Dissemination,
        Algorithm::LinearGather,
        Algorithm::LinearScatter,
        Algorithm::Pairwise,
    ];

    #[test]
    fn every_message_is_expected_by_who_gets_it() {
        for algorithm in REDUCTIONS.into_iter().chain(OTHERS) {
            for ranks in 1..=20 {
                for words in [0, 1, 7, 64] {
                    // Parts of an all-to-all are of one length.
                    let words = if algorithm == Algorithm::Pairwise { words * u64::from(ranks) } else { words };
                    let schedule = Schedule { algorithm, ranks, words };
                    for number in 0..schedule.rounds() {
                        for rank in 0..ranks {
                            let round = schedule.round(rank, number);
                            for (mine, theirs) in [(&round.send, true), (&round.receive, false)] {
                                let Some(Transfer { peer, words }) = mine else { continue };
                                let other = schedule.round(*peer, number);
                                let other = if theirs { other.receive } else { other.send };
                                // An all-to-all's parts have another place at the receiver.
                                let other = other.expect("the other end");
                                let length = |words: &Range<u64>| words.end - words.start;
                                assert_eq!((other.peer, length(&other.words)), (rank, length(words)));
                                assert!(algorithm == Algorithm::Pairwise || other.words == *words);
                                assert!(*peer != rank && *peer < ranks);
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn every_rank_gets_every_contribution_once() {
        // Rank k contributes 1 << k to every word: a sum with each once has all bits, one with one twice a carry.
        for algorithm in REDUCTIONS {
            for ranks in 1..=33u32 {
                for words in [1usize, 5, 40] {
                    let schedule = Schedule { algorithm, ranks, words: words as u64 };
                    let mut vectors: Vec<Vec<u64>> = (0..ranks).map(|rank| vec![1 << rank; words]).collect();
                    schedule.execute(&mut vectors, &mut |a, b| a + b);
                    assert!(vectors.iter().flatten().all(|&word| word == (1 << ranks) - 1), "{algorithm:?} {ranks}");
                }
            }
        }
    }

    #[test]
    fn parts_end_up_where_they_belong() {
        for ranks in 1..=20u32 {
            for words in [0usize, 1, 7, 64] {
                let n = ranks as usize;
                let segment = |k: usize| k * words / n..(k + 1) * words / n;
                let run = |algorithm, vectors: &mut Vec<Vec<u64>>| {
                    Schedule { algorithm, ranks, words: words as u64 }.execute(vectors, &mut |a, b| a + b);
                };
                // Word w of rank k is 1000 k + w, and of the sum n w + 1000 (0 + … + n - 1).
                let own = || -> Vec<Vec<u64>> {
                    (0..n).map(|k| (0..words).map(|w| (1000 * k + w) as u64).collect()).collect()
                };
                let sum = |w: usize| (n * w + 1000 * n * (n - 1) / 2) as u64;
                let mut vectors = own();
                run(Algorithm::RingReduceScatter, &mut vectors);
                assert!((0..n).all(|k| segment(k).all(|w| vectors[k][w] == sum(w))), "reduce-scatter {ranks} {words}");
                let (mut vectors, before) = (own(), own());
                run(Algorithm::RingAllGather, &mut vectors);
                let gathered = |of: usize| (0..n).all(|k| vectors[of][segment(k)] == before[k][segment(k)]);
                assert!((0..n).all(gathered), "all-gather {ranks} {words}");
                let mut vectors = own();
                run(Algorithm::LinearGather, &mut vectors);
                assert!((0..n).all(|k| vectors[0][segment(k)] == before[k][segment(k)]), "gather {ranks} {words}");
                let mut vectors = own();
                run(Algorithm::LinearScatter, &mut vectors);
                assert!((0..n).all(|k| vectors[k][segment(k)] == before[0][segment(k)]), "scatter {ranks} {words}");
                let mut vectors = own();
                run(Algorithm::BinomialBroadcast, &mut vectors);
                assert!(vectors.iter().all(|vector| *vector == before[0]), "broadcast {ranks} {words}");
                let mut vectors = own();
                run(Algorithm::BinomialReduce, &mut vectors);
                assert!((0..words).all(|w| vectors[0][w] == sum(w)), "reduce {ranks} {words}");
                // Segments of an all-to-all are of one length.
                let words = words / n * n;
                let mut vectors: Vec<Vec<u64>> = before.iter().map(|vector| vector[..words].to_vec()).collect();
                Schedule { algorithm: Algorithm::Pairwise, ranks, words: words as u64 }
                    .execute(&mut vectors, &mut |a, _| a);
                let part = words / n;
                let from =
                    |k: usize, j: usize| before[j][k * part..(k + 1) * part] == vectors[k][j * part..(j + 1) * part];
                assert!((0..n).all(|k| (0..n).all(|j| from(k, j))), "all-to-all {ranks} {words}");
            }
        }
    }

    #[test]
    fn a_barrier_hears_of_everybody() {
        for ranks in 1..=33u32 {
            let schedule = Schedule { algorithm: Algorithm::Dissemination, ranks, words: 0 };
            let mut heard: Vec<u64> = (0..ranks).map(|rank| 1 << rank).collect();
            for number in 0..schedule.rounds() {
                let before = heard.clone();
                for rank in 0..ranks {
                    let Some(from) = schedule.round(rank, number).receive else { continue };
                    assert_eq!(schedule.round(from.peer, number).send.map(|send| send.peer), Some(rank));
                    heard[rank as usize] |= before[from.peer as usize];
                }
            }
            assert!(heard.iter().all(|&all| all == (1 << ranks) - 1), "{ranks}");
        }
    }

    #[test]
    fn all_ranks_reduce_in_the_same_order() {
        // An operation that is neither associative nor commutative shows the order.
        let mut mix = |a: u64, b: u64| a.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) ^ b.wrapping_add(3);
        for algorithm in REDUCTIONS {
            for ranks in 2..=20 {
                let schedule = Schedule { algorithm, ranks, words: 9 };
                let mut vectors: Vec<Vec<u64>> = (0..u64::from(ranks)).map(|rank| vec![rank + 1; 9]).collect();
                schedule.execute(&mut vectors, &mut mix);
                assert!(vectors.iter().all(|vector| *vector == vectors[0]), "{algorithm:?} {ranks}");
            }
        }
    }

    #[test]
    fn rounds_and_volumes_are_the_paper_s() {
        for log in 1..=6u32 {
            let (n, m) = (1u32 << log, 1u64 << 9);
            let sums = |algorithm| {
                let schedule = Schedule { algorithm, ranks: n, words: m };
                let sent = |rank| {
                    let rounds = (0..schedule.rounds()).map(|number| schedule.round(rank, number));
                    rounds.filter_map(|round| round.send).map(|send| send.words.end - send.words.start).sum::<u64>()
                };
                let all: Vec<u64> = (0..n).map(sent).collect();
                assert!(all.iter().all(|&words| words == all[0]), "{algorithm:?}");
                (schedule.rounds(), all[0])
            };
            assert_eq!(sums(Algorithm::RecursiveDoubling), (log, m * u64::from(log)));
            let both = 2 * m * u64::from(n - 1) / u64::from(n);
            assert_eq!(sums(Algorithm::Ring), (2 * (n - 1), both));
            assert_eq!(sums(Algorithm::Rabenseifner), (2 * log, both));
        }
    }
}
