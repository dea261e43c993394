//! Frames of the management agent: requests of root processes, orders to switches, and the answers to both
//! (requirements R-TAB-2, R-EP-1; description (36), (50), (51)). The source does not say how tables are written into
//! switches; all of this is *chosen*.
//!
//! A frame is as long as a reduction frame, 84 bytes in 11 flits, on a channel of its own ([`MANAGE`](super::tables::MANAGE)):
//!
//! | flit | bits | field |
//! |---|---|---|
//! | 0 | 63:32 | destination: bit 63 set is a switch, clear an end point; its number |
//! | 0 | 31:0 | source, the same; stamped by the fabric |
//! | 1 | 63:56 | verb, see [`Verb`] |
//! | 1 | 55:48 | reason of a refusal |
//! | 1 | 47:32 | job |
//! | 1 | 31:0 | number: of the request of a job, or of the order of the agent; an answer has the number that it answers |
//! | 2 | 63:48, 31:0 | VNI, cookie |
//! | 3 | 63:48, 47:32 | multicast ids of two trees, [`NO_ID`] is none |
//! | 3 | 31:16 | parent port |
//! | 3 | 15:0 | job whose tree is changed, plus one; bit 15: two disjoint trees |
//! | 4 | 63:32, 31:0 | a part's place among the parts of a request, and end points in all; of an order, the wait count |
//! | 5 | 63:32 | root of the tree |
//! | 6-9 | | child ports, a bit each, or up to eight end points of 32 bits, the first in the upper half |
//! | 10 | 63:32 | CRC-32 of all bytes before it |

use super::admission::Keys;
use super::agent::Refusal;
use super::frame::{FRAME_BYTES, FRAME_WORDS, FrameError, bytes, crc32, words};
use super::tables::{Change, Entry, Ports};
use crate::admission::Owner;
use watershed_kernel::Cycle;

/// The multicast id of no tree.
pub const NO_ID: u16 = u16::MAX;
/// End points that a request's frame names.
pub const MEMBERS: usize = 8;
/// Bytes before the CRC.
const CHECKED: usize = FRAME_BYTES - 4;

/// Where a frame comes from and goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum Place {
    /// A switch.
    Switch(u32),
    /// An end point.
    End(u32),
}

impl Place {
    /// Its 32 bits.
    pub fn encode(self) -> u32 {
        match self {
            Place::Switch(switch) => 1 << 31 | switch,
            Place::End(end) => end,
        }
    }

    /// The place of 32 bits.
    pub fn decode(bits: u32) -> Place {
        if bits >> 31 == 1 { Place::Switch(bits & (u32::MAX >> 1)) } else { Place::End(bits) }
    }
}

/// What a frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum Verb {
    /// Root to agent: a tree for these end points, in the place of another one if that is named.
    Ask = 1,
    /// Root to agent: delete the tree of the job.
    Delete = 2,
    /// Agent to root: the tree is there.
    Granted = 3,
    /// Agent to root: there is none; reduce in software.
    Refused = 4,
    /// Agent to root: the tree is gone.
    Deleted = 5,
    /// Agent to switch: write this entry.
    Write = 6,
    /// Agent to switch: erase the entry of this id.
    Erase = 7,
    /// Switch to agent: it is written or erased.
    Done = 8,
    /// Switch to agent: the table is full.
    NoRoom = 9,
}

impl Verb {
    const ALL: [Verb; 9] = [
        Verb::Ask,
        Verb::Delete,
        Verb::Granted,
        Verb::Refused,
        Verb::Deleted,
        Verb::Write,
        Verb::Erase,
        Verb::Done,
        Verb::NoRoom,
    ];
}

/// Why the agent refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum Reason {
    /// None.
    None = 0,
    /// Nobody besides the root, or more than a wait count holds.
    Members = 1,
    /// No way to one of the end points.
    NoWay = 2,
    /// No id that is free at all switches of the tree.
    TableFull = 3,
    /// With other trees its links could wait for each other in a circle.
    Deadlock = 4,
    /// A switch did not answer.
    Silent = 5,
}

impl Reason {
    const ALL: [Reason; 6] =
        [Reason::None, Reason::Members, Reason::NoWay, Reason::TableFull, Reason::Deadlock, Reason::Silent];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Reason::None => "no reason",
            Reason::Members => "too few or too many end points",
            Reason::NoWay => "there is no way to all end points",
            Reason::TableFull => "the multicast table of a switch is full",
            Reason::Deadlock => "with the other trees its links could wait for each other in a circle",
            Reason::Silent => "a switch did not answer the agent",
        }
    }
}

impl From<&Refusal> for Reason {
    fn from(refusal: &Refusal) -> Reason {
        match refusal {
            Refusal::Unreachable { .. } => Reason::NoWay,
            Refusal::Alone | Refusal::TooMany(_) => Reason::Members,
            Refusal::Deadlock(_) => Reason::Deadlock,
            Refusal::Table(_) => Reason::TableFull,
        }
    }
}

/// A frame of the agent, or for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Message {
    /// Destination.
    pub to: Place,
    /// Source.
    pub from: Place,
    /// What it says.
    pub verb: Verb,
    /// Why, of a refusal.
    pub reason: Reason,
    /// The job.
    pub job: u16,
    /// Number of the request or order.
    pub number: u32,
    /// Keys of the job.
    pub keys: Keys,
    /// Multicast ids of its trees; of an order, the first is that of the entry.
    pub ids: [u16; 2],
    /// Order: parent port of the entry.
    pub parent: u16,
    /// Request: the job whose tree is changed.
    pub changes: Option<u16>,
    /// Request: two disjoint trees are wanted.
    pub redundant: bool,
    /// Request: which part this is.
    pub part: u32,
    /// Request: end points in all, the root's first; order: wait count.
    pub count: u32,
    /// Order: the root of the tree.
    pub root: u32,
    /// Child ports, or end points.
    pub lanes: [u64; 4],
}

/// A frame as a station saw it, for ladders.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
pub struct LoggedMessage {
    /// When its head was sent, or its tail was there.
    pub cycle: Cycle,
    /// Whether it was sent.
    pub sent: bool,
    /// The frame.
    pub message: Message,
}

impl Message {
    /// A frame that says nothing more.
    pub fn new(to: Place, from: Place, verb: Verb, job: u16) -> Message {
        Message {
            to,
            from,
            verb,
            reason: Reason::None,
            job,
            number: 0,
            keys: Keys::default(),
            ids: [NO_ID; 2],
            parent: 0,
            changes: None,
            redundant: false,
            part: 0,
            count: 0,
            root: 0,
            lanes: [0; 4],
        }
    }

    /// The flits' words.
    pub fn encode(&self) -> [u64; FRAME_WORDS] {
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let verb = (self.verb as u32) << 24 | (self.reason as u32) << 16 | u32::from(self.job);
        let ids = u32::from(self.ids[0]) << 16 | u32::from(self.ids[1]);
        let changes = self.changes.map_or(0, |job| u32::from(job) + 1) & 0x7fff | u32::from(self.redundant) << 15;
        let [a, b, c, d] = self.lanes;
        let all = [
            pair(self.to.encode(), self.from.encode()),
            pair(verb, self.number),
            pair(u32::from(self.keys.vni) << 16, self.keys.cookie),
            pair(ids, u32::from(self.parent) << 16 | changes),
            pair(self.part, self.count),
            pair(self.root, 0),
            a,
            b,
            c,
            d,
            0,
        ];
        let mut frame: [u8; FRAME_BYTES] = bytes(&all);
        let crc = crc32(&frame[..CHECKED]);
        frame[CHECKED..].copy_from_slice(&crc.to_be_bytes());
        words(&frame)
    }

    /// The frame as words.
    ///
    /// # Errors
    /// A wrong CRC, or a verb or reason that nobody has.
    pub fn decode(words: &[u64; FRAME_WORDS]) -> Result<Message, FrameError> {
        let frame: [u8; FRAME_BYTES] = bytes(words);
        let (got, computed) = ((words[FRAME_WORDS - 1] >> 32) as u32, crc32(&frame[..CHECKED]));
        if got != computed {
            return Err(FrameError::Crc { got, computed });
        }
        let high = |word: usize| (words[word] >> 32) as u32;
        let low = |word: usize| words[word] as u32;
        let verb = Verb::ALL.into_iter().find(|&verb| verb as u32 == high(1) >> 24);
        let verb = verb.ok_or(FrameError::Command((high(1) >> 24) as u8))?;
        let reason = Reason::ALL.into_iter().find(|&reason| reason as u32 == high(1) >> 16 & 0xff);
        Ok(Message {
            to: Place::decode(high(0)),
            from: Place::decode(low(0)),
            verb,
            reason: reason.ok_or(FrameError::Reserved(9))?,
            job: high(1) as u16,
            number: low(1),
            keys: Keys { vni: (high(2) >> 16) as u16, cookie: low(2) },
            ids: [(high(3) >> 16) as u16, high(3) as u16],
            parent: (low(3) >> 16) as u16,
            changes: (low(3) & 0x7fff).checked_sub(1).map(|job| job as u16),
            redundant: low(3) >> 15 & 1 == 1,
            part: high(4),
            count: low(4),
            root: high(5),
            lanes: [words[6], words[7], words[8], words[9]],
        })
    }

    /// Parts of a request that names this many end points.
    pub fn parts(ends: usize) -> u32 {
        ends.div_ceil(MEMBERS) as u32
    }

    /// The same request with the end points of this part of all.
    #[must_use]
    pub fn with_members(mut self, part: u32, all: &[u32]) -> Message {
        (self.part, self.count) = (part, all.len() as u32);
        let ends = all.iter().skip(part as usize * MEMBERS).take(MEMBERS);
        for (at, &end) in ends.enumerate() {
            self.lanes[at / 2] |= u64::from(end) << if at % 2 == 0 { 32 } else { 0 };
        }
        self
    }

    /// The end points that a request's part names.
    pub fn members(&self) -> impl Iterator<Item = u32> + '_ {
        let here = (self.count as usize).saturating_sub(self.part as usize * MEMBERS).min(MEMBERS);
        (0..here).map(|at| (self.lanes[at / 2] >> if at % 2 == 0 { 32 } else { 0 }) as u32)
    }

    /// An order to a switch.
    #[must_use]
    pub fn with_change(mut self, change: &Change) -> Message {
        match change {
            Change::Erase(id) => (self.verb, self.ids[0]) = (Verb::Erase, *id),
            Change::Write(entry) => {
                (self.verb, self.ids[0], self.parent) = (Verb::Write, entry.multicast_id, entry.parent);
                (self.count, self.root, self.keys) = (entry.wait_count, entry.owner.root, entry.owner.keys);
                for port in &entry.children {
                    self.lanes[usize::from(port) / 64] |= 1 << (port % 64);
                }
            }
        }
        self
    }

    /// What an order orders.
    pub fn change(&self) -> Change {
        let id = self.ids[0];
        if self.verb == Verb::Erase {
            return Change::Erase(id);
        }
        let mut children = Ports::EMPTY;
        for port in (0..256u16).filter(|port| self.lanes[usize::from(port / 64)] >> (port % 64) & 1 == 1) {
            children.insert(port);
        }
        let owner = Owner { root: self.root, keys: self.keys };
        Change::Write(Entry { multicast_id: id, parent: self.parent, children, wait_count: self.count, owner })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message() -> impl Strategy<Value = Message> {
        let ids = (any::<[u16; 2]>(), any::<u16>(), proptest::option::of(0u16..4096), any::<bool>());
        let numbers = (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>(), any::<[u64; 4]>());
        (0usize..9, 0usize..6, any::<u16>(), (any::<u16>(), any::<u32>()), ids, numbers, any::<[u32; 2]>()).prop_map(
            |(verb, reason, job, (vni, cookie), ids, (number, part, count, root, lanes), places)| Message {
                to: Place::decode(places[0]),
                from: Place::decode(places[1]),
                verb: Verb::ALL[verb],
                reason: Reason::ALL[reason],
                job,
                number,
                keys: Keys { vni, cookie },
                ids: ids.0,
                parent: ids.1,
                changes: ids.2,
                redundant: ids.3,
                part,
                count,
                root,
                lanes,
            },
        )
    }

    proptest! {
        #[test]
        fn every_field_comes_back_and_every_flipped_bit_shows(message in message(), bit in 0usize..672) {
            let words = message.encode();
            prop_assert_eq!(Message::decode(&words), Ok(message));
            let mut damaged = words;
            damaged[bit / 64] ^= 1 << (63 - bit % 64);
            let refused = matches!(Message::decode(&damaged), Err(FrameError::Crc { .. }));
            prop_assert!(refused);
        }

        #[test]
        fn requests_name_all_end_points_in_parts(ends in proptest::collection::vec(any::<u32>(), 1..40)) {
            let ask = Message::new(Place::End(1), Place::End(2), Verb::Ask, 3);
            let parts = (0..Message::parts(ends.len())).map(|part| ask.with_members(part, &ends));
            let named: Vec<u32> = parts.flat_map(|part| part.members().collect::<Vec<u32>>()).collect();
            prop_assert_eq!(named, ends);
        }

        #[test]
        fn orders_carry_whole_entries(ports in proptest::collection::btree_set(0u16..256, 0..20), id in 0u16..8192) {
            let children = ports.iter().fold(Ports::EMPTY, |mut set, &port| { set.insert(port); set });
            let owner = Owner { root: 7, keys: Keys { vni: 9, cookie: 0xfeed_0001 } };
            let entry = Entry { multicast_id: id, parent: 254, children, wait_count: 0xf_ffff, owner };
            let order = Message::new(Place::Switch(4), Place::End(0), Verb::Done, 0);
            for change in [Change::Write(entry), Change::Erase(id)] {
                let order = order.with_change(&change);
                prop_assert_eq!(Message::decode(&order.encode()).map(|order| order.change()), Ok(change));
            }
        }
    }
}
