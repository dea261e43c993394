//! Words that a member of a collective in software has to send and receive, in closed form.
//!
//! n members, m words; |k| is the length of segment k of n, which begins at word floor(k m / n). Members are counted from the root.
//!
//! | collective | algorithm | member | words sent | words received |
//! |---|---|---|---|---|
//! | all-reduce | ring, recursive doubling, Rabenseifner, binary tree | | as of [hosts](crate::hosts::volume) | |
//! | reduce-scatter | ring | k | m - \|k\| | m - \|k-1\| |
//! | all-gather | ring | k | m - \|k+1\| | m - \|k\| |
//! | all-to-all | pairwise | k | m - \|k\| | m - \|k\| |
//! | broadcast | binomial | with c children | c m | m, the root 0 |
//! | reduce | binomial | with c children | m, the root 0 | c m |
//! | barrier | dissemination | | 0 | 0 |
//! | gather | linear | the root; k | 0; \|k\| | m - \|0\|; 0 |
//! | scatter | linear | the root; k | m - \|0\|; 0 | 0; \|k\| |
//!
//! Nothing here uses [`Schedule`](watershed_piuma::host::schedule::Schedule), which is what the check covers.

use watershed_workload::CollectiveOp;

use super::file::Engine;
use crate::hosts::file::HostAlgorithm;
use crate::hosts::volume;

/// Words that a member sends and receives.
pub fn of(what: CollectiveOp, engine: Engine, members: u64, words: u64, member: u64) -> [u64; 2] {
    let begin = |k: u64| (u128::from(words) * u128::from(k) / u128::from(members)) as u64;
    let part = |k: u64| begin(k % members + 1) - begin(k % members);
    let (all_but, own) = (|k: u64| words - part(k), part(member));
    // A child of k is k + 2^r, with 2^r above k.
    let children = (0..u64::BITS).map(|r| 1 << r).take_while(|far| *far < members);
    let children = children.filter(|far| member < *far && member + far < members).count() as u64;
    let parent = if member == 0 { 0 } else { words };
    if members == 1 {
        return [0, 0];
    }
    match what {
        CollectiveOp::AllReduce => {
            let algorithm = match engine {
                Engine::RecursiveDoubling => HostAlgorithm::RecursiveDoubling,
                Engine::Rabenseifner => HostAlgorithm::Rabenseifner,
                Engine::BinaryTree => HostAlgorithm::BinaryTree,
                _ => HostAlgorithm::Ring,
            };
            let counts = volume::of(algorithm, members, words, member);
            [counts.sent, counts.received]
        }
        CollectiveOp::ReduceScatter => [all_but(member), all_but(member + members - 1)],
        CollectiveOp::AllGather => [all_but(member + 1), all_but(member)],
        CollectiveOp::AllToAll => [all_but(member), all_but(member)],
        CollectiveOp::Broadcast => [children * words, parent],
        CollectiveOp::Reduce => [parent, children * words],
        CollectiveOp::Barrier => [0, 0],
        CollectiveOp::Gather if member == 0 => [0, all_but(0)],
        CollectiveOp::Gather => [own, 0],
        CollectiveOp::Scatter if member == 0 => [all_but(0), 0],
        CollectiveOp::Scatter => [0, own],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::build::algorithm;
    use watershed_piuma::host::schedule::{Schedule, Transfer};

    #[test]
    fn schedules_of_workloads_cost_exactly_that() {
        let length = |transfer: Option<Transfer>| transfer.map_or(0, |of| of.words.end - of.words.start);
        for what in CollectiveOp::ALL {
            for &engine in Engine::of(what).iter().filter(|engine| !engine.is_in_network()) {
                for members in 1..=20u32 {
                    for words in [0, 1, 7, 64, 1001] {
                        let words = if what == CollectiveOp::AllToAll { words * u64::from(members) } else { words };
                        let schedule = Schedule { algorithm: algorithm(what, engine), ranks: members, words };
                        for member in 0..members {
                            let rounds = (0..schedule.rounds()).map(|number| schedule.round(member, number));
                            let walked = rounds.fold([0, 0], |[sent, received], round| {
                                [sent + length(round.send), received + length(round.receive)]
                            });
                            let words = if what == CollectiveOp::Barrier { 0 } else { words };
                            let expected = of(what, engine, members.into(), words, member.into());
                            assert_eq!(walked, expected, "{what:?} {engine:?} member {member} of {members}, {words}");
                        }
                    }
                }
            }
        }
    }

    /// By hand: four members and eight words, two a segment.
    #[test]
    fn four_members_of_eight_words_by_hand() {
        let all = |what, engine| [0, 1, 2, 3].map(|member| of(what, engine, 4, 8, member));
        assert_eq!(all(CollectiveOp::AllGather, Engine::Ring), [[6, 6]; 4]);
        assert_eq!(all(CollectiveOp::ReduceScatter, Engine::Ring), [[6, 6]; 4]);
        assert_eq!(all(CollectiveOp::AllToAll, Engine::Pairwise), [[6, 6]; 4]);
        assert_eq!(all(CollectiveOp::AllReduce, Engine::Ring), [[12, 12]; 4]);
        assert_eq!(all(CollectiveOp::Broadcast, Engine::Binomial), [[16, 0], [8, 8], [0, 8], [0, 8]]);
        assert_eq!(all(CollectiveOp::Reduce, Engine::Binomial), [[0, 16], [8, 8], [8, 0], [8, 0]]);
        assert_eq!(all(CollectiveOp::Gather, Engine::Linear), [[0, 6], [2, 0], [2, 0], [2, 0]]);
        assert_eq!(all(CollectiveOp::Scatter, Engine::Linear), [[6, 0], [0, 2], [0, 2], [0, 2]]);
        assert_eq!(all(CollectiveOp::Barrier, Engine::Dissemination), [[0, 0]; 4]);
    }
}
