//! Integer unit: wrapping add, subtract and multiply, signed and unsigned, and the bitwise gates.
//!
//! ```text
//!          extended              partials              result
//!  a -->+------------+        +-----------+         +---------+
//!       | extend to  |        | two       |         | add /   |--> lane (wrapped)
//!       | 64 bits,   |---|>---| partial   |---|>----| sub /   |
//!  b -->| magnitudes |        | products  |         | gates   |--> int_overflow
//!       +------------+        +-----------+         +---------+
//!          stage 0               stage 1               stage 2       (stages 3 to 5 only hold the result)
//! ```
//!
//! | operation | result | int_overflow |
//! |-----------|--------|--------------|
//! | add, subtract | modulo 2^width | signed: the exact result does not fit; unsigned: carry or borrow out *\[chosen\]* |
//! | multiply | modulo 2^width | the exact product does not fit |
//! | AND, OR, XOR, NAND, NOR, XNOR | every bit on its own | never |
//!
//! Add, subtract and the gates need stage 2 only; they hold their operands in stage 1. The multiplier works on
//! magnitudes and splits b as the floating-point [multiplier](super::multiplier) does, so both could share an array.
//!
//! Parameters and timing: as the [adder](super::adder).
//!
//! Requirements: A-OP-1 (`common.md`, section 1); R-OP-1 (`armed.md`) for wrapping and the overflow flag.
//!
//! ```
//! use watershed_arith::format::builds::F64;
//! use watershed_arith::integer::{Gate, extend, finish, multiply};
//! use watershed_arith::{DType, Mode};
//!
//! let product = |a: i32, b: i32| {
//!     let extended = extend::<F64>(DType::I32, Gate::Mul, a as u32 as u64, b as u32 as u64);
//!     finish::<F64>(DType::I32, Gate::Mul, multiply::<F64>(Gate::Mul, extended)).bits as u32 as i32
//! };
//! assert_eq!(product(-7, 6), -42);
//! assert_eq!(product(1 << 30, 4), 0); // modulo 2^32
//! ```

use super::format::{Build, Fault};
use super::multiplier::Wide;
use super::round::Packed;
use super::types::{DType, Flags, Op};

/// What the integer unit computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, watershed_state::Saved)]
pub enum Gate {
    /// a + b.
    Add,
    /// a - b.
    Sub,
    /// a x b.
    Mul,
    /// a AND b.
    And,
    /// a OR b.
    Or,
    /// a XOR b.
    Xor,
    /// NOT (a AND b).
    Nand,
    /// NOT (a OR b).
    Nor,
    /// NOT (a XOR b).
    Xnor,
}

impl Gate {
    /// The gate of a bitwise operation.
    pub const fn of(op: Op) -> Option<Self> {
        Some(match op {
            Op::And => Self::And,
            Op::Or => Self::Or,
            Op::Xor => Self::Xor,
            Op::Nand => Self::Nand,
            Op::Nor => Self::Nor,
            Op::Xnor => Self::Xnor,
            _ => return None,
        })
    }
}

/// Register after stage 0, *extend*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, watershed_state::Saved)]
pub struct Extended {
    /// Multiply only: the product is negative.
    pub negative: bool,
    /// a, extended to 64 bits; for a multiplication its magnitude.
    pub a: u64,
    /// b, extended to 64 bits; for a multiplication its magnitude.
    pub b: u64,
}

/// Register after stage 1, *partial products* (a multiplication) or the operands (everything else).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, watershed_state::Saved)]
pub struct Partials {
    /// Multiply only: the product is negative.
    pub negative: bool,
    /// Magnitude of a times the lower half of b's magnitude; or a.
    pub lower: Wide,
    /// Magnitude of a times the upper half of b's magnitude; or b.
    pub upper: Wide,
}

/// Stage 0: extend to 64 bits; a multiplication takes magnitudes.
#[inline]
pub const fn extend<B: Build>(dtype: DType, gate: Gate, a: u64, b: u64) -> Extended {
    let a = extend_lane(dtype, a);
    let b = if matches!(B::FAULT, Fault::IntegerZeroExtends) { b } else { extend_lane(dtype, b) };
    if matches!(gate, Gate::Mul) && dtype.is_signed_integer() {
        return Extended { negative: ((a ^ b) as i64) < 0, a: (a as i64).unsigned_abs(), b: (b as i64).unsigned_abs() };
    }
    Extended { negative: false, a, b }
}

const fn extend_lane(dtype: DType, lane: u64) -> u64 {
    let up = 64 - dtype.bits();
    if dtype.is_signed_integer() { (((lane << up) as i64) >> up) as u64 } else { (lane << up) >> up }
}

/// Stage 1: partial products; other operations hold their operands.
#[inline]
pub const fn multiply<B: Build>(gate: Gate, e: Extended) -> Partials {
    let (lower, upper) = if matches!(gate, Gate::Mul) {
        let upper = if matches!(B::FAULT, Fault::IntegerDropPartial) { 0 } else { e.a as u128 * (e.b >> 32) as u128 };
        (e.a as u128 * (e.b & 0xffff_ffff) as u128, upper)
    } else {
        (e.a as u128, e.b as u128)
    };
    Partials { negative: e.negative, lower: Wide::from_u128(lower), upper: Wide::from_u128(upper) }
}

/// Stage 2: the result and the overflow flag.
#[inline]
pub const fn finish<B: Build>(dtype: DType, gate: Gate, p: Partials) -> Packed {
    let (a, b) = (p.lower.low, p.upper.low);
    let exact: i128 = match gate {
        Gate::And => return gate_result(dtype, a & b),
        Gate::Or => return gate_result(dtype, a | b),
        Gate::Xor => return gate_result(dtype, a ^ b),
        Gate::Nand => return gate_result(dtype, !(a & b)),
        Gate::Nor => return gate_result(dtype, !(a | b)),
        Gate::Xnor => return gate_result(dtype, !(a ^ b)),
        Gate::Add => widen(dtype, a) + widen(dtype, b),
        Gate::Sub => widen(dtype, a) - widen(dtype, b),
        Gate::Mul => {
            let magnitude = p.lower.to_u128() + (p.upper.to_u128() << 32);
            // An unsigned 64-bit product can need all 128 bits; what counts is only that it does not fit.
            let wrapped = if p.negative { magnitude.wrapping_neg() } else { magnitude } as u64;
            let limit: u128 = if dtype.is_signed_integer() {
                (1 << (dtype.bits() - 1)) - 1 + p.negative as u128
            } else {
                dtype.lane_mask() as u128
            };
            return Packed {
                bits: wrapped & dtype.lane_mask(),
                flags: Flags::NONE.with_if(Flags::INT_OVERFLOW, magnitude > limit),
            };
        }
    };
    let wrapped = exact as u64 & dtype.lane_mask();
    let carries = matches!(B::FAULT, Fault::IntegerCarryIsOverflow);
    let fits =
        if carries { exact as u128 >> dtype.bits() == 0 } else { widen(dtype, extend_lane(dtype, wrapped)) == exact };
    Packed { bits: wrapped, flags: Flags::NONE.with_if(Flags::INT_OVERFLOW, !fits) }
}

/// One bit more than 64 decides about overflow; the model uses a wide integer for it.
const fn widen(dtype: DType, extended: u64) -> i128 {
    if dtype.is_signed_integer() { extended as i64 as i128 } else { extended as i128 }
}

const fn gate_result(dtype: DType, bits: u64) -> Packed {
    Packed { bits: bits & dtype.lane_mask(), flags: Flags::NONE }
}

/// The whole unit without registers.
#[inline]
pub const fn evaluate<B: Build>(dtype: DType, gate: Gate, a: u64, b: u64) -> Packed {
    finish::<B>(dtype, gate, multiply::<B>(gate, extend::<B>(dtype, gate, a, b)))
}

#[cfg(test)]
mod tests {
    use super::super::format::builds::F64;
    use super::*;

    fn run(dtype: DType, gate: Gate, a: u64, b: u64) -> (u64, bool) {
        let p = evaluate::<F64>(dtype, gate, a, b);
        (p.bits, p.flags == Flags::INT_OVERFLOW)
    }

    #[test]
    fn sums_wrap_and_say_so() {
        assert_eq!(run(DType::I32, Gate::Add, 0x7fff_ffff, 1), (0x8000_0000, true));
        assert_eq!(run(DType::I32, Gate::Add, 0xffff_ffff, 1), (0, false));
        assert_eq!(run(DType::U32, Gate::Add, 0xffff_ffff, 1), (0, true));
        assert_eq!(run(DType::I64, Gate::Add, 1 << 63, 1 << 63), (0, true));
        assert_eq!(run(DType::U64, Gate::Sub, 0, 1), (u64::MAX, true));
        assert_eq!(run(DType::I64, Gate::Sub, 0, 1), (u64::MAX, false));
    }

    #[test]
    fn products_wrap_and_say_so() {
        assert_eq!(run(DType::I32, Gate::Mul, 0x8000_0000, 1), (0x8000_0000, false));
        assert_eq!(run(DType::I32, Gate::Mul, 0x8000_0000, 0xffff_ffff), (0x8000_0000, true));
        assert_eq!(run(DType::I64, Gate::Mul, 1 << 63, u64::MAX), (1 << 63, true));
        assert_eq!(run(DType::I64, Gate::Mul, 1 << 62, 2), (1 << 63, true));
        assert_eq!(run(DType::I64, Gate::Mul, 1 << 62, (-2i64) as u64), (1 << 63, false));
        assert_eq!(run(DType::U64, Gate::Mul, u64::MAX, u64::MAX), (1, true));
        assert_eq!(run(DType::U32, Gate::Mul, 0xffff, 0x1_0001), (0xffff_ffff, false));
    }

    #[test]
    fn gates_stay_in_their_lane() {
        assert_eq!(run(DType::U32, Gate::Nand, 0xff00_ff00, 0xffff_0000), (0x00ff_ffff, false));
        assert_eq!(run(DType::U32, Gate::Nor, 0, 0), (0xffff_ffff, false));
        assert_eq!(run(DType::U64, Gate::Xnor, 5, 5), (u64::MAX, false));
    }
}
