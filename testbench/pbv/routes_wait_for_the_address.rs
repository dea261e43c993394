//! Switches and engines look at bits that have arrived: the address of a frame stands in its second flit, so each of them on
//! the way holds the head until that is there, whatever the width of the links (B-STR-2).

use watershed::fabric::topology::LinkParams;
use watershed::pbv::node::{Node, SendCondition};
use watershed::pbv::packet::{Header, Message, Packet};
use watershed::pbv::system::{EnginePort, Spec, node, run};

/// Cycles from the first flit of a frame of `words` words at its sender to the last one at its receiver, over a chain.
fn measured(spec: &Spec, words: usize) -> u64 {
    measured_train(spec, words, 1)
}

/// The same over so many frames one behind the other.
fn measured_train(spec: &Spec, words: usize, frames: usize) -> u64 {
    let last = spec.switches.len() as u16 - 1;
    let (from, to) = (spec.switches[0].nodes[0], spec.switches[usize::from(last)].nodes[1]);
    let frame = Packet::of(Header::new(Message::ReadReply, from, to, 0), vec![7; words]);
    let mut sender = Node::new(from);
    for number in 0..frames {
        sender.then(if number == 0 { SendCondition::At(100) } else { SendCondition::Next }, frame.clone());
    }
    let mut system = spec.build(vec![sender, Node::new(to)]);
    run(&mut system, 100_000).unwrap();
    assert!(system.at_rest());
    let sent = node(&system, from).log.events().iter().find(|event| !event.received).unwrap().cycle;
    assert_eq!(node(&system, to).mail().len(), frames, "all are there");
    node(&system, to).mail().last().unwrap().0 - sent
}

fn chain(switches: usize) -> Spec {
    Spec::regular(switches, 2, 0x10, (1..switches).map(|at| (at - 1, at)).collect())
}

#[test]
fn a_switch_holds_a_head_until_its_address_is_there() {
    // A word a cycle, and links of 32, 16 and 8 bits a cycle; a frame of 4 flits and a long one.
    for width in [1, 2, 4, 8] {
        for (switches, latency, stages, words) in
            [(1, 1, 1, 0), (2, 5, 1, 0), (4, 1, 1, 40), (3, 2, 2, 9), (3, 2, 4, 0)]
        {
            let mut spec = chain(switches);
            spec.link = LinkParams { latency, cycles_per_flit: width };
            (spec.local, spec.stages) = (spec.link, stages);
            let (hops, flits, width) = (switches as u64, 4 + words as u64, u64::from(width));
            let link = u64::from(latency) + width;
            // A flit behind the head comes the address, which goes through the stages of the switch.
            let switch = width + u64::from(stages) - 1;
            let expected = (hops + 1) * link + hops * switch + (flits - 1) * width;
            assert_eq!(measured(&spec, words), expected, "{switches} switches, {latency}, {stages}, {words}, {width}");
        }
    }
}

#[test]
fn an_engine_in_the_wire_holds_a_head_until_its_address_is_there() {
    for width in [1, 2, 4] {
        for inner in [1, 3] {
            let mut spec = chain(2);
            spec.link = LinkParams { latency: 2, cycles_per_flit: width };
            (spec.local, spec.inner) = (spec.link, inner);
            let without = measured(&spec, 3);
            spec.switches[0].engine_port = EnginePort::Link(0);
            let with = measured(&spec, 3);
            // The half link, which is as wide as a flit, and a cycle until the flit with the address is there: the switch has waited for it,
            // and sends it right behind the head.
            assert_eq!(with - without, u64::from(inner) + 1 + 1, "{width} {inner}");
        }
    }
}

#[test]
fn buffers_of_the_credit_loop_keep_frames_moving() {
    // What a head waits for its address is part of the loop: frames that follow each other leave no gap, and with a flit less
    // they do. With two flits they still move.
    let mut spec = chain(3);
    spec.link = LinkParams { latency: 4, cycles_per_flit: 1 };
    spec.local = spec.link;
    let train = |spec: &Spec| measured_train(spec, 0, 40);
    let whole = 4 * 5 + 3 + 40 * 4 - 1;
    assert_eq!(train(&spec), whole);
    let mut with = |buffer: u16| {
        spec.buffer = Some(buffer);
        train(&spec)
    };
    assert_eq!(with(2 * 4 + 1 + 1 + 1), whole);
    assert!(with(2 * 4 + 1 + 1) > whole);
    assert!(with(2) > 3 * whole);
}
