//! Where the cycles of a collective's latency went: the account. The engines that it is read from are the scenario's.

use serde::Serialize;

/// What a workload is called where one is asked for.
pub const WORKLOAD: &str = "workload";

/// Which collective, word or packet to explain.
#[derive(Debug, Clone, Copy, Default)]
pub struct WhyQuery<'a> {
    /// This collective only.
    pub collective: Option<&'a str>,
    /// The word, round or run to explain instead of the last or slowest one. For a collective of segments it is the
    /// word of the whole vector, unless a segment is named; for traffic without a source it is the packet's place in
    /// the order of arrival.
    pub packet: Option<u64>,
    /// Of a point-to-point packet: the end point that sent it; `packet` is its number there.
    pub source: Option<u32>,
}

/// Where the cycles of one collective went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Why {
    /// The collective.
    pub collective: String,
    /// What `number` counts: "word", "round", "run", "rank" or "packet".
    pub what: String,
    /// The word, round, run, rank or packet whose way is shown.
    pub number: u64,
    /// The end point at which it arrived.
    pub landed_at: String,
    /// First cycle.
    pub start_cycle: u64,
    /// Last cycle.
    pub end_cycle: u64,
    /// From first to last: the sum of all parts.
    pub latency_cycles: u64,
    /// The cycle in which the last contribution was ready, where results count from there; no part crosses it.
    pub last_contribution: Option<u64>,
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
    /// The management agent makes the tree.
    SetUp,
    /// Programs wrote its registers.
    Configuration,
    /// A program's call on its way, or behind another one.
    Call,
    /// Signals of a claim on their way: ready, request, grant.
    Claim,
    /// Another collective held what it claimed.
    ClaimHeld,
    /// A participant worked.
    Compute,
    /// The core's memory.
    MemoryRead,
    /// Processes that receive, merge, send.
    Software,
    /// Messages before it.
    Queue,
    /// No place in the next buffer.
    CreditWait,
    /// Onto the block's link.
    Inject,
    /// The frame before its last flit.
    Frame,
    /// On a link.
    Link,
    /// Stages of a switch.
    Switch,
    /// Earlier flits of the queue.
    Behind,
    /// Lost to another flit.
    Arbitration,
    /// A link with faults.
    HeldUp,
    /// Stages of an engine around its arithmetic.
    Engine,
    /// The engine's slot was taken.
    OperandSlot,
    /// The engine served others.
    EngineWait,
    /// The arithmetic.
    Reduce,
    /// A timer had to run out.
    TimeOut,
    /// The receiver's memory.
    MemoryWrite,
    /// The write itself.
    Landing,
    /// A message of a workload.
    Message,
    /// A collective of a workload.
    Collective,
}

impl Kind {
    /// All of them, in the order of a packet's way.
    pub const ALL: [Kind; 27] = [
        Kind::LateStart,
        Kind::SetUp,
        Kind::Configuration,
        Kind::Call,
        Kind::Claim,
        Kind::ClaimHeld,
        Kind::Compute,
        Kind::MemoryRead,
        Kind::Software,
        Kind::Queue,
        Kind::CreditWait,
        Kind::Inject,
        Kind::Frame,
        Kind::Link,
        Kind::Switch,
        Kind::Behind,
        Kind::Arbitration,
        Kind::HeldUp,
        Kind::Engine,
        Kind::OperandSlot,
        Kind::EngineWait,
        Kind::Reduce,
        Kind::TimeOut,
        Kind::MemoryWrite,
        Kind::Landing,
        Kind::Message,
        Kind::Collective,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::LateStart => "late start",
            Kind::SetUp => "set-up",
            Kind::Configuration => "configuration",
            Kind::Call => "call",
            Kind::Claim => "claim",
            Kind::ClaimHeld => "claim held",
            Kind::Compute => "compute",
            Kind::MemoryRead => "memory read",
            Kind::Software => "software",
            Kind::Queue => "queue",
            Kind::CreditWait => "credit wait",
            Kind::Inject => "inject",
            Kind::Frame => "frame",
            Kind::Link => "link",
            Kind::Switch => "switch",
            Kind::Behind => "behind",
            Kind::Arbitration => "arbitration",
            Kind::HeldUp => "held up",
            Kind::Engine => "engine",
            Kind::OperandSlot => "operand slot",
            Kind::EngineWait => "engine wait",
            Kind::Reduce => "reduce",
            Kind::TimeOut => "time-out",
            Kind::MemoryWrite => "memory write",
            Kind::Landing => "landing",
            Kind::Message => "message",
            Kind::Collective => "collective",
        }
    }
}

/// The leg of the way a part belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Commands and armings on their way to the participants.
    Command,
    /// In the participant, until its word is on the link.
    Inject,
    /// Towards the root.
    Climb,
    /// In engines and where software reduces.
    Reduce,
    /// From the root to the receivers.
    Broadcast,
    /// In the receiving participant.
    Eject,
    /// A point-to-point packet on its way.
    Transit,
}

impl Phase {
    /// All of them, in order.
    pub const ALL: [Phase; 7] =
        [Phase::Command, Phase::Inject, Phase::Climb, Phase::Reduce, Phase::Broadcast, Phase::Eject, Phase::Transit];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Command => "command",
            Phase::Inject => "inject",
            Phase::Climb => "climb",
            Phase::Reduce => "reduce",
            Phase::Broadcast => "broadcast",
            Phase::Eject => "eject",
            Phase::Transit => "transit",
        }
    }
}

/// The operand that an engine waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LastOperand {
    /// The switch or engine.
    pub switch: String,
    /// The port by which it came, or who sent it.
    pub from: String,
    /// The cycle in which it was there.
    pub cycle: u64,
    /// The others, and how many cycles earlier they were there.
    pub others: Vec<(String, u64)>,
}

impl Why {
    /// Cycles behind the last contribution.
    pub fn since_last_contribution(&self) -> Option<u64> {
        self.last_contribution.map(|cycle| self.end_cycle - cycle)
    }

    /// The same cut in two where latency counts from the last contribution: what was before it, if anything was, and the
    /// latency itself.
    pub fn at_last_contribution(&self) -> (Option<Why>, Why) {
        let Some(cut) = self.last_contribution.filter(|cut| (self.start_cycle + 1..self.end_cycle).contains(cut))
        else {
            return (None, self.clone());
        };
        let part = |from: u64, to: u64| {
            let within = |part: &&Part| part.from >= from && part.to <= to;
            let parts = self.parts.iter().filter(within).cloned().collect();
            Why { start_cycle: from, end_cycle: to, latency_cycles: to - from, parts, ..self.clone() }
        };
        (Some(part(self.start_cycle, cut)), part(cut, self.end_cycle))
    }

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
