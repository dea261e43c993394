//! The output queue of a packet engine: messages that leave, one entry each however many copies it has, and the copy that is on its
//! way out (B-STR-1).
//!
//! | part | room |
//! |---|---|
//! | messages | `output` of the engine; those that one message is split into count as one |
//! | refusals | [`MOST_REFUSALS`], in places of their own; what is beyond is not sent |

use std::collections::VecDeque;

use super::ce::{Outgoing, Target};
use super::packet::{Body, Header, Message, PBV_ENTRIES};
use super::priority::ClassArbiter;
use super::routes::Directory;
use super::tables::PbvTable;

/// Refusals that may wait in the output queue.
pub const MOST_REFUSALS: usize = 64;

/// A copy on its way out.
#[derive(Clone, Debug, watershed_state::Saved)]
pub(super) struct OutgoingCopy {
    pub(super) header: Header,
    pub(super) words: Vec<u64>,
    pub(super) sent: usize,
    pub(super) port: u16,
}

impl OutgoingCopy {
    /// The word that goes next, and whether it is the last one; of flits of one word.
    pub(super) fn word(&self) -> Option<(u64, bool)> {
        self.words.get(self.sent).map(|&word| (word, self.sent + 1 == self.words.len()))
    }
}

/// Messages that leave, and the copy that is on its way out.
#[derive(Clone, Debug, watershed_state::Saved)]
pub(super) struct OutputQueue {
    /// Messages, and whether each counts: of frames that one message is split into, the first one does.
    pub(super) entries: VecDeque<(Outgoing, bool)>,
    /// Entries that count.
    held: u32,
    arbiter: ClassArbiter,
    pub(super) copy: Option<OutgoingCopy>,
    /// Refusals among the entries.
    refusals: usize,
}

/// Whether a message reports a refused frame to its sender.
fn is_refusal(outgoing: &Outgoing) -> bool {
    outgoing.packet.header.message == Message::Error && matches!(outgoing.packet.body, Body::Words(_))
}

/// Whether two messages in a row are parts of one.
fn is_split(before: &Outgoing, outgoing: &Outgoing) -> bool {
    let (before, packet) = (&before.packet, &outgoing.packet);
    let parts = !matches!(packet.body, Body::Words(_)) && packet.header.message == before.header.message;
    parts && packet.header.cc_id == before.header.cc_id
}

impl OutputQueue {
    pub(super) fn new(bound: u8) -> OutputQueue {
        OutputQueue { entries: VecDeque::new(), held: 0, arbiter: ClassArbiter::new(bound), copy: None, refusals: 0 }
    }

    /// Entries that count against the size of the queue: all but refusals, which have places of their own.
    pub(super) fn protocol(&self) -> u32 {
        self.held - self.refusals as u32
    }

    /// Whether a message of this context waits or is on its way out, a refusal left out.
    pub(super) fn holds(&self, cc_id: u16) -> bool {
        let waits =
            self.entries.iter().any(|(outgoing, _)| outgoing.packet.header.cc_id == cc_id && !is_refusal(outgoing));
        waits || self.copy.as_ref().is_some_and(|copy| copy.header.cc_id == cc_id)
    }

    /// Whether a congestion report waits.
    pub(super) fn reports(&self) -> bool {
        self.entries.iter().any(|(outgoing, _)| outgoing.packet.header.message == Message::Report)
    }

    /// Queues a message; refusals only up to [`MOST_REFUSALS`]. Returns one that found no place, and is not sent.
    pub(super) fn push(&mut self, outgoing: Outgoing) -> Option<Outgoing> {
        if is_refusal(&outgoing) {
            if self.refusals >= MOST_REFUSALS {
                return Some(outgoing);
            }
            self.refusals += 1;
        }
        let counts = !self.entries.back().is_some_and(|(before, _)| is_split(before, &outgoing));
        self.held += u32::from(counts);
        self.arbiter.enqueued(outgoing.packet.header.tlp.tc);
        self.entries.push_back((outgoing, counts));
        None
    }

    /// A message has left, or has been looked up. What it was split into counts for it.
    pub(super) fn remove(&mut self, at: usize) -> Option<Outgoing> {
        let (outgoing, counts) = self.entries.remove(at)?;
        self.arbiter.dequeued(outgoing.packet.header.tlp.tc);
        match self.entries.get_mut(at) {
            Some((_, next)) if counts && !*next => *next = true,
            _ => self.held -= u32::from(counts),
        }
        Some(outgoing)
    }

    /// Looks the next copy up: its destination, its port, its bits.
    pub(super) fn look_up(&mut self, table: &PbvTable, directory: &Directory, engine: u32, base: u16) {
        while self.copy.is_none() {
            let classes = self.entries.iter().map(|(outgoing, _)| outgoing.packet.header.tlp.tc);
            let Some(at) = self.arbiter.next(classes) else { return };
            let (first, _) = &mut self.entries[at];
            let mut packet;
            match first.target {
                Target::Header => {
                    let outgoing = self.remove(at).expect("looked at");
                    self.refusals -= usize::from(is_refusal(&outgoing));
                    packet = outgoing.packet;
                }
                Target::Entries { ref mut pbv, skip } => {
                    let left = *pbv;
                    let wanted = |entry: &u8| {
                        left >> entry & 1 != 0 && table.device(*entry).is_some_and(|device| device != skip)
                    };
                    let Some(entry) = (0..PBV_ENTRIES as u8).find(wanted) else {
                        self.remove(at);
                        continue;
                    };
                    // What is left of it keeps its place.
                    *pbv &= !(1 << entry);
                    packet = first.packet.clone();
                    packet.header.p_id = entry;
                    packet.header.device = table.device(entry).expect("wanted");
                    packet.header.offset = if table.is_switch(entry) { base } else { 0 };
                }
            }
            let header = packet.header;
            if !directory.knows(header.address()) {
                continue;
            }
            self.arbiter.granted(at);
            let words = packet.flits().expect("an engine builds frames that fit");
            self.copy = Some(OutgoingCopy { header, words, sent: 0, port: directory.side(engine, header.address()) });
        }
    }

    /// Messages in it, the one of which a copy is on its way out included.
    pub(super) fn len(&self) -> u32 {
        self.entries.len() as u32 + u32::from(self.copy.is_some())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.copy.is_none()
    }
}
