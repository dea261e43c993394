//! What sets the PBV family apart before it runs.

use crate::config::Scenario;
use crate::spec::{ChannelKind, FamilySpec, Lacks, Watched, channels};
use crate::workload::file::Engine;

/// Switches with addressable packet engines.
pub struct Pbv;

impl FamilySpec for Pbv {
    fn lacks(&self) -> Lacks {
        Lacks {
            keys: &[
                "collective",
                "switch.ceng",
                "switch.collective_ids",
                "memory",
                "checks.claims",
                "armed",
                "core",
                "multicast",
                "program",
                "host",
            ],
            place: "in the pbv family",
            help: "its engines are described by [pbv], and what they do by [[job]]",
        }
    }

    fn channels(&self, scenario: &Scenario) -> Vec<ChannelKind> {
        let others = if scenario.traffic.is_empty() { 0 } else { scenario.switch.point_to_point_vcs as u8 };
        channels(&[(ChannelKind::Packets, 1), (ChannelKind::PointToPoint, others)])
    }

    fn engine(&self) -> Option<Engine> {
        Some(Engine::Pbv)
    }

    /// The first switch's engine, or that at the top of a tree.
    fn watched(&self, _scenario: &Scenario) -> Watched {
        Watched {
            signals: &[
                "**.{sw0000,s0,s0_0,top}.engine.ce.context0.**",
                "**.{sw0000,s0,s0_0,top}.engine.{output_queue,frames_in,frames_out}",
                "**.{sw0000,s0,s0_0,top}.engine.sending.*",
            ],
            cycles: (0, 1500),
            picture: &[
                "**.{sw0000,s0,s0_0,top}.engine.ce.context0.{state,p_count}",
                "**.{sw0000,s0,s0_0,top}.engine.sending.*",
            ],
            picture_cycles: (600, 626),
        }
    }
}
