//! What sets the armed family apart before it runs.

use crate::config::Scenario;
use crate::spec::{ChannelKind, FamilySpec, Lacks, Watched, channels};
use crate::workload::file::Engine;
use watershed_armed_interface::CHANNELS;

/// Switches with reduction engines on their links.
pub struct Armed;

impl FamilySpec for Armed {
    fn lacks(&self) -> Lacks {
        Lacks {
            keys: &[
                "collective",
                "switch.ceng",
                "switch.collective_ids",
                "memory",
                "checks.claims",
                "core",
                "multicast",
                "program",
                "host",
                "pbv",
            ],
            place: "in the armed family",
            help: "its engines are described by [armed], and what they do by [[job]]",
        }
    }

    fn channels(&self, scenario: &Scenario) -> Vec<ChannelKind> {
        let agent = scenario.armed.as_ref().is_some_and(|armed| armed.agent.is_some());
        let others = scenario.switch.point_to_point_vcs as u8;
        channels(&[(ChannelKind::Frames, CHANNELS + u8::from(agent)), (ChannelKind::PointToPoint, others)])
    }

    fn engine(&self) -> Option<Engine> {
        Some(Engine::Armed)
    }

    /// The engine above the root's switch, or of the first switch.
    fn watched(&self, _scenario: &Scenario) -> Watched {
        Watched {
            signals: &[
                "**.{top,s0_0,t0_0,g0_0}.P*.engine.descriptor0.{state,seqno,count,wait_count}",
                "**.{top,s0_0,t0_0,g0_0}.P*.engine.{active,merged,passed}",
            ],
            cycles: (0, 400),
            picture: &["**.{top,s0_0,t0_0,g0_0}.P*.engine.descriptor0.{state,seqno,count}"],
            picture_cycles: (88, 113),
        }
    }
}
