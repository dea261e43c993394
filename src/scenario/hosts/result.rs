//! The results of hosts: times, counts, and the checks of bits, rounds and volumes.

use super::build;
use super::config::Host;
use super::file::{HostAlgorithm, HostMode};
use super::ideal::{self, Ideal};
use super::volume;
use crate::Loaded;
use crate::build::PiumaBuild;
use crate::result::{Check, ResultData};
use crate::run::system::PiumaSystem as System;
use watershed_arith::{Mode, unpack_words};
use watershed_oracle as oracle;
use watershed_piuma::host::{Counts, Host as Rank};

pub use watershed_scenario_interface::host_result::HostResult;

/// The ranks of a host on the fabric.
pub fn ranks<'a>(system: &'a System, host: &'a Host, index: usize) -> impl Iterator<Item = &'a Rank> {
    let class = build::class(index);
    let at = |end: &u32| system.end(*end as usize).hosts().iter();
    host.ranks.iter().flat_map(at).filter(move |rank| rank.job().class == class)
}

/// Everything about all hosts, and the checks of it.
pub fn report(
    loaded: &Loaded,
    system: &System,
    ready: &PiumaBuild<()>,
    starts: &[Option<u64>],
    oracle: bool,
) -> (Vec<HostResult>, Vec<Check>) {
    let mut checks = Vec::new();
    let mut results = Vec::new();
    for (index, host) in loaded.scenario.hosts.iter().enumerate() {
        let mut result = HostResult {
            name: host.name.clone(),
            algorithm: host.file.algorithm.name().to_owned(),
            mode: if host.file.mode == HostMode::Ideal { "ideal" } else { "fabric" }.to_owned(),
            participants: host.ranks.len() as u64,
            op: host.reduces().then(|| crate::names::NamedValues::name(host.op).to_owned()),
            dtype: crate::names::NamedValues::name(host.dtype).to_owned(),
            elements: host.elements,
            steps: 0,
            words_sent: 0,
            words_received: 0,
            messages: 0,
            start_cycle: starts[index],
            end_cycle: None,
            latency_cycles: None,
            latency_ns: None,
            bit_exact: None,
        };
        let counts: Vec<Counts>;
        if host.file.mode == HostMode::Ideal {
            let ideal = ready.ideal.get(index).and_then(Option::as_ref);
            counts = ideal.map(|ideal| ideal.counts.clone()).unwrap_or_default();
            result.start_cycle = ideal.map(|_| 0);
            result.end_cycle = ideal.and_then(|ideal| ideal.done.iter().copied().max());
        } else {
            counts = ranks(system, host, index).map(Rank::counted).collect();
            let ends: Vec<Option<u64>> = ranks(system, host, index).map(Rank::end).collect();
            result.end_cycle = ends.into_iter().collect::<Option<Vec<u64>>>().and_then(|ends| ends.into_iter().max());
            if oracle {
                let exact = result.end_cycle.is_some() && is_exact(loaded, system, host, index);
                result.bit_exact = Some(exact);
                let name = format!("bit-exact: {}", host.name);
                let ranks = host.ranks.len();
                let detail = match result.end_cycle {
                    Some(_) => format!("{ranks} ranks against the oracle in the algorithm's own order"),
                    None => "it did not end".to_owned(),
                };
                checks.push(Check { name, passed: exact, detail });
            }
        }
        let most = |of: fn(&Counts) -> u64| counts.iter().map(of).max().unwrap_or(0);
        result.steps = most(|counts| counts.rounds);
        result.words_sent = most(|counts| counts.sent);
        result.words_received = most(|counts| counts.received);
        result.messages = counts.iter().map(|counts| counts.messages).sum();
        if let (Some(start), Some(end)) = (result.start_cycle, result.end_cycle) {
            let latency = end.saturating_sub(start);
            result.latency_cycles = Some(latency);
            result.latency_ns = Some(loaded.scenario.clock.nanoseconds(latency));
            let size = (host.file.algorithm, host.ranks.len(), host.words());
            checks.push(volumes(&host.name, size, &counts));
        }
        results.push(result);
    }
    (results, checks)
}

/// What all ranks of every host have in the end, a row a rank; no rows in ideal mode, where no data move.
pub fn data(loaded: &Loaded, system: &System) -> Vec<ResultData> {
    let one = |(index, host): (usize, &Host)| {
        let unpack = |rank: &Rank| unpack_words(host.dtype, rank.vector(), host.elements as usize);
        let rows = match host.file.mode {
            HostMode::Ideal => Vec::new(),
            HostMode::Fabric => ranks(system, host, index).map(unpack).collect(),
        };
        ResultData { place: format!("hosts.{index}"), name: host.name.clone(), dtype: host.dtype, rows: rows.into() }
    };
    loaded.scenario.hosts.iter().enumerate().map(one).collect()
}

/// Algorithm, ranks and words of a vector.
type Size = (HostAlgorithm, usize, u64);

/// P-HOST-2: every rank's rounds, words and messages are exactly those of the algorithm.
fn volumes(name: &str, (algorithm, ranks, words_each): Size, counts: &[Counts]) -> Check {
    let expected = |rank: usize| volume::of(algorithm, ranks as u64, words_each, rank as u64);
    let words = |counts: Counts| {
        let Counts { rounds, sent, received, messages } = counts;
        format!("{rounds} rounds, {sent} words sent, {received} received, {messages} messages")
    };
    let wrong = (0..ranks).find(|&rank| counts.get(rank) != Some(&expected(rank)));
    let detail = if let Some(rank) = wrong {
        format!(
            "rank {rank} of {ranks}: {}; the algorithm has {}",
            counts.get(rank).map_or_else(|| "nothing".to_owned(), |&counts| words(counts)),
            words(expected(rank))
        )
    } else {
        let busiest = counts.iter().copied().max_by_key(|counts| (counts.sent, counts.rounds)).unwrap_or_default();
        format!("all {ranks} ranks as the algorithm has it; the busiest: {}", words(busiest))
    };
    Check { name: format!("rounds and volume: {name}"), passed: wrong.is_none(), detail }
}

/// Every rank's vector against the same algorithm walked by the oracle.
fn is_exact(loaded: &Loaded, system: &System, host: &Host, index: usize) -> bool {
    let mut vectors = build::vectors(loaded, index);
    let mut combine = |left: u64, right: u64| oracle::word_pair(host.op, host.dtype, Mode::default(), left, right).0;
    host.schedule().execute(&mut vectors, &mut combine);
    let mut count = 0;
    for rank in ranks(system, host, index) {
        count += 1;
        if rank.vector() != vectors[rank.rank() as usize] {
            return false;
        }
    }
    count == vectors.len()
}

/// Computes the hosts in ideal mode; `None` for others.
///
/// # Errors
/// The index of a host with ranks between which no way leads.
pub fn ideal(
    loaded: &Loaded,
    layout: &watershed_fabric::topology::Layout,
    common: &watershed_fabric::topology::Common,
    memory: watershed_piuma::MemoryCfg,
    stages: u64,
) -> Result<Vec<Option<Ideal>>, usize> {
    let hosts = &loaded.scenario.hosts;
    if hosts.iter().all(|host| host.file.mode == HostMode::Fabric) {
        return Ok(vec![None; hosts.len()]);
    }
    let paths = ideal::UnloadedPaths::new(layout, common, stages);
    let one = |(index, host): (usize, &Host)| match host.file.mode {
        HostMode::Fabric => Ok(None),
        HostMode::Ideal => ideal::times(host, memory, &paths).map(Some).ok_or(index),
    };
    hosts.iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For any number of ranks, powers of two or not: there is no tolerance.
    #[test]
    fn one_word_or_round_too_many_fails_the_check() {
        use HostAlgorithm::{BinaryTree, Rabenseifner, RecursiveDoubling, Ring, SendLoop};
        for algorithm in [RecursiveDoubling, Ring, Rabenseifner, BinaryTree, SendLoop] {
            for (ranks, words) in [(1, 3), (2, 1), (3, 7), (5, 1), (6, 64), (7, 129), (8, 5)] {
                let size = (algorithm, ranks, words);
                let right: Vec<Counts> =
                    (0..ranks as u64).map(|rank| volume::of(algorithm, ranks as u64, words, rank)).collect();
                assert!(volumes("h", size, &right).passed);
                assert!(!volumes("h", size, &right[1..]).passed, "a rank is missing");
                for rank in 0..right.len() {
                    let mutate = [
                        |counts: &mut Counts| counts.rounds += 1,
                        |counts: &mut Counts| counts.sent += 1,
                        |counts: &mut Counts| counts.received += 1,
                        |counts: &mut Counts| counts.messages += 1,
                        |counts: &mut Counts| counts.sent = counts.sent.wrapping_sub(1),
                        |counts: &mut Counts| counts.received = counts.received.wrapping_sub(1),
                    ];
                    for change in mutate {
                        let mut wrong = right.clone();
                        change(&mut wrong[rank]);
                        let check = volumes("h", size, &wrong);
                        assert!(!check.passed && check.detail.contains(&format!("rank {rank} of")), "{}", check.detail);
                    }
                }
            }
        }
    }
}
