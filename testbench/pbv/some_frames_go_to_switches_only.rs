//! Frames for switches only (B-PKT-5, paragraph 96), and posted messages that keep their order (B-HI-5).

use std::path::Path;

use crate::support::{Lab, SET_UP};
use watershed::arith::{DType, Op};
use watershed::pbv::node::{SendCondition, TaskTime};
use watershed::pbv::packet::{Control, Header, Message, Packet, Status};
use watershed::pbv::plan::{Branch, Collective};
use watershed::pbv::system::{Spec, System, engines, events, node};
use watershed::pbv::tables::ENGINE_BASE;
use watershed::scenario::load_text;
use watershed::scenario::run::{RunOptions, run};

/// A tree of engines, three levels deep, with nodes everywhere.
fn deep(nodes: u16) -> (Spec, Branch) {
    let spec = Spec::tree(2, 2, usize::from(nodes));
    let leaf = |k: u16| Branch::leaf(k * 0x40, (1..=nodes).map(|n| k * 0x40 + n));
    let tree = leaf(0).over([leaf(1).over([leaf(3), leaf(4)]), leaf(2).over([leaf(5), leaf(6)])]);
    (spec, tree)
}

fn received(system: &System, message: Message) -> (usize, usize) {
    let switches: Vec<u16> = engines(system).map(|engine| engine.cfg().device).collect();
    let all = events(system).into_iter().filter(|event| event.received && event.message == message);
    let (at_switches, at_ends): (Vec<_>, Vec<_>) = all.partition(|event| switches.contains(&event.to));
    (at_switches.len(), at_ends.len())
}

#[test]
fn initialisation_and_control_may_go_to_switches_only() {
    for nodes in [1u16, 3, 6] {
        for engines_only in [false, true] {
            let (spec, tree) = deep(nodes);
            let plain = Collective::all_reduce(2, 1, tree, Op::Sum, DType::U64, 3);
            let collective = Collective { engines_only, ..plain };
            let mut lab = Lab::new(spec, std::slice::from_ref(&collective));
            lab.set_up(std::slice::from_ref(&collective));
            lab.join(&collective, |device| (vec![u64::from(device); 3], TaskTime::Fixed(10)));
            let reset = Header {
                control: Control::Reset,
                engines_only,
                op: Op::Barrier,
                ..collective.header(Message::Control, 0)
            };
            lab.send(1, SendCondition::At(SET_UP), [Packet::bare(reset)]);
            lab.send(1, SendCondition::At(2 * SET_UP), [collective.command(1)]);
            let system = lab.run();
            // The source sends both itself and gets none.
            let ends = if engines_only { 0 } else { 7 * usize::from(nodes) - 1 };
            assert_eq!(received(&system, Message::Initialisation), (7, ends), "{nodes} {engines_only}");
            assert_eq!(received(&system, Message::Control), (7, ends), "{nodes} {engines_only}");
            // Commands go to everybody, and everybody has the sum.
            assert_eq!(received(&system, Message::Command), (7, 7 * usize::from(nodes) - 1));
            let all = collective.tree.participants();
            let sum: u64 = all.iter().map(|&device| u64::from(device)).sum();
            for device in all {
                assert_eq!(node(&system, device).outcomes(2)[0].words, [sum; 3]);
            }
        }
    }
}

#[test]
fn an_end_device_has_no_use_for_a_frame_for_switches() {
    let (spec, tree) = deep(2);
    let collective = Collective::all_reduce(2, 1, tree, Op::Sum, DType::U64, 3);
    let mut lab = Lab::new(spec, std::slice::from_ref(&collective));
    let header = Header { engines_only: true, ..Header::new(Message::Command, 1, 2, 0) };
    lab.send(1, SendCondition::Next, [Packet::bare(header)]);
    let system = lab.run();
    assert_eq!(node(&system, 2).refused()[usize::from(Status::WrongType.number())], 1);
    assert!(node(&system, 2).mail().is_empty());
    assert_eq!(header.offset, 0, "{ENGINE_BASE:#x} is an engine's");
}

#[test]
fn the_scenario_says_so_and_refuses_what_would_not_start() {
    let text = |keys: &str| {
        format!(
            "family = \"pbv\"\n[topology]\nkind = \"flattened-butterfly\"\nsize = [3]\nconcentration = 4\n[pbv.setup]\n\
             initialise_nodes = false\n[[pbv.collective]]\nname = \"sum\"\nrounds = 2\n{keys}\n"
        )
    };
    let loaded =
        load_text("test", &text(""), Path::new(""), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let result = run(&loaded, &RunOptions { ladder: true, ..RunOptions::default() }).unwrap();
    assert!(result.document.passed(), "{:?}", result.document.checks);
    let ladder = result.ladder.unwrap();
    let to_ends = ladder.messages.iter().filter(|m| m.label == "initialisation" && ladder.actors[m.to].contains('.'));
    assert_eq!(to_ends.count(), 0);
    let problems = load_text("test", &text("starts_on = \"initialisation\""), Path::new(""), "test", &[]).unwrap_err();
    assert!(problems.to_string().contains("initialisation frames go to switches only"), "{problems}");
}

/// Posted messages are tracked by nobody: their order is that of the queues on the way.
#[test]
fn posted_messages_come_once_each_and_in_order_at_every_node() {
    for (nodes, posted) in [(1u16, true), (3, true), (6, true), (3, false)] {
        let (spec, tree) = deep(nodes);
        let of = |cc_id| Collective {
            multicast: true,
            ..Collective::all_reduce(cc_id, 1, tree.clone(), Op::Sum, DType::U64, 5)
        };
        let both = [of(0), of(1)];
        let mut lab = Lab::new(spec, &both);
        lab.set_up(&both);
        let mut frames = Vec::new();
        for run in 1..=12u32 {
            // Long and short ones, of two contexts, in turn; those of the second one are always posted.
            frames.push(both[0].cast(run, vec![u64::from(run); 5], posted));
            frames.push(both[1].cast(run, vec![u64::from(run); 5], true));
        }
        if posted {
            lab.send(1, SendCondition::At(SET_UP), frames);
        } else {
            for (k, frame) in frames.into_iter().enumerate() {
                lab.send(1, SendCondition::At(SET_UP + 4000 * k as u64), [frame]);
            }
        }
        let system = lab.run();
        for device in both[0].tree.participants().into_iter().filter(|&device| device != 1) {
            for cc_id in [0, 1] {
                let mail = node(&system, device).mail().iter().filter(|(_, packet)| packet.header.cc_id == cc_id);
                let got: Vec<(u32, Vec<u64>)> = mail.map(|(_, p)| (p.header.run, p.words().to_vec())).collect();
                let right: Vec<(u32, Vec<u64>)> = (1..=12).map(|run| (run, vec![u64::from(run); 5])).collect();
                assert_eq!(got, right, "{nodes} {posted} {device:#x}");
            }
        }
        // Each level hands its part on: one frame an engine and one a node for each message; nobody acknowledges a posted one.
        let answers = if posted { 0 } else { 12 * (7 * usize::from(nodes) - 1) };
        assert_eq!(received(&system, Message::Contribution).0, answers, "{nodes} {posted}");
        assert_eq!(received(&system, Message::Multicast).0, 7 * 24);
    }
}

#[test]
fn what_is_wrong_with_a_posted_message_is_counted_and_not_answered() {
    let (spec, tree) = deep(2);
    let of = |multicast| Collective { multicast, ..Collective::all_reduce(0, 1, tree.clone(), Op::Sum, DType::U64, 5) };
    for posted in [true, false] {
        let collective = of(true);
        let mut lab = Lab::new(spec.clone(), std::slice::from_ref(&collective));
        lab.set_up(std::slice::from_ref(&collective));
        let cast = collective.cast(1, vec![9; 5], posted);
        let mut stray = cast.clone();
        stray.header.cc_id = 0x123;
        lab.send(1, SendCondition::At(SET_UP), [cast.clone(), stray]);
        // Once more the same one: its receivers have it.
        lab.send(1, SendCondition::At(2 * SET_UP), [cast]);
        let system = lab.run();
        let errors = node(&system, 1).mail().iter().filter(|(_, frame)| frame.header.message == Message::Error).count();
        assert_eq!(errors, usize::from(!posted), "the context that nobody knows");
        let master = engines(&system).find(|engine| engine.cfg().device == 0).unwrap();
        assert_eq!(master.read(0x180 + 4 * u16::from(Status::UnknownContext.number())).unwrap(), 1);
        for device in [2, 0x41, 0x82, 0x181] {
            let node = node(&system, device);
            assert_eq!(node.mail().len(), 1, "{device:#x}: it comes once");
            let again = node.refused()[usize::from(Status::Duplicate.number())];
            assert_eq!(again, u32::from(posted), "{device:#x}: a posted one is counted when it comes again");
        }
    }
}
