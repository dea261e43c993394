//! Trees that programs have written: conflict sets change while others claim and hold (see the [module's text](super)).

use super::{Signal, Units, Wire, Wiring};
use std::collections::BTreeSet;
use watershed_kernel::Cycle;

/// A change of conflict sets: from the wiring before it to the one after it, in which trees have the same numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, watershed_state::Saved)]
pub struct Rewrite {
    /// The wiring afterwards.
    pub wiring: Wiring,
    /// Trees whose registers were written. They are idle, or the last `done` is on its way.
    pub trees: BTreeSet<u16>,
}

impl Rewrite {
    /// Trees of the sets that change, before and after.
    fn touched(&self, before: &Wiring) -> BTreeSet<u16> {
        let all = 0..before.trees.len() as u16;
        let members =
            |wiring: &Wiring, tree: u16| -> Vec<u16> { wiring.members(wiring.trees[usize::from(tree)].set).collect() };
        let changes = |&tree: &u16| {
            let (was, is) = (members(before, tree), members(&self.wiring, tree));
            was != is
                || was.iter().any(|&of| before.conflicts(of) != self.wiring.conflicts(of) || self.trees.contains(&of))
        };
        all.filter(changes).collect()
    }

    /// Cycles between the old arbiter of a tree and its new one, through its root.
    fn way(&self, before: &Wiring, tree: u16) -> Cycle {
        before.trees[usize::from(tree)].reach + self.wiring.trees[usize::from(tree)].reach
    }

    /// Old arbiters that are to be closed, and the cycles until each of them is: `user` is the tree and the participant that tells.
    /// A source tells for its multicast.
    pub fn close(&self, before: &Wiring, user: (u16, Option<u32>)) -> Vec<(Cycle, Signal)> {
        let (tree, leaf) = user;
        let root = match leaf {
            Some(leaf) => self.wiring.climb(tree, leaf),
            None => 0,
        };
        let told = root + self.wiring.trees[usize::from(tree)].reach + 1;
        let touched = self.touched(before);
        let sets: BTreeSet<u16> = touched.iter().map(|&tree| before.trees[usize::from(tree)].set).collect();
        let to = |set: u16| before.members(set).map(|tree| self.way(before, tree)).max().unwrap_or(0);
        sets.into_iter().map(|set| (told + to(set), Signal::Close(set))).collect()
    }

    /// Whether every tree that was written is idle in its old registers: what is under way of it is for the caller to know.
    pub fn is_due(&self, before: &Wiring, units: &mut impl Units) -> bool {
        self.trees.iter().all(|&tree| {
            let of = &before.trees[usize::from(tree)];
            let held = units.unit(before.arbiters[usize::from(of.set)]).arbiter(of.set).held.contains(&tree);
            let ends = |(number, at): (u32, &super::JoinAt)| {
                let join = units.unit(at.switch).join(tree, number);
                join.is_held() || join.waiting(Wire::Done) != 0
            };
            !held && !(0..).zip(&of.joins).any(ends)
        })
    }

    /// Moves the registers: trees that were written get idle ones, arbiters of sets that change are closed ones with who asks and who
    /// holds, in the order of the old sets. What leaves, and the cycles until it comes.
    pub fn load(&self, before: &Wiring, units: &mut impl Units) -> Vec<(Cycle, Signal)> {
        let touched = self.touched(before);
        for &tree in &self.trees {
            for at in &before.trees[usize::from(tree)].joins {
                units.unit(at.switch).joins.retain(|join| join.tree != tree);
            }
            self.wiring.join(tree, units);
        }
        let old: Vec<_> =
            (0..).zip(&before.arbiters).map(|(set, &at)| std::mem::take(units.unit(at).arbiter(set))).collect();
        for &switch in &before.arbiters {
            units.unit(switch).arbiters.clear();
        }
        let mut out = Vec::new();
        for (set, &switch) in (0..).zip(&self.wiring.arbiters) {
            let mut arbiter = self.wiring.arbiter(set);
            let is_in = |tree: &&u16| self.wiring.trees[usize::from(**tree)].set == set && !self.trees.contains(*tree);
            arbiter.waiting = old.iter().flat_map(|of| &of.waiting).filter(is_in).copied().collect();
            arbiter.held = old.iter().flat_map(|of| &of.held).filter(is_in).copied().collect();
            let ways =
                self.wiring.members(set).filter(|tree| touched.contains(tree)).map(|tree| self.way(before, tree));
            if let Some(way) = ways.max() {
                arbiter.closed = true;
                out.push((way, Signal::Open(set)));
            }
            units.unit(switch).arbiters.push((set, arbiter));
        }
        out
    }

    /// What becomes of a pulse that is under way when registers move: its delay, or `None` if it is of a tree that was written.
    pub fn forward(&self, before: &Wiring, signal: Signal) -> Option<Cycle> {
        match signal {
            Signal::Ask(tree) | Signal::Free(tree) => {
                let moves = self.touched(before).contains(&tree);
                (!self.trees.contains(&tree)).then(|| if moves { self.way(before, tree) } else { 0 })
            }
            Signal::Up { tree, .. }
            | Signal::Down { tree, .. }
            | Signal::Start { tree, .. }
            | Signal::Source { tree, .. } => (!self.trees.contains(&tree)).then_some(0),
            Signal::Close(_) | Signal::Open(_) => None,
        }
    }
}
