//! The signals of a scenario's waveform, before there is one.
//!
//! Which signals there are is what the blocks declare when a run begins: the scenario is run for a cycle, with a waveform in a
//! folder that is removed.

use crate::run::{RunError, RunOptions, WaveOptions};
use crate::runnable::Runnable;
use watershed_files::TempFolder;
use watershed_probe::wave_in::{Header, WaveFile};
use watershed_reader::config::Wave;

/// What a waveform of this scenario declares: the signals that these globs choose, within this many levels of the
/// hierarchy; what is not given here is as the scenario's `[wave]` says.
///
/// # Errors
/// Those of a run, globs that choose nothing included.
pub fn declared(loaded: &Runnable, globs: Vec<String>, depth: Option<u32>) -> Result<Header, RunError> {
    let scratch = TempFolder::new("signals").map_err(|error| RunError::Write { path: std::env::temp_dir(), error })?;
    let path = scratch.path().join("signals.fst");
    let own = loaded.scenario.wave.clone();
    let signals = if globs.is_empty() { own.signals.clone() } else { globs };
    let whole = Wave { signals, depth: depth.or(own.depth), from_cycle: 0, to_cycle: None, ..own };
    let wave = WaveOptions::of(path.clone(), whole);
    let mut short = loaded.clone();
    short.scenario.limits.max_cycles = 1;
    short.run(&RunOptions { wave: Some(&wave), no_checks: true, ..RunOptions::default() })?;
    let broken = |error| RunError::Write { path: path.clone(), error: std::io::Error::other(error) };
    let wave = WaveFile::open(&path).map_err(broken)?;
    Ok(wave.header().clone())
}
