//! Link monitors: what must hold on every link and virtual channel of a checked run (requirement K-FC-1).
//!
//! | rule | when it is checked | cost |
//! |---|---|---|
//! | credits held + flits under way + flits buffered + credits under way = buffer depth | at every arrival of a credit | O(1) |
//! | flits buffered = flits that arrived - credits that were sent back | whenever a flit enters or leaves a queue | O(1) |
//! | nothing arrives that was not sent | at every arrival | O(1) |
//! | no flit of a second packet between the head and the tail of a first on one channel | at every send | O(1) |
//! | a credit never exceeds the buffer it stands for | at every arrival of a credit | O(1) |
//!
//! Each looks at one end of the link only, at what the event has in its hands; together they say that no flit and no credit
//! is lost or made anywhere between a credit counter and the queue it stands for. A credit is counted for the queue it comes
//! from: one that goes to a wrong channel is caught there when it arrives, or, if that channel has credits of its own under
//! way, with the last of them. A breach is a bug of the model and panics with the numbers. Runs without monitors are faster
//! by what this costs; the results are the same.

use super::Flit;
use super::arena::Arena;
use super::ports::{Output, Ports};
use super::wires::Input;
use std::ops::Range;

/// What is known of the link into an input queue: 8 bytes, so that the queues of a port are not many lines of the cache.
#[derive(Clone, Copy, Debug, Default)]
struct Watch {
    /// Flits on their way to the queue.
    flits: u16,
    /// Credits on their way back from it.
    credits: u16,
    /// Flits that have arrived and whose credits have not been sent back.
    buffered: u16,
    /// Whether the head of a packet has been sent and its tail has not.
    in_packet: bool,
}

/// Counters of every input queue of a part of a system.
#[derive(Clone, Debug)]
pub(super) struct Monitor {
    watches: Arena<Watch>,
    /// Of a divided system: whether a packet is under way on an output channel that leads into another part.
    leaving: Arena<bool>,
}

impl Monitor {
    /// For the queues, and the channels of the same ports, with these numbers, at rest; those of a whole system or of a
    /// part of a divided one.
    pub fn new(channels: Range<usize>, divided: bool) -> Monitor {
        let (from, count) = (channels.start, channels.len());
        Monitor {
            watches: Arena::new(from, vec![Watch::default(); count]),
            leaving: Arena::new(from, vec![false; if divided { count } else { 0 }]),
        }
    }

    /// A flit leaves on a channel to a queue of the same part.
    #[inline]
    pub fn flit_sent(&mut self, channel: usize, queue: usize, flit: &Flit) {
        let watch = &mut self.watches[queue];
        watch.flits += 1;
        in_order(channel, &mut watch.in_packet, flit);
    }

    /// A flit leaves on a channel to another part of the system; it is only counted there.
    #[inline]
    pub fn flit_left(&mut self, channel: usize, flit: &Flit) {
        in_order(channel, &mut self.leaving[channel], flit);
    }

    /// A flit has entered the queue that a link of the same part leads to.
    #[inline]
    pub fn flit_arrived(&mut self, queue: usize, entered: &Input) {
        let watch = &mut self.watches[queue];
        take(&mut watch.flits, queue, "a flit arrived that nobody sent");
        watch.buffered += 1;
        if watch.buffered != entered.len {
            miscounted(queue, *watch, entered.len);
        }
    }

    /// A flit has left a queue, and its credit goes back within the same part.
    #[inline]
    pub fn credit_sent(&mut self, queue: usize, left: &Input) {
        let watch = &mut self.watches[queue];
        take(&mut watch.buffered, queue, "a credit is sent for a flit that did not arrive");
        watch.credits += 1;
        if watch.buffered != left.len {
            miscounted(queue, *watch, left.len);
        }
    }

    /// The credit of a flit that stood in queue `far` has come back to the channel.
    #[inline]
    pub fn credit_arrived(&mut self, channel: usize, out: Output, far: usize) {
        let watch = &mut self.watches[far];
        take(&mut watch.credits, far, "a credit arrived that this queue did not send");
        let Watch { flits, credits, buffered, .. } = *watch;
        let all = [out.credits, flits, credits, buffered].map(u32::from).iter().sum::<u32>();
        if all != u32::from(out.depth) {
            unbalanced(channel, out, *watch);
        }
    }

    /// A credit of a link between two parts of the system: nobody sees both ends of it in one cycle, so only the last
    /// rule is checked, and at the end of the run that all credits are back.
    pub fn credit_crossed(channel: usize, out: Output) {
        let Output { credits: held, depth, .. } = out;
        assert!(held <= depth, "channel {channel}: {held} credits held are more than the depth {depth}");
    }

    /// Every channel at rest: all credits are back where they began.
    pub fn at_rest(&self, ports: &Ports) -> bool {
        let back = |channel: usize| {
            let Output { credits, depth, .. } = *ports.channel(channel);
            credits == depth
        };
        self.watches.range().all(back)
            && self.watches.items().iter().all(|watch| watch.flits == 0 && watch.credits == 0)
    }
}

/// Takes one off a count, of which there must be one.
#[inline]
fn take(count: &mut u16, queue: usize, otherwise: &str) {
    if *count == 0 {
        unheard_of(queue, otherwise);
    }
    *count -= 1;
}

#[cold]
#[inline(never)]
fn unheard_of(queue: usize, what: &str) -> ! {
    panic!("queue {queue}: {what}")
}

/// No head between head and tail, no body before a head.
#[inline]
fn in_order(channel: usize, in_packet: &mut bool, flit: &Flit) {
    if flit.tag.head() == *in_packet {
        out_of_order(channel, flit, *in_packet);
    }
    *in_packet = !flit.tag.tail();
}

#[cold]
#[inline(never)]
fn out_of_order(channel: usize, flit: &Flit, in_packet: bool) -> ! {
    panic!(
        "channel {channel}: {} (seq {}) while {}",
        if flit.tag.head() { "a head flit" } else { "a body flit" },
        flit.tag.seq(),
        if in_packet { "another packet is under way" } else { "no packet is under way" }
    )
}

#[cold]
#[inline(never)]
fn miscounted(queue: usize, watch: Watch, len: u16) -> ! {
    panic!("queue {queue}: {len} flits stand in it, and {} arrived whose credits were not sent back", watch.buffered)
}

#[cold]
#[inline(never)]
fn unbalanced(channel: usize, out: Output, Watch { flits, credits, buffered, .. }: Watch) -> ! {
    let Output { credits: held, depth, .. } = out;
    panic!(
        "channel {channel}: {held} credits held + {flits} flits under way + {buffered} flits buffered + {credits} credits under way is not the depth {depth}"
    )
}

#[cfg(test)]
mod tests {
    use super::super::arbiter::Policy;
    use super::super::ports::{Link, channel_mut};
    use super::super::routing::Routes;
    use super::super::topology::{Common, LinkParams, Mesh};
    use super::super::traffic::{SourceCfg, Target, Traffic, TrafficEnd};
    use super::super::{Blocks, Network, NoBump, NoJoin, Parts, Pipeline, RouterCfg, Step, SwitchCfg, Vcs};
    use super::*;
    use crate::probe::{Period, Selection, Tracer, VcdSink};

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
        Pair { monitor: Monitor::new(0..2, false), inputs: Arena::new(0, vec![Input::IDLE; 2]), ports }
    }

    impl Pair {
        fn credits(&mut self) -> &mut u16 {
            &mut channel_mut(self.ports.port_mut(0), 0).credits
        }

        fn send(&mut self, flit: &Flit) {
            *self.credits() -= 1;
            self.monitor.flit_sent(0, 1, flit);
        }

        fn arrive(&mut self) {
            self.inputs[1].len += 1;
            self.monitor.flit_arrived(1, &self.inputs[1]);
        }

        fn leave(&mut self) {
            self.inputs[1].len -= 1;
            self.monitor.credit_sent(1, &self.inputs[1]);
        }

        fn credit_back(&mut self) {
            *self.credits() += 1;
            self.monitor.credit_arrived(0, *self.ports.channel(0), 1);
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
        assert!(!pair.monitor.at_rest(&pair.ports));
        pair.arrive();
        pair.arrive();
        assert!(!pair.monitor.at_rest(&pair.ports));
        pair.leave();
        pair.credit_back();
        pair.leave();
        pair.credit_back();
        assert!(pair.monitor.at_rest(&pair.ports));
    }

    #[test]
    #[should_panic(expected = "queue 1: 1 flits stand in it, and 2 arrived")]
    fn a_flit_that_vanished_from_its_queue_is_caught_at_the_next_one() {
        let mut pair = pair();
        pair.send(&whole());
        pair.send(&whole());
        pair.arrive();
        pair.inputs[1].len -= 1;
        pair.arrive();
    }

    #[test]
    #[should_panic(expected = "queue 1: 0 flits stand in it, and 1 arrived")]
    fn a_flit_that_vanished_from_its_queue_is_caught_when_another_one_leaves() {
        let mut pair = pair();
        pair.send(&whole());
        pair.send(&whole());
        pair.arrive();
        pair.arrive();
        pair.inputs[1].len -= 1;
        pair.leave();
    }

    #[test]
    #[should_panic(expected = "queue 1: a credit arrived that this queue did not send")]
    fn a_credit_of_another_queue_is_caught_whatever_is_under_way() {
        let mut pair = pair();
        pair.send(&whole());
        pair.send(&whole());
        pair.credit_back();
    }

    #[test]
    #[should_panic(expected = "queue 1: a credit arrived that this queue did not send")]
    fn a_credit_of_another_queue_is_caught_with_the_last_that_is_under_way() {
        let mut pair = pair();
        pair.send(&whole());
        pair.arrive();
        pair.leave();
        // The one from elsewhere cannot be told from the own one until that comes.
        pair.credit_back();
        pair.credit_back();
    }

    #[test]
    #[should_panic(expected = "queue 1: a credit is sent for a flit that did not arrive")]
    fn a_credit_that_is_sent_twice_is_caught() {
        let mut pair = pair();
        pair.send(&whole());
        pair.arrive();
        pair.leave();
        pair.monitor.credit_sent(1, &Input::IDLE);
    }

    #[test]
    #[should_panic(expected = "queue 1: a flit arrived that nobody sent")]
    fn a_flit_out_of_nowhere_is_caught() {
        pair().arrive();
    }

    #[test]
    #[should_panic(expected = "queue 1: 2 flits stand in it, and 1 arrived")]
    fn a_flit_that_came_out_of_nowhere_is_caught_at_the_next_one() {
        let mut pair = pair();
        pair.send(&whole());
        pair.inputs[1].len += 1;
        pair.arrive();
    }

    #[test]
    #[should_panic(
        expected = "channel 0: 3 credits held + 0 flits under way + 0 flits buffered + 0 credits under way is not the depth 4"
    )]
    fn a_lost_credit_is_caught_at_the_next_one() {
        let mut pair = pair();
        pair.send(&whole());
        pair.arrive();
        pair.leave();
        *pair.credits() -= 1;
        pair.credit_back();
    }

    #[test]
    #[should_panic(expected = "5 credits held")]
    fn a_credit_out_of_nothing_is_caught() {
        let mut pair = pair();
        pair.send(&whole());
        pair.arrive();
        pair.leave();
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
    #[should_panic(expected = "channel 5: a head flit (seq 9) while another packet is under way")]
    fn a_second_packet_on_a_channel_into_another_part_is_caught() {
        let mut monitor = Monitor::new(4..8, true);
        monitor.flit_left(5, &Flit::part(0, 0, 8, 0, 3, 0));
        monitor.flit_left(6, &Flit::part(0, 0, 9, 0, 3, 0));
        monitor.flit_left(5, &Flit::part(0, 0, 9, 0, 3, 0));
    }

    #[test]
    #[should_panic(expected = "a body flit (seq 8) while no packet is under way")]
    fn a_body_without_a_head_is_caught() {
        pair().send(&Flit::part(0, 0, 8, 1, 3, 0));
    }

    type Net = Network<Routes, NoJoin<Routes>, NoBump<Routes>, TrafficEnd<Routes>, 1>;

    /// A mesh of four switches under load, whole or in parts, over links of so many cycles a flit, in which something is
    /// spoilt under way; does that break a rule?
    fn notices(monitors: bool, parts: usize, cycles_per_flit: u16, traced: bool, spoil: fn(&mut Net)) -> bool {
        let link = LinkParams { latency: 2, cycles_per_flit };
        let common = Common { vcs: Vcs { set: 0, unicast: 2 }, engine: false, link, local: link };
        let layout = Mesh { size: vec![4, 1], concentration: 1 }.layout(&common);
        let cfg = SwitchCfg {
            pipeline: Pipeline::new(2),
            policy: Policy::RoundRobin,
            monitors,
            router: RouterCfg::default(),
        };
        let source = SourceCfg {
            rate: 0.3,
            packet_flits: 2,
            target: Target::Uniform { ends: 4 },
            start: 0,
            stop: 400,
            class: 0,
        };
        let ends = (0..4).map(|end| TrafficEnd::new(Traffic::new(end, std::slice::from_ref(&source), 5))).collect();
        let routes = Routes { routing: layout.routing.clone(), ends: layout.ends.clone() };
        let blocks = Blocks { joins: Vec::new(), no_join: NoJoin::default(), bumps: Vec::new(), ends };
        let parts = Parts { count: parts, ..Parts::default() };
        let names = vec!["p2p0".to_owned(), "p2p1".to_owned()];
        let mut net = Net::in_parts(parts, layout.plan.clone(), routes, blocks, cfg, &|_, _| 8, names);
        if traced {
            let period = Period::from_hz(1_000_000_000).expect("1 GHz");
            let (sink, _) = VcdSink::in_memory();
            net.record(Tracer::new(period, Selection::new(["**"]).expect("a glob"), Box::new(sink))).expect("signals");
        }
        while net.now() < 100 {
            net.step();
        }
        spoil(&mut net);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| while net.step() != Step::Quiet {})).is_err()
    }

    /// The sending port of the first part's link that leads to switch `to`.
    fn port_to(net: &Net, to: u32) -> u32 {
        let link = net.plan().links.iter().find(|link| (link.a.0, link.b.0) == (to - 1, to));
        let (node, port) = link.expect("switches stand in a row").a;
        net.first.wires.port(node, port)
    }

    /// A channel of a link within a part is short of a credit that nobody spent.
    fn lose_a_credit(net: &mut Net) {
        let port = port_to(net, 1);
        let out = channel_mut(net.first.wires.ports.port_mut(port), 0);
        assert!(out.credits > 1, "one can be taken");
        out.credits -= 1;
    }

    /// A packet that never began is under way on a channel into another part, or a tail was never sent.
    fn lose_a_head(net: &mut Net) {
        let channel = net.first.wires.queue(port_to(net, 2), 0);
        if let Some(monitor) = &mut net.first.wires.flow.monitor {
            monitor.leaving[channel] ^= true;
        }
    }

    #[test]
    fn monitors_look_on_where_a_link_leads_into_another_part() {
        for cycles_per_flit in [1, 2] {
            assert!(notices(true, 2, cycles_per_flit, false, lose_a_head), "{cycles_per_flit} cycles a flit");
        }
    }

    #[test]
    fn monitors_look_on_however_a_system_is_evaluated() {
        for (parts, cycles_per_flit, traced) in
            [(1, 1, false), (1, 2, false), (1, 1, true), (1, 2, true), (2, 1, false), (2, 2, false)]
        {
            let at = format!("{parts} parts, {cycles_per_flit} cycles a flit, traced: {traced}");
            assert!(notices(true, parts, cycles_per_flit, traced, lose_a_credit), "{at}");
            assert!(!notices(false, parts, cycles_per_flit, traced, lose_a_credit), "{at}, without monitors");
        }
    }
}
