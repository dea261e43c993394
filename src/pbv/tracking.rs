//! The tracking store: who has not answered, and the read-modify-write pipeline over it (B-CE-3).
//!
//! ```text
//!   operation ─▶ read PBV, p_count ─▶ clear, decrement ─▶ write ─▶ verdict
//!                        ▲   └──── forwarding ────┘         │
//!                        └───────── tracking store ◀────────┘
//! ```
//!
//! An operation that is offered in cycle t reads the store in t, is changed in t + 1 and written in t + 2, where its verdict
//! is there too. Storage: 128 + 16 bits a context. Paragraph 143.
//!
//! An operation carries the generation of the context it was issued in, and its verdict gives it back: what was under way
//! when a context began anew says nothing about the run that has begun *\[chosen\]*.

/// How two messages for one context in the pipeline are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Hazard {
    /// What is about to be written is used in place of what was read.
    #[default]
    Forward,
    /// The second message waits.
    Interlock,
    /// Neither: updates are lost. Exists so that the hazard test can be seen to fail.
    Ignore,
}

/// An entry of the tracking store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Track {
    /// Participants that have not answered.
    pub pbv: u128,
    /// How many they are.
    pub p_count: u16,
}

/// What is done to an entry of the tracking store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackOp {
    /// Loads the stored values.
    Load(Track),
    /// Clears a participant's bit and decrements p_count.
    Clear(u8),
    /// Loads the stored values and clears a participant's bit in them.
    Begin(Track, u8),
}

/// An operation on an entry of the tracking store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which entry.
    pub slot: u16,
    /// Generation of the context when it was issued.
    pub generation: u32,
    /// What is done to the entry.
    pub op: TrackOp,
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The request.
    pub request: Request,
    /// The entry as it was written.
    pub track: Track,
    /// The verdict.
    pub verdict: Verdict,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Done; others are missing.
    Accepted,
    /// Done, and it was the last one.
    Satisfied,
    /// The bit was clear already.
    Duplicate,
    /// p_count was zero already.
    CountZero,
}

/// An operation in the tracking pipeline.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    pub(super) request: Request,
    value: Track,
}

impl InFlight {
    pub(super) fn slot(&self) -> u16 {
        self.request.slot
    }
}

/// The read-modify-write pipeline over the tracking store.
#[derive(Clone, Debug)]
pub struct Tracker {
    hazard: Hazard,
    ram: Vec<Track>,
    /// The first entry that was written with a PBV and a p_count that do not agree.
    broken: Option<u16>,
    pub(super) read_q: Option<InFlight>,
    pub(super) modify_q: Option<(InFlight, Verdict)>,
}

impl Tracker {
    /// A store of so many entries.
    pub fn new(contexts: u16, hazard: Hazard) -> Tracker {
        Tracker {
            hazard,
            ram: vec![Track::default(); usize::from(contexts)],
            broken: None,
            read_q: None,
            modify_q: None,
        }
    }

    /// Whether an operation on this entry can be taken in this cycle.
    pub fn ready(&self, slot: u16) -> bool {
        self.hazard != Hazard::Interlock || !self.holds(slot)
    }

    /// Whether an operation on this entry is in the pipeline.
    pub fn holds(&self, slot: u16) -> bool {
        self.read_q.is_some_and(|op| op.slot() == slot) || self.modify_q.is_some_and(|(op, _)| op.slot() == slot)
    }

    /// One clock: an operation in, the verdict of the one that was taken two cycles ago out.
    pub fn tick(&mut self, input: Option<Request>) -> Option<Judged> {
        let forward = self.hazard == Hazard::Forward;
        let written = self.modify_q;
        let modified = self.read_q.map(|op| {
            // What the operation ahead is writing in this cycle is newer than what was read.
            let ahead = written.filter(|(ahead, _)| forward && ahead.slot() == op.slot());
            let value = ahead.map_or(op.value, |(ahead, _)| ahead.value);
            let (value, verdict) = modify(op.request.op, value);
            (InFlight { value, ..op }, verdict)
        });
        let read = input.map(|request| {
            let through = written.filter(|(ahead, _)| forward && ahead.slot() == request.slot);
            let value = through.map_or(self.ram[usize::from(request.slot)], |(ahead, _)| ahead.value);
            InFlight { request, value }
        });
        if let Some((op, _)) = written {
            self.ram[usize::from(op.slot())] = op.value;
            // An entry changes in no other place: this looks at all of them in every cycle.
            if op.value.pbv.count_ones() != u32::from(op.value.p_count) && self.broken.is_none() {
                self.broken = Some(op.slot());
            }
        }
        self.modify_q = modified;
        self.read_q = read;
        written.map(|(op, verdict)| Judged { request: op.request, track: op.value, verdict })
    }

    /// An entry as it is stored.
    pub fn entry(&self, slot: u16) -> Track {
        self.ram[usize::from(slot)]
    }

    /// Whether nothing is in the pipeline.
    pub fn is_idle(&self) -> bool {
        self.read_q.is_none() && self.modify_q.is_none()
    }

    /// The first entry whose PBV and p_count did not agree in some cycle, if there is one (checked runs).
    pub fn disagreement(&self) -> Option<u16> {
        self.broken
    }
}

fn modify(op: TrackOp, old: Track) -> (Track, Verdict) {
    match op {
        TrackOp::Begin(track, entry) => modify(TrackOp::Clear(entry), track),
        TrackOp::Load(track) => (track, if track.pbv == 0 { Verdict::Satisfied } else { Verdict::Accepted }),
        TrackOp::Clear(entry) => {
            let bit = 1 << entry;
            if old.pbv & bit == 0 {
                (old, Verdict::Duplicate)
            } else if old.p_count == 0 {
                (old, Verdict::CountZero)
            } else {
                let track = Track { pbv: old.pbv & !bit, p_count: old.p_count - 1 };
                (track, if track == Track::default() { Verdict::Satisfied } else { Verdict::Accepted })
            }
        }
    }
}
