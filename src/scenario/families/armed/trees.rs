//! Multicast trees as the agent writes them before a run, or will write them during it.

use std::collections::BTreeMap;

use serde_json::{Map, json};
use watershed_armed::SpanningTree;
use watershed_armed::agent::Row;
use watershed_fabric::topology::Layout;

use super::build::ArmedBuild;
use super::config::{Armed, Reduction};
use crate::trees::{EngineTree, FarEnds};

/// What frames do to these engines.
const KIND: &str = "armed by frames";

/// The trees of all reductions of a system, the links of which are those of a layout.
pub(crate) fn of<S>(armed: &Armed, layout: &Layout, built: &ArmedBuild<S>) -> Vec<EngineTree> {
    let far = FarEnds::of(&layout.plan);
    let mut all = Vec::new();
    for (reduction, plan) in armed.reductions.iter().zip(&built.reductions) {
        if plan.trees.is_empty() {
            let why =
                plan.refused.as_ref().map_or_else(|| "reduces in software".into(), |why| format!("in software: {why}"));
            all.push(EngineTree::absent(&reduction.name, KIND, why));
        }
        for (number, tree) in plan.trees.iter().enumerate() {
            let note = match (plan.job.trees.get(number), &plan.no_second) {
                (None, _) => Some("the agent writes it when it is asked to, under an id that is free then".to_owned()),
                (Some(_), Some(why)) => Some(format!("no second tree: {why}")),
                _ => None,
            };
            let id = plan.job.trees.get(number).copied();
            let shown =
                Shown { reduction, tree, far: &far, engines: &built.engines, unavailable: &armed.engine.unavailable };
            let name = if number == 0 { reduction.name.clone() } else { format!("{}.{}", reduction.name, number + 1) };
            all.push(EngineTree { name, note, ..shown.tree(layout, id) });
        }
    }
    all
}

struct Shown<'a> {
    reduction: &'a Reduction,
    tree: &'a SpanningTree,
    far: &'a FarEnds<'a>,
    engines: &'a BTreeMap<(u32, u16), usize>,
    /// Switches whose engines take no frame.
    unavailable: &'a [String],
}

impl Shown<'_> {
    /// Whether there is an engine at a port that takes frames.
    fn reduces(&self, place: (u32, u16)) -> bool {
        self.engines.contains_key(&place) && !self.unavailable.iter().any(|name| name == self.far.name(place.0))
    }

    fn tree(&self, layout: &Layout, id: Option<u16>) -> EngineTree {
        let rows: BTreeMap<u32, &Row> = self.tree.rows.iter().map(|row| (row.switch, row)).collect();
        let first = self.tree.rows[0].switch;
        let mut lines = Vec::new();
        self.lines(&rows, first, (0, String::new()), &mut lines);
        let mut sends: Vec<(u32, u16)> = self.tree.climbs().collect();
        sends.sort_unstable();
        let root = layout.plan.nodes.len() - layout.ends.len() + self.reduction.root as usize;
        EngineTree {
            job: self.reduction.name.clone(),
            name: String::new(),
            kind: KIND,
            key: ("multicast_id", id),
            root: self.far.name(root as u32).to_owned(),
            participants: self.tree.leaves as usize + 1,
            depth: self.tree.rows.iter().map(|row| row.depth as usize + 1).max().unwrap_or(0),
            engines: self.tree.climbs().filter(|&place| self.reduces(place)).count(),
            lines,
            entries: self.tree.rows.iter().map(|row| (self.far.name(row.switch).to_owned(), entry(row, id))).collect(),
            note: None,
            sends,
            root_switch: Some(first),
        }
    }

    fn lines(&self, rows: &BTreeMap<u32, &Row>, switch: u32, at: (usize, String), lines: &mut Vec<(usize, String)>) {
        let row = rows[&switch];
        let (depth, how) = at;
        let name = self.far.name(switch);
        let does = if self.reduces((switch, row.parent)) { "reduces" } else { "passes on" };
        let ports: Vec<String> = row.children.iter().map(|port| format!("P{port}")).collect();
        let (from, to, waits) = (ports.join(" "), row.parent, row.wait_count);
        lines.push((depth, format!("{how}{name}: {does} {from} to P{to}, waits for {waits}")));
        for port in &row.children {
            let Some((node, far_port, level)) = self.far.at(switch, port) else { continue };
            if rows.contains_key(&node) {
                self.lines(rows, node, (depth + 1, format!("P{port} <- P{far_port} {level} ")), lines);
            } else {
                lines.push((depth + 1, format!("P{port} <- {}", self.far.name(node))));
            }
        }
    }
}

/// An entry of a multicast table.
fn entry(row: &Row, id: Option<u16>) -> Map<String, serde_json::Value> {
    let children: Vec<u16> = row.children.iter().collect();
    let mut fields = Map::new();
    fields.extend(id.map(|id| ("multicast_id".to_owned(), json!(id))));
    fields.insert("parent".to_owned(), json!(row.parent));
    fields.insert("children".to_owned(), json!(children));
    fields.insert("wait_count".to_owned(), json!(row.wait_count));
    fields
}
