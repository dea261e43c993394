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
    let latency = |document: &Document| reduction(document, "victim").round_latency_cycles.unwrap().max;
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

/// A stranger that knows the address of another tree: both trees share switches and links, neither loses a bit, and each
/// is delayed by less than a frame a hop it shares with the stranger. (A plain floating-point sum may round differently where
/// frames come in another order; these two operations may not.)
#[test]
fn frames_to_another_tree_s_address_change_neither_tree() {
    for (shape, stranger, hops) in [
        ("kind = \"tree\"\nbranching = [4, 4]", 3, 3),
        ("kind = \"fat-tree\"\narity = 4\nlevels = 3", 17, 5),
        ("kind = \"mesh\"\nsize = [4, 4]", 5, 7),
    ] {
        let scenario = |rest: &str| {
            text(&format!(
                "family = \"armed\"\n[topology]\n{shape}\n[link]\nlatency_cycles = 5\n\
                 [[armed.reduction]]\nname = \"a\"\nop = \"flt-repsum\"\nrounds = 8\ncompute_cycles = 300\n\
                 [[armed.reduction]]\nname = \"b\"\nop = \"int-sum\"\nrounds = 8\ncompute_cycles = 350\n{rest}"
            ))
        };
        let alone = scenario("");
        passed(&alone);
        // Frames with the keys of a climb to the engines of b, which tell them apart by their keys.
        let disturbed = scenario(&format!(
            "[[armed.stranger]]\nend_point = {stranger}\nreduction = \"a\"\nwrong = \"tree\"\ntree = \"b\"\nuntil_cycle = 2500"
        ));
        passed(&disturbed);
        assert!(armed(&disturbed).stranger_frames > 150, "{shape}: {}", armed(&disturbed).stranger_frames);
        let met = engines(&disturbed, "wrong_cookie") + engines(&disturbed, "wrong_vni");
        assert!(met > 150, "{shape}: {met} meet engines of b");
        for name in ["a", "b"] {
            let (before, after) = (reduction(&alone, name), reduction(&disturbed, name));
            assert_eq!((after.outcomes.complete, after.retries), (9, 0), "{shape} {name}");
            let results = |of: &watershed::scenario::armed::result::ReductionResult| -> Vec<Vec<String>> {
                of.rounds.iter().map(|round| round.result.clone()).collect()
            };
            assert_eq!(results(before), results(after), "{shape} {name}: bit for bit");
            let rise = after.round_latency_cycles.unwrap().max.saturating_sub(before.round_latency_cycles.unwrap().max);
            assert!(rise <= hops * FRAME, "{shape} {name}: {rise} cycles over {hops} hops");
        }
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
