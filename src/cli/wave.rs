//! `watershed wave`: compares waveforms and shows them as text.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::run::Window;
use super::{Exit, complain};

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
    },
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    let _ = &arguments.command;
    complain(&"error: not built yet");
    Exit::Bad
}
