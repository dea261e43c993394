use super::super::Vcs;
use super::super::topology::{Common, Dragonfly, FatTree, Graph, GraphEnd, GraphLink, GraphSwitch};
use super::super::topology::{HyperX, Layout, LinkParams, Neighbours, Subnodes, Torus, WiredMesh, Wiring};
use super::proof::walk_with;
use super::*;

fn common(unicast: u8) -> Common {
    let link = LinkParams { latency: 1, cycles_per_flit: 1 };
    Common { vcs: Vcs { set: 0, unicast }, engine: false, link, local: link }
}

fn mesh(size: &[u32], concentration: u16) -> Shape {
    Mesh { size: size.to_vec(), concentration }.wired(Wiring::default())
}

fn torus(size: &[u32], concentration: u16) -> Shape {
    Shape::Torus(Torus { size: size.to_vec(), concentration, wiring: Wiring::default() })
}

fn hyperx(size: &[u32], concentration: u16) -> Shape {
    Shape::HyperX(HyperX { size: size.to_vec(), concentration, wiring: Wiring::default() })
}

fn tree(arity: u16, levels: u32, concentration: u16) -> Shape {
    Shape::FatTree(FatTree { arity, levels, concentration, wiring: Wiring::default() })
}

fn dragonfly(switches_per_group: u32, global: u32, groups: u32, concentration: u16) -> Shape {
    let wiring = Wiring::default();
    Shape::Dragonfly(Dragonfly { switches_per_group, global, groups, concentration, wiring })
}

/// A file's topology from its links; ports are given in the order of the links, end points last.
fn graph(switches: u32, links: &[(u32, u32)]) -> Shape {
    let mut used = vec![0; switches as usize];
    let mut port = |switch: u32| {
        used[switch as usize] += 1;
        (switch, used[switch as usize] - 1)
    };
    let links = links
        .iter()
        .map(|&(a, b)| GraphLink { a: port(a), b: port(b), latency: None, cycles_per_flit: None, level: 1 })
        .collect();
    let ends = (0..switches)
        .map(|switch| {
            let (switch, port) = port(switch);
            GraphEnd { name: format!("n{switch}.end"), place: EndPlace { switch, port }, latency: None }
        })
        .collect();
    let levels = vec!["local".into(), "link".into()];
    let switches = (0..switches).map(|n| GraphSwitch { name: format!("n{n}") }).collect();
    Shape::Graph(Arc::new(Graph { switches, links, ends, levels }))
}

/// A 3 x 3 mesh with a diagonal, a tail and two parallel links.
fn odd_graph() -> Shape {
    let mut links = vec![(0, 4), (8, 9), (9, 10), (1, 2)];
    for y in 0..3 {
        for x in 0..3 {
            let at = 3 * y + x;
            links.extend((x < 2).then_some((at, at + 1)));
            links.extend((y < 2).then_some((at, at + 3)));
        }
    }
    graph(11, &links)
}

fn nodes(size: &[u32], sockets: u32, tiles: u16, positions: u16) -> Shape {
    let (die, size) = (Die { tiles, positions }, size.to_vec());
    Shape::Nodes(Nodes {
        size,
        sockets,
        subnodes: Subnodes::default(),
        die,
        hsio_ports: 2,
        socket_latency: 25,
        node_latency: 50,
        socket_width: 1,
        node_width: 1,
        distance: false,
    })
}

#[test]
fn ways_between_subnodes_arrive_and_cannot_deadlock() {
    for (size, sockets, count, links) in
        [(&[][..], 8, 2, 4), (&[], 8, 2, 1), (&[2], 6, 2, 2), (&[2, 2], 4, 2, 3), (&[], 6, 3, 1)]
    {
        let Shape::Nodes(nodes) = nodes(size, sockets, 2, 2) else { unreachable!("nodes") };
        let subnodes = Subnodes { count, links, ..Subnodes::default() };
        let shape = Shape::Nodes(Nodes { subnodes, hsio_ports: 4, ..nodes });
        let needed = Routing::unchecked(&shape, &shape.site(&common(1)).plan, Algorithm::DimensionOrder).needs();
        for channels in [needed, needed + 1] {
            let layout = shape.layout(&common(channels));
            if let Err(flaw) = prove(&layout, &layout.routing) {
                panic!("{}, {links} links, {channels} channels: {flaw}", shape.describe());
            }
        }
    }
}

/// Ways of nodes are shortest between nodes and between sockets, but a port inside a socket may be nearer than the one the
/// way takes: these have no other.
#[test]
fn ways_between_nodes_arrive_and_cannot_deadlock() {
    for (size, sockets, tiles, positions) in
        [(&[][..], 4, 4, 4), (&[3, 2], 2, 4, 4), (&[2, 2, 2], 2, 2, 2), (&[5], 3, 3, 2), (&[4, 3], 1, 2, 4)]
    {
        let shape = nodes(size, sockets, tiles, positions);
        let needed = Routing::unchecked(&shape, &shape.site(&common(1)).plan, Algorithm::DimensionOrder).needs();
        for channels in [needed, needed + 1, 2 * needed] {
            let layout = shape.layout(&common(channels));
            if let Err(flaw) = prove(&layout, &layout.routing) {
                panic!("{}, {channels} channels: {flaw}", shape.describe());
            }
        }
        // One class for all does deadlock, if there are sockets.
        let one = shape.layout(&common(1));
        let same = SameChannel(&one.routing);
        assert_eq!(matches!(prove(&one, &same), Err(Flaw::Cycle(_))), sockets > 1 || size.len() > 1, "{size:?}");
    }
}

/// A routing all of whose channels are one.
struct SameChannel<'a>(&'a Routing);

impl Relation for SameChannel<'_> {
    fn choices(&self, at: HeadPosition, to: EndPlace, _: u64, give: &mut dyn FnMut(Choice)) {
        let port = self.0.hop(at.switch, to.switch).unwrap_or(to.port);
        give(Choice { port, vcs: u32::MAX, kind: ChoiceKind::Candidate });
    }

    fn draws(&self) -> Vec<u64> {
        vec![0]
    }
}

fn shapes() -> Vec<Shape> {
    let mut all = vec![
        Shape::Die(Die::default()),
        Shape::Die(Die { tiles: 6, positions: 3 }),
        Shape::Die(Die { tiles: 1, positions: 4 }),
    ];
    for size in [&[1][..], &[7], &[4, 4], &[3, 5, 2], &[2, 2, 2, 2, 2]] {
        all.push(mesh(size, 1));
    }
    for size in [&[1][..], &[2], &[3], &[4], &[5], &[8], &[4, 4], &[3, 4], &[5, 2, 3], &[1, 4, 1]] {
        all.push(torus(size, 1));
    }
    for size in [&[1][..], &[6], &[4, 4], &[3, 2, 4], &[2, 2, 2, 2]] {
        all.push(hyperx(size, 2));
    }
    for (arity, levels, concentration) in [(2, 1, 2), (2, 3, 2), (3, 2, 3), (2, 4, 1), (4, 2, 6), (1, 3, 2)] {
        all.push(tree(arity, levels, concentration));
    }
    for (a, h, g, p) in
        [(2, 1, 3, 1), (4, 2, 9, 2), (4, 2, 4, 1), (3, 1, 4, 1), (1, 3, 4, 1), (4, 1, 1, 2), (2, 3, 4, 1)]
    {
        all.push(dragonfly(a, h, g, p));
    }
    all.push(graph(6, &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)]));
    all.push(odd_graph());
    all.push(graph(1, &[]));
    all
}

/// Every layout with every routing it has, with as many channels as it needs and with some more.
fn everything() -> Vec<(String, Layout)> {
    let mut all = Vec::new();
    for shape in shapes() {
        for &algorithm in shape.algorithms() {
            let needed = Routing::unchecked(&shape, &shape.site(&common(1)).plan, algorithm).needs();
            for channels in [needed, needed + 1, 2 * needed] {
                let layout = shape.layout(&common(channels)).routed(algorithm).expect("enough channels");
                all.push((format!("{}, {}, {channels} channels", shape.describe(), algorithm.name()), layout));
            }
        }
    }
    all
}

/// Distances over the links from one switch, without any routing.
fn distances(layout: &Layout, from: u32) -> Vec<u32> {
    let (switches, neighbours) = (layout.switches() as u32, Neighbours::new(&layout.plan));
    let mut distance = vec![u32::MAX; switches as usize];
    let mut frontier = std::collections::VecDeque::from([from]);
    distance[from as usize] = 0;
    while let Some(at) = frontier.pop_front() {
        for port in 0..layout.external_ports {
            if let Some((next, _)) = neighbours.of(at, port).filter(|&(next, _)| next < switches)
                && distance[next as usize] == u32::MAX
            {
                distance[next as usize] = distance[at as usize] + 1;
                frontier.push_back(next);
            }
        }
    }
    distance
}

/// The switches a packet visits if it always takes the lowest channel that it may, and the classes it uses.
fn follow(layout: &Layout, from: EndPlace, to: EndPlace, draw: u64) -> (Vec<u32>, Vec<u8>) {
    let Routing::Fabric(router) = &layout.routing else { panic!("a router of tables") };
    let neighbours = Neighbours::new(&layout.plan);
    let mut stand = HeadPosition { switch: from.switch, port: from.port, channel: 0 };
    let (mut path, mut classes) = (vec![from.switch], Vec::new());
    loop {
        let route = router.fixed(stand, to, draw);
        if stand.switch == to.switch && route.port == to.port {
            return (path, classes);
        }
        let (switch, port) = neighbours.of(stand.switch, route.port).expect("a link");
        let channel = route.vcs.trailing_zeros() as u8;
        assert!(channel < layout.plan.vcs.unicast, "a channel there is");
        stand = HeadPosition { switch, port, channel };
        path.push(switch);
        classes.push(router.class_of(channel));
        assert!(path.len() < 64, "{path:?}");
    }
}

#[test]
fn every_route_arrives_by_a_shortest_path() {
    for shape in shapes() {
        let layout = shape.layout(&common(8));
        let neighbours = Neighbours::new(&layout.plan);
        let mut hosts: Vec<u32> = layout.ends.iter().map(|end| end.switch).collect();
        if matches!(shape, Shape::Die(_)) {
            hosts = (0..layout.switches() as u32).collect();
        }
        for &from in &hosts {
            let distance = distances(&layout, from);
            for &to in &hosts {
                let path = walk_with(&neighbours, &layout.routing, from, to).expect("the route arrives");
                let what = format!("{}: {from} to {to}", shape.describe());
                // In a dragonfly of several links a pair the nearest gate may save a local hop; minimal means one global link.
                if let Shape::Dragonfly(dragonfly) = &shape {
                    assert!(path.len() as u32 - 1 <= 3 && path.len() as u32 > distance[to as usize], "{what}");
                    assert!(dragonfly.links_of_a_pair() > 1 || path.len() <= 4, "{what}");
                } else {
                    assert_eq!(path.len() as u32 - 1, distance[to as usize], "{what}");
                }
                assert_eq!(path.last(), Some(&to));
            }
        }
    }
}

/// Signals between registers go to switches without end points, too.
#[test]
fn every_switch_is_reached_from_every_other_one_hop_by_hop() {
    let all = everything().into_iter().chain([(2, 4), (3, 3), (4, 2), (1, 3), (5, 1)].into_iter().flat_map(
        |(arity, levels)| {
            let shape = tree(arity, levels, arity + 1);
            [(shape.describe(), shape.layout(&common(1)))]
        },
    ));
    for (name, layout) in all {
        let switches = layout.switches() as u32;
        let neighbours = Neighbours::new(&layout.plan);
        let longest =
            (0..switches).flat_map(|from| distances(&layout, from)).filter(|&hops| hops != u32::MAX).max().unwrap_or(0);
        for (from, to) in (0..switches).flat_map(|from| (0..switches).map(move |to| (from, to))) {
            let (mut at, mut hops) = (from, 0);
            while let Some(port) = layout.routing.hop(at, to) {
                at = neighbours.of(at, port).unwrap_or_else(|| panic!("{name}: nothing at port {port} of {at}")).0;
                hops += 1;
                assert!(at < switches && hops <= 2 * longest + 2, "{name}: from {from} to {to}, lost at {at}");
            }
            assert_eq!(at, to, "{name}: from {from}");
        }
    }
}

#[test]
fn minimal_random_takes_shortest_paths_and_several_of_them() {
    for (what, layout) in everything() {
        if layout.routing.algorithm() != Algorithm::MinimalRandom || matches!(layout.shape, Shape::Dragonfly(_)) {
            continue;
        }
        let mut several = 0;
        for &from in &layout.ends {
            let distance = distances(&layout, from.switch);
            for &to in &layout.ends {
                let paths: std::collections::HashSet<Vec<u32>> =
                    (0..16).map(|seq| follow(&layout, from, to, entropy(seq, to.switch)).0).collect();
                several += usize::from(paths.len() > 1);
                assert!(paths.iter().all(|path| path.len() as u32 - 1 == distance[to.switch as usize]), "{what}");
            }
        }
        let plain = matches!(&layout.shape, Shape::Mesh(WiredMesh { mesh: Mesh { size, .. }, .. }) | Shape::Torus(Torus { size, .. }) | Shape::HyperX(HyperX { size, .. }) if size.iter().filter(|&&side| side > 1).count() < 2);
        if !plain && layout.switches() > 6 && !matches!(&layout.shape, Shape::FatTree(tree) if tree.arity == 1) {
            assert!(several > 0, "{what}");
        }
    }
}

#[test]
fn every_topology_and_routing_is_proved() {
    for (what, layout) in everything() {
        let proof = prove(&layout, &layout.routing).unwrap_or_else(|flaw| panic!("{what}: {flaw}"));
        let escape = layout.routing.algorithm() == Algorithm::Adaptive
            && layout.switches() > 1
            && matches!(layout.shape, Shape::Mesh(..) | Shape::Torus(_) | Shape::HyperX(_));
        assert_eq!(proof.escape, escape, "{what}");
        let valiant = layout.routing.algorithm() == Algorithm::Valiant;
        let far = layout.ends.iter().map(|end| {
            let distance = distances(&layout, end.switch);
            layout.ends.iter().map(|to| distance[to.switch as usize]).max().unwrap_or(0)
        });
        let far = far.max().unwrap_or(0);
        let longest = match &layout.shape {
            Shape::Dragonfly(_) => far.max(3) + if layout.routing.needs() > 2 { 2 } else { 0 },
            _ => far * (1 + u32::from(valiant)),
        };
        assert!(proof.longest <= longest, "{what}: {} links of at most {longest}", proof.longest);
        assert!(proof.longest >= far, "{what}");
    }
}

#[test]
fn dimension_ordered_routes_have_no_dependency_cycle() {
    for shape in shapes() {
        let algorithm = shape.algorithms()[0];
        let layout = shape.layout(&common(4));
        assert_eq!(layout.routing.algorithm(), algorithm);
        assert_eq!(dependency_cycle(&layout), None, "{}", shape.describe());
    }
}

#[test]
fn a_flat_next_step_agrees_with_the_relation() {
    for (what, layout) in everything() {
        if layout.routing.algorithm() == Algorithm::DimensionOrder && matches!(layout.routing, Routing::Fabric(_)) {
            for &from in &layout.ends {
                for &to in &layout.ends {
                    let path = walk(&layout, from.switch, to.switch).unwrap();
                    assert_eq!(follow(&layout, from, to, 0).0, path, "{what}");
                }
            }
        }
    }
}

/// A relation by its next port alone, on any channel.
struct ByHop<F>(F);

impl<F: Fn(u32, u32) -> Option<u16>> Relation for ByHop<F> {
    fn choices(&self, at: HeadPosition, to: EndPlace, _: u64, give: &mut dyn FnMut(Choice)) {
        let port = (self.0)(at.switch, to.switch).unwrap_or(to.port);
        give(Choice { port, vcs: u32::MAX, kind: ChoiceKind::Candidate });
    }

    fn draws(&self) -> Vec<u64> {
        vec![0]
    }
}

/// A routing whose channels all share one buffer: what it would be without its classes.
struct OneClass<'a>(&'a Routing);

impl Relation for OneClass<'_> {
    fn choices(&self, at: HeadPosition, to: EndPlace, draw: u64, give: &mut dyn FnMut(Choice)) {
        self.0.choices(at, to, draw, &mut |choice| give(Choice { kind: ChoiceKind::Candidate, ..choice }));
    }

    fn draws(&self) -> Vec<u64> {
        self.0.draws()
    }

    fn buffer(&self, _: u8) -> u8 {
        0
    }
}

fn cycle(layout: &Layout, relation: &dyn Relation) -> Vec<String> {
    match prove(layout, relation) {
        Err(Flaw::Cycle(cycle)) => cycle,
        other => panic!("a cycle was to be found: {other:?}"),
    }
}

#[test]
fn a_route_that_mixes_orders_is_caught() {
    // x first for even switches, y first for odd ones: the textbook deadlock.
    let layout = mesh(&[3, 3], 1).layout(&common(1));
    let at = |switch: u32| [switch % 3, switch / 3];
    let relation = ByHop(|from: u32, to: u32| {
        let (a, b) = (at(from), at(to));
        let step = |d: usize| Some(2 * d as u16 + u16::from(b[d] < a[d]));
        let order = if from.is_multiple_of(2) { [0, 1] } else { [1, 0] };
        order.into_iter().find(|&d| a[d] != b[d]).and_then(step)
    });
    assert!(cycle(&layout, &relation).len() >= 4);
}

#[test]
fn a_torus_without_date_line_is_caught_and_its_ring_named() {
    for side in [4, 5, 8] {
        let layout = torus(&[side], 1).layout(&common(1));
        let Routing::Fabric(router) = &layout.routing else { unreachable!() };
        let ring = cycle(&layout, &ByHop(|from, to| router.hop(from, to)));
        let names: std::collections::BTreeSet<&str> = ring.iter().map(|name| name.split('.').next().unwrap()).collect();
        assert_eq!(names.len(), side as usize, "the whole ring: {ring:?}");
        assert!(ring.iter().all(|name| name.contains(".P0 ")) || ring.iter().all(|name| name.contains(".P1 ")));
    }
    // The routing as it is, with a single channel to share among its classes, finds no channel for the second.
    let layout = torus(&[5], 1).layout(&common(1));
    assert!(matches!(prove(&layout, &layout.routing), Err(Flaw::Nowhere { why, .. }) if why.contains("no channel")));
}

#[test]
fn routings_without_their_classes_are_caught() {
    let cases = [
        (mesh(&[3, 3], 1), Algorithm::MinimalRandom, 2),
        (mesh(&[3, 3], 1), Algorithm::Valiant, 2),
        (torus(&[4, 4], 1), Algorithm::Valiant, 4),
        (hyperx(&[3, 3], 1), Algorithm::MinimalRandom, 2),
        (hyperx(&[3, 3], 1), Algorithm::Valiant, 2),
        (mesh(&[3, 3], 1), Algorithm::Adaptive, 2),
        (hyperx(&[3, 3], 1), Algorithm::Adaptive, 2),
        (dragonfly(4, 2, 9, 1), Algorithm::MinimalRandom, 2),
        (dragonfly(4, 2, 9, 1), Algorithm::Valiant, 3),
        (graph(6, &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)]), Algorithm::MinimalRandom, 2),
    ];
    for (shape, algorithm, channels) in cases {
        let layout = shape.layout(&common(channels)).routed(algorithm).unwrap();
        assert_eq!(layout.routing.needs(), channels, "{}", shape.describe());
        assert!(prove(&layout, &layout.routing).is_ok());
        let cycle = cycle(&layout, &OneClass(&layout.routing));
        assert!(cycle.len() >= 2, "{}, {}: {cycle:?}", shape.describe(), algorithm.name());
    }
}

#[test]
fn a_tree_that_goes_up_again_is_caught() {
    // A switch of level 1 of a 2-ary 3-tree that a packet enters from one top sends it up to the other one once more.
    let layout = tree(2, 3, 2).layout(&common(1));
    let Routing::Fabric(router) = &layout.routing else { unreachable!() };
    struct Wrong<'a>(&'a Router);
    impl Relation for Wrong<'_> {
        fn choices(&self, at: HeadPosition, to: EndPlace, draw: u64, give: &mut dyn FnMut(Choice)) {
            let turn = 2 + (to.switch % 2) as u16;
            if (4..8).contains(&at.switch) && at.port == turn {
                give(Choice { port: 5 - turn, vcs: u32::MAX, kind: ChoiceKind::Candidate });
            } else {
                self.0.choices(at, to, draw, &mut |choice| give(choice));
            }
        }
        fn draws(&self) -> Vec<u64> {
            vec![0]
        }
    }
    let cycle = cycle(&layout, &Wrong(router));
    assert!(
        cycle.iter().any(|name| name.starts_with("t1_")) && cycle.iter().any(|name| name.starts_with("t2_")),
        "{cycle:?}"
    );
}

#[test]
fn a_packet_that_leaves_its_escape_channel_is_caught() {
    struct Returns<'a>(&'a Routing);
    impl Relation for Returns<'_> {
        fn choices(&self, at: HeadPosition, to: EndPlace, draw: u64, give: &mut dyn FnMut(Choice)) {
            // As if every packet came in on an adaptive channel.
            self.0.choices(HeadPosition { channel: 1, ..at }, to, draw, give);
        }
        fn draws(&self) -> Vec<u64> {
            vec![0]
        }
    }
    let layout = mesh(&[3, 3], 1).layout(&common(2)).routed(Algorithm::Adaptive).unwrap();
    assert!(prove(&layout, &layout.routing).is_ok());
    assert!(matches!(prove(&layout, &Returns(&layout.routing)), Err(Flaw::Escape { .. })));
}

#[test]
fn a_route_that_goes_round_for_ever_or_nowhere_is_caught() {
    let layout = torus(&[4], 1).layout(&common(1));
    let flaw = prove(&layout, &ByHop(|from, to| (from != to || to == 2).then_some(0))).unwrap_err();
    let Flaw::Livelock { to, through } = &flaw else { panic!("{flaw}") };
    assert_eq!((to.as_str(), through.len()), ("s2", 4), "{flaw}");
    let flaw = prove(&layout, &ByHop(|from, to| (from != to).then_some(7))).unwrap_err();
    assert!(matches!(flaw, Flaw::Nowhere { port: 7, .. }), "{flaw}");
    let bent = prove(&layout, &ByHop(|from, to| (from != to).then_some(2))).unwrap_err();
    assert!(matches!(bent, Flaw::Nowhere { why: "leads to another end point", .. }), "{bent}");
}

#[test]
fn too_few_channels_and_unknown_routings_are_refused() {
    let torus = torus(&[4, 4], 1);
    let error = torus.layout(&common(2)).routed(Algorithm::Valiant).unwrap_err();
    assert_eq!(
        error.to_string(),
        "valiant routing on the topology \"torus\" needs 4 point-to-point channels, there are 2"
    );
    assert!(torus.layout(&common(1)).routed(Algorithm::DimensionOrder).is_err());
    let error = tree(2, 3, 2).layout(&common(8)).routed(Algorithm::Valiant).unwrap_err();
    assert_eq!(error.to_string(), "there is no valiant routing for the topology \"fat-tree\"");
}

#[test]
fn valiant_passes_through_its_intermediate_switch() {
    for shape in [mesh(&[4, 3], 2), torus(&[4, 5], 1), hyperx(&[4, 3], 2), torus(&[3, 3, 2], 1)] {
        let layout = shape.layout(&common(8)).routed(Algorithm::Valiant).unwrap();
        let Routing::Fabric(router) = &layout.routing else { unreachable!() };
        let mut met = std::collections::HashSet::new();
        for seq in 0..40 {
            for (number, &to) in layout.ends.iter().enumerate() {
                let draw = entropy(seq, number as u32);
                let middle = router.intermediate(draw).unwrap();
                for &from in &layout.ends {
                    let (path, classes) = follow(&layout, from, to, draw);
                    if from.switch == to.switch {
                        assert_eq!(path.len(), 1, "a packet for its own switch stays there");
                        continue;
                    }
                    let expected = distances(&layout, from.switch)[middle as usize]
                        + distances(&layout, middle)[to.switch as usize];
                    assert_eq!(path.len() as u32 - 1, expected, "{}: {from:?} to {to:?}", shape.describe());
                    assert!(path.contains(&middle));
                    assert!(classes.is_sorted_by_key(|class| class / (router.needs() / 2)), "{classes:?}");
                    met.insert(middle);
                }
            }
        }
        assert_eq!(met.len(), layout.switches(), "every switch is an intermediate");
    }
}

#[test]
fn valiant_on_a_dragonfly_passes_through_its_intermediate_group() {
    let layout = dragonfly(4, 2, 9, 2).layout(&common(3)).routed(Algorithm::Valiant).unwrap();
    let Routing::Fabric(router) = &layout.routing else { unreachable!() };
    let group = |switch: u32| switch / 4;
    let mut detours = 0;
    for seq in 0..30 {
        for (number, &to) in layout.ends.iter().enumerate() {
            let draw = entropy(seq, number as u32);
            let middle = router.intermediate(draw).unwrap();
            for &from in &layout.ends {
                let (path, classes) = follow(&layout, from, to, draw);
                let groups: Vec<u32> = {
                    let mut groups: Vec<u32> = path.iter().map(|&switch| group(switch)).collect();
                    groups.dedup();
                    groups
                };
                let (a, b) = (group(from.switch), group(to.switch));
                let expected = match (a == b, middle == a || middle == b) {
                    (true, _) => vec![a],
                    (false, true) => vec![a, b],
                    (false, false) => vec![a, middle, b],
                };
                detours += usize::from(expected.len() == 3);
                assert_eq!(groups, expected);
                assert!(classes.is_sorted());
            }
        }
    }
    assert!(detours > 1000);
}

#[test]
fn channel_classes_are_those_of_the_table() {
    // Torus: the class is fixed where a packet turns into a ring, by its coordinate and its goal's.
    let layout = torus(&[5, 5], 1).layout(&common(2));
    for &from in &layout.ends {
        for &to in &layout.ends {
            let (path, classes) = follow(&layout, from, to, 0);
            for (step, class) in path.windows(2).zip(&classes) {
                let along_x = step[0] / 5 == step[1] / 5;
                let above = if along_x { from.switch % 5 > to.switch % 5 } else { from.switch / 5 > to.switch / 5 };
                assert_eq!(*class, u8::from(above), "{from:?} to {to:?} at {}", step[0]);
            }
        }
    }
    // HyperX, minimal random: the number of hops so far.
    let layout = hyperx(&[3, 3, 3], 1).layout(&common(3)).routed(Algorithm::MinimalRandom).unwrap();
    for &from in &layout.ends {
        for &to in &layout.ends {
            let (_, classes) = follow(&layout, from, to, entropy(7, from.switch));
            assert_eq!(classes, (0..classes.len() as u8).collect::<Vec<_>>());
        }
    }
    // A share each: 5 channels for 2 classes, 8 for 4.
    let split = |channels, shape: Shape, algorithm| -> Vec<u8> {
        let layout = shape.layout(&common(channels)).routed(algorithm).unwrap();
        let Routing::Fabric(router) = &layout.routing else { unreachable!() };
        (0..channels).map(|channel| router.class_of(channel)).collect()
    };
    assert_eq!(split(5, torus(&[4], 1), Algorithm::DimensionOrder), [0, 0, 1, 1, 1]);
    assert_eq!(split(8, torus(&[4], 1), Algorithm::Valiant), [0, 0, 1, 1, 2, 2, 3, 3]);
    assert_eq!(split(4, torus(&[4], 1), Algorithm::Adaptive), [0, 1, 2, 2]);
    assert_eq!(split(4, mesh(&[4], 1), Algorithm::Adaptive), [0, 1, 1, 1]);
}

#[test]
fn packets_from_a_free_port_of_the_border_begin_there() {
    // Port 1 of s0_0 has no link: a traffic end point may sit there, and its packets come in on any channel.
    let mut layout = mesh(&[3, 3], 1).layout(&common(2)).routed(Algorithm::Valiant).unwrap();
    let place = EndPlace { switch: 0, port: 1 };
    layout.attach(place, LinkParams { latency: 1, cycles_per_flit: 1 }, "traffic");
    let Routing::Fabric(router) = &layout.routing else { unreachable!() };
    for channel in 0..2 {
        for seq in 0..50 {
            let draw = entropy(seq, 8);
            let route = router.fixed(HeadPosition { switch: 0, port: 1, channel }, layout.ends[8], draw);
            let first = u32::from(router.intermediate(draw) == Some(0));
            assert_eq!(route.vcs, 1 << first, "phase {first}");
        }
    }
}

#[test]
fn draws_cover_every_outcome_of_chance() {
    for (shape, algorithm, outcomes) in [
        (mesh(&[5, 7], 1), Algorithm::Valiant, 35),
        (torus(&[5, 4], 1), Algorithm::Valiant, 40),
        (hyperx(&[3, 3, 3], 1), Algorithm::MinimalRandom, 6),
        (dragonfly(4, 2, 5, 1), Algorithm::Valiant, 10),
        (torus(&[4, 6], 1), Algorithm::DimensionOrder, 4),
    ] {
        let layout = shape.layout(&common(8)).routed(algorithm).unwrap();
        let Routing::Fabric(router) = &layout.routing else { unreachable!() };
        let draws = router.draws();
        assert_eq!(draws.len(), outcomes, "{}", shape.describe());
        if algorithm == Algorithm::Valiant {
            let count =
                draws.iter().filter_map(|&draw| router.intermediate(draw)).collect::<std::collections::HashSet<_>>();
            let all = if let Shape::Dragonfly(d) = &shape { d.groups as usize } else { layout.switches() };
            assert_eq!(count.len(), all);
        }
    }
}

#[test]
fn entropy_spreads_close_numbers() {
    // Packets in a row to one destination: every intermediate of 64 about as often, bits of ties even.
    let mut count = [0u32; 64];
    let mut ties = 0;
    for seq in 0..64_000 {
        let draw = entropy(seq + (1 << 35), 17);
        count[(((draw & 0xffff_ffff) * 64) >> 32) as usize] += 1;
        ties += (draw >> 32 & 1) as u32;
    }
    assert!(count.iter().all(|&n| (850..1150).contains(&n)), "{count:?}");
    assert!((31_000..33_000).contains(&ties), "{ties}");
}
