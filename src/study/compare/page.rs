//! A comparison or a study as one HTML page, in the frame of [`report`](crate::report).

use std::fmt::Write;

use super::study::{Cell, Outcome};
use super::table::{disturbed, plain, rows};
use super::{Comparison, Disturbance, Entry};
use crate::plot::escape;
use crate::report::chart::{Chart, Series, bars};
use crate::report::{copied, frame};
use crate::sweep::store::command;

/// The page of a comparison.
pub fn of_comparison(comparison: &Comparison) -> String {
    let names: Vec<&str> = comparison.entries.iter().map(|entry| entry.name.as_str()).collect();
    let title = names.join(", ");
    let mut body = String::from("<section id=\"comparison\">");
    match comparison.entries.first() {
        Some(first) if comparison.differences.is_empty() => {
            let _ = writeln!(body, "<p>The same job: {}.</p>", escape(&first.task.words()));
        }
        _ => {
            let text = comparison.differences.join("; ");
            let _ = writeln!(body, "<p class=\"no\">Not the same job: {}.</p>", escape(&text));
        }
    }
    reading_guide(&comparison.disturb, &mut body);
    let entries: Vec<&Entry> = comparison.entries.iter().collect();
    body.push_str("<div class=\"grid2\">\n");
    let metrics: [(&str, &str, Value); 4] = [
        ("Latency", "ns", |entry| entry.run.latency_ns),
        ("Throughput of the vector", "Gb/s", |entry| entry.run.vector_gbps),
        ("Traffic of all links", "bytes", |entry| Some(entry.traffic.bytes as f64)),
        ("Storage of a switch with its engines", "bits", |entry| Some(entry.storage.bits_per_switch as f64)),
    ];
    for (title, unit, value) in metrics {
        body += &bar(&format!("{title} ({unit})"), unit, &entries, value);
    }
    body.push_str("</div>\n");
    disturbances(&comparison.disturb, "", &entries, &mut body);
    storage(&entries, &mut body);
    body.push_str("<h3>Everything</h3><div class=\"scroll\"><table id=\"everything\"><tr><th></th>");
    for name in &names {
        let _ = write!(body, "<th class=\"n\">{}</th>", escape(name));
    }
    body.push_str("</tr>\n");
    for (name, values) in rows(comparison) {
        let _ = write!(body, "<tr><td>{}</td>", escape(&name));
        for value in values {
            let _ = write!(body, "<td class=\"v\">{}</td>", escape(&value));
        }
        body.push_str("</tr>\n");
    }
    body.push_str("</table></div>\n");
    commands(&entries, &mut body);
    body.push_str("</section>\n");
    frame(&title, &body)
}

type Value = fn(&Entry) -> Option<f64>;

/// The page of a study.
pub fn of_study(outcome: &Outcome) -> String {
    let mut body = format!("<section id=\"study\"><p>{}</p>\n", escape(&outcome.about));
    reading_guide(&outcome.disturb, &mut body);
    body.push_str("</section>\n");
    for (number, system) in outcome.systems().into_iter().enumerate() {
        let cells: Vec<&Cell> = outcome.of(system).collect();
        let Some(first) = cells.first().and_then(|cell| cell.entries.first()) else { continue };
        let _ = writeln!(body, "<section id=\"system{number}\"><h2>{}</h2>", escape(system));
        let operation = first.task.operation.as_ref().map_or(String::new(), |op| format!(" ({op})"));
        let _ = writeln!(
            body,
            "<p>{}{} of {} over {} end points, links of {} Gb/s.</p>",
            escape(&first.task.kind),
            escape(&operation),
            escape(first.task.dtype.as_deref().unwrap_or("nothing")),
            first.task.end_points,
            plain(first.task.link_gbps)
        );
        body.push_str("<div class=\"grid2\">\n");
        let charts: [(&str, &str, Value); 4] = [
            ("Latency: lower is better", "latency (ns)", |entry| entry.run.latency_ns),
            ("Throughput: higher is better", "vector bits / latency (Gb/s)", |entry| entry.run.vector_gbps),
            ("Traffic of all links: lower is better", "bytes, set-up included", |entry| {
                Some(entry.traffic.bytes as f64)
            }),
            ("Storage of a switch with its engines: lower is better", "bits", |entry| {
                Some(entry.storage.bits_per_switch as f64)
            }),
        ];
        for (title, y, value) in charts {
            body += &over_length(outcome, &cells, (title, y), value).html();
        }
        body.push_str("</div>\n");
        for cell in cells.iter().filter(|cell| cell.disturbed) {
            let entries: Vec<&Entry> = cell.entries.iter().collect();
            disturbances(&outcome.disturb, &format!(", {} elements", cell.elements), &entries, &mut body);
            storage(&entries, &mut body);
        }
        for (title, value) in [
            ("Latency (ns)", (|entry| entry.run.latency_ns) as Value),
            ("Frames on the link that carried most", |entry| Some(entry.traffic.packets_most as f64)),
            ("Frames on a link that carried any, in the mean", |entry| Some(entry.traffic.packets_mean)),
        ] {
            by_length(outcome, &cells, title, value, &mut body);
        }
        body.push_str("</section>\n");
    }
    growth(outcome, &mut body);
    body.push_str("<section id=\"again\"><h2>Run it again</h2>\n");
    for cell in &outcome.cells {
        let _ = writeln!(body, "<details><summary>{}, {} elements</summary>", escape(&cell.system), cell.elements);
        commands(&cell.entries.iter().collect::<Vec<_>>(), &mut body);
        body.push_str("</details>\n");
    }
    body.push_str("</section>\n");
    frame(&outcome.study, &body)
}

/// How to read it.
fn reading_guide(disturb: &Disturbance, out: &mut String) {
    out.push_str(
        "<p class=\"note\">Latency is from the first contribution to the last participant having the whole result. Storage follows from the \
         configuration; that of software is that of switches without engines.",
    );
    if disturb.late_ns > 0.0 {
        let _ = write!(
            out,
            " The late participant comes {} ns late; where the latency rises by less, the others made progress in the meantime.",
            plain(disturb.late_ns)
        );
    }
    if disturb.dead {
        out.push_str(
            " The dead one never contributes; in a family without a key for that, it starts after the limit of the run.",
        );
    }
    if disturb.orders > 0 {
        let _ = write!(
            out,
            " Bits are compared with those of {} more run{} in which every participant is up to {} ns late.",
            disturb.orders,
            if disturb.orders == 1 { "" } else { "s" },
            plain(disturb.spread_ns)
        );
    }
    out.push_str("</p>\n");
}

fn bar(title: &str, unit: &str, entries: &[&Entry], value: Value) -> String {
    let row = |entry: &&Entry| {
        let value = value(entry)?;
        Some((entry.name.clone(), value, format!("{} {unit}", grouped(value))))
    };
    bars(title, &entries.iter().filter_map(row).collect::<Vec<_>>())
}

/// A number with blanks between groups of three digits.
fn grouped(value: f64) -> String {
    let text = plain(value);
    let (whole, rest) =
        text.split_once('.').map_or((text.as_str(), String::new()), |(whole, rest)| (whole, format!(".{rest}")));
    let digits: Vec<char> = whole.chars().collect();
    let mut out = String::new();
    for (at, digit) in digits.iter().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && digits[at - 1].is_ascii_digit() {
            out.push('\u{202f}');
        }
        out.push(*digit);
    }
    out + &rest
}

fn over_length(outcome: &Outcome, cells: &[&Cell], (title, y): (&str, &str), value: Value) -> Chart {
    let series = outcome.contestants.iter().enumerate().map(|(at, name)| {
        let points = cells.iter().enumerate().filter_map(|(x, cell)| Some((x as f64, value(cell.entries.get(at)?)?)));
        let points: Vec<(f64, f64)> = points.collect();
        let hint = |(x, y): &(f64, f64)| format!("{name}, {} elements: {}", cells[*x as usize].elements, grouped(*y));
        let hints = points.iter().map(hint).collect();
        Series { name: name.clone(), points, hints, marks_only: false }
    });
    Chart {
        title: title.into(),
        x: "elements of the vector".into(),
        y: y.into(),
        levels: cells.iter().map(|cell| cell.elements.to_string()).collect(),
        log_y: true,
        series: series.collect(),
    }
}

/// Latency over the systems, where there are several, at the length of the disturbances or the one in the middle.
fn growth(outcome: &Outcome, out: &mut String) {
    let systems = outcome.systems();
    if systems.len() < 2 {
        return;
    }
    let lengths: Vec<u64> = outcome.of(systems[0]).map(|cell| cell.elements).collect();
    out.push_str("<section id=\"growth\"><h2>From system to system</h2>\n<div class=\"grid2\">\n");
    for elements in [lengths.first(), lengths.last()].into_iter().flatten().take(lengths.len()) {
        let series = outcome.contestants.iter().enumerate().map(|(at, name)| {
            let points = systems.iter().enumerate().filter_map(|(x, system)| {
                let cell = outcome.of(system).find(|cell| cell.elements == *elements)?;
                Some((x as f64, cell.entries.get(at)?.run.latency_ns?))
            });
            Series { name: name.clone(), points: points.collect(), ..Series::default() }
        });
        let chart = Chart {
            title: format!("Latency with {elements} element{}", if *elements == 1 { "" } else { "s" }),
            x: "system".into(),
            y: "latency (ns)".into(),
            levels: systems.iter().map(ToString::to_string).collect(),
            log_y: true,
            series: series.collect(),
        };
        out.push_str(&chart.html());
    }
    out.push_str("</div></section>\n");
}

fn by_length(outcome: &Outcome, cells: &[&Cell], title: &str, value: Value, out: &mut String) {
    let _ = write!(
        out,
        "<details><summary>{}, in numbers</summary><div class=\"scroll\"><table><tr><th>elements</th>",
        escape(title)
    );
    for cell in cells {
        let _ = write!(out, "<th class=\"n\">{}</th>", cell.elements);
    }
    out.push_str("</tr>\n");
    for (at, name) in outcome.contestants.iter().enumerate() {
        let _ = write!(out, "<tr><td>{}</td>", escape(name));
        for cell in cells {
            let value = cell.entries.get(at).and_then(value).map_or_else(|| "-".to_owned(), grouped);
            let _ = write!(out, "<td class=\"n\">{value}</td>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div></details>\n");
}

/// What happens when one is late, one is dead, others come first.
fn disturbances(disturb: &Disturbance, at: &str, entries: &[&Entry], out: &mut String) {
    if entries.iter().all(|entry| entry.late.is_none() && entry.dead.is_none() && entry.bits.is_none()) {
        return;
    }
    let _ = write!(
        out,
        "<h3>When participants do not behave{at}</h3><div class=\"scroll\"><table class=\"disturbed\"><tr><th>contestant</th>"
    );
    let _ = write!(
        out,
        "<th class=\"n\">one is {} ns late:<br>latency rises by (ns)</th><th>one is dead</th><th>who is named</th><th class=\"n\">after (ns)</th><th>others come first: bits</th></tr>",
        plain(disturb.late_ns)
    );
    for entry in entries {
        let [late, dead, named, after, bits] = disturbed(entry);
        let good = |yes: Option<bool>| yes.map_or("", |yes| if yes { "yes" } else { "no" });
        let ends = entry.dead.as_ref().filter(|dead| dead.refused.is_none()).map(|dead| dead.ends);
        let told = entry.dead.as_ref().filter(|dead| dead.refused.is_none()).map(|dead| !dead.named.is_empty());
        let same = entry
            .bits
            .as_ref()
            .filter(|bits| bits.refused.is_none())
            .map(|bits| bits.distinct == 1 && bits.without == 0);
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"{}\">{}</td><td class=\"{}\">{}</td><td class=\"n\">{}</td><td class=\"{}\">{}</td></tr>",
            escape(&entry.name),
            escape(&late),
            good(ends),
            escape(&dead),
            good(told),
            escape(&named),
            escape(&after),
            good(same),
            escape(&bits)
        );
    }
    out.push_str("</table></div>\n");
}

/// What the bits of a switch are made of.
fn storage(entries: &[&Entry], out: &mut String) {
    out.push_str("<details><summary>What a switch stores</summary><div class=\"scroll\"><table><tr><th>contestant</th><th class=\"n\">bits a switch</th><th class=\"n\">gates (estimate)</th><th>made of</th></tr>\n");
    for entry in entries {
        let mut blocks = entry.storage.blocks.clone();
        blocks.sort_by(|a, b| b.bits.total_cmp(&a.bits));
        let parts: Vec<String> =
            blocks.iter().map(|block| format!("{} {}", block.name, grouped(block.bits.round()))).collect();
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>",
            escape(&entry.name),
            grouped(entry.storage.bits_per_switch as f64),
            grouped(entry.storage.gates_per_switch as f64),
            escape(&parts.join(", "))
        );
    }
    out.push_str("</table></div></details>\n");
}

fn commands(entries: &[&Entry], out: &mut String) {
    out.push_str("<div class=\"scroll\"><table class=\"again\"><tr><th>contestant</th><th>run it again</th></tr>\n");
    for entry in entries {
        let line = command(&entry.scenario, &entry.sets);
        let _ = writeln!(out, "<tr><td>{}</td><td class=\"cmd\">{}</td></tr>", escape(&entry.name), copied(&line));
    }
    out.push_str("</table></div>\n");
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn digits_stand_in_groups() {
        assert_eq!(
            [7.0, 999.0, 1000.0, 1_234_567.5, 0.25].map(grouped),
            ["7", "999", "1\u{202f}000", "1\u{202f}234\u{202f}567.5", "0.25"]
        );
    }
}
