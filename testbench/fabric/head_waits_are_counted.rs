//! What the head-wait cycles of a link count: every cycle at the head of a queue, whatever was waited for; and to which cause
//! each of them is put down (H-STAT-1).

use watershed::fabric::{Cause, Evaluation, Pipeline};

use crate::support::{Engine, Lab, Net, Packet, Role, Wire, quiet, until};

/// The direction of the link of an end point that leads to it.
fn direction(net: &Net<1>, end: usize) -> usize {
    net.link_loads().position(|load| load.to == format!("e{end}")).expect("the end point has a link")
}

/// Head-wait cycles of what switches sent over the link of an end point.
fn waits(net: &Net<1>, end: usize) -> u64 {
    net.head_waits_add_up().expect("the causes add up");
    net.link_loads().nth(direction(net, end)).expect("it has been found").count.waited
}

/// The same by cause, those that are there.
fn causes(net: &Net<1>, end: usize) -> Vec<(Cause, u64)> {
    let waits = net.link_waits(direction(net, end));
    Cause::ALL.into_iter().map(|cause| (cause, waits.of(cause))).filter(|(_, cycles)| *cycles > 0).collect()
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
        // In the first it loses; then the channel is held until the tail has left.
        let arbitration = (Cause::Arbitration, 1);
        let expected = if waited == 1 { vec![arbitration] } else { vec![arbitration, (Cause::Channel, waited - 1)] };
        assert_eq!(causes(&net, 2), expected);
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
    let net = star(true, &[(0, 2, 9)], |lab| lab.depth_of = [(2, 1)].into());
    assert_eq!(causes(&net, 2), [(Cause::Credit, waited(1))]);
    assert!(waited(1) >= 8, "each of 8 flits waits for the place of the one before: {}", waited(1));
}

#[test]
fn a_slow_link_counts() {
    let of = |cycles_per_flit| {
        let net = star(true, &[(0, 2, 1), (1, 2, 1)], |lab| {
            lab.plan.links.iter_mut().for_each(|link| link.cycles_per_flit = cycles_per_flit);
        });
        (waits(&net, 2), causes(&net, 2))
    };
    assert_eq!(of(1), (1, vec![(Cause::Arbitration, 1)]));
    assert_eq!(of(4), (4, vec![(Cause::Arbitration, 1), (Cause::Link, 3)]));
}

#[test]
fn stages_count_for_point_to_point_heads_only() {
    let steps = Pipeline { route: 1, vc_alloc: 2, switch_alloc: 1, traversal: 1 };
    let of = |set| {
        let net = star(set, &[(0, 2, 1)], |lab| lab.steps = Some(steps));
        (waits(&net, 2), causes(&net, 2))
    };
    assert_eq!(of(true), (0, vec![]), "a set-routed flit is ready behind the stages");
    let stages = (3, vec![(Cause::Stage, 3)]);
    assert_eq!(of(false), stages, "route computation and channel allocation are walked through at the head");
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
    assert_eq!(causes(&net, 3), [(Cause::Channel, waits(&net, 3))]);
    assert_eq!(causes(&net, 2), [(Cause::Output, waits(&net, 2))]);
}

#[test]
fn copies_of_several_flits_wait_each_for_its_own_output() {
    // A frame to some of ports 2 and 3, where port 3 is taken by another one first, and its far end takes nothing before `opens`.
    let of = |outputs: &[u16], (flits, others, depth, opens): (u32, u32, u16, u64)| {
        let mut lab = Lab::star(1, 0, 4, false, 1);
        lab.tables.longest(8).set(0, 0, 7, outputs).set(0, 1, 8, &[3]);
        lab.depth_of = [(3, depth)].into();
        lab.players[3].opens = opens;
        if others > 0 {
            lab.players[1].send(Packet::new(0, 8, 0, others));
        }
        for seq in 1..3 {
            lab.players[0].send(Packet::new(0, 7, seq, flits).at(1));
        }
        lab.run::<1>()
    };
    for case in [(2, 0, 200, 0), (4, 5, 200, 0), (6, 5, 8, 60), (8, 0, 8, 45), (8, 3, 9, 60), (3, 8, 200, 0)] {
        let (one, both) = (of(&[3], case), of(&[2, 3], case));
        // Each copy at port 3 waits as a frame of which there is no other copy.
        assert_eq!(waits(&both, 3), waits(&one, 3), "{case:?}");
        assert_eq!(causes(&both, 3), causes(&one, 3), "{case:?}");
        assert_eq!(waits(&both, 3) > 0, case.1 > 0 || case.3 > 0, "{case:?}");
        // Port 2 is free.
        assert_eq!(waits(&both, 2), 0, "{case:?}");
    }
    let channel = causes(&of(&[2, 3], (4, 5, 200, 0)), 3);
    assert!(channel.iter().any(|&(cause, cycles)| cause == Cause::Channel && cycles >= 3), "{channel:?}");
    let credit = causes(&of(&[2, 3], (6, 5, 8, 60)), 3);
    assert!(credit.iter().any(|&(cause, cycles)| cause == Cause::Credit && cycles >= 20), "{credit:?}");
}

#[test]
fn copies_that_lose_an_input_wait_before_they_begin() {
    // Two channels of one input: the upper one goes first, flit by flit, and what is on the lower one waits for the input.
    let mut lab = Lab::star(2, 0, 4, false, 1);
    lab.tables.longest(8).set(0, 0, 7, &[2, 3]).set(0, 0, 9, &[1]);
    for seq in 0..6 {
        lab.players[0].send(Packet::new(1, 9, seq, 1));
    }
    lab.players[0].send(Packet::new(0, 7, 9, 3));
    let net = lab.run::<1>();
    assert_eq!(causes(&net, 2), causes(&net, 3), "copies of one input lose it together");
    assert!(causes(&net, 2).iter().all(|(cause, _)| *cause == Cause::Arbitration));
}

#[test]
fn a_packet_without_a_channel_counts_until_it_has_one() {
    let net = star(false, &[(0, 2, 6), (1, 2, 1)], |_| {});
    let all = causes(&net, 2);
    let channel = all.iter().find(|(cause, _)| *cause == Cause::Channel).expect("one packet holds the only channel");
    assert!(channel.1 >= 5 && waits(&net, 2) >= 5, "{all:?}");
}

/// A switch whose engine joins what comes by ports 0 and 1, with a place for one operand of each; the other operand of the
/// first comes late.
fn gathering(late: u64) -> Lab {
    let mut lab = Lab::star(1, 0, 3, true, 1);
    lab.engine = Engine::new(Role::Gather { ports: vec![0, 1] }, 1);
    for port in [0, 1] {
        lab.tables.set(0, port, 0, &[3]);
    }
    lab.tables.set(0, 3, 0, &[2]);
    for seq in 0..8 {
        lab.players[0].send(Packet::new(0, 0, seq, 1));
        lab.players[1].send(Packet::new(0, 0, seq, 1).at(late));
    }
    lab
}

#[test]
fn missing_operands_are_told_from_a_full_engine() {
    let of = |lab: &Lab| {
        let net = lab.run::<1>();
        net.head_waits_add_up().expect("the causes add up");
        let engines = net.head_waits().expect("link monitors look").engines;
        (engines.of(Cause::Operands), engines.of(Cause::Engine), engines.total())
    };
    let (operands, engine, total) = of(&gathering(60));
    assert!(operands > 50 && total == operands + engine, "{operands}, {engine} of {total}");
    // Both are there, and nothing takes the results away: the engine itself is in the way.
    let mut lab = gathering(0);
    lab.players[2].opens = 80;
    lab.depth_of = [(2, 1)].into();
    lab.engine.results = 1;
    let (operands, engine, total) = of(&lab);
    assert!(engine > 50 && total == operands + engine, "{operands}, {engine} of {total}");
}

#[test]
fn blocks_count_what_they_do_not_take() {
    let of = |lab: &Lab| {
        let blocks = lab.run::<1>().head_waits().expect("link monitors look").blocks;
        (blocks.of(Cause::Memory), blocks.of(Cause::Engine), blocks.total())
    };
    let mut lab = Lab::row(1, 0, 1, 1);
    lab.players[0].send(Packet::new(0, 0, 0, 1));
    lab.players[1].opens = 40;
    let (memory, engine, total) = of(&lab);
    assert!(memory > 30 && (engine, total) == (0, memory), "{memory}, {engine} of {total}");
    let mut lab = Lab::row(1, 0, 1, 1);
    lab.players[0].send(Packet::new(0, 0, 0, 1));
    lab.bump(0, 1, 1, Wire::Hold { until: 40 });
    let (memory, engine, total) = of(&lab);
    assert!(engine > 30 && (memory, total) == (0, engine), "{memory}, {engine} of {total}");
}

#[test]
fn sleeping_and_waking_count_the_same() {
    let busy = |seed: u64, no_skip: bool| {
        let mut lab = Lab::star(2, 2, 4, false, 1 + seed as u16 % 3);
        lab.tables.direct = true;
        lab.depth = 1 + seed as u16 % 4;
        lab.stages = 1 + seed as u8 % 4;
        lab.plan.links.iter_mut().for_each(|link| link.cycles_per_flit = 1 + seed as u16 % 3);
        lab.evaluation = Evaluation { no_skip, ..Evaluation::default() };
        for from in 0..4usize {
            for seq in 0..30u64 {
                let to = (from as u64 * 7 + seq * 5 + seed) % 4;
                let vc = (seq + seed) as u8 % 4;
                let flits = if vc < 2 { 1 } else { 1 + (seq % 3) as u32 };
                lab.players[from].send(Packet::new(vc, to as u16, seq, flits).to(to as u32));
            }
        }
        let net = lab.run::<1>();
        net.head_waits_add_up().expect("the causes add up");
        let links: Vec<_> = (0..2 * lab.plan.links.len()).map(|direction| net.link_waits(direction)).collect();
        (links, net.head_waits().expect("link monitors look"))
    };
    for seed in 0..24 {
        let skipping = busy(seed, false);
        assert!(skipping.1.links.total() > 0);
        assert_eq!(skipping, busy(seed, true), "seed {seed}");
    }
}

#[test]
fn nothing_is_kept_where_nobody_looks() {
    let mut lab = Lab::row(1, 0, 1, 1);
    lab.monitors = false;
    lab.players[0].send(Packet::new(0, 0, 0, 1));
    let net = lab.run::<1>();
    assert_eq!(net.head_waits(), None);
    assert_eq!(net.head_waits_add_up(), Ok(()));
}

#[test]
fn the_head_that_has_waited_longest_is_named() {
    let mut lab = Lab::star(1, 0, 3, false, 1);
    lab.tables.direct = true;
    // The long packet holds the channel before the short one comes.
    lab.players[0].send(Packet::new(0, 2, 0, 200).to(2));
    lab.players[1].send(Packet::new(0, 2, 1, 1).to(2).at(10));
    let mut net = lab.build::<1>();
    assert_eq!(net.longest_head(), None, "nobody is there yet");
    until(&mut net, 60);
    let (place, waited) = net.longest_head().expect("the short packet waits");
    assert!(place.contains(".I1 ") && (40..50).contains(&waited), "{waited} cycles at {place}");
    until(&mut net, 80);
    assert_eq!(net.longest_head(), Some((place, waited + 20)));
    quiet(&mut net, 10_000);
    assert_eq!(net.longest_head(), None);
}
