//! Trees that overlap take turns by claims: collectives that start by themselves, called ones, multicasts (P-SW-7, H-CLAIM-1).

use std::fmt::Write as _;

use crate::campaign;
use crate::sets;
use crate::support::{Draw, die, load, mesh, pass, ready, run_with};
use watershed::fabric::Cause;
use watershed::fabric::topology::EndPlace;
use watershed::piuma::legality::{ConfigPoint, Footprint, meet};
use watershed::scenario::result::{Document, Outcome};
use watershed::scenario::run::{RunOptions, run};
use watershed::scenario::why::{Kind, WhyQuery};

const UNLIMITED: &str = "[memory]\nbandwidth_gbps = \"unlimited\"\n";

fn called(id: u32, participants: &str) -> String {
    format!("[[collective]]\nname = \"c{id}\"\nkind = \"allreduce\"\nid = {id}\ncalled = true\n{participants}\n")
}

fn program(cores: &str, text: &str) -> String {
    format!("[[program]]\ncores = {cores}\ntext = '''\n{text}\n'''\n")
}

const ALL: &str = "[0, 1, 2, 3, 4, 5, 6, 7]";

#[test]
fn two_calls_under_way_at_once_end() {
    let text = die(&(UNLIMITED.to_owned()
        + &called(0, "")
        + &called(1, "")
        + &program(
            ALL,
            ".random 0, 400, f64\nallreduce.nb r1, 0, 0, 0x8000, 200\nallreduce.nb r2, 1, 0, 0xC000, 200\nwait r1\nwait r2",
        )));
    let document = pass(&text, &[]);
    let calls = document.programs.expect("programs").calls;
    assert!(calls.iter().all(|call| call.bit_exact == Some(true)));
    // 200 words each, one a cycle, one vector behind the other.
    assert!((400..700).contains(&document.cycles), "{}", document.cycles);
}

#[test]
fn a_call_and_one_that_starts_by_itself_take_turns() {
    let own = "[[collective]]\nname = \"self\"\nkind = \"allreduce\"\nid = 0\nelements = 200\n";
    let text = die(&(UNLIMITED.to_owned()
        + own
        + &called(1, "")
        + &program(ALL, ".random 0, 200, f64\ncompute 20\nallreduce 1, 0, 0x8000, 200")));
    let document = pass(&text, &[]);
    assert!((400..700).contains(&document.cycles), "{}", document.cycles);
}

/// An all-reduce over switches of a multicast of 400 messages, whose receiver begins to take them in a cycle.
fn beside_a_multicast(takes_from: u64, messages: u64) -> Document {
    let text = die(&format!(
        "[[collective]]\nname = \"sum\"\nkind = \"allreduce\"\nid = 0\nelements = 4\nstart_cycle = 3000\n\
         [[multicast]]\nid = 1\nsource = 0\nreceivers = [5]\n{}{}",
        program("[0]", "again: mcast.send 1, r1, 3, 8\nadd r1, r1, 1\nbne r1, 400, again"),
        program(
            "[5]",
            &format!(
                "compute {takes_from}\nagain: mcast.wait r1, r2, 1, 8\nexpect r1, r3\nadd r3, r3, 1\nbne r3, {messages}, again"
            )
        )
    ));
    run_with(&text, &[], &RunOptions::default()).document
}

#[test]
fn an_all_reduce_takes_the_same_cycles_whether_a_multicast_drains() {
    // Credits run out long before cycle 3,000 in the one, and never are short after the last message in the other.
    let stuck = beside_a_multicast(20_000, 400);
    assert!(stuck.passed(), "{:?}", stuck.checks);
    let drained = pass(
        &die("[[collective]]\nname = \"sum\"\nkind = \"allreduce\"\nid = 0\nelements = 4\nstart_cycle = 3000\n\
              [[multicast]]\nid = 1\nsource = 0\nreceivers = [5]\n"),
        &[],
    );
    let latency = |document: &Document| document.collectives[0].latency_cycles.expect("it ended");
    assert_eq!(latency(&stuck), latency(&drained));
    assert!(latency(&stuck) < 200, "{}", latency(&stuck));
    // One that drains delays it by no more than a grant: the messages of a queue.
    let draining = beside_a_multicast(2990, 400);
    assert!(draining.passed());
    assert!(latency(&draining) <= latency(&drained) + 100, "{}", latency(&draining));
    // A receiver that never takes anything holds up its source, and nobody else.
    let never = beside_a_multicast(1 << 40, 1);
    assert_eq!(latency(&never), latency(&drained));
}

#[test]
fn waits_for_a_claim_are_counted_as_such() {
    let document = beside_a_multicast(2, 400);
    assert!(document.passed());
    let waits = document.links.waits.expect("monitors look");
    assert!(waits.blocks.get(Cause::Claim.name()).is_some_and(|&cycles| cycles > 0), "{waits:?}");
}

/// A row of cores, and the root of an all-reduce of all of them.
fn row(cores: u32, root: u32, rest: &str) -> String {
    mesh(
        &[cores],
        1,
        &format!("[[collective]]\nname = \"all\"\nkind = \"allreduce\"\nid = 0\nroot = \"s{root}\"\n{rest}"),
    )
}

#[test]
fn a_claim_costs_what_its_formula_says() {
    let end = |text: &str, index: usize| pass(text, &[]).collectives[index].end_cycle.expect("it ended");
    for (cores, root) in [(2u32, 0u32), (3, 1), (5, 0), (8, 3), (13, 12)] {
        let alone = end(&row(cores, root, ""), 0);
        // Another one on its switches, much later.
        let other = "[[collective]]\nname = \"pair\"\nkind = \"allreduce\"\nid = 1\nparticipants = [0, 1]\nroot = \"s0\"\nstart_cycle = 90000\n";
        let both = row(cores, root, other);
        let wiring = ready(&both, &[]).claims.wiring;
        // A hop takes a link and a register; the core's own link is one, too.
        let (link, local) = (5 + 1, 1 + 1);
        let climb = |core: u32, root: u32| local + link * u64::from(core.abs_diff(root));
        let far = (0..cores).map(|core| climb(core, root)).max().expect("cores");
        for (leaf, of) in (0..).zip(&wiring.trees[0].leaves) {
            assert_eq!(wiring.price(0, leaf), far + 1 + climb(of.place.switch, root));
        }
        // Who is furthest away starts last, and decides.
        assert_eq!(end(&both, 0), alone + 2 * far + 1, "{cores} cores, root {root}");
        // The arbiter is at the root of the lower id.
        let pair = mesh(&[cores], 1, &other.replace("start_cycle = 90000\n", ""));
        let (lone, reach) = (end(&pair, 0), link * u64::from(root));
        assert_eq!(end(&both, 1), 90_000 + lone + 2 * climb(1, 0) + 2 * reach + 1, "{cores} cores, root {root}");
    }
}

#[test]
fn a_tree_that_is_alone_pays_nothing() {
    let left = "[[collective]]\nname = \"left\"\nkind = \"allreduce\"\nid = 0\nparticipants = [0, 1, 2]\nroot = \"core0\"\nelements = 9\n";
    let right =
        "[[collective]]\nname = \"right\"\nkind = \"allreduce\"\nid = 1\nparticipants = [5, 6]\nroot = \"core5\"\n";
    let alone = pass(&die(left), &[]).collectives[0].end_cycle;
    let beside = die(&(left.to_owned() + right));
    assert!(ready(&beside, &[]).claims.wiring.is_empty());
    assert_eq!(pass(&beside, &[]).collectives[0].end_cycle, alone);
    // The same for messages: a third tree that meets another one elsewhere changes nothing for these.
    let tree = "[[multicast]]\nid = 2\nsource = 5\nreceivers = [6]\n";
    let send = program("[5]", "mcast.send 2, 7, 1, 8") + &program("[6]", "mcast.wait r1, r2, 2, 8\nreport r1");
    let report = |text: &str| {
        let cores = pass(text, &[]).programs.expect("programs").cores;
        cores.iter().find(|core| core.core == 6).expect("core 6 reports").reports[0].cycle
    };
    let lone = report(&die(&(tree.to_owned() + &send)));
    assert_eq!(report(&die(&(tree.to_owned() + left + &send))), lone);
    // Beside one that overlaps it, a message pays for its claim: to the arbiter and back.
    let overlaps = die(&(tree.to_owned() + &right.replace("id = 1", "id = 1\nstart_cycle = 90000") + &send));
    let wiring = ready(&overlaps, &[]).claims.wiring;
    assert_eq!(report(&overlaps), lone + wiring.price(1, 0));
}

#[test]
fn calls_that_wait_in_a_circle_are_named_with_their_ranks() {
    let call = |first: u32, second: u32| format!("allreduce {first}, 0, 0x8000, 4\nallreduce {second}, 0, 0x8000, 4");
    let text = mesh(
        &[3],
        1,
        &(called(0, "participants = [0, 1]")
            + &called(1, "participants = [1, 2]")
            + &called(2, "participants = [2, 0]")
            + &program("[0]", &call(0, 2))
            + &program("[1]", &call(1, 0))
            + &program("[2]", &call(2, 1))),
    );
    let document = run_with(&text, &[], &RunOptions::default()).document;
    assert_eq!(document.outcome, Outcome::Deadlock);
    let told =
        document.checks.iter().find(|check| check.name == "progress").map(|check| check.detail.clone()).expect("it");
    assert!(told.contains("3 cores wait for each other's calls in a circle"), "{told}");
    for line in [
        "s0.node, thread 0 on MTP 0, line 1: waits since cycle 0 in call 0 of c0, which s1.node has not called",
        "s1.node, thread 0 on MTP 0, line 1: waits since cycle 0 in call 0 of c1, which s2.node has not called",
        "s2.node, thread 0 on MTP 0, line 1: waits since cycle 0 in call 0 of c2, which s0.node has not called",
    ] {
        assert!(told.contains(line), "no \"{line}\" in\n{told}");
    }
    // In one order over all ranks they end.
    let orders = [(0, 2), (0, 1), (1, 2)];
    let ordered = mesh(
        &[3],
        1,
        &(called(0, "participants = [0, 1]")
            + &called(1, "participants = [1, 2]")
            + &called(2, "participants = [2, 0]")
            + &(0..3)
                .map(|core| program(&format!("[{core}]"), &call(orders[core].0, orders[core].1)))
                .collect::<String>()),
    );
    assert!(pass(&ordered, &[]).passed());
}

#[test]
fn why_shows_claims_as_parts_of_their_own() {
    let text = die(&(UNLIMITED.to_owned()
        + &called(0, "")
        + &called(1, "")
        + &program(
            ALL,
            ".random 0, 100, f64\nallreduce.nb r1, 0, 0, 0x8000, 100\nallreduce.nb r2, 1, 0, 0xC000, 100\nwait r1\nwait r2",
        )));
    let loaded = load(&text, &[]);
    let why = run(&loaded, &RunOptions { why: Some(WhyQuery::default()), ..RunOptions::default() }).unwrap().why;
    assert_eq!(why.len(), 2);
    let cycles =
        |at: usize, kind: Kind| why[at].by_kind().iter().find(|(of, _)| *of == kind).map_or(0, |(_, cycles)| *cycles);
    let wiring = ready(&text, &[]).claims.wiring;
    let price = |tree: u16| (0..8).map(|leaf| wiring.price(tree, leaf)).max().expect("cores");
    // Nobody holds the first one up: its claim is the formula's cycles. The second one waits for the first.
    assert_eq!((cycles(0, Kind::Claim), cycles(0, Kind::ClaimHeld)), (price(0), 0));
    assert_eq!(cycles(1, Kind::Claim), price(1));
    assert!(cycles(1, Kind::ClaimHeld) >= 100);
}

#[test]
fn credits_need_a_slot_for_every_sender() {
    let trees =
        "[[multicast]]\nid = 1\nsource = 0\nreceivers = [1]\n[[multicast]]\nid = 1\nsource = 2\nreceivers = [1]\n";
    let rest = called(0, "participants = [0, 1, 2, 3]")
        + trees
        + &program("[0]", "mcast.send 1, 5, 1, 8")
        + &program("[2]", "mcast.send 1, 6, 1, 8")
        + &program("[1]", "mcast.wait r1, r2, 1, 8\nreport r1\nmcast.wait r1, r2, 1, 8\nreport r1");
    let refused = crate::support::refusal(&die(&rest), &sets!["core.mcast_queue_depth=1"]);
    assert!(refused.contains("2 cores send messages of tree 1 to the queue of core 1"), "{refused}");
    pass(&die(&rest), &sets!["core.mcast_queue_depth=2"]);
}

#[test]
fn registers_that_programs_write_make_trees_claim() {
    // The tree of messages leads from core 1 to core 2 by core 3, until core 0 writes that it goes by core 0, over the link by which
    // the calls come to their root. They pass that switch by other ports before.
    let tree = "[[multicast]]\nid = 1\nsource = 1\nreceivers = [2]\n[multicast.registers]\ncore1.request = { I7 = [3] }\n\
        core3.request = { I3 = [2] }\ncore2.request = { I2 = [7] }\n";
    let writes = "store [0x2000000001001038], 4\nstore [0x2000000000001010], 8\nstore [0x2000000002001018], 0x80\n";
    let body = |first: &str, rest: &str| {
        die(&(called(0, "participants = [0, 4]\nroot = \"core2\"")
            + tree
            + &program("[0]", &format!("{first}allreduce 0, 0, 0x8000, 40"))
            + &program("[4]", "compute 400\nallreduce 0, 0, 0x8000, 40")
            + &program("[1]", &format!("{rest}mcast.send 1, 77, 1, 8"))
            + &program("[2]", "mcast.wait r1, r2, 1, 8\nreport r1")))
    };
    // Nothing meets, and nobody may write: no claim. Then they meet, and take turns.
    assert!(ready(&body("", ""), &[]).claims.wiring.is_empty());
    let held = |text: &str| {
        let document = pass(text, &[]);
        document.links.waits.expect("monitors look").blocks.get("claim_held").copied().unwrap_or(0)
    };
    assert_eq!(held(&body("compute 300\n", "compute 200\n")), 0);
    assert!(held(&body(&format!("{writes}compute 300\n"), "compute 200\n")) > 0);
    // While a call waits for others or is at work, too.
    assert!(pass(&body(writes, "compute 300\n"), &[]).passed());
}

#[test]
fn a_tree_is_rewritten_while_another_one_is_half_called() {
    // Core 4 is in its call when core 0 writes the other tree, which then goes from core 1 by cores 3 and 2, and calls that first. So
    // the other call cannot end before the change is made.
    let writes = "store [0x2000000001001038], 8\nstore [0x2000000003001018], 4\nstore [0x2000000002001010], 8\n\
        store [0x2000000000001018], 0x400\nstore [0x2000000000001010], 0\nstore [0x2000000000001450], 0x88\n\
        store [0x2000000002001418], 4\nstore [0x2000000003001410], 8\nstore [0x2000000001001418], 0x80\n\
        store [0x2000000001001410], 0\n";
    let body = |writes: &str| {
        die(&(called(0, "participants = [0, 4]\nroot = \"core0\"")
            + &called(1, "participants = [0, 1]\nroot = \"core0\"")
            + &program(
                "[0]",
                &format!("compute 200\n{writes}compute 300\nallreduce 1, 0, 0x8000, 40\nallreduce 0, 0, 0x8000, 40"),
            )
            + &program("[4]", "allreduce 0, 0, 0x8000, 40")
            + &program("[1]", "compute 400\nallreduce 1, 0, 0x8000, 40")))
    };
    for text in [body(""), body(writes)] {
        assert_eq!(ready(&text, &[]).claims.wiring.trees.len(), 2);
        let document = pass(&text, &[]);
        let calls = document.programs.expect("programs").calls;
        assert!(calls.iter().all(|call| call.bit_exact == Some(true)), "{calls:?}");
        let by = document.links.all.expect("all links");
        let flits = by.iter().find(|link| link.name == "core3.P2 -> core2.P2").map_or(0, |link| link.flits);
        // Core 1's words, beside what the stores and their answers are.
        assert_eq!(flits >= 40, text.contains("store"), "{flits}");
        let no_skip = RunOptions { no_skip: true, ..RunOptions::default() };
        assert_eq!(run_with(&text, &[], &no_skip).document.cycles, document.cycles);
    }
}

#[test]
fn a_link_is_shared_whatever_its_channel() {
    let link = |switch: u32, channel: u8, port: u16| ConfigPoint { switch, channel, port };
    let of = |links: &[ConfigPoint], engine: u32, sent: u32| Footprint {
        links: links.to_vec(),
        engines: vec![engine],
        switches: Vec::new(),
        sent: vec![EndPlace { switch: sent, port: 7 }],
        reached: Vec::new(),
        root: None,
        tree: None,
    };
    let one = of(&[link(1, 0, 2), link(3, 1, 4), link(9, 0, 0)], 1, 1);
    assert!(!meet(&one, &of(&[link(1, 0, 3), link(2, 0, 2), link(3, 0, 2), link(3, 1, 2)], 2, 2)));
    assert!(meet(&one, &of(&[link(0, 0, 4), link(3, 0, 2), link(3, 0, 4)], 2, 2)), "requests beside responses");
    assert!(meet(&one, &of(&[link(2, 0, 4)], 1, 2)), "an engine");
    assert!(meet(&one, &of(&[link(2, 0, 4)], 2, 1)), "the link of a core that sends");
}

#[test]
fn trees_that_pass_a_switch_by_different_ports_claim_nothing() {
    // An all-reduce of cores 0 and 4 whose root is at core 0, and messages from core 1 to core 2 by the switch of core 0, where
    // they come in by port 2 and leave by port 3: no link and no engine is in both.
    let tree = "[[multicast]]\nid = 1\nsource = 1\nreceivers = [2]\n[multicast.registers]\ncore1.request = { I7 = [2] }\n\
        core0.request = { I2 = [3] }\ncore2.request = { I3 = [7] }\n";
    let calls =
        called(0, "participants = [0, 4]\nroot = \"core0\"") + &program("[0, 4]", "allreduce 0, 0, 0x8000, 200");
    let messages = program("[1]", "again: mcast.send 1, r1, 3, 8\nadd r1, r1, 1\nbne r1, 200, again")
        + &program(
            "[2]",
            "compute 500\nagain: mcast.wait r1, r2, 1, 8\nexpect r1, r3\nadd r3, r3, 1\nbne r3, 200, again",
        );
    let both = die(&(UNLIMITED.to_owned() + &calls + tree + &messages));
    assert!(ready(&both, &[]).claims.wiring.is_empty());
    // Whether messages stand in the way or not, the words take the cycles that they take alone.
    let end = |text: &str| pass(text, &[]).programs.expect("programs").calls[0].end_cycle;
    assert_eq!(end(&both), end(&die(&(UNLIMITED.to_owned() + &calls))));
    // Over a link of the calls they take turns.
    let shared = both.replace("root = \"core0\"", "root = \"core2\"");
    assert_eq!(ready(&shared, &[]).claims.wiring.trees.len(), 2);
    pass(&shared, &[]);
}

/// Six ids that overlap: four all-reduces of different cores, called or by themselves, and two multicasts whose receivers are slow,
/// beside packets that fill half of what end points can send.
fn six(seed: u64) -> String {
    let mut draw = Draw(seed);
    let mut tables = format!("seed = {seed}\n[switch]\ncollective_ids = 8\n[topology]\nkind = \"die\"\n");
    let (mut of, mut starts) = (Vec::new(), Vec::new());
    for id in 0..4u64 {
        let mut cores = draw.subset(8);
        if cores.len() < 2 {
            cores = vec![id, id + 4];
        }
        let own = draw.below(3) == 0;
        let dtype = ["f64", "f32", "i64", "bf16"][id as usize];
        let _ = write!(
            tables,
            "[[collective]]\nname = \"c{id}\"\nkind = \"allreduce\"\nid = {id}\ndtype = \"{dtype}\"\nparticipants = {cores:?}\n"
        );
        if own {
            let _ = writeln!(tables, "elements = {}\nstart_cycle = {}", 1 + draw.below(60), draw.below(800));
        } else {
            tables += "called = true\n";
            starts.push(id);
        }
        of.push(cores);
    }
    let mut text: Vec<String> = vec![".random 0, 64, f64\n".to_owned(); 8];
    let mut waits = vec![String::new(); 8];
    for round in 0..2 + draw.below(3) {
        for &id in &starts {
            let elements = 1 + draw.below(60);
            let blocks = draw.below(2) == 0;
            for &core in &of[id as usize] {
                let (core, to) = (core as usize, 0x8000 + (round * 8 + id) * 0x800);
                let _ = writeln!(text[core], "compute {}", draw.below(200));
                let register = round * 4 + id;
                if blocks {
                    let _ = writeln!(text[core], "allreduce {id}, 0, {to}, {elements}");
                } else {
                    let _ = writeln!(text[core], "allreduce.nb r{register}, {id}, 0, {to}, {elements}");
                    let _ = writeln!(waits[core], "wait r{register}");
                }
            }
        }
    }
    for (core, (text, waits)) in text.iter().zip(&waits).enumerate() {
        tables += &program(&format!("[{core}]"), &format!("{text}{waits}"));
    }
    for id in [4, 5] {
        let source = draw.below(8);
        let receivers: Vec<u64> = draw.subset(8).into_iter().filter(|&core| core != source).collect();
        let receivers = if receivers.is_empty() { vec![(source + 3) % 8] } else { receivers };
        let messages = 5 + draw.below(20);
        let _ = write!(tables, "[[multicast]]\nid = {id}\nsource = {source}\nreceivers = {receivers:?}\n");
        tables += &program(
            &format!("[{source}]"),
            &format!("again: mcast.send {id}, r1, 3, 8\nadd r1, r1, 1\nbne r1, {messages}, again"),
        );
        let slow = draw.below(300);
        tables += &program(
            &format!("{receivers:?}"),
            &format!(
                "compute {}\nagain: mcast.wait r1, r2, {id}, 8\nexpect r1, r3\ncompute {slow}\nadd r3, r3, 1\nbne r3, {messages}, again",
                draw.below(3000)
            ),
        );
    }
    tables += "[[traffic]]\npattern = \"uniform\"\nrate = 0.5\n";
    format!("family = \"piuma\"\n{tables}")
}

fn document(text: &str, options: &RunOptions<'_>) -> Result<Document, String> {
    let loaded = watershed::scenario::load_text("six", text, std::path::Path::new("."), "six", &[]);
    let loaded = loaded.map_err(|problems| problems.to_string())?;
    Ok(run(&loaded, options).map_err(|error| error.to_string())?.document)
}

/// Whether a seed of [`six`] ends bit-exact; its document.
fn ends(seed: u64) -> Result<Document, String> {
    let text = six(seed);
    let document = document(&text, &RunOptions::default()).map_err(|error| format!("seed {seed}: {error}\n{text}"))?;
    if document.passed() { Ok(document) } else { Err(format!("seed {seed}: {:#?}\n{text}", document.checks)) }
}

#[test]
fn six_ids_that_overlap_end_exact_with_and_without_skipping() {
    let documents = campaign::over(0..8, ends);
    for (seed, skipped) in (0..3).zip(&documents) {
        let walked = document(&six(seed), &RunOptions { no_skip: true, ..RunOptions::default() }).unwrap();
        let text = |document: &Document| serde_json::to_string(document).unwrap();
        assert_eq!(text(skipped), text(&walked), "seed {seed}");
    }
}

#[test]
#[ignore = "takes minutes: make soak"]
fn six_ids_that_overlap_end_exact_for_a_thousand_seeds() {
    campaign::over(campaign::asked(100..1100), |seed| ends(seed).map(|_| ()));
}
