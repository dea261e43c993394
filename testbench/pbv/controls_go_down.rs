//! Control packets reach every engine and node below the master and do there what they say (B-PKT-4, B-CE-2, B-CE-8).

use crate::support::{Lab, SET_UP};
use watershed::arith::{DType, Op};
use watershed::pbv::context::State;
use watershed::pbv::node::{Part, SendCondition, TaskTime};
use watershed::pbv::packet::{Body, Control, Message, Packet, Status};
use watershed::pbv::plan::{Branch, Collective};
use watershed::pbv::system::{Spec, System, engine, events, node};

const ENGINES: [u16; 2] = [0x00, 0x10];

/// Nodes 1 and 2 at the master, 0x11 and 0x12 at the engine below; node 1 is the source.
fn sum() -> Collective {
    let tree = Branch::leaf(0, [1, 2]).over([Branch::leaf(0x10, [0x11, 0x12])]);
    Collective::all_reduce(2, 1, tree, Op::Sum, DType::I64, 2)
}

/// A run to which nodes 1 and 0x11 have contributed, so that both engines wait for others, and then a control packet.
fn ruled(control: Option<Control>, run: u32) -> System {
    let collective = sum();
    let mut spec = Spec::regular(2, 3, 0x10, vec![(0, 1)]);
    spec.log = true;
    let mut lab = Lab::new(spec, std::slice::from_ref(&collective));
    lab.set_up(std::slice::from_ref(&collective));
    for device in [1, 0x11] {
        let part = Part::of(collective.like(device, &lab.tables), vec![3, 4], TaskTime::Fixed(10));
        lab.node(device).join(part);
    }
    lab.send(1, SendCondition::At(SET_UP), [collective.command(1)]);
    if let Some(control) = control {
        let mut header = collective.header(Message::Control, 0);
        (header.control, header.run) = (control, run);
        lab.send(1, SendCondition::At(SET_UP + 1000), [Packet::bare(header)]);
    }
    lab.run()
}

#[test]
fn a_control_packet_comes_once_to_all_but_its_source() {
    for (control, state) in [
        (Control::Start, Some(State::Active)),
        (Control::Pause, Some(State::Paused)),
        (Control::Restart, Some(State::Active)),
        (Control::Stop, Some(State::Inactive)),
        (Control::Reset, Some(State::Active)),
        (Control::Activate, Some(State::Active)),
        (Control::Inactivate, Some(State::Inactive)),
        (Control::Remove, None),
    ] {
        let system = ruled(Some(control), 1);
        let came = |device: u16| {
            let all = events(&system).into_iter();
            all.filter(|event| event.received && event.to == device && event.control == control)
                .filter(|event| event.message == Message::Control)
                .count()
        };
        for (device, times) in [(0x00, 1), (0x10, 1), (2, 1), (0x11, 1), (0x12, 1), (1, 0), (3, 0), (0x13, 0)] {
            assert_eq!(came(device), times, "{control:?} at {device:#x}");
        }
        for device in ENGINES {
            let of = engine(&system, device).ce().find(2).map(|context| context.state);
            assert_eq!(of, state, "{control:?} at {device:#x}");
        }
    }
}

#[test]
fn what_was_stored_is_tracked_again_in_the_run_of_the_packet() {
    let tracked = |control, run| {
        let system = ruled(control, run);
        ENGINES.map(|device| {
            let context = engine(&system, device).ce().find(2).unwrap();
            let (track, stored) = (context.track, context.stored);
            assert_eq!(track.pbv.count_ones(), u32::from(track.p_count));
            (stored.p_count - track.p_count, track.pbv == stored.pbv, context.run())
        })
    };
    // One of each engine's participants has answered.
    assert_eq!(tracked(None, 1), [(1, false, 1); 2]);
    for control in [Control::Pause, Control::Restart] {
        assert_eq!(tracked(Some(control), 1), [(1, false, 1); 2], "{control:?} keeps what has come");
    }
    for control in [Control::Start, Control::Reset, Control::Activate] {
        assert_eq!(tracked(Some(control), 5), [(0, true, 5); 2], "{control:?} begins anew");
    }
}

#[test]
fn an_initial_value_below_the_master_enters_nothing() {
    // Whatever the records of the engines below say, and with a frame of its own for each engine, too.
    for each in [false, true] {
        let collective = Collective { initial: Some(1000), ..sum() };
        let mut lab = Lab::new(Spec::regular(2, 3, 0x10, vec![(0, 1)]), std::slice::from_ref(&collective));
        let mut frames =
            if each { collective.initialise_each(&lab.tables) } else { vec![collective.initialise(&lab.tables)] };
        for frame in &mut frames {
            let Body::Initialisation(records) = &mut frame.body else { panic!("an initialisation") };
            for record in records {
                record.initial = Some(1000);
            }
        }
        let tables = lab.tables.frames(1);
        lab.send(1, SendCondition::Next, tables);
        lab.send(1, SendCondition::At(SET_UP / 2), frames);
        lab.join(&collective, |device| (vec![u64::from(device), 1], TaskTime::Fixed(10)));
        lab.send(1, SendCondition::At(SET_UP), [collective.command(1)]);
        let system = lab.run();
        for device in [1, 2, 0x11, 0x12] {
            let outcomes = node(&system, device).outcomes(2);
            assert_eq!(outcomes[0].words, [1000 + 1 + 2 + 0x11 + 0x12, 1000 + 4], "{device:#x} {each}");
        }
    }
}

#[test]
fn a_stopped_context_takes_no_command() {
    for control in [Control::Stop, Control::Inactivate] {
        let collective = sum();
        let mut spec = Spec::regular(2, 3, 0x10, vec![(0, 1)]);
        spec.log = true;
        let mut lab = Lab::new(spec, std::slice::from_ref(&collective));
        lab.set_up(std::slice::from_ref(&collective));
        let mut header = collective.header(Message::Control, 0);
        header.control = control;
        lab.send(1, SendCondition::At(SET_UP), [Packet::bare(header), collective.command(1)]);
        let system = lab.run();
        let answers: Vec<Status> = node(&system, 1).mail().iter().map(|(_, frame)| frame.header.status).collect();
        assert_eq!(answers, [Status::Inactive], "{control:?}");
        let commands = events(&system).into_iter().filter(|event| event.received && event.message == Message::Command);
        assert_eq!(commands.map(|event| event.to).collect::<Vec<_>>(), [0x00], "{control:?}: it goes no further");
        for device in ENGINES {
            assert_eq!(engine(&system, device).ce().find(2).map(|context| context.state), Some(State::Inactive));
        }
    }
}
