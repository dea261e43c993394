//! The tracking store: random operations on few entries, so that they meet in the pipeline, and those of the engines of a running
//! system; both stages, every entry and every verdict in every cycle.

use watershed::kernel::Rng;
use watershed::pbv::ce::{Hazard, Label, Request, Track, TrackOp, Tracker};
use watershed::probe::wave_in::WaveFile;
use watershed::scenario::config::Wave;
use watershed::scenario::load_file;
use watershed::scenario::run::{RunOptions, WaveOptions, run};

use crate::bench::{Bench, Cosim, Difference};
use crate::player::Player;
use crate::random::seed;
use crate::verilator::{self, root};
use crate::watched::Watched;

/// Bits of the slot on the bench, and of the label: type of the message, context, run.
const SLOT_BITS: u32 = 12;
const LABEL_BITS: u32 = 8 + 12 + 32;

/// A store on the bench. These signals of the stages are looked at, by their names below `tracking`, and so many entries.
fn bench(contexts: u16, hazard: Hazard, stages: &[(String, u32)], entries: u16) -> Bench {
    let mut bench = Bench::default();
    let inputs = [
        ("valid", 1),
        ("op", 2),
        ("slot", SLOT_BITS),
        ("responder", 7),
        ("load_pbv", 128),
        ("load_p_count", 16),
        ("label_bits", LABEL_BITS),
    ];
    for (name, width) in inputs {
        bench.input(name, width);
    }
    let forward = u8::from(hazard == Hazard::Forward);
    bench.body(&format!(
        "  import ws_pbv_pkg::*;\n  localparam int unsigned SlotBits = {contexts} > 1 ? $clog2({contexts}) : 1;\n  logic ready, holds, left_valid;\n  track_op_e left_op;\n  \
         logic [SlotBits-1:0] left_slot;\n  logic [{LABEL_BITS}-1:0] left_label;\n  track_t left_track;\n  verdict_e left_verdict;\n  \
         ws_pbv_tracker #(.Contexts({contexts}), .Forward(1'b{forward}), .LabelBits({LABEL_BITS})) u_dut (\n    .clk_i, .rst_ni, \
         .valid_i(valid), .op_i(track_op_e'(op)), .slot_i(slot[SlotBits-1:0]), .responder_i(responder),\n    .load_i({{load_pbv, \
         load_p_count}}), .label_i(label_bits), .asked_i(slot[SlotBits-1:0]), .ready_o(ready), .holds_o(holds), .valid_o(left_valid), .op_o(left_op),\n    .slot_o(left_slot), \
         .label_o(left_label), .track_o(left_track), .verdict_o(left_verdict));\n"
    ));
    for (name, expression, width) in [
        ("ready_o", "ready", 1),
        ("valid_o", "left_valid", 1),
        ("slot_o", "left_slot", 12),
        ("label_o", "left_label", LABEL_BITS),
    ] {
        bench.look(name, expression, width);
    }
    for (name, width) in stages {
        bench.look(name, place("u_dut", name), *width);
    }
    for entry in 0..entries {
        bench.look(format!("entry{entry}.pbv"), format!("u_dut.store_q[{entry}].pbv"), 128);
        bench.look(format!("entry{entry}.p_count"), format!("u_dut.store_q[{entry}].p_count"), 16);
    }
    bench
}

/// Where the RTL has a signal of the stages of a store that is `path`.
pub fn place(path: &str, name: &str) -> String {
    let (stage, field) = name.split_once('.').expect("a stage and a field");
    let request = format!("{path}.{stage}_request_q");
    match field {
        "valid" => format!("{path}.{stage}_valid_q"),
        "message" => format!("{request}.tag[51:44]"),
        "cc_id" => format!("{request}.tag[43:32]"),
        "run" => format!("{request}.tag[31:0]"),
        // A state is NONE where nothing is.
        "op" => format!("{path}.{stage}_valid_q ? {request}.op : TrackNone"),
        "forward" => format!("{path}.write_valid_q ? {path}.write_forward_q : ForwardNone"),
        "verdict" => format!("{path}.write_valid_q ? {path}.write_verdict_q : VerdictNone"),
        "slot" | "responder" => format!("{request}.{field}"),
        "load_pbv" | "load_p_count" => format!("{request}.load.{}", &field[5..]),
        "read_pbv" | "read_p_count" => format!("{path}.write_read_q.{}", &field[5..]),
        "used_pbv" | "used_p_count" => format!("{path}.write_used_q.{}", &field[5..]),
        "pbv" | "p_count" => format!("{path}.{stage}_track_q.{field}"),
        other => panic!("{other} in {name}"),
    }
}

/// An operation as the bench has it.
fn inputs(request: Option<&Request>) -> Vec<u128> {
    let Some(Request { slot, op, label, .. }) = request else { return vec![0; 7] };
    let (number, responder, load) = match *op {
        TrackOp::Load(track) => (1, 0, track),
        TrackOp::Clear(entry) => (2, entry, Track::default()),
        TrackOp::Begin(track, entry) => (3, entry, track),
    };
    let label = u128::from(label.message) << 44 | u128::from(label.cc_id) << 32 | u128::from(label.run);
    vec![1, number, u128::from(*slot), u128::from(responder), load.pbv, u128::from(load.p_count), label]
}

fn random_request(rng: &mut Rng, contexts: u16, entries: u64) -> Request {
    let pbv = u128::from(rng.bits()) << 64 | u128::from(rng.bits());
    let pbv = if rng.below(8) == 0 { 0 } else { pbv & ((1 << entries) - 1) };
    // A count that does not fit its vector is an error that the pipeline meets all the same.
    let p_count = if rng.below(16) == 0 { rng.below(3) as u16 } else { pbv.count_ones() as u16 };
    let (track, entry) = (Track { pbv, p_count }, rng.below(entries) as u8);
    let op = match rng.below(24) {
        0 => TrackOp::Load(track),
        1 => TrackOp::Begin(track, entry),
        _ => TrackOp::Clear(entry),
    };
    let label = Label { message: rng.below(20) as u8, cc_id: rng.below(4096) as u16, run: rng.bits() as u32 };
    Request { slot: rng.below(u64::from(contexts)) as u16, generation: 0, op, label }
}

/// Entries of the store in the random runs, and participants of each.
const CONTEXTS: u16 = 3;
const PARTICIPANTS: u64 = 12;

/// A cycle whose stages are known in the next one: reset, inputs, outputs, entries.
type Before = (bool, Vec<u128>, Vec<Option<u128>>, Vec<Option<u128>>);

/// Random operations for so many cycles; `None` without Verilator.
pub fn drive(
    name: &str,
    hazard: Hazard,
    define: Option<&'static str>,
    cycles: u64,
) -> Option<Result<Cosim, Box<Difference>>> {
    let mut rng = Rng::new(seed(0x7ac4), 0);
    let mut tracker = Tracker::new(CONTEXTS, hazard);
    let (mut watched, mut tracer) = Watched::new(&["**"]);
    let node = tracer.declare("ce", |scope| tracker.probe(scope)).expect("stages");
    tracer.start().expect("signals");
    let stages: Vec<(String, u32)> = watched
        .signals()
        .into_iter()
        .map(|signal| (signal.name.strip_prefix("ce.tracking.").expect("a stage").to_owned(), signal.width))
        .collect();
    let mut bench = bench(CONTEXTS, hazard, &stages, CONTEXTS);
    if let Some(define) = define {
        bench.define(define);
    }
    let mut cosim = bench.build(name)?;
    let mut before: Option<Before> = None;
    for now in 0..=cycles {
        let reset = now == 0 || rng.below(2_000) == 0;
        if reset {
            tracker = Tracker::new(CONTEXTS, hazard);
        }
        tracer.sample(node, now, |scope| tracker.probe(scope));
        if let Some((reset, given, mut expected, entries)) = before.take() {
            watched.go_to(now - 1);
            expected.extend(watched.values.iter().copied().chain(entries));
            if let Err(difference) = cosim.cycle(reset, &given, expected) {
                return Some(Err(difference));
            }
        }
        let entries = (0..CONTEXTS).flat_map(|slot| {
            let track = tracker.entry(slot);
            [Some(track.pbv), Some(u128::from(track.p_count))]
        });
        let entries: Vec<Option<u128>> = entries.collect();
        let request = random_request(&mut rng, CONTEXTS, PARTICIPANTS);
        // Also where nothing is offered the slot says who asks.
        let ready = tracker.ready(request.slot);
        let taken = (ready && !reset && rng.below(5) > 0).then_some(request);
        let mut given = inputs(taken.as_ref());
        given[2] = u128::from(request.slot);
        let left = tracker.tick(taken);
        let mut expected = vec![Some(u128::from(ready)), Some(u128::from(left.is_some()))];
        expected.extend(left.map_or([None, None], |left| {
            let label = inputs(Some(&left.request))[6];
            [Some(u128::from(left.request.slot)), Some(label)]
        }));
        before = Some((reset, given, expected, entries));
    }
    Some(cosim.flush().map(|()| cosim))
}

fn stores_hold_what_the_model_holds(hazard: Hazard, cycles: u64, name: &str) {
    let Some(driven) = drive(name, hazard, None, cycles) else { return };
    let cosim = driven.unwrap_or_else(|difference| panic!("{name}: {difference}"));
    cosim.finish(&format!("ws_pbv_tracker, {CONTEXTS} entries, {hazard:?}"));
}

/// Cycles of a sample and of a soak.
const SAMPLE: u64 = 50_000;
const SOAK: u64 = 2_000_000;

#[test]
fn a_store_that_forwards_holds_what_the_model_holds() {
    stores_hold_what_the_model_holds(Hazard::Forward, SAMPLE, "tracker-forward");
}

#[test]
fn a_store_with_an_interlock_holds_what_the_model_holds() {
    stores_hold_what_the_model_holds(Hazard::Interlock, SAMPLE, "tracker-interlock");
}

#[test]
#[ignore = "takes minutes: make soak"]
fn stores_hold_what_the_model_holds_for_long() {
    stores_hold_what_the_model_holds(Hazard::Forward, SOAK, "tracker-forward");
    stores_hold_what_the_model_holds(Hazard::Interlock, SOAK, "tracker-interlock");
}

/// The stages' signals of a store beside that of an engine in a waveform; how many cycles had an operation.
fn beside_engine(player: &mut Player, scope: &str, stem: &str) -> Option<(u64, u64)> {
    let below = format!("{scope}.tracking.");
    let width = |name: &str| match name.rsplit('.').next().expect("a name") {
        "pbv" | "load_pbv" | "read_pbv" | "used_pbv" => 128,
        "p_count" | "load_p_count" | "read_p_count" | "used_p_count" => 16,
        "message" => 8,
        "cc_id" | "slot" => 12,
        "run" => 32,
        "responder" => 7,
        "valid" => 1,
        _ => 3,
    };
    let names = player.names.iter().filter_map(|name| name.strip_prefix(&below));
    let stages: Vec<(String, u32)> = names.map(|name| (name.to_owned(), width(name))).collect();
    // Waves show the first entries of a store.
    let mut cosim = bench(64, Hazard::Forward, &stages, 8).build(&format!("tracker-{stem}"))?;
    let shown: Vec<String> = stages.iter().map(|(name, _)| format!("{below}{name}")).collect();
    let entries: Vec<String> =
        (0..8).flat_map(|slot| ["pbv", "p_count"].map(|field| format!("{scope}.context{slot}.{field}"))).collect();
    let (mut cycle, mut operations) = (0, 0);
    let mut before: Option<Vec<Option<u128>>> = None;
    loop {
        let more = player.go_to(cycle);
        let get = |name: &str| player.known(&format!("{below}read.{name}"));
        let taken = (get("valid") == Some(1)).then(|| {
            let field = |name: &str| get(name).unwrap_or(0);
            let label = field("message") << 44 | field("cc_id") << 32 | field("run");
            vec![1, field("op"), field("slot"), field("responder"), field("load_pbv"), field("load_p_count"), label]
        });
        operations += u64::from(taken.is_some());
        // What stands in the first stage now was offered in the cycle before.
        if let Some(expected) = before.take() {
            let given = taken.unwrap_or_else(|| vec![0; 7]);
            cosim.cycle(false, &given, expected).unwrap_or_else(|difference| panic!("{scope}: {difference}"));
        } else {
            let nothing = vec![None; 4 + shown.len() + entries.len()];
            cosim.cycle(true, &[0; 7], nothing).unwrap_or_else(|difference| panic!("{scope}: {difference}"));
        }
        let values = shown.iter().chain(&entries).map(|name| player.known(name));
        before = Some([None; 4].into_iter().chain(values).collect());
        if !more {
            break;
        }
        cycle += 1;
    }
    cosim.flush().unwrap_or_else(|difference| panic!("{scope}: {difference}"));
    Some((cosim.cycles, operations))
}

fn engines_hold_what_the_model_holds(stem: &str) {
    if verilator::find().is_none() {
        return;
    }
    let loaded =
        load_file(&root().join(format!("testbench/pbv/{stem}.toml")), &["clock.frequency_mhz=1000".to_owned()])
            .unwrap_or_else(|problems| panic!("{problems}"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tracking.vcd");
    let wave = WaveOptions::of(
        path.clone(),
        Wave { signals: vec!["**.ce.tracking.**".into(), "**.ce.context*.*".into()], ..Wave::default() },
    );
    run(&loaded, &RunOptions { wave: Some(&wave), ..RunOptions::default() }).unwrap();
    let scopes = Player::new(WaveFile::open(&path).unwrap()).scopes(".tracking.read.valid");
    assert!(!scopes.is_empty());
    let (mut cycles, mut operations) = (0, 0);
    for scope in scopes.iter().take(8) {
        let mut player = Player::new(WaveFile::open(&path).unwrap());
        let Some((compared, done)) = beside_engine(&mut player, scope, "engines") else { return };
        cycles += compared;
        operations += done;
    }
    assert!(operations > 0, "nothing was tracked");
    println!(
        "rtl: ws_pbv_tracker beside {} engines of {stem}: {cycles} cycles, {operations} operations, 0 differences",
        scopes.len().min(8)
    );
}

#[test]
fn stores_of_a_shipped_scenario_hold_what_the_model_holds() {
    engines_hold_what_the_model_holds("chain-four-deep");
}
