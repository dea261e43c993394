//! The golden check of a PBV run. The records of engines say who entered where in which order; the oracle evaluates
//! that tree untimed. A second check is that every participant entered exactly once.
//!
//! It shares with the model only the names of operations.

use std::collections::BTreeMap;

use crate::run::system::PbvSystem as System;
use watershed_arith::{Flags, Op};
use watershed_kernel::Cycle;
use watershed_oracle as oracle;
use watershed_pbv::ce::AcceptedMessage;
use watershed_pbv::gather::Gather;
use watershed_pbv::plan::{Branch, Collective, EngineId};
use watershed_pbv::system::engines;
use watershed_pbv::tables::{ENGINE_BASE, ENGINE_SPAN};

/// The result of a round by the oracle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OracleValue {
    /// The words; none if nobody brought any.
    pub words: Option<Vec<u64>>,
    /// Flags that were raised.
    pub flags: Flags,
    /// Participants that entered, as often as they did.
    pub entered: Vec<u16>,
    /// When the master answered so, if it did.
    pub answered: Option<Cycle>,
}

/// Reads what engines wrote down.
pub struct Reader<'a> {
    /// Who entered, by engine, context and run.
    records: BTreeMap<(EngineId, u16, u32), Vec<AcceptedMessage>>,
    /// Generations in which engines answered runs, and when.
    answered: BTreeMap<(EngineId, u16, u32), Vec<(u32, Cycle)>>,
    collective: &'a Collective,
    /// Operands of the participants: all rounds, one after the other.
    operands: BTreeMap<u16, &'a [u64]>,
    /// The source that merges responses itself, if it does.
    gather: Option<&'a Gather>,
    /// Every participant divides the result by this.
    divide: Option<u32>,
}

impl<'a> Reader<'a> {
    /// A reader for one collective; operands by device ID.
    pub fn new(system: &System, collective: &'a Collective, operands: BTreeMap<u16, &'a [u64]>) -> Reader<'a> {
        let mut records: BTreeMap<(EngineId, u16, u32), Vec<AcceptedMessage>> = BTreeMap::new();
        let mut answered: BTreeMap<(EngineId, u16, u32), Vec<(u32, Cycle)>> = BTreeMap::new();
        for engine in engines(system) {
            let cfg = engine.cfg();
            let seat = (cfg.device, ((cfg.base - ENGINE_BASE) / ENGINE_SPAN) as u8);
            for entered in engine.ce().record().iter().filter(|entered| entered.cc_id == collective.cc_id) {
                records.entry((seat, entered.cc_id, entered.run)).or_default().push(*entered);
            }
            for &(cc_id, run, generation, cycle) in engine.ce().answered() {
                answered.entry((seat, cc_id, run)).or_default().push((generation, cycle));
            }
        }
        Reader { records, answered, collective, operands, gather: None, divide: None }
    }

    /// Merged by a source as it wrote down, and divided by a number of participants.
    #[must_use]
    pub fn with_end_point_steps(self, gather: Option<&'a Gather>, divide: Option<u32>) -> Reader<'a> {
        Reader { gather, divide, ..self }
    }

    fn key(&self, branch: &Branch, run: u32) -> (EngineId, u16, u32) {
        ((branch.device, self.collective.plane), self.collective.cc_id, run)
    }

    /// The results of a run: once for each time that the master answered it, the last one first; at least one.
    pub fn values(&self, run: u32) -> Vec<OracleValue> {
        let answers = self.answered.get(&self.key(&self.collective.tree, run));
        let cycles = answers.into_iter().flatten().rev().map(|&(_, cycle)| cycle);
        let of = |cycle| OracleValue { answered: Some(cycle), ..self.at(&self.collective.tree, run, cycle) };
        let mut values: Vec<OracleValue> = cycles.map(of).collect();
        if values.is_empty() {
            values.push(self.at(&self.collective.tree, run, Cycle::MAX));
        }
        for value in &mut values {
            self.finish(value);
        }
        values
    }

    /// What end points make of a result: they divide it.
    fn finish(&self, value: &mut OracleValue) {
        let (Some(divide), Some(words)) = (self.divide, &mut value.words) else { return };
        let Collective { dtype, mode, .. } = *self.collective;
        for word in words {
            let (quotient, raised) = oracle::quotient::word_quotient(dtype, mode, *word, divide);
            *word = quotient;
            value.flags |= raised;
        }
    }

    /// The result of an engine's part of a run, as it last answered before a cycle.
    fn at(&self, branch: &Branch, run: u32, before: Cycle) -> OracleValue {
        let collective = self.collective;
        // The initial value enters once, before everything else: a reduction has one master.
        let first = collective.initial.filter(|_| branch.device == collective.tree.device);
        let mut words = first.map(|initial| vec![initial; usize::from(collective.words)]);
        let (mut flags, mut all) = (Flags::NONE, Vec::new());
        let key = self.key(branch, run);
        let mut list = self.records.get(&key).cloned().unwrap_or_default();
        // A run that was begun anew counts with the last generation that was answered.
        let answered = self.answered.get(&key).into_iter().flatten().rev().find(|&&(_, cycle)| cycle <= before);
        let generation = answered.map(|&(generation, _)| generation).or(list.last().map(|entered| entered.generation));
        list.retain(|entered| Some(entered.generation) == generation);
        let top = branch.device == collective.tree.device;
        if let Some(gather) = self.gather.filter(|_| top) {
            let merged = gather.merged(run);
            let place = |entered: &AcceptedMessage| merged.iter().position(|&entry| entry == entered.entry);
            list.retain(|entered| place(entered).is_some());
            list.sort_by_key(place);
        } else if collective.pbv_order {
            list.sort_by_key(|entered| entered.entry);
        }
        for entered in list {
            // An engine below, or further down where responses are handed on.
            let below = branch.preorder().into_iter().skip(1).find(|engine| engine.device == entered.device);
            let part = match below {
                Some(engine) => self.at(engine, run, entered.cycle),
                None => self.operand(entered.device, run),
            };
            flags |= part.flags;
            all.extend(part.entered);
            if !entered.whole || collective.op == Op::Barrier {
                continue;
            }
            let Some(next) = part.words else { continue };
            words = Some(match words {
                None => next,
                Some(sum) => sum.iter().zip(&next).map(|(&a, &b)| self.pair(a, b, &mut flags)).collect(),
            });
        }
        OracleValue { words, flags, entered: all, answered: None }
    }

    fn pair(&self, a: u64, b: u64, flags: &mut Flags) -> u64 {
        let Collective { op, dtype, mode, .. } = *self.collective;
        let (word, raised) = oracle::word_pair(op, dtype, mode, a, b);
        *flags |= raised;
        word
    }

    fn operand(&self, device: u16, run: u32) -> OracleValue {
        let all = self.operands.get(&device).copied().unwrap_or_default();
        let length = usize::from(self.collective.words);
        let rounds = all.len().checked_div(length).unwrap_or(0).max(1);
        let at = (run.saturating_sub(1)) as usize % rounds * length;
        OracleValue {
            words: all.get(at..at + length).map(<[u64]>::to_vec),
            flags: Flags::NONE,
            entered: vec![device],
            answered: None,
        }
    }

    /// The error in the entries of a run, if any: no participant may enter twice, and all must enter a complete run.
    pub fn participant_error(&self, value: &OracleValue, complete: bool) -> Option<String> {
        let mut times: BTreeMap<u16, u32> =
            self.collective.tree.participants().iter().map(|&device| (device, 0)).collect();
        for device in &value.entered {
            match times.get_mut(device) {
                Some(times) => *times += 1,
                None => return Some(format!("device {device:#06x} entered, which takes no part")),
            }
        }
        let (device, times) = times.into_iter().find(|&(_, times)| times > 1 || complete && times == 0)?;
        Some(format!("device {device:#06x} entered {times} times"))
    }
}
