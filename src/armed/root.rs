//! The root process of one flow: software at the root end point (requirements R-EP-1, R-EP-3, R-EP-4, R-ENG-6; description
//! (36) to (38), (57), (70), (71), FIG. 3A).
//!
//! ```text
//!          start: arm                        count = leaves, own contribution ready
//!   IDLE ────────────▶ GATHERING ──────────────────────────────────────────────▶ last round? ── yes ─▶ DONE
//!                       ▲  │  ▲                    multicast result + re-arm         │       release
//!                       │  │  └──────────────────────────────────────────────────────┘ no
//!                       │  │ time is up, or counts come to more than leaves
//!                       │  └──▶ retries left? ── no ─▶ FAILED (release without a result)
//!                       └─────── yes: new sequence number, arm with the retry flag, own data restored
//! ```
//!
//! | frame | action |
//! |---|---|
//! | no contribution, or not from a leaf of the job | counted, discarded |
//! | other VNI or cookie | counted, discarded |
//! | sequence number of another attempt | stale: counted, discarded |
//! | it is not gathering | counted, discarded |
//! | a partial result of this attempt | merged in software in order of arrival, per tree; counts are added |
//!
//! Its own contribution is merged last *chosen*. The result goes to the leaves over all trees, with `resno` = the number of
//! the attempt that completed and `seqno` = the one being armed; `count` is that of all participants. The last result goes with
//! `arm` clear *chosen*, which releases the tree. A retry carries the last result again, with its `resno`, so that a leaf that
//! missed it catches up; in a first round it carries [`NO_RESULT`].
//!
//! With two trees both are armed with the same numbers, gathered side by side, and the first complete one wins; its number is
//! the result's number on both.
//!
//! An OP_MISMATCH or CONTR_OVERFLOW that arrives completes the round for the protocol: leaves get the code without
//! usable data, and the report counts the round as a detected error.
//!
//! ```
//! use std::sync::Arc;
//! use watershed_armed::station::Merges;
//! use watershed_armed::{Header, Job, Keys, Root, RootState, Tokens};
//! use watershed_arith::quad::{Opcode, Quad};
//!
//! // End point 0 is the root, 1 and 2 are the leaves; they sum integers.
//! let op = Opcode::from_number(0x14).unwrap(); // INT SUM
//! let quads = [1, 40, 2].map(|word| Quad::of([word, 0, 0, 0]));
//! let job = Job::of(op, 3, [0, 1, 2].into(), Keys { vni: 1, cookie: 77 }, quads.into());
//! let mut root = Root::new(Arc::new(job), 0, 0);
//! let (mut merges, mut out) = (Merges::new(0, Tokens::new(3)), Vec::new());
//! root.act(0, false, &mut merges, &mut out); // cycle 0: it arms
//! let (arm, _) = out.remove(0);
//! assert!(arm.header.arm && root.state() == RootState::Gathering);
//!
//! // The engines send the sum of both leaves; the root adds its own word and multicasts the result.
//! let mut partial = arm;
//! (partial.source, partial.rank) = (1, 1);
//! partial.header = Header { arm: false, count: 2, ..arm.header };
//! root.receive(0, &partial.with_quad(Quad::of([42, 0, 0, 0])), 0);
//! root.act(50, false, &mut merges, &mut out);
//! assert_eq!((out[0].0.lanes[0], out[0].0.header.count, root.state()), (43, 3, RootState::Done));
//! ```

use super::admission::{Refusals, Refused, is_contribution};
use super::engine::mismatch;
use super::frame::{Frame, Portals, TreeNames};
use super::header::{Address, Header, MAX_COUNT, NO_RESULT, next_seqno};
use super::job::{Job, Round};
use super::station::{FrameOrigin, Merges};
use std::hash::Hasher;
use std::sync::Arc;
use watershed_arith::{Quad, ResultCode};
use watershed_kernel::{Cycle, Digest, Wake};
use watershed_probe::{EnumTable, Scope};
use watershed_state::state;

/// States in waves.
static STATES: EnumTable = EnumTable { name: "root", names: &["IDLE", "GATHERING", "DONE", "FAILED", "SOFTWARE"] };

/// Where a flow's root stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum RootState {
    /// Not started.
    Idle = 0,
    /// Armed; takes partial results.
    Gathering = 1,
    /// All rounds are done.
    Done = 2,
    /// A round was given up.
    Failed = 3,
    /// It got no tree at run time: the job reduces in software.
    Software = 4,
}

/// How a round ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, watershed_state::Saved)]
#[serde(rename_all = "kebab-case")]
pub enum RoundEnd {
    /// It is under way, or was when the run ended.
    Open,
    /// Every contribution came with the first attempt.
    Complete,
    /// Every contribution came with a later attempt.
    AfterRetry,
    /// Contributions are missing and the root knows it.
    Incomplete,
}

/// What the root knows of a round.
#[derive(Clone, Debug, watershed_state::Saved)]
pub struct RootRound {
    /// Which round.
    pub round: Round,
    /// Sequence number of the attempt that counted.
    pub seqno: u16,
    /// Attempts.
    pub attempts: u32,
    /// Sequence number and cycle of each of them.
    pub asked: Vec<(u16, Cycle)>,
    /// Cycle of the first arming.
    pub armed: Cycle,
    /// Cycle in which the root's own contribution was ready.
    pub own_ready: Cycle,
    /// Cycle in which the result was sent, or the round was given up.
    pub end: Option<Cycle>,
    /// Counts of the frames that came, in order, of the attempt and tree that counted.
    pub frames: Vec<u32>,
    /// The tree that completed.
    pub tree: usize,
    /// The result, as end points have it in the end.
    pub quad: Quad,
    /// Token of the result frame, or what had been gathered when the round was given up.
    pub token: Option<u64>,
    /// Tokens of the partial results of the attempt that got furthest.
    pub partials: Vec<u64>,
    /// How it ended.
    pub state: RoundEnd,
}

/// The frames and the partial result that one tree has delivered in this attempt.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
struct TreeProgress {
    first: Option<Frame>,
    quad: Quad,
    count: u32,
    frames: Vec<u32>,
    tokens: Vec<u64>,
}

/// The root process of one flow.
#[derive(Clone, Debug)]
pub struct Root {
    job: Arc<Job>,
    flow: u8,
    source: u32,
    /// Multicast ids of its trees.
    trees: Vec<u16>,
    state: RootState,
    step: u32,
    seqno: u16,
    gathered: Vec<TreeProgress>,
    own_ready: Cycle,
    deadline: Cycle,
    last: Option<(u16, Frame, u64)>,
    rounds: Vec<RootRound>,
    refused: Refusals,
    /// Rounds that were called.
    called: u32,
}

state!(Root {
    saved: trees, called, state, step, seqno, gathered, own_ready, deadline, last, rounds, refused;
    built: job, flow, source
});

/// How frames that descend name these trees of a job, which some process of it knows; not where all know them without.
pub(super) fn tree_names(job: &Job, trees: &[u16]) -> Option<u32> {
    (job.run_time.is_some() && !trees.is_empty()).then(|| TreeNames::of(trees).encode())
}

/// Frames a process wants to send, each with its token.
pub type Outbox = Vec<(Frame, u64)>;

impl Root {
    /// The root of a flow, at the end point with this source address.
    pub fn new(job: Arc<Job>, flow: u8, source: u32) -> Root {
        Root {
            seqno: job.first_seqno,
            gathered: vec![TreeProgress::default(); job.trees.len()],
            trees: job.trees.clone(),
            job,
            flow,
            source,
            state: RootState::Idle,
            step: 0,
            own_ready: 0,
            deadline: Cycle::MAX,
            last: None,
            rounds: Vec::new(),
            refused: Refusals::default(),
            called: 0,
        }
    }

    /// The job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// The flow.
    pub fn flow(&self) -> u8 {
        self.flow
    }

    /// Where it stands.
    pub fn state(&self) -> RootState {
        self.state
    }

    /// Its rounds so far, without the closing barrier.
    pub fn rounds(&self) -> &[RootRound] {
        let closing = self.rounds.last().is_some_and(|round| round.round.closing);
        &self.rounds[..self.rounds.len() - usize::from(closing)]
    }

    /// Its rounds so far, all of them.
    pub fn all_rounds(&self) -> &[RootRound] {
        &self.rounds
    }

    /// Whether it will do nothing more.
    pub fn is_over(&self) -> bool {
        matches!(self.state, RootState::Done | RootState::Failed | RootState::Software)
    }

    /// The agent made these trees for it: it arms.
    pub fn grant(&mut self, trees: &[u16]) {
        if self.state == RootState::Idle && self.trees.is_empty() {
            self.trees = trees.to_vec();
            self.gathered = vec![TreeProgress::default(); trees.len()];
        }
    }

    /// There is no tree for it.
    pub fn withdraw(&mut self) {
        if self.state == RootState::Idle {
            self.state = RootState::Software;
        }
    }

    /// Multicast ids of its trees.
    pub fn trees(&self) -> &[u16] {
        &self.trees
    }

    /// Which of its trees an address is of, if it is of this flow.
    pub fn find(&self, address: Address) -> Option<usize> {
        let tree = self.trees.iter().position(|&id| id == address.multicast_id);
        tree.filter(|_| address.reduction_id == self.flow)
    }

    fn round(&self) -> Option<Round> {
        self.job.round(self.flow, self.step)
    }

    fn frame(&self, tree: usize, header: Header, quad: Quad) -> Frame {
        let request = tree_names(&self.job, &self.trees).unwrap_or(self.step);
        let portals = Portals { target: 0, request, initiator: self.job.number };
        let frame = Frame {
            address: Address { multicast_id: self.trees[tree], reduction_id: self.flow },
            source: self.source,
            vni: self.job.keys.vni,
            portals,
            rank: 0,
            header: Header { cookie: self.job.keys.cookie, ..header },
            lanes: [0; 4],
        };
        frame.with_quad(quad)
    }

    /// Sends a frame like this one down every tree.
    fn multicast(&self, header: Header, quad: Quad, token: u64, out: &mut Outbox) {
        for tree in 0..self.trees.len() {
            out.push((self.frame(tree, header, quad), token));
        }
    }

    /// All rounds below this one are called, and may be completed: for jobs whose rounds are [called](super::Compute::Called).
    pub fn call(&mut self, now: Cycle, rounds: u32) {
        self.called = rounds;
        if self.state == RootState::Gathering
            && self.own_ready == Cycle::MAX
            && let Some(round) = self.round()
            && let Some(record) = self.rounds.last_mut()
        {
            self.own_ready = self.job.ready(0, round, now, rounds);
            record.own_ready = self.own_ready;
        }
    }

    /// Whether its round waits for a call.
    pub fn is_uncalled(&self) -> bool {
        self.state == RootState::Gathering && self.own_ready == Cycle::MAX
    }

    fn begin_attempt(&mut self, now: Cycle) {
        self.gathered.iter_mut().for_each(|gathered| *gathered = TreeProgress::default());
        self.deadline =
            if self.job.timeouts.retry_after == 0 { Cycle::MAX } else { now + self.job.timeouts.retry_after };
    }

    fn begin_round(&mut self, now: Cycle) {
        let round = self.round().expect("a round is left");
        self.own_ready = self.job.ready(0, round, now, self.called);
        self.rounds.push(RootRound {
            round,
            seqno: self.seqno,
            attempts: 1,
            asked: vec![(self.seqno, now)],
            armed: now,
            own_ready: self.own_ready,
            end: None,
            frames: Vec::new(),
            tree: 0,
            quad: Quad::default(),
            token: None,
            partials: Vec::new(),
            state: RoundEnd::Open,
        });
        self.begin_attempt(now);
    }

    /// Frames it did not obey.
    pub fn refused(&self) -> &Refusals {
        &self.refused
    }

    /// The sequence number of the present attempt.
    pub fn seqno(&self) -> u16 {
        self.seqno
    }

    /// What it has gathered of a round that is under way: the tokens of the tree that got furthest.
    pub fn under_way(&self) -> &[u64] {
        let furthest = self.gathered.iter().max_by_key(|gathered| gathered.count);
        furthest.map_or(&[], |gathered| &gathered.tokens)
    }

    fn admit(&self, frame: &Frame) -> Result<(), Refused> {
        is_contribution(frame)?;
        // Engines keep the headers of the first contribution, so what climbs always names one of the leaves.
        if frame.rank == 0 || self.job.members.get(frame.rank as usize) != Some(&frame.source) {
            return Err(Refused::Sender);
        }
        self.job.keys.admit(frame)?;
        if self.state != RootState::Gathering {
            return Err(Refused::State);
        }
        if frame.header.seqno == self.seqno { Ok(()) } else { Err(Refused::Stale) }
    }

    /// A frame came up one of the trees.
    pub fn receive(&mut self, tree: usize, frame: &Frame, token: u64) {
        if let Err(why) = self.admit(frame) {
            self.refused.count(why);
            return;
        }
        let gathered = &mut self.gathered[tree];
        match &gathered.first {
            None => {
                gathered.first = Some(*frame);
                gathered.quad = frame.quad();
            }
            Some(first) => {
                gathered.quad = mismatch(first, gathered.quad, frame).unwrap_or_else(|| {
                    let opcode = watershed_arith::quad::Opcode::from_number(frame.header.op);
                    let unit = opcode.expect("a decoded header has an opcode").unit(self.job.mode);
                    unit.evaluate(gathered.quad, frame.quad())
                });
            }
        }
        gathered.count = gathered.count.saturating_add(frame.header.count).min(MAX_COUNT);
        gathered.frames.push(frame.header.count);
        gathered.tokens.push(token);
    }

    /// What time and what has come bring about.
    pub fn act(&mut self, now: Cycle, record: bool, merges: &mut Merges, out: &mut Outbox) {
        if self.state == RootState::Idle && now >= self.job.start && !self.trees.is_empty() {
            self.state = RootState::Gathering;
            if self.round().is_none() {
                self.state = RootState::Done;
                return;
            }
            self.begin_round(now);
            let op = self.round().map_or(0, |round| self.job.opcode(round).number);
            let header = Header { seqno: self.seqno, arm: true, op, ..Header::default() };
            let token = merges.made(record, FrameOrigin::Nothing);
            self.multicast(header, Quad::default(), token, out);
        }
        if self.state != RootState::Gathering {
            return;
        }
        let leaves = self.job.leaves();
        if let Some(tree) = self.gathered.iter().position(|gathered| gathered.count == leaves) {
            if now >= self.own_ready {
                self.complete(now, tree, record, merges, out);
            }
            return;
        }
        // More than all participants: one was counted twice. The attempt is worth nothing.
        let over = self.gathered.iter().any(|gathered| gathered.count > leaves);
        let alone = self.gathered.len() == 1;
        if now >= self.deadline || over && alone {
            self.ask_again(now, record, merges, out);
        }
    }

    /// The result of the data round before the one that is under way.
    fn before(&self) -> Option<Quad> {
        let [.., before, _] = &self.rounds[..] else { return None };
        before.round.data.map(|_| before.quad)
    }

    fn complete(&mut self, now: Cycle, tree: usize, record: bool, merges: &mut Merges, out: &mut Outbox) {
        let round = self.round().expect("a round is under way");
        let opcode = self.job.opcode(round);
        let gathered = std::mem::take(&mut self.gathered[tree]);
        let first = gathered.first.expect("a count comes with a frame");
        let before = self.before();
        let own = self.job.contribution(0, round, before);
        let op = opcode.number;
        let own_frame = self.frame(tree, Header { seqno: self.seqno, op, count: 1, ..Header::default() }, own);
        let quad = mismatch(&first, gathered.quad, &own_frame)
            .unwrap_or_else(|| opcode.unit(self.job.mode).evaluate(gathered.quad, own));
        let job = self.job.number;
        let own_token =
            merges.made(record, FrameOrigin::Contribution { job, rank: 0, round: round.data, op, source: self.source });
        let mut from = gathered.tokens.clone();
        from.push(own_token);
        let token = merges.made(record, FrameOrigin::From(from.into()));

        let failed = matches!(quad.code, ResultCode::OpMismatch | ResultCode::ContrOverflow);
        let resno = self.seqno;
        let record_of = self.rounds.last_mut().expect("the round has begun");
        record_of.seqno = resno;
        record_of.end = Some(now);
        record_of.frames = gathered.frames;
        record_of.partials = gathered.tokens;
        record_of.tree = tree;
        record_of.quad = self.job.value(round, quad, before);
        record_of.token = Some(token);
        record_of.state = match record_of.attempts {
            _ if failed => RoundEnd::Incomplete,
            1 => RoundEnd::Complete,
            _ => RoundEnd::AfterRetry,
        };

        self.step += 1;
        let next = self.round();
        let count = self.job.leaves() + 1;
        if next.is_some() {
            self.seqno = next_seqno(self.seqno);
        }
        let header = Header { seqno: self.seqno, arm: next.is_some(), op, count, resno, ..Header::default() };
        self.multicast(header, quad, token, out);
        self.last = Some((resno, self.frame(0, header, quad), token));
        if next.is_some() {
            self.begin_round(now);
        } else {
            self.state = RootState::Done;
        }
    }

    fn ask_again(&mut self, now: Cycle, record: bool, merges: &mut Merges, out: &mut Outbox) {
        let best = self.gathered.iter().enumerate().max_by_key(|(_, gathered)| gathered.count.min(self.job.leaves()));
        let (tree, best) = best.expect("a job has a tree");
        let (frames, partials) = (best.frames.clone(), best.tokens.clone());
        let op = self.round().map_or(0, |round| self.job.opcode(round).number);
        let (resno, quad, code_op, token) = match &self.last {
            Some((resno, frame, token)) => (*resno, frame.quad(), frame.header.op, *token),
            None => (NO_RESULT, Quad::default(), op, merges.made(record, FrameOrigin::Nothing)),
        };
        let record_of = self.rounds.last_mut().expect("the round has begun");
        let gathered: u32 = frames.iter().sum();
        if gathered >= record_of.frames.iter().sum() {
            (record_of.frames, record_of.partials, record_of.tree) = (frames, partials, tree);
        }
        if record_of.attempts > self.job.timeouts.max_retries {
            record_of.end = Some(now);
            record_of.state = RoundEnd::Incomplete;
            self.state = RootState::Failed;
            self.deadline = Cycle::MAX;
            let header = Header { seqno: self.seqno, op: code_op, resno, ..Header::default() };
            self.multicast(header, quad, token, out);
            return;
        }
        record_of.attempts += 1;
        self.seqno = next_seqno(self.seqno);
        record_of.asked.push((self.seqno, now));
        let header = Header { seqno: self.seqno, arm: true, op: code_op, resno, retry: true, ..Header::default() };
        self.multicast(header, quad, token, out);
        self.begin_attempt(now);
    }

    /// Takes into a hash what decides what it does next; see [`Digest`].
    pub fn digest(&self, to: &mut impl Hasher) {
        let to = &mut Digest(to);
        to.of((self.state, self.step, self.seqno, self.deadline != Cycle::MAX));
        to.of(self.last.map(|(resno, frame, _)| (resno, frame)));
        for gathered in &self.gathered {
            to.of((gathered.first, gathered.quad, gathered.count));
        }
        for round in &self.rounds {
            to.of((round.round, round.seqno, round.attempts, round.state, round.quad));
        }
    }

    /// When to act again if nothing comes.
    pub fn next_wake(&self, now: Cycle) -> Wake {
        match self.state {
            RootState::Idle if self.trees.is_empty() => Wake::OnInput,
            RootState::Idle => Wake::At(self.job.start.max(now + 1)),
            RootState::Gathering => {
                let mut wake = if self.deadline == Cycle::MAX { Wake::OnInput } else { Wake::At(self.deadline) };
                if self.own_ready > now && self.own_ready != Cycle::MAX {
                    wake = wake.or(Wake::At(self.own_ready));
                }
                wake
            }
            RootState::Done | RootState::Failed | RootState::Software => Wake::OnInput,
        }
    }

    /// Describes it to a wave.
    pub fn probe(&self, scope: &mut Scope<'_>) {
        scope.state("state", &STATES, self.state as u64);
        scope.bits("seqno", 10, u64::from(self.seqno));
        scope.bits("step", 32, u64::from(self.step));
        // Those that it may yet be granted too: a wave has the same signals from the first cycle on.
        let most = self.job.run_time.as_ref().map_or(self.gathered.len(), |asked| usize::from(asked.most_trees));
        let none = TreeProgress::default();
        for tree in 0..most {
            let gathered = self.gathered.get(tree).unwrap_or(&none);
            scope.indexed("tree", tree, |scope| {
                scope.bits("count", 20, u64::from(gathered.count));
                scope.bits("frames", 20, gathered.frames.len() as u64);
            });
        }
        scope.bits("attempts", 8, self.rounds.last().map_or(0, |round| u64::from(round.attempts)));
        scope.bits("stale", 32, self.refused.stale + self.refused.wrong_state);
        scope.bits("wrong_key", 32, self.refused.wrong_key());
    }
}
