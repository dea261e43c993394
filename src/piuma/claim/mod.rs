//! Claims: temporal disjointness of embeddings that overlap (requirements P-SW-7, H-CLAIM-1).
//!
//! ```text
//!            cores                 switches of a tree                root               set
//!   call ──▶ ready ─────▶ ┌──────────────────┐ ready  ┌──────┐ ask   ┌─────────┐
//!                    2 ──▶│ all inputs ready?│───────▶│ join │──────▶│ arbiter │  oldest first
//!   start ◀── grant ◀─────│ held             │◀───────│ held │◀──────│ held    │  conflicts[n][n]
//!   ended ──▶ done ──────▶└──────────────────┘ done   └──────┘ free  └─────────┘
//! ```
//!
//! Trees of different ids that share a link or an engine on the same plane of channels form a *conflict set*, which
//! [`Wiring::derive`] reads from the registers. Trees that pass a switch by different ports and reduce elsewhere share
//! nothing there. A tree that overlaps no other has no registers here, claims nothing and
//! loses no cycle.
//!
//! Claims have wires of their own beside those of credits, so that they neither wait for flits nor delay any: of each tree
//! in a set, three on each link that it uses. A signal is a pulse of one cycle.
//!
//! | wire | direction | pulse of a collective | pulse of a multicast |
//! |---|---|---|---|
//! | first | to the root | `ready`: the core has called, its memory waits | `credit`: a receiver's slot is free again |
//! | second | to the root | `done`: the last word has landed | `done`: the message is in the receiver's queue |
//! | third | from the root | `grant` | none: the source holds the grant |
//!
//! | register | bits | where | what |
//! |---|---|---|---|
//! | `counts` | 2 an input (a multicast's first wire: ceil(log2(queue depth + 1))) and wire | a switch of the tree | pulses that arrived and wait for the other inputs |
//! | `held` | 1 | a switch of the tree | the tree has been granted and is not done |
//! | `waiting`, `held` | 2 n + n (n - 1) / 2 for the order of age | the set's arbiter | which of its n trees ask, and which hold |
//! | `conflicts` | n (n - 1) / 2 | the set's arbiter | which trees share something |
//!
//! # Protocol
//!
//! | round | collective | multicast |
//! |---|---|---|
//! | 1 | every participant that has called sends `ready`; a switch passes it on when all inputs of the tree have sent theirs | the source has a message and a credit; nothing is sent |
//! | 2 | the root asks the set's arbiter | the source asks it |
//! | 3 | the arbiter grants the oldest that conflicts neither with one that holds nor with an older one that waits | the same |
//! | 4 | `grant` goes down the tree; each participant starts when it comes | the source sends as many messages as it had, with a credit for each, when the grant came |
//! | 5 | every participant sends `done` after its last word; the root frees the arbiter | every receiver sends `done` for each message in its queue; the source frees the arbiter |
//!
//! A claim is one `ready`, one `grant` and one `done` on each link of the tree, and a request, a grant and a release between
//! its root and the arbiter.
//!
//! # Timing
//!
//! A pulse that leaves in cycle t over a link of latency L is in the far switch at t + L + 1 and is passed on in that
//! cycle. The arbiter decides in the cycle of a request or release, and its grant leaves in the next. With `climb(p)`
//! the sum of L + 1 over the links from participant p to the root, and `reach` that from the root to the switch of the
//! arbiter (0 if it is the root), participant q of an idle set starts
//!
//! ```text
//!   price(q) = max over p (called(p) + climb(p)) - called(q)  +  2 reach + 1  +  climb(q)
//! ```
//!
//! cycles after its call. The arbiter is at the root of the tree with the lowest id of its set *chosen*.
//!
//! # Why no claim waits for ever
//!
//! 1. A waiting tree holds nothing: `ready` and `credit` are in counters of their own, not in queues, and no flit of a
//!    tree enters the network before its grant.
//! 2. A tree that holds needs no further program action: all participants of a collective have called, so that their
//!    memories take every word; every message of a multicast has a slot. No flit of a tree that it conflicts with
//!    is on its links or in its engines. So a tree that holds is done after a time that depends only on its length and the memories.
//! 3. The oldest waiting tree conflicts only with trees that hold, so it is granted when they are done; the arbiter is
//!    never idle while a tree asks. Hence every claim that all its participants have called ends. A call that others do
//!    not answer waits, but holds nothing and delays nobody.
//!
//! Programs whose blocking calls fit one order over all ranks therefore end, and so do non-blocking calls as long as
//! `core.outstanding_calls` does not stop the thread that would make the next one.
//!
//! Credits of a multicast: a queue's slots are divided evenly, rounded down, among the trees of its id that lead to it, and the
//! core itself if it sends by that id. A source begins with the least share of its receivers; a message takes one credit, and
//! one comes back when all receivers have taken a message. *Chosen*: a grant is for the messages that stand in the queue when
//! it comes, so a multicast delays others by at most the messages of a queue. Trees of one id do not conflict.
//!
//! # Trees that programs write
//!
//! A tree that a program may lead across another one is not alone. *Chosen*: where the text of programs may write the tree of an id,
//! all trees on its plane claim, if there are two ids or more. Those that meet no other tree have an arbiter of their own. So a
//! collective that only some cores have called holds nothing, whatever is written meanwhile. The first use of a written tree moves
//! the sets:
//!
//! | round | what | cycles |
//! |---|---|---|
//! | 1 | the user tells the root of the new tree, which tells the set's new arbiter | its climb + `reach` |
//! | 2 | the new arbiter asks every tree of the sets that change to close its old arbiter: it grants nobody, and goes on collecting requests and releases | `reach` to the root + `reach` from there to the old one |
//! | 3 | the old arbiters send who asks, in their order, and who holds; requests and releases under way follow | the same way back |
//! | 4 | the new arbiters have all that and grant | |
//!
//! `way(t)` is the sum of both reaches of tree t. The arbiters of the sets that change grant nobody for at most `2 max way(t)` cycles.
//! Calls of the written id wait `climb + reach + 2 max way(t)`, and until `done` of its last call has come to its arbiter. Sets
//! that do not change go on. A source of a multicast that was written counts its credits anew: its share, less the messages in the
//! queue of the receiver that has most; the others give the difference.
//!
//! This ends: a written tree is idle, so rounds 1 to 3 wait for wires, and never for a program or a memory. Round 4 grants a call
//! that asks and that no holder keeps out, if there is one, and calls that asked before keep their turn. So points 1 to 3 above hold.
//!
//! ```
//! use watershed_piuma::claim::Arbiter;
//!
//! // Tree 1 meets trees 0 and 2; these two do not meet each other.
//! let mut arbiter = Arbiter::new(vec![(0, vec![1]), (1, vec![0, 2]), (2, vec![1])]);
//! arbiter.ask(0);
//! assert_eq!(arbiter.grant(), [0]); // cycle 0
//! arbiter.ask(1);
//! arbiter.ask(2);
//! assert!(arbiter.grant().is_empty()); // cycle 1: 1 meets 0, which holds; 2 meets 1, which is older
//! arbiter.free(0);
//! assert_eq!(arbiter.grant(), [1]); // cycle 2
//! arbiter.free(1);
//! assert_eq!(arbiter.grant(), [2]); // cycle 3
//! ```

mod queue;
mod rewrite;
mod wiring;

pub use queue::{Event, EventKind, Holder, QueueClaim};
pub use rewrite::Rewrite;
pub use wiring::{Claimant, JoinAt, Leaf, Links, Tree, Wiring};

use watershed_kernel::Cycle;
use watershed_probe::Scope;

/// A wire towards the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, watershed_state::Saved)]
pub enum Wire {
    /// `ready` of a collective, `credit` of a multicast.
    First,
    /// `done`.
    Done,
}

/// A pulse that comes to a register. In the order in which those of one cycle are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, watershed_state::Saved)]
pub enum Signal {
    /// To an input of a switch's join.
    Up {
        /// The tree.
        tree: u16,
        /// The join's number in it.
        join: u32,
        /// Its input.
        input: u16,
        /// The wire.
        wire: Wire,
    },
    /// The set's arbiter is freed.
    Free(u16),
    /// The set's arbiter is asked.
    Ask(u16),
    /// A grant comes to a switch's join.
    Down {
        /// The tree.
        tree: u16,
        /// The join's number in it.
        join: u32,
    },
    /// A grant comes to a participant, or to a multicast's source.
    Start {
        /// The tree.
        tree: u16,
        /// The participant's number in it.
        leaf: u32,
    },
    /// What all receivers sent comes to a multicast's source.
    Source {
        /// The tree.
        tree: u16,
        /// The wire.
        wire: Wire,
    },
    /// A set's arbiter is to grant nobody until its trees are handed over.
    Close(u16),
    /// A set's arbiter has got its trees from those before it.
    Open(u16),
}

/// The registers of a join: where a tree passes a switch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, watershed_state::Saved)]
pub struct Join {
    /// The tree.
    pub tree: u16,
    /// The join's number in it.
    pub join: u32,
    /// Its id.
    pub id: u16,
    /// Pulses by input, of both wires.
    counts: [Vec<u16>; 2],
    held: bool,
}

impl Join {
    /// A pulse at an input; whether all inputs had one: then one of each is passed on.
    fn pulse(&mut self, input: u16, wire: Wire) -> bool {
        let counts = &mut self.counts[wire as usize];
        counts[usize::from(input)] += 1;
        let all = counts.iter().all(|&count| count > 0);
        if all {
            for count in counts.iter_mut() {
                *count -= 1;
            }
        }
        all
    }

    /// Whether nothing is in it.
    pub fn is_idle(&self) -> bool {
        !self.held && self.counts.iter().flatten().all(|&count| count == 0)
    }

    /// Inputs at which a pulse of a wire waits for others, a bit each.
    pub fn waiting(&self, wire: Wire) -> u64 {
        let counts = self.counts[wire as usize].iter().enumerate();
        counts.filter(|(_, count)| **count > 0).fold(0, |mask, (input, _)| mask | 1 << input)
    }

    /// Whether the tree has been granted and is not done.
    pub fn is_held(&self) -> bool {
        self.held
    }
}

/// The arbiter of a conflict set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, watershed_state::Saved)]
pub struct Arbiter {
    /// Trees of the set that conflict with each of them.
    conflicts: Vec<(u16, Vec<u16>)>,
    /// Trees that ask, oldest first.
    waiting: Vec<u16>,
    /// Trees that hold.
    held: Vec<u16>,
    /// It grants nobody while trees are handed over.
    closed: bool,
}

impl Arbiter {
    /// An idle arbiter for trees that conflict with those in their lists.
    pub fn new(conflicts: Vec<(u16, Vec<u16>)>) -> Arbiter {
        Arbiter { conflicts, ..Arbiter::default() }
    }

    /// Whether two trees conflict.
    pub fn conflict(&self, one: u16, other: u16) -> bool {
        let found = self.conflicts.iter().find(|(tree, _)| *tree == one);
        found.is_some_and(|(_, others)| others.contains(&other))
    }

    /// A tree asks.
    pub fn ask(&mut self, tree: u16) {
        debug_assert!(!self.waiting.contains(&tree) && !self.held.contains(&tree), "a tree asks once at a time");
        self.waiting.push(tree);
    }

    /// A tree is done.
    pub fn free(&mut self, tree: u16) {
        debug_assert!(self.held.contains(&tree), "who frees has held");
        self.held.retain(|held| *held != tree);
    }

    /// Grants every tree that conflicts neither with one that holds nor with an older one that waits.
    pub fn grant(&mut self) -> Vec<u16> {
        let mut granted = Vec::new();
        if self.closed {
            return granted;
        }
        for at in 0..self.waiting.len() {
            let tree = self.waiting[at];
            let conflicts = |others: &[u16]| others.iter().any(|&other| self.conflict(tree, other));
            if !conflicts(&self.held) && !conflicts(&self.waiting[..at]) {
                granted.push(tree);
            }
        }
        self.waiting.retain(|tree| !granted.contains(tree));
        self.held.extend(&granted);
        granted
    }

    /// Trees that ask, oldest first.
    pub fn waiting(&self) -> &[u16] {
        &self.waiting
    }

    /// Trees that hold.
    pub fn held(&self) -> &[u16] {
        &self.held
    }
}

/// The claim registers of a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, watershed_state::Saved)]
pub struct Unit {
    /// Trees that pass it.
    pub joins: Vec<Join>,
    /// The arbiters that sit here, by set.
    pub arbiters: Vec<(u16, Arbiter)>,
    /// What waves show: joins with their inputs, and sets with their trees, as they were before the first cycle.
    shown: Vec<(u16, u32, u32)>,
    shown_sets: Vec<(u16, u32)>,
}

impl Unit {
    fn join(&mut self, tree: u16, join: u32) -> &mut Join {
        let found = self.joins.iter_mut().find(|of| (of.tree, of.join) == (tree, join));
        found.expect("every join of a tree has registers in its switch")
    }

    fn arbiter(&mut self, set: u16) -> &mut Arbiter {
        let found = self.arbiters.iter_mut().find(|(number, _)| *number == set);
        &mut found.expect("every set has an arbiter in its switch").1
    }

    /// Whether no tree that claims passes the switch.
    pub fn is_empty(&self) -> bool {
        self.joins.is_empty() && self.arbiters.is_empty() && self.shown.is_empty() && self.shown_sets.is_empty()
    }

    /// From now on waves show the registers that are there: signals must not come and go.
    pub(super) fn show(&mut self) {
        if self.shown.is_empty() && self.shown_sets.is_empty() {
            let inputs = |join: &Join| (join.tree, join.join, join.counts[0].len() as u32);
            self.shown = self.joins.iter().map(inputs).collect();
            self.shown_sets = self.arbiters.iter().map(|(set, of)| (*set, of.conflicts.len().min(64) as u32)).collect();
        }
    }

    /// Describes the registers to a wave.
    pub fn probe(&self, scope: &mut Scope<'_>) {
        scope.scope("claim", |scope| {
            for (number, &(tree, at, inputs)) in self.shown.iter().enumerate() {
                let join = self.joins.iter().find(|of| (of.tree, of.join) == (tree, at));
                scope.indexed("join", number, |scope| {
                    scope.bits("tree", 16, u64::from(tree));
                    scope.bits("id", 12, join.map_or(0, |join| u64::from(join.id)));
                    scope.bits("ready", inputs, join.map_or(0, |join| join.waiting(Wire::First)));
                    scope.bits("done", inputs, join.map_or(0, |join| join.waiting(Wire::Done)));
                    scope.bit("held", join.is_some_and(Join::is_held));
                });
            }
            for &(set, width) in &self.shown_sets {
                let arbiter = self.arbiters.iter().find(|(number, _)| *number == set).map(|(_, of)| of);
                let mask = |trees: fn(&Arbiter) -> &[u16]| {
                    let of = |arbiter: &Arbiter| {
                        let numbers = arbiter.conflicts.iter().take(width as usize).enumerate();
                        let of_it = numbers.filter(|(_, (tree, _))| trees(arbiter).contains(tree));
                        of_it.fold(0u64, |mask, (at, _)| mask | 1 << at)
                    };
                    arbiter.map_or(0, of)
                };
                scope.indexed("set", usize::from(set), |scope| {
                    scope.bits("waiting", width, mask(Arbiter::waiting));
                    scope.bits("held", width, mask(Arbiter::held));
                    let oldest = arbiter.and_then(|of| of.waiting.first());
                    scope.valid("oldest", 16, oldest.map(|&tree| u64::from(tree)));
                });
            }
        });
    }
}

/// Where the units of switches are kept.
pub trait Units {
    /// That of a switch.
    fn unit(&mut self, switch: u32) -> &mut Unit;
}

/// What an arbiter grants leaves it in the next cycle.
fn grants(wiring: &Wiring, arbiter: &mut Arbiter, out: &mut Vec<(Cycle, Signal)>) {
    for tree in arbiter.grant() {
        let of = &wiring.trees[usize::from(tree)];
        let to = match of.source {
            Some(_) => Signal::Start { tree, leaf: 0 },
            None => Signal::Down { tree, join: 0 },
        };
        out.push((of.reach + 1, to));
    }
}

/// A pulse comes to its register; those that leave because of it, and the cycles until they come to theirs. Both the system
/// that is clocked and the search over all orders of pulses go through this.
pub fn deliver(wiring: &Wiring, units: &mut impl Units, signal: Signal, out: &mut Vec<(Cycle, Signal)>) {
    match signal {
        Signal::Up { tree, join, input, wire } => {
            let of = &wiring.trees[usize::from(tree)];
            let at = &of.joins[join as usize];
            let registers = units.unit(at.switch).join(tree, join);
            if !registers.pulse(input, wire) {
                return;
            }
            if wire == Wire::Done {
                registers.held = false;
            }
            out.push(match (at.up, of.source) {
                (Some((join, input, cycles)), _) => (cycles, Signal::Up { tree, join, input, wire }),
                (None, Some(source)) => (source, Signal::Source { tree, wire }),
                (None, None) if wire == Wire::First => (of.reach, Signal::Ask(tree)),
                (None, None) => (of.reach, Signal::Free(tree)),
            });
        }
        Signal::Ask(tree) | Signal::Free(tree) => {
            let of = &wiring.trees[usize::from(tree)];
            let arbiter = units.unit(wiring.arbiters[usize::from(of.set)]).arbiter(of.set);
            match signal {
                Signal::Ask(_) => arbiter.ask(tree),
                _ => arbiter.free(tree),
            }
            grants(wiring, arbiter, out);
        }
        Signal::Close(set) => units.unit(wiring.arbiters[usize::from(set)]).arbiter(set).closed = true,
        Signal::Open(set) => {
            let arbiter = units.unit(wiring.arbiters[usize::from(set)]).arbiter(set);
            arbiter.closed = false;
            grants(wiring, arbiter, out);
        }
        Signal::Down { tree, join } => {
            let at = &wiring.trees[usize::from(tree)].joins[join as usize];
            units.unit(at.switch).join(tree, join).held = true;
            out.extend(at.joins.iter().map(|&(join, cycles)| (cycles, Signal::Down { tree, join })));
            out.extend(at.leaves.iter().map(|&(leaf, cycles)| (cycles, Signal::Start { tree, leaf })));
        }
        Signal::Start { .. } | Signal::Source { .. } => {}
    }
}
