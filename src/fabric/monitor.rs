//! Link monitors: the rules that every link and virtual channel of a checked run must keep (requirement K-FC-1).
//!
//! ```text
//!   credit counter ──── flit n, n+1, … ───▶ queue        sent: n of the next flit          arrived: n due next
//!        of the channel ◀── credit k, k+1, … ── of it     back: sent - (depth - held)       left: arrived - buffered
//! ```
//!
//! | rule | when it is checked | cost |
//! |---|---|---|
//! | every flit that is sent arrives, once and in order | at every arrival: its number is the one that is due | O(1) |
//! | every flit that leaves its queue gives a credit, which arrives, once and in order | at every arrival of a credit: its number is `back` | O(1) |
//! | a credit never exceeds the buffer it stands for | at every arrival of a credit | O(1) |
//! | no flit of a second packet between the head and the tail of a first on one channel | at every send | O(1) |
//!
//! Together they say that credits held + flits under way + flits buffered + credits under way = buffer depth. Flits
//! under way are `sent - arrived`, credits under way are `left - back`, so the sum is the depth whatever the counts
//! are. A flit or a credit that is lost or made anywhere, in a link, a queue or a counter, shifts the numbers of those
//! that follow it, so the next one on the same way fails the check. If none follows, a credit is missing at the end of
//! the run.
//!
//! The registers are in the records of the two ends of the link, which flit and credit touch anyway, and the numbers
//! travel with them. No check reads the far end, so a link between two parts of a divided system is watched like any
//! other. Numbers are modulo 256 and begin at another value for every queue ([`first_number`]), so that a flit in a
//! wrong queue fails too. One in 256 has the right number by coincidence; the next one then fails. A breach is a bug of
//! the model and panics with the numbers. Runs without monitors are faster, with the same results.

use super::Flit;
use super::ports::{Output, Ports};
use super::wires::Input;

/// The number of the first flit that enters a queue.
#[inline]
pub(super) fn first_number(queue: usize) -> u8 {
    (queue ^ queue >> 8 ^ queue >> 16) as u8
}

/// A flit leaves on a channel, `out`. Returns its number.
#[inline(always)]
pub(super) fn flit_sent(channel: usize, out: &mut Output, flit: &Flit) -> u8 {
    // No head between head and tail, no body before a head.
    if flit.tag.head() == out.in_packet {
        out_of_order(channel, flit, out.in_packet);
    }
    out.in_packet = !flit.tag.tail();
    let number = out.sent;
    out.sent = number.wrapping_add(1);
    number
}

/// A flit has arrived in a queue.
#[inline(always)]
pub(super) fn flit_arrived(queue: usize, entered: &mut Input, number: u8) {
    if number != entered.arrived {
        unexpected_flit(queue, number, entered.arrived);
    }
    entered.arrived = number.wrapping_add(1);
}

/// The flit at the head of a queue is about to leave it. Returns the number of its credit, which is the flit's.
#[inline(always)]
pub(super) fn credit_sent(queue: &Input) -> u8 {
    queue.arrived.wrapping_sub(queue.len as u8)
}

/// A credit has come back to a channel, which is as it is then.
#[inline(always)]
pub(super) fn credit_arrived(channel: usize, out: &Output, number: u8) {
    let under_way = out.depth.wrapping_sub(out.credits) as u8;
    if out.credits > out.depth || number.wrapping_add(under_way).wrapping_add(1) != out.sent {
        unexpected_credit(channel, *out, number);
    }
}

/// Every channel at rest: all credits are back where they began.
pub(super) fn at_rest(ports: &Ports) -> bool {
    ports.channels().all(|out| out.credits == out.depth)
}

#[cold]
#[inline(never)]
fn unexpected_flit(queue: usize, number: u8, due: u8) -> ! {
    panic!("queue {queue}: flit {number} arrived, and flit {due} is due")
}

#[cold]
#[inline(never)]
fn unexpected_credit(channel: usize, Output { credits, depth, sent, .. }: Output, number: u8) -> ! {
    panic!(
        "channel {channel}: with credit {number} it holds {credits} of {depth}, and flit {sent} is the next to be sent"
    )
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

#[cfg(test)]
mod tests {
    use super::super::arbiter::Policy;
    use super::super::ports::channel_mut;
    use super::super::routing::Routes;
    use super::super::topology::{Common, LinkParams, Mesh};
    use super::super::traffic::{SourceCfg, Target, Traffic, TrafficEnd};
    use super::super::{Blocks, Network, NoBump, NoJoin, Parts, Pipeline, RouterCfg, Step, SwitchCfg, Vcs};
    use super::*;
    use std::collections::VecDeque;
    use watershed_probe::{Period, Selection, Tracer, VcdSink};

    /// The two ends of a link of one channel, and what is under way between them.
    struct Pair {
        out: Output,
        flits: VecDeque<u8>,
        queue: Input,
        credits: VecDeque<u8>,
    }

    fn pair(depth: u16) -> Pair {
        Pair {
            out: Output { credits: depth, depth, ..Output::default() },
            flits: VecDeque::new(),
            queue: Input::IDLE,
            credits: VecDeque::new(),
        }
    }

    impl Pair {
        fn send(&mut self, flit: &Flit) {
            self.out.credits -= 1;
            self.flits.push_back(flit_sent(5, &mut self.out, flit));
        }

        fn arrive(&mut self) {
            self.queue.len += 1;
            flit_arrived(7, &mut self.queue, self.flits.pop_front().expect("a flit is under way"));
        }

        fn leave(&mut self) {
            self.credits.push_back(credit_sent(&self.queue));
            self.queue.len -= 1;
        }

        fn credit_back(&mut self) {
            self.out.credits += 1;
            credit_arrived(5, &self.out, self.credits.pop_front().expect("a credit is under way"));
        }

        /// Sends this many flits, of which all arrive but those left out.
        fn with(mut self, flits: usize, arrive: usize) -> Pair {
            (0..flits).for_each(|_| self.send(&whole()));
            (0..arrive).for_each(|_| self.arrive());
            self
        }
    }

    fn whole() -> Flit {
        Flit::collective(0, 0, 0, 0)
    }

    #[test]
    fn a_flit_and_its_credit_balance_at_every_place_they_can_be() {
        // Random moves of flits and credits; numbers wrap many times, with buffers above and below the range of the
        // numbers.
        for depth in [1, 4, 255, 256, 700] {
            let mut rng = watershed_kernel::Rng::new(3, u64::from(depth));
            let mut pair = pair(depth);
            let mut sent = 0;
            for _ in 0..20_000 {
                match rng.below(4) {
                    0 if pair.out.credits > 0 => {
                        pair.send(&whole());
                        sent += 1;
                    }
                    1 if !pair.flits.is_empty() => pair.arrive(),
                    2 if pair.queue.len > 0 => pair.leave(),
                    3 if !pair.credits.is_empty() => pair.credit_back(),
                    _ => {}
                }
            }
            assert!(sent > 1000, "depth {depth}: {sent} flits");
        }
    }

    #[test]
    #[should_panic(expected = "queue 7: flit 2 arrived, and flit 1 is due")]
    fn a_flit_that_is_lost_on_its_way_is_caught_at_the_next_one() {
        let mut pair = pair(4).with(3, 1);
        pair.flits.pop_front();
        pair.arrive();
    }

    #[test]
    #[should_panic(expected = "queue 7: flit 1 arrived, and flit 2 is due")]
    fn a_flit_that_arrives_twice_is_caught() {
        let mut pair = pair(4).with(2, 2);
        pair.flits.push_back(1);
        pair.arrive();
    }

    #[test]
    #[should_panic(expected = "queue 7: flit 1 arrived, and flit 0 is due")]
    fn a_flit_that_overtakes_another_is_caught() {
        let mut pair = pair(4).with(2, 0);
        pair.flits.swap(0, 1);
        pair.arrive();
    }

    #[test]
    #[should_panic(expected = "channel 5: with credit 1 it holds 3 of 4, and flit 2 is the next to be sent")]
    fn a_flit_lost_from_its_queue_is_caught_at_the_next_departure() {
        let mut pair = pair(4).with(2, 2);
        pair.queue.len -= 1;
        pair.leave();
        pair.credit_back();
    }

    #[test]
    #[should_panic(expected = "channel 5: with credit 255 it holds 4 of 4, and flit 1 is the next to be sent")]
    fn a_flit_that_came_out_of_nowhere_is_caught_when_it_has_left() {
        let mut pair = pair(4).with(1, 1);
        pair.queue.len += 1;
        pair.leave();
        pair.credit_back();
    }

    #[test]
    #[should_panic(expected = "channel 5: with credit 1 it holds 3 of 4, and flit 2 is the next to be sent")]
    fn a_credit_that_is_lost_on_its_way_is_caught_at_the_next_one() {
        let mut pair = pair(4).with(2, 2);
        pair.leave();
        pair.leave();
        pair.credits.pop_front();
        pair.credit_back();
    }

    #[test]
    #[should_panic(expected = "channel 5: with credit 0 it holds 4 of 4, and flit 2 is the next to be sent")]
    fn a_credit_that_is_sent_twice_is_caught() {
        let mut pair = pair(4).with(2, 2);
        pair.leave();
        pair.credits.push_back(pair.credits[0]);
        pair.credit_back();
        pair.credit_back();
    }

    #[test]
    #[should_panic(expected = "channel 5: with credit 9 it holds 3 of 4, and flit 2 is the next to be sent")]
    fn a_credit_of_another_queue_is_caught_whatever_is_under_way() {
        let mut pair = pair(4).with(2, 1);
        pair.leave();
        pair.credits.push_front(9);
        pair.credit_back();
    }

    #[test]
    #[should_panic(expected = "channel 5: with credit 255 it holds 5 of 4, and flit 0 is the next to be sent")]
    fn a_credit_of_another_queue_is_caught_by_an_unused_channel() {
        let mut pair = pair(4);
        // The number that would fit if more credits than there are could be held.
        pair.credits.push_front(255);
        pair.credit_back();
    }

    #[test]
    fn queues_of_neighbouring_ports_and_switches_do_not_begin_alike() {
        for (queue, other) in [(0, 1), (0, 8), (3, 11), (0, 256), (5, 5 + 1024), (7, 7 + 65_536), (0, 40 * 64)] {
            assert_ne!(first_number(queue), first_number(other), "{queue}, {other}");
        }
    }

    #[test]
    #[should_panic(expected = "channel 5: with credit 0 it holds 3 of 4, and flit 1 is the next to be sent")]
    fn a_credit_that_the_counter_lost_is_caught_at_the_next_one() {
        let mut pair = pair(4).with(1, 1);
        pair.leave();
        pair.out.credits -= 1;
        pair.credit_back();
    }

    #[test]
    #[should_panic(expected = "channel 5: with credit 0 it holds 5 of 4")]
    fn a_credit_out_of_nothing_is_caught() {
        let mut pair = pair(4).with(1, 1);
        pair.leave();
        pair.out.credits += 1;
        pair.credit_back();
    }

    #[test]
    #[should_panic(expected = "channel 5: a head flit (seq 9) while another packet is under way")]
    fn a_second_packet_between_head_and_tail_is_caught() {
        let mut pair = pair(4);
        pair.send(&Flit::part(0, 0, 8, 0, 3, 0));
        pair.send(&Flit::part(0, 0, 9, 0, 3, 0));
    }

    #[test]
    #[should_panic(expected = "channel 5: a body flit (seq 8) while no packet is under way")]
    fn a_body_without_a_head_is_caught() {
        pair(4).send(&Flit::part(0, 0, 8, 1, 3, 0));
    }

    type Net = Network<Routes, NoJoin<Routes>, NoBump<Routes>, TrafficEnd<Routes>, 1>;

    /// A mesh of four switches under load for 400 cycles, whole or in parts, over links of this many cycles a flit.
    fn network(monitors: bool, parts: usize, cycles_per_flit: u16) -> Net {
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
        Net::in_parts(parts, layout.plan.clone(), routes, blocks, cfg, &|_, _| 8, names)
    }

    /// Whether anybody notices that something is spoilt in such a system in cycle 100.
    fn notices(monitors: bool, parts: usize, cycles_per_flit: u16, traced: bool, spoil: impl Fn(&mut Net)) -> bool {
        let mut net = network(monitors, parts, cycles_per_flit);
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

    /// The first channel of the link to switch `to`, from the switch before it.
    fn out_to(net: &mut Net, to: u32) -> &mut Output {
        let port = port_to(net, to);
        channel_mut(net.first.wires.ports.port_mut(port), 0)
    }

    /// A channel of the link to switch `to` is short of a credit that nobody spent.
    fn lose_a_credit(net: &mut Net, to: u32) {
        let out = out_to(net, to);
        assert!(out.credits > 1, "one can be taken");
        out.credits -= 1;
    }

    /// A flit that was not sent is counted.
    fn lose_a_flit(net: &mut Net, to: u32) {
        let out = out_to(net, to);
        out.sent = out.sent.wrapping_add(1);
    }

    /// A packet that never began is under way, or a tail was never sent.
    fn lose_a_head(net: &mut Net, to: u32) {
        out_to(net, to).in_packet ^= true;
    }

    #[test]
    fn what_goes_to_a_wrong_place_is_noticed() {
        // Credits of what comes from switch 0 go to each other port of it: that of an end point, or without a link.
        let ports = network(true, 1, 1).first.wires.nodes[0].ports;
        assert!(ports > 1);
        for other in 1..u32::from(ports) {
            let misdirect = |net: &mut Net| {
                let port = port_to(net, 1);
                let far = net.first.wires.ports.link(port).to_port;
                let link = &mut net.first.wires.ports.port_mut(far)[0].link;
                assert_eq!((port, link.to_port), (0, 0));
                link.to_port = other;
            };
            assert!(notices(true, 1, 1, false, misdirect), "port {other}");
        }
    }

    #[test]
    fn at_rest_is_when_every_credit_is_back_and_nothing_under_way() {
        let mut seen = [0; 2];
        let spoil = |net: &mut Net| assert!(!net.at_rest(), "under load");
        assert!(!notices(true, 1, 1, false, spoil));
        let mut net = network(true, 1, 1);
        while net.step() != Step::Quiet {
            seen[usize::from(net.at_rest())] += 1;
        }
        assert!(seen[0] > 100 && net.at_rest(), "{seen:?}");
        lose_a_credit(&mut net, 1);
        assert!(!net.at_rest(), "a credit is missing");
    }

    #[test]
    fn monitors_look_on_however_a_system_is_evaluated() {
        // In two parts the link to switch 1 is within the first, that to switch 2 leads into the second.
        for (parts, to, cycles_per_flit, traced) in [
            (1, 1, 1, false),
            (1, 1, 2, false),
            (1, 1, 1, true),
            (1, 1, 2, true),
            (2, 1, 1, false),
            (2, 1, 2, false),
            (2, 2, 1, false),
            (2, 2, 2, false),
        ] {
            for (name, spoil) in
                [("credit", lose_a_credit as fn(&mut Net, u32)), ("flit", lose_a_flit), ("head", lose_a_head)]
            {
                let at = format!("{name} to {to}, {parts} parts, {cycles_per_flit} cycles a flit, traced: {traced}");
                let notices = |monitors| notices(monitors, parts, cycles_per_flit, traced, |net| spoil(net, to));
                assert!(notices(true), "{at}");
                assert!(!notices(false), "{at}, without monitors");
            }
        }
    }
}
