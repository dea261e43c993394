//! The reduction header, the multicast address and the opcodes of a reduction frame (requirements R-HDR-1, R-ADR-1,
//! R-OP-1, R-RC-1).
//!
//! The header is one 96-bit big-endian object; bit 0 is the least significant one. The positions are those of the public
//! host driver of the same hardware (cxi); the source shows them in a figure only (FIG. 11).
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 9:0 | `seqno` | number of the reduction this frame belongs to, or arms |
//! | 10 | `arm` | a descending frame that arms engines |
//! | 16:11 | `op` | opcode, see [`Opcode`] |
//! | 36:17 | `count` | contributions in this frame |
//! | 46:37 | `resno` | number of the reduction whose result this is; [`NO_RESULT`] if it is none |
//! | 50:47 | `rc` | result code, see [`ResultCode`] |
//! | 58:51 | `repsum_m` | exponent index of a reproducible sum, signed |
//! | 60:59 | `repsum_oflow_id` | its most significant word that wrapped |
//! | 61 | `retry` | software's flag: this frame asks for contributions again |
//! | 63:62 | pad | zero |
//! | 95:64 | `cookie` | secret of one reduction tree, from the root |
//!
//! The multicast address (32 bits): 2:0 action = 7, 15:3 multicast id, 17:16 zero, 20:18 reduction id, 22:21 zero, 31:23 all
//! ones.
//!
//! Sequence numbers are compared modulo 1024: a number behind by up to half the range is older ([`age`]). Software
//! counts 0 to 1022 *chosen*; 1023 is reserved: it is the `resno` of frames without a result, as in retries of a first
//! round.

use bitfield::bitfield;
use watershed_arith::ResultCode;
use watershed_arith::quad::Opcode;

bitfield! {
    /// The 96 bits as they lie in the frame; [`Header`] is what the rest of the program uses.
    #[derive(Clone, Copy, PartialEq, Eq, Default)]
    pub struct HeaderBits(u128);
    impl Debug;
    /// Sequence number.
    pub u16, seqno, set_seqno: 9, 0;
    /// Arms engines.
    pub arm, set_arm: 10;
    /// Opcode.
    pub u8, op, set_op: 16, 11;
    /// Contributions.
    pub u32, count, set_count: 36, 17;
    /// Sequence number of the result.
    pub u16, resno, set_resno: 46, 37;
    /// Result code.
    pub u8, rc, set_rc: 50, 47;
    /// Exponent index, two's complement.
    pub u8, repsum_m, set_repsum_m: 58, 51;
    /// Word that wrapped.
    pub u8, oflow_id, set_oflow_id: 60, 59;
    /// Software's retry flag.
    pub retry, set_retry: 61;
    /// Unused.
    pub u8, pad, set_pad: 63, 62;
    /// Cookie.
    pub u32, cookie, set_cookie: 95, 64;
}

/// Sequence numbers there are.
pub const SEQNOS: u16 = 1 << 10;
/// The reserved sequence number: a frame with this `resno` brings no result.
pub const NO_RESULT: u16 = SEQNOS - 1;
/// The largest count a frame can carry.
pub const MAX_COUNT: u32 = (1 << 20) - 1;
/// Multicast ids there are.
pub const MULTICAST_IDS: u16 = 1 << 13;
/// Reductions that can be under way on one tree at a time.
pub const REDUCTION_IDS: u8 = 8;

/// How an older or newer number relates to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// Behind by up to half the range.
    Older,
    /// The same.
    Same,
    /// Ahead by less than half the range.
    Newer,
}

/// How `seqno` relates to `reference`, modulo 1024 (requirement R-ENG-6).
pub fn age(seqno: u16, reference: u16) -> Age {
    match reference.wrapping_sub(seqno) % SEQNOS {
        0 => Age::Same,
        1..=512 => Age::Older,
        _ => Age::Newer,
    }
}

/// The sequence number software uses after `seqno`: the reserved one is left out.
pub fn next_seqno(seqno: u16) -> u16 {
    (seqno + 1) % NO_RESULT
}

/// A reduction header, field by field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, watershed_state::Saved)]
pub struct Header {
    /// Sequence number, 0 to 1023.
    pub seqno: u16,
    /// Arms engines (descending frames).
    pub arm: bool,
    /// Opcode number.
    pub op: u8,
    /// Contributions, 20 bits.
    pub count: u32,
    /// Sequence number of the result, or [`NO_RESULT`].
    pub resno: u16,
    /// Result code.
    pub code: ResultCode,
    /// Exponent index of a reproducible sum.
    pub m: i8,
    /// The word of a reproducible sum that wrapped, 0 to 3.
    pub oflow_id: u8,
    /// Software's retry flag.
    pub retry: bool,
    /// Cookie.
    pub cookie: u32,
}

impl Default for Header {
    fn default() -> Header {
        Header {
            seqno: 0,
            arm: false,
            op: 0,
            count: 0,
            resno: NO_RESULT,
            code: ResultCode::Ok,
            m: 0,
            oflow_id: 0,
            retry: false,
            cookie: 0,
        }
    }
}

/// What is wrong with a reduction header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// A field is given a value that its bits cannot hold.
    #[error("{field} = {value} does not fit its {bits} bits")]
    TooLarge {
        /// The field.
        field: &'static str,
        /// What it was to be.
        value: u64,
        /// Its width.
        bits: u32,
    },
    /// No operation has this opcode.
    #[error("opcode {0:#04x} is not assigned")]
    UnknownOp(u8),
    /// No result has this code.
    #[error("result code {0} is not assigned")]
    UnknownCode(u8),
    /// Unused bits are set.
    #[error("pad bits 63:62 of the reduction header are {0:#b}, not zero")]
    Pad(u8),
}

impl Header {
    /// The 96 bits.
    ///
    /// # Errors
    /// [`HeaderError::TooLarge`] for values that do not fit: the setters of a bit field would mask them.
    pub fn encode(&self) -> Result<u128, HeaderError> {
        let fits = |field, value: u64, bits: u32| {
            if value >> bits == 0 { Ok(()) } else { Err(HeaderError::TooLarge { field, value, bits }) }
        };
        fits("seqno", u64::from(self.seqno), 10)?;
        fits("op", u64::from(self.op), 6)?;
        fits("count", u64::from(self.count), 20)?;
        fits("resno", u64::from(self.resno), 10)?;
        fits("repsum_oflow_id", u64::from(self.oflow_id), 2)?;
        let mut bits = HeaderBits(0);
        bits.set_seqno(self.seqno);
        bits.set_arm(self.arm);
        bits.set_op(self.op);
        bits.set_count(self.count);
        bits.set_resno(self.resno);
        bits.set_rc(self.code.number());
        bits.set_repsum_m(self.m as u8);
        bits.set_oflow_id(self.oflow_id);
        bits.set_retry(self.retry);
        bits.set_cookie(self.cookie);
        Ok(bits.0)
    }

    /// The fields of 96 bits.
    ///
    /// # Errors
    /// What is not assigned.
    pub fn decode(bits: u128) -> Result<Header, HeaderError> {
        let bits = HeaderBits(bits & ((1 << 96) - 1));
        if Opcode::from_number(bits.op()).is_none() {
            return Err(HeaderError::UnknownOp(bits.op()));
        }
        let code = ResultCode::from_number(bits.rc()).ok_or(HeaderError::UnknownCode(bits.rc()))?;
        if bits.pad() != 0 {
            return Err(HeaderError::Pad(bits.pad()));
        }
        Ok(Header {
            seqno: bits.seqno(),
            arm: bits.arm(),
            op: bits.op(),
            count: bits.count(),
            resno: bits.resno(),
            code,
            m: bits.repsum_m() as i8,
            oflow_id: bits.oflow_id(),
            retry: bits.retry(),
            cookie: bits.cookie(),
        })
    }
}

/// A multicast fabric address: which tree, and which of the reductions on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, watershed_state::Saved)]
pub struct Address {
    /// Multicast id, 13 bits: the index into the multicast tables.
    pub multicast_id: u16,
    /// Reduction id, 3 bits.
    pub reduction_id: u8,
}

/// What is wrong with a multicast address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The address is not a multicast address.
    #[error("destination address {0:#010x} is no multicast address: bits 31:23 are not all ones")]
    NotMulticast(u32),
    /// The action is not that of a multicast.
    #[error("destination address {address:#010x}: action {action}, a multicast has 7")]
    Action {
        /// The address.
        address: u32,
        /// Its low three bits.
        action: u8,
    },
    /// Unused bits are set.
    #[error("destination address {0:#010x}: bits 22:21 and 17:16 are not zero")]
    Reserved(u32),
}

impl Address {
    /// An address.
    ///
    /// # Errors
    /// [`HeaderError::TooLarge`] for ids that do not fit.
    pub fn new(multicast_id: u16, reduction_id: u8) -> Result<Address, HeaderError> {
        if multicast_id >= MULTICAST_IDS {
            return Err(HeaderError::TooLarge { field: "multicast id", value: u64::from(multicast_id), bits: 13 });
        }
        if reduction_id >= REDUCTION_IDS {
            return Err(HeaderError::TooLarge { field: "reduction id", value: u64::from(reduction_id), bits: 3 });
        }
        Ok(Address { multicast_id, reduction_id })
    }

    /// The 32 bits. Ids beyond their widths are a bug of the caller; see [`Address::new`].
    #[inline]
    pub fn encode(self) -> u32 {
        debug_assert!(self.multicast_id < MULTICAST_IDS && self.reduction_id < REDUCTION_IDS);
        0x1ff << 23 | u32::from(self.reduction_id) << 18 | u32::from(self.multicast_id) << 3 | 7
    }

    /// The fields of 32 bits.
    ///
    /// # Errors
    /// What makes it no multicast address.
    #[inline]
    pub fn decode(address: u32) -> Result<Address, AddressError> {
        if address >> 23 != 0x1ff {
            return Err(AddressError::NotMulticast(address));
        }
        if address & 7 != 7 {
            return Err(AddressError::Action { address, action: (address & 7) as u8 });
        }
        if address >> 16 & 0b110_0011 != 0 {
            return Err(AddressError::Reserved(address));
        }
        Ok(Address { multicast_id: (address >> 3) as u16 & 0x1fff, reduction_id: (address >> 18) as u8 & 7 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_lies_where_the_driver_has_it() {
        let none = Header { resno: 0, ..Header::default() };
        let one = |header: Header| header.encode().unwrap();
        assert_eq!(one(none), 0);
        for (header, bit, width) in [
            (Header { seqno: 0x3ff, ..none }, 0, 10),
            (Header { arm: true, ..none }, 10, 1),
            (Header { op: 0x3f, ..none }, 11, 6),
            (Header { count: MAX_COUNT, ..none }, 17, 20),
            (Header { resno: 0x3ff, ..none }, 37, 10),
            (Header { code: ResultCode::OpMismatch, ..none }, 50, 1),
            (Header { m: -1, ..none }, 51, 8),
            (Header { oflow_id: 3, ..none }, 59, 2),
            (Header { retry: true, ..none }, 61, 1),
            (Header { cookie: u32::MAX, ..none }, 64, 32),
        ] {
            assert_eq!(one(header), ((1u128 << width) - 1) << bit, "{header:?}");
        }
    }

    #[test]
    fn fields_that_do_not_fit_are_refused_and_not_masked() {
        let refuse = |header: Header| matches!(header.encode(), Err(HeaderError::TooLarge { .. }));
        assert!(refuse(Header { seqno: 1024, ..Header::default() }));
        assert!(refuse(Header { op: 64, ..Header::default() }));
        assert!(refuse(Header { count: 1 << 20, ..Header::default() }));
        assert!(refuse(Header { resno: 1024, ..Header::default() }));
        assert!(refuse(Header { oflow_id: 4, ..Header::default() }));
        assert!(Address::new(8192, 0).is_err() && Address::new(0, 8).is_err());
    }

    #[test]
    fn addresses_are_those_of_the_driver() {
        assert_eq!(Address::new(0, 0).unwrap().encode(), 0xff80_0007);
        assert_eq!(Address::new(1, 1).unwrap().encode(), 0xff84_000f);
        assert_eq!(Address::new(8191, 7).unwrap().encode(), 0xff9c_ffff);
        for id in [0, 1, 77, 8191] {
            for reduction in 0..8 {
                let address = Address::new(id, reduction).unwrap();
                assert_eq!(Address::decode(address.encode()), Ok(address));
            }
        }
        assert_eq!(Address::decode(0x0080_0007), Err(AddressError::NotMulticast(0x0080_0007)));
        assert!(matches!(Address::decode(0xff80_0006), Err(AddressError::Action { action: 6, .. })));
        assert!(matches!(Address::decode(0xff81_0007), Err(AddressError::Reserved(_))));
        assert!(matches!(Address::decode(0xffa0_0007), Err(AddressError::Reserved(_))));
    }

    #[test]
    fn older_means_behind_by_up_to_half_the_range() {
        for reference in 0..SEQNOS {
            let at = |offset: u16| age((reference + offset) % SEQNOS, reference);
            assert_eq!(at(0), Age::Same);
            assert_eq!(at(SEQNOS - 1), Age::Older);
            assert_eq!(at(512), Age::Older);
            assert_eq!(at(511), Age::Newer);
            assert_eq!(at(1), Age::Newer);
        }
        assert_eq!(age(0, 1022), Age::Newer, "software leaves 1023 out");
        assert_eq!(next_seqno(1022), 0);
    }
}
