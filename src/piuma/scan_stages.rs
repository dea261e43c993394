//! The stage registers of a [scan unit](super::scan): the units of its chain, and the one that combines on the way down.
//!
//! The scan unit computes its values when it takes the operands, and notes which value enters which two-input unit in
//! which cycle. The registers here are clocked from these notes. The combining unit takes one pair a cycle, in the
//! order in which responses leave.
//!
//! Requirement: H-PIPE-1 (`hardware.md`).

use std::collections::VecDeque;
use std::sync::Arc;

use super::ceng::STAGE_TAG;
use super::scan::{Operand, ScanUnit, is_empty};
use super::{RESPONSE, kind};
use watershed_arith::Unit;
use watershed_arith::stages::{Layout, UnitStages};
use watershed_fabric::{Flit, stage_waves};
use watershed_kernel::Cycle;
use watershed_probe::Scope;
use watershed_state::state;

/// The registers of a scan unit that a waveform shows.
#[derive(Clone, Debug)]
pub(super) struct ScanStages {
    chain: Vec<UnitStages<Unit>>,
    combine: Option<UnitStages<Unit>>,
    /// What is to enter a unit of the chain; and the combining unit, in order.
    coming: Vec<Operand>,
    turning: VecDeque<Operand>,
    /// What came out of the combining unit and has not left the engine.
    made: VecDeque<u64>,
}

state!(ScanStages { saved: coming, turning, made; each: chain, combine });

impl ScanStages {
    /// Those of a chain of this many units.
    pub(super) fn new(stages: u8, units: usize, in_use: &[Unit]) -> ScanStages {
        let layout = Arc::new(Layout::of(stages, in_use));
        ScanStages {
            chain: (0..units).map(|_| UnitStages::new(stages, &layout)).collect(),
            combine: Some(UnitStages::new(stages, &layout)),
            coming: Vec::new(),
            turning: VecDeque::new(),
            made: VecDeque::new(),
        }
    }

    /// Those of an engine that scans nothing.
    pub(super) fn none() -> ScanStages {
        ScanStages {
            chain: Vec::new(),
            combine: None,
            coming: Vec::new(),
            turning: VecDeque::new(),
            made: VecDeque::new(),
        }
    }

    /// Whether nothing is in it, and nothing was taken at the last edge.
    pub(super) fn is_empty(&self) -> bool {
        let empty = |unit: &UnitStages<Unit>| unit.is_empty() && !unit.taken().valid;
        self.coming.is_empty()
            && self.turning.is_empty()
            && self.chain.iter().all(empty)
            && self.combine.iter().all(empty)
    }

    /// Whether a register may have changed at the last edge.
    pub(super) fn moved(&self) -> bool {
        self.chain.iter().chain(&self.combine).any(UnitStages::moved)
    }

    /// One clock; `left` is the result that leaves the engine in this cycle.
    pub(super) fn clock(&mut self, scan: Option<&mut ScanUnit>, now: Cycle, left: Option<&Flit>) {
        for operand in scan.into_iter().flat_map(ScanUnit::noted) {
            match operand.unit {
                Some(_) => self.coming.push(operand),
                None => self.turning.push_back(operand),
            }
        }
        for (at, unit) in self.chain.iter_mut().enumerate() {
            let due = self.coming.iter().position(|operand| operand.unit == Some(at) && operand.from <= now);
            unit.clock(due.map(|due| self.coming.remove(due).entry));
        }
        if let Some(unit) = &mut self.combine {
            let due = self
                .turning
                .front()
                .is_some_and(|operand| operand.from <= now)
                .then(|| self.turning.pop_front())
                .flatten();
            self.made.extend(unit.clock(due.map(|operand| operand.entry)).map(|exit| exit.word));
        }
        if let Some(left) = left.filter(|flit| kind(flit.tag.vc()) == RESPONSE && !is_empty(flit.tag.seq())) {
            let made = self.made.pop_front();
            debug_assert_eq!(made, Some(left.word), "the combining unit has made what leaves");
        }
    }

    /// Describes the registers to a wave.
    pub(super) fn probe(&self, scope: &mut Scope<'_>) {
        let Some(combine) = &self.combine else { return };
        scope.scope("scan", |scope| {
            for (at, unit) in self.chain.iter().enumerate() {
                scope.indexed("chain", at, |scope| stage_waves::unit(scope, unit, &STAGE_TAG));
            }
            scope.scope("combine", |scope| stage_waves::unit(scope, combine, &STAGE_TAG));
        });
    }
}
