//! What the document of a run says is what happened: rounds that were asked for, initial values that enter once, groups that
//! went on rightly, damage that stays damage, rounds that never ended. And what is lost on the way is made up for: set-up,
//! multicasts, acknowledgements, results (B-CE-2, B-CE-7, B-CE-9, B-ERR-2, B-ERR-3).

use std::path::Path;

use watershed::pbv::packet::{Body, Status};
use watershed::scenario::load_text;
use watershed::scenario::pbv::build::{BuildOptions, build};
use watershed::scenario::result::Document;
use watershed::scenario::run::{RunOptions, run};

use crate::share;

/// What a run says, with and without skipping.
fn document(text: &str) -> Document {
    let loaded = load_text("told", text, Path::new(""), "told", &[]).unwrap();
    let way = |no_skip| run(&loaded, &RunOptions { no_skip, ..RunOptions::default() }).unwrap().document;
    let usual = way(false);
    assert!(way(true) == usual, "evaluating every block in every cycle changes the run\n{text}");
    usual
}

/// The same without the second way, which walks through every time-out cycle by cycle.
fn skipping(text: &str) -> Document {
    run(&load_text("told", text, Path::new(""), "told", &[]).unwrap(), &RunOptions::default()).unwrap().document
}

/// How rounds ended, in the order of collectives, and who is missing.
fn told(document: &Document) -> Vec<(String, Vec<String>)> {
    let all = &document.pbv.as_ref().unwrap().collectives;
    all.iter().flat_map(|of| &of.rounds).map(|round| (round.outcome.clone(), round.missing.clone())).collect()
}

fn passed(document: &Document) {
    let failed: Vec<_> = document.checks.iter().filter(|check| !check.passed).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert!(document.passed());
}

fn row(outcome: &str, missing: &[&str]) -> (String, Vec<String>) {
    (outcome.to_owned(), missing.iter().map(|&name| name.to_owned()).collect())
}

const ONE_SWITCH: &str = "family = \"pbv\"\n[topology]\nkind = \"mesh\"\nsize = [1]\nconcentration = 3\n[pbv.setup]\n\
    configuration = \"side-port\"\n[pbv.engine]\ntimeout_cycles = 300\nretries = 3\n";

#[test]
fn a_group_that_goes_on_rightly_is_not_called_wrong() {
    let text = "family = \"pbv\"\n[topology]\nkind = \"mesh\"\nsize = [1]\nconcentration = 4\n[pbv.setup]\n\
        configuration = \"side-port\"\n[pbv.engine]\ntimeout_cycles = 300\nretries = 1\n[[pbv.collective]]\n\
        kind = \"inter-group-barrier\"\ngroups = [[0, 1], [2, 3]]\nstart_cycle = 1000\ntask_cycles = 50\n\
        [[pbv.collective.late]]\nend_point = 1\ncycles = 2000\n";
    let document = document(text);
    passed(&document);
    // Node 1 came too late: its own group went on rightly, the others were told that it was missing.
    assert_eq!(told(&document)[0], row("incomplete", &["s0.node1"]));
    assert_eq!(told(&document)[1].0, "incomplete");
}

#[test]
fn as_many_rounds_run_as_are_asked_for_when_a_result_is_lost() {
    for nth in 0..7 {
        let text = format!(
            "{ONE_SWITCH}[[pbv.collective]]\nelements = 1\ndtype = \"u64\"\nop = \"sum\"\nrounds = 3\nrearm = true\n\
             blocks = false\nstart_cycle = 1000\ntask_cycles = 50\n[[pbv.fault]]\neffect = \"drop\"\nat = \"s0.node1\"\n\
             way = \"to\"\nfrom_cycle = 1000\nnth = {nth}\n"
        );
        let document = document(&text);
        passed(&document);
        let told = told(&document);
        assert_eq!(told.len(), 3, "{nth}: {told:?}");
        // The engine keeps the answer of the round before: nothing is lost for good.
        assert!(told.iter().all(|(outcome, _)| outcome == "complete" || outcome == "after-retry"), "{nth}: {told:?}");
    }
}

#[test]
fn the_initial_value_enters_once_whatever_the_tree() {
    for (size, tree) in [(1, "routes"), (3, "routes"), (3, "flat"), (3, "monolithic"), (6, "routes")] {
        for order in ["arrival", "pbv"] {
            let each = 6 / size;
            let text = format!(
                "family = \"pbv\"\n[topology]\nkind = \"mesh\"\nsize = [{size}]\nconcentration = {each}\n\
                 [[pbv.collective]]\ndtype = \"i64\"\nop = \"sum\"\nelements = 1\ninitial = 1000\nmaster = \"s0\"\n\
                 tree = \"{tree}\"\norder = \"{order}\"\nrounds = 2\n\
                 data = {{ values = [[1],[2],[3],[4],[5],[6]] }}\n"
            );
            let document = document(&text);
            passed(&document);
            for round in &document.pbv.as_ref().unwrap().collectives[0].rounds {
                let result = u64::from_str_radix(&round.result[0], 16).unwrap();
                assert_eq!(result, 1000 + 1 + 2 + 3 + 4 + 5 + 6, "{size} {tree} {order}");
            }
        }
    }
}

#[test]
fn a_frame_that_is_damaged_twice_does_not_arrive_clean() {
    let text = "family = \"pbv\"\n[topology]\nkind = \"mesh\"\nsize = [2]\nconcentration = 2\n[pbv.setup]\n\
        configuration = \"side-port\"\n[pbv.engine]\ntimeout_cycles = 500\nretries = 1\n[[pbv.collective]]\n\
        dtype = \"u64\"\nop = \"sum\"\nelements = 1\nmaster = \"s0\"\ntree = \"monolithic\"\nstart_cycle = 2000\n\
        task_cycles = 20\n[[pbv.fault]]\neffect = \"corrupt\"\nat = \"s1.node0\"\nfrom_cycle = 2000\n[[pbv.fault]]\n\
        effect = \"corrupt\"\nat = \"s1.node1\"\nfrom_cycle = 2000\n[[pbv.fault]]\neffect = \"corrupt\"\nat = \"s1\"\n\
        from_cycle = 2000\n";
    let document = document(text);
    passed(&document);
    assert_eq!(told(&document), [row("incomplete", &["s1.node0", "s1.node1"])]);
    let pbv = document.pbv.as_ref().unwrap();
    assert_eq!(pbv.refused_by_nodes["damaged"], 6, "the command and two retries for each of two nodes");
}

#[test]
fn damage_of_any_bit_is_found_by_whoever_the_frame_is_for() {
    let text = format!(
        "{ONE_SWITCH}[[pbv.collective]]\ndtype = \"u64\"\nop = \"sum\"\nelements = 40\nrounds = 60\nstart_cycle = 1000\n\
         [[pbv.fault]]\neffect = \"corrupt\"\nat = \"all\"\nfrom_cycle = 1000\nprobability = 0.2\n"
    );
    let document = document(&text);
    passed(&document);
    let pbv = document.pbv.as_ref().unwrap();
    let count = |map: &serde_json::Map<String, serde_json::Value>| map["damaged"].as_u64().unwrap();
    let found = count(&pbv.refused_by_nodes) + count(&pbv.engines.refused);
    assert_eq!(found, pbv.faults.as_ref().unwrap()["corrupted"].as_u64().unwrap());
    assert!(found > 40 && pbv.outcomes.silent == 0, "{found}");
}

#[test]
fn a_round_that_never_ended_fails_the_run_and_is_named() {
    // Nobody has time-outs, and node 1 is never told of the second round's result.
    let text = "family = \"pbv\"\n[topology]\nkind = \"mesh\"\nsize = [1]\nconcentration = 3\n[pbv.setup]\n\
        configuration = \"side-port\"\n[[pbv.collective]]\nname = \"mine\"\nkind = \"multicast\"\ndtype = \"u64\"\nelements = 2\n\
        rounds = 2\nstart_cycle = 1000\n[[pbv.fault]]\neffect = \"drop\"\nat = \"s0.node1\"\nway = \"to\"\nfrom_cycle = 1000\n\
        nth = 2\n";
    let document = document(text);
    assert!(!document.passed());
    let progress = document.checks.iter().find(|check| check.name == "progress").unwrap();
    assert!(!progress.passed, "{}", progress.detail);
    let of = &document.pbv.as_ref().unwrap().collectives[0];
    assert_eq!((of.outcomes.complete, of.outcomes.open, of.bit_exact), (1, 1, None));
    let right = document.checks.iter().find(|check| check.name.starts_with("right or reported")).unwrap();
    assert!(right.detail.starts_with("2 results") || right.detail.starts_with("1 results"), "{}", right.detail);
}

fn multicast(extra: &str) -> Document {
    document(&format!(
        "{ONE_SWITCH}[[pbv.collective]]\nkind = \"multicast\"\ndtype = \"u64\"\nelements = 2\nrounds = 2\nstart_cycle = 3000\n{extra}"
    ))
}

#[test]
fn multicasts_and_their_acknowledgements_are_sent_again() {
    for (at, way, nths) in
        [("s0.node0", "from", 0..4), ("s0.node0", "to", 0..4), ("s0.node1", "from", 0..3), ("s0.node1", "to", 0..5)]
    {
        for nth in nths {
            let document = multicast(&format!(
                "[[pbv.fault]]\neffect = \"drop\"\nat = \"{at}\"\nway = \"{way}\"\nfrom_cycle = 3000\nnth = {nth}\n"
            ));
            passed(&document);
            let told = told(&document);
            assert_eq!(told.len(), 2);
            assert!(told.iter().all(|(outcome, _)| outcome != "incomplete"), "{at} {way} {nth}: {told:?}");
        }
    }
}

/// Each of seven frames at each of six places; in `make test` one in four of these cases, each frame and each place among them.
#[test]
fn multicasts_are_made_up_for_over_levels_of_engines() {
    for case in share::one_in(4, 0..6 * 7) {
        let (at, nth) = (["s0", "s1", "s2", "s2.node0", "s1.node1", "s0.node0"][case / 7], case % 7);
        let text = format!(
            "family = \"pbv\"\n[topology]\nkind = \"mesh\"\nsize = [3]\nconcentration = 2\n[pbv.setup]\n\
             configuration = \"side-port\"\n[pbv.engine]\ntimeout_cycles = 300\nretries = 3\n[[pbv.collective]]\n\
             kind = \"multicast\"\ndtype = \"u64\"\nelements = 2\nrounds = 2\nstart_cycle = 3000\nmaster = \"s0\"\n\
             [[pbv.fault]]\neffect = \"drop\"\nat = \"{at}\"\nfrom_cycle = 3000\nnth = {nth}\n"
        );
        let document = document(&text);
        passed(&document);
        let told = told(&document);
        assert!(told.iter().all(|(outcome, _)| outcome != "incomplete"), "{at} {nth}: {told:?}");
    }
}

#[test]
fn a_posted_multicast_that_is_lost_names_who_has_not_got_it() {
    let text = format!(
        "{ONE_SWITCH}[[pbv.collective]]\nkind = \"multicast\"\nposted = true\ndtype = \"u64\"\nelements = 2\nrounds = 3\n\
         start_cycle = 3000\n[[pbv.fault]]\neffect = \"drop\"\nat = \"s0.node1\"\nway = \"to\"\nfrom_cycle = 3000\nnth = 2\n"
    );
    let document = document(&text);
    passed(&document);
    assert_eq!(told(&document), [row("complete", &[]), row("incomplete", &["s0.node1"]), row("complete", &[])]);
}

#[test]
fn a_full_store_at_a_lower_engine_reaches_the_source_and_ends_every_round() {
    for timeout in [0, 400] {
        let text = format!(
            "family = \"pbv\"\n[topology]\nkind = \"mesh\"\nsize = [2]\nconcentration = 2\n[pbv.setup]\n\
             configuration = \"side-port\"\n[pbv.engine]\ncontexts = 1\ntimeout_cycles = {timeout}\n[[pbv.collective]]\n\
             name = \"a\"\nkind = \"barrier\"\nparticipants = [2, 3]\nmaster = \"s1\"\n[[pbv.collective]]\nname = \"b\"\n\
             kind = \"barrier\"\nmaster = \"s0\"\nsource = 0\nblocks = false\nrounds = 3\n"
        );
        let document = document(&text);
        passed(&document);
        let told = told(&document);
        assert_eq!(told[0], row("complete", &[]));
        for round in &told[1..] {
            assert!(round.0 == "incomplete" && round.1.contains(&"s1".to_owned()), "{timeout}: {round:?}");
        }
        // The source knows why.
        let loaded = load_text("full", &text, Path::new(""), "full", &[]).unwrap();
        let mut ready = build(&loaded, BuildOptions::default()).unwrap();
        watershed::pbv::system::run(&mut ready.system, 1_000_000).unwrap();
        let source = watershed::pbv::system::node(&ready.system, ready.devices[0]);
        assert!(source.mail().iter().any(|(_, frame)| frame.header.status == Status::StoreFull));
        assert_eq!(source.outcomes(1).len(), 3);
        assert!(source.outcomes(1).iter().all(|outcome| outcome.error == Some(Status::StoreFull)));
    }
}

#[test]
fn set_up_frames_that_are_lost_are_sent_again() {
    let mut recovered = 0;
    for (first, configuration) in ["frame-each", "one-frame", "side-port"].into_iter().enumerate() {
        for (second, initialisation) in ["through-master", "each"].into_iter().enumerate() {
            for nth in 0..5 {
                for at in ["s0.node0", "s0", "s1", "s2"] {
                    let text = format!(
                        "family = \"pbv\"\n[topology]\nkind = \"mesh\"\nsize = [3]\nconcentration = 2\n[pbv.setup]\n\
                         configuration = \"{configuration}\"\ninitialisation = \"{initialisation}\"\n[[pbv.collective]]\n\
                         dtype = \"u64\"\nop = \"sum\"\nelements = 2\nrounds = 2\n[pbv.engine]\ntimeout_cycles = 1500\n\
                         retries = 2\n[[pbv.fault]]\neffect = \"drop\"\nat = \"{at}\"\nway = \"from\"\nnth = {nth}\n\
                         until_cycle = 500\n"
                    );
                    // Each of the six ways to set up is walked through cycle by cycle for one of the five frames.
                    let walked = nth == (2 * first + second) % 5;
                    let document = if walked { document(&text) } else { skipping(&text) };
                    let failed: Vec<_> = document.checks.iter().filter(|check| !check.passed).collect();
                    assert!(failed.is_empty(), "{configuration} {initialisation} {at} {nth}: {failed:?}");
                    let rows = told(&document);
                    assert_eq!(rows.len(), 2);
                    let whole = rows.iter().all(|(outcome, _)| outcome != "incomplete");
                    assert!(whole, "{configuration} {initialisation} {at} {nth}: {rows:?}");
                    let refused = &document.pbv.as_ref().unwrap().engines.refused;
                    recovered +=
                        u32::from(refused.contains_key("unknown-context") || refused.contains_key("unknown-device"));
                }
            }
        }
    }
    assert!(recovered > 10, "{recovered} runs had to set up again");
}

#[test]
fn an_error_that_comes_a_round_late_says_nothing_about_the_present_one() {
    let text = "family = \"pbv\"\n[topology]\nkind = \"mesh\"\nsize = [2]\nconcentration = 2\n[pbv.setup]\n\
        configuration = \"side-port\"\n[pbv.engine]\ntimeout_cycles = 300\ntimeout_factor = 2\n[[pbv.collective]]\n\
        dtype = \"u64\"\nop = \"sum\"\nelements = 1\nmaster = \"s0\"\nsource = 0\nrounds = 3\nstart_cycle = 2000\n\
        task_cycles = 20\nblocks = false\n[[pbv.collective.late]]\nend_point = 3\nround = 0\ncycles = 450\n[[pbv.fault]]\n\
        effect = \"delay\"\nat = \"s1\"\nway = \"from\"\nfrom_cycle = 2000\nuntil_cycle = 2400\ndelay_cycles = 500\n";
    let document = document(text);
    passed(&document);
    assert_eq!(told(&document), [row("incomplete", &["s1", "s1.node1"]), row("complete", &[]), row("complete", &[])]);
    assert_eq!(document.pbv.as_ref().unwrap().engines.refused["duplicate"], 3);
}

#[test]
fn more_missing_than_a_frame_can_name_are_named_in_several() {
    let text = "family = \"pbv\"\n[topology]\nkind = \"tree\"\nbranching = [6, 6, 58]\nroots = 1\n[pbv.setup]\n\
        configuration = \"side-port\"\n[pbv.engine]\ntimeout_cycles = 2000\n[[pbv.collective]]\nkind = \"barrier\"\n\
        source = 2088\ntask_cycles = 1000000\n";
    let loaded = load_text("late", text, Path::new(""), "late", &[]).unwrap();
    let mut ready = build(&loaded, BuildOptions::default()).unwrap();
    watershed::pbv::system::run(&mut ready.system, 10_000_000).unwrap();
    let source = watershed::pbv::system::node(&ready.system, ready.devices[2088]);
    let lists: Vec<usize> = source
        .mail()
        .iter()
        .filter_map(|(_, frame)| match &frame.body {
            Body::Missing { devices, .. } => Some(devices.len()),
            Body::Words(_) | Body::Configuration(_) | Body::Initialisation(_) => None,
        })
        .collect();
    // Every node is named, in frames of at most 4080 bytes of payload, of which 16 are the PBV.
    let mut named = watershed::pbv::node::missing(source);
    named.sort_unstable();
    named.dedup();
    assert_eq!(named.iter().filter(|device| ready.devices.contains(device)).count(), 2089);
    assert!(lists.len() >= 2 && lists.iter().all(|&length| 16 + 2 * length <= 4080), "{lists:?}");
}

/// 2089 nodes that are late for a barrier.
fn late_nodes(timeout: u32, task: u32) -> Document {
    let document = document(&format!(
        "family = \"pbv\"\n[topology]\nkind = \"tree\"\nbranching = [6, 6, 58]\nroots = 1\n[pbv.setup]\n\
         configuration = \"side-port\"\n[pbv.engine]\ntimeout_cycles = {timeout}\n[[pbv.collective]]\nkind = \"barrier\"\n\
         source = 2088\ntask_cycles = {task}\n"
    ));
    passed(&document);
    let told = told(&document);
    let nodes = told[0].1.iter().filter(|name| name.starts_with("leaf") || name.starts_with("root")).count();
    assert_eq!((told.len(), told[0].0.as_str(), nodes), (1, "incomplete", 2089));
    document
}

/// The same lists of missing devices as in the long run below, sooner: what is skipped is a twentieth.
#[test]
fn missing_lists_in_several_frames_are_the_same_without_skipping() {
    let document = late_nodes(100, 5000);
    assert!(document.cycles < 20_000, "{}", document.cycles);
}

#[test]
#[ignore = "minutes: part of make soak"]
fn a_million_cycles_of_waiting_are_the_same_without_skipping() {
    assert!(late_nodes(2000, 1_000_000).cycles > 1_000_000);
}

/// Two switches of three nodes; node 0 is the source. Its command is lost, and nobody asks for anything: only engines watch.
fn without_its_command(more: &str) -> Document {
    document(&format!(
        "family = \"pbv\"\n[topology]\nkind = \"mesh\"\nsize = [2]\nconcentration = 3\n[pbv.setup]\n\
         configuration = \"side-port\"\n[pbv.engine]\ntimeout_cycles = 300\nretries = 1\n[[pbv.collective]]\nelements = 2\n\
         dtype = \"u64\"\nop = \"sum\"\nsource = 0\nstart_cycle = 1000\ntask_cycles = 50\npatience_cycles = 0\n{more}\
         [[pbv.fault]]\neffect = \"drop\"\nat = \"s0.node0\"\nway = \"from\"\nnth = 1\n"
    ))
}

#[test]
fn a_run_that_the_sources_contribution_begins_has_its_watchdog() {
    // At the master: whoever is missing is asked, which is the command.
    let one = without_its_command("");
    passed(&one);
    assert_eq!(told(&one), [row("after-retry", &[])]);
    // Below it: the master never hears of the run, and everybody who took part is told.
    let other = without_its_command("master = \"s1\"\n");
    assert_eq!(other.outcome, watershed::scenario::result::Outcome::Finished, "{:?}", other.checks);
    assert_eq!(told(&other), [row("incomplete", &["s1"])]);
}
