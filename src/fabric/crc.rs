//! CRC-32 as Ethernet has it (polynomial 0x04c11db7, reflected), of frames and of flits in a link layer's replay
//! buffer.

const fn crc_table() -> [[u32; 256]; 8] {
    let mut table = [[0; 256]; 8];
    let mut n = 0;
    while n < 256 {
        let mut crc = n as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[0][n] = crc;
        n += 1;
    }
    let mut n = 0;
    while n < 256 {
        let mut k = 1;
        while k < 8 {
            let before = table[k - 1][n];
            table[k][n] = before >> 8 ^ table[0][(before & 0xff) as usize];
            k += 1;
        }
        n += 1;
    }
    table
}

/// Tables for eight bytes at a time: a frame's CRC is computed at every station.
static CRC: [[u32; 256]; 8] = crc_table();

/// CRC-32 of these bytes.
#[inline]
pub fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let word = u64::from_le_bytes(chunk.try_into().expect("eight bytes")) ^ u64::from(crc);
        crc = (0..8).fold(0, |sum, k| sum ^ CRC[7 - k][(word >> (8 * k)) as usize & 0xff]);
    }
    for &byte in chunks.remainder() {
        crc = crc >> 8 ^ CRC[0][((crc ^ u32::from(byte)) & 0xff) as usize];
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_sum_is_ethernets() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }
}
