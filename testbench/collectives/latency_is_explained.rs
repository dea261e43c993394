//! `why`: the parts of a collective's latency follow each other without a gap and add up to it, and each says what happened.

use std::fmt::Write;
use std::path::Path;

use watershed::kernel::Rng;
use watershed::scenario::config::Family;
use watershed::scenario::load_text;
use watershed::scenario::programs::result::CallResult;
use watershed::scenario::run::{RunOptions, RunResult, run};
use watershed::scenario::shipped::stem;
use watershed::scenario::why::{Kind, Phase, Why, WhyQuery};

use crate::share;
use crate::support::shipped_of;

fn explained(text: &str, packet: Option<u64>) -> RunResult {
    let loaded = load_text("test", text, Path::new(env!("CARGO_MANIFEST_DIR")), "test", &[])
        .unwrap_or_else(|p| panic!("{p}\n{text}"));
    run(&loaded, &RunOptions { why: Some(WhyQuery { packet, ..WhyQuery::default() }), ..RunOptions::default() })
        .unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Every collective that has ended, and every call of one that has, is explained, to the cycle.
fn assert_whole(result: &RunResult, what: &str) -> usize {
    let document = &result.document;
    let collectives = document.collectives.iter().filter_map(|found| found.latency_cycles.map(|cycles| (cycles, None)));
    let calls = document.programs.iter().flat_map(|programs| &programs.calls);
    let calls = calls.filter_map(|call| Some((call.end_cycle? - call.first_call_cycle, Some(call))));
    let ended: Vec<(u64, Option<&CallResult>)> = collectives.chain(calls).collect();
    assert_eq!(result.why.len(), ended.len(), "{what}: {:?}", result.notes);
    for (why, &(latency, call)) in result.why.iter().zip(&ended) {
        let at = format!("{what}: {}", why.collective);
        assert_eq!(why.latency_cycles, latency, "{at}");
        // Of a broadcast it is the call of the one core that sends; which that is, the tests of broadcasts know.
        let sent = call
            .map(|call| if call.collective == "news" { why.last_contribution.unwrap() } else { call.last_call_cycle });
        assert_eq!(why.last_contribution, sent, "{at}");
        let called = call.map_or(0, |call| call.first_call_cycle)..=call.map_or(0, |call| call.last_call_cycle);
        assert!(sent.is_none_or(|sent| called.contains(&sent)), "{at}: {sent:?} is not in {called:?}");
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

/// Explains shipped scenarios of the family with at most this many switches, one in `step`; how many collectives there were.
fn shipped(step: usize, most_switches: u32) -> usize {
    let mut collectives = 0;
    for (path, text) in share::one_in(step, shipped_of("piuma")) {
        let base = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let loaded = load_text(path, text, base.parent().unwrap(), stem(path), &[]).unwrap_or_else(|p| panic!("{p}"));
        let scenario = &loaded.scenario;
        if scenario.family != Family::Piuma
            || scenario.collectives.is_empty()
            || scenario.workload.is_some()
            || scenario.topology.switches() > most_switches
        {
            continue;
        }
        let plain = run(&loaded, &RunOptions::default()).unwrap();
        // Software beside it is explained in the test target `hosts`; without it, its flits need not be kept.
        let collective = scenario.collectives.first().filter(|_| !scenario.hosts.is_empty()).map(|of| of.name.as_str());
        let ask = WhyQuery { collective, ..WhyQuery::default() };
        let result = run(&loaded, &RunOptions { why: Some(ask), ..RunOptions::default() }).unwrap();
        assert_eq!(result.document.collectives, plain.document.collectives, "{path}: watching changes nothing");
        assert_eq!(result.document.cycles, plain.document.cycles, "{path}");
        collectives += assert_whole(&result, path);
    }
    collectives
}

/// One in three in `make test`.
#[test]
fn every_small_shipped_scenario_adds_up() {
    let collectives = shipped(3, 64);
    assert!(collectives >= if share::is_whole() { 8 } else { 5 }, "{collectives}");
}

#[test]
#[ignore = "takes minutes"]
fn every_shipped_scenario_adds_up() {
    assert!(shipped(1, u32::MAX) >= 8);
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

/// Cores of a random system that make calls of one collective, before those of others are done with the one before: who only
/// sends waits for nobody. One core is late.
fn calling_again(rng: &mut Rng) -> String {
    let mut below = |most: u64| rng.below(most);
    let topology = ["kind = \"die\"", "kind = \"die\"\ntiles = 6", "kind = \"mesh\"\nsize = [3, 2]"][below(3) as usize];
    let memory = ["\"unlimited\"", "25.6"][below(2) as usize];
    let (name, collective) = [
        ("broadcast", "name = \"news\"\nkind = \"broadcast\""),
        ("reduce", "name = \"largest\"\nkind = \"reduce\"\nop = \"max\"\nreceiver = 2"),
        ("scan", "name = \"before\"\nkind = \"scan\""),
    ][below(3) as usize];
    let (late, apart, stages, slots, flit) = (below(6), below(60), 1 + below(4), 1 + below(3), 1 + below(3));
    let mut text = format!(
        "family = \"piuma\"\n[topology]\n{topology}\n[switch]\npipeline_stages = {stages}\nceng.operand_slots = {slots}\n\
         [link]\ncycles_per_flit = {flit}\n[memory]\nbandwidth_gbps = {memory}\n\
         [[collective]]\n{collective}\ndtype = \"i64\"\nid = 0\ncalled = true\n\
         [[program]]\ntext = \"\"\"\n.random 0, 30, i64\nmul r1, %core, {apart}\ncompute r1\nbne %core, {late}, on\n\
         compute 400\non:\n"
    );
    for _ in 0..6 {
        let (elements, compute) = ([1, 1, 8, 30][below(4) as usize], [0, 0, 100][below(3) as usize]);
        let _ = writeln!(text, "{name} 0, 0, 0x10000, {elements}\ncompute {compute}");
    }
    text + "\"\"\"\n"
}

/// A hundred in `make soak`, a third of them in `make test`.
#[test]
fn random_programs_that_call_again_add_up() {
    let mut rng = Rng::new(22, 11);
    let texts: Vec<String> = (0..100).map(|_| calling_again(&mut rng)).collect();
    for (number, text) in share::one_in(3, texts.into_iter().enumerate()) {
        let result = explained(&text, None);
        assert_eq!(assert_whole(&result, &format!("number {number}:\n{text}")), 6, "{text}");
        // The first word of every call, too.
        let first = explained(&text, Some(0));
        assert_eq!(first.why.len(), result.why.len(), "number {number}: {:?}\n{text}", first.notes);
    }
}

/// Three broadcasts of a word, one after the other; the last core comes to the first of them 400 cycles late.
#[test]
fn an_earlier_call_s_word_is_not_a_later_one_s() {
    for stages in [1, 4] {
        let text = format!(
            "family = \"piuma\"\n[topology]\nkind = \"die\"\n[switch]\npipeline_stages = {stages}\n\
             [[collective]]\nname = \"news\"\nkind = \"broadcast\"\nid = 0\ndtype = \"i64\"\ncalled = true\n\
             [[program]]\ntext = \"\"\"\nbne %core, 5, all\ncompute 400\nall: broadcast 0, 0, 0x4000, 1\ncompute 100\n\
             broadcast 0, 0, 0x4000, 1\ncompute 100\nbroadcast 0, 0, 0x4000, 1\n\"\"\"\n"
        );
        let result = explained(&text, None);
        assert_eq!(assert_whole(&result, &text), 3, "{text}");
        let calls = &result.document.programs.as_ref().unwrap().calls;
        for (number, (why, call)) in result.why.iter().zip(calls).enumerate() {
            // The sender is never late; what it sends is on its way at once and waits for the core that is.
            assert_eq!(why.last_contribution, Some(call.first_call_cycle), "{:?}", why.parts);
            assert!(cycles(why, Kind::MemoryRead) <= 2 && cycles(why, Kind::MemoryWrite) <= 2, "{:?}", why.parts);
            assert!(why.parts.iter().all(|part| part.phase != Phase::Inject || part.to < call.first_call_cycle + 10));
            let waited: Vec<_> = why.parts.iter().filter(|part| part.kind == Kind::LateStart).collect();
            let [waited] = waited[..] else { panic!("{number}: {:?}", why.parts) };
            assert!(waited.place.contains("core5") && waited.phase == Phase::Eject, "{waited:?}");
            assert_eq!(waited.to, call.last_call_cycle, "{waited:?}");
        }
        assert!(cycles(&result.why[0], Kind::LateStart) > 300, "{:?}", result.why[0].parts);
    }
}

/// A hundred in `make soak`, a third of them in `make test`.
#[test]
fn random_programs_that_call_add_up() {
    let mut rng = Rng::new(21, 12);
    let texts: Vec<String> = (0..100).map(|_| calling(&mut rng)).collect();
    for (number, text) in share::one_in(3, texts.into_iter().enumerate()) {
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
