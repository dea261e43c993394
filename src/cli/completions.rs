//! `watershed completions`: what a shell needs to complete this command line, names of scenarios included.
//!
//! The script asks the program itself for what comes next, so that it never lags behind it.

use std::ffi::OsStr;

use clap::Args;
use clap_complete::CompletionCandidate;
use clap_complete::engine::{PathCompleter, ValueCompleter};
use clap_complete::env::Shells;

use super::{Exit, print, print_error};
use watershed_scenario_interface::shipped::{SHIPPED, stem};

/// The variable by which a shell's script asks the program what may come next.
pub(super) const VARIABLE: &str = "WATERSHED_COMPLETE";

/// Print completions for a shell.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  watershed completions bash > ~/.local/share/bash-completion/completions/watershed")]
pub(super) struct Arguments {
    /// The shell to print completions for
    #[arg(value_parser = ["bash", "elvish", "fish", "powershell", "zsh"])]
    shell: String,
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let written = shells
        .completer(&arguments.shell)
        .map(|shell| shell.write_registration(VARIABLE, "watershed", "watershed", "watershed", &mut script));
    if !matches!(written, Some(Ok(()))) {
        print_error(&format_args!("error: no script can be made for {}", arguments.shell));
        return Exit::Bad;
    }
    print(&String::from_utf8_lossy(&script));
    Exit::Fine
}

/// Names of shipped scenarios, and files and folders.
pub(super) fn scenarios(begun: &OsStr) -> Vec<CompletionCandidate> {
    let start = begun.to_string_lossy();
    let names = SHIPPED.iter().map(|(path, _)| stem(path)).filter(|name| name.starts_with(&*start));
    let mut found: Vec<_> = names.map(CompletionCandidate::new).collect();
    let files = PathCompleter::file().filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    found.extend(files.complete(begun));
    found
}
