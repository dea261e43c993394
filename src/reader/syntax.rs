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

/// The word at the beginning of a text, if it is a string that lacks its quotes: it begins with a letter, and is no beginning of `true` or
/// `false` in letters of any size.
fn bare_word(text: &str) -> Option<&str> {
    let end = text.find(|c: char| c.is_whitespace() || ",]}#\"'".contains(c)).unwrap_or(text.len());
    let word = &text[..end];
    let lower = word.to_ascii_lowercase();
    let boolean = ["true", "false"].iter().any(|known| known.starts_with(&lower));
    (word.starts_with(|c: char| c.is_ascii_alphabetic()) && !boolean).then_some(word)
}

#[cfg(test)]
mod tests {
    use crate::source::Source;

    #[test]
    fn only_what_is_no_boolean_is_told_to_lack_quotes() {
        for (line, message) in [
            ("kind = torus # round", "`torus` has no quotes"),
            ("kind = [mesh, \"torus\"]", "`mesh` has no quotes"),
            ("kind = { of = f32 }", "`f32` has no quotes"),
            ("file = data/vectors.npy", "`data/vectors.npy` has no quotes"),
        ] {
            let problem = Source::parse("test.toml", line).1.expect(line);
            assert_eq!(problem.message(), message, "{line}");
        }
        for line in ["checks = tru", "checks = False", "checks = ", "size = 4x", "size = [1, 2\nkind = 3"] {
            let problem = Source::parse("test.toml", line).1.expect(line);
            assert!(!problem.message().contains("quotes"), "{line}: {}", problem.message());
        }
    }
}
