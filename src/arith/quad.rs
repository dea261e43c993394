//! The quad unit: one two-input unit over the four 64-bit words of a frame, as the armed family's engines have it.
//!
//! ```text
//!                       +--> four lane units (adder, comparators, integer, gates) --+
//!   a: 4 words, code -->|                                                            |--> 4 words
//!      M, oflow_id      +--> locator         (minmaxloc, minmaxnumloc) --------------+--> code, M, oflow_id
//!   b: 4 words, code -->|                                                            |
//!      M, oflow_id      +--> reproducible sum ---------------------------------------+
//!                        segments 0 to 5, cut into 1 to 6 clock stages as every unit
//! ```
//!
//! | port | width | meaning |
//! |------|-------|---------|
//! | lanes | 4 x 64 | the words of a contribution or partial result |
//! | code | 4 | result code; the larger of both operands' and the operation's own |
//! | m | 8, signed | `repsum` only: exponent index |
//! | oflow_id | 2 | `repsum` only: the word that wrapped, if the code is INT_OVERFLOW |
//!
//! | parameter | default | range | effect |
//! |-----------|---------|-------|--------|
//! | stages | - | 1 to 6 | latency in cycles; bits never |
//!
//! Timing: a pair a cycle; operands given to [`QuadPipe::tick`] in cycle t return as a result from the `tick` of cycle
//! t + stages.
//!
//! Most operations work on the four lanes by themselves; `repsum` and the locators take all four as one operand. A
//! barrier gives zero words and the larger code. Opcodes (R-OP-1) are in [`OPCODES`].
//!
//! Requirements: R-AR-1 to R-AR-6, R-OP-1, R-RC-1 (`armed.md`); A-PIPE-1 (`common.md`).
//!
//! ```
//! use watershed_arith::{DType, Mode, Op, Quad, QuadPipe, QuadUnit};
//!
//! let unit = QuadUnit::new(Op::Sum, DType::I64, Mode::default()).expect("there is such a unit");
//! let mut pipe = QuadPipe::new(unit, 2);
//! let (a, b) = (Quad::of([1, 2, 3, 4]), Quad::of([10, 20, 30, 40]));
//! assert_eq!(pipe.tick(Some((a, b, 5))), None); // cycle 0
//! assert_eq!(pipe.tick(None), None); // cycle 1
//! let (sum, tag) = pipe.tick(None).expect("two stages: due in cycle 2");
//! assert_eq!((sum.lanes, tag), ([11, 22, 33, 44], 5));
//! ```

use super::code::ResultCode;
use super::format::builds::F64;
use super::locator::{self, LocatorKeys, LocatorOrdered};
use super::repsum::{self, RepAligned, RepCompared};
use super::round::Packed;
use super::types::{DType, Flags, Mode, Op, Round};
use super::unit::{SEGMENTS, StageRegister, Unit, register_behind};

/// The arithmetic part of a contribution or partial result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, watershed_state::Saved)]
pub struct Quad {
    /// The four words.
    pub lanes: [u64; 4],
    /// Result code.
    pub code: ResultCode,
    /// Exponent index of a reproducible sum, else 0.
    pub m: i8,
    /// The word of a reproducible sum that wrapped, else 0.
    pub oflow_id: u8,
}

impl Quad {
    /// Four words with nothing to report.
    pub const fn of(lanes: [u64; 4]) -> Self {
        Self { lanes, code: ResultCode::Ok, m: 0, oflow_id: 0 }
    }
}

/// The contents of a frame: words, codes, and the number of contributions in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, watershed_state::Saved)]
pub struct Contribution {
    /// The words, the result code, the exponent index and the word that wrapped.
    pub quad: Quad,
    /// Contributions in it; 20 bits in a frame.
    pub count: u32,
}

impl Contribution {
    /// The largest count a frame can carry.
    pub const MAX_COUNT: u32 = (1 << 20) - 1;
}

/// One opcode of the armed family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Opcode {
    /// The six bits in the frame.
    pub number: u8,
    /// Name in the source.
    pub name: &'static str,
    /// Operation.
    pub op: Op,
    /// Type of the lanes.
    pub dtype: DType,
    /// Rounding mode of a floating-point sum.
    pub round: Round,
    /// Flush-to-zero of a floating-point sum.
    pub flush_to_zero: bool,
}

const fn opcode(number: u8, name: &'static str, op: Op, dtype: DType) -> Opcode {
    Opcode { number, name, op, dtype, round: Round::NearestEven, flush_to_zero: false }
}

const fn sum(number: u8, name: &'static str, round: Round, flush_to_zero: bool) -> Opcode {
    Opcode { number, name, op: Op::Sum, dtype: DType::F64, round, flush_to_zero }
}

/// Every opcode, ascending (R-OP-1; the numbers are those of the public host driver).
pub const OPCODES: &[Opcode] = &[
    opcode(0x00, "BARRIER", Op::Barrier, DType::U64),
    opcode(0x01, "AND", Op::And, DType::U64),
    opcode(0x02, "OR", Op::Or, DType::U64),
    opcode(0x03, "XOR", Op::Xor, DType::U64),
    opcode(0x10, "INT MIN", Op::Min, DType::I64),
    opcode(0x11, "INT MAX", Op::Max, DType::I64),
    opcode(0x12, "INT MINMAXLOC", Op::MinMaxLoc, DType::I64),
    opcode(0x14, "INT SUM", Op::Sum, DType::I64),
    opcode(0x20, "FLT MIN", Op::Min, DType::F64),
    opcode(0x21, "FLT MAX", Op::Max, DType::F64),
    opcode(0x22, "FLT MINMAXLOC", Op::MinMaxLoc, DType::F64),
    opcode(0x24, "FLT MINNUM", Op::MinNum, DType::F64),
    opcode(0x25, "FLT MAXNUM", Op::MaxNum, DType::F64),
    opcode(0x26, "FLT MINMAXNUMLOC", Op::MinMaxNumLoc, DType::F64),
    sum(0x28, "FLT SUM NEAR", Round::NearestEven, false),
    sum(0x29, "FLT SUM UP", Round::Up, false),
    sum(0x2a, "FLT SUM DOWN", Round::Down, false),
    sum(0x2b, "FLT SUM ZERO", Round::TowardZero, false),
    sum(0x2c, "FLT SUM NEAR FTZ", Round::NearestEven, true),
    sum(0x2d, "FLT SUM UP FTZ", Round::Up, true),
    sum(0x2e, "FLT SUM DOWN FTZ", Round::Down, true),
    sum(0x2f, "FLT SUM ZERO FTZ", Round::TowardZero, true),
    opcode(0x30, "FLT REPSUM", Op::RepSum, DType::F64),
];

impl Opcode {
    /// The opcode with this number.
    pub fn from_number(number: u8) -> Option<&'static Self> {
        OPCODES.iter().find(|opcode| opcode.number == number)
    }

    /// The unit this opcode selects; NaN and signalling-NaN policy come from the engine's configuration.
    ///
    /// # Panics
    ///
    /// Never: every opcode of the table has a unit.
    pub fn unit(&self, configured: Mode) -> QuadUnit {
        let mode = Mode { round: self.round, flush_to_zero: self.flush_to_zero, ..configured };
        QuadUnit::new(self.op, self.dtype, mode).expect("every opcode has a unit")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, watershed_state::Saved)]
enum QuadPath {
    Lanes(Unit),
    Locator { numbers_win: bool },
    RepSum,
    Barrier,
}

/// A quad unit with operation, type and mode selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, watershed_state::Saved)]
pub struct QuadUnit {
    path: QuadPath,
    dtype: DType,
    mode: Mode,
}

/// The contents of one pipeline register of a quad unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, watershed_state::Saved)]
pub enum QuadRegister {
    /// The operands at the inputs (wires, not a register).
    Operands {
        /// First operand.
        a: Quad,
        /// Second operand.
        b: Quad,
    },
    /// Four lane units and the larger code of the operands.
    Lanes {
        /// Register of each lane.
        lanes: [StageRegister; 4],
        /// The larger code.
        code: ResultCode,
    },
    /// Locator, after *keys*, and the larger code of the operands.
    LocatorKeys(LocatorKeys, ResultCode),
    /// Locator, after *order*, and the larger code of the operands.
    LocatorOrdered(LocatorOrdered, ResultCode),
    /// Reproducible sum, after *compare*.
    RepCompared(RepCompared),
    /// Reproducible sum, after *align*.
    RepAligned(RepAligned),
    /// The finished words.
    Done(Quad),
}

impl QuadRegister {
    /// The register's name in waves and stage listings.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Operands { .. } => "operands",
            Self::Lanes { lanes, .. } => lanes[0].name(),
            Self::LocatorKeys(..) => "loc_keys",
            Self::LocatorOrdered(..) => "loc_ordered",
            Self::RepCompared(_) => "rep_compared",
            Self::RepAligned(_) => "rep_aligned",
            Self::Done(_) => "done",
        }
    }
}

impl QuadUnit {
    /// A unit for `op` on 64-bit lanes of `dtype`. `None` if the lanes are not 64 bits wide, or if there is no such
    /// operation for the type: `repsum` is for f64, the number-preferring operations are for f64.
    pub fn new(op: Op, dtype: DType, mode: Mode) -> Option<Self> {
        if dtype.bits() != 64 {
            return None;
        }
        let path = match op {
            Op::Barrier => QuadPath::Barrier,
            Op::MinMaxLoc => QuadPath::Locator { numbers_win: false },
            Op::MinMaxNumLoc if dtype.is_float() => QuadPath::Locator { numbers_win: true },
            Op::RepSum if dtype.is_float() => QuadPath::RepSum,
            Op::MinNum | Op::MaxNum if !dtype.is_float() => return None,
            Op::MinMaxNumLoc | Op::RepSum => return None,
            _ => QuadPath::Lanes(Unit::of(op, dtype, mode)?),
        };
        Some(Self { path, dtype, mode })
    }

    /// How it rounds, flushes and treats NaNs.
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// One segment: from what one register holds to what the next one will hold.
    pub fn step(&self, register: QuadRegister) -> QuadRegister {
        use QuadRegister as R;
        match (register, self.path) {
            (R::Operands { a, b }, QuadPath::Lanes(unit)) => {
                let pair = |k: usize| unit.step(StageRegister::Operands { a: a.lanes[k], b: b.lanes[k] });
                R::Lanes { lanes: [pair(0), pair(1), pair(2), pair(3)], code: a.code.climb(b.code) }
            }
            (R::Lanes { lanes, code }, QuadPath::Lanes(unit)) => {
                Self::finish(R::Lanes { lanes: lanes.map(|lane| unit.step(lane)), code })
            }
            (R::Operands { a, b }, QuadPath::Locator { numbers_win }) => R::LocatorKeys(
                locator::keys::<F64>(self.dtype, self.mode, numbers_win, a.lanes, b.lanes),
                a.code.climb(b.code),
            ),
            (R::LocatorKeys(keys, code), _) => R::LocatorOrdered(locator::order::<F64>(keys), code),
            (R::LocatorOrdered(ordered, code), QuadPath::Locator { numbers_win }) => {
                let (lanes, flags) = locator::select::<F64>(numbers_win, ordered);
                R::Done(Quad { code: code.climb(ResultCode::of(flags)), ..Quad::of(lanes) })
            }
            (R::Operands { a, b }, QuadPath::RepSum) => R::RepCompared(repsum::compare(a, b)),
            (R::RepCompared(r), _) => R::RepAligned(repsum::align::<F64>(r)),
            (R::RepAligned(r), _) => R::Done(repsum::add::<F64>(r)),
            (R::Operands { a, b }, QuadPath::Barrier) => {
                R::Done(Quad { code: a.code.climb(b.code), ..Quad::of([0; 4]) })
            }
            (R::Done(quad), _) => R::Done(quad),
            (R::Lanes { .. } | R::LocatorOrdered(..), _) => {
                panic!("a register of one quad unit in another: registers of two units were mixed")
            }
        }
    }

    /// Lanes that are all done make a finished quad; all lanes of a unit finish in the same segment.
    fn finish(register: QuadRegister) -> QuadRegister {
        if let QuadRegister::Lanes { lanes, code } = register
            && let [StageRegister::Done(p), StageRegister::Done(q), StageRegister::Done(r), StageRegister::Done(s)] =
                lanes
        {
            let done: [Packed; 4] = [p, q, r, s];
            let flags = done.iter().fold(Flags::NONE, |flags, lane| flags | lane.flags);
            return QuadRegister::Done(Quad {
                code: code.climb(ResultCode::of(flags)),
                ..Quad::of(done.map(|lane| lane.bits))
            });
        }
        register
    }

    /// This many segments in a row.
    pub fn steps(&self, segments: u8, register: QuadRegister) -> QuadRegister {
        (0..segments).fold(register, |register, _| self.step(register))
    }

    /// All segments without registers.
    pub fn evaluate(&self, a: Quad, b: Quad) -> Quad {
        match self.path {
            QuadPath::Lanes(unit) => {
                let done: [Packed; 4] = std::array::from_fn(|k| unit.evaluate(a.lanes[k], b.lanes[k]));
                let flags = done.iter().fold(Flags::NONE, |flags, lane| flags | lane.flags);
                let code = a.code.climb(b.code).climb(ResultCode::of(flags));
                Quad { code, ..Quad::of(done.map(|lane| lane.bits)) }
            }
            QuadPath::Locator { numbers_win } => {
                let (lanes, flags) = locator::evaluate::<F64>(self.dtype, self.mode, numbers_win, a.lanes, b.lanes);
                Quad { code: a.code.climb(b.code).climb(ResultCode::of(flags)), ..Quad::of(lanes) }
            }
            QuadPath::RepSum => repsum::merge::<F64>(a, b),
            QuadPath::Barrier => Quad { code: a.code.climb(b.code), ..Quad::of([0; 4]) },
        }
    }

    /// Calls `sink` with lane (or word, or half), name, width and value of every field of a register.
    pub fn fields(&self, register: &QuadRegister, sink: &mut dyn FnMut(Option<u8>, &'static str, u32, u128)) {
        use QuadRegister as R;
        let words = |sink: &mut dyn FnMut(Option<u8>, &'static str, u32, u128), name, words: &[u64; 4]| {
            for (k, &word) in words.iter().enumerate() {
                sink(Some(k as u8), name, 64, u128::from(word));
            }
        };
        let code = |code: ResultCode| u128::from(code.number());
        match register {
            R::Operands { a, b } => {
                words(sink, "a", &a.lanes);
                words(sink, "b", &b.lanes);
            }
            R::Lanes { lanes, code: carried } => {
                let QuadPath::Lanes(unit) = self.path else { return };
                for (k, lane) in lanes.iter().enumerate() {
                    unit.fields(lane, &mut |name, width, value| sink(Some(k as u8), name, width, value));
                }
                sink(None, "code", 4, code(*carried));
            }
            R::LocatorKeys(keys, carried) => {
                for (k, half) in [keys.min, keys.max].iter().enumerate() {
                    let place = Some(k as u8);
                    sink(place, "unordered", 1, u128::from(half.keys.unordered));
                    sink(place, "a_key", 64, u128::from(half.keys.a_key as u64));
                    sink(place, "b_key", 64, u128::from(half.keys.b_key as u64));
                    sink(place, "a_index", 64, u128::from(half.a_index));
                    sink(place, "b_index", 64, u128::from(half.b_index));
                }
                sink(None, "code", 4, code(*carried));
            }
            R::LocatorOrdered(ordered, carried) => {
                for (k, half) in [ordered.min, ordered.max].iter().enumerate() {
                    let place = Some(k as u8);
                    sink(place, "less", 1, u128::from(half.ordered.less));
                    sink(place, "equal", 1, u128::from(half.ordered.equal));
                    sink(place, "a_first", 1, u128::from(half.a_first));
                }
                sink(None, "code", 4, code(*carried));
            }
            R::RepCompared(r) => {
                words(sink, "larger", &r.larger.lanes);
                words(sink, "smaller", &r.smaller.lanes);
                sink(None, "m", 8, u128::from(r.m as u8));
                sink(None, "distance", 3, u128::from(r.distance));
            }
            R::RepAligned(r) => {
                words(sink, "larger", &r.larger);
                words(sink, "smaller", &r.smaller);
                sink(None, "m", 8, u128::from(r.m as u8));
                sink(None, "code", 4, code(r.code));
                sink(None, "oflow_id", 2, u128::from(r.oflow_id));
            }
            R::Done(r) => {
                words(sink, "word", &r.lanes);
                sink(None, "code", 4, code(r.code));
                sink(None, "m", 8, u128::from(r.m as u8));
                sink(None, "oflow_id", 2, u128::from(r.oflow_id));
            }
        }
    }
}

/// A quad unit with its pipeline registers: a pair in, a quad out, every cycle.
#[derive(Debug, Clone)]
pub struct QuadPipe {
    unit: QuadUnit,
    cut: [bool; SEGMENTS as usize],
    registers: [Option<(QuadRegister, u64)>; SEGMENTS as usize],
}

impl QuadPipe {
    /// An empty pipe.
    ///
    /// # Panics
    ///
    /// If `stages` is not in 1 to 6.
    pub fn new(unit: QuadUnit, stages: u8) -> Self {
        Self { unit, cut: register_behind(stages), registers: [None; SEGMENTS as usize] }
    }

    /// One enabled clock cycle: operands with a tag in, a result with its tag out. A cycle without a call is a stall.
    pub fn tick(&mut self, input: Option<(Quad, Quad, u64)>) -> Option<(Quad, u64)> {
        let mut wire = input.map(|(a, b, tag)| (QuadRegister::Operands { a, b }, tag));
        for (is_register, register) in self.cut.iter().zip(&mut self.registers) {
            wire = wire.map(|(held, tag)| (self.unit.step(held), tag));
            if *is_register {
                wire = std::mem::replace(register, wire);
            }
        }
        wire.map(|(register, tag)| match register {
            QuadRegister::Done(quad) => (quad, tag),
            _ => panic!("a unit is done after its last segment"),
        })
    }

    /// The registers, first stage first; `None` is a bubble.
    pub fn registers(&self) -> impl Iterator<Item = Option<&QuadRegister>> {
        let held = self.cut.iter().zip(&self.registers).filter(|(is_register, _)| **is_register);
        held.map(|(_, register)| register.as_ref().map(|(register, _)| register))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_are_those_of_the_driver_and_all_have_units() {
        let number = |name| OPCODES.iter().find(|opcode| opcode.name == name).map(|opcode| opcode.number);
        assert_eq!(number("INT SUM"), Some(0x14));
        assert_eq!(number("FLT SUM ZERO FTZ"), Some(0x2f));
        assert_eq!(number("FLT REPSUM"), Some(0x30));
        assert_eq!(Opcode::from_number(0x29).map(|opcode| opcode.round), Some(Round::Up));
        assert_eq!(Opcode::from_number(0x13), None);
        for opcode in OPCODES {
            assert_eq!(opcode.unit(Mode::default()).dtype, opcode.dtype);
        }
        assert!(OPCODES.windows(2).all(|pair| pair[0].number < pair[1].number));
    }

    #[test]
    fn operations_without_a_unit_are_refused() {
        let mode = Mode::default();
        for (op, dtype) in
            [(Op::Sum, DType::F32), (Op::RepSum, DType::I64), (Op::MinMaxNumLoc, DType::I64), (Op::MinNum, DType::U64)]
        {
            assert_eq!(QuadUnit::new(op, dtype, mode), None, "{op} {dtype}");
        }
    }

    #[test]
    fn lanes_do_not_meet_and_codes_climb() {
        let unit = QuadUnit::new(Op::Sum, DType::I64, Mode::default()).unwrap();
        let a = Quad::of([i64::MAX as u64, 1, 2, u64::MAX]);
        let sum = unit.evaluate(a, Quad::of([1, 1, 1, 1]));
        assert_eq!(sum, Quad { code: ResultCode::IntOverflow, ..Quad::of([1 << 63, 2, 3, 0]) });
        let worse = Quad { code: ResultCode::OpMismatch, ..Quad::of([0; 4]) };
        assert_eq!(unit.evaluate(sum, worse).code, ResultCode::OpMismatch);
    }
}
