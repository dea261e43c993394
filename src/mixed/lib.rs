//! Systems with the engines of several families in one network (requirement X-JOB-2).
//!
//! Each family's blocks are the ones that they are in a system of their own. What they share is divided by virtual channel:
//!
//! | channels, in the order of their numbers | whose | how many |
//! |---|---|---|
//! | set-routed | PIUMA's requests and responses | two a plane; none without its engines |
//! | | the armed family's: up, down, the agent's | two or three |
//! | point-to-point | messages of armed software reductions | a share of `switch.point_to_point_vcs` |
//! | | frames of the PBV family | one |
//! | | messages of PIUMA's programs, of hosts and of ranks | a share |
//! | | background traffic | a share a lane |
//!
//! Of set-routed channels the highest goes first at an output, and all of them go before point-to-point ones: the armed family's
//! frames before PIUMA's flits *\[chosen\]*. Packets never leave the channels of their family, so what cannot deadlock alone cannot
//! deadlock beside others: no family waits for another but for the crossbar and the wire, which are granted flit by flit.
//!
//! | place | what stands there | whose turn it is |
//! |---|---|---|
//! | internal port of a switch ([`FamilyJoins`]) | the CENG, and the port where armed frames are discarded and orders obeyed | an answer to an order goes before a result |
//! | wire ([`WireBlock`]) | an engine of one family | what is not for it passes beside it; both take turns |
//! | end point ([`End`]) | core, armed processes, PBV node, traffic | the families take turns, traffic goes last |
//!
//! All turns are *\[chosen\]*. A block sees the channels of its family only, counted from 0 ([`Channels`]); [`Map`] says where they are.

mod end;
mod join;
mod tables;
pub mod view;
mod wire_block;

pub use end::{ARMED, End, PBV};
pub use join::FamilyJoins;
pub use tables::Tables;
pub use wire_block::WireBlock;

pub use watershed_fabric::Channels;
pub use watershed_mixed_interface::{ChannelDemand, Map};

/// Words of a port set: as many as any of the families has.
pub const WORDS: usize = watershed_armed::WORDS;

watershed_fabric::system!(
    /// A system with engines of several families.
    Tables, FamilyJoins, WireBlock, End, WORDS
);
