//! Operations that end points compose from the operations of engines: preparing rounds, and software that converts a
//! result (description (48); the 136 names of the PBV source include a mean).
//!
//! | operation | rounds on the wire, each time | contribution of an end point | use of the result |
//! |---|---|---|---|
//! | plain | 1: the opcode | its operands | nothing |
//! | mean | 1: the opcode, a sum | its operands | divides once by the number of contributions |
//! | deterministic sum | 2: INT MAX, INT SUM | the exponents of its operands; then the operands as fixed-point integers below the largest exponent | the double of the sum of integers |
//!
//! A deterministic sum has the same bits in every order of arrival, over every tree and with every retry, because
//! integer maxima and sums do; see [`arith::fixed`](watershed_arith::fixed) for its numbers and its error. It costs the
//! latency of two rounds. Its second round needs the result of the first: both belong to one flow. An error in the
//! first round is one of the second, too: its code travels with the contributions.

use watershed_arith::divider::word_quotient;
use watershed_arith::fixed;
use watershed_arith::quad::Opcode;
use watershed_arith::{DType, Mode, Quad, ResultCode};

/// How an operation is composed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Composition {
    /// Of nothing but its opcode.
    #[default]
    Plain,
    /// A sum that is divided by the number of contributions.
    Mean,
    /// A maximum of exponents, then a sum of integers.
    Deterministic,
}

/// Opcodes of the two rounds of a deterministic sum.
const INT_MAX: u8 = 0x11;
const INT_SUM: u8 = 0x14;

/// A code that says that there is no result.
pub(crate) fn is_error(code: ResultCode) -> bool {
    matches!(code, ResultCode::OpMismatch | ResultCode::ContrOverflow)
}

impl Composition {
    /// Data rounds on the wire for each one that is asked for.
    pub fn rounds_each(self) -> u32 {
        if self == Composition::Deterministic { 2 } else { 1 }
    }

    /// Whether a data round on the wire prepares the next one, and has no result of its own.
    pub fn prepares(self, data: u32) -> bool {
        self == Composition::Deterministic && data.is_multiple_of(2)
    }

    /// The opcode of a data round.
    pub fn opcode(self, data: u32, op: &'static Opcode) -> &'static Opcode {
        match self {
            Composition::Plain | Composition::Mean => op,
            Composition::Deterministic => {
                let number = if self.prepares(data) { INT_MAX } else { INT_SUM };
                Opcode::from_number(number).expect("it is one of the integers'")
            }
        }
    }

    /// What a node with these operands contributes to a data round; `before` is the result of the round before, of this
    /// many contributions.
    pub fn contribution(
        self,
        data: u32,
        operands: &[Quad],
        before: Option<Quad>,
        contributions: u64,
        fold: impl Fn(Quad, Quad) -> Quad,
    ) -> Quad {
        let mut quads = operands.iter().copied();
        match (self, before) {
            (Composition::Plain | Composition::Mean, _) => {
                let first = quads.next().unwrap_or_default();
                quads.fold(first, fold)
            }
            (Composition::Deterministic, _) if self.prepares(data) => {
                let most = |lanes: [u64; 4], quad: Quad| {
                    std::array::from_fn(|lane| lanes[lane].max(fixed::exponent(quad.lanes[lane])))
                };
                Quad::of(quads.fold([0; 4], most))
            }
            (Composition::Deterministic, Some(before)) if is_error(before.code) => {
                Quad { code: before.code, ..Quad::default() }
            }
            (Composition::Deterministic, before) => {
                let largest = before.expect("the maximum is there before the sum").lanes;
                quads.fold(Quad::default(), |sum, quad| scaled(sum, quad.lanes, largest, contributions))
            }
        }
    }

    /// What an end point makes of the result of a data round.
    pub fn value(self, data: u32, quad: Quad, before: Option<Quad>, contributions: u64, mode: Mode) -> Quad {
        if is_error(quad.code) || self.prepares(data) {
            return quad;
        }
        let lane = |lane: usize| match self {
            Composition::Plain => None,
            Composition::Mean => Some(word_quotient(DType::F64, mode, quad.lanes[lane], contributions as u32)),
            Composition::Deterministic => {
                let (sum, largest) = (quad.lanes[lane] as i64, before?.lanes[lane]);
                let bits = fixed::fraction_bits(contributions);
                Some(match largest {
                    fixed::SPECIAL => fixed::from_special(sum),
                    largest => fixed::from_fixed(sum, largest, bits),
                })
            }
        };
        let mut value = quad;
        for at in 0..4 {
            let Some((bits, flags)) = lane(at) else { return quad };
            value.lanes[at] = bits;
            value.code = value.code.climb(ResultCode::of(flags));
        }
        value
    }
}

/// A node's integers, and one more of its operands.
fn scaled(mut sum: Quad, operand: [u64; 4], largest: [u64; 4], contributions: u64) -> Quad {
    let bits = fixed::fraction_bits(contributions);
    for (lane, (double, largest)) in operand.into_iter().zip(largest).enumerate() {
        if largest == fixed::SPECIAL {
            sum.lanes[lane] |= fixed::special(double) as u64;
            continue;
        }
        let (integer, lost) = fixed::to_fixed(double, largest, bits);
        sum.lanes[lane] = sum.lanes[lane].wrapping_add_signed(integer);
        if lost {
            sum.code = sum.code.climb(ResultCode::FltInexact);
        }
    }
    sum
}
