//! Strangers: processes that send frames without valid credentials (requirement R-ERR-1, interference). Each frame
//! lacks at least one of the credentials that [`admission`](super::admission) checks.

use super::client::{ASK, DELETE};
use super::end::MESSAGE;
use super::frame::{self, Frame};
use super::header::{Address, Header, SEQNOS, next_seqno};
use super::job::Job;
use super::manage::{Message, NO_ID, Place, Verb};
use super::tables::{AgentInfo, DOWN, MANAGE, UP};
use std::sync::Arc;
use watershed_kernel::Cycle;
use watershed_state::state;

/// What a stranger's frames have wrong (requirement R-ERR-1, interference).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Another cookie.
    Cookie,
    /// Another VNI.
    Vni,
    /// A sequence number so far behind the one that is armed.
    Stale(u16),
    /// A multicast id without an entry.
    Address,
    /// The address of another job's tree; all other fields are those of the job it disturbs.
    Tree(OtherTree),
    /// Contents that no reduction frame has; the CRC is right.
    Malformed,
    /// Nothing but who sends it: it is not the root, or takes no part.
    Sender,
}

/// The tree of another job, which a stranger names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherTree {
    /// The job.
    pub job: u16,
    /// The multicast id of its first tree, if it is there before the run. One that is made at run time is known where the job
    /// has a process that has learnt it.
    pub id: Option<u16>,
}

/// What a stranger's frames claim to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgedKind {
    /// A contribution, which climbs.
    Contribution,
    /// An arm frame for the next number, which descends.
    Arm,
    /// The result of the present round and an arm frame in one, as the root sends it.
    Result,
    /// The end of the job.
    Release,
    /// A frame of the management agent, or for it: a request, an answer, an order to a switch, an acknowledgement of one.
    Agent(Verb),
}

/// A process that sends frames which do not belong.
#[derive(Clone, Debug)]
pub struct Stranger {
    /// The job it disturbs.
    pub job: Arc<Job>,
    /// What is wrong.
    pub wrong: Defect,
    /// What its frames claim to be.
    pub forged: ForgedKind,
    /// First cycle.
    pub from: Cycle,
    /// First cycle without.
    pub until: Cycle,
    /// Cycles from one frame to the next; 11 is the full rate of the link.
    pub every: u64,
    pub(super) next: Cycle,
    pub(super) sent: u64,
}

state!(Stranger { saved: next, sent; built: job, wrong, forged, from, until, every });

impl Stranger {
    /// A stranger.
    pub fn new(job: Arc<Job>, wrong: Defect, forged: ForgedKind, from: Cycle, until: Cycle, every: u64) -> Stranger {
        Stranger { job, wrong, forged, from, until, every: every.max(1), next: from, sent: 0 }
    }

    /// The channel of its frames: those of the root descend.
    pub(super) fn channel(&self) -> u8 {
        match self.forged {
            ForgedKind::Agent(_) => MANAGE,
            _ if self.job.is_software() => MESSAGE,
            ForgedKind::Contribution => UP,
            ForgedKind::Arm | ForgedKind::Result | ForgedKind::Release => DOWN,
        }
    }

    /// The rank of its end point, or one that nobody has.
    pub(super) fn rank_of(&self, source: u32) -> u32 {
        self.job.members.iter().position(|&member| member == source).map_or(0x00ff_ffff, |rank| rank as u32)
    }

    /// Of a job without a tree: the rank its next message goes to, all in turn.
    pub(super) fn to(&self) -> u32 {
        (self.sent % self.job.members.len() as u64) as u32
    }

    /// One has gone.
    pub(super) fn sent_one(&mut self, now: Cycle) {
        self.sent += 1;
        self.next = now.max(self.next + self.every);
    }

    /// Frames it has made.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// The reduction id of its next frame: all in turn.
    pub(super) fn flow(&self) -> u8 {
        (self.sent % u64::from(self.job.flows)) as u8
    }

    fn frame(&self, source: u32, armed: Option<u16>, (tree, names): (Option<u16>, u32)) -> Frame {
        let job = &self.job;
        let right = armed.unwrap_or(job.first_seqno);
        let flow = self.flow();
        let address =
            Address { multicast_id: tree.or(job.trees.first().copied()).unwrap_or_default(), reduction_id: flow };
        let all = job.members.len() as u32;
        let header = Header { seqno: right, op: job.op.number, cookie: job.keys.cookie, ..Header::default() };
        let (rank, header) = match self.forged {
            ForgedKind::Contribution => (self.rank_of(source), Header { count: 1, ..header }),
            ForgedKind::Arm => (0, Header { seqno: next_seqno(right), arm: true, ..header }),
            ForgedKind::Result => {
                (0, Header { seqno: next_seqno(right), resno: right, arm: true, count: all, ..header })
            }
            // Those of the agent are made elsewhere.
            ForgedKind::Release | ForgedKind::Agent(_) => (0, Header { resno: right, count: all, ..header }),
        };
        let request = if self.forged == ForgedKind::Contribution { 0 } else { names };
        let portals = frame::Portals { request, initiator: job.number, ..frame::Portals::default() };
        let mut frame = Frame {
            address,
            source,
            vni: job.keys.vni,
            portals,
            rank,
            header,
            lanes: [0xbad0_bad0_bad0_bad0 ^ self.sent; 4],
        };
        match self.wrong {
            Defect::Cookie => frame.header.cookie = job.keys.cookie.wrapping_add(1 + self.sent as u32 % 7),
            Defect::Vni => frame.vni = job.keys.vni.wrapping_add(1 + (self.sent % 7) as u16),
            Defect::Stale(behind) => {
                let old = |number: u16| (number + SEQNOS - behind % SEQNOS) % SEQNOS;
                (frame.header.seqno, frame.header.resno) = (old(right), old(right));
                if self.forged == ForgedKind::Contribution {
                    frame.header.resno = header.resno;
                }
            }
            Defect::Address => frame.address = Address { multicast_id: 8191, reduction_id: flow },
            Defect::Tree(_) | Defect::Malformed | Defect::Sender => {}
        }
        frame
    }

    /// Its next frame, where it is one of the management agent's: everything in it is right, or may be, but who sends it.
    pub(super) fn message(&self, source: u32, verb: Verb, managed: &AgentInfo, tree: Option<u16>) -> Message {
        let (job, from, nth) = (&self.job, Place::End(source), self.sent as u32);
        let to = match verb {
            Verb::Ask | Verb::Delete | Verb::Done | Verb::NoRoom => Place::End(managed.agent),
            Verb::Granted | Verb::Refused | Verb::Deleted => Place::End(job.members[0]),
            Verb::Write | Verb::Erase => Place::Switch(nth % managed.ways.switches()),
        };
        let number = match verb {
            Verb::Ask | Verb::Granted | Verb::Refused => ASK,
            Verb::Delete | Verb::Deleted => DELETE,
            // Sooner or later the right one.
            _ => 1 + (nth + 3 * source) % 8,
        };
        let id = tree.or(job.trees.first().copied()).unwrap_or_default();
        let message = Message { number, keys: job.keys, ids: [id, NO_ID], ..Message::new(to, from, verb, job.number) };
        match verb {
            // In its own name, or in that of the root.
            Verb::Ask => {
                let root = if nth.is_multiple_of(2) { source } else { job.members[0] };
                Message { root, ..message }.with_members(0, &[root, job.members[1]])
            }
            Verb::Delete => Message { root: if nth.is_multiple_of(2) { source } else { job.members[0] }, ..message },
            Verb::Write => Message { root: source, parent: 0, count: 1, lanes: [2, 0, 0, 0], ..message },
            _ => message,
        }
    }

    /// The words of its next frame; `tree` is the multicast id that it goes to, and how the root names its trees.
    pub(super) fn words(&self, source: u32, armed: Option<u16>, tree: (Option<u16>, u32), ethernet: bool) -> Vec<u64> {
        let frame = self.frame(source, armed, tree);
        if ethernet && self.wrong != Defect::Malformed {
            return frame.to_ethernet_words().expect("its fields fit").into();
        }
        let mut bytes = frame.encode().expect("its fields fit");
        if self.wrong == Defect::Malformed {
            bytes[46] = 0x3f << 3;
            let crc = frame::crc32(&bytes[..80]).to_be_bytes();
            bytes[80..].copy_from_slice(&crc);
        }
        let word =
            |chunk: &[u8]| chunk.iter().fold(0u64, |word, &byte| word << 8 | u64::from(byte)) << (64 - 8 * chunk.len());
        bytes.chunks(8).map(word).collect()
    }
}
