//! What the words mean that the program prints: the tables of the crate's front page, for `watershed explain`.
//!
//! | table | holds |
//! |---|---|
//! | `words.md` | the model's terms |
//! | `printed.md` | what summaries, `why` and points.csv print |
//! | `kinds.md` | what the cycles of a latency went to, in `why` (`why` of scenarios) |
//!
//! The same files are the documentation, so there is one text of each.

use watershed_reader::names::nearest;

const TABLES: [(&str, &str); 3] = [
    ("Words of the model", include_str!("words.md")),
    ("What is printed", include_str!("printed.md")),
    ("What cycles go to, in `why`: the cycles in which", include_str!("kinds.md")),
];

/// An entry of the glossary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Which table it stands in: its title.
    pub table: &'static str,
    /// The terms, separated by commas.
    pub terms: &'static str,
    /// What they mean.
    pub meaning: &'static str,
}

impl Entry {
    /// Its terms, one by one.
    pub fn each(&self) -> impl Iterator<Item = &'static str> {
        self.terms.split(", ")
    }

    /// Whether a word or a phrase is one of its terms. Case, dashes and the plural do not matter.
    pub fn is_about(&self, word: &str) -> bool {
        let wanted = folded(word);
        let hits = |term: &str| {
            let term = folded(term);
            term == wanted || format!("{term}s") == wanted || format!("{wanted}s") == term
        };
        self.each().any(hits) || self.is_a_family_of(word)
    }

    /// Names that are many: ports, levels of trees, switches.
    fn is_a_family_of(&self, word: &str) -> bool {
        let like = |first: &str| {
            let letters = |text: &str| -> String { text.chars().filter(|c| !c.is_ascii_digit()).collect() };
            let counts = |text: &str| text.bytes().any(|byte| byte.is_ascii_digit());
            let named = word.starts_with(|c: char| c.is_alphabetic());
            named && counts(first) && counts(word) && letters(first).eq_ignore_ascii_case(&letters(word))
        };
        self.each().any(|term| like(term.split(' ').next().unwrap_or(term)))
    }
}

fn folded(text: &str) -> String {
    text.to_lowercase().replace(['-', '_'], " ")
}

/// All entries, table by table.
pub fn entries() -> impl Iterator<Item = Entry> {
    TABLES.into_iter().flat_map(|(table, text)| {
        // The first two lines are the head of the table.
        text.lines().skip(2).filter_map(move |line| {
            let (terms, meaning) = line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | ")?;
            Some(Entry { table, terms, meaning })
        })
    })
}

/// The entries about a whole term.
pub fn entries_about(term: &str) -> Vec<Entry> {
    entries().filter(|entry| !term.is_empty() && entry.is_about(term)).collect()
}

/// The entries about a term, or about the words of a phrase: "P7 1 earlier" is two.
pub fn find(term: &str) -> Vec<Entry> {
    let punctuation = |c: char| !c.is_alphanumeric() && c != '_' && c != '-';
    let whole = entries_about(term.trim_matches(punctuation));
    if !whole.is_empty() {
        return whole;
    }
    let words: Vec<&str> = term.split(' ').map(|word| word.trim_matches(punctuation)).collect();
    // The longest phrases that mean something, from the left.
    let mut found: Vec<Entry> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let known = (at + 1..=words.len()).rev().find_map(|end| {
            let phrase = words[at..end].join(" ");
            let about = entries_about(&phrase);
            (!about.is_empty()).then_some((end, about))
        });
        let Some((end, about)) = known else {
            at += 1;
            continue;
        };
        found.extend(about.into_iter().filter(|entry| !found.contains(entry)).collect::<Vec<_>>());
        at = end;
    }
    found
}

/// The term that is spelt most like what was asked for.
pub fn nearest_term(term: &str) -> Option<String> {
    let all: Vec<&str> = entries().flat_map(|entry| entry.each().collect::<Vec<_>>()).collect();
    nearest(term, all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_arith::{Flags, ResultCode};
    use watershed_scenario::hosts::file::HostAlgorithm;
    use watershed_scenario::why::{Kind, Phase};
    use watershed_study::sweep::table::{BUILT_IN, FIXED};

    fn terms(query: &str) -> Vec<&'static str> {
        find(query).iter().map(|entry| entry.terms).collect()
    }

    #[test]
    fn every_line_of_the_tables_is_an_entry() {
        for (title, text) in TABLES {
            let lines = text.lines().count() - 2;
            assert_eq!(entries().filter(|entry| entry.table == title).count(), lines, "{title}");
        }
    }

    #[test]
    fn terms_are_found_as_they_are_printed() {
        for (query, expected) in [
            ("CENG", "CENG"),
            ("ceng", "CENG"),
            ("P7", "P0 to P10"),
            ("p10", "P0 to P10"),
            ("sw4", "core0, sw4"),
            ("head-wait cycles", "head-wait cycle, head_wait_cycles"),
            ("head_wait_cycles", "head-wait cycle, head_wait_cycles"),
            ("intra-tile", "intra-tile"),
            ("level3", "level1, level2"),
            ("level2-3", "level0-1, level1-2"),
            ("merged first:", "merged first"),
            ("bit exact", "bit-exact"),
            ("rabenseifner", "recursive-doubling, ring, rabenseifner, binary-tree, send-loop"),
        ] {
            assert!(terms(query).contains(&expected), "{query}: {:?}", terms(query));
        }
        assert_eq!(terms("sw7 1 earlier"), ["core0, sw4", "too, earlier"]);
        assert_eq!(terms("held up"), ["held up"]);
        assert_eq!(terms("nonsense"), Vec::<&str>::new());
        assert_eq!(nearest_term("CENGG").as_deref(), Some("CENG"));
    }

    #[test]
    fn everything_that_has_a_list_of_names_is_explained() {
        let kinds = Kind::ALL.map(Kind::name).to_vec();
        let phases = Phase::ALL.map(Phase::name).to_vec();
        let codes = ResultCode::ALL.iter().map(|code| code.name()).collect();
        let flags = Flags::from_bits(u8::MAX).names().collect();
        let algorithms = [
            HostAlgorithm::RecursiveDoubling,
            HostAlgorithm::Ring,
            HostAlgorithm::Rabenseifner,
            HostAlgorithm::BinaryTree,
            HostAlgorithm::SendLoop,
        ];
        let algorithms = algorithms.map(HostAlgorithm::name).to_vec();
        for name in [kinds, phases, codes, flags, algorithms, BUILT_IN.to_vec(), FIXED.to_vec()].concat() {
            assert!(entries().any(|entry| entry.is_about(name)), "{name} is in no table");
        }
    }
}
