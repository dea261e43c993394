//! The embeddings of a scenario, read back from the registers for people and programs (requirements P-EMB-1, P-EMB-3):
//! tree, root, depth, links used, and the registers themselves in the notation of a scenario.

use std::collections::{BTreeMap, BTreeSet};

use super::build::{BuildOptions, BuiltCollective, build, layout};
use super::config::{CollectiveKind, Family};
use super::families::mixed;
use super::{Loaded, Problems, segments};
use crate::run::system::{PiumaSystem as System, Views as _};
use watershed_fabric::Plan;
use watershed_piuma::{REQUEST, RESPONSE};
pub use watershed_scenario_interface::embedding::{Embedding, json};
use watershed_scenario_interface::embedding::{Inputs, LISTED};

/// The link at a port.
#[derive(Debug, Clone, Copy)]
struct Link {
    at: (u32, u16),
    far: (u32, u16),
    latency: u16,
    level: u8,
}

/// The embeddings of all collectives of a scenario.
///
/// # Errors
/// What is wrong with the scenario, or with an embedding.
pub fn all(loaded: &Loaded) -> Result<Vec<Embedding>, Problems> {
    if loaded.scenario.family == Family::Mixed {
        let built = mixed::build::assembled(loaded)?;
        let system = watershed_mixed::simulation(built.system);
        // Without the engines of other families in the wires.
        let plan = layout(loaded)?.plan;
        return Ok(built
            .piuma
            .map_or_else(Vec::new, |ready| of(loaded, system.piuma(), Some(&plan), &ready.collectives)));
    }
    let ready = build(loaded, BuildOptions { no_monitors: true, ..BuildOptions::default() })?;
    let system = watershed_piuma::simulation(ready.system);
    Ok(of(loaded, system.piuma(), None, &ready.collectives))
}

/// On the links of a system, or of a plan of the same nodes without what else is in its wires.
fn of(loaded: &Loaded, system: &System, bare: Option<&Plan>, built: &[BuiltCollective]) -> Vec<Embedding> {
    let plan = bare.unwrap_or_else(|| system.plan());
    let mut links: Vec<Link> = (plan.links.iter())
        .flat_map(|link| [(link.a, link.b), (link.b, link.a)].map(|ends| (ends, link)))
        .map(|((at, far), link)| Link { at, far, latency: link.latency, level: link.level })
        .collect();
    links.sort_unstable_by_key(|link| link.at);
    let view = NetworkView { system, bare, plan, links };
    let collectives = loaded.scenario.collectives.iter().zip(built);
    let trees = collectives.flat_map(|(collective, built)| {
        let names = segments::names(collective).into_iter().map(|(_, name)| name);
        built.segments.iter().zip(names).map(move |(segment, name)| (collective, segment, name))
    });
    let mut all: Vec<Embedding> = trees
        .map(|(collective, segment, name)| {
            let (id, footprint) = (segment.id, &segment.footprint);
            let source = || loaded.scenario.topology.end_point(collective.participants[collective.source as usize]).0;
            let root = footprint.root.unwrap_or_else(source);
            let multicast = collective.kind == CollectiveKind::Broadcast;
            let (tree, depth, depth_cycles) = view.tree(id, root, multicast, &footprint.switches);
            let mut used: BTreeMap<u8, u64> = BTreeMap::new();
            for at in &footprint.links {
                *used.entry(view.link(at.switch, at.port).map_or(0, |link| link.level)).or_default() += 1;
            }
            // The local links from the senders on are not in the registers, but in use.
            let senders = if multicast { 1 } else { collective.participants.len() as u64 };
            *used.entry(0).or_default() += senders;
            let mut sends: Vec<(u32, u16)> = footprint.links.iter().map(|at| (at.switch, at.port)).collect();
            sends.dedup();
            sends.sort_unstable();
            sends.dedup();
            Embedding {
                name,
                segment_of: (collective.segments > 1).then(|| (collective.name.clone(), segment.elements.clone())),
                plane: segment.plane,
                shared: Vec::new(),
                kind: collective.kind.name().to_owned(),
                id,
                participants: collective.participants.len(),
                root,
                root_name: view.name(root),
                depth,
                depth_cycles,
                switches: (footprint.switches.len(), footprint.engines.len()),
                links: used
                    .into_iter()
                    .map(|(level, count)| (plan.levels[usize::from(level)].clone(), count))
                    .collect(),
                tree,
                registers: footprint.switches.iter().map(|&switch| view.registers(id, switch)).collect(),
                sends,
            }
        })
        .collect();
    share(&mut all, &view);
    all
}

/// Counts the links that segments of one collective share.
fn share(all: &mut [Embedding], view: &NetworkView<'_>) {
    let mut users: BTreeMap<(String, (u32, u16)), u32> = BTreeMap::new();
    let links = |of: &Embedding| -> BTreeSet<(u8, (u32, u16))> {
        let link = |at: &(u32, u16)| view.link(at.0, at.1).filter(|link| link.level > 0);
        of.sends.iter().filter_map(link).map(|link| (link.level, link.at.min(link.far))).collect()
    };
    for of in all.iter() {
        let Some((name, _)) = &of.segment_of else { continue };
        for (_, link) in links(of) {
            *users.entry((name.clone(), link)).or_default() += 1;
        }
    }
    for of in all.iter_mut() {
        let Some((name, _)) = &of.segment_of else { continue };
        let mut levels: BTreeMap<u8, (u64, u64)> = BTreeMap::new();
        for (level, link) in links(of) {
            let (all, shared) = levels.entry(level).or_default();
            *all += 1;
            *shared += u64::from(users[&(name.clone(), link)] > 1);
        }
        let name = |level: u8| view.plan.levels[usize::from(level)].clone();
        of.shared = levels.into_iter().map(|(level, (all, shared))| (name(level), all, shared)).collect();
    }
}

struct NetworkView<'a> {
    system: &'a System,
    bare: Option<&'a Plan>,
    plan: &'a Plan,
    /// Ascending by `at`.
    links: Vec<Link>,
}

impl NetworkView<'_> {
    fn name(&self, node: u32) -> String {
        let named = self.bare.map(|plan| plan.nodes[node as usize].name.clone());
        named.unwrap_or_else(|| self.system.node_name(node).into_owned())
    }

    fn link(&self, switch: u32, port: u16) -> Option<&Link> {
        let at = self.links.binary_search_by_key(&(switch, port), |link| link.at).ok()?;
        self.links.get(at)
    }

    fn vector(&self, switch: u32, id: u16, channel: u8, port: u16) -> u64 {
        self.system.registers().vector(switch, id, channel, port)
    }

    /// The ports by which a switch's children in the tree are reached.
    fn branches(&self, id: u16, switch: u32, entered: Option<u16>, multicast: bool) -> Vec<u16> {
        let engine = self.system.registers().engine_port();
        if !multicast {
            return (0..engine).filter(|&port| self.vector(switch, id, REQUEST, port) != 0).collect();
        }
        let vectors = (0..engine).filter(|&port| entered.is_none_or(|entered| entered == port));
        let outs = vectors.fold(0, |outs, port| outs | self.vector(switch, id, REQUEST, port));
        (0..engine).filter(|port| outs >> port & 1 == 1).collect()
    }

    /// The tree from the root on as lines of text (unless it is too big), its depth in links, and in cycles of them.
    fn tree(&self, id: u16, root: u32, multicast: bool, switches: &[u32]) -> (Vec<(usize, String)>, u32, u64) {
        let listed = switches.len() <= LISTED;
        let (mut lines, mut depth, mut cycles) = (Vec::new(), 0, 0);
        let engine = self.system.registers().engine_port();
        let mut work = vec![(root, None, 0u32, 0u64, String::new())];
        while let Some((node, entered, links, latency, how)) = work.pop() {
            if node >= self.system.registers().switches() {
                if listed {
                    lines.push((links as usize, format!("{how}{}", self.name(node))));
                }
                continue;
            }
            (depth, cycles) = (depth.max(links), cycles.max(latency));
            let branches = self.branches(id, node, entered, multicast);
            if listed {
                let ports: Vec<String> = branches.iter().map(|port| format!("P{port}")).collect();
                let reduces = branches.iter().any(|&port| self.vector(node, id, REQUEST, port) >> engine & 1 == 1);
                let what = match (multicast, reduces) {
                    (true, _) => "copies to",
                    (_, true) => "reduces",
                    _ => "passes on",
                };
                lines.push((links as usize, format!("{how}{}: {what} {}", self.name(node), ports.join(" "))));
            }
            for &port in branches.iter().rev() {
                let Some(link) = self.link(node, port) else { continue };
                let local = link.far.0 >= self.system.registers().switches();
                let arrow = if multicast { "->" } else { "<-" };
                let (more, level) = (u64::from(link.latency), &self.plan.levels[usize::from(link.level)]);
                let how = if !listed {
                    String::new()
                } else if local {
                    format!("P{port} {arrow} ")
                } else {
                    format!("P{port} {arrow} P{} {level} ", link.far.1)
                };
                work.push((link.far.0, Some(link.far.1), links + 1, latency + if local { 0 } else { more }, how));
            }
        }
        (lines, depth, cycles)
    }

    fn registers(&self, id: u16, switch: u32) -> (String, [Inputs; 2]) {
        let engine = self.system.registers().engine_port();
        let inputs = |channel: u8| -> Inputs {
            (0..=engine)
                .map(|port| (port, self.vector(switch, id, channel, port)))
                .filter(|(_, vector)| *vector != 0)
                .map(|(port, vector)| (port, (0..=engine).filter(|out| vector >> out & 1 == 1).collect()))
                .collect()
        };
        (self.name(switch), [inputs(REQUEST), inputs(RESPONSE)])
    }
}
