//! The registers of a collective engine as waves show them.

use super::{Ce, PROBED_CONTEXTS, STAGE_TAG, WatchedUnits};
use crate::context::{STATES, State};
use watershed_arith::stages::{TreeStages, all_units};
use watershed_arith::{Tree, TreeIn};
use watershed_fabric::stage_waves;
use watershed_probe::Scope;

impl Ce {
    /// Clocks the registers of the reduction unit from now on, or no longer.
    pub fn watch_stages(&mut self, watched: bool) {
        let of = |tree: &Tree| TreeStages::new(tree.cfg(), &all_units());
        self.stages = watched.then(|| Box::new(WatchedUnits { units: self.trees.iter().map(of).collect() }));
    }

    /// What enters the units in this cycle, with the tags that waves show.
    pub(super) fn labels(&self, inputs: &[TreeIn]) -> Vec<TreeIn> {
        let of = |input: &TreeIn| {
            let context = self.contexts[(input.tag >> 16 & 0xffff) as usize].as_ref();
            let (cc_id, run) = context.map_or((0, 0), |context| (context.cc_id, context.like.run));
            let tag = input.tag & 0xffff | u64::from(cc_id) << 16 | u64::from(run) << 28;
            TreeIn { tag, ..input.clone() }
        };
        inputs.iter().map(of).collect()
    }

    /// Whether a register of the reduction unit may have changed at the last edge.
    pub fn stages_moved(&self) -> bool {
        self.stages.as_ref().is_some_and(|watched| watched.units.iter().any(TreeStages::moved))
    }

    /// Describes the registers of the reduction unit to a wave.
    pub fn probe_stages(&self, scope: &mut Scope<'_>) {
        // One unit is the tree; of several the others are beside it.
        for (unit, stages) in self.stages.iter().flat_map(|watched| &watched.units).enumerate() {
            if unit == 0 {
                stage_waves::tree(scope, stages, &[1], &STAGE_TAG);
            } else {
                scope.indexed("unit", unit, |scope| stage_waves::tree(scope, stages, &[1], &STAGE_TAG));
            }
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
