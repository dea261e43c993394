//! The flit: what a link carries in one cycle.
//!
//! A packet is one or more flits. Each flit has one word of payload and a side-band tag that travels on wires of its
//! own; the tag's fields are declared once, here.
//!
//! | tag bits | field | meaning |
//! |---|---|---|
//! | 0 | `head` | first flit of its packet |
//! | 1 | `tail` | last flit of its packet |
//! | 6:2 | `vc` | virtual channel on the link it is on |
//! | 15:8 | `flags` | sticky exception flags of a partial result (requirement A-FLAG-1) |
//! | 27:16 | `id` | collective id, 12 bits |
//! | 63:28 | `seq` | number of the packet within its stream (element or packet number), 36 bits |
//!
//! The word of a one-flit collective packet is its data. The head word of a point-to-point packet is its header:
//! destination end point in bits 63:40, creation cycle in bits 39:0.

use bitfield::bitfield;

bitfield! {
    /// The side-band tag of a flit; see the module's table.
    #[derive(Clone, Copy, PartialEq, Eq, Default, watershed_state::Saved)]
    pub struct Tag(pub u64);
    impl Debug;
    /// First flit of its packet.
    pub head, set_head: 0;
    /// Last flit of its packet.
    pub tail, set_tail: 1;
    /// Virtual channel.
    pub u8, vc, set_vc: 6, 2;
    /// Sticky exception flags.
    pub u8, flags, set_flags: 15, 8;
    /// Collective id.
    pub u16, id, set_id: 27, 16;
    /// Number within the stream.
    pub u64, seq, set_seq: 63, 28;
}

/// What a link carries in one cycle: 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, watershed_state::Saved)]
pub struct Flit {
    /// Side-band tag.
    pub tag: Tag,
    /// One word of payload.
    pub word: u64,
}

/// Number of collective ids a tag can name.
pub const MAX_IDS: usize = 1 << 12;

/// Number of end points a point-to-point header can name.
pub const MAX_ENDS: usize = 1 << 24;

/// Bits of the creation cycle in a point-to-point header.
const CREATED_BITS: u32 = 40;

impl Flit {
    /// A packet of one flit that carries `word` of a collective.
    #[inline]
    pub fn collective(id: u16, vc: u8, seq: u64, word: u64) -> Flit {
        let mut tag = Tag(0);
        tag.set_head(true);
        tag.set_tail(true);
        tag.set_vc(vc);
        tag.set_id(id);
        tag.set_seq(seq);
        Flit { tag, word }
    }

    /// Flit `index` of a packet of `length` flits; the word is the caller's.
    #[inline]
    pub fn part(id: u16, vc: u8, seq: u64, index: u32, length: u32, word: u64) -> Flit {
        // The generated setters cost a multiple of this, and every flit of all traffic is made here; a test holds the one
        // against the others.
        debug_assert!(vc < 32 && id < 1 << 12 && seq < 1 << 36, "channel {vc}, id {id} or number {seq} does not fit");
        let ends = u64::from(index == 0) | u64::from(index + 1 == length) << 1;
        Flit { tag: Tag(ends | u64::from(vc) << 2 | u64::from(id & 0xfff) << 16 | seq << 28), word }
    }

    /// The head word of a point-to-point packet.
    #[inline]
    pub fn header(dst: u32, created: u64) -> u64 {
        u64::from(dst) << CREATED_BITS | created & ((1 << CREATED_BITS) - 1)
    }

    /// The destination end point in a point-to-point head flit.
    #[inline]
    pub fn dst(&self) -> u32 {
        (self.word >> CREATED_BITS) as u32
    }

    /// The creation cycle in a point-to-point head flit (modulo 2^40 cycles).
    #[inline]
    pub fn created(&self) -> u64 {
        self.word & ((1 << CREATED_BITS) - 1)
    }

    /// The same flit on another virtual channel.
    #[inline]
    #[must_use]
    pub fn on(mut self, vc: u8) -> Flit {
        // The generated setter costs a multiple of this, and every hop of every flit passes here.
        debug_assert!(vc < 32, "channel {vc} does not fit its field");
        self.tag.0 = self.tag.0 & !(0x1f << 2) | u64::from(vc) << 2;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_touch_each_other() {
        let mut flit = Flit::collective(0xfff, 31, (1 << 36) - 1, u64::MAX);
        flit.tag.set_flags(0);
        assert_eq!((flit.tag.id(), flit.tag.vc(), flit.tag.seq()), (0xfff, 31, (1 << 36) - 1));
        flit.tag.set_flags(0x1f);
        flit.tag.set_seq(0);
        assert_eq!((flit.tag.id(), flit.tag.vc(), flit.tag.flags()), (0xfff, 31, 0x1f));
        assert!(flit.tag.head() && flit.tag.tail());
        assert_eq!(size_of::<Flit>(), 16);
    }

    #[test]
    fn another_channel_changes_nothing_else() {
        let flit = Flit::part(0xabc, 31, 0x9_8765_4321, 0, 1, 7);
        for vc in 0..32 {
            let mut expected = flit;
            expected.tag.set_vc(vc);
            assert_eq!(flit.on(vc), expected);
        }
    }

    #[test]
    fn a_part_has_the_fields_it_was_given() {
        for (id, vc, seq, index, length) in [(0xfff, 31, (1 << 36) - 1, 0, 2), (1, 0, 5, 0, 1), (0x123, 7, 9, 6, 7)] {
            let mut tag = Tag(0);
            tag.set_head(index == 0);
            tag.set_tail(index + 1 == length);
            tag.set_vc(vc);
            tag.set_id(id);
            tag.set_seq(seq);
            assert_eq!(Flit::part(id, vc, seq, index, length, 77), Flit { tag, word: 77 });
        }
    }

    #[test]
    fn header_holds_the_largest_system_and_a_long_run() {
        let flit = Flit { tag: Tag(0), word: Flit::header((MAX_ENDS - 1) as u32, (1 << 40) - 1) };
        assert_eq!((flit.dst(), flit.created()), ((MAX_ENDS - 1) as u32, (1 << 40) - 1));
    }

    #[test]
    fn parts_of_a_packet_have_one_head_and_one_tail() {
        let flits: Vec<Flit> = (0..33).map(|i| Flit::part(1, 2, 9, i, 33, u64::from(i))).collect();
        assert_eq!(flits.iter().filter(|f| f.tag.head()).count(), 1);
        assert!(flits[0].tag.head() && flits[32].tag.tail() && !flits[32].tag.head());
        assert!(Flit::part(1, 2, 9, 0, 1, 0).tag.tail());
    }
}
