//! A node: an end device that does its task and sends its contribution; one of the nodes is the source of a collective (B-EP-1).
//!
//! ```text
//!   command ─▶ WORKING ─ task time ─▶ contribution ─▶ MET ─ satisfied ─▶ DONE
//! ```
//!
//! | parameter | unit | effect |
//! |---|---|---|
//! | [`TaskTime`] | cycles | from the last flit of what starts the task (for the source: the first flit of its own command) to the cycle in which the contribution can be sent |
//! | `blocks` | | between contribution and satisfied the node starts no task of another context (paragraph 223) |
//!
//! A node takes a flit a cycle and sends one; a frame is handled in the cycle of its tail, and a frame that answers it
//! can start in the same cycle. The requester of what started a task is stored, and the contribution goes to it
//! (paragraph 97). A retry is answered with the contribution again, if it was made; to a node that got no command it is
//! one. A node whose answer does not come asks for it, and a source repeats its command; after a set number of times
//! they give up, which is an outcome too (B-ERR-1).
//!
//! A node accepts frames about a context only from the devices that its part [heeds](Part::heeds): its own engine and, at a
//! source, the engines of the tree. It accepts a result without an error only in the run in which it waits with its contribution
//! made. All other frames change nothing and are [counted](Node::refused): poisoned, damaged and undecodable frames, frames of
//! other senders, messages that are not for end devices. A node sends no error messages *\[chosen\]*.
//!
//! Recovery: a command that comes again while the answer is awaited is answered with the contribution again; a
//! multicast that comes again is acknowledged again, and kept once. If an engine reports that it does not know a
//! context, the source repeats the frames that set it up, and the command, up to its number of retries. When it gives
//! up it closes the run at the master engine, which ends it for all others (*\[chosen\]*: [`Control::Close`]).
//!
//! A source may merge the responses itself: see [`gather`](super::gather). Where a mean is asked for, each node divides the sum by the number of
//! participants when it has it ([`arith::divider`](watershed_arith::divider)).
//!
//! A task may fail: then a failure message goes out at its end instead of the contribution (B-PKT-6).
//!
//! In an [inter-group barrier](super::ce) the answer may be there before the contribution is made; then the node goes on with
//! its contribution.
//!
//! A source works through a script: frames with the condition on which each is sent.
//!
//! **Where frames wait.** A node sends a flit a cycle; its frames wait in one outbox, in the order in which they were
//! made. The outbox has no bound, because it is no queue of the device: a frame in it represents a descriptor in the
//! host's memory that the device has not fetched yet. It holds the frames of software and at most one answer for each
//! received frame. A device that stopped taking frames while its outbox is full could make two of them wait for each
//! other *\[chosen\]*. Queues in switches, links and engines all have bounds.
//!
//! ```
//! use watershed_arith::{DType, Op};
//! use watershed_pbv::node::{Node, Part, TaskTime};
//! use watershed_pbv::packet::{Header, Message, Packet};
//! use watershed_pbv::plan::{Branch, Collective, tables};
//!
//! // A sum of one word over the nodes 1 and 2, by the engine of switch 0.
//! let collective = Collective::all_reduce(0, 1, Branch::leaf(0, [1, 2]), Op::Sum, DType::I64, 1);
//! let tables = tables(std::slice::from_ref(&collective)).unwrap();
//! let mut node = Node::new(2);
//! node.join(Part::of(collective.like(2, &tables), vec![42], TaskTime::Fixed(30)));
//! // The engine's command comes in cycle 10; the task takes 30 cycles.
//! let command = Packet::bare(Header { device: 2, requester: 0, offset: 0, ..collective.command(1).header });
//! let mut sent = Vec::new();
//! for now in 0..100 {
//!     if now == 10 {
//!         node.receive(&command.flits().unwrap(), now);
//!     }
//!     node.step(now);
//!     while let Some((header, words)) = node.next_frame(now) {
//!         sent.push((now, header.message, Packet::from_flits(&words).unwrap().words().to_vec()));
//!     }
//! }
//! assert_eq!(sent, [(40, Message::Contribution, vec![42])]);
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::hash::Hasher;

use super::event::{Event, Log, StepKind};
use super::gather::Gather;
use super::packet::{Body, Control, Groups, Header, Message, Packet, Status};
use super::routes::{Directory, send_flit, whole};
use watershed_arith::Flags;
use watershed_fabric::{Block, FlitSize, Io, Reassembly};
use watershed_kernel::{Cycle, Digest, Rng, Wake};
use watershed_probe::Scope;

mod calls;
mod part;
mod receive;
mod running;
mod watch;

pub use part::{Part, TaskTime};
pub use running::{Outcome, PartState};

use running::{Running, STATES};

/// When a frame of a script is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum SendCondition {
    /// As soon as the frame before has left.
    Next,
    /// From this cycle on.
    At(Cycle),
    /// When this many runs of a context were satisfied here.
    Satisfied(u16, u32),
    /// When all groups of an inter-group barrier have arrived in a run, and this node has gone on.
    Arrived(Groups, u32),
    /// When this many frames that are no satisfied message were received here (read replies, errors, multicasts).
    Received(usize),
}

/// A frame on its way out.
#[derive(Clone, Debug, watershed_state::Saved)]
struct OutgoingFrame {
    packet: Packet,
    words: Vec<u64>,
    sent: usize,
    /// It is a stranger's: it begins nothing here.
    strange: bool,
}

/// An end device.
#[derive(Clone, Debug, watershed_state::Saved)]
pub struct Node {
    device: u16,
    parts: Vec<Running>,
    /// Frames that wait for their condition: those of one lane go one after the other, lanes go beside each other.
    scripts: Vec<VecDeque<(SendCondition, Packet)>>,
    outbox: VecDeque<Packet>,
    /// Frames that are not this node's to send, and when they are sent.
    strange: VecDeque<(Cycle, Packet)>,
    leaving: Option<OutgoingFrame>,
    collecting: Reassembly,
    rng: Option<Rng>,
    /// Frames that changed nothing, by status.
    refused: [u32; 16],
    /// The last run of every multicast that came.
    casts: BTreeMap<u16, u32>,
    /// Frames that concern no task: read replies, errors, multicasts.
    mail: Vec<(Cycle, Packet)>,
    /// Runs that have ended in this cycle.
    ended: u32,
    /// When time brings something about next, if it is known: whatever changes a part forgets it.
    soonest: Option<Cycle>,
    /// What it received and sent.
    pub log: Log,
}

impl Node {
    /// A node with nothing to do.
    pub fn new(device: u16) -> Node {
        Node {
            device,
            parts: Vec::new(),
            scripts: Vec::new(),
            outbox: VecDeque::new(),
            strange: VecDeque::new(),
            leaving: None,
            collecting: Reassembly::default(),
            rng: None,
            refused: [0; 16],
            casts: BTreeMap::new(),
            mail: Vec::new(),
            ended: 0,
            soonest: None,
            log: Log::default(),
        }
    }

    /// Its device ID.
    pub fn device(&self) -> u16 {
        self.device
    }

    /// Gives it a part in a context.
    pub fn join(&mut self, part: Part) {
        self.soonest = None;
        self.parts.push(Running {
            part,
            state: PartState::Idle,
            until: 0,
            run: 0,
            started: 0,
            outcomes: Vec::new(),
            command: None,
            released: None,
            arrived: None,
            alarm: None,
            asked: 0,
            made: Vec::new(),
            set_up_due: None,
            set_up_at: 0,
            set_ups: 0,
            called: 0,
        });
    }

    /// Its part in a context.
    pub fn part_mut(&mut self, cc_id: u16) -> Option<&mut Part> {
        self.soonest = None;
        self.parts.iter_mut().map(|running| &mut running.part).find(|part| part.cc_id == cc_id)
    }

    /// Appends to its script.
    pub fn then(&mut self, when: SendCondition, packet: Packet) {
        self.then_in(0, when, packet);
    }

    /// Appends to the lane of its script with this number; lower lanes go first.
    pub fn then_in(&mut self, lane: usize, when: SendCondition, packet: Packet) {
        if self.scripts.len() <= lane {
            self.scripts.resize_with(lane + 1, VecDeque::new);
        }
        self.scripts[lane].push_back((when, packet));
    }

    /// Sends a frame that is not its to send, in the order of cycles: a stranger's. It goes behind all others.
    pub fn disturb(&mut self, cycle: Cycle, packet: Packet) {
        let at = self.strange.partition_point(|&(other, _)| other <= cycle);
        self.strange.insert(at, (cycle, packet));
    }

    /// What it merges of a context, if it does.
    pub fn gather(&self, cc_id: u16) -> Option<&Gather> {
        self.parts.iter().find(|running| running.part.cc_id == cc_id)?.part.gather.as_ref()
    }

    /// Frames that have not been sent because their condition has not come.
    pub fn unsent(&self) -> usize {
        self.scripts.iter().map(VecDeque::len).sum::<usize>() + self.strange.len()
    }

    /// What its runs of a context came to.
    pub fn outcomes(&self, cc_id: u16) -> &[Outcome] {
        self.parts.iter().find(|running| running.part.cc_id == cc_id).map_or(&[], |running| &running.outcomes)
    }

    /// Runs of a context in which it made its contribution, or said that it fails, and when.
    pub fn made(&self, cc_id: u16) -> &[(u32, Cycle)] {
        self.parts.iter().find(|running| running.part.cc_id == cc_id).map_or(&[], |running| &running.made)
    }

    /// Frames that changed nothing, by number of the status that says why.
    pub fn refused(&self) -> &[u32; 16] {
        &self.refused
    }

    /// Whether it still waits for an answer of a context, as a source that takes no part does too.
    pub fn waits(&self, cc_id: u16) -> bool {
        let running = self.parts.iter().find(|running| running.part.cc_id == cc_id);
        running.is_some_and(|running| running.state != PartState::Idle || running.command.is_some())
    }

    /// Whether all of a group have arrived in a run, and this node has gone on.
    fn has_arrived(&self, cc_id: u16, run: u32) -> bool {
        let running = self.parts.iter().find(|running| running.part.cc_id == cc_id);
        running.is_some_and(|running| {
            running.arrived.is_some_and(|arrived| arrived.wrapping_sub(run) as i32 >= 0) && !running.is_news(run)
        })
    }

    /// State of its part in a context.
    pub fn state(&self, cc_id: u16) -> Option<PartState> {
        self.parts.iter().find(|running| running.part.cc_id == cc_id).map(|running| running.state)
    }

    /// Frames it got that concern no task, with the cycle of their last flit.
    pub fn mail(&self) -> &[(Cycle, Packet)] {
        &self.mail
    }

    // -------------------------------------------------------------------------------------------------------- tasks

    fn is_blocked(&self) -> bool {
        self.parts.iter().any(Running::blocks_others)
    }

    /// The contexts that keep a part from beginning, by its context: in each the node has begun and not gone on.
    pub fn blocked(&self) -> impl Iterator<Item = (u16, u16)> + '_ {
        let waits = self.parts.iter().filter(|running| running.state == PartState::Waits && running.part.blocks);
        waits.flat_map(|waiting| {
            let works = self.parts.iter().filter(|running| running.blocks_others());
            works.map(|running| (waiting.part.cc_id, running.part.cc_id))
        })
    }

    /// Asks for a part's task; it starts when nothing blocks it.
    fn ask(&mut self, at: usize, run: u32, now: Cycle) {
        self.parts[at].run = run;
        self.parts[at].state = PartState::Waits;
        self.start(now);
    }

    fn start(&mut self, now: Cycle) {
        for at in 0..self.parts.len() {
            if self.parts[at].state != PartState::Waits || self.parts[at].part.blocks && self.is_blocked() {
                continue;
            }
            let running = &mut self.parts[at];
            let time = match &running.part.task {
                TaskTime::Fixed(cycles) => *cycles,
                TaskTime::Uniform { from, to, seed } => {
                    let rng = self.rng.get_or_insert_with(|| Rng::new(*seed, u64::from(self.device)));
                    from + rng.below(to.saturating_sub(*from) + 1)
                }
                TaskTime::Trace(times) => times.get(running.started as usize).or(times.last()).copied().unwrap_or(0),
                TaskTime::Called if running.run <= running.called => 0,
                TaskTime::Never | TaskTime::Called => Cycle::MAX - now,
            };
            running.started += 1;
            running.state = PartState::Working;
            running.until = now + time;
            let task = Header { run: running.run, ..running.part.like };
            self.log.step(now, StepKind::Began, &task);
        }
    }

    fn contribution(&self, at: usize) -> Packet {
        let running = &self.parts[at];
        let header = Header {
            message: Message::Contribution,
            requester: self.device,
            run: running.run,
            tag: 0,
            posted: false,
            ..running.part.like
        };
        if running.part.fails.contains(&running.run) {
            let (message, status) = (Message::Failure, Status::Failed);
            return Packet::bare(Header { message, status, error: true, ..header });
        }
        Packet::of(header, running.part.operand(running.run).to_vec())
    }

    // ------------------------------------------------------------------------------------------------------- frames

    fn refuse(&mut self, status: Status) {
        self.refused[usize::from(status.number())] += 1;
    }

    /// The contribution once more.
    fn repeat(&mut self, at: usize, now: Cycle) {
        let packet = self.contribution(at);
        self.log.step(now, StepKind::Repeated, &packet.header);
        self.outbox.push_back(packet);
    }

    /// Sends the results whose last response is merged.
    fn merge(&mut self, now: Cycle) {
        for at in 0..self.parts.len() {
            let running = &mut self.parts[at];
            let Some(gather) = &mut running.part.gather else { continue };
            if gather.due().is_none_or(|due| due > now) {
                continue;
            }
            let like = Header { requester: self.device, ..running.part.like };
            let packet = gather.finish(&like);
            let header = packet.header;
            if running.part.watches && running.is_news(header.run) {
                let (words, flags) = running.part.kept(packet.words(), header.flags);
                let error = header.error.then_some(header.status);
                running.end(Outcome { run: header.run, met: now, cycle: now, words, flags, error });
                self.ended += 1;
            }
            self.log.step(now, StepKind::Merged, &header);
            self.outbox.push_back(packet);
        }
    }

    /// A run begins, if it is none that is under way or over; one that was never answered ends with that.
    fn begin(&mut self, at: usize, run: u32, now: Cycle) {
        let running = &mut self.parts[at];
        let under_way = running.state != PartState::Idle;
        let beyond = running.part.last_run > 0 && run > running.part.last_run;
        if running.part.watches || beyond || !running.is_news(run) || under_way && running.run == run {
            return;
        }
        if under_way {
            running.give_up(Status::TimedOut, now);
        }
        self.ask(at, run, now);
    }

    /// A run is over: the next one begins, where contexts are armed again.
    fn begin_next_run(&mut self, at: usize, run: u32, now: Cycle) {
        let part = &self.parts[at].part;
        if run < part.last_run && !part.watches {
            self.ask(at, run + 1, now);
        }
    }

    /// Asks its engine for the answer.
    fn ask_for_answer(&mut self, at: usize, now: Cycle) {
        let mut header = self.contribution(at).header;
        (header.message, header.error, header.status) = (Message::Retry, false, Status::Ok);
        self.log.step(now, StepKind::Asked, &header);
        self.outbox.push_back(Packet::bare(header));
    }

    /// Gives a run up. A source tells the master engine, which ends it for all.
    fn abandon(&mut self, at: usize, status: Status, now: Cycle) {
        let running = &mut self.parts[at];
        let run = running.command.as_ref().map_or(running.run, |command| command.header.run);
        let close = running.command.take().map(|command| Header {
            message: Message::Control,
            control: Control::Close,
            op: watershed_arith::Op::Barrier,
            status,
            error: true,
            ..command.header
        });
        if close.is_some() {
            (running.run, running.arrived) = (run, Some(run));
        }
        running.give_up(status, now);
        self.outbox.extend(close.map(Packet::bare));
        self.begin_next_run(at, run, now);
        self.start(now);
    }

    /// An engine of the tree could not take part in the set-up, or knows nothing of it.
    fn hear_of_set_up(&mut self, at: usize, header: &Header, now: Cycle) {
        let running = &mut self.parts[at];
        if running.part.set_up.is_empty() || !header.is_about_set_up() {
            return;
        }
        let tried = running.set_ups >= running.part.asks;
        if header.status == Status::StoreFull || tried {
            // Sending it again makes no room.
            if running.command.is_some() {
                self.abandon(at, header.status, now);
            }
            return;
        }
        let due = if running.set_ups == 0 { now } else { now.max(running.set_up_at + running.part.set_up_cycles) };
        running.set_up_due.get_or_insert(due);
    }

    /// Sets the context up again, and sends the command that was for nothing.
    fn set_up_again(&mut self, at: usize, now: Cycle) {
        let running = &mut self.parts[at];
        (running.set_up_due, running.set_up_at) = (None, now);
        running.set_ups += 1;
        for packet in running.part.set_up.iter().chain(&running.command) {
            self.log.step(now, StepKind::Asked, &packet.header);
            self.outbox.push_back(packet.clone());
        }
        if running.command.as_ref().is_some_and(|command| running.has_met(command.header.run)) {
            // It is sent no command of its own.
            self.repeat(at, now);
        }
    }

    /// Asks again for answers that do not come, and gives up in the end.
    fn watch(&mut self, now: Cycle) {
        for at in 0..self.parts.len() {
            if self.parts[at].set_up_due.is_some_and(|due| due <= now) {
                self.set_up_again(at, now);
            }
            let running = &mut self.parts[at];
            if running.alarm.is_none_or(|alarm| alarm > now) {
                continue;
            }
            if running.asked >= running.part.asks {
                self.abandon(at, Status::TimedOut, now);
                continue;
            }
            running.asked += 1;
            running.alarm = Some(now + running.part.patience);
            let command = running.command.clone();
            if self.parts[at].state == PartState::Met {
                self.ask_for_answer(at, now);
            }
            if let Some(command) = &command {
                self.log.step(now, StepKind::Asked, &command.header);
            }
            self.outbox.extend(command);
        }
    }

    /// What time brings about: contributions are made, answers asked for.
    pub fn step(&mut self, now: Cycle) {
        if self.soonest() > now {
            return;
        }
        self.soonest = None;
        self.work(now);
        self.merge(now);
        self.watch(now);
    }

    fn work(&mut self, now: Cycle) {
        for at in 0..self.parts.len() {
            if self.parts[at].state == PartState::Working && self.parts[at].until <= now {
                let running = &mut self.parts[at];
                running.state = PartState::Met;
                running.made.push((running.run, now));
                running.wait(now);
                if let Some((run, error)) = running.released.take().filter(|&(run, _)| run == running.run) {
                    let (met, words, flags) = (running.until, Vec::new(), Flags::NONE);
                    running.end(Outcome { run, met, cycle: now, words, flags, error });
                    self.ended += 1;
                }
                let packet = self.contribution(at);
                self.log.step(now, StepKind::Made, &packet.header);
                self.outbox.push_back(packet);
                self.start(now);
            }
        }
    }

    /// The lowest lane of the script whose next frame can go.
    fn script_ready(&self, now: Cycle) -> Option<usize> {
        self.scripts.iter().position(|lane| match lane.front() {
            None => false,
            Some((SendCondition::Next, _)) => true,
            Some((SendCondition::At(cycle), _)) => *cycle <= now,
            Some((SendCondition::Satisfied(cc_id, runs), _)) => self.outcomes(*cc_id).len() as u32 >= *runs,
            Some((SendCondition::Arrived(groups, run), _)) => {
                groups.contexts().all(|cc_id| self.has_arrived(cc_id, *run))
            }
            Some((SendCondition::Received(count), _)) => self.mail.len() >= *count,
        })
    }

    /// When time brings something about next: a task ends, a patience, the set-up is sent again.
    pub fn due(&self) -> Option<Cycle> {
        let mut due = Cycle::MAX;
        for running in &self.parts {
            if running.state == PartState::Working {
                due = due.min(running.until);
            }
            let merged = running.part.gather.as_ref().and_then(Gather::due);
            for alarm in [running.alarm, running.set_up_due, merged] {
                due = due.min(alarm.unwrap_or(Cycle::MAX));
            }
        }
        (due < Cycle::MAX).then_some(due)
    }

    /// The same, found once; the last of all cycles if there is nothing.
    fn soonest(&mut self) -> Cycle {
        debug_assert!(self.soonest.is_none_or(|known| known == self.due().unwrap_or(Cycle::MAX)), "a part has changed");
        let soonest = self.soonest.or_else(|| self.due()).unwrap_or(Cycle::MAX);
        self.soonest = Some(soonest);
        soonest
    }

    /// The next frame that it sends, whole: for callers without a link.
    pub fn next_frame(&mut self, now: Cycle) -> Option<(Header, Vec<u64>)> {
        self.choose(now);
        let OutgoingFrame { packet, words, strange, .. } = self.leaving.take()?;
        self.sends(&packet, strange, now);
        Some((packet.header, words))
    }

    /// Takes into a hash what decides what it does next; see [`Digest`].
    pub fn digest(&self, to: &mut impl Hasher) {
        let to = &mut Digest(to);
        for running in &self.parts {
            let Running { part, state, run, started, command, released, arrived, alarm, asked, set_ups, .. } = running;
            to.of((state, run, started, command, released, arrived, alarm.is_some(), asked, set_ups));
            to.of((&part.like, &part.heeds, &part.gather, running.set_up_due.is_some()));
            to.of(running.outcomes.iter().map(|end| (end.run, &end.words, end.flags, end.error)).collect::<Vec<_>>());
            to.of(running.made.iter().map(|&(run, _)| run).collect::<Vec<_>>());
        }
        to.of(self.scripts.iter().map(VecDeque::len).collect::<Vec<_>>());
        to.of((&self.outbox, self.strange.len(), &self.casts));
    }

    /// Puts the next frame to be sent into its place.
    fn choose(&mut self, now: Cycle) {
        if self.leaving.is_none() {
            let own = self.outbox.pop_front().or_else(|| {
                let lane = self.script_ready(now)?;
                self.scripts[lane].pop_front().map(|(_, packet)| packet)
            });
            let strange = own.is_none();
            let due = strange && self.strange.front().is_some_and(|&(cycle, _)| cycle <= now);
            let next = if due { self.strange.pop_front().map(|(_, packet)| packet) } else { own };
            if let Some(packet) = next {
                let words = packet.flits().expect("frames of nodes are checked when they are planned");
                self.leaving = Some(OutgoingFrame { packet, words, sent: 0, strange });
            }
        }
    }

    fn send(&mut self, io: &mut Io<'_>, cut: FlitSize) {
        let now = io.now();
        let vc = io.vcs().set;
        self.choose(now);
        let Some(OutgoingFrame { packet, words, sent, strange }) = &mut self.leaving else { return };
        let strange = *strange;
        let free = if *sent == 0 { io.can_start(0, vc) } else { io.can_send(0, vc) };
        if !free {
            return;
        }
        let first = (*sent == 0).then(|| packet.clone());
        let last = send_flit(io, (0, cut), &packet.header, *sent, words);
        *sent += 1;
        if last {
            self.leaving = None;
        }
        if let Some(packet) = first {
            self.sends(&packet, strange, now);
        }
    }

    /// A frame leaves.
    fn sends(&mut self, packet: &Packet, strange: bool, now: Cycle) {
        self.soonest = None;
        let header = packet.header;
        let own = header.dmu_id == self.device && !strange;
        self.log.note(Event::sent(now, &header));
        // The source is not sent its own command; its task starts with it.
        let begins = self
            .parts
            .iter()
            .position(|running| running.part.cc_id == header.cc_id && header.message == running.part.starts_on && own);
        if let Some(at) = begins {
            self.begin(at, header.run, now);
        }
        // What asks for an answer is kept: a command, a multicast that is to be acknowledged.
        if !own || !matches!(header.message, Message::Command | Message::Multicast) || header.posted {
            return;
        }
        let running = self.parts.iter_mut().find(|running| running.part.cc_id == header.cc_id);
        let recovers = |running: &&mut Running| {
            (running.part.patience > 0 || !running.part.set_up.is_empty()) && running.is_news(header.run)
        };
        // One that waited behind another frame may be answered by now, and one that is kept may be of the run before.
        let since = |run: u32| header.run.wrapping_sub(run) as i32;
        let waits = |running: &&mut Running| {
            let kept = running.command.as_ref().map(|command| command.header.run);
            running.arrived.is_none_or(|arrived| since(arrived) > 0) && kept.is_none_or(|kept| since(kept) > 0)
        };
        if let Some(running) = running.filter(recovers).filter(waits) {
            running.command = Some(packet.clone());
            (running.run, running.set_ups) = (header.run, 0);
            running.wait(now);
        }
    }
}

impl Block for Node {
    type Tables = Directory;

    fn tick(&mut self, io: &mut Io<'_>, directory: &Directory) -> Wake {
        let now = io.now();
        let vcs = io.vcs();
        let vc = vcs.set;
        if io.head(0, vc).is_some() {
            let cut = directory.cut;
            let flit = io.take_wide(0, vc);
            self.collecting.push(cut, flit.flit.word, &flit.more);
            if flit.flit.tag.tail() {
                let pieces = std::mem::take(&mut self.collecting);
                self.receive(&whole(cut, &pieces), now);
            }
        }
        self.step(now);
        self.send(io, directory.cut);
        for _ in 0..std::mem::take(&mut self.ended) {
            io.complete();
        }
        let mut wake = Wake::OnInput;
        if io.queued(0, vc) > 0 || self.leaving.is_some() || !self.outbox.is_empty() || self.script_ready(now).is_some()
        {
            return Wake::Next;
        }
        if let Some((cycle, _)) = self.strange.front() {
            wake = wake.or(Wake::At((*cycle).max(now + 1)));
        }
        for lane in &self.scripts {
            if let Some((SendCondition::At(cycle), _)) = lane.front() {
                wake = wake.or(Wake::At(*cycle));
            }
        }
        match self.soonest() {
            Cycle::MAX => wake,
            cycle => wake.or(Wake::At(cycle.max(now + 1))),
        }
    }

    fn open(&self) -> Option<String> {
        let part = self.parts.iter().find(|running| running.state != PartState::Idle)?;
        let what = match part.state {
            PartState::Idle | PartState::Waits => "waits to start its task",
            PartState::Working => "works on its task",
            PartState::Met => "waits to be told that all have met",
        };
        Some(format!("device {:#06x} {what} of context {:#05x}", self.device, part.part.cc_id))
    }

    fn probe(&self, scope: &mut Scope<'_>) {
        scope.bits("outbox", 8, self.outbox.len() as u64);
        for (number, running) in self.parts.iter().enumerate() {
            scope.indexed("part", number, |scope| {
                scope.state("state", &STATES, running.state as u64);
                scope.bits("run", 32, u64::from(running.run));
                scope.bits("satisfied", 32, running.outcomes.len() as u64);
            });
        }
    }
}

/// Who was reported missing in frames that a node got.
pub fn missing(node: &Node) -> Vec<u16> {
    let lists = node.mail.iter().filter_map(|(_, packet)| match &packet.body {
        Body::Missing { devices, .. } => Some(devices.clone()),
        _ => None,
    });
    lists.flatten().collect()
}
