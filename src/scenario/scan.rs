//! Prefix scans: order registers that follow from a tree, and the golden result of every rank (requirement P-COL-2).

use super::config::{Collective, CollectiveKind};
use super::problem::Problem;
use std::collections::BTreeMap;
use watershed_arith::{Flags, Mode};
use watershed_oracle::{self as oracle, Node};
use watershed_piuma::legality::Footprint;
use watershed_piuma::ordered::Blocked;
use watershed_piuma::scan::{MOST_PORTS, order};
use watershed_piuma::{Registers, ScanEnd};

/// What the ranks of a scan must be.
const ORDER: &str = "ranks that are neighbours wherever they come together: another order, or another root";

/// A core's end of a scan, if it is one.
pub fn end(collective: &Collective, stages: u8) -> Option<ScanEnd> {
    let Collective { inclusive, .. } = *collective;
    let end = || ScanEnd { select: super::build::select(collective), inclusive, stages: stages.into() };
    (collective.kind == CollectiveKind::Scan).then(end)
}

/// Two ranks that must meet and cannot.
pub fn blocked(index: usize, collective: &Collective, Blocked { pair: (one, two), why }: &Blocked) -> Problem {
    unordered(index, collective, &format!("ranks {one} and {two} stand in the way: {why}"))
}

/// A tree that does not keep the order of ranks.
pub fn unordered(index: usize, collective: &Collective, why: &str) -> Problem {
    let message = format!("collective \"{}\": {why}", collective.name);
    Problem::at(format!("collective[{index}].participants"), message).expected(ORDER)
}

/// Writes the order registers of a scan.
///
/// # Errors
/// Why the tree cannot keep the order of ranks.
pub fn store(collective: &Collective, footprint: &Footprint, registers: &mut Registers) -> Result<(), String> {
    let Some(tree) = footprint.tree.as_ref() else { return Ok(()) };
    let names: BTreeMap<String, u32> =
        footprint.engines.iter().map(|&switch| (registers.name(switch).into_owned(), switch)).collect();
    let tree = tree.node(&|switch| registers.name(switch).into_owned());
    for (name, order) in orders(&tree)? {
        let Some(&switch) = names.get(&name) else { continue };
        let address = Registers::order_address(switch, collective.id as u16);
        registers.store(address, order).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// The ranks that come together in a tree: the first, and how many.
fn ranks(node: &Node) -> (usize, usize) {
    match node {
        Node::Leaf(rank) => (*rank, 1),
        Node::Reduce { inputs, .. } => inputs.iter().fold((usize::MAX, 0), |(first, count), (_, child)| {
            let (from, more) = ranks(child);
            (first.min(from), count + more)
        }),
    }
}

fn leaves(node: &Node, list: &mut Vec<usize>) {
    match node {
        Node::Leaf(rank) => list.push(*rank),
        Node::Reduce { inputs, .. } => inputs.iter().for_each(|(_, child)| leaves(child, list)),
    }
}

/// The order register of every engine of a tree, by the name of its switch.
///
/// # Errors
/// Why the tree cannot keep the order of ranks, in words.
pub fn orders(tree: &Node) -> Result<Vec<(String, u64)>, String> {
    let mut list = Vec::new();
    let mut work = vec![tree];
    while let Some(node) = work.pop() {
        let Node::Reduce { name, inputs, .. } = node else { continue };
        let switch = name.clone();
        let mut sorted: Vec<(usize, u16)> = Vec::new();
        for (port, child) in inputs {
            let mut members = Vec::new();
            leaves(child, &mut members);
            members.sort_unstable();
            if let Some((one, next)) = members.iter().zip(members.iter().skip(1)).find(|(one, next)| *next - *one > 1) {
                return Err(format!(
                    "ranks {one} and {next} stand in the way: both come to {switch} by port {port}, and what is between them does not"
                ));
            }
            let first = members.first().copied().unwrap_or(0);
            if usize::from(*port) >= MOST_PORTS {
                return Err(format!("an order register lists ports 0 to {}, not {port}", MOST_PORTS - 1));
            }
            sorted.push((first, u16::from(*port)));
            work.push(child);
        }
        sorted.sort_unstable();
        let ports: Vec<u16> = sorted.into_iter().map(|(_, port)| port).collect();
        list.push((switch, order(&ports)));
    }
    Ok(list)
}

/// A word and the flags it was made with; nothing before rank 0.
type Value = Option<(u64, Flags)>;

/// What every rank gets of one word, walked by the oracle: the declared order of a scan.
pub fn evaluate(collective: &Collective, tree: &Node, ranks: usize, word: &dyn Fn(usize) -> u64) -> Vec<(u64, Flags)> {
    let mut before: Vec<Value> = vec![None; ranks];
    down(collective, tree, None, word, &mut before);
    before
        .into_iter()
        .enumerate()
        .map(|(rank, before)| match (before, collective.inclusive) {
            (None, true) => (word(rank), Flags::NONE),
            (None, false) => (0, Flags::NONE),
            (Some(before), false) => before,
            (Some(before), true) => join(collective, before, (word(rank), Flags::NONE)),
        })
        .collect()
}

fn join(collective: &Collective, left: (u64, Flags), right: (u64, Flags)) -> (u64, Flags) {
    let mode = Mode::rounding(collective.round);
    let op = super::build::operation(collective);
    let (word, flags) = oracle::word_pair(op, collective.dtype, mode, left.0, right.0);
    (word, left.1 | right.1 | flags)
}

fn children(inputs: &[(u8, Node)]) -> Vec<&Node> {
    let mut list: Vec<&Node> = inputs.iter().map(|(_, child)| child).collect();
    list.sort_by_key(|child| ranks(child).0);
    list
}

fn total(collective: &Collective, node: &Node, word: &dyn Fn(usize) -> u64) -> (u64, Flags) {
    match node {
        Node::Leaf(rank) => (word(*rank), Flags::NONE),
        Node::Reduce { inputs, .. } => {
            let all = children(inputs).into_iter().map(|child| total(collective, child, word));
            all.reduce(|sum, next| join(collective, sum, next)).unwrap_or((0, Flags::NONE))
        }
    }
}

fn down(collective: &Collective, node: &Node, above: Value, word: &dyn Fn(usize) -> u64, ranks: &mut [Value]) {
    let Node::Reduce { inputs, .. } = node else {
        if let Node::Leaf(rank) = node {
            ranks[*rank] = above;
        }
        return;
    };
    let mut prefix: Value = None;
    for child in children(inputs) {
        let before = match (above, prefix) {
            (Some(above), Some(prefix)) => Some(join(collective, above, prefix)),
            (above, prefix) => above.or(prefix),
        };
        down(collective, child, before, word, ranks);
        let own = total(collective, child, word);
        prefix = Some(prefix.map_or(own, |prefix| join(collective, prefix, own)));
    }
}
