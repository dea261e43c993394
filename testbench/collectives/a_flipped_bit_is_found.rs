//! Checks can fail: one flipped bit in one engine is found, with element, patterns, distance and node (A-GOLD-1).

use watershed::scenario::run::{Flip, RunOptions};

use crate::sets;
use crate::support::{FLAGSHIP, MESH, only, run_with};

fn flipped(text: &str, sets: &[String], switch: &str, word: u64, mask: u64) -> watershed::scenario::result::Document {
    let flip = Some(Flip { switch, id: 0, word, mask });
    run_with(text, sets, &RunOptions { flip, ..RunOptions::default() }).document
}

#[test]
fn in_every_engine_of_the_flagship() {
    let rows = ["[1, 2, 4, 8, 16, 32]"; 8].join(", ");
    let set =
        sets!["collective[0].elements=6"; "collective[0].dtype=\"i64\""; "collective[0].data={{ values = [{rows}] }}"];
    for (switch, word, bit) in [("core0", 0, 0), ("core4", 5, 17), ("sw4", 3, 40)] {
        let document = flipped(FLAGSHIP, &set, switch, word, 1 << bit);
        assert!(!document.passed());
        let found = only(&document);
        assert_eq!((found.bit_exact, found.exact_elements), (Some(false), 5));
        let at = found.first_difference.as_ref().expect("a difference");
        assert_eq!((at.element, at.node.as_str()), (word, format!("{switch}.ceng").as_str()));
        // Eight times the operand. The engines of the tiles hold half of it, the root all: one flipped bit below 2^8 may
        // subtract.
        let right: i64 = 8 << word;
        let half = right / 2;
        let wrong = if switch == "sw4" { right ^ 1 << bit } else { half + (half ^ 1 << bit) };
        assert_eq!(at.expected, format!("{right:016x}"));
        assert_eq!(at.got, format!("{wrong:016x}"));
        assert_eq!(at.ulps, Some(right.abs_diff(wrong)));
        let check = document.checks.iter().find(|check| check.name == "bit-exact: sum").unwrap();
        assert!(!check.passed);
        for part in [
            format!("element {word} "),
            at.got.clone(),
            at.expected.clone(),
            format!("{switch}.ceng"),
            match right.abs_diff(wrong) {
                1 => "1 ulp apart".into(),
                ulps => format!("{ulps} ulps apart"),
            },
        ] {
            assert!(check.detail.contains(&part), "no \"{part}\" in {}", check.detail);
        }
    }
}

#[test]
fn one_unit_in_the_last_place_of_a_double() {
    let document = flipped(FLAGSHIP, &sets!["collective[0].elements=40"], "sw4", 39, 1);
    let at = only(&document).first_difference.clone().expect("a difference");
    assert_eq!((at.element, at.ulps, at.node.as_str()), (39, Some(1), "sw4.ceng"));
    assert_eq!(u64::from_str_radix(&at.got, 16).unwrap() ^ u64::from_str_radix(&at.expected, 16).unwrap(), 1);
}

#[test]
fn the_right_lane_of_a_word_and_the_right_engine_of_a_mesh() {
    let set = sets!["topology.size=[3, 3]"; "collective[0].elements=9"; "collective[0].root=\"s1_1\""; "collective[0].data.random=\"integers\""];
    for (switch, word, lane) in [("s1_0", 2, 1), ("s1_2", 0, 0), ("s1_1", 4, 0)] {
        let document = flipped(MESH, &set, switch, word, 1 << 30 << (32 * lane));
        let at = only(&document).first_difference.clone().unwrap_or_else(|| panic!("no difference at {switch}"));
        assert_eq!((at.element, at.node.as_str()), (2 * word + lane, format!("{switch}.ceng").as_str()));
    }
}

#[test]
fn a_flip_of_nothing_changes_nothing_and_one_that_hits_nothing_is_told() {
    let set = sets!["collective[0].elements=6"];
    assert!(flipped(FLAGSHIP, &set, "core0", 3, 0).passed());
    let document = flipped(FLAGSHIP, &set, "core0", 6, 1);
    let failed: Vec<_> = document.checks.iter().filter(|check| !check.passed).collect();
    assert_eq!((failed.len(), failed[0].name.as_str()), (1, "flip"), "there is no word 6: {failed:?}");
    assert!(failed[0].detail.contains("word 6 of collective id 0 never left core0's engine"), "{}", failed[0].detail);
}
