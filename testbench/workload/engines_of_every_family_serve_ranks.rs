//! Engines of every family compute collectives of traces, beside each other and for groups of ranks that meet in the network
//! (X-WORK-1). What members get is computed here again, by nothing but additions.

use std::path::Path;

use crate::share;
use crate::support::{end, workload};
use watershed::kernel::Rng;
use watershed::scenario::result::Document;
use watershed::scenario::run::{self, RunOptions};
use watershed::scenario::workload::build::vector;
use watershed::scenario::{Loaded, load_traced};
use watershed::workload::{Collective, CollectiveOp, Compute, Dependency, Format, Group, Kind, Node, Rank, Trace};

/// What a member of a group of these ranks does: computes for so many ns, then takes part.
struct Step {
    ns: u64,
    of: Collective,
}

/// A trace in which every rank goes through the steps of its groups, one after the other or those of groups beside each other.
fn trace(ranks: u32, groups: &[Vec<u32>], steps: &[Step], chained: bool) -> Trace {
    let rank = |rank: u32| {
        let mut nodes: Vec<Node> = Vec::new();
        let mut last: Vec<Option<u32>> = vec![None; groups.len()];
        for (number, step) in steps.iter().enumerate() {
            let group = step.of.group as usize;
            if !groups[group].contains(&rank) {
                continue;
            }
            let at = nodes.len() as u32;
            let before = if chained { at.checked_sub(1) } else { last[group] };
            let wait =
                |node: Option<u32>| node.map(|node| Dependency { node, start: false }).into_iter().collect::<Vec<_>>();
            let ps = 1000 * (step.ns + u64::from(rank) * 37 % 101);
            let node = |id: u32, kind, waits: Vec<Dependency>| Node {
                id: id.into(),
                name: format!("n{number}").into(),
                kind,
                stream: None,
                waits: waits.into(),
            };
            nodes.push(node(at, Kind::Compute(Compute { ps, ..Compute::default() }), wait(before)));
            nodes.push(node(at + 1, Kind::Collective(step.of), wait(Some(at))));
            last[group] = Some(at + 1);
        }
        Rank { file: Path::new("t").into(), nodes }
    };
    let group = |(number, ranks): (usize, &Vec<u32>)| Group {
        name: if number == 0 { String::new() } else { format!("g{number}") },
        ranks: ranks.clone(),
    };
    let groups = groups.iter().enumerate().map(group).collect();
    Trace { format: Format::Chakra, ranks: (0..ranks).map(rank).collect(), groups, hash: 0 }
}

/// A scenario in a file, whose trace is in memory.
fn load(family: &str, topology: &str, keys: &str, trace: &Trace) -> Result<Loaded, String> {
    load_with(64, family, (topology, keys), trace)
}

/// The same with so many collective ids, if there are engines that have them.
fn load_with(ids: u32, family: &str, (topology, keys): (&str, &str), trace: &Trace) -> Result<Loaded, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.toml");
    let text = format!(
        "family = {family:?}\ntopology = {topology}\nmemory.bandwidth_gbps = \"unlimited\"\nswitch.point_to_point_vcs = 8\n\
         limits.max_cycles = 100_000_000\n[workload]\ntrace = \"none\"\n{keys}\n"
    );
    std::fs::write(&path, text).unwrap();
    let piuma = family == "piuma" || keys.contains("piuma");
    let sets = piuma.then(|| format!("switch.collective_ids={ids}"));
    load_traced(&path, sets.as_slice(), trace).map_err(|problems| problems.to_string())
}

/// Runs it; every check must pass.
fn go(loaded: &Loaded, options: &RunOptions<'_>) -> Document {
    let document = run::run(loaded, options).unwrap_or_else(|error| panic!("{error}")).document;
    let failed: Vec<_> = document.checks.iter().filter(|check| !check.passed).collect();
    assert!(failed.is_empty() && !document.checks.is_empty(), "{failed:?}");
    document
}

/// The hash of a result, as the documentation has it.
fn hash(words: &[u64]) -> String {
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    for word in words {
        state = (state ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
        state = state.rotate_left(29).wrapping_add(0x1656_67b1);
    }
    format!("{state:016x}")
}

/// Every reduction and broadcast of integers has the words that additions give; how many there are.
fn by_additions(loaded: &Loaded, document: &Document, groups: &[Vec<u32>], steps: &[Step]) -> usize {
    let trace = &loaded.workload.as_ref().unwrap().matched.collectives;
    let mut looked = 0;
    for (index, (found, instance)) in workload(document).collectives.iter().zip(trace).enumerate() {
        let of = instance.collective;
        assert!(steps.iter().any(|step| step.of == of), "{of:?}");
        let members = groups[of.group as usize].len() as u32;
        let words = of.bytes.div_ceil(8);
        if members < 2
            || words == 0
            || !matches!(of.op, CollectiveOp::AllReduce | CollectiveOp::Reduce | CollectiveOp::Broadcast)
        {
            continue;
        }
        let rows = (0..members).map(|member| vector(&loaded.scenario, index as u32, member, words));
        let rows: Vec<Vec<u64>> = rows.collect();
        let sum = |at: usize| rows.iter().fold(0u64, |sum, row| sum.wrapping_add(row[at]));
        let expected: Vec<u64> = match of.op {
            CollectiveOp::Broadcast => rows[of.root as usize].clone(),
            _ => (0..words as usize).map(sum).collect(),
        };
        let software = of.op != CollectiveOp::AllReduce && found.engine == "binomial";
        if !software {
            assert_eq!(found.result_hash, Some(hash(&expected)), "{found:?}");
            looked += 1;
        }
    }
    looked
}

fn all(what: CollectiveOp, group: u32, bytes: u64) -> Collective {
    Collective { op: what, group, bytes, root: 0 }
}

const ENGINES: [&str; 4] = ["piuma", "armed", "pbv", "software"];

/// Short vectors with each engine in each family; long ones with one of three in `make test`: each engine and each family is among them.
#[test]
fn each_engine_computes_an_all_reduce_of_each_family() {
    let groups = [vec![0, 1, 2, 3]];
    let families = ["piuma", "armed", "pbv", "fabric"];
    let pairs = families.map(|family| ENGINES.map(|engine| (family, engine))).concat();
    for bytes in [8, 5000] {
        let steps = [
            Step { ns: 100, of: all(CollectiveOp::AllReduce, 0, bytes) },
            Step { ns: 2000, of: all(CollectiveOp::Barrier, 0, 0) },
            Step { ns: 10, of: Collective { root: 2, ..all(CollectiveOp::Reduce, 0, bytes) } },
            Step { ns: 10, of: all(CollectiveOp::AllReduce, 0, 3 * bytes) },
            Step { ns: 10, of: Collective { root: 1, ..all(CollectiveOp::Broadcast, 0, 2 * bytes) } },
        ];
        let trace = trace(4, &groups, &steps, true);
        for family in families {
            let usual = load(family, "{ kind = 'mesh', size = [2, 2] }", "dtype = \"i64\"", &trace).unwrap();
            let engine = &usual.scenario.workload.as_ref().unwrap().engines["allreduce"];
            assert_eq!(*engine, if family == "fabric" { "ring" } else { family });
        }
        for &(family, engine) in share::one_in(if bytes == 8 { 1 } else { 3 }, &pairs) {
            let keys = format!(
                "dtype = \"i64\"\nengine = {{ allreduce = {engine:?}, reduce = {engine:?}, barrier = {engine:?}, broadcast = {engine:?} }}"
            );
            let loaded = load(family, "{ kind = 'mesh', size = [2, 2] }", &keys, &trace).unwrap();
            let document = go(&loaded, &RunOptions::default());
            let least = if engine == "software" { 2 } else { 4 };
            assert_eq!(by_additions(&loaded, &document, &groups, &steps), least, "{family} {engine}");
            let of = &workload(&document).collectives;
            assert!(of.iter().all(|of| of.bit_exact == Some(true)), "{family} {engine}");
            let path: u64 = workload(&document).path.iter().map(|step| step.end_cycle - step.start_cycle).sum();
            assert_eq!(path, end(&document), "{family} {engine}");
        }
    }
}

/// Groups whose members' trees meet, and each engine for some kind of collective.
fn random(seed: u64) -> (Trace, Vec<Vec<u32>>, Vec<Step>, String, String) {
    let mut rng = Rng::new(seed, 0x776f_726b);
    let (ranks, topology) = match rng.below(5) {
        0 => (5, "{ kind = 'mesh', size = [5] }"),
        1 => (6, "{ kind = 'mesh', size = [3, 2] }"),
        2 => (8, "{ kind = 'hyperx', size = [4, 2] }"),
        3 => (6, "{ kind = 'torus', size = [3, 3] }"),
        _ => (8, "{ kind = 'mesh', size = [2, 2], concentration = 2 }"),
    };
    let mut groups = vec![(0..ranks).collect::<Vec<u32>>()];
    for _ in 0..rng.below(4) {
        let mut group: Vec<u32> = (0..ranks).filter(|_| rng.below(2) == 0).collect();
        if rng.below(2) == 0 {
            group.reverse();
        }
        if group.len() > 1 {
            groups.push(group);
        }
    }
    let mut pick = || ENGINES[rng.below(ENGINES.len() as u64) as usize];
    let engine =
        format!("allreduce = {:?}, reduce = {:?}, barrier = {:?}, broadcast = {:?}", pick(), pick(), pick(), pick());
    let kinds = [
        CollectiveOp::AllReduce,
        CollectiveOp::AllReduce,
        CollectiveOp::Reduce,
        CollectiveOp::Barrier,
        CollectiveOp::Broadcast,
        CollectiveOp::AllGather,
    ];
    let mut steps = Vec::new();
    for _ in 0..3 + rng.below(8) {
        let what = kinds[rng.below(kinds.len() as u64) as usize];
        let group = rng.below(groups.len() as u64) as u32;
        let root = match what {
            CollectiveOp::Reduce | CollectiveOp::Broadcast => rng.below(groups[group as usize].len() as u64) as u32,
            _ => 0,
        };
        let bytes = match (what, rng.below(4)) {
            (CollectiveOp::Barrier, _) => 0,
            (_, 0) => 8,
            (_, 1) => 8 * (1 + rng.below(40)),
            _ => 8 * (1 + rng.below(1400)),
        };
        steps.push(Step { ns: rng.below(3000), of: Collective { op: what, group, bytes, root } });
    }
    let chained = rng.below(2) == 0;
    let keys = format!("dtype = \"i64\"\nrounds_under_way = {}\nengine = {{ {engine} }}", 1 + rng.below(8));
    (trace(ranks, &groups, &steps, chained), groups, steps, topology.to_owned(), keys)
}

/// One seed of four in `make test`, each family among them, and one of the three other evaluations of each; all in `make soak`.
#[test]
fn random_workloads_have_the_sums_of_additions() {
    let first = std::env::var("WATERSHED_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let (mut looked, mut engines) = (0, std::collections::BTreeSet::new());
    for seed in share::one_in(4, first..first + 24) {
        let (trace, groups, steps, topology, keys) = random(seed);
        let shown = format!("WATERSHED_SEED={seed}: {topology} {keys}");
        let family = ["piuma", "armed", "pbv", "fabric", "mixed"][(seed % 5) as usize];
        let loaded = load(family, &topology, &keys, &trace).unwrap_or_else(|problems| panic!("{shown}\n{problems}"));
        let plain = go(&loaded, &RunOptions::default());
        looked += by_additions(&loaded, &plain, &groups, &steps);
        engines.extend(workload(&plain).collectives.iter().map(|of| of.engine.clone()));
        let mut others = [
            RunOptions { no_skip: true, ..RunOptions::default() },
            RunOptions { order_seed: Some(seed), ..RunOptions::default() },
            RunOptions { threads: 2, ..RunOptions::default() },
        ];
        others.rotate_left((seed % 3) as usize);
        for options in share::one_in(3, others) {
            assert_eq!(go(&loaded, &options), plain, "{shown} {options:?}");
        }
    }
    assert!(looked > share::of(5, 40) as usize, "{looked}");
    let found = ["piuma", "armed", "pbv"].iter().filter(|engine| engines.contains(**engine)).count();
    assert!(found >= if share::is_whole() { 3 } else { 2 }, "{engines:?}");
}

#[test]
fn floating_point_sums_are_those_of_the_order_of_arrival() {
    let groups = [vec![0, 1, 2, 3, 4, 5], vec![1, 2, 4], vec![0, 2, 5]];
    let steps: Vec<Step> =
        (0..9).map(|k| Step { ns: 300 * k, of: all(CollectiveOp::AllReduce, k as u32 % 3, 2000) }).collect();
    let trace = trace(6, &groups, &steps, false);
    for (engine, dtype) in [("armed", "f64"), ("pbv", "f64"), ("pbv", "f32"), ("pbv", "bf16")] {
        let keys = format!("dtype = {dtype:?}\nengine.allreduce = {engine:?}");
        let loaded = load("fabric", "{ kind = 'mesh', size = [3, 2] }", &keys, &trace).unwrap();
        let document = go(&loaded, &RunOptions::default());
        let of = &workload(&document).collectives;
        assert!(of.iter().all(|of| of.bit_exact == Some(true) && of.result_hash.is_some()), "{engine} {dtype} {of:?}");
        let jobs = document.armed.as_ref().map_or(0, |armed| armed.reductions.len())
            + document.pbv.as_ref().map_or(0, |pbv| pbv.collectives.len());
        assert!(jobs >= 3, "{engine} {dtype}: {jobs}");
    }
}

#[test]
fn calls_of_different_engines_go_beside_each_other() {
    let groups = [vec![0, 1, 2, 3]];
    let steps = [
        Step { ns: 100, of: all(CollectiveOp::AllReduce, 0, 16_000) },
        Step { ns: 0, of: Collective { root: 0, ..all(CollectiveOp::Reduce, 0, 16_000) } },
    ];
    let mut both = trace(4, &groups, &steps, true);
    for rank in &mut both.ranks {
        // The second computation waits for nothing.
        rank.nodes[2].waits = Box::default();
    }
    let times = |engine: &str| {
        let keys = format!("dtype = \"i64\"\nengine = {{ allreduce = \"armed\", reduce = {engine:?} }}");
        let loaded = load("fabric", "{ kind = 'mesh', size = [2, 2] }", &keys, &both).unwrap();
        let document = go(&loaded, &RunOptions::default());
        let of = &workload(&document).collectives;
        (of[1].start_cycle.unwrap() < of[0].end_cycle.unwrap(), of[0].end_cycle.unwrap(), of[1].end_cycle.unwrap())
    };
    for engine in ["pbv", "piuma"] {
        let times = times(engine);
        assert!(times.0, "{engine}: {times:?}");
    }
}

#[test]
fn what_engines_cannot_do_is_refused() {
    let groups = [vec![0, 1, 2, 3], vec![0, 1, 2]];
    let of = |what| [Step { ns: 0, of: all(what, 0, 64) }];
    let refused = |family: &str, keys: &str, steps: &[Step], words: &[&str]| {
        let said = match load(family, "{ kind = 'mesh', size = [4] }", keys, &trace(4, &groups, steps, true)) {
            Ok(loaded) => match run::run(&loaded, &RunOptions::default()) {
                Ok(_) => panic!("{keys} runs"),
                Err(error) => error.to_string(),
            },
            Err(said) => said,
        };
        for word in words {
            assert!(said.contains(word), "{keys}: {word}\n{said}");
        }
    };
    let reduce = of(CollectiveOp::AllReduce);
    refused("fabric", "engine.allreduce = \"armed\"", &reduce, &["no sum of f32", "\"f64\"", "element_bytes"]);
    refused("fabric", "engine.allreduce = \"network\"", &reduce, &["a plain fabric has no engines", "\"ring\""]);
    refused("mixed", "engine.allreduce = \"network\"", &reduce, &["\"piuma\", \"armed\" or \"pbv\""]);
    refused(
        "pbv",
        "engine.alltoall = \"pbv\"",
        &of(CollectiveOp::AllToAll),
        &["\"pbv\" cannot compute alltoall", "\"pairwise\""],
    );
    refused(
        "pbv",
        "rounds_under_way = 64\n[pbv.engine]\ncontexts = 4",
        &[Step { ns: 0, of: all(CollectiveOp::AllReduce, 0, 80_000) }],
        &["contexts", "rounds_under_way"],
    );
    let meet = [
        Step { ns: 0, of: all(CollectiveOp::AllReduce, 0, 64) },
        Step { ns: 0, of: all(CollectiveOp::AllReduce, 1, 64) },
    ];
    let words = ["share a link or an engine", "claims = false", "\"armed\" or \"pbv\""];
    refused("piuma", "[checks]\nclaims = false", &meet, &words);
    let said =
        load_with(1, "piuma", ("{ kind = 'mesh', size = [4] }", ""), &trace(4, &groups, &meet, true)).unwrap_err();
    for words in ["need 2 collective ids, and there are 1", "`switch.collective_ids` of at least 2"] {
        assert!(said.contains(words), "{said}");
    }
    refused(
        "fabric",
        "dtype = \"i64\"\nengine.allreduce = \"armed\"\n[armed]\ntable_entries = 1",
        &meet,
        &["no tree of armed engines"],
    );
    refused("pbv", "[[pbv.collective]]\nkind = \"allreduce\"", &reduce, &["of their own"]);
}

#[test]
fn elements_have_the_bytes_that_are_said() {
    let groups = [vec![0, 1, 2, 3]];
    let trace = trace(4, &groups, &[Step { ns: 0, of: all(CollectiveOp::AllReduce, 0, 400) }], true);
    let words = |keys: &str| {
        let keys = format!("dtype = \"f64\"\nengine.allreduce = \"ring\"\n{keys}");
        let loaded = load("fabric", "{ kind = 'mesh', size = [4] }", &keys, &trace).unwrap();
        workload(&go(&loaded, &RunOptions::default())).collectives[0].words_sent
    };
    assert_eq!(words(""), 2 * 3 * 50);
    assert_eq!(words("element_bytes = 4"), 2 * 3 * 100);
}

/// Two groups that share two ranks, which call them in opposite orders; each group twice, then both kinds.
fn opposite() -> (Trace, Vec<Vec<u32>>, Vec<Step>) {
    let groups = vec![(0..6).collect(), vec![2, 5, 0], vec![5, 1, 2]];
    let steps: Vec<Step> = (0..12)
        .map(|number| {
            let (group, what) =
                (1 + number % 2, if number < 8 { CollectiveOp::AllReduce } else { CollectiveOp::Reduce });
            Step { ns: 100 * u64::from(number), of: all(what, group, 400 + 8 * u64::from(number)) }
        })
        .collect();
    let mut trace = trace(6, &groups, &steps, false);
    // Rank 5 does those of group 2 before those of group 1, and they are written so.
    let nodes = &mut trace.ranks[5].nodes;
    let is_first = |node: &Node| match node.kind {
        Kind::Collective(of) => of.group == 2,
        _ => false,
    };
    let order: Vec<usize> = (0..nodes.len() / 2).collect();
    let (second, first): (Vec<usize>, Vec<usize>) = order.into_iter().partition(|pair| !is_first(&nodes[2 * pair + 1]));
    let mut moved = Vec::new();
    for (group, pairs) in [first, second].into_iter().enumerate() {
        for (at, pair) in pairs.into_iter().enumerate() {
            let here = moved.len() as u32;
            let wait = |node: u32| Box::from([Dependency { node, start: false }]);
            let mut compute = nodes[2 * pair].clone();
            compute.kind =
                Kind::Compute(Compute { ps: if at == 0 && group == 1 { 900_000 } else { 0 }, ..Compute::default() });
            compute.waits = if at == 0 { Box::default() } else { wait(here - 1) };
            let mut collective = nodes[2 * pair + 1].clone();
            collective.waits = wait(here);
            (compute.id, collective.id) = (here.into(), u64::from(here) + 1);
            moved.extend([compute, collective]);
        }
    }
    *nodes = moved;
    (trace, groups, steps)
}

#[test]
fn groups_that_meet_take_turns_by_claims() {
    let (trace, groups, steps) = opposite();
    let engines = "engine = { allreduce = \"piuma\", reduce = \"piuma\" }";
    for (family, topology) in [
        ("piuma", "{ kind = 'mesh', size = [3, 2] }"),
        ("piuma", "{ kind = 'mesh', size = [3, 1], concentration = 2 }"),
        ("fabric", "{ kind = 'torus', size = [3, 2] }"),
    ] {
        let loaded = load(family, topology, &format!("dtype = \"i64\"\n{engines}"), &trace).unwrap();
        let plain = go(&loaded, &RunOptions::default());
        assert_eq!(by_additions(&loaded, &plain, &groups, &steps), 12, "{family} {topology}");
        let of = &workload(&plain).collectives;
        assert!(of.iter().all(|of| of.engine == "piuma" && of.bit_exact == Some(true)), "{family} {topology} {of:?}");
        for options in [
            RunOptions { no_skip: true, ..RunOptions::default() },
            RunOptions { order_seed: Some(3), ..RunOptions::default() },
            RunOptions { threads: 2, ..RunOptions::default() },
        ] {
            assert_eq!(go(&loaded, &options), plain, "{family} {topology} {options:?}");
        }
    }
}

#[test]
fn calls_of_one_group_claim_nothing() {
    let groups = [vec![0, 1, 2, 3]];
    let steps = [
        Step { ns: 100, of: all(CollectiveOp::AllReduce, 0, 640) },
        Step { ns: 20, of: all(CollectiveOp::Barrier, 0, 0) },
        Step { ns: 10, of: Collective { root: 2, ..all(CollectiveOp::Reduce, 0, 640) } },
    ];
    let ends = |trace: &Trace, claims: bool| {
        let keys = format!("dtype = \"i64\"\n[checks]\nclaims = {claims}");
        let loaded = load("piuma", "{ kind = 'mesh', size = [4] }", &keys, trace).unwrap();
        end(&go(&loaded, &RunOptions::default()))
    };
    let alone = trace(4, &groups, &steps, true);
    assert_eq!(ends(&alone, true), ends(&alone, false), "their order is that of the group");
    // Another group that meets it and calls at the end: now all of them claim, which takes cycles.
    let groups = [groups[0].clone(), vec![1, 2]];
    let last = Step { ns: 0, of: all(CollectiveOp::AllReduce, 1, 8) };
    let before = end_of_last(&trace(4, &groups, &steps, true));
    let with: Vec<Step> = steps.into_iter().chain([last]).collect();
    assert!(end_of_last(&trace(4, &groups, &with, true)) > before + 20);
}

/// When the third collective was over.
fn end_of_last(trace: &Trace) -> u64 {
    let loaded = load("piuma", "{ kind = 'mesh', size = [4] }", "dtype = \"i64\"", trace).unwrap();
    workload(&go(&loaded, &RunOptions::default())).collectives[2].end_cycle.unwrap()
}

#[test]
fn calls_that_cannot_keep_their_order_are_refused() {
    let groups = [vec![0, 1, 2, 3]];
    let steps = [
        Step { ns: 5, of: all(CollectiveOp::AllReduce, 0, 64) },
        Step { ns: 9, of: all(CollectiveOp::AllReduce, 0, 64) },
    ];
    let mut turned = trace(4, &groups, &steps, false);
    for rank in &mut turned.ranks {
        // What is written first waits for what is written second.
        rank.nodes[0].waits = Box::from([Dependency { node: 3, start: false }]);
        rank.nodes[2].waits = Box::default();
    }
    for engine in ENGINES {
        let keys = format!("dtype = \"i64\"\nengine.allreduce = {engine:?}");
        let loaded = load("fabric", "{ kind = 'mesh', size = [4] }", &keys, &turned);
        if engine == "software" {
            go(&loaded.unwrap(), &RunOptions::default());
            continue;
        }
        let said = loaded.map(drop).unwrap_err();
        for words in ["rank 0, node", "it waits for itself", "order", "software"] {
            assert!(said.contains(words), "{engine}: {said}");
        }
    }
}
