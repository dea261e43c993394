//! What hosts say: times, counts, and the check of bits and of rounds and volumes.

use serde::{Deserialize, Serialize};

use super::build;
use super::config::Host;
use super::file::{HostAlgorithm, HostMode};
use super::ideal;
use crate::arith::Mode;
use crate::oracle;
use crate::piuma::System;
use crate::piuma::host::Host as Rank;
use crate::scenario::Loaded;
use crate::scenario::build::Ready;
use crate::scenario::result::{Check, ResultData};

/// What came of one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostResult {
    /// Its name.
    pub name: String,
    /// How it was done.
    pub algorithm: String,
    /// "fabric" or "ideal".
    pub mode: String,
    /// Ranks.
    pub ranks: u64,
    /// Operation.
    pub op: String,
    /// Type of an element.
    pub dtype: String,
    /// Elements.
    pub elements: u64,
    /// Rounds in which the busiest rank had something to do.
    pub rounds: u64,
    /// Words that the busiest rank sent.
    pub words_sent: u64,
    /// Words that the busiest rank received.
    pub words_received: u64,
    /// Messages of all ranks.
    pub messages: u64,
    /// First cycle; null if it did not start.
    pub start_cycle: Option<u64>,
    /// Last cycle; null if it did not end.
    pub end_cycle: Option<u64>,
    /// From start to end.
    pub latency_cycles: Option<u64>,
    /// The same in ns.
    pub latency_ns: Option<f64>,
    /// The whole job: the same as the latency. All families and software have these two, so that jobs can be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_cycles: Option<u64>,
    /// The same in ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_ns: Option<f64>,
    /// Every rank's every element has the oracle's bits; null if that was not checked.
    pub bit_exact: Option<bool>,
}

/// The ranks of a host on the fabric.
pub fn ranks<'a>(system: &'a System, host: &'a Host, index: usize) -> impl Iterator<Item = &'a Rank> {
    let class = build::class(index);
    let at = |end: &u32| system.end(*end as usize).hosts().iter();
    host.ranks.iter().flat_map(at).filter(move |rank| rank.job().class == class)
}

/// Everything about all hosts, and the checks of it.
pub fn report(loaded: &Loaded, ready: &Ready, starts: &[Option<u64>], oracle: bool) -> (Vec<HostResult>, Vec<Check>) {
    let mut checks = Vec::new();
    let mut results = Vec::new();
    for (index, host) in loaded.scenario.hosts.iter().enumerate() {
        let mut result = HostResult {
            name: host.name.clone(),
            algorithm: host.algorithm.name().to_owned(),
            mode: if host.mode == HostMode::Ideal { "ideal" } else { "fabric" }.to_owned(),
            ranks: host.ranks.len() as u64,
            op: crate::scenario::names::Named::name(host.op).to_owned(),
            dtype: crate::scenario::names::Named::name(host.dtype).to_owned(),
            elements: host.elements,
            rounds: 0,
            words_sent: 0,
            words_received: 0,
            messages: 0,
            start_cycle: starts[index],
            end_cycle: None,
            latency_cycles: None,
            latency_ns: None,
            job_cycles: None,
            job_ns: None,
            bit_exact: None,
        };
        if host.mode == HostMode::Ideal {
            let schedule = host.schedule();
            if let Some(Some((times, [sent, received, messages]))) = ready.ideal.get(index) {
                (result.words_sent, result.words_received, result.messages) = (*sent, *received, *messages);
                result.start_cycle = Some(0);
                result.end_cycle = times.iter().copied().max();
                let active = |rank: u32| (0..schedule.rounds()).filter(|&k| !schedule.round(rank, k).is_idle()).count();
                // The first, a middle and the last rank: one that folds is among them, and one that does not.
                let ranks = [0, host.ranks.len() as u32 / 2, host.ranks.len() as u32 - 1];
                result.rounds = ranks.map(active).into_iter().max().unwrap_or(0) as u64;
            }
        } else {
            let mut ends = Vec::new();
            for rank in ranks(&ready.system, host, index) {
                let (sent, received, messages, rounds) = rank.counted();
                result.words_sent = result.words_sent.max(sent);
                result.words_received = result.words_received.max(received);
                result.messages += messages;
                result.rounds = result.rounds.max(u64::from(rounds));
                ends.push(rank.end());
            }
            result.end_cycle = ends.into_iter().collect::<Option<Vec<u64>>>().and_then(|ends| ends.into_iter().max());
            if oracle {
                let exact = result.end_cycle.is_some() && is_exact(loaded, ready, host, index);
                result.bit_exact = Some(exact);
                let name = format!("bit-exact: {}", host.name);
                let detail = format!("{} ranks against the oracle in the algorithm's own order", host.ranks.len());
                checks.push(Check { name, passed: exact, detail });
            }
        }
        if let (Some(start), Some(end)) = (result.start_cycle, result.end_cycle) {
            let latency = end.saturating_sub(start);
            result.latency_cycles = Some(latency);
            result.latency_ns = Some(loaded.scenario.clock.nanoseconds(latency));
            (result.job_cycles, result.job_ns) = (result.latency_cycles, result.latency_ns);
            checks.push(volumes(host, &result));
        }
        results.push(result);
    }
    (results, checks)
}

/// What all ranks of every host have in the end, a row a rank; no rows in ideal mode, where no data move.
pub fn data(loaded: &Loaded, ready: &Ready) -> Vec<ResultData> {
    let one = |(index, host): (usize, &Host)| {
        let unpack = |rank: &Rank| {
            let lanes = rank.vector().iter().flat_map(|&word| crate::arith::unpack_lanes(host.dtype, word));
            lanes.take(host.elements as usize).collect()
        };
        let rows = match host.mode {
            HostMode::Ideal => Vec::new(),
            HostMode::Fabric => ranks(&ready.system, host, index).map(unpack).collect(),
        };
        ResultData { name: host.name.clone(), dtype: host.dtype, rows: rows.into() }
    };
    loaded.scenario.hosts.iter().enumerate().map(one).collect()
}

/// P-HOST-2: rounds and volumes.
fn volumes(host: &Host, result: &HostResult) -> Check {
    let (n, m) = (result.ranks, host.words());
    let log = u64::from(n.ilog2());
    let even = n.is_power_of_two();
    let (rounds, sent) = match host.algorithm {
        HostAlgorithm::RecursiveDoubling => (log, m * log),
        HostAlgorithm::Ring => (2 * (n - 1), 2 * m * (n - 1) / n),
        HostAlgorithm::Rabenseifner => (2 * log, 2 * m * (n - 1) / n),
        HostAlgorithm::SendLoop => (n - 1, m * (n - 1)),
    };
    let exact = even || matches!(host.algorithm, HostAlgorithm::Ring | HostAlgorithm::SendLoop);
    // Ranks that fold add two rounds and two vectors at most; segments differ by a word a round.
    let slack = if exact { 0 } else { 2 };
    let words = if m.is_multiple_of(n) && exact { 0 } else { 2 * m * slack / 2 + rounds + m.min(2 * rounds) };
    let passed = (rounds..=rounds + slack).contains(&result.rounds)
        && result.words_sent.abs_diff(sent) <= words
        && (result.messages > 0 || n == 1);
    let detail = format!(
        "{} rounds, {} words sent by the busiest rank; the algorithm has {rounds} and about {sent}",
        result.rounds, result.words_sent
    );
    Check { name: format!("rounds and volume: {}", host.name), passed, detail }
}

/// Every rank's vector against the same algorithm walked by the oracle.
fn is_exact(loaded: &Loaded, ready: &Ready, host: &Host, index: usize) -> bool {
    let mut vectors = build::vectors(loaded, index);
    let mut combine = |left: u64, right: u64| oracle::word_pair(host.op, host.dtype, Mode::default(), left, right).0;
    host.schedule().execute(&mut vectors, &mut combine);
    let mut count = 0;
    for rank in ranks(&ready.system, host, index) {
        count += 1;
        if rank.vector() != vectors[rank.rank() as usize] {
            return false;
        }
    }
    count == vectors.len()
}

/// Times of the hosts in ideal mode; `None` for others.
pub type Ideal = Option<(Vec<u64>, [u64; 3])>;

/// Computes the hosts in ideal mode.
///
/// # Errors
/// The index of a host on a topology without shortest paths of its own.
pub fn ideal(
    loaded: &Loaded,
    layout: &crate::fabric::topology::Layout,
    common: &crate::fabric::topology::Common,
    memory: crate::piuma::MemoryCfg,
    stages: u64,
) -> Result<Vec<Ideal>, usize> {
    let hosts = &loaded.scenario.hosts;
    if hosts.iter().all(|host| host.mode == HostMode::Fabric) {
        return Ok(vec![None; hosts.len()]);
    }
    let paths = ideal::Paths::new(layout, common, stages);
    let one = |(index, host): (usize, &Host)| match host.mode {
        HostMode::Fabric => Ok(None),
        HostMode::Ideal => ideal::times(host, memory, &paths).map(Some).ok_or(index),
    };
    hosts.iter().enumerate().map(one).collect()
}

impl HostResult {
    /// For people.
    pub fn lines(&self) -> Vec<(String, String)> {
        let mode = if self.mode == "ideal" { ", without contention" } else { "" };
        let first = format!(
            "{} ({}) of {} {} elements over {} ranks{mode}",
            self.algorithm, self.op, self.elements, self.dtype, self.ranks
        );
        let time = match (self.latency_cycles, self.latency_ns) {
            (Some(cycles), Some(ns)) => format!(
                "{cycles} cycles = {ns} ns in {} rounds, {} words sent and {} received by the busiest rank",
                self.rounds, self.words_sent, self.words_received
            ),
            _ => "not finished".to_owned(),
        };
        vec![(self.name.clone(), first), (String::new(), time)]
    }
}
