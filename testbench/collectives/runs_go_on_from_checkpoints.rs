//! A run that goes on from a checkpoint ends with the bytes of one that was never interrupted: document, results, waves from there on
//! (X-CKPT-1).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use watershed::files::TempFolder;
use watershed::kernel::Rng;
use watershed::scenario::checkpoint::{Checkpoint, Checkpoints};
use watershed::scenario::config::Wave;
use watershed::scenario::run::{RunError, RunOptions, RunResult, WaveOptions, run};
use watershed::scenario::shipped::SHIPPED;
use watershed::scenario::why::WhyQuery;
use watershed::scenario::{Loaded, load_named};

use crate::several_engines_in_one_network::{NETWORKS, drawn_scenario, in_flits_of};
use crate::share;
use crate::support::{BACKGROUND, FLAGSHIP, MESH, load, load_brief, quarter};

/// All that a run says.
fn said(result: &RunResult) -> String {
    let document = serde_json::to_string_pretty(&result.document).unwrap();
    let data: Vec<_> = result.data.iter().map(|data| (&data.name, data.rows.iter().collect::<Vec<_>>())).collect();
    format!("{document}\n{data:?}\n{:?}\n{:?}\n{:?}", result.why, result.ladder, result.recording)
}

/// Writes a checkpoint in the first cycle that is simulated from `cycle` on, in a run that is stopped behind it.
fn checkpoint(loaded: &Loaded, options: &RunOptions<'_>, cycle: u64, path: &Path) -> Option<Checkpoint> {
    let checkpoints = Checkpoints { path: path.to_owned(), every: cycle };
    let _ = std::fs::remove_file(path);
    let options = RunOptions { checkpoints: Some(&checkpoints), stop_cycle: Some(2 * cycle), ..*options };
    let result = run(loaded, &options).unwrap();
    assert_eq!(result.checkpoint_error, None);
    path.exists().then(|| Checkpoint::read(path).unwrap())
}

/// Whether a run that is stopped behind a cycle and goes on from its checkpoint says what an undisturbed one says. `false`: there
/// was nothing left to do in that cycle.
fn goes_on(loaded: &Loaded, options: &RunOptions<'_>, undisturbed: &str, cycle: u64, folder: &TempFolder) -> bool {
    let name = loaded.source.name();
    let Some(checkpoint) = checkpoint(loaded, options, cycle, &folder.path().join("checkpoint")) else { return false };
    assert!(checkpoint.cycle() >= cycle, "{name}: {} is not before cycle {cycle}", checkpoint.cycle());
    let result = run(loaded, &RunOptions { resume: Some(&checkpoint), ..*options });
    let resumed = said(&result.unwrap_or_else(|error| panic!("{name}, cycle {cycle}: {error}")));
    assert!(resumed == undisturbed, "{name} differs from cycle {} on", checkpoint.cycle());
    true
}

/// A scenario at random cycles.
fn at_random_cycles(loaded: &Loaded, options: &RunOptions<'_>, rng: &mut Rng, times: usize) -> usize {
    let folder = TempFolder::new("checkpoint").unwrap();
    let undisturbed = run(loaded, options).unwrap();
    let (said, cycles) = (said(&undisturbed), undisturbed.document.cycles);
    let mut cycle = || 1 + rng.below(cycles.max(2) - 1);
    (0..times).filter(|_| goes_on(loaded, options, &said, cycle(), &folder)).count()
}

fn shipped(path: &str) -> Loaded {
    load_named(Path::new(path), &[]).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Of each folder of shipped scenarios some; each family, hosts, programs, traces of traffic and of applications are among them. In
/// `make test` each is brief and goes on once, not twice.
#[test]
fn shipped_scenarios_go_on_with_the_same_bytes() {
    let mut rng = Rng::new(1, 0);
    let mut names = BTreeSet::new();
    for name in [
        "allreduce-die",
        "mesh-allreduce",
        "two-ids",
        "background-95",
        "scan-die",
        "mesh-bursty",
        "mesh-closed-loop",
        "order-sum",
        "two-trees",
        "process-mesh",
        "several-engines",
        "goal-mesh",
    ] {
        let gone_on = at_random_cycles(&load_brief(name), &RunOptions::default(), &mut rng, share::of(2, 2) as usize);
        names.extend((gone_on > 0).then_some(name));
    }
    assert!(names.len() >= if share::is_whole() { 10 } else { 7 }, "only {names:?}");
}

/// `WATERSHED_CAMPAIGN=FROM..TO` chooses the seeds of the cycles.
#[test]
#[ignore = "minutes: a part of the soak"]
fn all_shipped_scenarios_go_on_at_random_cycles() {
    let given = std::env::var("WATERSHED_CAMPAIGN").ok();
    let parsed = given.as_deref().and_then(|text| text.split_once("..")).map(|(from, to)| (from.parse(), to.parse()));
    let seeds = if let Some((Ok(from), Ok(to))) = parsed { from..to } else { 0..3 };
    for seed in seeds {
        let mut rng = Rng::new(seed, 1);
        for (path, _) in SHIPPED {
            let loaded = shipped(path);
            let with_all =
                RunOptions { all_links: true, ladder: true, why: Some(WhyQuery::default()), ..RunOptions::default() };
            // Of the largest systems only what something uses can be kept.
            let large = loaded.scenario.topology.end_points() > 10_000;
            let options = if large || rng.below(2) == 0 { RunOptions::default() } else { with_all };
            let gone_on = at_random_cycles(&loaded, &options, &mut rng, 2);
            println!("seed {seed}: {path} {gone_on}");
        }
    }
}

/// Engines of all families at once, with faults, strangers and traffic, evaluated in every way.
///
/// In how many of these cycles it went on: where nothing happens for long, there is nothing to write before the run is stopped.
fn drawn(seed: u64, times: usize) -> usize {
    let loaded = drawn_scenario(seed);
    let mut rng = Rng::new(seed, 2);
    let no_skip = RunOptions { no_skip: true, ..RunOptions::default() };
    let threads = RunOptions { threads: 2, ..RunOptions::default() };
    let options = [RunOptions::default(), no_skip, threads][(seed % 3) as usize];
    at_random_cycles(&loaded, &options, &mut rng, times)
}

/// Half of them in `make test`, once each, evaluated in each of the ways.
#[test]
fn drawn_scenarios_go_on_with_the_same_bytes() {
    let (times, least) = if share::is_whole() { (2, 8) } else { (1, 1) };
    assert!(share::one_in(2, 0..6).map(|seed| drawn(seed, times)).sum::<usize>() >= least);
}

#[test]
#[ignore = "minutes: a part of the soak"]
fn two_hundred_drawn_scenarios_go_on() {
    assert!((6..206).map(|seed| drawn(seed, 2)).sum::<usize>() >= 300);
}

/// What a run keeps, it keeps over a checkpoint; how it is evaluated may change there.
#[test]
fn what_is_kept_goes_on_and_the_evaluation_is_free() {
    let folder = TempFolder::new("checkpoint").unwrap();
    let at = folder.path().join("checkpoint");
    for text in [FLAGSHIP, MESH, BACKGROUND] {
        let loaded = load(text, &quarter(text));
        let kept =
            RunOptions { why: Some(WhyQuery::default()), ladder: true, all_links: true, ..RunOptions::default() };
        let undisturbed = run(&loaded, &kept).unwrap();
        let cycle = undisturbed.document.cycles / 2;
        assert!(goes_on(&loaded, &kept, &said(&undisturbed), cycle, &folder));
        let plain = said(&run(&loaded, &RunOptions::default()).unwrap());
        let checkpoint = checkpoint(&loaded, &RunOptions::default(), cycle, &at).unwrap();
        for how in [(true, None), (false, Some(3)), (true, Some(4))] {
            let (no_skip, order_seed) = how;
            let options = RunOptions { no_skip, order_seed, resume: Some(&checkpoint), ..RunOptions::default() };
            assert!(said(&run(&loaded, &options).unwrap()) == plain, "{how:?}");
        }
    }
}

/// Whether the waveform of a run that goes on is that of an undisturbed run from the cycle of the checkpoint on, byte for byte. In
/// `make test` once in a run, beginning with another part of it in the next case.
fn waves_go_on(case: usize, loaded: &Loaded, signals: &[&str]) {
    let folder = TempFolder::new("checkpoint").unwrap();
    let file = |name: &str| folder.path().join(name);
    let name = loaded.source.name();
    let wave = |name: &str, from_cycle: u64| {
        let signals = signals.iter().map(|&glob| glob.to_owned()).collect();
        WaveOptions::of(file(name), Wave { signals, from_cycle, ..Wave::default() })
    };
    let cycles = run(loaded, &RunOptions::default()).unwrap().document.cycles;
    let mut compared = 0;
    let mut at = [cycles / 3, cycles / 2, cycles - cycles / 5];
    at.rotate_left(case % 3);
    for cycle in at {
        if compared > 0 && !share::is_whole() {
            break;
        }
        let first = wave("first.vcd", 0);
        let Some(checkpoint) = checkpoint(
            loaded,
            &RunOptions { wave: Some(&first), ..RunOptions::default() },
            cycle.max(1),
            &file("checkpoint"),
        ) else {
            continue;
        };
        let resumed = wave("resumed.vcd", 0);
        let options = RunOptions { wave: Some(&resumed), resume: Some(&checkpoint), ..RunOptions::default() };
        assert_eq!(run(loaded, &options).unwrap().wave_error, None);
        let whole = wave("whole.vcd", checkpoint.cycle());
        run(loaded, &RunOptions { wave: Some(&whole), ..RunOptions::default() }).unwrap();
        let [resumed, whole] = [&resumed.path, &whole.path].map(|path| std::fs::read_to_string(path).unwrap());
        assert!(resumed.len() > 1000, "{name}: there is a waveform");
        let differs = resumed.lines().zip(whole.lines()).position(|(a, b)| a != b);
        assert_eq!(differs, None, "{name} from cycle {}", checkpoint.cycle());
        assert_eq!(resumed.len(), whole.len(), "{name} from cycle {}", checkpoint.cycle());
        compared += 1;
    }
    assert!(compared > 0, "{name}");
}

/// With the stage registers of adder trees; of `order-sum` thirty rounds in `make soak`, and ten in `make test`.
#[test]
fn waves_go_on_from_the_cycle_of_the_checkpoint() {
    let few = ["job.0.elements=120".to_owned(), "job.1.elements=30".to_owned()];
    let scenarios: [(&str, &[&str]); 5] = [
        ("allreduce-die", &["**", "**.ceng.tree.**"]),
        ("order-sum", &["**.engine.unit.**", "**"]),
        ("several-engines", &["**"]),
        ("two-trees", &["**", "**.unit.**"]),
        ("scan-die", &["**.ceng.**"]),
    ];
    for (case, (name, signals)) in scenarios.into_iter().enumerate() {
        let loaded = if name == "order-sum" && share::is_whole() {
            load_named(Path::new(name), &few).unwrap_or_else(|problems| panic!("{problems}"))
        } else {
            load_brief(name)
        };
        waves_go_on(case, &loaded, signals);
    }
}

/// H-WIDTH-1: what a flit carries beyond a word, frames of which some flits are there, and adapters of Ethernet NICs are in a
/// checkpoint. In `make test` two scenarios with flits of each size go on once; in `make soak` three, two or three times.
#[test]
fn flits_of_every_size_go_on_with_the_same_bytes() {
    let mut rng = Rng::new(2, 0);
    let usual = RunOptions::default();
    let mut gone_on = 0;
    for (at, bits) in [32, 96, 128, 512].into_iter().enumerate() {
        let (text, _) = in_flits_of(NETWORKS[at], bits, 64);
        gone_on += at_random_cycles(&load(&text, &[]), &usual, &mut rng, share::of(3, 3) as usize);
        let names = ["ethernet-nics", "lossy-links", "faulty-links", "agent-trees"];
        for name in share::one_in(2, [names[at], names[(at + 2) % 4]]) {
            let Some((path, _)) = watershed::scenario::shipped::find(name) else { panic!("{name} is shipped") };
            let loaded = load_named(Path::new(path), &[format!("link.flit_bits={bits}")]).unwrap();
            gone_on += at_random_cycles(&loaded, &usual, &mut rng, share::of(2, 2) as usize);
        }
    }
    assert!(gone_on >= if share::is_whole() { 20 } else { 4 }, "only {gone_on} of 28, or of 8");
    for (case, (name, bits)) in [("ethernet-nics", 160), ("fig3-two-masters", 96)].into_iter().enumerate() {
        let Some((path, _)) = watershed::scenario::shipped::find(name) else { panic!("{name} is shipped") };
        waves_go_on(case, &load_named(Path::new(path), &[format!("link.flit_bits={bits}")]).unwrap(), &["**"]);
    }
}

fn refused(loaded: &Loaded, options: &RunOptions<'_>) -> String {
    match run(loaded, options) {
        Err(error @ RunError::Resume(_)) => error.to_string(),
        other => panic!("{other:?} is no refusal"),
    }
}

/// A trace is many files that begin alike; it is another one when one of them has changed.
#[test]
fn a_trace_that_has_changed_is_refused() {
    let folder = TempFolder::new("checkpoint").unwrap();
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/astra-sim");
    let put = |collective: &str| {
        for rank in 0..8 {
            let from = traces.join(format!("{collective}/8npus_1MB/{collective}.{rank}.et"));
            std::fs::copy(from, folder.path().join(format!("trace.{rank}.et"))).unwrap();
        }
        let trace = folder.path().join("trace");
        // Traces of a megabyte, counted as few elements: what is in the files decides, not how long they run.
        let sets = [
            format!("workload.trace={:?}", trace.display().to_string()),
            "workload.element_bytes=64".to_owned(),
            "limits.max_cycles=4000".to_owned(),
        ];
        load_named(Path::new("goal-mesh"), &sets).unwrap_or_else(|problems| panic!("{problems}"))
    };
    let (usual, at) = (RunOptions::default(), folder.path().join("checkpoint"));
    let loaded = put("all_gather");
    let known = checkpoint(&loaded, &usual, 1000, &at).unwrap();
    let resume = RunOptions { resume: Some(&known), ..usual };
    run(&loaded, &resume).unwrap();
    let said = refused(&put("all_reduce"), &resume);
    assert!(said.contains("is of another scenario"), "{said}");
}

/// Another scenario, other options, another number of threads, another build, a file that is none.
#[test]
fn what_does_not_belong_together_is_refused() {
    let folder = TempFolder::new("checkpoint").unwrap();
    let at = folder.path().join("checkpoint");
    let loaded = load(FLAGSHIP, &[]);
    let usual = RunOptions::default();
    let known = checkpoint(&loaded, &usual, 40, &at).unwrap();
    let resume = RunOptions { resume: Some(&known), ..usual };
    run(&loaded, &resume).unwrap();

    let other = load(FLAGSHIP, &["seed=77".to_owned()]);
    assert!(refused(&other, &resume).contains("is of another scenario"), "{}", refused(&other, &resume));
    let ladder = RunOptions { ladder: true, ..resume };
    let said = refused(&loaded, &ladder);
    assert!(said.contains("written with other options: none there, --ladder here"), "{said}");
    let threads = RunOptions { threads: 2, ..resume };
    assert!(refused(&loaded, &threads).contains("give the same --threads"), "{}", refused(&loaded, &threads));

    let bytes = std::fs::read(&at).unwrap();
    let read = |bytes: &[u8]| -> Result<Checkpoint, String> {
        let path: PathBuf = folder.path().join("changed");
        std::fs::write(&path, bytes).unwrap();
        Checkpoint::read(&path).map_err(|error| error.to_string())
    };
    // What the second line says of another version or build.
    let begin = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(1).unwrap().0 + 1;
    let header = std::str::from_utf8(&bytes[..begin]).unwrap();
    for (key, value, why) in
        [("version", "\"9.9.9\"", "was written by watershed 9.9.9"), ("build", "7", "was written by another build")]
    {
        let from = header.find(&format!("\"{key}\":")).unwrap() + key.len() + 3;
        let until = from + header[from..].find(',').unwrap();
        let changed = [&bytes[..from], value.as_bytes(), &bytes[until..]].concat();
        let said = refused(&loaded, &RunOptions { resume: Some(&read(&changed).unwrap()), ..usual });
        assert!(said.contains(why), "{said}");
    }
    assert!(read(b"{}").unwrap_err().contains("is no checkpoint"));
    assert!(Checkpoint::read(Path::new("nowhere")).unwrap_err().to_string().contains("cannot be read"));
    // No byte can change or be missing in the state without being seen.
    for at in (begin..bytes.len()).step_by(97) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        assert!(read(&changed).is_err(), "byte {at} was changed");
        assert!(read(&bytes[..at]).is_err(), "cut off at {at}");
    }
}
