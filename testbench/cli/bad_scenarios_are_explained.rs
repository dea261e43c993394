//! C-ERR-1: each bad scenario ends with status 2 and an error that is a golden file.
//!
//! `WATERSHED_GOLDEN=accept` writes the goldens after printing what is different.

use std::fs;

use crate::share;
use crate::support::{files, root, stem, watershed};

/// Every third one in `make test`; all in `make soak`, and where errors are accepted.
#[test]
fn each_bad_scenario_has_its_golden_error() {
    let accept = std::env::var("WATERSHED_GOLDEN").is_ok_and(|word| word == "accept");
    let mut different = Vec::new();
    let scenarios = files("testbench/bad", "toml");
    assert!(scenarios.len() >= 20);
    for scenario in share::one_in(if accept { 1 } else { 3 }, scenarios) {
        let name = stem(&scenario);
        let golden = root().join("golden/errors").join(format!("{name}.txt"));
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        let output = watershed(["run", &format!("testbench/bad/{name}.toml")]);
        assert_eq!(output.status, 2, "{name}: {}{}", output.stdout, output.stderr);
        assert_eq!(output.stdout, "", "{name}");
        if output.stderr != expected {
            different.push(format!("--- {name}, expected\n{expected}--- {name}, found\n{}", output.stderr));
            if accept {
                fs::create_dir_all(golden.parent().unwrap()).unwrap();
                fs::write(&golden, &output.stderr).unwrap();
            }
        }
    }
    let different = different.join("\n");
    if accept {
        println!("{different}");
    } else {
        assert!(different.is_empty(), "{different}\n(accept with WATERSHED_GOLDEN=accept)");
    }
}

#[test]
fn no_golden_error_is_left_over() {
    let scenarios: Vec<String> = files("testbench/bad", "toml").iter().map(|path| stem(path)).collect();
    for golden in files("golden/errors", "txt") {
        assert!(scenarios.contains(&stem(&golden)), "{}", golden.display());
    }
}

#[test]
fn a_missing_scenario_is_named() {
    let output = watershed(["run", "testbench/piuma/nothing-here.toml"]);
    assert_eq!(output.status, 2);
    insta::assert_snapshot!(output.stderr, @"
    error: there is no such scenario file
     --> testbench/piuma/nothing-here.toml
      = help: `watershed list` shows the scenarios that come with the program
    ");
}

#[test]
fn a_misspelt_shipped_scenario_is_recognised() {
    let output = watershed(["run", "alreduce-die"]);
    assert_eq!(output.status, 2);
    insta::assert_snapshot!(output.stderr, @"
    error: there is no such scenario file
     --> alreduce-die
      = help: did you mean `allreduce-die`?
      = help: `watershed list` shows the scenarios that come with the program
    ");
}

#[test]
fn a_folder_and_binary_rubbish_are_no_scenarios() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(watershed(["check", folder.path().to_str().unwrap()]).status, 2);
    let file = folder.path().join("x.toml");
    fs::write(&file, b"name = \"a\"\n\xff\xfe").unwrap();
    let output = watershed(["check", file.to_str().unwrap()]);
    assert_eq!(output.status, 2);
    assert!(output.stderr.contains("not UTF-8 text, from line 2 on"), "{}", output.stderr);
}

/// A hint names the table that has the key, the nearest one first; where none is near, there is no hint.
#[test]
fn a_key_in_the_wrong_table_is_sent_to_the_right_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wrong.toml");
    for (table, key, hint) in [
        ("[[job]]\nelements = 4", "algorithm = 'ring'", "`algorithm` is a key of `job.software`"),
        ("[[job]]\nelements = 4", "packet_words = 4", "`packet_words` is a key of `job.software`"),
        ("[[job]]\nelements = 4", "reduction_ids = 4", "`reduction_ids` is a key of `job.armed`"),
        ("[[job]]\nelements = 4", "segments = 2", "`segments` is a key of `job.piuma`"),
        ("[[job]]\nelements = 4", "stages = 3", "`stages` is a key of `switch.ceng`, `armed.engine` or `pbv.engine`"),
        ("[[job]]\nelements = 4", "bandwidth = 3", "did you mean `bandwidth_gbps` in `memory`?"),
        ("[switch]", "stage = 4", "did you mean `stages` in `switch.ceng`?"),
        ("[switch]", "operand_slots = 4", "`operand_slots` is a key of `switch.ceng`"),
        ("[switch]", "frequency_mhz = 900", "`frequency_mhz` is a key of `clock`"),
        ("[link]", "width = 4", "did you mean `width_bits`?"),
        ("[link]", "bandwidth_gbps = 4", "`bandwidth_gbps` is a key of `memory`"),
        ("[core]", "colour = 4", ""),
        ("[topology]\nkind = 'mesh'\nsize = [2, 2]", "family = 'piuma'", "`family` is a key of the top level"),
    ] {
        let topology = if table.starts_with("[topology]") { "" } else { "[topology]\nkind = 'mesh'\nsize = [3, 3]\n" };
        fs::write(&path, format!("family = 'piuma'\n{topology}{table}\n{key}\n")).unwrap();
        let output = watershed(["check", path.to_str().unwrap()]);
        assert_eq!(output.status, 2, "{key}: {}", output.stdout);
        let problems: Vec<&str> = output.stderr.split("\n\n").filter(|one| one.contains("unknown key")).collect();
        assert_eq!(problems.len(), 1, "{key}: {}", output.stderr);
        let found = problems[0].lines().find_map(|line| line.trim().strip_prefix("= help: ")).unwrap_or_default();
        assert_eq!(found, hint, "{key} in {table}");
    }
}
