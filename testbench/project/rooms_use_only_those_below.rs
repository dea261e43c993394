//! The front page of the crate draws which folder uses which: this holds the manifests of the workspace's members against it.
//!
//! Cargo refuses a `use` of what a manifest does not name, so the manifests say all.

use std::collections::BTreeSet;
use std::fs;

use crate::{read, root, source_text};

/// The members of the workspace, each with those that it may use, as the figure on the front page of the crate has them.
const ARROWS: [(&str, &[&str]); 24] = [
    (
        "cli",
        &[
            "study",
            "glossary",
            "scenario-interface",
            "reader",
            "workload",
            "armed-interface",
            "pbv-interface",
            "fabric",
            "oracle",
            "arith",
            "kernel",
            "probe",
            "files",
        ],
    ),
    (
        "study",
        &["scenario-interface", "workload", "pbv-interface", "fabric", "oracle", "arith", "kernel", "probe", "files"],
    ),
    ("glossary", &["reader"]),
    (
        "scenario",
        &[
            "scenario-interface",
            "reader",
            "workload",
            "mixed",
            "piuma",
            "armed",
            "armed-interface",
            "pbv",
            "fabric",
            "oracle",
            "arith",
            "kernel",
            "probe",
            "state",
        ],
    ),
    (
        "scenario/interface",
        &[
            "reader",
            "workload",
            "piuma-interface",
            "armed-interface",
            "fabric",
            "oracle",
            "arith",
            "kernel",
            "probe",
            "files",
            "state",
        ],
    ),
    (
        "reader",
        &[
            "language",
            "operands",
            "workload",
            "mixed-interface",
            "piuma-interface",
            "armed-interface",
            "pbv-interface",
            "fabric",
            "arith",
            "probe",
            "files",
            "state",
        ],
    ),
    ("language", &["operands", "workload", "pbv-interface", "fabric", "arith"]),
    ("operands", &["arith"]),
    ("mixed", &["mixed-interface", "piuma", "armed", "pbv", "fabric", "kernel", "probe", "state"]),
    ("mixed/interface", &["piuma-interface", "fabric"]),
    ("workload", &[]),
    ("piuma", &["piuma-interface", "fabric", "oracle", "arith", "kernel", "probe", "state"]),
    ("piuma/interface", &["arith", "state"]),
    ("armed", &["armed-interface", "fabric", "arith", "kernel", "probe", "state"]),
    ("armed/interface", &["fabric", "arith", "state"]),
    ("pbv", &["pbv-interface", "fabric", "arith", "kernel", "probe", "state"]),
    ("pbv/interface", &["arith", "state"]),
    ("fabric", &["arith", "kernel", "probe", "state"]),
    ("oracle", &["arith", "state"]),
    ("arith", &["state"]),
    ("kernel", &["state"]),
    // What derives its traits, inside its folder.
    ("state", &["state-derive"]),
    ("probe", &["files"]),
    ("files", &[]),
];

/// What is no member: pages of the documentation of the whole, and SystemVerilog.
const NO_MEMBERS: [&str; 2] = ["guide", "rtl"];

/// The members that a member's manifest names, without those for its tests.
fn named(room: &str) -> BTreeSet<String> {
    let manifest: toml::Table = toml::from_str(&read(&format!("src/{room}/Cargo.toml"))).unwrap();
    let members = manifest.get("dependencies").and_then(|table| table.as_table());
    members.into_iter().flatten().filter_map(|(name, _)| name.strip_prefix("watershed-")).map(str::to_owned).collect()
}

#[test]
fn a_member_names_those_below_it() {
    for (room, may) in ARROWS {
        let may: BTreeSet<String> = may.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(named(room), may, "{room}: the manifest and the figure differ");
    }
}

/// Nothing is named that no line uses: an arrow that is drawn is there.
#[test]
fn every_arrow_is_used() {
    for (room, may) in ARROWS {
        let mut text = String::new();
        for path in source_text::room(&root().join("src").join(room)) {
            text += &fs::read_to_string(path).unwrap();
        }
        for name in may {
            let word = format!("watershed_{}", name.replace('-', "_"));
            let uses = |rest: &str| !rest.starts_with(|next: char| next == '_' || next.is_alphanumeric());
            assert!(text.split(&word).skip(1).any(uses), "{room} names {name} and does not use it");
        }
    }
}

/// Every folder of `src` is a member and drawn.
#[test]
fn every_folder_is_a_member() {
    let drawn: BTreeSet<String> = ARROWS.iter().map(|(room, _)| (*room).to_owned()).collect();
    let folders =
        fs::read_dir(root().join("src")).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let names = folders.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    let rooms = names.filter(|name| !NO_MEMBERS.contains(&name.as_str()));
    let with_interface = |name: String| {
        let interface = format!("{name}/interface");
        let is_there = root().join("src").join(&interface).is_dir();
        [Some(name), is_there.then_some(interface)].into_iter().flatten()
    };
    let there: BTreeSet<String> = rooms.flat_map(with_interface).collect();
    assert_eq!(there, drawn);
    let manifest: toml::Table = toml::from_str(&read("Cargo.toml")).unwrap();
    let listed = |key: &str| -> Vec<String> {
        let list = manifest["workspace"][key].as_array().unwrap().iter();
        list.map(|path| path.as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(listed("members"), ["src/*", "src/*/interface"]);
    assert_eq!(listed("default-members"), [".", "src/*", "src/*/interface", "src/state/derive"]);
    assert_eq!(listed("exclude"), NO_MEMBERS.map(|name| format!("src/{name}")));
}
