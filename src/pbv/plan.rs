//! Collectives as trees of engines, and the frames that set them up (B-PKT-2 to B-PKT-5, B-HI-1, B-HI-7).
//!
//! ```text
//!   master engine ─┬─ subservient engine ─┬─ engine …
//!                  │                      └─ its nodes
//!                  └─ its own nodes
//! ```
//!
//! All contexts of an engine share a PBV table, and a context selects from it by its mask. [`tables`] gives every
//! engine one table that serves all collectives: first the engines below it, then its nodes, each in the order in which
//! the collectives name them.

use std::collections::{BTreeMap, BTreeSet};

use super::packet::{
    Body, ConfigRecord, Groups, Header, InitRecord, MAX_PAYLOAD_BYTES, Message, NO_DEVICE, PBV_ENTRIES, Packet,
};
use super::reports::Reports;
use super::tables::{METRICS, Owner, engine_base};
use watershed_arith::{DType, Mode, Op};

/// An engine of a collective with all devices directly below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Device ID of its switch.
    pub device: u16,
    /// Participants among its nodes.
    pub nodes: Vec<u16>,
    /// Engines below it.
    pub engines: Vec<Branch>,
}

impl Branch {
    /// An engine with nodes and nothing below.
    pub fn leaf(device: u16, nodes: impl IntoIterator<Item = u16>) -> Branch {
        Branch { device, nodes: nodes.into_iter().collect(), engines: Vec::new() }
    }

    /// The same with engines below it.
    #[must_use]
    pub fn over(mut self, engines: impl IntoIterator<Item = Branch>) -> Branch {
        self.engines.extend(engines);
        self
    }

    /// All engines, itself first, depth first.
    pub fn preorder(&self) -> Vec<&Branch> {
        let mut all = vec![self];
        for engine in &self.engines {
            all.extend(engine.preorder());
        }
        all
    }

    /// All devices directly below: engines, then nodes.
    fn below(&self) -> Vec<u16> {
        self.engines.iter().map(|engine| engine.device).chain(self.nodes.iter().copied()).collect()
    }

    /// Levels of engines below it.
    pub fn height(&self) -> u32 {
        self.engines.iter().map(|engine| engine.height() + 1).max().unwrap_or(0)
    }

    /// All participants.
    pub fn participants(&self) -> Vec<u16> {
        self.preorder().into_iter().flat_map(|branch| branch.nodes.iter().copied()).collect()
    }
}

/// A collective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collective {
    /// Its context.
    pub cc_id: u16,
    /// The end point that issues it.
    pub source: u16,
    /// The master engine and everything below it.
    pub tree: Branch,
    /// Operation.
    pub op: Op,
    /// Type of the lanes.
    pub dtype: DType,
    /// Words of data; 0 for a barrier.
    pub words: u16,
    /// Initial value of the master's accumulators: it enters once a reduction.
    pub initial: Option<u64>,
    /// Reduction in the order of PBV entries.
    pub pbv_order: bool,
    /// Armed again when satisfied.
    pub rearm: bool,
    /// Which of the packet engines of each switch it uses, counted from 0.
    pub plane: u8,
    /// Rounding and flushing of the reduction.
    pub mode: Mode,
    /// The source sends its data to all nodes, without a reduction.
    pub multicast: bool,
    /// It is a group of an inter-group barrier.
    pub groups: Option<Groups>,
    /// Initialisation goes to switches only: end devices learn what they need from commands (B-PKT-5).
    pub engines_only: bool,
    /// Traffic class of its frames, 0 to 7.
    pub traffic_class: u8,
    /// The master hands responses to the source, which merges them.
    pub to_source: bool,
    /// Device IDs of the switches whose engines hand responses of engines below them on, unmerged.
    pub forwards: BTreeSet<u16>,
}

/// Why collectives do not fit the tables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// More than 128 devices below one engine.
    #[error("engine {device:#06x} would have {entries} devices below it; a PBV table has {PBV_ENTRIES} entries")]
    TooMany {
        /// The engine.
        device: u16,
        /// Devices.
        entries: usize,
    },
    /// A device is an engine in one collective and a node in another.
    #[error("device {0:#06x} is an engine here and a node there")]
    Both(u16),
    /// CC_ID has 12 bits.
    #[error("context {0:#x}; a CC_ID has 12 bits")]
    Context(u16),
}

impl Collective {
    /// A barrier.
    pub fn barrier(cc_id: u16, source: u16, tree: Branch) -> Collective {
        Collective {
            cc_id,
            source,
            tree,
            op: Op::Barrier,
            dtype: DType::U64,
            words: 0,
            initial: None,
            pbv_order: false,
            rearm: false,
            plane: 0,
            mode: Mode::default(),
            multicast: false,
            groups: None,
            engines_only: false,
            traffic_class: 0,
            to_source: false,
            forwards: BTreeSet::new(),
        }
    }

    /// An all-reduce of this many words.
    pub fn all_reduce(cc_id: u16, source: u16, tree: Branch, op: Op, dtype: DType, words: u16) -> Collective {
        Collective { op, dtype, words, ..Collective::barrier(cc_id, source, tree) }
    }

    /// An inter-group barrier (B-CE-9): one context for each group, numbered from `cc_id` on.
    ///
    /// # Panics
    /// If there are fewer than two groups or more than 255, or the trees have different masters.
    pub fn inter_group_barrier(cc_id: u16, source: u16, trees: Vec<Branch>) -> Vec<Collective> {
        let count = u8::try_from(trees.len()).ok().filter(|&count| count >= 2).expect("2 to 255 groups");
        assert!(trees.iter().all(|tree| tree.device == trees[0].device), "groups have one master engine");
        let groups = Some(Groups { first: cc_id, count });
        let group = |(tree, cc_id)| Collective { groups, ..Collective::barrier(cc_id, source, tree) };
        trees.into_iter().zip(cc_id..).map(group).collect()
    }

    /// Header of a frame of this collective from its source to an engine.
    pub fn header(&self, message: Message, engine: u16) -> Header {
        let mut header = Header::new(message, self.source, engine, engine_base(self.plane));
        (header.rounding.round, header.rounding.flush_to_zero) = (self.mode.round, self.mode.flush_to_zero);
        header.tlp.tc = self.traffic_class;
        (header.cc_id, header.dmu_id, header.op, header.dtype) = (self.cc_id, self.source, self.op, self.dtype);
        header
    }

    /// Its command: 32 bytes to the master engine.
    pub fn command(&self, run: u32) -> Packet {
        let mut header = self.header(Message::Command, self.tree.device);
        (header.run, header.p_count) = (run, self.tree.participants().len() as u16);
        Packet::bare(header)
    }

    /// A frame of data for all nodes, 32 bytes and the words, to the master engine; posted, or acknowledged by all.
    pub fn cast(&self, run: u32, words: Vec<u64>, posted: bool) -> Packet {
        let mut header = self.header(Message::Multicast, self.tree.device);
        (header.run, header.p_count, header.posted) = (run, self.tree.participants().len() as u16, posted);
        Packet::of(header, words)
    }

    /// Engines whose responses an engine is sent from the way below another one: itself if it has anything to say, and those
    /// that it hands on.
    fn responders(&self, branch: &Branch) -> Vec<u16> {
        if !self.forwards.contains(&branch.device) {
            return vec![branch.device];
        }
        let own = (!branch.nodes.is_empty()).then_some(branch.device);
        own.into_iter().chain(branch.engines.iter().flat_map(|below| self.responders(below))).collect()
    }

    /// Engines and nodes whose answers an engine of its tree expects.
    fn expected(&self, branch: &Branch) -> Vec<u16> {
        let merges = !self.forwards.contains(&branch.device);
        let engines = branch.engines.iter().filter(|_| merges).flat_map(|below| self.responders(below));
        engines.chain(branch.nodes.iter().copied()).collect()
    }

    /// The PBV of its participants at an engine of its tree.
    pub fn mask(&self, branch: &Branch, tables: &Tables) -> u128 {
        self.bits(branch, &self.expected(branch), tables)
    }

    fn bits(&self, branch: &Branch, devices: &[u16], tables: &Tables) -> u128 {
        devices.iter().fold(0, |mask, &device| {
            mask | 1 << tables.entry((branch.device, self.plane), device).expect("planned from this collective")
        })
    }

    /// The engine above one of its tree, and the one that expects its response.
    fn superiors(&self, device: u16) -> (u16, u16) {
        let all = self.tree.preorder();
        let above = |device: u16| all.iter().find(|branch| branch.engines.iter().any(|below| below.device == device));
        let Some(parent) = above(device) else { return (NO_DEVICE, NO_DEVICE) };
        let mut collector = parent;
        while self.forwards.contains(&collector.device)
            && let Some(next) = above(collector.device)
        {
            collector = next;
        }
        (parent.device, collector.device)
    }

    fn record(&self, branch: &Branch, tables: &Tables) -> InitRecord {
        let master = branch.device == self.tree.device;
        let (above, collector) = self.superiors(branch.device);
        let told = self.multicast || !self.tree.participants().contains(&self.source);
        let outside = master && told;
        InitRecord {
            words: self.words,
            below: branch.preorder().len() as u16 - 1,
            initial: self.initial.filter(|_| master),
            pbv_order: self.pbv_order,
            rearm: self.rearm,
            answer_source: outside && self.groups.is_none() && !self.to_source,
            master,
            to_source: master && self.to_source,
            groups: self.groups,
            above,
            collector,
            down: self.bits(branch, &branch.below(), tables),
            ..InitRecord::barrier(branch.device, self.mask(branch, tables))
        }
    }

    /// The record of every engine, depth first from the master.
    pub fn records(&self, tables: &Tables) -> Vec<InitRecord> {
        self.tree.preorder().into_iter().map(|branch| self.record(branch, tables)).collect()
    }

    fn initialisation(&self, engine: u16) -> Header {
        Header { engines_only: self.engines_only, ..self.header(Message::Initialisation, engine) }
    }

    /// One initialisation frame to the master, which hands every engine below its records.
    pub fn initialise(&self, tables: &Tables) -> Packet {
        Packet { header: self.initialisation(self.tree.device), body: Body::Initialisation(self.records(tables)) }
    }

    /// One initialisation frame to every engine, straight from the source.
    pub fn initialise_each(&self, tables: &Tables) -> Vec<Packet> {
        let frame = |record: InitRecord| Packet {
            header: self.initialisation(record.device),
            body: Body::Initialisation(vec![InitRecord { below: 0, ..record }]),
        };
        self.records(tables).into_iter().map(frame).collect()
    }

    /// Header of the contributions of a node, with the engine it answers to: what a source needs for its own.
    pub fn like(&self, node: u16, tables: &Tables) -> Header {
        let mut header = self.header(Message::Contribution, NO_DEVICE);
        header.requester = node;
        if let Some(branch) = self.tree.preorder().into_iter().find(|branch| branch.nodes.contains(&node)) {
            header.device = branch.device;
            header.p_id = tables.entry((branch.device, self.plane), node).expect("planned from this collective");
        }
        header
    }
}

/// Bits of a register write through the side port: address and value.
pub const SIDE_PORT_BITS: u64 = 16 + 32;

/// A packet engine: device ID of its switch, and which one it is there.
pub type EngineId = (u16, u8);

/// The PBV tables of all engines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// By device ID of the switch and number of the engine there.
    pub engines: BTreeMap<EngineId, ConfigRecord>,
}

/// Owners of the contexts of all these collectives at every engine that has to do with them: their sources, and the engines
/// above.
pub fn context_owners(collectives: &[Collective]) -> BTreeMap<EngineId, BTreeMap<u16, Owner>> {
    let mut owners: BTreeMap<EngineId, BTreeMap<u16, Owner>> = BTreeMap::new();
    for of in collectives {
        for branch in of.tree.preorder() {
            let owner = Owner { device: of.source, through: of.superiors(branch.device).0 };
            owners.entry((branch.device, of.plane)).or_default().insert(of.cc_id, owner);
        }
    }
    owners
}

/// Tables that serve all these collectives.
///
/// # Errors
/// What does not fit.
pub fn tables(collectives: &[Collective]) -> Result<Tables, PlanError> {
    let mut below: BTreeMap<EngineId, (Vec<u16>, Vec<u16>)> = BTreeMap::new();
    for collective in collectives {
        if collective.cc_id > 0xfff {
            return Err(PlanError::Context(collective.cc_id));
        }
        for branch in collective.tree.preorder() {
            let (engines, nodes) = below.entry((branch.device, collective.plane)).or_default();
            let expected = collective.expected(branch);
            let answering = expected.iter().filter(|device| !branch.nodes.contains(device));
            for &engine in branch.engines.iter().map(|engine| &engine.device).chain(answering) {
                if !engines.contains(&engine) {
                    engines.push(engine);
                }
            }
            for node in &branch.nodes {
                if !nodes.contains(node) {
                    nodes.push(*node);
                }
            }
        }
    }
    let mut tables = Tables::default();
    let engine_ids: BTreeSet<u16> = below.keys().map(|&(device, _)| device).collect();
    for (&engine_id, (engines, nodes)) in &below {
        let device = engine_id.0;
        if let Some(&both) = nodes.iter().find(|node| engine_ids.contains(node)) {
            return Err(PlanError::Both(both));
        }
        let entries: Vec<u16> = engines.iter().chain(nodes).copied().collect();
        if entries.len() > PBV_ENTRIES {
            return Err(PlanError::TooMany { device, entries: entries.len() });
        }
        let switches = if engines.len() == PBV_ENTRIES { u128::MAX } else { (1 << engines.len()) - 1 };
        tables.engines.insert(engine_id, ConfigRecord::of(device, entries, switches));
    }
    Ok(tables)
}

impl Tables {
    /// The entry of a device in an engine's table.
    pub fn entry(&self, engine: EngineId, device: u16) -> Option<u8> {
        self.engines.get(&engine)?.entries.iter().position(|&entry| entry == device).map(|entry| entry as u8)
    }

    /// Plain register writes, one an entry, from a source: `device_C0yy` (paragraph 175). Time-outs and settings that are
    /// not the registers' first values are written too.
    pub fn writes(&self, source: u16) -> Vec<Packet> {
        let mut frames = Vec::new();
        for (&(device, plane), record) in &self.engines {
            let mut write = |offset: u16, words: Vec<u64>| {
                let header = Header::new(Message::Write, source, device, engine_base(plane) + offset);
                frames.push(Packet::of(header, words));
            };
            for (entry, &device) in record.entries.iter().enumerate() {
                let engine = (record.switches >> entry & 1) as u64;
                write(2 * entry as u16, vec![u64::from(device) | engine << 16]);
            }
            let plain = ConfigRecord::of(device, record.entries.clone(), record.switches);
            if (ConfigRecord { window: 0, reports: None, ..record.clone() }) != plain {
                let settings = u64::from(record.report_errors) | u64::from(record.validate) << 1;
                write(0x100, vec![u64::from(record.timeout), u64::from(record.retries), settings]);
            }
            if record.window != 0 {
                write(METRICS, vec![record.window.into()]);
            }
            if let Some(Reports { levels, queues, collector }) = record.reports {
                write(0x130, [levels, queues, collector].map(u64::from).to_vec());
            }
            if record.isl_ports != 0 {
                write(0x110, vec![record.isl_ports & 0xffff_ffff, record.isl_ports >> 32]);
            }
        }
        frames
    }

    /// When the last bit of every engine's table has come over the side port. Each register write has an address of 16
    /// bits and a value of 32, sent over the given data lines at the given cycles a bit, one engine after the other
    /// *\[chosen\]*.
    pub fn side_port(&self, cycles_per_bit: u64, lanes: u64) -> BTreeMap<EngineId, u64> {
        let mut written: BTreeMap<u16, BTreeMap<u8, u64>> = BTreeMap::new();
        for frame in self.writes(NO_DEVICE) {
            let plane = ((frame.header.offset - engine_base(0)) / super::tables::ENGINE_SPAN) as u8;
            *written.entry(frame.header.device).or_default().entry(plane).or_default() += frame.words().len() as u64;
        }
        let mut now = 0;
        let engine_ids = self.engines.keys().map(|&(device, plane)| {
            let registers = written.get(&device).and_then(|planes| planes.get(&plane)).copied().unwrap_or(0);
            now += registers * SIDE_PORT_BITS.div_ceil(lanes) * cycles_per_bit;
            ((device, plane), now)
        });
        engine_ids.collect()
    }

    /// One configuration frame an engine, from a source.
    pub fn frames(&self, source: u16) -> Vec<Packet> {
        let frame = |(&(device, plane), record): (&EngineId, &ConfigRecord)| Packet {
            header: Header::new(Message::Configuration, source, device, engine_base(plane)),
            body: Body::Configuration(vec![record.clone()]),
        };
        self.engines.iter().map(frame).collect()
    }

    /// Large configuration frames with a record for every switch, to the engines of one, which send the others theirs: one a
    /// plane of engines, and more where the records do not fit a frame.
    pub fn large_frames(&self, source: u16, engine: u16) -> Vec<Packet> {
        let mut frames: Vec<Packet> = Vec::new();
        let planes: BTreeSet<u8> = self.engines.keys().map(|&(_, plane)| plane).collect();
        for plane in planes {
            let header = Header::new(Message::Configuration, source, engine, engine_base(plane));
            let (mut records, mut bytes) = (Vec::new(), 0);
            for (_, record) in self.engines.iter().filter(|((_, at), _)| *at == plane) {
                if bytes + record.bytes() > MAX_PAYLOAD_BYTES {
                    frames.push(Packet { header, body: Body::Configuration(std::mem::take(&mut records)) });
                    bytes = 0;
                }
                bytes += record.bytes();
                records.push(record.clone());
            }
            frames.push(Packet { header, body: Body::Configuration(records) });
        }
        frames
    }
}
