//! Faults: a stretch of a link on which frames are lost, damaged, repeated or held up, and the link layer around it
//! (requirements R-ERR-1 and B-ERR-1; description (66) to (74) of the armed family's source).
//!
//! ```text
//!           ┌──────────────── link with its link layer ────────────────┐
//!   node A ─┤0  number, keep ─▶  fault site  ─▶ check number and CRC  1├─ node B        the same backwards
//!           │        ▲                                 │ damaged: again │
//!           │        └──────────── retry ──────────────┘               │
//!           └──────────────────────────────────────────────────────────┘
//! ```
//!
//! | parameter | default | unit | effect |
//! |---|---|---|---|
//! | [`LinkLayer::sequence_check`] | on | | frames are numbered, channel by channel, and one that is not newer than the last is removed; off: it is delivered twice, and a count of frames cannot tell the copy from another sender's frame |
//! | [`LinkLayer::reliability`] | none | | frames are kept and sent again until they are there: see [`replay`](super::replay), which takes the place of the check; none: a damaged frame is delivered damaged, and the receiver that checks its CRC drops it |
//! | [`Fault`]s | | | which frames are lost, damaged, repeated or delayed |
//!
//! What happens to a frame is decided at its head; a frame under way is never cut off. Frames on a link stay in order: a
//! delayed one holds those behind it. A family's [`View`] says which frames can be damaged, delayed or repeated; a dead
//! link drops all. Random choices come from a stream of the block's own, one draw a frame and fault.
//!
//! Timing: an undisturbed frame spends one cycle more than without the block. A repeated frame takes its time on the
//! link twice, whether it is removed or not.

use super::replay::{Reliability, Replay};
use super::{Flit, Io, WideFlit};
use watershed_kernel::{Cycle, Rng, Wake};
use watershed_probe::Scope;

/// How a family's frames look to a link.
pub trait View {
    /// The way of a frame whose head comes in at port `from`: [`Direction::Up`], [`Direction::Down`] or [`Direction::Agent`]; `None` for one that only a dead
    /// link stops.
    fn direction(&self, from: u16, head: &Flit) -> Option<Direction>;

    /// How a frame is damaged: the flit and the bit of it that flip; bit 64 k + b is bit b of its k-th word.
    fn damage(&self, head: &Flit, rng: &mut Rng) -> (u16, u16);
}

/// What happens to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum Effect {
    /// It is lost.
    Drop,
    /// A bit of it is flipped.
    Corrupt,
    /// It comes twice.
    Duplicate,
    /// It comes this many cycles later.
    Delay(u64),
    /// It is lost, and so is every other one of any kind, in both directions.
    Dead,
}

/// Which way a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum Direction {
    /// Frames that climb, whichever end of the link is nearer to a root.
    Up,
    /// Frames that descend.
    Down,
    /// Both.
    Both,
    /// Frames of a management agent and for it, both ways: neither of the others.
    Agent,
}

impl Direction {
    /// The way back.
    #[must_use]
    pub fn reversed(self) -> Direction {
        match self {
            Direction::Up => Direction::Down,
            Direction::Down => Direction::Up,
            Direction::Both => Direction::Both,
            Direction::Agent => Direction::Agent,
        }
    }
}

/// A fault: what happens to which frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Fault {
    /// What happens.
    pub effect: Effect,
    /// To frames of this way.
    pub direction: Direction,
    /// With this probability, as [`Rng::threshold`]; `u64::MAX` is always.
    pub threshold: u64,
    /// To the n-th frame of its way on this link only, counted from 0.
    pub nth: Option<u64>,
    /// To frames of this id only: a tree's, a context's.
    pub id: Option<u16>,
    /// From this cycle on.
    pub from: Cycle,
    /// Before this cycle.
    pub until: Cycle,
}

/// The link layer around the fault site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct LinkLayer {
    /// Repeated frames are recognised by their number on the link and removed.
    pub sequence_check: bool,
    /// Frames are kept and sent again.
    pub reliability: Option<Reliability>,
}

impl Default for LinkLayer {
    fn default() -> LinkLayer {
        LinkLayer { sequence_check: true, reliability: None }
    }
}

/// What a link did to frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, watershed_state::Saved)]
pub struct FaultCounts {
    /// Lost.
    pub dropped: u64,
    /// Delivered with a wrong bit.
    pub corrupted: u64,
    /// Delivered twice.
    pub duplicated: u64,
    /// Repeated and removed by the link layer.
    pub duplicates_removed: u64,
    /// Delayed.
    pub delayed: u64,
    /// Swallowed by a dead link, point-to-point packets included.
    pub dead: u64,
    /// Sent again by link-layer replay.
    pub replayed: u64,
    /// Given up by link-layer replay.
    pub given_up: u64,
    /// Acknowledgements of link-layer replay.
    pub acknowledgements: u64,
}

/// The decision about the frame at the head of a channel.
#[derive(Clone, Copy, Debug, Default, watershed_state::Saved)]
pub(super) enum FrameAction {
    #[default]
    Undecided,
    Pass,
    Swallow,
    Wait(Cycle),
    Corrupt {
        flit: u16,
        bit: u16,
    },
    Duplicate,
}

/// One channel of one direction.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
struct Lane {
    action: FrameAction,
    flits: u16,
    /// Number of the frame under way, and that of the next one.
    number: u64,
    next_number: u64,
    /// The lowest number that the far side takes, and whether it removes the frame under way.
    wanted: u64,
    removes: bool,
    copy: Vec<WideFlit>,
    /// Flits of the copy that were sent, while it is being sent.
    replay: Option<usize>,
}

impl Lane {
    /// A head comes to the far side, which looks at its number.
    fn arrives(&mut self, check: bool) {
        self.removes = check && self.number < self.wanted;
        self.wanted = self.wanted.max(self.number + 1);
    }
}

/// The faults of a link, and the luck they have.
#[derive(Clone, Debug, watershed_state::Saved)]
pub(super) struct Faults {
    list: Vec<Fault>,
    rng: Rng,
    counts: FaultCounts,
    /// Frames of each way so far.
    seen: [u64; 3],
}

/// A link with faults; a bump in the wire.
///
/// ```
/// use watershed_fabric::fault::{Effect, Fault, FaultyLink, LinkLayer};
/// # use watershed_fabric::bench::NoTables;
/// # use watershed_fabric::fault::{View, Direction};
/// # use watershed_fabric::{Bench, Block, Flit, Io, Vcs};
/// # use watershed_kernel::{Rng, Wake};
/// # struct Link(FaultyLink);
/// # struct Frames;
/// # impl View for Frames {
/// #     fn direction(&self, _: u16, _: &Flit) -> Option<Direction> { Some(Direction::Up) }
/// #     fn damage(&self, _: &Flit, _: &mut Rng) -> (u16, u16) { (0, 0) }
/// # }
/// # impl Block for Link {
/// #     type Tables = NoTables;
/// #     fn tick(&mut self, io: &mut Io<'_>, _: &NoTables) -> Wake { self.0.tick(io, &Frames) }
/// #     fn open(&self) -> Option<String> { self.0.open() }
/// #     fn probe(&self, scope: &mut watershed_probe::Scope<'_>) { self.0.probe(scope) }
/// # }
///
/// // The second of three frames of one flit is lost; the others go on in the cycle in which they come.
/// let direction = Direction::Both;
/// let fault = Fault { effect: Effect::Drop, direction, threshold: u64::MAX, nth: Some(1), id: None, from: 0, until: u64::MAX };
/// let link = FaultyLink::new(vec![fault], LinkLayer::default(), 1, 0);
/// let frames = (0..3).map(|number| (10 + number, 0, Flit::collective(0, 0, number, 7 + number)));
/// let mut bench = Bench::<_, _, 1>::in_the_wire(Link(link), NoTables, Vcs { set: 1, unicast: 0 }, frames);
/// while bench.tick() {}
/// let left: Vec<_> = bench.sent().iter().map(|(cycle, port, flit)| (*cycle, *port, flit.word)).collect();
/// assert_eq!(left, [(10, 1, 7), (12, 1, 9)]);
/// assert_eq!(bench.block().0.counts().dropped, 1);
/// ```
#[derive(Clone, Debug, watershed_state::Saved)]
pub struct FaultyLink {
    faults: Faults,
    layer: LinkLayer,
    lanes: Vec<Lane>,
    replay: Option<Box<Replay>>,
}

impl Faults {
    /// Whether the link is dead in this cycle.
    pub(super) fn is_dead(&self, now: Cycle) -> bool {
        self.list.iter().any(|fault| fault.effect == Effect::Dead && (fault.from..fault.until).contains(&now))
    }

    /// Decides about a frame whose head has come.
    pub(super) fn decide(&mut self, now: Cycle, from: u16, flit: &Flit, view: &impl View) -> FrameAction {
        if self.is_dead(now) {
            self.counts.dead += 1;
            return FrameAction::Swallow;
        }
        let Some(direction) = view.direction(from, flit) else { return FrameAction::Pass };
        let seen = &mut self.seen[match direction {
            Direction::Agent => 2,
            Direction::Down => 1,
            Direction::Up | Direction::Both => 0,
        }];
        let number = *seen;
        *seen += 1;
        let mut action = FrameAction::Pass;
        for fault in &self.list {
            let of_way =
                fault.direction == direction || fault.direction == Direction::Both && direction != Direction::Agent;
            let fits = of_way && fault.id.is_none_or(|id| id == flit.tag.id());
            if !fits || !(fault.from..fault.until).contains(&now) || fault.nth.is_some_and(|nth| nth != number) {
                continue;
            }
            if fault.threshold != u64::MAX && !self.rng.chance(fault.threshold) {
                continue;
            }
            // The first fault that strikes decides; later ones still draw, so that one does not shift another's luck.
            if !matches!(action, FrameAction::Pass) {
                continue;
            }
            action = match fault.effect {
                Effect::Drop | Effect::Dead => {
                    self.counts.dropped += 1;
                    FrameAction::Swallow
                }
                Effect::Corrupt => {
                    let (flit, bit) = view.damage(flit, &mut self.rng);
                    self.counts.corrupted += 1;
                    FrameAction::Corrupt { flit, bit }
                }
                Effect::Duplicate => FrameAction::Duplicate,
                Effect::Delay(cycles) => {
                    self.counts.delayed += 1;
                    FrameAction::Wait(now + cycles)
                }
            };
        }
        action
    }
}

impl FaultyLink {
    /// Whether a frame stands here that will move by itself: it is delayed until a later cycle, or link-layer replay still
    /// [expects](Replay::expects) to bring it to the far side.
    pub fn holds(&self, now: Cycle) -> bool {
        let delayed = self.lanes.iter().any(|lane| matches!(lane.action, FrameAction::Wait(until) if until > now));
        delayed || self.replay.as_ref().is_some_and(|replay| replay.expects(now))
    }

    /// A link with these faults; `stream` tells its random numbers from those of others.
    pub fn new(faults: Vec<Fault>, layer: LinkLayer, seed: u64, stream: u64) -> FaultyLink {
        let rng = Rng::new(seed, stream);
        FaultyLink {
            faults: Faults { list: faults, rng, counts: FaultCounts::default(), seen: [0; 3] },
            layer,
            lanes: Vec::new(),
            replay: layer.reliability.map(|cfg| Box::new(Replay::new(cfg))),
        }
    }

    /// Whether nothing ever happens to its frames.
    pub fn is_plain(&self) -> bool {
        self.faults.list.is_empty()
    }

    /// Whether it keeps frames and sends them again: then it models the whole link, wire included.
    pub fn replays(&self) -> bool {
        self.replay.is_some()
    }

    /// What it did.
    pub fn counts(&self) -> FaultCounts {
        let mut counts = self.faults.counts;
        if let Some(replay) = &self.replay {
            let of = replay.counts();
            counts.duplicates_removed += of.duplicates_removed;
            (counts.replayed, counts.given_up) = (of.replayed, of.given_up);
            counts.acknowledgements = of.acknowledgements;
        }
        counts
    }

    /// One clock.
    pub fn tick(&mut self, io: &mut Io<'_>, view: &impl View) -> Wake {
        if let Some(replay) = &mut self.replay {
            return replay.tick(io, &mut self.faults, view);
        }
        let channels = usize::from(io.vcs().total());
        if self.lanes.len() != 2 * channels {
            self.lanes = vec![Lane::default(); 2 * channels];
        }
        let now = io.now();
        let mut wake = Wake::OnInput;
        let mut moved = false;
        for (from, to) in [(0u16, 1u16), (1, 0)] {
            for vc in (0..channels as u8).rev() {
                let at = usize::from(from) * channels + usize::from(vc);
                if let Some(sent) = self.lanes[at].replay {
                    let lane = &mut self.lanes[at];
                    if lane.removes || io.can_send(to, vc) {
                        if !lane.removes {
                            io.send_wide(to, vc, &lane.copy[sent]);
                        }
                        lane.replay = (sent + 1 < lane.copy.len()).then_some(sent + 1);
                        moved = true;
                    }
                    continue;
                }
                let Some(flit) = io.head(from, vc) else { continue };
                if flit.tag.head() && matches!(self.lanes[at].action, FrameAction::Undecided) {
                    let lane = &mut self.lanes[at];
                    lane.action = self.faults.decide(now, from, &flit, view);
                    (lane.number, lane.next_number) = (lane.next_number, lane.next_number + 1);
                    lane.flits = 0;
                    lane.copy.clear();
                    // What is swallowed never comes to the far side, and what comes for the first time is new there.
                    if !matches!(lane.action, FrameAction::Swallow) {
                        lane.arrives(self.layer.sequence_check);
                    }
                    moved = true;
                }
                let lane = &mut self.lanes[at];
                if let FrameAction::Wait(until) = lane.action {
                    if until > now {
                        wake = wake.or(Wake::At(until));
                        continue;
                    }
                    lane.action = FrameAction::Pass;
                }
                if matches!(lane.action, FrameAction::Swallow) {
                    io.take(from, vc);
                    moved = true;
                } else {
                    if !io.can_send(to, vc) {
                        continue;
                    }
                    let mut wide = io.take_wide(from, vc);
                    if let FrameAction::Corrupt { flit: nth, bit } = lane.action
                        && nth == lane.flits
                    {
                        wide.flip(bit);
                    }
                    io.send_wide(to, vc, &wide);
                    if matches!(lane.action, FrameAction::Duplicate) {
                        lane.copy.push(wide);
                    }
                    moved = true;
                }
                lane.flits += 1;
                if flit.tag.tail() {
                    if matches!(lane.action, FrameAction::Duplicate) {
                        lane.replay = Some(0);
                        // The same number comes to the far side again.
                        lane.arrives(self.layer.sequence_check);
                        let counts = &mut self.faults.counts;
                        *(if lane.removes { &mut counts.duplicates_removed } else { &mut counts.duplicated }) += 1;
                    }
                    lane.action = FrameAction::Undecided;
                }
            }
        }
        if moved {
            return Wake::Next;
        }
        [0, 1].into_iter().filter_map(|port| io.busy_until(port)).map(Wake::At).fold(wake, Wake::or)
    }

    /// Work that is left, in words.
    pub fn open(&self) -> Option<String> {
        let waits = self.lanes.iter().any(|lane| matches!(lane.action, FrameAction::Wait(_)) || lane.replay.is_some());
        if self.replay.as_ref().is_some_and(|replay| replay.is_busy()) {
            return Some("frames on it wait to be acknowledged or to leave it".into());
        }
        waits.then(|| "a frame is held up or repeated on it".into())
    }

    /// Describes it to a wave.
    pub fn probe(&self, scope: &mut Scope<'_>) {
        let counts = self.counts();
        scope.scope("fault", |scope| {
            scope.bits("dropped", 32, counts.dropped + counts.dead);
            scope.bits("corrupted", 32, counts.corrupted);
            scope.bits("duplicated", 32, counts.duplicated);
            scope.bits("delayed", 32, counts.delayed);
            if self.replay.is_some() {
                scope.bits("replayed", 32, counts.replayed);
                scope.bits("given_up", 32, counts.given_up);
            }
        });
    }
}
