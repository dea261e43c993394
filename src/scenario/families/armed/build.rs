//! From a checked armed scenario to a system: trees of the agent, engines on the links towards the roots, faults, end
//! points.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::config::{Armed, Reduction, disturbs_software};
use super::faults::FaultLinks;
use super::file::{ComputeFile, ConfiguredBy, HazardFile, Method, NanFile, SendsFile, SignallingNan, WrongFile};
use crate::build::routed_layout;
use crate::config::{Auto, Data};
use crate::names::layout;
use crate::problem::Problem;
use crate::random::Stream;
use crate::run::system::ArmedSystem;
use crate::sources::{self, Sources};
use crate::switches::{buffer, channel_kinds, pipeline, policy, router};
use crate::{Loaded, Problems, Scenario, values, workload};
use watershed_arith::{Mode, NanPolicy, Op, Quad, SignalPolicy, repsum};
use watershed_armed::job::{RunTime, Timeouts};
use watershed_armed::manage::Verb;
use watershed_armed::{
    Adapter, Agent, AgentInfo, CHANNELS, Client, Compute, Defect, Discard, End, Engine, EngineCfg, FRAME_BYTES,
    ForgedKind, Hazard, Inputs, Job, Keys, LateParticipant, Leaf, Manager, ManagerCfg, OtherTree, Overheads, Owner,
    Refusal, Root, Soft, SpanningTree, Stranger, System, Tables, TablesCfg, Tokens, WireBlock, station, tables,
};
use watershed_fabric::routing::Routes;
use watershed_fabric::topology::{Common, EndPlace, Layout};
use watershed_fabric::{Blocks, NodeKind, Parts, Plan, PlanLink, SwitchCfg, Vcs};

/// One reduction, laid out.
pub struct ReductionPlan {
    /// The job as its processes know it.
    pub job: Arc<Job>,
    /// Its trees.
    pub trees: Vec<SpanningTree>,
    /// What reduces in software if the agent makes no tree at run time.
    pub fallback: Option<Arc<Job>>,
    /// Why it reduces in software although it was to use engines.
    pub refused: Option<String>,
    /// Why it has no second tree although it asked for one.
    pub no_second: Option<String>,
}

impl ReductionPlan {
    /// What asks the agent for its tree.
    pub fn client<'a>(&self, system: &'a ArmedSystem) -> Option<&'a Client> {
        let root = system.end(self.job.members[0] as usize);
        root.clients().iter().find(|client| client.job().number == self.job.number)
    }

    /// Multicast ids of its trees, of those made at run time too.
    pub fn ids(&self, system: &ArmedSystem) -> Vec<u16> {
        self.client(system).map_or_else(|| self.job.trees.clone(), |client| client.trees().to_vec())
    }

    /// The job as those know it who reduce: in software if there was to be a tree at run time and there was none.
    pub fn job_of(&self, system: &ArmedSystem) -> &Arc<Job> {
        let fell_back = self.client(system).is_some_and(|client| client.refusal().is_some());
        self.fallback.as_ref().filter(|_| fell_back).unwrap_or(&self.job)
    }
}

/// A system and what runs on it; without the system (`()`) where the runner owns that.
pub struct ArmedBuild<S = System> {
    /// The system at cycle 0.
    pub system: S,
    /// The reductions, in the order of the scenario.
    pub reductions: Vec<ReductionPlan>,
    /// Engines by place: number among the bumps, depth in the trees that climb there, wait counts by multicast id.
    pub engines: BTreeMap<(u32, u16), usize>,
    /// Values that follow from the rest.
    pub derived: Vec<(String, u64)>,
    /// The sources of traffic, if there are any.
    pub(crate) sources: Option<Sources>,
}

impl<S> ArmedBuild<S> {
    /// The system, and what runs on it.
    pub(crate) fn split(self) -> (S, ArmedBuild<()>) {
        let ArmedBuild { system, reductions, engines, derived, sources } = self;
        (system, ArmedBuild { system: (), reductions, engines, derived, sources })
    }
}

/// What a build can leave out.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuildOptions {
    /// Leaves link monitors and records for the golden check out.
    pub no_checks: bool,
    /// Logs frames for a ladder.
    pub log: bool,
    /// Keeps the records for the golden check whatever else.
    pub record: bool,
    /// As of [the other families](crate::build::BuildOptions::threads).
    pub threads: usize,
}

/// Builds the system of a scenario.
///
/// # Errors
/// What is wrong with the configuration, at its place.
pub fn build(loaded: &Loaded, options: BuildOptions) -> Result<ArmedBuild, Problems> {
    Builder::new(loaded, options).build().map_err(|problems| loaded.problems(problems))
}

/// What stands where, before there is a network.
pub(crate) struct Placement {
    /// Nodes and links, what is in the wires among them.
    pub plan: Plan,
    /// The multicast tables.
    pub tables: Tables,
    /// What is in the wires.
    pub bumps: Vec<WireBlock>,
    /// What is at the end points.
    pub ends: Vec<End>,
}

pub(crate) struct Builder<'a> {
    loaded: &'a Loaded,
    pub(super) scenario: &'a Scenario,
    pub(super) armed: &'a Armed,
    options: BuildOptions,
    pub(crate) problems: Vec<Problem>,
}

impl<'a> Builder<'a> {
    /// For a scenario that has the family's table.
    pub(crate) fn new(loaded: &'a Loaded, options: BuildOptions) -> Builder<'a> {
        let scenario = &loaded.scenario;
        let armed = scenario.armed.as_ref().expect("the armed family has its table");
        Builder { loaded, scenario, armed, options, problems: Vec::new() }
    }

    fn build(mut self) -> Result<ArmedBuild, Vec<Problem>> {
        let (scenario, armed) = (self.scenario, self.armed);
        let common = Common {
            vcs: Vcs {
                set: CHANNELS + u8::from(armed.agent.is_some()),
                unicast: scenario.switch.point_to_point_vcs as u8,
            },
            engine: true,
            link: scenario.link.params(),
            local: scenario.link.local_params(),
        };
        // Messages of software reductions, to which others may fall back, have a lane of their own beside those of traffic.
        let quiet = scenario.traffic.is_empty();
        let shares = sources::shares(scenario, !quiet);
        let lanes = if quiet { 1 } else { 1 + shares.lanes };
        let Some(mut lay) = routed_layout(self.loaded, &common, lanes, &mut self.problems) else {
            return Err(self.problems);
        };
        let mut sources = Sources::place(scenario, &mut lay, common.local, &mut self.problems);
        if !self.frames_fit(&lay) {
            return Err(self.problems);
        }
        let Some(ready) = self.parts(&lay, lay.plan.clone()) else { return Err(self.problems) };
        let (mut parts, ready) = ready.split();
        if !quiet {
            parts.tables.share(shares);
        }
        let kinds = channel_kinds(scenario);
        let depths = |link: &PlanLink, vc: u8| buffer(scenario, kinds[usize::from(vc)], link);
        let switch = SwitchCfg {
            pipeline: pipeline(scenario),
            policy: policy(scenario.switch.arbiter),
            monitors: scenario.checks.monitors && !self.options.no_checks,
            router: router(scenario),
        };
        let Placement { plan, tables, bumps, ends } = parts;
        let switches = plan.count(NodeKind::Switch);
        let join = if armed.agent.is_some() { Discard::managed(scenario.link.cut()) } else { Discard::default() };
        let ends = Sources::with_traffic(Some(&mut sources), ends, (scenario.seed, switch.monitors), shares.messages);
        let blocks = Blocks { joins: vec![join; switches], no_join: Discard::default(), bumps, ends };
        let mut vc_names = vec!["up".to_owned(), "down".to_owned()];
        vc_names.extend(armed.agent.map(|_| "agent".to_owned()));
        vc_names.extend((0..common.vcs.unicast).map(|vc| format!("p2p{vc}")));
        let parts = Parts::by_threads(self.options.threads);
        let system = watershed_armed::system(parts, plan, tables, blocks, switch, &depths, vc_names);
        let ArmedBuild { reductions, engines, derived, .. } = ready;
        Ok(ArmedBuild { system, reductions, engines, derived, sources: (!quiet).then_some(sources) })
    }

    /// Whether switches have no more ports than the family's tables, and input buffers hold a frame: copies of it would wait for each
    /// other otherwise.
    pub(crate) fn frames_fit(&mut self, lay: &Layout) -> bool {
        if lay.external_ports > tables::MOST_PORTS {
            let message = format!("{} ports a switch are too many", lay.external_ports);
            let expected = format!("up to {} ports", tables::MOST_PORTS);
            self.problems.push(Problem::at("topology", message).expected(expected));
            return false;
        }
        let frame = self.scenario.link.cut().flits(FRAME_BYTES);
        let short = match self.scenario.switch.collective_buffer_flits {
            Auto::Fixed(flits) => Some(flits).filter(|&flits| (flits as usize) < frame),
            Auto::Auto => None,
        };
        if let Some(flits) = short {
            let message = format!("a buffer of {flits} flits cannot hold a reduction frame whole");
            self.problems.push(
                Problem::at("switch.collective_buffer_flits", message)
                    .expected(format!("at least {frame}, or \"auto\"")),
            );
        }
        short.is_none()
    }

    /// What stands in a plan of switches, links and end points: multicast tables, engines and faults in the wires, processes. In
    /// the plan there may be more than what was laid out.
    pub(crate) fn parts(&mut self, lay: &Layout, mut plan: Plan) -> Option<ArmedBuild<Placement>> {
        let (scenario, armed) = (self.scenario, self.armed);
        let engine = self.engine_cfg();
        let record = self.options.record || scenario.checks.oracle && !self.options.no_checks;
        let cfg = TablesCfg { entries: armed.table_entries as u16, engine, record, log: self.options.log };
        let names: Vec<String> = lay.switch_names().map(String::from).collect();
        let routes = Routes { routing: lay.routing.clone(), ends: lay.ends.clone() };
        let mut tables = Tables::new(cfg, names, lay.external_ports, routes);
        tables.cut = scenario.link.cut();
        let agent = Arc::new(Agent::new(lay));
        if let Some(manage) = &armed.agent {
            let ways = agent.ways(lay.ends[manage.end_point as usize]);
            let write_cycles = manage.switch_write_cycles;
            tables.manage(AgentInfo { agent: manage.end_point, write_cycles, ways });
        }
        let reductions = self.reductions(lay, &agent, &mut tables);
        if let Some(cycle) = agent.dependency_cycle(&tables) {
            let message =
                format!("the trees of these reductions could deadlock: {} wait for each other", cycle.join(", "));
            self.problems.push(Problem::at("armed.reduction", message));
        }

        // Bumps: adapters nearest to end points, engines nearest to switches, faults on the outer side of engines.
        let ends = &lay.ends;
        // Every link may get an engine and a fault, every end point an adapter.
        let stations = plan.nodes.len() + 2 * plan.links.len() + armed.ethernet.len();
        let tokens = Tokens::new(stations.min(station::MAX_STATIONS));
        let mut bumps: Vec<WireBlock> = Vec::new();
        for &end in &armed.ethernet {
            let place = ends[end as usize];
            let name = format!("{}.adapter", end_name(&plan, end));
            plan.insert_bump(place.switch, place.port, 1, &name);
            bumps.push(WireBlock::Adapter(Box::<Adapter>::default()));
        }
        let climbs: BTreeSet<(u32, u16)> =
            reductions.iter().flat_map(|laid| &laid.trees).flat_map(SpanningTree::climbs).collect();
        let mut engines = BTreeMap::new();
        for &(switch, port) in &climbs {
            let at = &plan.nodes[switch as usize];
            let name = format!("{}.P{port}.engine", at.name);
            let path = format!("{}.P{port}", at.path.strip_suffix(".switch").unwrap_or(&at.path));
            let unavailable = armed.engine.unavailable.contains(&at.name);
            let number = plan.insert_bump(switch, port, 1, &name);
            let node = plan.count(NodeKind::Switch) + number;
            plan.nodes[node].path = path;
            let made = Engine::new(&engine, switch, port, node as u32, tokens);
            bumps.push(WireBlock::Engine(Box::new(if unavailable { made.with_descriptors(0) } else { made })));
            engines.insert((switch, port), number);
        }
        let managed = tables.managed().map(|managed| managed.ways.climbs().collect::<BTreeSet<_>>());
        let places = FaultLinks { climbs: &climbs, managed: &managed.unwrap_or_default() };
        let dead = self.faults(&mut plan, &mut bumps, ends, &places, &lay.plan.links);
        if plan.nodes.len() > station::MAX_STATIONS {
            self.problems.push(
                Problem::at("topology", format!("{} nodes are too many for the armed family", plan.nodes.len()))
                    .expected(format!("up to {}", station::MAX_STATIONS)),
            );
        }
        let first_end = plan.nodes.len() - plan.count(NodeKind::End);
        let mut made: Vec<End> =
            (0..ends.len()).map(|end| End::new(end as u32, (first_end + end) as u32, tokens)).collect();
        for &end in &armed.ethernet {
            made[end as usize].ethernet = true;
        }
        for (end, from, until) in dead {
            made[end].die(from, until);
        }
        self.processes(&reductions, &mut made);
        self.strangers(&reductions, &mut made);
        if let Some(manage) = &armed.agent {
            let cfg = ManagerCfg {
                compute_cycles: manage.compute_cycles,
                write_timeout: manage.order_timeout_cycles.known(),
                write_attempts: manage.order_attempts,
                window: manage.outstanding_orders,
            };
            let roots = self.armed.reductions.iter().map(|reduction| reduction.root).collect();
            let places = ends.clone().into();
            let manager = Manager::new(manage.end_point, cfg, Arc::clone(&agent), places, roots, tables.clone());
            made[manage.end_point as usize].set_manager(manager);
        }
        if !self.problems.is_empty() {
            return None;
        }
        let mut derived = vec![("engines".to_owned(), engines.len() as u64)];
        let timeouts = engine.timeouts.iter().enumerate();
        derived.extend(timeouts.map(|(which, units)| (format!("timeout{which}_cycles"), u64::from(*units) * 1024)));
        let system = Placement { plan, tables, bumps, ends: made };
        Some(ArmedBuild { system, reductions, engines, derived, sources: None })
    }

    fn engine_cfg(&self) -> EngineCfg {
        let engine = &self.armed.engine;
        let signal = match engine.signalling_nan {
            SignallingNan::Associative => SignalPolicy::Associative,
            SignallingNan::Ieee => SignalPolicy::Ieee,
        };
        let nan = match engine.nan {
            NanFile::Default => NanPolicy::DefaultQuiet,
            NanFile::Propagate => NanPolicy::Propagate,
        };
        EngineCfg {
            descriptors: engine.descriptors as u16,
            stages: engine.stages as u8,
            entrance_frames: engine.entrance_frames as u16,
            exit_frames: engine.exit_frames as u16,
            memory_ports: engine.memory_ports as u8,
            timeouts: std::array::from_fn(|which| engine.timeouts_1024_cycles[which]),
            thresholds: std::array::from_fn(|which| engine.wait_count_thresholds[which]),
            mode: Mode { nan, signal, ..Mode::default() },
            hazard: match engine.hazard {
                HazardFile::Interlock => Hazard::Interlock,
                HazardFile::Ignore => Hazard::Ignore,
            },
        }
    }

    // -------------------------------------------------------------------------------------------------- trees

    fn reductions(&mut self, lay: &Layout, agent: &Agent, tables: &mut Tables) -> Vec<ReductionPlan> {
        let mut all = Vec::new();
        for (index, reduction) in self.armed.reductions.iter().enumerate() {
            let root = lay.ends[reduction.root as usize];
            let leaves: Vec<EndPlace> = reduction.leaves.iter().map(|&end| lay.ends[end as usize]).collect();
            let (mut trees, mut ids) = (Vec::new(), Vec::new());
            let (mut refused, mut no_second) = (None, None);
            if reduction.file.configured_by == ConfiguredBy::Agent {
                // The agent will make the same ones: where trees climb does not depend on what else is in the tables.
                if let Ok((first, second)) = agent.planned(root, &leaves, reduction.file.redundant) {
                    trees.extend([Some(first), second].into_iter().flatten());
                }
                let job = self.job(index, reduction, Vec::new());
                let fallback = Job { run_time: None, opening: false, closing: false, flows: 1, ..job.clone() };
                let (job, fallback) = (Arc::new(job), Some(Arc::new(fallback)));
                all.push(ReductionPlan { job, trees, fallback, refused, no_second });
                continue;
            }
            if reduction.file.method == Method::Engines {
                let wanted = if reduction.file.redundant {
                    agent.pair(root, &leaves).map(|(first, second)| (first, Some(second)))
                } else {
                    agent.tree(root, &leaves).map(|first| (first, None))
                };
                let (first, second) = match wanted {
                    Ok((first, second)) => (Ok(first), second),
                    Err(refusal) => (Err(refusal), None),
                };
                let owner = Owner { root: reduction.root, keys: keys(reduction) };
                match Self::install(agent, tables, first, owner) {
                    Ok((tree, id)) => {
                        trees.push(tree);
                        ids.push(id);
                    }
                    Err(refusal) => refused = Some(refusal.to_string()),
                }
                if let Some(why) = refused.as_ref().filter(|_| reduction.data == Data::Called) {
                    let message = format!("\"{}\" has no tree of armed engines: {why}", reduction.name);
                    let problem = Problem::at("workload.trace", message);
                    self.problems.push(problem.help("[workload.engine] can give kinds of collectives to software"));
                }
                if let (Some(second), false) = (second, trees.is_empty()) {
                    match Self::install(agent, tables, second, owner) {
                        Ok((tree, id)) => {
                            trees.push(tree);
                            ids.push(id);
                        }
                        Err(refusal) => no_second = Some(refusal.to_string()),
                    }
                }
            }
            let job = Arc::new(self.job(index, reduction, ids));
            all.push(ReductionPlan { job, trees, fallback: None, refused, no_second });
        }
        all
    }

    fn install(
        agent: &Agent,
        tables: &mut Tables,
        tree: Result<SpanningTree, Refusal>,
        owner: Owner,
    ) -> Result<(SpanningTree, u16), Refusal> {
        let tree = tree?;
        let id = agent.install(tables, &tree, owner)?;
        Ok((tree, id))
    }

    fn job(&self, index: usize, reduction: &Reduction, trees: Vec<u16>) -> Job {
        let run_time = self.run_time(index, reduction);
        let software = trees.is_empty() && run_time.is_none();
        let changed = self.armed.reductions.iter().any(|other| other.changes == Some(index as u16));
        let members = members(reduction);
        let rank_of = |end: u32| members.iter().position(|&member| member == end).map_or(0, |rank| rank as u32);
        let compute = match &reduction.file.compute_cycles {
            _ if reduction.data == Data::Called => Compute::Called,
            ComputeFile::Same(cycles) => Compute::Fixed(*cycles),
            ComputeFile::Random { least, most } => {
                Compute::Random { least: *least, most: *most, seed: self.scenario.seed ^ 0xc0_4b17e }
            }
            ComputeFile::List(rows) => Compute::List(rows.clone().into()),
        };
        let late = reduction
            .file
            .late
            .iter()
            .map(|late| LateParticipant { rank: rank_of(late.end_point), round: late.round, cycles: late.cycles })
            .collect();
        Job {
            number: index as u16,
            trees,
            closing: run_time.is_some() && (reduction.file.delete_tree || changed),
            run_time,
            flows: if software { 1 } else { reduction.file.reduction_ids as u8 },
            rounds: reduction.file.rounds * reduction.composed().rounds_each(),
            composed: reduction.composed(),
            opening: reduction.file.opening_barrier && !software,
            op: reduction.opcode(),
            keys: keys(reduction),
            members: Arc::clone(&members),
            first_seqno: reduction.file.first_seqno as u16,
            start: reduction.file.start_cycle,
            timeouts: Timeouts {
                retry_after: reduction.file.retry_after_cycles.known(),
                max_retries: reduction.file.max_retries,
                patience: reduction.file.patience_cycles.known(),
            },
            inputs: self.inputs(index, reduction),
            compute,
            local_cycles: u64::from(reduction.file.contributions_per_node - 1) * u64::from(self.armed.engine.stages),
            late,
            mode: self.engine_cfg().mode,
            overheads: Overheads {
                send: reduction.file.send_overhead_cycles,
                receive: reduction.file.receive_overhead_cycles,
                merge: reduction.file.merge_cycles,
            },
        }
    }

    /// What the participants contribute.
    fn inputs(&self, index: usize, reduction: &Reduction) -> Inputs {
        let traced = self.loaded.workload.as_deref().filter(|_| reduction.data == Data::Called);
        let Some(traced) = traced else { return inputs(index, reduction, self.scenario.seed) };
        let place = (workload::file::Engine::Armed, index);
        let Some((key, _)) = traced.job_at(place.0, index) else { return inputs(index, reduction, self.scenario.seed) };
        let all = workload::build::contributions(self.scenario, traced, place);
        let group = &traced.trace.groups[key.1 as usize].ranks;
        let ends = self.scenario.workload.iter().flat_map(|workload| &workload.ranks).collect::<Vec<_>>();
        // Rows in the order of the reduction's ranks, whose first is the root.
        let member = |rank: u32| group.iter().position(|&of| *ends[of as usize] == reduction.end_point(rank));
        let rows: Vec<&[u64]> =
            (0..reduction.participants).map(|rank| member(rank).map_or(&[][..], |member| &all[member])).collect();
        let word = |row: &[u64], at: usize| row.get(at).copied().unwrap_or(0);
        let quad = |row: &[u64], round: usize| Quad::of(std::array::from_fn(|lane| word(row, 4 * round + lane)));
        let rounds = 0..reduction.file.rounds.max(1) as usize;
        let quads: Vec<Quad> = rounds.flat_map(|round| rows.iter().map(move |row| quad(row, round))).collect();
        Inputs::new(quads.into(), reduction.participants, 1)
    }

    /// How a reduction comes by its tree at run time.
    fn run_time(&self, index: usize, reduction: &Reduction) -> Option<RunTime> {
        let manage = self.armed.agent.filter(|_| reduction.file.configured_by == ConfiguredBy::Agent)?;
        // A leaf of a job that follows others waits for these as long as they may take.
        let mut first_patience = 0u64;
        let mut at = Some(index as u16);
        while let Some(job) = at {
            let of = &self.armed.reductions[usize::from(job)];
            let all = u64::from(of.file.rounds) * u64::from(of.composed().rounds_each()) + 2;
            let rounds = if usize::from(job) == index { 1 } else { all };
            let whole = of.file.patience_cycles.known().saturating_mul(rounds).saturating_add(manage.patience());
            first_patience = first_patience.saturating_add(whole).min(1 << 58);
            at = of.changes;
        }
        Some(RunTime {
            agent: manage.end_point,
            answer_timeout: manage.answer_timeout_cycles.known(),
            requests: manage.requests,
            most_trees: if reduction.file.redundant { 2 } else { 1 },
            changes: reduction.changes,
            delete: reduction.file.delete_tree,
            first_patience: if reduction.file.patience_cycles.known() == 0 { 0 } else { first_patience },
        })
    }

    // ---------------------------------------------------------------------------------------------- processes

    fn processes(&self, reductions: &[ReductionPlan], ends: &mut [End]) {
        for (laid, reduction) in reductions.iter().zip(&self.armed.reductions) {
            let job = &laid.job;
            if job.is_software() {
                for (rank, &end) in (0u32..).zip(&*job.members) {
                    ends[end as usize].add_soft(Soft::new(Arc::clone(job), rank, end));
                }
                continue;
            }
            if let Some(fallback) = &laid.fallback {
                ends[reduction.root as usize].add_client(Client::new(Arc::clone(job), reduction.root));
                for (rank, &end) in (0u32..).zip(&*job.members) {
                    ends[end as usize].add_soft(Soft::new(Arc::clone(fallback), rank, end).dormant());
                }
            }
            // A reduction id that has no round, as there are more of them than rounds, has nobody to begin or to end.
            let has_rounds = |flow: &u8| job.round(*flow, 0).is_some_and(|first| !first.closing);
            for flow in (0..job.flows).filter(has_rounds) {
                ends[reduction.root as usize].add_root(Root::new(Arc::clone(job), flow, reduction.root));
                for (at, &end) in reduction.leaves.iter().enumerate() {
                    ends[end as usize].add_leaf(Leaf::new(Arc::clone(job), flow, at as u32 + 1, end));
                }
            }
        }
    }

    fn strangers(&mut self, reductions: &[ReductionPlan], ends: &mut [End]) {
        for (index, file) in self.armed.strangers.iter().enumerate() {
            let Some(at) = self.armed.reductions.iter().position(|reduction| reduction.name == file.reduction) else {
                continue;
            };
            let job = &reductions[at].job;
            if job.is_software() && !disturbs_software(file.wrong) {
                self.problems.push(
                    Problem::at(
                        format!("armed.stranger[{index}].wrong"),
                        "the tree was refused: it reduces in software",
                    )
                    .expected("\"cookie\", \"vni\", \"malformed\" or \"sender\""),
                );
                continue;
            }
            let end = &mut ends[file.end_point as usize];
            let wrong = match file.wrong {
                WrongFile::Cookie => Defect::Cookie,
                WrongFile::Vni => Defect::Vni,
                WrongFile::Stale => Defect::Stale(file.behind.unwrap_or(1) as u16),
                WrongFile::Address => Defect::Address,
                WrongFile::Tree => {
                    let other = file.tree.as_deref().and_then(|name| {
                        let at = self.armed.reductions.iter().position(|reduction| reduction.name == name)?;
                        let other = &reductions[at].job;
                        let id = other.trees.first().copied();
                        (id.is_some() || other.run_time.is_some()).then_some(OtherTree { job: other.number, id })
                    });
                    let Some(other) = other else {
                        self.problems.push(Problem::at(
                            format!("armed.stranger[{index}].tree"),
                            "its tree was refused: there is no address to send to",
                        ));
                        continue;
                    };
                    if other.id.is_some_and(|id| job.trees.contains(&id)) {
                        let what =
                            "its tree has the same address as that of the job it disturbs: nothing would be wrong";
                        self.problems.push(Problem::at(format!("armed.stranger[{index}].tree"), what));
                        continue;
                    }
                    Defect::Tree(other)
                }
                WrongFile::Malformed => Defect::Malformed,
                WrongFile::Sender => Defect::Sender,
                WrongFile::Op => {
                    let op = file.op.as_deref().and_then(super::config::opcode).map_or(0, |opcode| opcode.number);
                    let number = job.number;
                    end.leaves_mut()
                        .iter_mut()
                        .filter(|leaf| leaf.job().number == number)
                        .for_each(|leaf| leaf.misbehave(op));
                    continue;
                }
            };
            let until = file.until_cycle.unwrap_or(file.from_cycle);
            let forged = match file.sends {
                SendsFile::Contribution => ForgedKind::Contribution,
                SendsFile::Arm => ForgedKind::Arm,
                SendsFile::Result => ForgedKind::Result,
                SendsFile::Release => ForgedKind::Release,
                SendsFile::Request => ForgedKind::Agent(Verb::Ask),
                SendsFile::Delete => ForgedKind::Agent(Verb::Delete),
                SendsFile::Grant => ForgedKind::Agent(Verb::Granted),
                SendsFile::Order => ForgedKind::Agent(Verb::Write),
                SendsFile::Acknowledgement => ForgedKind::Agent(Verb::Done),
            };
            end.add_stranger(Stranger::new(Arc::clone(job), wrong, forged, file.from_cycle, until, file.every_cycles));
        }
    }
}

/// What every frame of a reduction carries.
fn keys(reduction: &Reduction) -> Keys {
    Keys { vni: reduction.vni, cookie: reduction.cookie }
}

/// End points by rank.
fn members(reduction: &Reduction) -> Arc<[u32]> {
    (0..reduction.participants).map(|rank| reduction.end_point(rank)).collect()
}

/// Name of an end point.
fn end_name(plan: &Plan, end: u32) -> String {
    let first = plan.nodes.len() - plan.count(NodeKind::End);
    plan.nodes[first + end as usize].name.clone()
}

/// What the participants of a reduction contribute, round by round.
fn inputs(index: usize, reduction: &Reduction, seed: u64) -> Inputs {
    let opcode = reduction.opcode();
    let (ranks, per_node) = (reduction.participants, reduction.file.contributions_per_node);
    let (length, shape) = (reduction.row_length(), layout(opcode.dtype));
    let rounds = match &reduction.data {
        // Of a vector of fewer frames the rounds start again with the first.
        Data::Values(given) => values::frames(given, length) as u32,
        _ if reduction.same_every_round => 1,
        _ => reduction.file.rounds.max(1),
    };
    let quad = |row: &[u64], who: u64| match opcode.op {
        Op::Barrier => Quad::default(),
        Op::RepSum => repsum::split(row[0]),
        Op::MinMaxLoc | Op::MinMaxNumLoc => Quad::of([row[0], who, row[0], who]),
        _ => Quad::of([row[0], row[1], row[2], row[3]]),
    };
    let count = rounds as usize * ranks as usize * per_node as usize;
    let mut quads = vec![Quad::default(); if length == 0 { ranks as usize * per_node as usize } else { count }];
    match &reduction.data {
        Data::Values(given) => {
            for (who, row) in values::patterns(given, opcode.dtype).iter().enumerate() {
                for (round, frame) in row.chunks_exact(length).enumerate() {
                    quads[round * ranks as usize * per_node as usize + who] = quad(frame, who as u64);
                }
            }
        }
        Data::Random(distribution) => {
            let mut row = vec![0; length];
            for who in 0..ranks as usize * per_node as usize {
                let mut stream = Stream::data(seed, index, who);
                for round in 0..rounds as usize {
                    row.fill_with(|| stream.element(*distribution, shape));
                    quads[round * ranks as usize * per_node as usize + who] = quad(&row, who as u64);
                }
            }
        }
        Data::None | Data::Called | Data::File { .. } => {}
    }
    Inputs::new(quads.into(), ranks, per_node)
}
