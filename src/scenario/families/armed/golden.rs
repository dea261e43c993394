//! The golden check of an armed run. It reads the tree of a result from the records of the stations, lets the oracle
//! evaluate it untimed, and compares. It also checks that every participant entered exactly once.
//!
//! It shares with the model only the names of operations and the opcode table; merging, mismatches and counts are
//! computed here again.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::config::Reduction;
use crate::run::system::ArmedSystem as System;
use watershed_arith::quad::Opcode;
use watershed_arith::{DType, Mode, Quad, ResultCode};
use watershed_armed::station::{FrameOrigin, Merges, Tokens};
use watershed_armed::{Composition, Job, SpanningTree, WireBlock};
use watershed_fabric::NodeKind;
use watershed_oracle as oracle;

/// Where a frame of a reduction was first merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MergedAt {
    /// In the engine of a switch so far from the root's switch.
    Depth(u32),
    /// In the root's software, or in software altogether.
    Software,
}

/// One participant's part in a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Rank.
    pub rank: u32,
    /// Data round.
    pub round: Option<u32>,
    /// Where it was merged first.
    pub at: MergedAt,
}

/// A value as the oracle has it.
#[derive(Clone, Debug)]
pub struct OracleValue {
    /// The quad.
    pub quad: Quad,
    /// Opcode of the first contribution.
    pub op: u8,
    /// Source of the first contribution.
    source: u32,
    /// Contributions.
    pub count: u64,
    /// Who entered, as often as they did.
    pub entries: Vec<Entry>,
}

/// Reads what stations wrote down.
pub struct Reader<'a> {
    tokens: Tokens,
    merges: BTreeMap<u32, &'a Merges>,
    /// Depth and wait count of engines, by station and multicast id … of one reduction.
    engines: BTreeMap<u32, (u32, u32)>,
    job: &'a Job,
    reduction: &'a Reduction,
    mode: Mode,
    /// The largest exponents of a round's operands, lane by lane (deterministic sums).
    largest: RefCell<BTreeMap<u32, [i64; 4]>>,
    /// Rounds whose preparing round had no result but this code.
    unprepared: BTreeMap<u32, ResultCode>,
}

impl<'a> Reader<'a> {
    /// A reader for one reduction; of two trees the one with this number.
    pub fn new(system: &'a System, job: &'a Job, reduction: &'a Reduction, trees: &[SpanningTree]) -> Reader<'a> {
        let plan = system.plan();
        let switches = plan.count(NodeKind::Switch) as u32;
        let bumps = system.bumps().enumerate();
        let mut merges: BTreeMap<u32, &Merges> = BTreeMap::new();
        let mut by_place = BTreeMap::new();
        for (at, engine) in bumps.filter_map(|(at, bump)| Some((at as u32, bump?.engine()?))) {
            merges.insert(switches + at, engine.merges());
            by_place.insert(engine.place(), switches + at);
        }
        let first_end = switches + plan.count(NodeKind::Bump) as u32;
        for (at, end) in system.ends().enumerate() {
            merges.insert(first_end + at as u32, end.merges());
        }
        let tokens = system.end(0).merges().tokens();
        // Two trees share only engines at the switches of end points, where both wait for the same end points.
        let rows = trees.iter().flat_map(|tree| &tree.rows);
        let engines = rows
            .filter_map(|row| Some((*by_place.get(&(row.switch, row.parent))?, (row.depth, row.wait_count))))
            .collect();
        let root = system.end(reduction.root as usize);
        let rounds =
            root.roots().iter().filter(|root| root.job().number == job.number).flat_map(watershed_armed::Root::rounds);
        let failed =
            rounds.filter(|round| matches!(round.quad.code, ResultCode::OpMismatch | ResultCode::ContrOverflow));
        let unprepared = failed.filter_map(|round| Some((round.round.data? + 1, round.quad.code)));
        let unprepared = unprepared.filter(|&(round, _)| job.composed.prepares(round - 1)).collect();
        Reader { tokens, merges, engines, job, reduction, mode: job.mode, largest: RefCell::default(), unprepared }
    }

    fn made(&self, token: u64) -> Option<&'a FrameOrigin> {
        self.merges.get(&self.tokens.station(token)).and_then(|merges| merges.of(token))
    }

    /// The value of the result with this token, as end points have it in the end; `None` if it was not recorded or is no value.
    pub fn value(&self, token: u64) -> Option<OracleValue> {
        let mut value = self.merged(token)?;
        value.quad = self.finalised(value.quad, value.entries.first().and_then(|entry| entry.round));
        Some(value)
    }

    /// The value of the frame with this token.
    fn merged(&self, token: u64) -> Option<OracleValue> {
        match self.made(token)? {
            FrameOrigin::Nothing => None,
            FrameOrigin::Contribution { rank, round, op, source, .. } => Some(OracleValue {
                quad: self.contribution(*rank, *round),
                op: *op,
                source: *source,
                count: 1,
                entries: vec![Entry { rank: *rank, round: *round, at: MergedAt::Software }],
            }),
            FrameOrigin::From(list) => {
                let place = self.engines.get(&self.tokens.station(token));
                let mut parts = list.iter();
                let mut sum = self.part(*parts.next()?, place)?;
                for &part in parts {
                    let next = self.part(part, place)?;
                    sum.quad = self.merge(&sum, &next);
                    sum.count += next.count;
                    sum.entries.extend(next.entries);
                }
                if place.is_some_and(|&(_, wait_count)| sum.count > u64::from(wait_count)) {
                    sum.quad.code = sum.quad.code.max(ResultCode::ContrOverflow);
                }
                Some(sum)
            }
        }
    }

    /// A part of a merge at a place: a contribution that comes as it is is merged there first.
    fn part(&self, token: u64, place: Option<&(u32, u32)>) -> Option<OracleValue> {
        let mut value = self.merged(token)?;
        if let (FrameOrigin::Contribution { .. }, Some(&(depth, _))) = (self.made(token)?, place) {
            value.entries[0].at = MergedAt::Depth(depth);
        }
        Some(value)
    }

    /// What a participant contributes: its own contributions, folded in their order.
    fn contribution(&self, rank: u32, round: Option<u32>) -> Quad {
        let Some(round) = round else { return Quad::default() };
        if self.reduction.composed() == Composition::Deterministic {
            return self.deterministic(rank, round);
        }
        let quads = self.job.inputs.of(rank, round);
        let opcode = self.reduction.opcode();
        let fold = |sum, quad: &Quad| oracle::quad_pair(opcode.op, opcode.dtype, self.mode_of(opcode), sum, *quad);
        quads.split_first().map_or_else(Quad::default, |(first, rest)| rest.iter().fold(*first, fold))
    }

    /// How many contributions a round has.
    fn contributions(&self) -> u64 {
        u64::from(self.reduction.participants) * u64::from(self.reduction.file.contributions_per_node)
    }

    /// The largest exponents of the operands that are summed in a round.
    fn largest(&self, sum: u32) -> [i64; 4] {
        let most = || {
            let all = (0..self.reduction.participants).flat_map(|rank| self.job.inputs.of(rank, sum));
            let most = |lanes: [i64; 4], quad: &Quad| {
                std::array::from_fn(|lane| lanes[lane].max(oracle::fixed::exponent(quad.lanes[lane])))
            };
            all.fold([0; 4], most)
        };
        *self.largest.borrow_mut().entry(sum).or_insert_with(most)
    }

    /// What a participant contributes to one of the two rounds of a deterministic sum.
    fn deterministic(&self, rank: u32, round: u32) -> Quad {
        let operands = self.job.inputs.of(rank, round / 2);
        if round.is_multiple_of(2) {
            let most = |lane: usize| operands.iter().map(|quad| oracle::fixed::exponent(quad.lanes[lane])).max();
            return Quad::of(std::array::from_fn(|lane| most(lane).unwrap_or(0) as u64));
        }
        if let Some(&code) = self.unprepared.get(&round) {
            return Quad { code, ..Quad::default() };
        }
        let (largest, contributions, mut quad) = (self.largest(round / 2), self.contributions(), Quad::default());
        for operand in operands {
            for (lane, largest) in largest.into_iter().enumerate() {
                let (integer, lost) = oracle::fixed::contribution(operand.lanes[lane], largest, contributions);
                let sum = quad.lanes[lane] as i64;
                quad.lanes[lane] = if largest == 2047 { sum | integer } else { sum + integer } as u64;
                quad.code = if lost { ResultCode::FltInexact } else { quad.code };
            }
        }
        quad
    }

    /// What end points make of the result of a round.
    fn finalised(&self, quad: Quad, round: Option<u32>) -> Quad {
        let failed = matches!(quad.code, ResultCode::OpMismatch | ResultCode::ContrOverflow);
        let Some(round) = round.filter(|_| !failed) else { return quad };
        let n = self.contributions();
        let lane = |lane: usize| match self.reduction.composed() {
            Composition::Plain => None,
            Composition::Deterministic if round.is_multiple_of(2) => None,
            Composition::Deterministic => {
                Some(oracle::fixed::value(quad.lanes[lane] as i64, self.largest(round / 2)[lane], n))
            }
            Composition::Mean => {
                let mode = self.mode_of(self.reduction.opcode());
                Some(oracle::quotient::word_quotient(DType::F64, mode, quad.lanes[lane], n as u32))
            }
        };
        let mut value = quad;
        for at in 0..4 {
            let Some((bits, flags)) = lane(at) else { return quad };
            value.lanes[at] = bits;
            value.code = value.code.max(oracle::quad::code_of(flags));
        }
        value
    }

    fn mode_of(&self, opcode: &Opcode) -> Mode {
        Mode { round: opcode.round, flush_to_zero: opcode.flush_to_zero, ..self.mode }
    }

    fn merge(&self, sum: &OracleValue, next: &OracleValue) -> Quad {
        for one in [sum, next] {
            if one.quad.code == ResultCode::OpMismatch {
                return one.quad;
            }
        }
        if sum.op != next.op {
            let lane = u64::from(sum.source) << 32 | u64::from(next.source);
            return Quad { code: ResultCode::OpMismatch, ..Quad::of([lane, 0, 0, 0]) };
        }
        let opcode = Opcode::from_number(sum.op).expect("contributions have opcodes");
        oracle::quad_pair(opcode.op, opcode.dtype, self.mode_of(opcode), sum.quad, next.quad)
    }

    /// All participants in these frames, without evaluating them.
    pub fn participants_of(&self, tokens: &[u64]) -> Vec<u32> {
        let mut list: Vec<u64> = tokens.to_vec();
        let mut ranks = Vec::new();
        while let Some(token) = list.pop() {
            match self.made(token) {
                Some(FrameOrigin::Contribution { rank, .. }) => ranks.push(*rank),
                Some(FrameOrigin::From(from)) => list.extend(from.iter()),
                _ => {}
            }
        }
        ranks.sort_unstable();
        ranks
    }

    /// What is wrong with the set of participants of a complete round: one missing, twice, or of another round.
    pub fn participant_error(&self, value: &OracleValue, round: Option<u32>) -> Option<String> {
        let mut times = vec![0u32; self.reduction.participants as usize];
        for entry in &value.entries {
            if entry.round != round {
                return Some(format!("rank {} entered with another round's contribution", entry.rank));
            }
            times[entry.rank as usize] += 1;
        }
        let wrong = times.iter().position(|&times| times != 1)?;
        Some(format!("rank {wrong} entered {} times", times[wrong]))
    }
}

/// Engines of a system, with their numbers among the bumps.
pub fn engines(system: &System) -> impl Iterator<Item = &watershed_armed::Engine> {
    system.bumps().flatten().filter_map(WireBlock::engine)
}
