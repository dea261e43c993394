//! Random scenarios of all families, each held against its registers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use watershed::fabric::Plan;
use watershed::kernel::Rng;
use watershed::scenario::config::Family;
use watershed::scenario::config::Wave;
use watershed::scenario::file::CollectiveKind;
use watershed::scenario::run::{RunOptions, RunResult, WaveOptions, run};
use watershed::scenario::why::{Kind, WhyQuery};
use watershed::scenario::{Loaded, load_text};

use crate::blocks;
use crate::network::{Network, Sent, frames, run as run_of};
use crate::piuma::{Limits, Piuma};
use crate::registers::Registers;
use crate::scenarios::Random;
use crate::share;
use crate::steps::Steps;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Cycles by kind that were compared.
type Seen = BTreeMap<Kind, u64>;

/// A scenario with its account, if that is asked for, and its registers.
pub fn observed(loaded: &Loaded, ask: Option<WhyQuery<'_>>) -> Option<(RunResult, Registers)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wave.vcd");
    let mut signals = vec!["**".to_owned()];
    if loaded.scenario.family == Family::Pbv {
        signals.extend(["valid", "cc_id", "run"].map(|of| format!("**.ce.tree.level0.stage*.{of}")));
    }
    let wave = WaveOptions::of(path.clone(), Wave { signals, ..Wave::default() });
    let options = RunOptions { why: ask, wave: Some(&wave), all_links: true, ..RunOptions::default() };
    let result = run(loaded, &options).map_err(|error| eprintln!("{error}")).ok()?;
    Some((result, Registers::read(&path)))
}

/// A number of a scenario's text.
pub fn number(text: &str, key: &str, default: u64) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='));
    line.map_or(default, |value| value.trim().parse().unwrap())
}

/// Compares all accounts of a scenario with its registers; none if the scenario is refused.
fn check(text: &str, ask: WhyQuery<'_>, seen: &mut Seen) -> Option<usize> {
    let loaded = match load_text("test", text, Path::new(ROOT), "test", &[]) {
        Ok(loaded) => loaded,
        Err(problems) => {
            eprintln!("{problems}");
            return None;
        }
    };
    let (result, registers) = observed(&loaded, Some(ask))?;
    let stages = number(text, "pipeline_stages", 1);
    let bits = number(text, "flit_bits", 64);
    let drains = text.contains("wait_for_tail_credit = true");
    let expected = ended(&result);
    if expected > 0 && ask.packet.is_none() && ask.source.is_none() {
        assert_eq!(result.why.len(), expected, "{text}\n{:?}", result.notes);
    }
    match loaded.scenario.family {
        Family::Armed => {
            use watershed::scenario::armed::build::{BuildOptions, build};
            let ready = build(&loaded, BuildOptions::default()).ok()?;
            // A frame has 84 bytes, and a header before it where software sends it.
            let flits = (8 * 84_u64).div_ceil(bits) as usize;
            let length = move |set: bool, list: &[Sent]| list.len().min(if set { flits } else { flits + 1 });
            let mut net = Network::new(&registers, ready.system.plan(), stages, length);
            (net.stores, net.frame_flits) = (true, flits);
            net.drains = drains;
            for why in &result.why {
                let steps = Steps::new(why, text);
                let reductions = result.document.armed.iter().flat_map(|armed| &armed.reductions);
                let slowest =
                    reductions.filter(|of| of.name == why.collective).find_map(|of| Some(of.round_latency_cycles?.max));
                is_slowest(&steps, ask, slowest);
                blocks::armed(&net, &steps, text);
                count(&steps, seen);
            }
        }
        Family::Pbv => {
            use watershed::scenario::pbv::build::{BuildOptions, build};
            let ready = build(&loaded, BuildOptions::default()).ok()?;
            let mut net = Network::new(&registers, ready.system.plan(), stages, frames(bits));
            net.drains = drains;
            for why in &result.why {
                let steps = Steps::new(why, text);
                let collectives = result.document.pbv.iter().flat_map(|pbv| &pbv.collectives);
                let slowest = collectives
                    .filter(|of| of.name == why.collective)
                    .find_map(|of| Some(of.round_latency_cycles?.max));
                is_slowest(&steps, ask, slowest);
                blocks::pbv(&net, &steps, text);
                count(&steps, seen);
            }
        }
        _ => {
            use watershed::scenario::build::{BuildOptions, build};
            let ready = build(&loaded, BuildOptions { whole: true, ..BuildOptions::default() }).ok()?;
            let plan: &Plan = ready.system.plan();
            let mut net = Network::new(&registers, plan, stages, |set, list| if set { 1 } else { run_of(list) });
            net.drains = drains;
            let ceng = ready.system.joins().first().map(watershed::piuma::Ceng::cfg);
            let limits = Limits {
                operand_slots: ceng.map_or(0, |cfg| cfg.operand_slots as usize),
                result_slots: ceng.map_or(0, |cfg| cfg.result_slots as usize),
                unit_stages: ceng.map_or(0, |cfg| u64::from(cfg.tree.unit_stages)),
                read_latency: number(text, "read_latency_cycles", 0),
            };
            let scans = loaded.scenario.collectives.iter().filter(|of| of.kind == CollectiveKind::Scan);
            let scans: BTreeSet<u64> = scans.map(|of| u64::from(of.id)).collect();
            let piuma = Piuma::new(&net, limits, scans);
            for why in &result.why {
                let steps = Steps::new(why, text);
                if let Some(asked) = ask.packet.filter(|_| ask.source.is_none() && why.what == "word") {
                    let asked = asked - words_before(&result, &why.collective);
                    steps.demand(why.number == asked, || format!("why explains word {} for {asked}", why.number));
                }
                match why.what.as_str() {
                    "word" => blocks::word(&piuma, &steps, &loaded.scenario),
                    "rank" => blocks::host(&net, &steps),
                    _ => blocks::packet(&net, &steps, ask),
                }
                count(&steps, seen);
            }
        }
    }
    Some(result.why.len())
}

/// Words of the vector that come before those of a segment: a word is asked for by its number in the vector, and told by that
/// in its segment.
fn words_before(result: &RunResult, name: &str) -> u64 {
    let Some((vector, segment)) = name.split_once('.') else { return 0 };
    let of = result.document.collectives.iter().find(|of| of.name == vector).expect("the vector of a segment");
    let dtype = of.dtype.as_deref().expect("a vector has a type");
    let bits: u64 = dtype.trim_start_matches(|letter: char| !letter.is_ascii_digit()).parse().expect("f64, i32, ...");
    of.segments[segment.parse::<usize>().expect("NAME.N")].first_element / (64 / bits)
}

/// A vector of two words in two segments: word 1 is word 0 of the second one.
#[test]
fn a_word_of_a_vector_is_found_in_its_segment() {
    for (dtype, elements, word) in [("f64", 2, 1), ("f64", 7, 5), ("f32", 7, 3), ("bf16", 13, 2)] {
        let text = format!(
            "family = \"piuma\"\n[clock]\nfrequency_mhz = 1000\n[topology]\nkind = \"nodes\"\nsize = [2]\nsockets = 1\n\
             tiles = 2\npositions = 1\n[memory]\nbandwidth_gbps = 51.2\n[[collective]]\nkind = \"allreduce\"\nid = 0\n\
             elements = {elements}\ndtype = \"{dtype}\"\nsegments = 2\n"
        );
        let mut seen = Seen::new();
        assert_eq!(check(&text, WhyQuery { packet: Some(word), ..ANY }, &mut seen), Some(1), "{text}");
    }
}

/// The account of a round or run that nobody asked for by number is that of the slowest: the document says how long that took.
fn is_slowest(steps: &Steps<'_>, ask: WhyQuery<'_>, slowest: Option<u64>) {
    let (since, number) = (steps.why.since_last_contribution(), steps.why.number);
    match ask.packet {
        None => steps.demand(since == slowest && since.is_some(), || {
            format!("{since:?} cycles from the last contribution; the document says {slowest:?}")
        }),
        Some(asked) => {
            steps.demand(number == asked && since <= slowest, || format!("{asked} is asked for, not {number}"));
        }
    }
}

/// Accounts that there must be: of all that has ended.
fn ended(result: &RunResult) -> usize {
    let document = &result.document;
    let words = document.collectives.iter().filter(|of| of.latency_cycles.is_some()).count();
    let calls =
        document.programs.iter().flat_map(|programs| &programs.calls).filter(|of| of.end_cycle.is_some()).count();
    let hosts = document.hosts.iter().filter(|of| of.mode == "fabric" && of.latency_cycles.is_some()).count();
    let armed = document.armed.iter().flat_map(|armed| &armed.reductions);
    let armed = armed.filter(|of| of.round_latency_cycles.is_some()).count();
    let pbv = document.pbv.iter().flat_map(|pbv| &pbv.collectives);
    words + calls + hosts + armed + pbv.filter(|of| of.round_latency_cycles.is_some()).count()
}

/// Counts cycles that were compared, and sees that all were.
fn count(steps: &Steps<'_>, seen: &mut Seen) {
    let unchecked = steps.unchecked();
    steps.demand(unchecked.is_empty(), || format!("nobody compared cycles {unchecked:?}"));
    for (kind, cycles) in steps.why.by_kind() {
        *seen.entry(kind).or_default() += cycles;
    }
}

/// What a campaign has compared.
struct Compared {
    accounts: u64,
    /// How many of its seeds ran.
    runs: u64,
    seen: Seen,
}

type Make = fn(&mut Random) -> String;
type Asking = fn(&mut Random) -> WhyQuery<'static>;

/// Random scenarios, `part` of the seeds; cycles of all these kinds must be among what was compared. All seeds have at least `least`
/// accounts, and a part of them half its share, as chance has it.
fn campaign(
    seeds: Range<u64>,
    step: usize,
    stream: u64,
    least: u64,
    ask: Asking,
    mut make: impl FnMut(u64, &mut Random) -> String,
    kinds: &[Kind],
) -> Compared {
    let (mut accounts, mut refused, mut ran, mut seen) = (0, 0, 0, Seen::new());
    let of = seeds.end - seeds.start;
    let due = |runs: u64| if runs < of { (least * runs).div_ceil(2 * of) } else { least };
    let mut wrong: Vec<u64> = Vec::new();
    let runs = part(step, seeds, |seed| {
        let mut random = Random(Rng::new(seed, stream));
        let text = make(seed, &mut random);
        let ask = ask(&mut random);
        // All seeds that fail are named, not the first one only.
        match catch_unwind(AssertUnwindSafe(|| check(&text, ask, &mut seen))) {
            Ok(Some(found)) => accounts += found as u64,
            Ok(None) => refused += 1,
            Err(_) => {
                eprintln!("stream {stream}, seed {seed}:\n{text}");
                wrong.push(seed);
            }
        }
        ran += 1;
        has(&seen, kinds) && accounts >= due(ran) && refused * 2 < ran
    });
    assert!(wrong.is_empty(), "stream {stream}: seeds {wrong:?} fail");
    let times = if runs < of { 2 } else { 4 };
    assert!(refused * times < runs, "{refused} of {runs} scenarios are refused");
    assert!(accounts >= due(runs), "{accounts} accounts of {runs} runs: {seen:?}");
    expect(&seen, kinds);
    Compared { accounts, runs, seen }
}

/// One case in `step`, and of the others as many as it takes until `one` says that all there is to see was seen. In `make soak`, and
/// of the seeds in the environment, all. How many ran.
pub fn part(step: usize, all: Range<u64>, mut one: impl FnMut(u64) -> bool) -> u64 {
    let whole = share::is_whole() || std::env::var_os("WATERSHED_SEEDS").is_some();
    let step = if whole { 1 } else { step };
    let start = all.start;
    let others = all.clone().filter(|number| !(number - start).is_multiple_of(step as u64));
    let (mut runs, mut enough) = (0, false);
    for number in all.step_by(step) {
        enough = one(number);
        runs += 1;
    }
    for number in others {
        if enough {
            break;
        }
        enough = one(number);
        runs += 1;
    }
    runs
}

/// The seeds of a campaign, or those of the environment.
pub fn seeds(of: Range<u64>) -> Range<u64> {
    let given = std::env::var("WATERSHED_SEEDS").ok();
    given.map_or(of, |given| {
        let (from, to) = given.split_once("..").expect("WATERSHED_SEEDS=FROM..TO");
        from.parse().unwrap()..to.parse().unwrap()
    })
}

/// Whether there are cycles of all these kinds.
fn has(seen: &Seen, kinds: &[Kind]) -> bool {
    kinds.iter().all(|kind| seen.get(kind).is_some_and(|&cycles| cycles > 0))
}

fn expect(seen: &Seen, kinds: &[Kind]) {
    if std::env::var_os("WATERSHED_SEEDS").is_some() {
        return;
    }
    for kind in kinds {
        assert!(has(seen, &[*kind]), "no cycle of {kind:?}: {seen:?}");
    }
}

const ANY: WhyQuery<'static> = WhyQuery { collective: None, packet: None, source: None };

/// The last or slowest of all.
fn any(_: &mut Random) -> WhyQuery<'static> {
    ANY
}

/// One of the first packets, of all or of an end point.
fn packet(random: &mut Random) -> WhyQuery<'static> {
    let source = (random.0.below(2) == 0).then(|| random.0.below(4) as u32);
    WhyQuery { collective: None, packet: Some(random.0.below(if source.is_some() { 4 } else { 30 })), source }
}

/// One of the first words, rounds or runs.
fn early(random: &mut Random) -> WhyQuery<'static> {
    WhyQuery { packet: Some(random.0.below(3)), ..ANY }
}

#[test]
fn words_wait_for_what_the_registers_show() {
    let kinds = [
        &[Kind::CreditWait, Kind::Arbitration, Kind::Behind, Kind::OperandSlot, Kind::EngineWait, Kind::Queue][..],
        &[Kind::LateStart, Kind::MemoryRead, Kind::Link, Kind::Switch, Kind::Reduce, Kind::MemoryWrite],
        &[Kind::Claim, Kind::ClaimHeld],
    ];
    campaign(seeds(0..60), 8, 1, 60, any, |_, random| random.piuma(), &kinds.concat());
}

#[test]
fn calls_wait_for_what_the_registers_show() {
    let kinds = [Kind::Call, Kind::CreditWait, Kind::MemoryRead, Kind::LateStart];
    campaign(seeds(0..20), 2, 2, 40, any, |_, random| random.programs(), &kinds);
}

#[test]
fn hosts_wait_for_what_the_registers_show() {
    let kinds = [Kind::Software, Kind::CreditWait, Kind::MemoryRead, Kind::Reduce, Kind::Inject];
    campaign(seeds(0..30), 5, 3, 30, any, |_, random| random.hosts(), &kinds);
}

const OF_PACKETS: [Kind; 6] =
    [Kind::Queue, Kind::Frame, Kind::CreditWait, Kind::Arbitration, Kind::Behind, Kind::Switch];

#[test]
fn packets_wait_for_what_the_registers_show() {
    campaign(seeds(0..60), 8, 4, 30, any, |_, random| random.fabric(), &OF_PACKETS);
}

#[test]
fn packets_that_are_asked_for_wait_for_what_the_registers_show() {
    campaign(seeds(0..40), 6, 8, 25, packet, |_, random| random.fabric(), &OF_PACKETS);
}

#[test]
fn what_is_asked_for_waits_for_what_the_registers_show() {
    let all: [(u64, u64, Make); 3] = [(9, 20, Random::piuma), (10, 15, Random::armed), (11, 15, Random::pbv)];
    for (stream, many, make) in all {
        campaign(seeds(0..many), 5, stream, many / 3, early, |_, random| make(random), &[]);
    }
}

#[test]
fn armed_rounds_wait_for_what_the_registers_show() {
    let kinds = [Kind::TimeOut, Kind::Compute, Kind::Software, Kind::Engine, Kind::Reduce, Kind::Frame, Kind::Behind];
    campaign(seeds(0..40), 6, 5, 25, any, |_, random| random.armed(), &kinds);
}

#[test]
fn rounds_of_trees_that_are_asked_for_wait_for_what_the_registers_show() {
    let kinds = [Kind::LateStart, Kind::Compute, Kind::Frame, Kind::SetUp];
    let all: [(u64, Asking, &[Kind]); 2] = [(12, any, &kinds[..3]), (14, early, &kinds)];
    for (stream, ask, kinds) in all {
        campaign(seeds(0..25), 6, stream, 15, ask, |_, random| random.asking(), kinds);
    }
}

#[test]
fn rounds_that_a_time_out_ends_wait_for_what_the_registers_show() {
    let kinds = [Kind::Engine, Kind::Reduce];
    let compared = campaign(seeds(0..25), 4, 13, 20, any, |_, random| random.miscounted(), &kinds);
    // Nearly all that these engines do is wait.
    let of_all = if compared.runs < 25 { 5_000 } else { 10_000 };
    assert!(compared.seen[&Kind::TimeOut] > of_all * compared.runs / 25, "{:?}", compared.seen);
}

#[test]
fn rounds_of_several_trees_wait_for_what_the_registers_show() {
    let kinds = [Kind::Arbitration, Kind::Behind, Kind::Switch];
    campaign(seeds(0..40), 6, 7, 40, any, |_, random| random.crossing(), &kinds);
}

#[test]
fn pbv_runs_wait_for_what_the_registers_show() {
    let kinds = [Kind::Compute, Kind::Queue, Kind::Engine, Kind::Reduce, Kind::Frame, Kind::Switch];
    campaign(seeds(0..20), 4, 6, 15, any, |_, random| random.pbv(), &kinds);
}

/// H-WIDTH-1: what is waited for while frames cross links in flits of other sizes. Ten seeds have each size.
#[test]
fn frames_of_flits_of_every_size_wait_for_what_the_registers_show() {
    let families: [(u64, Make, &[Kind]); 2] = [
        (21, Random::armed, &[Kind::TimeOut, Kind::Software, Kind::Engine, Kind::Reduce, Kind::Frame]),
        (22, Random::pbv, &[Kind::Queue, Kind::Engine, Kind::Reduce, Kind::Frame, Kind::Switch]),
    ];
    for (stream, make, kinds) in families {
        let in_flits = |seed: u64, random: &mut Random| {
            let bits = [32, 96, 128, 512][seed as usize / 10 % 4];
            make(random).replacen("[link]\n", &format!("[link]\nflit_bits = {bits}\n"), 1)
        };
        campaign(seeds(0..40), 8, stream, 25, any, in_flits, kinds);
    }
}

#[test]
fn hosts_sleep_through_nothing_that_they_could_do() {
    for seed in 0..25 {
        let text = Random(Rng::new(seed, 3)).hosts();
        let Ok(loaded) = load_text("test", &text, Path::new(ROOT), "test", &[]) else { continue };
        let [skips, does_not] =
            [false, true].map(|no_skip| run(&loaded, &RunOptions { no_skip, ..RunOptions::default() }));
        let [skips, does_not] = [skips.unwrap().document, does_not.unwrap().document];
        assert_eq!(skips.hosts, does_not.hosts, "{text}");
        assert_eq!(skips.links, does_not.links, "{text}");
    }
}

/// Without a waveform only what is used of a system of nodes is built.
#[test]
fn accounts_are_the_same_without_a_waveform() {
    const NODES: &str = "family = \"piuma\"\n[clock]\nfrequency_mhz = 1000\n[topology]\nkind = \"nodes\"\nsize = [2]\n\
                         sockets = 2\ntiles = 2\npositions = 1\n[switch]\ncollective_buffer_flits = 2\nceng.operand_slots = 1\n\
                         [[collective]]\nkind = \"KIND\"\nelements = 20\ndelay_cycles = { random_max = 30 }\n";
    for kind in ["allreduce", "reduce", "broadcast"] {
        let text = NODES.replace("KIND", kind);
        let loaded = load_text("test", &text, Path::new(ROOT), "test", &[]).unwrap_or_else(|p| panic!("{p}"));
        let (with, _) = observed(&loaded, Some(ANY)).unwrap();
        let without = run(&loaded, &RunOptions { why: Some(ANY), ..RunOptions::default() }).unwrap();
        assert_eq!(with.why.len(), 1, "{text}: {:?}", with.notes);
        assert_eq!(with.why, without.why, "{text}: {:?}", without.notes);
    }
}

/// A receiver that is late has the word in its queue until it begins, which is when its delay says.
#[test]
fn a_late_receiver_begins_when_its_delay_says() {
    for (elements, word, bandwidth) in [(1, 0, "\"unlimited\""), (9, 0, "20"), (9, 1, "20")] {
        for late in [30, 47] {
            let text = format!(
                "family = \"piuma\"\n[clock]\nfrequency_mhz = 1000\n[topology]\nkind = \"mesh\"\nsize = [3]\n\
                 [memory]\nbandwidth_gbps = {bandwidth}\n\
                 [[collective]]\nkind = \"broadcast\"\nid = 0\nelements = {elements}\ndtype = \"i64\"\nstart_cycle = 5\n\
                 delay_cycles = [0, 0, {late}]\n"
            );
            let loaded = load_text("test", &text, Path::new(ROOT), "test", &[]).unwrap_or_else(|p| panic!("{p}"));
            let word = WhyQuery { packet: Some(word), ..ANY };
            assert_eq!(check(&text, word, &mut Seen::new()), Some(1), "{text}");
            let (result, registers) = observed(&loaded, Some(word)).unwrap();
            let why = &result.why[0];
            let last = why.parts.iter().rfind(|part| part.kind == Kind::LateStart).expect("somebody is late");
            assert_eq!((last.place.as_str(), last.to), ("s2.node", 5 + late), "{why:?}");
            // The word was there before, and the first one is taken in the cycle in which the core begins.
            let received = registers.get("mesh.s2.node.job0.received");
            assert!(last.from > why.start_cycle && received.steps(5 + late) == 1, "{why:?}");
            assert!(why.parts.iter().all(|part| part.kind != Kind::Call), "{why:?}");
        }
    }
}

/// A scenario whose accounts must hold.
fn holds(text: &str, ask: WhyQuery<'_>) -> Seen {
    let mut seen = Seen::new();
    assert!(check(text, ask, &mut seen).is_some_and(|accounts| accounts > 0), "{text}");
    seen
}

/// A scan has several results of one operand; beside it a reduction's operands wait for the same slots.
#[test]
fn operands_beside_a_scan_wait_for_slots() {
    for (operands, seed) in [(1, 0), (2, 1), (1, 2)] {
        let text = format!(
            "family = \"piuma\"\nseed = {seed}\n[clock]\nfrequency_mhz = 1000\n[topology]\nkind = \"mesh\"\nsize = [4]\n\
             concentration = 2\n[switch]\npipeline_stages = 2\nceng.stages = 3\nceng.operand_slots = {operands}\n\
             [[collective]]\nkind = \"scan\"\nid = 0\nelements = 33\n\
             [[collective]]\nkind = \"allreduce\"\nid = 1\ndelay_cycles = 7\nelements = 2\n"
        );
        for word in [0, 1] {
            holds(&text, WhyQuery { packet: Some(word), ..ANY });
        }
    }
}

/// Copies of a frame by two trees have one token; the one that a process saw first is the one whose way is told.
#[test]
fn copies_by_redundant_trees_are_told_apart() {
    for (receive, seed) in [(25, 1), (40, 2), (25, 3)] {
        for stages in [1, 3] {
            let text = format!(
                "family = \"armed\"\nseed = {seed}\n[clock]\nfrequency_mhz = 1000\n[topology]\nkind = \"tree\"\n\
                 branching = [3]\n[link]\nlatency_cycles = 8\nlocal_latency_cycles = 1\ncycles_per_flit = 2\n\
                 [switch]\npipeline_stages = {stages}\n[armed.engine]\nstages = 6\ndescriptors = 8\n\
                 timeouts_1024_cycles = [2, 2, 3, 4]\n[[armed.reduction]]\nname = \"a\"\nop = \"int-min\"\nrounds = 4\n\
                 compute_cycles = 0\nsend_overhead_cycles = 0\nreceive_overhead_cycles = {receive}\nmerge_cycles = 0\n\
                 redundant = true\n"
            );
            let seen = holds(&text, ANY);
            assert!(seen[&Kind::Software] >= receive, "{seen:?}");
        }
    }
}

/// An engine whose children miss a multicast sends it again when its watchdog fires.
#[test]
fn a_multicast_is_sent_again_when_a_watchdog_fires() {
    const TEXT: &str = r#"family = "pbv"
seed = 426
[clock]
frequency_mhz = 1000
[topology]
kind = "tree"
branching = [2, 2, 2]
[link]
latency_cycles = 3
local_latency_cycles = 1
cycles_per_flit = 1
[switch]
pipeline_stages = 3
[pbv.engine]
stages = 1
hazard = "interlock"
attach = "own"
timeout_cycles = 600
retries = 3
[pbv.setup]
configuration = "side-port"
[[pbv.collective]]
name = "c0"
kind = "multicast"
blocks = true
rounds = 3
start_cycle = 2500
[[pbv.fault]]
effect = "drop"
at = "all"
probability = 0.02
from_cycle = 2500
way = "both"
[[pbv.fault]]
effect = "corrupt"
at = "all"
probability = 0.02
from_cycle = 2500
way = "both""#;
    let seen = holds(TEXT, ANY);
    // The watchdog of the lowest engines waits for those above: 81 times as long.
    assert!(seen[&Kind::TimeOut] >= 81 * 600 - 100, "{seen:?}");
    assert!(seen.get(&Kind::Reduce).is_none_or(|cycles| *cycles < 100), "{seen:?}");
}

/// At the switch of end point 1 a multicast goes on to 2 and 3 while its copy for 1 waits behind another root's multicast.
#[test]
fn each_copy_of_a_multicast_goes_at_its_own_pace() {
    const LINKS: [(u64, u64, u64, u64); 5] =
        [(2, 0, 3, 24), (2, 5, 3, 11), (3, 0, 3, 24), (1, 0, 8, 11), (2, 0, 14, 11)];
    const KINDS: [Kind; 3] = [Kind::Arbitration, Kind::CreditWait, Kind::Behind];
    let asked = [WhyQuery { packet: Some(1), ..ANY }, WhyQuery { packet: Some(3), ..ANY }, ANY];
    let mut seen = Seen::new();
    // One in seven of all combinations has each link, each number of descriptors and each question, and only the last of them and a few
    // others wait for credits.
    part(7, 0..30, |case| {
        let case = case as usize;
        let ((slow, work, latency, buffer), descriptors) = (LINKS[case / 6], [0, 8][case / 3 % 2]);
        let text = format!(
            "family = \"armed\"\n[clock]\nfrequency_mhz = 1000\n[topology]\nkind = \"mesh\"\nsize = [4]\n\
             [link]\nlatency_cycles = {latency}\nlocal_latency_cycles = 1\ncycles_per_flit = {slow}\n\
             [switch]\ncollective_buffer_flits = {buffer}\n[armed.engine]\nstages = 3\ndescriptors = {descriptors}\n\
             timeouts_1024_cycles = [1, 2, 3, 4]\n\
             [[armed.reduction]]\nname = \"a\"\nop = \"int-sum\"\nparticipants = [0, 1, 2, 3]\nrounds = 4\n\
             compute_cycles = {work}\n\
             [[armed.reduction]]\nname = \"b\"\nop = \"int-sum\"\nparticipants = [2, 1]\nrounds = 9\n\
             compute_cycles = 0\n\
             [[armed.reduction]]\nname = \"c\"\nop = \"int-sum\"\nparticipants = [3, 1]\nrounds = 9\n\
             compute_cycles = 0\n"
        );
        for (kind, cycles) in holds(&text, asked[case % 3]) {
            *seen.entry(kind).or_default() += cycles;
        }
        has(&seen, &KINDS)
    });
    expect(&seen, &KINDS);
}

/// Words of a message come faster than a rank's memory takes them.
#[test]
fn messages_wait_for_the_memory_of_the_rank_that_takes_them() {
    for (algorithm, words) in
        [("recursive-doubling", 8), ("ring", 8), ("send-loop", 3), ("binary-tree", 8), ("rabenseifner", 8)]
    {
        for bandwidth in ["8", "20"] {
            let text = format!(
                "family = \"piuma\"\n[clock]\nfrequency_mhz = 1000\n[topology]\nkind = \"mesh\"\nsize = [5]\n\
                 [memory]\nbandwidth_gbps = {bandwidth}\nread_latency_cycles = 5\nwrite_latency_cycles = 4\n\
                 [[host]]\nname = \"h0\"\nalgorithm = \"{algorithm}\"\nelements = 40\noverhead_cycles = 3\n\
                 packet_words = {words}\n"
            );
            let seen = holds(&text, ANY);
            let waits = seen.contains_key(&Kind::MemoryWrite);
            assert!(waits || algorithm != "recursive-doubling", "{seen:?}");
        }
    }
}

/// In the last cycle of these runs a flit comes to a queue that another one leaves.
#[test]
fn a_run_may_end_while_flits_come() {
    const ENDS: [&str; 2] = [
        "seed = 111\n[topology]\nkind = \"mesh\"\nsize = [3, 2]\n[link]\nlatency_cycles = 1\nlocal_latency_cycles = 1\n\
         cycles_per_flit = 2\n[switch]\npipeline_stages = 1\narbiter = \"fixed\"\ncollective_buffer_flits = 3\n\
         point_to_point_buffer_flits = 2\nceng.stages = 1\nceng.operand_slots = 2\n\
         [memory]\nbandwidth_gbps = 20\nread_latency_cycles = 5\nwrite_latency_cycles = 4\n\
         [[collective]]\nkind = \"barrier\"\nid = 0\ndelay_cycles = { random_max = 40 }\nstart_cycle = 0\n\
         [[collective]]\nkind = \"broadcast\"\nid = 1\nstart_cycle = 13\nelements = 1\ndtype = \"f64\"\n\
         [[traffic]]\npattern = \"uniform\"\nrate = 0.3\n",
        "seed = 785\n[topology]\nkind = \"mesh\"\nsize = [4]\nconcentration = 2\n[link]\nlatency_cycles = 1\n\
         local_latency_cycles = 1\ncycles_per_flit = 3\n[switch]\npipeline_stages = 4\narbiter = \"round-robin\"\n\
         collective_buffer_flits = 2\npoint_to_point_buffer_flits = 2\nceng.stages = 3\nceng.operand_slots = 2\n\
         [memory]\nbandwidth_gbps = 51.2\nread_latency_cycles = 0\nwrite_latency_cycles = 0\n\
         [[collective]]\nkind = \"allreduce\"\nid = 0\ndelay_cycles = 7\nstart_cycle = 13\nelements = 9\ndtype = \"i64\"\n\
         [[traffic]]\npattern = \"uniform\"\nrate = 0.1\n",
    ];
    for text in ENDS {
        holds(&format!("family = \"piuma\"\n{}", text.replacen('\n', "\n[clock]\nfrequency_mhz = 1000\n", 1)), ANY);
    }
}

#[test]
#[ignore = "takes minutes"]
fn thousands_wait_for_what_the_registers_show() {
    let all: [(u64, u64, Asking, Make); 14] = [
        (1, 700, any, Random::piuma),
        (2, 350, any, Random::programs),
        (3, 150, any, Random::hosts),
        (4, 700, any, Random::fabric),
        (5, 700, any, Random::armed),
        (6, 250, any, Random::pbv),
        (7, 300, any, Random::crossing),
        (8, 300, packet, Random::fabric),
        (9, 200, early, Random::piuma),
        (10, 200, early, Random::armed),
        (11, 100, early, Random::pbv),
        (12, 150, any, Random::asking),
        (13, 200, any, Random::miscounted),
        (14, 150, early, Random::asking),
    ];
    let mut wrong = Vec::new();
    for (stream, many, ask, make) in all {
        let seeds = seeds(100..100 + many);
        let least = (seeds.end - seeds.start) / 3;
        let held = catch_unwind(|| {
            let compared = campaign(seeds, 1, stream, least, ask, |_, random| make(random), &[]);
            eprintln!("stream {stream}: {} accounts {:?}", compared.accounts, compared.seen);
        });
        wrong.extend(held.is_err().then_some(stream));
    }
    assert!(wrong.is_empty(), "streams {wrong:?} fail");
}
