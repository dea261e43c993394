//! Many contexts at once: as many as the store holds, with one master or several (B-CE-1, B-HI-3, B-HI-4).

use crate::support::{Lab, SET_UP};
use watershed::pbv::ce::State;
use watershed::pbv::node::{TaskTime, When};
use watershed::pbv::packet::{Control, Message, Packet, Status};
use watershed::pbv::plan::{Branch, Collective};
use watershed::pbv::system::{Spec, engine, node};

#[test]
fn as_many_contexts_as_the_store_holds_and_one_more_is_refused() {
    for contexts in [1u16, 3, 200] {
        let mut spec = Spec::regular(2, 2, 0x10, vec![(0, 1)]);
        spec.ce.contexts = contexts;
        let tree = Branch::leaf(0, [1, 2]).over([Branch::leaf(0x10, [0x11, 0x12])]);
        let all: Vec<Collective> = (0..=contexts).map(|k| Collective::barrier(k * 7, 1, tree.clone())).collect();
        let mut lab = Lab::new(spec, &all);
        lab.set_up(&all);
        for collective in &all {
            lab.join(collective, |_| (Vec::new(), TaskTime::Uniform { from: 0, to: 40, seed: 3 }));
        }
        lab.send(1, When::At(SET_UP), all.iter().map(|collective| collective.command(1)));
        let system = lab.run();
        for collective in &all[..usize::from(contexts)] {
            assert_eq!(node(&system, 0x12).outcomes(collective.cc_id).len(), 1);
        }
        assert!(node(&system, 0x12).outcomes(contexts * 7).is_empty());
        let refused: Vec<Status> = node(&system, 1).mail().iter().map(|(_, packet)| packet.header.status).collect();
        // Its initialisation, its command, and the met of the source, which did not wait to hear it.
        assert_eq!(refused, [Status::StoreFull, Status::UnknownContext, Status::UnknownContext]);
        assert_eq!(engine(&system, 0).read(0x180 + 4 * 8).unwrap(), 1, "store-full is counted");
        assert_eq!(engine(&system, 0).ce().contexts().count(), usize::from(contexts));
    }
}

#[test]
fn a_place_that_is_given_back_is_used_again() {
    let mut spec = Spec::regular(1, 2, 0x10, Vec::new());
    spec.ce.contexts = 1;
    let make = |cc_id| Collective::barrier(cc_id, 1, Branch::leaf(0, [1, 2]));
    let both = [make(5), make(6)];
    let mut lab = Lab::new(spec, &both);
    lab.set_up(&both[..1]);
    for collective in &both {
        lab.join(collective, |_| (Vec::new(), TaskTime::Fixed(3)));
    }
    let mut remove = both[0].header(Message::Control, 0);
    (remove.control, remove.op) = (Control::Remove, watershed::arith::Op::Barrier);
    lab.send(1, When::At(SET_UP), [both[0].command(1)]);
    let frames = [Packet::bare(remove), both[1].initialise(&lab.tables), both[1].command(1)];
    lab.send(1, When::Satisfied(5, 1), frames);
    let system = lab.run();
    assert_eq!(node(&system, 2).outcomes(6).len(), 1);
    assert!(engine(&system, 0).ce().find(5).is_none());
    assert_eq!(engine(&system, 0).ce().find(6).unwrap().state, State::Done);
}

#[test]
fn a_thousand_rounds_give_a_thousand_barriers_and_three_frames_an_edge() {
    let tree = Branch::leaf(0, [1, 2]).over([Branch::leaf(0x10, [0x11, 0x12])]);
    let mut collective = Collective::barrier(8, 1, tree);
    collective.rearm = true;
    let mut lab = Lab::new(Spec::regular(2, 2, 0x10, vec![(0, 1)]), std::slice::from_ref(&collective));
    lab.set_up(std::slice::from_ref(&collective));
    let devices = collective.tree.participants();
    for &device in &devices {
        let like = collective.like(device, &lab.tables);
        let task = TaskTime::Uniform { from: 0, to: 30, seed: 11 };
        let mut part = watershed::pbv::node::Part::of(like, Vec::new(), task);
        part.again = 999;
        lab.node(device).join(part);
    }
    lab.send(1, When::At(SET_UP), [collective.command(0)]);
    let system = lab.run();
    for device in devices {
        let outcomes = node(&system, device).outcomes(8);
        assert_eq!(outcomes.len(), 1000);
        assert!(outcomes.windows(2).all(|pair| pair[0].cycle < pair[1].cycle));
    }
    // After the first, commands are left out: two frames a round and edge.
    let log = engine(&system, 0x10).log.events();
    let partials = log.iter().filter(|event| !event.received && event.message == Message::Partial).count();
    let results = log.iter().filter(|event| event.received && event.message == Message::Satisfied).count();
    assert_eq!((partials, results), (1000, 1000));
}
