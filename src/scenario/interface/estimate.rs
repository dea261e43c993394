//! An estimate of a waveform's size, from a short sample of the run.
//!
//! The scenario is run twice from its beginning, for the sample and for half of it, with the requested waveform. The
//! difference of the two sizes gives the bytes a cycle; the rest is the header. The length of the whole run follows
//! from its progress between the two ends (elements that landed, rounds that ended), from the window of the
//! measurement, or from the limit of endless traffic. Where none of these is known, only the bytes a cycle are
//! reported.
//!
//! The estimate assumes that the whole run behaves like the second half of the sample. For uniform runs much longer
//! than the sample it is within a factor of [`FACTOR`] (tested); for a run that ends within the sample it is exact.

use std::fmt;
use std::path::PathBuf;

use crate::result::Outcome;
use crate::run::{RunError, RunOptions, WaveOptions};
use crate::runnable::Runnable;
use watershed_files::TempFolder;

/// How far an estimate may be from what comes out, for runs that do the same all the time.
pub const FACTOR: f64 = 1.5;

/// What a waveform will take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Bytes in front of the first value change.
    pub header_bytes: f64,
    /// Bytes a cycle.
    pub bytes_a_cycle: f64,
    /// Cycles that were sampled.
    pub sampled_cycles: u64,
    /// Cycles of the whole run, as far as that can be told.
    pub cycles: Option<u64>,
    /// The run ended within the sample: all of this is exact.
    pub whole: bool,
}

impl Estimate {
    /// Bytes of the whole waveform.
    pub fn bytes(&self) -> Option<f64> {
        Some(self.header_bytes + self.bytes_a_cycle * self.cycles? as f64)
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Estimate { bytes_a_cycle, sampled_cycles, header_bytes, .. } = self;
        let header = size(*header_bytes);
        match (self.bytes(), self.cycles) {
            (Some(bytes), Some(cycles)) if self.whole => {
                write!(
                    f,
                    "waveform       {} for {cycles} cycles, exactly: the run ended within the sample",
                    size(bytes)
                )
            }
            (Some(bytes), Some(cycles)) => write!(
                f,
                "waveform       about {} for about {cycles} cycles\n\
                 \x20              {header} and {bytes_a_cycle:.1} bytes a cycle, from {sampled_cycles} cycles",
                size(bytes)
            ),
            _ => write!(
                f,
                "waveform       {header} and {bytes_a_cycle:.1} bytes a cycle, from {sampled_cycles} cycles; how many the run \
                 will have cannot be told from them"
            ),
        }
    }
}

/// Bytes in words.
fn size(bytes: f64) -> String {
    match bytes {
        b if b < 1e4 => format!("{b:.0} bytes"),
        b if b < 1e7 => format!("{:.1} kB", b / 1e3),
        b if b < 1e10 => format!("{:.1} MB", b / 1e6),
        b => format!("{:.1} GB", b / 1e9),
    }
}

/// Estimates the waveform of a run from a sample of this many cycles.
///
/// # Errors
/// Those of a run.
pub fn wave(loaded: &Runnable, wave: &WaveOptions, sample: u64) -> Result<Estimate, RunError> {
    let scratch = TempFolder::new("estimate").map_err(|error| RunError::Write { path: std::env::temp_dir(), error })?;
    let name = wave.path.file_name().map_or_else(|| "sample.vcd".into(), PathBuf::from);
    let path = scratch.path().join(name);
    let options = WaveOptions::of(path.clone(), wave.shown.clone());
    let size_of = |cycles: u64| -> Result<_, RunError> {
        let mut short = loaded.clone();
        let limit = short.scenario.limits.max_cycles;
        short.scenario.limits.max_cycles = cycles.min(limit);
        let result = short.run(&RunOptions { wave: Some(&options), no_checks: true, ..RunOptions::default() })?;
        let bytes = std::fs::metadata(&path).map_err(|error| RunError::Write { path: path.clone(), error })?.len();
        let ended = result.document.outcome != Outcome::MaxCycles && result.document.cycles < cycles || limit <= cycles;
        Ok((result.document.cycles, bytes as f64, result.progress, ended))
    };
    let (last, bytes, progress, whole) = size_of(sample)?;
    if whole {
        let cycles = Some(last);
        let estimate = Estimate { header_bytes: bytes, bytes_a_cycle: 0.0, sampled_cycles: last, cycles, whole };
        return Ok(estimate);
    }
    let (half, half_bytes, before, _) = size_of((sample / 2).max(1))?;
    let bytes_a_cycle = (bytes - half_bytes) / (last.saturating_sub(half)).max(1) as f64;
    let header_bytes = (bytes - bytes_a_cycle * last as f64).max(0.0);
    let scenario = &loaded.scenario;
    let moved = progress.done.saturating_sub(before.done);
    let cycles = if moved > 0 {
        let left = progress.total.saturating_sub(progress.done);
        Some(last + (u128::from(left) * u128::from(last - half) / u128::from(moved)) as u64)
    } else if let Some(measure) = scenario.measure.filter(|_| progress.total == 0) {
        Some(measure.warmup_cycles + measure.measure_cycles)
    } else if progress.total == 0
        && !scenario.traffic.is_empty()
        && scenario.traffic.iter().all(watershed_reader::config::Traffic::is_endless)
    {
        Some(scenario.limits.max_cycles)
    } else {
        None
    };
    let within = wave.shown.to_cycle.map_or(u64::MAX, |to| to.saturating_add(1));
    let cycles = cycles.map(|cycles| cycles.min(within).max(last.min(within)));
    Ok(Estimate { header_bytes, bytes_a_cycle, sampled_cycles: last, cycles, whole })
}
