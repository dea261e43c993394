//! Congestion reports that nobody asks for (paragraph 91): one where a queue comes up to a threshold, and no flood of them.

use std::path::Path;

use watershed::scenario::load_text;
use watershed::scenario::result::Document;
use watershed::scenario::run::{RunOptions, run};

fn document(size: u32, nodes: u32, setup: &str, reports: &str) -> Document {
    let text = format!(
        "family = \"pbv\"\n[topology]\nkind = \"flattened-butterfly\"\nsize = [{size}]\nconcentration = {nodes}\n\
         [pbv.setup]\nconfiguration = \"{setup}\"\n{reports}\n\
         [[pbv.collective]]\nname = \"sum\"\nelements = 60\nsource = 1\nrounds = 3\nexcept = [0]\n"
    );
    let loaded = load_text("test", &text, Path::new(""), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let document = run(&loaded, &RunOptions::default()).unwrap().document;
    assert!(document.passed(), "{:?}", document.checks);
    document
}

#[test]
fn a_queue_that_comes_up_to_the_threshold_is_reported_once_each_time() {
    for setup in ["writes", "frame-each", "one-frame", "side-port"] {
        for (size, nodes) in [(2, 5), (4, 8)] {
            let keys = "[pbv.reports]\nabove = 60\nuntil = 0\nqueues = [\"inbox\", \"P0.p2p0\"]\nto = 0";
            let pbv = document(size, nodes, setup, keys).pbv.unwrap();
            let quiet = document(size, nodes, setup, "").pbv.unwrap();
            assert!(quiet.reports.is_empty());
            assert!(!pbv.reports.is_empty(), "{setup} {size} {nodes}");
            for report in &pbv.reports {
                assert!(report.level >= 60 && report.arrived_cycle > report.cycle, "{report:?}");
                assert_eq!((report.to.as_str(), report.unit.as_str()), ("s0.node0", "flits"));
            }
            // A queue that never empties is reported no second time: at most once a response that had come.
            let most = 3 * u64::from(size * nodes + size);
            assert!(pbv.reports.len() as u64 <= 2 * most, "{} reports", pbv.reports.len());
            assert_eq!(pbv.outcomes.complete, 3);
        }
    }
}

#[test]
fn a_higher_threshold_or_a_lower_relief_never_says_more() {
    let count = |above: u32, until: u32| {
        let keys = format!("[pbv.reports]\nabove = {above}\nuntil = {until}\nqueues = [\"inbox\"]\nto = 0");
        document(3, 8, "frame-each", &keys).pbv.unwrap().reports.len()
    };
    assert!(count(60, 0) <= count(60, 58), "hysteresis holds back");
    assert!(count(60, 0) > 0);
    assert_eq!(count(1024, 0), 0, "the inbox never stands so high");
}

#[test]
fn what_is_wrong_with_reports_is_said() {
    for (keys, what) in [
        ("above = 5\nuntil = 5", "less than `above`"),
        ("above = 5\nqueues = [\"inbx\"]", "inbox"),
        ("above = 5\nto = 99", "end point 99"),
    ] {
        let text = format!(
            "family = \"pbv\"\n[topology]\nkind = \"flattened-butterfly\"\nsize = [2]\nconcentration = 2\n[pbv.reports]\n{keys}\n[[pbv.collective]]\n"
        );
        let problems = load_text("test", &text, Path::new(""), "test", &[]).unwrap_err().to_string();
        assert!(problems.contains(what), "{problems}");
    }
}
