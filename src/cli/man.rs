//! `watershed man`: manual pages, made from the same definition as `--help`.

use std::path::{Path, PathBuf};

use clap::Args;
use clap_mangen::Man;

use super::{Exit, output, print, print_error};

/// Print the manual page, or write one for each command.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  watershed man | man -l -
  watershed man --out ~/.local/share/man/man1

Exit status:
  0  it is printed or written
  2  the command line is wrong, or a page cannot be written")]
pub(super) struct Arguments {
    /// Write a page for each command into this folder
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    let mut command = super::command_line();
    command.build();
    let written = match &arguments.out {
        Some(folder) => pages(&command, folder),
        None => page(&command).map(|text| print(&String::from_utf8_lossy(&text))),
    };
    match written {
        Ok(()) => Exit::Fine,
        Err(error) => {
            print_error(&error);
            Exit::Bad
        }
    }
}

fn page(command: &clap::Command) -> Result<Vec<u8>, String> {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).replace(' ', "-");
    let mut text = Vec::new();
    let rendered = Man::new(command.clone().name(&*name.leak())).render(&mut text);
    rendered.map(|()| text).map_err(|error| format!("error: the page of {}: {error}", command.get_name()))
}

/// The page of a command and those of its own commands.
fn pages(command: &clap::Command, folder: &Path) -> Result<(), String> {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).replace(' ', "-");
    output::write(&folder.join(format!("{name}.1")), page(command)?)?;
    command.get_subcommands().filter(|command| !command.is_hide_set()).try_for_each(|command| pages(command, folder))
}
