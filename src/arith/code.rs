//! Result codes: what the armed family says of a reduction in the four bits of its frame.
//!
//! | code | name | from the flag |
//! |-----:|------|---------------|
//! | 0 | OK | none |
//! | 1 | FLT_INEXACT | inexact (underflow has no code of its own: it comes with inexact) |
//! | 3 | FLT_OVERFLOW | overflow |
//! | 4 | FLT_INVALID | invalid |
//! | 5 | REP_INEXACT | reproducible sum inexact |
//! | 6 | INT_OVERFLOW | integer overflow |
//! | 7 | CONTR_OVERFLOW | none: more contributions than the wait count |
//! | 8 | OP_MISMATCH | none: contributions of different operations |
//!
//! One code a frame: of two, the numerically larger one is kept, so a code can only climb (R-AR-6). The numbers are those
//! of the public host driver (cxi); 2 and 9 to 15 are not assigned.
//!
//! Requirements: R-RC-1, R-AR-6 (`armed.md`).

use std::fmt;

use super::types::Flags;

/// A result code. The order is that of the numbers: `max` is the rule by which two codes meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, watershed_state::Saved)]
pub enum ResultCode {
    /// Nothing to report.
    #[default]
    Ok = 0,
    /// A floating-point result was rounded or flushed.
    FltInexact = 1,
    /// A floating-point result overflowed.
    FltOverflow = 3,
    /// A floating-point operation had no result, or met a signalling NaN.
    FltInvalid = 4,
    /// A reproducible sum dropped a word that was not zero.
    RepInexact = 5,
    /// An integer sum, or a word of a reproducible sum, wrapped.
    IntOverflow = 6,
    /// More contributions than the wait count.
    ContrOverflow = 7,
    /// Contributions of different operations.
    OpMismatch = 8,
}

impl ResultCode {
    /// Every code, ascending.
    pub const ALL: &'static [Self] = &[
        Self::Ok,
        Self::FltInexact,
        Self::FltOverflow,
        Self::FltInvalid,
        Self::RepInexact,
        Self::IntOverflow,
        Self::ContrOverflow,
        Self::OpMismatch,
    ];

    /// The four bits in the frame.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The code with this number; `None` for numbers that are not assigned.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.number() == number)
    }

    /// The name in the host driver.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::FltInexact => "FLT_INEXACT",
            Self::FltOverflow => "FLT_OVERFLOW",
            Self::FltInvalid => "FLT_INVALID",
            Self::RepInexact => "REP_INEXACT",
            Self::IntOverflow => "INT_OVERFLOW",
            Self::ContrOverflow => "CONTR_OVERFLOW",
            Self::OpMismatch => "OP_MISMATCH",
        }
    }

    /// The code that these flags come to.
    pub const fn of(flags: Flags) -> Self {
        if flags.contains(Flags::INT_OVERFLOW) {
            Self::IntOverflow
        } else if flags.contains(Flags::REP_INEXACT) {
            Self::RepInexact
        } else if flags.contains(Flags::INVALID) {
            Self::FltInvalid
        } else if flags.contains(Flags::OVERFLOW) {
            Self::FltOverflow
        } else if flags.is_empty() {
            Self::Ok
        } else {
            Self::FltInexact
        }
    }

    /// A flag that comes to this code; `None` for the two that no arithmetic raises.
    pub const fn flags(self) -> Option<Flags> {
        match self {
            Self::Ok => Some(Flags::NONE),
            Self::FltInexact => Some(Flags::INEXACT),
            Self::FltOverflow => Some(Flags::OVERFLOW),
            Self::FltInvalid => Some(Flags::INVALID),
            Self::RepInexact => Some(Flags::REP_INEXACT),
            Self::IntOverflow => Some(Flags::INT_OVERFLOW),
            Self::ContrOverflow | Self::OpMismatch => None,
        }
    }

    /// The larger of two codes.
    #[must_use]
    pub const fn climb(self, other: Self) -> Self {
        if (self as u8) < other as u8 { other } else { self }
    }
}

impl fmt::Display for ResultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_has_its_code_and_the_largest_wins() {
        for (flags, code) in [
            (Flags::NONE, 0),
            (Flags::INEXACT, 1),
            (Flags::UNDERFLOW | Flags::INEXACT, 1),
            (Flags::OVERFLOW | Flags::INEXACT, 3),
            (Flags::INVALID, 4),
            (Flags::INVALID | Flags::OVERFLOW | Flags::INEXACT, 4),
            (Flags::REP_INEXACT, 5),
            (Flags::INT_OVERFLOW | Flags::REP_INEXACT, 6),
        ] {
            assert_eq!(ResultCode::of(flags).number(), code, "{flags}");
        }
        for &a in ResultCode::ALL {
            for &b in ResultCode::ALL {
                assert_eq!(a.climb(b).number(), a.number().max(b.number()));
            }
            assert_eq!(ResultCode::from_number(a.number()), Some(a));
            assert!(a.flags().is_none_or(|flags| ResultCode::of(flags) == a));
        }
        assert_eq!(ResultCode::from_number(2), None);
    }
}
