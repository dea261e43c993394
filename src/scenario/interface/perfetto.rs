//! The timeline of ranks as Chrome trace events, which Perfetto and `chrome://tracing` read: a process a rank, with
//! tracks for computing and for communication, and a process for the critical path.
//!
//! Events of one track of that format may not cross each other. What a rank does at the same time is on tracks of its own: a span
//! takes the first track of its kind that is free.

use serde_json::{Value, json};

use super::workload_result::{Span, WorkloadResult};
use watershed_reader::config::Clock;

/// The trace as JSON.
pub fn json(result: &WorkloadResult, clock: &Clock) -> String {
    let us = |cycles: u64| clock.nanoseconds(cycles) / 1000.0;
    let named = |what: &str, pid: usize, tid: usize, name: String| json!({ "name": what, "ph": "M", "pid": pid, "tid": tid, "args": { "name": name } });
    let mut events: Vec<Value> = Vec::new();
    let span = |name: &str, pid: usize, tid: usize, (from, to): (u64, u64)| {
        json!({
            "name": name, "ph": "X", "pid": pid, "tid": tid, "ts": us(from), "dur": us(to.saturating_sub(from)),
            "args": { "start_cycle": from, "end_cycle": to },
        })
    };
    let mut spans: Vec<Vec<&Span>> = vec![Vec::new(); result.ranks.len()];
    for of in &result.spans {
        spans[of.rank as usize].push(of);
    }
    for (rank, (of, spans)) in result.ranks.iter().zip(spans).enumerate() {
        events.push(named("process_name", rank, 0, format!("rank {rank} (end point {})", of.end_point)));
        let mut first = 0;
        for kind in KINDS {
            let (count, tracks) = tracks(spans.iter().copied().filter(|of| of.what == kind));
            for track in 0..count {
                let name = if track == 0 { kind.to_owned() } else { format!("{kind} {}", track + 1) };
                events.push(named("thread_name", rank, first + track, name));
            }
            for (of, track) in tracks {
                let name = if of.name.is_empty() { &of.what } else { &of.name };
                events.push(span(name, rank, first + track, (of.start_cycle, of.end_cycle)));
            }
            first += count;
        }
    }
    let path = result.ranks.len();
    events.push(named("process_name", path, 0, "critical path".to_owned()));
    for step in &result.path {
        let name = format!("rank {}: {} ({})", step.rank, step.node, step.what);
        events.push(span(&name, path, 0, (step.start_cycle, step.end_cycle)));
    }
    let document = json!({ "displayTimeUnit": "ns", "traceEvents": events });
    document.to_string() + "\n"
}

/// What spans of a rank are.
const KINDS: [&str; 2] = ["compute", "communicate"];

/// How many tracks spans of one kind need, at least one, and the track of each.
fn tracks<'a>(spans: impl Iterator<Item = &'a Span>) -> (usize, Vec<(&'a Span, usize)>) {
    let mut sorted: Vec<&Span> = spans.collect();
    sorted.sort_by_key(|of| (of.start_cycle, of.end_cycle));
    let mut free: Vec<u64> = vec![0];
    let mut placed = Vec::with_capacity(sorted.len());
    for of in sorted {
        let track = free.iter().position(|&from| from <= of.start_cycle).unwrap_or(free.len());
        if track == free.len() {
            free.push(0);
        }
        free[track] = of.end_cycle;
        placed.push((of, track));
    }
    (free.len(), placed)
}
