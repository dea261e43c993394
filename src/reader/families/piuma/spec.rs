//! What sets the PIUMA family, and the plain fabric, apart before it runs.

use crate::config::Scenario;
use crate::segments;
use crate::spec::{ChannelKind, FamilySpec, HEADER_FLIT_BITS, Lacks, Watched, channels};
use crate::workload::file::Engine;
use watershed_piuma_interface::channels::CHANNELS;

/// Switches with a collective engine.
pub struct Piuma;

impl FamilySpec for Piuma {
    fn lacks(&self) -> Lacks {
        Lacks {
            keys: &["armed", "pbv"],
            place: "in the piuma family",
            help: "family = \"armed\" and \"pbv\" have these tables",
        }
    }

    fn channels(&self, scenario: &Scenario) -> Vec<ChannelKind> {
        let others = scenario.switch.point_to_point_vcs as u8;
        channels(&[
            (ChannelKind::Collective, segments::planes(scenario) * CHANNELS),
            (ChannelKind::PointToPoint, others),
        ])
    }

    fn header_bits(&self, _scenario: &Scenario) -> u64 {
        HEADER_FLIT_BITS
    }

    fn engine(&self) -> Option<Engine> {
        Some(Engine::Piuma)
    }

    /// The engines and the memories, from the start on.
    fn watched(&self, scenario: &Scenario) -> Watched {
        let start = scenario.first_start();
        Watched {
            signals: &["**.ceng.*", "**.memory.{job,calls,cce,icu,mtp,stp}*.**"],
            cycles: (start, start + 95),
            picture: &["**.core{0,4}.switch.ceng.*", "**.core0.memory.{job,calls,cce,icu,mtp,stp}*.**"],
            picture_cycles: (start + 25, start + 50),
        }
    }
}

/// Plain virtual-channel routers.
pub struct Fabric;

impl FamilySpec for Fabric {
    fn lacks(&self) -> Lacks {
        Lacks {
            keys: &[
                "collective",
                "switch.ceng",
                "switch.collective_ids",
                "switch.collective_buffer_flits",
                "armed",
                "core",
                "multicast",
                "program",
                "pbv",
            ],
            place: "in a plain fabric",
            help: "family = \"piuma\" has collectives",
        }
    }

    fn channels(&self, scenario: &Scenario) -> Vec<ChannelKind> {
        channels(&[(ChannelKind::PointToPoint, scenario.switch.point_to_point_vcs as u8)])
    }

    /// A switch in the corner *\[chosen\]*.
    fn watched(&self, _scenario: &Scenario) -> Watched {
        Watched {
            signals: &["**.{s0_0,t0_0,g0_0,r0}.switch.**", "**.s0_1.switch.out*.{valid,vc,seq}"],
            cycles: (0, 100),
            picture: &["**.{s0_0,t0_0,g0_0,r0}.switch.out*.{valid,vc,seq}"],
            picture_cycles: (0, 25),
        }
    }
}
