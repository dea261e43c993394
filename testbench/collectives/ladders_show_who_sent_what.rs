//! Message ladders of the PIUMA family (requirement W-LAD-1): every word from core to engine to core, and messages of software.

use std::path::Path;

use watershed::probe::ladder::Ladder;
use watershed::scenario::load_text;
use watershed::scenario::run::{RunOptions, run};

fn ladder(text: &str) -> (Ladder, u64) {
    let loaded = load_text("test", text, Path::new("."), "test", &[]).unwrap_or_else(|p| panic!("{p}\n{text}"));
    let plain = run(&loaded, &RunOptions::default()).unwrap();
    let result = run(&loaded, &RunOptions { ladder: true, ..RunOptions::default() }).unwrap();
    assert_eq!(result.document.cycles, plain.document.cycles, "a ladder changes nothing");
    assert_eq!(result.document.collectives, plain.document.collectives);
    (result.ladder.unwrap(), result.document.cycles)
}

const DIE: &str = "family = \"piuma\"\n[topology]\nkind = \"die\"\n";

#[test]
fn every_word_climbs_and_comes_back() {
    let (ladder, cycles) = ladder(&format!("{DIE}[[collective]]\nkind = \"allreduce\"\nelements = 2\n"));
    // Eight cores and the two engines that reduce.
    let engines = ladder.actors.iter().filter(|name| name.contains(".ceng")).count();
    assert_eq!((ladder.actors.len(), engines), (10, 2), "{:?}", ladder.actors);
    let is_engine = |actor: usize| ladder.actors[actor].contains(".ceng");
    for word in 0..2 {
        let up: Vec<_> = ladder.messages.iter().filter(|m| m.label == format!("word {word}")).collect();
        let down: Vec<_> = ladder.messages.iter().filter(|m| m.label == format!("result {word}")).collect();
        // Each core contributes once; one engine sends its sum to the other; all eight get the result from the root.
        assert_eq!(up.iter().filter(|m| !is_engine(m.from)).count(), 8, "{up:?}");
        assert_eq!(up.iter().filter(|m| is_engine(m.from)).count(), 1, "{up:?}");
        assert!(up.iter().all(|m| is_engine(m.to)));
        let mut got: Vec<usize> = down.iter().map(|m| m.to).collect();
        got.sort_unstable();
        got.dedup();
        assert_eq!((down.len(), got.len()), (8, 8), "{down:?}");
        assert!(down.iter().all(|m| is_engine(m.from) && m.from == down[0].from));
        let last = up.iter().map(|m| m.arrived.unwrap()).max().unwrap();
        assert!(down.iter().all(|m| m.sent > last && m.arrived.unwrap() <= cycles));
    }
    assert!(ladder.messages.iter().all(|m| m.arrived.unwrap() > m.sent));
    assert!(ladder.text().contains("word 1") && ladder.svg().matches("</svg>").count() == 1);
}

#[test]
fn scans_and_several_collectives_are_told_apart() {
    let (scan, _) = ladder(&format!("{DIE}[[collective]]\nkind = \"scan\"\nelements = 1\ndtype = \"i64\"\n"));
    let down = scan.messages.iter().filter(|m| m.label == "result 0" && !scan.actors[m.to].contains(".ceng"));
    assert_eq!(down.count(), 8, "{}", scan.text());
    let two = "[[collective]]\nname = \"a\"\nkind = \"reduce\"\nelements = 1\n[[collective]]\nname = \"b\"\nkind = \"broadcast\"\nid = 1\nelements = 1\n";
    let (two, _) = ladder(&format!("{DIE}{two}"));
    for name in ["a ", "b "] {
        assert!(two.messages.iter().any(|m| m.label.starts_with(name)), "{}", two.text());
    }
}

#[test]
fn a_host_s_rounds_are_its_schedule() {
    let (ladder, _) =
        ladder(&format!("{DIE}[[host]]\nname = \"h\"\nalgorithm = \"recursive-doubling\"\nelements = 16\n"));
    // Three rounds in which each of eight ranks sends one message to its partner.
    assert_eq!((ladder.actors.len(), ladder.messages.len()), (8, 24), "{}", ladder.text());
    for round in 0..3 {
        let of: Vec<_> = ladder.messages.iter().filter(|m| m.label.starts_with(&format!("round {round}: "))).collect();
        assert_eq!(of.len(), 8);
        for message in of {
            assert_eq!(message.from ^ message.to, 1 << round, "{}", ladder.text());
            assert_eq!(message.label, format!("round {round}: 2 packets"));
        }
    }
}

#[test]
fn plain_packets_are_shown_too() {
    let mesh = "family = \"fabric\"\n[topology]\nkind = \"mesh\"\nsize = [2, 2]\n[[traffic]]\npattern = \"uniform\"\nrate = 0.1\n[limits]\nmax_cycles = 100\n";
    let (ladder, _) = ladder(mesh);
    assert!(ladder.messages.len() > 10 && ladder.messages.iter().all(|m| m.label == "packet" && m.from != m.to));
}
