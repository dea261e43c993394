//! A single pipelined unit: one pair of lanes in, one lane out, every cycle.
//!
//! ```text
//!              +-----------+ r? +-----------+ r?      +-----------+
//!  input ----->| segment 0 |[ ]-| segment 1 |[ ]- ... | segment 5 |[r]----> output
//!              +-----------+    +-----------+         +-----------+
//!                              ^-------------------- clock enable (no `tick` = all registers hold)
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
//! Timing: operands given to [`Pipe::tick`] in cycle t return as a result from the `tick` of cycle t + stages. A
//! stalled cycle ([`Pipe::stall`]) does not count: every register holds.
//!
//! Limitation: one function for the life of the pipe; [`tree`](super::tree) mixes functions.
//!
//! Requirement: A-PIPE-1 (`common.md`, section 1).
//!
//! ```
//! use watershed_arith::{DType, Function, Mode, Pipe, PipeIn};
//!
//! let [one, two, three] = [1.0, 2.0, 3.0].map(f64::to_bits);
//! let mut adder = Pipe::new(Function::Add, DType::F64, Mode::default(), 3);
//! assert_eq!(adder.tick(Some(PipeIn { a: one, b: two, tag: 7 })), None); // cycle 0
//! assert_eq!(adder.tick(None), None); // cycle 1
//! assert_eq!(adder.tick(None), None); // cycle 2
//! let sum = adder.tick(None).expect("three stages: due in cycle 3");
//! assert_eq!((sum.bits, sum.tag), (three, 7));
//! ```

use super::adder::{self, Aligned, Compared, Summed};
use super::comparator::{self, Keys, Ordered, Selection};
use super::format::{Build, builds};
use super::integer::{self, Extended, Gate};
use super::multiplier::{self, Factored, Partials, Product};
use super::round::{self, Normalised, Packed, Rounded};
use super::types::{DType, Flags, Mode};
use super::unit::{Function, Path, SEGMENTS, StageRegister, Unit, cut, register_behind, with_build};

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

/// What lies in a register with its tag; `None` is a bubble.
type Slot<T> = Option<(T, u64)>;

/// A place behind a segment: a register if the pipeline is cut there, else a wire.
#[inline]
fn place<T>(is_register: bool, register: &mut Slot<T>, wire: Slot<T>) -> Slot<T> {
    if is_register { std::mem::replace(register, wire) } else { wire }
}

/// One segment for whatever is on the wire.
#[inline]
fn logic<S, D>(wire: Slot<S>, segment: impl FnOnce(S) -> D) -> Slot<D> {
    wire.map(|(register, tag)| (segment(register), tag))
}

/// Every register a unit can have. Those of other datapaths stay empty, as do those where the unit is not cut.
#[derive(Debug, Clone, Default)]
struct Registers {
    compared: Slot<Compared>,
    aligned: Slot<Aligned>,
    summed: Slot<Summed>,
    factored: Slot<Factored>,
    partials: Slot<Partials>,
    product: Slot<Product>,
    normalised: Slot<Normalised>,
    rounded: Slot<Rounded>,
    keys: Slot<Keys>,
    ordered: Slot<Ordered>,
    extended: Slot<Extended>,
    int_partials: Slot<integer::Partials>,
    /// Finished early: comparators and integer units hold their result in segments 2 to 4.
    held: [Slot<Packed>; 3],
    done: Slot<Packed>,
}

/// Whether each segment is followed by a register.
type Cut = [bool; SEGMENTS as usize];

impl Registers {
    #[inline]
    fn adder<B: Build>(&mut self, cut: Cut, mode: Mode, negate_b: bool, input: Slot<(u64, u64)>) -> Slot<Packed> {
        let compared = logic(input, |(a, b)| adder::compare::<B>(mode, a, b, negate_b));
        let compared = place(cut[0], &mut self.compared, compared);
        let aligned = place(cut[1], &mut self.aligned, logic(compared, adder::align::<B>));
        let summed = place(cut[2], &mut self.summed, logic(aligned, |r| adder::add::<B>(mode, r)));
        let normalised = place(cut[3], &mut self.normalised, logic(summed, adder::normalise::<B>));
        self.tail::<B>(cut, mode, normalised)
    }

    #[inline]
    fn multiplier<B: Build>(&mut self, cut: Cut, mode: Mode, input: Slot<(u64, u64)>) -> Slot<Packed> {
        let factored = logic(input, |(a, b)| multiplier::factor::<B>(mode, a, b));
        let factored = place(cut[0], &mut self.factored, factored);
        let partials = place(cut[1], &mut self.partials, logic(factored, multiplier::multiply::<B>));
        let product = place(cut[2], &mut self.product, logic(partials, multiplier::sum::<B>));
        let normalised = place(cut[3], &mut self.normalised, logic(product, multiplier::normalise::<B>));
        self.tail::<B>(cut, mode, normalised)
    }

    #[inline]
    fn tail<B: Build>(&mut self, cut: Cut, mode: Mode, normalised: Slot<Normalised>) -> Slot<Packed> {
        let rounded = logic(normalised, |r| round::round::<B>(mode, r));
        let rounded = place(cut[4], &mut self.rounded, rounded);
        place(cut[5], &mut self.done, logic(rounded, |r| round::pack::<B>(mode, r)))
    }

    #[inline]
    fn comparator(&mut self, cut: Cut, selection: Selection, keys: Slot<Keys>) -> Slot<Packed> {
        let keys = place(cut[0], &mut self.keys, keys);
        let ordered = place(cut[1], &mut self.ordered, logic(keys, comparator::order));
        self.hold(cut, logic(ordered, |r| comparator::select(selection, r)))
    }

    #[inline]
    fn integer(&mut self, cut: Cut, dtype: DType, gate: Gate, input: Slot<(u64, u64)>) -> Slot<Packed> {
        let extended = logic(input, |(a, b)| integer::extend::<builds::F64>(dtype, gate, a, b));
        let extended = place(cut[0], &mut self.extended, extended);
        let partials = logic(extended, |r| integer::multiply::<builds::F64>(gate, r));
        let partials = place(cut[1], &mut self.int_partials, partials);
        self.hold(cut, logic(partials, |r| integer::finish::<builds::F64>(dtype, gate, r)))
    }

    #[inline]
    fn hold(&mut self, cut: Cut, mut wire: Slot<Packed>) -> Slot<Packed> {
        for (k, held) in self.held.iter_mut().enumerate() {
            wire = place(cut[2 + k], held, wire);
        }
        place(cut[5], &mut self.done, wire)
    }

    /// What lies behind this segment (0 to 5) of a unit.
    fn behind(&self, path: Path, segment: u8) -> Slot<StageRegister> {
        use StageRegister as R;
        match (path, segment) {
            (Path::Adder { .. }, 0) => logic(self.compared, R::Compared),
            (Path::Adder { .. }, 1) => logic(self.aligned, R::Aligned),
            (Path::Adder { .. }, 2) => logic(self.summed, R::Summed),
            (Path::Multiplier, 0) => logic(self.factored, R::Factored),
            (Path::Multiplier, 1) => logic(self.partials, R::Partials),
            (Path::Multiplier, 2) => logic(self.product, R::Product),
            (Path::Adder { .. } | Path::Multiplier, 3) => logic(self.normalised, R::Normalised),
            (Path::Adder { .. } | Path::Multiplier, 4) => logic(self.rounded, R::Rounded),
            (Path::FloatComparator(_) | Path::IntegerComparator(_), 0) => logic(self.keys, R::Keys),
            (Path::FloatComparator(_) | Path::IntegerComparator(_), 1) => logic(self.ordered, R::Ordered),
            (Path::Integer(_), 0) => logic(self.extended, R::Extended),
            (Path::Integer(_), 1) => logic(self.int_partials, R::IntegerPartials),
            (_, 2..=4) => logic(self.held[segment as usize - 2], R::Done),
            _ => logic(self.done, R::Done),
        }
    }
}

/// A unit with its pipeline registers.
#[derive(Debug, Clone)]
pub struct Pipe {
    unit: Unit,
    stages: u8,
    cut: Cut,
    registers: Registers,
    stalled: u64,
}

impl Pipe {
    /// An empty pipe.
    ///
    /// # Panics
    ///
    /// If `stages` is not in 1 to 6.
    pub fn new(function: Function, dtype: DType, mode: Mode, stages: u8) -> Self {
        Self {
            unit: Unit::new(function, dtype, mode),
            stages,
            cut: register_behind(stages),
            registers: Registers::default(),
            stalled: 0,
        }
    }

    /// Latency in cycles.
    pub const fn latency_cycles(&self) -> u64 {
        self.stages as u64
    }

    /// One enabled clock cycle.
    ///
    /// The text follows the signal: what a register held before the edge goes on into the next segment, and what the
    /// segment before it computed takes its place.
    #[inline]
    pub fn tick(&mut self, input: Option<PipeIn>) -> Option<PipeOut> {
        let Self { unit, cut, registers, .. } = self;
        let (cut, mode, dtype) = (*cut, unit.mode, unit.dtype);
        let input = input.map(|PipeIn { a, b, tag }| ((a, b), tag));
        let output = match unit.path {
            Path::Adder { negate_b } => with_build!(dtype, B => registers.adder::<B>(cut, mode, negate_b, input)),
            Path::Multiplier => with_build!(dtype, B => registers.multiplier::<B>(cut, mode, input)),
            Path::FloatComparator(selection) => with_build!(dtype, B => {
                let keys = logic(input, |(a, b)| comparator::float_keys::<B>(mode, selection, a, b));
                registers.comparator(cut, selection, keys)
            }),
            Path::IntegerComparator(selection) => {
                let keys = logic(input, |(a, b)| comparator::integer_keys(dtype, a, b));
                registers.comparator(cut, selection, keys)
            }
            Path::Integer(gate) => registers.integer(cut, dtype, gate, input),
        };
        output.map(|(done, tag)| PipeOut { bits: done.bits, flags: done.flags, tag })
    }

    /// One clock cycle with the enable low: every register holds, nothing enters or leaves.
    pub fn stall(&mut self) {
        self.stalled += 1;
    }

    /// Stalled cycles so far.
    pub const fn stalled_cycles(&self) -> u64 {
        self.stalled
    }

    /// The contents of the register behind each clock stage.
    fn held(&self) -> impl Iterator<Item = (u8, Option<StageRegister>)> {
        cut(self.stages).iter().map(|&end| {
            let held = self.registers.behind(self.unit.path, end - 1);
            (end, held.map(|(register, _)| register))
        })
    }

    /// Operations in the pipe.
    pub fn in_flight(&self) -> usize {
        self.held().filter(|(_, held)| held.is_some()).count()
    }

    /// True if every register holds a bubble.
    pub fn is_empty(&self) -> bool {
        self.in_flight() == 0
    }

    /// Every field of every stage register, in order; the list is the same in every cycle.
    pub fn registers(&self) -> impl Iterator<Item = Signal> {
        let mut signals = Vec::new();
        for (k, (end, held)) in self.held().enumerate() {
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
        for function in [Function::Add, Function::Mul, Function::Select(Selection::Min), Function::Gate(Gate::And)] {
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
