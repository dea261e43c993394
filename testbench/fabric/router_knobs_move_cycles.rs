//! Every knob of the router moves cycles by what its table says, and none loses a flit (K-PIPE-1, K-FC-1, K-ARB-1).

use watershed::fabric::arbiter::Policy;
use watershed::fabric::{Pipeline, RouterCfg, SwitchAllocator, VcAllocator, credit_round_trip};
use watershed::kernel::Rng;

use crate::share;
use crate::support::{Lab, Packet, until};

const VC_ALLOCATORS: [VcAllocator; 3] = [VcAllocator::Ordered, VcAllocator::Separable, VcAllocator::Islip];
const SWITCH_ALLOCATORS: [SwitchAllocator; 2] = [SwitchAllocator::Separable, SwitchAllocator::Islip];

fn steps() -> impl Iterator<Item = Pipeline> {
    let numbers = || [0, 1, 2, 5].into_iter();
    numbers().flat_map(move |route| {
        numbers().flat_map(move |vc_alloc| {
            [1, 2, 4].into_iter().flat_map(move |switch_alloc| {
                [0, 1, 3].map(|traversal| Pipeline { route, vc_alloc, switch_alloc, traversal })
            })
        })
    })
}

/// When the tails of `count` packets back to back land at the end of a row.
fn row(switches: u32, count: u64, flits: u32, change: impl Fn(&mut Lab)) -> Vec<u64> {
    let mut lab = Lab::row(0, 1, switches, 2);
    change(&mut lab);
    for seq in 0..count {
        lab.players[0].send(Packet::new(0, 0, seq, flits).to(1));
    }
    let net = lab.run::<1>();
    net.end(1).landed.iter().filter(|(_, flit)| flit.tag.tail()).map(|(cycle, _)| *cycle).collect()
}

#[test]
fn a_hop_takes_the_sum_of_its_steps() {
    for pipeline in steps() {
        for router in [
            RouterCfg::default(),
            RouterCfg {
                vc_allocator: VcAllocator::Islip,
                switch_allocator: SwitchAllocator::Islip,
                input_speedup: 2,
                credit_delay: 3,
                wait_for_tail_credit: true,
                ..RouterCfg::default()
            },
        ] {
            for (switches, flits) in [(1, 1), (3, 1), (2, 11)] {
                let landed = row(switches, 1, flits, |lab| {
                    lab.steps = Some(pipeline);
                    lab.router = router;
                });
                let sum = u64::from(pipeline.route + pipeline.vc_alloc + pipeline.switch_alloc + pipeline.traversal);
                // A body flit waits for its own switch allocation only, so with steps of one cycle it follows at once.
                let body = u64::from(flits - 1) * u64::from(pipeline.switch_alloc);
                let expected = u64::from(switches) * (sum + 2) + 2 + 1 + body;
                assert_eq!(landed, [expected], "{pipeline:?}, {switches} switches, {flits} flits");
            }
        }
    }
}

#[test]
fn speculation_saves_the_channel_stage_when_nobody_competes() {
    for vc_alloc in 1..=2 {
        for route in 0..=1 {
            let steps = Pipeline { route, vc_alloc, switch_alloc: 1, traversal: 1 };
            let landed = |speculative| {
                row(3, 1, 4, |lab| {
                    lab.steps = Some(steps);
                    lab.router.speculative = speculative;
                })[0]
            };
            assert_eq!(
                landed(false) - landed(true),
                3,
                "{steps:?}: the last cycle of allocation at each of 3 switches"
            );
        }
    }
}

#[test]
fn a_packet_that_holds_a_channel_goes_before_one_that_speculates() {
    // Inputs 0 and 1 want output 2 on channels of their own. Input 0's packet of many flits holds its channel; input
    // 1's head speculates against it and must not slow it down.
    let mut lab = Lab::star(0, 2, 3, false, 1);
    lab.tables.direct = true;
    lab.stages = 3;
    lab.router.speculative = true;
    lab.players[0].send(Packet::new(0, 0, 1, 20).to(2));
    lab.players[1].send(Packet::new(1, 0, 2, 1).to(2).at(6));
    let net = lab.run::<1>();
    let tail = |seq| net.end(2).landed.iter().find(|(_, f)| f.tag.seq() == seq && f.tag.tail()).expect("landed").0;
    let (long, short) = (tail(1), tail(2));
    // Alone: 1 + 1 to get there, 3 stages less one by speculation, 1 to the end, and 19 flits behind the head. The
    // short packet's only flit crosses between two of them once it holds a channel, which costs the long one a cycle.
    assert_eq!(long, 5 + 19 + 1);
    let alone = 6 + 5;
    assert_eq!(short, alone + 1, "its bid loses in the first cycle and counts in the second, when it holds a channel");
}

#[test]
fn a_credit_delay_lengthens_the_round_trip() {
    for delay in [0, 1, 2, 7] {
        for depth in [1, 2, 3] {
            for stages in [1, 2] {
                let landed = row(3, 60, 1, |lab| {
                    lab.stages = stages;
                    lab.router.credit_delay = delay;
                    lab.depth_of.insert(0, depth);
                });
                let pipeline = Pipeline::new(stages);
                let trip = credit_round_trip(2, 1, pipeline.post(), pipeline.front()) + u64::from(delay);
                for k in 20..landed.len() - usize::from(depth) {
                    assert_eq!(landed[k + usize::from(depth)] - landed[k], trip, "delay {delay}, depth {depth}");
                }
            }
        }
    }
}

#[test]
fn a_channel_that_waits_for_tail_credits_carries_a_packet_a_round_trip() {
    for stages in 1..=4 {
        for delay in [0, 2] {
            for flits in [1, 5] {
                for depth in [8, 64] {
                    let landed = row(2, 30, flits, |lab| {
                        lab.stages = stages;
                        lab.depth = depth;
                        lab.router.credit_delay = delay;
                        lab.router.wait_for_tail_credit = true;
                    });
                    let pipeline = Pipeline::new(stages);
                    let front = u64::from(pipeline.front());
                    // The tail's round trip, the body before it, and then the next head asks for the channel: it is
                    // granted in the cycle in which the last credit can be spent, and crosses when its step is due.
                    let trip = credit_round_trip(2, 1, pipeline.post(), pipeline.front()) + u64::from(delay);
                    let channel_step = u64::from(pipeline.vc_alloc);
                    // With one packet a time in the far buffer its tail follows its head there without a gap.
                    let period = trip + u64::from(flits) - 1 + channel_step;
                    // A body flit passes no front stages, so the tail of a longer packet leaves earlier than a head would.
                    let period = if flits > 1 { period - front.min(u64::from(flits) - 1) } else { period };
                    for k in 10..29 {
                        let got = landed[k + 1] - landed[k];
                        assert!(
                            got == period || flits > 1 && got == period + front.min(u64::from(flits) - 1),
                            "{stages} stages, delay {delay}, {flits} flits, depth {depth}: {got}, not {period}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn two_passages_carry_two_channels_of_one_input_at_once() {
    for (speedup, span) in [(1, 39), (2, 19), (4, 19)] {
        for switch_allocator in SWITCH_ALLOCATORS {
            for stages in 1..=4 {
                // Set-routed frames keep outputs 3 and 4 busy, with priority, until input 2 has 20 packets on each of two
                // channels for them; what it can do then is what its passages allow.
                let mut lab = Lab::star(1, 2, 5, false, 1);
                lab.tables.direct = true;
                lab.stages = stages;
                lab.router = RouterCfg { input_speedup: speedup, switch_allocator, ..RouterCfg::default() };
                lab.players[0].send(Packet::new(0, 3, 0, 90));
                lab.players[1].send(Packet::new(0, 4, 0, 90));
                for seq in 0..20 {
                    lab.players[2].send(Packet::new(1, 0, seq, 1).to(3).at(5));
                    lab.players[2].send(Packet::new(2, 0, 100 + seq, 1).to(4).at(5));
                }
                let net = lab.run::<1>();
                let landed = |end: usize| {
                    let of_input_2 = net.end(end).landed.iter().filter(|(_, flit)| flit.tag.vc() > 0);
                    of_input_2.map(|(at, _)| *at).collect::<Vec<u64>>()
                };
                let all = [landed(3), landed(4)];
                let first = all.iter().map(|cycles| cycles[0]).min().unwrap();
                let last = all.iter().map(|cycles| cycles[19]).max().unwrap();
                // A queue of more than two stages starts a packet every second or third cycle, whatever the passages.
                let pace = 1 + u64::from(Pipeline::new(stages).front());
                let slack = u64::from(speedup == 1 && pace > 1);
                let span = span.max(19 * pace);
                assert!(
                    (span..=span + slack).contains(&(last - first)),
                    "speed-up {speedup}, {stages} stages: {}",
                    last - first
                );
            }
        }
    }
}

/// Packets that landed at each of the last two ends when all others send to both without a pause.
fn shares(router: RouterCfg, policy: Policy, window: u64) -> Vec<[u64; 2]> {
    let mut lab = Lab::star(0, 4, 6, false, 1);
    lab.tables.direct = true;
    lab.router = router;
    lab.policy = policy;
    for port in 0..4u64 {
        for seq in 0..window {
            for vc in 0..4 {
                let to = 4 + (seq + u64::from(vc)) % 2;
                let packet = Packet::new(vc, 0, port * 10_000 + seq * 4 + u64::from(vc), 1);
                lab.players[port as usize].send(packet.to(to as u32));
            }
        }
    }
    let mut net = lab.build::<1>();
    until(&mut net, 10 + window);
    let mut counts = vec![[0; 2]; 4];
    for (to, end) in net.ends().iter().skip(4).enumerate() {
        for (_, flit) in &end.landed {
            counts[(flit.tag.seq() / 10_000) as usize][to] += 1;
        }
    }
    counts
}

/// One combination in five in `make test`: every allocator, policy and number of iterations is among them.
#[test]
fn every_allocator_serves_all_inputs_alike_under_saturation() {
    let window = 4_000;
    for case in share::one_in(5, 0..24) {
        let (vc_allocator, switch_allocator) = (VC_ALLOCATORS[case / 8], SWITCH_ALLOCATORS[case / 4 % 2]);
        let (policy, iterations) = ([Policy::RoundRobin, Policy::Matrix][case / 2 % 2], [1, 3][case % 2]);
        let router = RouterCfg { vc_allocator, switch_allocator, iterations, ..RouterCfg::default() };
        let counts = shares(router, policy, window);
        let total: u64 = counts.iter().flatten().sum();
        // Two outputs can carry two flits a cycle; one round over four inputs finds most of the pairs.
        assert!(total * 100 >= 2 * window * 85, "{router:?} {policy:?}: {total} of {}", 2 * window);
        let each: Vec<u64> = counts.iter().map(|to| to[0] + to[1]).collect();
        let (least, most) = (each.iter().min().unwrap(), each.iter().max().unwrap());
        assert!(most - least <= total / 40, "{router:?} {policy:?}: {each:?}");
    }
}

#[test]
fn more_rounds_of_islip_never_carry_less() {
    let of = |iterations| {
        let router = RouterCfg {
            vc_allocator: VcAllocator::Islip,
            switch_allocator: SwitchAllocator::Islip,
            iterations,
            ..RouterCfg::default()
        };
        shares(router, Policy::RoundRobin, 4_000).iter().flatten().sum::<u64>()
    };
    let counts: Vec<u64> = (1..=4).map(of).collect();
    assert!(counts.is_sorted(), "{counts:?}");
}

#[test]
fn random_traffic_passes_whole_under_every_mix_of_knobs() {
    for case in 0..120 {
        let mut rng = Rng::new(0x6b6e_6f62, case);
        let ports = 3 + rng.below(10) as u16;
        let vcs = 1 + rng.below(6) as u8;
        let mut lab = Lab::star(1, vcs, ports, false, 1 + rng.below(3) as u16);
        lab.tables.direct = true;
        lab.steps = Some(Pipeline {
            route: rng.below(3) as u8,
            vc_alloc: 1 + rng.below(3) as u8,
            switch_alloc: 1 + rng.below(2) as u8,
            traversal: rng.below(3) as u8,
        });
        lab.policy = [Policy::RoundRobin, Policy::Matrix, Policy::Fixed][rng.below(3) as usize];
        lab.depth = 1 + rng.below(9) as u16;
        lab.router = RouterCfg {
            vc_allocator: VC_ALLOCATORS[rng.below(3) as usize],
            switch_allocator: SWITCH_ALLOCATORS[rng.below(2) as usize],
            iterations: 1 + rng.below(3) as u8,
            credit_delay: rng.below(4) as u16,
            input_speedup: 1 + rng.below(4) as u8,
            wait_for_tail_credit: rng.below(2) == 1,
            speculative: rng.below(2) == 1,
            ..RouterCfg::default()
        };
        let mut sent = vec![0u64; usize::from(ports)];
        for port in 0..ports {
            for seq in 0..40 {
                let to = rng.below(u64::from(ports)) as u32;
                let flits = [1, 1, 2, 11][rng.below(4) as usize];
                let vc = 1 + rng.below(u64::from(vcs)) as u8;
                let packet = Packet::new(vc, 0, u64::from(port) * 1000 + seq, flits).to(to);
                lab.players[usize::from(port)].send(packet.at(rng.below(60)));
                sent[to as usize] += u64::from(flits);
            }
        }
        let net = lab.run::<1>();
        let landed: Vec<u64> = net.ends().iter().map(|end| end.landed.len() as u64).collect();
        assert_eq!(landed, sent, "case {case}");
    }
}
