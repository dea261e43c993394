//! What the ranks of a random workload do: computing, messages and collectives, one after the other.
//!
//! A rank goes through the steps in which it takes part in their order, so that every order of all ranks is the same and no
//! rank waits for ever. Traces are written as Chakra's files and read again, as those of a user are.

use watershed_scenario_interface::result::Document;
use watershed_workload::{Collective, CollectiveOp, Compute, Dependency, Format, Group, Kind, Node, Rank, Trace};

/// What a step can be, the simplest first.
const KINDS: [StepAction; 11] = [
    StepAction::Compute,
    StepAction::Message,
    StepAction::Collective(CollectiveOp::Barrier),
    StepAction::Collective(CollectiveOp::AllReduce),
    StepAction::Collective(CollectiveOp::Reduce),
    StepAction::Collective(CollectiveOp::Broadcast),
    StepAction::Collective(CollectiveOp::AllGather),
    StepAction::Collective(CollectiveOp::ReduceScatter),
    StepAction::Collective(CollectiveOp::AllToAll),
    StepAction::Collective(CollectiveOp::Gather),
    StepAction::Collective(CollectiveOp::Scatter),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepAction {
    /// A rank computes.
    Compute,
    /// A rank sends to another one.
    Message,
    /// All ranks, or half of them, do something together.
    Collective(CollectiveOp),
}

/// Bytes of a message, or that a member has in a collective, the simplest first.
const BYTES: [u64; 8] = [8, 16, 24, 64, 200, 1024, 2048, 8];

/// Ps in a us, of which Chakra's traces have whole ones.
const US: u64 = 1_000_000;

/// The name of the group of every second rank.
const HALF: &str = "half";

/// A step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    kind: usize,
    /// The rank that computes or sends, or the root.
    from: u32,
    /// How far the receiver is from it.
    to: u32,
    /// Number of a size; of computing one less than the us.
    size: usize,
    /// Every second rank only.
    half: bool,
}

impl Step {
    pub(super) fn drawn(below: &mut impl FnMut(usize) -> usize) -> Self {
        let kind = below(KINDS.len());
        let (from, to) = (below(16) as u32, below(16) as u32);
        Self { kind, from, to, size: below(BYTES.len()), half: below(4) == 0 }
    }

    /// The same with less.
    pub(super) fn simpler(&self) -> Vec<Self> {
        let mut out: Vec<Self> = (0..self.kind).map(|kind| Self { kind, ..*self }).collect();
        out.extend((0..self.size).map(|size| Self { size, ..*self }));
        out.extend((0..self.from).map(|from| Self { from, ..*self }));
        out.extend((0..self.to).map(|to| Self { to, ..*self }));
        if self.half {
            out.push(Self { half: false, ..*self });
        }
        out
    }

    /// How much it is.
    pub(super) fn size(&self) -> usize {
        self.kind + self.size + self.from as usize + self.to as usize + usize::from(self.half)
    }

    fn sender(&self, ranks: u32) -> u32 {
        self.from % ranks
    }

    fn receiver(&self, ranks: u32) -> u32 {
        (self.sender(ranks) + 1 + self.to % (ranks - 1)) % ranks
    }

    fn us(&self) -> u64 {
        1 + self.size as u64
    }

    /// Whether only every second rank takes part: of two or three that would be one, or two that are not told from all.
    fn is_half(&self, ranks: u32) -> bool {
        self.half && ranks >= 4
    }

    /// What a rank does in it.
    fn node(&self, rank: u32, ranks: u32, number: u32) -> Option<Kind> {
        let (sender, receiver, bytes) = (self.sender(ranks), self.receiver(ranks), BYTES[self.size]);
        match KINDS[self.kind] {
            StepAction::Compute => {
                let compute = Compute { ps: self.us() * US, ..Compute::default() };
                (rank == sender).then_some(Kind::Compute(compute))
            }
            StepAction::Message if rank == sender => Some(Kind::Send { to: receiver, tag: number, bytes }),
            StepAction::Message if rank == receiver => Some(Kind::Receive { from: sender, tag: number, bytes }),
            StepAction::Message => None,
            StepAction::Collective(what) => {
                let half = self.is_half(ranks);
                let members = if half { ranks.div_ceil(2) } else { ranks };
                let shared = [
                    CollectiveOp::AllGather,
                    CollectiveOp::ReduceScatter,
                    CollectiveOp::AllToAll,
                    CollectiveOp::Gather,
                    CollectiveOp::Scatter,
                ];
                let bytes = match what {
                    CollectiveOp::Barrier => 0,
                    what if shared.contains(&what) => bytes * u64::from(members),
                    _ => bytes,
                };
                let root = match what {
                    CollectiveOp::Reduce | CollectiveOp::Broadcast | CollectiveOp::Gather | CollectiveOp::Scatter => {
                        self.from % members
                    }
                    _ => 0,
                };
                let takes_part = !half || rank.is_multiple_of(2);
                takes_part.then_some(Kind::Collective(Collective { op: what, group: u32::from(half), bytes, root }))
            }
        }
    }
}

fn every_second_rank(ranks: u32) -> Vec<u32> {
    (0..ranks).step_by(2).collect()
}

/// The trace of this many ranks.
pub(super) fn trace(steps: &[Step], ranks: u32) -> Trace {
    let rank = |rank: u32| {
        let mut nodes: Vec<Node> = Vec::new();
        for (step, number) in steps.iter().zip(0..) {
            let Some(kind) = step.node(rank, ranks, number) else { continue };
            let id = nodes.len() as u32;
            let waits: Vec<Dependency> =
                id.checked_sub(1).map(|node| Dependency { node, start: false }).into_iter().collect();
            let name = format!("step {number}").into();
            nodes.push(Node { id: id.into(), name, kind, stream: None, waits: waits.into() });
        }
        Rank { file: "fuzz".into(), nodes }
    };
    let groups = vec![
        Group { name: String::new(), ranks: (0..ranks).collect() },
        Group { name: HALF.into(), ranks: every_second_rank(ranks) },
    ];
    Trace { format: Format::Chakra, ranks: (0..ranks).map(rank).collect(), groups, hash: 0 }
}

/// The keys of `[workload]` beside those that are drawn.
pub(super) fn keys(trace: &str, members: u32, ends: u32) -> String {
    let list = |ranks: Vec<u32>| ranks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let part = format!("participants = [{}]\n", list((0..members).collect()));
    let part = if members < ends { &*part } else { "" };
    format!("trace = \"{trace}\"\n{part}groups.{HALF} = [{}]\n", list(every_second_rank(members)))
}

/// Compares what ranks did with what the steps say: their nodes, the cycles in which they computed, and the collectives.
pub(super) fn check(steps: &[Step], ranks: u32, document: &Document) -> Result<(), String> {
    let Some(result) = &document.workload else { return Err("there is no result of a workload".to_owned()) };
    let same = |what: String, found: u64, expected: u64| {
        if found == expected { Ok(()) } else { Err(format!("{what}: {found}, and the trace says {expected}")) }
    };
    same("ranks".to_owned(), result.ranks.len() as u64, ranks.into())?;
    for (rank, of) in (0..ranks).zip(&result.ranks) {
        let mine = || steps.iter().zip(0..).filter(|(step, number)| step.node(rank, ranks, *number).is_some());
        same(format!("nodes of rank {rank}"), of.nodes, mine().count() as u64)?;
        // A us is 1000 cycles, of which a twentieth is computed.
        let computes = mine().filter(|(step, _)| KINDS[step.kind] == StepAction::Compute);
        let cycles: u64 = computes.map(|(step, _)| step.us() * 1000 / 20).sum();
        same(format!("cycles that rank {rank} computed"), of.compute_cycles, cycles)?;
        let last = of.end_cycle.ok_or_else(|| format!("rank {rank} did not end"))?;
        if last < cycles {
            return Err(format!("rank {rank} ended in cycle {last} and computed for {cycles} cycles"));
        }
    }
    let together = steps.iter().filter(|step| matches!(KINDS[step.kind], StepAction::Collective(_)));
    same("collectives".to_owned(), result.collectives.len() as u64, together.clone().count() as u64)?;
    let members: u64 =
        together.map(|step| u64::from(if step.is_half(ranks) { ranks.div_ceil(2) } else { ranks })).sum();
    same("members of collectives".to_owned(), result.collectives.iter().map(|of| of.members).sum(), members)
}
