//! Rules for programs that write configuration registers while the system runs (requirements P-SW-1, P-SW-7).
//!
//! Before cycle 0 a whole configuration is checked. A program changes it store by store, and between two stores it is
//! rarely complete. So some checks are made at a store, and others at the next use of the tree *chosen*:
//!
//! | checked | when | broken by |
//! |---|---|---|
//! | there is such a register, and its value means something | at the store | an address without a register, a port above the engine's, a code that is no operation |
//! | every port of a vector leads somewhere | at the store | a port without a link |
//! | the engine takes requests of external ports that it was built for | at the store | the engine's bit in a response vector, in that of the engine's own result, or of a port beyond `switch.ceng.radix` |
//! | the tree is the program's to change | at the store | an id whose collective starts by itself |
//! | the tree is not in use | at the store | a call that is not complete, a message or word of the id in one of its switches or on its way to one |
//! | the tree is complete: all checks of `legality`, and the operations and orders that the collective needs | at the first call or message after the store | a missing store |
//! | trees of one id share no link and no engine | likewise | |
//! | messages of a multicast that stand in a queue have slots there under the new trees of the id, too | likewise | trees of other cores led to a queue that is full |
//!
//! A broken rule ends the run with a failed check `rules` that names the thread and its line. A complete tree is read
//! back into the oracle's, so that calls are checked against the tree that they used.

use std::collections::{BTreeMap, BTreeSet};

use crate::Loaded;
use crate::build::{BuiltCollective, common, layout, roles, select};
use crate::config::{Collective, CollectiveKind};
use crate::piuma::overlaps::{self, Owner, Plan};
use crate::programs::build::overlaps as overlapping;
use crate::run::system::PiumaSystem as System;
use watershed_fabric::topology::{EndPlace, Layout, Neighbours, Shape};
use watershed_oracle::EngineList;
use watershed_piuma::legality::{self, Claim, Footprint, channel_name};
use watershed_piuma::{IdUse, RESPONSE, RegisterName, Registers, Store};

/// A tree that programs may use.
#[derive(Debug, watershed_state::Saved)]
pub(crate) struct Tree {
    of: TreeOwner,
    id: u16,
    footprint: Footprint,
}

/// Whose tree it is: by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, watershed_state::Saved)]
pub(crate) enum TreeOwner {
    Collective(usize),
    /// And the end point that sends.
    Multicast(u32),
}

/// An id that was written: since when, and whose use of it has been found to be legal since then.
#[derive(Debug, Default, watershed_state::Saved)]
pub(crate) struct WrittenRegister {
    since: u64,
    whole: BTreeSet<TreeOwner>,
}

/// What is known of the trees of programs.
#[derive(Debug)]
pub struct StoreRules {
    /// Where end points are.
    pub(crate) layout: Layout,
    neighbours: Neighbours,
    trees: Vec<Tree>,
    written: BTreeMap<u16, WrittenRegister>,
}

impl StoreRules {
    /// The rules for a system at its first store; what its registers say has been checked before.
    pub fn new(loaded: &Loaded, system: &System, built: &[BuiltCollective]) -> Option<StoreRules> {
        let layout = layout(loaded).ok()?;
        let neighbours = match &layout.shape {
            Shape::Nodes(nodes) => Neighbours::of_nodes(nodes),
            _ => Neighbours::new(&layout.plan),
        };
        let scenario = &loaded.scenario;
        let mut rules = StoreRules { layout, neighbours, trees: Vec::new(), written: BTreeMap::new() };
        for (index, (collective, built)) in scenario.collectives.iter().zip(built).enumerate() {
            if collective.called {
                let (id, footprint) = (collective.id as u16, built.footprint().clone());
                rules.trees.push(Tree { of: TreeOwner::Collective(index), id, footprint });
            }
        }
        for multicast in scenario.programs.iter().flat_map(|programs| &programs.multicasts) {
            let id = multicast.id as u16;
            if let Ok(footprint) = rules.multicast(loaded, system.registers(), id, multicast.source) {
                rules.trees.push(Tree { of: TreeOwner::Multicast(multicast.source), id, footprint });
            }
        }
        Some(rules)
    }

    /// Ids of multicasts, and the end points that have sent by them.
    pub(crate) fn senders(&self) -> impl Iterator<Item = (u16, u32)> + '_ {
        self.trees.iter().filter_map(|tree| match tree.of {
            TreeOwner::Multicast(source) => Some((tree.id, source)),
            TreeOwner::Collective(_) => None,
        })
    }

    /// What was found of trees since the first store.
    pub(crate) fn observed_trees(&self) -> (&Vec<Tree>, &BTreeMap<u16, WrittenRegister>) {
        (&self.trees, &self.written)
    }

    /// The rules, with what was found of trees since the first store.
    pub(crate) fn with_observed_trees(
        self,
        (trees, written): (Vec<Tree>, BTreeMap<u16, WrittenRegister>),
    ) -> StoreRules {
        StoreRules { trees, written, ..self }
    }

    /// Makes a store, if it is legal.
    ///
    /// # Errors
    /// Why it is not.
    pub fn store(&mut self, loaded: &Loaded, system: &mut System, store: &Store) -> Result<(), String> {
        let registers = system.registers();
        let by = system.end(store.core as usize).processor().map(|processor| processor.describe(store.thread));
        let by = by.unwrap_or_default();
        let refused = |why: String| format!("{by}: cycle {}: store of {:#x}: {why}", store.cycle, store.value);
        let RegisterName { switch, id, vector } =
            registers.named(store.address).map_err(|error| refused(error.to_string()))?;
        let register = {
            let name = registers.name(switch);
            let what = match vector {
                Some((channel, port)) => format!("{} register I{port}", channel_name(channel)),
                None => "operation or order".to_owned(),
            };
            format!("{what} of {name}, id {id}")
        };
        let refused = |why: String| Err(refused(format!("{register}: {why}")));
        if let Some(own) = loaded.scenario.collectives.iter().find(|of| !of.called && of.ids().contains(&u32::from(id)))
        {
            return refused(format!(
                "the tree of \"{}\", which starts by itself, is not a program's to change",
                own.name
            ));
        }
        if let Some((channel, port)) = vector
            && let Err(why) = self.vector(
                registers,
                loaded.scenario.switch.ceng.radix.known() as u16,
                (switch, channel, port),
                store.value,
            )
        {
            return refused(why);
        }
        for tree in self.trees.iter().filter(|tree| tree.id == id) {
            if tree.footprint.switches.binary_search(&switch).is_ok()
                && let Some(why) = in_use(loaded, system, tree)
            {
                return refused(format!("it is in use: {why}"));
            }
        }
        if let Err(error) = system.registers_mut().store(store.address, store.value) {
            return refused(error.to_string());
        }
        self.written.insert(id, WrittenRegister { since: store.cycle, whole: BTreeSet::new() });
        Ok(())
    }

    /// What can be said of a vector alone.
    fn vector(&self, registers: &Registers, radix: u16, at: (u32, u8, u16), value: u64) -> Result<(), String> {
        let (switch, channel, port) = at;
        let engine = registers.engine_port();
        for out in (0..64).filter(|out| value >> out & 1 == 1) {
            if out > engine {
                return Err(format!("there is no port {out}, ports are 0 to {engine}"));
            }
            if out == engine && channel == RESPONSE {
                return Err("it hands responses to the engine".into());
            }
            if out == engine && port == engine {
                return Err("it hands the engine's own result to the engine".into());
            }
            if out == engine && port >= radix {
                return Err(format!("the engine was built for ports 0 to {}", radix - 1));
            }
            if out < engine && self.neighbours.of(switch, out).is_none() {
                return Err(format!("port {out} has no link"));
            }
        }
        Ok(())
    }

    /// Whether a use has to be checked.
    pub fn is_written(&self) -> bool {
        !self.written.is_empty()
    }

    /// Looks at those who used a tree since it was written: it must be whole. The trees of collectives that are found
    /// anew are added to those they had. The ids of which one was read back again, and by whose use: their overlaps may have
    /// changed.
    ///
    /// # Errors
    /// What is wrong.
    pub fn used(
        &mut self,
        loaded: &Loaded,
        system: &System,
        built: &mut [BuiltCollective],
    ) -> Result<BTreeMap<u16, usize>, String> {
        let mut anew = BTreeMap::new();
        for (end, point) in system.ends().enumerate() {
            let Some(processor) = point.processor() else { continue };
            for used in processor.uses() {
                let Some(written) = self.written.get(&used.id).filter(|written| used.cycle >= written.since) else {
                    continue;
                };
                let takes = |of: &Collective| {
                    of.called && of.id == u32::from(used.id) && of.participants.contains(&(end as u32))
                };
                let of = match loaded.scenario.collectives.iter().position(takes) {
                    Some(index) => TreeOwner::Collective(index),
                    None => TreeOwner::Multicast(end as u32),
                };
                if written.whole.contains(&of) {
                    continue;
                }
                let IdUse { id, cycle, by: (thread, line) } = *used;
                let who = format!("{}, thread {thread}, line {line}: cycle {cycle}", processor.name());
                let footprint = self.tree(loaded, system.registers(), of, id).map_err(|why| {
                    let what = match of {
                        TreeOwner::Collective(index) => {
                            format!("id {id} of collective \"{}\"", loaded.scenario.collectives[index].name)
                        }
                        TreeOwner::Multicast(_) => format!("multicast tree {id}"),
                    };
                    format!("{who}: the registers of {what} were written and are not legal: {why}")
                })?;
                if let TreeOwner::Collective(index) = of {
                    built[index].rewritten.push((cycle, footprint.clone()));
                }
                anew.entry(id).or_insert(end);
                self.trees.retain(|tree| (tree.of, tree.id) != (of, id));
                self.trees.push(Tree { of, id, footprint });
                self.written.entry(id).or_default().whole.insert(of);
            }
        }
        Ok(anew)
    }

    /// The conflict sets that the registers make now.
    pub(crate) fn plan(&self, loaded: &Loaded, system: &System, built: &[BuiltCollective]) -> Plan {
        let scenario = &loaded.scenario;
        let mut footprints = overlaps::footprints(built.iter().map(BuiltCollective::footprints), &[]);
        let multicasts = scenario.programs.as_ref().map_or(&[][..], |programs| &programs.multicasts);
        for Tree { of, id, footprint } in &self.trees {
            match *of {
                TreeOwner::Collective(index) => _ = footprints.insert(Owner::Segment(index, 0), footprint),
                TreeOwner::Multicast(source) => {
                    let found = multicasts.iter().position(|of| (of.id, of.source) == (u32::from(*id), source));
                    footprints.extend(found.map(|index| (Owner::Multicast(index), footprint)));
                }
            }
        }
        let ground = (&self.layout, &common(scenario), &self.neighbours);
        overlapping(scenario, ground, system.registers(), &footprints)
    }

    /// The tree that the registers describe.
    fn tree(&self, loaded: &Loaded, registers: &Registers, of: TreeOwner, id: u16) -> Result<Footprint, String> {
        let index = match of {
            TreeOwner::Collective(index) => index,
            TreeOwner::Multicast(source) => return self.multicast(loaded, registers, id, source),
        };
        let collective = &loaded.scenario.collectives[index];
        let places: Vec<EndPlace> = collective.participants.iter().map(|&end| self.layout.ends[end as usize]).collect();
        let (senders, receivers, reduces) = roles(collective, &places);
        // Who gets the result of a reduce was said before cycle 0.
        let before = self.trees.iter().find(|tree| tree.of == of).map(|tree| tree.footprint.reached.clone());
        let receivers = receivers.or(before);
        let claim = Claim { id, senders: &senders, receivers: receivers.as_deref(), members: &places, reduces };
        let radix = loaded.scenario.switch.ceng.radix.known() as u8;
        let footprint =
            legality::check(registers, &self.neighbours, radix, &claim).map_err(|illegal| illegal.message)?;
        for &switch in &footprint.engines {
            let (found, wanted) = (registers.select(switch, id), select(collective));
            if found != wanted {
                let name = registers.name(switch);
                return Err(format!("the engine of {name} would do {found:?}, not {wanted:?}"));
            }
        }
        if collective.kind == CollectiveKind::Scan
            && let Some(tree) = &footprint.tree
        {
            let tree = tree.node(&|switch| registers.name(switch).into_owned());
            for (name, order) in crate::scan::orders(&tree)? {
                let switch = footprint.engines.iter().find(|&&switch| registers.name(switch) == name);
                if switch.is_some_and(|&switch| registers.order(switch, id) != order) {
                    return Err(format!("the order register of {name} does not list its inputs by rank"));
                }
            }
        }
        for other in self.trees.iter().filter(|tree| tree.id == id && tree.of != of) {
            if let Err((switch, port)) = legality::disjoint(&footprint, &other.footprint) {
                let what = port.map_or_else(|| "the engine".to_owned(), |port| format!("port {port}"));
                return Err(format!("another tree with id {id} uses {what} of {} as well", registers.name(switch)));
            }
        }
        Ok(footprint)
    }

    /// The multicast tree that the registers describe, from an end point on: it must reach at least one end point, and
    /// only those that serve the id.
    fn multicast(&self, loaded: &Loaded, registers: &Registers, id: u16, source: u32) -> Result<Footprint, String> {
        let list = loaded.scenario.programs.iter().flat_map(|programs| &programs.multicasts);
        let serving = list.filter(|of| of.id == u32::from(id));
        let serving = serving.flat_map(|of| std::iter::once(&of.source).chain(&of.receivers));
        let members: Vec<EndPlace> = serving.map(|&end| self.layout.ends[end as usize]).collect();
        let senders = [self.layout.ends[source as usize]];
        let claim = Claim { id, senders: &senders, receivers: None, members: &members, reduces: false };
        legality::check(registers, &self.neighbours, u8::MAX, &claim).map_err(|illegal| illegal.message)
    }
}

/// Who uses a tree now, in words.
fn in_use(loaded: &Loaded, system: &System, tree: &Tree) -> Option<String> {
    let id = tree.id;
    match tree.of {
        TreeOwner::Collective(index) => {
            for &end in loaded.scenario.collectives[index].participants.iter() {
                let processor = system.end(end as usize).processor()?;
                if let Some(call) = processor.calls().iter().find(|call| call.id == id && call.end.is_none()) {
                    return Some(format!("{} called it in cycle {}", processor.name(), call.issued));
                }
            }
        }
        TreeOwner::Multicast(source) => {
            let processor = system.end(source as usize).processor()?;
            if processor.is_sending_to(id, system.now()) {
                return Some(format!("{} is sending to it", processor.name()));
            }
        }
    }
    let mut found = None;
    let own = system.registers().set_channels;
    system.each_set_flit(&mut |node, flit| {
        if found.is_none()
            && flit.tag.vc() < own
            && flit.tag.id() == id
            && tree.footprint.switches.binary_search(&node).is_ok()
        {
            found = Some(format!("word {} of it is in {} or on its way there", flit.tag.seq(), system.node_name(node)));
        }
    });
    let engines = tree.footprint.engines.iter().find(|&&switch| system.join(switch).is_some_and(|join| join.holds(id)));
    found
        .or_else(|| engines.map(|&switch| format!("operands of it wait in the engine of {}", system.node_name(switch))))
}

/// The footprint of a collective that a call in a cycle went over.
pub fn footprint_at(built: &BuiltCollective, cycle: u64) -> &Footprint {
    let known = built.rewritten.iter().rfind(|(since, _)| *since <= cycle);
    known.map_or_else(|| built.footprint(), |(_, footprint)| footprint)
}

/// The oracle's tree of a call; `None` where one contribution goes to all.
pub fn tree(built: &BuiltCollective, cycle: u64) -> Option<&EngineList> {
    footprint_at(built, cycle).tree.as_ref()
}
