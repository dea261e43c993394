//! Link monitors: what must hold on every link and virtual channel of a checked run (requirement K-FC-1).
//!
//! | rule | when it is checked | cost |
//! |---|---|---|
//! | credits held + flits under way + flits buffered + credits under way = buffer depth | at every arrival of a credit (no other event can change the sum unnoticed) | O(1) |
//! | no flit of a second packet between the head and the tail of a first on one channel | at every send | O(1) |
//! | a credit never exceeds the buffer it stands for | at every arrival of a credit | O(1) |
//!
//! A breach is a bug of the model and panics with the numbers. Runs without monitors are faster by what this costs;
//! the results are the same.

use super::Flit;
use super::wires::{Link, OutVc, Queue};

/// Counters of every output channel, indexed like the channels.
#[derive(Clone, Debug)]
pub(super) struct Monitor {
    depth: Vec<u16>,
    flits_under_way: Vec<u16>,
    credits_under_way: Vec<u16>,
    in_packet: Vec<bool>,
}

impl Monitor {
    pub fn new(out: &[OutVc]) -> Monitor {
        Monitor {
            depth: out.iter().map(|vc| vc.credits).collect(),
            flits_under_way: vec![0; out.len()],
            credits_under_way: vec![0; out.len()],
            in_packet: vec![false; out.len()],
        }
    }

    #[inline]
    pub fn flit_sent(&mut self, channel: usize, flit: &Flit) {
        self.flits_under_way[channel] += 1;
        let inside = &mut self.in_packet[channel];
        assert!(
            flit.tag.head() != *inside,
            "channel {channel}: {} (seq {}) while {}",
            if flit.tag.head() { "a head flit" } else { "a body flit" },
            flit.tag.seq(),
            if *inside { "another packet is under way" } else { "no packet is under way" }
        );
        *inside = !flit.tag.tail();
    }

    #[inline]
    pub fn flit_arrived(&mut self, channel: usize) {
        self.flits_under_way[channel] -= 1;
    }

    #[inline]
    pub fn credit_sent(&mut self, channel: usize) {
        self.credits_under_way[channel] += 1;
    }

    #[inline]
    pub fn credit_arrived(&mut self, channel: usize, out: &[OutVc], queues: &[Queue], links: &[Link], vc_shift: u32) {
        self.credits_under_way[channel] -= 1;
        let far = (links[channel >> vc_shift].to_port as usize) << vc_shift | channel & ((1 << vc_shift) - 1);
        let buffered = queues[far].len;
        let held = out[channel].credits;
        let total = held + self.flits_under_way[channel] + buffered + self.credits_under_way[channel];
        assert_eq!(
            total, self.depth[channel],
            "channel {channel}: {held} credits held + {} flits under way + {buffered} buffered + {} credits under way is not the depth",
            self.flits_under_way[channel], self.credits_under_way[channel]
        );
    }

    /// Every channel at rest: all credits are back where they began.
    pub fn at_rest(&self, out: &[OutVc]) -> bool {
        self.flits_under_way.iter().all(|&n| n == 0)
            && self.credits_under_way.iter().all(|&n| n == 0)
            && out.iter().zip(&self.depth).all(|(vc, depth)| vc.credits == *depth)
    }
}

#[cfg(test)]
mod tests {
    use super::super::wires::Phase;
    use super::*;

    /// Two ports that face each other, one channel of depth 4 each way.
    struct Pair {
        monitor: Monitor,
        out: [OutVc; 2],
        queues: [Queue; 2],
        links: [Link; 2],
    }

    fn pair() -> Pair {
        let out = [OutVc { credits: 4, owner: 0 }; 2];
        let queue =
            Queue { head: 0, tail: 0, last_pop: 0, len: 0, out_port: 0, out_vc: 0, phase: Phase::Idle, allowed: 0 };
        let link = |to| Link { to_port: to, to_node: to, latency: 1, cycles_per_flit: 1, free: 0, credit: 0 };
        Pair { monitor: Monitor::new(&out), out, queues: [queue; 2], links: [link(1), link(0)] }
    }

    impl Pair {
        fn send(&mut self, flit: &Flit) {
            self.out[0].credits -= 1;
            self.monitor.flit_sent(0, flit);
        }

        fn credit_back(&mut self) {
            self.out[0].credits += 1;
            self.monitor.credit_arrived(0, &self.out, &self.queues, &self.links, 0);
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
        pair.queues[1].len = 1;
        assert!(!pair.monitor.at_rest(&pair.out));
        pair.monitor.flit_arrived(0);
        pair.queues[1].len = 1;
        pair.monitor.credit_sent(0);
        pair.credit_back();
        pair.queues[1].len = 0;
        pair.monitor.credit_sent(0);
        pair.credit_back();
        assert!(pair.monitor.at_rest(&pair.out));
    }

    #[test]
    #[should_panic(expected = "3 credits held + 0 flits under way + 0 buffered + 0 credits under way is not the depth")]
    fn a_lost_credit_is_caught_at_the_next_one() {
        let mut pair = pair();
        pair.send(&whole());
        pair.monitor.flit_arrived(0);
        pair.monitor.credit_sent(0);
        pair.out[0].credits -= 1;
        pair.credit_back();
    }

    #[test]
    #[should_panic(expected = "5 credits held")]
    fn a_credit_out_of_nothing_is_caught() {
        let mut pair = pair();
        pair.send(&whole());
        pair.monitor.flit_arrived(0);
        pair.monitor.credit_sent(0);
        pair.out[0].credits += 1;
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
