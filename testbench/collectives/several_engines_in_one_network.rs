//! Jobs of different engines in one network, beside each other and beside traffic (X-JOB-2): every word is right, nobody's faults
//! are anybody else's, and nothing depends on how the system is evaluated.

use std::fmt::Write;
use std::path::Path;

use watershed::scenario::run::{RunOptions, RunResult, run};
use watershed::scenario::why::WhyQuery;
use watershed::scenario::{Loaded, load_text};

use crate::share;
use crate::support::{Draw, load, pass, run_with};

pub const NETWORKS: [(&str, &str); 6] = [
    ("mesh", "size = [4, 3]"),
    ("torus", "size = [4, 3]"),
    ("hyperx", "size = [3, 2]\nconcentration = 2"),
    ("fat-tree", "arity = 3\nlevels = 3"),
    ("dragonfly", "group_switches = 2\nconcentration = 2\nglobal_links = 2"),
    ("tree", "branching = [3, 4]"),
];

/// Two engines and more.
const TOGETHER: [&[&str]; 6] = [
    &["piuma", "armed"],
    &["piuma", "pbv"],
    &["armed", "pbv"],
    &["armed", "software"],
    &["pbv", "software"],
    &["piuma", "armed", "pbv", "software"],
];

const TRAFFIC: &str = "[[traffic]]\nname = \"t\"\npattern = \"uniform\"\nrate = 0.3\npacket_flits = 4\n";

/// What participant `rank` of job `job` contributes as element `k`.
fn operand(job: u64, rank: u64, k: u64) -> i64 {
    ((job + 1) * 0x2545_f491 + rank * 0x9e37_79b9 + k * 0x85eb_ca6b) as i64 % 1_000_003 - 500_000
}

/// A job that adds integers of these end points.
pub struct Job {
    engine: &'static str,
    ends: Vec<u64>,
    elements: u64,
    /// More of its table.
    more: String,
}

impl Job {
    /// Of so many end points; a row of values of the armed family is four lanes.
    fn of(engine: &'static str, ends: u64) -> Job {
        let elements = if engine == "armed" { 4 } else { 12 };
        Job { engine, ends: (0..ends).collect(), elements, more: String::new() }
    }

    fn text(&self, number: u64) -> String {
        let row =
            |rank| (0..self.elements).map(|k| operand(number, rank, k).to_string()).collect::<Vec<_>>().join(", ");
        let rows: Vec<String> = (0..self.ends.len() as u64).map(|rank| format!("[{}]", row(rank))).collect();
        format!(
            "[[job]]\nname = \"job{number}\"\nengine = \"{}\"\nop = \"sum\"\ndtype = \"i64\"\nelements = {}\n\
             participants = {:?}\ndata = {{ values = [{}] }}\n{}",
            self.engine,
            self.elements,
            self.ends,
            rows.join(", "),
            self.more
        )
    }

    /// What everybody has to hold.
    fn sum(&self, number: u64) -> Vec<u64> {
        let of = |k| (0..self.ends.len() as u64).map(|rank| operand(number, rank, k)).sum::<i64>() as u64;
        (0..self.elements).map(of).collect()
    }
}

fn scenario((kind, shape): (&str, &str), rest: &str, jobs: &[Job]) -> String {
    let jobs: String = jobs.iter().zip(0..).map(|(job, number)| job.text(number)).collect();
    format!("[topology]\nkind = \"{kind}\"\n{shape}\n[switch]\n{rest}{jobs}")
}

fn ends(network: (&str, &str)) -> u64 {
    let text = scenario(network, "[[traffic]]\npattern = \"uniform\"\nrate = 0.1\n", &[]);
    u64::from(load(&format!("family = \"fabric\"\n{text}"), &[]).scenario.topology.end_points())
}

/// Whether every participant of a job holds the sum that the test adds up.
fn holds(result: &RunResult, job: &Job, number: u64) -> bool {
    let data = result.data.iter().find(|of| of.name == format!("job{number}")).expect("every job has results");
    let expected = job.sum(number);
    let right = |row: &[u64]| row.len() >= expected.len() && row[..expected.len()] == expected[..];
    data.rows.iter().next().is_some() && data.rows.iter().all(right)
}

fn right(result: &RunResult, jobs: &[Job], text: &str) {
    let document = &result.document;
    assert!(document.passed(), "{:?} {:#?}\n{text}", document.outcome, document.checks);
    for (job, number) in jobs.iter().zip(0..) {
        assert!(holds(result, job, number), "job{number} of {}\n{text}", job.engine);
    }
}

/// Everything a run says, but how it was asked to run.
fn said(text: &str, options: &RunOptions<'_>) -> String {
    said_by(run_with(text, &[], &RunOptions { all_links: true, ..*options }))
}

/// The same of a run of which all links were asked for.
fn said_by(result: RunResult) -> String {
    let mut document = result.document;
    document.scenario = None;
    serde_json::to_string_pretty(&document).unwrap()
}

/// In `make test` one of them, another one for the next case.
fn evaluations_in_turn<'a>(case: usize) -> impl Iterator<Item = RunOptions<'a>> {
    let mut all = evaluations();
    all.rotate_left(case % 4);
    share::one_in(4, all)
}

fn evaluations<'a>() -> [RunOptions<'a>; 4] {
    let usual = RunOptions::default();
    [
        RunOptions { no_skip: true, ..usual },
        RunOptions { order_seed: Some(7), ..usual },
        RunOptions { threads: 2, ..usual },
        RunOptions { threads: 5, ..usual },
    ]
}

/// Every network with all engines, with and without traffic; in `make test` one in five of these cases.
#[test]
fn every_word_is_right_on_every_network() {
    let of = |network: (&'static str, &'static str)| {
        TOGETHER.map(|together| ["", TRAFFIC].map(|traffic| (network, together, traffic))).concat()
    };
    for (network, together, traffic) in share::one_in(5, NETWORKS.map(of).concat()) {
        let ends = ends(network);
        let jobs: Vec<Job> = together.iter().map(|&engine| Job::of(engine, ends)).collect();
        let text = scenario(network, traffic, &jobs);
        let result = run_with(&text, &[], &RunOptions::default());
        right(&result, &jobs, &text);
        let packets = result.document.traffic.iter().map(|of| of.packets).sum::<u64>();
        assert_eq!(packets > 0, !traffic.is_empty());
    }
}

/// In `make test` half of the engines on each of two networks, in one of the ways.
#[test]
fn nothing_depends_on_the_evaluation() {
    for (at, network) in [NETWORKS[1], NETWORKS[3]].into_iter().enumerate() {
        let ends = ends(network);
        let mut engines = TOGETHER;
        engines.rotate_left(at);
        for (case, together) in share::one_in(2, engines.into_iter().enumerate()) {
            let jobs: Vec<Job> = together.iter().map(|&engine| Job::of(engine, ends)).collect();
            let text = scenario(network, TRAFFIC, &jobs);
            let usual = said(&text, &RunOptions::default());
            for options in evaluations_in_turn(case / 2 + 3 * at) {
                assert!(usual == said(&text, &options), "{together:?} {network:?} {options:?}");
            }
        }
    }
}

/// Jobs of engines that have frames, beside traffic, in flits of so many bits over links of so many wires.
pub fn in_flits_of(network: (&str, &str), bits: u64, wires: u64) -> (String, [Job; 3]) {
    let ends = ends(network);
    let jobs = [Job::of("armed", ends), Job::of("pbv", ends), Job::of("armed", ends - 1)];
    let link = format!("[link]\nflit_bits = {bits}\nwidth_bits = {wires}\n");
    (scenario(network, &format!("{link}{TRAFFIC}"), &jobs), jobs)
}

/// H-WIDTH-1: frames of all engines are cut into flits of one size, which packets of traffic have, too. One case in three in `make test`:
/// each network and each size is among them.
#[test]
fn every_word_is_right_in_flits_of_every_size() {
    let sizes = [(32, 32), (96, 96), (128, 50), (512, 512)];
    let cases = NETWORKS.map(|network| sizes.map(|size| (network, size))).concat();
    for (number, (network, (bits, wires))) in share::one_in(3, cases).enumerate() {
        let (text, jobs) = in_flits_of(network, bits, wires);
        let result = run_with(&text, &[], &RunOptions { all_links: true, ..RunOptions::default() });
        right(&result, &jobs, &text);
        assert!(result.document.traffic.iter().all(|of| of.packets > 0));
        // One of the evaluations for each network and size, another one for the next.
        let options = evaluations()[(number + number / 4) % 4];
        assert!(said_by(result) == said(&text, &options), "{options:?}\n{text}");
    }
}

/// A job of doubles of an engine, with what it has in common with that of the others.
fn doubles(engine: &str, elements: u64) -> String {
    let data = "random = \"mixed\"";
    format!("[[job]]\nname = \"{engine}\"\nengine = \"{engine}\"\nelements = {elements}\ndata = {{ {data} }}\n")
}

#[test]
fn a_sum_of_doubles_has_the_bits_that_it_has_alone() {
    let head = "seed = 3\n[topology]\nkind = \"mesh\"\nsize = [4, 4]\n";
    let all: String = ["piuma", "armed", "pbv"].iter().map(|engine| doubles(engine, 40)).collect();
    let together = run_with(&format!("{head}{all}"), &[], &RunOptions::default());
    assert!(together.document.passed(), "{:#?}", together.document.checks);
    for engine in ["piuma", "armed", "pbv"] {
        let alone = run_with(&format!("{head}{}", doubles(engine, 40)), &[], &RunOptions::default());
        let same = together.data.iter().find(|of| of.name == engine).unwrap();
        assert_eq!(format!("{:?}", alone.data[0].rows), format!("{:?}", same.rows), "{engine}");
    }
}

#[test]
fn who_is_not_in_the_way_costs_no_cycle() {
    // The PBV family's engines have ports of their own: what does not go there does not meet them.
    for size in ["[4, 4]", "[7]", "[2, 3, 2]"] {
        let head = format!("[topology]\nkind = \"mesh\"\nsize = {size}\n");
        let late = "[[job]]\nname = \"late\"\nengine = \"pbv\"\nelements = 4\nstart_cycle = 9000\n[pbv.setup]\ninitialise_cycle = 8000\n";
        let job = doubles("piuma", 100);
        let alone = pass(&format!("{head}{job}"), &[]);
        let beside = pass(&format!("{head}{job}{late}"), &["pbv.setup.configuration=\"side-port\"".to_owned()]);
        assert_eq!(alone.collectives[0].latency_cycles, beside.collectives[0].latency_cycles, "{size}");
        assert_eq!(beside.pbv.unwrap().outcomes.complete, 1);
    }
}

#[test]
fn every_job_is_explained() {
    for network in [NETWORKS[0], NETWORKS[3]] {
        let ends = ends(network);
        let jobs: Vec<Job> = TOGETHER[5].iter().map(|&engine| Job::of(engine, ends)).collect();
        let text = scenario(network, TRAFFIC, &jobs);
        let why = Some(WhyQuery { collective: None, packet: None, source: None });
        let result = run_with(&text, &[], &RunOptions { why, ..RunOptions::default() });
        assert!(result.document.passed());
        let unexplained: Vec<&String> = result.notes.iter().filter(|note| !note.starts_with("one thread")).collect();
        assert!(unexplained.is_empty(), "{unexplained:?}");
        let mut names: Vec<&str> = result.why.iter().map(|of| of.collective.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["job0", "job1", "job2", "job3"]);
        for why in &result.why {
            let sum: u64 = why.parts.iter().map(|part| part.to - part.from).sum();
            assert_eq!(sum, why.latency_cycles, "{}", why.collective);
            assert!(why.parts.windows(2).all(|pair| pair[0].to == pair[1].from), "{}", why.collective);
        }
    }
}

/// A random scenario of several engines, with faults and strangers of the families that have them.
fn drawn(seed: u64) -> (String, Vec<Job>, [bool; 2]) {
    let mut draw = Draw(seed);
    let network = NETWORKS[draw.below(6) as usize];
    let all = ends(network);
    let together = TOGETHER[draw.below(6) as usize];
    let mut jobs = Vec::new();
    for &engine in together {
        for _ in 0..=draw.below(2) {
            let mut job = Job::of(engine, 0);
            let count = 3 + draw.below(all - 3);
            let mut left: Vec<u64> = (0..all).collect();
            job.ends = (0..count).map(|_| left.remove(draw.below(left.len() as u64) as usize)).collect();
            if engine != "armed" {
                job.elements = 1 + draw.below(40);
            }
            if engine == "piuma" {
                job.more = format!("piuma.id = {}\n", jobs.len());
            }
            if engine == "pbv" {
                // Beside others its contexts may be there later than the bound for idle links says.
                job.more += "start_cycle = 7000\n";
            } else if draw.below(2) == 1 {
                _ = writeln!(job.more, "start_cycle = {}", draw.below(900));
            }
            if engine == "pbv" {
                // Nodes that wait in one context and are waited for in another could wait in a circle.
                job.more += "pbv.blocks = false\n";
            }
            if engine == "pbv" || engine == "armed" {
                _ = writeln!(job.more, "repeat = {}", 1 + draw.below(3));
            }
            jobs.push(job);
        }
    }
    let mut rest = "collective_ids = 8\n[limits]\nmax_cycles = 4000000\n".to_owned();
    if draw.below(2) == 1 {
        rest += TRAFFIC;
        rest += "stop_cycle = 9000\n";
    }
    for (job, number) in jobs.iter().zip(0..) {
        // Whose frames have no right to anything changes nothing.
        let (whom, wrong) = if job.engine == "armed" { ("reduction", "cookie") } else { ("collective", "run") };
        if ["armed", "pbv"].contains(&job.engine) && draw.below(3) == 0 {
            let (engine, at) = (job.engine, job.ends[draw.below(job.ends.len() as u64) as usize]);
            _ = writeln!(
                rest,
                "[[{engine}.stranger]]\nend_point = {at}\n{whom} = \"job{number}\"\nwrong = \"{wrong}\""
            );
            _ = writeln!(rest, "until_cycle = 3000\nevery_cycles = 40");
        }
    }
    let faulty = [together.contains(&"armed") && draw.below(3) == 0, together.contains(&"pbv") && draw.below(3) == 0];
    let effect = ["drop", "corrupt", "duplicate"][draw.below(3) as usize];
    if faulty[0] {
        _ = writeln!(rest, "[[armed.fault]]\nat = \"all\"\neffect = \"{effect}\"\nprobability = 0.01");
    }
    if faulty[1] {
        _ = writeln!(rest, "[[pbv.fault]]\nat = \"all\"\neffect = \"{effect}\"\nprobability = 0.01");
    }
    (format!("seed = {seed}\n{}", scenario(network, &rest, &jobs)), jobs, faulty)
}

/// A random scenario of several engines.
pub fn drawn_scenario(seed: u64) -> Loaded {
    let (text, ..) = drawn(seed);
    load_text("drawn", &text, Path::new("."), "drawn", &[]).unwrap_or_else(|e| panic!("seed {seed}\n{e}\n{text}"))
}

/// Runs a seed with and without skipping, and divided; says whether something in it was faulty.
fn hold(seed: u64) -> bool {
    let (text, jobs, faulty) = drawn(seed);
    let options = RunOptions { all_links: true, ..RunOptions::default() };
    let result = run(&load(&text, &[]), &options).unwrap_or_else(|e| panic!("seed {seed}\n{e}\n{text}"));
    let document = &result.document;
    if faulty == [false; 2] {
        right(&result, &jobs, &text);
    }
    for (job, number) in jobs.iter().zip(0..) {
        let hurt = (job.engine == "armed" && faulty[0]) || (job.engine == "pbv" && faulty[1]);
        assert!(hurt || holds(&result, job, number), "seed {seed}, job{number} of {}\n{text}", job.engine);
    }
    let silent = document.armed.iter().map(|of| of.outcomes.silent).sum::<u64>()
        + document.pbv.iter().map(|of| of.outcomes.silent).sum::<u64>();
    assert_eq!(silent, 0, "seed {seed}\n{text}");
    let usual = said_by(result);
    for options in [evaluations()[0], evaluations()[2]] {
        assert!(usual == said(&text, &options), "seed {seed}, {options:?}\n{text}");
    }
    faulty != [false; 2]
}

/// Twelve in `make soak`; in `make test` two of them, the second with all engines, with strangers, traffic and faults.
#[test]
fn some_drawn_scenarios_are_right() {
    let faulty: Vec<bool> = share::one_in(6, 0..12).map(hold).collect();
    assert!(faulty.contains(&true) && faulty.contains(&false), "which had faults: {faulty:?}");
}

/// `WATERSHED_CAMPAIGN=FROM..TO` chooses the seeds.
#[test]
#[ignore = "minutes: a part of the soak"]
fn two_thousand_drawn_scenarios_are_right() {
    let given = std::env::var("WATERSHED_CAMPAIGN").ok();
    let parsed = given.as_deref().and_then(|text| text.split_once("..")).map(|(from, to)| (from.parse(), to.parse()));
    let seeds = if let Some((Ok(from), Ok(to))) = parsed { from..to } else { 12..2012 };
    seeds.for_each(|seed| _ = hold(seed));
}

#[test]
fn what_several_families_cannot_share_is_refused() {
    let jobs = "[[job]]\nengine = \"piuma\"\n[[job]]\nengine = \"armed\"\n";
    for (more, words) in [
        ("[link.reliability]\n", "no link-layer replay in a network of several families"),
        ("[link]\nheader = \"in-flit\"\n", "only the piuma family has a header"),
        ("[link]\nflit_bits = 96\n", "a flit of PIUMA's engines carries a word of 64 bits, not 96"),
        ("[[traffic]]\npattern = \"uniform\"\nrate = 0.1\n", "`switch.point_to_point_vcs` = 2 or more"),
        ("[[job]]\nname = \"s\"\nengine = \"software\"\n", "`switch.point_to_point_vcs` = 2 or more"),
    ] {
        let text =
            format!("[topology]\nkind = \"mesh\"\nsize = [3, 3]\n[switch]\npoint_to_point_vcs = 1\n{more}{jobs}");
        let loaded = load_text("bad", &text, Path::new("."), "bad", &[]);
        let error = match loaded {
            Err(problems) => problems.to_string(),
            Ok(loaded) => run(&loaded, &RunOptions::default()).expect_err("it is refused").to_string(),
        };
        assert!(error.contains(words), "{more}\n{error}");
    }
}

/// A torus needs two channels for each that sends: with fewer, messages of software never left and nobody was told.
#[test]
fn too_few_channels_are_refused_without_traffic_as_well() {
    let job =
        |engine: &str, more: &str| format!("[[job]]\nname = \"{engine}\"\nengine = \"{engine}\"\nelements = 4\n{more}");
    let alone = job("armed", "armed = { method = \"software\" }\n");
    for (jobs, needed) in [(job("armed", "") + &job("software", ""), 4), (alone, 2), (job("software", ""), 2)] {
        let with = |channels: u32| {
            let text = format!(
                "[topology]\nkind = \"torus\"\nsize = [3, 3]\n[switch]\npoint_to_point_vcs = {channels}\n{jobs}"
            );
            let loaded =
                load_text("torus", &text, Path::new("."), "torus", &[]).unwrap_or_else(|problems| panic!("{problems}"));
            run(&loaded, &RunOptions::default())
        };
        for channels in 1..needed {
            let error = with(channels).expect_err("it is refused").to_string();
            assert!(error.contains(&format!("`switch.point_to_point_vcs` = {needed} or more")), "{channels}: {error}");
        }
        for channels in [needed, 8] {
            assert!(with(channels).unwrap().document.passed(), "{channels}: {jobs}");
        }
    }
}
