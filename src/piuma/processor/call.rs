//! The registers of a collective that programs call, and of their calls.

use super::super::job::{Conversion, JobKind, ScanEnd};
use super::super::program::Intrinsic;
use std::sync::Arc;
use watershed_kernel::Cycle;

/// What a core is in a collective that programs call.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
pub struct Role {
    /// How it is called.
    pub intrinsic: Intrinsic,
    /// What the core does in it.
    pub kind: JobKind,
    /// Elements in a word of memory, and in one of the network.
    pub lanes: (u64, u64),
    /// Sums in a wider type.
    pub conversion: Option<Conversion>,
    /// Scans.
    pub scan: Option<ScanEnd>,
    /// Is in a conflict set: calls [claim](crate::claim) before they start.
    pub claims: bool,
}

/// A call of a collective.
#[derive(Clone, Debug, watershed_state::Saved)]
pub struct Call {
    /// Collective id.
    pub id: u16,
    /// Elements.
    pub elements: u64,
    /// Cycle in which the instruction was issued.
    pub issued: Cycle,
    /// The core's job, once it has started.
    pub job: Option<usize>,
    /// The vector, each word as it was when memory granted it; once the call is complete.
    pub input: Arc<[u64]>,
    /// Cycle in which it was complete.
    pub end: Option<Cycle>,
    pub(super) from: u64,
    pub(super) to: u64,
}

/// A call that may start when its claim is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct ReadyCall {
    /// Collective id.
    pub id: u16,
    /// The core's job.
    pub job: usize,
    /// The cycle from which on the core is ready.
    pub cycle: Cycle,
}

/// The calls of a core.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
pub(super) struct Calls {
    /// In the order in which they were issued.
    pub(super) list: Vec<Call>,
    /// Whether jobs keep the cycles in which their words land.
    pub(super) keeps_times: bool,
    /// Calls that have become ready to claim.
    pub(super) ready: Vec<ReadyCall>,
}
