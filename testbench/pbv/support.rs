//! Systems with collectives on them, ready to run.

use std::collections::BTreeMap;

use watershed::pbv::ce::{Ce, CeCfg, CeCx, Hazard, Outgoing};
use watershed::pbv::node::{Node, Part, SendCondition, TaskTime};
use watershed::pbv::packet::{ConfigRecord, Packet, Status};
use watershed::pbv::plan::{Collective, Tables, tables};
use watershed::pbv::system::{Spec, System, engines, run};
use watershed::pbv::tables::PbvTable;

/// A system and what its nodes are to do.
pub struct Lab {
    pub spec: Spec,
    pub tables: Tables,
    pub nodes: BTreeMap<u16, Node>,
}

impl Lab {
    pub fn new(spec: Spec, collectives: &[Collective]) -> Lab {
        let devices = spec.switches.iter().flat_map(|switch| switch.nodes.iter().copied());
        let nodes = devices.map(|device| (device, Node::new(device))).collect();
        Lab { spec, tables: tables(collectives).unwrap(), nodes }
    }

    pub fn node(&mut self, device: u16) -> &mut Node {
        self.nodes.get_mut(&device).unwrap()
    }

    /// The source sends these frames one after the other.
    pub fn send(&mut self, source: u16, when: SendCondition, frames: impl IntoIterator<Item = Packet>) {
        for (k, frame) in frames.into_iter().enumerate() {
            self.node(source).then(if k == 0 { when } else { SendCondition::Next }, frame);
        }
    }

    /// Everybody in a collective takes part with the words and the task time that `of` gives.
    pub fn join(&mut self, collective: &Collective, of: impl Fn(u16) -> (Vec<u64>, TaskTime)) {
        for device in collective.tree.participants() {
            let (words, task) = of(device);
            let part = Part::of(collective.like(device, &self.tables), words, task);
            self.node(device).join(part);
        }
    }

    /// Tables by one frame a switch, contexts through their masters, all from the collectives' sources, from cycle 0 on.
    pub fn set_up(&mut self, collectives: &[Collective]) {
        let frames = self.tables.frames(collectives[0].source);
        self.send(collectives[0].source, SendCondition::Next, frames);
        for collective in collectives {
            let frame = collective.initialise(&self.tables);
            self.send(collective.source, SendCondition::At(SET_UP / 2), [frame]);
        }
    }

    pub fn build(&mut self) -> System {
        self.spec.build(std::mem::take(&mut self.nodes).into_values().collect())
    }

    pub fn run(&mut self) -> System {
        let mut system = self.build();
        run(&mut system, 10_000_000).unwrap();
        assert!(system.at_rest(), "every credit is back");
        for engine in engines(&system) {
            assert_eq!(engine.ce().tracker().disagreement(), None);
        }
        system
    }
}

/// A cycle in which every set-up is over.
pub const SET_UP: u64 = 20_000;

/// A collective engine on its own: what it was given, what it sent, what it refused.
pub struct Bench {
    pub ce: Ce,
    pub table: PbvTable,
    pub now: u64,
    pub sent: Vec<Outgoing>,
    pub refused: Vec<Status>,
    /// Devices that it noted as missing, by its registers: context, device, status.
    pub missing: Vec<(u16, u16, Status)>,
}

impl Bench {
    pub fn new(hazard: Hazard, table: &ConfigRecord) -> Bench {
        let mut ce = Ce::new(CeCfg { hazard, ..CeCfg::default() });
        ce.place(table.device, 0xc000);
        Bench::of(ce, table)
    }

    pub fn of(ce: Ce, record: &ConfigRecord) -> Bench {
        let mut table = PbvTable::default();
        table.configure(record);
        Bench { ce, table, now: 0, sent: Vec::new(), refused: Vec::new(), missing: Vec::new() }
    }

    /// The same engine from cycle 0 on, with nothing sent or refused.
    pub fn again(&self) -> Bench {
        let (ce, table) = (self.ce.clone(), self.table.clone());
        Bench { ce, table, now: 0, sent: Vec::new(), refused: Vec::new(), missing: Vec::new() }
    }

    pub fn tick(&mut self, packet: Option<Packet>) {
        let (refused, missing) = (&mut self.refused, &mut self.missing);
        let mut cx = CeCx {
            table: &self.table,
            now: self.now,
            full: false,
            leaving: &|_| false,
            out: &mut self.sent,
            refuse: &mut |status| refused.push(status),
            watched: &mut |_| (),
            missing: &mut |cc_id, device, status| missing.push((cc_id, device, status)),
        };
        self.ce.tick(packet, &mut cx);
        self.now += 1;
    }

    /// Offers a message until it is taken.
    pub fn give(&mut self, packet: &Packet) {
        for _ in 0..200 {
            if self.ce.ready(&packet.header) {
                return self.tick(Some(packet.clone()));
            }
            self.tick(None);
        }
        panic!("{:?} is never taken", packet.header);
    }

    /// Until nothing is under way in it.
    pub fn rest(&mut self) {
        for _ in 0..200 {
            self.tick(None);
            if self.ce.is_idle() {
                return;
            }
        }
        panic!("it is never idle");
    }
}
