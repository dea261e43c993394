//! What sets a network of several families apart before it runs.

use super::channels::{has_engines, map};
use crate::config::Scenario;
use crate::spec::{ChannelKind, FamilySpec, HEADER_FLIT_BITS, Lacks, SIDE_BAND_BITS, Watched};

/// Engines of several families in one network.
pub struct Mixed;

impl FamilySpec for Mixed {
    fn lacks(&self) -> Lacks {
        Lacks { keys: &[], place: "in a network of several families", help: "" }
    }

    fn channels(&self, scenario: &Scenario) -> Vec<ChannelKind> {
        let map = map(scenario);
        let kind = |vc: u8| match vc {
            vc if vc < map.of_piuma() => ChannelKind::Collective,
            vc if map.vcs().is_set(vc) => ChannelKind::Frames,
            vc if map.is_frame(vc) => ChannelKind::Packets,
            _ => ChannelKind::PointToPoint,
        };
        (0..map.vcs().total()).map(kind).collect()
    }

    fn header_bits(&self, scenario: &Scenario) -> u64 {
        if has_engines(scenario) { HEADER_FLIT_BITS.max(SIDE_BAND_BITS) } else { SIDE_BAND_BITS }
    }

    /// The engines of the switch in the corner, or at the top of a tree.
    fn watched(&self, scenario: &Scenario) -> Watched {
        let start = scenario.first_start();
        Watched {
            signals: &[
                "**.{top,s1_1,t1_1,g0_0}.**.ceng.*",
                "**.{top,s0_0,t0_0,g0_0}.P*.engine.{active,merged,passed}",
                "**.{top,s0_0,t0_0,g0_0}.engine.ce.context0.{state,p_count}",
            ],
            cycles: (start, start + 1500),
            picture: &["**.{top,s1_1,t1_1,g0_0}.**.ceng.*", "**.{top,s0_0,t0_0,g0_0}.P*.engine.active"],
            picture_cycles: (start + 25, start + 50),
        }
    }
}
