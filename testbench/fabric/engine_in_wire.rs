//! The second form in which an engine joins: a bump in the wire that ends the credit loop of one side and starts its own
//! on the other. A bump that passes a flit at once costs its half of the link plus the edge at its input: inner + 1.

use watershed::fabric::credit_round_trip;

use crate::support::{LENGTHS, Lab, Packet, Wire, clean, quiet, until};

#[test]
fn a_pass_through_adds_its_half_link_and_one_edge() {
    for vc in [0, 1] {
        for inner in [1, 2, 9] {
            for stages in 1..=4 {
                for flits in LENGTHS {
                    let mut lab = Lab::row(1, 1, 2, 3);
                    lab.stages = stages;
                    lab.bump(0, 1, inner, Wire::Pass);
                    lab.players[0].send(Packet::new(vc, 0, 2, flits).to(1));
                    lab.players[1].send(Packet::new(vc, 1, 4, flits).to(0));
                    let net = lab.run::<1>();
                    let head = 3 * 3 + 2 * u64::from(stages) + 1 + u64::from(inner) + 1;
                    let last = head + u64::from(flits) - 1;
                    assert_eq!(net.end(1).packets(vc, vc == 1), [(head, last, 0, 2, flits)], "inner {inner}");
                    assert_eq!(net.end(0).packets(vc, vc == 1), [(head, last, 1, 4, flits)], "the other direction");
                }
            }
        }
    }
}

#[test]
fn bumps_stand_next_to_each_other_on_every_link_and_side() {
    for flits in LENGTHS {
        let mut lab = Lab::row(1, 1, 3, 2);
        lab.stages = 3;
        // Two on the same port, one on both ends of a link, one at each end point: seven in a row.
        let mut extra = 0;
        for (switch, port, inner) in [(0, 1, 1), (0, 1, 4), (1, 0, 2), (1, 1, 1), (2, 0, 3), (0, 0, 1), (2, 1, 5)] {
            lab.bump(switch, port, inner, Wire::Pass);
            extra += u64::from(inner) + 1;
        }
        for seq in 0..3 {
            for vc in [0, 1] {
                lab.players[0].send(Packet::new(vc, 0, seq, flits).to(1));
                lab.players[1].send(Packet::new(vc, 1, seq, flits).to(0));
            }
        }
        let net = lab.run::<1>();
        let whole = |end: usize, vc: u8| net.end(end).packets(vc, vc == 1);
        let first = 4 * 2 + 3 * 3 + 1 + extra;
        for vc in [0, 1] {
            for (end, id) in [(0, 1), (1, 0)] {
                let packets = whole(end, vc);
                assert_eq!(
                    packets.iter().map(|p| (p.2, p.3, p.4)).collect::<Vec<_>>(),
                    [0, 1, 2].map(|s| (id, s, flits))
                );
            }
        }
        // The end points send the higher channel first; its first head meets nobody.
        assert_eq!((whole(1, 1)[0].0, whole(0, 1)[0].0), (first, first));
    }
}

#[test]
fn an_absorber_ends_the_credit_loop_and_the_switch_keeps_its_rate() {
    for stages in 1..=4u8 {
        for flits in LENGTHS {
            for inner in [1, 4] {
                let mut lab = Lab::row(1, 0, 1, 1);
                lab.stages = stages;
                let bump = lab.bump(0, 1, inner, Wire::Absorb { taken: 0 });
                // Just the round trip of the half that faces the switch; what lies behind the bump has no say.
                let post = u16::from(stages > 1);
                let half = lab.plan.links.len() - 1;
                lab.depth_of.insert(half, credit_round_trip(inner, 1, post, 0) as u16);
                lab.depth_of.insert(half - 1, 1);
                for seq in 0..6 {
                    lab.players[0].send(Packet::new(0, 0, seq, flits));
                }
                let mut net = lab.build::<1>();
                quiet(&mut net, 10_000);
                clean(&net);
                assert!(matches!(net.bumps()[bump], Wire::Absorb { taken } if taken == 6 * u64::from(flits)));
                // Nothing waited anywhere: the last flit left the source at one a cycle, and was gone a round trip on.
                assert_eq!(net.end(0).sent.last().unwrap().0, 6 * u64::from(flits) - 1);
                assert!(net.link_loads().all(|load| load.count.waited == 0), "the switch sends at full rate");
            }
        }
    }
}

#[test]
fn an_absorber_with_one_credit_less_slows_the_switch() {
    let mut lab = Lab::row(1, 0, 1, 1);
    lab.stages = 2;
    lab.bump(0, 1, 3, Wire::Absorb { taken: 0 });
    let half = lab.plan.links.len() - 1;
    lab.depth_of.insert(half, credit_round_trip(3, 1, 1, 0) as u16 - 1);
    lab.players[0].send(Packet::new(0, 0, 0, 33));
    let net = lab.run::<1>();
    // Eight credits for a round trip of nine: the 33rd flit waits for the fourth gap.
    let waited: u64 = net.link_loads().map(|load| load.count.waited).sum();
    assert!(waited > 0);
}

#[test]
fn an_injecting_bump_adds_whole_packets_of_its_own() {
    for flits in LENGTHS {
        let mut lab = Lab::row(1, 1, 2, 2);
        lab.tables.set(1, 0, 3, &[1]);
        lab.bump(0, 1, 1, Wire::inject((0..4).map(|seq| Packet::new(0, 3, seq, flits).at(seq * 5))));
        for seq in 0..4 {
            lab.players[0].send(Packet::new(0, 0, seq, flits));
            lab.players[0].send(Packet::new(1, 0, seq, flits).to(1));
            lab.players[1].send(Packet::new(0, 1, seq, flits));
        }
        let net = lab.run::<1>();
        let packets = net.end(1).packets(0, false);
        for id in [0, 3] {
            let seqs: Vec<u64> = packets.iter().filter(|p| p.2 == id).map(|p| p.3).collect();
            assert_eq!(seqs, [0, 1, 2, 3], "id {id}, {flits} flits");
        }
        assert_eq!((packets.len(), net.end(1).packets(1, true).len()), (8, 4));
        assert_eq!(net.end(0).packets(0, false).len(), 4, "the other direction is not disturbed");
        // The first one of the bump leaves it in cycle 0: two links and a switch to go.
        assert_eq!(packets[0], (2 + 1 + 2 + 1, 5 + u64::from(flits), 3, 0, flits));
    }
}

#[test]
fn a_holding_bump_is_all_the_switch_sees_of_flow_control() {
    for vc in [0, 1] {
        for depth in [1, 3, 8] {
            for stages in 1..=4 {
                let mut lab = Lab::row(1, 1, 1, 1);
                lab.stages = stages;
                lab.bump(0, 1, 2, Wire::Hold { until: 600 });
                let half = lab.plan.links.len() - 1;
                lab.depth_of.insert(half, depth);
                for seq in 0..4 {
                    lab.players[0].send(Packet::new(vc, 0, seq, 11).to(1));
                    lab.players[1].send(Packet::new(vc, 1, seq, 11).to(0));
                }
                let mut net = lab.build::<1>();
                until(&mut net, 600);
                let sent = |net: &crate::support::Net<1>| {
                    net.link_loads().find(|l| l.from == "s0.P1").map(|l| l.count.set + l.count.unicast)
                };
                assert_eq!(sent(&net), Some(u64::from(depth)), "the switch sends what the bump grants, and no more");
                assert_eq!(net.end(1).landed.len(), 0);
                assert_eq!(net.end(0).landed.len(), 44, "the other direction is not held");
                quiet(&mut net, 10_000);
                clean(&net);
                assert_eq!(net.end(1).landed[0].0, 600 + 1 + 1, "earliest: the bump lets go in cycle 600");
                assert_eq!(net.end(1).packets(vc, vc == 1).len(), 4);
            }
        }
    }
}

#[test]
fn every_port_of_a_wide_switch_may_have_a_bump() {
    for (flits, vc) in [(1, 0), (11, 0), (33, 1)] {
        let mut lab = Lab::star(1, 1, 100, false, 1);
        lab.tables.direct = true;
        for port in 0..100 {
            lab.bump(0, port, 1, Wire::Pass);
            let to = (port + 37) % 100;
            lab.players[usize::from(port)].send(Packet::new(vc, to, 0, flits).to(u32::from(to)));
        }
        let net = lab.run::<2>();
        for (port, end) in net.ends().iter().enumerate() {
            assert_eq!(end.packets(vc, vc == 1), [(8, 7 + u64::from(flits), port as u16, 0, flits)]);
        }
    }
}

#[test]
fn no_point_to_point_channel_starves_in_a_bump() {
    // Two channels share a line behind a bump that was held until both backlogs were full.
    let mut lab = Lab::star(0, 2, 3, false, 1);
    lab.tables.direct = true;
    lab.depth = 20;
    lab.bump(0, 2, 1, Wire::Hold { until: 200 });
    for seq in 0..200 {
        lab.players[0].send(Packet::new(0, 2, seq, 1).to(2));
        lab.players[1].send(Packet::new(1, 2, seq, 1).to(2));
    }
    let net = lab.run::<1>();
    let first: Vec<u8> = net.end(2).landed.iter().take(80).map(|(_, flit)| flit.tag.vc()).collect();
    let ones: u32 = first.iter().map(|&vc| u32::from(vc)).sum();
    assert!((30..=50).contains(&ones), "{ones} of 80 are of channel 1");
}
