//! Switches of hundreds of ports: every port reaches every other, in both classes, and shares are fair.

use watershed::fabric::arbiter::Policy;

use crate::share;
use crate::support::{Lab, Packet};

/// Every port sends one packet to every other, in rounds: in round r port i sends to port i + r, so nobody meets.
fn all_pairs<const W: usize>(ports: u16, vc: u8, flits: u32, rounds: &[u16]) {
    let mut lab = Lab::star(1, 1, ports, false, 1);
    lab.tables.direct = true;
    for port in 0..ports {
        for (seq, round) in rounds.iter().enumerate() {
            let to = (port + round) % ports;
            lab.players[usize::from(port)].send(Packet::new(vc, to, seq as u64, flits).to(u32::from(to)));
        }
    }
    let net = lab.run::<W>();
    for (port, end) in net.ends().iter().enumerate() {
        let expected: Vec<_> = (0..rounds.len() as u64)
            .map(|seq| {
                let head = 4 + seq * u64::from(flits);
                (head, head + u64::from(flits) - 1, port as u16, seq, flits)
            })
            .collect();
        assert_eq!(end.packets(vc, vc == 1), expected, "{ports} ports, channel {vc}, end {port}");
    }
}

#[test]
fn every_port_reaches_every_other_of_65_and_100() {
    for vc in [0, 1] {
        all_pairs::<2>(65, vc, 1, &(1..65).collect::<Vec<u16>>());
        all_pairs::<2>(65, vc, 11, &(1..65).collect::<Vec<u16>>());
        all_pairs::<3>(100, vc, 1, &(1..100).collect::<Vec<u16>>());
    }
}

#[test]
fn every_port_reaches_every_other_of_200() {
    for vc in [0, 1] {
        all_pairs::<4>(200, vc, 1, &(1..200).collect::<Vec<u16>>());
    }
}

/// Every third one in `make test`: all words of ports are among them.
#[test]
fn every_port_reaches_every_other_of_500_set_routed() {
    all_pairs::<8>(500, 0, 1, &share::one_in(3, 1..500).collect::<Vec<u16>>());
}

#[test]
fn far_ports_of_500_point_to_point_and_long_frames() {
    all_pairs::<8>(500, 1, 1, &[1, 63, 64, 65, 250, 436, 499]);
    all_pairs::<8>(500, 0, 33, &[64, 499]);
    all_pairs::<8>(500, 1, 33, &[65]);
}

#[test]
fn eight_channels_on_500_ports_reach_the_last_port() {
    // The largest occupancy there is: 4,000 queues on one switch. Every channel of every port sends one packet.
    let mut lab = Lab::star(4, 4, 500, false, 1);
    lab.tables.direct = true;
    for port in 0..500 {
        for vc in 0..8 {
            let to = (port + 64 * u16::from(vc) + 1) % 500;
            lab.players[usize::from(port)].send(Packet::new(vc, to, u64::from(vc), 3).to(u32::from(to)));
        }
    }
    let net = lab.run::<8>();
    for end in net.ends() {
        let of_sets: Vec<u64> = (0..4).flat_map(|vc| end.packets(vc, false)).map(|packet| packet.3).collect();
        assert_eq!(of_sets, [0, 1, 2, 3], "set-routed packets stay on their channel");
        let mut others: Vec<u64> = (4..8).flat_map(|vc| end.packets(vc, true)).map(|packet| packet.3).collect();
        others.sort_unstable();
        assert_eq!(others, [4, 5, 6, 7]);
    }
}

/// All other ports send to the last one: every input is served once in every turn, exactly.
fn shares<const W: usize>(ports: u16, vc: u8, flits: u32, policy: Policy) {
    let mut lab = Lab::star(1, 1, ports, false, 1);
    lab.tables.direct = true;
    lab.policy = policy;
    let to = ports - 1;
    for port in 0..to {
        for seq in 0..3 {
            // The number of the source in the sequence number: the id names the output.
            let seq = u64::from(port) * 10 + seq;
            lab.players[usize::from(port)].send(Packet::new(vc, to, seq, flits).to(u32::from(to)));
        }
    }
    let net = lab.run::<W>();
    let packets = net.ends()[usize::from(to)].packets(vc, vc == 1);
    assert_eq!(packets.len(), 3 * usize::from(to));
    assert_eq!(packets.last().unwrap().1 - packets[0].0 + 1, 3 * u64::from(to) * u64::from(flits), "no idle cycle");
    for turn in packets.chunks(usize::from(to)) {
        let mut sources: Vec<u64> = turn.iter().map(|packet| packet.3 / 10).collect();
        sources.sort_unstable();
        assert_eq!(sources, (0..u64::from(to)).collect::<Vec<_>>(), "{ports} ports, channel {vc}, {policy:?}");
    }
}

/// One case in five in `make test`: every size, channel and policy is among them, and of 500 ports one channel.
#[test]
fn shares_are_equal_to_the_packet() {
    for case in share::one_in(5, 0..12) {
        let (policy, vc) = ([Policy::RoundRobin, Policy::Matrix][case / 6], (case / 3 % 2) as u8);
        match case % 3 {
            0 => shares::<2>(65, vc, 1, policy),
            1 => shares::<2>(65, vc, 11, policy),
            _ => shares::<4>(200, vc, 1, policy),
        }
    }
    for vc in share::one_in(2, [0, 1]) {
        shares::<8>(500, vc, 1, Policy::RoundRobin);
    }
}

#[test]
fn a_multicast_reaches_499_ports_in_one_cycle() {
    for flits in [1, 11, 132] {
        let mut lab = Lab::star(1, 0, 500, false, 1);
        lab.tables.set(0, 77, 0, &(0..500).filter(|&port| port != 77).collect::<Vec<u16>>()).longest(132);
        lab.players[77].send(Packet::new(0, 0, 0, flits));
        let net = lab.run::<8>();
        for (port, end) in net.ends().iter().enumerate() {
            let expected = if port == 77 { vec![] } else { vec![(4, 3 + u64::from(flits), 0, 0, flits)] };
            assert_eq!(end.packets(0, false), expected, "port {port}");
        }
    }
}
