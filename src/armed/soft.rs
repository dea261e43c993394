//! Reduction in software on the same fabric: for jobs whose tree was refused, and as the baseline of engines
//! (requirements R-EP-1, R-FIG-1; description (77), (78)).
//!
//! ```text
//!  ranks  0 ◀─┬─ 1     2 ◀─┬─ 3     4 ◀─┬─ 5     6 ◀─┬─ 7      step 0     a binomial tree up to rank 0,
//!         0 ◀─┴──────── 2          4 ◀─┴──────── 6            step 1     and the same tree down again
//!         0 ◀────────────────────── 4                         step 2
//! ```
//!
//! Messages are reduction frames in point-to-point packets: a header flit and the frame's flits. Every message costs the
//! sender [`Overheads::send`](super::job::Overheads), the receiver `receive`, and a merge `merge`. Contributions of children
//! are merged in the order of steps, so the order of additions is always the same.
//!
//! **Time-outs** *chosen*. The count of a message is the number of ranks in it. A rank with k children waits for them k
//! times [`Job::patience`](super::job::Job), so that the lower ranks give up first; then it sends up what it has. If
//! contributions are missing, rank 0 knows which, and sends down that there is no result. A rank that gets this, or
//! waits for a result longer than rank 0 can wait for all ranks, passes it on and ends. So one dead rank ends the job,
//! and not the run.
//!
//! **In place of a tree** that a job was to get at run time and did not get ([`client`](super::client)): every
//! participant has a dormant rank. Its own end point wakes rank 0, which wakes the ranks below it by a message with
//! `arm` and `retry` set, and so on down the same tree *chosen*.
//!
//! For the messages that are obeyed see [`admission`](super::admission).
//!
//! Limitations: no retry: a lost message is a missing one. One flow.
//!
//! ```
//! use std::sync::Arc;
//! use watershed_armed::station::Merges;
//! use watershed_armed::{Compute, Job, Keys, Soft, Tokens};
//! use watershed_arith::quad::{Opcode, Quad};
//!
//! // End point 0 is the root, 1 and 2 are the leaves; they sum integers.
//! let op = Opcode::from_number(0x14).unwrap(); // INT SUM
//! let quads = [1, 40, 2].map(|word| Quad::of([word, 0, 0, 0]));
//! let job = Job::of(op, 3, [0, 1, 2].into(), Keys { vni: 1, cookie: 77 }, quads.into());
//! let job = Job { trees: Vec::new(), compute: Compute::Fixed(30), ..job };
//! let mut rank = Soft::new(Arc::new(job), 1, 1); // rank 1 sends its word to rank 0
//! let (mut merges, mut out) = (Merges::new(1, Tokens::new(3)), Vec::new());
//! for now in [0, 29] {
//!     rank.act(now, false, &mut merges, &mut out);
//!     assert!(out.is_empty()); // it computes for 30 cycles
//! }
//! rank.act(30, false, &mut merges, &mut out);
//! assert_eq!((out[0].to, out[0].frame.lanes[0]), (0, 40));
//! ```

use super::admission::{Refusals, Refused};
use super::frame::{Frame, Portals};
use super::header::{Address, Header};
use super::job::Job;
use super::root::{RootRound, RoundEnd};
use super::station::{FrameOrigin, Merges, NO_TOKEN};
use std::sync::Arc;
use watershed_arith::Quad;
use watershed_arith::quad::Opcode;
use watershed_kernel::{Cycle, Wake};
use watershed_probe::{EnumTable, Scope};
use watershed_state::state;

/// States in waves.
static STATES: EnumTable =
    EnumTable { name: "software", names: &["IDLE", "COMPUTING", "GATHERING", "WAITING", "DONE", "GAVE_UP", "DORMANT"] };

/// Where a rank stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum SoftState {
    /// Not started.
    Idle = 0,
    /// It has no contribution yet.
    Computing = 1,
    /// It waits for children.
    Gathering = 2,
    /// It waits for the result.
    Waiting = 3,
    /// All rounds are done.
    Done = 4,
    /// Its patience was over, or its parent told it that there is no result.
    GaveUp = 5,
    /// It stands by in case that the job gets no tree at run time.
    Dormant = 6,
}

/// A message a rank wants to send.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
pub struct Message {
    /// To the end point of this rank.
    pub to: u32,
    /// The frame.
    pub frame: Frame,
    /// Its token.
    pub token: u64,
}

/// A result as a rank has it.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
pub struct SoftResult {
    /// The data round.
    pub round: u32,
    /// Cycle in which its own contribution was ready.
    pub entered: Cycle,
    /// Cycle in which it had the result.
    pub got: Cycle,
    /// The result.
    pub quad: Quad,
    /// Token of the frame that brought it, or of what rank 0 made.
    pub token: u64,
}

/// The contents of a message that has come.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
struct ChildMessage {
    quad: Quad,
    token: u64,
    /// Ranks it represents.
    count: u32,
}

/// One rank of a software reduction.
#[derive(Clone, Debug)]
pub struct Soft {
    job: Arc<Job>,
    rank: u32,
    source: u32,
    state: SoftState,
    round: u32,
    ready: Cycle,
    /// Until when it waits for children, or for the result.
    deadline: Cycle,
    /// Children's messages of this round and of the next one, by step.
    arrived: Vec<Option<ChildMessage>>,
    result: Option<ChildMessage>,
    rounds: Vec<RootRound>,
    results: Vec<SoftResult>,
    refused: Refusals,
}

state!(Soft {
    saved: state, round, ready, deadline, arrived, result, rounds, results, refused;
    built: job, rank, source
});

impl Soft {
    /// A rank of a job, at the end point with this source address.
    pub fn new(job: Arc<Job>, rank: u32, source: u32) -> Soft {
        Soft {
            arrived: vec![None; 2 * 32],
            job,
            rank,
            source,
            state: SoftState::Idle,
            round: 0,
            ready: 0,
            deadline: Cycle::MAX,
            result: None,
            rounds: Vec::new(),
            results: Vec::new(),
            refused: Refusals::default(),
        }
    }

    /// The same, which does nothing until it is told to: by the end point at rank 0, by its parent at the others.
    #[must_use]
    pub fn dormant(mut self) -> Soft {
        self.state = SoftState::Dormant;
        self
    }

    /// Whether nobody has told it to begin.
    pub fn is_dormant(&self) -> bool {
        self.state == SoftState::Dormant
    }

    /// It is to reduce after all: it tells those below, and begins.
    pub fn start(&mut self, out: &mut Vec<Message>) {
        if self.is_dormant() {
            self.state = SoftState::Idle;
            let mut frame = self.frame(true, Quad::default(), self.ranks());
            frame.header.retry = true;
            self.pass_down(frame, NO_TOKEN, out);
        }
    }

    /// The job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Its rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Rounds as rank 0 knows them; empty at others.
    pub fn rounds(&self) -> &[RootRound] {
        &self.rounds
    }

    /// Results, rank 0's as well.
    pub fn results(&self) -> &[SoftResult] {
        &self.results
    }

    /// Whether it will do nothing more.
    pub fn is_over(&self) -> bool {
        matches!(self.state, SoftState::Done | SoftState::GaveUp)
    }

    /// Messages it did not obey.
    pub fn refused(&self) -> &Refusals {
        &self.refused
    }

    /// Tokens of what children have sent of the round that is under way.
    pub fn under_way(&self) -> Vec<u64> {
        self.of_this_round().map(|brought| brought.token).collect()
    }

    fn ranks(&self) -> u32 {
        self.job.leaves() + 1
    }

    /// Steps in which this rank has a child.
    fn steps(&self) -> impl Iterator<Item = u32> + use<> {
        let (rank, ranks) = (self.rank, self.ranks());
        (0..32)
            .take_while(move |step| rank >> step & 1 == 0 && 1u64 << step < u64::from(ranks))
            .filter(move |step| u64::from(rank) + (1 << step) < u64::from(ranks))
    }

    /// The rank that this one sends to; rank 0 sends to nobody.
    fn parent(&self) -> u32 {
        self.rank & self.rank.wrapping_sub(1)
    }

    /// Where the message of a child is kept.
    fn slot(step: u32, round: u32) -> usize {
        step as usize * 2 + usize::from(round & 1 == 1)
    }

    /// What children have sent of this round, in the order of steps.
    fn of_this_round(&self) -> impl Iterator<Item = &ChildMessage> {
        self.steps().filter_map(|step| self.arrived[Self::slot(step, self.round)].as_ref())
    }

    /// The slot of a child's message, or `None` for the parent's.
    fn admit(&self, frame: &Frame) -> Result<Option<usize>, Refused> {
        let header = &frame.header;
        let op = self.job.opcode(super::job::Round::data(frame.portals.request)).number;
        if header.op != op || header.retry || header.count == 0 {
            return Err(Refused::Kind);
        }
        let step = if header.arm {
            (self.rank > 0 && frame.rank == self.parent()).then_some(None)
        } else {
            self.steps().find(|step| self.rank + (1 << step) == frame.rank).map(Some)
        };
        let step = step.filter(|_| self.job.members.get(frame.rank as usize) == Some(&frame.source));
        let step = step.ok_or(Refused::Sender)?;
        self.job.keys.admit(frame)?;
        // A quick child may be one round ahead.
        let (round, last) = (frame.portals.request, self.round + u32::from(step.is_some()));
        if !(self.round..=last).contains(&round) {
            return Err(Refused::Stale);
        }
        let slot = step.map(|step| Self::slot(step, round));
        let taken = slot.map_or(self.result.is_some(), |slot| self.arrived[slot].is_some());
        if taken || self.is_over() || self.is_dormant() { Err(Refused::State) } else { Ok(slot) }
    }

    /// Whether a message tells a dormant rank to begin.
    fn starts(&self, frame: &Frame) -> Result<(), Refused> {
        let parent = self.rank > 0 && frame.rank == self.parent();
        if !parent || self.job.members.get(frame.rank as usize) != Some(&frame.source) {
            return Err(Refused::Sender);
        }
        self.job.keys.admit(frame)?;
        if self.is_dormant() { Ok(()) } else { Err(Refused::State) }
    }

    /// A message for this rank: a child's contribution, the parent's result, or its word to begin. Returns whether it begins.
    pub fn receive(&mut self, frame: &Frame, token: u64, out: &mut Vec<Message>) -> bool {
        if frame.header.arm && frame.header.retry {
            let started = self.starts(frame);
            match started {
                Err(why) => self.refused.count(why),
                Ok(()) => self.start(out),
            }
            return started.is_ok();
        }
        let brought = ChildMessage { quad: frame.quad(), token, count: frame.header.count };
        match self.admit(frame) {
            Err(why) => self.refused.count(why),
            Ok(Some(slot)) => self.arrived[slot] = Some(brought),
            Ok(None) => self.result = Some(brought),
        }
        false
    }

    fn frame(&self, down: bool, quad: Quad, count: u32) -> Frame {
        Frame {
            address: Address { multicast_id: 0, reduction_id: 0 },
            source: self.source,
            vni: self.job.keys.vni,
            portals: Portals { target: 0, request: self.round, initiator: self.job.number },
            rank: self.rank,
            header: Header {
                op: self.opcode().number,
                count,
                arm: down,
                cookie: self.job.keys.cookie,
                ..Header::default()
            },
            lanes: [0; 4],
        }
        .with_quad(quad)
    }

    /// What time and what has come bring about. Returns how often it merged.
    pub fn act(&mut self, now: Cycle, record: bool, merges: &mut Merges, out: &mut Vec<Message>) -> u64 {
        let mut merged = 0;
        loop {
            if self.is_over() {
                return merged;
            }
            // The parent has given up.
            if let Some(ChildMessage { count, .. }) = self.result
                && count < self.ranks()
            {
                self.give_up(count, out);
                return merged;
            }
            match self.state {
                SoftState::Idle if now >= self.job.start => self.begin(now),
                SoftState::Computing if now >= self.ready => {
                    self.state = SoftState::Gathering;
                    self.wait(now, self.steps().count() as u64);
                }
                SoftState::Gathering => {
                    let all = self.of_this_round().count() == self.steps().count();
                    if !all && now < self.deadline {
                        return merged;
                    }
                    merged += self.gather(now, record, merges, out);
                }
                SoftState::Waiting => match self.result.take() {
                    Some(ChildMessage { quad, token, .. }) => self.deliver(now, quad, token, out),
                    None if now >= self.deadline => self.give_up(1, out),
                    None => return merged,
                },
                _ => return merged,
            }
        }
    }

    fn wait(&mut self, now: Cycle, times: u64) {
        let patience = self.job.timeouts.patience.saturating_mul(times).min(1 << 58);
        self.deadline = if self.job.timeouts.patience == 0 { Cycle::MAX } else { now + patience };
    }

    /// The operation of the round that is under way.
    fn opcode(&self) -> &'static Opcode {
        self.job.opcode(super::job::Round::data(self.round))
    }

    /// The result of the round before.
    fn before(&self) -> Option<Quad> {
        self.results.last().map(|result| result.quad)
    }

    /// Merges what has come, and sends it up.
    fn gather(&mut self, now: Cycle, record: bool, merges: &mut Merges, out: &mut Vec<Message>) -> u64 {
        let round = super::job::Round::data(self.round);
        let (job, op, rank, source) = (self.job.number, self.opcode().number, self.rank, self.source);
        let mut from =
            vec![merges.made(record, FrameOrigin::Contribution { job, rank, round: round.data, op, source })];
        let mut quad = self.job.contribution(self.rank, round, self.before());
        let unit = self.opcode().unit(self.job.mode);
        let mut counts = Vec::new();
        for brought in self.of_this_round() {
            quad = unit.evaluate(quad, brought.quad);
            from.push(brought.token);
            counts.push(brought.count);
        }
        for step in 0..32 {
            self.arrived[Self::slot(step, self.round)] = None;
        }
        let count = counts.iter().sum::<u32>() + 1;
        let merged = counts.len() as u64;
        if let Some(of) = self.rounds.last_mut() {
            (of.frames, of.partials, of.own_ready) = (counts, from[1..].to_vec(), self.ready);
        }
        if self.rank == 0 && count < self.ranks() {
            let of = self.rounds.last_mut().expect("the round has begun");
            (of.end, of.state) = (Some(now), RoundEnd::Incomplete);
            self.give_up(count, out);
            return merged;
        }
        let token = if from.len() == 1 { from[0] } else { merges.made(record, FrameOrigin::From(from.into())) };
        if self.rank == 0 {
            self.deliver(now, quad, token, out);
        } else {
            out.push(Message { to: self.parent(), frame: self.frame(false, quad, count), token });
            self.state = SoftState::Waiting;
            let levels = u64::from(u32::BITS - self.ranks().leading_zeros());
            self.wait(now, levels + 2);
        }
        merged
    }

    fn begin(&mut self, now: Cycle) {
        if self.round >= self.job.rounds {
            self.state = SoftState::Done;
            return;
        }
        self.state = SoftState::Computing;
        self.ready = now + self.job.compute_cycles(self.rank, super::job::Round::data(self.round));
        if self.rank == 0 {
            self.rounds.push(RootRound {
                round: super::job::Round::data(self.round),
                seqno: 0,
                attempts: 1,
                asked: vec![(0, now)],
                armed: now,
                own_ready: self.ready,
                end: None,
                frames: Vec::new(),
                tree: 0,
                quad: Quad::default(),
                token: None,
                partials: Vec::new(),
                state: RoundEnd::Open,
            });
        }
    }

    /// A frame to all children, the farthest first.
    fn pass_down(&self, frame: Frame, token: u64, out: &mut Vec<Message>) {
        let mut steps: Vec<u32> = self.steps().collect();
        steps.reverse();
        for step in steps {
            out.push(Message { to: self.rank + (1 << step), frame, token });
        }
    }

    /// There will be no result: the ranks below get one whose count is too small.
    fn give_up(&mut self, count: u32, out: &mut Vec<Message>) {
        let frame = self.frame(true, Quad::default(), count.min(self.ranks() - 1));
        self.pass_down(frame, NO_TOKEN, out);
        self.state = SoftState::GaveUp;
    }

    /// The result is here: pass it on to the children, and go on.
    fn deliver(&mut self, now: Cycle, quad: Quad, token: u64, out: &mut Vec<Message>) {
        self.pass_down(self.frame(true, quad, self.ranks()), token, out);
        let quad = self.job.value(super::job::Round::data(self.round), quad, self.before());
        if let Some(of) = self.rounds.last_mut() {
            (of.end, of.quad, of.token, of.state) = (Some(now), quad, Some(token), RoundEnd::Complete);
        }
        self.results.push(SoftResult { round: self.round, entered: self.ready, got: now, quad, token });
        self.round += 1;
        self.begin(now);
    }

    /// When to act again if nothing comes.
    pub fn next_wake(&self) -> Wake {
        match self.state {
            SoftState::Idle => Wake::At(self.job.start),
            SoftState::Computing => Wake::At(self.ready),
            SoftState::Gathering | SoftState::Waiting if self.deadline != Cycle::MAX => Wake::At(self.deadline),
            _ => Wake::OnInput,
        }
    }

    /// Describes it to a wave.
    pub fn probe(&self, scope: &mut Scope<'_>) {
        scope.state("state", &STATES, self.state as u64);
        scope.bits("round", 32, u64::from(self.round));
    }
}
