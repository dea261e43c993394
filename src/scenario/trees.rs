//! Trees of engines that frames arm or address, from a system that was built. (Trees of PIUMA's registers are
//! [embeddings](crate::embedding).)

use std::collections::BTreeMap;

use watershed_fabric::Plan;

use super::run::family::builder;
use super::{Loaded, Problems};

pub use watershed_scenario_interface::trees::EngineTree;

/// The trees of all jobs of a scenario that use engines of such families.
///
/// # Errors
/// What is wrong with the configuration, at its place.
pub fn all(loaded: &Loaded) -> Result<Vec<EngineTree>, Problems> {
    builder(loaded.scenario.family).trees(loaded)
}

/// What is at the far end of each port: node, port and the level of the link.
pub(crate) struct FarEnds<'a> {
    plan: &'a Plan,
    ends: BTreeMap<(u32, u16), (u32, u16, u8)>,
}

impl FarEnds<'_> {
    pub(crate) fn of(plan: &Plan) -> FarEnds<'_> {
        let both = plan.links.iter().flat_map(|link| [(link.a, link.b, link.level), (link.b, link.a, link.level)]);
        FarEnds { plan, ends: both.map(|(at, (node, port), level)| (at, (node, port, level))).collect() }
    }

    /// Node and port at the far end of a link, and the name of its level.
    pub(crate) fn at(&self, node: u32, port: u16) -> Option<(u32, u16, &str)> {
        let &(far, far_port, level) = self.ends.get(&(node, port))?;
        Some((far, far_port, &self.plan.levels[usize::from(level)]))
    }

    /// Name of a node.
    pub(crate) fn name(&self, node: u32) -> &str {
        &self.plan.nodes[node as usize].name
    }
}
