//! The registers of many lanes of one unit: one typed array for every place where a register can lie.
//!
//! ```text
//!  operands --> compared --> aligned --> summed ----.
//!          `--> factored --> partials --> product ---+--> normalised --> rounded --> done
//!          |--> keys     --> ordered  ------------------------------------------------^
//!          `--> extended --> int_partials --------------------------------------------^
//! ```
//!
//! All lanes of a bank are at the same place, so one array is in use and the others are empty, and function, format and
//! place are looked up once for all lanes. Buffers stay allocated for the next wave.
//!
//! Requirement: A-PIPE-1 (`common.md`, section 1); the stages themselves are in the units' pages.

use super::adder::{self, Aligned, Compared, Summed};
use super::comparator::{self, Keys, Ordered, Selection};
use super::format::{Build, builds};
use super::integer::{self, Extended, Gate};
use super::multiplier::{self, Factored, Partials, Product};
use super::round::{self, Normalised, Packed, Rounded};
use super::types::{DType, Mode};
use super::unit::{Path, StageRegister, Unit, with_build};

/// A pair of lanes at the inputs of a unit.
pub(super) type Pair = (u64, u64);

/// The registers of many lanes.
#[derive(Debug, Clone, Default, watershed_state::Saved)]
pub(super) struct Bank {
    /// Segments passed.
    segment: u8,
    operands: Vec<Pair>,
    compared: Vec<Compared>,
    aligned: Vec<Aligned>,
    summed: Vec<Summed>,
    factored: Vec<Factored>,
    partials: Vec<Partials>,
    product: Vec<Product>,
    normalised: Vec<Normalised>,
    rounded: Vec<Rounded>,
    keys: Vec<Keys>,
    ordered: Vec<Ordered>,
    extended: Vec<Extended>,
    int_partials: Vec<integer::Partials>,
    done: Vec<Packed>,
}

/// Empties one array through a stage function into the next.
#[inline]
fn pass<S: Copy, D>(from: &mut Vec<S>, to: &mut Vec<D>, stage: impl Fn(S) -> D) {
    to.clear();
    to.extend(from.iter().map(|&register| stage(register)));
    from.clear();
}

/// Round and pack without a register between them.
#[inline]
fn finish<B: Build>(mode: Mode, r: Normalised) -> Packed {
    round::pack::<B>(mode, round::round::<B>(mode, r))
}

impl Bank {
    /// Forgets the last level and opens the door for the operands of the next.
    pub(super) fn open(&mut self) -> &mut Vec<Pair> {
        self.segment = 0;
        self.done.clear();
        &mut self.operands
    }

    /// The finished lanes.
    pub(super) fn done(&self) -> &[Packed] {
        &self.done
    }

    /// One clock stage: everything up to this segment.
    pub(super) fn clock(&mut self, unit: &Unit, to: u8) {
        let mode = unit.mode;
        match unit.path {
            Path::Adder { negate_b } => with_build!(unit.dtype, B => self.adder::<B>(mode, negate_b, to)),
            Path::Multiplier => with_build!(unit.dtype, B => self.multiplier::<B>(mode, to)),
            Path::FloatComparator(selection) => with_build!(unit.dtype, B => {
                self.comparator(|a, b| comparator::float_keys::<B>(mode, selection, a, b), selection, to);
            }),
            Path::IntegerComparator(selection) => {
                self.comparator(|a, b| comparator::integer_keys(unit.dtype, a, b), selection, to);
            }
            Path::Integer(gate) => self.integer(unit.dtype, gate, to),
        }
    }

    // Neighbouring segments without a register between them are composed where a common cut asks for it; that saves
    // writing what no register holds. Every other cut goes segment by segment, through the same functions.

    fn adder<B: Build>(&mut self, mode: Mode, negate_b: bool, to: u8) {
        let compare = |(a, b)| adder::compare::<B>(mode, a, b, negate_b);
        let add = |r| adder::add::<B>(mode, r);
        let align = adder::align::<B>;
        while self.segment < to {
            let taken = to - self.segment;
            let passed = match (self.segment, taken) {
                (0, 6) => {
                    pass(&mut self.operands, &mut self.done, |(a, b)| adder::evaluate::<B>(mode, a, b, negate_b));
                    6
                }
                (0, 3) => {
                    pass(&mut self.operands, &mut self.summed, |pair| add(align(compare(pair))));
                    3
                }
                (0, 2) => {
                    pass(&mut self.operands, &mut self.aligned, |pair| align(compare(pair)));
                    2
                }
                (2, 2) => {
                    pass(&mut self.aligned, &mut self.normalised, |r| adder::normalise::<B>(add(r)));
                    2
                }
                (3, 3) => {
                    pass(&mut self.summed, &mut self.done, |r| finish::<B>(mode, adder::normalise::<B>(r)));
                    3
                }
                (0, _) => {
                    pass(&mut self.operands, &mut self.compared, compare);
                    1
                }
                (1, _) => {
                    pass(&mut self.compared, &mut self.aligned, align);
                    1
                }
                (2, _) => {
                    pass(&mut self.aligned, &mut self.summed, add);
                    1
                }
                (3, _) => {
                    pass(&mut self.summed, &mut self.normalised, adder::normalise::<B>);
                    1
                }
                _ => self.tail::<B>(mode, taken),
            };
            self.segment += passed;
        }
    }

    fn multiplier<B: Build>(&mut self, mode: Mode, to: u8) {
        let factor = |(a, b)| multiplier::factor::<B>(mode, a, b);
        let multiply = |pair| multiplier::multiply::<B>(factor(pair));
        while self.segment < to {
            let taken = to - self.segment;
            let passed = match (self.segment, taken) {
                (0, 6) => {
                    pass(&mut self.operands, &mut self.done, |(a, b)| multiplier::evaluate::<B>(mode, a, b));
                    6
                }
                (0, 3) => {
                    pass(&mut self.operands, &mut self.product, |pair| multiplier::sum::<B>(multiply(pair)));
                    3
                }
                (0, 2) => {
                    pass(&mut self.operands, &mut self.partials, multiply);
                    2
                }
                (2, 2) => {
                    let normalise = |r| multiplier::normalise::<B>(multiplier::sum::<B>(r));
                    pass(&mut self.partials, &mut self.normalised, normalise);
                    2
                }
                (3, 3) => {
                    let normalise = multiplier::normalise::<B>;
                    pass(&mut self.product, &mut self.done, |r| finish::<B>(mode, normalise(r)));
                    3
                }
                (0, _) => {
                    pass(&mut self.operands, &mut self.factored, factor);
                    1
                }
                (1, _) => {
                    pass(&mut self.factored, &mut self.partials, multiplier::multiply::<B>);
                    1
                }
                (2, _) => {
                    pass(&mut self.partials, &mut self.product, multiplier::sum::<B>);
                    1
                }
                (3, _) => {
                    pass(&mut self.product, &mut self.normalised, multiplier::normalise::<B>);
                    1
                }
                _ => self.tail::<B>(mode, taken),
            };
            self.segment += passed;
        }
    }

    /// The segments adder and multiplier share; returns how many were passed.
    fn tail<B: Build>(&mut self, mode: Mode, taken: u8) -> u8 {
        match (self.segment, taken) {
            (4, 2) => {
                pass(&mut self.normalised, &mut self.done, |r| finish::<B>(mode, r));
                2
            }
            (4, _) => {
                pass(&mut self.normalised, &mut self.rounded, |r| round::round::<B>(mode, r));
                1
            }
            _ => {
                pass(&mut self.rounded, &mut self.done, |r| round::pack::<B>(mode, r));
                1
            }
        }
    }

    fn comparator(&mut self, keys: impl Fn(u64, u64) -> Keys, selection: Selection, to: u8) {
        while self.segment < to {
            match self.segment {
                0 => pass(&mut self.operands, &mut self.keys, |(a, b)| keys(a, b)),
                1 => pass(&mut self.keys, &mut self.ordered, comparator::order),
                2 => pass(&mut self.ordered, &mut self.done, |r| comparator::select(selection, r)),
                _ => {}
            }
            self.segment += 1;
        }
    }

    fn integer(&mut self, dtype: DType, gate: Gate, to: u8) {
        while self.segment < to {
            match self.segment {
                0 => pass(&mut self.operands, &mut self.extended, |(a, b)| {
                    integer::extend::<builds::F64>(dtype, gate, a, b)
                }),
                1 => pass(&mut self.extended, &mut self.int_partials, |r| integer::multiply::<builds::F64>(gate, r)),
                2 => pass(&mut self.int_partials, &mut self.done, |r| integer::finish::<builds::F64>(dtype, gate, r)),
                _ => {}
            }
            self.segment += 1;
        }
    }

    /// What a lane's register holds.
    pub(super) fn register(&self, unit: &Unit, lane: usize) -> StageRegister {
        use StageRegister as R;
        match (unit.path, self.segment) {
            (_, 0) => R::Operands { a: self.operands[lane].0, b: self.operands[lane].1 },
            (Path::Adder { .. }, 1) => R::Compared(self.compared[lane]),
            (Path::Adder { .. }, 2) => R::Aligned(self.aligned[lane]),
            (Path::Adder { .. }, 3) => R::Summed(self.summed[lane]),
            (Path::Multiplier, 1) => R::Factored(self.factored[lane]),
            (Path::Multiplier, 2) => R::Partials(self.partials[lane]),
            (Path::Multiplier, 3) => R::Product(self.product[lane]),
            (Path::Adder { .. } | Path::Multiplier, 4) => R::Normalised(self.normalised[lane]),
            (Path::Adder { .. } | Path::Multiplier, 5) => R::Rounded(self.rounded[lane]),
            (Path::FloatComparator(_) | Path::IntegerComparator(_), 1) => R::Keys(self.keys[lane]),
            (Path::FloatComparator(_) | Path::IntegerComparator(_), 2) => R::Ordered(self.ordered[lane]),
            (Path::Integer(_), 1) => R::Extended(self.extended[lane]),
            (Path::Integer(_), 2) => R::IntegerPartials(self.int_partials[lane]),
            _ => R::Done(self.done[lane]),
        }
    }
}
