//! The reasons for which flits of a whole system waited at the heads of queues: the sums of the counts of
//! [`waits`](super::waits).

use super::waits::{HeadWaits, WaitCycles, Waits};
use super::{Block, Join, Network, Tables};

impl<T, J, B, E, const W: usize> Network<T, J, B, E, W>
where
    T: Tables<W> + Sync,
    J: Join<Tables = T> + Clone + Send,
    B: Block<Tables = T> + Send,
    E: Block<Tables = T> + Send,
{
    /// What flits waited for before they left over one direction of a link, numbered as [`Network::link_counts`] does; nothing
    /// if no link monitor looks, and nothing that a block sent which is no switch.
    pub fn link_waits(&self, direction: usize) -> WaitCycles {
        let link = &self.plan.links[direction / 2];
        let (node, port) = if direction.is_multiple_of(2) { link.a } else { link.b };
        if node < self.switches { self.port_waits(node, port) } else { WaitCycles::default() }
    }

    fn port_waits(&self, node: u32, port: u16) -> WaitCycles {
        let wires = self.wires_of(node);
        wires.ports.stats.waits.as_ref().map_or_else(WaitCycles::default, |waits| waits.of_port(wires.port(node, port)))
    }

    fn waits(&self) -> impl Iterator<Item = &Waits> {
        self.each_part().filter_map(|part| part.wires.ports.stats.waits.as_deref())
    }

    /// All of them; none if no link monitor looks.
    pub fn head_waits(&self) -> Option<HeadWaits> {
        self.waits().map(Waits::all).reduce(|mut sum, part| {
            sum.links.add_all(&part.links);
            sum.engines.add_all(&part.engines);
            sum.blocks.add_all(&part.blocks);
            sum
        })
    }

    /// The head of a queue that has waited longest for its way on: its place, and for how many cycles it could have left. Every
    /// queue is looked at.
    pub fn longest_head(&self) -> Option<(String, u64)> {
        let here = self.home().filter_map(|part| self.longest_of(part));
        let all = self.gather_from_ranks(here.collect::<Vec<_>>()).concat();
        // Of several the first one, whatever the parts of the system are.
        let (waited, (node, port, vc)) = all.into_iter().max_by_key(|&(waited, at)| (waited, std::cmp::Reverse(at)))?;
        Some((self.queue_name(node, port, vc), waited))
    }

    /// The same of a part: the cycles, and the queue as node, port and channel.
    fn longest_of(&self, part: usize) -> Option<(u64, (u32, u16, u8))> {
        let wires = &self.part(part).wires;
        let mut longest = None;
        for node in self.partition.nodes(part) {
            let info = wires.nodes[node as usize];
            for port in 0..info.ports {
                for vc in 0..self.plan.vcs.total() {
                    let waited = wires.head_waited(wires.queue(info.port_base + u32::from(port), vc));
                    if waited > longest.map_or(0, |(most, _)| most) {
                        longest = Some((waited, (node, port, vc)));
                    }
                }
            }
        }
        longest
    }

    /// Whether the causes of every port add up to the cycles that flits waited there, which are counted apart from them: from
    /// the cycle in which a flit could have left to the one in which it did.
    ///
    /// Point-to-point packets cannot fail this: what they were not refused counts as stages. It is set-routed flits that it watches.
    ///
    /// # Errors
    /// The first port at which they do not.
    pub fn head_waits_add_up(&self) -> Result<(), String> {
        let Some(all) = self.head_waits() else { return Ok(()) };
        for (direction, (_, count, _)) in self.link_counts().enumerate() {
            let causes = self.link_waits(direction);
            if causes.total() != count.waited {
                let (from, to) = self.link_ends(direction);
                let (causes, waited) = (causes.total(), count.waited);
                return Err(format!("flits waited {waited} cycles before {from} -> {to}, and {causes} have a cause"));
            }
        }
        let engines: u64 = self.waits().map(|waits| waits.engine_waited).sum();
        if engines != all.engines.total() {
            let causes = all.engines.total();
            return Err(format!("flits waited {engines} cycles before engines, and {causes} have a cause"));
        }
        Ok(())
    }
}
