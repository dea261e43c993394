//! `why`: the parts of a collective's latency follow each other without a gap and add up to it, and each says what happened.

use std::fmt::Write;
use std::path::Path;

use watershed::kernel::Rng;
use watershed::scenario::config::Family;
use watershed::scenario::load_text;
use watershed::scenario::run::{RunOptions, RunResult, run};
use watershed::scenario::shipped::{SHIPPED, stem};
use watershed::scenario::why::{Ask, Kind, Why};

fn explained(text: &str, packet: Option<u64>) -> RunResult {
    let loaded = load_text("test", text, Path::new(env!("CARGO_MANIFEST_DIR")), "test", &[])
        .unwrap_or_else(|p| panic!("{p}\n{text}"));
    run(&loaded, &RunOptions { why: Some(Ask { packet, ..Ask::default() }), ..RunOptions::default() })
        .unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Every collective that has ended, and every call of one that has, is explained, to the cycle.
fn assert_whole(result: &RunResult, what: &str) -> usize {
    let document = &result.document;
    let collectives = document.collectives.iter().filter_map(|found| found.latency_cycles.map(|cycles| (cycles, None)));
    let calls = document.programs.iter().flat_map(|programs| &programs.calls);
    let calls = calls.filter_map(|call| Some((call.end_cycle? - call.first_call_cycle, Some(call.last_call_cycle))));
    let ended: Vec<(u64, Option<u64>)> = collectives.chain(calls).collect();
    assert_eq!(result.why.len(), ended.len(), "{what}: {:?}", result.notes);
    for (why, &(latency, last_call)) in result.why.iter().zip(&ended) {
        let at = format!("{what}: {}", why.collective);
        assert_eq!((why.latency_cycles, why.last_contribution), (latency, last_call), "{at}");
        assert_eq!(why.parts.first().map_or(why.start_cycle, |part| part.from), why.start_cycle, "{at}");
        assert_eq!(why.parts.last().map_or(why.end_cycle, |part| part.to), why.end_cycle, "{at}");
        assert!(why.parts.windows(2).all(|pair| pair[0].to == pair[1].from), "{at}: {:?}", why.parts);
        let named =
            |part: &watershed::scenario::why::Part| !part.place.starts_with('.') && !part.place.starts_with(" ->");
        assert!(why.parts.iter().all(named), "{at}: a place without a name: {:?}", why.parts);
        assert_eq!(why.by_kind().iter().map(|(_, cycles)| cycles).sum::<u64>(), why.latency_cycles, "{at}");
        assert_eq!(why.by_phase().iter().map(|(_, cycles)| cycles).sum::<u64>(), why.latency_cycles, "{at}");
    }
    ended.len()
}

fn cycles(why: &Why, kind: Kind) -> u64 {
    why.by_kind().iter().find(|(found, _)| *found == kind).map_or(0, |(_, cycles)| *cycles)
}

/// Explains all shipped scenarios of the family with at most so many switches; how many collectives there were.
fn shipped(most_switches: u32) -> usize {
    let mut collectives = 0;
    for (path, text) in SHIPPED {
        let base = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let loaded = load_text(path, text, base.parent().unwrap(), stem(path), &[]).unwrap_or_else(|p| panic!("{p}"));
        let scenario = &loaded.scenario;
        if scenario.family != Family::Piuma
            || scenario.collectives.is_empty()
            || scenario.topology.switches() > most_switches
        {
            continue;
        }
        let plain = run(&loaded, &RunOptions::default()).unwrap();
        // Software beside it is explained in the test target `hosts`; without it, its flits need not be kept.
        let collective = scenario.collectives.first().filter(|_| !scenario.hosts.is_empty()).map(|of| of.name.as_str());
        let ask = Ask { collective, ..Ask::default() };
        let result = run(&loaded, &RunOptions { why: Some(ask), ..RunOptions::default() }).unwrap();
        assert_eq!(result.document.collectives, plain.document.collectives, "{path}: watching changes nothing");
        assert_eq!(result.document.cycles, plain.document.cycles, "{path}");
        collectives += assert_whole(&result, path);
    }
    collectives
}

#[test]
fn every_small_shipped_scenario_adds_up() {
    let collectives = shipped(64);
    assert!(collectives >= 8, "{collectives}");
}

#[test]
#[ignore = "takes minutes"]
fn every_shipped_scenario_adds_up() {
    assert!(shipped(u32::MAX) >= 8);
}

/// A random small system with one to three collectives, late participants and background traffic.
fn random(rng: &mut Rng) -> String {
    let mut pick = |list: &[&str]| list[rng.below(list.len() as u64) as usize].to_owned();
    let mut text = format!("family = \"piuma\"\nseed = {}\n[clock]\nfrequency_mhz = 1000\n", pick(&["1", "2", "3"]));
    let _ = write!(
        text,
        "[topology]\n{}\n",
        pick(&[
            "kind = \"die\"",
            "kind = \"die\"\ntiles = 6",
            "kind = \"die\"\npositions = 2",
            "kind = \"mesh\"\nsize = [3, 2]",
            "kind = \"mesh\"\nsize = [4]\nconcentration = 2"
        ])
    );
    let _ = write!(
        text,
        "[link]\nlatency_cycles = {}\nlocal_latency_cycles = {}\ncycles_per_flit = {}\n",
        pick(&["1", "2", "7"]),
        pick(&["1", "3"]),
        pick(&["1", "1", "2"])
    );
    let _ = write!(
        text,
        "[switch]\npipeline_stages = {}\narbiter = \"{}\"\ncollective_buffer_flits = {}\nceng.stages = {}\nceng.operand_slots = {}\n",
        pick(&["1", "2", "3", "4"]),
        pick(&["round-robin", "matrix", "fixed"]),
        pick(&["\"auto\"", "1", "3"]),
        pick(&["1", "3", "6"]),
        pick(&["1", "2"])
    );
    let _ = write!(
        text,
        "[memory]\nbandwidth_gbps = {}\nread_latency_cycles = {}\nwrite_latency_cycles = {}\n",
        pick(&["\"unlimited\"", "51.2", "20"]),
        pick(&["0", "5"]),
        pick(&["0", "4"])
    );
    for id in 0..pick(&["1", "1", "2", "3"]).parse::<u32>().unwrap() {
        let kind = pick(&["allreduce", "reduce", "broadcast", "barrier"]);
        let _ = write!(
            text,
            "[[collective]]\nkind = \"{kind}\"\nid = {id}\ndelay_cycles = {}\nstart_cycle = {}\n",
            pick(&["0", "{ random_max = 40 }", "7"]),
            pick(&["0", "13"])
        );
        if kind != "barrier" {
            let _ = write!(
                text,
                "elements = {}\ndtype = \"{}\"\n",
                pick(&["1", "2", "9", "33"]),
                pick(&["f64", "f32", "i64"])
            );
        }
    }
    if pick(&["no", "no", "yes"]) == "yes" {
        text += "[[traffic]]\npattern = \"uniform\"\nrate = 0.3\n";
    }
    text
}

#[test]
fn two_hundred_random_ones_add_up() {
    let mut rng = Rng::new(20, 26);
    let mut seen = std::collections::BTreeSet::new();
    for number in 0..200 {
        let text = random(&mut rng);
        let result = explained(&text, None);
        assert!(assert_whole(&result, &format!("number {number}:\n{text}")) > 0, "{text}");
        seen.extend(result.why.iter().flat_map(|why| &why.parts).map(|part| part.kind));
    }
    assert!(Kind::ALL.iter().filter(|kind| seen.contains(kind)).count() >= 12, "{seen:?}");
}

/// Cores of a random system that come one after the other and call collectives back to back, some while others run.
fn calling(rng: &mut Rng) -> String {
    let mut below = |most: u64| rng.below(most);
    let topology = ["kind = \"die\"", "kind = \"die\"\ntiles = 6", "kind = \"mesh\"\nsize = [3, 2]"][below(3) as usize];
    let (elements, apart, ids, stages) = (1 + below(40), below(60), below(2), 1 + below(4));
    let memory = ["\"unlimited\"", "25.6"][below(2) as usize];
    format!(
        "family = \"piuma\"\n[topology]\n{topology}\n[switch]\npipeline_stages = {stages}\n[memory]\nbandwidth_gbps = {memory}\n\
         [[collective]]\nname = \"sum\"\nkind = \"allreduce\"\ndtype = \"f64\"\nid = 0\ncalled = true\n\
         [[collective]]\nname = \"largest\"\nkind = \"reduce\"\nop = \"max\"\ndtype = \"f64\"\nid = 1\nreceiver = 2\ncalled = true\n\
         [[collective]]\nname = \"all\"\nkind = \"barrier\"\nid = 2\ncalled = true\n\
         [[program]]\ntext = \"\"\"\n.random 0, {elements}, f64\nmul r1, %core, {apart}\ncompute r1\n\
         allreduce.nb r2, 0, 0, 0x10000, {elements}\nallreduce.nb r3, 0, 0, 0x20000, {elements}\nwait r2\nwait r3\n\
         barrier 2\nreduce {ids}, 0, 0x30000, {elements}\n\"\"\"\n"
    )
    .replace("reduce 0,", "allreduce 0,")
}

#[test]
fn a_hundred_random_programs_that_call_add_up() {
    let mut rng = Rng::new(21, 12);
    for number in 0..100 {
        let text = calling(&mut rng);
        let result = explained(&text, None);
        assert!(assert_whole(&result, &format!("number {number}:\n{text}")) >= 4, "{text}");
        let [first, second] =
            ["sum.0", "sum.1"].map(|name| result.why.iter().find(|why| why.collective == name).unwrap());
        // The second call began when the first was complete.
        assert!(second.end_cycle > first.end_cycle);
        assert!(cycles(second, Kind::Call) > cycles(first, Kind::Call), "{:?}\n{:?}", first.parts, second.parts);
        assert!(cycles(second, Kind::Call) + 60 * 12 > first.latency_cycles, "{:?}", second.parts);
    }
}

const DIE: &str = "family = \"piuma\"\n[topology]\nkind = \"die\"\n[memory]\nbandwidth_gbps = \"unlimited\"\n[[collective]]\nkind = \"allreduce\"\n";

#[test]
fn an_unloaded_word_spends_its_time_in_stages_links_and_adders() {
    let result = explained(&format!("{DIE}elements = 1\n"), None);
    let why = &result.why[0];
    for waiting in
        [Kind::CreditWait, Kind::Behind, Kind::Arbitration, Kind::OperandSlot, Kind::EngineWait, Kind::LateStart]
    {
        assert_eq!(cycles(why, waiting), 0, "{waiting:?}: {:?}", why.parts);
    }
    // Each engine on the way takes four levels of three stages.
    assert_eq!(cycles(why, Kind::Reduce), 12 * why.engines.len() as u64);
    assert!(why.engines.len() >= 2);
}

#[test]
fn what_is_to_blame_is_blamed() {
    // A participant that is late by 500 cycles.
    let late = explained(&format!("{DIE}elements = 1\ndelay_cycles = [0, 0, 0, 500, 0, 0, 0, 0]\n"), None);
    assert_eq!(cycles(&late.why[0], Kind::LateStart), 500);
    assert!(late.why[0].parts[0].place.contains("core3"), "{:?}", late.why[0].parts[0]);
    let engine = &late.why[0].engines[0];
    assert!(engine.others.iter().all(|(_, early)| *early > 400), "{engine:?}");
    // A slow memory.
    let slow = DIE.replace("\"unlimited\"", "6.4");
    let slow = explained(&format!("{slow}elements = 40\n"), None);
    let memory = cycles(&slow.why[0], Kind::MemoryRead) + cycles(&slow.why[0], Kind::MemoryWrite);
    assert!(memory * 10 > slow.why[0].latency_cycles * 8, "{:?}", slow.why[0].by_kind());
    // Buffers of a single flit.
    let narrow =
        DIE.replace("[memory]", "[switch]\ncollective_buffer_flits = 1\n[link]\nlatency_cycles = 20\n[memory]");
    let narrow = explained(&format!("{narrow}elements = 40\n"), None);
    let by = narrow.why[0].by_kind();
    let credit: u64 = [Kind::CreditWait, Kind::Behind].iter().map(|kind| cycles(&narrow.why[0], *kind)).sum();
    assert!(credit * 2 > narrow.why[0].latency_cycles, "{by:?}");
}

#[test]
fn any_word_can_be_followed() {
    let text = format!("{DIE}elements = 20\n");
    let mut last = 0;
    for word in 0..20 {
        let result = explained(&text, Some(word));
        let why = &result.why[0];
        assert_eq!((why.number, why.parts.iter().map(|part| part.to - part.from).sum()), (word, why.latency_cycles));
        assert!(why.end_cycle > last || word == 0);
        last = why.end_cycle;
    }
    let beyond = explained(&text, Some(20));
    assert!(beyond.why.is_empty() && beyond.notes[0].contains("there is no word 20"), "{:?}", beyond.notes);
}
