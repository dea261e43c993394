//! From the checked configuration to a system that can be clocked: layout, registers, end points, and the checks that
//! need them (register legality, overlaps). A wrong configuration ends here with a [`Problem`] at its place.

use super::config::{
    Arbiter, AutoOr, Collective, CollectiveKind, Family, SwitchPort, SwitchRegisters, Topology, TrafficPattern, Tree,
};
use super::problem::Problem;
use super::{Loaded, Problems, Scenario};
use crate::arith::{self, Op, TreeCfg};
use crate::fabric::arbiter::Policy;
use crate::fabric::routing::Routes;
use crate::fabric::topology::{Common, Die, EndPlace, GenericTree, Layout, LinkParams, Mesh, Neighbours};
use crate::fabric::traffic::{SourceCfg, Target, Traffic};
use crate::fabric::{Blocks, Network, NoBump, Pipeline, PlanLink, SwitchCfg, Vcs, credit_round_trip};
use crate::oracle::Node;
use crate::piuma::embed::{self, Ground, Vectors};
use crate::piuma::legality::{self, At, Claim, Footprint, Illegal, channel_name};
use crate::piuma::{
    CHANNELS, Ceng, CengCfg, Core, End, Job, JobKind, MemoryCfg, OpSelect, REQUEST, RESPONSE, Registers, RegistersCfg,
    System,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A collective, ready to run.
#[derive(Clone, Debug)]
pub struct Built {
    /// What it uses, and its tree.
    pub footprint: Footprint,
    /// Its participants' end points, in their order, with the number of the job there; a receiver that does not take
    /// part comes last.
    pub jobs: Vec<(usize, usize)>,
    /// Collectives that must be complete before this one may start: they meet it at a switch under another id.
    pub after: Vec<usize>,
    /// Words of its vector.
    pub words: u64,
    /// Words of every contribution, one after the other.
    pub input: Arc<[u64]>,
    /// How many contributions there are.
    pub contributions: usize,
}

/// A system and what runs on it.
pub struct Ready {
    /// The system at cycle 0.
    pub system: System,
    /// The collectives, in the order of the scenario.
    pub collectives: Vec<Built>,
    /// Values that follow from the rest, for the printed configuration.
    pub derived: Vec<(String, u64)>,
}

/// Choices of a build that a scenario cannot make.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuildOptions {
    /// Leaves link monitors out, whatever the scenario says.
    pub no_monitors: bool,
}

/// The largest number of ports a switch with registers can have: a register is one word, the engine takes one bit.
const MOST_PORTS: u16 = 63;

/// Builds the system of a scenario.
///
/// # Errors
/// What is wrong with the configuration, at its place.
pub fn build(loaded: &Loaded, options: BuildOptions) -> Result<Ready, Problems> {
    let mut builder = Builder { loaded, scenario: &loaded.scenario, problems: Vec::new(), derived: Vec::new() };
    let ready = builder.build(options);
    match ready {
        Some(ready) if builder.problems.is_empty() => Ok(ready),
        _ => Err(loaded.problems(builder.problems)),
    }
}

/// The topology of a scenario, laid out.
pub(super) fn lay_out(scenario: &Scenario, common: &Common) -> Layout {
    match &scenario.topology {
        Topology::Die { tiles, positions } => Die { tiles: *tiles as u16, positions: *positions as u16 }.layout(common),
        Topology::Mesh { size, concentration } => {
            Mesh { size: size.clone(), concentration: *concentration as u16 }.layout(common)
        }
        Topology::Tree { branching, roots } => {
            GenericTree { branching: branching.iter().map(|&b| b as u16).collect(), roots: *roots as u16 }
                .layout(common)
        }
    }
}

/// The arbitration policy of a scenario.
pub(super) fn policy(arbiter: Arbiter) -> Policy {
    match arbiter {
        Arbiter::RoundRobin => Policy::RoundRobin,
        Arbiter::Matrix => Policy::Matrix,
        Arbiter::Fixed => Policy::Fixed,
    }
}

struct Builder<'a> {
    loaded: &'a Loaded,
    scenario: &'a Scenario,
    problems: Vec<Problem>,
    derived: Vec<(String, u64)>,
}

impl Builder<'_> {
    fn build(&mut self, options: BuildOptions) -> Option<Ready> {
        let scenario = self.scenario;
        let engine = scenario.family == Family::Piuma;
        let pipeline = Pipeline::new(scenario.switch.pipeline_stages as u8);
        let link = |latency: u64| LinkParams {
            latency: latency as u16,
            cycles_per_flit: scenario.link.cycles_per_flit as u16,
        };
        let common = Common {
            vcs: Vcs { set: if engine { CHANNELS } else { 0 }, unicast: scenario.switch.point_to_point_vcs as u8 },
            engine,
            link: link(scenario.link.latency.cycles),
            local: link(scenario.link.local_latency.cycles),
        };
        let mut layout = lay_out(scenario, &common);
        if layout.external_ports > MOST_PORTS {
            let message = format!("{} ports a switch are too many", layout.external_ports);
            let expected = format!("up to {MOST_PORTS} ports without the engine: a register is one word of 64 bits");
            self.problems.push(Problem::at("topology.concentration", message).expected(expected));
            return None;
        }
        let sources = self.sources(&mut layout, common.local);
        let neighbours = Neighbours::new(&layout);

        let cfg = RegistersCfg {
            switches: layout.switches() as u32,
            ids: scenario.switch.collective_ids as u16,
            external_ports: layout.external_ports,
        };
        let routes = Routes { routing: layout.routing.clone(), ends: layout.ends.clone() };
        let names = layout.switch_names().map(String::from).collect();
        let mut registers = Registers::new(cfg, names, routes);
        let collectives = self.collectives(&layout, &neighbours, &mut registers)?;
        if !self.problems.is_empty() {
            return None;
        }

        let tree = TreeCfg { radix: scenario.switch.ceng.radix as u8, unit_stages: scenario.switch.ceng.stages as u8 };
        let enough = CengCfg::enough_result_slots(tree, pipeline.front());
        let ceng = CengCfg {
            tree,
            operand_slots: scenario.switch.ceng.operand_slots,
            result_slots: scenario.switch.ceng.result_slots.or(enough),
        };
        if engine {
            self.derived.push(("ceng_result_slots".into(), u64::from(ceng.result_slots)));
        }
        let (ends, collectives) = self.ends(&layout, sources, collectives);
        let depths = |link: &PlanLink, vc: u8| -> u16 {
            if !common.vcs.is_set(vc) {
                return scenario.switch.point_to_point_buffer_flits as u16;
            }
            match scenario.switch.collective_buffer_flits {
                AutoOr::Fixed(flits) => flits as u16,
                AutoOr::Auto => {
                    credit_round_trip(link.latency, link.cycles_per_flit, pipeline.post(), pipeline.front()) as u16
                }
            }
        };
        for (key, params) in [("link", common.link), ("local_link", common.local)] {
            let trip = credit_round_trip(params.latency, params.cycles_per_flit, pipeline.post(), pipeline.front());
            self.derived.push((format!("{key}_credit_round_trip_cycles"), trip));
        }
        let switch = SwitchCfg {
            pipeline,
            policy: policy(scenario.switch.arbiter),
            monitors: scenario.checks.monitors && !options.no_monitors,
        };
        let joins = if engine { vec![Ceng::new(ceng); layout.switches()] } else { Vec::new() };
        let blocks = Blocks { joins, no_join: Ceng::new(ceng), bumps: Vec::<NoBump<Registers>>::new(), ends };
        let mut vc_names: Vec<String> = if engine { vec!["request".into(), "response".into()] } else { Vec::new() };
        vc_names.extend((0..common.vcs.unicast).map(|vc| format!("p2p{vc}")));
        let system = Network::new(layout.plan, registers, blocks, switch, &depths, vc_names);
        Some(Ready { system, collectives, derived: std::mem::take(&mut self.derived) })
    }

    // ------------------------------------------------------------------------------------------------- traffic

    /// Attaches the end points that flows need and says which sources sit where.
    fn sources(&mut self, layout: &mut Layout, local: LinkParams) -> BTreeMap<usize, Vec<SourceCfg>> {
        let mut sources: BTreeMap<usize, Vec<SourceCfg>> = BTreeMap::new();
        for (class, traffic) in self.scenario.traffic.iter().enumerate() {
            let source = |rate: f64, target| SourceCfg {
                rate,
                packet_flits: traffic.packet_flits,
                target,
                start: traffic.start_cycle,
                stop: traffic.stop_cycle.unwrap_or(u64::MAX),
                class,
            };
            match &traffic.pattern {
                TrafficPattern::Uniform { rate } => {
                    let target = Target::Uniform { ends: layout.cores as u32 };
                    for end in 0..layout.cores {
                        sources.entry(end).or_default().push(source(rate.0, target));
                    }
                }
                TrafficPattern::Flows { flows } => {
                    for (index, flow) in flows.iter().enumerate() {
                        let path = |key: &str| format!("traffic[{class}].flows[{index}].{key}");
                        let from = self.attach(layout, local, &flow.from, path("from"));
                        let to = self.attach(layout, local, &flow.to, path("to"));
                        if let (Some(from), Some(to)) = (from, to) {
                            sources.entry(from).or_default().push(source(flow.rate.0, Target::Fixed(to as u32)));
                            sources.entry(to).or_default();
                        }
                    }
                }
            }
        }
        sources
    }

    fn attach(&mut self, layout: &mut Layout, local: LinkParams, at: &SwitchPort, path: String) -> Option<usize> {
        let place = EndPlace { switch: at.switch, port: at.port };
        if at.port >= layout.external_ports {
            let message = format!("{} has no port {} for traffic", layout.plan.nodes[at.switch as usize].name, at.port);
            let expected = format!("P0 to P{}", layout.external_ports - 1);
            self.problems.push(Problem::at(path, message).expected(expected));
            return None;
        }
        if let Some(end) = layout.end_at(place) {
            return Some(end);
        }
        if let Some((far, _)) = layout.neighbour(at.switch, at.port) {
            let message = format!(
                "{} leads to {}: no traffic can enter or leave there",
                at.name, layout.plan.nodes[far as usize].name
            );
            self.problems.push(Problem::at(path, message).expected("a local port or one without a link"));
            return None;
        }
        Some(layout.attach(place, local))
    }

    // --------------------------------------------------------------------------------------------- collectives

    /// Writes the registers of all collectives and checks them.
    fn collectives(
        &mut self,
        layout: &Layout,
        neighbours: &Neighbours,
        registers: &mut Registers,
    ) -> Option<Vec<Built>> {
        let ground = Ground { routing: &layout.routing, neighbours, engine: registers.engine_port() };
        let scenario = self.scenario;
        let mut owners: BTreeMap<(u16, u32, u8, u16), usize> = BTreeMap::new();
        let mut all: Vec<Vectors> = Vec::new();
        for (index, collective) in scenario.collectives.iter().enumerate() {
            let vectors = self.vectors(index, collective, layout, &ground)?;
            let id = collective.id as u16;
            for &(switch, channel, port) in vectors.keys() {
                if let Some(&other) = owners.get(&(id, switch, channel, port)) {
                    self.share(index, other, registers, switch, Some(port));
                    return None;
                }
                owners.insert((id, switch, channel, port), index);
            }
            all.push(vectors);
        }
        for (index, (collective, vectors)) in scenario.collectives.iter().zip(&all).enumerate() {
            if let Err(error) = embed::store(registers, collective.id as u16, vectors) {
                self.problems.push(Problem::at(format!("collective[{index}]"), error.to_string()));
                return None;
            }
        }
        let mut built: Vec<Built> = Vec::new();
        for (index, collective) in scenario.collectives.iter().enumerate() {
            let places: Vec<EndPlace> = collective.participants.iter().map(|&end| layout.ends[end as usize]).collect();
            let (senders, mut receivers, reduces) = roles(collective, &places);
            if let Some(end) = collective.receiver {
                receivers = Some(vec![layout.ends[end as usize]]);
            }
            let claim = Claim {
                id: collective.id as u16,
                senders: &senders,
                receivers: receivers.as_deref(),
                members: &places,
                reduces,
            };
            let footprint = match legality::check(registers, neighbours, scenario.switch.ceng.radix as u8, &claim) {
                Ok(footprint) => footprint,
                Err(illegal) => {
                    self.illegal(index, collective, registers, &illegal);
                    return None;
                }
            };
            self.select(index, collective, &footprint, registers)?;
            let (words, input, contributions) = self.input(index, collective);
            built.push(Built { footprint, jobs: Vec::new(), after: Vec::new(), words, input, contributions });
        }
        for a in 0..built.len() {
            for b in 0..a {
                let (first, second) = (&scenario.collectives[a], &scenario.collectives[b]);
                if first.id == second.id {
                    if let Err((switch, port)) = legality::disjoint(&built[a].footprint, &built[b].footprint) {
                        self.share(a, b, registers, switch, port);
                        return None;
                    }
                } else if scenario.checks.claims && legality::meet(&built[a].footprint, &built[b].footprint) {
                    // Whole sets of switches are claimed in the order of start, then of ids: nobody ever holds a part.
                    let key = |i: usize| (scenario.collectives[i].start_cycle, scenario.collectives[i].id, i);
                    let (earlier, later) = if key(a) < key(b) { (a, b) } else { (b, a) };
                    built[later].after.push(earlier);
                }
            }
        }
        Some(built)
    }

    /// The register vectors of a collective: as given, or of the built-in tree.
    fn vectors(
        &mut self,
        index: usize,
        collective: &Collective,
        layout: &Layout,
        ground: &Ground<'_>,
    ) -> Option<Vectors> {
        let places: Vec<EndPlace> = collective.participants.iter().map(|&end| layout.ends[end as usize]).collect();
        let root = match &collective.tree {
            Tree::Registers(registers) => return self.given(index, registers, ground),
            Tree::Auto => embed::middle(ground, &places),
            Tree::Root(switch) => *switch,
        };
        if collective.kind == CollectiveKind::Broadcast {
            let source = places[collective.source as usize];
            let others: Vec<EndPlace> = places.iter().copied().filter(|&place| place != source).collect();
            return Some(embed::multicast(ground, source, &others));
        }
        let receivers = match collective.kind {
            CollectiveKind::Reduce => vec![match collective.receiver {
                Some(end) => layout.ends[end as usize],
                None => places.iter().copied().find(|place| place.switch == root).unwrap_or(places[0]),
            }],
            _ => places.clone(),
        };
        Some(embed::reduction(ground, &places, root, &receivers))
    }

    fn given(&mut self, index: usize, given: &[SwitchRegisters], ground: &Ground<'_>) -> Option<Vectors> {
        let mut vectors = Vectors::new();
        let mut sound = true;
        for registers in given {
            for (channel, list) in [(REQUEST, &registers.request), (RESPONSE, &registers.response)] {
                for (input, outputs) in list {
                    let path =
                        format!("collective[{index}].registers.{}.{}.I{input}", registers.name, channel_name(channel));
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
        sound.then_some(vectors)
    }

    /// Writes the operation of a collective at every switch whose engine it uses.
    fn select(
        &mut self,
        index: usize,
        collective: &Collective,
        footprint: &Footprint,
        registers: &mut Registers,
    ) -> Option<()> {
        let select = OpSelect {
            op: operation(collective),
            dtype: collective.dtype,
            mode: arith::Mode::rounding(collective.round),
        };
        for &switch in &footprint.engines {
            let address = Registers::select_address(switch, collective.id as u16);
            if let Err(error) = registers.store(address, select.encode()) {
                self.problems.push(Problem::at(format!("collective[{index}].op"), error.to_string()));
                return None;
            }
        }
        Some(())
    }

    fn share(&mut self, a: usize, b: usize, registers: &Registers, switch: u32, port: Option<u16>) {
        let (first, second) = (&self.scenario.collectives[a], &self.scenario.collectives[b]);
        let place = port.map_or_else(|| "the engine".to_string(), |port| format!("port {port}"));
        let message = format!(
            "collectives \"{}\" and \"{}\" both use id {} and share {place} of {}",
            second.name,
            first.name,
            first.id,
            registers.name(switch)
        );
        self.problems.push(
            Problem::at(format!("collective[{a}].id"), message)
                .expected("an id of its own, or an embedding that shares no link and no engine")
                .related(format!("collective[{b}].id"), "the other one"),
        );
    }

    fn illegal(&mut self, index: usize, collective: &Collective, registers: &Registers, illegal: &Illegal) {
        let at = illegal.at.filter(|_| matches!(collective.tree, Tree::Registers(_)));
        let path = match at {
            Some(At { switch, channel, port }) => {
                format!("collective[{index}].registers.{}.{}.I{port}", registers.name(switch), channel_name(channel))
            }
            None if matches!(collective.tree, Tree::Registers(_)) => format!("collective[{index}].registers"),
            None => format!("collective[{index}]"),
        };
        let message = format!("collective \"{}\": {}", collective.name, illegal.message);
        self.problems.push(Problem::at(path, message).expected(&illegal.expected));
    }

    /// The words all contributors send: lanes packed, one contribution after the other.
    fn input(&self, index: usize, collective: &Collective) -> (u64, Arc<[u64]>, usize) {
        if collective.kind == CollectiveKind::Barrier {
            return (1, Arc::from([]), collective.participants.len());
        }
        let lanes = u64::from(collective.dtype.lanes());
        let words = collective.elements.div_ceil(lanes);
        let rows = self.loaded.data(index);
        let mut input = Vec::with_capacity(rows.len() * words as usize);
        for row in &rows {
            input.extend(row.chunks(lanes as usize).map(|lanes| arith::pack_lanes(collective.dtype, lanes)));
        }
        (words, input.into(), rows.len())
    }

    // ---------------------------------------------------------------------------------------------- end points

    fn ends(
        &self,
        layout: &Layout,
        sources: BTreeMap<usize, Vec<SourceCfg>>,
        mut built: Vec<Built>,
    ) -> (Vec<End>, Vec<Built>) {
        let scenario = self.scenario;
        let memory = MemoryCfg {
            bandwidth: scenario.memory.bandwidth_bps,
            scale: scenario.clock.frequency_hz,
            read_latency: scenario.memory.read_latency.cycles,
            write_latency: scenario.memory.write_latency.cycles,
        };
        let mut ends: Vec<End> = vec![End::default(); layout.ends.len()];
        for (collective, built) in scenario.collectives.iter().zip(&mut built) {
            let places: Vec<EndPlace> = collective.participants.iter().map(|&end| layout.ends[end as usize]).collect();
            let (senders, ..) = roles(collective, &places);
            let apart = collective.receiver.filter(|end| !collective.participants.contains(end));
            for (participant, &end) in collective.participants.iter().chain(&apart).enumerate() {
                let place = layout.ends[end as usize];
                let sender = senders.iter().position(|&sender| sender == place);
                let kind = JobKind {
                    sends: sender.is_some(),
                    receives: built.footprint.reached.contains(&place),
                    data: collective.kind != CollectiveKind::Barrier,
                };
                let delay = collective.delays.get(participant).copied().unwrap_or(0);
                let start = if built.after.is_empty() { collective.start_cycle + delay } else { u64::MAX };
                let offset = sender.unwrap_or(0) * built.words as usize;
                let job = Job::new(collective.id as u16, kind, built.words, Arc::clone(&built.input), offset, start);
                let core = ends[end as usize].core.get_or_insert_with(|| Box::new(Core::new(memory)));
                built.jobs.push((end as usize, core.jobs().len()));
                core.add(job);
            }
        }
        for (end, sources) in sources {
            ends[end].traffic = Some(Box::new(Traffic::new(end as u32, &sources, scenario.seed)));
        }
        if scenario.traffic.iter().any(|traffic| matches!(traffic.pattern, TrafficPattern::Uniform { .. })) {
            debug_assert!(ends[..layout.cores].iter().all(|end| end.traffic.is_some()));
        }
        (ends, built)
    }
}

/// Who sends, who must receive (`None`: whoever the registers name, at least one), and whether it is a reduction.
fn roles(collective: &Collective, places: &[EndPlace]) -> (Vec<EndPlace>, Option<Vec<EndPlace>>, bool) {
    match collective.kind {
        CollectiveKind::Allreduce | CollectiveKind::Barrier => (places.to_vec(), Some(places.to_vec()), true),
        CollectiveKind::Reduce => (places.to_vec(), None, true),
        CollectiveKind::Broadcast => {
            let source = places[collective.source as usize];
            let others = places.iter().copied().filter(|&place| place != source).collect();
            (vec![source], Some(others), false)
        }
    }
}

/// The operation the engines are told.
pub fn operation(collective: &Collective) -> Op {
    match collective.kind {
        CollectiveKind::Barrier => Op::Barrier,
        _ => collective.op.unwrap_or(Op::Sum),
    }
}

/// The tree of a collective with one contribution and no engine, or as its registers have it.
pub fn oracle_tree(built: &Built) -> Node {
    built.footprint.tree.clone().unwrap_or(Node::Leaf(0))
}
