//! What the links of a run did: by level, the busiest, and all of them if asked for.

use crate::fabric::LinkCount;
use crate::scenario::result::{LinkLevel, LinkResult, Links};

/// What the links did, from their loads.
pub(in crate::scenario) fn link_report(
    levels: &[String],
    loads: impl Iterator<Item = (u8, LinkCount, u16)>,
    ends: &dyn Fn(usize) -> (String, String),
    there: Option<&[u64]>,
    cycles: u64,
    all: bool,
) -> Links {
    const BUSIEST: usize = 8;
    /// More links that are equally busy than these are not sorted by name: the first of the plan stand for them.
    const NAMED: usize = 65_536;
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
    let mut list: Vec<(usize, (u8, LinkCount, u16))> = Vec::new();
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
        if all || flits > 0 {
            list.push((at, load));
        }
    }
    // Links that were not built because nothing uses them count as well, each in two directions.
    for (level, count) in by_level.iter_mut().zip(there.into_iter().flatten()) {
        level.links = 2 * count;
    }
    for level in &mut by_level {
        level.utilisation_mean /= (level.links.max(1) * cycles) as f64;
    }
    let result = |&(at, (level, count, cycles_per_flit)): &(usize, (u8, LinkCount, u16))| {
        let (from, to) = ends(at);
        let flits = count.set + count.unicast;
        LinkResult {
            name: format!("{from} -> {to}"),
            level: levels[usize::from(level)].clone(),
            flits,
            stalls: count.waited,
            utilisation: (flits * u64::from(cycles_per_flit)).min(cycles) as f64 / cycles as f64,
            packets: None,
        }
    };
    let counted = |load: &(usize, (u8, LinkCount, u16))| LinkResult { packets: Some(load.1.1.packets), ..result(load) };
    // Names are made of those only that can be among the busiest.
    let flits = |&(_, (_, count, _)): &(usize, (u8, LinkCount, u16))| count.set + count.unicast;
    let mut counts: Vec<u64> = list.iter().map(flits).filter(|&flits| flits > 0).collect();
    let least = if counts.len() > BUSIEST { *counts.select_nth_unstable_by(BUSIEST - 1, |a, b| b.cmp(a)).1 } else { 1 };
    let mut busiest: Vec<LinkResult> = list.iter().filter(|load| flits(load) > least).map(result).collect();
    busiest.extend(list.iter().filter(|load| flits(load) == least).take(NAMED).map(result));
    busiest.sort_by(|a, b| b.flits.cmp(&a.flits).then_with(|| a.name.cmp(&b.name)));
    busiest.truncate(BUSIEST);
    Links { levels: by_level, busiest, all: all.then(|| list.iter().map(counted).collect()) }
}
