//! The timeline of ranks as Chrome trace events, which Perfetto and `chrome://tracing` read: a process a rank, with a
//! track for computing and one for communication, and a process for the critical path.

use serde_json::{Value, json};

use super::result::WorkloadResult;
use crate::config::Clock;

/// The trace as JSON.
pub fn json(result: &WorkloadResult, clock: &Clock) -> String {
    let us = |cycles: u64| clock.nanoseconds(cycles) / 1000.0;
    let named = |what: &str, pid: usize, tid: usize, name: String| json!({ "name": what, "ph": "M", "pid": pid, "tid": tid, "args": { "name": name } });
    let mut events: Vec<Value> = Vec::new();
    let path = result.ranks.len();
    for (rank, of) in result.ranks.iter().enumerate() {
        events.push(named("process_name", rank, 0, format!("rank {rank} (end point {})", of.end_point)));
        for (track, name) in TRACKS.iter().enumerate() {
            events.push(named("thread_name", rank, track, (*name).to_owned()));
        }
    }
    let span = |name: &str, pid: usize, tid: usize, (from, to): (u64, u64)| {
        json!({
            "name": name, "ph": "X", "pid": pid, "tid": tid, "ts": us(from), "dur": us(to.saturating_sub(from)),
            "args": { "start_cycle": from, "end_cycle": to },
        })
    };
    for of in &result.spans {
        let track = TRACKS.iter().position(|track| *track == of.what).unwrap_or(0);
        let name = if of.name.is_empty() { &of.what } else { &of.name };
        events.push(span(name, of.rank as usize, track, (of.start_cycle, of.end_cycle)));
    }
    events.push(named("process_name", path, 0, "critical path".to_owned()));
    for step in &result.path {
        let name = format!("rank {}: {} ({})", step.rank, step.node, step.what);
        events.push(span(&name, path, 0, (step.start_cycle, step.end_cycle)));
    }
    let document = json!({ "displayTimeUnit": "ns", "traceEvents": events });
    document.to_string() + "\n"
}

/// Tracks of a rank, by what spans are.
const TRACKS: [&str; 2] = ["compute", "communicate"];
