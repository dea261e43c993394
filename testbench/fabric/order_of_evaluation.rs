//! The order in which blocks are evaluated changes nothing, skipping idle blocks and cycles changes nothing, and idle
//! time is free (K-CLK-1, K-CLK-2, K-DET-1).

use watershed::fabric::arbiter::Policy;
use watershed::fabric::topology::Mesh;
use watershed::fabric::traffic::{SourceCfg, Target};
use watershed::fabric::{Evaluation, LinkCount, Step};
use watershed::kernel::Rng;

use crate::point_to_point::{Plain, common, plain};
use crate::share;
use crate::support::{Engine, Lab, Net, Packet, Role, Wire, clean, quiet, seed, trace};

fn ways(case: u64) -> [Evaluation; 3] {
    [
        Evaluation { no_skip: false, shuffle: Some(case) },
        Evaluation { no_skip: true, shuffle: None },
        Evaluation { no_skip: true, shuffle: Some(!case) },
    ]
}

/// What can be seen of a network, cycle by cycle: only cycles in which something moved, so that runs that visit
/// different cycles compare.
pub fn history(net: &mut Plain) -> Vec<(u64, u64, usize, Vec<LinkCount>)> {
    let mut history = Vec::new();
    let mut moves = 0;
    loop {
        let step = net.step();
        if net.moves() != moves {
            moves = net.moves();
            let counts = net.link_loads().map(|load| load.count).collect();
            history.push((net.now(), moves, net.live_flits(), counts));
        }
        if step == Step::Quiet {
            return history;
        }
    }
}

#[test]
fn random_point_to_point_networks_agree_cycle_by_cycle() {
    let seed = seed();
    for case in 0..8 {
        let mut rng = Rng::new(seed, case);
        let layout = Mesh { size: vec![1 + rng.below(4) as u32, 1 + rng.below(4) as u32], concentration: 1 }
            .layout(&common(1 + rng.below(3) as u8, 1 + rng.below(3) as u16, 1));
        let (stages, depth) = (1 + rng.below(4) as u8, 1 + rng.below(6) as u16);
        let n = layout.ends.len();
        let (rate, packet_flits) = ([0.02, 0.4, 1.0][rng.below(3) as usize], 1 + rng.below(11) as u32);
        let target = Target::Uniform { ends: n as u32 };
        let sources = vec![vec![SourceCfg { rate, packet_flits, target, start: 0, stop: 150, class: 0 }]; n];
        let build = || plain(&layout, stages, Policy::RoundRobin, depth, seed ^ case, &sources);
        let mut net = build();
        let expected = history(&mut net);
        for way in ways(case) {
            let mut other = build();
            other.evaluate(way);
            assert!(history(&mut other) == expected, "seed {seed}, case {case}, {way:?}");
            assert!(other.ends().iter().zip(net.ends()).all(|(a, b)| a.traffic.received() == b.traffic.received()));
        }
    }
}

/// A random row or star with engines of both forms, both classes and long frames.
pub fn random(rng: &mut Rng) -> Lab {
    let ports = 4 + rng.below(6) as u16;
    let mut lab = Lab::star(2, 2, ports, true, 1 + rng.below(3) as u16);
    lab.stages = 1 + rng.below(4) as u8;
    lab.depth = 33 + rng.below(9) as u16;
    lab.policy = [Policy::RoundRobin, Policy::Matrix][rng.below(2) as usize];
    lab.engine = Engine::new(Role::Pass { latency: rng.below(5) }, 40);
    lab.tables.longest(33);
    for port in 0..ports {
        // Id 0: to the engine; id 1: a multicast; the engine's results leave by port 0.
        lab.tables.set(0, port, 0, &[ports]).set(0, port, 1, &[port, (port + 1) % ports, (port + 3) % ports]);
        lab.tables.to(0, u32::from(port), port);
        for seq in 0..8 {
            let vc = rng.below(4) as u8;
            let (id, flits) = (u16::from(vc != 0), [1, 3, 11, 33][rng.below(4) as usize]);
            let packet = Packet::new(vc, id, seq, flits).to(rng.below(u64::from(ports)) as u32);
            lab.players[usize::from(port)].send(packet.at(rng.below(150)));
        }
        lab.players[usize::from(port)].opens = rng.below(3) * 80;
    }
    lab.tables.set(0, ports, 0, &[0]);
    for port in 0..ports {
        if rng.below(2) == 0 {
            lab.bump(0, port, 1 + rng.below(3) as u16, Wire::Hold { until: rng.below(2) * 100 });
        }
    }
    lab
}

/// Twenty-five in `make soak`, nine in `make test`.
#[test]
fn random_networks_with_engines_of_both_forms_agree() {
    let seed = seed();
    for case in 0..share::of(3, 25) {
        let mut lab = random(&mut Rng::new(seed, 77 + case));
        let expected = trace(&lab.run::<1>());
        for way in ways(case) {
            lab.evaluation = way;
            assert!(trace(&lab.run::<1>()) == expected, "seed {seed}, case {case}, {way:?}");
        }
    }
}

#[test]
fn ten_thousand_million_idle_cycles_cost_a_few_steps() {
    let far = 10_000_000_000;
    let mut lab = Lab::row(1, 1, 2, 3);
    lab.players[0].send(Packet::new(0, 0, 0, 1));
    lab.players[0].send(Packet::new(0, 0, 1, 1).at(far));
    lab.players[1].send(Packet::new(1, 1, 2, 1).to(0).at(2 * far));
    let mut net: Net<1> = lab.build();
    let steps = quiet(&mut net, 1000);
    clean(&net);
    assert!(steps < 40, "{steps} steps");
    let landed: Vec<u64> = net.end(1).landed.iter().map(|(cycle, _)| *cycle).collect();
    assert_eq!(landed, [12, far + 12], "to the cycle");
    assert_eq!(net.end(0).landed[0].0, 2 * far + 12);
    assert_eq!(net.end(1).packets(0, false).len(), 2);
}

#[test]
fn a_switch_without_traffic_is_never_evaluated() {
    // A row of 40 switches; a packet visits each once, so the steps follow the cycles of the packet, not the system.
    let mut lab = Lab::row(1, 0, 40, 50);
    lab.players[0].send(Packet::new(0, 0, 0, 1));
    let mut net: Net<1> = lab.build();
    let steps = quiet(&mut net, 10_000);
    assert_eq!(net.end(1).landed[0].0, 41 * 50 + 40 + 1);
    assert!(steps <= 3 * 41 + 3, "{steps} steps for {} cycles", net.now());
}
