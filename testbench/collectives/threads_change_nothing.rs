//! A system that is divided among threads gives the same result document, byte for byte (K-DET-1).

use std::path::Path;
use watershed::scenario::build::{BuildOptions, build};
use watershed::scenario::load_named;
use watershed::scenario::result::Outcome;
use watershed::scenario::run::{RunOptions, run};
use watershed::scenario::shipped::SHIPPED;

use crate::sets;
use crate::share;
use crate::support::{BACKGROUND, FLAGSHIP, MESH, TWO_IDS, load, quarter, run_with};
use crate::what_stands_is_named::crossed;

/// The document of a run on so many threads.
fn on(threads: usize, text: &str, sets: &[String]) -> String {
    let options = RunOptions { threads, all_links: true, ..RunOptions::default() };
    let document = run_with(text, sets, &options).document;
    assert!(document.passed(), "{threads} threads: {:?}", document.checks);
    serde_json::to_string_pretty(&document).unwrap()
}

/// How many parts the system is divided into when so many threads are asked for.
fn parts(threads: usize, text: &str) -> usize {
    build(&load(text, &[]), BuildOptions { threads, ..BuildOptions::default() }).unwrap().system.parts()
}

static THREADS: [usize; 3] = [2, 3, 7];

fn same(text: &str, sets: &[String]) {
    same_on(&THREADS, text, sets);
}

/// On one of the numbers of threads in `make test`, and on another one in the next case; on all in `make soak`.
fn same_in_turn(case: usize, text: &str, sets: &[String]) {
    same_on(if share::is_whole() { &THREADS[..] } else { &THREADS[case % 3..][..1] }, text, sets);
}

fn same_on(threads: &[usize], text: &str, sets: &[String]) {
    let one = on(1, text, sets);
    for &threads in threads {
        assert!(parts(threads, text) > 1, "it is divided\n{text}");
        let many = on(threads, text, sets);
        assert!(one == many, "another document on {threads} threads\n{text}\n{sets:?}");
    }
}

/// With a quarter of the elements and of the traffic in `make test`.
#[test]
fn on_dies_and_meshes_whatever_crosses_the_cut() {
    let same = |case: usize, text: &str, sets: &[String]| same_in_turn(case, text, &[sets, &quarter(text)].concat());
    for (case, text) in [FLAGSHIP, TWO_IDS, MESH, BACKGROUND].into_iter().enumerate() {
        same(case, text, &[]);
        same(case + 1, text, &sets!["switch.pipeline_stages=3"; "link.latency_cycles=2"]);
    }
    same(0, MESH, &sets!["link.cycles_per_flit=3"]);
    same(1, FLAGSHIP, &sets!["checks.monitors=false"]);
    // Buffers so short that every credit is waited for.
    same(2, FLAGSHIP, &sets!["switch.collective_buffer_flits=1"]);
}

#[test]
fn on_nodes_with_more_awake_than_a_thread_is_worth() {
    let text = "family = \"piuma\"\n[topology]\nkind = \"nodes\"\nsize = [3, 2]\n[[collective]]\nkind = \"allreduce\"\nelements = 6\n\
                [[collective]]\nkind = \"barrier\"\nid = 1\n[[collective]]\nkind = \"reduce\"\nid = 2\ndtype = \"i32\"\nelements = 3\n";
    same_in_turn(1, text, &[]);
}

/// Each network with each router; in `make test` one in three of these cases has all of both.
#[test]
fn in_plain_networks_under_every_kind_of_traffic() {
    let networks = [
        ("kind = \"mesh\"\nsize = [8, 8]", "", "pattern = \"uniform\"\nrate = 0.3"),
        ("kind = \"torus\"\nsize = [6, 6]", "", "pattern = \"transpose\"\nrate = 0.2\npacket_flits = 4"),
        (
            "kind = \"fat-tree\"\narity = 4\nlevels = 3",
            "[routing]\nalgorithm = \"adaptive\"\n",
            "pattern = \"uniform\"\nrate = 0.3\npacket_flits = 3",
        ),
        (
            "kind = \"dragonfly\"\nglobal_links = 2",
            "[routing]\nalgorithm = \"valiant\"\n",
            "pattern = \"uniform\"\nrate = 0.2",
        ),
    ];
    let routers = [
        sets![],
        sets!["switch.router.wait_for_tail_credit=true"; "switch.router.credit_delay_cycles=2"],
        sets!["switch.router.wait_for_tail_credit=true"; "checks.monitors=false"],
        // Ports whose sending side is two records; allocators with a cursor a channel.
        sets!["switch.point_to_point_vcs=8"; "switch.router.wait_for_tail_credit=true"; "switch.router.vc_allocator=\"islip\""],
    ];
    for case in share::one_in(3, 0..networks.len() * routers.len()) {
        let (shape, routing, pattern) = networks[case / routers.len()];
        let text = format!(
            "family = \"fabric\"\n[topology]\n{shape}\n{routing}[switch]\npoint_to_point_vcs = 4\n\
             [[traffic]]\n{pattern}\nstop_cycle = 600\n"
        );
        same_in_turn(case / 3, &text, &routers[case % routers.len()]);
    }
}

#[test]
fn where_queues_do_not_fit_a_word() {
    let die = "family = \"piuma\"\n[topology]\nkind = \"die\"\n";
    let hosts = format!("{die}[[host]]\nalgorithm = \"rabenseifner\"\nelements = 100\n");
    let system = build(&load(&hosts, &sets!["switch.point_to_point_vcs=6"]), BuildOptions::default()).unwrap().system;
    assert_eq!(system.plan().vcs.total(), 8, "eleven ports of eight channels are two words");
    same(&hosts, &sets!["switch.point_to_point_vcs=6"]);
    let mesh = "family = \"fabric\"\n[topology]\nkind = \"mesh\"\nsize = [3, 3]\nconcentration = 8\n[switch]\npoint_to_point_vcs = 8\n\
                [[traffic]]\npattern = \"uniform\"\nrate = 0.4\npacket_flits = 2\nstop_cycle = 400\n";
    same(mesh, &[]);
}

#[test]
fn with_programs_hosts_and_scans() {
    let die = "family = \"piuma\"\n[topology]\nkind = \"die\"\n";
    for rest in [
        "[[multicast]]\nid = 0\nsource = 0\n[[program]]\ncores = [0]\ntext = \"mcast.send 0, 5, 0, 8\"\n\
         [[program]]\ncores = [1, 2, 3, 4, 5, 6, 7]\ntext = \"mcast.wait r1, r2, 0, 8\\nreport r1\"\n",
        "[[host]]\nalgorithm = \"rabenseifner\"\nelements = 100\n[[host]]\nalgorithm = \"ring\"\nelements = 33\n",
        "[[collective]]\nkind = \"scan\"\nelements = 9\n",
    ] {
        same(&format!("{die}{rest}"), &[]);
        same(&format!("{die}{rest}"), &sets!["checks.monitors=false"]);
    }
}

#[test]
fn what_goes_wrong_is_told_alike() {
    // A deadlock and what the autopsy says of it; a run that is cut off with flits under way.
    for (sets, outcome) in
        [(crossed(false), Outcome::Deadlock), (sets!["limits.max_cycles=60"].to_vec(), Outcome::MaxCycles)]
    {
        let told = |threads: usize| {
            let options = RunOptions { threads, ..RunOptions::default() };
            let document = run_with(TWO_IDS, &sets, &options).document;
            assert_eq!(document.outcome, outcome);
            serde_json::to_string_pretty(&document).unwrap()
        };
        let one = told(1);
        assert_eq!(one, told(2));
        assert_eq!(one, told(5));
    }
}

#[test]
fn a_system_that_cannot_be_divided_says_why() {
    let note = |text: &str, options: RunOptions<'_>| {
        let result = run_with(text, &[], &RunOptions { threads: 2, ..options });
        assert!(result.document.passed(), "{:?}", result.document.checks);
        result.notes.into_iter().find(|note| note.starts_with("one thread evaluates all"))
    };
    assert_eq!(note(FLAGSHIP, RunOptions::default()), None, "a die is divided");
    let alone = "family = \"piuma\"\n[topology]\nkind = \"mesh\"\nsize = [1]\n[[collective]]\nkind = \"barrier\"\n";
    let alone = note(alone, RunOptions::default()).expect("there is one switch");
    assert!(alone.contains("nothing to divide"), "{alone}");
    let watched = note(FLAGSHIP, RunOptions { no_skip: true, ..RunOptions::default() }).expect("it is in one piece");
    assert!(watched.contains("idle cycles that are not skipped"), "{watched}");
}

/// Every shipped scenario with engines in the wire: faults, strangers, agents, several contexts. In `make test` one in three of them, all
/// of these but agents, for 20,000 cycles, on one of the numbers of threads in turn.
#[test]
fn with_engines_in_the_wire() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testbench");
    let mut paths: Vec<_> = ["armed", "pbv"]
        .iter()
        .flat_map(|family| std::fs::read_dir(root.join(family)).unwrap().map(|entry| entry.unwrap().path()))
        .collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    for (number, path) in share::one_in(3, &paths).enumerate() {
        let loaded = watershed::scenario::load_file(path, &[]).unwrap_or_else(|problems| panic!("{problems}"));
        let on = |threads: usize| {
            let stop_cycle = (!share::is_whole()).then_some(20_000);
            let options = RunOptions { threads, stop_cycle, all_links: true, ..RunOptions::default() };
            let result = run(&loaded, &options).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let whole = result.notes.iter().any(|note| note.starts_with("one thread evaluates all"));
            (serde_json::to_string_pretty(&result.document).unwrap(), whole, result.document.cycles)
        };
        let (one, _, cycles) = on(1);
        let threads = match cycles {
            // Of those that take hundreds of thousands of cycles once is enough.
            200_001.. => &THREADS[1..2],
            _ if share::is_whole() => &THREADS[..],
            _ => &THREADS[number % 3..][..1],
        };
        for &threads in threads {
            let (many, whole, _) = on(threads);
            assert!(one == many, "{}: another document on {threads} threads", path.display());
            assert_eq!(whole, loaded.scenario.topology.switches() == 1, "{} is divided", path.display());
        }
    }
}

/// Shipped scenarios from one on, one in `step`, on one, two and three threads.
fn shipped(first: usize, step: usize, most: u32) -> usize {
    let mut runs = 0;
    for (path, _) in SHIPPED.iter().skip(first).step_by(step) {
        let loaded = load_named(Path::new(path), &[]).unwrap_or_else(|problems| panic!("{problems}"));
        if loaded.scenario.topology.end_points() > most {
            continue;
        }
        // All links of the largest systems would take more memory than the systems.
        let all_links = loaded.scenario.topology.end_points() <= 10_000;
        let on = |threads: usize| {
            let options = RunOptions { threads, all_links, ..RunOptions::default() };
            let result = run(&loaded, &options).unwrap_or_else(|error| panic!("{path}: {error}"));
            serde_json::to_string_pretty(&result.document).unwrap()
        };
        let one = on(1);
        for threads in [2, 3] {
            assert!(one == on(threads), "{path}: another document on {threads} threads");
        }
        runs += 1;
    }
    runs
}

/// One of twelve: the armed, the plain, the mixed, the PBV and the PIUMA family are among them, and none that takes long.
#[test]
fn in_some_of_the_shipped_scenarios() {
    assert!(shipped(9, 12, 100) > 5);
}

#[test]
#[ignore = "minutes: a part of the soak"]
fn in_all_shipped_scenarios() {
    assert_eq!(shipped(0, 1, u32::MAX), SHIPPED.len());
}

/// Enough awake in a part that threads really evaluate them, on a network that is cut in the middle of its trees. In `make test` each
/// family on one of two numbers of threads.
#[test]
fn with_more_engines_awake_than_a_thread_is_worth() {
    for (family, job, numbers) in [
        ("armed", "op = \"sum\"\ndtype = \"f64\"\nelements = 24\n", [2, 5]),
        ("pbv", "op = \"sum\"\ndtype = \"f32\"\nelements = 64\n", [5, 2]),
    ] {
        let text = format!(
            "family = \"{family}\"\n[topology]\nkind = \"tree\"\nbranching = [4, 8, 16]\n[[job]]\nname = \"a\"\n{job}"
        );
        let one = on(1, &text, &[]);
        for threads in share::one_in(2, numbers) {
            assert!(one == on(threads, &text, &[]), "another document on {threads} threads\n{text}");
        }
    }
}
