//! A single pipelined unit: one pair of lanes in, one lane out, every cycle.
//!
//! ```text
//!              +---------+   +---------+         +---------+
//!  input ----->| stage 1 |[r]| stage 2 |[r] ...  | stage n |[r]----> output
//!              +---------+   +---------+         +---------+
//!                    ^------------^-------------------^------ clock enable (no `tick` = all registers hold)
//! ```
//!
//! | port | type | meaning |
//! |------|------|---------|
//! | input | `Option<PipeIn>` | operands and an opaque tag; `None` is a bubble |
//! | output | `Option<PipeOut>` | result, flags and the tag, `stages` cycles later |
//!
//! | parameter | default | range | effect |
//! |-----------|---------|-------|--------|
//! | stages | - | 1 to 6 | latency in cycles; as many registers |
//!
//! Timing: what is given to [`Pipe::tick`] of cycle t is returned by that of cycle t + stages. A stalled cycle
//! ([`Pipe::stall`]) does not count: every register holds.
//!
//! Limitation: one function for the life of the pipe; [`tree`](super::tree) mixes functions.
//!
//! Requirement: A-PIPE-1 (`common.md`, section 1).

use super::types::{DType, Flags, Mode};
use super::unit::{Function, MAX_STAGES, StageRegister, Unit, cut};

/// A pair of operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PipeIn {
    /// First operand, a right-justified lane.
    pub a: u64,
    /// Second operand, a right-justified lane.
    pub b: u64,
    /// Comes out with the result.
    pub tag: u64,
}

/// A result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PipeOut {
    /// Right-justified lane.
    pub bits: u64,
    /// Flags of this operation alone.
    pub flags: Flags,
    /// The tag of the operands.
    pub tag: u64,
}

/// One field of one stage register, for waves and stage listings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal {
    /// Clock stage, counted from 1; its register lies behind it.
    pub stage: u8,
    /// Register, for example `aligned`.
    pub register: &'static str,
    /// Field, for example `exponent`.
    pub field: &'static str,
    /// Width in bits.
    pub width: u32,
    /// Contents; `None` while the register holds a bubble.
    pub value: Option<u128>,
}

/// A unit with its pipeline registers.
#[derive(Debug, Clone)]
pub struct Pipe {
    unit: Unit,
    stages: u8,
    registers: [Option<(StageRegister, u64)>; MAX_STAGES as usize],
    stalled: u64,
}

impl Pipe {
    /// An empty pipe.
    ///
    /// # Panics
    ///
    /// If `stages` is not in 1 to 6.
    pub fn new(function: Function, dtype: DType, mode: Mode, stages: u8) -> Self {
        let _ = cut(stages);
        Self { unit: Unit::new(function, dtype, mode), stages, registers: [None; MAX_STAGES as usize], stalled: 0 }
    }

    /// Latency in cycles.
    pub const fn latency_cycles(&self) -> u64 {
        self.stages as u64
    }

    /// One enabled clock cycle.
    #[inline]
    pub fn tick(&mut self, input: Option<PipeIn>) -> Option<PipeOut> {
        let ends = cut(self.stages);
        let last = self.stages as usize - 1;
        let output = self.registers[last].map(|(register, tag)| {
            let done = register.finished();
            PipeOut { bits: done.bits, flags: done.flags, tag }
        });
        // From the last register to the first, so that each reads its predecessor's value of before the edge.
        for k in (1..=last).rev() {
            let before = self.registers[k - 1];
            self.registers[k] = before.map(|(r, tag)| (self.unit.stage(ends[k] - ends[k - 1], r), tag));
        }
        self.registers[0] = input.map(|PipeIn { a, b, tag }| {
            let door = StageRegister::Operands { a, b };
            (self.unit.stage(ends[0], door), tag)
        });
        output
    }

    /// One clock cycle with the enable low: every register holds, nothing enters or leaves.
    pub fn stall(&mut self) {
        self.stalled += 1;
    }

    /// Stalled cycles so far.
    pub const fn stalled_cycles(&self) -> u64 {
        self.stalled
    }

    /// Operations in the pipe.
    pub fn in_flight(&self) -> usize {
        self.registers.iter().flatten().count()
    }

    /// True if every register holds a bubble.
    pub fn is_empty(&self) -> bool {
        self.in_flight() == 0
    }

    /// Every field of every stage register, in order; the list is the same in every cycle.
    pub fn registers(&self) -> impl Iterator<Item = Signal> {
        let mut signals = Vec::new();
        for (k, &end) in cut(self.stages).iter().enumerate() {
            let held = self.registers[k].map(|(register, _)| register);
            let shown = held.unwrap_or_else(|| self.unit.blank(end));
            self.unit.fields(&shown, &mut |field, width, value| {
                signals.push(Signal {
                    stage: k as u8 + 1,
                    register: shown.name(),
                    field,
                    width,
                    value: held.is_some().then_some(value),
                });
            });
        }
        signals.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: u64 = 0x3ff0_0000_0000_0000;
    const TWO: u64 = 0x4000_0000_0000_0000;

    #[test]
    fn a_result_leaves_after_exactly_as_many_cycles_as_stages() {
        for stages in 1..=6 {
            let mut pipe = Pipe::new(Function::Add, DType::F64, Mode::default(), stages);
            let input = PipeIn { a: ONE, b: ONE, tag: 7 };
            assert_eq!(pipe.tick(Some(input)), None);
            for _ in 1..stages {
                assert_eq!(pipe.tick(None), None);
            }
            let output = pipe.tick(None).expect("due in this cycle");
            assert_eq!((output.bits, output.tag), (TWO, 7));
            assert!(pipe.is_empty());
        }
    }

    #[test]
    fn a_stalled_cycle_moves_nothing() {
        let mut pipe = Pipe::new(Function::Mul, DType::F64, Mode::default(), 3);
        pipe.tick(Some(PipeIn { a: ONE, b: TWO, tag: 0 }));
        let before: Vec<_> = pipe.registers().collect();
        for _ in 0..10 {
            pipe.stall();
        }
        assert_eq!(pipe.registers().collect::<Vec<_>>(), before);
        assert_eq!(pipe.stalled_cycles(), 10);
        assert_eq!(pipe.tick(None), None);
        assert_eq!(pipe.tick(None), None);
        assert_eq!(pipe.tick(None).map(|o| o.bits), Some(TWO));
    }

    #[test]
    fn registers_have_the_same_names_full_or_empty() {
        let names = |pipe: &Pipe| pipe.registers().map(|s| (s.stage, s.register, s.field, s.width)).collect::<Vec<_>>();
        for function in [Function::Add, Function::Mul, Function::Min, Function::And] {
            for stages in 1..=6 {
                let mut pipe = Pipe::new(function, DType::F32, Mode::default(), stages);
                let empty = names(&pipe);
                assert!(pipe.registers().all(|s| s.value.is_none()));
                for k in 0..stages as u64 {
                    pipe.tick(Some(PipeIn { a: 0x7f80_0001, b: k, tag: k }));
                }
                assert_eq!(names(&pipe), empty);
                assert!(pipe.registers().all(|s| s.value.is_some()));
            }
        }
    }
}
