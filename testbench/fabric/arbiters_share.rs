//! Arbiters under saturation: who gets how much, exactly; and strict priority between classes of channels (K-ARB-1,
//! P-SW-4).

use watershed::fabric::arbiter::Policy;

use crate::support::{Lab, Packet, until};

/// Packets that landed at the last of `ports` ends within `window` cycles, by source, when all others never pause.
fn served(policy: Policy, vc: u8, ports: u16, flits: u32, window: u64) -> Vec<u64> {
    let mut lab = Lab::star(1, 1, ports, false, 1);
    lab.tables.direct = true;
    lab.policy = policy;
    let to = ports - 1;
    for port in 0..to {
        for seq in 0..=window / u64::from(flits) {
            let seq = u64::from(port) * 10_000 + seq;
            lab.players[usize::from(port)].send(Packet::new(vc, to, seq, flits).to(u32::from(to)));
        }
    }
    let mut net = lab.build::<1>();
    until(&mut net, 4 + window);
    let mut counts = vec![0; usize::from(to)];
    for (_, flit) in net.ends()[usize::from(to)].landed.iter().filter(|(_, flit)| flit.tag.tail()) {
        counts[(flit.tag.seq() / 10_000) as usize] += 1;
    }
    counts
}

#[test]
fn round_robin_and_matrix_share_equally() {
    for policy in [Policy::RoundRobin, Policy::Matrix] {
        for vc in [0, 1] {
            for flits in [1, 11] {
                for ports in [3, 6, 11] {
                    let inputs = u64::from(ports) - 1;
                    let counts = served(policy, vc, ports, flits, inputs * u64::from(flits) * 12);
                    assert_eq!(counts, vec![12; inputs as usize], "{policy:?}, channel {vc}, {flits} flits");
                }
            }
        }
    }
}

#[test]
fn fixed_priority_starves_all_but_the_lowest() {
    assert_eq!(served(Policy::Fixed, 0, 6, 1, 100), [100, 0, 0, 0, 0]);
    assert_eq!(served(Policy::Fixed, 0, 6, 11, 110), [10, 0, 0, 0, 0]);
    // Point-to-point packets that share one output channel are put in turn by channel allocation, whose order is always
    // round-robin; the policy decides among packets that hold a channel each.
    assert_eq!(served(Policy::Fixed, 1, 6, 1, 100), [20; 5]);
}

#[test]
fn least_recently_served_is_fair_for_each_output() {
    // Inputs 0 and 1 want output 4, inputs 2 and 3 want output 5, all without a pause.
    for (policy, exact) in [(Policy::Matrix, true), (Policy::RoundRobin, false)] {
        let mut lab = Lab::star(1, 0, 6, false, 1);
        lab.tables.direct = true;
        lab.policy = policy;
        for port in 0..4 {
            for seq in 0..100 {
                lab.players[usize::from(port)].send(Packet::new(0, 4 + port / 2, u64::from(port) * 1000 + seq, 1));
            }
        }
        let mut net = lab.build::<1>();
        until(&mut net, 4 + 80);
        for output in [4, 5] {
            let landed = &net.end(output).landed;
            assert_eq!(landed.len(), 80, "the output never pauses");
            let first = landed[0].1.tag.seq() / 1000 / 2 * 2;
            let low = landed.iter().filter(|(_, flit)| flit.tag.seq() / 1000 == first).count();
            if exact {
                assert_eq!(low, 40, "{policy:?}, output {output}");
            } else {
                // One cursor walks over all inputs: nobody starves, but shares depend on who else is there.
                assert!((20..=60).contains(&low), "{policy:?}, output {output}: {low} of 80");
            }
        }
    }
}

#[test]
fn set_routed_goes_before_point_to_point_to_the_last_flit() {
    for stages in 1..=4 {
        let mut lab = Lab::star(1, 1, 3, false, 1);
        lab.tables.direct = true;
        lab.stages = stages;
        for seq in 0..50 {
            lab.players[1].send(Packet::new(1, 2, seq, 1).to(2));
        }
        for seq in 0..100 {
            lab.players[0].send(Packet::new(0, 2, seq, 1).at(20));
        }
        let net = lab.run::<1>();
        let landed = &net.end(2).landed;
        // The set-routed stream lands as if it were alone, and nothing of the other class lands within it.
        let first = 20 + 2 + u64::from(stages) + 1;
        let set: Vec<u64> = landed.iter().filter(|(_, flit)| flit.tag.vc() == 0).map(|(cycle, _)| *cycle).collect();
        assert_eq!(set, (first..first + 100).collect::<Vec<_>>(), "{stages} stages");
        assert!(landed.iter().all(|(cycle, flit)| flit.tag.vc() == 0 || !(first..first + 100).contains(cycle)));
        assert_eq!(landed.len(), 150, "the other class goes on after it");
    }
}

#[test]
fn a_higher_set_channel_goes_before_a_lower_one() {
    for flits in [1, 11] {
        let mut lab = Lab::star(3, 0, 4, false, 1);
        lab.tables.direct = true;
        for (port, vc) in [(0, 0), (1, 1), (2, 2)] {
            for seq in 0..66 / u64::from(flits) {
                lab.players[port].send(Packet::new(vc, 3, seq, flits));
            }
        }
        let net = lab.run::<1>();
        let channels: Vec<u8> = net.end(3).landed.iter().map(|(_, flit)| flit.tag.vc()).collect();
        let expected: Vec<u8> = [2, 1, 0].into_iter().flat_map(|vc| [vc; 66]).collect();
        assert_eq!(channels, expected, "{flits} flits");
    }
}

#[test]
fn a_worm_of_a_lower_channel_gives_way_in_the_middle() {
    // 33 flits of channel 0 are under way when a flit of channel 1 wants the same output: it does not wait.
    let mut lab = Lab::star(2, 0, 3, false, 1);
    lab.tables.direct = true;
    lab.players[0].send(Packet::new(0, 2, 0, 33));
    lab.players[1].send(Packet::new(1, 2, 0, 1).at(10));
    let net = lab.run::<1>();
    assert_eq!(net.end(2).packets(1, false), [(14, 14, 2, 0, 1)]);
    assert_eq!(net.end(2).packets(0, false), [(4, 4 + 33, 2, 0, 33)], "one cycle later than alone");
}
