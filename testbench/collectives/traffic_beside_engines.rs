//! Background traffic beside the engines of every family, on every kind of network (X-RUN-1): every word is right, every packet
//! arrives, and nothing depends on how the system is evaluated.

use std::path::Path;

use watershed::scenario::load_text;
use watershed::scenario::result::Document;
use watershed::scenario::run::{RunOptions, RunResult, check};

use crate::share;
use crate::support::{load, pass, run_with};

const ENGINES: [&str; 4] = ["piuma", "armed", "pbv", "software"];

/// Networks with at least twelve end points, and as many channels as the traffic of `lanes` lanes and messages need.
const NETWORKS: [(&str, &str); 7] = [
    ("mesh", "size = [4, 3]"),
    ("torus", "size = [4, 3]"),
    ("hyperx", "size = [3, 2]\nconcentration = 2"),
    ("fat-tree", "arity = 3\nlevels = 3"),
    ("dragonfly", "group_switches = 2\nconcentration = 2\nglobal_links = 2"),
    ("tree", "branching = [3, 4]"),
    ("mesh", "size = [2, 2]\nconcentration = 3"),
];

const TRAFFIC: [&str; 4] = [
    "pattern = \"uniform\"\ninjection = \"bernoulli\"\nrate = 0.4\npacket_flits = 5\n",
    "pattern = \"hotspot\"\nhotspots = [{ end_point = 1, share = 0.3 }]\nrate = 0.2\npacket_flits = [{ flits = 1, weight = 3 }, { flits = 9, weight = 1 }]\nstop_cycle = 600\n",
    "pattern = \"all-to-all\"\ninjection = \"bursty\"\nrate = 0.15\nburst_alpha = 0.05\nburst_beta = 0.2\n",
    "pattern = \"uniform\"\ninjection = \"closed-loop\"\nwindow = 3\npacket_flits = 2\nreply_flits = 7\nstop_cycle = 900\n",
];

/// What participant `rank` contributes as element `k`.
fn operand(rank: u64, k: u64) -> i64 {
    (rank * 0x9e37_79b9 + k * 0x85eb_ca6b) as i64 % 1_000_003 - 500_000
}

/// A job of one engine over all end points of a network, and traffic beside it.
fn scenario(engine: &str, (kind, shape): (&str, &str), traffic: &str, (ends, elements): (u64, u64)) -> String {
    let row = |rank| (0..elements).map(|k| operand(rank, k).to_string()).collect::<Vec<_>>().join(", ");
    let rows: Vec<String> = (0..ends).map(|rank| format!("[{}]", row(rank))).collect();
    // Software runs on the end points of a plain fabric.
    let (family, software) = if engine == "software" { ("fabric", "engine = \"software\"\n") } else { (engine, "") };
    format!(
        "family = \"{family}\"\n[topology]\nkind = \"{kind}\"\n{shape}\n[switch]\npoint_to_point_vcs = 6\n\
         [[traffic]]\nname = \"t\"\n{traffic}\
         [[job]]\nname = \"a\"\n{software}kind = \"allreduce\"\nop = \"sum\"\ndtype = \"i64\"\nelements = {elements}\n\
         data = {{ values = [{}] }}\n",
        rows.join(", ")
    )
}

fn ends(network: (&str, &str)) -> u64 {
    let text = format!(
        "family = \"fabric\"\n[topology]\nkind = \"{}\"\n{}\n[switch]\npoint_to_point_vcs = 6\n[[traffic]]\npattern = \"uniform\"\nrate = 0.1\n",
        network.0, network.1
    );
    u64::from(load(&text, &[]).scenario.topology.end_points())
}

/// End points and elements: a row of values of the armed family is four lanes.
fn size(engine: &str, network: (&str, &str)) -> (u64, u64) {
    (ends(network), if engine == "armed" { 4 } else { 12 })
}

/// Every word that anybody got is the sum that the test adds up, and every packet arrived.
fn right(result: &RunResult, (ends, elements): (u64, u64)) {
    let document = &result.document;
    assert!(document.passed(), "{:?} {:#?}", document.outcome, document.checks);
    let expected: Vec<u64> =
        (0..elements).map(|k| (0..ends).map(|rank| operand(rank, k)).sum::<i64>() as u64).collect();
    let data = &result.data[0];
    assert!(!data.rows.is_empty());
    for row in data.rows.iter() {
        let got: Vec<u64> = row.iter().copied().take(elements as usize).collect();
        assert_eq!(got, expected);
    }
    assert!(document.traffic.iter().map(|of| of.packets).sum::<u64>() > 0, "there was traffic");
}

/// Every engine on every network with every traffic; in `make test` one in three of these cases.
#[test]
fn every_word_is_right_on_every_network() {
    let on = |engine: &'static str| NETWORKS.map(|network| TRAFFIC.map(|traffic| (engine, network, traffic))).concat();
    for (engine, network, traffic) in share::one_in(3, ENGINES.map(on).concat()) {
        let size = size(engine, network);
        let result = run_with(&scenario(engine, network, traffic, size), &[], &RunOptions::default());
        right(&result, size);
    }
}

fn document(text: &str, options: &RunOptions<'_>) -> String {
    let mut document = run_with(text, &[], &RunOptions { all_links: true, ..*options }).document;
    assert!(document.passed(), "{:#?}", document.checks);
    document.scenario = None;
    serde_json::to_string_pretty(&document).unwrap()
}

/// One case in three in `make test`, all engines, networks and traffics among them, each in one of four other ways.
#[test]
fn nothing_depends_on_the_evaluation() {
    let networks = [NETWORKS[1], NETWORKS[3]];
    let on = |engine: &'static str| networks.map(|network| TRAFFIC.map(|traffic| (engine, network, traffic))).concat();
    let cases = ["armed", "pbv", "software"].map(on).concat();
    for (case, (engine, network, traffic)) in share::one_in(3, cases.into_iter().enumerate()) {
        let text = scenario(engine, network, traffic, size(engine, network));
        let usual = document(&text, &RunOptions::default());
        let mut ways = [
            RunOptions { no_skip: true, ..RunOptions::default() },
            RunOptions { order_seed: Some(7), ..RunOptions::default() },
            RunOptions { threads: 2, ..RunOptions::default() },
            RunOptions { threads: 5, ..RunOptions::default() },
        ];
        // There are as many kinds of traffic as ways: the next engine begins with another one.
        ways.rotate_left((case + case / 8) % 4);
        for options in share::one_in(4, ways) {
            assert!(usual == document(&text, &options), "{engine} {network:?} {traffic} {options:?}");
        }
    }
}

/// Latency of a flow of single packets, from one end point of a row of six switches to another.
fn flow(family: &str, from: u32, to: u32, flits: u32, rest: &str) -> u64 {
    let text = format!(
        "family = \"{family}\"\n[topology]\nkind = \"mesh\"\nsize = [6]\n[switch]\npoint_to_point_vcs = 2\n\
         [[traffic]]\npattern = \"flows\"\nflows = [{{ from = \"s{from}.P2\", to = \"s{to}.P2\", rate = 0.02 }}]\n\
         injection = \"periodic\"\npacket_flits = {flits}\nstart_cycle = 2000\nstop_cycle = 5000\n{rest}"
    );
    let document = pass(&text, &[]);
    let latency = document.traffic[0].latency.as_ref().unwrap();
    assert_eq!(latency.min, latency.max, "nothing is in its way");
    latency.min
}

#[test]
fn a_packet_crosses_as_in_a_plain_fabric() {
    // Where no engine is in the wire that packets take, they take as long as without a family.
    let pbv = "[[job]]\nkind = \"allreduce\"\nelements = 1\ndtype = \"i64\"\nstart_cycle = 9000\n";
    let armed = "[[armed.reduction]]\nop = \"flt-sum-near\"\nmethod = \"software\"\nrounds = 1\nstart_cycle = 9000\n";
    for (from, to, flits) in [(0, 5, 1), (4, 1, 3), (2, 3, 9)] {
        let plain = flow("fabric", from, to, flits, "");
        assert_eq!(flow("pbv", from, to, flits, pbv), plain, "{from} {to} {flits}");
        assert_eq!(flow("armed", from, to, flits, armed), plain, "{from} {to} {flits}");
    }
    // An engine of the armed family is a bump in a wire: a link of one cycle and a register more.
    let engines = "[[armed.reduction]]\nop = \"flt-sum-near\"\nroot = 0\nrounds = 1\nstart_cycle = 9000\n";
    let plain = flow("fabric", 0, 5, 4, "");
    let passed = flow("armed", 0, 5, 4, engines) - plain;
    assert_eq!(passed, 2 * 6, "six engines, the one before the root among them");
}

/// Cycles of an all-reduce of one round that begins when the network is full.
fn latency(engine: &str, network: &str, elements: u32, (class, rate): (u32, f64)) -> f64 {
    let class = if engine == "pbv" { format!("pbv.traffic_class = {class}\n") } else { String::new() };
    let text = format!(
        "family = \"{engine}\"\n[topology]\n{network}\n[switch]\npoint_to_point_vcs = 2\n\
         [[traffic]]\npattern = \"bit-complement\"\ninjection = \"bernoulli\"\nrate = {rate}\npacket_flits = 8\n\
         [[job]]\nkind = \"allreduce\"\nelements = {elements}\ndtype = \"i64\"\nstart_cycle = 2000\n{class}"
    );
    let document: Document = pass(&text, &[]);
    document.pbv.as_ref().map_or_else(
        || document.armed.as_ref().unwrap().reductions[0].round_latency_cycles.unwrap().mean,
        |pbv| pbv.collectives[0].round_latency_cycles.unwrap().mean,
    )
}

#[test]
fn traffic_holds_a_reduction_up_and_a_high_class_less() {
    // Switches whose queues fit a word, and others.
    for (network, elements) in
        [("kind = \"mesh\"\nsize = [4, 4]", 64), ("kind = \"hyperx\"\nsize = [2]\nconcentration = 16", 16)]
    {
        let [none, low, high] = [(0, 0.001), (0, 0.6), (7, 0.6)].map(|of| latency("pbv", network, elements, of));
        assert!(low > 1.05 * none, "{low} beside traffic, {none} without");
        // There is one job: a class can only bring its frames forward against traffic on the links.
        assert!(high < low, "class 7 takes {high}, class 0 {low}");
    }
    // Frames of reductions have channels with priority over point-to-point ones; what is left is an engine's wire they share.
    let [none, full] = [0.001, 0.6].map(|rate| latency("armed", "kind = \"mesh\"\nsize = [4, 4]", 16, (0, rate)));
    assert!(full < 1.5 * none, "{full} beside traffic, {none} without");
}

#[test]
fn a_window_is_measured_beside_engines() {
    for engine in ENGINES {
        let network = NETWORKS[0];
        let size = size(engine, network);
        let text =
            scenario(engine, network, TRAFFIC[0], size) + "[measure]\nwarmup_cycles = 300\nmeasure_cycles = 640\n";
        let result = run_with(&text, &[], &RunOptions::default());
        right(&result, size);
        let measure = result.document.measure.as_ref().expect("a window");
        assert_eq!((measure.from_cycle, measure.to_cycle), (300, 940), "{engine}");
        assert!(measure.drained_cycle.is_some_and(|cycle| cycle >= 940), "{engine}");
    }
}

#[test]
fn a_trace_is_fed_beside_engines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("packets.txt");
    let packets: Vec<String> =
        (0..40u64).map(|k| format!("{} {} {} {}", 250 * k, k % 12, (k + 5) % 12, 1 + k % 6)).collect();
    std::fs::write(&path, packets.join("\n") + "\n").unwrap();
    for engine in ENGINES {
        let network = NETWORKS[0];
        let size = size(engine, network);
        let traffic = format!("pattern = \"trace\"\nfile = {path:?}\n");
        let result = run_with(&scenario(engine, network, &traffic, size), &[], &RunOptions::default());
        right(&result, size);
        // The trace is longer than the job: it is waited for.
        assert_eq!(result.document.traffic[0].packets, 40, "{engine}");
        assert!(result.document.cycles > 250 * 39, "{engine}");
    }
}

#[test]
fn endless_traffic_ends_with_the_last_of_the_work() {
    for engine in ["armed", "pbv"] {
        let network = NETWORKS[0];
        let size = size(engine, network);
        let result = run_with(&scenario(engine, network, TRAFFIC[0], size), &[], &RunOptions::default());
        right(&result, size);
        let cycles = result.document.cycles;
        let longer = run_with(
            &(scenario(engine, network, TRAFFIC[0], size) + "start_cycle = 9000\n"),
            &[],
            &RunOptions::default(),
        );
        right(&longer, size);
        assert!(longer.document.cycles > cycles + 1000, "{engine}: {cycles} {}", longer.document.cycles);
        assert!(longer.document.traffic[0].packets > result.document.traffic[0].packets, "{engine}");
    }
}

/// What is wrong with a scenario that must be refused before cycle 0.
fn refused(text: &str) -> String {
    match load_text("test.toml", text, Path::new("."), "test", &[]) {
        Err(problems) => problems.to_string(),
        Ok(loaded) => check(&loaded).expect_err(text).to_string(),
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let job = "[[job]]\nkind = \"allreduce\"\nelements = 4\ndtype = \"i64\"\n";
    let text = |family: &str, channels: u32, traffic: &str| {
        format!(
            "family = \"{family}\"\n[topology]\nkind = \"torus\"\nsize = [4, 4]\n[switch]\npoint_to_point_vcs = {channels}\n{traffic}{job}"
        )
    };
    let one = "[[traffic]]\npattern = \"uniform\"\nrate = 0.1\n";
    let two = "[[traffic]]\npattern = \"uniform\"\ninjection = \"closed-loop\"\nwindow = 1\npacket_flits = 1\nreply_flits = 1\n";
    // The ring of a torus takes two channels a lane; messages of the armed family have a lane of their own.
    for (family, traffic, needed) in
        [("piuma", one, 2), ("piuma", two, 4), ("pbv", one, 2), ("pbv", two, 4), ("armed", one, 4), ("armed", two, 6)]
    {
        let fewer = needed - if traffic == two { 2 } else { 1 };
        let said = refused(&text(family, fewer, traffic));
        assert!(said.contains(&format!("`switch.point_to_point_vcs` = {needed} or more")), "{family} {said}");
        pass(&text(family, needed, &format!("{traffic}stop_cycle = 200\n")), &[]);
    }
    let said = refused(&text("pbv", 8, one));
    assert!(said.contains("8 channels of traffic") && said.contains("up to 7"), "{said}");
    // In the file they wait for a job of another engine, or for traffic; set for this run they would not act.
    let load = |text: &str, sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        load_text("test.toml", text, Path::new("."), "test", &sets)
    };
    let loaded = load(&text("pbv", 2, ""), &[]).unwrap();
    let waits = "`switch.point_to_point_vcs` waits for a job of piuma, armed or software, or for [[traffic]]";
    assert!(loaded.notes.iter().any(|note| note.contains(waits)), "{:?}", loaded.notes);
    let said = load(&text("pbv", 2, ""), &["switch.point_to_point_vcs=3"]).unwrap_err().to_string();
    assert!(said.contains("switch.point_to_point_vcs"), "{said}");
    let flows = "[[traffic]]\npattern = \"flows\"\nflows = [{ from = \"s0.P5\", to = \"s1.P4\", rate = 0.1 }]\n";
    let said = refused(&text("pbv", 2, flows).replace("torus", "mesh").replace("[4, 4]", "[4]"));
    assert!(said.contains("no end point") || said.contains("no port"), "{said}");
}
