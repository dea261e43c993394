//! Point-to-point traffic: zero-load latency by formula for all pairs, interleaving of channels, head-of-line blocking,
//! and saturated networks that drain with nothing lost (K-PIPE-1).

use watershed::fabric::arbiter::Policy;
use watershed::fabric::routing::{Routes, walk};
use watershed::fabric::topology::{Common, Die, Layout, LinkParams, Mesh};
use watershed::fabric::traffic::{SourceCfg, Target, Traffic, TrafficEnd};
use watershed::fabric::{Blocks, Network, NoBump, NoJoin, Pipeline, RouterCfg, Step, SwitchCfg, Vcs};
use watershed::kernel::Rng;

use crate::support::{Lab, Packet, seed, until};

pub type Plain = Network<Routes, NoJoin<Routes>, NoBump<Routes>, TrafficEnd<Routes>, 1>;

pub fn common(unicast: u8, latency: u16, local: u16) -> Common {
    let link = |latency| LinkParams { latency, cycles_per_flit: 1 };
    Common { vcs: Vcs { set: 0, unicast }, engine: false, link: link(latency), local: link(local) }
}

pub fn plain(layout: &Layout, stages: u8, policy: Policy, depth: u16, seed: u64, sources: &[Vec<SourceCfg>]) -> Plain {
    let cfg = SwitchCfg { pipeline: Pipeline::new(stages), policy, monitors: true, router: RouterCfg::default() };
    plain_with(layout, cfg, depth, seed, sources)
}

pub fn plain_with(layout: &Layout, cfg: SwitchCfg, depth: u16, seed: u64, sources: &[Vec<SourceCfg>]) -> Plain {
    let routes = Routes { routing: layout.routing.clone(), ends: layout.ends.clone() };
    let ends = sources.iter().enumerate().map(|(e, s)| TrafficEnd::new(Traffic::new(e as u32, s, seed))).collect();
    let blocks = Blocks { joins: Vec::new(), no_join: NoJoin::default(), bumps: Vec::new(), ends };
    let names = (0..layout.plan.vcs.total()).map(|vc| format!("p2p{vc}")).collect();
    Plain::new(layout.plan.clone(), routes, blocks, cfg, &|_, _| depth, names)
}

/// Runs until nothing ever happens again and checks that everything that was created arrived whole.
pub fn drain(net: &mut Plain, what: &str) -> u64 {
    for _ in 0..1_000_000 {
        if net.step() == Step::Quiet {
            break;
        }
    }
    assert_eq!(net.fault(), None, "{what}");
    assert_eq!(net.live_flits(), 0, "{what}: {}", net.autopsy());
    assert!(net.at_rest(), "{what}");
    let mut created = vec![0; 4096];
    for end in net.ends() {
        assert!(end.traffic.is_drained(), "{what}");
        for (class, count) in end.traffic.created().iter().enumerate() {
            created[class] += count.flits;
        }
    }
    let mut received = vec![0; 4096];
    for end in net.ends() {
        for (class, count) in end.traffic.received().iter().enumerate() {
            received[class] += count.flits;
        }
    }
    assert_eq!(created, received, "{what}");
    created.iter().sum()
}

#[test]
fn zero_load_latency_of_all_pairs_by_formula() {
    let meshes = [vec![4, 4], vec![2, 3, 2], vec![5]];
    let mut layouts = vec![Die::default().layout(&common(2, 5, 2))];
    layouts.extend(meshes.map(|size| Mesh { size, concentration: 1 }.layout(&common(2, 3, 1))));
    for (t, layout) in layouts.iter().enumerate() {
        let (link, local) = if t == 0 { (5, 2) } else { (3, 1) };
        let n = layout.ends.len();
        for stages in 1..=4 {
            for packet_flits in [1, 11] {
                // One packet at a time: pair k is created in cycle 200 k, its class is k.
                let sources: Vec<Vec<SourceCfg>> = (0..n)
                    .map(|from| {
                        (0..n)
                            .map(|to| {
                                let class = from * n + to;
                                let start = 200 * class as u64;
                                let target = Target::Fixed(to as u32);
                                SourceCfg { rate: 1e9, packet_flits, target, start, stop: start + 1, class }
                            })
                            .collect()
                    })
                    .collect();
                let mut net = plain(layout, stages, Policy::RoundRobin, 16, 1, &sources);
                drain(&mut net, "one at a time");
                for from in 0..n {
                    for to in 0..n {
                        let switches =
                            walk(layout, layout.ends[from].switch, layout.ends[to].switch).unwrap().len() as u64;
                        let expected = 2 * local
                            + (switches - 1) * link
                            + switches * u64::from(stages)
                            + 1
                            + u64::from(packet_flits)
                            - 1;
                        let got = net.end(to).traffic.received()[from * n + to];
                        assert_eq!((got.packets, got.latency_sum), (1, expected), "{from} to {to}, {stages} stages");
                    }
                }
            }
        }
    }
}

#[test]
fn channels_interleave_on_a_link_flit_by_flit() {
    for (channels, interleaved) in [(1, false), (2, true)] {
        let mut lab = Lab::star(0, channels, 3, false, 1);
        lab.tables.direct = true;
        lab.players[0].send(Packet::new(0, 2, 0, 11).to(2));
        lab.players[1].send(Packet::new(0, 2, 1, 11).to(2));
        let net = lab.run::<1>();
        let landed = &net.end(2).landed;
        assert_eq!((landed[0].0, landed[21].0), (4, 25), "a flit a cycle either way");
        let alternates = landed.windows(2).all(|pair| pair[0].1.tag.seq() != pair[1].1.tag.seq());
        assert_eq!(alternates, interleaved, "{channels} channels");
        for vc in 0..channels {
            net.end(2).packets(vc, true);
        }
    }
}

#[test]
fn a_blocked_head_blocks_what_stands_behind_it_on_its_channel_only() {
    // End 1 takes nothing before cycle 500; a packet for end 2 stands behind one for end 1.
    for (vc, earliest) in [(0, None), (1, Some(25))] {
        let mut lab = Lab::star(0, 2, 3, false, 1);
        lab.tables.direct = true;
        lab.depth = 5;
        lab.players[1].opens = 500;
        // Both channels towards end 1 fill up if a packet may take any: so the blocker is longer than one buffer, and
        // holds one channel; the other stays free for end 2 because it leaves by another port.
        lab.players[0].send(Packet::new(0, 1, 0, 12).to(1));
        lab.players[0].send(Packet::new(vc, 2, 1, 3).to(2).at(22));
        let mut net = lab.build::<1>();
        until(&mut net, 500);
        let head = net.end(2).landed.first().map(|(cycle, _)| *cycle);
        assert_eq!(head, earliest.map(|cycle| cycle + 1), "channel {vc}");
        crate::support::quiet(&mut net, 10_000);
        crate::support::clean(&net);
        assert_eq!(net.end(2).landed.len(), 3);
    }
}

fn uniform(n: usize, packet_flits: u32, stop: u64) -> Vec<Vec<SourceCfg>> {
    let target = Target::Uniform { ends: n as u32 };
    vec![vec![SourceCfg { rate: 1.0, packet_flits, target, start: 0, stop, class: 0 }]; n]
}

fn saturate(size: &[u32], stop: u64) {
    for vcs in [1, 2, 8] {
        for packet_flits in [1, 5, 33] {
            let layout = Mesh { size: size.to_vec(), concentration: 1 }.layout(&common(vcs, 1, 1));
            let what = format!("{size:?}, {vcs} channels, {packet_flits} flits");
            let sources = uniform(layout.ends.len(), packet_flits, stop);
            let mut net = plain(&layout, 1 + vcs % 4, Policy::RoundRobin, 4, seed(), &sources);
            let flits = drain(&mut net, &what);
            assert!(flits > stop * layout.ends.len() as u64 / 2, "{what}: saturated");
        }
    }
}

#[test]
fn a_saturated_4x4_mesh_drains() {
    saturate(&[4, 4], 200);
}

#[test]
fn a_saturated_8x8_mesh_drains() {
    saturate(&[8, 8], 100);
}

#[test]
fn a_saturated_2x3x4_mesh_drains() {
    saturate(&[2, 3, 4], 200);
}

#[test]
fn fifty_random_configurations_do_not_deadlock() {
    let seed = seed();
    for case in 0..50 {
        let mut rng = Rng::new(seed, 1000 + case);
        let common = common(1 + rng.below(4) as u8, 1 + rng.below(3) as u16, 1 + rng.below(3) as u16);
        let layout = if rng.below(4) == 0 {
            Die { tiles: 1 + rng.below(5) as u16, positions: 1 + rng.below(4) as u16 }.layout(&common)
        } else {
            let size = (0..=rng.below(3)).map(|_| 1 + rng.below(4) as u32).collect();
            Mesh { size, concentration: 1 + rng.below(2) as u16 }.layout(&common)
        };
        let stages = 1 + rng.below(4) as u8;
        let policy = [Policy::RoundRobin, Policy::Matrix, Policy::Fixed][rng.below(3) as usize];
        let (depth, flits) = (1 + rng.below(8) as u16, 1 + rng.below(12) as u32);
        let mut net = plain(&layout, stages, policy, depth, seed ^ case, &uniform(layout.ends.len(), flits, 120));
        drain(&mut net, &format!("seed {seed}, case {case}"));
    }
}
