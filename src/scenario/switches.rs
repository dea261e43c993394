//! What the switches, links and channels of a scenario are made of, as the fabric wants to know it.

use super::config::{Arbiter, Auto, Scenario};
use super::families::spec;
use super::file::{self, ReliabilityFile};
use super::spec::ChannelKind;
use watershed_armed::FRAME_BYTES;
use watershed_fabric::arbiter::Policy;
use watershed_fabric::replay::Reliability;
use watershed_fabric::{Pipeline, PlanLink, RouterCfg, SwitchAllocator, VcAllocator, credit_round_trip};
use watershed_pbv::system::credit_loop;

/// The steps of a switch's pipeline.
pub(super) fn pipeline(scenario: &Scenario) -> Pipeline {
    let knobs = &scenario.switch.router;
    let cycles = |step: Option<u32>| step.unwrap_or(1) as u8;
    Pipeline {
        route: cycles(knobs.route_cycles),
        vc_alloc: cycles(knobs.vc_alloc_cycles),
        switch_alloc: cycles(knobs.switch_alloc_cycles),
        traversal: cycles(knobs.traversal_cycles),
    }
}

/// The knobs of point-to-point channels.
pub(super) fn router(scenario: &Scenario) -> RouterCfg {
    let knobs = &scenario.switch.router;
    RouterCfg {
        class_bound: RouterCfg::default().class_bound,
        vc_allocator: match knobs.vc_allocator {
            file::VcAllocator::Ordered => VcAllocator::Ordered,
            file::VcAllocator::Separable => VcAllocator::Separable,
            file::VcAllocator::Islip => VcAllocator::Islip,
        },
        switch_allocator: match knobs.switch_allocator {
            file::SwitchAllocator::Separable => SwitchAllocator::Separable,
            file::SwitchAllocator::Islip => SwitchAllocator::Islip,
        },
        iterations: knobs.allocator_iterations as u8,
        credit_delay: knobs.credit_delay_cycles as u16,
        input_speedup: knobs.input_speedup as u8,
        wait_for_tail_credit: knobs.wait_for_tail_credit,
        speculative: knobs.speculative,
    }
}

/// What travels on each virtual channel of a scenario, in the order of their numbers.
pub(crate) fn channel_kinds(scenario: &Scenario) -> Vec<ChannelKind> {
    spec(scenario.family).channels(scenario)
}

/// Flits of an input buffer at the end of a link: of a channel of collectives by default as many as credits take for their way
/// round without their delay, and as a frame has that is copied.
pub(crate) fn buffer(scenario: &Scenario, kind: ChannelKind, link: &PlanLink) -> u16 {
    let (switch, pipeline) = (&scenario.switch, pipeline(scenario));
    let trip = match kind {
        ChannelKind::PointToPoint => return switch.point_to_point_buffer_flits as u16,
        ChannelKind::Packets => credit_loop(link, pipeline, scenario.link.cut()),
        _ => credit_round_trip(link.latency, link.cycles_per_flit, pipeline.post(), pipeline.front()),
    };
    let flits = match switch.collective_buffer_flits {
        Auto::Fixed(flits) => flits as u16,
        Auto::Auto => (trip + u64::from(switch.router.credit_delay_cycles)) as u16,
    };
    if kind == ChannelKind::Frames { flits.max(scenario.link.cut().flits(FRAME_BYTES) as u16) } else { flits }
}

/// The arbitration policy of a scenario.
pub(super) fn policy(arbiter: Arbiter) -> Policy {
    match arbiter {
        Arbiter::RoundRobin => Policy::RoundRobin,
        Arbiter::Matrix => Policy::Matrix,
        Arbiter::Fixed => Policy::Fixed,
    }
}

/// Link-layer replay of a link: `wire_cycles` from end to end, `cycles_per_flit` for a flit; `frame`: flits of the longest frame.
pub(crate) fn replay(file: &ReliabilityFile, wire_cycles: u64, cycles_per_flit: u64, frame: u64) -> Reliability {
    let round_trip = 2 * wire_cycles + cycles_per_flit * (u64::from(file.replay_frames) + 2) * frame;
    Reliability {
        replay_frames: file.replay_frames as u16,
        receive_frames: file.receive_frames as u16,
        wire_cycles,
        cycles_per_flit,
        timeout_cycles: file.timeout_cycles.or(round_trip + 64).max(1),
        attempts: file.attempts,
    }
}
