//! Traffic classes at the outputs of a switch: whose turn it is to ask for a channel.
//!
//! ```text
//!   heads that ask for channels of output o:   class 0   class 7   class 0   class 7
//!   what channel allocation sees of them:                class 7             class 7
//! ```
//!
//! Of the packets that ask for channels of one output, channel allocation sees those of the highest class only; which of
//! them goes first its arbiters say, as without classes. After [`RouterCfg::class_bound`](super::RouterCfg) grants in a row past a packet
//! of a lower class it sees those of lower classes only, until one of them has its grant.
//!
//! A packet that has its channel keeps it to its tail, whatever its class, and packets that came by one queue leave in order:
//! a head of a high class waits for the rest of what is under way, and for what stands before it in its own queue.
//!
//! Families whose packets have no classes ([`Tables::CLASSES`]) pay nothing: the code is not there.
//!
//! Limitations: if several channels are free at once, lower classes get theirs a cycle later than they could; switch
//! allocation, in which packets that hold channels share a link, looks at no classes.

use super::tables::Tables;
use super::unicast::{Here, bits};

/// What is known of the requests for an output.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Classes {
    /// Highest and lowest class of this cycle's requests.
    highest: u8,
    lowest: u8,
    /// Grants in a row past a packet of a lower class.
    passed_q: u8,
}

impl Classes {
    /// Whether a request is kept back in this cycle.
    fn keeps_back(self, class: u8, bound: u8) -> bool {
        let lower_first = bound > 0 && self.passed_q >= bound && self.lowest < self.highest;
        (class < self.highest) != lower_first
    }

    /// A request of this class was granted.
    fn granted(&mut self, class: u8) {
        let past = class == self.highest && self.lowest < self.highest;
        self.passed_q = if past { self.passed_q.saturating_add(1) } else { 0 };
    }
}

/// The class of the packet at the head of a queue.
fn class<T: Tables<W>, const W: usize>(here: &Here<'_, W>, local: usize) -> u8 {
    T::class(&here.flow.pool[here.inputs[local].head as usize].flit)
}

fn of<'a, const W: usize>(here: &'a mut Here<'_, W>, local: usize) -> &'a mut Classes {
    let at = here.base as usize + usize::from(here.inputs[local].out_port);
    &mut here.arbiters.class_q[at]
}

/// Takes out of `routed`, words of bits of queues that ask for a channel, those that are kept back in this cycle.
pub(super) fn keep_back<T: Tables<W>, const W: usize>(here: &mut Here<'_, W>, routed: &mut [u64]) {
    for w in 0..routed.len() {
        for local in bits(routed, w) {
            let of = of(here, local);
            (of.highest, of.lowest) = (0, u8::MAX);
        }
    }
    for w in 0..routed.len() {
        for local in bits(routed, w) {
            let class = class::<T, W>(here, local);
            let of = of(here, local);
            (of.highest, of.lowest) = (of.highest.max(class), of.lowest.min(class));
        }
    }
    let bound = here.router.class_bound;
    for w in 0..routed.len() {
        for local in bits(routed, w) {
            let class = class::<T, W>(here, local);
            if of(here, local).keeps_back(class, bound) {
                routed[w] &= !(1 << (local & 63));
            }
        }
    }
}

/// Counts what channel allocation granted of what it saw: queues of `seen` that hold a channel now.
pub(super) fn count<T: Tables<W>, const W: usize>(here: &mut Here<'_, W>, seen: &[u64]) {
    for (w, seen) in seen.iter().enumerate() {
        let granted = [seen & here.masks[w].active];
        for bit in bits(&granted, 0) {
            let local = w << 6 | bit;
            let class = class::<T, W>(here, local);
            of(here, local).granted(class);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_class_goes_first_and_the_others_wait_no_longer_than_the_bound() {
        for bound in [0u8, 1, 3, 255] {
            let mut output = Classes { highest: 7, lowest: 2, passed_q: 0 };
            let mut order = Vec::new();
            for _ in 0..600 {
                // Classes 2, 5 and 7 ask all the time, and one of those that are seen is served.
                let seen: Vec<u8> = [5, 2, 7].into_iter().filter(|&class| !output.keeps_back(class, bound)).collect();
                output.granted(seen[0]);
                order.push(seen[0]);
            }
            let first = order.iter().position(|&class| class < 7);
            assert_eq!(first, (bound > 0).then_some(usize::from(bound)), "bound {bound}");
            let lower = order.iter().filter(|&&class| class < 7).count();
            assert_eq!(lower, if bound == 0 { 0 } else { 600 / (usize::from(bound) + 1) }, "bound {bound}");
        }
    }

    #[test]
    fn one_class_is_never_kept_back() {
        let mut output = Classes { highest: 3, lowest: 3, passed_q: 9 };
        assert!(!output.keeps_back(3, 2));
        output.granted(3);
        assert_eq!(output.passed_q, 0, "it went past nobody");
    }
}
