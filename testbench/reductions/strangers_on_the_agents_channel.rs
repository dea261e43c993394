//! R-TAB-2, R-ERR-1: the management agent, roots and switches obey the agent's frames from those alone who may send them.

use crate::order_of_evaluation_changes_nothing::every_way;
use crate::share;
use crate::support::{armed, passed, reduction, refused};

use watershed::scenario::load_text;
use watershed::scenario::result::Document;
use watershed::scenario::run::{RunOptions, run};

use crate::support::root;

fn scenario(strangers: &str) -> String {
    format!(
        "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [3, 3]\n[link]\nlatency_cycles = 5\n\
         [armed.agent]\nend_point = 8\norder_timeout_cycles = 3000\n[[armed.reduction]]\nname = \"victim\"\nop = \"int-sum\"\n\
         rounds = 20\nconfigured_by = \"agent\"\ndelete_tree = true\ncompute_cycles = 100\nparticipants = [0, 1, 3, 5, 7]\n\
         root = 7\n{strangers}"
    )
}

fn stranger(end: u32, sends: &str) -> String {
    format!(
        "[[armed.stranger]]\nend_point = {end}\nreduction = \"victim\"\nwrong = \"sender\"\nsends = \"{sends}\"\n\
         every_cycles = 40\nuntil_cycle = 12000\n"
    )
}

fn counted(document: &Document, what: &str) -> [u64; 2] {
    let of = armed(document);
    [&of.end_points, &of.switches].map(|map| map.get(what).and_then(serde_json::Value::as_u64).unwrap_or(0))
}

#[test]
fn nobody_else_asks_answers_orders_or_acknowledges() {
    let alone = every_way(&scenario(""), &[1]);
    passed(&alone);
    assert!(armed(&alone).switches.is_empty());
    for (sends, what, at_switch) in [
        ("request", "wrong_sender", false),
        ("delete", "wrong_sender", false),
        ("grant", "wrong_sender", false),
        ("order", "wrong_sender", true),
        ("acknowledgement", "stale", false),
    ] {
        // One takes part, one does not, one is at the agent's or the root's own end point.
        let own = if matches!(sends, "request" | "delete") { 8 } else { 7 };
        let strangers: String = [0, 4, own].map(|end| stranger(end, sends)).concat();
        let orders: Vec<u64> = share::one_in(2, [2, 3]).collect();
        let document = every_way(&scenario(&strangers), &orders);
        passed(&document);
        let (of, before) = (reduction(&document, "victim"), reduction(&alone, "victim"));
        assert_eq!((of.outcomes, of.retries, of.bit_exact), (before.outcomes, 0, Some(true)), "{sends}");
        assert_eq!(of.multicast_ids, before.multicast_ids, "{sends}");
        assert_eq!(of.configured.as_ref().unwrap().deleted, Some(true), "{sends}");
        let (agent, usual) = (armed(&document).agent.unwrap(), armed(&alone).agent.unwrap());
        assert_eq!(agent, usual, "{sends}: the agent did what it does without them");
        let [ends, switches] = counted(&document, what);
        let seen = if at_switch { switches } else { ends };
        assert!(
            seen > 200,
            "{sends}: {seen} refused, {:?} {:?}",
            armed(&document).end_points,
            armed(&document).switches
        );
        assert!(armed(&document).stranger_frames >= seen, "{sends}");
    }
}

#[test]
fn an_order_is_carried_out_when_its_switch_says_so() {
    for rate in [11, 12, 13, 17, 23, 40] {
        let strangers: String = [0, 4, 7].map(|end| stranger(end, "acknowledgement")).concat();
        let text = scenario(&strangers.replace("every_cycles = 40", &format!("every_cycles = {rate}")));
        let loaded = load_text("test.toml", &text, root(), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
        let options = RunOptions { ladder: true, ..RunOptions::default() };
        let ladder = run(&loaded, &options).unwrap_or_else(|error| panic!("{error}")).ladder.expect("it was asked for");
        let switches: Vec<usize> = ["s0", "s1", "s2", "top"]
            .map(|name| ladder.actors.iter().position(|actor| actor == name).expect("each switch has a column"))
            .into();
        let of = |label: &'static str| ladder.messages.iter().filter(move |message| message.label.starts_with(label));
        let granted = of("granted").next().expect("the tree is there").sent;
        let mut done: Vec<u64> = of("done")
            .filter(|message| switches.contains(&message.from))
            .filter_map(|message| message.arrived)
            .collect();
        done.sort_unstable();
        assert!(done.len() == 8 && done[3] <= granted, "every {rate} cycles: {done:?} {granted}");
        assert!(of("done").count() > 200, "strangers say so all the time");
    }
}

#[test]
fn strangers_that_would_be_none_are_refused() {
    let of = |end: u32, sends: &str| refused(&scenario(&stranger(end, sends)));
    assert!(of(8, "order").contains("end point 8 is the agent"));
    assert!(of(8, "grant").contains("end point 8 is the agent"));
    assert!(of(7, "request").contains("is the root"));
    let cookie = scenario(&stranger(0, "delete")).replace("\"sender\"", "\"cookie\"");
    assert!(refused(&cookie).contains("only the sender is wrong"));
    let none = scenario(&stranger(0, "order")).replace("configured_by = \"agent\"\ndelete_tree = true\n", "");
    assert!(refused(&none).contains("there are no such frames"));
}

#[test]
fn the_ladder_shows_requests_orders_and_answers() {
    let loaded =
        load_text("test.toml", &scenario(""), root(), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let options = RunOptions { ladder: true, ..RunOptions::default() };
    let ladder = run(&loaded, &options).unwrap_or_else(|error| panic!("{error}")).ladder.expect("it was asked for");
    let agent = ladder.actors.iter().position(|name| name == "leaf8").expect("the agent has a column");
    let asked = ladder.actors.iter().position(|name| name == "leaf7").expect("the root has one");
    let labelled =
        |label: &str| ladder.messages.iter().filter(|message| message.label.starts_with(label)).collect::<Vec<_>>();
    let one = |label: &str, from: usize, to: usize| {
        let [message] = labelled(label)[..] else { panic!("{label}: {:?}", labelled(label)) };
        assert_eq!((message.from, message.to), (from, to), "{label}");
        (message.sent, message.arrived.expect("nothing is lost"))
    };
    let (ask, granted) = (one("ask for job 0, part 1 of 1", asked, agent), one("granted 0", agent, asked));
    let (delete, deleted) = (one("delete job 0", asked, agent), one("deleted", agent, asked));
    let times = |label: &str| {
        labelled(label).iter().map(|message| (message.sent, message.arrived.unwrap())).collect::<Vec<_>>()
    };
    // Four switches: three of the leaves, and the one above.
    let (writes, erases, mut done) = (times("write 0"), times("erase 0"), times("done 0"));
    done.sort_unstable();
    assert_eq!((writes.len(), erases.len(), done.len()), (4, 4, 8));
    let within = |all: &[(u64, u64)], from: u64, until: u64| {
        all.iter().all(|&(sent, there)| from <= sent && sent + 10 < there && there <= until)
    };
    assert!(within(&writes, ask.1, granted.0) && within(&erases, delete.1, deleted.0), "{writes:?} {erases:?}");
    assert!(within(&done[..4], ask.1, granted.0) && within(&done[4..], delete.1, deleted.0), "{done:?}");
    assert!(ask.0 < ask.1 && granted.1 <= delete.0);
}
