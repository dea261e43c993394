//! The registers of a collective engine as waves show them.

use super::{Ce, PROBED_CONTEXTS, STAGE_TAG};
use crate::context::{STATES, State};
use watershed_arith::stages::{TreeStages, all_units};
use watershed_fabric::stage_waves;
use watershed_probe::Scope;

impl Ce {
    /// Clocks the registers of the reduction unit from now on, or no longer.
    pub fn watch_stages(&mut self, watched: bool) {
        self.stages = watched.then(|| Box::new(TreeStages::new(self.tree.cfg(), &all_units())));
    }

    /// Whether a register of the reduction unit may have changed at the last edge.
    pub fn stages_moved(&self) -> bool {
        self.stages.as_ref().is_some_and(|stages| stages.moved())
    }

    /// Describes the registers of the reduction unit to a wave.
    pub fn probe_stages(&self, scope: &mut Scope<'_>) {
        if let Some(stages) = &self.stages {
            stage_waves::tree(scope, stages, &[1], &STAGE_TAG);
        }
    }

    /// Describes the engine's registers to a wave: the pipelines and the first contexts of the store.
    pub fn probe(&self, scope: &mut Scope<'_>) {
        scope.valid("read_slot", 12, self.tracker.read_q.map(|op| u64::from(op.slot())));
        scope.valid("write_slot", 12, self.tracker.modify_q.map(|(op, _)| u64::from(op.slot())));
        scope.bits("in_unit", 3, self.in_unit.len() as u64);
        self.tracker.probe(scope);
        for (slot, context) in self.contexts.iter().take(PROBED_CONTEXTS).enumerate() {
            scope.indexed("context", slot, |scope| {
                let context = context.as_ref();
                scope.state("state", &STATES, context.map_or(State::Absent, |context| context.state) as u64);
                scope.bits("cc_id", 12, context.map_or(0, |context| u64::from(context.cc_id)));
                let track = self.tracker.entry(slot as u16);
                scope.bits("p_count", 16, u64::from(track.p_count));
                scope.wide("pbv", 128, &[track.pbv as u64, (track.pbv >> 64) as u64]);
            });
        }
    }
}
