//! The watchdog of every family (requirement K-WD-1): it detects that progress stops before the work is done.
//!
//! A run watches several items: the two kinds of flits of a PIUMA system or a plain fabric, the reductions of an armed
//! one, the collectives of a PBV one. Each has a count that grows only with its progress. Each is watched separately,
//! so that progress of one cannot hide a deadlock of another.
//!
//! The families differ in legitimate pauses: where processes have time-outs, compute times and retries, an item that
//! waits for a time in the future is excused until then; see [`Watchdog::restart_patience`].

use watershed_fabric::{NodeKind, Plan, PlanLink, Simulation};
use watershed_kernel::Cycle;
use watershed_state::state;

/// Steps of a run between two looks: a look asks every end point.
pub(crate) const LOOK: u32 = 1024;

/// Sees when work stops although some is left.
pub(crate) struct Watchdog {
    /// Time without progress after which an item stands; 0 is never.
    patience: u64,
    /// Whether only cycles count in which something was awake, or all.
    only_awake: bool,
    /// The time that counts.
    clock: u64,
    /// Steps since the last look.
    steps: u32,
    items: Vec<WatchedItem>,
}

state!(Watchdog { saved: clock, steps, items; built: patience, only_awake });

#[derive(Clone, Copy, Default, watershed_state::Saved)]
struct WatchedItem {
    done: u64,
    /// Cycle in which the last progress was seen, and the clock then.
    since: Cycle,
    clock: u64,
}

impl Watchdog {
    /// Watches `items` items. With a `patience` of 0 it never reports a deadlock. All cycles count.
    pub fn new(patience: u64, items: usize) -> Watchdog {
        Watchdog { patience, only_awake: false, clock: 0, steps: 0, items: vec![WatchedItem::default(); items] }
    }

    /// Watches jobs of frames. A frame makes no visible progress while it crosses the network, so they may also take
    /// the cycles that frames of `flits` flits need to cross the whole network and back. Only cycles in which a block
    /// is awake count; in others all wait for a time in the future.
    pub fn of_frames(patience: u64, items: usize, plan: &Plan, flits: u64) -> Watchdog {
        let hop = |link: &PlanLink| u64::from(link.latency) + flits * u64::from(link.cycles_per_flit);
        let slowest = plan.links.iter().map(hop).max().unwrap_or(0);
        let crossing = 2 * slowest * (plan.count(NodeKind::Switch) as u64 + 2);
        let patience = if patience == 0 { 0 } else { patience + crossing };
        Watchdog { only_awake: true, ..Watchdog::new(patience, items) }
    }

    /// Steps that may pass before it has to be asked.
    pub fn pause(&self) -> u32 {
        if self.only_awake { 1 } else { LOOK - self.steps }
    }

    /// Steps have passed, fewer than the [pause](Self::pause).
    pub fn pass(&mut self, steps: u32) {
        if !self.only_awake {
            self.steps += steps;
        }
    }

    /// Whether it is time for a look, after this many more [steps](Self::pause): in the same cycle whether idle cycles are skipped or not.
    pub fn is_due(&mut self, system: &dyn Simulation, steps: u32) -> bool {
        if self.only_awake {
            return system.alive_until() == system.now() && self.awake();
        }
        self.steps += steps;
        if self.steps < LOOK && !system.runs_in_windows() {
            return false;
        }
        (self.steps, self.clock) = (0, system.now());
        true
    }

    /// A cycle counts in which something was awake. Returns whether it is time for a look.
    fn awake(&mut self) -> bool {
        self.clock += 1;
        self.patience > 0 && self.clock.is_multiple_of(u64::from(LOOK))
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
        let looks: Vec<u64> = (1..=3000).filter(|_| dog.awake()).collect();
        assert_eq!(looks, [1024, 2048]);
        assert_eq!(dog.check_progress(0, 1 << 40, 0), Some(0));
        assert_eq!(dog.check_progress(0, 1 << 40, 1), None);
        assert_eq!(dog.check_progress(0, 1 << 50, 1), None, "a jump is no time");
        let mut off = Watchdog::new(0, 1);
        assert!((0..5000).all(|_| !off.awake()));
        assert_eq!(off.check_progress(0, 1 << 40, 0), None);
    }
}
