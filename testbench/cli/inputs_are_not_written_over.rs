//! Outputs that are inputs, or each other, are refused before anything is touched.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;

use crate::support::root;

/// Every file of a folder and what is in it.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.insert(path.clone(), Vec::new());
            files.extend(contents(&path));
        } else {
            files.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    files
}

fn run(folder: &Path, command: &str) -> (Option<i32>, String, String) {
    let arguments = command.split(' ');
    let output =
        Command::new(env!("CARGO_BIN_EXE_watershed")).current_dir(folder).args(arguments).output().expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn what_is_read_is_not_written_over_and_no_file_is_written_twice() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let scenario = fs::read_to_string(root().join("testbench/piuma/barrier-die.toml")).unwrap();
    fs::write(folder.join("base.toml"), scenario).unwrap();
    fs::write(folder.join("a.toml"), "extends = \"base.toml\"\n").unwrap();
    fs::write(
        folder.join("s.toml"),
        "[[scenario]]\nfile = \"a.toml\"\n[[axis]]\nkey = \"switch.ceng.stages\"\nvalues = [2, 3]\n",
    )
    .unwrap();
    for (command, status) in [("run a.toml --out seg", 0), ("sweep s.toml --out o", 0)] {
        let (found, _, words) = run(folder, command);
        assert_eq!(found, Some(status), "{command}: {words}");
    }
    let before = contents(folder);
    for (command, words) in [
        ("report seg/a.json -o seg/a.json", "--out would write over seg/a.json, which is read"),
        ("report seg/a.json -o seg/../seg/a.json", "--out would write over"),
        ("report o -o o/sweep.jsonl", "--out would write over o/sweep.jsonl"),
        ("report seg/a.json o -o o/points.csv", "--out would write over o/points.csv"),
        ("sweep export o --parquet o/sweep.jsonl", "--parquet would write over o/sweep.jsonl"),
        ("sweep export o --parquet o/points.csv", "--parquet would write over o/points.csv"),
        ("run a.toml --wave a.toml", "--wave would write over a.toml"),
        ("run a.toml --wave base.toml", "--wave would write over base.toml"),
        ("run a.toml --ladder ./a.toml", "--ladder would write over ./a.toml"),
        ("run a.toml --save-npy a.toml", "--save-npy would write over a.toml"),
        ("run a.toml --wave q --ladder q", "--wave and --ladder would write the same file, q"),
        ("run a.toml --wave q.vcd --ladder q.gtkw", "--wave and --ladder would write the same file, q.gtkw"),
        ("run a.toml --save-npy q --ladder new/../q", "--ladder and --save-npy would write the same file"),
        ("run a.toml --out n --ladder n/a.json", "--out and --ladder would write the same file, n/a.json"),
        ("run a.toml --out n --wave a.json", "--out and --wave would write the same file, n/a.json"),
        ("run mesh-uniform --wave q --histogram q", "--wave and --histogram would write the same file, q"),
        ("topology a.toml --svg a.toml", "--svg would write over a.toml"),
        ("embed a.toml --save q --svg q", "--save and --svg would write the same file, q"),
        ("curve mesh-uniform --csv q --svg q", "--csv and --svg would write the same file, q"),
        ("curve a.toml --csv a.toml", "--csv would write over a.toml"),
        ("compare a.toml base.toml -o base.toml", "--out would write over base.toml"),
        ("study s.toml -o s.toml", "--out would write over s.toml"),
    ] {
        let (status, stdout, stderr) = run(folder, command);
        assert_eq!((status, stdout.as_str()), (Some(2), ""), "{command}: {stderr}");
        assert!(stderr.contains(words) && stderr.lines().count() == 1, "{command}: {stderr}");
        assert!(contents(folder) == before, "{command} touched something");
    }
    // One file a flag is fine, also a second time.
    let apart = "run a.toml --out n --wave q.vcd --ladder l.svg";
    assert_eq!((run(folder, apart).0, run(folder, apart).0), (Some(0), Some(0)));
}
