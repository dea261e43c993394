//! One engine on its own: arithmetic in its place, result codes, counts, hazards, exact cycles (R-ENG-3, R-ENG-4, R-ENG-8,
//! R-AR-1 to R-AR-6, R-RC-1).

use watershed::arith::quad::{OPCODES, Opcode};
use watershed::arith::{Mode, Op, Quad, ResultCode, SignalPolicy, repsum};
use watershed::armed::{Contribution, EngineCfg, Hazard, reduce_contributions, reduce_with};
use watershed::kernel::Rng;
use watershed::oracle::quad_pair;

/// Doubles at the edges: zeros, denormals, one, the largest, infinities, quiet and signalling NaNs of both signs.
const DOUBLES: [u64; 14] = [
    0,
    1 << 63,
    1,
    0x800f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x3ff0_0000_0000_0000,
    0xbff0_0000_0000_0001,
    0x7fef_ffff_ffff_ffff,
    0xffef_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff8_0000_0000_0001,
    0xfff8_0000_0000_0000,
    0x7ff0_0000_0000_0001,
];
const INTEGERS: [u64; 8] = [0, 1, u64::MAX, 1 << 63, i64::MAX as u64, 5, 0xffff_ffff_ffff_fffb, 1 << 40];

/// A quad as a leaf of this operation sends it.
fn quad(opcode: &Opcode, rng: &mut Rng) -> Quad {
    let mut word = || {
        let edges: &[u64] = if opcode.dtype.is_float() { &DOUBLES } else { &INTEGERS };
        if rng.below(4) == 0 { rng.bits() } else { edges[rng.below(edges.len() as u64) as usize] }
    };
    match opcode.op {
        Op::Barrier => Quad::default(),
        Op::RepSum => repsum::split(word()),
        Op::MinMaxLoc | Op::MinMaxNumLoc => {
            let value = word();
            let index = word() % 8;
            Quad::of([value, index, value, index])
        }
        _ => Quad::of([word(), word(), word(), word()]),
    }
}

fn golden(opcode: &Opcode, configured: Mode, quads: &[Quad]) -> Quad {
    let mode = Mode { round: opcode.round, flush_to_zero: opcode.flush_to_zero, ..configured };
    let (first, rest) = quads.split_first().expect("somebody contributes");
    rest.iter().fold(*first, |sum, quad| quad_pair(opcode.op, opcode.dtype, mode, sum, *quad))
}

#[test]
fn every_operation_on_special_values_is_the_oracles_through_the_engine() {
    let mut rng = Rng::new(11, 0);
    for opcode in OPCODES {
        for signal in [SignalPolicy::Associative, SignalPolicy::Ieee] {
            let cfg = EngineCfg { mode: Mode { signal, ..Mode::default() }, ..EngineCfg::default() };
            for _ in 0..12 {
                let quads: Vec<Quad> = (0..2 + rng.below(9)).map(|_| quad(opcode, &mut rng)).collect();
                let contributions: Vec<Contribution> = quads.iter().copied().map(Contribution::from_quad).collect();
                let outcome = reduce_with(&cfg, opcode, &contributions, None, 0);
                let got = outcome.single().unwrap_or_else(|| panic!("{}: {outcome:?}", opcode.name));
                let expected = golden(opcode, cfg.mode, &quads);
                let found = Quad { lanes: got.lanes, code: got.rc, m: got.m, oflow_id: got.oflow_id };
                assert_eq!(found, expected, "{} of {quads:x?}", opcode.name);
                assert_eq!(got.count as usize, quads.len());
            }
        }
    }
}

#[test]
fn the_number_of_stages_changes_cycles_and_no_bit() {
    let mut rng = Rng::new(12, 0);
    for opcode in [0x14, 0x22, 0x28, 0x30].map(|number| Opcode::from_number(number).unwrap()) {
        let contributions: Vec<Contribution> =
            (0..9).map(|_| Contribution::from_quad(quad(opcode, &mut rng))).collect();
        let outcomes: Vec<_> = (1..=6)
            .map(|stages| reduce_with(&EngineCfg { stages, ..EngineCfg::default() }, opcode, &contributions, None, 0))
            .collect();
        for (at, outcome) in outcomes.iter().enumerate() {
            assert_eq!(outcome.frames, outcomes[0].frames);
            assert_eq!(outcome.cycles[0], outcomes[0].cycles[0] + at as u64, "a cycle a stage, of the last frame only");
        }
    }
}

#[test]
fn a_frame_takes_the_cycles_of_the_datasheet() {
    // The arm frame: head sent in 0, a cycle of link and an edge to the engine (2), cut through, the same to the feeder (4);
    // its tail is there in 14. The contribution: head sent in 14, tail in 24, taken from the engine's queue in 26.
    let sum = Opcode::from_number(0x14).unwrap();
    let one = [Contribution::of([1, 2, 3, 4])];
    for stages in 1..=6 {
        let cfg = EngineCfg { stages, ..EngineCfg::default() };
        let stages = u64::from(stages);
        let tail_taken = 26;
        // A frame that passes leaves in t + 2, a result in t + 2 + stages; ten more flits, a cycle of link and an edge.
        let passed = reduce_with(&cfg, sum, &[Contribution { ahead: 1, ..one[0] }], None, 0);
        assert_eq!(passed.cycles, [tail_taken + 2 + 10 + 2]);
        let merged = reduce_with(&cfg, sum, &one, None, 0);
        assert_eq!(merged.cycles, [tail_taken + 2 + stages + 10 + 2]);
        let two = reduce_with(&cfg, sum, &[one[0], one[0]], None, 0);
        assert_eq!(two.cycles[0], merged.cycles[0] + 11, "frames come every eleven cycles, and none waits");
        assert_eq!(two.counts.interlock_cycles, 0);
    }
}

#[test]
fn the_largest_result_code_wins_whatever_the_order() {
    let and = Opcode::from_number(0x01).unwrap();
    for &a in ResultCode::ALL {
        for &b in ResultCode::ALL {
            let with = |rc| Contribution { rc, ..Contribution::of([u64::MAX; 4]) };
            let outcome = reduce_contributions(and, &[with(a), with(b), with(ResultCode::Ok)]);
            assert_eq!(outcome.single().unwrap().rc, a.max(b), "{a} and {b}");
        }
    }
    // Overflow of an integer sum beats inexactness that came along; a mismatch beats all.
    let sum = Opcode::from_number(0x14).unwrap();
    let inexact = Contribution { rc: ResultCode::RepInexact, ..Contribution::of([i64::MAX as u64; 4]) };
    let outcome = reduce_contributions(sum, &[inexact, Contribution::of([1; 4])]);
    assert_eq!(outcome.single().unwrap().rc, ResultCode::IntOverflow);
    let other = Contribution { op: Some(0x10), ..Contribution::of([1; 4]) };
    let outcome = reduce_contributions(sum, &[inexact, Contribution::of([1; 4]), other]);
    let got = outcome.single().unwrap();
    assert_eq!((got.rc, got.lanes), (ResultCode::OpMismatch, [1 << 32 | 3, 0, 0, 0]), "sources 1 and 3");
}

#[test]
fn counts_beyond_the_wait_count_are_an_error_of_their_own() {
    let sum = Opcode::from_number(0x14).unwrap();
    let three = Contribution { count: 3, ..Contribution::of([1; 4]) };
    let outcome = reduce_with(&EngineCfg::default(), sum, &[three, three], Some(4), 0);
    let got = outcome.single().unwrap();
    assert_eq!((got.count, got.rc, outcome.counts.overflows), (6, ResultCode::ContrOverflow, 1));
    // Exactly the wait count is none; what comes after it passes.
    let one = Contribution::of([1; 4]);
    let outcome = reduce_with(&EngineCfg::default(), sum, &[three, one, one], Some(4), 0);
    let counts: Vec<_> = outcome.frames.iter().map(|frame| (frame.count, frame.rc)).collect();
    assert_eq!(counts, [(4, ResultCode::Ok), (1, ResultCode::Ok)]);
}

#[test]
fn the_time_out_is_chosen_by_the_wait_count_and_kept_to_the_cycle() {
    let sum = Opcode::from_number(0x14).unwrap();
    let cfg = EngineCfg { timeouts: [1, 2, 5, 9], thresholds: [3, 7, 100], ..EngineCfg::default() };
    let expires = |wait_count: u32| {
        let outcome = reduce_with(&cfg, sum, &[Contribution::of([7; 4])], Some(wait_count), 0);
        assert_eq!((outcome.single().unwrap().count, outcome.counts.expired), (1, 1));
        outcome.cycles[0]
    };
    let first = expires(2);
    for (wait_count, units) in [(3, 1), (4, 2), (7, 2), (8, 5), (100, 5), (101, 9), (1_048_575, 9)] {
        assert_eq!(expires(wait_count) - first, (units - 1) * 1024, "wait count {wait_count}");
    }
    // With nothing to send, nothing is sent: a frame ahead of the armed number passes, and the descriptor is free.
    let outcome = reduce_with(&cfg, sum, &[Contribution { ahead: 1, ..Contribution::of([7; 4]) }], Some(2), 0);
    assert_eq!((outcome.frames.len(), outcome.counts.expired_empty, outcome.counts.passed), (1, 1, 1));
}

/// Frames that pass fill the exit while the link is held; those for the descriptor pile up behind them, and then go into
/// the pipeline one behind the other.
fn burst(hazard: Hazard, stages: u8) -> watershed::armed::Outcome {
    let sum = Opcode::from_number(0x14).unwrap();
    let cfg =
        EngineCfg { hazard, stages, exit_frames: 16, entrance_frames: 40, timeouts: [4; 4], ..EngineCfg::default() };
    let mut contributions = vec![Contribution { ahead: 1, ..Contribution::of([0; 4]) }; 20];
    contributions.extend((0..16).map(|k| Contribution::of([1 << k, 1, k, 3])));
    reduce_with(&cfg, sum, &contributions, Some(16), 1500)
}

#[test]
fn back_to_back_frames_of_one_descriptor_lose_nothing() {
    for stages in 1..=6 {
        let outcome = burst(Hazard::Interlock, stages);
        let result = outcome.frames.last().unwrap();
        assert_eq!((outcome.frames.len(), result.count, result.lanes), (21, 16, [0xffff, 16, 120, 48]));
        assert_eq!(outcome.counts.completed, 1);
        if stages > 1 {
            assert!(outcome.counts.interlock_cycles > 0, "the hazard was there with {stages} stages");
        }
    }
}

#[test]
fn a_conflict_at_the_port_of_the_descriptors_costs_a_cycle() {
    // Frames that pass fill the exit while the link is held; eight for the descriptor wait behind them, and go in while the last
    // of those leaves: each is read when the one before is written back. With one port it is read a cycle later.
    let sum = Opcode::from_number(0x14).unwrap();
    for stages in [2, 6] {
        let of = |memory_ports: u8| {
            let cfg = EngineCfg {
                stages,
                memory_ports,
                exit_frames: 1,
                entrance_frames: 40,
                timeouts: [4; 4],
                ..EngineCfg::default()
            };
            let mut contributions = vec![Contribution { ahead: 1, ..Contribution::of([0; 4]) }; 6];
            contributions.extend((0..8).map(|k| Contribution::of([1 << k, 1, k, 3])));
            let outcome = reduce_with(&cfg, sum, &contributions, Some(8), 1500);
            let result = outcome.frames.last().unwrap();
            assert_eq!((outcome.frames.len(), result.count, result.lanes), (7, 8, [0xff, 8, 28, 24]));
            (outcome.cycles[6], outcome.counts.port_wait_cycles)
        };
        let (two, none) = of(2);
        assert_eq!((none, of(4)), (0, (two, 0)), "a read and a write meet nobody else here");
        let (one, waits) = of(1);
        assert_eq!(waits, 7, "a cycle each but the first");
        assert!((two..=two + 7).contains(&one), "{stages} stages: {two} and {one}");
    }
}

#[test]
fn without_the_interlock_the_same_frames_lose_contributions() {
    let outcome = burst(Hazard::Ignore, 6);
    let merged: u32 = outcome.frames.iter().filter(|frame| frame.ahead == 0).map(|frame| frame.count).sum();
    assert!(merged < 16, "{merged} of 16: a read came before the write it needed");
}
