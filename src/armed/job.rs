//! One reduction job, as its root, leaves and software share it: keys, rounds, data, timing.
//!
//! A job runs over one tree (or two disjoint ones) in rounds. With several reduction ids it has as many *flows* under way:
//! flow f does the data rounds f, f + flows, f + 2 flows, … with sequence numbers of its own. Every flow opens with a barrier
//! (description (39)) unless [`Job::opening`] is off.
//!
//! A node with several contributions reduces them one after another in a unit like an engine's, each pair in as many cycles
//! as that has stages *chosen*, before it contributes.
//!
//! A job whose tree is made at run time ([`RunTime`]) begins without an address: its root gets it from the agent, its
//! leaves from the first arm frame with the root's address and the job's keys *chosen*.
//!
//! Rank 0 is the root, ranks 1 to [`Job::leaves`] are the leaves in their order.

use super::admission::{Keys, Owner};
use super::composed::Composition;
use std::sync::Arc;
use watershed_arith::quad::Opcode;
use watershed_arith::{Mode, Quad};
use watershed_kernel::{Cycle, Rng};

/// How long participants compute before they contribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compute {
    /// Always as long.
    Fixed(u64),
    /// Evenly from a least to a largest number of cycles; every participant and round draws once.
    Random {
        /// The least.
        least: u64,
        /// The largest.
        most: u64,
        /// Seed of the stream.
        seed: u64,
    },
    /// A measured list: a row a rank, used in turn round by round.
    List(Arc<[Vec<u64>]>),
    /// Until someone at the end point calls the round: a rank of an application.
    Called,
}

/// One participant that takes longer in one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateParticipant {
    /// Its rank.
    pub rank: u32,
    /// The data round; `None` is every one.
    pub round: Option<u32>,
    /// Cycles on top.
    pub cycles: u64,
}

/// What participants contribute: `per_node` quads a rank and round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inputs {
    quads: Arc<[Quad]>,
    ranks: u32,
    per_node: u32,
    rounds: u32,
}

impl Inputs {
    /// The contributions, rounds slowest, then ranks, then those of one node. A job with more rounds than are given starts
    /// again with the first.
    ///
    /// # Panics
    /// If the number of quads is not a multiple of a round's.
    pub fn new(quads: Arc<[Quad]>, ranks: u32, per_node: u32) -> Inputs {
        let a_round = ranks as usize * per_node as usize;
        assert!(a_round > 0 && quads.len().is_multiple_of(a_round), "whole rounds of contributions");
        let rounds = (quads.len() / a_round) as u32;
        Inputs { quads, ranks, per_node, rounds }
    }

    /// What one node contributes in one round, before it reduces it locally.
    pub fn of(&self, rank: u32, round: u32) -> &[Quad] {
        if self.rounds == 0 {
            return &[];
        }
        let row = (round % self.rounds) as usize * self.ranks as usize + rank as usize;
        &self.quads[row * self.per_node as usize..(row + 1) * self.per_node as usize]
    }
}

/// Time that software takes, in cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overheads {
    /// From deciding to send a frame to its head being at the link.
    pub send: u64,
    /// From the tail of a frame at the link to software acting on it.
    pub receive: u64,
    /// To merge one partial result at the root, or one message of a software reduction.
    pub merge: u64,
}

/// How long members wait for each other, and how often they try again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// Cycles after arming after which the root asks again; 0 never.
    pub retry_after: u64,
    /// How often it asks again before it gives a round up.
    pub max_retries: u32,
    /// Cycles a leaf waits for a result before it gives up; 0 never.
    pub patience: u64,
}

/// How a job comes by its tree at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunTime {
    /// End point of the management agent.
    pub agent: u32,
    /// Cycles after which the root asks again.
    pub answer_timeout: u64,
    /// How often it asks before it does without.
    pub requests: u32,
    /// Trees it may be granted: 1, or 2 disjoint ones.
    pub most_trees: u8,
    /// The job whose tree is changed into this one's, once it is over.
    pub changes: Option<u16>,
    /// Whether the tree is deleted when all rounds are done.
    pub delete: bool,
    /// Cycles after the start that a leaf waits for the first arm frame; 0 for ever.
    pub first_patience: u64,
}

/// A job; see the module's text.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its number in the system.
    pub number: u16,
    /// Multicast ids of its trees: one, or two disjoint ones; none if it reduces in software, or if they are made at run time.
    pub trees: Vec<u16>,
    /// How it comes by its tree, if it is made at run time.
    pub run_time: Option<RunTime>,
    /// Whether each flow closes with a barrier, by which the root learns that all leaves have the last result: the tree
    /// is deleted or changed then *chosen*.
    pub closing: bool,
    /// Reduction ids in use: 1 to 8.
    pub flows: u8,
    /// Data rounds of all flows together, as they are on the wire.
    pub rounds: u32,
    /// How its operation is composed of such rounds.
    pub composed: Composition,
    /// Whether each flow opens with a barrier.
    pub opening: bool,
    /// Opcode.
    pub op: &'static Opcode,
    /// Protection key and cookie.
    pub keys: Keys,
    /// End points by rank, the root's first.
    pub members: Arc<[u32]>,
    /// Sequence number of the first arm frame.
    pub first_seqno: u16,
    /// Cycle in which the root starts.
    pub start: Cycle,
    /// How long and how often its members try.
    pub timeouts: Timeouts,
    /// Contributions.
    pub inputs: Inputs,
    /// Compute times.
    pub compute: Compute,
    /// Cycles that reducing its own contributions takes a node, before it has the one that it sends.
    pub local_cycles: u64,
    /// Exceptions to them.
    pub late: Vec<LateParticipant>,
    /// NaN and signalling-NaN policy of merges in software: that of the engines.
    pub mode: Mode,
    /// Time that software takes.
    pub overheads: Overheads,
}

/// A round of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Round {
    /// The data round; `None` is a barrier.
    pub data: Option<u32>,
    /// Of barriers: the closing one, not the opening one.
    pub closing: bool,
}

impl Round {
    /// The opening barrier.
    pub const OPENING: Round = Round { data: None, closing: false };

    /// A data round.
    pub fn data(number: u32) -> Round {
        Round { data: Some(number), closing: false }
    }
}

impl Job {
    /// A job of one round over one tree, with one contribution a member and nothing that takes time: what differs is set by who
    /// needs it.
    pub fn of(op: &'static Opcode, tree: u16, members: Arc<[u32]>, keys: Keys, quads: Arc<[Quad]>) -> Job {
        Job {
            number: 0,
            trees: vec![tree],
            run_time: None,
            closing: false,
            flows: 1,
            rounds: 1,
            composed: Composition::Plain,
            opening: false,
            op,
            keys,
            inputs: Inputs::new(quads, members.len() as u32, 1),
            members,
            first_seqno: 0,
            start: 0,
            timeouts: Timeouts::default(),
            compute: Compute::Fixed(0),
            local_cycles: 0,
            late: Vec::new(),
            mode: Mode::default(),
            overheads: Overheads::default(),
        }
    }

    /// Participants without the root.
    pub fn leaves(&self) -> u32 {
        self.members.len() as u32 - 1
    }

    /// Whose trees its are.
    pub fn owner(&self) -> Owner {
        Owner { root: self.members[0], keys: self.keys }
    }

    /// The round that is a flow's step; `None` beyond its last.
    pub fn round(&self, flow: u8, step: u32) -> Option<Round> {
        let Some(step) = step.checked_sub(u32::from(self.opening)) else { return Some(Round::OPENING) };
        // Rounds that belong together follow each other in one flow.
        let each = self.composed.rounds_each();
        let whole = |step: u32| u64::from(flow) + u64::from(step / each) * u64::from(self.flows);
        let round = |step: u32| whole(step) * u64::from(each) + u64::from(step % each);
        let (rounds, at) = (u64::from(self.rounds), round(step));
        if at < rounds {
            return Some(Round::data(at as u32));
        }
        let first_beyond = step.checked_sub(1).is_none_or(|before| round(before) < rounds);
        (self.closing && first_beyond).then_some(Round { data: None, closing: true })
    }

    /// Whether it has no tree and will have none: it reduces in software.
    pub fn is_software(&self) -> bool {
        self.trees.is_empty() && self.run_time.is_none()
    }

    /// Trees that it has at most.
    pub fn most_trees(&self) -> usize {
        self.run_time.map_or(self.trees.len(), |run_time| usize::from(run_time.most_trees))
    }

    /// The operation of a round: the opening is a barrier.
    pub fn opcode(&self, round: Round) -> &'static Opcode {
        match round.data {
            Some(data) => self.composed.opcode(data, self.op),
            None => Opcode::from_number(0).expect("0 is the barrier"),
        }
    }

    /// The cycle in which the contribution to a round that begins now is ready; [`Cycle::MAX`] if nobody has called it. `called`: rounds that
    /// were called, where they are.
    pub fn ready(&self, rank: u32, round: Round, now: Cycle, called: u32) -> Cycle {
        match (&self.compute, round.data) {
            (Compute::Called, Some(data)) if data >= called => Cycle::MAX,
            _ => now + self.compute_cycles(rank, round),
        }
    }

    /// How long a participant computes before it contributes to a round, and reduces what it has computed. To the opening
    /// barrier it comes at once.
    pub fn compute_cycles(&self, rank: u32, round: Round) -> u64 {
        let Some(data) = round.data else { return 0 };
        // Its data are there since the round that prepared this one.
        if data.checked_sub(1).is_some_and(|before| self.composed.prepares(before)) {
            return self.local_cycles;
        }
        let round = data / self.composed.rounds_each();
        let usual = match &self.compute {
            Compute::Fixed(cycles) => *cycles,
            Compute::Called => 0,
            Compute::Random { least, most, seed } => {
                let stream = u64::from(self.number) << 52 | u64::from(rank) << 32 | u64::from(round);
                least + Rng::new(*seed, stream).below(most - least + 1)
            }
            Compute::List(rows) => match &rows[rank as usize % rows.len()][..] {
                [] => 0,
                row => row[round as usize % row.len()],
            },
        };
        let late = self.late.iter().filter(|late| late.rank == rank && late.round.is_none_or(|r| r == round));
        // Sums of times that no run reaches stay below what may be added to the present cycle.
        late.fold(usual + self.local_cycles, |sum, late| sum.saturating_add(late.cycles)).min(1 << 58)
    }

    /// What a node contributes to a round: its contributions, reduced locally in their order (requirement R-EP-2). `before` is the
    /// result of the data round before.
    pub fn contribution(&self, rank: u32, round: Round, before: Option<Quad>) -> Quad {
        let Some(data) = round.data else { return Quad::default() };
        let unit = self.op.unit(self.mode);
        let operands = self.inputs.of(rank, data / self.composed.rounds_each());
        self.composed.contribution(data, operands, before, self.contributions(), |sum, quad| unit.evaluate(sum, quad))
    }

    /// What an end point has when it has the result of a round.
    pub fn value(&self, round: Round, result: Quad, before: Option<Quad>) -> Quad {
        match round.data {
            Some(data) => {
                let mode = Mode { round: self.op.round, flush_to_zero: self.op.flush_to_zero, ..self.mode };
                self.composed.value(data, result, before, self.contributions(), mode)
            }
            None => result,
        }
    }

    /// Contributions of all nodes to a round.
    pub fn contributions(&self) -> u64 {
        self.members.len() as u64 * u64::from(self.inputs.per_node)
    }
}
