//! The state of blocks is written in a format that names no fields (X-CKPT-1), so a field that is left out when it is zero, or that stands
//! among those of its owner, would be read as another one.

use crate::root;
use crate::source_text::files;

/// Attributes of serde that leave fields out, move them, or need their names.
const UNFIT: [&str; 6] = ["skip_serializing", "skip_deserializing", "serde(skip", "flatten", "untagged", "serde(tag"];

/// Types that are never state: the table `[topology]`, and values of a document.
const NO_STATE: [&str; 2] = ["TopologyFile", "Parameter"];

/// Members whose types are state.
const CLOCKED: [&str; 8] = ["kernel", "arith", "oracle", "fabric", "piuma", "armed", "pbv", "mixed"];

/// The type that an attribute at a line belongs to: the one that follows, or the one whose field or variant does.
fn type_of(lines: &[&str], attribute: usize) -> Option<String> {
    let name = |line: &str| {
        let mut words = line
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .skip_while(|word| !["struct", "enum"].contains(word));
        words.nth(1).map(str::to_owned)
    };
    let is_code = |line: &&&str| !line.trim_start().starts_with("//");
    let follows = lines[attribute..].iter().filter(is_code).find(|line| !line.trim_start().starts_with('#'));
    follows
        .and_then(|line| name(line))
        .or_else(|| lines[..attribute].iter().rev().filter(is_code).find_map(|line| name(line)))
}

/// Lines of a text with an attribute that state cannot have.
fn unfit(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let attributes = lines.iter().enumerate().filter(|(_, line)| line.contains("serde("));
    let bad = attributes.filter(|(_, line)| UNFIT.iter().any(|word| line.contains(word)));
    bad.filter(|(number, _)| type_of(&lines, *number).is_none_or(|name| !NO_STATE.contains(&name.as_str())))
        .map(|(number, line)| format!("{}: {line}", number + 1))
        .collect()
}

#[test]
fn no_field_of_a_state_is_left_out() {
    let mut seen = 0;
    for member in CLOCKED {
        for path in files(&root().join("src").join(member)) {
            let text = std::fs::read_to_string(&path).unwrap();
            seen += text.lines().filter(|line| line.contains("derive(") && line.contains("Deserialize")).count();
            assert_eq!(unfit(&text), Vec::<String>::new(), "{}", path.display());
        }
    }
    assert!(seen > 200, "{seen} types are state");
}

#[test]
fn an_attribute_is_found_wherever_it_stands() {
    for (text, bad) in [
        ("#[serde(untagged)]\npub enum Queue {", true),
        ("#[serde(untagged)]\n// why\npub enum Parameter {", false),
        (
            "pub struct Queue {\n    /// A struct.\n    #[serde(skip_serializing_if = \"x\")]\n    pub flits: u8,\n}",
            true,
        ),
        (
            "pub struct TopologyFile {\n    #[serde(default, skip_serializing_if = \"x\")]\n    #[other]\n    pub size: u8,\n}",
            false,
        ),
        ("pub struct TopologyFile {\n}\nstruct Queue {\n    #[serde(flatten)]\n    of: u8,\n}", true),
        ("struct Queue {\n    #[serde(default)]\n    of: u8,\n}", false),
    ] {
        assert_eq!(!unfit(text).is_empty(), bad, "{text}");
    }
}
