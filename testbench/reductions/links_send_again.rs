//! R-ERR-1: link-layer replay is a mechanism on the link: it repairs what is lost, damaged or repeated, and it costs cycles.

use watershed::scenario::result::Outcome;

use crate::campaign::links::{are_repaired, count};
use crate::order_of_evaluation_changes_nothing::every_way;
use crate::share;
use crate::support::{armed, passed, reduction, refused, round, text};

fn job(link: &str, faults: &str) -> String {
    format!(
        "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [2, 4]\n[link]\nlatency_cycles = 10\n{link}[[armed.reduction]]\n\
         op = \"int-sum\"\nrounds = 12\ncompute_cycles = 60\nretry_after_cycles = 5000\npatience_cycles = 20_000\nreduction_ids = 4\n{faults}"
    )
}

fn fault(effect: &str, rest: &str) -> String {
    format!("[[armed.fault]]\neffect = \"{effect}\"\nway = \"both\"\nat = \"all\"\nprobability = 0.1\n{rest}")
}

const REPLAY: &str = "[link.reliability]\n";

#[test]
fn what_is_lost_damaged_or_repeated_is_right_without_asking_again() {
    let with = |effect: &str, rest: &str| {
        let document = every_way(&job(REPLAY, &fault(effect, rest)), &[1, 2]);
        passed(&document);
        let of = reduction(&document, "r0");
        assert_eq!((of.outcomes.complete, of.retries), (16, 0), "{effect}: {}", of.outcomes.words());
        armed(&document).faults.clone()
    };
    are_repaired(with, |effect, rest| {
        let without = text(&job("", &fault(effect, rest)));
        assert!(reduction(&without, "r0").retries > 0, "without it the root has to ask again");
    });
}

#[test]
fn replay_costs_a_frame_a_link_and_more_where_its_buffers_are_short() {
    let latency = |link: &str| {
        let document = text(&job(link, "").replace("reduction_ids = 4\n", ""));
        passed(&document);
        reduction(&document, "r0").round_latency_cycles.unwrap().min
    };
    let (without, with) = (latency(""), latency(REPLAY));
    // Up and down over three links each; the far end of each keeps a frame back until it is whole.
    let (least, most) = (6 * 10, 6 * (11 + 5));
    assert!((least..=most).contains(&(with - without)), "{without} without, {with} with it");
    // Without engines eight frames of a round come one behind the other on the root's link.
    let passing = |link: &str| {
        let engines = "[armed.engine]\nunavailable = [\"top\", \"s0\", \"s1\"]\n";
        latency(&format!("{link}{engines}"))
    };
    let whole = passing(REPLAY);
    for (short, least) in [("replay_frames = 1\nreceive_frames = 4", 20), ("replay_frames = 8\nreceive_frames = 1", 60)]
    {
        let slow = passing(&format!("{REPLAY}{short}\n"));
        assert!(slow >= whole + least, "{short}: {slow} cycles, {whole} with whole buffers");
    }
}

#[test]
fn a_dead_link_gives_up_and_the_protocol_above_knows() {
    let dead = "[[armed.fault]]\neffect = \"dead\"\nat = \"s1\"\nfrom_cycle = 300\n";
    let scenario = job(REPLAY, dead)
        .replace("reduction_ids = 4", "reduction_ids = 4\nmax_retries = 1")
        .replace("[[armed.reduction]]", "[armed.engine]\ntimeouts_1024_cycles = [1, 1, 1, 1]\n[[armed.reduction]]");
    let document = every_way(&scenario, &[3]);
    assert_eq!(document.outcome, Outcome::Finished, "{:?}", document.checks);
    assert_eq!(armed(&document).outcomes.silent, 0);
    assert!(count(&armed(&document).faults, "given_up") > 0);
    let incomplete = armed(&document).reductions[0].rounds.iter().find(|round| round.outcome == "incomplete");
    assert_eq!(incomplete.unwrap().missing, ["leaf4", "leaf5", "leaf6", "leaf7"]);
    // One that is back before it is given up costs time only.
    let back = scenario.replace("from_cycle = 300\n", "from_cycle = 300\nuntil_cycle = 900\n");
    let document = every_way(&back, &[4]);
    passed(&document);
    assert_eq!((reduction(&document, "r0").outcomes.complete, count(&armed(&document).faults, "given_up")), (16, 0));
    assert_eq!(round(&document, 11).attempts, 1);
}

/// Twice in `make soak`, once in `make test`.
#[test]
fn a_receiver_that_is_stuck_is_no_dead_link() {
    // Eight frames of each of sixty leaves wait for one link, for far longer than a transmitter waits for a dead one; it asks
    // again and again, and the receiver answers although it has no room.
    let rounds = share::of(2, 16);
    let scenario = format!(
        "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [60]\n[link]\nlatency_cycles = 2\n\
         [link.reliability]\nreplay_frames = 1\nreceive_frames = 1\nattempts = 1\ntimeout_cycles = 40\n\
         [armed.engine]\nunavailable = [\"top\"]\n[[armed.reduction]]\nop = \"int-sum\"\nrounds = {rounds}\n\
         reduction_ids = 8\nopening_barrier = false\n"
    );
    let document = every_way(&scenario, &[1]);
    passed(&document);
    let of = reduction(&document, "r0");
    assert_eq!((of.outcomes.complete, of.retries), (rounds, 0), "{}", of.outcomes.words());
    // The last of sixty frames of a round is stuck for 59 times 11 cycles, sixteen times two time-outs and more.
    assert!(of.round_latency_cycles.unwrap().max > 59 * 11);
    assert!(count(&armed(&document).faults, "replayed") > 1000, "{:?}", armed(&document).faults);
    assert_eq!(count(&armed(&document).faults, "given_up"), 0, "nothing is lost");
}

#[test]
fn replay_is_refused_where_there_is_none_and_beside_another_layer() {
    for family in ["piuma", "fabric"] {
        let scenario =
            format!("family = \"{family}\"\n[topology]\nkind = \"mesh\"\nsize = [2, 2]\n[link.reliability]\n");
        let error = refused(&scenario);
        assert!(
            error.contains("there is no link-layer replay") && error.contains("link.reliability"),
            "{family}: {error}"
        );
    }
    let error = refused(&job("[link.reliability]\n[armed.link_layer]\nsequence_check = false\n", ""));
    assert!(error.contains("check numbers and send again by themselves"), "{error}");
    // What stood for it before names it.
    let error = refused(&job("[armed.link_layer]\nretry_cycles = 60\n", ""));
    assert!(error.contains("retry_cycles") && error.contains("[link.reliability]"), "{error}");
    let error = refused(&job("[link.reliability]\nreplay_frame = 3\n", ""));
    assert!(error.contains("replay_frames"), "{error}");
}
