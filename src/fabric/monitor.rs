//! Link monitors: what must hold on every link and virtual channel of a checked run (requirement K-FC-1).
//!
//! | rule | when it is checked | cost |
//! |---|---|---|
//! | credits held + flits under way + flits buffered + credits under way = buffer depth | at every arrival of a credit and send of a flit | O(1) |
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
