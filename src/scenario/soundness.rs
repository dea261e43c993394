//! The proof, on the routing relation and before cycle 0, that point-to-point packets of a scenario arrive and cannot
//! deadlock (requirement K-PIPE-1).
//!
//! A system that is too big for a proof is represented by the largest provable one of the same kind: the same
//! dimensions, levels or kinds of links with fewer switches, and the same channels and algorithm.

use super::build;
use super::{Loaded, Problems};
use std::fmt::Write;
use watershed_fabric::Vcs;
use watershed_fabric::routing::{Flaw, Proof, prove_within};
use watershed_fabric::topology::{Common, Layout, LinkParams, Shape};

/// Steps a proof may take: a few seconds.
const STEPS: u64 = 60_000_000;

/// Switches of a system of nodes that are laid out for a proof.
const LAID_OUT: u64 = 4096;

/// What was shown of a scenario's routing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Soundness {
    /// The proof, or what is wrong.
    pub proof: Result<Proof, Flaw>,
    /// The smaller shape it was shown on, if not on the system itself.
    pub on: Option<Shape>,
    /// In a few words.
    pub text: String,
}

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

/// The same of any layout, in no more than this many steps.
pub fn of_layout(layout: &Layout, steps: u64) -> Soundness {
    let algorithm = layout.routing.algorithm();
    let channels = layout.plan.vcs.unicast;
    let mut proof = prove_within(layout, &layout.routing, steps);
    let mut on = None;
    // What kind of links there are does not matter to a proof, only how they join.
    let link = LinkParams { latency: 1, cycles_per_flit: 1 };
    let common = Common { vcs: layout.plan.vcs, engine: false, link, local: link };
    let mut shape = layout.shape.clone();
    while proof == Err(Flaw::TooBig) {
        let Some(smaller) = shape.smaller() else { break };
        shape = smaller;
        on = Some(shape.clone());
        let routed = match layout.routing {
            // The routing of collective families, by arithmetic.
            watershed_fabric::routing::Routing::Mesh(_) | watershed_fabric::routing::Routing::Nodes(_) => {
                Ok(shape.layout(&common))
            }
            _ => shape.layout(&common).routed(algorithm),
        };
        proof = match routed {
            Ok(small) => prove_within(&small, &small.routing, steps),
            Err(_) => break,
        };
    }
    let plural = if channels == 1 { "" } else { "s" };
    let how = format!("{} on {channels} channel{plural}", algorithm.name());
    let text = match (&proof, &on) {
        (Ok(proof), on) => {
            let subject = if proof.escape { "escape channels" } else { "channels" };
            let place =
                on.as_ref().map_or(String::new(), |shape| format!(" (shown on a smaller one: {})", shape.describe()));
            format!(
                "{how}: every pair arrives within {} links, and {} dependencies between {subject} make no circle{place}",
                proof.longest, proof.dependencies
            )
        }
        (Err(Flaw::TooBig), _) => format!("{how}: too big to be proved, and nothing smaller stands for it"),
        (Err(flaw), _) => format!("{how}: {flaw}"),
    };
    Soundness { proof, on, text }
}
