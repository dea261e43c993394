//! One switch as its point-to-point units see it in one cycle.

use super::PortSet;
use super::node::Masks;
use super::pipeline::Pipeline;
use super::ports::{Port, PortStats, VcMasks};
use super::router::RouterCfg;
use super::switch_parts::{Arbiters, Scratch};
use super::tables::Tables;
use super::wires::{Flow, Input, Slot};
use watershed_kernel::Wake;

/// The switch's own part of each arena, so that a queue is named by its number within the switch, a link by its port.
pub(super) struct SwitchView<'a, const W: usize> {
    pub inputs: &'a mut [Input],
    /// The sending sides of its ports, `stride` records each.
    pub sides: &'a mut [Port],
    pub stride: u32,
    pub stats: &'a mut PortStats,
    pub masks: &'a mut [Masks],
    pub flow: &'a mut Flow,
    pub arbiters: &'a mut Arbiters<W>,
    pub scratch: &'a mut Scratch<W>,
    /// System-wide number of port 0, and of queue 0.
    pub base: u32,
    pub first_queue: usize,
    pub node: u32,
    pub unicast_bits: u64,
    pub pipeline: Pipeline,
    pub router: RouterCfg,
    pub taken_in: PortSet<W>,
    pub taken_out: PortSet<W>,
    pub changed: bool,
    /// Whether packets were refused something when the switch was last looked at, or may have been.
    pub had_refusals: bool,
    pub wake: Wake,
}

impl<const W: usize> SwitchView<'_, W> {
    /// Words of queue bits.
    #[inline]
    pub fn words(&self) -> usize {
        self.masks.len()
    }

    #[inline]
    pub fn shift(&self) -> u32 {
        self.flow.vc_shift
    }

    /// The gate of a port.
    #[inline(always)]
    pub fn vc_masks(&self, port: usize) -> VcMasks {
        self.sides[port << self.stride].vc_masks
    }

    /// Cycles from the grant of a channel to the first request for a crossing, if that is the same for all packets.
    #[inline]
    pub fn stage(&self) -> Option<u8> {
        let same = self.arbiters.timer_q.is_empty() && !self.router.speculative;
        same.then_some(self.pipeline.vc_alloc)
    }

    /// The channel of a queue.
    #[inline]
    pub fn vc(&self, local: usize) -> u16 {
        (local & ((1 << self.shift()) - 1)) as u16
    }

    /// What a requester may use, from the first point-to-point channel on. Bits beyond these channels mean something else.
    #[inline]
    pub fn allowed(&self, local: usize) -> u32 {
        self.flow.pool[self.inputs[local].head as usize].allowed
    }

    /// The number, within the switch, of channel `channel` (from the first point-to-point channel on) of an output.
    #[inline]
    pub fn number(&self, out: u16, channel: u32) -> usize {
        (usize::from(out) << self.shift()) + usize::from(self.flow.vcs.set) + channel as usize
    }
}

/// Where the flit with the address of a packet stands in the pool that came on a channel, counted from the first
/// point-to-point one; `head`: where its first one does.
#[inline(always)]
pub(super) fn route_entry<T: Tables<W>, const W: usize>(tables: &T, pool: &[Slot], head: u32, channel: u8) -> usize {
    if T::ROUTE_FLITS == 1 {
        return head as usize;
    }
    (1..tables.route_flits(channel)).fold(head, |at, _| pool[at as usize].next) as usize
}
