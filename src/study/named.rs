//! Studies by name: what `watershed study NAME` runs. Each starts simulations of scenarios it carries with it and lays a
//! table beside the values of a source.
//!
//! A new study is a file here and a line in [`ALL`].

use std::fmt::Write;

use serde::Serialize;

/// A study.
#[derive(Clone, Copy, Debug)]
pub struct Study {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it shows, in a sentence.
    pub about: &'static str,
    /// Runs it.
    pub run: fn() -> Result<Report, String>,
}

/// Every study, by name.
pub const ALL: &[Study] = &[super::pbv_table1::STUDY, super::piuma_paper::STUDY];

/// The study with this name.
pub fn find(name: &str) -> Option<&'static Study> {
    ALL.iter().find(|study| study.name == name)
}

/// What came of a study.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// What it is about.
    pub title: String,
    /// Rows of values beside those of the source.
    pub rows: Vec<Row>,
    /// What one should know to read them.
    pub notes: Vec<String>,
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
    /// Where ours comes from.
    pub basis: Basis,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// From the model alone: no parameter was fitted to the source's value.
    Predicted,
    /// A parameter was fitted to it.
    Calibrated,
}

impl Row {
    /// How far ours is from the source's, as a share of it.
    pub fn apart(&self) -> f64 {
        (self.ours - self.source) / self.source
    }

    /// Whether it is near enough.
    pub fn holds(&self) -> bool {
        self.apart().abs() <= self.tolerance
    }
}

impl Report {
    /// Whether every row is near enough.
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
            let basis = match row.basis {
                Basis::Predicted => "predicted",
                Basis::Calibrated => "calibrated",
            };
            let simulated = row.simulated.map_or_else(|| "-".into(), plain);
            let verdict = if row.holds() { "" } else { "  TOO FAR" };
            let apart = format!("{:+.1} %", row.apart() * 100.0).replace("-0.0", "+0.0");
            let (source, ours) = (plain(row.source), plain(row.ours));
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

/// A number with as many decimals as it needs here.
fn plain(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value}") } else { format!("{value:.1}") }
}
