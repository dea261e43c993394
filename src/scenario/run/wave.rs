//! Waveforms of a run: files, triggers, and notes about missing parts.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::Loaded;
use crate::expr::{self, Expr};
use crate::shipped;
use watershed_probe::{
    FstSink, Lookup, NameError, Period, Reading, Selection, Sink, TraceError, TraceSummary, Tracer, Trigger,
    TriggerSink, VcdSink, WriterThread,
};
use watershed_scenario_interface::run::{RunError, TriggerOptions, WaveOptions, sides_of};

/// A waveform of which the end of the run says whether it is wanted: until then it is in a folder of its own, and an older one stays.
pub(super) struct PendingWave {
    /// Where it is to be.
    pub path: PathBuf,
    /// What the run writes.
    pub options: WaveOptions,
    folder: PathBuf,
}

impl PendingWave {
    pub(super) fn new(wave: &WaveOptions) -> Result<PendingWave, RunError> {
        let name = wave.path.file_name().unwrap_or_default();
        let folder = wave.path.with_file_name(format!(".{}.held", name.to_string_lossy()));
        fs::create_dir_all(&folder).map_err(|error| RunError::Write { path: wave.path.clone(), error })?;
        let options = WaveOptions { path: folder.join(name), ..wave.clone() };
        Ok(PendingWave { path: wave.path.clone(), options, folder })
    }

    /// It is wanted: its files, which are whole, go to where they are to be.
    pub(super) fn publish(&self, files: &mut [PathBuf]) -> io::Result<()> {
        for file in files {
            let Ok(name) = file.strip_prefix(&self.folder) else { continue };
            let to = self.path.parent().unwrap_or(Path::new("")).join(name);
            if let Some(folder) = to.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                fs::create_dir_all(folder)?;
            }
            fs::rename(&*file, &to)?;
            *file = to;
        }
        Ok(())
    }
}

impl Drop for PendingWave {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Opens a waveform.
pub fn open_wave(loaded: &Loaded, wave: &WaveOptions) -> Result<Tracer, RunError> {
    let usage = |error: &dyn std::fmt::Display| RunError::Usage(error.to_string());
    let mut selection = Selection::new(&wave.shown.signals).map_err(|error| usage(&error))?;
    if let Some(depth) = wave.shown.depth {
        selection = selection.with_depth(depth as usize).map_err(|error| usage(&error))?;
    }
    let selection = selection.with_window(wave.shown.from_cycle, wave.shown.to_cycle).map_err(|error| usage(&error))?;
    let period = Period::from_hz(loaded.scenario.clock.frequency_hz)
        .ok_or_else(|| RunError::Usage("a waveform needs a clock of at most 1 THz".into()))?;
    let write = |error| RunError::Write { path: wave.path.clone(), error };
    let sink: Box<dyn Sink> = if FstSink::is_wanted(&wave.path) {
        Box::new(FstSink::create(&wave.path).map_err(write)?)
    } else {
        Box::new(VcdSink::create(&wave.path).map_err(write)?)
    };
    // One processor has no time for two threads.
    let alone = std::thread::available_parallelism().is_ok_and(|processors| processors.get() == 1);
    let sink = if alone { sink } else { Box::new(WriterThread::new(sink)) };
    let sink: Box<dyn Sink> = match &wave.trigger {
        None => sink,
        Some(options) => Box::new(TriggerSink::new(sink, trigger(options), period).0),
    };
    let mut tracer = Tracer::new(period, selection, sink);
    if wave.shown.clock {
        tracer.add_clock();
    }
    Ok(tracer)
}

/// A trigger whose condition is an expression over signals; a signal whose value is unknown makes it not hold.
fn trigger(options: &TriggerOptions) -> Trigger {
    let condition = options.condition.clone();
    let names = condition.iter().flat_map(Expr::names).map(ToString::to_string).collect();
    let compared = condition.as_ref().map_or_else(Vec::new, sides_of);
    let value = |reading: Reading| match reading {
        Reading::Number(number) => expr::Value::Number(number as f64),
        Reading::Name(name) => expr::Value::Word(name.to_owned()),
    };
    let condition = move |lookup: &Lookup<'_>| {
        let read = |name: &str| lookup(name).map(value);
        condition.as_ref().and_then(|condition| condition.eval(&read)).is_some_and(|value| value.is_true())
    };
    Trigger { condition: Box::new(condition), names, compared, before: options.before, after: options.after }
}

/// What starting a recording can say. Names of signals are listed for who has one wrong.
pub fn trace_error(loaded: &Loaded, wave: &WaveOptions, error: TraceError) -> RunError {
    let file = loaded.source.name();
    let scenario = if Path::new(file).exists() { file } else { shipped::stem(file) };
    let unknown = |text: &dyn std::fmt::Display| {
        RunError::Usage(format!("{text}\n  `watershed wave list {scenario}` prints the names of all signals"))
    };
    match error {
        TraceError::Io(error) => match error.get_ref().and_then(|cause| cause.downcast_ref::<NameError>()) {
            // The names of signals help nobody who has the state of one wrong.
            Some(misnamed) if misnamed.signal => unknown(misnamed),
            Some(misnamed) => RunError::Usage(misnamed.to_string()),
            None => RunError::Write { path: wave.path.clone(), error },
        },
        nothing @ TraceError::NothingSelected(_) => unknown(&nothing),
    }
}

/// Finishes a waveform of a run of `cycles` cycles and notes missing parts. An error of writing it is noted too and
/// does not fail the run. The cycles are those of the result document; the system may have advanced further, to timers
/// of jobs that had ended.
pub fn close_wave(
    wave: &WaveOptions,
    tracer: Option<Tracer>,
    cycles: u64,
    notes: &mut Vec<String>,
) -> (Option<TraceSummary>, Option<String>) {
    let Some(tracer) = tracer else { return (None, None) };
    let summary = match tracer.finish(cycles.saturating_sub(1)) {
        Ok(summary) => summary,
        Err(error) => return (None, Some(RunError::Write { path: wave.path.clone(), error }.to_string())),
    };
    notes.extend(summary.unmatched_globs.iter().map(ToString::to_string));
    if !summary.window_reached {
        notes.push(format!("the run ended before cycle {}: the waveform is empty", wave.shown.from_cycle));
    }
    (Some(summary), None)
}
