//! Rounds of one collective that are spread over several contexts: which of them each context has.
//!
//! Round r runs in context r modulo their number *\[chosen\]*, so that as many rounds are under way at a time as there are contexts.

use serde::Serialize;

use super::file::FailsFile;
use crate::armed::file::{ComputeFile, LateFile};

/// The rounds of one context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ContextShare {
    /// Which context it is, counted from 0.
    pub number: u32,
    /// How many there are.
    pub count: u32,
}

impl ContextShare {
    /// The place of a round of the collective in this context, if it runs there.
    fn place(self, round: u32) -> Option<u32> {
        (round % self.count == self.number).then_some(round / self.count)
    }

    /// The round of the collective that runs in a place of this context.
    pub fn round(self, place: u32) -> u32 {
        place * self.count + self.number
    }

    /// How many of `rounds` rounds run here.
    pub fn rounds(self, all: u32) -> u32 {
        (all - self.number).div_ceil(self.count)
    }

    /// Participants that take longer in rounds that run here.
    pub fn late(self, all: &[LateFile]) -> Vec<LateFile> {
        let here = |late: &LateFile| {
            let round = late.round.map(|round| self.place(round));
            (round != Some(None)).then(|| LateFile { round: round.flatten(), ..late.clone() })
        };
        all.iter().filter_map(here).collect()
    }

    /// Participants whose tasks fail in rounds that run here.
    pub fn fails(self, all: &[FailsFile]) -> Vec<FailsFile> {
        let here = |fails: &FailsFile| {
            let round = fails.round.map(|round| self.place(round));
            (round != Some(None)).then(|| FailsFile { round: round.flatten(), ..fails.clone() })
        };
        all.iter().filter_map(here).collect()
    }

    /// Task times of the rounds that run here: a list is gone through by the rounds of the collective.
    pub fn task_cycles(self, all: &ComputeFile) -> ComputeFile {
        let ComputeFile::List(rows) = all else { return all.clone() };
        let own = |row: &Vec<u64>| match row.len() as u32 {
            0 => Vec::new(),
            // After this many rounds of this context the list begins anew at the same place.
            length => (0..length).map(|place| row[(self.round(place) % length) as usize]).collect(),
        };
        ComputeFile::List(rows.iter().map(own).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_runs_in_one_context() {
        for (all, count) in [(1, 1), (7, 3), (8, 8), (9, 8), (16, 4)] {
            let mut seen = Vec::new();
            for number in 0..count {
                let share = ContextShare { number, count };
                for place in 0..share.rounds(all) {
                    let round = share.round(place);
                    assert_eq!(share.place(round), Some(place));
                    seen.push(round);
                }
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..all).collect::<Vec<u32>>(), "{all} rounds over {count} contexts");
        }
    }

    #[test]
    fn settings_of_a_round_go_to_the_context_of_that_round() {
        let share = ContextShare { number: 1, count: 3 };
        let late = |round| LateFile { end_point: 4, cycles: 9, round };
        assert_eq!(share.late(&[late(None), late(Some(3)), late(Some(4))]), [late(None), late(Some(1))]);
        let ComputeFile::List(rows) = share.task_cycles(&ComputeFile::List(vec![vec![0, 1, 2, 3]])) else { panic!() };
        // Rounds 1, 4, 7 and 10 of a list of four.
        assert_eq!(rows, [vec![1, 0, 3, 2]]);
    }
}
