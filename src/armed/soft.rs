//! Reduction in software on the same fabric: what a job does whose tree was refused, and what engines are compared with
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
//! Limitations: no retry; a lost message stops the job, and the run says so. One flow.

use super::frame::{Frame, Portals};
use super::header::{Address, Header};
use super::job::Job;
use super::root::{RootRound, RoundEnd};
use super::station::{Made, Merges};
use crate::arith::Quad;
use crate::kernel::{Cycle, Wake};
use crate::probe::{EnumTable, Scope};
use std::sync::Arc;

/// States in waves.
static STATES: EnumTable =
    EnumTable { name: "software", names: &["IDLE", "COMPUTING", "GATHERING", "WAITING", "DONE"] };

/// Where a rank stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

/// A message a rank wants to send.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// To the end point of this rank.
    pub to: u32,
    /// The frame.
    pub frame: Frame,
    /// Its token.
    pub token: u64,
}

/// A result as a rank has it.
#[derive(Clone, Copy, Debug)]
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

/// One rank of a software reduction.
#[derive(Clone, Debug)]
pub struct Soft {
    job: Arc<Job>,
    rank: u32,
    source: u32,
    state: SoftState,
    round: u32,
    ready: Cycle,
    began: Cycle,
    /// Children's messages of this round and of the next one, by step.
    arrived: Vec<Option<(u32, Quad, u64)>>,
    result: Option<(u32, Quad, u64)>,
    rounds: Vec<RootRound>,
    results: Vec<SoftResult>,
}

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
            began: 0,
            result: None,
            rounds: Vec::new(),
            results: Vec::new(),
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
        self.state == SoftState::Done
    }

    fn ranks(&self) -> u32 {
        self.job.leaves + 1
    }

    /// Steps in which this rank has a child.
    fn steps(&self) -> impl Iterator<Item = u32> + use<> {
        let (rank, ranks) = (self.rank, self.ranks());
        (0..32)
            .take_while(move |step| rank >> step & 1 == 0 && 1u64 << step < u64::from(ranks))
            .filter(move |step| u64::from(rank) + (1 << step) < u64::from(ranks))
    }

    /// A message for this rank: a child's contribution or the parent's result.
    pub fn receive(&mut self, frame: &Frame, token: u64) {
        let round = frame.portals.request;
        let entry = Some((round, frame.quad(), token));
        if frame.header.arm {
            self.result = entry;
        } else {
            let step = (frame.rank ^ self.rank).trailing_zeros();
            // A quick child may be one round ahead.
            let at = step as usize * 2 + usize::from(round & 1 == 1);
            self.arrived[at] = entry;
        }
    }

    fn frame(&self, down: bool, quad: Quad) -> Frame {
        Frame {
            address: Address { multicast_id: 0, reduction_id: 0 },
            source: self.source,
            vni: self.job.vni,
            portals: Portals { target: 0, request: self.round, initiator: self.job.number },
            rank: self.rank,
            header: Header {
                op: self.job.op.number,
                count: 1,
                arm: down,
                cookie: self.job.cookie,
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
            match self.state {
                SoftState::Idle if now >= self.job.start => self.begin(now),
                SoftState::Computing if now >= self.ready => self.state = SoftState::Gathering,
                SoftState::Gathering => {
                    let slot = |step: u32| step as usize * 2 + usize::from(self.round & 1 == 1);
                    if !self.steps().all(|step| self.arrived[slot(step)].is_some()) {
                        return merged;
                    }
                    let round = super::job::Round { data: Some(self.round) };
                    let (job, op, rank) = (self.job.number, self.job.op.number, self.rank);
                    let source = self.source;
                    let own = Made::Contribution { job, rank, round: round.data, op, source };
                    let mut from = vec![merges.made(record, own)];
                    let mut quad = self.job.contribution(self.rank, round);
                    let unit = self.job.op.unit(self.job.mode);
                    for step in self.steps().collect::<Vec<_>>() {
                        let (_, child, token) = self.arrived[slot(step)].expect("all have arrived");
                        quad = unit.evaluate(quad, child);
                        from.push(token);
                        merged += 1;
                    }
                    for step in 0..32 {
                        self.arrived[step * 2 + usize::from(self.round & 1 == 1)] = None;
                    }
                    let token = if from.len() == 1 { from[0] } else { merges.made(record, Made::From(from.into())) };
                    if self.rank == 0 {
                        self.deliver(now, quad, token, out);
                    } else {
                        let to = self.rank & (self.rank - 1);
                        out.push(Message { to, frame: self.frame(false, quad), token });
                        self.state = SoftState::Waiting;
                    }
                }
                SoftState::Waiting => match self.result {
                    Some((round, quad, token)) if round == self.round => {
                        self.result = None;
                        self.deliver(now, quad, token, out);
                    }
                    _ => return merged,
                },
                _ => return merged,
            }
        }
    }

    fn begin(&mut self, now: Cycle) {
        if self.round >= self.job.rounds {
            self.state = SoftState::Done;
            return;
        }
        self.state = SoftState::Computing;
        self.began = now;
        self.ready = now + self.job.compute_cycles(self.rank, super::job::Round { data: Some(self.round) });
    }

    /// The result is here: pass it on to the children, the farthest first, and go on.
    fn deliver(&mut self, now: Cycle, quad: Quad, token: u64, out: &mut Vec<Message>) {
        let frame = self.frame(true, quad);
        let mut steps: Vec<u32> = self.steps().collect();
        steps.reverse();
        for step in steps {
            out.push(Message { to: self.rank + (1 << step), frame, token });
        }
        if self.rank == 0 {
            self.rounds.push(RootRound {
                round: super::job::Round { data: Some(self.round) },
                seqno: 0,
                attempts: 1,
                asked: vec![(0, self.began)],
                armed: self.began,
                own_ready: self.ready,
                end: Some(now),
                frames: vec![1; self.steps().count()],
                tree: 0,
                quad,
                token: Some(token),
                partials: Vec::new(),
                state: RoundEnd::Complete,
            });
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
            _ => Wake::OnInput,
        }
    }

    /// Describes it to a wave.
    pub fn probe(&self, scope: &mut Scope<'_>) {
        scope.state("state", &STATES, self.state as u64);
        scope.bits("round", 32, u64::from(self.round));
    }
}
