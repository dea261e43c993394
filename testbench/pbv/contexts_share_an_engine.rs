//! Many contexts at once: as many as the store holds, with one master or several (B-CE-1, B-HI-3, B-HI-4).

use crate::support::{Lab, SET_UP};
use watershed::fabric::Step;
use watershed::pbv::ce::State;
use watershed::pbv::node::{Part, SendCondition, TaskTime};
use watershed::pbv::packet::{Control, Message, Packet, Status};
use watershed::pbv::plan::{Branch, Collective};
use watershed::pbv::system::{Spec, System, engine, node, run};

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
        lab.send(1, SendCondition::At(SET_UP), all.iter().map(|collective| collective.command(1)));
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
    lab.send(1, SendCondition::At(SET_UP), [both[0].command(1)]);
    let frames = [Packet::bare(remove), both[1].initialise(&lab.tables), both[1].command(1)];
    lab.send(1, SendCondition::Satisfied(5, 1), frames);
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
        let mut part = Part::of(like, Vec::new(), task);
        part.last_run = 999;
        lab.node(device).join(part);
    }
    lab.send(1, SendCondition::At(SET_UP), [collective.command(0)]);
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

/// A store of this size, full of contexts that are all live at the same time: 32 switches with 32 nodes each, every node in
/// some of them, the master of all in switch 0. Each context has participants at four switches. One more is refused.
fn full_store(contexts: u16) {
    let mut spec = Spec::butterfly(32, 32);
    (spec.ce.contexts, spec.log, spec.monitors) = (contexts, false, false);
    let context = |k: u16| {
        // Any four switches beside the first come together, and any of their nodes.
        let at = |far: u16| (1 + (k / 32 + far * (1 + k / 1024)) % 31) * 0x40;
        let leaf = |far: u16| Branch::leaf(at(far), [at(far) + 1 + (k + far * 7) % 32]);
        let mut leaves: Vec<Branch> = (0..4).map(leaf).collect();
        leaves.sort_by_key(|branch| branch.device);
        leaves.dedup_by_key(|branch| branch.device);
        Collective::barrier(k, 1, Branch::leaf(0, [1 + k % 32]).over(leaves))
    };
    let all: Vec<Collective> = (0..=contexts).map(context).collect();
    let mut lab = Lab::new(spec, &all);
    // Tables out of the way: the store is looked at here.
    let frames = lab.tables.frames(1);
    lab.send(1, SendCondition::Next, frames);
    let set_up = 20_000;
    lab.send(
        1,
        SendCondition::At(set_up),
        all.iter().map(|collective| collective.initialise(&lab.tables)).collect::<Vec<_>>(),
    );
    let start = set_up + 200 * u64::from(contexts);
    let working = 60 * u64::from(contexts) + 4000;
    for collective in &all {
        for device in collective.tree.participants() {
            let mut part = Part::of(collective.like(device, &lab.tables), Vec::new(), TaskTime::Fixed(working));
            part.blocks = false;
            lab.node(device).join(part);
        }
        if !collective.tree.participants().contains(&1) {
            let mut part = Part::of(collective.like(1, &lab.tables), Vec::new(), TaskTime::Never);
            part.watches = true;
            lab.node(1).join(part);
        }
    }
    lab.send(1, SendCondition::At(start), all.iter().map(|collective| collective.command(1)));
    let mut system = lab.build();
    // All commands are out and no task has ended.
    let middle = start + working - 1;
    while system.now() < middle && system.step_before(middle) == Step::Ran {}
    let live = |system: &System| {
        let contexts = engine(system, 0).ce().contexts();
        contexts.filter(|context| context.state == State::Active && context.track.pbv == context.stored.pbv).count()
    };
    assert_eq!(
        live(&system),
        usize::from(contexts),
        "every place of the store holds a context that waits for everybody"
    );
    run(&mut system, 100_000_000).unwrap();
    assert_eq!(live(&system), 0);
    for collective in &all[..usize::from(contexts)] {
        for device in collective.tree.participants() {
            let outcomes = node(&system, device).outcomes(collective.cc_id);
            assert_eq!(outcomes.len(), 1, "{device:#x} in {}", collective.cc_id);
            assert_eq!(outcomes[0].error, None);
        }
    }
    let last = &all[usize::from(contexts)];
    assert!(last.tree.participants().iter().all(|&device| node(&system, device).outcomes(last.cc_id).is_empty()));
    let refused: Vec<Status> = node(&system, 1).mail().iter().map(|(_, packet)| packet.header.status).collect();
    assert_eq!(refused[..2], [Status::StoreFull, Status::UnknownContext]);
    assert_eq!(engine(&system, 0).read(0x180 + 4 * 8).unwrap(), 1, "store-full is counted once");
    if contexts >= 1024 {
        let members: std::collections::BTreeSet<u16> = all.iter().flat_map(|all| all.tree.participants()).collect();
        assert_eq!(members.len(), 1024, "every end point takes part in something");
    }
}

#[test]
fn a_store_is_full_of_live_contexts_over_1024_end_points() {
    full_store(64);
}

#[test]
#[ignore = "long: make soak"]
fn stores_of_up_to_4095_contexts_are_full_of_live_ones() {
    for contexts in [1024, 4095] {
        full_store(contexts);
    }
}
