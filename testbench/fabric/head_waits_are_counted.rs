//! What the head-wait cycles of a link count: every cycle at the head of a queue, whatever was waited for (H-STAT-1).

use watershed::fabric::Pipeline;

use crate::support::{Lab, Net, Packet};

/// Head-wait cycles of what switches sent over the link of an end point.
fn waits(net: &Net<1>, end: usize) -> u64 {
    net.link_loads().find(|load| load.to == format!("e{end}")).expect("the end point has a link").count.waited
}

/// Three end points around a switch with places to spare; `packets` are sent by (end point, destination, flits).
fn star(set: bool, packets: &[(usize, u16, u32)], change: impl Fn(&mut Lab)) -> Net<1> {
    let mut lab = Lab::star(u8::from(set), u8::from(!set), 3, false, 1);
    lab.tables.direct = true;
    change(&mut lab);
    for (seq, &(from, to, flits)) in packets.iter().enumerate() {
        lab.players[from].send(Packet::new(0, to, seq as u64, flits).to(u32::from(to)));
    }
    lab.run()
}

#[test]
fn a_lost_arbitration_counts_though_credits_abound() {
    assert_eq!(waits(&star(true, &[(0, 2, 1)], |_| {}), 2), 0, "nobody is in the way");
    for others in [1, 5] {
        let net = star(true, &[(0, 2, 1), (1, 2, others)], |_| {});
        // Whoever goes second waits until the first has left whole.
        let waited = waits(&net, 2);
        assert!([1, u64::from(others)].contains(&waited), "{waited} cycles behind {others} flits");
    }
}

#[test]
fn a_missing_credit_counts() {
    // One place at the far end: a credit is back after link, service there and link.
    let waited = |depth| {
        let link_of_the_receiver = 2;
        let change = |lab: &mut Lab| lab.depth_of = [(link_of_the_receiver, depth)].into();
        waits(&star(true, &[(0, 2, 9)], change), 2)
    };
    assert_eq!(waited(200), 0);
    assert!(waited(1) >= 8, "each of 8 flits waits for the place of the one before: {}", waited(1));
}

#[test]
fn a_slow_link_counts() {
    let waited = |cycles_per_flit| {
        let net = star(true, &[(0, 2, 1), (1, 2, 1)], |lab| {
            lab.plan.links.iter_mut().for_each(|link| link.cycles_per_flit = cycles_per_flit);
        });
        waits(&net, 2)
    };
    assert_eq!((waited(1), waited(4)), (1, 4));
}

#[test]
fn stages_count_for_point_to_point_heads_only() {
    let steps = Pipeline { route: 1, vc_alloc: 2, switch_alloc: 1, traversal: 1 };
    let waited = |set| waits(&star(set, &[(0, 2, 1)], |lab| lab.steps = Some(steps)), 2);
    assert_eq!(waited(true), 0, "a set-routed flit is ready behind the stages");
    assert_eq!(waited(false), 3, "route computation and channel allocation are walked through at the head");
}

#[test]
fn a_multicast_counts_at_every_output_whose_other_output_it_waited_for() {
    let mut lab = Lab::star(1, 0, 4, false, 1);
    lab.tables.set(0, 0, 7, &[2, 3]).set(0, 1, 8, &[3]);
    lab.players[1].send(Packet::new(0, 8, 0, 5));
    lab.players[0].send(Packet::new(0, 7, 1, 1).at(1));
    let net = lab.run::<1>();
    assert!(waits(&net, 3) > 0);
    assert_eq!(waits(&net, 2), waits(&net, 3), "port 2 was free, and the multicast waited for port 3");
}
