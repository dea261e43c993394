//! The PIUMA family: configuration-register collectives.
//!
//! Sources: "In-network multicast operations" (US 12388712 B2) and "Accelerating Allreduce with in-network reduction on
//! Intel PIUMA".
//!
//! | file | what |
//! |---|---|
//! | [`registers`](Registers) | configuration registers per port, collective id and channel; address map |
//! | [`ceng`](Ceng) | the collective engine: operand slots, pipelined tree |
//! | [`core`](Core) | the memory end point: bandwidth, order of reads and writes |
//! | [`end`](End) | the block at the port of a switch: core, processor, ranks, traffic |
//! | [`job`](Job) | the part of one core in one collective: fragmenter, element counter, words |
//! | [`program`] | the instruction set of threads and its text form |
//! | [`processor`] | pipelines, threads, local memory, interrupt controller; intrinsics |
//! | [`host`] | collectives in software over point-to-point messages |
//! | [`rank`] | a rank of an application: computing, messages, collectives |
//! | `thread`, `icu` | the registers of a thread; the interrupt controller unit |
//! | [`access`] | accesses to configuration registers of other switches: requests and answers |
//! | [`reach`] | the distance of configuration registers from a core that no packet has to cross, in cycles |
//! | [`cce`] | the core collective engine: multicast queues and machine specific registers |
//! | [`claim`] | embeddings that overlap take turns: ready, grant, done |
//! | [`scan`] | the scan unit beside the tree: prefixes in rank order |
//! | [`embed`] | the built-in embedding: it only writes registers |
//! | [`ordered`] | the embedding of scans on systems of nodes, which joins neighbours in rank |
//! | [`legality`] | the checks of a configuration before cycle 0, and the tree read back from it |

pub mod access;
pub mod cce;
mod ceng;
pub mod claim;
mod core;
pub mod embed;
mod end;
pub mod host;
mod icu;
mod job;
pub mod legality;
pub mod ordered;
pub mod processor;
pub mod rank;
pub mod reach;
mod registers;
pub mod scan;
mod scan_stages;
mod thread;
mod view;
mod word_hasher;

pub use watershed_piuma_interface::channels::{
    CHANNELS, MAX_PLANES, REQUEST, RESPONSE, channel, channel_names, kind, plane,
};
#[doc(inline)]
pub use watershed_piuma_interface::program;

pub use access::RegisterPort;
pub use cce::Cce;
pub use ceng::{Ceng, CengCfg, Tap};
pub use core::{Core, Memory, MemoryCfg};
pub use end::{End, EndExtras};
pub use job::{ClaimTimes, Conversion, Job, JobKind, ScanEnd, VectorPlace};
pub use processor::{IdUse, Processor, ProcessorCfg, Store};
pub use registers::{AddressError, OpSelect, RegisterName, Registers, RegistersCfg};
pub use view::{View, view, view_mut};

watershed_fabric::system!(
    /// A PIUMA system: registers, a CENG in every switch, nothing in the wire, cores at the end.
    Registers, Ceng, watershed_fabric::NoBump<Registers>, End, 1
);
