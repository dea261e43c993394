//! Shows how far a run is, on a terminal only, and turns Ctrl-C into a clean end.

use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::scenario::run::{Control, Progress};

/// Set by Ctrl-C, read between two cycles.
static STOP: AtomicBool = AtomicBool::new(false);

/// A run that ends sooner shows no bar: it would only flicker.
pub(super) const QUIET: std::time::Duration = std::time::Duration::from_millis(500);

/// Starts listening for Ctrl-C; a second one ends the program at once.
pub(super) fn listen() {
    // A handler may be there already when the program's main function is called as a library: that one then decides.
    let _ = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
}

/// Whether Ctrl-C was pressed.
pub(super) fn stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// The progress of one run.
pub(super) struct Meter {
    bar: ProgressBar,
    started: std::time::Instant,
}

impl Meter {
    /// Starts listening for Ctrl-C.
    pub fn new() -> Self {
        listen();
        Self { bar: ProgressBar::hidden(), started: std::time::Instant::now() }
    }

    /// Called by the run now and then.
    pub fn update(&self, progress: Progress) -> Control {
        if stopped() {
            return Control::Stop;
        }
        if super::watched() && self.started.elapsed() > QUIET {
            if self.bar.is_hidden() {
                self.show(progress);
            }
            self.bar.set_message(format!("cycle {}", progress.cycle));
            self.bar.set_position(if progress.total > 0 { progress.done } else { progress.cycle });
        }
        Control::Continue
    }

    fn show(&self, progress: Progress) {
        let template = if progress.total > 0 {
            self.bar.set_length(progress.total);
            "{bar:30} {percent:>3} %  {pos}/{len} elements, {rate}/s, {eta} left, {msg}"
        } else {
            "{spinner} {elapsed}  {rate} cycles/s, {msg}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            let rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
                let _ = write!(out, "{:.0}", state.per_sec());
            };
            self.bar.set_style(style.with_key("rate", rate));
        }
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// The progress of many runs, which threads may report.
pub(super) struct Counter {
    bar: ProgressBar,
    what: &'static str,
    started: std::time::Instant,
}

impl Counter {
    /// Starts listening for Ctrl-C.
    pub fn new(what: &'static str) -> Self {
        listen();
        Self { bar: ProgressBar::hidden(), what, started: std::time::Instant::now() }
    }

    /// So many are done, of so many.
    pub fn show(&self, done: usize, of: usize) {
        if !super::watched() || self.started.elapsed() < QUIET {
            return;
        }
        if self.bar.is_hidden() {
            let template =
                format!("{{bar:30}} {{percent:>3}} %  {{pos}}/{{len}} {}, {{rate}}/s, {{eta}} left", self.what);
            if let Ok(style) = ProgressStyle::with_template(&template) {
                let rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
                    let _ = write!(out, "{:.1}", state.per_sec());
                };
                self.bar.set_style(style.with_key("rate", rate));
            }
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_length(of as u64);
        self.bar.set_position(done as u64);
    }

    /// Takes it from the screen.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
