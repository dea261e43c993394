//! The proof, on the routing relation of a layout, that its point-to-point packets arrive and cannot deadlock.

use watershed_fabric::routing::{Flaw, Proof, prove_within};
use watershed_fabric::topology::{Common, Layout, LinkParams, Shape};

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
