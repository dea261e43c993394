//! The management agent at run time: a process at an end point that root processes ask for trees (requirements R-TAB-2,
//! R-EP-1; description (36), (50), (51), (77), (78), (93)). Its computation is in [`agent`](super::agent).
//!
//! ```text
//!   requests ─▶ collect parts ─▶ queue ─▶ compute ─▶ erase old entries ─▶ lay the tree ─▶ write entries ─▶ answer
//!                                                        │  all done          │ none          │ all done
//!                                                        ▼                    ▼               ▼
//!                                              (an order a switch under way, sent again until it is acknowledged)
//! ```
//!
//! | parameter | default | unit | effect |
//! |---|---|---|---|
//! | [`ManagerCfg::compute_cycles`] | 2000 | cycles | time of a request before its first order *chosen* |
//! | [`ManagerCfg::write_timeout`] | 4000 | cycles | time after which an order is sent again |
//! | [`ManagerCfg::write_attempts`] | 4 | orders | attempts after which a switch is given up |
//! | [`ManagerCfg::window`] | 8 | switches | switches that have an order under way at a time |
//!
//! It serves one request after another. **Change before use** *chosen*: the entries of a changed tree are erased at all
//! its switches, and acknowledged, before the first entry of the new tree is written. So no frame finds entries of both
//! and follows them in a circle.
//!
//! **Reuse** *chosen*. An id is free again when every switch has acknowledged that it has erased it. Frames of the
//! deleted tree may still be under way then, held up by a link; the new tree must not take them for its own. The keys
//! (VNI and cookie) that every frame, entry and descriptor has tell them apart: the agent never gives an id twice to
//! the same keys. So late frames fail the admission of the new tree at every engine and process, whatever their
//! sequence number is. A switch that could not be reached may still have the old entry, so the id is never free there
//! again.
//!
//! It knows from the launch of a job which end point is its root, and obeys only that one about it *chosen*.
//!
//! A request that cannot be met is refused; entries that were written for it are erased before the answer.
//!
//! ```
//! use std::sync::Arc;
//! use watershed_armed::manage::{Message, Place, Verb};
//! use watershed_armed::{Agent, EngineCfg, Keys, Manager, ManagerCfg, Tables, TablesCfg};
//! use watershed_fabric::Vcs;
//! use watershed_fabric::routing::Routes;
//! use watershed_fabric::topology::{Common, LinkParams, Mesh};
//!
//! // One switch with three end points; the agent sits at end point 2, the root of job 0 at end point 0.
//! let link = LinkParams { latency: 1, cycles_per_flit: 1 };
//! let common = Common { vcs: Vcs { set: 3, unicast: 1 }, engine: false, link, local: link };
//! let layout = Mesh { size: vec![1], concentration: 3 }.layout(&common);
//! let cfg = TablesCfg { entries: 4, engine: EngineCfg::default(), record: false, log: false };
//! # let routes = Routes { routing: layout.routing.clone(), ends: layout.ends.clone() };
//! let book = Tables::new(cfg, vec!["switch".into()], layout.external_ports, routes);
//! let agent = Arc::new(Agent::new(&layout));
//! let ends = layout.ends.clone().into();
//! let mut manager = Manager::new(2, ManagerCfg::default(), agent, ends, [0].into(), book);
//!
//! let ask = Message::new(Place::End(2), Place::End(0), Verb::Ask, 0);
//! let ask = Message { number: 1, keys: Keys { vni: 1, cookie: 77 }, ..ask };
//! let mut out = Vec::new();
//! manager.receive(&ask.with_members(0, &[0, 1]), &mut out);
//! manager.act(10, &mut out);
//! manager.act(2009, &mut out);
//! assert!(out.is_empty()); // it computes for 2000 cycles
//! manager.act(2010, &mut out);
//! assert_eq!((out[0].to, out[0].verb), (Place::Switch(0), Verb::Write));
//! ```

use super::ManagerCounts;
use super::admission::{Keys, Owner, Refusals, Refused};
use super::agent::{Agent, Refusal, SpanningTree};
use super::manage::{Message, Place, Reason, Verb};
use super::tables::{Change, Tables};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use watershed_fabric::topology::EndPlace;
use watershed_kernel::{Cycle, Wake};
use watershed_probe::{EnumTable, Scope};
use watershed_state::state;

/// Phases in waves.
static STATES: EnumTable = EnumTable { name: "agent", names: &["IDLE", "COMPUTING", "ERASING", "WRITING", "UNDOING"] };

/// Parameters; see the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManagerCfg {
    /// Cycles to compute a tree.
    pub compute_cycles: u64,
    /// Cycles until an order is sent again.
    pub write_timeout: u64,
    /// Orders until a switch is given up.
    pub write_attempts: u32,
    /// Switches with an order under way.
    pub window: u32,
}

impl Default for ManagerCfg {
    fn default() -> ManagerCfg {
        ManagerCfg { compute_cycles: 2000, write_timeout: 4000, write_attempts: 4, window: 8 }
    }
}

/// A request under way to the agent, part by part.
#[derive(Clone, Debug, watershed_state::Saved)]
struct PartialRequest {
    first: Message,
    parts: Vec<Option<Message>>,
}

/// Where a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
enum Phase {
    Computing = 1,
    Erasing = 2,
    Writing = 3,
    /// A tree is not wanted, or cannot be finished: what was written of it is erased.
    Undoing = 4,
}

/// The request that is served.
#[derive(Clone, Debug, watershed_state::Saved)]
struct ActiveRequest {
    request: Message,
    members: Vec<u32>,
    phase: Phase,
    until: Cycle,
    /// Orders that are not under way yet: the switch, what it is to do.
    orders: VecDeque<(u32, Change)>,
    /// The trees that are laid: id and rows.
    trees: Vec<(u16, SpanningTree)>,
    /// Why they will not be.
    reason: Option<Reason>,
}

/// An order under way.
#[derive(Clone, Debug, watershed_state::Saved)]
struct Sent {
    switch: u32,
    change: Change,
    message: Message,
    deadline: Cycle,
    attempts: u32,
}

/// The agent.
#[derive(Clone, Debug)]
pub struct Manager {
    source: u32,
    cfg: ManagerCfg,
    agent: Arc<Agent>,
    /// Where end points are.
    ends: Arc<[EndPlace]>,
    /// The end point of the root of each job.
    roots: Arc<[u32]>,
    /// The tables as they will be when every order is obeyed; also those whose erasing was never acknowledged.
    book: Tables,
    collecting: BTreeMap<u16, PartialRequest>,
    queue: VecDeque<(Message, Vec<u32>)>,
    work: Option<ActiveRequest>,
    sent: Vec<Sent>,
    /// Number of the last order.
    number: u32,
    /// The trees of every job that has some.
    trees: BTreeMap<u16, Vec<(u16, SpanningTree)>>,
    /// Keys that have had an id.
    keys: BTreeMap<u16, BTreeSet<(u16, u32)>>,
    answered: BTreeMap<u16, Message>,
    counts: ManagerCounts,
    refused: Refusals,
}

state!(Manager {
    saved: book, collecting, queue, work, sent, number, trees, keys, answered, counts, refused;
    built: source, cfg, agent, ends, roots
});

impl Manager {
    /// An agent at this end point; `roots` are the end points of the jobs' roots, `book` the tables as they are before the run.
    pub fn new(
        source: u32,
        cfg: ManagerCfg,
        agent: Arc<Agent>,
        ends: Arc<[EndPlace]>,
        roots: Arc<[u32]>,
        book: Tables,
    ) -> Manager {
        Manager {
            source,
            cfg,
            agent,
            ends,
            roots,
            book,
            collecting: BTreeMap::new(),
            queue: VecDeque::new(),
            work: None,
            sent: Vec::new(),
            number: 0,
            trees: BTreeMap::new(),
            keys: BTreeMap::new(),
            answered: BTreeMap::new(),
            counts: ManagerCounts::default(),
            refused: Refusals::default(),
        }
    }

    /// What it did.
    pub fn counts(&self) -> &ManagerCounts {
        &self.counts
    }

    /// Frames it did not obey.
    pub fn refused(&self) -> &Refusals {
        &self.refused
    }

    /// Whether it has something to do.
    pub fn is_busy(&self) -> bool {
        self.work.is_some() || !self.queue.is_empty()
    }

    /// How far it has come: changes with every order and answer.
    pub fn advanced(&self) -> u64 {
        let ManagerCounts { written, erased, resent, given_up, .. } = self.counts;
        written + erased + resent + given_up + self.answered.len() as u64 + u64::from(self.work.is_some())
    }

    // ------------------------------------------------------------------------------------------------- requests

    /// A frame for the agent. What it answers at once goes to `out`.
    pub fn receive(&mut self, message: &Message, out: &mut Vec<Message>) {
        let admitted = match message.verb {
            Verb::Ask | Verb::Delete => self.request(message, out),
            Verb::Done | Verb::NoRoom => self.acknowledged(message),
            _ => Err(Refused::Kind),
        };
        if let Err(why) = admitted {
            self.refused.count(why);
        }
    }

    fn request(&mut self, message: &Message, out: &mut Vec<Message>) -> Result<(), Refused> {
        // Only the root itself asks for its tree, and changes one of its own: sources are stamped by the fabric.
        let asks = |job: u16| self.roots.get(usize::from(job)).is_some_and(|&root| message.from == Place::End(root));
        if !asks(message.job)
            || message.from != Place::End(message.root)
            || message.changes.is_some_and(|job| !asks(job))
        {
            return Err(Refused::Sender);
        }
        if let Some(answer) = self.answered.get(&message.job).filter(|answer| message.number <= answer.number) {
            // The last part asks for the answer again; the others ask nothing.
            let last = message.verb == Verb::Delete || message.part + 1 == Message::parts(message.count as usize);
            if message.number == answer.number && last {
                out.push(*answer);
            }
            return Ok(());
        }
        let same = |request: &Message| (request.job, request.number) == (message.job, message.number);
        if self.work.as_ref().is_some_and(|work| same(&work.request)) || self.queue.iter().any(|(of, _)| same(of)) {
            return Ok(());
        }
        if message.verb == Verb::Delete {
            self.queue.push_back((*message, Vec::new()));
            return Ok(());
        }
        let parts = Message::parts(message.count as usize) as usize;
        if message.count as usize > self.ends.len() || message.part as usize >= parts {
            return Err(Refused::Malformed);
        }
        let collected = self.collecting.entry(message.job);
        let collected = collected.or_insert_with(|| PartialRequest { first: *message, parts: vec![None; parts] });
        if (collected.first.from, collected.first.count) != (message.from, message.count) {
            return Err(Refused::Sender);
        }
        collected.parts[message.part as usize] = Some(*message);
        if collected.parts.iter().all(Option::is_some) {
            let members =
                collected.parts.iter().flatten().flat_map(|part| part.members().collect::<Vec<u32>>()).collect();
            let first = collected.first;
            self.collecting.remove(&message.job);
            self.queue.push_back((first, members));
        }
        Ok(())
    }

    fn acknowledged(&mut self, message: &Message) -> Result<(), Refused> {
        let of = self
            .sent
            .iter()
            .position(|sent| message.from == Place::Switch(sent.switch) && message.number == sent.message.number);
        let sent = self.sent.swap_remove(of.ok_or(Refused::Stale)?);
        match sent.change {
            _ if message.verb == Verb::NoRoom => self.fail(Reason::TableFull),
            Change::Write(_) => self.counts.written += 1,
            Change::Erase(id) => {
                self.counts.erased += 1;
                self.book.remove(sent.switch, id);
            }
        }
        Ok(())
    }

    /// The trees that are being written will not be.
    fn fail(&mut self, why: Reason) {
        if let Some(work) = &mut self.work {
            work.reason.get_or_insert(why);
            work.orders.clear();
        }
    }

    // ----------------------------------------------------------------------------------------------------- work

    /// What time and acknowledgements bring about.
    pub fn act(&mut self, now: Cycle, out: &mut Vec<Message>) {
        loop {
            if self.work.is_none() {
                let Some((request, members)) = self.queue.pop_front() else { return };
                self.counts.requests += u64::from(request.verb == Verb::Ask);
                self.work = Some(ActiveRequest {
                    request,
                    members,
                    phase: Phase::Computing,
                    until: now + self.cfg.compute_cycles,
                    orders: VecDeque::new(),
                    trees: Vec::new(),
                    reason: None,
                });
            }
            self.give_up(now, out);
            let Some(work) = &self.work else { return };
            match work.phase {
                Phase::Computing if now >= work.until => self.erase_old(),
                Phase::Computing => return,
                _ => {
                    self.order(now, out);
                    let Some(work) = &self.work else { return };
                    if !(work.orders.is_empty() && self.sent.is_empty()) {
                        return;
                    }
                    match (work.phase, work.reason) {
                        (Phase::Erasing, _) if work.request.verb == Verb::Ask => self.lay(),
                        (Phase::Writing, Some(_)) => self.undo(),
                        _ => self.answer(out),
                    }
                }
            }
        }
    }

    /// The entries of the tree that is changed or deleted.
    fn erase_old(&mut self) {
        let Some(work) = &mut self.work else { return };
        let old = if work.request.verb == Verb::Ask { work.request.changes } else { Some(work.request.job) };
        let old = old.and_then(|job| self.trees.remove(&job)).unwrap_or_default();
        work.phase = Phase::Erasing;
        work.orders = erasing(&old);
    }

    /// Lays the tree, and notes the entries to write.
    fn lay(&mut self) {
        let Some(mut work) = self.work.take() else { return };
        work.phase = Phase::Writing;
        let place = |end: &u32| self.ends.get(*end as usize).copied();
        let mut places: Vec<EndPlace> = work.members.iter().filter_map(place).collect();
        let owner = Owner { root: work.request.root, keys: work.request.keys };
        let laid = if places.is_empty() {
            Err(Refusal::Alone)
        } else {
            let root = places.remove(0);
            self.agent.planned(root, &places, work.request.redundant)
        };
        let first = laid.and_then(|(first, second)| self.install(&first, owner).map(|id| (id, first, second)));
        match first {
            Err(refusal) => work.reason = Some(Reason::from(&refusal)),
            Ok((id, first, second)) => {
                work.trees.push((id, first));
                // Without a second one there is one tree.
                if let Some(second) = second
                    && let Ok(id) = self.install(&second, owner)
                {
                    work.trees.push((id, second));
                }
            }
        }
        for (id, tree) in &work.trees {
            let entry = |switch| self.book.entry(switch, *id).map(|entry| (switch, Change::Write(*entry)));
            work.orders.extend(tree.switches().filter_map(entry));
        }
        self.work = Some(work);
    }

    fn install(&mut self, tree: &SpanningTree, owner: Owner) -> Result<u16, Refusal> {
        let Keys { vni, cookie } = owner.keys;
        let had = &self.keys;
        let fresh = |id: u16| had.get(&id).is_none_or(|keys| !keys.contains(&(vni, cookie)));
        let id = self.agent.install_under(&mut self.book, tree, owner, fresh)?;
        self.keys.entry(id).or_default().insert((vni, cookie));
        Ok(id)
    }

    /// Erases what was written of trees that will not be.
    fn undo(&mut self) {
        let Some(work) = &mut self.work else { return };
        work.phase = Phase::Undoing;
        work.orders = erasing(&std::mem::take(&mut work.trees));
    }

    /// Sends orders, one a switch at a time.
    fn order(&mut self, now: Cycle, out: &mut Vec<Message>) {
        let Some(work) = &mut self.work else { return };
        let mut later = VecDeque::new();
        while self.sent.len() < self.cfg.window as usize {
            let Some((switch, change)) = work.orders.pop_front() else { break };
            if self.sent.iter().any(|sent| sent.switch == switch) {
                later.push_back((switch, change));
                continue;
            }
            self.number += 1;
            let message = Message::new(Place::Switch(switch), Place::End(self.source), Verb::Write, work.request.job);
            let message = Message { number: self.number, ..message.with_change(&change) };
            out.push(message);
            self.sent.push(Sent { switch, change, message, deadline: now + self.cfg.write_timeout, attempts: 1 });
        }
        later.append(&mut work.orders);
        work.orders = later;
    }

    /// Sends orders again that were not acknowledged in time, and gives up those that were sent often enough.
    fn give_up(&mut self, now: Cycle, out: &mut Vec<Message>) {
        let mut silent = false;
        let mut at = 0;
        while at < self.sent.len() {
            let sent = &mut self.sent[at];
            if sent.deadline > now {
                at += 1;
            } else if sent.attempts < self.cfg.write_attempts {
                sent.attempts += 1;
                sent.deadline = now + self.cfg.write_timeout;
                out.push(sent.message);
                self.counts.resent += 1;
                at += 1;
            } else {
                self.counts.given_up += 1;
                silent |= matches!(sent.change, Change::Write(_));
                self.sent.remove(at);
            }
        }
        if silent {
            self.fail(Reason::Silent);
        }
    }

    /// The request is done with.
    fn answer(&mut self, out: &mut Vec<Message>) {
        let Some(work) = self.work.take() else { return };
        let Message { job, number, changes, from, verb, .. } = work.request;
        let (verb, reason) = match (verb, work.reason) {
            (Verb::Delete, _) => (Verb::Deleted, Reason::None),
            (_, Some(reason)) => (Verb::Refused, reason),
            _ => (Verb::Granted, Reason::None),
        };
        match verb {
            Verb::Deleted => self.counts.deleted += 1,
            Verb::Refused => self.counts.refused += 1,
            _ => {
                self.counts.granted += 1;
                self.counts.changed += u64::from(changes.is_some());
            }
        }
        let mut answer = Message { reason, number, ..Message::new(from, Place::End(self.source), verb, job) };
        for (slot, (id, _)) in answer.ids.iter_mut().zip(&work.trees) {
            *slot = *id;
        }
        if !work.trees.is_empty() {
            self.trees.insert(job, work.trees);
        }
        self.answered.insert(job, answer);
        out.push(answer);
    }

    /// When to act again if nothing comes.
    pub fn next_wake(&self) -> Wake {
        let computing = self.work.as_ref().filter(|work| work.phase == Phase::Computing).map(|work| work.until);
        let due = self.sent.iter().map(|sent| sent.deadline).chain(computing).min();
        due.map_or(Wake::OnInput, Wake::At)
    }

    /// Describes it to a wave.
    pub fn probe(&self, scope: &mut Scope<'_>) {
        let phase = self.work.as_ref().map_or(0, |work| work.phase as u64);
        scope.state("state", &STATES, phase);
        scope.bits("queue", 16, self.queue.len() as u64);
        scope.bits("under_way", 16, self.sent.len() as u64);
        scope.bits("written", 32, self.counts.written);
        scope.bits("erased", 32, self.counts.erased);
        scope.bits("resent", 32, self.counts.resent);
    }
}

/// Orders that erase the entries of trees.
fn erasing(trees: &[(u16, SpanningTree)]) -> VecDeque<(u32, Change)> {
    let of = |(id, tree): &(u16, SpanningTree)| {
        let id = *id;
        tree.switches().map(move |switch| (switch, Change::Erase(id))).collect::<Vec<_>>()
    };
    trees.iter().flat_map(of).collect()
}
