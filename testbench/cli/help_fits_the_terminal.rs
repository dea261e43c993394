//! Help texts are as wide as the terminal at most, and broken by it only: no line ends early because the source had a line end there.

use std::process::Command;

use crate::share;

fn help(words: &[String], flag: &str, columns: usize) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_watershed"))
        .args(words)
        .arg(flag)
        .env("COLUMNS", columns.to_string())
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The names under `Commands:`.
fn subcommands(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let name = |line: &str| {
        line.strip_prefix("  ")?.split_whitespace().next().filter(|_| !line.starts_with("   ")).map(str::to_owned)
    };
    list.filter_map(name).collect()
}

/// Whether a line begins something: an option, an argument, a status, an example, a subcommand, a row of a table, a line of a file.
fn begins(line: &str, indent: usize) -> bool {
    let text = line.trim_start();
    let row = text.split_once("  ").is_some_and(|(_, rest)| !rest.is_empty());
    let item = text.starts_with(['-', '<', '[']) || row || text.contains(" = ");
    let command =
        ["watershed ", "testfloat_gen ", "mpirun ", "source ", "SIGUSR1 "].iter().any(|name| text.starts_with(name));
    indent > 0 && (item || command)
}

/// Lines that are too wide, and lines that end although the next word had room.
fn faults(help: &str, columns: usize) -> Vec<String> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut faults: Vec<String> =
        help.lines().filter(|line| line.chars().count() > columns).map(|line| format!("too wide: {line}")).collect();
    let lines: Vec<&str> = help.lines().collect();
    for pair in lines.windows(2) {
        let [line, next] = pair else { continue };
        // An option without room for what it does beside it, and the head of a list.
        let alone = line.trim_start().starts_with(['-', '<', '[']) && !line.trim_start().contains("  ");
        let heads = line.ends_with(':') || alone && indent(next) > indent(line);
        let ends = line.trim().is_empty() || next.trim().is_empty() || indent(next) < indent(line);
        if ends || heads || begins(next, indent(next)) {
            continue;
        }
        let word = next.trim_start().split(' ').next().unwrap_or_default().chars().count();
        if line.chars().count() + 1 + word <= columns {
            faults.push(format!("ends early: {line}\n            {next}"));
        }
    }
    faults
}

/// One page in three in `make test`, so that the widths and flags take turns; all in `make soak`.
#[test]
fn no_help_is_too_wide_or_broken_twice() {
    let mut queue: Vec<Vec<String>> = vec![Vec::new()];
    let mut commands = Vec::new();
    while let Some(words) = queue.pop() {
        for name in subcommands(&help(&words, "--help", 120)) {
            queue.push(words.iter().cloned().chain([name]).collect());
        }
        commands.push(words);
    }
    assert!(commands.len() > 40, "{}", commands.len());
    let shown = [(80, "-h"), (80, "--help"), (120, "-h"), (120, "--help")];
    let pages = commands.iter().flat_map(|words| shown.map(|(columns, flag)| (words, columns, flag)));
    let mut wrong = Vec::new();
    for (words, columns, flag) in share::one_in(3, pages) {
        let found = faults(&help(words, flag, columns), columns);
        wrong.extend(found.into_iter().map(|fault| format!("{} {flag} at {columns}: {fault}", words.join(" "))));
    }
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn faults_of_help_are_found() {
    assert!(faults("A paragraph that is broken here\nand goes on.", 80).len() == 1);
    assert!(faults(&format!("  {}", "x".repeat(80)), 80).len() == 1);
    assert!(faults("Examples:\n  watershed a\n  watershed b\n\nExit status:\n  0  fine\n  1  not", 80).is_empty());
}
