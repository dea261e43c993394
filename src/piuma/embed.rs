//! The built-in embedding (requirements P-EMB-1 to P-EMB-3; "Accelerating Allreduce ...", section "Allreduce Embedding").
//!
//! Every participant's input takes the dimension-ordered shortest path to the root. Between nodes it goes coordinate by
//! coordinate, in each node towards the switch whose port leads to the parent node, in a die to the right position and
//! then along the row, over the first of parallel links. Where paths meet, the switch reduces in its CENG and forwards
//! one packet. The response registers are the inverse mapping. The result is a list of register values and nothing else
//! (P-EMB-3): it can be printed, edited, and written to a scenario.
//!
//! The root, if not given ([`middle`]):
//!
//! | topology | root |
//! |---|---|
//! | nodes | the participating node of least eccentricity: the least distance to the farthest participating node, in links between nodes, or in their latency where that grows with the distance; ties go to the node nearest to the middle of the grid, floor(side / 2) in each dimension, then to the lowest; in it the lowest participating switch *chosen* |
//! | dies, meshes | the participating switch of least eccentricity; ties go to the lowest *chosen* |
//! | others | the switch of least eccentricity, participating or not (in a fat tree it is not); ties go to a participating switch, then to the lowest *chosen* |
//!
//! Several trees, one for each segment of a vector (P-EMB-4), take the ways of
//! [`trees`](watershed_fabric::topology::trees) and have their roots at the participants nearest to their centres. A
//! mesh has no two trees without a common link; there they are the shortest ways to different roots. On any other graph
//! (requirement X-NET-1) ways are searched ([`SwitchGraph`]), and trees have no link in common as long as the graph has
//! disjoint trees.
//!
//! Cost: a step for every switch on the tree, and a word for every switch there is.

use super::{MAX_PLANES, REQUEST, RESPONSE, Registers};
use std::collections::{BTreeMap, HashMap};
use watershed_fabric::routing::Routing;
use watershed_fabric::topology::{EndPlace, Neighbours, Nodes, SwitchGraph, TreeToRoot};

/// Where a register vector stands: switch, channel, input port.
pub type Key = (u32, u8, u16);

/// Register vectors of one collective id, ascending by switch, channel and input port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vectors(Vec<(Key, u64)>);

impl Vectors {
    /// All of them, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (Key, u64)> + '_ {
        self.0.iter().copied()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a register has a vector.
    pub fn contains(&self, key: Key) -> bool {
        self.0.binary_search_by_key(&key, |&(key, _)| key).is_ok()
    }
}

impl Vectors {
    /// Vectors that are in order.
    pub(super) fn ascending(list: Vec<(Key, u64)>) -> Vectors {
        debug_assert!(list.is_sorted_by(|(one, _), (two, _)| one < two), "no register has two vectors");
        Vectors(list)
    }
}

impl From<BTreeMap<Key, u64>> for Vectors {
    fn from(map: BTreeMap<Key, u64>) -> Vectors {
        Vectors(map.into_iter().collect())
    }
}

/// The system as the embedding sees it.
#[derive(Clone, Copy, Debug)]
pub struct EmbedContext<'a> {
    /// Routes between switches.
    pub routing: &'a Routing,
    /// Who is at the far end of a port.
    pub neighbours: &'a Neighbours,
    /// The engine's port number.
    pub engine: u16,
    /// Number of switches.
    pub switches: u32,
    /// The graph of switches, where no arithmetic knows the topology: trees are made of its shortest ways.
    pub ways: Option<&'a SwitchGraph>,
    /// Of that graph, links of trees that have none in common, for those of several trees.
    pub apart: &'a [Vec<bool>],
    /// Which of several trees that share as few links as there are; `None`: one alone, on shortest ways.
    pub tree: Option<u32>,
}

/// The ways of a tree to its root.
enum Tree<'a> {
    /// By arithmetic.
    Routed(&'a EmbedContext<'a>, u32),
    /// Searched.
    Searched(TreeToRoot),
}

impl Tree<'_> {
    /// The output port of the next step on the way to the root.
    fn hop(&self, at: u32) -> Option<u16> {
        match self {
            Tree::Routed(context, root) => context.hop(at, *root),
            Tree::Searched(towards) => towards.hop(at),
        }
    }
}

impl EmbedContext<'_> {
    /// The output port of the next step on the way to the root.
    fn hop(&self, at: u32, root: u32) -> Option<u16> {
        match (self.tree, self.routing) {
            (Some(tree), Routing::Nodes(nodes)) => nodes.tree_hop(tree, at, root),
            (Some(tree), Routing::Die(die)) => die.tree_hop(tree, at, root),
            _ => self.routing.hop(at, root),
        }
    }

    /// The ways to a root: of trees that share no link, as long as there are such, those of one of them.
    fn towards(&self, root: u32) -> Tree<'_> {
        let Some(ways) = self.ways else { return Tree::Routed(self, root) };
        let own = self.tree.and_then(|tree| self.apart.get(tree as usize));
        Tree::Searched(ways.towards(root, own.map(Vec::as_slice)))
    }

    /// Hops between two switches.
    pub fn distance(&self, from: u32, to: u32) -> u32 {
        let (mut at, mut hops) = (from, 0);
        while let Some(port) = self.routing.hop(at, to) {
            at = self.next(at, port).0;
            hops += 1;
        }
        hops
    }

    fn next(&self, switch: u32, port: u16) -> (u32, u16) {
        self.neighbours.of(switch, port).expect("a route only takes ports that have a link")
    }
}

/// The switch at which a tree of these participants has its root; see the module's table.
///
/// # Panics
/// If there is no participant.
pub fn middle(context: &EmbedContext<'_>, participants: &[EndPlace]) -> u32 {
    let mut switches: Vec<u32> = participants.iter().map(|place| place.switch).collect();
    switches.sort_unstable();
    switches.dedup();
    if let Some(ways) = context.ways {
        return searched(context, ways, &switches);
    }
    if let Some(tree) = context.tree {
        return centre(context, tree, &switches);
    }
    if let Routing::Nodes(nodes) = context.routing {
        let node = middle_node(nodes, &switches);
        let first = switches.partition_point(|&switch| nodes.place(switch).node < node);
        return switches[first];
    }
    let eccentricity = |from: u32| switches.iter().map(|&to| context.distance(from, to)).max();
    *switches.iter().min_by_key(|&&switch| (eccentricity(switch), switch)).expect("a collective has participants")
}

/// The root of a tree of searched ways: in the middle of the participants, or of its own links where trees have none in
/// common. Trees beyond those share links; their roots are spread over the participants.
fn searched(context: &EmbedContext<'_>, ways: &SwitchGraph, switches: &[u32]) -> u32 {
    let Some(tree) = context.tree.filter(|&tree| tree > 0 || !context.apart.is_empty()) else {
        return ways.middle(switches);
    };
    match context.apart.get(tree as usize) {
        Some(links) => ways.middle_of(links, switches),
        None => switches[tree as usize * switches.len() / usize::from(MAX_PLANES) % switches.len()],
    }
}

/// The root of one of several trees: the participating switch that is nearest to the tree's centre. Where trees are the
/// shortest ways to different roots, the next one by eccentricity.
fn centre(context: &EmbedContext<'_>, tree: u32, switches: &[u32]) -> u32 {
    let nearest = match context.routing {
        Routing::Nodes(nodes) => switches.iter().min_by_key(|&&at| (nodes.tree_depth(tree, at), at)),
        Routing::Die(die) => switches.iter().min_by_key(|&&at| (die.tree_depth(tree, at), at)),
        _ => {
            let eccentricity = |from: u32| switches.iter().map(|&to| context.distance(from, to)).max();
            let mut order: Vec<&u32> = switches.iter().collect();
            order.sort_by_cached_key(|&&at| (eccentricity(at), at));
            order.get(tree as usize % order.len().max(1)).copied()
        }
    };
    *nearest.expect("a collective has participants")
}

/// The node of least eccentricity among those of these switches, which are sorted.
fn middle_node(nodes: &Nodes, switches: &[u32]) -> u32 {
    let mut all: Vec<u32> = switches.iter().map(|&switch| nodes.place(switch).node).collect();
    all.dedup();
    let places: Vec<Vec<u32>> = all.iter().map(|&node| nodes.coordinates(node)).collect();
    let dimensions = nodes.size.len();
    let farthest: Vec<u64> = if nodes.distance { by_steps(&places, dimensions) } else { by_links(&places, dimensions) };
    let from_middle =
        |at: &[u32]| -> u64 { at.iter().zip(&nodes.size).map(|(&at, &side)| u64::from(at.abs_diff(side / 2))).sum() };
    let best = (0..all.len()).min_by_key(|&at| (farthest[at], from_middle(&places[at]), all[at]));
    all[best.expect("a collective has participants")]
}

/// For each place the largest sum of differences of coordinates to another: the largest of the sums with each choice of
/// signs, so that no pair has to be looked at.
fn by_steps(places: &[Vec<u32>], dimensions: usize) -> Vec<u64> {
    let mut farthest = vec![0u64; places.len()];
    for signs in 0..1u32 << dimensions {
        let sum = |at: &[u32]| -> i64 {
            at.iter().enumerate().map(|(d, &x)| if signs >> d & 1 == 1 { -i64::from(x) } else { x.into() }).sum()
        };
        let most = places.iter().map(|at| sum(at)).max().unwrap_or(0);
        for (farthest, at) in farthest.iter_mut().zip(places) {
            *farthest = (*farthest).max((most - sum(at)) as u64);
        }
    }
    farthest
}

/// For each place the largest number of coordinates in which another differs. Places that agree in a set of coordinates
/// are counted for every set; inclusion and exclusion tells how many agree in exactly these.
fn by_links(places: &[Vec<u32>], dimensions: usize) -> Vec<u64> {
    let sets = 1usize << dimensions;
    let key =
        |at: &[u32], set: usize| -> Vec<u32> { (0..dimensions).filter(|d| set >> d & 1 == 1).map(|d| at[d]).collect() };
    let agree: Vec<HashMap<Vec<u32>, i64>> = (0..sets)
        .map(|set| {
            let mut count = HashMap::new();
            for at in places {
                *count.entry(key(at, set)).or_insert(0) += 1;
            }
            count
        })
        .collect();
    let exactly = |at: &[u32], set: usize| -> i64 {
        let above = (0..sets).filter(|more| more & set == set);
        above
            .map(|more| agree[more][&key(at, more)] * if (more ^ set).count_ones().is_multiple_of(2) { 1 } else { -1 })
            .sum()
    };
    let farthest = |at: &Vec<u32>| {
        let fewest = (0..sets).filter(|&set| exactly(at, set) > 0).map(usize::count_ones).min();
        dimensions as u64 - u64::from(fewest.unwrap_or(0))
    };
    places.iter().map(farthest).collect()
}

/// Marks the ports by which what comes from `places` enters each switch on its way up a tree.
fn entries(context: &EmbedContext<'_>, places: &[EndPlace], tree: &Tree<'_>) -> Vec<u64> {
    let mut entries = vec![0u64; context.switches as usize];
    for place in places {
        let mut at = place.switch;
        let mut seen = entries[at as usize] != 0;
        entries[at as usize] |= 1 << place.port;
        // From where another path has been before, the rest of the way is known.
        while !seen && let Some(port) = tree.hop(at) {
            let (next, by) = context.next(at, port);
            seen = entries[next as usize] != 0;
            entries[next as usize] |= 1 << by;
            at = next;
        }
    }
    entries
}

/// The registers of a reduction tree over `participants` to the CENG of switch `root`, whose result goes to
/// `receivers`.
pub fn reduction(context: &EmbedContext<'_>, participants: &[EndPlace], root: u32, receivers: &[EndPlace]) -> Vectors {
    // Inputs of every switch on a path: from its participants and from its children.
    let tree = context.towards(root);
    let inputs = entries(context, participants, &tree);
    // Responses go the inverse way, from the root's engine down to the receivers.
    let apart = (participants != receivers).then(|| entries(context, receivers, &tree));
    let outputs = apart.as_ref().unwrap_or(&inputs);
    let engine = context.engine;
    // A vector for each input, one for the engine's result and one for the response.
    let most = inputs.iter().map(|ports| ports.count_ones() as usize + if *ports == 0 { 0 } else { 2 }).sum();
    let mut vectors = Vec::with_capacity(most);
    for switch in 0..context.switches {
        let (ports, outs) = (inputs[switch as usize], outputs[switch as usize]);
        if ports | outs == 0 {
            continue;
        }
        let up = tree.hop(switch);
        let forward = up.map_or(0, |port| 1u64 << port);
        let reduces = ports.count_ones() > 1 || switch == root;
        for port in bits(ports) {
            vectors.push(((switch, REQUEST, port), if reduces { 1 << engine } else { forward }));
        }
        if reduces && forward != 0 {
            vectors.push(((switch, REQUEST, engine), forward));
        }
        if outs != 0 {
            vectors.push(((switch, RESPONSE, up.unwrap_or(engine)), outs));
        }
    }
    Vectors(vectors)
}

/// The registers of a multicast tree from `source` to `receivers`: requests only, no engine (P-MC-1).
pub fn multicast(context: &EmbedContext<'_>, source: EndPlace, receivers: &[EndPlace]) -> Vectors {
    let tree = context.towards(source.switch);
    let outputs = entries(context, receivers, &tree);
    let outputs = outputs.iter().enumerate().filter(|(_, outs)| **outs != 0);
    let vector = |(switch, &outs): (usize, &u64)| {
        let up = tree.hop(switch as u32);
        ((switch as u32, REQUEST, up.unwrap_or(source.port)), outs)
    };
    Vectors(outputs.map(vector).collect())
}

/// Writes vectors into the registers of a collective id.
///
/// # Errors
/// If an address is refused.
pub fn store(registers: &mut Registers, id: u16, vectors: &Vectors) -> Result<(), super::AddressError> {
    registers.store_vectors(id, vectors.iter())
}

/// The set bits of a word, ascending.
fn bits(mut word: u64) -> impl Iterator<Item = u16> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros() as u16)?;
        word &= word - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every pair, one by one.
    fn slowly(places: &[Vec<u32>], distance: impl Fn(u32, u32) -> u64) -> Vec<u64> {
        let pair = |a: &[u32], b: &[u32]| a.iter().zip(b).map(|(&a, &b)| distance(a, b)).sum::<u64>();
        places.iter().map(|a| places.iter().map(|b| pair(a, b)).max().unwrap()).collect()
    }

    #[test]
    fn eccentricities_are_those_of_all_pairs() {
        let mut state = 1u64;
        let mut draw = |bound: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32 % bound
        };
        for dimensions in 1..=4 {
            for count in [1, 2, 3, 7, 40] {
                let places: Vec<Vec<u32>> =
                    (0..count).map(|_| (0..dimensions).map(|d| draw(3 + d as u32)).collect()).collect();
                assert_eq!(by_links(&places, dimensions), slowly(&places, |a, b| u64::from(a != b)), "{places:?}");
                assert_eq!(
                    by_steps(&places, dimensions),
                    slowly(&places, |a, b| u64::from(a.abs_diff(b))),
                    "{places:?}"
                );
            }
        }
    }
}
