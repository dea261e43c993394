//! Checks of a whole trace: messages have two ends, all members of a group agree on their collectives, no rank waits
//! for itself.

use std::collections::BTreeMap;

use super::{ANY, Collective, CollectiveOp, Error, Kind, Trace};

/// Who sends to whom, and which collectives are the same one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MatchedTrace {
    /// Messages of one sender, receiver and tag.
    pub channels: Vec<Channel>,
    /// Collectives, those of a group in their order.
    pub collectives: Vec<Instance>,
    /// Of every node of every rank: the index of its channel or its collective; [`NONE`] of a receive that fits several channels.
    pub index_of: Vec<Box<[u32]>>,
    /// Receives from any sender or of any tag: by rank and node, the channels that they fit, ascending.
    pub wildcards: BTreeMap<(u32, u32), Vec<u32>>,
}

/// Messages of one sender, receiver and tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// The tag.
    pub tag: u32,
    /// Nodes of the sender, as they are written.
    pub sends: Vec<u32>,
    /// Nodes of the receiver that fit this channel alone, as they are written.
    pub receives: Vec<u32>,
    /// A receive from any sender or of any tag fits it, too: who receives what is known only when it comes.
    pub has_wildcard: bool,
}

/// A collective of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// What is done.
    pub collective: Collective,
    /// Its number among those of its group.
    pub number: u32,
    /// The node of each member, in the order of the group.
    pub nodes: Vec<u32>,
}

/// What stands in [`MatchedTrace::index_of`] where a node is neither message nor collective.
pub const NONE: u32 = u32::MAX;

/// Checks a trace.
///
/// # Errors
/// What is wrong, with file, rank and node.
pub fn check(trace: &Trace) -> Result<MatchedTrace, Error> {
    for rank in 0..trace.ranks.len() {
        acyclic(trace, rank)?;
    }
    let mut matched = MatchedTrace::default();
    matched.index_of.extend(trace.ranks.iter().map(|rank| vec![NONE; rank.nodes.len()].into_boxed_slice()));
    messages(trace, &mut matched)?;
    collectives(trace, &mut matched)?;
    Ok(matched)
}

/// No node waits for itself.
fn acyclic(trace: &Trace, rank: usize) -> Result<(), Error> {
    let nodes = &trace.ranks[rank].nodes;
    // Depth first; 0 is new, 1 on the way, 2 done.
    let mut state = vec![0u8; nodes.len()];
    let mut way: Vec<(usize, usize)> = Vec::new();
    for first in 0..nodes.len() {
        if state[first] == 0 {
            state[first] = 1;
            way.push((first, 0));
        }
        while let Some((node, next)) = way.last_mut() {
            let Some(wait) = nodes[*node].waits.get(*next) else {
                state[*node] = 2;
                way.pop();
                continue;
            };
            *next += 1;
            let to = wait.node as usize;
            match state[to] {
                0 => {
                    state[to] = 1;
                    way.push((to, 0));
                }
                1 => {
                    let begin = way.iter().position(|&(node, _)| node == to).unwrap_or(0);
                    let circle = way[begin..].iter().map(|&(node, _)| node).chain([to]);
                    let names: Vec<String> = circle.map(|node| nodes[node].title(trace.format)).collect();
                    return Err(trace.error(rank, to, format!("it waits for itself: {}", names.join(" waits for "))));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

fn messages(trace: &Trace, matched: &mut MatchedTrace) -> Result<(), Error> {
    let mut places: BTreeMap<(u32, u32, u32), usize> = BTreeMap::new();
    for (rank, of) in (0..).zip(&trace.ranks) {
        for (node, kind) in (0..).zip(of.nodes.iter().map(|node| node.kind)) {
            let (key, sends) = match kind {
                Kind::Send { to, tag, .. } => ((rank, to, tag), true),
                Kind::Receive { from, tag, .. } if from != ANY && tag != ANY => ((from, rank, tag), false),
                _ => continue,
            };
            let at = *places.entry(key).or_insert_with(|| {
                let (from, to, tag) = key;
                matched.channels.push(Channel {
                    from,
                    to,
                    tag,
                    sends: Vec::new(),
                    receives: Vec::new(),
                    has_wildcard: false,
                });
                matched.channels.len() - 1
            });
            let channel = &mut matched.channels[at];
            if sends { &mut channel.sends } else { &mut channel.receives }.push(node);
            matched.index_of[rank as usize][node as usize] = at as u32;
        }
    }
    open_receives(trace, matched)?;
    for channel in matched.channels.iter().filter(|channel| !channel.has_wildcard || channel.from == channel.to) {
        let Channel { from, to, tag, sends, receives, .. } = channel;
        let bytes = |rank: u32, node: u32| match trace.ranks[rank as usize].nodes[node as usize].kind {
            Kind::Send { bytes, .. } | Kind::Receive { bytes, .. } => bytes,
            _ => 0,
        };
        if from == to {
            let (&node, what) =
                sends.first().map_or_else(|| (&receives[0], "receives from"), |node| (node, "sends to"));
            return Err(trace.error(*from as usize, node as usize, format!("it {what} its own rank")));
        }
        if sends.len() > receives.len() {
            let what = format!(
                "nobody receives it: rank {to} receives {} of {} messages with tag {tag} from rank {from}",
                receives.len(),
                sends.len()
            );
            return Err(trace.error(*from as usize, sends[receives.len()] as usize, what));
        }
        if sends.len() < receives.len() {
            let what = format!(
                "nobody sends it: rank {from} sends {} of {} messages with tag {tag} to rank {to}",
                sends.len(),
                receives.len()
            );
            return Err(trace.error(*to as usize, receives[sends.len()] as usize, what));
        }
        // The order in which they are sent is known only when they are; but each must fit one that is waited for.
        let sorted = |rank: u32, nodes: &[u32]| {
            let mut list: Vec<(u64, u32)> = nodes.iter().map(|&node| (bytes(rank, node), node)).collect();
            list.sort_unstable();
            list
        };
        for ((sent, _), (room, node)) in sorted(*from, sends).into_iter().zip(sorted(*to, receives)) {
            if sent > room {
                let what = format!("it has room for {room} bytes, and rank {from} sends {sent}");
                return Err(trace.error(*to as usize, node as usize, what));
            }
        }
    }
    Ok(())
}

/// Finds the channels that receives from any sender or of any tag fit, and counts what has to come out even.
fn open_receives(trace: &Trace, matched: &mut MatchedTrace) -> Result<(), Error> {
    let bytes = |rank: u32, node: u32| match trace.ranks[rank as usize].nodes[node as usize].kind {
        Kind::Send { bytes, .. } | Kind::Receive { bytes, .. } => bytes,
        _ => 0,
    };
    for (rank, of) in (0..).zip(&trace.ranks) {
        let mut receives = 0;
        for (node, kind) in (0..).zip(of.nodes.iter().map(|node| node.kind)) {
            let Kind::Receive { from, tag, bytes: room } = kind else { continue };
            if from != ANY && tag != ANY {
                continue;
            }
            receives += 1;
            let mut fits = Vec::new();
            for (at, channel) in (0..).zip(&mut matched.channels) {
                let fit =
                    [(from, channel.from), (tag, channel.tag)].iter().all(|&(want, is)| want == ANY || want == is);
                if !fit || channel.to != rank || channel.sends.is_empty() {
                    continue;
                }
                channel.has_wildcard = true;
                fits.push(at);
                if let Some(&large) = channel.sends.iter().find(|&&send| bytes(channel.from, send) > room) {
                    let sent = bytes(channel.from, large);
                    let what = format!("it has room for {room} bytes, and may get {sent} of rank {}", channel.from);
                    return Err(trace.error(rank as usize, node as usize, what));
                }
            }
            if fits.is_empty() {
                return Err(trace.error(rank as usize, node as usize, "nobody sends what it could receive"));
            }
            matched.wildcards.insert((rank, node), fits);
        }
        if receives > 0 {
            even(trace, matched, rank, receives)?;
        }
    }
    Ok(())
}

/// As many messages come over the open channels of a rank as are received.
fn even(trace: &Trace, matched: &MatchedTrace, rank: u32, open: usize) -> Result<(), Error> {
    let channels = || matched.channels.iter().filter(|channel| channel.to == rank && channel.has_wildcard);
    let sent: usize = channels().map(|channel| channel.sends.len()).sum();
    let received = open + channels().map(|channel| channel.receives.len()).sum::<usize>();
    if sent > received {
        let Some(last) = channels().next_back() else { return Ok(()) };
        let what = format!("nobody receives it: rank {rank} receives {received} of {sent} messages that fit");
        let node = last.sends[last.sends.len() - 1] as usize;
        return Err(trace.error(last.from as usize, node, what));
    }
    let last = matched.wildcards.range((rank, 0)..=(rank, NONE)).next_back();
    if let (true, Some((&(_, node), _))) = (sent < received, last) {
        let what = format!("nobody sends it: {sent} messages come that fit, and rank {rank} receives {received}");
        return Err(trace.error(rank as usize, node as usize, what));
    }
    Ok(())
}

fn collectives(trace: &Trace, matched: &mut MatchedTrace) -> Result<(), Error> {
    // Of every group: its collectives, with those members that have got so far.
    let mut lists: Vec<Vec<usize>> = vec![Vec::new(); trace.groups.len()];
    let members: Vec<BTreeMap<u32, usize>> =
        trace.groups.iter().map(|group| group.ranks.iter().copied().zip(0..).collect()).collect();
    for (group, places) in trace.groups.iter().zip(&members) {
        if places.len() != group.ranks.len() {
            let file = &trace.ranks[group.ranks[0] as usize].file;
            return Err(Error::new(file, format!("process group \"{}\" has a rank twice", group.name)));
        }
    }
    for (rank, of) in (0..).zip(&trace.ranks) {
        let mut counts = vec![0usize; trace.groups.len()];
        for (node, kind) in (0..).zip(of.nodes.iter().map(|node| node.kind)) {
            let Kind::Collective(collective) = kind else { continue };
            let group = collective.group as usize;
            let number = counts[group];
            counts[group] += 1;
            let at = if let Some(&at) = lists[group].get(number) {
                at
            } else {
                let nodes = vec![NONE; trace.groups[group].ranks.len()];
                matched.collectives.push(Instance { collective, number: number as u32, nodes });
                lists[group].push(matched.collectives.len() - 1);
                matched.collectives.len() - 1
            };
            let instance = &mut matched.collectives[at];
            if instance.collective != collective {
                let first = instance.nodes.iter().position(|&node| node != NONE).unwrap_or(0);
                let other = trace.groups[group].ranks[first];
                let what = format!(
                    "number {number} of its group's collectives is {} here and {} in rank {other}",
                    describe(collective),
                    describe(instance.collective)
                );
                return Err(trace.error(rank as usize, node as usize, what));
            }
            instance.nodes[members[group][&rank]] = node;
            matched.index_of[rank as usize][node as usize] = at as u32;
        }
    }
    for instance in &matched.collectives {
        let group = &trace.groups[instance.collective.group as usize];
        if let Some(missing) = instance.nodes.iter().position(|&node| node == NONE) {
            let there = instance.nodes.iter().position(|&node| node != NONE).unwrap_or(0);
            let (rank, node) = (group.ranks[there] as usize, instance.nodes[there] as usize);
            let what = format!(
                "rank {} of its group has only {} collectives: nobody does this one with it",
                group.ranks[missing], instance.number
            );
            return Err(trace.error(rank, node, what));
        }
    }
    Ok(())
}

fn describe(collective: Collective) -> String {
    let Collective { op: what, bytes, root, .. } = collective;
    let root = if matches!(
        what,
        CollectiveOp::Reduce | CollectiveOp::Broadcast | CollectiveOp::Gather | CollectiveOp::Scatter
    ) {
        format!(" with root {root}")
    } else {
        String::new()
    };
    format!("{} of {bytes} bytes{root}", what.name())
}
