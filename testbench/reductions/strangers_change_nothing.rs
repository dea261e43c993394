//! Interference (R-ENG-3, R-ENG-7): frames that do not belong, at full line rate, never change a victim's bits, and delay it by
//! less than a frame time for each hop they share.

use watershed::scenario::result::Document;

use crate::support::{armed, engines, passed, reduction, round, shipped, text};

/// Cycles a frame takes on a link.
const FRAME: u64 = 11;

/// A victim with fixed compute times, so that its latency can be compared, and a stranger at leaf 3.
fn victim(stranger: &str) -> Document {
    text(&format!(
        "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [4, 4]\n[link]\nlatency_cycles = 5\n\
         [[armed.reduction]]\nname = \"victim\"\nop = \"flt-sum-near\"\nrounds = 12\ncompute_cycles = 150\n{stranger}"
    ))
}

#[test]
fn frames_with_wrong_keys_and_old_numbers_cost_a_victim_less_than_a_frame_a_hop() {
    let alone = victim("");
    passed(&alone);
    let latency = |document: &Document| reduction(document, "victim").latency_max_cycles.unwrap();
    for wrong in ["cookie", "vni", "stale", "address", "malformed"] {
        let disturbed = victim(&format!(
            "[[armed.stranger]]\nend_point = 3\nreduction = \"victim\"\nwrong = \"{wrong}\"\nuntil_cycle = 4000"
        ));
        passed(&disturbed);
        for number in 0..12 {
            assert_eq!(round(&disturbed, number).counts, [16], "{wrong}");
        }
        assert!(armed(&disturbed).stranger_frames > 300, "full line rate: {}", armed(&disturbed).stranger_frames);
        // Shared are the leaf's own NIC, the link from its switch, and that of the root switch.
        let delay = latency(&disturbed).saturating_sub(latency(&alone));
        assert!(delay <= 3 * FRAME, "{wrong}: {delay} cycles");
    }
}

#[test]
fn every_stranger_is_counted_where_it_ends() {
    let document = shipped("interference", &[]);
    passed(&document);
    let victim = reduction(&document, "victim");
    assert_eq!((victim.outcomes.complete, victim.retries), (21, 0));
    for what in ["wrong_cookie", "wrong_vni", "stale", "malformed"] {
        assert!(engines(&document, what) > 100, "{what}: {}", engines(&document, what));
    }
    assert!(armed(&document).discarded_frames > 100, "unknown addresses end at the first switch");
    // What finds no armed engine passes to the root, which discards it.
    assert!(armed(&document).root_discards.iter().sum::<u64>() > 0);
}

#[test]
fn a_leaf_with_another_operation_is_named() {
    let document = shipped("wrong-operation", &[]);
    passed(&document);
    for number in 0..2 {
        let of = round(&document, number);
        assert_eq!((of.code.as_str(), of.outcome.as_str()), ("OP_MISMATCH", "incomplete"));
        let (first, other) = (&of.result[0][..8], &of.result[0][8..]);
        assert!(first == "00000005" || other == "00000005", "lane 0 names leaf 5: {}", of.result[0]);
        assert_ne!(first, other);
        assert_eq!(of.result[1..], ["0000000000000000"; 3], "no arithmetic");
        assert_eq!(of.counts, [8], "and all are counted");
    }
}

#[test]
fn trees_that_do_not_meet_do_not_disturb_each_other() {
    let scenario = |second: &str| {
        format!(
            "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [2, 8]\nroots = 0\n[[armed.reduction]]\nname = \"a\"\n\
             op = \"flt-sum-near\"\nrounds = 10\nparticipants = [0, 1, 2, 3]\ncompute_cycles = 100\n{second}"
        )
    };
    let alone = text(&scenario(""));
    let both = text(&scenario(
        "[[armed.reduction]]\nname = \"b\"\nop = \"int-sum\"\nrounds = 10\nparticipants = [8, 9, 10, 11]\ncompute_cycles = 70",
    ));
    passed(&both);
    assert_eq!(reduction(&alone, "a").rounds, reduction(&both, "a").rounds, "to the cycle");
    assert_eq!(reduction(&both, "a").multicast_ids, reduction(&both, "b").multicast_ids, "under the same address");
}
