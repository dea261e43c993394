//! Where the cycles of a collective's latency went.
//!
//! The latency of a collective is the time from its start to the cycle in which its last participant is done. It is
//! explained from its end to its start, along the critical path: the last word that landed, the queue it waited in, the link it
//! came by, the engine that made it, of that engine's operands the one that came last, and so on to the core whose word that
//! was. Each interval between two events of the [journal](crate::fabric::Journal) is cut into [`Part`]s; they follow each
//! other without a gap, so they add up to the latency exactly.
//!
//! | kind | the cycles in which |
//! |---|---|
//! | late start | the core at the beginning of the path had not called the collective yet (it was late, or the collective waited for another) |
//! | memory read | that core's memory had not granted or delivered the word: its words before came first |
//! | credit wait | the next buffer had no place for the flit |
//! | inject | the core put the word on its link |
//! | link | the flit was on a link |
//! | switch | it went through the stages of a switch, granted at once |
//! | behind | an earlier flit of the same queue had to leave first |
//! | arbitration | it could have gone, but another flit had the output or the input |
//! | operand slot | the engine's slot still held the operand before: that one waited for others |
//! | engine wait | all operands were there, but the engine served another id or had no place for a result |
//! | reduce | the reduction tree |
//! | memory write | the result stood before the receiver's memory |
//! | landing | the write itself, and what its core did after it |

use std::collections::HashMap;

use serde::Serialize;

use crate::fabric::{Journal, Moved, NodeKind, Plan};
use crate::piuma::{Job, REQUEST, RESPONSE, Registers, System};

/// What is asked.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ask<'a> {
    /// This collective only.
    pub collective: Option<&'a str>,
    /// The way of this word instead of the last one.
    pub packet: Option<u64>,
}

/// Where the cycles of one collective went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Why {
    /// The collective.
    pub collective: String,
    /// The word whose way is shown.
    pub word: u64,
    /// The core at which it landed.
    pub landed_at: String,
    /// First cycle.
    pub start_cycle: u64,
    /// Last cycle.
    pub end_cycle: u64,
    /// From first to last: the sum of all parts.
    pub latency_cycles: u64,
    /// The parts, in the order of time.
    pub parts: Vec<Part>,
    /// Which operand came last at which engine.
    pub engines: Vec<LastOperand>,
}

/// An interval of the critical path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Part {
    /// First cycle.
    pub from: u64,
    /// First cycle after it.
    pub to: u64,
    /// What happened.
    pub kind: Kind,
    /// On the way of what.
    pub phase: Phase,
    /// Where.
    pub place: String,
}

/// What a part of the latency was spent with; see the module's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Not called yet.
    LateStart,
    /// The core's memory.
    MemoryRead,
    /// No place in the next buffer.
    CreditWait,
    /// Onto the core's link.
    Inject,
    /// On a link.
    Link,
    /// Stages of a switch.
    Switch,
    /// Earlier flits of the queue.
    Behind,
    /// Lost to another flit.
    Arbitration,
    /// The engine's slot was taken.
    OperandSlot,
    /// The engine served others.
    EngineWait,
    /// The reduction tree.
    Reduce,
    /// The receiver's memory.
    MemoryWrite,
    /// The write itself.
    Landing,
}

impl Kind {
    /// All of them, in the order of a packet's way.
    pub const ALL: [Kind; 13] = [
        Kind::LateStart,
        Kind::MemoryRead,
        Kind::CreditWait,
        Kind::Inject,
        Kind::Link,
        Kind::Switch,
        Kind::Behind,
        Kind::Arbitration,
        Kind::OperandSlot,
        Kind::EngineWait,
        Kind::Reduce,
        Kind::MemoryWrite,
        Kind::Landing,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::LateStart => "late start",
            Kind::MemoryRead => "memory read",
            Kind::CreditWait => "credit wait",
            Kind::Inject => "inject",
            Kind::Link => "link",
            Kind::Switch => "switch",
            Kind::Behind => "behind",
            Kind::Arbitration => "arbitration",
            Kind::OperandSlot => "operand slot",
            Kind::EngineWait => "engine wait",
            Kind::Reduce => "reduce",
            Kind::MemoryWrite => "memory write",
            Kind::Landing => "landing",
        }
    }
}

/// The leg of the way a part belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// In the core, until its word is on the link.
    Inject,
    /// Towards the root.
    Climb,
    /// In engines.
    Reduce,
    /// From the root to the receivers.
    Broadcast,
    /// In the receiving core.
    Eject,
}

impl Phase {
    /// All of them, in order.
    pub const ALL: [Phase; 5] = [Phase::Inject, Phase::Climb, Phase::Reduce, Phase::Broadcast, Phase::Eject];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Inject => "inject",
            Phase::Climb => "climb",
            Phase::Reduce => "reduce",
            Phase::Broadcast => "broadcast",
            Phase::Eject => "eject",
        }
    }
}

/// The operand that an engine waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LastOperand {
    /// The switch.
    pub switch: String,
    /// The port by which it came.
    pub port: u16,
    /// The cycle in which it was there.
    pub cycle: u64,
    /// The other ports, and how many cycles earlier their operands were there.
    pub others: Vec<(u16, u64)>,
}

impl Why {
    /// Cycles by kind; kinds without any are left out.
    pub fn by_kind(&self) -> Vec<(Kind, u64)> {
        let sum = |kind: Kind| self.parts.iter().filter(|part| part.kind == kind).map(|part| part.to - part.from).sum();
        Kind::ALL.into_iter().map(|kind| (kind, sum(kind))).filter(|(_, cycles)| *cycles > 0).collect()
    }

    /// Cycles by phase; all of them.
    pub fn by_phase(&self) -> Vec<(Phase, u64)> {
        let sum =
            |phase: Phase| self.parts.iter().filter(|part| part.phase == phase).map(|part| part.to - part.from).sum();
        Phase::ALL.into_iter().map(|phase| (phase, sum(phase))).collect()
    }
}

/// Id, channel and number of a word.
type Word = (u16, u8, u64);

/// A journal, by what is asked of it.
pub struct Reader<'a> {
    plan: &'a Plan,
    journal: &'a Journal,
    registers: &'a Registers,
    /// Latency of the engines.
    tree: u64,
    /// Port 0 of every node.
    bases: Vec<u32>,
    /// Node of every port.
    nodes: Vec<u32>,
    /// The other end of every port's link, its latency and the cycles a flit takes.
    peers: Vec<Option<(u32, u64, u64)>>,
    entered: HashMap<(u32, Word), Vec<(u64, u64)>>,
    left: HashMap<(u32, Word), Vec<u64>>,
    /// Ports of a node whose queue a word left in a cycle.
    left_node: HashMap<(u32, u64, Word), u32>,
    /// Ports of a node by which a word was sent in a cycle.
    sent_node: HashMap<(u32, u64, Word), Vec<u32>>,
    /// All cycles in which something left the queue of a port and channel.
    departures: HashMap<(u32, u8), Vec<u64>>,
    /// All cycles in which something was sent on a port and channel.
    sends: HashMap<(u32, u8), Vec<u64>>,
}

impl<'a> Reader<'a> {
    /// Reads the journal of a system; `None` if it kept none.
    pub fn new(system: &'a System) -> Option<Self> {
        let (plan, journal) = (system.plan(), system.journal()?);
        let (mut bases, mut nodes) = (Vec::new(), Vec::new());
        for (number, node) in plan.nodes.iter().enumerate() {
            bases.push(nodes.len() as u32);
            nodes.extend((0..node.ports).map(|_| number as u32));
        }
        let mut peers = vec![None; nodes.len()];
        for link in &plan.links {
            let [a, b] = [link.a, link.b].map(|(node, port)| bases[node as usize] + u32::from(port));
            let (latency, flit) = (u64::from(link.latency), u64::from(link.cycles_per_flit));
            peers[a as usize] = Some((b, latency, flit));
            peers[b as usize] = Some((a, latency, flit));
        }
        let tree = system.joins().first().map_or(0, |ceng| ceng.cfg().tree.latency_cycles());
        let mut reader = Self {
            plan,
            journal,
            registers: &system.tables,
            tree,
            bases,
            nodes,
            peers,
            entered: HashMap::new(),
            left: HashMap::new(),
            left_node: HashMap::new(),
            sent_node: HashMap::new(),
            departures: HashMap::new(),
            sends: HashMap::new(),
        };
        for entry in &journal.entries {
            let word = (entry.tag.id(), entry.tag.vc(), entry.tag.seq());
            let (port, node) = (entry.port, reader.nodes[entry.port as usize]);
            match entry.what {
                Moved::Entered { ready } => reader.entered.entry((port, word)).or_default().push((entry.cycle, ready)),
                Moved::Left => {
                    reader.left.entry((port, word)).or_default().push(entry.cycle);
                    reader.left_node.insert((node, entry.cycle, word), port);
                    reader.departures.entry((port, word.1)).or_default().push(entry.cycle);
                }
                Moved::Sent => {
                    reader.sent_node.entry((node, entry.cycle, word)).or_default().push(port);
                    reader.sends.entry((port, word.1)).or_default().push(entry.cycle);
                }
            }
        }
        Some(reader)
    }

    fn is_switch(&self, node: u32) -> bool {
        self.plan.nodes[node as usize].kind == NodeKind::Switch
    }

    fn place(&self, port: u32) -> String {
        let node = self.nodes[port as usize];
        let name = &self.plan.nodes[node as usize].name;
        if self.is_switch(node) { format!("{name}.P{}", port - self.bases[node as usize]) } else { name.clone() }
    }

    /// Credits of an output channel in a cycle.
    fn credits(&self, port: u32, vc: u8, cycle: u64) -> u64 {
        let before =
            |list: Option<&Vec<u64>>, limit: u64| list.map_or(0, |list| list.partition_point(|at| *at < limit)) as u64;
        let Some((peer, latency, _)) = self.peers[port as usize] else { return u64::MAX };
        let delay = if self.is_switch(self.nodes[port as usize]) { u64::from(self.journal.credit_delay) } else { 0 };
        let returned = before(self.departures.get(&(peer, vc)), (cycle + 1).saturating_sub(latency + 1 + delay));
        let initial = u64::from(self.journal.credits[port as usize][usize::from(vc)]);
        (initial + returned).saturating_sub(before(self.sends.get(&(port, vc)), cycle))
    }

    /// The way of the last word of a collective, or of word `packet`, from its end back to its start. `jobs` are the parts of
    /// the participants with their end points, `times` its first and last cycle.
    ///
    /// # Errors
    /// There is no such word, or an event of its way is missing from the journal.
    pub fn explain(
        &self,
        name: &str,
        id: u16,
        jobs: &[(usize, &Job)],
        times: (u64, u64),
        packet: Option<u64>,
    ) -> Result<Why, String> {
        let last = |job: &Job| if job.kind().receives { job.landed_at().last().copied() } else { None };
        let Some(&(end, job)) = jobs.iter().max_by_key(|(end, job)| (job.end(), last(job), std::cmp::Reverse(*end)))
        else {
            return Err("nobody takes part".into());
        };
        let words = job.landed_at().len() as u64;
        let seq = packet.unwrap_or(words.saturating_sub(1));
        let end_base = self.plan.count(NodeKind::Switch) + self.plan.count(NodeKind::Bump);
        let node = (end_base + end) as u32;
        let port = self.bases[node as usize];
        let mut path = Path { parts: Vec::new(), engines: Vec::new(), phase: Phase::Eject };
        let (start, mut until) = (times.0, job.end().unwrap_or(times.1));

        // In the receiving core.
        let mut at = None;
        if job.kind().receives {
            let lands =
                *job.landed_at().get(seq as usize).ok_or_else(|| format!("there is no word {seq}; it has {words}"))?;
            if packet.is_some() {
                until = lands;
            }
            let taken = [RESPONSE, REQUEST].into_iter().filter_map(|vc| {
                let list = self.left.get(&(port, (id, vc, seq)))?;
                list.iter().copied().rfind(|cycle| *cycle <= lands).map(|cycle| (cycle, vc))
            });
            let (taken, vc) = taken.max().ok_or("the last word never left its queue")?;
            path.push(taken, until, Kind::Landing, self.place(port));
            at = Some((taken, vc));
        }
        let finish = until;
        if let Some((taken, vc)) = at {
            let (arrived, _) = self.entry(port, (id, vc, seq), taken)?;
            path.push(arrived, taken, Kind::MemoryWrite, self.place(port));
            self.climb(id, seq, vc, port, arrived, start, jobs, &mut path)?;
        } else {
            self.source(id, seq, until, start, (end, job), &mut path)?;
        }
        path.parts.reverse();
        path.engines.reverse();
        let why = Why {
            collective: name.to_owned(),
            word: seq,
            landed_at: self.place(port),
            start_cycle: start,
            end_cycle: finish,
            latency_cycles: finish - start,
            parts: path.parts,
            engines: path.engines,
        };
        let sum: u64 = why.parts.iter().map(|part| part.to - part.from).sum();
        let joined = why.parts.windows(2).all(|pair| pair[0].to == pair[1].from);
        if sum != why.latency_cycles || !joined {
            return Err(format!("the parts add up to {sum} of {} cycles", why.latency_cycles));
        }
        Ok(why)
    }

    /// When a word that left a queue by `until` had come into it, and from when on it could have left.
    fn entry(&self, port: u32, word: Word, until: u64) -> Result<(u64, u64), String> {
        let list = self.entered.get(&(port, word)).map_or(&[][..], Vec::as_slice);
        let found = list.iter().rfind(|(cycle, _)| *cycle <= until);
        found.copied().ok_or_else(|| format!("word {} never came to {}", word.2, self.place(port)))
    }

    /// Follows a word that came into the queue of `port` in cycle `arrived` back to where it was made.
    #[allow(clippy::too_many_arguments)]
    fn climb(
        &self,
        id: u16,
        seq: u64,
        mut vc: u8,
        mut port: u32,
        mut arrived: u64,
        start: u64,
        jobs: &[(usize, &Job)],
        path: &mut Path,
    ) -> Result<(), String> {
        let post = u64::from(self.journal.post);
        loop {
            // Over the link.
            let (peer, latency, flit) = self.peers[port as usize].ok_or("a queue without a link")?;
            let node = self.nodes[peer as usize];
            let from_switch = self.is_switch(node);
            let sent = arrived - latency - flit - if from_switch { post } else { 0 };
            path.phase = if vc == RESPONSE { Phase::Broadcast } else { Phase::Climb };
            let link = format!("{} -> {}", self.place(peer), self.place(port));
            if !from_switch {
                path.push(sent + 1, arrived, Kind::Link, link);
                path.phase = Phase::Inject;
                path.push(sent, sent + 1, Kind::Inject, self.place(peer));
                let end = node as usize - self.plan.count(NodeKind::Switch) - self.plan.count(NodeKind::Bump);
                let job = jobs.iter().find(|(at, job)| *at == end && job.id() == id).ok_or("a stranger sent it")?;
                return self.source(id, seq, sent, start, *job, path);
            }
            path.push(sent + post + 1, arrived, Kind::Link, link);
            path.push(sent, sent + post + 1, Kind::Switch, self.place(peer));

            // Out of a queue of this switch.
            let word = (id, vc, seq);
            let mut queue = *self
                .left_node
                .get(&(node, sent, word))
                .ok_or_else(|| format!("word {seq} left no queue of {}", self.place(peer)))?;
            let mut left = sent;
            let engine = self.bases[node as usize] + u32::from(self.registers.engine_port());
            loop {
                let (came, ready) = self.entry(queue, (id, vc, seq), left)?;
                self.waited(node, queue, (id, vc, seq), ready, left, path);
                path.push(came, ready, Kind::Switch, self.place(queue));
                if queue != engine {
                    (port, arrived) = (queue, came);
                    break;
                }
                // Out of the engine: its last operand.
                let name = self.plan.nodes[node as usize].name.clone();
                path.phase = Phase::Reduce;
                let gathered = came - self.tree;
                path.push(gathered, came, Kind::Reduce, format!("{name}.ceng"));
                let mut operands: Vec<(u64, u16, u64)> = Vec::new();
                for input in 0..64u16 {
                    if self.registers.engine_inputs(node, id) >> input & 1 == 0 {
                        continue;
                    }
                    let at = self.bases[node as usize] + u32::from(input);
                    let list = self.left.get(&(at, (id, REQUEST, seq))).map_or(&[][..], Vec::as_slice);
                    let left = list.iter().copied().rfind(|cycle| cycle + post < gathered);
                    let left = left.ok_or_else(|| format!("an operand of {name} is missing on port {input}"))?;
                    operands.push((left + post + 1, input, left));
                }
                let &(visible, input, operand) = operands
                    .iter()
                    .max_by_key(|(visible, input, _)| (*visible, std::cmp::Reverse(*input)))
                    .ok_or("an engine without operands")?;
                path.push(visible, gathered, Kind::EngineWait, format!("{name}.ceng"));
                let others = operands
                    .iter()
                    .filter(|(_, port, _)| *port != input)
                    .map(|(there, port, _)| (*port, visible - there))
                    .collect();
                path.engines.push(LastOperand { switch: name, port: input, cycle: visible, others });
                path.phase = Phase::Climb;
                vc = REQUEST;
                queue = self.bases[node as usize] + u32::from(input);
                left = operand;
                path.push(operand, visible, Kind::Switch, self.place(queue));
            }
        }
    }

    /// Says for each cycle of a wait in a queue what it was for.
    fn waited(&self, node: u32, queue: u32, word: Word, ready: u64, left: u64, path: &mut Path) {
        let vc = word.1;
        let departures = self.departures.get(&(queue, vc)).map_or(&[][..], Vec::as_slice);
        let before = departures.partition_point(|cycle| *cycle < left);
        // The queue's head leaves in a cycle; the next one can leave in the cycle after it.
        let head_from = before.checked_sub(1).map_or(0, |at| departures[at] + 1);
        let outputs = self.sent_node.get(&(node, left, word)).map_or(&[][..], Vec::as_slice);
        for cycle in (ready..left).rev() {
            let (kind, place) = if cycle < head_from {
                (Kind::Behind, self.place(queue))
            } else if outputs.is_empty() {
                (Kind::OperandSlot, self.place(queue))
            } else if let Some(out) = outputs.iter().find(|out| self.credits(**out, vc, cycle) == 0) {
                (Kind::CreditWait, self.place(*out))
            } else {
                (Kind::Arbitration, self.place(outputs[0]))
            };
            path.push(cycle, cycle + 1, kind, place);
        }
    }

    /// What the core did from the start of the collective until it sent a word.
    fn source(
        &self,
        id: u16,
        seq: u64,
        sent: u64,
        start: u64,
        (end, job): (usize, &Job),
        path: &mut Path,
    ) -> Result<(), String> {
        let _ = (id, seq);
        let node = self.plan.count(NodeKind::Switch) + self.plan.count(NodeKind::Bump) + end;
        let port = self.bases[node];
        path.phase = Phase::Inject;
        if job.start() > sent {
            return Err("a word left before its core had started".into());
        }
        for cycle in (job.start()..sent).rev() {
            let kind = if self.credits(port, REQUEST, cycle) == 0 { Kind::CreditWait } else { Kind::MemoryRead };
            path.push(cycle, cycle + 1, kind, self.place(port));
        }
        path.push(start, job.start(), Kind::LateStart, self.place(port));
        Ok(())
    }
}

/// A path under construction, from its end to its start.
struct Path {
    parts: Vec<Part>,
    engines: Vec<LastOperand>,
    phase: Phase,
}

impl Path {
    /// Adds what came before everything that is there.
    fn push(&mut self, from: u64, to: u64, kind: Kind, place: String) {
        if from == to {
            return;
        }
        if let Some(last) = self.parts.last_mut()
            && (last.kind, last.phase, &last.place, last.from) == (kind, self.phase, &place, to)
        {
            last.from = from;
            return;
        }
        self.parts.push(Part { from, to, kind, phase: self.phase, place });
    }
}
