//! The wait-for graph of the calls of programs, and a cycle of calls that never ends.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::config::{Collective, Scenario};
use crate::run::system::PiumaSystem as System;

/// A core that waits in a call for another one, which has not made it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CallWait {
    /// The core, with thread and line.
    who: String,
    collective: String,
    /// Which call of it, from 0 on.
    number: usize,
    called: u64,
    /// The end point that is missing.
    missing: u32,
}

/// The calls of every core that waits, by end point.
fn waits(scenario: &Scenario, system: &System) -> BTreeMap<u32, Vec<CallWait>> {
    let called: Vec<&Collective> = scenario.collectives.iter().filter(|of| of.called).collect();
    let calls = |end: u32, id: u32| {
        let processor = system.end(end as usize).processor();
        let calls = processor.map_or(&[][..], |processor| processor.calls());
        calls.iter().filter(move |call| u32::from(call.id) == id)
    };
    let mut all: BTreeMap<u32, Vec<CallWait>> = BTreeMap::new();
    for of in called {
        for &end in of.participants.iter() {
            let Some(processor) = system.end(end as usize).processor() else { continue };
            for (at, who) in processor.blocked() {
                let call = &processor.calls()[at];
                if u32::from(call.id) != of.id {
                    continue;
                }
                let number = processor.calls()[..at].iter().filter(|other| other.id == call.id).count();
                let missing = of.participants.iter().copied().filter(|&other| calls(other, of.id).count() <= number);
                let wait = |missing| CallWait {
                    who: who.clone(),
                    collective: of.name.clone(),
                    number,
                    called: call.issued,
                    missing,
                };
                all.entry(end).or_default().extend(missing.map(wait));
            }
        }
    }
    all
}

/// A circle of calls: every core in it waits in a call that the next one has not made, because that waits likewise. No circle
/// where some thread of a core that is missing still runs.
pub fn find(scenario: &Scenario, system: &System) -> Option<String> {
    scenario.programs.as_ref()?;
    let waits = waits(scenario, system);
    let only_waits =
        |end: u32| system.end(end as usize).processor().is_some_and(watershed_piuma::Processor::only_waits);
    for &first in waits.keys() {
        // Depth first; what led to nothing once leads to nothing again.
        let mut dead = std::collections::BTreeSet::new();
        let mut path: Vec<(u32, usize)> = vec![(first, 0)];
        while let Some(&(end, next)) = path.last() {
            let Some(wait) = waits.get(&end).and_then(|list| list.get(next)).filter(|_| only_waits(end)) else {
                dead.insert(end);
                path.pop();
                continue;
            };
            if let Some(last) = path.last_mut() {
                last.1 += 1;
            }
            if let Some(begin) = path.iter().position(|(known, _)| *known == wait.missing) {
                return Some(describe_wait(&path[begin..], &waits, system));
            }
            if !dead.contains(&wait.missing) {
                path.push((wait.missing, 0));
            }
        }
    }
    None
}

fn describe_wait(circle: &[(u32, usize)], waits: &BTreeMap<u32, Vec<CallWait>>, system: &System) -> String {
    let name = |end: u32| system.end(end as usize).processor().map_or("a core", |processor| processor.name());
    let mut text = format!("{} cores wait for each other's calls in a circle:", circle.len());
    for &(end, next) in circle {
        let CallWait { who, collective, number, called, missing } = &waits[&end][next - 1];
        let _ = write!(
            text,
            "\n  {who}: waits since cycle {called} in call {number} of {collective}, which {} has not called",
            name(*missing)
        );
    }
    text
}
