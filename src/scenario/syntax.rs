//! What a text lacks that is no TOML, in words of ours.

use std::ops::Range;

use super::problem::{Problem, Span};

/// Says in our words what the parser did not understand.
pub(super) fn syntax_problem(text: &str, range: Range<usize>, origin: usize, message: &str) -> Problem {
    let rest = &text[range.start..];
    let span = Span::new(origin, range.clone());
    let blank = rest.is_empty() || rest.starts_with(['\n', '\r', '#']);
    let value = message.starts_with("string values must be quoted") || message.starts_with("invalid boolean");
    if let Some(word) = bare_word(rest).filter(|_| value) {
        let span = Span::new(origin, range.start..range.start + word.len());
        return Problem::in_text(span, format!("`{word}` has no quotes")).expected(format!("\"{word}\""));
    }
    if message.starts_with("missing comma between array elements") {
        return Problem::in_text(span, "a comma is missing in front of this, or the `]` of the array")
            .expected("`,` or `]`");
    }
    if message.starts_with("string values must be quoted") {
        if blank {
            return Problem::in_text(span, "a value is missing after the `=`");
        }
        return Problem::in_text(span, "this is not a TOML value")
            .expected("a number, `true`, `false`, an array, a table or a string in quotes");
    }
    if message.contains("recursion") {
        return Problem::in_text(span, "this is nested too deeply");
    }
    if message == "duplicate key" {
        return Problem::in_text(span, format!("`{}` is given twice", &text[range]));
    }
    if blank && (message.starts_with("invalid basic string") || message.starts_with("invalid literal string")) {
        return Problem::in_text(span, "the string has no closing quote");
    }
    let (message, expected) = match message.split_once(", expected ") {
        Some((message, expected)) if expected != "nothing" => (message, Some(expected)),
        Some((message, _)) => (message, None),
        None => (message, None),
    };
    let problem = Problem::in_text(span, message);
    match expected {
        Some(expected) => problem.expected(expected),
        None => problem,
    }
}

/// The word at the beginning of a text, if it is a string that lacks its quotes: not a number, and not nearly `true` or `false`.
fn bare_word(text: &str) -> Option<&str> {
    let word = &text[..text.find(|c: char| !(c.is_ascii_alphanumeric() || "-_".contains(c))).unwrap_or(text.len())];
    let boolean = ["true", "false"].iter().any(|known| known.eq_ignore_ascii_case(word));
    (word.starts_with(|c: char| c.is_ascii_alphabetic()) && !boolean).then_some(word)
}
