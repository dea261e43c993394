//! Lane packing: a 64-bit word carries one, two, four or eight lanes.
//!
//! ```text
//!   63      48 47      32 31      16 15       0
//!  +----------+----------+----------+----------+
//!  |  lane 3  |  lane 2  |  lane 1  |  lane 0  |   f16 or bf16; lane 0 lies lowest  [chosen]
//!  +----------+----------+----------+----------+
//! ```
//!
//! All lanes of a word do the same operation. Requirement: A-FMT-1 (`common.md`, section 1).

use super::types::DType;

/// Lane `index` of a word, right-justified.
#[inline]
pub const fn lane(dtype: DType, word: u64, index: u32) -> u64 {
    (word >> (index * dtype.bits())) & dtype.lane_mask()
}

/// A word with every lane of a pair of words put through `function`.
#[inline]
pub fn lanes_apply(dtype: DType, a: u64, b: u64, mut function: impl FnMut(u64, u64) -> u64) -> u64 {
    let mut word = 0;
    for index in 0..dtype.lanes() {
        let result = function(lane(dtype, a, index), lane(dtype, b, index)) & dtype.lane_mask();
        word |= result << (index * dtype.bits());
    }
    word
}

/// Packs right-justified lanes into a word, lane 0 first; missing lanes are zero.
///
/// # Panics
///
/// If there are more lanes than a word holds.
pub fn pack_lanes(dtype: DType, lanes: &[u64]) -> u64 {
    assert!(lanes.len() <= dtype.lanes() as usize, "{} lanes of {dtype} do not fit a 64-bit word", lanes.len());
    lanes.iter().enumerate().fold(0, |word, (k, lane)| word | ((lane & dtype.lane_mask()) << (k as u32 * dtype.bits())))
}

/// The right-justified lanes of a word, lane 0 first.
pub fn unpack_lanes(dtype: DType, word: u64) -> impl Iterator<Item = u64> {
    (0..dtype.lanes()).map(move |index| lane(dtype, word, index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpacking_undoes_packing() {
        let word = 0x8877_6655_4433_2211;
        for &dtype in DType::ALL {
            let lanes: Vec<u64> = unpack_lanes(dtype, word).collect();
            assert_eq!(lanes.len(), dtype.lanes() as usize);
            assert_eq!(pack_lanes(dtype, &lanes), word);
        }
        assert_eq!(lane(DType::F16, word, 1), 0x4433);
    }

    #[test]
    fn a_carry_never_crosses_a_lane() {
        let sum = lanes_apply(DType::U32, 0x0000_0001_ffff_ffff, 1, u64::wrapping_add);
        assert_eq!(sum, 0x0000_0001_0000_0000);
    }
}
