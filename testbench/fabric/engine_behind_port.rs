//! The first form in which an engine joins: an internal crossbar port. A packet that passes an engine of latency T
//! spends 2P + T cycles in the switch; slots are one per input port, and full slots push back to the source.

use crate::support::{Engine, LENGTHS, Lab, Packet, Role, clean, earliest, quiet, until, word};

/// A star with an engine; packets of end 0 go to the engine, its results to end 1.
fn lab(ports: u16, stages: u8, role: Role, slots: usize) -> Lab {
    let mut lab = Lab::star(1, 1, ports, true, 2);
    lab.stages = stages;
    lab.engine = Engine::new(role, slots);
    let engine = ports;
    for port in 0..ports {
        lab.tables.set(0, port, 0, &[engine]);
    }
    lab.tables.set(0, engine, 0, &[1]);
    lab
}

#[test]
fn a_pass_through_costs_two_crossings_and_its_own_latency() {
    for ports in [3, 100] {
        for stages in 1..=4 {
            for latency in [0, 1, 7] {
                for flits in LENGTHS {
                    let mut lab = lab(ports, stages, Role::Pass { latency }, 20);
                    lab.players[0].send(Packet::new(0, 0, 5, flits));
                    let net = lab.run::<2>();
                    let head = 2 * 2 + 2 * u64::from(stages) + latency + 1;
                    assert_eq!(
                        net.end(1).packets(0, false),
                        [(head, head + u64::from(flits) - 1, 0, 5, flits)],
                        "{ports} ports, {stages} stages, latency {latency}"
                    );
                }
            }
        }
    }
}

#[test]
fn packets_of_many_inputs_pass_whole() {
    for (ports, flits) in [(5, 11), (70, 33), (5, 132), (100, 1)] {
        let mut lab = lab(ports, 3, Role::Pass { latency: 2 }, 4);
        for port in 0..ports {
            for seq in 0..2 {
                lab.players[usize::from(port)].send(Packet::new(0, 0, u64::from(port) * 2 + seq, flits));
            }
        }
        let net = lab.run::<2>();
        let mut seqs: Vec<u64> = net.end(1).packets(0, false).iter().map(|packet| packet.3).collect();
        seqs.sort_unstable();
        assert_eq!(seqs, (0..u64::from(ports) * 2).collect::<Vec<_>>());
    }
}

#[test]
fn an_absorber_swallows_at_full_rate_and_returns_credits() {
    for ports in [3, 65] {
        for stages in 1..=4 {
            for flits in LENGTHS {
                // The buffer is the credit round trip from an end point: 2 L + 2 + front stages.
                let mut lab = lab(ports, stages, Role::Absorb, 4);
                lab.depth = 2 * 2 + 2 + u16::from(stages.saturating_sub(2));
                for seq in 0..4 {
                    lab.players[0].send(Packet::new(0, 0, seq, flits));
                }
                let net = lab.run::<2>();
                let cycles: Vec<u64> = net.end(0).sent.iter().map(|(cycle, _)| *cycle).collect();
                assert_eq!(cycles, (0..4 * u64::from(flits)).collect::<Vec<_>>(), "{stages} stages: a flit a cycle");
                assert_eq!(net.joins()[0].taken, 4 * u64::from(flits));
                assert!(net.ends().iter().all(|end| end.landed.is_empty()));
            }
        }
    }
}

#[test]
fn a_join_waits_for_a_packet_of_every_port() {
    for (ports, joined) in [(4, 3), (10, 9), (100, 80)] {
        for flits in [1, 11] {
            for stages in 1..=4 {
                let inputs: Vec<u16> = (0..joined).collect();
                let mut lab = lab(ports, stages, Role::Gather { ports: inputs.clone() }, 2);
                let late = 30 + u64::from(stages);
                for &port in &inputs {
                    let at = if port == joined - 1 { late } else { u64::from(port) / 4 };
                    lab.players[usize::from(port)].send(Packet::new(0, 0, u64::from(port), flits).at(at));
                }
                lab.tables.set(0, ports, 0, &[ports - 1]);
                let mut net = lab.build::<2>();
                let sink = usize::from(ports) - 1;
                let head = late + 2 * 2 + 2 * u64::from(stages) + 1;
                earliest(&mut net, head, |net| net.end(sink).landed.len() == 1);
                quiet(&mut net, 10_000);
                clean(&net);
                let got = &net.end(sink).landed;
                assert_eq!(got.len(), flits as usize, "one result packet of {joined}");
                for (index, (cycle, flit)) in got.iter().enumerate() {
                    let index = index as u32;
                    let sum = inputs.iter().fold(0u64, |s, &port| s.wrapping_add(word(0, u64::from(port), index)));
                    assert_eq!((*cycle, flit.word), (head + u64::from(index), sum), "flit {index}");
                    assert_eq!((flit.tag.head(), flit.tag.tail()), (index == 0, index + 1 == flits));
                }
            }
        }
    }
}

#[test]
fn full_slots_push_back_to_the_source() {
    for stages in 1..=4 {
        for flits in [1, 11] {
            // The partner's packets do not come before cycle 500. Two slots and a buffer of 5 flits: no more leaves.
            let mut lab = lab(4, stages, Role::Gather { ports: vec![0, 1] }, 2);
            lab.depth = 5;
            lab.tables.set(0, 4, 0, &[3]);
            let packets = 22 / u64::from(flits);
            for seq in 0..packets {
                lab.players[0].send(Packet::new(0, 0, seq, flits));
                lab.players[1].send(Packet::new(0, 0, 100 + seq, flits).at(500));
            }
            let mut net = lab.build::<1>();
            until(&mut net, 500);
            assert_eq!(net.end(0).sent.len(), 2 + 5, "slots and buffer, {stages} stages, {flits} flits");
            assert_eq!(net.end(3).landed.len(), 0);
            quiet(&mut net, 10_000);
            clean(&net);
            let first = 500 + 2 * 2 + 2 * u64::from(stages) + 1;
            assert_eq!(net.end(3).landed[0].0, first, "earliest result");
            assert_eq!(net.end(3).landed.len() as u64, packets * u64::from(flits));
        }
    }
}

#[test]
fn a_multicast_may_have_the_engine_among_its_outputs() {
    for flits in LENGTHS {
        let mut lab = lab(4, 2, Role::Pass { latency: 1 }, 3);
        lab.tables.set(0, 0, 0, &[2, 3, 4]).longest(132);
        lab.players[0].send(Packet::new(0, 0, 1, flits));
        let net = lab.run::<1>();
        let last = u64::from(flits) - 1;
        for end in [2, 3] {
            assert_eq!(net.end(end).packets(0, false), [(7, 7 + last, 0, 1, flits)]);
        }
        assert_eq!(net.end(1).packets(0, false), [(10, 10 + last, 0, 1, flits)]);
    }
}

#[test]
fn an_engine_may_answer_point_to_point() {
    // Its packets walk through the stages of the second crossing like any other, and no stage twice.
    for stages in 1..=4 {
        let mut lab = lab(4, stages, Role::Answer { dst: 2 }, 40);
        lab.tables.to(0, 2, 2);
        lab.players[0].send(Packet::new(0, 0, 6, 1));
        for seq in 0..20 {
            lab.players[0].send(Packet::new(0, 0, 7 + seq, 1).at(100));
        }
        let net = lab.run::<1>();
        let landed = &net.end(2).landed;
        assert_eq!((landed.len(), landed[0].0), (21, 2 * 2 + 2 * u64::from(stages) + 1), "{stages} stages");
        assert_eq!(landed[1].0, 100 + landed[0].0);
    }
}
