//! `watershed completions`: what a shell needs to complete this command line.

use clap::Args;
use clap_complete::Shell;

use super::{Exit, print};

/// Print completions for a shell.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  watershed completions bash > ~/.local/share/bash-completion/completions/watershed")]
pub(super) struct Arguments {
    /// The shell to print completions for
    shell: Shell,
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::command_line(), "watershed", &mut script);
    print(&String::from_utf8_lossy(&script));
    Exit::Fine
}
