//! `watershed wave`: compares waveforms and shows them as text.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::run::Window;
use super::{Exit, complain, print};
use crate::probe::ascii::{Options, draw};
use crate::probe::diff::{DiffOptions, diff};
use crate::probe::{Period, Selection};
use crate::scenario::kind::{self, Kind};
use crate::scenario::units::femtoseconds;

/// Compare waveforms or show them as text.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Find the first time and signal at which two waveforms differ
    #[command(after_help = "\
Exit status:
  0  the waveforms are equal
  1  they differ
  2  the command line or a file is wrong")]
    Diff {
        /// The one waveform
        a: PathBuf,
        /// The other waveform
        b: PathBuf,
        /// Show so many changes before and after the difference
        #[arg(long, value_name = "N", default_value_t = 3)]
        context: usize,
        /// Pass over signals whose hierarchical name matches; can be given several times
        #[arg(long, value_name = "GLOB")]
        ignore: Vec<String>,
    },
    /// Show signals over time as text
    Show {
        /// The waveform
        file: PathBuf,
        /// Show only signals whose hierarchical name matches; can be given several times
        #[arg(long, value_name = "GLOB")]
        signals: Vec<String>,
        /// Show only cycles A to B, both included; either may be left out
        #[arg(long, value_name = "A..B", value_parser = super::run::window)]
        window: Option<Window>,
        /// Show only so many levels of the hierarchy
        #[arg(long, value_name = "LEVELS", value_parser = clap::value_parser!(u32).range(1..))]
        depth: Option<u32>,
        /// Draw at most so many columns
        #[arg(long, value_name = "COLUMNS")]
        width: Option<usize>,
        /// Take this as the length of a cycle, for files of other programs
        #[arg(long, value_name = "NS")]
        period_ns: Option<f64>,
    },
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    match &arguments.command {
        Command::Diff { a, b, context, ignore } => {
            let options = DiffOptions { context: *context, ignore: ignore.clone() };
            match diff(a, b, &options) {
                Ok(found) => {
                    print(&found.to_string());
                    if found.is_equal() { Exit::Fine } else { Exit::Failed }
                }
                Err(error) => {
                    complain(&no_wave(&[a, b]).unwrap_or_else(|| format!("error: {error}")));
                    Exit::Bad
                }
            }
        }
        Command::Show { file, signals, window, depth, width, period_ns } => {
            match show(file, signals, *window, *depth, *width, *period_ns) {
                Ok(picture) => {
                    print(&picture);
                    Exit::Fine
                }
                Err(error) => {
                    complain(&no_wave(&[file]).unwrap_or_else(|| format!("error: {error}")));
                    Exit::Bad
                }
            }
        }
    }
}

/// What the first of these files is that is surely no waveform.
fn no_wave(files: &[&PathBuf]) -> Option<String> {
    let other = |file: &&&PathBuf| kind::surely_other(file, &[Kind::Wave]).is_some();
    files.iter().find(other).map(|file| kind::instead(file, "a waveform"))
}

fn show(
    file: &Path,
    signals: &[String],
    window: Option<Window>,
    depth: Option<u32>,
    width: Option<usize>,
    period_ns: Option<f64>,
) -> Result<String, String> {
    let mut selection = Selection::new(signals).map_err(|error| error.to_string())?;
    if let Some(depth) = depth {
        selection = selection.with_depth(depth as usize).map_err(|error| error.to_string())?;
    }
    if let Some(window) = window {
        selection = selection.with_window(window.from.unwrap_or(0), window.to).map_err(|error| error.to_string())?;
    }
    let period = match period_ns {
        None => None,
        Some(ns) => {
            // Picoseconds in thousandths, so that periods like that of 850 MHz can be given to a femtosecond.
            let thousandths = femtoseconds(ns).and_then(|fs| u64::try_from(fs).ok());
            let period = thousandths.and_then(|fs| Period::from_ps(fs, 1000));
            Some(period.ok_or_else(|| format!("a period of {ns} ns is not possible"))?)
        }
    };
    let defaults = Options::default();
    let options = Options { selection, period, max_columns: width.unwrap_or(defaults.max_columns), ..defaults };
    draw(file, &options).map_err(|error| format!("{}: {error}", file.display()))
}
