//! What makes a simulator take a trace: faults that lose, repeat and hold up the frames of a scenario, so that they arrive in the
//! order of the trace.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Flight;

/// Cycles between two arrivals: more than a frame takes between any two stations.
const APART: u64 = 100;

/// The faults of a trace, as tables of a scenario. `link` says on which link a wire is, and which way it goes there; `None` where
/// nothing can be held up. `natural`: cycles that a frame takes on a wire if nothing does; between frames that follow each other what
/// counts is the difference.
pub fn faults(
    flights: &[Flight],
    table: &str,
    natural: impl Fn((u8, u8)) -> u64,
    link: impl Fn((u8, u8)) -> Option<(String, &'static str)>,
) -> String {
    let mut arrivals: BTreeMap<usize, &Flight> = BTreeMap::new();
    for flight in flights {
        arrivals.extend(flight.arrives.iter().map(|&step| (step, flight)));
        // A repeated frame comes right behind itself.
        assert!(flight.arrives.windows(2).all(|two| two[0] + 1 == two[1]), "{flight:?}");
    }
    // The cycle of each arrival; what follows a time-out counts from it, and other steps take no time.
    let last = arrivals.keys().last().copied().unwrap_or_default();
    let (mut cycles, mut behind) = (vec![0; last + 1], false);
    for step in 1..=last {
        let before: u64 = cycles[step - 1];
        cycles[step] = before;
        let Some(flight) = arrivals.get(&step) else { continue };
        cycles[step] += if behind { 1 } else { APART };
        behind = flight.follows;
        if flight.arrives.len() > 1 || link(flight.wire).is_none() {
            // Nothing holds it up: it has to come in its time by itself.
            let comes = cycles[flight.sent] + natural(flight.wire) + (step - flight.arrives[0]) as u64;
            assert!(comes > before, "step {step} comes too early: {flight:?}");
            cycles[step] = comes;
        }
    }
    let (mut text, mut numbers) = (String::new(), BTreeMap::new());
    for flight in flights {
        let Some((at, way)) = link(flight.wire) else {
            assert!(!flight.lost && flight.arrives.len() < 2, "{flight:?}");
            continue;
        };
        let number = numbers.entry((at.clone(), way)).or_insert(0u64);
        let effect = match flight.arrives[..] {
            [] if flight.lost => "effect = \"drop\"".to_owned(),
            [] => String::new(),
            [arrives] => match cycles[arrives] - cycles[flight.sent] - natural(flight.wire) {
                0 => String::new(),
                delay => format!("effect = \"delay\"\ndelay_cycles = {delay}"),
            },
            _ => "effect = \"duplicate\"".to_owned(),
        };
        if !effect.is_empty() {
            let _ = write!(text, "[[{table}]]\nat = \"{at}\"\nway = \"{way}\"\nnth = {number}\n{effect}\n");
        }
        *number += 1;
    }
    text
}
