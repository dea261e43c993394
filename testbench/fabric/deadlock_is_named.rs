//! The watchdog's autopsy (K-WD-1): a real deadlock is named place by place, and a stall ends where its cause is.

use crate::support::{Engine, Lab, Net, Packet, Role, Wire, quiet};

/// A ring of switches (port 0 from the last, port 1 to the next, port 2 the end point). Every end point sends a long
/// packet two switches on, so each packet holds one link and wants the next: the textbook cycle.
fn ring(switches: u32, vc: u8) -> Lab {
    let mut lab = Lab::new(1, 1);
    for _ in 0..switches {
        lab.switch(3, false);
    }
    for s in 0..switches {
        let next = (s + 1) % switches;
        let link = lab.link((s, 1), (next, 0), 1);
        lab.depth_of.insert(link, 2);
    }
    for s in 0..switches {
        lab.end(s, 2, 1);
        let to = (s + 2) % switches;
        lab.tables.set(s, 2, s as u16, &[1]).set((s + 1) % switches, 0, s as u16, &[1]).set(to, 0, s as u16, &[2]);
        for at in 0..switches {
            lab.tables.to(at, s, if at == s { 2 } else { 1 });
        }
    }
    for s in 0..switches {
        lab.players[s as usize].send(Packet::new(vc, s as u16, 0, 33).to((s + 2) % switches));
    }
    lab
}

fn names<const W: usize>(net: &Net<W>) -> Vec<String> {
    net.autopsy().cycle.iter().map(|wait| wait.who.clone()).collect()
}

#[test]
fn a_ring_of_worms_is_named_place_by_place() {
    for vc in [0, 1] {
        for switches in [3, 4, 7] {
            for stages in 1..=4 {
                let mut lab = ring(switches, vc);
                lab.stages = stages;
                let mut net = lab.build::<1>();
                quiet(&mut net, 100_000);
                assert!(net.live_flits() > 0, "this is a deadlock");
                // A worm that came in by the ring waits for the output that the local worm holds; that one waits for
                // credits of the next switch's ring input: two places a switch, in the order of the ring.
                let expected: Vec<String> =
                    (0..switches).flat_map(|s| [format!("s{s}.I0 c{vc}"), format!("s{s}.I2 c{vc}")]).collect();
                let mut got = names(&net);
                let start = got.iter().position(|name| *name == expected[0]).expect("the first place is in the cycle");
                got.rotate_left(start);
                assert_eq!(got, expected, "channel {vc}, {switches} switches, {stages} stages");
                let text = net.autopsy().to_string();
                assert!(text.starts_with(&format!("deadlock: {} places", 2 * switches)), "{text}");
                assert!(
                    text.contains("its packet holds output P1") && text.contains("no credit on output P1"),
                    "{text}"
                );
            }
        }
    }
}

#[test]
fn without_the_cycle_the_same_traffic_drains() {
    for vc in [0, 1] {
        // One packet less, and the ring is a line.
        let mut lab = ring(4, vc);
        lab.players[0] = crate::support::Player::new();
        lab.run::<1>();
    }
}

#[test]
fn a_cycle_through_bumps_is_named_with_them() {
    let mut lab = ring(3, 0);
    for s in 0..3 {
        lab.bump(s, 1, 1, Wire::Pass);
    }
    lab.depth_of.clear();
    lab.depth = 2;
    let mut net = lab.build::<1>();
    quiet(&mut net, 100_000);
    let mut got = names(&net);
    let expected: Vec<String> =
        (0..3).flat_map(|s| [format!("s{s}.I0 c0"), format!("s{s}.I2 c0"), format!("b{s}.I0 c0")]).collect();
    let start = got.iter().position(|name| *name == expected[0]).expect("the first place is in the cycle");
    got.rotate_left(start);
    assert_eq!(got, expected);
}

#[test]
fn a_consumer_that_takes_nothing_is_the_end_of_the_chain() {
    for vc in [0, 1] {
        for stages in [1, 4] {
            let mut lab = Lab::row(1, 1, 3, 2);
            lab.stages = stages;
            lab.depth = 3;
            lab.players[1].closes = Some(0);
            lab.players[0].send(Packet::new(vc, 0, 0, 33).to(1));
            let mut net = lab.build::<1>();
            quiet(&mut net, 10_000);
            let autopsy = net.autopsy();
            assert!(autopsy.cycle.is_empty());
            let chain: Vec<(&str, &str)> =
                autopsy.ends[0].iter().map(|wait| (wait.who.as_str(), wait.whom.as_str())).collect();
            let place = |name: &str| format!("{name} c{vc}");
            let (a, b, c, e) = (place("s0.I0"), place("s1.I0"), place("s2.I0"), place("e1"));
            let sender = place("e0 to send a");
            assert_eq!(chain, [(sender.as_str(), a.as_str()), (&a, &b), (&b, &c), (&c, &e), (&e, "e1")]);
            assert!(autopsy.to_string().starts_with("stall: 5 places"));
        }
    }
}

#[test]
fn a_join_without_an_operand_names_the_port() {
    let mut lab = Lab::star(1, 0, 3, true, 1);
    lab.engine = Engine::new(Role::Gather { ports: vec![0, 1] }, 1);
    lab.tables.set(0, 0, 0, &[3]).set(0, 1, 0, &[3]).set(0, 3, 0, &[2]);
    for seq in 0..3 {
        lab.players[0].send(Packet::new(0, 0, seq, 1));
    }
    let mut net = lab.build::<1>();
    // An engine that is not idle asks to be looked at for ever, as a real one may: no quiet, but nothing moves.
    for _ in 0..100 {
        net.step();
    }
    let autopsy = net.autopsy();
    assert!(autopsy.cycle.is_empty());
    let last = autopsy.ends[0].last().unwrap();
    assert_eq!((last.who.as_str(), last.whom.as_str()), ("s0 engine", "e1 to send a c0"));
    assert_eq!(last.why, "no operand of port 1");
    assert_eq!(autopsy.ends[0][0].who, "s0.I0 c0");
}

#[test]
fn a_packet_cut_off_upstream_is_followed_to_where_its_rest_is() {
    // A bump swallows a tail-less worm's rest by holding it: the switch behind is empty but holds its output, and a
    // second packet waits for that output.
    let mut lab = Lab::new(1, 0);
    lab.switch(3, false);
    lab.switch(3, false);
    lab.link((0, 1), (1, 0), 1);
    lab.end(0, 0, 1);
    lab.end(1, 1, 1);
    lab.end(1, 2, 1);
    lab.tables.set(0, 0, 0, &[1]).set(1, 0, 0, &[1]).set(1, 2, 1, &[1]);
    lab.bump(0, 1, 1, Wire::Cut { after: 5 });
    lab.players[0].send(Packet::new(0, 0, 0, 11));
    lab.players[2].send(Packet::new(0, 1, 0, 11).at(50));
    let mut net = lab.build::<1>();
    quiet(&mut net, 10_000);
    let autopsy = net.autopsy();
    let chain: Vec<(&str, &str)> = autopsy.ends[0].iter().map(|w| (w.who.as_str(), w.whom.as_str())).collect();
    assert_eq!(chain, [("s1.I2 c0", "s1.I0 c0"), ("s1.I0 c0", "b0.I0 c0"), ("b0.I0 c0", "b0")]);
    assert_eq!(autopsy.ends[0][1].why, "the rest of its packet has not come");
}
