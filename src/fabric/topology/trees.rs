//! Several trees on one topology that share as few links as it allows (requirement P-EMB-4).
//!
//! On n places that are all joined, a star uses all links of its root, and leaves none for a second tree. Trees with
//! two centres avoid that. With m = floor(n / 2) and places counted round from the middle one, tree k has
//!
//! ```text
//!      k+1 ──┐                     ┌── k+m+1
//!      k+2 ──┼── k ─────────── k+m ┼── k+m+2          all modulo 2m; if n is odd, the last place hangs on k
//!       …    │                     │    …
//!    k+m-1 ──┘                     └── k+2m-1
//! ```
//!
//! so that m trees have no link in common, each spans all places, and no place is more than two links from centre k. There
//! cannot be more than m: n (n - 1) / 2 links, n - 1 a tree. Below four places there is one tree only, and the step to any
//! place is direct.
//!
//! A system of nodes and a die are made of such places: dimensions of the HyperX (the longest first), sockets of a node,
//! positions of a tile. A tree takes its own links on each of them, and of the two parallel links between tiles the first
//! or the second in turn *chosen: the paper has one tree and says of several only that they would use more links*.

use super::{Die, Nodes, die_port as port};

/// How many trees on this many places that are all joined have no link in common.
pub fn disjoint_trees(places: u32) -> u32 {
    (places / 2).max(1)
}

/// The centre of tree `tree`, modulo the number there are.
pub fn centre(places: u32, tree: u32) -> u32 {
    (places / 2 + tree % disjoint_trees(places)) % places
}

/// The place above `at` in a tree, `None` at its centre. Places are counted from the middle one.
fn above(places: u32, tree: u32, at: u32) -> Option<u32> {
    let half = places / 2;
    if at == 2 * half {
        return Some(tree);
    }
    match (at + 2 * half - tree) % (2 * half) {
        0 => None,
        steps if steps <= half => Some(tree),
        _ => Some((tree + half) % (2 * half)),
    }
}

/// The next place on the way from `at` to `to` along a tree of places that are all joined.
pub fn step(places: u32, tree: u32, at: u32, to: u32) -> u32 {
    if places < 4 || at == to {
        return to;
    }
    let (middle, tree) = (places / 2, tree % disjoint_trees(places));
    let (at, to) = ((at + places - middle) % places, (to + places - middle) % places);
    let next = match above(places, tree, to) {
        Some(parent) if parent == at => to,
        Some(parent) if above(places, tree, parent) == Some(at) => parent,
        _ => above(places, tree, at).expect("the centre is above everything"),
    };
    (next + middle) % places
}

/// Links from the centre of a tree to a place.
pub fn depth(places: u32, tree: u32, at: u32) -> u32 {
    let (centre, mut at, mut links) = (centre(places, tree), at, 0);
    while at != centre {
        at = step(places, tree, at, centre);
        links += 1;
    }
    links
}

impl Die {
    /// The output port of the next step from switch `at` to switch `to` along tree `tree`; `None` if they are the same.
    pub fn tree_hop(self, tree: u32, at: u32, to: u32) -> Option<u16> {
        let ((tile, position), (to_tile, to_position)) = (self.place(at), self.place(to));
        if position != to_position {
            let next = step(u32::from(self.positions), tree, u32::from(position), u32::from(to_position)) as u16;
            return Some(port::X + (position ^ next) - 1);
        }
        let [plus, minus] =
            if tree.is_multiple_of(2) { [port::PLUS, port::MINUS] } else { [port::PLUS2, port::MINUS2] };
        (tile != to_tile).then_some(if to_tile > tile { plus } else { minus })
    }

    /// How far a switch is from the centre of a tree.
    pub fn tree_depth(self, tree: u32, at: u32) -> u32 {
        depth(u32::from(self.positions), tree, u32::from(self.place(at).1))
    }
}

impl Nodes {
    /// The output port of the next step from switch `at` to switch `to` along tree `tree`; `None` if they are the same.
    pub fn tree_hop(&self, tree: u32, at: u32, to: u32) -> Option<u16> {
        if at == to {
            return None;
        }
        let (here, there) = (self.place(at), self.place(to));
        let (socket, switch, out) = if here.node == there.node {
            (there.socket, there.switch, port::LOCAL)
        } else {
            let both = |dimension: usize| [here.node, there.node].map(|node| self.coordinate(node, dimension).0);
            let differ = (0..self.size.len()).filter(|&dimension| both(dimension)[0] != both(dimension)[1]);
            let longest = differ.max_by_key(|&dimension| (self.size[dimension], std::cmp::Reverse(dimension)));
            let dimension = longest.expect("two nodes differ in a coordinate");
            let [from, to] = both(dimension);
            self.to_node(dimension, from, step(self.size[dimension], tree, from, to))
        };
        let (switch, out) = if here.socket == socket {
            (switch, out)
        } else {
            let each = self.subnode_sockets();
            let next = self.across(here.socket, socket, (socket % each + tree) % self.columns(), |at, to| {
                step(each, tree, at, to)
            });
            self.to_socket(here.socket, next, tree)
        };
        Some(self.die.tree_hop(tree, here.switch, switch).unwrap_or(out))
    }

    /// How far a switch is from the centre of a tree: between nodes, between sockets, in its tile.
    pub fn tree_depth(&self, tree: u32, at: u32) -> [u32; 3] {
        let place = self.place(at);
        let between = (0..self.size.len())
            .map(|dimension| depth(self.size[dimension], tree, self.coordinate(place.node, dimension).0));
        let (each, middle) = (self.subnode_sockets(), self.subnodes.count / 2);
        let crosses = u32::from(place.socket / each != middle);
        [between.sum(), crosses + depth(each, tree, place.socket % each), self.die.tree_depth(tree, place.switch)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Topology as _;
    use std::collections::{BTreeMap, BTreeSet};

    /// The links of a tree, from the ways of all places to a root.
    fn links(places: u32, tree: u32, root: u32) -> BTreeSet<(u32, u32)> {
        let mut links = BTreeSet::new();
        for from in 0..places {
            let (mut at, mut steps) = (from, 0);
            while at != root {
                let next = step(places, tree, at, root);
                links.insert((at.min(next), at.max(next)));
                (at, steps) = (next, steps + 1);
                assert!(steps <= 4, "{places} places, tree {tree}: {from} never comes to {root}");
            }
        }
        links
    }

    #[test]
    fn half_as_many_trees_as_places_span_them_and_share_no_link() {
        for places in 1..24 {
            let mut taken = BTreeSet::new();
            for tree in 0..disjoint_trees(places) {
                let own = links(places, tree, centre(places, tree));
                assert_eq!(own.len() as u32, places - 1, "{places} places");
                assert!(own.iter().all(|link| taken.insert(*link)), "{places} places, tree {tree}");
                assert!((0..places).all(|at| depth(places, tree, at) <= 2));
                // Whatever its root is, a tree keeps its links; direct steps of few places are no such trees.
                for root in (0..places).filter(|_| places >= 4) {
                    assert_eq!(links(places, tree, root), own, "{places} places, tree {tree}, root {root}");
                }
            }
            assert_eq!(centre(places, 0), places / 2);
        }
    }

    fn nodes(size: &[u32], sockets: u32, tiles: u16, positions: u16) -> Nodes {
        let mut shape = Nodes {
            size: size.to_vec(),
            sockets,
            subnodes: super::super::Subnodes::default(),
            die: Die { tiles, positions },
            hsio_ports: 1,
            socket_latency: 25,
            node_latency: 50,
            socket_width: 1,
            node_width: 1,
            distance: false,
        };
        while !shape.budget().suffices {
            shape.hsio_ports += 1;
        }
        shape
    }

    #[test]
    fn trees_of_systems_share_links_only_where_there_are_too_few() {
        for (size, sockets, tiles, positions, count) in [
            (&[8][..], 2, 4, 4, 4),
            (&[4, 9], 3, 2, 2, 4),
            (&[16, 2, 3], 1, 1, 1, 8),
            (&[5, 5], 4, 3, 4, 2),
            (&[], 16, 4, 4, 8),
            (&[], 1, 4, 4, 2),
            (&[6, 6], 2, 3, 3, 3),
        ] {
            let shape = nodes(size, sockets, tiles, positions);
            let switches = shape.switches().unwrap() as u32;
            let mut taken: BTreeMap<(u32, u32), (u8, u32)> = BTreeMap::new();
            let mut roots = BTreeSet::new();
            for tree in 0..count {
                let root = (0..switches).min_by_key(|&at| (shape.tree_depth(tree, at), at)).unwrap();
                assert!(roots.insert(root), "{shape:?}: two trees have the root {root}");
                let mut own = BTreeMap::new();
                for from in 0..switches {
                    let (mut at, mut steps) = (from, 0);
                    while let Some(out) = shape.tree_hop(tree, at, root) {
                        let link = shape.link(at, out).expect("a way only takes ports that have a link");
                        own.insert((at.min(link.switch), at.max(link.switch)), link.level);
                        (at, steps) = (link.switch, steps + 1);
                        assert!(steps < 200, "{shape:?}, tree {tree}: {from} never comes to {root}");
                    }
                }
                for (link, level) in own {
                    taken.entry(link).or_insert((level, 0)).1 += 1;
                }
            }
            let most = |level: u8| taken.values().filter(|(at, _)| *at == level).map(|(_, trees)| *trees).max();
            // Between nodes nothing is shared, between the sockets of a node nothing if those suffice.
            assert!(most(4).is_none_or(|most| most == 1), "{shape:?}");
            if disjoint_trees(sockets) >= count {
                assert_eq!(most(3), Some(1), "{shape:?}");
            }
        }
    }

    #[test]
    fn a_die_has_two_trees_without_a_common_link() {
        let die = Die::default();
        let (mut taken, mut levels) = (BTreeSet::new(), 0);
        for tree in 0..2 {
            let root = (0..16).min_by_key(|&at| (die.tree_depth(tree, at), at)).unwrap();
            let mut own = BTreeSet::new();
            for from in [0, 1, 2, 3, 12, 13, 14, 15] {
                let mut at = from;
                while let Some(out) = die.tree_hop(tree, at, root) {
                    let (tile, position) = die.place(at);
                    let far = match out {
                        port::X..=port::DIAGONAL => {
                            at - u32::from(position) + u32::from(position ^ (out - port::X + 1))
                        }
                        port::PLUS | port::PLUS2 => at + 4,
                        _ => at - 4,
                    };
                    assert!(tile < 4 && far < 16);
                    own.insert((at.min(far), at.max(far), out >= port::PLUS2));
                    at = far;
                }
            }
            levels += own.len();
            assert!(own.iter().all(|link| taken.insert(*link)), "tree {tree}: {own:?} {taken:?}");
        }
        assert_eq!(levels, 2 * (3 + 3 + 3), "a tile on either side and the row between them, twice");
    }
}
