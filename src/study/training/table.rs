//! A training study as a table for people, as CSV, and as a page.

use std::fmt::Write;

use super::file::{BasisFile, Quantity, ReduceFile};
use super::{Cell, Figure, Iteration, Outcome};
use crate::compare::table::{columns, field, plain};
use crate::plot::escape;
use crate::report::chart::{Chart, Series, bars};
use crate::report::frame;

impl ReduceFile {
    /// In words.
    fn words(self) -> &'static str {
        match self {
            ReduceFile::Layers => "layer by layer",
            ReduceFile::End => "at the end",
        }
    }
}

impl BasisFile {
    fn word(self) -> &'static str {
        match self {
            BasisFile::Calibrated => "calibrated",
            BasisFile::Predicted => "predicted",
        }
    }
}

impl Quantity {
    /// Its unit.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Quantity::ExposedPercent => "%",
            Quantity::Speedup => "x",
        }
    }
}

/// A table: its head, and its lines.
struct Grid(Vec<Vec<String>>);

/// Iterations of a model in a system.
fn iterations(cell: &Cell) -> Grid {
    let head = [
        "minibatch",
        "gradients",
        "contestant",
        "iteration ms",
        "computing ms",
        "all-reduce ms",
        "exposed ms",
        "exposed %",
    ];
    let line = |of: &Iteration| {
        let mut line = vec![of.minibatch.to_string(), of.reduce.words().to_owned(), of.contestant.clone()];
        line.extend([of.ms, of.compute_ms, of.reduce_ms, of.exposed_ms, of.exposed_percent].map(plain));
        line
    };
    let lines = cell.iterations.iter().map(line);
    Grid(std::iter::once(head.map(str::to_owned).to_vec()).chain(lines).collect())
}

/// All-reduces of the layers of a model in a system.
fn layers(outcome: &Outcome, cell: &Cell) -> Grid {
    let fixed = ["layer", "elements", "bytes"].map(str::to_owned);
    let head = fixed.into_iter().chain(outcome.contestants.iter().map(|name| format!("{name} us")));
    let mut lines = vec![head.chain(["simulated".to_owned()]).collect::<Vec<_>>()];
    for layer in &cell.layers {
        let mut line = vec![layer.name.clone(), layer.elements.to_string(), layer.bytes.to_string()];
        line.extend(layer.ns.iter().map(|ns| plain(ns / 1e3)));
        line.push(if layer.extended {
            format!("{} elements, extended", outcome.simulated_elements)
        } else {
            "all".into()
        });
        lines.push(line);
    }
    Grid(lines)
}

/// What sources say, and ours.
fn figures(outcome: &Outcome) -> Grid {
    let head = ["figure", "source", "ours", "apart", "unit", "basis"].map(str::to_owned).to_vec();
    let line = |of: &Figure| {
        let apart = format!("{:+.1} %", 100.0 * (of.ours - of.says) / of.says);
        let verdict = if of.holds() { "" } else { ", TOO FAR" };
        let basis = format!("{}{verdict}", of.basis.word());
        vec![of.what.clone(), plain(of.says), plain(of.ours), apart, of.of.unit().to_owned(), basis]
    };
    Grid(std::iter::once(head).chain(outcome.figures.iter().map(line)).collect())
}

/// For people.
pub fn text(outcome: &Outcome) -> String {
    let mut out = format!("{}\n", outcome.about);
    for cell in &outcome.cells {
        let _ = writeln!(
            out,
            "\n{}, {} on {} end points: {} parameters",
            cell.system, cell.model, outcome.ranks, cell.parameters
        );
        columns(&iterations(cell).0, &mut out);
        out.push('\n');
        columns(&layers(outcome, cell).0, &mut out);
    }
    if !outcome.figures.is_empty() {
        out.push('\n');
        columns(&figures(outcome).0, &mut out);
    }
    out
}

/// A line an iteration.
pub fn csv(outcome: &Outcome) -> String {
    let mut out = String::from(
        "system,model,ranks,minibatch,gradients,contestant,iteration_ms,compute_ms,reduce_ms,exposed_ms,exposed_percent\n",
    );
    for cell in &outcome.cells {
        for of in &cell.iterations {
            let _ = writeln!(
                out,
                "{},{},{},{},{},{},{},{},{},{},{}",
                field(&cell.system),
                field(&cell.model),
                outcome.ranks,
                of.minibatch,
                of.reduce.words(),
                field(&of.contestant),
                of.ms,
                of.compute_ms,
                of.reduce_ms,
                of.exposed_ms,
                of.exposed_percent
            );
        }
    }
    out
}

impl Grid {
    fn html(&self, out: &mut String) {
        let Some((head, lines)) = self.0.split_first() else { return };
        out.push_str("<div class=\"scroll\"><table><tr>");
        for word in head {
            let _ = write!(out, "<th>{}</th>", escape(word));
        }
        out.push_str("</tr>\n");
        for line in lines {
            out.push_str("<tr>");
            for word in line {
                let number = if word.parse::<f64>().is_ok() { " class=\"n\"" } else { "" };
                let _ = write!(out, "<td{number}>{}</td>", escape(word));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</table></div>\n");
    }
}

/// A value of an iteration.
type Value = fn(&Iteration) -> f64;

/// A value over the minibatch: a line for each contestant and order.
fn over_minibatch(outcome: &Outcome, cell: &Cell, (title, y): (&str, &str), value: Value) -> String {
    let mut levels: Vec<u64> = cell.iterations.iter().map(|of| of.minibatch).collect();
    levels.dedup();
    let mut series = Vec::new();
    for contestant in &outcome.contestants {
        for reduce in [ReduceFile::End, ReduceFile::Layers] {
            let own = cell.iterations.iter().filter(|of| of.contestant == *contestant && of.reduce == reduce);
            let points = own.enumerate().map(|(x, of)| (x as f64, value(of))).collect();
            series.push(Series { name: format!("{contestant}, {}", reduce.words()), points, ..Series::default() });
        }
    }
    let chart = Chart {
        title: title.into(),
        x: "minibatch (images a rank)".into(),
        y: y.into(),
        levels: levels.iter().map(ToString::to_string).collect(),
        log_y: false,
        series,
    };
    chart.html()
}

/// As one page that needs nothing else.
pub fn page(outcome: &Outcome) -> String {
    let mut body = format!(
        "<section id=\"training\"><p>{}</p>\n<p class=\"note\">A rank does its all-reduces one after the other. Exposed is the time in which it \
         communicates and does not compute. All-reduces of more than {} elements are simulated at that length and extended by the time an \
         element between half of it and all of it; their rows say so.</p>\n",
        escape(&outcome.about),
        outcome.simulated_elements
    );
    if !outcome.figures.is_empty() {
        body.push_str("<h2>Beside a source</h2>\n");
        figures(outcome).html(&mut body);
    }
    body.push_str("</section>\n");
    for cell in &outcome.cells {
        let _ = writeln!(
            body,
            "<section><h2>{}: {} on {} end points</h2><p>{} parameters. Shapes: {}.</p>\n<div class=\"grid2\">",
            escape(&cell.system),
            escape(&cell.model),
            outcome.ranks,
            cell.parameters,
            escape(&cell.source)
        );
        body += &over_minibatch(outcome, cell, ("Exposed communication", "share of the iteration (%)"), |of| {
            of.exposed_percent
        });
        body += &over_minibatch(outcome, cell, ("Iteration", "time (ms)"), |of| of.ms);
        if let Some(all) = cell.layers.last() {
            let rows = outcome.contestants.iter().zip(&all.ns);
            let rows: Vec<_> =
                rows.map(|(name, ns)| (name.clone(), ns / 1e6, format!("{} ms", plain(ns / 1e6)))).collect();
            body += &bars("All gradients at once (ms)", &rows);
        }
        body.push_str("</div>\n<h3>Iterations</h3>\n");
        iterations(cell).html(&mut body);
        body.push_str("<h3>Layers</h3>\n");
        layers(outcome, cell).html(&mut body);
        body.push_str("</section>\n");
    }
    frame(&outcome.study, &body)
}
