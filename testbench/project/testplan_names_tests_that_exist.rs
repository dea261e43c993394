//! `testbench/testplan.toml` maps requirements to tests. Each test it names is looked up in the sources: names are those of
//! `make plan`, the target and the test with a space between them:
//!
//! | name | where |
//! |---|---|
//! | `watershed arith::adder::tests::adds` | a unit test of the library |
//! | `watershed::cli usage::help` | a test of the target `cli`, in `testbench/cli` |
//! | `watershed::golden piuma/allreduce-die` | a scenario, in `testbench/piuma` |

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::{read, root};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    item: Vec<Item>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    id: String,
    status: Status,
    #[serde(default)]
    tests: Vec<String>,
    #[serde(default)]
    note: String,
}

#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Status {
    Done,
    Partly,
    Open,
}

fn plan() -> Plan {
    toml::from_str(&read("testbench/testplan.toml")).unwrap_or_else(|error| panic!("testplan.toml: {error}"))
}

/// Whether the sources have this test.
fn exists(name: &str) -> Result<(), String> {
    let (target, test) = name.split_once(' ').ok_or("a name is TARGET TEST, as `make plan` prints it")?;
    let (folder, top) = if let Some(room) = target.strip_prefix("watershed-") {
        // A family's interface is a member of its own, in the family's folder.
        let folder = room.strip_suffix("-interface").map_or_else(|| room.to_owned(), |of| format!("{of}/interface"));
        (root().join("src").join(folder), "lib.rs")
    } else {
        let target = target.strip_prefix("watershed::").ok_or("a target is `watershed-ROOM` or `watershed::NAME`")?;
        (root().join("testbench").join(target), "main.rs")
    };
    if target == "watershed::golden" && !test.contains("::") {
        let scenario = root().join("testbench").join(format!("{test}.toml"));
        return if scenario.exists() || defines(&folder.join(top), test) {
            Ok(())
        } else {
            Err("no such scenario".into())
        };
    }
    let mut segments: Vec<&str> = test.split("::").collect();
    let function = segments.pop().unwrap_or_default();
    let file = file_of(&folder, top, &mut segments);
    let source = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    for module in segments {
        if !source.contains(&format!("mod {module} ")) {
            return Err(format!("{} has no module {module}", file.display()));
        }
    }
    if defines(&file, function) { Ok(()) } else { Err(format!("{} has no test {function}", file.display())) }
}

/// Follows module names to files as far as there are files; what is left are modules inside the last one.
fn file_of(folder: &Path, top: &str, segments: &mut Vec<&str>) -> PathBuf {
    let (mut folder, mut file) = (folder.to_owned(), folder.join(top));
    while let Some(&first) = segments.first() {
        let inside = folder.join(first);
        let candidates = [folder.join(format!("{first}.rs")), inside.join("mod.rs")];
        let Some(found) = candidates.into_iter().find(|path| path.exists()) else { break };
        (folder, file) = (inside, found);
        segments.remove(0);
    }
    file
}

/// Whether a file has a function of this name. (Whether it is a test is for its author to see: tests made by macros have
/// no attribute of their own.)
fn defines(file: &Path, function: &str) -> bool {
    let source = fs::read_to_string(file).unwrap_or_default();
    ["(", "<"].iter().any(|end| source.contains(&format!("fn {function}{end}")))
}

#[test]
fn every_named_test_is_there() {
    let lost: Vec<String> = plan()
        .item
        .iter()
        .flat_map(|item| item.tests.iter().map(move |test| (item, test)))
        .filter_map(|(item, test)| exists(test).err().map(|why| format!("{}: {test}: {why}", item.id)))
        .collect();
    assert!(lost.is_empty(), "tests that the plan names but nobody has:\n{}", lost.join("\n"));
}

#[test]
fn nothing_is_done_without_a_test_nor_open_without_a_note() {
    let mut seen = HashSet::new();
    for item in plan().item {
        assert!(seen.insert(item.id.clone()), "{} stands twice in the plan", item.id);
        match item.status {
            Status::Done => assert!(!item.tests.is_empty(), "{} is done without a test", item.id),
            Status::Partly => assert!(!item.note.is_empty(), "{} does not say what is missing", item.id),
            Status::Open => assert!(item.tests.is_empty(), "{} is open but names tests", item.id),
        }
    }
}

#[test]
fn a_name_that_nobody_has_is_found_out() {
    assert_eq!(exists("watershed::project testplan_names_tests_that_exist::every_named_test_is_there"), Ok(()));
    assert_eq!(exists("watershed::golden piuma/allreduce-die"), Ok(()));
    assert_eq!(exists("watershed-cli tests::the_command_line_is_sound"), Ok(()));
    for wrong in [
        "every_named_test_is_there",
        "watershed::project every_named_test_is_there",
        "watershed::project testplan_names_tests_that_exist::every_other_test",
        "watershed::golden piuma/allreduce-dice",
        "watershed-cli no_tests::the_command_line_is_sound",
    ] {
        assert!(exists(wrong).is_err(), "{wrong}");
    }
}
