//! Every topology with every routing: the zero-load law hop by hop for random pairs, and saturated networks that drain
//! with nothing lost (K-PIPE-1).

use std::collections::BTreeMap;
use std::sync::Arc;

use watershed::fabric::arbiter::Policy;
use watershed::fabric::routing::{Algorithm, ChoiceKind, HeadPosition, Routes, Routing, entropy};
use watershed::fabric::topology::{
    Common, Dragonfly, EndPlace, FatTree, Graph, GraphEnd, GraphLink, GraphSwitch, HyperX, Layout, Lengths, LinkParams,
    Mesh, Neighbours, Shape, Torus, Wiring,
};
use watershed::fabric::traffic::{SourceCfg, Target};
use watershed::fabric::{Block, Blocks, Flit, Io, Network, NoBump, NoJoin, Pipeline, Step, SwitchCfg, Vcs};
use watershed::kernel::{Cycle, Rng, Wake};
use watershed::probe::Scope;

use crate::point_to_point::{drain, plain};
use crate::share;
use crate::support::seed;

/// A ring of six with a chord and a tail.
fn graph() -> Shape {
    let links = [(0, 1, 1), (1, 2, 2), (2, 3, 3), (3, 4, 1), (4, 5, 2), (5, 0, 4), (1, 4, 2), (5, 6, 5)];
    let mut used = [0u16; 7];
    let mut port = |switch: u32| {
        used[switch as usize] += 1;
        (switch, used[switch as usize] - 1)
    };
    let links = links
        .map(|(a, b, latency)| GraphLink {
            a: port(a),
            b: port(b),
            latency: Some(latency),
            cycles_per_flit: None,
            level: 1,
        })
        .to_vec();
    let ends = (0..7)
        .map(|switch| {
            let (switch, port) = port(switch);
            GraphEnd { name: format!("r{switch}.node"), place: EndPlace { switch, port }, latency: None }
        })
        .collect();
    let switches = (0..7).map(|n| GraphSwitch { name: format!("r{n}") }).collect();
    Shape::Graph(Arc::new(Graph { switches, links, ends, levels: vec!["local".into(), "link".into()] }))
}

/// Small systems of all kinds, with links of different lengths.
fn shapes() -> Vec<Shape> {
    let wiring = |latencies: &[u16], lengths| Wiring { latencies: latencies.to_vec(), lengths };
    vec![
        Mesh { size: vec![4, 3], concentration: 2 }.wired(wiring(&[1, 3], Lengths::Equal)),
        Shape::Torus(Torus { size: vec![4, 4], concentration: 1, wiring: wiring(&[], Lengths::Folded) }),
        Shape::Torus(Torus { size: vec![5, 3], concentration: 1, wiring: wiring(&[2, 1], Lengths::Distance) }),
        Shape::Torus(Torus { size: vec![3, 2, 4], concentration: 1, wiring: wiring(&[], Lengths::Equal) }),
        Shape::HyperX(HyperX { size: vec![4, 3], concentration: 2, wiring: wiring(&[2, 3], Lengths::Distance) }),
        Shape::HyperX(HyperX { size: vec![2, 3, 2], concentration: 1, wiring: wiring(&[], Lengths::Equal) }),
        Shape::FatTree(FatTree { arity: 2, levels: 3, concentration: 2, wiring: wiring(&[1, 4], Lengths::Equal) }),
        Shape::FatTree(FatTree { arity: 3, levels: 2, concentration: 3, wiring: wiring(&[], Lengths::Equal) }),
        Shape::Dragonfly(Dragonfly { wiring: wiring(&[2, 7], Lengths::Equal), ..Dragonfly::balanced(1) }),
        Shape::Dragonfly(Dragonfly { groups: 4, wiring: wiring(&[1, 3], Lengths::Equal), ..Dragonfly::balanced(2) }),
        graph(),
    ]
}

fn common(unicast: u8) -> Common {
    let link = |latency| LinkParams { latency, cycles_per_flit: 1 };
    Common { vcs: Vcs { set: 0, unicast }, engine: false, link: link(2), local: link(1) }
}

/// Every shape with every routing it has, with as few channels as it needs and with one more.
pub fn networks() -> Vec<(String, Layout)> {
    let mut all = Vec::new();
    for shape in shapes() {
        for &algorithm in shape.algorithms() {
            let needed = shape.layout(&common(8)).routed(algorithm).expect("8 channels are enough").routing.needs();
            for channels in [needed, needed + 1] {
                let layout = shape.layout(&common(channels)).routed(algorithm).expect("enough channels");
                all.push((format!("{}, {}, {channels} channels", shape.describe(), algorithm.name()), layout));
            }
        }
    }
    all
}

/// An end point that sends packets at given cycles and writes down what lands.
#[derive(Clone, Debug, Default)]
struct Shooter {
    shots: Vec<(Cycle, Flit)>,
    landed: Vec<(Cycle, u64)>,
}

impl Block for Shooter {
    type Tables = Routes;

    fn tick(&mut self, io: &mut Io<'_>, _: &Routes) -> Wake {
        let (now, vcs) = (io.now(), io.vcs());
        for vc in 0..vcs.total() {
            if io.head(0, vc).is_some() {
                let flit = io.take(0, vc);
                self.landed.push((now, flit.tag.seq()));
            }
        }
        if let Some(&(at, flit)) = self.shots.first()
            && at <= now
        {
            assert!(io.can_send(0, 0), "the network is empty");
            io.send(0, 0, flit);
            self.shots.remove(0);
        }
        self.shots.first().map_or(Wake::OnInput, |&(at, _)| Wake::At(at))
    }

    fn open(&self) -> Option<String> {
        None
    }

    fn probe(&self, _: &mut Scope<'_>) {}
}

/// The latencies of the links between switches on the way of packet `seq`, found without the network.
fn way(layout: &Layout, from: EndPlace, to: EndPlace, seq: u64, dst: u32) -> Vec<u64> {
    let Routing::Fabric(router) = &layout.routing else { panic!("a router of tables") };
    let neighbours = Neighbours::new(&layout.plan);
    let latency: BTreeMap<(u32, u16), u16> =
        layout.plan.links.iter().flat_map(|link| [(link.a, link.latency), (link.b, link.latency)]).collect();
    let mut stand = HeadPosition { switch: from.switch, port: from.port, channel: 0 };
    let mut links = Vec::new();
    loop {
        let draw = entropy(seq, dst);
        let (port, vcs) = if router.algorithm() == Algorithm::Adaptive {
            // In an empty network any shortest way; all have links of the same latencies.
            let mut ways = Vec::new();
            router.choices(stand, to, draw, &mut |choice| {
                if choice.kind == ChoiceKind::Candidate {
                    ways.push((choice.port, choice.vcs));
                }
            });
            ways[0]
        } else {
            let route = router.fixed(stand, to, draw);
            (route.port, route.vcs)
        };
        if stand.switch == to.switch && port == to.port {
            return links;
        }
        links.push(u64::from(latency[&(stand.switch, port)]));
        let (switch, by) = neighbours.of(stand.switch, port).expect("a link");
        stand = HeadPosition { switch, port: by, channel: vcs.trailing_zeros() as u8 };
    }
}

#[test]
fn zero_load_latency_is_the_sum_of_hops_for_every_topology_and_routing() {
    const PAIRS: usize = 60;
    for (number, (what, layout)) in networks().into_iter().enumerate() {
        // Adaptive ways through a file's network differ in the latencies of their links.
        if matches!(layout.shape, Shape::Graph(_)) && layout.routing.algorithm() == Algorithm::Adaptive {
            continue;
        }
        let mut rng = Rng::new(seed(), number as u64);
        let stages = 1 + number as u8 % 4;
        let ends = layout.ends.len();
        let mut shooters = vec![Shooter::default(); ends];
        let mut expected = Vec::new();
        for shot in 0..PAIRS {
            let (from, to) = (rng.below(ends as u64) as usize, rng.below(ends as u64) as usize);
            let (at, seq) = (300 * shot as Cycle, rng.below(1 << 36));
            let flit = Flit::part(0, 0, seq, 0, 1, Flit::header(to as u32, at));
            shooters[from].shots.push((at, flit));
            let links = way(&layout, layout.ends[from], layout.ends[to], seq, to as u32);
            // Two local links, the links between switches, the stages of every switch, and the edge at the end.
            let switches = links.len() as u64 + 1;
            let cycles = 2 + links.iter().sum::<u64>() + switches * u64::from(stages) + 1;
            expected.push((to, at + cycles, seq));
        }
        let routes = Routes { routing: layout.routing.clone(), ends: layout.ends.clone() };
        let blocks = Blocks { joins: Vec::new(), no_join: NoJoin::default(), bumps: Vec::new(), ends: shooters };
        let cfg = SwitchCfg {
            pipeline: Pipeline::new(stages),
            policy: Policy::RoundRobin,
            monitors: true,
            router: watershed::fabric::RouterCfg::default(),
        };
        let names = (0..layout.plan.vcs.total()).map(|vc| format!("p2p{vc}")).collect();
        let mut net: Network<Routes, NoJoin<Routes>, NoBump<Routes>, Shooter, 1> =
            Network::new(layout.plan.clone(), routes, blocks, cfg, &|_, _| 4, names);
        while net.step() != Step::Quiet {}
        assert_eq!(net.fault(), None, "{what}");
        for (to, at, seq) in expected {
            let landed = net.end(to).landed.iter().find(|(_, landed)| *landed == seq);
            assert_eq!(landed, Some(&(at, seq)), "seed {}, {what}: to {to}, {stages} stages", seed());
        }
    }
}

/// In `make test` two of three networks, each with packets of one of the lengths.
#[test]
fn saturated_networks_of_every_topology_and_routing_drain() {
    let networks = networks();
    for case in share::one_in(3, 0..2 * networks.len()) {
        let (number, packet_flits) = (case / 2, [1, 7][case % 2]);
        let (what, layout) = &networks[number];
        let ends = layout.ends.len();
        let target = Target::Uniform { ends: ends as u32 };
        let source = SourceCfg { rate: 1.0, packet_flits, target, start: 0, stop: 150, class: 0 };
        let stages = 1 + number as u8 % 4;
        let mut net = plain(layout, stages, Policy::RoundRobin, 2, seed(), &vec![vec![source]; ends]);
        let flits = drain(&mut net, &format!("seed {}, {what}, {packet_flits} flits", seed()));
        assert!(flits > 100 * ends as u64, "{what}: saturated");
    }
}

#[test]
fn adversarial_traffic_drains_under_adaptive_and_valiant_routing() {
    // Everybody to the end point half way round: all links of one direction are asked for at once.
    for (what, layout) in networks() {
        if matches!(layout.routing.algorithm(), Algorithm::Valiant | Algorithm::Adaptive) {
            let ends = layout.ends.len();
            let sources: Vec<Vec<SourceCfg>> = (0..ends)
                .map(|end| {
                    let target = Target::Fixed(((end + ends / 2) % ends) as u32);
                    vec![SourceCfg { rate: 1.0, packet_flits: 5, target, start: 0, stop: 200, class: 0 }]
                })
                .collect();
            let mut net = plain(&layout, 2, Policy::RoundRobin, 1, seed(), &sources);
            drain(&mut net, &format!("seed {}, {what}", seed()));
        }
    }
}
