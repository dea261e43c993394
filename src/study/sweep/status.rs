//! What of a sweep is done and left, as its folders say it.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use super::shared::Worker;

/// How it stands with a sweep.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// Points of the whole sweep; none of a search, whose points follow from each other.
    pub points: Option<u64>,
    /// Points that are done.
    pub done: u64,
    /// Of these: failed a check, or the run did not finish.
    pub failed: u64,
    /// Of these: there is no such scenario.
    pub refused: u64,
    /// Points that running processes have under way.
    pub under_way: u64,
    /// Points that are neither done nor under way.
    pub left: Option<u64>,
    /// Points that all running processes compute in a second.
    pub points_per_second: Option<f64>,
    /// How long they take for what is under way and left, at that rate.
    pub seconds_left: Option<f64>,
    /// Who has computed, or computes, into which folder.
    pub workers: Vec<Worker>,
}

impl Status {
    /// What follows from what every folder has: the status of each point by its number, and who computes.
    pub fn new(points: Option<u64>, by_number: &BTreeMap<u64, String>, workers: Vec<Worker>) -> Status {
        let with = |status: &str| by_number.values().filter(|of| *of == status).count() as u64;
        let done = by_number.len() as u64;
        let not_done = points.map(|points| points.saturating_sub(done));
        let under_way = workers.iter().map(|worker| worker.under_way).sum::<u64>().min(not_done.unwrap_or(u64::MAX));
        let rates: Vec<f64> = workers.iter().filter_map(|worker| worker.points_per_second).collect();
        let rate = (!rates.is_empty()).then(|| rates.iter().sum::<f64>());
        Status {
            points,
            done,
            failed: with("failed"),
            refused: with("refused"),
            under_way,
            left: not_done.map(|not_done| not_done - under_way),
            points_per_second: rate,
            seconds_left: rate.zip(not_done).map(|(rate, left)| left as f64 / rate),
            workers,
        }
    }

    /// Whether nothing is left to do.
    pub fn is_complete(&self) -> bool {
        self.points == Some(self.done)
    }

    /// In lines.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let of = self.points.map_or_else(String::new, |points| format!(" of {points}"));
        let Status { done, failed, refused, under_way, .. } = self;
        let _ = write!(out, "{done}{of} points done, {failed} failed, {refused} refused; {under_way} under way");
        match self.left {
            Some(left) => writeln!(out, ", {left} left"),
            None => writeln!(out),
        }
        .expect("text");
        let living = self.workers.iter().filter(|worker| worker.alive).count();
        if let (Some(rate), Some(seconds)) = (self.points_per_second, self.seconds_left)
            && !self.is_complete()
        {
            let plural = if living == 1 { "" } else { "es" };
            let _ = writeln!(
                out,
                "time left      about {} at {rate:.2} points/s of {living} process{plural}",
                time(seconds)
            );
        } else if !self.is_complete() && living == 0 {
            let _ = writeln!(out, "time left      unknown: no process is computing");
        }
        for worker in &self.workers {
            let pulse = worker.pulse.as_ref().map(|pulse| format!("process {} on {}", pulse.process, pulse.host));
            let how = match (worker.alive, pulse) {
                (true, Some(who)) => format!("{who}, {} under way", worker.under_way),
                (false, Some(who)) => format!("{who} is gone"),
                (_, None) => "ended".to_owned(),
            };
            let _ = writeln!(out, "  {}  {} done, {} not ok  {how}", worker.folder, worker.done, worker.failed);
        }
        out.truncate(out.trim_end().len());
        out
    }
}

/// A time as people say it.
fn time(seconds: f64) -> String {
    let whole = seconds.ceil() as u64;
    match whole {
        0..=119 => format!("{whole} s"),
        120..=7199 => format!("{} min", whole.div_ceil(60)),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}
