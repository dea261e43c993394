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
#[inline]
pub fn pack_lanes(dtype: DType, lanes: &[u64]) -> u64 {
    assert!(lanes.len() <= dtype.lanes() as usize, "{} lanes of {dtype} do not fit a 64-bit word", lanes.len());
    lanes.iter().enumerate().fold(0, |word, (k, lane)| word | ((lane & dtype.lane_mask()) << (k as u32 * dtype.bits())))
}

/// The right-justified lanes of a word, lane 0 first.
#[inline]
pub fn unpack_lanes(dtype: DType, word: u64) -> impl Iterator<Item = u64> {
    (0..dtype.lanes()).map(move |index| lane(dtype, word, index))
}

/// Elements in words, element 0 in lane 0 of the first; missing lanes of the last word are zero.
// Never inlined, as the two below: callers are compiled without optimisation, and a row is long.
#[inline(never)]
pub fn pack_words(dtype: DType, elements: &[u64]) -> Vec<u64> {
    elements.chunks(dtype.lanes() as usize).map(|lanes| pack_lanes(dtype, lanes)).collect()
}

/// The first `count` elements in words; the last word may have lanes that are not used.
#[inline(never)]
pub fn unpack_words(dtype: DType, words: &[u64], count: usize) -> Vec<u64> {
    words.iter().flat_map(|&word| unpack_lanes(dtype, word)).take(count).collect()
}

/// Elements as bytes: each little-endian and as wide as its type.
#[inline(never)]
pub fn element_bytes(dtype: DType, elements: &[u64]) -> Vec<u8> {
    let width = dtype.bits() as usize / 8;
    let mut bytes = Vec::with_capacity(elements.len() * width);
    for element in elements {
        bytes.extend_from_slice(&element.to_le_bytes()[..width]);
    }
    bytes
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
    fn rows_of_any_length_come_back_from_words() {
        for &dtype in DType::ALL {
            for count in 0..=2 * dtype.lanes() as usize + 1 {
                let row: Vec<u64> = (1..=count as u64).collect();
                let words = pack_words(dtype, &row);
                assert_eq!(words.len(), count.div_ceil(dtype.lanes() as usize), "{count} elements of {dtype}");
                assert_eq!(unpack_words(dtype, &words, count), row, "{count} elements of {dtype}");
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let of_row = element_bytes(dtype, &row);
                assert_eq!(of_row.len() * 8, count * dtype.bits() as usize, "{count} elements of {dtype}");
                assert_eq!(of_row, bytes[..of_row.len()], "lane 0 lies lowest: {count} elements of {dtype}");
                let lanes = words.len() * dtype.lanes() as usize;
                let padded = unpack_words(dtype, &words, lanes);
                assert_eq!(
                    (padded.len(), padded[count..].iter().sum::<u64>()),
                    (lanes, 0),
                    "{count} elements of {dtype}"
                );
            }
        }
        assert_eq!(pack_words(DType::F16, &[1, 2, 3, 4, 5]), [0x0004_0003_0002_0001, 5]);
    }

    #[test]
    fn a_carry_never_crosses_a_lane() {
        let sum = lanes_apply(DType::U32, 0x0000_0001_ffff_ffff, 1, u64::wrapping_add);
        assert_eq!(sum, 0x0000_0001_0000_0000);
    }
}
