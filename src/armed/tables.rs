//! Multicast tables: the static state of reduction trees (requirements R-TAB-1 to R-TAB-3; description (50), (51), (93)).
//!
//! ```text
//!   frame, input port ──▶ multicast id ──▶ entry of this switch ──┬─ from the parent port: all child ports
//!                                                                ├─ from a child port:   the parent port
//!                                                                └─ anything else:       discarded and counted
//! ```
//!
//! | part of an entry | width | meaning |
//! |---|---|---|
//! | multicast id | 13 | the index; up to [`TablesCfg::entries`] of them are used (8192 by default) |
//! | parent port | - | towards the root |
//! | child ports | a bit a port | towards the leaves |
//! | wait count | 20 | end points below this switch; 0 means a plain multicast, which arms nothing |
//! | owner | 80 | address of the root, VNI and cookie of its job, see [`admission`](super::admission) *chosen* |
//!
//! An entry is one-sided: only what comes in by the parent port is multicast; what comes in by a child port goes to the
//! parent and nowhere else. A port that is neither has no entry, so a frame of an end point outside the tree cannot
//! enter it: it goes to the discard port, as do frames for unknown addresses and frames on the wrong channel *chosen*.
//! Trees without a common switch may use the same multicast id.
//!
//! Frames of one tree take one path, on one channel of each link, whose buffers are first in, first out, and a frame holds
//! the channel from head to tail: so they never overtake each other (R-TAB-3).
//!
//! Storage: an entry costs a bit a port, a port number and 100 bits; the model keeps only entries in use.

use super::admission::Owner;
use super::engine::EngineCfg;
use super::frame::FRAME_FLITS;
use super::header::{Address, MAX_COUNT, MULTICAST_IDS};
use crate::fabric::fault::{View, Way};
use crate::fabric::routing::Routes;
use crate::fabric::topology::Neighbours;
use crate::fabric::{self, At, Flit, Join, JoinCx, JoinOut, PortSet, Route};
use crate::kernel::{Cycle, Rng, Wake};
use std::collections::BTreeSet;

/// Words of a port set: switches of this family have up to 255 external ports.
pub const WORDS: usize = 4;
/// A set of ports of a switch of this family.
pub type Ports = PortSet<WORDS>;
/// The largest number of external ports of a switch.
pub const MOST_PORTS: u16 = 64 * WORDS as u16 - 1;

/// The channel on which frames climb.
pub const UP: u8 = 0;
/// The channel on which frames descend. It has priority over climbing ones.
pub const DOWN: u8 = 1;
/// Number of set-routed channels.
pub const CHANNELS: u8 = 2;

/// One multicast entry of one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Multicast id.
    pub multicast_id: u16,
    /// The port towards the root.
    pub parent: u16,
    /// The ports towards the leaves.
    pub children: Ports,
    /// End points below; 0 for a plain multicast.
    pub wait_count: u32,
    /// Whose tree it is: only this root arms and releases.
    pub owner: Owner,
}

/// Why an entry or a tree cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// Every entry of a switch is in use.
    #[error("the multicast table of {switch} is full: all {entries} entries are in use")]
    Full {
        /// Name of the switch.
        switch: String,
        /// What it holds.
        entries: u16,
    },
    /// The id is in use at this switch.
    #[error("multicast id {id} is in use at {switch}")]
    Taken {
        /// Name of the switch.
        switch: String,
        /// The id.
        id: u16,
    },
    /// The tree does not hang together.
    #[error("the tree of multicast id {id} is unsound at {switch}: {what}")]
    Unsound {
        /// Name of the switch.
        switch: String,
        /// The id.
        id: u16,
        /// What is wrong.
        what: String,
    },
}

/// What all switches and engines of a system have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TablesCfg {
    /// Entries of a multicast table, up to 8192.
    pub entries: u16,
    /// The engines.
    pub engine: EngineCfg,
    /// Whether blocks write down in which order they merged, for the golden check.
    pub record: bool,
    /// Whether blocks log every frame they see, for ladders.
    pub log: bool,
}

/// The multicast tables of all switches, and what else blocks look up.
#[derive(Clone, Debug)]
pub struct Tables {
    /// Parameters.
    pub cfg: TablesCfg,
    names: Vec<String>,
    entries: Vec<Vec<Entry>>,
    discard: u16,
    routes: Routes,
}

impl Tables {
    /// Empty tables for switches of these names, with `external_ports` ports besides the discard port.
    ///
    /// # Panics
    /// If switches have more ports than [`MOST_PORTS`], or tables more entries than there are ids.
    pub fn new(cfg: TablesCfg, names: Vec<String>, external_ports: u16, routes: Routes) -> Tables {
        assert!(external_ports <= MOST_PORTS, "a switch of this family has up to {MOST_PORTS} ports");
        assert!(cfg.entries <= MULTICAST_IDS, "there are {MULTICAST_IDS} multicast ids");
        let entries = vec![Vec::new(); names.len()];
        Tables { cfg, names, entries, discard: external_ports, routes }
    }

    /// The entry of a switch for a multicast id.
    #[inline]
    pub fn entry(&self, switch: u32, multicast_id: u16) -> Option<&Entry> {
        let entries = &self.entries[switch as usize];
        let at = entries.binary_search_by_key(&multicast_id, |entry| entry.multicast_id).ok()?;
        Some(&entries[at])
    }

    /// All entries of a switch, ascending.
    pub fn entries(&self, switch: u32) -> &[Entry] {
        &self.entries[switch as usize]
    }

    /// Name of a switch.
    pub fn name(&self, switch: u32) -> &str {
        &self.names[switch as usize]
    }

    /// Writes an entry.
    ///
    /// # Errors
    /// If the table is full or the id is in use there.
    pub fn insert(&mut self, switch: u32, entry: Entry) -> Result<(), TableError> {
        let name = || self.names[switch as usize].clone();
        let entries = &self.entries[switch as usize];
        if entries.len() >= usize::from(self.cfg.entries) {
            return Err(TableError::Full { switch: name(), entries: self.cfg.entries });
        }
        match entries.binary_search_by_key(&entry.multicast_id, |entry| entry.multicast_id) {
            Ok(_) => Err(TableError::Taken { switch: name(), id: entry.multicast_id }),
            Err(at) => {
                self.entries[switch as usize].insert(at, entry);
                Ok(())
            }
        }
    }

    /// Takes an entry out.
    pub fn remove(&mut self, switch: u32, multicast_id: u16) {
        self.entries[switch as usize].retain(|entry| entry.multicast_id != multicast_id);
    }

    /// The lowest multicast id that is free at all these switches.
    ///
    /// # Errors
    /// The first switch whose table is full, or any of them if they have no free id in common.
    pub fn free_id(&self, switches: &[u32]) -> Result<u16, TableError> {
        for &switch in switches {
            if self.entries[switch as usize].len() >= usize::from(self.cfg.entries) {
                return Err(TableError::Full { switch: self.name(switch).into(), entries: self.cfg.entries });
            }
        }
        let taken: BTreeSet<u16> = switches
            .iter()
            .flat_map(|&switch| self.entries[switch as usize].iter().map(|entry| entry.multicast_id))
            .collect();
        (0..MULTICAST_IDS).find(|id| !taken.contains(id)).ok_or_else(|| TableError::Full {
            switch: switches.first().map_or_else(String::new, |&switch| self.name(switch).into()),
            entries: self.cfg.entries,
        })
    }

    /// Walks a tree down from the switch its root end point sits at, and checks that it has no loop, that parent and
    /// child ports belong together, and that the wait counts are the numbers of end points below. Returns the end
    /// points as (switch, port), in the order of the walk.
    ///
    /// # Errors
    /// What is wrong, at the first switch at which it shows.
    pub fn check_tree(
        &self,
        neighbours: &Neighbours,
        multicast_id: u16,
        root: (u32, u16),
    ) -> Result<Vec<(u32, u16)>, TableError> {
        let mut seen = BTreeSet::new();
        let mut leaves = Vec::new();
        self.walk(neighbours, multicast_id, root.0, root.1, &mut seen, &mut leaves)?;
        Ok(leaves)
    }

    fn walk(
        &self,
        neighbours: &Neighbours,
        id: u16,
        switch: u32,
        parent: u16,
        seen: &mut BTreeSet<u32>,
        leaves: &mut Vec<(u32, u16)>,
    ) -> Result<u32, TableError> {
        let unsound = |what: String| TableError::Unsound { switch: self.name(switch).into(), id, what };
        if !seen.insert(switch) {
            return Err(unsound("a second way leads here: the tree has a loop".into()));
        }
        let entry = self.entry(switch, id).ok_or_else(|| unsound("it has no entry".into()))?;
        if entry.parent != parent {
            return Err(unsound(format!("its parent port is {}, the tree comes in by {parent}", entry.parent)));
        }
        if entry.children.is_empty() || entry.children.contains(parent) {
            return Err(unsound("its child ports are none, or the parent port is among them".into()));
        }
        let mut below = 0;
        for port in &entry.children {
            match neighbours.of(switch, port) {
                None => return Err(unsound(format!("child port {port} has no link"))),
                Some((far, far_port)) if (far as usize) < self.entries.len() => {
                    below += self.walk(neighbours, id, far, far_port, seen, leaves)?;
                }
                Some(_) => {
                    leaves.push((switch, port));
                    below += 1;
                }
            }
        }
        if entry.wait_count != 0 && entry.wait_count != below {
            return Err(unsound(format!("its wait count is {}, {below} end points are below", entry.wait_count)));
        }
        if below > MAX_COUNT {
            return Err(unsound(format!("{below} end points are more than a wait count of 20 bits holds")));
        }
        Ok(below)
    }
}

impl fabric::Tables<WORDS> for Tables {
    #[inline]
    fn outputs(&self, switch: u32, port: u16, flit: &Flit) -> Ports {
        let entry =
            Address::decode((flit.word >> 32) as u32).ok().and_then(|address| self.entry(switch, address.multicast_id));
        match (entry, flit.tag.vc()) {
            (Some(entry), DOWN) if entry.parent == port => entry.children,
            (Some(entry), UP) if entry.children.contains(port) => Ports::one(entry.parent),
            _ => Ports::one(self.discard),
        }
    }

    fn longest_multicast(&self, vc: u8) -> u32 {
        if vc == DOWN { FRAME_FLITS as u32 } else { 1 }
    }

    fn unicast(&self, at: &At<'_>, flit: &Flit) -> Route {
        self.routes.route(at, flit)
    }

    fn no_route(&self, switch: u32, port: u16, _: &Flit) -> String {
        format!(
            "a frame came in by port {port} of {} and found neither an entry nor the discard port",
            self.name(switch)
        )
    }
}

/// The discard port: the internal port of a switch, where frames without an entry end. It takes a flit a cycle from every
/// input port and counts frames.
#[derive(Clone, Debug, Default)]
pub struct Discard {
    /// Frames that ended here.
    pub frames: u64,
}

impl Join for Discard {
    type Tables = Tables;

    fn room(&self, _: u16, _: u8) -> bool {
        true
    }

    fn put(&mut self, _: u16, _: u8, flit: Flit, _: Cycle) {
        self.frames += u64::from(flit.tag.head());
    }

    fn tick(&mut self, _: &JoinCx<'_, Tables>) -> JoinOut {
        JoinOut { result: None, changed: false, wake: Wake::OnInput, fault: None }
    }

    fn is_idle(&self) -> bool {
        true
    }

    fn waits_for(&self, _: &Tables, _: u32) -> Vec<(u16, u8, String)> {
        Vec::new()
    }

    fn probe(&self, scope: &mut crate::probe::Scope<'_>) {
        scope.scope("discard", |scope| scope.bits("frames", 32, self.frames));
    }
}

/// How frames look to a link with faults.
#[derive(Clone, Copy, Debug)]
pub struct Frames;

impl View for Frames {
    fn way(&self, _: u16, head: &Flit) -> Option<Way> {
        match head.tag.vc() {
            UP => Some(Way::Up),
            DOWN => Some(Way::Down),
            _ => None,
        }
    }

    fn damage(&self, _: &Flit, rng: &mut Rng) -> (u16, u8) {
        let (flit, bit) = (rng.below(FRAME_FLITS as u64) as u16, rng.below(64) as u8);
        // Of the last flit only the upper half is on the wire.
        (flit, if usize::from(flit) + 1 == FRAME_FLITS { 32 + bit % 32 } else { bit })
    }
}
