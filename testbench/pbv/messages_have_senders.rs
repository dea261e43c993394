//! Who may say what to an engine: every message from everybody, of every run, in every state of a context, against the rules of
//! the documents written down here once more. What is refused changes no register, and its sender alone is told (B-CE-3, B-ERR-4).

use watershed::arith::{DType, Flags, Op};
use watershed::pbv::ce::{Hazard, Outgoing, Target};
use watershed::pbv::packet::{
    Body, ConfigRecord, Control, Groups, Header, InitRecord, Message, NO_DEVICE, Packet, Status,
};
use watershed::pbv::tables::{Owner, Owners};

use crate::share;
use crate::support::Bench;

/// The engine, and who is above it; where responses are forwarded, another engine expects its response.
const ME: u16 = 0x10;
const ABOVE: u16 = 0x00;
const COLLECTOR: u16 = 0x08;
/// Its table: two engines and three nodes, of which the second engine and the last node are not in the context.
const TABLE: [u16; 5] = [0x20, 0x21, 0x11, 0x12, 0x13];
const SWITCHES: u128 = 0b00011;
const PBV: u128 = 0b01101;
const CC: u16 = 7;
const RUN: u32 = 5;

/// What the rules know of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Initialised,
    Commanded,
    /// The engine below and node 0x12 have answered.
    Partly,
    Paused,
    /// All have answered: the response is under way.
    Waiting,
    /// The response is under way without node 0x11, for whom nobody waits any more.
    Closed,
    /// The result has come.
    Done,
    Stopped,
}

const STATES: [At; 8] =
    [At::Initialised, At::Commanded, At::Partly, At::Paused, At::Waiting, At::Closed, At::Done, At::Stopped];

fn header(message: Message, from: u16, run: u32) -> Header {
    let mut header = Header::new(message, from, ME, 0xc000);
    (header.cc_id, header.run, header.dmu_id) = (CC, run, 1);
    header.dtype = DType::U64;
    header.op = if message == Message::Control { Op::Barrier } else { Op::Sum };
    header.p_id = TABLE.iter().position(|&device| device == from).map_or(0, |entry| entry as u8);
    header
}

fn record() -> InitRecord {
    InitRecord { words: 2, above: ABOVE, collector: COLLECTOR, ..InitRecord::barrier(ME, PBV) }
}

fn initialise(from: u16, records: Vec<InitRecord>) -> Packet {
    Packet { header: header(Message::Initialisation, from, 0), body: Body::Initialisation(records) }
}

fn answer(message: Message, from: u16, run: u32) -> Packet {
    Packet::of(header(message, from, run), vec![u64::from(from), 1])
}

fn control(control: Control, from: u16, run: u32) -> Packet {
    Packet::bare(Header { control, ..header(Message::Control, from, run) })
}

fn bench_at(at: At) -> Bench {
    let mut bench = Bench::new(Hazard::Forward, &ConfigRecord::of(ME, TABLE.to_vec(), SWITCHES));
    let script = [
        initialise(ABOVE, vec![record()]),
        Packet::bare(header(Message::Command, ABOVE, RUN)),
        answer(Message::Partial, 0x20, RUN),
        answer(Message::Contribution, 0x12, RUN),
    ];
    let last = match at {
        At::Paused => vec![control(Control::Pause, ABOVE, RUN)],
        At::Stopped => vec![control(Control::Stop, ABOVE, RUN)],
        At::Closed => vec![control(Control::Close, ABOVE, RUN)],
        At::Waiting => vec![answer(Message::Contribution, 0x11, RUN)],
        At::Done => vec![
            answer(Message::Contribution, 0x11, RUN),
            Packet::of(header(Message::Satisfied, ABOVE, RUN), vec![7, 9]),
        ],
        At::Initialised | At::Commanded | At::Partly => Vec::new(),
    };
    let steps = match at {
        At::Initialised => 1,
        At::Commanded => 2,
        _ => 4,
    };
    for packet in script.iter().take(steps).chain(&last) {
        bench.give(packet);
        bench.rest();
    }
    assert_eq!(bench.refused, [], "{at:?}");
    bench.again()
}

/// The status with which a message is refused, by the rules; `None`: it is obeyed, answered or passed over.
fn rule(at: At, packet: &Packet) -> Option<Status> {
    let header = packet.header;
    if header.tlp.poisoned {
        return Some(Status::Poisoned);
    }
    if header.cc_id != CC {
        return Some(Status::UnknownContext);
    }
    let from = header.requester;
    let above = from == ABOVE || from == COLLECTOR;
    let seated = TABLE.get(usize::from(header.p_id)) == Some(&from);
    let below = seated && [0x20, 0x11, 0x12].contains(&from);
    let tracked = matches!(at, At::Initialised | At::Commanded | At::Partly | At::Paused);
    // The run that the context is in; before the first command it is in none.
    let present = if at == At::Initialised { 0 } else { RUN };
    let same = (header.op, header.dtype) == (Op::Sum, DType::U64);
    let answered = |device: u16| match at {
        At::Initialised | At::Commanded => false,
        At::Partly | At::Paused => device != 0x11,
        At::Waiting | At::Closed | At::Done | At::Stopped => true,
    };
    match header.message {
        Message::Control | Message::Satisfied if from != ABOVE => Some(Status::UnknownDevice),
        Message::Control if header.control == Control::Close && (header.run != present || !tracked) => {
            Some(Status::Duplicate)
        }
        Message::Satisfied => {
            let waits = matches!(at, At::Waiting | At::Closed) || header.error && tracked;
            (!waits || header.run != present).then_some(Status::Duplicate)
        }
        Message::Command if !above => Some(Status::UnknownDevice),
        Message::Command if at == At::Stopped => Some(Status::Inactive),
        Message::Command if !same => Some(Status::Mismatch),
        Message::Command => (at != At::Initialised && header.run < RUN).then_some(Status::Duplicate),
        Message::Retry | Message::Error if !above && !below => Some(Status::UnknownDevice),
        // One from above of a run whose command is not known here makes up for it; stopped, an engine knows of none.
        Message::Retry if above && at == At::Stopped && header.run >= RUN => Some(Status::Inactive),
        Message::Retry if above && !same && (header.run > present || at == At::Initialised && header.run == 0) => {
            Some(Status::Mismatch)
        }
        Message::Control | Message::Retry => None,
        Message::Error if header.is_about_set_up() || !matches!(packet.body, Body::Missing { .. }) => None,
        Message::Error if !below => Some(Status::UnknownDevice),
        Message::Error if header.status == Status::Ok => Some(Status::Mismatch),
        Message::Error => (!tracked || answered(from) || header.run != present).then_some(Status::Duplicate),
        Message::Contribution | Message::Partial | Message::Failure => {
            let engine = from == 0x20;
            let words = packet.words().len();
            let whole = words == 2 || words == 0 && (header.error || header.message == Message::Failure);
            // The source's own may be the first of its run that comes.
            let begins = from == header.dmu_id
                && header.run == present + 1
                && matches!(at, At::Initialised | At::Commanded | At::Done);
            let late = header.run != present || !tracked || answered(from);
            if at == At::Stopped {
                Some(Status::Inactive)
            } else if !below {
                Some(Status::UnknownDevice)
            } else if engine != (header.message == Message::Partial) {
                Some(Status::WrongType)
            } else if !same {
                Some(Status::Mismatch)
            } else if !whole {
                Some(Status::BadLength)
            } else {
                (late && !begins).then_some(Status::Duplicate)
            }
        }
        _ => Some(Status::WrongType),
    }
}

/// Gives a message to an engine and looks at what came of it, against what has to.
fn hold(at: At, ready: &Bench, packet: &Packet, due: Option<Status>) -> Bench {
    let mut bench = ready.again();
    let before = format!("{:?}", bench.ce.find(CC));
    bench.give(packet);
    bench.rest();
    let header = packet.header;
    let what = format!("{at:?}: {header:?} {:?}", packet.body);
    assert_eq!(bench.refused, due.into_iter().collect::<Vec<_>>(), "{what}");
    let Some(status) = due else {
        if header.message == Message::Error {
            climbs(&bench, packet, &what);
            let noted = matches!(packet.body, Body::Missing { .. }) && !header.is_about_set_up();
            assert_eq!(format!("{:?}", bench.ce.find(CC)) != before, noted, "{what}");
        }
        if header.message == Message::Retry && ![ABOVE, COLLECTOR].contains(&header.requester) {
            // Who is below gets the result of that run, if there is one.
            let told: Vec<_> =
                bench.sent.iter().map(|out| (out.packet.header.message, out.packet.header.run)).collect();
            let due = if at == At::Done && header.run == RUN { vec![(Message::Satisfied, RUN)] } else { vec![] };
            assert_eq!(told, due, "{what}");
            let seat = Target::Entries { pbv: 1 << header.p_id, skip: NO_DEVICE };
            assert!(bench.sent.iter().all(|out| out.target == seat && out.packet.words() == [7, 9]), "{what}");
        }
        let again = header.message == Message::Command && header.run == RUN;
        if again && !matches!(at, At::Initialised | At::Stopped) {
            assert_eq!(format!("{:?}", bench.ce.find(CC)), before, "the same command once more: {what}");
        }
        return bench;
    };
    assert_eq!(format!("{:?}", bench.ce.find(CC)), before, "it changes nothing: {what}");
    let silent = header.posted || header.message == Message::Error;
    assert_eq!(bench.sent.len(), usize::from(!silent), "{what}: {:?}", bench.sent);
    for out in &bench.sent {
        let told = out.packet.header;
        assert_eq!((told.message, told.status, told.device), (Message::Error, status, header.requester), "{what}");
        assert_eq!((told.run, told.cc_id), (header.run, header.cc_id), "{what}");
        // A retry from above that makes up for a command is refused as one.
        let as_command = header.message == Message::Retry && [ABOVE, COLLECTOR].contains(&header.requester);
        let refused = if as_command && status != Status::Poisoned && status != Status::UnknownContext {
            Message::Command
        } else {
            header.message
        };
        assert_eq!(told.p_count, u16::from(refused.number()), "{what}: it says which message was refused");
    }
    bench
}

/// What an engine below says about its set-up goes on to the source, by way of who commands here; no other error goes anywhere.
fn climbs(bench: &Bench, packet: &Packet, what: &str) {
    let from = packet.header;
    if from.requester != 0x20 || !from.is_about_set_up() {
        assert!(bench.sent.is_empty() && bench.missing.is_empty(), "{what}: {:?}", bench.sent);
        return;
    }
    let [out] = &bench.sent[..] else { panic!("{what}: {:?}", bench.sent) };
    let told = out.packet.header;
    assert_eq!((told.message, told.status, told.device, told.run), (Message::Error, from.status, ABOVE, from.run));
    assert!(told.is_about_set_up(), "{what}");
    let named = match &packet.body {
        Body::Missing { devices, .. } => devices.clone(),
        _ => vec![0x20],
    };
    assert_eq!(out.packet.body, Body::Missing { pbv: 0, devices: named.clone() }, "{what}");
    let noted: Vec<_> = named.into_iter().map(|device| (CC, device, from.status)).collect();
    assert_eq!(bench.missing, noted, "{what}: the failure point's register");
}

/// Everybody who may send a frame: those above, those below in the context and not, a device that nobody knows.
const SENDERS: [u16; 8] = [ABOVE, COLLECTOR, 0x20, 0x21, 0x11, 0x12, 0x13, 0x77];

fn variants(message: Message, from: u16, run: u32) -> Vec<Packet> {
    let plain = header(message, from, run);
    let words = |header: Header, count: u64| Packet::of(header, (1..=count).collect());
    match message {
        Message::Control => Control::ALL.iter().map(|&of| control(of, from, run)).collect(),
        Message::Error => {
            let mut all = Vec::new();
            for status in [Status::TimedOut, Status::Ok, Status::Duplicate, Status::StoreFull] {
                let header = Header { status, error: true, ..plain };
                all.push(Packet { header, body: Body::Missing { pbv: 1, devices: vec![0x23] } });
                all.push(Packet::bare(header));
            }
            all
        }
        Message::Satisfied => {
            let wrong = Header { error: true, status: Status::TimedOut, ..plain };
            vec![words(plain, 2), words(wrong, 2), Packet::bare(wrong)]
        }
        Message::Contribution | Message::Partial | Message::Failure => {
            let failed = Header { error: true, status: Status::Failed, ..plain };
            let mut all = vec![Packet::bare(failed)];
            if message != Message::Failure {
                all.extend([
                    words(plain, 2),
                    words(plain, 1),
                    words(plain, 3),
                    words(plain, 0),
                    words(failed, 2),
                    words(failed, 1),
                ]);
                // The seat of another, and one that nobody has.
                all.extend([3, 2, 99].map(|p_id| words(Header { p_id, ..plain }, 2)));
            }
            all
        }
        _ => vec![Packet::bare(plain)],
    }
}

/// One in five of all frames in `make test`.
#[test]
fn every_message_in_every_state_is_admitted_by_the_rules() {
    let (mut refused, mut obeyed, mut case) = ([0; 16], 0, 0_u32);
    let part = if share::is_whole() { 1 } else { 5 };
    for at in STATES {
        let ready = bench_at(at);
        for &message in Message::ALL {
            // What is set up anew has its own rules; data for everybody may come at any time.
            if matches!(message, Message::Initialisation | Message::Multicast | Message::Configuration) {
                continue;
            }
            for from in SENDERS {
                for run in [0, RUN - 1, RUN, RUN + 1] {
                    for packet in variants(message, from, run) {
                        let changes: [&dyn Fn(&mut Header); 7] = [
                            &|_| (),
                            &|header| header.tlp.poisoned = true,
                            &|header| header.cc_id = 0x123,
                            &|header| header.posted = true,
                            &|header| header.op = Op::Max,
                            &|header| header.dtype = DType::I64,
                            &|header| header.dmu_id = header.requester,
                        ];
                        for change in changes {
                            case += 1;
                            if !case.is_multiple_of(part) {
                                continue;
                            }
                            let mut packet = packet.clone();
                            change(&mut packet.header);
                            if message == Message::Control {
                                packet.header.op = Op::Barrier;
                            }
                            // A posted command begins nothing; it is passed on.
                            if packet.header.posted && message == Message::Command {
                                continue;
                            }
                            let due = rule(at, &packet);
                            hold(at, &ready, &packet, due);
                            match due {
                                Some(status) => refused[usize::from(status.number())] += 1,
                                None => obeyed += 1,
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(obeyed > share::of(10, 1000), "{obeyed}");
    for status in [
        Status::Duplicate,
        Status::UnknownContext,
        Status::UnknownDevice,
        Status::WrongType,
        Status::Poisoned,
        Status::BadLength,
        Status::Inactive,
        Status::Mismatch,
    ] {
        assert!(refused[usize::from(status.number())] > share::of(10, 50), "{status}: {refused:?}");
    }
}

/// Set-up frames with one thing wrong, and the answers.
fn wrong_set_ups() -> Vec<(Packet, Status)> {
    let group = |op: Op, first: u16| {
        let record = InitRecord { words: 0, groups: Some(Groups { first, count: 2 }), ..record() };
        let mut packet = initialise(ABOVE, vec![record]);
        packet.header.op = op;
        packet
    };
    let of = |record: InitRecord| initialise(ABOVE, vec![record]);
    let unknown = PBV | 1 << 40;
    vec![
        // A record for another engine alone.
        (of(InitRecord { device: 0x20, ..record() }), Status::UnknownDevice),
        // A participant, and a receiver, without an entry in the table.
        (of(InitRecord { pbv: unknown, down: unknown, p_count: 4, ..record() }), Status::UnknownDevice),
        (of(InitRecord { down: unknown, ..record() }), Status::UnknownDevice),
        (of(InitRecord { words: 0, ..record() }), Status::BadLength),
        // Groups of a sum; groups that begin behind this context, or end before it.
        (of(InitRecord { groups: Some(Groups { first: CC, count: 2 }), ..record() }), Status::Mismatch),
        (group(Op::Barrier, CC + 1), Status::Mismatch),
        (group(Op::Barrier, CC - 2), Status::Mismatch),
        // A master that waits for nobody and arms itself again.
        (of(InitRecord { pbv: 0, p_count: 0, master: true, rearm: true, ..record() }), Status::Mismatch),
    ]
}

/// Either alone is right: a master answers once, and an engine below is armed again by what comes from above.
#[test]
fn an_engine_that_waits_for_nobody_answers_a_multicast_at_most_once() {
    for (master, rearm) in [(false, true), (true, false), (false, false)] {
        let bench = Bench::new(Hazard::Forward, &ConfigRecord::of(ME, TABLE.to_vec(), SWITCHES));
        let record = InitRecord { pbv: 0, p_count: 0, master, rearm, answer_source: true, ..record() };
        let mut bench = hold(At::Initialised, &bench, &initialise(ABOVE, vec![record]), None);
        bench.give(&Packet::of(header(Message::Multicast, ABOVE, 1), vec![3, 4]));
        bench.rest();
        let satisfied = bench.sent.iter().filter(|out| out.packet.header.message == Message::Satisfied).count();
        assert_eq!(satisfied, usize::from(master), "master = {master}, rearm = {rearm}");
    }
}

#[test]
fn a_set_up_that_is_wrong_is_refused_stored_or_not() {
    for at in [None, Some(At::Commanded), Some(At::Partly), Some(At::Waiting), Some(At::Stopped)] {
        let ready = match at {
            Some(at) => bench_at(at),
            None => Bench::new(Hazard::Forward, &ConfigRecord::of(ME, TABLE.to_vec(), SWITCHES)),
        };
        for (packet, status) in wrong_set_ups() {
            hold(at.unwrap_or(At::Initialised), &ready, &packet, Some(status));
        }
        // The same with nothing wrong; and a barrier needs no words.
        hold(At::Initialised, &ready, &initialise(ABOVE, vec![record()]), None);
        for first in [CC, CC - 1] {
            let of = InitRecord { words: 0, groups: Some(Groups { first, count: 2 }), ..record() };
            let mut packet = initialise(ABOVE, vec![of]);
            packet.header.op = Op::Barrier;
            hold(At::Initialised, &ready, &packet, None);
        }
    }
}

#[test]
fn only_who_set_a_context_up_sets_it_up_again() {
    for at in STATES {
        let ready = bench_at(at);
        for from in SENDERS {
            let due = (from != ABOVE).then_some(Status::UnknownDevice);
            hold(at, &ready, &initialise(from, vec![record()]), due);
        }
    }
    // Nor may anybody else be the first where owners are named: the source, and the engine above it.
    let mut ready = Bench::new(Hazard::Forward, &ConfigRecord::of(ME, TABLE.to_vec(), SWITCHES));
    let owner = Owner { device: 1, through: ABOVE };
    ready.table.owners = Owners { table: None, contexts: Some([(CC, owner)].into()) };
    for from in SENDERS.into_iter().chain([1, NO_DEVICE]) {
        let due = (from != ABOVE && from != 1).then_some(Status::UnknownDevice);
        hold(At::Initialised, &ready, &initialise(from, vec![record()]), due);
    }
    let mut other = initialise(1, vec![record()]);
    other.header.cc_id = CC + 1;
    hold(At::Initialised, &ready, &other, Some(Status::UnknownDevice));
}

#[test]
fn a_set_up_again_begins_anew_with_what_it_brings() {
    for at in STATES {
        let mut bench = bench_at(at);
        let less = InitRecord { words: 1, pbv: 0b01100, down: 0b01100, p_count: 2, ..record() };
        bench.give(&initialise(ABOVE, vec![less]));
        bench.rest();
        bench.give(&Packet::bare(header(Message::Command, ABOVE, 9)));
        bench.rest();
        bench.sent.clear();
        for (from, word) in [(0x11, 40), (0x12, 2)] {
            bench.give(&Packet::of(header(Message::Contribution, from, 9), vec![word]));
            bench.rest();
        }
        let sent: Vec<_> = bench.sent.iter().map(|out| (out.packet.header.message, out.packet.words())).collect();
        assert_eq!(sent, [(Message::Partial, &[42][..])], "{at:?}: nothing is left of what was there");
        assert_eq!(bench.refused, [], "{at:?}");
    }
}

#[test]
fn what_an_engine_below_says_is_missing_climbs_with_the_partial() {
    let mut bench = bench_at(At::Commanded);
    let list = Header { status: Status::Failed, error: true, ..header(Message::Error, 0x20, RUN) };
    bench.give(&Packet { header: list, body: Body::Missing { pbv: 1, devices: vec![0x25, 0x23] } });
    bench.give(&Packet { header: list, body: Body::Missing { pbv: 1, devices: vec![0x24] } });
    bench.rest();
    assert!(bench.sent.is_empty(), "the engine answers for itself next");
    // A partial that says nothing of it makes it no better; what its unit raised climbs, too.
    let partial = Header { flags: Flags::INEXACT, ..header(Message::Partial, 0x20, RUN) };
    bench.give(&Packet::of(partial, vec![1, 2]));
    for from in [0x11, 0x12] {
        bench.give(&answer(Message::Contribution, from, RUN));
    }
    bench.rest();
    let [missing, partial] = &bench.sent[..] else { panic!("{:?}", bench.sent) };
    assert_eq!(missing.packet.body, Body::Missing { pbv: 0, devices: vec![0x23, 0x24, 0x25] });
    assert_eq!((missing.packet.header.device, missing.packet.header.status), (ABOVE, Status::Failed));
    assert_eq!((partial.packet.header.error, partial.packet.words()), (true, &[1 + 0x11 + 0x12, 4][..]));
    assert_eq!((partial.packet.header.status, partial.packet.header.flags), (Status::Failed, Flags::INEXACT));
}

#[test]
fn where_errors_are_not_reported_refusals_are_counted_alone() {
    let mut ready = bench_at(At::Partly);
    ready.table.report_errors = false;
    for (packet, status) in [
        (answer(Message::Contribution, 0x12, RUN), Status::Duplicate),
        (answer(Message::Contribution, 0x77, RUN), Status::UnknownDevice),
        (Packet::bare(header(Message::Command, 0x77, RUN)), Status::UnknownDevice),
        (initialise(0x77, vec![record()]), Status::UnknownDevice),
    ] {
        let mut bench = ready.again();
        bench.table.report_errors = false;
        bench.give(&packet);
        bench.rest();
        assert_eq!((&bench.refused[..], bench.sent.len()), (&[status][..], 0), "{:?}", packet.header);
    }
}

/// A context whose count is lower than its bits, which no frame can set up, takes no more answers than it counts.
#[test]
fn an_answer_beyond_the_count_is_refused_with_its_own_status() {
    let mut bench = Bench::new(Hazard::Forward, &ConfigRecord::of(ME, TABLE.to_vec(), SWITCHES));
    bench.give(&initialise(ABOVE, vec![InitRecord { p_count: 1, ..record() }]));
    // A command counts the bits itself; a reset loads what is stored.
    bench.give(&control(Control::Reset, ABOVE, RUN));
    bench.give(&answer(Message::Contribution, 0x11, RUN));
    bench.give(&answer(Message::Contribution, 0x12, RUN));
    bench.rest();
    assert_eq!(bench.refused, [Status::CountZero]);
}

/// Answers around the cycle in which the time is over, while words of others are still being added: each is in the sum, or
/// refused and named, and never both.
#[test]
fn an_answer_at_the_end_of_the_time_is_summed_or_named() {
    let (mut summed, mut named, mut refused) = (0, 0, 0);
    for late in 0..60 {
        let table = ConfigRecord { timeout: 60, ..ConfigRecord::of(ME, TABLE.to_vec(), SWITCHES) };
        let mut bench = Bench::new(Hazard::Forward, &table);
        bench.give(&initialise(ABOVE, vec![InitRecord { words: 30, ..record() }]));
        bench.rest();
        let begun = bench.now;
        bench.give(&Packet::bare(header(Message::Command, ABOVE, RUN)));
        let of = |message, from| Packet::of(header(message, from, RUN), vec![u64::from(from); 30]);
        while bench.now < begun + 45 {
            bench.tick(None);
        }
        bench.give(&of(Message::Contribution, 0x12));
        bench.give(&of(Message::Partial, 0x20));
        bench.sent.clear();
        while bench.now < begun + 47 + late {
            bench.tick(None);
        }
        bench.give(&of(Message::Contribution, 0x11));
        for _ in 0..300 {
            bench.tick(None);
        }
        let partial = bench.sent.iter().find(|out| out.packet.header.message == Message::Partial).unwrap();
        let whole = partial.packet.words() == [0x20 + 0x12 + 0x11; 30];
        assert!(whole || partial.packet.words() == [0x20 + 0x12; 30], "{late}: {:?}", partial.packet);
        let missing = bench.missing.iter().any(|&(_, device, _)| device == 0x11);
        assert_eq!((whole, partial.packet.header.error), (!missing, missing), "{late}");
        let told = [Status::TimedOut, Status::Duplicate].iter().any(|status| bench.refused.contains(status));
        assert_eq!(told, missing, "{late}: {:?}", bench.refused);
        (summed, named) = (summed + u32::from(whole), named + u32::from(missing));
        refused += u32::from(bench.refused == [Status::TimedOut]);
    }
    assert!(summed > 0 && named > 20 && refused > 5, "{summed} {named} {refused}");
}

/// The source of a group asks whether all of it have arrived, for it may not have been told.
#[test]
fn a_group_that_is_complete_says_so_as_often_as_it_is_asked() {
    let mut bench = Bench::new(Hazard::Forward, &ConfigRecord::of(ME, TABLE.to_vec(), SWITCHES));
    let of = InitRecord {
        words: 0,
        master: true,
        above: NO_DEVICE,
        collector: NO_DEVICE,
        groups: Some(Groups { first: CC, count: 2 }),
        ..InitRecord::barrier(ME, 0b01100)
    };
    let plain = |message, from| Packet::bare(Header { op: Op::Barrier, ..header(message, from, RUN) });
    let mut set_up = initialise(1, vec![of]);
    set_up.header.op = Op::Barrier;
    for packet in [set_up, plain(Message::Command, 1)] {
        bench.give(&packet);
        bench.rest();
    }
    let arrived = |bench: &mut Bench| {
        bench.rest();
        let all = bench.sent.drain(..).map(|out| out.packet.header);
        all.filter(|told| (told.message, told.device, told.run) == (Message::Partial, 1, RUN)).count()
    };
    bench.give(&plain(Message::Contribution, 0x11));
    bench.give(&plain(Message::Command, 1));
    assert_eq!(arrived(&mut bench), 0, "not all are there");
    bench.give(&plain(Message::Contribution, 0x12));
    assert_eq!(arrived(&mut bench), 1);
    for _ in 0..3 {
        bench.give(&plain(Message::Command, 1));
        assert_eq!(arrived(&mut bench), 1);
    }
}

/// A frame whose records say that more of them lie below one than there are within the record around it.
#[test]
fn records_that_reach_out_of_the_one_above_are_no_frame() {
    let of = |device: u16, below: u16| InitRecord { device, below, ..record() };
    let read = |records: &[InitRecord]| {
        Packet::from_flits(&initialise(ABOVE, records.to_vec()).flits().unwrap()).map_err(|error| error.status())
    };
    for (records, right) in [
        (vec![of(ME, 1), of(0x20, 1), of(0x30, 0)], false),
        (vec![of(ME, 3), of(0x20, 1), of(0x30, 1), of(0x40, 0)], false),
        (vec![of(ME, 2), of(0x20, 2), of(0x30, 0)], false),
        (vec![of(ME, 3), of(0x20, 1), of(0x30, 0), of(0x21, 1)], false),
        (vec![of(ME, 4), of(0x20, 1), of(0x30, 0), of(0x21, 1), of(0x31, 0)], true),
        (vec![of(ME, 3), of(0x20, 2), of(0x30, 1), of(0x40, 0)], true),
        (vec![of(ME, 1), of(0x20, 0), of(0x30, 1), of(0x40, 0)], true),
    ] {
        let what = format!("{:?}", records.iter().map(|record| (record.device, record.below)).collect::<Vec<_>>());
        let packet = read(&records);
        assert_eq!(packet.is_ok(), right, "{what}");
        let Ok(packet) = packet else {
            assert_eq!(packet, Err(Status::BadLength), "{what}");
            continue;
        };
        // Everybody below gets the records that are below it.
        let table = ConfigRecord::of(ME, vec![0x20, 0x21, 0x11, 0x12], 0b11);
        let mut bench = Bench::new(Hazard::Forward, &table);
        let Body::Initialisation(mut records) = packet.body else { panic!("{what}") };
        (records[0].pbv, records[0].down, records[0].p_count) = (0b1111, 0b1111, 4);
        bench.give(&initialise(ABOVE, records.clone()));
        bench.rest();
        let mut at = 1;
        for out in &bench.sent {
            let Body::Initialisation(below) = &out.packet.body else { panic!("{what}") };
            if below[0].words == 2 && below[0].p_count > 0 {
                assert_eq!(below, &records[at..=at + usize::from(records[at].below)], "{what}");
                at += below.len();
            }
        }
        assert_eq!(at, 1 + usize::from(records[0].below), "{what}");
    }
}

#[test]
fn a_full_store_refuses_one_context_more_and_takes_it_when_there_is_room() {
    let mut bench = Bench::new(Hazard::Forward, &ConfigRecord::of(ME, TABLE.to_vec(), SWITCHES));
    let of = |cc_id: u16| {
        let mut packet = initialise(ABOVE, vec![record()]);
        packet.header.cc_id = cc_id;
        packet
    };
    let most = bench.ce.cfg().contexts;
    for cc_id in 0..most {
        bench.give(&of(cc_id));
        bench.rest();
    }
    assert_eq!(bench.refused, []);
    let before: Vec<String> = bench.ce.contexts().map(|context| format!("{context:?}")).collect();
    bench.give(&of(most));
    bench.rest();
    assert_eq!(bench.refused, [Status::StoreFull]);
    assert!(bench.ce.contexts().map(|context| format!("{context:?}")).eq(before), "the others stay as they are");
    let mut remove = control(Control::Remove, ABOVE, 0);
    remove.header.cc_id = 3;
    bench.give(&remove);
    bench.rest();
    bench.give(&of(most));
    bench.rest();
    assert_eq!(bench.refused, [Status::StoreFull]);
    assert!(bench.ce.find(3).is_none() && bench.ce.find(most).is_some());
}

#[test]
fn a_run_that_is_closed_is_an_error_whatever_the_frame_says() {
    for (status, told) in [(Status::Ok, Status::TimedOut), (Status::StoreFull, Status::StoreFull)] {
        let mut bench = bench_at(At::Partly);
        let mut close = control(Control::Close, ABOVE, RUN);
        close.header.status = status;
        bench.give(&close);
        bench.rest();
        let [missing, partial] = &bench.sent[..] else { panic!("{:?}", bench.sent) };
        assert_eq!(missing.packet.body, Body::Missing { pbv: 0b00100, devices: vec![0x11] });
        assert_eq!((partial.packet.header.message, partial.packet.header.error), (Message::Partial, true));
        assert_eq!(partial.packet.header.status, told, "{status}");
    }
}

/// Groups CC and CC + 1 of a barrier, the first over node 0x11, the second over 0x12.
fn groups(master: bool, commanded: bool) -> Bench {
    let mut bench = Bench::new(Hazard::Forward, &ConfigRecord::of(ME, TABLE.to_vec(), SWITCHES));
    for (cc_id, pbv) in [(CC, 0b00100), (CC + 1, 0b01000)] {
        let above = if master { NO_DEVICE } else { ABOVE };
        let groups = Some(Groups { first: CC, count: 2 });
        let record = InitRecord { master, above, collector: above, groups, ..InitRecord::barrier(ME, pbv) };
        let from = if master { 1 } else { ABOVE };
        let mut all = vec![initialise(from, vec![record])];
        if cc_id == CC || commanded {
            all.push(Packet::bare(header(Message::Command, from, RUN)));
        }
        for mut packet in all {
            (packet.header.op, packet.header.cc_id) = (Op::Barrier, cc_id);
            bench.give(&packet);
            bench.rest();
        }
    }
    bench.again()
}

#[test]
fn a_group_is_let_go_once_by_its_master_alone_after_its_command() {
    let give = |bench: &mut Bench, message, from, cc_id| {
        let mut packet = Packet::bare(Header { op: Op::Barrier, ..header(message, from, RUN) });
        packet.header.cc_id = cc_id;
        bench.give(&packet);
        bench.rest();
    };
    let let_go = |bench: &mut Bench| {
        // The source of a group is told again when it asks; nobody else is.
        let below = |out: &Outgoing| out.packet.header.message == Message::Satisfied && out.target != Target::Header;
        bench.sent.drain(..).filter(below).map(|out| out.packet.header.cc_id).collect::<Vec<_>>()
    };
    // The first group is there: the second one goes on, once, whatever comes behind.
    let mut bench = groups(true, true);
    give(&mut bench, Message::Contribution, 0x11, CC);
    assert_eq!(let_go(&mut bench), [CC + 1]);
    give(&mut bench, Message::Command, 1, CC + 1);
    give(&mut bench, Message::Command, 1, CC);
    assert_eq!(let_go(&mut bench), [0; 0]);
    give(&mut bench, Message::Contribution, 0x12, CC + 1);
    assert_eq!(let_go(&mut bench), [CC]);
    // Not before its command.
    let mut bench = groups(true, false);
    give(&mut bench, Message::Contribution, 0x11, CC);
    assert_eq!(let_go(&mut bench), [0; 0]);
    give(&mut bench, Message::Command, 1, CC + 1);
    assert_eq!(let_go(&mut bench), [CC + 1]);
    // Not if it was stopped.
    let mut bench = groups(true, true);
    let mut stop = control(Control::Stop, 1, RUN);
    stop.header.cc_id = CC + 1;
    bench.give(&stop);
    give(&mut bench, Message::Contribution, 0x11, CC);
    assert_eq!(let_go(&mut bench), [0; 0]);
    // And not by an engine below.
    let mut bench = groups(false, true);
    give(&mut bench, Message::Contribution, 0x11, CC);
    give(&mut bench, Message::Contribution, 0x12, CC + 1);
    assert_eq!(let_go(&mut bench), [0; 0]);
}
