//! What users read is plain technical English: no phrase that an engineer reads twice, no sentence that is a paragraph.
//!
//! Held are the README, the book, the glossary, the help of every command, error messages, and the descriptions of keys.

use std::fs;
use std::process::Command;

use crate::{read, root};

/// Phrases that were found in texts and have a plain form.
const PHRASES: [(&str, &str); 11] = [
    ("so many", "\"this many\", or a number with its unit"),
    ("by chance", "random, at random"),
    ("by way of", "over, through"),
    ("in the mean", "on average, mean"),
    ("its kin ", "name them"),
    ("somebody else", "say who, or what"),
    ("whoever", "say who"),
    ("beforehand", "before the run, first"),
    ("what came of", "the outcome of"),
    ("came of it", "the outcome"),
    ("help: there is a `", "name the table that has the key"),
];

/// Words of a sentence of the README and the book.
const MOST_WORDS: usize = 42;

/// A text with its name.
fn texts() -> Vec<(String, String)> {
    let mut texts: Vec<(String, String)> = Vec::new();
    let mut take = |folder: &str, ending: &str| {
        let mut paths: Vec<_> = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths.into_iter().filter(|path| path.extension().is_some_and(|of| of == ending)) {
            let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
            texts.push((name, fs::read_to_string(path).unwrap()));
        }
    };
    take("src/guide/pages", "md");
    take("src/glossary", "md");
    take("golden/errors", "txt");
    texts.push(("README.md".to_owned(), read("README.md")));
    texts.extend(helps());
    texts
}

/// The help of the program and of every command, as the manual pages have it.
fn helps() -> Vec<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_watershed");
    let status = Command::new(program).args(["man", "--out"]).arg(folder.path()).output().unwrap().status;
    assert!(status.success(), "the manual pages cannot be written");
    let mut pages: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    assert!(pages.len() > 25, "{} manual pages", pages.len());
    let named = |path: std::path::PathBuf| {
        (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(&path).unwrap())
    };
    pages.into_iter().map(named).collect()
}

/// A text in one line, in small letters: phrases may be wrapped.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Sentences of a page without blocks, tables, headings and definitions of links.
fn sentences(page: &str) -> Vec<String> {
    let (mut paragraphs, mut open) = (vec![String::new()], false);
    for line in page.lines() {
        let fence = line.starts_with("```");
        open ^= fence;
        let is_prose = !fence && !open && !line.trim().is_empty() && !line.starts_with(['|', '#', '<', '!']);
        let is_definition = line.starts_with('[') && line.contains("]: ");
        if !is_prose || is_definition {
            paragraphs.push(String::new());
            continue;
        }
        if line.starts_with("- ") || line.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok()) {
            paragraphs.push(String::new());
        }
        let last = paragraphs.last_mut().expect("there is one");
        *last += line.trim().trim_start_matches("- ");
        last.push(' ');
    }
    let mut sentences = Vec::new();
    for paragraph in paragraphs {
        let mut sentence = String::new();
        let mut words = paragraph.split_whitespace().peekable();
        while let Some(word) = words.next() {
            sentence += word;
            sentence.push(' ');
            let ends = word.trim_end_matches([')', '*', '"', '`']).ends_with(['.', '!', '?', ':', ';']);
            let begins = |next: &&str| next.starts_with(|c: char| c.is_uppercase() || "`*[\"(".contains(c));
            let strong = !word.ends_with([':', ';']);
            if ends && strong && words.peek().is_none_or(begins) {
                sentences.push(std::mem::take(&mut sentence));
            }
        }
        sentences.push(sentence);
    }
    sentences
}

#[test]
fn texts_have_no_phrase_that_is_read_twice() {
    let mut wrong = Vec::new();
    for (name, text) in texts() {
        let text = flat(&text);
        for (phrase, plain) in PHRASES {
            if let Some(at) = text.find(phrase) {
                let around: String = text[..at].chars().rev().take(40).collect::<Vec<_>>().into_iter().rev().collect();
                wrong.push(format!("{name}: …{around}{phrase}…: {plain}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn sentences_of_the_book_end() {
    let mut wrong = Vec::new();
    for (name, text) in texts() {
        let is_page = name == "README.md" || name.starts_with("src/guide/pages/");
        // These two are generated: a sentence there is a description of a key or of a word.
        if !is_page || name.ends_with("language.md") || name.ends_with("statistics.md") {
            continue;
        }
        for sentence in sentences(&text) {
            let words = sentence.split_whitespace().count();
            if words > MOST_WORDS {
                wrong.push(format!("{name}: {words} words: {sentence}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_long_sentence_is_found_and_a_list_is_none() {
    let page = "# A title\n\nOne, two\nthree. Four: five.\n\n- Six seven.\n- Eight.\n\n```text\nnot. This.\n```\n| a | b |\n[x]: y\n";
    let found: Vec<usize> =
        sentences(page).iter().map(|sentence| sentence.split_whitespace().count()).filter(|words| *words > 0).collect();
    assert_eq!(found, [3, 2, 2, 1]);
}
