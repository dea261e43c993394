//! Campaign over random faulty runs: what every node may hold is recomputed from what the nodes themselves say they contributed,
//! by code that shares nothing with the checks of a run. Set-up frames are lost, links lose, damage, repeat and delay frames,
//! nodes and switches die, strangers send every message there is; contexts are armed again, wait for other groups, multicast.
//!
//! Held against every run: a node that was given a result without an error has the exact one over everybody's operands of that
//! run; one marked as an error is that of some who contributed; nobody goes on before those it waits for; a multicast brings
//! the source's words, once; the document says of each round what the nodes say; nothing is left under way; and neither
//! skipping idle blocks nor the order of evaluation changes a word (B-ERR-1 to B-ERR-4, B-CE-7, B-CE-9).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use watershed::fabric::Evaluation;
use watershed::kernel::Rng;
use watershed::pbv::node::Outcome;
use watershed::pbv::packet::Message;
use watershed::pbv::system::{engines, node, run as clock};
use watershed::scenario::load_text;
use watershed::scenario::pbv::build::{BuildOptions, PbvBuild, build};
use watershed::scenario::pbv::config::Collective;
use watershed::scenario::pbv::file::KindFile;
use watershed::scenario::run::{RunOptions, run};

use crate::campaign;
use crate::share;

/// Shape of the system, its end points, and names of three of its switches.
const SHAPES: [(&str, u64, [&str; 3]); 4] = [
    ("kind = \"tree\"\nbranching = [2, 2, 2]\nroots = 0", 8, ["s0", "s1_0", "top"]),
    ("kind = \"mesh\"\nsize = [3]\nconcentration = 3", 9, ["s1", "s2", "s0"]),
    ("kind = \"flattened-butterfly\"\nsize = [4]\nconcentration = 2", 8, ["s1", "s3", "s2"]),
    ("kind = \"mesh\"\nsize = [1]\nconcentration = 6", 6, ["s0", "s0", "s0"]),
];

/// What else is drawn depends on it.
struct Drawn {
    shape: usize,
    ends: u64,
    switches: [&'static str; 3],
    /// Cycles of the engines' watchdogs.
    timeout: u64,
}

impl Drawn {
    fn end_name(&self, end: u64) -> String {
        match self.shape {
            0 => format!("leaf{end}"),
            1 => format!("s{}.node{}", end / 3, end % 3),
            2 => format!("s{}.node{}", end / 2, end % 2),
            _ => format!("s0.node{end}"),
        }
    }
}

/// A scenario drawn from a seed.
fn scenario(seed: u64) -> String {
    let mut rng = Rng::new(seed, 0x2ec0);
    let mut below = |bound: u64| rng.below(bound);
    let shape = below(4) as usize;
    let (topology, ends, switches) = SHAPES[shape];
    let (timeout, retries) = (300 + below(500), below(3));
    let drawn = Drawn { shape, ends, switches, timeout };
    let in_band = below(2) == 0;
    let configuration = if in_band { ["frame-each", "one-frame", "writes"][below(3) as usize] } else { "side-port" };
    let initialisation = ["through-master", "each"][below(2) as usize];
    let (latency, sequence_check) = (1 + below(6), below(2) == 0);
    let mut text = format!(
        "family = \"pbv\"\nseed = {seed}\n[topology]\n{topology}\n[link]\nflit_bits = {}\nlatency_cycles = {latency}\n[limits]\nmax_cycles = 100000000\n\
         [pbv.setup]\nconfiguration = \"{configuration}\"\ninitialisation = \"{initialisation}\"\n[pbv.link_layer]\n\
         sequence_check = {sequence_check}\n[pbv.engine]\ntimeout_cycles = {timeout}\ntimeout_factor = 2\nretries = {retries}\n",
        [64, 64, 32, 96, 256, 1024][Rng::new(seed, 0xf117).below(6) as usize]
    );
    let contexts = 0..=below(2);
    let names: Vec<Disturbed> = contexts.map(|context| collective(&mut text, context, &drawn, &mut below)).collect();
    for _ in 0..below(3) {
        stranger(&mut text, &names, &drawn, &mut below);
    }
    for _ in 0..=below(3) {
        fault(&mut text, &drawn, &mut below);
    }
    text
}

/// A collective that strangers disturb: its name, an end point that takes no part in it, and one that does.
type Disturbed = (String, u64, u64);

fn collective(text: &mut String, context: u64, drawn: &Drawn, mut below: impl FnMut(u64) -> u64) -> Disturbed {
    let rounds = 1 + below(3);
    let stranger = below(drawn.ends);
    let kind = below(5);
    let patience = drawn.timeout * (2 + below(14));
    let _ = write!(
        text,
        "[[pbv.collective]]\nname = \"c{context}\"\nrounds = {rounds}\nblocks = false\nmax_asks = 2\npatience_cycles = {patience}\n"
    );
    let disturbed = if kind == 0 {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for end in (0..drawn.ends).filter(|&end| end != stranger) {
            if below(2) == 0 { left.push(end) } else { right.push(end) }
        }
        while left.len() < 2 {
            left.push(right.pop().unwrap());
        }
        while right.is_empty() {
            right.push(left.pop().unwrap());
        }
        let _ = write!(text, "kind = \"inter-group-barrier\"\ngroups = [{left:?}, {right:?}]\n");
        // The second of the first group, so that it is not the source; any of the other one.
        let group = below(2);
        (format!("c{context}.{group}"), stranger, if group == 0 { left[1] } else { right[0] })
    } else {
        let source = (stranger + 1 + below(drawn.ends - 1)) % drawn.ends;
        let other = (0..drawn.ends).find(|&end| end != stranger && end != source).unwrap();
        let _ = write!(text, "except = [{stranger}]\nsource = {source}\n");
        let op = ["sum", "min", "max", "xor", "and", "or"][below(6) as usize];
        let order = ["arrival", "pbv"][below(2) as usize];
        match kind {
            1 => text.push_str("kind = \"barrier\"\n"),
            2 => text.push_str("kind = \"multicast\"\ndtype = \"u64\"\nelements = 3\n"),
            _ => {
                let _ = write!(
                    text,
                    "kind = \"allreduce\"\ndtype = \"u64\"\nop = \"{op}\"\nelements = 3\norder = \"{order}\"\n\
                         data = {{ random = \"integers\" }}\n"
                );
            }
        }
        if kind != 2 && below(3) == 0 {
            text.push_str("rearm = true\n");
        }
        (format!("c{context}"), stranger, other)
    };
    if kind != 2 {
        let _ = writeln!(text, "task_cycles = {{ random_max = {} }}", below(2 * drawn.timeout));
    }
    disturbed
}

fn stranger(text: &mut String, names: &[Disturbed], drawn: &Drawn, mut below: impl FnMut(u64) -> u64) {
    let (name, stranger, participant) = &names[below(names.len() as u64) as usize];
    let (wrong, end) = [
        ("sender", stranger),
        ("sender", stranger),
        ("channel", stranger),
        ("run", participant),
        ("kind", participant),
    ][below(5) as usize];
    let to =
        if below(2) == 0 { drawn.switches[below(3) as usize].to_owned() } else { drawn.end_name(below(drawn.ends)) };
    // Before the first frame of the set-up, between its frames, or among those of the rounds.
    let from = if below(2) == 0 { 0 } else { below(4000) };
    let _ = write!(
        text,
        "[[pbv.stranger]]\nend_point = {end}\ncollective = \"{name}\"\nwrong = \"{wrong}\"\nto = \"{to}\"\n\
             from_cycle = {from}\nuntil_cycle = {}\nevery_cycles = {}\n",
        from + 500 + below(2500),
        20 + below(60)
    );
}

fn fault(text: &mut String, drawn: &Drawn, mut below: impl FnMut(u64) -> u64) {
    let effect = ["drop", "corrupt", "duplicate", "delay", "drop", "dead"][below(6) as usize];
    let at = match below(3) {
        0 if effect != "dead" => "all".to_owned(),
        1 => drawn.switches[below(3) as usize].to_owned(),
        _ => drawn.end_name(below(drawn.ends)),
    };
    let from = if below(2) == 0 { 0 } else { 200 + below(2500) };
    let _ = write!(text, "[[pbv.fault]]\neffect = \"{effect}\"\nat = \"{at}\"\nfrom_cycle = {from}\n");
    if effect == "dead" {
        return;
    }
    if effect == "delay" {
        let _ = writeln!(text, "delay_cycles = {}", 1 + below(3 * drawn.timeout));
    }
    if below(2) == 0 {
        let _ = writeln!(text, "nth = {}", below(6));
    } else {
        let _ = writeln!(text, "probability = 0.{:02}", 1 + below(25));
    }
}

/// Run and words of a multicast.
type Cast = (u32, Vec<u64>);

/// What the nodes say after a run.
#[derive(Clone, Debug, PartialEq)]
struct Said {
    /// What they were told: by context and end point.
    told: BTreeMap<(u16, u32), Vec<Outcome>>,
    /// Runs in which they contributed, and when.
    made: BTreeMap<(u16, u32), Vec<(u32, u64)>>,
    /// Multicasts they got: run and words.
    got: BTreeMap<(u16, u32), Vec<Cast>>,
    refused: Vec<[u32; 16]>,
}

fn listen(ready: &PbvBuild, collectives: &[Collective]) -> Said {
    let mut said = Said { told: BTreeMap::new(), made: BTreeMap::new(), got: BTreeMap::new(), refused: Vec::new() };
    for (end, &device) in (0..).zip(&ready.devices) {
        let node = node(&ready.system, device);
        said.refused.push(*node.refused());
        for of in collectives {
            let key = (of.cc_id, end);
            said.told.insert(key, node.outcomes(of.cc_id).to_vec());
            said.made.insert(key, node.made(of.cc_id).to_vec());
            let casts = node.mail().iter().map(|(_, packet)| packet);
            let casts =
                casts.filter(|packet| packet.header.message == Message::Multicast && packet.header.cc_id == of.cc_id);
            said.got.insert(key, casts.map(|packet| (packet.header.run, packet.words().to_vec())).collect());
        }
    }
    said
}

fn pair(op: &str, a: u64, b: u64) -> u64 {
    match op {
        "Sum" => a.wrapping_add(b),
        "Min" => a.min(b),
        "Max" => a.max(b),
        "Xor" => a ^ b,
        "And" => a & b,
        "Or" => a | b,
        other => panic!("no operation {other}"),
    }
}

fn fold(op: &str, rows: &[&[u64]]) -> Vec<u64> {
    let (first, rest) = rows.split_first().expect("somebody");
    rest.iter().fold(first.to_vec(), |sum, row| sum.iter().zip(*row).map(|(&a, &b)| pair(op, a, b)).collect())
}

/// What is wrong with what the nodes were told in the runs of a collective.
fn judge(of: &Collective, all: &[Collective], operands: &[Vec<u64>], said: &Said) -> Result<(), String> {
    let members: Vec<u32> = of.participants.iter().copied().collect();
    let length = of.elements as usize;
    let row = |at: usize, run: u32| {
        let from = (run as usize - 1) * length % operands[at].len();
        &operands[at][from..from + length]
    };
    let made = |cc_id: u16, end: u32, run: u32| {
        said.made[&(cc_id, end)].iter().find(|&&(made, _)| made == run).map(|&(_, cycle)| cycle)
    };
    if of.kind == KindFile::Multicast {
        for &end in members.iter().filter(|&&end| end != of.source) {
            let mut seen = BTreeSet::new();
            for (run, words) in &said.got[&(of.cc_id, end)] {
                if words != row(0, *run) || !seen.insert(run) {
                    return Err(format!("end point {end} got {words:?} in run {run}"));
                }
            }
        }
        return Ok(());
    }
    let op = format!("{:?}", of.op);
    for &end in &members {
        let mut last = 0;
        for outcome in &said.told[&(of.cc_id, end)] {
            let at = format!("end point {end} in run {}", outcome.run);
            if outcome.run <= last || outcome.run > of.rounds {
                return Err(format!("{at}: after run {last} of {}", of.rounds));
            }
            last = outcome.run;
            // Whom it waits for: everybody, or everybody of the other groups.
            let awaited: Vec<(u16, u32)> = match of.group {
                None => members.iter().map(|&member| (of.cc_id, member)).collect(),
                Some(group) => {
                    let others = all.iter().filter(|other| {
                        other.group.is_some_and(|at| at.first == group.first && at.number != group.number)
                    });
                    others.flat_map(|other| other.participants.iter().map(|&member| (other.cc_id, member))).collect()
                }
            };
            let came = |&(cc_id, member): &(u16, u32)| {
                made(cc_id, member, outcome.run)
                    .is_some_and(|cycle| cycle < outcome.cycle || cycle == outcome.cycle && of.group.is_some())
            };
            if outcome.error.is_none() && !awaited.iter().all(came) {
                return Err(format!("{at}: went on before everybody it waits for had come"));
            }
            if of.kind != KindFile::Allreduce {
                continue;
            }
            let contributed: Vec<&[u64]> = (0..members.len())
                .filter(|&at| made(of.cc_id, members[at], outcome.run).is_some_and(|cycle| cycle < outcome.cycle))
                .map(|at| row(at, outcome.run))
                .collect();
            let right = if outcome.error.is_none() {
                outcome.words == fold(&op, &contributed)
            } else if outcome.words.is_empty() {
                true
            } else {
                (1u32..1 << contributed.len()).any(|set| {
                    let some: Vec<&[u64]> =
                        (0..contributed.len()).filter(|k| set >> k & 1 != 0).map(|k| contributed[k]).collect();
                    outcome.words == fold(&op, &some)
                })
            };
            if !right {
                return Err(format!("{at}: holds {:x?}, error {:?}", outcome.words, outcome.error));
            }
        }
    }
    Ok(())
}

/// What engines and links are like.
#[derive(Clone, Copy, PartialEq)]
enum BuildOf {
    /// As by default.
    Usual,
    /// The least room everywhere, and memories of one port.
    Small,
    /// Links that send again.
    Reliable,
    /// Beside traffic, and contexts of different classes.
    Busy,
}

impl BuildOf {
    fn text(self, seed: u64) -> String {
        let text = scenario(seed);
        let small = "[pbv.engine]\ninbox_flits = 514\nfeed_messages = 1\noutput_messages = 40\nmemory_ports = 1\n";
        // As many flits as hold a frame's address.
        let buffer = if text.contains("flit_bits = 32\n") { 3 } else { 2 };
        match self {
            BuildOf::Usual => text,
            BuildOf::Small => text
                .replace("[limits]", &format!("[switch]\ncollective_buffer_flits = {buffer}\n[limits]"))
                .replace("[pbv.engine]\n", small),
            BuildOf::Reliable => text
                .replace("[limits]", "[link.reliability]\nreplay_frames = 2\nreceive_frames = 1\n[limits]")
                .replace("sequence_check = false", "sequence_check = true"),
            BuildOf::Busy => {
                let mut rng = Rng::new(seed, 0xb5);
                let mut parts = text.split("[[pbv.collective]]\n");
                let mut busy = parts.next().unwrap().replace("[limits]", "[switch]\npoint_to_point_vcs = 2\n[limits]");
                for part in parts {
                    let _ = write!(busy, "[[pbv.collective]]\ntraffic_class = {}\n{part}", rng.below(8));
                }
                let (rate, flits) = (1 + rng.below(7), 1 + rng.below(9));
                let _ = write!(
                    busy,
                    "[[traffic]]\npattern = \"uniform\"\nrate = 0.{rate}\npacket_flits = {{ min = 1, max = {flits} }}\n\
                     stop_cycle = {}\n",
                    500 + rng.below(8000)
                );
                busy
            }
        }
    }
}

/// Runs a seed in every way; says how many rounds ended whole and how many did not.
fn one(seed: u64, build_of: BuildOf) -> Result<(u64, u64), String> {
    let text = build_of.text(seed);
    let fail = |what: String| format!("seed {seed}: {what}\n{text}");
    let loaded = load_text("seed", &text, Path::new(""), "seed", &[]).map_err(|error| fail(error.to_string()))?;
    let collectives = &loaded.scenario.pbv.as_ref().unwrap().collectives;
    let mut first: Option<Said> = None;
    let mut ways = vec![Evaluation::default(), Evaluation { shuffle: Some(seed + 1), ..Evaluation::default() }];
    // This walks through every time-out cycle by cycle, and takes as long as all else together: a third, and in `make test` a ninth.
    if seed.is_multiple_of(if share::is_whole() { 3 } else { 9 }) {
        ways.push(Evaluation { no_skip: true, ..Evaluation::default() });
    }
    for (way, evaluation) in ways.into_iter().enumerate() {
        let mut ready = build(&loaded, BuildOptions::default()).map_err(|_| fail("it does not build".into()))?;
        ready.system.evaluate(evaluation);
        clock(&mut ready.system, 50_000_000).map_err(&fail)?;
        let said = listen(&ready, collectives);
        if let Some(first) = &first {
            if *first != said {
                return Err(fail(format!("evaluated in way {way} the nodes say something else")));
            }
            continue;
        }
        for (of, operands) in collectives.iter().zip(&ready.operands) {
            judge(of, collectives, operands, &said).map_err(|what| fail(format!("{}: {what}", of.name)))?;
        }
        let idle = engines(&ready.system).all(|engine| engine.ce().is_idle());
        if ready.system.live_flits() > 0 || !ready.system.at_rest() || !idle {
            return Err(fail("something is left under way".into()));
        }
        first = Some(said);
    }
    let said = first.expect("it ran");
    let document = run(&loaded, &RunOptions::default()).map_err(|error| fail(error.to_string()))?.document;
    if let Some(check) = document.checks.iter().find(|check| !check.passed) {
        return Err(fail(format!("{}: {}", check.name, check.detail)));
    }
    let (mut whole, mut not) = (0, 0);
    for (of, told) in collectives.iter().zip(&document.pbv.as_ref().unwrap().collectives) {
        for round in &told.rounds {
            let good = |end: &u32| {
                if of.kind == KindFile::Multicast {
                    return *end == of.source || said.got[&(of.cc_id, *end)].iter().any(|(run, _)| *run == round.run);
                }
                let outcomes = &said.told[&(of.cc_id, *end)];
                outcomes.iter().any(|outcome| outcome.run == round.run && outcome.error.is_none())
            };
            let everybody = of.participants.iter().all(good);
            let what = format!("{}: round {} is {}, missing {:?}", of.name, round.run, round.outcome, round.missing);
            match round.outcome.as_str() {
                "complete" | "after-retry" if everybody => whole += 1,
                // A dead node that nobody missed: it had contributed before.
                "complete" | "after-retry" if text.contains("\"dead\"") => whole += 1,
                "incomplete" if !round.missing.is_empty() && (!everybody || of.group.is_some()) => not += 1,
                "incomplete" if !round.missing.is_empty() && of.kind == KindFile::Multicast => not += 1,
                _ => return Err(fail(what)),
            }
        }
    }
    Ok((whole, not))
}

fn hold(seeds: impl IntoIterator<Item = u64>, build_of: BuildOf) {
    let rounds = campaign::over(seeds, |seed| one(seed, build_of));
    let (whole, not) = rounds.iter().fold((0, 0), |(whole, not), (a, b)| (whole + a, not + b));
    println!("{} runs: {whole} rounds whole, {not} incomplete and named", rounds.len());
    assert!(whole > 0 && not > 0);
}

/// One in four of fifty in `make test`.
#[test]
fn runs_are_what_the_nodes_words_come_to() {
    hold(share::one_in(4, 0..50), BuildOf::Usual);
}

/// A source that was told of an error begins the run anew and keeps the first answer; the others hold the second one.
#[test]
fn a_run_that_is_answered_twice_is_told_as_the_nodes_hold_it() {
    for seed in [121, 290] {
        let (_, not) = one(seed, BuildOf::Usual).unwrap_or_else(|error| panic!("{error}"));
        assert!(not > 0, "seed {seed}");
    }
}

/// A barrier that everybody met is begun anew when its answers are under way, and answered again without those who do not know of
/// it: all of its answers agree in their words, for there are none.
#[test]
fn a_barrier_that_is_answered_twice_is_judged_by_the_answer_that_came() {
    let (whole, not) = one(5600, BuildOf::Usual).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((whole, not), (1, 1));
}

/// The stranger sits at the end point that configures the engines of both collectives: it may write their tables.
#[test]
fn a_stranger_that_configures_writes_no_tables() {
    one(6938, BuildOf::Usual).unwrap_or_else(|error| panic!("{error}"));
}

/// A group was in its second run when another one asked whether it had ended its first: in that one a member never came.
#[test]
fn a_group_that_is_a_run_further_was_not_complete_in_the_run_before() {
    one(53393, BuildOf::Usual).unwrap_or_else(|error| panic!("{error}"));
}

/// A source's command stood behind its own initialisations when its group was reported complete. It was kept as one to be answered,
/// so the next run's command was not: when that was lost nobody sent it again.
#[test]
fn a_command_that_leaves_late_keeps_no_place_for_the_next_one() {
    one(55196, BuildOf::Usual).unwrap_or_else(|error| panic!("{error}"));
    one(56224, BuildOf::Reliable).unwrap_or_else(|error| panic!("{error}"));
}

/// The source of a group gives a run up, and its word of that is lost: one member has an answer, and nobody is named by an engine.
#[test]
fn a_run_that_its_source_has_given_up_is_over() {
    one(55077, BuildOf::Usual).unwrap_or_else(|error| panic!("{error}"));
}

/// A damaged length was more than the whole inbox: the engine waited for that much room, and took nothing any more.
#[test]
fn a_frame_that_says_it_is_longer_than_the_inbox_is_taken() {
    for seed in [50750, 58125] {
        one(seed, BuildOf::Small).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// One in four of fifty in `make test`.
#[test]
fn runs_with_the_least_room_are_right_and_end() {
    hold(share::one_in(4, 50..100), BuildOf::Small);
}

/// One in four of fifty in `make test`.
#[test]
fn runs_over_links_that_send_again_are_right_and_end() {
    hold(share::one_in(4, 80..130), BuildOf::Reliable);
}

/// One in four of fifty in `make test`.
#[test]
fn runs_beside_traffic_are_right_and_end() {
    hold(share::one_in(4, 110..160), BuildOf::Busy);
}

#[test]
#[ignore = "long: make soak"]
fn ten_thousand_runs_with_the_least_room_are_right_and_end() {
    hold(campaign::asked(100..10_100), BuildOf::Small);
}

#[test]
#[ignore = "long: make soak"]
fn ten_thousand_runs_over_links_that_send_again_are_right() {
    hold(campaign::asked(130..10_130), BuildOf::Reliable);
}

#[test]
#[ignore = "long: make soak"]
fn ten_thousand_runs_beside_traffic_are_right_and_end() {
    hold(campaign::asked(160..10_160), BuildOf::Busy);
}

#[test]
#[ignore = "long: make soak"]
fn ten_thousand_runs_are_what_the_nodes_words_come_to() {
    hold(campaign::asked(50..10_050), BuildOf::Usual);
}
