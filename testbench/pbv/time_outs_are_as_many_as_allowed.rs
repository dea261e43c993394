//! How often a collective engine asks again, whom, and when, to the cycle; and what it says when nobody has answered (B-ERR-1 to
//! B-ERR-3).

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::Bench;
use watershed::arith::{DType, Op};
use watershed::pbv::ce::{Ce, CeCfg, Outgoing, State, Target};
use watershed::pbv::packet::{Body, ConfigRecord, Header, InitRecord, Message, NO_DEVICE, Packet, Status};
use watershed::scenario::load_text;
use watershed::scenario::run::{RunOptions, run};

/// The engine with another one and three nodes below it.
const ME: u16 = 0x10;
const ABOVE: u16 = 0x00;
const TABLE: [u16; 4] = [0x20, 0x11, 0x12, 0x13];
const CC: u16 = 3;

fn header(message: Message, from: u16) -> Header {
    let mut header = Header::new(message, from, ME, 0xc000);
    (header.cc_id, header.run, header.dmu_id, header.op, header.dtype) = (CC, 1, 1, Op::Sum, DType::U64);
    header.p_id = TABLE.iter().position(|&device| device == from).unwrap_or(0) as u8;
    header
}

/// An engine in the middle of its first run, whose command came in the returned cycle.
fn commanded(timeout: u32, retries: u8, answered: &[u16]) -> (Bench, u64) {
    let record = ConfigRecord { timeout, retries, ..ConfigRecord::of(ME, TABLE.to_vec(), 1) };
    let mut ce = Ce::new(CeCfg::default());
    ce.place(ME, 0xc000);
    let mut bench = Bench::of(ce, &record);
    let context = InitRecord { words: 1, above: ABOVE, collector: ABOVE, ..InitRecord::barrier(ME, 0b1111) };
    let frame = header(Message::Initialisation, ABOVE);
    bench.give(&Packet { header: Header { run: 0, ..frame }, body: Body::Initialisation(vec![context]) });
    bench.rest();
    let begun = bench.now;
    bench.give(&Packet::bare(header(Message::Command, ABOVE)));
    for &device in answered {
        let message = if device == 0x20 { Message::Partial } else { Message::Contribution };
        bench.give(&Packet::of(header(message, device), vec![u64::from(device)]));
    }
    (bench, begun)
}

/// What it sends from now on, and in which cycles.
fn sent(bench: &mut Bench, until: u64) -> Vec<(u64, Outgoing)> {
    bench.sent.clear();
    let mut all = Vec::new();
    while bench.now < until {
        let now = bench.now;
        bench.tick(None);
        all.extend(bench.sent.drain(..).map(|out| (now, out)));
    }
    all
}

#[test]
fn who_is_missing_is_asked_so_often_and_then_named() {
    for timeout in [40, 333] {
        for retries in 0..4u8 {
            for answered in [&[0x12u16][..], &[0x20, 0x11, 0x12], &[]] {
                let (mut bench, begun) = commanded(timeout, retries, answered);
                let period = u64::from(timeout);
                let all = sent(&mut bench, begun + period * 6);
                let left: BTreeSet<u16> = TABLE.into_iter().filter(|device| !answered.contains(device)).collect();
                let bits =
                    TABLE.iter().zip(0..).filter(|(device, _)| left.contains(device)).map(|(_, entry)| 1 << entry);
                let target = Target::Entries { pbv: bits.sum(), skip: NO_DEVICE };
                let what = format!("{timeout} {retries} {answered:x?}");
                let (asked, end) = all.split_at(usize::from(retries));
                for ((cycle, out), nth) in asked.iter().zip(1..) {
                    assert_eq!((*cycle, &out.target), (begun + nth * period, &target), "{what}");
                    let told = out.packet.header;
                    assert_eq!((told.message, told.status, told.run), (Message::Retry, Status::TimedOut, 1), "{what}");
                }
                // Who is missing, then what there is, both once and to the engine above.
                let [(named, missing), (answered_at, partial)] = end else { panic!("{what}: {end:?}") };
                let last = begun + (u64::from(retries) + 1) * period;
                assert_eq!((*named, *answered_at), (last, last), "{what}");
                assert!([missing, partial].iter().all(|out| out.packet.header.device == ABOVE), "{what}");
                assert_eq!(missing.packet.header.message, Message::Error, "{what}");
                let Body::Missing { devices, .. } = &missing.packet.body else { panic!("{what}") };
                assert!(devices.iter().eq(&left), "{what}: {devices:x?}");
                let told = partial.packet.header;
                assert_eq!(
                    (told.message, told.error, told.status),
                    (Message::Partial, true, Status::TimedOut),
                    "{what}"
                );
                let sum: u64 = answered.iter().map(|&device| u64::from(device)).sum();
                let words = if answered.is_empty() { vec![] } else { vec![sum] };
                assert_eq!(partial.packet.words(), words, "{what}");
                let noted: BTreeSet<u16> = bench.missing.iter().map(|noted| noted.1).collect();
                assert_eq!((bench.missing.len(), &noted), (left.len(), &left), "{what}: the failure point's register");
            }
        }
    }
}

#[test]
fn a_node_that_fails_is_named_with_those_that_are_silent() {
    // In the order of device IDs: 0x11 has failed, 0x13 never answers.
    let (mut bench, begun) = commanded(100, 0, &[0x20, 0x12]);
    let failed = Header { error: true, status: Status::Failed, ..header(Message::Failure, 0x11) };
    bench.give(&Packet::bare(failed));
    let all = sent(&mut bench, begun + 500);
    let [(_, missing), (_, partial)] = &all[..] else { panic!("{all:?}") };
    let Body::Missing { devices, .. } = &missing.packet.body else { panic!("{all:?}") };
    assert_eq!(devices, &[0x11, 0x13]);
    assert_eq!(partial.packet.words(), [0x20 + 0x12]);
    assert_eq!(bench.missing, [(CC, 0x11, Status::Failed), (CC, 0x13, Status::TimedOut)]);
}

#[test]
fn the_engine_above_is_asked_for_the_result_and_then_forsaken() {
    for timeout in [10, 25] {
        for retries in 0..3u8 {
            let (mut bench, _) = commanded(timeout, retries, &TABLE);
            // The cycle in which the partial response goes up is that from which it waits.
            let goes_up = |out: &Outgoing| out.packet.header.message == Message::Partial;
            while !bench.sent.iter().any(goes_up) {
                bench.tick(None);
            }
            let waits = bench.now - 1;
            let period = 32 * u64::from(timeout);
            let all = sent(&mut bench, waits + 8 * period);
            let (asked, end) = all.split_at(usize::from(retries) + 1);
            for ((cycle, out), nth) in asked.iter().zip(1..) {
                let told = out.packet.header;
                assert_eq!((*cycle, &out.target), (waits + nth * period, &Target::Header), "{timeout} {retries}");
                assert_eq!((told.message, told.device, told.run), (Message::Retry, ABOVE, 1), "{timeout} {retries}");
            }
            let [(cycle, out)] = end else { panic!("{timeout} {retries}: {end:?}") };
            assert_eq!(*cycle, waits + (u64::from(retries) + 2) * period, "{timeout} {retries}");
            assert_eq!(out.target, Target::Entries { pbv: 0b1111, skip: NO_DEVICE });
            let told = out.packet.header;
            assert_eq!((told.message, told.error, told.status), (Message::Satisfied, true, Status::TimedOut));
            assert_eq!(out.packet.words(), [0; 0], "there is no result");
            assert_eq!(bench.missing, [(CC, ABOVE, Status::TimedOut)], "the engine above is what failed");
            assert_eq!(bench.ce.find(CC).unwrap().state, State::Done);
        }
    }
}

#[test]
fn a_result_that_is_lost_on_the_way_down_is_asked_for_by_the_engine() {
    // No node asks: the lower engine alone does, and everybody gets the sum.
    let of = |fault: &str| {
        let text = format!(
            "family = \"pbv\"\n[topology]\nkind = \"mesh\"\nsize = [2]\nconcentration = 2\n[pbv.setup]\n\
             configuration = \"side-port\"\n[pbv.engine]\ntimeout_cycles = 200\nretries = 1\n[[pbv.collective]]\n\
             dtype = \"u64\"\nop = \"sum\"\nelements = 1\nmaster = \"s0\"\nsource = 0\nstart_cycle = 2000\ntask_cycles = 20\n\
             patience_cycles = 0\n{fault}"
        );
        let loaded = load_text("lost", &text, Path::new(""), "lost", &[]).unwrap_or_else(|error| panic!("{error}"));
        run(&loaded, &RunOptions::default()).unwrap().document
    };
    let plain = of("");
    let mut late = 0;
    for nth in 0..4 {
        let lost = of(&format!(
            "[[pbv.fault]]\neffect = \"drop\"\nat = \"s1\"\nway = \"to\"\nfrom_cycle = 2000\nnth = {nth}\n"
        ));
        assert!(lost.passed(), "{nth}: {:?}", lost.checks);
        let result = |document: &watershed::scenario::result::Document| {
            document.pbv.as_ref().unwrap().collectives[0].rounds[0].result.clone()
        };
        assert_eq!(result(&lost), result(&plain), "{nth}");
        let outcomes = &lost.pbv.as_ref().unwrap().outcomes;
        assert_eq!(outcomes.complete + outcomes.after_retry, 1, "{nth}: {}", outcomes.words());
        // Runs end with their last frame, and the engine has waited since its response went up.
        assert!(
            plain.cycles < 3000 && lost.cycles < plain.cycles + 33 * 200,
            "{nth}: {} {}",
            plain.cycles,
            lost.cycles
        );
        late += u64::from(lost.cycles > plain.cycles + 30 * 200);
    }
    assert_eq!(late, 1, "one of the frames is the result");
}

/// Time-outs that come before the last answer, and while the words of all are being added: a round without a missing participant
/// is no error.
#[test]
fn a_sum_that_is_still_being_added_is_not_timed_out() {
    let (mut whole, mut named) = (0, 0);
    for timeout in (1000..2600).step_by(40) {
        for order in ["arrival", "pbv"] {
            let text = format!(
                "family = \"pbv\"\n[topology]\nkind = \"mesh\"\nsize = [1]\nconcentration = 4\n[pbv.setup]\n\
                 configuration = \"side-port\"\n[pbv.engine]\ntimeout_cycles = {timeout}\nretries = 0\n[[pbv.collective]]\n\
                 dtype = \"u64\"\nop = \"sum\"\nelements = 400\norder = \"{order}\"\nstart_cycle = 1000\ntask_cycles = 20\n\
                 patience_cycles = 0\n"
            );
            let loaded = load_text("long", &text, Path::new(""), "long", &[]).unwrap_or_else(|error| panic!("{error}"));
            let document = run(&loaded, &RunOptions::default()).unwrap().document;
            assert!(document.passed(), "{timeout} {order}: {:?}", document.checks);
            let round = &document.pbv.as_ref().unwrap().collectives[0].rounds[0];
            assert_eq!(round.outcome == "incomplete", !round.missing.is_empty(), "{timeout} {order}: {round:?}");
            whole += u32::from(round.missing.is_empty());
            named += u32::from(!round.missing.is_empty());
        }
    }
    assert!(whole > 10 && named > 10, "{whole} {named}");
}
