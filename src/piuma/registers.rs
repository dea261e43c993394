//! Configuration registers (requirements P-SW-1, P-SW-9; "In-network multicast operations", paragraphs 13, 14 and 34).
//!
//! Per switch, collective id, channel (request, response) and input port there is one register: a bit vector of the
//! output ports, bit n = port n. The bit of the engine port (10 on a die) hands the packet to the CENG. Per switch and
//! collective id one more register selects the CENG's operation.
//!
//! ```text
//!   address of a register, 64 bits wide, byte address
//!   ┌────────────────┬──────────────┬────┬──────────────────┬───┐
//!   │ switch  47:24  │  id  23:12   │ op │ channel  port    │000│
//!   └────────────────┴──────────────┴─11─┴───10─────9:3─────┴2:0┘
//! ```
//!
//! | offset in an id's page | register | bits |
//! |---|---|---|
//! | 0x000 + 8 x port | request vector of input `port` | n: output port n |
//! | 0x400 + 8 x port | response vector of input `port` | n: output port n |
//! | 0x808 | order of a scan | input ports in rank order, four bits each: see [`scan`](super::scan) |
//! | 0x800 | operation select | 7:0 operation, 15:8 data type, 17:16 rounding, 18 flush to zero |
//!
//! The codes of operation, data type and rounding are their places in [`Op::COMMON`], [`DType::ALL`] and
//! [`Round::ALL`]. All registers are zero at reset, can be read back, and are written by [`Registers::store`] only
//! *chosen: the sources give no map*. An engine is the root of its id if its request register (of the engine port) is
//! empty and its response register is not: there the result turns into a response.

use super::reach::Reach;
use super::word_hasher::WordHasher;
use super::{CHANNELS, REQUEST, RESPONSE, kind};
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;
use watershed_arith::{DType, Mode, Op, Round};
use watershed_fabric::Shares;
use watershed_fabric::routing::Routes;
use watershed_fabric::topology::Names;
use watershed_fabric::{Flit, PortSet, Route, RouteView, Tables};
use watershed_state::state;

/// The size of a register file.
#[derive(Clone, Debug)]
pub struct RegistersCfg {
    /// Number of switches.
    pub switches: u32,
    /// Register sets: collective ids 0 to `ids` - 1.
    pub ids: u16,
    /// External ports of a switch; the engine port follows them.
    pub external_ports: u16,
}

/// What the CENG does for one collective id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct OpSelect {
    /// Operation.
    pub op: Op,
    /// Data type of the lanes.
    pub dtype: DType,
    /// Rounding and flushing.
    pub mode: Mode,
}

impl Default for OpSelect {
    fn default() -> OpSelect {
        OpSelect { op: Op::Sum, dtype: DType::F64, mode: Mode::default() }
    }
}

impl OpSelect {
    /// The register's value.
    pub fn encode(self) -> u64 {
        let place = |found: Option<usize>| found.expect("every name is in its list") as u64;
        place(Op::COMMON.iter().position(|&op| op == self.op))
            | place(DType::ALL.iter().position(|&dtype| dtype == self.dtype)) << 8
            | place(Round::ALL.iter().position(|&round| round == self.mode.round)) << 16
            | u64::from(self.mode.flush_to_zero) << 18
    }

    /// What a register's value means; `None` if a field names nothing or an unused bit is set.
    pub fn decode(value: u64) -> Option<OpSelect> {
        if value >> 19 != 0 {
            return None;
        }
        let round = *Round::ALL.get((value >> 16 & 3) as usize)?;
        Some(OpSelect {
            op: *Op::COMMON.get((value & 0xff) as usize)?,
            dtype: *DType::ALL.get((value >> 8 & 0xff) as usize)?,
            mode: Mode { flush_to_zero: value >> 18 & 1 == 1, ..Mode::rounding(round) },
        })
    }
}

/// Why a load or store of a register failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// There is no register at this address.
    #[error("no register at {0:#014x}")]
    Unmapped(u64),
    /// The address is not a multiple of 8.
    #[error("register address {0:#014x} is not a multiple of 8")]
    Unaligned(u64),
    /// A bit is set for a port the switch does not have.
    #[error("value {value:#x} for {address:#014x} names a port above {last_port}")]
    NoSuchPort {
        /// The address.
        address: u64,
        /// What was to be stored.
        value: u64,
        /// The highest port there is: the engine's.
        last_port: u16,
    },
    /// The operation select register was given a code that means nothing.
    #[error("value {value:#x} for {address:#014x} is no operation")]
    NoSuchOperation {
        /// The address.
        address: u64,
        /// What was to be stored.
        value: u64,
    },
}

/// The register files of all switches, and the point-to-point routes beside them.
///
/// ```
/// use watershed_piuma::{REQUEST, Registers, RegistersCfg};
/// # use watershed_fabric::routing::{Routes, Routing};
/// # use watershed_fabric::topology::Die;
/// # let routes = Routes { routing: Routing::Die(Die::default()), ends: Vec::new() };
///
/// let cfg = RegistersCfg { switches: 1, ids: 4, external_ports: 10 };
/// let mut registers = Registers::new(cfg, vec!["sw0".to_owned()], routes);
/// // Requests of id 3 that come in by ports 2 and 7 go to the engine, which is port 10.
/// for port in [2, 7] {
///     registers.store(Registers::vector_address(0, 3, REQUEST, port), 1 << 10).unwrap();
/// }
/// assert_eq!(registers.engine_inputs(0, 3), 1 << 7 | 1 << 2);
/// assert!(registers.store(Registers::vector_address(0, 3, REQUEST, 2), 1 << 11).is_err()); // there is no port 11
/// ```
#[derive(Clone, Debug)]
pub struct Registers {
    cfg: RegistersCfg,
    /// By (switch, id): the number of its register set among the sets below. Switches with equal registers share one,
    /// and a store gives a switch one of its own first, so a system of millions of switches has a few thousand sets.
    sets: Vec<u32>,
    /// How many switches and ids a set serves.
    users: Vec<u32>,
    /// By (set, channel, port).
    vectors: Vec<u64>,
    /// By set.
    selects: Vec<OpSelect>,
    /// By (switch, id): input ports in rank order; 0 where no scan is configured. Empty until one is.
    orders: Vec<u64>,
    /// By set: input ports whose request vector has the engine's bit; kept with every store.
    engine_inputs: Vec<u64>,
    names: Names,
    /// By switch: the external ports that it was built with, a bit each, if it has only those; empty if all have all.
    wired: Vec<u64>,
    /// The sets as the fabric sees them, if not all switches have all ports: it counts those that were built.
    built: BuiltPorts,
    /// Point-to-point routes.
    pub routes: Routes,
    /// Programs may store to the registers while they run.
    pub rewritable: bool,
    /// How far they are from the programs' cores.
    pub reach: Option<Arc<Reach>>,
    /// How the point-to-point channels are shared between messages of hosts and ranks and traffic.
    pub shares: Shares,
    /// Set-routed channels whose flits are looked up here, from 0 on; those behind them are another family's.
    pub set_channels: u8,
    /// Point-to-point channels of messages by their numbers in the system, where they are not the first ones.
    pub messages: Option<std::ops::Range<u8>>,
}

state!(Registers {
    saved: sets, users, vectors, selects, orders, engine_inputs, built;
    built: cfg, names, wired, routes, rewritable, reach, shares, set_channels, messages
});

/// Register sets with ports as the fabric counts them; empty if all switches have all ports.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
struct BuiltPorts {
    /// By set: the external ports that its switches were built with.
    wired: Vec<u64>,
    /// As `vectors` of the registers.
    vectors: Vec<u64>,
    /// As `engine_inputs`.
    engine_inputs: Vec<u64>,
}

/// A set of ports as a switch counts them that has only `wired` of the external ones.
fn count_ports(wired: u64, mut ports: u64) -> u64 {
    let mut counted = 0;
    while ports != 0 {
        let below = (1 << ports.trailing_zeros()) - 1;
        counted |= 1 << (wired & below).count_ones();
        ports &= ports - 1;
    }
    counted
}

/// Which register an address names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterName {
    /// The switch.
    pub switch: u32,
    /// The collective id.
    pub id: u16,
    /// Channel and input port of a port vector; `None` for the operation and the order of a scan.
    pub vector: Option<(u8, u16)>,
}

/// Where a register lies in the arrays.
enum RegisterSlot {
    Vector(usize, u8, u16),
    Select(usize),
    Order(usize),
}

impl Registers {
    /// All registers zero. `names` are the switches' names, for messages.
    ///
    /// # Panics
    /// If a port set of one word is too small; scenario checks refuse that before.
    pub fn new(cfg: RegistersCfg, names: impl Into<Names>, routes: Routes) -> Registers {
        assert!(cfg.external_ports < 64, "a register is one word: at most 63 ports and the engine");
        let sets = cfg.switches as usize * usize::from(cfg.ids);
        let mut registers = Registers {
            sets: vec![0; sets],
            users: vec![sets as u32],
            vectors: Vec::new(),
            selects: vec![OpSelect::default()],
            orders: Vec::new(),
            engine_inputs: vec![0],
            names: names.into(),
            wired: Vec::new(),
            built: BuiltPorts::default(),
            routes,
            rewritable: false,
            reach: None,
            shares: Shares::WHOLE,
            set_channels: u8::MAX,
            messages: None,
            cfg,
        };
        registers.vectors = vec![0; registers.stride()];
        registers
    }

    /// Vectors of a set.
    fn stride(&self) -> usize {
        usize::from(CHANNELS) * usize::from(self.cfg.external_ports + 1)
    }

    /// Register sets that differ.
    pub fn distinct_sets(&self) -> usize {
        self.users.iter().filter(|&&users| users > 0).count()
    }

    /// A set that serves nobody but one switch and id, so that it can be written.
    fn own(&mut self, at: usize) -> usize {
        let set = self.sets[at] as usize;
        if self.users[set] == 1 {
            return set;
        }
        self.users[set] -= 1;
        let from = set * self.stride();
        self.vectors.extend_from_within(from..from + self.stride());
        self.selects.push(self.selects[set]);
        self.engine_inputs.push(self.engine_inputs[set]);
        if !self.wired.is_empty() {
            self.built.vectors.extend_from_within(from..from + self.stride());
            self.built.engine_inputs.push(self.built.engine_inputs[set]);
            self.built.wired.push(self.built.wired[set]);
        }
        self.users.push(1);
        self.sets[at] = (self.users.len() - 1) as u32;
        self.users.len() - 1
    }

    /// Lets a switch and id share set `to` instead of its own.
    fn share(&mut self, at: usize, to: usize) {
        self.users[self.sets[at] as usize] -= 1;
        self.users[to] += 1;
        self.sets[at] = to as u32;
    }

    /// Writes port vectors of an id, ascending by switch, channel and port. As many stores, and switches that end up with
    /// equal registers share them.
    ///
    /// # Errors
    /// If an address is refused; those before are written.
    pub fn store_vectors(
        &mut self,
        id: u16,
        vectors: impl Iterator<Item = ((u32, u8, u16), u64)>,
    ) -> Result<(), AddressError> {
        let mut known: HashMap<Box<[u64]>, usize, BuildHasherDefault<WordHasher>> = HashMap::default();
        let mut content = Vec::new();
        let mut vectors = vectors.peekable();
        while let Some(((switch, channel, port), vector)) = vectors.next() {
            self.store(Self::vector_address(switch, id, channel, port), vector)?;
            if vectors.peek().is_some_and(|((next, ..), _)| *next == switch) {
                continue;
            }
            // The switch is complete: does another one have the same?
            let at = self.set(switch, id);
            let set = self.sets[at] as usize;
            let from = set * self.stride();
            content.clear();
            content.extend_from_slice(&self.vectors[from..from + self.stride()]);
            content.push(self.selects[set].encode());
            content.extend(self.built.wired.get(set));
            match known.get(content.as_slice()) {
                None => drop(known.insert(content.as_slice().into(), set)),
                Some(&same) if same != set => {
                    self.share(at, same);
                    self.forget_last(set);
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Writes the operation select register of an id at many switches.
    pub fn store_select(&mut self, id: u16, switches: &[u32], select: OpSelect) {
        let mut known: HashMap<u32, usize> = HashMap::new();
        for &switch in switches {
            let at = self.set(switch, id);
            let before = self.sets[at];
            if let Some(&same) = known.get(&before) {
                self.share(at, same);
                continue;
            }
            let set = self.own(at);
            self.selects[set] = select;
            // A set that served only this switch serves no other one that comes later.
            if set != before as usize {
                known.insert(before, set);
            }
        }
    }

    /// Frees a set that nobody uses, if it is the last one.
    fn forget_last(&mut self, set: usize) {
        if self.users[set] == 0 && set + 1 == self.users.len() {
            self.users.pop();
            self.selects.pop();
            self.engine_inputs.pop();
            self.vectors.truncate(set * self.stride());
            self.built.wired.truncate(set);
            self.built.engine_inputs.truncate(set);
            self.built.vectors.truncate(set * self.stride());
        }
    }

    /// Says which external ports each switch was built with, a bit each: the fabric counts only those, from 0 on, while
    /// registers keep the numbers of all.
    pub fn wire(&mut self, ports: Vec<u64>) {
        (self.wired, self.built) = (Vec::new(), BuiltPorts::default());
        if ports.is_empty() {
            return;
        }
        // A set serves only switches that were built alike.
        let mut known: HashMap<(u32, u64), usize> = HashMap::new();
        let mut last = ((u32::MAX, 0), 0);
        let mut first = vec![None; self.users.len()];
        for at in 0..self.sets.len() {
            let (set, wired) = (self.sets[at], ports[at / usize::from(self.cfg.ids)]);
            if *first[set as usize].get_or_insert(wired) == wired {
                continue;
            }
            // Most ids of a switch have the same set as the id before.
            if last.0 == (set, wired) {
                self.share(at, last.1);
                continue;
            }
            let same = if let Some(&same) = known.get(&(set, wired)) {
                self.share(at, same);
                same
            } else {
                let own = self.own(at);
                known.insert((set, wired), own);
                first.push(Some(wired));
                own
            };
            last = ((set, wired), same);
        }
        self.wired = ports;
        self.built.wired = first.into_iter().map(Option::unwrap_or_default).collect();
        self.built.vectors = vec![0; self.vectors.len()];
        self.built.engine_inputs = vec![0; self.engine_inputs.len()];
        (0..self.users.len()).for_each(|set| self.count_set(set));
    }

    /// Writes what the fabric sees of a set.
    fn count_set(&mut self, set: usize) {
        let Some(&wired) = self.built.wired.get(set) else { return };
        let row = usize::from(self.cfg.external_ports + 1);
        for from in (set * self.stride()..).step_by(row).take(usize::from(CHANNELS)) {
            let built = (0..row).filter(|&port| port + 1 == row || wired >> port & 1 == 1);
            for (counted, port) in built.enumerate() {
                self.built.vectors[from + counted] = count_ports(wired, self.vectors[from + port]);
            }
        }
        self.built.engine_inputs[set] = count_ports(wired, self.engine_inputs[set]);
    }

    /// A set of ports as the fabric counts them.
    #[inline]
    pub fn counted(&self, switch: u32, ports: u64) -> u64 {
        self.wired.get(switch as usize).map_or(ports, |&wired| count_ports(wired, ports))
    }

    /// The number, in registers, of a port as the fabric counts it.
    #[inline]
    pub fn numbered(&self, switch: u32, port: u16) -> u16 {
        let Some(&wired) = self.wired.get(switch as usize) else { return port };
        let mut left = wired;
        for _ in 0..port {
            left &= left.wrapping_sub(1);
        }
        if left == 0 { self.engine_port() } else { left.trailing_zeros() as u16 }
    }

    /// The engine's port number.
    pub fn engine_port(&self) -> u16 {
        self.cfg.external_ports
    }

    /// Number of collective ids.
    pub fn ids(&self) -> u16 {
        self.cfg.ids
    }

    /// Number of switches.
    pub fn switches(&self) -> u32 {
        self.cfg.switches
    }

    /// The name of a switch.
    pub fn name(&self, switch: u32) -> Cow<'_, str> {
        self.names.of(switch)
    }

    /// The address of a port vector.
    pub fn vector_address(switch: u32, id: u16, channel: u8, port: u16) -> u64 {
        u64::from(switch) << 24 | u64::from(id) << 12 | u64::from(channel) << 10 | u64::from(port) << 3
    }

    /// The address of an operation select register.
    pub fn select_address(switch: u32, id: u16) -> u64 {
        u64::from(switch) << 24 | u64::from(id) << 12 | 0x800
    }

    /// Which register is at an address.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(&self, address: u64) -> Result<RegisterName, AddressError> {
        let vector = match self.place(address)? {
            RegisterSlot::Vector(_, channel, port) => Some((channel, port)),
            RegisterSlot::Select(_) | RegisterSlot::Order(_) => None,
        };
        Ok(RegisterName { switch: (address >> 24) as u32, id: (address >> 12 & 0xfff) as u16, vector })
    }

    fn place(&self, address: u64) -> Result<RegisterSlot, AddressError> {
        if address & 7 != 0 {
            return Err(AddressError::Unaligned(address));
        }
        let unmapped = AddressError::Unmapped(address);
        let (switch, id) = (address >> 24, address >> 12 & 0xfff);
        if switch >= u64::from(self.cfg.switches) || id >= u64::from(self.cfg.ids) {
            return Err(unmapped);
        }
        let set = (switch * u64::from(self.cfg.ids) + id) as usize;
        let offset = address & 0xfff;
        if offset == 0x800 {
            return Ok(RegisterSlot::Select(set));
        }
        if offset == 0x808 {
            return Ok(RegisterSlot::Order(set));
        }
        let (channel, port) = (offset >> 10, (offset >> 3 & 0x7f) as u16);
        if channel >= u64::from(CHANNELS) || port > self.cfg.external_ports {
            return Err(unmapped);
        }
        Ok(RegisterSlot::Vector(set, channel as u8, port))
    }

    #[inline]
    fn vector_index(&self, set: usize, channel: u8, port: u16) -> usize {
        let set = self.sets[set] as usize;
        (set * usize::from(CHANNELS) + usize::from(channel)) * usize::from(self.cfg.external_ports + 1)
            + usize::from(port)
    }

    /// Reads a register.
    ///
    /// # Errors
    /// If there is none at the address.
    pub fn load(&self, address: u64) -> Result<u64, AddressError> {
        Ok(match self.place(address)? {
            RegisterSlot::Vector(set, channel, port) => self.vectors[self.vector_index(set, channel, port)],
            RegisterSlot::Select(set) => self.selects[self.sets[set] as usize].encode(),
            RegisterSlot::Order(set) => self.orders.get(set).copied().unwrap_or(0),
        })
    }

    /// Writes a register.
    ///
    /// # Errors
    /// If there is none at the address, or the value has no meaning there; nothing is changed then.
    pub fn store(&mut self, address: u64, value: u64) -> Result<(), AddressError> {
        match self.place(address)? {
            RegisterSlot::Vector(at, channel, port) => {
                let last_port = self.engine_port();
                if value >> last_port > 1 {
                    return Err(AddressError::NoSuchPort { address, value, last_port });
                }
                let set = self.own(at);
                let index = self.vector_index(at, channel, port);
                self.vectors[index] = value;
                if channel == REQUEST {
                    self.engine_inputs[set] &= !(1 << port);
                    self.engine_inputs[set] |= (value >> last_port & 1) << port;
                }
                self.count_set(set);
            }
            RegisterSlot::Order(set) => {
                if let Some(port) = super::scan::ports(value).find(|&port| port >= self.cfg.external_ports) {
                    let value = u64::from(port);
                    return Err(AddressError::NoSuchPort { address, value, last_port: self.cfg.external_ports - 1 });
                }
                if self.orders.is_empty() {
                    self.orders = vec![0; self.sets.len()];
                }
                self.orders[set] = value;
            }
            RegisterSlot::Select(at) => {
                let select = OpSelect::decode(value).ok_or(AddressError::NoSuchOperation { address, value })?;
                let set = self.own(at);
                self.selects[set] = select;
            }
        }
        Ok(())
    }

    #[inline]
    fn set(&self, switch: u32, id: u16) -> usize {
        switch as usize * usize::from(self.cfg.ids) + usize::from(id)
    }

    /// The vector of an input port.
    #[inline]
    pub fn vector(&self, switch: u32, id: u16, channel: u8, port: u16) -> u64 {
        self.vectors[self.vector_index(self.set(switch, id), channel, port)]
    }

    /// What the CENG of a switch does for an id.
    #[inline]
    pub fn select(&self, switch: u32, id: u16) -> OpSelect {
        self.selects[self.sets[self.set(switch, id)] as usize]
    }

    /// The address of the order register.
    pub fn order_address(switch: u32, id: u16) -> u64 {
        Registers::select_address(switch, id) + 8
    }

    /// The order register of a switch for an id.
    #[inline]
    pub fn order(&self, switch: u32, id: u16) -> u64 {
        if self.orders.is_empty() { 0 } else { self.orders[self.set(switch, id)] }
    }

    /// The input ports whose requests the CENG of a switch joins for an id.
    #[inline]
    pub fn engine_inputs(&self, switch: u32, id: u16) -> u64 {
        self.engine_inputs[self.sets[self.set(switch, id)] as usize]
    }

    /// The same as the fabric counts ports.
    #[inline]
    pub fn counted_inputs(&self, switch: u32, id: u16) -> u64 {
        let set = self.sets[self.set(switch, id)] as usize;
        *self.built.engine_inputs.get(set).unwrap_or_else(|| &self.engine_inputs[set])
    }

    /// Operations and types that the engine of a switch may be given: those of the ids that are configured, or all where
    /// programs may configure others.
    pub fn engine_selects(&self, switch: u32) -> Vec<(Op, DType)> {
        if self.rewritable {
            return Op::COMMON.iter().flat_map(|&op| DType::ALL.iter().map(move |&dtype| (op, dtype))).collect();
        }
        let ids = (0..self.cfg.ids).filter(|&id| self.engine_inputs(switch, id) != 0);
        ids.map(|id| self.select(switch, id)).map(|select| (select.op, select.dtype)).collect()
    }

    /// Whether the engine of a switch may have scans.
    pub fn scans(&self, switch: u32) -> bool {
        self.rewritable || (0..self.cfg.ids).any(|id| self.order(switch, id) != 0)
    }

    /// Whether a switch is the root of an id: its engine's result turns into a response.
    #[inline]
    pub fn is_root(&self, switch: u32, id: u16) -> bool {
        let engine = self.engine_port();
        self.vector(switch, id, REQUEST, engine) == 0 && self.vector(switch, id, RESPONSE, engine) != 0
    }
}

impl Tables<1> for Registers {
    #[inline]
    fn outputs(&self, switch: u32, port: u16, flit: &Flit) -> PortSet<1> {
        let id = flit.tag.id();
        if id >= self.cfg.ids {
            return PortSet::EMPTY;
        }
        if !self.orders.is_empty() && kind(flit.tag.vc()) == RESPONSE && self.order(switch, id) != 0 {
            // A scan: the unit makes a response for each input, and takes the one from above, which comes back by the port
            // where its total left. What only passes through has a response register as any other.
            let (port, engine) = (self.numbered(switch, port), self.engine_port());
            if port == engine {
                return PortSet::from_word(self.counted(switch, 1 << super::scan::target(flit.tag.seq())));
            }
            if self.vector(switch, id, REQUEST, engine) >> port & 1 == 1 {
                return PortSet::from_word(self.counted(switch, 1 << engine));
            }
            return PortSet::from_word(self.counted(switch, self.vector(switch, id, RESPONSE, port)));
        }
        let at = self.vector_index(self.set(switch, id), kind(flit.tag.vc()), port);
        PortSet::from_word(*self.built.vectors.get(at).unwrap_or_else(|| &self.vectors[at]))
    }

    fn port_number(&self, switch: u32, port: u16) -> u16 {
        self.numbered(switch, port)
    }

    #[inline(always)]
    fn unicast(&self, at: &RouteView<'_>, flit: &Flit) -> Route {
        let at = self.shares.of(at);
        self.routes.route(&at, flit).to_all_channels(&at)
    }

    fn no_route(&self, switch: u32, port: u16, flit: &Flit) -> String {
        let channel = if kind(flit.tag.vc()) == REQUEST { "request" } else { "response" };
        let port = self.numbered(switch, port);
        format!(
            "{}: a {channel} of collective id {} came in by port {port}, whose {channel} register is empty",
            self.name(switch),
            flit.tag.id()
        )
    }
}

#[cfg(test)]
mod tests;
