//! Systems with collectives on them, ready to run.

use std::collections::BTreeMap;

use watershed::pbv::node::{Node, Part, TaskTime, When};
use watershed::pbv::packet::Packet;
use watershed::pbv::plan::{Collective, Tables, tables};
use watershed::pbv::system::{Spec, System, engines, run};

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
    pub fn send(&mut self, source: u16, when: When, frames: impl IntoIterator<Item = Packet>) {
        for (k, frame) in frames.into_iter().enumerate() {
            self.node(source).then(if k == 0 { when } else { When::Next }, frame);
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
        self.send(collectives[0].source, When::Next, frames);
        for collective in collectives {
            let frame = collective.initialise(&self.tables);
            self.send(collective.source, When::At(SET_UP / 2), [frame]);
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
