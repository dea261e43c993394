//! The report of a reduction: the outcome of each round, compared with the oracle, and the totals.

use std::collections::BTreeMap;

use super::config::Reduction;
use super::golden::{MergedAt, Reader};
use super::requested_rounds::{RequestedRounds, RoundOutcome};
use super::result::{DistinctResult, MergedShare, Outcomes, ReductionResult, RoundResult, TreeSetup};
use super::run::RunView;
use crate::job_result::{MinMeanMax, latency};
use crate::result::Check;
use crate::run::system::ArmedSystem;
use watershed_arith::{Quad, ResultCode};
use watershed_armed::composed::Composition;
use watershed_armed::root::RootRound;
use watershed_armed::{Client, ClientState, Job, RootState, RoundEnd, Soft};
use watershed_kernel::Cycle;
use watershed_oracle as oracle;

/// Rounds that are listed although they completed at once.
const LISTED: usize = 16;
/// Rounds that are listed at all.
const MOST_LISTED: usize = 1000;
/// Different results that are listed.
const MOST_DISTINCT: usize = 16;

/// A reduction that is reported, and what is known of it.
struct ReportedReduction<'r> {
    index: usize,
    reduction: &'r Reduction,
    reader: Option<Reader<'r>>,
    told: LeafResults,
}

/// The outcome of a round.
struct RoundVerdict {
    ended: RoundOutcome,
    /// In what its result is wrong.
    fault: Option<String>,
    /// Missing participants, by name.
    missing: Vec<String>,
    /// When the last contribution was ready.
    entered: Cycle,
    /// When the last participant had the result, if all have.
    got: Option<Cycle>,
}

/// Different results with how often they came, and their codes.
type DistinctResults = BTreeMap<([u64; 4], i8), (u64, Vec<ResultCode>)>;

/// What the rounds add up to.
struct RoundTotals {
    asked: RequestedRounds,
    merged: BTreeMap<MergedAt, u64>,
    values: DistinctResults,
    checked: u64,
    unchecked: u64,
    first_wrong: Option<String>,
}

impl RoundTotals {
    fn new(composed: Composition) -> RoundTotals {
        let asked = RequestedRounds::of(composed);
        RoundTotals {
            asked,
            merged: BTreeMap::new(),
            values: BTreeMap::new(),
            checked: 0,
            unchecked: 0,
            first_wrong: None,
        }
    }

    /// Where contributions were merged: from the leaves up, the deepest engines first, software last.
    fn merged_at(&self) -> Vec<MergedShare> {
        let total: u64 = self.merged.values().sum();
        let mut places: Vec<(MergedAt, u64)> = self.merged.iter().map(|(&at, &count)| (at, count)).collect();
        places.sort_by_key(|(at, _)| match at {
            MergedAt::Depth(depth) => (0, u32::MAX - depth),
            MergedAt::Software => (1, 0),
        });
        let share = |(at, contributions): (MergedAt, u64)| MergedShare {
            place: match at {
                MergedAt::Depth(depth) => format!("engines at depth {depth}"),
                MergedAt::Software => "software".into(),
            },
            contributions,
            share: contributions as f64 / total.max(1) as f64,
        };
        places.into_iter().map(share).collect()
    }

    /// What the oracle says to the results of all rounds.
    fn check(self, reduction: &str) -> Check {
        let name = format!("right or reported: {reduction}");
        let (checked, unchecked) = (self.checked, self.unchecked);
        match self.first_wrong {
            None if unchecked > 0 => {
                let why = "a station made more frames than a record can tell apart";
                Check::failed(name, format!("{unchecked} results could not be checked: {why}"))
            }
            None => Check::passed(name, format!("{checked} results are the oracle's, each participant once in each")),
            Some(what) => Check::failed(name, what),
        }
    }
}

impl RunView<'_, '_> {
    /// The report of one reduction, and what its checks found.
    pub(super) fn reduction(&self, index: usize, oracle: bool) -> (ReductionResult, Vec<Check>) {
        let reduction = &self.armed.reductions[index];
        let laid = &self.build.reductions[index];
        let system = self.system;
        let job = laid.job_of(system);
        let client = laid.client(system);
        let refused = client.and_then(Client::refusal).map(str::to_owned).or_else(|| laid.refused.clone());
        let reader = oracle.then(|| Reader::new(system, job, reduction, &laid.trees));
        let flows = self.flows(index);
        let one = ReportedReduction { index, reduction, reader, told: LeafResults::of(system, job, reduction) };
        let mut result = ReductionResult {
            name: reduction.name.clone(),
            opcode: reduction.file.op.clone(),
            method: if job.is_software() { "software" } else { "engines" }.into(),
            refused,
            one_tree: laid.no_second.clone(),
            multicast_ids: laid.ids(system),
            configured: client.map(|client| self.configured(reduction, client)),
            participants: u64::from(reduction.participants),
            outcomes: Outcomes::default(),
            opening_rounds: if job.opening { u64::from(job.flows) } else { 0 },
            retries: 0,
            first_arming_cycle: flows.iter().filter_map(|(_, rounds)| rounds.first()).map(|round| round.armed).min(),
            start_cycle: None,
            end_cycle: None,
            latency_cycles: None,
            latency_ns: None,
            round_latency_cycles: None,
            timeout_hint_1024_cycles: hint(&flows, &one.told),
            merged_at: Vec::new(),
            distinct_values: 0,
            distinct: Vec::new(),
            untold: one.told.untold.iter().map(|&end| self.end_name(end)).collect(),
            rounds: Vec::new(),
            more_rounds: 0,
            bit_exact: None,
        };
        let mut sums = RoundTotals::new(reduction.composed());
        for &(flow, rounds) in &flows {
            for round in rounds {
                result.retries += u64::from(round.attempts - 1);
                let judged = self.judge_round(&one, flow, round, &mut sums);
                let plain = judged.ended == RoundOutcome::Complete && round.frames.len() <= 1;
                if result.rounds.len() >= MOST_LISTED || (plain && result.rounds.len() >= LISTED) {
                    result.more_rounds += 1;
                } else {
                    result.rounds.push(self.row(flow, round, judged));
                }
            }
        }
        result.outcomes = sums.asked.outcomes();
        self.times(&one.told, &flows, &sums.asked.latencies(), &mut result);
        result.merged_at = sums.merged_at();
        result.distinct_values = sums.values.len() as u64;
        result.distinct = distinct(reduction, std::mem::take(&mut sums.values));
        let mut checks = Vec::new();
        if one.reader.is_some() {
            result.bit_exact = (sums.checked > 0).then_some(sums.first_wrong.is_none());
            checks.push(sums.check(&reduction.name));
        }
        (result, checks)
    }

    /// The outcome of a round, which is also counted.
    fn judge_round(
        &self,
        one: &ReportedReduction<'_>,
        flow: u8,
        round: &RootRound,
        sums: &mut RoundTotals,
    ) -> RoundVerdict {
        let (reduction, told) = (one.reduction, &one.told);
        let key = (flow, round.round.data);
        let complete = matches!(round.state, RoundEnd::Complete | RoundEnd::AfterRetry);
        let (mut fault, mut missing) = (None, Vec::new());
        if let (Some(reader), Some(token)) = (&one.reader, round.token) {
            fault = checked(reader, (token, complete), round, reduction, sums);
            if fault.is_none() {
                fault = told.different.get(&key).cloned();
            }
        } else if let Some(reader) = &one.reader {
            let there = match round.state {
                RoundEnd::Open => reader.participants_of(&self.under_way(one.index, flow)),
                _ => reader.participants_of(&round.partials),
            };
            let absent = (1..reduction.participants).filter(|rank| there.binary_search(rank).is_err());
            missing = absent.map(|rank| self.end_name(reduction.end_point(rank))).collect();
        }
        let everybody = told.got.get(&key).copied().unwrap_or(0) == u64::from(reduction.participants - 1);
        if let Some(wrong) = told.wrong.get(&key) {
            fault.get_or_insert_with(|| wrong.clone());
        }
        let ended = match round.state {
            // Whatever the root knows of the round: a participant holds bits that look like a result.
            _ if told.wrong.contains_key(&key) => RoundOutcome::Silent,
            RoundEnd::Open => RoundOutcome::Open,
            RoundEnd::Incomplete => RoundOutcome::Incomplete,
            _ if fault.is_some() => RoundOutcome::Silent,
            // A participant has no result and waits or has given up: it knows that it has none.
            _ if !everybody => RoundOutcome::Incomplete,
            RoundEnd::Complete => RoundOutcome::Complete,
            RoundEnd::AfterRetry => RoundOutcome::AfterRetry,
        };
        if let Some(fault) = &fault {
            let what = round.round.data.map_or_else(|| "opening".into(), |data| format!("round {data}"));
            sums.first_wrong.get_or_insert_with(|| format!("{what}: {fault}"));
        }
        let entered = told.entered.get(&key).copied().unwrap_or(0).max(round.own_ready);
        let got = told.last_got.get(&key).copied().filter(|_| everybody);
        sums.asked.take(key, ended, entered, got);
        let its_own = round.round.data.is_some_and(|data| !reduction.composed().prepares(data));
        if complete && its_own && reduction.same_every_round {
            let value = sums.values.entry((round.quad.lanes, round.quad.m)).or_default();
            value.0 += 1;
            if !value.1.contains(&round.quad.code) {
                value.1.push(round.quad.code);
            }
        }
        RoundVerdict { ended, fault, missing, entered, got }
    }

    /// A round as the document lists it.
    fn row(&self, flow: u8, round: &RootRound, judged: RoundVerdict) -> RoundResult {
        let lanes = || hex(self.loaded.scenario.results.head(&round.quad.lanes));
        RoundResult {
            round: round.round.data,
            reduction_id: flow,
            seqno: round.seqno,
            attempts: round.attempts,
            armed_cycle: round.armed,
            end_cycle: round.end,
            latency_cycles: judged.got.map(|got| got.saturating_sub(judged.entered)),
            counts: round.frames.clone(),
            result: round.token.map_or_else(Vec::new, |_| lanes()),
            code: round.quad.code.name().into(),
            outcome: judged.ended.name().into(),
            missing: judged.missing,
            fault: judged.fault,
        }
    }

    /// When it began and ended, and how long it and its rounds took; its outcomes are known.
    fn times(&self, told: &LeafResults, flows: &[(u8, &[RootRound])], latencies: &[u64], result: &mut ReductionResult) {
        result.round_latency_cycles = MinMeanMax::of(latencies);
        let data = |(_, rounds): &(u8, &[RootRound])| {
            rounds.iter().filter(|round| round.round.data.is_some()).map(|round| round.own_ready).min()
        };
        let leaves = told.first_entered.iter().filter(|(key, _)| key.1.is_some()).map(|(_, &cycle)| cycle);
        result.start_cycle = leaves.chain(flows.iter().filter_map(data)).min().or(result.first_arming_cycle);
        result.end_cycle = told.last.filter(|_| result.outcomes.all_answered());
        result.latency_cycles = latency(result.start_cycle, result.end_cycle, &result.outcomes);
        result.latency_ns = result.latency_cycles.map(|cycles| self.loaded.scenario.clock.nanoseconds(cycles));
    }

    /// How a reduction came by its tree at run time.
    fn configured(&self, reduction: &Reduction, client: &Client) -> TreeSetup {
        let (asked_cycle, answered_cycle) = client.times();
        let before = reduction.changes.map(|at| self.armed.reductions[usize::from(at)].name.clone());
        let deleted = reduction.file.delete_tree && !client.trees().is_empty();
        TreeSetup {
            asked_cycle,
            answered_cycle,
            cycles: asked_cycle.zip(answered_cycle).map(|(asked, answered)| answered - asked),
            requests: client.requests(),
            changes: before,
            deleted: deleted.then(|| client.state() == ClientState::Closed && !client.undeleted()),
        }
    }

    /// Tokens of what the root of a flow has of the round that is under way.
    fn under_way(&self, index: usize, flow: u8) -> Vec<u64> {
        let end = self.system.end(self.armed.reductions[index].root as usize);
        let mut roots = end.roots().iter();
        let root = roots.find(|root| usize::from(root.job().number) == index && root.flow() == flow);
        let soft = || end.softs().iter().find(|soft| usize::from(soft.job().number) == index);
        let root = root.filter(|root| root.state() != RootState::Software);
        root.map(|root| root.under_way().to_vec()).or_else(|| soft().map(Soft::under_way)).unwrap_or_default()
    }
}

/// In what the result of a round is not the oracle's; counts it as checked, and where it was merged.
fn checked(
    reader: &Reader<'_>,
    (token, complete): (u64, bool),
    round: &RootRound,
    reduction: &Reduction,
    sums: &mut RoundTotals,
) -> Option<String> {
    let Some(value) = reader.value(token) else {
        sums.unchecked += 1;
        return None;
    };
    sums.checked += 1;
    for entry in value.entries.iter().filter(|entry| entry.rank > 0) {
        *sums.merged.entry(entry.at).or_default() += 1;
    }
    let not_once = if complete { reader.participant_error(&value, round.round.data) } else { None };
    not_once.or_else(|| (value.quad != round.quad).then(|| differing(reduction, round.quad, value.quad)))
}

/// What the leaves of a reduction have: by reduction id and data round.
#[derive(Default)]
struct LeafResults {
    /// Leaves that got the result.
    got: BTreeMap<(u8, Option<u32>), u64>,
    /// When the last of them did.
    last_got: BTreeMap<(u8, Option<u32>), u64>,
    /// When the first contribution was ready.
    first_entered: BTreeMap<(u8, Option<u32>), u64>,
    /// When the last contribution was ready.
    entered: BTreeMap<(u8, Option<u32>), u64>,
    /// Rounds in which a leaf got other bits than the root sent.
    different: BTreeMap<(u8, Option<u32>), String>,
    /// Rounds in which a leaf holds a result, and not an error, that the root did not send.
    wrong: BTreeMap<(u8, Option<u32>), String>,
    /// Leaves that lack results.
    untold: Vec<u32>,
    last: Option<u64>,
}

impl LeafResults {
    fn of(system: &ArmedSystem, job: &Job, reduction: &Reduction) -> LeafResults {
        let mut told = LeafResults::default();
        let mut sent: BTreeMap<(u8, Option<u32>), Quad> = BTreeMap::new();
        let root = system.end(reduction.root as usize);
        for root in root.roots().iter().filter(|root| root.job().number == job.number) {
            for round in root.rounds().iter().filter(|round| round.token.is_some()) {
                sent.insert((root.flow(), round.round.data), round.quad);
            }
        }
        for soft in root.softs().iter().filter(|soft| soft.job().number == job.number) {
            for round in soft.rounds() {
                sent.insert((0, round.round.data), round.quad);
            }
        }
        let wanted = sent.len();
        for &end in &reduction.leaves {
            let mut have = 0;
            let at = system.end(end as usize);
            let mut take = |flow: u8, round: Option<u32>, entered: u64, got: u64, quad: Quad| {
                let key = (flow, round);
                have += 1;
                *told.got.entry(key).or_default() += 1;
                let last = told.last_got.entry(key).or_default();
                *last = got.max(*last);
                let last = told.entered.entry(key).or_default();
                *last = entered.max(*last);
                let first = told.first_entered.entry(key).or_insert(entered);
                *first = entered.min(*first);
                told.last = told.last.max(Some(got));
                match sent.get(&key) {
                    Some(sent) if *sent == quad => {}
                    _ => {
                        let text = || format!("end point {end} got another result than was sent");
                        told.different.entry(key).or_insert_with(text);
                        if !matches!(quad.code, ResultCode::OpMismatch | ResultCode::ContrOverflow) {
                            told.wrong.entry(key).or_insert_with(text);
                        }
                    }
                }
            };
            for leaf in at.leaves().iter().filter(|leaf| leaf.job().number == job.number) {
                for result in leaf.results() {
                    take(leaf.flow(), result.round.data, result.entered, result.got, result.quad);
                }
            }
            for soft in at.softs().iter().filter(|soft| soft.job().number == job.number) {
                for result in soft.results() {
                    take(0, Some(result.round), result.entered, result.got, result.quad);
                }
            }
            if have < wanted {
                told.untold.push(end);
            }
        }
        told
    }
}

/// The time-out the source recommends, from what was seen of all data rounds (R-ENG-9).
fn hint(flows: &[(u8, &[RootRound])], told: &LeafResults) -> Option<u64> {
    let spread = told
        .first_entered
        .iter()
        .filter(|(key, _)| key.1.is_some())
        .filter_map(|(key, first)| told.entered.get(key).map(|last| last - first));
    let spread = spread.max()?;
    let intervals = flows.iter().flat_map(|(_, rounds)| rounds.windows(2)).map(|pair| pair[1].armed - pair[0].armed);
    let (count, sum) = intervals.fold((0u64, 0u64), |(count, sum), interval| (count + 1, sum + interval));
    let interval = sum.checked_div(count).unwrap_or(0);
    Some((interval + 2 * spread).div_ceil(1024).max(1))
}

fn hex(lanes: &[u64]) -> Vec<String> {
    lanes.iter().map(|lane| format!("{lane:016x}")).collect()
}

fn differing(reduction: &Reduction, got: Quad, expected: Quad) -> String {
    let dtype = reduction.opcode().dtype;
    let lane = (0..4).find(|&lane| got.lanes[lane] != expected.lanes[lane]);
    match lane {
        Some(lane) => {
            let (got, expected) = (got.lanes[lane], expected.lanes[lane]);
            let ulps = oracle::ulp_distance(dtype, got, expected);
            let apart = ulps.map_or_else(String::new, |ulps| format!(", {ulps} ulps apart"));
            format!("lane {lane} is {got:016x}, the oracle has {expected:016x}{apart}")
        }
        None => format!(
            "code {}, M {}, oflow_id {}; the oracle has {}, {}, {}",
            got.code, got.m, got.oflow_id, expected.code, expected.m, expected.oflow_id
        ),
    }
}

fn distinct(reduction: &Reduction, values: DistinctResults) -> Vec<DistinctResult> {
    let mut list: Vec<_> = values.into_iter().collect();
    list.sort_by(|a, b| b.1.0.cmp(&a.1.0).then_with(|| a.0.cmp(&b.0)));
    let dtype = reduction.opcode().dtype;
    let usual = list.first().map_or([0; 4], |((lanes, _), _)| *lanes);
    list.truncate(MOST_DISTINCT);
    list.into_iter()
        .map(|((lanes, _), (rounds, mut codes))| {
            codes.sort_unstable();
            DistinctResult {
                result: hex(&lanes),
                codes: codes.iter().map(|code| code.name().to_owned()).collect(),
                rounds,
                ulps: if dtype.is_float() && reduction.row_length() == 4 {
                    let apart = |lane: usize| oracle::ulp_distance(dtype, usual[lane], lanes[lane]);
                    (0..4).map(apart).try_fold(0, |most, apart| Some(apart?.max(most)))
                } else {
                    None
                },
            }
        })
        .collect()
}
