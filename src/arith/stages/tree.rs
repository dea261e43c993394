//! A reduction tree of [`UnitStages`], level by level.

use std::sync::Arc;

use super::super::tree::{TreeCfg, TreeIn, TreeOut};
use super::super::types::{DType, Flags, Mode, Op};
use super::super::unit::Unit;
use watershed_state::state;

use super::{Layout, UnitInput, UnitOutput, UnitStages};

/// The registers that go with a reduction from stage to stage of a level, whatever its units do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Control {
    /// A reduction is in this stage.
    pub valid: bool,
    /// Its operation.
    pub op: Op,
    /// Type of its lanes.
    pub dtype: DType,
    /// Rounding, flushing, NaN policies.
    pub mode: Mode,
    /// What names it.
    pub tag: u64,
    /// Flags that came with its operands, and those of all units of the levels below.
    pub flags: Flags,
}

impl Control {
    fn reset() -> Control {
        let (op, dtype) = (Op::ALL[0], DType::ALL[0]);
        Control { valid: false, op, dtype, mode: Mode::default(), tag: 0, flags: Flags::NONE }
    }

    /// The edge: as of a [`Stage`](super::Stage).
    fn load(&mut self, input: Option<Control>) -> Option<Control> {
        let held = self.valid.then_some(*self);
        match input {
            Some(input) => *self = input,
            None => self.valid = false,
        }
        held
    }
}

/// The registers of a level.
#[derive(Clone, Debug)]
struct Level {
    control: Vec<Control>,
    /// One for two nodes below; the last of an odd number has a lone operand for ever.
    units: Vec<UnitStages<Unit>>,
}

state!(Level { saved: control; each: units });

/// A reduction tree, register by register: see the page of [`stages`](super) for its units and
/// [`tree`](super::super::tree) for its shape.
#[derive(Clone, Debug)]
pub struct TreeStages {
    cfg: TreeCfg,
    levels: Vec<Level>,
    /// What it took at the last edge at which it took something, and whether that was the last one.
    operands: TreeIn,
    took: bool,
    moved: bool,
}

state!(TreeStages { saved: operands, took, moved; each: levels; built: cfg });

impl TreeStages {
    /// A tree after reset, with the registers of these datapaths.
    ///
    /// # Panics
    ///
    /// If a parameter is outside its range; ask [`TreeCfg::check`] first.
    pub fn new(cfg: TreeCfg, in_use: &[Unit]) -> TreeStages {
        let layout = Arc::new(Layout::of(cfg.unit_stages, in_use));
        let level = |level| Level {
            control: vec![Control::reset(); usize::from(cfg.unit_stages)],
            units: (0..cfg.nodes(level)).map(|_| UnitStages::new(cfg.unit_stages, &layout)).collect(),
        };
        TreeStages {
            cfg,
            levels: (0..cfg.levels()).map(level).collect(),
            operands: TreeIn::of(Op::Sum, DType::I32, &[]),
            took: false,
            moved: true,
        }
    }

    /// The parameters.
    pub const fn cfg(&self) -> TreeCfg {
        self.cfg
    }

    /// Whether nothing is in it, and nothing was taken at the last edge.
    pub fn is_empty(&self) -> bool {
        !self.took && self.levels.iter().all(|level| level.control.iter().all(|stage| !stage.valid))
    }

    /// One clock: operands in, the result that the last register held out. A tree of radix 1 has no register and gives nothing.
    pub fn clock(&mut self, input: Option<&TreeIn>) -> Option<TreeOut> {
        self.moved = input.is_some() || !self.is_empty();
        if !self.moved {
            return None;
        }
        self.took = input.is_some();
        let mut words: Vec<Option<u64>> = Vec::new();
        let mut control = input.map(|input| {
            self.operands.clone_from(input);
            let TreeIn { op, dtype, mode, tag, flags, .. } = *input;
            // A barrier has no data.
            let data = Unit::of(op, dtype, mode).is_some();
            words.extend((0..self.cfg.radix).map(|port| input.operands.get(port).filter(|_| data)));
            Control { valid: true, op, dtype, mode, tag, flags }
        });
        for Level { control: stages, units } in &mut self.levels {
            let exits: Vec<Option<UnitOutput<u64>>> = units
                .iter_mut()
                .enumerate()
                .map(|(node, unit)| {
                    let word = |at: usize| words.get(at).copied().flatten();
                    unit.clock(control.and_then(|control| entry(control, word(2 * node), word(2 * node + 1))))
                })
                .collect();
            control = stages.iter_mut().fold(control, |control, stage| stage.load(control));
            if let Some(control) = &mut control {
                control.flags = exits.iter().flatten().fold(control.flags, |flags, exit| flags | exit.flags);
            }
            words = exits.iter().map(|exit| exit.map(|exit| exit.word)).collect();
        }
        if self.levels.is_empty() {
            return None;
        }
        let value = words.first().copied().flatten().unwrap_or(0);
        control.map(|Control { tag, flags, .. }| TreeOut { value, flags, tag })
    }

    /// Whether a register may have changed at the last edge.
    pub fn moved(&self) -> bool {
        self.moved
    }

    /// The operands that it took last, and whether that was at the last edge.
    pub fn operands(&self) -> (&TreeIn, bool) {
        (&self.operands, self.took)
    }

    /// Control registers and units of each level, from the ports on.
    pub fn levels(&self) -> impl Iterator<Item = (&[Control], &[UnitStages<Unit>])> {
        self.levels.iter().map(|level| (level.control.as_slice(), level.units.as_slice()))
    }
}

/// What enters a node whose two inputs have these words.
fn entry(control: Control, a: Option<u64>, b: Option<u64>) -> Option<UnitInput<Unit>> {
    let Control { op, dtype, mode, tag, .. } = control;
    match (a, b) {
        (None, None) => None,
        (Some(a), Some(b)) => Some(UnitInput::pair(op, dtype, tag, Unit::of(op, dtype, mode)?, a, b)),
        (Some(lone), None) | (None, Some(lone)) => Some(UnitInput::lone(op, dtype, tag, lone)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tree::Tree;
    use super::super::all_units;
    use super::*;

    /// Results of mixed operations with gaps leave as they leave [`Tree`].
    #[test]
    fn results_leave_as_they_leave_the_tree() {
        for radix in [1, 2, 3, 5, 10] {
            for unit_stages in 1..=6 {
                let cfg = TreeCfg { radix, unit_stages };
                let (mut tree, mut stages) = (Tree::new(cfg), TreeStages::new(cfg, &all_units()));
                for cycle in 0..300u64 {
                    let random = cycle.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    let (op, dtype) =
                        (Op::COMMON[(random >> 60) as usize % 11], DType::ALL[(random >> 50) as usize % 11]);
                    let words: Vec<u64> = (0..radix).map(|port| random.rotate_left(u32::from(port) * 7)).collect();
                    let mut input = TreeIn::of(op, dtype, &words);
                    input.tag = cycle;
                    if random >> 40 & 1 == 1 {
                        input.operands =
                            words.iter().enumerate().skip(1).map(|(port, &word)| (port as u8, word)).collect();
                    }
                    let input = (random >> 30 & 3 != 0).then_some(input);
                    let left = stages.clock(input.as_ref());
                    let expected = tree.tick(input);
                    if radix > 1 {
                        assert_eq!(left, expected, "radix {radix}, {unit_stages} stages, cycle {cycle}");
                    }
                }
            }
        }
    }
}
