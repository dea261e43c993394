//! The memories of an engine have ports: what touches many entries takes the cycles that these need, and each bound on what
//! waits in an engine acts, to the cycle (B-STR-1, B-CE-3, B-CE-5, B-ERR-1).

use watershed::arith::{DType, Op};
use watershed::pbv::ce::{Ce, CeCfg, CeCx, Outgoing};
use watershed::pbv::node::{Node, SendCondition};
use watershed::pbv::packet::{Body, ConfigRecord, Header, InitRecord, Message, Packet};
use watershed::pbv::system::{Spec, engine, events, node, run};
use watershed::pbv::tables::PbvTable;

/// The engine: device 0x10 with nodes from 0x11 on.
const ME: u16 = 0x10;

struct Bench {
    ce: Ce,
    table: PbvTable,
    now: u64,
    sent: Vec<(u64, Outgoing)>,
}

impl Bench {
    /// An engine at rest with a context of so many nodes and words.
    fn new(cfg: CeCfg, nodes: u16, words: u16, pbv_order: bool) -> Bench {
        let mut table = PbvTable::default();
        table.configure(&ConfigRecord::of(ME, (1..=nodes).map(|node| ME + node).collect(), 0));
        let mut ce = Ce::new(cfg);
        ce.place(ME, 0xc000);
        let mut bench = Bench { ce, table, now: 0, sent: Vec::new() };
        bench.initialise(0, nodes, words, pbv_order);
        bench
    }

    fn initialise(&mut self, cc_id: u16, nodes: u16, words: u16, pbv_order: bool) {
        let all = (1 << nodes) - 1;
        let record = InitRecord { words, master: true, pbv_order, ..InitRecord::barrier(ME, all) };
        let packet = Packet {
            header: header(Message::Initialisation, 1, cc_id, words),
            body: Body::Initialisation(vec![record]),
        };
        self.give(&packet);
        self.rest();
    }

    fn tick(&mut self, packet: Option<Packet>) {
        let mut out = Vec::new();
        let mut cx = CeCx {
            table: &self.table,
            now: self.now,
            full: false,
            leaving: &|_| false,
            out: &mut out,
            refuse: &mut |status| panic!("{status}"),
            watched: &mut |_| (),
            missing: &mut |_, _, _| (),
        };
        self.ce.tick(packet, &mut cx);
        self.sent.extend(out.into_iter().map(|outgoing| (self.now, outgoing)));
        self.now += 1;
    }

    /// Offers a message until it is taken; in which cycle it is.
    fn give(&mut self, packet: &Packet) -> u64 {
        while !self.ce.ready(&packet.header) {
            self.tick(None);
        }
        self.tick(Some(packet.clone()));
        self.now - 1
    }

    fn rest(&mut self) {
        for _ in 0..2000 {
            self.tick(None);
        }
        assert!(self.ce.is_idle());
        self.sent.clear();
    }

    /// The cycle in which a message of this kind was sent.
    fn sent(&mut self, message: Message) -> u64 {
        while self.now < 100_000 {
            if let Some((cycle, _)) = self.sent.iter().find(|(_, sent)| sent.packet.header.message == message) {
                return *cycle;
            }
            self.tick(None);
        }
        panic!("no {message}");
    }
}

fn header(message: Message, from: u16, cc_id: u16, words: u16) -> Header {
    let mut header = Header::new(message, from, ME, 0xc000);
    let (op, run) = (if words == 0 { Op::Barrier } else { Op::Sum }, u32::from(message != Message::Initialisation));
    (header.cc_id, header.run, header.op, header.dtype, header.dmu_id) = (cc_id, run, op, DType::U64, 1);
    header.p_id = (from.max(ME + 1) - ME - 1) as u8;
    header
}

fn command(cc_id: u16, words: u16) -> Packet {
    Packet::bare(header(Message::Command, 1, cc_id, words))
}

fn contribution(node: u16, words: u16) -> Packet {
    Packet::of(header(Message::Contribution, ME + node, 0, words), vec![u64::from(node); usize::from(words)])
}

fn cfg(memory_ports: u8) -> CeCfg {
    CeCfg { memory_ports, ..CeCfg::default() }
}

#[test]
fn a_context_is_cleared_before_its_first_word_enters() {
    // Twelve words; the contribution is taken in the cycle behind the command, its words enter two later at the earliest, and
    // the last one is written four cycles after it entered.
    for (ports, clear) in [(2, 6), (3, 4), (4, 3)] {
        let mut bench = Bench::new(cfg(ports), 1, 12, false);
        let begun = bench.give(&command(0, 12));
        assert_eq!(bench.give(&contribution(1, 12)), begun + 1);
        assert_eq!(bench.sent(Message::Satisfied), begun + clear.max(3) + 11 + 4, "{ports} ports");
    }
    // With one port four words enter, four are written, and so on.
    let mut bench = Bench::new(cfg(1), 1, 12, false);
    let begun = bench.give(&command(0, 12));
    assert_eq!(bench.give(&contribution(1, 12)), begun + 1);
    assert_eq!(bench.sent(Message::Satisfied), begun + 12 + 2 * 8 + 3 + 4);
}

#[test]
fn one_port_of_the_tracking_store_reads_or_writes() {
    for (ports, taken) in [(1, [0, 1, 4, 5, 8]), (2, [0, 1, 2, 3, 4])] {
        let mut bench = Bench::new(cfg(ports), 5, 0, false);
        bench.give(&command(0, 0));
        bench.rest();
        let begun = bench.now;
        assert_eq!([1, 2, 3, 4, 5].map(|node| bench.give(&contribution(node, 0)) - begun), taken, "{ports} ports");
        assert_eq!(bench.sent(Message::Satisfied), begun + taken[4] + 2);
    }
}

#[test]
fn the_scan_of_the_deadlines_takes_the_cycles_of_its_store() {
    // Only the context in place 33 of 40 has a watchdog running.
    for ports in 1..=4 {
        let mut bench = Bench::new(CeCfg { contexts: 40, ..cfg(ports) }, 2, 0, false);
        for cc_id in 1..34 {
            bench.initialise(cc_id, 2, 0, false);
        }
        (bench.table.timeout, bench.table.retries) = (100, 1);
        let begun = bench.give(&command(33, 0));
        assert_eq!(bench.sent(Message::Retry), begun + 100 + 33 / u64::from(ports), "{ports} ports");
    }
}

#[test]
fn kept_words_are_written_and_read_one_after_the_other() {
    for ports in [2, 3, 4] {
        let mut bench = Bench::new(cfg(ports), 2, 10, true);
        bench.give(&command(0, 10));
        bench.give(&contribution(2, 10));
        for _ in 0..50 {
            bench.tick(None);
        }
        let last = bench.give(&contribution(1, 10));
        // The verdict, the words written, those of both read, the unit.
        let written = 10u64.div_ceil(u64::from(ports));
        assert_eq!(bench.sent(Message::Satisfied), last + 2 + written + 19 + 4, "{ports} ports");
    }
}

#[test]
fn feeds_have_a_bound() {
    for bound in [1, 2, 5] {
        let mut bench = Bench::new(CeCfg { feeds: bound, ..cfg(2) }, 12, 20, false);
        bench.give(&command(0, 20));
        bench.rest();
        let begun = bench.now;
        let taken: Vec<u64> = (1..=12).map(|node| bench.give(&contribution(node, 20)) - begun).collect();
        // Two more are in the tracking pipeline when the first ones wait; three have gone in before there is room again.
        let first = usize::from(bound) + 2;
        assert_eq!(taken[..first], (0..first as u64).collect::<Vec<_>>(), "{bound}");
        assert_eq!(taken[first], 2 + 3 * 20, "{bound}");
    }
}

/// A system of one switch whose engine has so many ports; its node sends these frames one after the other.
fn alone(mut spec: Spec, frames: Vec<Packet>) -> watershed::pbv::system::System {
    let mut sender = Node::new(1);
    for (number, frame) in frames.into_iter().enumerate() {
        sender.then(if number == 0 { SendCondition::At(10) } else { SendCondition::Next }, frame);
    }
    spec.monitors = true;
    let mut system = spec.build(vec![sender]);
    run(&mut system, 1_000_000).unwrap();
    assert!(system.at_rest());
    system
}

fn read(registers: u16) -> Packet {
    let mut header = Header::new(Message::Read, 1, 0, 0xc000);
    header.p_count = registers;
    Packet::bare(header)
}

#[test]
fn a_configuration_frame_writes_128_entries() {
    for ports in [1u8, 2, 3, 4] {
        let mut spec = Spec::regular(1, 2, 0x10, Vec::new());
        spec.ce.memory_ports = ports;
        let record = ConfigRecord::of(0, vec![1, 2], 0);
        let header = Header::new(Message::Configuration, 1, 0, 0xc000);
        let frame = Packet { header, body: Body::Configuration(vec![record]) };
        let system = alone(spec, vec![frame, read(2)]);
        let all = events(&system);
        let came = all.iter().find(|event| event.received && event.message == Message::Configuration).unwrap().cycle;
        let answered = all.iter().find(|event| !event.received && event.message == Message::ReadReply).unwrap().cycle;
        assert_eq!(answered, came + 128u64.div_ceil(u64::from(ports)) + 1, "{ports} ports");
    }
}

#[test]
fn output_queue_and_inbox_have_bounds_that_the_port_sees() {
    // Two hundred reads of 64 registers: answers of 68 flits each behind questions of four.
    let last_sent = |inbox: usize, output: u32| {
        let mut spec = Spec::regular(1, 2, 0x10, Vec::new());
        (spec.inbox, spec.output) = (inbox, output);
        let system = alone(spec, vec![read(64); 200]);
        assert_eq!(node(&system, 1).mail().len(), 200, "nothing is lost");
        let peak = engine(&system, 0).registers().readings.queue_peak;
        assert!(output > 200 || peak == output + 1, "{peak}: as many as are allowed, and the one that is leaving");
        events(&system).iter().rfind(|event| !event.received && event.message == Message::Read).unwrap().cycle
    };
    let free = 10 + 199 * 4;
    assert_eq!(last_sent(1024, 256), free);
    // What does not fit the queue waits in the inbox, which has room for all.
    assert_eq!(last_sent(1024, 4), free);
    // A smaller one lets the port wait: a frame of four flits comes in for each that is answered.
    let (small, smaller) = (last_sent(600, 4), last_sent(532, 4));
    assert_eq!(smaller - small, 17 * 68, "17 frames fewer have room");
    assert_eq!(last_sent(600, 8) + 4 * 68, small, "four answers more have room");
}
