//! The runs of one contestant: undisturbed, one participant late, one dead, other orders of arrival.

use serde::Serialize;

use super::Disturbance;
use super::job::{Contestant, JobTable, Task, contexts};
use watershed_oracle as oracle;
use watershed_scenario_interface::Runnable;
use watershed_scenario_interface::armed_result::Outcomes;
use watershed_scenario_interface::config::{Family, Scenario};
use watershed_scenario_interface::data::Table;
use watershed_scenario_interface::names::DType;
use watershed_scenario_interface::random::Stream;
use watershed_scenario_interface::result::{Document, Outcome, ResultData};
use watershed_scenario_interface::run::{self, Control, RunOptions, RunResult};

/// The outcome of one contestant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Scenario file, or the name of a shipped one.
    pub scenario: String,
    /// "piuma", "armed" or "pbv".
    pub family: String,
    /// How it works, in words.
    pub method: String,
    /// `--set` arguments that make its undisturbed run.
    pub sets: Vec<String>,
    /// Hash of the configuration of that run.
    pub config_hash: String,
    /// What it computes.
    pub task: Task,
    /// Clock in MHz.
    pub clock_mhz: f64,
    /// The undisturbed run.
    pub run: Timing,
    /// What its links carried, set-up included.
    pub traffic: Traffic,
    /// What its hardware stores.
    pub storage: Storage,
    /// One participant late; null if that was not asked for.
    pub late: Option<LateParticipant>,
    /// One participant dead; null if that was not asked for.
    pub dead: Option<DeadParticipant>,
    /// Other orders of arrival; null if that was not asked for.
    pub bits: Option<ArrivalOrders>,
}

/// Times of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Timing {
    /// "finished", "deadlock", "max-cycles".
    pub outcome: String,
    /// Checks that failed: name and detail.
    pub failed: Vec<String>,
    /// Cycles before the first contribution: set-up, commands, arming.
    pub before_cycles: Option<u64>,
    /// From the first contribution to the last participant having the whole result; null if it did not get it.
    pub latency_cycles: Option<u64>,
    /// The same in ns.
    pub latency_ns: Option<f64>,
    /// From the last contribution to the last result of a round, on average, in ns; null of families without rounds.
    pub round_ns: Option<f64>,
    /// Elements over latency.
    pub elements_per_ns: Option<f64>,
    /// Bits of the vector over latency, in Gb/s.
    pub vector_gbps: Option<f64>,
    /// The bits are the oracle's.
    pub bit_exact: Option<bool>,
}

/// What links carried. A direction is a link.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Traffic {
    /// Links.
    pub links: u64,
    /// Those that carried something.
    pub used: u64,
    /// Flits over all of them.
    pub flits: u64,
    /// Payload bytes of those flits.
    pub bytes: u64,
    /// Packets (frames) over all of them.
    pub packets: u64,
    /// Packets of the link that carried most.
    pub packets_most: u64,
    /// Packets of a link that carried any, on average.
    pub packets_mean: f64,
}

/// What the hardware stores ([`cost`](watershed_scenario_interface::cost)).
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Storage {
    /// Switches.
    pub switches: u64,
    /// Bits of all.
    pub bits: u64,
    /// Bits of a switch with its engines, on average.
    pub bits_per_switch: u64,
    /// Estimated gate equivalents of a switch with its engines, on average.
    pub gates_per_switch: u64,
    /// Bits a switch by kind of block.
    pub blocks: Vec<BlockStorage>,
}

/// A kind of block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BlockStorage {
    /// Its name.
    pub name: String,
    /// Bits a switch, on average.
    pub bits: f64,
}

/// One participant late.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LateParticipant {
    /// Its name.
    pub end_point: String,
    /// By how many cycles.
    pub by_cycles: u64,
    /// The run.
    pub run: Timing,
    /// By how many cycles the latency rose.
    pub rise_cycles: Option<i64>,
    /// The same in ns.
    pub rise_ns: Option<f64>,
    /// Why it could not be run; then nothing above holds.
    pub refused: Option<String>,
    /// `--set` arguments beyond those of the undisturbed run.
    pub sets: Vec<String>,
}

/// One participant dead.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeadParticipant {
    /// Its name.
    pub end_point: String,
    /// What was done to it, in words.
    pub how: String,
    /// How the run ended: "finished", "deadlock" or "max-cycles".
    pub outcome: String,
    /// The run ended by itself.
    pub ends: bool,
    /// The cycle in which it ended or was given up.
    pub cycles: u64,
    /// Whole results that were reported, of how many rounds.
    pub complete: u64,
    /// Rounds that were begun or to be done.
    pub rounds: u64,
    /// How many of them were opening barriers.
    pub opening_rounds: u64,
    /// The participants that the collective named as missing.
    pub named: Vec<String>,
    /// Cycles from the first contribution to the first round that ended with a participant missing.
    pub after_cycles: Option<u64>,
    /// The same in ns.
    pub after_ns: Option<f64>,
    /// Why it could not be run; then nothing above holds.
    pub refused: Option<String>,
    /// `--set` arguments beyond those of the undisturbed run.
    pub sets: Vec<String>,
}

impl DeadParticipant {
    /// In a few words.
    pub fn words(&self) -> String {
        match self {
            Self { refused: Some(_), .. } => "cannot be said".into(),
            Self { ends: false, outcome, cycles, .. } => {
                let cycles = match cycles % 1_000_000 {
                    0 => format!("{} million cycles", cycles / 1_000_000),
                    _ => format!("{cycles} cycles"),
                };
                let by = if outcome == "deadlock" { "stands still" } else { "given up" };
                format!("never ends ({by} after {cycles})")
            }
            Self { complete, rounds, .. } if complete == rounds => "ends, as if complete".into(),
            Self { complete: 0, .. } => "ends without a result".into(),
            Self { complete, rounds, opening_rounds: 0, .. } => format!("ends, {complete} of {rounds} rounds whole"),
            Self { complete, rounds, opening_rounds, .. } => {
                format!("ends, {complete} of {rounds} rounds whole ({opening_rounds} of them opening ones)")
            }
        }
    }
}

/// Other orders of arrival.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArrivalOrders {
    /// Orders that were run, the undisturbed one included.
    pub orders: u64,
    /// Different results among them.
    pub distinct: u64,
    /// Runs that gave no whole result.
    pub without: u64,
    /// The largest distance of an element from the undisturbed run's, in units in the last place; null where there is no such
    /// distance.
    pub ulps: Option<u64>,
    /// Why they could not be run; then nothing above holds.
    pub refused: Option<String>,
    /// `--set` arguments of each order but the first.
    pub sets: Vec<Vec<String>>,
}

impl ArrivalOrders {
    /// In a few words.
    pub fn words(&self) -> String {
        match self {
            Self { refused: Some(_), .. } => "cannot be said".into(),
            Self { without, .. } if *without > 0 => format!("{without} of {} without a result", self.orders),
            Self { distinct: 1, .. } => format!("the same in {} orders", self.orders),
            Self { distinct, orders, ulps: Some(ulps), .. } => {
                format!("{distinct} results in {orders} orders, {ulps} ulp{} apart", if *ulps == 1 { "" } else { "s" })
            }
            Self { distinct, orders, .. } => format!("{distinct} results in {orders} orders"),
        }
    }
}

/// What a document says of the job.
struct ReportedTimes {
    first: Option<u64>,
    end: Option<u64>,
    exact: Option<bool>,
    outcomes: Outcomes,
    openings: u64,
    round_mean: Option<f64>,
    named: Vec<String>,
    named_at: Option<u64>,
}

fn reported_times(contestant: &Contestant, document: &Document) -> Option<ReportedTimes> {
    let of = document.jobs.first()?;
    let mut named: Vec<String> = Vec::new();
    let mut named_at = None;
    let mut missing = |list: &[String], end: Option<u64>| {
        for name in list {
            if !named.contains(name) {
                named.push(name.clone());
            }
        }
        if !list.is_empty() && named_at.is_none_or(|at| end.is_some_and(|end| end < at)) {
            named_at = end;
        }
    };
    let mut openings = 0;
    match contestant.part {
        JobTable::Collective | JobTable::Host => {}
        JobTable::Reduction => {
            let of = document.armed.as_ref()?.reductions.first()?;
            of.rounds.iter().for_each(|round| missing(&round.missing, round.end_cycle));
            openings = of.opening_rounds;
        }
        JobTable::Packets => {
            let all = document.pbv.as_ref()?.collectives.get(..contexts(&contestant.loaded.scenario).len())?;
            all.iter().flat_map(|of| &of.rounds).for_each(|round| missing(&round.missing, round.end_cycle));
        }
    }
    // What is done as a whole has no rounds to tell of.
    let rounds = of.round_latency_cycles.filter(|_| matches!(contestant.part, JobTable::Reduction | JobTable::Packets));
    Some(ReportedTimes {
        first: of.start_cycle,
        end: of.end_cycle,
        exact: of.bit_exact,
        outcomes: of.outcomes,
        openings,
        round_mean: rounds.map(|latency| latency.mean),
        named,
        named_at,
    })
}

fn word(outcome: Outcome) -> String {
    serde_json::to_value(outcome).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

/// A rate or a time with nine digits: more would be noise of the division.
fn rounded(value: f64) -> f64 {
    format!("{value:.8e}").parse().unwrap_or(value)
}

fn timing(contestant: &Contestant, document: &Document) -> Timing {
    let scenario = &contestant.loaded.scenario;
    let failed = document.checks.iter().filter(|check| !check.passed);
    let failed = failed.map(|check| format!("{}: {}", check.name, check.detail.lines().next().unwrap_or_default()));
    let mut timing = Timing { outcome: word(document.outcome), failed: failed.collect(), ..Timing::default() };
    let Some(told) = reported_times(contestant, document) else { return timing };
    timing.before_cycles = told.first;
    timing.bit_exact = told.exact;
    let whole = told.outcomes.all_correct();
    let (Some(first), Some(end)) = (told.first, told.end.filter(|_| whole)) else { return timing };
    let cycles = end.saturating_sub(first);
    timing.latency_cycles = Some(cycles);
    let ns = rounded(scenario.clock.nanoseconds(cycles));
    timing.latency_ns = Some(ns);
    timing.round_ns = told.round_mean.map(|cycles| rounded(cycles * scenario.clock.nanoseconds(1)));
    if let Some(bits) = element_bits(contestant).filter(|_| cycles > 0) {
        let elements = contestant.task.elements as f64;
        timing.elements_per_ns = Some(rounded(elements / ns));
        timing.vector_gbps = Some(rounded(elements * bits / ns));
    }
    timing
}

/// Bits of an element; none of a barrier.
fn element_bits(contestant: &Contestant) -> Option<f64> {
    let scenario = &contestant.loaded.scenario;
    contestant.task.dtype.as_ref()?;
    let dtype = match contestant.part {
        JobTable::Collective => scenario.collectives[0].dtype,
        JobTable::Host => scenario.hosts[0].dtype,
        JobTable::Reduction => scenario.armed.as_ref()?.reductions[0].opcode().dtype,
        JobTable::Packets => scenario.pbv.as_ref()?.collectives[0].dtype,
    };
    Some(f64::from(dtype.bits()))
}

fn traffic(scenario: &Scenario, document: &Document) -> Traffic {
    let all = document.links.all.as_deref().unwrap_or_default();
    let packets = |link: &watershed_scenario_interface::result::LinkResult| link.packets.unwrap_or(0);
    let used = all.iter().filter(|link| link.flits > 0).count() as u64;
    let (flits, sum) = (all.iter().map(|link| link.flits).sum::<u64>(), all.iter().map(packets).sum::<u64>());
    Traffic {
        links: all.len() as u64,
        used,
        flits,
        bytes: flits * u64::from(scenario.link.flit_bits) / 8,
        packets: sum,
        packets_most: all.iter().map(packets).max().unwrap_or(0),
        packets_mean: rounded(sum as f64 / used.max(1) as f64),
    }
}

/// Software needs switches without engines and without the channels of collectives.
fn storage(contestant: &Contestant) -> Result<Storage, String> {
    let mut loaded = contestant.loaded.clone();
    if contestant.part == JobTable::Host {
        loaded.scenario.family = Family::Fabric;
    }
    let cost = loaded.cost().map_err(|problems| problems.to_string())?;
    let switches = cost.switches.max(1) as f64;
    let mut blocks: Vec<BlockStorage> = Vec::new();
    for block in cost.blocks.iter().filter(|block| block.each.storage_bits > 0) {
        let bits = block.each.storage_bits as f64 * block.count as f64 / switches;
        match blocks.iter_mut().find(|known| known.name == block.block) {
            Some(known) => known.bits = rounded(known.bits + bits),
            None => blocks.push(BlockStorage { name: block.block.clone(), bits: rounded(bits) }),
        }
    }
    Ok(Storage {
        switches: cost.switches,
        bits: cost.total.storage_bits,
        bits_per_switch: cost.per_switch.storage_bits,
        gates_per_switch: cost.per_switch.gates,
        blocks,
    })
}

/// Cycles of a time in ns, rounded up.
fn cycles(scenario: &Scenario, ns: f64) -> u64 {
    (ns * scenario.clock.frequency_mhz / 1000.0).ceil() as u64
}

/// Why a contestant has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContestantError {
    /// The user stopped it.
    Interrupted,
    /// It cannot be run at all.
    Refused(String),
}

/// Runs it to its end, or until it is stopped; what has not begun by then does not begin.
pub(crate) fn run_to_end(loaded: &Runnable, stop: &(dyn Fn() -> bool + Sync)) -> Result<RunResult, ContestantError> {
    if stop() {
        return Err(ContestantError::Interrupted);
    }
    let hook = |progress| if stop() { Control::Stop } else { run::notify_watcher(progress) };
    let options = RunOptions { all_links: true, hook: Some(&hook), ..RunOptions::default() };
    let result = loaded.run(&options).map_err(|error| ContestantError::Refused(error.to_string()))?;
    if result.document.outcome == Outcome::Interrupted || stop() {
        Err(ContestantError::Interrupted)
    } else {
        Ok(result)
    }
}

/// A run with more set; or, in a line, why there is none.
fn variant(
    contestant: &Contestant,
    sets: &[String],
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Result<RunResult, String>, ContestantError> {
    match contestant.load_with(sets).map_err(ContestantError::Refused).and_then(|loaded| run_to_end(&loaded, stop)) {
        Ok(result) => Ok(Ok(result)),
        Err(ContestantError::Refused(why)) => Ok(Err(why.lines().next().unwrap_or_default().to_owned())),
        Err(interrupted) => Err(interrupted),
    }
}

/// All runs of a contestant.
///
/// # Errors
/// See [`ContestantError`]. A run that does not end or fails a check is no error.
pub fn measure(
    contestant: &Contestant,
    disturb: &Disturbance,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Entry, ContestantError> {
    let scenario = &contestant.loaded.scenario;
    let base = run_to_end(&contestant.loaded, stop)?;
    let document = &base.document;
    let timing = timing(contestant, document);
    let victim = contestant.victim();
    let layout = contestant.loaded.layout().map_err(|problems| ContestantError::Refused(problems.to_string()))?;
    let at = layout.switches() + victim as usize;
    let name = layout.plan.nodes.get(at).map_or_else(|| format!("end point {victim}"), |node| node.name.clone());

    let mut entry = Entry {
        name: contestant.name.clone(),
        scenario: contestant.file.clone(),
        family: contestant.family().into(),
        method: contestant.method.clone(),
        sets: contestant.sets.clone(),
        config_hash: document.stamp.config_hash.clone(),
        task: contestant.task.clone(),
        clock_mhz: scenario.clock.frequency_mhz,
        traffic: traffic(scenario, document),
        storage: storage(contestant).map_err(ContestantError::Refused)?,
        late: None,
        dead: None,
        bits: None,
        run: timing,
    };
    if disturb.late_ns > 0.0 {
        entry.late = Some(measure_late(contestant, disturb, &entry.run, (victim, &name), stop)?);
    }
    if disturb.dead {
        entry.dead = Some(measure_dead(contestant, entry.run.before_cycles.unwrap_or(0), (victim, &name), stop)?);
    }
    if disturb.orders > 0 && contestant.task.operation.is_some() {
        entry.bits = Some(orders(contestant, disturb, &base.data, stop)?);
    }
    Ok(entry)
}

fn measure_late(
    contestant: &Contestant,
    disturb: &Disturbance,
    base: &Timing,
    (victim, name): (u32, &str),
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<LateParticipant, ContestantError> {
    let by_cycles = cycles(&contestant.loaded.scenario, disturb.late_ns);
    let sets = contestant.sets_for_late(&[(victim, by_cycles)], true);
    let (run, refused) = match variant(contestant, &sets, stop)? {
        Ok(result) => (timing(contestant, &result.document), None),
        Err(why) => (Timing::default(), Some(why)),
    };
    let rise_cycles = run.latency_cycles.zip(base.latency_cycles).map(|(late, base)| late as i64 - base as i64);
    let rise_ns = run.latency_ns.zip(base.latency_ns).map(|(late, base)| rounded(late - base));
    Ok(LateParticipant { end_point: name.into(), by_cycles, run, rise_cycles, rise_ns, refused, sets })
}

fn measure_dead(
    contestant: &Contestant,
    first: u64,
    (victim, name): (u32, &str),
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<DeadParticipant, ContestantError> {
    let (sets, how) = contestant.sets_for_dead(victim, name, first);
    let mut dead = DeadParticipant {
        end_point: name.into(),
        how,
        outcome: String::new(),
        ends: false,
        cycles: 0,
        complete: 0,
        rounds: 0,
        opening_rounds: 0,
        named: Vec::new(),
        after_cycles: None,
        after_ns: None,
        refused: None,
        sets,
    };
    let result = match variant(contestant, &dead.sets, stop)? {
        Ok(result) => result,
        Err(why) => return Ok(DeadParticipant { refused: Some(why), ..dead }),
    };
    dead.outcome = word(result.document.outcome);
    dead.ends = result.document.outcome == Outcome::Finished;
    dead.cycles = result.document.cycles;
    if let Some(told) = reported_times(contestant, &result.document) {
        dead.complete = told.outcomes.complete + told.outcomes.after_retry;
        dead.rounds = told.outcomes.rounds();
        dead.opening_rounds = told.openings;
        dead.named = told.named;
        dead.after_cycles = told.named_at.map(|at| at.saturating_sub(first));
        dead.after_ns = dead.after_cycles.map(|cycles| rounded(contestant.loaded.scenario.clock.nanoseconds(cycles)));
    }
    Ok(dead)
}

/// Picoseconds resolve the offsets of participants, so that they are the same at every clock.
const PICO: f64 = 1000.0;

/// Results of the job, in the order of its rounds where they are spread over several contexts.
fn results_of(contestant: &Contestant, all: &[ResultData]) -> Option<(DType, Table)> {
    let count = contexts(&contestant.loaded.scenario).len();
    let (JobTable::Packets, 2..) = (contestant.part, count) else {
        return all.first().map(|data| (data.dtype, data.rows.clone()));
    };
    let all = all.get(..count)?;
    let mut rows = Table::default();
    for round in 0..all[0].rows.len() {
        let here = all.iter().filter(|data| round < data.rows.len());
        here.for_each(|data| rows.push(data.rows.row(round)));
    }
    Some((all[0].dtype, rows))
}

fn orders(
    contestant: &Contestant,
    disturb: &Disturbance,
    base: &[ResultData],
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<ArrivalOrders, ContestantError> {
    let scenario = &contestant.loaded.scenario;
    let base = results_of(contestant, base);
    let base = base.as_ref().map(|(dtype, rows)| (*dtype, rows));
    let mut results: Vec<Table> = base.iter().map(|&(_, rows)| rows.clone()).collect();
    let mut bits = ArrivalOrders {
        orders: u64::from(disturb.orders) + 1,
        distinct: 0,
        without: 0,
        ulps: Some(0),
        refused: None,
        sets: Vec::new(),
    };
    for order in 0..disturb.orders {
        let span = (disturb.spread_ns * PICO) as u64;
        let offset = |(rank, end): (usize, u32)| {
            let drawn = Stream::delays(disturb.seed, (1 << 40) + order as usize, rank).below(span + 1);
            (end, cycles(scenario, drawn as f64 / PICO))
        };
        // By number of the end point, whatever order a family has its participants in.
        let mut ends = contestant.participants();
        ends.sort_unstable();
        let offsets: Vec<(u32, u64)> = ends.into_iter().enumerate().map(offset).collect();
        let sets = contestant.sets_for_late(&offsets, false);
        let outcome = variant(contestant, &sets, stop)?;
        bits.sets.push(sets);
        let result = match outcome {
            Ok(result) => result,
            Err(why) => return Ok(ArrivalOrders { refused: Some(why), ..bits }),
        };
        let whole = timing(contestant, &result.document).latency_cycles.is_some();
        let rows = results_of(contestant, &result.data).filter(|_| whole).map(|(_, rows)| rows);
        match (rows, base) {
            (Some(rows), Some((dtype, base))) => {
                let pairs = rows.iter().flatten().zip(base.iter().flatten());
                let apart = pairs.map(|(&a, &b)| oracle::ulp_distance(dtype, a, b));
                let most = apart.into_iter().try_fold(0, |most, apart| Some(apart?.max(most)));
                bits.ulps = bits.ulps.zip(most).map(|(a, b)| a.max(b));
                if !results.contains(&rows) {
                    results.push(rows);
                }
            }
            _ => bits.without += 1,
        }
    }
    bits.distinct = results.len() as u64;
    Ok(bits)
}
