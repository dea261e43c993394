//! Issue 8: `why` follows software: which rank's which round waited for which message, for its memory, for its overhead; the parts
//! follow each other without a gap and add up to the latency exactly.

use std::fmt::Write;
use std::path::Path;

use watershed::kernel::Rng;
use watershed::scenario::run::{RunOptions, RunResult, run};
use watershed::scenario::why::{Kind, Phase, Why, WhyQuery};
use watershed::scenario::{Loaded, load_file, load_text};

use crate::support::{UNLIMITED, die};

fn explained(loaded: &Loaded) -> RunResult {
    run(loaded, &RunOptions { why: Some(WhyQuery::default()), ..RunOptions::default() })
        .unwrap_or_else(|e| panic!("{e}"))
}

fn of(text: &str, sets: &[String]) -> RunResult {
    explained(&load_text("test", text, Path::new("."), "test", sets).unwrap_or_else(|p| panic!("{p}\n{text}")))
}

/// Every host that ended on the fabric is explained; how many.
fn assert_whole(result: &RunResult, what: &str) -> usize {
    let hosts = result.document.hosts.iter().filter(|host| host.mode == "fabric" && host.latency_cycles.is_some());
    let mut count = 0;
    for host in hosts {
        let why = result.why.iter().find(|why| why.collective == host.name);
        let why = why.unwrap_or_else(|| panic!("{what}: {} is not explained: {:?}", host.name, result.notes));
        let at = format!("{what}: {}: {:?}", why.collective, why.parts);
        assert_eq!(Some(why.latency_cycles), host.latency_cycles, "{at}");
        assert_eq!((Some(why.start_cycle), Some(why.end_cycle)), (host.start_cycle, host.end_cycle), "{at}");
        assert_eq!(why.parts.first().map_or(why.start_cycle, |part| part.from), why.start_cycle, "{at}");
        assert_eq!(why.parts.last().map_or(why.end_cycle, |part| part.to), why.end_cycle, "{at}");
        assert!(why.parts.windows(2).all(|pair| pair[0].to == pair[1].from), "{at}");
        assert!(why.parts.iter().all(|part| part.from < part.to), "{at}");
        assert_eq!(why.by_kind().iter().map(|(_, cycles)| cycles).sum::<u64>(), why.latency_cycles, "{at}");
        count += 1;
    }
    count
}

fn cycles(why: &Why, kind: Kind) -> u64 {
    why.by_kind().iter().find(|(found, _)| *found == kind).map_or(0, |(_, cycles)| *cycles)
}

#[test]
fn shipped_scenarios_with_software_add_up() {
    let mut hosts = 0;
    for (name, sets) in [("hosts-die", &["collective.0.elements=64"][..]), ("face-off-hosts", &[])] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testbench/piuma/{name}.toml"));
        let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
        let loaded = load_file(&path, &sets).unwrap();
        let plain = run(&loaded, &RunOptions::default()).unwrap();
        let result = explained(&loaded);
        assert_eq!(result.document.hosts, plain.document.hosts, "{name}: watching changes nothing");
        hosts += assert_whole(&result, name);
    }
    assert_eq!(hosts, 4 + 3);
}

/// From first principles: overhead, a header and the words of one packet, the way, the merge.
#[test]
fn one_exchange_is_told_part_by_part() {
    let text = die(
        "[[host]]\nname = \"h\"\nalgorithm = \"recursive-doubling\"\nparticipants = [0, 1]\nelements = 5\noverhead_cycles = 70\n",
    );
    let result = of(&text, &[UNLIMITED.to_owned(), "link.latency_cycles=9".into()]);
    let why = &result.why[0];
    assert_whole(&result, "two ranks");
    assert_eq!(cycles(why, Kind::Software), 70);
    // A local link of 1, one of 9, a local one of 1; two switches of one stage.
    assert_eq!(cycles(why, Kind::Link), 1 + 9 + 1);
    assert_eq!(cycles(why, Kind::Switch), 2);
    // A word a cycle.
    assert_eq!(
        why.parts.iter().filter(|part| part.phase == Phase::Reduce).map(|part| part.to - part.from).sum::<u64>(),
        5
    );
    assert_eq!((cycles(why, Kind::MemoryRead), cycles(why, Kind::CreditWait)), (0, 0));
    assert_eq!(why.engines.len(), 1);
    assert_eq!(why.engines[0].others[0].0, "own sending");
}

#[test]
fn what_is_slow_is_what_is_named() {
    let host = "[[host]]\nname = \"h\"\nalgorithm = \"rabenseifner\"\nelements = 512\n";
    // A late rank: everybody waits for it.
    let late = of(&die(&format!("{host}delay_cycles = [0, 0, 0, 3000, 0, 0, 0, 0]\n")), &[UNLIMITED.to_owned()]);
    assert_whole(&late, "late");
    assert_eq!(cycles(&late.why[0], Kind::LateStart), 3000, "{:?}", late.why[0].parts);
    assert!(late.why[0].parts[0].place.contains("core3"), "{:?}", late.why[0].parts[0]);
    // A slow memory: most of it is the memory's.
    let slow = of(&die(host), &["memory.bandwidth_gbps=6.4".into()]);
    assert_whole(&slow, "slow");
    let memory = cycles(&slow.why[0], Kind::MemoryRead) + cycles(&slow.why[0], Kind::MemoryWrite);
    assert!(memory * 2 > slow.why[0].latency_cycles, "{:?}", slow.why[0].by_kind());
    // Overhead: every round of the path has its own.
    let overhead = of(&die(&format!("{host}overhead_cycles = 900\n")), &[UNLIMITED.to_owned()]);
    assert_whole(&overhead, "overhead");
    assert_eq!(cycles(&overhead.why[0], Kind::Software) / 900, 6, "{:?}", overhead.why[0].by_kind());
}

#[test]
fn a_rank_that_is_alone_has_nothing_to_do() {
    for algorithm in ["recursive-doubling", "ring", "rabenseifner", "binary-tree", "send-loop"] {
        let text =
            die(&format!("[[host]]\nname = \"h\"\nalgorithm = \"{algorithm}\"\nparticipants = [2]\nelements = 9\n"));
        let result = of(&text, &[]);
        assert!(result.document.passed(), "{algorithm}: {:?}", result.document.checks);
        assert_eq!(
            (result.document.hosts[0].latency_cycles, assert_whole(&result, algorithm)),
            (Some(0), 1),
            "{algorithm}"
        );
    }
}

/// A random small system with one to three hosts, other work beside it.
fn random(rng: &mut Rng) -> String {
    let mut pick = |list: &[&str]| list[rng.below(list.len() as u64) as usize].to_owned();
    let mut text = format!("family = \"piuma\"\nseed = {}\n[topology]\n", pick(&["1", "2", "3"]));
    text += &pick(&[
        "kind = \"die\"",
        "kind = \"die\"\npositions = 2",
        "kind = \"mesh\"\nsize = [3, 2]",
        "kind = \"mesh\"\nsize = [5]",
    ]);
    let _ = write!(
        text,
        "\n[link]\nlatency_cycles = {}\nlocal_latency_cycles = {}\ncycles_per_flit = {}\n[switch]\npipeline_stages = {}\n\
         point_to_point_buffer_flits = {}\n[memory]\nbandwidth_gbps = {}\n",
        pick(&["1", "2", "7"]),
        pick(&["1", "3"]),
        pick(&["1", "1", "2"]),
        pick(&["1", "2", "4"]),
        pick(&["\"auto\"", "10", "40"]),
        pick(&["\"unlimited\"", "51.2", "20"]),
    );
    if pick(&["0", "0", "1"]) == "1" {
        text += "[[collective]]\nname = \"net\"\nkind = \"allreduce\"\nelements = 8\n";
    }
    for number in 0..pick(&["1", "2", "3"]).parse::<u32>().unwrap() {
        let _ = write!(
            text,
            "[[host]]\nname = \"h{number}\"\nalgorithm = \"{}\"\nelements = {}\noverhead_cycles = {}\npacket_words = {}\ndelay_cycles = {}\n",
            pick(&["recursive-doubling", "ring", "rabenseifner", "binary-tree", "send-loop"]),
            pick(&["1", "3", "17", "40"]),
            pick(&["0", "0", "1", "25"]),
            pick(&["1", "3", "8"]),
            pick(&["0", "{ random_max = 60 }"]),
        );
        if pick(&["0", "1"]) == "1" {
            let _ = writeln!(text, "participants = {}", pick(&["[0, 1, 2]", "[3, 1]", "[2, 0, 3, 1]", "[1]"]));
        }
    }
    text
}

fn random_ones(count: u64, first: u64) -> usize {
    let (mut hosts, mut refused) = (0, 0);
    for seed in first..first + count {
        let text = random(&mut Rng::new(seed, 0x40_57));
        let loaded = match load_text("test", &text, Path::new("."), "test", &[]) {
            Ok(loaded) => loaded,
            Err(problems) => {
                refused += 1;
                assert!(refused * 2 < count.max(10), "seed {seed}: {problems}\n{text}");
                continue;
            }
        };
        hosts += assert_whole(&explained(&loaded), &format!("seed {seed}\n{text}"));
    }
    hosts
}

#[test]
fn random_hosts_add_up() {
    assert!(random_ones(40, 1) >= 40);
}

#[test]
#[ignore = "takes minutes"]
fn a_thousand_random_hosts_add_up() {
    assert!(random_ones(1000, 1000) >= 1000);
}
