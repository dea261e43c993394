//! What an idle switch costs, and that live memory follows what is queued.

use watershed::fabric::arbiter::Policy;
use watershed::fabric::routing::Routes;
use watershed::fabric::topology::{Common, Die, LinkParams};
use watershed::fabric::traffic::{Traffic, TrafficEnd};
use watershed::fabric::{Blocks, Network, NoBump, NoJoin, Pipeline, RouterCfg, SwitchCfg, Vcs};

use crate::support::{Lab, Net, Packet, clean, quiet, until};

#[test]
fn an_idle_switch_of_the_die_is_small() {
    let link = LinkParams { latency: 5, cycles_per_flit: 1 };
    let layout = Die::default().layout(&Common { vcs: Vcs { set: 2, unicast: 2 }, engine: false, link, local: link });
    let mut plan = layout.plan.clone();
    for node in &mut plan.nodes[..16] {
        // Eleven ports; the engine itself is the family's and not counted here.
        node.ports += 1;
    }
    let routes = Routes { routing: layout.routing.clone(), ends: layout.ends.clone() };
    let ends = (0..8).map(|end| TrafficEnd::new(Traffic::new(end, &[], 0))).collect();
    let blocks = Blocks { joins: Vec::new(), no_join: NoJoin::default(), bumps: Vec::new(), ends };
    let cfg = SwitchCfg {
        pipeline: Pipeline::new(1),
        policy: Policy::RoundRobin,
        monitors: false,
        router: RouterCfg::default(),
    };
    let names = (0..4).map(|vc| format!("c{vc}")).collect();
    let net: Network<Routes, NoJoin<Routes>, NoBump<Routes>, TrafficEnd<Routes>, 1> =
        Network::new(plan, routes, blocks, cfg, &|_, _| 8, names);
    let bytes = net.idle_bytes_per_switch();
    println!("{bytes} bytes");
    // 44 queues of 16 bytes, 11 ports of 70 with their arbiters, 32 of the node. The budget of the biggest system is 3,072
    // bytes a switch.
    assert!(bytes <= 1600, "{bytes} bytes");
}

#[test]
fn live_flits_follow_what_is_queued() {
    let mut lab = Lab::row(1, 0, 2, 10);
    lab.players[1].opens = 500;
    lab.depth = 7;
    lab.players[0].send(Packet::new(0, 0, 0, 33));
    let mut net: Net<1> = lab.build();
    assert_eq!(net.live_flits(), 0);
    until(&mut net, 400);
    assert_eq!(net.live_flits(), 3 * 7, "three full buffers");
    assert!(net.has_flits(true));
    quiet(&mut net, 10_000);
    clean(&net);
    assert!(!net.has_flits(false));
}
