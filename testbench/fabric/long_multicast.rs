//! A multicast of a long frame is independent copies out of a buffer that holds the frame whole (K-PIPE-1): a blocked
//! copy delays nobody, the buffer is free when all have read, and a buffer too short is refused before cycle 0.

use std::panic::{AssertUnwindSafe, catch_unwind};

use watershed::fabric::{Evaluation, ShortBuffer, check_buffers};
use watershed::kernel::Rng;

use crate::share;
use crate::support::{LENGTHS, Lab, Map, Packet, clean, earliest, quiet, seed, trace, until};

#[test]
fn every_fan_out_gets_the_frame_at_once() {
    for fan_out in (2..=20).chain([70]) {
        for flits in [11, 33, 132] {
            let mut lab = Lab::star(1, 0, fan_out + 1, false, 2);
            let outputs: Vec<u16> = (1..=fan_out).collect();
            lab.tables.set(0, 0, 0, &outputs).longest(132);
            lab.depth = 132;
            lab.players[0].send(Packet::new(0, 0, 3, flits));
            let net = lab.run::<2>();
            for end in net.ends().iter().skip(1) {
                assert_eq!(end.packets(0, false), [(6, 5 + u64::from(flits), 0, 3, flits)], "fan-out {fan_out}");
            }
        }
    }
}

#[test]
fn frames_back_to_back_leave_no_gap() {
    for flits in LENGTHS {
        for stages in 1..=4 {
            let mut lab = Lab::star(1, 0, 5, false, 1);
            lab.stages = stages;
            lab.depth = 132;
            lab.tables.set(0, 0, 0, &[1, 2]).set(0, 0, 1, &[2, 3, 4]).longest(132);
            for seq in 0..5 {
                lab.players[0].send(Packet::new(0, (seq % 2) as u16, seq, flits));
            }
            let net = lab.run::<1>();
            let first = 3 + u64::from(stages);
            let at = |seq: u64| (first + seq * u64::from(flits), first + (seq + 1) * u64::from(flits) - 1);
            for (end, seqs) in [(1, vec![0, 2, 4]), (2, vec![0, 1, 2, 3, 4]), (3, vec![1, 3]), (4, vec![1, 3])] {
                let expected: Vec<_> = seqs.into_iter().map(|s| (at(s).0, at(s).1, (s % 2) as u16, s, flits)).collect();
                assert_eq!(net.end(end).packets(0, false), expected, "{flits} flits, {stages} stages, end {end}");
            }
        }
    }
}

/// A star whose end 3 takes nothing before cycle 1000; every buffer holds one frame; frames go to ends 1, 2 and 3.
fn one_blocked(flits: u32, frames: u64) -> Lab {
    let mut lab = Lab::star(1, 0, 4, false, 1);
    lab.depth = flits as u16;
    lab.tables.set(0, 0, 0, &[1, 2, 3]).longest(flits);
    lab.players[3].opens = 1000;
    for seq in 0..frames {
        lab.players[0].send(Packet::new(0, 0, seq, flits));
    }
    lab
}

#[test]
fn a_blocked_copy_delays_nobody_and_keeps_the_buffer() {
    for flits in [11u32, 33, 132] {
        let mut net = one_blocked(flits, 2).build::<1>();
        until(&mut net, 1000);
        // The blocked end's buffer takes the whole first frame; the second frame's copies for 1 and 2 go on, and its
        // copy for 3 stays in the switch. Nothing of the two others is late.
        for end in [1, 2] {
            assert_eq!(
                net.end(end).packets(0, false),
                [(4, 3 + u64::from(flits), 0, 0, flits), (4 + u64::from(flits), 3 + 2 * u64::from(flits), 0, 1, flits)]
            );
        }
        assert_eq!(net.live_flits(), 2 * flits as usize, "one frame at the end, one in the switch");
        assert!(net.end(3).landed.is_empty());
        quiet(&mut net, 10_000);
        clean(&net);
        // From cycle 1000 a flit a cycle; the credit of the first comes back after L + 1 = 2 cycles, and the flit it
        // pays for lands 2 cycles later, long before the buffer is empty.
        assert_eq!(
            net.end(3).packets(0, false),
            [
                (1000, 999 + u64::from(flits), 0, 0, flits),
                (1000 + u64::from(flits), 999 + 2 * u64::from(flits), 0, 1, flits)
            ]
        );
    }
}

#[test]
fn the_buffer_is_free_when_all_have_read() {
    // Three frames of 11 flits into a buffer of 11. The blocked end's buffer holds frame 0; frame 1 stands in the
    // switch, read by all but one; so frame 2 cannot even enter.
    let mut net = one_blocked(11, 3).build::<1>();
    until(&mut net, 1000);
    assert_eq!(net.end(0).sent.len(), 22, "the credits of frame 1 have not come back");
    // Cycle 1000: the end takes a flit. Its credit is at the switch in 1002, where the copy's first flit of frame 1
    // leaves and frees a place; that credit is at the source in 1004.
    earliest(&mut net, 1004, |net| net.end(0).sent.len() == 23);
    quiet(&mut net, 10_000);
    clean(&net);
    for end in [1, 2, 3] {
        assert_eq!(net.end(end).packets(0, false).len(), 3);
    }
}

#[test]
fn frames_fan_out_over_a_tree_of_switches() {
    // One root, five children of nine ends each: 45 copies of a frame, every one by the formula.
    for flits in LENGTHS {
        for stages in [1, 4] {
            let mut lab = Lab::new(1, 0);
            lab.stages = stages;
            lab.depth = 132;
            for _ in 0..6 {
                lab.switch(10, false);
            }
            for child in 1..6 {
                lab.link((0, child as u16), (child, 0), 4);
                lab.tables.set(child, 0, 0, &(1..10).collect::<Vec<u16>>());
            }
            lab.tables.set(0, 0, 0, &[1, 2, 3, 4, 5]).longest(132);
            let source = lab.end(0, 0, 1);
            for child in 1..6 {
                for port in 1..10 {
                    lab.end(child, port, 1);
                }
            }
            lab.players[source].send(Packet::new(0, 0, 0, flits));
            let net = lab.run::<1>();
            let head = 1 + 4 + 1 + 2 * u64::from(stages) + 1;
            for end in net.ends().iter().skip(1) {
                assert_eq!(end.packets(0, false), [(head, head + u64::from(flits) - 1, 0, 0, flits)]);
            }
        }
    }
}

/// What an end is to get: id, number, flits.
type Frame = (u16, u64, u32);

/// A random star of up to 80 ports in which several sources multicast frames to random sets, with consumers that open
/// late.
fn random(rng: &mut Rng) -> (Lab, Vec<Vec<Frame>>) {
    let more = if rng.below(3) == 0 { 78 } else { 10 };
    let ports = 3 + rng.below(more) as u16;
    let mut lab = Lab::star(1, 0, ports, false, 1 + rng.below(3) as u16);
    lab.stages = 1 + rng.below(4) as u8;
    lab.depth = 33 + rng.below(20) as u16;
    lab.tables.longest(33);
    let mut expected = vec![Vec::new(); usize::from(ports)];
    for port in 0..ports.min(4) {
        for _ in 0..=rng.below(3) {
            let seq = rng.below(1000);
            let id = rng.below(4) as u16 + 4 * port;
            let flits = [1, 2, 11, 33][rng.below(4) as usize];
            let always = rng.below(u64::from(ports)) as u16;
            let outputs = lab.tables.sets.entry((0, port, id)).or_insert_with(|| {
                let chance = Rng::threshold(0.5);
                let mut outputs = vec![always];
                outputs.extend((0..ports).filter(|_| rng.chance(chance)));
                outputs.sort_unstable();
                outputs.dedup();
                outputs
            });
            for &output in outputs.iter() {
                expected[usize::from(output)].push((id, seq, flits));
            }
            lab.players[usize::from(port)].send(Packet::new(0, id, seq, flits).at(rng.below(50)));
        }
    }
    for player in &mut lab.players {
        player.opens = rng.below(4) * 60;
    }
    (lab, expected)
}

/// Sixty in `make soak`, twenty in `make test`.
#[test]
fn random_fan_outs_get_exactly_their_frames_in_any_order_of_evaluation() {
    let seed = seed();
    for case in 0..share::of(3, 60) {
        let (mut lab, mut expected) = random(&mut Rng::new(seed, case));
        let net = lab.run::<2>();
        for (end, expected) in net.ends().iter().zip(&mut expected) {
            let mut got: Vec<_> = end.packets(0, false).into_iter().map(|p| (p.2, p.3, p.4)).collect();
            got.sort_unstable();
            expected.sort_unstable();
            assert_eq!(&got, expected, "seed {seed}, case {case}");
        }
        let plain = trace(&net);
        for evaluation in [
            Evaluation { no_skip: false, shuffle: Some(case) },
            Evaluation { no_skip: true, shuffle: None },
            Evaluation { no_skip: true, shuffle: Some(case + 1) },
        ] {
            lab.evaluation = evaluation;
            assert!(trace(&lab.run::<2>()) == plain, "seed {seed}, case {case}, {evaluation:?}");
        }
    }
}

#[test]
fn a_buffer_shorter_than_the_frame_is_refused_before_cycle_0() {
    let mut lab = Lab::row(2, 1, 2, 1);
    lab.tables.longest(33);
    let check = |depth: u16| check_buffers::<Map, 1>(&lab.plan, &lab.tables, &|_, _| depth);
    assert_eq!(check(33), Ok(()));
    let short = ShortBuffer { switch: "s0".into(), port: 1, vc: 0, depth: 32, frame: 33 };
    assert_eq!(check(32), Err(short.clone()));
    assert_eq!(
        short.to_string(),
        "port 1 of s0: its buffer of 32 flits on set-routed channel 0 cannot hold a multicast frame of 33 flits whole; \
         it needs at least 33"
    );
    // Point-to-point channels are wormhole channels: their depth is free.
    let by_channel = |_: &_, vc: u8| if vc == 2 { 1 } else { 33 };
    assert_eq!(check_buffers::<Map, 1>(&lab.plan, &lab.tables, &by_channel), Ok(()));
    // Whoever builds without asking is told the same.
    lab.depth = 32;
    let panic = catch_unwind(AssertUnwindSafe(|| lab.build::<1>())).err().expect("refused");
    assert!(panic.downcast_ref::<String>().expect("a text").starts_with("port 1 of s0"));
}

#[test]
fn a_frame_that_was_not_declared_stops_the_run() {
    for (longest, flits, says) in [(1, 2, "declare none"), (11, 12, "more than the 11 flits")] {
        let mut lab = Lab::star(1, 0, 3, false, 1);
        lab.tables.set(0, 0, 0, &[1, 2]).longest(longest);
        lab.players[0].send(Packet::new(0, 0, 0, flits));
        let mut net = lab.build::<1>();
        quiet(&mut net, 1000);
        assert!(net.fault().is_some_and(|fault| fault.contains(says)), "{:?}", net.fault());
    }
    // As long as declared is fine, and one output is a worm of any length.
    let mut lab = Lab::star(1, 0, 3, false, 1);
    lab.tables.set(0, 0, 0, &[1, 2]).set(0, 0, 1, &[1]).longest(11);
    lab.players[0].send(Packet::new(0, 0, 0, 11));
    lab.players[0].send(Packet::new(0, 1, 0, 132));
    lab.run::<1>();
}
