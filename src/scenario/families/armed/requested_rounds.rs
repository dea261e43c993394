//! The requested rounds of a reduction, from its rounds on the wire: a deterministic sum takes two on the wire for each
//! requested one.
//!
//! | requested round | from its rounds on the wire |
//! |---|---|
//! | outcome | the worst one; open if all that were started succeeded but some were not started |
//! | latency | from the last contribution to its first round until the last participant has the result of its last round |

use std::collections::BTreeMap;

use super::result::Outcomes;
use watershed_armed_interface::composed::Composition;
use watershed_kernel::Cycle;

/// How a round on the wire ended, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RoundOutcome {
    Complete,
    AfterRetry,
    Incomplete,
    Open,
    Silent,
}

impl RoundOutcome {
    /// Its name in documents.
    pub(super) fn name(self) -> &'static str {
        match self {
            RoundOutcome::Complete => "complete",
            RoundOutcome::AfterRetry => "after-retry",
            RoundOutcome::Incomplete => "incomplete",
            RoundOutcome::Open => "open",
            RoundOutcome::Silent => "silent",
        }
    }
}

/// A round that was asked for.
#[derive(Clone, Copy, Debug)]
struct RequestedRound {
    worst: RoundOutcome,
    started: u32,
    /// When its last operands were there.
    entered: Cycle,
    /// When the last participant had the last result that there is.
    got: Option<Cycle>,
}

/// Rounds that were asked for, by flow and number; opening barriers have no number.
#[derive(Clone, Debug)]
pub(super) struct RequestedRounds {
    composed: Composition,
    of: BTreeMap<(u8, Option<u32>), RequestedRound>,
}

impl RequestedRounds {
    pub(super) fn of(composed: Composition) -> RequestedRounds {
        RequestedRounds { composed, of: BTreeMap::new() }
    }

    /// Takes a round on the wire: its outcome, when the last contribution was ready and, if all participants have its
    /// result, since when. Rounds of a flow come in order.
    pub(super) fn take(
        &mut self,
        (flow, data): (u8, Option<u32>),
        ended: RoundOutcome,
        entered: Cycle,
        got: Option<Cycle>,
    ) {
        let number = data.map(|data| data / self.composed.rounds_each());
        let one = self.of.entry((flow, number)).or_insert(RequestedRound { worst: ended, started: 0, entered, got });
        (one.worst, one.started, one.got) = (one.worst.max(ended), one.started + 1, got);
    }

    /// How they ended.
    pub(super) fn outcomes(&self) -> Outcomes {
        let mut outcomes = Outcomes::default();
        for ((_, number), one) in &self.of {
            let whole = one.started == number.map_or(1, |_| self.composed.rounds_each());
            let slot = match one.worst {
                RoundOutcome::Complete | RoundOutcome::AfterRetry if !whole => &mut outcomes.open,
                RoundOutcome::Complete => &mut outcomes.complete,
                RoundOutcome::AfterRetry => &mut outcomes.after_retry,
                RoundOutcome::Incomplete => &mut outcomes.incomplete,
                RoundOutcome::Open => &mut outcomes.open,
                RoundOutcome::Silent => &mut outcomes.silent,
            };
            *slot += 1;
        }
        outcomes
    }

    /// Latencies of those with operands whose result all participants have.
    pub(super) fn latencies(&self) -> Vec<u64> {
        let data = self.of.iter().filter(|((_, number), _)| number.is_some()).map(|(_, one)| one);
        let whole = data.filter(|one| one.started == self.composed.rounds_each());
        whole.filter_map(|one| Some(one.got?.saturating_sub(one.entered))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_rounds_on_the_wire_count_as_one_requested_round() {
        let mut asked = RequestedRounds::of(Composition::Deterministic);
        asked.take((0, None), RoundOutcome::Complete, 5, Some(9));
        asked.take((0, Some(0)), RoundOutcome::AfterRetry, 10, Some(100));
        asked.take((0, Some(1)), RoundOutcome::Complete, 101, Some(150));
        asked.take((1, Some(2)), RoundOutcome::Complete, 10, Some(60));
        asked.take((1, Some(3)), RoundOutcome::Silent, 61, Some(90));
        asked.take((0, Some(4)), RoundOutcome::Complete, 200, Some(210));
        let outcomes = asked.outcomes();
        assert_eq!((outcomes.complete, outcomes.after_retry, outcomes.silent, outcomes.open), (1, 1, 1, 1));
        assert_eq!(asked.latencies(), [140, 80], "from the operands of the first to the result of the second");
    }

    #[test]
    fn a_plain_round_is_itself() {
        let mut asked = RequestedRounds::of(Composition::Plain);
        asked.take((0, None), RoundOutcome::Complete, 5, Some(9));
        asked.take((0, Some(0)), RoundOutcome::Incomplete, 10, None);
        asked.take((0, Some(1)), RoundOutcome::Complete, 20, Some(33));
        assert_eq!((asked.outcomes().complete, asked.outcomes().incomplete), (2, 1));
        assert_eq!(asked.latencies(), [13]);
    }
}
