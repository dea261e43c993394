//! The PBV family: addressable collective engines with participant bit vectors.
//!
//! Source: "In-switch collective primitive processing" (US 20250267065 A1), paragraphs 91 to 242.
//!
//! | file | what |
//! |---|---|
//! | [`packet`] | frames, bit by bit |
//! | [`tables`] | PBV table, settings and counters; register map at 0xC000 |
//! | [`checker`] | whole frames: which unit they are for, and what is refused |
//! | [`ce`] | collective engine: messages in and out, reduction, watchdogs and retries |
//! | [`context`] | context store: the fields and states of a context |
//! | [`tracking`] | tracking store: PBV and p_count, read-modify-write pipeline |
//! | [`engine`] | packet engine in the wire: interposer, checker, registers |
//! | [`gather`] | the source that merges responses in software |
//! | [`metrics`] | congestion metrics of an engine's queues |
//! | [`node`] | end points with task times; the source that configures |
//! | `cycle_record` | what is kept of an engine's cycles, for another one beside it |
//! | `output` | output queue: messages that leave, refusals in places of their own |
//! | [`priority`] | traffic classes: the order of waiting frames |
//! | [`reports`] | unsolicited congestion reports |
//! | [`routes`] | device IDs, addresses, route tables |
//! | [`plan`] | collectives as trees of engines: tables, records and frames that set them up |
//! | [`reduce`](mod@reduce) | operands through one engine, for the command line |
//! | [`system`] | switches, links, engines and nodes as one system; the source's examples |
//! | [`event`] | events of sending and receiving, with their cycles |
//! | [`fault`] | how a link with faults recognises and damages frames |
//!
//! Frames travel on point-to-point channel 0, so that messages from one device to another never overtake each other; a
//! flit is eight bytes of a frame (see [`packet`]).

pub mod ce;
pub mod checker;
pub mod context;
mod cycle_record;
pub mod engine;
pub mod event;
pub mod fault;
pub mod gather;
pub mod metrics;
pub mod node;
mod output;
pub mod plan;
pub mod priority;
pub mod reduce;
pub mod reports;
pub mod routes;
pub mod system;
pub mod tables;
pub mod tracking;
mod view;

#[doc(inline)]
pub use watershed_pbv_interface::packet;

pub use engine::Engine;
pub use node::Node;
pub use routes::Directory;
pub use system::System;
pub use view::{View, view};
