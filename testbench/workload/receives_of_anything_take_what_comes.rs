//! Receives from any source or of any tag: messages match in the order in which they come, and receives in that in which they are posted
//! (X-WORK-2).

use crate::support::{Goal, end, pass, run_with, workload};
use watershed::scenario::result::Document;
use watershed::scenario::run::RunOptions;

/// When a node of rank 0 was over.
fn over(document: &Document, label: &str) -> u64 {
    let named = format!("\"{label}\"");
    let spans = &workload(document).spans;
    let span = spans.iter().find(|span| span.rank == 0 && span.name.ends_with(&named));
    span.unwrap_or_else(|| panic!("{label}: {spans:?}")).end_cycle
}

/// Rank 1 is seven links away from rank 0, rank 2 is next to it.
const PLACES: &str = "participants = [0, 7, 1]";

#[test]
fn what_comes_first_is_taken_by_what_was_posted_first() {
    // The ways are 5 links of a cycle each and more apart: the near one comes first, whatever its number.
    let any = "a: recv 80b from -1 tag -1\nb: recv 80b from -1 tag -1";
    let send = "s: send 80b to 0 tag 4";
    let both = Goal::new(&[any, send, send]);
    let near_first = pass(&both.on_mesh(PLACES), &[]);
    let late = "w: calc 200 cpu 1\ns: send 80b to 0 tag 4\ns requires w";
    let far_first = pass(&Goal::new(&[any, send, late]).on_mesh(PLACES), &[]);
    let alone = |place: &str, block: &str| {
        let goal = Goal::new(&["a: recv 80b from 1 tag 4", block]);
        over(&pass(&goal.on_mesh(&format!("participants = [0, {place}]")), &[]), "a")
    };
    let (near, far) = (alone("1", send), alone("7", send));
    assert!(near < far);
    assert_eq!(over(&near_first, "a"), near);
    assert!(over(&near_first, "b") >= far);
    assert_eq!((over(&far_first, "a"), over(&far_first, "b")), (far, near + 200));
    for document in [&near_first, &far_first] {
        assert_eq!(workload(document).messages_exact, Some(true));
        assert_eq!((workload(document).messages, workload(document).message_words), (2, 20));
        let parts: u64 = workload(document).path.iter().map(|step| step.end_cycle - step.start_cycle).sum();
        assert_eq!(parts, end(document), "the critical path goes to whoever sent it");
    }
    assert!(workload(&far_first).path.iter().any(|step| step.rank == 2), "{:?}", workload(&far_first).path);
}

#[test]
fn what_came_early_keeps_its_order() {
    // Both messages are there when the receives are posted. The first of these takes the near one's: were it another order, nothing
    // would be left for the second, and the run would not end.
    let posted = "w: calc 500 cpu 1\na: recv 80b from -1 tag 4\na requires w\nb: recv 80b from 1 tag 4\nb requires a";
    let send = "s: send 80b to 0 tag 4";
    let document = pass(&Goal::new(&[posted, send, send]).on_mesh(PLACES), &[]);
    assert_eq!((over(&document, "w"), end(&document)), (500, 500));
    // The other way round nothing is left for the second.
    let other = posted.replace("from 1 tag", "from 2 tag");
    let text = Goal::new(&[&other, send, send]);
    let document =
        run_with(&text.on_mesh(PLACES), &["limits.max_cycles=5000".to_owned()], &RunOptions::default()).document;
    assert_eq!(workload(&document).end_cycle, None);
    assert!(document.checks.iter().any(|check| !check.passed), "{:?}", document.checks);
}

#[test]
fn one_sender_s_messages_of_a_tag_never_overtake() {
    // A long one and then short ones: the long one is received first, whatever of it is here.
    let any = "a: recv 800b from 1 tag -1\nb: recv 800b from -1 tag 4\nc: recv 800b from -1 tag -1";
    let send = "x: send 800b to 0 tag 4\ny: send 8b to 0 tag 4\nz: send 16b to 0 tag 9\ny requires x\nz requires y";
    let document =
        pass(&Goal::new(&[any, send]).on_mesh("participants = [0, 7]"), &["switch.point_to_point_vcs=4".into()]);
    assert!(over(&document, "a") <= over(&document, "b") && over(&document, "b") <= over(&document, "c"));
    assert_eq!((workload(&document).messages, workload(&document).message_words), (3, 103));
    // A receive of one channel that was posted behind takes the second message of it.
    let mixed = "a: recv 800b from -1 tag -1\nb: recv 800b from 1 tag 4";
    let two = "x: send 800b to 0 tag 4\ny: send 8b to 0 tag 4\ny requires x";
    let document = pass(&Goal::new(&[mixed, two]).on_mesh("participants = [0, 7]"), &[]);
    assert!(over(&document, "a") <= over(&document, "b"));
}

#[test]
fn any_order_of_evaluation_gives_the_same_matches() {
    let many = |rank: usize| match rank {
        0 => "recv 400b from -1 tag -1\n".repeat(14),
        rank => format!("a: send {}b to 0 tag {rank}\nb: send 8b to 0 tag 1\nb requires a", 400 - 8 * rank),
    };
    let blocks: Vec<String> = (0..8).map(many).collect();
    let goal = Goal::new(&blocks.iter().map(String::as_str).collect::<Vec<_>>());
    let text = goal.on_mesh("overhead_cycles = 3");
    let plain = pass(&text, &[]);
    assert_eq!(workload(&plain).messages, 14);
    for options in [
        RunOptions { no_skip: true, ..RunOptions::default() },
        RunOptions { order_seed: Some(5), ..RunOptions::default() },
        RunOptions { threads: 2, ..RunOptions::default() },
    ] {
        assert_eq!(run_with(&text, &[], &options).document, plain, "{options:?}");
    }
}
