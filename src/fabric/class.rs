//! Traffic classes at the outputs of a switch: which class may ask for a channel, and which may use the link.
//!
//! ```text
//!   heads that ask for channels of output o:   class 0   class 7   class 0   class 7
//!   what channel allocation sees of them:                class 7             class 7
//! ```
//!
//! Of the packets that ask for channels of one output, channel allocation sees those of the highest class only; among
//! them its arbiters decide, as without classes. After [`RouterCfg::class_bound`](super::RouterCfg) grants in a row
//! past a packet of a lower class it sees those of lower classes only, until one of them has its grant.
//!
//! Where several packets hold channels of one output, switch allocation sees the flits of the highest class among those
//! that have a credit. After as many flits in a row past one of a lower class, it sees those of lower classes until one
//! has left *\[chosen: the same bound, counted in flits\]*. So a packet of a high class that has a channel of its own
//! does not share the link.
//!
//! A packet that has its channel keeps it to its tail, whatever its class, and packets of one queue leave in order. So
//! a head of a high class always waits for the packets before it in its own queue, and, where there is one channel, for
//! the rest of the packet under way.
//!
//! For families whose packets have no classes ([`Tables::CLASSES`]) this code is not compiled.
//!
//! Limitations: if several channels are free at once, lower classes get theirs a cycle later than they could. A flit of
//! a high class that loses its crossbar input to another output keeps flits of lower classes from its own output in
//! that cycle.

use super::tables::Tables;
use super::unicast::{Here, bits};

/// What is known of the requests for an output.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
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

/// What the allocators of all switches know of classes; nothing where packets have none.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct ClassRegisters {
    /// Per output port: what is known of the packets that ask for its channels.
    asking: Vec<Classes>,
    /// Per output port: what is known of the flits that could leave by it.
    ports: Vec<Classes>,
    /// Per queue: the class of the packet that holds a channel, and how many flits stood there when the cycle began.
    queues: Vec<(u8, u16)>,
}

impl ClassRegisters {
    /// For a number of ports, each with `1 << vc_shift` queues.
    pub fn new(classes: bool, ports: usize, vc_shift: u32) -> ClassRegisters {
        let count = if classes { ports } else { 0 };
        let ports = vec![Classes::default(); count];
        ClassRegisters { asking: ports.clone(), ports, queues: vec![(0, 0); count << vc_shift] }
    }
}

/// The class of the packet at the head of a queue.
fn class<T: Tables<W>, const W: usize>(here: &Here<'_, W>, tables: &T, local: usize) -> u8 {
    let channel = (local & ((1 << here.flow.vc_shift) - 1)) as u8 - here.flow.vcs.set;
    tables.class(channel, &here.flow.pool[here.inputs[local].head as usize].flit)
}

fn of<'a, const W: usize>(here: &'a mut Here<'_, W>, local: usize) -> &'a mut Classes {
    let at = here.base as usize + usize::from(here.inputs[local].out_port);
    &mut here.arbiters.classes.asking[at]
}

/// Moves out of `routed`, words of bits of queues that ask for a channel, to `kept` those that are kept back in this cycle.
pub(super) fn keep_back<T: Tables<W>, const W: usize>(
    here: &mut Here<'_, W>,
    tables: &T,
    routed: &mut [u64],
    kept: &mut [u64],
) {
    kept.fill(0);
    for w in 0..routed.len() {
        for local in bits(routed, w) {
            let of = of(here, local);
            (of.highest, of.lowest) = (0, u8::MAX);
        }
    }
    for w in 0..routed.len() {
        for local in bits(routed, w) {
            let class = class(here, tables, local);
            let of = of(here, local);
            (of.highest, of.lowest) = (of.highest.max(class), of.lowest.min(class));
        }
    }
    let bound = here.router.class_bound;
    for w in 0..routed.len() {
        for local in bits(routed, w) {
            let class = class(here, tables, local);
            if of(here, local).keeps_back(class, bound) {
                routed[w] &= !(1 << (local & 63));
                kept[w] |= 1 << (local & 63);
            }
        }
    }
}

/// Counts what channel allocation granted of what it saw: queues of `seen` that hold a channel now.
pub(super) fn count<T: Tables<W>, const W: usize>(here: &mut Here<'_, W>, tables: &T, seen: &[u64]) {
    for (w, seen) in seen.iter().enumerate() {
        let granted = [seen & here.masks[w].active];
        for bit in bits(&granted, 0) {
            let local = w << 6 | bit;
            let class = class(here, tables, local);
            of(here, local).granted(class);
            let queue = here.first_queue + local;
            here.arbiters.classes.queues[queue].0 = class;
        }
    }
}

/// Whether a queue that holds a channel has a flit and a credit.
fn could_leave<const W: usize>(here: &Here<'_, W>, local: usize) -> bool {
    let queue = &here.inputs[local];
    here.gate(usize::from(queue.out_port)).credit >> queue.state.out_vc() & 1 == 1
}

/// Moves out of `active`, words of bits of queues that hold a channel, to `kept` those whose flit is kept back in this cycle.
pub(super) fn keep_flits_back<const W: usize>(here: &mut Here<'_, W>, active: &mut [u64], kept: &mut [u64]) {
    kept.fill(0);
    let (base, first, bound) = (here.base as usize, here.first_queue, here.router.class_bound);
    for w in 0..active.len() {
        for local in bits(active, w) {
            let input = &here.inputs[local];
            let out = base + usize::from(input.out_port);
            here.arbiters.classes.queues[first + local].1 = input.len;
            let of = &mut here.arbiters.classes.ports[out];
            (of.highest, of.lowest) = (0, u8::MAX);
        }
    }
    for w in 0..active.len() {
        for local in bits(active, w) {
            if could_leave(here, local) {
                let out = base + usize::from(here.inputs[local].out_port);
                let ClassRegisters { ports, queues, .. } = &mut here.arbiters.classes;
                let (of, class) = (&mut ports[out], queues[first + local].0);
                (of.highest, of.lowest) = (of.highest.max(class), of.lowest.min(class));
            }
        }
    }
    for w in 0..active.len() {
        for local in bits(active, w) {
            let out = base + usize::from(here.inputs[local].out_port);
            let ClassRegisters { ports, queues, .. } = &here.arbiters.classes;
            if could_leave(here, local) && ports[out].keeps_back(queues[first + local].0, bound) {
                active[w] &= !(1 << (local & 63));
                kept[w] |= 1 << (local & 63);
            }
        }
    }
}

/// Counts the flits that left, of the queues that switch allocation saw.
pub(super) fn count_flits<const W: usize>(here: &mut Here<'_, W>, seen: &[u64]) {
    for w in 0..seen.len() {
        for local in bits(seen, w) {
            let input = &here.inputs[local];
            let out = here.base as usize + usize::from(input.out_port);
            let ClassRegisters { ports, queues, .. } = &mut here.arbiters.classes;
            let (class, before) = queues[here.first_queue + local];
            if input.len < before {
                ports[out].granted(class);
            }
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
