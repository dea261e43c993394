//! Options of every command: verbosity of messages, colours, and the interval of progress reports.

use std::fmt::{Display, Write};
use std::io::IsTerminal;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use clap::{Args, ColorChoice};

use super::progress;
use super::ranks::{self, ExchangeStatistics};

/// Options that every command takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of every command")]
pub(super) struct MessageOptions {
    /// Say nothing on the standard error but errors: no notes, no progress
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Say on the standard error what is read and run, and how long it takes
    #[arg(short, long, global = true)]
    verbose: bool,
    /// Colours: on terminals unless NO_COLOR is set, or always, or never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    color: ColorChoice,
}

/// An option of commands that take long.
#[derive(Debug, Clone, Args)]
pub(super) struct StatusOptions {
    /// Print the progress on the standard error at this interval; SIGUSR1 prints it once
    #[arg(id = STATUS, long = "status", value_name = "SECONDS", value_parser = seconds)]
    period: Option<Duration>,
}

/// The id of `--status`.
const STATUS: &str = "status_every";

/// Holds what a command that takes long was told.
pub(super) fn init_messages(command: &clap::ArgMatches) {
    if let Ok(Some(period)) = command.try_get_one::<Duration>(STATUS) {
        progress::print_status_every(*period);
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("\"{text}\" is no number of seconds"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(period) if period >= Duration::from_millis(10) => Ok(period),
        _ => Err("the seconds are 0.01 or more".to_owned()),
    }
}

struct Settings {
    options: MessageOptions,
    begun: Instant,
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

impl MessageOptions {
    /// Holds from now on, for the whole process.
    pub fn apply(self) {
        let choice = match self.color {
            // `mpirun` gives its processes terminals, whatever its own output is.
            ColorChoice::Auto if ranks::started() > 1 => anstream::ColorChoice::Never,
            ColorChoice::Auto => anstream::ColorChoice::Auto,
            ColorChoice::Always => anstream::ColorChoice::Always,
            ColorChoice::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
        let _ = SETTINGS.set(Settings { options: self, begun: Instant::now() });
    }
}

fn is_set(of: impl Fn(&MessageOptions) -> bool) -> bool {
    SETTINGS.get().is_some_and(|settings| of(&settings.options))
}

/// Whether only errors are wanted.
pub(super) fn is_quiet() -> bool {
    is_set(|options| options.quiet)
}

/// Whether more than the result is wanted.
pub(super) fn is_verbose() -> bool {
    is_set(|options| options.verbose)
}

/// Says what a caller should know beside the result.
pub(super) fn note(text: &impl Display) {
    super::print_error(&format_args!("note: {text}"));
}

/// With `--verbose`, says what is done, and when since the start.
pub(super) fn step(text: &impl Display) {
    if let Some(Settings { options, begun }) = SETTINGS.get()
        && options.verbose
    {
        super::print_error(&format_args!("{:9.3} s  {text}", begun.elapsed().as_secs_f64()));
    }
}

/// What a run took of the machine.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub(super) struct ResourceUsage {
    /// Wall time of the command so far, loading and checking included.
    pub wall_seconds: f64,
    /// Simulated cycles a second of that.
    pub cycles_per_second: f64,
    /// The most memory it had, where the system tells.
    pub peak_memory_bytes: Option<u64>,
    /// Of one of several ranks.
    #[serde(flatten)]
    pub exchanged: Option<ExchangeStatistics>,
}

impl ResourceUsage {
    /// Since the command began.
    pub fn now(cycles: u64) -> Self {
        let wall = SETTINGS.get().map_or(0.0, |settings| settings.begun.elapsed().as_secs_f64());
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        let peak = peak.and_then(|kib| kib.trim().parse::<u64>().ok()).map(|kib| kib << 10);
        Self {
            wall_seconds: wall,
            cycles_per_second: cycles as f64 / wall.max(1e-9),
            peak_memory_bytes: peak,
            exchanged: None,
        }
    }
}

impl Display for ResourceUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let memory = self.peak_memory_bytes.map_or_else(String::new, |bytes| format!(", {} MiB at most", bytes >> 20));
        write!(f, "took           {:.2} s, {:.0} cycles a second{memory}", self.wall_seconds, self.cycles_per_second)?;
        let Some(ExchangeStatistics { ranks, exchanges, given_bytes: bytes, exchange_seconds: seconds }) =
            self.exchanged
        else {
            return Ok(());
        };
        write!(f, "\n               {ranks} ranks met {exchanges} times, rank 0 gave {bytes} bytes in {seconds:.2} s")
    }
}

/// Whether the standard output is a terminal.
pub(super) fn is_watched() -> bool {
    ranks::started() < 2 && std::io::stdout().is_terminal()
}

const BAD: Style = AnsiColor::Red.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const SOFT: Style = AnsiColor::Yellow.on_default();

/// A text with what a reader looks for first in colours: verdicts of a summary, and the first word of a message. The streams take
/// the colours out where none are wanted.
pub(super) fn coloured(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let marks = [
            ("error:", BAD),
            ("CHECK FAILED", BAD),
            ("note:", SOFT),
            ("status:", SOFT),
            ("checks ", GOOD),
            ("               bit-exact: yes", GOOD),
            ("               bit-exact: NO", BAD),
        ];
        match marks.iter().find(|(mark, _)| line.starts_with(mark)) {
            Some((mark, style)) => {
                let (word, rest) = (mark.trim(), &line[mark.len()..]);
                let space = &mark[..mark.len() - mark.trim_start().len()];
                let end = if mark.ends_with(' ') { " " } else { "" };
                let _ = write!(out, "{space}{style}{word}{style:#}{end}{rest}");
            }
            None => out.push_str(line),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_change_nothing_but_colours() {
        let text = "error: x\nchecks         5 passed\n               bit-exact: NO (3 of 4)\nCHECK FAILED   y\nrest\n";
        let painted = coloured(text);
        assert_eq!(anstream::adapter::strip_str(&painted).to_string(), text);
        for (line, plain) in painted.lines().zip(text.lines()) {
            assert_eq!(line != plain, plain != "rest", "{line:?}");
            assert!(line == plain || line.contains("\u{1b}[0m"), "{line:?}: a colour ends where its word does");
        }
    }
}
