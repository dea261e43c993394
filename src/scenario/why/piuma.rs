//! The critical path of a collective of the PIUMA family: from the last word that landed back to the core whose word it waited
//! for.
//!
//! Calls of a collective that programs make one after the other use the same id, channels and numbers of words, and a
//! later call's words may be on their way before an earlier one's have arrived. Queues, links and engines keep their
//! order, and all participants call in the same order: so the n-th occurrence of a word at a place belongs to the n-th
//! call that has such a word, everywhere. Words are matched by this count, and not by their time.

use super::index::Index;
use super::ports::Ports;
use super::{Kind, LastOperand, Path, Phase, Why};
use crate::run::system::PiumaSystem as System;
use watershed_fabric::{Entry, FlitEvent, Journal, NodeKind, Plan};
use watershed_piuma::{Job, REQUEST, RESPONSE, Registers, channel, kind, plane, scan};

/// Id, channel and number of a word.
type WordKey = (u16, u8, u64);

/// A journal, by what is asked of it.
pub struct Reader<'a> {
    system: &'a System,
    plan: &'a Plan,
    journal: &'a Journal,
    registers: &'a Registers,
    /// Latency of the engines.
    tree: u64,
    /// Stages of their units.
    stages: u64,
    ports: Ports<'a>,
    index: Index<'a>,
}

/// The collective, and the word of it, that a reader explains.
#[derive(Clone, Copy, Debug)]
pub struct CollectiveQuery<'a> {
    /// The collective's name, for the answer.
    pub name: &'a str,
    /// Its id.
    pub id: u16,
    /// Its first cycle.
    pub start: u64,
    /// Its last cycle.
    pub end: u64,
    /// When the last participant that sends called it, if programs do.
    pub last_call: Option<u64>,
    /// A word, if not the last one.
    pub packet: Option<u64>,
    /// When programs wrote its registers for this call: first cycle, first cycle after it, and the end point; by their ends.
    pub configured: &'a [(u64, u64, usize)],
}

/// A core that takes part in a collective.
#[derive(Clone, Copy, Debug)]
pub struct Participant<'a> {
    /// Its end point.
    pub end: usize,
    /// Its part.
    pub job: &'a Job,
    /// When its program called the collective; otherwise its start.
    pub called: u64,
}

/// The word of an entry.
fn word_of(entry: &Entry) -> WordKey {
    (entry.tag.id(), entry.tag.vc(), entry.tag.seq())
}

/// The credits of an output channel over time.
struct Credits {
    initial: u64,
    /// Cycles from the departure of a flit at the far end to the cycle before which its credit counts.
    delay: u64,
    returned: Vec<u64>,
    sent: Vec<u64>,
}

impl Credits {
    /// Those left in a cycle.
    fn at(&self, cycle: u64) -> u64 {
        let before = |list: &[u64], limit: u64| list.partition_point(|at| *at < limit) as u64;
        let returned = before(&self.returned, (cycle + 1).saturating_sub(self.delay));
        (self.initial + returned).saturating_sub(before(&self.sent, cycle))
    }
}

impl<'a> Reader<'a> {
    /// Reads the journal of a system; `None` if it kept none.
    pub fn new(system: &'a System) -> Option<Self> {
        let (plan, journal) = (system.plan(), system.journal()?);
        let cfg = system.join(0).map(|ceng| ceng.cfg().tree);
        let tree = cfg.map_or(0, |tree| tree.latency_cycles());
        let stages = cfg.map_or(0, |tree| u64::from(tree.unit_stages));
        let ports = Ports::new(plan);
        let index = Index::new(journal, ports.count());
        Some(Self { system, plan, journal, registers: system.registers(), tree, stages, ports, index })
    }

    fn is_switch(&self, node: u32) -> bool {
        self.plan.nodes[node as usize].kind == NodeKind::Switch
    }

    /// The port of an end point.
    fn end_port(&self, end: usize) -> u32 {
        let first = self.plan.count(NodeKind::Switch) + self.plan.count(NodeKind::Bump);
        self.ports.base((first + end) as u32)
    }

    fn place(&self, port: u32) -> String {
        let node = self.ports.node(port);
        let name = self.system.node_name(node);
        if self.is_switch(node) { format!("{name}.P{}", port - self.ports.base(node)) } else { name.into_owned() }
    }

    /// All cycles in which something left the queue of a port and channel.
    fn departures(&self, port: u32, vc: u8) -> Vec<u64> {
        let of_it = |entry: &&Entry| entry.what == FlitEvent::Left && entry.tag.vc() == vc;
        self.index.of(port).filter(of_it).map(|entry| entry.cycle).collect()
    }

    /// Credits of an output channel; none where nothing has to have any.
    fn credits(&self, port: u32, vc: u8) -> Option<Credits> {
        let (peer, latency, _) = self.ports.peer(port)?;
        let switch = self.is_switch(self.ports.node(port));
        let processed = if switch { u64::from(self.journal.credit_delay) } else { 0 };
        let is_sent = |entry: &&Entry| matches!(entry.what, FlitEvent::Sent { .. }) && entry.tag.vc() == vc;
        Some(Credits {
            initial: u64::from(self.journal.initial_credits(port, vc)),
            delay: latency + 1 + processed,
            returned: self.departures(peer, vc),
            sent: self.index.of(port).filter(is_sent).map(|entry| entry.cycle).collect(),
        })
    }

    /// The way of the last word of a collective, or of the word that is asked for, from its end back to its start. `jobs`
    /// are the parts of the participants.
    ///
    /// # Errors
    /// There is no such word, or an event of its way is missing from the journal.
    pub fn explain(&self, asked: &CollectiveQuery<'_>, jobs: &[Participant<'_>]) -> Result<Why, String> {
        let &CollectiveQuery { name, id, start, last_call, packet, .. } = asked;
        let last = |job: &Job| if job.kind().receives { job.landed_at().last().copied() } else { None };
        let slowest = jobs.iter().max_by_key(|of| (of.job.end(), last(of.job), std::cmp::Reverse(of.end)));
        let Some(&taker) = slowest else { return Err("nobody takes part".into()) };
        let Participant { end, job, .. } = taker;
        let words = job.landed_at().len() as u64;
        let seq = packet.unwrap_or(words.saturating_sub(1));
        let port = self.end_port(end);
        let mut until = job.end().unwrap_or(asked.end);

        // In the receiving core.
        let mut lands = None;
        if job.kind().receives {
            let found = job.landed_at().get(seq as usize).copied();
            let cycle = found.ok_or_else(|| format!("there is no word {seq}; it has {words}"))?;
            if packet.is_some() {
                until = cycle;
            }
            lands = Some(cycle);
        }
        let finish = until;
        let mut path = Path::new(start, finish, Phase::Eject);
        if let Some(lands) = lands {
            let before = self.received_before(taker, seq);
            let taken = [RESPONSE, REQUEST].map(|kind| channel(job.plane(), kind)).into_iter();
            let taken = taken.filter_map(|vc| self.word_departure(port, (id, vc, seq), before));
            let taken = taken.filter(|(cycle, _)| *cycle <= lands).max();
            let (taken, word) = taken.ok_or("the last word never left its queue")?;
            path.push(taken, until, Kind::Landing, self.place(port));
            let (arrived, _) = self.entry(port, word, taken)?;
            // Before the core called it, the word waited for that and not for the memory.
            path.push(job.start().clamp(arrived, taken), taken, Kind::MemoryWrite, self.place(port));
            path.prepend(taker.called.max(arrived), Kind::Call, self.place(port));
            path.prepend(arrived, Kind::LateStart, self.place(port));
            self.climb(word, port, arrived, asked, jobs, &mut path)?;
        } else {
            let last = job.words().saturating_sub(1);
            self.source(until, last, asked, (taker, jobs), &mut path)?;
        }
        path.finish((name, "word", seq), self.place(port), finish, last_call)
    }

    /// How many words of this number a core received in earlier calls of the collective.
    fn received_before(&self, taker: Participant<'_>, seq: u64) -> usize {
        let jobs = self.system.end(taker.end).core.as_ref().map_or(&[][..], |core| core.jobs());
        let earlier = jobs.iter().take_while(|job| !std::ptr::eq(*job, taker.job));
        let same = |job: &&Job| (job.id(), job.plane()) == (taker.job.id(), taker.job.plane());
        earlier.filter(same).filter(|job| job.kind().receives && job.landed() > seq).count()
    }

    /// When a word left a queue that had left it `before` times, and as what: responses of scans name more than their element.
    fn word_departure(&self, port: u32, (id, vc, seq): WordKey, before: usize) -> Option<(u64, WordKey)> {
        let more = if kind(vc) == RESPONSE { 31 << 30 } else { 0 };
        let fits =
            |found: WordKey| (found.0, found.1, found.2 & !more) == (id, vc, seq & !more) && found.2 & seq == seq;
        let mut left = self.index.of(port).filter(|entry| entry.what == FlitEvent::Left && fits(word_of(entry)));
        left.nth(before).map(|entry| (entry.cycle, word_of(entry)))
    }

    /// When the word that left a queue in cycle `left` had come into it, and from when on it could have left.
    fn entry(&self, port: u32, word: WordKey, left: u64) -> Result<(u64, u64), String> {
        let of_it = || self.index.of(port).filter(|entry| word_of(entry) == word);
        let by_then =
            of_it().take_while(|entry| entry.cycle <= left).filter(|entry| entry.what == FlitEvent::Left).count();
        let mut came = of_it().filter_map(|entry| match entry.what {
            FlitEvent::Entered { ready } => Some((entry.cycle, ready)),
            _ => None,
        });
        let found = by_then.checked_sub(1).and_then(|before| came.nth(before));
        found.ok_or_else(|| format!("word {} never came to {}", word.2, self.place(port)))
    }

    /// The port whose queue a word came out of that was sent by `output` in a cycle.
    fn sending_queue(&self, output: u32, word: WordKey, cycle: u64) -> Option<u32> {
        self.index.at_cycle(output, cycle).find_map(|(_, entry)| match entry.what {
            FlitEvent::Sent { from } if word_of(entry) == word => from.map(|(port, _)| port),
            _ => None,
        })
    }

    /// The ports of a node by which a word of a queue was sent in a cycle, in the order in which that happened.
    fn sent_by(&self, node: u32, queue: u32, word: WordKey, cycle: u64) -> Vec<u32> {
        let all = self.ports.of(node).flat_map(|port| self.index.at_cycle(port, cycle));
        let sent = |entry: &Entry| matches!(entry.what, FlitEvent::Sent { from: Some((from, _)) } if from == queue);
        let mut list: Vec<(u32, u32)> = all
            .filter(|(_, entry)| sent(entry) && word_of(entry) == word)
            .map(|(place, entry)| (place, entry.port))
            .collect();
        list.sort_unstable();
        list.into_iter().map(|(_, port)| port).collect()
    }

    /// Follows a word that came into the queue of `port` in cycle `arrived` back to where it was made.
    fn climb(
        &self,
        mut word: WordKey,
        mut port: u32,
        mut arrived: u64,
        asked: &CollectiveQuery<'_>,
        jobs: &[Participant<'_>],
        path: &mut Path,
    ) -> Result<(), String> {
        let post = u64::from(self.journal.post);
        let id = word.0;
        loop {
            // Over the link.
            let (peer, latency, flit) = self.ports.peer(port).ok_or("a queue without a link")?;
            let node = self.ports.node(peer);
            let from_switch = self.is_switch(node);
            let sent = arrived - latency - flit - if from_switch { post } else { 0 };
            if self.plan.nodes[node as usize].kind == NodeKind::Bump {
                path.push(sent + 1, arrived, Kind::Link, format!("{} -> {}", self.place(peer), self.place(port)));
                // Past an engine of another family, over its other port.
                let queue = self.ports.base(node) + 1 - (peer - self.ports.base(node));
                let (came, ready) = self.entry(queue, word, sent)?;
                path.push(sent, sent + 1, Kind::Switch, self.place(peer));
                self.waited_for(&[peer], queue, word, ready, sent, path);
                path.push(came, ready, Kind::Switch, self.place(queue));
                (port, arrived) = (queue, came);
                continue;
            }
            path.phase = if kind(word.1) == RESPONSE { Phase::Broadcast } else { Phase::Climb };
            let link = format!("{} -> {}", self.place(peer), self.place(port));
            if !from_switch {
                path.push(sent + 1, arrived, Kind::Link, link);
                path.phase = Phase::Inject;
                path.push(sent, sent + 1, Kind::Inject, self.place(peer));
                let end = node as usize - self.plan.count(NodeKind::Switch) - self.plan.count(NodeKind::Bump);
                let taker = jobs.iter().find(|of| of.end == end && of.job.id() == id).ok_or("a stranger sent it")?;
                return self.source(sent, word.2, asked, (*taker, jobs), path);
            }
            path.push(sent + post + 1, arrived, Kind::Link, link);
            path.push(sent, sent + post + 1, Kind::Switch, self.place(peer));

            // Out of a queue of this switch.
            let mut queue = self
                .sending_queue(peer, word, sent)
                .ok_or_else(|| format!("word {} left no queue of {}", word.2, self.place(peer)))?;
            let mut left = sent;
            let engine = self.ports.base(node) + u32::from(self.registers.engine_port());
            loop {
                let (came, ready) = self.entry(queue, word, left)?;
                self.explain_wait(node, queue, word, ready, left, path);
                path.push(came, ready, Kind::Switch, self.place(queue));
                if queue != engine {
                    (port, arrived) = (queue, came);
                    break;
                }
                // Out of the engine: what it waited for.
                (word, queue, left) = self.explain_result(node, word, came, path)?;
                let visible = left + post + 1;
                path.phase = if kind(word.1) == RESPONSE { Phase::Broadcast } else { Phase::Climb };
                path.push(left, visible, Kind::Switch, self.place(queue));
            }
        }
    }

    /// What an engine made a word from, that came into its queue in cycle `came`: its last operand, or the response from
    /// above; with the queue that it left and when.
    fn explain_result(
        &self,
        node: u32,
        word: WordKey,
        came: u64,
        path: &mut Path,
    ) -> Result<(WordKey, u32, u64), String> {
        let post = u64::from(self.journal.post);
        let (id, vc, seq) = word;
        let name = self.system.node_name(node).into_owned();
        let base = self.ports.base(node);
        let order = self.registers.order(node, id);
        let (element, mut cycles) = (if order == 0 { seq } else { scan::element(seq) }, self.tree);
        path.phase = Phase::Reduce;
        // How many times it had made this word before.
        let made = self.index.of(base + u32::from(self.registers.engine_port()));
        let made = made.take_while(|entry| entry.cycle < came).filter(|entry| word_of(entry) == word);
        let before = made.filter(|entry| matches!(entry.what, FlitEvent::Entered { .. })).count();
        if order != 0 {
            let inputs: Vec<u16> = scan::ports(order).collect();
            let down = || self.stages + inputs.iter().position(|&port| port == scan::target(seq)).unwrap_or(0) as u64;
            if kind(vc) == RESPONSE && !self.registers.is_root(node, id) {
                let leaves = self.registers.vector(node, id, REQUEST, self.registers.engine_port());
                let ports = (0..self.registers.engine_port()).filter(|&port| leaves >> port & 1 == 1);
                let above = ports.filter_map(|port| {
                    let queue = base + u32::from(port);
                    let (left, word) = self.word_departure(queue, (id, vc, element), before)?;
                    Some((left, queue, word))
                });
                let (left, queue, word) =
                    above.max().ok_or_else(|| format!("no response from above came to {name}"))?;
                let met = came.saturating_sub(down()).max(left + post + 1);
                path.push(met, came, Kind::Reduce, format!("{name}.ceng"));
                path.push(left + post + 1, met, Kind::EngineWait, format!("{name}.ceng"));
                return Ok((word, queue, left));
            }
            cycles = (self.stages * (inputs.len() as u64 - 1)).max(1) + if kind(vc) == RESPONSE { down() } else { 0 };
        }
        let gathered = came - cycles;
        let request = channel(plane(vc), REQUEST);
        path.push(gathered, came, Kind::Reduce, format!("{name}.ceng"));
        let mut operands: Vec<(u64, u16, u64)> = Vec::new();
        for input in 0..64u16 {
            if self.registers.engine_inputs(node, id) >> input & 1 == 0 {
                continue;
            }
            let at = base + u32::from(input);
            // Visible to the engine `post` + 1 cycles later.
            let left = self.word_departure(at, (id, request, element), before).map(|(cycle, _)| cycle);
            let left = left.filter(|left| left + post < gathered);
            let left = left.ok_or_else(|| format!("an operand of {name} is missing on port {input}"))?;
            operands.push((left + post + 1, input, left));
        }
        let &(visible, input, left) = operands
            .iter()
            .max_by_key(|(visible, input, _)| (*visible, std::cmp::Reverse(*input)))
            .ok_or("an engine without operands")?;
        path.push(visible, gathered, Kind::EngineWait, format!("{name}.ceng"));
        let others = operands
            .iter()
            .filter(|(_, port, _)| *port != input)
            .map(|(there, port, _)| (format!("P{port}"), visible - there))
            .collect();
        path.engines.push(LastOperand { switch: name, from: format!("P{input}"), cycle: visible, others });
        Ok(((id, request, element), base + u32::from(input), left))
    }

    /// When an engine took the operands of a result that came into its queue; none for a response that repeats another
    /// result of the same operands, or that was made from a response from above.
    fn operands_taken_at(&self, node: u32, made: &Entry) -> Option<u64> {
        let (id, vc, seq) = word_of(made);
        let order = self.registers.order(node, id);
        if order == 0 {
            return Some(made.cycle - self.tree);
        }
        let chain = (self.stages * (scan::ports(order).count() as u64 - 1)).max(1);
        if kind(vc) == REQUEST {
            return Some(made.cycle - chain);
        }
        // At the root an element has as many responses as inputs; the first one leaves without waiting for others.
        let is_first = scan::ports(order).next() == Some(scan::target(seq));
        (is_first && self.registers.is_root(node, id)).then(|| made.cycle - chain - self.stages)
    }

    /// Whether the engine's slots of a port were full in a cycle for a word that waited to get into them; if not, another
    /// channel's word had the input. Responses of scans, and requests beside them, wait for slots only.
    fn is_slot_full(&self, node: u32, queue: u32, (id, vc, _): WordKey, cycle: u64) -> bool {
        if kind(vc) == RESPONSE || self.registers.order(node, id) != 0 {
            return true;
        }
        let input = queue - self.ports.base(node);
        let is_it = |entry: &&Entry| plane(entry.tag.vc()) == plane(vc);
        let put =
            self.index.of(queue).filter(is_it).filter(|entry| matches!(entry.what, FlitEvent::EnteredEngine { .. }));
        let put = put.filter(|entry| kind(entry.tag.vc()) == REQUEST && entry.cycle < cycle).count();
        // What the engine made of operands of this port says when they left their slots.
        let made = self.index.of(self.ports.base(node) + u32::from(self.registers.engine_port())).filter(is_it);
        let made = made.filter(|entry| matches!(entry.what, FlitEvent::Entered { .. }));
        let made = made.filter(|entry| self.registers.engine_inputs(node, entry.tag.id()) >> input & 1 == 1);
        let took = made.filter_map(|entry| self.operands_taken_at(node, entry));
        let taken = took.filter(|&took| took <= cycle).count();
        let slots = self.system.join(node).map_or(0, |ceng| ceng.cfg().operand_slots);
        put - taken >= slots as usize
    }

    /// Says for each cycle of a wait in a queue what it was for.
    fn explain_wait(&self, node: u32, queue: u32, word: WordKey, ready: u64, left: u64, path: &mut Path) {
        let outputs = self.sent_by(node, queue, word, left);
        if outputs.is_empty() {
            let full = |cycle| self.is_slot_full(node, queue, word, cycle);
            let kind = |cycle| if full(cycle) { Kind::OperandSlot } else { Kind::Arbitration };
            self.each_waited((queue, word.1), (ready, left), |cycle| (kind(cycle), self.place(queue)), path);
        } else {
            self.waited_for(&outputs, queue, word, ready, left, path);
        }
    }

    /// The same of a word that was sent by these outputs.
    fn waited_for(&self, outputs: &[u32], queue: u32, word: WordKey, ready: u64, left: u64, path: &mut Path) {
        let credits: Vec<(u32, Option<Credits>)> =
            outputs.iter().map(|&out| (out, self.credits(out, word.1))).collect();
        let without =
            |cycle: u64| credits.iter().find(|(_, credits)| credits.as_ref().is_some_and(|of| of.at(cycle) == 0));
        let kind = |cycle| match without(cycle) {
            Some((out, _)) => (Kind::CreditWait, self.place(*out)),
            None => (Kind::Arbitration, self.place(outputs[0])),
        };
        self.each_waited((queue, word.1), (ready, left), kind, path);
    }

    /// Each cycle of a wait in a queue: behind others, or at its head for what `at_head` says.
    fn each_waited(
        &self,
        (queue, vc): (u32, u8),
        (ready, left): (u64, u64),
        at_head: impl Fn(u64) -> (Kind, String),
        path: &mut Path,
    ) {
        if ready >= left {
            return;
        }
        let departures = self.departures(queue, vc);
        let before = departures.partition_point(|cycle| *cycle < left);
        // The queue's head leaves in a cycle; the next one can leave in the cycle after it.
        let head_from = before.checked_sub(1).map_or(0, |at| departures[at] + 1);
        for cycle in (ready..left).rev() {
            let (kind, place) = if cycle < head_from { (Kind::Behind, self.place(queue)) } else { at_head(cycle) };
            path.push(cycle, cycle + 1, kind, place);
        }
    }

    /// What the core did from the start of the collective until it sent the word of this number.
    fn source(
        &self,
        sent: u64,
        number: u64,
        asked: &CollectiveQuery<'_>,
        (Participant { end, job, called }, all): (Participant<'_>, &[Participant<'_>]),
        path: &mut Path,
    ) -> Result<(), String> {
        let port = self.end_port(end);
        path.phase = Phase::Inject;
        if job.start() > sent {
            return Err("a word left before its core had started".into());
        }
        if job.end().is_some_and(|end| sent > end) {
            return Err("a word left after its core had ended".into());
        }
        let credits = self.credits(port, channel(job.plane(), REQUEST));
        let there = job.there_at().get(number as usize).copied().unwrap_or(sent);
        for cycle in (job.start()..sent).rev() {
            let blocked = credits.as_ref().is_some_and(|credits| credits.at(cycle) == 0);
            let kind = match blocked {
                true => Kind::CreditWait,
                false if cycle < there => Kind::MemoryRead,
                false => Kind::Queue,
            };
            path.push(cycle, cycle + 1, kind, self.place(port));
        }
        let (mut called, mut port) = (called, port);
        if let Some(claim) = job.claimed() {
            // It could start when the last participant was ready and the arbiter had granted.
            path.prepend(claim.granted, Kind::Claim, self.place(port));
            path.prepend(claim.asked, Kind::ClaimHeld, self.place(port));
            let (ready, last) = claim.last;
            path.prepend(ready, Kind::Claim, self.place(port));
            let last = all.iter().find(|of| of.end == last).ok_or("a stranger was ready last")?;
            called = last.called;
            port = self.end_port(last.end);
        }
        path.prepend(called, Kind::Call, self.place(port));
        for &(from, to, end) in asked.configured.iter().rev() {
            path.prepend(to, Kind::LateStart, self.place(port));
            path.prepend(from, Kind::Configuration, self.place(self.end_port(end)));
        }
        path.prepend(asked.start, Kind::LateStart, self.place(port));
        Ok(())
    }
}
