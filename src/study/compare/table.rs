//! A comparison as a table for people and as CSV.

use std::fmt::Write;

use super::study::Outcome;
use super::{Comparison, Entry};
use watershed_scenario_interface::summary::decimals;

/// A number with up to three decimals.
pub fn plain(value: f64) -> String {
    decimals(value, 3)
}

fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// What the table has of an entry: a heading, and the lines below it with their unit.
pub(super) fn rows(comparison: &Comparison) -> Vec<(String, Vec<String>)> {
    let entries = &comparison.entries;
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    let mut row = |name: &str, value: &dyn Fn(&Entry) -> String| {
        rows.push((name.to_owned(), entries.iter().map(value).collect()));
    };
    row("method", &|entry| entry.method.clone());
    if entries.iter().any(|entry| entry.clock_mhz.to_bits() != entries[0].clock_mhz.to_bits()) {
        row("clock (MHz)", &|entry| plain(entry.clock_mhz));
    }
    if !comparison.differences.is_empty() {
        row("job", &|entry| entry.task.words());
    }
    row("before the first contribution (cycles)", &|entry| or_dash(entry.run.before_cycles));
    row("latency of the whole job (cycles)", &|entry| or_dash(entry.run.latency_cycles));
    row("latency of the whole job (ns)", &|entry| or_dash(entry.run.latency_ns.map(plain)));
    if entries.iter().any(|entry| entry.run.round_ns.is_some()) {
        row("a round, from last contribution (ns)", &|entry| or_dash(entry.run.round_ns.map(plain)));
    }
    if entries.iter().any(|entry| entry.task.dtype.is_some()) {
        row("throughput (elements a ns)", &|entry| or_dash(entry.run.elements_per_ns.map(plain)));
        row("throughput (Gb/s of the vector)", &|entry| or_dash(entry.run.vector_gbps.map(plain)));
        row("bit-exact", &|entry| match entry.run.bit_exact {
            Some(true) => "yes".into(),
            Some(false) => "NO".into(),
            None => "-".into(),
        });
    }
    row("traffic of all links (flits)", &|entry| entry.traffic.flits.to_string());
    row("traffic of all links (bytes)", &|entry| entry.traffic.bytes.to_string());
    row("frames on all links", &|entry| entry.traffic.packets.to_string());
    row("frames on a link, most", &|entry| entry.traffic.packets_most.to_string());
    row("frames on a link, mean", &|entry| plain(entry.traffic.packets_mean));
    row("storage (bits a switch)", &|entry| entry.storage.bits_per_switch.to_string());
    row("estimate (gates a switch)", &|entry| entry.storage.gates_per_switch.to_string());
    if comparison.disturb.late_ns > 0.0 {
        let head = format!("one late by {} ns: rise (ns)", plain(comparison.disturb.late_ns));
        row(&head, &|entry| disturbed(entry)[0].clone());
    }
    if comparison.disturb.dead {
        row("one dead: what happens", &|entry| disturbed(entry)[1].clone());
        row("one dead: who is named", &|entry| disturbed(entry)[2].clone());
        row("one dead: named after (ns)", &|entry| disturbed(entry)[3].clone());
    }
    if comparison.disturb.orders > 0 {
        row("bits when others come first", &|entry| disturbed(entry)[4].clone());
    }
    row("checks", &|entry| match entry.run.failed.first() {
        Some(check) => format!("FAILED: {check}"),
        None => "passed".into(),
    });
    rows
}

/// Columns of text are no wider than this; longer words are broken at blanks.
const WIDE: usize = 18;

fn wrap(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is one");
        if !last.is_empty() && last.chars().count() + 1 + word.chars().count() > WIDE {
            lines.push(word.to_owned());
        } else {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

/// The table for people: a column a contestant.
pub fn text(comparison: &Comparison) -> String {
    let Some(first) = comparison.entries.first() else { return String::new() };
    let mut out = String::new();
    if comparison.differences.is_empty() {
        let _ = writeln!(out, "the same job: {}", first.task.words());
    } else {
        let _ = writeln!(out, "NOT THE SAME JOB: {}", comparison.differences.join("; "));
    }
    let mut rows = rows(comparison);
    rows.insert(0, (String::new(), comparison.entries.iter().map(|entry| entry.name.clone()).collect()));
    let cells: Vec<(String, Vec<Vec<String>>)> =
        rows.into_iter().map(|(name, values)| (name, values.iter().map(|value| wrap(value)).collect())).collect();
    let length = |text: &String| text.chars().count();
    let label = cells.iter().map(|(name, _)| length(name)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..comparison.entries.len())
        .map(|at| cells.iter().flat_map(|(_, values)| &values[at]).map(length).max().unwrap_or(0))
        .collect();
    for (name, values) in &cells {
        let height = values.iter().map(Vec::len).max().unwrap_or(1);
        for line in 0..height {
            let name = if line == 0 { name.as_str() } else { "" };
            let mut text = format!("{name:label$}");
            for (value, width) in values.iter().zip(&widths) {
                let _ = write!(text, "  {:>width$}", value.get(line).map_or("", String::as_str));
            }
            let _ = writeln!(out, "{}", text.trim_end());
        }
    }
    out
}

/// Lines of cells in columns, the first to the left.
pub(crate) fn columns(lines: &[Vec<String>], out: &mut String) {
    let count = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |at: usize| lines.iter().filter_map(|line| line.get(at)).map(|word| word.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width).collect();
    for line in lines {
        let mut text = String::new();
        for (at, (word, width)) in line.iter().zip(&widths).enumerate() {
            let _ = if at == 0 { write!(text, "{word:width$}") } else { write!(text, "  {word:>width$}") };
        }
        let _ = writeln!(out, "{}", text.trim_end());
    }
}

/// A study for people: by system, what grows with the length; then what disturbances do.
pub fn study(outcome: &Outcome) -> String {
    let mut out = format!("{}\n", outcome.about);
    for system in outcome.systems() {
        let cells: Vec<_> = outcome.of(system).collect();
        let Some(first) = cells.first().and_then(|cell| cell.entries.first()) else { continue };
        let what = first.task.operation.as_ref().map_or(String::new(), |op| format!(" ({op})"));
        let _ = writeln!(
            out,
            "\n{system}: {}{what} of {} over {} end points, links of {} Gb/s",
            first.task.kind,
            first.task.dtype.as_deref().unwrap_or("nothing"),
            first.task.end_points,
            plain(first.task.link_gbps)
        );
        for (head, value) in METRICS {
            let mut lines = vec![
                std::iter::once((*head).to_owned()).chain(cells.iter().map(|cell| cell.elements.to_string())).collect(),
            ];
            for (at, name) in outcome.contestants.iter().enumerate() {
                let values = cells.iter().map(|cell| or_dash(cell.entries.get(at).and_then(value).map(plain)));
                lines.push(std::iter::once(format!("  {name}")).chain(values).collect::<Vec<String>>());
            }
            columns(&lines, &mut out);
        }
        for cell in cells.iter().filter(|cell| cell.disturbed) {
            let mut lines = vec![
                [
                    format!("disturbed, {} elements", cell.elements),
                    format!("late {} ns: rise (ns)", plain(outcome.disturb.late_ns)),
                    "one dead".into(),
                    "named".into(),
                    "after (ns)".into(),
                    "bits when others come first".into(),
                ]
                .to_vec(),
            ];
            lines.extend(cell.entries.iter().map(|entry| {
                let [late, dead, named, after, bits] = disturbed(entry);
                vec![format!("  {}", entry.name), late, dead, named, after, bits]
            }));
            columns(&lines, &mut out);
        }
    }
    for cell in &outcome.cells {
        for entry in &cell.entries {
            if let Some(check) = entry.run.failed.first() {
                let _ =
                    writeln!(out, "CHECK FAILED: {}, {} elements, {}: {check}", cell.system, cell.elements, entry.name);
            }
        }
    }
    out
}

type Metric = (&'static str, fn(&Entry) -> Option<f64>);

/// What is shown over the length.
const METRICS: &[Metric] = &[
    ("latency (ns) by elements", |entry| entry.run.latency_ns),
    ("throughput (Gb/s of the vector)", |entry| entry.run.vector_gbps),
    ("traffic of all links (bytes)", |entry| Some(entry.traffic.bytes as f64)),
    ("storage (bits a switch)", |entry| Some(entry.storage.bits_per_switch as f64)),
];

/// What disturbances do: rise in ns, what a death does, who is named, after how many ns, bits.
pub(super) fn disturbed(entry: &Entry) -> [String; 5] {
    let late = match &entry.late {
        Some(late) if late.refused.is_some() => "cannot be said".into(),
        Some(late) if late.run.latency_cycles.is_none() => "no whole result".into(),
        Some(late) => or_dash(late.rise_ns.map(plain)),
        None => "-".into(),
    };
    let dead = entry.dead.as_ref().map_or_else(|| "-".into(), super::measure::DeadParticipant::words);
    let named = match &entry.dead {
        Some(dead) if dead.refused.is_some() => "-".into(),
        Some(dead) if dead.named.is_empty() => "nobody".into(),
        Some(dead) if dead.named.len() > 3 => {
            format!("{} and {} more", dead.named[..2].join(", "), dead.named.len() - 2)
        }
        Some(dead) => dead.named.join(", "),
        None => "-".into(),
    };
    let after = or_dash(entry.dead.as_ref().and_then(|dead| dead.after_ns).map(plain));
    let bits = entry.bits.as_ref().map_or_else(|| "-".into(), super::measure::ArrivalOrders::words);
    [late, dead, named, after, bits]
}

/// Columns of the CSV.
const COLUMNS: &[&str] = &[
    "name",
    "scenario",
    "family",
    "method",
    "kind",
    "operation",
    "dtype",
    "elements",
    "end_points",
    "link_gbps",
    "clock_mhz",
    "outcome",
    "before_cycles",
    "latency_cycles",
    "latency_ns",
    "elements_per_ns",
    "vector_gbps",
    "bit_exact",
    "links",
    "links_used",
    "flits",
    "bytes",
    "frames",
    "frames_most",
    "frames_mean",
    "storage_bits",
    "storage_bits_per_switch",
    "gates_per_switch",
    "late_cycles",
    "late_rise_cycles",
    "late_rise_ns",
    "dead_outcome",
    "dead_ends",
    "dead_cycles",
    "dead_complete_rounds",
    "dead_rounds",
    "dead_named",
    "dead_after_cycles",
    "dead_after_ns",
    "orders",
    "distinct_results",
    "ulps",
    "config_hash",
    "round_ns",
];

fn cells(entry: &Entry) -> Vec<String> {
    let empty = |text: String| if text == "-" { String::new() } else { text };
    fn of<T: ToString>(value: Option<T>) -> String {
        value.map_or_else(String::new, |value| value.to_string())
    }
    let Entry { task, run, traffic, storage, late, dead, bits, .. } = entry;
    let (late, dead, bits) = (late.as_ref(), dead.as_ref(), bits.as_ref());
    [
        entry.name.clone(),
        entry.scenario.clone(),
        entry.family.clone(),
        entry.method.clone(),
        task.kind.clone(),
        of(task.operation.clone()),
        of(task.dtype.clone()),
        task.elements.to_string(),
        task.end_points.to_string(),
        task.link_gbps.to_string(),
        entry.clock_mhz.to_string(),
        run.outcome.clone(),
        of(run.before_cycles),
        of(run.latency_cycles),
        of(run.latency_ns),
        of(run.elements_per_ns),
        of(run.vector_gbps),
        of(run.bit_exact),
        traffic.links.to_string(),
        traffic.used.to_string(),
        traffic.flits.to_string(),
        traffic.bytes.to_string(),
        traffic.packets.to_string(),
        traffic.packets_most.to_string(),
        traffic.packets_mean.to_string(),
        storage.bits.to_string(),
        storage.bits_per_switch.to_string(),
        storage.gates_per_switch.to_string(),
        of(late.map(|late| late.by_cycles)),
        of(late.and_then(|late| late.rise_cycles)),
        of(late.and_then(|late| late.rise_ns)),
        of(dead.map(|dead| dead.outcome.clone())),
        of(dead.map(|dead| dead.ends)),
        of(dead.map(|dead| dead.cycles)),
        of(dead.map(|dead| dead.complete)),
        of(dead.map(|dead| dead.rounds)),
        of(dead.map(|dead| dead.named.join(" "))),
        of(dead.and_then(|dead| dead.after_cycles)),
        of(dead.and_then(|dead| dead.after_ns)),
        of(bits.map(|bits| bits.orders)),
        of(bits.map(|bits| bits.distinct)),
        of(bits.and_then(|bits| bits.ulps)),
        entry.config_hash.clone(),
        of(run.round_ns),
    ]
    .into_iter()
    .map(empty)
    .collect()
}

pub(crate) fn field(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// One line a contestant; `extra` are columns before all others, with their values line by line.
pub fn csv(entries: &[&Entry], extra: &[(&str, Vec<String>)]) -> String {
    let head = extra.iter().map(|(name, _)| *name).chain(COLUMNS.iter().copied()).collect::<Vec<_>>();
    let mut out = head.join(",") + "\n";
    for (at, entry) in entries.iter().enumerate() {
        let more = extra.iter().map(|(_, values)| values.get(at).cloned().unwrap_or_default());
        let line: Vec<String> = more.chain(cells(entry)).map(|cell| field(&cell)).collect();
        let _ = writeln!(out, "{}", line.join(","));
    }
    out
}

/// All runs of a study, a line each.
pub fn study_csv(outcome: &Outcome) -> String {
    let entries: Vec<&Entry> = outcome.cells.iter().flat_map(|cell| &cell.entries).collect();
    let system = |cell: &super::study::Cell| vec![cell.system.clone(); cell.entries.len()];
    csv(&entries, &[("system", outcome.cells.iter().flat_map(system).collect())])
}
