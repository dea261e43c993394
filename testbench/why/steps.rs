//! The steps that `why` names, cycle by cycle, against what must hold in each of these cycles.

use watershed::scenario::why::{Kind, Part, Why};

/// What must hold in a cycle.
#[derive(Clone, Debug)]
pub struct Holds {
    pub kind: Kind,
    /// Where: one of these.
    pub places: Vec<String>,
}

/// An account that is checked, and which of its cycles have been.
pub struct Steps<'a> {
    pub why: &'a Why,
    /// Parts as they were before the last contribution cut one in two.
    pub parts: Vec<Part>,
    /// What the scenario is, for messages.
    what: String,
    checked: std::cell::RefCell<Vec<bool>>,
}

impl<'a> Steps<'a> {
    pub fn new(why: &'a Why, what: &str) -> Steps<'a> {
        let mut parts: Vec<Part> = Vec::new();
        for part in &why.parts {
            match parts.last_mut() {
                Some(last)
                    if (last.kind, last.phase, &last.place, last.to)
                        == (part.kind, part.phase, &part.place, part.from) =>
                {
                    last.to = part.to;
                }
                _ => parts.push(part.clone()),
            }
        }
        let checked = vec![false; why.latency_cycles as usize].into();
        Steps { why, parts, what: what.to_owned(), checked }
    }

    /// The part that a cycle belongs to.
    pub fn part(&self, cycle: u64) -> &Part {
        let at = self.parts.partition_point(|part| part.to <= cycle);
        &self.parts[at]
    }

    pub fn fail(&self, text: &str) -> ! {
        let table: Vec<String> = self
            .parts
            .iter()
            .map(|part| {
                format!(
                    "  {:>6} {:>6} {:>9} {:<13} {}",
                    part.from,
                    part.to,
                    part.phase.name(),
                    part.kind.name(),
                    part.place
                )
            })
            .collect();
        panic!("{}\n{}\n==> {}: {text}", self.what, table.join("\n"), self.why.collective)
    }

    /// Demands something.
    pub fn demand(&self, holds: bool, text: impl FnOnce() -> String) {
        if !holds {
            self.fail(&text());
        }
    }

    /// Compares a cycle with what holds in it; cycles outside the account are nobody's.
    pub fn holds(&self, cycle: u64, holds: &Holds) {
        if !(self.why.start_cycle..self.why.end_cycle).contains(&cycle) {
            return;
        }
        let part = self.part(cycle);
        let right = part.kind == holds.kind && (holds.places.is_empty() || holds.places.contains(&part.place));
        self.demand(right, || {
            format!(
                "in cycle {cycle} the registers show \"{}\" at {:?}; why says \"{}\" at {}",
                holds.kind.name(),
                holds.places,
                part.kind.name(),
                part.place
            )
        });
        self.checked.borrow_mut()[(cycle - self.why.start_cycle) as usize] = true;
    }

    /// The same for a stretch of cycles.
    pub fn all(&self, cycles: std::ops::Range<u64>, kind: Kind, place: &str) {
        let holds = Holds { kind, places: vec![place.to_owned()] };
        cycles.for_each(|cycle| self.holds(cycle, &holds));
    }

    /// Cycles that nobody has compared with the registers.
    pub fn unchecked(&self) -> Vec<u64> {
        let checked = self.checked.borrow();
        (0..).zip(&*checked).filter(|(_, checked)| !**checked).map(|(at, _)| self.why.start_cycle + at).collect()
    }
}
