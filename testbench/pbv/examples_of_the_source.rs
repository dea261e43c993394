//! The worked examples of the source text, from the cycle-level run (B-EX-1 to B-EX-7).

use crate::support::{Lab, SET_UP};
use watershed::pbv::event::Event;
use watershed::pbv::node::{Node, Part, SendCondition, TaskTime};
use watershed::pbv::packet::{Message, Status};
use watershed::pbv::plan::{Branch, Collective};
use watershed::pbv::system::{EnginePort, Spec, System, engine, engines, events, node, run};

/// Collectives 0, 1 and 2 of FIG. 7.
fn figure_7() -> Vec<Collective> {
    let top = |nodes: [u16; 3]| Branch::leaf(0x0000, nodes);
    let all = [0x0001, 0x0002, 0x0003];
    let (second, third) = ([0x0011, 0x0012, 0x0013], [0x0021, 0x0022, 0x0023]);
    vec![
        Collective::barrier(0, 1, top(all).over([Branch::leaf(0x0010, second), Branch::leaf(0x0020, third)])),
        Collective::barrier(1, 1, top(all).over([Branch::leaf(0x0010, second)])),
        Collective::barrier(2, 1, top(all).over([Branch::leaf(0x0010, [0x0011, 0x0012]), Branch::leaf(0x0020, third)])),
    ]
}

/// Eleven writes, then three contexts; tasks of collective 2 end in the order of the text.
fn figure_7_lab(spec: Spec) -> Lab {
    let collectives = figure_7();
    let mut lab = Lab::new(spec, &collectives);
    let writes = lab.tables.writes(1);
    lab.send(1, SendCondition::Next, writes);
    for collective in &collectives {
        let frames = collective.initialise_each(&lab.tables);
        lab.send(1, SendCondition::Next, frames);
    }
    lab
}

#[test]
fn example_1_eleven_writes_make_the_tables_of_the_text() {
    for port in [EnginePort::Own, EnginePort::Node(1), EnginePort::Link(0)] {
        let mut spec = Spec::figure_7();
        for switch in &mut spec.switches {
            switch.engine_port = port;
        }
        let mut lab = figure_7_lab(spec);
        let addresses: Vec<u32> = lab.tables.writes(1).iter().map(|frame| frame.header.address()).collect();
        let expected = [
            0x0000_c000,
            0x0000_c002,
            0x0000_c004,
            0x0000_c006,
            0x0000_c008,
            0x0010_c000,
            0x0010_c002,
            0x0010_c004,
            0x0020_c000,
            0x0020_c002,
            0x0020_c004,
        ];
        assert_eq!(addresses, expected, "five, three and three writes");
        let system = lab.run();
        let table = |device: u16, entries: u16| -> Vec<u32> {
            (0..entries).map(|k| engine(&system, device).read(2 * k).unwrap()).collect()
        };
        // Bit 16: the entry is an engine.
        assert_eq!(table(0x0000, 6), [0x1_0010, 0x1_0020, 0x0001, 0x0002, 0x0003, 0xffff]);
        assert_eq!(table(0x0010, 4), [0x0011, 0x0012, 0x0013, 0xffff]);
        assert_eq!(table(0x0020, 4), [0x0021, 0x0022, 0x0023, 0xffff]);
        let mask = |device: u16, cc_id: u16| engine(&system, device).ce().find(cc_id).map(|context| context.stored.pbv);
        for (cc_id, masks) in [
            (0, [Some(0x1f), Some(0x07), Some(0x07)]),
            (1, [Some(0x1d), Some(0x07), None]),
            (2, [Some(0x1f), Some(0x03), Some(0x07)]),
        ] {
            assert_eq!([0x0000, 0x0010, 0x0020].map(|device| mask(device, cc_id)), masks, "collective {cc_id}");
        }
        assert!(engines(&system).all(|engine| engine.registers().readings.refused == [0; 16]));
    }
}

/// Who got or sent what, without cycles.
fn told(event: &Event) -> (u16, bool, &'static str, u16) {
    let (at, other) = if event.received { (event.to, event.from) } else { (event.from, event.to) };
    let what = match event.label().as_str() {
        "set up barrier" => "set up",
        "barrier met" => "met",
        "barrier satisfied" => "satisfied",
        other => panic!("{other} in a barrier"),
    };
    (at, event.received, what, other)
}

#[test]
fn example_2_the_barrier_of_collective_2_event_by_event() {
    let mut lab = figure_7_lab(Spec::figure_7());
    let collective = figure_7().remove(2);
    // Paragraphs 192 to 200: local nodes first, then switch 725's, then one of 730's, and late its other two.
    let time = |device: u16| match device {
        0x0001..=0x0003 => 100,
        0x0011..=0x0013 => 200,
        0x0021 => 207,
        _ => 400,
    };
    lab.join(&collective, |device| (Vec::new(), TaskTime::Fixed(time(device))));
    lab.send(1, SendCondition::At(SET_UP), [collective.command(1)]);
    let system = lab.run();
    let switches = [0x0000, 0x0010, 0x0020];
    let seen: Vec<_> = events(&system)
        .iter()
        .filter(|event| event.cycle >= SET_UP && event.cc_id == 2)
        .map(told)
        .filter(|(at, ..)| switches.contains(at))
        .collect();
    let (got, sent) = (true, false);
    let at = |device: u16| seen.iter().copied().filter(|event| event.0 == device).collect::<Vec<_>>();
    assert_eq!(
        at(0x0000),
        [
            (0, got, "set up", 0x0001),
            (0, sent, "set up", 0x0010),
            (0, sent, "set up", 0x0020),
            (0, sent, "set up", 0x0002),
            (0, sent, "set up", 0x0003),
            (0, got, "met", 0x0001),
            (0, got, "met", 0x0002),
            (0, got, "met", 0x0003),
            (0, got, "met", 0x0010),
            (0, got, "met", 0x0020),
            (0, sent, "satisfied", 0x0010),
            (0, sent, "satisfied", 0x0020),
            (0, sent, "satisfied", 0x0001),
            (0, sent, "satisfied", 0x0002),
            (0, sent, "satisfied", 0x0003),
        ]
    );
    assert_eq!(
        at(0x0010),
        [
            (0x10, got, "set up", 0),
            (0x10, sent, "set up", 0x0011),
            (0x10, sent, "set up", 0x0012),
            (0x10, got, "met", 0x0011),
            (0x10, got, "met", 0x0012),
            (0x10, sent, "met", 0),
            (0x10, got, "satisfied", 0),
            (0x10, sent, "satisfied", 0x0011),
            (0x10, sent, "satisfied", 0x0012),
        ]
    );
    assert_eq!(
        at(0x0020),
        [
            (0x20, got, "set up", 0),
            (0x20, sent, "set up", 0x0021),
            (0x20, sent, "set up", 0x0022),
            (0x20, sent, "set up", 0x0023),
            (0x20, got, "met", 0x0021),
            (0x20, got, "met", 0x0022),
            (0x20, got, "met", 0x0023),
            (0x20, sent, "met", 0),
            (0x20, got, "satisfied", 0),
            (0x20, sent, "satisfied", 0x0021),
            (0x20, sent, "satisfied", 0x0022),
            (0x20, sent, "satisfied", 0x0023),
        ]
    );
    // Across switches, in the text's order: 725 reports, one message of 730's nodes is there, then 730 reports.
    let place = |what: (u16, bool, &'static str, u16)| seen.iter().position(|&event| event == what).unwrap();
    let order = [
        (0x10, sent, "met", 0),
        (0x20, got, "met", 0x0021),
        (0, got, "met", 0x0010),
        (0x20, got, "met", 0x0022),
        (0x20, sent, "met", 0),
        (0, got, "met", 0x0020),
        (0, sent, "satisfied", 0x0010),
    ]
    .map(place);
    assert!(order.is_sorted(), "{order:?}");
    assert!(node(&system, 0x0013).outcomes(2).is_empty(), "the third node of switch 725 is not in it");
    for device in collective.tree.participants() {
        assert_eq!(node(&system, device).outcomes(2).len(), 1, "{device:#x}");
    }
}

#[test]
fn example_3_the_ladder_of_figure_8() {
    // Board 302: engine 310 with source 316 and node 318; board 304: engine 334 with nodes 340 and 342.
    let tree = Branch::leaf(0x0000, [0x0001, 0x0002]).over([Branch::leaf(0x0010, [0x0011, 0x0012])]);
    let collective = Collective::barrier(5, 1, tree);
    let mut lab = Lab::new(Spec::regular(2, 2, 0x10, vec![(0, 1)]), std::slice::from_ref(&collective));
    let time = |device: u16| {
        TaskTime::Fixed(match device {
            1 => 100,
            0x11 => 150,
            0x12 => 200,
            _ => 400,
        })
    };
    for device in collective.tree.participants() {
        let mut part = Part::of(collective.like(device, &lab.tables), Vec::new(), time(device));
        part.starts_on = Message::Initialisation;
        lab.node(device).join(part);
    }
    let frames = lab.tables.frames(1);
    lab.send(1, SendCondition::Next, frames);
    let init = collective.initialise(&lab.tables);
    lab.send(1, SendCondition::At(1000), [init]);
    let system = lab.run();
    let ladder: Vec<(String, u16, u16)> = events(&system)
        .iter()
        .filter(|event| !event.received)
        .map(|event| (event.label(), event.from, event.to))
        .collect();
    let (e310, n316, n318, e334, n340, n342) = (0x0000, 0x0001, 0x0002, 0x0010, 0x0011, 0x0012);
    let step = |label: &str, from: u16, to: u16| (label.to_string(), from, to);
    let steps = [
        (805, step("configuration", n316, e310)),
        (810, step("configuration", n316, e334)),
        (815, step("initialisation", n316, e310)),
        (820, step("initialisation", e310, e334)),
        (825, step("initialisation", e310, n318)),
        (830, step("initialisation", e334, n340)),
        (835, step("initialisation", e334, n342)),
        (840, step("barrier met", n316, e310)),
        (845, step("barrier met", n340, e334)),
        (850, step("barrier met", n342, e334)),
        (855, step("barrier met", e334, e310)),
        (860, step("barrier met", n318, e310)),
        (865, step("barrier satisfied", e310, e334)),
        (870, step("barrier satisfied", e310, n316)),
        (875, step("barrier satisfied", e310, n318)),
        (880, step("barrier satisfied", e334, n340)),
        (885, step("barrier satisfied", e334, n342)),
    ];
    assert_eq!(ladder, steps.map(|(_, step)| step));
}

#[test]
fn example_4_another_switch_is_master_and_engines_are_passed_by() {
    // 0x0010 is master; 0x0020 reports to it through switch 0x0000, wherever the engine there sits.
    let tree = Branch::leaf(0x0010, [0x0011, 0x0012])
        .over([Branch::leaf(0x0000, [0x0002, 0x0003]), Branch::leaf(0x0020, [0x0021, 0x0022, 0x0023])]);
    let collective = Collective::barrier(7, 0x0011, tree);
    for port in [EnginePort::Own, EnginePort::Node(0), EnginePort::Link(0), EnginePort::Link(1)] {
        let mut spec = Spec::figure_7();
        spec.switches[0].engine_port = port;
        let mut lab = Lab::new(spec, std::slice::from_ref(&collective));
        lab.set_up(std::slice::from_ref(&collective));
        lab.join(&collective, |_| (Vec::new(), TaskTime::Fixed(50)));
        lab.send(0x0011, SendCondition::At(SET_UP), [collective.command(1)]);
        let system = lab.run();
        for device in collective.tree.participants() {
            assert_eq!(node(&system, device).outcomes(7).len(), 1, "{device:#x} with the engine on {port:?}");
        }
        let log = events(&system);
        let between = |a: u16, b: u16| log.iter().any(|event| (event.from, event.to) == (a, b));
        assert!(between(0x0020, 0x0010) && between(0x0010, 0x0020) && !between(0x0020, 0x0000));
        let own: usize = 1 + 1 + 1 + 2 + 1;
        // Its own configuration, initialisation, command, two nodes and satisfied; nothing of 0x0020's.
        assert_eq!(engine(&system, 0x0000).registers().readings.frames_in as usize, own, "{port:?}");
    }
}

#[test]
fn example_5_two_contexts_of_figure_3_with_masters_on_both_boards() {
    // N: source 316 (0x0001), master engine 312 (0x0000), its whole board but node 318 (0x0002).
    let n = Collective::barrier(
        0x4e,
        0x0001,
        Branch::leaf(0x0000, [0x0001]).over([Branch::leaf(0x0010, [0x0011, 0x0012])]),
    );
    // M: source 318, master engine 336 (0x0020) on the other board; 318 itself takes no part.
    let m = Collective::barrier(
        0x4d,
        0x0002,
        Branch::leaf(0x0020, [0x0021, 0x0022]).over([Branch::leaf(0x0030, [0x0031, 0x0032])]),
    );
    let both = [n.clone(), m.clone()];
    let mut lab = Lab::new(Spec::figure_3(), &both);
    lab.set_up(&both);
    for collective in &both {
        lab.join(collective, |_| (Vec::new(), TaskTime::Fixed(70)));
        lab.send(collective.source, SendCondition::At(SET_UP), [collective.command(1)]);
    }
    let mut watcher = Part::of(m.like(0x0002, &lab.tables), Vec::new(), TaskTime::Never);
    watcher.watches = true;
    lab.node(0x0002).join(watcher);
    let system = lab.run();
    for collective in &both {
        for device in collective.tree.participants() {
            assert_eq!(node(&system, device).outcomes(collective.cc_id).len(), 1);
        }
    }
    assert_eq!(node(&system, 0x0002).outcomes(0x4d).len(), 1, "the source outside gets the consolidated response");
    // M's traffic stays on its board, except for the command and the response to its source.
    let crossing: Vec<Event> = events(&system)
        .into_iter()
        .filter(|event| event.cycle >= SET_UP && event.cc_id == 0x4d && !event.received)
        .filter(|event| (event.from < 0x20) != (event.to < 0x20))
        .collect();
    assert_eq!(crossing.iter().map(|event| (event.from, event.to)).collect::<Vec<_>>(), [(2, 0x20), (0x20, 2)]);
}

/// Frames of a context from one device to another, from a cycle on.
fn frames(system: &System, cc_id: u16, from: u16, to: u16) -> usize {
    let matches = |event: &&Event| {
        !event.received && event.cycle >= SET_UP && (event.cc_id, event.from, event.to) == (cc_id, from, to)
    };
    events(system).iter().filter(matches).count()
}

#[test]
fn example_6_two_boards_of_16_switches_with_32_nodes_each() {
    let spec = Spec::two_boards(16, 32);
    assert_eq!(spec.directory().dependency_cycle(&spec.ported_links()), None);
    let board = |first: usize, master: usize, without: u16| {
        let of = |k: usize| {
            let device = k as u16 * 0x40;
            Branch::leaf(device, (device + 1..=device + 32).filter(move |&node| node != without))
        };
        of(master).over((first..first + 16).filter(move |&k| k != master).map(of))
    };
    let n = Collective::barrier(1, 0x0001, board(0, 0, 0x0002));
    let m = Collective::barrier(2, 0x0002, board(16, 18, 0));
    let both = [n.clone(), m.clone()];
    let mut lab = Lab::new(spec, &both);
    lab.set_up(&both);
    for collective in &both {
        lab.join(collective, |device| (Vec::new(), TaskTime::Uniform { from: 10, to: 500, seed: u64::from(device) }));
        lab.send(collective.source, SendCondition::At(SET_UP), [collective.command(1)]);
    }
    let system = lab.run();
    for (collective, count) in [(&n, 16 * 32 - 1), (&m, 16 * 32)] {
        let participants = collective.tree.participants();
        assert_eq!(participants.len(), count);
        for device in participants {
            assert_eq!(node(&system, device).outcomes(collective.cc_id).len(), 1, "{device:#x}");
        }
        // Two frames away from the master and one towards it on every edge (paragraph 151, B-HI-4).
        let master = collective.tree.device;
        for engine in &collective.tree.engines {
            assert_eq!(frames(&system, collective.cc_id, master, engine.device), 2);
            assert_eq!(frames(&system, collective.cc_id, engine.device, master), 1);
        }
    }
    assert_eq!(frames(&system, 1, 0, 0x0001), 1, "the source is sent the result and not its command");
    assert_eq!(node(&system, 0x0002).mail().len(), 1, "the source outside is told");
}

#[test]
fn example_7_a_chain_of_engines_four_deep_and_deeper() {
    for depth in [4usize, 9] {
        let spec = Spec::regular(depth, 2, 0x10, (1..depth).map(|k| (k - 1, k)).collect());
        let tree = (0..depth).rev().fold(None, |below: Option<Branch>, k| {
            let device = k as u16 * 0x10;
            Some(Branch::leaf(device, [device + 1, device + 2]).over(below))
        });
        let collective = Collective::barrier(3, 1, tree.unwrap());
        let mut lab = Lab::new(spec, std::slice::from_ref(&collective));
        lab.set_up(std::slice::from_ref(&collective));
        lab.join(&collective, |_| (Vec::new(), TaskTime::Fixed(5)));
        lab.send(1, SendCondition::At(SET_UP), [collective.command(1)]);
        let system = lab.run();
        for k in 1..depth as u16 {
            let (above, below) = ((k - 1) * 0x10, k * 0x10);
            assert_eq!((frames(&system, 3, above, below), frames(&system, 3, below, above)), (2, 1));
        }
        assert!(collective.tree.participants().iter().all(|&device| node(&system, device).outcomes(3).len() == 1));
        assert!(engines(&system).all(|engine| engine.registers().readings.refused[Status::Duplicate as usize] == 0));
    }
}

#[test]
fn a_barrier_over_one_engine_takes_the_cycles_its_parts_say() {
    let collective = Collective::barrier(0, 1, Branch::leaf(0, [1, 2, 3]));
    for (link, stages) in [(1u16, 1u8), (7, 3)] {
        let mut spec = Spec::regular(1, 3, 0x10, Vec::new());
        spec.local.latency = link;
        spec.stages = stages;
        let mut lab = Lab::new(spec, std::slice::from_ref(&collective));
        lab.set_up(std::slice::from_ref(&collective));
        lab.join(&collective, |_| (Vec::new(), TaskTime::Fixed(40)));
        lab.send(1, SendCondition::At(SET_UP), [collective.command(1)]);
        let system = lab.run();
        // Node to engine: link and edge, switch, half link and edge, three more flits; switch and engine wait for the flit with
        // the address, nodes do not. Engine: next cycle the collective
        // engine takes it; a command leaves in that cycle, what a verdict releases two cycles later.
        // Frames that follow each other through one input of a switch lose its front stages each (credit_round_trip).
        let gap = [0, 0, 1, 2][usize::from(stages) - 1];
        let trip = u64::from(link) + 1 + (u64::from(stages) - 1) + 1 + 1 + 3;
        let (up, down) = (trip + 2, trip + 1);
        let at = |device: u16, message: Message, received: bool| {
            let mut log = events(&system);
            log.retain(|e| e.cycle >= SET_UP && e.message == message && e.received == received);
            log.iter().find(|event| (if received { event.to } else { event.from }) == device).unwrap().cycle - SET_UP
        };
        assert_eq!(at(0, Message::Command, true), up);
        assert_eq!(at(0, Message::Command, false), up + 1);
        // Two copies, four flits each; the second one is the last to be there.
        assert_eq!(at(3, Message::Command, true), up + 1 + 4 + down + gap);
        assert_eq!(at(3, Message::Contribution, false), up + 5 + down + gap + 40);
        assert_eq!(at(0, Message::Satisfied, false), 2 * up + down + 5 + gap + 40 + 3);
        assert_eq!(node(&system, 3).outcomes(0)[0].cycle - SET_UP, 2 * (up + down) + 48 + 8 + 3 * gap);
    }
}

#[test]
fn nodes_work_at_nothing_else_until_satisfied() {
    // Two contexts over the same nodes; node 2 is late in the first, so the second waits for it everywhere.
    let make = |cc_id| Collective::barrier(cc_id, 1, Branch::leaf(0, [1, 2]));
    let both = [make(0), make(1)];
    let finish = |blocks: bool| {
        let mut lab = Lab::new(Spec::regular(1, 2, 0x10, Vec::new()), &both);
        lab.set_up(&both);
        for collective in &both {
            for device in [1, 2] {
                let late = if device == 2 && collective.cc_id == 0 { 500 } else { 10 };
                let mut part = Part::of(collective.like(device, &lab.tables), Vec::new(), TaskTime::Fixed(late));
                part.blocks = blocks;
                lab.node(device).join(part);
            }
            lab.send(1, SendCondition::At(SET_UP), [collective.command(1)]);
        }
        let mut system = lab.build();
        run(&mut system, 1_000_000).unwrap();
        let end = |node: &Node, cc_id: u16| node.outcomes(cc_id)[0].cycle - SET_UP;
        (end(node(&system, 1), 0), end(node(&system, 1), 1))
    };
    let (first, second) = finish(true);
    assert!(first > 500 && second > first + 10, "{first} {second}");
    let (first, second) = finish(false);
    assert!(second < 100 && first > 500, "{first} {second}");
}
