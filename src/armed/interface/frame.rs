//! The 84-byte reduction frame, byte for byte, and its Ethernet form (requirement R-FRM-1; description (94), (95), (98)).
//!
//! ```text
//!   0                  20         31 32    36             48                               80   84
//!   +------------------+----------+-+------+--------------+--------------------------------+----+
//!   |  fabric header   | Portals  |p| rank |  reduction   |  data: four 64-bit lanes       |CRC |
//!   |                  | header   | |      |  header      |  lane 0 first                  |    |
//!   +------------------+----------+-+------+--------------+--------------------------------+----+
//!   flit 0   1   2     | 3        4        |       5      |  6       7       8       9     | 10 |
//! ```
//!
//! | bytes | field | from |
//! |---|---|---|
//! | 0-3 | destination fabric address, see [`Address`] | cxi; its place in the header *chosen* |
//! | 4-7 | source fabric address: the end point's number | *chosen* |
//! | 8-9 | VNI, the protection key | place *chosen* |
//! | 10-11 | frame length in bytes, 84 | *chosen* |
//! | 12-19 | zero | *chosen* |
//! | 20 | Portals command: [`COMMAND`] | *chosen* |
//! | 21-22 | process index at the target | *chosen* |
//! | 23-26 | request number of the sender; of a frame that descends a tree made at run time: see [`TreeNames`] | *chosen* |
//! | 27-28 | process index at the sender | *chosen* |
//! | 29-30 | payload length in bytes, 49 | *chosen* |
//! | 31 | pad, zero | cxi |
//! | 32-35 | rank of the sender | cxi |
//! | 36-47 | reduction header, see [`Header`] | cxi |
//! | 48-79 | four lanes, big-endian | cxi |
//! | 80-83 | CRC-32 of bytes 0 to 79 (polynomial 0x04c11db7, reflected, as Ethernet's) | length from the source, polynomial *chosen* |
//!
//! The source gives the lengths of the parts; of the first 31 bytes the model defines only what engines need. All
//! numbers are big-endian, so a word holds eight bytes in their order; the last word holds the CRC in its upper half.
//! Lanes, and the low 64 bits of the reduction header, fill whole words. Flits are stretches of these words ([`FlitSize`]); the
//! destination address stands in the first one, whatever its size.
//!
//! [`FlitSize`]: watershed_fabric::FlitSize
//!
//! **Ethernet form** (Soft Portals): destination and source MAC address, EtherType, then bytes 0 to 79 and the FCS over all
//! of it: 98 bytes. The destination MAC is 03:00 and the destination fabric address *chosen*, so that it is a multicast
//! address; the source MAC is 02:00 and the source fabric address.

use super::header::{Address, AddressError, Header, HeaderError};
use watershed_arith::Quad;
pub use watershed_fabric::crc32;

/// Bytes of a frame.
pub const FRAME_BYTES: usize = 84;
/// Bytes of a frame before its CRC.
const CHECKED_BYTES: usize = FRAME_BYTES - 4;
/// Words of a frame.
pub const FRAME_WORDS: usize = FRAME_BYTES.div_ceil(8);
/// Bytes of an Ethernet header.
const ETHERNET_HEADER: usize = 14;
/// Bytes of a frame in its Ethernet form.
pub const ETHERNET_BYTES: usize = FRAME_BYTES + ETHERNET_HEADER;
/// Words of a frame in its Ethernet form.
pub const ETHERNET_WORDS: usize = ETHERNET_BYTES.div_ceil(8);
/// EtherType of the Ethernet form: the first one for local experiments (IEEE 802) *chosen*.
pub const ETHERTYPE: u16 = 0x88b5;
/// The Portals command of a reduction frame *chosen*.
pub const COMMAND: u8 = 0x52;
/// Payload bytes that the Portals header announces.
const PAYLOAD_BYTES: u16 = 49;

/// The trees of a job whose trees are made at run time, as its root names them in all frames that descend: in the place of the
/// request number *chosen*. A leaf learns its trees from them, because the keys of a job alone do not make another job's tree
/// its own: a frame that descends a tree that it does not name is none of the job's.
///
/// | bits | field |
/// |---|---|
/// | 31 | set |
/// | 30 | the job has two trees |
/// | 25:13 | multicast id of the second tree, or zero |
/// | 12:0 | multicast id of the first tree |
///
/// ```
/// use watershed_armed_interface::frame::TreeNames;
///
/// let names = TreeNames::of(&[7, 9]);
/// assert_eq!(TreeNames::decode(names.encode()), Some(names));
/// assert_eq!(names.ids(), [7, 9]);
/// assert_eq!(TreeNames::decode(7), None);
/// assert_eq!(TreeNames::decode(1 << 31 | 9 << 13 | 7), None); // a second one, and only one
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeNames {
    ids: [u16; 2],
    trees: usize,
}

impl TreeNames {
    /// Those of these multicast ids of 13 bits: one, or two.
    ///
    /// # Panics
    /// If there is none.
    pub fn of(ids: &[u16]) -> TreeNames {
        TreeNames { ids: [ids[0], ids.get(1).copied().unwrap_or(0)], trees: ids.len() }
    }

    /// The multicast ids.
    pub fn ids(&self) -> &[u16] {
        &self.ids[..self.trees]
    }

    /// Their 32 bits.
    pub fn encode(self) -> u32 {
        let [first, second] = self.ids.map(u32::from);
        1 << 31 | u32::from(self.trees == 2) << 30 | second << 13 | first
    }

    /// The names in 32 bits, if these are some.
    pub fn decode(bits: u32) -> Option<TreeNames> {
        let [first, second] = [bits, bits >> 13].map(|bits| (bits & 0x1fff) as u16);
        let names = if bits >> 30 & 1 == 1 { TreeNames::of(&[first, second]) } else { TreeNames::of(&[first]) };
        (names.encode() == bits).then_some(names)
    }
}

/// Portals header fields; stored once in the reduction state (description (95)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, watershed_state::Saved)]
pub struct Portals {
    /// Process index at the target.
    pub target: u16,
    /// Request number of the sender.
    pub request: u32,
    /// Process index at the sender.
    pub initiator: u16,
}

/// A reduction frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, watershed_state::Saved)]
pub struct Frame {
    /// Destination: the tree and the reduction on it.
    pub address: Address,
    /// Source fabric address.
    pub source: u32,
    /// Virtual network identifier, the protection key.
    pub vni: u16,
    /// Portals header.
    pub portals: Portals,
    /// Rank of the sender.
    pub rank: u32,
    /// Reduction header.
    pub header: Header,
    /// The lanes, lane 0 first.
    pub lanes: [u64; 4],
}

/// Why bytes are no reduction frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The wrong number of bytes.
    #[error("{got} bytes; a reduction frame has {FRAME_BYTES}, or {ETHERNET_BYTES} behind an Ethernet header")]
    Length {
        /// How many there are.
        got: usize,
    },
    /// The check sum is wrong.
    #[error("the CRC is {got:#010x}, of these bytes it is {computed:#010x}")]
    Crc {
        /// What the frame says.
        got: u32,
        /// What it is.
        computed: u32,
    },
    /// The length field of the fabric header is wrong.
    #[error("the fabric header announces {0} bytes, a reduction frame has {FRAME_BYTES}")]
    AnnouncedLength(u16),
    /// Unused bytes are not zero.
    #[error("byte {0} is unused and not zero")]
    Reserved(usize),
    /// Not the command of a reduction.
    #[error("Portals command {0:#04x}, that of a reduction is {COMMAND:#04x}")]
    Command(u8),
    /// The payload length of the Portals header is wrong.
    #[error("the Portals header announces {0} bytes of payload, a reduction has {PAYLOAD_BYTES}")]
    PayloadLength(u16),
    /// The destination is no multicast address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The reduction header is wrong.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The Ethernet header has another type.
    #[error("EtherType {0:#06x}, that of a Portals packet is {ETHERTYPE:#06x}")]
    EtherType(u16),
    /// The Ethernet addresses are not those of the packet.
    #[error("the Ethernet {0} address is not the one that belongs to the packet's fabric address")]
    Mac(&'static str),
}

impl FrameError {
    /// Whether the bytes changed on the way, rather than were made wrong.
    pub fn is_damage(&self) -> bool {
        matches!(self, FrameError::Crc { .. } | FrameError::Length { .. })
    }
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

impl Frame {
    /// The arithmetic part.
    pub fn quad(&self) -> Quad {
        Quad { lanes: self.lanes, code: self.header.code, m: self.header.m, oflow_id: self.header.oflow_id }
    }

    /// The same frame with another arithmetic part.
    #[must_use]
    pub fn with_quad(mut self, quad: Quad) -> Frame {
        self.lanes = quad.lanes;
        self.header.code = quad.code;
        self.header.m = quad.m;
        self.header.oflow_id = quad.oflow_id;
        self
    }

    /// The bytes before the CRC.
    fn checked(&self) -> Result<[u8; CHECKED_BYTES], HeaderError> {
        let mut bytes = [0; CHECKED_BYTES];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &self.address.encode().to_be_bytes());
        put(4, &self.source.to_be_bytes());
        put(8, &self.vni.to_be_bytes());
        put(10, &(FRAME_BYTES as u16).to_be_bytes());
        put(20, &[COMMAND]);
        put(21, &self.portals.target.to_be_bytes());
        put(23, &self.portals.request.to_be_bytes());
        put(27, &self.portals.initiator.to_be_bytes());
        put(29, &PAYLOAD_BYTES.to_be_bytes());
        put(32, &self.rank.to_be_bytes());
        put(36, &self.header.encode()?.to_be_bytes()[4..]);
        for (k, lane) in self.lanes.iter().enumerate() {
            put(48 + 8 * k, &lane.to_be_bytes());
        }
        Ok(bytes)
    }

    /// The 84 bytes.
    ///
    /// # Errors
    /// For header fields that do not fit their bits.
    pub fn encode(&self) -> Result<[u8; FRAME_BYTES], HeaderError> {
        let checked = self.checked()?;
        let mut bytes = [0; FRAME_BYTES];
        bytes[..CHECKED_BYTES].copy_from_slice(&checked);
        bytes[CHECKED_BYTES..].copy_from_slice(&crc32(&checked).to_be_bytes());
        Ok(bytes)
    }

    /// The frame in 84 bytes.
    ///
    /// # Errors
    /// The first thing that is wrong, damage before contents.
    pub fn decode(bytes: &[u8]) -> Result<Frame, FrameError> {
        if bytes.len() != FRAME_BYTES {
            return Err(FrameError::Length { got: bytes.len() });
        }
        let (got, computed) = (be32(bytes, CHECKED_BYTES), crc32(&bytes[..CHECKED_BYTES]));
        if got != computed {
            return Err(FrameError::Crc { got, computed });
        }
        Self::parse(bytes)
    }

    /// The fields of bytes whose check sum is known to be right.
    fn parse(bytes: &[u8]) -> Result<Frame, FrameError> {
        let address = Address::decode(be32(bytes, 0))?;
        let announced = be16(bytes, 10);
        if usize::from(announced) != FRAME_BYTES {
            return Err(FrameError::AnnouncedLength(announced));
        }
        if let Some(at) = (12..20).chain([31]).find(|&at| bytes[at] != 0) {
            return Err(FrameError::Reserved(at));
        }
        if bytes[20] != COMMAND {
            return Err(FrameError::Command(bytes[20]));
        }
        if be16(bytes, 29) != PAYLOAD_BYTES {
            return Err(FrameError::PayloadLength(be16(bytes, 29)));
        }
        let mut header = [0; 16];
        header[4..].copy_from_slice(&bytes[36..48]);
        let lane = |k: usize| u64::from_be_bytes(bytes[48 + 8 * k..56 + 8 * k].try_into().expect("eight bytes"));
        Ok(Frame {
            address,
            source: be32(bytes, 4),
            vni: be16(bytes, 8),
            portals: Portals { target: be16(bytes, 21), request: be32(bytes, 23), initiator: be16(bytes, 27) },
            rank: be32(bytes, 32),
            header: Header::decode(u128::from_be_bytes(header))?,
            lanes: [lane(0), lane(1), lane(2), lane(3)],
        })
    }

    /// The flits' words.
    ///
    /// # Errors
    /// As [`Frame::encode`].
    pub fn to_words(&self) -> Result<[u64; FRAME_WORDS], HeaderError> {
        Ok(words(&self.encode()?))
    }

    /// The frame as the words of its flits.
    ///
    /// # Errors
    /// As [`Frame::decode`].
    pub fn from_words(words: &[u64]) -> Result<Frame, FrameError> {
        if words.len() != FRAME_WORDS {
            return Err(FrameError::Length { got: words.len() * 8 });
        }
        let bytes: [u8; FRAME_BYTES] = bytes(words);
        Frame::decode(&bytes)
    }

    fn macs(&self) -> ([u8; 6], [u8; 6]) {
        let mac = |first, address: u32| {
            let [a, b, c, d] = address.to_be_bytes();
            [first, 0, a, b, c, d]
        };
        (mac(0x03, self.address.encode()), mac(0x02, self.source))
    }

    /// The 98 bytes of the Ethernet form.
    ///
    /// # Errors
    /// As [`Frame::encode`].
    pub fn encode_ethernet(&self) -> Result<[u8; ETHERNET_BYTES], HeaderError> {
        let (destination, source) = self.macs();
        let mut bytes = [0; ETHERNET_BYTES];
        bytes[..6].copy_from_slice(&destination);
        bytes[6..12].copy_from_slice(&source);
        bytes[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
        bytes[ETHERNET_HEADER..ETHERNET_BYTES - 4].copy_from_slice(&self.checked()?);
        let crc = crc32(&bytes[..ETHERNET_BYTES - 4]);
        bytes[ETHERNET_BYTES - 4..].copy_from_slice(&crc.to_be_bytes());
        Ok(bytes)
    }

    /// The frame in 98 bytes of the Ethernet form.
    ///
    /// # Errors
    /// The first thing that is wrong, damage before contents.
    pub fn decode_ethernet(bytes: &[u8]) -> Result<Frame, FrameError> {
        if bytes.len() != ETHERNET_BYTES {
            return Err(FrameError::Length { got: bytes.len() });
        }
        let end = ETHERNET_BYTES - 4;
        let (got, computed) = (be32(bytes, end), crc32(&bytes[..end]));
        if got != computed {
            return Err(FrameError::Crc { got, computed });
        }
        if be16(bytes, 12) != ETHERTYPE {
            return Err(FrameError::EtherType(be16(bytes, 12)));
        }
        let frame = Frame::parse(&bytes[ETHERNET_HEADER..])?;
        let (destination, source) = frame.macs();
        if bytes[..6] != destination {
            return Err(FrameError::Mac("destination"));
        }
        if bytes[6..12] != source {
            return Err(FrameError::Mac("source"));
        }
        Ok(frame)
    }

    /// The words of the Ethernet form.
    ///
    /// # Errors
    /// As [`Frame::encode`].
    pub fn to_ethernet_words(&self) -> Result<[u64; ETHERNET_WORDS], HeaderError> {
        Ok(words(&self.encode_ethernet()?))
    }

    /// The frame in the words of the Ethernet form.
    ///
    /// # Errors
    /// As [`Frame::decode_ethernet`].
    pub fn from_ethernet_words(words: &[u64]) -> Result<Frame, FrameError> {
        if words.len() != ETHERNET_WORDS {
            return Err(FrameError::Length { got: words.len() * 8 });
        }
        let bytes: [u8; ETHERNET_BYTES] = bytes(words);
        Frame::decode_ethernet(&bytes)
    }
}

/// Bytes as big-endian words, the last one filled up with zeros.
pub fn words<const BYTES: usize, const WORDS: usize>(bytes: &[u8; BYTES]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks(8)) {
        let mut eight = [0; 8];
        eight[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_be_bytes(eight);
    }
    words
}

/// The bytes of big-endian words, as many as a frame has.
pub fn bytes<const BYTES: usize>(words: &[u64]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (chunk, word) in bytes.chunks_mut(8).zip(words) {
        chunk.copy_from_slice(&word.to_be_bytes()[..chunk.len()]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use watershed_arith::ResultCode;
    use watershed_arith::quad::OPCODES;

    fn sample() -> Frame {
        Frame {
            address: Address::new(77, 2).unwrap(),
            source: 5,
            vni: 0x1234,
            portals: Portals { target: 9, request: 0xdead_beef, initiator: 3 },
            rank: 6,
            header: Header { seqno: 17, op: 0x14, count: 1, cookie: 0xc0ff_ee00, ..Header::default() },
            lanes: [1, u64::MAX, 3, 0x0123_4567_89ab_cdef],
        }
    }

    #[test]
    fn lanes_and_header_fill_whole_flits() {
        let frame = sample();
        let words = frame.to_words().unwrap();
        assert_eq!(words[6..10], frame.lanes);
        let header = frame.header.encode().unwrap();
        assert_eq!(words[5], header as u64);
        assert_eq!(words[4], u64::from(frame.rank) << 32 | (header >> 64) as u64);
        assert_eq!(words[0], u64::from(frame.address.encode()) << 32 | u64::from(frame.source));
        assert_eq!(words[10] as u32, 0, "the last flit is half full");
    }

    #[test]
    fn every_malformed_frame_has_a_name() {
        let good = sample().encode().unwrap();
        let with = |at: usize, value: u8| {
            let mut bytes = good;
            bytes[at] = value;
            let crc = crc32(&bytes[..80]).to_be_bytes();
            bytes[80..].copy_from_slice(&crc);
            Frame::decode(&bytes).unwrap_err()
        };
        assert_eq!(Frame::decode(&good), Ok(sample()));
        assert_eq!(Frame::decode(&good[1..]), Err(FrameError::Length { got: 83 }));
        assert!(matches!(with(0, 0), FrameError::Address(AddressError::NotMulticast(_))));
        assert!(matches!(with(3, good[3] & !7), FrameError::Address(AddressError::Action { .. })));
        assert!(matches!(with(1, good[1] | 0x20), FrameError::Address(AddressError::Reserved(_))));
        assert_eq!(with(11, 85), FrameError::AnnouncedLength(85));
        assert_eq!(with(13, 1), FrameError::Reserved(13));
        assert_eq!(with(20, 1), FrameError::Command(1));
        assert_eq!(with(30, 48), FrameError::PayloadLength(48));
        assert_eq!(with(31, 1), FrameError::Reserved(31));
        // Bits 63:61 of the header are the top of byte 40.
        assert_eq!(with(40, good[40] | 0x80), FrameError::Header(HeaderError::Pad(2)));
        assert_eq!(with(46, 0x13 << 3 | good[46] & 7), FrameError::Header(HeaderError::UnknownOp(0x13)));
        // Bits 50:47 are the low three of byte 41 and the top one of byte 42; 2 is not assigned.
        assert_eq!(with(41, good[41] & 0xf8 | 1), FrameError::Header(HeaderError::UnknownCode(2)));
    }

    prop_compose! {
        fn frames()(
            ids in (0u16..8192, 0u8..8), keys in any::<(u32, u16, u32)>(), portals in any::<(u16, u32, u16)>(),
            rank in any::<u32>(), numbers in (0u16..1024, 0u16..1024, 0u32..=0xf_ffff), op in 0..OPCODES.len(),
            code in 0..ResultCode::ALL.len(), flags in any::<(bool, bool)>(), rep in (any::<i8>(), 0u8..4),
            lanes in any::<[u64; 4]>(),
        ) -> Frame {
            Frame {
                address: Address::new(ids.0, ids.1).unwrap(),
                source: keys.0,
                vni: keys.1,
                portals: Portals { target: portals.0, request: portals.1, initiator: portals.2 },
                rank,
                header: Header {
                    seqno: numbers.0,
                    arm: flags.0,
                    op: OPCODES[op].number,
                    count: numbers.2,
                    resno: numbers.1,
                    code: ResultCode::ALL[code],
                    m: rep.0,
                    oflow_id: rep.1,
                    retry: flags.1,
                    cookie: keys.2,
                },
                lanes,
            }
        }
    }

    proptest! {
        #[test]
        fn a_frame_survives_its_bytes_and_its_flits(frame in frames()) {
            prop_assert_eq!(Frame::decode(&frame.encode().unwrap()), Ok(frame));
            prop_assert_eq!(Frame::from_words(&frame.to_words().unwrap()), Ok(frame));
            prop_assert_eq!(Frame::decode_ethernet(&frame.encode_ethernet().unwrap()), Ok(frame));
            prop_assert_eq!(Frame::from_ethernet_words(&frame.to_ethernet_words().unwrap()), Ok(frame));
        }

        #[test]
        fn any_flipped_bit_is_seen(frame in frames(), bit in 0usize..84 * 8, other in 0usize..98 * 8) {
            let mut bytes = frame.encode().unwrap();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let is_crc = matches!(Frame::decode(&bytes), Err(FrameError::Crc { .. }));
            prop_assert!(is_crc);
            let mut bytes = frame.encode_ethernet().unwrap();
            bytes[other / 8] ^= 1 << (other % 8);
            let is_crc = matches!(Frame::decode_ethernet(&bytes), Err(FrameError::Crc { .. }));
            prop_assert!(is_crc);
        }

        #[test]
        fn any_bytes_decode_or_have_an_error(mut bytes in prop::collection::vec(any::<u8>(), 0..120), fix in any::<bool>()) {
            if fix && bytes.len() >= 84 {
                bytes.truncate(84);
                let crc = crc32(&bytes[..80]).to_be_bytes();
                bytes[80..].copy_from_slice(&crc);
            }
            if let Ok(frame) = Frame::decode(&bytes) {
                prop_assert_eq!(&frame.encode().unwrap()[..], &bytes[..]);
            }
            let _ = Frame::decode_ethernet(&bytes);
        }
    }
}
