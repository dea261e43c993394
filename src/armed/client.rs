//! The root process of a job whose tree is made at run time: it asks the management agent, waits for the answer, and asks it to
//! delete the tree (requirements R-EP-1, R-TAB-2; description (36)).
//!
//! ```text
//!           start, and the job before is over        granted                roots over, tree not kept
//!   WAITING ───────────────────────────────▶ ASKING ─────────▶ GRANTED ─────────────────────────────▶ DELETING ─▶ CLOSED
//!                                           ▲   │  │ refused, or asked as often as allowed               ▲
//!                                           └───┘  └───────────▶ REFUSED ────────────────────────────────┘
//!                                         time-out: again                     granted after all
//! ```
//!
//! A request names the participants in as many frames as they need, all with the number of the request. The agent
//! answers each request number once the request is carried out, and again whenever the request is repeated. So a lost
//! request and a lost answer need no different treatment *chosen*. A root that is refused, or gets no answer, tells its
//! participants to reduce in software ([`soft`](super::soft)); if the tree is granted later, the root has it deleted.
//!
//! ```
//! use std::sync::Arc;
//! use watershed_armed::job::RunTime;
//! use watershed_armed::manage::{Message, Place, Verb};
//! use watershed_armed::{Client, ClientState, Job, Keys};
//! use watershed_arith::quad::{Opcode, Quad};
//!
//! // End point 0 is the root, 1 and 2 are the leaves; they sum integers.
//! let op = Opcode::from_number(0x14).unwrap(); // INT SUM
//! let quads = [1, 40, 2].map(|word| Quad::of([word, 0, 0, 0]));
//! let job = Job::of(op, 3, [0, 1, 2].into(), Keys { vni: 1, cookie: 77 }, quads.into());
//! let run_time = RunTime {
//!     agent: 9,
//!     answer_timeout: 100,
//!     requests: 2,
//!     most_trees: 1,
//!     changes: None,
//!     delete: true,
//!     first_patience: 0,
//! };
//! let job = Job { trees: Vec::new(), run_time: Some(run_time), ..job };
//! let mut client = Client::new(Arc::new(job), 0);
//! let mut out = Vec::new();
//! client.act(0, true, false, &mut out); // cycle 0: it asks the agent at end point 9
//! let request = out.remove(0);
//! assert_eq!((request.to, request.verb), (Place::End(9), Verb::Ask));
//! client.act(99, true, false, &mut out);
//! assert!(out.is_empty());
//! client.act(100, true, false, &mut out); // no answer for 100 cycles: it asks again
//! assert_eq!(out.len(), 1);
//! let answer = Message::new(request.from, request.to, Verb::Granted, request.job);
//! client.receive(150, &Message { number: request.number, keys: request.keys, ids: [5, u16::MAX], ..answer });
//! assert_eq!((client.state(), client.trees()), (ClientState::Granted, &[5][..]));
//! ```

use super::admission::{Refusals, Refused};
use super::job::{Job, RunTime};
use super::manage::{Message, NO_ID, Place, Verb};
use std::sync::Arc;
use watershed_kernel::{Cycle, Wake};
use watershed_probe::{EnumTable, Scope};
use watershed_state::state;

/// States in waves.
static STATES: EnumTable =
    EnumTable { name: "client", names: &["WAITING", "ASKING", "GRANTED", "REFUSED", "DELETING", "CLOSED"] };

/// Where the root's business with the agent stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum ClientState {
    /// It has not asked yet.
    Waiting = 0,
    /// It waits for a tree.
    Asking = 1,
    /// It has one.
    Granted = 2,
    /// It got none: the job is in software.
    Refused = 3,
    /// It waits for the tree to be deleted.
    Deleting = 4,
    /// It has nothing more to ask.
    Closed = 5,
}

/// The number of a request for a tree, and of one to delete it.
pub(super) const ASK: u32 = 1;
pub(super) const DELETE: u32 = 2;

/// The part of a root process that asks the agent.
#[derive(Clone, Debug)]
pub struct Client {
    job: Arc<Job>,
    cfg: RunTime,
    source: u32,
    state: ClientState,
    deadline: Cycle,
    /// Requests of the present number.
    attempts: u32,
    asked: Option<Cycle>,
    answered: Option<Cycle>,
    /// Requests for the tree, and deletions, that were sent.
    requests: u32,
    trees: Vec<u16>,
    refusal: Option<String>,
    undeleted: bool,
    refused: Refusals,
}

state!(Client {
    saved: state, deadline, attempts, asked, answered, requests, trees, refusal, undeleted, refused;
    built: job, cfg, source
});

impl Client {
    /// Of this job, at the end point with this source address.
    ///
    /// # Panics
    /// If the job's tree is not made at run time.
    pub fn new(job: Arc<Job>, source: u32) -> Client {
        let cfg = job.run_time.expect("the job's tree is made at run time");
        Client {
            job,
            cfg,
            source,
            state: ClientState::Waiting,
            deadline: Cycle::MAX,
            attempts: 0,
            asked: None,
            answered: None,
            requests: 0,
            trees: Vec::new(),
            refusal: None,
            undeleted: false,
            refused: Refusals::default(),
        }
    }

    /// The job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// The job whose tree it takes over.
    pub fn follows(&self) -> Option<u16> {
        self.cfg.changes
    }

    /// Where it stands.
    pub fn state(&self) -> ClientState {
        self.state
    }

    /// When it asked for the tree, and when it knew whether there is one.
    pub fn times(&self) -> (Option<Cycle>, Option<Cycle>) {
        (self.asked, self.answered)
    }

    /// Requests that it sent.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Multicast ids of the trees it was granted.
    pub fn trees(&self) -> &[u16] {
        &self.trees
    }

    /// Why it has no tree.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Whether the agent never said that it deleted the tree.
    pub fn undeleted(&self) -> bool {
        self.undeleted
    }

    /// Frames it did not obey.
    pub fn refused(&self) -> &Refusals {
        &self.refused
    }

    /// Whether it has nothing to ask any more, unless an answer comes late.
    pub fn is_over(&self) -> bool {
        matches!(self.state, ClientState::Refused | ClientState::Closed)
    }

    fn ask(&mut self, now: Cycle, out: &mut Vec<Message>) {
        self.attempts += 1;
        self.requests += 1;
        self.deadline = now + self.cfg.answer_timeout;
        let (agent, from) = (Place::End(self.cfg.agent), Place::End(self.source));
        let deleting = self.state == ClientState::Deleting;
        let verb = if deleting { Verb::Delete } else { Verb::Ask };
        let message = Message {
            number: if deleting { DELETE } else { ASK },
            keys: self.job.keys,
            changes: self.cfg.changes.filter(|_| !deleting),
            redundant: self.cfg.most_trees == 2,
            root: self.source,
            ..Message::new(agent, from, verb, self.job.number)
        };
        if deleting {
            out.push(message);
            return;
        }
        let members = &self.job.members;
        out.extend((0..Message::parts(members.len())).map(|part| message.with_members(part, members)));
    }

    /// The agent answered.
    pub fn receive(&mut self, now: Cycle, message: &Message) {
        let admitted = match (message.verb, self.state) {
            _ if message.from != Place::End(self.cfg.agent) => Err(Refused::Sender),
            (Verb::Granted | Verb::Refused, _) if message.number != ASK => Err(Refused::Stale),
            (Verb::Granted | Verb::Refused, ClientState::Asking) => Ok(()),
            (Verb::Granted, ClientState::Refused) if self.trees.is_empty() => Ok(()),
            (Verb::Deleted, ClientState::Deleting) if message.number == DELETE => Ok(()),
            (Verb::Granted | Verb::Refused | Verb::Deleted, _) => Err(Refused::State),
            _ => Err(Refused::Kind),
        };
        if let Err(why) = admitted {
            self.refused.count(why);
            return;
        }
        let late = self.state == ClientState::Refused;
        self.deadline = Cycle::MAX;
        match message.verb {
            Verb::Granted => {
                self.trees = message.ids.into_iter().filter(|&id| id != NO_ID).collect();
                if late {
                    // Nobody uses it any more.
                    self.undeleted = true;
                    self.state = ClientState::Deleting;
                    (self.attempts, self.deadline) = (0, now);
                } else {
                    self.answered = Some(now);
                    self.state = ClientState::Granted;
                }
            }
            Verb::Refused => self.refuse(now, message.reason.words().to_owned()),
            _ => {
                self.undeleted = false;
                self.state = ClientState::Closed;
            }
        }
    }

    fn refuse(&mut self, now: Cycle, why: String) {
        self.answered = Some(now);
        self.refusal = Some(why);
        self.state = ClientState::Refused;
        self.deadline = Cycle::MAX;
    }

    /// What time brings about. `before_over` says whether the job whose tree it takes over is over, `roots_over` whether its own
    /// rounds are.
    pub fn act(&mut self, now: Cycle, before_over: bool, roots_over: bool, out: &mut Vec<Message>) {
        match self.state {
            ClientState::Waiting if now >= self.job.start && before_over => {
                self.state = ClientState::Asking;
                self.asked = Some(now);
                self.ask(now, out);
            }
            ClientState::Asking | ClientState::Deleting if now >= self.deadline => {
                if self.attempts < self.cfg.requests {
                    self.ask(now, out);
                } else if self.state == ClientState::Asking {
                    let times = self.attempts;
                    self.refuse(now, format!("the agent did not answer {times} requests"));
                } else {
                    self.state = ClientState::Closed;
                    self.deadline = Cycle::MAX;
                }
            }
            ClientState::Granted if roots_over => {
                if self.cfg.delete {
                    self.state = ClientState::Deleting;
                    self.undeleted = true;
                    self.attempts = 0;
                    self.ask(now, out);
                } else {
                    self.state = ClientState::Closed;
                }
            }
            _ => {}
        }
    }

    /// When to act again if nothing arrives; the end point sees earlier events.
    pub fn next_wake(&self, now: Cycle) -> Wake {
        match self.state {
            ClientState::Waiting if self.job.start > now => Wake::At(self.job.start),
            ClientState::Asking | ClientState::Deleting => Wake::At(self.deadline),
            _ => Wake::OnInput,
        }
    }

    /// Describes it to a wave.
    pub fn probe(&self, scope: &mut Scope<'_>) {
        scope.state("state", &STATES, self.state as u64);
        scope.bits("requests", 8, u64::from(self.requests));
    }
}
