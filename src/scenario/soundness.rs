//! The proof, on the routing relation and before cycle 0, that point-to-point packets of a scenario arrive and cannot
//! deadlock (requirement K-PIPE-1).
//!
//! A system that is too big for a proof is represented by the largest provable one of the same kind: the same
//! dimensions, levels or kinds of links with fewer switches, and the same channels and algorithm.

use super::build;
use super::{Loaded, Problems};
use std::fmt::Write;
use watershed_fabric::Vcs;
use watershed_fabric::topology::{Common, LinkParams, Shape};
pub use watershed_scenario_interface::soundness::Soundness;
use watershed_scenario_interface::soundness::of_layout;

/// Steps a proof may take: a few seconds.
const STEPS: u64 = 60_000_000;

/// Switches of a system of nodes that are laid out for a proof.
const LAID_OUT: u64 = 4096;

/// Shows that the packets of a scenario arrive and cannot deadlock.
///
/// # Errors
/// What is wrong with the configuration.
pub fn soundness(loaded: &Loaded) -> Result<Soundness, Problems> {
    // A system of very many nodes is not even laid out.
    let mut shape = loaded.scenario.topology.shape.clone();
    while loaded.scenario.traffic.is_empty()
        && matches!(shape, Shape::Nodes(_))
        && shape.switches().is_none_or(|count| count > LAID_OUT)
        && let Some(smaller) = shape.smaller()
    {
        shape = smaller;
    }
    if shape == loaded.scenario.topology.shape {
        return Ok(of_layout(&build::layout(loaded)?, STEPS));
    }
    let link = LinkParams { latency: 1, cycles_per_flit: 1 };
    let vcs = Vcs { set: 0, unicast: loaded.scenario.switch.point_to_point_vcs as u8 };
    let mut sound = of_layout(&shape.layout(&Common { vcs, engine: false, link, local: link }), STEPS);
    if sound.on.is_none() {
        let _ = write!(sound.text, " (shown on a smaller one: {})", shape.describe());
        sound.on = Some(shape);
    }
    Ok(sound)
}
