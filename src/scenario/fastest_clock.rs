//! The clock of a scenario that asks for the fastest one: its period is that of the slowest block.
//!
//! The clock decides how many cycles a link takes whose latency is in ns. That sets how deep buffers are, and so how large and how slow. The
//! clock is a fixed point of that: the hardware that follows from it reaches it, and does not reach what it would reach next.

use std::path::Path;

use serde_json::json;

use super::config::Scenario;
use super::cost;
use super::cost::technology::{NANGATE45, Technology};
use super::file::{Frequency, ScenarioFile};
use super::problem::Problem;
use super::result::fnv1a;

/// Where the search begins, in hertz.
const FIRST: u64 = 1_000_000_000;
/// Steps of the search; it takes two or three.
const MOST_STEPS: usize = 16;

/// Resolves a scenario at its clock, or at the fastest one.
pub(super) fn resolved(
    file: &ScenarioFile,
    base: &Path,
    resolve: &dyn Fn(u64) -> Result<Scenario, Vec<Problem>>,
) -> Result<Scenario, Vec<Problem>> {
    let wrong = |message| vec![Problem::at("technology", message)];
    let (mut table, mut hash) = (None, None);
    if let Some(given) = file.technology.as_deref().filter(|given| *given != NANGATE45) {
        let path = base.join(given);
        table = Some(Technology::load(&path).map_err(wrong)?);
        hash = std::fs::read(&path).ok().map(|bytes| format!("{:016x}", fnv1a(&bytes)));
    }
    let technology = table.as_ref().unwrap_or_else(|| Technology::nangate45());
    let mut scenario = resolve(FIRST)?;
    if file.clock.frequency_mhz == Frequency::Fastest {
        // Whole hertz, rounded down: the period is not shorter than what the slowest block needs.
        let reached =
            |scenario: &Scenario| (1e12 / cost::shortest_period(scenario, technology).0).floor().max(1.0) as u64;
        // What is kept runs at its clock; what is tried next is faster.
        let mut kept: Option<Scenario> = None;
        let mut next = reached(&scenario);
        for _ in 0..MOST_STEPS {
            let tried = resolve(next)?;
            let can = reached(&tried);
            if can < next {
                if kept.is_some() {
                    break;
                }
                next = can;
                continue;
            }
            let is_fixed = can == next;
            (next, kept) = (can, Some(tried));
            if is_fixed {
                break;
            }
        }
        scenario = kept.ok_or_else(|| {
            let message = "no clock was found that the hardware that follows from it reaches";
            vec![Problem::at("clock.frequency_mhz", message).expected("a number, or links and buffers in cycles")]
        })?;
        let (period_ps, slowest) = cost::shortest_period(&scenario, technology);
        scenario.derived.insert("clock.period_ps".to_owned(), json!(period_ps));
        scenario.derived.insert("clock.slowest_block".to_owned(), json!(slowest));
    }
    if let Some(hash) = hash {
        // A file can change under its name: its contents are part of what a result came from.
        scenario.derived.insert("technology.hash".to_owned(), json!(hash));
    }
    Ok(scenario)
}
