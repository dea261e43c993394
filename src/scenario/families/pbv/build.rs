//! From a checked PBV scenario to a system: device IDs, trees of engines, tables, the frames that set them up, faults,
//! nodes.

mod nodes;

use std::collections::{BTreeMap, BTreeSet};

use super::config::{Collective, Pbv};
use super::context_share::ContextShare;
use super::file::{
    AttachFile, ConfigurationFile, HazardFile, InitialisationFile, KindFile, MergeFile, OrderFile, TreeFile,
};
use crate::build::routed_layout;
use crate::config::{Auto, Data};
use crate::problem::Problem;
use crate::sources::{self, Sources};
use crate::switches::{buffer, channel_kinds, pipeline, policy, router};
use crate::workload::{self, config::TracedWorkload};
use crate::{Loaded, Problems, Scenario};
use watershed_arith::Mode;
use watershed_fabric::routing::Routes;
use watershed_fabric::topology::{Common, EndPlace, Layout, LinkParams};
use watershed_fabric::{FlitSize, PlanLink, RouterCfg, SwitchCfg, Vcs};
use watershed_kernel::Cycle;
use watershed_pbv::ce::{CeCfg, Hazard};
use watershed_pbv::engine::EngineCfg;
use watershed_pbv::metrics::QUEUES;
use watershed_pbv::node::{Node, SendCondition};
use watershed_pbv::packet::{
    Groups, HEADER_BYTES, Header, MAX_PAYLOAD_BYTES, Message, NO_DEVICE, PBV_ENTRIES, Packet, PacketError,
};
use watershed_pbv::plan::{self, Branch, Tables};
use watershed_pbv::reports::Reports;
use watershed_pbv::routes::{Directory, FRAMES, route_flits};
use watershed_pbv::system::{PlacedSystem, System, SystemPlan, WireBlock, WireCfg};
use watershed_pbv::tables::{ENGINE_BASE, ENGINE_SPAN, METRICS, Owner, Owners, engine_base};

/// A system and what runs on it; without the system (`()`) where the runner owns that.
pub struct PbvBuild<S = System> {
    /// The system at cycle 0.
    pub system: S,
    /// The collectives, as their sources know them, in the order of the scenario.
    pub collectives: Vec<plan::Collective>,
    /// The contributions, in the order of the participants: words of all rounds.
    pub operands: Vec<Vec<Vec<u64>>>,
    /// Tables of the engines.
    pub tables: Tables,
    /// Device ID of every end point.
    pub devices: Vec<u16>,
    /// Names by device ID: of switches and end points.
    pub names: BTreeMap<u16, String>,
    /// Values that follow from the rest.
    pub derived: Vec<(String, u64)>,
    /// The sources of traffic, if there are any.
    pub(crate) sources: Option<Sources>,
}

impl<S> PbvBuild<S> {
    /// The system, and what runs on it.
    pub(crate) fn split(self) -> (S, PbvBuild<()>) {
        let PbvBuild { system, collectives, operands, tables, devices, names, derived, sources } = self;
        (system, PbvBuild { system: (), collectives, operands, tables, devices, names, derived, sources })
    }
}

impl PbvBuild<()> {
    /// The same with a system.
    fn with(self, system: System) -> PbvBuild {
        let PbvBuild { collectives, operands, tables, devices, names, derived, sources, .. } = self;
        PbvBuild { system, collectives, operands, tables, devices, names, derived, sources }
    }
}

/// What a build can leave out.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuildOptions {
    /// Leaves link monitors and records for the golden check out.
    pub no_checks: bool,
    /// Logs frames for a ladder.
    pub log: bool,
    /// Keeps what every collective engine is given.
    pub given: bool,
    /// As of [the other families](crate::build::BuildOptions::threads).
    pub threads: usize,
}

/// Builds the system of a scenario.
///
/// # Errors
/// What is wrong with the configuration, at its place.
pub fn build(loaded: &Loaded, options: BuildOptions) -> Result<PbvBuild, Problems> {
    let scenario = &loaded.scenario;
    let common = common(scenario);
    let mut problems = Vec::new();
    let lanes = sources::lanes(scenario);
    let Some(mut lay) = routed_layout(loaded, &common, lanes, &mut problems) else {
        return Err(loaded.problems(problems));
    };
    let sources = Sources::at_ends(scenario, &lay, common.local, &mut problems);
    let own_ports = lay.external_ports;
    add_ports(scenario, &mut lay);
    let mut builder = Builder { own_ports, problems, sources, ..Builder::new(loaded, options, &lay) };
    let ready = builder.build(&lay, common.local);
    match ready {
        Some(mut ready) if builder.problems.is_empty() => {
            for bump in ready.system.bumps.iter_mut().filter(|_| options.given) {
                if let WireBlock::Engine(engine) = bump {
                    engine.keep_given();
                }
            }
            Ok(builder.wire(ready))
        }
        _ => Err(loaded.problems(builder.problems)),
    }
}

/// Links and channels: one channel for frames, so that messages from one device to another never overtake each other, and
/// behind it those of traffic.
fn common(scenario: &Scenario) -> Common {
    let traffic = if scenario.traffic.is_empty() { 0 } else { scenario.switch.point_to_point_vcs as u8 };
    Common {
        vcs: Vcs { set: 0, unicast: FRAMES + 1 + traffic },
        engine: false,
        link: scenario.link.params(),
        local: scenario.link.local_params(),
    }
}

/// Adds ports to all switches for engines that have their own: the last ones that lead out.
pub(crate) fn add_ports(scenario: &Scenario, lay: &mut Layout) {
    let engine = scenario.pbv.as_ref().map(|pbv| &pbv.engine).filter(|engine| engine.attach == AttachFile::Own);
    let more = engine.map_or(0, |engine| engine.per_switch as u16);
    let switches = lay.switches();
    lay.plan.nodes[..switches].iter_mut().for_each(|node| node.ports += more);
    lay.external_ports += more;
}

pub(crate) struct Builder<'a> {
    pub(super) scenario: &'a Scenario,
    /// The trace of an application, if ranks call collectives.
    traced: Option<&'a TracedWorkload>,
    pub(super) pbv: &'a Pbv,
    pub(super) options: BuildOptions,
    /// Links between switches.
    pub(super) links: Vec<(u32, u16, u32, u16)>,
    /// The neighbour behind a port.
    pub(super) neighbours: BTreeMap<(u32, u16), u32>,
    pub(super) devices: Vec<u16>,
    /// Further parts of larger engines: switch, plane, number from 1 on, device ID.
    parts: Vec<(u32, u8, u8, u16)>,
    /// The first port of a switch that is an engine's own.
    pub(crate) own_ports: u16,
    pub(crate) problems: Vec<Problem>,
    derived: Vec<(String, u64)>,
    /// Sources of traffic, if there are any.
    sources: Option<Sources>,
}

impl<'a> Builder<'a> {
    /// For a scenario that has the family's table, laid out.
    pub(crate) fn new(loaded: &'a Loaded, options: BuildOptions, lay: &Layout) -> Builder<'a> {
        let (scenario, traced) = (&loaded.scenario, loaded.workload.as_deref());
        let pbv = scenario.pbv.as_ref().expect("the PBV family has its table");
        let switches = lay.switches() as u32;
        let between = lay.plan.links.iter().filter(|link| link.a.0 < switches && link.b.0 < switches);
        let links: Vec<_> = between.map(|link| (link.a.0, link.a.1, link.b.0, link.b.1)).collect();
        let neighbours = links.iter().flat_map(|&(a, ap, b, bp)| [((a, ap), b), ((b, bp), a)]).collect();
        let mut next = vec![0u32; switches as usize];
        let device = |place: &EndPlace| {
            let local = &mut next[place.switch as usize];
            *local += 1;
            (place.switch * pbv.device_stride + *local) as u16
        };
        let devices = lay.ends.iter().map(device).collect();
        let (parts, problems, derived) = (Vec::new(), Vec::new(), Vec::new());
        let own_ports = lay.external_ports;
        Builder {
            scenario,
            traced,
            pbv,
            options,
            links,
            neighbours,
            devices,
            parts,
            own_ports,
            problems,
            derived,
            sources: None,
        }
    }

    fn switch_device(&self, switch: u32) -> u16 {
        (switch * self.pbv.device_stride) as u16
    }

    /// Everything but the network, on the links of a layout whose switches have ports for their engines.
    pub(crate) fn build(&mut self, lay: &Layout, local: LinkParams) -> Option<PbvBuild<PlacedSystem>> {
        let mut directory = self.directory(lay)?;
        if let Some(sources) = &self.sources {
            let routes = Routes { routing: lay.routing.clone(), ends: lay.ends.clone() };
            directory.carry_traffic(routes, sources.lanes);
        }
        let collectives = self.collectives(lay, &directory);
        for &(switch, plane, _, device) in &self.parts {
            directory.add_part(device, switch, plane);
        }
        let mut tables = match plan::tables(&collectives) {
            Ok(tables) => tables,
            Err(error) => {
                self.problems.push(
                    Problem::at("pbv.collective", error.to_string())
                        .help("another `tree`, `parents` or `plane` shares the work among more engines"),
                );
                return None;
            }
        };
        if !self.problems.is_empty() {
            return None;
        }
        self.settings(&mut tables, &collectives);
        if !self.initialisation_fits(&collectives, &tables) {
            return None;
        }
        let longest = self.longest_frame(&collectives, &tables);
        if longest > u64::from(self.pbv.engine.inbox_flits) {
            let message =
                format!("an inbox of {} flits never takes this scenario's longest frame", self.pbv.engine.inbox_flits);
            self.problems.push(
                Problem::at("pbv.engine.inbox_flits", message)
                    .expected(format!("{longest} or more, or a larger `link.flit_bits`")),
            );
            return None;
        }
        let (initialise, start) = self.times(&collectives, &tables, &directory, lay);
        self.derived.push(("pbv_initialise_cycle".into(), initialise));
        self.derived.push(("pbv_start_cycle".into(), start));

        let mut ends: Vec<Node> = self.devices.iter().map(|&device| Node::new(device)).collect();
        let all = self.pbv.collectives.iter().enumerate();
        let operands: Vec<_> = all.map(|(index, of)| self.operands(index, of)).collect();
        self.configure(&mut ends, &tables);
        for (index, collective) in collectives.iter().enumerate() {
            self.nodes(index, collective, &tables, &operands[index], (initialise, start), &mut ends);
        }

        self.congestion(collectives.len(), &mut ends);
        self.strangers(&collectives, &tables, lay, &mut ends);
        let plan = lay.plan.clone();
        let longest = self.longest_frame(&collectives, &tables);
        let faults = self.faults(&plan, lay, longest);
        if !self.problems.is_empty() {
            return None;
        }
        let mut names: BTreeMap<u16, String> =
            lay.switch_names().zip(0..).map(|(name, at)| (self.switch_device(at), name.to_owned())).collect();
        for &(switch, _, part, device) in &self.parts {
            let name = format!("{}-part{part}", names[&self.switch_device(switch)]);
            names.insert(device, name);
        }
        let first = plan.nodes.len() - lay.ends.len();
        names.extend(self.devices.iter().zip(&plan.nodes[first..]).map(|(&device, node)| (device, node.name.clone())));
        let side = self.pbv.setup.file.configuration == ConfigurationFile::SidePort;
        let side_port = if side { tables.clone() } else { Tables::default() };
        let side_port_cycles = self.side_port(&side_port);
        let engines = self.engines(lay);
        let owners = self.owners(&engines, &collectives);
        let ground = SystemPlan { plan, directory, engines, ends, faults, side_port, side_port_cycles, owners };
        let record = self.scenario.checks.oracle && !self.options.no_checks;
        let system = ground.place((self.pbv.engine.inner_cycles as u16, local), self.options.log, record);
        let (derived, devices) = (std::mem::take(&mut self.derived), self.devices.clone());
        Some(PbvBuild { system, collectives, operands, tables, devices, names, derived, sources: None })
    }

    /// Builds the system of what is in its place.
    fn wire(&mut self, ready: PbvBuild<PlacedSystem>) -> PbvBuild {
        let scenario = self.scenario;
        let kinds = channel_kinds(scenario);
        let depths = |link: &PlanLink, vc: u8| buffer(scenario, kinds[usize::from(vc)], link);
        let switch = SwitchCfg {
            pipeline: pipeline(scenario),
            policy: policy(scenario.switch.arbiter),
            monitors: scenario.checks.monitors && !self.options.no_checks,
            router: RouterCfg { class_bound: self.pbv.engine.priority_bound as u8, ..router(scenario) },
        };
        let mut sources = self.sources.take();
        let traffic = (scenario.seed, switch.monitors);
        let (placed, ready) = ready.split();
        let system = placed.build(&WireCfg { switch, depths: &depths, threads: self.options.threads }, |ends| {
            Sources::with_traffic(sources.as_mut(), ends, traffic, FRAMES + 1)
        });
        PbvBuild { sources, ..ready.with(system) }
    }

    // ------------------------------------------------------------------------------------------- devices and engines

    fn directory(&mut self, lay: &Layout) -> Option<Directory> {
        let mut directory = Directory::new(lay.switches(), &self.links);
        directory.cut = self.scenario.link.cut();
        for switch in 0..lay.switches() as u32 {
            directory.add_switch(self.switch_device(switch), switch);
        }
        for (&device, place) in self.devices.iter().zip(&lay.ends) {
            directory.add_end(device, place.switch, place.port);
        }
        let engine = &self.pbv.engine;
        for switch in 0..lay.switches() as u32 {
            let mut ports: Vec<u16> = match engine.attach {
                AttachFile::Own => (0..engine.per_switch as u16).map(|k| self.own_ports + k).collect(),
                AttachFile::Node => lay.ends.iter().filter(|end| end.switch == switch).map(|end| end.port).collect(),
                AttachFile::Link => self.neighbours.keys().filter(|(at, _)| *at == switch).map(|&(_, p)| p).collect(),
            };
            if engine.attach != AttachFile::Own {
                ports = ports.into_iter().skip(engine.attach_index as usize).collect();
            }
            if ports.len() < engine.per_switch as usize {
                let what = if engine.attach == AttachFile::Node { "nodes" } else { "links to other switches" };
                let name = lay.switch_names().nth(switch as usize).unwrap_or_default();
                self.problems.push(
                    Problem::at("pbv.engine.attach", format!("switch \"{name}\" has too few {what} for its engines"))
                        .expected("\"own\", or a smaller `attach_index`"),
                );
                return None;
            }
            for &port in &ports[..engine.per_switch as usize] {
                directory.add_engine(switch, port);
            }
        }
        Some(directory)
    }

    fn engines(&self, lay: &Layout) -> Vec<EngineCfg> {
        let engine = &self.pbv.engine;
        let ce = CeCfg {
            contexts: engine.contexts as u16,
            hazard: match engine.hazard {
                HazardFile::Forward => Hazard::Forward,
                HazardFile::Interlock => Hazard::Interlock,
                HazardFile::Ignore => Hazard::Ignore,
            },
            unit_stages: engine.stages as u8,
            units: engine.units(self.scenario.link.cut()) as u8,
            feeds: engine.feed_messages as u8,
            memory_ports: engine.memory_ports as u8,
        };
        let output = self.pbv.output_messages();
        let of = |device: u16, k: u8, part: u8| EngineCfg {
            device,
            base: engine_base(k),
            part,
            priority_bound: engine.priority_bound as u8,
            inbox: engine.inbox_flits as usize,
            cut: self.scenario.link.cut(),
            output,
            ce,
        };
        let per_switch = engine.per_switch as u8;
        (0..lay.switches() as u32)
            .flat_map(|switch| (0..per_switch).map(move |k| (switch, k)))
            .map(|(switch, k)| of(self.switch_device(switch), k, 0))
            .chain(self.parts.iter().map(|&(_, plane, part, device)| of(device, plane, part)))
            .collect()
    }

    /// Time-outs and switches of the tables: an engine waits longer the more levels of engines are below it (B-ERR-1).
    fn settings(&self, tables: &mut Tables, collectives: &[plan::Collective]) {
        let engine = &self.pbv.engine;
        let mut heights: BTreeMap<plan::EngineId, u32> = BTreeMap::new();
        for collective in collectives {
            for branch in collective.tree.preorder() {
                let height = heights.entry((branch.device, collective.plane)).or_default();
                *height = branch.height().max(*height);
            }
        }
        for (seat, record) in &mut tables.engines {
            let levels = heights.get(seat).copied().unwrap_or(0);
            record.timeout = engine.timeout_cycles.saturating_mul(engine.timeout_factor.saturating_pow(levels));
            record.retries = engine.retries as u8;
            (record.report_errors, record.validate) = (engine.report_errors, engine.validate);
            record.window = engine.metrics_window_cycles;
            record.reports = self.pbv.reports.as_ref().map(|(file, to)| {
                let queues = file.queues.iter().filter_map(|name| super::congestion::queue(name));
                let until = file.until.unwrap_or(file.above / 2);
                let device = self.devices.get(*to as usize).copied().unwrap_or_default();
                Reports::new(device, queues.fold(0, |all, queue| all | 1 << queue), file.above as u16, until as u16)
            });
            let switch = u32::from(seat.0) / self.pbv.device_stride;
            let ports = self.neighbours.keys().filter(|(at, port)| *at == switch && *port < 64);
            record.isl_ports = ports.fold(0, |all, &(_, port)| all | 1 << port);
        }
    }

    // -------------------------------------------------------------------------------------------------- collectives

    fn collectives(&mut self, lay: &Layout, directory: &Directory) -> Vec<plan::Collective> {
        let mut all = Vec::new();
        for (index, collective) in self.pbv.collectives.iter().enumerate() {
            let Some(tree) = self.tree(index, collective, lay, directory) else { continue };
            all.push(plan::Collective {
                cc_id: collective.cc_id,
                source: self.devices[collective.source as usize],
                tree,
                op: collective.op,
                dtype: collective.dtype,
                words: collective.words() as u16,
                initial: collective.initial,
                pbv_order: collective.order == OrderFile::Pbv,
                rearm: collective.rearm,
                plane: collective.plane,
                mode: Mode { flush_to_zero: collective.flush_to_zero, ..Mode::rounding(collective.round) },
                multicast: collective.kind == KindFile::Multicast,
                engines_only: !self.pbv.setup.file.initialise_nodes,
                traffic_class: collective.traffic_class,
                to_source: collective.merge.0 == MergeFile::Source,
                forwards: collective.forwards.iter().map(|&switch| self.switch_device(switch)).collect(),
                groups: collective.group.map(|group| Groups { first: group.first, count: group.count }),
            });
        }
        all
    }

    /// What the participants contribute.
    fn operands(&self, index: usize, of: &Collective) -> Vec<Vec<u64>> {
        let Some(traced) = self.traced.filter(|_| of.data == Data::Called) else {
            return of.operands(index, self.scenario.seed);
        };
        let share = of.share.unwrap_or(ContextShare { number: 0, count: 1 });
        let first = index - share.number as usize;
        let all = workload::build::contributions(self.scenario, traced, (workload::file::Engine::Pbv, first));
        let words = of.words() as usize;
        let round = |row: &[u64], place: u32| {
            let at = share.round(place) as usize * words;
            row.get(at..at + words).map_or_else(Vec::new, <[u64]>::to_vec)
        };
        all.iter().map(|row| (0..of.rounds).flat_map(|place| round(row, place)).collect()).collect()
    }

    /// The engines of a collective as a tree below its master.
    fn tree(&mut self, index: usize, collective: &Collective, lay: &Layout, directory: &Directory) -> Option<Branch> {
        let master = collective.master;
        if collective.tree == TreeFile::Monolithic && collective.participants.len() > PBV_ENTRIES {
            return self.larger_engine(index, collective, lay);
        }
        let mut nodes: BTreeMap<u32, Vec<u16>> = BTreeMap::new();
        for &end in collective.participants.iter() {
            let switch = if collective.tree == TreeFile::Monolithic { master } else { lay.ends[end as usize].switch };
            nodes.entry(switch).or_default().push(self.devices[end as usize]);
        }
        let above = |switch: u32| -> u32 {
            if let Some(&above) = collective.parents.get(&switch) {
                return above;
            }
            if collective.tree == TreeFile::Flat {
                return master;
            }
            let address = u32::from(self.switch_device(master)) << 16 | u32::from(engine_base(0));
            let port = directory.port(switch, address);
            self.neighbours.get(&(switch, port)).copied().unwrap_or(master)
        };
        let mut children: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        let mut left: Vec<u32> = nodes.keys().copied().filter(|&switch| switch != master).collect();
        let mut seen: BTreeSet<u32> = left.iter().copied().collect();
        while let Some(switch) = left.pop() {
            let parent = above(switch);
            children.entry(parent).or_default().insert(switch);
            if parent != master && seen.insert(parent) {
                left.push(parent);
            }
        }
        let tree = self.branch(master, &children, &nodes);
        let there = tree.preorder().len();
        if there != seen.len() + 1 {
            let path = format!("pbv.collective[{index}].parents");
            self.problems.push(
                Problem::at(path, "some engines report to each other and not to the master")
                    .expected("a tree with the master at the top"),
            );
            return None;
        }
        Some(tree)
    }

    /// One engine for more participants than a table has entries: several behind one port that act as a single one (paragraph
    /// 91). The first has the others and as many participants in its table as fit beside them; each of the others is full
    /// but for the last *\[chosen\]*.
    fn larger_engine(&mut self, index: usize, collective: &Collective, lay: &Layout) -> Option<Branch> {
        let devices: Vec<u16> = collective.participants.iter().map(|&end| self.devices[end as usize]).collect();
        let (master, plane) = (collective.master, collective.plane);
        let parts = (devices.len() - PBV_ENTRIES).div_ceil(PBV_ENTRIES - 1);
        let nodes = lay.ends.iter().filter(|end| end.switch == master).count();
        let elsewhere = self.parts.iter().filter(|part| part.0 == master && part.1 != plane).count();
        let room = (self.pbv.device_stride as usize - 1).saturating_sub(nodes + elsewhere);
        if parts > room || parts >= PBV_ENTRIES {
            let path = format!("pbv.collective[{index}].tree");
            self.problems.push(
                Problem::at(path, format!("{} participants take {parts} more parts of one engine", devices.len()))
                    .expected(format!("up to {room}: device IDs that the master's switch has left"))
                    .help("`pbv.device_stride` sets how many device IDs a switch has"),
            );
            return None;
        }
        let mut all = Vec::new();
        for number in 1..=parts as u8 {
            let there = self.parts.iter().find(|part| (part.0, part.1, part.2) == (master, plane, number));
            let known = there.map(|part| part.3);
            let device = known.unwrap_or_else(|| {
                let taken = nodes + self.parts.iter().filter(|part| part.0 == master).count();
                let device = self.switch_device(master) + 1 + taken as u16;
                self.parts.push((master, plane, number, device));
                device
            });
            all.push(device);
        }
        let (own, others) = devices.split_at(PBV_ENTRIES - parts);
        let below = all.into_iter().zip(others.chunks(PBV_ENTRIES));
        let below = below.map(|(device, nodes)| Branch::leaf(device, nodes.iter().copied()));
        Some(Branch::leaf(self.switch_device(master), own.iter().copied()).over(below))
    }

    fn branch(&self, switch: u32, children: &BTreeMap<u32, BTreeSet<u32>>, nodes: &BTreeMap<u32, Vec<u16>>) -> Branch {
        let below = children.get(&switch).into_iter().flatten();
        Branch {
            device: self.switch_device(switch),
            nodes: nodes.get(&switch).cloned().unwrap_or_default(),
            engines: below.map(|&below| self.branch(below, children, nodes)).collect(),
        }
    }

    /// Who may write the tables of engines and initialise their contexts: the end point that configures, or the switch that
    /// generates all records, and the sources.
    fn owners(&self, engines: &[EngineCfg], collectives: &[plan::Collective]) -> BTreeMap<plan::EngineId, Owners> {
        let setup = &self.pbv.setup;
        let table = match setup.file.configuration {
            ConfigurationFile::SidePort => Owner::of(NO_DEVICE),
            ConfigurationFile::OneFrame => {
                Owner { device: self.devices[setup.configured_by as usize], through: self.switch_device(setup.through) }
            }
            ConfigurationFile::FrameEach | ConfigurationFile::Writes => {
                Owner::of(self.devices[setup.configured_by as usize])
            }
        };
        let mut contexts = plan::context_owners(collectives);
        let seats = engines.iter().map(|cfg| (cfg.device, ((cfg.base - ENGINE_BASE) / ENGINE_SPAN) as u8));
        seats
            .map(|seat| {
                let contexts = Some(contexts.remove(&seat).unwrap_or_default());
                (seat, Owners { table: Some(table), contexts })
            })
            .collect()
    }

    // --------------------------------------------------------------------------------------------------------- time

    /// When every table has been written, and when every context is set up: bounds from flits and latencies, doubled.
    fn times(
        &self,
        collectives: &[plan::Collective],
        tables: &Tables,
        directory: &Directory,
        lay: &Layout,
    ) -> (Cycle, Cycle) {
        let links = &lay.plan.links;
        let wide = links.iter().map(|link| u64::from(link.cycles_per_flit)).max().unwrap_or(1);
        let latency = links.iter().map(|link| u64::from(link.latency)).max().unwrap_or(1);
        let pipeline = pipeline(self.scenario);
        let stages = u64::from(pipeline.post() + pipeline.front());
        // A switch and an engine wait for the flit with the address.
        let cut = self.scenario.link.cut();
        let address = u64::from(route_flits(cut) - 1).max(1);
        let hop = latency + stages + 2 * (u64::from(self.pbv.engine.inner_cycles) + wide * address) + 6;
        // Link-layer replay keeps a frame until it is whole.
        let whole = match self.scenario.link.reliability {
            Some(_) => wide * self.longest_frame(collectives, tables) + 4,
            None => 0,
        };
        let trip = (u64::from(directory.diameter()) + 2) * (hop + whole);
        let setup = &self.pbv.setup.file;
        let initialise = match (setup.initialise_cycle, setup.configuration) {
            (Auto::Fixed(cycle), _) => cycle,
            (Auto::Auto, ConfigurationFile::SidePort) => {
                self.side_port(tables).values().copied().max().filter(|&last| last > 0).map_or(0, |last| last + 1)
            }
            (Auto::Auto, _) => {
                let sent: u64 = self.configuration(tables).iter().map(|frame| flits(cut, frame)).sum();
                let each: u64 = tables.frames(0).iter().map(|frame| flits(cut, frame)).sum();
                // Each engine writes its table.
                let written = PBV_ENTRIES as u64;
                2 * (wide * (sent + each) + 2 * trip + written)
            }
        };
        // An engine passes initialisation on to all engines below it, a frame after the other.
        let mut after = 0;
        for collective in collectives {
            let record = if collective.forwards.is_empty() { 5 } else { 7 };
            let mut level = vec![&collective.tree];
            while !level.is_empty() {
                let emitted = |branch: &&Branch| -> u64 {
                    let frame = |words: usize| cut.flits(8 * words) as u64;
                    let below = branch.engines.iter().map(|engine| frame(4 + record * engine.preorder().len()));
                    below.sum::<u64>() + frame(9) * branch.nodes.len() as u64
                };
                after += wide * (level.iter().map(emitted).max().unwrap_or(0) + 16) + trip;
                level = level.into_iter().flat_map(|branch| &branch.engines).collect();
            }
            after += wide * flits(cut, &collective.initialise(tables));
        }
        (initialise, initialise + 2 * after)
    }

    /// Flits of the longest frame that is sent on purpose.
    fn longest_frame(&self, collectives: &[plan::Collective], tables: &Tables) -> u64 {
        let cut = self.scenario.link.cut();
        let frame = |words: usize| cut.flits(HEADER_BYTES + 8 * words) as u64;
        let data = collectives.iter().map(|collective| frame(collective.words.into()));
        let set_up = collectives
            .iter()
            .flat_map(|collective| collective.initialise_each(tables))
            .map(|frame| flits(cut, &frame));
        let through = collectives.iter().map(|collective| flits(cut, &collective.initialise(tables)));
        let tables = self.configuration(tables).into_iter().map(|frame| flits(cut, &frame));
        data.chain(set_up).chain(through).chain(tables).max().unwrap_or(frame(0))
    }

    /// Whether the frame that sets up a collective through its master has room for the records of all engines.
    fn initialisation_fits(&mut self, collectives: &[plan::Collective], tables: &Tables) -> bool {
        if self.pbv.setup.file.initialisation == InitialisationFile::Each {
            return true;
        }
        let too_long = |(index, of): (usize, &plan::Collective)| {
            let PacketError::Payload(bytes) = of.initialise(tables).flits().err()? else { return None };
            let name = &self.pbv.collectives[index].name;
            let engines = of.tree.preorder().len();
            let message = format!("the frame that sets up the {engines} engines of \"{name}\" has {bytes} bytes");
            let help = "`initialisation = \"each\"` in `pbv.setup` sends every engine a frame of its own";
            Some(
                Problem::at("pbv.setup.initialisation", message)
                    .expected(format!("at most {MAX_PAYLOAD_BYTES} bytes"))
                    .help(help),
            )
        };
        let problems: Vec<Problem> = collectives.iter().enumerate().filter_map(too_long).collect();
        let fits = problems.is_empty();
        self.problems.extend(problems);
        fits
    }

    /// When every engine has its table from the side port.
    fn side_port(&self, tables: &Tables) -> BTreeMap<plan::EngineId, Cycle> {
        let setup = &self.pbv.setup.file;
        tables.side_port(setup.side_port_cycles_per_bit.into(), setup.side_port_lines.into())
    }

    /// The frames that write the tables.
    fn configuration(&self, tables: &Tables) -> Vec<Packet> {
        let source = self.devices.get(self.pbv.setup.configured_by as usize).copied().unwrap_or(0);
        match self.pbv.setup.file.configuration {
            ConfigurationFile::Writes => tables.writes(source),
            ConfigurationFile::FrameEach => tables.frames(source),
            ConfigurationFile::OneFrame => tables.large_frames(source, self.switch_device(self.pbv.setup.through)),
            ConfigurationFile::SidePort => Vec::new(),
        }
    }

    // -------------------------------------------------------------------------------------------------------- nodes

    fn configure(&self, ends: &mut [Node], tables: &Tables) {
        for frame in self.configuration(tables) {
            ends[self.pbv.setup.configured_by as usize].then(SendCondition::Next, frame);
        }
    }

    /// Reads of the congestion metrics, in lanes behind those of the collectives.
    fn congestion(&self, lanes: usize, ends: &mut [Node]) {
        for (index, request) in self.pbv.congestion.iter().enumerate() {
            for (k, &switch) in request.switches.iter().enumerate() {
                let from = self.devices[request.by as usize];
                let frame = congestion_read(from, self.switch_device(switch), request.plane, index);
                let when = if k == 0 { SendCondition::At(request.cycle) } else { SendCondition::Next };
                ends[request.by as usize].then_in(lanes + 1 + index, when, frame);
            }
        }
    }
}

/// The frame that asks an engine for its congestion metrics; the answer has its tag, the number of the request.
fn congestion_read(from: u16, device: u16, plane: u8, request: usize) -> Packet {
    let mut header = Header::new(Message::Read, from, device, engine_base(plane) + METRICS);
    (header.p_count, header.tag) = (3 + 2 * QUEUES as u16, request as u16);
    Packet::bare(header)
}

/// Flits of a frame.
fn flits(cut: FlitSize, frame: &Packet) -> u64 {
    frame.flits().map_or(0, |words| cut.flits(8 * words.len()) as u64)
}
