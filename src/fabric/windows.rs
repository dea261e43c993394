//! Windows: parts of a system that run ahead of each other.
//!
//! ```text
//!              window 0            window 1            window 2
//!   part 0  ├──────────────────┼──────────────────┼─────── …      cycles, one after the other
//!   part 1  ├──────────────────┼──────────────────┼─────── …
//!                              ▲ what was sent from part to part is handed over
//! ```
//!
//! A flit sent in cycle t over a link of latency L reaches the far queue in cycle t + L + 1 at the earliest, and so
//! does a credit. If L is the shortest latency of a link between two parts, then nothing that a part does in the L + 1
//! cycles of a window can reach another part in the same window. So a part runs all cycles of the window in one go, and
//! crossings are handed over between two windows: every block sees in every cycle what it would see if all went in step
//! (K-CLK-1).
//!
//! A large system gains twice by this. The registers of a small part stay in the cache for a whole window, while a walk
//! over the whole system would miss the cache at every switch in every cycle. And threads synchronise once a window,
//! not once a cycle. An idle part costs one comparison a window.
//!
//! Limitations: a step is a whole window. Runs that must act on the system in a given cycle (programs that store
//! registers, collectives that wait for each other, measured windows) step by cycles instead.

use super::network::{CycleContext, Network, Part, Step};
use super::partition::Partition;
use super::tables::Tables;
use super::{Block, Join, Plan};
use std::sync::Mutex;
use watershed_kernel::Cycle;

/// Parts that a thread takes at a time.
const BATCH: usize = 32;

/// Cycles of a window of parts that no link joins.
const APART: Cycle = 1024;

/// Cycles of a window of a system.
pub(super) fn length(plan: &Plan, partition: &Partition) -> Cycle {
    partition.shortest_crossing(plan).map_or(APART, |latency| Cycle::from(latency) + 1)
}

impl<T, J, B, E, const W: usize> Network<T, J, B, E, W>
where
    T: Tables<W> + Sync,
    J: Join<Tables = T> + Clone + Send,
    B: Block<Tables = T> + Send,
    E: Block<Tables = T> + Send,
{
    /// Simulates the next window in which anything happens; no cycle from `end` on.
    pub(super) fn step_window(&mut self, window: Cycle, end: Cycle) -> Step {
        let (now, due) = (self.now(), self.next_due());
        if due == Cycle::MAX {
            return self.quiet();
        }
        let from = due.max(now);
        if from >= end {
            let now = now.max(end);
            self.each_part_mut().for_each(|part| part.wires.flow.now = now);
            return Step::End;
        }
        let until = from.saturating_add(window).min(end);
        let first_end = self.switches + self.all_bumps;
        let home = self.home();
        let common = CycleContext { tables: &*self.tables, cfg: self.cfg, switches: self.switches, first_end };
        let (first, others) = Self::home_parts_mut(home, &mut self.first, &mut self.others);
        if self.threads > 1 {
            // A free thread takes the next part; which thread runs a part does not change the result. Beside a window of thousands of
            // parts, to start threads costs nothing, so no pool is kept for it, and parts stay where they are.
            if let Some(first) = first {
                first.run(&common, from, until);
            }
            let batches = Mutex::new(others.chunks_mut(BATCH));
            let work = || {
                loop {
                    let batch = batches.lock().map_or(None, |mut batches| batches.next());
                    let Some(batch) = batch else { break };
                    for part in batch {
                        part.run(&common, from, until);
                    }
                }
            };
            std::thread::scope(|scope| {
                for _ in 1..self.threads {
                    scope.spawn(work);
                }
                work();
            });
        } else {
            for part in first.into_iter().chain(others.iter_mut().map(|part| &mut **part)) {
                part.run(&common, from, until);
            }
        }
        // Where nothing is evaluated here, the clock stands at the end of the window, too.
        self.each_part_mut().for_each(|part| part.wires.flow.now = until - 1);
        self.hand_over();
        self.each_part_mut().for_each(|part| part.wires.flow.now = until);
        self.activity.alive_until = match &self.peers {
            Some(peers) => peers.total.alive_until,
            None => self.each_part().map(|part| part.alive_until).max().unwrap_or(0),
        };
        self.activity.awake_cycles += self.activity.alive_until.saturating_sub(from);
        Step::Ran
    }
}

impl<J, B, E, const W: usize> Part<J, B, E, W> {
    /// The cycles of a window in which anything happens here. The clock stands at the last cycle of the window then, which
    /// is as far as what crosses can be entered.
    fn run<T>(&mut self, common: &CycleContext<'_, T>, from: Cycle, until: Cycle)
    where
        T: Tables<W>,
        J: Join<Tables = T>,
        B: Block<Tables = T>,
        E: Block<Tables = T>,
    {
        if self.due >= until {
            self.wires.flow.now = until - 1;
            return;
        }
        self.wires.flow.now = from;
        self.due = loop {
            let now = self.wires.flow.now;
            let next = if self.wires.wake.is_empty() { self.wires.next_event() } else { Some(now) };
            let next = next.map_or(Cycle::MAX, |next| next.max(now));
            if next >= until {
                break next;
            }
            self.wires.flow.now = next;
            self.cycle(common);
            self.wires.flow.now += 1;
            self.alive_until = self.wires.flow.now;
        };
        self.wires.flow.now = until - 1;
        if self.due == Cycle::MAX {
            self.wires.flow.free_unused();
            self.wires.alarms.free_unused();
        }
    }
}
