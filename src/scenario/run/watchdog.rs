//! The watchdog of every family (requirement K-WD-1): it detects that progress stops before the work is done.
//!
//! A run watches several items: the two kinds of flits of a PIUMA system or a plain fabric, the reductions of an armed
//! one, the collectives of a PBV one. Each has a count that grows only with its progress. Each is watched separately,
//! so that progress of one cannot hide a deadlock of another.
//!
//! Where processes have time-outs, compute times and retries, an item that waits for a time in the future is excused until then; see
//! [`Watchdog::restart_patience`].

use watershed_fabric::{NodeKind, Plan, PlanLink};
use watershed_kernel::Cycle;
use watershed_state::state;

/// Cycles between two looks in which something is awake: a look asks every end point.
pub(crate) const LOOK: u32 = 1024;

/// Sees when work stops although some is left.
///
/// Only cycles count in which a node is awake: in the others everything waits for a time in the future, or for what is on its way.
/// So it looks in the same cycles whether the others are skipped or not, with waves or without, in one part or in many.
pub(crate) struct Watchdog {
    /// Cycles without progress after which an item stands; 0 is never.
    patience: u64,
    /// Cycles that have counted.
    clock: u64,
    items: Vec<WatchedItem>,
}

state!(Watchdog { saved: clock, items; built: patience });

#[derive(Clone, Copy, Default, watershed_state::Saved)]
struct WatchedItem {
    done: u64,
    /// Cycle in which the last progress was seen, and the clock then.
    since: Cycle,
    clock: u64,
}

impl Watchdog {
    /// Watches `items` items. With a `patience` of 0 it never reports a deadlock.
    pub fn new(patience: u64, items: usize) -> Watchdog {
        Watchdog { patience, clock: 0, items: vec![WatchedItem::default(); items] }
    }

    /// Watches jobs of frames. A frame makes no visible progress while it crosses the network, so they may also take
    /// the cycles that frames of `flits` flits need to cross the whole network and back.
    pub fn of_frames(patience: u64, items: usize, plan: &Plan, flits: u64) -> Watchdog {
        let hop = |link: &PlanLink| u64::from(link.latency) + flits * u64::from(link.cycles_per_flit);
        let slowest = plan.links.iter().map(hop).max().unwrap_or(0);
        let crossing = 2 * slowest * (plan.count(NodeKind::Switch) as u64 + 2);
        let patience = if patience == 0 { 0 } else { patience + crossing };
        Watchdog::new(patience, items)
    }

    /// Steps that may pass before it has to be asked.
    pub fn pause(&self) -> u32 {
        LOOK - (self.clock % u64::from(LOOK)) as u32
    }

    /// Whether it is time for a look, when this many [cycles](watershed_fabric::Simulation::awake_cycles) have counted: in the same one however often it is
    /// asked. In windows of cycles it may be a later one.
    pub fn is_due(&mut self, awake_cycles: u64) -> bool {
        let before = std::mem::replace(&mut self.clock, awake_cycles);
        self.patience > 0 && before / u64::from(LOOK) != awake_cycles / u64::from(LOOK)
    }

    /// Notes how much has been done for an item by now. Returns the cycle since which nothing was, if that is too long ago.
    pub fn check_progress(&mut self, item: usize, now: Cycle, done: u64) -> Option<Cycle> {
        if self.patience == 0 {
            return None;
        }
        if self.items[item].done != done {
            self.items[item] = WatchedItem { done, since: now, clock: self.clock };
        }
        let item = self.items[item];
        (self.clock - item.clock > self.patience).then_some(item.since)
    }

    /// The first item that stands, and the cycle since which it does. `advanced` says how far an item has come, or that nobody
    /// is at work on it; `expects` whether a time is pending that will go on with it.
    pub fn first(
        &mut self,
        now: Cycle,
        advanced: impl Fn(usize) -> Option<u64>,
        expects: impl Fn(usize) -> bool,
    ) -> Option<(Cycle, usize)> {
        let mut found = None;
        for item in 0..self.items.len() {
            let done = advanced(item);
            let late = self.check_progress(item, now, done.unwrap_or(0));
            if done.is_none() || expects(item) {
                self.restart_patience(item, now);
            } else if found.is_none() {
                found = late.map(|since| (since, item));
            }
        }
        found
    }

    /// A item pauses for a reason that will pass: its patience starts again.
    pub fn restart_patience(&mut self, item: usize, now: Cycle) {
        (self.items[item].since, self.items[item].clock) = (now, self.clock);
    }
}

/// What stands since when, in words.
pub(crate) fn stall_message(now: Cycle, name: &str, since: Cycle) -> String {
    format!("cycle {now}: {name} has come no further since cycle {since}, and no time-out is pending")
}

/// Who is not done, in words: the first eight of them by name.
pub(crate) fn not_done(open: &[String]) -> String {
    const NAMED: usize = 8;
    match open.len() {
        0 => String::new(),
        all if all <= NAMED => format!("not done: {}", open.join(", ")),
        all => format!("not done: {} and {} more", open[..NAMED].join(", "), all - NAMED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_named_is_counted() {
        let open = |count: u32| (0..count).map(|at| format!("n{at}")).collect::<Vec<_>>();
        assert_eq!(not_done(&open(0)), "");
        assert_eq!(not_done(&open(8)), "not done: n0, n1, n2, n3, n4, n5, n6, n7");
        assert_eq!(not_done(&open(11)), "not done: n0, n1, n2, n3, n4, n5, n6, n7 and 3 more");
    }

    #[test]
    fn progress_of_one_counter_does_not_hide_a_stall_of_another() {
        let mut dog = Watchdog::new(100, 2);
        let mut look = |now: Cycle, first: u64, second: u64| {
            dog.clock = now;
            (dog.check_progress(0, now, first), dog.check_progress(1, now, second))
        };
        for now in [50, 90, 100] {
            assert_eq!(look(now, 7, now), (None, None));
        }
        assert_eq!(look(150, 7, 150), (None, None), "just as long as it may");
        assert_eq!(look(151, 7, 150), (Some(50), None));
        assert_eq!(look(152, 8, 150), (None, None), "it moved");
    }

    #[test]
    fn a_wait_with_a_known_end_restarts_the_patience() {
        let mut dog = Watchdog::new(100, 1);
        dog.clock = 101;
        assert_eq!(dog.check_progress(0, 101, 0), Some(0));
        dog.restart_patience(0, 101);
        dog.clock = 201;
        assert_eq!(dog.check_progress(0, 201, 0), None);
        dog.clock = 202;
        assert_eq!(dog.check_progress(0, 202, 0), Some(101));
    }

    #[test]
    fn only_cycles_count_in_which_something_is_awake() {
        let mut dog = Watchdog::new(2000, 1);
        let looks: Vec<u64> = (1..=3000).filter(|&steps| dog.is_due(steps)).collect();
        assert_eq!(looks, [1024, 2048]);
        assert!(!dog.is_due(3072 - 1) && dog.pause() == 1 && dog.is_due(3072), "asked when it is due");
        assert!(!dog.is_due(3072), "a step in which nothing is awake is no second time");
        assert!(dog.is_due(3072 + 1500) && !dog.is_due(3072 + 1600), "a window is looked at behind its end");
        assert_eq!(dog.check_progress(0, 1 << 40, 0), Some(0));
        assert_eq!(dog.check_progress(0, 1 << 40, 1), None);
        assert_eq!(dog.check_progress(0, 1 << 50, 1), None, "a jump is no time");
        let mut off = Watchdog::new(0, 1);
        assert!((1..5000).all(|steps| !off.is_due(steps)));
        assert_eq!(off.check_progress(0, 1 << 40, 0), None);
    }
}
