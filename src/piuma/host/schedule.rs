//! Who sends what to whom in which round: the algorithms of hosts that reduce in software (requirements P-HOST-1 to
//! P-HOST-3; "Accelerating Allreduce …", section "Allreduce").
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
//!
//! Where n is no power of two, the first 2 r ranks fold in pairs before: the even one gives its vector to its odd
//! neighbour, and gets the result from it in the last round (Thakur's way). Vectors are cut at words, segment k of n
//! from word k m / n on. The order of a reduction is fixed: of two ranks that exchange, the lower one's operand is the
//! left one; in a ring what was received is. So all ranks have the same bits.
//!
//! The binary tree is that of a heap: the children of rank k are 2 k + 1 and 2 k + 2. A level takes two rounds, left children
//! first, then right ones, from the lowest level up; the sum goes back the same way. Whole vectors are sent, and the rank's own
//! operand is the left one.

use std::ops::Range;

/// A software algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

/// What becomes of the words that were received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// They take the place of the rank's own.
    Copy,
    /// They are the left operand.
    Left,
    /// They are the right operand.
    Right,
}

/// One side of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The other rank.
    pub peer: u32,
    /// Words of the vector.
    pub words: Range<u64>,
}

/// A round of one rank. A message belongs to the same round of sender and receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// An algorithm on so many ranks and words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
            Algorithm::SendLoop => self.ranks - 1,
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
        // In the second half everybody has a finished segment, that after its own number.
        let first = if gathers { (rank + 1) % n } else { rank };
        let out = (first + n - step % n) % n;
        let taken = (out + n - 1) % n;
        let part = |segment: u32| self.segments(n, segment, segment + 1);
        Round {
            send: Some(Transfer { peer: (rank + 1) % n, words: part(out) }),
            receive: Some(Transfer { peer: (rank + n - 1) % n, words: part(taken) }),
            merge: if gathers { Merge::Copy } else { Merge::Left },
        }
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

    #[test]
    fn every_message_is_expected_by_who_gets_it() {
        for algorithm in REDUCTIONS.into_iter().chain([Algorithm::SendLoop]) {
            for ranks in 1..=20 {
                for words in [0, 1, 7, 64] {
                    let schedule = Schedule { algorithm, ranks, words };
                    for number in 0..schedule.rounds() {
                        for rank in 0..ranks {
                            let round = schedule.round(rank, number);
                            for (mine, theirs) in [(&round.send, true), (&round.receive, false)] {
                                let Some(Transfer { peer, words }) = mine else { continue };
                                let other = schedule.round(*peer, number);
                                let other = if theirs { other.receive } else { other.send };
                                assert_eq!(other, Some(Transfer { peer: rank, words: words.clone() }));
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
