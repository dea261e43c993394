//! The critical path of a run of the PBV family: from the last participant that got the answer back to the command.
//!
//! Frames are followed flit by flit (`hops`); the actions of engines and nodes are read from their logs. An engine
//! answered because the last message came, was tracked and reduced, or because its watchdog fired; it passed frames on
//! in the cycle in which it took them. A node contributed because its task was over or because it was asked again.

use super::hops::{Hops, InlineBlocks, Origin, QueuedFlit};
use super::{Kind, LastOperand, Path, Phase, Why, WhyQuery};
use crate::pbv::build::PbvBuild;
use crate::run::system::PbvSystem as System;
use watershed_fabric::NodeKind;
use watershed_pbv::event::{Event, Log, StepKind, WorkStep};
use watershed_pbv::packet::{Message, Status};
use watershed_pbv::system::WireBlock;

/// Cycles from taking a message to its verdict.
const TRACKING: u64 = 2;

/// A run whose answer all participants have.
#[derive(Clone, Copy, Debug)]
pub struct CompletedRun {
    /// Which run.
    pub run: u32,
    /// Device that had the answer last.
    pub device: u16,
    /// When.
    pub cycle: u64,
    /// When the last contribution was made.
    pub met: u64,
}

/// A collective and the runs of it that can be explained.
#[derive(Clone, Debug)]
pub struct CollectiveRuns {
    /// Its name.
    pub name: String,
    /// Its context.
    pub cc_id: u16,
    /// Device that issues it.
    pub source: u16,
    /// Its runs.
    pub ended: Vec<CompletedRun>,
}

struct InlineEngines<'a> {
    system: &'a System,
    switches: u32,
}

impl<'a> InlineEngines<'a> {
    fn bump(&self, node: u32) -> Option<&'a WireBlock> {
        self.system.bump(node.checked_sub(self.switches)? as usize)
    }
}

impl InlineBlocks for InlineEngines<'_> {
    fn passes(&self, node: u32, _: u16, _: u8, same_cycle: bool) -> bool {
        // What an engine lets pass is taken and sent in one cycle; a frame of its own is not taken at all.
        same_cycle || self.bump(node).is_some_and(|bump| bump.fault().is_some())
    }

    fn waits(&self, node: u32) -> Kind {
        if self.bump(node).is_some_and(|bump| bump.fault().is_some()) { Kind::HeldUp } else { Kind::Arbitration }
    }
}

struct Reader<'a> {
    ready: &'a PbvBuild<()>,
    system: &'a System,
    hops: Hops<'a>,
    wires: InlineEngines<'a>,
    first_end: u32,
    cc_id: u16,
    run: u32,
}

/// Explains the slowest run of every collective that is asked for, or the run that is asked for.
pub fn explain(
    system: &System,
    ready: &PbvBuild<()>,
    collectives: &[CollectiveRuns],
    ask: WhyQuery<'_>,
    notes: &mut Vec<String>,
) -> Vec<Why> {
    let mut list = Vec::new();
    for of in collectives.iter().filter(|of| ask.collective.is_none_or(|asked| asked == of.name)) {
        match collective(system, ready, of, ask) {
            Ok(why) => list.push(why),
            Err(wrong) => notes.push(format!("{}: {wrong}", of.name)),
        }
    }
    list
}

fn collective(system: &System, ready: &PbvBuild<()>, of: &CollectiveRuns, ask: WhyQuery<'_>) -> Result<Why, String> {
    let wanted = of.ended.iter().filter(|ended| ask.packet.is_none_or(|asked| asked == u64::from(ended.run)));
    let slowest = wanted.max_by_key(|ended| (ended.cycle - ended.met, std::cmp::Reverse(ended.run)));
    let which = ask.packet.map_or("no run".to_owned(), |asked| format!("no run {asked}"));
    let ended = *slowest.ok_or_else(|| format!("{which} of it has ended at every participant"))?;
    let (plan, frames) = (system.plan(), system.directory().frames);
    let journal = system.journal().ok_or("no journal was kept")?;
    let reader = Reader {
        ready,
        system,
        hops: Hops::new(plan, journal, frames..frames + 1),
        wires: InlineEngines { system, switches: plan.count(NodeKind::Switch) as u32 },
        first_end: (plan.nodes.len() - plan.count(NodeKind::End)) as u32,
        cc_id: of.cc_id,
        run: ended.run,
    };
    let node = reader.end_of(ended.device).ok_or("a participant that does not exist")?;
    let start = reader.start(of.source).ok_or("a run that nobody began")?.min(ended.cycle);
    let mut path = Path::new(start, ended.cycle, Phase::Broadcast);
    reader.arrived(node, &mut path)?;
    let landed = reader.hops.name(node).to_owned();
    path.finish((&of.name, "run", u64::from(ended.run)), landed, ended.cycle, Some(ended.met))
}

/// On which leg of the way a message is.
fn phase(message: Message) -> Phase {
    match message {
        Message::Contribution | Message::Partial | Message::Failure => Phase::Climb,
        Message::Satisfied | Message::Multicast => Phase::Broadcast,
        _ => Phase::Command,
    }
}

impl<'a> Reader<'a> {
    fn end_of(&self, device: u16) -> Option<u32> {
        let at = self.ready.devices.iter().position(|&found| found == device)?;
        Some(self.first_end + at as u32)
    }

    /// The first cycle of the run: its source sent the command, or the first task began.
    fn start(&self, source: u16) -> Option<u64> {
        let node = self.end_of(source)?;
        let begins = |event: &&Event| {
            !event.received && self.is_ours(event) && matches!(event.message, Message::Command | Message::Multicast)
        };
        let commanded = self.log(node).events().iter().find(begins).map(|event| event.cycle);
        commanded.or_else(|| {
            let steps = self.system.ends().flat_map(|end| end.log.steps());
            steps.filter(|step| step.kind == StepKind::Began && self.is_step(step)).map(|step| step.cycle).min()
        })
    }

    fn is_ours(&self, event: &Event) -> bool {
        event.cc_id == self.cc_id && event.run == self.run
    }

    fn is_step(&self, step: &WorkStep) -> bool {
        step.cc_id == self.cc_id && step.run == self.run
    }

    fn log(&self, node: u32) -> &'a Log {
        match self.wires.bump(node) {
            Some(WireBlock::Engine(engine)) if node < self.first_end => &engine.log,
            _ => &self.system.end(node.saturating_sub(self.first_end) as usize).log,
        }
    }

    fn device(&self, node: u32) -> u16 {
        match self.wires.bump(node) {
            Some(WireBlock::Engine(engine)) if node < self.first_end => engine.cfg().device,
            _ => self.system.end(node.saturating_sub(self.first_end) as usize).device(),
        }
    }

    fn step(&self, node: u32, until: u64, fits: impl Fn(&WorkStep) -> bool) -> Option<&'a WorkStep> {
        self.log(node).steps().iter().rev().find(|step| step.cycle <= until && fits(step))
    }

    fn event(&self, node: u32, until: u64, fits: impl Fn(&Event) -> bool) -> Option<&'a Event> {
        self.log(node).events().iter().rev().find(|event| event.cycle <= until && fits(event))
    }

    /// A node took the last flit of a frame in cycle `path.at`.
    fn arrived(&self, node: u32, path: &mut Path) -> Result<(), String> {
        if path.is_done() {
            return Ok(());
        }
        let found = self.hops.last_departure(self.hops.base(node), path.at, |tag| tag.tail());
        let found = found.filter(|(_, left)| *left == path.at);
        if found.is_none() {
            // The answer was there before: the node went on when its own task was over.
            let made = self.step(node, path.at, |step| step.kind == StepKind::Made && step.cycle == path.at);
            path.phase = Phase::Inject;
            return self.explain_frame(node, made.ok_or("a frame that came stood in no queue")?, path);
        }
        let (queued, _) = found.ok_or("a frame that came stood in no queue")?;
        if let Some(event) = self.event(node, path.at, |event| event.received) {
            path.phase = phase(event.message);
        }
        let origin = self.hops.trace_back(queued, Kind::Landing, &self.wires, path)?;
        self.sender(&origin, path)
    }

    /// The sender of a frame whose first flit left in cycle `path.at`.
    fn sender(&self, origin: &Origin, path: &mut Path) -> Result<(), String> {
        if path.is_done() {
            return Ok(());
        }
        let node = origin.node;
        let sent = self.event(node, origin.head, |event| !event.received && event.cycle == origin.head);
        let sent = *sent.ok_or("a frame was not logged")?;
        if node >= self.first_end {
            return self.node_sent(node, &sent, path);
        }
        let queued = self.step(node, path.at, |step| {
            step.kind == StepKind::Queued
                && step.message == sent.message
                && step.cc_id == sent.cc_id
                && step.run == sent.run
        });
        let queued = queued.ok_or_else(|| format!("{} sent {sent:?} that it had not queued", self.hops.name(node)))?;
        path.prepend(queued.cycle, Kind::Queue, self.hops.name(node));
        self.engine(node, queued, path)
    }

    // --------------------------------------------------------------------------------------------------- engines

    /// A message was queued in cycle `path.at`.
    fn engine(&self, node: u32, queued: &WorkStep, path: &mut Path) -> Result<(), String> {
        if path.is_done() {
            return Ok(());
        }
        let name = self.hops.name(node);
        let ours = |step: &WorkStep| step.cc_id == queued.cc_id && step.run == queued.run;
        let is_answer = |message| matches!(message, Message::Contribution | Message::Partial | Message::Failure);
        let at_once = self.step(node, queued.cycle, |step| {
            step.kind == StepKind::Took
                && step.cycle == queued.cycle
                && step.cc_id == queued.cc_id
                && !is_answer(step.message)
                && step.message != Message::Error
                && (ours(step) || step.message == Message::Control)
        });
        if let Some(took) = at_once {
            return self.explain_intake(node, took, path);
        }
        path.phase = Phase::Reduce;
        // A group of an inter-group barrier goes on when the others are there.
        let engine = self.wires.bump(node).and_then(WireBlock::engine);
        let groups = engine.and_then(|engine| engine.ce().find(queued.cc_id)).and_then(|context| context.stored.groups);
        let groups = groups.filter(|_| queued.message == Message::Satisfied);
        let contexts: Vec<u16> = groups.map_or_else(|| vec![queued.cc_id], |groups| groups.contexts().collect());
        let answers = |step: &WorkStep| {
            step.kind == StepKind::Took
                && contexts.contains(&step.cc_id)
                && step.run == queued.run
                && is_answer(step.message)
        };
        let last = self.step(node, queued.cycle.saturating_sub(TRACKING), answers);
        let told = last.is_some_and(|last| last.status == queued.status);
        // What it took asks nobody again: a command or multicast goes on in the cycle in which it was taken.
        let again = |message| matches!(message, Message::Retry | Message::Multicast | Message::Command);
        if again(queued.message) || queued.status == Status::TimedOut && !told {
            // Its watchdog fired.
            let set = self.step(node, queued.cycle - 1, |step| ours(step) && step.kind == StepKind::Watched);
            let set = set.ok_or("a watchdog fired that was never set")?.cycle;
            path.prepend(set, Kind::TimeOut, name);
            // It was set because the engine asked for something, or because a message came.
            let then = |step: &WorkStep| ours(step) && step.cycle == set;
            let asked = self.step(node, set, |step| {
                then(step) && step.kind == StepKind::Queued && (again(step.message) || step.message == Message::Partial)
            });
            if let Some(asked) = asked {
                return self.engine(node, asked, path);
            }
            let took = self.step(node, set, |step| then(step) && step.kind == StepKind::Took);
            return self.explain_intake(node, took.ok_or("a watchdog was set without a cause")?, path);
        }
        let last = last.ok_or("an engine answered before anybody had")?;
        let others: Vec<&WorkStep> =
            self.log(node).steps().iter().filter(|step| answers(step) && step.cycle < last.cycle).collect();
        let who = |device: u16| self.ready.names.get(&device).cloned().unwrap_or_else(|| format!("{device:#06x}"));
        path.engines.push(LastOperand {
            switch: name.into(),
            from: who(last.from),
            cycle: last.cycle,
            others: others.iter().map(|step| (who(step.from), last.cycle - step.cycle)).collect(),
        });
        path.prepend(last.cycle + TRACKING, Kind::Reduce, name);
        self.explain_intake(node, last, path)
    }

    /// The collective engine took a message: back through the inbox and the way of its frame.
    fn explain_intake(&self, node: u32, took: &WorkStep, path: &mut Path) -> Result<(), String> {
        let name = self.hops.name(node);
        path.prepend(took.cycle, Kind::Engine, name);
        if path.is_done() {
            return Ok(());
        }
        let received = self.event(node, took.cycle.saturating_sub(1), |event| {
            event.received
                && event.from == took.from
                && event.message == took.message
                && event.cc_id == took.cc_id
                && event.run == took.run
        });
        let received = received.ok_or("an engine took what had not come")?;
        path.prepend(received.cycle + 1, Kind::EngineWait, name);
        path.prepend(received.cycle, Kind::Engine, name);
        if path.is_done() {
            return Ok(());
        }
        path.phase = phase(took.message);
        // Frames may have come in on both sides in one cycle.
        let sides =
            [0, 1].map(|port| self.hops.last_departure(self.hops.base(node) + port, received.cycle, |tag| tag.tail()));
        let sides: Vec<QueuedFlit> =
            sides.into_iter().flatten().filter(|(_, left)| *left == received.cycle).map(|(queued, _)| queued).collect();
        let mut ways: Vec<(Path, Origin)> = Vec::new();
        for queued in sides {
            let mut way = path.clone();
            let origin = self.hops.trace_back(queued, Kind::EngineWait, &self.wires, &mut way)?;
            ways.push((way, origin));
        }
        let right = ways.iter().position(|(_, origin)| self.device(origin.node) == took.from).unwrap_or(0);
        if ways.is_empty() {
            return Err("a frame that came stood in no queue".into());
        }
        let (way, origin) = ways.swap_remove(right);
        *path = way;
        self.sender(&origin, path)
    }

    // ------------------------------------------------------------------------------------------------------ nodes

    /// A frame's first flit left a node in cycle `path.at`.
    fn node_sent(&self, node: u32, sent: &Event, path: &mut Path) -> Result<(), String> {
        let name = self.hops.name(node);
        path.phase = if sent.message == Message::Contribution { Phase::Inject } else { Phase::Command };
        let ours = |step: &WorkStep| step.cc_id == sent.cc_id && step.run == sent.run;
        let made =
            self.step(node, path.at, |step| ours(step) && step.message == sent.message && step.kind != StepKind::Began);
        if let Some(made) = made {
            path.prepend(made.cycle, Kind::Queue, name);
            return self.explain_frame(node, made, path);
        }
        // The first command of a source: nothing was before it.
        path.prepend(path.start, Kind::LateStart, name);
        Ok(())
    }

    /// A node made a frame in cycle `path.at`.
    fn explain_frame(&self, node: u32, made: &WorkStep, path: &mut Path) -> Result<(), String> {
        if path.is_done() {
            return Ok(());
        }
        let name = self.hops.name(node);
        let ours = |step: &WorkStep| step.cc_id == made.cc_id && step.run == made.run;
        match made.kind {
            StepKind::Merged => {
                // The last response came, and the source was merging until now.
                let response = self.event(node, made.cycle, |event| {
                    event.received
                        && (event.cc_id, event.run) == (made.cc_id, made.run)
                        && matches!(
                            event.message,
                            Message::Contribution | Message::Partial | Message::Failure | Message::Error
                        )
                });
                path.prepend(response.ok_or("a source merged what had not come")?.cycle, Kind::Compute, name);
                return self.arrived(node, path);
            }
            StepKind::Repeated => return self.arrived(node, path),
            StepKind::Asked => {
                let before = self.step(node, made.cycle - 1, |step| {
                    ours(step) && matches!(step.kind, StepKind::Made | StepKind::Asked)
                });
                path.prepend(before.map_or(path.start, |step| step.cycle), Kind::TimeOut, name);
                return before.map_or(Ok(()), |before| self.explain_frame(node, before, path));
            }
            _ => {}
        }
        let began = self.step(node, made.cycle, |step| ours(step) && step.kind == StepKind::Began);
        let began = began.ok_or("a node contributed without a task")?;
        path.prepend(began.cycle, Kind::Compute, name);
        if path.is_done() {
            return Ok(());
        }
        let cause = self.event(node, began.cycle, |event| {
            event.cc_id == made.cc_id
                && match event.message {
                    Message::Command | Message::Initialisation => event.run == made.run,
                    Message::Retry => event.received && event.run == made.run,
                    Message::Satisfied => event.received && event.run.wrapping_add(1) == made.run,
                    _ => false,
                }
        });
        let cause = cause.ok_or("a node began its task without a cause")?;
        path.prepend(cause.cycle, Kind::LateStart, name);
        if cause.received { self.arrived(node, path) } else { self.node_sent(node, cause, path) }
    }
}
