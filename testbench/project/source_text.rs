//! Rust sources as the checks of sizes and imports read them: without comments, strings and characters, cut into words, with lines.
//!
//! This is no parser. It knows enough of the language to find functions, structs, modules and paths in code that `rustfmt` has
//! formatted and the compiler accepts; macros that make functions are not expanded.

use std::path::{Path, PathBuf};

/// A word or a sign of a source, and its line, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub text: String,
    pub line: usize,
}

/// A file of the project.
pub struct Source {
    /// Its path in the project.
    pub path: String,
    pub tokens: Vec<Token>,
}

impl Source {
    pub fn read(root: &Path, path: &Path) -> Source {
        let (path, _, text) = measured(root, path);
        Source { path, tokens: tokens(&text) }
    }
}

/// The path of a file in the project, its lines without the examples of its documentation, and its text.
pub fn measured(root: &Path, path: &Path) -> (String, usize, String) {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let path = path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/");
    // With their fences and the empty line before them.
    let shown: usize = examples(&text).iter().map(|example| example.lines().count() + 3).sum();
    (path, text.lines().count() - shown, text)
}

/// The code of the examples in a source's documentation that are run as tests, without what marks it as documentation.
pub fn examples(text: &str) -> Vec<String> {
    let (mut found, mut open): (Vec<String>, Option<(String, bool)>) = (Vec::new(), None);
    for line in text.lines() {
        let line = line.trim_start();
        let Some(shown) = line.strip_prefix("//!").or_else(|| line.strip_prefix("///")) else {
            open = None;
            continue;
        };
        let shown = shown.strip_prefix(' ').unwrap_or(shown);
        match (&mut open, shown.strip_prefix("```")) {
            (None, Some(mark)) => open = Some((String::new(), matches!(mark.trim(), "" | "rust" | "should_panic"))),
            (Some(_), Some(_)) => found.extend(open.take().filter(|(_, runs)| *runs).map(|(body, _)| body)),
            (Some((body, _)), None) => body.extend([shown, "\n"]),
            (None, None) => {}
        }
    }
    found
}

/// All files below a folder that end in `.rs`, in the order of their paths.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    files_of(folder, "rs")
}

/// The files of a room: all but those of its interface, which is a room of its own.
pub fn room(folder: &Path) -> Vec<PathBuf> {
    let interface = folder.join("interface");
    files(folder).into_iter().filter(|path| !path.starts_with(&interface)).collect()
}

/// All files below a folder with an ending, in the order of their paths.
pub fn files_of(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let (mut found, mut work) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = work.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                work.push(path);
            } else if path.extension().is_some_and(|of| of == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Where a comment, a string or a character that begins here ends; `None` if none does.
fn passed_over(text: &str) -> Option<usize> {
    let find = |from: usize, what: &str| text[from..].find(what).map_or(text.len(), |at| from + at + what.len());
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(find(2, "*/"));
    }
    let raw = text.trim_start_matches(['b', 'c']);
    if let Some(hashes) = raw.strip_prefix('r').filter(|_| text.len() - raw.len() <= 1) {
        let count = hashes.len() - hashes.trim_start_matches('#').len();
        if hashes[count..].starts_with('"') {
            let begin = text.len() - hashes.len() + count + 1;
            return Some(find(begin, &format!("\"{}", "#".repeat(count))));
        }
    }
    let quoted = text.strip_prefix(['b', 'c']).unwrap_or(text);
    let prefix = text.len() - quoted.len();
    if let Some(inside) = quoted.strip_prefix('"') {
        let mut escaped = false;
        let end = inside.find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        return Some(end.map_or(text.len(), |end| prefix + 1 + end + 1));
    }
    if let Some(character) = quoted.strip_prefix('\'') {
        if let Some(rest) = character.strip_prefix('\\') {
            let first = rest.chars().next().map_or(0, char::len_utf8);
            return Some(find(prefix + 2 + first, "'"));
        }
        let first = character.chars().next().map_or(0, char::len_utf8);
        // A lifetime has no quote behind it.
        return character[first..].starts_with('\'').then_some(prefix + 1 + first + 1);
    }
    None
}

/// The words and signs of a source; `::` is one. Bytes are looked at rather than characters: these tests are not optimised, and read
/// millions.
pub fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let (mut found, mut at, mut line) = (Vec::new(), 0, 1);
    while at < bytes.len() {
        let first = bytes[at];
        if first == b'\n' {
            line += 1;
        }
        if matches!(first, b' ' | b'\n' | b'\t' | b'\r') {
            at += 1;
            continue;
        }
        // A comment is no word; that a string stood between two signs is of no interest either.
        let may_be_passed = matches!(first, b'/' | b'"' | b'\'' | b'r' | b'b' | b'c');
        if let Some(end) = may_be_passed.then(|| passed_over(&text[at..])).flatten() {
            line += text[at..at + end].matches('\n').count();
            at += end;
            continue;
        }
        let from = at;
        while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_' || bytes[at] >= 0x80) {
            at += 1;
        }
        if at == from {
            let two = bytes.get(at..at + 2).is_some_and(|two| matches!(two, b"::" | b"->" | b"=>"));
            at += if two { 2 } else { 1 };
        }
        found.push(Token { text: text[from..at].to_owned(), line });
    }
    found
}

/// The position behind the bracket that closes the one at `open`.
pub fn closed(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_i32;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match &*token.text {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

/// A part of a source with a name.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    pub name: String,
    /// Lines of a function, fields of a struct.
    pub size: usize,
}

/// Functions with a body, in the order of their beginnings, each with its lines.
pub fn functions(tokens: &[Token]) -> Vec<Part> {
    let mut found = Vec::new();
    for at in 0..tokens.len().saturating_sub(1) {
        let name = &tokens[at + 1].text;
        if tokens[at].text != "fn" || !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            continue;
        }
        let mut inner = at;
        while inner < tokens.len() && tokens[inner].text != "{" && tokens[inner].text != ";" {
            inner = if matches!(&*tokens[inner].text, "(" | "[") { closed(tokens, inner) } else { inner + 1 };
        }
        if tokens.get(inner).is_some_and(|token| token.text == "{") {
            let last = &tokens[closed(tokens, inner) - 1];
            found.push(Part { name: name.clone(), size: last.line - tokens[at].line + 1 });
        }
    }
    found
}

/// What a derived trait makes of a struct: a table of a file, of a document or of a command line. State of blocks derives its traits by
/// their full names, and is no table.
const TABLES: [&str; 3] = ["Serialize", "Deserialize", "Args"];

/// Structs with named fields that are no tables, each with the number of its fields.
pub fn structs(tokens: &[Token]) -> Vec<Part> {
    let mut found = Vec::new();
    let mut table = false;
    let mut at = 0;
    while at < tokens.len() {
        match &*tokens[at].text {
            "#" if tokens.get(at + 1).is_some_and(|token| token.text == "[") => {
                let end = closed(tokens, at + 1);
                let full = |at: usize| tokens[at - 1].text.ends_with(':');
                table |= (at..end).any(|at| TABLES.contains(&&*tokens[at].text) && !full(at));
                at = end;
            }
            "struct" => {
                let name = tokens.get(at + 1).map(|token| token.text.clone()).unwrap_or_default();
                let open = (at..tokens.len()).find(|at| matches!(&*tokens[*at].text, "{" | ";" | "("));
                let open = open.unwrap_or(tokens.len() - 1);
                if tokens[open].text == "{" && !table {
                    found.push(Part { name, size: fields(&tokens[open + 1..closed(tokens, open) - 1]) });
                }
                table = false;
                at = open + 1;
            }
            "pub" | "(" | ")" | "crate" | "super" => at += 1,
            _ => {
                table = false;
                at += 1;
            }
        }
    }
    found
}

/// Named fields between the braces of a struct.
fn fields(tokens: &[Token]) -> usize {
    let (mut count, mut at) = (0, 0);
    while at < tokens.len() {
        match &*tokens[at].text {
            "(" | "[" | "{" => at = closed(tokens, at),
            text => {
                count += usize::from(text == ":");
                at += 1;
            }
        }
    }
    count
}

const TEXT: &str = r##"
/// fn commented() { }
#[derive(Debug)]
pub(crate) struct Three<'a, T: Copy = u8> where T: Into<u64> {
    #[cfg(x = "a: b")]
    pub one: &'a str, // two: u8
    two: fn(x: u8) -> [u8; 3],
    three: Option<(T, std::string::String)>,
}
#[derive(Serialize)]
#[serde(rename = "x")]
pub(super) struct Table { one: u8 }
struct Unit;
struct Pair(u8, u8);
fn outer(x: [u8; { 1 + 1 }]) -> char {
    let text = "}\"{"; let raw = r#"fn no() { "}"#; let c = '{'; let d = '\''; let e: &'static str = "";
    /* } */
    fn inner() {}
    '\u{7d}'
}
trait Without { fn body(&self); fn with(&self) { } }
"##;

#[test]
fn functions_are_found_with_their_lines() {
    let found = functions(&tokens(TEXT));
    let found: Vec<(&str, usize)> = found.iter().map(|part| (&*part.name, part.size)).collect();
    assert_eq!(found, [("outer", 6), ("inner", 1), ("with", 1)]);
}

#[test]
fn structs_are_found_with_their_fields() {
    let found = structs(&tokens(TEXT));
    let found: Vec<(&str, usize)> = found.iter().map(|part| (&*part.name, part.size)).collect();
    assert_eq!(found, [("Three", 3)]);
}

#[test]
fn examples_are_found_without_other_blocks() {
    let text = "//! ```text\n//! a ─▶ b\n//! ```\n//!\n//! ```\n//! use x;\n//!\n//! # hidden();\n//! ```\nfn f() {}\n    /// ```\n    /// g();\n";
    assert_eq!(examples(text), ["use x;\n\n# hidden();\n"]);
}
