//! A packet of any length crosses switches whole and in order, and every flit lands in the cycle the formula says: a
//! hop costs P + L, the edge at the end point 1, and behind the head comes a flit a cycle (K-PIPE-1).

use crate::support::{LENGTHS, Lab, Packet, clean, earliest, quiet};
use watershed::fabric::Pipeline;

/// The cycle in which the head of a packet sent in cycle 0 is taken at the far end of a row.
fn head_lands(switches: u32, stages: u8, latency: u16) -> u64 {
    u64::from(switches + 1) * u64::from(latency) + u64::from(switches) * u64::from(stages) + 1
}

/// Every length through 1 to 4 switches of every depth, over short and long links, on one channel.
fn cross(vc: u8) {
    for switches in 1..=4 {
        for stages in 1..=4 {
            for latency in [1, 6] {
                for flits in LENGTHS {
                    let mut lab = Lab::row(1, 1, switches, latency);
                    lab.stages = stages;
                    lab.players[0].send(Packet::new(vc, 0, 7, flits).to(1));
                    let net = lab.run::<1>();
                    let head = head_lands(switches, stages, latency);
                    assert_eq!(
                        net.end(1).packets(vc, vc == 1),
                        [(head, head + u64::from(flits) - 1, 0, 7, flits)],
                        "{switches} switches of {stages} stages, latency {latency}, {flits} flits"
                    );
                }
            }
        }
    }
}

#[test]
fn set_routed_packets_land_by_the_formula() {
    cross(0);
}

#[test]
fn point_to_point_packets_land_by_the_formula() {
    cross(1);
}

#[test]
fn not_a_cycle_earlier() {
    for vc in [0, 1] {
        for stages in 1..=4 {
            for flits in LENGTHS {
                let mut lab = Lab::row(1, 1, 3, 2);
                lab.stages = stages;
                lab.players[0].send(Packet::new(vc, 0, 0, flits).to(1));
                let head = head_lands(3, stages, 2);
                let mut net = lab.build::<1>();
                earliest(&mut net, head, |net| !net.end(1).landed.is_empty());
                earliest(&mut net, head + u64::from(flits) - 1 + u64::from(flits == 1), |net| {
                    net.end(1).landed.len() == flits as usize && net.now() > head + u64::from(flits == 1)
                });
                quiet(&mut net, 10_000);
                clean(&net);
            }
        }
    }
}

#[test]
fn packets_back_to_back_leave_no_gap() {
    // A point-to-point head begins its route and channel stages when the tail before it has left.
    for (vc, stages) in [0, 1].into_iter().flat_map(|vc| (1..=4).map(move |stages| (vc, stages))) {
        for flits in LENGTHS {
            let mut lab = Lab::row(1, 1, 3, 2);
            lab.stages = stages;
            for seq in 0..6 {
                lab.players[0].send(Packet::new(vc, 0, seq, flits).to(1));
            }
            let net = lab.run::<1>();
            let spacing = u64::from(flits) + if vc == 1 { u64::from(Pipeline::new(stages).front()) } else { 0 };
            let expected: Vec<_> = (0..6)
                .map(|seq| {
                    let head = head_lands(3, stages, 2) + seq * spacing;
                    (head, head + u64::from(flits) - 1, 0, seq, flits)
                })
                .collect();
            assert_eq!(net.end(1).packets(vc, vc == 1), expected, "channel {vc}, {stages} stages, {flits} flits");
        }
    }
}

#[test]
fn a_multicast_lands_everywhere_by_the_same_formula() {
    for stages in 1..=4 {
        for flits in LENGTHS {
            let mut lab = Lab::star(1, 0, 6, false, 3);
            lab.stages = stages;
            lab.tables.set(0, 0, 5, &[1, 2, 4, 5]).longest(132);
            lab.players[0].send(Packet::new(0, 5, 9, flits));
            let net = lab.run::<1>();
            let head = head_lands(1, stages, 3);
            for end in 0..6 {
                let got = net.end(end).packets(0, false);
                if [1, 2, 4, 5].contains(&end) {
                    assert_eq!(got, [(head, head + u64::from(flits) - 1, 5, 9, flits)], "{stages} stages, end {end}");
                } else {
                    assert!(got.is_empty());
                }
            }
        }
    }
}

#[test]
fn long_packets_of_two_inputs_do_not_mix_on_one_channel() {
    for flits in [11, 33, 132] {
        let mut lab = Lab::star(1, 0, 4, false, 1);
        for port in 0..3 {
            lab.tables.set(0, port, port, &[3]);
            for seq in 0..4 {
                lab.players[usize::from(port)].send(Packet::new(0, port, seq, flits));
            }
        }
        let net = lab.run::<1>();
        let packets = net.end(3).packets(0, false);
        // Twelve packets, one after the other without a gap; the three inputs take turns.
        let order: Vec<u16> = packets.iter().map(|packet| packet.2).collect();
        assert_eq!(order, [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2], "{flits} flits");
        let first = head_lands(1, 1, 1);
        for (i, packet) in packets.iter().enumerate() {
            assert_eq!(packet.0, first + i as u64 * u64::from(flits));
        }
    }
}

#[test]
fn a_link_narrower_than_a_flit_spaces_flits() {
    for cycles_per_flit in [2, 5] {
        for vc in [0, 1] {
            let mut lab = Lab::row(1, 1, 2, 2);
            lab.plan.links[0].cycles_per_flit = cycles_per_flit;
            lab.players[0].send(Packet::new(vc, 0, 0, 11).to(1));
            let net = lab.run::<1>();
            let width = u64::from(cycles_per_flit);
            let head = head_lands(2, 1, 2) + width - 1;
            assert_eq!(net.end(1).packets(vc, vc == 1), [(head, head + 10 * width, 0, 0, 11)]);
        }
    }
}
