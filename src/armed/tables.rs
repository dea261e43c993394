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
//! An entry is one-sided: only frames from the parent port are multicast; frames from a child port go to the parent
//! only. Any other port has no entry, so a frame of an end point outside the tree cannot enter it: it goes to the
//! discard port, as do frames for unknown addresses and frames on the wrong channel *chosen*. Trees without a common
//! switch may use the same multicast id.
//!
//! Frames of one tree take one path, on one channel of each link, whose buffers are first in, first out, and a frame holds
//! the channel from head to tail: so they never overtake each other (R-TAB-3).
//!
//! **Written at run time.** A system with a [management agent](super::manager) has one more set-routed channel,
//! [`MANAGE`], of the highest priority *chosen*: its frames never wait for a reduction and delay none. Its frames
//! follow one tree that spans all switches and has the agent at its root ([`AgentRoutes`]): towards the agent by the parent,
//! away from it by the child below which the destination lies. A frame for the switch itself goes to its internal port,
//! whose [`Discard`] obeys it. Its writes are in the table from the next cycle on ([`Tables::stage`]), so that no table
//! changes within a cycle; a frame whose head was routed before keeps its way.
//!
//! Storage: an entry costs a bit a port, a port number and 100 bits; the model keeps only entries in use.

use super::admission::{Owner, Refusals, Refused};
use super::assembly::Assembly;
use super::engine::cfg::EngineCfg;
use super::frame::{FRAME_BYTES, FRAME_WORDS};
use super::header::{Address, MAX_COUNT, MULTICAST_IDS};
use super::manage::{LoggedMessage, Message, NO_ID, Place, Verb};
use super::station::NO_TOKEN;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
pub use watershed_armed_interface::{CHANNELS, DOWN, MANAGE, UP};
use watershed_fabric::fault::{Direction, View};
use watershed_fabric::routing::Routes;
use watershed_fabric::topology::{EndPlace, Neighbours};
use watershed_fabric::{self as fabric, Flit, FlitSize, Join, JoinCx, JoinOut, PortSet, Route, RouteView, Shares, Vcs};
use watershed_kernel::{Cycle, Rng, Wake};
use watershed_state::{Loader, Mismatch, Saver, State, state};

/// Words of a port set: switches of this family have up to 255 external ports.
pub const WORDS: usize = 4;
/// A set of ports of a switch of this family.
pub type Ports = PortSet<WORDS>;
/// The largest number of external ports of a switch.
pub const MOST_PORTS: u16 = 64 * WORDS as u16 - 1;

/// One multicast entry of one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
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
    /// The ways of the agent's frames, and its rules; none without an agent.
    managed: Option<Arc<AgentInfo>>,
    /// How the point-to-point channels are shared between messages of software reductions and traffic.
    shares: Shares,
    /// The number in the system of the channel that is 0 here.
    pub first_channel: u8,
    /// How frames are cut into flits.
    pub cut: FlitSize,
    staged: StagedChanges,
}

state!(Tables {
    saved: entries, staged;
    built: cfg, names, discard, routes, managed, shares, first_channel, cut
});

/// The management agent as switches know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentInfo {
    /// Its end point: whose orders switches obey.
    pub agent: u32,
    /// Cycles that a switch takes to write an entry.
    pub write_cycles: u64,
    /// The ways of its frames.
    pub ways: AgentRoutes,
}

/// One tree over all switches with the agent at its root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentRoutes {
    /// By switch: its number in the order of the walk and the first one that is not below it; equal if the agent has no way to
    /// it.
    range: Vec<(u32, u32)>,
    /// By switch: the port towards the agent.
    up: Vec<u16>,
    /// By switch: the children's first numbers, ascending, and the ports to them.
    down: Vec<Vec<(u32, u16)>>,
}

impl AgentRoutes {
    /// From the port towards the agent and the number of hops of every switch, as far as the agent has a way to it.
    pub fn new(neighbours: &Neighbours, root: EndPlace, way: &[Option<(u16, u32)>]) -> AgentRoutes {
        let mut children: Vec<Vec<(u32, u16)>> = vec![Vec::new(); way.len()];
        let mut up = vec![root.port; way.len()];
        for (switch, way) in (0u32..).zip(way) {
            let Some((port, _)) = way.filter(|_| switch != root.switch) else { continue };
            up[switch as usize] = port;
            if let Some((parent, back)) = neighbours.of(switch, port) {
                children[parent as usize].push((switch, back));
            }
        }
        let mut ways = AgentRoutes { range: vec![(0, 0); way.len()], up, down: vec![Vec::new(); way.len()] };
        let mut next = 0;
        // A switch is left when all that is below it has been numbered.
        let mut stack = vec![(root.switch, false)];
        while let Some((switch, leaving)) = stack.pop() {
            let at = switch as usize;
            if leaving {
                ways.range[at].1 = next;
                ways.down[at] =
                    children[at].iter().map(|&(child, port)| (ways.range[child as usize].0, port)).collect();
                ways.down[at].sort_unstable();
                continue;
            }
            ways.range[at].0 = next;
            next += 1;
            stack.push((switch, true));
            stack.extend(children[at].iter().map(|&(child, _)| (child, false)));
        }
        ways
    }

    /// The port towards the agent.
    pub fn up(&self, switch: u32) -> u16 {
        self.up[switch as usize]
    }

    /// How many switches there are.
    pub fn switches(&self) -> u32 {
        self.up.len() as u32
    }

    /// Switches that have a way to the agent over other switches, with the port of it.
    pub fn climbs(&self) -> impl Iterator<Item = (u32, u16)> + '_ {
        let reached = self.range.iter().enumerate().filter(|(_, range)| range.0 > 0);
        reached.map(|(switch, _)| (switch as u32, self.up[switch]))
    }

    /// The port of the next step from one switch to another; `None` if they are the same, or there is no way.
    fn hop(&self, at: u32, to: u32) -> Option<u16> {
        let ((first, end), (number, far_end)) = (self.range[at as usize], self.range[to as usize]);
        if at == to || number == far_end {
            return None;
        }
        if !(first..end).contains(&number) {
            return Some(self.up(at));
        }
        let down = &self.down[at as usize];
        let below = down.partition_point(|&(child, _)| child <= number).checked_sub(1)?;
        Some(down[below].1)
    }
}

/// The change of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum Change {
    /// It is written, in the place of one with its id.
    Write(Entry),
    /// The one with this id is erased.
    Erase(u16),
}

/// Changes of this cycle, by switch.
#[derive(Debug, Default)]
struct StagedChanges {
    any: AtomicBool,
    list: Mutex<Vec<(u32, Change)>>,
}

/// Changes of a cycle are made at its end, so between two cycles there are none.
impl State for StagedChanges {
    fn save(&self, _: &mut Saver) {}

    fn load(&mut self, _: &mut Loader<'_>) -> Result<(), Mismatch> {
        Ok(())
    }
}

impl Clone for StagedChanges {
    fn clone(&self) -> StagedChanges {
        let list = self.list.lock().unwrap_or_else(PoisonError::into_inner).clone();
        StagedChanges { any: AtomicBool::new(!list.is_empty()), list: Mutex::new(list) }
    }
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
        Tables {
            cfg,
            names,
            entries,
            discard: external_ports,
            routes,
            managed: None,
            shares: Shares::WHOLE,
            first_channel: 0,
            cut: FlitSize::WORD,
            staged: StagedChanges::default(),
        }
    }

    /// Shares the point-to-point channels with traffic.
    pub fn share(&mut self, shares: Shares) {
        self.shares = shares;
    }

    /// Point-to-point channels of software messages, from the first one on.
    pub fn message_channels(&self, vcs: Vcs) -> u8 {
        if self.shares == Shares::WHOLE { vcs.unicast } else { self.shares.messages }
    }

    /// The channels of the system that are the family's.
    pub fn channels(&self, vcs: Vcs) -> std::ops::Range<u8> {
        self.first_channel..vcs.set + self.message_channels(vcs)
    }

    /// Lets an agent write them.
    pub fn manage(&mut self, managed: AgentInfo) {
        self.managed = Some(Arc::new(managed));
    }

    /// The agent, if there is one.
    pub fn managed(&self) -> Option<&AgentInfo> {
        self.managed.as_deref()
    }

    /// Whether a switch has a place for this id: it has one already, or the table is not full.
    pub fn has_room(&self, switch: u32, multicast_id: u16) -> bool {
        self.entry(switch, multicast_id).is_some()
            || self.entries[switch as usize].len() < usize::from(self.cfg.entries)
    }

    /// Changes an entry from the next cycle on.
    pub fn stage(&self, switch: u32, change: Change) {
        self.staged.list.lock().unwrap_or_else(PoisonError::into_inner).push((switch, change));
        self.staged.any.store(true, Ordering::Release);
    }

    /// Where a frame of the agent, or for it, goes on.
    fn manages(&self, switch: u32, word: u64) -> u16 {
        let Some(managed) = &self.managed else { return self.discard };
        let (to, port) = match Place::decode((word >> 32) as u32) {
            Place::Switch(to) if (to as usize) < self.names.len() => (to, self.discard),
            Place::End(end) if (end as usize) < self.routes.ends.len() => {
                let place = self.routes.ends[end as usize];
                (place.switch, place.port)
            }
            _ => return self.discard,
        };
        let here = if to == switch { port } else { self.discard };
        managed.ways.hop(switch, to).unwrap_or(here)
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

    /// The lowest multicast id that is allowed and free at all these switches.
    ///
    /// # Errors
    /// The first switch whose table is full, or any of them if they have no free id in common.
    pub fn free_id(&self, switches: &[u32], allowed: impl Fn(u16) -> bool) -> Result<u16, TableError> {
        for &switch in switches {
            if self.entries[switch as usize].len() >= usize::from(self.cfg.entries) {
                return Err(TableError::Full { switch: self.name(switch).into(), entries: self.cfg.entries });
            }
        }
        let taken: BTreeSet<u16> = switches
            .iter()
            .flat_map(|&switch| self.entries[switch as usize].iter().map(|entry| entry.multicast_id))
            .collect();
        (0..MULTICAST_IDS).find(|id| !taken.contains(id) && allowed(*id)).ok_or_else(|| TableError::Full {
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
        let mut leaves = Vec::new();
        self.walk(neighbours, multicast_id, root.0, root.1, &mut leaves)?;
        Ok(leaves)
    }

    fn walk(
        &self,
        neighbours: &Neighbours,
        id: u16,
        switch: u32,
        parent: u16,
        leaves: &mut Vec<(u32, u16)>,
    ) -> Result<u32, TableError> {
        let unsound = |what: String| TableError::Unsound { switch: self.name(switch).into(), id, what };
        let entry = self.entry(switch, id).ok_or_else(|| unsound("it has no entry".into()))?;
        if entry.parent != parent {
            // A second way comes in by another port than the first: a loop ends here, too.
            let what = format!("its parent port is {}, the tree comes in by {parent}", entry.parent);
            return Err(unsound(format!("{what}: a second way, or a wrong parent")));
        }
        if entry.children.is_empty() || entry.children.contains(parent) {
            return Err(unsound("its child ports are none, or the parent port is among them".into()));
        }
        let mut below = 0;
        for port in &entry.children {
            match neighbours.of(switch, port) {
                None => return Err(unsound(format!("child port {port} has no link"))),
                Some((far, far_port)) if (far as usize) < self.entries.len() => {
                    below += self.walk(neighbours, id, far, far_port, leaves)?;
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
        if flit.tag.vc() == MANAGE {
            return Ports::one(self.manages(switch, flit.word));
        }
        let entry =
            Address::decode((flit.word >> 32) as u32).ok().and_then(|address| self.entry(switch, address.multicast_id));
        match (entry, flit.tag.vc()) {
            (Some(entry), DOWN) if entry.parent == port => entry.children,
            (Some(entry), UP) if entry.children.contains(port) => Ports::one(entry.parent),
            _ => Ports::one(self.discard),
        }
    }

    fn cut(&self) -> FlitSize {
        self.cut
    }

    fn longest_multicast(&self, vc: u8) -> u32 {
        if vc == DOWN { self.cut.flits(FRAME_BYTES) as u32 } else { 1 }
    }

    fn unicast(&self, at: &RouteView<'_>, flit: &Flit) -> Route {
        let at = self.shares.of(at);
        self.routes.route(&at, flit).to_all_channels(&at)
    }

    fn commit(&mut self) {
        if !*self.staged.any.get_mut() {
            return;
        }
        *self.staged.any.get_mut() = false;
        let list = std::mem::take(self.staged.list.get_mut().unwrap_or_else(PoisonError::into_inner));
        // A switch changes one entry a cycle, so the order of the list, which is that of evaluation, does not matter.
        for (switch, change) in list {
            match change {
                Change::Erase(id) => self.remove(switch, id),
                Change::Write(entry) => {
                    self.remove(switch, entry.multicast_id);
                    _ = self.insert(switch, entry);
                }
            }
        }
    }

    fn staged(&self, to: &mut Saver) {
        to.value(&*self.staged.list.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn stage(&mut self, from: &mut Loader<'_>) -> Result<(), Mismatch> {
        let list: Vec<(u32, Change)> = from.value()?;
        *self.staged.any.get_mut() |= !list.is_empty();
        self.staged.list.get_mut().unwrap_or_else(PoisonError::into_inner).extend(list);
        Ok(())
    }

    fn no_route(&self, switch: u32, port: u16, _: &Flit) -> String {
        format!(
            "a frame came in by port {port} of {} and found neither an entry nor the discard port",
            self.name(switch)
        )
    }
}

/// The internal port of a switch. Frames without an entry end here: it takes a flit a cycle from every input port and counts
/// frames. And it is where the switch obeys the management agent:
///
/// | order | obeyed if | answer |
/// |---|---|---|
/// | CRC wrong, or malformed | never; counted | none: the agent sends it again |
/// | [`MOST_ORDERS`] wait already | never; counted | none |
/// | from another end point than the agent | never; counted | none |
/// | a number lower than the last one obeyed | never; counted | none: the agent has long gone on |
/// | the number obeyed last | it was; nothing changes | the same again |
/// | write, erase | the table has room | done, or no room |
///
/// The agent has one order under way at a switch, so one register with the last number tells a repeated or late order from a
/// new one *chosen*. Timing: an order whose tail was granted in cycle t is carried out in t + post + 1 + `write_cycles`;
/// its answer enters the crossbar flit by flit from then on.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
pub struct Discard {
    /// Frames that ended here.
    pub frames: u64,
    order_queue: Option<Box<OrderQueue>>,
}

/// Orders of the agent at the internal port, and their answers.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
struct OrderQueue {
    assembling: BTreeMap<u16, Assembly>,
    /// Orders and the cycle in which they can first be seen.
    orders: VecDeque<(Cycle, Message)>,
    /// Until when an entry is being written.
    busy_until: Cycle,
    last: Option<(u32, Verb)>,
    answers: VecDeque<Message>,
    leaving: Option<([u64; FRAME_WORDS], usize)>,
    /// The words behind the first of the flit that left last.
    more: Vec<u64>,
    /// How frames are cut into flits.
    cut: FlitSize,
    obeyed: u64,
    refused: Refusals,
    log: Vec<LoggedMessage>,
}

/// Orders that wait to be carried out; the agent has one under way, and what comes beyond these is refused *chosen*.
pub const MOST_ORDERS: usize = 4;
/// Answers that wait to leave; what comes meanwhile is not answered, and the agent asks again.
pub const MOST_ANSWERS: usize = 4;

impl OrderQueue {
    /// Carries out an order, and answers it.
    fn obey(&mut self, tables: &Tables, switch: u32, order: &Message) {
        let Some(managed) = tables.managed() else { return };
        if order.from != Place::End(managed.agent) {
            self.refused.count(Refused::Sender);
            return;
        }
        if order.to != Place::Switch(switch) || !matches!(order.verb, Verb::Write | Verb::Erase) {
            self.refused.count(Refused::Kind);
            return;
        }
        let verb = match self.last {
            Some((last, answer)) if last == order.number => answer,
            Some((last, _)) if last > order.number => {
                self.refused.count(Refused::Stale);
                return;
            }
            _ => {
                self.obeyed += 1;
                let change = order.change();
                let has_room = matches!(change, Change::Erase(_)) || tables.has_room(switch, order.ids[0]);
                if has_room {
                    tables.stage(switch, change);
                }
                if has_room { Verb::Done } else { Verb::NoRoom }
            }
        };
        self.last = Some((order.number, verb));
        if self.answers.len() < MOST_ANSWERS {
            let ids = [order.ids[0], NO_ID];
            let (to, from) = (order.from, Place::Switch(switch));
            self.answers.push_back(Message { ids, number: order.number, ..Message::new(to, from, verb, order.job) });
        }
    }
}

impl Discard {
    /// One that obeys the orders of an agent, which there is.
    pub fn managed(cut: FlitSize) -> Discard {
        Discard { frames: 0, order_queue: Some(Box::new(OrderQueue { cut, ..OrderQueue::default() })) }
    }

    /// Frames of the agent that it took or sent (only if logged).
    pub fn log(&self) -> &[LoggedMessage] {
        self.order_queue.as_ref().map_or(&[], |order_queue| &order_queue.log)
    }

    /// Orders it obeyed, and why it did not obey others.
    pub fn orders(&self) -> (u64, Refusals) {
        self.order_queue.as_ref().map_or_else(Default::default, |order_queue| (order_queue.obeyed, order_queue.refused))
    }
}

impl Join for Discard {
    type Tables = Tables;

    fn has_room(&self, _: u16, _: u8) -> bool {
        true
    }

    fn put_flit(&mut self, port: u16, vc: u8, flit: Flit, visible: Cycle) {
        self.put_wide(port, vc, (flit, &[]), visible);
    }

    fn put_wide(&mut self, port: u16, vc: u8, (flit, more): (Flit, &[u64]), visible: Cycle) {
        if vc != MANAGE {
            self.frames += u64::from(flit.tag.head());
            return;
        }
        let order_queue = self.order_queue.get_or_insert_default();
        let cut = order_queue.cut;
        let whole = order_queue.assembling.entry(port).or_default().take_words(cut, (&flit, more));
        match whole.map(|words| Message::decode(&words?)) {
            Some(Ok(_)) if order_queue.orders.len() >= MOST_ORDERS => order_queue.refused.count(Refused::State),
            Some(Ok(order)) => order_queue.orders.push_back((visible, order)),
            Some(Err(error)) => order_queue.refused.count(Refused::from(&error)),
            None => {}
        }
    }

    fn more(&self) -> &[u64] {
        self.order_queue.as_ref().map_or(&[], |order_queue| &order_queue.more)
    }

    fn tick(&mut self, cx: &JoinCx<'_, Tables>) -> JoinOut {
        let mut out = JoinOut { result: None, changed: false, wake: Wake::OnInput, fault: None };
        let Some(order_queue) = self.order_queue.as_deref_mut() else { return out };
        let write_cycles = cx.tables.managed().map_or(0, |managed| managed.write_cycles);
        if let Some(&(visible, order)) = order_queue.orders.front() {
            let ready = visible.max(order_queue.busy_until) + write_cycles;
            if ready <= cx.now {
                order_queue.orders.pop_front();
                order_queue.busy_until = cx.now;
                if cx.tables.cfg.log {
                    order_queue.log.push(LoggedMessage { cycle: cx.now, sent: false, message: order });
                }
                order_queue.obey(cx.tables, cx.switch, &order);
                out.changed = true;
            }
        }
        if order_queue.leaving.is_none()
            && let Some(answer) = order_queue.answers.pop_front()
        {
            order_queue.leaving = Some((answer.encode(), 0));
            if cx.tables.cfg.log {
                order_queue.log.push(LoggedMessage { cycle: cx.now, sent: true, message: answer });
            }
            out.changed = true;
        }
        let (cut, flits) = (order_queue.cut, order_queue.cut.flits(FRAME_BYTES));
        if let Some((words, sent)) = &mut order_queue.leaving
            && cx.queued.on(MANAGE) < flits
        {
            let word = cut.word(words, *sent, 0);
            out.result = Some(Flit::part(0, MANAGE, NO_TOKEN, *sent as u32, flits as u32, word));
            order_queue.more.clear();
            order_queue.more.extend(cut.words_behind(words, *sent));
            *sent += 1;
            if *sent == flits {
                order_queue.leaving = None;
            }
            out.changed = true;
        }
        if let Some((visible, _)) = order_queue.orders.front() {
            out.wake = Wake::At((visible.max(&order_queue.busy_until) + write_cycles).max(cx.now + 1));
        }
        if order_queue.leaving.is_some() && cx.queued.on(MANAGE) < flits || !order_queue.answers.is_empty() {
            out.wake = Wake::Next;
        }
        out
    }

    fn is_idle(&self) -> bool {
        self.order_queue.as_ref().is_none_or(|order_queue| {
            order_queue.orders.is_empty() && order_queue.answers.is_empty() && order_queue.leaving.is_none()
        })
    }

    fn waits_for(&self, _: &Tables, _: u32) -> Vec<(u16, u8, String)> {
        Vec::new()
    }

    fn probe(&self, scope: &mut watershed_probe::Scope<'_>) {
        scope.scope("discard", |scope| scope.bits("frames", 32, self.frames));
        if let Some(order_queue) = &self.order_queue {
            scope.scope("management", |scope| {
                scope.bits("orders", 8, order_queue.orders.len() as u64);
                scope.valid("last", 32, order_queue.last.map(|(number, _)| u64::from(number)));
                scope.bits("obeyed", 32, order_queue.obeyed);
            });
        }
    }
}

/// How frames look to a link with faults.
#[derive(Clone, Copy, Debug)]
pub struct Frames {
    /// Whether channel [`MANAGE`] is the agent's.
    pub agent: bool,
    /// How frames are cut into flits.
    pub cut: FlitSize,
}

impl View for Frames {
    fn direction(&self, _: u16, head: &Flit) -> Option<Direction> {
        match head.tag.vc() {
            UP => Some(Direction::Up),
            DOWN => Some(Direction::Down),
            // Which frames these are only systems with an agent ask.
            MANAGE if self.agent => Some(Direction::Agent),
            _ => None,
        }
    }

    fn damage(&self, _: &Flit, rng: &mut Rng) -> (u16, u16) {
        let (word, bit) = (rng.below(FRAME_WORDS as u64) as usize, rng.below(64) as u8);
        // Of the last word only the upper half is on the wire.
        self.cut.place(word, if word + 1 == FRAME_WORDS { 32 + bit % 32 } else { bit })
    }
}
