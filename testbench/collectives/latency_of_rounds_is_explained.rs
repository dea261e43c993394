//! `why` for the armed and PBV families: the parts of a round add up, and those behind the last contribution are the latency
//! that the result names.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::RangeInclusive;
use std::path::Path;

use watershed::kernel::Rng;
use watershed::scenario::config::Family;
use watershed::scenario::run::{RunOptions, RunResult, run};
use watershed::scenario::shipped::stem;
use watershed::scenario::why::{Kind, Phase, Why, WhyQuery};
use watershed::scenario::{Loaded, load_text};

use crate::share;
use crate::support::shipped_of;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn load(text: &str) -> Loaded {
    load_text("test", text, Path::new(ROOT), "test", &[]).unwrap_or_else(|p| panic!("{p}\n{text}"))
}

fn explained(loaded: &Loaded, ask: WhyQuery<'_>) -> RunResult {
    run(loaded, &RunOptions { why: Some(ask), ..RunOptions::default() }).unwrap_or_else(|e| panic!("{e}"))
}

/// Name, and the least and largest latency, of every collective that has ended at all participants.
fn latencies(result: &RunResult) -> Vec<(String, u64)> {
    let armed = result.document.armed.iter().flat_map(|armed| &armed.reductions);
    let armed = armed.filter_map(|of| Some((of.name.clone(), of.round_latency_cycles?.max)));
    let pbv = result.document.pbv.iter().flat_map(|pbv| &pbv.collectives);
    armed.chain(pbv.filter_map(|of| Some((of.name.clone(), of.round_latency_cycles?.max)))).collect()
}

fn assert_adds_up(why: &Why, what: &str) {
    let at = format!("{what}: {} {:?}", why.collective, why.parts);
    assert_eq!(why.parts.first().map_or(why.start_cycle, |part| part.from), why.start_cycle, "{at}");
    assert_eq!(why.parts.last().map_or(why.end_cycle, |part| part.to), why.end_cycle, "{at}");
    assert!(why.parts.windows(2).all(|pair| pair[0].to == pair[1].from), "{at}");
    assert_eq!(why.by_kind().iter().map(|(_, cycles)| cycles).sum::<u64>(), why.latency_cycles, "{at}");
    assert_eq!(why.by_phase().iter().map(|(_, cycles)| cycles).sum::<u64>(), why.latency_cycles, "{at}");
    let last = why.last_contribution.expect("rounds have a last contribution");
    let behind: u64 = why.parts.iter().filter(|part| part.from >= last).map(|part| part.to - part.from).sum();
    assert_eq!(Some(behind), why.since_last_contribution(), "{at}");
    assert!(why.parts.iter().all(|part| part.to <= last || part.from >= last), "{at}");
}

/// Every collective that has ended is explained; how many there were.
fn assert_whole(result: &RunResult, what: &str) -> usize {
    let latencies = latencies(result);
    let names: Vec<&str> = result.why.iter().map(|why| why.collective.as_str()).collect();
    let expected: Vec<&str> = latencies.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, expected, "{what}: {:?}", result.notes);
    for (why, (_, latency)) in result.why.iter().zip(&latencies) {
        assert_adds_up(why, what);
        assert_eq!(why.since_last_contribution(), Some(*latency), "{what}: {}", why.collective);
    }
    latencies.len()
}

/// Explains shipped scenarios of a family with this many rounds, one in `step`; how many collectives there were.
fn shipped(step: usize, family: Family, rounds: RangeInclusive<u32>) -> usize {
    let mut collectives = 0;
    let name = if family == Family::Armed { "armed" } else { "pbv" };
    for (path, text) in share::one_in(step, shipped_of(name)) {
        let base = Path::new(ROOT).join(path);
        let loaded = load_text(path, text, base.parent().unwrap(), stem(path), &[]).unwrap_or_else(|p| panic!("{p}"));
        let scenario = &loaded.scenario;
        let armed = scenario.armed.iter().flat_map(|armed| &armed.reductions).map(|of| of.file.rounds);
        let pbv = scenario.pbv.iter().flat_map(|pbv| &pbv.collectives).map(|of| of.rounds);
        if scenario.family != family || !rounds.contains(&armed.chain(pbv).sum::<u32>()) {
            continue;
        }
        let plain = run(&loaded, &RunOptions::default()).unwrap();
        let result = explained(&loaded, WhyQuery::default());
        assert_eq!(result.document.armed, plain.document.armed, "{path}: watching changes nothing");
        assert_eq!(result.document.pbv, plain.document.pbv, "{path}: watching changes nothing");
        collectives += assert_whole(&result, path);
    }
    collectives
}

/// Every second one in `make test`.
#[test]
fn every_small_shipped_armed_scenario_adds_up() {
    let collectives = shipped(2, Family::Armed, 0..=100);
    assert!(collectives >= if share::is_whole() { 15 } else { 8 }, "{collectives}");
}

/// Every second one in `make test`.
#[test]
fn every_small_shipped_pbv_scenario_adds_up() {
    let collectives = shipped(2, Family::Pbv, 0..=100);
    assert!(collectives >= if share::is_whole() { 10 } else { 5 }, "{collectives}");
}

#[test]
#[ignore = "takes minutes"]
fn every_shipped_scenario_of_many_rounds_adds_up() {
    // A thousand rounds twice over, in the orders of arrival that come, and five thousand with faults.
    let armed = shipped(1, Family::Armed, 101..=u32::MAX);
    assert!(armed >= 3, "{armed}");
    shipped(1, Family::Pbv, 101..=u32::MAX);
}

/// Small random systems: topologies, late and slow participants, faults, overheads.
struct Random(Rng);

impl Random {
    fn pick(&mut self, list: &[&str]) -> String {
        list[self.0.below(list.len() as u64) as usize].to_owned()
    }

    fn common(&mut self, family: &str) -> String {
        let topologies = [
            "kind = \"tree\"\nbranching = [3]",
            "kind = \"tree\"\nbranching = [2, 3]",
            "kind = \"tree\"\nbranching = [2, 2, 2]",
            "kind = \"mesh\"\nsize = [2, 2]\nconcentration = 2",
            "kind = \"mesh\"\nsize = [4]",
        ];
        format!(
            "family = \"{family}\"\nseed = {}\n[topology]\n{}\n[link]\nlatency_cycles = {}\nlocal_latency_cycles = {}\n\
             cycles_per_flit = {}\n[switch]\npipeline_stages = {}\n",
            self.0.below(1000),
            self.pick(&topologies),
            self.pick(&["1", "3", "8"]),
            self.pick(&["1", "2"]),
            self.pick(&["1", "1", "2"]),
            self.pick(&["1", "2", "4"]),
        )
    }

    fn faults(&mut self, family: &str, from: u32) -> String {
        let mut text = String::new();
        for effect in ["drop", "corrupt", "duplicate", "delay"] {
            if self.0.below(4) > 0 {
                continue;
            }
            let delay = if effect == "delay" { "delay_cycles = 90\n" } else { "" };
            let _ = write!(
                text,
                "[[{family}.fault]]\neffect = \"{effect}\"\nat = \"all\"\nprobability = 0.02\n{delay}from_cycle = {from}\nway = \"both\"\n"
            );
        }
        text
    }

    fn armed(&mut self) -> String {
        let mut text = self.common("armed");
        let _ = write!(
            text,
            "[armed.engine]\nstages = {}\ndescriptors = {}\ntimeouts_1024_cycles = [{}, 2, 3, 4]\n",
            self.pick(&["1", "3", "6"]),
            self.pick(&["0", "1", "8"]),
            self.pick(&["1", "2"])
        );
        let kind = self.pick(&["engines", "engines", "engines", "software", "redundant"]);
        let _ = write!(
            text,
            "[[armed.reduction]]\nname = \"a\"\nop = \"{}\"\nrounds = {}\ncompute_cycles = {}\nsend_overhead_cycles = {}\n\
             receive_overhead_cycles = {}\nmerge_cycles = {}\n",
            self.pick(&["int-sum", "flt-sum-near", "int-min"]),
            self.pick(&["1", "2", "4"]),
            self.pick(&["0", "30", "{ random_max = 200 }"]),
            self.pick(&["0", "0", "40"]),
            self.pick(&["0", "0", "25"]),
            self.pick(&["0", "9"]),
        );
        match kind.as_str() {
            "software" => return text + "method = \"software\"\n",
            "redundant" => text += "redundant = true\n",
            _ => {}
        }
        if self.0.below(3) == 0 {
            text += "late = [{ end_point = 1, round = 0, cycles = 1500 }]\n";
        }
        let faults = self.faults("armed", 0);
        text += if faults.is_empty() { "" } else { "max_retries = 6\n" };
        text + &faults
    }

    fn pbv(&mut self) -> String {
        let mut text = self.common("pbv");
        let watched = self.0.below(2) == 0;
        let _ = write!(
            text,
            "[pbv.engine]\nstages = {}\nhazard = \"{}\"\nattach = \"{}\"\ntimeout_cycles = {}\nretries = 3\n[pbv.setup]\nconfiguration = \"side-port\"\n",
            self.pick(&["1", "4"]),
            self.pick(&["forward", "interlock"]),
            self.pick(&["own", "own", "node"]),
            if watched { "600" } else { "0" },
        );
        let collectives = 1 + self.0.below(2);
        for number in 0..collectives {
            let kind = self.pick(&["allreduce", "allreduce", "barrier", "multicast"]);
            let _ = write!(
                text,
                "[[pbv.collective]]\nname = \"c{number}\"\nkind = \"{kind}\"\nblocks = {}\nrounds = {}\nstart_cycle = 2500\n",
                if collectives == 1 { self.pick(&["true", "false"]) } else { "false".into() },
                self.pick(&["1", "3"]),
            );
            if kind != "multicast" {
                let _ = writeln!(text, "task_cycles = {}", self.pick(&["0", "20", "{ random_max = 150 }"]));
            }
            if kind == "allreduce" {
                let _ = write!(
                    text,
                    "elements = {}\norder = \"{}\"\nrearm = {}\n",
                    self.pick(&["1", "5", "40"]),
                    self.pick(&["arrival", "pbv"]),
                    self.pick(&["false", "false", "true"])
                );
            }
        }
        if watched { text + &self.faults("pbv", 2500) } else { text }
    }
}

/// Runs random scenarios until so many have been run; how many collectives were explained, and which kinds of parts were seen.
fn random(count: u32, mut make: impl FnMut() -> String) -> (usize, BTreeSet<Kind>) {
    let (mut runs, mut collectives, mut seen) = (0, 0, BTreeSet::new());
    for tried in 0.. {
        let text = make();
        // Some combinations are refused, for example a switch without nodes for its engine.
        let Ok(loaded) = load_text("test", &text, Path::new(ROOT), "test", &[]) else { continue };
        let Ok(result) = run(&loaded, &RunOptions { why: Some(WhyQuery::default()), ..RunOptions::default() }) else {
            continue;
        };
        assert!(tried < 4 * count, "too many are refused:\n{text}");
        collectives += assert_whole(&result, &text);
        seen.extend(result.why.iter().flat_map(|why| &why.parts).map(|part| part.kind));
        runs += 1;
        if runs == count {
            break;
        }
    }
    (collectives, seen)
}

#[test]
fn a_hundred_random_armed_ones_add_up() {
    let mut source = Random(Rng::new(8, 4));
    let (collectives, seen) = random(100, || source.armed());
    assert!(collectives >= 80, "{collectives}");
    let expected = [
        Kind::Compute,
        Kind::Software,
        Kind::Frame,
        Kind::Link,
        Kind::Switch,
        Kind::Engine,
        Kind::Reduce,
        Kind::TimeOut,
    ];
    assert!(expected.iter().all(|kind| seen.contains(kind)), "{seen:?}");
}

#[test]
fn a_hundred_random_pbv_ones_add_up() {
    let mut source = Random(Rng::new(8, 5));
    let (collectives, seen) = random(100, || source.pbv());
    assert!(collectives >= 100, "{collectives}");
    let expected =
        [Kind::Compute, Kind::Queue, Kind::Frame, Kind::Link, Kind::Switch, Kind::Engine, Kind::Reduce, Kind::TimeOut];
    assert!(expected.iter().all(|kind| seen.contains(kind)), "{seen:?}");
}

// --------------------------------------------------------------------------------------------- who is to blame

fn cycles(why: &Why, kind: Kind) -> u64 {
    why.by_kind().iter().find(|(found, _)| *found == kind).map_or(0, |(_, cycles)| *cycles)
}

const TREE: &str = "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [2, 3]\n[armed.engine]\ntimeouts_1024_cycles = [1, 4, 4, 4]\n[[armed.reduction]]\nop = \"int-sum\"\n";

#[test]
fn a_late_leaf_and_a_time_out_are_blamed() {
    // An unloaded round: the leaf computes, its frame climbs through two engines of three stages.
    let quick = explained(&load(&format!("{TREE}compute_cycles = 70\n")), WhyQuery::default());
    let why = &quick.why[0];
    assert_eq!(cycles(why, Kind::Compute), 70, "{:?}", why.parts);
    assert_eq!(cycles(why, Kind::Reduce), 2 * 3, "{:?}", why.parts);
    assert_eq!((cycles(why, Kind::TimeOut), why.engines.len()), (0, 2), "{:?}", why.parts);
    // Each store of a frame costs its ten other flits: arm frames are cut through, so it is the leaf, two engines and the root.
    assert_eq!(cycles(why, Kind::Frame) % 10, 0, "{:?}", why.parts);
    // A leaf that is late by 700 cycles: nobody times out, and all operands of its engine were there before.
    let late = format!("{TREE}late = [{{ end_point = 4, round = 0, cycles = 700 }}]\n");
    let late = explained(&load(&late), WhyQuery::default());
    let why = &late.why[0];
    assert_eq!(cycles(why, Kind::Compute), 700, "{:?}", why.parts);
    let engine = &why.engines[0];
    assert!(engine.others.len() == 2 && engine.others.iter().all(|(_, early)| *early > 600), "{engine:?}");
    let compute = why.parts.iter().find(|part| part.kind == Kind::Compute).unwrap();
    assert_eq!((compute.place.as_str(), engine.from.as_str()), ("leaf4", "leaf4"));
    // A leaf whose first contribution is lost: the root waits, asks again, and the leaf sends it once more.
    let lost =
        format!("{TREE}max_retries = 3\n[[armed.fault]]\neffect = \"drop\"\nat = \"leaf4\"\nway = \"up\"\nnth = 1\n");
    let lost = explained(&load(&lost), WhyQuery::default());
    let why = &lost.why[0];
    let document = &lost.document.armed.as_ref().unwrap().reductions[0];
    assert_eq!(document.outcomes.after_retry, 1, "{:?}", document.outcomes);
    let waited = why.parts.iter().filter(|part| part.kind == Kind::TimeOut).map(|part| part.place.as_str());
    assert!(waited.clone().count() > 0 && waited.clone().all(|place| place == "root0"), "{:?}", why.parts);
    assert!(cycles(why, Kind::TimeOut) * 2 > why.latency_cycles, "{:?}", why.by_kind());
    let phases: Vec<Phase> =
        why.by_phase().into_iter().filter(|(_, cycles)| *cycles > 0).map(|(phase, _)| phase).collect();
    assert!(phases.contains(&Phase::Command) && phases.contains(&Phase::Climb), "{phases:?}");
}

const STAR: &str =
    "family = \"pbv\"\n[topology]\nkind = \"tree\"\nbranching = [2, 3]\n[pbv.setup]\nconfiguration = \"side-port\"\n";

#[test]
fn a_slow_node_and_a_watchdog_are_blamed() {
    let of = |more: &str| explained(&load(&format!("{STAR}{more}")), WhyQuery::default());
    let quick = of("[[pbv.collective]]\nelements = 1\ntask_cycles = 50\n");
    let why = &quick.why[0];
    assert_eq!(cycles(why, Kind::Compute), 50, "{:?}", why.parts);
    assert_eq!((why.engines.len(), cycles(why, Kind::TimeOut)), (3, 0), "{:?}", why.parts);
    // The last word's way through the unit: four stages at each of the three engines on the way.
    assert_eq!(cycles(why, Kind::Reduce), 3 * 4, "{:?}", why.parts);
    // Forty words go through the unit one by one.
    let long = of("[[pbv.collective]]\nelements = 40\ntask_cycles = 50\n");
    assert!(cycles(&long.why[0], Kind::Reduce) >= 3 * (39 + 4), "{:?}", long.why[0].by_kind());
    let slow = of("[[pbv.collective]]\nlate = [{ end_point = 5, cycles = 900 }]\n");
    let why = &slow.why[0];
    assert_eq!(cycles(why, Kind::Compute), 900, "{:?}", why.parts);
    assert!(why.engines.iter().all(|engine| engine.others.iter().all(|(_, early)| *early > 700)), "{:?}", why.engines);
    // A lost contribution: an engine's watchdog asks for it.
    let lost = of("[pbv.engine]\ntimeout_cycles = 500\nretries = 2\n[[pbv.collective]]\nstart_cycle = 2500\n\
                   [[pbv.fault]]\neffect = \"drop\"\nat = \"leaf5\"\nway = \"from\"\nnth = 0\nfrom_cycle = 2500\n");
    let why = &lost.why[0];
    assert_eq!(cycles(why, Kind::TimeOut), 500, "{:?}", why.parts);
    let mut waited = why.parts.iter().filter(|part| part.kind == Kind::TimeOut);
    assert!(waited.all(|part| part.place == "s1.engine"), "{:?}", why.parts);
}

#[test]
fn any_round_can_be_followed() {
    let loaded = load(&format!("{TREE}rounds = 4\ncompute_cycles = {{ random_max = 100 }}\n"));
    let mut last = 0;
    for round in 0..4 {
        let result = explained(&loaded, WhyQuery { packet: Some(round), ..WhyQuery::default() });
        let why = &result.why[0];
        assert_adds_up(why, "a round");
        assert_eq!((why.number, why.what.as_str()), (round, "round"));
        let document = &result.document.armed.as_ref().unwrap().reductions[0];
        let named = document.rounds.iter().find(|of| of.round == Some(round as u32)).unwrap();
        assert_eq!(why.since_last_contribution(), named.latency_cycles);
        assert_eq!(why.start_cycle, named.armed_cycle);
        assert!(why.end_cycle > last);
        last = why.end_cycle;
    }
    let beyond = explained(&loaded, WhyQuery { packet: Some(4), ..WhyQuery::default() });
    assert!(beyond.why.is_empty() && beyond.notes[0].contains("no round 4"), "{:?}", beyond.notes);
}
