//! The end point: a NIC, a processor that takes time, and the processes on it (requirements R-EP-1 to R-EP-4).
//!
//! ```text
//!                 ┌──────────────────────────── end point ────────────────────────────┐
//!   from the      │ assemble ─▶ CRC ─▶ inbox ─ receive ─▶ root │ leaf │ software  ...  │
//!   switch ──────▶│                                            │                      │
//!                 │                     queue of processes ◀── send ──┘               │
//!   to the        │      ┌─ in turns ──┤                                              │
//!   switch ◀──────│ flits┘             └ queue of strangers                           │
//!                 └───────────────────────────────────────────────────────────────────┘
//! ```
//!
//! | parameter | default | unit | effect on cycles |
//! |---|---|---|---|
//! | [`Overheads::send`](super::job::Overheads) | 0 | cycles | from the decision to send a frame to its departure; the processor is busy meanwhile |
//! | `receive` | 0 | cycles | from the arrival of a frame's tail to its process; the processor is busy meanwhile |
//! | `merge` | 0 | cycles | added to `receive` for a frame that the root, or a rank of a software reduction, merges |
//! | [`End::ethernet`] | off | | frames go in their Ethernet form, 13 flits instead of 11 |
//!
//! Timing: a tail taken from the queue in cycle t reaches its process in t + receive; a frame sent in answer has its head on the
//! link in t + receive + send. The NIC sends a flit a cycle; queues of processes and of strangers take turns frame by frame.
//!
//! A dead end point accepts frames, sends none, and finishes the frame it is sending. One that comes back *chosen* has
//! its processes as they were: frames that arrived meanwhile are lost, and time-outs that passed meanwhile fire then.
//!
//! **The management agent.** An end point can hold the agent ([`manager`](super::manager)), and has a
//! [`client`](super::client) for each job of its root processes whose tree is made at run time. Their frames have the
//! highest channel. The agent acts on frames at once; at a root, requests and answers take `send` and `receive` as its
//! other frames do. When a client is refused, its root processes end, and the dormant rank 0 of the same job is roused.
//!
//! **Where frames wait.** The queue of processes has no bound: a frame in it represents a descriptor in the host's
//! memory that the NIC has not fetched yet. A process makes one frame for each frame that it obeys, or for a time-out,
//! so the queue holds at most a few frames for each process. With a bound, an end point that stopped taking frames
//! while its queue is full could make two end points wait for each other *chosen*. The queue of strangers holds two
//! frames. Queues in switches, links and engines all have bounds.
//!
//! Which frames processes obey: see [`admission`](super::admission); refused frames are counted here, by reason.
//!
//! ```
//! use std::sync::Arc;
//! use watershed_armed::job::Overheads;
//! use watershed_armed::{
//!     Address, DOWN, End, EngineCfg, FRAME_WORDS, Frame, Header, Job, Keys, Leaf, Portals, Tables, TablesCfg, Tokens, WORDS,
//! };
//! use watershed_fabric::{Bench, Flit, Vcs};
//! use watershed_arith::quad::{Opcode, Quad};
//! # use watershed_fabric::routing::{Routes, Routing};
//! # use watershed_fabric::topology::Mesh;
//! # let routing = Routing::Mesh(Mesh { size: vec![1], concentration: 1 });
//! # let routes = Routes { routing, ends: Vec::new() };
//! # let cfg = TablesCfg { entries: 1, engine: EngineCfg::default(), record: false, log: false };
//! # let tables = Tables::new(cfg, vec!["switch".into()], 2, routes);
//!
//! // End point 0 is the root, 1 and 2 are the leaves; they sum integers.
//! let op = Opcode::from_number(0x14).unwrap(); // INT SUM
//! let quads = [1, 40, 2].map(|word| Quad::of([word, 0, 0, 0]));
//! let job = Job::of(op, 3, [0, 1, 2].into(), Keys { vni: 1, cookie: 77 }, quads.into());
//! let overheads = Overheads { send: 5, receive: 7, merge: 0 };
//! let mut end = End::new(1, 1, Tokens::new(3));
//! end.add_leaf(Leaf::new(Arc::new(Job { overheads, ..job }), 0, 1, 1));
//!
//! // The arm frame descends in cycles 10 to 20.
//! let arm = Frame {
//!     address: Address { multicast_id: 3, reduction_id: 0 },
//!     source: 0,
//!     vni: 1,
//!     portals: Portals::default(),
//!     rank: 0,
//!     header: Header { arm: true, cookie: 77, ..Header::default() },
//!     lanes: [0; 4],
//! };
//! let words = arm.to_words().unwrap().into_iter().zip(0..);
//! let arrivals = words.map(|(word, at)| (10 + u64::from(at), 0, Flit::part(0, DOWN, 0, at, FRAME_WORDS as u32, word)));
//! let mut bench = Bench::<_, _, WORDS>::at_the_end(end, tables, Vcs { set: 2, unicast: 0 }, arrivals);
//! while bench.tick() {}
//! // The tail in cycle 20, seen 7 cycles later; the contribution leaves 5 cycles after that.
//! assert_eq!(bench.sent()[0].0, 20 + 7 + 5);
//! let words: Vec<u64> = bench.sent().iter().map(|(.., flit)| flit.word).collect();
//! assert_eq!(Frame::from_words(&words).unwrap().lanes[0], 40);
//! ```

use super::admission::{Refusals, Refused};
use super::client::Client;
use super::frame::{ETHERNET_BYTES, FRAME_BYTES, Frame};
use super::job::Job;
use super::leaf::Leaf;
use super::manage::{self, Place};
use super::manager::Manager;
use super::root::{Outbox, Root, tree_names};
use super::soft::{Message, Soft};
use super::station::{FrameEvent, Log, Merges, NO_TOKEN, Tokens};
use super::stranger::{Defect, ForgedKind, OtherTree, Stranger};
use super::tables::{CHANNELS, DOWN, MANAGE, Tables, UP};
use std::collections::VecDeque;
use std::sync::Arc;
use watershed_fabric::{Flit, Io, Reassembly};
use watershed_kernel::Cycle;
use watershed_state::state;

mod calls;
mod clock;
mod nic;
mod packet;
mod watch;

use nic::Nic;
use packet::Packet;

/// Any point-to-point channel: the first one is behind the set-routed ones of the system.
pub(super) const MESSAGE: u8 = u8::MAX;

/// An end point.
#[derive(Clone, Debug)]
pub struct End {
    source: u32,
    /// Frames go in their Ethernet form.
    pub ethernet: bool,
    /// When it is dead: from the first cycle of each to before the second.
    dead: Vec<(Cycle, Cycle)>,
    roots: Vec<Root>,
    leaves: Vec<Leaf>,
    softs: Vec<Soft>,
    strangers: Vec<Stranger>,
    clients: Vec<Client>,
    manager: Option<Box<Manager>>,
    nic: Nic,
    /// Frames of the agent, or for it, that the processor will look at.
    desk: VecDeque<(Cycle, manage::Message)>,
    inbox: VecDeque<(Cycle, u8, Frame, u64)>,
    busy_until: Cycle,
    /// Before this cycle no process does anything unless something arrives.
    rest_until: Cycle,
    over: u64,
    refused: Refusals,
    merges: Merges,
    log: Log,
    manage_log: Vec<manage::LoggedMessage>,
}

state!(End {
    saved: nic, desk, inbox, busy_until, rest_until, over, refused, merges, log, manage_log;
    each: roots, leaves, softs, strangers, clients;
    boxed: manager;
    built: source, ethernet, dead
});

impl End {
    /// An end point with nothing on it; `source` is its number, `station` its number among all that make frames in a system
    /// with these tokens.
    pub fn new(source: u32, station: u32, tokens: Tokens) -> End {
        End {
            source,
            ethernet: false,
            dead: Vec::new(),
            roots: Vec::new(),
            leaves: Vec::new(),
            softs: Vec::new(),
            strangers: Vec::new(),
            clients: Vec::new(),
            manager: None,
            nic: Nic::default(),
            desk: VecDeque::new(),
            inbox: VecDeque::new(),
            busy_until: 0,
            rest_until: 0,
            over: 0,
            refused: Refusals::default(),
            merges: Merges::new(station, tokens),
            log: Log::default(),
            manage_log: Vec::new(),
        }
    }

    /// Adds a root process.
    pub fn add_root(&mut self, root: Root) {
        self.roots.push(root);
    }

    /// Adds a leaf process.
    pub fn add_leaf(&mut self, leaf: Leaf) {
        self.leaves.push(leaf);
    }

    /// Adds a rank of a software reduction.
    pub fn add_soft(&mut self, soft: Soft) {
        self.softs.push(soft);
    }

    /// Adds what asks the agent for a job's tree.
    pub fn add_client(&mut self, client: Client) {
        self.clients.push(client);
    }

    /// Makes it the end point of the management agent.
    pub fn set_manager(&mut self, manager: Manager) {
        self.manager = Some(Box::new(manager));
    }

    /// What asks the agent for trees of jobs.
    pub fn clients(&self) -> &[Client] {
        &self.clients
    }

    /// The agent, if it is here.
    pub fn manager(&self) -> Option<&Manager> {
        self.manager.as_deref()
    }

    /// Lets it be dead from a cycle on, and before another.
    pub fn die(&mut self, from: Cycle, until: Cycle) {
        self.dead.push((from, until));
    }

    /// Whether it is dead in this cycle.
    pub fn is_dead(&self, now: Cycle) -> bool {
        self.dead.iter().any(|&(from, until)| (from..until).contains(&now))
    }

    /// The cycle since when it is dead for good.
    pub fn dead_for_good(&self, now: Cycle) -> Option<Cycle> {
        self.dead.iter().filter(|&&(from, until)| from <= now && until == Cycle::MAX).map(|&(from, _)| from).min()
    }

    /// When it next dies or comes back.
    fn next_change(&self, now: Cycle) -> Option<Cycle> {
        let changes = self.dead.iter().flat_map(|&(from, until)| [from, until]);
        changes.filter(|&at| at > now && at != Cycle::MAX).min()
    }

    /// Adds a stranger.
    pub fn add_stranger(&mut self, stranger: Stranger) {
        self.strangers.push(stranger);
    }

    /// Its root processes.
    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// Its leaf processes.
    pub fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// Its leaf processes, to change them before the run.
    pub fn leaves_mut(&mut self) -> &mut [Leaf] {
        &mut self.leaves
    }

    /// Its ranks of software reductions.
    pub fn softs(&self) -> &[Soft] {
        &self.softs
    }

    /// Its strangers.
    pub fn strangers(&self) -> &[Stranger] {
        &self.strangers
    }

    /// Frames that its NIC did not hand to a process. Those that processes did not obey, they count themselves.
    pub fn refused(&self) -> &Refusals {
        &self.refused
    }

    /// What it made (only if recorded).
    pub fn merges(&self) -> &Merges {
        &self.merges
    }

    /// What it saw (only if logged).
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Frames of the agent that it sent or took (only if logged).
    pub fn manage_log(&self) -> &[manage::LoggedMessage] {
        &self.manage_log
    }

    // ------------------------------------------------------------------------------------------------- inwards

    /// Takes what stands in the queues, a flit a channel.
    fn take_in(&mut self, io: &mut Io<'_>, tables: &Tables) -> bool {
        let mut moved = false;
        for vc in [DOWN, UP] {
            let Some(flit) = io.head(0, vc) else { continue };
            let cut = tables.cut;
            let at = usize::from(vc);
            let whole = if self.ethernet {
                let long = &mut self.nic.long[at];
                if flit.tag.head() {
                    long.clear();
                }
                long.push(cut, flit.word, io.more(0, vc));
                let whole = || Frame::from_ethernet_words(long.frame(cut, ETHERNET_BYTES));
                flit.tag.tail().then(|| whole().map(|frame| (frame, flit.tag.seq())))
            } else {
                self.nic.assembling[at].take(cut, (&flit, io.more(0, vc)))
            };
            io.take(0, vc);
            moved = true;
            match whole {
                Some(Ok((frame, token))) => self.arrived(io.now(), vc, frame, token, tables),
                Some(Err(error)) => self.refused.count(Refused::from(&error)),
                None => {}
            }
        }
        if tables.managed().is_some()
            && let Some(flit) = io.head(0, MANAGE)
        {
            let whole = self.nic.managing.take_words(tables.cut, (&flit, io.more(0, MANAGE)));
            io.take(0, MANAGE);
            moved = true;
            match whole.map(|words| words.and_then(|words| manage::Message::decode(&words))) {
                Some(Ok(message)) => self.arrived_for_agent(io.now(), message, tables.cfg.log),
                Some(Err(error)) => self.refused.count(Refused::from(&error)),
                None => {}
            }
        }
        if self.softs.is_empty() {
            return moved;
        }
        // A software message: a header flit, then the frame.
        let first = io.vcs().set;
        for vc in first..first + tables.message_channels(io.vcs()) {
            let Some(flit) = io.head(0, vc) else { continue };
            moved = true;
            let at = usize::from(vc - first);
            if self.nic.unicast.len() <= at {
                self.nic.unicast.resize(at + 1, (Reassembly::default(), 0));
            }
            let (words, token) = &mut self.nic.unicast[at];
            if flit.tag.head() {
                words.clear();
                *token = flit.tag.seq();
            } else {
                words.push(tables.cut, flit.word, io.more(0, vc));
            }
            io.take(0, vc);
            if flit.tag.tail() {
                let token = *token;
                match Frame::from_words(words.frame(tables.cut, FRAME_BYTES)) {
                    Ok(frame) => self.arrived(io.now(), MESSAGE, frame, token, tables),
                    Err(error) => self.refused.count(Refused::from(&error)),
                }
            }
        }
        moved
    }

    /// A frame of the agent, or for it, is here.
    fn arrived_for_agent(&mut self, now: Cycle, message: manage::Message, logged: bool) {
        if self.is_dead(now) {
            return;
        }
        if logged {
            self.manage_log.push(manage::LoggedMessage { cycle: now, sent: false, message });
        }
        let client = self.clients.iter().find(|client| client.job().number == message.job);
        let to_client = matches!(message.verb, manage::Verb::Granted | manage::Verb::Refused | manage::Verb::Deleted);
        let receive = client.filter(|_| to_client).map_or(0, |client| client.job().overheads.receive);
        let ready = now.max(self.busy_until) + receive;
        if receive > 0 {
            self.busy_until = ready;
        }
        // Frames for the agent and for roots have their order each; a root's overheads do not hold up the agent.
        let at = self.desk.partition_point(|&(other, _)| other <= ready);
        self.desk.insert(at, (ready, message));
        self.rest_until = self.rest_until.min(ready);
    }

    /// A whole frame is here: the processor will look at it.
    fn arrived(&mut self, now: Cycle, vc: u8, frame: Frame, token: u64, tables: &Tables) {
        if self.is_dead(now) {
            return;
        }
        if tables.cfg.log {
            self.log.push(now, FrameEvent::Received, token, &frame);
        }
        let overheads = match vc {
            UP => self.roots.iter().find(|root| root.find(frame.address).is_some()).map(|root| root.job().overheads),
            DOWN => self.leaves.iter().find(|leaf| leaf.find(&frame).is_some()).map(|leaf| leaf.job().overheads),
            _ => self
                .softs
                .iter()
                .find(|soft| soft.job().number == frame.portals.initiator)
                .map(|soft| soft.job().overheads),
        }
        .unwrap_or_default();
        let merge = if vc == DOWN || (vc == MESSAGE && frame.header.arm) { 0 } else { overheads.merge };
        let ready = now.max(self.busy_until) + overheads.receive + merge;
        self.busy_until = self.busy_until.max(ready);
        self.inbox.push_back((ready, vc, frame, token));
        self.rest_until = self.rest_until.min(ready);
    }

    /// Hands a frame to its process.
    fn deliver(&mut self, now: Cycle, vc: u8, frame: &Frame, token: u64) {
        let mut ours = false;
        match vc {
            UP => {
                for root in &mut self.roots {
                    if let Some(tree) = root.find(frame.address) {
                        root.receive(tree, frame, token);
                        ours = true;
                    }
                }
            }
            DOWN => {
                for leaf in &mut self.leaves {
                    if let Some(tree) = leaf.find(frame) {
                        leaf.receive(now, tree, frame, token);
                        ours = true;
                    }
                }
            }
            _ => {
                let mut messages = Vec::new();
                for soft in &mut self.softs {
                    let job = soft.job().number;
                    if job == frame.portals.initiator {
                        if soft.receive(frame, token, &mut messages) {
                            let leaves = self.leaves.iter_mut().filter(|leaf| leaf.job().number == job);
                            leaves.for_each(Leaf::withdraw);
                        }
                        ours = true;
                    }
                }
                self.post_messages(now, frame.portals.initiator, messages);
            }
        }
        if !ours {
            self.refused.count(Refused::NotOurs);
        }
    }

    // ------------------------------------------------------------------------------------------------- outwards

    fn post(&mut self, now: Cycle, send: u64, vc: u8, frame: &Frame, token: u64, to: Option<u32>) {
        let due = now.max(self.busy_until) + send;
        if send > 0 {
            self.busy_until = due;
        }
        let words: Box<[u64]> = if to.is_none() && self.ethernet {
            frame.to_ethernet_words().expect("processes make frames that fit").into()
        } else {
            frame.to_words().expect("processes make frames that fit").into()
        };
        let header = to.map(|end| Flit::header(end, now));
        let id = frame.address.multicast_id & 0xfff;
        self.nic.queues[0].push_back(Packet { due, vc, token, id, words, header });
    }

    /// Sends messages of a rank of a software reduction.
    fn post_messages(&mut self, now: Cycle, job: u16, messages: Vec<Message>) {
        let Some(soft) = self.softs.iter().find(|soft| soft.job().number == job) else { return };
        let (send, members) = (soft.job().overheads.send, Arc::clone(&soft.job().members));
        for Message { to, frame, token } in messages {
            self.post(now, send, MESSAGE, &frame, token, Some(members[to as usize]));
        }
    }

    /// Frames of the agent, or for it, on their way out; those to this end point itself need no way.
    fn post_for_agent(&mut self, now: Cycle, send: u64, messages: Vec<manage::Message>) {
        for message in messages {
            if message.to == Place::End(self.source) {
                // No frame: nothing to see in a ladder.
                self.arrived_for_agent(now, message, false);
                continue;
            }
            let due = now.max(self.busy_until) + send;
            if send > 0 {
                self.busy_until = due;
            }
            let packet =
                Packet { due, vc: MANAGE, token: NO_TOKEN, id: 0, words: message.encode().into(), header: None };
            self.nic.queues[0].push_back(packet);
        }
    }

    /// The agent and what asks it.
    fn manage(&mut self, now: Cycle) {
        // What the agent sends to its own end point comes in the same cycle.
        loop {
            while let Some(&(ready, message)) = self.desk.front() {
                if ready > now {
                    break;
                }
                self.desk.pop_front();
                self.obey(now, &message);
            }
            for at in 0..self.clients.len() {
                self.ask(now, at);
            }
            if let Some(manager) = &mut self.manager {
                let mut out = Vec::new();
                manager.act(now, &mut out);
                self.post_for_agent(now, 0, out);
            }
            if self.desk.front().is_none_or(|&(ready, _)| ready > now) {
                return;
            }
        }
    }

    /// A frame of the agent, or for it.
    fn obey(&mut self, now: Cycle, message: &manage::Message) {
        use manage::Verb;
        if !matches!(message.verb, Verb::Granted | Verb::Refused | Verb::Deleted) {
            let Some(manager) = &mut self.manager else { return self.refused.count(Refused::NotOurs) };
            let mut out = Vec::new();
            manager.receive(message, &mut out);
            return self.post_for_agent(now, 0, out);
        }
        let client = self.clients.iter_mut().find(|client| client.job().number == message.job);
        let Some(client) = client else { return self.refused.count(Refused::NotOurs) };
        client.receive(now, message);
    }

    /// Lets a client ask, and its processes begin or withdraw.
    fn ask(&mut self, now: Cycle, at: usize) {
        let over = |roots: &[Root], job: u16| roots.iter().filter(|root| root.job().number == job).all(Root::is_over);
        let client = &self.clients[at];
        let (job, send) = (client.job().number, client.job().overheads.send);
        let softs_over =
            |job: u16| self.softs.iter().all(|soft| soft.job().number != job || soft.is_over() || soft.is_dormant());
        let before_over = client.follows().is_none_or(|before| {
            let settled = self.clients.iter().all(|other| other.job().number != before || other.is_over());
            settled && over(&self.roots, before) && softs_over(before)
        });
        let roots_over = over(&self.roots, job);
        let mut out = Vec::new();
        self.clients[at].act(now, before_over, roots_over, &mut out);
        self.post_for_agent(now, send, out);
        let client = &self.clients[at];
        if client.refusal().is_some() {
            let mut messages = Vec::new();
            self.roots.iter_mut().filter(|root| root.job().number == job).for_each(Root::withdraw);
            self.softs.iter_mut().filter(|soft| soft.job().number == job).for_each(|soft| soft.start(&mut messages));
            self.post_messages(now, job, messages);
        } else if !client.trees().is_empty() {
            let roots = self.roots.iter_mut().filter(|root| root.job().number == job);
            roots.for_each(|root| root.grant(client.trees()));
        }
    }

    /// The id of a tree of another job, if it is known here and is not one of this job's. Two trees may have had the
    /// same id, one after the other or in different places, and a frame with a valid address would not be a stranger's.
    fn foreign_tree(&self, job: &Job, other: OtherTree) -> Option<u16> {
        let trees = |job: u16| {
            let at_leaf = self.leaves.iter().filter(move |leaf| leaf.job().number == job).map(Leaf::trees);
            let at_root = self.roots.iter().filter(move |root| root.job().number == job).map(Root::trees);
            at_root.chain(at_leaf)
        };
        let id = other.id.or_else(|| trees(other.job).find_map(|trees| trees.first().copied()))?;
        // Roots and leaves learn all trees of their job at once.
        let own = trees(job.number).max_by_key(|trees| trees.len()).unwrap_or(&job.trees);
        (!own.is_empty() && !own.contains(&id)).then_some(id)
    }

    fn act(&mut self, now: Cycle, tables: &Tables) {
        let record = tables.cfg.record;
        if self.manager.is_some() || !self.clients.is_empty() {
            self.manage(now);
        }
        let mut out: Outbox = Vec::new();
        for at in 0..self.roots.len() {
            self.roots[at].act(now, record, &mut self.merges, &mut out);
            let send = self.roots[at].job().overheads.send;
            for (frame, token) in out.drain(..) {
                self.post(now, send, DOWN, &frame, token, None);
            }
        }
        for at in 0..self.leaves.len() {
            self.leaves[at].act(now, record, &mut self.merges, &mut out);
            let send = self.leaves[at].job().overheads.send;
            for (frame, token) in out.drain(..) {
                self.post(now, send, UP, &frame, token, None);
            }
        }
        let mut messages: Vec<Message> = Vec::new();
        for at in 0..self.softs.len() {
            self.softs[at].act(now, record, &mut self.merges, &mut messages);
            let send = self.softs[at].job().overheads.send;
            for Message { to, frame, token } in messages.drain(..) {
                let end = self.softs[at].job().members[to as usize];
                self.post(now, send, MESSAGE, &frame, token, Some(end));
            }
        }
        // What has just ended may be what a client waits for.
        if !self.clients.is_empty() {
            self.manage(now);
        }
        for at in 0..self.strangers.len() {
            let stranger = &self.strangers[at];
            if now < stranger.next || now >= stranger.until || self.nic.queues[1].len() >= 2 {
                continue;
            }
            // Old and new are told apart flow by flow: what is old in one may be right in another.
            let (number, flow) = (stranger.job.number, stranger.flow());
            let leaf = self.leaves.iter().find(|leaf| leaf.job().number == number && leaf.flow() == flow);
            let root = self.roots.iter().find(|root| root.job().number == number && root.flow() == flow);
            let armed = leaf.and_then(Leaf::seqno).or(root.map(Root::seqno));
            let tree =
                leaf.and_then(|leaf| leaf.trees().first()).or(root.and_then(|root| root.trees().first())).copied();
            let tree = if let Defect::Tree(other) = stranger.wrong {
                let foreign = self.foreign_tree(&stranger.job, other);
                if foreign.is_none() {
                    // It would have nothing wrong, or does not know yet what would be wrong.
                    let stranger = &mut self.strangers[at];
                    stranger.next = now + stranger.every;
                    continue;
                }
                foreign
            } else {
                tree
            };
            let vc = stranger.channel();
            if let (ForgedKind::Agent(verb), Some(managed)) = (stranger.forged, tables.managed()) {
                let words = stranger.message(self.source, verb, managed, tree).encode().into();
                self.nic.queues[1].push_back(Packet { due: now, vc, token: NO_TOKEN, id: 0, words, header: None });
                self.strangers[at].sent_one(now);
                continue;
            }
            let known = root.map(Root::trees).or(leaf.map(Leaf::trees)).unwrap_or_default();
            let names = tree_names(&stranger.job, known).unwrap_or(0);
            let words = stranger.words(self.source, armed, (tree, names), self.ethernet && vc < CHANNELS);
            let to = stranger.job.members[stranger.to() as usize];
            let header = (vc == MESSAGE).then(|| Flit::header(to, now));
            self.nic.queues[1].push_back(Packet { due: now, vc, token: NO_TOKEN, id: 0, words: words.into(), header });
            self.strangers[at].sent_one(now);
        }
    }

    /// Sends one flit.
    fn send(&mut self, io: &mut Io<'_>, tables: &Tables) -> bool {
        let now = io.now();
        let first = io.vcs().set;
        let channel = |vc: u8| if vc == MESSAGE { first } else { vc };
        if self.nic.sending.is_none() {
            let due = |queue: &VecDeque<Packet>| queue.front().is_some_and(|packet| packet.due <= now);
            let ready = [due(&self.nic.queues[0]), due(&self.nic.queues[1])];
            let which = match ready {
                [true, true] => usize::from(self.nic.turn),
                [true, false] => 0,
                [false, true] => 1,
                [false, false] => return false,
            };
            // A packet leaves its queue when its head leaves: what is behind it sees the place free in the same cycle
            // whether or not the end point is looked at in between.
            let vc = channel(self.nic.queues[which].front().map_or(UP, |packet| packet.vc));
            if !io.can_send(0, vc) {
                return false;
            }
            let Some(packet) = self.nic.queues[which].pop_front() else { return false };
            self.nic.turn = which == 0;
            if which == 1 {
                // A stranger has room for the next one.
                self.rest_until = self.rest_until.min(now + 1);
            }
            self.nic.sending = Some((packet, 0));
        }
        let Some((packet, sent)) = &mut self.nic.sending else { return false };
        let vc = channel(packet.vc);
        if !io.can_send(0, vc) {
            return false;
        }
        let flits = packet.flits(tables.cut);
        let logged = *sent == 0 && tables.cfg.log && packet.token != NO_TOKEN && packet.vc < CHANNELS;
        if logged && let Ok(frame) = packet.frame() {
            self.log.push(now, FrameEvent::Sent, packet.token, &frame);
        }
        if *sent == 0 && tables.cfg.log && packet.vc == MANAGE {
            let words = packet.words[..].try_into().map(manage::Message::decode);
            if let Ok(Ok(message)) = words {
                self.manage_log.push(manage::LoggedMessage { cycle: now, sent: true, message });
            }
        }
        packet.send(io, (vc, tables.cut), *sent, flits);
        *sent += 1;
        if *sent == flits {
            self.nic.sending = None;
        }
        true
    }

    fn tell(&mut self, io: &mut Io<'_>) {
        let over = self.roots.iter().filter(|root| root.is_over()).count()
            + self.leaves.iter().filter(|leaf| leaf.is_over()).count()
            + self.softs.iter().filter(|soft| soft.is_over()).count()
            + self.clients.iter().filter(|client| client.is_over()).count();
        while self.over < over as u64 {
            self.over += 1;
            io.complete();
        }
    }

    /// Processes that will do nothing more, and processes in all.
    pub fn processes(&self) -> (usize, usize) {
        let softs = self.softs.iter().filter(|soft| !soft.is_dormant()).count();
        (self.over as usize, self.roots.len() + self.leaves.len() + softs + self.clients.len())
    }
}
