//! Admission: which frames engines and processes obey, and the counters of refused ones (requirements R-TAB-1, R-ENG-3,
//! R-ERR-1; description (51), (53), (54)).
//!
//! One check precedes every change of state by a frame. It goes through the rows in this order, and the first one that
//! fails names the refusal; a refused frame changes only its counter.
//!
//! | check | engine, climbing | engine, descending | root process | leaf process | software rank |
//! |---|---|---|---|---|---|
//! | bytes | CRC, contents | CRC, contents | CRC, contents | CRC, contents | CRC, contents |
//! | address | passes up without a descriptor | entry of this port | a job and flow of this end point | the same | its job |
//! | kind | contribution | arm or release | contribution | arm or release | its job's operation |
//! | sender | - (the switch's table knows its port) | the root of the entry | a leaf of the job, by rank | the root | child or parent of this rank |
//! | VNI | the descriptor's | the entry's | the job's | the job's | the job's |
//! | cookie | the descriptor's | the entry's | the job's | the job's | the job's |
//! | number | the descriptor's; older: refused, newer: passes | newer than the last arming; a release: not older | this attempt's | newer than the last arm, at first not older than the job's first; a release: not older | this round's or the next one's |
//! | state | - | - | gathering | not over | not there yet |
//!
//! *Chosen*: the management agent writes the root's address, the VNI and the cookie of a job into every entry of its
//! tree. It knows all three from the request for the tree; without them a forged first arm frame would look genuine.
//! The fabric stamps source addresses, so they cannot be forged. A descending frame can only come in by the parent port
//! of an entry: a multicast from a leaf ends at the discard port of its own switch, whatever it carries.
//!
//! ```
//! use watershed_armed::admission::descends;
//! use watershed_armed::{Address, Frame, Header, Keys, Owner, Portals, Refused};
//!
//! let owner = Owner { root: 0, keys: Keys { vni: 1, cookie: 77 } };
//! let frame = |header: Header, source: u32, word: u64| Frame {
//!     address: Address { multicast_id: 0, reduction_id: 0 },
//!     source,
//!     vni: 1,
//!     portals: Portals::default(),
//!     rank: source,
//!     header: Header { cookie: 77, ..header },
//!     lanes: [word, 0, 0, 0],
//! };
//! let arm = frame(Header { arm: true, seqno: 5, ..Header::default() }, 0, 0);
//! assert_eq!(descends(&arm, &owner, Some(4)), Ok(()));
//! assert_eq!(descends(&arm, &owner, Some(5)), Err(Refused::Stale)); // it has been armed with this number
//! assert_eq!(descends(&Frame { source: 3, ..arm }, &owner, None), Err(Refused::Sender)); // not the root
//! ```

use super::frame::{Frame, FrameError};
use super::header::{Age, NO_RESULT, age};

/// Why a frame is not obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Its CRC or length is wrong.
    Damaged,
    /// Its CRC is right and its contents are not those of a reduction frame.
    Malformed,
    /// It is for nobody here.
    NotOurs,
    /// Its kind has no business here: an arm frame that climbs, a contribution that descends.
    Kind,
    /// Its sender may not send it.
    Sender,
    /// Its protection key is another one.
    Vni,
    /// Its cookie is another one.
    Cookie,
    /// Its number is old.
    Stale,
    /// Its receiver is not waiting for it.
    State,
}

impl From<&FrameError> for Refused {
    fn from(error: &FrameError) -> Refused {
        if error.is_damage() { Refused::Damaged } else { Refused::Malformed }
    }
}

/// A counter for each refusal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, watershed_state::Saved)]
pub struct Refusals {
    /// Wrong CRC or length.
    pub damaged: u64,
    /// Right CRC, wrong contents.
    pub malformed: u64,
    /// For nobody here.
    pub not_ours: u64,
    /// A kind that has no business here.
    pub wrong_kind: u64,
    /// A sender that may not send it.
    pub wrong_sender: u64,
    /// Another VNI.
    pub wrong_vni: u64,
    /// Another cookie.
    pub wrong_cookie: u64,
    /// An old number.
    pub stale: u64,
    /// Nobody waits for it.
    pub wrong_state: u64,
}

impl Refusals {
    /// Counts one.
    pub fn count(&mut self, refused: Refused) {
        *match refused {
            Refused::Damaged => &mut self.damaged,
            Refused::Malformed => &mut self.malformed,
            Refused::NotOurs => &mut self.not_ours,
            Refused::Kind => &mut self.wrong_kind,
            Refused::Sender => &mut self.wrong_sender,
            Refused::Vni => &mut self.wrong_vni,
            Refused::Cookie => &mut self.wrong_cookie,
            Refused::Stale => &mut self.stale,
            Refused::State => &mut self.wrong_state,
        } += 1;
    }

    /// Frames with another VNI or cookie.
    pub fn wrong_key(&self) -> u64 {
        self.wrong_vni + self.wrong_cookie
    }
}

/// The secret of a job: what every frame of its reductions carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct Keys {
    /// Protection key.
    pub vni: u16,
    /// Cookie.
    pub cookie: u32,
}

impl Keys {
    /// Those of a frame.
    pub fn of(frame: &Frame) -> Keys {
        Keys { vni: frame.vni, cookie: frame.header.cookie }
    }

    /// Whether a frame has them.
    ///
    /// # Errors
    /// The one that it has not.
    pub fn admit(self, frame: &Frame) -> Result<(), Refused> {
        match Keys::of(frame) {
            Keys { vni, .. } if vni != self.vni => Err(Refused::Vni),
            Keys { cookie, .. } if cookie != self.cookie => Err(Refused::Cookie),
            _ => Ok(()),
        }
    }
}

/// Whose tree an entry belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct Owner {
    /// Source address of its root.
    pub root: u32,
    /// Keys of its job.
    pub keys: Keys,
}

/// Whether a frame that climbs is a contribution: it arms nothing, and it brings one result at most, its own partial one.
///
/// # Errors
/// That it is of another kind.
pub fn is_contribution(frame: &Frame) -> Result<(), Refused> {
    let header = &frame.header;
    let partial = header.resno == NO_RESULT || header.resno == header.seqno;
    if header.arm || header.retry || !partial { Err(Refused::Kind) } else { Ok(()) }
}

/// Whether a frame that descends may be obeyed under this owner, after the number `last` of the last one that was: an
/// arm frame has to be newer, a release not older.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn descends(frame: &Frame, owner: &Owner, last: Option<u16>) -> Result<(), Refused> {
    let header = &frame.header;
    // Only arm frames ask again.
    if header.retry && !header.arm {
        return Err(Refused::Kind);
    }
    if frame.source != owner.root || frame.rank != 0 {
        return Err(Refused::Sender);
    }
    owner.keys.admit(frame)?;
    match last.map(|last| age(header.seqno, last)) {
        Some(Age::Older) => Err(Refused::Stale),
        Some(Age::Same) if header.arm => Err(Refused::Stale),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Portals;
    use crate::header::{Address, Header};

    const OWNER: Owner = Owner { root: 9, keys: Keys { vni: 3, cookie: 77 } };

    fn frame(header: Header) -> Frame {
        Frame {
            address: Address { multicast_id: 1, reduction_id: 0 },
            source: 9,
            vni: 3,
            portals: Portals::default(),
            rank: 0,
            header: Header { cookie: 77, ..header },
            lanes: [0; 4],
        }
    }

    #[test]
    fn a_descending_frame_needs_every_credential() {
        let arm = frame(Header { arm: true, seqno: 5, ..Header::default() });
        assert_eq!(descends(&arm, &OWNER, None), Ok(()));
        assert_eq!(descends(&arm, &OWNER, Some(4)), Ok(()));
        for (wrong, refused) in [
            (Frame { source: 8, ..arm }, Refused::Sender),
            (Frame { rank: 1, ..arm }, Refused::Sender),
            (Frame { vni: 4, ..arm }, Refused::Vni),
            (Frame { header: Header { cookie: 78, ..arm.header }, ..arm }, Refused::Cookie),
            (Frame { header: Header { arm: false, retry: true, ..arm.header }, ..arm }, Refused::Kind),
        ] {
            assert_eq!(descends(&wrong, &OWNER, None), Err(refused), "{wrong:?}");
        }
        assert_eq!(descends(&arm, &OWNER, Some(5)), Err(Refused::Stale), "a repeated arm frame");
        assert_eq!(descends(&arm, &OWNER, Some(6)), Err(Refused::Stale));
        let release = frame(Header { seqno: 5, ..Header::default() });
        assert_eq!(descends(&release, &OWNER, Some(5)), Ok(()), "a release has the number of the last arming");
        assert_eq!(descends(&release, &OWNER, Some(6)), Err(Refused::Stale));
    }

    #[test]
    fn what_climbs_is_a_contribution() {
        let one = Header { seqno: 5, count: 1, ..Header::default() };
        assert_eq!(is_contribution(&frame(one)), Ok(()));
        assert_eq!(is_contribution(&frame(Header { resno: 5, ..one })), Ok(()), "a partial result");
        for header in [Header { arm: true, ..one }, Header { retry: true, ..one }, Header { resno: 4, ..one }] {
            assert_eq!(is_contribution(&frame(header)), Err(Refused::Kind), "{header:?}");
        }
    }
}
