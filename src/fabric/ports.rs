//! The sending side of every port: where its link goes, the credits and owners of its channels, and its counters.
//!
//! ```text
//!   port p:  records p << stride_shift ..
//!     record 0   │ link 16 B │ gate 8 B │ counters 8 B │ channels 0 to 3, 8 B each │   64 bytes, one line of the cache
//!     record 1   │    not used                          │ channels 4 to 7           │   only with more than 4 channels
//!      …
//! ```
//!
//! A hop reads and writes all of it: allocation reads the gate, the flit spends a credit, the counters count it, the
//! link says where it goes, and the returning credit updates the same cache line. In a system larger than the caches
//! each further line would cost another miss.

use super::arena::Arena;
use super::waits::Waits;
use std::collections::BTreeMap;
use watershed_state::state;

/// No port, no pool entry.
pub(super) const NONE: u32 = u32::MAX;

/// The owner of a channel whose packet has left, and whose tail's credit has not come back yet.
pub(super) const DRAINING: u16 = u16::MAX;

/// Channels of a record, as a shift.
const CHANNELS: u32 = 2;

/// The sending side of a link. Links are pairs, so the peer of an output is also the upstream of the input of the
/// same port. It never changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub to_port: u32,
    pub to_node: u32,
    /// Cycles from the first stage of the link to the far queue.
    pub ahead: u32,
    /// Cycles from the queue of this port to the credit counter at the far end.
    pub back: u32,
}

impl Link {
    /// Of a port without a link.
    pub const NOWHERE: Link = Link { to_port: NONE, to_node: NONE, ahead: 1, back: 1 };
}

/// Free channels and channels with credit of an output, a bit each: allocation reads all of them at once.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
pub(super) struct VcMasks {
    /// Channels nobody holds, a bit each.
    pub free: u32,
    /// Channels with a credit, a bit each.
    pub credit: u32,
}

/// Output side of a virtual channel of a port: credits and owner.
#[derive(Clone, Copy, Debug, Default, watershed_state::Saved)]
pub(super) struct Output {
    /// Free places at the far end, as far as this side knows.
    pub credits: u16,
    /// All places at the far end.
    pub depth: u16,
    /// Local number of the input queue whose packet holds the channel, plus one; 0 if it is free.
    pub owner: u16,
    /// For link monitors: the number of the flit that is sent next.
    pub sent: u8,
    /// For link monitors: whether the head of a packet has been sent and its tail has not.
    pub in_packet: bool,
}

/// Traffic of one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct LinkCount {
    /// Flits of set-routed (collective) channels.
    pub set: u64,
    /// Flits of point-to-point channels.
    pub unicast: u64,
    /// Cycles that flits waited at the head of a switch's input queue before they left over this link, summed over the
    /// flits. All causes count: no credit, a lost arbitration, a channel that another packet holds, a link that takes
    /// several cycles a flit, or another output or a full engine that a multicast of one flit goes to as well.
    /// Set-routed flits count from when they have passed the stages before allocation; point-to-point packets walk
    /// through those stages at the head of the queue, and the cycles of that count. Each copy of a multicast of
    /// several flits counts by itself, flit by flit. What an end point or an engine in the wire sends counts nothing.
    /// [`Network::link_waits`](crate::Network::link_waits) splits them by cause.
    pub waited: u64,
    /// Packets: head flits of all channels.
    pub packets: u64,
}

/// The low halves of the counters of a port; the high halves are in [`PortStats`].
#[derive(Clone, Copy, Debug, Default, watershed_state::Saved)]
struct Counters {
    set: u16,
    unicast: u16,
    waited: u16,
    packets: u16,
}

/// Counters outside of the records: the bits above 16 of the counters of ports, and the wait cycles of flits.
#[derive(Clone, Debug, Default)]
pub(super) struct PortStats {
    high: BTreeMap<u32, LinkCount>,
    /// There only where link monitors look.
    pub waits: Option<Box<Waits>>,
}

state!(PortStats { saved: high; boxed: waits });

/// A record; see the module's text.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Port {
    pub link: Link,
    pub vc_masks: VcMasks,
    counters: Counters,
    channels: [Output; 1 << CHANNELS],
}

state!(Port { saved: vc_masks, counters, channels; built: link });

impl Port {
    /// Of a port without a link and without credits.
    pub const IDLE: Port = Port {
        link: Link::NOWHERE,
        vc_masks: VcMasks { free: u32::MAX, credit: 0 },
        counters: Counters { set: 0, unicast: 0, waited: 0, packets: 0 },
        channels: [Output { credits: 0, depth: 0, owner: 0, sent: 0, in_packet: false }; 1 << CHANNELS],
    };

    /// Counts a flit that leaves by port `port`.
    #[inline(always)]
    pub fn count(&mut self, port: u32, set: bool, head: bool, waited: u64, stats: &mut PortStats) {
        let Counters { set: of_sets, unicast, waited: sum, packets } = &mut self.counters;
        let flits = if set { of_sets } else { unicast };
        let all = u64::from(*sum) + waited;
        *sum = all as u16;
        *flits = flits.wrapping_add(1);
        *packets = packets.wrapping_add(u16::from(head));
        // Rarely is any of it so: one branch for all three.
        let (flits_over, packets_over) = (u64::from(*flits == 0), u64::from(*packets == 0));
        if flits_over | packets_over | all >> 16 != 0 {
            stats.carry(port, set, flits_over, if head { packets_over } else { 0 }, all >> 16);
        }
    }
}

impl PortStats {
    /// Adds one to the high halves that are named, and `waited` to that of the cycles waited.
    #[cold]
    fn carry(&mut self, port: u32, set: bool, flits: u64, packets: u64, waited: u64) {
        let high = self.high.entry(port).or_default();
        *(if set { &mut high.set } else { &mut high.unicast }) += flits;
        high.packets += packets;
        high.waited += waited;
    }
}

/// A channel of a port, which is given by its records.
#[inline(always)]
pub(super) fn channel(port: &[Port], vc: u8) -> &Output {
    &port[usize::from(vc >> CHANNELS)].channels[usize::from(vc & ((1 << CHANNELS) - 1))]
}

/// The same, to be changed.
#[inline(always)]
pub(super) fn channel_mut(port: &mut [Port], vc: u8) -> &mut Output {
    &mut port[usize::from(vc >> CHANNELS)].channels[usize::from(vc & ((1 << CHANNELS) - 1))]
}

/// How many records a port has, as a shift, where it has `1 << vc_shift` channels.
#[inline(always)]
pub(super) fn stride_shift(vc_shift: u32) -> u32 {
    vc_shift.saturating_sub(CHANNELS)
}

/// The sending sides of all ports of a part of a system.
#[derive(Clone, Debug)]
pub(super) struct Ports {
    records: Arena<Port>,
    vc_shift: u32,
    /// What the counters carried over.
    pub stats: PortStats,
}

state!(Ports { saved: records, stats; built: vc_shift });

impl Ports {
    /// `count` ports without links, the first of which has the number `from`, with `1 << vc_shift` channels each. Where link
    /// monitors look, what flits wait for is counted.
    pub fn new(from: usize, count: usize, vc_shift: u32, monitored: bool) -> Ports {
        let stride = stride_shift(vc_shift);
        let records = Arena::new(from << stride, vec![Port::IDLE; count << stride]);
        let waits = monitored.then(|| Box::new(Waits::new(from as u32, count)));
        Ports { records, vc_shift, stats: PortStats { high: BTreeMap::new(), waits } }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.records.len() >> stride_shift(self.vc_shift)
    }

    /// The records of a port.
    #[inline(always)]
    pub fn port(&self, port: u32) -> &[Port] {
        self.stretch(port, 1)
    }

    /// The same, to be changed.
    #[inline(always)]
    pub fn port_mut(&mut self, port: u32) -> &mut [Port] {
        self.stretch_mut(port, 1).0
    }

    /// The records of `count` ports.
    #[inline(always)]
    pub fn stretch(&self, port: u32, count: usize) -> &[Port] {
        let stride = stride_shift(self.vc_shift);
        self.records.stretch((port as usize) << stride, count << stride)
    }

    /// The same, to be changed, and what their counters carried over.
    #[inline(always)]
    pub fn stretch_mut(&mut self, port: u32, count: usize) -> (&mut [Port], &mut PortStats) {
        let stride = stride_shift(self.vc_shift);
        (self.records.stretch_mut((port as usize) << stride, count << stride), &mut self.stats)
    }

    /// The link of a port.
    #[inline(always)]
    pub fn link(&self, port: u32) -> &Link {
        &self.records[(port as usize) << stride_shift(self.vc_shift)].link
    }

    /// A channel by its number, which is that of the queue of the same port and channel.
    #[inline(always)]
    pub fn channel(&self, number: usize) -> &Output {
        let port = (number >> self.vc_shift) as u32;
        channel(self.port(port), (number & ((1 << self.vc_shift) - 1)) as u8)
    }

    /// All channels there may be; those of ports that have fewer hold nothing.
    pub fn channels(&self) -> impl Iterator<Item = &Output> {
        self.records.items().iter().flat_map(|record| &record.channels)
    }

    /// A credit reaches the counter of a channel, which is given by its number. Returns the channel as it is then.
    #[inline(always)]
    pub fn credit(&mut self, number: usize) -> &Output {
        let (port, vc) = (number >> self.vc_shift, number & ((1 << self.vc_shift) - 1));
        let first = (port << stride_shift(self.vc_shift)) - self.records.range().start;
        let records = self.records.items_mut();
        let (record, channel) = (first + (vc >> CHANNELS), vc & ((1 << CHANNELS) - 1));
        let out = &mut records[record].channels[channel];
        out.credits += 1;
        let drained = out.owner == DRAINING && out.credits == out.depth;
        if drained {
            out.owner = 0;
        }
        let vc_masks = &mut records[first].vc_masks;
        vc_masks.credit |= 1 << vc;
        vc_masks.free |= u32::from(drained) << vc;
        // No copy: one read of what has just been written in parts waits for all of it to reach the cache.
        &records[record].channels[channel]
    }

    /// The cycles that flits waited before they left by any of these ports: the sum of [`LinkCount::waited`].
    pub fn waited(&self) -> u64 {
        let low: u64 = self.records.items().iter().map(|record| u64::from(record.counters.waited)).sum();
        low + self.stats.high.values().map(|high| high.waited << 16).sum::<u64>()
    }

    /// What a port has carried.
    pub fn count(&self, port: u32) -> LinkCount {
        let low = &self.records[(port as usize) << stride_shift(self.vc_shift)].counters;
        let high = self.stats.high.get(&port).copied().unwrap_or_default();
        let both = |high: u64, low: u16| (high << 16) + u64::from(low);
        LinkCount {
            set: both(high.set, low.set),
            unicast: both(high.unicast, low.unicast),
            waited: both(high.waited, low.waited),
            packets: both(high.packets, low.packets),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_of_four_channels_is_one_line() {
        assert_eq!((size_of::<Port>(), align_of::<Port>()), (64, 64));
        for (vc_shift, records) in [(0, 7), (1, 7), (2, 7), (3, 14), (5, 56)] {
            let ports = Ports::new(100, 7, vc_shift, false);
            assert_eq!((ports.records.len(), ports.len()), (records, 7), "{} channels", 1 << vc_shift);
        }
    }

    #[test]
    fn every_channel_of_every_port_is_a_place_of_its_own() {
        for vc_shift in 0..=5 {
            let mut ports = Ports::new(3, 5, vc_shift, false);
            for port in 3..8 {
                for vc in 0..1 << vc_shift {
                    channel_mut(ports.port_mut(port), vc).owner = (port as u16) << 8 | u16::from(vc);
                }
            }
            for number in 3 << vc_shift..8 << vc_shift {
                let (port, vc) = (number >> vc_shift, number & ((1 << vc_shift) - 1));
                assert_eq!(usize::from(ports.channel(number).owner), port << 8 | vc);
            }
        }
    }

    #[test]
    fn counters_go_on_beyond_16_bits() {
        let mut ports = Ports::new(0, 2, 3, false);
        ports.port_mut(1)[0].counters = Counters { set: u16::MAX, unicast: u16::MAX - 1, waited: 7, packets: u16::MAX };
        let mut flit = |set, head, waited| {
            let (records, stats) = ports.stretch_mut(1, 1);
            records[0].count(1, set, head, waited, stats);
            ports.count(1)
        };
        let over = 1 << 16;
        assert_eq!(flit(true, false, 0), LinkCount { set: over, unicast: over - 2, waited: 7, packets: over - 1 });
        assert_eq!(
            flit(false, true, 5 << 16),
            LinkCount { set: over, unicast: over - 1, waited: (5 << 16) + 7, packets: over }
        );
        assert_eq!(
            flit(false, true, over - 7),
            LinkCount { set: over, unicast: over, waited: 6 << 16, packets: over + 1 }
        );
        assert_eq!(
            flit(false, true, 1),
            LinkCount { set: over, unicast: over + 1, waited: (6 << 16) + 1, packets: over + 2 }
        );
        assert_eq!(ports.count(0), LinkCount::default());
    }

    #[test]
    fn a_draining_channel_is_free_when_all_its_credits_are_back() {
        // A part of a system: its ports do not begin at 0.
        let mut ports = Ports::new(4, 3, 3, false);
        for vc in [2, 6] {
            let port = ports.port_mut(5);
            *channel_mut(port, vc) = Output { credits: 1, depth: 3, owner: DRAINING, ..Output::default() };
            port[0].vc_masks.free &= !(1 << vc);
        }
        let seen = |ports: &Ports, vc: u8| {
            (ports.channel(40 + usize::from(vc)).owner, ports.port(5)[0].vc_masks.free >> vc & 1)
        };
        ports.credit(46);
        assert_eq!(seen(&ports, 6), (DRAINING, 0));
        ports.credit(46);
        assert_eq!(seen(&ports, 6), (0, 1));
        assert_eq!(seen(&ports, 2), (DRAINING, 0), "the other one waits");
        assert_eq!(ports.port(5)[0].vc_masks.credit, 1 << 6);
        assert_eq!([4, 6].map(|port| ports.port(port)[0].vc_masks.credit), [0, 0], "no other port");
    }
}
