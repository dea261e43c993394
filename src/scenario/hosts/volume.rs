//! The rounds and volumes of every rank for each algorithm, in closed form (requirement P-HOST-2), for the check of a
//! run.
//!
//! n ranks, m words, p the largest power of two up to n, r = n - p. |k/q| is the length of part k of q of the vector,
//! which begins at word floor(k m / q).
//!
//! | algorithm | rank | rounds | words sent | words received | messages |
//! |---|---|---|---|---|---|
//! | recursive doubling | takes part | log2 p | m log2 p | m log2 p | log2 p |
//! | ring | k | 2 (n - 1) | 2 m - \|k+1/n\| - \|k+2/n\| | 2 m - \|k/n\| - \|k+1/n\| | 2 (n - 1) |
//! | Rabenseifner | k of those that take part | 2 log2 p | m - \|k/p\| + kept | as many | 2 log2 p |
//! | binary tree | the root, with c children | 2 c | m c | m c | c |
//! | | any other, with c children | 2 (c + 1) | m (c + 1) | m (c + 1) | c + 1 |
//! | send loop | the source | n - 1 | m (n - 1) | 0 | n - 1 |
//! | | any other | 1 | 0 | m | 0 |
//!
//! With r > 0, the even ones of the first 2 r ranks only give their vector and get the result (2 rounds, m words each
//! way, one message). The odd ones take part with two more rounds, m more words each way and one more message. *Kept*
//! are the blocks of halving that hold part k: |block| = p/2, p/4, …, 1 parts.
//!
//! Nothing here uses [`Schedule`](watershed_piuma::host::schedule::Schedule), which is what the check covers.

use super::file::HostAlgorithm;
use watershed_piuma::host::Counts;

/// Words of parts `from..to` of `parts` of a vector of this many words.
fn part(words: u64, parts: u64, from: u64, to: u64) -> u64 {
    let begin = |k: u64| u128::from(words) * u128::from(k) / u128::from(parts);
    (begin(to) - begin(from)) as u64
}

/// What one of `ranks` ranks counts by the end.
pub fn of(algorithm: HostAlgorithm, ranks: u64, words: u64, rank: u64) -> Counts {
    if ranks == 1 {
        return Counts::default();
    }
    match algorithm {
        HostAlgorithm::SendLoop if rank == 0 => {
            Counts { rounds: ranks - 1, sent: words * (ranks - 1), received: 0, messages: ranks - 1 }
        }
        HostAlgorithm::SendLoop => Counts { rounds: 1, sent: 0, received: words, messages: 0 },
        HostAlgorithm::BinaryTree => {
            let children = [2 * rank + 1, 2 * rank + 2].into_iter().filter(|child| *child < ranks).count() as u64;
            let neighbours = children + u64::from(rank > 0);
            let both = words * neighbours;
            Counts { rounds: 2 * neighbours, sent: both, received: both, messages: neighbours }
        }
        HostAlgorithm::Ring => {
            let segment = |k: u64| part(words, ranks, k % ranks, k % ranks + 1);
            // Reducing, a rank passes on every segment but the one that it ends up with, which is that behind its own number;
            // gathering, every one but that which its successor ended up with.
            let sent = 2 * words - segment(rank + 1) - segment(rank + 2);
            let received = 2 * words - segment(rank) - segment(rank + 1);
            Counts { rounds: 2 * (ranks - 1), sent, received, messages: 2 * (ranks - 1) }
        }
        HostAlgorithm::RecursiveDoubling | HostAlgorithm::Rabenseifner => {
            let power = 1 << ranks.ilog2();
            let extra = ranks - power;
            let folds = rank < 2 * extra;
            if folds && rank.is_multiple_of(2) {
                return Counts { rounds: 2, sent: words, received: words, messages: 1 };
            }
            let number = if folds { rank / 2 } else { rank - extra };
            let mut counts = counts_of_power_of_two(algorithm, power, words, number);
            if folds {
                counts.rounds += 2;
                counts.sent += words;
                counts.received += words;
                counts.messages += 1;
            }
            counts
        }
    }
}

/// The same of the ranks that are left when their number is a power of two.
fn counts_of_power_of_two(algorithm: HostAlgorithm, power: u64, words: u64, number: u64) -> Counts {
    let log = u64::from(power.ilog2());
    if algorithm == HostAlgorithm::RecursiveDoubling {
        return Counts { rounds: log, sent: words * log, received: words * log, messages: log };
    }
    // Halving sends all but the rank's own part, in blocks that get smaller, and receives the blocks that it keeps; doubling
    // is the same backwards.
    let blocks = (0..log).map(|level| 1 << level);
    let kept: u64 = blocks.map(|size| part(words, power, number / size * size, (number / size + 1) * size)).sum();
    let both = words - part(words, power, number, number + 1) + kept;
    Counts { rounds: 2 * log, sent: both, received: both, messages: 2 * log }
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_piuma::host::schedule::{Algorithm, Round, Schedule, Transfer};

    const ALL: [(HostAlgorithm, Algorithm); 5] = [
        (HostAlgorithm::RecursiveDoubling, Algorithm::RecursiveDoubling),
        (HostAlgorithm::Ring, Algorithm::Ring),
        (HostAlgorithm::Rabenseifner, Algorithm::Rabenseifner),
        (HostAlgorithm::BinaryTree, Algorithm::BinaryTree),
        (HostAlgorithm::SendLoop, Algorithm::SendLoop),
    ];

    fn length(transfer: Option<&Transfer>) -> u64 {
        transfer.map_or(0, |transfer| transfer.words.end - transfer.words.start)
    }

    /// The counts of all rounds of a schedule.
    fn counts_of_rounds(rounds: impl Iterator<Item = Round>) -> Counts {
        rounds.filter(|round| !round.is_idle()).fold(Counts::default(), |sum, round| Counts {
            rounds: sum.rounds + 1,
            sent: sum.sent + length(round.send.as_ref()),
            received: sum.received + length(round.receive.as_ref()),
            messages: sum.messages + u64::from(round.send.is_some()),
        })
    }

    #[test]
    fn the_schedule_costs_exactly_that_for_any_number_of_ranks() {
        for (algorithm, scheduled) in ALL {
            for ranks in 1..=40 {
                for words in [0, 1, 2, 3, 5, 7, 13, 31, 64, 97, 129, 1001] {
                    let schedule = Schedule { algorithm: scheduled, ranks, words };
                    for rank in 0..ranks {
                        let counted =
                            counts_of_rounds((0..schedule.rounds()).map(|number| schedule.round(rank, number)));
                        let expected = of(algorithm, ranks.into(), words, rank.into());
                        assert_eq!(counted, expected, "{algorithm:?}, rank {rank} of {ranks}, {words} words");
                    }
                }
            }
        }
    }

    /// By hand: three ranks and five words, parts of which are 1, 2 and 2 words, or 2 and 3 of two.
    #[test]
    fn three_ranks_of_five_words_by_hand() {
        let counts = |rounds, sent, received, messages| Counts { rounds, sent, received, messages };
        for (algorithm, expected) in [
            (HostAlgorithm::RecursiveDoubling, [counts(2, 5, 5, 1), counts(3, 10, 10, 2), counts(1, 5, 5, 1)]),
            (HostAlgorithm::Ring, [counts(4, 6, 7, 4), counts(4, 7, 6, 4), counts(4, 7, 7, 4)]),
            (HostAlgorithm::Rabenseifner, [counts(2, 5, 5, 1), counts(4, 10, 10, 3), counts(2, 5, 5, 2)]),
            (HostAlgorithm::BinaryTree, [counts(4, 10, 10, 2), counts(2, 5, 5, 1), counts(2, 5, 5, 1)]),
            (HostAlgorithm::SendLoop, [counts(2, 10, 0, 2), counts(1, 0, 5, 0), counts(1, 0, 5, 0)]),
        ] {
            assert_eq!([0, 1, 2].map(|rank| of(algorithm, 3, 5, rank)), expected, "{algorithm:?}");
        }
    }

    /// P-HOST-2 for powers of two that divide the vector.
    #[test]
    fn powers_of_two_cost_what_the_paper_says() {
        for log in 1..=12 {
            let (n, m) = (1 << log, 3 << 14);
            let doubling = of(HostAlgorithm::RecursiveDoubling, n, m, n / 3);
            assert_eq!((doubling.rounds, doubling.sent), (log, m * log));
            let both = 2 * m * (n - 1) / n;
            for (algorithm, rounds) in [(HostAlgorithm::Ring, 2 * (n - 1)), (HostAlgorithm::Rabenseifner, 2 * log)] {
                let found = of(algorithm, n, m, n / 3);
                assert_eq!((found.rounds, found.sent, found.received), (rounds, both, both), "{algorithm:?}");
            }
        }
    }
}
