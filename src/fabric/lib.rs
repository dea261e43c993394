//! The fabric: switches, buffers, credits, virtual channels, arbiters, links, routing, topologies, background traffic,
//! and the two forms in which an engine joins.
//!
//! | file | what |
//! |---|---|
//! | [`flit`](Flit) | what a link carries in a cycle |
//! | [`portset`](PortSet) | sets of ports |
//! | [`plan`](Plan) | a system before it is built: nodes, links, levels |
//! | [`topology`] | meshes, tori, HyperX, fat trees, dragonflies, files, and the PIUMA die |
//! | [`routing`] | point-to-point routes, and the proof that they arrive and cannot deadlock |
//! | [`wires`](Wires) | the arenas: input queues, flits and credits under way, and how they move |
//! | `node` | the record of a node that every evaluation reads first: ports, flags, bits of its queues |
//! | [`tables`](Tables) | the tables of switches: outputs of multicasts, routes, classes |
//! | [`ports`](LinkCount) | the sending side of a port: link, credits, owners, counters |
//! | [`switch`](Pipeline) | a switch is only wiring between the next two |
//! | `forward` | set-routed packets: lock step, wormhole, independent copies |
//! | [`frames`](check_buffers) | frames that must fit: the check of buffers before cycle 0 |
//! | `unicast` | point-to-point packets: route computation, channel and switch allocation |
//! | `class` | priority among packets that have traffic classes |
//! | [`arbiter`] | one file a policy |
//! | [`join`](Join) | the two forms in which an engine joins |
//! | `crc` | the check sum of frames |
//! | [`fault`] | links that lose, damage, repeat or delay frames |
//! | [`replay`] | links that keep what they send until it is acknowledged |
//! | [`monitor`](SwitchCfg) | link monitors of checked runs |
//! | [`stage_waves`] | the stage registers of engines in waves |
//! | [`network`](Network) | the loop that clocks it all, waves, the watchdog's view |
//! | `activity`, `driver` | spans of cycles, what came about in them, and changes between two of them |
//! | [`simulation`](Simulation) | the interface of a run to a system of any family |
//! | `canonical_state` | [what decides how a system goes on](CanonicalState), for searches |
//! | [`partition`](Parts) | a system in parts: for threads, and for the cache |
//! | [`exchange`] | what passes between processes that evaluate a system together |
//! | [`shared`](Shared) | tables that threads read while a cycle runs |
//! | `ranks` | steps of a system in parts, within a process and among several |
//! | `windows` | parts that run ahead of each other within the latency of the links between them |
//! | [`traffic`] | point-to-point sources and sinks |
//! | [`bench`](Bench) | a block alone, clocked by hand |

mod activity;
pub mod arbiter;
mod arena;
mod autopsy;
mod awake;
pub mod bench;
mod canonical_state;
mod class;
mod crc;
mod driver;
pub mod exchange;
pub mod fault;
mod flit;
mod forward;
mod frames;
mod head_waits;
mod join;
mod journal;
mod monitor;
mod network;
mod node;
mod part;
mod partition;
mod pipeline;
mod plan;
mod ports;
mod portset;
mod ranks;
pub mod replay;
mod router;
pub mod routing;
mod segmentation;
mod shared;
mod simulation;
mod span;
pub mod stage_waves;
mod switch;
mod switch_alloc;
mod switch_parts;
mod switch_view;
mod tables;
pub mod topology;
pub mod traffic;
mod unicast;
mod vc_alloc;
mod waits;
mod waves;
mod windows;
mod wires;

pub use arena::{BlockSlices, Bumps};
pub use bench::Bench;
pub use canonical_state::{BufferCredits, CanonicalState};
pub use crc::crc32;
pub use exchange::Exchange;
pub use flit::{Flit, MAX_ENDS, MAX_IDS, Tag};
pub use frames::{ShortBuffer, check_buffers};
pub use join::{Block, Join, JoinCx, JoinOut, NoBump, NoJoin, QueueLengths, pass_through};
pub use journal::{Entry, FlitEvent, Journal};
pub use network::{Blocks, Evaluation, LinkLoad, Network, Step};
pub use part::Holds;
pub use partition::Parts;
pub use pipeline::{Pipeline, SwitchCfg};
pub use plan::{MAX_NODES, NodeKind, Plan, PlanLink, PlanNode, Vcs};
pub use ports::LinkCount;
pub use portset::PortSet;
pub use router::{RouterCfg, SwitchAllocator, VcAllocator};
pub use segmentation::{FlitSize, Reassembly, WideFlit};
pub use shared::Shared;
pub use simulation::Simulation;
pub use tables::{Route, RouteView, Shares, Tables};
pub use waits::{Cause, HeadWaits, WaitCycles};
pub use wires::{Channels, Depths, FramePart, Io, Phase, Wires, credit_round_trip};
