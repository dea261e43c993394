//! The armed family: reduction engines that multicast frames arm for one reduction at a time.
//!
//! Source: "System and method for dynamic allocation of reduction engines" (US 12393530 B2); bit layouts and code numbers
//! from the public host driver of the same hardware (cxi).
//!
//! | file | what |
//! |---|---|
//! | [`header`] | reduction header, multicast address, sequence numbers |
//! | [`frame`] | the 84-byte frame, its check sum, its Ethernet form |
//! | [`tables`] | multicast tables: entries, wait counts, the discard port |
//! | [`agent`] | spanning trees on any switch graph, the computation of the management agent |
//! | [`manage`] | the agent's frames: requests, orders to switches, answers |
//! | [`manager`], [`client`] | the agent as a process at run time, and the root process that sends it requests |
//! | [`admission`] | which frames are obeyed, and the counters of the others |
//! | [`engine`] | the reduction engine in the wire |
//! | [`job`] | a reduction job: rounds, keys, data, timing |
//! | [`composed`] | operations that end points compose of rounds: means, deterministic sums |
//! | [`root`], [`leaf`], [`soft`] | the processes at end points |
//! | [`end`] | the end point: NIC, processor |
//! | [`stranger`] | processes that send frames without valid credentials |
//! | [`ethernet`] | the edge port of an Ethernet NIC |
//! | [`reduce`] | whole contributions through one engine |
//! | [`View`] | what a run sees of a system that has other families in it, too |
//! | [`station`] | what is written down beside the hardware, for checks and ladders |
//!
//! # Journey of a contribution
//!
//! 1. The root's arm frame descends on the [`DOWN`] channel. Each engine on its way takes a descriptor when the tail has
//!    passed; each switch copies the frame to its child ports; every leaf gets it.
//! 2. A leaf computes, and sends a frame with count 1 on the [`UP`] channel.
//! 3. The switch finds the entry of the multicast id; the frame came in by a child port, so it goes to the parent port.
//! 4. The engine behind that port stores the frame, checks its CRC, finds the descriptor, and reduces it into it.
//! 5. When the counts have come to the wait count, or time is up, one frame with the sum of the counts goes on to the
//!    next switch, and the descriptor is free.
//! 6. The root merges what arrives, adds its own contribution, and sends the result down; the same frame arms the engines for
//!    the next round.

pub mod admission;
pub mod agent;
mod assembly;
pub mod client;
pub mod end;
pub mod engine;
pub mod ethernet;
pub mod job;
pub mod leaf;
pub mod manage;
pub mod manager;
pub mod reduce;
pub mod root;
pub mod soft;
pub mod station;
pub mod stranger;
pub mod tables;
mod view;

#[doc(inline)]
pub use watershed_armed_interface::{composed, frame, header};

pub use admission::{Keys, Owner, Refusals, Refused};
pub use agent::{Agent, Refusal, SpanningTree};
pub use client::{Client, ClientState};
pub use composed::Composition;
pub use end::End;
pub use engine::{Engine, EngineCfg, EngineCounts, Hazard};
pub use ethernet::Adapter;
pub use frame::{FRAME_BYTES, FRAME_WORDS, Frame, FrameError, Portals};
pub use header::{Address, Header};
pub use job::{Compute, Inputs, Job, LateParticipant, Overheads};
pub use leaf::{Leaf, LeafState};
pub use manager::{Manager, ManagerCfg};
pub use reduce::{Contribution, Outcome, reduce_contributions, reduce_with};
pub use root::{Root, RootState, RoundEnd};
pub use soft::Soft;
pub use station::Tokens;
pub use stranger::{Defect, ForgedKind, OtherTree, Stranger};
pub use tables::{AgentInfo, AgentRoutes, CHANNELS, DOWN, Discard, Entry, MANAGE, Tables, TablesCfg, UP, WORDS};
pub use view::{View, view};
pub use watershed_armed_interface::ManagerCounts;

pub use watershed_fabric::fault::{Direction, Effect, Fault, FaultyLink, LinkLayer};
use watershed_fabric::traffic::WithTraffic;
use watershed_fabric::{Block, Io};
use watershed_kernel::{Cycle, Wake};
use watershed_probe::Scope;
use watershed_state::state;

/// A block in a wire of an armed system.
#[derive(Clone, Debug)]
pub enum WireBlock {
    /// A reduction engine.
    Engine(Box<Engine>),
    /// A link with faults.
    Fault(Box<FaultyLink>),
    /// The edge port of an Ethernet NIC.
    Adapter(Box<Adapter>),
}

state!(
    enum WireBlock {
        Engine,
        Fault,
        Adapter,
    }
);

impl WireBlock {
    /// The engine, if it is one.
    pub fn engine(&self) -> Option<&Engine> {
        match self {
            WireBlock::Engine(engine) => Some(engine),
            _ => None,
        }
    }

    /// The link that misbehaves, if it is one.
    pub fn fault(&self) -> Option<&FaultyLink> {
        match self {
            WireBlock::Fault(link) => Some(link),
            _ => None,
        }
    }

    /// Whether something here waits for a time that will come: a time-out of an engine, a frame that a fault delays.
    pub fn expects(&self, now: Cycle) -> bool {
        match self {
            WireBlock::Engine(engine) => engine.last_deadline().is_some_and(|cycle| cycle > now),
            WireBlock::Fault(link) => link.holds(now),
            WireBlock::Adapter(_) => false,
        }
    }
}

impl Block for WireBlock {
    type Tables = Tables;

    fn tick(&mut self, io: &mut Io<'_>, tables: &Tables) -> Wake {
        match self {
            WireBlock::Engine(engine) => engine.tick(io, tables),
            WireBlock::Fault(link) => {
                link.tick(io, &tables::Frames { agent: tables.managed().is_some(), cut: tables.cut })
            }
            WireBlock::Adapter(adapter) => adapter.tick(io, tables),
        }
    }

    fn open(&self) -> Option<String> {
        match self {
            WireBlock::Engine(engine) => engine.open(),
            WireBlock::Fault(link) => link.open(),
            WireBlock::Adapter(_) => None,
        }
    }

    fn probe(&self, scope: &mut Scope<'_>) {
        match self {
            WireBlock::Engine(engine) => engine.probe(scope),
            WireBlock::Fault(link) => link.probe(scope),
            WireBlock::Adapter(adapter) => adapter.probe(scope),
        }
    }

    const STAGES: &'static [&'static str] = &["engine.unit"];

    fn watch(&mut self, watched: bool, tables: &Tables) {
        if let WireBlock::Engine(engine) = self {
            engine.watch(watched, &tables.cfg.engine);
        }
    }

    fn stages_moved(&self) -> bool {
        self.engine().is_some_and(Engine::stages_moved)
    }

    fn probe_stages(&self, scope: &mut Scope<'_>) {
        if let WireBlock::Engine(engine) = self {
            engine.probe_stages(scope);
        }
    }
}

watershed_fabric::system!(
    /// An armed system: multicast tables, a discard port in every switch, engines and faults in the wires.
    Tables, Discard, WireBlock, WithTraffic<End>, WORDS
);
