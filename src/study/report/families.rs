//! Sections of a report that only the armed and PBV families and hosts have: outcomes and latencies of rounds, where
//! contributions were merged, counters of engines.

use std::fmt::Write;

use super::chart::{Chart, Series, bars, short};
use crate::plot::escape;
use watershed_scenario_interface::armed_result::{ArmedResult, RoundResult};
use watershed_scenario_interface::host_result::HostResult;
use watershed_scenario_interface::pbv_result::PbvResult;
use watershed_scenario_interface::result::Document;

/// All that applies to a document.
pub(super) fn results(document: &Document, out: &mut String) {
    if !document.hosts.is_empty() {
        hosts(&document.hosts, out);
    }
    if let Some(armed) = &document.armed {
        reductions(armed, out);
    }
    if let Some(pbv) = &document.pbv {
        packets(pbv, out);
    }
}

fn dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// A table: heads (those that begin with `#` are of numbers) and rows.
fn table(heads: &[&str], rows: &[Vec<String>], out: &mut String) {
    let number = |at: usize| heads.get(at).is_some_and(|head| head.starts_with('#'));
    out.push_str("<div class=\"scroll\"><table><tr>");
    for (at, head) in heads.iter().enumerate() {
        let class = if number(at) { " class=\"n\"" } else { "" };
        let _ = write!(out, "<th{class}>{}</th>", escape(head.trim_start_matches('#')));
    }
    out.push_str("</tr>\n");
    for row in rows {
        out.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            let class = if number(at) { " class=\"n\"" } else { "" };
            let _ = write!(out, "<td{class}>{}</td>", escape(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n");
}

fn exact(exact: Option<bool>) -> String {
    match exact {
        Some(true) => "exact",
        Some(false) => "WRONG",
        None => "not checked",
    }
    .to_owned()
}

fn hosts(list: &[HostResult], out: &mut String) {
    out.push_str("<h3>Collectives in software</h3>");
    let heads = [
        "name",
        "algorithm",
        "#ranks",
        "#elements",
        "#steps",
        "#latency (cycles)",
        "#latency (ns)",
        "#words sent by the busiest rank",
        "bits",
    ];
    let row = |host: &HostResult| {
        vec![
            host.name.clone(),
            format!("{} {}", of_op(&host.algorithm, host.op.as_deref()), host.mode),
            host.participants.to_string(),
            format!("{} {}", host.elements, host.dtype),
            host.steps.to_string(),
            dash(host.latency_cycles),
            host.latency_ns.map_or_else(|| "-".into(), short),
            host.words_sent.to_string(),
            exact(host.bit_exact),
        ]
    };
    table(&heads, &list.iter().map(row).collect::<Vec<_>>(), out);
}

/// What is done, with its operation if it has one: "allreduce (sum)".
fn of_op(what: &str, op: Option<&str>) -> String {
    op.map_or_else(|| what.to_owned(), |op| format!("{what} ({op})"))
}

/// Latencies of rounds as points over their numbers; nothing if there are fewer than three.
fn over_rounds(series: Vec<(String, Vec<(f64, f64)>)>, out: &mut String) {
    let series: Vec<Series> = series
        .into_iter()
        .filter(|(_, points)| points.len() >= 3)
        .map(|(name, mut points)| {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Series { name, points, marks_only: true, ..Series::default() }
        })
        .collect();
    if series.is_empty() {
        return;
    }
    let chart = Chart {
        title: "Latency of rounds, from the last contribution to the last result".into(),
        x: "round".into(),
        y: "latency (cycles)".into(),
        series,
        ..Chart::default()
    };
    out.push_str(&chart.html());
}

fn reductions(armed: &ArmedResult, out: &mut String) {
    out.push_str("<h3>Reductions</h3>");
    let heads = [
        "name",
        "operation",
        "#end points",
        "#rounds",
        "how they ended",
        "#latency, least",
        "#mean",
        "#most (cycles)",
        "#retries",
        "bits",
    ];
    let rows: Vec<Vec<String>> = armed
        .reductions
        .iter()
        .map(|of| {
            vec![
                of.name.clone(),
                if of.method == "software" { format!("{} in software", of.opcode) } else { of.opcode.clone() },
                of.participants.to_string(),
                match of.opening_rounds {
                    0 => of.outcomes.rounds().to_string(),
                    opening => format!("{} + {opening} opening", of.outcomes.rounds() - opening),
                },
                of.outcomes.words(),
                dash(of.round_latency_cycles.map(|all| all.min)),
                of.round_latency_cycles.map_or_else(|| "-".into(), |all| short(all.mean)),
                dash(of.round_latency_cycles.map(|all| all.max)),
                of.retries.to_string(),
                exact(of.bit_exact),
            ]
        })
        .collect();
    table(&heads, &rows, out);
    let points = |rounds: &[RoundResult]| {
        let point = |round: &RoundResult| Some((f64::from(round.round?), round.latency_cycles? as f64));
        rounds.iter().filter_map(point).collect()
    };
    over_rounds(armed.reductions.iter().map(|of| (of.name.clone(), points(&of.rounds))).collect(), out);
    out.push_str("<div class=\"grid2\">\n");
    for of in armed.reductions.iter().filter(|of| !of.merged_at.is_empty()).take(12) {
        let row = |at: &watershed_scenario_interface::armed_result::MergedShare| {
            (at.place.clone(), at.contributions as f64, format!("{} ({:.1} %)", at.contributions, at.share * 100.0))
        };
        let title = format!("{}: contributions by the place that merged them first", of.name);
        out.push_str(&bars(&title, &of.merged_at.iter().map(row).collect::<Vec<_>>()));
    }
    out.push_str(&nonzero_counters("What all engines counted", &armed.engines));
    out.push_str("</div>\n");
    let incomplete = |of: &watershed_scenario_interface::armed_result::ReductionResult| {
        let missing = of.rounds.iter().filter(|round| !round.missing.is_empty());
        let row = |round: &RoundResult| {
            let number = round.round.map_or_else(|| "opening".to_owned(), |round| round.to_string());
            vec![of.name.clone(), number, round.outcome.clone(), round.missing.join(", "), dash(round.end_cycle)]
        };
        missing.map(row).collect::<Vec<_>>()
    };
    missing(&armed.reductions.iter().flat_map(incomplete).collect::<Vec<_>>(), out);
}

fn packets(pbv: &PbvResult, out: &mut String) {
    out.push_str("<h3>Collectives</h3>");
    let heads = [
        "name",
        "kind",
        "#nodes",
        "engines",
        "#runs",
        "how they ended",
        "#latency, least",
        "#mean",
        "#most (cycles)",
        "bits",
    ];
    let rows: Vec<Vec<String>> = pbv
        .collectives
        .iter()
        .map(|of| {
            let kind = of_op(&of.kind, of.op.as_deref());
            let kind = match &of.dtype {
                Some(dtype) => format!("{kind} of {} {dtype}", of.elements_per_round),
                None => kind,
            };
            vec![
                of.name.clone(),
                kind,
                of.participants.to_string(),
                format!("{} in {} levels, master {}", of.engines, of.levels + 1, of.master),
                of.outcomes.rounds().to_string(),
                of.outcomes.words(),
                dash(of.round_latency_cycles.map(|all| all.min)),
                of.round_latency_cycles.map_or_else(|| "-".into(), |all| short(all.mean)),
                dash(of.round_latency_cycles.map(|all| all.max)),
                exact(of.bit_exact),
            ]
        })
        .collect();
    table(&heads, &rows, out);
    let series = pbv.collectives.iter().map(|of| {
        let points = of.rounds.iter().filter_map(|round| Some((f64::from(round.run), round.latency_cycles? as f64)));
        (of.name.clone(), points.collect())
    });
    over_rounds(series.collect(), out);
    let engines = serde_json::to_value(&pbv.engines).unwrap_or_default();
    if let Some(engines) = engines.as_object() {
        out.push_str(&nonzero_counters("What all engines counted", engines));
    }
    if !pbv.engines.failure_points.is_empty() {
        let _ = writeln!(out, "<p>Failure points: {}.</p>", escape(&pbv.engines.failure_points.join("; ")));
    }
    let incomplete = pbv.collectives.iter().flat_map(|of| {
        let rounds = of.rounds.iter().filter(|round| !round.missing.is_empty());
        rounds.map(|round| {
            let who = round.missing.join(", ");
            vec![of.name.clone(), round.run.to_string(), round.outcome.clone(), who, dash(round.end_cycle)]
        })
    });
    missing(&incomplete.collect::<Vec<_>>(), out);
}

/// Counters that are not 0.
fn nonzero_counters(title: &str, counts: &serde_json::Map<String, serde_json::Value>) -> String {
    let facts = counts.iter().filter_map(|(name, count)| {
        let count = count.as_u64().filter(|count| *count > 0)?;
        Some(format!("<div><dt>{}</dt><dd>{count}</dd></div>", escape(&name.replace('_', " "))))
    });
    let facts: Vec<String> = facts.collect();
    if facts.is_empty() {
        return String::new();
    }
    format!("<figure><figcaption>{title}</figcaption><dl class=\"facts small\">{}</dl></figure>\n", facts.concat())
}

/// Rounds in which a participant was missing.
fn missing(rows: &[Vec<String>], out: &mut String) {
    const SHOWN: usize = 50;
    if rows.is_empty() {
        return;
    }
    out.push_str("<h3>Who was missing</h3>");
    table(&["name", "round", "outcome", "missing", "#known in cycle"], &rows[..rows.len().min(SHOWN)], out);
    if rows.len() > SHOWN {
        let _ = writeln!(out, "<p class=\"note\">and {} more rounds</p>", rows.len() - SHOWN);
    }
}
