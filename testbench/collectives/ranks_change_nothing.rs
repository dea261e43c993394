//! A system that several processes evaluate together gives the bytes of one that a single thread evaluates (X-MPI-1). Here the processes
//! are threads, which meet as ranks do; the test target `mpi` has processes.

use std::path::Path;
use std::sync::Arc;

use watershed::fabric::Step;
use watershed::fabric::exchange::{Exchange, together};
use watershed::files::TempFolder;
use watershed::scenario::build::{BuildOptions, build};
use watershed::scenario::checkpoint::{Checkpoint, Checkpoints};
use watershed::scenario::result::Outcome;
use watershed::scenario::run::{Control, RunError, RunOptions, RunResult, run};
use watershed::scenario::shipped::SHIPPED;
use watershed::scenario::{Loaded, load_named};

use crate::sets;
use crate::several_engines_in_one_network::drawn_scenario;
use crate::share;
use crate::support::{BACKGROUND, FLAGSHIP, MESH, TWO_IDS, load, load_brief, quarter};
use crate::what_stands_is_named::crossed;

/// Whether all links are asked for: those of the largest systems would take more memory than the systems.
fn lists_links(loaded: &Loaded) -> bool {
    loaded.scenario.topology.end_points() <= 10_000
}

/// All that a run says.
fn said(result: &RunResult) -> String {
    let document = serde_json::to_string_pretty(&result.document).unwrap();
    let data: Vec<_> = result.data.iter().map(|data| (&data.name, data.rows.iter().collect::<Vec<_>>())).collect();
    format!("{document}\n{data:?}\n{:?}", result.progress)
}

/// A run of so many ranks: what each of them says, `None` where the first one evaluates everything.
fn among(
    ranks: usize,
    load: &(dyn Fn() -> Loaded + Sync),
    each: &(dyn Fn(&Loaded, &RunOptions<'_>) -> Result<RunResult, RunError> + Sync),
) -> Vec<Option<String>> {
    let one = |exchange: Arc<dyn Exchange>| {
        let loaded = load();
        let options = RunOptions { ranks: Some(&exchange), all_links: lists_links(&loaded), ..RunOptions::default() };
        match each(&loaded, &options) {
            Ok(result) => Some(said(&result)),
            Err(RunError::Elsewhere) => None,
            Err(error) => panic!("rank {}: {error}", exchange.rank()),
        }
    };
    std::thread::scope(|scope| {
        let runs: Vec<_> = together(ranks).into_iter().map(|exchange| scope.spawn(|| one(exchange))).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    })
}

/// Whether a scenario was divided. What its ranks say is what one thread says.
fn same(name: &str, ranks: usize, load: &(dyn Fn() -> Loaded + Sync)) -> bool {
    let one = {
        let loaded = load();
        let alone = RunOptions { all_links: lists_links(&loaded), ..RunOptions::default() };
        said(&run(&loaded, &alone).unwrap())
    };
    let all = among(ranks, load, &|loaded, options| run(loaded, options));
    let divided = all.iter().all(Option::is_some);
    assert!(divided || all[1..].iter().all(Option::is_none), "{name}: {ranks} ranks do not agree who evaluates it");
    for (rank, of) in all.iter().enumerate().filter_map(|(rank, of)| Some((rank, of.as_ref()?))) {
        assert!(*of == one, "{name}: rank {rank} of {ranks} has another result");
    }
    divided
}

fn is_divided(text: &str, sets: &[String]) {
    is_divided_among(&[2, 3], text, sets);
}

fn is_divided_among(ranks: &[usize], text: &str, sets: &[String]) {
    for &ranks in ranks {
        assert!(same(text, ranks, &|| load(text, sets)), "it is divided\n{text}");
    }
}

fn shipped(path: &str) -> Loaded {
    load_named(Path::new(path), &[]).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Two and three ranks in turn in `make test`, and a quarter of the traffic and of the elements; both and all in `make soak`.
#[test]
fn on_dies_and_meshes_whatever_crosses_the_cut() {
    let cases = [
        (FLAGSHIP, sets![]),
        (TWO_IDS, sets![]),
        (MESH, sets![]),
        (BACKGROUND, sets![]),
        (MESH, sets!["link.cycles_per_flit=3"]),
        (FLAGSHIP, sets!["checks.monitors=false"]),
        (FLAGSHIP, sets!["switch.collective_buffer_flits=1"]),
    ];
    for (case, (text, sets)) in cases.iter().enumerate() {
        let sets = &[&sets[..], &quarter(text)].concat();
        let ranks = if case.is_multiple_of(2) { [2, 3] } else { [3, 2] };
        is_divided_among(if share::is_whole() { &ranks[..] } else { &ranks[..1] }, text, sets);
    }
}

/// Nodes: parts run ahead of each other, as far as the links between them are long.
#[test]
fn on_nodes_in_windows() {
    let text = "family = \"piuma\"\n[topology]\nkind = \"nodes\"\nsize = [4, 4]\n[[collective]]\nkind = \"allreduce\"\nelements = 3\n";
    let system = || load(text, &[]);
    for ranks in [2, 4] {
        let count = among(ranks, &system, &|loaded, options| run(loaded, &RunOptions { all_links: false, ..*options }));
        let alone = said(&run(&system(), &RunOptions::default()).unwrap());
        assert!(count.iter().all(|of| of.as_ref() == Some(&alone)), "{ranks} ranks");
    }
}

/// Scenarios of every family, with programs, hosts, workloads, faults and traffic. In `make test` half of them: each family, a workload
/// and a fault are among them; several engines and traffic are in `with_engines_of_all_families_and_faults`.
#[test]
fn in_shipped_scenarios_of_every_family() {
    let names = [
        "allreduce-die",
        "mesh-allreduce",
        "goal-mesh",
        "mesh-closed-loop",
        "two-trees",
        "agent-trees",
        "fig7-barrier",
        "lossy-links",
        "process-mesh",
        "several-engines",
        "scan-die",
        "background-95",
    ];
    let names: Vec<&str> = share::one_in(2, names).collect();
    let mut divided = Vec::new();
    for &name in &names {
        divided.extend(same(name, 2, &|| load_brief(name)).then_some(name));
    }
    assert!(divided.len() + 1 >= names.len(), "only {divided:?}");
}

#[test]
#[ignore = "minutes: a part of the soak"]
fn in_all_shipped_scenarios() {
    let mut divided = 0;
    for (path, _) in SHIPPED {
        // Every rank builds the whole system.
        let large = !lists_links(&shipped(path));
        for ranks in if large { [2, 3] } else { [2, 4] } {
            let is_divided = same(path, ranks, &|| shipped(path));
            println!("{path} on {ranks} ranks: {}", if is_divided { "divided" } else { "in one piece" });
            divided += usize::from(is_divided);
        }
    }
    assert!(divided > SHIPPED.len(), "only {divided}");
}

#[test]
fn with_engines_of_all_families_and_faults() {
    for seed in share::one_in(2, 0..4) {
        assert!(same(&format!("seed {seed}"), 2, &|| drawn_scenario(seed)));
    }
}

#[test]
#[ignore = "minutes: a part of the soak"]
fn in_two_hundred_drawn_scenarios() {
    for seed in 4..204 {
        let ranks = 2 + (seed % 3) as usize;
        assert!(same(&format!("seed {seed}"), ranks, &|| drawn_scenario(seed)));
    }
}

#[test]
fn what_goes_wrong_is_told_alike() {
    for (sets, outcome) in
        [(crossed(false), Outcome::Deadlock), (sets!["limits.max_cycles=60"].to_vec(), Outcome::MaxCycles)]
    {
        assert!(same("two ids", 2, &|| load(TWO_IDS, &sets)));
        assert_eq!(run(&load(TWO_IDS, &sets), &RunOptions::default()).unwrap().document.outcome, outcome);
    }
}

/// Who asks any of them to stop stops all, in one cycle; a checkpoint that ranks wrote goes on among threads.
#[test]
fn one_that_is_stopped_stops_all_and_all_go_on() {
    let folder = TempFolder::new("ranks").unwrap();
    let path = folder.path().join("checkpoint");
    // Long enough to be looked at while it runs: a hook is asked ten times a second.
    let long = sets!["collective.0.elements={}", if share::is_whole() { 40_000 } else { 12_000 }];
    let system = || load(FLAGSHIP, &long);
    let checkpoints = Checkpoints { path: path.clone(), every: 1_000_000_000 };
    let stopped = among(2, &system, &|loaded, options| {
        let last = options.ranks.is_some_and(|ranks| ranks.rank() == 1);
        let hook = move |_| if last { Control::Stop } else { Control::Continue };
        run(loaded, &RunOptions { hook: Some(&hook), checkpoints: Some(&checkpoints), ..*options })
    });
    assert!(stopped[0].as_ref().is_some_and(|said| said.contains("\"interrupted\"")), "{:?}", stopped[0]);
    assert!(stopped[0] == stopped[1], "both stop in the same cycle");
    let checkpoint = Checkpoint::read(&path).unwrap();
    let options = RunOptions { threads: 2, all_links: true, resume: Some(&checkpoint), ..RunOptions::default() };
    let resumed = run(&system(), &options).unwrap();
    let whole = run(&system(), &RunOptions { all_links: true, ..RunOptions::default() }).unwrap();
    assert!(said(&resumed) == said(&whole), "what was stopped goes on");
    let ranks = among(2, &system, &|loaded, options| {
        let checkpoint = Checkpoint::read(&path).unwrap();
        run(loaded, &RunOptions { resume: Some(&checkpoint), ..*options })
    });
    assert!(ranks.iter().all(|of| of.as_ref() == Some(&said(&whole))), "on ranks, too");
}

/// What one rank writes down is of all: threads go on from it. In the run of the agent, switches of another rank have gained and lost
/// entries by then. Once in each run in `make test`, twice in `make soak`.
#[test]
fn checkpoints_of_ranks_go_on_among_threads() {
    if share::is_whole() {
        checkpoints_go_on(&[1, 3], &[4200, 42_200]);
    } else {
        checkpoints_go_on(&[1], &[42_200]);
    }
}

#[test]
#[ignore = "takes a minute: make soak"]
fn more_checkpoints_of_ranks_go_on_among_threads() {
    checkpoints_go_on(&[1, 2, 3, 4], &[1900, 4200, 6500, 42_200]);
}

/// Written at these fifths of a run; in that of the agent at these cycles, for it is done with the first three trees long before the last
/// one begins. In `make test` jobs have fewer elements.
fn checkpoints_go_on(fifths: &[u64], of_agent: &[u64]) {
    let least = 4 * fifths.len();
    let folder = TempFolder::new("ranks").unwrap();
    let path = folder.path().join("checkpoint");
    let mut compared = 0;
    for name in ["lossy-links", "several-engines", "mesh-closed-loop", "two-ids", "agent-trees"] {
        let system = || load_brief(name);
        let whole = run(&system(), &RunOptions { all_links: true, ..RunOptions::default() }).unwrap();
        let fifths: Vec<u64> = fifths.iter().map(|fifth| (whole.document.cycles * fifth / 5).max(1)).collect();
        for &every in if name == "agent-trees" { of_agent } else { &fifths } {
            let checkpoints = Checkpoints { path: path.clone(), every };
            let _ = std::fs::remove_file(&path);
            among(2, &system, &|loaded, options| {
                run(loaded, &RunOptions { checkpoints: Some(&checkpoints), stop_cycle: Some(2 * every), ..*options })
            });
            if !path.exists() {
                continue;
            }
            let checkpoint = Checkpoint::read(&path).unwrap();
            let options =
                RunOptions { threads: 2, all_links: true, resume: Some(&checkpoint), ..RunOptions::default() };
            let resumed = run(&system(), &options).unwrap();
            assert!(said(&resumed) == said(&whole), "{name} from cycle {}", checkpoint.cycle());
            compared += 1;
        }
    }
    assert!(compared >= least, "only {compared}");
}

/// A driver gives end points something to do when nothing is under way: the next job of software, pulses of claims, the next packet of a
/// trace, far behind the last one.
#[test]
fn what_a_driver_starts_in_silence_begins_in_its_cycle() {
    let hosts = |overhead: u64| {
        let host = |ranks: &str, algorithm: &str| {
            format!(
                "[[host]]\nalgorithm = \"{algorithm}\"\nparticipants = {ranks}\nelements = 40\noverhead_cycles = {overhead}\n"
            )
        };
        let jobs = [host("[0, 1]", "recursive-doubling"), host("[6, 7]", "ring"), host("[0, 7]", "ring")].concat();
        format!("family = \"piuma\"\n[topology]\nkind = \"die\"\n{jobs}")
    };
    is_divided(&hosts(0), &[]);
    is_divided(&hosts(300), &[]);
    is_divided(TWO_IDS, &sets!["link.latency_cycles=200"; "collective.0.elements=1"; "collective.1.elements=1"]);
    let folder = TempFolder::new("ranks").unwrap();
    let trace = folder.path().join("trace.txt");
    std::fs::write(&trace, "0 0 15 4\n9000 15 1 2\n30000 3 12 4\n30001 12 3 1\n").unwrap();
    let text = format!(
        "family = \"fabric\"\n[topology]\nkind = \"mesh\"\nsize = [4, 4]\n[switch]\npoint_to_point_vcs = 4\n[[traffic]]\n\
         pattern = \"trace\"\nfile = {trace:?}\n"
    );
    is_divided(&text, &[]);
}

/// The last that happens is a credit that crosses to another rank: the link between the two lost the last packet.
#[test]
fn the_last_credit_of_a_run_may_cross() {
    let folder = TempFolder::new("ranks").unwrap();
    let trace = folder.path().join("trace.txt");
    for (from, to, at) in [(0, 11, "s0_0"), (11, 0, "s0_0"), (0, 11, "s1_1"), (11, 0, "s1_1")] {
        std::fs::write(&trace, format!("20000 {from} {to} 1\n")).unwrap();
        let text = format!(
            "family = \"pbv\"\n[topology]\nkind = \"tree\"\nbranching = [2, 2, 3]\nroots = 0\n[switch]\npoint_to_point_vcs = 4\n\
             [[job]]\nname = \"sum\"\nelements = 1\n[[traffic]]\npattern = \"trace\"\nfile = {trace:?}\n\
             [[pbv.fault]]\neffect = \"dead\"\nat = \"{at}\"\nfrom_cycle = 15000\n"
        );
        let alone = run(&load(&text, &[]), &RunOptions::default()).unwrap().document;
        assert!(alone.cycles > 20_000 && alone.traffic[0].packets == 0, "it is lost: {alone:?}");
        is_divided(&text, &[]);
    }
}

/// What all ranks know of all after each step is what one process counts: the cycle, what is queued and on links, what was moved and done.
#[test]
fn each_step_tells_all_what_one_counts() {
    type Seen = (Step, [u64; 7], [usize; 2]);
    let steps = |ranks: Option<Arc<dyn Exchange>>, text: &str| -> Vec<Seen> {
        let loaded = load(text, &[]);
        let threads = if ranks.is_some() { 3 } else { 1 };
        let mut system = build(&loaded, BuildOptions { threads, ..BuildOptions::default() }).unwrap().system;
        if let Some(ranks) = ranks {
            assert_eq!(system.parts(), 3);
            system.share_with(ranks);
        }
        let (mut seen, mut asked) = (Vec::new(), 0);
        loop {
            let step = system.step();
            let [set, unicast] = system.served();
            let (now, alive) = (system.now(), system.alive_until());
            let counts = [now, alive, system.moves(), set, unicast, system.completions(), system.completed()];
            seen.push((step, counts, [system.live_flits(), system.flits_on_links()]));
            if step == Step::Quiet && asked == 3 {
                return seen;
            }
            if step == Step::Quiet {
                // The driver wakes a node in the silence, in a cycle that comes.
                asked += 1;
                let nodes = system.plan().nodes.len() as u32;
                system.wake_at(nodes / 3 * asked - 1, now + 700);
            }
        }
    };
    for text in [FLAGSHIP, MESH] {
        let alone = steps(None, text);
        assert!(alone.len() > 50 && alone.iter().any(|seen| seen.2[1] > 3), "{alone:?}");
        std::thread::scope(|scope| {
            let all = together(3).into_iter().map(|ranks| scope.spawn(|| steps(Some(ranks), text)));
            for (rank, of) in all.collect::<Vec<_>>().into_iter().enumerate() {
                let of = of.join().unwrap();
                let differs = of.iter().zip(&alone).position(|(of, alone)| of != alone);
                let at = differs.map(|at| (&of[at], &alone[at]));
                assert!(at.is_none() && of.len() == alone.len(), "rank {rank}, step {differs:?}: {at:?}");
            }
        });
    }
}
