//! What is wrong gets its defined answer and is counted, and other contexts do not notice: not a bit, not a cycle
//! (B-ERR-1 to B-ERR-4); the state machine of a context (B-CE-8); multicasts (B-HI-5); registers read in band (B-STR-2).

use std::path::Path;

use crate::support::{Lab, SET_UP};
use watershed::arith::{DType, Op};
use watershed::pbv::node::{Part, SendCondition, TaskTime, missing};
use watershed::pbv::packet::{Body, Control, Header, Message, Packet, Status};
use watershed::pbv::plan::{Branch, Collective};
use watershed::pbv::system::{Spec, System, engine, node, run};
use watershed::scenario::load_text;
use watershed::scenario::result::Outcome;
use watershed::scenario::run::{RunOptions, run as run_scenario};

fn sum() -> Collective {
    let tree = Branch::leaf(0, [1, 2]).over([Branch::leaf(0x10, [0x11, 0x12])]);
    Collective::all_reduce(2, 1, tree, Op::Sum, DType::I64, 2)
}

fn lab(collective: &Collective) -> Lab {
    let mut spec = Spec::regular(2, 3, 0x10, vec![(0, 1)]);
    spec.log = true;
    let mut lab = Lab::new(spec, std::slice::from_ref(collective));
    lab.set_up(std::slice::from_ref(collective));
    lab
}

/// Frames with one thing wrong, from node 0x13, which takes no part, and the answer each gets.
fn wrong(lab: &Lab, collective: &Collective) -> Vec<(Packet, Status)> {
    let like = Header { requester: 0x13, run: 1, ..collective.like(0x11, &lab.tables) };
    let frame = |change: &dyn Fn(&mut Header)| {
        let mut header = like;
        change(&mut header);
        Packet::of(header, vec![1, 2])
    };
    vec![
        (frame(&|_| ()), Status::UnknownDevice),
        (frame(&|h| h.cc_id = 0x123), Status::UnknownContext),
        (frame(&|h| h.tlp.poisoned = true), Status::Poisoned),
        (frame(&|h| h.p_id = 99), Status::UnknownDevice),
        (frame(&|h| h.message = Message::ReadReply), Status::WrongType),
        (frame(&|h| h.device = 0x7777), Status::UnknownDevice),
        (frame(&|h| h.message = Message::Satisfied), Status::UnknownDevice),
        (frame(&|h| (h.message, h.offset) = (Message::Write, 0xc3fc)), Status::BadAddress),
    ]
}

#[test]
fn every_wrong_frame_has_its_answer_and_its_counter() {
    let collective = sum();
    let mut lab = lab(&collective);
    let frames = wrong(&lab, &collective);
    let wanted: Vec<Status> = frames
        .iter()
        .filter(|(frame, _)| frame.header.message != Message::ReadReply)
        .map(|&(_, status)| status)
        .collect();
    let count = |status: Status| frames.iter().filter(|frame| frame.1 == status).count() as u32;
    lab.send(0x13, SendCondition::At(SET_UP), frames.iter().map(|(frame, _)| frame.clone()));
    let system = lab.run();
    let got: Vec<Status> = node(&system, 0x13).mail().iter().map(|(_, frame)| frame.header.status).collect();
    let sorted = |mut all: Vec<Status>| {
        all.sort();
        all
    };
    assert_eq!(sorted(got), sorted(wanted));
    for &status in Status::ALL {
        assert_eq!(
            engine(&system, 0x10).read(0x180 + 4 * u16::from(status.number())).unwrap(),
            count(status),
            "{status}"
        );
    }
}

/// A sum after SET_UP, with or without a lot of wrong frames at another engine's context at the same time.
#[test]
fn wrong_length_operation_and_round_are_refused_and_the_sum_is_right() {
    let collective = sum();
    let mut lab = lab(&collective);
    lab.join(&collective, |device| (vec![u64::from(device), 1], TaskTime::Fixed(400)));
    let like = Header { run: 1, ..collective.like(0x11, &lab.tables) };
    let like = Header { requester: 0x11, ..like };
    let wrong = [
        (Packet::of(like, vec![1]), Status::BadLength),
        (Packet::of(Header { op: Op::Max, ..like }, vec![1, 2]), Status::Mismatch),
        (Packet::of(Header { run: 0, ..like }, vec![1, 2]), Status::Duplicate),
    ];
    lab.send(0x11, SendCondition::At(SET_UP + 150), wrong.iter().map(|(frame, _)| frame.clone()));
    // The right one comes after its task; then once more.
    lab.send(0x11, SendCondition::Received(3), [Packet::of(like, vec![0x11, 1]), Packet::of(like, vec![0x11, 1])]);
    lab.send(1, SendCondition::At(SET_UP), [collective.command(1)]);
    let system = lab.run();
    let got: Vec<Status> = node(&system, 0x11).mail().iter().map(|(_, frame)| frame.header.status).collect();
    assert_eq!(got, [Status::BadLength, Status::Mismatch, Status::Duplicate, Status::Duplicate, Status::Duplicate]);
    for device in collective.tree.participants() {
        assert_eq!(node(&system, device).outcomes(2)[0].words, [1 + 2 + 0x11 + 0x12, 4]);
    }
}

fn with_timeouts(retries: u8, dead: &[u16], late: &[u16]) -> (Collective, System) {
    let collective = sum();
    let mut lab = lab(&collective);
    for (device, record) in &mut lab.tables.engines {
        // The master waits three times as long, so that the engine below can ask again first (B-ERR-1).
        (record.timeout, record.retries) = (if device.0 == 0 { 3000 } else { 1000 }, retries);
    }
    for node in std::mem::take(&mut lab.nodes).into_keys() {
        lab.nodes.insert(node, watershed::pbv::Node::new(node));
    }
    lab.set_up(std::slice::from_ref(&collective));
    lab.join(&collective, |device| {
        let task = if dead.contains(&device) {
            TaskTime::Never
        } else {
            TaskTime::Fixed(if late.contains(&device) { 1500 } else { 10 })
        };
        (vec![1 << (device & 0xf), 1], task)
    });
    lab.send(1, SendCondition::At(SET_UP), [collective.command(1)]);
    let mut system = lab.build();
    run(&mut system, 1_000_000).unwrap();
    (collective, system)
}

#[test]
fn a_dead_node_is_named_to_the_source_and_the_others_get_an_error_with_the_partial_sum() {
    for dead in [&[0x12u16][..], &[2], &[0x11, 0x12], &[2, 0x11]] {
        let (collective, system) = with_timeouts(1, dead, &[]);
        let mut named = missing(node(&system, 1));
        named.sort_unstable();
        assert_eq!(named, dead);
        for device in collective.tree.participants() {
            let outcome = &node(&system, device).outcomes(2)[0];
            assert_eq!(outcome.error, Some(Status::TimedOut), "{device:#x}");
            let alive = collective.tree.participants().into_iter().filter(|device| !dead.contains(device));
            let sum: u64 = alive.clone().map(|device| 1 << (device & 0xf)).sum();
            assert_eq!(outcome.words, [sum, alive.count() as u64]);
        }
        // The status registers show the failure point.
        let at = if dead[0] == 2 { 0 } else { 0x10 };
        let register = engine(&system, at).read(0x140).unwrap();
        assert!(dead.contains(&(register as u16)), "{register:#x}");
        assert_eq!(engine(&system, at).read(0x144).unwrap(), u32::from(Status::TimedOut.number()));
    }
}

/// A contribution that is right but for where it goes is in nobody's sum.
#[test]
fn a_frame_for_another_device_or_engine_is_not_taken() {
    for (device, offset, status) in [(0x7777, 0xc000, Status::UnknownDevice), (0x10, 0xc400, Status::BadAddress)] {
        let collective = sum();
        let mut lab = lab(&collective);
        for (at, record) in &mut lab.tables.engines {
            record.timeout = if at.0 == 0 { 6000 } else { 2000 };
        }
        let frames = lab.tables.frames(1);
        lab.send(1, SendCondition::At(SET_UP * 3 / 4), frames);
        lab.join(&collective, |device| {
            (vec![1 << (device & 0xf), 1], if device == 0x11 { TaskTime::Never } else { TaskTime::Fixed(10) })
        });
        let like = Header { requester: 0x11, run: 1, device, offset, ..collective.like(0x11, &lab.tables) };
        lab.send(0x11, SendCondition::At(SET_UP + 200), [Packet::of(like, vec![2, 1])]);
        lab.send(1, SendCondition::At(SET_UP), [collective.command(1)]);
        let mut system = lab.build();
        run(&mut system, 1_000_000).unwrap();
        assert_eq!(missing(node(&system, 1)), [0x11], "{status}");
        for device in [1, 2, 0x12] {
            let outcome = &node(&system, device).outcomes(2)[0];
            assert_eq!((outcome.error, &outcome.words[..]), (Some(Status::TimedOut), &[2 + 4 + 4, 3][..]), "{status}");
        }
        let answers: Vec<Status> = node(&system, 0x11).mail().iter().map(|(_, frame)| frame.header.status).collect();
        assert_eq!(answers, [status]);
        assert_eq!(engine(&system, 0x10).read(0x180 + 4 * u16::from(status.number())).unwrap(), 1, "{status}");
    }
}

#[test]
fn a_late_node_is_asked_again_and_nothing_is_lost() {
    for late in [&[0x12u16][..], &[2, 0x11]] {
        let (collective, system) = with_timeouts(2, &[], late);
        for device in collective.tree.participants() {
            let outcome = &node(&system, device).outcomes(2)[0];
            assert_eq!((outcome.error, outcome.words.clone()), (None, vec![2 + 4 + 2 + 4, 4]), "{device:#x}");
        }
        assert!(missing(node(&system, 1)).is_empty());
    }
}

#[test]
fn a_context_can_be_paused_restarted_and_stopped() {
    let collective = Collective::barrier(3, 1, Branch::leaf(0, [1, 2]));
    let control = |control: Control| {
        let mut header = collective.header(Message::Control, 0);
        header.control = control;
        Packet::bare(header)
    };
    let outcome = |script: &[(u64, Control)]| {
        let mut lab = Lab::new(Spec::regular(1, 2, 0x10, Vec::new()), std::slice::from_ref(&collective));
        lab.set_up(std::slice::from_ref(&collective));
        lab.join(&collective, |_| (Vec::new(), TaskTime::Fixed(200)));
        lab.send(1, SendCondition::At(SET_UP), [collective.command(0)]);
        for &(at, what) in script {
            lab.send(1, SendCondition::At(SET_UP + at), [control(what)]);
        }
        let mut system = lab.build();
        run(&mut system, 1_000_000).unwrap();
        let statuses: Vec<Status> = node(&system, 2).mail().iter().map(|(_, frame)| frame.header.status).collect();
        (node(&system, 2).outcomes(3).first().map(|outcome| outcome.cycle - SET_UP), statuses)
    };
    let (plain, _) = outcome(&[]);
    assert!(plain.unwrap() < 300);
    let (paused, refused) = outcome(&[(100, Control::Pause), (900, Control::Restart)]);
    assert!((900..1000).contains(&paused.unwrap()), "{paused:?}");
    assert!(refused.is_empty(), "messages are tracked in a pause");
    assert_eq!(outcome(&[(100, Control::Pause)]).0, None);
    assert_eq!(outcome(&[(100, Control::Stop)]), (None, vec![Status::Inactive]));
    assert_eq!(outcome(&[(100, Control::Remove)]), (None, vec![Status::UnknownContext]));
    assert!(outcome(&[(100, Control::Inactivate), (150, Control::Activate)]).0.is_some());
}

#[test]
fn multicasts_reach_everybody_below_posted_or_acknowledged() {
    for posted in [true, false] {
        let collective = sum();
        let mut lab = lab(&collective);
        let mut header = collective.header(Message::Multicast, 0);
        (header.posted, header.run) = (posted, 1);
        lab.send(1, SendCondition::At(SET_UP), [Packet::of(header, vec![7, 8, 9])]);
        let system = lab.run();
        for device in [2, 0x11, 0x12] {
            let mail = node(&system, device).mail();
            assert_eq!((mail.len(), mail[0].1.words()), (1, &[7, 8, 9][..]), "{device:#x}");
        }
        assert!(node(&system, 3).mail().is_empty() && node(&system, 1).mail().is_empty());
        let acknowledged = engine(&system, 0x10).log.events().iter().any(|event| event.message == Message::Partial);
        assert_eq!(acknowledged, !posted);
    }
}

#[test]
fn registers_are_written_and_read_by_memory_mapped_frames() {
    let mut lab = Lab::new(Spec::regular(2, 2, 0x10, vec![(0, 1)]), &[]);
    let write = Header::new(Message::Write, 1, 0x10, 0xc100);
    let mut read = Header::new(Message::Read, 1, 0x10, 0xc100);
    (read.p_count, read.tag) = (3, 0x123);
    let frames = [Packet::of(write, vec![5000, 2, 1]), Packet::bare(read)];
    lab.send(1, SendCondition::Next, frames);
    let system = lab.run();
    let (_, answer) = &node(&system, 1).mail()[0];
    assert_eq!(answer.body, Body::Words(vec![5000, 2, 1]));
    assert_eq!((answer.header.message, answer.header.tag), (Message::ReadReply, 0x123));
    assert_eq!(engine(&system, 0x10).registers().table.timeout, 5000);
    assert_eq!(engine(&system, 0x00).registers().table.timeout, 0);
}

#[test]
fn poisoned_and_posted_frames_change_no_register() {
    let collective = sum();
    let mut lab = lab(&collective);
    let write = |offset: u16| Packet::of(Header::new(Message::Write, 1, 0x10, offset), vec![7]);
    let with = |mut packet: Packet, change: &dyn Fn(&mut Header)| {
        change(&mut packet.header);
        packet
    };
    let command = Header { requester: 1, device: 2, offset: 0, ..collective.command(1).header };
    let frames = [
        with(write(0xc100), &|header| header.tlp.poisoned = true),
        with(write(0xc3fc), &|header| header.posted = true),
        with(write(0xc3fc), &|_| ()),
        with(Packet::bare(command), &|header| header.tlp.poisoned = true),
    ];
    lab.send(1, SendCondition::At(SET_UP), frames);
    let system = lab.run();
    let answers: Vec<Status> = node(&system, 1).mail().iter().map(|(_, frame)| frame.header.status).collect();
    assert_eq!(answers, [Status::Poisoned, Status::BadAddress], "nobody answers what was posted");
    let counted = |status: Status| engine(&system, 0x10).read(0x180 + 4 * u16::from(status.number())).unwrap();
    assert_eq!((counted(Status::Poisoned), counted(Status::BadAddress)), (1, 2));
    assert_eq!(engine(&system, 0x10).read(0x100).unwrap(), 0, "the time-out is what it was");
    assert_eq!(node(&system, 2).refused()[usize::from(Status::Poisoned.number())], 1);
}

#[test]
fn other_contexts_do_not_notice() {
    // Context 2 over nodes 0x11, 0x12 of one engine; wrong frames and a dead context at the other engine's port.
    let quiet = Collective::barrier(2, 0x11, Branch::leaf(0x10, [0x11, 0x12]));
    let noisy = Collective::barrier(3, 1, Branch::leaf(0, [1, 2]));
    let both = [quiet.clone(), noisy.clone()];
    let end = |noise: bool| {
        let mut lab = Lab::new(Spec::regular(2, 3, 0x10, vec![(0, 1)]), &both);
        lab.set_up(&both);
        for collective in &both {
            for device in collective.tree.participants() {
                let task = if device == 2 && noise { TaskTime::Never } else { TaskTime::Fixed(100) };
                let part = Part::of(collective.like(device, &lab.tables), Vec::new(), task);
                lab.node(device).join(part);
            }
            lab.send(collective.source, SendCondition::At(SET_UP), [collective.command(1)]);
        }
        if noise {
            let bad = Header::new(Message::Contribution, 3, 0, 0xc000);
            lab.send(3, SendCondition::At(SET_UP), (0..50).map(|k| Packet::bare(Header { cc_id: k, ..bad })));
        }
        let mut system = lab.build();
        run(&mut system, 1_000_000).unwrap();
        [0x11, 0x12].map(|device| node(&system, device).outcomes(2).to_vec())
    };
    assert_eq!(end(false), end(true));
}

#[test]
fn a_node_that_fails_says_so_and_the_sum_of_the_others_is_marked() {
    for failing in [&[0x12u16][..], &[2], &[1], &[0x11, 0x12], &[1, 2, 0x11, 0x12]] {
        let collective = sum();
        let mut lab = lab(&collective);
        for device in collective.tree.participants() {
            let like = collective.like(device, &lab.tables);
            let mut part = Part::of(like, vec![1 << (device & 0xf), 1], TaskTime::Fixed(50));
            part.fails = failing.iter().filter(|&&fails| fails == device).map(|_| 2).collect();
            lab.node(device).join(part);
        }
        lab.send(1, SendCondition::At(SET_UP), [collective.command(1)]);
        for run in 2..=3 {
            lab.send(1, SendCondition::Satisfied(2, run - 1), [collective.command(run)]);
        }
        // No watchdog runs: the failure messages alone complete the second run.
        let system = lab.run();
        for device in collective.tree.participants() {
            let outcomes = node(&system, device).outcomes(2);
            assert_eq!(outcomes.len(), 3);
            for (run, outcome) in (1..).zip(outcomes) {
                let fails = |device: &u16| run == 2 && failing.contains(device);
                let there: Vec<u16> = collective.tree.participants().into_iter().filter(|d| !fails(d)).collect();
                let total: u64 = there.iter().map(|device| 1 << (device & 0xf)).sum();
                let error = (run == 2).then_some(Status::Failed);
                assert_eq!(outcome.error, error, "{device:#x} in run {run}");
                let words = if there.is_empty() { Vec::new() } else { vec![total, there.len() as u64] };
                assert_eq!(outcome.words, words, "{device:#x} in run {run}");
            }
        }
        let mut named = missing(node(&system, 1));
        named.sort_unstable();
        assert_eq!(named, failing);
        let sent = |device: u16| {
            let log = node(&system, device).log.events().iter();
            log.filter(|event| !event.received && event.message == Message::Failure).count()
        };
        assert!(collective.tree.participants().into_iter().all(|d| sent(d) == usize::from(failing.contains(&d))));
        let at = engine(&system, if failing[0] < 0x10 { 0 } else { 0x10 });
        assert_eq!(at.read(0x144).unwrap(), u32::from(Status::Failed.number()), "the failure point's register");
    }
}

#[test]
fn a_failure_message_twice_or_from_a_stranger_changes_nothing() {
    let collective = sum();
    let mut lab = lab(&collective);
    lab.join(&collective, |device| (vec![1 << (device & 0xf), 1], TaskTime::Fixed(400)));
    let like = Header { message: Message::Failure, run: 1, ..collective.like(0x11, &lab.tables) };
    let stranger = Packet::bare(Header { requester: 0x13, ..like });
    let old = Packet::bare(Header { requester: 0x11, run: 0, ..like });
    lab.send(0x13, SendCondition::At(SET_UP + 150), [stranger]);
    lab.send(0x11, SendCondition::At(SET_UP + 150), [old]);
    lab.send(1, SendCondition::At(SET_UP), [collective.command(1)]);
    let system = lab.run();
    let refused = |device: u16| node(&system, device).mail()[0].1.header.status;
    assert_eq!((refused(0x13), refused(0x11)), (Status::UnknownDevice, Status::Duplicate));
    for device in collective.tree.participants() {
        let outcome = &node(&system, device).outcomes(2)[0];
        assert_eq!((outcome.error, &outcome.words[..]), (None, &[12, 4][..]));
    }
    assert!(missing(node(&system, 1)).is_empty());
}

/// Where the source sets every engine up itself, an engine learns from its first command who is above it. The source's own
/// contribution may be there before, and complete it.
#[test]
fn an_engine_whose_only_participant_is_the_source_waits_to_learn_who_is_above() {
    let tree = Branch::leaf(0x10, [0x11, 0x12]).over([Branch::leaf(0, [1])]);
    let collective = Collective::all_reduce(2, 1, tree, Op::Sum, DType::I64, 2);
    let mut lab = Lab::new(Spec::regular(2, 3, 0x10, vec![(0, 1)]), std::slice::from_ref(&collective));
    let frames = [lab.tables.frames(1), collective.initialise_each(&lab.tables)].concat();
    lab.send(1, SendCondition::Next, frames);
    lab.join(&collective, |device| (vec![u64::from(device), 1], TaskTime::Fixed(0)));
    lab.send(1, SendCondition::At(SET_UP), [collective.command(1)]);
    lab.send(1, SendCondition::Satisfied(2, 1), [collective.command(2)]);
    let system = lab.run();
    assert!(node(&system, 1).mail().is_empty(), "the source is not sent the partial");
    for device in [1, 0x11, 0x12] {
        let outcomes = node(&system, device).outcomes(2);
        assert_eq!(outcomes.len(), 2, "{device:#x}");
        for outcome in outcomes {
            assert_eq!((outcome.error, &outcome.words[..]), (None, &[1 + 0x11 + 0x12, 3][..]), "{device:#x}");
        }
    }
}

#[test]
fn an_output_queue_that_could_hold_engines_up_is_refused() {
    let of = |messages: u32, collectives: usize| {
        let one = "[[pbv.collective]]\ndtype = \"u64\"\n";
        let text = format!(
            "family = \"pbv\"\n[topology]\nkind = \"tree\"\nbranching = [2, 2]\nroots = 0\n[pbv.engine]\noutput_messages = {messages}\n{}",
            one.repeat(collectives)
        );
        load_text("test.toml", &text, Path::new(""), "test", &[])
    };
    for (collectives, least) in [(1, 20), (3, 28), (9, 52)] {
        let problems = of(least - 1, collectives).unwrap_err().to_string();
        for part in ["output_messages", "could wait for each other", &format!("{least} or more"), "^"] {
            assert!(problems.contains(part), "{part}: {problems}");
        }
        let run = |text| run_scenario(&text, &RunOptions::default()).unwrap().document;
        let document = run(of(least, collectives).unwrap_or_else(|problems| panic!("{problems}")));
        assert!(document.passed() && document.pbv.unwrap().outcomes.complete as usize == collectives);
    }
}

/// A damaged bit of the address leads a frame to somebody else, whose CRC check it does not pass.
#[test]
fn a_frame_that_is_led_astray_by_a_damaged_address_is_nobodys() {
    let (mut astray, mut damaged) = (0, 0);
    for seed in 0..100 {
        let text = format!(
            "family = \"pbv\"\nseed = {seed}\n[topology]\nkind = \"tree\"\nbranching = [2, 8]\nroots = 0\n\
             [pbv.engine]\ntimeout_cycles = 2000\nretries = 2\n[[pbv.collective]]\ndtype = \"u64\"\nop = \"sum\"\nrounds = 2\n\
             [[pbv.fault]]\neffect = \"corrupt\"\nat = \"leaf5\"\nway = \"from\"\n"
        );
        let loaded =
            load_text("test.toml", &text, Path::new(""), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
        let document = run_scenario(&loaded, &RunOptions::default()).unwrap().document;
        assert_eq!(document.outcome, Outcome::Finished, "seed {seed}: {:?}", document.checks);
        let of = document.pbv.unwrap();
        // Everything that leaf 5 sends is damaged: it is missing, and nothing else is wrong.
        assert_eq!((of.outcomes.silent, of.outcomes.open), (0, 0), "seed {seed}");
        assert!(
            of.collectives[0].rounds.iter().all(|round| round.missing == ["leaf5"]),
            "seed {seed}: {:?}",
            of.collectives[0].rounds
        );
        astray += u64::from(of.refused_by_nodes.get("damaged").is_some_and(|count| count.as_u64() > Some(0)));
        damaged += of.faults.unwrap()["corrupted"].as_u64().unwrap();
    }
    // Leaf 5 sends to engines alone: what a node refuses as damaged was led astray.
    assert!(
        astray > 3 && damaged > 400,
        "{astray} runs in which a node got a frame that is not its own, {damaged} frames"
    );
}
