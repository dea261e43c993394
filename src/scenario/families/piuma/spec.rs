//! What sets the PIUMA family, and the plain fabric, apart before it runs.

use super::run::Run;
use crate::build::{self, BuildOptions};
use crate::config::Scenario;
use crate::run::family::{StartedRun, started};
use crate::run::options::{RunError, RunOptions};
use crate::segments;
use crate::spec::{ChannelKind, FamilySpec, HEADER_FLIT_BITS, Lacks, Watched, channels};
use crate::workload::file::Engine;
use crate::{Loaded, Problems};
use watershed_piuma::CHANNELS;
use watershed_piuma::claim::Wiring;

/// Switches with a collective engine.
pub(crate) struct Piuma;

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

    fn build<'a>(
        &self,
        loaded: &'a Loaded,
        options: &RunOptions<'_>,
        windows: bool,
    ) -> Result<StartedRun<'a>, RunError> {
        Ok(started(Run::build(loaded, options, windows)?))
    }

    fn wiring(&self, loaded: &Loaded) -> Result<(Wiring, usize), Problems> {
        if trees(&loaded.scenario) < 2 {
            return Ok((Wiring::default(), 0));
        }
        let options = BuildOptions { no_monitors: true, ..BuildOptions::default() };
        Ok((build::build(loaded, options)?.claims.wiring, 0))
    }
}

/// Plain virtual-channel routers.
pub(crate) struct Fabric;

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

    fn build<'a>(
        &self,
        loaded: &'a Loaded,
        options: &RunOptions<'_>,
        windows: bool,
    ) -> Result<StartedRun<'a>, RunError> {
        Ok(started(Run::build(loaded, options, windows)?))
    }
}

/// Trees that registers may hold.
fn trees(scenario: &Scenario) -> u64 {
    let multicasts = scenario.programs.as_ref().map_or(0, |programs| programs.multicasts.len());
    multicasts as u64 + scenario.collectives.iter().map(|of| u64::from(of.segments)).sum::<u64>()
}
