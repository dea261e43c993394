//! The command file and the mappings for Surfer: in the formats of its manual, and about signals that are there.

use std::collections::BTreeMap;
use std::path::Path;

use watershed::scenario::config::Wave;
use watershed::scenario::load_text;
use watershed::scenario::run::{RunOptions, WaveOptions, run};

use crate::support::Read;

#[test]
fn commands_and_mappings_name_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let die = "family = \"piuma\"\n[topology]\nkind = \"die\"\n[[collective]]\nkind = \"allreduce\"\nelements = 3\n";
    let loaded = load_text("test", die, Path::new("."), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    for name in ["run.vcd", "run.fst"] {
        let wave =
            WaveOptions::of(folder.path().join(name), Wave { signals: vec!["**.sw4.**".into()], ..Wave::default() });
        let result = run(&loaded, &RunOptions { wave: Some(&wave), ..RunOptions::default() }).unwrap();
        let names = Read::new(std::fs::read(&wave.path).unwrap()).names();
        let commands = std::fs::read_to_string(folder.path().join("run.sucl")).unwrap();
        let mut added = Vec::new();
        for line in commands.lines().filter(|line| !line.starts_with('#')) {
            match line.split_once(' ') {
                Some(("variable_add", signal)) => added.push(signal.to_owned()),
                // Surfer reads one word of letters, digits and underscores, and refuses the line if there is more.
                Some(("divider_add", scope)) => {
                    let one_word = |name: &str| name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
                    assert_eq!(scope, one_word(scope));
                    let known =
                        scope == "stage_registers" || names.iter().any(|name| one_word(name).starts_with(scope));
                    assert!(known, "{scope}");
                }
                Some(("cursor_set", time)) => assert!(time.parse::<u64>().unwrap() > 0),
                _ => assert!(["zoom_fit", "zoom_in", "goto_cursor"].contains(&line), "{line}"),
            }
        }
        // Some thirty signals that are there, each once.
        added.sort();
        assert!(
            (10..=30).contains(&added.len()) && added.windows(2).all(|pair| pair[0] < pair[1]),
            "{name}: {added:?}"
        );
        assert!(added.iter().all(|signal| names.contains(signal)), "{name}: {added:?}");
        let mut mappings = 0;
        for file in result.wave.unwrap().files.iter().filter(|file| file.extension().is_some_and(|end| end == "txt")) {
            assert!(file.parent().unwrap().ends_with(".surfer/mappings"), "{}", file.display());
            let text = std::fs::read_to_string(file).unwrap();
            let mut lines = text.lines();
            let title = lines.next().unwrap().strip_prefix("Name = ").unwrap();
            assert_eq!(Some(title), file.file_stem().unwrap().to_str());
            let bits: u32 = lines.next().unwrap().strip_prefix("Bits = ").unwrap().parse().unwrap();
            let values: BTreeMap<u64, &str> = lines
                .map(|line| line.split_once(' ').map(|(value, name)| (value.parse().unwrap(), name)).unwrap())
                .collect();
            assert!(values.keys().all(|value| value >> bits == 0), "{text}");
            if title == "ceng" {
                assert_eq!(values.into_values().collect::<Vec<_>>(), ["IDLE", "GATHER", "REDUCE", "SCAN"]);
            }
            mappings += 1;
        }
        assert!(mappings >= 1);
    }
}
