//! Nodes, sockets and subnodes: links, ways, trees.

use super::*;
use crate::Vcs;
use crate::topology::Neighbours;
use std::collections::{BTreeMap, BTreeSet};

fn nodes(size: &[u32], sockets: u32) -> Nodes {
    Nodes {
        size: size.to_vec(),
        sockets,
        subnodes: Subnodes::default(),
        die: Die::default(),
        hsio_ports: 2,
        socket_latency: 25,
        node_latency: 50,
        socket_width: 1,
        node_width: 1,
        distance: false,
    }
}

fn common() -> Common {
    let link = LinkParams { latency: 5, cycles_per_flit: 1 };
    let local = LinkParams { latency: 1, cycles_per_flit: 1 };
    Common { vcs: Vcs { set: 2, unicast: 1 }, engine: true, link, local }
}

fn shapes() -> Vec<Nodes> {
    let mut all = Vec::new();
    for (size, sockets) in
        [(&[][..], 1), (&[], 3), (&[], 16), (&[2], 2), (&[5], 3), (&[3, 2], 2), (&[2, 3, 2], 1), (&[1, 4], 4)]
    {
        all.push(nodes(size, sockets));
    }
    all.push(Nodes { die: Die { tiles: 2, positions: 3 }, ..nodes(&[3], 2) });
    all.push(Nodes { die: Die { tiles: 1, positions: 1 }, hsio_ports: 12, ..nodes(&[4, 3], 3) });
    all.push(Nodes { die: Die { tiles: 3, positions: 2 }, hsio_ports: 1, distance: true, ..nodes(&[5], 2) });
    for (size, sockets, count, links) in
        [(&[][..], 32, 2, 16), (&[], 8, 2, 3), (&[3], 6, 2, 7), (&[2, 2], 6, 3, 1), (&[2], 4, 4, 2), (&[], 9, 3, 5)]
    {
        let subnodes = Subnodes { count, links, latency: 35, width: 2 };
        all.push(Nodes { subnodes, ..nodes(size, sockets) });
    }
    all
}

#[test]
fn every_link_is_there_once_and_leads_back() {
    for shape in shapes() {
        let switches = shape.switches().unwrap() as u32;
        let mut levels = [0; 6];
        for switch in 0..switches {
            for port in 0..shape.switch_ports() + 3 {
                let Some(link) = shape.link(switch, port) else { continue };
                let back = shape.link(link.switch, link.port).expect("a link has two ends");
                assert_eq!((back.switch, back.port, back.level, back.steps), (switch, port, link.level, link.steps));
                levels[usize::from(link.level)] += 1;
            }
        }
        let mut expected = shape.links_by_level();
        expected[0] = 0;
        assert_eq!(levels.map(|count| count / 2), expected, "{shape:?}");
    }
}

#[test]
fn sockets_are_all_to_all_and_nodes_differ_in_one_coordinate() {
    for shape in shapes() {
        let (mut sockets, mut peers) = (BTreeSet::new(), BTreeSet::new());
        let mut between = BTreeMap::new();
        for switch in 0..shape.switches().unwrap() as u32 {
            for port in (0..shape.switch_ports()).filter(|&port| Nodes::is_hsio(port)) {
                let Some(link) = shape.link(switch, port) else { continue };
                let (a, b) = (shape.place(switch), shape.place(link.switch));
                let each = shape.subnode_sockets();
                if link.level == INTER_SUBNODE {
                    assert_eq!((a.node, a.socket % each), (b.node, b.socket % each));
                    *between.entry((a.node, a.socket / each, b.socket / each)).or_insert(0) += 1;
                } else if link.level == INTER_SOCKET {
                    assert_eq!((a.node, a.socket / each), (b.node, b.socket / each));
                    assert!(sockets.insert((a.node, a.socket, b.socket)), "{a:?} {b:?} twice");
                } else {
                    let (x, y) = (shape.coordinates(a.node), shape.coordinates(b.node));
                    let differ: Vec<_> = x.iter().zip(&y).filter(|(x, y)| x != y).collect();
                    assert_eq!(differ.len(), 1);
                    assert_eq!(differ[0].0.abs_diff(*differ[0].1), link.steps);
                    assert!(peers.insert((a.node, b.node)), "{a:?} {b:?} twice");
                }
            }
        }
        let nodes = shape.nodes().unwrap() as usize;
        let (all, each) = (shape.sockets as usize, shape.subnode_sockets() as usize);
        assert_eq!((sockets.len(), peers.len()), (nodes * all * (each - 1), nodes * shape.peers() as usize));
        let pairs = shape.subnodes.count * (shape.subnodes.count - 1);
        assert_eq!(between.len(), nodes * pairs as usize, "{shape:?}");
        assert!(between.values().all(|&links| links == shape.subnodes.links));
    }
}

#[test]
fn the_layout_says_what_the_arithmetic_says() {
    for shape in shapes() {
        let layout = shape.layout(&common());
        assert_eq!(layout.plan.fault(), None);
        let neighbours = Neighbours::new(&layout.plan);
        for switch in 0..layout.switches() as u32 {
            let name = shape.switch_name(switch);
            assert_eq!(layout.shape.switch_by_name(&name), Some(switch), "{name}");
            assert_eq!(shape.number(shape.place(switch)), switch);
            for port in 0..shape.switch_ports() {
                let expected = match shape.end_of(switch) {
                    Some(end) if port == port::LOCAL => Some((layout.switches() as u32 + end, 0)),
                    _ => shape.link(switch, port).map(|link| (link.switch, link.port)),
                };
                assert_eq!(neighbours.of(switch, port), expected, "{name}.P{port}");
            }
        }
        let mut levels = [0; 6];
        layout.plan.links.iter().for_each(|link| levels[usize::from(link.level)] += 1);
        assert_eq!(levels, shape.links_by_level());
    }
}

#[test]
fn routes_have_no_more_long_links_than_they_need() {
    for shape in shapes() {
        let switches = shape.switches().unwrap() as u32;
        for from in (0..switches).step_by(7) {
            for to in (0..switches).step_by(5) {
                let (a, b) = (shape.place(from), shape.place(to));
                let (mut at, mut levels) = (from, [0u32; 6]);
                while let Some(port) = shape.hop(at, to) {
                    let link = shape.link(at, port).expect("a way only takes ports that have a link");
                    levels[usize::from(link.level)] += 1;
                    at = link.switch;
                    assert!(levels.iter().sum::<u32>() < 100, "{from} to {to}");
                }
                let (x, y) = (shape.coordinates(a.node), shape.coordinates(b.node));
                let differ = x.iter().zip(&y).filter(|(x, y)| x != y).count() as u32;
                assert_eq!(levels[4], differ, "{from} to {to}");
                let (long, visits) = (levels[3] + levels[4] + levels[5], differ + 1);
                assert!(long < u32::from(shape.classes()), "{from} to {to}: {levels:?}");
                let within =
                    if shape.subnodes.count == 1 || shape.columns() == shape.subnode_sockets() { 1 } else { 2 };
                assert!(levels[3] <= visits * within && levels[5] <= visits, "{from} to {to}: {levels:?}");
                let diameter = u32::from(shape.die.tiles - 1) + u32::from(shape.die.positions > 1);
                assert!(levels[1] + levels[2] <= (long + 1) * diameter, "{from} to {to}: {levels:?}");
            }
        }
    }
}

#[test]
fn trees_of_subnodes_come_to_their_roots() {
    for shape in shapes().into_iter().filter(|shape| shape.subnodes.count > 1) {
        let switches = shape.switches().unwrap() as u32;
        for tree in 0..4 {
            let root = (0..switches).min_by_key(|&at| (shape.tree_depth(tree, at), at)).unwrap();
            for from in 0..switches {
                let (mut at, mut steps) = (from, 0);
                while let Some(out) = shape.tree_hop(tree, at, root) {
                    at = shape.link(at, out).expect("a way only takes ports that have a link").switch;
                    steps += 1;
                    assert!(steps < 100, "{shape:?}, tree {tree}: {from} never comes to {root}");
                }
            }
        }
    }
}

#[test]
fn the_patents_node_of_two_subnodes_joins_sixteen_dies_each_way() {
    let subnodes = Subnodes { count: 2, links: 16, ..Subnodes::default() };
    let shape = Nodes { subnodes, ..nodes(&[], 32) };
    let Budget { ports, sockets, subnodes, nodes, suffices } = shape.budget();
    assert_eq!((ports, sockets, subnodes, nodes, suffices), (1024, 32 * 15, 32, 0, true));
    assert_eq!((shape.switches(), shape.cores(), shape.classes()), (Some(512), Some(256), 3));
}

#[test]
fn the_papers_node_has_272_ports_for_other_nodes() {
    let budget = |size: &[u32]| nodes(size, 16).budget();
    let Budget { ports, sockets, nodes, suffices, .. } = budget(&[128, 128]);
    assert_eq!((ports, sockets, nodes, suffices), (512, 240, 254, true));
    assert!(budget(&[137, 137]).suffices, "272 other nodes");
    assert!(!budget(&[138, 137]).suffices, "273 other nodes");
    assert!(budget(&[16, 32, 32]).suffices && budget(&[273]).suffices && !budget(&[274]).suffices);
}
