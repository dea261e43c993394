//! Changes to a system that its driver may make between two steps. Where ranks evaluate it together, the drivers of all make the same ones.

use super::exchange::SyncLevel;
use super::{Block, Join, Network, Tables};
use watershed_kernel::Cycle;

impl<T, J, B, E, const W: usize> Network<T, J, B, E, W>
where
    T: Tables<W> + Sync,
    J: Join<Tables = T> + Clone + Send,
    B: Block<Tables = T> + Send,
    E: Block<Tables = T> + Send,
{
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
