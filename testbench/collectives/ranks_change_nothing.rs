//! A system that several processes evaluate together gives the bytes of one that a single thread evaluates (X-MPI-1). Here the processes
//! are threads, which meet as ranks do; the test target `mpi` has processes.

use std::path::Path;
use std::sync::Arc;

use watershed::fabric::exchange::{Exchange, together};
use watershed::files::Scratch;
use watershed::scenario::checkpoint::{Checkpoint, Checkpoints};
use watershed::scenario::result::Outcome;
use watershed::scenario::run::{Control, RunError, RunOptions, RunResult, run};
use watershed::scenario::shipped::{self, SHIPPED};
use watershed::scenario::{Loaded, load_named};

use crate::sets;
use crate::several_engines_in_one_network::drawn_scenario;
use crate::support::{BACKGROUND, FLAGSHIP, MESH, TWO_IDS, load};
use crate::what_stands_is_named::crossed;

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
        let options = RunOptions { ranks: Some(&exchange), all_links: true, ..RunOptions::default() };
        match each(&load(), &options) {
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
    let alone = RunOptions { all_links: true, ..RunOptions::default() };
    let one = said(&run(&load(), &alone).unwrap());
    let all = among(ranks, load, &|loaded, options| run(loaded, options));
    let divided = all.iter().all(Option::is_some);
    assert!(divided || all[1..].iter().all(Option::is_none), "{name}: {ranks} ranks do not agree who evaluates it");
    for (rank, of) in all.iter().enumerate().filter_map(|(rank, of)| Some((rank, of.as_ref()?))) {
        assert!(*of == one, "{name}: rank {rank} of {ranks} has another result");
    }
    divided
}

fn is_divided(text: &str, sets: &[String]) {
    for ranks in [2, 3] {
        assert!(same(text, ranks, &|| load(text, sets)), "it is divided\n{text}");
    }
}

fn shipped(path: &str) -> Loaded {
    load_named(Path::new(path), &[]).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn on_dies_and_meshes_whatever_crosses_the_cut() {
    for text in [FLAGSHIP, TWO_IDS, MESH, BACKGROUND] {
        is_divided(text, &[]);
    }
    is_divided(MESH, &sets!["link.cycles_per_flit=3"]);
    is_divided(FLAGSHIP, &sets!["checks.monitors=false"]);
    is_divided(FLAGSHIP, &sets!["switch.collective_buffer_flits=1"]);
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

/// Scenarios of every family, with programs, hosts, workloads, faults and traffic.
#[test]
fn in_shipped_scenarios_of_every_family() {
    let mut divided = Vec::new();
    for name in [
        "allreduce-die",
        "mesh-allreduce",
        "background-95",
        "scan-die",
        "mesh-closed-loop",
        "agent-trees",
        "lossy-links",
        "two-trees",
        "process-mesh",
        "fig7-barrier",
        "several-engines",
        "goal-mesh",
    ] {
        let (path, _) = shipped::find(name).unwrap_or_else(|| panic!("{name} is shipped"));
        divided.extend(same(name, 2, &|| shipped(path)).then_some(name));
    }
    assert!(divided.len() >= 11, "only {divided:?}");
}

#[test]
#[ignore = "minutes: a part of the soak"]
fn in_all_shipped_scenarios() {
    let mut divided = 0;
    for (path, _) in SHIPPED {
        for ranks in [2, 4] {
            let is_divided = same(path, ranks, &|| shipped(path));
            println!("{path} on {ranks} ranks: {}", if is_divided { "divided" } else { "in one piece" });
            divided += usize::from(is_divided);
        }
    }
    assert!(divided > SHIPPED.len(), "only {divided}");
}

#[test]
fn with_engines_of_all_families_and_faults() {
    for seed in 0..4 {
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
    let folder = Scratch::new("ranks").unwrap();
    let path = folder.path().join("checkpoint");
    let long = sets!["collective.0.elements=40000"];
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
