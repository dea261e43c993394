//! The leaf process of one flow (requirements R-EP-2, R-EP-3, R-EP-4; description (36), (37), FIG. 3A).
//!
//! ```text
//!             first arm            computed            sent on every armed tree
//!   WAIT_ARM ───────────▶ COMPUTING ────────▶ WAITING ◀──────────────┐ arm with a new number: the kept
//!                             ▲                 │  └─────────────────┘ contribution is sent again under it
//!                             │                 │ result of the number it was sent under
//!                             └── arm set ──────┴── arm clear ─▶ DONE
//!   any: patience is over, or released without a result ─▶ GAVE_UP
//! ```
//!
//! A leaf keeps its contribution until the result comes. It sends it with count 1 on every tree that has been armed,
//! under the sequence number of that tree's last arm frame, at most once for each number. Frames that the root did not
//! send, or sent with other keys or before the last arm, are counted and ignored (see [`admission`](super::admission));
//! so are results of other numbers. Until it is first armed, numbers older than the job's first one are old.
//!
//! ```
//! use std::sync::Arc;
//! use watershed_armed::station::Merges;
//! use watershed_armed::{Address, Compute, Frame, Header, Job, Keys, Leaf, LeafState, Portals, Tokens};
//! use watershed_arith::quad::{Opcode, Quad};
//!
//! // End point 0 is the root, 1 and 2 are the leaves; they sum integers.
//! let op = Opcode::from_number(0x14).unwrap(); // INT SUM
//! let quads = [1, 40, 2].map(|word| Quad::of([word, 0, 0, 0]));
//! let job = Job::of(op, 3, [0, 1, 2].into(), Keys { vni: 1, cookie: 77 }, quads.into());
//! let job = Job { compute: Compute::Fixed(30), ..job };
//! let mut leaf = Leaf::new(Arc::new(job), 0, 1, 1); // rank 1, at end point 1
//! # let frame = |header: Header| Frame {
//! #     address: Address { multicast_id: 3, reduction_id: 0 },
//! #     source: 0,
//! #     vni: 1,
//! #     portals: Portals::default(),
//! #     rank: 0,
//! #     header: Header { cookie: 77, ..header },
//! #     lanes: [43, 0, 0, 0],
//! # };
//! let (mut merges, mut out) = (Merges::new(1, Tokens::new(3)), Vec::new());
//! leaf.receive(10, 0, &frame(Header { arm: true, seqno: 0, ..Header::default() }), 0); // armed in cycle 10
//! leaf.act(39, false, &mut merges, &mut out);
//! assert!(out.is_empty() && leaf.state() == LeafState::Computing); // it computes for 30 cycles
//! leaf.act(40, false, &mut merges, &mut out);
//! assert_eq!((out[0].0.lanes[0], out[0].0.header.count, leaf.state()), (40, 1, LeafState::Waiting));
//! // The result of number 0 comes down, without arming again.
//! leaf.receive(90, 0, &frame(Header { seqno: 1, resno: 0, ..Header::default() }), 0);
//! assert_eq!((leaf.results()[0].quad.lanes[0], leaf.state()), (43, LeafState::Done));
//! ```

use super::admission::{Refusals, Refused, descends};
use super::frame::{Frame, Portals, TreeNames};
use super::header::{Address, Age, Header, NO_RESULT, age};
use super::job::{Job, Round};
use super::root::Outbox;
use super::station::{FrameOrigin, Merges};
use std::hash::Hasher;
use std::sync::Arc;
use watershed_arith::Quad;
use watershed_kernel::{Cycle, Digest, Wake};
use watershed_probe::{EnumTable, Scope};
use watershed_state::state;

/// States in waves.
static STATES: EnumTable =
    EnumTable { name: "leaf", names: &["WAIT_ARM", "COMPUTING", "WAITING", "DONE", "GAVE_UP", "SOFTWARE"] };

/// Where a flow's leaf stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum LeafState {
    /// Nothing has reached it yet.
    WaitArm = 0,
    /// It has no contribution yet.
    Computing = 1,
    /// It waits for the result.
    Waiting = 2,
    /// All rounds are done.
    Done = 3,
    /// Its patience was over, or the root released it without a result.
    GaveUp = 4,
    /// The root got no tree at run time: the job reduces in software.
    Software = 5,
}

/// A result as a leaf got it.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
pub struct LeafResult {
    /// Which round.
    pub round: Round,
    /// Cycle in which its contribution was first sent.
    pub entered: Cycle,
    /// Cycle in which it had the result.
    pub got: Cycle,
    /// The result, as the end point has it in the end.
    pub quad: Quad,
    /// Token of the frame that brought it.
    pub token: u64,
}

/// The leaf process of one flow.
#[derive(Clone, Debug)]
pub struct Leaf {
    job: Arc<Job>,
    flow: u8,
    rank: u32,
    source: u32,
    /// The opcode it sends instead of the job's (a misbehaving leaf).
    wrong_op: Option<u8>,
    /// Multicast ids of its trees, as far as it knows them.
    trees: Vec<u16>,
    state: LeafState,
    step: u32,
    ready: Cycle,
    contribution: Quad,
    armed: [Option<u16>; 2],
    sent: [Option<u16>; 2],
    awaited: Option<u16>,
    /// Number with which the present step was armed: what a slower tree brings of earlier ones is not answered.
    floor: u16,
    entered: Cycle,
    patience_ends: Cycle,
    results: Vec<LeafResult>,
    resent: u64,
    refused: Refusals,
    /// Rounds that were called.
    called: u32,
}

state!(Leaf {
    saved: trees, called, state, step, ready, contribution, armed, sent, awaited, floor, entered, patience_ends, results, resent, refused;
    built: job, flow, rank, source, wrong_op
});

impl Leaf {
    /// The leaf with this rank of a flow, at the end point with this source address.
    pub fn new(job: Arc<Job>, flow: u8, rank: u32, source: u32) -> Leaf {
        let first = job.run_time.map_or(job.timeouts.patience, |run_time| run_time.first_patience);
        let patience_ends = if first == 0 { Cycle::MAX } else { job.start + first };
        Leaf {
            trees: job.trees.clone(),
            job,
            flow,
            rank,
            source,
            wrong_op: None,
            state: LeafState::WaitArm,
            step: 0,
            ready: Cycle::MAX,
            contribution: Quad::default(),
            armed: [None; 2],
            sent: [None; 2],
            awaited: None,
            floor: 0,
            entered: 0,
            patience_ends,
            results: Vec::new(),
            resent: 0,
            refused: Refusals::default(),
            called: 0,
        }
    }

    /// Makes it send another operation than the job's.
    pub fn misbehave(&mut self, op: u8) {
        self.wrong_op = Some(op);
    }

    /// The job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// The flow.
    pub fn flow(&self) -> u8 {
        self.flow
    }

    /// Its rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Where it stands.
    pub fn state(&self) -> LeafState {
        self.state
    }

    /// The results it got.
    pub fn results(&self) -> &[LeafResult] {
        &self.results
    }

    /// Contributions it sent again.
    pub fn resent(&self) -> u64 {
        self.resent
    }

    /// The last sequence number it was armed with.
    pub fn seqno(&self) -> Option<u16> {
        self.armed.into_iter().flatten().last()
    }

    /// Frames it did not obey.
    pub fn refused(&self) -> &Refusals {
        &self.refused
    }

    /// Whether it will do nothing more, but perhaps contribute to the closing barrier again.
    pub fn is_over(&self) -> bool {
        self.is_done() || self.is_closing()
    }

    fn is_done(&self) -> bool {
        matches!(self.state, LeafState::Done | LeafState::GaveUp | LeafState::Software)
    }

    /// Whether it has all results and has said so.
    fn is_closing(&self) -> bool {
        self.state == LeafState::Waiting
            && self.job.round(self.flow, self.step).is_some_and(|round| round.closing)
            && self.awaited.is_some()
    }

    /// The root has no tree: a rank of a software reduction takes its place.
    pub fn withdraw(&mut self) {
        if self.state == LeafState::WaitArm {
            self.state = LeafState::Software;
        }
    }

    /// Multicast ids of its trees, as far as it knows them.
    pub fn trees(&self) -> &[u16] {
        &self.trees
    }

    /// Which of its trees a frame descends, if it is one of this flow. A job whose trees are made at run time learns all of them
    /// from the first arm frame of its root. That names the job, as the initiator of its Portals header, and its trees
    /// ([`TreeNames`]). Another job may have the same root and the same keys, and its trees are not this one's *chosen*.
    pub fn find(&self, frame: &Frame) -> Option<usize> {
        let Address { multicast_id, reduction_id } = frame.address;
        let at = |trees: &[u16]| trees.iter().position(|&id| id == multicast_id);
        let tree = if self.trees.is_empty() { at(self.learns(frame)?.ids()) } else { at(&self.trees) };
        tree.filter(|_| reduction_id == self.flow)
    }

    /// The trees that a frame tells a leaf of which knows none.
    fn learns(&self, frame: &Frame) -> Option<TreeNames> {
        let names = TreeNames::decode(frame.portals.request)?;
        let may = self.job.run_time.is_some() && names.ids().len() <= self.job.most_trees();
        let owner = self.job.owner();
        let roots = frame.source == owner.root && owner.keys.admit(frame).is_ok();
        let names_it = frame.portals.initiator == self.job.number;
        (may && roots && names_it && frame.header.arm).then_some(names)
    }

    /// The last result that is no barrier's.
    fn last_result(&self) -> Option<Quad> {
        self.results.last().filter(|result| result.round.data.is_some()).map(|result| result.quad)
    }

    fn begin(&mut self, now: Cycle) {
        match self.job.round(self.flow, self.step) {
            None => self.state = LeafState::Done,
            Some(round) => {
                self.state = LeafState::Computing;
                self.ready = self.job.ready(self.rank, round, now, self.called);
                self.awaited = None;
                self.rest(now);
            }
        }
    }

    /// All rounds below this one are called, and may be contributed to: for jobs whose rounds are [called](super::Compute::Called).
    pub fn call(&mut self, now: Cycle, rounds: u32) {
        self.called = rounds;
        if self.state == LeafState::Computing
            && self.ready == Cycle::MAX
            && let Some(round) = self.job.round(self.flow, self.step)
        {
            self.ready = self.job.ready(self.rank, round, now, rounds);
        }
    }

    /// Whether its round waits for a call.
    pub fn is_uncalled(&self) -> bool {
        self.state == LeafState::Computing && self.ready == Cycle::MAX
    }

    fn rest(&mut self, now: Cycle) {
        self.patience_ends =
            if self.job.timeouts.patience == 0 { Cycle::MAX } else { now + self.job.timeouts.patience };
    }

    /// Whether a frame that comes before the first arming may be this job's: a leaf knows the number that the job begins with, as it
    /// knows the job's keys, and what is older is of an earlier job *chosen*.
    ///
    /// # Errors
    /// That its number is old.
    fn begins(&self, frame: &Frame) -> Result<(), Refused> {
        let is_old = age(frame.header.seqno, self.job.first_seqno) == Age::Older;
        if self.state == LeafState::WaitArm && is_old { Err(Refused::Stale) } else { Ok(()) }
    }

    /// A frame came down one of the trees.
    pub fn receive(&mut self, now: Cycle, tree: usize, frame: &Frame, token: u64) {
        let header = &frame.header;
        let admitted = descends(frame, &self.job.owner(), self.armed[tree]).and_then(|()| self.begins(frame));
        if let Err(why) = admitted.and(if self.is_done() { Err(Refused::State) } else { Ok(()) }) {
            self.refused.count(why);
            return;
        }
        if self.trees.is_empty() {
            self.trees = self.learns(frame).map_or_else(Vec::new, |names| names.ids().to_vec());
        }
        if self.state == LeafState::Waiting && header.resno != NO_RESULT && Some(header.resno) == self.awaited {
            let round = self.job.round(self.flow, self.step).expect("a round is under way");
            if !round.closing {
                let quad = self.job.value(round, frame.quad(), self.last_result());
                self.results.push(LeafResult { round, entered: self.entered, got: now, quad, token });
            }
            self.step += 1;
            self.floor = header.seqno;
            self.begin(now);
            if self.state == LeafState::Done {
                return;
            }
        } else if self.state == LeafState::WaitArm && header.arm {
            self.floor = header.seqno;
            self.begin(now);
        }
        if header.arm {
            self.armed[tree] = Some(header.seqno);
        } else {
            // Released, and not with the result it waits for: there will be none.
            self.state = if self.is_closing() { LeafState::Done } else { LeafState::GaveUp };
        }
    }

    /// The sequence number that a tree is armed with, if it has not been answered.
    fn unanswered_seqno(&self, tree: usize) -> Option<u16> {
        let unanswered = |seqno: &u16| self.sent[tree] != Some(*seqno) && age(*seqno, self.floor) != Age::Older;
        self.armed[tree].filter(unanswered)
    }

    /// What time and what has come bring about.
    pub fn act(&mut self, now: Cycle, record: bool, merges: &mut Merges, out: &mut Outbox) {
        if self.is_done() {
            return;
        }
        // Who has all results waits for nothing: without a release it may be asked once more.
        if now >= self.patience_ends && !self.is_closing() {
            self.state = LeafState::GaveUp;
            return;
        }
        let due = match self.state {
            LeafState::Computing => now >= self.ready,
            LeafState::Waiting => (0..self.trees.len()).any(|tree| self.unanswered_seqno(tree).is_some()),
            _ => false,
        };
        // Most cycles only bring the next flit of a frame.
        if !due {
            return;
        }
        let Some(round) = self.job.round(self.flow, self.step) else { return };
        if self.state == LeafState::Computing {
            self.contribution = self.job.contribution(self.rank, round, self.last_result());
            self.entered = now;
            self.state = LeafState::Waiting;
        }
        for tree in 0..self.trees.len() {
            let Some(seqno) = self.unanswered_seqno(tree) else { continue };
            if self.awaited.is_some_and(|awaited| awaited != seqno) {
                self.resent += 1;
            }
            self.sent[tree] = Some(seqno);
            // Trees are armed with the same numbers; of two under way the newer one will have the result.
            if self.awaited.is_none_or(|awaited| age(seqno, awaited) == Age::Newer) {
                self.awaited = Some(seqno);
            }
            self.rest(now);
            let op = self.wrong_op.filter(|_| round.data.is_some()).unwrap_or(self.job.opcode(round).number);
            let header = Header { seqno, op, count: 1, cookie: self.job.keys.cookie, ..Header::default() };
            let frame = Frame {
                address: Address { multicast_id: self.trees[tree], reduction_id: self.flow },
                source: self.source,
                vni: self.job.keys.vni,
                portals: Portals { target: 0, request: self.step, initiator: self.job.number },
                rank: self.rank,
                header,
                lanes: [0; 4],
            }
            .with_quad(self.contribution);
            let made = FrameOrigin::Contribution {
                job: self.job.number,
                rank: self.rank,
                round: round.data,
                op,
                source: self.source,
            };
            out.push((frame, merges.made(record, made)));
        }
    }

    /// Takes into a hash what decides what it does next; see [`Digest`].
    pub fn digest(&self, to: &mut impl Hasher) {
        let to = &mut Digest(to);
        to.of((self.state, self.step, self.contribution, self.armed, self.sent, self.awaited, self.floor));
        to.of(self.patience_ends != Cycle::MAX);
        to.of(self.results.iter().map(|result| (result.round, result.quad)).collect::<Vec<_>>());
    }

    /// When to act again if nothing comes.
    pub fn next_wake(&self) -> Wake {
        if self.is_over() {
            return Wake::OnInput;
        }
        let mut wake = if self.patience_ends == Cycle::MAX { Wake::OnInput } else { Wake::At(self.patience_ends) };
        if self.state == LeafState::Computing && self.ready != Cycle::MAX {
            wake = wake.or(Wake::At(self.ready));
        }
        wake
    }

    /// Describes it to a wave.
    pub fn probe(&self, scope: &mut Scope<'_>) {
        scope.state("state", &STATES, self.state as u64);
        scope.valid("seqno", 10, self.seqno().map(u64::from));
        scope.valid("awaited", 10, self.awaited.map(u64::from));
        scope.bits("step", 32, u64::from(self.step));
        scope.bits("results", 32, self.results.len() as u64);
        scope.bits("resent", 32, self.resent);
        scope.bits("wrong_key", 32, self.refused.wrong_key());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::RunTime;
    use crate::{Keys, Refused};
    use watershed_arith::quad::OPCODES;

    const KEYS: Keys = Keys { vni: 1, cookie: 77 };

    /// A leaf of a job that begins with number 511 and may have two trees, made at run time.
    fn leaf() -> Leaf {
        let run_time = RunTime {
            agent: 3,
            answer_timeout: 100,
            requests: 1,
            most_trees: 2,
            changes: None,
            delete: false,
            first_patience: 0,
        };
        let job = Job::of(&OPCODES[0], 1, [0, 1, 2].into(), KEYS, vec![Quad::default(); 3].into());
        let job = Job { number: 5, trees: vec![], run_time: Some(run_time), first_seqno: 511, ..job };
        Leaf::new(Arc::new(job), 0, 1, 1)
    }

    /// An arm frame of the root that names these trees of the job, and descends the one with this id.
    fn arm(id: u16, seqno: u16, trees: &[u16]) -> Frame {
        let request = if trees.is_empty() { 0 } else { TreeNames::of(trees).encode() };
        Frame {
            address: Address { multicast_id: id, reduction_id: 0 },
            source: 0,
            vni: KEYS.vni,
            portals: Portals { target: 0, request, initiator: 5 },
            rank: 0,
            header: Header { arm: true, seqno, cookie: KEYS.cookie, ..Header::default() },
            lanes: [0; 4],
        }
    }

    #[test]
    fn a_leaf_learns_the_trees_that_its_root_names() {
        let right = arm(9, 511, &[7, 9]);
        let mut leaf = leaf();
        for (what, wrong) in [
            ("it went to a tree that it does not name", arm(8, 511, &[7, 9])),
            ("of one tree, too", arm(8, 511, &[7])),
            ("it names nothing", arm(9, 511, &[])),
            ("another sender", Frame { source: 2, ..right }),
            ("another VNI", Frame { vni: 2, ..right }),
            ("another cookie", Frame { header: Header { cookie: 78, ..right.header }, ..right }),
            ("another job", Frame { portals: Portals { initiator: 4, ..right.portals }, ..right }),
            ("no arm frame", Frame { header: Header { arm: false, ..right.header }, ..right }),
            ("another flow", Frame { address: Address { reduction_id: 1, ..right.address }, ..right }),
        ] {
            assert_eq!(leaf.find(&wrong), None, "{what}");
        }
        // The arm frame of either tree tells of both.
        assert_eq!(leaf.find(&right), Some(1));
        leaf.receive(10, 1, &right, 0);
        assert_eq!(leaf.trees(), [7, 9]);
        assert_eq!((leaf.find(&arm(7, 511, &[7, 9])), leaf.find(&arm(9, 512, &[]))), (Some(0), Some(1)));
        for trees in [&[7, 8][..], &[8, 9], &[8], &[7, 9]] {
            assert_eq!(leaf.find(&arm(8, 512, trees)), None, "it has its trees, whatever {trees:?} says");
        }
        // It contributes to the tree that is armed, not to the other one.
        let (mut merges, mut out) = (Merges::new(1, crate::Tokens::new(3)), Vec::new());
        leaf.act(10_000, false, &mut merges, &mut out);
        assert_eq!(out.iter().map(|(frame, _)| frame.address.multicast_id).collect::<Vec<_>>(), [9]);

        let job = Job { run_time: None, trees: vec![7], ..(*self::leaf().job).clone() };
        let known = Leaf::new(Arc::new(job), 0, 1, 1);
        assert_eq!((known.find(&arm(9, 511, &[7, 9])), known.find(&arm(7, 511, &[]))), (None, Some(0)));
    }

    #[test]
    fn numbers_before_the_jobs_first_are_old() {
        let mut leaf = leaf();
        for seqno in [510, 67, 0] {
            leaf.receive(10, 0, &arm(7, seqno, &[7]), 0);
        }
        let mut release = arm(7, 510, &[7]);
        release.header.arm = false;
        leaf.receive(11, 0, &release, 0);
        assert_eq!((leaf.state(), leaf.refused().stale, leaf.trees().len()), (LeafState::WaitArm, 4, 0));
        // An attempt later it is not: the first arm frame may have been lost.
        leaf.receive(12, 0, &arm(7, 512, &[7]), 0);
        assert_eq!((leaf.state(), leaf.seqno()), (LeafState::Computing, Some(512)));
        let mut refused = Refusals::default();
        (0..4).for_each(|_| refused.count(Refused::Stale));
        assert_eq!(*leaf.refused(), refused);
    }
}
