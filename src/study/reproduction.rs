//! Studies by name: what `watershed study NAME` runs. Each runs scenarios that are part of the program and compares the
//! results with the values of a source.
//!
//! A new study is a file here and a line in [`ALL`].

use std::fmt::Write;

use serde::Serialize;

use watershed_scenario_interface::Engines;

use super::plot::Plot;
use super::plot::escape;
use super::report::frame;

/// How a study is run. It reports its progress through a callback and fills the report as it goes on: rows that are
/// there when a simulation fails or is stopped stay.
pub type Run = fn(Engines, &dyn Fn(&str), &mut Report) -> Result<(), String>;

/// A study.
#[derive(Clone, Copy, Debug)]
pub struct Study {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it shows, in a sentence.
    pub about: &'static str,
    /// Runs it; what it is told it tells before each of its longer parts.
    pub run: Run,
}

/// Every study, by name.
pub const ALL: &[Study] = &[super::pbv_table1::STUDY, super::piuma_paper::STUDY];

/// The study with this name.
pub fn find(name: &str) -> Option<&'static Study> {
    ALL.iter().find(|study| study.name == name)
}

/// The outcome of a study.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// What it is about.
    pub title: String,
    /// Rows of values beside those of the source.
    pub rows: Vec<Row>,
    /// What one should know to read them.
    pub notes: Vec<String>,
    /// Pictures of more than the rows say, each with the name of its file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plots: Vec<(&'static str, Plot)>,
}

/// One value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Requirement or place it belongs to.
    pub id: &'static str,
    /// What it is.
    pub what: String,
    /// Its unit; none if it is a count.
    pub unit: &'static str,
    /// What the source says.
    pub source: f64,
    /// The same here, under the source's assumptions.
    pub ours: f64,
    /// The same in the simulation, with latencies and waiting; none if there is nothing to wait for.
    pub simulated: Option<f64>,
    /// How far ours may be from the source's, as a share.
    pub tolerance: f64,
    /// How ours stands to the source's.
    pub holds_if: Relation,
    /// Where ours comes from.
    pub basis: Basis,
    /// The scenarios that made it, as text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scenarios: Vec<String>,
}

/// How a value has to stand to that of the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// Near it, as far as the tolerance goes.
    #[default]
    Near,
    /// Not above it.
    Below,
    /// Not below it.
    Above,
    /// It differs, and a note says why: no reproduction, whatever the tolerance.
    Differs,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// From the model alone: no parameter was fitted to the source's value.
    Predicted,
    /// A parameter was fitted to it, or to a value that it follows from.
    Calibrated,
    /// It follows from a constant that the source does not give: another choice would give another value.
    Chosen,
}

impl Basis {
    const fn word(self) -> &'static str {
        match self {
            Self::Predicted => "predicted",
            Self::Calibrated => "calibrated",
            Self::Chosen => "consequence of a chosen constant",
        }
    }
}

impl Row {
    /// A predicted value that has to be near the source's, as far as the tolerance goes.
    pub fn near(id: &'static str, what: &str, unit: &'static str, [source, ours]: [f64; 2], tolerance: f64) -> Row {
        Row {
            id,
            what: what.to_owned(),
            unit,
            source,
            ours,
            simulated: None,
            tolerance,
            holds_if: Relation::Near,
            basis: Basis::Predicted,
            scenarios: Vec::new(),
        }
    }

    /// How far ours is from the source's, as a share of it.
    pub fn relative_difference(&self) -> f64 {
        (self.ours - self.source) / self.source
    }

    /// The same with its sign, in per cent.
    fn apart_text(&self) -> String {
        format!("{:+.1} %", self.relative_difference() * 100.0).replace("-0.0", "+0.0")
    }

    /// What the source says, with the relation if it is a bound.
    fn source_text(&self) -> String {
        let sign = match self.holds_if {
            Relation::Near | Relation::Differs => "",
            Relation::Below => "< ",
            Relation::Above => "> ",
        };
        format!("{sign}{}", plain(self.source))
    }

    /// Whether it stands to the source's as it has to.
    pub fn holds(&self) -> bool {
        match self.holds_if {
            Relation::Near => self.relative_difference().abs() <= self.tolerance,
            Relation::Below => self.ours <= self.source,
            Relation::Above => self.ours >= self.source,
            Relation::Differs => true,
        }
    }

    /// What has to be said of how it stands to the source's.
    const fn verdict(&self, holds: bool) -> Option<&'static str> {
        match self.holds_if {
            _ if !holds => Some("TOO FAR"),
            Relation::Differs => Some("differs"),
            Relation::Near | Relation::Below | Relation::Above => None,
        }
    }
}

impl Report {
    /// Whether every row stands to the source as it has to; those that are marked as differing claim nothing.
    pub fn holds(&self) -> bool {
        self.rows.iter().all(Row::holds)
    }

    /// The table for people.
    pub fn text(&self) -> String {
        let mut out = format!("{}\n", self.title);
        let wide = self.rows.iter().map(|row| row.what.chars().count()).max().unwrap_or(0);
        let _ = writeln!(
            out,
            "{:8} {:wide$} {:>12} {:>12} {:>8} {:>12}  {:4} basis",
            "", "", "source", "ours", "apart", "simulated", "unit"
        );
        for row in &self.rows {
            let basis = row.basis.word();
            let simulated = row.simulated.map_or_else(|| "-".into(), plain);
            let verdict = row.verdict(row.holds()).map_or_else(String::new, |verdict| format!(", {verdict}"));
            let apart = row.apart_text();
            let (source, ours) = (row.source_text(), plain(row.ours));
            let _ = writeln!(
                out,
                "{:8} {:wide$} {source:>12} {ours:>12} {apart:>8} {simulated:>12}  {:4} {basis}{verdict}",
                row.id, row.what, row.unit
            );
        }
        for note in &self.notes {
            let _ = writeln!(out, "note: {note}");
        }
        out
    }
}

impl Report {
    /// The same as a page that needs nothing else: pictures, table, notes, and for each row the scenarios that made it.
    pub fn html(&self) -> String {
        let mut body = String::new();
        if !self.plots.is_empty() {
            body.push_str("<section id=\"plots\"><h2>Pictures</h2>\n");
            for (name, plot) in &self.plots {
                let _ = writeln!(body, "<figure class=\"chart\" id=\"{name}\">\n{}</figure>", plot.svg());
            }
            body.push_str("</section>\n");
        }
        body.push_str(
            "<section id=\"values\"><h2>Values</h2>\n<div class=\"scroll\"><table><tr><th></th><th>what</th><th class=\"n\">source</th>\
             <th class=\"n\">ours</th><th class=\"n\">apart</th><th class=\"n\">simulated</th><th>unit</th><th>basis</th></tr>\n",
        );
        for row in &self.rows {
            let simulated = row.simulated.map_or_else(|| "-".into(), plain);
            let verdict = row.verdict(row.holds()).map_or_else(String::new, |verdict| format!(", <b>{verdict}</b>"));
            let mut what = escape(&row.what);
            if !row.scenarios.is_empty() {
                let texts: Vec<String> = row.scenarios.iter().map(|text| escape(text)).collect();
                what = format!("<details><summary>{what}</summary><pre>{}</pre></details>", texts.join("\n# and\n"));
            }
            let _ = writeln!(
                body,
                "<tr><td>{}</td><td>{what}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{simulated}</td><td>{}</td><td>{}{verdict}</td></tr>",
                row.id,
                escape(&row.source_text()),
                plain(row.ours),
                row.apart_text(),
                row.unit,
                row.basis.word()
            );
        }
        body.push_str("</table></div>\n<ul>\n");
        for note in &self.notes {
            let _ = writeln!(body, "<li>{}</li>", escape(note));
        }
        body.push_str("</ul></section>\n");
        frame(&self.title, &body)
    }
}

/// A number with as many decimals as it needs here.
fn plain(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value}") } else { format!("{value:.1}") }
}
