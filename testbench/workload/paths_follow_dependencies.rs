//! The critical path of a workload is one of its dependency graph: what a walk over the graph says, which shares nothing with the model
//! (X-WORK-3).

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::support::{Goal, end, mesh, pass, workload};
use watershed::kernel::Rng;

const RANKS: usize = 6;
const OVERHEAD: u64 = 17;

/// A node of a schedule: what it waits for, and what it does.
struct Node {
    waits: Vec<(usize, bool)>,
    does: Does,
}

#[derive(Clone, Copy)]
enum Does {
    Compute(u64),
    /// To a rank, with a tag of its own.
    Send(usize, u64),
    Receive(usize, u64),
}

/// A random schedule. Every node has a stream for itself, and computing takes so different times that no two messages meet at a port.
fn random(seed: u64) -> Vec<Vec<Node>> {
    let mut rng = Rng::new(seed, 0x7061_7468);
    let mut ranks: Vec<Vec<Node>> = (0..RANKS).map(|_| Vec::new()).collect();
    let mut tag = 0;
    for _ in 0..60 {
        let rank = rng.below(RANKS as u64) as usize;
        let mut add = |rank: usize, does: Does, rng: &mut Rng| {
            let count = ranks[rank].len();
            let mut waits = BTreeMap::new();
            if matches!(does, Does::Send(..)) {
                // It leaves when its own computing is over: no other one leaves then.
                waits.insert(count - 1, false);
            } else {
                for _ in 0..(1 + rng.below(2)).min(count as u64) {
                    let back = rng.below(4.min(count as u64)) as usize;
                    waits.insert(count - 1 - back, rng.below(4) == 0);
                }
            }
            ranks[rank].push(Node { waits: waits.into_iter().collect(), does });
        };
        add(rank, Does::Compute(1 + rng.below(1_000_000)), &mut rng);
        let to = (rank + 1 + rng.below(RANKS as u64 - 1) as usize) % RANKS;
        if rng.below(3) > 0 {
            // It is sent before anything that is received later: no circle.
            add(rank, Does::Send(to, tag), &mut rng);
            add(to, Does::Receive(rank, tag), &mut rng);
            tag += 1;
        }
    }
    ranks
}

fn written(ranks: &[Vec<Node>]) -> Goal {
    let block = |nodes: &Vec<Node>| {
        let mut block = String::new();
        for (at, node) in nodes.iter().enumerate() {
            let does = match node.does {
                Does::Compute(ns) => format!("calc {ns}"),
                Does::Send(to, tag) => format!("send 8b to {to} tag {tag}"),
                Does::Receive(from, tag) => format!("recv 8b from {from} tag {tag}"),
            };
            let _ = writeln!(block, "n{at}: {does} cpu {at}");
            for (before, start) in &node.waits {
                let _ = writeln!(block, "n{at} {} n{before}", if *start { "irequires" } else { "requires" });
            }
        }
        block
    };
    let blocks: Vec<String> = ranks.iter().map(block).collect();
    Goal::new(&blocks.iter().map(String::as_str).collect::<Vec<_>>())
}

/// When each node starts and ends: the longest way through the graph. A message of a word takes two flits over a link.
fn walked(ranks: &[Vec<Node>]) -> Vec<Vec<(u64, u64)>> {
    let message = 2 - 1 + (1 + 1) + (1 + 5) + (1 + 1);
    let mut times: Vec<Vec<Option<(u64, u64)>>> = ranks.iter().map(|nodes| vec![None; nodes.len()]).collect();
    let mut handed: BTreeMap<u64, u64> = BTreeMap::new();
    let mut left = true;
    while std::mem::take(&mut left) {
        for (rank, nodes) in ranks.iter().enumerate() {
            for (at, node) in nodes.iter().enumerate().filter(|(at, _)| times[rank][*at].is_none()).collect::<Vec<_>>()
            {
                let ready = node
                    .waits
                    .iter()
                    .map(|&(before, start)| times[rank][before].map(|(from, to)| if start { from } else { to }));
                let Some(ready) = ready.collect::<Option<Vec<u64>>>() else { continue };
                let start = ready.into_iter().max().unwrap_or(0);
                let over = match node.does {
                    Does::Compute(cycles) => Some(start + cycles),
                    Does::Send(_, tag) => {
                        handed.insert(tag, start + OVERHEAD);
                        Some(start + OVERHEAD)
                    }
                    Does::Receive(_, tag) => handed.get(&tag).map(|at| start.max(at + message) + OVERHEAD),
                };
                times[rank][at] = over.map(|over| (start, over));
                left |= over.is_some();
            }
        }
    }
    times.into_iter().map(|nodes| nodes.into_iter().map(Option::unwrap).collect()).collect()
}

#[test]
fn the_path_is_one_of_the_graph_and_the_longest() {
    let mut crossed = 0;
    for seed in 1..=12 {
        let ranks = random(seed);
        let times = walked(&ranks);
        let goal = written(&ranks);
        let keys = goal.keys(&format!("overhead_cycles = {OVERHEAD}"));
        let document = pass(&mesh(&format!("[{RANKS}]"), &keys).replace("\"mesh\"", "\"hyperx\""), &[]);
        let of = workload(&document);
        let last = |nodes: &Vec<(u64, u64)>| nodes.iter().map(|(_, to)| *to).max().unwrap_or(0);
        let ends: Vec<u64> = times.iter().map(last).collect();
        let found: Vec<u64> = of.ranks.iter().map(|rank| rank.end_cycle.unwrap()).collect();
        assert_eq!(found, ends, "seed {seed}");
        // From cycle 0 to the end without a gap; the parts of a node within its time, with its computing whole.
        let longest = *ends.iter().max().unwrap();
        let mut now = 0;
        let mut before: Option<(u64, usize)> = None;
        for step in &of.path {
            assert_eq!(step.start_cycle, now, "seed {seed}: {step:?}");
            now = step.end_cycle;
            let label = step.node.rsplit('"').nth(1).unwrap();
            let at: usize = label[1..].parse().unwrap();
            let rank = step.rank as usize;
            let (from, to) = times[rank][at];
            match (step.what.as_str(), ranks[rank][at].does) {
                ("compute", Does::Compute(_)) | ("overhead", Does::Send(..)) => {
                    assert_eq!((step.start_cycle, step.end_cycle), (from, to), "{step:?}");
                }
                ("overhead", Does::Receive(..)) => assert_eq!((to - OVERHEAD, to), (step.start_cycle, step.end_cycle)),
                ("message", Does::Send(..)) => assert_eq!(step.start_cycle, to, "{step:?}"),
                other => panic!("seed {seed}: {step:?} {:?}", other.0),
            }
            // Each step hangs on the one before: a message on its send, a receive on its message, all else on a node that it waits for.
            if let Some((of, node)) = before.filter(|&before| before != (step.rank, at)) {
                let waits = |&(other, start): &(usize, bool)| {
                    let (begin, over) = times[rank][other];
                    (if start { begin } else { over }) == from || (of, node) == (step.rank, other)
                };
                match ranks[rank][at].does {
                    Does::Receive(sender, tag) if of as usize == sender => {
                        assert!(matches!(ranks[sender][node].does, Does::Send(_, other) if other == tag), "{step:?}");
                        crossed += 1;
                    }
                    _ => assert!(ranks[rank][at].waits.iter().any(waits), "seed {seed}: {step:?}"),
                }
            }
            before = Some((step.rank, at));
        }
        assert_eq!((now, end(&document)), (longest, longest), "seed {seed}");
    }
    assert!(crossed > 12, "{crossed}: paths go from rank to rank");
}
