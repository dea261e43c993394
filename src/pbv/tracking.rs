//! The tracking store: the participants that have not answered, and the read-modify-write pipeline over it (B-CE-3).
//!
//! ```text
//!   operation ─▶ read PBV, p_count ─▶ clear, decrement ─▶ write ─▶ verdict
//!                        ▲   └──── forwarding ────┘         │
//!                        └───────── tracking store ◀────────┘
//! ```
//!
//! An operation that is offered in cycle t reads the store in t, is changed in t + 1 and written in t + 2; its verdict
//! is known in t + 2 too. Storage: 128 + 16 bits a context. Paragraph 143.
//!
//! An operation carries the generation of its context, and its verdict returns it. So verdicts that were under way when
//! a context began a new run are ignored *\[chosen\]*.
//!
//! Waves have both stages (H-PIPE-3, `hardware.md`) under `ce.tracking`:
//!
//! | scope | contents in cycle t | signals |
//! |---|---|---|
//! | `read` | the entry read at the end of t - 1, which is changed in t | `valid`, `message`, `cc_id`, `run`, `slot`, `op`, `responder`, `load_…` (new values of a load), `pbv` and `p_count` as read |
//! | `write` | the entry changed in t - 1, which is written at the end of t | the same; `read_…` as read, `forward` (source of the changed value), `used_…` as forwarded, `pbv` and `p_count` as written, `verdict` |
//!
//! ```
//! use watershed_pbv::ce::{Hazard, Label, Request, Track, TrackOp, Tracker, Verdict};
//!
//! let mut tracker = Tracker::new(1, Hazard::Forward);
//! let request = |op| Some(Request { slot: 0, generation: 0, op, label: Label::default() });
//! let both = Track { pbv: 0b11, p_count: 2 };
//! // An operation a cycle on one entry: forwarding keeps them apart.
//! assert!(tracker.tick(request(TrackOp::Load(both))).is_none()); // cycle 0
//! assert!(tracker.tick(request(TrackOp::Clear(0))).is_none()); // cycle 1
//! let verdict = |judged: Option<_>| judged.map(|judged: watershed_pbv::ce::TrackResult| (judged.verdict, judged.track.p_count));
//! assert_eq!(verdict(tracker.tick(request(TrackOp::Clear(1)))), Some((Verdict::Accepted, 2))); // cycle 2: of the load
//! assert_eq!(verdict(tracker.tick(None)), Some((Verdict::Accepted, 1))); // cycle 3
//! assert_eq!(verdict(tracker.tick(None)), Some((Verdict::Satisfied, 0))); // cycle 4
//! ```

use watershed_probe::{EnumTable, Scope};

/// How two messages for one context in the pipeline are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, watershed_state::Saved)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct Track {
    /// Participants that have not answered.
    pub pbv: u128,
    /// How many they are.
    pub p_count: u16,
}

/// What is done to an entry of the tracking store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum TrackOp {
    /// Loads the stored values.
    Load(Track),
    /// Clears a participant's bit and decrements p_count.
    Clear(u8),
    /// Loads the stored values and clears a participant's bit in them.
    Begin(Track, u8),
}

/// Whose operation it is: what a waveform shows beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct Label {
    /// Number of the message's type; 0 if the engine loads the entry anew by itself.
    pub message: u8,
    /// The context.
    pub cc_id: u16,
    /// Its run.
    pub run: u32,
}

/// An operation on an entry of the tracking store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Request {
    /// Which entry.
    pub slot: u16,
    /// Generation of the context when it was issued.
    pub generation: u32,
    /// What is done to the entry.
    pub op: TrackOp,
    /// Whose it is.
    pub label: Label,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct TrackResult {
    /// The request.
    pub request: Request,
    /// The entry as it was written.
    pub track: Track,
    /// The verdict.
    pub verdict: Verdict,
}

/// The outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
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
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
pub(super) struct InFlight {
    pub(super) request: Request,
    /// As read from the store, or in the same cycle from what was written to it.
    read: Track,
    /// As it was changed: what was read, or what the operation ahead was writing.
    used: Track,
    /// As it is to be written.
    value: Track,
    forward: Forward,
}

/// Where the value comes from that an operation changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
enum Forward {
    /// The store.
    None,
    /// What was written in the cycle in which it was read.
    Through,
    /// What the operation ahead wrote in the cycle in which it was changed.
    Ahead,
}

impl InFlight {
    pub(super) fn slot(&self) -> u16 {
        self.request.slot
    }
}

/// The read-modify-write pipeline over the tracking store.
#[derive(Clone, Debug, watershed_state::Saved)]
pub struct Tracker {
    hazard: Hazard,
    ram: Vec<Track>,
    /// The first entry that was written with a PBV and a p_count that do not agree.
    broken: Option<u16>,
    pub(super) read_q: Option<InFlight>,
    pub(super) modify_q: Option<(InFlight, Verdict)>,
}

impl Tracker {
    /// A store of this many entries.
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
    pub fn tick(&mut self, input: Option<Request>) -> Option<TrackResult> {
        let forward = self.hazard == Hazard::Forward;
        let written = self.modify_q;
        let modified = self.read_q.map(|op| {
            // What the operation ahead is writing in this cycle is newer than what was read.
            let ahead = written.filter(|(ahead, _)| forward && ahead.slot() == op.slot());
            let used = ahead.map_or(op.read, |(ahead, _)| ahead.value);
            let forward = if ahead.is_some() { Forward::Ahead } else { op.forward };
            let (value, verdict) = modify(op.request.op, used);
            (InFlight { used, value, forward, ..op }, verdict)
        });
        let read = input.map(|request| {
            let through = written.filter(|(ahead, _)| forward && ahead.slot() == request.slot);
            let read = through.map_or(self.ram[usize::from(request.slot)], |(ahead, _)| ahead.value);
            let forward = if through.is_some() { Forward::Through } else { Forward::None };
            InFlight { request, read, used: read, value: read, forward }
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
        written.map(|(op, verdict)| TrackResult { request: op.request, track: op.value, verdict })
    }

    /// Describes the stages to a wave, in scope `tracking`: what was read and is changed in this cycle, and what was changed and
    /// is written in this cycle.
    pub fn probe(&self, scope: &mut Scope<'_>) {
        scope.scope("tracking", |scope| {
            scope.scope("read", |scope| {
                show_request(scope, self.read_q.map(|op| op.request));
                show_track(scope, ["pbv", "p_count"], self.read_q.map(|op| op.read));
            });
            scope.scope("write", |scope| {
                let op = self.modify_q.map(|(op, _)| op);
                show_request(scope, op.map(|op| op.request));
                show_track(scope, ["read_pbv", "read_p_count"], op.map(|op| op.read));
                scope.state("forward", &FORWARDS, op.map_or(0, |op| op.forward as u64));
                show_track(scope, ["used_pbv", "used_p_count"], op.map(|op| op.used));
                show_track(scope, ["pbv", "p_count"], op.map(|op| op.value));
                scope.state("verdict", &VERDICTS, self.modify_q.map_or(0, |(_, verdict)| verdict as u64 + 1));
            });
        });
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

static FORWARDS: EnumTable = EnumTable { name: "forward", names: &["NONE", "THROUGH", "AHEAD"] };
static OPERATIONS: EnumTable = EnumTable { name: "track", names: &["NONE", "LOAD", "CLEAR", "BEGIN"] };
static VERDICTS: EnumTable =
    EnumTable { name: "verdict", names: &["NONE", "ACCEPTED", "SATISFIED", "DUPLICATE", "COUNT_ZERO"] };

fn show_request(scope: &mut Scope<'_>, request: Option<Request>) {
    let label = request.map(|request| request.label);
    let (number, responder, load) = match request.map(|request| request.op) {
        None => (0, None, None),
        Some(TrackOp::Load(track)) => (1, None, Some(track)),
        Some(TrackOp::Clear(entry)) => (2, Some(entry), None),
        Some(TrackOp::Begin(track, entry)) => (3, Some(entry), Some(track)),
    };
    scope.bit("valid", request.is_some());
    scope.valid("message", 8, label.map(|label| u64::from(label.message)));
    scope.valid("cc_id", 12, label.map(|label| u64::from(label.cc_id)));
    scope.valid("run", 32, label.map(|label| u64::from(label.run)));
    scope.valid("slot", 12, request.map(|request| u64::from(request.slot)));
    scope.state("op", &OPERATIONS, number);
    scope.valid("responder", 7, responder.map(u64::from));
    show_track(scope, ["load_pbv", "load_p_count"], load);
}

fn show_track(scope: &mut Scope<'_>, [pbv, p_count]: [&'static str; 2], track: Option<Track>) {
    let words = track.map(|track| [track.pbv as u64, (track.pbv >> 64) as u64]);
    scope.valid_wide(pbv, 128, words.as_ref().map(|words| &words[..]));
    scope.valid(p_count, 16, track.map(|track| u64::from(track.p_count)));
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
