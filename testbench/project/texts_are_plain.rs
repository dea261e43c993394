//! What users read is plain technical English: no phrase that an engineer reads twice, no sentence that is a paragraph.
//!
//! Held are the README, the book, the glossary, the help of every command, error messages, the descriptions of keys, the
//! documentation of all sources, the headers of the SystemVerilog modules, and the comments of all scenarios.

use std::fs;
use std::process::Command;

use crate::{read, root, source_text};

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

/// Phrases that were found in the documentation of sources and in scenarios; pages may use these words in other senses.
const PHRASES_OF_SOURCES: [(&str, &str); 15] = [
    ("somebody", "name the block, the caller or the user"),
    ("everybody", "all participants, every member"),
    ("what came of", "the outcome of"),
    ("what comes of", "the outcome of"),
    ("what became of", "the fate of, the outcome of"),
    ("at the door", "at the input"),
    ("autopsy", "report"),
    ("passage", "crossbar input"),
    ("draw of chance", "random draw"),
    ("depend on chance", "depend on the random draw"),
    (" barks", "reports a deadlock"),
    ("the house", "the code, the layers"),
    ("nobody looks at", "no waveform shows, nothing reads"),
    ("who waits for whom", "the wait-for graph"),
    ("a lone one", "an operand without a partner"),
];

/// Words of a sentence of the README, the book, the documentation of sources, and a scenario's comments.
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

/// The comments of a text that begin with one of the marks, without it: each with the number of its first line.
fn comments(text: &str, marks: &[&str]) -> Vec<(usize, String)> {
    let (mut found, mut open): (Vec<(usize, String)>, bool) = (Vec::new(), false);
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let Some(body) = marks.iter().find_map(|mark| line.strip_prefix(mark)) else {
            open = false;
            continue;
        };
        if !open {
            found.push((at + 1, String::new()));
        }
        open = true;
        let last = &mut found.last_mut().expect("one is open").1;
        *last += body.strip_prefix(' ').unwrap_or(body);
        last.push('\n');
    }
    found
}

/// Documentation of sources, headers of SystemVerilog modules, and comments of scenarios, each with its file and line.
fn comments_of_files() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for (folder, ending, marks) in
        [("src", "rs", &["//!", "///"][..]), ("src/rtl", "sv", &["//"]), ("testbench", "toml", &["#"])]
    {
        for path in source_text::files_of(&root().join(folder), ending) {
            let name = path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
            let comments = comments(&fs::read_to_string(&path).unwrap(), marks);
            texts.extend(comments.into_iter().map(|(line, text)| (format!("{name}:{line}"), text)));
        }
    }
    assert!(texts.len() > 5_000, "{} comments", texts.len());
    texts
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

/// Each phrase of a list that a text has, with what is before it and the plain form.
fn found(name: &str, text: &str, phrases: &[(&str, &str)]) -> Vec<String> {
    let text = flat(text);
    let around =
        |at: usize| text[..at].chars().rev().take(40).collect::<Vec<_>>().into_iter().rev().collect::<String>();
    let hit = |(phrase, plain): &(&str, &str)| {
        text.find(phrase).map(|at| format!("{name}: …{}{phrase}…: {plain}", around(at)))
    };
    phrases.iter().filter_map(hit).collect()
}

/// The sentences of a text that have too many words.
fn too_long(name: &str, text: &str) -> Vec<String> {
    let words = |sentence: &String| sentence.split_whitespace().count();
    let long = sentences(text).into_iter().filter(|sentence| words(sentence) > MOST_WORDS);
    long.map(|sentence| format!("{name}: {} words: {sentence}", words(&sentence))).collect()
}

#[test]
fn texts_have_no_phrase_that_is_read_twice() {
    let wrong: Vec<String> = texts().iter().flat_map(|(name, text)| found(name, text, &PHRASES)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn sources_and_scenarios_have_no_such_phrase() {
    let phrases = [&PHRASES[..], &PHRASES_OF_SOURCES].concat();
    let wrong: Vec<String> = comments_of_files().iter().flat_map(|(name, text)| found(name, text, &phrases)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn sentences_of_sources_and_scenarios_end() {
    // Headers of SystemVerilog modules are tables of ports and parameters.
    let wrong: Vec<String> = comments_of_files()
        .iter()
        .filter(|(name, _)| !name.contains(".sv:"))
        .flat_map(|(name, text)| too_long(name, text))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_comment_is_found_with_its_phrase_and_its_length() {
    let source = "//! One\n//! passage.\n\nfn a() {} // at the door\n    /// Two.\n# no mark\n";
    let found_here = comments(source, &["//!", "///"]);
    assert_eq!(found_here, [(1, "One\npassage.\n".to_owned()), (5, "Two.\n".to_owned())]);
    assert_eq!(found("a", &found_here[0].1, &PHRASES_OF_SOURCES), ["a: …one passage…: crossbar input"]);
    assert_eq!(too_long("a", &"word ".repeat(MOST_WORDS)), Vec::<String>::new());
    assert_eq!(too_long("a", &"word ".repeat(MOST_WORDS + 1)).len(), 1);
}

#[test]
fn sentences_of_the_book_end() {
    let mut wrong = Vec::new();
    for (name, text) in texts() {
        let is_page = name == "README.md" || name.starts_with("src/guide/pages/");
        // These two are generated: a sentence there is a description of a key or of a word.
        if is_page && !name.ends_with("language.md") && !name.ends_with("statistics.md") {
            wrong.extend(too_long(&name, &text));
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
