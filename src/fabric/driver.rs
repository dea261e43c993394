//! What the driver of a system does: it runs a span of cycles, sees what came about, and may make changes before the next one. Where ranks
//! evaluate the system together, the drivers of all make the same ones.

use super::exchange::SyncLevel;
use super::{Block, Join, Network, Step, Tables};
use watershed_kernel::Cycle;

impl<T, J, B, E, const W: usize> Network<T, J, B, E, W>
where
    T: Tables<W> + Sync,
    J: Join<Tables = T> + Clone + Send,
    B: Block<Tables = T> + Send,
    E: Block<Tables = T> + Send,
{
    /// Simulates up to `most` cycles before `end`, see [`step_before`](Self::step_before), and stops after one in which an end point reports
    /// a completion or a rule is broken, and when `end` has come. Returns the last step, and how many steps [ran](Step::Ran).
    pub fn run_before(&mut self, end: Cycle, most: u32) -> (Step, u32) {
        let completions = self.completions();
        for ran in 0..most {
            let step = self.step_before(end);
            if step != Step::Ran {
                return (step, ran);
            }
            let (now, seen) = (self.now(), (self.moves(), self.completions()));
            self.activity.note_step(now, seen);
            if seen.1 != completions || self.fault().is_some() || now >= end {
                return (step, ran + 1);
            }
        }
        (Step::Ran, most)
    }

    /// The cycle after the last one in which anything happened.
    pub fn alive_until(&self) -> Cycle {
        self.activity.alive_until
    }

    /// Cycles in which a node was awake, whether those between them were skipped or not. In [windows](Self::runs_in_windows) all cycles of one
    /// count up to the last in which anything happened.
    pub fn awake_cycles(&self) -> u64 {
        self.activity.awake_cycles
    }

    /// The cycle after the last one of a [span](Self::run_before) in which a flit left a queue or an end point reported a completion. Only
    /// timers have run since.
    pub fn moved_until(&self) -> Cycle {
        self.activity.moved_until
    }

    /// One end point, to change what it is to do; it is asked again in the next cycle.
    ///
    /// # Panics
    /// If there is none with this number.
    pub fn end_mut(&mut self, end: usize) -> &mut E {
        self.sync_others(SyncLevel::Blocks);
        self.driver_wakes(0);
        let node = self.end_node(end);
        let part = self.partition.part_of(node);
        let part = self.part_mut(part);
        part.wires.wake.insert(node);
        part.due = 0;
        &mut part.ends[end]
    }

    /// One end point, to take from it what it has written down; it is not woken.
    ///
    /// # Panics
    /// If there is none with this number.
    pub fn end_asleep(&mut self, end: usize) -> &mut E {
        self.sync_others(SyncLevel::Blocks);
        let part = self.partition.part_of(self.end_node(end));
        &mut self.part_mut(part).ends[end]
    }

    /// All end points, to take from them what they have written down; nobody is woken.
    pub fn each_end(&mut self, mut take: impl FnMut(&mut E)) {
        self.sync_others(SyncLevel::Blocks);
        self.each_part_mut().for_each(|part| part.ends.items_mut().iter_mut().for_each(&mut take));
    }

    /// One engine behind an internal port, to change what it is to do.
    pub fn join_mut(&mut self, switch: u32) -> Option<&mut J> {
        self.sync_others(SyncLevel::Blocks);
        let part = self.partition.part_of(switch);
        self.part_mut(part).joins.get_mut(switch as usize)
    }

    /// Wakes a node in a cycle that has not begun: a driver changes it then, and nobody jumps over that cycle.
    pub fn wake_at(&mut self, node: u32, cycle: Cycle) {
        self.driver_wakes(cycle);
        let part = self.partition.part_of(node);
        let wires = &mut self.part_mut(part).wires;
        let now = wires.flow.now;
        if cycle <= now {
            wires.wake.insert(node);
        } else {
            wires.alarms.set_persistent(now, cycle, node);
        }
    }
}
