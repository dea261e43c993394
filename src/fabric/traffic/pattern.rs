//! Traffic patterns: which end point sends to which, as Dally and Towles define them (*Principles and Practices of
//! Interconnection Networks*, chapter 3).
//!
//! N is the number of end points, s a source and d its destination; s_i is bit i of s, b the number of bits, s_x a
//! coordinate of s and k the side of its dimension.
//!
//! | pattern | destination | condition |
//! |---|---|---|
//! | transpose | d = (s mod m) m + s / m with m = sqrt N; on bits d_i = s_(i + b/2 mod b) | N is a square |
//! | bit complement | d_i = not s_i | N is a power of two |
//! | bit reverse | d_i = s_(b-i-1) | N is a power of two |
//! | shuffle | d_i = s_(i-1 mod b) | N is a power of two |
//! | tornado | d_x = s_x + ceil(k/2) - 1 mod k in every dimension | |
//! | neighbour | d_x = s_x + 1 mod k in every dimension | |
//!
//! *Chosen*: transpose is defined on coordinates of a square, which is the definition on bits wherever N is a power of
//! four, and more than that elsewhere. With several end points a switch, tornado and neighbour move between switches
//! and keep the place at the switch.

/// A pattern in which every source has one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permutation {
    /// Row and column change places.
    Transpose,
    /// All bits inverted.
    BitComplement,
    /// Bits in reverse order.
    BitReverse,
    /// Bits rotated left by one.
    Shuffle,
    /// Almost half way round every dimension.
    Tornado,
    /// One further in every dimension.
    Neighbour,
}

/// Why a pattern does not exist for a number of end points: what it needs.
pub type Needs = &'static str;

impl Permutation {
    /// Whether the pattern exists for `ends` end points.
    ///
    /// # Errors
    /// What it needs instead.
    pub fn fits(self, ends: u32) -> Result<(), Needs> {
        match self {
            Permutation::Transpose if ends.isqrt().pow(2) != ends => Err("a square number of end points"),
            Permutation::BitComplement | Permutation::BitReverse | Permutation::Shuffle
                if !ends.is_power_of_two() || ends < 2 =>
            {
                Err("a power of two of end points")
            }
            _ => Ok(()),
        }
    }

    /// The destination of source `s`. `sides` are the dimensions of the topology, the fastest first, their product times
    /// `concentration` is the number of end points; end points of a switch are numbered one after the other.
    pub fn destination(self, s: u32, sides: &[u32], concentration: u32) -> u32 {
        let ends = sides.iter().product::<u32>() * concentration;
        let bits = ends.ilog2();
        match self {
            Permutation::Transpose => {
                let side = ends.isqrt();
                s % side * side + s / side
            }
            Permutation::BitComplement => !s & (ends - 1),
            Permutation::BitReverse => s.reverse_bits() >> (u32::BITS - bits),
            Permutation::Shuffle => (s << 1 | s >> (bits - 1)) & (ends - 1),
            Permutation::Tornado => shifted(s, sides, concentration, |side| side.div_ceil(2) - 1),
            Permutation::Neighbour => shifted(s, sides, concentration, |_| 1),
        }
    }
}

/// Moves a source on in every dimension.
fn shifted(s: u32, sides: &[u32], concentration: u32, by: impl Fn(u32) -> u32) -> u32 {
    let (mut rest, mut stride, mut destination) = (s / concentration, concentration, s % concentration);
    for &side in sides {
        destination += (rest % side + by(side)) % side * stride;
        rest /= side;
        stride *= side;
    }
    destination
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pattern: Permutation, sides: &[u32], concentration: u32) -> Vec<u32> {
        let ends = sides.iter().product::<u32>() * concentration;
        (0..ends).map(|s| pattern.destination(s, sides, concentration)).collect()
    }

    /// The text-book formulae on strings of bits, most significant first.
    fn on_bits(ends: u32, formula: impl Fn(Vec<char>) -> Vec<char>) -> Vec<u32> {
        let bits = ends.ilog2() as usize;
        let number = |digits: Vec<char>| u32::from_str_radix(&String::from_iter(digits), 2).unwrap();
        (0..ends).map(|s| number(formula(format!("{s:0bits$b}").chars().collect()))).collect()
    }

    #[test]
    fn bit_patterns_follow_their_formulae() {
        for ends in [2u32, 4, 8, 64, 512, 4096] {
            let sides = [ends];
            let complement = on_bits(ends, |digits| digits.iter().map(|&d| if d == '0' { '1' } else { '0' }).collect());
            assert_eq!(all(Permutation::BitComplement, &sides, 1), complement);
            let reverse = on_bits(ends, |digits| digits.into_iter().rev().collect());
            assert_eq!(all(Permutation::BitReverse, &sides, 1), reverse);
            let shuffle = on_bits(ends, |mut digits| {
                digits.rotate_left(1);
                digits
            });
            assert_eq!(all(Permutation::Shuffle, &sides, 1), shuffle);
        }
        for ends in [4u32, 16, 64, 4096] {
            let halves = on_bits(ends, |mut digits| {
                let half = digits.len() / 2;
                digits.rotate_left(half);
                digits
            });
            assert_eq!(all(Permutation::Transpose, &[ends], 1), halves);
        }
    }

    #[test]
    fn transpose_swaps_coordinates_of_any_square() {
        for side in [1u32, 3, 8, 10] {
            let found = all(Permutation::Transpose, &[side, side], 1);
            for (y, x) in (0..side).flat_map(|y| (0..side).map(move |x| (y, x))) {
                assert_eq!(found[(y * side + x) as usize], x * side + y);
            }
        }
    }

    #[test]
    fn tornado_and_neighbour_move_in_every_dimension() {
        assert_eq!(all(Permutation::Tornado, &[8], 1), [3, 4, 5, 6, 7, 0, 1, 2]);
        assert_eq!(all(Permutation::Tornado, &[5], 1), [2, 3, 4, 0, 1]);
        assert_eq!(all(Permutation::Neighbour, &[4], 1), [1, 2, 3, 0]);
        for (sides, concentration) in [(vec![4, 4], 1), (vec![3, 5, 2], 1), (vec![4, 3], 4)] {
            for pattern in [Permutation::Tornado, Permutation::Neighbour] {
                for (s, d) in all(pattern, &sides, concentration).into_iter().enumerate() {
                    let (mut s, mut d) = (s as u32, d);
                    assert_eq!(s % concentration, d % concentration);
                    (s, d) = (s / concentration, d / concentration);
                    for &side in &sides {
                        let by = if pattern == Permutation::Neighbour { 1 } else { side.div_ceil(2) - 1 };
                        assert_eq!((s + by) % side, d % side, "{sides:?}");
                        (s, d) = (s / side, d / side);
                    }
                }
            }
        }
    }

    #[test]
    fn every_pattern_is_a_permutation_where_it_exists() {
        use Permutation::{BitComplement, BitReverse, Neighbour, Shuffle, Tornado, Transpose};
        for sides in [vec![16], vec![4, 4], vec![2, 2, 4], vec![8, 8], vec![3, 3], vec![5]] {
            let ends = sides.iter().product();
            for pattern in [Transpose, BitComplement, BitReverse, Shuffle, Tornado, Neighbour] {
                if pattern.fits(ends).is_ok() {
                    let mut found = all(pattern, &sides, 1);
                    found.sort_unstable();
                    assert!(found.into_iter().eq(0..ends), "{pattern:?} {sides:?}");
                }
            }
        }
        assert!(Transpose.fits(8).is_err() && Shuffle.fits(12).is_err() && BitReverse.fits(1).is_err());
        assert!(Transpose.fits(9).is_ok() && Shuffle.fits(16).is_ok() && Tornado.fits(7).is_ok());
    }
}
