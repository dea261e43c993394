//! From the checked configuration to a system that can be clocked: layout, registers, end points, and the checks that
//! need them (register legality, overlaps). A wrong configuration ends here with a [`Problem`] at its place.

pub use super::built_collective::{BuiltCollective, Segment, operation, oracle_tree, select};
use super::config::{Collective, CollectiveKind, Family, SwitchRegisters, Tree};
use super::hosts;
use super::mixed::channels::has_engines;
use super::piuma::{embedding_graph, overlaps};
use super::problem::Problem;
use super::programs::build as programs;
use super::scan;
use super::segments;
use super::sources::{self, Sources};
use super::switches::{buffer, channel_kinds, pipeline, policy, router};
use super::{Loaded, Problems, Scenario, workload};
use std::collections::BTreeMap;
use std::sync::Arc;
use watershed_arith::{self as arith, TreeCfg};
use watershed_fabric::routing::{Routes, Unroutable};
use watershed_fabric::topology::{Common, EndPlace, Layout, Names, Neighbours, Shape};
use watershed_fabric::{Blocks, NoBump, Parts, PlanLink, Shares, SwitchCfg, Vcs, credit_round_trip};
use watershed_piuma::embed::{self, EmbedContext, Vectors};
use watershed_piuma::legality::{self, Claim, ConfigPoint, Footprint, LegalityError, channel_name};
use watershed_piuma::ordered;
use watershed_piuma::{
    CHANNELS, Ceng, CengCfg, Conversion, Core, End, Job, JobKind, MemoryCfg, REQUEST, RESPONSE, Registers,
    RegistersCfg, System, channel_names,
};

/// A system and what runs on it; without the system (`()`) where the runner owns that.
pub struct PiumaBuild<S = System> {
    /// The system at cycle 0.
    pub system: S,
    /// The collectives, in the order of the scenario.
    pub collectives: Vec<BuiltCollective>,
    /// Values that follow from the rest, for the printed configuration.
    pub derived: Vec<(String, u64)>,
    /// The sources of traffic, if there are any.
    pub(crate) sources: Option<Sources>,
    /// Times and counts of hosts in ideal mode, by host; `None` for others.
    pub ideal: Vec<Option<hosts::ideal::Ideal>>,
    /// Links of each level in the whole system, if only those that something uses were built.
    pub all_links: Option<Vec<u64>>,
    /// Trees that take turns.
    pub claims: overlaps::Plan,
    /// Where end points are, if any trees take turns.
    pub ends: Vec<EndPlace>,
}

impl<S> PiumaBuild<S> {
    /// The system, and what runs on it.
    pub(crate) fn split(self) -> (S, PiumaBuild<()>) {
        let PiumaBuild { system, collectives, derived, sources, ideal, all_links, claims, ends } = self;
        (system, PiumaBuild { system: (), collectives, derived, sources, ideal, all_links, claims, ends })
    }
}

impl PiumaBuild<()> {
    /// The same with a system.
    fn with(self, system: System) -> PiumaBuild {
        let PiumaBuild { collectives, derived, sources, ideal, all_links, claims, ends, .. } = self;
        PiumaBuild { system, collectives, derived, sources, ideal, all_links, claims, ends }
    }
}

/// Switches that a part of a system of nodes has at least, if it runs in windows: their registers fill a part of the
/// second cache, and what a part costs itself is little beside them.
const PART_SWITCHES: u32 = 128;

/// Choices of a build that a scenario cannot make.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuildOptions {
    /// Leaves link monitors out, whatever the scenario says.
    pub no_monitors: bool,
    /// Builds every switch and link of a system of nodes, not only those that its collectives use.
    pub whole: bool,
    /// Divides the system into as many parts, each evaluated by a thread of its own; 0 and 1: one. Nothing else changes.
    pub threads: usize,
    /// Lets the nodes of a system of nodes run ahead of each other, where nothing but its collectives acts on it: a step
    /// of the system is a window of cycles then. Nothing else changes.
    pub windows: bool,
}

/// Builds the system of a scenario.
///
/// # Errors
/// What is wrong with the configuration, at its place.
pub fn build(loaded: &Loaded, options: BuildOptions) -> Result<PiumaBuild, Problems> {
    let mut builder = Builder::new(loaded);
    let ready = builder.build(options);
    match ready {
        Some(ready) if builder.problems.is_empty() => Ok(ready),
        _ => Err(loaded.problems(builder.problems)),
    }
}

/// The topology of a scenario, laid out.
pub(super) fn lay_out(scenario: &Scenario, common: &Common) -> Layout {
    scenario.topology.shape.layout(common)
}

/// The topology of a scenario, laid out, and routed as it says. A routing function sees the channels of one lane: what
/// `switch.point_to_point_vcs` says, divided into `lanes`.
pub(super) fn routed_layout(
    loaded: &Loaded,
    common: &Common,
    lanes: u8,
    problems: &mut Vec<Problem>,
) -> Option<Layout> {
    let scenario = &loaded.scenario;
    let unicast = scenario.switch.point_to_point_vcs as u8 / lanes;
    let mut layout = lay_out(scenario, &Common { vcs: Vcs { unicast, ..common.vcs }, ..*common });
    let checked = match scenario.routing {
        Some(routing) => layout.route(routing.algorithm),
        None if !sends_packets(scenario) => Ok(()),
        None => layout.check_channels(),
    };
    layout.plan.vcs = common.vcs;
    if let Err(unroutable) = checked {
        let places = ["switch.point_to_point_vcs", "routing.algorithm", "topology.kind"];
        let place = places.into_iter().find(|place| loaded.source.has(place)).unwrap_or("topology");
        let mut problem = Problem::at(place, unroutable.to_string());
        if let Unroutable::Channels { needed, .. } = unroutable {
            let all = needed * lanes;
            problem = problem.expected(format!("`switch.point_to_point_vcs` = {all} or more"));
        }
        problems.push(problem);
        return None;
    }
    Some(layout)
}

/// Whether anything but frames and collectives of switches may be sent: traffic, messages of software, to which jobs of armed engines
/// may fall back, and accesses to registers in band.
fn sends_packets(scenario: &Scenario) -> bool {
    let messages = hosts::config::simulated(scenario) || scenario.armed.is_some();
    messages || !scenario.traffic.is_empty() || programs::is_access_in_band(scenario)
}

/// Only the layout of a scenario: switches, links, end points of traffic, routing.
///
/// # Errors
/// What is wrong with the configuration, at its place.
pub fn layout(loaded: &Loaded) -> Result<Layout, Problems> {
    let mut builder = Builder::new(loaded);
    let common = common(builder.scenario);
    let layout = builder.layout(&common).map(|mut layout| {
        Sources::place(builder.scenario, &mut layout, common.local, &mut builder.problems);
        layout
    });
    match layout {
        Some(layout) if builder.problems.is_empty() => Ok(layout),
        _ => Err(loaded.problems(builder.problems)),
    }
}

/// Links and channels of a scenario.
pub(super) fn common(scenario: &Scenario) -> Common {
    let engine = scenario.family == Family::Piuma;
    Common {
        vcs: Vcs {
            set: if engine { segments::planes(scenario) * CHANNELS } else { 0 },
            unicast: scenario.switch.point_to_point_vcs as u8,
        },
        engine,
        link: scenario.link.params(),
        local: scenario.link.local_params(),
    }
}

/// Registers, and the trees that stand in them.
pub(crate) struct RegisterPlan {
    /// The registers.
    pub registers: Registers,
    collectives: Vec<BuiltCollective>,
    multicasts: Vec<Footprint>,
    claims: overlaps::Plan,
}

impl RegisterPlan {
    fn footprints(&self) -> BTreeMap<overlaps::Owner, &Footprint> {
        overlaps::footprints(self.collectives.iter().map(BuiltCollective::footprints), &self.multicasts)
    }
}

/// What stands where, before there is a network.
pub(crate) struct Placement {
    /// The configuration registers.
    pub registers: Registers,
    /// The engine of every switch.
    pub ceng: Ceng,
    /// What is at the end points.
    pub ends: Vec<End>,
}

pub(crate) struct Builder<'a> {
    loaded: &'a Loaded,
    scenario: &'a Scenario,
    pub(crate) problems: Vec<Problem>,
    derived: Vec<(String, u64)>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(loaded: &'a Loaded) -> Builder<'a> {
        Builder { loaded, scenario: &loaded.scenario, problems: Vec::new(), derived: Vec::new() }
    }

    /// The layout of a scenario, routed as it says.
    fn layout(&mut self, common: &Common) -> Option<Layout> {
        let shares = self.shares();
        let all = shares.lanes + u8::from(shares.messages > 0);
        routed_layout(self.loaded, common, all, &mut self.problems)
    }

    /// Messages of hosts and ranks have channels of their own beside traffic.
    fn shares(&self) -> Shares {
        let scenario = self.scenario;
        let talk = scenario.workload.is_some() || hosts::config::simulated(scenario);
        sources::shares(scenario, talk && !scenario.traffic.is_empty())
    }

    fn build(&mut self, options: BuildOptions) -> Option<PiumaBuild> {
        let scenario = self.scenario;
        let engine = self.engine();
        let (pipeline, router) = (pipeline(scenario), router(scenario));
        let mut common = common(self.scenario);
        // Without traffic a system of nodes needs no more than the switches and links of its trees, if those stay as they are.
        let writes = scenario.programs.as_ref().is_some_and(programs::may_access_registers);
        let sparse = match &scenario.topology.shape {
            Shape::Nodes(nodes)
                if scenario.traffic.is_empty() && !options.whole && !writes && !hosts::config::simulated(scenario) =>
            {
                Some(nodes)
            }
            _ => None,
        };
        let mut layout = match sparse {
            Some(nodes) => {
                common.vcs.unicast = 0;
                nodes.bare(&common)
            }
            None => self.layout(&common)?,
        };
        let mut sources = programs::place(scenario, &mut layout, common.local, &mut self.problems);
        let neighbours = sparse.map_or_else(|| Neighbours::new(&layout.plan), Neighbours::of_nodes);

        let names = match sparse {
            Some(_) => Names::Shape(layout.shape.clone()),
            None => Names::List(layout.switch_names().map(String::from).collect()),
        };
        let mut laid = self.place_trees(&layout, &common, &neighbours, names)?;
        laid.registers.shares = self.shares();
        // Who looks at ports by their numbers (embeddings, waves) does not run in windows.
        let windows =
            options.windows && sparse.is_some() && laid.claims.wiring.is_empty() && self.has_only_collectives();
        if let Some(nodes) = sparse {
            let footprints = laid.footprints();
            let used = self.used_ports(&layout, footprints.values().copied());
            let wired = nodes.add_used_links(&mut layout.plan, &layout.ends, &common, &used, windows);
            laid.registers.wire(wired);
        }

        let ready = self.place(laid, &layout, &common)?;
        let kinds = channel_kinds(scenario);
        let depths = |link: &PlanLink, vc: u8| buffer(scenario, kinds[usize::from(vc)], link);
        let switch = SwitchCfg {
            pipeline,
            policy: policy(scenario.switch.arbiter),
            monitors: scenario.checks.monitors && !options.no_monitors,
            router,
        };
        let (Placement { registers, ceng, mut ends }, ready) = ready.split();
        let messages = registers.shares.messages;
        for (end, mut traffic) in sources.take_traffic(scenario.seed, !options.no_monitors) {
            traffic.leave(messages);
            ends[end].traffic = Some(Box::new(traffic));
        }
        let joins = if engine { vec![ceng.clone(); scenario.topology.switches() as usize] } else { Vec::new() };
        let blocks = Blocks { joins, no_join: ceng, bumps: Vec::<NoBump<Registers>>::new(), ends };
        let mut vc_names = if engine { channel_names(segments::planes(scenario)) } else { Vec::new() };
        vc_names.extend((0..common.vcs.unicast).map(|vc| format!("p2p{vc}")));
        let threads = options.threads.max(1);
        let parts = match sparse.filter(|_| windows) {
            Some(nodes) => {
                let grain = nodes.sockets * nodes.die_switches();
                let count = registers.switches().div_ceil(grain.max(PART_SWITCHES)) as usize;
                Parts { count, grain, threads, windows: true }
            }
            None => Parts { count: threads, threads, ..Parts::default() },
        };
        let mut system = watershed_piuma::system(parts, layout.plan, registers, blocks, switch, &depths, vc_names);
        if sparse.is_some() {
            system.name_by(layout.shape);
        }
        let all_links = sparse.map(|nodes| nodes.links_by_level().to_vec());
        let sources = (!scenario.traffic.is_empty()).then_some(sources);
        Some(PiumaBuild { sources, all_links, ..ready.with(system) })
    }

    /// Whether switches have engines.
    pub(crate) fn engine(&self) -> bool {
        let scenario = self.scenario;
        match scenario.family {
            Family::Piuma => true,
            Family::Mixed => has_engines(scenario),
            _ => false,
        }
    }

    /// The registers of a layout, and all trees.
    pub(crate) fn place_trees(
        &mut self,
        layout: &Layout,
        common: &Common,
        neighbours: &Neighbours,
        names: Names,
    ) -> Option<RegisterPlan> {
        let scenario = self.scenario;
        let cfg = RegistersCfg {
            switches: scenario.topology.switches(),
            // A plain fabric has no collectives: no memory for their registers in a system of many switches.
            ids: if self.engine() { scenario.switch.collective_ids as u16 } else { 1 },
            external_ports: layout.external_ports,
        };
        let routes = Routes { routing: layout.routing.clone(), ends: layout.ends.clone() };
        let mut registers = Registers::new(cfg, names, routes);
        programs::make_writable(&mut registers, scenario, (layout, common, neighbours));
        let collectives = self.collectives(layout, neighbours, &mut registers)?;
        let multicasts = self.multicasts(layout, neighbours, &mut registers)?;
        if !self.problems.is_empty() {
            return None;
        }
        let footprints = overlaps::footprints(collectives.iter().map(BuiltCollective::footprints), &multicasts);
        let claims = programs::overlaps(scenario, (layout, common, neighbours), &registers, &footprints);
        Some(RegisterPlan { registers, collectives, multicasts, claims })
    }

    /// Engines and end points.
    pub(crate) fn place(
        &mut self,
        laid: RegisterPlan,
        layout: &Layout,
        common: &Common,
    ) -> Option<PiumaBuild<Placement>> {
        let (scenario, pipeline) = (self.scenario, pipeline(self.scenario));
        let RegisterPlan { registers, collectives, claims, .. } = laid;
        let tree =
            TreeCfg { radix: scenario.switch.ceng.radix.known() as u8, unit_stages: scenario.switch.ceng.stages as u8 };
        let enough = CengCfg::enough_result_slots(tree, pipeline.front());
        let ceng = CengCfg {
            tree,
            operand_slots: scenario.switch.ceng.operand_slots,
            result_slots: scenario.switch.ceng.result_slots.or(enough),
            scan_slots: scenario.switch.ceng.scan_slots,
        };
        if self.engine() {
            self.derived.push(("ceng_result_slots".into(), u64::from(ceng.result_slots)));
        }
        let memory = Arc::new(self.memory());
        let (mut ends, collectives) = self.ends(layout, (collectives, &claims), &memory);
        if let Some(programs) = &scenario.programs {
            let built = (&collectives[..], &claims);
            let problems = programs::processors(scenario, programs, layout, built, &memory, &mut ends);
            if !problems.is_empty() {
                self.problems.extend(problems);
                return None;
            }
        }
        self.problems.extend(hosts::build::ranks(self.loaded, &memory, &mut ends));
        self.problems.extend(workload::build::ranks(
            self.loaded,
            (&collectives, &claims),
            &layout.ends,
            &memory,
            &mut ends,
        ));
        let stages = u64::from(pipeline.post()) + u64::from(pipeline.front()) + 1;
        let ideal = hosts::result::ideal(self.loaded, layout, common, *memory, stages);
        let ideal = ideal.unwrap_or_else(|index| {
            self.problems.push(Problem::at(format!("host[{index}]"), "no way leads from one rank to another"));
            Vec::new()
        });
        if !self.problems.is_empty() {
            return None;
        }
        self.round_trips(layout, common);
        let places = if claims.wiring.is_empty() { Vec::new() } else { layout.ends.clone() };
        Some(PiumaBuild {
            system: Placement { registers, ceng: Ceng::new(ceng), ends },
            collectives,
            derived: std::mem::take(&mut self.derived),
            sources: None,
            ideal,
            all_links: None,
            claims,
            ends: places,
        })
    }

    /// Cycles until a credit is back, level by level.
    fn round_trips(&mut self, layout: &Layout, common: &Common) {
        let (pipeline, router) = (pipeline(self.scenario), router(self.scenario));
        let mut trips = vec![("link", common.link), ("local_link", common.local)];
        if let Shape::Nodes(nodes) = &layout.shape {
            trips.extend(nodes.links());
        }
        for (key, params) in trips {
            let trip = credit_round_trip(params.latency, params.cycles_per_flit, pipeline.post(), pipeline.front())
                + u64::from(router.credit_delay);
            self.derived.push((format!("{key}_credit_round_trip_cycles"), trip));
        }
    }

    /// The ports of each switch that something uses, a bit each.
    fn used_ports<'f>(&self, layout: &Layout, footprints: impl Iterator<Item = &'f Footprint>) -> Vec<u64> {
        let scenario = self.scenario;
        let ends = scenario.collectives.iter().flat_map(|of| of.participants.iter().chain(&of.receiver).copied());
        let programs = scenario.programs.iter().flat_map(|all| programs::participating(scenario, all));
        let places = ends.chain(programs).map(|end| layout.ends[end as usize]);
        embedding_graph::used_ports(scenario.topology.switches(), footprints, places)
    }

    /// Whether nobody but the cores of the collectives acts on the system while it runs.
    fn has_only_collectives(&self) -> bool {
        let scenario = self.scenario;
        scenario.programs.is_none() && scenario.hosts.is_empty() && scenario.measure.is_none()
    }

    // --------------------------------------------------------------------------------------------- collectives

    /// Writes the registers of all collectives and checks them.
    fn collectives(
        &mut self,
        layout: &Layout,
        neighbours: &Neighbours,
        registers: &mut Registers,
    ) -> Option<Vec<BuiltCollective>> {
        let ways = embedding_graph::switch_graph(layout);
        let ground = embedding_graph::ground(layout, neighbours, registers, ways.as_ref());
        let scenario = self.scenario;
        // Every tree there is: its collective, its id, its registers.
        let mut all: Vec<(usize, u32, Vectors)> = Vec::new();
        for (index, collective) in scenario.collectives.iter().enumerate() {
            let apart =
                embedding_graph::disjoint_trees(&collective.participants, collective.segments, layout, ways.as_ref());
            for (segment, id) in collective.ids().enumerate() {
                let tree = (collective.segments > 1).then_some(segment as u32);
                let ground = EmbedContext { tree, apart: &apart, ..ground };
                let vectors = self.vectors(index, collective, layout, &ground)?;
                let others: Vec<&(usize, u32, Vectors)> = all.iter().filter(|(_, other, _)| *other == id).collect();
                if !others.is_empty() {
                    for (key @ (switch, _, port), _) in vectors.iter() {
                        if let Some(&&(other, ..)) = others.iter().rev().find(|(.., other)| other.contains(key)) {
                            self.share((index, other, id), registers, switch, Some(port));
                            return None;
                        }
                    }
                }
                all.push((index, id, vectors));
            }
        }
        for (index, id, vectors) in &all {
            if let Err(error) = embed::store(registers, *id as u16, vectors) {
                self.problems.push(Problem::at(format!("collective[{index}]"), error.to_string()));
                return None;
            }
        }
        let mut built: Vec<BuiltCollective> = Vec::new();
        for (index, collective) in scenario.collectives.iter().enumerate() {
            let places: Vec<EndPlace> = collective.participants.iter().map(|&end| layout.ends[end as usize]).collect();
            let (senders, mut receivers, reduces) = roles(collective, &places);
            if let Some(end) = collective.receiver {
                receivers = Some(vec![layout.ends[end as usize]]);
            }
            let mut footprints = Vec::new();
            for id in collective.ids() {
                let claim = Claim {
                    id: id as u16,
                    senders: &senders,
                    receivers: receivers.as_deref(),
                    members: &places,
                    reduces,
                };
                let footprint =
                    match legality::check(registers, neighbours, scenario.switch.ceng.radix.known() as u8, &claim) {
                        Ok(footprint) => footprint,
                        Err(illegal) => {
                            let place = format!("collective[{index}]");
                            let what = format!("collective \"{}\", id {id}", collective.name);
                            let given = matches!(collective.tree, Tree::Registers(_));
                            self.illegal(&place, &what, given, registers, &illegal);
                            return None;
                        }
                    };
                registers.store_select(id as u16, &footprint.engines, select(collective));
                if collective.kind == CollectiveKind::Scan {
                    let stored = scan::store(collective, &footprint, registers);
                    stored.map_err(|why| self.problems.push(scan::unordered(index, collective, &why))).ok()?;
                }
                footprints.push(footprint);
            }
            built.push(self.input(index, collective, footprints));
        }
        for a in 0..built.len() {
            for b in 0..a {
                let pairs =
                    || built[a].segments.iter().flat_map(|one| built[b].segments.iter().map(move |two| (one, two)));
                for (one, two) in pairs().filter(|(one, two)| one.id == two.id) {
                    if let Err((switch, port)) = legality::disjoint(&one.footprint, &two.footprint) {
                        self.share((a, b, u32::from(one.id)), registers, switch, port);
                        return None;
                    }
                }
                let meet = |(one, two): (&Segment, &Segment)| {
                    one.id != two.id && one.plane == two.plane && legality::meet(&one.footprint, &two.footprint)
                };
                if workload::build::check_disjoint(scenario, (a, b), || pairs().any(meet), &mut self.problems) {
                    return None;
                }
            }
        }
        Some(built)
    }

    /// Writes the registers of multicast trees and checks them.
    fn multicasts(
        &mut self,
        layout: &Layout,
        neighbours: &Neighbours,
        registers: &mut Registers,
    ) -> Option<Vec<Footprint>> {
        let ways = embedding_graph::switch_graph(layout);
        let ground = embedding_graph::ground(layout, neighbours, registers, ways.as_ref());
        let list = self.scenario.programs.iter().flat_map(|programs| &programs.multicasts);
        for (index, multicast) in list.enumerate() {
            let place = format!("multicast[{index}]");
            let vectors = match &multicast.registers {
                Some(given) => self.given(&place, given, &ground)?,
                None => programs::vectors(multicast, layout, &ground),
            };
            let id = multicast.id as u16;
            for ((switch, channel, port), vector) in vectors.iter() {
                let address = Registers::vector_address(switch, id, channel, port);
                let taken = registers.load(address).unwrap_or(0);
                if taken != 0 && taken != vector {
                    let name = registers.name(switch);
                    let message = format!("another tree with id {id} uses input {port} of {name} in another way");
                    self.problems.push(Problem::at(format!("{place}.id"), message).expected("an id of its own"));
                    return None;
                }
            }
            if let Err(error) = embed::store(registers, id, &vectors) {
                self.problems.push(Problem::at(place, error.to_string()));
                return None;
            }
        }
        let list = self.scenario.programs.iter().flat_map(|programs| &programs.multicasts);
        let mut footprints = Vec::new();
        for (index, multicast) in list.enumerate() {
            match programs::check(multicast, layout, registers, neighbours) {
                Ok(footprint) => footprints.push(footprint),
                Err(illegal) => {
                    let given = multicast.registers.is_some();
                    let what = format!("the tree of id {}", multicast.id);
                    self.illegal(&format!("multicast[{index}]"), &what, given, registers, &illegal);
                    return None;
                }
            }
        }
        Some(footprints)
    }

    /// The register vectors of a collective: as given, or of the built-in tree.
    fn vectors(
        &mut self,
        index: usize,
        collective: &Collective,
        layout: &Layout,
        ground: &EmbedContext<'_>,
    ) -> Option<Vectors> {
        let places: Vec<EndPlace> = collective.participants.iter().map(|&end| layout.ends[end as usize]).collect();
        let root = match &collective.tree {
            Tree::Registers(registers) => return self.given(&format!("collective[{index}]"), registers, ground),
            Tree::Auto => embed::middle(ground, &places),
            Tree::Root(switch) => *switch,
        };
        if collective.kind == CollectiveKind::Broadcast {
            let source = places[collective.source as usize];
            let others: Vec<EndPlace> = places.iter().copied().filter(|&place| place != source).collect();
            return Some(embed::multicast(ground, source, &others));
        }
        if let (CollectiveKind::Scan, Shape::Nodes(nodes)) = (collective.kind, &layout.shape) {
            let exact = matches!(collective.tree, Tree::Root(_));
            let vectors = ordered::scan(nodes, ground.engine, &places, root, exact);
            return vectors.map_err(|blocked| self.problems.push(scan::blocked(index, collective, &blocked))).ok();
        }
        let receivers = match collective.kind {
            CollectiveKind::Reduce => vec![match collective.receiver {
                Some(end) => layout.ends[end as usize],
                // All segments go where the first has its root.
                None if ground.tree.is_some_and(|tree| tree > 0) => {
                    let first = embed::middle(&EmbedContext { tree: Some(0), ..*ground }, &places);
                    places.iter().copied().find(|place| place.switch == first).unwrap_or(places[0])
                }
                None => places.iter().copied().find(|place| place.switch == root).unwrap_or(places[0]),
            }],
            _ => places.clone(),
        };
        Some(embed::reduction(ground, &places, root, &receivers))
    }

    fn given(&mut self, place: &str, given: &[SwitchRegisters], ground: &EmbedContext<'_>) -> Option<Vectors> {
        let mut vectors = BTreeMap::new();
        let mut sound = true;
        for registers in given {
            for (channel, list) in [(REQUEST, &registers.request), (RESPONSE, &registers.response)] {
                for (input, outputs) in list {
                    let path = format!("{place}.registers.{}.{}.I{input}", registers.name, channel_name(channel));
                    let mut vector = 0;
                    for port in std::iter::once(input).chain(outputs) {
                        if *port > ground.engine {
                            let message = format!("port {port} does not exist");
                            let expected = format!("0 to {}, of which {} is the engine", ground.engine, ground.engine);
                            self.problems.push(Problem::at(&path, message).expected(expected));
                            sound = false;
                        }
                    }
                    for port in outputs.iter().filter(|&&port| port <= ground.engine) {
                        vector |= 1u64 << port;
                    }
                    vectors.insert((registers.switch, channel, *input), vector);
                }
            }
        }
        sound.then(|| vectors.into())
    }

    fn share(&mut self, (a, b, id): (usize, usize, u32), registers: &Registers, switch: u32, port: Option<u16>) {
        let (first, second) = (&self.scenario.collectives[a], &self.scenario.collectives[b]);
        let place = port.map_or_else(|| "the engine".to_string(), |port| format!("port {port}"));
        let message = format!(
            "collectives \"{}\" and \"{}\" both use id {} and share {place} of {}",
            second.name,
            first.name,
            id,
            registers.name(switch)
        );
        self.problems.push(
            Problem::at(format!("collective[{a}].id"), message)
                .expected("an id of its own, or an embedding that shares no link and no engine")
                .help("`id` is a key of a collective; a [[job]] has it as `piuma.id`")
                .related(format!("collective[{b}].id"), "the other one"),
        );
    }

    fn illegal(&mut self, place: &str, what: &str, given: bool, registers: &Registers, illegal: &LegalityError) {
        let path = match illegal.at.filter(|_| given) {
            Some(ConfigPoint { switch, channel, port }) => {
                format!("{place}.registers.{}.{}.I{port}", registers.name(switch), channel_name(channel))
            }
            None if given => format!("{place}.registers"),
            None => place.to_owned(),
        };
        let message = format!("{what}: {}", illegal.message);
        self.problems.push(Problem::at(path, message).expected(&illegal.expected));
    }

    /// A collective with the words that all contributors have in memory: lanes packed, one contribution after the other.
    fn input(&self, index: usize, collective: &Collective, footprints: Vec<Footprint>) -> BuiltCollective {
        let words_of = |dtype: arith::DType, elements: u64| elements.div_ceil(u64::from(dtype.lanes()));
        let (barrier, wide) = (collective.kind == CollectiveKind::Barrier, collective.network_dtype());
        let segment = |(at, footprint): (u32, Footprint)| {
            let elements = segments::elements(collective, at);
            let stored_words = words_of(collective.dtype, collective.elements);
            Segment {
                id: (collective.id + at) as u16,
                plane: (collective.plane + at) as u8,
                footprint,
                words: if barrier { 1 } else { words_of(wide, elements.end - elements.start) },
                stored: if barrier { 0..1 } else { segments::words(collective.segments, at, stored_words) },
                elements,
            }
        };
        let segments: Vec<Segment> = (0..).zip(footprints).map(segment).collect();
        let empty = |words, stored_words, input, contributions| BuiltCollective {
            segments,
            jobs: Vec::new(),
            words,
            stored_words,
            input,
            contributions,
            rewritten: Vec::new(),
        };
        if barrier {
            return empty(1, 1, Arc::from([]), collective.participants.len());
        }
        let (words, stored_words) =
            (words_of(wide, collective.elements), words_of(collective.dtype, collective.elements));
        let mut input = Vec::with_capacity(collective.rows() * stored_words as usize);
        let mut contributions = 0;
        self.loaded.each_row(index, |row| {
            input.extend(arith::pack_words(collective.dtype, row));
            contributions += 1;
        });
        empty(words, stored_words, input.into(), contributions)
    }

    // ---------------------------------------------------------------------------------------------- end points

    fn memory(&self) -> MemoryCfg {
        let scenario = self.scenario;
        MemoryCfg {
            bandwidth: scenario.memory.bandwidth_bps,
            scale: scenario.clock.frequency_hz,
            read_latency: scenario.memory.read_latency.cycles,
            write_latency: scenario.memory.write_latency.cycles,
        }
    }

    fn ends(
        &self,
        layout: &Layout,
        (mut built, claims): (Vec<BuiltCollective>, &overlaps::Plan),
        memory: &Arc<MemoryCfg>,
    ) -> (Vec<End>, Vec<BuiltCollective>) {
        let scenario = self.scenario;
        let mut ends: Vec<End> = vec![End::default(); layout.ends.len()];
        let started = scenario.collectives.iter().zip(&mut built).enumerate();
        for (index, (collective, built)) in started.filter(|(_, (collective, _))| !collective.called) {
            let places: Vec<EndPlace> = collective.participants.iter().map(|&end| layout.ends[end as usize]).collect();
            let (senders, ..) = roles(collective, &places);
            let mut numbers: Vec<(EndPlace, usize)> =
                senders.iter().enumerate().map(|(number, &place)| (place, number)).collect();
            numbers.sort_unstable();
            let apart = collective.receiver.filter(|end| !collective.participants.contains(end));
            let nothing = JobKind { sends: false, receives: false, data: false };
            for (number, segment) in built.segments.iter().enumerate() {
                let claims = claims.tree(overlaps::Owner::Segment(index, number)).is_some();
                let input = Arc::clone(&built.input);
                let mut model = Job::new(segment.id, nothing, segment.words, input, 0, u64::MAX);
                model.on_plane(segment.plane);
                if let Some(pair) = collective.accumulate {
                    let mode = arith::Mode::rounding(collective.round);
                    model.convert(Conversion { pair, mode, narrows: !collective.result_stays_wide });
                }
                if let Some(end) = scan::end(collective, scenario.switch.ceng.stages as u8) {
                    model.scan(end);
                }
                let mut next = [0; 2];
                for (participant, &end) in collective.participants.iter().chain(&apart).enumerate() {
                    let place = layout.ends[end as usize];
                    let sender = find(&numbers, &mut next[0], place, |&(place, _)| place).map(|at| numbers[at].1);
                    let kind = JobKind {
                        sends: sender.is_some(),
                        receives: find(&segment.footprint.reached, &mut next[1], place, |&place| place).is_some(),
                        data: collective.kind != CollectiveKind::Barrier,
                    };
                    let delay = collective.start.delays.get(participant).copied().unwrap_or(0);
                    let start = collective.start.cycle + delay;
                    let offset = sender.unwrap_or(0) * built.stored_words as usize + segment.stored.start as usize;
                    let mut job = model.of_another(kind, offset, start);
                    if claims {
                        job.claim(start);
                    }
                    let core = ends[end as usize].core.get_or_insert_with(|| Box::new(Core::new(Arc::clone(memory))));
                    built.jobs.push((end as usize, core.jobs().len()));
                    core.add(job);
                }
            }
        }
        (ends, built)
    }
}

/// The index of a place in an ascending list. Looking for places in their order costs nothing: `next` is where the last one
/// was found, plus one.
fn find<T>(list: &[T], next: &mut usize, place: EndPlace, key: impl Fn(&T) -> EndPlace) -> Option<usize> {
    let at = match list.get(*next) {
        Some(item) if key(item) == place => *next,
        _ => list.binary_search_by_key(&place, key).ok()?,
    };
    *next = at + 1;
    Some(at)
}

/// The senders, the required receivers (`None`: those that the registers name, at least one), and whether it is a reduction.
pub(super) fn roles(collective: &Collective, places: &[EndPlace]) -> (Vec<EndPlace>, Option<Vec<EndPlace>>, bool) {
    match collective.kind {
        CollectiveKind::Allreduce | CollectiveKind::Barrier | CollectiveKind::Scan => {
            (places.to_vec(), Some(places.to_vec()), true)
        }
        CollectiveKind::Reduce => (places.to_vec(), None, true),
        CollectiveKind::Broadcast => {
            let source = places[collective.source as usize];
            let others = places.iter().copied().filter(|&place| place != source).collect();
            (vec![source], Some(others), false)
        }
    }
}
