//! Shows how far a run is, on a terminal or when asked, and turns signals into a clean end.
//!
//! | signal | what happens |
//! |---|---|
//! | SIGINT (Ctrl-C), SIGTERM, SIGHUP | the command ends with the results so far; a second one ends it at once |
//! | SIGUSR1 | a line on the standard error says how far it is; nothing else changes |
//!
//! A signal that is ignored from the start, SIGHUP under `nohup`, stays ignored.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use watershed_scenario_interface::run::{Control, NetworkContents, Progress, watch};

/// Set by a signal, read between two cycles.
static STOP: AtomicBool = AtomicBool::new(false);

/// A run that ends sooner shows no bar: it would only flicker.
pub(super) const QUIET: Duration = Duration::from_millis(500);

/// What a status line tells.
struct Status {
    started: Instant,
    /// The run that was looked at last, and where it was when it was looked at first.
    run: Option<(Progress, (u64, Instant))>,
    /// What was in its network when that was looked at last.
    inside: Option<NetworkContents>,
    /// Parts done, of how many, and what they are.
    parts: Option<(usize, Option<usize>, &'static str)>,
}

static STATUS: Mutex<Option<Status>> = Mutex::new(None);

fn status() -> MutexGuard<'static, Option<Status>> {
    STATUS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Status {
    fn text(&self) -> String {
        use std::fmt::Write as _;
        let mut text = format!("status: after {:.1} s", self.started.elapsed().as_secs_f64());
        if let Some((done, of, what)) = self.parts {
            let of = of.map_or_else(String::new, |of| format!(" of {of}"));
            let _ = write!(text, ", {done}{of} {what}");
        }
        let Some((Progress { cycle, done, total, .. }, (first, begun))) = &self.run else {
            return text + ", no run is past its beginning";
        };
        let _ = write!(text, ", cycle {cycle}");
        if cycle > first {
            let _ = write!(text, " ({:.0} cycles/s)", (cycle - first) as f64 / begun.elapsed().as_secs_f64().max(1e-3));
        }
        if *total > 0 {
            let _ = write!(text, ", {done} of {total} elements");
        }
        if let Some(NetworkContents { cycle, flits, longest_head }) = &self.inside {
            let _ = write!(text, "; in cycle {cycle} {flits} flits were under way");
            if let Some((place, cycles)) = longest_head {
                let _ = write!(text, ", and a head had waited {cycles} cycles at {place}, the longest");
            }
        }
        text
    }
}

/// Begins to tell how far the program is when it is asked. Every command does: being asked must end none of them.
pub(super) fn serve_status() {
    *status() = Some(Status { started: Instant::now(), run: None, inside: None, parts: None });
    #[cfg(unix)]
    signals::serve_status();
}

/// Tells no more: another process of the same run does.
pub(super) fn stop_status() {
    *status() = None;
}

/// Tells it now and then without being asked.
pub(super) fn print_status_every(period: Duration) {
    let tell = move || {
        loop {
            std::thread::sleep(period);
            if let Some(status) = &*status() {
                super::print_error(&status.text());
            }
        }
    };
    // It ends with the program.
    let _ = std::thread::Builder::new().name("status".into()).spawn(tell);
}

/// Lets signals end the program cleanly, which must then look at [`stopped`] now and then; all runs do.
pub(super) fn handle_signals() {
    watch(on_progress);
    #[cfg(unix)]
    signals::handle_signals();
    // A handler may be there already when the program's main function is called as a library: that one then decides.
    #[cfg(not(unix))]
    let _ = ctrlc::set_handler(|| stop(130));
}

/// A signal that ends the program has come: the second one ends it at once.
fn stop(status: i32) {
    if STOP.swap(true, Ordering::Relaxed) {
        std::process::exit(status);
    }
}

/// Whether a signal has asked for the end.
pub(super) fn stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Takes notice of a run.
pub(super) fn on_progress(progress: Progress) -> Control {
    if let Some(status) = &mut *status() {
        let begun = status.run.take().filter(|(before, _)| before.cycle <= progress.cycle);
        if begun.is_none() || progress.inside.is_some() {
            status.inside.clone_from(&progress.inside);
        }
        let begun = begun.map_or_else(|| (progress.cycle, Instant::now()), |(_, begun)| begun);
        status.run = Some((progress, begun));
    }
    if stopped() { Control::Stop } else { Control::Continue }
}

/// Takes notice of parts that are done.
pub(super) fn count(done: usize, of: Option<usize>, what: &'static str) {
    if let Some(status) = &mut *status() {
        status.parts = Some((done, of, what));
    }
}

#[cfg(unix)]
mod signals {
    use std::sync::OnceLock;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
    use signal_hook::iterator::{Handle, Signals};

    static LISTENER: OnceLock<Option<Handle>> = OnceLock::new();

    /// Starts the thread that takes signals.
    pub(super) fn serve_status() {
        LISTENER.get_or_init(|| {
            let mut signals = Signals::new([SIGUSR1]).ok()?;
            let handle = signals.handle();
            let take = move || {
                for signal in signals.forever() {
                    if signal != SIGUSR1 {
                        super::stop(128 + signal);
                    } else if let Some(status) = &*super::status() {
                        crate::print_error(&status.text());
                    }
                }
            };
            std::thread::Builder::new().name("signals".into()).spawn(take).ok()?;
            Some(handle)
        });
    }

    /// Has it take those that end the program, too.
    pub(super) fn handle_signals() {
        serve_status();
        let Some(Some(handle)) = LISTENER.get() else { return };
        for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !ignored(*signal)) {
            // Without it the signal ends the program as the system has it.
            let _ = handle.add_signal(signal);
        }
    }

    /// Whether the program was started with a signal ignored, as far as the system reports it.
    fn ignored(signal: i32) -> bool {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
    }
}

/// The progress of one run.
pub(super) struct RunProgress {
    bar: ProgressBar,
    started: Instant,
}

impl RunProgress {
    /// Starts listening for signals.
    pub fn new() -> Self {
        handle_signals();
        Self { bar: ProgressBar::hidden(), started: Instant::now() }
    }

    /// Called by the run now and then.
    pub fn update(&self, progress: &Progress) -> Control {
        if on_progress(progress.clone()) == Control::Stop {
            return Control::Stop;
        }
        if super::shows_progress() && self.started.elapsed() > QUIET {
            if self.bar.is_hidden() {
                self.show(progress);
            }
            self.bar.set_message(format!("cycle {}", progress.cycle));
            self.bar.set_position(if progress.total > 0 { progress.done } else { progress.cycle });
        }
        Control::Continue
    }

    fn show(&self, progress: &Progress) {
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
pub(super) struct BatchProgress {
    bar: ProgressBar,
    what: &'static str,
    started: Instant,
}

impl BatchProgress {
    /// Starts listening for signals.
    pub fn new(what: &'static str) -> Self {
        handle_signals();
        Self { bar: ProgressBar::hidden(), what, started: Instant::now() }
    }

    /// How many are done, and of how many.
    pub fn show(&self, done: usize, of: usize) {
        count(done, Some(of), self.what);
        if !super::shows_progress() || self.started.elapsed() < QUIET {
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

    /// Prints without the bar in the way.
    pub fn print_above(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Takes it from the screen.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
