//! The timeline of a workload: a bar a rank, which a script redraws when the reader zooms, and a table.

use std::fmt::Write;

use serde_json::json;
use watershed_scenario_interface::result::Document;
use watershed_scenario_interface::workload_result::{Span, WorkloadResult};

use super::chart::{legend, short};
use crate::plot::escape;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 8.0;
/// Height of a rank.
const BAR: f64 = 18.0;
/// The picture without scripts has this many ranks; the others are in what scripts draw.
const DRAWN: usize = 64;

/// The workload of a run, if it has one.
pub fn section(document: &Document, out: &mut String) {
    let Some(workload) = &document.workload else { return };
    let Some(end) = workload.spans.iter().map(|span| span.end_cycle).chain(workload.end_cycle).max() else { return };
    let _ = writeln!(
        out,
        "<h3>Ranks</h3><p>{}, {} ranks: computing above, communicating below, the critical path as a line under them. Dragging zooms, a \
         double click shows all again, a click on a bar says what it is.</p>",
        escape(&workload.trace),
        workload.ranks.len()
    );
    out.push_str("<figure class=\"ranks\">");
    out.push_str(&legend(&["computes", "communicates"]));
    picture(workload, end.max(1), out);
    let _ = writeln!(out, "<p><output></output></p>{}</figure>", embedded(document, workload, end.max(1)));
    table(workload, out);
}

/// Number of a span's track: computing is above.
fn track(span: &Span) -> usize {
    usize::from(span.what != "compute")
}

/// The bars as a picture, for those without scripts.
fn picture(workload: &WorkloadResult, end: u64, out: &mut String) {
    let ranks = workload.ranks.len().min(DRAWN);
    let height = TOP + BAR * ranks as f64 + 28.0;
    let wide = WIDTH - LEFT - RIGHT;
    let at = |cycle: u64| LEFT + cycle as f64 / end as f64 * wide;
    let _ = writeln!(out, "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\"><title>What ranks did when</title>");
    for rank in 0..ranks {
        let top = TOP + BAR * rank as f64;
        let _ = write!(out, "<text class=\"end\" x=\"{}\" y=\"{:.1}\">{rank}</text>", LEFT - 8.0, top + 12.0);
        for number in 0..2 {
            let mut path = String::new();
            // What touches within a tenth of a dot is one.
            let mut open: Option<(f64, f64)> = None;
            let own = workload.spans.iter().filter(|span| span.rank == rank as u64 && track(span) == number);
            let mut places: Vec<(f64, f64)> = own.map(|span| (at(span.start_cycle), at(span.end_cycle))).collect();
            places.sort_by(|a, b| a.0.total_cmp(&b.0));
            for (from, to) in places {
                match &mut open {
                    Some((_, until)) if from <= *until + 0.1 => *until = until.max(to),
                    _ => {
                        bar(open.take(), &mut path);
                        open = Some((from, to));
                    }
                }
            }
            bar(open, &mut path);
            if !path.is_empty() {
                let y = top + 4.0 + 7.0 * number as f64;
                let _ = write!(
                    out,
                    "<path class=\"line c{number}\" style=\"stroke-width:6\" transform=\"translate(0 {y:.1})\" d=\"{path}\"/>"
                );
            }
        }
        for step in workload.path.iter().filter(|step| step.rank == rank as u64) {
            let (from, to, y) = (at(step.start_cycle), at(step.end_cycle), top + 16.0);
            let _ = write!(out, "<path class=\"critical\" d=\"M{from:.1} {y:.1}H{to:.1}\"/>");
        }
        out.push('\n');
    }
    let bottom = TOP + BAR * ranks as f64;
    for part in 0..=4 {
        let cycle = end * part / 4;
        let _ = write!(
            out,
            "<text class=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            at(cycle),
            bottom + 16.0,
            short(cycle as f64)
        );
    }
    out.push_str("</svg>\n");
}

fn bar(place: Option<(f64, f64)>, path: &mut String) {
    if let Some((from, to)) = place {
        let _ = write!(path, "M{from:.1} 0H{:.1}", to.max(from + 0.2));
    }
}

/// Spans and the critical path as JSON.
fn embedded(document: &Document, workload: &WorkloadResult, end: u64) -> String {
    let span = |of: &Span| json!([of.rank, track(of), of.start_cycle, of.end_cycle, of.name]);
    let step =
        |of: &watershed_scenario_interface::workload_result::Step| json!([of.rank, of.start_cycle, of.end_cycle]);
    let json = json!({
        "ranks": workload.ranks.len(),
        "end": end,
        "ns": 1e3 / document.config["clock"]["frequency_mhz"].as_f64().unwrap_or(1e3),
        "spans": workload.spans.iter().map(span).collect::<Vec<_>>(),
        "path": workload.path.iter().map(step).collect::<Vec<_>>(),
    });
    format!("<script type=\"application/json\" class=\"ranks\">{}</script>", super::explore::embedded(&json))
}

/// Where the cycles of each rank went.
fn table(workload: &WorkloadResult, out: &mut String) {
    out.push_str(
        "<details><summary>Cycles of each rank</summary><div class=\"scroll\"><table><tr><th class=\"n\">rank</th><th class=\"n\">ended</th>\
         <th class=\"n\">computed</th><th class=\"n\">communicated</th><th class=\"n\">both</th><th class=\"n\">exposed</th>\
         <th class=\"n\">waited</th></tr>\n",
    );
    for (rank, of) in workload.ranks.iter().enumerate() {
        let end = of.end_cycle.map_or_else(|| "-".to_owned(), |cycle| cycle.to_string());
        let _ = write!(out, "<tr><td class=\"n\">{rank}</td><td class=\"n\">{end}</td>");
        for cycles in [of.compute_cycles, of.communicate_cycles, of.overlap_cycles, of.exposed_cycles, of.wait_cycles] {
            let _ = write!(out, "<td class=\"n\">{cycles}</td>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div></details>\n");
}
