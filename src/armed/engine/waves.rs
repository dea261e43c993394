//! What a waveform shows of a reduction engine: its descriptors, its queues, and the registers of its unit.

use super::descriptor::{Descriptor, STATES};
use super::{Engine, EngineCfg};
use crate::frame::Frame;
use std::sync::Arc;
use watershed_arith::stages::{self, Layout, UnitStages, all_quad_units};
use watershed_arith::{Quad, QuadUnit};
use watershed_fabric::stage_waves::{self, TagField};
use watershed_probe::Scope;
use watershed_state::state;

/// The registers of the quad unit, while a waveform shows them.
#[derive(Clone, Debug)]
pub(super) struct Stages {
    pub(super) unit: UnitStages<QuadUnit>,
    /// What enters it in this cycle, and what the pipeline gives back in it.
    pub(super) entering: Option<stages::UnitInput<QuadUnit>>,
    pub(super) leaving: Option<Quad>,
}

state!(Stages { saved: unit, entering, leaving });

/// What a tag of the unit's stages shows.
pub const STAGE_TAG: [TagField; 4] = [
    TagField { name: "multicast_id", low: 0, width: 13 },
    TagField { name: "reduction_id", low: 13, width: 3 },
    TagField { name: "seqno", low: 16, width: 10 },
    TagField { name: "descriptor", low: 26, width: 16 },
];

pub(super) fn stage_tag(frame: &Frame, descriptor: u16) -> u64 {
    u64::from(frame.address.multicast_id)
        | u64::from(frame.address.reduction_id) << 13
        | u64::from(frame.header.seqno) << 16
        | u64::from(descriptor) << 26
}

impl Engine {
    /// Clocks the registers of its unit from now on, or no longer.
    pub(crate) fn watch(&mut self, watched: bool, cfg: &EngineCfg) {
        self.stages = watched.then(|| {
            let layout = Arc::new(Layout::of(cfg.stages, &all_quad_units()));
            Box::new(Stages { unit: UnitStages::new(cfg.stages, &layout), entering: None, leaving: None })
        });
    }

    /// Whether a register of its unit may have changed at the last edge.
    pub(crate) fn stages_moved(&self) -> bool {
        self.stages.as_ref().is_some_and(|stages| stages.unit.moved())
    }

    /// Describes the registers of its unit to a wave.
    pub(crate) fn probe_stages(&self, scope: &mut Scope<'_>) {
        let Some(stages) = &self.stages else { return };
        scope.scope("engine", |scope| {
            scope.scope("unit", |scope| stage_waves::unit(scope, &stages.unit, &STAGE_TAG));
        });
    }

    /// Describes its registers to a wave.
    pub(crate) fn probe(&self, scope: &mut Scope<'_>) {
        let state = self.state.as_deref();
        let counts = &self.counts;
        scope.scope("engine", |scope| {
            for at in 0..usize::from(self.descriptors) {
                scope.indexed("descriptor", at, |scope| {
                    let descriptor = state.map(|state| &state.descriptors[at]);
                    let active = descriptor.filter(|descriptor| descriptor.active);
                    scope.state("state", &STATES, descriptor.map_or(0, Descriptor::state));
                    scope.valid("multicast_id", 13, active.map(|d| u64::from(d.address.multicast_id)));
                    scope.valid("reduction_id", 3, active.map(|d| u64::from(d.address.reduction_id)));
                    scope.valid("seqno", 10, active.map(|d| u64::from(d.seqno)));
                    scope.valid("count", 20, active.map(|d| u64::from(d.count)));
                    scope.valid("wait_count", 20, active.map(|d| u64::from(d.wait_count)));
                    scope.valid("parent_port", 8, active.map(|d| u64::from(d.parent)));
                    scope.valid("deadline_cycle", 48, active.map(|d| d.deadline));
                    let first = active.and_then(|d| d.first.as_ref());
                    scope.valid("op", 6, first.map(|frame| u64::from(frame.header.op)));
                    scope.valid("rc", 4, first.and(active).map(|d| u64::from(d.quad.code.number())));
                    for lane in 0..4 {
                        scope.indexed("lane", lane, |scope| {
                            scope.valid("word", 64, first.and(active).map(|d| d.quad.lanes[lane]));
                        });
                    }
                });
            }
            scope.bits("active", 16, state.map_or(0, |state| u64::from(state.active)));
            scope.bits("entrance_flits", 4, state.map_or(0, |state| u64::from(state.entrance.filled())));
            scope.bits("frames", 8, state.map_or(0, |state| state.frames.len() as u64));
            scope.bits("pipeline", 3, state.map_or(0, |state| state.pipe.iter().flatten().count() as u64));
            scope.bits("exit", 8, state.map_or(0, |state| state.exit.len() as u64));
            scope.bits("merged", 32, counts.merged);
            scope.bits("passed", 32, counts.passed);
            scope.bits("stale", 32, counts.refused.stale);
            scope.bits("wrong_key", 32, counts.refused.wrong_key());
            scope.bits("damaged", 32, counts.refused.damaged);
            scope.bits("completed", 32, counts.completed);
            scope.bits("expired", 32, counts.expired + counts.expired_empty);
        });
    }
}
