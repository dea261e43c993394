//! R-TAB-2, R-EP-1: trees that the management agent makes, changes and deletes at run time, with frames that take their time and can
//! be lost; and addresses that are given again while frames of the tree before are still under way.

use std::fmt::Write;

use watershed::scenario::result::Document;
use watershed::scenario::run::{RunOptions, run};
use watershed::scenario::why::{Kind, WhyQuery};
use watershed::scenario::{load_file, load_text};

use crate::order_of_evaluation_changes_nothing::every_way;
use crate::support::{armed, engines, passed, reduction, refused, root, shipped};

/// A tree of 4 x 4 leaves with an agent at end point 15, and what else there is.
fn scenario(rest: &str) -> String {
    format!(
        "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [4, 4]\n[link]\nlatency_cycles = 5\n\
         [armed.agent]\nend_point = 15\norder_timeout_cycles = 1000\nanswer_timeout_cycles = 12000\n{rest}"
    )
}

/// A reduction whose tree the agent makes.
fn asking(name: &str, rest: &str) -> String {
    format!(
        "[[armed.reduction]]\nname = \"{name}\"\nop = \"int-sum\"\nrounds = 3\nconfigured_by = \"agent\"\n\
         compute_cycles = 100\n{rest}\n"
    )
}

fn cycles(document: &Document, name: &str) -> u64 {
    reduction(document, name).configured.as_ref().and_then(|of| of.cycles).expect("the agent answered")
}

#[test]
fn trees_are_made_changed_and_deleted_with_frames() {
    let document = shipped("agent-trees", &[]);
    passed(&document);
    let agent = armed(&document).agent.expect("there is an agent");
    assert_eq!((agent.granted, agent.changed, agent.deleted, agent.refused), (4, 2, 1, 0));
    for (name, rounds, participants) in [("work", 5, 14), ("joined", 5, 15), ("left", 5, 11), ("next", 5, 9)] {
        let of = reduction(&document, name);
        assert_eq!((of.outcomes.complete, of.participants), (rounds, participants), "{name}");
        assert_eq!((of.method.as_str(), of.bit_exact), ("engines", Some(true)), "{name}");
        let shares: Vec<&str> = of.merged_at.iter().map(|share| share.place.as_str()).collect();
        assert!(
            shares.iter().all(|place| place.starts_with("engines")),
            "{name}: numbers of the job before are not its: {shares:?}"
        );
        assert!(of.start_cycle >= of.configured.as_ref().unwrap().answered_cycle, "{name} arms when it has its tree");
    }
    // Two requests' frames, five orders one after another in time, their answers: never less than the way of them takes.
    assert!(cycles(&document, "work") > 2000 + 4 * 11, "{}", cycles(&document, "work"));
    // Changing is erasing and then writing: the agent computes once, and asks every switch twice.
    assert!(cycles(&document, "joined") > cycles(&document, "work"));
    let (left, next) = (reduction(&document, "left"), reduction(&document, "next"));
    assert_eq!(left.configured.as_ref().unwrap().deleted, Some(true));
    assert_eq!(left.multicast_ids, next.multicast_ids, "the address is used again");
    // Every entry that was written for the first three is erased again; those of the last stay.
    assert_eq!(agent.written - agent.erased, 4, "the switches over 0 to 3, 4 to 7, 8 to 11, and the highest");
}

#[test]
fn set_up_takes_as_long_as_its_frames() {
    let run = |latency: u64| {
        let text = scenario(&asking("a", "")).replace("latency_cycles = 5", &format!("latency_cycles = {latency}"));
        let document = every_way(&text, &[1]);
        passed(&document);
        cycles(&document, "a")
    };
    let (near, far) = (run(5), run(105));
    // From the root's switch to the agent's and back, and from there to the farthest switch and back: six links, one of which
    // may be passed while the agent still waits for another answer.
    assert!(far - near >= 100 * 5 && far - near <= 100 * 24, "{near} {far}");
}

/// H-WIDTH-1: requests, orders and their answers are cut into flits, too, each stored whole by who it is for.
#[test]
fn set_up_takes_as_long_as_its_flits() {
    let flits = |bits: u64| (84 * 8_u64).div_ceil(bits) as i64;
    for switches in 1..=3 {
        let size = vec![1; switches];
        // The root is at the highest switch, the agent is the only leaf, at the other end of the line. Links are longer than
        // frames, so that no two answers meet.
        let text = |link: &str| {
            format!(
                "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = {size:?}\n[link]\nlatency_cycles = 200\n{link}\
                 [armed.agent]\nend_point = 0\n{}",
                asking("a", "delete_tree = true")
            )
        };
        let set_up = |link: &str| {
            let document = every_way(&text(link), &[1]);
            passed(&document);
            let agent = armed(&document).agent.unwrap();
            assert_eq!((agent.granted, agent.deleted, agent.resent), (1, 1, 0));
            assert_eq!((agent.written, agent.erased), (switches as u64, switches as u64));
            cycles(&document, "a") as i64
        };
        let words = set_up("");
        // Every size where the way is longest.
        let sizes: &[u64] = if switches == 3 { &[32, 96, 128, 160, 512, 672, 4096] } else { &[96] };
        for &bits in sizes {
            // The request, the order to the farthest switch, which is the first, its answer, and that to the root.
            let expected = words + 4 * (flits(bits) - flits(64));
            assert_eq!(set_up(&format!("flit_bits = {bits}\n")), expected, "{switches} switches, {bits} bits");
        }
    }
}

/// Jobs that follow each other in one tree that is changed, with sums that the test adds up, in flits of every size.
#[test]
fn trees_of_flits_of_every_size_hold_the_sums() {
    let operand = |job: u64, rank: u64, k: u64| (job * 7919 + rank * 104_729 + k * 1_299_709) as i64 - 500_000;
    // The root is the first of each.
    let participants = [vec![16, 0, 1, 2, 3, 4, 5, 6], vec![16, 0, 1, 2, 3, 4, 5, 6, 12], vec![16, 4, 5, 6, 12]];
    let mut text = scenario("");
    for (ends, job) in participants.iter().zip(0u64..) {
        let row = |rank: u64| (0..4).map(|k| operand(job, rank, k).to_string()).collect::<Vec<_>>().join(", ");
        let rows: Vec<String> = (0..ends.len() as u64).map(|rank| format!("[{}]", row(rank))).collect();
        let changes = if job > 0 { format!("armed.changes = \"job{}\"\n", job - 1) } else { String::new() };
        let _ = write!(
            text,
            "[[job]]\nname = \"job{job}\"\nop = \"sum\"\ndtype = \"i64\"\nelements = 4\nparticipants = {ends:?}\n\
             armed.root = 16\narmed.configured_by = \"agent\"\n{changes}data = {{ values = [{}] }}\n",
            rows.join(", ")
        );
    }
    for bits in [32, 64, 96, 128, 512] {
        let loaded = load_text("test.toml", &text, root(), "test", &[format!("link.flit_bits={bits}")]);
        let loaded = loaded.unwrap_or_else(|problems| panic!("{problems}"));
        let result = run(&loaded, &RunOptions::default()).unwrap();
        passed(&result.document);
        for (ends, job) in participants.iter().zip(0u64..) {
            let sum = |k| (0..ends.len() as u64).map(|rank| operand(job, rank, k)).sum::<i64>() as u64;
            let data = result.data.iter().find(|of| of.name == format!("job{job}")).expect("every job has results");
            let rows: Vec<&[u64]> = data.rows.iter().collect();
            assert!(
                !rows.is_empty() && rows.iter().all(|row| row[..4] == [0, 1, 2, 3].map(sum)),
                "{bits} {job} {rows:?}"
            );
            assert_eq!(reduction(&result.document, &format!("job{job}")).method, "engines");
        }
        let agent = armed(&result.document).agent.unwrap();
        assert_eq!((agent.granted, agent.changed, agent.refused, agent.resent), (3, 2, 0, 0), "{bits}");
    }
}

#[test]
fn lost_orders_and_requests_are_sent_again() {
    for (fault, resent) in [
        ("effect = \"drop\"\nat = \"s0\"\nway = \"agent\"\nnth = 0\n", true),
        ("effect = \"corrupt\"\nat = \"s1\"\nway = \"agent\"\nnth = 1\n", true),
        ("effect = \"duplicate\"\nat = \"all\"\nway = \"agent\"\n", false),
    ] {
        let layer = "[armed.link_layer]\nsequence_check = false\n";
        let text = scenario(&format!("{layer}{}[[armed.fault]]\n{fault}", asking("a", "delete_tree = true")));
        let document = every_way(&text, &[2]);
        passed(&document);
        let agent = armed(&document).agent.unwrap();
        assert_eq!((agent.granted, agent.deleted, agent.given_up), (1, 1, 0), "{fault}");
        assert_eq!(agent.resent > 0, resent, "{fault}: {agent:?}");
        assert_eq!(agent.written, agent.erased, "{fault}");
        assert_eq!(reduction(&document, "a").outcomes.complete, 4, "{fault}");
    }
    // A request that is lost is asked again by the root.
    let text = scenario(&format!(
        "{}[[armed.fault]]\neffect = \"drop\"\nat = \"root0\"\nway = \"agent\"\nnth = 0\n",
        asking("a", "")
    ));
    let document = every_way(&text, &[3]);
    passed(&document);
    assert_eq!(reduction(&document, "a").configured.as_ref().unwrap().requests, 2);
}

#[test]
fn a_dead_agent_makes_jobs_reduce_in_software() {
    let rest = asking("a", "") + &asking("b", "changes = \"a\"\nroot = 1\nparticipants = [0, 3, 9]");
    let text = scenario(&format!("{rest}[[armed.fault]]\neffect = \"dead\"\nat = \"leaf15\"\n"));
    // End point 15 takes part in neither.
    let text = text.replace("name = \"a\"\n", "name = \"a\"\nroot = 1\nparticipants = [1, 2, 5, 6, 8, 12]\n");
    let document = every_way(&text, &[4]);
    passed(&document);
    for name in ["a", "b"] {
        let of = reduction(&document, name);
        assert_eq!((of.method.as_str(), of.outcomes.complete), ("software", 3), "{name}");
        assert_eq!(of.refused.as_deref(), Some("the agent did not answer 3 requests"), "{name}");
    }
}

#[test]
fn a_full_table_and_a_silent_switch_refuse_the_tree() {
    let full = scenario(&asking("a", "")).replace("[armed.agent]", "[armed]\ntable_entries = 0\n[armed.agent]");
    let document = every_way(&full, &[5]);
    passed(&document);
    let of = reduction(&document, "a");
    assert_eq!((of.method.as_str(), of.outcomes.complete), ("software", 3));
    assert!(of.refused.as_deref().unwrap().contains("full"), "{:?}", of.refused);

    let fault = "[[armed.fault]]\neffect = \"drop\"\nat = \"s0\"\nway = \"agent\"\n";
    let document = every_way(&scenario(&format!("{}{fault}", asking("a", ""))), &[6]);
    passed(&document);
    let (of, agent) = (reduction(&document, "a"), armed(&document).agent.unwrap());
    assert_eq!(of.refused.as_deref(), Some("a switch did not answer the agent"));
    assert_eq!((of.method.as_str(), of.outcomes.complete), ("software", 3));
    assert_eq!((agent.given_up, agent.written), (2, agent.erased), "what was written is erased: {agent:?}");
}

/// The tree of the first job is deleted while a frame of it is held up on the way to the highest switch; the second job gets
/// its address, and is gathering when that frame comes.
fn reuse(second: &str) -> Document {
    let first = "root = 16\nparticipants = [0, 1, 4, 5]\nopening_barrier = false\ndelete_tree = true\nmax_retries = 0\n\
                 retry_after_cycles = 5000\nvni = 7\ncookie = 99\n";
    let second = format!(
        "root = 16\nparticipants = [0, 4, 8]\nstart_cycle = 15000\nopening_barrier = false\n{second}\n\
         retry_after_cycles = 60000\nlate = [{{ end_point = 8, round = 0, cycles = 30000 }}]\n"
    );
    let fault = "[[armed.fault]]\neffect = \"delay\"\nat = \"s0\"\nnth = 0\ndelay_cycles = 30000\n";
    let long = "[armed.engine]\ntimeouts_1024_cycles = [50, 50, 50, 50]\n";
    every_way(&scenario(&format!("{long}{}{}{fault}", asking("a", first), asking("b", &second))), &[7])
}

#[test]
fn a_stale_frame_of_a_deleted_tree_is_not_merged() {
    let document = reuse("");
    let (first, second) = (reduction(&document, "a"), reduction(&document, "b"));
    assert_eq!(first.outcomes.incomplete, 1, "the root gave up while the frame was held up");
    assert_eq!(first.configured.as_ref().unwrap().deleted, Some(true));
    assert_eq!(first.multicast_ids, second.multicast_ids, "the second has its address");
    assert_eq!((second.outcomes.complete, second.bit_exact), (3, Some(true)));
    assert!(engines(&document, "wrong_vni") + engines(&document, "wrong_cookie") > 0, "it met an engine of the second");
}

#[test]
fn keys_that_had_an_address_never_get_it_again() {
    let document = reuse("vni = 7\ncookie = 99");
    let (first, second) = (reduction(&document, "a"), reduction(&document, "b"));
    assert_ne!(first.multicast_ids, second.multicast_ids, "or its frames could be taken for the second's");
    assert_eq!((second.outcomes.complete, second.bit_exact), (3, Some(true)));
}

#[test]
fn two_trees_flows_and_ethernet_work_at_run_time_too() {
    let text = "family = \"armed\"\n[topology]\nkind = \"fat-tree\"\narity = 2\nlevels = 3\n[armed]\nethernet = [1, 6]\n\
                [armed.agent]\nend_point = 0\n[[armed.reduction]]\nname = \"a\"\nop = \"int-sum\"\nrounds = 6\nroot = 2\n\
                redundant = true\nreduction_ids = 3\nconfigured_by = \"agent\"\ndelete_tree = true\n";
    let document = every_way(text, &[8]);
    passed(&document);
    let of = reduction(&document, "a");
    assert_eq!((of.multicast_ids.len(), of.outcomes.complete), (2, 9));
    // The agent's own end point can ask it, too.
    let own = text.replace("root = 2", "root = 0");
    let document = every_way(&own, &[9]);
    passed(&document);
    assert_eq!(reduction(&document, "a").outcomes.complete, 9);
}

#[test]
fn the_set_up_is_a_part_of_the_first_round() {
    let text = scenario(&asking("a", "opening_barrier = false"));
    let loaded = load_text("test.toml", &text, root(), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    for (round, there) in [(0, true), (1, false)] {
        let why = Some(WhyQuery { packet: Some(round), ..WhyQuery::default() });
        let result =
            run(&loaded, &RunOptions { why, ..RunOptions::default() }).unwrap_or_else(|error| panic!("{error}"));
        let why = result.why.first().unwrap_or_else(|| panic!("{:?}", result.notes));
        let set_up: u64 =
            why.parts.iter().filter(|part| part.kind == Kind::SetUp).map(|part| part.to - part.from).sum();
        assert_eq!(set_up, if there { cycles(&result.document, "a") } else { 0 });
    }
    // With an opening barrier the first data round begins with the request, too.
    let overrides = ["armed.reduction[0].opening_barrier=true".to_owned()];
    let loaded = load_file(&root().join("testbench/armed/agent-trees.toml"), &overrides).expect("it is sound");
    let why = Some(WhyQuery { packet: Some(0), collective: Some("work"), ..WhyQuery::default() });
    let result = run(&loaded, &RunOptions { why, ..RunOptions::default() }).unwrap_or_else(|error| panic!("{error}"));
    let why = result.why.first().unwrap_or_else(|| panic!("{:?}", result.notes));
    assert!(why.parts.iter().any(|part| part.kind == Kind::SetUp));
    assert_eq!(why.parts.iter().map(|part| part.to - part.from).sum::<u64>(), why.latency_cycles);
}

#[test]
fn what_cannot_be_configured_is_refused_in_place() {
    let agent = |rest: &str| refused(&scenario(rest));
    let none = scenario(&asking("a", ""))
        .replace("[armed.agent]\nend_point = 15\norder_timeout_cycles = 1000\nanswer_timeout_cycles = 12000\n", "");
    assert!(refused(&none).contains("there is no agent that could write its tree"));
    assert!(agent(&asking("a", "method = \"software\"")).contains("a software reduction has no tree"));
    let two = |rest: &str| agent(&(asking("work", "") + &asking("b", rest)));
    assert!(two("changes = \"wrok\"").contains("did you mean \"work\"") || two("changes = \"wrok\"").contains("work"));
    assert!(two("changes = \"wrok\"").contains("there is no earlier reduction \"wrok\""));
    assert!(two("changes = \"work\"\nroot = 3").contains("the root of \"work\" is end point 16"));
    let deleted = agent(&(asking("work", "delete_tree = true") + &asking("b", "changes = \"work\"")));
    assert!(deleted.contains("nothing is left to change"));
    let twice = asking("work", "") + &asking("b", "changes = \"work\"") + &asking("c", "changes = \"work\"");
    assert!(agent(&twice).contains("is changed twice"));
    let plain = "[[armed.reduction]]\nop = \"int-sum\"\ndelete_tree = true\n";
    assert!(agent(plain).contains("`delete_tree` needs a tree that is made at run time"));
    assert!(refused(&scenario("").replace("end_point = 15", "end_point = 99")).contains("there is no end point 99"));
}
