//! R-ENG-8: one engine, every event behind every other one in consecutive cycles: contributions of two reductions, arming them again,
//! releases, expiries. With one port of the descriptor memory, with two and with four, the same comes out as when they are far
//! apart; only the cycles are others.

use watershed::arith::Quad;
use watershed::arith::quad::Opcode;
use watershed::armed::engine::TIMEOUT_UNIT_CYCLES;
use watershed::armed::{
    Address, Engine, EngineCfg, EngineCounts, Entry, Frame, Header, Keys, Owner, Portals, Tables, TablesCfg, Tokens,
};
use watershed::fabric::PortSet;
use watershed::fabric::routing::{Routes, Routing};
use watershed::fabric::topology::Mesh;

use crate::share;

const OWNER: Owner = Owner { root: 9, keys: Keys { vni: 3, cookie: 77 } };
/// Their first sequence numbers.
const FIRST: [u16; 2] = [5, 900];
/// Wait count of both reductions.
const WAIT: u32 = 3;

/// What happens to an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// A contribution to the reduction with this id, with so much.
    Comes(u8, u64),
    /// An arm frame for its next number.
    Arms(u8),
    /// A release of it.
    Releases(u8),
    /// The time of all that is armed is over in this cycle.
    Expires,
}

const EVENTS: [Event; 7] = [
    Event::Comes(0, 0x10),
    Event::Comes(1, 0x20),
    Event::Comes(0, 0x40),
    Event::Arms(0),
    Event::Arms(1),
    Event::Releases(0),
    Event::Expires,
];

fn frame(id: u8, header: Header, source: u32, rank: u32) -> Frame {
    Frame {
        address: Address { multicast_id: 3, reduction_id: id },
        source,
        vni: OWNER.keys.vni,
        portals: Portals::default(),
        rank,
        header: Header { cookie: OWNER.keys.cookie, ..header },
        lanes: [0; 4],
    }
}

fn tables(memory_ports: u8, stages: u8) -> Tables {
    let routes = Routes { routing: Routing::Mesh(Mesh { size: vec![1], concentration: 1 }), ends: Vec::new() };
    let engine = EngineCfg { descriptors: 2, memory_ports, stages, timeouts: [1; 4], ..EngineCfg::default() };
    let cfg = TablesCfg { entries: 1, engine, record: false, log: false };
    let mut tables = Tables::new(cfg, vec!["switch".into()], 4, routes);
    let children = PortSet::one(1) | PortSet::one(2);
    tables.insert(0, Entry { multicast_id: 3, parent: 0, children, wait_count: WAIT, owner: OWNER }).unwrap();
    tables
}

/// What an engine did: the frames that left it, in their order for each reduction, with their words and the sequence number, and its
/// counts.
#[derive(Debug, PartialEq, Eq)]
struct Done {
    left: [Vec<(u32, [u64; 4], u16)>; 2],
    counts: EngineCounts,
    active: usize,
}

/// Two reductions are armed, and have a contribution each; then come three events, so many cycles apart.
fn run(tables: &Tables, events: [Event; 3], apart: [u64; 2]) -> Done {
    let mut engine = Engine::new(&tables.cfg.engine, 0, 0, 1, Tokens::new(4));
    let mut seqnos = FIRST;
    let arm = |id: u8, seqno: u16| frame(id, Header { arm: true, seqno, ..Header::default() }, OWNER.root, 0);
    // What is contributed under a number stands in a lane of its own.
    let contribution = |id: u8, seqno: u16, word: u64| {
        let op = Opcode::from_number(0x14).unwrap().number;
        let lanes =
            std::array::from_fn(|lane| if lane == usize::from(seqno - FIRST[usize::from(id)]) { word } else { 0 });
        frame(id, Header { seqno, op, count: 1, ..Header::default() }, 1, 1).with_quad(Quad::of(lanes))
    };
    let mut left = [Vec::new(), Vec::new()];
    let mut step = |engine: &mut Engine, now: u64, down: Option<Frame>| {
        engine.step(tables, now, down.map(|frame| Ok((frame, 0))));
        while let Some((frame, _)) = engine.leave() {
            let of = (frame.header.count, frame.quad().lanes, frame.header.seqno);
            left[usize::from(frame.address.reduction_id)].push(of);
        }
    };
    // The deadlines of both are the same cycle whatever the distance: the second one is armed right behind the first.
    let armed = 100;
    step(&mut engine, armed, Some(arm(0, seqnos[0])));
    step(&mut engine, armed + 1, Some(arm(1, seqnos[1])));
    engine.climb(contribution(0, seqnos[0], 1), 0);
    engine.climb(contribution(1, seqnos[1], 2), 0);
    for now in armed + 2..armed + 30 {
        step(&mut engine, now, None);
    }
    // The events stand around the expiry, if it is one of them.
    let deadline = armed + TIMEOUT_UNIT_CYCLES + 1;
    let at = |which: usize| apart[..which].iter().sum::<u64>();
    let expiry = events.iter().position(|&event| event == Event::Expires);
    let first = expiry.map_or(200, |which| deadline - at(which));
    let last = first + at(2);
    for now in first.min(armed + 30)..=last + TIMEOUT_UNIT_CYCLES * 3 {
        let mut down = None;
        for (which, event) in events.iter().enumerate().filter(|(which, _)| first + at(*which) == now) {
            match *event {
                Event::Comes(id, word) => {
                    engine.climb(contribution(id, seqnos[usize::from(id)], word << (8 * which)), 0);
                }
                Event::Arms(id) => {
                    seqnos[usize::from(id)] += 1;
                    down = Some(arm(id, seqnos[usize::from(id)]));
                }
                Event::Releases(id) => {
                    let header = Header { seqno: seqnos[usize::from(id)], ..Header::default() };
                    down = Some(frame(id, header, OWNER.root, 0));
                }
                Event::Expires => {}
            }
        }
        step(&mut engine, now, down);
        if now > last + 40 && expiry.is_some() {
            break;
        }
    }
    let mut counts = *engine.counts();
    (counts.port_wait_cycles, counts.interlock_cycles) = (0, 0);
    Done { left, counts, active: engine.active() }
}

/// A frame that comes when time is up, or right before, may be in its reduction or too late for it, and one that comes right behind
/// arming is in the new one: the order of the events is kept, and that is all that may matter.
///
/// One in nine in `make test`, of the three events in every order with some number of ports and stages; all in `make soak`.
#[test]
fn every_event_behind_every_other_is_as_if_far_apart() {
    let far = 25;
    let (mut compared, mut waited) = (0, 0);
    let engines = [1, 2, 3, 6].into_iter().flat_map(|stages| [1, 2, 4].map(|ports| (stages, ports)));
    let engines: Vec<(u8, u8, Tables)> =
        engines.map(|(stages, ports)| (stages, ports, tables(ports, stages))).collect();
    let orders = EVENTS.len().pow(3);
    for case in share::one_in(9, 0..engines.len() * orders) {
        let (stages, ports, tables) = &engines[case / orders];
        let events = [49, 7, 1].map(|of| EVENTS[case % orders / of % EVENTS.len()]);
        if events.iter().filter(|&&event| event == Event::Expires).count() > 1 {
            continue;
        }
        let apart = run(tables, events, [far; 2]);
        for close in [[1, 1], [1, 2], [2, 1], [3, 1]] {
            let near = run(tables, events, close);
            compared += 1;
            assert_eq!(near.counts.armed, apart.counts.armed, "{events:?} {close:?} {ports} {stages}");
            same(&near, &apart, events, &format!("{events:?} {close:?}, {ports} ports, {stages} stages"));
            waited += u64::from(near.left != apart.left);
        }
    }
    assert!(compared > share::of(9, 10_000), "{compared}");
    println!("{compared} sequences, {waited} in which frames were too late for their reduction");
}

/// Every contribution that came leaves once, in a frame of its reduction, or is in one that was cleared; counts and words agree.
fn same(near: &Done, apart: &Done, events: [Event; 3], what: &str) {
    let is_clear = |event: &Event| matches!(event, Event::Arms(_) | Event::Releases(_));
    if !events.iter().any(|event| is_clear(event) || *event == Event::Expires) {
        assert_eq!(near, apart, "{what}");
    }
    for id in 0..2 {
        let left = |done: &Done| done.left[usize::from(id)].clone();
        let sum = |done: &Done| {
            let all = left(done);
            let word = |lane: usize| all.iter().map(|of| of.1[lane]).sum::<u64>();
            (all.iter().map(|of| of.0).sum::<u32>(), std::array::from_fn::<u64, 4, _>(word))
        };
        if !events.iter().any(|&event| event == Event::Arms(id) || event == Event::Releases(id)) {
            assert_eq!(sum(near), sum(apart), "{what}: nothing is lost, and nothing is counted twice");
        }
        // What a frame brings is what its count says: one a contribution, of those that came under its number.
        for (count, lanes, seqno) in left(near) {
            let lane = usize::from(seqno - FIRST[usize::from(id)]);
            let others = lanes.iter().enumerate().filter(|&(at, _)| at != lane).all(|(_, &word)| word == 0);
            assert!(others && count <= WAIT && lanes[lane].count_ones() == count, "{what}: {:x?}", near.left);
        }
    }
    assert_eq!(near.counts.overflows + near.counts.mismatches, 0, "{what}");
}

#[test]
fn an_entry_with_a_wait_count_of_zero_arms_nothing() {
    // R-TAB-1: a plain multicast, whatever the frame says.
    for (wait_count, armed) in [(2, 1), (0, 0)] {
        let mut tables = tables(2, 3);
        tables.remove(0, 3);
        let children = PortSet::one(1) | PortSet::one(2);
        tables.insert(0, Entry { multicast_id: 3, parent: 0, children, wait_count, owner: OWNER }).unwrap();
        let mut engine = Engine::new(&tables.cfg.engine, 0, 0, 1, Tokens::new(4));
        let arm = frame(0, Header { arm: true, seqno: 5, ..Header::default() }, OWNER.root, 0);
        engine.step(&tables, 10, Some(Ok((arm, 0))));
        engine.step(&tables, 11, None);
        assert_eq!((engine.counts().armed, engine.active()), (armed, armed as usize), "wait count {wait_count}");
        assert_eq!(engine.counts().down_refused, 0);
    }
}
