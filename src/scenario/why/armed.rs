//! The critical path of a round of the armed family: from the last participant that got the result back to the arming.
//!
//! Frames are followed flit by flit (`hops`); the actions of stations are read from their logs and records. An engine
//! sent because its last contribution came or its time-out passed. The root completed a round because its own
//! contribution was ready or the last partial result came, and retried because its time-out passed. A leaf contributed
//! because its work was done or it was armed again.

use std::collections::BTreeMap;

use super::hops::{Hops, InlineBlocks, Origin};
use super::{Kind, LastOperand, Path, Phase, Why, WhyQuery};
use crate::armed::build::ArmedBuild;
use crate::run::system::ArmedSystem as System;
use watershed_armed::job::Round;
use watershed_armed::root::RootRound;
use watershed_armed::station::{FrameEvent, FrameOrigin, LogEntry};
use watershed_armed::{DOWN, End, Engine, Job, UP, WireBlock};
use watershed_fabric::NodeKind;

/// The engines, links with faults and adapters of a system.
struct InlineEngines<'a> {
    system: &'a System,
    switches: u32,
    /// The family's first channel.
    first: u8,
}

impl<'a> InlineEngines<'a> {
    fn bump(&self, node: u32) -> Option<&'a WireBlock> {
        self.system.bump(node.checked_sub(self.switches)? as usize)
    }

    fn engine(&self, node: u32) -> Option<&'a Engine> {
        match self.bump(node) {
            Some(WireBlock::Engine(engine)) => Some(engine),
            _ => None,
        }
    }
}

impl InlineBlocks for InlineEngines<'_> {
    fn passes(&self, node: u32, port: u16, vc: u8, same_cycle: bool) -> bool {
        match self.bump(node) {
            // What climbs is taken in whole; everything else passes at once.
            Some(WireBlock::Engine(_)) => (port, vc) != (1, self.first + UP) && same_cycle,
            // An engine of another family lets it pass.
            None => same_cycle,
            _ => true,
        }
    }

    fn waits(&self, node: u32) -> Kind {
        match self.bump(node) {
            Some(WireBlock::Fault(_)) => Kind::HeldUp,
            _ => Kind::Arbitration,
        }
    }
}

/// When the last participant of a round had its result, and when its last contribution was ready.
#[derive(Clone, Copy, Debug)]
struct SlowestRound {
    got: u64,
    entered: u64,
    end: u32,
    token: u64,
    leaves: u32,
}

struct Reader<'a> {
    system: &'a System,
    hops: Hops<'a>,
    wires: InlineEngines<'a>,
    logs: BTreeMap<u32, &'a [LogEntry]>,
    first_end: u32,
    /// The family's first channel, and the first point-to-point one.
    first: u8,
    first_unicast: u8,
    job: &'a Job,
    root: u32,
    flow: u8,
    rounds: &'a [RootRound],
}

/// Explains the slowest round of every reduction that is asked for, or the round that is asked for.
pub fn explain(
    system: &System,
    ready: &ArmedBuild<()>,
    names: &[(String, u32)],
    ask: WhyQuery<'_>,
    notes: &mut Vec<String>,
) -> Vec<Why> {
    let mut list = Vec::new();
    for ((name, root), laid) in names.iter().zip(&ready.reductions) {
        if ask.collective.is_some_and(|asked| asked != name) {
            continue;
        }
        match reduction(system, name, *root, &laid.job, ask) {
            Ok(why) => list.push(why),
            Err(wrong) => notes.push(format!("{name}: {wrong}")),
        }
    }
    list
}

fn reduction(system: &System, name: &str, root: u32, job: &Job, ask: WhyQuery<'_>) -> Result<Why, String> {
    let end = system.end(root as usize);
    let roots = end.roots().iter().filter(|found| found.job().number == job.number);
    let softs = end.softs().iter().filter(|found| found.job().number == job.number);
    let flows: Vec<(u8, &[RootRound])> =
        roots.map(|root| (root.flow(), root.all_rounds())).chain(softs.map(|soft| (0, soft.rounds()))).collect();
    // The slowest of all rounds of all flows whose result all participants have.
    let mut best: Option<(u64, usize, usize, SlowestRound)> = None;
    for (at, (flow, rounds)) in flows.iter().enumerate() {
        for (index, round) in rounds.iter().enumerate() {
            let Some(data) = round.round.data.filter(|&data| !job.composed.prepares(data)) else { continue };
            let number = data / job.composed.rounds_each();
            if round.token.is_none() || ask.packet.is_some_and(|asked| asked != u64::from(number)) {
                continue;
            }
            let Some(mut told) = slowest_round(system, job, *flow, data).filter(|told| told.leaves == job.leaves())
            else {
                continue;
            };
            let Some(first) = first_wire_round(job, rounds, index) else { continue };
            if first < index {
                // It waits for operands in its first round on the wire only.
                let entered = rounds[first].round.data.and_then(|data| slowest_round(system, job, *flow, data));
                told.entered = entered.map_or(0, |first| first.entered);
            }
            told.entered = told.entered.max(rounds[first].own_ready);
            let latency = told.got.saturating_sub(told.entered);
            if best.as_ref().is_none_or(|(most, ..)| latency > *most) {
                best = Some((latency, at, index, told));
            }
        }
    }
    let which = ask.packet.map_or("no round".to_owned(), |asked| format!("no round {asked}"));
    let (_, at, index, told) = best.ok_or_else(|| format!("{which} of it has ended at every participant"))?;
    let (flow, rounds) = flows[at];
    let round = &rounds[index];
    let journal = system.journal().ok_or("no journal was kept")?;
    let plan = system.plan();
    let first = system.tables().first_channel;
    let switches = plan.count(NodeKind::Switch) as u32;
    let first_end = (plan.nodes.len() - plan.count(NodeKind::End)) as u32;
    let engines = system.bumps().enumerate().filter_map(|(at, bump)| match bump {
        Some(WireBlock::Engine(engine)) => Some((switches + at as u32, engine.log().entries())),
        _ => None,
    });
    let ends = system.ends().enumerate().map(|(at, end)| (first_end + at as u32, end.log().entries()));
    let reader = Reader {
        system,
        hops: Hops::new(plan, journal, system.tables().channels(plan.vcs)),
        wires: InlineEngines { system, switches, first },
        logs: engines.chain(ends).collect(),
        first_end,
        first,
        first_unicast: plan.vcs.set,
        job,
        root,
        flow,
        rounds,
    };
    // The first data round of a tree that was made at run time begins with the request for it.
    let begins = first_wire_round(job, rounds, index).ok_or("its first round on the wire is missing")?;
    let first = rounds[..begins].iter().all(|before| before.round.data.is_none());
    let start = set_up(end, job).filter(|_| first).map_or(rounds[begins].armed, |(asked, _)| asked);
    let mut path = Path::new(start, told.got, Phase::Eject);
    let node = first_end + told.end;
    if told.end == root {
        // Software: the root was the last to have the result.
        reader.complete(index, &mut path)?;
    } else {
        reader.receive(node, told.token, &mut path)?;
    }
    let number = round.round.data.unwrap_or(0) / job.composed.rounds_each();
    let landed = reader.hops.name(node).to_owned();
    path.finish((name, "round", u64::from(number)), landed, told.got, Some(told.entered))
}

/// Where the rounds on the wire begin of a round that was asked for, of which this is the last.
fn first_wire_round(job: &Job, rounds: &[RootRound], last: usize) -> Option<usize> {
    let before = job.composed.rounds_each() - 1;
    let first = last.checked_sub(before as usize)?;
    let number = rounds[last].round.data?.checked_sub(before);
    (rounds[first].round.data == number).then_some(first)
}

/// When the root of a job asked the agent for its tree, and when it had it.
fn set_up(root: &End, job: &Job) -> Option<(u64, u64)> {
    let client = root.clients().iter().find(|client| client.job().number == job.number)?;
    let (asked, answered) = client.times();
    asked.zip(answered).filter(|_| client.refusal().is_none())
}

/// The round with this number, or a barrier: what participants compute for them is the same for both.
fn round_of(data: Option<u32>) -> Round {
    data.map_or(Round::OPENING, Round::data)
}

/// Who had the result of a round last.
fn slowest_round(system: &System, job: &Job, flow: u8, data: u32) -> Option<SlowestRound> {
    let mut told: Option<SlowestRound> = None;
    let mut take = |end: u32, got: u64, entered: u64, token: u64, leaf: bool| {
        let told = told.get_or_insert(SlowestRound { got, entered, end, token, leaves: 0 });
        told.entered = told.entered.max(entered);
        told.leaves += u32::from(leaf);
        if got > told.got {
            (told.got, told.end, told.token) = (got, end, token);
        }
    };
    for (end, at) in system.ends().enumerate() {
        for leaf in at.leaves().iter().filter(|leaf| leaf.job().number == job.number && leaf.flow() == flow) {
            for result in leaf.results().iter().filter(|result| result.round.data == Some(data)) {
                take(end as u32, result.got, result.entered, result.token, true);
            }
        }
        for soft in at.softs().iter().filter(|soft| soft.job().number == job.number && soft.rank() > 0) {
            for result in soft.results().iter().filter(|result| result.round == data) {
                take(end as u32, result.got, result.entered, result.token, true);
            }
        }
    }
    told
}

impl<'a> Reader<'a> {
    fn log(&self, node: u32) -> &'a [LogEntry] {
        self.logs.get(&node).copied().unwrap_or(&[])
    }

    /// The last entry of a station by a cycle that fits.
    fn last(&self, node: u32, until: u64, fits: impl Fn(&LogEntry) -> bool) -> Option<&'a LogEntry> {
        self.log(node).iter().rev().find(|entry| entry.cycle <= until && fits(entry))
    }

    fn end(&self, node: u32) -> &'a End {
        self.system.end((node - self.first_end) as usize)
    }

    /// A process had a frame in cycle `path.at`: back over what software took and the way of the frame to who sent it.
    fn receive(&self, node: u32, token: u64, path: &mut Path) -> Result<(), String> {
        // Copies by redundant trees have one token; frames keep their order from coming to the process.
        let of_it = |what| self.log(node).iter().filter(move |entry| entry.token == token && entry.what == what);
        let delivered = of_it(FrameEvent::Delivered).take_while(|entry| entry.cycle <= path.at).count();
        let arrived = delivered.checked_sub(1).and_then(|before| of_it(FrameEvent::Received).nth(before));
        let arrived = arrived.ok_or("a frame that was delivered never came")?;
        path.prepend(arrived.cycle, Kind::Software, self.hops.name(node));
        let whole = |tag: watershed_fabric::Tag| tag.tail() && tag.seq() == token;
        let port = self.hops.base(node);
        let (queued, _) =
            self.hops.last_departure(port, path.at, whole).ok_or("a frame that came stood in no queue")?;
        path.phase = match queued.vc - self.first {
            UP => Phase::Climb,
            DOWN if path.phase == Phase::Eject => Phase::Broadcast,
            DOWN => Phase::Command,
            _ if arrived.frame.header.arm && path.phase == Phase::Eject => Phase::Broadcast,
            _ if arrived.frame.header.arm => path.phase,
            _ => Phase::Climb,
        };
        let origin = self.hops.trace_back(queued, Kind::Software, &self.wires, path)?;
        self.sender(&origin, path)
    }

    /// The sender of a frame whose first flit left in cycle `path.at`.
    fn sender(&self, origin: &Origin, path: &mut Path) -> Result<(), String> {
        if path.is_done() {
            return Ok(());
        }
        if let Some(engine) = self.wires.engine(origin.node) {
            return self.engine(engine, origin, path);
        }
        match origin.vc - self.first {
            UP => self.leaf(origin, path),
            DOWN => self.multicast(origin, path),
            vc if vc + self.first >= self.first_unicast => self.soft(origin, path),
            _ => Err("a stranger sent it".into()),
        }
    }

    // --------------------------------------------------------------------------------------------------- engines

    /// A climbing frame left an engine.
    fn engine(&self, engine: &Engine, origin: &Origin, path: &mut Path) -> Result<(), String> {
        let (node, token) = (origin.node, origin.tag.seq());
        let name = self.hops.name(node);
        path.phase = Phase::Reduce;
        let made =
            |entry: &LogEntry| entry.token == token && matches!(entry.what, FrameEvent::Sent | FrameEvent::Passed);
        let entry = self.last(node, path.at, made).ok_or("an engine sent a frame that it did not have")?;
        path.prepend(entry.cycle + 1, Kind::Queue, name);
        path.prepend(entry.cycle, Kind::Engine, name);
        if entry.what == FrameEvent::Passed {
            return self.entrance(node, token, path);
        }
        let Some(FrameOrigin::From(from)) = engine.merges().of(token) else {
            return Err("an engine made a frame from nothing".into());
        };
        let merged =
            |token: u64| self.last(node, entry.cycle, |entry| entry.token == token && entry.what == FrameEvent::Merged);
        let last = *from.last().ok_or("an engine made a frame from nothing")?;
        let cfg = &self.system.tables().cfg.engine;
        let issued = merged(last).ok_or("an engine merged what it did not have")?;
        let who = |token: u64| self.frame_origin(token);
        if issued.cycle + u64::from(cfg.stages) == entry.cycle {
            let times = |token: u64| merged(token).map_or(0, |entry| entry.cycle);
            let others =
                from[..from.len() - 1].iter().map(|&token| (who(token), issued.cycle - times(token))).collect();
            path.engines.push(LastOperand { switch: name.into(), from: who(last), cycle: issued.cycle, others });
            path.prepend(issued.cycle, Kind::Reduce, name);
            return self.entrance(node, last, path);
        }
        // Its time was up.
        let header = &entry.frame.header;
        let armed = self.last(node, entry.cycle, |found| {
            found.what == FrameEvent::Armed
                && found.frame.address == entry.frame.address
                && found.frame.header.seqno == header.seqno
        });
        let armed = armed.ok_or("an engine timed out that was never armed")?;
        let (switch, _) = engine.place();
        let wait_count =
            self.system.tables().entry(switch, entry.frame.address.multicast_id).map_or(0, |entry| entry.wait_count);
        let deadline = armed.cycle + cfg.timeout_cycles(wait_count);
        path.prepend(deadline.min(entry.cycle), Kind::EngineWait, name);
        path.prepend(armed.cycle, Kind::TimeOut, name);
        if path.is_done() {
            return Ok(());
        }
        path.phase = Phase::Command;
        let token = armed.token;
        let whole = |tag: watershed_fabric::Tag| tag.tail() && tag.seq() == token;
        let port = self.hops.base(node) + 1;
        let (queued, _) = self.hops.last_departure(port, path.at, whole).ok_or("an arm frame stood in no queue")?;
        let origin = self.hops.trace_back(queued, Kind::Arbitration, &self.wires, path)?;
        self.sender(&origin, path)
    }

    /// A climbing frame was matched in cycle `path.at`: back through the entrance of the engine.
    fn entrance(&self, node: u32, token: u64, path: &mut Path) -> Result<(), String> {
        let name = self.hops.name(node);
        let whole = |tag: watershed_fabric::Tag| tag.tail() && tag.seq() == token;
        let before = path.at.saturating_sub(1);
        let (queued, taken) =
            self.hops.last_departure(self.hops.base(node), before, whole).ok_or("a merged frame stood in no queue")?;
        path.prepend(taken + 1, Kind::EngineWait, name);
        path.prepend(taken, Kind::Engine, name);
        path.phase = Phase::Climb;
        let origin = self.hops.trace_back(queued, Kind::EngineWait, &self.wires, path)?;
        self.sender(&origin, path)
    }

    /// Who made a frame, by its token.
    fn frame_origin(&self, token: u64) -> String {
        let sent = |entry: &&LogEntry| entry.token == token && entry.what == FrameEvent::Sent;
        let found = self.logs.iter().find(|(_, log)| log.iter().any(|entry| sent(&entry)));
        found.map_or_else(|| "somebody".into(), |(node, _)| self.hops.name(*node).to_owned())
    }

    // ----------------------------------------------------------------------------------------------------- leaves

    /// What an end point took to send a frame that it had decided on in cycle `decided`.
    fn outbox(&self, node: u32, decided: u64, path: &mut Path) {
        let name = self.hops.name(node);
        let send = self.job.overheads.send;
        path.prepend((decided + send).min(path.at), Kind::Queue, name);
        path.prepend(decided, Kind::Software, name);
    }

    /// A contribution left a leaf.
    fn leaf(&self, origin: &Origin, path: &mut Path) -> Result<(), String> {
        let (node, token) = (origin.node, origin.tag.seq());
        let name = self.hops.name(node);
        let end = self.end(node);
        let sent = self.last(node, path.at, |entry| entry.token == token && entry.what == FrameEvent::Sent);
        let sent = sent.ok_or("a contribution was not logged")?;
        let Some(FrameOrigin::Contribution { rank, round, .. }) = end.merges().of(token) else {
            return Err("a leaf sent what is no contribution".into());
        };
        let mine = |leaf: &&watershed_armed::Leaf| leaf.job().number == self.job.number && leaf.flow() == self.flow;
        let leaf = end.leaves().iter().find(mine).ok_or("a stranger sent it")?;
        path.phase = Phase::Inject;
        let result = leaf.results().iter().find(|result| result.round.data == *round);
        let ready = result.map_or(path.at, |result| result.entered);
        let (address, seqno) = (sent.frame.address, sent.frame.header.seqno);
        let armed = self.last(node, path.at, |entry| {
            entry.what == FrameEvent::Delivered
                && entry.frame.address == address
                && entry.frame.header.arm
                && entry.frame.header.seqno == seqno
        });
        if let Some(armed) = armed.filter(|armed| armed.cycle > ready) {
            // It was ready, and armed again.
            self.outbox(node, armed.cycle, path);
            path.phase = Phase::Command;
            return self.receive(node, armed.token, path);
        }
        self.outbox(node, ready, path);
        let computed = self.job.compute_cycles(*rank, round_of(*round));
        path.prepend(ready.saturating_sub(computed), Kind::Compute, name);
        if path.is_done() {
            return Ok(());
        }
        // It began in the cycle in which the frame came that armed it or brought the result before.
        let began = self.last(node, path.at, |entry| {
            entry.what == FrameEvent::Delivered
                && entry.cycle == path.at
                && leaf.trees().contains(&entry.frame.address.multicast_id)
                && entry.frame.address.reduction_id == self.flow
        });
        let began = began.ok_or("a leaf began with nothing")?;
        path.phase = Phase::Command;
        self.receive(node, began.token, path)
    }

    // ------------------------------------------------------------------------------------------------------- root

    /// A multicast left the root.
    fn multicast(&self, origin: &Origin, path: &mut Path) -> Result<(), String> {
        let (node, token) = (origin.node, origin.tag.seq());
        let sent = self.last(node, path.at, |entry| entry.token == token && entry.what == FrameEvent::Sent);
        let header = sent.ok_or("a multicast was not logged")?.frame.header;
        if !header.arm {
            // The release after the last round, or after one that was given up.
            let last = self.rounds.len().checked_sub(1).ok_or("a root without rounds")?;
            let end = self.rounds[last].end.ok_or("a release of a round that has no end")?;
            self.outbox(node, end, path);
            return match self.rounds[last].token {
                Some(_) => self.complete(last, path),
                None => self.attempt(last, self.rounds[last].asked.len(), path),
            };
        }
        let limit = path.at.saturating_sub(self.job.overheads.send);
        let all = self.rounds.iter().enumerate().flat_map(|(round, of)| {
            of.asked.iter().enumerate().map(move |(attempt, &(seqno, cycle))| (cycle, round, attempt, seqno))
        });
        let found = all.filter(|&(cycle, _, _, seqno)| seqno == header.seqno && cycle <= limit).max();
        let (cycle, round, attempt, _) = found.ok_or("a root sent what it had not decided on")?;
        self.outbox(node, cycle, path);
        self.attempt(round, attempt, path)
    }

    /// An attempt began in cycle `path.at`: because the one before ran out of time, or the round before was complete.
    fn attempt(&self, round: usize, mut attempt: usize, path: &mut Path) -> Result<(), String> {
        let name = self.hops.name(self.first_end + self.root);
        while attempt > 0 && !path.is_done() {
            attempt -= 1;
            path.prepend(self.rounds[round].asked[attempt].1, Kind::TimeOut, name);
        }
        if path.is_done() {
            return Ok(());
        }
        match round.checked_sub(1) {
            Some(before) => self.complete(before, path),
            None => self.set_up(path),
        }
    }

    /// The first round began in cycle `path.at`: the agent had made its tree.
    fn set_up(&self, path: &mut Path) -> Result<(), String> {
        let root = self.end(self.first_end + self.root);
        let (asked, answered) = set_up(root, self.job).ok_or("a reduction began before its first round")?;
        let agent = self.job.run_time.map_or(self.root, |run_time| run_time.agent);
        path.phase = Phase::Command;
        path.prepend(answered, Kind::Software, self.hops.name(self.first_end + self.root));
        path.prepend(asked, Kind::SetUp, self.hops.name(self.first_end + agent));
        Ok(())
    }

    /// A round was complete in cycle `path.at`: its last partial result, or the root's own contribution.
    fn complete(&self, round: usize, path: &mut Path) -> Result<(), String> {
        if path.is_done() {
            return Ok(());
        }
        let of = &self.rounds[round];
        let node = self.first_end + self.root;
        path.phase = Phase::Reduce;
        if let Some(soft) =
            self.end(node).softs().iter().find(|soft| soft.job().number == self.job.number && !soft.is_dormant())
        {
            let token = soft.results().iter().find(|result| Some(result.round) == of.round.data);
            let token = token.ok_or("a round ended without a result")?.token;
            return self.gathered(node, token, of.own_ready, path);
        }
        let partials = of.partials.iter().filter_map(|&token| {
            self.last(node, path.at, |entry| entry.token == token && entry.what == FrameEvent::Delivered)
        });
        let last = partials.max_by_key(|entry| entry.cycle).ok_or("a round was complete without a partial result")?;
        if of.own_ready > last.cycle {
            path.phase = Phase::Inject;
            path.prepend(of.own_ready, Kind::Software, self.hops.name(node));
            path.prepend(of.armed, Kind::Compute, self.hops.name(node));
            return self.attempt(round, 0, path);
        }
        path.prepend(last.cycle, Kind::Software, self.hops.name(node));
        self.receive(node, last.token, path)
    }

    // --------------------------------------------------------------------------------------------------- software

    /// A message left a rank of a software reduction.
    fn soft(&self, origin: &Origin, path: &mut Path) -> Result<(), String> {
        let (node, token) = (origin.node, origin.tag.seq());
        let soft =
            self.end(node).softs().iter().find(|soft| soft.job().number == self.job.number && !soft.is_dormant());
        let soft = soft.ok_or("a stranger sent it")?;
        if let Some(result) = soft.results().iter().find(|result| result.token == token) {
            // The result, on its way down.
            self.outbox(node, result.got, path);
            if path.is_done() {
                return Ok(());
            }
            if soft.rank() == 0 {
                let round = self.rounds.iter().position(|round| round.round.data == Some(result.round));
                return self.complete(round.ok_or("a result of no round")?, path);
            }
            return self.receive(node, token, path);
        }
        let ready = self.start_and_ready(node, token).map_or(path.at, |(_, ready)| ready);
        let children = self.children(node, token, path.at);
        let decided = children.iter().map(|child| child.cycle).max().unwrap_or(0).max(ready);
        self.outbox(node, decided, path);
        self.gathered(node, token, ready, path)
    }

    /// When the round began at a rank and its own contribution was ready, by the token of what it made of it.
    fn start_and_ready(&self, node: u32, token: u64) -> Option<(u64, u64)> {
        let end = self.end(node);
        let own = match end.merges().of(token)? {
            FrameOrigin::From(from) => *from.first()?,
            _ => token,
        };
        let FrameOrigin::Contribution { round, rank, .. } = end.merges().of(own)? else { return None };
        let soft = end.softs().iter().find(|soft| soft.job().number == self.job.number && !soft.is_dormant())?;
        let result = soft.results().iter().find(|result| Some(result.round) == *round)?;
        let computed = self.job.compute_cycles(*rank, round_of(*round));
        Some((result.entered - computed, result.entered))
    }

    /// The messages of children that a frame was made from.
    fn children(&self, node: u32, token: u64, until: u64) -> Vec<&'a LogEntry> {
        let Some(FrameOrigin::From(from)) = self.end(node).merges().of(token) else { return Vec::new() };
        let delivered =
            |token: u64| self.last(node, until, |entry| entry.token == token && entry.what == FrameEvent::Delivered);
        from[1..].iter().filter_map(|&token| delivered(token)).collect()
    }

    /// A rank had everything in cycle `path.at`: the last message, or its own contribution.
    fn gathered(&self, node: u32, token: u64, ready: u64, path: &mut Path) -> Result<(), String> {
        let name = self.hops.name(node);
        path.phase = Phase::Reduce;
        let last = self.children(node, token, path.at).into_iter().max_by_key(|child| child.cycle);
        if let Some(last) = last.filter(|last| last.cycle >= ready) {
            path.prepend(last.cycle, Kind::Software, name);
            return self.receive(node, last.token, path);
        }
        path.phase = Phase::Inject;
        path.prepend(ready, Kind::Software, name);
        let (began, _) = self.start_and_ready(node, token).ok_or("a rank contributed without having begun")?;
        path.prepend(began, Kind::Compute, name);
        if path.is_done() {
            return Ok(());
        }
        // It began in the cycle in which it had the result before.
        let before = self.end(node).softs().iter().flat_map(watershed_armed::Soft::results);
        let Some(before) = before.into_iter().find(|result| result.got == path.at) else {
            // It had to be told that there is no tree.
            self.job.run_time.ok_or("a rank began with nothing")?;
            path.prepend(path.start, Kind::LateStart, name);
            return Ok(());
        };
        if node == self.first_end + self.root {
            let round = self.rounds.iter().position(|round| round.round.data == Some(before.round));
            return self.complete(round.ok_or("a result of no round")?, path);
        }
        path.phase = Phase::Command;
        self.receive(node, before.token, path)
    }
}
