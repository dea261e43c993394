//! What stands in a wire: an engine of one family, with a way past it for the other families; or a link that misbehaves, which is there
//! for all.
//!
//! ```text
//!            ┌────────────── wire ──────────────┐
//!   switch   │  channels of the family: engine  │   other side
//!   ◀──────▶ │  ──────────────────────────────  │ ◀──────────▶    one flit a port and cycle
//!            │  all others: passed on           │
//!            └──────────────────────────────────┘
//! ```
//!
//! | register | bits | meaning |
//! |---|---|---|
//! | `others_first` | 1 | the engine took the wire when others wanted it: they go first the next time *\[chosen\]* |

use super::{Map, Tables, WORDS};
use watershed_armed::{self as armed};
use watershed_fabric::fault::{Direction, View};
use watershed_fabric::{self as fabric, Block, Channels, Flit, Io};
use watershed_kernel::{Rng, Wake};
use watershed_pbv::system as pbv;
use watershed_probe::Scope;
use watershed_state::state;

/// A block in a wire, with the turn between its own frames and others.
#[derive(Clone, Debug)]
pub struct WireBlock {
    /// The engine or the link.
    pub what: FamilyBlock,
    /// Whether others than the engine's family go first.
    others_first: bool,
}

state!(WireBlock { saved: what, others_first });

/// An engine of a family, or a link of its faults.
#[derive(Clone, Debug)]
pub enum FamilyBlock {
    /// The armed family's.
    Armed(armed::WireBlock),
    /// The PBV family's.
    Pbv(pbv::WireBlock),
}

state!(
    enum FamilyBlock {
        Armed,
        Pbv,
    }
);

impl From<armed::WireBlock> for WireBlock {
    fn from(what: armed::WireBlock) -> Self {
        WireBlock { what: FamilyBlock::Armed(what), others_first: false }
    }
}

impl From<pbv::WireBlock> for WireBlock {
    fn from(what: pbv::WireBlock) -> Self {
        WireBlock { what: FamilyBlock::Pbv(what), others_first: false }
    }
}

/// How frames of a family look on a link where there are others.
struct FamilyView<V>(V, Channels);

impl<V: View> View for FamilyView<V> {
    fn direction(&self, from: u16, head: &Flit) -> Option<Direction> {
        let vc = head.tag.vc();
        let set = self.1.first..self.1.first + self.1.vcs.set.max(1);
        set.contains(&vc).then(|| self.0.direction(from, &head.on(vc - self.1.first))).flatten()
    }

    fn damage(&self, head: &Flit, rng: &mut Rng) -> (u16, u16) {
        self.0.damage(head, rng)
    }
}

/// The outcome of forwarding in a cycle.
#[derive(Clone, Copy, Default)]
struct ForwardOutcome {
    moved: bool,
    /// A flit could have gone on if its port had not sent another one in this cycle.
    held: bool,
    /// Something is left.
    left: bool,
}

/// Passes on what is on channels of others, as [`watershed_fabric::pass_through`] does: the highest set-routed channel first, and of
/// point-to-point ones another one first in every cycle.
fn pass(io: &mut Io<'_>, own: Channels) -> ForwardOutcome {
    let vcs = io.all().vcs;
    let turn = (io.now() % u64::from(vcs.unicast.max(1))) as u8;
    let mut passed = ForwardOutcome::default();
    for (from, to) in [(0, 1), (1, 0)] {
        let point_to_point = (turn..vcs.unicast).chain(0..turn).map(|vc| vcs.set + vc);
        for vc in (0..vcs.set).rev().chain(point_to_point).filter(|&vc| !own.has(vc)) {
            if io.head(from, vc).is_none() {
                continue;
            }
            if io.can_send(to, vc) {
                io.pass(from, to, vc);
                passed.moved = true;
            } else {
                passed.held |= io.has_sent(to) && io.credits(to, vc) > 0;
            }
            passed.left |= io.queued(from, vc) > 0;
        }
    }
    passed
}

impl WireBlock {
    /// The channels that the block takes flits from itself; a link takes those of all.
    fn own(&self, map: &Map) -> Option<Channels> {
        match &self.what {
            FamilyBlock::Armed(wired) => wired.fault().is_none().then_some(map.armed),
            FamilyBlock::Pbv(wired) => wired.fault().is_none().then_some(map.pbv),
        }
    }

    fn serve(&mut self, io: &mut Io<'_>, tables: &Tables) -> Wake {
        match (&mut self.what, &tables.armed, &tables.pbv) {
            (FamilyBlock::Armed(armed::WireBlock::Fault(link)), Some(of), _) => {
                let frames = armed::tables::Frames { agent: of.managed().is_some(), cut: of.cut };
                link.tick(io, &FamilyView(frames, tables.map.armed))
            }
            (FamilyBlock::Pbv(pbv::WireBlock::Fault(link)), ..) => {
                let cut = fabric::Tables::<WORDS>::cut(tables);
                link.tick(io, &FamilyView(watershed_pbv::fault::Frames { cut }, tables.map.pbv))
            }
            (FamilyBlock::Armed(wired), Some(of), _) => wired.tick(io, of),
            (FamilyBlock::Pbv(wired), _, Some(of)) => wired.tick(io, of),
            _ => unreachable!("a block of a family without its tables"),
        }
    }
}

impl Block for WireBlock {
    type Tables = Tables;

    fn tick(&mut self, io: &mut Io<'_>, tables: &Tables) -> Wake {
        let Some(own) = self.own(&tables.map) else { return self.serve(io, tables) };
        let mut passed = ForwardOutcome::default();
        if self.others_first {
            passed = pass(io, own);
        }
        let all = io.show(own);
        let mut wake = self.serve(io, tables);
        io.show(all);
        if !self.others_first {
            passed = pass(io, own);
        }
        if self.others_first {
            self.others_first = !passed.moved;
        } else {
            self.others_first = passed.held;
        }
        // The engine does not see what else kept it from sending.
        if passed.moved || passed.held {
            wake = Wake::Next;
        }
        if passed.left {
            wake = [0, 1].into_iter().filter_map(|port| io.busy_until(port)).map(Wake::At).fold(wake, Wake::or);
        }
        io.heed_credits(true);
        wake
    }

    fn open(&self) -> Option<String> {
        match &self.what {
            FamilyBlock::Armed(wired) => wired.open(),
            FamilyBlock::Pbv(wired) => wired.open(),
        }
    }

    fn probe(&self, scope: &mut Scope<'_>) {
        match &self.what {
            FamilyBlock::Armed(wired) => wired.probe(scope),
            FamilyBlock::Pbv(wired) => wired.probe(scope),
        }
        scope.bits("others_first", 1, u64::from(self.others_first));
    }

    const STAGES: &'static [&'static str] = &["engine.unit", "ce.tree"];

    fn watch(&mut self, watched: bool, tables: &Tables) {
        match (&mut self.what, &tables.armed, &tables.pbv) {
            (FamilyBlock::Armed(wired), Some(of), _) => wired.watch(watched, of),
            (FamilyBlock::Pbv(wired), _, Some(of)) => wired.watch(watched, of),
            _ => {}
        }
    }

    fn stages_moved(&self) -> bool {
        match &self.what {
            FamilyBlock::Armed(wired) => wired.stages_moved(),
            FamilyBlock::Pbv(wired) => wired.stages_moved(),
        }
    }

    fn probe_stages(&self, scope: &mut Scope<'_>) {
        match &self.what {
            FamilyBlock::Armed(wired) => wired.probe_stages(scope),
            FamilyBlock::Pbv(wired) => wired.probe_stages(scope),
        }
    }
}
