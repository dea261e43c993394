//! The parameters of switches.

use super::arbiter::Policy;
use super::router::RouterCfg;

/// The pipeline of a switch: how many cycles a packet spends in each of its steps.
///
/// | step | cycles | 0 means |
/// |---|---|---|
/// | RC, route computation | `route` | done in the cycle in which the head flit can first be looked at (look-ahead routing) |
/// | VA, virtual-channel allocation | `vc_alloc` | in the same cycle as switch allocation, chained |
/// | SA, switch allocation | `switch_alloc`, at least 1 | |
/// | ST, switch traversal | `traversal` | in the cycle of switch allocation |
///
/// A hop takes the sum. A step of more than one cycle decides in its last; a packet that got nothing begins the step
/// anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// Cycles of route computation.
    pub route: u8,
    /// Cycles of virtual-channel allocation.
    pub vc_alloc: u8,
    /// Cycles of switch allocation, at least 1.
    pub switch_alloc: u8,
    /// Cycles of switch traversal.
    pub traversal: u8,
}

impl Pipeline {
    /// The usual pipelines of 1 to 4 stages: everything in one cycle; ST on its own; SA and ST; each step on its own.
    ///
    /// # Panics
    /// For any other number; scenario checks refuse it before.
    pub fn new(stages: u8) -> Pipeline {
        let [route, vc_alloc, traversal] = match stages {
            1 => [0, 0, 0],
            2 => [0, 0, 1],
            3 => [0, 1, 1],
            4 => [1, 1, 1],
            _ => panic!("a switch pipeline has 1 to 4 stages, not {stages}"),
        };
        Pipeline { route, vc_alloc, switch_alloc: 1, traversal }
    }

    /// Cycles from the delivery of a flit to its departure when nothing is in its way.
    pub fn stages(self) -> u16 {
        self.front() + 1 + self.post()
    }

    /// Cycles before the one in which switch allocation decides.
    pub fn front(self) -> u16 {
        u16::from(self.route) + u16::from(self.vc_alloc) + u16::from(self.switch_alloc) - 1
    }

    /// Cycles after switch allocation.
    pub fn post(self) -> u16 {
        u16::from(self.traversal)
    }

    /// Whether any step takes more than a cycle, so that queues need timers.
    pub(super) fn is_slow(self) -> bool {
        self.route > 1 || self.vc_alloc > 1 || self.switch_alloc > 1
    }
}

/// The parameters of all switches of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchCfg {
    /// Pipeline depth.
    pub pipeline: Pipeline,
    /// Arbitration policy.
    pub policy: Policy,
    /// Whether link monitors check every event.
    pub monitors: bool,
    /// Allocators and flow control of point-to-point channels.
    pub router: RouterCfg,
}
