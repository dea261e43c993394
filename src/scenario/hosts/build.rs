//! Ranks at the end points.

use std::sync::Arc;

use super::config::Host;
use super::file::HostMode;
use crate::names::layout;
use crate::random::Stream;
use crate::{Loaded, Problem};
use watershed_arith::{self as arith, Mode};
use watershed_piuma::host::{Host as Rank, Job};
use watershed_piuma::{Core, End, MemoryCfg, OpSelect};

/// The tag of the packets of a host: far above the classes of traffic.
pub fn class(index: usize) -> u16 {
    0xfff - index as u16
}

/// Most hosts of a scenario.
pub const MOST: usize = 256;

/// The vectors of all ranks, as words.
pub fn vectors(loaded: &Loaded, index: usize) -> Vec<Vec<u64>> {
    let host = &loaded.scenario.hosts[index];
    let rows = match (&host.values, host.like) {
        (Some(values), _) => values.clone(),
        (None, Some(collective)) => loaded.data(collective),
        (None, None) => (0..host.ranks.len())
            .map(|rank| {
                let number = if host.file.draws.is_own() { 1 << 33 | index } else { index };
                Stream::data(loaded.scenario.seed, number, rank).elements(
                    host.elements,
                    host.random,
                    layout(host.dtype),
                )
            })
            .collect(),
    };
    rows.iter().map(|row| arith::pack_words(host.dtype, row)).collect()
}

/// What all ranks of a host know.
pub fn job(host: &Host, index: usize) -> Job {
    Job {
        schedule: host.schedule(),
        ends: host.ranks.clone(),
        select: OpSelect { op: host.op, dtype: host.dtype, mode: Mode::default() },
        overhead: host.file.overhead_cycles,
        packet_words: host.file.packet_words,
        merge_accesses: host.file.merge_accesses,
        class: class(index),
        numbers: None,
    }
}

/// Puts the ranks of all simulated hosts at their end points.
pub fn ranks(loaded: &Loaded, memory: &Arc<MemoryCfg>, ends: &mut [End]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, host) in loaded.scenario.hosts.iter().enumerate() {
        if host.file.mode == HostMode::Ideal {
            continue;
        }
        let job = Arc::new(job(host, index));
        if job.schedule.words > job.longest_message() {
            let message = format!("{} elements make messages of too many packets", host.elements);
            let expected = "fewer elements, or more `packet_words`";
            problems.push(Problem::at(format!("host[{index}].elements"), message).expected(expected));
            continue;
        }
        for (rank, (&end, vector)) in host.ranks.iter().zip(vectors(loaded, index)).enumerate() {
            let point = &mut ends[end as usize];
            point.core.get_or_insert_with(|| Box::new(Core::new(Arc::clone(memory))));
            point.beside.get_or_insert_default().hosts.push(Rank::new(Arc::clone(&job), rank as u32, vector));
        }
    }
    problems
}
