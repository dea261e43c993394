//! Trees of packet engines as their contexts will be initialised.

use std::collections::BTreeSet;

use serde_json::{Map, json};
use watershed_fabric::topology::Layout;
use watershed_pbv::plan::{Branch, Collective};
use watershed_pbv::routes::Directory;
use watershed_pbv::tables::engine_base;

use super::build::PbvBuild;
use super::config::Pbv;
use crate::trees::{EngineTree, FarEnds};

/// What frames do to these engines.
const KIND: &str = "addressed by packets";

/// The trees of all collectives of a system, the links of which are those of a layout.
pub(crate) fn of<S>(pbv: &Pbv, layout: &Layout, directory: &Directory, built: &PbvBuild<S>) -> Vec<EngineTree> {
    let far = FarEnds::of(&layout.plan);
    let all = pbv.collectives.iter().zip(&built.collectives);
    all.map(|(of, collective)| {
        let shown = Shown { collective, built, far: &far, directory, stride: pbv.device_stride };
        let note =
            collective.multicast.then(|| "its source's data goes down to all nodes; nothing is reduced".to_owned());
        EngineTree { job: of.name.clone(), name: of.name.clone(), note, ..shown.tree() }
    })
    .collect()
}

struct Shown<'a, S> {
    collective: &'a Collective,
    built: &'a PbvBuild<S>,
    far: &'a FarEnds<'a>,
    directory: &'a Directory,
    /// Device IDs of a switch.
    stride: u32,
}

impl<S> Shown<'_, S> {
    fn tree(&self) -> EngineTree {
        let of = self.collective;
        let (mut lines, mut sends) = (Vec::new(), BTreeSet::new());
        self.lines(&of.tree, (0, String::new()), &mut lines);
        for branch in of.tree.preorder() {
            let to = u32::from(branch.device) << 16 | u32::from(engine_base(of.plane));
            let below = branch.engines.iter().map(|engine| engine.device).chain(branch.nodes.iter().copied());
            below.for_each(|device| self.way(u32::from(device) / self.stride, to, &mut sends));
        }
        EngineTree {
            job: String::new(),
            name: String::new(),
            kind: KIND,
            key: ("context", Some(of.cc_id)),
            root: self.name(of.tree.device).to_owned(),
            participants: of.tree.participants().len(),
            depth: of.tree.height() as usize + 1,
            engines: of.tree.preorder().len(),
            lines,
            entries: of.tree.preorder().into_iter().map(|branch| self.entry(branch)).collect(),
            note: None,
            sends: sends.into_iter().collect(),
            root_switch: Some(u32::from(of.tree.device) / self.stride),
        }
    }

    /// The links of switches that a response takes from a switch to an engine.
    fn way(&self, from: u32, to: u32, sends: &mut BTreeSet<(u32, u16)>) {
        let goal = (to >> 16) / self.stride;
        let mut switch = from;
        while switch != goal {
            let port = self.directory.port(switch, to);
            let Some((next, _, _)) = self.far.at(switch, port) else { break };
            // A way that comes back has no end.
            if !sends.insert((switch, port)) {
                break;
            }
            switch = next;
        }
    }

    fn name(&self, device: u16) -> &str {
        self.built.names.get(&device).map_or("?", String::as_str)
    }

    /// The number of a device in the table of an engine.
    fn number(&self, branch: &Branch, device: u16) -> String {
        let entry = self.built.tables.entry((branch.device, self.collective.plane), device);
        entry.map_or_else(String::new, |entry| format!("{entry} <- "))
    }

    fn lines(&self, branch: &Branch, at: (usize, String), lines: &mut Vec<(usize, String)>) {
        let (depth, how) = at;
        let (name, mask) = (self.name(branch.device), self.collective.mask(branch, &self.built.tables));
        let does = if self.collective.forwards.contains(&branch.device) {
            "hands on what comes, waits for"
        } else {
            "waits for"
        };
        lines.push((depth, format!("{how}{name}: {does} PBV {mask:#x}, {} bits", mask.count_ones())));
        for below in &branch.engines {
            self.lines(below, (depth + 1, self.number(branch, below.device)), lines);
        }
        for &node in &branch.nodes {
            lines.push((depth + 1, format!("{}{}", self.number(branch, node), self.name(node))));
        }
    }

    /// What the context of an engine is initialised with, and the entries of its PBV table that it needs.
    fn entry(&self, branch: &Branch) -> (String, Map<String, serde_json::Value>) {
        let of = self.collective;
        let bits = branch.engines.iter().map(|engine| engine.device).chain(branch.nodes.iter().copied());
        let number = |device: u16| self.built.tables.entry((branch.device, of.plane), device);
        let entries: Map<String, serde_json::Value> =
            bits.filter_map(|device| Some((number(device)?.to_string(), json!(self.name(device))))).collect();
        let mut fields = Map::new();
        fields.insert("address".to_owned(), json!(format!("{:04x}_{:04x}", branch.device, engine_base(of.plane))));
        fields.insert("context".to_owned(), json!(of.cc_id));
        fields.insert("pbv".to_owned(), json!(format!("{:#x}", of.mask(branch, &self.built.tables))));
        fields.insert("entries".to_owned(), json!(entries));
        (self.name(branch.device).to_owned(), fields)
    }
}
