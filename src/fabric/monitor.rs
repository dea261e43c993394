//! Link monitors: what must hold on every link and virtual channel of a checked run (requirement K-FC-1).
//!
//! | rule | when it is checked | cost |
//! |---|---|---|
//! | credits held + flits under way + flits buffered + credits under way = buffer depth | at every arrival of a credit (no other event can change the sum unnoticed) | O(1) |
//! | no flit of a second packet between the head and the tail of a first on one channel | at every send | O(1) |
//! | a credit never exceeds the buffer it stands for | at every arrival of a credit | O(1) |
//!
//! Flits and credits under way are counted together: the rule is about the sum, and so is what is checked at the end of a
//! run. A breach is a bug of the model and panics with the numbers. Runs without monitors are faster by what this costs;
//! the results are the same.

use super::Flit;
use super::arena::Arena;
use super::ports::{Output, Ports};
use super::wires::Input;
use std::ops::Range;

/// What is known of one output channel: 4 bytes, so that the channels of a port are not many lines of the cache.
#[derive(Clone, Copy, Debug, Default)]
struct Watch {
    /// Flits on their way to the far end, and credits on their way back.
    under_way: u16,
    in_packet: bool,
}

/// Counters of every output channel, indexed like the channels.
#[derive(Clone, Debug)]
pub(super) struct Monitor {
    watches: Arena<Watch>,
}

impl Monitor {
    /// For the channels with these numbers, at rest.
    pub fn new(channels: Range<usize>) -> Monitor {
        Monitor { watches: Arena::new(channels.start, vec![Watch::default(); channels.len()]) }
    }

    /// `here`: the far end belongs to the same part of the system. What goes to other parts is only counted there.
    #[inline]
    pub fn flit_sent(&mut self, channel: usize, flit: &Flit, here: bool) {
        let watch = &mut self.watches[channel];
        watch.under_way += u16::from(here);
        assert!(
            flit.tag.head() != watch.in_packet,
            "channel {channel}: {} (seq {}) while {}",
            if flit.tag.head() { "a head flit" } else { "a body flit" },
            flit.tag.seq(),
            if watch.in_packet { "another packet is under way" } else { "no packet is under way" }
        );
        watch.in_packet = !flit.tag.tail();
    }

    #[inline]
    pub fn flit_arrived(&mut self, channel: usize) {
        self.watches[channel].under_way -= 1;
    }

    #[inline]
    pub fn credit_sent(&mut self, channel: usize) {
        self.watches[channel].under_way += 1;
    }

    #[inline]
    pub fn credit_arrived(&mut self, channel: usize, inputs: &Arena<Input>, ports: &Ports, vc_shift: u32) {
        let watch = &mut self.watches[channel];
        watch.under_way -= 1;
        let far =
            (ports.link((channel >> vc_shift) as u32).to_port as usize) << vc_shift | channel & ((1 << vc_shift) - 1);
        let Output { credits: held, depth, .. } = *ports.channel(channel);
        let (under_way, buffered) = (watch.under_way, inputs[far].len);
        assert_eq!(
            u32::from(held) + u32::from(under_way) + u32::from(buffered),
            u32::from(depth),
            "channel {channel}: {held} credits held + {under_way} flits and credits under way + {buffered} flits buffered is not the depth",
        );
    }

    /// A credit of a link between two parts of the system: nobody sees both ends of it in one cycle, so only the third
    /// rule is checked, and at the end of the run that all credits are back.
    pub fn credit_crossed(channel: usize, ports: &Ports) {
        let Output { credits: held, depth, .. } = *ports.channel(channel);
        assert!(held <= depth, "channel {channel}: {held} credits held are more than the depth {depth}");
    }

    /// Every channel at rest: all credits are back where they began.
    pub fn at_rest(&self, ports: &Ports) -> bool {
        self.watches.range().zip(self.watches.items()).all(|(channel, watch)| {
            let Output { credits, depth, .. } = *ports.channel(channel);
            watch.under_way == 0 && credits == depth
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::ports::{Link, channel_mut};
    use super::*;

    /// Two ports that face each other, one channel of depth 4 each way.
    struct Pair {
        monitor: Monitor,
        inputs: Arena<Input>,
        ports: Ports,
    }

    fn pair() -> Pair {
        let mut ports = Ports::new(0, 2, 0);
        for (port, to) in [(0, 1), (1, 0)] {
            let side = ports.port_mut(port);
            side[0].link = Link { to_port: to, to_node: to, ahead: 2, back: 2 };
            *channel_mut(side, 0) = Output { credits: 4, depth: 4, owner: 0 };
        }
        Pair { monitor: Monitor::new(0..2), inputs: Arena::new(0, vec![Input::IDLE; 2]), ports }
    }

    impl Pair {
        fn credits(&mut self) -> &mut u16 {
            &mut channel_mut(self.ports.port_mut(0), 0).credits
        }

        fn send(&mut self, flit: &Flit) {
            *self.credits() -= 1;
            self.monitor.flit_sent(0, flit, true);
        }

        fn credit_back(&mut self) {
            *self.credits() += 1;
            self.monitor.credit_arrived(0, &self.inputs, &self.ports, 0);
        }
    }

    fn whole() -> Flit {
        Flit::collective(0, 0, 0, 0)
    }

    #[test]
    fn a_flit_and_its_credit_balance_at_every_place_they_can_be() {
        let mut pair = pair();
        pair.send(&whole());
        pair.send(&whole());
        pair.monitor.flit_arrived(0);
        pair.inputs[1].len = 1;
        assert!(!pair.monitor.at_rest(&pair.ports));
        pair.monitor.flit_arrived(0);
        pair.inputs[1].len = 1;
        pair.monitor.credit_sent(0);
        pair.credit_back();
        pair.inputs[1].len = 0;
        pair.monitor.credit_sent(0);
        pair.credit_back();
        assert!(pair.monitor.at_rest(&pair.ports));
    }

    #[test]
    #[should_panic(expected = "3 credits held + 0 flits and credits under way + 0 flits buffered is not the depth")]
    fn a_lost_credit_is_caught_at_the_next_one() {
        let mut pair = pair();
        pair.send(&whole());
        pair.monitor.flit_arrived(0);
        pair.monitor.credit_sent(0);
        *pair.credits() -= 1;
        pair.credit_back();
    }

    #[test]
    #[should_panic(expected = "5 credits held")]
    fn a_credit_out_of_nothing_is_caught() {
        let mut pair = pair();
        pair.send(&whole());
        pair.monitor.flit_arrived(0);
        pair.monitor.credit_sent(0);
        *pair.credits() += 1;
        pair.credit_back();
    }

    #[test]
    #[should_panic(expected = "a head flit (seq 9) while another packet is under way")]
    fn a_second_packet_between_head_and_tail_is_caught() {
        let mut pair = pair();
        pair.send(&Flit::part(0, 0, 8, 0, 3, 0));
        pair.send(&Flit::part(0, 0, 9, 0, 3, 0));
    }

    #[test]
    #[should_panic(expected = "a body flit (seq 8) while no packet is under way")]
    fn a_body_without_a_head_is_caught() {
        pair().send(&Flit::part(0, 0, 8, 1, 3, 0));
    }
}
