//! Traffic classes at the outputs of a switch: whose packet gets a channel first, and whose flit the link.
//!
//! ```text
//!   heads that ask for channels of output o:   class 0   class 7   class 0   class 7
//!   channel allocation sees first                        class 7             class 7
//!   and then, of what is left,                 class 0             class 0
//! ```
//!
//! Both allocators serve one class after the other, the highest first: each class gets what those before it left free, and
//! within a class the allocator decides as if there were no classes. So a packet of a high class that has a channel of its
//! own shares neither its crossbar input nor its link with lower ones, and whatever a high class cannot use goes to a lower
//! one in the same cycle.
//!
//! Classes compete for channels of outputs in channel allocation, and for outputs and crossbar inputs in switch allocation.
//! Each of these counts its grants in a row past a request of a lower class. After [`RouterCfg::class_bound`](super::RouterCfg)
//! of them requests of all lower classes come first, until one is served. The count is of packets at a channel, of flits at
//! an output or a crossbar input; the bound is the same *\[chosen\]*.
//!
//! Of speculative requests, which are served after all others, higher classes go first too; nothing bounds that, for a
//! packet speculates only until it has its channel.
//!
//! A packet that has its channel keeps it to its tail, whatever its class, and packets of one queue leave in order. So
//! a head of a high class always waits for the packets before it in its own queue, and, where there is one channel, for
//! the rest of the packet under way.
//!
//! For families whose packets have no classes ([`Tables::CLASSES`]) this code is not compiled.

use super::PortSet;
use super::portset::{bits, each};
use super::switch_view::SwitchView;
use super::tables::Tables;

/// A resource that several classes may request: an output channel, an output or a crossbar input.
#[derive(Clone, Copy, Debug, Default, watershed_state::Saved)]
struct ContentionPoint {
    /// Highest and lowest class of this cycle's requests; once they are served, the lowest of those that were not.
    highest: u8,
    lowest: u8,
    /// Whether requests below the highest class come first in this cycle.
    due: bool,
    /// Grants in a row past a request of a lower class.
    passed_q: u8,
}

impl ContentionPoint {
    /// There are no requests yet.
    fn clear(&mut self) {
        (self.highest, self.lowest) = (0, u8::MAX);
    }

    fn request(&mut self, class: u8) {
        (self.highest, self.lowest) = (self.highest.max(class), self.lowest.min(class));
    }

    /// All requests of the cycle are known: decides whether lower classes are promoted.
    fn decide_promotion(&mut self, bound: u8) {
        self.due = bound > 0 && self.passed_q >= bound && self.lowest < self.highest;
    }

    fn promotes(self, class: u8) -> bool {
        self.due && class < self.highest
    }

    /// A request of this class was served at this level, and those that were not have asked again.
    fn served(&mut self, class: u8, level: u8) {
        let past = class > self.lowest && self.lowest < u8::MAX;
        let in_turn = self.due && level == PROMOTED;
        self.passed_q = if past && !in_turn { self.passed_q.saturating_add(1) } else { 0 };
    }
}

/// Levels are served from the highest down: those that are promoted, then each class, then those that cannot be served.
const PROMOTED: u8 = 31;
const CANNOT: u8 = 0;

fn level_of(class: u8, promoted: bool) -> u8 {
    debug_assert!(class + 1 < PROMOTED, "class {class}");
    if promoted { PROMOTED } else { class + 1 }
}

/// The levels that a set has, the highest first.
fn descending(levels: u32) -> impl Iterator<Item = u8> {
    (0..=PROMOTED).rev().filter(move |level| levels >> level & 1 == 1)
}

/// A packet at the head of a queue.
#[derive(Clone, Copy, Debug, Default, watershed_state::Saved)]
struct Packet {
    class: u8,
    /// When it is served in this cycle.
    level: u8,
    /// Flits in its queue at the start of the cycle.
    flits: u16,
}

/// What the allocators of all switches know of classes; nothing where packets have none.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
pub(super) struct ClassRegisters {
    /// Per channel of an output port.
    channels: Vec<ContentionPoint>,
    /// Per output port.
    outputs: Vec<ContentionPoint>,
    /// Per crossbar input, at the number of its first queue.
    inputs: Vec<ContentionPoint>,
    /// Per queue.
    queues: Vec<Packet>,
    /// The class of all packets that have asked so far; none has, or they differ.
    only: Option<u8>,
    /// Whether they differ. Until then no grant goes past a request of a lower class, so all is served at once and nothing counted.
    differ: bool,
}

impl ClassRegisters {
    /// For a number of ports, each with `1 << vc_shift` queues.
    pub fn new(classes: bool, ports: usize, vc_shift: u32) -> ClassRegisters {
        let (ports, queues) = if classes { (ports, ports << vc_shift) } else { (0, 0) };
        let points = |count| vec![ContentionPoint::default(); count];
        ClassRegisters {
            channels: points(queues),
            outputs: points(ports),
            inputs: points(queues),
            queues: vec![Packet::default(); queues],
            only: None,
            differ: false,
        }
    }

    /// A packet of this class asks.
    #[inline]
    fn note(&mut self, class: u8) {
        self.differ |= *self.only.get_or_insert(class) != class;
    }
}

/// The numbers of all queues whose bit is set.
fn all(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    (0..words.len()).flat_map(|w| bits(words, w))
}

/// The class of the packet at the head of a queue.
fn class<T: Tables<W>, const W: usize>(view: &SwitchView<'_, W>, tables: &T, local: usize) -> u8 {
    let channel = view.vc(local) as u8 - view.flow.vcs.set;
    tables.class(channel, &view.flow.pool[view.inputs[local].head as usize].flit)
}

fn packet<'a, const W: usize>(view: &'a mut SwitchView<'_, W>, local: usize) -> &'a mut Packet {
    &mut view.arbiters.classes.queues[view.first_queue + local]
}

/// The channels that a queue asks for.
fn each_channel<const W: usize>(
    view: &mut SwitchView<'_, W>,
    local: usize,
    mut of: impl FnMut(&mut ContentionPoint, &mut Packet),
) {
    let first = view.first_queue + view.number(view.inputs[local].out_port, 0);
    let channels = view.allowed(local) & !(u32::MAX << view.flow.vcs.unicast);
    let packet = view.first_queue + local;
    let classes = &mut view.arbiters.classes;
    for channel in each(u64::from(channels)) {
        of(&mut classes.channels[first + channel], &mut classes.queues[packet]);
    }
}

/// Channel allocation among `asking`, words of bits of queues: `serve` sees one level of them after the other, in `seen`.
pub(super) fn allocate_channels<T: Tables<W>, const W: usize>(
    view: &mut SwitchView<'_, W>,
    tables: &T,
    asking: &[u64],
    seen: &mut [u64],
    mut serve: impl FnMut(&mut SwitchView<'_, W>, &[u64]),
) {
    let bound = view.router.class_bound;
    for local in all(asking) {
        let class = class(view, tables, local);
        packet(view, local).class = class;
        view.arbiters.classes.note(class);
    }
    if !view.arbiters.classes.differ {
        serve(view, asking);
        return;
    }
    all(asking).for_each(|local| each_channel(view, local, |point, _| point.clear()));
    all(asking).for_each(|local| each_channel(view, local, |point, packet| point.request(packet.class)));
    let mut levels = 0u32;
    for local in all(asking) {
        let mut promoted = false;
        each_channel(view, local, |point, packet| {
            point.decide_promotion(bound);
            promoted |= point.promotes(packet.class);
        });
        let packet = packet(view, local);
        packet.level = level_of(packet.class, promoted);
        levels |= 1 << packet.level;
    }
    for level in descending(levels) {
        pick(view, asking, seen, |view, local| packet(view, local).level == level);
        serve(view, seen);
    }
    // What is left asks again: it is those that the others went past.
    all(asking).for_each(|local| each_channel(view, local, |point, _| point.clear()));
    for local in all(asking) {
        if !has_channel(view, local) {
            each_channel(view, local, |point, packet| point.request(packet.class));
        }
    }
    for local in all(asking) {
        if !has_channel(view, local) {
            continue;
        }
        let (out, vc) = (view.inputs[local].out_port, view.inputs[local].state.out_vc());
        let at = view.first_queue + view.number(out, 0) - usize::from(view.flow.vcs.set) + usize::from(vc);
        let ClassRegisters { channels, queues, .. } = &mut view.arbiters.classes;
        let packet = queues[view.first_queue + local];
        channels[at].served(packet.class, packet.level);
    }
}

fn has_channel<const W: usize>(view: &SwitchView<'_, W>, local: usize) -> bool {
    view.masks[local >> 6].active >> (local & 63) & 1 == 1
}

/// Those of `asking` that are wanted.
fn pick<const W: usize>(
    view: &mut SwitchView<'_, W>,
    asking: &[u64],
    seen: &mut [u64],
    mut is_wanted: impl FnMut(&mut SwitchView<'_, W>, usize) -> bool,
) {
    seen.fill(0);
    for local in all(asking) {
        if is_wanted(view, local) {
            seen[local >> 6] |= 1 << (local & 63);
        }
    }
}

/// Whether the flit at the head of a queue that holds a channel could leave if nobody competed.
fn could_leave<const W: usize>(view: &SwitchView<'_, W>, local: usize) -> bool {
    let queue = &view.inputs[local];
    let out = queue.out_port;
    view.vc_masks(usize::from(out)).credit >> queue.state.out_vc() & 1 == 1
        && !view.taken_in.contains((local >> view.shift()) as u16)
        && !view.taken_out.contains(out)
        && view.flow.is_free(view.base + u32::from(out)).is_ok()
}

/// Whether a flit of a queue has left in this cycle.
fn has_left<const W: usize>(view: &SwitchView<'_, W>, local: usize) -> bool {
    view.inputs[local].len < view.arbiters.classes.queues[view.first_queue + local].flits
}

/// The output and the crossbar input that the flit of a queue needs.
fn both<const W: usize>(view: &mut SwitchView<'_, W>, local: usize, mut of: impl FnMut(&mut ContentionPoint, Packet)) {
    let output = view.base as usize + usize::from(view.inputs[local].out_port);
    let port = local >> view.shift() << view.shift();
    let input = view.first_queue + port + usize::from(view.vc(local)) % usize::from(view.router.input_speedup);
    let ClassRegisters { outputs, inputs, queues, .. } = &mut view.arbiters.classes;
    let packet = queues[view.first_queue + local];
    of(&mut outputs[output], packet);
    of(&mut inputs[input], packet);
}

/// Switch allocation among `asking`, queues that hold a channel: `serve` sees one level of them after the other, in `seen`,
/// without those whose output or crossbar input is taken by then.
pub(super) fn allocate_crossings<const W: usize>(
    view: &mut SwitchView<'_, W>,
    asking: &[u64],
    seen: &mut [u64],
    mut serve: impl FnMut(&mut SwitchView<'_, W>, &[u64]),
) {
    if !view.arbiters.classes.differ {
        serve(view, asking);
        return;
    }
    let bound = view.router.class_bound;
    for local in all(asking) {
        packet(view, local).flits = view.inputs[local].len;
        packet(view, local).level = if could_leave(view, local) { level_of(0, false) } else { CANNOT };
        both(view, local, |point, _| point.clear());
    }
    let asks = |point: &mut ContentionPoint, packet: Packet| {
        if packet.level != CANNOT {
            point.request(packet.class);
        }
    };
    all(asking).for_each(|local| both(view, local, asks));
    let mut levels = 0u32;
    for local in all(asking) {
        let mut promoted = false;
        both(view, local, |point, packet| {
            point.decide_promotion(bound);
            promoted |= point.promotes(packet.class);
        });
        let packet = packet(view, local);
        if packet.level != CANNOT {
            packet.level = level_of(packet.class, promoted);
        }
        levels |= 1 << packet.level;
    }
    let (mut inputs, mut outputs): (PortSet<W>, PortSet<W>) = (PortSet::EMPTY, PortSet::EMPTY);
    for level in descending(levels) {
        pick(view, asking, seen, |view, local| {
            packet(view, local).level == level
                && !inputs.contains(view.scratch.xbar_inputs[local])
                && !outputs.contains(view.inputs[local].out_port)
        });
        serve(view, seen);
        for local in all(seen) {
            if has_left(view, local) {
                inputs.insert(view.scratch.xbar_inputs[local]);
                outputs.insert(view.inputs[local].out_port);
            }
        }
    }
    all(asking).for_each(|local| both(view, local, |point, _| point.clear()));
    for local in all(asking) {
        if !has_left(view, local) {
            both(view, local, asks);
        }
    }
    for local in all(asking) {
        if has_left(view, local) {
            both(view, local, |point, packet| point.served(packet.class, packet.level));
        }
    }
}

/// The speculative requests of a cycle, the highest class first.
pub(super) fn speculate<const W: usize>(
    view: &mut SwitchView<'_, W>,
    asking: &[u64],
    seen: &mut [u64],
    mut serve: impl FnMut(&mut SwitchView<'_, W>, &[u64]),
) {
    if !view.arbiters.classes.differ {
        serve(view, asking);
        return;
    }
    let levels = all(asking).fold(0u32, |levels, local| levels | 1 << packet(view, local).class);
    for class in descending(levels) {
        pick(view, asking, seen, |view, local| packet(view, local).class == class);
        serve(view, seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_class_goes_first_and_others_wait_up_to_the_bound() {
        for bound in [0u8, 1, 3, 254] {
            let mut output = ContentionPoint::default();
            let mut order = Vec::new();
            for _ in 0..600 {
                // Classes 2, 5 and 7 ask all the time, and the first of those of the highest level is served.
                let all = [5, 2, 7];
                output.clear();
                for class in all {
                    output.request(class);
                }
                output.decide_promotion(bound);
                let levels = all.map(|class| level_of(class, output.promotes(class)));
                let first = *levels.iter().max().unwrap();
                let served = all[levels.iter().position(|&level| level == first).unwrap()];
                output.clear();
                for class in all.into_iter().filter(|&class| class != served) {
                    output.request(class);
                }
                output.served(served, first);
                order.push(served);
            }
            let first = order.iter().position(|&class| class < 7);
            assert_eq!(first, (bound > 0).then_some(usize::from(bound)), "bound {bound}");
            let lower = order.iter().filter(|&&class| class < 7).count();
            assert_eq!(lower, if bound == 0 { 0 } else { 600 / (usize::from(bound) + 1) }, "bound {bound}");
        }
    }

    #[test]
    fn one_class_is_never_promoted() {
        let mut output = ContentionPoint { passed_q: 9, ..ContentionPoint::default() };
        output.clear();
        output.request(3);
        output.decide_promotion(2);
        assert!(!output.promotes(3));
        output.clear();
        output.served(3, level_of(3, false));
        assert_eq!(output.passed_q, 0, "it went past nobody");
    }
}
