//! Tags of packets between ranks: which message of the receiver's, and which packet of it.
//!
//! | bits of id and number | field |
//! |---|---|
//! | id 11:8 | [`CLASS`] |
//! | id 7:0, then the 36 bits of `seq` | the message's number at its receiver, then the packet's number within it |

use watershed_fabric::Tag;

/// What ids of packets between ranks begin with. The lower eight bits belong to the message's number.
pub const CLASS: u16 = 0xe00;

/// Bits of a message's number and a packet's number within it, together.
pub const KEY_BITS: u32 = 44;

/// Bits of `seq`.
const SEQ_BITS: u32 = 36;

/// Id and number in the tag of a packet.
pub(crate) fn tag(number: u32, index_bits: u32, index: u64) -> (u16, u64) {
    let key = u64::from(number) << index_bits | index;
    debug_assert!(key >> KEY_BITS == 0 && index >> index_bits == 0, "message {number}, packet {index}");
    (CLASS | (key >> SEQ_BITS) as u16, key & ((1 << SEQ_BITS) - 1))
}

/// The other way.
pub fn number_and_index(tag: Tag, index_bits: u32) -> (u32, u64) {
    let key = u64::from(tag.id() & 0xff) << SEQ_BITS | tag.seq();
    ((key >> index_bits) as u32, key & ((1 << index_bits) - 1))
}

/// Whether a flit belongs to a message of a rank.
pub fn is_of_rank(tag: Tag) -> bool {
    tag.id() & 0xf00 == CLASS
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_fabric::Flit;

    #[test]
    fn number_and_packet_come_back() {
        for bits in [1, 20, 36, 40] {
            let most = (1u64 << (KEY_BITS - bits).min(32)) - 1;
            for number in [0, 1, most / 3, most] {
                for index in [0, 1, (1 << bits) - 1] {
                    let (id, seq) = tag(number as u32, bits, index);
                    let flit = Flit::part(id, 3, seq, 0, 2, 0);
                    assert!(is_of_rank(flit.tag) && id < 0xf00);
                    assert_eq!(number_and_index(flit.tag, bits), (number as u32, index));
                }
            }
        }
    }
}
