//! R-TAB-1, R-ENG-3: frames that forgers send, up or down the tree, are refused where they come in, and counted by why.

use watershed::scenario::result::Document;

use crate::order_of_evaluation_changes_nothing::every_way;
use crate::support::{armed, engines, passed, reduction, refused, round, text};

fn ends(document: &Document, what: &str) -> u64 {
    armed(document).end_points.get(what).and_then(serde_json::Value::as_u64).unwrap_or(0)
}

/// A job of a tree with 8 leaves; the root is end point 8.
fn job(stranger: &str) -> String {
    format!(
        "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [2, 4]\n[[armed.reduction]]\nname = \"r\"\nop = \"int-sum\"\n\
         rounds = 8\ncompute_cycles = 150\nretry_after_cycles = 3000\npatience_cycles = 6000\n{stranger}"
    )
}

fn stranger(end_point: u32, wrong: &str, sends: &str) -> String {
    format!(
        "[[armed.stranger]]\nend_point = {end_point}\nreduction = \"r\"\nwrong = \"{wrong}\"\nsends = \"{sends}\"\n\
         every_cycles = 40\nuntil_cycle = 1800\n"
    )
}

#[test]
fn only_the_root_multicasts() {
    let alone = text(&job(""));
    for sends in ["arm", "result", "release"] {
        // Everything is right but who sends it: it ends at the first switch.
        let document = every_way(&job(&stranger(3, "sender", sends)), &[1]);
        passed(&document);
        let of = armed(&document);
        assert!(of.stranger_frames > 30, "{sends}");
        assert_eq!(of.discarded_frames, of.stranger_frames, "{sends}");
        assert_eq!(engines(&document, "armed"), engines(&alone, "armed"), "{sends}");
        assert_eq!(reduction(&document, "r").outcomes.complete, 9, "{sends}");
        assert_eq!(reduction(&document, "r").retries, 0, "{sends}");
    }
}

#[test]
fn at_the_roots_own_end_point_a_forger_needs_every_key() {
    let alone = text(&job(""));
    for sends in ["arm", "result", "release"] {
        for (wrong, counted) in
            [("vni", "wrong_vni"), ("cookie", "wrong_cookie"), ("stale", "stale"), ("malformed", "malformed")]
        {
            let document = every_way(&job(&stranger(8, wrong, sends)), &[2]);
            passed(&document);
            let of = reduction(&document, "r");
            assert_eq!((of.outcomes.complete, of.retries), (9, 0), "{wrong} {sends}");
            for number in 0..8 {
                assert_eq!(round(&document, number).result, round(&alone, number).result, "{wrong} {sends}");
            }
            // The engine of the root's switch and those of both others, and all 8 leaves.
            let sent = armed(&document).stranger_frames;
            assert!(sent > 30);
            assert_eq!(ends(&document, counted), 8 * sent, "{wrong} {sends}: every leaf counts every one");
            assert_eq!(engines(&document, counted), 3 * sent, "{wrong} {sends}: and so does every engine");
            assert_eq!(engines(&document, "down_refused"), 3 * sent, "{wrong} {sends}");
            assert_eq!(engines(&document, "armed"), engines(&alone, "armed"), "{wrong} {sends}: none armed one");
            assert_eq!(engines(&document, "released"), engines(&alone, "released"), "{wrong} {sends}");
        }
    }
}

#[test]
fn a_contribution_of_somebody_who_takes_no_part_ends_at_its_switch() {
    let scenario =
        job(&stranger(7, "sender", "contribution")).replace("rounds = 8", "rounds = 8\nparticipants = [0, 1, 2, 3, 8]");
    let document = text(&scenario);
    passed(&document);
    assert_eq!(armed(&document).discarded_frames, armed(&document).stranger_frames);
    // The root's own end point is no child of its switch either.
    let document = text(&job(&stranger(8, "sender", "contribution")));
    passed(&document);
    assert_eq!(armed(&document).discarded_frames, armed(&document).stranger_frames);
}

#[test]
fn messages_of_strangers_do_not_enter_a_software_reduction() {
    let software = |rest: &str| {
        job(rest).replace(
            "op = \"int-sum\"",
            "op = \"int-sum\"\nmethod = \"software\"\nparticipants = [0, 1, 2, 3, 4, 5, 6, 8]",
        )
    };
    let alone = text(&software(""));
    passed(&alone);
    for (end_point, wrong, sends, counted) in [
        (7, "sender", "contribution", "wrong_sender"),
        (7, "sender", "result", "wrong_sender"),
        (0, "cookie", "result", "wrong_sender"),
        (8, "cookie", "contribution", "wrong_sender"),
        (1, "vni", "contribution", "wrong_vni"),
        (3, "cookie", "contribution", "wrong_cookie"),
        (3, "malformed", "contribution", "malformed"),
    ] {
        let document = every_way(&software(&stranger(end_point, wrong, sends)), &[3]);
        passed(&document);
        assert!(ends(&document, counted) > 0, "{wrong} {sends}: {:?}", armed(&document).end_points);
        for number in 0..8 {
            assert_eq!(round(&document, number).result, round(&alone, number).result, "{wrong} {sends}");
        }
    }
}

#[test]
fn a_stranger_that_is_none_gets_a_clear_error() {
    let leaf = refused(&job(&stranger(3, "sender", "contribution")));
    assert!(leaf.contains("end point 3 of \"r\" is a leaf: its contributions are no stranger's"), "{leaf}");
    let root = refused(&job(&stranger(8, "sender", "arm")));
    assert!(root.contains("end point 8 of \"r\" is the root: what it multicasts is no stranger's"), "{root}");
    let unknown = refused(&job(&stranger(8, "vni", "releas")));
    assert!(unknown.contains("release"), "{unknown}");
    let software =
        job(&stranger(3, "stale", "contribution")).replace("rounds = 8", "rounds = 8\nmethod = \"software\"");
    assert!(refused(&software).contains("its messages have no such thing"));
}
