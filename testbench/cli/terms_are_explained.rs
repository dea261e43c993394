//! Issue 8: what summaries and `why` print is in the glossary of the command line.

use std::collections::BTreeSet;
use std::fs;

use watershed::glossary::{entries, find};

use crate::support::{files, root, watershed};

/// Words of summaries that need no explanation beyond a dictionary's.
const PLAIN: &str = "
    account after answer arrived average before branching busiest contribution contributions cores cycle each element elements
    end endpoint engine entries every file first free full group groups handled last least lost more most multicast
    network nodes none nothing once ones others over participants points programs received refused reported result results
    rounds same seconds sent shape software switches table tell them these time torus tile tiles trees tree values
    what with within without word words from like line mesh message messages other packets passed core apart entry
    below dragonfly socket sockets retry detected queue each half sure gave right yes the and all only
    finished not ones replies moves any more done was reached asked anymore descriptor leaked empty lost time-outs
    joined work
";

/// Summaries in golden/.
fn summaries() -> Vec<String> {
    ["piuma", "armed", "pbv", "fabric"]
        .iter()
        .flat_map(|family| files(&format!("golden/{family}"), "snap"))
        .filter(|path| path.to_string_lossy().ends_with(".summary.snap"))
        .map(|path| fs::read_to_string(path).unwrap().splitn(3, "---").nth(2).unwrap().to_owned())
        .collect()
}

#[test]
fn every_word_of_the_summaries_is_explained_or_plain() {
    let summaries = summaries();
    assert!(summaries.len() > 60);
    let plain: BTreeSet<&str> = PLAIN.split_whitespace().collect();
    let terms: BTreeSet<String> = entries()
        .flat_map(|entry| entry.each().collect::<Vec<_>>())
        .flat_map(|term| term.split(' ').map(str::to_lowercase).collect::<Vec<_>>())
        .collect();
    let known = |word: &str| {
        let word = word.to_lowercase();
        let one = word.strip_suffix('s').unwrap_or(&word);
        plain.contains(word.as_str()) || terms.contains(&word) || terms.contains(one) || !find(&word).is_empty()
    };
    let mut unknown: BTreeSet<String> = BTreeSet::new();
    for summary in &summaries {
        // Behind the column of labels, which has names of the scenario's own.
        for line in summary.lines().filter_map(|line| line.get(14..)) {
            // A label that is too long for its column goes on to the first space.
            let line = line.split_once(' ').map_or("", |(_, text)| text);
            let words = line.split(|c: char| c.is_whitespace() || "(),:;".contains(c));
            // Names of switches and hexadecimal numbers have digits or dots.
            let words = words
                .filter(|word| word.len() > 3 && !word.contains(|c: char| c.is_ascii_digit() || ".…#%".contains(c)));
            unknown.extend(words.filter(|word| !known(word)).map(str::to_owned));
        }
    }
    assert!(unknown.is_empty(), "neither in src/glossary nor plain: {unknown:?}");
}

/// Words of other commands that need none either.
const PLAIN_OF_COMMANDS: &str = "
    across address addressed alone along are arrives backward between board both but bytes came circle clock communicates comparators copies data
    devices direction entrance exit family for forward included join joins lead longest made make management maximum one operations own packet pair passes pins prints
    programmed ready receives routing run running select sending shares such that those thresholds top tracked two-input use way ways
    where which --wave
";

/// Capitals that need no explanation to an engineer, and what messages write large for emphasis.
const CAPITALS: &str = "MHz GHz GiB MiB KiB ADD NOT CHECK FAILED WRONG NO";

/// A shipped scenario of each family, one of nodes, a workload, and engines that others do not have beside them.
const FEW: [&str; 6] = ["fig3-node", "fig2-tree", "fig7-barrier", "file-ring", "goal-mesh", "several-engines"];

/// Everything that commands print about the shipped scenarios of all families: `run`, `why`, `check`, `cost`, `topology`, `embed`.
fn printed(least: usize, is_asked: impl Fn(&str) -> bool) -> String {
    let list = watershed(["list", "--json"]).stdout;
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let names = list.as_array().unwrap().iter().map(|scenario| scenario["name"].as_str().unwrap());
    let names: Vec<&str> = names.filter(|name| is_asked(name)).collect();
    assert!(names.len() >= least, "{names:?}");
    let folder = tempfile::tempdir().unwrap();
    let mut all = summaries().concat();
    for name in &names {
        for command in ["check", "cost", "topology", "embed"] {
            // Not every family has all of them.
            all += &watershed([command, name]).stdout;
        }
        let result = folder.path().join(format!("{name}.json"));
        let out = folder.path().to_str().unwrap();
        all += &watershed(["run", name, "--no-checks", "--out", out]).stdout;
        all += &watershed(["why", result.to_str().unwrap()]).stdout;
    }
    all
}

/// Whether `explain` knows a word, by itself or as a part of a term.
fn explained(word: &str) -> bool {
    let word = word.to_lowercase();
    let part = |entry: watershed::glossary::Entry| {
        entry.each().flat_map(|term| term.split(' ').map(str::to_lowercase).collect::<Vec<_>>()).any(|of| {
            of == word || word.strip_suffix('s').is_some_and(|one| of == one) || of.strip_suffix('s') == Some(&word)
        })
    };
    !find(&word).is_empty() || entries().any(part)
}

#[test]
fn every_word_that_commands_print_is_explained_or_plain() {
    words_are_explained(FEW.len(), |name| FEW.contains(&name));
}

#[test]
#[ignore = "takes a minute: make soak"]
fn every_word_about_all_scenarios_is_explained_or_plain() {
    words_are_explained(64, |name| !name.contains("16384"));
}

/// What commands print about scenarios that are asked for; there are `least` of them or more.
fn words_are_explained(least: usize, is_asked: impl Fn(&str) -> bool) {
    let printed = printed(least, is_asked);
    let plain: BTreeSet<&str> = PLAIN.split_whitespace().chain(PLAIN_OF_COMMANDS.split_whitespace()).collect();
    // Names that scenarios give are their own.
    let folders = ["any", "armed", "fabric", "jobs", "mixed", "pbv", "piuma", "workload"];
    let named: BTreeSet<String> = folders
        .iter()
        .filter(|folder| root().join("testbench").join(folder).exists())
        .flat_map(|folder| files(&format!("testbench/{folder}"), "toml"))
        .flat_map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let names = text.lines().filter_map(|line| line.strip_prefix("name = \"")?.split('"').next());
            names
                .map(str::to_owned)
                .chain([path.file_stem().unwrap().to_string_lossy().into_owned()])
                .collect::<Vec<_>>()
        })
        .collect();
    let names: BTreeSet<&str> = named.iter().flat_map(|name| name.split([' ', '-'])).collect();
    let letters = |word: &&str| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
    // Paths and commands that are printed are no words.
    let lines = printed.lines().filter(|line| !line.contains("watershed ") && !line.contains('/'));
    let words: BTreeSet<&str> = lines
        .flat_map(|line| line.split(|c: char| c.is_whitespace() || "(),:;=".contains(c)))
        .map(|word| word.trim_matches(|c: char| "\"'`.".contains(c)))
        .filter(letters)
        .collect();
    let unknown: Vec<&&str> = words
        .iter()
        .filter(|word| !named.contains(**word) && !names.contains(**word))
        .filter(|word| !plain.contains(word.to_lowercase().as_str()) && !CAPITALS.split(' ').any(|of| of == **word))
        .filter(|word| !explained(word))
        .collect();
    assert!(
        words.len() > 300 && unknown.is_empty(),
        "{} words, neither in src/glossary nor plain: {unknown:?}",
        words.len()
    );
    abbreviations_are_explained(&printed);
}

fn abbreviations_are_explained(printed: &str) {
    for word in ["CENG", "HSIO", "PBV"] {
        assert!(printed.contains(word), "{word} is printed no more: does this test see what commands print?");
    }
    // Names in lower case, with digits or dots are those of scenarios and switches.
    let words = printed.split(|c: char| !(c.is_alphanumeric() || "._".contains(c)));
    let capital = |word: &&str| word.chars().filter(char::is_ascii_uppercase).count() > 1;
    let named = |word: &&str| word.contains(|c: char| c.is_ascii_digit() || c == '.');
    let mut words: BTreeSet<&str> = words.filter(|word| capital(word) && !named(word)).collect();
    // Of messages, programs and waves rather than of the shipped scenarios' pages.
    words.extend(["PIUMA", "CCE", "MTP", "STP", "MSR", "MSRs", "ICU", "VC", "VCs"]);
    let plain: BTreeSet<&str> = CAPITALS.split_whitespace().collect();
    let explained = |word: &str| entries().any(|entry| entry.is_about(word));
    let unknown: Vec<&str> = words.into_iter().filter(|word| !plain.contains(word) && !explained(word)).collect();
    assert!(unknown.is_empty(), "not in src/glossary: {unknown:?}");
}

#[test]
fn every_row_of_cost_is_explained() {
    let mut rows: BTreeSet<String> = BTreeSet::new();
    for name in ["allreduce-die", "fig4-late-leaf", "fig7-barrier", "mesh-uniform"] {
        let table = watershed(["cost", name]).stdout;
        // The first line is the scenario's, the second the head of the columns.
        let labels = table.lines().skip(2).filter_map(|line| line.split_once("  ")).map(|(label, _)| label.to_owned());
        rows.extend(labels.filter(|label| !["a switch", "all"].contains(&label.as_str())));
    }
    assert!(rows.len() > 12, "{rows:?}");
    let unknown: Vec<&String> = rows.iter().filter(|row| !entries().any(|entry| entry.is_about(row))).collect();
    assert!(unknown.is_empty(), "not in src/glossary: {unknown:?}");
}

#[test]
fn checks_levels_and_outcomes_of_all_golden_documents_are_explained() {
    let mut names: BTreeSet<String> = BTreeSet::new();
    for path in ["piuma", "armed", "pbv", "fabric"].iter().flat_map(|family| files(&format!("golden/{family}"), "json"))
    {
        let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let list = |value: &serde_json::Value, key: &str| -> Vec<String> {
            let items = value.as_array().into_iter().flatten();
            items.map(|item| item[key].as_str().unwrap().to_owned()).collect()
        };
        names.extend(list(&json["checks"], "name").into_iter().map(|name| name.split(": ").next().unwrap().to_owned()));
        // Levels that a topology file names are its own.
        let own = json["config"]["topology"]["shape"].to_string().contains("file")
            || json["config"].to_string().contains("topology.toml");
        names.extend(list(&json["links"]["levels"], "level").into_iter().filter(|_| !own));
        for reduction in json["armed"]["reductions"].as_array().into_iter().flatten() {
            names.extend(list(&reduction["listed_rounds"], "outcome"));
            names.extend(list(&reduction["listed_rounds"], "code"));
        }
    }
    assert!(names.len() > 20, "{names:?}");
    let unknown: Vec<&String> = names.iter().filter(|name| !entries().any(|entry| entry.is_about(name))).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn a_term_is_explained_on_the_command_line() {
    let output = watershed(["explain", "P7", "1", "earlier"]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    let told = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("P7 to the core of this switch") && told.contains("came last"), "{}", output.stdout);
    assert!(output.stdout.lines().all(|line| line.chars().count() <= 100), "{}", output.stdout);
    let all = watershed(["explain"]).stdout;
    assert!(entries().all(|entry| all.contains(entry.terms)));
    let output = watershed(["explain", "meged first"]);
    assert_eq!((output.status, output.stdout.as_str()), (2, ""));
    assert!(output.stderr.contains("did you mean `merged first`?"), "{}", output.stderr);
    let output = watershed(["explain", "CENGG"]);
    assert_eq!(output.status, 2);
    assert!(output.stderr.contains("did you mean `CENG`?"), "{}", output.stderr);
    assert!(watershed(["--help"]).stdout.contains("watershed explain"));
    assert!(fs::read_to_string(root().join("README.md")).unwrap().contains("watershed explain"));
}

#[test]
fn what_sweeps_and_reports_show_is_explained() {
    for (term, word) in [("Pareto front", "objective"), ("objective", "points.csv"), ("sensitivity", "axis")] {
        let output = watershed(["explain", term]);
        assert_eq!(output.status, 0, "{term}: {}", output.stderr);
        assert!(output.stdout.starts_with(term) && output.stdout.contains(word), "{term}: {}", output.stdout);
    }
}
