//! Statistics of the links of a run: by level, the busiest, and all of them on request.

use std::collections::BTreeMap;

use crate::result::{LinkLevel, LinkResult, Links, Waits};
use watershed_fabric::{Cause, HeadWaits, LinkCount, Simulation, WaitCycles};

/// A direction of a link: its number, and its level, traffic and cycles a flit.
type Load = (usize, (u8, LinkCount, u16));

/// The loads that can be among the busiest, by flits: how many there are, and the first of them. There may be millions of
/// links, so names are made only of these.
#[derive(Default)]
struct Busiest(BTreeMap<u64, (usize, Vec<Load>)>);

impl Busiest {
    /// The number of busiest links that are shown.
    const MOST: usize = 8;
    /// If more links than these are equally busy, the first of the plan are shown, not sorted by name.
    const NAMED: usize = 65_536;

    fn insert_load(&mut self, flits: u64, at: usize, load: (u8, LinkCount, u16)) {
        let least = self.0.first_key_value().map_or(0, |(&least, _)| least);
        if flits < least && self.0.values().map(|(count, _)| count).sum::<usize>() >= Self::MOST {
            return;
        }
        let (count, loads) = self.0.entry(flits).or_default();
        *count += 1;
        if loads.len() < Self::NAMED {
            loads.push((at, load));
        }
        // The least busy ones go when enough others are busier.
        while let Some((&least, _)) = self.0.first_key_value()
            && self.0.range(least + 1..).map(|(_, (count, _))| count).sum::<usize>() >= Self::MOST
        {
            self.0.remove(&least);
        }
    }
}

/// Cycles by the names of their causes, those that there were none of left out.
fn by_cause(waits: &WaitCycles) -> BTreeMap<String, u64> {
    let all = Cause::ALL.into_iter().map(|cause| (cause.name().to_owned(), waits.of(cause)));
    all.filter(|(_, cycles)| *cycles > 0).collect()
}

/// What all flits waited for.
fn head_waits(of: &HeadWaits) -> Waits {
    Waits { links: by_cause(&of.links), engines: by_cause(&of.engines), blocks: by_cause(&of.blocks) }
}

/// What the links did, from their loads and what flits waited for: everywhere, and by direction.
pub(crate) fn link_report(
    system: &dyn Simulation,
    loads: impl Iterator<Item = (u8, LinkCount, u16)>,
    waits: (Option<&HeadWaits>, &dyn Fn(usize) -> WaitCycles),
    there: Option<&[u64]>,
    cycles: u64,
    all: bool,
) -> Links {
    let levels = &system.plan().levels;
    let cycles = cycles.max(1);
    let mut by_level: Vec<LinkLevel> = levels
        .iter()
        .map(|level| LinkLevel {
            level: level.clone(),
            links: 0,
            flits: 0,
            utilisation_mean: 0.0,
            utilisation_max: 0.0,
        })
        .collect();
    let mut list: Vec<Load> = Vec::new();
    let mut busiest = Busiest::default();
    for (at, load) in loads.enumerate() {
        let (level, count, cycles_per_flit) = load;
        let flits = count.set + count.unicast;
        let busy = (flits * u64::from(cycles_per_flit)).min(cycles);
        let level = &mut by_level[usize::from(level)];
        level.links += 1;
        level.flits += flits;
        level.utilisation_max = level.utilisation_max.max(busy as f64 / cycles as f64);
        // A mean of exact integers: the sum of flits is divided once at the end.
        level.utilisation_mean += busy as f64;
        if all {
            list.push((at, load));
        }
        if flits > 0 {
            busiest.insert_load(flits, at, load);
        }
    }
    // Links that were not built because nothing uses them count as well, each in two directions.
    for (level, count) in by_level.iter_mut().zip(there.into_iter().flatten()) {
        level.links = 2 * count;
    }
    for level in &mut by_level {
        level.utilisation_mean /= (level.links.max(1) * cycles) as f64;
    }
    let name = |at: usize| {
        let (from, to) = system.link_ends(at);
        format!("{from} -> {to}")
    };
    let result = |&(at, (level, count, cycles_per_flit)): &Load| {
        let flits = count.set + count.unicast;
        LinkResult {
            name: name(at),
            level: levels[usize::from(level)].clone(),
            flits,
            head_wait_cycles: count.waited,
            waits: by_cause(&waits.1(at)),
            utilisation: (flits * u64::from(cycles_per_flit)).min(cycles) as f64 / cycles as f64,
            packets: None,
        }
    };
    let counted = |load: &Load| LinkResult { packets: Some(load.1.1.packets), ..result(load) };
    // Of many that are equally busy only the names are made to find the first of them.
    let equally = busiest.0.into_values().rev().flat_map(|(_, mut loads)| {
        loads.sort_by_cached_key(|load| name(load.0));
        loads
    });
    let busiest: Vec<LinkResult> = equally.take(Busiest::MOST).map(|load| result(&load)).collect();
    Links {
        levels: by_level,
        waits: waits.0.map(head_waits),
        busiest,
        all: all.then(|| list.iter().map(counted).collect()),
    }
}
