//! Fragmenter and element counter of a call are registers in the waveform (H-MEM-1): the words that leave are those that memory
//! had, in order, and the counter counts each of them once.

use std::path::Path;

use watershed::probe::wave_in::WaveFile;
use watershed::scenario::config::Wave;
use watershed::scenario::load_text;
use watershed::scenario::run::{RunOptions, WaveOptions, run};

use crate::player::Player;

const CALL: &str = r#"
family = "piuma"
topology = { kind = "die" }

[[collective]]
name = "a"
kind = "allreduce"
id = 0
dtype = "i64"
called = true

[[program]]
text = """
    .words 0, 11, 12, 13, 14, 15
    compute 9
    allreduce 0, 0, 0x8000, 5
"""
"#;

#[test]
fn a_call_shows_its_fragmenter_and_element_counter() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("call.vcd");
    let loaded = load_text("call.toml", CALL, Path::new("."), "call", &[]).unwrap();
    let wave = WaveOptions::of(path.clone(), Wave::default());
    let result = run(&loaded, &RunOptions { wave: Some(&wave), ..RunOptions::default() }).unwrap();
    assert!(result.document.passed());
    let mut player = Player::new(WaveFile::open(&path).unwrap());
    let scopes = player.scopes(".call0.landed");
    assert_eq!(scopes.len(), 8, "{scopes:?}");
    let scope = format!("{}.call0", scopes[0]);
    let (mut words, mut landed, mut cycle) = (Vec::new(), vec![0], 0);
    while player.go_to(cycle) {
        let get = |name: &str| player.get(&format!("{scope}.{name}"));
        if let Some(word) = player.known(&format!("{scope}.fragmenter.word"))
            && words.last() != Some(&word)
            && get("fragmenter.held") > 0
        {
            words.push(word);
        }
        if landed.last() != Some(&get("landed")) {
            landed.push(get("landed"));
        }
        assert!(get("sent") <= get("read") && get("landed") <= get("received"));
        cycle += 1;
        if cycle > result.document.cycles + 8 {
            break;
        }
    }
    assert_eq!(landed, [0, 1, 2, 3, 4, 5], "one a word");
    assert!(words.iter().all(|word| (11..=15).contains(word)) && words.is_sorted(), "{words:?}");
}
