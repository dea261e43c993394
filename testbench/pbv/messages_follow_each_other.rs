//! Every message of the protocol behind every other one, so many cycles apart, through the whole collective engine: the
//! tracking pipeline, the reduction unit and the context store. What comes of two messages is what comes of them one long
//! after the other (B-CE-3, B-CE-8); what is under way when a run ends stays out of the next.

use std::path::Path;

use crate::share;
use crate::support::Bench;
use watershed::arith::{DType, Op};
use watershed::pbv::ce::{Hazard, Outgoing, State, Track};
use watershed::pbv::packet::{Body, ConfigRecord, Control, Header, InitRecord, Message, NO_DEVICE, Packet, Status};
use watershed::scenario::load_text;
use watershed::scenario::run::RunOptions;

/// The engine: device 0x10 with nodes 0x11 and 0x12 and the engine 0x20 below it.
const ME: u16 = 0x10;
const CC: u16 = 7;

/// Its table: the engine below first.
fn bench(hazard: Hazard) -> Bench {
    Bench::new(hazard, &ConfigRecord::of(ME, vec![0x20, 0x11, 0x12], 1))
}

/// What came of messages: what was sent, refusals, the context.
fn came(mut bench: Bench) -> Came {
    bench.refused.sort();
    Came(bench.sent, bench.refused, bench.ce.find(CC).map(|context| (context.state, context.track)))
}

#[derive(Debug)]
struct Came(Vec<Outgoing>, Vec<Status>, Option<(State, Track)>);

impl PartialEq for Came {
    /// Messages may have any order.
    fn eq(&self, other: &Came) -> bool {
        let mut rest = other.0.clone();
        let mut found = |message: &Outgoing| {
            let at = rest.iter().position(|other| other == message)?;
            Some(rest.swap_remove(at))
        };
        self.0.iter().all(|message| found(message).is_some())
            && rest.is_empty()
            && (&self.1, self.2) == (&other.1, other.2)
    }
}

/// Who is above, as a subservient engine or the master.
#[derive(Clone, Copy)]
struct Role {
    above: u16,
    master: bool,
}

fn header(message: Message, from: u16, run: u32) -> Header {
    let mut header = Header::new(message, from, ME, 0xc000);
    (header.cc_id, header.run, header.op, header.dtype, header.dmu_id) = (CC, run, Op::Sum, DType::U64, 1);
    header.p_id = [0x20, 0x11, 0x12].iter().position(|&device| device == from).unwrap_or(0) as u8;
    header
}

fn initialise(role: Role) -> Packet {
    let record = InitRecord {
        words: 2,
        master: role.master,
        rearm: role.master,
        initial: role.master.then_some(1000),
        above: if role.master { NO_DEVICE } else { role.above },
        collector: if role.master { NO_DEVICE } else { role.above },
        ..InitRecord::barrier(ME, 0b111)
    };
    Packet { header: header(Message::Initialisation, role.above, 0), body: Body::Initialisation(vec![record]) }
}

fn answer(message: Message, from: u16, run: u32) -> Packet {
    Packet::of(header(message, from, run), vec![u64::from(from), u64::from(run)])
}

/// Every message, from those who may send it and from a stranger, of the present run and the next.
fn messages(role: Role) -> Vec<Packet> {
    let mut all = vec![initialise(role)];
    for run in [1, 2] {
        for from in [role.above, 0x77] {
            for &control in Control::ALL {
                let header = Header { control, op: Op::Barrier, ..header(Message::Control, from, run) };
                all.push(Packet::bare(header));
            }
            all.push(Packet::bare(header(Message::Command, from, run)));
            all.push(Packet::bare(header(Message::Retry, from, run)));
            all.push(answer(Message::Satisfied, from, run));
            let error = Header { error: true, status: Status::TimedOut, ..header(Message::Satisfied, from, run) };
            all.push(Packet::bare(error));
        }
        all.push(answer(Message::Contribution, 0x11, run));
        all.push(answer(Message::Contribution, 0x12, run));
        all.push(answer(Message::Partial, 0x20, run));
        all.push(answer(Message::Multicast, role.above, run + 2));
        all.push(Packet::bare(header(Message::Failure, 0x11, run)));
        all.push(Packet::bare(header(Message::Retry, 0x11, run)));
        for status in [Status::TimedOut, Status::Ok, Status::StoreFull] {
            let header = Header { status, error: true, ..header(Message::Error, 0x20, run) };
            all.push(Packet { header, body: Body::Missing { pbv: 1, devices: vec![0x21] } });
        }
    }
    all.push(Packet::bare(header(Message::ReadReply, 0x11, 1)));
    all
}

/// What came before: nothing but the initialisation, the command, all answers but one, all answers, the result.
fn before(role: Role, step: usize) -> Vec<Packet> {
    let all = [
        initialise(role),
        Packet::bare(header(Message::Command, role.above, 1)),
        answer(Message::Contribution, 0x12, 1),
        answer(Message::Partial, 0x20, 1),
        answer(Message::Contribution, 0x11, 1),
        answer(Message::Satisfied, role.above, 1),
    ];
    let steps = [1, 2, 4, 5, 6][step];
    all.into_iter().take(if role.master { steps.min(5) } else { steps }).collect()
}

/// One pair in five in `make test`: every message is the first of some and the second of some after each of what came before.
fn pairs(role: Role, hazard: Hazard) {
    let all = messages(role);
    let (mut count, mut answered) = (0, 0);
    let ready = [0, 1, 2, 3, 4].map(|step| {
        let mut ready = bench(hazard);
        for packet in before(role, step) {
            ready.give(&packet);
            ready.rest();
        }
        ready
    });
    let pairs = all.len() * all.len();
    for case in share::one_in(5, 0..ready.len() * pairs) {
        let step = case / pairs;
        let (first, second) = (&all[case % pairs / all.len()], &all[case % all.len()]);
        let of = |gap: u64| {
            let mut bench = ready[step].again();
            bench.give(first);
            for _ in 0..gap {
                bench.tick(None);
            }
            bench.give(second);
            for _ in 0..24 {
                bench.tick(None);
            }
            assert!(bench.ce.is_idle());
            came(bench)
        };
        let far = of(24);
        answered += u64::from(!far.0.is_empty());
        for gap in 0..6 {
            assert_eq!(
                of(gap),
                far,
                "{:?} of run {} from {:#x}, then {:?} of run {} from {:#x} {gap} cycles later, after {step}",
                first.header.message,
                first.header.run,
                first.header.requester,
                second.header.message,
                second.header.run,
                second.header.requester,
            );
            count += 1;
        }
    }
    let least = share::of(5, 50_000);
    assert!(count > least && answered > share::of(8, 2000), "{count} pairs, {answered} with messages out");
}

#[test]
fn every_pair_at_a_lower_engine_is_as_if_far_apart() {
    pairs(Role { above: 0, master: false }, Hazard::Forward);
}

#[test]
fn every_pair_at_a_master_armed_again_is_as_if_far_apart() {
    pairs(Role { above: 1, master: true }, Hazard::Forward);
}

#[test]
fn every_pair_with_an_interlock_is_as_if_far_apart() {
    pairs(Role { above: 0, master: false }, Hazard::Interlock);
}

/// A contribution that is being tracked when the time of its run is over belongs to that run, which has ended without it.
#[test]
fn what_is_tracked_when_a_run_ends_stays_out_of_the_next() {
    let mut late_runs = 0;
    for rearm in [true, false] {
        for late in 150..200 {
            let text = format!(
                "family = \"pbv\"\n[topology]\nkind = \"mesh\"\nsize = [1]\nconcentration = 2\n[pbv.setup]\n\
                 configuration = \"side-port\"\n[pbv.engine]\ntimeout_cycles = 200\n[[pbv.collective]]\nname = \"c0\"\n\
                 dtype = \"u64\"\nop = \"sum\"\ndata = {{ random = \"integers\" }}\nrounds = 3\nrearm = {rearm}\n\
                 start_cycle = 1500\ntask_cycles = 10\n[[pbv.collective.late]]\nend_point = 1\nround = 0\ncycles = {late}\n"
            );
            let loaded = load_text("race", &text, Path::new(""), "race", &[]).unwrap();
            let document = watershed::scenario::run::run(&loaded, &RunOptions::default()).unwrap().document;
            let failed: Vec<_> = document.checks.iter().filter(|check| !check.passed).collect();
            assert!(failed.is_empty(), "{late}: {failed:?}");
            let outcomes = document.pbv.unwrap().outcomes;
            assert_eq!(outcomes.silent + outcomes.open, 0, "{late}: {}", outcomes.words());
            assert_eq!(outcomes.rounds(), 3, "{late}");
            late_runs += outcomes.incomplete;
        }
    }
    assert!((10..100).contains(&late_runs), "{late_runs}: some come in time and some do not");
}

/// A command that comes again when its context is armed again is answered, and does not lead back to the run before.
#[test]
fn an_old_command_does_not_lead_a_context_that_is_armed_again_back() {
    let role = Role { above: 1, master: true };
    let mut bench = bench(Hazard::Forward);
    for packet in before(role, 4) {
        bench.give(&packet);
        bench.rest();
    }
    let of = |bench: &Bench| bench.ce.find(CC).map(|context| (context.state, context.track));
    let (armed, first) = (of(&bench), bench.sent.len());
    bench.give(&Packet::bare(header(Message::Command, role.above, 1)));
    bench.rest();
    assert_eq!(of(&bench), armed);
    // The source gets the answer of that run once more, and nobody else gets anything.
    assert_eq!(bench.sent.len(), first + 1);
    let again = &bench.sent[first].packet;
    assert_eq!((again.header.message, again.header.run, again.header.device), (Message::Satisfied, 1, role.above));
    bench.give(&answer(Message::Contribution, 0x11, 2));
    bench.rest();
    assert_eq!(bench.ce.find(CC).unwrap().track.p_count, 2, "the second run goes on");
}
