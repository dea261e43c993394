//! The canonical state of a system: all that decides how it goes on, without the time and without counters. For exhaustive
//! searches over everything that its surroundings may do (requirement H-CHECK-1).
//!
//! Two systems built alike with the same canonical state, and whose blocks are in the same state, do the same from then on,
//! whatever the cycle. Cycles that lie behind are no part of it, cycles to come are counted from now.

use crate::wires::{NOTED, Phase};
use crate::{Block, Join, Network, Tables};
use watershed_kernel::Cycle;
use watershed_state::{Saver, State};

/// The credit account of a buffer: where each of its places is counted, as the two ends of its link know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferCredits {
    /// System-wide number of the port at the sending side.
    pub port: u32,
    /// The channel.
    pub vc: u8,
    /// All there are.
    pub depth: u16,
    /// Credits at the sending side.
    pub credits: u16,
    /// Flits on the link.
    pub under_way: u16,
    /// Flits in the buffer.
    pub held: u16,
    /// Credits on their way back.
    pub returning: u16,
}

impl BufferCredits {
    /// Whether every place is counted exactly once.
    pub fn credits_conserved(&self) -> bool {
        let all = [self.credits, self.under_way, self.held, self.returning];
        all.into_iter().map(u32::from).sum::<u32>() == u32::from(self.depth)
    }
}

/// The state as bytes to compare, and the credit accounts of all buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CanonicalState {
    /// Equal exactly if the system goes on in the same way, blocks apart.
    pub bytes: Vec<u8>,
    /// By port and channel of the sending side.
    pub places: Vec<BufferCredits>,
}

impl<T, J, B, E, const W: usize> Network<T, J, B, E, W>
where
    T: Tables<W> + Sync,
    J: Join<Tables = T> + Clone + Send,
    B: Block<Tables = T> + Send,
    E: Block<Tables = T> + Send,
{
    /// The canonical state of a system that is not divided, between two cycles.
    ///
    /// # Panics
    /// If it is divided, or has links narrower than a flit or packets with classes: their registers are not looked at.
    pub fn canonical_state(&self) -> CanonicalState {
        assert!(self.others.is_empty(), "a canonical state is that of a whole system");
        let wires = &self.first.wires;
        let flow = &wires.flow;
        let now = flow.now;
        let left = |cycle: Cycle| cycle.saturating_sub(now);
        let mut to = Saver::default();
        let queues = wires.inputs.range();
        let mut places = vec![[0u16; 2]; queues.len()];
        for (at, queue) in queues.clone().zip(&mut places) {
            let input = &wires.inputs[at];
            if input.state.phase() == Phase::Fork {
                // How far each copy has read; which record holds that means nothing.
                let fork = self.first.forks.get(input.out_port);
                let copies = fork.branches.iter().map(|branch| (branch.port, branch.sent, branch.done));
                to.value(&(input.len, input.accept_q, input.state, fork.popped, copies.collect::<Vec<_>>()));
            } else {
                to.value(&(input.len, input.out_port, input.accept_q, input.state));
            }
            let mut entry = input.head;
            for _ in 0..input.len {
                let slot = &flow.pool[entry as usize];
                to.value(&(slot.flit, slot.allowed & !NOTED, left(slot.ready)));
                entry = slot.next;
            }
            queue[1] = input.len;
            let out = wires.ports.channel(at);
            to.value(&(out.credits, out.owner));
        }
        // What comes to one queue in one cycle is one flit; in which order those of several are listed means nothing.
        let mut arrivals: Vec<_> = flow.arrivals.iter(now).collect();
        arrivals.sort_unstable_by_key(|(cycle, arrival)| (*cycle, arrival.queue));
        for (cycle, arrival) in arrivals {
            to.value(&(left(cycle), arrival.queue, flow.pool[arrival.entry as usize].flit));
            places[arrival.queue as usize][0] += 1;
        }
        let mut returns: Vec<(Cycle, u32)> =
            flow.returns.iter(now).map(|(cycle, back)| (left(cycle), back.queue)).collect();
        returns.sort_unstable();
        to.value(&returns);
        self.first.arbiters.save(&mut to);
        let places = queues.filter_map(|at| {
            let port = (at >> flow.vc_shift) as u32;
            let (out, link) = (wires.ports.channel(at), wires.ports.link(port));
            if out.depth == 0 || link.to_port == crate::ports::NONE {
                return None;
            }
            let vc = (at & ((1 << flow.vc_shift) - 1)) as u8;
            let [under_way, held] = places[((link.to_port as usize) << flow.vc_shift) + usize::from(vc)];
            let returning = returns.iter().filter(|(_, queue)| *queue as usize == at).count() as u16;
            Some(BufferCredits { port, vc, depth: out.depth, credits: out.credits, under_way, held, returning })
        });
        let places = places.collect();
        CanonicalState { bytes: to.into_bytes(), places }
    }

    /// Plants a fault: the sending side of a channel has a credit more than there are places, or one less.
    ///
    /// # Panics
    /// If there is no such channel, or it has no credit to lose.
    pub fn plant_credit(&mut self, port: u32, vc: u8, more: bool) {
        let ports = &mut self.first.wires.ports;
        let number = ((port as usize) << self.first.wires.flow.vc_shift) + usize::from(vc);
        if more {
            ports.credit(number);
            return;
        }
        let side = ports.port_mut(port);
        let out = crate::ports::channel_mut(side, vc);
        out.credits = out.credits.checked_sub(1).expect("a channel without a credit has none to lose");
        let spent = out.credits == 0;
        side[0].vc_masks.credit &= !(u32::from(spent) << vc);
    }
}
