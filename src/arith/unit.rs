//! One two-input unit of a reduction: the function table, the six segments, and where a pipeline is cut.
//!
//! ```text
//!  segment      0            1            2            3             4          5
//!  add, sub   compare  |   align    |   add      |  normalise  |   round   |  pack
//!  mul        factor   |   multiply |   sum      |  normalise  |   round   |  pack
//!  min .. lt  keys     |   order    |   select   |  (hold)     |   (hold)  |  (hold)
//!  integer    extend   |   multiply |   finish   |  (hold)     |   (hold)  |  (hold)
//!  gates      extend   |   (hold)   |   finish   |  (hold)     |   (hold)  |  (hold)
//!
//!  cut(1)  |                                                                       >|
//!  cut(2)  |                                    >|                                 >|
//!  cut(3)  |                       >|                           >|                 >|
//!  cut(4)  |                       >|            >|             >|                 >|
//!  cut(5)  |           >|           >|           >|             >|                 >|
//!  cut(6)  |           >|           >|           >|             >|         >|      >|
//! ```
//!
//! `>|` is a register. Every function of a unit takes the same number of cycles, so results leave in the order in
//! which operands entered, whatever the mixture.
//!
//! Each segment is a pure function from one register's contents to the next one's ([`StageRegister`]); a clock stage is
//! one to six of them in a row. The number of clock stages therefore cannot change a result.
//!
//! Requirements: A-PIPE-1, A-OP-1 (`common.md`, section 1); P-SW-3 (`piuma.md`).

use watershed_state::{Loader, Mismatch, Saved, Saver};

use super::comparator::{self, Keys, Ordered, Selection};
use super::format::{Format, builds};
use super::integer::{self, Extended, Gate};
use super::round::{self, Normalised, Packed, Rounded, Special};
use super::types::{DType, Flags, Mode, Op};
use super::{adder, multiplier};

/// Logic segments of every unit.
pub const SEGMENTS: u8 = 6;

/// The most clock stages a unit can be cut into.
pub const MAX_STAGES: u8 = SEGMENTS;

/// The segments of each clock stage, as one past the last segment.
///
/// # Panics
///
/// If `stages` is not in 1 to 6: the scenario has to refuse such a value before a block is built.
pub const fn cut(stages: u8) -> &'static [u8] {
    match stages {
        1 => &[6],
        2 => &[3, 6],
        3 => &[2, 4, 6],
        4 => &[2, 3, 4, 6],
        5 => &[1, 2, 3, 4, 6],
        6 => &[1, 2, 3, 4, 5, 6],
        _ => panic!("a unit is cut into 1 to 6 clock stages; check `unit_stages` before building it"),
    }
}

/// What a unit computes from two lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, watershed_state::Saved)]
pub enum Function {
    /// a + b.
    Add,
    /// a - b.
    Sub,
    /// a x b.
    Mul,
    /// What the comparator delivers.
    Select(Selection),
    /// A bitwise gate of the integer unit.
    Gate(Gate),
}

impl Function {
    /// The function a reduction's operation needs of each lane; `None` for the barrier, which has no data, and for
    /// the [wide](Op::is_wide) operations, which have a unit of their own.
    pub const fn of(op: Op) -> Option<Self> {
        match op {
            Op::Sum => Some(Self::Add),
            Op::Prod => Some(Self::Mul),
            _ => match (Selection::of(op), Gate::of(op)) {
                (Some(selection), _) => Some(Self::Select(selection)),
                (None, Some(gate)) => Some(Self::Gate(gate)),
                (None, None) => None,
            },
        }
    }
}

/// Whether a register lies behind each of the six segments, for this many clock stages: [`cut`] as a mask.
pub(super) const fn register_behind(stages: u8) -> [bool; SEGMENTS as usize] {
    let ends = cut(stages);
    let mut behind = [false; SEGMENTS as usize];
    let mut k = 0;
    while k < ends.len() {
        behind[ends[k] as usize - 1] = true;
        k += 1;
    }
    behind
}

/// Leads from a floating-point type at run time to a datapath built for it.
macro_rules! with_build {
    ($dtype:expr, $build:ident => $body:expr) => {
        match $dtype {
            DType::F16 => {
                type $build = builds::F16;
                $body
            }
            DType::Bf16 => {
                type $build = builds::Bf16;
                $body
            }
            DType::Tf32 => {
                type $build = builds::Tf32;
                $body
            }
            DType::F32 => {
                type $build = builds::F32;
                $body
            }
            DType::F64 => {
                type $build = builds::F64;
                $body
            }
            DType::Fp8E4m3 => {
                type $build = builds::Fp8E4m3;
                $body
            }
            DType::Fp8E5m2 => {
                type $build = builds::Fp8E5m2;
                $body
            }
            DType::I32 | DType::U32 | DType::I64 | DType::U64 => {
                panic!("an integer type in a floating-point datapath: Unit::new chose the wrong one")
            }
        }
    };
}

pub(super) use with_build;

/// Which datapath a function and a type lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, watershed_state::Saved)]
pub(super) enum Path {
    Adder { negate_b: bool },
    Multiplier,
    FloatComparator(Selection),
    IntegerComparator(Selection),
    Integer(Gate),
}

/// A unit with its function, type and mode selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    pub(super) path: Path,
    pub(super) dtype: DType,
    pub(super) mode: Mode,
    format: &'static Format,
}

/// The contents of one pipeline register of a unit.
///
/// The variant follows from function and segment; a real unit would have the registers of all its datapaths side by
/// side, of which one is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, watershed_state::Saved)]
pub enum StageRegister {
    /// The operands at the inputs (wires, not a register).
    Operands {
        /// Lane of the lower port.
        a: u64,
        /// Lane of the higher port.
        b: u64,
    },
    /// Adder, after *compare*.
    Compared(adder::Compared),
    /// Adder, after *align*.
    Aligned(adder::Aligned),
    /// Adder, after *add*.
    Summed(adder::Summed),
    /// Multiplier, after *factor*.
    Factored(multiplier::Factored),
    /// Multiplier, after *multiply*.
    Partials(multiplier::Partials),
    /// Multiplier, after *sum*.
    Product(multiplier::Product),
    /// Adder and multiplier, after *normalise*.
    Normalised(Normalised),
    /// Adder and multiplier, after *round*.
    Rounded(Rounded),
    /// Comparator, after *keys*.
    Keys(Keys),
    /// Comparator, after *order*.
    Ordered(Ordered),
    /// Integer unit, after *extend*.
    Extended(Extended),
    /// Integer unit, after *multiply*.
    IntegerPartials(integer::Partials),
    /// The finished lane.
    Done(Packed),
}

impl Saved for Unit {
    fn put(&self, to: &mut Saver) {
        (self.path, self.dtype, self.mode).put(to);
    }

    fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
        let (path, dtype, mode) = <(Path, DType, Mode)>::take(from)?;
        Ok(Self { path, dtype, mode, format: dtype.format().unwrap_or(&Format::F64) })
    }
}

impl Unit {
    /// A unit for `function` on lanes of `dtype`.
    pub const fn new(function: Function, dtype: DType, mode: Mode) -> Self {
        let (is_float, format) = match dtype.format() {
            Some(format) => (true, format),
            // Integer paths never look at it.
            None => (false, &Format::F64),
        };
        let path = match function {
            Function::Add if is_float => Path::Adder { negate_b: false },
            Function::Sub if is_float => Path::Adder { negate_b: true },
            Function::Mul if is_float => Path::Multiplier,
            Function::Add => Path::Integer(Gate::Add),
            Function::Sub => Path::Integer(Gate::Sub),
            Function::Mul => Path::Integer(Gate::Mul),
            Function::Gate(gate) => Path::Integer(gate),
            Function::Select(selection) if is_float => Path::FloatComparator(selection),
            Function::Select(selection) => Path::IntegerComparator(selection),
        };
        Self { path, dtype, mode, format }
    }

    /// The unit a reduction needs. Bitwise operations do not see lanes: the whole word is one 64-bit lane.
    /// `None` for the barrier and the [wide](Op::is_wide) operations.
    pub const fn of(op: Op, dtype: DType, mode: Mode) -> Option<Self> {
        let dtype = if op.is_bitwise() { DType::U64 } else { dtype };
        match Function::of(op) {
            Some(function) => Some(Self::new(function, dtype, mode)),
            None => None,
        }
    }

    /// Type of the lanes this unit works on.
    pub const fn dtype(&self) -> DType {
        self.dtype
    }

    /// One segment: from what one register holds to what the next one will hold.
    pub fn step(&self, register: StageRegister) -> StageRegister {
        use StageRegister as R;
        let mode = self.mode;
        match (register, self.path) {
            (R::Operands { a, b }, Path::Adder { negate_b }) => {
                with_build!(self.dtype, B => R::Compared(adder::compare::<B>(mode, a, b, negate_b)))
            }
            (R::Compared(r), _) => with_build!(self.dtype, B => R::Aligned(adder::align::<B>(r))),
            (R::Aligned(r), _) => with_build!(self.dtype, B => R::Summed(adder::add::<B>(mode, r))),
            (R::Summed(r), _) => with_build!(self.dtype, B => R::Normalised(adder::normalise::<B>(r))),

            (R::Operands { a, b }, Path::Multiplier) => {
                with_build!(self.dtype, B => R::Factored(multiplier::factor::<B>(mode, a, b)))
            }
            (R::Factored(r), _) => with_build!(self.dtype, B => R::Partials(multiplier::multiply::<B>(r))),
            (R::Partials(r), _) => with_build!(self.dtype, B => R::Product(multiplier::sum::<B>(r))),
            (R::Product(r), _) => with_build!(self.dtype, B => R::Normalised(multiplier::normalise::<B>(r))),

            (R::Normalised(r), _) => with_build!(self.dtype, B => R::Rounded(round::round::<B>(mode, r))),
            (R::Rounded(r), _) => with_build!(self.dtype, B => R::Done(round::pack::<B>(mode, r))),

            (R::Operands { a, b }, Path::FloatComparator(selection)) => {
                with_build!(self.dtype, B => R::Keys(comparator::float_keys::<B>(mode, selection, a, b)))
            }
            (R::Operands { a, b }, Path::IntegerComparator(_)) => R::Keys(comparator::integer_keys(self.dtype, a, b)),
            (R::Keys(r), _) => R::Ordered(comparator::order(r)),
            (R::Ordered(r), Path::FloatComparator(selection) | Path::IntegerComparator(selection)) => {
                R::Done(comparator::select(selection, r))
            }

            (R::Operands { a, b }, Path::Integer(gate)) => {
                R::Extended(integer::extend::<builds::F64>(self.dtype, gate, a, b))
            }
            (R::Extended(r), Path::Integer(gate)) => R::IntegerPartials(integer::multiply::<builds::F64>(gate, r)),
            (R::IntegerPartials(r), Path::Integer(gate)) => {
                R::Done(integer::finish::<builds::F64>(self.dtype, gate, r))
            }

            (R::Done(r), _) => R::Done(r),
            (R::Ordered(_) | R::Extended(_) | R::IntegerPartials(_), _) => {
                panic!("a register of one unit in another: registers of two units were mixed")
            }
        }
    }

    /// This many segments in a row.
    pub fn steps(&self, segments: u8, register: StageRegister) -> StageRegister {
        (0..segments).fold(register, |register, _| self.step(register))
    }

    /// All segments without registers, for one pair of lanes.
    #[inline]
    pub fn evaluate(&self, a: u64, b: u64) -> Packed {
        let mode = self.mode;
        match self.path {
            Path::Adder { negate_b } => with_build!(self.dtype, B => adder::evaluate::<B>(mode, a, b, negate_b)),
            Path::Multiplier => with_build!(self.dtype, B => multiplier::evaluate::<B>(mode, a, b)),
            Path::FloatComparator(selection) => {
                with_build!(self.dtype, B => comparator::evaluate_float::<B>(mode, selection, a, b))
            }
            Path::IntegerComparator(selection) => comparator::evaluate_integer(self.dtype, selection, a, b),
            Path::Integer(gate) => integer::evaluate::<builds::F64>(self.dtype, gate, a, b),
        }
    }

    /// The register that lies behind `segments` segments of this unit, holding zeros: its names and widths are right
    /// even while nothing is in the pipeline.
    pub fn blank(&self, segments: u8) -> StageRegister {
        self.steps(segments, StageRegister::Operands { a: 0, b: 0 })
    }

    /// Calls `sink` with name, width and value of every field of a register.
    pub fn fields(&self, register: &StageRegister, sink: &mut dyn FnMut(&'static str, u32, u128)) {
        use StageRegister as R;
        let f = self.format;
        let lane = self.dtype.bits();
        let exponent = f.exponent_bits + 2;
        let significand = f.precision();
        let mask = (1u128 << exponent) - 1;
        // Exponents are signed registers of two bits more than the field.
        let signed = |e: i32| e as u128 & mask;
        let mut put = |name, width, value| sink(name, width, value);
        // What stages of floating point hold in front.
        type Put<'a> = &'a mut dyn FnMut(&'static str, u32, u128);
        let front = |put: Put<'_>, special, sign: bool, subtract: Option<bool>, flags, e| {
            put("special", 2, special_code(special));
            put("sign", 1, sign as u128);
            if let Some(subtract) = subtract {
                put("subtract", 1, subtract as u128);
            }
            put("invalid", 1, invalid(flags));
            put("exponent", exponent, signed(e));
        };
        match register {
            R::Operands { a, b } => {
                put("a", lane, *a as u128);
                put("b", lane, *b as u128);
            }
            R::Compared(r) => {
                front(&mut put, r.special, r.sign, Some(r.subtract), r.flags, r.exponent);
                put("distance", f.exponent_bits, r.distance as u128);
                put("larger", lane, r.larger as u128);
                put("smaller", significand, r.smaller as u128);
            }
            R::Aligned(r) => {
                front(&mut put, r.special, r.sign, Some(r.subtract), r.flags, r.exponent);
                put("larger", lane.max(significand + 3), r.larger as u128);
                put("smaller", significand + 3, r.smaller as u128);
            }
            R::Summed(r) => {
                front(&mut put, r.special, r.sign, None, r.flags, r.exponent);
                put("sum", lane.max(significand + 4), r.sum as u128);
            }
            R::Factored(r) => {
                front(&mut put, r.special, r.sign, None, r.flags, r.exponent);
                put("a", lane, r.a as u128);
                put("b", significand, r.b as u128);
            }
            R::Partials(r) => {
                let half = multiplier::split(f);
                front(&mut put, r.special, r.sign, None, r.flags, r.exponent);
                put("lower", lane.max(significand + half), r.lower.to_u128());
                put("upper", significand + half, r.upper.to_u128());
            }
            R::Product(r) => {
                front(&mut put, r.special, r.sign, None, r.flags, r.exponent);
                put("product", lane.max(2 * significand), r.product.to_u128());
            }
            R::Normalised(r) => {
                front(&mut put, r.special, r.sign, None, r.flags, r.exponent);
                put("significand", lane.max(significand + 3), r.significand as u128);
            }
            R::Rounded(r) => {
                front(&mut put, r.special, r.sign, None, r.flags, r.exponent);
                put("significand", lane, r.significand as u128);
                put("inexact", 1, r.inexact as u128);
                put("tiny", 1, r.tiny as u128);
            }
            R::Keys(r) => {
                put("unordered", 1, r.unordered as u128);
                put("invalid", 1, invalid(r.flags));
                put("a_key", 64, r.a_key as u64 as u128);
                put("b_key", 64, r.b_key as u64 as u128);
                put("a", lane, r.a as u128);
                put("b", lane, r.b as u128);
            }
            R::Ordered(r) => {
                put("unordered", 1, r.unordered as u128);
                put("invalid", 1, invalid(r.flags));
                put("less", 1, r.less as u128);
                put("equal", 1, r.equal as u128);
                put("a", lane, r.a as u128);
                put("b", lane, r.b as u128);
            }
            R::Extended(r) => {
                put("negative", 1, r.negative as u128);
                put("a", 64, r.a as u128);
                put("b", 64, r.b as u128);
            }
            R::IntegerPartials(r) => {
                put("negative", 1, r.negative as u128);
                put("lower", 96, r.lower.to_u128());
                put("upper", 96, r.upper.to_u128());
            }
            R::Done(r) => {
                put("lane", lane, r.bits as u128);
                put("flags", 6, r.flags.bits() as u128);
            }
        }
    }
}

const fn special_code(special: Special) -> u128 {
    match special {
        Special::Number => 0,
        Special::Nan => 1,
        Special::Infinity => 2,
    }
}

fn invalid(flags: Flags) -> u128 {
    flags.contains(Flags::INVALID) as u128
}

impl StageRegister {
    /// The register's name in waves and stage listings.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Operands { .. } => "operands",
            Self::Compared(_) => "compared",
            Self::Aligned(_) => "aligned",
            Self::Summed(_) => "summed",
            Self::Factored(_) => "factored",
            Self::Partials(_) => "partials",
            Self::Product(_) => "product",
            Self::Normalised(_) => "normalised",
            Self::Rounded(_) => "rounded",
            Self::Keys(_) => "keys",
            Self::Ordered(_) => "ordered",
            Self::Extended(_) => "extended",
            Self::IntegerPartials(_) => "int_partials",
            Self::Done(_) => "done",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cut_covers_all_segments_once() {
        for stages in 1..=MAX_STAGES {
            let ends = cut(stages);
            assert_eq!(ends.len(), stages as usize);
            assert_eq!(ends.last(), Some(&SEGMENTS));
            assert!(ends.windows(2).all(|w| w[0] < w[1]));
        }
    }

    #[test]
    fn stepping_equals_evaluating() {
        use Selection::{Equal, Less, LessOrEqual, Max, MaxNum, Min, MinNum};
        let words = [0, 1, 0x7f, 0x80, 0x3f80_0001, 0x7fc0_0001, 0xbff0_0000_0000_0001, u64::MAX];
        let selected = [Min, Max, MinNum, MaxNum, Equal, LessOrEqual, Less].map(Function::Select);
        let gates = Op::ALL.iter().filter_map(|&op| Gate::of(op)).map(Function::Gate);
        for function in [Function::Add, Function::Sub, Function::Mul].into_iter().chain(selected).chain(gates) {
            for &dtype in DType::ALL {
                let unit = Unit::new(function, dtype, Mode::default());
                for a in words {
                    for b in words {
                        let (a, b) = (a & dtype.lane_mask(), b & dtype.lane_mask());
                        let stepped = unit.steps(SEGMENTS, StageRegister::Operands { a, b });
                        assert_eq!(
                            stepped,
                            StageRegister::Done(unit.evaluate(a, b)),
                            "{function:?} {dtype} {a:x} {b:x}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn every_field_fits_its_width() {
        let words = [0u64, 1, 0x7f80_0000, 0x7f7f_ffff, 0xffc0_0001, 0x7fef_ffff_ffff_ffff, u64::MAX];
        for &op in Op::ALL {
            for &dtype in DType::ALL {
                let Some(unit) = Unit::of(op, dtype, Mode::default()) else {
                    continue;
                };
                for a in words {
                    for b in words {
                        let mask = unit.dtype().lane_mask();
                        let mut register = StageRegister::Operands { a: a & mask, b: b & mask };
                        for segments in 0..=SEGMENTS {
                            assert_eq!(register.name(), unit.blank(segments).name());
                            unit.fields(&register, &mut |name, width, value| {
                                assert!(
                                    value >> width == 0,
                                    "{op} {dtype} {}.{name}: {value:x} in {width}",
                                    register.name()
                                );
                            });
                            register = unit.step(register);
                        }
                    }
                }
            }
        }
    }
}
