//! The command line: one file a subcommand; parses, calls, prints.
//!
//! | status | meaning |
//! |-------:|---------|
//! | 0 | everything is fine |
//! | 1 | a check failed, a run did not finish, two waveforms differ |
//! | 2 | the command line or an input is wrong; what and where is on the standard error |
//! | 3 | all was done and is fine, but the outcome could not be written, for example on a full disk |
//!
//! Ctrl-C, SIGTERM and SIGHUP end a command that takes long with the results so far and status 1; SIGUSR1 makes any
//! command print a line that says how far it is. Files are written whole or not at all, and by one process at a time
//! ([`files`](watershed_files)).

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use watershed_scenario_interface::{Engines, names};

mod alu;
mod check;
mod compare;
mod completions;
mod contributions;
mod cost;
mod curve;
mod embed;
mod exhaustive;
mod explain;
mod frame;
mod fuzz;
mod invocation;
mod list;
mod man;
mod messages;
mod migrate;
mod numerics;
mod output;
mod packet;
mod progress;
mod ranks;
mod reduce;
mod replay;
mod report;
mod run;
mod schema;
mod study;
mod sweep;
mod table;
mod test;
mod testfloat;
mod topology;
mod wave;
mod wave_command;
mod why;
mod workload;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    Fine = 0,
    Failed = 1,
    Bad = 2,
    Unwritten = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

const STATUSES: &str = "\
Exit status:
  0  everything is fine
  1  a check failed, a run did not finish, or two waveforms differ
  2  the command line or an input is wrong
  3  everything is fine, but the output could not be written";

/// The last status, which is that of every subcommand, for those that do not say it in their own words.
const UNWRITTEN: &str = "\n  3  what was to be printed could not be written";

/// Cycle-level, bit-exact hardware model of collectives computed inside the network.
#[derive(Debug, Parser)]
#[command(name = "watershed", version = watershed_scenario_interface::result::STAMP, after_help = after_help(), disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    messages: messages::MessageOptions,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::Arguments>),
    Replay(replay::Arguments),
    Why(why::Arguments),
    Sweep(sweep::Arguments),
    Report(report::Arguments),
    Compare(compare::Arguments),
    Curve(curve::Arguments),
    Cost(cost::Arguments),
    Check(check::Arguments),
    Migrate(migrate::Arguments),
    List(list::Arguments),
    Topology(topology::Arguments),
    Embed(embed::Arguments),
    Schema(schema::Arguments),
    Test(test::Arguments),
    Wave(wave::Arguments),
    Alu(alu::Arguments),
    Reduce(reduce::Arguments),
    Numerics(numerics::Arguments),
    Frame(frame::Arguments),
    Study(study::Arguments),
    Packet(packet::Arguments),
    Workload(workload::Arguments),
    Testfloat(testfloat::Arguments),
    Fuzz(fuzz::Arguments),
    Exhaustive(exhaustive::Arguments),
    Explain(explain::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

fn after_help() -> String {
    format!(
        "Examples:
  watershed list
  watershed run testbench/piuma/allreduce-die.toml --wave die.vcd
  watershed run testbench/piuma/allreduce-die.toml --set switch.ceng.stages=4 --json
  watershed curve mesh-uniform --rates 0.05..0.5:0.05 --svg curve.svg
  watershed wave diff a.vcd b.vcd
  watershed test mine --junit out/junit.xml
  watershed explain \"merged first\"      what a printed term means
  watershed alu --op sum --type f32 --round up 0x3f800001 0x33800000

Signals:
  Ctrl-C, SIGTERM and SIGHUP end a command that takes long with the results so far; a second one ends it at once.
  SIGUSR1 makes it say how far it is, on the standard error.

{STATUSES}"
    )
}

/// What runs the scenarios of this process.
static ENGINES: OnceLock<Engines> = OnceLock::new();

/// The engines that [`main`] was handed.
fn engines() -> Engines {
    *ENGINES.get().expect("the program begins with its engines")
}

/// Runs the program with the process's arguments, and its scenarios on these engines.
pub fn main(engines: Engines) -> ExitCode {
    // The first ones stay: a process has one command line.
    let _ = ENGINES.set(engines);
    // A shell that completes a command line asks by a variable, and is answered here.
    clap_complete::CompleteEnv::with_factory(command_line).var(completions::VARIABLE).complete();
    let parsed = command_line().try_get_matches_from(std::env::args_os().map(alu::word));
    let parsed = parsed.and_then(|matches| Ok((Arguments::from_arg_matches(&matches)?, matches)));
    let (arguments, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) if error.use_stderr() => {
            let _ = write!(anstream::stderr(), "{}", in_words(&error.render().ansi().to_string()));
            return Exit::Bad.into();
        }
        Err(shown) => {
            // Help and version are no errors.
            check_printed(shown.print().and_then(|()| io::stdout().flush()));
            return final_exit(Exit::Fine).into();
        }
    };
    progress::serve_status();
    arguments.messages.apply();
    if let Some((_, command)) = matches.subcommand() {
        messages::init_messages(command);
    }
    let exit = match arguments.command {
        Command::Run(arguments) => run::main(&arguments),
        Command::Why(arguments) => why::main(&arguments),
        Command::Replay(arguments) => replay::main(&arguments),
        Command::Compare(arguments) => compare::main(&arguments),
        Command::Report(arguments) => report::main(&arguments),
        Command::Sweep(arguments) => sweep::main(&arguments),
        Command::Curve(arguments) => curve::main(&arguments),
        Command::Cost(arguments) => cost::main(&arguments),
        Command::Check(arguments) => check::main(&arguments),
        Command::Migrate(arguments) => migrate::main(&arguments),
        Command::List(arguments) => list::main(&arguments),
        Command::Topology(arguments) => topology::main(&arguments),
        Command::Embed(arguments) => embed::main(&arguments),
        Command::Schema(arguments) => schema::main(&arguments),
        Command::Test(arguments) => test::main(&arguments),
        Command::Wave(arguments) => wave::main(&arguments),
        Command::Alu(arguments) => alu::main(&arguments),
        Command::Reduce(arguments) => reduce::main(&arguments),
        Command::Numerics(arguments) => numerics::main(&arguments),
        Command::Frame(arguments) => frame::main(&arguments),
        Command::Study(arguments) => study::main(&arguments),
        Command::Packet(arguments) => packet::main(&arguments),
        Command::Workload(arguments) => workload::main(&arguments),
        Command::Testfloat(arguments) => testfloat::main(&arguments),
        Command::Fuzz(arguments) => fuzz::main(&arguments),
        Command::Exhaustive(arguments) => exhaustive::main(&arguments),
        Command::Explain(arguments) => explain::main(&arguments),
        Command::Completions(arguments) => completions::main(&arguments),
        Command::Man(arguments) => man::main(&arguments),
    };
    final_exit(exit).into()
}

/// An error of the command line, in which standard parsers speak of digits and types, in words about the value.
fn in_words(error: &str) -> String {
    let mut error = invocation::text(error);
    for (theirs, ours) in [
        ("invalid digit found in string", "it is no whole number in decimal digits"),
        ("number too large to fit in target type", "the number is too large"),
        ("number too small to fit in target type", "the number is too small"),
        ("invalid float literal", "it is no number"),
        ("cannot parse integer from empty string", "a whole number is missing"),
        ("cannot parse float from empty string", "a number is missing"),
    ] {
        error = error.replace(theirs, ours);
    }
    error
}

/// The command line, with the status that all commands have in the help of each that lists its statuses.
fn command_line() -> clap::Command {
    // As ANSI text they are taken as they are. As plain text, colours that they do not have would be looked for in each of them, and
    // that would be most of what starting takes where this is not optimised.
    fn complete(command: clap::Command) -> clap::Command {
        let command = match command.get_after_help().map(|help| one_line_a_sentence(&help.ansi().to_string())) {
            Some(help) if help.contains("Exit status:") && !help.contains("\n  3  ") => {
                command.after_help(help + UNWRITTEN)
            }
            Some(help) => command.after_help(help),
            None => command,
        };
        command.mut_subcommands(complete)
    }
    complete(Arguments::command().max_term_width(120))
}

/// A help text as it is written in the source goes on in the next line where a line is full; the terminal breaks it anew, once.
fn one_line_a_sentence(help: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in help.lines() {
        let indent = line.len() - line.trim_start().len();
        // What goes on under a line of a list, and in a paragraph; a line with a colon at its end heads a list.
        let goes_on = |before: &str| {
            let paragraph = indent == 0 && !line.is_empty() && !before.ends_with(':');
            if before.starts_with(' ') { indent >= 4 } else { paragraph }
        };
        match lines.last_mut() {
            Some(before) if !before.trim().is_empty() && goes_on(before) => {
                before.push(' ');
                before.push_str(line.trim_start());
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines.join("\n")
}

/// Whether something that was to be printed is lost.
static LOST: AtomicBool = AtomicBool::new(false);

/// Prints a summary for people, in colours where they are wanted.
fn print_painted(text: &str) {
    if anstream::AutoStream::choice(&io::stdout()) == anstream::ColorChoice::Never {
        print(text);
    } else {
        print(&messages::coloured(text));
    }
}

/// Prints to the standard output. What cannot be written is said once, and is the status at the end (see [`final_exit`]).
fn print(text: &str) {
    let mut out = io::stdout().lock();
    let end: &[u8] = if text.ends_with('\n') { b"" } else { b"\n" };
    check_printed(out.write_all(text.as_bytes()).and_then(|()| out.write_all(end)).and_then(|()| out.flush()));
}

/// Looks at how printing ended. A reader that has seen enough (`| head`) is no error.
fn check_printed(printed: io::Result<()>) {
    if let Err(error) = printed
        && error.kind() != io::ErrorKind::BrokenPipe
        && !LOST.swap(true, Ordering::Relaxed)
    {
        print_error(&format_args!("error: cannot write to the standard output: {error}"));
    }
}

/// How the program ends if a command ends so: what is lost is no success, and a check that failed stays one.
fn final_exit(exit: Exit) -> Exit {
    if exit == Exit::Fine && LOST.load(Ordering::Relaxed) { Exit::Unwritten } else { exit }
}

/// Says that there is nothing of a name, and what there is.
fn unknown(what: &str, name: &str, known: &[impl AsRef<str>]) -> String {
    let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    let near = names::nearest(name, known.iter().copied()).map(|near| format!("\n  did you mean `{near}`?"));
    let list = names::one_of(&known);
    let list = if list.is_empty() { String::new() } else { format!(", but {list}") };
    format!("error: {what} \"{name}\"{list}{}", near.unwrap_or_default())
}

/// Prints an error or, unless only errors are wanted, a note. Commands in backticks name the program as it was called.
fn print_error(text: &impl std::fmt::Display) {
    let text = invocation::text(&text.to_string());
    if messages::is_quiet() && text.starts_with("note:") {
        return;
    }
    let mut err = anstream::AutoStream::auto(io::stderr()).lock();
    let _ = writeln!(err, "{}", messages::coloured(&text));
}

/// Whether the standard error is a terminal and progress is wanted.
fn shows_progress() -> bool {
    io::stderr().is_terminal() && !messages::is_quiet()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command_line().debug_assert();
    }

    #[test]
    fn help_is_broken_by_the_terminal_only() {
        let text = "A paragraph that is\nwritten in two lines.\n\nExamples:\n  one\n  two\n\nExit status:\n  1  goes\n     on\n  2  ends";
        let joined = "A paragraph that is written in two lines.\n\nExamples:\n  one\n  two\n\nExit status:\n  1  goes on\n  2  ends";
        assert_eq!(one_line_a_sentence(text), joined);
        fn visit(command: &clap::Command, seen: &mut usize) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for pair in help.lines().collect::<Vec<_>>().windows(2) {
                let text = |line: &str| !line.is_empty() && !line.starts_with(' ');
                let heads = pair[0].ends_with(':');
                assert!(!(text(pair[0]) && text(pair[1])) || heads, "{}: {pair:?}", command.get_name());
                *seen += usize::from(text(pair[0]));
            }
            command.get_subcommands().for_each(|command| visit(command, seen));
        }
        let mut seen = 0;
        visit(&command_line(), &mut seen);
        assert!(seen > 40, "{seen} paragraphs and headings");
    }

    #[test]
    fn all_lists_of_statuses_end_with_what_could_not_be_written() {
        fn visit(command: &clap::Command, seen: &mut usize) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            if let Some((_, statuses)) = help.split_once("Exit status:") {
                let last = statuses.lines().last().unwrap_or_default();
                assert!(last.starts_with("  3  "), "{}: {last}", command.get_name());
                *seen += 1;
            }
            command.get_subcommands().for_each(|command| visit(command, seen));
        }
        let mut seen = 0;
        visit(&command_line(), &mut seen);
        assert!(seen > 15, "{seen}");
    }

    #[test]
    fn every_flag_says_in_a_sentence_what_it_does() {
        fn visit(command: &clap::Command) {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for argument in command.get_arguments() {
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(!help.is_empty(), "{} {}", command.get_name(), argument.get_id());
                assert!(!help.contains('\n'), "{} {}", command.get_name(), argument.get_id());
            }
            command.get_subcommands().for_each(visit);
        }
        visit(&command_line());
    }
}
