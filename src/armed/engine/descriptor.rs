//! The descriptors of a reduction engine, and the ports of the memory they are in.

use crate::admission::Keys;
use crate::frame::Frame;
use crate::header::Address;
use watershed_arith::Quad;
use watershed_kernel::Cycle;
use watershed_probe::EnumTable;

/// States of a descriptor in waves.
pub(super) static STATES: EnumTable = EnumTable { name: "descriptor", names: &["FREE", "ARMED", "PARTIAL", "MERGING"] };

/// The state of one active reduction.
#[derive(Clone, Debug, watershed_state::Saved)]
pub(super) struct Descriptor {
    pub(super) active: bool,
    /// A read-modify-write is in the pipeline.
    pub(super) busy: bool,
    /// Which arming this is: what the pipeline holds for an earlier one is discarded.
    pub(super) generation: u32,
    pub(super) address: Address,
    pub(super) keys: Keys,
    pub(super) seqno: u16,
    pub(super) wait_count: u32,
    pub(super) count: u32,
    pub(super) deadline: Cycle,
    /// Free, and until this cycle its address and number are those of the reduction that it held.
    pub(super) known_until: Cycle,
    /// The port the arm frame came in by.
    pub(super) parent: u16,
    /// Headers and operation of the first contribution, and what has been reduced so far.
    pub(super) first: Option<Frame>,
    pub(super) quad: Quad,
    /// Frames that were merged, in order (golden check).
    pub(super) merged: Vec<u64>,
}

impl Descriptor {
    pub(super) fn free() -> Descriptor {
        Descriptor {
            active: false,
            busy: false,
            generation: 0,
            address: Address { multicast_id: 0, reduction_id: 0 },
            keys: Keys::default(),
            seqno: 0,
            wait_count: 0,
            count: 0,
            deadline: 0,
            known_until: 0,
            parent: 0,
            first: None,
            quad: Quad::default(),
            merged: Vec::new(),
        }
    }

    pub(super) fn state(&self) -> u64 {
        match (self.active, self.busy, self.count) {
            (false, ..) => 0,
            (true, true, _) => 3,
            (true, false, 0) => 1,
            (true, false, _) => 2,
        }
    }

    pub(super) fn free_at(&mut self, now: Cycle, timeout: u64) {
        self.clear();
        self.known_until = now + timeout;
    }

    /// Whether it holds this reduction, or did a moment ago.
    pub(super) fn knows(&self, now: Cycle, address: Address) -> bool {
        self.address == address && (self.active || now < self.known_until)
    }

    pub(super) fn clear(&mut self) {
        self.active = false;
        self.busy = false;
        self.generation = self.generation.wrapping_add(1);
        self.count = 0;
        self.first = None;
        self.merged.clear();
    }
}

/// The ports of the descriptor memory that are free in a cycle.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
pub(super) struct Accesses {
    pub(super) left: u8,
    /// An access found no free port.
    pub(super) refused: bool,
}

impl Accesses {
    /// Takes a port, if one is left.
    pub(super) fn take(&mut self) -> bool {
        let free = self.left > 0;
        self.left -= u8::from(free);
        self.refused |= !free;
        free
    }
}
