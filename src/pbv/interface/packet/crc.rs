//! The CRC of a frame: 24 bits, generator 0x864CFB (that of RFC 9580), which starts as 0xB704CE *\[chosen\]*.
//!
//! It finds every odd number of wrong bits and every pair of them in the longest frame; of anything else one in
//! 16,777,216 passes. The sender of a frame computes it and the addressee checks it; switches and engines that a frame
//! passes do not.

const GENERATOR: u32 = 0x86_4cfb;
const START: u32 = 0xb7_04ce;
const MASK: u32 = 0xff_ffff;

/// Where the CRC lies in a frame: the last three bytes of DW 7.
const PLACE: std::ops::Range<usize> = 29..32;

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut n = 0;
    while n < 256 {
        let mut crc = (n as u32) << 16;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x80_0000 != 0 { (crc << 1 ^ GENERATOR) & MASK } else { crc << 1 };
            bit += 1;
        }
        table[n] = crc;
        n += 1;
    }
    table
};

/// The CRC of bytes, the most significant bit of each first.
pub fn crc24(bytes: impl IntoIterator<Item = u8>) -> u32 {
    let step = |crc: u32, byte: u8| (crc << 8 ^ TABLE[((crc >> 16) as u8 ^ byte) as usize]) & MASK;
    bytes.into_iter().fold(START, step)
}

/// The CRC that a frame must have.
pub fn of_frame(bytes: &[u8]) -> u32 {
    let (before, behind) = (&bytes[..PLACE.start], &bytes[PLACE.end..]);
    crc24(before.iter().chain(&[0; 3]).chain(behind).copied())
}

/// Gives a frame its CRC.
pub fn seal(bytes: &mut [u8]) {
    let crc = of_frame(bytes);
    bytes[PLACE].copy_from_slice(&crc.to_be_bytes()[1..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_is_that_of_the_generator() {
        assert_eq!(crc24(*b"123456789"), 0x21_cf02);
    }

    #[test]
    fn one_and_two_wrong_bits_of_the_longest_frame_are_seen() {
        let mut bytes = vec![0; 4112];
        seal(&mut bytes);
        let mut rng = watershed_kernel::Rng::new(24, 0);
        for _ in 0..2000 {
            let mut wrong = bytes.clone();
            let (a, b) = (rng.below(8 * 4112) as usize, rng.below(8 * 4112) as usize);
            wrong[a / 8] ^= 1 << (a % 8);
            if a != b {
                wrong[b / 8] ^= 1 << (b % 8);
            }
            let given = u32::from_be_bytes([0, wrong[29], wrong[30], wrong[31]]);
            assert_ne!(given, of_frame(&wrong), "{a} {b}");
        }
    }
}
