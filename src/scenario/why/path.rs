//! The account of a latency while it is put together.

use super::{Kind, LastOperand, Part, Phase, Why};

/// A path under construction, from its end to its start.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) parts: Vec<Part>,
    pub(super) engines: Vec<LastOperand>,
    pub(super) phase: Phase,
    /// The first cycle that is explained.
    pub(super) at: u64,
    /// Nothing before this cycle is asked for.
    pub(super) start: u64,
    /// Where the last push did not meet the one before.
    gap: Option<(u64, u64)>,
}

impl Path {
    pub(super) fn new(start: u64, end: u64, phase: Phase) -> Path {
        Path { parts: Vec::new(), engines: Vec::new(), phase, at: end, start, gap: None }
    }

    /// Whether everything is explained.
    pub(super) fn is_done(&self) -> bool {
        self.at <= self.start
    }

    /// Adds what came before everything that is there, from a cycle on.
    pub(super) fn prepend(&mut self, from: u64, kind: Kind, place: impl Into<String>) {
        if from < self.at {
            self.push(from, self.at, kind, place.into());
        }
    }

    /// The same between two cycles; the second one is the first that is explained.
    pub(super) fn push(&mut self, from: u64, to: u64, kind: Kind, place: String) {
        if to != self.at {
            self.gap.get_or_insert((to, self.at));
        }
        let from = from.max(self.start);
        if from >= to {
            return;
        }
        self.at = from;
        if let Some(last) = self.parts.last_mut()
            && (last.kind, last.phase, &last.place, last.from) == (kind, self.phase, &place, to)
        {
            last.from = from;
            return;
        }
        self.parts.push(Part { from, to, kind, phase: self.phase, place });
    }

    /// The finished account. A part that crosses the last contribution is cut in two.
    pub(super) fn finish(
        mut self,
        (collective, what, number): (&str, &str, u64),
        landed_at: String,
        end: u64,
        last_contribution: Option<u64>,
    ) -> Result<Why, String> {
        self.parts.reverse();
        self.engines.reverse();
        if let Some((to, at)) = self.gap {
            return Err(format!("cycles {to} to {at} are not explained"));
        }
        if self.at > self.start {
            return Err(format!("cycles {} to {} are not explained", self.start, self.at));
        }
        let mut parts = Vec::with_capacity(self.parts.len() + 1);
        for mut part in self.parts {
            if let Some(cut) = last_contribution.filter(|cut| part.from < *cut && *cut < part.to) {
                parts.push(Part { to: cut, ..part.clone() });
                part.from = cut;
            }
            parts.push(part);
        }
        let start = self.start.min(end);
        let sum: u64 = parts.iter().map(|part| part.to - part.from).sum();
        assert_eq!(sum, end - start, "the parts of {collective} add up");
        Ok(Why {
            collective: collective.to_owned(),
            what: what.to_owned(),
            number,
            landed_at,
            start_cycle: start,
            end_cycle: end,
            latency_cycles: sum,
            last_contribution,
            parts,
            engines: self.engines,
        })
    }
}
