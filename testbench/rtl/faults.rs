//! Faults that a designer could make, planted in the RTL by a macro: each is found by a sample, which names the first cycle and the
//! register and leaves a wave of both sides. Without the macro the same run shows no difference.

use std::fs;

use watershed::arith::{DType, Op};
use watershed::kernel::Rng;
use watershed::pbv::ce::Hazard;
use watershed::probe::wave_in::WaveFile;

use crate::bench::Difference;
use crate::{arith, armed, ceng, pbv_ce, pbv_frames, pbv_links, switch, tracker};

/// What a sample of a faulty module and of a sound one came to; `None` without Verilator.
type Both = Option<[Result<(), Box<Difference>>; 2]>;

fn is_found(fault: &str, both: Both, signal: &str) {
    let Some([faulty, sound]) = both else { return };
    sound.unwrap_or_else(|difference| panic!("without {fault}: {difference}"));
    let difference = faulty.expect_err(fault);
    assert!(difference.signal.contains(signal), "{fault} shows in {signal}, not first in: {difference}");
    assert_ne!(difference.rtl, difference.model);
    let file = WaveFile::open(&difference.wave).unwrap_or_else(|error| panic!("{error}"));
    assert!(file.header().variables.iter().any(|variable| variable.name.contains(signal)), "no {signal} in the wave");
    let wave = fs::read_to_string(&difference.wave).expect("a wave");
    // Both sides, up to the cycle of the difference.
    for part in ["$scope module rtl $end", "$scope module model $end", &format!("\n#{}\nb1 d\n", difference.cycle)] {
        assert!(wave.contains(part), "{fault}: no {part:?} in the wave");
    }
    println!("rtl: {fault} is found: {difference}");
}

/// A unit with and without a fault.
fn units(fault: &'static str, stages: u8, selects: &[(Op, DType)]) -> Both {
    let run = |define: Option<&'static str>| {
        let mut bench = arith::bench(stages, selects);
        if let Some(define) = define {
            bench.define(define);
        }
        let mut cosim = bench.build(&format!("fault-{fault}-{}", define.is_some()))?;
        let driven = arith::drive(&mut cosim, (stages, selects), &mut Rng::new(3, 0), 4_000);
        Some(driven.and_then(|_| cosim.flush()))
    };
    Some([run(Some(fault))?, run(None)?])
}

#[test]
fn a_dropped_stage_register_is_found() {
    is_found("a stage register dropped", units("WS_FAULT_STAGE", 6, &[(Op::Sum, DType::F32)]), "stage5.rounded");
}

#[test]
fn a_lost_sticky_bit_is_found() {
    is_found("a sticky bit lost", units("WS_FAULT_STICKY", 3, &[(Op::Sum, DType::F32)]), "aligned.lane");
}

#[test]
fn an_overwritten_slot_is_found() {
    let run = |define: Option<&'static str>| {
        // The sound one is that of another test, built once.
        let driven =
            ceng::narrow().drive(define.map_or("ceng-5", |_| "fault-slot"), define, &mut Rng::new(4, 0), 4_000)?;
        Some(driven.map(drop))
    };
    let both = || Some([run(Some("WS_FAULT_SLOT"))?, run(None)?]);
    is_found("a slot overwritten", both(), "room");
}

#[test]
fn a_prefix_that_has_its_own_input_is_found() {
    let run = |define: Option<&'static str>| {
        // The sound one is that of another test, built once.
        let name = define.map_or("ceng-scan", |_| "fault-prefix");
        Some(ceng::scanning().drive(name, define, &mut Rng::new(4, 0), 4_000)?.map(drop))
    };
    let both = || Some([run(Some("WS_FAULT_PREFIX"))?, run(None)?]);
    is_found("a prefix with its own input", both(), "combine.");
}

#[test]
fn a_credit_returned_twice_is_found() {
    let run = |define: Option<&'static str>| {
        let name = define.map_or("switch-crowded", |_| "fault-credit");
        Some(switch::beside(&switch::crowded(100), 4, 1_500, name, define)?.map(drop))
    };
    let both = || Some([run(Some("WS_FAULT_CREDIT"))?, run(None)?]);
    is_found("a credit returned twice", both(), "credit_o");
}

#[test]
fn a_channel_that_is_freed_too_early_is_found() {
    let run = |define: Option<&'static str>| {
        // The sound one is that of another test, built once.
        let name = define.map_or("switch-busy", |_| "fault-channel");
        Some(switch::beside(&switch::busy(500, 4, 0.5), 2, 600, name, define)?.map(drop))
    };
    let both = || Some([run(Some("WS_FAULT_CHANNEL"))?, run(None)?]);
    is_found("a channel freed too early", both(), "held_q");
}

#[test]
fn a_turn_that_passes_in_a_later_round_is_found() {
    let run = |define: Option<&'static str>| {
        // The sound one is that of another test, built once.
        let name = define.map_or("switch-islip", |_| "fault-round");
        Some(switch::beside(&switch::iterative(300), 2, 2_000, name, define)?.map(drop))
    };
    let both = || Some([run(Some("WS_FAULT_ROUND"))?, run(None)?]);
    is_found("a turn that passes in a later round", both(), "out_valid_o");
}

#[test]
fn an_overlooked_hazard_of_the_tracker_is_found() {
    let run = |define: Option<&'static str>| {
        let name = define.map_or("tracker-forward", |_| "fault-hazard");
        Some(tracker::drive(name, Hazard::Forward, define, 2_000)?.map(drop))
    };
    let both = || Some([run(Some("WS_FAULT_HAZARD"))?, run(None)?]);
    is_found("a tracker hazard", both(), "write.");
}

/// A reduction engine with and without a fault; the sound one is that of another test, built once.
fn engines(fault: &'static str, cycles: u64) -> Both {
    Some([armed::sample(Some(fault), cycles)?, armed::sample(None, cycles)?])
}

#[test]
fn an_overlooked_interlock_of_a_descriptor_is_found() {
    is_found("an interlock overlooked", engines("WS_FAULT_INTERLOCK", 12_000), "merged");
}

#[test]
fn a_write_for_an_earlier_arming_is_found() {
    is_found("a write for an earlier arming", engines("WS_FAULT_GENERATION", 200_000), "engine.descriptor");
}

#[test]
fn a_word_that_overtakes_the_one_before_is_found() {
    let run = |define: Option<&'static str>| {
        // The sound one is that of another test, built once.
        let name = define.map_or("pbv-ce", |_| "fault-word");
        let fault = define.map_or(Some(0), |_| None);
        Some(pbv_ce::drive(name, pbv_ce::usual_engine(), (define, fault), 0x9b5c_0000, 2_000)?.map(drop))
    };
    let both = || Some([run(Some("WS_FAULT_WORD"))?, run(None)?]);
    is_found("a word that overtakes the one before", both(), "in_unit");
}

#[test]
fn a_short_line_that_is_taken_for_a_whole_one_is_found() {
    let run = |define: Option<&'static str>| {
        // The sound one is that of another test, built once.
        let name = define.map_or("pbv-ce-wide", |_| "fault-line");
        Some(pbv_ce::drive(name, pbv_ce::wide(), (define, None), 0x9b5c_0000, 2_000)?.map(drop))
    };
    let both = || Some([run(Some("WS_FAULT_LINE"))?, run(None)?]);
    is_found("a short line taken for a whole one", both(), "unit1.");
}

/// One simulator has a fault for every mechanism of a collective engine, and an input that says which one acts.
#[test]
fn a_fault_in_each_mechanism_of_packet_engines_is_found() {
    let run = |fault: u8| {
        let driven = pbv_ce::drive("pbv-ce", pbv_ce::usual_engine(), (None, Some(fault)), 0x9b5c_0000, 8_000)?;
        Some(driven.map(drop))
    };
    for (fault, what, signal) in [
        (1, "a participant asked once too often", "send"),
        (2, "a multicast whose source has to answer", "load_p"),
        (3, "a pause overlooked", "state"),
        (4, "a context armed again without its participants", "tracking.read"),
        (5, "a group that goes on too early", "send"),
        (6, "a response merged that is for the source", "send"),
        (7, "a response passed on as somebody else's", "p_id"),
    ] {
        let both = || Some([run(fault)?, if fault == 1 { run(0)? } else { Ok(()) }]);
        is_found(what, both(), signal);
    }
}

/// One simulator has a fault for each way of frames.
#[test]
fn a_fault_in_each_way_of_frames_is_found() {
    let run = |fault: u8| {
        let driven = pbv_frames::drive("pbv-frame", pbv_ce::usual_engine(), Some(fault), 0xf4a3_0000, 6_000)?;
        Some(driven.map(drop))
    };
    for (fault, what, signal) in [
        (8, "half a word that a check sum leaves out", "port"),
        (9, "an old frame that waits as long as others come", "taken"),
        (10, "copies with the entry of one participant", "out.word"),
        (11, "a word sent that the link did not take", "out."),
    ] {
        let both = || Some([run(fault)?, if fault == 8 { run(0)? } else { Ok(()) }]);
        is_found(what, both(), signal);
    }
}

/// One pair of simulators has a fault for each mechanism of data paths and registers.
#[test]
fn a_fault_in_each_way_of_data_paths_and_registers_is_found() {
    let run = |fault: u8| Some(pbv_links::drive(3, Some(fault), 0x1a7e_0000, 20_000)?.map(drop));
    for (fault, what, signal) in [
        (12, "a frame that begins in the middle of another", "free"),
        (13, "a frame that is taken without a place", "take"),
        (14, "a write of somebody else", "message0"),
        (15, "a maximum that lasts into the next window", "message0.word"),
    ] {
        let both = || Some([run(fault)?, if fault == 12 { run(0)? } else { Ok(()) }]);
        is_found(what, both(), signal);
    }
}
