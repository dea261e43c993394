//! Link-layer replay is the mechanism of both families: on the links of this one, too, it repairs what is lost, damaged or
//! repeated, costs cycles, and gives up in the end (R-ERR-1, B-ERR-2).

use std::path::Path;

use watershed::scenario::load_text;
use watershed::scenario::pbv::result::PbvResult;
use watershed::scenario::result::Outcome;
use watershed::scenario::run::{RunOptions, run};

use crate::campaign::links::{are_repaired, count};
use crate::share;

fn job(link: &str, rest: &str) -> String {
    format!(
        "family = \"pbv\"\n[topology]\nkind = \"tree\"\nbranching = [2, 4]\nroots = 0\n[link]\nlatency_cycles = 10\n{link}\
         [pbv.engine]\ntimeout_cycles = 6000\nretries = 2\n[[pbv.collective]]\ndtype = \"u64\"\nelements = 3\nrounds = 12\n{rest}"
    )
}

fn fault(effect: &str, rest: &str) -> String {
    format!("[[pbv.fault]]\neffect = \"{effect}\"\nat = \"all\"\nprobability = 0.1\n{rest}")
}

fn text(scenario: &str) -> PbvResult {
    text_of(scenario, true)
}

/// The same where long time-outs are waited for: only `make soak` walks through them cycle by cycle.
fn text_with_time_outs(scenario: &str) -> PbvResult {
    text_of(scenario, share::is_whole())
}

fn text_of(scenario: &str, both: bool) -> PbvResult {
    let loaded =
        load_text("test", scenario, Path::new(""), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let ways = if both { &[false, true][..] } else { &[false] };
    let ways = ways.iter().map(|&no_skip| {
        let document = run(&loaded, &RunOptions { no_skip, ..RunOptions::default() }).unwrap().document;
        assert_eq!(document.outcome, Outcome::Finished, "{scenario}: {:?}", document.checks);
        assert!(document.checks.iter().all(|check| check.passed), "{scenario}: {:?}", document.checks);
        serde_json::to_value(document.pbv.unwrap()).unwrap()
    });
    let ways: Vec<serde_json::Value> = ways.collect();
    assert!(ways.iter().all(|way| *way == ways[0]), "skipping idle blocks changes nothing");
    serde_json::from_value(ways[0].clone()).unwrap()
}

fn refused(scenario: &str) -> String {
    load_text("test", scenario, Path::new(""), "test", &[]).map(|_| ()).unwrap_err().to_string()
}

const REPLAY: &str = "[link.reliability]\n";

#[test]
fn what_is_lost_damaged_or_repeated_is_right_without_asking_again() {
    let with = |effect: &str, rest: &str| {
        let of = text(&job(REPLAY, &fault(effect, rest)));
        assert_eq!((of.outcomes.complete, of.outcomes.after_retry), (12, 0), "{effect}");
        assert!(of.engines.refused.is_empty() && of.refused_by_nodes.is_empty(), "{effect}: {:?}", of.engines);
        of.faults
    };
    are_repaired(with, |effect, rest| {
        let without = text_with_time_outs(&job("", &fault(effect, rest)));
        assert!(without.outcomes.complete < 12, "without it somebody is asked again, or missing");
    });
}

#[test]
fn a_link_that_is_dead_is_given_up_and_the_missing_are_named() {
    let dead = "task_cycles = 1000\n[[pbv.fault]]\neffect = \"dead\"\nat = \"leaf5\"\nfrom_cycle = 6000\n";
    let of = text_with_time_outs(&job(REPLAY, dead).replace("rounds = 12", "rounds = 8"));
    assert_eq!(of.outcomes.silent + of.outcomes.open, 0);
    assert!(count(&of.faults, "given_up") > 0, "{:?}", of.faults);
    let lost = of.collectives[0].rounds.iter().find(|round| round.outcome == "incomplete").expect("rounds are lost");
    assert_eq!(lost.missing, ["leaf5"]);
}

#[test]
fn faults_named_from_either_end_of_a_link_strike_their_way() {
    // The link between a switch and the top, with faults on frames that come to either of them.
    for at in ["s0", "top"] {
        for way in ["to", "from"] {
            let fault =
                format!("[[pbv.fault]]\neffect = \"drop\"\nat = \"{at}\"\nway = \"{way}\"\nprobability = 0.2\n");
            let of = text(&job(REPLAY, &fault));
            assert!(count(&of.faults, "dropped") > 0 && of.outcomes.complete == 12, "{at} {way}: {:?}", of.faults);
        }
    }
}

#[test]
fn replay_beside_another_layer_is_refused() {
    for (key, text) in [("sequence_check = false", "check numbers"), ("retry_cycles = 9", "[link.reliability]")] {
        let error =
            refused(&job(REPLAY, "").replace("[pbv.engine]", &format!("[pbv.link_layer]\n{key}\n[pbv.engine]")));
        assert!(error.contains(text) && error.contains(&key[..8]), "{error}");
    }
    let error = refused(&job("", "").replace("[pbv.engine]", "[pbv.link_layer]\nretry_cycles = 9\n[pbv.engine]"));
    assert!(error.contains("[link.reliability]"), "{error}");
}
