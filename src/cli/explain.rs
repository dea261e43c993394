//! `watershed explain`: what the printed terms mean.

use std::fmt::Write;

use clap::Args;

use super::{Exit, print, print_error};
use watershed_glossary::{self as glossary, Entry};

/// Say what a printed term means.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  watershed explain
  watershed explain CENG
  watershed explain P7 1 earlier
  watershed explain \"merged first\"

Exit status:
  0  the term, or some of its words, are explained
  2  there is no such term; the one that is spelt most like it is named")]
pub(super) struct Arguments {
    /// A term as summaries, `why` or points.csv print it, or a phrase; without it all terms are printed
    #[arg(value_name = "TERM")]
    term: Vec<String>,
}

/// Width of lines.
const WIDTH: usize = 100;
/// Width of the column of terms; longer ones have a line of their own.
const TERMS: usize = 26;

pub(super) fn main(arguments: &Arguments) -> Exit {
    if arguments.term.is_empty() {
        print(&all());
        return Exit::Fine;
    }
    let term = arguments.term.join(" ");
    let found = glossary::find(&term);
    // A word that no entry has is rather a slip than a part of a phrase.
    let strange = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        let known = found.iter().any(|entry| entry.is_about(word) || entry.terms.contains(word));
        word.starts_with(|c: char| c.is_alphabetic()) && !known
    };
    let near = if term.split(' ').any(strange) { glossary::nearest_term(&term) } else { None };
    if found.is_empty() || near.is_some() {
        let near = near.map(|near| format!("\n  did you mean `{near}`?")).unwrap_or_default();
        print_error(&format_args!(
            "error: \"{term}\" is not in the glossary{near}\n  `watershed explain` prints all of it"
        ));
        return Exit::Bad;
    }
    print(&text(&found));
    Exit::Fine
}

/// All entries under the titles of their tables.
fn all() -> String {
    let mut out = String::new();
    let mut table = "";
    for entry in glossary::entries() {
        if entry.table != table {
            let gap = if table.is_empty() { "" } else { "\n" };
            let _ = writeln!(out, "{gap}{}", entry.table);
            table = entry.table;
        }
        one(entry, &mut out);
    }
    out
}

fn text(entries: &[Entry]) -> String {
    let mut out = String::new();
    for &entry in entries {
        one(entry, &mut out);
    }
    out
}

/// An entry in two columns.
fn one(entry: Entry, out: &mut String) {
    let mut line = format!("{:TERMS$}", entry.terms);
    if entry.terms.chars().count() >= TERMS {
        let _ = writeln!(out, "{}", entry.terms);
        line = " ".repeat(TERMS);
    }
    let mut room = false;
    for word in entry.meaning.split(' ') {
        if room && line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(out, "{line}");
            line = " ".repeat(TERMS);
            room = false;
        }
        if room {
            line.push(' ');
        }
        line.push_str(word);
        room = true;
    }
    let _ = writeln!(out, "{line}");
}
