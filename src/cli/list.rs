//! `watershed list`: the scenarios that come with the program.

use std::fmt::Write;

use clap::Args;
use serde::Serialize;

use super::{Exit, print, print_error};
use watershed_scenario_interface::inherit;
use watershed_scenario_interface::shipped::{SHIPPED, stem};

/// List the scenarios that come with the program.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  watershed list
  watershed list --json | jq -r '.[].name'")]
pub(super) struct Arguments {
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Entry {
    name: String,
    path: String,
    family: String,
    about: String,
}

/// The shipped scenarios with what they say about themselves; the ones that do not parse are reported.
fn entries() -> (Vec<Entry>, Vec<String>) {
    let mut entries = Vec::new();
    let mut errors = Vec::new();
    for (path, text) in SHIPPED {
        match toml::from_str::<toml::Table>(text) {
            Ok(table) => {
                let word = |key: &str| inherit::word(path, &table, key).unwrap_or_default();
                entries.push(Entry {
                    name: stem(path).to_owned(),
                    path: (*path).to_owned(),
                    // Without one its jobs say who does them.
                    family: Some(word("family")).filter(|family| !family.is_empty()).unwrap_or("any".into()),
                    about: word("about"),
                });
            }
            Err(error) => errors.push(format!("error: {path}: {}", error.message())),
        }
    }
    // Families in the order of their first scenario.
    let families: Vec<String> = entries.iter().map(|entry: &Entry| entry.family.clone()).collect();
    entries.sort_by_key(|entry| families.iter().position(|family| *family == entry.family));
    (entries, errors)
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    let (entries, errors) = entries();
    if arguments.json {
        print(&serde_json::to_string_pretty(&entries).unwrap_or_default());
    } else {
        let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
        let mut text = String::new();
        let mut family = "";
        for entry in &entries {
            if entry.family != family {
                if !family.is_empty() {
                    text.push('\n');
                }
                family = &entry.family;
                text.push_str(family);
                text.push('\n');
            }
            let _ = writeln!(text, "  {:width$}  {}", entry.name, entry.about);
        }
        text.push_str(&super::invocation::text("\nRun one with `watershed run NAME`.\n"));
        print(&text);
    }
    for error in &errors {
        print_error(error);
    }
    if errors.is_empty() { Exit::Fine } else { Exit::Bad }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_scenario_has_a_sentence_and_a_name_of_its_own() {
        let (entries, errors) = entries();
        assert_eq!(errors, [""; 0]);
        let mut names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), entries.len(), "two scenarios have the same file name");
        for entry in &entries {
            assert!(entry.about.ends_with('.'), "{}", entry.path);
            assert!(watershed_scenario_interface::shipped::find(&entry.name).is_some());
        }
    }
}
