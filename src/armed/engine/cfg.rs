//! Parameters and counters of a reduction engine; what they do is in the table of [`Engine`](super::Engine)'s module.

use crate::admission::Refusals;
use watershed_arith::Mode;

/// Cycles of a time-out unit.
pub const TIMEOUT_UNIT_CYCLES: u64 = 1024;
/// The largest time-out, in units.
pub const MAX_TIMEOUT: u32 = (1 << 24) - 1;

/// What happens when a frame needs a descriptor that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum Hazard {
    /// It waits.
    Interlock,
    /// It reads the old word: faulty hardware, to show that the hazard is real.
    Ignore,
}

/// Parameters of all engines; see the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct EngineCfg {
    /// Active reductions an engine can hold.
    pub descriptors: u16,
    /// Clock stages of the quad unit, 1 to 6.
    pub stages: u8,
    /// Frames the entrance holds behind the one it assembles.
    pub entrance_frames: u16,
    /// Frames the exit holds.
    pub exit_frames: u16,
    /// Time-outs in units of 1024 cycles.
    pub timeouts: [u32; 4],
    /// Largest wait count of the first three time-outs, ascending.
    pub thresholds: [u32; 3],
    /// NaN and signalling-NaN policy.
    pub mode: Mode,
    /// What happens in a hazard.
    pub hazard: Hazard,
    /// Accesses to the descriptor memory in a cycle, from 1.
    pub memory_ports: u8,
}

impl Default for EngineCfg {
    fn default() -> EngineCfg {
        EngineCfg {
            descriptors: 8,
            stages: 3,
            entrance_frames: 2,
            exit_frames: 4,
            timeouts: [8; 4],
            thresholds: [4, 16, 64],
            mode: Mode::default(),
            hazard: Hazard::Interlock,
            memory_ports: 2,
        }
    }
}

impl EngineCfg {
    /// The time-out of a descriptor with this wait count, in cycles.
    pub fn timeout_cycles(&self, wait_count: u32) -> u64 {
        let which = self.thresholds.iter().position(|&threshold| wait_count <= threshold).unwrap_or(3);
        u64::from(self.timeouts[which]) * TIMEOUT_UNIT_CYCLES
    }
}

/// What an engine has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, watershed_state::Saved)]
pub struct EngineCounts {
    /// Arm requests that took or renewed a descriptor.
    pub armed: u64,
    /// Arm requests that found no free descriptor.
    pub no_descriptor: u64,
    /// Descending frames that were not obeyed; why is among the refusals.
    pub down_refused: u64,
    /// Active descriptors that an arm request with a newer number cleared.
    pub rearmed_active: u64,
    /// Active descriptors that a release freed.
    pub released: u64,
    /// Frames merged into a descriptor.
    pub merged: u64,
    /// Frames passed up because no descriptor matched.
    pub passed: u64,
    /// Frames that were not obeyed: climbing ones are dropped, descending ones go on and change nothing here.
    pub refused: Refusals,
    /// Contributions of another operation than the first.
    pub mismatches: u64,
    /// Reductions in which the counts came to more than the wait count.
    pub overflows: u64,
    /// Reductions that completed.
    pub completed: u64,
    /// Reductions that timed out with a partial result.
    pub expired: u64,
    /// Reductions that timed out with nothing.
    pub expired_empty: u64,
    /// Cycles a frame waited for a descriptor that was being written.
    pub interlock_cycles: u64,
    /// The most descriptors that were active at a time.
    pub most_active: u64,
    /// Cycles in which arming, an expiry or a frame at the match stage waited for a port of the descriptor memory.
    pub port_wait_cycles: u64,
}
